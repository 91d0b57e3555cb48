//! The binary form of a `jsonb` value: how it lies in memory and in rows, and its order in keys.
//!
//! A value is a tag and what belongs to it. It ends where the bytes that it was given end, so no
//! length is stored for the whole:
//!
//! | tag | value | what follows |
//! |---|---|---|
//! | 0, 1, 2 | null, false, true | nothing |
//! | 3 | number | the column form of a numeric, see [`crate::key::put_numeric`] |
//! | 4 | string | UTF-8 |
//! | 5 | array | n; n ends; the elements |
//! | 6 | object | n; n ends of keys; n ends of values; the keys; the values |
//!
//! Numbers of this table have four bytes, the lowest first. An end is an offset from the first byte
//! after all ends; a part begins where the one before it ends. So the element of an array is found
//! by its offset alone. An object's keys are unique and sorted by their length, then by their bytes
//! (PostgreSQL's order of output), so a key is found by binary search; nothing else is looked at.
//!
//! ```text
//! {"a": [true]}   06  01 00 00 00  01 00 00 00  0b 00 00 00  61  05 01 00 00 00 01 00 00 00 02
//!                 obj n = 1        key ends: 1  value ends:11 a   arr n = 1      ends: 1    true
//! ```
//!
//! # Invariants
//! - Nothing here recurses: a document may be nested as deep as it likes.
//! - Whatever the bytes are, nothing here panics: what is malformed reads as null.
//!
//! # In keys
//! [`put_key`] gives bytes that are ordered as PostgreSQL orders jsonb: null, strings, numbers,
//! booleans, arrays, objects; containers by their number of parts first, then part by part; and an
//! empty array that is the whole value below everything else.

use crate::error::{Error, Result};
use crate::key::{put_numeric, Key};
use crate::limits::KEY_BYTES_MAX;

/// The tags.
#[allow(missing_docs)]
pub mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const NUMBER: u8 = 3;
    pub const STRING: u8 = 4;
    pub const ARRAY: u8 = 5;
    pub const OBJECT: u8 = 6;
}

/// A value in its binary form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value<'a>(pub &'a [u8]);

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum View<'a> {
    Null,
    Bool(bool),
    /// The column form of a numeric.
    Number(&'a [u8]),
    String(&'a str),
    Array(Array<'a>),
    Object(Object<'a>),
}

/// The elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array<'a> {
    len: usize,
    ends: &'a [u8],
    data: &'a [u8],
}

/// The members of an object, in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object<'a> {
    len: usize,
    key_ends: &'a [u8],
    ends: &'a [u8],
    data: &'a [u8],
}

/// Bytes of a number.
const WORD: usize = 4;

fn word(bytes: &[u8], index: usize) -> Option<usize> {
    let word = bytes.get(index * WORD..(index + 1) * WORD)?;
    Some(u32::from_le_bytes(word.try_into().ok()?) as usize)
}

impl<'a> Value<'a> {
    /// JSON's null.
    pub const NULL: Value<'static> = Value(&[tag::NULL]);

    /// What it is.
    pub fn view(self) -> View<'a> {
        let Some((tag, rest)) = self.0.split_first() else {
            return View::Null;
        };
        match *tag {
            tag::FALSE => View::Bool(false),
            tag::TRUE => View::Bool(true),
            tag::NUMBER => View::Number(rest),
            tag::STRING => View::String(std::str::from_utf8(rest).unwrap_or_default()),
            tag::ARRAY => Array::read(rest).map_or(View::Null, View::Array),
            tag::OBJECT => Object::read(rest).map_or(View::Null, View::Object),
            _ => View::Null,
        }
    }

    /// Whether it is an array or an object.
    pub fn is_container(self) -> bool {
        matches!(self.0.first(), Some(&tag::ARRAY | &tag::OBJECT))
    }

    /// Whether it is JSON's null.
    pub fn is_null(self) -> bool {
        self.view() == View::Null
    }

    /// Its parts, one after the other.
    pub fn walk(self) -> Walk<'a> {
        Walk {
            open: Vec::new(),
            next: Some(self),
        }
    }
}

