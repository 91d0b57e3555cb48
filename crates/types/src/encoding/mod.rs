//! Character sets of clients and of files: what their names are, and what their bytes are in UTF-8,
//! which is what everything is kept and computed in.
//!
//! ```text
//! set client_encoding to 'latin1'
//! select 'caf\xe9'      ──decode──►  'café'      the session, as ever in UTF-8
//!        'caf\xe9'      ◄──encode──  'café'
//!        22P05          ◄──encode──  '€'         LATIN1 has none
//! ```
//!
//! # Which character is which
//! `encoding_rs` knows the mappings as browsers have them. PostgreSQL's differ in places, and what an
//! application has stored must come back, so [`map`] makes of the library's what PostgreSQL has: the
//! very same characters in both directions, which a script of the corpus compares.
//!
//! # Invariants
//! - UTF-8 is only looked at, as it was without this module, and never copied.
//! - To ASCII all of these are ASCII: text without other characters is as quick.
//! - What is not finished at the end of some bytes is told apart from what is wrong
//!   ([`Encoding::decode_some`]), so a stream may be cut anywhere.
//!
//! # What it leaves out
//! `BIG5`, `EUC_TW`, `JOHAB`, `EUC_JIS_2004`, `SHIFT_JIS_2004` and `MULE_INTERNAL` have names and
//! numbers, and no conversion (0A000 for a setting, 42883 for `convert`). The words of a `tsvector` and
//! a `tsquery` stay UTF-8 in their binary forms.
//!
//! Source: PostgreSQL 15 manual, section 24.3.

mod map;

use std::borrow::Cow;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::growth::{self, Growing};
use map::Map;

/// So many bytes are converted between two counts of work.
const PIECE_BYTES: usize = 4096;

/// So many bytes of a character an error shows at most.
const SHOWN_BYTES_MAX: usize = 8;

/// A character set, by PostgreSQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(u8);

impl Default for Encoding {
    fn default() -> Encoding {
        Encoding::UTF8
    }
}

/// How the bytes of a character are told from those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing is converted: what comes is UTF-8, and so is what leaves.
    Kept,
    /// One byte each.
    Single,
    /// EUC of one set of two bytes.
    Euc,
    /// EUC with half-width katakana and a set of three bytes.
    EucJp,
    /// Shift JIS.
    Sjis,
    /// Two bytes, of which the second may be any.
    Double,
    /// One, two or four bytes.
    Gb18030,
    /// There is no conversion.
    Unknown,
}

/// Name, bytes of a character at most, form; by number.
const KNOWN: [(&str, i32, Form); 42] = [
    ("SQL_ASCII", 1, Form::Kept),
    ("EUC_JP", 3, Form::EucJp),
    ("EUC_CN", 3, Form::Euc),
    ("EUC_KR", 3, Form::Euc),
    ("EUC_TW", 4, Form::Unknown),
    ("EUC_JIS_2004", 3, Form::Unknown),
    ("UTF8", 4, Form::Kept),
    ("MULE_INTERNAL", 4, Form::Unknown),
    ("LATIN1", 1, Form::Single),
    ("LATIN2", 1, Form::Single),
    ("LATIN3", 1, Form::Single),
    ("LATIN4", 1, Form::Single),
    ("LATIN5", 1, Form::Single),
    ("LATIN6", 1, Form::Single),
    ("LATIN7", 1, Form::Single),
    ("LATIN8", 1, Form::Single),
    ("LATIN9", 1, Form::Single),
    ("LATIN10", 1, Form::Single),
    ("WIN1256", 1, Form::Single),
    ("WIN1258", 1, Form::Single),
    ("WIN866", 1, Form::Single),
    ("WIN874", 1, Form::Single),
    ("KOI8R", 1, Form::Single),
    ("WIN1251", 1, Form::Single),
    ("WIN1252", 1, Form::Single),
    ("ISO_8859_5", 1, Form::Single),
    ("ISO_8859_6", 1, Form::Single),
    ("ISO_8859_7", 1, Form::Single),
    ("ISO_8859_8", 1, Form::Single),
    ("WIN1250", 1, Form::Single),
    ("WIN1253", 1, Form::Single),
    ("WIN1254", 1, Form::Single),
    ("WIN1255", 1, Form::Single),
    ("WIN1257", 1, Form::Single),
    ("KOI8U", 1, Form::Single),
    ("SJIS", 2, Form::Sjis),
    ("BIG5", 2, Form::Unknown),
    ("GBK", 2, Form::Double),
    ("UHC", 2, Form::Double),
    ("GB18030", 4, Form::Gb18030),
    ("JOHAB", 3, Form::Unknown),
    ("SHIFT_JIS_2004", 2, Form::Unknown),
];

