//! The server's side of SCRAM-SHA-256, with and without channel binding: a state machine of two
//! steps, messages in, messages out.
//!
//! ```text
//! client                                      server
//!   p=tls-server-end-point,,n=,r=abc    ──►     Exchange::first
//!                                       ◄──   r=abcXYZ,s=<salt>,i=4096
//!   c=<binding>,r=abcXYZ,p=<proof>      ──►     Exchange::last
//!                                       ◄──   v=<signature>
//! ```
//!
//! The proof shows that the client knows the password, the signature that the server knows the
//! verifier; neither tells the other anything it could use elsewhere. With channel binding the
//! proof covers the hash of the certificate that the client saw, so nobody who stands between the
//! two with another certificate gets anywhere.
//!
//! A role that is not there, or that has no password, gets the very same messages, with a salt that
//! is always the same for its name; only the end says no, as to a wrong password. So nobody learns
//! which roles there are.
//!
//! # What it leaves out
//! Authorization identities and extensions, which PostgreSQL refuses too. The name in the client's
//! first message is not looked at: the startup message has told it.
//!
//! Source: RFC 5802, RFC 7677, RFC 5929; PostgreSQL 15 manual, section 55.3.1.

use base::error::{Error, ErrorClass, Result, SqlState};
use sql::functions::scram::{base64, from_base64, hmac, sha256, Verifier, SALT_BYTES};

use crate::frame::violation;

/// The mechanism without channel binding.
pub const PLAIN: &str = "SCRAM-SHA-256";

/// The mechanism with channel binding.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Random bytes in the server's half of the nonce, as in PostgreSQL.
pub const NONCE_BYTES: usize = 18;

/// How often the passwords of roles that are not there pretend to be hashed.
const MOCK_ITERATIONS: u32 = 4_096;

const BINDING_NAME: &str = "tls-server-end-point";

/// One exchange with one client.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// Whatever the client proves, the answer is no.
    is_doomed: bool,
    /// What the connection is bound to, where it is encrypted: the hash of the server's certificate.
    end_point: Option<Vec<u8>>,
    /// The client has chosen the mechanism with channel binding.
    is_bound: bool,
    /// The flag of the client's first message: `n`, `y` or `p`.
    flag: char,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

/// How an exchange ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client knows the password; this is the server's own proof.
    Proved(String),
    /// It does not, or there is no password to know.
    Refused,
}

impl Exchange {
    /// An exchange about a role's verifier, over a connection with that binding.
    pub fn new(verifier: Verifier, end_point: Option<Vec<u8>>) -> Exchange {
        Exchange {
            verifier,
            is_doomed: false,
            end_point,
            is_bound: false,
            flag: 'n',
            client_first_bare: String::new(),
            server_first: String::new(),
            nonce: String::new(),
        }
    }

    /// An exchange that looks like any other and ends with a refusal. The salt follows from `key`,
    /// which is the cluster's, and the name.
    pub fn mock(key: &[u8], user: &str, end_point: Option<Vec<u8>>) -> Exchange {
        let salt = hmac(key, user.as_bytes());
        let verifier = Verifier {
            iterations: MOCK_ITERATIONS,
            salt: salt[..SALT_BYTES].to_vec(),
            stored_key: [0; 32],
            server_key: [0; 32],
        };
        Exchange {
            is_doomed: true,
            ..Exchange::new(verifier, end_point)
        }
    }

