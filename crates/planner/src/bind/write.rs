//! INSERT, UPDATE, DELETE.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::TableLock;
use base::{Error, Result, SqlState};
use pg_query::protobuf::{
    DeleteStmt, InsertStmt, Node, RangeVar, ReturningClause, SelectStmt, UpdateStmt,
};

use super::arbiter::excluded;
use super::assignments::{assigned_twice, last_given, part_given};
use super::current_of::only_current;
use super::expr::{Place, Sets};
use super::foreign::Touch;
use super::from::as_meant;
use super::given::{given, refused_insert, Given};
use super::project_set::projection;
use super::rule_rows::{new_columns_of, rows_of_rules};
use super::scope::Scope;
use super::updatable::{Verb, Writable};
use super::window::window_in;
use super::{boxed, inner, qualified, Binder, OutputColumn};
use crate::logical::{all_of, conjuncts, cross, Source};
use crate::plan::{compile, Program};
use crate::plan::{
    Assignments, Conflict, Delete, Expr, ExprKind, Insert, Plan, PolicyCheck, Target, Update,
};
use catalog::access::{denied, Privileges};
use catalog::policy::PolicyCommand as For;
use catalog::{view, Identity, RelationKind, Table};
use syntax::parser::{self, NodeEnum};
use types::{Datum, TypeId};

type Written = (Plan, Vec<OutputColumn>, bool);

/// What an UPDATE or DELETE works on.
pub(super) struct TargetRows {
    target: Source,
    others: Option<Source>,
    condition: Option<Expr>,
}

/// Whether a statement reads the table that it writes, so that policies for SELECT count too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads(pub(super) bool);

impl Reads {
    /// Takes in whether the first item of a scope, which is what is written to, was looked at.
    pub(super) fn note(&mut self, scope: &Scope<'_>) {
        let target = scope.tables.first();
        let looked_at = target.and_then(|target| target.needed.as_ref());
        self.0 |= looked_at.is_some_and(|flags| flags.borrow().contains(&true));
    }

    /// The commands whose policies guard the rows that are to be written.
    fn commands(self, written: For) -> &'static [For] {
        match (written, self.0) {
            (For::Delete, true) => &[For::Delete, For::Select],
            (For::Delete, false) => &[For::Delete],
            (_, true) => &[For::Update, For::Select],
            (_, false) => &[For::Update],
        }
    }
}

