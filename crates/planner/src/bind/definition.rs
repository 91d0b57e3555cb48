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
//! # What it leaves out
//! Queries inside queries, UNION and its kin, WITH and USING keep the layout in which the catalog has
//! them; names are put back there too, so that it is the same query.

use std::sync::Arc;

use base::{Error, Result};
use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{
    CoercionForm, GroupingSetKind, JoinExpr, JoinType, Node, SelectStmt, SetOperation,
};

use super::expr::Place;
use super::scope::Scope;
use super::select::sort_order;
use super::stored::is_row_of;
use super::{boxed, inner, strings, Binder};
use crate::deparse::{expression, sort_key, window, Names, Style};
use crate::plan::{Expr, ExprKind};
use catalog::depend::{routine_name, shown_name};
use catalog::view::BY_OID;
use catalog::Table;
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum, Token, TokenKind};
use types::TypeId;

/// CASE stands so far from the margin.
const CASE_INDENT: usize = 8;

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

/// Columns of a query's items by the names that their relations give them now.
struct Items<'s>(&'s Scope<'s>);

impl Items<'_> {
    fn named(&self, place: usize) -> Option<(String, String)> {
        let (item, at) = self.0.table_at(place)?;
        let column = item.table.as_ref()?.columns.get(at)?;
        Some((item.alias.clone(), column.name.clone()))
    }
}

impl Names for Items<'_> {
    fn column(&self, place: usize, _: usize) -> String {
        match self.named(place) {
            Some((item, column)) => {
                format!("{}.{}", quote_identifier(&item), quote_identifier(&column))
            }
            None => "?".to_owned(),
        }
    }

    fn row(&self, fields: &[Expr]) -> Option<String> {
        let ExprKind::Column(first) = fields.first()?.kind else {
            return None;
        };
        let (item, _) = self.0.table_at(first)?;
        let is_whole = is_row_of(item.table.as_ref()?, item.start, fields);
        is_whole.then(|| format!("{}.*", quote_identifier(&item.alias)))
    }
}

