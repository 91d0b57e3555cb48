//! WITH: queries under a name, those that refer to themselves, and statements that write.
//!
//! ```text
//! with recursive n(x) as (values (1) union all select x + 1 from n where x < 5) select * from n
//! ```
//! becomes `Recursive { first: values, step: project x + 1 of (filter of Working) }`: the first part
//! gives rows, the step is run over the rows that the last run gave, until one gives none.
//!
//! A statement that writes is run once, whether or not its rows are asked for: the whole becomes a
//! [`Plan::With`] that sees to those nobody asked for.
//!
//! With RECURSIVE a query may name later ones, which are bound before it ([`super::naming::in_order`]).
//!
//! # What it leaves out
//! Queries that refer to one another, which PostgreSQL refuses too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CommonTableExpr, Node, RangeVar, SelectStmt, SetOperation as SetOp, WithClause,
};

use super::inline::{is_inline, Inline};
use super::naming::{in_order, names_in, parts_of};
use super::rule::Alone;
use super::scope::Scope;
use super::search_cycle::{self, Added};
use super::select::{Body, Query};
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::plan::{narrow_below, Plan, Recursive};
use syntax::parser::NodeEnum;
use types::{format_type, TypeId, NO_TYPMOD};

/// A query of WITH.
#[derive(Clone, Debug)]
pub struct Cte {
    /// Its name.
    pub name: String,
    /// Where it stands.
    location: i32,
    /// Its columns; none of a statement without RETURNING.
    pub columns: Option<Vec<OutputColumn>>,
    /// Its rows.
    rows: CteRows,
    /// How many of its columns `*` means.
    listed: usize,
}

