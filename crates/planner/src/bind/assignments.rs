//! SET, and parts of columns among what INSERT gives.
//!
//! ```text
//! set (a, b) = (select x, y from t)     the row is computed once; a and b are its fields
//! set a[2] = x, a[3] = y                one assignment to a, of which the first is a part
//! insert into t (a[1], a[2]) values     likewise, of NULL
//! ```

use base::{Error, Result, SqlState};
use pg_query::protobuf::{MultiAssignRef, Node, ResTarget, SubLinkType};

use super::expr::Place;
use super::given::check_update;
use super::parts::Assigned;
use super::scope::Scope;
use super::updatable::{Verb, Writable};
use super::{boxed, inner, strings, Binder, OutputColumn};
use crate::plan::{compile, Assignments, Collated, Expr, ExprKind};
use catalog::access::Privileges;
use catalog::{RelationKind, Table};
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

const UPDATE: Place = Place::plain("UPDATE");

impl Assignments {
    /// The columns that are set.
    pub fn targets(&self) -> Vec<usize> {
        self.columns.iter().map(|(place, _)| *place).collect()
    }
}

/// The part of a column that the target at a place of a list names; none if it is the whole column.
pub(super) fn part_given(targets: &[Node], at: usize) -> Option<&ResTarget> {
    match targets.get(at)?.node.as_ref()? {
        NodeEnum::ResTarget(target) if !target.indirection.is_empty() => Some(target),
        _ => None,
    }
}

/// What has been given for a column last.
pub(super) fn last_given(given: &[Expr], places: &[usize], place: usize) -> Option<Expr> {
    let places = &places[..given.len().min(places.len())];
    let at = places.iter().rposition(|known| *known == place)?;
    given.get(at).cloned()
}

/// What a column has come to by assignments to parts of it, before it is tested whether that is of its
/// domain: only what all of them make of it must be.
fn untested(value: Expr) -> Expr {
    let domain = value.domain;
    match value.kind {
        ExprKind::Domain(inner, _, false) => Expr { domain, ..*inner },
        _ => value,
    }
}

/// What SET has come to while it is bound.
#[derive(Default)]
pub(super) struct Bound {
    rows: Vec<Expr>,
    columns: Vec<(usize, Expr)>,
    /// The columns of which only parts are set.
    parts: Vec<usize>,
    /// The columns of the row that `(a, b) = (SELECT …)` at work gives.
    row: Vec<Expr>,
}

impl Bound {
    /// SET over rows with so many columns.
    pub(super) fn compiled(&self, width: usize) -> Assignments {
        let columns = self.columns.iter();
        Assignments {
            rows: self.rows.iter().map(compile).collect(),
            width,
            columns: columns
                .map(|(place, value)| (*place, compile(value)))
                .collect(),
        }
    }

    /// What those columns of a table become that are wanted, over rows with so many columns; others, and
    /// generated ones, stay what they are.
    ///
    /// # Errors
    /// 0A000 for a column that is set from a subquery together with others.
    pub(super) fn new_values(
        &self,
        table: &Table,
        wanted: &[bool],
        width: usize,
    ) -> Result<Vec<Expr>> {
        let mut values = Vec::with_capacity(wanted.len());
        for (place, column) in table.columns.iter().enumerate() {
            let mut set = self
                .columns
                .iter()
                .filter(|_| !column.generated && wanted[place]);
            let Some((_, value)) = set.find(|set| set.0 == place) else {
                let mut own = Expr::new(ExprKind::Column(place), column.type_id, -1);
                own.typmod = column.typmod;
                values.push(own);
                continue;
            };
            let is_row = |part: &Expr| matches!(part.kind, ExprKind::Column(at) if at >= width);
            if value.any(&is_row) {
                let message =
                    "NEW variables in ON UPDATE rules cannot reference columns that are part of \
                               a multiple assignment in the subject UPDATE command";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            values.push(value.clone());
        }
        Ok(values)
    }
}

/// 42601 for a column that is given several values, as where two columns of a view are the same one.
pub(super) fn assigned_twice(table: &Table, place: usize) -> Error {
    let name = &table.columns[place].name;
    Error::new(
        SqlState::SYNTAX_ERROR,
        format!("multiple assignments to same column \"{name}\""),
    )
}

impl Binder<'_> {
    /// SET; the rows that it looks at have so many columns.
    pub(super) fn assignments(
        &mut self,
        targets: &[Node],
        writable: &Writable,
        scope: &Scope<'_>,
        width: usize,
    ) -> Result<Assignments> {
        let bound = self.bound_assignments(targets, writable, scope, width)?;
        Ok(bound.compiled(width))
    }

