//! COPY: which columns of a table, and how a row is completed.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    ColumnRef, CopyStmt, LimitOption, Node, RangeVar, ResTarget, SelectStmt, SetOperation,
    String as StringNode,
};

use super::expr::Place;
use super::foreign::Touch;
use super::write::target_scope;
use super::{strings, Binder, Bound};
use crate::plan::{compile, Program};
use crate::plan::{Expr, ExprKind, Insert, Plan};
use catalog::access::{denied, Guarded, Privileges};
use catalog::trigger::Events;
use catalog::{RelationKind, Table};
use syntax::parser::NodeEnum;
use types::TypeId;

/// Where a column of a new row comes from.
#[derive(Debug)]
pub enum Source {
    /// The field of that number.
    Field(usize),
    /// It is computed, over the fields.
    Computed(Program),
}

/// What COPY FROM does besides writing rows.
#[derive(Debug)]
pub struct CopyFrom {
    /// The places of the columns that are read, in the order in which they come.
    pub columns: Vec<usize>,
    /// The whole row, column by column.
    pub row: Vec<Source>,
    /// WHERE, over the whole row.
    pub filter: Option<Program>,
}

impl Binder<'_> {
    /// Binds COPY FROM: an INSERT without input, and how its rows come about.
    ///
    /// # Errors
    /// 42P01, 42703, 42701 and what WHERE and the defaults give.
    pub fn copy_from(&mut self, copy: &CopyStmt) -> Result<(Bound, CopyFrom)> {
        let table = self.copied_table(relation(copy)?)?.alone();
        check_target(&table)?;
        self.lock(table.tree, TableLock::RowExclusive);
        self.require_of(&table, Privileges::INSERT, 0);
        self.check_may_copy(&table, &copied_columns(copy, &table)?, Privileges::INSERT)?;
        if self.guarded_from(&table)?.is_some() {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "COPY FROM not supported with row-level security",
            )
            .with_hint("Use INSERT statements instead."));
        }
        let filter = match &copy.where_clause {
            None => None,
            Some(_) => {
                let scope = target_scope(&table, &table.name);
                let condition = super::boxed(&copy.where_clause)?;
                let condition = self.expr(condition, &scope, Place::COPY_FROM)?;
                Some(self.condition(condition, "WHERE")?)
            }
        };
        let columns = copied_columns(copy, &table)?;
        for place in &columns {
            self.require_of(&table, Privileges::INSERT, *place as u32 + 1);
        }
        let given = columns.iter().enumerate().map(|(field, place)| {
            let column = &table.columns[*place];
            let mut expr = Expr::new(ExprKind::Column(field), column.type_id, -1);
            expr.typmod = column.typmod;
            (expr, column)
        });
        let given: Vec<_> = given.collect();
        let given = given
            .into_iter()
            .map(|(expr, column)| match column.domain {
                TypeId::NONE => Ok(expr),
                domain => self.assign(expr, domain, -1, &column.name),
            })
            .collect::<Result<_>>()?;
        let row = self.complete(&table, &columns, given)?;
        let row = row.iter().map(|expr| match expr.kind {
            ExprKind::Column(field) => Source::Field(field),
            _ => Source::Computed(compile(expr)),
        });
        let copy_from = CopyFrom {
            row: row.collect(),
            columns,
            filter: filter.as_ref().map(compile),
        };
        let touch = Touch {
            inserts: true,
            ..Touch::default()
        };
        let insert = Insert {
            target: self.target(table, Vec::new(), None, touch)?,
            input: Rc::new(Plan::Values(Vec::new())),
            conflict: None,
        };
        let bound = self.bound(Plan::Insert(Box::new(insert)), Vec::new(), true);
        Ok((bound, copy_from))
    }

    /// Binds COPY of a table to somewhere: a query of its columns.
    ///
    /// # Errors
    /// 42P01, 42703, 42701.
    pub fn copy_to(&mut self, copy: &CopyStmt) -> Result<(Bound, Arc<Table>)> {
        let range = relation(copy)?;
        let table = self.copied_table(range)?;
        check_source(&table)?;
        let columns = copied_columns(copy, &table)?;
        self.check_may_copy(&table, &columns, Privileges::SELECT)?;
        let names = columns.iter().map(|place| &table.columns[*place].name);
        let select = SelectStmt {
            target_list: names.map(|name| target(name)).collect(),
            // Rows of tables that inherit from it are theirs.
            from_clause: vec![node(NodeEnum::RangeVar(RangeVar {
                inh: false,
                ..range.clone()
            }))],
            limit_option: LimitOption::Default as i32,
            op: SetOperation::SetopNone as i32,
            ..Default::default()
        };
        let bound = self.statement(&NodeEnum::SelectStmt(Box::new(select)))?;
        Ok((bound, table))
    }

    /// 42501 for a copy of a table with row security by a role that lacks the privilege: it is to be
    /// told that before it hears of policies.
    fn check_may_copy(&self, table: &Table, places: &[usize], needed: Privileges) -> Result<()> {
        let (catalog, role) = (self.cx.catalog, self.cx.role);
        let may = |place: &usize| catalog.holds_column(role, table.oid, *place as u32 + 1, needed);
        let is_refused = table.row_security
            && !catalog.holds(role, Guarded::Table, table.oid, needed)
            && !places.iter().all(may);
        match is_refused {
            true => Err(denied(table.kind.noun(), &table.name)),
            false => Ok(()),
        }
    }

    /// The table that COPY names; errors say no position, as in PostgreSQL.
    fn copied_table(&self, range: &RangeVar) -> Result<Arc<Table>> {
        if !range.schemaname.is_empty() && self.cx.catalog.schema(&range.schemaname).is_none() {
            return Err(Error::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{}\" does not exist", range.schemaname),
            ));
        }
        super::find_table(&self.cx, range).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })
    }
}