impl Binder<'_> {
    fn target_table(&mut self, range: Option<&RangeVar>, verb: Verb) -> Result<Writable> {
        let (table, privileges) = self.target_named(range, verb)?;
        let called = self.called_then(&table);
        let writable = self.writable_with(table, verb, privileges, None)?;
        Ok(writable.called(called))
    }

    /// What a statement names to write to it, and what that needs.
    pub(super) fn target_named(
        &mut self,
        range: Option<&RangeVar>,
        verb: Verb,
    ) -> Result<(Arc<Table>, Privileges)> {
        let range = range.ok_or_else(|| Error::internal("a statement without its table"))?;
        let variables = self.cx.variables.filter(|_| range.schemaname.is_empty());
        if variables.is_some_and(|known| known.rows_named(&range.relname).is_some()) {
            let name = &range.relname;
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("relation \"{name}\" cannot be the target of a modifying statement"),
            ));
        }
        let table = self.table_written(range)?;
        let privileges = match verb {
            Verb::Insert => Privileges::INSERT,
            Verb::Update => Privileges::UPDATE,
            Verb::Delete => Privileges::DELETE,
        };
        self.require_of(&table, privileges, 0);
        if table.kind == RelationKind::System {
            // Nobody else holds such a privilege, whatever was granted.
            if !self.cx.catalog.is_superuser(self.cx.role) {
                return Err(denied("table", &table.name));
            }
            return Err(Error::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!(
                    "permission denied: \"{}\" is a system catalog",
                    qualified(range)
                ),
            )
            .with_hint("It is changed by DDL."));
        }
        let written = [
            RelationKind::Table,
            RelationKind::View,
            RelationKind::Partitioned,
        ];
        if !written.contains(&table.kind) {
            return Err(Error::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot change {} \"{}\"", table.kind.noun(), table.name),
            ));
        }
        Ok((table, privileges))
    }

    /// The table that a statement names to write to it.
    pub(super) fn table_written(&mut self, range: &RangeVar) -> Result<Arc<Table>> {
        let table = as_meant(range, self.table(range, TableLock::RowExclusive)?)?;
        self.positional = false;
        if let Some(recorded) = &mut self.recorded {
            recorded.target(range, &table);
        }
        Ok(table)
    }

    /// What a table is called by the statement at work, if the catalog keeps that.
    pub(super) fn called_then(&self, table: &Table) -> Option<catalog::sql_body::Known> {
        let body = self.cx.variables.and_then(|known| known.sql_body())?;
        body.named(table.oid).cloned()
    }

    pub(super) fn insert(&mut self, insert: &InsertStmt) -> Result<Written> {
        let unless = std::mem::take(&mut self.unless);
        let before = self.with_clause(
            insert.with_clause.as_ref(),
            || written(&[returned(&insert.returning_clause)], &insert.select_stmt),
            None,
        )?;
        let mut reads = Reads::default();
        let mut writable = self.target_table(insert.relation.as_ref(), Verb::Insert)?;
        // Nothing comes to those that inherit from it.
        writable.base = writable.base.alone();
        let table = writable.base.clone();
        let mut input = self.inserted_rows(insert, &writable)?;
        if !unless.is_empty() {
            let wanted = new_columns_of(&unless)?;
            input = self.with_generated(input, (&table, &wanted), 0)?;
            let scope = rows_of_rules(&writable, None, Some((0, None)));
            let conditions = self.not_met(&unless, &scope)?;
            input = self.those_of(input, table.columns.len(), conditions)?;
        }
        let alias = insert
            .relation
            .as_ref()
            .and_then(|range| range.alias.as_ref());
        let name = writable.name().to_owned();
        let name = alias.map_or(name, |alias| alias.aliasname.clone());
        let conflict = match &insert.on_conflict_clause {
            None => None,
            Some(clause) => Some(self.on_conflict(clause, &writable, &name, &mut reads)?),
        };
        let mut scope = writable.scope(&name);
        if table.kind == RelationKind::Partitioned {
            // As in an UPDATE, a key stands before it.
            scope.tables[0].oid = Some(table.columns.len() + 1);
        }
        if conflict.iter().any(|conflict| conflict.set.is_some()) {
            scope.covered.push(excluded(&writable));
        }
        let (returning, columns) = self.returning(insert.returning_clause.as_ref(), &scope)?;
        self.note_reads(&writable);
        self.forget_ctes(before);
        reads.note(&scope);
        let mut conflict = conflict;
        let policy_checks = self.as_used(&writable, |binder| {
            if let Some(conflict) = conflict.as_mut().filter(|conflict| conflict.set.is_some()) {
                conflict.old_checks = binder.conflict_checks(&table, reads.0)?;
                conflict.new_checks = binder.update_checks(&table, reads.0)?;
            }
            binder.insert_checks(&table, reads.0)
        })?;
        let set = conflict.as_ref().and_then(|conflict| conflict.set.as_ref());
        let touch = Touch {
            inserts: true,
            changes: set.map_or_else(Vec::new, Assignments::targets),
            deletes: false,
        };
        let insert = Insert {
            target: Target {
                view_checks: writable.checks(),
                ..self.target_with(table, policy_checks, returning, touch, conflict.as_ref())?
            },
            input: Rc::new(input),
            conflict,
        };
        Ok((Plan::Insert(Box::new(insert)), columns, true))
    }

    pub(super) fn target(
        &mut self,
        table: Arc<Table>,
        policy_checks: Vec<PolicyCheck>,
        returning: Option<Vec<Program>>,
        touch: Touch,
    ) -> Result<Target> {
        self.target_with(table, policy_checks, returning, touch, None)
    }

    /// The same for an INSERT with ON CONFLICT.
    fn target_with(
        &mut self,
        table: Arc<Table>,
        policy_checks: Vec<PolicyCheck>,
        returning: Option<Vec<Program>>,
        touch: Touch,
        conflict: Option<&Conflict>,
    ) -> Result<Target> {
        let triggers = self.triggers(&table, &touch)?;
        let routes = self.routes(&table, &touch, conflict)?;
        Ok(Target {
            routes,
            partition_check: self.partition_check(&table)?,
            policy_checks,
            triggers,
            checks: self.checks(&table)?,
            entries: self.entries(&table)?.into(),
            rules: self.rules(&table, touch)?,
            generated: self.generated(&table)?,
            view_checks: Vec::new(),
            through: None,
            table,
            returning,
        })
    }

    /// Binds what policies ask of the table behind what a statement writes to, as the role that it
    /// is used as.
    pub(super) fn as_used<T>(
        &mut self,
        writable: &Writable,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let role = writable.checked_as(self.checked_as);
        let checked_as = std::mem::replace(&mut self.checked_as, role);
        let bound = bind(self);
        self.checked_as = checked_as;
        bound
    }

    /// The generated columns of a table.
    pub fn generated(&mut self, table: &Arc<Table>) -> Result<Vec<(usize, Program)>> {
        let mut generated = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            if column.generated {
                generated.push((place, compile(&self.generated_value(table, place)?)));
            }
        }
        Ok(generated)
    }

    /// The value of a generated column over a row of its table.
    pub(super) fn generated_value(&mut self, table: &Arc<Table>, place: usize) -> Result<Expr> {
        let own = &table.columns[place];
        let text = own.default.as_deref().unwrap_or_default();
        let value = self.stored(text, &target_scope(table, &table.name), Place::GENERATED)?;
        let (ty, typmod) = own.declared();
        self.assign(value, ty, typmod, &own.name)
    }

    /// The CHECK constraints of a table, by name as they are carried out.
    pub fn checks(&mut self, table: &Arc<Table>) -> Result<Vec<(String, Program)>> {
        let scope = target_scope(table, &table.name);
        let mut checks = Vec::new();
        for check in &table.checks {
            let condition = self.stored(&check.condition, &scope, Place::CHECK)?;
            let condition = self.condition(condition, "CHECK")?;
            checks.push((check.name.clone(), compile(&condition)));
        }
        checks.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(checks)
    }

    /// An expression that the catalog keeps as text.
    pub(super) fn stored(&mut self, text: &str, scope: &Scope<'_>, place: Place) -> Result<Expr> {
        let statements = parser::parse(&format!("SELECT {text}"))?;
        let target = match statements.first().map(|statement| statement.node()) {
            Some(NodeEnum::SelectStmt(select)) => select.target_list.first(),
            _ => None,
        };
        let Some(Some(NodeEnum::ResTarget(target))) = target.map(|node| node.node.as_ref()) else {
            return Err(Error::internal("a stored expression that is none"));
        };
        let (variables, literals) = (self.cx.variables.take(), self.cx.literals.take());
        let stored = std::mem::replace(&mut self.stored, true);
        let noted = self.cx.catalog.noted_in_text(text);
        let noted = std::mem::replace(&mut self.noted, noted);
        let of_table = std::mem::replace(&mut self.of_table, true);
        let recorded = self.recorded.take();
        let bound = self.expr(boxed(&target.val)?, scope, place);
        self.cx.variables = variables;
        self.cx.literals = literals;
        self.stored = stored;
        self.noted = noted;
        self.of_table = of_table;
        self.recorded = recorded;
        bound
    }

    /// The default of a column, to be shown.
    pub fn stored_default(&mut self, table: &Arc<Table>, place: usize, text: &str) -> Result<Expr> {
        let column = &table.columns[place];
        let expr = match column.generated {
            true => self.stored(text, &target_scope(table, &table.name), Place::GENERATED)?,
            false => self.stored(text, &Scope::default(), Place::DEFAULT)?,
        };
        match expr.is_untyped() {
            true => self.assign(expr, column.type_id, -1, &column.name),
            false => Ok(expr),
        }
    }

    /// A condition over the columns of a table, to be shown.
    pub fn stored_condition(&mut self, table: &Arc<Table>, text: &str) -> Result<Expr> {
        let scope = target_scope(table, &table.name);
        self.stored(text, &scope, Place::CHECK)
    }

    /// Notes the columns that values are given for.
    fn require_inserted(&mut self, insert: &InsertStmt, writable: &Writable) -> Result<()> {
        if !insert.cols.is_empty() {
            for node in &insert.cols {
                if let NodeEnum::ResTarget(target) = inner(node)? {
                    self.require_named(writable, &target.name, Privileges::INSERT);
                }
            }
            return Ok(());
        }
        let Some(source) = &insert.select_stmt else {
            return Ok(());
        };
        let given = match inner(source)? {
            NodeEnum::SelectStmt(select) if !select.values_lists.is_empty() => {
                self.values_count(select)?
            }
            // How many columns a query has is known later; it rarely has fewer than the table.
            _ => usize::MAX,
        };
        let mut names = writable.column_names();
        names.retain(|name| !name.is_empty());
        for name in names.into_iter().take(given) {
            self.require_named(writable, &name, Privileges::INSERT);
        }
        Ok(())
    }

    /// Notes that a privilege is needed on a column of that name.
    pub(super) fn require_named(
        &mut self,
        writable: &Writable,
        name: &str,
        privileges: Privileges,
    ) {
        let table = writable.named().clone();
        let mut names = writable.column_names().into_iter();
        let Some(place) = names.position(|known| known == name && !known.is_empty()) else {
            return;
        };
        let recorded = self.recorded.as_mut();
        if let Some(target) = recorded.and_then(|recorded| recorded.target_of(table.oid)) {
            target.given.push(place);
        }
        self.require_of(&table, privileges, place as u32 + 1);
        // Through a view its owner writes.
        for (below, place, role) in writable.columns_below(place, self.checked_as) {
            let checked_as = std::mem::replace(&mut self.checked_as, role);
            self.require_of(&below, privileges, place as u32 + 1);
            self.checked_as = checked_as;
        }
    }

    /// The places of the columns that values are given for.
    pub(super) fn insert_columns(
        &mut self,
        insert: &InsertStmt,
        table: &Writable,
    ) -> Result<Vec<usize>> {
        if insert.cols.is_empty() {
            // What follows a column that cannot be written can only be given by name.
            let shown = table.places().into_iter();
            return Ok(shown.map_while(|(_, place)| place).collect());
        }
        let mut places = Vec::new();
        for node in &insert.cols {
            let NodeEnum::ResTarget(target) = inner(node)? else {
                continue;
            };
            let place = self.target_column(table, &target.name, target.location, Verb::Insert)?;
            // Several parts of one column may be given.
            let known = places.iter().position(|known| *known == place);
            let is_part = |at: usize| {
                matches!(insert.cols[at].node.as_ref(),
                Some(NodeEnum::ResTarget(other)) if !other.indirection.is_empty())
            };
            if let Some(at) = known.filter(|at| target.indirection.is_empty() || !is_part(*at)) {
                if !is_called(&insert.cols[at], &target.name) {
                    return Err(assigned_twice(&table.base, place));
                }
                return Err(self.error(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" specified more than once", target.name),
                    target.location,
                ));
            }
            places.push(place);
        }
        Ok(places)
    }

    pub(super) fn target_column(
        &self,
        table: &Writable,
        name: &str,
        location: i32,
        verb: Verb,
    ) -> Result<usize> {
        let found = table.places().into_iter().find(|known| known.0 == name);
        match found {
            Some((_, Some(place))) => Ok(place),
            Some((_, None)) => Err(table.not_writable(name, verb)),
            None => Err(self.error(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    table.named().name
                ),
                location,
            )),
        }
    }

    /// The default of a column; NULL without one.
    pub(super) fn default(&mut self, table: &Table, place: usize) -> Result<Expr> {
        let column = &table.columns[place];
        let identity = column.default_uses.first();
        let identity = identity.filter(|_| column.identity != Identity::None);
        let identity = identity.map(|sequence| view::next_value(*sequence));
        let expr = match column.default.as_ref().or(identity.as_ref()) {
            _ if column.generated => Expr::constant(Datum::Null, TypeId::UNKNOWN, -1),
            None => match self.cx.catalog.domain_default(column.domain) {
                None => Expr::constant(Datum::Null, TypeId::UNKNOWN, -1),
                Some(text) => self.stored(text, &Scope::default(), Place::DEFAULT)?,
            },
            Some(text) => self.stored(text, &Scope::default(), Place::DEFAULT)?,
        };
        let expr = match column.identity {
            Identity::None => expr,
            _ => of_identity(expr),
        };
        let (ty, typmod) = column.declared();
        self.assign(expr, ty, typmod, &column.name)
    }

    /// A plan of the rows that an INSERT gives, as wide as the table's.
    pub(super) fn inserted_rows(
        &mut self,
        insert: &InsertStmt,
        writable: &Writable,
    ) -> Result<Plan> {
        let places = self.insert_columns(insert, writable)?;
        self.require_inserted(insert, writable)?;
        let given = given(insert, &writable.base, &places);
        self.insert_input(insert, writable, &places, &given)
    }

    /// Refuses values that are given, by their places, for a column of a view that is none of its table.
    fn check_given(
        &self,
        given: usize,
        insert: &InsertStmt,
        (writable, places): (&Writable, &[usize]),
    ) -> Result<()> {
        let shown = writable.places();
        match shown.get(places.len()) {
            Some((name, None)) if given > places.len() && given <= shown.len() => {
                match insert.cols.is_empty() {
                    true => Err(writable.not_writable(name, Verb::Insert)),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// How many values each row of VALUES has.
    fn values_count(&mut self, select: &SelectStmt) -> Result<usize> {
        Ok(match select.values_lists.first().map(inner).transpose()? {
            Some(NodeEnum::List(list)) => {
                let spread = self.spread(&list.items, &Scope::default());
                spread.as_ref().unwrap_or(&list.items).len()
            }
            _ => usize::MAX,
        })
    }

    fn insert_input(
        &mut self,
        insert: &InsertStmt,
        writable: &Writable,
        places: &[usize],
        allowed: &[Given],
    ) -> Result<Plan> {
        let table = &writable.base;
        let Some(source) = &insert.select_stmt else {
            let row = self.complete(table, &[], Vec::new())?;
            return Ok(Plan::Values(vec![row.iter().map(compile).collect()]));
        };
        let NodeEnum::SelectStmt(select) = inner(source)? else {
            return Err(Error::internal("INSERT from no query"));
        };
        let plain_values = !select.values_lists.is_empty()
            && select.sort_clause.is_empty()
            && select.limit_count.is_none()
            && select.limit_offset.is_none()
            && select.with_clause.is_none();
        if !select.values_lists.is_empty() && !select.from_clause.is_empty() {
            return match plain_values {
                true => self.values_beside_rows(insert, select, (table, places, allowed)),
                false => Err(Error::unsupported("such VALUES in a rule")),
            };
        }
        if plain_values {
            let count = self.values_count(select)?;
            self.check_given(count, insert, (writable, places))?;
            let lists = &select.values_lists;
            let scope = Scope::default();
            return self.insert_values(lists, table, places, allowed, &insert.cols, &scope);
        }
        self.for_insert = true;
        let query = self.select(select, None)?;
        self.check_given(query.columns.len(), insert, (writable, places))?;
        let extra = query.locations.get(places.len()).copied().unwrap_or(-1);
        self.check_count(query.columns.len(), (&**table, places), extra, &insert.cols)?;
        let mut given = Vec::new();
        for (at, (column, place)) in query.columns.iter().zip(places).enumerate() {
            match allowed[at] {
                Given::Taken => {}
                Given::Refused => return Err(refused_insert(&table.columns[*place])),
                Given::Ignored => {
                    given.push(self.default(table, *place)?);
                    continue;
                }
            }
            let location = query.locations[at];
            let mut expr = match &query.literals[at] {
                Some(literal) => literal.clone(),
                None => Expr::new(ExprKind::Column(at), column.ty, location),
            };
            expr.typmod = column.typmod;
            let target = &table.columns[*place];
            expr.domain = column.domain;
            let (ty, typmod) = target.declared();
            let before = last_given(&given, places, *place);
            given.push(match part_given(&insert.cols, at) {
                Some(part) => self.inserted_part(table, *place, part, expr, before)?,
                None => self.assign(expr, ty, typmod, &target.name)?,
            });
        }
        let row = self.complete(table, &places[..given.len()], given)?;
        Ok(projection(self.plan_of(query.body)?, &row))
    }

    /// The rows of VALUES, whose expressions see what is in scope.
    pub(super) fn insert_values(
        &mut self,
        lists: &[Node],
        table: &Table,
        places: &[usize],
        allowed: &[Given],
        named: &[Node],
        scope: &Scope<'_>,
    ) -> Result<Plan> {
        // The values of one row alone are a target list; MERGE writes one row for each of its own.
        let place_of_value = match lists.len() == 1 && scope.tables.is_empty() {
            true => Place {
                sets: Sets::Anywhere,
                ..Place::plain("VALUES")
            },
            false => Place::plain("VALUES"),
        };
        let mut rows = Vec::with_capacity(lists.len());
        let mut width = None;
        for node in lists {
            let NodeEnum::List(list) = inner(node)? else {
                continue;
            };
            let spread = self.spread(&list.items, scope);
            let items = spread.as_ref().unwrap_or(&list.items);
            let count = items.len();
            if *width.get_or_insert(count) != count {
                let first = items.first();
                let first = first.map(|item| self.node(item, scope, place_of_value));
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                    first.transpose()?.map_or(-1, |first| first.location.0),
                ));
            }
            let mut given = Vec::with_capacity(count);
            for (at, (item, place)) in items.iter().zip(places).enumerate() {
                let item = inner(item)?;
                let allowed = &allowed[at];
                let part = part_given(named, at);
                let column = &table.columns[*place];
                let (ty, typmod) = column.declared();
                let value = match item {
                    NodeEnum::SetToDefault(_) => match part {
                        Some(part) => return Err(self.no_default_of_part(part)),
                        None => self.default(table, *place)?,
                    },
                    _ if *allowed == Given::Refused => return Err(refused_insert(column)),
                    _ if *allowed == Given::Ignored => self.default(table, *place)?,
                    item => {
                        let value = self.expr(item, scope, place_of_value)?;
                        let before = last_given(&given, places, *place);
                        match part {
                            Some(part) => self.inserted_part(table, *place, part, value, before)?,
                            None => self.assign(value, ty, typmod, &column.name)?,
                        }
                    }
                };
                given.push(value);
            }
            if count > places.len() {
                let extra = self.node(&items[places.len()], scope, place_of_value)?;
                self.check_count(count, (table, places), extra.location.0, named)?;
            }
            self.check_count(count, (table, places), -1, named)?;
            let row = self.complete(table, &places[..given.len()], given)?;
            if row.iter().any(Expr::has_sets) {
                return Ok(projection(Plan::Values(vec![Vec::new()]), &row));
            }
            rows.push(row.iter().map(compile).collect());
        }
        Ok(Plan::Values(rows))
    }

    /// Whether there are as many values as columns; without a list of columns fewer will do, none of
    /// which may be for the same column of the table.
    fn check_count(
        &self,
        given: usize,
        (table, targets): (&Table, &[usize]),
        at: i32,
        named: &[Node],
    ) -> Result<()> {
        if given > targets.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "INSERT has more expressions than target columns",
                at,
            ));
        }
        let taken = &targets[..given];
        if named.is_empty() && !taken.is_sorted_by(|one, next| one < next) {
            let mut places = taken.iter().enumerate();
            if let Some((_, place)) = places.find(|(at, place)| taken[..*at].contains(place)) {
                return Err(assigned_twice(table, *place));
            }
        }
        match named.get(given).map(|node| &node.node) {
            Some(Some(NodeEnum::ResTarget(missing))) => Err(self.error(
                SqlState::SYNTAX_ERROR,
                "INSERT has more target columns than expressions",
                missing.location,
            )),
            _ => Ok(()),
        }
    }

    /// A whole row: the values given, and defaults for the rest.
    pub(super) fn complete(
        &mut self,
        table: &Table,
        places: &[usize],
        given: Vec<Expr>,
    ) -> Result<Vec<Expr>> {
        let mut given: Vec<_> = given.into_iter().map(Some).collect();
        let mut row = Vec::with_capacity(table.columns.len());
        for place in 0..table.columns.len() {
            let value = places
                .iter()
                .rposition(|known| *known == place)
                .and_then(|at| given[at].take());
            row.push(match value {
                Some(value) => value,
                None if table.columns[place].dropped => {
                    Expr::constant(Datum::Null, table.columns[place].type_id, -1)
                }
                None => self.default(table, place)?,
            });
        }
        Ok(row)
    }

    pub(super) fn update(&mut self, update: &UpdateStmt) -> Result<Written> {
        let unless = std::mem::take(&mut self.unless);
        let before = self.with_clause(
            update.with_clause.as_ref(),
            || {
                written(
                    &[
                        &update.from_clause,
                        &update.target_list,
                        returned(&update.returning_clause),
                    ],
                    &update.where_clause,
                )
            },
            None,
        )?;
        let writable = self.target_table(update.relation.as_ref(), Verb::Update)?;
        let table = writable.base.clone();
        let alias = update
            .relation
            .as_ref()
            .and_then(|range| range.alias.as_ref());
        let (mut rows, scope, width) =
            self.target_rows(&writable, alias, &update.from_clause, &update.where_clause)?;
        let set = self.bound_assignments(&update.target_list, &writable, &scope, width)?;
        if !unless.is_empty() {
            let new = self.new_row(&set, (&table, &new_columns_of(&unless)?), width)?;
            let of_rules = rows_of_rules(&writable, Some(0), Some((0, Some(new))));
            rows.add(self.not_met(&unless, &of_rules)?);
        }
        let set = set.compiled(width);
        let (returning, columns) = self.returning(update.returning_clause.as_ref(), &scope)?;
        self.note_reads(&writable);
        self.forget_ctes(before);
        let sets_keys = sets_keys(&table, &set);
        let mut reads = Reads::default();
        reads.note(&scope);
        let (input, condition) = self.guarded_rows(rows, &writable, reads.commands(For::Update))?;
        let policy_checks =
            self.as_used(&writable, |binder| binder.update_checks(&table, reads.0))?;
        let touch = Touch {
            changes: set.targets(),
            ..Touch::default()
        };
        let update = Update {
            target: Target {
                view_checks: writable.checks(),
                ..self.target(table, policy_checks, returning, touch)?
            },
            input: Rc::new(input),
            set,
            recheck: condition.as_ref().map(compile),
            sets_keys,
        };
        Ok((Plan::Update(Box::new(update)), columns, true))
    }

    pub(super) fn delete(&mut self, delete: &DeleteStmt) -> Result<Written> {
        let unless = std::mem::take(&mut self.unless);
        let before = self.with_clause(
            delete.with_clause.as_ref(),
            || {
                written(
                    &[&delete.using_clause, returned(&delete.returning_clause)],
                    &delete.where_clause,
                )
            },
            None,
        )?;
        let writable = self.target_table(delete.relation.as_ref(), Verb::Delete)?;
        let table = writable.base.clone();
        let alias = delete
            .relation
            .as_ref()
            .and_then(|range| range.alias.as_ref());
        let (mut rows, scope, _) =
            self.target_rows(&writable, alias, &delete.using_clause, &delete.where_clause)?;
        if !unless.is_empty() {
            let of_rules = rows_of_rules(&writable, Some(0), None);
            rows.add(self.not_met(&unless, &of_rules)?);
        }
        let (returning, columns) = self.returning(delete.returning_clause.as_ref(), &scope)?;
        self.note_reads(&writable);
        self.forget_ctes(before);
        let mut reads = Reads::default();
        reads.note(&scope);
        let (input, condition) = self.guarded_rows(rows, &writable, reads.commands(For::Delete))?;
        let touch = Touch {
            deletes: true,
            ..Touch::default()
        };
        let delete = Delete {
            target: self.target(table, Vec::new(), returning, touch)?,
            input: Rc::new(input),
            recheck: condition.as_ref().map(compile),
        };
        Ok((Plan::Delete(Box::new(delete)), columns, true))
    }

    /// The rows that an UPDATE or DELETE works on, and how wide they are: the target's columns and key
    /// come first. What guards them is known once all of the statement is ([`Binder::guarded_rows`]).
    pub(super) fn target_rows(
        &mut self,
        writable: &Writable,
        alias: Option<&pg_query::protobuf::Alias>,
        from: &[Node],
        condition: &Option<Box<Node>>,
    ) -> Result<(TargetRows, Scope<'static>, usize)> {
        let mut scope = Scope::default();
        let mut next = 0;
        let base = writable.base.clone();
        let mut target = match base.kind {
            // Of a view with INSTEAD OF triggers, which has no keys.
            RelationKind::View => self.view(&base, None, &mut scope, false, &mut next)?,
            _ => {
                // As EXPLAIN calls it; columns are called below. A view's base table has its own name.
                let called = alias.filter(|_| writable.named().oid == base.oid);
                let called = called.map(|alias| pg_query::protobuf::Alias {
                    aliasname: alias.aliasname.clone(),
                    colnames: Vec::new(),
                });
                self.scan(base, called.as_ref(), &mut scope, true, &mut next)?
            }
        };
        let mut item = writable.item(writable.name(), 0);
        item.alias = self.alias(alias, writable.name(), &mut item.columns)?;
        item.oid = scope.tables.first().and_then(|scanned| scanned.oid);
        scope.tables = vec![item];
        scope.has_target = true;
        let others = self.bind_from(from, &mut scope, false, &mut next)?;
        let condition = match self.cursor_of(condition)? {
            Some(cursor) => {
                only_current(&mut target, writable, cursor)?;
                None
            }
            None => self.where_clause(condition, &scope)?,
        };
        let rows = TargetRows {
            target,
            others,
            condition,
        };
        Ok((rows, scope, next))
    }

    /// Those of the rows that may be seen and changed by a statement which does what these policies
    /// are for; also what a row must meet that has changed meanwhile.
    pub(super) fn guarded_rows(
        &mut self,
        rows: TargetRows,
        writable: &Writable,
        commands: &[For],
    ) -> Result<(Plan, Option<Expr>)> {
        let mut target = self.as_used(writable, |binder| binder.guarded(rows.target, commands))?;
        let guards = writable.guards();
        if writable.base.kind == RelationKind::View && !guards.is_empty() {
            // The rows of a view are those of a query, outside of which they are tested.
            let (start, width) = (target.start, target.width);
            target = Source::of_plan(self.planner().plan(target, guards)?, start, width);
        } else {
            target.filter(guards, Vec::new());
        }
        let guards = target.conditions_of(0);
        let source = match rows.others {
            Some(others) => cross(target, others)?,
            None => target,
        };
        let mut conditions = writable.conditions();
        conditions.extend(conjuncts(rows.condition));
        let plan = self.planner().plan(source, conditions.clone())?;
        Ok((plan, all_of(guards.into_iter().chain(conditions).collect())))
    }

    fn returning(
        &mut self,
        clause: Option<&ReturningClause>,
        scope: &Scope<'_>,
    ) -> Result<(Option<Vec<Program>>, Vec<OutputColumn>)> {
        let back = std::mem::take(&mut self.given_back);
        let Some(clause) = clause else {
            return Ok((None, Vec::new()));
        };
        let mut programs = Vec::new();
        let mut columns = Vec::new();
        let mut given = self.targets(&clause.exprs, scope)?;
        for back in back {
            given = self.given_back_by(&back, given)?;
        }
        for (expr, mut column) in given {
            let expr = self.settle(expr)?;
            if let Some(window) = window_in(&expr) {
                return Err(self.error(
                    SqlState::WINDOWING_ERROR,
                    "window functions are not allowed in RETURNING",
                    window.location.0,
                ));
            }
            let is_grouping = |part: &Expr| matches!(part.kind, ExprKind::Grouping(_));
            let mut set = None;
            expr.visit(&mut |part| set = set.or(part.is_set().then_some(part.location.0)));
            if let Some(location) = set {
                let message = "set-returning functions are not allowed in RETURNING";
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
            }
            let refused = expr.any(&|part| matches!(part.kind, ExprKind::Aggregate(_)));
            if refused || expr.any(&is_grouping) {
                let what = if refused {
                    "aggregate functions"
                } else {
                    "grouping operations"
                };
                return Err(self.error(
                    SqlState::GROUPING_ERROR,
                    format!("{what} are not allowed in RETURNING"),
                    expr.location.0,
                ));
            }
            column.ty = expr.ty;
            programs.push(compile(&expr));
            columns.push(column);
        }
        Ok((Some(programs), columns))
    }
}

