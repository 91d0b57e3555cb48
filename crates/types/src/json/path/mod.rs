//! jsonpath: its tree, how it is read and how it is printed.
//!
//! A value of the type is kept as its printed text; whoever follows it reads it once more. What a
//! path does is `functions::json::follow`'s.
//!
//! ```text
//! strict $.a[0 to last] ? (@ > $x).size()     strict $."a"[0 to last]?(@ > $"x").size()
//! ```
//!
//! # What it leaves out
//! Regular expressions of `like_regex` are not compiled when a path is read, but when it is
//! followed.

mod lex;
mod parse;

use base::error::{Error, Result, SqlState};

use super::write_string;
use crate::{Datum, Numeric};

/// A path with its mode.
#[derive(Clone, Debug)]
pub struct Path {
    /// Not strict.
    pub lax: bool,
    /// What it does.
    pub steps: Steps,
}

/// A value, or a condition, and what is done to it further, one after the other.
pub type Steps = Vec<Step>;

/// A two-sided operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

impl Operator {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Or => "||",
            Operator::And => "&&",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mul => "*",
            Operator::Div => "/",
            Operator::Mod => "%",
        }
    }

    fn priority(self) -> u8 {
        match self {
            Operator::Or => 0,
            Operator::And => 1,
            Operator::Add | Operator::Sub => 3,
            Operator::Mul | Operator::Div | Operator::Mod => 4,
            _ => 2,
        }
    }

    /// Whether it computes a number.
    pub fn is_arithmetic(self) -> bool {
        self.priority() >= 3
    }
}

/// A method without arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Abs,
    Size,
    Type,
    Floor,
    Double,
    Ceiling,
    KeyValue,
}

impl Method {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Size => "size",
            Method::Type => "type",
            Method::Floor => "floor",
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::KeyValue => "keyvalue",
        }
    }

    fn named(name: &str) -> Option<Method> {
        use Method::*;
        let all = [Abs, Size, Type, Floor, Double, Ceiling, KeyValue];
        all.into_iter()
            .find(|method| method.name().eq_ignore_ascii_case(name))
    }
}

/// A level of `**`; `None` is the last.
pub type Level = Option<u32>;

/// A step of a path.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Step {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Variable(String),
    Root,
    Current,
    Last,
    Key(String),
    AnyKey,
    AnyElement,
    /// Indexes, and ranges of them.
    Elements(Vec<(Steps, Option<Steps>)>),
    /// Everything between two levels.
    Any(Level, Level),
    Filter(Steps),
    Method(Method),
    /// With its template.
    Datetime(Option<String>),
    Not(Steps),
    IsUnknown(Steps),
    Exists(Steps),
    StartsWith(Steps, Steps),
    /// A pattern and its flags.
    LikeRegex(Steps, String, String),
    Binary(Operator, Steps, Steps),
    Plus(Steps),
    Minus(Steps),
}

impl Step {
    fn priority(&self) -> u8 {
        match self {
            Step::Binary(operator, ..) => operator.priority(),
            Step::StartsWith(..) => 2,
            Step::Plus(_) | Step::Minus(_) => 5,
            _ => 6,
        }
    }
}

/// Reads a path: its text as it is printed.
///
/// # Errors
/// 22P02 when it is empty; 42601, 0A000.
pub fn input(text: &str) -> Result<Datum> {
    let path = parse(text)?;
    Ok(Datum::text(path.to_text()))
}

/// Reads a path.
///
/// # Errors
/// As [`input`].
pub fn parse(text: &str) -> Result<Path> {
    match parse::path(text)? {
        Some(path) => Ok(path),
        None => Err(Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type jsonpath: \"{text}\""),
        )),
    }
}

impl Path {
    /// Its text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if !self.lax {
            out.push_str("strict ");
        }
        write_steps(&self.steps, true, &mut out);
        out
    }
}

fn write_level(level: Level, out: &mut String) {
    match level {
        None => out.push_str("last"),
        Some(level) => out.push_str(&level.to_string()),
    }
}

