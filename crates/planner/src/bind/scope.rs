//! Which column a name means.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::{Error, Result, SqlState};

use super::expr::Place;
use super::window::NamedWindow;
use super::{Binder, OutputColumn};
use crate::logical::{columns_of, NOWHERE};
use crate::plan::{Collated, Expr, ExprKind, Location, Needed};
use catalog::access::{system_column, SYSTEM_COLUMNS};
use catalog::layout::FIRST_USER_OID;
use catalog::{RelationKind, Table};
use types::{Datum, TypeId, NO_TYPMOD};

/// A column that can be named.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// The domain, or the array over one, that its values are of; none if 0.
    pub domain: TypeId,
    /// Its collation.
    pub collation: Collated,
    /// Its table's oid and its number there, or zeros.
    pub origin: (u32, i16),
    /// Whether a merged column of JOIN USING hides it from unqualified names and `*`.
    pub hidden: bool,
    /// Whether `*` passes it over.
    pub unlisted: bool,
}

/// An item of FROM.
#[derive(Clone, Debug)]
pub struct ScopeTable {
    /// The name by which its columns are qualified.
    pub alias: String,
    /// The table, if it is one.
    pub table: Option<Arc<Table>>,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
    /// Where they begin in the row.
    pub start: usize,
    /// Which of them are looked at; of [`ScopeTable::base`]'s columns, if there is one.
    pub needed: Option<Needed>,
    /// What its columns stand for, if they are not those of the row.
    pub exprs: Option<Rc<Vec<Expr>>>,
    /// The table whose row stands in its place.
    pub base: Option<Arc<Table>>,
    /// Whether only qualified names find it.
    pub qualified_only: bool,
    /// Whether its name alone is its only column, whatever that is called.
    pub is_scalar: bool,
    /// Whether it stands in a join, which has no system columns of its own.
    pub joined: bool,
    /// Whether an outer join may have NULLs in the place of its row.
    pub nullable: bool,
    /// Where the oid of the table stands that has the row, if it is a partitioned one.
    pub oid: Option<usize>,
    /// What it is to a locking clause.
    pub kind: ItemKind,
    /// The items that stand in its place, if it is a query that has become a part of the one around it.
    pub parts: Vec<ScopeTable>,
}

/// A column of JOIN USING.
#[derive(Clone, Debug)]
pub struct MergedColumn {
    /// Its name.
    pub name: String,
    /// What it is.
    pub expr: Expr,
    /// The item before whose columns `*` gives it, by its place among those of the query.
    pub before: usize,
}

impl MergedColumn {
    /// The same where the first so many items are not there.
    pub(super) fn after(self, first: usize) -> MergedColumn {
        MergedColumn {
            before: self.before - first,
            ..self
        }
    }
}

/// What an item of FROM is to a locking clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A relation, or a query that reads some.
    Lockable,
    /// A query that reads nothing, or rows that a rule is about.
    Constant,
    /// A query of WITH.
    With,
    /// A function.
    Function,
    /// A join with an alias, or the columns of USING with one.
    Join,
}

/// The columns of one query level.
#[derive(Debug)]
pub struct Scope<'s> {
    /// The enclosing query's.
    pub parent: Option<&'s Scope<'s>>,
    /// The items of FROM.
    pub tables: Vec<ScopeTable>,
    /// Merged columns of JOIN USING, in the order in which `*` gives them.
    pub merged: Vec<MergedColumn>,
    /// The items of its joins that have an alias, which cannot be named, and the row of ON CONFLICT where it
    /// cannot be.
    pub covered: Vec<ScopeTable>,
    /// An item of the statement that cannot be named here.
    pub barred: Option<String>,
    /// Its first item is what UPDATE or DELETE changes, which is barred to LATERAL items beside it.
    pub has_target: bool,
    /// The windows of the WINDOW clause.
    pub windows: Vec<NamedWindow>,
    /// Whether a name was found in an enclosing query.
    pub escapes: Cell<bool>,
    /// The columns of this query's rows that inner queries look at, in the order they were met,
    /// each with its place there; behind the columns stand aggregates of this query.
    pub seen_from_inside: RefCell<Vec<(usize, Expr)>>,
    /// The first place behind the columns of its rows that nothing has.
    pub beyond: Cell<usize>,
    /// Where the inner query stands that is being bound.
    pub inner_stands: Cell<Place>,
}

