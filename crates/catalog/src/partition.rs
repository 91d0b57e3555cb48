//! Partitioned tables: by what their rows are divided, and which of them each partition takes
//! (PostgreSQL 15 manual, section 5.11).
//!
//! ```text
//! create table m (k int, v text) partition by range (k)      m: a key, no rows of its own
//! create table m1 partition of m for values from (1) to (9)  m1: a table of rows, and its bound in m
//! insert into m values (3, 'x')                              3 lies in [1, 9), so the row is m1's
//! ```
//! A partitioned table is a descriptor with a [`PartitionKey`], which lists its partitions; its tree is
//! only locked. A partition is a table like any other, or a partitioned one again, that knows its parent
//! and its [`Bound`]. Its columns have the names and types of the parent's, perhaps at other places.
//!
//! # Invariants
//! - The bounds of a table's partitions do not overlap: a row belongs to one at most, and only what
//!   belongs to no other is the default partition's.
//! - A partition's descriptor names its parent, whose descriptor lists it: both rows change together.

use std::cmp::Ordering;

use base::codec::{put_bytes, put_varint, Reader};
use base::row::put_optional;
use base::{Error, Result};

use super::lists::read_list;
use super::{Catalog, ForeignKey, ForeignPart, KeySource, Table};
use types::{self, Datum, TypeId};

mod hash;

pub use hash::{has_hash, row_hash};

/// How rows are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By ranges of the key, the lower end included and the upper one not.
    #[default]
    Range,
    /// By lists of values of the key, which is one column or expression.
    List,
    /// By remainders of the key's hash.
    Hash,
}

impl Strategy {
    /// As `pg_partitioned_table.partstrat` has it.
    pub const fn letter(self) -> u8 {
        match self {
            Strategy::Range => b'r',
            Strategy::List => b'l',
            Strategy::Hash => b'h',
        }
    }

    /// What definitions call it.
    pub const fn word(self) -> &'static str {
        match self {
            Strategy::Range => "RANGE",
            Strategy::List => "LIST",
            Strategy::Hash => "HASH",
        }
    }
}

/// PARTITION BY.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionKey {
    /// How.
    pub strategy: Strategy,
    /// The columns and expressions of the key.
    pub parts: Vec<KeyPart>,
    /// The tables that are partitions, by oid, in the order in which they became so.
    pub partitions: Vec<u32>,
}

/// A column or an expression of a partition key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// Which.
    pub source: KeySource,
    /// The oid of its collation, or 0 for that of its type.
    pub collation: u32,
    /// The places of the columns that it names.
    pub uses: Vec<usize>,
}

impl KeyPart {
    /// The type of its values.
    pub fn type_id(&self, table: &Table) -> TypeId {
        match &self.source {
            KeySource::Column(place) => table.columns[*place].type_id,
            KeySource::Expression { type_id, .. } => *type_id,
        }
    }
}

impl PartitionKey {
    /// The types of its parts.
    pub fn types(&self, table: &Table) -> Vec<TypeId> {
        self.parts.iter().map(|part| part.type_id(table)).collect()
    }
}

/// Whose partition a table is.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionOf {
    /// The partitioned table, by oid.
    pub parent: u32,
    /// The types of its key.
    pub types: Vec<TypeId>,
    /// The rows that are the partition's.
    pub bound: Bound,
    /// Its indexes, foreign keys and triggers that are parts of the parent's, by oid, each with that one.
    pub parts: Vec<(u32, u32)>,
}

/// FOR VALUES.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// What is no other partition's.
    Default,
    /// Those with one of these values in the key, which may be NULL.
    List(Vec<Datum>),
    /// Those from the first on, up to the second, which is not included.
    Range(Vec<Edge>, Vec<Edge>),
    /// Those whose hash leaves that remainder.
    Hash {
        /// By what it is divided.
        modulus: u32,
        /// What is left.
        remainder: u32,
    },
}

/// One part of an end of a range.
#[derive(Clone, Debug, PartialEq)]
pub enum Edge {
    /// MINVALUE: below all values.
    Min,
    /// This value.
    Value(Datum),
    /// MAXVALUE: above all values.
    Max,
}

