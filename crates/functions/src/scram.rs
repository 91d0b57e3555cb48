//! SHA-256 and the verifiers of SCRAM-SHA-256, as `pg_authid` keeps passwords.
//!
//! Source: FIPS 180-4, RFC 2104, RFC 5802. A verifier proves a password without telling it:
//!
//! ```
//! use functions::scram;
//! let verifier = scram::verifier("secret", &[7; 16]);
//! assert!(verifier.starts_with("SCRAM-SHA-256$4096:BwcHBwcHBwcHBwcHBwcHBw==$"));
//! assert!(scram::is_verifier(&verifier));
//! ```

use super::hashing::md5_hex;

/// How often the password is hashed.
const ITERATIONS: u32 = 4_096;

/// Bytes of a salt, as in PostgreSQL.
pub const SALT_BYTES: usize = 16;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The first 32 bits of the fractional parts of the square roots of the first 8 primes.
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    for block in padded.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut out = [0; 32];
    for (place, word) in state.iter().enumerate() {
        out[place * 4..place * 4 + 4].copy_from_slice(&word.to_be_bytes());
    }
    out
}

fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for at in 16..64 {
        let (a, b) = (words[at - 15], words[at - 2]);
        let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        words[at] = words[at - 16]
            .wrapping_add(low)
            .wrapping_add(words[at - 7])
            .wrapping_add(high);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in words.iter().zip(ROUNDS) {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = e & f ^ !e & g;
        let first = h
            .wrapping_add(sum)
            .wrapping_add(chosen)
            .wrapping_add(round)
            .wrapping_add(*word);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let most = a & b ^ a & c ^ b & c;
        let second = sum.wrapping_add(most);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(add);
    }
}

/// The HMAC-SHA-256 of a message.
pub fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    match key.len() > block.len() {
        true => block[..32].copy_from_slice(&sha256(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let mut inner: Vec<u8> = block.iter().map(|byte| byte ^ 0x36).collect();
    inner.extend_from_slice(message);
    let mut outer: Vec<u8> = block.iter().map(|byte| byte ^ 0x5c).collect();
    outer.extend_from_slice(&sha256(&inner));
    sha256(&outer)
}

/// The password with its salt, hashed so often that guessing is slow.
fn salted(password: &str, salt: &[u8]) -> [u8; 32] {
    let mut first = salt.to_vec();
    first.extend_from_slice(&1u32.to_be_bytes());
    let mut last = hmac(password.as_bytes(), &first);
    let mut out = last;
    for _ in 1..ITERATIONS {
        last = hmac(password.as_bytes(), &last);
        for (byte, other) in out.iter_mut().zip(last) {
            *byte ^= other;
        }
    }
    out
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64, padded.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            match place <= chunk.len() {
                true => out.push(char::from(
                    LETTERS[(bits >> (18 - 6 * place) & 63) as usize],
                )),
                false => out.push('='),
            }
        }
    }
    out
}

/// The bytes of padded base64; none for anything else.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    if text.len() % 4 != 0 {
        return None;
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let letters = &text.as_bytes()[..text.len() - padding];
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(letters.len() * 3 / 4);
    for group in letters.chunks(4) {
        let mut bits = 0u32;
        for place in 0..4 {
            let value = match group.get(place) {
                Some(letter) => LETTERS.iter().position(|known| known == letter)? as u32,
                None => 0,
            };
            bits = bits << 6 | value;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// What is kept of a password, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// How often the password was hashed.
    pub iterations: u32,
    /// Its salt.
    pub salt: Vec<u8>,
    /// The hash of the client's key, against which a proof is checked.
    pub stored_key: [u8; 32],
    /// The key with which the server proves that it knows the verifier.
    pub server_key: [u8; 32],
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({} iterations)", self.iterations)
    }
}