impl Default for Scope<'_> {
    fn default() -> Self {
        Scope {
            parent: None,
            tables: Vec::new(),
            merged: Vec::new(),
            covered: Vec::new(),
            barred: None,
            has_target: false,
            windows: Vec::new(),
            escapes: Cell::default(),
            seen_from_inside: RefCell::default(),
            beyond: Cell::default(),
            inner_stands: Cell::new(Place::FROM),
        }
    }
}

/// Where a name was found.
struct Found {
    expr: Expr,
    origin: (u32, i16),
}

impl ScopeTable {
    /// An item with these columns, which begin at that place of the row, and nothing else to be said.
    pub fn of(alias: String, columns: Vec<ScopeColumn>, start: usize) -> ScopeTable {
        ScopeTable {
            alias,
            table: None,
            columns,
            start,
            needed: None,
            exprs: None,
            base: None,
            qualified_only: false,
            is_scalar: false,
            joined: false,
            nullable: false,
            oid: None,
            kind: ItemKind::Lockable,
            parts: Vec::new(),
        }
    }

    /// What stands in its place in the row: itself, or its parts.
    pub fn in_row(&self) -> Vec<&ScopeTable> {
        match self.parts.is_empty() {
            true => vec![self],
            false => self.parts.iter().flat_map(ScopeTable::in_row).collect(),
        }
    }

    /// The columns that an expression names are looked at.
    pub fn mark(&self, expr: &Expr) {
        let Some(needed) = &self.needed else {
            return;
        };
        let mut needed = needed.borrow_mut();
        for place in columns_of(expr) {
            let place = place.checked_sub(self.start);
            if let Some(flag) = place.and_then(|place| needed.get_mut(place)) {
                *flag = true;
            }
        }
    }
}

/// The same expression, as seen from so many levels further in.
fn outward(expr: &mut Expr, depth: usize) {
    match &mut expr.kind {
        ExprKind::Column(place) => expr.kind = ExprKind::Outer(depth, *place),
        ExprKind::Outer(up, _) => *up += depth,
        _ => expr
            .parts_mut()
            .into_iter()
            .for_each(|part| outward(part, depth)),
    }
}

