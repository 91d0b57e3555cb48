//! WHERE CURRENT OF: what the query of a cursor gives beside its columns, and which row is meant.

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::scope::Scope;
use super::updatable::Writable;
use super::Binder;
use crate::logical::{Source, SourceKind};
use crate::plan::{CurrentOf, CursorTable, Expr, ExprKind};
use catalog::RelationKind;
use syntax::parser::NodeEnum;
use types::{Datum, TypeId};

impl Binder<'_> {
    /// Adds what tells of which row of a table one of the query is: its key and the oid of its table.
    /// Says how many columns these are.
    pub(super) fn add_cursor_row(
        &mut self,
        table: u32,
        (key, oid): (usize, Option<usize>),
        exprs: &mut Vec<Expr>,
    ) -> usize {
        let column = |place, ty| Expr::new(ExprKind::Column(place), ty, -1);
        exprs.push(column(key, TypeId::BYTEA));
        exprs.push(match oid {
            Some(oid) => column(oid, TypeId::OID),
            None => Expr::constant(Datum::Oid(table), TypeId::OID, -1),
        });
        self.cursor_tables.push(CursorTable { table });
        2
    }

    /// The cursor whose row WHERE means, if it means one. A variable of type `refcursor` goes before a
    /// cursor of that name.
    pub(super) fn cursor_of(&self, condition: &Option<Box<Node>>) -> Result<Option<CurrentOf>> {
        let node = condition.as_ref().and_then(|node| node.node.as_ref());
        let Some(NodeEnum::CurrentOfExpr(of)) = node else {
            return Ok(None);
        };
        let name = of.cursor_name.as_str();
        let variable = match self.cx.variables {
            Some(known) => known.find(&[name])?,
            None => None,
        };
        Ok(Some(match variable {
            Some((place, TypeId::REFCURSOR, _)) => CurrentOf::Variable(place, name.into()),
            _ => CurrentOf::Named(name.into()),
        }))
    }
}

/// Whether WHERE means the row of a cursor.
pub(super) fn names_cursor(condition: &Option<Box<Node>>) -> bool {
    let node = condition.as_ref().and_then(|node| node.node.as_ref());
    matches!(node, Some(NodeEnum::CurrentOfExpr(_)))
}

/// Has the only table that a query reads give its key too; the table, and where the key stands.
pub(super) fn with_key(
    source: &mut Source,
    scope: &Scope<'_>,
    next: &mut usize,
) -> Option<(u32, usize)> {
    let SourceKind::Scan { scan, .. } = &mut source.kind else {
        return None;
    };
    let is_alone = scope.tables.len() == 1 && scan.partitions.is_none() && !scan.with_key;
    if !is_alone || scan.table.kind != RelationKind::Table {
        return None;
    }
    scan.with_key = true;
    let key = source.start + scan.table.columns.len();
    source.width += 1;
    *next += 1;
    Some((scan.table.oid, key))
}

/// Has the scan of what is written give the row of a cursor alone.
///
/// # Errors
/// 0A000 for a view.
pub(super) fn only_current(
    target: &mut Source,
    writable: &Writable,
    cursor: CurrentOf,
) -> Result<()> {
    match &mut target.kind {
        SourceKind::Scan { scan, .. } if writable.named().kind != RelationKind::View => {
            scan.current_of = Some(cursor);
            Ok(())
        }
        _ => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "WHERE CURRENT OF on a view is not implemented",
        )),
    }
}
