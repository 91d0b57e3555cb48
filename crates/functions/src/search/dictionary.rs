//! Configurations and dictionaries: which tokens are looked up where, and what becomes of them.
//!
//! ```text
//! english: asciiword → english_stem     Stars → star, the → nothing, since it is a stop word
//!          email → simple               A@B.com → a@b.com
//! ```
//! Each language that PostgreSQL 15 has is a configuration with a dictionary of stems; `simple` has
//! all tokens as they are, in small letters. Words of ASCII alone are English in those languages
//! that are written otherwise.
//!
//! Stems are those of PostgreSQL 15, which has Snowball 2.2: of the two libraries here the older one
//! agrees with it in most languages, the newer one in the others, and where neither does
//! ([`prepared`]) the word is prepared. Stop words are in `stop/`, a file a language.
//!
//! Source: PostgreSQL 15 manual, chapter 12, and its catalogs `pg_ts_config` and `pg_ts_dict`.
//!
//! # What it leaves out
//! Configurations and dictionaries of one's own. Of Irish and Lithuanian words some stems differ, as
//! both of their algorithms have changed.

use std::borrow::Cow;
use std::sync::OnceLock;

use base::hash::HashSet;
use base::{coro, Result};

use super::parser::token_type;
use crate::regex::lower;

/// Longer words have no stem.
const STEMMED_BYTES_MAX: usize = 1_000;

/// The oid of the parser.
pub const PARSER: u32 = 3_722;
/// The oid of the configuration `simple`.
pub const SIMPLE: u32 = 3_748;
/// The oid of the dictionary `simple`.
const SIMPLE_DICTIONARY: u32 = 3_765;
/// The oid of the template of dictionaries of stems.
pub const SNOWBALL: u32 = 13_150;
/// The oid of the template of dictionaries without stems.
pub const SIMPLE_TEMPLATE: u32 = 3_727;

#[derive(Clone, Copy, Debug)]
enum Stemmer {
    Older(rust_stemmers::Algorithm),
    Newer(snowball_stemmers_rs::Algorithm),
}

/// A language.
#[derive(Debug)]
pub struct Language {
    /// Its name, which is its configuration's; the dictionary's ends in `_stem`.
    pub name: &'static str,
    stemmer: Stemmer,
    /// The words that are left out, one a line.
    stop_words: Option<&'static str>,
    /// Whether words of ASCII alone are English.
    foreign: bool,
}

macro_rules! languages {
    ($($name:ident $version:ident $algorithm:ident $stop:ident $ascii:ident;)*) => {
        /// The languages, in the order of their oids.
        pub static LANGUAGES: &[Language] = &[$(Language {
            name: stringify!($name),
            stemmer: languages!(@$version $algorithm),
            stop_words: languages!(@$stop $name),
            foreign: languages!(@$ascii),
        }),*];
    };
    (@older $algorithm:ident) => { Stemmer::Older(rust_stemmers::Algorithm::$algorithm) };
    (@newer $algorithm:ident) => { Stemmer::Newer(snowball_stemmers_rs::Algorithm::$algorithm) };
    (@stop $name:ident) => { Some(include_str!(concat!("stop/", stringify!($name), ".stop"))) };
    (@none $name:ident) => { None };
    (@own) => { false };
    (@english) => { true };
}

languages! {
    arabic older Arabic none own;
    armenian newer Armenian none own;
    basque newer Basque none own;
    catalan newer Catalan none own;
    danish older Danish stop own;
    dutch older Dutch stop own;
    english older English stop own;
    finnish newer Finnish stop own;
    french older French stop own;
    german older German stop own;
    greek older Greek none own;
    hindi newer Hindi none english;
    hungarian older Hungarian stop own;
    indonesian newer Indonesian none own;
    irish newer Irish none own;
    italian older Italian stop own;
    lithuanian newer Lithuanian none own;
    nepali newer Nepali stop own;
    norwegian older Norwegian stop own;
    portuguese older Portuguese stop own;
    romanian older Romanian none own;
    russian newer Russian stop english;
    serbian newer Serbian none own;
    spanish older Spanish stop own;
    swedish older Swedish stop own;
    tamil older Tamil none own;
    turkish older Turkish stop own;
    yiddish newer Yiddish none own;
}

/// The oid of the first language's dictionary. Its configuration's is the next, and so on.
const FIRST_DICTIONARY: u32 = 13_151;

