//! COLLATE, and what the collation of an expression asks for.
//!
//! Texts are ordered by their bytes. Under a collation of ICU whatever depends on order, or on which texts are
//! equal, is asked of keys instead ([`functions::collator`]):
//!
//! ```text
//! order by name collate "de-x-icu"     sorted by Collating(Key, name), which are bytea
//! name < 'b' collate "de-x-icu"        Collating(Key, name) < Collating(Key, 'b')
//! max(name collate "de-x-icu")         Collating(Original, max(Collating(Key, name)))
//! ```
//! so that planner and executor know of no collation. Equality is that of bytes, but under a collation that
//! is not deterministic.
//!
//! # What it leaves out
//! Keys in indexes: one on a text serves equality and the order of bytes, whatever collation its column has.
//! What PostgreSQL only finds when it compares two values, two collations where one is needed, is refused
//! before. Types of ranges and values of `citext` are refused under a collation of ICU, and rows compare their
//! fields by bytes. Under collations that are not deterministic 0A000 where a set operation looks for the same rows, in
//! grouping sets, and for DISTINCT in aggregates other than `count`.

use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::CollateClause;

use super::{strings, Binder, OutputColumn};
use crate::plan::{Collated, Derivation, Expr, ExprKind, Func, UsedCollation};
use catalog::access::{denied, Guarded, Privileges};
use catalog::{collation, Catalog, Collation, SUPERUSER};
use functions::collator::Collating;
use functions::{resolve_operator, OperatorMatch};
use syntax::parser::char_position;
use types::{Datum, TypeId};

/// What is advised where there are several collations.
const TO_COLLATE: &str = "Use the COLLATE clause to set the collation explicitly.";

/// The operators that compare, and whether they ask for an order.
const COMPARISONS: [(&str, bool); 6] = [
    ("<", true),
    ("<=", true),
    (">", true),
    (">=", true),
    ("=", false),
    ("<>", false),
];

/// Where names are looked for, and for which role.
pub type LookedIn<'c, 's> = (&'c Catalog, &'s [u32], u32);

/// The collation that a name means.
///
/// # Errors
/// 3F000 and 42704 when there is none of that name; 42501 for a schema that the role may not use.
pub fn named<'c>(
    (catalog, search_path, role): LookedIn<'c, '_>,
    names: &[&str],
) -> Result<&'c Collation> {
    let found = match names {
        [name] => catalog.visible_collation(search_path, name),
        [.., schema, name] => match catalog.schema(schema) {
            Some(known) if !catalog.holds(role, Guarded::Schema, known.oid, Privileges::USAGE) => {
                return Err(denied("schema", schema));
            }
            Some(known) => catalog.collation_named(known.oid, name),
            None => {
                let message = format!("schema \"{schema}\" does not exist");
                return Err(Error::new(SqlState::INVALID_SCHEMA_NAME, message));
            }
        },
        [] => None,
    };
    found.ok_or_else(|| {
        let name = names.join(".");
        let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
        Error::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// The collation that something of a type is given.
///
/// # Errors
/// 42804 when values of the type have no collation, and as [`named`]; at the clause in `text`.
fn given<'c>(
    text: &str,
    looked_in: LookedIn<'c, '_>,
    clause: &CollateClause,
    ty: TypeId,
) -> Result<&'c Collation> {
    let placed = |error: Error| match char_position(text, clause.location) {
        Some(position) => error.at(position),
        None => error,
    };
    // A literal will be a text.
    if ty != TypeId::UNKNOWN && collation::of_type(ty) == 0 {
        return Err(placed(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("collations are not supported by type {ty}"),
        )));
    }
    named(looked_in, &strings(&clause.collname)).map_err(placed)
}

