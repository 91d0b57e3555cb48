//! Functions that name a transaction and say what became of it.
//!
//! Source: PostgreSQL 15 manual, section 9.27.7 (transaction ID and snapshot information functions).

use base::{Debt, Position, Result, Xid};

use super::Exec;
use functions::session::TransactionFunction;
use types::Datum;

/// Ids of 32 bits that are below are not of transactions, in PostgreSQL.
pub const FIRST_NORMAL: u32 = 3;

/// Computes such a function.
pub fn call(cx: &mut Exec<'_>, which: TransactionFunction, args: &[Datum]) -> Result<Datum> {
    let as_integer = |xid: Xid| Datum::Int8(xid.0 as i64);
    let as_xid = |xid: Xid| Datum::Unsigned8(xid.0);
    Ok(match which {
        TransactionFunction::Txid => or_null(own(cx, true)?, as_integer),
        TransactionFunction::TxidIfAssigned => or_null(own(cx, false)?, as_integer),
        TransactionFunction::Xid => or_null(own(cx, true)?, as_xid),
        TransactionFunction::XidIfAssigned => or_null(own(cx, false)?, as_xid),
        TransactionFunction::Age => {
            let newest = match own(cx, false)? {
                Some(own) => Some(own),
                None => newest(cx)?,
            };
            match (newest, &args[0]) {
                (Some(newest), Datum::Oid(id)) => Datum::Int4(age(newest, *id)),
                // What is of no transaction is old whoever asks.
                (None, Datum::Oid(id)) if *id < FIRST_NORMAL => Datum::Int4(i32::MAX),
                _ => Datum::Null,
            }
        }
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

/// The id of the newest commit, if it is known.
pub fn newest(cx: &Exec<'_>) -> Result<Option<Xid>> {
    let engine = &cx.host.shared().engine;
    let status = engine.cluster.status();
    let position = Position {
        term: status.term,
        lsn: status.commit,
    };
    let newest = Debt::of(status.group, position);
    Ok(engine.outcomes()?.committed_xid(&newest))
}

/// By how many ids the newest is ahead of one that a column shows, of which that has the last 32 bits. Those below
/// [`FIRST_NORMAL`] are no transaction's, and older than all.
fn age(newest: Xid, id: u32) -> i32 {
    match id < FIRST_NORMAL {
        true => i32::MAX,
        false => (newest.0 as u32).wrapping_sub(id) as i32,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_go_over_the_end_of_32_bits() {
        assert_eq!(age(Xid((1 << 62) + 10), 7), 3);
        assert_eq!(age(Xid((1 << 62) + 10), u32::MAX), 11);
        assert_eq!(age(Xid((1 << 62) + 10), 12), -2);
        assert_eq!(age(Xid((1 << 62) + 10), 2), i32::MAX);
    }
}