    /// The same before it is compiled.
    pub(super) fn bound_assignments(
        &mut self,
        targets: &[Node],
        writable: &Writable,
        scope: &Scope<'_>,
        width: usize,
    ) -> Result<Bound> {
        let mut bound = Bound::default();
        for node in targets {
            if let NodeEnum::ResTarget(target) = inner(node)? {
                self.assignment(target, writable, scope, width, &mut bound)?;
            }
        }
        Ok(bound)
    }

    fn assignment(
        &mut self,
        target: &ResTarget,
        writable: &Writable,
        scope: &Scope<'_>,
        width: usize,
        bound: &mut Bound,
    ) -> Result<()> {
        let table = &*writable.base;
        let name = &target.name;
        let place = self.target_column(writable, name, target.location, Verb::Update)?;
        self.require_named(writable, name, Privileges::UPDATE);
        let part = !target.indirection.is_empty();
        let known = bound.columns.iter().position(|known| known.0 == place);
        if known.is_some() && !(part && bound.parts.contains(&place)) {
            return Err(assigned_twice(table, place));
        }
        let column = &table.columns[place];
        let value = match boxed(&target.val)? {
            NodeEnum::SetToDefault(_) if part => return Err(self.no_default_of_part(target)),
            NodeEnum::SetToDefault(_) => self.updated_default(writable, name, place)?,
            NodeEnum::MultiAssignRef(multi) => self.value_of_row(
                multi,
                (writable, name.as_str()),
                (place, width),
                scope,
                bound,
            )?,
            value => {
                check_update(column)?;
                self.expr(value, scope, UPDATE)?
            }
        };
        let value = match part {
            true => {
                let before = match known {
                    Some(known) => untested(bound.columns.remove(known).1),
                    None => self.old_value(name, scope, target.location)?,
                };
                bound.parts.push(place);
                let value = self.assigned_to_part(target, value, before, scope)?;
                let (ty, typmod) = column.declared();
                self.assign(value, ty, typmod, &column.name)?
            }
            false => {
                let (ty, typmod) = column.declared();
                self.assign(value, ty, typmod, &column.name)?
            }
        };
        bound.columns.push((place, value));
        Ok(())
    }

    /// What `SET column = DEFAULT` gives: that of the view, if one is named, and NULL if that has none,
    /// whatever the table has.
    fn updated_default(&mut self, writable: &Writable, name: &str, place: usize) -> Result<Expr> {
        let named = writable.named().clone();
        let own = writable.column_names().iter().position(|own| own == name);
        match own.filter(|_| named.kind == RelationKind::View) {
            Some(own) => self.default(&named, own),
            None => self.default(&writable.base, place),
        }
    }

    /// What `(a, b) = …` gives for a column.
    fn value_of_row(
        &mut self,
        multi: &MultiAssignRef,
        (writable, name): (&Writable, &str),
        (place, width): (usize, usize),
        scope: &Scope<'_>,
        bound: &mut Bound,
    ) -> Result<Expr> {
        let column = &writable.base.columns[place];
        let at = usize::try_from(multi.colno - 1).unwrap_or(usize::MAX);
        let count = usize::try_from(multi.ncolumns).unwrap_or(0);
        let missing = || Error::internal("SET of no column");
        let unequal = |binder: &Self, location: i32| {
            let message = "number of columns does not match number of values";
            binder.error(SqlState::SYNTAX_ERROR, message, location)
        };
        match boxed(&multi.source)? {
            NodeEnum::RowExpr(row) => {
                let has_star = self.has_star(&row.args);
                if !has_star && row.args.len() != count {
                    return Err(unequal(self, row.location));
                }
                if has_star {
                    if at == 0 {
                        bound.row = self.row_fields(&row.args, scope, UPDATE)?;
                        if bound.row.len() != count {
                            return Err(unequal(self, row.location));
                        }
                    }
                    check_update(column)?;
                    return bound.row.get(at).cloned().ok_or_else(missing);
                }
                match inner(row.args.get(at).ok_or_else(missing)?)? {
                    NodeEnum::SetToDefault(_) => self.updated_default(writable, name, place),
                    item => {
                        check_update(column)?;
                        self.expr(item, scope, UPDATE)
                    }
                }
            }
            NodeEnum::SubLink(link) if link.sub_link_type == SubLinkType::ExprSublink as i32 => {
                if at == 0 {
                    let (row, columns) = self.row_of_subquery(link, scope, UPDATE)?;
                    if columns.len() != count {
                        return Err(unequal(self, link.location));
                    }
                    let kind = ExprKind::Column(width + bound.rows.len());
                    let source = Expr::new(kind, TypeId::RECORD, link.location);
                    bound.row = Self::columns_in(&source, &columns);
                    bound.rows.push(row);
                }
                check_update(column)?;
                bound.row.get(at).cloned().ok_or_else(missing)
            }
            other => {
                let value = self.expr(other, scope, UPDATE)?;
                let message =
                    "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                let state = SqlState::FEATURE_NOT_SUPPORTED;
                Err(self.error(state, message, value.leftmost()))
            }
        }
    }