#[derive(Clone, Debug)]
enum CteRows {
    /// Those of a plan that runs once, under a number.
    Plan(usize, Rc<Plan>),
    /// Those of a query that is read where it is named.
    Inline(Rc<Inline>),
    /// Those that the last step of the recursion at work gave; how often they are named, and how
    /// deep in subqueries they may be.
    Working(usize, Rc<Cell<usize>>, usize),
    /// It is being bound, and cannot be named here, for this reason.
    Refused(&'static str),
}

impl Binder<'_> {
    /// Binds WITH of a statement with these parts; its queries are known until
    /// [`Binder::forget_ctes`].
    pub(super) fn with_clause<'n>(
        &mut self,
        with: Option<&WithClause>,
        parts: impl FnOnce() -> Vec<&'n Node>,
        parent: Option<&Scope<'_>>,
    ) -> Result<usize> {
        let before = self.ctes.len();
        let Some(with) = with else {
            return Ok(before);
        };
        let mut escapes = false;
        let names = names_in(&parts());
        let mut items = Vec::with_capacity(with.ctes.len());
        for item in &with.ctes {
            let NodeEnum::CommonTableExpr(cte) = inner(item)? else {
                continue;
            };
            if items
                .iter()
                .any(|other: &&CommonTableExpr| other.ctename == cte.ctename)
            {
                return Err(self.error(
                    SqlState::DUPLICATE_ALIAS,
                    format!(
                        "WITH query name \"{}\" specified more than once",
                        cte.ctename
                    ),
                    cte.location,
                ));
            }
            items.push(&**cte);
        }
        if with.recursive {
            items = in_order(items).map_err(|cte| {
                let message = "mutual recursion between WITH items is not implemented";
                self.error(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    message.to_owned(),
                    cte.location,
                )
            })?;
        }
        let ahead = self.ctes_ahead.len();
        for (place, cte) in items.iter().enumerate() {
            if !with.recursive {
                let names = items[place..].iter().map(|cte| cte.ctename.clone());
                self.ctes_ahead.extend(names);
            }
            let bound = self.one_of_with(cte, with.recursive, &names, parent);
            self.ctes_ahead.truncate(ahead);
            let (bound, bound_escapes) = bound?;
            escapes |= bound_escapes;
            self.ctes.push(bound);
        }
        self.with_escapes = escapes;
        Ok(before)
    }

    /// A query of WITH, and whether it looks at rows of enclosing queries.
    fn one_of_with(
        &mut self,
        cte: &CommonTableExpr,
        recursive: bool,
        names: &[String],
        parent: Option<&Scope<'_>>,
    ) -> Result<(Cte, bool)> {
        if search_cycle::has_either(cte) && !recursive {
            self.check_searched(cte, None)?;
        }
        match boxed(&cte.ctequery)? {
            NodeEnum::SelectStmt(select) if recursive => {
                self.perhaps_recursive(cte, select, names, parent)
            }
            NodeEnum::SelectStmt(select) => self.plain_cte(cte, select, names, parent),
            statement => Ok((self.writing_cte(cte, statement, parent)?, false)),
        }
    }

    /// What is said of a relation that there is none of, where a query of WITH is called so that cannot be
    /// named yet.
    pub(super) fn ahead(&self, range: &RangeVar, error: Error) -> Error {
        let name = &range.relname;
        let is_missing = error.state() == SqlState::UNDEFINED_TABLE && range.schemaname.is_empty();
        match is_missing && self.ctes_ahead.contains(name) {
            false => error,
            true => error
                .with_detail(format!(
                    "There is a WITH item named \"{name}\", but it cannot be referenced from this part \
                     of the query."
                ))
                .with_hint(
                    "Use WITH RECURSIVE, or re-order the WITH items to remove forward references.",
                ),
        }
    }

    /// Forgets the queries of WITH that came after `before`.
    pub(super) fn forget_ctes(&mut self, before: usize) {
        self.ctes.truncate(before);
    }

    /// A number for the rows of a plan that runs once.
    pub(super) fn next_number(&mut self) -> usize {
        self.subqueries += 1;
        self.subqueries
    }

    fn plain_cte(
        &mut self,
        cte: &CommonTableExpr,
        select: &SelectStmt,
        names: &[String],
        parent: Option<&Scope<'_>>,
    ) -> Result<(Cte, bool)> {
        let query = self.select(select, parent)?;
        let columns = Some(self.with_names(cte, query.columns.clone())?);
        let escapes = query.escapes;
        let is_step = |cte: &Cte| matches!(cte.rows, CteRows::Working(..));
        let inline = is_inline(cte, &query, names) && !self.ctes.iter().any(is_step);
        let rows = match inline {
            true => CteRows::Inline(Rc::new(Inline {
                select: select.clone(),
                bound: RefCell::new(Some(query)),
                known: self.ctes.len(),
            })),
            false => {
                let mut plan = self.plan_of(query.body)?;
                narrow_below(&mut plan);
                CteRows::Plan(self.next_number(), Rc::new(plan))
            }
        };
        let bound = Cte {
            name: cte.ctename.clone(),
            location: cte.location,
            columns,
            rows,
            listed: usize::MAX,
        };
        Ok((bound, escapes))
    }

    /// The rows of a query that is read where it is named.
    fn inlined(&mut self, inline: &Inline) -> Result<Body> {
        if let Some(query) = inline.bound.take() {
            return Ok(query.body);
        }
        let later = self.ctes.split_off(inline.known);
        let query = self.select(&inline.select, None);
        self.ctes.truncate(inline.known);
        self.ctes.extend(later);
        Ok(query?.body)
    }

    fn with_names(
        &self,
        cte: &CommonTableExpr,
        mut columns: Vec<OutputColumn>,
    ) -> Result<Vec<OutputColumn>> {
        let names = strings(&cte.aliascolnames);
        if names.len() > columns.len() {
            return Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "WITH query \"{}\" has {} columns available but {} columns specified",
                    cte.ctename,
                    columns.len(),
                    names.len()
                ),
                cte.location,
            ));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.name = name.to_owned();
        }
        Ok(columns)
    }

    /// INSERT, UPDATE or DELETE.
    fn writing_cte(
        &mut self,
        cte: &CommonTableExpr,
        statement: &NodeEnum,
        parent: Option<&Scope<'_>>,
    ) -> Result<Cte> {
        if parent.is_some() || self.query_depth > 1 || self.inside_with {
            return Err(self.error(
                SqlState::FEATURE_NOT_SUPPORTED,
                "WITH clause containing a data-modifying statement must be at the top level",
                cte.location,
            ));
        }
        self.inside_with = true;
        let written = match statement {
            NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_) => {
                self.written_statement(statement, Some(Alone::With))
            }
            NodeEnum::MergeStmt(_) => Err(self.error(
                SqlState::FEATURE_NOT_SUPPORTED,
                "MERGE not supported in WITH query",
                cte.location,
            )),
            _ => Err(self.unsupported("this statement in WITH", cte.location)),
        };
        self.inside_with = false;
        let (mut plan, columns, _) = written?;
        narrow_below(&mut plan);
        let (plan, number) = (Rc::new(plan), self.next_number());
        self.writing.push((number, plan.clone()));
        let columns = match columns.is_empty() {
            true => None,
            false => Some(self.with_names(cte, columns)?),
        };
        Ok(Cte {
            name: cte.ctename.clone(),
            location: cte.location,
            columns,
            rows: CteRows::Plan(number, plan),
            listed: usize::MAX,
        })
    }

    /// A query that may name itself.
    fn perhaps_recursive(
        &mut self,
        cte: &CommonTableExpr,
        select: &SelectStmt,
        names: &[String],
        parent: Option<&Scope<'_>>,
    ) -> Result<(Cte, bool)> {
        let (Ok(SetOp::SetopUnion), Some(larg), Some(rarg)) =
            (SetOp::try_from(select.op), &select.larg, &select.rarg)
        else {
            let form = "does not have the form non-recursive-term UNION [ALL] recursive-term";
            let plain = self.refusing(cte, form, |binder| {
                binder.plain_cte(cte, select, names, parent)
            })?;
            if search_cycle::has_either(cte) {
                self.check_searched(cte, None)?;
            }
            return Ok(plain);
        };
        let known = self.ctes.len();
        self.with_clause(select.with_clause.as_ref(), || parts_of(select), parent)?;
        if search_cycle::has_either(cte) {
            self.check_searched(cte, Some((larg, rarg)))?;
        }
        let within = "must not appear within its non-recursive term";
        let mut first = self.refusing(cte, within, |binder| binder.select(larg, parent))?;
        let mut columns = self.with_names(cte, first.columns.clone())?;
        let listed = columns.len();
        let mut added_step = None;
        if search_cycle::has_either(cte) {
            let added = self.added_columns(cte, &columns, parent)?;
            added_step = Some(added.step(cte, rarg, listed)?);
            first = self.with_added(cte, &added, (larg, within), &mut columns, parent)?;
        }
        let rarg = added_step.as_ref().unwrap_or(rarg);
        let number = self.next_number();
        let named = Rc::new(Cell::new(0));
        self.ctes.push(Cte {
            name: cte.ctename.clone(),
            location: cte.location,
            columns: Some(columns.clone()),
            rows: CteRows::Working(number, named.clone(), self.sublinks),
            listed,
        });
        let begun = self.subqueries;
        let step = self.running_once(false, |binder| binder.select(rarg, parent));
        self.forget_ctes(known);
        if named.get() == 0 && search_cycle::has_either(cte) {
            self.check_searched(cte, None)?;
        }
        if named.get() == 0 {
            // Its error, if any, is found again.
            return self.plain_cte(cte, select, names, parent);
        }
        let step = step?;
        let escapes = first.escapes || step.escapes;
        self.refuse_clauses(select)?;
        let types = self.check_step(cte, &first, &step)?;
        if !select.all && !types.iter().all(|ty| ty.is_hashable()) {
            let message = "could not implement recursive UNION";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail("All column datatypes must be hashable."));
        }
        let mut step_plan = self.as_types(step.body, &step.columns, &step.literals, &types)?;
        let mut first_plan = self.plan_of(first.body)?;
        narrow_below(&mut first_plan);
        narrow_below(&mut step_plan);
        let recursive = Recursive {
            number,
            all: select.all,
            first: Rc::new(first_plan),
            step: Rc::new(step_plan),
            inside: begun + 1..self.subqueries + 1,
            types,
        };
        let bound = Cte {
            name: cte.ctename.clone(),
            location: cte.location,
            columns: Some(columns),
            rows: CteRows::Plan(number, Rc::new(Plan::Recursive(Box::new(recursive)))),
            listed: usize::MAX,
        };
        Ok((bound, escapes))
    }

    /// The first part of a recursion with what SEARCH and CYCLE add, which comes behind its columns.
    fn with_added(
        &mut self,
        cte: &CommonTableExpr,
        added: &Added,
        (first, within): (&SelectStmt, &'static str),
        columns: &mut Vec<OutputColumn>,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        let select = added.first(cte, first, columns.len())?;
        let first = self.refusing(cte, within, |binder| binder.select(&select, parent))?;
        let further = first.columns.iter().skip(columns.len()).zip(added.names());
        let further = further.map(|(column, name)| OutputColumn {
            name,
            ..column.clone()
        });
        let further: Vec<_> = further.collect();
        columns.extend(further);
        Ok(first)
    }

    /// 0A000 for what a recursion as a whole cannot have.
    fn refuse_clauses(&self, select: &SelectStmt) -> Result<()> {
        let sort = select.sort_clause.first().map(|sort| match inner(sort) {
            Ok(NodeEnum::SortBy(sort)) => sort.node.as_deref().map_or(-1, location_of),
            _ => -1,
        });
        let offset = select.limit_offset.as_deref().map(location_of);
        let limit = select.limit_count.as_deref().map(location_of);
        let locking = (!select.locking_clause.is_empty()).then_some(-1);
        for (given, what) in [
            (sort, "ORDER BY"),
            (offset, "OFFSET"),
            (limit, "LIMIT"),
            (locking, "FOR UPDATE/SHARE"),
        ] {
            if let Some(location) = given {
                return Err(self.error(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("{what} in a recursive query is not implemented"),
                    location,
                ));
            }
        }
        Ok(())
    }

    /// The types of a recursion's columns: those of its first part, which the step must have too.
    fn check_step(
        &self,
        cte: &CommonTableExpr,
        first: &Query,
        step: &Query,
    ) -> Result<Vec<TypeId>> {
        if first.columns.len() != step.columns.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
                step.locations.iter().copied().min().unwrap_or(-1),
            ));
        }
        let mut types = Vec::new();
        for (place, (a, b)) in first.columns.iter().zip(&step.columns).enumerate() {
            types.push(a.ty);
            if step.literals[place].is_some() {
                continue;
            }
            let common = functions::select_common_type(&[a.ty, b.ty], "UNION")
                .map_err(|error| self.place(error, step.locations[place]))?;
            let typmod = match a.typmod == b.typmod || a.ty == TypeId::RECORD {
                true => a.typmod,
                false => NO_TYPMOD,
            };
            if (common, typmod) != (a.ty, a.typmod) {
                return Err(self
                    .error(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "recursive query \"{}\" column {} has type {} in non-recursive term \
                             but type {} overall",
                            cte.ctename,
                            place + 1,
                            format_type(a.ty, a.typmod),
                            format_type(common, typmod)
                        ),
                        first.locations[place],
                    )
                    .with_hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        Ok(types)
    }

    /// Binds something in which the query cannot be named.
    fn refusing<T>(
        &mut self,
        cte: &CommonTableExpr,
        why: &'static str,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.ctes.push(Cte {
            name: cte.ctename.clone(),
            location: cte.location,
            columns: Some(Vec::new()),
            rows: CteRows::Refused(why),
            listed: usize::MAX,
        });
        let place = self.ctes.len() - 1;
        let bound = bind(self);
        self.ctes.remove(place);
        bound
    }

    /// The query of WITH that a name in FROM means: its rows and columns, and how many of these `*`
    /// means there.
    pub(super) fn query_of_with(
        &mut self,
        range: &RangeVar,
    ) -> Result<Option<(Body, Vec<OutputColumn>, usize)>> {
        if !range.schemaname.is_empty() {
            return Ok(None);
        }
        let mut ctes = self.ctes.iter().rev();
        let Some(cte) = ctes.find(|cte| cte.name == range.relname).cloned() else {
            return Ok(None);
        };
        let as_planned = |plan| Body::Plan(Box::new(plan));
        let body = match cte.rows {
            CteRows::Plan(number, plan) => as_planned(Plan::Shared(number, plan)),
            CteRows::Inline(inline) => self.inlined(&inline)?,
            CteRows::Refused(why) => {
                let location = match why.starts_with("does") {
                    true => cte.location,
                    false => range.location,
                };
                return Err(self.recursive(&cte.name, why, location));
            }
            CteRows::Working(number, named, sublinks) => {
                let times = named.get();
                named.set(times + 1);
                let why = if self.sublinks > sublinks {
                    "must not appear within a subquery"
                } else if self.nullable > 0 {
                    "must not appear within an outer join"
                } else if times > 0 {
                    "must not appear more than once"
                } else {
                    ""
                };
                if !why.is_empty() {
                    {
                        let location = match why.starts_with("does") {
                            true => cte.location,
                            false => range.location,
                        };
                        return Err(self.recursive(&cte.name, why, location));
                    };
                }
                as_planned(Plan::Working(number))
            }
        };
        match cte.columns {
            Some(columns) => Ok(Some((body, columns, cte.listed))),
            None => Err(self.error(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "WITH query \"{}\" does not have a RETURNING clause",
                    cte.name
                ),
                range.location,
            )),
        }
    }

    fn recursive(&self, name: &str, why: &str, location: i32) -> Error {
        let message = match why.starts_with("does") {
            true => format!("recursive query \"{name}\" {why}"),
            false => format!("recursive reference to query \"{name}\" {why}"),
        };
        self.error(SqlState::of("42P19"), message, location)
    }
}

/// Where a constant or a column stands, or -1.
fn location_of(node: &pg_query::protobuf::Node) -> i32 {
    match &node.node {
        Some(NodeEnum::AConst(constant)) => constant.location,
        Some(NodeEnum::ColumnRef(column)) => column.location,
        _ => -1,
    }
}
