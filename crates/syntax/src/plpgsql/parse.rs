//! The grammar of PL/pgSQL, over SQL's scanner.
//!
//! ```text
//! block     := [<<label>>] [DECLARE declaration…] BEGIN statement… [EXCEPTION handler…] END [label]
//! statement := block | IF … | CASE … | LOOP … | WHILE … | FOR … | EXIT | CONTINUE | RETURN | RAISE
//!            | ASSERT | PERFORM | EXECUTE | GET … DIAGNOSTICS | OPEN | FETCH | MOVE | CLOSE | NULL
//!            | COMMIT | ROLLBACK | target := value | a SQL statement
//! ```
//! A fragment of SQL ends at a keyword or sign of the language outside of any brackets; SQL's own
//! CASE … END is bracketed too.
//!
//! Cursors have a grammar of their own ([`cursors`](super::cursors)).
//!
//! Errors have the character position in the block's text, from 1.
//!
//! Source: PostgreSQL 15 manual, chapter 43.

use std::cell::Cell;

use base::{coro, Error, Result, SqlState};

use super::ast::{
    Block, Condition, Declaration, Fragment, Handler, Into, Level, Loop, LoopHead, Message, Raise,
    Statement, StatementKind,
};
use crate::parser::{char_position, tokens, Token, TokenKind};

/// Parses the text of a block.
///
/// # Errors
/// 42601 with a position in the text, 0A000, 54001.
pub fn parse(text: &str) -> Result<Block> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        next: 0,
        counted: Cell::new((0, 1)),
    };
    let (conflict, print_strict_params) = parser.options()?;
    let label = parser.label()?;
    let mut block = parser.block(label)?;
    block.variable_conflict = conflict;
    block.print_strict_params = print_strict_params;
    parser.skip_char(b';');
    match parser.peek() {
        None => Ok(block),
        Some(_) => Err(parser.unexpected()),
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token>,
    pub(super) next: usize,
    /// How much of the text was looked at for ends of lines, and the number of the line there.
    counted: Cell<(usize, usize)>,
}

/// What parsing one statement costs, in units of [`coro::work`].
const STATEMENT_WORK: usize = 2_000;

/// Where a fragment ends, besides at the end of the text.
#[derive(Clone, Copy)]
pub(super) struct Until<'k> {
    keywords: &'k [&'k str],
    chars: &'k [u8],
    dot_dot: bool,
    assign: bool,
}

pub(super) const SEMICOLON: Until<'static> = Until {
    keywords: &[],
    chars: b";",
    dot_dot: false,
    assign: false,
};

pub(super) fn until<'k>(keywords: &'k [&'k str], chars: &'k [u8]) -> Until<'k> {
    Until {
        keywords,
        chars,
        ..SEMICOLON
    }
}

impl<'a> Parser<'a> {
    // ---- Tokens ----