impl Edge {
    /// How it lies to a value.
    fn compare_value(&self, ty: TypeId, value: &Datum) -> Ordering {
        match self {
            Edge::Min => Ordering::Less,
            Edge::Value(own) => types::compare(ty, own, value),
            Edge::Max => Ordering::Greater,
        }
    }

    fn compare(&self, ty: TypeId, other: &Edge) -> Ordering {
        match (self, other) {
            (Edge::Min, Edge::Min) | (Edge::Max, Edge::Max) => Ordering::Equal,
            (_, Edge::Value(value)) => self.compare_value(ty, value),
            (_, Edge::Min) => Ordering::Greater,
            (_, Edge::Max) => Ordering::Less,
        }
    }
}

/// How the end of a range lies to values of the leading parts of the key.
pub fn compare_end(types: &[TypeId], end: &[Edge], values: &[Datum]) -> Ordering {
    let pairs = end.iter().zip(values).zip(types);
    let mut orders = pairs.map(|((edge, value), ty)| edge.compare_value(*ty, value));
    let unequal = orders.find(|order| *order != Ordering::Equal);
    unequal.unwrap_or(Ordering::Equal)
}

/// The first part in which the ends of two ranges differ.
pub fn differing_part(types: &[TypeId], a: &[Edge], b: &[Edge]) -> Option<usize> {
    let mut pairs = a.iter().zip(b).zip(types);
    pairs.position(|((a, b), ty)| a.compare(*ty, b) != Ordering::Equal)
}

