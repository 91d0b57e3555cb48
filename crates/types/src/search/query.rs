//! `tsquery`: an expression over lexemes, as a list of nodes.
//!
//! ```text
//! 'a' & !'b'      &  !  'b'  'a'      each operator, its right operand, its left one
//! ```
//! The bytes are the binary form: the number of nodes, then each: 1, the weights that count, whether
//! it is a prefix, the lexeme and a zero; or 2, the operator and the distance of a phrase.
//!
//! Nothing here calls itself: a query may be as deep as it is long.

use std::cmp::Ordering;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::vector::{short, take, take_text, write_quoted};
use super::{too_big, LEXEME_BYTES_MAX, POSITION_END, VECTOR_BYTES_MAX};
use crate::Datum;

const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;

/// Operators of one expression that may wait for their right operand.
pub(super) const OPERATORS_MAX: usize = 32;

/// A lexeme that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The lexeme.
    pub text: String,
    /// The weights that count, a bit each, `D` the lowest; 0 for any.
    pub weights: u8,
    /// Whether what begins with it counts.
    pub prefix: bool,
}

/// A part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A lexeme.
    Operand(Operand),
    /// `!`.
    Not,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `<N>`: the right one stands so many places behind the left one.
    Phrase(u16),
}

impl Node {
    /// Its number in the binary form; greater ones bind less, but for phrases.
    fn code(&self) -> u8 {
        match self {
            Node::Operand(_) => 0,
            Node::Not => NOT,
            Node::And => AND,
            Node::Or => OR,
            Node::Phrase(_) => PHRASE,
        }
    }

    /// How tightly it binds.
    pub fn priority(&self) -> u8 {
        match self {
            Node::Or => 1,
            Node::And => 2,
            Node::Phrase(_) => 3,
            Node::Not => 4,
            Node::Operand(_) => 5,
        }
    }
}

/// A query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    nodes: Vec<Node>,
    /// Where the left operand of each operator of two stands; 0 for others.
    left: Vec<u32>,
}

fn malformed() -> Error {
    Error::internal("malformed tsquery: operand not found")
}

impl Query {
    /// Nodes in their order: an operator, its right operand, its left one.
    ///
    /// # Errors
    /// XX000 if operands are missing or too many.
    pub fn of(nodes: Vec<Node>) -> Result<Query> {
        let mut left = vec![0u32; nodes.len()];
        let mut len = vec![1usize; nodes.len()];
        for (at, node) in nodes.iter().enumerate().rev() {
            let right = || len.get(at + 1).copied().ok_or_else(malformed);
            len[at] = match node {
                Node::Operand(_) => 1,
                Node::Not => 1 + right()?,
                _ => {
                    let right = right()?;
                    left[at] = (at + 1 + right) as u32;
                    let own = len.get(at + 1 + right).copied().ok_or_else(malformed)?;
                    1 + right + own
                }
            };
        }
        match len.first().is_none_or(|all| *all == nodes.len()) {
            true => Ok(Query { nodes, left }),
            false => Err(Error::internal("malformed tsquery: extra nodes")),
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where the left operand of an operator of two stands. The right one is the next.
    pub fn left(&self, at: usize) -> usize {
        self.left.get(at).copied().unwrap_or_default() as usize
    }

    /// The lexemes that are asked for, and where.
    pub fn operands(&self) -> impl Iterator<Item = (usize, &Operand)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| match node {
            Node::Operand(operand) => Some((at, operand)),
            _ => None,
        })
    }

    /// The nodes of a part.
    pub fn part(&self, at: usize) -> &[Node] {
        let mut wanted = 1;
        let mut end = at;
        while wanted > 0 && end < self.nodes.len() {
            wanted = match self.nodes[end] {
                Node::Operand(_) => wanted - 1,
                Node::Not => wanted,
                _ => wanted + 1,
            };
            end += 1;
        }
        &self.nodes[at..end]
    }

    /// The value.
    pub fn into_datum(self) -> Datum {
        let mut out = Vec::new();
        out.extend_from_slice(&(self.nodes.len() as u32).to_be_bytes());
        for node in &self.nodes {
            match node {
                Node::Operand(operand) => {
                    out.extend_from_slice(&[1, operand.weights, u8::from(operand.prefix)]);
                    out.extend_from_slice(operand.text.as_bytes());
                    out.push(0);
                }
                operator => {
                    out.extend_from_slice(&[2, operator.code()]);
                    if let Node::Phrase(distance) = operator {
                        out.extend_from_slice(&distance.to_be_bytes());
                    }
                }
            }
        }
        Datum::TsQuery(Arc::from(out))
    }