    pub(super) fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    pub(super) fn is_keyword_at(&self, index: usize, keyword: &str) -> bool {
        self.tokens.get(index).is_some_and(|token| {
            matches!(token.kind, TokenKind::Identifier | TokenKind::Keyword(_))
                && self.text_of(*token).eq_ignore_ascii_case(keyword)
        })
    }

    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.is_keyword_at(self.next, keyword)
    }

    pub(super) fn skip_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        match self.skip_keyword(keyword) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn is_char_at(&self, index: usize, char: u8) -> bool {
        let token = self.tokens.get(index);
        token.is_some_and(|token| token.kind == TokenKind::Char(char))
    }

    pub(super) fn skip_char(&mut self, char: u8) -> bool {
        let found = self.is_char_at(self.next, char);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect_char(&mut self, char: u8) -> Result<()> {
        match self.skip_char(char) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn is_operator_at(&self, index: usize, operator: &str) -> bool {
        self.tokens
            .get(index)
            .is_some_and(|token| self.text_of(*token) == operator)
    }

    /// 42601 at the next token.
    pub(super) fn unexpected(&self) -> Error {
        let Some(token) = self.peek() else {
            let end = i32::try_from(self.text.len()).unwrap_or(-1);
            return self.error_at("syntax error at end of input".to_owned(), end);
        };
        let message = format!("syntax error at or near \"{}\"", self.text_of(token));
        self.error_at(message, i32::try_from(token.start).unwrap_or(-1))
    }

    pub(super) fn error_at(&self, message: String, offset: i32) -> Error {
        let error = Error::new(SqlState::SYNTAX_ERROR, message);
        match char_position(self.text, offset) {
            Some(position) => error.at(position),
            None => error,
        }
    }

    fn line(&self) -> usize {
        let offset = self.peek().map_or(self.text.len(), |token| token.start);
        let (from, line) = match self.counted.get() {
            counted if counted.0 <= offset => counted,
            _ => (0, 1),
        };
        let line = line + self.text[from..offset].matches('\n').count();
        self.counted.set((offset, line));
        line
    }

    /// A name: folded to lower case, or as it stands between double quotes.
    pub(super) fn name(&mut self) -> Result<String> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        let text = self.text_of(token);
        match token.kind {
            TokenKind::Identifier | TokenKind::Keyword(false) => {
                self.next += 1;
                Ok(fold(text))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The name of an option of RAISE, which may be a reserved word of SQL.
    fn option_name(&mut self) -> Result<String> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        match token.kind {
            TokenKind::Identifier | TokenKind::Keyword(_) => {
                self.next += 1;
                Ok(self.text_of(token).to_ascii_uppercase())
            }
            _ => Err(self.unexpected()),
        }
    }

    // ---- Fragments ----

    /// The tokens up to an end outside of brackets; the end itself stays.
    fn fragment_or_empty(&mut self, end: Until<'_>) -> Option<Fragment> {
        let first = self.next;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            if depth == 0 && self.is_end(token, end) {
                break;
            }
            match token.kind {
                TokenKind::Char(b'(' | b'[') => depth += 1,
                TokenKind::Char(b')' | b']') => depth = depth.saturating_sub(1),
                TokenKind::Keyword(_) if self.is_keyword("case") => depth += 1,
                TokenKind::Keyword(_) if self.is_keyword("end") => {
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Char(b';') => break,
                _ => {}
            }
            self.next += 1;
        }
        self.between(first, self.next)
    }

    fn is_end(&self, token: Token, end: Until<'_>) -> bool {
        match token.kind {
            TokenKind::Char(char) => end.chars.contains(&char) || (end.assign && char == b'='),
            TokenKind::DotDot => end.dot_dot,
            TokenKind::Assign => end.assign,
            TokenKind::Identifier | TokenKind::Keyword(_) => {
                end.keywords.iter().any(|keyword| self.is_keyword(keyword))
            }
            _ => false,
        }
    }

    pub(super) fn fragment(&mut self, end: Until<'_>) -> Result<Fragment> {
        self.fragment_or_empty(end).ok_or_else(|| self.unexpected())
    }

    /// A fragment and the semicolon after it.
    pub(super) fn fragment_and_semicolon(&mut self) -> Result<Fragment> {
        let fragment = self.fragment(SEMICOLON)?;
        self.expect_char(b';')?;
        Ok(fragment)
    }

    pub(super) fn between(&self, first: usize, last: usize) -> Option<Fragment> {
        if first >= last {
            return None;
        }
        let (start, end) = (self.tokens[first].start, self.tokens[last - 1].end);
        Some(Fragment {
            text: self.text[start..end].to_owned(),
            start,
        })
    }

    pub(super) fn fragments(&mut self, end: Until<'_>) -> Result<Vec<Fragment>> {
        let chars = [end.chars, b","].concat();
        let item = Until {
            chars: &chars,
            ..end
        };
        let mut fragments = vec![self.fragment(item)?];
        while self.skip_char(b',') {
            fragments.push(self.fragment(item)?);
        }
        Ok(fragments)
    }

    // ---- Blocks ----

    /// The options before a block: `#variable_conflict use_column`.
    fn options(&mut self) -> Result<(Option<String>, Option<bool>)> {
        let (mut conflict, mut print_strict_params) = (None, None);
        while self.is_operator_at(self.next, "#") {
            self.next += 1;
            let name = self.name()?;
            match name.as_str() {
                "variable_conflict" => conflict = Some(self.name()?),
                "print_strict_params" => {
                    let is_on = self.skip_keyword("on");
                    if !is_on {
                        self.expect_keyword("off")?;
                    }
                    print_strict_params = Some(is_on);
                }
                _ => return Err(self.unexpected()),
            }
        }
        Ok((conflict, print_strict_params))
    }

    fn label(&mut self) -> Result<Option<String>> {
        if !self.is_operator_at(self.next, "<<") {
            return Ok(None);
        }
        self.next += 1;
        let name = self.name()?;
        match self.is_operator_at(self.next, ">>") {
            true => self.next += 1,
            false => return Err(self.unexpected()),
        }
        Ok(Some(name))
    }

    fn block(&mut self, label: Option<String>) -> Result<Block> {
        coro::check_depth()?;
        let mut block = Block {
            label,
            ..Block::default()
        };
        while self.skip_keyword("declare") {
            while !self.is_keyword("begin") && !self.is_keyword("declare") {
                let declaration = self.declaration()?;
                block.declarations.push(declaration);
            }
        }
        self.expect_keyword("begin")?;
        block.body = self.statements(&["exception", "end"])?;
        if self.skip_keyword("exception") {
            while self.skip_keyword("when") {
                let handler = self.handler()?;
                block.handlers.push(handler);
            }
        }
        self.expect_keyword("end")?;
        self.end_label(block.label.as_deref())?;
        Ok(block)
    }

    /// The label that may be repeated at an end.
    fn end_label(&mut self, label: Option<&str>) -> Result<()> {
        if self.peek().is_none() || self.is_char_at(self.next, b';') {
            return Ok(());
        }
        let place = self.peek().map_or(0, |token| token.start);
        let place = i32::try_from(place).unwrap_or(-1);
        let name = self.name()?;
        let message = match label {
            Some(label) if label == name => return Ok(()),
            Some(label) => {
                format!("end label \"{name}\" differs from block's label \"{label}\"")
            }
            None => format!("end label \"{name}\" specified for unlabeled block"),
        };
        Err(self.error_at(message, place))
    }

    fn declaration(&mut self) -> Result<Declaration> {
        let (line, start) = (self.line(), self.place());
        let name = self.name()?;
        if self.is_keyword("alias") {
            self.next += 1;
            self.expect_keyword("for")?;
            let token = self.peek().ok_or_else(|| self.unexpected())?;
            self.next += 1;
            let alias = Some(fold(self.text_of(token)));
            self.expect_char(b';')?;
            return Ok(Declaration {
                line,
                name,
                start,
                alias,
                ..Declaration::default()
            });
        }
        if self.is_keyword("cursor") || self.is_keyword("no") || self.is_keyword("scroll") {
            let cursor = Some(self.cursor_declaration()?);
            return Ok(Declaration {
                line,
                name,
                start,
                cursor,
                ..Declaration::default()
            });
        }
        let constant = self.skip_keyword("constant");
        let type_name = self.fragment(Until {
            keywords: &["not", "default", "collate"],
            assign: true,
            ..SEMICOLON
        })?;
        let mut collation = Vec::new();
        if self.skip_keyword("collate") {
            collation.push(self.name()?);
            while self.skip_char(b'.') {
                collation.push(self.name()?);
            }
        }
        let not_null = self.skip_keyword("not");
        if not_null {
            self.expect_keyword("null")?;
        }
        let default = match self.skip_assign() || self.skip_keyword("default") {
            true => Some(self.fragment(SEMICOLON)?),
            false => None,
        };
        self.expect_char(b';')?;
        Ok(Declaration {
            line,
            name,
            start,
            constant,
            type_name,
            collation,
            not_null,
            default,
            ..Declaration::default()
        })
    }

    /// A number without a sign.
    fn integer(&mut self) -> Result<i64> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        let value = self.text_of(token).parse();
        let value = value.map_err(|_| self.unexpected())?;
        self.next += 1;
        Ok(value)
    }

    fn skip_assign(&mut self) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| matches!(token.kind, TokenKind::Assign | TokenKind::Char(b'=')));
        self.next += usize::from(found);
        found
    }

    fn handler(&mut self) -> Result<Handler> {
        let mut conditions = vec![self.condition()?];
        while self.skip_keyword("or") {
            conditions.push(self.condition()?);
        }
        self.expect_keyword("then")?;
        let body = self.statements(&["when", "end"])?;
        Ok(Handler { conditions, body })
    }

    fn condition(&mut self) -> Result<Condition> {
        if self.skip_keyword("sqlstate") {
            return Ok(Condition::State(self.string()?));
        }
        let name = self.name()?;
        Ok(match name.as_str() {
            "others" => Condition::Others,
            _ => Condition::Named(name),
        })
    }

    /// A string literal's value.
    fn string(&mut self) -> Result<String> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        if token.kind != TokenKind::String {
            return Err(self.unexpected());
        }
        self.next += 1;
        Ok(unquote(self.text_of(token)))
    }

    // ---- Statements ----

    fn statements(&mut self, ends: &[&str]) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        while !ends.iter().any(|end| self.is_keyword(end)) {
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Statement> {
        coro::check_depth()?;
        coro::work(STATEMENT_WORK)?;
        let line = self.line();
        let label = self.label()?;
        let kind = match label {
            Some(_) => self.labelled(label)?,
            None => self.unlabelled()?,
        };
        Ok(Statement { line, kind })
    }

    /// What may have a label: blocks and loops.
    fn labelled(&mut self, label: Option<String>) -> Result<StatementKind> {
        if self.is_keyword("declare") || self.is_keyword("begin") {
            let block = self.block(label)?;
            self.expect_char(b';')?;
            return Ok(StatementKind::Block(block));
        }
        let head = if self.skip_keyword("loop") {
            LoopHead::Forever
        } else if self.skip_keyword("while") {
            let condition = self.fragment(until(&["loop"], b";"))?;
            self.expect_keyword("loop")?;
            LoopHead::While(condition)
        } else if self.skip_keyword("for") {
            self.for_head()?
        } else if self.skip_keyword("foreach") {
            self.foreach_head()?
        } else {
            return Err(self.unexpected());
        };
        let body = self.statements(&["end"])?;
        self.expect_keyword("end")?;
        self.expect_keyword("loop")?;
        self.end_label(label.as_deref())?;
        self.expect_char(b';')?;
        Ok(StatementKind::Loop(Loop { label, head, body }))
    }

    fn foreach_head(&mut self) -> Result<LoopHead> {
        let mut targets = vec![self.fragment(until(&["in", "slice"], b",;"))?];
        while self.skip_char(b',') {
            targets.push(self.fragment(until(&["in", "slice"], b",;"))?);
        }
        let slice = match self.skip_keyword("slice") {
            true => self.integer()?,
            false => 0,
        };
        self.expect_keyword("in")?;
        self.expect_keyword("array")?;
        let array = self.fragment(until(&["loop"], b";"))?;
        self.expect_keyword("loop")?;
        Ok(LoopHead::Elements {
            targets,
            slice,
            array,
        })
    }

    fn for_head(&mut self) -> Result<LoopHead> {
        let targets = self.fragments(until(&["in"], b";"))?;
        self.expect_keyword("in")?;
        if self.skip_keyword("execute") {
            let query = self.fragment(until(&["using", "loop"], b";"))?;
            let using = match self.skip_keyword("using") {
                true => self.fragments(until(&["loop"], b";"))?,
                false => Vec::new(),
            };
            self.expect_keyword("loop")?;
            return Ok(LoopHead::Execute {
                targets,
                query,
                using,
            });
        }
        let cursor = self.loop_cursor();
        let reverse = self.skip_keyword("reverse");
        let first = self.fragment(Until {
            dot_dot: true,
            ..until(&["loop"], b";")
        })?;
        if self
            .peek()
            .is_none_or(|token| token.kind != TokenKind::DotDot)
        {
            self.expect_keyword("loop")?;
            return Ok(LoopHead::Query {
                targets,
                query: first,
                cursor,
            });
        }
        self.next += 1;
        let last = self.fragment(until(&["by", "loop"], b";"))?;
        let step = match self.skip_keyword("by") {
            true => Some(self.fragment(until(&["loop"], b";"))?),
            false => None,
        };
        self.expect_keyword("loop")?;
        let [variable] = targets.as_slice() else {
            let message = "integer FOR loop must have only one target variable".to_owned();
            let place = i32::try_from(targets[0].start).unwrap_or(-1);
            return Err(self.error_at(message, place));
        };
        Ok(LoopHead::Integers {
            variable: fold(&variable.text),
            reverse,
            first,
            last,
            step,
        })
    }

    fn unlabelled(&mut self) -> Result<StatementKind> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        if self.starts_assignment() {
            return self.assignment();
        }
        let word = self.text_of(token).to_ascii_lowercase();
        match word.as_str() {
            "begin" | "declare" | "loop" | "while" | "for" | "foreach" => self.labelled(None),
            "if" => self.if_statement(),
            "case" => self.case_statement(),
            "exit" | "continue" => self.leave(),
            "return" => self.return_statement(),
            "raise" => self.raise(),
            "assert" => self.assert(),
            "perform" => self.perform(),
            "execute" => self.execute(),
            "get" => self.get_diagnostics(),
            "null" => {
                self.next += 1;
                self.expect_char(b';')?;
                Ok(StatementKind::Null)
            }
            "commit" | "rollback" => self.end_transaction(),
            "open" => self.open(),
            "fetch" => self.fetch(),
            "move" => self.move_cursor(),
            "close" => self.close(),
            _ if matches!(token.kind, TokenKind::Identifier | TokenKind::Keyword(_))
                || token.kind == TokenKind::Char(b'(') =>
            {
                self.sql()
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name, perhaps with fields or subscripts, and then `:=` or `=`.
    fn starts_assignment(&self) -> bool {
        let mut index = self.next;
        let is_name = |index: usize| {
            self.tokens.get(index).is_some_and(|token| {
                matches!(
                    token.kind,
                    TokenKind::Identifier | TokenKind::Keyword(false)
                )
            })
        };
        let token = self.tokens.get(index);
        let is_argument = token.is_some_and(|token| token.kind == TokenKind::Param);
        if !is_argument && !is_name(index) {
            return false;
        }
        index += 1;
        loop {
            if self.is_char_at(index, b'.') && is_name(index + 1) {
                index += 2;
            } else if self.is_char_at(index, b'[') {
                let close = (index..self.tokens.len()).find(|at| self.is_char_at(*at, b']'));
                index = close.map_or(self.tokens.len(), |close| close + 1);
            } else {
                break;
            }
        }
        self.tokens
            .get(index)
            .is_some_and(|token| matches!(token.kind, TokenKind::Assign | TokenKind::Char(b'=')))
    }

    fn assignment(&mut self) -> Result<StatementKind> {
        let target = self.fragment(Until {
            assign: true,
            ..SEMICOLON
        })?;
        self.skip_assign();
        let value = self.fragment_and_semicolon()?;
        Ok(StatementKind::Assign { target, value })
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        const ENDS: [&str; 4] = ["elsif", "elseif", "else", "end"];
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        self.expect_keyword("if")?;
        loop {
            let condition = self.fragment(until(&["then"], b";"))?;
            self.expect_keyword("then")?;
            branches.push((condition, self.statements(&ENDS)?));
            if !self.skip_keyword("elsif") && !self.skip_keyword("elseif") {
                break;
            }
        }
        if self.skip_keyword("else") {
            otherwise = self.statements(&["end"])?;
        }
        self.expect_keyword("end")?;
        self.expect_keyword("if")?;
        self.expect_char(b';')?;
        Ok(StatementKind::If {
            branches,
            otherwise,
        })
    }

    fn case_statement(&mut self) -> Result<StatementKind> {
        self.expect_keyword("case")?;
        let operand = self.fragment_or_empty(until(&["when"], b";"));
        let mut branches = Vec::new();
        while self.skip_keyword("when") {
            let condition = self.fragment(until(&["then"], b";"))?;
            self.expect_keyword("then")?;
            branches.push((condition, self.statements(&["when", "else", "end"])?));
        }
        let otherwise = match self.skip_keyword("else") {
            true => Some(self.statements(&["end"])?),
            false => None,
        };
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        self.expect_keyword("end")?;
        self.expect_keyword("case")?;
        self.expect_char(b';')?;
        Ok(StatementKind::Case {
            operand,
            branches,
            otherwise,
        })
    }

    fn leave(&mut self) -> Result<StatementKind> {
        let next = self.is_keyword("continue");
        self.next += 1;
        let label = match self.is_keyword("when") || self.is_char_at(self.next, b';') {
            true => None,
            false => Some(self.name()?),
        };
        let when = match self.skip_keyword("when") {
            true => Some(self.fragment(SEMICOLON)?),
            false => None,
        };
        self.expect_char(b';')?;
        Ok(StatementKind::Leave { next, label, when })
    }

    fn return_statement(&mut self) -> Result<StatementKind> {
        self.expect_keyword("return")?;
        if self.skip_keyword("next") {
            let value = self.fragment_or_empty(SEMICOLON);
            self.expect_char(b';')?;
            return Ok(StatementKind::ReturnNext(value));
        }
        if self.skip_keyword("query") {
            if !self.skip_keyword("execute") {
                let query = self.fragment_and_semicolon()?;
                return Ok(StatementKind::ReturnQuery(query));
            }
            let query = self.fragment(until(&["using"], b";"))?;
            let using = match self.skip_keyword("using") {
                true => self.fragments(SEMICOLON)?,
                false => Vec::new(),
            };
            self.expect_char(b';')?;
            return Ok(StatementKind::ReturnExecute { query, using });
        }
        let value = self.fragment_or_empty(SEMICOLON);
        self.expect_char(b';')?;
        Ok(StatementKind::Return(value))
    }

    fn assert(&mut self) -> Result<StatementKind> {
        self.expect_keyword("assert")?;
        let condition = self.fragment(until(&[], b";,"))?;
        let message = match self.skip_char(b',') {
            true => Some(self.fragment(SEMICOLON)?),
            false => None,
        };
        self.expect_char(b';')?;
        Ok(StatementKind::Assert { condition, message })
    }

    fn perform(&mut self) -> Result<StatementKind> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        self.expect_keyword("perform")?;
        let rest = self.fragment_and_semicolon()?;
        let gap = rest.start - token.end;
        // As long as PERFORM, so that places stay true.
        let text = format!("SELECT {}{}", " ".repeat(gap), rest.text);
        Ok(StatementKind::Perform(Fragment {
            text,
            start: token.start,
        }))
    }

    fn execute(&mut self) -> Result<StatementKind> {
        self.expect_keyword("execute")?;
        let query = self.fragment(until(&["into", "using"], b";"))?;
        let mut into = None;
        let mut using = Vec::new();
        loop {
            if into.is_none() && self.is_keyword("into") {
                into = Some(self.take_into()?);
            } else if using.is_empty() && self.skip_keyword("using") {
                using = self.fragments(until(&["into"], b";"))?;
            } else {
                break;
            }
        }
        self.expect_char(b';')?;
        Ok(StatementKind::Execute { query, into, using })
    }

    /// `INTO [STRICT] targets`: names only, so that what follows them is found.
    pub(super) fn take_into(&mut self) -> Result<Into> {
        self.expect_keyword("into")?;
        let strict = self.skip_keyword("strict");
        let mut targets = vec![self.target()?];
        while self.skip_char(b',') {
            targets.push(self.target()?);
        }
        Ok(Into { strict, targets })
    }

    /// A variable, perhaps with fields.
    pub(super) fn target(&mut self) -> Result<Fragment> {
        let first = self.next;
        self.name()?;
        while self.is_char_at(self.next, b'.') {
            self.next += 1;
            self.name()?;
        }
        self.between(first, self.next)
            .ok_or_else(|| self.unexpected())
    }

    fn get_diagnostics(&mut self) -> Result<StatementKind> {
        self.expect_keyword("get")?;
        let stacked = self.skip_keyword("stacked");
        if !stacked {
            self.skip_keyword("current");
        }
        self.expect_keyword("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if !self.skip_assign() {
                return Err(self.unexpected());
            }
            items.push((target, self.name()?.to_ascii_uppercase()));
            if !self.skip_char(b',') {
                break;
            }
        }
        self.expect_char(b';')?;
        Ok(StatementKind::GetDiagnostics { stacked, items })
    }

    fn end_transaction(&mut self) -> Result<StatementKind> {
        let commit = self.is_keyword("commit");
        self.next += 1;
        let mut chain = false;
        if self.skip_keyword("and") {
            chain = !self.skip_keyword("no");
            self.expect_keyword("chain")?;
        }
        self.expect_char(b';')?;
        Ok(StatementKind::EndTransaction { commit, chain })
    }

    /// A SQL statement; its INTO clause, unless it is that of INSERT or MERGE, is cut out.
    fn sql(&mut self) -> Result<StatementKind> {
        let first = self.next;
        let mut into = None;
        let mut cut = None;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Char(b';') => break,
                TokenKind::Char(b'(' | b'[') => depth += 1,
                TokenKind::Char(b')' | b']') => depth = depth.saturating_sub(1),
                _ if depth == 0 && into.is_none() && self.is_variables_into(first) => {
                    let from = token.start;
                    into = Some(self.take_into()?);
                    cut = Some((from, self.tokens[self.next - 1].end));
                    continue;
                }
                _ => {}
            }
            self.next += 1;
        }
        let mut query = self
            .between(first, self.next)
            .ok_or_else(|| self.unexpected())?;
        if let Some((from, to)) = cut {
            let (from, to) = (from - query.start, to - query.start);
            let spaces = " ".repeat(to - from);
            query.text.replace_range(from..to, &spaces);
        }
        self.expect_char(b';')?;
        Ok(StatementKind::Sql { query, into })
    }

    fn is_variables_into(&self, first: usize) -> bool {
        let after_insert = self.next > first
            && (self.is_keyword_at(self.next - 1, "insert")
                || self.is_keyword_at(self.next - 1, "merge"));
        self.is_keyword("into") && !after_insert
    }

    // ---- RAISE ----

    fn raise(&mut self) -> Result<StatementKind> {
        self.expect_keyword("raise")?;
        const LEVELS: [(&str, Level); 6] = [
            ("debug", Level::Debug),
            ("log", Level::Log),
            ("info", Level::Info),
            ("notice", Level::Notice),
            ("warning", Level::Warning),
            ("exception", Level::Exception),
        ];
        let mut level = None;
        for (name, named) in LEVELS {
            if level.is_none() && self.skip_keyword(name) {
                level = Some(named);
            }
        }
        let message = self.raise_message(level.is_some())?;
        let mut options = Vec::new();
        if self.skip_keyword("using") {
            loop {
                let name = self.option_name()?;
                if !self.skip_assign() {
                    return Err(self.unexpected());
                }
                options.push((name, self.fragment(until(&[], b";,"))?));
                if !self.skip_char(b',') {
                    break;
                }
            }
        }
        self.expect_char(b';')?;
        Ok(StatementKind::Raise(Raise {
            level: level.unwrap_or(Level::Exception),
            message,
            options,
        }))
    }

    fn raise_message(&mut self, has_level: bool) -> Result<Message> {
        let Some(token) = self.peek() else {
            return Err(self.unexpected());
        };
        match token.kind {
            TokenKind::String => {
                let format = self.string()?;
                let mut arguments = Vec::new();
                while self.skip_char(b',') {
                    arguments.push(self.fragment(until(&["using"], b";,"))?);
                }
                Ok(Message::Format { format, arguments })
            }
            TokenKind::Char(b';') if !has_level => Ok(Message::Again),
            TokenKind::Char(b';') => Err(self.unexpected()),
            _ if self.is_keyword("using") => Ok(Message::Format {
                format: String::new(),
                arguments: Vec::new(),
            }),
            _ => Ok(Message::Condition(self.condition()?)),
        }
    }
}

/// A name as the catalog would have it.
pub fn fold(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => text.to_ascii_lowercase(),
    }
}

/// The value of a string literal: `'…'`, `E'…'` with its simple escapes, `$tag$…$tag$`.
fn unquote(text: &str) -> String {
    if let Some(rest) = text.strip_prefix('$') {
        let tag = rest.find('$').map_or(0, |at| at + 2);
        return text
            .get(tag..text.len().saturating_sub(tag))
            .unwrap_or_default()
            .to_owned();
    }
    let escapes = text.starts_with(['e', 'E']);
    let inner = text
        .find('\'')
        .and_then(|at| text.get(at + 1..text.len() - 1))
        .unwrap_or_default()
        .replace("''", "'");
    if !escapes {
        return inner;
    }
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            })),
            other => out.push(other),
        }
    }
    out
}
