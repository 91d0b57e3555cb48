//! Statements that write, as `pg_get_functiondef` prints them in PostgreSQL's layout.
//!
//! ```text
//!  INSERT INTO t (a, b)
//!    VALUES (f.x, 1) ON CONFLICT(a) DO UPDATE SET b = excluded.b
//!    RETURNING t.a;
//!  UPDATE t SET b = u.b
//!     FROM u
//!    WHERE (t.a = u.a);
//! ```
//! They are part of the body of a routine ([`super::sql_body`]), or of a WITH there.
//!
//! # What it leaves out
//! Operator classes and collations of ON CONFLICT, WHERE CURRENT OF: such a statement keeps the layout in
//! which the catalog has it.

use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result};
use pg_query::protobuf::{
    CmdType, DeleteStmt, InferClause, InsertStmt, MergeMatchKind, MergeStmt, MergeWhenClause, Node,
    OnConflictAction, OnConflictClause, OverridingKind, RangeVar, ResTarget, ReturningClause,
    SubLinkType, UpdateStmt, WithClause,
};

use super::definition::{Called, Targets};
use super::expr::Place;
use super::scope::{Scope, ScopeTable};
use super::stored::Columns;
use super::updatable::Writable;
use super::{boxed, inner, Binder};
use crate::deparse::layout::{shifted, Layout, STEP};
use crate::deparse::{expression, Style};
use catalog::depend::shown_name;
use catalog::Table;
use functions::strings::quote_identifier;
use syntax::parser::NodeEnum;
use types::TypeId;

/// A column that INSERT gives: as it is shown, and which it is, if it is all of that.
type Given = (String, Option<usize>);

/// What a statement writes to.
struct Target {
    table: Arc<Table>,
    writable: Writable,
    /// Its name as the text has it, with its alias.
    text: String,
    /// What it is called among the items of the statement.
    shown: String,
    /// What the statement calls it.
    name: String,
}

impl Target {
    /// The name that a column has now of which the statement knows this one.
    fn column(&self, name: &str) -> Option<&catalog::Column> {
        let names = self.writable.column_names();
        let place = names.iter().position(|known| known == name)?;
        self.table.columns.get(place)
    }

    fn item(&self) -> ScopeTable {
        self.writable.item(&self.name, 0)
    }
}