/// Whether the query has only what is laid out here.
fn is_plain(select: &SelectStmt) -> bool {
    let alone = matches!(
        SetOperation::try_from(select.op),
        Ok(SetOperation::SetopNone | SetOperation::Undefined)
    );
    alone
        && select.with_clause.is_none()
        && select.values_lists.is_empty()
        && select.distinct_clause.is_empty()
        && select.locking_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
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
        let laid_out = self.in_stored_text(|binder| {
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
        let text = self.renamed(query)?;
        let given = self.expand(view)?.columns;
        let given = given.iter().map(|column| column.name.as_str());
        if given.eq(view.columns.iter().map(|column| column.name.as_str())) {
            return Ok(format!(" {text};"));
        }
        let names = view.columns.iter();
        let names: Vec<_> = names.map(|column| quote_identifier(&column.name)).collect();
        let (own, names) = (quote_identifier(&view.name), names.join(", "));
        Ok(format!(" SELECT * FROM ({text}) {own}({names});"))
    }

    fn laid_out(
        &mut self,
        view: &Table,
        select: &SelectStmt,
        pretty: bool,
    ) -> Result<Option<String>> {
        if !is_plain(select) {
            return Ok(None);
        }
        let mut scope = Scope::default();
        self.bind_from(&select.from_clause, &mut scope, false, &mut 0)?;
        if !scope.merged.is_empty() {
            return Ok(None);
        }
        self.window_clause(&select.window_clause, &mut scope)?;
        let names = Items(&scope);
        let eval = self.cx.eval;
        let style = Style {
            pretty,
            indent: CASE_INDENT,
            ..Style::default()
        };
        let shown = |expr: &Expr, casts| expression(expr, &names, eval, style, casts);
        let key_text = |expr: &Expr| sort_key(expr, &names, eval, style);
        let mut out = String::from(" SELECT ");
        let mut targets = Vec::new();
        for (expr, _) in self.targets(&select.target_list, &scope)? {
            targets.push(self.settle(expr)?);
        }
        for (place, (expr, column)) in targets.iter().zip(&view.columns).enumerate() {
            let text = shown(expr, true)?;
            // CASE begins a line of its own.
            let begins_line = text.starts_with('\n');
            match (place, begins_line) {
                (0, true) => out.truncate(out.trim_end().len()),
                (0, false) => {}
                (_, true) => out.push(','),
                (_, false) => out.push_str(",\n    "),
            }
            out.push_str(&text);
            let own = match expr.kind {
                ExprKind::Column(at) => names.named(at).map(|named| named.1),
                _ => None,
            };
            if own.as_ref() != Some(&column.name) {
                out.push_str(&format!(" AS {}", quote_identifier(&column.name)));
            }
        }
        let mut next = 0;
        for (place, item) in select.from_clause.iter().enumerate() {
            out.push_str(if place > 0 { ",\n    " } else { "\n   FROM " });
            match self.item_text(item, &scope, &mut next, style)? {
                Some(text) => out.push_str(&text),
                None => return Ok(None),
            }
        }
        if let Some(condition) = self.where_clause(&select.where_clause, &scope)? {
            out.push_str(&format!("\n  WHERE {}", shown(&condition, false)?));
        }
        let mut groups = Vec::new();
        for node in &select.group_clause {
            let mut key = |binder: &mut Self, node: &Node| {
                let expr = binder.sorted_by(node, &scope, &targets, view, "GROUP BY")?;
                expr.map(|expr| key_text(&expr)).transpose()
            };
            match self.group_text(node, Inside::Clause, &mut key)? {
                Some(text) => groups.push(text),
                None => return Ok(None),
            }
        }
        if !groups.is_empty() {
            let distinct = if select.group_distinct {
                "DISTINCT "
            } else {
                ""
            };
            out.push_str(&format!("\n  GROUP BY {distinct}{}", groups.join(", ")));
        }
        if let Some(node) = &select.having_clause {
            let having = self.expr(inner(node)?, &scope, Place::grouped("HAVING"))?;
            let having = self.condition(having, "HAVING")?;
            out.push_str(&format!("\n HAVING {}", shown(&having, false)?));
        }
        let mut windows = Vec::new();
        for named in &scope.windows {
            let text = window(&named.spec, &named.from, &names, eval, style)?;
            windows.push(format!("{} AS {text}", quote_identifier(&named.name)));
        }
        if !windows.is_empty() {
            out.push_str(&format!("\n  WINDOW {}", windows.join(", ")));
        }
        let mut order = Vec::new();
        for node in &select.sort_clause {
            let NodeEnum::SortBy(sort) = inner(node)? else {
                return Ok(None);
            };
            let key = sort
                .node
                .as_ref()
                .ok_or_else(|| Error::internal("ORDER BY nothing"))?;
            let Some(expr) = self.sorted_by(key, &scope, &targets, view, "ORDER BY")? else {
                return Ok(None);
            };
            let mut text = key_text(&expr)?;
            let (descending, nulls_first) = sort_order(sort);
            text.push_str(match (descending, nulls_first) {
                (false, false) => "",
                (false, true) => " NULLS FIRST",
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
            });
            order.push(text);
        }
        if !order.is_empty() {
            out.push_str(&format!("\n  ORDER BY {}", order.join(", ")));
        }
        out.push(';');
        Ok(Some(out))
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
        targets: &[Expr],
        view: &Table,
        clause: &'static str,
    ) -> Result<Option<Expr>> {
        let node = inner(node)?;
        match node {
            NodeEnum::AConst(constant) => Ok(match &constant.val {
                Some(Val::Ival(number)) => {
                    let place = usize::try_from(number.ival - 1).ok();
                    place.and_then(|place| targets.get(place)).cloned()
                }
                _ => None,
            }),
            NodeEnum::RowExpr(_) => Ok(None),
            NodeEnum::ColumnRef(column) if clause == "ORDER BY" => {
                let names = strings(&column.fields);
                let own = view
                    .columns
                    .iter()
                    .position(|own| names == [own.name.as_str()]);
                match own.and_then(|own| targets.get(own)) {
                    Some(expr) => Ok(Some(expr.clone())),
                    None => self.expr(node, scope, Place::output(clause)).map(Some),
                }
            }
            NodeEnum::ColumnRef(column) => {
                let names = strings(&column.fields);
                let mut own = view.columns.iter();
                let own = own.position(|own| names == [own.name.as_str()]);
                match (self.expr(node, scope, Place::output(clause)), own) {
                    (Err(_), Some(own)) if own < targets.len() => Ok(Some(targets[own].clone())),
                    (input, _) => input.map(Some),
                }
            }
            _ => self.expr(node, scope, Place::output(clause)).map(Some),
        }
    }

    /// An item of FROM; none if it is of a kind that is not laid out.
    fn item_text(
        &mut self,
        node: &Node,
        scope: &Scope<'_>,
        next: &mut usize,
        style: Style,
    ) -> Result<Option<String>> {
        match inner(node)? {
            NodeEnum::RangeVar(_) => {
                let item = scope.tables.get(*next);
                *next += 1;
                let Some((item, table)) = item.and_then(|item| Some((item, item.table.as_ref()?)))
                else {
                    return Ok(None);
                };
                let named = shown_name(self.cx.catalog, self.cx.search_path, table.oid);
                let named = named.unwrap_or_else(|| quote_identifier(&table.name));
                Ok(Some(match item.alias == table.name {
                    true => named,
                    false => format!("{named} {}", quote_identifier(&item.alias)),
                }))
            }
            NodeEnum::JoinExpr(join) => self.join_text(join, scope, next, style),
            _ => Ok(None),
        }
    }

    fn join_text(
        &mut self,
        join: &JoinExpr,
        scope: &Scope<'_>,
        next: &mut usize,
        style: Style,
    ) -> Result<Option<String>> {
        if join.alias.is_some() || join.is_natural || !join.using_clause.is_empty() {
            return Ok(None);
        }
        let (Some(left), Some(right)) = (&join.larg, &join.rarg) else {
            return Ok(None);
        };
        let left = self.item_text(left, scope, next, style)?;
        let right = self.item_text(right, scope, next, style)?;
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        let word = match (JoinType::try_from(join.jointype), &join.quals) {
            (Ok(JoinType::JoinInner), None) => "CROSS JOIN",
            (Ok(JoinType::JoinInner), _) => "JOIN",
            (Ok(JoinType::JoinLeft), _) => "LEFT JOIN",
            (Ok(JoinType::JoinRight), _) => "RIGHT JOIN",
            (Ok(JoinType::JoinFull), _) => "FULL JOIN",
            _ => return Ok(None),
        };
        let mut text = format!("{left}\n     {word} {right}");
        if join.quals.is_some() {
            let condition = self.expr(boxed(&join.quals)?, scope, Place::plain("JOIN/ON"))?;
            let condition = self.condition(condition, "JOIN/ON")?;
            let names = Items(scope);
            let shown = expression(&condition, &names, self.cx.eval, style, false)?;
            text.push_str(&match style.pretty {
                true => format!(" ON {shown}"),
                false => format!(" ON ({shown})"),
            });
        }
        Ok(Some(match style.pretty {
            true => text,
            false => format!("({text})"),
        }))
    }

    /// Stored text with the names of relations in the places of their oids.
    pub(super) fn renamed(&self, text: &str) -> Result<String> {
        let tokens = parser::tokens(text)?;
        let part = |at: usize| {
            tokens
                .get(at)
                .map_or("", |token| &text[token.start..token.end])
        };
        let schema = format!("\"{BY_OID}\"");
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (at, token) in tokens.iter().enumerate() {
            let is_oid = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let is_item = part(at) == schema && part(at + 1) == ".";
            if let Some((shown, last)) = self.own_renamed(&part, at, token, is_item) {
                out.push_str(&text[done..token.start]);
                out.push_str(&shown);
                done = tokens[last].end;
                continue;
            }
            let oid = match is_item {
                true => part(at + 2).trim_matches('"'),
                false if token.kind != TokenKind::String || part(at + 2) != "regclass" => continue,
                false => part(at).trim_matches('\''),
            };
            let oid = Some(oid).filter(|oid| is_oid(oid));
            let oid = oid.and_then(|oid| oid.parse().ok());
            let routine = oid.filter(|_| is_item);
            if let Some(routine) = routine.and_then(|oid| self.cx.catalog.routine(oid)) {
                let shown = routine_name(self.cx.catalog, self.cx.search_path, routine);
                out.push_str(&text[done..token.start]);
                out.push_str(&shown);
                done = tokens[at + 2].end;
                continue;
            }
            let name = oid.and_then(|oid| shown_name(self.cx.catalog, self.cx.search_path, oid));
            let (Some(oid), Some(name)) = (oid, name) else {
                continue;
            };
            out.push_str(&text[done..token.start]);
            if is_item {
                let (alias, columns, end) = stored_alias(&tokens[at + 3..], text);
                let table = self.cx.catalog.table_by_oid(oid);
                out.push_str(&item_as_named(table, &name, &alias, &columns));
                done = end.max(tokens[at + 2].end);
            } else {
                out.push_str(&format!("'{}'", name.replace('\'', "''")));
                done = token.end;
            }
        }
        out.push_str(&text[done..]);
        Ok(out)
    }

    /// What stands for a type of one's own, or for a literal with labels, in stored text, as anyone
    /// may write it, and the place of its last token.
    fn own_renamed<'p>(
        &self,
        part: &impl Fn(usize) -> &'p str,
        at: usize,
        token: &Token,
        is_item: bool,
    ) -> Option<(String, usize)> {
        if is_item {
            let id = TypeId(part(at + 2).trim_matches('"').parse().ok()?);
            let shown = self.cx.catalog.shown_type(self.cx.search_path, id);
            return shown.filter(|_| id.is_own()).map(|shown| (shown, at + 2));
        }
        let is_label = token.kind == TokenKind::String && part(at).contains('#');
        let (kept, eval) = (part(at), self.cx.eval);
        let shown = is_label.then(|| eval.name_labels(kept)).flatten();
        shown.map(|shown| (shown, at))
    }
}

