//! The rows that the actions of a rule look at: what a statement was to write.
//!
//! ```text
//! insert into t (a) values (1)             new:       1, and the defaults of the others
//! update t set a = a + 1 from u where …    old, new:  t.*, t.a + 1 and the others as they are
//! delete from t where …                    old:       t.*
//! ```
//! Columns of `new` that no action looks at are not computed, so that their defaults take no values from
//! sequences.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{DeleteStmt, InsertStmt, Node, RangeVar, SelectStmt, UpdateStmt};

use super::assignments::Bound;
use super::current_of::names_cursor;
use super::given::Given;
use super::project_set::projection;
use super::rule::Frame;
use super::scope::{plain_column, table_columns, ItemKind, Scope, ScopeTable};
use super::updatable::{Verb, Writable};
use super::write::{returned, written};
use super::Binder;
use crate::logical::{conjuncts, cross, lateral_of, Source};
use crate::plan::{compile, Expr, ExprKind, Plan, Program};
use catalog::policy::PolicyCommand as For;
use catalog::trigger::Events;
use catalog::{Rule, Table};
use syntax::parser::{self, NodeEnum, TokenKind};
use types::{Datum, TypeId};

/// The columns of `new` that texts of a rule name.
pub(super) fn new_columns_named(table: &Table, rule: &Rule, texts: &[&str]) -> Result<Vec<bool>> {
    let names = rule.column_names(table.oid);
    let mut wanted = vec![false; table.columns.len()];
    for text in texts {
        let tokens = parser::tokens(text)?;
        let word = |at: usize| {
            let token = tokens.get(at);
            token.map_or("", |token| &text[token.start..token.end])
        };
        for (at, token) in tokens.iter().enumerate() {
            let is_new = word(at).trim_matches('"').eq_ignore_ascii_case("new");
            if !is_new || token.kind == TokenKind::String {
                continue;
            }
            let column = word(at + 2).trim_matches('"').replace("\"\"", "\"");
            match names.iter().position(|name| *name == column) {
                Some(place) if word(at + 1) == "." => wanted[place] = true,
                // The whole row.
                _ => wanted.fill(true),
            }
        }
    }
    Ok(wanted)
}

/// The columns of `new` that conditions of rules name.
///
/// # Errors
/// 42601 for a text that is none.
pub(super) fn new_columns_of(rules: &[(&Arc<Table>, &Rule)]) -> Result<Vec<bool>> {
    let mut wanted: Vec<bool> = Vec::new();
    for (table, rule) in rules {
        let condition = rule.condition.as_deref().unwrap_or_default();
        let named = new_columns_named(table, rule, &[condition])?;
        wanted.resize(named.len(), false);
        for (place, named) in named.into_iter().enumerate() {
            wanted[place] |= named;
        }
    }
    Ok(wanted)
}

fn null(table: &Table, place: usize) -> Expr {
    Expr::constant(Datum::Null, table.columns[place].type_id, -1)
}

fn column(table: &Table, place: usize, at: usize) -> Expr {
    let (column, kind) = (&table.columns[place], ExprKind::Column(at));
    let mut expr = Expr::new(kind, column.type_id, -1);
    expr.typmod = column.typmod;
    expr
}

/// Moves the columns that an expression names to the right.
fn moved(mut expr: Expr, by: usize) -> Expr {
    fn shift(expr: &mut Expr, by: usize) {
        if let ExprKind::Column(place) = &mut expr.kind {
            *place += by;
        }
        expr.parts_mut()
            .into_iter()
            .for_each(|part| shift(part, by));
    }
    shift(&mut expr, by);
    expr
}

/// The expression with these in the place of the columns that it names.
pub(super) fn with_columns(mut expr: Expr, columns: &[Expr]) -> Expr {
    if let ExprKind::Column(place) = expr.kind {
        return columns[place].clone();
    }
    for part in expr.parts_mut() {
        *part = with_columns(part.clone(), columns);
    }
    expr
}

