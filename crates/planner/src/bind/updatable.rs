//! Views that are no more than a selection of one table: read in its place, and written through.
//!
//! ```text
//! create view v as select b as x, a + 1 as y from t where c > 0
//! select x from v where y = 3      is   select b from t where c > 0 and a + 1 = 3
//! update v set x = 5 where y = 3   is   update t set b = 5 where c > 0 and a + 1 = 3
//! ```
//!
//! Names of the view's columns become expressions over the table's row ([`ScopeTable::exprs`]), so
//! that the table's keys and indexes serve conditions on the view. A view of such a view is one too, and
//! what is written through one to a view with INSTEAD OF triggers is for these to write.
//!
//! # What it leaves out
//! A view that is read is not taken apart this way where its query sorts, locks, calls volatile
//! functions or looks at its row from within a subquery; it is then a query of its own.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{Alias, RangeVar, SelectStmt, SetOperation};

use super::from::{as_meant, reads};
use super::given::refused_insert;
use super::scope::{table_columns, Scope, ScopeTable};
use super::view::query_of_text;
use super::{inner, Binder};
use crate::logical::{conjuncts, Source};
use crate::plan::permit::Required;
use crate::plan::{compile, Program};
use crate::plan::{Expr, ExprKind};
use catalog::access::Guarded;
use catalog::access::Privileges;
use catalog::sql_body::Known;
use catalog::trigger::Events;
use catalog::{CheckOption, Identity, RelationKind, Table};
use syntax::parser::NodeEnum;

/// What such a view is, over the row of its table.
#[derive(Clone, Debug)]
pub(super) struct Simple {
    /// The table, or the view at which one stopped.
    pub base: Arc<Table>,
    /// The view's columns.
    columns: Vec<Expr>,
    /// The role that its table is used as, if not whoever runs the statement.
    checked_as: Option<u32>,
    /// What rows meet that it shows, tested before anything of those around it may look at them.
    guards: Vec<Expr>,
    /// What they meet besides.
    conditions: Vec<Expr>,
    /// The conditions that written rows are checked against: the view's name, and the condition.
    checks: Vec<(String, Expr)>,
    /// Whether it can be read in this way.
    readable: bool,
    /// The views between this one and the table, this one's own first.
    between: Vec<Between>,
    /// Why no row can be put into it: this view, or one between, has a default for a column that takes
    /// none.
    misplaced_default: Option<Error>,
}

/// A view that is written through because another one shows it.
#[derive(Clone, Debug)]
struct Between {
    view: Arc<Table>,
    /// The role that it is used as, if not whoever runs the statement.
    checked_as: Option<u32>,
    /// The places in it of the columns of the one above that is meant.
    columns: Vec<Option<usize>>,
}

/// Why a view is no such view.
type Detail = &'static str;

/// Whether a view below another is not looked through.
type Stops<'s> = &'s dyn Fn(&Table) -> bool;

/// What a statement writes to.
#[derive(Clone, Debug)]
pub(super) struct Writable {
    /// The table whose rows are written, or the view in whose place triggers or rules write.
    pub base: Arc<Table>,
    /// The view that is named instead.
    view: Option<(Arc<Table>, Rc<Simple>)>,
    /// What those whose views stand in between need to read, if the statement reads what is named.
    pub reads: Vec<Required>,
    /// What that and its columns are called, if not as they are now.
    called: Option<Known>,
}

/// What is done to a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Insert,
    Update,
    Delete,
}

impl Verb {
    pub(super) fn event(self) -> Events {
        match self {
            Verb::Insert => Events::INSERT,
            Verb::Update => Events::UPDATE,
            Verb::Delete => Events::DELETE,
        }
    }

    /// As in `cannot insert into view`.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Verb::Insert => ("insert into", "inserting into", "INSERT"),
            Verb::Update => ("update", "updating", "UPDATE"),
            Verb::Delete => ("delete from", "deleting from", "DELETE"),
        }
    }
}

impl Writable {
    pub(super) fn table(base: Arc<Table>) -> Writable {
        Writable {
            base,
            view: None,
            reads: Vec::new(),
            called: None,
        }
    }

    /// The same, where what is named and its columns are called so.
    pub(super) fn called(self, called: Option<Known>) -> Writable {
        Writable { called, ..self }
    }

