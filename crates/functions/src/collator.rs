//! Orders and cases of texts as a collation has them (PostgreSQL 15 manual, section 24.2).
//!
//! ```text
//! Collator::icu("de", true)?.key("äh")    ICU's sort key of "äh", a zero byte, the bytes of "äh"
//! ```
//! Everything here orders texts by their bytes. A collation that does not is asked for *keys*, whose bytes
//! stand in its order; whoever sorts or compares under it does so by these instead of the texts
//! (`planner::bind::collation`). Of texts with equal sort keys the bytes decide, unless the collation is one
//! whose texts can be equal without being the same (`deterministic = false`).
//!
//! # Invariants
//! - Keys are kept nowhere: another version of the library orders other things differently, and no index has to
//!   be made anew for it.
//! - Two keys of a deterministic collation are equal where the texts are the same, and only there; such a key
//!   holds its text ([`Collator::original`]).
//!
//! # What it leaves out
//! Of ICU's attributes `kb` and `kr` (French accents and orders of scripts that the locale does not have
//! itself), `kh` and `vt`: 0A000. Names of locales that say nothing are the root's, as in ICU.

use std::fmt::Write;
use std::sync::Arc;

use base::{coro, Error, Result, SqlState};
use icu_casemap::CaseMapper;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{CollationKeySink, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::{LanguageIdentifier, Locale};

use types::growth::{Growing, GrowingBytes};
use types::{Array, Datum, TypeId};

/// The version of the orders, as `pg_collation.collversion` says it: that of the root collation's data.
pub const VERSION: &str = "icu4x-2.4";

/// What a byte of a sort key counts for, in the units of [`coro::work`].
const KEY_WORK: usize = 8;

/// What a collation makes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collating {
    /// Bytes in its order.
    Key,
    /// The text that a key holds.
    Original,
    /// `upper()`.
    Upper,
    /// `lower()`.
    Lower,
    /// `initcap()`.
    Initcap,
}

/// Who orders.
#[derive(Clone, Debug)]
enum Rules {
    /// Bytes; of the letters only those of ASCII have cases.
    C,
    /// A locale of ICU.
    Icu(Arc<Icu>),
}

#[derive(Debug)]
struct Icu {
    machine: CollatorBorrowed<'static>,
    language: LanguageIdentifier,
}

/// A collation at work.
#[derive(Clone, Debug)]
pub struct Collator {
    rules: Rules,
    /// Whether texts are equal only if they are the same.
    pub deterministic: bool,
}

/// 22023 for a locale of which nothing can be made.
fn refused(locale: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("could not open collator for locale \"{locale}\": U_ILLEGAL_ARGUMENT_ERROR"),
    )
}

/// The attribute of a language tag that one of ICU's older form is: `colStrength=primary` is
/// `ks-level1`.
fn modern(key: &str, value: &str) -> Option<String> {
    let value = value.to_ascii_lowercase();
    let flag = |yes: &str| match value.as_str() {
        "yes" | "true" => format!("{yes}-true"),
        _ => format!("{yes}-false"),
    };
    Some(match key.to_ascii_lowercase().as_str() {
        "collation" => {
            let short = match value.as_str() {
                "phonebook" => "phonebk",
                "traditional" => "trad",
                "dictionary" => "dict",
                other => other,
            };
            format!("co-{short}")
        }
        "colstrength" => {
            let level = match value.as_str() {
                "primary" | "1" => "level1",
                "secondary" | "2" => "level2",
                "tertiary" | "3" => "level3",
                "quaternary" | "4" => "level4",
                "identical" | "i" => "identic",
                _ => return None,
            };
            format!("ks-{level}")
        }
        "colalternate" => match value.as_str() {
            "shifted" => "ka-shifted".to_owned(),
            _ => "ka-noignore".to_owned(),
        },
        "colnumeric" => flag("kn"),
        "colcaselevel" => flag("kc"),
        "colbackwards" => flag("kb"),
        "colnormalization" => flag("kk"),
        "colreorder" => format!("kr-{value}"),
        "colcasefirst" => match value.as_str() {
            "upper" | "lower" => format!("kf-{value}"),
            _ => "kf-false".to_owned(),
        },
        _ => return None,
    })
}

