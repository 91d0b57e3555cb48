//! Row triggers of partitioned tables: each partition has one of its own of every such trigger of its parent.
//! Those of statements stay with the table that the statement names.

use base::{Error, Result, SqlState};

use super::super::super::Session;
use super::super::trigger::exists;
use catalog::partition::column_map;
use catalog::{Catalog, Table, Trigger};

/// 2BP01 for a trigger of a partition that is a part of another.
pub(in super::super) fn refuse_dropping_part(
    catalog: &Catalog,
    table: &Table,
    trigger: &Trigger,
) -> Result<()> {
    let above = table.part_above(trigger.oid);
    let Some((parent, above)) = above.and_then(|oid| catalog.trigger(oid)) else {
        return Ok(());
    };
    let whole = format!("trigger {} on table {}", above.name, parent.name);
    let message = format!(
        "cannot drop trigger {} on table {} because {whole} requires it",
        trigger.name, table.name
    );
    Err(Error::new(SqlState::of("2BP01"), message)
        .with_hint(format!("You can drop {whole} instead.")))
}

impl Session {
    /// Gives a partition its part of a trigger of its parent; returns that.
    pub(in super::super) fn lower_trigger(
        &mut self,
        parent: &Table,
        trigger: &Trigger,
        table: &mut Table,
    ) -> Result<Trigger> {
        let known = match table.trigger(&trigger.name) {
            Some(known) if table.part_above(known.oid) == Some(trigger.oid) => Some(known.oid),
            Some(_) => return Err(exists(table, &trigger.name)),
            None => None,
        };
        let mut own = trigger.clone();
        if let Some(map) = column_map(parent, table)? {
            let moved = |places: &mut Vec<usize>| {
                let found: Option<Vec<usize>> = places.iter().map(|place| map[*place]).collect();
                *places = found.ok_or_else(|| Error::internal("a trigger on a dropped column"))?;
                Ok::<(), Error>(())
            };
            moved(&mut own.columns)?;
            if let Some(condition) = &mut own.condition {
                moved(&mut condition.columns)?;
                let named = |place: usize| {
                    let above = map.iter().position(|at| *at == Some(place));
                    above.and_then(|above| condition.names.get(above).cloned())
                };
                let columns = table.columns.iter().enumerate();
                let names = columns
                    .map(|(place, column)| named(place).unwrap_or_else(|| column.name.clone()));
                condition.names = names.collect();
            }
        }
        own.oid = match known {
            Some(oid) => oid,
            None => self.new_oid()?,
        };
        if let Some(constraint) = &mut own.constraint {
            constraint.oid = self.new_oid()?;
        }
        if let Some(of) = table.partition_of.as_mut().filter(|_| known.is_none()) {
            of.parts.push((own.oid, trigger.oid));
        }
        table.put_trigger(own.clone());
        Ok(own)
    }

    /// Gives a table that is a partition now, and all below it, their parts of a trigger of its parent.
    pub(in super::super) fn extend_trigger(
        &mut self,
        parent: &Table,
        trigger: &Trigger,
        oid: u32,
    ) -> Result<()> {
        let (_, table) = self.own_table(oid)?;
        let mut new = (*table).clone();
        let own = self.lower_trigger(parent, trigger, &mut new)?;
        self.put_table(&new)?;
        self.extend_trigger_below(&new, &own)
    }

    /// The same for all below a partitioned table.
    pub(in super::super) fn extend_trigger_below(
        &mut self,
        table: &Table,
        trigger: &Trigger,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let below: Vec<u32> = catalog.partitions(table).map(|found| found.0.oid).collect();
        for oid in below {
            self.extend_trigger(table, trigger, oid)?;
        }
        Ok(())
    }

    /// Takes the parts of triggers from a table that is no longer a partition, and from all below it.
    pub(in super::super) fn forget_trigger_parts(
        &mut self,
        table: &mut Table,
        parts: &[u32],
    ) -> Result<()> {
        let is_part = |trigger: &&Trigger| parts.contains(&trigger.oid);
        let gone: Vec<u32> = table
            .triggers
            .iter()
            .filter(is_part)
            .map(|own| own.oid)
            .collect();
        table
            .triggers
            .retain(|trigger| !gone.contains(&trigger.oid));
        if gone.is_empty() {
            return Ok(());
        }
        let catalog = self.current_catalog()?;
        let below: Vec<u32> = catalog.partitions(table).map(|found| found.0.oid).collect();
        for oid in below {
            let (_, partition) = self.own_table(oid)?;
            let mut new = (*partition).clone();
            let of = new.partition_of.iter_mut().flat_map(|of| &mut of.parts);
            let own: Vec<u32> = of
                .filter(|part| gone.contains(&part.1))
                .map(|p| p.0)
                .collect();
            if let Some(of) = &mut new.partition_of {
                of.parts.retain(|part| !gone.contains(&part.1));
            }
            self.forget_trigger_parts(&mut new, &own)?;
            self.put_table(&new)?;
        }
        Ok(())
    }
}
