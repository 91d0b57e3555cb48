//! Privileges, and `aclitem`: what one role was given by another.
//!
//! ```
//! use types::acl::{AclItem, Privileges};
//! let item = AclItem { grantee: 0, grantor: 10, privileges: Privileges::SELECT, options: Privileges::NONE };
//! let name = |oid: u32| if oid == 10 { "postgres".to_owned() } else { String::new() };
//! assert_eq!(item.print(&name), "=r/postgres");
//! ```
//!
//! # What it leaves out
//! A value of the type is kept as its text, with the roles' names: where a column of a table has
//! such values, and a role gets another name, they go on showing the old one. An item without a
//! grantor gets the first superuser, without a warning.
//!
//! Source: PostgreSQL 15 manual, section 5.7.

use base::{Error, Result, SqlState};

use super::{EvalContext, TypeId};

/// A set of privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Privileges(pub u32);

/// Who gives where nobody is named.
const FIRST_SUPERUSER: u32 = 10;

/// The letters of privileges in the order in which lists print them, with their bits and names.
const LETTERS: [(char, u32, &str); 14] = [
    ('a', 1 << 0, "INSERT"),
    ('r', 1 << 1, "SELECT"),
    ('w', 1 << 2, "UPDATE"),
    ('d', 1 << 3, "DELETE"),
    ('D', 1 << 4, "TRUNCATE"),
    ('x', 1 << 5, "REFERENCES"),
    ('t', 1 << 6, "TRIGGER"),
    ('X', 1 << 7, "EXECUTE"),
    ('U', 1 << 8, "USAGE"),
    ('C', 1 << 9, "CREATE"),
    ('T', 1 << 10, "TEMPORARY"),
    ('c', 1 << 11, "CONNECT"),
    ('s', 1 << 12, "SET"),
    ('A', 1 << 13, "ALTER SYSTEM"),
];

#[allow(missing_docs)]
impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const INSERT: Privileges = Privileges(1 << 0);
    pub const SELECT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    pub const REFERENCES: Privileges = Privileges(1 << 5);
    pub const TRIGGER: Privileges = Privileges(1 << 6);
    pub const EXECUTE: Privileges = Privileges(1 << 7);
    pub const USAGE: Privileges = Privileges(1 << 8);
    pub const CREATE: Privileges = Privileges(1 << 9);
    pub const TEMPORARY: Privileges = Privileges(1 << 10);
    pub const CONNECT: Privileges = Privileges(1 << 11);
    pub const SET: Privileges = Privileges(1 << 12);
    pub const ALTER_SYSTEM: Privileges = Privileges(1 << 13);
}

impl Privileges {
    /// Those in either.
    pub const fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Those not in the other.
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Those in both.
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// Whether there are none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all of the other are in it.
    pub const fn has(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }

    /// The privilege of that name, in any case.
    pub fn named(name: &str) -> Option<Privileges> {
        let name = match name.to_ascii_uppercase().as_str() {
            "TEMP" => "TEMPORARY".to_owned(),
            upper => upper.to_owned(),
        };
        let found = LETTERS.iter().find(|known| known.2 == name)?;
        Some(Privileges(found.1))
    }

    /// Those in it, one by one, with their names.
    pub fn each(self) -> impl Iterator<Item = (Privileges, &'static str)> {
        let known = LETTERS.iter().filter(move |known| self.0 & known.1 != 0);
        known.map(|known| (Privileges(known.1), known.2))
    }

    /// The names of those in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        LETTERS
            .iter()
            .filter(move |known| self.0 & known.1 != 0)
            .map(|known| known.2)
    }
}

/// What one role was given by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclItem {
    /// Who may; 0 is PUBLIC.
    pub grantee: u32,
    /// Who said so.
    pub grantor: u32,
    /// What.
    pub privileges: Privileges,
    /// Of those, what the grantee may give to others.
    pub options: Privileges,
}

