//! Text forms of arrays (`{1,NULL,"a b"}`), rows (`(1,,"a b")`), ranges (`[1,"a b")`) and multiranges
//! (`{[1,2),(5,)}`).
//!
//! # What it leaves out
//! Rows with fields of domains: what those must meet is tested where an expression makes a row, and
//! text of such a row is refused.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::growth::GrowingElements;
use super::numeric::is_space;
use super::{
    growth, row_of, text, Array, Bound, Datum, Dimension, EvalContext, Multirange, Range, Record,
    TypeId,
};

/// Dimensions that an array has at most.
const DIMENSIONS_MAX: usize = 6;

fn malformed(text: &str, detail: impl Into<String>) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// What reading or writing a range counts for, in the units of [`coro::work`], beside its bytes.
const RANGE_WORK: usize = 64;

/// What writing an element counts for, in the units of [`coro::work`], beside its bytes.
const ELEMENT_WORK: usize = 64;

/// Appends the text form of an array.
///
/// It gives way: whoever has something borrowed that others need must not call it.
pub fn write(context: &EvalContext, array: &Array, out: &mut String) -> Result<()> {
    if array.dimensions.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    if array.dimensions.iter().any(|d| d.lower != 1) {
        for dimension in &array.dimensions {
            let upper = dimension.lower + dimension.len - 1;
            out.push_str(&format!("[{}:{upper}]", dimension.lower));
        }
        out.push('=');
    }
    let mut elements = array.elements.iter();
    write_level(context, array, 0, &mut elements, out)
}

/// What stands between elements of that type.
fn delimiter(context: &EvalContext, element: TypeId) -> char {
    match element.is_of_domain() {
        true => context
            .base_type(element)
            .map_or(',', |base| base.0.delimiter()),
        false => element.delimiter(),
    }
}

fn write_level<'a>(
    context: &EvalContext,
    array: &Array,
    level: usize,
    elements: &mut impl Iterator<Item = &'a Datum>,
    out: &mut String,
) -> Result<()> {
    let delimiter = delimiter(context, array.element);
    out.push('{');
    for index in 0..array.dimensions[level].len {
        if index > 0 {
            out.push(delimiter);
        }
        if level + 1 < array.dimensions.len() {
            write_level(context, array, level + 1, elements, out)?;
            continue;
        }
        match elements.next() {
            None | Some(Datum::Null) => out.push_str("NULL"),
            Some(element) => {
                let form = text::output(context, array.element, element)?;
                coro::work(ELEMENT_WORK + form.len())?;
                growth::check_room(out.len(), 2 * form.len())?;
                let special =
                    |c: char| c == delimiter || is_space(c) || matches!(c, '{' | '}' | '"' | '\\');
                let quoted =
                    form.is_empty() || form.eq_ignore_ascii_case("null") || form.contains(special);
                put_quoted(out, &form, quoted);
            }
        }
    }
    out.push('}');
    Ok(())
}

