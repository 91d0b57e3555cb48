//! Rules where they are applied: what a statement that writes becomes (PostgreSQL 15 manual, section 41.4).
//!
//! ```text
//! create rule r as on update to t where new.a > 5 do also insert into log values (old.a, new.a)
//! update t set a = a + 1 where b
//!   1.  insert into log select old.a, new.a from (rows) old, new
//!       rows:  select t.*, t.a + 1 … from t where b,  of which new.a > 5
//!   2.  update t set a = a + 1 where b
//! ```
//! Each action is bound anew as a statement of its own, in whose FROM stands what was to be written: an
//! item that no user can name ([`ROWS`]) and whose columns are those of `old` and of `new`
//! ([`super::rule_rows`]). So a rule looks at whole sets of rows, as in PostgreSQL. Actions that have
//! rules themselves become further statements, with such an item inside of such an item. All of them are
//! one [`Plan::Rewritten`].
//!
//! # Invariants
//! - Actions are bound in the name of their relation's owner; what was to be written, in that of whoever
//!   wrote the statement.
//! - Of INSERT the statement itself comes before what its rules add, of UPDATE and DELETE after it.
//! - Of a view through which a statement writes, the rules of what is below it are rules of the statement
//!   too: where it is carried out itself after its own rules, theirs are applied to it, level by level. Their
//!   rows are those of the relation that has them.
//!
//! # What it leaves out
//! A value of `new` that is volatile is computed once for each action, where PostgreSQL computes it wherever
//! it is named. Whether a row that has changed meanwhile meets the condition of a rule is not looked at again
//! by the rule's own actions. What foreign keys do is not rewritten.

use std::mem::replace;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    CommonTableExpr, List, LockingClause, Node, NotifyStmt, RangeVar, ReturningClause, SelectStmt,
    SetOperation, WithClause,
};

use super::definition::is_alone;
use super::expr::Place;
use super::rule_made::{rows_named, source_of};
use super::rule_rows::{new_columns_named, with_columns};
use super::scope::{table_columns, Scope, ScopeTable};
use super::updatable::Verb;
use super::view::endless;
use super::with::Cte;
use super::{boxed, inner, BindContext, Binder, Conflict, OutputColumn, Variables};
use crate::plan::{Expr, ExprKind, Plan, Rewritten};
use catalog::sql_body::SqlBody;
use catalog::trigger::Events;
use catalog::{RelationKind, Rule, Table};
use syntax::parser::{self, NodeEnum};
use types::{Datum, TypeId};

/// The schema of the item of FROM that stands for what was to be written; no user can make it.
pub(super) const ROWS: &str = "#rows";

/// Where a text stands: how its names are looked for, in whose name, and in the midst of what.
#[derive(Clone)]
pub(super) struct Context<'a> {
    cx: BindContext<'a>,
    stored: bool,
    noted: Option<Vec<u32>>,
    open_params: bool,
    checked_as: Option<u32>,
    ctes: Vec<Cte>,
    frame: Option<Rc<Frame<'a>>>,
    midst: Midst<'a>,
}

/// What a statement that is begun anew is in the midst of: nothing.
#[derive(Clone, Default)]
struct Midst<'a> {
    positional: bool,
    nullable: usize,
    for_insert: bool,
    inside_with: bool,
    within_keys: bool,
    locked: Vec<LockingClause>,
    lifted: Vec<Expr>,
    given_back: Vec<Rc<GivenBack<'a>>>,
}

/// What `old` and `new` are to an action.
pub(super) struct Frame<'a> {
    /// The relation with the rule.
    pub table: Arc<Table>,
    pub rule: &'a Rule,
    /// The statement to which the rule is applied; none where the action alone is looked at.
    pub statement: Option<Rc<NodeEnum>>,
    /// Where that stands.
    pub around: Context<'a>,
    /// The columns of `new` that are looked at.
    pub wanted: Vec<bool>,
}

/// RETURNING of a statement in whose place an action gives the rows.
pub(super) struct GivenBack<'a> {
    clause: ReturningClause,
    context: Context<'a>,
    table: Arc<Table>,
    /// What the relation that is named and its columns are called there.
    name: String,
    columns: Vec<String>,
    /// The view that is named instead, and its columns over a row of the relation.
    through: Option<(Arc<Table>, Vec<Expr>)>,
}

