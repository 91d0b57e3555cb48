//! Makes the binary form of a `jsonb`, part by part.
//!
//! What an end of a container says is known when the container is complete, so the parts are
//! gathered first, scalars in their binary form, and laid out at the end, each byte once.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::{tag, Step, Value};

use super::parse::{too_deep, Event, Parser, DEPTH_MAX};
use crate::{column, growth, Datum, Numeric};

/// Bytes that a string, and that the parts of a container together, have at most.
pub const PART_BYTES_MAX: usize = 0x0fff_ffff;
/// What gathering a part counts for, in the units of [`coro::work`].
const PART_WORK: usize = 32;

/// A place in [`Builder::data`].
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    key: Place,
    node: usize,
}

#[derive(Clone, Debug)]
enum Node {
    /// A complete value.
    Bytes(Place),
    Array(Vec<Part>, usize),
    Object(Vec<Part>, usize),
}

impl Node {
    /// Its bytes.
    fn size(&self) -> usize {
        match self {
            Node::Bytes(place) => place.len,
            Node::Array(_, size) | Node::Object(_, size) => *size,
        }
    }
}

#[derive(Clone, Debug)]
struct Open {
    object: bool,
    parts: Vec<Part>,
    key: Place,
}

/// Makes one value.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    data: Vec<u8>,
    nodes: Vec<Node>,
    open: Vec<Open>,
    root: Option<usize>,
}

fn too_large(what: &str) -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("total size of jsonb {what} exceeds the maximum of {PART_BYTES_MAX} bytes"),
    )
}

