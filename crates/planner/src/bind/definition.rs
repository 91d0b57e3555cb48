//! The query of a view as `pg_get_viewdef` prints it, in PostgreSQL's layout.
//!
//! ```text
//!  SELECT t.a,
//!     upper(t.b) AS x
//!    FROM (t
//!      JOIN u ON ((t.a = u.a)))
//!   WHERE (t.a > 1);
//! ```
//!
//! Queries inside it are bound anew, each over its own items, and laid out by the same rules
//! ([`crate::deparse::layout`]).
//!
//! # What it leaves out
//! JOIN … USING, locks, ROWS FROM and statements that write keep the layout in which the catalog has the
//! whole query; names are put back there too, so that it is the same query.

use std::cell::RefCell;

use base::hash::HashMap;
use base::{Error, Result};
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{
    CoercionForm, GroupingSetKind, Node, SelectStmt, SetOperation, SortBy, SubLink,
};

use super::expr::Place;
use super::naming::parts_of;
use super::scope::{ItemKind, Scope, ScopeTable};
use super::select::sort_order;
use super::{inner, strings, Binder};
use crate::deparse::layout::{spaced, Layout, ITEM, STEP};
use crate::deparse::{expression, sort_key, window, Names, Style};
use crate::plan::{Expr, ExprKind, SubQuery};
use catalog::cast::without_note;
use catalog::Table;
use functions::strings::quote_identifier;
use functions::CastContext;
use syntax::parser::{self, NodeEnum};
use types::{EvalContext, TypeId, NO_TYPMOD};

/// Where an item of GROUP BY stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// In the clause itself, or among others in parentheses.
    Clause,
    /// In GROUPING SETS.
    Sets,
    /// In ROLLUP or CUBE.
    Elements,
}

/// A query that is being shown, inside others.
struct Level<'s> {
    scope: &'s Scope<'s>,
    /// What its items are called.
    names: &'s [Vec<String>],
    /// The texts of the queries inside its expressions, by where they stand.
    inside: &'s RefCell<HashMap<i32, String>>,
    /// The arguments of the routine whose body is shown, and whether its name stands before theirs.
    arguments: Option<(&'s OfRoutine, bool)>,
    /// The columns of the rows that the rule which is shown is about, by their places.
    rows: &'s [String],
}

impl Level<'_> {
    /// The item and the column at a place of the row of a query so many levels further out, as they
    /// are called now.
    fn named(&self, place: usize, level: usize) -> Option<(String, String)> {
        let scope = self.scope.levels().nth(level)?;
        let (item, at) = scope.table_at(place)?;
        let column = match &item.table {
            Some(table) => &table.columns.get(at)?.name,
            None => &item.columns.get(at)?.name,
        };
        Some((self.item(level, scope, item)?, column.clone()))
    }

    fn item(&self, level: usize, scope: &Scope<'_>, item: &ScopeTable) -> Option<String> {
        let place = scope
            .tables
            .iter()
            .position(|own| own.start == item.start)?;
        let names = self.names.len().checked_sub(level + 1);
        names
            .and_then(|level| self.names[level].get(place))
            .cloned()
    }
}

