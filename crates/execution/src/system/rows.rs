//! Rows of a system relation as they are made, column by column.
//!
//! ```text
//! rows.push([("oid", oid(16384)), ("relname", text("t"))])     the other columns: NULL, 0 or ''
//! ```

use std::sync::Arc;

use catalog::Table;
use planner::plan::Row;
use types::{Datum, TypeId};

/// Rows that are made for a relation. A column that is not given is NULL, or a zero of its type
/// where the relation says NOT NULL.
pub(super) struct Rows {
    table: Arc<Table>,
    blank: Row,
    pub(super) rows: Vec<Row>,
}

impl Rows {
    pub fn new(table: &Arc<Table>) -> Rows {
        let blank = table.columns.iter().map(|column| match column.not_null {
            true => zero(column.type_id),
            false => Datum::Null,
        });
        Rows {
            blank: blank.collect(),
            table: table.clone(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Columns are found fastest in the relation's own order.
    pub fn push<'n>(&mut self, values: impl IntoIterator<Item = (&'n str, Datum)>) {
        let mut row = self.blank.clone();
        let columns = &self.table.columns;
        let mut next = 0;
        for (name, value) in values {
            let ahead = columns[next..]
                .iter()
                .position(|column| column.name == name);
            let place = match ahead {
                Some(ahead) => next + ahead,
                None => self
                    .table
                    .column(name)
                    .unwrap_or_else(|| panic!("{} has no column {name}", self.table.name)),
            };
            next = place + 1;
            row[place] = value;
        }
        self.rows.push(row);
    }
}

fn zero(ty: TypeId) -> Datum {
    match ty {
        TypeId::BOOL => Datum::Bool(false),
        TypeId::INT2 => Datum::Int2(0),
        TypeId::INT4 => Datum::Int4(0),
        TypeId::INT8 => Datum::Int8(0),
        TypeId::FLOAT4 => Datum::Float4(0.0),
        TypeId::CHAR => Datum::Char(0),
        TypeId::INT2VECTOR => vector(TypeId::INT2, Vec::new()),
        TypeId::OIDVECTOR => vector(TypeId::OID, Vec::new()),
        ty if ty.is_oid_like() => Datum::Oid(0),
        ty if ty.is_text_like() => Datum::text(""),
        _ => Datum::Null,
    }
}

/// An `int2vector` or `oidvector`: an array that begins at 0.
pub(super) fn vector(element: TypeId, elements: Vec<Datum>) -> Datum {
    let len = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    Datum::Array(Arc::new(types::Array {
        element,
        dimensions: vec![types::Dimension { len, lower: 0 }],
        elements,
    }))
}

/// An array that begins at 1.
pub(super) fn array(element: TypeId, elements: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(types::Array::of(element, elements)))
}

pub(super) fn oid(oid: u32) -> Datum {
    Datum::Oid(oid)
}

pub(super) fn text(text: impl AsRef<str>) -> Datum {
    Datum::text(text)
}

pub(super) fn char(value: u8) -> Datum {
    Datum::Char(value)
}

pub(super) fn flag(value: bool) -> Datum {
    Datum::Bool(value)
}

pub(super) fn small(value: usize) -> Datum {
    Datum::Int2(i16::try_from(value).unwrap_or(i16::MAX))
}

pub(super) fn int(value: i32) -> Datum {
    Datum::Int4(value)
}