    /// The query of a value's bytes.
    ///
    /// # Errors
    /// XX000, 08P01 and kin.
    pub fn decode(bytes: &[u8]) -> Result<Query> {
        let mut rest = bytes;
        let count = u32::from_be_bytes(take(&mut rest)?) as usize;
        coro::work(bytes.len())?;
        let mut nodes = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            let [kind] = take(&mut rest)?;
            nodes.push(match kind {
                1 => {
                    let [weights, prefix] = take(&mut rest)?;
                    let text = take_text(&mut rest)?.to_owned();
                    if weights > 0xf {
                        return Err(Error::internal("invalid tsquery: invalid weight bitmap"));
                    }
                    if text.len() > LEXEME_BYTES_MAX {
                        return Err(Error::internal("invalid tsquery: operand too long"));
                    }
                    Node::Operand(Operand {
                        text,
                        weights,
                        prefix: prefix != 0,
                    })
                }
                2 => match take(&mut rest)? {
                    [NOT] => Node::Not,
                    [AND] => Node::And,
                    [OR] => Node::Or,
                    [PHRASE] => Node::Phrase(u16::from_be_bytes(take(&mut rest)?)),
                    [code] => {
                        let message = format!("invalid tsquery: unrecognized operator type {code}");
                        return Err(Error::internal(message));
                    }
                },
                kind => {
                    return Err(Error::internal(format!(
                        "unrecognized tsquery node type: {kind}"
                    )))
                }
            });
        }
        match rest.is_empty() {
            true => Query::of(nodes),
            false => {
                let message = "incorrect binary data format";
                Err(Error::new(SqlState::INVALID_BINARY_REPRESENTATION, message))
            }
        }
    }

    /// Appends the text form of what stands at a place.
    fn write_part(&self, out: &mut String) {
        enum Step {
            /// A node below an operator of that priority, perhaps the right operand of a phrase.
            Node(usize, u8, bool),
            Text(&'static str),
            Operator(usize),
        }
        let mut steps = vec![Step::Node(0, 0, false)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Text(text) => out.push_str(text),
                Step::Operator(at) => {
                    let _ = match &self.nodes[at] {
                        Node::And => write!(out, " & "),
                        Node::Or => write!(out, " | "),
                        Node::Phrase(1) => write!(out, " <-> "),
                        Node::Phrase(distance) => write!(out, " <{distance}> "),
                        _ => Ok(()),
                    };
                }
                Step::Node(at, above, is_right) => match &self.nodes[at] {
                    Node::Operand(operand) => operand.write(out),
                    node => {
                        let own = node.priority();
                        let is_phrase = matches!(node, Node::Phrase(_));
                        let parentheses = own < above || (is_phrase && is_right);
                        if parentheses {
                            out.push_str("( ");
                            steps.push(Step::Text(" )"));
                        }
                        steps.push(Step::Node(at + 1, own, is_phrase));
                        match node {
                            Node::Not => out.push('!'),
                            _ => {
                                steps.push(Step::Operator(at));
                                steps.push(Step::Node(self.left(at), own, false));
                            }
                        }
                    }
                },
            }
        }
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut String) {
        if !self.is_empty() {
            self.write_part(out);
        }
    }

    /// What must be met whatever becomes of `!`; none if that is nothing.
    pub fn without_not(&self) -> Option<Query> {
        let mut stack: Vec<Option<Vec<Node>>> = Vec::new();
        for node in self.nodes.iter().rev() {
            let made = match node {
                Node::Operand(_) => Some(vec![node.clone()]),
                Node::Not => {
                    stack.pop();
                    None
                }
                _ => {
                    let right = stack.pop().flatten();
                    let left = stack.pop().flatten();
                    match (right, left) {
                        (Some(right), Some(left)) => {
                            let mut all = vec![node.clone()];
                            all.extend(right);
                            all.extend(left);
                            Some(all)
                        }
                        _ if *node == Node::Or => None,
                        (right, left) => right.or(left),
                    }
                }
            };
            stack.push(made);
        }
        Query::of(stack.pop().flatten()?).ok()
    }

    /// The size that PostgreSQL's form has.
    pub fn size(&self) -> usize {
        let texts = self.operands().map(|(_, operand)| operand.text.len() + 1);
        8 + 12 * self.nodes.len() + texts.sum::<usize>()
    }
}

