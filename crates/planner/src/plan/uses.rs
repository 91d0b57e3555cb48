//! The relations that a plan has open while it runs: what DDL of the same session must leave alone.
//!
//! ```text
//! select * from v where a = 1    uses t, below the view v, and the index that leads to a
//! insert into c select * from t  uses t, c with all its indexes, and what c's foreign keys name
//! ```
//! Views and partitions that were left out are not among them. A plan that writes a table goes on
//! with all of its indexes, and with the trees of the tables that its foreign keys lead to.

use std::collections::BTreeSet;

use super::program::Op;
use super::{
    Conflict, Frame, Insert, MergeAction, MergeKind, Plan, PolicyCheck, Program, SetColumn,
    SortKey, Target,
};
use catalog::{RelationKind, Table};

/// Relations by their oids.
#[derive(Debug, Default)]
pub struct Uses {
    /// Tables, partitioned tables, materialized views and sequences.
    pub tables: BTreeSet<u32>,
    /// Indexes.
    pub indexes: BTreeSet<u32>,
}

impl Uses {
    /// Adds what a plan uses.
    pub fn add(&mut self, plan: &Plan) {
        match plan {
            Plan::Values(rows) => rows.iter().for_each(|row| self.programs(row)),
            Plan::Scan(scan) => {
                self.tables.insert(scan.table.oid);
                let inverted = scan.inverted.as_ref();
                let places = scan.index.into_iter().chain(inverted.map(|own| own.index));
                let others = scan.alternatives.iter();
                let places = places.chain(others.clone().filter_map(|way| way.index));
                let indexes = places.filter_map(|place| scan.table.indexes.get(place));
                self.indexes.extend(indexes.map(|index| index.oid));
                let terms = inverted.into_iter().flat_map(|inverted| &inverted.terms);
                self.programs(terms.map(|term| &term.value));
                self.programs(scan.access.programs());
                self.programs(others.flat_map(|way| way.access.programs()));
                self.programs(&scan.filter);
            }
            Plan::System(table, _, key) => {
                if table.kind == RelationKind::Sequence {
                    self.tables.insert(table.oid);
                }
                self.programs(key.iter().map(|key| &key.1));
            }
            Plan::Function { args, .. } | Plan::Routine { args, .. } => self.programs(args),
            Plan::Beside(parts, _) => parts.iter().for_each(|part| self.add(&part.0)),
            Plan::Filter(input, program) | Plan::Once(input, program) => {
                self.add(input);
                self.program(program);
            }
            Plan::Project(input, columns) => {
                self.add(input);
                self.programs(columns);
            }
            Plan::ProjectSet(input, columns) => {
                self.add(input);
                for column in columns {
                    match column {
                        SetColumn::One(program) => self.program(program),
                        SetColumn::Set(_, args, ..) | SetColumn::Routine(_, args) => {
                            self.programs(args);
                        }
                    }
                }
            }
            Plan::Join(join) => {
                self.add(&join.left);
                self.add(&join.right);
                join.lookup.iter().for_each(|lookup| self.add(lookup));
                let keys = join.hash.iter();
                self.programs(keys.flat_map(|(left, right, _)| [left, right]));
                self.programs(&join.condition);
                self.programs(&join.rest);
            }
            Plan::Window(window) => {
                self.add(&window.input);
                self.frame(&window.frame);
                for function in &window.functions {
                    self.programs(function.args.iter().chain(&function.filter));
                }
            }
            Plan::Aggregate {
                input,
                groups,
                aggregates,
                ..
            } => {
                self.add(input);
                self.programs(groups.iter().map(|group| &group.0));
                for aggregate in aggregates {
                    self.programs(aggregate.args.iter().chain(&aggregate.filter));
                    self.keys(&aggregate.order);
                }
            }
            Plan::Sort(input, keys) => {
                self.add(input);
                self.keys(keys);
            }
            Plan::Limit(input, count, offset, ties) => {
                self.add(input);
                self.programs(count.iter().chain(offset));
                self.programs(ties.iter().map(|tie| &tie.0));
            }
            Plan::Distinct(input, _)
            | Plan::Trim(input, _)
            | Plan::Shared(_, input)
            | Plan::Anew(_, input) => self.add(input),
            Plan::SetOperation(_, _, parts, _) => parts.iter().for_each(|part| self.add(part)),
            Plan::Recursive(recursive) => {
                self.add(&recursive.first);
                self.add(&recursive.step);
            }
            Plan::Working(_) | Plan::Transition(_) => {}
            Plan::With(with) => {
                with.parts.iter().for_each(|part| self.add(&part.1));
                self.add(&with.body);
            }
            Plan::Rewritten(rewritten) => {
                rewritten.statements.iter().for_each(|part| self.add(part));
            }
            Plan::Lock(input, locks) => {
                self.add(input);
                for lock in locks {
                    // The rows of a partitioned table are its partitions', which are scanned.
                    if lock.partitions.is_none() {
                        self.tables.insert(lock.table.oid);
                    }
                    self.programs(&lock.recheck);
                }
            }
            Plan::Insert(insert) => self.insert(insert),
            Plan::Update(update) => {
                self.add(&update.input);
                self.target(&update.target);
                self.programs(&update.set.rows);
                self.programs(update.set.columns.iter().map(|column| &column.1));
                self.programs(&update.recheck);
            }
            Plan::Delete(delete) => {
                self.add(&delete.input);
                self.target(&delete.target);
                self.programs(&delete.recheck);
            }
            Plan::Merge(merge) => {
                self.add(&merge.input);
                self.written(&merge.table);
                self.programs(&merge.recheck);
                let actions = merge.matched.iter().chain(&merge.others);
                actions.for_each(|action| self.merge_action(action));
            }
        }
    }