impl<'a> Array<'a> {
    fn read(bytes: &'a [u8]) -> Option<Array<'a>> {
        let len = word(bytes, 0)?;
        let bytes = &bytes[WORD..];
        let split = len.checked_mul(WORD).filter(|at| *at <= bytes.len())?;
        let (ends, data) = bytes.split_at(split);
        Some(Array { len, ends, data })
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element of that number, from 0.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        if index >= self.len {
            return None;
        }
        let start = match index {
            0 => 0,
            index => word(self.ends, index - 1)?,
        };
        self.data.get(start..word(self.ends, index)?).map(Value)
    }

    /// The elements.
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len).map(move |index| self.get(index).unwrap_or(Value::NULL))
    }
}

impl<'a> Object<'a> {
    fn read(bytes: &'a [u8]) -> Option<Object<'a>> {
        let len = word(bytes, 0)?;
        let bytes = &bytes[WORD..];
        let each = len.checked_mul(WORD)?;
        let split = each.checked_mul(2).filter(|at| *at <= bytes.len())?;
        let (ends, data) = bytes.split_at(split);
        let (key_ends, ends) = ends.split_at(each);
        Some(Object {
            len,
            key_ends,
            ends,
            data,
        })
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn key_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let start = match index {
            0 => 0,
            index => word(self.key_ends, index - 1)?,
        };
        self.data.get(start..word(self.key_ends, index)?)
    }

    /// The key of that number, from 0.
    pub fn key(&self, index: usize) -> Option<&'a str> {
        std::str::from_utf8(self.key_bytes(index)?).ok()
    }

    /// The value of that number, from 0.
    pub fn value(&self, index: usize) -> Option<Value<'a>> {
        if index >= self.len {
            return None;
        }
        let start = match index {
            0 => word(self.key_ends, self.len - 1)?,
            index => word(self.ends, index - 1)?,
        };
        self.data.get(start..word(self.ends, index)?).map(Value)
    }

    /// The number of a key.
    pub fn position(&self, key: &str) -> Option<usize> {
        let wanted = (key.len(), key.as_bytes());
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.key_bytes(middle)?;
            match (found.len(), found).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.value(self.position(key)?)
    }

    /// The members.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        (0..self.len).map(move |index| {
            let key = self.key(index).unwrap_or_default();
            (key, self.value(index).unwrap_or(Value::NULL))
        })
    }
}

/// A step of a [`Walk`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// A value that is no container.
    Scalar(Value<'a>),
    /// An array begins, of so many elements.
    BeginArray(usize),
    /// An object begins, of so many members.
    BeginObject(usize),
    /// The key of the member that follows.
    Key(&'a str),
    /// An array ends.
    EndArray,
    /// An object ends.
    EndObject,
}

#[derive(Clone, Debug)]
enum Open<'a> {
    Array(Array<'a>, usize),
    /// The flag says that the key was given.
    Object(Object<'a>, usize, bool),
}

/// Goes through a value in the order of its text.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    open: Vec<Open<'a>>,
    next: Option<Value<'a>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let value = match self.next.take() {
            Some(value) => value,
            None => match self.open.last_mut()? {
                Open::Array(array, at) if *at == array.len => {
                    self.open.pop();
                    return Some(Step::EndArray);
                }
                Open::Array(array, at) => {
                    *at += 1;
                    array.get(*at - 1).unwrap_or(Value::NULL)
                }
                Open::Object(object, at, _) if *at == object.len => {
                    self.open.pop();
                    return Some(Step::EndObject);
                }
                Open::Object(object, at, named @ false) => {
                    *named = true;
                    return Some(Step::Key(object.key(*at).unwrap_or_default()));
                }
                Open::Object(object, at, named) => {
                    *named = false;
                    *at += 1;
                    object.value(*at - 1).unwrap_or(Value::NULL)
                }
            },
        };
        Some(match value.view() {
            View::Array(array) => {
                self.open.push(Open::Array(array, 0));
                Step::BeginArray(array.len)
            }
            View::Object(object) => {
                self.open.push(Open::Object(object, 0, false));
                Step::BeginObject(object.len)
            }
            _ => Step::Scalar(value),
        })
    }
}

