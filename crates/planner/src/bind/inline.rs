//! Queries of WITH that become a part of the query that names them, as a query in FROM does.
//!
//! ```sql
//! with late as (select * from orders where shipped is null) select * from late where id = 7
//! ```
//! looks up one order if `late` is read where it is named, and all that are not shipped if it runs once for
//! whoever asks. As in PostgreSQL it is read there where it is named once, unless it says MATERIALIZED;
//! NOT MATERIALIZED says so for one that is named more often.
//!
//! # Invariants
//! - It holds nothing volatile, neither writes nor locks, does not name itself and does not look at the
//!   queries around it.
//! - It is bound where it stands, whether or not anybody names it; the first who names it gets what was
//!   bound, and others have it bound anew, among the queries of WITH that it knew.

use std::cell::RefCell;
use std::fmt;

use pg_query::protobuf::{CommonTableExpr, CteMaterialize, SelectStmt};

use super::select::{Body, Query};
use crate::logical::{Source, SourceKind};
use crate::plan::{Expr, Plan};

/// A query of WITH that is read where it is named.
pub(super) struct Inline {
    /// Its text.
    pub(super) select: SelectStmt,
    /// As it was bound, until somebody has it.
    pub(super) bound: RefCell<Option<Query>>,
    /// How many queries of WITH it knows.
    pub(super) known: usize,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline").finish_non_exhaustive()
    }
}

/// Whether a bound query of WITH is read where it is named.
pub(super) fn is_inline(cte: &CommonTableExpr, query: &Query, names: &[String]) -> bool {
    let times = names.iter().filter(|name| **name == cte.ctename).count();
    let wanted = match CteMaterialize::try_from(cte.ctematerialized) {
        Ok(CteMaterialize::Never) => true,
        Ok(CteMaterialize::Always) => false,
        _ => times == 1,
    };
    wanted && !query.escapes && is_settled(&query.body)
}

fn is_settled(body: &Body) -> bool {
    match body {
        Body::Plan(plan) => plan.is_settled(),
        Body::Simple(simple) => simple.is_settled() && is_settled_source(&simple.source),
    }
}

fn is_settled_source(source: &Source) -> bool {
    match &source.kind {
        SourceKind::Scan { guards, own, .. } => {
            let mut all = guards.iter().flatten().chain(own);
            !all.any(|expr| expr.any(&Expr::is_volatile_call))
        }
        SourceKind::Derived(derived) => is_settled_source(&derived.source),
        // What runs once gives the same rows wherever they are read.
        SourceKind::Other { plan, .. } => matches!(**plan, Plan::Shared(..)) || plan.is_settled(),
        SourceKind::Join {
            left, right, on, ..
        } => {
            let volatile = |expr: &Expr| expr.any(&Expr::is_volatile_call);
            !on.iter().any(volatile) && is_settled_source(left) && is_settled_source(right)
        }
    }
}