fn put_quoted(out: &mut String, form: &str, quoted: bool) {
    if !quoted {
        return out.push_str(form);
    }
    out.push('"');
    for c in form.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

/// Appends the text form of a row.
pub fn write_record(context: &EvalContext, row: &Record, out: &mut String) -> Result<()> {
    out.push('(');
    for (index, (kind, value)) in row.types.iter().zip(&row.values).enumerate() {
        if index > 0 {
            out.push(',');
        }
        if value.is_null() {
            continue;
        }
        let form = text::output(context, *kind, value)?;
        let special = |c: char| is_space(c) || matches!(c, '(' | ')' | ',' | '"' | '\\');
        if form.is_empty() || form.contains(special) {
            out.push('"');
            for c in form.chars() {
                if matches!(c, '"' | '\\') {
                    out.push(c);
                }
                out.push(c);
            }
            out.push('"');
        } else {
            out.push_str(&form);
        }
    }
    out.push(')');
    Ok(())
}

/// Reads the text form of an `int2vector` or `oidvector`: elements between spaces.
pub fn parse_vector(context: &EvalContext, kind: TypeId, text: &str) -> Result<Datum> {
    let element = kind.info().map_or(TypeId::NONE, |info| info.element);
    let elements = text
        .split_ascii_whitespace()
        .map(|word| text::input(context, element, -1, word))
        .collect::<Result<Vec<_>>>()?;
    let len = elements.len() as i32;
    Ok(Datum::Array(Arc::new(Array {
        element,
        dimensions: vec![Dimension { len, lower: 0 }],
        elements,
    })))
}

/// Reads the text form of an array.
///
/// # Errors
/// 22P02 "malformed array literal", and those of the element type.
pub fn parse(context: &EvalContext, element: TypeId, typmod: i32, text: &str) -> Result<Datum> {
    let mut body = text.trim_matches(is_space);
    let mut bounds = Vec::new();
    while let Some(rest) = body.strip_prefix('[') {
        let (bound, rest) = rest
            .split_once(']')
            .ok_or_else(|| malformed(text, "Missing \"]\" after array dimensions."))?;
        bounds.push(parse_bound(text, bound)?);
        body = rest.trim_start_matches(is_space);
    }
    if !bounds.is_empty() {
        body = body
            .strip_prefix('=')
            .ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?
            .trim_start_matches(is_space);
    }
    if !body.starts_with('{') {
        let detail = match bounds.is_empty() {
            true => "Array value must start with \"{\" or dimension information.",
            false => "Array contents must start with \"{\".",
        };
        return Err(malformed(text, detail));
    }
    let mut reader = Reader {
        context,
        element,
        delimiter: delimiter(context, element),
        typmod,
        text,
        rest: body,
        dimensions: Vec::new(),
        elements: GrowingElements::default(),
    };
    reader.level(0)?;
    if !reader.rest.is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let mut dimensions = Vec::new();
    if !reader.elements.is_empty() {
        let lengths = reader.dimensions.iter().map(|len| len.unwrap_or(0));
        dimensions.extend(lengths.map(|len| Dimension { len, lower: 1 }));
    }
    if !bounds.is_empty() {
        let fits = bounds.len() == dimensions.len()
            && bounds.iter().zip(&dimensions).all(|(b, d)| b.len == d.len);
        if !fits {
            let detail = "Specified array dimensions do not match array contents.";
            return Err(malformed(text, detail));
        }
        dimensions = bounds;
    }
    Ok(Datum::Array(Arc::new(Array {
        element,
        dimensions,
        elements: reader.elements.into_elements(),
    })))
}

fn parse_bound(text: &str, bound: &str) -> Result<Dimension> {
    let wrong = || {
        malformed(
            text,
            "\"[\" must introduce explicitly-specified array dimensions.",
        )
    };
    let number = |part: &str| part.parse::<i32>().map_err(|_| wrong());
    let (lower, upper) = match bound.split_once(':') {
        Some((lower, upper)) => (number(lower)?, number(upper)?),
        None => (1, number(bound)?),
    };
    let len = upper
        .checked_sub(lower)
        .and_then(|span| span.checked_add(1))
        .filter(|len| *len > 0)
        .ok_or_else(|| {
            Error::new(
                SqlState::of("2202E"),
                "upper bound cannot be less than lower bound",
            )
        })?;
    Ok(Dimension { len, lower })
}

struct Reader<'a> {
    context: &'a EvalContext,
    element: TypeId,
    delimiter: char,
    typmod: i32,
    text: &'a str,
    rest: &'a str,
    /// The length of each level, once the first of its lists has ended.
    dimensions: Vec<Option<i32>>,
    elements: GrowingElements,
}

