//! Functions of `aclitem` and of arrays of it.
//!
//! Source: PostgreSQL 15, section 9.26 of the manual.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::{Call, Records, Rows};
use types::acl::{AclItem, Privileges};
use types::{Datum, EvalContext, TypeId};

/// The item of a value.
fn item(context: &EvalContext, value: &Datum) -> Result<AclItem> {
    match value {
        Datum::Null => Err(Error::new(
            SqlState::of("22004"),
            "ACL arrays must not contain null values",
        )),
        value => AclItem::parse(context, value.as_str()),
    }
}

pub(crate) static EXPLODED: Records = Records {
    columns: &[
        ("grantor", TypeId::OID),
        ("grantee", TypeId::OID),
        ("privilege_type", TypeId::TEXT),
        ("is_grantable", TypeId::BOOL),
    ],
    rows: explode,
};

/// `aclexplode`: a row for each privilege of each item.
fn explode(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let mut rows = Vec::new();
    for element in &args.array(0)?.elements {
        let item = item(call.context, element)?;
        for (privilege, name) in item.privileges.each() {
            rows.push(Ok(EXPLODED.row(vec![
                Datum::Oid(item.grantor),
                Datum::Oid(item.grantee),
                Datum::text(name),
                Datum::Bool(item.options.has(privilege)),
            ])));
        }
    }
    Ok(Box::new(rows.into_iter()))
}

/// `makeaclitem`.
pub(crate) fn make(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let role = |place: usize| match args.get(place) {
        Some(Datum::Oid(oid)) => *oid,
        _ => 0,
    };
    let name = args[2].as_str().trim();
    let privileges = Privileges::named(name).ok_or_else(|| {
        Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized privilege type: \"{name}\""),
        )
    })?;
    let item = AclItem {
        grantee: role(0),
        grantor: role(1),
        privileges,
        options: match args[3].is_true() {
            true => privileges,
            false => Privileges::NONE,
        },
    };
    Ok(Datum::text(item.text(call.context)))
}

/// `aclcontains`, which is `@>`: whether one item of a list says all that an item says.
pub(crate) fn contains(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let wanted = item(call.context, &args[1])?;
    for element in &args.array(0)?.elements {
        let known = item(call.context, element)?;
        let same = (known.grantee, known.grantor) == (wanted.grantee, wanted.grantor);
        if same && known.privileges.has(wanted.privileges) && known.options.has(wanted.options) {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

/// `aclitemeq`, which is `=`.
pub(crate) fn equal(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let same = item(call.context, &args[0])? == item(call.context, &args[1])?;
    Ok(Datum::Bool(same))
}

/// `aclinsert`, which is there to say that it is gone.
pub(crate) fn insert(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Err(gone("aclinsert"))
}

/// `aclremove`, likewise.
pub(crate) fn remove(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Err(gone("aclremove"))
}

fn gone(name: &str) -> Error {
    let message = format!("{name} is no longer supported");
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}
