//! Row security: what a statement must test of the rows that it reads and writes, for the role that
//! it is bound for ([`catalog::policy`]).
//!
//! ```text
//! policy p on t for all using (owner = current_user)
//! select * from t where f(secret)       scan of t: owner = current_user, and only then f(secret)
//! insert into t … returning secret      check: the new row meets p, as one that is written
//!                                       and as one that is read
//! ```
//!
//! Conditions that keep rows from a role are *guards* of the table's scan: they are tested before
//! anything else is, unless that is leakproof, that is, tells nothing of the values it is given but by
//! its result ([`crate::logical::leaks`]). The condition of a view with `security_barrier` is a guard as well.
//!
//! | statement | guards: USING of | checks of new rows |
//! |---|---|---|
//! | reads | SELECT; with FOR UPDATE and its kin UPDATE too | |
//! | INSERT | | WITH CHECK of INSERT |
//! | … ON CONFLICT DO UPDATE | | of the row in the way: USING of UPDATE; then WITH CHECK of UPDATE |
//! | UPDATE | UPDATE | WITH CHECK of UPDATE |
//! | DELETE | DELETE | |
//! | MERGE | SELECT | of a row to be changed: USING of UPDATE or DELETE; then those of each action |
//!
//! A statement that reads the table which it writes (WHERE, RETURNING) has those of SELECT besides, as
//! guards and as checks.
//!
//! # Invariants
//! - Every scan has guards, if only none ([`Binder::scan`] leaves them open, and no plan is made of a
//!   scan where they still are).
//! - A plan over a table that guards its rows is for one role and one value of `row_security`
//!   ([`crate::plan::permit::BoundFor`]), and nobody else can run it.
//! - What stands below a view is guarded from the view's owner, unless it has `security_invoker`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{Node, RangeVar, SelectStmt};

use super::expr::Place;
use super::fixed::{item_text, FixedQuery, Recorded};
use super::scope::{table_columns, Scope, ScopeTable};
use super::view::query_of_text;
use super::{boxed, inner, Binder};
use crate::logical::truth;
use crate::plan::compile;
use crate::plan::{Expr, ExprKind, Needed, PolicyCheck};
use catalog::cast::without_note;
use catalog::policy::PolicyCommand as For;
use catalog::{Policy, RowSecurity, Table, Uses};
use functions::strings::quote_identifier;
use syntax::parser::{self, NodeEnum, TokenKind};
use types::{Datum, TypeId};

fn never() -> Expr {
    Expr::constant(Datum::Bool(false), TypeId::BOOL, -1)
}

/// Conditions of which one must be met; none met if there are none.
fn any_of(mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        0 => never(),
        1 => conditions.remove(0),
        _ => truth(ExprKind::Or(conditions), -1),
    }
}

/// Which condition of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Using,
    /// WITH CHECK, or USING without one.
    Check,
}

impl Which {
    fn of(self, policy: &Policy) -> Option<&String> {
        match self {
            Which::Using => policy.using.as_ref(),
            Which::Check => policy.check.as_ref().or(policy.using.as_ref()),
        }
    }
}

/// 42P17 for a policy whose condition reads its own table.
fn endless(table: &Table) -> Error {
    Error::new(
        SqlState::of("42P17"),
        format!(
            "infinite recursion detected in policy for relation \"{}\"",
            table.name
        ),
    )
}

