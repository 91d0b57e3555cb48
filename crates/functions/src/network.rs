//! The functions and operators of `inet`, `cidr`, `macaddr` and `macaddr8`.
//!
//! Source: PostgreSQL 15 manual, section 9.12.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::network::{abbreviated, Network};
use types::{Datum, TypeId};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn out_of_range() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "result is out of range",
    )
}

/// The whole address without a mask.
fn alone(network: Network, number: u128) -> Datum {
    Datum::Network(Network {
        bits: network.bits_max(),
        ..network.with(number)
    })
}

pub(crate) fn abbrev(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    let text = match network.bits == network.bits_max() {
        true => network.host(),
        false => format!("{}/{}", network.host(), network.bits),
    };
    Ok(Datum::text(text))
}

pub(crate) fn abbrev_cidr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(abbreviated(&args.network(0)?)))
}

pub(crate) fn show(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    Ok(Datum::text(format!("{}/{}", network.host(), network.bits)))
}

pub(crate) fn host(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(args.network(0)?.host()))
}

pub(crate) fn family(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let is_v6 = args.network(0)?.is_v6;
    Ok(Datum::Int4(if is_v6 { 6 } else { 4 }))
}

pub(crate) fn masklen(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(args.network(0)?.bits)))
}

fn with_masklen(args: &[Datum]) -> Result<Network> {
    let (network, wanted) = (args.network(0)?, args.int4(1)?);
    let bits = match wanted {
        -1 => Some(network.bits_max()),
        wanted => u8::try_from(wanted).ok(),
    };
    let bits = bits.filter(|bits| *bits <= network.bits_max());
    let bits = bits.ok_or_else(|| invalid(format!("invalid mask length: {wanted}")))?;
    Ok(Network { bits, ..network })
}

pub(crate) fn set_masklen(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    with_masklen(args).map(Datum::Network)
}

pub(crate) fn set_masklen_cidr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Network(with_masklen(args)?.network()))
}

pub(crate) fn network(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Network(args.network(0)?.network()))
}

pub(crate) fn netmask(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    Ok(alone(network, network.mask()))
}

pub(crate) fn hostmask(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    Ok(alone(network, !network.mask()))
}

pub(crate) fn broadcast(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    Ok(Datum::Network(
        network.with(network.number() | !network.mask()),
    ))
}

// ---- How they lie ----

macro_rules! relations {
    ($($name:ident ($a:ident $b:ident) $test:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($a, $b) = (args.network(0)?, args.network(1)?);
            Ok(Datum::Bool($a.is_v6 == $b.is_v6 && $test))
        })*
    };
}

relations! {
    sub (a b) a.bits > b.bits && a.agrees(&b, b.bits);
    sub_eq (a b) a.bits >= b.bits && a.agrees(&b, b.bits);
    sup (a b) a.bits < b.bits && a.agrees(&b, a.bits);
    sup_eq (a b) a.bits <= b.bits && a.agrees(&b, a.bits);
    overlap (a b) a.agrees(&b, a.bits.min(b.bits));
    same_family (_a _b) true;
}

// ---- Arithmetic ----

pub(crate) fn not(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let network = args.network(0)?;
    Ok(Datum::Network(network.with(!network.number())))
}

fn pair(args: &[Datum], what: &str) -> Result<(Network, Network)> {
    let (a, b) = (args.network(0)?, args.network(1)?);
    match a.is_v6 == b.is_v6 {
        true => Ok((a, b)),
        false => Err(invalid(format!(
            "cannot {what} inet values of different sizes"
        ))),
    }
}

pub(crate) fn and(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = pair(args, "AND")?;
    let bits = a.bits.max(b.bits);
    let both = a.with(a.number() & b.number());
    Ok(Datum::Network(Network { bits, ..both }))
}

pub(crate) fn or(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = pair(args, "OR")?;
    let bits = a.bits.max(b.bits);
    let any = a.with(a.number() | b.number());
    Ok(Datum::Network(Network { bits, ..any }))
}

/// The address so many further on.
fn moved(network: Network, by: i128) -> Result<Datum> {
    let unused = u32::from(128 - network.bits_max());
    let number = network.number() >> unused;
    let number = match by < 0 {
        true => number.checked_sub(by.unsigned_abs()),
        false => number.checked_add(by.unsigned_abs()),
    };
    let number = number.filter(|number| *number <= network.all() >> unused);
    let number = number.ok_or_else(out_of_range)?;
    Ok(Datum::Network(network.with(number << unused)))
}

pub(crate) fn add(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    moved(args.network(0)?, i128::from(args.int(1)?))
}

pub(crate) fn add_to(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    moved(args.network(1)?, i128::from(args.int(0)?))
}

pub(crate) fn subtract(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    // The smallest number stays what it is when its sign is turned, as in PostgreSQL.
    moved(args.network(0)?, i128::from(args.int(1)?.wrapping_neg()))
}

pub(crate) fn difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = pair(args, "subtract")?;
    let unused = u32::from(128 - a.bits_max());
    let (a, b) = (a.number() >> unused, b.number() >> unused);
    // Modulo 2^128, as in PostgreSQL: the last address is one before the first.
    let apart = i64::try_from(a.wrapping_sub(b) as i128).ok();
    apart.map(Datum::Int8).ok_or_else(out_of_range)
}

/// The smallest network that has both.
pub(crate) fn merge(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.network(0)?, args.network(1)?);
    if a.is_v6 != b.is_v6 {
        return Err(invalid("cannot merge addresses from different families"));
    }
    let common = (a.number() ^ b.number()).leading_zeros() as u8;
    let bits = common.min(a.bits).min(b.bits);
    Ok(Datum::Network(Network { bits, ..a }.network()))
}

// ---- Cards ----

const LOW_24: u64 = 0xff_ffff;
const LOW_40: u64 = 0xff_ffff_ffff;

pub(crate) fn mac_trunc(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Unsigned8(args.unsigned8(0)? & !LOW_24))
}

pub(crate) fn mac8_trunc(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Unsigned8(args.unsigned8(0)? & !LOW_40))
}

pub(crate) fn mac_not(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mask = match call.result {
        TypeId::MACADDR => u64::MAX >> 16,
        _ => u64::MAX,
    };
    Ok(Datum::Unsigned8(!args.unsigned8(0)? & mask))
}

pub(crate) fn mac_and(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Unsigned8(args.unsigned8(0)? & args.unsigned8(1)?))
}

pub(crate) fn mac_or(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Unsigned8(args.unsigned8(0)? | args.unsigned8(1)?))
}

pub(crate) fn mac8_set7bit(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Unsigned8(args.unsigned8(0)? | 0x02 << 56))
}

pub(crate) fn mac_to_mac8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mac = args.unsigned8(0)?;
    let long = (mac & !LOW_24) << 16 | 0xfffe << 24 | mac & LOW_24;
    Ok(Datum::Unsigned8(long))
}

pub(crate) fn mac8_to_mac(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let long = args.unsigned8(0)?;
    if long >> 24 & 0xffff != 0xfffe {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "macaddr8 data out of range to convert to macaddr",
        )
        .with_hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, \
             for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to \
             macaddr.",
        ));
    }
    Ok(Datum::Unsigned8(long >> 16 & !LOW_24 | long & LOW_24))
}
