//! The characters of an encoding and their bytes, both ways, made when it is first asked for.

use std::sync::OnceLock;

use encoding_rs as rs;

use super::{Form, KNOWN};

/// The characters that are none of ASCII.
#[derive(Debug, Default)]
pub(super) struct Map {
    /// By code, which is the bytes as a number, the first the most significant.
    chars: Vec<(u32, char)>,
    /// By character.
    codes: Vec<(char, u32)>,
    /// Who knows the characters of four bytes.
    beyond: Option<&'static rs::Encoding>,
}

/// What PostgreSQL has and the library has not, or has as another character.
type Differing = &'static [(u32, char)];

/// That of the encoding with this number, which has one.
pub(super) fn of(number: usize) -> &'static Map {
    static MAPS: [OnceLock<Map>; KNOWN.len()] = [const { OnceLock::new() }; KNOWN.len()];
    MAPS[number].get_or_init(|| Map::new(KNOWN[number].0, KNOWN[number].2))
}

impl Map {
    fn new(name: &str, form: Form) -> Map {
        let Some(library) = library(name) else {
            // LATIN1 is the beginning of Unicode.
            let chars = (0x80..=0xff).map(|byte: u8| (byte.into(), char::from(byte)));
            return Map::of(chars.collect(), |_, _| false, &[]);
        };
        let mut chars = Vec::new();
        for code in candidates(form) {
            let found = decoded(library, &code.to_be_bytes());
            if let Some(found) = found.filter(|found| is_there(name, code, *found)) {
                chars.push((code, found));
            }
        }
        let (differing, written) = differing(name);
        for (code, letter) in differing {
            chars.retain(|known| known.0 != code);
            chars.push((code, letter));
        }
        if name == "UHC" {
            // Two rows are the user's.
            let users = (0xc9a1..=0xc9fe).chain(0xfea1..=0xfefe);
            let letters = (0xe000..).filter_map(char::from_u32);
            chars.extend(users.zip(letters));
        }
        let later = |old: u32, _: u32| form == Form::Sjis && old >= 0x8740;
        let mut map = Map::of(chars, later, written);
        map.beyond = (form == Form::Gb18030).then_some(library);
        map
    }

    /// Of several codes of a character the first is written, unless it is `later` than another one.
    fn of(
        mut chars: Vec<(u32, char)>,
        later: impl Fn(u32, u32) -> bool,
        written: Differing,
    ) -> Map {
        chars.sort_unstable();
        let mut codes: Vec<(char, u32)> = Vec::with_capacity(chars.len());
        let mut by_char: Vec<_> = chars
            .iter()
            .map(|(code, letter)| (*letter, *code))
            .collect();
        by_char.sort_unstable();
        for (letter, code) in by_char {
            match codes.last_mut() {
                Some((last, old)) if *last == letter => {
                    if later(*old, code) {
                        *old = code;
                    }
                }
                _ => codes.push((letter, code)),
            }
        }
        for (code, letter) in written {
            codes.retain(|known| known.0 != *letter);
            codes.push((*letter, *code));
        }
        codes.sort_unstable();
        Map {
            chars,
            codes,
            beyond: None,
        }
    }

    /// The character of these bytes.
    pub(super) fn char_of(&self, bytes: &[u8]) -> Option<char> {
        let code = bytes
            .iter()
            .fold(0, |code, byte| code << 8 | u32::from(*byte));
        match self.chars.binary_search_by_key(&code, |known| known.0) {
            Ok(place) => Some(self.chars[place].1),
            Err(_) if bytes.len() == 4 => decoded(self.beyond?, bytes),
            Err(_) => None,
        }
    }

    /// Appends a character; false if it has none.
    pub(super) fn put(&self, letter: char, out: &mut Vec<u8>) -> bool {
        if let Ok(place) = self.codes.binary_search_by_key(&letter, |known| known.0) {
            let bytes = self.codes[place].1.to_be_bytes();
            let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
            out.extend_from_slice(&bytes[start..]);
            return true;
        }
        let Some(library) = self.beyond else {
            return false;
        };
        let mut text = [0; 4];
        let (bytes, _, is_missing) = library.encode(letter.encode_utf8(&mut text));
        if !is_missing {
            out.extend_from_slice(&bytes);
        }
        !is_missing
    }

    #[cfg(test)]
    pub(super) fn letters(&self) -> impl Iterator<Item = char> + '_ {
        self.chars.iter().map(|(_, letter)| *letter)
    }
}