/// The locale of a name, in either of the forms that ICU takes.
fn locale_of(name: &str) -> Result<Locale> {
    let (base, attributes) = name.split_once('@').unwrap_or((name, ""));
    let base = base.split('.').next().unwrap_or_default().replace('_', "-");
    let mut tag = match base.as_str() {
        "" | "root" => "und".to_owned(),
        _ => base,
    };
    let said = attributes.split(';').filter_map(|one| one.split_once('='));
    let said: Vec<_> = said.filter_map(|(key, value)| modern(key, value)).collect();
    if !said.is_empty() {
        tag = format!("{tag}-u-{}", said.join("-"));
    }
    if !tag.is_ascii() {
        return Err(refused(name));
    }
    // A language that nobody knows has the root's order.
    Ok(tag.parse().unwrap_or(Locale::UNKNOWN))
}

/// What a locale's attributes ask for.
fn options_of(name: &str, locale: &Locale) -> Result<CollatorOptions> {
    let mut options = CollatorOptions::default();
    for (key, value) in locale.extensions.unicode.keywords.iter() {
        let value = value.to_string();
        let unknown = || refused(name);
        let is_true = matches!(value.as_str(), "" | "true" | "yes");
        match key.as_str() {
            "ks" => {
                options.strength = Some(match value.as_str() {
                    "level1" | "primary" => Strength::Primary,
                    "level2" | "secondary" => Strength::Secondary,
                    "level3" | "tertiary" => Strength::Tertiary,
                    "level4" | "quarternary" => Strength::Quaternary,
                    "identic" => Strength::Identical,
                    _ => return Err(unknown()),
                });
            }
            "ka" => {
                options.alternate_handling = Some(match value.as_str() {
                    "shifted" => AlternateHandling::Shifted,
                    "noignore" => AlternateHandling::NonIgnorable,
                    _ => return Err(unknown()),
                });
            }
            "kc" => {
                options.case_level = Some(match is_true {
                    true => CaseLevel::On,
                    false => CaseLevel::Off,
                });
            }
            "kv" => {
                options.max_variable = Some(match value.as_str() {
                    "space" => MaxVariable::Space,
                    "punct" => MaxVariable::Punctuation,
                    "symbol" => MaxVariable::Symbol,
                    "currency" => MaxVariable::Currency,
                    _ => return Err(unknown()),
                });
            }
            "kr" | "kh" | "vt" => return Err(Error::unsupported(format!("collations with {key}"))),
            "kb" if is_true => return Err(Error::unsupported("collations with kb")),
            _ => {}
        }
    }
    Ok(options)
}

impl Collator {
    /// The order of bytes.
    pub fn c() -> Collator {
        Collator {
            rules: Rules::C,
            deterministic: true,
        }
    }

    /// The order of a locale of ICU.
    ///
    /// # Errors
    /// 22023 for what names none; 0A000 for what the library does not have.
    pub fn icu(name: &str, deterministic: bool) -> Result<Collator> {
        let locale = locale_of(name)?;
        let options = options_of(name, &locale)?;
        let machine = icu_collator::Collator::try_new(CollatorPreferences::from(&locale), options);
        let machine = machine.map_err(|_| refused(name))?;
        Ok(Collator {
            rules: Rules::Icu(Arc::new(Icu {
                machine,
                language: locale.id,
            })),
            deterministic,
        })
    }

    /// The same, telling apart what it takes for equal.
    pub fn deterministic(self) -> Collator {
        Collator {
            deterministic: true,
            ..self
        }
    }

