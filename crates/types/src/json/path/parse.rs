//! Reads a jsonpath: operator precedence, and what may stand where.
//!
//! A condition and a value are told apart only by what follows, so both are read as steps and
//! [`is_condition`] tells them apart afterwards.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::lex::{Lexer, Token};
use super::{Level, Method, Operator, Path, Step, Steps};
use crate::Numeric;

/// Parts may be nested this deep; deeper is 54001.
const DEPTH_MAX: usize = 200;

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    depth: usize,
    /// How many filters, and whether subscripts, surround the place.
    filters: usize,
    subscript: bool,
}

/// Reads a path; `None` if there is nothing.
pub(super) fn path(text: &str) -> Result<Option<Path>> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        depth: 0,
        filters: 0,
        subscript: false,
    };
    parser.advance()?;
    if parser.token == Token::End {
        return Ok(None);
    }
    let lax = match parser.keyword() {
        Some("strict") => false,
        Some("lax") => true,
        _ => {
            let steps = parser.whole()?;
            return Ok(Some(Path { lax: true, steps }));
        }
    };
    parser.advance()?;
    let steps = parser.whole()?;
    Ok(Some(Path { lax, steps }))
}

/// Whether steps are a condition rather than a value.
fn is_condition(steps: &Steps) -> bool {
    match steps.as_slice() {
        [Step::Binary(operator, ..)] => !operator.is_arithmetic(),
        [one] => matches!(
            one,
            Step::Not(_)
                | Step::IsUnknown(_)
                | Step::Exists(_)
                | Step::StartsWith(..)
                | Step::LikeRegex(..)
        ),
        _ => false,
    }
}

