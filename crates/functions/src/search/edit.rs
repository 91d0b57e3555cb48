//! Functions that change vectors, and those that take them apart.

use std::sync::Arc;

use base::{coro, Error, Result, SqlState};

use super::vector;
use crate::arguments::Arguments;
use crate::sets::Records;
use crate::{Call, Rows};
use types::search::vector::{check_length, count_of, decode, entries};
use types::search::{Lexeme, Position, Vector, POSITIONS_END, POSITION_END};
use types::{Array, Datum, TypeId};

fn null_in(what: &str) -> Error {
    let message = format!("{what} array may not contain nulls");
    Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
}

/// The weight of a letter.
///
/// # Errors
/// 22023 if it has none.
fn weight_of(letter: u8) -> Result<u16> {
    Ok(match letter.to_ascii_uppercase() {
        b'A' => 3,
        b'B' => 2,
        b'C' => 1,
        b'D' => 0,
        _ => {
            let shown = match letter {
                b' '..=b'~' => char::from(letter).to_string(),
                other => format!("\\{other:03o}"),
            };
            let message = format!("unrecognized weight: \"{shown}\"");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    })
}

pub(crate) fn strip(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut own = decode(vector(args, 0)?)?;
    for lexeme in &mut own.lexemes {
        lexeme.positions.clear();
    }
    own.into_datum()
}

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(count_of(vector(args, 0)?) as i32))
}

fn set_all(lexeme: &mut Lexeme, weight: u16) {
    for position in &mut lexeme.positions {
        *position = Position::new(position.place(), weight);
    }
}

pub(crate) fn setweight(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let letter = args.character(1)?;
    let weight = weight_of(letter)?;
    let mut own = decode(vector(args, 0)?)?;
    own.lexemes
        .iter_mut()
        .for_each(|lexeme| set_all(lexeme, weight));
    own.into_datum()
}

/// The texts of an array that are not NULL, in byte order.
fn texts(array: &Array) -> Vec<&str> {
    let texts = array.elements.iter().filter(|text| !text.is_null());
    let mut texts: Vec<&str> = texts.map(Datum::as_str).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

pub(crate) fn setweight_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let letter = args.character(1)?;
    let weight = weight_of(letter)?;
    let array = args.array(2)?;
    let wanted = texts(&array);
    let mut own = decode(vector(args, 0)?)?;
    for lexeme in &mut own.lexemes {
        if wanted.binary_search(&lexeme.text.as_str()).is_ok() {
            set_all(lexeme, weight);
        }
    }
    own.into_datum()
}

pub(crate) fn delete(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut own = decode(vector(args, 0)?)?;
    match args.any(1)? {
        Datum::Array(array) => {
            let unwanted = texts(array);
            let lexemes = &mut own.lexemes;
            lexemes.retain(|lexeme| unwanted.binary_search(&lexeme.text.as_str()).is_err());
        }
        text => own.lexemes.retain(|lexeme| lexeme.text != text.as_str()),
    }
    own.into_datum()
}

pub(crate) fn filter(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut wanted = [false; 4];
    for letter in &args.array(1)?.elements {
        let Datum::Char(letter) = letter else {
            return Err(null_in("weight"));
        };
        let weight = weight_of(*letter)?;
        wanted[usize::from(weight)] = true;
    }
    let mut own = decode(vector(args, 0)?)?;
    own.lexemes.retain_mut(|lexeme| {
        let positions = &mut lexeme.positions;
        positions.retain(|position| wanted[usize::from(position.weight())]);
        !positions.is_empty()
    });
    own.into_datum()
}

/// `||`: the second document stands behind the first.
pub(crate) fn concat(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (first, second) = (decode(vector(args, 0)?)?, decode(vector(args, 1)?)?);
    coro::work(16 * (first.lexemes.len() + second.lexemes.len()))?;
    let places = first
        .lexemes
        .iter()
        .flat_map(|lexeme| lexeme.positions.last());
    let last = places
        .map(|position| position.place())
        .max()
        .unwrap_or_default();
    let mut lexemes = Vec::with_capacity(first.lexemes.len() + second.lexemes.len());
    let mut firsts = first.lexemes.into_iter().peekable();
    for mut lexeme in second.lexemes {
        let moved = std::mem::take(&mut lexeme.positions);
        while let Some(before) = firsts.next_if(|own| own.text < lexeme.text) {
            lexemes.push(before);
        }
        let mut own = firsts
            .next_if(|own| own.text == lexeme.text)
            .unwrap_or(lexeme);
        for position in moved {
            let end = own
                .positions
                .last()
                .is_some_and(|last| last.place() == POSITION_END - 1);
            if end || own.positions.len() >= POSITIONS_END {
                break;
            }
            let place = (position.place() + last).min(POSITION_END - 1);
            own.positions.push(Position::new(place, position.weight()));
        }
        lexemes.push(own);
    }
    lexemes.extend(firsts);
    Vector { lexemes }.into_datum()
}

pub(crate) fn to_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let entries = entries(vector(args, 0)?)?;
    let texts = entries
        .iter()
        .map(|entry| Datum::text(entry.text))
        .collect();
    Ok(Datum::Array(Arc::new(Array::of(TypeId::TEXT, texts))))
}

pub(crate) fn of_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    for element in &array.elements {
        if element.is_null() {
            return Err(null_in("lexeme"));
        }
        if element.as_str().is_empty() {
            let message = "lexeme array may not contain empty strings";
            return Err(Error::new(SqlState::ZERO_LENGTH_CHARACTER_STRING, message));
        }
        check_length(element.as_str().len())?;
    }
    let lexemes = texts(&array).into_iter().map(|text| Lexeme {
        text: text.to_owned(),
        positions: Vec::new(),
    });
    let lexemes = lexemes.collect();
    Vector { lexemes }.into_datum()
}

pub(crate) static UNNEST: Records = Records {
    columns: &[
        ("lexeme", TypeId::TEXT),
        ("positions", TypeId(1_005)),
        ("weights", TypeId::TEXT_ARRAY),
    ],
    rows: unnest,
};

fn unnest(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let own = decode(vector(args, 0)?)?;
    let rows = own.lexemes.into_iter().map(|lexeme| {
        let positions = &lexeme.positions;
        let (places, weights) = match positions.is_empty() {
            true => (Datum::Null, Datum::Null),
            false => {
                let places = positions.iter().map(|own| Datum::Int2(own.place() as i16));
                let letter = |own: &Position| match own.letter() {
                    "" => Datum::text("D"),
                    letter => Datum::text(letter),
                };
                let weights = positions.iter().map(letter).collect();
                (
                    Datum::Array(Arc::new(Array::of(TypeId::INT2, places.collect()))),
                    Datum::Array(Arc::new(Array::of(TypeId::TEXT, weights))),
                )
            }
        };
        Ok(UNNEST.row(vec![Datum::text(&lexeme.text), places, weights]))
    });
    Ok(Box::new(rows))
}