    /// What the columns of what is named are called, by place; nothing for one that cannot be named.
    pub(super) fn column_names(&self) -> Vec<String> {
        let columns = self.named().columns.iter().enumerate();
        let name = |(place, column): (usize, &catalog::Column)| match &self.called {
            _ if column.dropped => String::new(),
            None => column.name.clone(),
            Some(called) => called.columns.get(place).cloned().unwrap_or_default(),
        };
        columns.map(name).collect()
    }

    /// What is named is called so where it has no alias.
    pub(super) fn name(&self) -> &str {
        let called = self.called.as_ref();
        called.map_or(&self.named().name, |called| &called.name)
    }

    /// The relations below the view that is named through which one of its columns is written, with
    /// its place there, and the role that each is used as; `named` is the one that names the view.
    pub(super) fn columns_below(
        &self,
        place: usize,
        named: Option<u32>,
    ) -> Vec<(Arc<Table>, usize, Option<u32>)> {
        let Some((_, simple)) = &self.view else {
            return Vec::new();
        };
        let mut below = Vec::new();
        for between in &simple.between {
            if let Some(Some(there)) = between.columns.get(place) {
                below.push((between.view.clone(), *there, between.checked_as));
            }
        }
        let base = self.place_below(place);
        below.extend(base.map(|there| (self.base.clone(), there, self.checked_as(named))));
        below
    }

    /// The relation that was named.
    pub(super) fn named(&self) -> &Arc<Table> {
        self.view.as_ref().map_or(&self.base, |view| &view.0)
    }

    /// Its columns as an item of FROM that begins at a place of the row.
    pub(super) fn item(&self, alias: &str, start: usize) -> ScopeTable {
        let named = self.named();
        let mut columns = table_columns(named);
        if self.called.is_some() {
            for (column, name) in columns.iter_mut().zip(self.column_names()) {
                column.name = name;
            }
        }
        ScopeTable {
            table: Some(named.clone()),
            needed: Some(Rc::new(RefCell::new(vec![false; self.base.columns.len()]))),
            exprs: self
                .view
                .as_ref()
                .map(|(_, simple)| moved(&simple.columns, start)),
            ..ScopeTable::of(alias.to_owned(), columns, start)
        }
    }

    /// The scope in which its columns are named.
    pub(super) fn scope(&self, alias: &str) -> Scope<'static> {
        Scope {
            tables: vec![self.item(alias, 0)],
            ..Scope::default()
        }
    }

    /// The places of its columns in the table's row; none for what is no column of the table.
    pub(super) fn places(&self) -> Vec<(String, Option<usize>)> {
        let names = self.column_names().into_iter().enumerate();
        names
            .filter(|(_, name)| !name.is_empty())
            .map(|(at, name)| {
                let place = match &self.view {
                    None => Some(at),
                    Some((_, simple)) => place_of(&simple.columns[at]),
                };
                (name, place)
            })
            .collect()
    }

    /// The place in the table of a column of the view that is named, if it is one of the table's.
    pub(super) fn place_below(&self, place: usize) -> Option<usize> {
        let (_, simple) = self.view.as_ref()?;
        place_of(simple.columns.get(place)?)
    }

    /// Whether a relation is the table, or a view in between.
    fn is_through(&self, relation: u32) -> bool {
        let view = self.view.iter();
        let mut between = view.flat_map(|(_, simple)| &simple.between);
        self.base.oid == relation || between.any(|between| between.view.oid == relation)
    }

    /// The role that the table is used as, if not whoever runs the statement; `named` is the one that
    /// names it.
    pub(super) fn checked_as(&self, named: Option<u32>) -> Option<u32> {
        let view = self.view.as_ref();
        view.map_or(named, |(_, simple)| simple.checked_as)
    }

    /// What rows meet that can be written through it, before anything else looks at them.
    pub(super) fn guards(&self) -> Vec<Expr> {
        let view = self.view.as_ref();
        view.map_or_else(Vec::new, |(_, simple)| simple.guards.clone())
    }

    /// What they meet besides.
    pub(super) fn conditions(&self) -> Vec<Expr> {
        self.view
            .as_ref()
            .map_or_else(Vec::new, |(_, simple)| simple.conditions.clone())
    }

    /// What the columns of the view that is named are over the row of the table, if it is a view.
    pub(super) fn columns_over_base(&self) -> Option<&[Expr]> {
        self.view
            .as_ref()
            .map(|(_, simple)| simple.columns.as_slice())
    }

    /// The conditions of WITH CHECK OPTION.
    pub(super) fn checks(&self) -> Vec<(String, Program)> {
        let checks = self.view.iter().flat_map(|(_, simple)| &simple.checks);
        checks
            .map(|(name, condition)| (name.clone(), compile(condition)))
            .collect()
    }

    /// 0A000 for a column of a view that is no column of its table.
    pub(super) fn not_writable(&self, column: &str, verb: Verb) -> Error {
        no_column_below(&self.named().name, column, verb)
    }
}