    /// The mechanisms to offer, best first.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        match self.end_point {
            Some(_) => vec![PLUS, PLAIN],
            None => vec![PLAIN],
        }
    }

    /// Takes the client's choice and its first message; the server's first message.
    ///
    /// # Errors
    /// FATAL 08P01 for what is malformed or not on offer, 28000 where an attacker seems to have
    /// removed an offer, 0A000 for what is not supported.
    pub fn first(&mut self, mechanism: &str, message: &[u8], random: &[u8]) -> Result<&str> {
        assert_eq!(random.len(), NONCE_BYTES, "the server's half of a nonce");
        if !self.mechanisms().contains(&mechanism) {
            return Err(violation(
                "client selected an invalid SASL authentication mechanism",
            ));
        }
        self.is_bound = mechanism == PLUS;
        let message = text(message)?;
        let (flag, rest) = message
            .split_once(',')
            .ok_or_else(|| malformed("The message ends early."))?;
        self.check_flag(flag)?;
        let (identity, bare) = rest
            .split_once(',')
            .ok_or_else(|| malformed("The message ends early."))?;
        if identity.starts_with("a=") {
            return Err(unsupported(
                "client uses authorization identity, but it is not supported",
            ));
        }
        if !identity.is_empty() {
            return Err(malformed("Unexpected attribute in client-first-message."));
        }
        if bare.starts_with("m=") {
            return Err(unsupported(
                "client requires an unsupported SCRAM extension",
            ));
        }
        let mut attributes = bare.split(',');
        attribute(&mut attributes, 'n')?;
        let nonce = attribute(&mut attributes, 'r')?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| matches!(byte, 0x21..=0x7e)) {
            return Err(violation("non-printable characters in SCRAM nonce"));
        }
        self.client_first_bare = bare.to_owned();
        self.nonce = format!("{nonce}{}", base64(random));
        self.server_first = format!(
            "r={},s={},i={}",
            self.nonce,
            base64(&self.verifier.salt),
            self.verifier.iterations
        );
        Ok(&self.server_first)
    }

    /// Checks what the client says of channel binding against what it has chosen.
    fn check_flag(&mut self, flag: &str) -> Result<()> {
        match flag {
            "n" | "y" if self.is_bound => {
                return Err(malformed(
                    "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not \
                     include channel binding data.",
                ));
            }
            "y" if self.end_point.is_some() => {
                return Err(refused("SCRAM channel binding negotiation error").with_detail(
                    "The client supports SCRAM channel binding but thinks the server does not.  \
                     However, this server does support channel binding.",
                ));
            }
            "n" => self.flag = 'n',
            "y" => self.flag = 'y',
            _ => {
                let Some(name) = flag.strip_prefix("p=") else {
                    return Err(malformed("Unexpected channel-binding flag."));
                };
                if !self.is_bound {
                    return Err(malformed(
                        "The client selected SCRAM-SHA-256 without channel binding, but the \
                         SCRAM message includes channel binding data.",
                    ));
                }
                if name != BINDING_NAME {
                    return Err(violation(format!(
                        "unsupported SCRAM channel-binding type \"{name}\""
                    )));
                }
                self.flag = 'p';
            }
        }
        Ok(())
    }

    /// Takes the client's last message.
    ///
    /// # Errors
    /// FATAL 08P01 for what is malformed, 28000 where the client sees another certificate.
    pub fn last(&self, message: &[u8]) -> Result<Outcome> {
        let message = text(message)?;
        let (without_proof, proof) = message
            .rsplit_once(",p=")
            .ok_or_else(|| malformed("The proof is missing in client-final-message."))?;
        let mut attributes = without_proof.split(',');
        self.check_binding(attribute(&mut attributes, 'c')?)?;
        if attribute(&mut attributes, 'r')? != self.nonce {
            let error = violation("invalid SCRAM response");
            return Err(error.with_detail("Nonce does not match."));
        }
        let proof: [u8; 32] = from_base64(proof)
            .and_then(|proof| proof.try_into().ok())
            .ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let all = format!(
            "{},{},{without_proof}",
            self.client_first_bare, self.server_first
        );
        let signature = hmac(&self.verifier.stored_key, all.as_bytes());
        let mut key = proof;
        for (byte, other) in key.iter_mut().zip(signature) {
            *byte ^= other;
        }
        let is_right = same(&sha256(&key), &self.verifier.stored_key);
        if !is_right || self.is_doomed {
            return Ok(Outcome::Refused);
        }
        let signature = hmac(&self.verifier.server_key, all.as_bytes());
        Ok(Outcome::Proved(format!("v={}", base64(&signature))))
    }

    fn check_binding(&self, binding: &str) -> Result<()> {
        let Some(end_point) = self.end_point.as_ref().filter(|_| self.is_bound) else {
            let expected = base64(format!("{},,", self.flag).as_bytes());
            return match binding == expected {
                true => Ok(()),
                false => Err(violation(
                    "unexpected SCRAM channel-binding attribute in client-final-message",
                )),
            };
        };
        let mut expected = format!("p={BINDING_NAME},,").into_bytes();
        expected.extend_from_slice(end_point);
        match binding == base64(&expected) {
            true => Ok(()),
            false => Err(refused("SCRAM channel binding check failed")),
        }
    }
}

