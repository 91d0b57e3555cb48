//! The text of a query: as a `tsquery` shows itself, and as search engines take it.
//!
//! ```text
//! fat & (rat:AB* | !'big cat') <2> dog        the text form
//! "fat cat" or -dog                           websearch_to_tsquery's
//! ```
//! What a word becomes is the caller's: itself for `'…'::tsquery`, lexemes for `to_tsquery`.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::query::{too_distant, Builder, Node, Operand, Query, OPERATORS_MAX};
use super::token::{is_operator, is_space, Kind, Tokens};
use super::POSITION_END;

/// A word of a query.
#[derive(Debug)]
pub struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// The weights that count, a bit each.
    pub weights: u8,
    /// Whether what begins with it counts.
    pub prefix: bool,
    /// The whole query, for errors.
    pub whole: &'a str,
}

/// What a query became.
#[derive(Debug)]
pub enum Outcome {
    /// A query.
    Query(Query),
    /// It has no words.
    NoWords,
    /// Nothing was left of its words.
    OnlyStops,
}

enum Item {
    Word(String, u8, bool),
    Operator(Node),
    Open,
    Close,
    End,
    /// The end where an operand is wanted.
    Missing,
}

struct Reader<'a> {
    tokens: Tokens<'a>,
    is_web: bool,
    depth: usize,
    wants_operator: bool,
    is_first: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.tokens.rest().chars().next()
    }

    fn skip_space(&mut self) {
        let rest = self.tokens.rest();
        self.tokens.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    /// What stands behind the colon of a word.
    fn modifiers(&mut self) -> (u8, bool) {
        let (mut weights, mut prefix) = (0, false);
        if self.peek() != Some(':') {
            return (weights, prefix);
        }
        self.tokens.at += 1;
        while let Some(c) = self.peek() {
            match c {
                'a' | 'A' => weights |= 8,
                'b' | 'B' => weights |= 4,
                'c' | 'C' => weights |= 2,
                'd' | 'D' => weights |= 1,
                '*' => prefix = true,
                _ => break,
            }
            self.tokens.at += 1;
        }
        (weights, prefix)
    }

    /// The operator `<->` or `<N>`.
    fn phrase(&mut self) -> Result<Option<Node>> {
        let Some(rest) = self.tokens.rest().strip_prefix('<') else {
            return Ok(None);
        };
        if let Some(rest) = rest.strip_prefix("->") {
            self.tokens.at = self.tokens.whole.len() - rest.len();
            return Ok(Some(Node::Phrase(1)));
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Ok(None);
        }
        let distance: Option<u16> = rest[..digits].parse().ok();
        let distance = distance.filter(|distance| *distance <= POSITION_END);
        let distance = distance.ok_or_else(too_distant)?;
        let Some(rest) = rest[digits..].strip_prefix('>') else {
            return Ok(None);
        };
        self.tokens.at = self.tokens.whole.len() - rest.len();
        Ok(Some(Node::Phrase(distance)))
    }

    /// The operator `or` of search engines, which something stands behind.
    fn or(&mut self) -> bool {
        let rest = self.tokens.rest();
        let begins = rest
            .get(..2)
            .is_some_and(|two| two.eq_ignore_ascii_case("or"));
        let Some(c) = rest
            .get(2..)
            .filter(|_| begins)
            .and_then(|rest| rest.chars().next())
        else {
            return false;
        };
        if matches!(c, '-' | '_') || c.is_alphabetic() || c.is_ascii_digit() {
            return false;
        }
        let behind = &rest[2 + c.len_utf8()..];
        if behind.trim_start_matches(is_space).is_empty() {
            return false;
        }
        self.tokens.at += 2;
        true
    }

    fn no_operand(&self) -> Error {
        let message = format!("no operand in tsquery: \"{}\"", self.tokens.whole);
        Error::new(SqlState::SYNTAX_ERROR, message)
    }

    fn end_of_operands(&self) -> Result<Item> {
        match (self.is_first, self.is_web) {
            (true, _) => Ok(Item::End),
            (false, true) => Ok(Item::Missing),
            (false, false) => Err(self.no_operand()),
        }
    }

    fn operand(&mut self) -> Result<Item> {
        self.skip_space();
        match self.peek() {
            Some('!') => {
                self.tokens.at += 1;
                self.is_first = false;
                Ok(Item::Operator(Node::Not))
            }
            Some('(') => {
                self.tokens.at += 1;
                self.is_first = false;
                self.depth += 1;
                Ok(Item::Open)
            }
            Some(':') => Err(self.tokens.syntax_error()),
            _ => match self.tokens.next_token()? {
                Some(token) => {
                    let (weights, prefix) = self.modifiers();
                    self.wants_operator = true;
                    Ok(Item::Word(token.word, weights, prefix))
                }
                None => self.end_of_operands(),
            },
        }
    }

    fn operator(&mut self) -> Result<Item> {
        self.skip_space();
        let node = match self.peek() {
            None if self.depth > 0 => return Err(self.tokens.syntax_error()),
            None => return Ok(Item::End),
            Some(')') => {
                self.tokens.at += 1;
                self.depth = match self.depth.checked_sub(1) {
                    Some(depth) => depth,
                    None => return Err(self.tokens.syntax_error()),
                };
                return Ok(Item::Close);
            }
            Some('&') => {
                self.tokens.at += 1;
                Node::And
            }
            Some('|') => {
                self.tokens.at += 1;
                Node::Or
            }
            Some(_) => match self.phrase()? {
                Some(node) => node,
                None => return Err(self.tokens.syntax_error()),
            },
        };
        self.wants_operator = false;
        self.is_first = false;
        Ok(Item::Operator(node))
    }

    fn web_operand(&mut self) -> Result<Item> {
        loop {
            self.skip_space();
            match self.peek() {
                Some('-') => {
                    self.tokens.at += 1;
                    self.is_first = false;
                    return Ok(Item::Operator(Node::Not));
                }
                Some('"') => {
                    let rest = &self.tokens.rest()[1..];
                    let end = rest.find('"').unwrap_or(rest.len());
                    let quote = usize::from(end < rest.len());
                    self.tokens.at += 1 + end + quote;
                    self.wants_operator = true;
                    return Ok(Item::Word(rest[..end].to_owned(), 0, false));
                }
                Some(c) if is_operator(c) => {
                    self.tokens.at += 1;
                    self.is_first = false;
                }
                _ => {
                    return match self.tokens.next_token()? {
                        Some(token) => {
                            self.wants_operator = true;
                            Ok(Item::Word(token.word, 0, false))
                        }
                        None => self.end_of_operands(),
                    }
                }
            }
        }
    }

    fn web_operator(&mut self) -> Item {
        self.skip_space();
        if self.peek().is_none() {
            return Item::End;
        }
        let node = match self.peek() != Some('"') && self.or() {
            true => Node::Or,
            false => Node::And,
        };
        self.wants_operator = false;
        self.is_first = false;
        Item::Operator(node)
    }

    fn next(&mut self) -> Result<Item> {
        match (self.wants_operator, self.is_web) {
            (false, false) => self.operand(),
            (true, false) => self.operator(),
            (false, true) => self.web_operand(),
            (true, true) => Ok(self.web_operator()),
        }
    }
}

