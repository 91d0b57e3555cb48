//! WITH and LIMIT of a query that is shown ([`super::definition`]).
//!
//! ```text
//!  WITH RECURSIVE r(a) AS (
//!          SELECT t.a
//!            FROM t
//!         UNION ALL
//!          SELECT r.a + 1
//!            FROM r
//!         ) SEARCH BREADTH FIRST BY a SET seq CYCLE a SET is_cycle USING path
//!  SELECT r.a
//!    FROM r
//!  LIMIT 10;
//! ```
//! The marks of CYCLE are shown unless they are `true` and `false`.

use base::{Error, Result};
use pg_query::protobuf::{
    CteCycleClause, CteMaterialize, CteSearchClause, Node, SelectStmt, WithClause,
};

use super::definition::Called;
use super::expr::Place;
use super::scope::Scope;
use super::select::is_with_ties;
use super::{boxed, inner, strings, Binder};
use crate::deparse::is_operation;
use crate::deparse::layout::{shifted, Layout, STEP};
use crate::plan::{Expr, ExprKind};
use functions::strings::quote_identifier;
use functions::CastContext;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId, NO_TYPMOD};

impl Binder<'_> {
    /// WITH and its queries.
    pub(super) fn with_text(
        &mut self,
        with: &WithClause,
        parent: Option<&Scope<'_>>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        layout.level += STEP;
        layout.text(self.opening(match with.recursive {
            true => " WITH RECURSIVE ",
            false => " WITH ",
        }));
        for (place, item) in with.ctes.iter().enumerate() {
            let NodeEnum::CommonTableExpr(cte) = inner(item)? else {
                return Ok(None);
            };
            layout.text(if place > 0 { ", " } else { "" });
            layout.text(&quote_identifier(&cte.ctename));
            let columns = strings(&cte.aliascolnames);
            if !columns.is_empty() {
                let columns: Vec<_> = columns.iter().map(|name| quote_identifier(name)).collect();
                layout.text(&format!("({})", columns.join(", ")));
            }
            layout.text(match CteMaterialize::try_from(cte.ctematerialized) {
                Ok(CteMaterialize::Always) => " AS MATERIALIZED (",
                Ok(CteMaterialize::Never) => " AS NOT MATERIALIZED (",
                _ => " AS (",
            });
            layout.keyword("", 0, 0, 0);
            let text = match boxed(&cte.ctequery)? {
                NodeEnum::SelectStmt(select) => self.query_text(select, parent, Called::Itself)?,
                statement => self.written_text(statement, Called::Itself)?,
            };
            let Some(text) = text else {
                return Ok(None);
            };
            layout.text(&shifted(&text, layout.level));
            layout.keyword("", 0, 0, 0);
            layout.text(")");
            if let Some(clause) = &cte.search_clause {
                layout.text(&search_text(clause));
            }
            if let Some(clause) = cte.cycle_clause.as_deref() {
                let text = self.cycle_text(clause, parent, layout.level)?;
                layout.text(&text);
            }
        }
        layout.level -= STEP;
        layout.keyword("", 0, 0, 0);
        Ok(Some(()))
    }

    /// CYCLE of a query of WITH.
    fn cycle_text(
        &mut self,
        clause: &CteCycleClause,
        parent: Option<&Scope<'_>>,
        at: i32,
    ) -> Result<String> {
        let mut out = format!(
            " CYCLE {} SET {}",
            listed(&clause.cycle_col_list),
            quote_identifier(&clause.cycle_mark_column)
        );
        let marks = (&clause.cycle_mark_value, &clause.cycle_mark_default);
        if let (Some(value), Some(default)) = marks {
            let scope = Scope::inside(parent);
            let (value, default) = self.marks(inner(value)?, inner(default)?, &scope)?;
            if !(is_bool(&value, true) && is_bool(&default, false)) {
                let value = self.shown_expr(&value, &scope, false, at)?;
                let default = self.shown_expr(&default, &scope, false, at)?;
                out.push_str(&format!(" TO {value} DEFAULT {default}"));
            }
        }
        out.push_str(" USING ");
        out.push_str(&quote_identifier(&clause.cycle_path_column));
        Ok(out)
    }

    /// What marks a row of CYCLE that closes a circle, and one that does not, of one type.
    fn marks(
        &mut self,
        value: &NodeEnum,
        default: &NodeEnum,
        scope: &Scope<'_>,
    ) -> Result<(Expr, Expr)> {
        let place = Place::plain("CYCLE");
        let value = self.expr(value, scope, place)?;
        let default = self.expr(default, scope, place)?;
        let common = match functions::select_common_type(&[value.ty, default.ty], "CYCLE")? {
            TypeId::UNKNOWN => TypeId::TEXT,
            common => common,
        };
        let mut coerced = |expr| {
            let coerced = self.try_coerce(expr, common, NO_TYPMOD, CastContext::Implicit)?;
            coerced.map_err(|_| Error::internal("marks that are of no common type"))
        };
        Ok((coerced(value)?, coerced(default)?))
    }

    /// LIMIT and OFFSET.
    pub(super) fn limit_text(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<()> {
        if let Some(node) = &select.limit_offset {
            let value = self.limit_value(node, scope, layout.level)?;
            layout.clause(" OFFSET ", 0);
            layout.text(&value);
        }
        let Some(node) = &select.limit_count else {
            return Ok(());
        };
        if matches!(inner(node)?, NodeEnum::AConst(constant) if constant.isnull) {
            layout.clause(" LIMIT ALL", 0);
            return Ok(());
        }
        let value = self.limit_value(node, scope, layout.level)?;
        match is_with_ties(select) {
            true => {
                layout.clause(" FETCH FIRST ", 0);
                layout.text(&format!("({value}) ROWS WITH TIES"));
            }
            false => {
                layout.clause(" LIMIT ", 0);
                layout.text(&value);
            }
        }
        Ok(())
    }

    /// How many rows, which is an operand of a cast to bigint.
    fn limit_value(&mut self, node: &Node, scope: &Scope<'_>, at: i32) -> Result<String> {
        let value = self.expr(inner(node)?, scope, Place::plain("LIMIT"))?;
        let shown = self.shown_expr(&value, scope, false, at)?;
        let pretty = self
            .shown_queries
            .as_ref()
            .is_some_and(|shown| shown.pretty);
        Ok(
            match pretty && value.ty != TypeId::INT8 && is_operation(&value) {
                true => format!("({shown})"),
                false => shown,
            },
        )
    }
}

/// SEARCH of a query of WITH.
fn search_text(clause: &CteSearchClause) -> String {
    let order = match clause.search_breadth_first {
        true => "BREADTH",
        false => "DEPTH",
    };
    format!(
        " SEARCH {order} FIRST BY {} SET {}",
        listed(&clause.search_col_list),
        quote_identifier(&clause.search_seq_column)
    )
}

/// Names of columns.
fn listed(names: &[Node]) -> String {
    let names = strings(names).into_iter();
    let names: Vec<_> = names.map(quote_identifier).collect();
    names.join(", ")
}

fn is_bool(mark: &Expr, value: bool) -> bool {
    matches!(&mark.kind, ExprKind::Const(Datum::Bool(known), _) if *known == value)
}