/// Whether two hashes are the same, in a time that does not tell where they differ.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

fn text(message: &[u8]) -> Result<&str> {
    std::str::from_utf8(message).map_err(|_| malformed("The message is not in UTF-8."))
}

/// The value of the next attribute, which must be of that name.
fn attribute<'a>(attributes: &mut impl Iterator<Item = &'a str>, name: char) -> Result<&'a str> {
    let next = attributes.next().unwrap_or_default();
    let mut letters = next.chars();
    if letters.next() == Some(name) && letters.next() == Some('=') {
        return Ok(letters.as_str());
    }
    Err(malformed(&format!("Expected attribute \"{name}\".")))
}

fn malformed(detail: &str) -> Error {
    violation("malformed SCRAM message").with_detail(detail)
}

fn refused(message: &str) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::INVALID_AUTHORIZATION,
        message,
    )
}

fn unsupported(message: &str) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::FEATURE_NOT_SUPPORTED,
        message,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677: password "pencil".
    const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
    const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

    fn pencil() -> Verifier {
        let salt = from_base64(SALT).unwrap();
        Verifier::parse(&sql::functions::scram::verifier("pencil", &salt)).unwrap()
    }

    /// A client that knows a password: its last message.
    fn prove(exchange: &Exchange, password: &str, binding: &[u8]) -> String {
        let first = exchange.server_first.clone();
        let nonce = first.split(',').next().unwrap().to_owned();
        let without_proof = format!("c={},{nonce}", base64(binding));
        let all = format!("{},{first},{without_proof}", exchange.client_first_bare);
        // Salting is the expensive part; hashing the salted password again gives both keys.
        let key = client_key(password, &exchange.verifier.salt);
        let signature = hmac(&sha256(&key), all.as_bytes());
        let proof: Vec<u8> = key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        format!("{without_proof},p={}", base64(&proof))
    }

    fn client_key(password: &str, salt: &[u8]) -> [u8; 32] {
        let mut last = hmac(password.as_bytes(), &[salt, &1u32.to_be_bytes()].concat());
        let mut salted = last;
        for _ in 1..4_096 {
            last = hmac(password.as_bytes(), &last);
            salted.iter_mut().zip(last).for_each(|(a, b)| *a ^= b);
        }
        hmac(&salted, b"Client Key")
    }

    #[test]
    fn the_example_of_the_standard() {
        let mut exchange = Exchange::new(pencil(), None);
        let first = format!("n,,n=user,r={CLIENT_NONCE}");
        exchange
            .first(PLAIN, first.as_bytes(), &[0; NONCE_BYTES])
            .unwrap();
        // The nonce of the standard is no base64, so it is put in its place.
        let nonce = format!("{CLIENT_NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
        exchange.server_first = format!("r={nonce},s={SALT},i=4096");
        exchange.nonce.clone_from(&nonce);
        let proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let last = format!("c=biws,r={nonce},p={proof}");
        let signature = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(
            exchange.last(last.as_bytes()).unwrap(),
            Outcome::Proved(signature.to_owned())
        );
    }

    fn begin(end_point: Option<&[u8]>, mechanism: &str, first: &str) -> Result<Exchange> {
        let mut exchange = Exchange::new(pencil(), end_point.map(<[u8]>::to_vec));
        exchange.first(mechanism, first.as_bytes(), &[7; NONCE_BYTES])?;
        Ok(exchange)
    }

    #[test]
    fn a_right_password_proves_itself_and_a_wrong_one_does_not() {
        let exchange = begin(None, PLAIN, "n,,n=,r=abc").unwrap();
        let right = exchange.last(prove(&exchange, "pencil", b"n,,").as_bytes());
        assert!(matches!(right.unwrap(), Outcome::Proved(_)));
        let wrong = exchange.last(prove(&exchange, "pencils", b"n,,").as_bytes());
        assert_eq!(wrong.unwrap(), Outcome::Refused);
    }

    #[test]
    fn a_role_that_is_not_there_is_refused_at_the_end_only() {
        let salt = |name: &str| {
            let mut exchange = Exchange::mock(b"key", name, None);
            let first = exchange.first(PLAIN, b"n,,n=,r=abc", &[1; NONCE_BYTES]);
            let salt = first.unwrap().split(',').nth(1).unwrap().to_owned();
            let last = prove(&exchange, "any", b"n,,");
            assert_eq!(exchange.last(last.as_bytes()).unwrap(), Outcome::Refused);
            salt
        };
        assert_eq!(salt("nobody"), salt("nobody"));
        assert_ne!(salt("nobody"), salt("no one"));
    }

    #[test]
    fn a_connection_is_bound_to_the_certificate_that_the_client_saw() {
        let seen = |hash: &[u8]| [b"p=tls-server-end-point,,", hash].concat();
        let first = "p=tls-server-end-point,,n=,r=abc";
        let exchange = begin(Some(b"hash"), PLUS, first).unwrap();
        let right = exchange.last(prove(&exchange, "pencil", &seen(b"hash")).as_bytes());
        assert!(matches!(right.unwrap(), Outcome::Proved(_)));
        let other = exchange.last(prove(&exchange, "pencil", &seen(b"other")).as_bytes());
        assert_eq!(other.unwrap_err().state(), SqlState::INVALID_AUTHORIZATION);
        // A client that binds nothing may do so, but not after it was told of nothing to bind.
        let exchange = begin(Some(b"hash"), PLAIN, "n,,n=,r=abc").unwrap();
        let right = exchange.last(prove(&exchange, "pencil", b"n,,").as_bytes());
        assert!(matches!(right.unwrap(), Outcome::Proved(_)));
        let removed = begin(Some(b"hash"), PLAIN, "y,,n=,r=abc").unwrap_err();
        assert_eq!(removed.state(), SqlState::INVALID_AUTHORIZATION);
        begin(None, PLAIN, "y,,n=,r=abc").unwrap();
    }

    #[test]
    fn malformed_messages_are_violations() {
        for (mechanism, first, state) in [
            (PLUS, "p=tls-server-end-point,,n=,r=abc", "08P01"),
            ("PLAIN", "n,,n=,r=abc", "08P01"),
            (PLAIN, "", "08P01"),
            (PLAIN, "n", "08P01"),
            (PLAIN, "n,", "08P01"),
            (PLAIN, "n,,", "08P01"),
            (PLAIN, "n,,n=", "08P01"),
            (PLAIN, "n,,n=,r=", "08P01"),
            (PLAIN, "n,,n=,r=a\tb", "08P01"),
            (PLAIN, "n,x,n=,r=abc", "08P01"),
            (PLAIN, "q,,n=,r=abc", "08P01"),
            (PLAIN, "p=tls-server-end-point,,n=,r=abc", "08P01"),
            (PLAIN, "n,a=else,n=,r=abc", "0A000"),
            (PLAIN, "n,,m=1,n=,r=abc", "0A000"),
        ] {
            let error = begin(None, mechanism, first).unwrap_err();
            assert_eq!(error.state().as_str(), state, "{first}");
        }
        let exchange = begin(None, PLAIN, "n,,n=,r=abc").unwrap();
        let good = prove(&exchange, "pencil", b"n,,");
        for bad in [
            String::new(),
            good.replace("c=biws", "c=eSws"),
            good.replace("r=abc", "r=abd"),
            good.replace(",p=", ",q="),
            good[..good.len() - 1].to_owned(),
        ] {
            let error = exchange.last(bad.as_bytes()).unwrap_err();
            assert_eq!(error.state(), SqlState::PROTOCOL_VIOLATION, "{bad}");
        }
    }
}
