//! What the log and the trees of one group say of transactions across groups.
//!
//! What a transaction has written in a group is *prepared* there: its changes and its locks become
//! rows, as those of a prepared transaction of SQL do ([`crate::prepared`]), with the list of all
//! participants: its *part*. Whether it is committed follows from the logs of its groups, and from
//! nothing else: it is if each of them has its part committed. Then each group's leader *resolves* its
//! part: it makes the changes, gives up the locks, and keeps the [decision](decisions) as a row for as
//! long as another group may ask about it. [`crate::engine`] says who does what.
//!
//! ```text
//! LSN 40   part of 1.4.7     rows of PREPARED and PREPARED_CHANGES; proposes the record's timestamp
//! LSN 45   1.4.7 is committed at 103: its changes, those rows go, a row of DECISIONS
//! LSN 50   nobody will ask:  that row goes
//! ```
//!
//! # Invariants
//! - A part proposes the timestamp of its record: nothing before it in the log is later.

pub mod codec;
pub mod decisions;
mod resolutions;

use base::codec::Reader;
use base::{Lsn, Result, Timestamp};
use spanning::{Participant, SpanningId};

use codec::{id, participants, put_id, put_participants};
pub use decisions::Decisions;
pub use resolutions::Resolutions;

/// The name of a transaction's parts among what is prepared, which no client can say.
pub fn name_of(id: SpanningId) -> String {
    format!("\0{}.{}.{}", id.group, id.term, id.number)
}

/// This group's part of a transaction across groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The transaction.
    pub id: SpanningId,
    /// All groups in which it has written, with the terms in which they may prepare.
    pub participants: Vec<Participant>,
    /// The timestamp that this group proposes for its commit: that of the record which prepares it,
    /// put there where the record is applied.
    pub proposed: Timestamp,
    /// Where that record stands at the latest. It is not in the row.
    pub lsn: Lsn,
}

impl Part {
    /// As a column of its row; the last 8 bytes are the timestamp.
    pub fn to_column(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_id(&mut out, self.id);
        put_participants(&mut out, &self.participants);
        out.extend_from_slice(&self.proposed.0.to_be_bytes());
        out
    }

    /// Reads what [`Part::to_column`] gives, which was there at `lsn`.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_column(column: &[u8], lsn: Lsn) -> Result<Part> {
        let mut reader = Reader::new(column);
        Ok(Part {
            id: id(&mut reader)?,
            participants: participants(&mut reader)?,
            proposed: Timestamp(reader.u64()? as i64),
            lsn,
        })
    }
}