impl Names for Level<'_> {
    fn column(&self, place: usize, level: usize) -> String {
        match self.named(place, level) {
            Some((item, column)) => {
                format!("{}.{}", quote_identifier(&item), quote_identifier(&column))
            }
            None => "?".to_owned(),
        }
    }

    fn param(&self, place: usize) -> String {
        if let Some(row) = self.rows.get(place) {
            return row.clone();
        }
        let named = self.arguments.and_then(|(shared, is_qualified)| {
            let name = shared
                .arguments
                .get(place)
                .filter(|name| !name.is_empty())?;
            let name = quote_identifier(name);
            Some(match is_qualified {
                true => format!("{}.{name}", quote_identifier(&shared.routine)),
                false => name,
            })
        });
        named.unwrap_or_else(|| format!("${}", place + 1))
    }

    fn row(&self, fields: &[Expr]) -> Option<String> {
        let (level, first) = match fields.first()?.kind {
            ExprKind::Column(first) => (0, first),
            ExprKind::Outer(level, first) => (level, first),
            _ => return None,
        };
        let scope = self.scope.levels().nth(level)?;
        let (item, _) = scope.table_at(first)?;
        let is_place = |field: &Expr, place: usize| match field.kind {
            ExprKind::Column(own) => (level, own) == (0, place),
            ExprKind::Outer(of, own) => (of, own) == (level, place),
            _ => false,
        };
        let places: Vec<usize> = match &item.table {
            Some(table) => {
                let columns = table.columns.iter().enumerate();
                let kept = columns.filter(|(_, column)| !column.dropped);
                kept.map(|(place, _)| item.start + place).collect()
            }
            None => (item.start..item.start + item.columns.len()).collect(),
        };
        let mut pairs = fields.iter().zip(&places);
        let is_whole =
            fields.len() == places.len() && pairs.all(|(field, at)| is_place(field, *at));
        let name = self.item(level, scope, item)?;
        is_whole.then(|| format!("{}.*", quote_identifier(&name)))
    }

    fn query(&self, _: &SubQuery, location: i32) -> Result<String> {
        let known = self.inside.borrow();
        let text = known.get(&location).cloned();
        text.ok_or_else(|| Error::unsupported("a subquery here"))
    }
}

/// Whether the query has only what is laid out here.
fn is_plain(select: &SelectStmt) -> bool {
    select.locking_clause.is_empty() && select.into_clause.is_none()
}