/// How the ends of two ranges lie to each other. What follows MINVALUE or MAXVALUE says nothing.
pub fn compare_ends(types: &[TypeId], a: &[Edge], b: &[Edge]) -> Ordering {
    for ((a, b), ty) in a.iter().zip(b).zip(types) {
        match a.compare(*ty, b) {
            Ordering::Equal if !matches!(a, Edge::Value(_)) => return Ordering::Equal,
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    Ordering::Equal
}

impl Bound {
    /// Whether it names rows with this key; the default's are those that no other names.
    pub fn names(&self, types: &[TypeId], key: &[Datum]) -> bool {
        match self {
            Bound::Default => false,
            Bound::List(values) => {
                let (ty, value) = (types[0], &key[0]);
                let mut values = values.iter();
                values.any(|known| match (known.is_null(), value.is_null()) {
                    (false, false) => types::equal(ty, known, value),
                    (known, value) => known && value,
                })
            }
            Bound::Range(low, high) => {
                !key.iter().any(Datum::is_null)
                    && compare_end(types, low, key) != Ordering::Greater
                    && compare_end(types, high, key) == Ordering::Greater
            }
            Bound::Hash { modulus, remainder } => {
                row_hash(types, key) % u64::from(*modulus) == u64::from(*remainder)
            }
        }
    }

    /// In which order partitions with these bounds are read: by the least that they name, those of NULL
    /// after those of values, and the default last.
    pub fn order(&self, types: &[TypeId], other: &Bound) -> Ordering {
        let least = |values: &[Datum]| {
            let values = values.iter().filter(|value| !value.is_null());
            values
                .min_by(|a, b| types::compare(types[0], a, b))
                .cloned()
        };
        match (self, other) {
            (Bound::Default, Bound::Default) => Ordering::Equal,
            (Bound::Default, _) => Ordering::Greater,
            (_, Bound::Default) => Ordering::Less,
            (Bound::List(own), Bound::List(other)) => match (least(own), least(other)) {
                (Some(own), Some(other)) => types::compare(types[0], &own, &other),
                (own, other) => own.is_none().cmp(&other.is_none()),
            },
            (Bound::Range(own, _), Bound::Range(other, _)) => compare_ends(types, own, other),
            (
                Bound::Hash { modulus, remainder },
                Bound::Hash {
                    modulus: other_modulus,
                    remainder: other_remainder,
                },
            ) => (modulus, remainder).cmp(&(other_modulus, other_remainder)),
            _ => Ordering::Equal,
        }
    }

    /// Whether rows could belong to both.
    pub fn overlaps(&self, types: &[TypeId], other: &Bound) -> bool {
        match (self, other) {
            (Bound::Default, Bound::Default) => true,
            (Bound::List(own), other @ Bound::List(_)) => {
                let mut own = own.iter();
                own.any(|value| other.names(types, std::slice::from_ref(value)))
            }
            (Bound::Range(low, high), Bound::Range(other_low, other_high)) => {
                compare_ends(types, low, other_high) == Ordering::Less
                    && compare_ends(types, other_low, high) == Ordering::Less
            }
            (
                Bound::Hash { modulus, remainder },
                Bound::Hash {
                    modulus: other_modulus,
                    remainder: other_remainder,
                },
            ) => {
                let least = modulus.min(other_modulus);
                remainder % least == other_remainder % least
            }
            _ => false,
        }
    }
}

/// Which of some bounds a key belongs to, by its place.
pub fn place_of<'b>(
    types: &[TypeId],
    bounds: impl Iterator<Item = &'b Bound>,
    key: &[Datum],
) -> Option<usize> {
    let mut default = None;
    for (place, bound) in bounds.enumerate() {
        if bound.names(types, key) {
            return Some(place);
        }
        if *bound == Bound::Default {
            default = Some(place);
        }
    }
    default
}

/// A column, for each column of a parent, of a partition: none for those that are dropped.
pub type ColumnMap = Vec<Option<usize>>;

/// Where a partition has the columns of a table above it; none if all stand at the same places.
///
/// # Errors
/// XX000 if it lacks one.
pub fn column_map(parent: &Table, partition: &Table) -> Result<Option<ColumnMap>> {
    let mut map = Vec::with_capacity(parent.columns.len());
    for column in &parent.columns {
        map.push(match column.dropped {
            true => None,
            false => Some(partition.column(&column.name).ok_or_else(|| {
                Error::internal(format!("a partition without column {}", column.name))
            })?),
        });
    }
    let stays = |(place, at): (usize, &Option<usize>)| match at {
        Some(at) => *at == place,
        None => partition.columns[place].dropped,
    };
    let same = parent.columns.len() == partition.columns.len();
    Ok((!same || !map.iter().enumerate().all(stays)).then_some(map))
}

impl Table {
    /// The index, foreign key or trigger of the parent that one of a partition is a part of.
    pub fn part_above(&self, part: u32) -> Option<u32> {
        let mut known = self.partition_of.iter().flat_map(|of| &of.parts);
        known.find(|known| known.0 == part).map(|known| known.1)
    }

    /// What a partitioned table is divided by.
    pub fn partitioning(&self) -> Result<&PartitionKey> {
        let key = self.partition_key.as_deref();
        key.ok_or_else(|| Error::internal(format!("{} is not partitioned", self.name)))
    }
}

impl Catalog {
    /// The partitions of a table, in the order in which they became so.
    pub fn partitions(
        &self,
        table: &Table,
    ) -> impl Iterator<Item = (&std::sync::Arc<Table>, &PartitionOf)> {
        let oids = table.partition_key.iter().flat_map(|key| &key.partitions);
        let oids: Vec<u32> = oids.copied().collect();
        oids.into_iter().filter_map(|oid| {
            let table = self.table_by_oid(oid)?;
            Some((table, table.partition_of.as_deref()?))
        })
    }

    /// A partition, table or index, and all that it is a partition of, the nearest first; nothing for what
    /// takes no part in partitioning.
    pub fn partition_ancestors(&self, relation: u32) -> Vec<u32> {
        let mut all = Vec::new();
        let mut next = Some(relation);
        while let Some(oid) = next {
            all.push(oid);
            next = match (self.table_by_oid(oid), self.index_by_oid(oid)) {
                (Some(table), _) => table.partition_of.as_ref().map(|of| of.parent),
                (_, Some((table, _))) => table.part_above(oid),
                _ => None,
            };
        }
        match all.len() {
            1 if !self.is_partitioned(relation) => Vec::new(),
            _ => all,
        }
    }

    fn is_partitioned(&self, relation: u32) -> bool {
        let table = self.table_by_oid(relation);
        let table = table.or_else(|| self.index_by_oid(relation).map(|found| found.0));
        table.is_some_and(|table| table.partition_key.is_some())
    }

    /// A partitioned relation, or a partition, and all below it, level by level: the oid, and whether
    /// nothing can be below it.
    pub fn partition_tree(&self, relation: u32) -> Vec<(u32, bool)> {
        if self.partition_ancestors(relation).is_empty() {
            return Vec::new();
        }
        let mut all = vec![relation];
        let mut at = 0;
        while let Some(oid) = all.get(at).copied() {
            at += 1;
            let mut below: Vec<u32> = match (self.table_by_oid(oid), self.index_by_oid(oid)) {
                (Some(table), _) => self.partitions(table).map(|found| found.0.oid).collect(),
                (_, Some((table, _))) => {
                    let indexes = self.partitions(table).flat_map(|(_, of)| &of.parts);
                    let own = indexes.filter(|index| index.1 == oid);
                    own.map(|index| index.0).collect()
                }
                _ => Vec::new(),
            };
            below.sort_unstable();
            all.extend(below);
        }
        let shown = all.into_iter().map(|oid| (oid, !self.is_partitioned(oid)));
        shown.collect()
    }

    /// A table, and all that it is a partition of, the nearest first.
    pub fn with_ancestors<'c>(
        &'c self,
        table: &'c std::sync::Arc<Table>,
    ) -> Vec<&'c std::sync::Arc<Table>> {
        let mut all = vec![table];
        let mut next = table.partition_of.as_ref();
        while let Some(above) = next.and_then(|of| self.table_by_oid(of.parent)) {
            all.push(above);
            next = above.partition_of.as_ref();
        }
        all
    }

    /// The partition, or the table above it, that has the whole of what a foreign key or a trigger of the
    /// partition may be a part of, and that by its oid.
    pub fn whole_of<'c>(
        &'c self,
        table: &'c std::sync::Arc<Table>,
        part: u32,
    ) -> (&'c std::sync::Arc<Table>, u32) {
        let mut whole = (table, part);
        while let Some(above) = whole.0.part_above(whole.1) {
            let parent = whole.0.partition_of.as_ref();
            let Some(parent) = parent.and_then(|of| self.table_by_oid(of.parent)) else {
                break;
            };
            whole = (parent, above);
        }
        whole
    }

    /// A foreign key to a partitioned table as it is for one partition of that.
    pub fn foreign_part(&self, table: &Table, part: &ForeignPart) -> Option<ForeignKey> {
        let key = table.foreign_keys.iter().find(|key| key.oid == part.key)?;
        let (parent, to) = (
            self.table_by_oid(key.table)?,
            self.table_by_oid(part.partition)?,
        );
        let mut indexes = to.indexes.iter();
        let index = indexes.find(|index| self.whole_of(to, index.oid).1 == key.index);
        let names = key.referenced.iter();
        let names = names.map(|place| &parent.columns[*place].name);
        Some(ForeignKey {
            oid: part.oid,
            name: part.name.clone(),
            table: to.oid,
            index: index.map_or(0, |index| index.oid),
            referenced: names.filter_map(|name| to.column(name)).collect(),
            ..key.clone()
        })
    }

    /// Whether an index is on all partitions there are: one that was made ON ONLY may not be.
    pub fn is_whole(&self, table: &Table, index: u32) -> bool {
        self.partitions(table).all(|(partition, of)| {
            let mut parts = of.parts.iter();
            parts.any(|(own, above)| *above == index && self.is_whole(partition, *own))
        })
    }

    /// All tables below a partitioned one, each before what is below it, in the order of their bounds.
    pub fn below_by_bounds(&self, table: &Table) -> Vec<std::sync::Arc<Table>> {
        let mut partitions: Vec<_> = self.partitions(table).collect();
        partitions.sort_by(|(_, a), (_, b)| a.bound.order(&a.types, &b.bound));
        let mut all = Vec::new();
        for (partition, _) in partitions {
            all.push(partition.clone());
            all.extend(self.below_by_bounds(partition));
        }
        all
    }

    /// All tables below a partitioned one, each before what is below it.
    pub fn below(&self, table: &Table) -> Vec<std::sync::Arc<Table>> {
        let mut all = Vec::new();
        for (partition, _) in self.partitions(table) {
            all.push(partition.clone());
            all.extend(self.below(partition));
        }
        all
    }
}

