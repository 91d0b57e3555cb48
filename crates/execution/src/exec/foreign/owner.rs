//! What the owner of a table must hold for the queries of its foreign keys.

use base::Result;

use super::{qualified, within};
use crate::exec::Exec;
use catalog::access::{column_in_address, denied, Guarded, Privileges};
use catalog::Table;
use syntax::parser::char_position;

/// A privilege that a query needs on some columns, by their places, or on any one.
pub(super) struct Need<'c> {
    pub(super) privilege: Privileges,
    pub(super) columns: Option<&'c [usize]>,
}

impl<'c> Need<'c> {
    /// What finding rows by these columns and locking them needs.
    pub(super) fn to_lock(columns: &'c [usize]) -> [Need<'c>; 2] {
        let lock = Need {
            privilege: Privileges::UPDATE,
            columns: None,
        };
        [Need::of(Privileges::SELECT, columns), lock]
    }

    pub(super) fn of(privilege: Privileges, columns: &'c [usize]) -> Need<'c> {
        let columns = Some(columns);
        Need { privilege, columns }
    }

    fn is_met(&self, table: &Table, cx: &Exec<'_>) -> bool {
        let (owner, oid, asked) = (table.owner, table.oid, self.privilege);
        let of_column = |place: &usize| {
            let number = i16::try_from(place + 1).map(column_in_address);
            number.is_ok_and(|number| cx.catalog.holds_column(owner, oid, number, asked))
        };
        cx.catalog.holds(owner, Guarded::Table, oid, asked)
            || match self.columns {
                None => cx.catalog.holds_column(owner, oid, 0, asked),
                Some([]) => false,
                Some(columns) => columns.iter().all(of_column),
            }
    }
}

/// 42501 unless the owner of a table may run such a query on it.
pub(super) fn check(
    table: &Table,
    needs: &[Need<'_>],
    query: impl FnOnce(&Exec<'_>) -> String,
    cx: &Exec<'_>,
) -> Result<()> {
    let schema = cx.catalog.schema_by_oid(table.schema);
    let looks = schema.map_or(Ok(()), |schema| {
        cx.catalog.check_look_into(table.owner, schema)
    });
    if let Err(mut error) = looks {
        let query = query(cx);
        let at = query.find(&qualified(table, cx)).unwrap_or_default();
        let fields = error.fields_mut();
        fields.internal_position = char_position(&query, i32::try_from(at).unwrap_or_default());
        fields.internal_query = Some(query);
        return Err(error);
    }
    match needs.iter().all(|need| need.is_met(table, cx)) {
        true => Ok(()),
        false => Err(within(denied("table", &table.name), || query(cx))),
    }
}
