//! SEARCH and CYCLE of WITH RECURSIVE: columns that say how a row was reached.
//!
//! ```text
//! with recursive t(a) as (select 1 union all select a + 1 from t)
//!      search depth first by a set seq cycle a set looped using path
//! ```
//! is what one would write by hand, with both parts as queries in FROM:
//! ```text
//! select f.*, array[row(a)] as seq, false as looped, array[row(a)] as path from (select 1) f(a)
//! union all
//! select a, seq || array[row(a)], row(a) = any(path), path || array[row(a)]
//!   from (select a + 1, t.seq, t.looped, t.path from t) s(a, seq, looped, path) where not looped
//! ```
//! Breadth first, `seq` is the row `(steps so far, a)`.
//!
//! # Invariants
//! - In the step the new columns have their names, and are not among `*`.
//! - The step names the query in its own FROM, once.
//!
//! Source: PostgreSQL 15 manual, section 7.8.2.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{CommonTableExpr, Node, RangeVar, SelectStmt};

use super::expr::Place;
use super::scope::Scope;
use super::{inner, strings, Binder, OutputColumn};
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum};

/// The columns that SEARCH and CYCLE add, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Added {
    /// Those that are searched by, the column for them, and whether breadth comes first.
    search: Option<(Vec<usize>, String, bool)>,
    /// Those that tell a cycle, the column that says so, and that of the path.
    cycle: Option<(Vec<usize>, String, String)>,
}

/// Whether a query of WITH has one of them.
pub(super) fn has_either(cte: &CommonTableExpr) -> bool {
    cte.search_clause.is_some() || cte.cycle_clause.is_some()
}

impl Added {
    /// The names of the columns, in their order.
    pub(super) fn names(&self) -> Vec<String> {
        let search = self.search.iter().map(|search| search.1.clone());
        let cycle = self.cycle.iter();
        let cycle = cycle.flat_map(|cycle| [cycle.1.clone(), cycle.2.clone()]);
        search.chain(cycle).collect()
    }

    /// The first part with the columns.
    pub(super) fn first(
        &self,
        cte: &CommonTableExpr,
        first: &SelectStmt,
        columns: usize,
    ) -> Result<SelectStmt> {
        let mut text = "SELECT f.*".to_owned();
        if let Some((by, _, breadth)) = &self.search {
            text += &match breadth {
                true => format!(", ROW(0::int8, {})", places(by)),
                false => format!(", ARRAY[ROW({})]", places(by)),
            };
        }
        if let Some((by, _, _)) = &self.cycle {
            text += ", CASE WHEN false THEN NULL ELSE NULL END";
            text += &format!(", ARRAY[ROW({})]", places(by));
        }
        let all: Vec<usize> = (0..columns).collect();
        text += &format!(" FROM (SELECT) AS f({})", places(&all));
        let mut select = select_of(&text)?;
        if self.cycle.is_some() {
            let at = 1 + usize::from(self.search.is_some());
            put_marks(cte, &mut select, at)?;
        }
        put_query(&mut select, first)?;
        Ok(select)
    }