impl Reader<'_> {
    fn bad<T>(&self, detail: impl Into<String>) -> Result<T> {
        Err(malformed(self.text, detail))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn eat(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// One list in braces.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                    depth + 1
                ),
            ));
        }
        if self.dimensions.len() == depth {
            self.dimensions.push(None);
        }
        self.eat('{');
        self.skip_space();
        let mut count = 0;
        if depth > 0 && self.rest.starts_with('}') {
            return self.bad("Unexpected \"}\" character.");
        }
        if !self.eat('}') {
            loop {
                self.skip_space();
                if self.rest.starts_with('{') {
                    self.level(depth + 1)?;
                } else if self.dimensions.len() > depth + 1 {
                    return self.bad("Unexpected array element.");
                } else {
                    self.value()?;
                }
                count += 1;
                self.skip_space();
                if self.eat('}') {
                    break;
                }
                if !self.eat(self.delimiter) {
                    let detail = match self.rest.chars().next() {
                        Some(c) => format!("Unexpected \"{c}\" character."),
                        None => "Unexpected end of input.".to_owned(),
                    };
                    return self.bad(detail);
                }
            }
        }
        match self.dimensions[depth].replace(count) {
            Some(before) if before != count => {
                self.bad("Multidimensional arrays must have sub-arrays with matching dimensions.")
            }
            _ => Ok(()),
        }
    }

    fn value(&mut self) -> Result<()> {
        let mut word = String::new();
        let quoted = self.eat('"');
        let mut kept = 0;
        loop {
            let Some(c) = self.rest.chars().next() else {
                return self.bad("Unexpected end of input.");
            };
            match c {
                '"' if quoted => {
                    self.rest = &self.rest[1..];
                    break;
                }
                '}' if !quoted => break,
                c if !quoted && c == self.delimiter => break,
                '"' => return self.bad("Unexpected array element."),
                '{' if !quoted => return self.bad("Unexpected \"{\" character."),
                '\\' => {
                    self.rest = &self.rest[1..];
                    let Some(escaped) = self.rest.chars().next() else {
                        return self.bad("Unexpected end of input.");
                    };
                    word.push(escaped);
                    self.rest = &self.rest[escaped.len_utf8()..];
                    kept = word.len();
                }
                _ => {
                    word.push(c);
                    self.rest = &self.rest[c.len_utf8()..];
                    if !is_space(c) {
                        kept = word.len();
                    }
                }
            }
        }
        if !quoted {
            word.truncate(kept);
            if word.is_empty() {
                let c = self.rest.chars().next().unwrap_or('}');
                return self.bad(format!("Unexpected \"{c}\" character."));
            }
        }
        let null = !quoted && word.eq_ignore_ascii_case("null");
        self.elements.push(match null {
            true => Datum::Null,
            false => text::input(self.context, self.element, self.typmod, &word)?,
        })
    }
}

fn malformed_row(text: &str, detail: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed record literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// Reads the text form of a row.
///
/// # Errors
/// 22P02 "malformed record literal", and those of the fields' types.
pub(super) fn parse_row(context: &EvalContext, kind: TypeId, text: &str) -> Result<Datum> {
    coro::check_depth()?;
    let fields = context.fields_of_row(kind)?;
    let Some(mut rest) = text.trim_start_matches(is_space).strip_prefix('(') else {
        return Err(malformed_row(text, "Missing left parenthesis."));
    };
    let mut values = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            rest = match rest.strip_prefix(',') {
                Some(rest) => rest,
                None => return Err(malformed_row(text, "Too few columns.")),
            };
        }
        values.push(match rest.starts_with([',', ')']) {
            true => Datum::Null,
            false => {
                let (word, behind) = field_text(text, rest)?;
                rest = behind;
                coro::work(word.len())?;
                text::input(context, field.kind, field.typmod, &word)?
            }
        });
    }
    let Some(rest) = rest.strip_prefix(')') else {
        return Err(malformed_row(text, "Too many columns."));
    };
    match rest.trim_start_matches(is_space).is_empty() {
        true => Ok(row_of(fields, values)),
        false => Err(malformed_row(text, "Junk after right parenthesis.")),
    }
}