/// The oid of the collation that something of a type is given, or 0 if that is the type's own.
///
/// # Errors
/// 42804 when values of the type have no collation, 3F000 and 42704 when there is none of that name;
/// at the clause in `text`.
pub fn resolve(
    text: &str,
    looked_in: LookedIn<'_, '_>,
    clause: &CollateClause,
    ty: TypeId,
) -> Result<u32> {
    let known = given(text, looked_in, clause, ty)?.oid;
    Ok(match collation::of_type(ty) == known {
        true => 0,
        false => known,
    })
}

/// 42P22, for what needs to know the collation.
fn undetermined(what: &str) -> Error {
    Error::new(
        SqlState::of("42P22"),
        format!("could not determine which collation to use for {what}"),
    )
    .with_hint(TO_COLLATE)
}

impl Binder<'_> {
    /// An expression with COLLATE.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(super) fn collate(&mut self, arg: Expr, clause: &CollateClause) -> Result<Expr> {
        let looked_in = (&**self.cx.catalog, self.cx.search_path, self.cx.role);
        let known = match self.stored {
            true => self.stored_collation(clause)?,
            false => given(self.cx.text, looked_in, clause, arg.ty)?,
        };
        let oid = known.oid;
        if let Some(recorded) = &mut self.recorded {
            recorded.collation_named(clause.location, oid);
        }
        let used = self.used(oid)?;
        let arg = self.settle(arg)?;
        let (ty, typmod, domain) = (arg.ty, arg.typmod, arg.domain);
        let made = Expr::new(ExprKind::Collate(Box::new(arg), used), ty, clause.location);
        Ok(Expr {
            typmod,
            domain,
            ..made
        })
    }

    /// The collation of a clause in stored text, which names those of users by oid.
    fn stored_collation(&self, clause: &CollateClause) -> Result<&Collation> {
        let catalog = self.cx.catalog;
        let names = strings(&clause.collname);
        if let [catalog::view::BY_OID, oid] = names[..] {
            let found = oid.parse().ok().and_then(|oid| catalog.collation(oid));
            return found.ok_or_else(|| Error::internal(format!("collation {oid} is not there")));
        }
        named((catalog, self.cx.search_path, SUPERUSER), &names)
    }

    /// A collation as expressions use it.
    fn used(&self, oid: u32) -> Result<Rc<UsedCollation>> {
        let catalog = self.cx.catalog;
        let known = catalog.collation(oid);
        let known =
            known.ok_or_else(|| Error::internal(format!("collation {oid} is not there")))?;
        let shown = catalog.shown_collation(self.cx.search_path, oid);
        Ok(Rc::new(UsedCollation {
            oid,
            shown: shown.unwrap_or_else(|| oid.to_string()),
            collator: known.collator()?,
        }))
    }

    /// The collation that is not bytewise, if that is what an expression or several together have.
    ///
    /// # Errors
    /// 42P21 for several that were written; 42P22 for several that were not, since `what` needs one.
    fn needed_collation(&self, own: Collated, what: &str) -> Result<Option<u32>> {
        match own.how {
            Derivation::Mismatch(other) => {
                let message = format!(
                    "collation mismatch between explicit collations \"{}\" and \"{}\"",
                    self.collation_name(own.oid),
                    self.collation_name(other)
                );
                Err(self.error(SqlState::of("42P21"), message, own.location))
            }
            Derivation::Conflict(_) => Err(undetermined(what)),
            Derivation::Default => Ok(None),
            Derivation::Implicit | Derivation::Explicit => {
                let known = self.cx.catalog.collation(own.oid);
                Ok(known
                    .filter(|known| !known.is_bytewise())
                    .map(|known| known.oid))
            }
        }
    }

    fn collation_name(&self, oid: u32) -> String {
        let known = self.cx.catalog.collation(oid);
        known.map_or_else(|| oid.to_string(), |known| known.name.clone())
    }

    /// 42P21 for several collations that were written.
    pub(super) fn refuse_mismatch(&self, expr: Expr) -> Result<Expr> {
        match expr.collation.how {
            Derivation::Mismatch(_) => {
                self.needed_collation(expr.collation, "")?;
                Ok(expr)
            }
            _ => Ok(expr),
        }
    }

    /// `COLLATION FOR (expression)`: the name of its collation; NULL where there are several.
    pub(super) fn collation_for(&self, arg: Expr, location: i32) -> Result<Expr> {
        let own = collation::of_type(arg.ty);
        if own == 0 && arg.ty != TypeId::UNKNOWN {
            let message = format!("collations are not supported by type {}", arg.ty);
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let oid = match arg.collation.how {
            Derivation::Conflict(_) | Derivation::Mismatch(_) => 0,
            Derivation::Default => own,
            Derivation::Implicit | Derivation::Explicit => arg.collation.oid,
        };
        let shown = self.cx.catalog.shown_collation(self.cx.search_path, oid);
        let value = shown.map_or(Datum::Null, Datum::text);
        let answer = Expr::constant(value, TypeId::TEXT, location);
        if matches!(arg.kind, ExprKind::Column(_) | ExprKind::Const(..)) {
            return Ok(answer);
        }
        // It may be an aggregate, a set, or fail.
        let is_null = Expr::new(
            ExprKind::IsNull(Box::new(arg), true),
            TypeId::BOOL,
            location,
        );
        let kind = ExprKind::Case(vec![(is_null, answer.clone())], Box::new(answer));
        Ok(Expr::new(kind, TypeId::TEXT, location))
    }

    /// 42P21 for two collations that were not written, of which the other one stands somewhere.
    pub(super) fn refuse_two(&self, own: Collated) -> Result<()> {
        let Derivation::Conflict(other) = own.how else {
            return Ok(());
        };
        if own.location < 0 {
            return Ok(());
        }
        let message = format!(
            "collation mismatch between implicit collations \"{}\" and \"{}\"",
            self.collation_name(own.oid),
            self.collation_name(other)
        );
        let error = self.error(SqlState::of("42P21"), message, own.location);
        Err(error.with_hint(
            "You can choose the collation by applying the COLLATE clause to one or both \
             expressions.",
        ))
    }

    /// What an expression is sorted by: itself, or its keys.
    ///
    /// # Errors
    /// 42P21 or 42P22 when it has several collations.
    pub(super) fn ordered_by(&self, value: Expr) -> Result<Expr> {
        self.refuse_two(value.collation)?;
        match self.needed_collation(value.collation, "string comparison")? {
            None => Ok(value),
            Some(oid) => self.key(value, &self.used(oid)?),
        }
    }

    /// The collation under which other texts may be equal to an expression than its own, if it has one.
    ///
    /// # Errors
    /// 42P22 when it has several.
    pub(super) fn not_deterministic(&self, own: Collated) -> Result<Option<Rc<UsedCollation>>> {
        let oid = self.needed_collation(own, "string comparison")?;
        let known = oid.and_then(|oid| self.cx.catalog.collation(oid));
        let known = known.filter(|known| !known.deterministic);
        known.map(|known| self.used(known.oid)).transpose()
    }

    /// What tells the values of an expression apart: itself, or its keys.
    ///
    /// # Errors
    /// As [`Binder::not_deterministic`].
    pub(super) fn told_apart(&self, value: Expr) -> Result<Expr> {
        match self.not_deterministic(value.collation)? {
            Some(used) => self.key(value, &used),
            None => Ok(value),
        }
    }

    /// # Errors
    /// 0A000 where texts are told apart by their bytes that are equal; 42P22 for several collations.
    pub(super) fn refuse_equal_texts(
        &self,
        own: Collated,
        place: &str,
        location: i32,
    ) -> Result<()> {
        match self.not_deterministic(own)? {
            Some(used) => {
                let what = format!("{place} under collation {}", used.shown);
                Err(self.unsupported(&what, location))
            }
            None => Ok(()),
        }
    }

    /// The operands of an operator that compares texts, and that operator: their keys and that of keys,
    /// where they are not compared by their bytes.
    ///
    /// # Errors
    /// 42P22 when they have several collations.
    pub(super) fn compared(
        &self,
        name: &str,
        found: OperatorMatch,
        left: Expr,
        right: Expr,
    ) -> Result<(OperatorMatch, Expr, Expr)> {
        let own = left.collation.with(right.collation);
        if own.is_plain() {
            return Ok((found, left, right));
        }
        let of_texts = |ty: &TypeId| ty.is_text_like() || ty.array_element().is_some();
        let comparison = COMPARISONS.iter().find(|known| known.0 == name);
        let comparison = comparison.filter(|_| found.argument_types.iter().all(of_texts));
        let Some((_, ordering)) = comparison else {
            return Ok((found, left, right));
        };
        let used = match self.needed_collation(own, "string comparison")? {
            Some(oid) => self.used(oid)?,
            None => return Ok((found, left, right)),
        };
        if !ordering && used.collator.deterministic {
            return Ok((found, left, right));
        }
        // Elements of an array are compared one by one where texts were.
        let types = [found.argument_types[0], found.argument_types[1]].map(type_of_keys);
        let keys = resolve_operator(name, types[0], types[1])?;
        Ok((keys, self.key(left, &used)?, self.key(right, &used)?))
    }

    /// The keys of texts, or of arrays of them.
    ///
    /// # Errors
    /// 0A000 for `citext`, whose letters would have to be folded first.
    pub(super) fn key(&self, value: Expr, used: &Rc<UsedCollation>) -> Result<Expr> {
        let ty = value.ty.array_element().unwrap_or(value.ty);
        match ty == TypeId::CITEXT {
            true => {
                let what = format!("citext under collation {}", used.shown);
                Err(self.unsupported(&what, value.location.0))
            }
            false => Ok(value.key(used)),
        }
    }

    /// The greatest or the least of some values, by `extreme` over what they are compared by.
    ///
    /// # Errors
    /// 42P22 when they have several collations.
    pub(super) fn extreme_of(
        &mut self,
        args: Vec<Expr>,
        extreme: impl FnOnce(&mut Self, Vec<Expr>) -> Result<Expr>,
    ) -> Result<Expr> {
        let own = Collated::of_all(&args);
        let Some(ordered) = self.ordering(own)? else {
            return extreme(self, args);
        };
        let ty = args.first().map_or(TypeId::TEXT, |arg| arg.ty);
        let keys = args.into_iter().map(|arg| self.key(arg, &ordered));
        let keys = keys.collect::<Result<_>>()?;
        let extreme = extreme(self, keys)?;
        Ok(Expr {
            collation: own,
            ..extreme.original(Some(ordered), ty)
        })
    }

    /// The collation of ICU that is to be used, telling apart what it takes for equal: of texts that are equal
    /// under it any may be shown.
    pub(super) fn ordering(&self, own: Collated) -> Result<Option<Rc<UsedCollation>>> {
        let Some(oid) = self.needed_collation(own, "string comparison")? else {
            return Ok(None);
        };
        let used = self.used(oid)?;
        Ok(Some(Rc::new(UsedCollation {
            oid,
            shown: used.shown.clone(),
            collator: used.collator.clone().deterministic(),
        })))
    }

    /// A call of a built-in function that depends on the collation of its arguments.
    ///
    /// # Errors
    /// 42P22 when they have several collations; 0A000 for what PostgreSQL does not do under one that is not
    /// deterministic.
    pub(super) fn call_under_collation(&self, call: Expr) -> Result<Expr> {
        let ExprKind::Call(Func(function), args, _) = &call.kind else {
            return Ok(call);
        };
        let own = Collated::of_all(args);
        if own.is_plain() {
            return Ok(call);
        }
        let cased = match function.name {
            "upper" => Some(Collating::Upper),
            "lower" => Some(Collating::Lower),
            "initcap" => Some(Collating::Initcap),
            _ => None,
        };
        let location = call.location.0;
        if let (Some(cased), [arg]) = (cased, &args[..]) {
            if !arg.ty.is_text_like() {
                return Ok(call);
            }
            let what = format!("{}() function", function.name);
            self.needed_collation(own, &what)?;
            let known = self.cx.catalog.collation(own.oid);
            if known.is_none_or(Collation::is_databases) {
                return Ok(call);
            }
            let (used, arg) = (self.used(own.oid)?, Box::new(arg.clone()));
            let kind = ExprKind::Collating(arg, cased, used);
            return Ok(Expr::new(kind, call.ty, location));
        }
        let what = match function.name {
            "textlike" | "textnlike" | "bpcharlike" | "bpcharnlike" | "like" | "notlike" => "LIKE",
            "texticlike" | "texticnlike" | "bpchariclike" | "bpcharicnlike" => "ILIKE",
            "textregexeq"
            | "textregexne"
            | "texticregexeq"
            | "texticregexne"
            | "regexp_match"
            | "regexp_matches"
            | "regexp_replace"
            | "regexp_split_to_array"
            | "regexp_split_to_table"
            | "regexp_count"
            | "regexp_instr"
            | "regexp_like"
            | "regexp_substr" => "regular expressions",
            "position" | "strpos" | "replace" | "split_part" | "string_to_array"
            | "string_to_table" => "substring searches",
            _ => return Ok(call),
        };
        let asked = match what {
            "regular expressions" => "regular expression",
            other => other,
        };
        self.needed_collation(own, asked)?;
        let known = self.cx.catalog.collation(own.oid);
        match known.is_some_and(|known| !known.deterministic) {
            true => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("nondeterministic collations are not supported for {what}"),
            )),
            false => Ok(call),
        }
    }
}

