//! Operators that users have made, as the catalog keeps them.
//!
//! ```text
//! create operator <-> (function = distance, leftarg = spot, rightarg = spot, commutator = <->)
//! a row of OPERATORS under (database, its oid); its name with the types of its operands among NAMES
//! ```
//! An operator is another way to call the function behind it. A name may mean several of them, built in or not,
//! which the types of operands and the search path tell apart (`planner::bind::own_operator`).
//!
//! What is stored names the operators that it uses by their oids: where the schema is written, in its place
//! (`a OPERATOR("#"."16400".<->) b`), otherwise in the comment behind the text that names casts too
//! ([`super::cast::note`]), so that the text keeps its operators' precedence. Operators that it does not name were
//! made later, or elsewhere, and are not for it ([`Catalog::may_use_in_text`]).
//!
//! # Invariants
//! - Of one that is not a shell, the function's inputs are of the types of its operands.
//!
//! # What it leaves out
//! Operator classes: no index and no join is served by what HASHES, MERGES, RESTRICT and JOIN say, which is kept
//! and shown. Links of COMMUTATOR and NEGATOR to built-in operators are not given back by these.

use base::codec::{put_bytes, put_varint, Reader};
use base::hash::HashMap;
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use std::sync::Arc;

use super::routine::{Argument, Language};
use super::view::{named_by_oid, BY_OID};
use super::{Catalog, Routine, PG_CATALOG, SUPERUSER};
use functions::strings::quote_identifier;
use functions::{any_operator_by_oid, function_by_oid, operators_named, Function, Volatility};
use types::TypeId;

/// An operator that a user has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOperator {
    /// Its oid.
    pub oid: u32,
    /// The schema that it is in.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: u32,
    /// The type of its left operand; [`TypeId::NONE`] for a prefix operator.
    pub left: TypeId,
    /// The type of its right operand.
    pub right: TypeId,
    /// The type of its result; [`TypeId::NONE`] for a shell.
    pub result: TypeId,
    /// The function behind it, or 0 for a shell, which another operator has named before it was made.
    pub function: u32,
    /// Its commutator, or 0.
    pub commutator: u32,
    /// Its negator, or 0.
    pub negator: u32,
    /// What estimates how many rows it selects, or 0.
    pub restriction: u32,
    /// The same of joins.
    pub join: u32,
    /// HASHES.
    pub hashes: bool,
    /// MERGES.
    pub merges: bool,
}

impl OwnOperator {
    /// What tells it from others in its schema.
    pub(super) fn unique_name(&self) -> String {
        format!("{}({},{})", self.name, self.left.0, self.right.0)
    }

    /// Whether it was named before it was made.
    pub fn is_shell(&self) -> bool {
        self.function == 0
    }
}

/// The operators that users have made in a database.
#[derive(Clone, Debug, Default)]
pub struct Operators {
    /// By oid.
    all: Vec<Arc<OwnOperator>>,
    /// By name, their places.
    by_name: HashMap<String, Vec<usize>>,
}

impl Operators {
    pub(super) fn new(mut made: Vec<OwnOperator>) -> Operators {
        made.sort_by_key(|operator| operator.oid);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::default();
        for (place, operator) in made.iter().enumerate() {
            by_name
                .entry(operator.name.clone())
                .or_default()
                .push(place);
        }
        Operators {
            all: made.into_iter().map(Arc::new).collect(),
            by_name,
        }
    }

    /// All of them, by oid.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<OwnOperator>> {
        self.all.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of a name, by oid.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<OwnOperator>> {
        let places = self.by_name.get(name).into_iter().flatten();
        places.map(|place| &self.all[*place])
    }

    /// Whether any schema has one of that name.
    pub fn knows(&self, name: &str) -> bool {
        !self.all.is_empty() && self.by_name.contains_key(name)
    }
}

impl Catalog {
    /// The operator of that oid, if a user has made it.
    pub fn own_operator(&self, oid: u32) -> Option<&Arc<OwnOperator>> {
        let all = &self.operators.all;
        let place = all.binary_search_by_key(&oid, |known| known.oid);
        place.ok().map(|place| &all[place])
    }

    /// The operator of that name between these types, of those that users have made in a schema.
    pub fn own_operator_in(
        &self,
        schema: u32,
        name: &str,
        (left, right): (TypeId, TypeId),
    ) -> Option<&Arc<OwnOperator>> {
        let mut named = self.operators.named(name);
        named.find(|known| known.schema == schema && (known.left, known.right) == (left, right))
    }