impl Builder {
    /// A builder with nothing in it.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let parts = self.nodes.capacity() * (size_of::<Node>() + size_of::<Part>());
        self.data.capacity() + parts
    }

    fn put(&mut self, head: &[u8], bytes: &[u8]) -> Result<Place> {
        let start = self.data.len();
        growth::check_room(start, head.len() + bytes.len())?;
        self.data.extend_from_slice(head);
        self.data.extend_from_slice(bytes);
        coro::work(PART_WORK + bytes.len())?;
        Ok(Place {
            start,
            len: self.data.len() - start,
        })
    }

    fn add(&mut self, node: Node) {
        self.nodes.push(node);
        let node = self.nodes.len() - 1;
        match self.open.last_mut() {
            Some(open) => open.parts.push(Part {
                key: open.key,
                node,
            }),
            None => self.root = Some(node),
        }
    }

    /// Adds a value that is there already.
    ///
    /// # Errors
    /// 54000, as all others; the pending interrupt.
    pub fn value(&mut self, value: Value<'_>) -> Result<()> {
        let place = self.put(&[], value.0)?;
        self.add(Node::Bytes(place));
        Ok(())
    }

    /// Adds null.
    ///
    /// # Errors
    /// As [`Builder::value`].
    pub fn null(&mut self) -> Result<()> {
        self.value(Value::NULL)
    }

    /// Adds a truth value.
    ///
    /// # Errors
    /// As [`Builder::value`].
    pub fn bool(&mut self, value: bool) -> Result<()> {
        let tag = if value { tag::TRUE } else { tag::FALSE };
        self.value(Value(&[tag]))
    }

    /// Adds a number.
    ///
    /// # Errors
    /// As [`Builder::value`].
    pub fn number(&mut self, number: &Numeric) -> Result<()> {
        let mut bytes = vec![tag::NUMBER];
        column::encode_numeric(number, &mut bytes);
        self.value(Value(&bytes))
    }

    /// Adds a string.
    ///
    /// # Errors
    /// 54000 if it is too long.
    pub fn string(&mut self, text: &str) -> Result<()> {
        check_string(text)?;
        let place = self.put(&[tag::STRING], text.as_bytes())?;
        self.add(Node::Bytes(place));
        Ok(())
    }

    fn begin(&mut self, object: bool) -> Result<()> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.open.push(Open {
            object,
            parts: Vec::new(),
            key: Place { start: 0, len: 0 },
        });
        Ok(())
    }

    /// Begins an array.
    ///
    /// # Errors
    /// 54001.
    pub fn begin_array(&mut self) -> Result<()> {
        self.begin(false)
    }

    /// Begins an object.
    ///
    /// # Errors
    /// 54001.
    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(true)
    }

    /// The key of the member whose value comes next. Of members with the same key, the last stays.
    ///
    /// # Errors
    /// 54000 if it is too long.
    pub fn key(&mut self, key: &str) -> Result<()> {
        check_string(key)?;
        let place = self.put(&[], key.as_bytes())?;
        if let Some(open) = self.open.last_mut() {
            open.key = place;
        }
        Ok(())
    }

    /// Ends the container that was begun last.
    ///
    /// # Errors
    /// 54000 if it is too large.
    pub fn end(&mut self) -> Result<()> {
        let Some(Open {
            object, mut parts, ..
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let (what, each) = match object {
            true => ("object elements", 8),
            false => ("array elements", 4),
        };
        if object {
            parts = self.unique(parts)?;
        }
        let sizes = parts
            .iter()
            .map(|part| part.key.len + self.nodes[part.node].size());
        let total: usize = sizes.sum();
        if total > PART_BYTES_MAX {
            return Err(too_large(what));
        }
        let size = 5 + each * parts.len() + total;
        self.add(match object {
            true => Node::Object(parts, size),
            false => Node::Array(parts, size),
        });
        Ok(())
    }

    /// The members in the order of their keys; of those with the same key, the last one.
    fn unique(&self, mut parts: Vec<Part>) -> Result<Vec<Part>> {
        let key = |part: &Part| {
            let place = part.key;
            (place.len, &self.data[place.start..place.start + place.len])
        };
        coro::work(PART_WORK * parts.len())?;
        if parts.is_sorted_by(|a, b| key(a) < key(b)) {
            return Ok(parts);
        }
        parts.sort_by(|a, b| {
            coro::work_or_unwind(PART_WORK);
            key(a).cmp(&key(b))
        });
        // `dedup_by` keeps the first of equal ones.
        parts.reverse();
        parts.dedup_by(|a, b| key(a) == key(b));
        parts.reverse();
        Ok(parts)
    }

    /// The value.
    ///
    /// # Errors
    /// 54000 if it is too large; XX000 if it is not complete.
    pub fn finish(self) -> Result<Datum> {
        let Some(root) = self.root.filter(|_| self.open.is_empty()) else {
            return Err(Error::internal("a jsonb is not complete"));
        };
        let size = self.nodes[root].size();
        growth::check_room(0, size)?;
        let mut out = Vec::with_capacity(size);
        let mut rest = vec![root];
        while let Some(node) = rest.pop() {
            let (parts, object) = match &self.nodes[node] {
                Node::Bytes(place) => {
                    let from = out.len();
                    out.extend_from_slice(&self.data[place.start..place.start + place.len]);
                    coro::work(PART_WORK + out.len() - from)?;
                    continue;
                }
                Node::Array(parts, _) => (parts, false),
                Node::Object(parts, _) => (parts, true),
            };
            self.head(parts, object, &mut out);
            coro::work(PART_WORK * parts.len())?;
            rest.extend(parts.iter().rev().map(|part| part.node));
        }
        debug_assert_eq!(out.len(), size, "the size of a jsonb");
        Ok(Datum::Jsonb(Arc::from(out)))
    }

    /// Appends what stands before the values of a container.
    fn head(&self, parts: &[Part], object: bool, out: &mut Vec<u8>) {
        let mut end = 0;
        let word = |out: &mut Vec<u8>, word: usize| {
            out.extend_from_slice(&(word as u32).to_le_bytes());
        };
        out.push(if object { tag::OBJECT } else { tag::ARRAY });
        word(out, parts.len());
        if object {
            for part in parts {
                end += part.key.len;
                word(out, end);
            }
        }
        for part in parts {
            end += self.nodes[part.node].size();
            word(out, end);
        }
        if object {
            for part in parts {
                let key = part.key;
                out.extend_from_slice(&self.data[key.start..key.start + key.len]);
            }
        }
    }

    /// Adds what a step of another value says; containers are begun and ended.
    ///
    /// # Errors
    /// As [`Builder::value`].
    pub fn step(&mut self, step: Step<'_>) -> Result<()> {
        match step {
            Step::Scalar(value) => self.value(value),
            Step::BeginArray(_) => self.begin_array(),
            Step::BeginObject(_) => self.begin_object(),
            Step::Key(key) => self.key(key),
            Step::EndArray | Step::EndObject => self.end(),
        }
    }

    /// Adds the value of a text.
    ///
    /// # Errors
    /// Those of [`Parser::next`]; 22003 for a number out of range.
    pub fn parse(&mut self, text: &str) -> Result<()> {
        let mut parser = Parser::new(text, true);
        while let Some(event) = parser.next()? {
            match event {
                Event::BeginObject => self.begin_object()?,
                Event::BeginArray => self.begin_array()?,
                Event::EndObject | Event::EndArray => self.end()?,
                Event::Key => self.key(parser.text())?,
                Event::String => self.string(parser.text())?,
                Event::Number => self.number(&Numeric::parse(parser.token())?)?,
                Event::True => self.bool(true)?,
                Event::False => self.bool(false)?,
                Event::Null => self.null()?,
            }
        }
        Ok(())
    }
}

fn check_string(text: &str) -> Result<()> {
    if text.len() <= PART_BYTES_MAX {
        return Ok(());
    }
    let error = Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "string too long to represent as jsonb string",
    );
    Err(error.with_detail(format!(
        "Due to an implementation restriction, jsonb strings cannot exceed {PART_BYTES_MAX} bytes."
    )))
}