fn write_steps(steps: &Steps, brackets: bool, out: &mut String) {
    for (at, step) in steps.iter().enumerate() {
        if matches!(step, Step::Number(_)) && steps.len() > 1 {
            // Without, the point behind it would be its own.
            out.push('(');
            write_step(step, false, false, out);
            out.push(')');
            continue;
        }
        write_step(step, at > 0, brackets || at > 0 || steps.len() > 1, out);
    }
}

/// An operand of an operator.
fn write_operand(steps: &Steps, priority: u8, out: &mut String) {
    let brackets = steps
        .first()
        .is_some_and(|first| first.priority() <= priority);
    write_steps(steps, brackets, out);
}

fn bracketed(brackets: bool, out: &mut String, inner: impl FnOnce(&mut String)) {
    if brackets {
        out.push('(');
    }
    inner(out);
    if brackets {
        out.push(')');
    }
}

fn write_step(step: &Step, follows: bool, brackets: bool, out: &mut String) {
    let dot = if follows { "." } else { "" };
    match step {
        Step::Null => out.push_str("null"),
        Step::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Step::Number(number) => out.push_str(&number.to_string()),
        Step::String(text) => write_string(text, out),
        Step::Variable(name) => {
            out.push('$');
            write_string(name, out);
        }
        Step::Root => out.push('$'),
        Step::Current => out.push('@'),
        Step::Last => out.push_str("last"),
        Step::Key(key) => {
            out.push_str(dot);
            write_string(key, out);
        }
        Step::AnyKey => {
            out.push_str(dot);
            out.push('*');
        }
        Step::AnyElement => out.push_str("[*]"),
        Step::Elements(elements) => {
            out.push('[');
            for (at, (from, to)) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_steps(from, false, out);
                if let Some(to) = to {
                    out.push_str(" to ");
                    write_steps(to, false, out);
                }
            }
            out.push(']');
        }
        Step::Any(first, last) => {
            out.push_str(dot);
            out.push_str("**");
            if (*first, *last) == (Some(0), None) {
                return;
            }
            out.push('{');
            write_level(*first, out);
            if first != last {
                out.push_str(" to ");
                write_level(*last, out);
            }
            out.push('}');
        }
        Step::Filter(condition) => {
            out.push_str("?(");
            write_steps(condition, false, out);
            out.push(')');
        }
        Step::Method(method) => out.push_str(&format!(".{}()", method.name())),
        Step::Datetime(template) => {
            out.push_str(".datetime(");
            if let Some(template) = template {
                write_string(template, out);
            }
            out.push(')');
        }
        Step::Not(inner) => {
            out.push_str("!(");
            write_steps(inner, false, out);
            out.push(')');
        }
        Step::IsUnknown(inner) => {
            out.push('(');
            write_steps(inner, false, out);
            out.push_str(") is unknown");
        }
        Step::Exists(inner) => {
            out.push_str("exists (");
            write_steps(inner, false, out);
            out.push(')');
        }
        Step::StartsWith(left, right) => bracketed(brackets, out, |out| {
            write_operand(left, step.priority(), out);
            out.push_str(" starts with ");
            write_operand(right, step.priority(), out);
        }),
        Step::LikeRegex(left, pattern, flags) => bracketed(brackets, out, |out| {
            write_operand(left, step.priority(), out);
            out.push_str(" like_regex ");
            write_string(pattern, out);
            if !flags.is_empty() {
                out.push_str(&format!(" flag \"{flags}\""));
            }
        }),
        Step::Binary(operator, left, right) => bracketed(brackets, out, |out| {
            write_operand(left, operator.priority(), out);
            out.push_str(&format!(" {} ", operator.sign()));
            write_operand(right, operator.priority(), out);
        }),
        Step::Plus(inner) | Step::Minus(inner) => bracketed(brackets, out, |out| {
            out.push(if matches!(step, Step::Plus(_)) {
                '+'
            } else {
                '-'
            });
            write_operand(inner, step.priority(), out);
        }),
    }
}
