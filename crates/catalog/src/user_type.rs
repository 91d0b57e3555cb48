//! Types of one's own: what users have said of them. What they are follows from their OIDs
//! ([`types::own`]).
//!
//! ```text
//! create type mood as enum ('sad', 'happy');      row of USER_TYPES: mood, its owner, its labels
//! alter type mood add value 'ok' before 'happy';  the same row, with a label between two others
//! ```
//! An enum's label has two numbers. Its *place* is what rows have; it never changes. Its *order* is
//! `enumsortorder`, which PostgreSQL counts anew when no number fits between two others; nothing
//! here but `pg_enum` looks at it.
//!
//! # Invariants
//! - Labels stand in the order of their places, and so of their orders.
//! - Whoever uses a type for something that lasts holds its row ([`super::type_store`]), and whoever drops it locks
//!   that row first and looks once more at what needs it.
//!
//! # What it leaves out
//! A type and a table that are made under one name at the same time are not told apart.

use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, Result, SqlState};

use super::composite::{self, Composite};
use super::domain::{self, Domain};
use super::lists::read_list;
use super::routine::{Language, Routine};
use super::{Catalog, PG_CATALOG};
use functions::strings::quote_identifier;
use types::{own, TypeId};

/// The format of a row.
const FORMAT: u8 = 5;
/// The oldest that is read as well: it knows no domains. Before 3 there were no composite types,
/// before 4 none of extensions, before 5 no ranges.
const FORMAT_OLDEST: u8 = 1;

/// A type that a user has made.
#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    /// Its oid.
    pub id: TypeId,
    /// The schema's oid.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// What it consists of.
    pub body: TypeBody,
}

/// What a type consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeBody {
    /// Labels, in their order.
    Enum(Vec<EnumLabel>),
    /// Another type, with constraints.
    Domain(Domain),
    /// Several attributes.
    Composite(Composite),
    /// What an extension brings, of which all else is built in ([`types::BASE_TYPES`]).
    Base,
    /// What lies between two values of another type.
    Range(RangeOf),
    /// The list of ranges that comes with a range; its OID says of which one.
    Multirange,
}

/// What the catalog knows of a range of one's own; what it is over, its OID says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeOf {
    /// When it was made, among other oids: its own says nothing of that. Its multirange has the
    /// number before it.
    pub number: u32,
    /// The operator class by which values are ordered.
    pub class: u32,
    /// Their collation, or 0.
    pub collation: u32,
    /// The oid of the function that says how far two values are apart, or 0.
    pub difference: u32,
    /// The oid of its cast to its multirange.
    pub cast: u32,
}

/// A label of an enum.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumLabel {
    /// Its oid, of its row of `pg_enum`.
    pub oid: u32,
    /// What rows have.
    pub place: u64,
    /// `enumsortorder`.
    pub order: f32,
    /// How it is called.
    pub name: String,
}

impl UserType {
    /// The labels, if it is an enum.
    pub fn labels(&self) -> &[EnumLabel] {
        match &self.body {
            TypeBody::Enum(labels) => labels,
            _ => &[],
        }
    }

    /// `typname` of the array over it.
    pub fn array_name(&self) -> String {
        array_name(&self.name)
    }

    /// What messages call its kind.
    pub fn noun(&self) -> &'static str {
        match self.body {
            TypeBody::Domain(_) => "domain",
            _ => "type",
        }
    }

    /// What is known of it, if it is a range.
    pub fn range(&self) -> Option<&RangeOf> {
        match &self.body {
            TypeBody::Range(of) => Some(of),
            _ => None,
        }
    }
}

/// The name of the array over a type.
pub fn array_name(name: &str) -> String {
    types::text::truncate_name(&format!("_{name}")).to_owned()
}

/// Adds a label to those of an enum, at that place among them.
///
/// # Errors
/// 54000 if there is no room for it.
pub fn add_label(labels: &mut Vec<EnumLabel>, at: usize, oid: u32, name: String) -> Result<()> {
    let before = at.checked_sub(1).and_then(|before| labels.get(before));
    let after = labels.get(at);
    let place = own::between(before.map(|b| b.place), after.map(|a| a.place));
    let place = place.ok_or_else(|| {
        Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "too many labels were added between two others",
        )
    })?;
    let order = match (before, after) {
        (None, None) => 1.0,
        (Some(before), None) => before.order + 1.0,
        (None, Some(after)) => after.order - 1.0,
        (Some(before), Some(after)) => (before.order + after.order) / 2.0,
    };
    let is_between = before.is_none_or(|before| before.order < order)
        && after.is_none_or(|after| order < after.order);
    let label = EnumLabel {
        oid,
        place,
        order,
        name,
    };
    labels.insert(at, label);
    if !is_between {
        for (label, number) in labels.iter_mut().zip(1u32..) {
            label.order = number as f32;
        }
    }
    Ok(())
}

// ---- Rows ----