pub(super) fn put_key(key: &PartitionKey, out: &mut Vec<u8>) {
    out.push(key.strategy.letter());
    put_varint(out, key.parts.len() as u64);
    for part in &key.parts {
        match &part.source {
            KeySource::Column(place) => {
                out.push(0);
                put_varint(out, *place as u64);
            }
            KeySource::Expression {
                name,
                text,
                type_id,
                typmod,
            } => {
                out.push(1);
                put_bytes(out, name.as_bytes());
                put_bytes(out, text.as_bytes());
                put_varint(out, u64::from(type_id.0));
                base::codec::put_signed(out, i64::from(*typmod));
            }
        }
        put_varint(out, u64::from(part.collation));
        put_varint(out, part.uses.len() as u64);
        for place in &part.uses {
            put_varint(out, *place as u64);
        }
    }
    put_varint(out, key.partitions.len() as u64);
    for oid in &key.partitions {
        put_varint(out, u64::from(*oid));
    }
}

pub(super) fn read_key(reader: &mut Reader<'_>) -> Result<PartitionKey> {
    Ok(PartitionKey {
        strategy: match reader.u8()? {
            b'r' => Strategy::Range,
            b'l' => Strategy::List,
            b'h' => Strategy::Hash,
            other => return Err(Error::corrupted(format!("partitions by {other}"))),
        },
        parts: read_list(reader, |reader| {
            let source = match reader.u8()? {
                0 => KeySource::Column(reader.varint_as()?),
                _ => KeySource::Expression {
                    name: reader.str()?.to_owned(),
                    text: reader.str()?.to_owned(),
                    type_id: TypeId(reader.varint_as()?),
                    typmod: i32::try_from(reader.signed()?)
                        .map_err(|_| Error::corrupted("a type modifier of more than 32 bits"))?,
                },
            };
            Ok(KeyPart {
                source,
                collation: reader.varint_as()?,
                uses: read_list(reader, |reader| reader.varint_as())?,
            })
        })?,
        partitions: read_list(reader, |reader| reader.varint_as())?,
    })
}