/// A dictionary.
#[derive(Clone, Copy, Debug)]
pub enum Dictionary {
    /// Words as they are, in small letters.
    Simple,
    /// Stems of a language.
    Stems(&'static Language),
}

/// A configuration.
#[derive(Clone, Copy, Debug)]
pub enum Config {
    /// Words as they are.
    Simple,
    /// Those of a language.
    Language(&'static Language),
}

fn language_named(name: &str) -> Option<(u32, &'static Language)> {
    let at = LANGUAGES.iter().position(|known| known.name == name)?;
    Some((at as u32, &LANGUAGES[at]))
}

/// The configurations: oid and name.
pub fn configs() -> impl Iterator<Item = (u32, &'static str)> {
    let languages = (FIRST_DICTIONARY + 1..).step_by(2).zip(LANGUAGES);
    let languages = languages.map(|(oid, language)| (oid, language.name));
    std::iter::once((SIMPLE, "simple")).chain(languages)
}

/// The dictionaries: oid, name and what was said when they were made.
pub fn dictionaries() -> impl Iterator<Item = (u32, String, Option<String>)> {
    let languages = (FIRST_DICTIONARY..).step_by(2).zip(LANGUAGES);
    let languages = languages.map(|(oid, language)| {
        let name = language.name;
        let stop = match language.stop_words {
            Some(_) => format!(", stopwords = '{name}'"),
            None => String::new(),
        };
        (
            oid,
            format!("{name}_stem"),
            Some(format!("language = '{name}'{stop}")),
        )
    });
    std::iter::once((SIMPLE_DICTIONARY, "simple".to_owned(), None)).chain(languages)
}

/// The types of tokens of a configuration that are looked up, each with its dictionary's oid.
pub fn mappings(config: u32) -> Vec<(u8, u32)> {
    let Some(config) = Config::by_oid(config) else {
        return Vec::new();
    };
    let all = 1..=super::parser::TOKEN_TYPES.len() as u8;
    let found = all.filter_map(|kind| Some((kind, config.dictionary(kind)?.oid())));
    found.collect()
}

/// Without its schema, if that is the one that all are in.
fn bare(name: &str) -> &str {
    name.strip_prefix("pg_catalog.").unwrap_or(name)
}

impl Config {
    /// The configuration of that oid.
    pub fn by_oid(oid: u32) -> Option<Config> {
        if oid == SIMPLE {
            return Some(Config::Simple);
        }
        let at = oid.checked_sub(FIRST_DICTIONARY + 1)?;
        let language = LANGUAGES.get(at as usize / 2).filter(|_| at % 2 == 0);
        language.map(Config::Language)
    }

    /// The oid of the configuration of that name, perhaps with its schema.
    pub fn named(name: &str) -> Option<u32> {
        let name = bare(name);
        configs().find(|known| known.1 == name).map(|known| known.0)
    }

    /// What looks up tokens of a type; nothing if they are left out.
    pub fn dictionary(self, kind: u8) -> Option<Dictionary> {
        const WORDS: [&str; 3] = ["word", "hword", "hword_part"];
        const ASCII_WORDS: [&str; 3] = ["asciiword", "asciihword", "hword_asciipart"];
        const LEFT_OUT: [&str; 4] = ["blank", "tag", "protocol", "entity"];
        let alias = super::parser::TOKEN_TYPES
            .get(usize::from(kind).checked_sub(1)?)?
            .0;
        if LEFT_OUT.contains(&alias) {
            return None;
        }
        Some(match self {
            Config::Language(language) if WORDS.contains(&alias) => Dictionary::Stems(language),
            Config::Language(language) if ASCII_WORDS.contains(&alias) => {
                let english = language_named("english").filter(|_| language.foreign);
                Dictionary::Stems(english.map_or(language, |found| found.1))
            }
            _ => Dictionary::Simple,
        })
    }
}

impl Dictionary {
    /// Its oid.
    pub fn oid(self) -> u32 {
        match self {
            Dictionary::Simple => SIMPLE_DICTIONARY,
            Dictionary::Stems(language) => {
                let found = language_named(language.name).map_or(0, |found| found.0);
                FIRST_DICTIONARY + 2 * found
            }
        }
    }

    /// The dictionary of that oid.
    pub fn by_oid(oid: u32) -> Option<Dictionary> {
        if oid == SIMPLE_DICTIONARY {
            return Some(Dictionary::Simple);
        }
        let at = oid.checked_sub(FIRST_DICTIONARY)?;
        let language = LANGUAGES.get(at as usize / 2).filter(|_| at % 2 == 0);
        language.map(Dictionary::Stems)
    }

