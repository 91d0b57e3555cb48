//! Addresses of networks, of hosts in them, and of network cards: `inet`, `cidr`, `macaddr`,
//! `macaddr8`.
//!
//! ```
//! use types::{self, EvalContext, TypeId, NO_TYPMOD};
//! let context = EvalContext::for_tests();
//! let shown = |kind, text| {
//!     let value = types::input(&context, kind, NO_TYPMOD, text).unwrap();
//!     types::output(&context, kind, &value).unwrap()
//! };
//! assert_eq!(shown(TypeId::INET, "10.1.2.3/32"), "10.1.2.3");
//! assert_eq!(shown(TypeId::CIDR, "10.1"), "10.1.0.0/16");
//! assert_eq!(shown(TypeId::MACADDR, "08002b-010203"), "08:00:2b:01:02:03");
//! ```
//! An inet and a cidr are one value in memory; the type says how it is shown, and that a cidr has no
//! bits behind its mask. A card's address is a number of 48 or 64 bits ([`Datum::Unsigned8`]).
//!
//! # Order
//! Addresses are ordered by family, then by the network, a wider one before those in it, then by the
//! host. The bytes of a column are ordered so ([`Network::bytes`]).
//!
//! Source: PostgreSQL 15 manual, section 8.9.

use std::fmt::Write;

use base::error::{Error, Result, SqlState};

use super::numeric::is_space;
use super::{Datum, TypeId};

/// An address and how many of its bits are those of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// Whether it has 128 bits, not 32.
    pub is_v6: bool,
    /// The bits of the network.
    pub bits: u8,
    /// The address; of one of 32 bits the first four bytes, the others are 0.
    pub address: [u8; 16],
}

/// Families as PostgreSQL sends them.
const V4: u8 = 2;
const V6: u8 = 3;

impl Network {
    /// How many bits an address has.
    pub fn bits_max(&self) -> u8 {
        match self.is_v6 {
            true => 128,
            false => 32,
        }
    }

    /// The bytes of the address.
    pub fn octets(&self) -> &[u8] {
        &self.address[..usize::from(self.bits_max() / 8)]
    }

    /// The address as a number, its first bit the highest of 128.
    pub fn number(&self) -> u128 {
        u128::from_be_bytes(self.address)
    }

    /// The mask of the network as such a number.
    pub fn mask(&self) -> u128 {
        mask(self.bits)
    }

    /// All bits that an address of this family has.
    pub fn all(&self) -> u128 {
        mask(self.bits_max())
    }

    /// The same with another address.
    pub fn with(self, number: u128) -> Network {
        Network {
            address: (number & self.all()).to_be_bytes(),
            ..self
        }
    }

    /// The network alone.
    pub fn network(self) -> Network {
        self.with(self.number() & self.mask())
    }

    /// Whether the first so many bits of both are the same; the families are.
    pub fn agrees(&self, other: &Network, bits: u8) -> bool {
        (self.number() ^ other.number()) & mask(bits) == 0
    }

    /// As a column has it, in the order of addresses: family, network, its bits, address.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2 + 2 * self.octets().len());
        out.push(if self.is_v6 { V6 } else { V4 });
        out.extend_from_slice(self.network().octets());
        out.push(self.bits);
        out.extend_from_slice(self.octets());
        out
    }

    /// Reads what [`Network::bytes`] made, or the text that columns had before.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Network> {
        let wrong = || Error::corrupted("an address in a column");
        let (is_v6, len) = match bytes.first() {
            Some(&V4) => (false, 4),
            Some(&V6) => (true, 16),
            _ => {
                let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
                return parse(TypeId::INET, text).map_err(|_| wrong());
            }
        };
        let (Some(bits), Some(address)) = (bytes.get(1 + len), bytes.get(2 + len..)) else {
            return Err(wrong());
        };
        let mut known = [0; 16];
        if address.len() != len {
            return Err(wrong());
        }
        known[..len].copy_from_slice(address);
        let network = Network {
            is_v6,
            bits: *bits,
            address: known,
        };
        match network.bits <= network.bits_max() {
            true => Ok(network),
            false => Err(wrong()),
        }
    }

    /// The address as text, without the mask.
    pub fn host(&self) -> String {
        let mut out = String::new();
        match self.is_v6 {
            false => write_v4(self.octets(), &mut out),
            true => write_v6(&self.address, &mut out),
        }
        out
    }
}

