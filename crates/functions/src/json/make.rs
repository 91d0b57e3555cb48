//! JSON of SQL values.
//!
//! ```text
//! to_json(now())                          "2024-02-29T12:34:56.789012+00:00"
//! json_build_object('a', 1)               {"a" : 1}
//! jsonb_build_object('a', 1)              {"a": 1}
//! ```
//! Numbers, truth values and JSON are themselves, dates and times as ISO 8601 writes them, arrays
//! and rows are arrays and objects; all others are their text as a string.

use std::borrow::Cow;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::Value;

use super::invalid;
use crate::arguments::Arguments;
use crate::extensions::hstore_forms::object;
use crate::Call;
use types::json::{self, Builder};
use types::{growth, Array, Datum, EvalContext, Record, RowField, TypeId};

/// What a value becomes.
enum Shape<'a> {
    Null,
    Bool(bool),
    /// The text of a number.
    Number(String),
    Json(Cow<'a, str>),
    Jsonb(Value<'a>),
    Text(String),
    Array(&'a Array),
    /// With the names of its fields, where its type says them and it does not.
    Record(&'a Record, Vec<RowField>),
}

/// The same moment as ISO 8601 has it: `T` between, and minutes of the zone.
fn iso(text: String, kind: TypeId) -> String {
    let (date, time) = match (text.split_once(' '), kind) {
        (Some((date, time)), _) => (format!("{date}T"), time),
        (None, TypeId::TIMETZ) => (String::new(), text.as_str()),
        (None, _) => return text,
    };
    if kind == TypeId::DATE {
        return text;
    }
    let (time, era) = match time.strip_suffix(" BC") {
        Some(time) => (time, " BC"),
        None => (time, ""),
    };
    let zone = time.rfind(['+', '-']);
    let zoned = matches!(kind, TypeId::TIMESTAMPTZ | TypeId::TIMETZ);
    let short = zoned && zone.is_some_and(|at| time.len() - at == 3);
    format!("{date}{time}{}{era}", if short { ":00" } else { "" })
}

/// The text of a moment, in ISO 8601 whatever `DateStyle` says.
///
/// # Errors
/// 22008.
pub(super) fn moment_text(context: &EvalContext, kind: TypeId, value: &Datum) -> Result<String> {
    let context = EvalContext {
        date_style: types::DateStyle::default(),
        ..context.clone()
    };
    Ok(iso(types::output(&context, kind, value)?, kind))
}

fn shape<'a>(context: &EvalContext, kind: TypeId, value: &'a Datum) -> Result<Shape<'a>> {
    Ok(match value {
        Datum::Null => Shape::Null,
        Datum::Bool(value) => Shape::Bool(*value),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => {
            let text = types::output(context, kind, value)?;
            match json::parse::is_number(&text) {
                true => Shape::Number(text),
                false => Shape::Text(text),
            }
        }
        Datum::Text(text) if kind == TypeId::JSON => Shape::Json(Cow::Borrowed(text)),
        // It has a cast to json.
        Datum::Hstore(bytes) => Shape::Json(Cow::Owned(object(bytes, false)?)),
        Datum::Jsonb(value) => Shape::Jsonb(Value(value)),
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            Shape::Text(moment_text(context, kind, value)?)
        }
        Datum::Array(_) if matches!(kind, TypeId::INT2VECTOR | TypeId::OIDVECTOR) => {
            Shape::Text(types::output(context, kind, value)?)
        }
        Datum::Array(array) => Shape::Array(array),
        Datum::Record(record) if record.names.is_none() && kind.is_composite() => {
            Shape::Record(record, context.fields(kind)?)
        }
        Datum::Record(record) => Shape::Record(record, Vec::new()),
        _ => Shape::Text(types::output(context, kind, value)?),
    })
}

/// Appends a value as `json`. `lines` begins each element or member of the outermost container on
/// a line of its own.
fn write(
    context: &EvalContext,
    kind: TypeId,
    value: &Datum,
    lines: bool,
    out: &mut String,
) -> Result<()> {
    coro::check_depth()?;
    let before = out.len();
    let separator = if lines { ",\n " } else { "," };
    match shape(context, kind, value)? {
        Shape::Null => out.push_str("null"),
        Shape::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Shape::Number(text) => out.push_str(&text),
        Shape::Json(text) => out.push_str(&text),
        Shape::Jsonb(value) => json::write(value, out)?,
        Shape::Text(text) => json::write_string(&text, out),
        Shape::Array(array) => {
            let mut elements = array.elements.iter();
            write_level(context, array, (0, lines), &mut elements, out)?;
        }
        Shape::Record(record, fields) => {
            out.push('{');
            for (at, (kind, value)) in record.types.iter().zip(&record.values).enumerate() {
                if at > 0 {
                    out.push_str(separator);
                }
                json::write_string(&field_name(record, &fields, at), out);
                out.push(':');
                write(context, *kind, value, false, out)?;
            }
            out.push('}');
        }
    }
    growth::check_room(0, out.len())?;
    Ok(coro::work(16 + out.len().saturating_sub(before))?)
}