/// The text of a field, without its quotes, and what comes behind it.
fn field_text<'t>(text: &str, rest: &'t str) -> Result<(String, &'t str)> {
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' | ')' if !quoted => return Ok((word, &rest[at..])),
            '\\' => match chars.next() {
                Some((_, escaped)) => word.push(escaped),
                None => break,
            },
            '"' if !quoted => quoted = true,
            '"' => match chars.next_if(|next| next.1 == '"') {
                Some(_) => word.push('"'),
                None => quoted = false,
            },
            c => word.push(c),
        }
    }
    Err(malformed_row(text, "Unexpected end of input."))
}

/// Appends the text form of a range.
///
/// # Errors
/// Those of the bounds' type.
pub fn write_range(context: &EvalContext, range: &Range, out: &mut String) -> Result<()> {
    let Some((lower, upper)) = range.bounds() else {
        out.push_str("empty");
        return Ok(());
    };
    out.push(if lower.inclusive { '[' } else { '(' });
    write_bound(context, range.element(), lower, out)?;
    out.push(',');
    write_bound(context, range.element(), upper, out)?;
    out.push(if upper.inclusive { ']' } else { ')' });
    Ok(())
}

fn write_bound(
    context: &EvalContext,
    element: TypeId,
    bound: &Bound,
    out: &mut String,
) -> Result<()> {
    let Some(value) = &bound.value else {
        return Ok(());
    };
    let form = text::output(context, element, value)?;
    coro::work(RANGE_WORK + form.len())?;
    growth::check_room(out.len(), 2 * form.len())?;
    let special = |c: char| is_space(c) || matches!(c, '"' | '\\' | '(' | ')' | '[' | ']' | ',');
    if !form.is_empty() && !form.contains(special) {
        out.push_str(&form);
        return Ok(());
    }
    out.push('"');
    for c in form.chars() {
        if matches!(c, '"' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('"');
    Ok(())
}

/// Appends the text form of a multirange.
///
/// # Errors
/// Those of the bounds' type.
pub fn write_multirange(
    context: &EvalContext,
    multirange: &Multirange,
    out: &mut String,
) -> Result<()> {
    out.push('{');
    for (index, range) in multirange.ranges().iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_range(context, range, out)?;
    }
    out.push('}');
    Ok(())
}

fn malformed_as(what: &str, text: &str, detail: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed {what} literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// Reads the text form of a range of that type.
///
/// # Errors
/// 22P02 "malformed range literal", and those of the bounds' type and of [`Range::of`].
pub fn parse_range(context: &EvalContext, kind: TypeId, text: &str) -> Result<Range> {
    let element = kind.range_element().unwrap_or(TypeId::NONE);
    let bad = |detail| malformed_as("range", text, detail);
    coro::work(RANGE_WORK + text.len())?;
    let body = text.trim_start_matches(is_space);
    if body
        .get(..5)
        .is_some_and(|word| word.eq_ignore_ascii_case("empty"))
    {
        return match body[5..].trim_start_matches(is_space).is_empty() {
            true => Ok(Range::empty(element)),
            false => Err(bad("Junk after \"empty\" key word.")),
        };
    }
    let lower_inclusive = body.starts_with('[');
    let rest = body.strip_prefix(['[', '(']);
    let rest = rest.ok_or_else(|| bad("Missing left parenthesis or bracket."))?;
    let (lower, rest) = bound_text(text, rest)?;
    let rest = rest.strip_prefix(',');
    let rest = rest.ok_or_else(|| bad("Missing comma after lower bound."))?;
    let (upper, rest) = bound_text(text, rest)?;
    let upper_inclusive = rest.starts_with(']');
    let rest = rest.strip_prefix([']', ')']);
    let rest = rest.ok_or_else(|| bad("Too many commas."))?;
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(bad("Junk after right parenthesis or bracket."));
    }
    let value = |word: Option<String>| {
        word.map(|word| text::input(context, element, super::NO_TYPMOD, &word))
            .transpose()
    };
    let lower = Bound::new(value(lower)?, lower_inclusive);
    Range::of(kind, lower, Bound::new(value(upper)?, upper_inclusive))
}

/// The text of a bound without its quotes, none if it is missing; and what comes behind it.
fn bound_text<'t>(text: &str, rest: &'t str) -> Result<(Option<String>, &'t str)> {
    const ENDS: [char; 3] = [',', ')', ']'];
    if rest.starts_with(ENDS) {
        return Ok((None, rest));
    }
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            c if !quoted && ENDS.contains(&c) => return Ok((Some(word), &rest[at..])),
            '\\' => match chars.next() {
                Some((_, escaped)) => word.push(escaped),
                None => break,
            },
            '"' if !quoted => quoted = true,
            '"' => match chars.next_if(|next| next.1 == '"') {
                Some(_) => word.push('"'),
                None => quoted = false,
            },
            c => word.push(c),
        }
    }
    Err(malformed_as("range", text, "Unexpected end of input."))
}

