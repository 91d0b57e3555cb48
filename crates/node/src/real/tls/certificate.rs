//! What a certificate says, read from its DER form: names, number, how it was signed.
//!
//! Only certificates are read that are the node's own or that the TLS library has checked. Even so
//! nothing here trusts a length.
//!
//! Source: X.690, RFC 5280.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kv::{KeyHash, KEY_HASH_BYTES};
use pg::auth::ClientCertificate;
use ring::digest::{digest, Algorithm, SHA256, SHA384, SHA512};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const BOOLEAN: u8 = 0x01;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// Alternative names of a subject.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// What a key may be used for.
const KEY_USES: &[u8] = &[0x55, 0x1d, 0x25];
/// To be a server.
const SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// Attributes of names: the OID's last number below 2.5.4, and how they are written.
const ATTRIBUTES: [(u8, &str); 8] = [
    (3, "CN"),
    (5, "serialNumber"),
    (6, "C"),
    (7, "L"),
    (8, "ST"),
    (10, "O"),
    (11, "OU"),
    (12, "title"),
];

/// Signatures that are not made with SHA-256: the OID, and the hash.
const OTHER_HASHES: [(&[u8], &Algorithm); 4] = [
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c],
        &SHA384,
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d],
        &SHA512,
    ),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], &SHA384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], &SHA512),
];

/// What a certificate says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    serial: Vec<u8>,
    issuer: Vec<(String, String)>,
    subject: Vec<(String, String)>,
    /// The names of hosts that it is for, and their addresses.
    pub names: Vec<String>,
    /// Whether its key may be used to be a server.
    pub is_for_servers: bool,
    /// Its public key: SubjectPublicKeyInfo as it stands there, its tag and length included.
    public_key: Vec<u8>,
    signature: Vec<u8>,
}

/// Elements one after the other.
#[derive(Clone, Copy)]
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The next element: its tag and what is in it.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let bytes = rest.get(..count)?;
                rest = &rest[count..];
                bytes
                    .iter()
                    .fold(0, |all, byte| all << 8 | usize::from(*byte))
            }
            _ => return None,
        };
        let content = rest.get(..length)?;
        self.0 = &rest[length..];
        Some((tag, content))
    }

    /// The next element, which must be of that kind.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// The next element, if it is of that kind.
    fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        match self.0.first() == Some(&tag) {
            true => self.expect(tag),
            false => None,
        }
    }
}

impl Certificate {
    /// Reads a certificate; none if it is none.
    pub fn read(der: &[u8]) -> Option<Certificate> {
        let mut outer = Elements(Elements(der).expect(SEQUENCE)?);
        let mut body = Elements(outer.expect(SEQUENCE)?);
        let signature = Elements(outer.expect(SEQUENCE)?).expect(OID)?.to_vec();
        body.optional(VERSION);
        let mut certificate = Certificate {
            serial: body.expect(INTEGER)?.to_vec(),
            signature,
            ..Certificate::default()
        };
        body.expect(SEQUENCE)?;
        certificate.issuer = read_name(body.expect(SEQUENCE)?)?;
        // How long it is valid, which the library has looked at.
        body.expect(SEQUENCE)?;
        certificate.subject = read_name(body.expect(SEQUENCE)?)?;
        let from_key = body.0;
        body.expect(SEQUENCE)?;
        let length = from_key.len() - body.0.len();
        certificate.public_key = from_key[..length].to_vec();
        while let Some((tag, content)) = body.next() {
            if tag == EXTENSIONS {
                certificate.read_extensions(content)?;
            }
        }
        Some(certificate)
    }

