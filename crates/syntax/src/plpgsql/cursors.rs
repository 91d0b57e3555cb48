//! The grammar of PL/pgSQL's cursors.
//!
//! ```text
//! declaration := name [[NO] SCROLL] CURSOR ['(' name type, … ')'] {FOR | IS} query
//! open        := OPEN name ['(' argument, … ')']
//!              | OPEN name [[NO] SCROLL] FOR {query | EXECUTE text [USING value, …]}
//! fetch       := FETCH [[direction] {FROM | IN}] name INTO target, …
//! move        := MOVE [[direction] {FROM | IN}] name
//! close       := CLOSE name
//! argument    := [name {:= | =>}] value
//! ```
//! Which names are cursors is known where a block is compiled, not here: so after FETCH a name that INTO
//! or a semicolon follows is the cursor, and whatever else stands there says how far to go.
//!
//! Source: PostgreSQL 15 manual, section 43.7.

use base::{Error, Result, SqlState};
use pg_query::protobuf::FetchDirection;

use super::ast::{Argument, Count, CursorDeclaration, CursorUse, Opened, StatementKind};
use super::parse::{until, Parser, SEMICOLON};
use crate::parser::{char_position, Token, TokenKind};

/// All rows that there are.
const ALL: i64 = i64::MAX;

/// Where to and how far, and whether that may be several rows.
struct Way {
    direction: FetchDirection,
    count: Count,
    several: bool,
}

impl Way {
    fn row(direction: FetchDirection, count: i64) -> Way {
        Way {
            direction,
            count: Count::Of(count),
            several: false,
        }
    }
}

