//! Text into statements: the glue to PostgreSQL's own grammar.
//!
//! [`parse`] gives one [`Statement`] for each statement of a text; its nodes are those of
//! libpg_query, with byte offsets into the whole text. [`tokens`] gives the tokens of a text, for
//! the grammar of PL/pgSQL.
//!
//! # Depth
//! Parse trees are as deep as their expressions are long, so they are made, walked and dropped on
//! the thread's own stack ([`large_stack`]), which has tens of megabytes where a coroutine's has
//! one. libpg_query stops at two megabytes of its own frames (54001), which bounds all that.
//!
//! # Length
//! The grammar is C and cannot give way. A text of more than [`SHORT_TEXT_BYTES_MAX`] bytes is
//! therefore parsed on a thread of its own ([`parse_beside`]), where its tree is dropped too, and
//! whatever walks the tree of such a text does so on a stack where it can give way ([`deep`]).
//!
//! # What it leaves out
//! The grammar is PostgreSQL 18's, a superset of 15's: what 15 refuses as a syntax error may get
//! a different error, or a meaning, but for what `later` knows.

mod ffi;
mod later;
pub mod normalize;
pub mod shape;
pub mod strings;

use std::ffi::CString;
use std::rc::Rc;
use std::sync::Arc;

use base::coro;
use base::env::{Env, LocalBoxFuture, Reactor, PARSE_REACTORS};
use base::limits::SHORT_TEXT_BYTES_MAX;
use base::memory::Reservation;
use base::sync::{Event, Mutex};
use base::{Error, Result, SqlState};
use pg_query::protobuf;
use prost::Message;

pub use normalize::{id_of_text, normalize, Normalized};
pub use pg_query::NodeEnum;
pub use shape::{Literal, LiteralKind, Shape};
pub use strings::{escape_warnings, Strings};

/// A parse tree and what is made of it take so many times the text; what stands in quotes less.
const TREE_FACTOR: usize = 50;
const QUOTED_FACTOR: usize = 6;

/// What an error says of it.
const TREE: &str = "A parse tree";

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Statement {
    text: Rc<str>,
    strings: Strings,
    tree: Rc<Tree>,
    index: usize,
    start: usize,
    end: usize,
    /// The steps from the outermost node to a statement inside it.
    path: Vec<fn(&NodeEnum) -> Option<&NodeEnum>>,
}

/// A parse tree, which is dropped where there is room for it, and time.
#[derive(Debug)]
struct Tree {
    statements: Vec<protobuf::RawStmt>,
    /// Where the tree of a long text is dropped.
    beside: Option<Arc<dyn Env>>,
    /// What that of a long text takes of the node's memory, with the plan.
    _held: Reservation,
}

impl Drop for Tree {
    fn drop(&mut self) {
        let statements = std::mem::take(&mut self.statements);
        match self.beside.take() {
            Some(env) => beside(&*env, "drop a parse tree", move || drop(statements)),
            None => large_stack(move || drop(statements)),
        }
    }
}

impl Statement {
    /// The whole text, which locations in the nodes refer to.
    pub fn text(&self) -> &Rc<str> {
        &self.text
    }

    /// Makes the first target of a SELECT that was just parsed the value of a part of what the first
    /// of these nodes names; the others lead there. No text that is parsed has such a target.
    ///
    /// # Errors
    /// XX000 for any other statement.
    pub fn assign_part(&mut self, part: &[protobuf::Node]) -> Result<()> {
        let statements = Rc::get_mut(&mut self.tree).map(|tree| &mut tree.statements);
        let statement = statements.and_then(|statements| statements.get_mut(self.index));
        let node = statement.and_then(|statement| statement.stmt.as_mut()?.node.as_mut());
        let target = match node {
            Some(NodeEnum::SelectStmt(select)) => select.target_list.first_mut(),
            _ => None,
        };
        match target.and_then(|target| target.node.as_mut()) {
            Some(NodeEnum::ResTarget(target)) => {
                target.indirection = part.to_vec();
                Ok(())
            }
            _ => Err(Error::internal("an assignment without a value")),
        }
    }

