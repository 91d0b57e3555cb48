//! The relations of one version of a catalog, and how they are found: by oid, by name, by the tables
//! that they refer to.
//!
//! ```text
//! relations[16390]          the table, found like all by its oid
//! named(2200, "t_pkey")     Index(16390, 0): the first index of the table 16390
//! ```
//! Built-in relations are the same in every version and in no map of any.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use base::hash::HashMap;

use super::persistent::SharedMap;
use super::{
    system, ForeignKey, Index, RelationRef, Table, INFORMATION_SCHEMA, PG_CATALOG, QUORATE,
};

/// The relations of a catalog: the built-in ones first, then the others by oid.
///
/// The *place* of a relation is its oid.
#[derive(Clone, Default)]
pub struct Tables {
    own: SharedMap<u32, Arc<Table>>,
    names: SharedMap<(u32, Arc<str>), RelationRef>,
    /// The tables of indexes, by the oids of the indexes.
    indexes: SharedMap<u32, u32>,
    /// Tables that foreign keys refer to, each with a table that such a key belongs to.
    referrers: SharedMap<(u32, u32), ()>,
}

/// The relations that are there from the start.
struct BuiltIn {
    /// Their places among [`system::tables`].
    by_oid: HashMap<u32, usize>,
    by_name: HashMap<(u32, Arc<str>), RelationRef>,
    /// The tables of their indexes.
    indexes: HashMap<u32, u32>,
}

fn built_in() -> &'static BuiltIn {
    static BUILT: OnceLock<BuiltIn> = OnceLock::new();
    BUILT.get_or_init(|| {
        let all = || system::tables().iter();
        let places = all().enumerate();
        BuiltIn {
            by_oid: places.map(|(place, table)| (table.oid, place)).collect(),
            by_name: all().flat_map(|table| names_of(table)).collect(),
            indexes: all().flat_map(|table| indexes_of(table)).collect(),
        }
    })
}

impl Tables {
    /// The built-in relations and these.
    pub fn of(tables: Vec<Table>) -> Tables {
        let own: Vec<_> = tables.into_iter().map(Arc::new).collect();
        let names = own.iter().flat_map(|table| names_of(table));
        let indexes = own.iter().flat_map(|table| indexes_of(table));
        let referrers = own.iter().flat_map(|table| references_of(table));
        Tables {
            names: names.collect(),
            indexes: indexes.collect(),
            referrers: referrers.map(|pair| (pair, ())).collect(),
            own: own.iter().map(|table| (table.oid, table.clone())).collect(),
        }
    }

    /// Puts a table in the place of what had its oid, or takes that away.
    pub fn put(&mut self, oid: u32, table: Option<Arc<Table>>) {
        if let Some(old) = self.own.remove(&oid) {
            for (name, found) in names_of(&old) {
                // Another may have the name by now.
                if self.names.get(&name) == Some(&found) {
                    self.names.remove(&name);
                }
            }
            for (index, of) in indexes_of(&old) {
                if self.indexes.get(&index) == Some(&of) {
                    self.indexes.remove(&index);
                }
            }
            for pair in references_of(&old) {
                self.referrers.remove(&pair);
            }
        }
        let Some(table) = table else { return };
        for (name, found) in names_of(&table) {
            self.names.insert(name, found);
        }
        for (index, of) in indexes_of(&table) {
            self.indexes.insert(index, of);
        }
        for pair in references_of(&table) {
            self.referrers.insert(pair, ());
        }
        self.own.insert(oid, table);
    }

    /// All of them: the built-in ones first, then the others by oid.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            built_in: system::tables().iter(),
            own: self.own.iter(),
        }
    }

    /// The relation at a place.
    pub fn get(&self, place: usize) -> Option<&Arc<Table>> {
        let oid = u32::try_from(place).ok()?;
        self.own.get(&oid).or_else(|| {
            let place = built_in().by_oid.get(&oid)?;
            system::tables().get(*place)
        })
    }

    /// What a name in a schema means.
    pub fn named(&self, schema: u32, name: &str) -> Option<RelationRef> {
        let order = |known: &(u32, Arc<str>)| match known.0.cmp(&schema) {
            Ordering::Equal => (*known.1).cmp(name),
            unequal => unequal,
        };
        if let Some((_, found)) = self.names.find(order) {
            return Some(*found);
        }
        if ![PG_CATALOG, INFORMATION_SCHEMA, QUORATE].contains(&schema) {
            return None;
        }
        built_in().by_name.get(&(schema, name.into())).copied()
    }

    /// The index of that oid, with its table.
    pub fn index(&self, oid: u32) -> Option<(&Arc<Table>, &Index)> {
        let of = self
            .indexes
            .get(&oid)
            .or_else(|| built_in().indexes.get(&oid));
        let table = self.get(*of? as usize)?;
        let index = table.indexes.iter().find(|index| index.oid == oid)?;
        Some((table, index))
    }

    /// The foreign keys that refer to a table, each with the table that it belongs to.
    pub fn referrers(&self, oid: u32) -> impl Iterator<Item = (&Arc<Table>, &ForeignKey)> {
        let pairs = self.referrers.range((oid, 0)..=(oid, u32::MAX));
        let tables = pairs.filter_map(|((_, from), ())| self.own.get(from));
        tables.flat_map(move |table| {
            let keys = table
                .foreign_keys
                .iter()
                .filter(move |key| key.table == oid);
            keys.map(move |key| (table, key))
        })
    }
}

fn names_of(table: &Table) -> impl Iterator<Item = ((u32, Arc<str>), RelationRef)> + '_ {
    let place = table.oid as usize;
    let own = (
        (table.schema, table.name[..].into()),
        RelationRef::Table(place),
    );
    let indexes = table.indexes.iter().enumerate().map(move |(at, index)| {
        let name = (table.schema, index.name[..].into());
        (name, RelationRef::Index(place, at))
    });
    std::iter::once(own).chain(indexes)
}

fn indexes_of(table: &Table) -> impl Iterator<Item = (u32, u32)> + '_ {
    table.indexes.iter().map(|index| (index.oid, table.oid))
}

fn references_of(table: &Table) -> impl Iterator<Item = (u32, u32)> + '_ {
    table.foreign_keys.iter().map(|key| (key.table, table.oid))
}

impl std::ops::Index<usize> for Tables {
    type Output = Arc<Table>;

    /// # Panics
    /// If nothing is there, as with a place that another version has given.
    fn index(&self, place: usize) -> &Arc<Table> {
        match self.get(place) {
            Some(table) => table,
            None => panic!("no relation has the oid {place} in this version of the catalog"),
        }
    }
}

impl<'t> IntoIterator for &'t Tables {
    type Item = &'t Arc<Table>;
    type IntoIter = Iter<'t>;

    fn into_iter(self) -> Iter<'t> {
        self.iter()
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables")
            .field("own", &self.own)
            .field("names", &self.names)
            .field("indexes", &self.indexes)
            .field("referrers", &self.referrers)
            .finish()
    }
}

/// Relations of a catalog.
pub struct Iter<'t> {
    built_in: std::slice::Iter<'static, Arc<Table>>,
    own: super::persistent::Entries<'t, u32, Arc<Table>>,
}

impl<'t> Iterator for Iter<'t> {
    type Item = &'t Arc<Table>;

    fn next(&mut self) -> Option<&'t Arc<Table>> {
        let own = || self.own.next().map(|(_, table)| table);
        self.built_in.next().or_else(own)
    }
}