    fn has_star(&self, args: &[Node]) -> bool {
        let is_star = |node: &Node| matches!(node.node, Some(NodeEnum::AStar(_)));
        args.iter().any(|arg| match &arg.node {
            Some(NodeEnum::ColumnRef(column)) => column.fields.last().is_some_and(is_star),
            Some(NodeEnum::AIndirection(part)) => part.indirection.last().is_some_and(is_star),
            _ => false,
        })
    }

    /// What a variable of PL/pgSQL becomes of which a part is assigned to.
    pub(super) fn assigned_variable(
        &mut self,
        target: &ResTarget,
        scope: &Scope<'_>,
    ) -> Result<(Expr, OutputColumn)> {
        let (steps, variable) = match target.indirection.split_first() {
            Some((variable, steps)) => (steps, inner(variable)?),
            None => return Err(Error::internal("an assignment to nothing")),
        };
        let NodeEnum::ColumnRef(column) = variable else {
            return Err(Error::internal("an assignment to no variable"));
        };
        let names = strings(&column.fields);
        let value = self.expr(boxed(&target.val)?, scope, Place::plain("SELECT"))?;
        let before = self.column_or_row(&names, scope, -1)?;
        let assigned = Assigned {
            name: names.first().copied().unwrap_or_default(),
            subscripted: false,
            location: -1,
        };
        let whole = self.assign_part(before, steps, value, assigned, scope)?;
        let column = OutputColumn {
            name: assigned.name.to_owned(),
            ty: whole.ty,
            typmod: whole.typmod,
            domain: whole.domain,
            collation: whole.collation.nowhere(),
            origin: (0, 0),
        };
        Ok((whole, column))
    }

    /// 0A000 for DEFAULT where only a part of a column is set.
    pub(super) fn no_default_of_part(&self, target: &ResTarget) -> Error {
        let first = target
            .indirection
            .first()
            .and_then(|step| step.node.as_ref());
        let message = match first {
            Some(NodeEnum::AIndices(_)) => "cannot set an array element to DEFAULT",
            _ => "cannot set a subfield to DEFAULT",
        };
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, target.location)
    }

    fn assigned_to_part(
        &mut self,
        target: &ResTarget,
        value: Expr,
        before: Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let assigned = Assigned {
            name: &target.name,
            subscripted: false,
            location: target.location,
        };
        self.assign_part(before, &target.indirection, value, assigned, scope)
    }

    /// What INSERT makes of a column of which it gives a part, and perhaps gave others before.
    pub(super) fn inserted_part(
        &mut self,
        table: &Table,
        place: usize,
        target: &ResTarget,
        value: Expr,
        before: Option<Expr>,
    ) -> Result<Expr> {
        let column = &table.columns[place];
        let nothing = || Expr {
            typmod: column.typmod,
            domain: column.domain,
            collation: Collated::implicit(column.collation),
            ..Expr::constant(Datum::Null, column.type_id, target.location)
        };
        let before = before.map(untested).unwrap_or_else(nothing);
        let value = self.assigned_to_part(target, value, before, &Scope::default())?;
        let (ty, typmod) = column.declared();
        self.assign(value, ty, typmod, &column.name)
    }
}