impl Binder<'_> {
    /// The role from which a table's policies guard its rows, if they do: whoever runs the
    /// statement, or the owner of the view that names the table.
    ///
    /// # Errors
    /// 42501 with `row_security` off.
    pub(super) fn guarded_from(&mut self, table: &Table) -> Result<Option<u32>> {
        if self.names_only || !table.row_security {
            return Ok(None);
        }
        self.rests_on_role = true;
        let role = self.checked_as.unwrap_or(self.cx.role);
        let RowSecurity::On { owner } = self.cx.catalog.row_security(role, table) else {
            return Ok(None);
        };
        if !self.row_security {
            let error = Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "query would be affected by row-level security policy for table \"{}\"",
                    table.name
                ),
            );
            return Err(match owner {
                true => error.with_hint(
                    "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW \
                     LEVEL SECURITY.",
                ),
                false => error,
            });
        }
        Ok(Some(role))
    }

    /// What rows of a table must meet to be there for these commands, where its columns begin at
    /// `start`.
    pub(super) fn guards(
        &mut self,
        table: &Arc<Table>,
        start: usize,
        needed: &Needed,
        commands: &[For],
    ) -> Result<Vec<Expr>> {
        let Some(role) = self.guarded_from(table)? else {
            return Ok(Vec::new());
        };
        let mut guards = Vec::new();
        for command in commands {
            let (permissive, restrictive) = self.cx.catalog.policies(role, table, *command);
            let bind = |binder: &mut Self, policies: Vec<&Policy>| {
                let texts = policies
                    .into_iter()
                    .filter_map(|policy| policy.using.as_ref());
                texts
                    .map(|text| binder.policy_condition(table, text, start, Some(needed)))
                    .collect::<Result<Vec<_>>>()
            };
            let allowed = bind(self, permissive)?;
            if !allowed.is_empty() {
                guards.extend(bind(self, restrictive)?);
            }
            guards.push(any_of(allowed));
        }
        Ok(guards)
    }

    /// The checks of rows that are written: each command's WITH CHECK, and what those of the SELECT
    /// policies demand if the statement reads what it writes.
    fn new_row_checks(
        &mut self,
        table: &Arc<Table>,
        role: u32,
        command: For,
        reads: bool,
    ) -> Result<Vec<PolicyCheck>> {
        let mut checks = Vec::new();
        self.add_checks(table, role, (command, Which::Check), &mut checks)?;
        if reads {
            self.add_checks(table, role, (For::Select, Which::Using), &mut checks)?;
        }
        Ok(checks)
    }

    fn add_checks(
        &mut self,
        table: &Arc<Table>,
        role: u32,
        (command, which): (For, Which),
        checks: &mut Vec<PolicyCheck>,
    ) -> Result<()> {
        let (permissive, restrictive) = self.cx.catalog.policies(role, table, command);
        let texts = permissive.into_iter().filter_map(|policy| which.of(policy));
        let mut allowed = Vec::new();
        for text in texts {
            allowed.push(self.policy_condition(table, text, 0, None)?);
        }
        let restricts = !allowed.is_empty();
        checks.push(PolicyCheck {
            policy: None,
            condition: compile(&any_of(allowed)),
        });
        for policy in restrictive.into_iter().filter(|_| restricts) {
            if let Some(text) = which.of(policy) {
                let condition = self.policy_condition(table, text, 0, None)?;
                checks.push(PolicyCheck {
                    policy: Some(policy.name.clone()),
                    condition: compile(&condition),
                });
            }
        }
        Ok(())
    }

    /// What new rows of an INSERT must meet.
    pub(super) fn insert_checks(
        &mut self,
        table: &Arc<Table>,
        reads: bool,
    ) -> Result<Vec<PolicyCheck>> {
        match self.guarded_from(table)? {
            Some(role) => self.new_row_checks(table, role, For::Insert, reads),
            None => Ok(Vec::new()),
        }
    }

    /// What the new versions of rows that an UPDATE changes must meet.
    pub(super) fn update_checks(
        &mut self,
        table: &Arc<Table>,
        reads: bool,
    ) -> Result<Vec<PolicyCheck>> {
        match self.guarded_from(table)? {
            Some(role) => self.new_row_checks(table, role, For::Update, reads),
            None => Ok(Vec::new()),
        }
    }

    /// What a row must meet that is in the way of an INSERT and is to be changed instead.
    pub(super) fn conflict_checks(
        &mut self,
        table: &Arc<Table>,
        reads: bool,
    ) -> Result<Vec<PolicyCheck>> {
        let mut checks = Vec::new();
        if let Some(role) = self.guarded_from(table)? {
            self.add_checks(table, role, (For::Update, Which::Using), &mut checks)?;
            if reads {
                self.add_checks(table, role, (For::Select, Which::Using), &mut checks)?;
            }
        }
        Ok(checks)
    }

    /// What a row must meet that MERGE is to change, or to delete.
    pub(super) fn merge_checks(
        &mut self,
        table: &Arc<Table>,
        command: For,
    ) -> Result<Vec<PolicyCheck>> {
        let mut checks = Vec::new();
        if let Some(role) = self.guarded_from(table)? {
            self.add_checks(table, role, (command, Which::Using), &mut checks)?;
        }
        Ok(checks)
    }

    /// A policy's condition over the row of its table, which begins at `start`.
    fn policy_condition(
        &mut self,
        table: &Arc<Table>,
        text: &str,
        start: usize,
        needed: Option<&Needed>,
    ) -> Result<Expr> {
        self.policies.push(table.oid);
        let bound = self.in_stored_text(text, |binder| {
            let select = query_of_text(text)?;
            let (scope, value) = binder.policy_scope(table, &select, start, needed)?;
            let condition = binder.expr(&value, &scope, Place::POLICY)?;
            binder.condition(condition, "POLICY")
        });
        self.policies.pop();
        bound
    }

    /// The scope of a policy's stored text, and the expression in it.
    pub(super) fn policy_scope(
        &mut self,
        table: &Arc<Table>,
        select: &SelectStmt,
        start: usize,
        needed: Option<&Needed>,
    ) -> Result<(Scope<'static>, NodeEnum)> {
        let none = || Error::internal("a policy's text that is none");
        let target = select.target_list.first().ok_or_else(none)?;
        let NodeEnum::ResTarget(target) = inner(target)? else {
            return Err(none());
        };
        let range = item_of(select).ok_or_else(none)?;
        let mut columns = table_columns(table);
        for column in &mut columns {
            // Whoever may use the table may be asked what its policies ask.
            column.origin = (0, 0);
        }
        self.positional = true;
        let alias = self.alias(range.alias.as_ref(), &table.name, &mut columns)?;
        let scope = Scope {
            tables: vec![ScopeTable {
                table: Some(table.clone()),
                needed: needed.cloned(),
                ..ScopeTable::of(alias, columns, start)
            }],
            ..Scope::default()
        };
        scope.beyond.set(start + table.columns.len());
        Ok((scope, boxed(&target.val)?.clone()))
    }

    /// A subquery is met: not in a policy that is asked for the second time because of itself.
    ///
    /// # Errors
    /// 42P17.
    pub(super) fn check_endless_policy(&self) -> Result<()> {
        let Some((last, before)) = self.policies.split_last() else {
            return Ok(());
        };
        match (before.contains(last), self.cx.catalog.table_by_oid(*last)) {
            (true, Some(table)) => Err(endless(table)),
            _ => Ok(()),
        }
    }

    /// Binds the condition of a policy as it is written, and returns it as the catalog keeps it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed_policy(&mut self, table: &Arc<Table>, node: &Node) -> Result<FixedQuery> {
        self.names_only = true;
        let scope = super::write::target_scope(table, &table.name);
        let bound = self.node(node, &scope, Place::POLICY)?;
        self.condition(bound, "POLICY")?;
        let schema = self.cx.catalog.schema_by_oid(table.schema);
        let from = RangeVar {
            schemaname: schema.map_or_else(String::new, |schema| schema.name.clone()),
            relname: table.name.clone(),
            inh: true,
            relpersistence: "p".to_owned(),
            ..Default::default()
        };
        self.fixed_query(&parser::selection(node, Some(from)))
    }

    /// The condition of a policy, to be shown.
    ///
    /// # Errors
    /// What has become of the relations that it names.
    pub fn shown_policy(&mut self, table: &Arc<Table>, text: &str) -> Result<Expr> {
        self.names_only = true;
        self.policy_condition(table, text, 0, None)
    }

    /// A policy's condition as it stands in the catalog, with names in the places of oids.
    ///
    /// # Errors
    /// XX000 for text that is none.
    pub fn stored_policy(&self, text: &str) -> Result<String> {
        let select = query_of_text(text)?;
        let end = item_of(&select).map_or(text.len(), |range| range.location as usize);
        let condition = text[..end].trim_end().trim_end_matches("FROM");
        let condition = condition.trim_start_matches("SELECT").trim();
        Ok(format!("({})", self.renamed(condition)?))
    }

    /// What a policy's condition names.
    ///
    /// # Errors
    /// What has become of the relations that it names.
    pub fn policy_uses(&mut self, table: &Arc<Table>, text: &str) -> Result<Vec<Uses>> {
        self.names_only = true;
        let needed: Needed = Rc::new(RefCell::new(vec![false; table.columns.len()]));
        let recorded = Rc::new(RefCell::new(Recorded::default()));
        self.in_stored_text(text, |binder| {
            let select = query_of_text(text)?;
            let (scope, value) = binder.policy_scope(table, &select, 0, Some(&needed))?;
            binder.recorded = Some(Recorded::default());
            let bound = binder.expr(&value, &scope, Place::POLICY);
            *recorded.borrow_mut() = binder.recorded.take().unwrap_or_default();
            bound
        })?;
        let mut recorded = recorded.take();
        let range = RangeVar {
            relname: table.name.clone(),
            ..RangeVar::default()
        };
        recorded.relation(&range, table, Some(needed));
        Ok(recorded.uses())
    }

    /// A policy's stored text for its table under another name, or with columns that have other names.
    ///
    /// # Errors
    /// What has become of the relations that it names.
    pub fn restated_policy(&mut self, old: &Arc<Table>, new: &Table, text: &str) -> Result<String> {
        self.names_only = true;
        let (select, found) = self.in_stored_text(text, |binder| {
            let select = query_of_text(text)?;
            let (scope, value) = binder.policy_scope(old, &select, 0, None)?;
            let bound = binder.expr(&value, &scope, Place::POLICY)?;
            let mut found = Vec::new();
            let mut note = |part: &Expr| {
                if let (ExprKind::Column(place), Ok(at)) =
                    (&part.kind, usize::try_from(part.location.0))
                {
                    found.push((at, *place));
                }
            };
            bound.visit(&mut note);
            let inside = scope.seen_from_inside.borrow();
            inside.iter().for_each(|seen| note(&seen.1));
            drop(inside);
            Ok((select, found))
        })?;
        let end = item_of(&select).map_or(text.len(), |range| range.location as usize);
        let tokens = parser::tokens(text)?;
        let mut edits = Vec::new();
        for (start, place) in found {
            let Some(first) = tokens.iter().position(|token| token.start == start) else {
                continue;
            };
            let is_dot = |at: usize| {
                let token = tokens.get(at);
                token.is_some_and(|token| token.kind == TokenKind::Char(b'.'))
            };
            let mut last = first;
            while is_dot(last + 1) && last + 2 < tokens.len() {
                last += 2;
            }
            let name = [&new.name, &new.columns[place].name]
                .map(|name| quote_identifier(name))
                .join(".");
            edits.push((start, tokens[last].end, name));
        }
        edits.sort();
        edits.dedup();
        let (mut out, mut done) = (String::new(), 0);
        for (start, stop, name) in edits {
            out.push_str(&text[done..start]);
            out.push_str(&name);
            done = stop;
        }
        out.push_str(&text[done..end]);
        out.push_str(&item_text(new, &new.name, &mut std::iter::empty()));
        out.push_str(&text[without_note(text).len()..]);
        Ok(out)
    }
}

/// The item of FROM of a policy's stored text, which ends it.
fn item_of(select: &SelectStmt) -> Option<&RangeVar> {
    match &select.from_clause.first()?.node {
        Some(NodeEnum::RangeVar(range)) => Some(range),
        _ => None,
    }
}
