//! Functions that name a transaction and say what became of it.
//!
//! Source: PostgreSQL 15 manual, section 9.27.7 (transaction ID and snapshot information functions).

use base::{Result, Xid};

use super::Exec;
use functions::session::TransactionFunction;
use types::Datum;

/// Computes such a function.
pub fn call(cx: &mut Exec<'_>, which: TransactionFunction, args: &[Datum]) -> Result<Datum> {
    let as_integer = |xid: Xid| Datum::Int8(xid.0 as i64);
    let as_xid = |xid: Xid| Datum::Unsigned8(xid.0);
    Ok(match which {
        TransactionFunction::Txid => or_null(own(cx, true)?, as_integer),
        TransactionFunction::TxidIfAssigned => or_null(own(cx, false)?, as_integer),
        TransactionFunction::Xid => or_null(own(cx, true)?, as_xid),
        TransactionFunction::XidIfAssigned => or_null(own(cx, false)?, as_xid),
        TransactionFunction::Status => {
            let xid = match args[0] {
                Datum::Int8(id) => u64::try_from(id).map(Xid).ok(),
                Datum::Unsigned8(id) => Some(Xid(id)),
                _ => None,
            };
            let outcomes = cx.host.shared().engine.outcomes()?;
            let status = xid.map(|xid| outcomes.xid_status(xid));
            or_null(status.transpose()?.flatten(), |status| {
                Datum::text(status.name())
            })
        }
    })
}

/// The id of the transaction at work, which the log of its session names from then on.
fn own(cx: &mut Exec<'_>, assigned: bool) -> Result<Option<Xid>> {
    let xid = cx.host.txn().outcome()?.xid(assigned)?;
    if let Some(xid) = xid {
        cx.host.session().xid = xid.0;
    }
    Ok(xid)
}

fn or_null<T>(value: Option<T>, datum: impl Fn(T) -> Datum) -> Datum {
    value.map_or(Datum::Null, datum)
}
