//! Who may run what: the one way from a bound statement into the executor.
//!
//! Binding makes an [`UncheckedPlan`]: a plan, and the privileges that it [`Required`]s. The
//! executor takes no such thing. It takes a [`PermittedPlan`], and only
//! [`UncheckedPlan::permit`] makes one, for one role and with the catalog that the plan was bound
//! with:
//!
//! ```text
//! text ─bind→ UncheckedPlan ─permit(catalog, role)→ PermittedPlan ─exec::open→ rows
//!                   │                                     │
//!                   └ looked at by EXPLAIN                └ Permit ─Exec::new→ values
//! ```
//! So a new way to run a statement cannot forget the check: it has nothing to run before it asked.
//! What a role may see of a table's rows is a part of the plan ([`crate::bind::Binder`] puts it
//! there), and such a plan is for that role alone ([`BoundFor`]).
//!
//! # Invariants
//! - Privileges count for the role that runs a statement when it runs it, not for who prepared it.
//!   What was opened stays open: a cursor is not asked again when it is fetched from.
//! - What stands below a view is asked of the view's owner ([`Required::view_owner`]).
//!
//! # What it costs
//! A plan remembers for whom it was found permitted, so a repeated execution compares a number and a
//! pointer. A catalog is never changed, only replaced, so a GRANT or REVOKE cannot be missed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result};

use super::Plan;
use catalog::access::{denied, Guarded, Privileges};
use catalog::{system, Catalog, RelationKind};

/// A privilege that a statement needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// On what.
    pub kind: Guarded,
    /// Its oid.
    pub object: u32,
    /// What.
    pub privileges: Privileges,
    /// The number of the column that it is needed on, where the whole table is not: 0 for any one.
    pub column: u32,
    /// Who needs it: the owner of the view that names the object, or else whoever runs the
    /// statement.
    pub view_owner: Option<u32>,
    /// Whether it is an aggregate with OVER: what is refused then is a function.
    pub over: bool,
}

/// For whom a plan was bound that has policies in it, or would have them for somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundFor {
    /// The role that runs it.
    pub role: u32,
    /// `row_security`.
    pub row_security: bool,
    /// Whether `session_replication_role` is `replica`.
    pub replica: bool,
}

/// A plan that nobody may run yet.
#[derive(Debug)]
pub struct UncheckedPlan {
    plan: Rc<Plan>,
    requires: Vec<Required>,
    bound_for: Option<BoundFor>,
    /// For whom, and with which catalog, it was last found permitted.
    verdict: RefCell<Option<(u32, Arc<Catalog>)>>,
}

/// A plan that a role may run.
#[derive(Clone, Copy, Debug)]
pub struct PermittedPlan<'p> {
    plan: &'p Rc<Plan>,
    catalog: &'p Arc<Catalog>,
    requires: &'p [Required],
}

/// That what is run with it was permitted, and the catalog for which that holds.
#[derive(Clone, Copy, Debug)]
pub struct Permit<'p> {
    catalog: &'p Arc<Catalog>,
    requires: &'p [Required],
}

impl UncheckedPlan {
    /// A plan, and all that whoever runs it must be allowed to do.
    pub fn new(
        plan: Plan,
        mut requires: Vec<Required>,
        bound_for: Option<BoundFor>,
    ) -> UncheckedPlan {
        // Relation by relation, in the order in which they are named: the first that is refused is
        // the one that the error names.
        let mut objects: Vec<u32> = Vec::new();
        for required in &requires {
            if !objects.contains(&required.object) {
                objects.push(required.object);
            }
        }
        if objects.len() > 1 {
            // What is called is asked about last.
            requires.sort_by_key(|required| {
                let place = objects.iter().position(|at| *at == required.object);
                (required.kind == Guarded::Function, place)
            });
        }
        UncheckedPlan {
            plan: Rc::new(plan),
            requires,
            bound_for,
            verdict: RefCell::default(),
        }
    }

