//! Extension `unaccent`: texts without accents.
//!
//! `unaccent.txt` has a line for each replacement: it, a tab, the characters that it stands for, as
//! the rules that PostgreSQL 15 installs have them.
//!
//! Source: PostgreSQL 15 manual, section F.46.
//!
//! # What it leaves out
//! Rules of one's own: there are no dictionaries of text search.

use std::sync::OnceLock;

use base::hash::HashMap;
use base::{coro, Result};

use super::super::arguments::Arguments;
use super::super::table::functions;
use super::super::Call;
use types::Datum;

functions! {
    9320 "unaccent" (TEXT) TEXT "s" unaccent::unaccent;
}

const RULES: &str = include_str!("unaccent.txt");

fn rules() -> &'static HashMap<char, &'static str> {
    static READ: OnceLock<HashMap<char, &'static str>> = OnceLock::new();
    READ.get_or_init(|| {
        let lines = RULES.lines().filter_map(|line| line.split_once('\t'));
        let pairs = lines.flat_map(|(to, from)| from.chars().map(move |from| (from, to)));
        pairs.collect()
    })
}

pub(crate) fn unaccent(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    if text.is_ascii() {
        return Ok(args.any(0)?.clone());
    }
    coro::work(text.len())?;
    let rules = rules();
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match rules.get(&char) {
            Some(to) => out.push_str(to),
            None => out.push(char),
        }
    }
    Ok(Datum::text(out))
}
