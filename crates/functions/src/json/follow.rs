//! Follows a jsonpath through a `jsonb`.
//!
//! In lax mode, arrays are opened where their elements are wanted, scalars are arrays of themselves
//! where an array is, and what is not there is passed over; in strict mode each of these is an
//! error. An error ends the path, or makes a condition unknown, and `silent` hides it.
//!
//! Source: PostgreSQL 15 manual, section 9.16.2.
//!
//! # What it leaves out
//! Ids of `keyvalue()` tell objects apart, but are other numbers than PostgreSQL's.

use base::coro;
use base::error::{Error, SqlState};
use base::jsonb::{Object, Value, View};

use super::item::{compare, double, Item};
use super::moment;
use super::read::type_name;
use types::json::path::{self, Method, Operator, Step, Steps};
use types::{EvalContext, Numeric};

/// What following a step counts for, in the units of [`coro::work`].
const STEP_WORK: usize = 64;

/// How a path ends early.
pub(super) enum Stop {
    /// An error of the path itself, which `silent` hides and a condition makes unknown.
    Path(Error),
    /// Any other.
    Other(Error),
    /// The first value was enough.
    Found,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Other(error)
    }
}

impl From<coro::Interrupt> for Stop {
    fn from(interrupt: coro::Interrupt) -> Stop {
        Stop::Other(interrupt.into())
    }
}

pub(super) type Followed<T = ()> = std::result::Result<T, Stop>;

pub(super) fn stop<T>(state: &str, message: impl Into<String>) -> Followed<T> {
    Err(Stop::Path(Error::new(SqlState::of(state), message)))
}

/// What a path finds goes here.
pub(super) type Sink<'s, 'a> = &'s mut dyn FnMut(Item<'a>) -> Followed;

pub(super) struct Follower<'a> {
    pub(super) context: &'a EvalContext,
    pub(super) vars: Option<Object<'a>>,
    pub(super) lax: bool,
    /// What is missing is passed over.
    pub(super) forgiving: bool,
    pub(super) with_zone: bool,
    pub(super) root: Item<'a>,
    pub(super) current: Item<'a>,
    /// The length of the array whose subscript is computed.
    pub(super) array_len: usize,
    /// Numbers the objects that `keyvalue()` has made.
    pub(super) generation: i64,
    /// Whether it is only asked if there is anything.
    pub(super) whether: bool,
}

impl<'a> Follower<'a> {
    /// Goes on with the steps from an item.
    pub(super) fn follow(
        &mut self,
        steps: &[Step],
        item: Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        match steps.split_first() {
            None => sink(item),
            Some((step, rest)) => self.step(step, rest, item, self.lax, sink),
        }
    }

