//! Foreign keys of partitioned tables, and to them.
//!
//! ```text
//! create table c (…, k int references p) partition by …    c: the foreign key; c1: one that is a part of it
//! create table p1 partition of p …                         c: what its key is called where p1's rows leave
//! ```
//! Rows refer by the foreign key of the partition that they are in; what the partitioned table has is
//! only the whole of those. A foreign key to a partitioned table is a constraint of its own for each
//! partition of that, as in PostgreSQL, whose names errors show.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};

use super::super::super::Session;
use super::super::alter::about;
use super::super::foreign::constraint_name;
use catalog::partition::column_map;
use catalog::{Catalog, ForeignKey, ForeignPart, RelationKind, Table};

/// A foreign key of a partitioned table as one of a partition.
fn lowered(parent: &Table, key: &ForeignKey, table: &Table) -> Result<ForeignKey> {
    let mut own = key.clone();
    if let Some(map) = column_map(parent, table)? {
        for place in own.columns.iter_mut().chain(&mut own.set_columns) {
            let at = map[*place];
            *place = at.ok_or_else(|| Error::internal("a foreign key of a dropped column"))?;
        }
    }
    Ok(own)
}

/// Whether a foreign key may be the part of another that this one would be.
fn is_same(wanted: &ForeignKey, known: &ForeignKey) -> bool {
    let plain = |key: &ForeignKey| ForeignKey {
        oid: 0,
        name: String::new(),
        ..key.clone()
    };
    plain(wanted) == plain(known)
}

impl Session {
    /// Gives a partition its part of a foreign key of its parent: one that is there, or another, whose
    /// place is returned.
    pub(in super::super) fn lower_foreign_key(
        &mut self,
        catalog: &Catalog,
        (parent, key): (&Table, &ForeignKey),
        table: &mut Table,
    ) -> Result<Option<usize>> {
        let mut own = lowered(parent, key, table)?;
        let mut known = table.foreign_keys.iter();
        let known = known
            .find(|known| is_same(&own, known) && table.part_above(known.oid).is_none())
            .map(|known| known.oid);
        let part = match known {
            Some(oid) => oid,
            None => self.new_oid()?,
        };
        if let Some(of) = &mut table.partition_of {
            of.parts.push((part, key.oid));
        }
        if known.is_some() {
            table.foreign_parts.retain(|known| known.key != part);
            return Ok(None);
        }
        own.oid = part;
        own.name = match constraint_name(catalog, table, &key.name, &own.columns, "fkey") {
            Ok(name) => name,
            Err(_) => constraint_name(catalog, table, "", &own.columns, "fkey")?,
        };
        table.foreign_keys.push(own);
        Ok(Some(table.foreign_keys.len() - 1))
    }

    /// Gives all that is below a partitioned table, which is locked, its parts of a foreign key, and looks
    /// whether their rows meet it.
    pub(in super::super) fn add_foreign_key_below(
        &mut self,
        parent: &Arc<Table>,
        key: &ForeignKey,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let partitions: Vec<_> = catalog
            .partitions(parent)
            .map(|found| found.0.oid)
            .collect();
        for oid in partitions {
            let table = self.current_catalog()?.table_by_oid(oid).cloned();
            let table = table.ok_or_else(|| Error::internal("a partition that is gone"))?;
            self.lock_mode(&table, TableLock::ShareRowExclusive)?;
            self.refuse_in_use(&table, "ALTER TABLE")?;
            self.extend_foreign_key(parent, key, oid)?;
        }
        Ok(())
    }

    /// The same for one partition and all below it.
    pub(in super::super) fn extend_foreign_key(
        &mut self,
        parent: &Arc<Table>,
        key: &ForeignKey,
        oid: u32,
    ) -> Result<()> {
        let (catalog, table) = self.own_table(oid)?;
        let mut new = (*table).clone();
        let made = self.lower_foreign_key(&catalog, (parent, key), &mut new)?;
        self.put_table(&new)?;
        let (_, table) = self.own_table(oid)?;
        let Some(own) = made.map(|place| table.foreign_keys[place].clone()) else {
            return Ok(());
        };
        if !table.kind.has_rows() {
            return self.add_foreign_key_below(&table, &own);
        }
        // Nobody may take away meanwhile what its rows refer to.
        let (catalog, referred) = self.own_table(own.table)?;
        for locked in std::iter::once(referred.clone()).chain(catalog.below(&referred)) {
            self.lock_mode(&locked, TableLock::ShareRowExclusive)?;
        }
        self.check_foreign_key(&table, &own)
    }

