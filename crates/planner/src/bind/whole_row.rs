//! Rows of items of FROM as values: `select t from t`, `t.*` in an expression, `f(t)`, `t.f`.
//!
//! # What it leaves out
//! A row that an outer join may leave out and of which no column must have a value: where all of its
//! columns are NULL it counts as left out.

use base::{Result, SqlState};
use pg_query::protobuf::{ColumnRef, FuncCall, Node, String as StringNode};

use super::expr::Place;
use super::scope::{relation_of, Scope, ScopeTable};
use super::{strings, Binder};
use crate::plan::{Expr, ExprKind};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

fn text_node(text: &str) -> Node {
    Node {
        node: Some(NodeEnum::String(StringNode {
            sval: text.to_owned(),
        })),
    }
}

impl Binder<'_> {
    /// A column, a variable, the row of an item of FROM, or what a function of one argument makes of
    /// such a row.
    pub(super) fn column_or_row(
        &mut self,
        names: &[&str],
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Expr> {
        if let [name] = names {
            if self.names_item(name, scope)? {
                if let Some(row) = self.row_of_item(name, scope, location)? {
                    return Ok(row);
                }
            }
        }
        let error = match self.column(names, scope, location) {
            Ok((expr, _)) => return Ok(expr),
            Err(error) => error,
        };
        if let Some(field) = self.field_of_variable(names, location)? {
            return Ok(field);
        }
        if let ([item, function], SqlState::UNDEFINED_COLUMN) = (names, error.state()) {
            let row = Node {
                node: Some(NodeEnum::ColumnRef(ColumnRef {
                    fields: vec![text_node(item)],
                    location,
                })),
            };
            if let Some(made) = self.function_of(function, row, scope, location)? {
                return Ok(made);
            }
        }
        Err(error)
    }

    /// The field of a variable of a composite type.
    fn field_of_variable(&mut self, names: &[&str], location: i32) -> Result<Option<Expr>> {
        let Some((field, variable)) = names.split_last().filter(|names| !names.1.is_empty()) else {
            return Ok(None);
        };
        let value = self.composite_variable(variable, location);
        value
            .map(|value| self.field(value, field, location))
            .transpose()
    }

    /// A variable of a composite type, if the name means one.
    pub(super) fn composite_variable(&mut self, names: &[&str], location: i32) -> Option<Expr> {
        let variables = self
            .cx
            .variables
            .filter(|known| !known.are_rows_of_rule())?;
        let (place, ty, typmod) = variables.find(names).ok().flatten()?;
        let value = self.variable(place, ty, typmod, location);
        if !value.ty.is_composite() {
            return None;
        }
        self.record_argument(names, location);
        Some(value)
    }

    /// The same with where it comes from, if it is a column.
    pub(super) fn target_column_or_row(
        &mut self,
        names: &[&str],
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<(Expr, (u32, i16))> {
        let is_row = match names {
            [name] => self.names_item(name, scope)?,
            _ => false,
        };
        if !is_row {
            match self.column(names, scope, location) {
                Err(error)
                    if matches!(
                        error.state(),
                        SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE
                    ) => {}
                found => return found,
            }
        }
        let row = self.column_or_row(names, scope, location)?;
        Ok((row, (0, 0)))
    }

    /// `name(value)`, if there is such a function of rows.
    pub(super) fn function_of(
        &mut self,
        name: &str,
        value: Node,
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Option<Expr>> {
        let call = FuncCall {
            funcname: vec![text_node(name)],
            args: vec![value],
            location,
            ..FuncCall::default()
        };
        let place = Place::plain("SELECT");
        match self.function_call(&call, scope, place) {
            Ok(made) => Ok(Some(made)),
            Err(error) if error.state() == SqlState::UNDEFINED_FUNCTION => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The row that `t` or `t.*` means; none if it means none.
    pub(super) fn whole_row(&mut self, node: &NodeEnum, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let NodeEnum::ColumnRef(column) = node else {
            return Ok(None);
        };
        let names = strings(&column.fields);
        match (names.as_slice(), column.fields.len()) {
            ([item], 2) => match self.row_of_item(item, scope, column.location)? {
                Some(row) => Ok(Some(row)),
                None => Ok(self.row_of_variable(item, column.location)),
            },
            ([item], 1) if self.names_item(item, scope)? => {
                self.row_of_item(item, scope, column.location)
            }
            _ => Ok(None),
        }
    }

    /// The row that the variable of that name holds.
    fn row_of_variable(&mut self, name: &str, location: i32) -> Option<Expr> {
        let found = self.cx.variables?.find(&[name]).ok().flatten();
        let (place, ty, typmod) =
            found.filter(|(_, ty, _)| ty.is_composite() || *ty == TypeId::RECORD)?;
        self.record_argument(&[name], location);
        Some(self.variable(place, ty, typmod, location))
    }

    /// The row of the item of FROM of that name, here or in an enclosing query.
    fn row_of_item(
        &mut self,
        alias: &str,
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Option<Expr>> {
        let mut found = None;
        for (depth, level) in scope.levels().enumerate() {
            if let Some(item) = level.tables.iter().find(|item| item.alias == alias) {
                found = Some((depth, level, item));
                break;
            }
        }
        let Some((depth, level, item)) = found else {
            return Ok(None);
        };
        self.check_may_name(level, item, location)?;
        let mut fields = Vec::new();
        let mut names = Vec::new();
        for (place, column) in item.columns.iter().enumerate() {
            if column.name.is_empty() {
                continue;
            }
            self.looks_at(column.origin);
            fields.push(level.column_expr(item, place, location));
            names.push(column.name.clone());
        }
        let mut row = self.row_value(item, fields, names, location);
        if item.nullable {
            row = self.absent_as_null(level, item, row, location);
        }
        if depth > 0 {
            level.show_inside(&mut row, depth);
            for inner in scope.levels().take(depth) {
                inner.escapes.set(true);
            }
        }
        Ok(Some(row))
    }

    fn row_value(
        &self,
        item: &ScopeTable,
        fields: Vec<Expr>,
        names: Vec<String>,
        location: i32,
    ) -> Expr {
        let of_table = relation_of(item)
            .and_then(|oid| self.cx.catalog.table_by_oid(oid))
            .filter(|table| table.fields().len() == fields.len());
        let (ty, names) = match of_table {
            Some(table) => (
                table.row_type().unwrap_or(TypeId::RECORD),
                Binder::names_of(&table.fields()),
            ),
            None => (TypeId::RECORD, names.into()),
        };
        Expr::new(ExprKind::Record(fields, Some(names)), ty, location)
    }

    /// NULL where an outer join has no row.
    fn absent_as_null(
        &self,
        level: &Scope<'_>,
        item: &ScopeTable,
        row: Expr,
        location: i32,
    ) -> Expr {
        let table = relation_of(item).and_then(|oid| self.cx.catalog.table_by_oid(oid));
        let told = table.and_then(|table| {
            let mut columns = table.columns.iter();
            columns.position(|column| column.not_null && !column.dropped)
        });
        let told = match told.filter(|place| *place < item.columns.len()) {
            Some(place) => level.column_expr(item, place, location),
            None => row.clone(),
        };
        let ty = row.ty;
        let absent = Expr::new(
            ExprKind::IsNull(Box::new(told), true),
            TypeId::BOOL,
            location,
        );
        let null = Expr::constant(Datum::Null, ty, location);
        let kind = ExprKind::Case(vec![(absent, null)], Box::new(row));
        Expr::new(kind, ty, location)
    }
}