    fn read_extensions(&mut self, content: &[u8]) -> Option<()> {
        let mut extensions = Elements(Elements(content).expect(SEQUENCE)?);
        while let Some((_, extension)) = extensions.next() {
            let mut parts = Elements(extension);
            let oid = parts.expect(OID)?;
            parts.optional(BOOLEAN);
            let value = parts.expect(OCTETS)?;
            match oid {
                ALTERNATIVE_NAMES => {
                    let mut names = Elements(Elements(value).expect(SEQUENCE)?);
                    while let Some((tag, name)) = names.next() {
                        self.names.extend(host_name(tag, name));
                    }
                }
                KEY_USES => {
                    let mut uses = Elements(Elements(value).expect(SEQUENCE)?);
                    while let Some((_, oid)) = uses.next() {
                        self.is_for_servers |= oid == SERVER;
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Reads the first certificate of a PEM file; none if there is none.
    pub fn from_pem(text: &str) -> Option<Certificate> {
        let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        Certificate::read(&der)
    }

    /// The common name of whom it is about, where nothing else is said of it.
    pub fn lone_common_name(&self) -> Option<&str> {
        match &self.subject[..] {
            [(name, value)] if name == "CN" => Some(value),
            _ => None,
        }
    }

    /// The common name of whom it is about.
    pub fn common_name(&self) -> Option<&str> {
        let mut names = self.subject.iter().rev();
        names
            .find(|(name, _)| name == "CN")
            .map(|(_, value)| &value[..])
    }

    /// What tells its key from others.
    pub fn key(&self) -> KeyHash {
        let mut key = [0; KEY_HASH_BYTES];
        key.copy_from_slice(digest(&SHA256, &self.public_key).as_ref());
        KeyHash(key)
    }

    /// Its serial number as a list of revoked ones needs it: bytes, most significant first.
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The hash of the certificate that channel binding is about (RFC 5929, section 4.1).
    pub fn end_point(&self, der: &[u8]) -> Vec<u8> {
        let other = OTHER_HASHES.iter().find(|(oid, _)| *oid == self.signature);
        let algorithm = other.map_or(&SHA256, |(_, algorithm)| algorithm);
        digest(algorithm, der).as_ref().to_vec()
    }

    /// What is kept of a client's certificate.
    pub fn into_client(self) -> ClientCertificate {
        let slashes = |names: &[(String, String)]| {
            let parts = names.iter().map(|(name, value)| format!("/{name}={value}"));
            parts.collect::<String>()
        };
        let reversed = self.subject.iter().rev();
        let reversed: Vec<_> = reversed
            .map(|(name, value)| format!("{name}={}", escape(value)))
            .collect();
        ClientCertificate {
            common_name: self.common_name().map(str::to_owned),
            subject: slashes(&self.subject),
            subject_reversed: reversed.join(","),
            issuer: slashes(&self.issuer),
            serial: decimal(&self.serial),
        }
    }
}

fn host_name(tag: u8, name: &[u8]) -> Option<String> {
    match (tag, name.len()) {
        (DNS_NAME, _) => String::from_utf8(name.to_vec()).ok(),
        (IP_ADDRESS, 4) => {
            let bytes: [u8; 4] = name.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(bytes)).to_string())
        }
        (IP_ADDRESS, 16) => {
            let bytes: [u8; 16] = name.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_string())
        }
        _ => None,
    }
}

/// The attributes of a name, in order.
fn read_name(content: &[u8]) -> Option<Vec<(String, String)>> {
    let mut sets = Elements(content);
    let mut name = Vec::new();
    while let Some((tag, set)) = sets.next() {
        if tag != SET {
            return None;
        }
        let mut attributes = Elements(set);
        while let Some((_, attribute)) = attributes.next() {
            let mut parts = Elements(attribute);
            let oid = parts.expect(OID)?;
            let (_, value) = parts.next()?;
            let known = match oid {
                [0x55, 0x04, last] => ATTRIBUTES.iter().find(|(number, _)| number == last),
                _ => None,
            };
            let known = known.map_or_else(|| dotted(oid), |(_, name)| (*name).to_owned());
            name.push((known, String::from_utf8_lossy(value).into_owned()));
        }
    }
    Some(name)
}

/// An OID as numbers.
fn dotted(oid: &[u8]) -> String {
    let Some((&first, rest)) = oid.split_first() else {
        return String::new();
    };
    let mut text = format!(
        "{}.{}",
        (first / 40).min(2),
        first - 40 * (first / 40).min(2)
    );
    let mut number: u64 = 0;
    for byte in rest {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            text.push_str(&format!(".{number}"));
            number = 0;
        }
    }
    text
}

/// A value as RFC 2253 writes it.
fn escape(value: &str) -> String {
    let mut text = String::new();
    for character in value.chars() {
        if matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

/// A number of any length, most significant byte first, in decimal.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits
        .iter()
        .rev()
        .map(|digit| char::from(b'0' + digit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_decimal() {
        assert_eq!(decimal(&[]), "0");
        assert_eq!(decimal(&[0, 1, 0]), "256");
        assert_eq!(decimal(&[0xff; 8]), u64::MAX.to_string());
        assert_eq!(decimal(&[0xff; 16]), u128::MAX.to_string());
    }

    #[test]
    fn oids_in_numbers() {
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01]),
            "1.2.840.113549.1.9.1"
        );
    }

    #[test]
    fn nonsense_is_no_certificate() {
        for bytes in [
            &b""[..],
            b"0",
            b"\x30\x80",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x03\x30\x01\x30",
        ] {
            assert_eq!(Certificate::read(bytes), None);
        }
    }
}
