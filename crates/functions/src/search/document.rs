//! What text becomes: vectors of documents, and queries of what people write.
//!
//! ```text
//! to_tsvector('english', 'The fat cats')             'cat':3 'fat':2
//! websearch_to_tsquery('english', '"fat cats" -rat') 'fat' <-> 'cat' & !'rat'
//! ```
//! Every token that is looked up has a place, also if it is a stop word.

use base::jsonb::{Value, View};
use base::memory::Reservation;
use base::{coro, Error, Result, SqlState};

use super::dictionary::Config;
use super::parser::Parser;
use types::json::parse::{self as json, Event};
use types::search::read::{read, Outcome, Word};
use types::search::{Builder, Lexeme, Node, Operand, Position, Vector};
use types::search::{LEXEME_BYTES_MAX, POSITIONS_END, POSITION_END};
use types::{Datum, EvalContext};

/// The configuration of an oid.
///
/// # Errors
/// XX000 if there is none.
pub(super) fn config_of(oid: u32) -> Result<Config> {
    Config::by_oid(oid).ok_or_else(|| {
        let message = format!("cache lookup failed for text search configuration {oid}");
        Error::internal(message)
    })
}

fn too_long() -> Error {
    let message = "word is too long to be indexed";
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_detail(format!(
        "Words longer than {LEXEME_BYTES_MAX} characters are ignored."
    ))
}

/// A lexeme and its place, from 1 on.
pub(super) struct Found {
    pub(super) lexeme: String,
    pub(super) place: usize,
}

/// The words of texts, one behind the other.
pub(super) struct Words {
    config: Config,
    pub(super) place: usize,
    pub(super) found: Vec<Found>,
    held: Reservation,
}

impl Words {
    pub(super) fn new(config: Config) -> Words {
        Words {
            config,
            place: 0,
            found: Vec::new(),
            held: Reservation::of("A document"),
        }
    }

    /// Adds a text.
    ///
    /// # Errors
    /// The pending interrupt; 53200.
    pub(super) fn add(&mut self, context: &EvalContext, text: &str) -> Result<()> {
        let mut parser = Parser::new(text);
        while let Some(token) = parser.next_token()? {
            if token.text.len() > LEXEME_BYTES_MAX {
                context.remark(too_long());
                continue;
            }
            let Some(dictionary) = self.config.dictionary(token.kind) else {
                continue;
            };
            self.place += 1;
            if let Some(lexeme) = dictionary.look_up(token.text)? {
                let place = self.place;
                self.held.grow(size_of::<Found>() + 2 * lexeme.len())?;
                self.found.push(Found { lexeme, place });
            }
        }
        Ok(())
    }

    /// Adds a text that is apart from what is there.
    ///
    /// # Errors
    /// As [`Words::add`].
    pub(super) fn add_apart(&mut self, context: &EvalContext, text: &str) -> Result<()> {
        let before = self.found.len();
        self.add(context, text)?;
        if self.found.len() > before {
            self.place += 1;
        }
        Ok(())
    }

    /// The vector.
    ///
    /// # Errors
    /// 54000.
    pub(super) fn into_vector(mut self) -> Result<Datum> {
        let count = self.found.len();
        coro::work(16 * count)?;
        self.found
            .sort_by(|a, b| a.lexeme.cmp(&b.lexeme).then(a.place.cmp(&b.place)));
        let mut lexemes: Vec<Lexeme> = Vec::new();
        for Found { lexeme, place } in self.found {
            coro::work(8)?;
            let place = place.min(usize::from(POSITION_END) - 1) as u16;
            let position = Position::new(place, 0);
            match lexemes.last_mut().filter(|last| last.text == lexeme) {
                Some(last) => {
                    let is_new = last.positions.last() != Some(&position);
                    if is_new && last.positions.len() < POSITIONS_END - 1 {
                        last.positions.push(position);
                    }
                }
                None => lexemes.push(Lexeme {
                    text: lexeme,
                    positions: vec![position],
                }),
            }
        }
        Vector { lexemes }.into_datum()
    }
}

/// The vector of a text.
///
/// # Errors
/// 54000; the pending interrupt.
pub fn vector_of(context: &EvalContext, config: u32, text: &str) -> Result<Datum> {
    let mut words = Words::new(config_of(config)?);
    words.add(context, text)?;
    words.into_vector()
}

/// Which parts of a JSON value are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    keys: bool,
    strings: bool,
    numbers: bool,
    booleans: bool,
}

