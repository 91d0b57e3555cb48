//! Relations of `pg_catalog` and `information_schema` in FROM.

use std::sync::Arc;

use base::{Error, Result};

use super::{BindContext, Binder};
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
        // Its text is none that the catalog keeps, and what it names is not named in a view that is made.
        let recorded = self.recorded.take();
        let stored = std::mem::take(&mut self.stored);
        let positional = std::mem::take(&mut self.positional);
        let noted = self.noted.take();
        let using_first = std::mem::take(&mut self.using_first);
        let nullable = std::mem::take(&mut self.nullable);
        let query = self.below(table, |binder| binder.select(select, None));
        self.nullable = nullable;
        self.noted = noted;
        self.using_first = using_first;
        self.positional = positional;
        self.stored = stored;
        self.recorded = recorded;
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
        Ok(super::project_set::projection(
            self.plan_of(query.body)?,
            &outputs,
        ))
    }
}