/// What a field of a row is called.
fn field_name(record: &Record, fields: &[RowField], at: usize) -> String {
    let name = record.names.as_ref().and_then(|names| names.get(at));
    let name = name.or_else(|| fields.get(at).map(|field| &field.name));
    name.map_or_else(|| format!("f{}", at + 1), String::clone)
}

fn write_level<'a>(
    context: &EvalContext,
    array: &Array,
    (level, lines): (usize, bool),
    elements: &mut impl Iterator<Item = &'a Datum>,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    let len = array.dimensions.get(level).map_or(0, |d| d.len);
    for at in 0..len {
        if at > 0 {
            out.push_str(if lines { ",\n " } else { "," });
        }
        if level + 1 < array.dimensions.len() {
            write_level(context, array, (level + 1, false), elements, out)?;
        } else {
            let element = elements.next().unwrap_or(&Datum::Null);
            write(context, array.element, element, false, out)?;
        }
    }
    out.push(']');
    Ok(())
}

/// Adds a value as `jsonb`.
fn build(context: &EvalContext, kind: TypeId, value: &Datum, builder: &mut Builder) -> Result<()> {
    coro::check_depth()?;
    match shape(context, kind, value)? {
        Shape::Null => builder.null(),
        Shape::Bool(value) => builder.bool(value),
        Shape::Number(text) => builder.number(&types::Numeric::parse(&text)?),
        Shape::Json(text) => builder.parse(&text),
        Shape::Jsonb(value) => builder.value(value),
        Shape::Text(text) => builder.string(&text),
        Shape::Array(array) => {
            let mut elements = array.elements.iter();
            build_level(context, array, 0, &mut elements, builder)
        }
        Shape::Record(record, fields) => {
            builder.begin_object()?;
            for (at, (kind, value)) in record.types.iter().zip(&record.values).enumerate() {
                builder.key(&field_name(record, &fields, at))?;
                build(context, *kind, value, builder)?;
            }
            builder.end()
        }
    }
}

fn build_level<'a>(
    context: &EvalContext,
    array: &Array,
    level: usize,
    elements: &mut impl Iterator<Item = &'a Datum>,
    builder: &mut Builder,
) -> Result<()> {
    builder.begin_array()?;
    let len = array.dimensions.get(level).map_or(0, |d| d.len);
    for _ in 0..len {
        if level + 1 < array.dimensions.len() {
            build_level(context, array, level + 1, elements, builder)?;
        } else {
            let element = elements.next().unwrap_or(&Datum::Null);
            build(context, array.element, element, builder)?;
        }
    }
    builder.end()
}

fn one_json(call: &Call<'_>, args: &[Datum], lines: bool) -> Result<Datum> {
    let mut out = String::new();
    write(
        call.context,
        kind_of(call, 0),
        args.any(0)?,
        lines,
        &mut out,
    )?;
    Ok(Datum::text(out))
}

fn kind_of(call: &Call<'_>, index: usize) -> TypeId {
    call.argument_types
        .get(index)
        .copied()
        .unwrap_or(TypeId::TEXT)
}

pub(crate) fn to_json(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_json(call, args, false)
}

pub(crate) fn array_to_json(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_json(call, args, false)
}

pub(crate) fn array_to_json_pretty(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_json(call, args, args.bool(1)?)
}

pub(crate) fn row_to_json(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_json(call, args, false)
}

pub(crate) fn row_to_json_pretty(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    one_json(call, args, args.bool(1)?)
}

pub(crate) fn to_jsonb(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut builder = Builder::new();
    build(call.context, kind_of(call, 0), args.any(0)?, &mut builder)?;
    builder.finish()
}

/// The key of a member: the text of a scalar.
fn key(context: &EvalContext, kind: TypeId, value: &Datum) -> Result<String> {
    Ok(match shape(context, kind, value)? {
        Shape::Array(_) | Shape::Record(..) | Shape::Json(_) | Shape::Jsonb(_) => {
            return Err(invalid(
                "key value must be scalar, not array, composite, or json",
            ));
        }
        Shape::Bool(value) => (if value { "true" } else { "false" }).to_owned(),
        Shape::Number(text) | Shape::Text(text) => text,
        Shape::Null => String::new(),
    })
}