/// Why a statement is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Itself,
    Instead,
    InsteadIf,
    Also,
}

impl By {
    /// Why the actions of a rule are there.
    fn of(rule: &Rule) -> By {
        match (rule.instead, &rule.condition) {
            (true, Some(_)) => By::InsteadIf,
            (true, None) => By::Instead,
            (false, _) => By::Also,
        }
    }
}

/// One of the statements that another becomes.
struct Piece {
    plan: Plan,
    columns: Vec<OutputColumn>,
    /// What it does; none is NOTIFY.
    command: Events,
    by: By,
}

impl Piece {
    /// Whether it is no NOTIFY.
    fn is_query(&self) -> bool {
        self.command != Events::NONE
    }
}

/// What a statement that writes stands in that can have one alone in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// WITH.
    With,
    /// COPY.
    Copy,
}

impl Alone {
    /// 0A000 for what rules make of the statement, if that is not one statement alone.
    fn check(self, pieces: &[Piece]) -> Result<()> {
        let at_end = match self {
            Alone::With => "data-modifying statements in WITH",
            Alone::Copy => "COPY",
        };
        let has = |by: By| pieces.iter().any(|piece| piece.by == by);
        let what = match pieces {
            [one] if !one.is_query() => match self {
                Alone::With => "DO INSTEAD NOTIFY",
                Alone::Copy => {
                    return Err(unsupported("COPY query must not be a utility command"));
                }
            },
            [_] => return Ok(()),
            [] => "DO INSTEAD NOTHING",
            _ if has(By::InsteadIf) => "conditional DO INSTEAD",
            _ if has(By::Also) => "DO ALSO",
            _ => "multi-statement DO INSTEAD",
        };
        let message = format!("{what} rules are not supported for {at_end}");
        Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}

/// The names that the statements of a rule have for what they write to.
impl Variables for Rule {
    fn find(&self, _: &[&str]) -> Result<Option<(usize, TypeId, i32)>> {
        Ok(None)
    }

    fn conflict(&self) -> Conflict {
        Conflict::Column
    }

    fn sql_body(&self) -> Option<&SqlBody> {
        Some(&self.body)
    }
}

/// The parts of a statement that writes.
struct Parts<'n> {
    range: &'n RangeVar,
    event: Events,
    returning: Option<&'n ReturningClause>,
    with: Option<&'n WithClause>,
}

fn parts_of(node: &NodeEnum) -> Option<Parts<'_>> {
    let (range, event, returning, with) = match node {
        NodeEnum::InsertStmt(it) => (
            &it.relation,
            Events::INSERT,
            &it.returning_clause,
            &it.with_clause,
        ),
        NodeEnum::UpdateStmt(it) => (
            &it.relation,
            Events::UPDATE,
            &it.returning_clause,
            &it.with_clause,
        ),
        NodeEnum::DeleteStmt(it) => (
            &it.relation,
            Events::DELETE,
            &it.returning_clause,
            &it.with_clause,
        ),
        _ => return None,
    };
    Some(Parts {
        range: range.as_ref()?,
        event,
        returning: returning.as_ref(),
        with: with.as_ref(),
    })
}

fn without_returning(mut node: NodeEnum) -> NodeEnum {
    match &mut node {
        NodeEnum::InsertStmt(it) => it.returning_clause = None,
        NodeEnum::UpdateStmt(it) => it.returning_clause = None,
        NodeEnum::DeleteStmt(it) => it.returning_clause = None,
        _ => {}
    }
    node
}

fn verb_of(event: Events) -> Verb {
    match event {
        Events::INSERT => Verb::Insert,
        Events::UPDATE => Verb::Update,
        _ => Verb::Delete,
    }
}