fn mask(bits: u8) -> u128 {
    match bits {
        0 => 0,
        bits => u128::MAX << (128 - u32::from(bits)),
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Network {
    fn cmp(&self, other: &Network) -> std::cmp::Ordering {
        let of = |network: &Network| {
            let alone = network.network().number();
            (network.is_v6, alone, network.bits, network.number())
        };
        of(self).cmp(&of(other))
    }
}

/// The whole address of a host, as a value; NULL for what is none.
pub fn host_address(text: Option<&str>) -> Datum {
    let read = text.and_then(|text| parse(TypeId::INET, text).ok());
    read.map_or(Datum::Null, Datum::Network)
}

/// Appends the text form.
pub(crate) fn write(kind: TypeId, network: &Network, out: &mut String) {
    out.push_str(&network.host());
    if kind == TypeId::CIDR || network.bits != network.bits_max() {
        let _ = write!(out, "/{}", network.bits);
    }
}

fn write_v4(octets: &[u8], out: &mut String) {
    for (place, octet) in octets.iter().enumerate() {
        let dot = if place > 0 { "." } else { "" };
        let _ = write!(out, "{dot}{octet}");
    }
}

fn words_of(address: &[u8; 16]) -> Vec<u16> {
    let pairs = address.chunks(2);
    pairs
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect()
}

/// The first of the longest runs of zeros: where it begins, and how long it is.
fn zeros(words: &[u16]) -> (usize, usize) {
    let (mut best, mut at) = ((0, 0), 0);
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| **word == 0).count();
        if run > best.1 {
            best = (at, run);
        }
        at += run.max(1);
    }
    best
}

fn write_v6(address: &[u8; 16], out: &mut String) {
    let words = words_of(address);
    let (start, run) = match zeros(&words) {
        (start, run) if run >= 2 => (start, run),
        _ => (8, 0),
    };
    let has_v4 =
        start == 0 && (run == 6 || (run == 7 && words[7] != 1) || (run == 5 && words[5] == 0xffff));
    let mut at = 0;
    while at < words.len() {
        if at == start {
            out.push(':');
            at += run;
            if at == words.len() {
                out.push(':');
            }
            continue;
        }
        if at > 0 {
            out.push(':');
        }
        if at == 6 && has_v4 {
            return write_v4(&address[12..], out);
        }
        let _ = write!(out, "{:x}", words[at]);
        at += 1;
    }
}

/// `abbrev(cidr)`: only as much of the address as the network has.
pub fn abbreviated(network: &Network) -> String {
    let mut out = String::new();
    let bits = usize::from(network.bits);
    if !network.is_v6 {
        let alone = network.network();
        match bits.div_ceil(8) {
            0 => out.push('0'),
            octets => write_v4(&alone.octets()[..octets], &mut out),
        }
    } else if bits == 0 {
        out.push_str("::");
    } else {
        abbreviate_v6(network, &mut out);
    }
    let _ = write!(out, "/{bits}");
    out
}

fn abbreviate_v6(network: &Network, out: &mut String) {
    let address = network.network().address;
    let count = usize::from(network.bits).div_ceil(16).max(2);
    let words = words_of(&address);
    let (start, run) = zeros(&words[..count]);
    let has_v4 = run != count
        && start == 0
        && (run == 6
            || run == 5 && words[5] == 0xffff
            || run == 7 && address[14] != 0 && address[15] != 1);
    for (at, word) in words[..count].iter().enumerate() {
        if run != 0 && (start..start + run).contains(&at) {
            if at == start {
                out.push(':');
            }
            if at == count - 1 {
                out.push(':');
            }
        } else if has_v4 && at > 5 {
            out.push(if at == 6 { ':' } else { '.' });
            let _ = write!(out, "{}", address[2 * at]);
            if at != 7 || network.bits > 120 {
                let _ = write!(out, ".{}", address[2 * at + 1]);
            }
        } else {
            if !out.is_empty() {
                out.push(':');
            }
            let _ = write!(out, "{word:x}");
        }
    }
}