/// Where the reader of a multirange stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Before,
    Inside,
    Escaped,
    Quoted,
    QuotedEscaped,
    After,
}

/// Reads the text form of a multirange, of ranges of that type.
///
/// # Errors
/// 22P02 "malformed multirange literal", and as [`parse_range`].
pub fn parse_multirange(context: &EvalContext, range: TypeId, text: &str) -> Result<Multirange> {
    let element = range.range_element().unwrap_or(TypeId::NONE);
    let bad = |detail| Err(malformed_as("multirange", text, detail));
    let body = text.trim_start_matches(is_space);
    let Some(body) = body.strip_prefix('{') else {
        return bad("Missing left brace.");
    };
    let (mut place, mut start, mut seen) = (Place::Before, 0, false);
    let mut ranges = Vec::new();
    let mut held = base::memory::Reservation::of("A multirange");
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_space(c) {
            continue;
        }
        place = match (place, c) {
            (Place::Before, '[' | '(') => {
                start = at;
                Place::Inside
            }
            (Place::Before, '}') if !seen => return finish(element, ranges, text, &body[at + 1..]),
            (Place::Before, _) => {
                let word = body.get(at..at + 5);
                if !word.is_some_and(|word| word.eq_ignore_ascii_case("empty")) {
                    return bad("Expected range start.");
                }
                chars.nth(3);
                Place::After
            }
            (Place::Inside, ']' | ')') => {
                held.grow(2 * size_of::<Range>() + (at - start))?;
                growth::check_elements((ranges.len() + 1) * super::range::RANGE_PLACES)?;
                ranges.push(parse_range(context, range, &body[start..=at])?);
                Place::After
            }
            (Place::Inside, '"') => Place::Quoted,
            (Place::Inside, '\\') => Place::Escaped,
            (Place::Inside | Place::Escaped, _) => Place::Inside,
            (Place::Quoted, '"') => match chars.next_if(|next| next.1 == '"') {
                Some(_) => Place::Quoted,
                None => Place::Inside,
            },
            (Place::Quoted, '\\') => Place::QuotedEscaped,
            (Place::Quoted | Place::QuotedEscaped, _) => Place::Quoted,
            (Place::After, ',') => Place::Before,
            (Place::After, '}') => return finish(element, ranges, text, &body[at + 1..]),
            (Place::After, _) => return bad("Expected comma or end of multirange."),
        };
        seen |= place == Place::After;
    }
    bad("Unexpected end of input.")
}

fn finish(element: TypeId, ranges: Vec<Range>, text: &str, rest: &str) -> Result<Multirange> {
    match rest.trim_start_matches(is_space).is_empty() {
        true => Multirange::new(element, ranges),
        false => {
            let detail = "Junk after closing right brace.";
            Err(malformed_as("multirange", text, detail))
        }
    }
}