fn odd() -> Error {
    invalid("argument list must have even number of elements")
}

/// Pairs of arguments.
fn pairs<'a>(
    call: &'a Call<'_>,
    args: &'a [Datum],
    of_jsonb: bool,
) -> Result<impl Iterator<Item = (usize, &'a Datum, TypeId, &'a Datum, TypeId)>> {
    if args.len() % 2 != 0 {
        let hint = match of_jsonb {
            true => {
                "The arguments of jsonb_build_object() must consist of alternating keys and values."
            }
            false => {
                "The arguments of json_build_object() must consist of alternating keys and values."
            }
        };
        return Err(odd().with_hint(hint));
    }
    Ok(args.chunks_exact(2).enumerate().map(move |(at, pair)| {
        let kinds = (kind_of(call, 2 * at), kind_of(call, 2 * at + 1));
        (2 * at, &pair[0], kinds.0, &pair[1], kinds.1)
    }))
}

pub(crate) fn json_build_object(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = "{".to_owned();
    for (at, name, name_kind, value, value_kind) in pairs(call, args, false)? {
        if name.is_null() {
            let message = format!("argument {} cannot be null", at + 1);
            return Err(invalid(message).with_hint("Object keys should be text."));
        }
        if at > 0 {
            out.push_str(", ");
        }
        json::write_string(&key(call.context, name_kind, name)?, &mut out);
        out.push_str(" : ");
        write(call.context, value_kind, value, false, &mut out)?;
    }
    out.push('}');
    Ok(Datum::text(out))
}

pub(crate) fn json_build_object_noargs(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text("{}"))
}

pub(crate) fn json_build_array(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = "[".to_owned();
    for (at, value) in args.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(call.context, kind_of(call, at), value, false, &mut out)?;
    }
    out.push(']');
    Ok(Datum::text(out))
}

pub(crate) fn json_build_array_noargs(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text("[]"))
}

pub(crate) fn jsonb_build_object(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut builder = Builder::new();
    builder.begin_object()?;
    for (at, name, name_kind, value, value_kind) in pairs(call, args, true)? {
        if name.is_null() {
            return Err(invalid(format!(
                "argument {}: key must not be null",
                at + 1
            )));
        }
        builder.key(&key(call.context, name_kind, name)?)?;
        build(call.context, value_kind, value, &mut builder)?;
    }
    builder.end()?;
    builder.finish()
}

pub(crate) fn jsonb_build_object_noargs(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    jsonb_build_object(call, &[])
}

pub(crate) fn jsonb_build_array(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut builder = Builder::new();
    builder.begin_array()?;
    for (at, value) in args.iter().enumerate() {
        build(call.context, kind_of(call, at), value, &mut builder)?;
    }
    builder.end()?;
    builder.finish()
}

pub(crate) fn jsonb_build_array_noargs(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    jsonb_build_array(call, &[])
}

/// Keys and values of one array, one after the other or in columns, or of two.
fn texts(args: &[Datum]) -> Result<Vec<(String, Option<String>)>> {
    let subscripts = |message: &str| Error::new(SqlState::of("2202E"), message);
    let first = args.array(0)?;
    let pair = |name: &Datum, value: &Datum| {
        if name.is_null() {
            return Err(Error::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "null value not allowed for object key",
            ));
        }
        let value = (!value.is_null()).then(|| value.as_str().to_owned());
        Ok((name.as_str().to_owned(), value))
    };
    if args.len() > 1 {
        let second = args.array(1)?;
        let one = |array: &Array| array.dimensions.len() <= 1;
        if !one(&first) || first.dimensions.len() != second.dimensions.len() && !one(&second) {
            return Err(subscripts("wrong number of array subscripts"));
        }
        if !one(&second) {
            return Err(subscripts("wrong number of array subscripts"));
        }
        if first.elements.len() != second.elements.len() {
            return Err(subscripts("mismatched array dimensions"));
        }
        let both = first.elements.iter().zip(&second.elements);
        return both.map(|(name, value)| pair(name, value)).collect();
    }
    match first.dimensions.as_slice() {
        [] => {}
        [one] if one.len % 2 != 0 => {
            return Err(subscripts("array must have even number of elements"));
        }
        [_] => {}
        [_, two] if two.len != 2 => return Err(subscripts("array must have two columns")),
        [_, _] => {}
        _ => return Err(subscripts("wrong number of array subscripts")),
    }
    let pairs = first.elements.chunks_exact(2);
    pairs.map(|both| pair(&both[0], &both[1])).collect()
}

