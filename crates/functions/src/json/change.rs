//! A `jsonb` with something changed.

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::{Value, View};

use super::{index_of, invalid, jsonb};
use crate::arguments::Arguments;
use crate::{Body, Call, Function, Volatility};
use types::json::{self, Builder};
use types::{Array, Datum, TypeId};

/// What becomes of the place that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It gets the value, and is made where it is missing.
    Set,
    /// It gets the value if it is there.
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
    /// As by an assignment: what is missing on the way is made as well.
    Assign,
}

impl Change {
    fn makes(self) -> bool {
        !matches!(self, Change::Replace | Change::Delete)
    }

    fn inserts(self) -> bool {
        matches!(self, Change::InsertBefore | Change::InsertAfter)
    }
}

struct Changing<'a> {
    path: &'a [Datum],
    new: Value<'a>,
    change: Change,
    builder: Builder,
}

/// Nulls that fill an array up to an index, at most.
const FILL_MAX: usize = 1 << 24;

fn not_composite() -> Error {
    invalid("cannot replace existing key")
        .with_detail("The path assumes key is a composite object, but it is a scalar value.")
}

impl Changing<'_> {
    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    /// Adds a value that the path has led to, with what it says further.
    fn value(&mut self, value: Value<'_>, level: usize) -> Result<()> {
        coro::check_depth()?;
        let Some(step) = self.path.get(level) else {
            return self.builder.value(value);
        };
        if step.is_null() {
            let message = format!("path element at position {} is null", level + 1);
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        match value.view() {
            View::Object(object) => self.object(object, level),
            View::Array(array) => self.array(array, level),
            _ if self.change == Change::Assign => Err(not_composite()),
            _ => self.builder.value(value),
        }
    }

    fn object(&mut self, object: base::jsonb::Object<'_>, level: usize) -> Result<()> {
        let step = self.path[level].as_str();
        let position = object.position(step);
        self.builder.begin_object()?;
        for (at, (key, value)) in object.iter().enumerate() {
            if Some(at) != position {
                self.builder.key(key)?;
                self.builder.value(value)?;
            } else if !self.is_last(level) {
                self.builder.key(key)?;
                self.value(value, level + 1)?;
            } else if self.change.inserts() {
                return Err(invalid("cannot replace existing key")
                    .with_hint("Try using the function jsonb_set to replace key value."));
            } else if self.change != Change::Delete {
                self.builder.key(key)?;
                self.builder.value(self.new)?;
            }
        }
        if position.is_none() {
            if self.is_last(level) && self.change.makes() {
                self.builder.key(step)?;
                self.builder.value(self.new)?;
            } else if !self.is_last(level) && self.change == Change::Assign {
                self.builder.key(step)?;
                self.make(level + 1)?;
            }
        }
        self.builder.end()
    }

    /// Adds what is missing from a level on.
    fn make(&mut self, level: usize) -> Result<()> {
        let steps = &self.path[level..];
        let steps = &steps[..steps.iter().position(Datum::is_null).unwrap_or(steps.len())];
        for step in steps {
            match index_of(step.as_str()) {
                None => {
                    self.builder.begin_object()?;
                    self.builder.key(step.as_str())?;
                }
                Some(index) => {
                    self.builder.begin_array()?;
                    self.nulls(usize::try_from(index).unwrap_or(0))?;
                }
            }
        }
        self.builder.value(self.new)?;
        steps.iter().try_for_each(|_| self.builder.end())
    }

    fn nulls(&mut self, count: usize) -> Result<()> {
        if count > FILL_MAX {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("number of jsonb array elements exceeds the maximum allowed ({FILL_MAX})"),
            ));
        }
        (0..count).try_for_each(|_| self.builder.null())
    }

    /// The place that a step means in an array: `None` is before the first element.
    fn place(&self, len: usize, level: usize) -> Result<Option<usize>> {
        let step = self.path[level].as_str();
        let index = index_of(step).ok_or_else(|| {
            Error::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!(
                    "path element at position {} is not an integer: \"{step}\"",
                    level + 1
                ),
            )
        })?;
        if index < 0 {
            let place = len.checked_sub(index.unsigned_abs() as usize);
            if place.is_none() && self.change == Change::Assign {
                let level = level + 1;
                return Err(invalid(format!(
                    "path element at position {level} is out of range: {index}"
                )));
            }
            return Ok(place);
        }
        let place = index as usize;
        Ok(Some(match self.change {
            Change::Assign => place,
            _ => place.min(len),
        }))
    }

    fn array(&mut self, array: base::jsonb::Array<'_>, level: usize) -> Result<()> {
        let len = array.len();
        let place = self.place(len, level)?;
        let last = self.is_last(level);
        let mut done = false;
        self.builder.begin_array()?;
        if last && self.change.makes() && (place.is_none() || len == 0) {
            if self.change == Change::Assign {
                self.nulls(place.unwrap_or(0))?;
            }
            self.builder.value(self.new)?;
            done = true;
        }
        for (at, element) in array.iter().enumerate() {
            if Some(at) != place {
                self.builder.value(element)?;
                continue;
            }
            done = true;
            if !last {
                self.value(element, level + 1)?;
                continue;
            }
            match self.change {
                Change::Delete => {}
                Change::InsertBefore => {
                    self.builder.value(self.new)?;
                    self.builder.value(element)?;
                }
                Change::InsertAfter => {
                    self.builder.value(element)?;
                    self.builder.value(self.new)?;
                }
                _ => self.builder.value(self.new)?,
            }
        }
        let gap = place.unwrap_or(0).saturating_sub(len);
        if !done && last && self.change.makes() {
            self.nulls(gap)?;
            self.builder.value(self.new)?;
        } else if !done && !last && self.change == Change::Assign {
            self.nulls(gap)?;
            self.make(level + 1)?;
        }
        self.builder.end()
    }
}