/// The first byte of a key: what the whole value is.
mod whole {
    pub(super) const EMPTY_ARRAY: u8 = 1;
    pub(super) const SCALAR: u8 = 2;
    pub(super) const ARRAY: u8 = 3;
    pub(super) const OBJECT: u8 = 4;
}

/// The first byte of each part of a key, in ascending order.
mod rank {
    pub(super) const NULL: u8 = 1;
    pub(super) const STRING: u8 = 2;
    pub(super) const NUMBER: u8 = 3;
    pub(super) const BOOL: u8 = 4;
    pub(super) const ARRAY: u8 = 5;
    pub(super) const OBJECT: u8 = 6;
}

/// Appends the ordered form of a value.
///
/// # Errors
/// XX001 for a number that is none. What is longer than a key may be is cut there, and refused by
/// the caller.
pub fn put_key(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let value = Value(bytes);
    out.push(match value.view() {
        View::Array(array) if array.is_empty() => whole::EMPTY_ARRAY,
        View::Array(_) => whole::ARRAY,
        View::Object(_) => whole::OBJECT,
        _ => whole::SCALAR,
    });
    let count = |out: &mut Key, rank, len: usize| {
        out.push(rank);
        out.extend_from_slice(&(len as u32).to_be_bytes());
    };
    for step in value.walk() {
        if out.len() > KEY_BYTES_MAX {
            return Ok(());
        }
        match step {
            Step::BeginArray(len) => count(out, rank::ARRAY, len),
            Step::BeginObject(len) => count(out, rank::OBJECT, len),
            Step::EndArray | Step::EndObject => {}
            Step::Key(key) => crate::key::put_escaped(out, key.as_bytes()),
            Step::Scalar(value) => match value.view() {
                View::Bool(value) => out.extend_from_slice(&[rank::BOOL, u8::from(value)]),
                View::Number(number) => {
                    out.push(rank::NUMBER);
                    put_numeric(out, number)?;
                }
                View::String(text) => {
                    out.push(rank::STRING);
                    crate::key::put_escaped(out, text.as_bytes());
                }
                _ => out.push(rank::NULL),
            },
        }
    }
    Ok(())
}

/// How many bytes the ordered form at the beginning of a key has; `at` gives the key's bytes, and
/// `escaped` and `numeric` the end of the text and of the number that begin at a place.
///
/// # Errors
/// What they return; XX001 for what is no key.
pub fn key_len(
    at: impl Fn(usize) -> Result<u8>,
    escaped: impl Fn(usize) -> Result<usize>,
    numeric: impl Fn(usize) -> Result<usize>,
) -> Result<usize> {
    /// What is still to come of a container.
    struct Left {
        parts: u32,
        named: bool,
    }
    let mut place = 1;
    let mut open = vec![Left {
        parts: 1,
        named: false,
    }];
    while let Some(left) = open.last_mut() {
        if left.parts == 0 {
            open.pop();
            continue;
        }
        left.parts -= 1;
        if left.named {
            place = escaped(place)?;
        }
        let rank = at(place)?;
        place += 1;
        match rank {
            rank::NULL => {}
            rank::BOOL => place += 1,
            rank::STRING => place = escaped(place)?,
            rank::NUMBER => place = numeric(place)?,
            rank::ARRAY | rank::OBJECT => {
                let count = [at(place)?, at(place + 1)?, at(place + 2)?, at(place + 3)?];
                place += count.len();
                open.push(Left {
                    parts: u32::from_be_bytes(count),
                    named: rank == rank::OBJECT,
                });
            }
            rank => return Err(Error::corrupted(format!("jsonb of rank {rank} in a key"))),
        }
    }
    Ok(place)
}