    /// The part of the text that is this statement.
    pub fn own_text(&self) -> &str {
        self.text[self.start..self.end].trim()
    }

    /// The statement that stands inside this one (of EXPLAIN, of PREPARE).
    pub fn inner(&self, find: fn(&NodeEnum) -> Option<&NodeEnum>) -> Option<Statement> {
        find(self.node())?;
        let mut path = self.path.clone();
        path.push(find);
        Some(Statement {
            path,
            ..self.clone()
        })
    }

    /// Whether it stands inside another.
    pub fn is_inner(&self) -> bool {
        !self.path.is_empty()
    }

    /// The statement's node.
    pub fn node(&self) -> &NodeEnum {
        let outermost = self.outermost();
        self.path
            .iter()
            .try_fold(outermost, |node, find| find(node))
            .expect("`inner` has tried every step")
    }

    fn outermost(&self) -> &NodeEnum {
        self.tree.statements[self.index]
            .stmt
            .as_ref()
            .and_then(|node| node.node.as_ref())
            .expect("empty statements are left out by parse")
    }
}

/// Where a statement stands, without its parse tree: parsed again, it gives the same statement.
#[derive(Clone, Debug)]
pub struct Source {
    text: Rc<str>,
    strings: Strings,
    index: usize,
    start: usize,
    end: usize,
    path: Vec<fn(&NodeEnum) -> Option<&NodeEnum>>,
}

impl Source {
    /// Of a statement.
    pub fn of(statement: &Statement) -> Source {
        Source {
            text: statement.text.clone(),
            strings: statement.strings,
            index: statement.index,
            start: statement.start,
            end: statement.end,
            path: statement.path.clone(),
        }
    }

    /// The part of the text that is the statement.
    pub fn own_text(&self) -> &str {
        self.text[self.start..self.end].trim()
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text if nothing but semicolons and white space stands beside the statement, or else the
    /// part that is the statement.
    pub fn text_alone(&self) -> &str {
        let is_blank = |text: &str| text.chars().all(|c| c == ';' || c.is_ascii_whitespace());
        match is_blank(&self.text[..self.start]) && is_blank(&self.text[self.end..]) {
            true => &self.text,
            false => self.own_text(),
        }
    }

    /// Whether the statement stands inside another.
    pub fn is_inner(&self) -> bool {
        !self.path.is_empty()
    }

    /// The memory that its parse tree and its plan take, about.
    pub fn tree_bytes(&self) -> usize {
        tree_bytes(&self.text)
    }

    /// How long the whole text is.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// How the strings of the text are read.
    pub fn strings(&self) -> Strings {
        self.strings
    }

    /// Whether the text is so short that it may be parsed in place.
    pub fn is_short(&self) -> bool {
        self.text.len() <= SHORT_TEXT_BYTES_MAX
    }

    /// The statement.
    ///
    /// # Errors
    /// As [`parse`]; none but those of memory and depth, since the text was parsed before.
    pub fn parse(&self) -> Result<Statement> {
        let statements = large_stack(|| raw_statements(&self.text, self.strings))?;
        let tree = Rc::new(Tree {
            statements,
            beside: None,
            _held: Reservation::of(TREE),
        });
        if tree.statements.len() <= self.index {
            return Err(Error::internal("a text has fewer statements than before"));
        }
        Ok(Statement {
            text: self.text.clone(),
            strings: self.strings,
            tree,
            index: self.index,
            start: self.start,
            end: self.end,
            path: self.path.clone(),
        })
    }
}

/// Parses a text; empty statements are left out.
///
/// # Errors
/// 42601 with a position, and what else PostgreSQL's parser raises; 54001 when it is too deep.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    parse_here(text, Strings::Conforming)
}

fn parse_here(text: &str, strings: Strings) -> Result<Vec<Statement>> {
    let statements = large_stack(|| raw_statements(text, strings))?;
    let held = Reservation::of(TREE);
    Ok(statements_of((text, strings), statements, None, held))
}