    fn merge_action(&mut self, action: &MergeAction) {
        self.programs(&action.condition);
        self.checks(&action.old_checks);
        match &action.kind {
            MergeKind::Nothing => {}
            MergeKind::Insert(insert, values) => {
                self.insert(insert);
                self.programs(values);
            }
            MergeKind::Update(update) => {
                self.target(&update.target);
                self.programs(&update.set.rows);
                self.programs(update.set.columns.iter().map(|column| &column.1));
            }
            MergeKind::Delete(delete) => self.target(&delete.target),
        }
    }

    fn insert(&mut self, insert: &Insert) {
        self.add(&insert.input);
        self.target(&insert.target);
        let Some(conflict) = &insert.conflict else {
            return;
        };
        let Conflict {
            set,
            condition,
            old_checks,
            new_checks,
            ..
        } = conflict;
        if let Some(set) = set {
            self.programs(&set.rows);
            self.programs(set.columns.iter().map(|column| &column.1));
        }
        self.programs(condition);
        self.checks(old_checks);
        self.checks(new_checks);
    }

    /// Generated columns, constraints and indexes have no subqueries, so what they compute uses
    /// nothing.
    fn target(&mut self, target: &Target) {
        self.written(&target.table);
        self.checks(&target.policy_checks);
        self.programs(target.view_checks.iter().map(|check| &check.1));
        self.programs(target.returning.iter().flatten());
        let reached = target.rules.iter().flat_map(|rules| &rules.tables);
        reached.for_each(|reached| self.written(&reached.table));
        let links = target.rules.iter().flat_map(|rules| &rules.links);
        for link in links {
            let leaves = link.partitions.iter().map(|own| &own.partitions.leaves);
            leaves.flatten().for_each(|leaf| self.written(&leaf.table));
        }
        if let Some(routes) = &target.routes {
            let leaves = routes.partitions.leaves.iter();
            leaves.for_each(|leaf| self.written(&leaf.table));
            routes.leaves.iter().for_each(|leaf| self.insert(leaf));
        }
        let through = target.through.iter();
        self.tables.extend(through.map(|through| through.table.oid));
    }

    fn written(&mut self, table: &Table) {
        self.tables.insert(table.oid);
        self.indexes
            .extend(table.indexes.iter().map(|index| index.oid));
    }

    fn checks(&mut self, checks: &[PolicyCheck]) {
        self.programs(checks.iter().map(|check| &check.condition));
    }

    fn keys(&mut self, keys: &[SortKey]) {
        self.programs(keys.iter().map(|key| &key.value));
    }

    fn frame(&mut self, frame: &Frame<Program>) {
        self.programs(frame.start.offset());
        self.programs(frame.end.offset());
    }

    fn programs<'p>(&mut self, programs: impl IntoIterator<Item = &'p Program>) {
        programs
            .into_iter()
            .for_each(|program| self.program(program));
    }

    fn program(&mut self, program: &Program) {
        for op in program.ops() {
            match op {
                Op::Once(program) => self.program(program),
                Op::Sub(query, ..) => {
                    self.add(&query.plan);
                    if let Some(keyed) = &query.keyed {
                        self.add(&keyed.plan);
                        self.programs(keyed.keys.iter().map(|key| &key.0));
                    }
                }
                _ => {}
            }
        }
    }
}