/// The same rows, in which only these columns are computed.
fn computing(plan: Plan, table: &Table, wanted: &[bool]) -> Plan {
    let only = |programs: Vec<Program>| {
        let places = programs.into_iter().enumerate();
        let chosen = places.map(|(place, program)| match wanted.get(place) {
            Some(true) => program,
            _ => compile(&null(table, place)),
        });
        chosen.collect()
    };
    match plan {
        Plan::Values(rows) => Plan::Values(rows.into_iter().map(only).collect()),
        Plan::Project(input, programs) => Plan::Project(input, only(programs)),
        other => other,
    }
}

impl<'a> Binder<'a> {
    /// The item of FROM that stands for the rows; of its columns those of `old` and `new` become items.
    pub(super) fn rows_of_rule(
        &mut self,
        scope: &mut Scope<'_>,
        next: &mut usize,
    ) -> Result<Source> {
        let frame = self.frame.clone();
        let frame = frame.ok_or_else(|| Error::internal("rows of no rule"))?;
        let plan = match &frame.statement {
            None => Plan::Values(Vec::new()),
            Some(statement) => self.within(&frame.around, |binder| {
                binder.rows_to_write(statement, &frame)
            })?,
        };
        let items = |start: usize| items_of(&frame, start);
        let own = Scope {
            tables: items(0),
            ..Scope::default()
        };
        let width: usize = own.tables.iter().map(|item| item.columns.len()).sum();
        let condition = self.condition_of_rule(&frame.table, frame.rule, &own)?;
        let plan = match condition {
            None => plan,
            Some(condition) => self.those_of(plan, width, conjuncts(Some(condition)))?,
        };
        let start = *next;
        let columns = (0..width).map(|_| plain_column("", TypeId::UNKNOWN));
        let source = self.other(plan, columns.collect(), "", None, scope, next)?;
        scope.tables.pop();
        scope.tables.extend(items(start));
        Ok(source)
    }

    /// Those rows of a plan that meet conditions.
    pub(super) fn those_of(
        &mut self,
        plan: Plan,
        width: usize,
        conditions: Vec<Expr>,
    ) -> Result<Plan> {
        let columns = (0..width).map(|_| plain_column("", TypeId::UNKNOWN));
        let (mut scope, mut next) = (Scope::default(), 0);
        let source = self.other(plan, columns.collect(), "", None, &mut scope, &mut next)?;
        self.planner().plan(source, conditions)
    }

    /// What a statement was to write: the columns of `old`, then those of `new`.
    pub(super) fn rows_to_write(
        &mut self,
        statement: &NodeEnum,
        frame: &Frame<'a>,
    ) -> Result<Plan> {
        match statement {
            NodeEnum::InsertStmt(insert) => self.rows_to_insert(insert, frame),
            NodeEnum::UpdateStmt(update) => self.rows_to_update(update, frame),
            NodeEnum::DeleteStmt(delete) => self.rows_to_delete(delete, frame),
            _ => Err(Error::internal("no statement that writes")),
        }
    }

    /// What a statement names to write to it, as it is named, down to the relation with the rule.
    pub(super) fn named_to_write(
        &mut self,
        range: Option<&RangeVar>,
        verb: Verb,
        ruled: &Table,
    ) -> Result<Writable> {
        let (named, privileges) = self.target_named(range, verb)?;
        let called = self.called_then(&named);
        let writable = match named.oid == ruled.oid {
            true => Writable::table(named),
            false => self.writable_with(named, verb, privileges, Some(ruled.oid))?,
        };
        Ok(writable.called(called))
    }

    fn rows_to_insert(&mut self, insert: &InsertStmt, frame: &Frame<'a>) -> Result<Plan> {
        let before = self.with_clause(
            insert.with_clause.as_ref(),
            || written(&[returned(&insert.returning_clause)], &insert.select_stmt),
            None,
        )?;
        let writable = self.named_to_write(insert.relation.as_ref(), Verb::Insert, &frame.table)?;
        let plan = self.inserted_rows(insert, &writable)?;
        self.forget_ctes(before);
        let table = &frame.table;
        let plan = computing(plan, table, &with_sources(table, &frame.wanted));
        self.with_generated(plan, (table, &frame.wanted), 0)
    }

