//! Triggers: which of a table's a statement sets off, and their WHEN.
//!
//! A condition is bound over two items, `old` and `new`, whose rows stand one behind the other.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::computed::Checked;
use super::expr::Place;
use super::foreign::Touch;
use super::scope::{table_columns, Scope, ScopeTable};
use super::Binder;
use crate::plan::trigger::{with_generated, PlannedTrigger, Triggers};
use crate::plan::{compile, Collated, Expr, ExprKind, RoutineCall};
use catalog::trigger::{Condition, Enabled, Events, Timing};
use catalog::{RelationKind, Table, Trigger};
use types::TypeId;

/// The scope of WHEN, with the names that columns have or, if given, had.
fn scope_of(table: &Arc<Table>, names: Option<&[String]>) -> Scope<'static> {
    let item = |alias: &str, start: usize| {
        let mut columns = table_columns(table);
        for (place, column) in columns.iter_mut().enumerate() {
            // Whoever may write the table may be asked what its triggers ask.
            column.origin = (0, 0);
            match names.map(|names| names.get(place)) {
                // Dropped meanwhile.
                _ if column.name.is_empty() => {}
                Some(Some(name)) => column.name.clone_from(name),
                // One that came later is a part of the row that no name means.
                Some(None) => column.name = format!("\0{place}"),
                None => {}
            }
        }
        ScopeTable {
            table: Some(table.clone()),
            ..ScopeTable::of(alias.to_owned(), columns, start)
        }
    };
    let width = table.columns.len();
    let scope = Scope {
        tables: vec![item("old", 0), item("new", width)],
        ..Scope::default()
    };
    scope.beyond.set(2 * width);
    scope
}