    /// Names what a foreign key is for partitions of the table that it refers to.
    pub(in super::super) fn name_foreign_parts(
        &mut self,
        catalog: &Catalog,
        table: &mut Table,
        (key, partitions): (&ForeignKey, &[u32]),
    ) -> Result<()> {
        for partition in partitions {
            let taken: Vec<_> = table.foreign_parts.iter().map(|part| &*part.name).collect();
            let name = constraint_name(catalog, table, "", &key.columns, "fkey")?;
            let mut number = 0;
            let mut free = name.clone();
            // What is named here is in no catalog yet.
            while taken.contains(&&*free) || table.foreign_keys.iter().any(|key| key.name == free) {
                number += 1;
                free = format!(
                    "{}{number}",
                    name.trim_end_matches(|c: char| c.is_ascii_digit())
                );
            }
            table.foreign_parts.push(ForeignPart {
                key: key.oid,
                partition: *partition,
                oid: self.new_oid()?,
                name: free,
            });
        }
        Ok(())
    }

    /// Names what the foreign keys to a partitioned table, and to those above it, are for new partitions.
    pub(in super::super) fn name_parts_of_new(
        &mut self,
        parent: &Arc<Table>,
        partitions: &[u32],
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let above = catalog.with_ancestors(parent).into_iter();
        let mut keys: Vec<(u32, ForeignKey)> = above
            .flat_map(|above| catalog.referrers(above.oid))
            .filter(|(table, key)| table.part_above(key.oid).is_none())
            .map(|(table, key)| (table.oid, key.clone()))
            .collect();
        keys.sort_by_key(|(_, key)| key.oid);
        for (oid, key) in keys {
            let (catalog, table) = self.own_table(oid)?;
            self.lock_mode(&table, TableLock::ShareRowExclusive)?;
            let mut new = (*table).clone();
            self.name_foreign_parts(&catalog, &mut new, (&key, partitions))?;
            self.put_table(&new)?;
        }
        Ok(())
    }

    /// Takes away what foreign keys are for tables that are no longer partitions, of which `table` is the
    /// topmost.
    ///
    /// # Errors
    /// 23503 if a row refers to one of theirs.
    pub(in super::super) fn forget_foreign_parts(
        &mut self,
        table: &Arc<Table>,
        gone: &[u32],
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let of_gone = |part: &&ForeignPart| gone.contains(&part.partition);
        let has_parts = |table: &&Arc<Table>| table.foreign_parts.iter().any(|p| of_gone(&p));
        let tables: Vec<u32> = catalog
            .tables
            .iter()
            .filter(has_parts)
            .map(|t| t.oid)
            .collect();
        for oid in tables {
            let (_, from) = self.own_table(oid)?;
            self.lock_mode(&from, TableLock::ShareRowExclusive)?;
            let mut new = (*from).clone();
            new.foreign_parts
                .retain(|part| !gone.contains(&part.partition));
            self.put_table(&new)?;
            let parts = from.foreign_parts.iter();
            for part in parts.filter(|part| part.partition == table.oid) {
                self.check_not_referred(&from, part, table)?;
            }
        }
        Ok(())
    }

    /// 23503 if a row refers to one of a table that is no longer among the partitions.
    fn check_not_referred(
        &mut self,
        from: &Arc<Table>,
        part: &ForeignPart,
        table: &Table,
    ) -> Result<()> {
        let catalog = self.current_catalog()?;
        let mut tables = vec![from.clone()];
        tables.extend(catalog.below(from));
        for child in tables.iter().filter(|child| child.kind.has_rows()) {
            for key in &child.foreign_keys {
                if catalog.whole_of(child, key.oid).1 != part.key {
                    continue;
                }
                self.check_foreign_key(child, key).map_err(|error| {
                    if error.state() != SqlState::FOREIGN_KEY_VIOLATION {
                        return error;
                    }
                    let detail = error.fields().detail.clone().unwrap_or_default();
                    let shown = detail.split(" is not present in table").next();
                    let message = format!(
                        "removing partition \"{}\" violates foreign key constraint \"{}\"",
                        table.name, part.name
                    );
                    let mut error = Error::new(SqlState::FOREIGN_KEY_VIOLATION, message)
                        .with_detail(format!(
                            "{} is still referenced from table \"{}\".",
                            shown.unwrap_or("Key"),
                            from.name
                        ));
                    error.fields_mut().constraint = Some(part.name.clone());
                    about(error, &catalog, from)
                })?;
            }
        }
        Ok(())
    }

    /// Names what the foreign keys of a table that is no longer a partition are for the partitions of the
    /// tables that they refer to.
    pub(in super::super) fn name_own_parts(
        &mut self,
        catalog: &Catalog,
        table: &mut Table,
        keys: &[u32],
    ) -> Result<()> {
        let own = table.foreign_keys.clone();
        for key in own.iter().filter(|key| keys.contains(&key.oid)) {
            let parent = catalog.table_by_oid(key.table);
            let Some(parent) = parent.filter(|table| table.kind == RelationKind::Partitioned)
            else {
                continue;
            };
            let below = catalog.below_by_bounds(parent);
            let below: Vec<u32> = below.iter().map(|table| table.oid).collect();
            self.name_foreign_parts(catalog, table, (key, &below))?;
        }
        Ok(())
    }
}
