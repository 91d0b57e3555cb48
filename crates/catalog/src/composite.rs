//! Types of rows: those that CREATE TYPE … AS makes, and those of tables' rows.
//!
//! ```text
//! create type pair as (a int, b text)      a row of USER_TYPES, with two attributes
//! create table t (a int, b text)           the type of its rows follows from the table's oid
//! ```
//! A value has one field for each column that is there, in their order. Of a type that a stored column
//! has no attribute is added, dropped or changed: what is stored says nothing of attributes that are
//! gone.

use std::sync::Arc;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::{Error, Result};

use super::lists::read_list;
use super::{Catalog, RelationKind, RelationRef, Table, TypeBody, UserType};
use types::{OwnKind, TypeId};

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type; of a domain the base type.
    pub ty: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// The domain, or the array over one, that it is of; none if 0.
    pub domain: TypeId,
    /// The oid of its collation, or 0 for that of its type.
    pub collation: u32,
}

/// An attribute of a type of one's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribute {
    /// Its name; empty if it was dropped.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// The oid of its collation, or 0 for that of its type.
    pub collation: u32,
}

/// What CREATE TYPE … AS made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composite {
    /// The oid of its row of `pg_class`.
    pub relation: u32,
    /// Its attributes, those that were dropped among them.
    pub attributes: Vec<Attribute>,
}

impl Composite {
    /// The attributes that are there, each with its number.
    pub fn live(&self) -> impl Iterator<Item = (i16, &Attribute)> {
        let numbered = (1i16..).zip(&self.attributes);
        numbered.filter(|(_, attribute)| !attribute.name.is_empty())
    }
}

pub(super) fn put(out: &mut Vec<u8>, composite: &Composite) {
    put_varint(out, u64::from(composite.relation));
    put_varint(out, composite.attributes.len() as u64);
    for attribute in &composite.attributes {
        put_bytes(out, attribute.name.as_bytes());
        put_varint(out, u64::from(attribute.ty.0));
        put_signed(out, i64::from(attribute.typmod));
        put_varint(out, u64::from(attribute.collation));
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Composite> {
    Ok(Composite {
        relation: reader.varint_as()?,
        attributes: read_list(reader, |reader| {
            Ok(Attribute {
                name: reader.str()?.to_owned(),
                ty: TypeId(reader.varint_as()?),
                typmod: i32::try_from(reader.signed()?)
                    .map_err(|_| Error::corrupted("a type modifier of more than 32 bits"))?,
                collation: reader.varint_as()?,
            })
        })?,
    })
}

impl Table {
    /// The type of its rows.
    pub fn row_type(&self) -> Option<TypeId> {
        TypeId::own(OwnKind::Row, self.oid)
    }

    /// Whether its rows have a type, as all but those of sequences do.
    pub fn has_row_type(&self) -> bool {
        self.kind != RelationKind::Sequence
    }

    /// The fields of its rows.
    pub fn fields(&self) -> Vec<Field> {
        let columns = self.columns.iter().filter(|column| !column.dropped);
        let field = columns.map(|column| Field {
            name: column.name.clone(),
            ty: column.type_id,
            typmod: column.typmod,
            domain: column.domain,
            collation: column.collation,
        });
        field.collect()
    }
}

impl Catalog {
    /// The composite type of that oid.
    pub fn composite(&self, id: TypeId) -> Option<&Composite> {
        match (id.own_kind(), self.user_type(id).map(|made| &made.body)) {
            (Some(OwnKind::Composite), Some(TypeBody::Composite(composite))) => Some(composite),
            _ => None,
        }
    }

    /// The table of whose rows a type is.
    pub fn table_of_rows(&self, id: TypeId) -> Option<&Arc<Table>> {
        match id.own_kind()? {
            OwnKind::Row => {
                let table = self.table_by_oid(id.own_number())?;
                table.has_row_type().then_some(table)
            }
            _ => None,
        }
    }

    /// The type of a relation's rows, or the array over it, of that name in a schema.
    pub(super) fn row_type_named(&self, schema: u32, name: &str) -> Option<TypeId> {
        let of = |name: &str| match self.relation(schema, name)? {
            RelationRef::Table(place) => {
                let table = &self.tables[place];
                table.row_type().filter(|_| table.has_row_type())
            }
            RelationRef::Index(..) => None,
        };
        of(name).or_else(|| of(name.strip_prefix('_')?)?.array_of())
    }

    /// Whether there is such a type, or such a type's array.
    pub fn has_own_type(&self, id: TypeId) -> bool {
        let id = id.array_element().unwrap_or(id);
        self.own_type_name(id).is_some()
    }

    /// Whether a relation, a composite type's among them, has that name in a schema.
    pub fn has_relation(&self, schema: u32, name: &str) -> bool {
        self.relation(schema, name).is_some() || self.composite_relation(schema, name).is_some()
    }

    /// The oid of the composite type's relation of that name in a schema.
    pub fn composite_relation(&self, schema: u32, name: &str) -> Option<u32> {
        let mut made = self.user_types.iter();
        let made = made.find(|made| made.schema == schema && made.name == name)?;
        Some(self.composite(made.id)?.relation)
    }

    /// The composite type whose relation has that oid.
    pub fn composite_of_relation(&self, oid: u32) -> Option<&UserType> {
        let mut made = self.user_types.iter();
        let found = made.find(|made| {
            let of = self.composite(made.id);
            of.is_some_and(|composite| composite.relation == oid)
        });
        found.map(|made| &**made)
    }

    /// The places of its fields among the columns of a table or the attributes of a type, of which some
    /// may have been dropped; none if it is no type of rows.
    pub fn field_numbers(&self, id: TypeId) -> Option<Vec<usize>> {
        match id.own_kind()? {
            OwnKind::Row => {
                let columns = self.table_of_rows(id)?.columns.iter().enumerate();
                let live = columns.filter(|(_, column)| !column.dropped);
                Some(live.map(|(place, _)| place).collect())
            }
            OwnKind::Composite => {
                let attributes = self.composite(id)?.attributes.iter().enumerate();
                let live = attributes.filter(|(_, attribute)| !attribute.name.is_empty());
                Some(live.map(|(place, _)| place).collect())
            }
            _ => None,
        }
    }

    /// The fields of values of a type; none if it is no type of rows.
    pub fn fields(&self, id: TypeId) -> Option<Vec<Field>> {
        match id.own_kind()? {
            OwnKind::Row => Some(self.table_of_rows(id)?.fields()),
            OwnKind::Composite => {
                let live = self.composite(id)?.live();
                let fields = live.map(|(_, attribute)| {
                    let (base, typmod) = self.base_type(attribute.ty);
                    let of_domain = attribute.ty.is_of_domain();
                    Field {
                        name: attribute.name.clone(),
                        ty: base,
                        typmod: if of_domain { typmod } else { attribute.typmod },
                        domain: if of_domain {
                            attribute.ty
                        } else {
                            TypeId::NONE
                        },
                        collation: match attribute.collation {
                            0 => self.domain_collation(attribute.ty),
                            given => given,
                        },
                    }
                });
                Some(fields.collect())
            }
            _ => None,
        }
    }
}