const KEYWORDS: &[&str] = &[
    "is",
    "to",
    "abs",
    "lax",
    "flag",
    "last",
    "null",
    "size",
    "true",
    "type",
    "with",
    "false",
    "floor",
    "double",
    "exists",
    "starts",
    "strict",
    "ceiling",
    "keyvalue",
    "datetime",
    "like_regex",
    "unknown",
];

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        coro::work(16)?;
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn syntax(&self) -> Error {
        self.lexer.error("syntax error")
    }

    /// The keyword at hand; those of values are lower case.
    fn keyword(&self) -> Option<&'static str> {
        let Token::Word(word) = &self.token else {
            return None;
        };
        let found = KEYWORDS
            .iter()
            .find(|keyword| keyword.eq_ignore_ascii_case(word))?;
        let exact = matches!(*found, "null" | "true" | "false");
        (!exact || word == found).then_some(*found)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(&self.token, Token::Sign(found) if *found == sign)
    }

    fn eat(&mut self, sign: &str) -> Result<bool> {
        let is = self.is(sign);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        match self.eat(sign)? {
            true => Ok(()),
            false => Err(self.syntax()),
        }
    }

    fn eat_keyword(&mut self, keyword: &str) -> Result<bool> {
        let is = self.keyword() == Some(keyword);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        match self.eat_keyword(keyword)? {
            true => Ok(()),
            false => Err(self.syntax()),
        }
    }

    fn whole(&mut self) -> Result<Steps> {
        let steps = self.condition_or_value()?;
        match self.token {
            Token::End => Ok(steps),
            _ => Err(self.syntax()),
        }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            let message = "stack depth limit exceeded";
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, message)
                .with_hint(format!("A jsonpath is nested {DEPTH_MAX} deep at most.")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn condition(&mut self) -> Result<Steps> {
        let steps = self.condition_or_value()?;
        match is_condition(&steps) {
            true => Ok(steps),
            false => Err(self.syntax()),
        }
    }

    fn value(&mut self) -> Result<Steps> {
        let steps = self.sum()?;
        match is_condition(&steps) {
            true => Err(self.syntax()),
            false => Ok(steps),
        }
    }

    fn condition_or_value(&mut self) -> Result<Steps> {
        self.nested(|parser| parser.logical(Operator::Or))
    }

    fn logical(&mut self, operator: Operator) -> Result<Steps> {
        let operand = |parser: &mut Self| match operator {
            Operator::Or => parser.logical(Operator::And),
            _ => parser.comparison(),
        };
        let mut left = operand(self)?;
        while self.is(operator.sign()) {
            if !is_condition(&left) {
                return Err(self.syntax());
            }
            self.advance()?;
            let right = operand(self)?;
            if !is_condition(&right) {
                return Err(self.syntax());
            }
            left = vec![Step::Binary(operator, left, right)];
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Steps> {
        let left = self.sum()?;
        let operator = match &self.token {
            Token::Sign("==") => Operator::Equal,
            Token::Sign("!=") => Operator::NotEqual,
            Token::Sign("<") => Operator::Less,
            Token::Sign("<=") => Operator::LessOrEqual,
            Token::Sign(">") => Operator::Greater,
            Token::Sign(">=") => Operator::GreaterOrEqual,
            _ => return self.predicate(left),
        };
        if is_condition(&left) {
            return Err(self.syntax());
        }
        self.advance()?;
        let right = self.value()?;
        Ok(vec![Step::Binary(operator, left, right)])
    }

    fn predicate(&mut self, left: Steps) -> Result<Steps> {
        let what = self.keyword();
        if !matches!(what, Some("starts" | "like_regex")) {
            return Ok(left);
        }
        if is_condition(&left) {
            return Err(self.syntax());
        }
        self.advance()?;
        if what == Some("starts") {
            self.expect_keyword("with")?;
            let right = match std::mem::replace(&mut self.token, Token::End) {
                Token::String(text) => Step::String(text),
                Token::Variable(name) => Step::Variable(name),
                other => {
                    self.token = other;
                    return Err(self.syntax());
                }
            };
            self.advance()?;
            return Ok(vec![Step::StartsWith(left, vec![right])]);
        }
        let pattern = self.string()?;
        let flags = match self.eat_keyword("flag")? {
            true => flags(&self.string()?)?,
            false => String::new(),
        };
        Ok(vec![Step::LikeRegex(left, pattern, flags)])
    }

    fn string(&mut self) -> Result<String> {
        let Token::String(text) = &self.token else {
            return Err(self.syntax());
        };
        let text = text.clone();
        self.advance()?;
        Ok(text)
    }

    fn sum(&mut self) -> Result<Steps> {
        let mut left = self.product()?;
        loop {
            let operator = match &self.token {
                Token::Sign("+") => Operator::Add,
                Token::Sign("-") => Operator::Sub,
                _ => return Ok(left),
            };
            left = self.arithmetic(operator, left, Self::product)?;
        }
    }

    fn product(&mut self) -> Result<Steps> {
        let mut left = self.signed()?;
        loop {
            let operator = match &self.token {
                Token::Sign("*") => Operator::Mul,
                Token::Sign("/") => Operator::Div,
                Token::Sign("%") => Operator::Mod,
                _ => return Ok(left),
            };
            left = self.arithmetic(operator, left, Self::signed)?;
        }
    }

    fn arithmetic(
        &mut self,
        operator: Operator,
        left: Steps,
        operand: fn(&mut Self) -> Result<Steps>,
    ) -> Result<Steps> {
        if is_condition(&left) {
            return Err(self.syntax());
        }
        self.advance()?;
        let right = operand(self)?;
        match is_condition(&right) {
            true => Err(self.syntax()),
            false => Ok(vec![Step::Binary(operator, left, right)]),
        }
    }

    fn signed(&mut self) -> Result<Steps> {
        let minus = self.is("-");
        if !minus && !self.is("+") {
            return self.primary();
        }
        self.advance()?;
        let inner = self.nested(Self::signed)?;
        if is_condition(&inner) {
            return Err(self.syntax());
        }
        Ok(match inner.as_slice() {
            [Step::Number(number)] if minus => vec![Step::Number(number.neg())],
            [Step::Number(_)] => inner,
            _ if minus => vec![Step::Minus(inner)],
            _ => vec![Step::Plus(inner)],
        })
    }

    fn primary(&mut self) -> Result<Steps> {
        if self.eat("!")? {
            let inner = match self.keyword() {
                Some("exists") => self.exists()?,
                _ => self.bracketed_condition()?,
            };
            return Ok(vec![Step::Not(inner)]);
        }
        if self.keyword() == Some("exists") {
            return self.exists();
        }
        let mut steps = if self.eat("(")? {
            let inner = self.condition_or_value()?;
            self.expect(")")?;
            if is_condition(&inner) && self.eat_keyword("is")? {
                self.expect_keyword("unknown")?;
                return Ok(vec![Step::IsUnknown(inner)]);
            }
            inner
        } else {
            vec![self.atom()?]
        };
        while let Some(step) = self.accessor()? {
            steps.push(step);
        }
        Ok(steps)
    }

    fn exists(&mut self) -> Result<Steps> {
        self.advance()?;
        self.expect("(")?;
        let inner = self.nested(Self::value)?;
        self.expect(")")?;
        Ok(vec![Step::Exists(inner)])
    }

    fn bracketed_condition(&mut self) -> Result<Steps> {
        self.expect("(")?;
        let inner = self.condition()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn atom(&mut self) -> Result<Step> {
        let step = match &self.token {
            Token::String(text) => Step::String(text.clone()),
            Token::Integer(text) | Token::Number(text) => Step::Number(Numeric::parse(text)?),
            Token::Variable(name) => Step::Variable(name.clone()),
            Token::Sign("$") => Step::Root,
            Token::Sign("@") if self.filters == 0 => {
                let message = "@ is not allowed in root expressions";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            Token::Sign("@") => Step::Current,
            Token::Word(_) => match self.keyword() {
                Some("null") => Step::Null,
                Some("true") => Step::Bool(true),
                Some("false") => Step::Bool(false),
                Some("last") if self.subscript => Step::Last,
                Some("last") => {
                    let message = "LAST is allowed only in array subscripts";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
                _ => return Err(self.syntax()),
            },
            _ => return Err(self.syntax()),
        };
        self.advance()?;
        Ok(step)
    }

    fn accessor(&mut self) -> Result<Option<Step>> {
        if self.eat("[")? {
            return self.elements().map(Some);
        }
        if self.eat("?")? {
            self.expect("(")?;
            self.filters += 1;
            let condition = self.condition()?;
            self.filters -= 1;
            self.expect(")")?;
            return Ok(Some(Step::Filter(condition)));
        }
        if !self.eat(".")? {
            return Ok(None);
        }
        if self.eat("*")? {
            return Ok(Some(Step::AnyKey));
        }
        if self.eat("**")? {
            return self.levels().map(Some);
        }
        let name = match &self.token {
            Token::String(key) => {
                let key = key.clone();
                self.advance()?;
                return Ok(Some(Step::Key(key)));
            }
            Token::Word(word) => word.clone(),
            _ => return Err(self.syntax()),
        };
        let keyword = self.keyword();
        self.advance()?;
        let (Some(keyword), true) = (keyword, self.is("(")) else {
            return Ok(Some(Step::Key(name)));
        };
        if keyword == "datetime" {
            self.advance()?;
            let template = match self.token {
                Token::String(_) => Some(self.string()?),
                _ => None,
            };
            self.expect(")")?;
            return Ok(Some(Step::Datetime(template)));
        }
        let method = Method::named(keyword).ok_or_else(|| self.syntax())?;
        self.advance()?;
        self.expect(")")?;
        Ok(Some(Step::Method(method)))
    }

    fn elements(&mut self) -> Result<Step> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        let outer = std::mem::replace(&mut self.subscript, true);
        let mut elements = Vec::new();
        loop {
            let from = self.nested(Self::value)?;
            let to = match self.eat_keyword("to")? {
                true => Some(self.nested(Self::value)?),
                false => None,
            };
            elements.push((from, to));
            if !self.eat(",")? {
                break;
            }
        }
        self.subscript = outer;
        self.expect("]")?;
        Ok(Step::Elements(elements))
    }

    fn level(&mut self) -> Result<Level> {
        if self.eat_keyword("last")? {
            return Ok(None);
        }
        let Token::Integer(text) = &self.token else {
            return Err(self.syntax());
        };
        let level = text.parse().unwrap_or(u32::MAX);
        self.advance()?;
        Ok(Some(level))
    }

    fn levels(&mut self) -> Result<Step> {
        if !self.eat("{")? {
            return Ok(Step::Any(Some(0), None));
        }
        let first = self.level()?;
        let last = match self.eat_keyword("to")? {
            true => self.level()?,
            false => first,
        };
        self.expect("}")?;
        Ok(Step::Any(first, last))
    }
}

/// The flags of a pattern, each once, in the order in which they are printed.
fn flags(given: &str) -> Result<String> {
    for flag in given.chars() {
        if !"ismxq".contains(flag) {
            let message = "invalid input syntax for type jsonpath";
            return Err(
                Error::new(SqlState::SYNTAX_ERROR, message).with_detail(format!(
                    "Unrecognized flag character \"{flag}\" in LIKE_REGEX predicate."
                )),
            );
        }
    }
    if given.contains('x') && !given.contains('q') {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "XQuery \"x\" flag (expanded regular expressions) is not implemented",
        ));
    }
    Ok("ismxq"
        .chars()
        .filter(|flag| given.contains(*flag))
        .collect())
}
