//! MERGE: the rows of a source, each with the row of the target that it matches or with none, and what
//! is done for either.
//!
//! ```text
//! merge into t using s on t.k = s.k
//!   when matched and s.gone then delete
//!   when matched then update set v = s.v
//!   when not matched then insert values (s.k, s.v)
//!
//! s left join t on t.k = s.k      rows: those of s, then t's columns and key
//! each with a key                 the first of the clauses for what is matched that its AND lets
//! each without                    the first of the others
//! ```
//! A clause becomes the plan of an INSERT, UPDATE or DELETE without an input of its own, so that
//! constraints, triggers, partitions and foreign keys are theirs.
//!
//! Policies: a row of the target is there if those for SELECT let it be read; one that is to be changed
//! must meet USING of those for UPDATE or DELETE, or it is an error, as PostgreSQL 15 has it.
//!
//! # What it leaves out
//! What PostgreSQL 15 does not have: RETURNING, WHEN NOT MATCHED BY SOURCE, views.

use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CmdType, InsertStmt, MergeMatchKind, MergeStmt, MergeWhenClause, RangeVar, ResTarget,
};

use super::expr::Place;
use super::foreign::Touch;
use super::given::given;
use super::scope::{Scope, ScopeTable};
use super::updatable::Writable;
use super::write::sets_keys;
use super::{inner, Binder, OutputColumn};
use crate::logical::{all_of, conjuncts, joined, move_columns};
use crate::plan::Assignments;
use crate::plan::{
    compile, Delete, Insert, JoinKind, Merge, MergeAction, MergeKind, Plan, Program, Target, Update,
};
use catalog::access::{denied, Privileges};
use catalog::policy::PolicyCommand as For;
use catalog::{RelationKind, Table};
use syntax::parser::NodeEnum;

type Written = (Plan, Vec<OutputColumn>, bool);

const WHEN: Place = Place::plain("MERGE WHEN conditions");

/// A clause, bound, before it is known what all of them do together.
struct Clause {
    matched: bool,
    condition: Option<Program>,
    what: What,
}

enum What {
    Nothing,
    Update(Assignments),
    Delete,
    Insert(Vec<Program>),
}

fn syntax_error(near: &str) -> Error {
    let message = format!("syntax error at or near \"{near}\"");
    Error::new(SqlState::SYNTAX_ERROR, message)
}

fn command(when: &MergeWhenClause) -> CmdType {
    CmdType::try_from(when.command_type).unwrap_or(CmdType::Undefined)
}

fn is_matched(when: &MergeWhenClause) -> bool {
    when.match_kind == MergeMatchKind::MergeWhenMatched as i32
}

/// The WHEN clauses.
///
/// # Errors
/// 42601 for what PostgreSQL 15 does not have, and for one that no row can come to.
fn clauses(merge: &MergeStmt) -> Result<Vec<&MergeWhenClause>> {
    if merge.returning_clause.is_some() {
        return Err(syntax_error("returning"));
    }
    let mut clauses: Vec<&MergeWhenClause> = Vec::new();
    for node in &merge.merge_when_clauses {
        let NodeEnum::MergeWhenClause(when) = inner(node)? else {
            return Err(Error::internal("a clause of MERGE that is none"));
        };
        if when.match_kind == MergeMatchKind::MergeWhenNotMatchedBySource as i32 {
            return Err(syntax_error("by"));
        }
        let ends = |known: &&MergeWhenClause| {
            known.condition.is_none() && known.match_kind == when.match_kind
        };
        if clauses.iter().any(ends) {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "unreachable WHEN clause specified after unconditional WHEN clause",
            ));
        }
        clauses.push(when);
    }
    Ok(clauses)
}

/// Nothing comes in by itself: rows are handed over.
fn nothing() -> Rc<Plan> {
    Rc::new(Plan::Values(Vec::new()))
}

