//! Full text search: how documents become vectors, and what is asked of them.
//!
//! ```text
//! to_tsvector('english', 'The fat cats') @@ to_tsquery('english', 'cat & !dog')     true
//!
//!   parser       asciiword The, blank, asciiword fat, blank, asciiword cats
//!   dictionary   the: a stop word; fat: fat; cats: cat
//!   vector       'cat':3 'fat':2
//! ```
//! | module | what |
//! |---|---|
//! | [`parser`], `states.txt`, [`marks`] | text as tokens |
//! | [`dictionary`], `stop/` | configurations, and lexemes of words |
//! | [`document`] | vectors of text and JSON, queries of what people write |
//! | [`matching`] | `@@` |
//! | [`rank`] | `ts_rank`, `ts_rank_cd` |
//! | [`headline`], [`options`] | `ts_headline` |
//! | [`edit`] | functions of vectors |
//! | [`rewrite`] | functions of queries |
//!
//! The types are in [`types::search`], the functions in `table_search.rs`.
//!
//! Source: PostgreSQL 15 manual, chapter 12 and section 9.13.
//!
//! # What it leaves out
//! `ts_stat` and `ts_rewrite` with a query of SQL, and parsers, dictionaries and configurations of one's
//! own, which answer 0A000.

pub mod dictionary;
pub mod document;
mod edit;
mod headline;
mod marks;
pub mod matching;
mod options;
pub mod parser;
mod rank;
mod rewrite;

pub(crate) use edit::*;
pub(crate) use rewrite::*;

use std::sync::Arc;

use base::jsonb::Value;
use base::memory::Reservation;
use base::{Error, Result, SqlState};

use crate::arguments::Arguments;
use crate::sets::Records;
use crate::{Call, Rows};
use dictionary::{Config, Dictionary, PARSER};
use document::{Between, Parts};
use matching::Lexemes;
use parser::{Parser, TOKEN_TYPES};
use types::search::Query;
use types::{Array, Datum, TypeId};

/// The bytes of a vector.
fn vector(args: &[Datum], index: usize) -> Result<&[u8]> {
    match args.get(index) {
        Some(Datum::TsVector(bytes)) => Ok(bytes),
        other => Err(Error::internal(format!(
            "argument {index} is {other:?} where a tsvector is wanted"
        ))),
    }
}

/// A query.
fn query(args: &[Datum], index: usize) -> Result<Query> {
    match args.get(index) {
        Some(Datum::TsQuery(bytes)) => Query::decode(bytes),
        other => Err(Error::internal(format!(
            "argument {index} is {other:?} where a tsquery is wanted"
        ))),
    }
}

/// The configuration that is the first argument, or the session's; and the arguments behind it.
fn config<'a>(call: &Call<'_>, args: &'a [Datum]) -> (u32, &'a [Datum]) {
    match args {
        [Datum::Oid(oid), rest @ ..] => (*oid, rest),
        _ => (call.context.search_config, args),
    }
}

pub(crate) fn current_config(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(call.context.search_config))
}

/// The text of a JSON value, whichever of its types it has.
fn json(value: &Datum) -> Result<Arc<str>> {
    match value {
        Datum::Text(text) => Ok(Arc::clone(text)),
        Datum::Jsonb(bytes) => types::json::to_text(Value(bytes)).map(Arc::from),
        other => Err(Error::internal(format!("{other:?} is no json"))),
    }
}

pub(crate) fn to_tsvector(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    document::vector_of(call.context, config, args.text(0)?)
}

pub(crate) fn strings_to_tsvector(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    let value = json(args.any(0)?)?;
    document::vector_of_json(call.context, config, Parts::STRINGS, &value)
}

pub(crate) fn parts_to_tsvector(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    let Datum::Jsonb(filter) = args.any(1)? else {
        return Err(Error::internal("a filter that is no jsonb"));
    };
    let parts = Parts::of(Value(filter))?;
    document::vector_of_json(call.context, config, parts, &json(args.any(0)?)?)
}

