//! Functions that name a transaction and say what became of it.
//!
//! Source: PostgreSQL 15 manual, section 9.27.7 (transaction ID and snapshot information functions).

use base::{Result, Xid};

use super::Exec;
use types::Datum;

/// Whether this is such a function.
pub fn is_one(name: &str) -> bool {
    matches!(
        name,
        "txid_current"
            | "txid_current_if_assigned"
            | "txid_status"
            | "pg_current_xact_id"
            | "pg_current_xact_id_if_assigned"
            | "pg_xact_status"
    )
}

/// Computes such a function.
pub fn call(cx: &mut Exec<'_>, name: &str, args: &[Datum]) -> Result<Datum> {
    if name.ends_with("_status") {
        let status = match args[0] {
            Datum::Int8(id) => u64::try_from(id).map(Xid).ok(),
            Datum::Unsigned8(id) => Some(Xid(id)),
            _ => None,
        };
        let status = status.map(|xid| cx.session.engine.xid_status(xid));
        let status = status.transpose()?.flatten();
        return Ok(status.map_or(Datum::Null, |status| Datum::text(status.name())));
    }
    let xid = cx.txn.xid(!name.ends_with("_if_assigned"))?;
    let datum = |xid: Xid| match name.starts_with("txid") {
        true => Datum::Int8(xid.0 as i64),
        false => Datum::Unsigned8(xid.0),
    };
    Ok(xid.map_or(Datum::Null, datum))
}
