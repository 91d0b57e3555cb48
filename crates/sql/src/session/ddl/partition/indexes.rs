//! Parts of indexes: each partition has its own of every index of its parent.

use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{AlterTableCmd, ConstrType};

use super::super::super::Session;
use super::super::table::choose_name;
use super::definition;
use catalog::partition::column_map;
use catalog::{store, Catalog, Index, KeySource, Table};
use syntax::parser::NodeEnum;

impl Session {
    /// A part of an index of a partitioned table, for a partition.
    pub(in super::super) fn index_below(
        &mut self,
        catalog: &Catalog,
        parent: &Table,
        index: &Index,
        table: &Table,
    ) -> Result<Index> {
        let mut own = index.clone();
        if let Some(map) = column_map(parent, table)? {
            let moved = |place: &mut usize| {
                let at = map.get(*place).copied().flatten();
                *place = at.ok_or_else(|| Error::internal("an index of a dropped column"))?;
                Ok::<(), Error>(())
            };
            own.columns
                .iter_mut()
                .try_for_each(|column| moved(&mut column.column))?;
            own.include.iter_mut().try_for_each(moved)?;
            if let Some(computed) = &mut own.computed {
                computed.uses.iter_mut().try_for_each(moved)?;
                for key in &mut computed.keys {
                    if let KeySource::Column(place) = &mut key.source {
                        moved(place)?;
                    }
                }
            }
        }
        own.oid = self.new_oid()?;
        if own.constraint != 0 {
            own.constraint = self.new_oid()?;
        }
        own.tree = match own.primary {
            true => table.tree,
            false => self.new_tree_beside(table.tree)?,
        };
        let names = own
            .shown_columns(table)
            .into_iter()
            .map(|column| column.name);
        let names = names.collect::<Vec<_>>().join("_");
        let (middle, suffix) = match (own.is_primary(), own.constraint) {
            (true, _) => ("", "pkey"),
            (false, 0) => (names.as_str(), "idx"),
            (false, _) => (names.as_str(), "key"),
        };
        own.name = choose_name(&table.name, middle, suffix, |name| {
            catalog.relation(table.schema, name).is_some()
                || table.indexes.iter().any(|index| index.name == name)
                || table.name == name
        });
        Ok(own)
    }

    /// Puts an index on a partitioned table, which is locked, and, unless it is ONLY for that, on all that
    /// is below it.
    pub(in super::super) fn add_partitioned_index(
        &mut self,
        old: &Arc<Table>,
        new: Table,
        below: bool,
    ) -> Result<()> {
        let is_new = |index: &&Index| old.indexes.iter().all(|known| known.oid != index.oid);
        let index = new.indexes.iter().find(is_new).cloned();
        let index = index.ok_or_else(|| Error::internal("a new index that is not there"))?;
        check_covers(&new, &index)?;
        self.claim_index(&new, &index)?;
        self.put_table(&new)?;
        let catalog = self.current_catalog()?;
        let partitions = catalog.partitions(&new).filter(|_| below);
        let partitions: Vec<_> = partitions.map(|found| found.0.oid).collect();
        for oid in partitions {
            let catalog = self.current_catalog()?;
            let Some(table) = catalog.table_by_oid(oid).cloned() else {
                continue;
            };
            self.lock_fully(&table)?;
            self.refuse_in_use(&table, "CREATE INDEX")?;
            let (catalog, table) = self.own_table(oid)?;
            self.extend_index(&catalog, &new, &index, &table)?;
        }
        Ok(())
    }

    /// Gives a partition, which is locked, its part of an index of its parent: one that is there, or
    /// another.
    pub(in super::super) fn extend_index(
        &mut self,
        catalog: &Catalog,
        parent: &Table,
        index: &Index,
        table: &Arc<Table>,
    ) -> Result<()> {
        let own = self.index_below(catalog, parent, index, table)?;
        let mut known = table.indexes.iter();
        let known =
            known.find(|known| same_index(&own, known) && table.part_above(known.oid).is_none());
        let mut below = (**table).clone();
        if let Some(known) = known {
            if let Some(of) = &mut below.partition_of {
                of.parts.push((known.oid, index.oid));
            }
            return self.put_table(&below);
        }
        if own.is_primary() && table.primary_index().is_some() {
            return Err(two_keys(table));
        }
        let columns = own.columns.clone();
        put_index(&mut below, own, index.oid);
        if index.is_primary() && table.kind.has_rows() {
            for column in &columns {
                if !table.columns[column.column].not_null {
                    self.check_not_null(table, column.column)?;
                }
            }
        }
        match table.kind.has_rows() {
            true => self.add_index(table, below),
            false => self.add_partitioned_index(table, below, true),
        }
    }