pub(crate) fn to_tsquery(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    document::query_of(call.context, config, args.text(0)?, false)
}

pub(crate) fn websearch_to_tsquery(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    document::query_of(call.context, config, args.text(0)?, true)
}

pub(crate) fn plainto_tsquery(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    document::plain_query_of(call.context, config, args.text(0)?, Between::And)
}

pub(crate) fn phraseto_tsquery(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    document::plain_query_of(call.context, config, args.text(0)?, Between::Phrase)
}

fn met(vector: &[u8], query: &Query) -> Result<Datum> {
    matching::is_met(query, &Lexemes::of(vector)?).map(Datum::Bool)
}

pub(crate) fn vector_query(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    met(vector(args, 0)?, &query(args, 1)?)
}

pub(crate) fn query_vector(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    met(vector(args, 1)?, &query(args, 0)?)
}

pub(crate) fn text_query(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let document = to_tsvector(call, &args[..1])?;
    met(vector(&[document], 0)?, &query(args, 1)?)
}

pub(crate) fn text_text(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let document = to_tsvector(call, &args[..1])?;
    let asked = plainto_tsquery(call, &args[1..])?;
    met(vector(&[document], 0)?, &query(&[asked], 0)?)
}

type Ranking = fn(&[f32; 4], &Lexemes<'_>, &Query, i32) -> Result<f32>;

fn ranked(args: &[Datum], ranking: Ranking) -> Result<Datum> {
    let (weights, args) = match args {
        [Datum::Array(array), rest @ ..] => (rank::weights_of(array)?, rest),
        _ => (rank::WEIGHTS, args),
    };
    let method = match args.len() {
        3 => args.int4(2)?,
        _ => 0,
    };
    let (lexemes, query) = (Lexemes::of(vector(args, 0)?)?, query(args, 1)?);
    ranking(&weights, &lexemes, &query, method).map(Datum::Float4)
}

pub(crate) fn ts_rank(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    ranked(args, rank::rank)
}

pub(crate) fn ts_rank_cd(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    ranked(args, rank::rank_by_covers)
}

pub(crate) fn ts_headline(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    let given = match args.len() {
        3 => args.text(2)?,
        _ => "",
    };
    headline::headline(config, args.text(0)?, &query(args, 1)?, given).map(Datum::text)
}

/// `ts_headline` of JSON: that of each string.
pub(crate) fn ts_headline_json(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (config, args) = config(call, args);
    let given = match args.len() {
        3 => args.text(2)?,
        _ => "",
    };
    let (value, asked) = (args.any(0)?, query(args, 1)?);
    let text = headline::of_json(config, &json(value)?, &asked, given)?;
    match value {
        Datum::Jsonb(_) => types::json::input_jsonb(&text),
        _ => Ok(Datum::text(text)),
    }
}

/// What a dictionary makes of a word.
fn lexemes_of(dictionary: Dictionary, word: &str) -> Result<Datum> {
    let lexeme = dictionary.look_up(word)?;
    let lexemes = lexeme.into_iter().map(Datum::text).collect();
    Ok(Datum::Array(Arc::new(Array::of(TypeId::TEXT, lexemes))))
}

pub(crate) fn ts_lexize(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let oid = match args.any(0)? {
        Datum::Oid(oid) => *oid,
        other => return Err(Error::internal(format!("{other:?} is no dictionary"))),
    };
    let dictionary = Dictionary::by_oid(oid).ok_or_else(|| {
        let message = format!("cache lookup failed for text search dictionary {oid}");
        Error::internal(message)
    })?;
    lexemes_of(dictionary, args.text(1)?)
}

/// Checks that a parser is the one that there is.
fn check_parser(parser: &Datum) -> Result<()> {
    match parser {
        Datum::Oid(PARSER) => Ok(()),
        Datum::Oid(oid) => Err(Error::internal(format!(
            "cache lookup failed for text search parser {oid}"
        ))),
        name => match name.as_str() {
            "default" | "pg_catalog.default" => Ok(()),
            name => {
                let message = format!("text search parser \"{name}\" does not exist");
                Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
            }
        },
    }
}

/// What holds the rows of tokens.
const ROWS: &str = "The tokens of a text";
/// About what a row takes.
const ROW_BYTES: usize = 256;

/// Rows whose memory is counted until all were taken.
fn kept(rows: Vec<Result<Datum>>, held: Reservation) -> Rows {
    let mut held = Some(held);
    let end = std::iter::from_fn(move || {
        held.take();
        None
    });
    Box::new(rows.into_iter().chain(end))
}

pub(crate) static TYPES_OF_TOKENS: Records = Records {
    columns: &[
        ("tokid", TypeId::INT4),
        ("alias", TypeId::TEXT),
        ("description", TypeId::TEXT),
    ],
    rows: types_of_tokens,
};

fn types_of_tokens(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    check_parser(args.any(0)?)?;
    let rows = (1..)
        .zip(TOKEN_TYPES)
        .map(|(number, (alias, description))| {
            let values = vec![
                Datum::Int4(number),
                Datum::text(alias),
                Datum::text(description),
            ];
            Ok(TYPES_OF_TOKENS.row(values))
        });
    Ok(Box::new(rows))
}

pub(crate) static TOKENS: Records = Records {
    columns: &[("tokid", TypeId::INT4), ("token", TypeId::TEXT)],
    rows: tokens,
};

fn tokens(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    check_parser(args.any(0)?)?;
    let mut parser = Parser::new(args.text(1)?);
    let (mut rows, mut held) = (Vec::new(), Reservation::of(ROWS));
    while let Some(token) = parser.next_token()? {
        let values = vec![Datum::Int4(i32::from(token.kind)), Datum::text(token.text)];
        held.grow(ROW_BYTES + token.text.len())?;
        rows.push(Ok(TOKENS.row(values)));
    }
    Ok(kept(rows, held))
}

pub(crate) static STATISTICS: Records = Records {
    columns: &[
        ("word", TypeId::TEXT),
        ("ndoc", TypeId::INT4),
        ("nentry", TypeId::INT4),
    ],
    rows: |_, _| Err(Error::unsupported("function ts_stat")),
};

pub(crate) static DEBUG: Records = Records {
    columns: &[
        ("alias", TypeId::TEXT),
        ("description", TypeId::TEXT),
        ("token", TypeId::TEXT),
        ("dictionaries", TypeId(3_770)),
        ("dictionary", TypeId::REGDICTIONARY),
        ("lexemes", TypeId::TEXT_ARRAY),
    ],
    rows: debug,
};

fn debug(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let (config, args) = config(call, args);
    let config: Config = document::config_of(config)?;
    let mut parser = Parser::new(args.text(0)?);
    let (mut rows, mut held) = (Vec::new(), Reservation::of(ROWS));
    while let Some(token) = parser.next_token()? {
        let (alias, description) = TOKEN_TYPES[usize::from(token.kind) - 1];
        let dictionary = config.dictionary(token.kind);
        let oid = dictionary.map(|dictionary| Datum::Oid(dictionary.oid()));
        let all = oid.iter().cloned().collect();
        let lexemes = dictionary.map(|dictionary| lexemes_of(dictionary, token.text));
        held.grow(4 * ROW_BYTES + 2 * token.text.len())?;
        rows.push(Ok(DEBUG.row(vec![
            Datum::text(alias),
            Datum::text(description),
            Datum::text(token.text),
            Datum::Array(Arc::new(Array::of(TypeId::REGDICTIONARY, all))),
            oid.unwrap_or(Datum::Null),
            lexemes.transpose()?.unwrap_or(Datum::Null),
        ])));
    }
    Ok(kept(rows, held))
}