fn change(old: &Datum, path: &Array, new: Value<'_>, change: Change) -> Result<Datum> {
    let value = jsonb(std::slice::from_ref(old), 0)?;
    if path.elements.is_empty() {
        return Ok(old.clone());
    }
    let mut changing = Changing {
        path: &path.elements,
        new,
        change,
        builder: Builder::new(),
    };
    changing.value(value, 0)?;
    changing.builder.finish()
}

/// Refuses paths of several dimensions, and scalars.
fn check(args: &[Datum], verb: &str) -> Result<std::sync::Arc<Array>> {
    let path = args.array(1)?;
    if path.dimensions.len() > 1 {
        let message = "wrong number of array subscripts";
        return Err(Error::new(SqlState::of("2202E"), message));
    }
    match jsonb(args, 0)?.is_container() {
        true => Ok(path),
        false => Err(invalid(format!("cannot {verb} path in scalar"))),
    }
}

fn flag(args: &[Datum], index: usize, default: bool) -> bool {
    args.get(index).map_or(default, Datum::is_true)
}

pub(crate) fn jsonb_set(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let path = check(args, "set")?;
    let how = match flag(args, 3, true) {
        true => Change::Set,
        false => Change::Replace,
    };
    change(args.any(0)?, &path, jsonb(args, 2)?, how)
}

pub(crate) fn jsonb_insert(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let path = check(args, "set")?;
    let how = match flag(args, 3, false) {
        true => Change::InsertAfter,
        false => Change::InsertBefore,
    };
    change(args.any(0)?, &path, jsonb(args, 2)?, how)
}

pub(crate) fn jsonb_delete_path(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let path = check(args, "delete")?;
    if jsonb(args, 0)?.walk().nth(1).is_some_and(is_end) {
        return args.any(0).cloned();
    }
    change(args.any(0)?, &path, Value::NULL, Change::Delete)
}

fn is_end(step: base::jsonb::Step<'_>) -> bool {
    use base::jsonb::Step;
    matches!(step, Step::EndArray | Step::EndObject)
}

/// `target[path] = value`, for the binder: the target, the path, the value, and whether the first
/// step is an index.
pub static ASSIGN: Function = Function {
    oid: 0,
    name: "jsonb_assign",
    arguments: &[
        TypeId::JSONB,
        TypeId::TEXT_ARRAY,
        TypeId::JSONB,
        TypeId::BOOL,
    ],
    variadic: false,
    defaults: 0,
    result: TypeId::JSONB,
    volatility: Volatility::Immutable,
    strict: false,
    body: Body::Native(assign),
};