/// As [`parse`], on a thread of its own if the text is long, while others use this one; with plain
/// strings as they are said to be.
///
/// # Errors
/// As [`parse`]; the pending interrupt.
pub fn parse_beside(text: &str, strings: Strings, env: &Arc<dyn Env>) -> Result<Vec<Statement>> {
    if text.len() <= SHORT_TEXT_BYTES_MAX || !coro::inside() {
        return parse_here(text, strings);
    }
    let own = text.to_owned();
    let parse = move || raw_statements(&own, strings);
    let (statements, held) = ordered("parse", tree_bytes(text), env, parse)?;
    let beside = Some(env.clone());
    Ok(statements_of((text, strings), statements, beside, held))
}

/// As [`normalize`], on a thread of its own if the text is long, while others use this one.
///
/// # Errors
/// 53200; the pending interrupt.
pub fn normalize_beside(text: &str, env: &Arc<dyn Env>) -> Result<Normalized> {
    if text.len() <= SHORT_TEXT_BYTES_MAX || !coro::inside() {
        return Ok(normalize(text));
    }
    let own = text.to_owned();
    let done = ordered("normalize", tree_bytes(text), env, move || {
        Ok(normalize(&own))
    });
    Ok(done?.0)
}

/// What is to be done on another thread. The memory for it is taken until that has ended, whether or
/// not somebody still waits.
struct Order<T> {
    outcome: Mutex<Option<Result<T>>>,
    done: Event,
    held: Mutex<Reservation>,
}

/// Has a job done on another thread, and waits for it; what it takes of memory is still held.
fn ordered<T: Send + 'static>(
    name: &'static str,
    bytes: usize,
    env: &Arc<dyn Env>,
    job: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Reservation)> {
    let mut held = Reservation::of(TREE);
    held.grow(bytes)?;
    let order = Arc::new(Order {
        outcome: Mutex::new(None),
        done: Event::default(),
        held: Mutex::new(held),
    });
    let taken = order.clone();
    beside(&**env, name, move || {
        // Whoever has ordered it may have given up while other texts came first.
        if Arc::strong_count(&taken) == 1 {
            return;
        }
        let outcome = coro::catch_panic(job);
        let outcome = outcome.unwrap_or_else(|panic| Err(Error::internal(panic)));
        *taken.outcome.lock() = Some(outcome);
        taken.done.notify_all();
    });
    let outcome = || order.outcome.lock().take();
    let outcome = coro::wait(order.done.until(outcome))??;
    let held = std::mem::take(&mut *order.held.lock());
    Ok((outcome, held))
}

/// The memory that parsing and planning a text takes, about: what stands in quotes is only copied.
fn tree_bytes(text: &str) -> usize {
    let (mut quoted, mut is_quoted) = (0, false);
    for byte in text.bytes() {
        is_quoted ^= byte == b'\'';
        quoted += usize::from(is_quoted);
    }
    TREE_FACTOR * (text.len() - quoted) + QUOTED_FACTOR * quoted
}

/// Runs a job on one of the threads for what cannot give way.
fn beside(env: &dyn Env, name: &'static str, job: impl FnOnce() + Send + 'static) {
    let which = env.random() as usize % PARSE_REACTORS;
    let start = move || -> LocalBoxFuture<'static, ()> {
        job();
        Box::pin(std::future::ready(()))
    };
    env.spawn(Reactor::Parse(which), name, Box::new(start));
}

fn raw_statements(text: &str, strings: Strings) -> Result<Vec<protobuf::RawStmt>> {
    let c_text = CString::new(text).map_err(|_| zero_byte())?;
    let parsed = ffi::parse(&c_text, strings);
    let before = parsed.as_ref().err().map_or(0, |error| error.position);
    if let Some(error) = later::junk(text, &c_text, before) {
        return Err(error);
    }
    let bytes = parsed.map_err(error_of)?;
    let statements = protobuf::ParseResult::decode(bytes.as_slice())
        .map(|result| result.stmts)
        .map_err(|error| Error::internal(format!("a parse tree: {error}")))?;
    match later::unnamed(text, &c_text, &statements) {
        Some(error) => Err(error),
        None => Ok(statements),
    }
}