/// Other names, in small letters and digits alone.
const ALIASES: [(&str, &str); 43] = [
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("windows1250", "WIN1250"),
    ("windows1251", "WIN1251"),
    ("windows1252", "WIN1252"),
    ("windows1253", "WIN1253"),
    ("windows1254", "WIN1254"),
    ("windows1255", "WIN1255"),
    ("windows1256", "WIN1256"),
    ("windows1257", "WIN1257"),
    ("windows1258", "WIN1258"),
    ("windows866", "WIN866"),
    ("windows874", "WIN874"),
    ("windows932", "SJIS"),
    ("windows936", "GBK"),
    ("windows949", "UHC"),
    ("windows950", "BIG5"),
    ("eucjis2004", "EUC_JIS_2004"),
    ("shiftjis2004", "SHIFT_JIS_2004"),
    ("muleinternal", "MULE_INTERNAL"),
    ("sqlascii", "SQL_ASCII"),
];

/// The character at the start of some bytes.
enum Next {
    /// It has so many bytes.
    Whole(usize),
    /// The rest of it is still to come.
    Unfinished,
    /// There is none that begins so.
    Wrong,
}

impl Encoding {
    /// UTF-8.
    pub const UTF8: Encoding = Encoding(6);

    /// Bytes of which nothing is known; they are taken for UTF-8.
    pub const SQL_ASCII: Encoding = Encoding(0);

    /// The encoding that is called so, however it is spelled.
    pub fn by_name(name: &str) -> Option<Encoding> {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let alias = ALIASES.iter().find(|alias| alias.0 == plain);
        let is_it = |known: &str| match alias {
            Some((_, name)) => known == *name,
            None => known.replace('_', "").eq_ignore_ascii_case(&plain),
        };
        let place = KNOWN.iter().position(|known| is_it(known.0))?;
        u8::try_from(place).ok().map(Encoding)
    }