    /// The step with the columns.
    ///
    /// # Errors
    /// 0A000 where it does not name the query in its own FROM.
    pub(super) fn step(
        &self,
        cte: &CommonTableExpr,
        step: &SelectStmt,
        columns: usize,
    ) -> Result<SelectStmt> {
        let hides = step.with_clause.iter().flat_map(|with| &with.ctes);
        let mut hides = hides.filter_map(|item| inner(item).ok());
        let hidden = hides.any(
            |other| matches!(other, NodeEnum::CommonTableExpr(own) if own.ctename == cte.ctename),
        );
        let known = step.from_clause.iter();
        let known = known
            .filter_map(|item| reference(item, &cte.ctename))
            .next();
        let alias = known.filter(|_| !hidden).ok_or_else(|| {
            Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{}\" must be at the top level of its right-hand SELECT",
                    cte.ctename
                ),
            )
        })?;
        let mut step = step.clone();
        let added = self.names();
        let taken = added
            .iter()
            .map(|name| format!("{}.{}", quote_identifier(&alias), quote_identifier(name)));
        let taken = select_of(&format!("SELECT {}", taken.collect::<Vec<_>>().join(", ")))?;
        step.target_list.extend(taken.target_list);
        let all: Vec<usize> = (0..columns).collect();
        let mut text = format!("SELECT {}", places(&all));
        let mut names = places(&all);
        if let Some((by, _, breadth)) = &self.search {
            names += ", seq";
            text += &match breadth {
                true => format!(", ROW((s.seq).f1 + 1, {})", places(by)),
                false => format!(", s.seq || ARRAY[ROW({})]", places(by)),
            };
        }
        if let Some((by, _, _)) = &self.cycle {
            names += ", mark, path";
            let row = format!("ROW({})", places(by));
            text += &format!(", CASE WHEN {row} = ANY (s.path) THEN NULL ELSE NULL END");
            text += &format!(", s.path || ARRAY[{row}]");
        }
        text += &format!(" FROM (SELECT) AS s({names})");
        if self.cycle.is_some() {
            text += " WHERE s.mark <> NULL";
        }
        let mut select = select_of(&text)?;
        if let Some(clause) = cte.cycle_clause.as_deref() {
            put_marks(
                cte,
                &mut select,
                columns + usize::from(self.search.is_some()),
            )?;
            if let Some(NodeEnum::AExpr(test)) = select
                .where_clause
                .as_deref_mut()
                .and_then(|node| node.node.as_mut())
            {
                test.rexpr.clone_from(&clause.cycle_mark_value);
            }
        }
        put_query(&mut select, &step)?;
        Ok(select)
    }
}

impl Binder<'_> {
    /// # Errors
    /// 42601 for what is no recursion, 0A000 for parts that are not one SELECT each.
    pub(super) fn check_searched(
        &self,
        cte: &CommonTableExpr,
        parts: Option<(&SelectStmt, &SelectStmt)>,
    ) -> Result<()> {
        let Some((first, step)) = parts else {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "WITH query is not recursive",
                cte.location,
            ));
        };
        for (part, side, state) in [
            (first, "left", SqlState::FEATURE_NOT_SUPPORTED),
            (step, "right", SqlState::SYNTAX_ERROR),
        ] {
            if part.larg.is_some() {
                let message = format!(
                    "with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT"
                );
                return Err(Error::new(state, message));
            }
        }
        Ok(())
    }

    /// The columns that SEARCH and CYCLE add to those of the first part.
    ///
    /// # Errors
    /// 42601 and 42703 for names that fit neither, 42804 for marks of two kinds.
    pub(super) fn added_columns(
        &mut self,
        cte: &CommonTableExpr,
        columns: &[OutputColumn],
        parent: Option<&Scope<'_>>,
    ) -> Result<Added> {
        let mut added = Added::default();
        if let Some(clause) = &cte.search_clause {
            let by = self.listed(&clause.search_col_list, columns, "search", clause.location)?;
            let name = clause.search_seq_column.clone();
            self.check_new(columns, &name, "search sequence", clause.location)?;
            added.search = Some((by, name, clause.search_breadth_first));
        }
        if let Some(clause) = &cte.cycle_clause {
            let at = clause.location;
            let by = self.listed(&clause.cycle_col_list, columns, "cycle", at)?;
            self.check_marks(cte, parent)?;
            let (mark, path) = (&clause.cycle_mark_column, &clause.cycle_path_column);
            self.check_new(columns, mark, "cycle mark", at)?;
            self.check_new(columns, path, "cycle path", at)?;
            let search = added.search.as_ref().map(|search| &search.1);
            for (same, first, second) in [
                (mark == path, "cycle mark", "cycle path"),
                (search == Some(mark), "search sequence", "cycle mark"),
                (search == Some(path), "search sequence", "cycle path"),
            ] {
                if same {
                    let message =
                        format!("{first} column name and {second} column name are the same");
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
                }
            }
            added.cycle = Some((by, mark.clone(), path.clone()));
        }
        Ok(added)
    }

    /// The places of the columns that a clause names.
    fn listed(
        &self,
        names: &[Node],
        columns: &[OutputColumn],
        what: &str,
        location: i32,
    ) -> Result<Vec<usize>> {
        let names = strings(names);
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let place = columns.iter().position(|column| column.name == name);
            let Some(place) = place else {
                let message = format!("{what} column \"{name}\" not in WITH query column list");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, location));
            };
            if found.contains(&place) {
                let message = format!("{what} column \"{name}\" specified more than once");
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, location));
            }
            found.push(place);
        }
        Ok(found)
    }

    fn check_new(
        &self,
        columns: &[OutputColumn],
        name: &str,
        what: &str,
        location: i32,
    ) -> Result<()> {
        match columns.iter().any(|column| column.name == name) {
            false => Ok(()),
            true => Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("{what} column name \"{name}\" already used in WITH query column list"),
                location,
            )),
        }
    }

    fn check_marks(&mut self, cte: &CommonTableExpr, parent: Option<&Scope<'_>>) -> Result<()> {
        let Some(clause) = &cte.cycle_clause else {
            return Ok(());
        };
        let (Some(value), Some(default)) = (&clause.cycle_mark_value, &clause.cycle_mark_default)
        else {
            return Ok(());
        };
        let scope = Scope {
            parent,
            ..Scope::default()
        };
        let place = Place::plain("CYCLE");
        let value = self.expr(inner(value)?, &scope, place)?;
        let default = self.expr(inner(default)?, &scope, place)?;
        let common = functions::select_common_type(&[value.ty, default.ty], "CYCLE");
        let common = common.map_err(|error| self.place(error, default.leftmost()))?;
        self.check_equality(common, value.leftmost())
    }
}

