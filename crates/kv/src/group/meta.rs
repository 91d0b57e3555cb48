//! What a checkpoint says of itself besides its pages.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::{Chain, Error, Lsn, Position, Result, Term, Timestamp};
use raft::{HardState, Membership};

const FORMAT: u8 = 3;

/// A format without chains, which earlier builds have written.
const WITHOUT_CHAIN: u8 = 2;

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The last entry that it holds.
    pub position: Position,
    /// The chain of the log there, if it is known.
    pub chain: Option<Chain>,
    /// That of the newest record in it.
    pub timestamp: Timestamp,
    /// Who is a member there.
    pub membership: Membership,
}

impl Meta {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        put_varint(&mut out, self.position.term.0);
        put_varint(&mut out, self.position.lsn.0);
        put_signed(&mut out, self.timestamp.0);
        out.push(u8::from(self.chain.is_some()));
        if let Some(chain) = self.chain {
            out.extend_from_slice(&chain.0.to_be_bytes());
        }
        self.membership.encode(&mut out);
        out
    }

    /// Reads what [`Meta::encode`] wrote.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Meta> {
        let mut reader = Reader::new(bytes);
        let format = reader.u8()?;
        if format != FORMAT && format != WITHOUT_CHAIN {
            let message = format!("a checkpoint of format {format}, and {FORMAT} is known");
            return Err(Error::corrupted(message));
        }
        let position = Position {
            term: Term(reader.varint()?),
            lsn: Lsn(reader.varint()?),
        };
        let timestamp = Timestamp(reader.signed()?);
        let has_chain = format != WITHOUT_CHAIN && reader.u8()? != 0;
        let meta = Meta {
            position,
            chain: match has_chain {
                true => Some(Chain(reader.u32()?)),
                false => None,
            },
            timestamp,
            membership: Membership::decode(&mut reader)?,
        };
        reader.finish()?;
        Ok(meta)
    }
}

/// A membership that an operator decreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// What the log says of memberships up to here is overruled.
    pub after: Lsn,
    /// The membership.
    pub membership: Membership,
}

/// What the log keeps beside its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What the consensus must remember.
    pub state: HardState,
    /// The last membership that was decreed, until a checkpoint has it.
    pub beginning: Option<Beginning>,
}

impl Kept {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, &self.state.encode());
        out.push(u8::from(self.beginning.is_some()));
        if let Some(beginning) = &self.beginning {
            put_varint(&mut out, beginning.after.0);
            beginning.membership.encode(&mut out);
        }
        out
    }

    /// Reads what [`Kept::encode`] wrote; no bytes at all are those of a new replica.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Kept> {
        if bytes.is_empty() {
            return Ok(Kept::default());
        }
        let mut reader = Reader::new(bytes);
        let state = HardState::decode(reader.bytes()?)?;
        let beginning = match reader.u8()? {
            0 => None,
            _ => Some(Beginning {
                after: Lsn(reader.varint()?),
                membership: Membership::decode(&mut reader)?,
            }),
        };
        reader.finish()?;
        Ok(Kept { state, beginning })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use base::NodeId;

    #[test]
    fn it_comes_back() {
        let meta = Meta {
            position: Position {
                term: Term(3),
                lsn: Lsn(99),
            },
            chain: Some(Chain(u32::MAX)),
            timestamp: Timestamp(-7),
            membership: Membership::new(&[NodeId(1), NodeId(2)], &[NodeId(3)]),
        };
        assert_eq!(Meta::decode(&meta.encode()).unwrap(), meta);
        let mut before = vec![WITHOUT_CHAIN, 3, 99];
        put_signed(&mut before, -7);
        meta.membership.encode(&mut before);
        let without = Meta {
            chain: None,
            ..meta
        };
        assert_eq!(Meta::decode(&before).unwrap(), without);
        assert_eq!(Meta::decode(&without.encode()).unwrap(), without);
        assert!(Meta::decode(&[]).is_err());
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut kept = Kept {
            state: HardState {
                term: Term(3),
                vote: Some(NodeId(2)),
                commit: Lsn(9),
                promise: Duration::from_millis(300),
            },
            beginning: None,
        };
        assert_eq!(Kept::decode(&kept.encode()).unwrap(), kept);
        kept.beginning = Some(Beginning {
            after: Lsn(9),
            membership: Membership::new(&[NodeId(2)], &[]),
        });
        assert_eq!(Kept::decode(&kept.encode()).unwrap(), kept);
        assert_eq!(Kept::decode(&[]).unwrap(), Kept::default());
        assert!(Kept::decode(&[1]).is_err());
    }
}