/// Whether it stands for so many rows as there are, rather than for one: then actions that look at none
/// of them are done once.
fn has_rows(statement: &NodeEnum) -> bool {
    match statement {
        NodeEnum::InsertStmt(_) => {
            let source = source_of(statement);
            source.is_some_and(|select| {
                select.values_lists.len() != 1 || !select.from_clause.is_empty()
            })
        }
        NodeEnum::UpdateStmt(it) => it.where_clause.is_some() || !it.from_clause.is_empty(),
        NodeEnum::DeleteStmt(it) => it.where_clause.is_some() || !it.using_clause.is_empty(),
        _ => true,
    }
}

/// Whether other items stand beside what it writes to.
fn has_others(statement: &NodeEnum) -> bool {
    match statement {
        NodeEnum::UpdateStmt(it) => !it.from_clause.is_empty(),
        NodeEnum::DeleteStmt(it) => !it.using_clause.is_empty(),
        _ => false,
    }
}

fn wrapped(node: NodeEnum) -> Node {
    Node { node: Some(node) }
}

fn item_of_rows() -> Node {
    wrapped(NodeEnum::RangeVar(RangeVar {
        schemaname: ROWS.to_owned(),
        inh: true,
        location: -1,
        ..RangeVar::default()
    }))
}

/// Lets the queries among items of FROM look at those before them.
fn look_aside(items: &mut [Node]) {
    for item in items {
        match &mut item.node {
            Some(NodeEnum::RangeSubselect(query)) => query.lateral = true,
            Some(NodeEnum::JoinExpr(join)) => {
                for side in [&mut join.larg, &mut join.rarg].into_iter().flatten() {
                    look_aside(std::slice::from_mut(&mut **side));
                }
            }
            _ => {}
        }
    }
}

fn add_rows(items: &mut Vec<Node>) {
    look_aside(items);
    items.insert(0, item_of_rows());
}

