//! The columns that `*` and `t.*` mean.
//!
//! ```text
//! select * from a join b using (k), c       k, the others of a, those of b, those of c
//! select a.* from a join b using (k)        all of a
//! … from t, lateral (select t.*) s          those of an item of an enclosing query
//! ```
//! An argument of a function in SQL that is of a composite type has its fields so, too, where no item has its
//! name. Where the item of `t.*` belongs to an enclosing query, its columns are those of that query's row, as they are
//! where they are named one by one.

use base::{Result, SqlState};

use super::scope::{output, Scope, ScopeTable};
use super::{Binder, OutputColumn};
use crate::plan::Expr;
use catalog::view::BY_OID;

impl Scope<'_> {
    /// The columns that `*` means.
    pub(super) fn push_all(&self, location: i32, out: &mut Vec<(Expr, OutputColumn)>) {
        for (place, table) in self.tables.iter().enumerate() {
            for column in self.merged.iter().filter(|merged| merged.before == place) {
                self.mark(&column.expr);
                let described = output(&column.name, &column.expr, (0, 0));
                out.push((column.expr.clone(), described));
            }
            if !table.qualified_only {
                push_columns(self, table, false, location, out);
            }
        }
    }
}

impl Binder<'_> {
    /// The columns that `*` means, or, with the names before it, `t.*` or `s.t.*`.
    ///
    /// # Errors
    /// 42P01 for an item that there is neither here nor in an enclosing query, 42P10 for one that cannot be named
    /// here; those of [`Binder::check_qualified`].
    pub(super) fn star(
        &mut self,
        names: &[&str],
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Vec<(Expr, OutputColumn)>> {
        let mut out = Vec::new();
        let Some((alias, before)) = names.split_last() else {
            scope.push_all(location, &mut out);
            if scope.tables.is_empty() {
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    "SELECT * with no tables specified is not valid",
                    location,
                ));
            }
            self.looks_at_all(&out);
            return Ok(out);
        };
        if !self.stored {
            self.check_qualified(names, location)?;
        }
        // Stored text has names that schemas had once.
        let schema = before.last().copied().filter(|_| !self.stored);
        let is_argument = self.stored && before == [BY_OID];
        if let Some(level) = scope.levels().next().filter(|_| !is_argument) {
            self.check_one_called(level, schema, alias, location)?;
        }
        let mut levels = scope.levels().enumerate().filter(|_| !is_argument);
        let found = levels.find_map(|(depth, level)| {
            let mut tables = level.tables.iter();
            let item = tables.find(|item| self.is_called(item, schema, alias))?;
            Some((depth, level, item))
        });
        let Some((depth, level, item)) = found else {
            return match self.composite_variable(names, location) {
                Some(value) => self.spread_value(value, location),
                None => Err(self.missing_table(alias, scope, location)),
            };
        };
        self.check_may_name(level, item, location)?;
        push_columns(level, item, true, location, &mut out);
        if depth > 0 {
            out.iter_mut()
                .for_each(|(expr, _)| level.show_inside(expr, depth));
            scope
                .levels()
                .take(depth)
                .for_each(|inner| inner.escapes.set(true));
        }
        self.looks_at_all(&out);
        Ok(out)
    }

    /// # Errors
    /// 0A000 for the name of another database before `s.t.*`, 42601 for more names than that.
    fn check_qualified(&self, names: &[&str], location: i32) -> Result<()> {
        let (state, message) = match names {
            [_, _, _, _, ..] => (
                SqlState::SYNTAX_ERROR,
                "improper qualified name (too many dotted names)",
            ),
            [database, _, _] if *database != self.cx.catalog.database.name => (
                SqlState::FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented",
            ),
            _ => return Ok(()),
        };
        let message = format!("{message}: {}.*", names.join("."));
        Err(self.error(state, message, location))
    }

    pub(super) fn looks_at_all(&mut self, columns: &[(Expr, OutputColumn)]) {
        columns
            .iter()
            .for_each(|(_, column)| self.looks_at(column.origin));
    }
}

fn push_columns(
    scope: &Scope<'_>,
    table: &ScopeTable,
    hidden_too: bool,
    location: i32,
    out: &mut Vec<(Expr, OutputColumn)>,
) {
    for (place, column) in table.columns.iter().enumerate() {
        let passed_over = column.unlisted || column.hidden && !hidden_too;
        if column.name.is_empty() || passed_over {
            continue;
        }
        let expr = scope.column_expr(table, place, location);
        let described = output(&column.name, &expr, column.origin);
        out.push((expr, described));
    }
}
