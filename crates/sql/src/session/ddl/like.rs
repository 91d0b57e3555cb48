//! `CREATE TABLE … (LIKE other INCLUDING …)`: columns, and what else is asked for, of another
//! relation.

use base::{Error, Result, SqlState};
use pg_query::protobuf::TableLikeClause;

use super::super::Session;
use super::table::choose_name;
use catalog::access::Privileges;
use catalog::cluster::{self, Address};
use catalog::{
    Catalog, Check, Column, Identity, Index, KeySource, Owner, RelationKind, Sequence, Table,
};
use syntax::parser::char_position;

/// The bits of INCLUDING.
mod including {
    pub const COMMENTS: u32 = 1 << 0;
    pub const COMPRESSION: u32 = 1 << 1;
    pub const CONSTRAINTS: u32 = 1 << 2;
    pub const DEFAULTS: u32 = 1 << 3;
    pub const GENERATED: u32 = 1 << 4;
    pub const IDENTITY: u32 = 1 << 5;
    pub const INDEXES: u32 = 1 << 6;
    pub const STATISTICS: u32 = 1 << 7;
    pub const STORAGE: u32 = 1 << 8;
}

impl Session {
    /// Adds the columns of another relation.
    pub(super) fn add_like(
        &mut self,
        text: &str,
        like: &TableLikeClause,
        table: &mut Table,
        sequences: &mut Vec<Table>,
    ) -> Result<()> {
        let range = like
            .relation
            .as_ref()
            .ok_or_else(|| Error::internal("LIKE nothing"))?;
        let catalog = self.current_catalog()?;
        let other = self.find_table_in(text, range)?;
        if other.kind == RelationKind::Sequence {
            let error = Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("relation \"{}\" is invalid in LIKE clause", other.name),
            )
            .with_detail("This operation is not supported for sequences.");
            return Err(match char_position(text, range.location) {
                Some(position) => error.at(position),
                None => error,
            });
        }
        self.must_hold(&other, Privileges::SELECT)?;
        let wants = |what: u32| like.options & what != 0;
        let first = table.columns.len();
        let mut places = Vec::with_capacity(other.columns.len());
        for column in &other.columns {
            places.push(table.columns.len());
            if column.dropped {
                continue;
            }
            if table.column(&column.name).is_some() {
                return Err(Error::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", column.name),
                ));
            }
            let kept = match column.generated {
                true => wants(including::GENERATED),
                false => wants(including::DEFAULTS),
            };
            let mut made = Column {
                missing: None,
                identity: Identity::None,
                said_storage: column.said_storage.filter(|_| wants(including::STORAGE)),
                compression: column.compression.filter(|_| wants(including::COMPRESSION)),
                ..column.clone()
            };
            if !kept || column.identity != Identity::None {
                made.default = None;
                made.default_uses.clear();
                made.generated = false;
                made.generated_from.clear();
            }
            table.columns.push(made);
        }
        for column in &mut table.columns[first..] {
            for from in &mut column.generated_from {
                *from = places[*from];
            }
        }
        if wants(including::IDENTITY) {
            self.copy_identities(&catalog, &other, &places, table, sequences)?;
        }
        let mut copies: Vec<(Address, Address)> = Vec::new();
        for (from, to) in places.iter().enumerate() {
            let column = |table: u32, place: usize| Address {
                column: (place + 1) as u32,
                ..Address::of(Address::CLASS, table)
            };
            if !other.columns[from].dropped {
                copies.push((column(other.oid, from), column(table.oid, *to)));
            }
        }
        if wants(including::CONSTRAINTS) {
            for check in &other.checks {
                let columns = check.columns.iter().map(|place| places[*place]).collect();
                let oid = self.new_oid()?;
                table.checks.push(Check {
                    oid,
                    columns,
                    ..check.clone()
                });
                let [from, to] = [check.oid, oid].map(|oid| Address::of(Address::CONSTRAINT, oid));
                copies.push((from, to));
            }
        }
        if wants(including::INDEXES) {
            for (from, to) in self.copy_indexes(&catalog, &other, &places, table)? {
                let [from, to] = [from, to].map(|oid| Address::of(Address::CLASS, oid));
                copies.push((from, to));
            }
        }
        if wants(including::STATISTICS) {
            for (from, to) in self.copy_statistics(&catalog, &other, &places, table)? {
                let [from, to] = [from, to].map(|oid| Address::of(Address::STATISTIC_EXT, oid));
                copies.push((from, to));
            }
        }
        match wants(including::COMMENTS) {
            true => self.copy_comments(&catalog, &copies),
            false => Ok(()),
        }
    }

    /// Says of objects what is said of others.
    fn copy_comments(&mut self, catalog: &Catalog, copies: &[(Address, Address)]) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        for (from, to) in copies {
            if let Some(text) = catalog.comment(*from) {
                let (txn, database) = (open.txn.as_mut(), catalog.database.oid);
                cluster::put_comment(txn, database, *to, Some(text))?;
            }
        }
        Ok(())
    }

    fn copy_identities(
        &mut self,
        catalog: &Catalog,
        other: &Table,
        places: &[usize],
        table: &mut Table,
        sequences: &mut Vec<Table>,
    ) -> Result<()> {
        for (column, place) in other.columns.iter().zip(places) {
            let sequence = match (column.identity, column.default_uses.first()) {
                (Identity::None, _) | (_, None) => continue,
                (_, Some(oid)) => catalog.table_by_oid(*oid),
            };
            let Some(Some(old)) = sequence.map(|sequence| &sequence.sequence) else {
                continue;
            };
            let name = choose_name(&table.name, &column.name, "seq", |name| {
                name == table.name
                    || sequences.iter().any(|one| one.name == name)
                    || catalog.relation(table.schema, name).is_some()
            });
            let new = Sequence {
                begins_at: old.start,
                owner: Some(Owner {
                    table: table.oid,
                    column: *place,
                    identity: true,
                }),
                ..old.clone()
            };
            let made = self.sequence_table(catalog, table.schema, name, new)?;
            table.columns[*place].identity = column.identity;
            table.columns[*place].default_uses = vec![made.oid];
            sequences.push(made);
        }
        Ok(())
    }

    /// The oids of the indexes that are copied, and of their copies.
    fn copy_indexes(
        &mut self,
        catalog: &Catalog,
        other: &Table,
        places: &[usize],
        table: &mut Table,
    ) -> Result<Vec<(u32, u32)>> {
        let mut copies = Vec::new();
        for index in &other.indexes {
            let mut columns = index.columns.clone();
            for column in &mut columns {
                column.column = places[column.column];
            }
            let mut computed = index.computed.clone();
            for own in computed.iter_mut().flat_map(|own| &mut own.keys) {
                if let KeySource::Column(place) = &mut own.source {
                    *place = places[*place];
                }
            }
            for place in computed.iter_mut().flat_map(|own| &mut own.uses) {
                *place = places[*place];
            }
            let mut made = Index {
                primary: index.primary,
                unique: index.unique,
                nulls_equal: index.nulls_equal,
                checked: index.checked,
                exclusion: index.exclusion.clone(),
                columns,
                include: index.include.iter().map(|place| places[*place]).collect(),
                computed,
                form: index.form.clone(),
                ..Index::default()
            };
            let names: Vec<_> = made
                .shown_columns(table)
                .into_iter()
                .map(|own| own.name)
                .collect();
            let (middle, suffix) = match (index.is_primary(), index.constraint) {
                (true, _) => (String::new(), "pkey"),
                (_, 0) => (names.join("_"), "idx"),
                _ if index.exclusion.is_some() => (names.join("_"), "excl"),
                _ => (names.join("_"), "key"),
            };
            let name = choose_name(&table.name, &middle, suffix, |name| {
                catalog.relation(table.schema, name).is_some()
                    || table.indexes.iter().any(|index| index.name == name)
                    || table.name == name
            });
            made.oid = self.new_oid()?;
            copies.push((index.oid, made.oid));
            made.name = name;
            made.constraint = match index.constraint {
                0 => 0,
                _ => self.new_oid()?,
            };
            made.tree = match index.primary {
                true => table.tree,
                false => self.new_tree_beside(table.tree)?,
            };
            if made.is_primary() {
                for column in &made.columns {
                    table.columns[column.column].not_null = true;
                }
            }
            match made.primary {
                true => table.indexes.insert(0, made),
                false => table.indexes.push(made),
            }
        }
        Ok(copies)
    }
}