/// Reads an inet or a cidr.
///
/// # Errors
/// 22P02.
pub fn parse(kind: TypeId, text: &str) -> Result<Network> {
    let is_cidr = kind == TypeId::CIDR;
    let read = match text.contains(':') {
        true => parse_v6(text),
        false => parse_v4(text, is_cidr),
    };
    let network = read.ok_or_else(|| invalid(kind, text))?;
    match is_cidr && network != network.network() {
        true => Err(right_of_mask("invalid cidr value", text)),
        false => Ok(network),
    }
}

fn invalid(kind: TypeId, text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {kind}: \"{text}\""),
    )
}

fn right_of_mask(what: &str, text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("{what}: \"{text}\""),
    )
    .with_detail("Value has bits set to right of mask.")
}

fn number(digits: &str, max: u32) -> Option<u32> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok()?;
    (only_digits && number <= max).then_some(number)
}

fn parse_v4(text: &str, is_cidr: bool) -> Option<Network> {
    let (mantissa, bits) = match text.split_once('/') {
        Some((mantissa, bits)) => (mantissa, Some(number(bits, 32)? as u8)),
        None => (text, None),
    };
    let octets = match mantissa.strip_prefix("0x").or(mantissa.strip_prefix("0X")) {
        Some(digits) if is_cidr && !digits.is_empty() => hexadecimal(digits)?,
        _ => {
            // A dot may end what is no cidr.
            let mantissa = match mantissa.strip_suffix('.') {
                Some(_) if is_cidr => return None,
                Some(shorter) => shorter,
                None => mantissa,
            };
            let parts = mantissa.split('.');
            let parts = parts.map(|part| Some(number(part, 255)? as u8));
            parts.collect::<Option<Vec<u8>>>()?
        }
    };
    let given = octets.len();
    if given == 0 || given > 4 {
        return None;
    }
    let bits = match (bits, is_cidr) {
        (Some(bits), true) => bits,
        (Some(bits), false) => (usize::from(bits / 8) <= given).then_some(bits)?,
        (None, false) => (given == 4).then_some(32)?,
        (None, true) => {
            let of_class = match octets[0] {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            match of_class.max(given as u8 * 8) {
                8 if octets[0] == 224 => 4,
                bits => bits,
            }
        }
    };
    let mut address = [0; 16];
    address[..given].copy_from_slice(&octets);
    Some(Network {
        is_v6: false,
        bits,
        address,
    })
}

/// Bytes of hexadecimal digits; half a byte at the end is its upper half.
fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = digits
        .chars()
        .map(|c| Some(c.to_digit(16)? as u8))
        .collect();
    let digits = digits?;
    let pairs = digits.chunks(2);
    Some(
        pairs
            .map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0))
            .collect(),
    )
}

fn parse_v6(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((_, bits)) if bits.len() > 1 && bits.starts_with('0') => return None,
        Some((address, bits)) => (address, number(bits, 128)? as u8),
        None => (text, 128),
    };
    let address: std::net::Ipv6Addr = address.parse().ok()?;
    Some(Network {
        is_v6: true,
        bits,
        address: address.octets(),
    })
}

/// Appends the binary form.
pub(crate) fn send(kind: TypeId, network: &Network, out: &mut Vec<u8>) {
    let octets = network.octets();
    let family = if network.is_v6 { V6 } else { V4 };
    let is_cidr = u8::from(kind == TypeId::CIDR);
    out.extend_from_slice(&[family, network.bits, is_cidr, octets.len() as u8]);
    out.extend_from_slice(octets);
}

/// Reads the binary form.
///
/// # Errors
/// 22P03.
pub(crate) fn receive(kind: TypeId, bytes: &[u8]) -> Result<Network> {
    let name = if kind == TypeId::CIDR { "cidr" } else { "inet" };
    let bad = |what: &str| {
        let state = SqlState::INVALID_BINARY_REPRESENTATION;
        Error::new(state, format!("{what} in external \"{name}\" value"))
    };
    let [family, bits, _, len, octets @ ..] = bytes else {
        let message = "insufficient data left in message";
        return Err(Error::new(SqlState::PROTOCOL_VIOLATION, message));
    };
    if ![V4, V6].contains(family) {
        return Err(bad("invalid address family"));
    }
    let mut network = Network {
        is_v6: *family == V6,
        bits: *bits,
        address: [0; 16],
    };
    if network.bits > network.bits_max() {
        return Err(bad("invalid bits"));
    }
    let wanted = usize::from(network.bits_max() / 8);
    if usize::from(*len) != wanted || octets.len() != wanted {
        return Err(bad("invalid length"));
    }
    network.address[..wanted].copy_from_slice(octets);
    match kind == TypeId::CIDR && network != network.network() {
        true => Err(Error::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "invalid external \"cidr\" value",
        )
        .with_detail("Value has bits set to right of mask.")),
        false => Ok(network),
    }
}

