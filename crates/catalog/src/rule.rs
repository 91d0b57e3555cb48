//! Rules: what else, or what instead, is done where a relation is written (PostgreSQL 15 manual,
//! chapter 41).
//!
//! ```text
//! create rule r as on update to accounts where (new.sum < 0) do instead insert into refused values (old.id, new.sum)
//! kept:   UPDATE, instead, condition "SELECT new.sum < 0",
//!         action "INSERT INTO "#"."16390" VALUES (old.id, new.sum)"
//! ```
//! They stand in the descriptor of their relation. Condition and actions are kept as statements of a body
//! in standard SQL are ([`super::sql_body`]); what the columns of the relation were called when the rule
//! was made is among what that knows, so that `old` and `new` go on meaning the same.
//!
//! # Invariants
//! - No two rules of a relation have the same name; they stand in the order of their names, in which
//!   they are applied.
//! - The query of a view is none of them.
//!
//! # What it leaves out
//! Rules ON SELECT.

use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::row::put_optional;
use base::{Error, Result};

use super::sql_body::{self, SqlBody};
use super::trigger::{read_optional, Enabled, Events};
use super::view::{put_uses, read_uses};
use super::{Catalog, Table, Uses};

/// The name of the rule that a view is.
pub const RETURN: &str = "_RETURN";

/// What is added to the oid of a view for that of the rule which it is.
const QUERY_RULES: u32 = 3 << 30;

/// The oid of the rule that a view is, which has none of its own.
pub const fn query_rule_oid(view: u32) -> u32 {
    QUERY_RULES | view
}

/// A rule of a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its oid.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// To what it is applied: [`Events::INSERT`], [`Events::UPDATE`] or [`Events::DELETE`].
    pub event: Events,
    /// Whether its actions are done instead of that.
    pub instead: bool,
    /// Whether it is applied at all.
    pub enabled: Enabled,
    /// Its WHERE, as a stored query of one value.
    pub condition: Option<String>,
    /// Its actions, and how they name what they write to; none for NOTHING.
    pub body: SqlBody,
    /// What condition and actions name, columns of `old` and `new` included.
    pub uses: Vec<Uses>,
}

impl Rule {
    /// `pg_rewrite.ev_type`.
    pub const fn event_code(&self) -> u8 {
        match self.event {
            Events::UPDATE => b'2',
            Events::INSERT => b'3',
            _ => b'4',
        }
    }

    /// Whether it is applied with that `session_replication_role`, be it `replica` or not.
    pub fn applies(&self, replica: bool) -> bool {
        self.enabled.fires(replica)
    }

    /// Whether it stands wholly in the place of that.
    fn is_whole(&self, event: Events) -> bool {
        self.event == event && self.instead && self.condition.is_none()
    }

    /// What the columns of its relation were called when it was made, by place; those of later ones are
    /// missing.
    pub fn column_names(&self, relation: u32) -> &[String] {
        let known = self.body.named(relation);
        known.map_or(&[], |known| &known.columns)
    }
}

impl Table {
    /// The rule of that name.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// Adds a rule, in the place of one of its name.
    pub fn put_rule(&mut self, rule: Rule) {
        self.rules.retain(|known| known.name != rule.name);
        let place = self.rules.partition_point(|known| known.name < rule.name);
        self.rules.insert(place, rule);
    }

    /// Whether a rule that is applied stands wholly in the place of what is done to it.
    pub fn has_instead(&self, event: Events, replica: bool) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.is_whole(event) && rule.applies(replica))
    }

    /// The same, be that rule applied or not.
    pub fn has_instead_rule(&self, event: Events) -> bool {
        self.rules.iter().any(|rule| rule.is_whole(event))
    }
}

impl Catalog {
    /// The view that is the rule of that oid.
    pub fn view_of_rule(&self, oid: u32) -> Option<&Arc<Table>> {
        let view = self.table_by_oid(oid.checked_sub(QUERY_RULES)?)?;
        view.view.is_some().then_some(view)
    }

    /// The rule of that oid, with its relation.
    pub fn rule(&self, oid: u32) -> Option<(&Arc<Table>, &Rule)> {
        self.tables.iter().find_map(|table| {
            let mut rules = table.rules.iter();
            Some((table, rules.find(|rule| rule.oid == oid)?))
        })
    }
}

pub(super) fn put(out: &mut Vec<u8>, rule: &Rule) {
    put_varint(out, u64::from(rule.oid));
    put_bytes(out, rule.name.as_bytes());
    out.push(rule.event.0);
    out.push(u8::from(rule.instead));
    out.push(rule.enabled.letter());
    put_optional(out, rule.condition.as_ref().map(|text| text.as_bytes()));
    sql_body::encode(&rule.body, out);
    put_uses(out, &rule.uses);
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Rule> {
    Ok(Rule {
        oid: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        event: match Events(reader.u8()?) {
            event @ (Events::INSERT | Events::UPDATE | Events::DELETE) => event,
            other => return Err(Error::corrupted(format!("a rule on event {}", other.0))),
        },
        instead: reader.u8()? != 0,
        enabled: Enabled::of_letter(reader.u8()?)?,
        condition: read_optional(reader)?,
        body: sql_body::decode(reader)?,
        uses: read_uses(reader)?,
    })
}
