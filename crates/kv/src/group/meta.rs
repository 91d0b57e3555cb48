//! What a checkpoint says of itself besides its pages.

use base::codec::{put_signed, put_varint, Reader};
use base::{Error, Lsn, Position, Result, Term, Timestamp};
use raft::Membership;

const FORMAT: u8 = 2;

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The last entry that it holds.
    pub position: Position,
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
        if format != FORMAT {
            let message = format!("a checkpoint of format {format}, and {FORMAT} is known");
            return Err(Error::corrupted(message));
        }
        let meta = Meta {
            position: Position {
                term: Term(reader.varint()?),
                lsn: Lsn(reader.varint()?),
            },
            timestamp: Timestamp(reader.signed()?),
            membership: Membership::decode(&mut reader)?,
        };
        reader.finish()?;
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::NodeId;

    #[test]
    fn it_comes_back() {
        let meta = Meta {
            position: Position {
                term: Term(3),
                lsn: Lsn(99),
            },
            timestamp: Timestamp(-7),
            membership: Membership::new(&[NodeId(1), NodeId(2)], &[NodeId(3)]),
        };
        assert_eq!(Meta::decode(&meta.encode()).unwrap(), meta);
        assert!(Meta::decode(&[]).is_err());
    }
}