    /// The encoding with PostgreSQL's number.
    pub fn by_number(number: i64) -> Option<Encoding> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < KNOWN.len()).then_some(Encoding(number))
    }

    /// PostgreSQL's number.
    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        KNOWN[usize::from(self.0)].0
    }

    /// How many bytes a character has at most.
    pub fn char_bytes_max(self) -> i32 {
        KNOWN[usize::from(self.0)].1
    }

    fn form(self) -> Form {
        KNOWN[usize::from(self.0)].2
    }

    /// Whether there is a conversion between it and UTF-8.
    pub fn is_convertible(self) -> bool {
        self.form() != Form::Unknown
    }

    /// Whether nothing has to be converted.
    #[inline]
    pub fn is_kept(self) -> bool {
        self == Encoding::UTF8 || self == Encoding::SQL_ASCII
    }

    /// Text in this encoding as UTF-8.
    ///
    /// # Errors
    /// 22021 for what is no character, 22P05 for one that UTF-8 has not.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        if self.is_kept() {
            return utf8(bytes).map(Cow::Borrowed);
        }
        if bytes.is_ascii() {
            return Ok(Cow::Borrowed(
                std::str::from_utf8(bytes).unwrap_or_default(),
            ));
        }
        let (text, used) = self.decode_some(bytes)?;
        match used == bytes.len() {
            true => Ok(Cow::Owned(text)),
            false => Err(self.invalid(&bytes[used..])),
        }
    }

    /// As much of a text as can be told yet, as UTF-8, and how many bytes that was.
    ///
    /// # Errors
    /// As [`Encoding::decode`].
    pub fn decode_some(self, bytes: &[u8]) -> Result<(String, usize)> {
        let map = self.map()?;
        let mut text = Growing::with_capacity(bytes.len() + bytes.len() / 4)?;
        let mut at = 0;
        let mut counted = 0;
        while at < bytes.len() {
            if at - counted >= PIECE_BYTES {
                coro::work(at - counted)?;
                counted = at;
            }
            let plain = bytes[at..].iter().take(PIECE_BYTES);
            let plain = plain.take_while(|byte| byte.is_ascii()).count();
            if plain > 0 {
                text.push_str(std::str::from_utf8(&bytes[at..at + plain]).unwrap_or_default())?;
                at += plain;
                continue;
            }
            let rest = &bytes[at..];
            match self.next(rest) {
                Next::Unfinished => break,
                Next::Wrong => return Err(self.invalid(rest)),
                Next::Whole(length) => {
                    let found = map.char_of(&rest[..length]);
                    let found = found
                        .ok_or_else(|| untranslatable(&rest[..length], self, Encoding::UTF8))?;
                    text.push(found)?;
                    at += length;
                }
            }
        }
        Ok((text.into_string(), at))
    }

    /// UTF-8 in this encoding.
    ///
    /// # Errors
    /// 22P05 for a character that it has not.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>> {
        if self.is_kept() || text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let mut out = Vec::with_capacity(text.len());
        self.encode_onto(text, &mut out)?;
        Ok(Cow::Owned(out))
    }

    /// Appends UTF-8 in this encoding.
    ///
    /// # Errors
    /// As [`Encoding::encode`].
    #[inline]
    pub fn encode_onto(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        if self.is_kept() {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        self.convert_onto(text, out)
    }

    fn convert_onto(self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        let map = self.map()?;
        let mut counted = 0;
        for (at, letter) in text.char_indices() {
            if at - counted >= PIECE_BYTES {
                coro::work(at - counted)?;
                growth::check_room(out.len(), 0)?;
                counted = at;
            }
            if letter.is_ascii() {
                out.push(letter as u8);
            } else if !map.put(letter, out) {
                let wrong = letter.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                return Err(untranslatable(&wrong, Encoding::UTF8, self));
            }
        }
        Ok(())
    }

    /// Puts what stands behind a mark, which is UTF-8, into this encoding.
    ///
    /// # Errors
    /// As [`Encoding::encode`].
    pub fn encode_from(self, mark: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.is_kept() || out[mark..].is_ascii() {
            return Ok(());
        }
        let tail = out.split_off(mark);
        let text = utf8(&tail)?;
        self.encode_onto(text, out)
    }

    fn map(self) -> Result<&'static Map> {
        match self.is_convertible() {
            true => Ok(map::of(usize::from(self.0))),
            false => Err(Error::unsupported(format!(
                "conversion between {} and UTF8",
                self.name()
            ))),
        }
    }

    /// How long the character at the start of these bytes, which is none of ASCII, claims to be.
    fn length(self, bytes: &[u8]) -> usize {
        match (self.form(), bytes[0]) {
            (Form::EucJp, 0x8f) => 3,
            (Form::Sjis, 0xa1..=0xdf) | (Form::Single | Form::Unknown, _) => 1,
            (Form::Gb18030, _) if matches!(bytes.get(1), Some(0x30..=0x39)) => 4,
            (Form::Kept, 0xc0..=0xdf) => 2,
            (Form::Kept, 0xe0..=0xef) => 3,
            (Form::Kept, 0xf0..=0xf7) => 4,
            (Form::Kept, _) => 1,
            _ => 2,
        }
    }

    fn next(self, bytes: &[u8]) -> Next {
        let length = self.length(bytes);
        let Some(whole) = bytes.get(..length) else {
            return Next::Unfinished;
        };
        let is_euc = |byte: &u8| (0xa1..=0xfe).contains(byte);
        let is_right = match (self.form(), whole) {
            (Form::Euc, all) => all.iter().all(is_euc),
            (Form::EucJp, [0x8e, kana]) => (0xa1..=0xdf).contains(kana),
            (Form::EucJp, [0x8f, rest @ ..]) => rest.iter().all(is_euc),
            (Form::EucJp, all) => all.iter().all(is_euc),
            (Form::Sjis, [first, second]) => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                    && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
            }
            (Form::Double, [_, second]) => *second != 0,
            (Form::Gb18030, [first, second]) => {
                matches!(first, 0x81..=0xfe) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
            }
            (Form::Gb18030, [first, second, third, fourth]) => {
                matches!(first, 0x81..=0xfe)
                    && second.is_ascii_digit()
                    && matches!(third, 0x81..=0xfe)
                    && fourth.is_ascii_digit()
            }
            _ => true,
        };
        match is_right {
            true => Next::Whole(length),
            false => Next::Wrong,
        }
    }

    /// 22021 for the character at the start of these bytes.
    pub fn invalid(self, bytes: &[u8]) -> Error {
        let length = bytes.first().map_or(1, |_| self.length(bytes));
        let shown = &bytes[..length.min(bytes.len()).min(SHOWN_BYTES_MAX)];
        Error::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"{}\": {}",
                self.name(),
                shown_bytes(shown)
            ),
        )
    }

    /// How many characters these bytes are.
    ///
    /// # Errors
    /// 22021; 0A000 where the encoding has no conversion.
    pub fn count(self, bytes: &[u8]) -> Result<usize> {
        if self == Encoding::SQL_ASCII {
            return Ok(bytes.len());
        }
        if self == Encoding::UTF8 {
            return utf8(bytes).map(|text| text.chars().count());
        }
        self.map()?;
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            at += match bytes[at].is_ascii() {
                true => 1,
                false => match self.next(&bytes[at..]) {
                    Next::Whole(length) => length,
                    _ => return Err(self.invalid(&bytes[at..])),
                },
            };
            count += 1;
        }
        coro::work(at)?;
        Ok(count)
    }
}

