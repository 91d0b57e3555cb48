//! Bodies of routines in standard SQL, as the catalog keeps them.
//!
//! ```text
//! create function f(x int) returns int return x + g(1)
//!   one statement, a RETURN:    SELECT $1 + "#"."16390"(1)
//! create procedure p(x int) begin atomic insert into t values (x); delete from u; end
//!   a block of two:             INSERT INTO "#"."16384" AS t VALUES ($1)
//!                               DELETE FROM "#"."16387" AS u
//! ```
//! Names are fixed as in the query of a view ([`super::view`]), and arguments stand by their numbers.
//! What a statement writes to cannot have names for its columns there, nor has a row for its fields;
//! those that they had when the body was made are kept beside the statements ([`Known`]).
//!
//! # Invariants
//! - A routine that has such a body has no text ([`super::Routine::body`]), and is in SQL.
//!
//! # What it leaves out
//! Whatever [`super::view`] leaves out.

use base::codec::{put_bytes, put_varint, Reader};
use base::Result;

use super::lists::read_list;
use super::{Catalog, Table};
use types::TypeId;

/// A body in standard SQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlBody {
    /// Whether it is a block (`BEGIN ATOMIC`), rather than RETURN alone.
    pub is_block: bool,
    /// Its statements.
    pub statements: Vec<SqlStatement>,
    /// What they write to, and the types of rows whose fields they name.
    pub known: Vec<Known>,
}

/// A statement of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlStatement {
    /// Whether it is RETURN, whose expression is kept as a query.
    pub is_return: bool,
    /// Its text, whose names are fixed.
    pub text: String,
}

/// The names that statements of a body have for a relation which they write to, or for the fields of a
/// type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The relation, or the type.
    pub oid: u32,
    /// What the relation was called when the body was made, where it has no alias.
    pub name: String,
    /// What its columns were called when the body was made, by place; nothing for one that was dropped.
    /// Columns that came later are behind the last.
    pub columns: Vec<String>,
}

impl Known {
    /// A relation as it is now.
    pub fn relation(table: &Table) -> Known {
        let name = |column: &super::Column| match column.dropped {
            true => String::new(),
            false => column.name.clone(),
        };
        Known {
            oid: table.oid,
            name: table.name.clone(),
            columns: table.columns.iter().map(name).collect(),
        }
    }

    /// A type of rows as it is now.
    pub fn row_type(catalog: &Catalog, ty: TypeId) -> Known {
        let numbers = catalog.field_numbers(ty).unwrap_or_default();
        let fields = catalog.fields(ty).unwrap_or_default();
        let mut columns = vec![String::new(); numbers.last().map_or(0, |last| last + 1)];
        for (number, field) in numbers.into_iter().zip(fields) {
            columns[number] = field.name;
        }
        Known {
            oid: ty.0,
            name: String::new(),
            columns,
        }
    }
}

impl SqlBody {
    /// The names that its statements have for a relation that they write to, or for the fields of a type.
    pub fn named(&self, oid: u32) -> Option<&Known> {
        self.known.iter().find(|known| known.oid == oid)
    }
}

pub(super) fn encode(body: &SqlBody, out: &mut Vec<u8>) {
    out.push(u8::from(body.is_block));
    put_varint(out, body.statements.len() as u64);
    for statement in &body.statements {
        out.push(u8::from(statement.is_return));
        put_bytes(out, statement.text.as_bytes());
    }
    put_varint(out, body.known.len() as u64);
    for known in &body.known {
        put_varint(out, u64::from(known.oid));
        put_bytes(out, known.name.as_bytes());
        put_varint(out, known.columns.len() as u64);
        for column in &known.columns {
            put_bytes(out, column.as_bytes());
        }
    }
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<SqlBody> {
    Ok(SqlBody {
        is_block: reader.u8()? != 0,
        statements: read_list(reader, |reader| {
            Ok(SqlStatement {
                is_return: reader.u8()? != 0,
                text: reader.str()?.to_owned(),
            })
        })?,
        known: read_list(reader, |reader| {
            Ok(Known {
                oid: reader.varint_as()?,
                name: reader.str()?.to_owned(),
                columns: read_list(reader, |reader| Ok(reader.str()?.to_owned()))?,
            })
        })?,
    })
}