    /// What it would do.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The relations that it needs more of than to be read: those that it writes to or locks rows of, and
    /// the views and the relations with rules in whose place others are written.
    pub fn changes(&self) -> impl Iterator<Item = u32> + '_ {
        let needs = |required: &&Required| {
            [Privileges::INSERT, Privileges::UPDATE, Privileges::DELETE]
                .into_iter()
                .any(|privilege| required.privileges.has(privilege))
        };
        let relations = self.requires.iter();
        let relations = relations.filter(|required| required.kind == Guarded::Table);
        relations.filter(needs).map(|required| required.object)
    }

    /// A plan around this one, which asks for the same.
    pub fn wrap(self, around: impl FnOnce(Rc<Plan>) -> Plan) -> UncheckedPlan {
        UncheckedPlan::new(around(self.plan), self.requires, self.bound_for)
    }

    /// Whether it is a plan for that role with that `row_security`; otherwise the statement must be
    /// bound anew.
    pub fn is_for(&self, now: BoundFor) -> bool {
        self.bound_for.is_none_or(|bound_for| bound_for == now)
    }

    /// The plan for a role to run.
    ///
    /// # Errors
    /// 42501 for what the role may not do; XX000 for a plan with the policies of another role.
    pub fn permit<'p>(&'p self, catalog: &'p Arc<Catalog>, role: u32) -> Result<PermittedPlan<'p>> {
        let is_known = match &*self.verdict.borrow() {
            Some((known, with)) => *known == role && Arc::ptr_eq(with, catalog),
            None => false,
        };
        if !is_known {
            if self
                .bound_for
                .is_some_and(|bound_for| bound_for.role != role)
            {
                return Err(Error::internal("a plan with the policies of another role"));
            }
            self.check(catalog, role)?;
            *self.verdict.borrow_mut() = Some((role, catalog.clone()));
        }
        Ok(PermittedPlan {
            plan: &self.plan,
            catalog,
            requires: &self.requires,
        })
    }

    fn check(&self, catalog: &Catalog, own: u32) -> Result<()> {
        let is_superuser = catalog.is_superuser(own);
        // What was held on the object that was asked about last, as a whole.
        let mut last: Option<(Required, bool)> = None;
        for required in &self.requires {
            if is_superuser && required.view_owner.is_none() {
                continue;
            }
            let role = required.view_owner.unwrap_or(own);
            let (object, privileges) = (required.object, required.privileges);
            let whole = Required {
                column: 0,
                ..*required
            };
            let held = match last {
                Some((known, held)) if known == whole => held,
                _ => catalog.holds(role, required.kind, object, privileges),
            };
            last = Some((whole, held));
            let may = held
                || required.kind == Guarded::Table
                    && catalog.holds_column(role, object, required.column, privileges)
                || required.column == 0 && self.names_system_column(catalog, role, required);
            if !may {
                return Err(refused(catalog, required));
            }
        }
        Ok(())
    }
}

impl UncheckedPlan {
    /// Whether in the place of any column of a table, no system column among them, the statement names
    /// a system column that the role may use.
    fn names_system_column(&self, catalog: &Catalog, role: u32, any: &Required) -> bool {
        self.requires.iter().any(|required| {
            let column = required.column;
            let is_system = (column as i32) < 0;
            is_system
                && Required { column, ..*any } == *required
                && catalog.holds_column(role, any.object, column, any.privileges)
        })
    }
}

/// 42501 with the object's name.
fn refused(catalog: &Catalog, required: &Required) -> Error {
    let (noun, name) = match required.kind {
        Guarded::Schema => (
            "schema",
            catalog.schema_by_oid(required.object).map(|s| &s.name),
        ),
        Guarded::Function => match catalog.routine(required.object) {
            Some(routine) if required.over => ("function", Some(&routine.name)),
            Some(routine) => (routine.kind.noun(), Some(&routine.name)),
            None if required.over => {
                let aggregate = functions::aggregate_by_oid(required.object);
                return denied("function", aggregate.map_or("", |aggregate| aggregate.name));
            }
            None => return denied_call(required.object),
        },
        _ => match catalog.table_by_oid(required.object) {
            Some(table) if system::kind(table) == b'v' && table.kind == RelationKind::System => {
                ("view", Some(&table.name))
            }
            Some(table) => (table.kind.noun(), Some(&table.name)),
            None => ("table", None),
        },
    };
    denied(noun, name.map_or("", String::as_str))
}

/// 42501 for a function, an aggregate or a window function.
pub fn denied_call(oid: u32) -> base::Error {
    if let Some(aggregate) = functions::aggregate_by_oid(oid) {
        return denied("aggregate", aggregate.name);
    }
    let name = functions::function_by_oid(oid).map(|function| function.name);
    let name = name.or_else(|| functions::window_by_oid(oid).map(|function| function.name));
    let name = name.unwrap_or_default();
    denied("function", name.trim_start_matches("quorate."))
}

impl<'p> PermittedPlan<'p> {
    /// What it does.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// The same, to be kept.
    pub fn shared(&self) -> Rc<Plan> {
        self.plan.clone()
    }

    /// The catalog that it was bound with.
    pub fn catalog(&self) -> &'p Arc<Catalog> {
        self.catalog
    }

    /// For whatever is computed on its behalf.
    pub fn permit(&self) -> Permit<'p> {
        Permit {
            catalog: self.catalog,
            requires: self.requires,
        }
    }
}

impl<'p> Permit<'p> {
    /// For what follows from the definition of an object and was permitted with it, or needs no
    /// permission: constraints, generated columns, defaults of columns that are added, changes of
    /// type. Such expressions hold no query, so they look at nothing but the rows at hand.
    pub fn of_definition(catalog: &'p Arc<Catalog>) -> Permit<'p> {
        Permit {
            catalog,
            requires: &[],
        }
    }

    /// For a cursor that is open: what was permitted when it was opened.
    pub fn of_open_cursor(catalog: &'p Arc<Catalog>) -> Permit<'p> {
        Permit {
            catalog,
            requires: &[],
        }
    }

    /// The catalog for which it holds.
    pub fn catalog(&self) -> &'p Arc<Catalog> {
        self.catalog
    }

    /// Whether the statement itself gives a column of a table its values: whoever runs it knows them.
    pub fn gives(&self, table: u32, column: u32) -> bool {
        let writes = [Privileges::INSERT, Privileges::UPDATE];
        self.requires.iter().any(|required| {
            (required.kind, required.object, required.column) == (Guarded::Table, table, column)
                && writes.iter().any(|write| required.privileges.has(*write))
        })
    }
}