pub(super) fn encode(made: &UserType) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_varint(&mut out, u64::from(made.id.0));
    put_varint(&mut out, u64::from(made.schema));
    put_bytes(&mut out, made.name.as_bytes());
    put_varint(&mut out, u64::from(made.owner));
    match &made.body {
        TypeBody::Enum(labels) => {
            out.push(0);
            put_varint(&mut out, labels.len() as u64);
            for label in labels {
                put_varint(&mut out, u64::from(label.oid));
                put_varint(&mut out, label.place);
                put_varint(&mut out, u64::from(label.order.to_bits()));
                put_bytes(&mut out, label.name.as_bytes());
            }
        }
        TypeBody::Domain(of) => {
            out.push(1);
            domain::put(&mut out, of);
        }
        TypeBody::Composite(of) => {
            out.push(2);
            composite::put(&mut out, of);
        }
        TypeBody::Base => out.push(3),
        TypeBody::Range(of) => {
            out.push(4);
            for number in [of.number, of.class, of.collation, of.difference, of.cast] {
                put_varint(&mut out, u64::from(number));
            }
        }
        TypeBody::Multirange => out.push(5),
    }
    RowBuilder::new(1).value(&out).finish()
}

pub(super) fn decode(row: &[u8]) -> Result<UserType> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let mut reader = Reader::new(bytes.ok_or_else(|| Error::corrupted("a type without a row"))?);
    let format = reader.u8()?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
        return Err(Error::corrupted(format!(
            "a type of format {format}, not {FORMAT}"
        )));
    }
    let made = UserType {
        id: TypeId(reader.varint_as()?),
        schema: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        owner: reader.varint_as()?,
        body: match reader.u8()? {
            0 => TypeBody::Enum(read_list(&mut reader, |reader| {
                Ok(EnumLabel {
                    oid: reader.varint_as()?,
                    place: reader.varint()?,
                    order: f32::from_bits(reader.varint_as()?),
                    name: reader.str()?.to_owned(),
                })
            })?),
            1 => TypeBody::Domain(domain::read(&mut reader)?),
            2 => TypeBody::Composite(composite::read(&mut reader)?),
            3 => TypeBody::Base,
            4 => TypeBody::Range(RangeOf {
                number: reader.varint_as()?,
                class: reader.varint_as()?,
                collation: reader.varint_as()?,
                difference: reader.varint_as()?,
                cast: reader.varint_as()?,
            }),
            5 => TypeBody::Multirange,
            other => return Err(Error::corrupted(format!("a type of kind {other}"))),
        },
    };
    reader.finish()?;
    Ok(made)
}

/// 42710 for a name that another type or the rows of a table have.
pub fn exists(name: &str) -> Error {
    Error::new(
        SqlState::DUPLICATE_OBJECT,
        format!("type \"{name}\" already exists"),
    )
}

// ---- The catalog ----

/// The types of a database, by oid.
#[derive(Clone, Debug, Default)]
pub struct UserTypes(Vec<Arc<UserType>>);

impl UserTypes {
    pub(super) fn new(mut made: Vec<UserType>) -> UserTypes {
        made.sort_by_key(|made| made.id);
        UserTypes(made.into_iter().map(Arc::new).collect())
    }

    /// Whether these are the same, and nothing was changed in between.
    pub(super) fn is_shared_with(&self, other: &UserTypes) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// All of them, by oid.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<UserType>> {
        self.0.iter()
    }
}

impl Catalog {
    /// The type of that oid, if a user has made it.
    pub fn user_type(&self, id: TypeId) -> Option<&Arc<UserType>> {
        let types = &self.user_types.0;
        let place = types.binary_search_by_key(&id, |made| made.id).ok()?;
        Some(&types[place])
    }

    /// When a type of one's own was made, among other oids.
    pub fn made_when(&self, id: TypeId) -> u32 {
        let id = id.array_element().unwrap_or(id);
        let number = |range| Some(self.user_type(range)?.range()?.number);
        let of_range = number(id);
        let of_list = || Some(number(id.multirange_range()?)? - 1);
        of_range.or_else(of_list).unwrap_or(id.own_number())
    }

    /// The range of one's own, with its multirange, whose cast to that has that oid.
    pub fn range_of_cast(&self, cast: u32) -> Option<(TypeId, TypeId)> {
        let mut all = self.user_types.iter();
        let made = all.find(|made| made.range().is_some_and(|of| of.cast == cast))?;
        Some((made.id, made.id.range_multirange()?))
    }

    /// The routine by which a range of one's own is cast to that multirange.
    pub fn cast_to_multirange(&self, multirange: TypeId) -> Option<u32> {
        let is_it = |routine: &&Arc<Routine>| {
            routine.language == Language::Internal
                && routine.result == multirange
                && routine.body == "multirange_constructor1"
        };
        self.routines.iter().find(is_it).map(|routine| routine.oid)
    }