impl Operand {
    fn write(&self, out: &mut String) {
        write_quoted(&self.text, out);
        if self.weights == 0 && !self.prefix {
            return;
        }
        out.push(':');
        if self.prefix {
            out.push('*');
        }
        for (bit, letter) in [(8, 'A'), (4, 'B'), (2, 'C'), (1, 'D')] {
            if self.weights & bit != 0 {
                out.push(letter);
            }
        }
    }

    /// Whether it asks for a lexeme, weights aside.
    pub fn is_met_by(&self, lexeme: &str) -> bool {
        match self.prefix {
            true => lexeme.as_bytes().starts_with(self.text.as_bytes()),
            false => lexeme == self.text,
        }
    }
}

/// The checksum by which PostgreSQL orders lexemes of queries.
pub fn checksum(text: &str) -> i32 {
    const fn row(index: u32) -> u32 {
        let mut value = index;
        let mut bit = 0;
        while bit < 8 {
            value = match value & 1 {
                1 => value >> 1 ^ 0xedb8_8320,
                _ => value >> 1,
            };
            bit += 1;
        }
        value
    }
    let sum = text.bytes().fold(u32::MAX, |sum, byte| {
        row(sum >> 24 ^ u32::from(byte)) ^ sum << 8
    });
    !sum as i32
}

/// The order of two values' bytes.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (Query::decode(a), Query::decode(b)) {
        (Ok(a), Ok(b)) => compare_queries(&a, &b),
        _ => a.cmp(b),
    }
}

/// Puts queries in order, weights and prefixes aside, as PostgreSQL does.
pub fn compare_queries(a: &Query, b: &Query) -> Ordering {
    let counts = a.nodes.len().cmp(&b.nodes.len());
    let sizes = counts.then_with(|| a.size().cmp(&b.size()));
    match sizes.is_ne() || a.is_empty() {
        true => sizes,
        false => compare_parts(a, 0, b, 0),
    }
}