impl<'s> Scope<'s> {
    /// A scope without tables inside another.
    pub fn inside(parent: Option<&'s Scope<'s>>) -> Scope<'s> {
        Scope {
            parent,
            ..Scope::default()
        }
    }

    /// How many columns its rows have, hidden keys included.
    pub(super) fn column_expr(&self, table: &ScopeTable, place: usize, location: i32) -> Expr {
        if let Some(exprs) = &table.exprs {
            let mut expr = exprs[place].clone();
            table.mark(&expr);
            expr.location = Location(location);
            return expr;
        }
        if let Some(needed) = &table.needed {
            if let Some(flag) = needed.borrow_mut().get_mut(place) {
                *flag = true;
            }
        }
        let column = &table.columns[place];
        Expr {
            kind: ExprKind::Column(table.start + place),
            ty: column.ty,
            typmod: column.typmod,
            location: Location(location),
            domain: column.domain,
            collation: column.collation.at(location),
        }
    }

    /// Makes columns of this scope's rows what a query so many levels further in calls them, and
    /// remembers that it looks at them.
    pub(super) fn show_inside(&self, expr: &mut Expr, depth: usize) {
        expr.visit(&mut |part| {
            if let ExprKind::Column(place) = part.kind {
                let mut seen = self.seen_from_inside.borrow_mut();
                seen.push((place, part.clone()));
            }
        });
        outward(expr, depth);
    }

    /// The columns that inner queries have looked at since there were `before` of them, each once.
    pub(super) fn seen_since(&self, before: usize) -> Vec<(usize, Expr)> {
        let mut seen: Vec<(usize, Expr)> = Vec::new();
        for column in &self.seen_from_inside.borrow()[before..] {
            if !seen.iter().any(|known| known.0 == column.0) {
                seen.push(column.clone());
            }
        }
        seen
    }

    /// How many columns inner queries have looked at, and to forget those that came after so many.
    pub(super) fn seen_count(&self) -> usize {
        self.seen_from_inside.borrow().len()
    }

    pub(super) fn forget_seen(&self, after: usize) {
        self.seen_from_inside.borrow_mut().truncate(after);
    }

    /// Between which places the columns lie that inner queries look at.
    pub(super) fn seen(&self) -> Range<usize> {
        let seen = self.seen_from_inside.borrow();
        let places = seen.iter().map(|seen| seen.0);
        places.fold(NOWHERE, |range, place| {
            range.start.min(place)..range.end.max(place + 1)
        })
    }

    /// Puts an aggregate of this query behind the columns that inner queries look at; its place.
    pub(super) fn show_value(&self, aggregate: Expr) -> usize {
        let place = self.beyond.get();
        self.beyond.set(place + 1);
        self.seen_from_inside.borrow_mut().push((place, aggregate));
        place
    }

    /// How many columns an unqualified name could mean.
    fn named(&self, name: &str) -> usize {
        let merged = self.merged.iter().filter(|merged| merged.name == name);
        let tables = self.tables.iter().filter(|table| !table.qualified_only);
        let columns = tables.flat_map(|table| &table.columns);
        let own = columns.filter(|column| column.name == name && !column.hidden);
        merged.count() + own.count()
    }

    /// The columns that an expression names are looked at.
    pub(super) fn mark(&self, expr: &Expr) {
        self.tables.iter().for_each(|table| table.mark(expr));
    }

    /// This query, the one around it, and so on.
    pub(super) fn levels(&self) -> impl Iterator<Item = &Scope<'s>> {
        std::iter::successors(Some(self), |scope| scope.parent)
    }

    /// The name, with its item's, of the column at a place of the row.
    pub fn name_of(&self, index: usize) -> String {
        for table in &self.tables {
            let at = match &table.exprs {
                None => index.checked_sub(table.start),
                Some(exprs) => exprs
                    .iter()
                    .position(|expr| matches!(expr.kind, ExprKind::Column(at) if at == index)),
            };
            if let Some(column) = at.and_then(|at| table.columns.get(at)) {
                return format!("{}.{}", table.alias, column.name);
            }
        }
        "?".to_owned()
    }

    /// The item that holds the column at a place of the row, with its place there.
    pub fn table_at(&self, index: usize) -> Option<(&ScopeTable, usize)> {
        let own = self.tables.iter().filter(|table| table.exprs.is_none());
        own.into_iter().find_map(|table| {
            let at = index.checked_sub(table.start)?;
            (at < table.columns.len()).then_some((table, at))
        })
    }
}

