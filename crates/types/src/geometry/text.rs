//! Text forms of the types of geometry.
//!
//! ```text
//! point    (1,2)                   1,2
//! lseg     [(1,2),(3,4)]           ((1,2),(3,4))  (1,2),(3,4)  1,2,3,4
//! box      (3,4),(1,2)             ((1,2),(3,4))  1,2,3,4
//! path     [(1,2),(3,4)]           an open one; ((1,2),(3,4)) and without brackets a closed one
//! polygon  ((1,2),(3,4))           (1,2),(3,4)  1,2,3,4
//! circle   <(1,2),3>               ((1,2),3)  (1,2),3  1,2,3
//! line     {1,2,3}                 two points of it, as those of a lseg
//! ```
//! The first form of each is the one that is written.
//!
//! # What it leaves out
//! Numbers in hexadecimal.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::plane::{is_zero, Line, Point};
use super::{ordered_corners, NO_LINE, SAME_POINT};
use crate::invalid::invalid;
use crate::numeric::is_space;
use crate::{float, growth, Datum, EvalContext, TypeId};

/// What reading or writing a point counts for, in the units of [`coro::work`].
const POINT_WORK: usize = 32;

/// Reads a value.
///
/// # Errors
/// 22P02 where the text is none, 22003 where a number is out of range.
pub fn input(kind: TypeId, text: &str) -> Result<Datum> {
    let mut reader = Reader {
        kind,
        text,
        rest: text,
    };
    let mut numbers = match kind {
        TypeId::POINT => reader.point()?.to_vec(),
        TypeId::LINE => reader.line()?,
        TypeId::CIRCLE => reader.circle()?,
        TypeId::PATH => reader.path()?,
        TypeId::POLYGON => {
            let count = reader.count()?;
            reader.points(count, false)?.1
        }
        _ => reader.points(2, kind == TypeId::LSEG)?.1,
    };
    if !reader.rest.is_empty() {
        return Err(reader.invalid());
    }
    if kind == TypeId::BOX {
        ordered_corners(&mut numbers);
    }
    Ok(Datum::Geometry(Arc::from(numbers)))
}

struct Reader<'a> {
    kind: TypeId,
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn invalid(&self) -> Error {
        invalid(self.kind, self.text)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn eat(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, c: char) -> Result<()> {
        match self.eat(c) {
            true => Ok(()),
            false => Err(self.invalid()),
        }
    }

    /// A number with the blanks around it.
    fn number(&mut self) -> Result<f64> {
        self.skip_space();
        let length = number_length(self.rest);
        let (number, rest) = self.rest.split_at(length);
        if number.is_empty() {
            return Err(self.invalid());
        }
        self.rest = rest;
        self.skip_space();
        float::parse_f64(number)
    }

    /// A pair of numbers, in parentheses or not.
    fn point(&mut self) -> Result<[f64; 2]> {
        coro::work(POINT_WORK)?;
        self.skip_space();
        let is_enclosed = self.eat('(');
        let x = self.number()?;
        self.expect(',')?;
        let y = self.number()?;
        if is_enclosed {
            self.expect(')')?;
            self.skip_space();
        }
        Ok([x, y])
    }

    /// How many points there are, by the commas.
    fn count(&self) -> Result<usize> {
        let commas = self.text.matches(',').count();
        match commas % 2 {
            1 => Ok(commas.div_ceil(2)),
            _ => Err(self.invalid()),
        }
    }

    /// Whether the only parenthesis that opens stands here.
    fn is_only_parenthesis(&self) -> bool {
        self.rest.rfind('(') == Some(0)
    }

    /// So many points, enclosed or not, and whether brackets say that they are open.
    fn points(&mut self, count: usize, may_be_open: bool) -> Result<(bool, Vec<f64>)> {
        self.skip_space();
        let is_open = self.rest.starts_with('[');
        if is_open && !may_be_open {
            return Err(self.invalid());
        }
        let is_enclosed = is_open || {
            let inner = self.rest.strip_prefix('(');
            let inner = inner.map(|inner| inner.trim_start_matches(is_space));
            inner.is_some_and(|inner| inner.starts_with('(')) || self.is_only_parenthesis()
        };
        if is_enclosed {
            self.rest = &self.rest[1..];
        }
        let mut numbers = Vec::with_capacity(2 * count);
        for _ in 0..count {
            numbers.extend(self.point()?);
            self.eat(',');
        }
        if is_enclosed {
            if !(self.eat(')') || is_open && self.eat(']')) {
                return Err(self.invalid());
            }
            self.skip_space();
        }
        Ok((is_open, numbers))
    }

    fn path(&mut self) -> Result<Vec<f64>> {
        let count = self.count()?;
        growth::check_room(0, 16 * count)?;
        self.skip_space();
        let is_enclosed = self.is_only_parenthesis();
        if is_enclosed {
            self.eat('(');
        }
        let (is_open, points) = self.points(count, true)?;
        if is_enclosed {
            self.expect(')')?;
            self.skip_space();
        }
        let closed = f64::from(u8::from(!is_open));
        Ok([closed].into_iter().chain(points).collect())
    }

    fn circle(&mut self) -> Result<Vec<f64>> {
        self.skip_space();
        let is_angled = self.eat('<');
        let is_enclosed = is_angled || {
            let inner = self.rest.strip_prefix('(');
            let inner = inner.map(|inner| inner.trim_start_matches(is_space));
            inner.is_some_and(|inner| inner.starts_with('('))
        };
        if is_enclosed && !is_angled {
            self.eat('(');
        }
        let [x, y] = self.point()?;
        self.eat(',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.invalid());
        }
        if is_enclosed {
            if !(self.eat(')') || self.eat('>')) {
                return Err(self.invalid());
            }
            self.skip_space();
        }
        Ok(vec![x, y, radius])
    }

    fn line(&mut self) -> Result<Vec<f64>> {
        let wrong = |message: &str| Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message);
        self.skip_space();
        if !self.eat('{') {
            let (_, points) = self.points(2, true)?;
            if !self.rest.is_empty() {
                return Err(self.invalid());
            }
            let (first, second) = (
                Point::new(points[0], points[1]),
                Point::new(points[2], points[3]),
            );
            if first.is_same(second) {
                return Err(wrong(SAME_POINT));
            }
            let line = Line::through(first, first.slope(second)?)?;
            return Ok(vec![line.a, line.b, line.c]);
        }
        let a = self.number()?;
        self.expect(',')?;
        let b = self.number()?;
        self.expect(',')?;
        let c = self.number()?;
        self.expect('}')?;
        self.skip_space();
        if !self.rest.is_empty() {
            return Err(self.invalid());
        }
        match is_zero(a) && is_zero(b) {
            true => Err(wrong(NO_LINE)),
            false => Ok(vec![a, b, c]),
        }
    }
}

