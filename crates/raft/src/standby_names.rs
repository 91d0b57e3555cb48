//! `synchronous_standby_names`: its grammar and what it names.
//!
//! ```text
//! setting  = [ list | count "(" list ")" | "FIRST" count "(" list ")" | "ANY" count "(" list ")" ]
//! list     = name { "," name }
//! name     = identifier | number | '"' characters '"' | "*"
//! ```
//! A list alone and a count alone mean FIRST. Names are compared without regard to case. `*` is
//! every member that is not the leader.
//!
//! Source: PostgreSQL 15 manual, section 20.6.2; its answers to malformed settings.

use base::engine::SyncState;
use base::{Error, NodeId, Result, SqlState};

/// How many of the standbys named are waited for, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The first so many that are connected, in the order of the list.
    First,
    /// Any so many.
    Any,
}

/// A parsed setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyNames {
    method: Method,
    count: usize,
    names: Vec<String>,
}

/// A setting whose names have become nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standbys {
    /// How they are chosen.
    pub method: Method,
    /// How many are waited for; 0 for none.
    pub count: usize,
    /// Who is named, in order.
    pub nodes: Vec<Listed>,
}

/// One node named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The node.
    pub node: NodeId,
    /// Whether only `*` names it. The leader counts as satisfied when it is named itself.
    pub by_star: bool,
    /// The place in the list of the first name that is its own, from 1.
    pub priority: u32,
}

impl Standbys {
    /// Nobody is waited for.
    pub const NONE: Standbys = Standbys {
        method: Method::First,
        count: 0,
        nodes: Vec::new(),
    };

    /// What is left of them when some are given up: of those that are left, as many as were asked
    /// for, or all.
    #[must_use]
    pub fn without(&self, given_up: &[NodeId]) -> Standbys {
        let nodes = self.nodes.iter().copied();
        let nodes: Vec<_> = nodes
            .filter(|listed| !given_up.contains(&listed.node))
            .collect();
        let count = match given_up.is_empty() {
            true => self.count,
            false => self.count.min(nodes.len()),
        };
        Standbys {
            method: self.method,
            count,
            nodes,
        }
    }

    /// The priority of a standby and its state, as `pg_stat_replication` shows them. `is_counted`
    /// says who is connected and not given up. Who is not named, or is given up, is waited for as
    /// a part of the majority, if at all.
    pub fn sync_state(
        &self,
        node: NodeId,
        leader: NodeId,
        in_majority: bool,
        is_counted: impl Fn(NodeId) -> bool,
    ) -> (u32, SyncState) {
        let by_majority = match in_majority {
            true => SyncState::Quorum,
            false => SyncState::Async,
        };
        let mine = self.nodes.iter().position(|listed| listed.node == node);
        let Some(place) = mine.filter(|_| self.count > 0) else {
            return (u32::from(in_majority), by_majority);
        };
        let priority = match self.method {
            Method::First => self.nodes[place].priority,
            Method::Any => 1,
        };
        if !is_counted(node) {
            return (priority, by_majority);
        }
        if self.method == Method::Any {
            return (priority, SyncState::Quorum);
        }
        let counts = |listed: &&Listed| match listed.node == leader {
            true => !listed.by_star,
            false => is_counted(listed.node),
        };
        let before = self.nodes[..place].iter().filter(counts).count();
        match before < self.count {
            true => (priority, SyncState::Sync),
            false => (priority, SyncState::Potential),
        }
    }
}

impl StandbyNames {
    /// Parses a setting; malformed ones are 42601, a count of 0 is 22023.
    pub fn parse(setting: &str) -> Result<StandbyNames> {
        if setting.is_empty() {
            return Ok(StandbyNames {
                method: Method::First,
                count: 0,
                names: Vec::new(),
            });
        }
        let tokens = scan(setting).map_err(|near| malformed(setting, &near))?;
        let parsed = Parser { tokens: &tokens }
            .setting()
            .map_err(|near| malformed(setting, &near))?;
        if parsed.count == 0 {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "number of synchronous standbys (0) must be greater than zero",
            ));
        }
        Ok(parsed)
    }

    /// Puts nodes for names. Names of nobody are skipped, but the count stays.
    pub fn resolve(&self, members: &[(NodeId, &str)]) -> Standbys {
        let mut nodes: Vec<Listed> = Vec::new();
        for (priority, name) in (1..).zip(&self.names) {
            let by_star = name == "*";
            for (node, member) in members {
                let named = by_star || member.eq_ignore_ascii_case(name);
                match nodes.iter_mut().find(|listed| listed.node == *node) {
                    _ if !named => {}
                    Some(listed) => listed.by_star &= by_star,
                    None => nodes.push(Listed {
                        node: *node,
                        by_star,
                        priority,
                    }),
                }
            }
        }
        Standbys {
            method: self.method,
            count: self.count,
            nodes,
        }
    }
}