impl Binder<'_> {
    /// A column, a variable, or an error.
    pub(super) fn column(
        &mut self,
        names: &[&str],
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<(Expr, (u32, i16))> {
        let found = self.find_column(names, scope, location)?;
        let variable = match (self.cx.variables, &found) {
            (Some(known), _) => known.find(names)?,
            (None, _) => None,
        };
        let conflict = self.cx.variables.map(|known| known.conflict());
        match (found, variable) {
            (Some(_), Some(_)) if conflict == Some(super::Conflict::Error) => Err(self
                .error(
                    SqlState::AMBIGUOUS_COLUMN,
                    format!("column reference \"{}\" is ambiguous", names.join(".")),
                    location,
                )
                .with_detail("It could refer to either a PL/pgSQL variable or a table column.")),
            (Some(found), variable)
                if variable.is_none() || conflict == Some(super::Conflict::Column) =>
            {
                self.looks_at(found.origin);
                Ok((found.expr, found.origin))
            }
            (_, Some((place, ty, typmod))) => {
                self.record_argument(names, location);
                Ok((self.variable(place, ty, typmod, location), (0, 0)))
            }
            (_, None) => Err(self.missing_column(names, scope, location)),
        }
    }

    /// Notes that these names mean an argument of a routine, if that is asked for.
    pub(super) fn record_argument(&mut self, names: &[&str], location: i32) {
        let (Some(recorded), Some(known)) = (&mut self.recorded, self.cx.variables) else {
            return;
        };
        match known.are_rows_of_rule() {
            true => {
                let row = known.row_unsaid(names);
                recorded.rows.extend(row.map(|row| (location, row)));
            }
            false => recorded.argument(location, names, known),
        }
    }

    /// A variable of PL/pgSQL, or an argument of a routine.
    pub(super) fn variable(&self, place: usize, ty: TypeId, typmod: i32, at: i32) -> Expr {
        let of_domain = ty.is_of_domain();
        let base = of_domain.then(|| self.cx.catalog.base_type(ty));
        let (base, typmod) = base.unwrap_or((ty, typmod));
        Expr {
            kind: ExprKind::Param(place),
            ty: base,
            typmod,
            location: Location(at),
            domain: if of_domain { ty } else { TypeId::NONE },
            collation: match catalog::collation::of_type(base) {
                0 => Collated::default(),
                _ => {
                    let own = self.cx.variables.map(|known| known.collation(place));
                    own.unwrap_or_default().at(at)
                }
            },
        }
    }

    pub(super) fn is_column(&self, name: &str, scope: &Scope<'_>) -> Result<bool> {
        Ok(self.find_column(&[name], scope, -1)?.is_some())
    }

    /// The column of an item of FROM, if it has one of that name.
    pub(super) fn qualified_column(
        &mut self,
        item: &str,
        name: &str,
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Option<Expr>> {
        let found = self.find_column(&[item, name], scope, location)?;
        Ok(found.map(|found| {
            self.looks_at(found.origin);
            found.expr
        }))
    }

    fn find_column(
        &self,
        names: &[&str],
        scope: &Scope<'_>,
        location: i32,
    ) -> Result<Option<Found>> {
        let mut depth = 0;
        let mut level = scope;
        loop {
            if let Some(mut found) = self.find_in(names, level, location)? {
                if depth > 0 {
                    level.show_inside(&mut found.expr, depth);
                    // Every level between here and there looks outside.
                    let mut inner = scope;
                    while !std::ptr::eq(inner, level) {
                        inner.escapes.set(true);
                        inner = inner.parent.expect("the level found is above");
                    }
                }
                return Ok(Some(found));
            }
            match level.parent {
                Some(parent) => level = parent,
                None => return Ok(None),
            }
            depth += 1;
        }
    }

    fn find_in(&self, names: &[&str], scope: &Scope<'_>, location: i32) -> Result<Option<Found>> {
        let (qualifier, name) = match names {
            [name] => (None, *name),
            [table, name] => (Some((None, *table)), *name),
            [schema, table, name] => (Some((Some(*schema), *table)), *name),
            _ => return Ok(None),
        };
        let ambiguous = || {
            let message = format!("column reference \"{name}\" is ambiguous");
            self.error(SqlState::AMBIGUOUS_COLUMN, message, location)
        };
        if qualifier.is_none() {
            if let Some(column) = scope.merged.iter().find(|merged| merged.name == name) {
                if scope.named(name) > 1 && !self.using_first {
                    return Err(ambiguous());
                }
                scope.mark(&column.expr);
                let mut expr = column.expr.clone();
                expr.location = Location(location);
                return Ok(Some(Found {
                    expr,
                    origin: (0, 0),
                }));
            }
        }
        if let Some((schema, alias)) = qualifier {
            self.check_one_called(scope, schema, alias, location)?;
        }
        let (mut found, mut of_system) = (None, None);
        for table in &scope.tables {
            let visible = match qualifier {
                None => !table.qualified_only,
                Some((schema, alias)) => self.is_called(table, schema, alias),
            };
            if !visible {
                continue;
            }
            for (place, column) in table.columns.iter().enumerate() {
                if column.name != name || (column.hidden && qualifier.is_none()) {
                    continue;
                }
                if found.is_some() {
                    return Err(ambiguous());
                }
                self.check_may_name(scope, table, location)?;
                found = Some((table, place));
            }
            if table.joined && qualifier.is_none() {
                continue;
            }
            if let Some(number) = self.system_column(table, name) {
                self.check_may_name(scope, table, location)?;
                if of_system.replace((table, number)).is_some() {
                    return Err(ambiguous());
                }
            }
        }
        if let (None, Some((table, origin))) = (found, of_system) {
            let expr = match name {
                "tableoid" => self.table_oid(scope, table, origin.0, location),
                _ => None,
            };
            let Some(expr) = expr else {
                let what = format!("the system column \"{name}\"");
                return Err(self.unsupported(&what, location));
            };
            return Ok(Some(Found { expr, origin }));
        }
        if let (None, None) = (found, qualifier) {
            let named = |table: &&ScopeTable| table.is_scalar && table.alias == name;
            found = scope.tables.iter().find(named).map(|table| (table, 0));
        }
        Ok(found.map(|(table, place)| Found {
            expr: scope.column_expr(table, place, location),
            origin: table.columns[place].origin,
        }))
    }

    /// # Errors
    /// 42P09 where a name means two items: the row that was to be inserted, and a table called as it.
    pub(super) fn check_one_called(
        &self,
        scope: &Scope<'_>,
        schema: Option<&str>,
        alias: &str,
        location: i32,
    ) -> Result<()> {
        let called = |item: &&ScopeTable| self.is_called(item, schema, alias);
        if alias != EXCLUDED || scope.tables.iter().filter(called).count() < 2 {
            return Ok(());
        }
        let message = format!("table reference \"{alias}\" is ambiguous");
        Err(self.error(SqlState::of("42P09"), message, location))
    }

    /// Whether an item of FROM is meant by a name, perhaps with its schema.
    pub(super) fn is_called(&self, item: &ScopeTable, schema: Option<&str>, alias: &str) -> bool {
        let of_schema = |schema: &str| {
            let table = item.table.as_ref();
            let own = table.and_then(|own| self.cx.catalog.schema_by_oid(own.schema));
            own.is_some_and(|own| own.name == schema)
        };
        item.alias == alias && schema.is_none_or(of_schema)
    }

    /// Where a system column of an item of FROM comes from.
    fn system_column(&self, item: &ScopeTable, name: &str) -> Option<(u32, i16)> {
        if !SYSTEM_COLUMNS.contains(&name) {
            return None;
        }
        let table = self.cx.catalog.table_by_oid(relation_of(item)?)?;
        Some((table.oid, system_column(table, name)?))
    }

    /// The oid of an item's table, NULL where an outer join has NULLs in the place of its row; none
    /// where no column would tell.
    fn table_oid(
        &self,
        scope: &Scope<'_>,
        item: &ScopeTable,
        oid: u32,
        location: i32,
    ) -> Option<Expr> {
        if let Some(told) = item.oid {
            return Some(Expr::new(ExprKind::Column(told), TypeId::OID, location));
        }
        if self.cx.catalog.table_by_oid(oid)?.kind == RelationKind::Partitioned {
            return None;
        }
        let value = Expr::constant(Datum::Oid(oid), TypeId::OID, location);
        if !item.nullable {
            return Some(value);
        }
        let columns = &self.cx.catalog.table_by_oid(oid)?.columns;
        let told = columns
            .iter()
            .position(|column| column.not_null && !column.dropped)?;
        let column = scope.column_expr(item, told, location);
        let absent = ExprKind::IsNull(Box::new(column), true);
        let absent = Expr::new(absent, TypeId::BOOL, location);
        let null = Expr::constant(Datum::Null, TypeId::OID, location);
        let kind = ExprKind::Case(vec![(absent, null)], Box::new(value));
        Some(Expr::new(kind, TypeId::OID, location))
    }

    /// What is said of a column of the rows of a rule that stands without its row.
    fn column_of_row_alone(&self, name: &str, error: &Error, location: i32) -> Option<Error> {
        let rows = self.cx.variables.filter(|known| known.are_rows_of_rule())?;
        let columns = rows.fields("old")?;
        if !columns.iter().any(|column| column == name) {
            return None;
        }
        if rows.are_both_meant() {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Some(self.error(SqlState::AMBIGUOUS_COLUMN, message, location));
        }
        Some(error.clone().with_hint(format!(
            "There is a column named \"{name}\" in table \"old\", but it cannot be referenced from this \
             part of the query."
        )))
    }

    pub(super) fn missing_column(&self, names: &[&str], scope: &Scope<'_>, location: i32) -> Error {
        let [qualifier @ .., name] = names else {
            return Error::internal("a column without a name");
        };
        let tables = || scope.levels().flat_map(|scope| &scope.tables);
        let Some(alias) = qualifier.last() else {
            if tables().any(|table| table.alias == *name) {
                return self.unsupported("a whole-row reference", location);
            }
            let error = self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" does not exist"),
                location,
            );
            if let Some(error) = self.column_of_row_alone(name, &error, location) {
                return error;
            }
            if let Some(item) = tables().find(|item| self.system_column(item, name).is_some()) {
                return error.with_hint(format!(
                    "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced \
                     from this part of the query.",
                    item.alias
                ));
            }
            return hinted(error, near_columns(suggested(scope), None, name));
        };
        if tables().any(|table| table.alias == *alias) {
            let error = self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("column {} does not exist", names.join(".")),
                location,
            );
            return hinted(error, near_columns(suggested(scope), Some(alias), name));
        }
        let rows = self.cx.variables.filter(|known| known.are_rows_of_rule());
        if rows.is_some_and(|rows| rows.fields(alias).is_some()) {
            return self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("column {} does not exist", names.join(".")),
                location,
            );
        }
        self.missing_table(alias, scope, location)
    }

    /// # Errors
    /// 42P10 for an item that is barred there.
    pub(super) fn check_may_name(
        &self,
        scope: &Scope<'_>,
        item: &ScopeTable,
        location: i32,
    ) -> Result<()> {
        match scope.barred.as_ref() == Some(&item.alias) {
            true => {
                let state = SqlState::INVALID_COLUMN_REFERENCE;
                Err(self.not_from_here(state, &item.alias, &item.alias, location))
            }
            false => Ok(()),
        }
    }

    /// For an item of the statement that cannot be named where it is.
    fn not_from_here(&self, state: SqlState, alias: &str, entry: &str, location: i32) -> Error {
        let message = format!("invalid reference to FROM-clause entry for table \"{alias}\"");
        self.error(state, message, location).with_hint(format!(
            "There is an entry for table \"{entry}\", but it cannot be referenced from this part of \
             the query."
        ))
    }

    /// 42P01 for a qualifier that no item of FROM has.
    pub(super) fn missing_table(&self, alias: &str, scope: &Scope<'_>, location: i32) -> Error {
        const STATE: SqlState = SqlState::UNDEFINED_TABLE;
        let barred = |level: &Scope<'_>| level.barred.as_deref() == Some(alias);
        if scope.levels().any(barred) {
            return self.not_from_here(STATE, alias, alias, location);
        }
        let is_of = |item: &&ScopeTable| item.table.as_ref().is_some_and(|own| own.name == alias);
        let mut tables = scope.levels().flat_map(|level| &level.tables);
        if let Some(item) = tables.find(|item| item.alias != alias && is_of(item)) {
            let message = format!("invalid reference to FROM-clause entry for table \"{alias}\"");
            let alias = &item.alias;
            let hint = format!("Perhaps you meant to reference the table alias \"{alias}\".");
            return self.error(STATE, message, location).with_hint(hint);
        }
        if scope
            .levels()
            .any(|level| level.tables.iter().any(|item| item.alias == alias))
        {
            return self.not_from_here(STATE, alias, alias, location);
        }
        let mut covered = scope.levels().flat_map(|level| &level.covered);
        if let Some(item) = covered.find(|item| item.alias == alias || is_of(item)) {
            return self.not_from_here(STATE, alias, &item.alias, location);
        }
        let message = format!("missing FROM-clause entry for table \"{alias}\"");
        self.error(STATE, message, location)
    }
}