    /// Goes on with the steps from each element of an array.
    fn unwrapped(
        &mut self,
        step: &Step,
        rest: &[Step],
        array: &Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        for element in array.parts() {
            self.step(step, rest, element, false, sink)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        step: &Step,
        rest: &[Step],
        item: Item<'a>,
        unwrap: bool,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        coro::check_depth()?;
        coro::work(STEP_WORK)?;
        match step {
            Step::Key(key) => match item.view() {
                Some(View::Object(_)) => {
                    let found = item.part(|value| match value.view() {
                        View::Object(object) => object.get(key),
                        _ => None,
                    });
                    match found {
                        Some(found) => self.follow(rest, found, sink),
                        None if self.forgiving => Ok(()),
                        None => stop(
                            "2203A",
                            format!("JSON object does not contain key \"{key}\""),
                        ),
                    }
                }
                Some(View::Array(_)) if unwrap => self.unwrapped(step, rest, &item, sink),
                _ if self.forgiving => Ok(()),
                _ => stop(
                    "2203A",
                    "jsonpath member accessor can only be applied to an object",
                ),
            },
            Step::Root => self.follow(rest, self.root.clone(), sink),
            Step::Current => self.follow(rest, self.current.clone(), sink),
            Step::AnyElement => match item.is_array() {
                true => self.each(rest, &item, self.lax, sink),
                false if self.lax => self.follow(rest, item, sink),
                false if self.forgiving => Ok(()),
                false => stop(
                    "22039",
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Step::AnyKey => match item.view() {
                Some(View::Object(_)) => self.each(rest, &item, self.lax, sink),
                Some(View::Array(_)) if unwrap => self.unwrapped(step, rest, &item, sink),
                _ if self.forgiving => Ok(()),
                _ => stop(
                    "2203C",
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Step::Elements(elements) => self.elements(elements, rest, item, sink),
            Step::Any(first, last) => self.any(*first, *last, rest, item, sink),
            Step::Filter(condition) => {
                if unwrap && item.is_array() {
                    return self.unwrapped(step, rest, &item, sink);
                }
                let outer = std::mem::replace(&mut self.current, item.clone());
                let holds = self.condition(condition, item.clone());
                self.current = outer;
                match holds? {
                    Some(true) => self.follow(rest, item, sink),
                    _ => Ok(()),
                }
            }
            Step::Method(Method::Type) => {
                let name = match &item {
                    Item::Json(bytes) => type_name(Value(bytes)),
                    Item::Moment(moment) => moment.type_name(),
                };
                self.follow(rest, Item::string(name)?, sink)
            }
            Step::Method(Method::Size) => {
                let len = match item.view() {
                    Some(View::Array(array)) => array.len(),
                    _ if self.lax => 1,
                    _ if self.forgiving => return Ok(()),
                    _ => {
                        return stop(
                            "22039",
                            "jsonpath item method .size() can only be applied to an array",
                        );
                    }
                };
                let len = Item::number(&Numeric::from(len as i64))?;
                self.follow(rest, len, sink)
            }
            Step::Method(_) | Step::Datetime(_) if unwrap && item.is_array() => {
                self.unwrapped(step, rest, &item, sink)
            }
            Step::Method(Method::KeyValue) => self.key_values(rest, &item, sink),
            Step::Method(method) => {
                let number = self.compute(*method, &item)?;
                self.follow(rest, number, sink)
            }
            Step::Datetime(template) => {
                let found = self.datetime(template.as_deref(), &item)?;
                self.follow(rest, found, sink)
            }
            Step::Last => {
                let last = Numeric::from(self.array_len as i64 - 1);
                self.follow(rest, Item::number(&last)?, sink)
            }
            Step::Binary(operator, left, right) if operator.is_arithmetic() => {
                let result = self.arithmetic(*operator, left, right, item)?;
                self.follow(rest, result, sink)
            }
            Step::Plus(inner) | Step::Minus(inner) => {
                let minus = matches!(step, Step::Minus(_));
                self.signed(inner, minus, rest, item, sink)
            }
            Step::Null | Step::Bool(_) | Step::Number(_) | Step::String(_) | Step::Variable(_) => {
                let value = self.literal(step)?;
                self.follow(rest, value, sink)
            }
            Step::Binary(..)
            | Step::Not(_)
            | Step::IsUnknown(_)
            | Step::Exists(_)
            | Step::StartsWith(..)
            | Step::LikeRegex(..) => {
                let truth = self.condition_step(step, item)?;
                self.follow(rest, Item::truth(truth), sink)
            }
        }
    }

    fn literal(&self, step: &Step) -> Followed<Item<'a>> {
        Ok(match step {
            Step::Bool(value) => Item::truth(Some(*value)),
            Step::Number(number) => Item::number(number)?,
            Step::String(text) => Item::string(text)?,
            Step::Variable(name) => match self.vars.and_then(|vars| vars.get(name)) {
                Some(value) => Item::of(value),
                None => {
                    let message = format!("could not find jsonpath variable \"{name}\"");
                    return Err(Error::new(SqlState::UNDEFINED_OBJECT, message).into());
                }
            },
            _ => Item::truth(None),
        })
    }

    /// Goes on from each part of a container.
    fn each(
        &mut self,
        rest: &[Step],
        item: &Item<'a>,
        unwrap: bool,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        for part in item.parts() {
            match rest.split_first() {
                None => sink(part)?,
                Some((step, rest)) => self.step(step, rest, part, unwrap, sink)?,
            }
        }
        Ok(())
    }

    fn any(
        &mut self,
        first: path::Level,
        last: path::Level,
        rest: &[Step],
        item: Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        let forgiving = std::mem::replace(&mut self.forgiving, true);
        let mut result = Ok(());
        if first == Some(0) {
            result = self.follow(rest, item.clone(), sink);
        }
        if result.is_ok() {
            result = self.levels((first, last), rest, &item, sink);
        }
        self.forgiving = forgiving;
        result
    }

    /// Goes on from the parts at some levels, each before its own parts.
    fn levels(
        &mut self,
        (first, last): (path::Level, path::Level),
        rest: &[Step],
        item: &Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        let deepest = last.unwrap_or(u32::MAX);
        let mut open = vec![(item.parts().into_iter(), 1)];
        while let Some((parts, level)) = open.last_mut() {
            coro::work(STEP_WORK)?;
            let level = *level;
            if level > deepest {
                open.pop();
                continue;
            }
            let Some(part) = parts.next() else {
                open.pop();
                continue;
            };
            let container = matches!(part.view(), Some(View::Array(_) | View::Object(_)));
            let wanted = match first {
                Some(first) => level >= first,
                // `**{last}` means the leaves.
                None => last.is_none() && !container,
            };
            if wanted {
                match rest.split_first() {
                    None => sink(part.clone())?,
                    Some((step, rest)) => self.step(step, rest, part.clone(), self.lax, sink)?,
                }
            }
            if container && level < deepest {
                open.push((part.parts().into_iter(), level + 1));
            }
        }
        Ok(())
    }

    fn index(&mut self, steps: &Steps, item: Item<'a>) -> Followed<i64> {
        let found = self.collect(steps, item)?;
        let number = match found.as_slice() {
            [one] => one.as_number(),
            _ => None,
        };
        let Some(number) = number else {
            return stop(
                "22033",
                "jsonpath array subscript is not a single numeric value",
            );
        };
        let index = number
            .trunc(0)
            .and_then(|whole| whole.to_integer("integer"));
        match index.ok().and_then(|index| i32::try_from(index).ok()) {
            Some(index) => Ok(i64::from(index)),
            None => stop("22033", "jsonpath array subscript is out of integer range"),
        }
    }

    fn elements(
        &mut self,
        elements: &[(Steps, Option<Steps>)],
        rest: &[Step],
        item: Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        let len = match item.view() {
            Some(View::Array(array)) => Some(array.len()),
            _ if self.lax => None,
            _ if self.forgiving => return Ok(()),
            _ => {
                return stop(
                    "22039",
                    "jsonpath array accessor can only be applied to an array",
                );
            }
        };
        let size = len.unwrap_or(1);
        let outer = std::mem::replace(&mut self.array_len, size);
        let mut result = Ok(());
        for (from, to) in elements {
            result = self.range((from, to.as_ref()), (len, size), rest, &item, sink);
            if result.is_err() {
                break;
            }
        }
        self.array_len = outer;
        result
    }

    fn range(
        &mut self,
        (from, to): (&Steps, Option<&Steps>),
        (len, size): (Option<usize>, usize),
        rest: &[Step],
        item: &Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        let from = self.index(from, item.clone())?;
        let to = match to {
            Some(to) => self.index(to, item.clone())?,
            None => from,
        };
        let size = size as i64;
        if !self.forgiving && (from < 0 || from > to || to >= size) {
            return stop("22033", "jsonpath array subscript is out of bounds");
        }
        for index in from.max(0)..=to.min(size - 1) {
            let element = match len {
                None => Some(item.clone()),
                Some(_) => item.part(|value| match value.view() {
                    View::Array(array) => array.get(index as usize),
                    _ => None,
                }),
            };
            if let Some(element) = element {
                self.follow(rest, element, sink)?;
            }
        }
        Ok(())
    }

    /// All that steps find.
    fn collect(&mut self, steps: &Steps, item: Item<'a>) -> Followed<Vec<Item<'a>>> {
        let mut found = Vec::new();
        let whether = std::mem::replace(&mut self.whether, false);
        let result = self.follow(steps, item, &mut |item| {
            found.push(item);
            Ok(())
        });
        self.whether = whether;
        result.map(|()| found)
    }

    /// The same, in lax mode with the elements of arrays in place of these.
    fn operands(&mut self, steps: &Steps, item: Item<'a>, unwrap: bool) -> Followed<Vec<Item<'a>>> {
        let found = self.collect(steps, item)?;
        if !unwrap || !self.lax || !found.iter().any(Item::is_array) {
            return Ok(found);
        }
        let opened = found.into_iter().flat_map(|item| match item.is_array() {
            true => item.parts(),
            false => vec![item],
        });
        Ok(opened.collect())
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: &Steps,
        right: &Steps,
        item: Item<'a>,
    ) -> Followed<Item<'a>> {
        let left = self.operands(left, item.clone(), true)?;
        let right = self.operands(right, item, true)?;
        let single = |items: &[Item<'a>], side: &str| match items {
            [one] if one.as_number().is_some() => Ok(one.as_number().unwrap_or(Numeric::NAN)),
            _ => stop(
                "22038",
                format!(
                    "{side} operand of jsonpath operator {} is not a single numeric value",
                    operator.sign()
                ),
            ),
        };
        let (a, b) = (single(&left, "left")?, single(&right, "right")?);
        let result = match operator {
            Operator::Add => a.add(&b),
            Operator::Sub => a.sub(&b),
            Operator::Mul => a.mul(&b),
            Operator::Div => a.div(&b),
            _ => a.rem(&b),
        };
        Ok(Item::number(&result.map_err(Stop::Path)?)?)
    }

    fn signed(
        &mut self,
        inner: &Steps,
        minus: bool,
        rest: &[Step],
        item: Item<'a>,
        sink: Sink<'_, 'a>,
    ) -> Followed {
        for operand in self.operands(inner, item, true)? {
            let Some(number) = operand.as_number() else {
                // As in PostgreSQL, what has no sign is passed over where only that there is one counts.
                if self.whether && rest.is_empty() {
                    continue;
                }
                let sign = if minus { '-' } else { '+' };
                return stop(
                    "2203B",
                    format!("operand of unary jsonpath operator {sign} is not a numeric value"),
                );
            };
            let result = if minus { number.neg() } else { number };
            self.follow(rest, Item::number(&result)?, sink)?;
        }
        Ok(())
    }

    fn compute(&mut self, method: Method, item: &Item<'a>) -> Followed<Item<'a>> {
        if method == Method::Double {
            return double(item);
        }
        let Some(number) = item.as_number() else {
            let name = method.name();
            return stop(
                "22036",
                format!("jsonpath item method .{name}() can only be applied to a numeric value"),
            );
        };
        let result = match method {
            Method::Abs => Ok(number.abs()),
            Method::Floor => number.floor(),
            _ => number.ceil(),
        };
        Ok(Item::number(&result.map_err(Stop::Path)?)?)
    }

    fn key_values(&mut self, rest: &[Step], item: &Item<'a>, sink: Sink<'_, 'a>) -> Followed {
        let Some(View::Object(object)) = item.view() else {
            return stop(
                "2203C",
                "jsonpath item method .keyvalue() can only be applied to an object",
            );
        };
        let id = self.object_id(item);
        let mut all = Vec::new();
        for (key, value) in object.iter() {
            all.push(Item::built(|builder| {
                builder.begin_object()?;
                builder.key("id")?;
                builder.number(&Numeric::from(id))?;
                builder.key("key")?;
                builder.string(key)?;
                builder.key("value")?;
                builder.value(value)?;
                builder.end()
            })?);
        }
        for item in all {
            self.generation += 1;
            self.follow(rest, item, sink)?;
        }
        Ok(())
    }

    /// A number by which objects of one document are told apart: where it begins.
    fn object_id(&self, item: &Item<'a>) -> i64 {
        match item.offset_in(&self.root) {
            Some(offset) => offset as i64,
            None => self.generation * 10_000_000_000,
        }
    }

    fn datetime(&mut self, template: Option<&str>, item: &Item<'a>) -> Followed<Item<'a>> {
        let Some(View::String(text)) = item.view() else {
            return stop(
                "22031",
                "jsonpath item method .datetime() can only be applied to a string",
            );
        };
        if let Some(template) = template {
            let read = moment::parse_by(text, template)?;
            return read.map(Item::Moment).map_err(Stop::Path);
        }
        match moment::parse(text) {
            Some(moment) => Ok(Item::Moment(moment)),
            None => {
                let message = format!("datetime format is not recognized: \"{text}\"");
                let hint = "Use a datetime template argument to specify the input data format.";
                let error = Error::new(SqlState::of("22031"), message).with_hint(hint);
                Err(Stop::Path(error))
            }
        }
    }

    fn condition(&mut self, steps: &Steps, item: Item<'a>) -> Followed<Option<bool>> {
        match steps.as_slice() {
            [step] => self.condition_step(step, item),
            _ => Err(Error::internal("a condition of several steps").into()),
        }
    }

    fn condition_step(&mut self, step: &Step, item: Item<'a>) -> Followed<Option<bool>> {
        coro::check_depth()?;
        match step {
            Step::Binary(Operator::And, left, right) => {
                let left = self.condition(left, item.clone())?;
                if left == Some(false) {
                    return Ok(left);
                }
                let right = self.condition(right, item)?;
                Ok(if right == Some(true) { left } else { right })
            }
            Step::Binary(Operator::Or, left, right) => {
                let left = self.condition(left, item.clone())?;
                if left == Some(true) {
                    return Ok(left);
                }
                let right = self.condition(right, item)?;
                Ok(if right == Some(false) { left } else { right })
            }
            Step::Not(inner) => Ok(self.condition(inner, item)?.map(|truth| !truth)),
            Step::IsUnknown(inner) => Ok(Some(self.condition(inner, item)?.is_none())),
            Step::Exists(inner) => self.exists(inner, item),
            Step::Binary(operator, left, right) => {
                let with_zone = self.with_zone;
                let context = self.context;
                self.predicate(left, Some(right), true, item, &mut |a, b| {
                    compare(context, *operator, a, b, with_zone)
                })
            }
            Step::StartsWith(left, right) => {
                self.predicate(left, Some(right), false, item, &mut |a, b| {
                    Ok(match (a.view(), b.view()) {
                        (Some(View::String(a)), Some(View::String(b))) => Some(a.starts_with(b)),
                        _ => None,
                    })
                })
            }
            Step::LikeRegex(left, pattern, flags) => {
                let pattern = super::pattern::compile(pattern, flags)?;
                self.predicate(left, None, false, item, &mut |a, _| match a.view() {
                    Some(View::String(text)) => Ok(Some(pattern.is_match(text)?)),
                    _ => Ok(None),
                })
            }
            _ => Err(Error::internal("a value where a condition is wanted").into()),
        }
    }

    /// The result, or `None` for an error of the path.
    fn guarded<T>(&mut self, result: Followed<T>) -> Followed<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Path(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn exists(&mut self, steps: &Steps, item: Item<'a>) -> Followed<Option<bool>> {
        let strict = !self.lax;
        let (lax, forgiving, len) = (self.lax, self.forgiving, self.array_len);
        let current = self.current.clone();
        let mut any = false;
        let whether = std::mem::replace(&mut self.whether, self.lax);
        let result = self.follow(steps, item, &mut |_| {
            any = true;
            match strict {
                true => Ok(()),
                false => Err(Stop::Found),
            }
        });
        // Whatever it has left halfway.
        (self.lax, self.forgiving, self.array_len) = (lax, forgiving, len);
        (self.current, self.whether) = (current, whether);
        match result {
            Err(Stop::Found) if !strict => Ok(Some(true)),
            other => Ok(self.guarded(other)?.map(|()| any)),
        }
    }

    fn predicate(
        &mut self,
        left: &Steps,
        right: Option<&Steps>,
        unwrap_right: bool,
        item: Item<'a>,
        holds: &mut dyn FnMut(&Item<'a>, &Item<'a>) -> Followed<Option<bool>>,
    ) -> Followed<Option<bool>> {
        let found = self.operands(left, item.clone(), true);
        let Some(left) = self.guarded(found)? else {
            return Ok(None);
        };
        let right = match right {
            None => vec![Item::truth(None)],
            Some(right) => {
                let found = self.operands(right, item, unwrap_right);
                match self.guarded(found)? {
                    Some(right) => right,
                    None => return Ok(None),
                }
            }
        };
        let (mut found, mut unknown) = (false, false);
        for a in &left {
            for b in &right {
                coro::work(STEP_WORK)?;
                match holds(a, b)? {
                    None if !self.lax => return Ok(None),
                    None => unknown = true,
                    Some(true) if self.lax => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (found, unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }
}