    /// The type, or the array over a type, of that name in a schema.
    pub fn type_named(&self, schema: u32, name: &str) -> Option<TypeId> {
        if schema == PG_CATALOG {
            return TypeId::by_name(name).or_else(|| self.row_type_named(schema, name));
        }
        let here = || self.user_types.iter().filter(|made| made.schema == schema);
        let own = here().find(|made| made.name == name);
        let own = own.map(|made| made.id).or_else(|| {
            name.strip_prefix('_')?;
            here().find(|made| made.array_name() == name)?.id.array_of()
        });
        own.or_else(|| self.row_type_named(schema, name))
    }

    /// The schema and the name of a type of one's own that is no array, a table's row type included.
    pub fn own_type_name(&self, id: TypeId) -> Option<(u32, &str)> {
        if let Some(made) = self.user_type(id) {
            return Some((made.schema, &made.name));
        }
        let table = self.table_of_rows(id)?;
        Some((table.schema, &table.name))
    }

    /// What an error, or `format_type`, calls a type of one's own: with its schema unless the search
    /// path finds it.
    pub fn shown_type(&self, search_path: &[u32], id: TypeId) -> Option<String> {
        if let Some(element) = id.array_element() {
            return Some(format!("{}[]", self.shown_type(search_path, element)?));
        }
        let (schema, name) = self.own_type_name(id)?;
        let quoted = quote_identifier(name);
        match (
            self.type_is_visible(search_path, id),
            self.schema_by_oid(schema),
        ) {
            (false, Some(schema)) => Some(format!("{}.{quoted}", quote_identifier(&schema.name))),
            _ => Some(quoted),
        }
    }

    /// Whether the search path finds a type of one's own by its name.
    pub fn type_is_visible(&self, search_path: &[u32], id: TypeId) -> bool {
        let Some((_, name)) = self.own_type_name(id.array_element().unwrap_or(id)) else {
            return false;
        };
        let name = match id.array_element() {
            Some(_) => array_name(name),
            None => name.to_owned(),
        };
        let path = std::iter::once(PG_CATALOG).chain(search_path.iter().copied());
        let found = path
            .into_iter()
            .find_map(|schema| self.type_named(schema, &name));
        found == Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mood(labels: Vec<EnumLabel>) -> UserType {
        UserType {
            id: TypeId::own(types::OwnKind::Enum, 20_000).unwrap(),
            schema: 2_200,
            name: "möod".to_owned(),
            owner: 10,
            body: TypeBody::Enum(labels),
        }
    }

    #[test]
    fn types_come_back() {
        let mut labels = Vec::new();
        for (at, name) in [(0, "b"), (1, "d"), (0, "a"), (2, "c")] {
            add_label(&mut labels, at, 7, name.to_owned()).unwrap();
        }
        let names: Vec<_> = labels.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let orders: Vec<_> = labels.iter().map(|label| label.order).collect();
        assert_eq!(orders, [0.0, 1.0, 1.5, 2.0]);
        let of_extension = UserType {
            id: TypeId::CITEXT,
            body: TypeBody::Base,
            ..mood(Vec::new())
        };
        let of = RangeOf {
            number: 20_001,
            class: 3_123,
            cast: 20_003,
            ..RangeOf::default()
        };
        let range = UserType {
            id: TypeId::own_range(TypeId::FLOAT8, 7).unwrap(),
            body: TypeBody::Range(of),
            ..mood(Vec::new())
        };
        let multirange = UserType {
            id: range.id.range_multirange().unwrap(),
            body: TypeBody::Multirange,
            ..mood(Vec::new())
        };
        let others = [mood(Vec::new()), of_extension, range, multirange];
        for made in others.into_iter().chain([mood(labels)]) {
            assert_eq!(decode(&encode(&made)).unwrap(), made);
        }
    }

    #[test]
    fn domains_come_back() {
        let check = domain::DomainCheck {
            oid: 9,
            name: "high".to_owned(),
            condition: "value > 0".to_owned(),
            validated: true,
        };
        let of = Domain {
            over: TypeId::INT4,
            typmod: -1,
            collation: 950,
            not_null: true,
            default: Some("1".to_owned()),
            default_shown: "1".to_owned(),
            default_uses: vec![8],
            checks: vec![check],
        };
        for body in [of, Domain::default()] {
            let made = UserType {
                id: TypeId::own(types::OwnKind::Domain, 20_000).unwrap(),
                body: TypeBody::Domain(body),
                ..mood(Vec::new())
            };
            assert_eq!(decode(&encode(&made)).unwrap(), made);
        }
    }

    #[test]
    fn orders_are_counted_anew_where_none_fits() {
        let mut labels = Vec::new();
        add_label(&mut labels, 0, 1, "low".to_owned()).unwrap();
        add_label(&mut labels, 1, 2, "high".to_owned()).unwrap();
        for number in 0..30 {
            add_label(&mut labels, 1, 3, number.to_string()).unwrap();
        }
        let is_ordered =
            |pair: &[EnumLabel]| pair[0].order < pair[1].order && pair[0].place < pair[1].place;
        assert!(labels.windows(2).all(is_ordered));
    }
}
