//! Lines of starts: how a node that comes back with an older directory is told from itself.
//!
//! Each start of a node draws a number, one more than the last, and a token at random, and puts both
//! on its disk before it says anything to anybody. Its peers remember, durably, the newest start of
//! it that they have heard of. A node shows its line whenever it connects:
//!
//! ```text
//! n3's own line                 1:a 2:b 3:c 4:d           n1 remembers of n3: 4:d
//! an older copy of it, started  1:a 2:b 3:x               3 is below 4: refused
//! … and once more, and again    1:a 2:b 3:x 4:y 5:z       its 4 is y and not d: refused
//! ```
//! So a copy does not come to be the node by being started often. What such a copy would do (vote
//! again in a term in which the node has voted, acknowledge again what it no longer has) breaks what
//! consensus rests on, so nothing that it says is heard.
//!
//! # Invariants
//! * A start is on the disk of its node before anybody hears of it, and on that of a peer before the
//!   peer takes anything from the node in that start.
//! * A node hears and says nothing of the group before every other member was asked, or did not
//!   answer in time: one of them may know more of its past than the rest.
//!
//! # What it leaves out
//! A copy that was made while the node ran, of the very start that its peers remember, has the right
//! line; and a start that nobody remembers who is there now is nobody's news. What such a directory
//! lacks shows when its log is compared with others. Of a line the last [`STARTS_KEPT`] starts are
//! kept; who remembers an older one cannot tell, and believes.

use std::collections::BTreeMap;

use base::codec::{put_varint, Reader};
use base::{Error, NodeId, Result};

/// Starts of a node that it keeps the tokens of.
pub const STARTS_KEPT: usize = 256;

/// One start of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Counted from 1.
    pub number: u64,
    /// Drawn at random.
    pub token: u64,
}

/// The starts of one node, in order, the oldest perhaps forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartLine {
    /// How many are forgotten.
    forgotten: u64,
    tokens: Vec<u64>,
}

impl StartLine {
    /// The last start.
    pub fn newest(&self) -> Option<Start> {
        let token = *self.tokens.last()?;
        Some(Start {
            number: self.forgotten + self.tokens.len() as u64,
            token,
        })
    }

    /// Goes on with another start.
    pub fn extend(&mut self, token: u64) {
        if self.tokens.len() == STARTS_KEPT {
            self.tokens.remove(0);
            self.forgotten += 1;
        }
        self.tokens.push(token);
    }

    /// Whether a node of this line can have been the one that was seen in that start.
    pub fn goes_on_from(&self, seen: Start) -> bool {
        let newest = self.newest().map_or(0, |newest| newest.number);
        if seen.number <= self.forgotten || seen.number > newest {
            return seen.number <= self.forgotten;
        }
        let at = (seen.number - self.forgotten - 1) as usize;
        self.tokens.get(at) == Some(&seen.token)
    }

    /// Appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.forgotten);
        put_varint(out, self.tokens.len() as u64);
        for token in &self.tokens {
            out.extend_from_slice(&token.to_be_bytes());
        }
    }

    /// Reads what [`StartLine::encode`] wrote.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(reader: &mut Reader<'_>) -> Result<StartLine> {
        let forgotten = reader.varint()?;
        let count: usize = reader.varint_as()?;
        if count > STARTS_KEPT || forgotten > u64::MAX / 2 {
            let message = format!("a line of {count} starts after {forgotten}");
            return Err(Error::corrupted(message));
        }
        let tokens: Result<_> = (0..count).map(|_| reader.u64()).collect();
        Ok(StartLine {
            forgotten,
            tokens: tokens?,
        })
    }
}

/// What a node keeps of starts: its own line, and the newest start of each peer that it has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Its own.
    pub line: StartLine,
    /// Those of its peers.
    pub seen: BTreeMap<NodeId, Start>,
}

impl Starts {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.line.encode(&mut out);
        put_varint(&mut out, self.seen.len() as u64);
        for (node, start) in &self.seen {
            put_varint(&mut out, node.0);
            put_varint(&mut out, start.number);
            out.extend_from_slice(&start.token.to_be_bytes());
        }
        out
    }

    /// Reads what [`Starts::encode`] wrote.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Starts> {
        let mut reader = Reader::new(bytes);
        let line = StartLine::decode(&mut reader)?;
        let count: usize = reader.varint_as()?;
        let mut seen = BTreeMap::new();
        for _ in 0..count {
            let node = NodeId(reader.varint()?);
            let start = Start {
                number: reader.varint()?,
                token: reader.u64()?,
            };
            seen.insert(node, start);
        }
        reader.finish()?;
        Ok(Starts { line, seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tokens: &[u64]) -> StartLine {
        let mut line = StartLine::default();
        tokens.iter().for_each(|token| line.extend(*token));
        line
    }

    fn start(number: u64, token: u64) -> Start {
        Start { number, token }
    }

    #[test]
    fn a_copy_does_not_come_to_be_the_node_by_being_started_often() {
        let seen = start(4, 104);
        assert!(line(&[101, 102, 103, 104]).goes_on_from(seen));
        assert!(line(&[101, 102, 103, 104, 105]).goes_on_from(seen));
        let mut copy = line(&[101, 102]);
        assert!(!StartLine::default().goes_on_from(seen));
        for token in 200..200 + 2 {
            assert!(!copy.goes_on_from(seen), "{copy:?}");
            copy.extend(token);
        }
        for token in 300..310 {
            assert!(!copy.goes_on_from(seen), "{copy:?}");
            copy.extend(token);
        }
    }

    #[test]
    fn who_remembers_what_is_forgotten_believes() {
        let tokens: Vec<u64> = (1..=STARTS_KEPT as u64 + 10).collect();
        let line = line(&tokens);
        assert_eq!(line.newest(), Some(start(266, 266)));
        assert!(line.goes_on_from(start(10, 77)), "it cannot tell");
        assert!(line.goes_on_from(start(11, 11)));
        assert!(!line.goes_on_from(start(11, 12)));
        assert!(!line.goes_on_from(start(267, 267)));
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut starts = Starts {
            line: line(&[7, u64::MAX]),
            seen: BTreeMap::new(),
        };
        starts.seen.insert(NodeId(3), start(9, 1 << 63));
        assert_eq!(Starts::decode(&starts.encode()).unwrap(), starts);
        assert!(Starts::decode(&[1, 9, 3]).is_err());
    }
}