pub(crate) fn json_object(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = growth::Growing::default();
    out.push('{')?;
    for (at, (name, value)) in texts(args)?.iter().enumerate() {
        let mut pair = String::new();
        if at > 0 {
            pair.push_str(", ");
        }
        json::write_string(name, &mut pair);
        pair.push_str(" : ");
        match value {
            Some(value) => json::write_string(value, &mut pair),
            None => pair.push_str("null"),
        }
        out.push_str(&pair)?;
    }
    out.push('}')?;
    Ok(out.into_datum())
}

pub(crate) fn json_object_two_arg(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    json_object(call, args)
}

pub(crate) fn jsonb_object(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut builder = Builder::new();
    builder.begin_object()?;
    for (name, value) in texts(args)? {
        builder.key(&name)?;
        match value {
            Some(value) => builder.string(&value)?,
            None => builder.null()?,
        }
    }
    builder.end()?;
    builder.finish()
}

pub(crate) fn jsonb_object_two_arg(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    jsonb_object(call, args)
}

/// What an aggregate has gathered.
#[derive(Clone, Debug)]
pub enum Gathered {
    /// `json_agg`, `json_object_agg`: the text so far.
    Json(Option<String>),
    /// `jsonb_agg`, `jsonb_object_agg`.
    Jsonb(Option<Builder>),
}

impl Gathered {
    /// The memory that it takes, with what making the result takes.
    pub fn bytes(&self) -> usize {
        match self {
            Gathered::Json(text) => text.as_ref().map_or(0, |text| 2 * text.capacity()),
            Gathered::Jsonb(builder) => builder.as_ref().map_or(0, |made| 2 * made.bytes()),
        }
    }
}

/// Which of the aggregates it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Members of an object, not elements of an array.
    pub object: bool,
    /// Of `jsonb`.
    pub binary: bool,
}

impl Gathering {
    /// Nothing yet.
    pub fn start(self) -> Gathered {
        match self.binary {
            true => Gathered::Jsonb(None),
            false => Gathered::Json(None),
        }
    }

    /// Takes one row's arguments.
    ///
    /// # Errors
    /// 22023 for a key that is NULL; 54000.
    pub fn step(
        self,
        context: &EvalContext,
        state: &mut Gathered,
        kinds: &[TypeId],
        args: &[Datum],
    ) -> Result<()> {
        let kind = |index: usize| kinds.get(index).copied().unwrap_or(TypeId::TEXT);
        match state {
            Gathered::Json(text) if self.object => {
                let first = text.is_none();
                let text = text.get_or_insert_with(|| "{ ".to_owned());
                if args.any(0)?.is_null() {
                    return Err(invalid("field name must not be null"));
                }
                if !first {
                    text.push_str(", ");
                }
                json::write_string(&key(context, kind(0), args.any(0)?)?, text);
                text.push_str(" : ");
                write(context, kind(1), args.any(1)?, false, text)
            }
            Gathered::Json(text) => {
                let value = args.any(0)?;
                match text {
                    None => *text = Some("[".to_owned()),
                    Some(text) => {
                        text.push_str(", ");
                        if matches!(value, Datum::Array(_) | Datum::Record(_)) {
                            text.push_str("\n ");
                        }
                    }
                }
                write(context, kind(0), value, false, text.get_or_insert_default())
            }
            Gathered::Jsonb(builder) if self.object => {
                if builder.is_none() {
                    builder.get_or_insert_default().begin_object()?;
                }
                let builder = builder.get_or_insert_default();
                if args.any(0)?.is_null() {
                    return Err(invalid("field name must not be null"));
                }
                builder.key(&key(context, kind(0), args.any(0)?)?)?;
                build(context, kind(1), args.any(1)?, builder)
            }
            Gathered::Jsonb(builder) => {
                if builder.is_none() {
                    builder.get_or_insert_default().begin_array()?;
                }
                build(
                    context,
                    kind(0),
                    args.any(0)?,
                    builder.get_or_insert_default(),
                )
            }
        }
    }

    /// The value over the rows taken so far.
    ///
    /// # Errors
    /// 54000.
    pub fn finish(self, state: &Gathered) -> Result<Datum> {
        match state {
            Gathered::Json(None) | Gathered::Jsonb(None) => Ok(Datum::Null),
            Gathered::Json(Some(text)) => {
                coro::work(text.len())?;
                Ok(Datum::text(format!(
                    "{text}{}",
                    if self.object { " }" } else { "]" }
                )))
            }
            Gathered::Jsonb(Some(builder)) => {
                let mut builder = builder.clone();
                builder.end()?;
                builder.finish()
            }
        }
    }
}