impl Parser<'_> {
    /// What follows the name of a cursor that is declared with its query.
    pub(super) fn cursor_declaration(&mut self) -> Result<CursorDeclaration> {
        let scroll = self.scroll()?;
        self.expect_keyword("cursor")?;
        let mut arguments = Vec::new();
        if self.skip_char(b'(') {
            loop {
                let start = self.place();
                let name = self.name()?;
                arguments.push((name, start, self.fragment(until(&[], b",)"))?));
                if !self.skip_char(b',') {
                    break;
                }
            }
            self.expect_char(b')')?;
        }
        if !self.skip_keyword("is") {
            self.expect_keyword("for")?;
        }
        Ok(CursorDeclaration {
            scroll,
            arguments,
            query: self.fragment_and_semicolon()?,
        })
    }

    fn scroll(&mut self) -> Result<Option<bool>> {
        if self.skip_keyword("no") {
            self.expect_keyword("scroll")?;
            return Ok(Some(false));
        }
        Ok(self.skip_keyword("scroll").then_some(true))
    }

    /// The arguments of a cursor in their brackets, if any are there.
    fn arguments(&mut self) -> Result<Option<Vec<Argument>>> {
        let mut arguments = Vec::new();
        if !self.skip_char(b'(') {
            return Ok(None);
        }
        if self.skip_char(b')') {
            return Ok(Some(arguments));
        }
        loop {
            let is_named = self.is_operator_at(self.next + 1, ":=")
                || self.is_operator_at(self.next + 1, "=>");
            let start = self.place();
            let name = match is_named {
                true => Some(self.name()?),
                false => None,
            };
            self.next += usize::from(is_named);
            let value = self.fragment(until(&[], b",)"))?;
            arguments.push(Argument {
                name,
                value,
                start,
                after: self.place(),
            });
            if !self.skip_char(b',') {
                break;
            }
        }
        self.expect_char(b')')?;
        Ok(Some(arguments))
    }

    /// Where the next token stands.
    pub(super) fn place(&self) -> usize {
        self.peek().map_or(0, |token| token.start)
    }

    /// A cursor and its arguments.
    fn cursor_use(&mut self) -> Result<CursorUse> {
        let name = self.target()?;
        let next = self.peek().map_or("", |token| self.text_of(token));
        let after = (self.place(), next.to_owned());
        Ok(CursorUse {
            name,
            after,
            arguments: self.arguments()?,
        })
    }

    /// What stands before LOOP, if it may be a cursor; it is not taken.
    pub(super) fn loop_cursor(&mut self) -> Option<CursorUse> {
        let start = self.next;
        let cursor = self.cursor_use().ok();
        let is_all = self.is_keyword("loop");
        self.next = start;
        cursor.filter(|_| is_all)
    }

    pub(super) fn open(&mut self) -> Result<StatementKind> {
        self.expect_keyword("open")?;
        let cursor = self.cursor_use()?;
        if cursor.arguments.is_some() || self.is_char_at(self.next, b';') {
            self.expect_char(b';')?;
            let what = Opened::Bound;
            return Ok(StatementKind::Open { cursor, what });
        }
        let scroll = self.scroll()?;
        if !self.skip_keyword("for") {
            let found = self.peek().map_or("", |token| self.text_of(token));
            let message = format!("syntax error, expected \"FOR\" at or near \"{found}\"");
            return Err(self.error_at(message, self.peek().map_or(-1, offset)));
        }
        if !self.skip_keyword("execute") {
            let query = self.fragment_and_semicolon()?;
            let what = Opened::Query { scroll, query };
            return Ok(StatementKind::Open { cursor, what });
        }
        let query = self.fragment(until(&["using"], b";"))?;
        let using = match self.skip_keyword("using") {
            true => self.fragments(SEMICOLON)?,
            false => Vec::new(),
        };
        self.expect_char(b';')?;
        let what = Opened::Execute {
            scroll,
            query,
            using,
        };
        Ok(StatementKind::Open { cursor, what })
    }

    pub(super) fn fetch(&mut self) -> Result<StatementKind> {
        let place = self.peek().map_or(-1, offset);
        self.expect_keyword("fetch")?;
        let way = self.way()?;
        let cursor = self.target()?;
        if way.several {
            let message = "FETCH statement cannot return multiple rows";
            let error = Error::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(match char_position(self.text, place) {
                Some(position) => error.at(position),
                None => error,
            });
        }
        if !self.is_keyword("into") {
            return Err(self.unexpected());
        }
        let into = self.take_into()?;
        self.expect_char(b';')?;
        Ok(StatementKind::Fetch {
            cursor,
            direction: way.direction,
            count: way.count,
            into: Some(into.targets),
        })
    }

    pub(super) fn move_cursor(&mut self) -> Result<StatementKind> {
        self.expect_keyword("move")?;
        let way = self.way()?;
        let cursor = self.target()?;
        self.expect_char(b';')?;
        Ok(StatementKind::Fetch {
            cursor,
            direction: way.direction,
            count: way.count,
            into: None,
        })
    }

    pub(super) fn close(&mut self) -> Result<StatementKind> {
        self.expect_keyword("close")?;
        let cursor = self.target()?;
        self.expect_char(b';')?;
        Ok(StatementKind::Close(cursor))
    }

    /// Where FETCH or MOVE goes, and FROM or IN; nothing where the cursor stands there already.
    fn way(&mut self) -> Result<Way> {
        use FetchDirection as Direction;
        if self.skip_from() || self.is_cursor_alone() {
            return Ok(Way::row(Direction::FetchForward, 1));
        }
        let one = |word: &str| match word {
            "next" => Some(Way::row(Direction::FetchForward, 1)),
            "prior" => Some(Way::row(Direction::FetchBackward, 1)),
            "first" => Some(Way::row(Direction::FetchAbsolute, 1)),
            "last" => Some(Way::row(Direction::FetchAbsolute, -1)),
            "all" => Some(Way {
                several: true,
                ..Way::row(Direction::FetchForward, ALL)
            }),
            _ => None,
        };
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        let word = self.text_of(token).to_ascii_lowercase();
        let way = if let Some(way) = one(&word) {
            self.next += 1;
            way
        } else if self.skip_keyword("absolute") {
            self.counted(Direction::FetchAbsolute, false)?
        } else if self.skip_keyword("relative") {
            self.counted(Direction::FetchRelative, false)?
        } else if self.skip_keyword("forward") {
            self.several(Direction::FetchForward)?
        } else if self.skip_keyword("backward") {
            self.several(Direction::FetchBackward)?
        } else {
            self.counted(Direction::FetchForward, true)?
        };
        match self.skip_from() {
            true => Ok(way),
            false => {
                let place = self.peek().map_or(-1, offset);
                Err(self.error_at("expected FROM or IN".to_owned(), place))
            }
        }
    }

    /// FORWARD and BACKWARD: one row, all, or so many.
    fn several(&mut self, direction: FetchDirection) -> Result<Way> {
        if self.is_keyword("from") || self.is_keyword("in") {
            return Ok(Way::row(direction, 1));
        }
        if self.skip_keyword("all") {
            return Ok(Way {
                several: true,
                ..Way::row(direction, ALL)
            });
        }
        self.counted(direction, true)
    }

    fn counted(&mut self, direction: FetchDirection, several: bool) -> Result<Way> {
        let count = self.fragment(until(&["from", "in"], b";"))?;
        Ok(Way {
            direction,
            count: Count::Given(count),
            several,
        })
    }

    fn skip_from(&mut self) -> bool {
        self.skip_keyword("from") || self.skip_keyword("in")
    }

    /// Whether what is next is a name that INTO or the end of the statement follows.
    fn is_cursor_alone(&self) -> bool {
        let is_name = |index: usize| {
            let kind = self.tokens.get(index).map(|token| token.kind);
            matches!(
                kind,
                Some(TokenKind::Identifier | TokenKind::Keyword(false))
            )
        };
        let mut index = self.next;
        if !is_name(index) {
            return false;
        }
        index += 1;
        while self.is_char_at(index, b'.') && is_name(index + 1) {
            index += 2;
        }
        self.is_keyword_at(index, "into") || self.is_char_at(index, b';')
    }
}

fn offset(token: Token) -> i32 {
    i32::try_from(token.start).unwrap_or(-1)
}