fn put_value(ty: TypeId, value: &Datum, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    // What cannot be stored is refused before it becomes a bound.
    let is_stored =
        !value.is_null() && types::encode_column(ty, types::NO_TYPMOD, value, &mut bytes).is_ok();
    put_optional(out, is_stored.then_some(&bytes[..]));
}

fn read_value(ty: TypeId, reader: &mut Reader<'_>) -> Result<Datum> {
    match reader.varint()? {
        0 => Ok(Datum::Null),
        _ => types::decode_column(ty, types::NO_TYPMOD, reader.bytes()?),
    }
}

fn put_end(types: &[TypeId], end: &[Edge], out: &mut Vec<u8>) {
    for (edge, ty) in end.iter().zip(types) {
        match edge {
            Edge::Min => out.push(0),
            Edge::Value(value) => {
                out.push(1);
                put_value(*ty, value, out);
            }
            Edge::Max => out.push(2),
        }
    }
}

fn read_end(types: &[TypeId], reader: &mut Reader<'_>) -> Result<Vec<Edge>> {
    let edge = |ty: &TypeId| {
        Ok(match reader.u8()? {
            0 => Edge::Min,
            1 => Edge::Value(read_value(*ty, reader)?),
            2 => Edge::Max,
            other => return Err(Error::corrupted(format!("an end of a range: {other}"))),
        })
    };
    types.iter().map(edge).collect()
}

