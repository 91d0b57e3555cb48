//! A statement without its constants, and the number by which statements are told apart that differ in
//! nothing else.
//!
//! ```text
//! SELECT v FROM t WHERE k = 17 -- one      SELECT v FROM t WHERE k = $1     id 4710…
//! select v from t where k=4711             the same id, and the text of whichever came first
//! select v from t where k = 'a'            another id: a string is no number
//! select v from t group by 1 limit 10      … group by 1 limit $1: the 1 is a column
//! ```
//! Which constants stand for values, the grammar of libpg_query says; its numbers are replaced by
//! PostgreSQL's, which follow the highest parameter of the text from left to right. The id is a hash of
//! the tokens: comments, white space and the case of words have no say in it, nor have the values of
//! constants, but which kind each of them is. So it is the same on all nodes and after every start.
//!
//! # What it leaves out
//! What names mean: `t` is one table whatever the search path says, and two names of a column (`AS a`,
//! `AS b`) are two statements, which PostgreSQL's ids, made of what was looked up, see the other way.
//! Texts whose strings have escapes without an `E` stay as they are written, as do those that cannot
//! be read.

use std::ffi::CString;

use pg_query::protobuf::Token;

use super::ffi::{self, RawToken};
use super::large_stack;

/// A statement without its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Normalized {
    /// Its text, with parameters in the places of constants.
    pub text: String,
    /// Its id; never 0.
    pub id: i64,
}

/// Stand in what is hashed for constants, by kind.
const NUMBER: u8 = 1;
const DECIMAL: u8 = 2;
const STRING: u8 = 3;
const OTHER: u8 = 4;
/// Stands between tokens.
const BETWEEN: u8 = 0;

/// The id of a text that is not taken apart: that of a utility statement.
pub fn id_of_text(text: &str) -> i64 {
    // A text as it is begins with no byte that tokens begin with.
    id_of(text.as_bytes())
}

/// FNV-1a with a last step that spreads what short texts differ in. Ids outlive versions, so this must
/// stay as it is.
fn id_of(bytes: &[u8]) -> i64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    match (hash ^ (hash >> 33)) as i64 {
        0 => 1,
        id => id,
    }
}

/// A statement that stands alone in its text, without its constants.
pub fn normalize(text: &str) -> Normalized {
    let done = large_stack(|| {
        let tokens = scan(text)?;
        let start = beginning(&tokens);
        let constants = constants(text, &tokens, start)?;
        Some(written(text, (&tokens, start), &constants))
    });
    done.unwrap_or_else(|| Normalized {
        text: text.to_owned(),
        id: id_of_text(text),
    })
}

/// The tokens of a text without its comments.
fn scan(text: &str) -> Option<Vec<RawToken>> {
    let all = ffi::scan(&CString::new(text).ok()?).ok()?;
    let is_comment = |token: &RawToken| {
        token.code == Token::SqlComment as i32 || token.code == Token::CComment as i32
    };
    let tokens = all.into_iter().filter(|token| !is_comment(token));
    let tokens = tokens.filter(|token| token.start < token.end && token.end <= text.len());
    Some(tokens.collect())
}

/// Which token the statement begins with: in `PREPARE … AS statement` that behind the first AS, in
/// `EXPLAIN (…) statement` that behind the options.
fn beginning(tokens: &[RawToken]) -> usize {
    let is = |at: usize, wanted: Token| tokens.get(at).is_some_and(|own| own.code == wanted as i32);
    if is(0, Token::Prepare) {
        let found = (0..tokens.len()).find(|at| is(*at, Token::As));
        return found.map_or(0, |found| found + 1);
    }
    if !is(0, Token::Explain) {
        return 0;
    }
    let mut at = 1;
    let queries = [Token::Select, Token::With, Token::Values, Token::Ascii40];
    if is(at, Token::Ascii40) && !queries.iter().any(|query| is(at + 1, *query)) {
        let end = (at..tokens.len()).find(|at| is(*at, Token::Ascii41));
        at = end.map_or(0, |end| end + 1);
    }
    while is(at, Token::Analyze) || is(at, Token::Analyse) || is(at, Token::Verbose) {
        at += 1;
    }
    at
}

/// A constant: its first token, and how many belong to it (`-5` is one constant of two).
#[derive(Clone, Copy)]
struct Constant {
    at: usize,
    tokens: usize,
}

/// The constants that stand for values: the places where libpg_query's text has a parameter and this one
/// has none. One that is given a number again repeats a target in GROUP BY, and stays.
fn constants(text: &str, tokens: &[RawToken], start: usize) -> Option<Vec<Constant>> {
    let from = tokens.get(start)?.start;
    let without = ffi::normalize(&CString::new(text.get(from..)?).ok()?)?;
    let others = scan(&without)?;
    let is_param = |token: &RawToken| token.code == Token::Param as i32;
    let (mut found, mut numbers) = (Vec::new(), Vec::new());
    let mut at = start;
    for other in &others {
        let own = tokens.get(at)?;
        if is_param(other) && !is_param(own) {
            let number = without.get(other.start..other.end)?;
            let signed = text.get(own.start..own.end)? == "-";
            let tokens = if signed { 2 } else { 1 };
            if !numbers.contains(&number) {
                numbers.push(number);
                found.push(Constant { at, tokens });
            }
            at += tokens;
            continue;
        }
        if text.get(own.start..own.end)? != without.get(other.start..other.end)? {
            return None;
        }
        at += 1;
    }
    (at == tokens.len()).then_some(found)
}