impl Binder<'_> {
    /// What `pg_get_viewdef` shows.
    ///
    /// # Errors
    /// What has become of the relations that the view names.
    pub fn definition(&mut self, view: &Table, pretty: bool) -> Result<String> {
        let query = view.view.as_ref();
        let query = &query
            .ok_or_else(|| Error::internal("a view without a query"))?
            .query;
        self.names_only = true;
        let statements = parser::parse(query)?;
        let Some(NodeEnum::SelectStmt(select)) = statements.first().map(|first| first.node())
        else {
            return Err(Error::internal("a view of no query"));
        };
        let laid_out = self.in_stored_text(query, |binder| {
            // Views among its items stay what they are.
            binder.recorded = Some(Default::default());
            let text = binder.laid_out(view, select, pretty);
            binder.recorded = None;
            text
        });
        match laid_out {
            Ok(Some(text)) => Ok(text),
            _ => self.as_stored(view, query),
        }
    }

    /// The query in the layout in which the catalog has it, with the names that the view's columns
    /// have now.
    fn as_stored(&mut self, view: &Table, query: &str) -> Result<String> {
        let text = self.renamed(without_note(query))?;
        let given = self.expand(view, None)?.columns;
        let given = given.iter().map(|column| column.name.as_str());
        if given.eq(view.columns.iter().map(|column| column.name.as_str())) {
            return Ok(format!(" {text};"));
        }
        let names = view.columns.iter();
        let names: Vec<_> = names.map(|column| quote_identifier(&column.name)).collect();
        let (own, names) = (quote_identifier(&view.name), names.join(", "));
        Ok(format!(" SELECT * FROM ({text}) {own}({names});"))
    }

    /// The text of a view's query; none if it has what is not laid out.
    fn laid_out(
        &mut self,
        view: &Table,
        select: &SelectStmt,
        pretty: bool,
    ) -> Result<Option<String>> {
        let names: Vec<_> = view
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect();
        self.shown_queries = Some(Shown {
            pretty,
            ..Shown::default()
        });
        let text = self.query_text(select, None, Called::As(&names));
        self.shown_queries = None;
        Ok(text?.map(|text| format!("{};", spaced(&text))))
    }

    /// A query, from the space before its first word.
    pub(super) fn query_text(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
        names: Called<'_>,
    ) -> Result<Option<String>> {
        if !is_plain(select) {
            return Ok(None);
        }
        // As where it is bound as a query: what is bound inside of it is inside of a query.
        self.query_depth += 1;
        let text = self.nested(|binder| {
            let mut layout = Layout::default();
            let with = select.with_clause.as_ref();
            let paused = binder.pause_layout();
            let before = binder.with_clause(with, || parts_of(select), parent);
            binder.resume_layout(paused);
            let before = before?;
            let text = binder.query_parts(select, parent, names, &mut layout);
            binder.forget_ctes(before);
            Ok(text?.map(|()| layout.out))
        });
        self.query_depth -= 1;
        text
    }

    fn query_parts(
        &mut self,
        select: &SelectStmt,
        parent: Option<&Scope<'_>>,
        names: Called<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let is_select = is_alone(select) && select.values_lists.is_empty();
        let shown = self.shown_queries.as_mut();
        let united = shown.and_then(|shown| shown.united.take());
        let mut scope = Scope::inside(parent);
        if is_select {
            let mut next = 0;
            let paused = self.pause_layout();
            let source = self.bind_from(&select.from_clause, &mut scope, false, &mut next);
            scope.beyond.set(next);
            let bound = source.and_then(|_| self.window_clause(&select.window_clause, &mut scope));
            self.resume_layout(paused);
            bound?;
            let is_plain = |expr: &Expr| matches!(expr.kind, ExprKind::Column(_));
            if !scope.merged.iter().all(|merged| is_plain(&merged.expr)) {
                return Ok(None);
            }
        }
        self.name_items(&scope);
        if let Some(with) = &select.with_clause {
            let written = self.beside_names(|binder| binder.with_text(with, parent, layout))?;
            if written.is_none() {
                return Ok(None);
            }
        }
        let done = match is_select {
            true => self.select_text(select, &scope, (names, united.as_deref()), layout),
            false => {
                let hidden = self.shown_queries.as_mut().and_then(|shown| {
                    shown.unnamed += 1;
                    shown.names.pop()
                });
                let done = match is_alone(select) {
                    true => self.values_text(select, parent, layout),
                    false => self.united_text(select, parent, names, layout),
                };
                if let (Some(shown), Some(hidden)) = (&mut self.shown_queries, hidden) {
                    shown.names.push(hidden);
                    shown.unnamed -= 1;
                }
                done
            }
        };
        if let Some(shown) = &mut self.shown_queries {
            shown.names.pop();
        }
        done
    }

    /// Gives the items of a query names that those around it do not have.
    pub(super) fn name_items(&mut self, scope: &Scope<'_>) {
        self.name_items_after(scope, Vec::new());
    }

    /// As [`Binder::name_items`], where the first of them have these names.
    pub(super) fn name_items_after(&mut self, scope: &Scope<'_>, mut own: Vec<String>) {
        let Some(shown) = &mut self.shown_queries else {
            return;
        };
        for item in scope.tables.iter().skip(own.len()) {
            let is_taken = |name: &String| {
                own.contains(name) || shown.names.iter().any(|names| names.contains(name))
            };
            // An alias of USING names nothing that is shown.
            let mut name = match item.kind == ItemKind::Join && item.qualified_only {
                true => String::new(),
                false => item.alias.clone(),
            };
            let mut number = 0;
            while !name.is_empty() && is_taken(&name) {
                number += 1;
                name = format!("{}_{number}", item.alias);
            }
            own.push(name);
        }
        shown.names.push(own);
    }

    /// The text of an expression of the query at work. Casts at its top are shown or not.
    pub(super) fn shown_expr(
        &mut self,
        expr: &Expr,
        scope: &Scope<'_>,
        casts: bool,
        at: i32,
    ) -> Result<String> {
        self.shown_by(scope, at, |level, eval, style| {
            expression(expr, level, eval, style, casts)
        })
    }

    fn shown_key(&mut self, expr: &Expr, scope: &Scope<'_>, at: i32) -> Result<String> {
        self.shown_by(scope, at, |level, eval, style| {
            sort_key(expr, level, eval, style)
        })
    }

    pub(super) fn shown_by(
        &mut self,
        scope: &Scope<'_>,
        at: i32,
        show: impl FnOnce(&dyn Names, &EvalContext, Style) -> Result<String>,
    ) -> Result<String> {
        let shown = self.shown_queries.as_ref();
        let shown = shown.ok_or_else(|| Error::internal("nothing is laid out"))?;
        let level = Level {
            scope,
            names: &shown.names,
            inside: &shown.inside,
            arguments: shown.arguments.as_ref().map(|of| {
                let has_items = shown.names.iter().any(|names| !names.is_empty());
                (of, has_items || shown.unnamed > 0)
            }),
            rows: &shown.rows,
        };
        let style = Style {
            flat: shown.flat,
            pretty: shown.pretty,
            indent: usize::try_from(at).unwrap_or(0),
            marked: true,
        };
        show(&level, self.cx.eval, style)
    }

    /// Counts a query inside others; none where there are too many for their layout.
    pub(super) fn nested<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let depth = self.shown_queries.as_ref().map_or(0, |shown| shown.depth);
        if depth >= LAYOUT_DEPTH_MAX {
            return Ok(None);
        }
        let set = |binder: &mut Self, depth| {
            if let Some(shown) = &mut binder.shown_queries {
                shown.depth = depth;
            }
        };
        set(self, depth + 1);
        let done = self.deeper(run);
        set(self, depth);
        done
    }

    /// A query without UNION: its items have names.
    fn select_text(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        (names, united): (Called<'_>, Option<&[TypeId]>),
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        layout.level += STEP;
        layout.text(self.opening(match names {
            Called::Returned => " RETURN",
            _ => " SELECT",
        }));
        let mut targets = Vec::new();
        let mut own_names = Vec::new();
        for (place, (expr, column)) in self
            .targets(&select.target_list, scope)?
            .into_iter()
            .enumerate()
        {
            let ty = united.and_then(|types| types.get(place)).copied();
            targets.push(match ty.filter(|_| expr.is_untyped()) {
                Some(ty) => {
                    let coerced = self.try_coerce(expr, ty, NO_TYPMOD, CastContext::Implicit)?;
                    match coerced {
                        Ok(expr) => expr,
                        Err(_) => return Ok(None),
                    }
                }
                None if matches!(names, Called::Inserted) && expr.is_untyped() => expr,
                None => self.settle(expr)?,
            });
            own_names.push(column.name);
        }
        let called = names;
        let names = match names {
            Called::As(names) => names,
            _ => &own_names,
        };
        let known = Targets {
            exprs: &targets,
            names,
        };
        if !self.distinct_text(select, scope, &known, layout)? {
            return Ok(None);
        }
        self.targets_text(&known, called, scope, layout)?;
        if self
            .items_text((" FROM ", &select.from_clause), scope, 0, layout)?
            .is_none()
        {
            return Ok(None);
        }
        if let Some(condition) = self.where_clause(&select.where_clause, scope)? {
            let text = self.shown_expr(&condition, scope, false, layout.level)?;
            layout.clause(" WHERE ", 1);
            layout.text(&text);
        }
        if !self.groups_text(select, scope, &known, layout)? {
            return Ok(None);
        }
        if !self.order_text(select, scope, &known, layout)? {
            return Ok(None);
        }
        self.limit_text(select, scope, layout)?;
        Ok(Some(()))
    }

    /// The columns of a query, or what RETURNING gives, with the names that nobody would give them.
    pub(super) fn targets_text(
        &mut self,
        targets: &Targets<'_>,
        called: Called<'_>,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<()> {
        layout.text(" ");
        for (place, (expr, name)) in targets.exprs.iter().zip(targets.names).enumerate() {
            let mut text = self.shown_expr(expr, scope, true, layout.level)?;
            let shows_rows = self
                .shown_queries
                .as_ref()
                .is_some_and(|shown| !shown.rows.is_empty());
            let column = match expr.kind {
                ExprKind::Column(at) => Some((at, 0)),
                ExprKind::Outer(level, at) => Some((at, level)),
                _ => None,
            };
            let own = match (column, &expr.kind) {
                (Some((at, level)), _) => self.shown_by(scope, 0, |names, _, _| {
                    Ok(last_name(&names.column(at, level)))
                })?,
                (None, ExprKind::Param(at)) if shows_rows => {
                    self.shown_by(scope, 0, |level, _, _| Ok(last_name(&level.param(*at))))?
                }
                _ if matches!(called, Called::Nothing | Called::Inserted) => {
                    quote_identifier(UNNAMED)
                }
                _ => String::new(),
            };
            if own != quote_identifier(name) && !matches!(called, Called::Returned) {
                text.push_str(&format!(" AS {}", quote_identifier(name)));
            }
            layout.text(if place > 0 { "," } else { "" });
            if place > 0 && !text.starts_with('\n') {
                layout.clause("", ITEM);
                layout.text(&text);
            } else {
                layout.item(&text, true);
            }
        }
        Ok(())
    }

    /// FROM or USING; its items begin at a place among those of the scope.
    pub(super) fn items_text(
        &mut self,
        (words, items): (&str, &[Node]),
        scope: &Scope<'_>,
        mut next: usize,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        for (place, item) in items.iter().enumerate() {
            match place {
                0 => layout.clause(words, 2),
                _ => layout.text(","),
            }
            let Some(text) = self.item_text(item, scope, &mut next, layout.level)? else {
                return Ok(None);
            };
            match place {
                0 => layout.item(&text, true),
                _ => layout.item(&text, false),
            }
        }
        Ok(Some(()))
    }

    /// What begins a query: a space, where its lines are laid out.
    pub(super) fn opening(&self, words: &'static str) -> &'static str {
        let is_flat = self.shown_queries.as_ref().is_some_and(|shown| shown.flat);
        match is_flat {
            true => words.trim_start(),
            false => words,
        }
    }

    fn distinct_text(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        targets: &Targets<'_>,
        layout: &mut Layout,
    ) -> Result<bool> {
        let on: Vec<&Node> = select
            .distinct_clause
            .iter()
            .filter(|node| node.node.is_some())
            .collect();
        if !on.is_empty() {
            let mut keys = Vec::new();
            for node in on {
                let Some(expr) = self.sorted_by(node, scope, targets, "SELECT DISTINCT ON")? else {
                    return Ok(false);
                };
                keys.push(self.shown_key(&expr, scope, layout.level)?);
            }
            layout.text(&format!(" DISTINCT ON ({})", keys.join(", ")));
        } else if !select.distinct_clause.is_empty() {
            layout.text(" DISTINCT");
        }
        Ok(true)
    }

    fn groups_text(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        targets: &Targets<'_>,
        layout: &mut Layout,
    ) -> Result<bool> {
        let level = layout.level;
        let mut groups = Vec::new();
        for node in &select.group_clause {
            let mut key = |binder: &mut Self, node: &Node| {
                let expr = binder.sorted_by(node, scope, targets, "GROUP BY")?;
                let text = expr.map(|expr| binder.shown_key(&expr, scope, level));
                text.transpose()
            };
            match self.group_text(node, Inside::Clause, &mut key)? {
                Some(text) => groups.push(text),
                None => return Ok(false),
            }
        }
        if !groups.is_empty() {
            layout.clause(" GROUP BY ", 1);
            layout.text(if select.group_distinct {
                "DISTINCT "
            } else {
                ""
            });
            layout.text(&groups.join(", "));
        }
        if let Some(node) = &select.having_clause {
            let having = self.expr(inner(node)?, scope, Place::grouped("HAVING"))?;
            let having = self.condition(having, "HAVING")?;
            let text = self.shown_expr(&having, scope, false, level)?;
            layout.clause(" HAVING ", 0);
            layout.text(&text);
        }
        let mut windows = Vec::new();
        for named in &scope.windows {
            let text = self.shown_by(scope, level, |names, eval, style| {
                window(&named.spec, &named.from, names, eval, style)
            })?;
            windows.push(format!("{} AS {text}", quote_identifier(&named.name)));
        }
        if !windows.is_empty() {
            layout.clause(" WINDOW ", 1);
            layout.text(&windows.join(", "));
        }
        Ok(true)
    }

    fn order_text(
        &mut self,
        select: &SelectStmt,
        scope: &Scope<'_>,
        targets: &Targets<'_>,
        layout: &mut Layout,
    ) -> Result<bool> {
        let mut order = Vec::new();
        for node in &select.sort_clause {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                return Ok(false);
            };
            let key = sort.node.as_ref();
            let key = key.ok_or_else(|| Error::internal("ORDER BY nothing"))?;
            let Some(expr) = self.sorted_by(key, scope, targets, "ORDER BY")? else {
                return Ok(false);
            };
            let text = self.shown_key(&expr, scope, layout.level)?;
            order.push(format!("{text}{}", direction(sort)));
        }
        if !order.is_empty() {
            layout.clause(" ORDER BY ", 1);
            layout.text(&order.join(", "));
        }
        Ok(true)
    }

    /// An item of GROUP BY; `key` gives the text of an expression.
    fn group_text(
        &mut self,
        node: &Node,
        inside: Inside,
        key: &mut dyn FnMut(&mut Self, &Node) -> Result<Option<String>>,
    ) -> Result<Option<String>> {
        let (nodes, below) = match inner(node)? {
            NodeEnum::GroupingSet(set) => match GroupingSetKind::try_from(set.kind) {
                Ok(GroupingSetKind::GroupingSetSets) => (&set.content, Inside::Sets),
                _ => (&set.content, Inside::Elements),
            },
            NodeEnum::RowExpr(row) if row.row_format == CoercionForm::CoerceImplicitCast as i32 => {
                (&row.args, Inside::Clause)
            }
            _ => {
                let text = key(self, node)?;
                return Ok(text.map(|text| match inside {
                    Inside::Sets => format!("({text})"),
                    _ => text,
                }));
            }
        };
        let mut texts = Vec::new();
        for node in nodes {
            match self.group_text(node, below, key)? {
                Some(text) => texts.push(text),
                None => return Ok(None),
            }
        }
        let texts = texts.join(", ");
        Ok(Some(match inner(node)? {
            NodeEnum::GroupingSet(set) => match GroupingSetKind::try_from(set.kind) {
                Ok(GroupingSetKind::GroupingSetRollup) => format!("ROLLUP({texts})"),
                Ok(GroupingSetKind::GroupingSetCube) => format!("CUBE({texts})"),
                // Sets of sets are their sets.
                Ok(GroupingSetKind::GroupingSetSets) if inside == Inside::Sets => texts,
                Ok(GroupingSetKind::GroupingSetSets) => format!("GROUPING SETS ({texts})"),
                _ => "()".to_owned(),
            },
            _ if inside == Inside::Clause => texts,
            _ => format!("({texts})"),
        }))
    }

    /// What a key of GROUP BY or ORDER BY stands for; none where that is not known.
    fn sorted_by(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        targets: &Targets<'_>,
        clause: &'static str,
    ) -> Result<Option<Expr>> {
        let node = inner(node)?;
        match node {
            NodeEnum::AConst(constant) => Ok(match &constant.val {
                Some(Val::Ival(number)) => {
                    let place = usize::try_from(number.ival - 1).ok();
                    place.and_then(|place| targets.exprs.get(place)).cloned()
                }
                _ => None,
            }),
            NodeEnum::RowExpr(_) => Ok(None),
            NodeEnum::ColumnRef(column) if clause != "GROUP BY" => {
                let names = strings(&column.fields);
                let own = targets.names.iter().position(|own| names == [own.as_str()]);
                match own.and_then(|own| targets.exprs.get(own)) {
                    Some(expr) => Ok(Some(expr.clone())),
                    None => self.expr(node, scope, Place::output(clause)).map(Some),
                }
            }
            NodeEnum::ColumnRef(column) => {
                let names = strings(&column.fields);
                let own = targets.names.iter().position(|own| names == [own.as_str()]);
                let own = own.and_then(|own| targets.exprs.get(own));
                match (self.expr(node, scope, Place::output(clause)), own) {
                    (Err(_), Some(own)) => Ok(Some(own.clone())),
                    (input, _) => input.map(Some),
                }
            }
            _ => self.expr(node, scope, Place::output(clause)).map(Some),
        }
    }

    /// The text of a query inside an expression, kept until that is shown.
    pub(super) fn keep_text(
        &mut self,
        link: &SubLink,
        select: &SelectStmt,
        scope: &Scope<'_>,
    ) -> Result<()> {
        let Some(text) = self.query_text(select, Some(scope), Called::Nothing)? else {
            return Err(Error::unsupported("the layout of this query"));
        };
        if let Some(shown) = &mut self.shown_queries {
            shown.inside.get_mut().insert(link.location, text);
        }
        Ok(())
    }

    /// Whether what is bound now is to be shown.
    pub(super) fn lays_out(&self) -> bool {
        let shown = self.shown_queries.as_ref();
        shown.is_some_and(|shown| !shown.paused)
    }

    pub(super) fn pause_layout(&mut self) -> bool {
        match &mut self.shown_queries {
            Some(shown) => std::mem::replace(&mut shown.paused, true),
            None => true,
        }
    }

    pub(super) fn resume_layout(&mut self, paused: bool) {
        if let Some(shown) = &mut self.shown_queries {
            shown.paused = paused;
        }
    }
}

