//! The query of a view, as the catalog keeps it.
//!
//! The text must go on meaning the same when what it names gets other names. Therefore every
//! relation in it stands as its oid in a schema that no user can make, and with the names that its
//! columns had when the view was made:
//!
//! ```text
//! create view v as select * from t join s.u using (id)
//! stored:          SELECT * FROM "#"."16384" AS t(id, a) JOIN "#"."16390" AS u(id, b) USING (id)
//! ```
//!
//! A column that came later is not in the list and is not seen; one that was dropped leaves its
//! place. Sequences in `nextval('s')` become `nextval('16400')`, which `regclass` reads as an oid;
//! so do those in the defaults of columns.
//!
//! # What it leaves out
//! Qualification by schema (`s.u.id`) in a view whose schema is renamed later.

use base::codec::{put_bytes, put_varint, Reader};
use base::{Error, Result};

use super::lists::read_list;
use super::Table;
use types::text::parse_bool;

/// The schema by which stored text names relations: their names there are oids.
pub const BY_OID: &str = "#";

/// What a stored text names by oid: relations, routines, types of one's own.
pub fn named_by_oid(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut after_mark = false;
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(at);
        let escapes = before.ends_with(['e', 'E']) && quoted.starts_with('\'');
        let (inside, behind) = unquoted(quoted, escapes);
        match inside.parse() {
            Ok(oid) if after_mark && before == "." => found.push(oid),
            _ => {}
        }
        after_mark = quoted.starts_with('"') && inside == BY_OID;
        rest = behind;
    }
    found
}

/// What stands in the quotes with which a text begins, and what follows them.
fn unquoted(text: &str, escapes: bool) -> (&str, &str) {
    let mut letters = text.char_indices();
    let quote = letters.next().map_or('"', |first| first.1);
    let mut is_escaped = false;
    for (at, letter) in letters {
        match is_escaped {
            true => is_escaped = false,
            // A doubled one ends a quoted part and begins another.
            false if letter == quote => return (&text[1..at], &text[at + 1..]),
            false => is_escaped = escapes && letter == '\\',
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

/// The stored default that takes values from a sequence.
pub fn next_value(sequence: u32) -> String {
    format!("nextval('{sequence}'::regclass)")
}

/// The query of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Its text, whose names are fixed.
    pub query: String,
    /// What it names.
    pub uses: Vec<Uses>,
    /// Whether rows written through it must be seen by it.
    pub check_option: CheckOption,
    /// Of a materialized view: whether it has been filled.
    pub populated: bool,
}

/// A relation that a query names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// The relation.
    pub relation: u32,
    /// The places of its columns that are looked at.
    pub columns: Vec<usize>,
}

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckOption {
    /// Anything may be written.
    #[default]
    None,
    /// The view's own condition is checked.
    Local,
    /// Those of the views below it too.
    Cascaded,
}

/// The option by which a view is no way around what it hides ([`Table::security_barrier`]).
pub const SECURITY_BARRIER: &str = "security_barrier";
/// The option by which a view is used as whoever runs the statement ([`Table::security_invoker`]).
pub const SECURITY_INVOKER: &str = "security_invoker";

impl Table {
    fn has_option(&self, name: &str) -> bool {
        let option = self.options.iter().find(|known| known.0 == name);
        option.is_some_and(|(_, value)| parse_bool(value) == Some(true))
    }

    /// Of a view: whether what it hides is hidden from functions in the statement around it, too.
    pub fn security_barrier(&self) -> bool {
        self.has_option(SECURITY_BARRIER)
    }

    /// Of a view: whether privileges and policies are those of whoever runs the statement, rather
    /// than of the view's owner.
    pub fn security_invoker(&self) -> bool {
        self.has_option(SECURITY_INVOKER)
    }
}

pub(super) fn put_uses(out: &mut Vec<u8>, all: &[Uses]) {
    put_varint(out, all.len() as u64);
    for uses in all {
        put_varint(out, u64::from(uses.relation));
        put_varint(out, uses.columns.len() as u64);
        for column in &uses.columns {
            put_varint(out, *column as u64);
        }
    }
}

pub(super) fn read_uses(reader: &mut Reader<'_>) -> Result<Vec<Uses>> {
    read_list(reader, |reader| {
        Ok(Uses {
            relation: reader.varint_as()?,
            columns: read_list(reader, |reader| reader.varint_as())?,
        })
    })
}

pub(super) fn encode(view: &View, out: &mut Vec<u8>) {
    put_bytes(out, view.query.as_bytes());
    put_uses(out, &view.uses);
    out.push(view.check_option as u8);
    out.push(u8::from(view.populated));
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<View> {
    Ok(View {
        query: reader.str()?.to_owned(),
        uses: read_uses(reader)?,
        check_option: match reader.u8()? {
            0 => CheckOption::None,
            1 => CheckOption::Local,
            2 => CheckOption::Cascaded,
            other => return Err(Error::corrupted(format!("a check option of kind {other}"))),
        },
        populated: reader.u8()? != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_named_by_oid() {
        let text = r##""#"."16385"(a, '"#"."1"', E'\'"#"."2"') > "#"."16386"."x""##;
        assert_eq!(named_by_oid(text), [16_385, 16_386]);
        assert_eq!(named_by_oid(r##"'it''s "#"."3"' || "#"."4"(b)"##), [4]);
        assert_eq!(named_by_oid("'"), []);
    }
}