/// Reads the address of a card.
///
/// # Errors
/// 22P02, 22003.
pub(crate) fn parse_mac(kind: TypeId, text: &str) -> Result<Datum> {
    let body = text.trim_matches(is_space);
    let found = match kind {
        TypeId::MACADDR => match mac_octets(body) {
            Some(octets) if octets.iter().any(|octet| *octet > 255) => {
                return Err(Error::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("invalid octet value in \"macaddr\" value: \"{text}\""),
                ))
            }
            octets => octets.map(|octets| {
                octets
                    .iter()
                    .fold(0, |all, octet| all << 8 | u64::from(*octet))
            }),
        },
        _ => mac8(body),
    };
    found
        .map(Datum::Unsigned8)
        .ok_or_else(|| invalid(kind, text))
}

/// The six numbers of one of the forms that a card's address has.
fn mac_octets(text: &str) -> Option<Vec<u32>> {
    let hex = |part: &str| match part.len() {
        0 => None,
        _ if part.starts_with('+') => None,
        _ => u32::from_str_radix(part, 16).ok(),
    };
    let separators: Vec<char> = text.chars().filter(|c| !c.is_ascii_hexdigit()).collect();
    let first = separators.first().copied();
    if separators.iter().any(|c| Some(*c) != first) {
        return None;
    }
    let parts: Vec<&str> = match first {
        Some(separator) => text.split(separator).collect(),
        None => vec![text],
    };
    let digits = match (first, parts.len()) {
        (Some(':' | '-'), 6) => {
            return parts.into_iter().map(hex).collect();
        }
        (Some(':' | '-'), 2) => 6,
        (Some('.' | '-'), 3) => 4,
        (None, 1) => 12,
        _ => return None,
    };
    if parts.iter().any(|part| part.len() != digits) {
        return None;
    }
    let all = parts.concat();
    (0..6).map(|at| hex(&all[2 * at..2 * at + 2])).collect()
}

/// Six or eight pairs of digits, with one separator or none between any of them.
fn mac8(text: &str) -> Option<u64> {
    let (mut octets, mut separator) = (Vec::new(), None);
    let mut rest = text;
    while !rest.is_empty() {
        let pair = rest.get(..2)?;
        if !pair.bytes().all(|byte| byte.is_ascii_hexdigit()) || octets.len() == 8 {
            return None;
        }
        octets.push(u8::from_str_radix(pair, 16).ok()?);
        rest = &rest[2..];
        if let Some(c @ (':' | '-' | '.')) = rest.chars().next() {
            if *separator.get_or_insert(c) != c {
                return None;
            }
            rest = &rest[1..];
            if rest.is_empty() {
                return None;
            }
        }
    }
    match octets.len() {
        6 => {
            octets.splice(3..3, [0xff, 0xfe]);
        }
        8 => {}
        _ => return None,
    }
    Some(
        octets
            .iter()
            .fold(0, |all, octet| all << 8 | u64::from(*octet)),
    )
}

/// How many bytes the address of a card has.
pub(crate) fn mac_len(kind: TypeId) -> usize {
    if kind == TypeId::MACADDR {
        6
    } else {
        8
    }
}

/// Appends the text form of a card's address.
pub(crate) fn write_mac(kind: TypeId, mac: u64, out: &mut String) {
    let octets = &mac.to_be_bytes()[8 - mac_len(kind)..];
    for (place, octet) in octets.iter().enumerate() {
        let colon = if place > 0 { ":" } else { "" };
        let _ = write!(out, "{colon}{octet:02x}");
    }
}