/// The last of the names that a column is qualified by.
fn last_name(qualified: &str) -> String {
    qualified.rsplit('.').next().unwrap_or("").to_owned()
}

/// What is known of the queries that are being laid out.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) pretty: bool,
    /// What the items of each query are called, the outermost first.
    pub(super) names: Vec<Vec<String>>,
    /// The texts of queries inside expressions, by where they stand.
    inside: RefCell<HashMap<i32, String>>,
    /// How many queries without names, UNION or VALUES, the one at work is inside of.
    unnamed: usize,
    /// Whether all is to stand on one line.
    flat: bool,
    /// The routine whose body is shown.
    arguments: Option<OfRoutine>,
    /// What columns of rows are called, where a rule is shown.
    rows: Vec<String>,
    /// Whether what is bound now is not shown.
    pub(super) paused: bool,
    /// How many queries the one at work is inside of.
    depth: usize,
    /// The types of the columns of the UNION or its kin that the query which is laid out next is a side
    /// of: those of its literals without a type.
    pub(super) united: Option<Vec<TypeId>>,
}

impl Shown {
    /// The statements of a rule about such rows.
    pub(super) fn of_rule(rows: Vec<String>, pretty: bool) -> Shown {
        Shown {
            rows,
            pretty,
            names: vec![vec!["old".to_owned(), "new".to_owned()]],
            ..Shown::default()
        }
    }