/// The alias of an item of FROM in stored text, the names that its columns have there, and where
/// that ends: `AS "t"("a", "b")`.
fn stored_alias(tokens: &[Token], text: &str) -> (String, Vec<String>, usize) {
    let name = |at: usize| {
        let token = tokens.get(at).map(|token| &text[token.start..token.end]);
        let quoted = token.and_then(|token| token.strip_prefix('"')?.strip_suffix('"'));
        quoted.map(|name| name.replace("\"\"", "\""))
    };
    let is = |at: usize, c: u8| {
        let token = tokens.get(at);
        token.is_some_and(|token| token.kind == TokenKind::Char(c))
    };
    let end = |at: usize| tokens.get(at).map_or(0, |token| token.end);
    let Some(alias) = name(1) else {
        return (String::new(), Vec::new(), 0);
    };
    let mut columns = Vec::new();
    if !is(2, b'(') {
        return (alias, columns, end(1));
    }
    let mut at = 3;
    while let Some(column) = name(at) {
        columns.push(column);
        at += 1;
        if is(at, b',') {
            at += 1;
        }
    }
    (alias, columns, end(at))
}

/// An item of FROM by its name, as anyone may write it: with a list of columns only where they have
/// other names by now, and with those alone that were there when the text was stored.
fn item_as_named(table: Option<&Arc<Table>>, name: &str, alias: &str, stored: &[String]) -> String {
    let own = match table {
        Some(table) if table.name == alias => String::new(),
        _ => format!(" {}", quote_identifier(alias)),
    };
    let Some(table) = table else {
        return format!("{name}{own}");
    };
    let listed = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| quote_identifier(name)).collect();
        names.join(", ")
    };
    let live = table.columns.iter().filter(|column| !column.dropped);
    let live: Vec<_> = live.map(|column| column.name.as_str()).collect();
    let seen = stored.iter().zip(&table.columns);
    let seen: Vec<_> = seen.filter(|(_, column)| !column.dropped).collect();
    let names: Vec<_> = seen.iter().map(|(stored, _)| stored.as_str()).collect();
    let now: Vec<_> = seen
        .iter()
        .map(|(_, column)| column.name.as_str())
        .collect();
    let (alias, list) = (quote_identifier(alias), listed(&names));
    match (names == now, now.len() == live.len()) {
        (true, true) => format!("{name}{own}"),
        (false, true) => format!("{name} {alias}({list})"),
        // Whatever came later must not be in `*`.
        (_, false) => format!("(SELECT {} FROM {name}) {alias}({list})", listed(&now)),
    }
}