pub(super) fn put_of(of: &PartitionOf, out: &mut Vec<u8>) {
    put_varint(out, u64::from(of.parent));
    put_varint(out, of.types.len() as u64);
    for ty in &of.types {
        put_varint(out, u64::from(ty.0));
    }
    match &of.bound {
        Bound::Default => out.push(b'd'),
        Bound::List(values) => {
            out.push(b'l');
            put_varint(out, values.len() as u64);
            for value in values {
                put_value(of.types[0], value, out);
            }
        }
        Bound::Range(low, high) => {
            out.push(b'r');
            put_end(&of.types, low, out);
            put_end(&of.types, high, out);
        }
        Bound::Hash { modulus, remainder } => {
            out.push(b'h');
            put_varint(out, u64::from(*modulus));
            put_varint(out, u64::from(*remainder));
        }
    }
    put_varint(out, of.parts.len() as u64);
    for (own, above) in &of.parts {
        put_varint(out, u64::from(*own));
        put_varint(out, u64::from(*above));
    }
}

pub(super) fn read_of(reader: &mut Reader<'_>) -> Result<PartitionOf> {
    let parent = reader.varint_as()?;
    let types = read_list(reader, |reader| Ok(TypeId(reader.varint_as()?)))?;
    let first = types.first().copied();
    let bound = match (reader.u8()?, first) {
        (b'd', _) => Bound::Default,
        (b'l', Some(ty)) => Bound::List(read_list(reader, |reader| read_value(ty, reader))?),
        (b'r', _) => {
            let low = read_end(&types, reader)?;
            Bound::Range(low, read_end(&types, reader)?)
        }
        (b'h', _) => {
            let (modulus, remainder) = (reader.varint_as()?, reader.varint_as()?);
            if modulus == 0 {
                return Err(Error::corrupted("a partition of modulus 0"));
            }
            Bound::Hash { modulus, remainder }
        }
        (other, _) => return Err(Error::corrupted(format!("a bound of kind {other}"))),
    };
    Ok(PartitionOf {
        parent,
        types,
        bound,
        parts: read_list(reader, |reader| {
            Ok((reader.varint_as()?, reader.varint_as()?))
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i32) -> Edge {
        Edge::Value(Datum::Int4(value))
    }

    #[test]
    fn ranges_hold_their_lower_end_only() {
        let types = [TypeId::INT4];
        let range = Bound::Range(vec![int(1)], vec![int(9)]);
        for (value, held) in [(0, false), (1, true), (8, true), (9, false)] {
            assert_eq!(range.names(&types, &[Datum::Int4(value)]), held);
        }
        assert!(!range.names(&types, &[Datum::Null]));
        let next = Bound::Range(vec![int(9)], vec![Edge::Max]);
        assert!(!range.overlaps(&types, &next));
        assert!(next.overlaps(&types, &Bound::Range(vec![Edge::Min], vec![int(10)])));
    }

    #[test]
    fn remainders_overlap_where_one_modulus_divides_the_other() {
        let of = |modulus, remainder| Bound::Hash { modulus, remainder };
        assert!(of(2, 1).overlaps(&[], &of(4, 3)));
        assert!(!of(2, 0).overlaps(&[], &of(4, 3)));
    }

    #[test]
    fn bounds_come_back() {
        let types = vec![TypeId::INT4, TypeId::TEXT];
        let bounds = [
            Bound::Default,
            Bound::Range(
                vec![int(-1), Edge::Min],
                vec![int(7), Edge::Value(Datum::text("x"))],
            ),
            Bound::List(vec![Datum::Int4(3), Datum::Null]),
            Bound::Hash {
                modulus: 4,
                remainder: 1,
            },
        ];
        for bound in bounds {
            let of = PartitionOf {
                parent: 16_384,
                types: types.clone(),
                bound,
                parts: vec![(16_385, 16_386)],
            };
            let mut bytes = Vec::new();
            put_of(&of, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(read_of(&mut reader).unwrap(), of);
            reader.finish().unwrap();
        }
    }
}