/// Where the library has it; none for what is done without it.
fn library(name: &str) -> Option<&'static rs::Encoding> {
    Some(match name {
        "EUC_JP" => rs::EUC_JP,
        "EUC_CN" | "GBK" => rs::GBK,
        "EUC_KR" | "UHC" => rs::EUC_KR,
        "LATIN2" => rs::ISO_8859_2,
        "LATIN3" => rs::ISO_8859_3,
        "LATIN4" => rs::ISO_8859_4,
        "LATIN5" | "WIN1254" => rs::WINDOWS_1254,
        "LATIN6" => rs::ISO_8859_10,
        "LATIN7" => rs::ISO_8859_13,
        "LATIN8" => rs::ISO_8859_14,
        "LATIN9" => rs::ISO_8859_15,
        "LATIN10" => rs::ISO_8859_16,
        "WIN1256" => rs::WINDOWS_1256,
        "WIN1258" => rs::WINDOWS_1258,
        "WIN866" => rs::IBM866,
        "WIN874" => rs::WINDOWS_874,
        "KOI8R" => rs::KOI8_R,
        "WIN1251" => rs::WINDOWS_1251,
        "WIN1252" => rs::WINDOWS_1252,
        "ISO_8859_5" => rs::ISO_8859_5,
        "ISO_8859_6" => rs::ISO_8859_6,
        "ISO_8859_7" => rs::ISO_8859_7,
        "ISO_8859_8" => rs::ISO_8859_8,
        "WIN1250" => rs::WINDOWS_1250,
        "WIN1253" => rs::WINDOWS_1253,
        "WIN1255" => rs::WINDOWS_1255,
        "WIN1257" => rs::WINDOWS_1257,
        "KOI8U" => rs::KOI8_U,
        "SJIS" => rs::SHIFT_JIS,
        "GB18030" => rs::GB18030,
        _ => return None,
    })
}

/// The codes that there may be, but for those of four bytes.
fn candidates(form: Form) -> Vec<u32> {
    let pairs = |firsts: std::ops::RangeInclusive<u32>, seconds: std::ops::RangeInclusive<u32>| {
        firsts.flat_map(move |first| seconds.clone().map(move |second| first << 8 | second))
    };
    match form {
        Form::Single => (0x80..=0xff).collect(),
        Form::Euc => pairs(0xa1..=0xfe, 0xa1..=0xfe).collect(),
        Form::EucJp => {
            let three = pairs(0xa1..=0xfe, 0xa1..=0xfe).map(|code| 0x8f_0000 | code);
            let two = pairs(0xa1..=0xf8, 0xa1..=0xfe);
            (0x8ea1..=0x8edf).chain(two).chain(three).collect()
        }
        Form::Sjis => {
            let two = pairs(0x81..=0x9f, 0x40..=0xfc).chain(pairs(0xe0..=0xfc, 0x40..=0xfc));
            (0xa1..=0xdf).chain(two).collect()
        }
        Form::Double | Form::Gb18030 => pairs(0x81..=0xfe, 0x40..=0xfe).collect(),
        Form::Kept | Form::Unknown => Vec::new(),
    }
}

