//! TABLESAMPLE in FROM: a scan whose rows must meet one more condition, which tells by their keys which of them the
//! sample has ([`functions::sample`]).
//!
//! ```text
//! FROM t TABLESAMPLE system (10) REPEATABLE (5)     scan t with keys, guards: system(10, 5, the row's key)
//! ```
//! As a guard the condition is tested before any other that could tell of a row, and goes with the scan wherever
//! joins put it. EXPLAIN finds it there by its function ([`taken_out`]).
//!
//! # What it leaves out
//! 0A000 answer arguments that look at items beside or are volatile, and samples of system relations. Arguments are looked at where there is a row: a sample of an empty table
//! takes any percentage.

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{RangeTableSample, RangeVar};

use super::expr::{Place, Sets};
use super::from::beside;
use super::scope::Scope;
use super::{boxed, inner, strings, Binder};
use crate::logical::{Source, SourceKind};
use crate::plan::program::Op;
use crate::plan::{Expr, ExprKind, Func, Program};
use catalog::RelationKind;
use functions::{sample, CastContext, Function};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId, NO_TYPMOD};

/// A sample as EXPLAIN shows it.
pub struct Sampling {
    /// The method.
    pub method: &'static str,
    /// Its argument.
    pub percent: Expr,
    /// What REPEATABLE says.
    pub seed: Option<Expr>,
}

/// The sample that a scan takes, if the condition says so, and the rest of the condition.
pub fn taken_out(condition: Expr) -> (Option<Sampling>, Option<Expr>) {
    match condition.kind {
        ExprKind::IsTruth(tested, Some(true), false) if is_sampling(&tested) => {
            (sampling(*tested), None)
        }
        ExprKind::Call(..) if is_sampling(&condition) => (sampling(condition), None),
        ExprKind::And(parts) => {
            let mut found = None;
            let mut rest = Vec::new();
            for part in parts {
                let (sampling, left) = taken_out(part);
                found = found.or(sampling);
                rest.extend(left);
            }
            let rest = match rest.len() {
                0 | 1 => rest.pop(),
                _ => Some(Expr::new(
                    ExprKind::And(rest),
                    TypeId::BOOL,
                    condition.location.0,
                )),
            };
            (found, rest)
        }
        kind => {
            let whole = Expr { kind, ..condition };
            (None, Some(whole))
        }
    }
}

/// Whether a condition takes a sample.
pub fn is_of_sample(condition: &Program) -> bool {
    let is_method =
        |op: &Op| matches!(op, Op::Call { function, .. } if sample::is_method(function));
    condition.ops().iter().any(is_method)
}

fn is_sampling(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(function, ..) if sample::is_method(function.0))
}

fn sampling(expr: Expr) -> Option<Sampling> {
    let ExprKind::Call(method, args, types) = expr.kind else {
        return None;
    };
    let mut args = args.into_iter();
    let percent = args.next()?;
    let seed = args.next()?;
    Some(Sampling {
        method: method.0.name,
        percent,
        seed: (types.get(1) == Some(&TypeId::FLOAT8)).then_some(seed),
    })
}

fn not_a_table(binder: &Binder<'_>, range: &RangeVar) -> Error {
    let message = "TABLESAMPLE clause can only be applied to tables and materialized views";
    binder.error(SqlState::FEATURE_NOT_SUPPORTED, message, range.location)
}