/// `target[path] = value`: NULL as the target is an empty container of the kind that the first
/// subscript asks for, NULL as the value is JSON's null.
fn assign(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let empty = |array: bool| {
        let mut builder = Builder::new();
        match array {
            true => builder.begin_array()?,
            false => builder.begin_object()?,
        }
        builder.end()?;
        builder.finish()
    };
    let target = match args.any(0)? {
        Datum::Null => empty(flag(args, 3, false))?,
        target => target.clone(),
    };
    let path = args.array(1)?;
    if path.elements.iter().any(Datum::is_null) {
        return Err(Error::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "jsonb subscript in assignment must not be null",
        ));
    }
    let new = match args.any(2)? {
        Datum::Null => Value::NULL,
        _ => jsonb(args, 2)?,
    };
    if !jsonb(std::slice::from_ref(&target), 0)?.is_container() {
        return Err(not_composite());
    }
    change(&target, &path, new, Change::Assign)
}

pub(crate) fn jsonb_set_lax(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let wrong = || {
        invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", \
             or \"raise_exception\"",
        )
    };
    let is_null = |index: usize| args.get(index).is_some_and(Datum::is_null);
    if is_null(0) || is_null(1) || is_null(3) {
        return Ok(Datum::Null);
    }
    let treatment = match args.get(4) {
        None => "use_json_null",
        Some(Datum::Null) => return Err(wrong()),
        Some(treatment) => treatment.as_str(),
    };
    if !is_null(2) {
        return jsonb_set(call, args);
    }
    match treatment {
        "raise_exception" => Err(Error::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "JSON value must not be null",
        )
        .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
        .with_hint(
            "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL \
             is not passed.",
        )),
        "use_json_null" => {
            let mut args = args.to_vec();
            args[2] = json::datum(Value::NULL);
            jsonb_set(call, &args)
        }
        "delete_key" => jsonb_delete_path(call, args),
        "return_target" => args.any(0).cloned(),
        _ => Err(wrong()),
    }
}

/// Without the members, or the strings, that are among some texts.
fn without(args: &[Datum], is_among: impl Fn(&str) -> bool) -> Result<Datum> {
    let mut builder = Builder::new();
    match jsonb(args, 0)?.view() {
        View::Object(object) => {
            builder.begin_object()?;
            for (key, value) in object.iter().filter(|(key, _)| !is_among(key)) {
                builder.key(key)?;
                builder.value(value)?;
            }
        }
        View::Array(array) => {
            builder.begin_array()?;
            for element in array.iter() {
                match element.view() {
                    View::String(text) if is_among(text) => {}
                    _ => builder.value(element)?,
                }
            }
        }
        _ => return Err(invalid("cannot delete from scalar")),
    }
    builder.end()?;
    builder.finish()
}

pub(crate) fn jsonb_delete(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let key = args.text(1)?;
    without(args, |text| text == key)
}

pub(crate) fn jsonb_delete_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let texts = match &args[1..] {
        [Datum::Array(array)] => &array.elements[..],
        texts => texts,
    };
    let texts = texts.iter().filter(|text| !text.is_null());
    let texts: base::hash::HashSet<&str> = texts.map(Datum::as_str).collect();
    without(args, |text| texts.contains(text))
}

pub(crate) fn jsonb_delete_idx(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = match jsonb(args, 0)?.view() {
        View::Array(array) => array,
        View::Object(_) => {
            return Err(invalid("cannot delete from object using integer index"));
        }
        _ => return Err(invalid("cannot delete from scalar")),
    };
    let Some(place) = super::place_of(args.int4(1)?, array.len()) else {
        return args.any(0).cloned();
    };
    let mut builder = Builder::new();
    builder.begin_array()?;
    for (at, element) in array.iter().enumerate() {
        if at != place {
            builder.value(element)?;
        }
    }
    builder.end()?;
    builder.finish()
}

pub(crate) fn jsonb_concat(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (jsonb(args, 0)?, jsonb(args, 1)?);
    let mut builder = Builder::new();
    if let (View::Object(a), View::Object(b)) = (a.view(), b.view()) {
        builder.begin_object()?;
        for (key, value) in a.iter().chain(b.iter()) {
            builder.key(key)?;
            builder.value(value)?;
        }
    } else {
        builder.begin_array()?;
        for side in [a, b] {
            match side.view() {
                View::Array(array) => {
                    for element in array.iter() {
                        builder.value(element)?;
                    }
                }
                _ => builder.value(side)?,
            }
        }
    }
    builder.end()?;
    builder.finish()
}