/// The one character that the library sees in a code's bytes.
fn decoded(library: &'static rs::Encoding, bytes: &[u8]) -> Option<char> {
    let start = bytes.iter().position(|byte| *byte != 0)?;
    let text = library.decode_without_bom_handling_and_without_replacement(&bytes[start..])?;
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// Whether what the library has is in PostgreSQL's encoding as well.
fn is_there(name: &str, code: u32, found: char) -> bool {
    let is_control = ('\u{80}'..='\u{9f}').contains(&found);
    let is_private = ('\u{e000}'..='\u{f8ff}').contains(&found);
    match name {
        "WIN1255" => !is_control && code != 0xca,
        _ if name.starts_with("WIN") => !is_control,
        "EUC_JP" => code != 0x8f_a2b7,
        "SJIS" => !is_private,
        "EUC_CN" => {
            let is_later = matches!(
                code,
                0xa2a1..=0xa2aa | 0xa2e3 | 0xa6d9..=0xa6f5 | 0xa8bb..=0xa8c0
            );
            !is_private && !is_later
        }
        "GBK" => {
            let is_later = matches!(
                code,
                0xa2e3 | 0xa3a0 | 0xa6d9..=0xa6df | 0xa6ec..=0xa6ed | 0xa6f3 | 0xa8bc | 0xa8bf
                    | 0xa989..=0xa995 | 0xfe50..=0xfea0
            );
            !is_private && !is_later
        }
        _ => true,
    }
}

/// What is another character there, and what is written only.
fn differing(name: &str) -> (Vec<(u32, char)>, Differing) {
    let listed = |list: Differing| list.to_vec();
    match name {
        "LATIN5" => {
            let controls = (0x80..=0x9f).map(|byte: u8| (byte.into(), char::from(byte)));
            (controls.collect(), &[])
        }
        "KOI8U" => (listed(&[(0xae, '╝'), (0xbe, '╬')]), &[]),
        "EUC_CN" => (listed(&[(0xa1a4, '・'), (0xa1aa, '―')]), &[]),
        "EUC_KR" | "UHC" => (listed(&[(0xa2e8, '㉾')]), &[]),
        "EUC_JP" => {
            let codes = (0x8f_f3f3..=0x8f_f3fe).chain(0x8f_f4a1..=0x8f_f4fe);
            let mut all: Vec<_> = codes.zip(IBM_IN_EUC_JP.chars()).collect();
            all.push((0x8f_a2c3, '￤'));
            (all, &[(0x8f_a2c3, '¦')])
        }
        "SJIS" => (Vec::new(), SJIS_WRITTEN),
        "GBK" => (Vec::new(), &[(0x80, '€')]),
        "GB18030" => (listed(GB18030_OF_2000), &[]),
        _ => (Vec::new(), &[]),
    }
}

/// IBM's extensions that JIS X 0212 has not, in their order.
const IBM_IN_EUC_JP: &str =
    "\u{2170}\u{2171}\u{2172}\u{2173}\u{2174}\u{2175}\u{2176}\u{2177}\u{2178}\u{2179}\u{2160}\
     \u{2161}\u{2162}\u{2163}\u{2164}\u{2165}\u{2166}\u{2167}\u{2168}\u{2169}\u{ff07}\u{ff02}\
     \u{3231}\u{2116}\u{2121}\u{70bb}\u{4efc}\u{50f4}\u{51ec}\u{5307}\u{5324}\u{fa0e}\u{548a}\
     \u{5759}\u{fa0f}\u{fa10}\u{589e}\u{5bec}\u{5cf5}\u{5d53}\u{fa11}\u{5fb7}\u{6085}\u{6120}\
     \u{654e}\u{663b}\u{6665}\u{fa12}\u{f929}\u{6801}\u{fa13}\u{fa14}\u{6a6b}\u{6ae2}\u{6df8}\
     \u{6df2}\u{7028}\u{fa15}\u{fa16}\u{7501}\u{7682}\u{769e}\u{fa17}\u{7930}\u{fa18}\u{fa19}\
     \u{fa1a}\u{fa1b}\u{7ae7}\u{fa1c}\u{fa1d}\u{7da0}\u{7dd6}\u{fa1e}\u{8362}\u{fa1f}\u{85b0}\
     \u{fa20}\u{fa21}\u{8807}\u{fa22}\u{8b7f}\u{8cf4}\u{8d76}\u{fa23}\u{fa24}\u{fa25}\u{90de}\
     \u{fa26}\u{9115}\u{fa27}\u{fa28}\u{9592}\u{f9dc}\u{fa29}\u{973b}\u{974d}\u{9751}\u{fa2a}\
     \u{fa2b}\u{fa2c}\u{999e}\u{9ad9}\u{9b72}\u{fa2d}\u{9ed1}";

/// Characters that are written like others, from which nothing is read.
const SJIS_WRITTEN: Differing = &[
    (0x8191, '\u{a2}'),
    (0x8192, '\u{a3}'),
    (0x5c, '\u{a5}'),
    (0x81ca, '\u{ac}'),
    (0x8161, '\u{2016}'),
    (0x7e, '\u{203e}'),
    (0x817c, '\u{2212}'),
    (0x8160, '\u{301c}'),
];

/// Where the standard of 2000 has what later ones have moved.
const GB18030_OF_2000: Differing = &[
    (0xa3a0, '\u{e5e5}'),
    (0xa6d9, '\u{e78d}'),
    (0xa6da, '\u{e78e}'),
    (0xa6db, '\u{e78f}'),
    (0xa6dc, '\u{e790}'),
    (0xa6dd, '\u{e791}'),
    (0xa6de, '\u{e792}'),
    (0xa6df, '\u{e793}'),
    (0xa6ec, '\u{e794}'),
    (0xa6ed, '\u{e795}'),
    (0xa6f3, '\u{e796}'),
    (0xa8bc, '\u{e7c7}'),
    (0xfe59, '\u{e81e}'),
    (0xfe61, '\u{e826}'),
    (0xfe66, '\u{e82b}'),
    (0xfe67, '\u{e82c}'),
    (0xfe6d, '\u{e832}'),
    (0xfe7e, '\u{e843}'),
    (0xfe90, '\u{e854}'),
    (0xfea0, '\u{e864}'),
    (0x8135f437, '\u{1e3f}'),
    (0x82359037, '\u{9fb4}'),
    (0x82359038, '\u{9fb5}'),
    (0x82359039, '\u{9fb6}'),
    (0x82359130, '\u{9fb7}'),
    (0x82359131, '\u{9fb8}'),
    (0x82359132, '\u{9fb9}'),
    (0x82359133, '\u{9fba}'),
    (0x82359134, '\u{9fbb}'),
    (0x84318236, '\u{fe10}'),
    (0x84318237, '\u{fe11}'),
    (0x84318238, '\u{fe12}'),
    (0x84318239, '\u{fe13}'),
    (0x84318330, '\u{fe14}'),
    (0x84318331, '\u{fe15}'),
    (0x84318332, '\u{fe16}'),
    (0x84318333, '\u{fe17}'),
    (0x84318334, '\u{fe18}'),
    (0x84318335, '\u{fe19}'),
];