/// 0A000 for a column of a view that is none of its table.
fn no_column_below(view: &str, column: &str, verb: Verb) -> Error {
    let message = format!(
        "cannot {} column \"{column}\" of view \"{view}\"",
        verb.words().0
    );
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_detail("View columns that are not columns of their base relation are not updatable.")
}

/// The table of a view, with the defaults that the view's columns have of their own.
fn with_defaults(simple: &Simple, view: &Table) -> Arc<Table> {
    let own = view.columns.iter().zip(simple.columns.iter());
    let own = own.filter(|(column, _)| column.default.is_some());
    let own: Vec<_> = own
        .filter_map(|(column, expr)| Some((place_of(expr)?, column)))
        .collect();
    if own.is_empty() {
        return simple.base.clone();
    }
    let mut base = (*simple.base).clone();
    for (place, column) in own {
        let below = &mut base.columns[place];
        if !below.generated && below.identity == Identity::None {
            below.default.clone_from(&column.default);
            below.default_uses.clone_from(&column.default_uses);
        }
    }
    Arc::new(base)
}

pub(super) fn place_of(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(place) => Some(place),
        _ => None,
    }
}

/// The expressions over a row in which theirs begins at `by`.
fn moved(exprs: &[Expr], by: usize) -> Rc<Vec<Expr>> {
    fn shift(expr: &mut Expr, by: usize) {
        if let ExprKind::Column(place) = &mut expr.kind {
            *place += by;
        }
        for part in expr.parts_mut() {
            shift(part, by);
        }
    }
    let mut exprs = exprs.to_vec();
    exprs.iter_mut().for_each(|expr| shift(expr, by));
    Rc::new(exprs)
}

/// Why a query can be no such view, as far as its clauses say.
pub(super) fn clause_in_the_way(select: &SelectStmt) -> Option<Detail> {
    let is_set = !matches!(
        SetOperation::try_from(select.op),
        Ok(SetOperation::SetopNone | SetOperation::Undefined)
    );
    let limited = select.limit_count.is_some() || select.limit_offset.is_some();
    let refused = [
        (
            !select.distinct_clause.is_empty(),
            "Views containing DISTINCT are not automatically updatable.",
        ),
        (
            !select.group_clause.is_empty(),
            "Views containing GROUP BY are not automatically updatable.",
        ),
        (
            select.having_clause.is_some(),
            "Views containing HAVING are not automatically updatable.",
        ),
        (
            is_set,
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        ),
        (
            select.with_clause.is_some(),
            "Views containing WITH are not automatically updatable.",
        ),
        (
            limited,
            "Views containing LIMIT or OFFSET are not automatically updatable.",
        ),
    ];
    let found = refused.into_iter().find(|refused| refused.0)?;
    Some(found.1)
}

const NOT_ONE_TABLE: Detail =
    "Views that do not select from a single table or view are not automatically updatable.";

/// The relation that a query selects from, if that is one alone.
pub(super) fn only_relation(select: &SelectStmt) -> Result<Option<&RangeVar>> {
    let [item] = select.from_clause.as_slice() else {
        return Ok(None);
    };
    Ok(match inner(item)? {
        NodeEnum::RangeVar(range) => Some(range),
        _ => None,
    })
}