/// Appends the operators that bind tighter than one that comes.
fn settle(operators: &mut Vec<Node>, next: &Node, builder: &mut Builder) {
    while let Some(last) = operators.last() {
        let waits = match next {
            Node::Not => next.priority() >= last.priority(),
            _ => next.priority() > last.priority(),
        };
        if waits {
            break;
        }
        builder.operators_pop(operators);
    }
}

impl Builder {
    fn operators_pop(&mut self, operators: &mut Vec<Node>) {
        if let Some(node) = operators.pop() {
            self.operator(node);
        }
    }
}

/// Reads a query; each word is appended by `push`.
///
/// # Errors
/// 42601, 22023, 54000, and those of `push`.
pub fn read(
    whole: &str,
    is_web: bool,
    mut push: impl FnMut(&mut Builder, &Word<'_>) -> Result<()>,
) -> Result<Outcome> {
    let kind = if is_web { Kind::Web } else { Kind::Query };
    let mut reader = Reader {
        tokens: Tokens::new(whole, kind),
        is_web,
        depth: 0,
        wants_operator: false,
        is_first: true,
    };
    let mut builder = Builder::default();
    let mut outer: Vec<Vec<Node>> = Vec::new();
    let mut operators: Vec<Node> = Vec::new();
    loop {
        coro::work(16)?;
        match reader.next()? {
            Item::Word(text, weights, prefix) => {
                let word = Word {
                    text: &text,
                    weights,
                    prefix,
                    whole,
                };
                push(&mut builder, &word)?;
            }
            Item::Operator(node) => {
                settle(&mut operators, &node, &mut builder);
                if operators.len() == OPERATORS_MAX {
                    return Err(Error::internal("tsquery stack too small"));
                }
                operators.push(node);
            }
            Item::Open => outer.push(std::mem::take(&mut operators)),
            Item::Close => {
                settle(&mut operators, &Node::Or, &mut builder);
                operators = outer.pop().unwrap_or_default();
            }
            Item::Missing => {
                builder.stop();
                break;
            }
            Item::End => break,
        }
    }
    settle(&mut operators, &Node::Or, &mut builder);
    if builder.is_empty() {
        return Ok(Outcome::NoWords);
    }
    Ok(match builder.finish()? {
        Some(query) => Outcome::Query(query),
        None => Outcome::OnlyStops,
    })
}

/// Reads the text form, in which each word is a lexeme.
///
/// # Errors
/// As [`read`].
pub fn input(text: &str) -> Result<Outcome> {
    read(text, false, |builder, word| {
        if word.text.is_empty() {
            builder.stop();
            return Ok(());
        }
        let operand = Operand {
            text: word.text.to_owned(),
            weights: word.weights,
            prefix: word.prefix,
        };
        builder.operand(operand, word.whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = String::new();
        match input(text) {
            Ok(Outcome::Query(query)) => query.write(&mut out),
            Ok(_) => {}
            Err(error) => out = error.message().to_owned(),
        }
        out
    }

    #[test]
    fn texts_come_back() {
        for (text, wanted) in [
            ("", ""),
            ("a", "'a'"),
            ("a & b | !c", "'a' & 'b' | !'c'"),
            ("a & (b | c)", "'a' & ( 'b' | 'c' )"),
            ("!(a & b)", "!( 'a' & 'b' )"),
            ("!!a", "!!'a'"),
            ("a <-> (b <2> c)", "'a' <-> ( 'b' <2> 'c' )"),
            ("(a <-> b) <0> c", "'a' <-> 'b' <0> 'c'"),
            ("'it''s':*aB", "'it''s':*AB"),
            ("a &", "no operand in tsquery: \"a &\""),
            ("a b", "syntax error in tsquery: \"a b\""),
            ("(a", "syntax error in tsquery: \"(a\""),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
    }

    #[test]
    fn deep_queries_are_read_and_shown() {
        let depth = 100_000;
        let text = format!("{}a{}", "(b&".repeat(depth), ")".repeat(depth));
        let out = shown(&text);
        assert!(out.starts_with("'b' & 'b'"));
    }
}