/// The text with its constants replaced. What stands before the statement has no say in its id.
fn written(
    text: &str,
    (tokens, start): (&[RawToken], usize),
    constants: &[Constant],
) -> Normalized {
    let params = tokens
        .iter()
        .filter(|token| token.code == Token::Param as i32);
    let numbers = params.filter_map(|token| text[token.start + 1..token.end].parse::<u32>().ok());
    let mut number = numbers.max().unwrap_or(0);
    let (mut out, mut hashed) = (String::with_capacity(text.len()), Vec::new());
    let (mut copied, mut at) = (0, 0);
    let mut left = constants.iter().peekable();
    while let Some(token) = tokens.get(at) {
        if at < start {
            at += 1;
            continue;
        }
        if let Some(constant) = left.next_if(|constant| constant.at == at) {
            let last = tokens.get(at + constant.tokens - 1).unwrap_or(token);
            number += 1;
            out.push_str(&text[copied..token.start]);
            out.push_str(&format!("${number}"));
            hashed.push(kind_of(last));
            copied = last.end;
            at += constant.tokens;
        } else {
            let own = &text[token.start..token.end];
            match own.starts_with('"') || token.code == Token::Sconst as i32 {
                true => hashed.extend_from_slice(own.as_bytes()),
                false => hashed.extend(own.bytes().map(|byte| byte.to_ascii_lowercase())),
            }
            at += 1;
        }
        hashed.push(BETWEEN);
    }
    out.push_str(&text[copied..]);
    Normalized {
        text: out,
        id: id_of(&hashed),
    }
}

fn kind_of(token: &RawToken) -> u8 {
    match token.code {
        code if code == Token::Iconst as i32 => NUMBER,
        code if code == Token::Fconst as i32 => DECIMAL,
        code if code == Token::Sconst as i32 || code == Token::Usconst as i32 => STRING,
        // NULL, TRUE, B'1': the code of the token is the kind.
        code => OTHER.wrapping_add((code % 200) as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> String {
        normalize(of).text
    }

    #[test]
    fn constants_are_numbered_from_left_to_right() {
        for (given, wanted) in [
            ("select 1", "select $1"),
            ("SELECT  'a' -- why\n , 2.5", "SELECT  $1 -- why\n , $2"),
            (
                "select a from t where b = -5",
                "select a from t where b = $1",
            ),
            ("select $1, 7 + $2, 8", "select $1, $3 + $2, $4"),
            (
                "with x as (values (1),(2)) select 5, * from x where column1 = 3",
                "with x as (values ($1),($2)) select $3, * from x where column1 = $4",
            ),
            (
                "select true, null, 'x'::text, date '2020-01-01', cast(1 as numeric(10,2)) limit 3",
                "select $1, $2, $3::text, date $4, cast($5 as numeric(10,2)) limit $6",
            ),
            (
                "insert into t values (1, NULL)",
                "insert into t values ($1, $2)",
            ),
            (
                "update t set a = 1 where b in (2, 3)",
                "update t set a = $1 where b in ($2, $3)",
            ),
            ("select '{\"a\":1}'::jsonb ? 'b'", "select $1::jsonb ? $2"),
            ("select 'a'\n 'b'", "select $1"),
            ("select E'a\\'b', $$c$$", "select $1, $2"),
        ] {
            assert_eq!(text(given), wanted);
        }
    }

    #[test]
    fn what_names_columns_stays() {
        assert_eq!(
            text("select a from t order by 1"),
            "select a from t order by 1"
        );
        assert_eq!(
            text("select a+1, count(*) from t group by a+1"),
            "select a+$1, count(*) from t group by a+1"
        );
        assert_eq!(
            text("select a + 1, count(*) from t group by 1 order by 2 limit 10"),
            "select a + $1, count(*) from t group by 1 order by 2 limit $2"
        );
    }

    #[test]
    fn prepared_statements_keep_their_beginning() {
        assert_eq!(
            text("PREPARE p (int) AS SELECT $1, 'test' LIMIT 1"),
            "PREPARE p (int) AS SELECT $1, $2 LIMIT $3"
        );
    }

    #[test]
    fn ids_do_not_depend_on_values() {
        let id = |text: &str| normalize(text).id;
        let one = id("select v from t where k = 1");
        assert_eq!(one, id("SELECT  v FROM t /* c */ WHERE k=4711"));
        assert_eq!(id("select -1"), id("select 1"));
        for other in [
            "select v from t where k = 'a'",
            "select v from t where k = 1.5",
            "select v from t where k = null",
            "select v from \"T\" where k = 1",
            "select v from t where k = $1",
        ] {
            assert_ne!(one, id(other), "{other}");
        }
        assert_eq!(id("prepare p as select v from t where k = 7"), one);
        assert_eq!(
            id("explain (verbose, costs off) select v from t where k = 7"),
            one
        );
        assert_eq!(id("explain verbose select v from t where k = 7"), one);
        assert_ne!(
            id("select a, b from t order by 1"),
            id("select a, b from t order by 2")
        );
        // Whatever else changes, what nodes have counted and what they count must meet.
        assert_eq!(id("select 1"), STABLE);
    }

    const STABLE: i64 = -7_027_243_235_947_224_818;

    #[test]
    fn what_cannot_be_read_stays() {
        let text = "select 'a";
        assert_eq!(normalize(text).text, text);
        assert_ne!(normalize(text).id, 0);
    }
}