    /// The statements of the body of a routine; whether all of it is to stand on one line.
    pub(super) fn of(routine: OfRoutine, flat: bool) -> Shown {
        Shown {
            flat,
            arguments: Some(routine),
            ..Shown::default()
        }
    }
}

/// What is known of the routine whose body is laid out, to all of its queries.
#[derive(Debug, Default)]
pub(super) struct OfRoutine {
    /// Its name.
    pub(super) routine: String,
    /// The names of its inputs.
    pub(super) arguments: Vec<String>,
}

/// Queries nested deeper are shown as they are stored: a layout takes more of the stack than binding.
const LAYOUT_DEPTH_MAX: usize = 40;

/// What an expression without a name is called.
const UNNAMED: &str = "?column?";

/// What the columns of a query are called.
#[derive(Clone, Copy)]
pub(super) enum Called<'n> {
    /// So.
    As(&'n [String]),
    /// As it says itself.
    Itself,
    /// It is RETURN, whose value has no name.
    Returned,
    /// So too, but nobody sees it.
    Nothing,
    /// The same, and INSERT says of which types its literals are.
    Inserted,
}

/// The columns of a query.
pub(super) struct Targets<'t> {
    pub(super) exprs: &'t [Expr],
    pub(super) names: &'t [String],
}

/// Whether a query is none of UNION and its kin.
pub(super) fn is_alone(select: &SelectStmt) -> bool {
    matches!(
        SetOperation::try_from(select.op),
        Ok(SetOperation::SetopNone | SetOperation::Undefined)
    )
}

/// What stands behind a key of ORDER BY.
pub(super) fn direction(sort: &SortBy) -> &'static str {
    match sort_order(sort) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}