/// Columns by their places, under the names that both queries in FROM give them.
fn places(places: &[usize]) -> String {
    let named: Vec<_> = places.iter().map(|place| format!("c{place}")).collect();
    named.join(", ")
}

/// A query that is written here.
fn select_of(text: &str) -> Result<SelectStmt> {
    let statements = parser::parse(text)?;
    match statements.first().map(|statement| statement.node()) {
        Some(NodeEnum::SelectStmt(select)) => Ok((**select).clone()),
        _ => Err(Error::internal("a query that is none")),
    }
}

/// Puts the marks of CYCLE in the place of what an expression gives.
fn put_marks(cte: &CommonTableExpr, select: &mut SelectStmt, at: usize) -> Result<()> {
    let lacking = || Error::internal("CYCLE without a mark");
    let clause = cte.cycle_clause.as_deref().ok_or_else(lacking)?;
    let target = select.target_list.get_mut(at).ok_or_else(lacking)?;
    let Some(NodeEnum::ResTarget(target)) = &mut target.node else {
        return Err(lacking());
    };
    let case = target.val.as_deref_mut().and_then(|val| val.node.as_mut());
    let Some(NodeEnum::CaseExpr(case)) = case else {
        return Err(lacking());
    };
    case.defresult.clone_from(&clause.cycle_mark_default);
    if let Some(NodeEnum::CaseWhen(when)) = case.args.first_mut().and_then(|arg| arg.node.as_mut())
    {
        when.result.clone_from(&clause.cycle_mark_value);
    }
    Ok(())
}

/// Puts a query in the place of the one in FROM.
fn put_query(select: &mut SelectStmt, query: &SelectStmt) -> Result<()> {
    let item = select.from_clause.first_mut();
    match item.and_then(|item| item.node.as_mut()) {
        Some(NodeEnum::RangeSubselect(item)) => {
            let node = NodeEnum::SelectStmt(Box::new(query.clone()));
            item.subquery = Some(Box::new(Node { node: Some(node) }));
            Ok(())
        }
        _ => Err(Error::internal("FROM without a query")),
    }
}

/// The name under which an item of FROM, or a part of it, has the rows of a query of WITH.
fn reference(item: &Node, name: &str) -> Option<String> {
    match item.node.as_ref()? {
        NodeEnum::RangeVar(range) => is_it(range, name).then(|| match &range.alias {
            Some(alias) => alias.aliasname.clone(),
            None => range.relname.clone(),
        }),
        NodeEnum::JoinExpr(join) => {
            let sides = [join.larg.as_deref(), join.rarg.as_deref()];
            let mut sides = sides.into_iter().flatten();
            sides.find_map(|side| reference(side, name))
        }
        _ => None,
    }
}

fn is_it(range: &RangeVar, name: &str) -> bool {
    range.schemaname.is_empty() && range.relname == name
}
