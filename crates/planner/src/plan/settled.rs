//! Which plans give the same rows each time that they run on the same data for the same rows around
//! them: those whose every part is known to. What such a subquery gave may be remembered.
//!
//! Whatever writes, locks, calls a routine or a volatile function, or is of a kind that nobody has
//! thought about here, is not settled.
//!
//! What may be left out where nobody asks for it ([`Program::is_optional`]) may also look at queries of
//! WITH, which run for whoever asks for their rows.

use super::program::Op;
use super::{AggregatePlan, Plan, Program};
use functions::{Body, Volatility};

/// What is asked of plans and programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Whether they give the same each time.
    Settled,
    /// Whether nobody can tell if they ran.
    Optional,
    /// The same, of what has queries of WITH of its own.
    OptionalWithOwn,
}

impl Plan {
    /// Whether it gives the same rows each time.
    pub fn is_settled(&self) -> bool {
        self.is(Asked::Settled)
    }

    fn is(&self, asked: Asked) -> bool {
        let holds = |program: &Program| program.is(asked);
        let all = |programs: &[Program]| programs.iter().all(holds);
        match self {
            Plan::Values(rows) => rows.iter().all(|row| all(row)),
            Plan::Scan(scan) => {
                let others = scan.alternatives.iter();
                let others = others.flat_map(|way| way.access.programs());
                let mut programs = scan.access.programs().chain(others).chain(&scan.filter);
                scan.inverted.is_none() && programs.all(holds)
            }
            Plan::Filter(input, condition) | Plan::Once(input, condition) => {
                condition.is(asked) && input.is(asked)
            }
            Plan::Project(input, columns) => all(columns) && input.is(asked),
            Plan::Join(join) => {
                let keys = join.hash.iter();
                let mut keys = keys.flat_map(|(left, right, _)| [left, right]);
                join.left.is(asked)
                    && join.right.is(asked)
                    && join.lookup.iter().all(|plan| plan.is(asked))
                    && keys.all(holds)
                    && join.condition.iter().all(holds)
            }
            Plan::Aggregate {
                input,
                groups,
                aggregates,
                ..
            } => {
                input.is(asked)
                    && groups.iter().all(|group| group.0.is(asked))
                    && aggregates.iter().all(|aggregate| aggregate.is(asked))
            }
            Plan::Sort(input, keys) => {
                keys.iter().all(|key| key.value.is(asked)) && input.is(asked)
            }
            Plan::SetOperation(_, _, parts, _) => parts.iter().all(|part| part.is(asked)),
            Plan::Distinct(input, _) | Plan::Trim(input, _) => input.is(asked),
            Plan::Limit(input, count, offset, ties) => {
                let mut programs = count.iter().chain(offset);
                programs.all(holds) && ties.iter().all(|tie| tie.0.is(asked)) && input.is(asked)
            }
            // Its rows are those of a query of WITH, which others may ask for as well.
            Plan::Shared(_, plan) => match asked {
                Asked::Settled => false,
                Asked::Optional => true,
                Asked::OptionalWithOwn => plan.is(asked),
            },
            Plan::Anew(_, input) => asked != Asked::Settled && input.is(Asked::OptionalWithOwn),
            _ => false,
        }
    }
}

impl AggregatePlan {
    fn is(&self, asked: Asked) -> bool {
        let order = self.order.iter().map(|key| &key.value);
        let mut programs = self.args.iter().chain(&self.filter).chain(order);
        // Functions of one's own are none that are looked into.
        self.aggregate.built_in().is_some() && programs.all(|program| program.is(asked))
    }
}

impl Program {
    /// Whether it has the same value each time for the same rows.
    pub fn is_settled(&self) -> bool {
        self.is(Asked::Settled)
    }

    /// Whether it need not be computed where nobody looks at its value.
    pub fn is_optional(&self) -> bool {
        self.is(Asked::Optional)
    }

    fn is(&self, asked: Asked) -> bool {
        self.ops().iter().all(|op| match op {
            Op::Call { function, .. } => {
                let native = matches!(function.body, Body::Native(_));
                native && function.volatility != Volatility::Volatile
            }
            Op::Once(program) => program.is(asked),
            Op::Sub(query, ..) => query.plan.is(asked),
            Op::Domain(test) => !test.calls_late(),
            Op::Routine(..) | Op::AnyOwn(_) => false,
            _ => true,
        })
    }
}