    /// The oid of the operator that a name means between exactly these types: the first on the path, on which
    /// the system's schema comes first unless it stands there itself.
    pub fn visible_operator(
        &self,
        search_path: &[u32],
        name: &str,
        types: (TypeId, TypeId),
    ) -> Option<u32> {
        let first = (!search_path.contains(&PG_CATALOG)).then_some(PG_CATALOG);
        let mut path = first.into_iter().chain(search_path.iter().copied());
        path.find_map(|schema| self.operator_in(schema, name, types))
    }

    /// Whether a name means an operator of a user's between exactly these types.
    pub fn finds_own_operator(
        &self,
        search_path: &[u32],
        name: &str,
        types: (TypeId, TypeId),
    ) -> bool {
        self.operators.knows(name)
            && self
                .visible_operator(search_path, name, types)
                .is_some_and(|oid| self.own_operator(oid).is_some())
    }

    /// The oid of the operator of that name between these types in a schema, built in or not.
    pub fn operator_in(&self, schema: u32, name: &str, types: (TypeId, TypeId)) -> Option<u32> {
        if schema == PG_CATALOG {
            let mut known = operators_named(name).iter();
            let known = known.find(|known| (known.left, known.right) == types);
            return known.map(|known| known.oid);
        }
        let of_extensions = self.operators_of_extensions(name, Some(&[schema]));
        let mut of_extensions = of_extensions.into_iter();
        let of_extension = of_extensions.find(|known| (known.left, known.right) == types);
        let own = || {
            let own = self.own_operator_in(schema, name, types);
            own.map(|own| own.oid)
        };
        of_extension.map(|known| known.oid).or_else(own)
    }

    /// Whether operators of users hide a built-in one, which such a function computes, from who looks for it
    /// by its name: their schemas stand before the system's on the path.
    pub fn hides_operator_of(&self, search_path: &[u32], function: u32) -> bool {
        if self.operators.is_empty() || search_path.first() == Some(&PG_CATALOG) {
            return false;
        }
        let mut own = self.operators.iter();
        search_path.contains(&PG_CATALOG)
            && own.any(|own| {
                let mut named = operators_named(&own.name).iter();
                let known = named.find(|known| known.function.oid == function);
                known.is_some_and(|known| {
                    let types = (known.left, known.right);
                    let found = self.visible_operator(search_path, known.name, types);
                    found != Some(known.oid)
                })
            })
    }

    /// The name of an operator, with its schema unless the search path finds it, and the types of its operands.
    pub fn shown_operator(&self, search_path: &[u32], oid: u32) -> Option<String> {
        let (in_schema, name, types) = self.known_operator(oid)?;
        let shown = |ty: TypeId| match ty {
            TypeId::NONE => "NONE".to_owned(),
            ty => {
                let own = self.shown_type(search_path, ty);
                own.unwrap_or_else(|| ty.to_string())
            }
        };
        let operands = format!("({},{})", shown(types.0), shown(types.1));
        if self.visible_operator(search_path, &name, types) == Some(oid) {
            return Some(format!("{name}{operands}"));
        }
        let schema = quote_identifier(&self.schema_by_oid(in_schema)?.name);
        Some(format!("{schema}.{name}{operands}"))
    }

    /// The schema, the name and the types of the operands of an operator: built in, of an extension that was
    /// created, or one of users.
    pub fn known_operator(&self, oid: u32) -> Option<(u32, String, (TypeId, TypeId))> {
        if let Some(own) = self.own_operator(oid) {
            return Some((own.schema, own.name.clone(), (own.left, own.right)));
        }
        let known = any_operator_by_oid(oid)?;
        let types = (known.left, known.right);
        let mut schemas = self.schemas.iter().map(|schema| schema.oid);
        let schema =
            schemas.find(|schema| self.operator_in(*schema, known.name, types) == Some(oid))?;
        Some((schema, known.name.to_owned(), types))
    }

    /// The operators of that name in a schema, by the types of their operands.
    pub fn operators_in(&self, schema: u32, name: &str) -> Vec<((TypeId, TypeId), u32)> {
        if schema == PG_CATALOG {
            let known = operators_named(name).iter();
            let known = known.map(|known| ((known.left, known.right), known.oid));
            return known.collect();
        }
        let of_extensions = self.operators_of_extensions(name, Some(&[schema]));
        let of_extensions = of_extensions.into_iter();
        let of_extensions = of_extensions.map(|known| ((known.left, known.right), known.oid));
        let own = self.operators.named(name);
        let own = own.filter(|own| own.schema == schema);
        let own = own.map(|own| ((own.left, own.right), own.oid));
        of_extensions.chain(own).collect()
    }