fn statements_of(
    (text, strings): (&str, Strings),
    statements: Vec<protobuf::RawStmt>,
    beside: Option<Arc<dyn Env>>,
    held: Reservation,
) -> Vec<Statement> {
    let text: Rc<str> = Rc::from(text);
    let tree = Rc::new(Tree {
        statements,
        beside,
        _held: held,
    });
    let mut statements = Vec::with_capacity(tree.statements.len());
    for (index, raw) in tree.statements.iter().enumerate() {
        if raw.stmt.as_ref().is_none_or(|node| node.node.is_none()) {
            continue;
        }
        let start = raw.stmt_location.max(0) as usize;
        let end = match raw.stmt_len {
            len if len > 0 => start + len as usize,
            _ => text.len(),
        };
        statements.push(Statement {
            text: text.clone(),
            strings,
            tree: tree.clone(),
            index,
            start,
            end,
            path: Vec::new(),
        });
    }
    statements
}

/// An expression as SQL text, to be kept in the catalog.
///
/// # Errors
/// XX000 when it cannot be written.
pub fn deparse_expression(node: &protobuf::Node) -> Result<String> {
    let text = large_stack(|| {
        let select = selection(node, None);
        let statement = protobuf::RawStmt {
            stmt: Some(Box::new(protobuf::Node {
                node: Some(NodeEnum::SelectStmt(Box::new(select))),
            })),
            ..Default::default()
        };
        let result = protobuf::ParseResult {
            stmts: vec![statement],
            ..Default::default()
        };
        pg_query::deparse(&result, Default::default())
    });
    let text = text.map_err(|error| Error::internal(format!("an expression: {error}")))?;
    text.strip_prefix("SELECT ")
        .map(str::to_owned)
        .ok_or_else(|| Error::internal("an expression that is no target"))
}

/// The query of an expression over a relation, or over nothing.
pub fn selection(node: &protobuf::Node, from: Option<protobuf::RangeVar>) -> protobuf::SelectStmt {
    let wrapped = |node| protobuf::Node { node: Some(node) };
    let target = protobuf::ResTarget {
        val: Some(Box::new(node.clone())),
        ..Default::default()
    };
    let from = from.map(|range| wrapped(NodeEnum::RangeVar(range)));
    protobuf::SelectStmt {
        target_list: vec![wrapped(NodeEnum::ResTarget(Box::new(target)))],
        from_clause: from.into_iter().collect(),
        limit_option: protobuf::LimitOption::Default as i32,
        op: protobuf::SetOperation::SetopNone as i32,
        ..Default::default()
    }
}

/// A query as SQL text, to be kept in the catalog.
///
/// # Errors
/// XX000 when it cannot be written.
pub fn deparse_query(select: &protobuf::SelectStmt) -> Result<String> {
    deparse_statement(&NodeEnum::SelectStmt(Box::new(select.clone())))
}

/// A statement as SQL text, to be kept in the catalog.
///
/// # Errors
/// XX000 when it cannot be written.
pub fn deparse_statement(node: &NodeEnum) -> Result<String> {
    let text = large_stack(|| {
        let statement = protobuf::RawStmt {
            stmt: Some(Box::new(protobuf::Node {
                node: Some(node.clone()),
            })),
            ..Default::default()
        };
        let result = protobuf::ParseResult {
            stmts: vec![statement],
            ..Default::default()
        };
        pg_query::deparse(&result, Default::default())
    });
    text.map_err(|error| Error::internal(format!("a query: {error}")))
}

/// A token of PostgreSQL's scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, in bytes.
    pub end: usize,
}

/// What a token is, as far as PL/pgSQL cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name, quoted or not, that is no keyword of SQL.
    Identifier,
    /// A keyword of SQL; true when reserved.
    Keyword(bool),
    /// A string.
    String,
    /// A number.
    Number,
    /// `$1`.
    Param,
    /// `:=`.
    Assign,
    /// `..`.
    DotDot,
    /// One of `,()[].;:+-*/%^<>=`.
    Char(u8),
    /// Any other operator.
    Operator,
}

