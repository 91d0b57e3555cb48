//! Relations of `pg_catalog` and `information_schema` in FROM.

use std::sync::Arc;

use base::{Error, Result};

use super::{BindContext, Binder};
use crate::plan::compile;
use crate::plan::{Expr, ExprKind, Plan};
use catalog::{system, Table, PG_CATALOG, SUPERUSER};
use functions::CastContext;
use syntax::parser::{self, NodeEnum};
use types::{Datum, NO_TYPMOD};

/// Where the views of `pg_catalog` look for names.
const SEARCH_PATH: &[u32] = &[PG_CATALOG];

impl Binder<'_> {
    /// The rows of a system relation.
    pub(super) fn system(&mut self, table: &Arc<Table>) -> Result<Plan> {
        match system::view(table) {
            Some(text) => self.system_view(table, text),
            None => Ok(Plan::System(table.clone(), self.cx.catalog.clone(), None)),
        }
    }

    /// A system view: its query, with the columns of the relation.
    fn system_view(&mut self, table: &Arc<Table>, text: &'static str) -> Result<Plan> {
        let statements = parser::parse(text)?;
        let Some(NodeEnum::SelectStmt(select)) = statements.first().map(|only| only.node()) else {
            return Err(Error::internal("a view that is no query"));
        };
        let own = BindContext {
            search_path: SEARCH_PATH,
            role: SUPERUSER,
            text,
            literals: None,
            variables: None,
            ..self.cx
        };
        let outside = std::mem::replace(&mut self.cx, own);
        let ctes = std::mem::take(&mut self.ctes);
        let query = self.below(table, |binder| binder.select(select, None));
        self.ctes = ctes;
        self.cx = outside;
        let query = query?;
        let mut outputs = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            let found = query
                .columns
                .iter()
                .position(|output| output.name == column.name);
            outputs.push(match found {
                None => Expr::constant(Datum::Null, column.type_id, -1),
                Some(place) => {
                    let output = Expr::new(ExprKind::Column(place), query.columns[place].ty, -1);
                    let (ty, context) = (column.type_id, CastContext::Explicit);
                    match self.try_coerce(output, ty, NO_TYPMOD, context)? {
                        Ok(output) => output,
                        Err(_) => return Err(Error::internal("a column of another type")),
                    }
                }
            });
        }
        Ok(super::select::projection(query.plan, &outputs))
    }
}

/// The equality function of oids.
const OID_EQUAL: u32 = 184;
/// The equality function of names.
const NAME_EQUAL: u32 = 62;

/// The plan, which looks rows up by a column if one of the conditions says what it must be.
pub(super) fn keyed(plan: Plan, conditions: &[Expr]) -> Plan {
    let Plan::System(table, catalog, None) = plan else {
        return plan;
    };
    let key = conditions.iter().find_map(|condition| {
        let ExprKind::Call(function, args, _) = &condition.kind else {
            return None;
        };
        let [left, right] = args.as_slice() else {
            return None;
        };
        if !matches!(function.0.oid, OID_EQUAL | NAME_EQUAL) {
            return None;
        }
        [(left, right), (right, left)]
            .into_iter()
            .find_map(|(column, value)| match column.bare().kind {
                ExprKind::Column(place) if system::has_lookup(&table, place) && is_fixed(value) => {
                    Some((place, compile(value)))
                }
                _ => None,
            })
    });
    Plan::System(table, catalog, key)
}

/// Whether the value is the same for all rows.
fn is_fixed(expr: &Expr) -> bool {
    !expr.any(&|part| matches!(part.kind, ExprKind::Column(_) | ExprKind::Sub(..)))
}