/// Puts parts of queries in order: greater operators, checksums and distances come first.
pub fn compare_parts(a: &Query, from_a: usize, b: &Query, from_b: usize) -> Ordering {
    enum Step {
        Node(usize, usize),
        Distance(u16, u16),
    }
    let mut steps = vec![Step::Node(from_a, from_b)];
    while let Some(step) = steps.pop() {
        let order = match step {
            Step::Distance(a, b) => b.cmp(&a),
            Step::Node(at, other) => match (&a.nodes[at], &b.nodes[other]) {
                (Node::Operand(x), Node::Operand(y)) => {
                    let sums = checksum(&y.text).cmp(&checksum(&x.text));
                    sums.then_with(|| x.text.cmp(&y.text))
                }
                (Node::Operand(_), _) => Ordering::Greater,
                (_, Node::Operand(_)) => Ordering::Less,
                (x, y) if x.code() != y.code() => y.code().cmp(&x.code()),
                (x, y) => {
                    if let (Node::Phrase(x), Node::Phrase(y)) = (x, y) {
                        steps.push(Step::Distance(*x, *y));
                    }
                    if *x != Node::Not {
                        steps.push(Step::Node(a.left(at), b.left(other)));
                    }
                    steps.push(Step::Node(at + 1, other + 1));
                    Ordering::Equal
                }
            },
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Feeds a value's bytes to a hasher, in agreement with [`compare`].
pub fn hash_into(bytes: &[u8], state: &mut impl Hasher) {
    let Ok(query) = Query::decode(bytes) else {
        return bytes.hash(state);
    };
    for node in &query.nodes {
        match node {
            Node::Operand(operand) => operand.text.hash(state),
            Node::Phrase(distance) => (PHRASE, distance).hash(state),
            operator => operator.code().hash(state),
        }
    }
}

/// A query while it is made, operators behind their operands.
#[derive(Debug, Default)]
pub struct Builder {
    postfix: Vec<Option<Node>>,
    bytes: usize,
}

impl Builder {
    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.postfix.is_empty()
    }

    /// Appends a lexeme.
    ///
    /// # Errors
    /// 54000, with the whole text.
    pub fn operand(&mut self, operand: Operand, whole: &str) -> Result<()> {
        if operand.text.len() > LEXEME_BYTES_MAX {
            return Err(too_big(format!("word is too long in tsquery: \"{whole}\"")));
        }
        if self.bytes >= VECTOR_BYTES_MAX {
            return Err(too_big(format!("value is too big in tsquery: \"{whole}\"")));
        }
        coro::work(16 + operand.text.len())?;
        self.bytes += operand.text.len() + 1;
        self.postfix.push(Some(Node::Operand(operand)));
        Ok(())
    }

    /// Appends what is no lexeme, and is left out at the end.
    pub fn stop(&mut self) {
        self.postfix.push(None);
    }

    /// Appends an operator over what stands before it.
    pub fn operator(&mut self, node: Node) {
        self.postfix.push(Some(node));
    }

    /// The query; none if only stops are there.
    ///
    /// # Errors
    /// XX000 if operands are missing or too many.
    pub fn finish(self) -> Result<Option<Query>> {
        if self.postfix.iter().all(Option::is_some) {
            let nodes = self.postfix.into_iter().rev().flatten();
            return Query::of(nodes.collect()).map(Some);
        }
        let mut stack: Vec<Cleaned> = Vec::new();
        for node in self.postfix {
            coro::work(16)?;
            let made = match node {
                None => Cleaned::default(),
                Some(node @ Node::Operand(_)) => Cleaned {
                    nodes: vec![node],
                    ..Cleaned::default()
                },
                Some(Node::Not) => {
                    let mut right = stack.pop().ok_or_else(malformed)?;
                    if !right.nodes.is_empty() {
                        right.nodes.push(Node::Not);
                    }
                    right
                }
                Some(node) => {
                    let right = stack.pop().ok_or_else(malformed)?;
                    let left = stack.pop().ok_or_else(malformed)?;
                    Cleaned::of(node, left, right)
                }
            };
            stack.push(made);
        }
        let made = stack.pop().ok_or_else(malformed)?;
        let mut nodes = made.nodes;
        nodes.reverse();
        match nodes.is_empty() {
            true => Ok(None),
            false => Query::of(nodes).map(Some),
        }
    }
}

/// A part without stops, operators behind their operands, and by how much the distances of phrases
/// to its left and right grow by what was left out.
#[derive(Default)]
struct Cleaned {
    nodes: Vec<Node>,
    left: u32,
    right: u32,
}

impl Cleaned {
    fn of(node: Node, left: Cleaned, right: Cleaned) -> Cleaned {
        let phrase = match node {
            Node::Phrase(distance) => Some(u32::from(distance)),
            _ => None,
        };
        match (left.nodes.is_empty(), right.nodes.is_empty()) {
            (true, true) => {
                let both = match phrase {
                    Some(own) => left.left + own + right.left,
                    None => left.left.max(right.left),
                };
                Cleaned {
                    nodes: Vec::new(),
                    left: both,
                    right: both,
                }
            }
            (true, false) => Cleaned {
                left: phrase.map_or(0, |own| left.left + own) + right.left,
                right: right.right,
                nodes: right.nodes,
            },
            (false, true) => Cleaned {
                right: left.right + phrase.map_or(0, |own| own + right.right),
                left: left.left,
                nodes: left.nodes,
            },
            (false, false) => {
                let (node, outer) = match phrase {
                    Some(own) => {
                        let distance = own + left.right + right.left;
                        (Node::Phrase(distance as u16), (left.left, right.right))
                    }
                    None => (node, (0, 0)),
                };
                let mut nodes = left.nodes;
                nodes.extend(right.nodes);
                nodes.push(node);
                Cleaned {
                    nodes,
                    left: outer.0,
                    right: outer.1,
                }
            }
        }
    }
}

/// 22023 for a distance that is too great.
pub fn too_distant() -> Error {
    let message = format!("distance in phrase operator must be an integer value between zero and {POSITION_END} inclusive");
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Reads the binary form.
///
/// # Errors
/// XX000, 08P01.
pub fn receive(bytes: &[u8]) -> Result<Datum> {
    if bytes.len() < 4 {
        return Err(short());
    }
    Query::decode(bytes).map(Query::into_datum)
}