    fn rows_to_update(&mut self, update: &UpdateStmt, frame: &Frame<'a>) -> Result<Plan> {
        refuse_cursor(&update.where_clause)?;
        let before = self.with_clause(
            update.with_clause.as_ref(),
            || {
                let lists = [&update.from_clause[..], &update.target_list];
                written(&lists, &update.where_clause)
            },
            None,
        )?;
        let range = update.relation.as_ref();
        let writable = self.named_to_write(range, Verb::Update, &frame.table)?;
        let alias = range.and_then(|range| range.alias.as_ref());
        let (from, condition) = (&update.from_clause, &update.where_clause);
        let (rows, scope, width) = self.target_rows(&writable, alias, from, condition)?;
        let set = self.bound_assignments(&update.target_list, &writable, &scope, width)?;
        self.forget_ctes(before);
        let (plan, _) = self.guarded_rows(rows, &writable, &[For::Update, For::Select])?;
        let table = &frame.table;
        let wanted = with_sources(table, &frame.wanted);
        let count = table.columns.len();
        let mut row: Vec<_> = (0..count)
            .map(|place| column(table, place, place))
            .collect();
        let values = set.new_values(table, &wanted, width)?;
        let values = values.into_iter().enumerate();
        row.extend(values.map(|(place, value)| match wanted[place] {
            true => value,
            false => null(table, place),
        }));
        let plan = projection(plan, &row);
        self.with_generated(plan, (table, &frame.wanted), count)
    }

    fn rows_to_delete(&mut self, delete: &DeleteStmt, frame: &Frame<'a>) -> Result<Plan> {
        refuse_cursor(&delete.where_clause)?;
        let before = self.with_clause(
            delete.with_clause.as_ref(),
            || written(&[&delete.using_clause], &delete.where_clause),
            None,
        )?;
        let range = delete.relation.as_ref();
        let writable = self.named_to_write(range, Verb::Delete, &frame.table)?;
        let alias = range.and_then(|range| range.alias.as_ref());
        let (using, condition) = (&delete.using_clause, &delete.where_clause);
        let (rows, ..) = self.target_rows(&writable, alias, using, condition)?;
        self.forget_ctes(before);
        let (plan, _) = self.guarded_rows(rows, &writable, &[For::Delete, For::Select])?;
        let table = &writable.base;
        let row = (0..table.columns.len()).map(|place| column(table, place, place));
        Ok(projection(plan, &row.collect::<Vec<_>>()))
    }

    /// The same rows with those generated columns of `new` that are wanted; it begins at a place.
    pub(super) fn with_generated(
        &mut self,
        plan: Plan,
        (table, wanted): (&Arc<Table>, &[bool]),
        start: usize,
    ) -> Result<Plan> {
        let count = table.columns.len();
        let generated: Vec<usize> = generated_among(table, wanted).collect();
        if generated.is_empty() {
            return Ok(plan);
        }
        let mut row: Vec<_> = (0..start + count)
            .map(|at| column(table, at % count, at))
            .collect();
        for place in generated {
            row[start + place] = moved(self.generated_value(table, place)?, start);
        }
        Ok(projection(plan, &row))
    }

    /// What those columns of a table become that are wanted where SET is carried out over rows with so
    /// many columns, generated ones included.
    pub(super) fn new_row(
        &mut self,
        set: &Bound,
        (table, wanted): (&Arc<Table>, &[bool]),
        width: usize,
    ) -> Result<Vec<Expr>> {
        let mut new = set.new_values(table, &with_sources(table, wanted), width)?;
        for place in generated_among(table, wanted) {
            new[place] = with_columns(self.generated_value(table, place)?, &new);
        }
        Ok(new)
    }