/// The row that a record has all columns of: whether it is the new one.
pub(super) fn whole_row(table: &Table, fields: &[Expr]) -> Option<bool> {
    let width = table.columns.len();
    let kept = table.columns.iter().enumerate();
    let kept = kept.filter(|(_, column)| !column.dropped);
    let kept: Vec<_> = kept.map(|(place, _)| place).collect();
    let is = |start: usize| {
        fields.len() == kept.len()
            && fields.iter().zip(&kept).all(
                |(field, place)| matches!(field.kind, ExprKind::Column(at) if at == start + place),
            )
    };
    match (is(0), is(width)) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

impl Binder<'_> {
    /// WHEN as the catalog keeps it.
    ///
    /// # Errors
    /// What is wrong with it; 42P17 where it looks at a row that there is not.
    pub fn fixed_when(
        &mut self,
        table: &Arc<Table>,
        trigger: &Trigger,
        node: &Node,
    ) -> Result<Checked<Condition>> {
        let scope = scope_of(table, None);
        let bound = self.node(node, &scope, Place::TRIGGER)?;
        let bound = self.condition(bound, "WHEN")?;
        let mut columns = Vec::new();
        self.check_columns(table, trigger, &bound, &mut columns)?;
        columns.sort_unstable();
        columns.dedup();
        let (text, recorded) = self.fixed_part(node, |binder, node| {
            binder.node(node, &scope, Place::TRIGGER).map(|_| ())
        })?;
        let names = table.columns.iter().map(|column| match column.dropped {
            true => String::new(),
            false => column.name.clone(),
        });
        Ok(Checked {
            columns: columns.clone(),
            kept: Condition {
                text,
                names: names.collect(),
                columns,
            },
            uses: recorded.uses(),
        })
    }

    /// Refuses columns that WHEN cannot look at, and notes the places of the others; those of whole rows
    /// may be dropped.
    fn check_columns(
        &self,
        table: &Table,
        trigger: &Trigger,
        expr: &Expr,
        columns: &mut Vec<usize>,
    ) -> Result<()> {
        let whole = match &expr.kind {
            ExprKind::Record(fields, _) => whole_row(table, fields).is_some(),
            _ => false,
        };
        if let ExprKind::Column(place) = expr.kind {
            self.check_column(table, trigger, (place, false), expr.location.0)?;
            columns.push(place % table.columns.len());
        }
        for part in expr.parts() {
            match part.kind {
                ExprKind::Column(place) if whole => {
                    self.check_column(table, trigger, (place, true), part.location.0)?;
                }
                _ => self.check_columns(table, trigger, part, columns)?,
            }
        }
        Ok(())
    }

    /// Refuses a column that a trigger's WHEN must not look at.
    fn check_column(
        &self,
        table: &Table,
        trigger: &Trigger,
        (place, whole): (usize, bool),
        location: i32,
    ) -> Result<()> {
        let is_new = place >= table.columns.len();
        let column = &table.columns[place % table.columns.len()];
        let (sole, state) = (trigger.events, SqlState::of("42P17"));
        let refused = |message: &str| Err(self.error(state, message, location));
        if !trigger.for_each_row {
            return refused("statement trigger's WHEN condition cannot reference column values");
        }
        if !is_new && sole.has(Events::INSERT) {
            return refused("INSERT trigger's WHEN condition cannot reference OLD values");
        }
        if is_new && sole.has(Events::DELETE) {
            return refused("DELETE trigger's WHEN condition cannot reference NEW values");
        }
        if is_new && trigger.timing == Timing::Before && column.generated {
            let message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
            let detail = match whole {
                true => "A whole-row reference is used and the table contains generated columns."
                    .to_owned(),
                false => format!("Column \"{}\" is a generated column.", column.name),
            };
            return refused(message).map_err(|error: Error| error.with_detail(detail));
        }
        Ok(())
    }

    /// WHEN that the catalog keeps.
    ///
    /// # Errors
    /// What has become of what it names.
    pub fn stored_when(&mut self, table: &Arc<Table>, condition: &Condition) -> Result<Expr> {
        let scope = scope_of(table, Some(&condition.names));
        let bound = self.stored(&condition.text, &scope, Place::TRIGGER)?;
        self.condition(bound, "WHEN")
    }

    /// The triggers that writing a table so sets off.
    pub(super) fn triggers(
        &mut self,
        table: &Arc<Table>,
        touch: &Touch,
    ) -> Result<Option<Rc<Triggers>>> {
        if table.triggers.is_empty() {
            return Ok(None);
        }
        let mut events = Events::NONE;
        for (is, event) in [
            (touch.inserts, Events::INSERT),
            (!touch.changes.is_empty(), Events::UPDATE),
            (touch.deletes, Events::DELETE),
        ] {
            if is {
                events = events.with(event);
            }
        }
        // Those of rows are the leaves', which have their own.
        let rows_elsewhere = table.kind == RelationKind::Partitioned || table.has_children();
        self.planned_triggers(table, events, &touch.changes, rows_elsewhere)
    }

    /// The triggers of a table on these events.
    ///
    /// # Errors
    /// What has become of what their conditions name.
    pub fn triggers_on(
        &mut self,
        table: &Arc<Table>,
        events: Events,
        changes: &[usize],
    ) -> Result<Option<Rc<Triggers>>> {
        let rows_elsewhere = table.kind == RelationKind::Partitioned;
        self.planned_triggers(table, events, changes, rows_elsewhere)
    }

    fn planned_triggers(
        &mut self,
        table: &Arc<Table>,
        events: Events,
        changes: &[usize],
        rows_elsewhere: bool,
    ) -> Result<Option<Rc<Triggers>>> {
        let mut all = Vec::new();
        for trigger in &table.triggers {
            let is_elsewhere = trigger.for_each_row && rows_elsewhere;
            let is_disabled = trigger.enabled == Enabled::Disabled || is_elsewhere;
            if is_disabled || !trigger.events.has(events) {
                continue;
            }
            let routine = self.cx.catalog.routine(trigger.function);
            let routine =
                routine.ok_or_else(|| Error::internal("a trigger without its function"))?;
            let condition = match &trigger.condition {
                Some(condition) => Some(compile(&self.stored_when(table, condition)?)),
                None => None,
            };
            all.push(PlannedTrigger {
                trigger: trigger.clone(),
                call: RoutineCall {
                    caller: None,
                    routine: routine.clone(),
                    types: Vec::new(),
                    result: TypeId::TRIGGER,
                    columns: Vec::new(),
                    typmods: Vec::new(),
                    shown: routine.name.clone(),
                    written: Vec::new(),
                    collation: Collated::default(),
                    cast: None,
                    operator: None,
                },
                condition,
            });
        }
        if all.is_empty() {
            return Ok(None);
        }
        Ok(Some(Rc::new(Triggers {
            updated: with_generated(table, changes),
            table: table.clone(),
            all,
        })))
    }
}