fn node(node: NodeEnum) -> Node {
    Node { node: Some(node) }
}

fn target(name: &str) -> Node {
    let field = NodeEnum::String(StringNode {
        sval: name.to_owned(),
    });
    let column = ColumnRef {
        fields: vec![node(field)],
        location: -1,
    };
    node(NodeEnum::ResTarget(Box::new(ResTarget {
        val: Some(Box::new(node(NodeEnum::ColumnRef(column)))),
        location: -1,
        ..Default::default()
    })))
}

fn relation(copy: &CopyStmt) -> Result<&RangeVar> {
    let missing = || Error::internal("COPY of no table");
    copy.relation.as_ref().ok_or_else(missing)
}

fn check_target(table: &Table) -> Result<()> {
    match table.kind {
        RelationKind::System => Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied: \"{}\" is a system catalog", table.name),
        )),
        RelationKind::Table | RelationKind::Partitioned => Ok(()),
        RelationKind::View if table.has_instead_of(Events::INSERT) => Ok(()),
        kind => {
            let message = format!("cannot copy to {} \"{}\"", kind.noun(), table.name);
            let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
            Err(match kind {
                RelationKind::View => error.with_hint(
                    "To enable copying to a view, provide an INSTEAD OF INSERT trigger.",
                ),
                _ => error,
            })
        }
    }
}

fn check_source(table: &Table) -> Result<()> {
    let message = || format!("cannot copy from {} \"{}\"", table.kind.noun(), table.name);
    let error = || Error::new(SqlState::WRONG_OBJECT_TYPE, message());
    match table.kind {
        RelationKind::Table | RelationKind::System => Ok(()),
        RelationKind::View | RelationKind::MaterializedView => {
            Err(error().with_hint("Try the COPY (SELECT ...) TO variant."))
        }
        RelationKind::Partitioned => {
            let message = format!("cannot copy from partitioned table \"{}\"", table.name);
            let error = Error::new(SqlState::WRONG_OBJECT_TYPE, message);
            Err(error.with_hint("Try the COPY (SELECT ...) TO variant."))
        }
        RelationKind::Sequence => Err(error()),
    }
}

/// 42703 for a column that a table does not have.
pub fn no_column(table: &Table, name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_COLUMN,
        format!(
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        ),
    )
}

/// The places of the columns that a COPY names, or of all.
fn copied_columns(copy: &CopyStmt, table: &Arc<Table>) -> Result<Vec<usize>> {
    if copy.attlist.is_empty() {
        let all = table.columns.iter().enumerate();
        let kept = all.filter(|(_, column)| !column.dropped && !column.generated);
        return Ok(kept.map(|(place, _)| place).collect());
    }
    let mut places = Vec::new();
    for name in strings(&copy.attlist) {
        let place = table.column(name).ok_or_else(|| no_column(table, name))?;
        if table.columns[place].generated {
            return Err(Error::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("column \"{name}\" is a generated column"),
            )
            .with_detail("Generated columns cannot be used in COPY."));
        }
        if places.contains(&place) {
            return Err(Error::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        places.push(place);
    }
    Ok(places)
}