    /// The function behind an operator as a routine: a built-in one is made to look like one.
    pub fn routine_behind(&self, operator: &OwnOperator) -> Option<Arc<Routine>> {
        if let Some(routine) = self.routine(operator.function) {
            return Some(routine.clone());
        }
        function_by_oid(operator.function).map(|known| Arc::new(as_routine(known)))
    }

    /// Whether kept text may use an operator of a user's where it does not say its schema.
    pub fn may_use_in_text(&self, text: &str, operator: u32) -> bool {
        let name = format!("\"{BY_OID}\".\"{operator}\"");
        let mut found = text.match_indices(&name);
        // In the place of a schema, a dot follows.
        found.any(|(at, _)| !text[at + name.len()..].starts_with('.'))
    }

    /// The casts and operators of users that kept text may use; none where that is all that there are.
    pub fn noted_in_text(&self, text: &str) -> Option<Vec<u32>> {
        if self.casts.is_empty() && self.operators.is_empty() {
            return None;
        }
        let named = named_by_oid(text).into_iter().filter(|oid| {
            self.cast_by_oid(*oid).is_some()
                || (self.own_operator(*oid).is_some() && self.may_use_in_text(text, *oid))
        });
        Some(named.collect())
    }
}

/// A built-in function as a routine, whose body is its oid.
fn as_routine(function: &Function) -> Routine {
    let argument = |ty: &TypeId| Argument {
        type_id: *ty,
        ..Argument::default()
    };
    Routine {
        oid: function.oid,
        schema: PG_CATALOG,
        name: function.name.to_owned(),
        owner: SUPERUSER,
        language: Language::Internal,
        arguments: function.arguments.iter().map(argument).collect(),
        result: function.result,
        set: function.is_set_returning(),
        volatility: match function.volatility {
            Volatility::Immutable => b'i',
            Volatility::Stable => b's',
            Volatility::Volatile => b'v',
        },
        strict: function.strict,
        body: function.oid.to_string(),
        ..Routine::default()
    }
}

// ---- Rows ----

const HASHES: u8 = 1;
const MERGES: u8 = 2;

pub(super) fn encode(operator: &OwnOperator) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, operator.name.as_bytes());
    for number in [
        operator.schema,
        operator.owner,
        operator.left.0,
        operator.right.0,
        operator.result.0,
        operator.function,
        operator.commutator,
        operator.negator,
        operator.restriction,
        operator.join,
    ] {
        put_varint(&mut out, u64::from(number));
    }
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(flag(operator.hashes, HASHES) | flag(operator.merges, MERGES));
    RowBuilder::new(1).value(&out).finish()
}

pub(super) fn decode(oid: u32, row: &[u8]) -> Result<OwnOperator> {
    let row = Row::parse(row)?;
    let bytes = row.column(0);
    let bytes = bytes.ok_or_else(|| Error::corrupted("an operator without a row"))?;
    let mut reader = Reader::new(bytes);
    let name = reader.str()?.to_owned();
    let mut operator = OwnOperator {
        oid,
        name,
        schema: reader.varint_as()?,
        owner: reader.varint_as()?,
        left: TypeId(reader.varint_as()?),
        right: TypeId(reader.varint_as()?),
        result: TypeId(reader.varint_as()?),
        function: reader.varint_as()?,
        commutator: reader.varint_as()?,
        negator: reader.varint_as()?,
        restriction: reader.varint_as()?,
        join: reader.varint_as()?,
        ..OwnOperator::default()
    };
    let flags = reader.u8()?;
    (operator.hashes, operator.merges) = (flags & HASHES != 0, flags & MERGES != 0);
    Ok(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let made = OwnOperator {
            oid: 16_400,
            schema: 2_200,
            name: "<->".to_owned(),
            owner: 10,
            left: TypeId::INT4,
            right: TypeId::TEXT,
            result: TypeId::BOOL,
            function: 16_399,
            commutator: 16_401,
            negator: 16_402,
            restriction: 101,
            join: 105,
            hashes: true,
            merges: false,
        };
        assert_eq!(decode(16_400, &encode(&made)).unwrap(), made);
        assert!(OwnOperator::default().is_shell());
    }
}
