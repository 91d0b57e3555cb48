//! Sets in brackets: `[a-z_]`, `[^[:space:]]`, `[[.hyphen.][=e=]]`.

use super::parse::{
    Escape, Parser, Refusal, BAD_BRACKETS, BAD_CLASS, BAD_ELEMENT, BAD_ESCAPE, BAD_RANGE,
};
use super::set::{CharSet, Class};
use super::syntax::Assert;

/// The names of characters in `[. .]`, beside the characters themselves.
const ELEMENTS: [(&str, char); 95] = [
    ("NUL", '\0'),
    ("SOH", '\u{1}'),
    ("STX", '\u{2}'),
    ("ETX", '\u{3}'),
    ("EOT", '\u{4}'),
    ("ENQ", '\u{5}'),
    ("ACK", '\u{6}'),
    ("BEL", '\u{7}'),
    ("alert", '\u{7}'),
    ("BS", '\u{8}'),
    ("backspace", '\u{8}'),
    ("HT", '\t'),
    ("tab", '\t'),
    ("LF", '\n'),
    ("newline", '\n'),
    ("VT", '\u{b}'),
    ("vertical-tab", '\u{b}'),
    ("FF", '\u{c}'),
    ("form-feed", '\u{c}'),
    ("CR", '\r'),
    ("carriage-return", '\r'),
    ("SO", '\u{e}'),
    ("SI", '\u{f}'),
    ("DLE", '\u{10}'),
    ("DC1", '\u{11}'),
    ("DC2", '\u{12}'),
    ("DC3", '\u{13}'),
    ("DC4", '\u{14}'),
    ("NAK", '\u{15}'),
    ("SYN", '\u{16}'),
    ("ETB", '\u{17}'),
    ("CAN", '\u{18}'),
    ("EM", '\u{19}'),
    ("SUB", '\u{1a}'),
    ("ESC", '\u{1b}'),
    ("IS4", '\u{1c}'),
    ("FS", '\u{1c}'),
    ("IS3", '\u{1d}'),
    ("GS", '\u{1d}'),
    ("IS2", '\u{1e}'),
    ("RS", '\u{1e}'),
    ("IS1", '\u{1f}'),
    ("US", '\u{1f}'),
    ("space", ' '),
    ("exclamation-mark", '!'),
    ("quotation-mark", '"'),
    ("number-sign", '#'),
    ("dollar-sign", '$'),
    ("percent-sign", '%'),
    ("ampersand", '&'),
    ("apostrophe", '\''),
    ("left-parenthesis", '('),
    ("right-parenthesis", ')'),
    ("asterisk", '*'),
    ("plus-sign", '+'),
    ("comma", ','),
    ("hyphen", '-'),
    ("hyphen-minus", '-'),
    ("period", '.'),
    ("full-stop", '.'),
    ("slash", '/'),
    ("solidus", '/'),
    ("zero", '0'),
    ("one", '1'),
    ("two", '2'),
    ("three", '3'),
    ("four", '4'),
    ("five", '5'),
    ("six", '6'),
    ("seven", '7'),
    ("eight", '8'),
    ("nine", '9'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less-than-sign", '<'),
    ("equals-sign", '='),
    ("greater-than-sign", '>'),
    ("question-mark", '?'),
    ("commercial-at", '@'),
    ("left-square-bracket", '['),
    ("backslash", '\\'),
    ("reverse-solidus", '\\'),
    ("right-square-bracket", ']'),
    ("circumflex", '^'),
    ("circumflex-accent", '^'),
    ("underscore", '_'),
    ("low-line", '_'),
    ("grave-accent", '`'),
    ("left-brace", '{'),
    ("left-curly-bracket", '{'),
    ("vertical-line", '|'),
    ("right-brace", '}'),
    ("right-curly-bracket", '}'),
    ("tilde", '~'),
    ("DEL", '\u{7f}'),
];

/// The conditions `[[:<:]]` and `[[:>:]]`, whose first bracket is taken.
pub fn word_bracket(parser: &mut Parser) -> Option<Assert> {
    if parser.eat_all("[:<:]]") {
        return Some(Assert::WordStart);
    }
    parser.eat_all("[:>:]]").then_some(Assert::WordEnd)
}

/// A set whose opening bracket is taken.
pub fn bracket(parser: &mut Parser) -> Result<CharSet, Refusal> {
    let negated = parser.eat('^');
    let mut set = CharSet::empty();
    let mut first = true;
    loop {
        match parser.peek() {
            None => return Err(BAD_BRACKETS),
            Some(']') if !first => break,
            _ => part(parser, &mut set, first)?,
        }
        first = false;
    }
    parser.next();
    if !negated {
        return Ok(set);
    }
    if parser.flags.fold {
        set.fold();
    }
    let outside = set.complement();
    Ok(match parser.flags.stop_newline {
        true => outside.without('\n'),
        false => outside,
    })
}

/// One character, a range, or a class.
fn part(parser: &mut Parser, set: &mut CharSet, first: bool) -> Result<(), Refusal> {
    let start = match parser.peek() {
        Some('-') if !first && parser.peek_at(1) != Some(']') => return Err(BAD_RANGE),
        Some('[') if parser.eat_all("[:") => {
            let name = name(parser, ':')?;
            let mut class = Class::named(&name).ok_or(BAD_CLASS)?;
            if parser.flags.fold && matches!(class, Class::Lower | Class::Upper) {
                class = Class::Alpha;
            }
            set.join(class.set());
            return Ok(());
        }
        Some('[') if parser.eat_all("[=") => {
            let c = element(&name(parser, '=')?)?;
            set.add(c as u32, c as u32);
            return Ok(());
        }
        Some('\\') if parser.flags.advanced => {
            parser.next();
            match parser.escape()? {
                Escape::Char(c) => c,
                Escape::Class(class, negated) => {
                    let mut members = class.set().clone();
                    if parser.flags.fold {
                        members.fold();
                    }
                    match negated {
                        true => set.join(&members.complement()),
                        false => set.join(&members),
                    }
                    return Ok(());
                }
                Escape::Assert(_) | Escape::Back(_) => return Err(BAD_ESCAPE),
            }
        }
        _ => single(parser)?,
    };
    let is_range = parser.peek() == Some('-') && parser.peek_at(1).is_some_and(|c| c != ']');
    let mut end = start;
    if is_range {
        parser.next();
        end = match parser.peek() {
            Some('[') if matches!(parser.peek_at(1), Some(':' | '=')) => return Err(BAD_RANGE),
            Some('\\') if parser.flags.advanced => {
                parser.next();
                match parser.escape()? {
                    Escape::Char(c) => c,
                    Escape::Class(..) => return Err(BAD_RANGE),
                    Escape::Assert(_) | Escape::Back(_) => return Err(BAD_ESCAPE),
                }
            }
            _ => single(parser)?,
        };
    }
    if start > end {
        return Err(BAD_RANGE);
    }
    set.add(start as u32, end as u32);
    Ok(())
}

/// A character, or a collating element.
fn single(parser: &mut Parser) -> Result<char, Refusal> {
    match parser.eat_all("[.") {
        true => element(&name(parser, '.')?),
        false => parser.next().ok_or(BAD_BRACKETS),
    }
}

/// What stands before a character and `]`.
fn name(parser: &mut Parser, end: char) -> Result<String, Refusal> {
    let mut name = String::new();
    loop {
        let c = parser.next().ok_or(BAD_BRACKETS)?;
        if c == end && parser.peek() == Some(']') {
            parser.next();
            return Ok(name);
        }
        name.push(c);
    }
}

fn element(name: &str) -> Result<char, Refusal> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Ok(c);
    }
    let found = ELEMENTS.iter().find(|known| known.0 == name);
    found.map(|known| known.1).ok_or(BAD_ELEMENT)
}