impl AclItem {
    /// As PostgreSQL prints it: `grantee=rw*/grantor`.
    pub fn print(&self, name: &dyn Fn(u32) -> String) -> String {
        let quoted = |oid: u32| {
            let name = name(oid);
            let plain = name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
            match plain {
                true => name,
                false => format!("\"{}\"", name.replace('"', "\"\"")),
            }
        };
        let mut out = match self.grantee {
            0 => String::new(),
            grantee => quoted(grantee),
        };
        out.push('=');
        for (letter, bit, _) in LETTERS {
            if self.privileges.0 & bit != 0 {
                out.push(letter);
                if self.options.0 & bit != 0 {
                    out.push('*');
                }
            }
        }
        out.push('/');
        out.push_str(&quoted(self.grantor));
        out
    }
}

/// A name at the beginning of a text, quoted or not, and what follows it.
fn name(text: &str) -> Result<(String, &str)> {
    let text = text.trim_start();
    let mut found = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if quoted && chars.peek().is_some_and(|next| next.1 == '"') => {
                chars.next();
                found.push('"');
            }
            '"' => quoted = !quoted,
            c if quoted || c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() => found.push(c),
            _ => return Ok((found, &text[at..])),
        }
    }
    Ok((found, ""))
}

/// The oid of a role; 0 for no name.
fn role(context: &EvalContext, name: &str) -> Result<u32> {
    if name.is_empty() {
        return Ok(0);
    }
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    let found = match &context.names {
        Some(names) => names.oid_of(TypeId::REGROLE, &quoted)?,
        None => None,
    };
    found.ok_or_else(|| {
        let message = format!("role \"{name}\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

impl AclItem {
    /// Reads what [`AclItem::print`] makes, with `user` or `group` before it if need be.
    ///
    /// # Errors
    /// 22P02; 42704 for a role that is not there.
    pub fn parse(context: &EvalContext, text: &str) -> Result<AclItem> {
        let wrong = |message: String| Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
        let (mut grantee, mut rest) = name(text)?;
        if !rest.starts_with('=') {
            if !matches!(grantee.as_str(), "group" | "user") {
                return Err(wrong(format!("unrecognized key word: \"{grantee}\""))
                    .with_hint("ACL key word must be \"group\" or \"user\"."));
            }
            (grantee, rest) = name(rest)?;
            if grantee.is_empty() {
                let hint = "A name must follow the \"group\" or \"user\" key word.";
                return Err(wrong("missing name".to_owned()).with_hint(hint));
            }
        }
        let rest = rest.strip_prefix('=');
        let mut rest = rest.ok_or_else(|| wrong("missing \"=\" sign".to_owned()))?;
        let (mut privileges, mut options) = (Privileges::NONE, Privileges::NONE);
        let mut last = Privileges::NONE;
        while let Some(c) = rest.chars().next() {
            match c {
                '*' => options = options.with(last),
                c if c.is_ascii_alphabetic() => {
                    let known = LETTERS.iter().find(|known| known.0 == c);
                    let known = known.ok_or_else(|| {
                        let all: String = LETTERS.iter().map(|known| known.0).collect();
                        wrong(format!("invalid mode character: must be one of \"{all}\""))
                    })?;
                    last = Privileges(known.1);
                    privileges = privileges.with(last);
                }
                _ => break,
            }
            rest = &rest[c.len_utf8()..];
        }
        let grantor = match rest.strip_prefix('/') {
            None => FIRST_SUPERUSER,
            Some(after) => {
                let (grantor, after) = name(after)?;
                if grantor.is_empty() {
                    return Err(wrong("a name must follow the \"/\" sign".to_owned()));
                }
                rest = after;
                role(context, &grantor)?
            }
        };
        if !rest.trim().is_empty() {
            let message = "extra garbage at the end of the ACL specification";
            return Err(wrong(message.to_owned()));
        }
        Ok(AclItem {
            grantee: role(context, &grantee)?,
            grantor,
            privileges,
            options,
        })
    }

    /// As [`AclItem::print`], with the names that the session's catalog has.
    pub fn text(&self, context: &EvalContext) -> String {
        self.print(&|oid| {
            let quoted = context.name_of(TypeId::REGROLE, oid);
            match quoted.as_deref().map(|name| (name, name.strip_prefix('"'))) {
                Some((_, Some(inner))) => {
                    let inner = inner.strip_suffix('"').unwrap_or(inner);
                    inner.replace("\"\"", "\"")
                }
                Some((name, None)) => name.to_owned(),
                None => oid.to_string(),
            }
        })
    }
}