impl Parts {
    /// Strings alone.
    pub(super) const STRINGS: Parts = Parts {
        keys: false,
        strings: true,
        numbers: false,
        booleans: false,
    };

    /// What a list of names says.
    ///
    /// # Errors
    /// 22023.
    pub(super) fn of(filter: Value<'_>) -> Result<Parts> {
        const HINT: &str =
            "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
        let invalid = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let names: Vec<Value<'_>> = match filter.view() {
            View::Array(array) => array.iter().collect(),
            View::Object(_) => {
                let message = "wrong flag type, only arrays and scalars are allowed";
                return Err(invalid(message.to_owned()));
            }
            _ => vec![filter],
        };
        let mut parts = Parts::default();
        for name in names {
            let View::String(name) = name.view() else {
                let message = "flag array element is not a string".to_owned();
                return Err(invalid(message).with_hint(HINT));
            };
            match name.to_ascii_lowercase().as_str() {
                "all" => {
                    parts = Parts {
                        keys: true,
                        strings: true,
                        numbers: true,
                        booleans: true,
                    };
                }
                "key" => parts.keys = true,
                "string" => parts.strings = true,
                "numeric" => parts.numbers = true,
                "boolean" => parts.booleans = true,
                _ => {
                    let message = format!("wrong flag in flag array: \"{name}\"");
                    return Err(invalid(message).with_hint(HINT));
                }
            }
        }
        Ok(parts)
    }
}

/// The vector of parts of a JSON text.
///
/// # Errors
/// As [`vector_of`].
pub(super) fn vector_of_json(
    context: &EvalContext,
    config: u32,
    parts: Parts,
    text: &str,
) -> Result<Datum> {
    let mut words = Words::new(config_of(config)?);
    let mut parser = json::Parser::new(text, true);
    while let Some(event) = parser.next()? {
        let part = match event {
            Event::Key if parts.keys => parser.text(),
            Event::String if parts.strings => parser.text(),
            Event::Number if parts.numbers => parser.token(),
            Event::True | Event::False if parts.booleans => parser.token(),
            _ => continue,
        };
        words.add_apart(context, part)?;
    }
    words.into_vector()
}

/// What stands between the words of one operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    And,
    Phrase,
}

impl Between {
    fn node(self) -> Node {
        match self {
            Between::And => Node::And,
            Between::Phrase => Node::Phrase(1),
        }
    }
}

/// Appends the lexemes of a word of a query. A stop word keeps its place.
fn push(
    context: &EvalContext,
    config: Config,
    between: Between,
    builder: &mut Builder,
    word: &Word<'_>,
) -> Result<()> {
    let mut words = Words::new(config);
    words.add(context, word.text)?;
    if words.found.is_empty() {
        builder.stop();
        return Ok(());
    }
    let mut count = 0;
    let mut last = 0;
    for found in words.found {
        while last > 0 && last + 1 < found.place {
            builder.stop();
            if count > 0 {
                builder.operator(between.node());
            }
            count += 1;
            last += 1;
        }
        last = found.place;
        let operand = Operand {
            text: found.lexeme,
            weights: word.weights,
            prefix: word.prefix,
        };
        builder.operand(operand, word.whole)?;
        if count > 0 {
            builder.operator(between.node());
        }
        count += 1;
    }
    Ok(())
}

/// The query of a text: with operators, or as search engines have it.
///
/// # Errors
/// 42601, 22023, 54000; the pending interrupt.
pub(super) fn query_of(
    context: &EvalContext,
    config: u32,
    text: &str,
    is_web: bool,
) -> Result<Datum> {
    let config = config_of(config)?;
    let outcome = read(text, is_web, |builder, word| {
        push(context, config, Between::Phrase, builder, word)
    })?;
    Ok(context.query_of(text, outcome))
}

/// The query of a text that has no operators.
///
/// # Errors
/// 54000; the pending interrupt.
pub(super) fn plain_query_of(
    context: &EvalContext,
    config: u32,
    text: &str,
    between: Between,
) -> Result<Datum> {
    let config = config_of(config)?;
    let mut builder = Builder::default();
    if !text.is_empty() {
        let word = Word {
            text,
            weights: 0,
            prefix: false,
            whole: text,
        };
        push(context, config, between, &mut builder, &word)?;
    }
    let outcome = match builder.is_empty() {
        true => Outcome::NoWords,
        false => match builder.finish()? {
            Some(query) => Outcome::Query(query),
            None => Outcome::OnlyStops,
        },
    };
    Ok(context.query_of(text, outcome))
}