    /// What it makes of a value, which is a text or an array of texts; NULL of NULL.
    ///
    /// # Errors
    /// 54000 for what grows too large; 53200; the pending interrupt.
    pub fn apply(&self, what: Collating, value: &Datum) -> Result<Datum> {
        match value {
            Datum::Text(text) => match what {
                Collating::Key => Ok(Datum::Bytea(Arc::from(self.key(text)?))),
                Collating::Upper => self.upper(text).map(Growing::into_datum),
                Collating::Lower => self.lower(text).map(Growing::into_datum),
                Collating::Initcap => self.initcap(text).map(Growing::into_datum),
                Collating::Original => Err(Error::internal("a text that is no key")),
            },
            Datum::Bytea(key) if what == Collating::Original => Collator::original(key),
            Datum::Array(array) => {
                let elements = array.elements.iter();
                let elements = elements.map(|element| self.apply(what, element));
                Ok(Datum::Array(Arc::new(Array {
                    element: match what {
                        Collating::Key => TypeId::BYTEA,
                        _ => TypeId::TEXT,
                    },
                    dimensions: array.dimensions.clone(),
                    elements: elements.collect::<Result<_>>()?,
                })))
            }
            Datum::Null => Ok(Datum::Null),
            _ => Err(Error::internal("a collation of what is no text")),
        }
    }

    /// Bytes that stand in the order of the collation.
    fn key(&self, text: &str) -> Result<Vec<u8>> {
        let Rules::Icu(icu) = &self.rules else {
            return Ok(text.as_bytes().to_vec());
        };
        let mut key = Key(GrowingBytes::default());
        icu.machine.write_sort_key_to(text, &mut key)?;
        if self.deterministic {
            // No sort key has a zero byte, so a shorter one still comes first.
            key.0.extend(&[0])?;
            key.0.extend(text.as_bytes())?;
        }
        Ok(key.0.into_bytes())
    }

    /// The text that a key of a deterministic collation holds.
    fn original(key: &[u8]) -> Result<Datum> {
        let at = key.iter().position(|byte| *byte == 0);
        let text = at.and_then(|at| std::str::from_utf8(&key[at + 1..]).ok());
        let text = text.ok_or_else(|| Error::internal("a key without its text"))?;
        Ok(Datum::text(text))
    }

    fn upper(&self, text: &str) -> Result<Growing> {
        match &self.rules {
            Rules::C => in_ascii(text, |c, _| c.to_ascii_uppercase()),
            Rules::Icu(icu) => written(|out| {
                let mapped = CaseMapper::new().uppercase(text, &icu.language);
                writeable::Writeable::write_to(&mapped, out)
            }),
        }
    }

    fn lower(&self, text: &str) -> Result<Growing> {
        match &self.rules {
            Rules::C => in_ascii(text, |c, _| c.to_ascii_lowercase()),
            Rules::Icu(icu) => written(|out| {
                let mapped = CaseMapper::new().lowercase(text, &icu.language);
                writeable::Writeable::write_to(&mapped, out)
            }),
        }
    }

    /// The first letter of each word large, the others small.
    fn initcap(&self, text: &str) -> Result<Growing> {
        let Rules::Icu(icu) = &self.rules else {
            return in_ascii(text, |c, before| match before.is_ascii_alphanumeric() {
                true => c.to_ascii_lowercase(),
                false => c.to_ascii_uppercase(),
            });
        };
        let mapper = CaseMapper::new();
        written(|out| {
            let mut rest = text;
            while let Some(first) = rest.chars().next() {
                let (head, tail) = rest.split_at(first.len_utf8());
                if !first.is_alphanumeric() {
                    out.write_str(head)?;
                    rest = tail;
                    continue;
                }
                let end = tail.find(|c: char| !c.is_alphanumeric());
                let (word, behind) = tail.split_at(end.unwrap_or(tail.len()));
                let head = mapper.uppercase(head, &icu.language);
                writeable::Writeable::write_to(&head, out)?;
                let word = mapper.lowercase(word, &icu.language);
                writeable::Writeable::write_to(&word, out)?;
                rest = behind;
            }
            Ok(())
        })
    }
}

fn in_ascii(text: &str, map: impl Fn(char, char) -> char) -> Result<Growing> {
    let mut out = Growing::with_capacity(text.len())?;
    let mut before = ' ';
    for c in text.chars() {
        out.push(map(c, before))?;
        before = c;
    }
    Ok(out)
}