impl Binder<'_> {
    /// Binds a sample of a table; its columns are added to the scope.
    pub(super) fn range_sample(
        &mut self,
        sample: &RangeTableSample,
        scope: &mut Scope<'_>,
        with_keys: bool,
        next: &mut usize,
    ) -> Result<Source> {
        let NodeEnum::RangeVar(range) = boxed(&sample.relation)? else {
            return Err(Error::internal("a sample of no table"));
        };
        self.check_sampled(range)?;
        let around = beside(scope);
        let mut source = self.range_var(range, scope, with_keys, next)?;
        let method = self.sampling_method(sample)?;
        let level = Scope::inside(scope.parent);
        let percent = inner(&sample.args[0])?;
        let percent = self.sampling_argument(percent, &level, &around, TypeId::FLOAT4)?;
        let seed = match &sample.repeatable {
            Some(seed) => {
                let seed = seed.node.as_ref();
                let seed = seed.ok_or_else(|| Error::internal("an empty seed"))?;
                self.sampling_argument(seed, &level, &around, TypeId::FLOAT8)?
            }
            None => {
                let place = i32::try_from(source.start).unwrap_or(i32::MAX);
                Expr::constant(Datum::Int4(place), TypeId::INT4, -1)
            }
        };
        if level.escapes.get() {
            scope.escapes.set(true);
        }
        let key = self.give_key(&mut source, scope, next, range)?;
        let key = Expr::new(ExprKind::Column(key), TypeId::BYTEA, -1);
        let args = vec![percent, seed, key];
        let types = args.iter().map(|arg| arg.ty).collect();
        let kind = ExprKind::Call(Func(method), args, types);
        if let SourceKind::Scan { guards, .. } = &mut source.kind {
            let guards = guards.get_or_insert_default();
            guards.push(Expr::new(kind, TypeId::BOOL, -1));
        }
        Ok(source)
    }

    /// Has the scan, which is the last item, give the keys of its rows, and says where.
    fn give_key(
        &self,
        source: &mut Source,
        scope: &mut Scope<'_>,
        next: &mut usize,
        range: &RangeVar,
    ) -> Result<usize> {
        let SourceKind::Scan { scan, guards, .. } = &mut source.kind else {
            return Err(not_a_table(self, range));
        };
        let key = source.start + scan.table.columns.len();
        if scan.with_key {
            return Ok(key);
        }
        // What stands there now moves to the right.
        let is_moved = |part: &Expr| matches!(part.kind, ExprKind::Column(place) if place >= key);
        if guards.iter().flatten().any(|guard| guard.any(&is_moved)) {
            let what = "TABLESAMPLE of a partitioned table with a policy on tableoid";
            return Err(Error::unsupported(what));
        }
        if let Some(item) = scope.tables.last_mut() {
            item.oid = item.oid.map(|oid| oid + 1);
        }
        scan.with_key = true;
        source.width += 1;
        *next += 1;
        Ok(key)
    }

    /// 0A000 for what is no table and no materialized view.
    fn check_sampled(&mut self, range: &RangeVar) -> Result<()> {
        let of_with = |cte: &super::with::Cte| cte.name == range.relname;
        if range.schemaname.is_empty() && self.ctes.iter().any(of_with) {
            return Err(not_a_table(self, range));
        }
        let table = self.table(range, TableLock::AccessShare)?;
        match table.kind {
            RelationKind::Table | RelationKind::MaterializedView | RelationKind::Partitioned => {
                Ok(())
            }
            RelationKind::System => Err(Error::unsupported("TABLESAMPLE of a system relation")),
            _ => Err(not_a_table(self, range)),
        }
    }

    fn sampling_method(&self, sample: &RangeTableSample) -> Result<&'static Function> {
        let names = strings(&sample.method);
        let method = match names[..] {
            [name] | ["pg_catalog", name] => sample::named(name),
            _ => None,
        };
        let Some(method) = method else {
            let message = format!("tablesample method {} does not exist", names.join("."));
            return Err(self.error(SqlState::UNDEFINED_OBJECT, message, sample.location));
        };
        match sample.args.len() {
            1 => Ok(method),
            count => Err(self.error(
                SqlState::of("2202H"),
                format!(
                    "tablesample method {} requires 1 argument, not {count}",
                    method.name
                ),
                sample.location,
            )),
        }
    }

    /// An argument, which sees the queries around this one; `around` is what stands beside.
    fn sampling_argument(
        &mut self,
        node: &NodeEnum,
        level: &Scope<'_>,
        around: &Scope<'_>,
        ty: TypeId,
    ) -> Result<Expr> {
        let place = Place {
            sets: Sets::Refused,
            ..Place::plain("functions in FROM")
        };
        let expr = match self.expr(node, level, place) {
            Ok(expr) => expr,
            Err(missing) if !around.tables.is_empty() => {
                let inside = Scope::inside(Some(around));
                return Err(match self.expr(node, &inside, place) {
                    Ok(_) => Error::unsupported("TABLESAMPLE that looks at items beside"),
                    Err(_) => missing,
                });
            }
            Err(missing) => return Err(missing),
        };
        if expr.any(&Expr::is_volatile_call) {
            return Err(Error::unsupported("TABLESAMPLE with a volatile argument"));
        }
        let what = match ty {
            TypeId::FLOAT4 => "TABLESAMPLE",
            _ => "REPEATABLE",
        };
        let (from, location) = (expr.ty, expr.location.0);
        let made = self.try_coerce(expr, ty, NO_TYPMOD, CastContext::Assignment)?;
        made.map_err(|_| {
            let message = format!("argument of {what} must be type {ty}, not type {from}");
            self.error(SqlState::DATATYPE_MISMATCH, message, location)
        })
    }

    /// The clause as a view shows it.
    pub(super) fn sample_text(
        &mut self,
        sample: &RangeTableSample,
        scope: &Scope<'_>,
        at: i32,
    ) -> Result<String> {
        let level = Scope::inside(scope.parent);
        let shown = |binder: &mut Self, node: &NodeEnum| {
            let expr = binder.expr(node, &level, Place::plain("functions in FROM"))?;
            binder.shown_expr(&expr, &level, false, at)
        };
        let method = self.sampling_method(sample)?.name;
        let percent = shown(self, inner(&sample.args[0])?)?;
        let mut out = format!(" TABLESAMPLE {method} ({percent})");
        if sample.repeatable.is_some() {
            let seed = shown(self, boxed(&sample.repeatable)?)?;
            out.push_str(&format!(" REPEATABLE ({seed})"));
        }
        Ok(out)
    }
}