fn shown_bytes(bytes: &[u8]) -> String {
    let shown: Vec<_> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    shown.join(" ")
}

/// 22P05.
fn untranslatable(bytes: &[u8], from: Encoding, to: Encoding) -> Error {
    Error::new(
        SqlState::of("22P05"),
        format!(
            "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
            shown_bytes(bytes),
            from.name(),
            to.name()
        ),
    )
}

/// Bytes as UTF-8.
fn utf8(bytes: &[u8]) -> Result<&str> {
    let wrong = |error: std::str::Utf8Error| Encoding::UTF8.invalid(&bytes[error.valid_up_to()..]);
    std::str::from_utf8(bytes).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_spelled() {
        for (name, found) in [
            ("utf-8", "UTF8"),
            ("Latin 1", "LATIN1"),
            ("ISO_8859-15", "LATIN9"),
            ("iso-8859-5", "ISO_8859_5"),
            ("windows-1252", "WIN1252"),
            ("Shift_JIS", "SJIS"),
            ("sql_ascii", "SQL_ASCII"),
        ] {
            assert_eq!(Encoding::by_name(name).map(Encoding::name), Some(found));
        }
        assert_eq!(Encoding::by_name("latin11"), None);
        assert_eq!(Encoding::by_name(""), None);
        for (number, (name, ..)) in KNOWN.iter().enumerate() {
            let found = Encoding::by_name(name).map(Encoding::number);
            assert_eq!(found, Some(number as i32), "{name}");
        }
    }

    #[test]
    fn a_character_may_be_cut() {
        let sjis = Encoding::by_name("sjis").unwrap();
        let bytes = sjis.encode("aあbｱ").unwrap().into_owned();
        assert_eq!(bytes, b"a\x82\xa0b\xb1");
        assert_eq!(sjis.decode(&bytes).unwrap(), "aあbｱ");
        assert_eq!(sjis.decode_some(&bytes[..2]).unwrap(), ("a".to_owned(), 1));
        let cut = sjis.decode(&bytes[..2]).unwrap_err();
        assert_eq!(
            cut.message(),
            "invalid byte sequence for encoding \"SJIS\": 0x82"
        );
    }

    #[test]
    fn all_that_can_be_read_can_be_written() {
        for number in 0..KNOWN.len() as i64 {
            let encoding = Encoding::by_number(number).unwrap();
            if encoding.is_kept() || !encoding.is_convertible() {
                continue;
            }
            for letter in map::of(number as usize).letters() {
                let text = letter.to_string();
                let bytes = encoding.encode(&text).unwrap();
                assert_eq!(encoding.decode(&bytes).unwrap(), text, "{encoding:?}");
            }
        }
    }
}