    /// The oid of the dictionary of that name, perhaps with its schema.
    pub fn named(name: &str) -> Option<u32> {
        let name = bare(name);
        dictionaries()
            .find(|known| known.1 == name)
            .map(|known| known.0)
    }

    /// The lexeme of a word; none of a stop word.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn look_up(self, word: &str) -> Result<Option<String>> {
        coro::work(64 + 4 * word.len())?;
        let small: String = match word.is_ascii() {
            true => word.to_ascii_lowercase(),
            false => word.chars().map(lower).collect(),
        };
        Ok(match self {
            Dictionary::Simple => Some(small),
            Dictionary::Stems(language) => language.stem(small),
        })
    }
}

/// A word as the older algorithms want it so that they agree with what PostgreSQL has.
fn prepared<'a>(language: &str, word: &'a str) -> Cow<'a, str> {
    match language {
        "french" if word.contains(['ë', 'ï']) => {
            Cow::Owned(word.replace('ë', "He").replace('ï', "Hi"))
        }
        _ => Cow::Borrowed(word),
    }
}

impl Language {
    fn is_stop_word(&'static self, word: &str) -> bool {
        static SETS: [OnceLock<HashSet<&'static str>>; 28] = [const { OnceLock::new() }; 28];
        let Some(words) = self.stop_words else {
            return false;
        };
        let at = language_named(self.name).map_or(0, |found| found.0 as usize);
        let set = SETS[at].get_or_init(|| {
            let lines = words.lines().map(|line| line.trim_end());
            lines.filter(|line| !line.is_empty()).collect()
        });
        set.contains(word)
    }

    fn stem_of(&self, word: &str) -> String {
        let stem = match self.stemmer {
            Stemmer::Older(algorithm) => rust_stemmers::Stemmer::create(algorithm).stem(word),
            Stemmer::Newer(algorithm) => {
                snowball_stemmers_rs::Stemmer::create(algorithm).stem(word)
            }
        };
        stem.into_owned()
    }

    fn stem(&'static self, small: String) -> Option<String> {
        if small.len() > STEMMED_BYTES_MAX {
            return Some(small);
        }
        if small.is_empty() || self.is_stop_word(&small) {
            return None;
        }
        let stem = match prepared(self.name, &small) {
            Cow::Borrowed(word) => self.stem_of(word),
            // A diaeresis was taken apart; endings of verbs do not begin with one.
            Cow::Owned(word) => match (self.stem_of(&word), word.rsplit_once('H')) {
                (stem, Some((_, "i" | "ie" | "ies" | "ir" | "is" | "it")))
                    if stem.ends_with('H') =>
                {
                    self.stem_of(&small)
                }
                (stem, _) => stem.replace("He", "ë").replace("Hi", "ï").replace('H', ""),
            },
        };
        // Nothing is no stem.
        Some(if stem.is_empty() { small } else { stem })
    }
}

/// Whether two types of tokens are the same, by their aliases.
pub(super) fn is_kind(kind: u8, aliases: &[&str]) -> bool {
    aliases.iter().any(|alias| token_type(alias) == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oids_are_postgresqls() {
        assert_eq!(Config::named("english"), Some(13_164));
        assert_eq!(Config::named("pg_catalog.yiddish"), Some(13_206));
        assert_eq!(Dictionary::named("english_stem"), Some(13_163));
        assert_eq!(Dictionary::named("simple"), Some(3_765));
        assert!(Config::by_oid(13_163).is_none());
    }

    #[test]
    fn words_have_stems() {
        let stem = |dictionary: &str, word: &str| {
            let oid = Dictionary::named(dictionary).unwrap();
            Dictionary::by_oid(oid).unwrap().look_up(word).unwrap()
        };
        assert_eq!(stem("english_stem", "Stars").as_deref(), Some("star"));
        assert_eq!(stem("english_stem", "The"), None);
        assert_eq!(stem("simple", "The").as_deref(), Some("the"));
        assert_eq!(stem("russian_stem", "чёрт").as_deref(), Some("черт"));
        assert_eq!(stem("french_stem", "héroïsme").as_deref(), Some("héro"));
        assert_eq!(stem("turkish_stem", "ları").as_deref(), Some("ları"));
    }
}