/// What ON CONFLICT calls the row that was to be inserted.
pub(super) const EXCLUDED: &str = "excluded";

/// The items whose columns are suggested: those that joins with an alias consist of, in their places.
fn suggested<'t>(scope: &'t Scope<'_>) -> impl Iterator<Item = &'t ScopeTable> {
    scope.levels().flat_map(|level| {
        let own = level.tables.iter();
        let own = own.filter(|item| item.kind != ItemKind::Join);
        let mut items: Vec<_> = own.chain(&level.covered).collect();
        items.sort_by_key(|item| item.start);
        items
    })
}

/// Names further away than this are not suggested.
const DISTANCE_MAX: usize = 3;

/// The columns whose names are nearest to a name that is missing.
fn near_columns<'t>(
    tables: impl Iterator<Item = &'t ScopeTable>,
    alias: Option<&str>,
    name: &str,
) -> Vec<String> {
    let mut best = DISTANCE_MAX + 1;
    let mut near = Vec::new();
    for table in tables.filter(|table| !table.qualified_only || alias.is_some()) {
        let penalty = alias.map_or(0, |alias| distance(alias, &table.alias));
        for column in table
            .columns
            .iter()
            .filter(|column| !column.name.is_empty())
        {
            let apart = distance(&column.name, name);
            // With more than half of it different it is another name.
            if apart > name.len() / 2 || apart + penalty > best {
                continue;
            }
            if apart + penalty < best {
                best = apart + penalty;
                near.clear();
            }
            if best <= DISTANCE_MAX {
                near.push(format!("{}.{}", table.alias, column.name));
            }
        }
    }
    near
}