/// How much of a text is a number, as C's `strtod` takes it.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let word = &text[sign..];
    for name in ["infinity", "inf", "nan"] {
        let found = word.get(..name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return sign + name.len();
        }
    }
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

/// Appends the text form of a value.
///
/// # Errors
/// 54000 where it becomes too long; the pending interrupt.
pub fn write(context: &EvalContext, kind: TypeId, numbers: &[f64], out: &mut String) -> Result<()> {
    let put = |number: f64, out: &mut String| {
        float::write_f64(number, context.extra_float_digits, out);
    };
    match (kind, numbers) {
        (TypeId::LINE, [a, b, c]) => {
            let parts = [('{', a), (',', b), (',', c)];
            for (before, number) in parts {
                out.push(before);
                put(*number, out);
            }
            out.push('}');
            Ok(())
        }
        (TypeId::CIRCLE, [center @ .., radius]) => {
            out.push('<');
            write_points(center, &put, out)?;
            out.push(',');
            put(*radius, out);
            out.push('>');
            Ok(())
        }
        (TypeId::PATH, [closed, points @ ..]) if *closed == 0.0 => {
            enclosed(['[', ']'], points, &put, out)
        }
        (TypeId::PATH, [_, points @ ..]) => enclosed(['(', ')'], points, &put, out),
        (TypeId::POLYGON, points) => enclosed(['(', ')'], points, &put, out),
        (TypeId::LSEG, points) => enclosed(['[', ']'], points, &put, out),
        (_, points) => write_points(points, &put, out),
    }
}

fn enclosed(
    [open, close]: [char; 2],
    points: &[f64],
    put: &impl Fn(f64, &mut String),
    out: &mut String,
) -> Result<()> {
    out.push(open);
    write_points(points, put, out)?;
    out.push(close);
    Ok(())
}

fn write_points(points: &[f64], put: &impl Fn(f64, &mut String), out: &mut String) -> Result<()> {
    for (number, point) in points.chunks_exact(2).enumerate() {
        coro::work(POINT_WORK)?;
        growth::check_room(out.len(), POINT_WORK)?;
        out.push_str(if number > 0 { ",(" } else { "(" });
        put(point[0], out);
        out.push(',');
        put(point[1], out);
        out.push(')');
    }
    Ok(())
}