impl TargetRows {
    /// Adds conditions.
    fn add(&mut self, conditions: Vec<Expr>) {
        let all = conjuncts(self.condition.take()).into_iter();
        self.condition = all_of(all.chain(conditions).collect());
    }
}

/// The scope in which a table's own columns are named.
pub(super) fn target_scope(table: &Arc<Table>, name: &str) -> Scope<'static> {
    Writable::table(table.clone()).scope(name)
}

/// Whether SET names columns of a key, or such as one is computed from.
pub(super) fn sets_keys(table: &Table, set: &Assignments) -> bool {
    let is_set = |column: usize| set.columns.iter().any(|(place, _)| *place == column);
    table.key_columns().any(|column| {
        let mut from = table.columns[column].generated_from.iter();
        is_set(column) || from.any(|column| is_set(*column))
    })
}

/// `nextval` of the sequence behind an identity column: who inserts needs no privilege on that,
/// which the call says by an argument that no call in a statement can have.
fn of_identity(mut next: Expr) -> Expr {
    if let ExprKind::Call(_, args, _) = &mut next.kind {
        args.push(Expr::constant(Datum::Bool(true), TypeId::BOOL, -1));
    }
    next
}

/// The parts of a statement that writes in which queries of WITH may be named.
pub(super) fn written<'n>(lists: &[&'n [Node]], single: &'n Option<Box<Node>>) -> Vec<&'n Node> {
    let lists = lists.iter().flat_map(|list| list.iter());
    lists.chain(single.iter().map(|node| &**node)).collect()
}

pub(super) fn returned(clause: &Option<ReturningClause>) -> &[Node] {
    clause.as_ref().map_or(&[], |clause| &clause.exprs)
}

/// Whether an item of a list of columns has that name.
pub(super) fn is_called(item: &Node, name: &str) -> bool {
    matches!(&item.node, Some(NodeEnum::ResTarget(target)) if target.name == name)
}