/// The action with the rows in its FROM.
fn over_rows(mut action: NodeEnum) -> Result<NodeEnum> {
    match &mut action {
        NodeEnum::InsertStmt(it) => {
            let source = it.select_stmt.get_or_insert_with(|| {
                Box::new(wrapped(NodeEnum::SelectStmt(Box::new(SelectStmt {
                    values_lists: vec![wrapped(NodeEnum::List(List::default()))],
                    op: SetOperation::SetopNone as i32,
                    ..SelectStmt::default()
                }))))
            });
            let Some(NodeEnum::SelectStmt(select)) = &mut source.node else {
                return Err(Error::internal("INSERT from no query"));
            };
            if !is_alone(select) {
                let message = "conditional UNION/INTERSECT/EXCEPT statements are not implemented";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            add_rows(&mut select.from_clause);
        }
        NodeEnum::UpdateStmt(it) => add_rows(&mut it.from_clause),
        NodeEnum::DeleteStmt(it) => add_rows(&mut it.using_clause),
        _ => return Err(Error::unsupported("this statement in a rule")),
    }
    Ok(action)
}

/// The queries of WITH.
fn ctes_of(with: Option<&WithClause>) -> impl Iterator<Item = &CommonTableExpr> {
    let items = with.into_iter().flat_map(|with| &with.ctes);
    items.filter_map(|item| match inner(item) {
        Ok(NodeEnum::CommonTableExpr(cte)) => Some(&**cte),
        _ => None,
    })
}

/// Refuses an action that cannot stand beside the WITH of the statement to which its rule is applied.
fn check_beside(action: &NodeEnum, with: Option<&WithClause>) -> Result<()> {
    let query = source_of(action).filter(|select| select.values_lists.is_empty());
    let own = match query {
        Some(select) => select.with_clause.as_ref(),
        None => parts_of(action).and_then(|parts| parts.with),
    };
    for cte in ctes_of(with) {
        let name = &cte.ctename;
        if ctes_of(own).any(|own| own.ctename == *name) {
            return Err(unsupported(format!(
                "WITH query name \"{name}\" appears in both a rule action and the query being rewritten"
            )));
        }
    }
    let writes =
        |cte: &CommonTableExpr| !matches!(boxed(&cte.ctequery), Ok(NodeEnum::SelectStmt(_)));
    if query.is_some() && ctes_of(with).any(writes) {
        return Err(unsupported(
            "INSERT...SELECT rule actions are not supported for queries having data-modifying statements in WITH",
        ));
    }
    Ok(())
}

/// The statement that stored text is.
fn statement_of(text: &str) -> Result<NodeEnum> {
    let statements = parser::parse(text)?;
    let first = statements.first();
    let first = first.ok_or_else(|| Error::internal("a statement that is none"))?;
    Ok(first.node().clone())
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

impl<'a> Binder<'a> {
    /// Where a statement stands that is begun anew among what is at work.
    fn context(&self) -> Context<'a> {
        Context {
            cx: self.cx,
            stored: self.stored,
            noted: self.noted.clone(),
            open_params: self.open_params,
            checked_as: self.checked_as,
            ctes: self.ctes.clone(),
            frame: self.frame.clone(),
            midst: Midst::default(),
        }
    }

    /// Where the statements of a rule stand.
    fn context_of(&self, table: &Table, rule: &'a Rule, text: &str) -> Context<'a> {
        Context {
            cx: BindContext {
                text: "",
                literals: None,
                variables: Some(rule),
                ..self.cx
            },
            stored: true,
            noted: self.cx.catalog.noted_in_text(text),
            open_params: false,
            checked_as: Some(table.owner),
            ctes: Vec::new(),
            frame: None,
            midst: Midst::default(),
        }
    }

    /// Goes elsewhere; where it was.
    fn enter(&mut self, context: Context<'a>) -> Context<'a> {
        let midst = context.midst;
        Context {
            cx: replace(&mut self.cx, context.cx),
            stored: replace(&mut self.stored, context.stored),
            noted: replace(&mut self.noted, context.noted),
            open_params: replace(&mut self.open_params, context.open_params),
            checked_as: replace(&mut self.checked_as, context.checked_as),
            ctes: replace(&mut self.ctes, context.ctes),
            frame: replace(&mut self.frame, context.frame),
            midst: Midst {
                positional: replace(&mut self.positional, midst.positional),
                nullable: replace(&mut self.nullable, midst.nullable),
                for_insert: replace(&mut self.for_insert, midst.for_insert),
                inside_with: replace(&mut self.inside_with, midst.inside_with),
                within_keys: replace(&mut self.within_keys, midst.within_keys),
                locked: replace(&mut self.locked, midst.locked),
                lifted: replace(&mut self.lifted, midst.lifted),
                given_back: replace(&mut self.given_back, midst.given_back),
            },
        }
    }

    /// Binds what stands elsewhere.
    pub(super) fn within<T>(
        &mut self,
        context: &Context<'a>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let own = self.enter(context.clone());
        let bound = bind(self);
        self.enter(own);
        bound
    }

    /// A statement that writes, or what rules make of it.
    pub(super) fn written_statement(
        &mut self,
        node: &NodeEnum,
        alone: Option<Alone>,
    ) -> Result<(Plan, Vec<OutputColumn>, bool)> {
        let Some(pieces) = self.rewritten(node, By::Itself)? else {
            return self.as_it_stands(node);
        };
        if let Some(alone) = alone {
            alone.check(&pieces)?;
        }
        let event = parts_of(node).map_or(Events::NONE, |parts| parts.event);
        let tagged = pieces.iter().position(|piece| piece.by == By::Itself);
        let tagged = tagged.or_else(|| {
            pieces.iter().rposition(|piece| {
                piece.command == event && matches!(piece.by, By::Instead | By::InsteadIf)
            })
        });
        // One alone has RETURNING by now.
        let giving = pieces.iter().position(|piece| !piece.columns.is_empty());
        let mut columns = Vec::new();
        let mut statements = Vec::new();
        let writes = pieces.iter().any(Piece::is_query);
        let is_one = pieces.len() == 1 && (tagged == Some(0) || alone.is_some());
        for (place, piece) in pieces.into_iter().enumerate() {
            if is_one {
                return Ok((piece.plan, piece.columns, true));
            }
            if giving == Some(place) {
                columns = piece.columns;
            }
            statements.push(Rc::new(piece.plan));
        }
        let rewritten = Rewritten {
            statements,
            tagged,
            giving,
        };
        Ok((Plan::Rewritten(Box::new(rewritten)), columns, writes))
    }

    fn as_it_stands(&mut self, node: &NodeEnum) -> Result<(Plan, Vec<OutputColumn>, bool)> {
        match node {
            NodeEnum::InsertStmt(insert) => self.insert(insert),
            NodeEnum::UpdateStmt(update) => self.update(update),
            NodeEnum::DeleteStmt(delete) => self.delete(delete),
            NodeEnum::NotifyStmt(notify) => self.notifying(notify),
            _ => Err(Error::internal("no statement that writes")),
        }
    }

    /// NOTIFY as the action of a rule: what the function does of that name.
    fn notifying(&mut self, notify: &NotifyStmt) -> Result<(Plan, Vec<OutputColumn>, bool)> {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let text = format!(
            "SELECT pg_catalog.pg_notify({}, {})",
            quoted(&notify.conditionname),
            quoted(&notify.payload)
        );
        let NodeEnum::SelectStmt(select) = statement_of(&text)? else {
            return Err(Error::internal("a query that is none"));
        };
        let query = self.select(&select, None)?;
        Ok((self.plan_of(query.body)?, Vec::new(), false))
    }

    /// The relation that a statement writes to, or a view selects from.
    pub(super) fn ruled(&mut self, range: &RangeVar) -> Result<Option<&'a Arc<Table>>> {
        let positional = self.positional;
        let found = match self.by_oid(range)? {
            Some(table) => Some(table),
            None => match super::find_relation(&self.cx, range)? {
                Some(catalog::RelationRef::Table(at)) => Some(self.cx.catalog.tables[at].clone()),
                _ => None,
            },
        };
        self.positional = positional;
        let oid = found.map(|table| table.oid);
        Ok(oid.and_then(|oid| self.cx.catalog.table_by_oid(oid)))
    }

    /// What rules make of a statement; none where there are no rules for it.
    fn rewritten(&mut self, node: &NodeEnum, by: By) -> Result<Option<Vec<Piece>>> {
        if self.names_only || self.recorded.is_some() {
            return Ok(None);
        }
        let Some(parts) = parts_of(node) else {
            return Ok(None);
        };
        match self.ruled(parts.range)? {
            Some(named) => self.rewritten_from(node, &parts, (named, by)),
            None => Ok(None),
        }
    }

    /// What rules make of a statement that come first, from a relation on: its own, or those of what it is
    /// written through to if it is a view.
    fn rewritten_from(
        &mut self,
        node: &NodeEnum,
        parts: &Parts<'_>,
        (from, by): (&'a Arc<Table>, By),
    ) -> Result<Option<Vec<Piece>>> {
        let mut passed = Vec::new();
        let mut table = from;
        let rules = loop {
            let rules = self.rules_for(node, parts, table)?;
            if !rules.is_empty() {
                break rules;
            }
            let event = (table.oid, parts.event);
            if passed.contains(&event) || self.rewriting.contains(&event) {
                return Err(endless(table));
            }
            passed.push(event);
            match self.below_written(table, parts.event)? {
                None => return Ok(None),
                Some(below) => table = below,
            }
        };
        let before = self.rewriting.len();
        self.rewriting.extend(passed);
        let pieces = self.applied(node, parts, table, (rules, by));
        self.rewriting.truncate(before);
        let pieces = pieces?;
        let queries = pieces.iter().filter(|piece| piece.is_query());
        if parts.with.is_some() && queries.count() > 1 {
            return Err(unsupported(
                "WITH cannot be used in a query that is rewritten by rules into multiple queries",
            ));
        }
        Ok(Some(pieces))
    }

    /// The rules of a relation that apply to a statement.
    fn rules_for(
        &mut self,
        node: &NodeEnum,
        parts: &Parts<'_>,
        table: &'a Arc<Table>,
    ) -> Result<Vec<&'a Rule>> {
        if table.rules.is_empty() {
            return Ok(Vec::new());
        }
        self.rests_on_role = true;
        let replica = self.replica;
        let rules = table.rules.iter();
        let rules = rules.filter(|rule| rule.event == parts.event && rule.applies(replica));
        let rules: Vec<&'a Rule> = rules.collect();
        let updates = table.rules.iter().any(|rule| rule.event == Events::UPDATE);
        if let NodeEnum::InsertStmt(insert) = node {
            if insert.on_conflict_clause.is_some() && (updates || !rules.is_empty()) {
                return Err(unsupported(
                    "INSERT with ON CONFLICT clause cannot be used with table that has INSERT or UPDATE rules",
                ));
            }
        }
        Ok(rules)
    }

    /// The relation through to which a view is written; none where triggers write in its place.
    fn below_written(
        &mut self,
        view: &'a Arc<Table>,
        event: Events,
    ) -> Result<Option<&'a Arc<Table>>> {
        match view.kind == RelationKind::View && !view.has_instead_of(event) {
            true => self.relation_below(view),
            false => Ok(None),
        }
    }

    /// What rules make of a statement, itself included if it is still carried out.
    fn applied(
        &mut self,
        node: &NodeEnum,
        parts: &Parts<'_>,
        table: &'a Arc<Table>,
        (rules, by): (Vec<&'a Rule>, By),
    ) -> Result<Vec<Piece>> {
        let back = std::mem::take(&mut self.given_back);
        let rules: Vec<(&'a Rule, By)> =
            rules.into_iter().map(|rule| (rule, By::of(rule))).collect();
        let actions = rules.iter().flat_map(|(rule, by)| {
            let statements = rule.body.statements.iter();
            statements.map(|action| (*rule, action.text.as_str(), *by))
        });
        let actions: Vec<_> = actions.collect();
        let event = (table.oid, parts.event);
        if !actions.is_empty() && self.rewriting.contains(&event) {
            return Err(endless(table));
        }
        self.rewriting.push(event);
        let made = self.actions(node, parts, table, (actions, &back));
        self.rewriting.pop();
        let (mut pieces, gives_back) = made?;
        let instead = rules.iter().any(|(_, by)| *by == By::Instead);
        let unless = rules.iter().filter(|(_, by)| *by == By::InsteadIf);
        let unless: Vec<_> = unless.map(|(rule, _)| (table, *rule)).collect();
        let refused = parts.returning.is_some() && !gives_back;
        if refused && (instead || !unless.is_empty()) {
            return Err(not_returned(table, parts.event));
        }
        if instead {
            let does = pieces.iter().any(Piece::is_query);
            self.check_replaced(node, table, does)?;
            return Ok(pieces);
        }
        let is_view = table.kind == RelationKind::View && !table.has_instead_of(parts.event);
        if is_view && !unless.is_empty() {
            let detail = "Views with conditional DO INSTEAD rules are not automatically updatable.";
            let verb = verb_of(parts.event);
            return Err(super::updatable::not_updatable(table, verb, detail));
        }
        self.unless = unless;
        self.given_back = back;
        let below = self.below_written(table, parts.event)?;
        let further = match below {
            Some(below) => self.rewritten_from(node, parts, (below, by))?,
            None => None,
        };
        let own = match further {
            Some(pieces) => pieces,
            None => {
                let (plan, columns, _) = self.as_it_stands(node)?;
                vec![Piece {
                    plan,
                    columns,
                    command: parts.event,
                    by,
                }]
            }
        };
        match parts.event {
            Events::INSERT => pieces.splice(0..0, own).for_each(drop),
            _ => pieces.extend(own),
        }
        Ok(pieces)
    }

    /// Looks at a statement that is not carried out itself: it must be one that could be, and whoever
    /// wrote it must be allowed to, unless nothing is done but NOTIFY.
    fn check_replaced(&mut self, node: &NodeEnum, table: &'a Arc<Table>, does: bool) -> Result<()> {
        let rule = table.rules.first();
        let rule = rule.ok_or_else(|| Error::internal("a relation without rules"))?;
        let frame = Frame {
            table: table.clone(),
            rule,
            statement: None,
            around: self.context(),
            wanted: vec![false; table.columns.len()],
        };
        let (required, writing) = (self.requires.len(), self.writing.len());
        self.rows_to_write(node, &frame)?;
        // What its WITH writes is written where the rules are applied.
        self.writing.truncate(writing);
        if !does {
            self.requires.truncate(required);
        }
        Ok(())
    }

    /// What actions become, and whether one of them gives what RETURNING asks for.
    #[allow(clippy::type_complexity)]
    fn actions(
        &mut self,
        node: &NodeEnum,
        parts: &Parts<'_>,
        table: &'a Arc<Table>,
        (actions, back): (Vec<(&'a Rule, &'a str, By)>, &[Rc<GivenBack<'a>>]),
    ) -> Result<(Vec<Piece>, bool)> {
        let statement = Rc::new(node.clone());
        let mut pieces = Vec::new();
        let mut gives_back = false;
        for (rule, text, by) in actions {
            let mut action = statement_of(text)?;
            check_beside(&action, parts.with)?;
            let gives = parts_of(&action).is_some_and(|action| action.returning.is_some());
            let mut given_back = Vec::new();
            match parts.returning.filter(|_| gives) {
                Some(_) if gives_back => {
                    return Err(unsupported("cannot have RETURNING lists in multiple rules"));
                }
                Some(_) if has_others(node) => {
                    let what = "RETURNING of a statement with FROM that rules rewrite";
                    return Err(Error::unsupported(what));
                }
                Some(clause) => {
                    gives_back = true;
                    given_back.push(Rc::new(self.given_back_of(
                        clause,
                        (parts.range, parts.event),
                        table,
                    )?));
                    given_back.extend(back.iter().cloned());
                }
                None => action = without_returning(action),
            }
            let condition = rule.condition.as_deref().unwrap_or_default();
            let named = rows_named(text)?.contains(&true);
            let is_once = matches!(action, NodeEnum::NotifyStmt(_));
            if !is_once && (named || !condition.is_empty() || has_rows(node)) {
                action = over_rows(action)?;
            }
            let frame = Frame {
                table: table.clone(),
                rule,
                statement: Some(statement.clone()),
                around: self.context(),
                wanted: new_columns_named(table, rule, &[text, condition])?,
            };
            let mut context = self.context_of(table, rule, text);
            context.frame = Some(Rc::new(frame));
            let made = self.within(&context, |binder| {
                binder.given_back = given_back;
                if let Some(pieces) = binder.rewritten(&action, by)? {
                    return Ok(pieces);
                }
                let (plan, columns, _) = binder.as_it_stands(&action)?;
                let command = parts_of(&action).map_or(Events::NONE, |parts| parts.event);
                Ok(vec![Piece {
                    plan,
                    columns,
                    command,
                    by,
                }])
            });
            pieces.extend(made?);
        }
        Ok((pieces, gives_back))
    }

    fn given_back_of(
        &mut self,
        clause: &ReturningClause,
        (range, event): (&RangeVar, Events),
        table: &Arc<Table>,
    ) -> Result<GivenBack<'a>> {
        // What that needs is noted where it is looked at what is to be written.
        let requires = self.requires.clone();
        let writable = self.named_to_write(Some(range), verb_of(event), table)?;
        self.requires = requires;
        let columns = writable.columns_over_base();
        let looks_around =
            |part: &Expr| matches!(&part.kind, ExprKind::Sub(query, ..) if query.correlated);
        if columns
            .iter()
            .flat_map(|all| all.iter())
            .any(|column| column.any(&looks_around))
        {
            let what = "RETURNING by a rule through a view whose columns are such subqueries";
            return Err(Error::unsupported(what));
        }
        let alias = range.alias.as_ref();
        let name = alias.map_or(writable.name(), |alias| &alias.aliasname);
        Ok(GivenBack {
            clause: clause.clone(),
            context: self.context(),
            table: table.clone(),
            name: name.to_owned(),
            columns: writable.column_names(),
            through: columns.map(|columns| (writable.named().clone(), columns.to_vec())),
        })
    }

    /// What a statement gives back of which an action stands in the place, whose own RETURNING gives
    /// this.
    pub(super) fn given_back_by(
        &mut self,
        back: &GivenBack<'a>,
        given: Vec<(Expr, OutputColumn)>,
    ) -> Result<Vec<(Expr, OutputColumn)>> {
        let mut exprs = Vec::with_capacity(back.table.columns.len());
        for (place, column) in back.table.columns.iter().enumerate() {
            exprs.push(match given.get(place) {
                Some((expr, _)) => self.settle(expr.clone())?,
                None => Expr::constant(Datum::Null, column.type_id, -1),
            });
        }
        let (named, exprs) = match &back.through {
            None => (&back.table, exprs),
            Some((named, columns)) => {
                let columns = columns.iter().cloned();
                let shown = columns.map(|column| with_columns(column, &exprs));
                (named, shown.collect())
            }
        };
        let mut columns = table_columns(named);
        for (column, name) in columns.iter_mut().zip(&back.columns) {
            column.name.clone_from(name);
        }
        let item = ScopeTable {
            table: Some(named.clone()),
            exprs: Some(Rc::new(exprs)),
            ..ScopeTable::of(back.name.clone(), columns, 0)
        };
        let scope = Scope {
            tables: vec![item],
            ..Scope::default()
        };
        self.within(&back.context, |binder| {
            binder.targets(&back.clause.exprs, &scope)
        })
    }

    /// The condition of a rule over `old` and `new`.
    pub(super) fn condition_of_rule(
        &mut self,
        table: &Table,
        rule: &'a Rule,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let Some(text) = &rule.condition else {
            return Ok(None);
        };
        let NodeEnum::SelectStmt(select) = statement_of(text)? else {
            return Err(Error::internal("a condition that is none"));
        };
        let target = select.target_list.first().map(inner).transpose()?;
        let Some(NodeEnum::ResTarget(target)) = target else {
            return Err(Error::internal("a condition that is none"));
        };
        let context = self.context_of(table, rule, text);
        self.within(&context, |binder| {
            let node = boxed(&target.val)?;
            let bound = binder.expr(node, scope, Place::plain("WHERE"))?;
            binder.condition(bound, "WHERE").map(Some)
        })
    }

    /// That the conditions of rules are not met which stand in the place of a statement.
    pub(super) fn not_met(
        &mut self,
        rules: &[(&'a Arc<Table>, &'a Rule)],
        scope: &Scope<'_>,
    ) -> Result<Vec<Expr>> {
        let mut conditions = Vec::new();
        for (table, rule) in rules {
            if let Some(condition) = self.condition_of_rule(table, rule, scope)? {
                let kind = ExprKind::IsTruth(Box::new(condition), Some(true), true);
                conditions.push(Expr::new(kind, TypeId::BOOL, -1));
            }
        }
        Ok(conditions)
    }

    /// Binds the actions of a rule over no rows.
    pub(super) fn tried(&mut self, table: &'a Arc<Table>, rule: &'a Rule) -> Result<()> {
        for action in &rule.body.statements {
            let text = action.text.as_str();
            let condition = rule.condition.as_deref().unwrap_or_default();
            let mut node = statement_of(text)?;
            let is_once = matches!(node, NodeEnum::NotifyStmt(_));
            if !is_once && (rows_named(text)?.contains(&true) || !condition.is_empty()) {
                node = over_rows(node)?;
            }
            let frame = Frame {
                table: table.clone(),
                rule,
                statement: None,
                around: self.context(),
                wanted: Vec::new(),
            };
            let mut context = self.context_of(table, rule, text);
            context.frame = Some(Rc::new(frame));
            let tried = self.within(&context, |binder| binder.as_it_stands(&node));
            match tried {
                Ok(_) => {}
                Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => {
                    return Err(error)
                }
                // It was found to be right as it stands.
                Err(_) => return Err(Error::unsupported("such a use of OLD and NEW in a rule")),
            }
        }
        Ok(())
    }
}

/// 0A000 for RETURNING where rules give nothing back.
fn not_returned(table: &Table, event: Events) -> Error {
    let event = event.name();
    let message = format!(
        "cannot perform {event} RETURNING on relation \"{}\"",
        table.name
    );
    unsupported(message).with_hint(format!(
        "You need an unconditional ON {event} DO INSTEAD rule with a RETURNING clause."
    ))
}