impl Binder<'_> {
    pub(super) fn merge_statement(&mut self, merge: &MergeStmt) -> Result<Written> {
        if merge
            .with_clause
            .as_ref()
            .is_some_and(|with| with.recursive)
        {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "WITH RECURSIVE is not supported for MERGE statement",
            ));
        }
        let before = self.with_clause(
            merge.with_clause.as_ref(),
            || merge.source_relation.iter().map(|node| &**node).collect(),
            None,
        )?;
        let whens = clauses(merge)?;
        let range = merge.relation.as_ref();
        let range = range.ok_or_else(|| Error::internal("MERGE without its table"))?;
        let writable = self.merge_target(range, &whens)?;
        let table = writable.base.clone();

        let mut next = 0;
        let mut scope = Scope::default();
        let target = self.scan(table.clone(), None, &mut scope, true, &mut next)?;
        let mut item = writable.item(writable.name(), 0);
        item.alias = self.alias(range.alias.as_ref(), writable.name(), &mut item.columns)?;
        item.oid = scope.tables.first().and_then(|scanned| scanned.oid);
        // The source knows nothing of the target.
        let mut source_scope = Scope::default();
        let source = merge.source_relation.as_deref();
        let source = source.ok_or_else(|| Error::internal("MERGE without its source"))?;
        let from = std::slice::from_ref(source);
        let source = self.bind_from(from, &mut source_scope, false, &mut next)?;
        let source = source.ok_or_else(|| Error::internal("MERGE without its source"))?;
        check_names(&item, &source_scope.tables)?;
        source_scope.barred = Some(item.alias.clone());
        scope.tables = vec![item];
        scope.tables.extend(source_scope.tables.iter().cloned());
        scope.merged.clone_from(&source_scope.merged);

        let condition = merge.join_condition.as_deref();
        let condition = condition.ok_or_else(|| Error::internal("MERGE without ON"))?;
        let condition = self.expr(inner(condition)?, &scope, Place::plain("JOIN/ON"))?;
        let condition = conjuncts(Some(self.condition(condition, "JOIN/ON")?));
        let mut bound = Vec::new();
        for when in &whens {
            let seen = if is_matched(when) {
                &scope
            } else {
                &source_scope
            };
            bound.push(self.merge_clause(when, &writable, seen, next)?);
        }
        self.note_reads(&writable);
        self.forget_ctes(before);
        let reads = scope.tables.first().and_then(|item| item.needed.as_ref());
        let reads = reads.is_some_and(|flags| flags.borrow().contains(&true));

        let mut source = source;
        let mut target =
            self.as_used(&writable, |binder| binder.guarded(target, &[For::Select]))?;
        let guards = target.conditions_of(0);
        let kind = match whens.iter().all(|when| is_matched(when)) {
            true => JoinKind::Inner,
            false => JoinKind::Left,
        };
        let recheck = all_of(guards.into_iter().chain(condition.clone()).collect());
        // The source comes first, so that its rows come in their order.
        let width = target.width;
        let places: Vec<usize> = (next - width..next).chain(0..next - width).collect();
        source.move_columns(&places);
        target.move_columns(&places);
        let mut condition = condition;
        for part in &mut condition {
            move_columns(part, &places);
        }
        let source = joined(kind, source, target, condition)?;
        let input = self.planner().plan(source, Vec::new())?;
        let writes = bound
            .iter()
            .any(|clause| !matches!(clause.what, What::Nothing));
        let (matched, others) = self.merge_actions(&writable, bound, reads)?;
        let merge = Merge {
            table,
            input: Rc::new(input),
            width,
            recheck: recheck.as_ref().map(compile),
            matched,
            others,
        };
        Ok((Plan::Merge(Box::new(merge)), Vec::new(), writes))
    }

    fn merge_target(&mut self, range: &RangeVar, whens: &[&MergeWhenClause]) -> Result<Writable> {
        let variables = self.cx.variables.filter(|_| range.schemaname.is_empty());
        if variables.is_some_and(|known| known.rows_named(&range.relname).is_some()) {
            let name = &range.relname;
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("relation \"{name}\" cannot be the target of a modifying statement"),
            ));
        }
        let table = self.table_written(range)?;
        if !table.rules.is_empty() {
            let message = format!("cannot execute MERGE on relation \"{}\"", table.name);
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail("MERGE is not supported for relations with rules."));
        }
        // Whether there is a row that matches is told even by what does nothing.
        self.require_of(&table, Privileges::SELECT, 0);
        for when in whens {
            let privileges = match command(when) {
                CmdType::CmdInsert => Privileges::INSERT,
                CmdType::CmdUpdate => Privileges::UPDATE,
                CmdType::CmdDelete => Privileges::DELETE,
                _ => continue,
            };
            self.require_of(&table, privileges, 0);
        }
        match table.kind {
            RelationKind::Table | RelationKind::Partitioned => {
                let called = self.called_then(&table);
                Ok(Writable::table(table).called(called))
            }
            RelationKind::System => Err(denied("table", &table.name)),
            kind => Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot execute MERGE on relation \"{}\"", table.name),
            )
            .with_detail(format!(
                "This operation is not supported for {}s.",
                kind.noun()
            ))),
        }
    }

    /// A clause over rows of so many columns.
    fn merge_clause(
        &mut self,
        when: &MergeWhenClause,
        writable: &Writable,
        scope: &Scope<'_>,
        width: usize,
    ) -> Result<Clause> {
        let condition = match when.condition.as_deref() {
            None => None,
            Some(node) => {
                let condition = self.expr(inner(node)?, scope, WHEN)?;
                Some(compile(&self.condition(condition, "WHEN")?))
            }
        };
        let what = match command(when) {
            CmdType::CmdUpdate => {
                What::Update(self.assignments(&when.target_list, writable, scope, width)?)
            }
            CmdType::CmdDelete => What::Delete,
            CmdType::CmdInsert => What::Insert(self.merged_row(when, writable, scope)?),
            _ => What::Nothing,
        };
        Ok(Clause {
            matched: is_matched(when),
            condition,
            what,
        })
    }

    /// What INSERT makes of a row.
    fn merged_row(
        &mut self,
        when: &MergeWhenClause,
        writable: &Writable,
        scope: &Scope<'_>,
    ) -> Result<Vec<Program>> {
        let table = &*writable.base;
        let insert = InsertStmt {
            cols: when.target_list.clone(),
            r#override: when.r#override,
            ..InsertStmt::default()
        };
        if when.values.is_empty() {
            let row = self.complete(table, &[], Vec::new())?;
            return Ok(row.iter().map(compile).collect());
        }
        let places = self.insert_columns(&insert, writable)?;
        let named: Vec<String> = match insert.cols.is_empty() {
            true => {
                let names = writable.column_names().into_iter();
                let given = names.filter(|name| !name.is_empty());
                given.take(when.values.len()).collect()
            }
            false => {
                let names = insert.cols.iter().map(|node| match &node.node {
                    Some(NodeEnum::ResTarget(target)) => ResTarget::clone(target).name,
                    _ => String::new(),
                });
                names.collect()
            }
        };
        for name in &named {
            self.require_named(writable, name, Privileges::INSERT);
        }
        let allowed = given(&insert, table, &places);
        let list = [pg_query::protobuf::Node {
            node: Some(NodeEnum::List(pg_query::protobuf::List {
                items: when.values.clone(),
            })),
        }];
        match self.insert_values(&list, table, &places, &allowed, &insert.cols, scope)? {
            Plan::Values(mut rows) => {
                let row = rows.pop();
                row.ok_or_else(|| Error::internal("an INSERT of no row"))
            }
            _ => Err(Error::internal("an INSERT of other rows")),
        }
    }

    /// The plans of the clauses: for rows that are matched, and for the others.
    fn merge_actions(
        &mut self,
        writable: &Writable,
        bound: Vec<Clause>,
        reads: bool,
    ) -> Result<(Vec<MergeAction>, Vec<MergeAction>)> {
        let table = &writable.base;
        let touch = touched(&bound);
        let (mut matched, mut others) = (Vec::new(), Vec::new());
        for clause in bound {
            let of = self.merge_action(table, clause.what, &touch, reads)?;
            let action = MergeAction {
                condition: clause.condition,
                ..of
            };
            match clause.matched {
                true => matched.push(action),
                false => others.push(action),
            }
        }
        Ok((matched, others))
    }

    fn merge_action(
        &mut self,
        table: &Arc<Table>,
        what: What,
        touch: &Touch,
        reads: bool,
    ) -> Result<MergeAction> {
        let mut old_checks = Vec::new();
        let target = |binder: &mut Self, checks| -> Result<Target> {
            binder.target(table.clone(), checks, None, touch.clone())
        };
        let kind = match what {
            What::Nothing => MergeKind::Nothing,
            What::Insert(row) => {
                let checks = self.insert_checks(table, false)?;
                let insert = Insert {
                    target: target(self, checks)?,
                    input: nothing(),
                    conflict: None,
                };
                MergeKind::Insert(Box::new(insert), row)
            }
            What::Update(set) => {
                old_checks = self.merge_checks(table, For::Update)?;
                let checks = self.update_checks(table, reads)?;
                let update = Update {
                    target: target(self, checks)?,
                    input: nothing(),
                    sets_keys: sets_keys(table, &set),
                    set,
                    recheck: None,
                };
                MergeKind::Update(Box::new(update))
            }
            What::Delete => {
                old_checks = self.merge_checks(table, For::Delete)?;
                let delete = Delete {
                    target: target(self, Vec::new())?,
                    input: nothing(),
                    recheck: None,
                };
                MergeKind::Delete(Box::new(delete))
            }
        };
        Ok(MergeAction {
            condition: None,
            old_checks,
            kind,
        })
    }
}

/// What all of the clauses do to the table: each sets off what a statement would that does all of it.
fn touched(bound: &[Clause]) -> Touch {
    let mut touch = Touch::default();
    for clause in bound {
        match &clause.what {
            What::Nothing => {}
            What::Insert(_) => touch.inserts = true,
            What::Delete => touch.deletes = true,
            What::Update(set) => {
                for place in set.targets() {
                    if !touch.changes.contains(&place) {
                        touch.changes.push(place);
                    }
                }
            }
        }
    }
    touch
}

/// 42712 where target and source go by one name.
fn check_names(target: &ScopeTable, source: &[ScopeTable]) -> Result<()> {
    match source.iter().any(|item| item.alias == target.alias) {
        false => Ok(()),
        true => Err(Error::new(
            SqlState::of("42712"),
            format!("name \"{}\" specified more than once", target.alias),
        )
        .with_detail("The name is used both as MERGE target table and data source.")),
    }
}
