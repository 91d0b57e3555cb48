//! The values on the way of a jsonpath, and how they compare.

use std::borrow::Cow;

use base::error::{Error, Result};
use base::jsonb::{tag, Value, View};

use super::follow::{stop, Followed, Stop};
use super::moment;
use types::json::path::Operator;
use types::json::{self, Builder};
use types::{Datum, EvalContext, Numeric};

/// A value on the way.
#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    Json(Cow<'a, [u8]>),
    Moment(moment::Moment),
}

impl<'a> Item<'a> {
    pub(super) fn of(value: Value<'a>) -> Item<'a> {
        Item::Json(Cow::Borrowed(value.0))
    }

    pub(super) fn number(number: &Numeric) -> Result<Item<'a>> {
        Item::built(|builder| builder.number(number))
    }

    pub(super) fn string(text: &str) -> Result<Item<'a>> {
        Item::built(|builder| builder.string(text))
    }

    pub(super) fn truth(value: Option<bool>) -> Item<'a> {
        Item::Json(Cow::Borrowed(match value {
            None => &[tag::NULL],
            Some(false) => &[tag::FALSE],
            Some(true) => &[tag::TRUE],
        }))
    }

    pub(super) fn built(build: impl FnOnce(&mut Builder) -> Result<()>) -> Result<Item<'a>> {
        let mut builder = Builder::new();
        build(&mut builder)?;
        match builder.finish()? {
            Datum::Jsonb(bytes) => Ok(Item::Json(Cow::Owned(bytes.to_vec()))),
            _ => Err(Error::internal("a jsonb was not built")),
        }
    }

    /// What it is; a moment is none of these, and shows as a string.
    pub(super) fn view(&self) -> Option<View<'_>> {
        match self {
            Item::Json(bytes) => Some(Value(bytes).view()),
            Item::Moment(_) => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<Numeric> {
        match self.view() {
            Some(View::Number(bytes)) => Some(json::number(bytes)),
            _ => None,
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.view(), Some(View::Array(_)))
    }

    /// The parts of a container.
    pub(super) fn parts(&self) -> Vec<Item<'a>> {
        match self {
            Item::Json(Cow::Borrowed(bytes)) => parts(Value(bytes)).map(Item::of).collect(),
            Item::Json(Cow::Owned(bytes)) => parts(Value(bytes))
                .map(|part| Item::Json(Cow::Owned(part.0.to_vec())))
                .collect(),
            Item::Moment(_) => Vec::new(),
        }
    }

    /// A part that is found in it.
    pub(super) fn part(
        &self,
        find: impl for<'v> Fn(Value<'v>) -> Option<Value<'v>>,
    ) -> Option<Item<'a>> {
        match self {
            Item::Json(Cow::Borrowed(bytes)) => find(Value(bytes)).map(Item::of),
            Item::Json(Cow::Owned(bytes)) => {
                find(Value(bytes)).map(|part| Item::Json(Cow::Owned(part.0.to_vec())))
            }
            Item::Moment(_) => None,
        }
    }

    /// Where it begins in another that it is a part of, if nothing in between was made.
    pub(super) fn offset_in(&self, whole: &Item<'_>) -> Option<usize> {
        match (self, whole) {
            (Item::Json(Cow::Borrowed(part)), Item::Json(whole)) => {
                let offset = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
                (offset < whole.len()).then_some(offset)
            }
            _ => None,
        }
    }

    pub(super) fn datum(&self, context: &EvalContext) -> Result<Datum> {
        match self {
            Item::Json(bytes) => Ok(json::datum(Value(bytes))),
            Item::Moment(moment) => {
                let mut builder = Builder::new();
                builder.string(&moment.to_text(context)?)?;
                builder.finish()
            }
        }
    }
}

fn parts(value: Value<'_>) -> Box<dyn Iterator<Item = Value<'_>> + '_> {
    match value.view() {
        View::Array(array) => Box::new(array.iter()),
        View::Object(object) => Box::new(object.iter().map(|member| member.1)),
        _ => Box::new(std::iter::empty()),
    }
}

/// The number that a number or a string is as a double precision one.
pub(super) fn double<'a>(item: &Item<'a>) -> Followed<Item<'a>> {
    const OUT: &str =
        "numeric argument of jsonpath item method .double() is out of range for type \
                       double precision";
    match item.view() {
        Some(View::Number(bytes)) => match json::number(bytes).to_f64() {
            Ok(value) if value.is_finite() => Ok(item.clone()),
            _ => stop("22036", OUT),
        },
        Some(View::String(text)) => match types::float::parse_f64(text) {
            Ok(value) if value.is_finite() => {
                let number = Numeric::from_f64(value).map_err(Stop::Path)?;
                Ok(Item::number(&number)?)
            }
            _ => stop(
                "22036",
                "string argument of jsonpath item method .double() is not a valid representation \
                 of a double precision number",
            ),
        },
        _ => stop(
            "22036",
            "jsonpath item method .double() can only be applied to a string or numeric value",
        ),
    }
}

/// Whether two values compare so; `None` if they do not compare.
pub(super) fn compare(
    context: &EvalContext,
    operator: Operator,
    a: &Item<'_>,
    b: &Item<'_>,
    with_zone: bool,
) -> Followed<Option<bool>> {
    let order = match (a, b) {
        (Item::Moment(a), Item::Moment(b)) => match moment::compare(context, a, b, with_zone)? {
            Some(order) => order,
            None => return Ok(None),
        },
        _ => match (a.view(), b.view()) {
            (Some(View::Null), Some(View::Null)) => std::cmp::Ordering::Equal,
            (Some(View::Null), _) | (_, Some(View::Null)) => {
                return Ok(Some(operator == Operator::NotEqual));
            }
            (Some(View::Bool(a)), Some(View::Bool(b))) => a.cmp(&b),
            (Some(View::Number(a)), Some(View::Number(b))) => json::number(a).cmp(&json::number(b)),
            (Some(View::String(a)), Some(View::String(b))) => a.cmp(b),
            _ => return Ok(None),
        },
    };
    Ok(Some(match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    }))
}