    /// The rows that an action inserts for each of those it looks at: VALUES beside them.
    pub(super) fn values_beside_rows(
        &mut self,
        insert: &InsertStmt,
        select: &SelectStmt,
        (table, places, allowed): (&Arc<Table>, &[usize], &[Given]),
    ) -> Result<Plan> {
        let (mut scope, mut next) = (Scope::default(), 0);
        let from = self.bind_from(&select.from_clause, &mut scope, false, &mut next)?;
        let from = from.ok_or_else(|| Error::internal("VALUES beside nothing"))?;
        let (lists, named) = (&select.values_lists, &insert.cols);
        if lists.len() == 1 {
            let values = self.insert_values(lists, table, places, allowed, named, &scope)?;
            let from = self.planner().plan(from, Vec::new())?;
            return match values {
                Plan::Values(mut rows) if rows.len() == 1 => {
                    Ok(Plan::Project(Rc::new(from), rows.remove(0)))
                }
                _ => Err(Error::unsupported("sets of rows in VALUES of a rule")),
            };
        }
        let level = Scope::inside(Some(&scope));
        let values = self.running_once(false, |binder| {
            binder.insert_values(lists, table, places, allowed, named, &level)
        })?;
        let seen = scope.seen();
        let columns = (0..table.columns.len()).map(|_| plain_column("", TypeId::UNKNOWN));
        let (mut beside, start) = (Scope::default(), next);
        let values = self.other(values, columns.collect(), "", None, &mut beside, &mut next)?;
        let values = match level.escapes.get() {
            true => lateral_of(values.escaping(true), seen),
            false => values,
        };
        let plan = self.planner().plan(cross(from, values)?, Vec::new())?;
        let row = (0..table.columns.len()).map(|place| column(table, place, start + place));
        Ok(projection(plan, &row.collect::<Vec<_>>()))
    }
}

/// The generated columns among those.
fn generated_among<'w>(table: &'w Table, wanted: &'w [bool]) -> impl Iterator<Item = usize> + 'w {
    let columns = table.columns.iter().enumerate();
    let generated = columns.filter(|(place, column)| column.generated && wanted[*place]);
    generated.map(|(place, _)| place)
}

/// Those columns, and what generated ones among them are computed from.
fn with_sources(table: &Table, wanted: &[bool]) -> Vec<bool> {
    let mut all = wanted.to_vec();
    for (place, column) in table.columns.iter().enumerate() {
        if column.generated && wanted[place] {
            column
                .generated_from
                .iter()
                .for_each(|from| all[*from] = true);
        }
    }
    all
}

fn refuse_cursor(condition: &Option<Box<Node>>) -> Result<()> {
    match names_cursor(condition) {
        true => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "WHERE CURRENT OF a relation with rules is not supported",
        )),
        false => Ok(()),
    }
}

/// What `old` and `new` are to the conditions of rules on what is written: where they begin in the row, and
/// what the columns of `new` stand for if they are not there.
pub(super) fn rows_of_rules(
    writable: &Writable,
    old: Option<usize>,
    new: Option<(usize, Option<Vec<Expr>>)>,
) -> Scope<'static> {
    // Rules of what is below a view are about the rows there.
    let below = writable.columns_over_base();
    let below = below.map(|_| Writable::table(writable.base.clone()));
    let ruled = below.as_ref().unwrap_or(writable);
    let item = |name: &str, start: usize| ScopeTable {
        qualified_only: true,
        ..ruled.item(name, start)
    };
    let old = old.map(|start| item("old", start));
    let new = new.map(|(start, exprs)| ScopeTable {
        exprs: exprs.map(Rc::new),
        ..item("new", start)
    });
    Scope {
        tables: old.into_iter().chain(new).collect(),
        ..Scope::default()
    }
}

/// The items `old` and `new` over a row in which they begin at a place.
fn items_of(frame: &Frame<'_>, start: usize) -> Vec<ScopeTable> {
    let table = &frame.table;
    let names = frame.rule.column_names(table.oid);
    let item = |alias: &str, start: usize| {
        let mut columns = table_columns(table);
        for (place, column) in columns.iter_mut().enumerate() {
            // Whoever may write the relation may be asked what its rules ask.
            column.origin = (0, 0);
            match names.get(place) {
                // Dropped meanwhile.
                _ if column.name.is_empty() => {}
                Some(name) => column.name.clone_from(name),
                // A later one is a part of the whole row, and no text can name it.
                None => column.name.insert(0, '\0'),
            }
        }
        ScopeTable {
            table: Some(table.clone()),
            qualified_only: true,
            kind: ItemKind::Constant,
            ..ScopeTable::of(alias.to_owned(), columns, start)
        }
    };
    let width = table.columns.len();
    match frame.rule.event {
        Events::INSERT => vec![item("new", start)],
        Events::DELETE => vec![item("old", start)],
        _ => vec![item("old", start), item("new", start + width)],
    }
}