    fn claim_index(&mut self, table: &Table, index: &Index) -> Result<()> {
        let database = self.current_catalog()?.database.oid;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let (class, txn) = (store::NameClass::Relation, open.txn.as_mut());
        let claimed =
            store::claim_name(txn, class, database, table.schema, &index.name, index.oid)?;
        match claimed {
            true => Ok(()),
            false => Err(store::duplicate_relation(&index.name)),
        }
    }
}

/// Whether an index may be the part of another that this one would be.
pub(in super::super) fn same_index(wanted: &Index, known: &Index) -> bool {
    let keys = |index: &Index| {
        let computed = index.computed.as_ref();
        computed.map(|own| (own.keys.clone(), own.condition.clone()))
    };
    (wanted.primary, wanted.unique, wanted.nulls_equal)
        == (known.primary, known.unique, known.nulls_equal)
        && wanted.checked.is_some() == known.checked.is_some()
        && wanted.exclusion == known.exclusion
        && wanted.is_primary() == known.is_primary()
        && (wanted.constraint == 0) == (known.constraint == 0)
        && wanted.columns == known.columns
        && wanted.include == known.include
        && keys(wanted) == keys(known)
        && wanted.form.collations == known.form.collations
        && (wanted.form.method, &wanted.form.classes) == (known.form.method, &known.form.classes)
}

pub(super) fn two_keys(table: &Table) -> Error {
    definition(format!(
        "multiple primary keys for table \"{}\" are not allowed",
        table.name
    ))
}

/// Adds an index to a partition, which is a part of one above.
pub(super) fn put_index(table: &mut Table, index: Index, above: u32) {
    if let Some(of) = &mut table.partition_of {
        of.parts.push((index.oid, above));
    }
    if index.is_primary() {
        for column in &index.columns {
            table.columns[column.column].not_null = true;
        }
    }
    match index.primary {
        true => table.indexes.insert(0, index),
        false => table.indexes.push(index),
    }
}

/// Refuses a unique index that could not tell apart rows of different partitions.
///
/// # Errors
/// 0A000.
pub(in super::super) fn check_covers(table: &Table, index: &Index) -> Result<()> {
    let Some(key) = table.partition_key.as_ref().filter(|_| index.is_unique()) else {
        return Ok(());
    };
    let noun = match (index.is_primary(), index.constraint) {
        (true, _) => "PRIMARY KEY",
        _ => "UNIQUE",
    };
    let has = |place: usize| (0..index.key_count()).any(|at| index.key_column(at) == Some(place));
    for part in &key.parts {
        let KeySource::Column(place) = part.source else {
            let message = format!("unsupported {noun} constraint with partition key definition");
            return Err(
                Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(format!(
                    "{noun} constraints cannot be used when partition keys include expressions."
                )),
            );
        };
        if !has(place) {
            let message =
                "unique constraint on partitioned table must include all partitioning columns";
            return Err(
                Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(format!(
                    "{noun} constraint on table \"{}\" lacks column \"{}\" which is part of the \
                 partition key.",
                    table.name, table.columns[place].name
                )),
            );
        }
    }
    Ok(())
}

/// 2BP01 for an index of a partition that is a part of another.
pub(in super::super) fn refuse_dropping_part(
    catalog: &Catalog,
    table: &Table,
    index: &Index,
) -> Result<()> {
    let above = table.part_above(index.oid);
    let Some((_, above)) = above.and_then(|above| catalog.index_by_oid(above)) else {
        return Ok(());
    };
    let message = format!(
        "cannot drop index {} because index {} requires it",
        index.name, above.name
    );
    Err(Error::new(SqlState::of("2BP01"), message)
        .with_hint(format!("You can drop index {} instead.", above.name)))
}

/// Whether it is ADD PRIMARY KEY or ADD UNIQUE.
pub(in super::super) fn adds_key(command: &AlterTableCmd) -> bool {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::Constraint(constraint)) => {
            let kind = ConstrType::try_from(constraint.contype);
            let keys = [Ok(ConstrType::ConstrPrimary), Ok(ConstrType::ConstrUnique)];
            keys.contains(&kind) && constraint.indexname.is_empty()
        }
        _ => false,
    }
}