impl Verifier {
    /// Reads `SCRAM-SHA-256$iterations:salt$stored:server`; none for anything else.
    pub fn parse(text: &str) -> Option<Verifier> {
        let mut parts = text.split('$');
        if parts.next()? != "SCRAM-SHA-256" {
            return None;
        }
        let (iterations, salt) = parts.next()?.split_once(':')?;
        let (stored, server) = parts.next()?.split_once(':')?;
        if parts.next().is_some() {
            return None;
        }
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|count| *count > 0)?,
            salt: from_base64(salt)?,
            stored_key: from_base64(stored)?.try_into().ok()?,
            server_key: from_base64(server)?.try_into().ok()?,
        })
    }
}

/// What is kept of a password.
pub fn verifier(password: &str, salt: &[u8]) -> String {
    // As PostgreSQL does: what cannot be prepared is taken as it is.
    let prepared = stringprep::saslprep(password);
    let salted = salted(prepared.as_deref().unwrap_or(password), salt);
    let stored = sha256(&hmac(&salted, b"Client Key"));
    let server = hmac(&salted, b"Server Key");
    format!(
        "SCRAM-SHA-256${ITERATIONS}:{}${}:{}",
        base64(salt),
        base64(&stored),
        base64(&server)
    )
}

/// Whether a text is such a verifier, or the MD5 form of older servers. That form is kept, so that
/// a dump of another server can be read back, but nobody can log in with it.
pub fn is_verifier(text: &str) -> bool {
    let md5 = text
        .strip_prefix("md5")
        .is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    md5 || Verifier::parse(text).is_some()
}

/// Whether a verifier, of either form, is that of a role's empty password.
pub fn is_of_empty(text: &str, role: &str) -> bool {
    match Verifier::parse(text) {
        // Whoever gives one that was hashed more often knows what it is of.
        Some(known) if known.iterations == ITERATIONS => {
            let own = Verifier::parse(&verifier("", &known.salt));
            own.is_some_and(|own| own.stored_key == known.stored_key)
        }
        Some(_) => false,
        None => text.strip_prefix("md5") == Some(&md5_hex(role.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn known_hashes() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sha256(b"abc")), abc);
        let long = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&sha256(text)), long);
        let mac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let message = b"what do ya want for nothing?";
        assert_eq!(hex(&hmac(b"Jefe", message)), mac);
    }

    #[test]
    fn the_empty_password_is_known() {
        assert!(is_of_empty(&verifier("", b"salt"), "somebody"));
        assert!(!is_of_empty(&verifier("x", b"salt"), "somebody"));
        let own = format!("md5{}", md5_hex(b"somebody"));
        assert!(is_of_empty(&own, "somebody"));
        assert!(!is_of_empty(&own, "another"));
    }

    #[test]
    fn base64_comes_back() {
        for length in 0..20u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(77)).collect();
            assert_eq!(from_base64(&base64(&bytes)), Some(bytes));
        }
        for wrong in ["a", "abc", "ab=c", "a===", "====", "äbc="] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_verifier_of_postgresql() {
        const OF_POSTGRESQL: &str = "SCRAM-SHA-256$4096:KHqaM/l7WMAik7kn2RDbMg==$2J/RAbM+zLJsDaDbDfKbIMWBLiqQi82SDsGUdHhHcs0=:NuWH8FDJ3xTXunTlFZu2h1X5xjPdZXwkFt+8u2NTsuQ=";
        let known = Verifier::parse(OF_POSTGRESQL).unwrap();
        assert_eq!(verifier("seçret ½", &known.salt), OF_POSTGRESQL);
        assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
        assert!(is_verifier(&verifier("secret", b"0123456789abcdef")));
        assert!(is_verifier("md50123456789abcdef0123456789ABCDEF"));
        assert!(!is_verifier("md5 is the first word of this password"));
        assert!(!is_verifier("SCRAM-SHA-256$4096:c2FsdA==$short:short"));
        assert!(!is_verifier("secret"));
    }
}
