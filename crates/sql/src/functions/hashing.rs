//! MD5, by which `md5()` names its results. It protects nothing.

use md5::{Digest, Md5};

/// The hash of some bytes in hexadecimal.
pub fn md5_hex(bytes: &[u8]) -> String {
    let digest = Md5::digest(bytes);
    let mut text = String::with_capacity(2 * digest.len());
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    for byte in digest {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::md5_hex;

    #[test]
    fn known_hashes() {
        assert_eq!(md5_hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            md5_hex(b"message digest"),
            "f96b697d7cb7938d525a2f31aaf161d0"
        );
        assert_eq!(md5_hex(&[b'a'; 64]), "014842d480b571495a4a0363793f7367");
    }
}
