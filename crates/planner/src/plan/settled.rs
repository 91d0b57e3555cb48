//! Which plans give the same rows each time that they run on the same data for the same rows around
//! them: those whose every part is known to. What such a subquery gave may be remembered.
//!
//! Whatever writes, locks, calls a routine or a volatile function, or is of a kind that nobody has
//! thought about here, is not settled.

use super::program::Op;
use super::{AggregatePlan, Plan, Program};
use functions::{Body, Volatility};

impl Plan {
    /// Whether it gives the same rows each time.
    pub fn is_settled(&self) -> bool {
        let all = |programs: &[Program]| programs.iter().all(Program::is_settled);
        match self {
            Plan::Values(rows) => rows.iter().all(|row| all(row)),
            Plan::Scan(scan) => {
                let others = scan.alternatives.iter();
                let others = others.flat_map(|way| way.access.programs());
                let mut programs = scan.access.programs().chain(others).chain(&scan.filter);
                scan.inverted.is_none() && programs.all(Program::is_settled)
            }
            Plan::Filter(input, condition) | Plan::Once(input, condition) => {
                condition.is_settled() && input.is_settled()
            }
            Plan::Project(input, columns) => all(columns) && input.is_settled(),
            Plan::Join(join) => {
                let keys = join.hash.iter();
                let mut keys = keys.flat_map(|(left, right, _)| [left, right]);
                join.left.is_settled()
                    && join.right.is_settled()
                    && join.lookup.iter().all(|plan| plan.is_settled())
                    && keys.all(Program::is_settled)
                    && join.condition.iter().all(Program::is_settled)
            }
            Plan::Aggregate {
                input,
                groups,
                aggregates,
                ..
            } => {
                input.is_settled()
                    && groups.iter().all(|group| group.0.is_settled())
                    && aggregates.iter().all(AggregatePlan::is_settled)
            }
            Plan::Sort(input, keys) => {
                keys.iter().all(|key| key.value.is_settled()) && input.is_settled()
            }
            Plan::SetOperation(_, _, parts, _) => parts.iter().all(Plan::is_settled),
            Plan::Distinct(input, _) | Plan::Trim(input, _) => input.is_settled(),
            Plan::Limit(input, count, offset, ties) => {
                let mut programs = count.iter().chain(offset);
                programs.all(Program::is_settled)
                    && ties.iter().all(|tie| tie.0.is_settled())
                    && input.is_settled()
            }
            _ => false,
        }
    }
}

impl AggregatePlan {
    fn is_settled(&self) -> bool {
        let order = self.order.iter().map(|key| &key.value);
        let mut programs = self.args.iter().chain(&self.filter).chain(order);
        // Functions of one's own are none that are looked into.
        self.aggregate.built_in().is_some() && programs.all(Program::is_settled)
    }
}

impl Program {
    /// Whether it has the same value each time for the same rows.
    pub fn is_settled(&self) -> bool {
        self.ops().iter().all(|op| match op {
            Op::Call { function, .. } => {
                let native = matches!(function.body, Body::Native(_));
                native && function.volatility != Volatility::Volatile
            }
            Op::Once(program) => program.is_settled(),
            Op::Sub(query, ..) => query.plan.is_settled(),
            Op::Domain(test) => !test.calls_late(),
            Op::Routine(..) | Op::AnyOwn(_) => false,
            _ => true,
        })
    }
}