impl Binder<'_> {
    /// A statement that writes, from the space before its first word; none if it has what is not laid
    /// out.
    pub(super) fn written_text(
        &mut self,
        statement: &NodeEnum,
        called: Called<'_>,
    ) -> Result<Option<String>> {
        let (with, range) = match statement {
            NodeEnum::InsertStmt(insert) => (&insert.with_clause, &insert.relation),
            NodeEnum::UpdateStmt(update) => (&update.with_clause, &update.relation),
            NodeEnum::DeleteStmt(delete) => (&delete.with_clause, &delete.relation),
            NodeEnum::MergeStmt(merge) => (&merge.with_clause, &merge.relation),
            _ => return Ok(None),
        };
        let range = range.as_ref();
        let range = range.ok_or_else(|| Error::internal("a statement without its table"))?;
        let paused = self.pause_layout();
        // Its queries are laid out where they stand, so it is no matter which of them are named.
        let before = self.with_clause(with.as_ref(), Vec::new, None);
        let target = self.shown_target(range);
        self.resume_layout(paused);
        let (before, target) = (before?, target?);
        let mut layout = Layout::default();
        let done = match statement {
            NodeEnum::InsertStmt(insert) => {
                self.insert_text((insert, called), &target, &mut layout)
            }
            NodeEnum::UpdateStmt(update) => {
                self.update_text((update, called), &target, &mut layout)
            }
            NodeEnum::DeleteStmt(delete) => {
                self.delete_text((delete, called), &target, &mut layout)
            }
            NodeEnum::MergeStmt(merge) => self.merge_text(merge, &target, &mut layout),
            _ => Ok(None),
        };
        self.forget_ctes(before);
        Ok(done?.map(|()| layout.out))
    }

    fn shown_target(&mut self, range: &RangeVar) -> Result<Target> {
        let table = self.table(range, TableLock::RowExclusive)?;
        self.positional = false;
        let called = self.called_then(&table);
        let writable = Writable::table(table.clone()).called(called);
        let own = shown_name(self.cx.catalog, self.cx.search_path, table.oid);
        let own = own.unwrap_or_else(|| quote_identifier(&table.name));
        let only = if range.inh { "" } else { "ONLY " };
        let (text, shown, name) = match &range.alias {
            Some(alias) => {
                let alias = &alias.aliasname;
                let text = format!("{only}{own} AS {}", quote_identifier(alias));
                (text, alias.clone(), alias.clone())
            }
            None => (
                format!("{only}{own}"),
                table.name.clone(),
                writable.name().to_owned(),
            ),
        };
        Ok(Target {
            table,
            writable,
            text,
            shown,
            name,
        })
    }

    /// WITH, whose queries do not see the items of the statement.
    fn with_before(
        &mut self,
        with: &Option<WithClause>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        match with {
            Some(with) => self.beside_names(|binder| binder.with_text(with, None, layout)),
            None => Ok(Some(())),
        }
    }

    fn forget_names(&mut self) {
        if let Some(shown) = &mut self.shown_queries {
            shown.names.pop();
        }
    }

    // ---- INSERT ----

    fn insert_text(
        &mut self,
        (insert, called): (&InsertStmt, Called<'_>),
        target: &Target,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let mut scope = Scope {
            tables: vec![target.item()],
            ..Scope::default()
        };
        if insert.on_conflict_clause.is_some() {
            scope.tables.push(ScopeTable {
                needed: None,
                qualified_only: true,
                ..target.writable.item("excluded", target.table.columns.len())
            });
        }
        let mut names = vec![target.shown.clone()];
        names.extend(scope.tables.iter().skip(1).map(|item| item.alias.clone()));
        self.name_items_after(&scope, names);
        let done = self.insert_parts((insert, called), target, &mut scope, layout);
        self.forget_names();
        done
    }

    fn insert_parts(
        &mut self,
        (insert, called): (&InsertStmt, Called<'_>),
        target: &Target,
        scope: &mut Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if self.with_before(&insert.with_clause, layout)?.is_none() {
            return Ok(None);
        }
        layout.level += STEP;
        layout.text(&format!(" INSERT INTO {} ", target.text));
        let source = match &insert.select_stmt {
            Some(source) => match inner(source)? {
                NodeEnum::SelectStmt(select) => Some(select),
                _ => return Ok(None),
            },
            None => None,
        };
        let lists = source.map_or(&[][..], |select| &select.values_lists);
        let mut rows: Vec<&[Node]> = Vec::new();
        for list in lists {
            match inner(list)? {
                NodeEnum::List(list) => rows.push(&list.items),
                _ => return Ok(None),
            }
        }
        let count = match (source, rows.first()) {
            (_, Some(row)) => row.len(),
            (Some(select), None) => self.query_width(select)?,
            (None, None) => 0,
        };
        let Some(columns) = self.insert_targets(&insert.cols, count, target, scope)? else {
            return Ok(None);
        };
        if !columns.is_empty() {
            let names: Vec<_> = columns.iter().map(|column| column.0.as_str()).collect();
            layout.text(&format!("({}) ", names.join(", ")));
        }
        layout.text(overriding(insert.r#override));
        let sorted = source.is_some_and(|select| {
            !select.sort_clause.is_empty()
                || select.limit_count.is_some()
                || select.limit_offset.is_some()
                || select.with_clause.is_some()
        });
        match (source, rows.as_slice()) {
            (None, _) => layout.text("DEFAULT VALUES"),
            (Some(_), [row]) if !sorted => {
                let values = self.values_given(row, &columns, target, layout.level)?;
                layout.clause("VALUES (", 2);
                layout.text(&format!("{})", values.join(", ")));
            }
            (Some(_), [_, ..]) if !sorted => {
                layout.text("VALUES ");
                for (place, row) in rows.iter().enumerate() {
                    let values = self.values_given(row, &columns, target, layout.level)?;
                    layout.text(if place > 0 { ", " } else { "" });
                    layout.text(&format!("({})", values.join(",")));
                }
            }
            (Some(select), _) => {
                let Some(text) = self.query_text(select, None, Called::Inserted)? else {
                    return Ok(None);
                };
                layout.text(&shifted(&text, layout.level));
            }
        }
        if let Some(clause) = &insert.on_conflict_clause {
            if self.conflict_text(clause, target, scope, layout)?.is_none() {
                return Ok(None);
            }
            scope.tables.truncate(1);
        }
        self.returning_text((&insert.returning_clause, called), scope, layout)
    }

    /// How many columns a query has.
    fn query_width(&mut self, select: &pg_query::protobuf::SelectStmt) -> Result<usize> {
        let paused = self.pause_layout();
        let bound = self.select(select, None);
        self.resume_layout(paused);
        Ok(bound?.columns.len())
    }

    /// The columns that INSERT gives: as they are shown, and which they are, if it is the whole column.
    fn insert_targets(
        &mut self,
        listed: &[Node],
        count: usize,
        target: &Target,
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Given>>> {
        let names = target.writable.column_names();
        let shown = |place: usize| quote_identifier(&target.table.columns[place].name);
        let mut columns = Vec::new();
        if listed.is_empty() {
            let places = names.iter().enumerate();
            let places = places.filter(|(_, name)| !name.is_empty()).take(count);
            columns.extend(places.map(|(place, _)| (shown(place), Some(place))));
            return Ok(Some(columns));
        }
        for node in listed {
            let NodeEnum::ResTarget(column) = inner(node)? else {
                return Ok(None);
            };
            let place = names.iter().position(|name| *name == column.name);
            let Some(place) = place else {
                return Ok(None);
            };
            let ty = target.table.columns[place].type_id;
            let steps = self.steps_text(column, ty, scope)?;
            let whole = column.indirection.is_empty().then_some(place);
            columns.push((shown(place) + &steps, whole));
        }
        Ok(Some(columns))
    }

    /// What leads to the part of a column of a type that is assigned to.
    fn steps_text(
        &mut self,
        column: &ResTarget,
        mut ty: TypeId,
        scope: &Scope<'_>,
    ) -> Result<String> {
        let unknown = || Error::unsupported("the layout of this assignment");
        let mut out = String::new();
        for step in &column.indirection {
            match inner(step)? {
                NodeEnum::String(field) => {
                    let fields = self.fields_of_type(ty).ok_or_else(unknown)?;
                    let place = self.place_of_field(ty, &fields, &field.sval);
                    let known = &fields[place.ok_or_else(unknown)?];
                    out.push_str(&format!(".{}", quote_identifier(&known.name)));
                    ty = known.ty;
                }
                NodeEnum::AIndices(indices) => {
                    let mut bounds = Vec::new();
                    for bound in [&indices.lidx, &indices.uidx] {
                        bounds.push(match bound {
                            Some(node) => {
                                let bound = self.node(node, scope, Place::plain("UPDATE"))?;
                                let bound = self.settle(bound)?;
                                self.shown_expr(&bound, scope, false, 0)?
                            }
                            None => String::new(),
                        });
                    }
                    out.push_str(&match indices.is_slice {
                        true => format!("[{}]", bounds.join(":")),
                        false => format!("[{}]", bounds[1]),
                    });
                    ty = ty.array_element().unwrap_or(ty);
                }
                _ => return Err(unknown()),
            }
        }
        Ok(out)
    }

    fn values_given(
        &mut self,
        row: &[Node],
        columns: &[Given],
        target: &Target,
        at: i32,
    ) -> Result<Vec<String>> {
        let scope = Scope::default();
        let mut values = Vec::new();
        for (node, column) in row.iter().zip(columns) {
            let column = column.1.map(|place| &target.table.columns[place]);
            values.push(self.value_text(node, column, &scope, at)?);
        }
        Ok(values)
    }

    /// A value that a column is given, or a part of one.
    fn value_text(
        &mut self,
        node: &Node,
        column: Option<&catalog::Column>,
        scope: &Scope<'_>,
        at: i32,
    ) -> Result<String> {
        let node = inner(node)?;
        if matches!(node, NodeEnum::SetToDefault(_)) {
            return Ok("DEFAULT".to_owned());
        }
        let value = self.expr(node, scope, Place::plain("VALUES"))?;
        let value = match column {
            Some(column) => {
                let (ty, typmod) = column.declared();
                self.assign(value, ty, typmod, &column.name)?
            }
            None => self.settle(value)?,
        };
        self.shown_expr(&value, scope, false, at)
    }

    fn conflict_text(
        &mut self,
        clause: &OnConflictClause,
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        layout.text(" ON CONFLICT");
        if let Some(infer) = &clause.infer {
            if self.arbiter_text(infer, target, layout)?.is_none() {
                return Ok(None);
            }
        }
        if clause.action == OnConflictAction::OnconflictNothing as i32 {
            layout.text(" DO NOTHING");
            return Ok(Some(()));
        }
        layout.text(" DO UPDATE SET ");
        if self
            .set_text(&clause.target_list, target, scope, layout)?
            .is_none()
        {
            return Ok(None);
        }
        self.condition_text(&clause.where_clause, scope, layout)
    }

    fn arbiter_text(
        &mut self,
        infer: &InferClause,
        target: &Target,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let table = &target.table;
        if !infer.conname.is_empty() {
            let oid = infer.conname.trim_start_matches(catalog::view::BY_OID);
            let mut indexes = table.indexes.iter();
            let found = indexes.find(|index| oid.parse() == Ok(index.constraint));
            let Some(found) = found else {
                return Ok(None);
            };
            let name = quote_identifier(&found.name);
            layout.text(&format!(" ON CONSTRAINT {name}"));
            return Ok(Some(()));
        }
        let scope = Scope {
            tables: vec![target.item()],
            ..Scope::default()
        };
        let style = Style::default();
        let mut elements = Vec::new();
        for node in &infer.index_elems {
            let NodeEnum::IndexElem(element) = inner(node)? else {
                return Ok(None);
            };
            if !element.opclass.is_empty() || !element.collation.is_empty() {
                return Ok(None);
            }
            elements.push(match &element.expr {
                None => match target.column(&element.name) {
                    Some(column) => quote_identifier(&column.name),
                    None => return Ok(None),
                },
                Some(node) => {
                    let key = self.node(node, &scope, Place::INDEX_KEY)?;
                    let key = self.settle(key)?;
                    let text = expression(&key, &Columns(table), self.cx.eval, style, false)?;
                    match crate::deparse::is_call(&key) || text.starts_with('(') {
                        true => text,
                        false => format!("({text})"),
                    }
                }
            });
        }
        layout.text(&format!("({})", elements.join(", ")));
        if let Some(condition) = self.where_clause(&infer.where_clause, &scope)? {
            layout.clause(" WHERE ", 1);
            let text = expression(&condition, &Columns(table), self.cx.eval, style, false)?;
            layout.text(&text);
        }
        Ok(Some(()))
    }

    fn condition_text(
        &mut self,
        condition: &Option<Box<Node>>,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if let Some(node) = condition {
            if matches!(inner(node)?, NodeEnum::CurrentOfExpr(_)) {
                return Ok(None);
            }
        }
        if let Some(condition) = self.where_clause(condition, scope)? {
            let text = self.shown_expr(&condition, scope, false, layout.level)?;
            layout.clause(" WHERE ", 1);
            layout.text(&text);
        }
        Ok(Some(()))
    }

    fn returning_text(
        &mut self,
        (clause, called): (&Option<ReturningClause>, Called<'_>),
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let Some(clause) = clause else {
            return Ok(Some(()));
        };
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for (expr, column) in self.targets(&clause.exprs, scope)? {
            exprs.push(self.settle(expr)?);
            names.push(column.name);
        }
        layout.clause(" RETURNING", 1);
        let targets = Targets {
            exprs: &exprs,
            names: &names,
        };
        self.targets_text(&targets, called, scope, layout)?;
        Ok(Some(()))
    }

    // ---- SET ----

    fn set_text(
        &mut self,
        list: &[Node],
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let mut shown = Vec::new();
        // The columns of `(a, b) = (SELECT …)` so far.
        let mut row: Vec<String> = Vec::new();
        for node in list {
            let NodeEnum::ResTarget(assigned) = inner(node)? else {
                return Ok(None);
            };
            let Some(column) = target.column(&assigned.name) else {
                return Ok(None);
            };
            let name = quote_identifier(&column.name)
                + &self.steps_text(assigned, column.type_id, scope)?;
            let whole = assigned.indirection.is_empty().then_some(column);
            let value = assigned.val.as_deref();
            let value = value.ok_or_else(|| Error::internal("SET of nothing"))?;
            let text = match inner(value)? {
                NodeEnum::MultiAssignRef(multi) => {
                    let at = usize::try_from(multi.colno - 1).unwrap_or(0);
                    match boxed(&multi.source)? {
                        NodeEnum::RowExpr(values) => match values.args.get(at) {
                            Some(value) => self.value_text(value, whole, scope, layout.level)?,
                            None => return Ok(None),
                        },
                        NodeEnum::SubLink(link)
                            if link.sub_link_type == SubLinkType::ExprSublink as i32 =>
                        {
                            row.push(name);
                            if multi.colno < multi.ncolumns {
                                continue;
                            }
                            let NodeEnum::SelectStmt(select) = boxed(&link.subselect)? else {
                                return Ok(None);
                            };
                            let text = self.query_text(select, Some(scope), Called::Nothing)?;
                            let Some(text) = text else {
                                return Ok(None);
                            };
                            let names = std::mem::take(&mut row).join(", ");
                            let text = shifted(&text, layout.level);
                            shown.push(format!("({names}) = ({text})"));
                            continue;
                        }
                        _ => return Ok(None),
                    }
                }
                _ => self.value_text(value, whole, scope, layout.level)?,
            };
            shown.push(format!("{name} = {text}"));
        }
        layout.text(&shown.join(", "));
        Ok(Some(()))
    }

    // ---- UPDATE, DELETE ----

    /// The items of a statement over the rows of its target and others.
    fn items_beside(&mut self, target: &Target, others: &[Node]) -> Result<Scope<'static>> {
        let mut scope = Scope {
            tables: vec![target.item()],
            ..Scope::default()
        };
        // The target's row has its key behind its columns.
        let mut next = target.table.columns.len() + 1;
        let paused = self.pause_layout();
        let bound = self.bind_from(others, &mut scope, false, &mut next);
        self.resume_layout(paused);
        bound?;
        self.name_items_after(&scope, vec![target.shown.clone()]);
        Ok(scope)
    }

    fn update_text(
        &mut self,
        (update, called): (&UpdateStmt, Called<'_>),
        target: &Target,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let scope = self.items_beside(target, &update.from_clause)?;
        let done = self.update_parts((update, called), target, &scope, layout);
        self.forget_names();
        done
    }

    fn update_parts(
        &mut self,
        (update, called): (&UpdateStmt, Called<'_>),
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if !scope.merged.is_empty() || self.with_before(&update.with_clause, layout)?.is_none() {
            return Ok(None);
        }
        layout.level += STEP;
        layout.text(&format!(" UPDATE {} SET ", target.text));
        let set = self.set_text(&update.target_list, target, scope, layout)?;
        let from = (" FROM ", update.from_clause.as_slice());
        if set.is_none()
            || self.items_text(from, scope, 1, layout)?.is_none()
            || self
                .condition_text(&update.where_clause, scope, layout)?
                .is_none()
        {
            return Ok(None);
        }
        self.returning_text((&update.returning_clause, called), scope, layout)
    }

    fn delete_text(
        &mut self,
        (delete, called): (&DeleteStmt, Called<'_>),
        target: &Target,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let scope = self.items_beside(target, &delete.using_clause)?;
        let done = self.delete_parts((delete, called), target, &scope, layout);
        self.forget_names();
        done
    }

    fn delete_parts(
        &mut self,
        (delete, called): (&DeleteStmt, Called<'_>),
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if !scope.merged.is_empty() || self.with_before(&delete.with_clause, layout)?.is_none() {
            return Ok(None);
        }
        layout.level += STEP;
        layout.text(&format!(" DELETE FROM {}", target.text));
        let using = (" USING ", delete.using_clause.as_slice());
        if self.items_text(using, scope, 1, layout)?.is_none()
            || self
                .condition_text(&delete.where_clause, scope, layout)?
                .is_none()
        {
            return Ok(None);
        }
        self.returning_text((&delete.returning_clause, called), scope, layout)
    }

    // ---- MERGE ----

    fn merge_text(
        &mut self,
        merge: &MergeStmt,
        target: &Target,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let source = merge.source_relation.as_deref();
        let source = source.ok_or_else(|| Error::internal("MERGE without its source"))?;
        let mut scope = Scope::default();
        let mut next = target.table.columns.len() + 1;
        let paused = self.pause_layout();
        let from = std::slice::from_ref(source);
        let bound = self.bind_from(from, &mut scope, false, &mut next);
        self.resume_layout(paused);
        bound?;
        scope.tables.insert(0, target.item());
        self.name_items_after(&scope, vec![target.shown.clone()]);
        let done = self.merge_parts(merge, source, target, &scope, layout);
        self.forget_names();
        done
    }

    fn merge_parts(
        &mut self,
        merge: &MergeStmt,
        source: &Node,
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        if !scope.merged.is_empty() || self.with_before(&merge.with_clause, layout)?.is_none() {
            return Ok(None);
        }
        layout.level += STEP;
        layout.text(&format!(" MERGE INTO {}", target.text));
        let using = (" USING ", std::slice::from_ref(source));
        if self.items_text(using, scope, 1, layout)?.is_none() {
            return Ok(None);
        }
        let condition = merge.join_condition.as_deref();
        let condition = condition.ok_or_else(|| Error::internal("MERGE without ON"))?;
        let condition = self.expr(inner(condition)?, scope, Place::plain("JOIN/ON"))?;
        let condition = self.condition(condition, "JOIN/ON")?;
        layout.clause(" ON ", 2);
        let text = self.shown_expr(&condition, scope, false, layout.level)?;
        layout.text(&text);
        for node in &merge.merge_when_clauses {
            let NodeEnum::MergeWhenClause(when) = inner(node)? else {
                return Ok(None);
            };
            if self.when_text(when, target, scope, layout)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    fn when_text(
        &mut self,
        when: &MergeWhenClause,
        target: &Target,
        scope: &Scope<'_>,
        layout: &mut Layout,
    ) -> Result<Option<()>> {
        let is_matched = when.match_kind == MergeMatchKind::MergeWhenMatched as i32;
        layout.clause(
            match is_matched {
                true => " WHEN MATCHED",
                false => " WHEN NOT MATCHED",
            },
            2,
        );
        if let Some(node) = when.condition.as_deref() {
            let condition =
                self.expr(inner(node)?, scope, Place::plain("MERGE WHEN conditions"))?;
            let condition = self.condition(condition, "WHEN")?;
            layout.clause(" AND ", 3);
            let text = self.shown_expr(&condition, scope, false, layout.level)?;
            layout.text(&text);
        }
        layout.clause(" THEN ", 3);
        match CmdType::try_from(when.command_type) {
            Ok(CmdType::CmdUpdate) => {
                layout.text("UPDATE SET ");
                return self.set_text(&when.target_list, target, scope, layout);
            }
            Ok(CmdType::CmdDelete) => layout.text("DELETE"),
            Ok(CmdType::CmdInsert) => {
                let count = when.values.len();
                let columns = self.insert_targets(&when.target_list, count, target, scope)?;
                let Some(columns) = columns else {
                    return Ok(None);
                };
                layout.text("INSERT");
                if !columns.is_empty() {
                    let names: Vec<_> = columns.iter().map(|column| column.0.as_str()).collect();
                    layout.text(&format!(" ({})", names.join(", ")));
                }
                let overriding = overriding(when.r#override).trim_end();
                if !overriding.is_empty() {
                    layout.text(&format!(" {overriding}"));
                }
                if when.values.is_empty() {
                    layout.text(" DEFAULT VALUES");
                    return Ok(Some(()));
                }
                let mut values = Vec::new();
                for (node, column) in when.values.iter().zip(&columns) {
                    let column = column.1.map(|place| &target.table.columns[place]);
                    values.push(self.value_text(node, column, scope, layout.level)?);
                }
                layout.clause(" VALUES (", 4);
                layout.text(&format!("{})", values.join(", ")));
            }
            _ => layout.text("DO NOTHING"),
        }
        Ok(Some(()))
    }
}

fn overriding(kind: i32) -> &'static str {
    match OverridingKind::try_from(kind) {
        Ok(OverridingKind::OverridingUserValue) => "OVERRIDING USER VALUE ",
        Ok(OverridingKind::OverridingSystemValue) => "OVERRIDING SYSTEM VALUE ",
        _ => "",
    }
}