const UNTERMINATED: &str = "unterminated quoted identifier at end of input";

/// `near` is what does not fit: nothing for the end, or [`UNTERMINATED`].
fn malformed(setting: &str, near: &str) -> Error {
    let near = match near {
        "" => "syntax error at end of input".to_owned(),
        UNTERMINATED => UNTERMINATED.to_owned(),
        near => format!("syntax error at or near \"{near}\""),
    };
    Error::new(
        SqlState::SYNTAX_ERROR,
        format!("invalid value for parameter \"synchronous_standby_names\": \"{setting}\""),
    )
    .with_detail(near)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    First(String),
    Any(String),
    Number(String),
    Name(String),
    Mark(char),
}

impl Token {
    fn text(&self) -> String {
        match self {
            Token::First(text) | Token::Any(text) | Token::Number(text) | Token::Name(text) => {
                text.clone()
            }
            Token::Mark(mark) => mark.to_string(),
        }
    }
}

/// Cuts a setting into tokens; the error is what stands where none begins.
fn scan(setting: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = setting;
    while let Some(first) = rest.chars().next() {
        let take_while = |wanted: fn(char) -> bool| {
            let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
            rest.split_at(end)
        };
        rest = match first {
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => &rest[1..],
            ',' | '(' | ')' => {
                tokens.push(Token::Mark(first));
                &rest[1..]
            }
            '*' => {
                tokens.push(Token::Name("*".to_owned()));
                &rest[1..]
            }
            '"' => {
                let (name, after) = quoted(&rest[1..])?;
                tokens.push(Token::Name(name));
                after
            }
            '0'..='9' => {
                let (number, after) = take_while(|c| c.is_ascii_digit());
                tokens.push(Token::Number(number.to_owned()));
                after
            }
            c if is_name_start(c) => {
                let (word, after) =
                    take_while(|c| is_name_start(c) || c.is_ascii_digit() || c == '$');
                tokens.push(match word.to_ascii_lowercase().as_str() {
                    "first" => Token::First(word.to_owned()),
                    "any" => Token::Any(word.to_owned()),
                    _ => Token::Name(word.to_owned()),
                });
                after
            }
            other => return Err(other.to_string()),
        };
    }
    Ok(tokens)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// A quoted name after its opening quote, and what follows it. Two quotes stand for one.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let Some(end) = rest.find('"') else {
            return Err(UNTERMINATED.to_owned());
        };
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Ok((name, rest)),
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    /// The error is the token that does not fit, empty at the end.
    fn setting(&mut self) -> Result<StandbyNames, String> {
        let (method, counted) = match self.tokens {
            [Token::First(_), ..] => (Method::First, true),
            [Token::Any(_), ..] => (Method::Any, true),
            [Token::Number(_), Token::Mark('('), ..] => (Method::First, true),
            _ => (Method::First, false),
        };
        if !counted {
            let names = self.list()?;
            self.end()?;
            return Ok(StandbyNames {
                method,
                count: 1,
                names,
            });
        }
        if matches!(self.tokens[0], Token::First(_) | Token::Any(_)) {
            self.tokens = &self.tokens[1..];
        }
        let Some(Token::Number(number)) = self.tokens.first() else {
            return Err(self.here());
        };
        // More than anybody can name waits for ever, whatever it is.
        let count = number.parse().unwrap_or(usize::MAX);
        self.tokens = &self.tokens[1..];
        self.mark('(')?;
        let names = self.list()?;
        self.mark(')')?;
        self.end()?;
        Ok(StandbyNames {
            method,
            count,
            names,
        })
    }

    fn list(&mut self) -> Result<Vec<String>, String> {
        let mut names = vec![self.name()?];
        while self.tokens.first() == Some(&Token::Mark(',')) {
            self.tokens = &self.tokens[1..];
            names.push(self.name()?);
        }
        Ok(names)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.first() {
            Some(Token::Name(name) | Token::Number(name)) => {
                self.tokens = &self.tokens[1..];
                Ok(name.clone())
            }
            _ => Err(self.here()),
        }
    }

    fn mark(&mut self, mark: char) -> Result<(), String> {
        if self.tokens.first() != Some(&Token::Mark(mark)) {
            return Err(self.here());
        }
        self.tokens = &self.tokens[1..];
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        match self.tokens {
            [] => Ok(()),
            _ => Err(self.here()),
        }
    }

    fn here(&self) -> String {
        self.tokens.first().map_or(String::new(), Token::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(setting: &str) -> (Method, usize, String) {
        let names = StandbyNames::parse(setting).unwrap();
        (names.method, names.count, names.names.join("|"))
    }

    #[test]
    fn settings_mean_what_they_mean_in_postgresql() {
        let first = |count, names: &str| (Method::First, count, names.to_owned());
        assert_eq!(parsed(""), first(0, ""));
        assert_eq!(parsed("a, b"), first(1, "a|b"));
        assert_eq!(parsed("2 (a, b)"), first(2, "a|b"));
        assert_eq!(parsed("First 2(a,b)"), first(2, "a|b"));
        assert_eq!(
            parsed("any 1 (*)"),
            (Method::Any, 1, "*".to_owned()),
            "keywords take any case"
        );
        assert_eq!(parsed("\"any\", \"a \"\"b\"\"\""), first(1, "any|a \"b\""));
        assert_eq!(parsed("1"), first(1, "1"), "a number alone is a name");
        assert_eq!(parsed("1, 2"), first(1, "1|2"));
        assert_eq!(parsed("a$1, _b"), first(1, "a$1|_b"));
    }

    #[test]
    fn malformed_settings_are_refused() {
        for setting in [
            " ",
            "a,",
            ",a",
            "a b",
            "any",
            "first",
            "any 1",
            "any (a)",
            "any 1 ()",
            "1 (a",
            "1 (a))",
            "a;b",
            "\"a",
            "any 1 (a) b",
            "-1 (a)",
            "1 (a,)",
            "any, b",
            "$a",
        ] {
            let error = StandbyNames::parse(setting).unwrap_err();
            assert_eq!(error.state(), SqlState::SYNTAX_ERROR, "{setting}");
        }
        let detail = |setting: &str| {
            let error = StandbyNames::parse(setting).unwrap_err();
            error.fields().detail.clone().unwrap_or_default()
        };
        assert_eq!(detail("any, b"), "syntax error at or near \",\"");
        assert_eq!(detail("a First"), "syntax error at or near \"First\"");
        assert_eq!(detail("1 (a"), "syntax error at end of input");
        assert_eq!(detail("\"a"), UNTERMINATED);
        let error = StandbyNames::parse("0 (a)").unwrap_err();
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
    }

    #[test]
    fn names_become_nodes_once_each() {
        let members = [(NodeId(1), "n1"), (NodeId(2), "n2")];
        let named = |setting: &str| {
            let standbys = StandbyNames::parse(setting).unwrap().resolve(&members);
            let nodes = standbys.nodes.iter();
            nodes
                .map(|listed| (listed.node.0, listed.by_star))
                .collect::<Vec<_>>()
        };
        assert_eq!(named("N2, n1, n2, nobody"), [(2, false), (1, false)]);
        assert_eq!(named("*"), [(1, true), (2, true)]);
        assert_eq!(named("*, n2"), [(1, true), (2, false)]);
    }
    #[test]
    fn who_is_given_up_is_not_asked_for() {
        let members = [(NodeId(1), "n1"), (NodeId(2), "n2"), (NodeId(3), "n3")];
        let any = StandbyNames::parse("ANY 2 (n2, n3)").unwrap();
        let any = any.resolve(&members);
        assert_eq!(any.without(&[]), any);
        let less = any.without(&[NodeId(3)]);
        assert_eq!((less.count, less.nodes.len()), (1, 1));
        assert_eq!(any.without(&[NodeId(2), NodeId(3)]).count, 0);
        let absent = StandbyNames::parse("FIRST 2 (n2, absent)").unwrap();
        assert_eq!(absent.resolve(&members).without(&[]).count, 2);
    }

    /// The states of n2, n3 and n4 while n1 leads and `away` is not counted; n4 does not vote.
    fn states(setting: &str, away: u64) -> String {
        let members = [1, 2, 3, 4].map(|node| (NodeId(node), format!("n{node}")));
        let members = members.iter().map(|(node, name)| (*node, name.as_str()));
        let members: Vec<_> = members.collect();
        let standbys = StandbyNames::parse(setting).unwrap().resolve(&members);
        let states = [2, 3, 4].map(|node| {
            let counted = |node: NodeId| node.0 != away;
            let (priority, state) =
                standbys.sync_state(NodeId(node), NodeId(1), node != 4, counted);
            format!("{priority} {}", state.name())
        });
        states.join(", ")
    }

    #[test]
    fn standbys_are_shown_as_postgresql_shows_them() {
        assert_eq!(states("", 0), "1 quorum, 1 quorum, 0 async");
        assert_eq!(states("n3", 0), "1 quorum, 1 sync, 0 async");
        assert_eq!(states("ANY 1 (n2, n4)", 0), "1 quorum, 1 quorum, 1 quorum");
        assert_eq!(
            states("FIRST 1 (n4, n2)", 0),
            "2 potential, 1 quorum, 1 sync"
        );
        assert_eq!(states("FIRST 1 (n4, n2)", 4), "2 sync, 1 quorum, 1 async");
        assert_eq!(states("FIRST 1 (*)", 0), "1 sync, 1 potential, 1 potential");
        // The leader's own name is one of those asked for.
        assert_eq!(
            states("FIRST 2 (n1, n3, n4)", 0),
            "1 quorum, 2 sync, 3 potential"
        );
    }
}
