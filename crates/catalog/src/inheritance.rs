//! Tables that inherit from others (PostgreSQL 15 manual, section 5.10).
//!
//! ```text
//! create table m (k int, v text)          m: rows of its own
//! create table c (n int) inherits (m)     c: k, v, n; m: children [c]
//! select k, v from m                      the rows of m, and of c what they have of m's columns
//! select k, v from only m                 the rows of m
//! ```
//! A child has all columns of its parents, by name, and their CHECK constraints but those that are NO
//! INHERIT. Which of its columns and constraints are inherited follows from what its parents have; kept is
//! only which of them it was given by itself as well.
//!
//! # Invariants
//! - A child's descriptor names its parents, whose descriptors list it: all of them change together.
//! - Nobody inherits from itself.
//!
//! # What it leaves out
//! Partitions have one parent and no columns of their own: [`crate::partition`].

use std::sync::Arc;

use base::codec::{put_varint, Reader};
use base::Result;

use super::lists::read_list;
use super::{Catalog, Check, Table};

/// From whom a table inherits, and who inherits from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inheritance {
    /// Its parents, by oid, in the order in which they were named.
    pub parents: Vec<u32>,
    /// Its children, by oid.
    pub children: Vec<u32>,
    /// The places of the inherited columns that it was given by itself as well.
    pub local_columns: Vec<usize>,
    /// The oids of the inherited CHECK constraints that it was given by itself as well.
    pub local_checks: Vec<u32>,
}

pub(super) fn put(inheritance: &Inheritance, out: &mut Vec<u8>) {
    for oids in [&inheritance.parents, &inheritance.children] {
        put_varint(out, oids.len() as u64);
        oids.iter().for_each(|oid| put_varint(out, u64::from(*oid)));
    }
    put_varint(out, inheritance.local_columns.len() as u64);
    for place in &inheritance.local_columns {
        put_varint(out, *place as u64);
    }
    put_varint(out, inheritance.local_checks.len() as u64);
    for oid in &inheritance.local_checks {
        put_varint(out, u64::from(*oid));
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Inheritance> {
    Ok(Inheritance {
        parents: read_list(reader, |reader| reader.varint_as())?,
        children: read_list(reader, |reader| reader.varint_as())?,
        local_columns: read_list(reader, |reader| reader.varint_as())?,
        local_checks: read_list(reader, |reader| reader.varint_as())?,
    })
}

impl Table {
    /// The tables that it inherits from, by oid.
    pub fn inherits_from(&self) -> &[u32] {
        self.inheritance.as_ref().map_or(&[], |own| &own.parents)
    }

    /// Whether others inherit from it, whose rows it shows as well.
    pub fn has_children(&self) -> bool {
        let own = self.inheritance.as_ref();
        own.is_some_and(|own| !own.children.is_empty())
    }

    /// The same table without what inherits from it: what ONLY means.
    pub fn alone(self: &Arc<Table>) -> Arc<Table> {
        if !self.has_children() {
            return self.clone();
        }
        let mut alone = (**self).clone();
        if let Some(own) = &mut alone.inheritance {
            own.children.clear();
        }
        Arc::new(alone)
    }

    /// What is said of its inheritance, to be changed.
    pub fn inheritance_mut(&mut self) -> &mut Inheritance {
        self.inheritance.get_or_insert_default()
    }
}

impl Catalog {
    /// The tables that a table inherits from, in the order in which they were named.
    pub fn parents(&self, table: &Table) -> Vec<&Arc<Table>> {
        let oids = table.inherits_from().iter();
        oids.filter_map(|oid| self.table_by_oid(*oid)).collect()
    }

    /// How many parents of a table have a column of that name.
    pub fn inherited_column(&self, table: &Table, name: &str) -> usize {
        let parents = self.parents(table).into_iter();
        parents
            .filter(|parent| parent.column(name).is_some())
            .count()
    }

    /// How many parents of a table, or of a partition, hand a CHECK constraint of that name on to it.
    pub fn inherited_check(&self, table: &Table, name: &str) -> usize {
        let hands_on = |check: &Check| check.name == name && !check.no_inherit;
        let of = table.partition_of.iter();
        let of = of.filter_map(|of| self.table_by_oid(of.parent));
        let parents = self.parents(table).into_iter().chain(of);
        parents
            .filter(|parent| parent.checks.iter().any(hands_on))
            .count()
    }

    /// How many parents a column of a table has, and whether it is the table's own as well.
    pub fn column_origin(&self, table: &Table, place: usize) -> (usize, bool) {
        let column = &table.columns[place];
        if column.dropped {
            return (0, true);
        }
        if table.partition_of.is_some() {
            return (1, false);
        }
        let own = table.inheritance.as_ref();
        let is_local = own.is_some_and(|own| own.local_columns.contains(&place));
        let count = self.inherited_column(table, &column.name);
        (count, count == 0 || is_local)
    }

    /// How many parents a CHECK constraint of a table has, and whether it is the table's own as well.
    pub fn check_origin(&self, table: &Table, check: &Check) -> (usize, bool) {
        let own = table.inheritance.as_ref();
        let is_local = own.is_some_and(|own| own.local_checks.contains(&check.oid));
        let count = self.inherited_check(table, &check.name);
        (count, count == 0 || is_local)
    }

    /// Whether a table inherits from another, through others too.
    pub fn inherits(&self, table: &Table, from: u32) -> bool {
        let from = self.table_by_oid(from).filter(|from| from.has_children());
        from.is_some_and(|from| self.heirs(from).iter().any(|heir| heir.oid == table.oid))
    }

    /// The children of a table, by oid.
    pub fn children(&self, table: &Table) -> Vec<Arc<Table>> {
        let own = table.inheritance.as_ref();
        let mut oids = own.map_or_else(Vec::new, |own| own.children.clone());
        oids.sort_unstable();
        let children = oids.into_iter().filter_map(|oid| self.table_by_oid(oid));
        children.cloned().collect()
    }

    /// All tables that inherit from a table, through others too: level by level, each once, and those of
    /// the same parent by their oids.
    pub fn heirs(&self, table: &Table) -> Vec<Arc<Table>> {
        let mut all = self.children(table);
        let mut next = 0;
        while let Some(heir) = all.get(next).cloned() {
            for child in self.children(&heir) {
                if all.iter().all(|known| known.oid != child.oid) {
                    all.push(child);
                }
            }
            next += 1;
        }
        all
    }
}