/// The collation of a column of that name which is made of a query's, or 0 if that is its type's own.
///
/// # Errors
/// 42P22 when it has several.
pub fn of_column(name: &str, column: &OutputColumn) -> Result<u32> {
    match column.collation.how {
        Derivation::Conflict(_) | Derivation::Mismatch(_) => Err(Error::new(
            SqlState::of("42P22"),
            format!(
                "no collation was derived for column \"{name}\" with collatable type {}",
                column.ty
            ),
        )
        .with_hint(TO_COLLATE)),
        _ if column.collation.oid == collation::of_type(column.ty) => Ok(0),
        _ => Ok(column.collation.oid),
    }
}

/// The type of the keys of texts, or of arrays of them.
pub(super) fn type_of_keys(ty: TypeId) -> TypeId {
    match ty.array_element() {
        Some(_) => TypeId::BYTEA.array_of().unwrap_or(TypeId::BYTEA),
        None => TypeId::BYTEA,
    }
}

impl Expr {
    /// The keys of texts, or of arrays of them.
    pub(super) fn key(self, used: &Rc<UsedCollation>) -> Expr {
        let location = self.location.0;
        let ty = type_of_keys(self.ty);
        let kind = ExprKind::Collating(Box::new(self), Collating::Key, used.clone());
        Expr::new(kind, ty, location)
    }

    /// The text of which it is a key, or an array of such; itself, if it is none.
    pub(super) fn original(self, used: Option<Rc<UsedCollation>>, ty: TypeId) -> Expr {
        let Some(used) = used else { return self };
        let location = self.location.0;
        let kind = ExprKind::Collating(Box::new(self), Collating::Original, used);
        Expr::new(kind, ty, location)
    }

    /// What it is a key of, and under which collation; itself, if it is none.
    pub(super) fn without_key(&self) -> (&Expr, Option<&Rc<UsedCollation>>) {
        match &self.kind {
            ExprKind::Collating(inner, Collating::Key, used) => (inner, Some(used)),
            _ => (self, None),
        }
    }
}