fn hinted(error: Error, near: Vec<String>) -> Error {
    match near.as_slice() {
        [only] => error.with_hint(format!(
            "Perhaps you meant to reference the column \"{only}\"."
        )),
        [one, other] => error.with_hint(format!(
            "Perhaps you meant to reference the column \"{one}\" or the column \"{other}\"."
        )),
        _ => error,
    }
}

/// How many letters must be added, removed or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[to.len()]
}

pub(super) fn output(name: &str, expr: &Expr, origin: (u32, i16)) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        ty: expr.ty,
        typmod: expr.typmod,
        domain: expr.domain,
        collation: expr.collation.nowhere(),
        origin,
    }
}

/// The relation whose rows an item of FROM shows.
pub(super) fn relation_of(table: &ScopeTable) -> Option<u32> {
    if let Some(own) = &table.table {
        return Some(own.oid);
    }
    // Under an alias a relation is known by the origin of its columns.
    let oid = table.columns.first().map(|column| column.origin.0)?;
    let whole = table.columns.iter().all(|column| column.origin.0 == oid);
    (whole && (oid < FIRST_USER_OID || table.needed.is_some())).then_some(oid)
}

/// The columns of a table as a FROM item shows them: dropped ones have no name.
pub fn table_columns(table: &Table) -> Vec<ScopeColumn> {
    table
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| ScopeColumn {
            name: match column.dropped {
                true => String::new(),
                false => column.name.clone(),
            },
            ty: column.type_id,
            typmod: column.typmod,
            domain: column.domain,
            collation: Collated::implicit(column.collation),
            origin: (table.oid, place as i16 + 1),
            hidden: false,
            unlisted: false,
        })
        .collect()
}

/// A column that comes from a query.
pub fn query_column(column: &OutputColumn) -> ScopeColumn {
    ScopeColumn {
        name: column.name.clone(),
        ty: column.ty,
        typmod: column.typmod,
        domain: column.domain,
        collation: column.collation.of_column(),
        origin: column.origin,
        hidden: false,
        unlisted: false,
    }
}

/// A column that a function gives.
pub fn plain_column(name: &str, ty: TypeId) -> ScopeColumn {
    ScopeColumn {
        name: name.to_owned(),
        ty,
        typmod: NO_TYPMOD,
        domain: TypeId::NONE,
        collation: Collated::default(),
        origin: (0, 0),
        hidden: false,
        unlisted: false,
    }
}