/// A sort key as it is written.
struct Key(GrowingBytes);

impl CollationKeySink for Key {
    type Error = Error;
    type State = ();
    type Output = ();

    fn write(&mut self, _: &mut (), bytes: &[u8]) -> Result<()> {
        coro::work(KEY_WORK * bytes.len())?;
        self.0.extend(bytes)
    }

    fn finish(&mut self, _: ()) -> Result<()> {
        Ok(())
    }
}

/// A text as it is written, and what went wrong.
struct Written {
    text: Growing,
    failed: Option<Error>,
}

impl Write for Written {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.text.push_str(text).map_err(|error| {
            self.failed = Some(error);
            std::fmt::Error
        })
    }
}

/// What `write` writes.
fn written(write: impl FnOnce(&mut Written) -> std::fmt::Result) -> Result<Growing> {
    let mut out = Written {
        text: Growing::default(),
        failed: None,
    };
    let outcome = write(&mut out);
    match (out.failed, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(_)) => Err(Error::internal("a text that cannot be written")),
        (None, Ok(())) => Ok(out.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(name: &str, texts: &[&'static str]) -> Vec<&'static str> {
        let collator = Collator::icu(name, true).unwrap();
        let mut texts = texts.to_vec();
        texts.sort_by_key(|text| collator.key(text).unwrap());
        texts
    }

    #[test]
    fn locales_have_orders_of_their_own() {
        let texts = ["z", "ö", "Z", "o", "a", "ä", "10", "9"];
        assert_eq!(
            sorted("de", &texts),
            ["10", "9", "a", "ä", "o", "ö", "z", "Z"]
        );
        assert_eq!(
            sorted("sv", &texts),
            ["10", "9", "a", "o", "z", "Z", "ä", "ö"]
        );
        assert_eq!(sorted("en-u-kn-kf-upper", &texts)[..2], ["9", "10"]);
        assert_eq!(
            sorted("en@colNumeric=yes;colCaseFirst=upper", &texts)[6..],
            ["Z", "z"]
        );
        assert_eq!(
            sorted("de_DE@collation=phonebook", &["ad", "äd", "ae"]),
            ["ad", "ae", "äd"]
        );
    }

    #[test]
    fn only_the_same_text_has_the_same_key_unless_the_collation_says_otherwise() {
        let key = |deterministic, text: &str| {
            let collator = Collator::icu("und-u-ks-level2", deterministic).unwrap();
            collator.key(text).unwrap()
        };
        assert_eq!(key(false, "Abc"), key(false, "aBC"));
        assert_ne!(key(false, "abc"), key(false, "abd"));
        assert_ne!(key(true, "Abc"), key(true, "aBC"));
        assert_eq!(
            Collator::original(&key(true, "Äbc")).unwrap(),
            Datum::text("Äbc")
        );
    }

    #[test]
    fn letters_have_the_cases_of_the_locale() {
        let upper = |name: &str| {
            let collator = Collator::icu(name, true).unwrap();
            collator.upper("iß").unwrap().into_string()
        };
        assert_eq!(upper("tr"), "İSS");
        assert_eq!(upper("und"), "ISS");
        let c = Collator::c();
        assert_eq!(c.upper("iäß").unwrap().into_string(), "Iäß");
        assert_eq!(c.initcap("éa bÉ").unwrap().into_string(), "éA BÉ");
        let root = Collator::icu("", true).unwrap();
        assert_eq!(root.initcap("éA bÉ").unwrap().into_string(), "Éa Bé");
    }

    #[test]
    fn what_the_library_does_not_have_is_refused() {
        for name in ["fr-u-kb", "en-u-kr-latn", "en@colBackwards=yes"] {
            assert_eq!(
                Collator::icu(name, true).unwrap_err().state(),
                SqlState::FEATURE_NOT_SUPPORTED
            );
        }
        assert!(Collator::icu("nonsense", true).is_ok());
        assert!(Collator::icu("en-u-ks-level9", true).is_err());
    }
}