/// Why a query can be no such view, as far as its columns say.
pub(super) fn column_in_the_way(columns: &[Expr]) -> Option<Detail> {
    let any = |test: &dyn Fn(&Expr) -> bool| columns.iter().any(|column| column.any(test));
    if any(&|part| matches!(part.kind, ExprKind::Aggregate(_))) {
        return Some("Views that return aggregate functions are not automatically updatable.");
    }
    if any(&|part| matches!(part.kind, ExprKind::Window(_))) {
        return Some("Views that return window functions are not automatically updatable.");
    }
    if any(&Expr::is_set) {
        return Some("Views that return set-returning functions are not automatically updatable.");
    }
    None
}

/// Whether it may be computed elsewhere and more than once.
fn is_movable(expr: &Expr) -> bool {
    !expr.any(&|part| match &part.kind {
        ExprKind::Sub(query, ..) => query.correlated,
        _ => part.is_volatile_call(),
    })
}

impl Binder<'_> {
    /// What a view is over one table, or over the view below it at which one is to stop; the inner error
    /// says why it is not.
    fn simple(
        &mut self,
        view: &Table,
        cascaded: bool,
        stops: Stops<'_>,
    ) -> Result<std::result::Result<Simple, Detail>> {
        let query = view.view.as_ref();
        let query = query.ok_or_else(|| Error::internal("a view without a query"))?;
        if self.expanding.contains(&view.oid) {
            return Err(super::view::endless(view));
        }
        let select = &query_of_text(&query.query)?;
        if let Some(detail) = clause_in_the_way(select) {
            return Ok(Err(detail));
        }
        let cascaded = cascaded || query.check_option == CheckOption::Cascaded;
        let simple = self.below(view, |binder| {
            binder.in_stored_text(&query.query, |binder| {
                binder.simple_query(select, cascaded, stops)
            })
        });
        let mut simple = match simple? {
            Ok(simple) => simple,
            Err(detail) => return Ok(Err(detail)),
        };
        let checked = cascaded || query.check_option != CheckOption::None;
        if let (true, Some(own)) = (checked, simple.1) {
            simple.0.checks.push((view.name.clone(), own));
        }
        if view.security_barrier() {
            let own = std::mem::take(&mut simple.0.conditions);
            simple.0.guards.extend(own);
        }
        simple.0.base = with_defaults(&simple.0, view);
        let own = view.columns.iter().zip(simple.0.columns.iter());
        let mut own = own.filter(|(column, _)| column.default.is_some());
        let misplaced = own.find_map(|(column, expr)| {
            let Some(place) = place_of(expr) else {
                return Some(no_column_below(&view.name, &column.name, Verb::Insert));
            };
            let below = &simple.0.base.columns[place];
            below.generated.then(|| refused_insert(below))
        });
        if misplaced.is_some() {
            simple.0.misplaced_default = misplaced;
        }
        Ok(Ok(simple.0))
    }

    /// The query of such a view, and its own condition.
    #[allow(clippy::type_complexity)]
    fn simple_query(
        &mut self,
        select: &SelectStmt,
        cascaded: bool,
        stops: Stops<'_>,
    ) -> Result<std::result::Result<(Simple, Option<Expr>), Detail>> {
        let Some(range) = only_relation(select)? else {
            return Ok(Err(NOT_ONE_TABLE));
        };
        let table = as_meant(range, self.table(range, TableLock::AccessShare)?)?;
        if self.through_views != Privileges::NONE {
            self.require_of(&table, self.through_views, 0);
        }
        let mut columns = table_columns(&table);
        let alias = self.alias(range.alias.as_ref(), &table.name, &mut columns)?;
        let below = match table.kind {
            RelationKind::Table | RelationKind::Partitioned => None,
            RelationKind::View if stops(&table) => None,
            RelationKind::View => match self.simple(&table, cascaded, stops)? {
                Ok(simple) => Some(simple),
                Err(detail) => return Ok(Err(detail)),
            },
            _ => return Ok(Err(NOT_ONE_TABLE)),
        };
        let writable = Writable {
            base: below.as_ref().map_or(&table, |below| &below.base).clone(),
            view: below.map(|below| (table.clone(), Rc::new(below))),
            reads: Vec::new(),
            called: None,
        };
        let mut item = writable.item(&alias, 0);
        item.columns = columns;
        let mut scope = Scope {
            tables: vec![item],
            ..Scope::default()
        };
        let condition = self.where_clause(&select.where_clause, &scope)?;
        self.window_clause(&select.window_clause, &mut scope)?;
        let (mut exprs, mut shown) = (Vec::new(), Vec::new());
        for (expr, column) in self.targets(&select.target_list, &scope)? {
            exprs.push(self.settle(expr)?);
            let (of, number) = column.origin;
            let place = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
            shown.push(place.filter(|_| of == table.oid));
        }
        if let Some(detail) = column_in_the_way(&exprs) {
            return Ok(Err(detail));
        }
        let below = writable.view.as_ref().map(|view| &view.1);
        let guards = writable.guards();
        let mut conditions = writable.conditions();
        conditions.extend(conjuncts(condition.clone()));
        let readable = below.is_none_or(|below| below.readable)
            && select.sort_clause.is_empty()
            && select.locking_clause.is_empty()
            && exprs.iter().all(is_movable)
            && guards.iter().chain(&conditions).all(is_movable);
        let through = below.map(|below| {
            let own = Between {
                view: table.clone(),
                checked_as: self.checked_as,
                columns: shown.clone(),
            };
            let further = below.between.iter().map(|between| {
                let through = |place: &Option<usize>| *between.columns.get((*place)?)?;
                Between {
                    columns: shown.iter().map(through).collect(),
                    ..between.clone()
                }
            });
            std::iter::once(own).chain(further).collect()
        });
        let simple = Simple {
            between: through.unwrap_or_default(),
            misplaced_default: below.and_then(|below| below.misplaced_default.clone()),
            base: writable.base.clone(),
            columns: exprs,
            checked_as: writable.checked_as(self.checked_as),
            guards,
            conditions,
            checks: below.map_or_else(Vec::new, |below| below.checks.clone()),
            readable,
        };
        Ok(Ok((simple, condition)))
    }

    /// An item of FROM that is such a view, read from its table; none when it is another kind of
    /// view, or rows may be missing on this side of an outer join.
    pub(super) fn pull_up(
        &mut self,
        view: &Arc<Table>,
        alias: Option<&Alias>,
        scope: &mut Scope<'_>,
        with_key: bool,
        next: &mut usize,
    ) -> Result<Option<Source>> {
        // What is recorded are the view's own columns.
        if self.recorded.is_some() {
            return Ok(None);
        }
        let positional = std::mem::take(&mut self.positional);
        let locks = self.locks.clone();
        let subqueries = self.subqueries;
        let simple = self.simple(view, false, &|_| false)?;
        self.positional = positional;
        let plain = |simple: &Simple| simple.columns.iter().all(|expr| place_of(expr).is_some());
        let simple = match simple {
            Ok(simple) if simple.readable && (self.nullable == 0 || plain(&simple)) => simple,
            _ => {
                self.locks = locks;
                self.subqueries = subqueries;
                return Ok(None);
            }
        };
        let locked = with_key && self.is_locked(alias, &view.name);
        let lock = match locked {
            true => TableLock::RowShare,
            false => TableLock::AccessShare,
        };
        self.lock(simple.base.tree, lock);
        if locked {
            self.require_below(&simple);
        }
        let start = *next;
        let mut columns = table_columns(view);
        let name = self.alias(alias, &view.name, &mut columns)?;
        let checked_as = std::mem::replace(&mut self.checked_as, simple.checked_as);
        let source = self.scan(simple.base.clone(), None, scope, with_key, next);
        let guarded = source.and_then(|source| self.guarded(source, reads(locked)));
        self.checked_as = checked_as;
        let mut source = guarded?;
        let item = scope.tables.last_mut();
        let item = item.ok_or_else(|| Error::internal("an item that is not in scope"))?;
        item.alias = name;
        item.columns = columns;
        item.table = None;
        item.base = Some(simple.base.clone());
        item.exprs = Some(moved(&simple.columns, start));
        let guards = moved(&simple.guards, start);
        let conditions = moved(&simple.conditions, start);
        for condition in guards.iter().chain(conditions.iter()) {
            item.mark(condition);
        }
        source.filter(guards.to_vec(), conditions.to_vec());
        Ok(Some(source))
    }

    /// Who locks rows through a view needs what locks those of its table, as whom each view below and
    /// the table are used.
    fn require_below(&mut self, simple: &Simple) {
        let between = simple.between.iter();
        let between = between.map(|between| (&between.view, between.checked_as));
        for (relation, role) in between.chain([(&simple.base, simple.checked_as)]) {
            let checked_as = std::mem::replace(&mut self.checked_as, role);
            self.require_of(relation, Privileges::UPDATE, 0);
            self.checked_as = checked_as;
        }
    }

    /// What a statement that names this relation writes to: the table behind it, or a view on the way
    /// there that triggers or rules write in the place of, or this relation, by its oid.
    fn writable(
        &mut self,
        named: Arc<Table>,
        verb: Verb,
        down_to: Option<u32>,
    ) -> Result<Writable> {
        let (event, replica) = (verb.event(), self.replica);
        let stops = |table: &Table| {
            down_to == Some(table.oid)
                || table.has_instead_of(event)
                || table.has_instead(event, replica)
        };
        if named.kind != RelationKind::View || stops(&named) {
            return Ok(Writable::table(named));
        }
        let simple = match self.simple(&named, false, &stops)? {
            Ok(simple) => simple,
            Err(detail) => return Err(self.not_written_through(&named, verb, detail)?),
        };
        if verb != Verb::Delete && simple.columns.iter().all(|expr| place_of(expr).is_none()) {
            let detail = "Views that have no updatable columns are not automatically updatable.";
            return Err(not_updatable(&named, verb, detail));
        }
        if let (Verb::Insert, Some(error)) = (verb, &simple.misplaced_default) {
            return Err(error.clone());
        }
        self.lock(simple.base.tree, TableLock::RowExclusive);
        Ok(Writable {
            base: simple.base.clone(),
            view: Some((named, Rc::new(simple))),
            reads: Vec::new(),
            called: None,
        })
    }

    /// As [`Binder::writable`], for a statement whose owners of views need this privilege in its
    /// place; what they need to read is only noted.
    pub(super) fn writable_with(
        &mut self,
        named: Arc<Table>,
        verb: Verb,
        privileges: Privileges,
        down_to: Option<u32>,
    ) -> Result<Writable> {
        let through = std::mem::replace(&mut self.through_views, privileges);
        let own = std::mem::take(&mut self.requires);
        let writable = self.writable(named, verb, down_to);
        let below = std::mem::replace(&mut self.requires, own);
        self.through_views = through;
        let mut writable = writable?;
        for required in below {
            let reads =
                (required.kind, required.privileges) == (Guarded::Table, Privileges::SELECT);
            // What else a view's conditions look at is read where they are tested.
            let tests = verb != Verb::Insert || !writable.checks().is_empty();
            if reads && writable.is_through(required.object) {
                writable.reads.push(required);
            } else if reads && !tests {
                continue;
            } else {
                self.note(required);
            }
        }
        Ok(writable)
    }

    /// Once the statement is bound: where it reads the view that is named, those whose views show it
    /// need to read all that their views look at, as in PostgreSQL.
    pub(super) fn note_reads(&mut self, writable: &Writable) {
        let (named, role) = (writable.named().oid, self.checked_as);
        let is_read = self.requires.iter().any(|required| {
            let of = (required.kind, required.object, required.view_owner);
            of == (Guarded::Table, named, role) && required.privileges == Privileges::SELECT
        });
        if is_read {
            for required in &writable.reads {
                self.note(*required);
            }
        }
    }

    /// Refuses CHECK OPTION for a view through which nothing can be written.
    ///
    /// # Errors
    /// 0A000.
    pub fn check_updatable(&mut self, view: &Table) -> Result<()> {
        match self.simple(view, false, &|_| true)? {
            Ok(_) => Ok(()),
            Err(detail) => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "WITH CHECK OPTION is supported only on automatically updatable views",
            )
            .with_hint(detail)),
        }
    }
}

pub(super) fn not_updatable(view: &Table, verb: Verb, detail: Detail) -> Error {
    let (verb, gerund, event) = verb.words();
    Error::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {verb} view \"{}\"", view.name),
    )
    .with_detail(detail)
    .with_hint(format!(
        "To enable {gerund} the view, provide an INSTEAD OF {event} trigger or an unconditional \
         ON {event} DO INSTEAD rule."
    ))
}