/// The tokens of a text, without comments.
///
/// # Errors
/// 42601 for what the scanner refuses.
pub fn tokens(text: &str) -> Result<Vec<Token>> {
    use protobuf::Token as T;
    let c_text = CString::new(text).map_err(|_| zero_byte())?;
    let raw = large_stack(|| ffi::scan(&c_text)).map_err(error_of)?;
    let is = |code: i32, token: T| code == token as i32;
    let kind = |token: &ffi::RawToken| {
        let code = token.code;
        match code {
            _ if is(code, T::SqlComment) || is(code, T::CComment) => None,
            _ if token.keyword > 0 => Some(TokenKind::Keyword(token.keyword == 4)),
            1..=255 => Some(TokenKind::Char(code as u8)),
            _ if is(code, T::Ident) || is(code, T::Uident) => Some(TokenKind::Identifier),
            _ if is(code, T::Sconst) || is(code, T::Usconst) => Some(TokenKind::String),
            _ if is(code, T::Iconst) || is(code, T::Fconst) => Some(TokenKind::Number),
            _ if is(code, T::Param) => Some(TokenKind::Param),
            _ if is(code, T::ColonEquals) => Some(TokenKind::Assign),
            _ if is(code, T::DotDot) => Some(TokenKind::DotDot),
            _ => Some(TokenKind::Operator),
        }
    };
    Ok(raw
        .iter()
        .filter_map(|token| {
            let kind = kind(token)?;
            Some(Token {
                kind,
                start: token.start,
                end: token.end.min(text.len()),
            })
        })
        .collect())
}

/// The character position, from 1, of a byte offset in a text; none for a negative one.
pub fn char_position(text: &str, location: i32) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let offset = usize::try_from(location).ok()?.min(text.len());
    let before = text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte & 0xc0 != 0x80)
        .count();
    u32::try_from(before + 1).ok()
}

/// Runs deeply recursive `f`, which works on this text: of a long one on a stack of its own, where
/// it can give way.
///
/// # Errors
/// 53200 where there is no such stack.
pub fn deep<R>(text: &str, f: impl FnOnce() -> R) -> Result<R> {
    match text.len() > SHORT_TEXT_BYTES_MAX {
        true => coro::on_large_stack(f),
        false => Ok(large_stack(f)),
    }
}

/// Runs `f` on the thread's own stack; it must not wait.
pub fn large_stack<R>(f: impl FnOnce() -> R) -> R {
    /// Says of anything that it may move to another thread.
    struct Here<T>(T);
    // SAFETY: `on_thread_stack` changes the stack, never the thread, and is done with `f` and its
    // result when it returns.
    unsafe impl<T> Send for Here<T> {}
    impl<R, F: FnOnce() -> R> Here<F> {
        fn call(self) -> Here<R> {
            Here((self.0)())
        }
    }
    let here = Here(f);
    coro::on_thread_stack(move || here.call()).0
}

fn zero_byte() -> Error {
    Error::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"UTF8\": 0x00",
    )
}

fn error_of(error: ffi::SyntaxError) -> Error {
    let message = error.message;
    let out = if message.starts_with("CREATE OR REPLACE CONSTRAINT TRIGGER") {
        return Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    } else if message == "unsafe use of string constant with Unicode escapes" {
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(
            "String constants with Unicode escapes cannot be used when \
             standard_conforming_strings is off.",
        )
    } else if message == "stack depth limit exceeded" {
        return Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
            .with_hint("Write the statement with less nesting.");
    } else if message.contains("not supported") || message.contains("not implemented") {
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    } else if message.starts_with("out of mem") {
        Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    } else if message.starts_with("frame start") || message.starts_with("frame end") {
        Error::new(SqlState::WINDOWING_ERROR, message)
    } else if message.starts_with("role name") && message.ends_with("is reserved") {
        Error::new(SqlState::of("42939"), message)
    } else if message.starts_with("unrecognized row security option") {
        Error::new(SqlState::SYNTAX_ERROR, message)
            .with_hint("Only PERMISSIVE or RESTRICTIVE policies are supported currently.")
    } else {
        Error::new(SqlState::SYNTAX_ERROR, message)
    };
    match error.position {
        0 => out,
        position => out.at(position),
    }
}

#[cfg(test)]
mod tests;
