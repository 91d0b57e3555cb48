//! What a transaction says to a branch in a group that another node leads, and what it is answered.
//!
//! A connection carries one transaction after the other. A frame has calls: any number of those to
//! which there is nothing to say, and one last, which is answered ([`Call::is_answered`]) unless the
//! frame ends the transaction.
//!
//! ```text
//! n1 (session)                                  n2 (leads group 2)
//!   Begin group 2, LockTable 40, RowExclusive ─►
//!                 ◄───────────────────────────── Flag true; it has begun in term 7
//!   Look 1041 ─────────────────────────────────►
//!                 ◄───────────────────────────── Timestamp 1044: found what is shown there
//!   TakeView, Savepoint, LockRow 40, key … ────►
//!                 ◄───────────────────────────── Locked
//!   NextCommand, Post 1 40, key, row, Posted 1 ►   waits for a lock …
//!   Cancel ────────────────────────────────────►   … no more
//!                 ◄───────────────────────────── an error
//!   End ───────────────────────────────────────►   taken back
//! ```
//!
//! | part | form |
//! |---|---|
//! | call | 1 byte, then its fields in the order of [`Call`] |
//! | answer | 1 byte: 0 an error, else what was answered; the state of the branch; then the fields |
//!
//! # What it leaves out
//! Errors keep SQLSTATE, class, message, DETAIL and HINT: no other field is set below SQL.

mod fields;

use std::time::Duration;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{
    Announced, Build, Built, Direction, Inserted, LockInfo, LockWait, LockedRow, Post, RowBatch,
    RowLock, TableLock, Ticket, TxnOptions, Write,
};
use base::{
    Debt, Durability, Error, GroupId, Key, KeyRange, NodeId, Result, SessionId, SqlState, Term,
    Timestamp, TreeId,
};

use spanning::Participant;

use super::prepare::{Prepared, Preparing};
use super::Stake;
use fields::*;

/// A call or an answer may be at most this long …
pub(crate) const FRAME_BYTES_MAX: usize = 256 << 20;

/// … and what would be longer is 54000.
///
/// # Errors
/// That.
pub(super) fn check_fits(bytes: usize) -> Result<()> {
    match bytes <= FRAME_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("{bytes} bytes are too many for one step in a group that another node leads"),
        )),
    }
}

/// A savepoint or view, as the transaction calls it.
pub(super) type Number = u32;

/// What a transaction says to one of its branches.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    /// The statement that waits for an answer is not to wait any more.
    Cancel,
    /// For whom a session waits in a group.
    Blockers(GroupId, SessionId),
    /// What is locked in a group.
    Locks(GroupId),
    // To these there is nothing to say.
    SetOptions(TxnOptions),
    SetLockTimeout(Duration),
    NextCommand,
    ExpectSnapshot,
    GiveUpSnapshot,
    Savepoint(Number),
    RollbackTo(Number),
    Release(Number),
    NoteMoved(TreeId, Key),
    Withdraw(Ticket),
    DropView(Number),
    /// The transaction is over, and what it has done here is taken back.
    End,
    // What is wrong with these, the next answer says, and every one after it, until the transaction goes
    // back to before them.
    Post(Post, TreeId, Key, Posted),
    Delete(TreeId, Key),
    // What is wrong with these, the next answer says.
    /// A transaction begins in a group, of a session whose node leads its home in a term.
    Begin(GroupId, Participant, TxnOptions),
    BeginStatement,
    TakeView,
    // These are answered.
    /// What was said before is heard of.
    Confirm,
    /// Looks, and finds what is shown at what that gives.
    Look(Timestamp),
    FindView(Timestamp),
    HasSameView,
    IsSafe,
    KeepView(Number),
    SwapView(Number),
    Get(TreeId, Key),
    /// The same of several rows.
    GetAll(TreeId, Vec<Key>),
    /// Reads a row, and locks it if it is there.
    GetToLock(TreeId, Key, RowLock),
    Scan(TreeId, KeyRange, Direction, u64),
    ScanNewest(TreeId, KeyRange, Direction, u64),
    LockRow(TreeId, Key, RowLock, LockWait),
    /// The same of several rows.
    LockRows(TreeId, Vec<Key>, RowLock, LockWait),
    LockRowInTheWay(TreeId, Key, RowLock),
    LockKey(TreeId, Key, RowLock, LockWait),
    WaitForKey(TreeId, Key, RowLock),
    Announce(TreeId, Key, Vec<u8>),
    Announced(TreeId, Vec<u8>, Ticket),
    WaitForAnnounced(Announced),
    LockTable(TreeId, TableLock, LockWait),
    /// The same of several, of which those are left out that somebody else has.
    LockTables(Vec<(TreeId, TableLock)>),
    Insert(TreeId, Key, Vec<u8>),
    InsertNew(TreeId, Key, Vec<u8>),
    Update(TreeId, Key, Vec<u8>),
    /// What has become of what was posted from there on.
    Posted(Post),
    WasMoved(TreeId, Key),
    IsWrittenByCommand(TreeId, Key),
    Build(Build),
    PreparePart(Preparing),
    Commit(Durability),
}

impl Call {
    /// Whether something is answered, when it has been done.
    pub fn is_answered(&self) -> bool {
        !matches!(
            self,
            Call::Cancel
                | Call::SetOptions(_)
                | Call::SetLockTimeout(_)
                | Call::NextCommand
                | Call::ExpectSnapshot
                | Call::GiveUpSnapshot
                | Call::Savepoint(_)
                | Call::RollbackTo(_)
                | Call::Release(_)
                | Call::NoteMoved(..)
                | Call::Withdraw(_)
                | Call::DropView(_)
                | Call::End
                | Call::Post(..)
                | Call::Delete(..)
                | Call::Begin(..)
                | Call::BeginStatement
                | Call::TakeView
        )
    }
}

/// A row that nobody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    Insert(Vec<u8>),
    InsertNew(Vec<u8>),
    Update(Vec<u8>),
}

impl Posted {
    /// What is to become of it.
    pub fn write(&self) -> Write<'_> {
        match self {
            Posted::Insert(row) => Write::Insert(row),
            Posted::InsertNew(row) => Write::InsertNew(row),
            Posted::Update(row) => Write::Update(row),
        }
    }
}

/// What a call is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    Flag(bool),
    Flags(Vec<bool>),
    Timestamp(Option<Timestamp>),
    Row(Option<Vec<u8>>),
    AllRows(Vec<Option<Vec<u8>>>),
    Rows(RowBatch, Option<KeyRange>),
    Locked(LockedRow, Vec<u8>),
    /// The row as it was read, and what locking it found; nothing of one that is not there.
    RowLocked(Option<(Vec<u8>, LockedRow, Vec<u8>)>),
    /// What locking the first rows of several found: of all but those behind one that went wrong.
    AllLocked(Vec<(LockedRow, Vec<u8>)>),
    Ticket(Ticket),
    Announced(Vec<Announced>),
    Inserted(Inserted),
    /// The first that was taken, and what has it.
    Taken(Option<(Post, TreeId)>),
    Built(Built),
    Sessions(Vec<SessionId>),
    Prepared(Prepared),
    Locks(Vec<LockInfo>),
}

fn posted(reader: &mut Reader<'_>) -> Result<Posted> {
    Ok(match reader.u8()? {
        0 => Posted::Insert(owned(reader)?),
        1 => Posted::InsertNew(owned(reader)?),
        2 => Posted::Update(owned(reader)?),
        other => return Err(Error::corrupted(format!("a row of kind {other}"))),
    })
}

/// What is known of a branch after each call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Condition {
    /// The term in which its group is led; 0 where it has not begun.
    pub term: Term,
    /// What its replies rest on and what is not committed yet.
    pub debt: Debt,
    /// It has seen something.
    pub has_snapshot: bool,
    /// What it has to say in the commit.
    pub stake: Stake,
}

impl Call {
    /// Appends it to a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let code = out.len();
        out.push(0);
        out[code] = match self {
            Call::Begin(group, home, options) => {
                put_varint(out, group.0.into());
                put_varint(out, home.group.0.into());
                put_varint(out, home.term.0);
                put_options(out, options);
                1
            }
            Call::Cancel => 2,
            Call::Locks(group) => {
                put_varint(out, group.0.into());
                46
            }
            Call::Blockers(group, session) => {
                put_varint(out, group.0.into());
                put_varint(out, session.0.into());
                3
            }
            Call::SetOptions(options) => {
                put_options(out, options);
                4
            }
            Call::SetLockTimeout(timeout) => {
                put_varint(out, timeout.as_millis() as u64);
                5
            }
            Call::NextCommand => 6,
            Call::ExpectSnapshot => 7,
            Call::GiveUpSnapshot => 8,
            Call::Savepoint(number) => {
                put_varint(out, (*number).into());
                9
            }
            Call::RollbackTo(number) => {
                put_varint(out, (*number).into());
                10
            }
            Call::Release(number) => {
                put_varint(out, (*number).into());
                11
            }
            Call::NoteMoved(tree, key) => {
                put_row(out, *tree, key);
                12
            }
            Call::Withdraw(ticket) => {
                put_ticket(out, *ticket);
                13
            }
            Call::DropView(number) => {
                put_varint(out, (*number).into());
                14
            }
            Call::End => 15,
            Call::Confirm => 22,
            Call::BeginStatement => 16,
            Call::Look(heard) => {
                put_signed(out, heard.0);
                17
            }
            Call::FindView(at) => {
                put_signed(out, at.0);
                18
            }
            Call::TakeView => 19,
            Call::HasSameView => 20,
            Call::IsSafe => 21,
            Call::KeepView(number) => {
                put_varint(out, (*number).into());
                23
            }
            Call::SwapView(number) => {
                put_varint(out, (*number).into());
                24
            }
            Call::Get(tree, key) => {
                put_row(out, *tree, key);
                25
            }
            Call::GetToLock(tree, key, strength) => {
                put_row(out, *tree, key);
                put_one_of(out, &LOCKS, strength);
                26
            }
            Call::Scan(tree, range, direction, limit)
            | Call::ScanNewest(tree, range, direction, limit) => {
                put_tree(out, *tree);
                put_range(out, range);
                put_one_of(out, &DIRECTIONS, direction);
                put_varint(out, *limit);
                match self {
                    Call::Scan(..) => 27,
                    _ => 28,
                }
            }
            Call::LockRow(tree, key, strength, wait) => {
                put_row(out, *tree, key);
                put_one_of(out, &LOCKS, strength);
                put_one_of(out, &WAITS, wait);
                29
            }
            Call::LockRowInTheWay(tree, key, strength) => {
                put_row(out, *tree, key);
                put_one_of(out, &LOCKS, strength);
                30
            }
            Call::LockRows(tree, keys, strength, wait) => {
                put_tree(out, *tree);
                put_all(out, keys, |out, key| put_bytes(out, key));
                put_one_of(out, &LOCKS, strength);
                put_one_of(out, &WAITS, wait);
                47
            }
            Call::GetAll(tree, keys) => {
                put_tree(out, *tree);
                put_all(out, keys, |out, key| put_bytes(out, key));
                50
            }
            Call::LockKey(tree, key, strength, wait) => {
                put_row(out, *tree, key);
                put_one_of(out, &LOCKS, strength);
                put_one_of(out, &WAITS, wait);
                31
            }
            Call::WaitForKey(tree, key, strength) => {
                put_row(out, *tree, key);
                put_one_of(out, &LOCKS, strength);
                32
            }
            Call::Announce(tree, key, note) => {
                put_row(out, *tree, key);
                put_bytes(out, note);
                33
            }
            Call::Announced(tree, prefix, ticket) => {
                put_row(out, *tree, prefix);
                put_ticket(out, *ticket);
                34
            }
            Call::WaitForAnnounced(announced) => {
                put_announced(out, announced);
                35
            }
            Call::LockTable(tree, mode, wait) => {
                put_tree(out, *tree);
                put_one_of(out, &TABLE_LOCKS, mode);
                put_one_of(out, &WAITS, wait);
                36
            }
            Call::LockTables(tables) => {
                put_all(out, tables, |out, (tree, mode)| {
                    put_tree(out, *tree);
                    put_one_of(out, &TABLE_LOCKS, mode);
                });
                51
            }
            Call::Insert(tree, key, row) => {
                put_row(out, *tree, key);
                put_bytes(out, row);
                37
            }
            Call::InsertNew(tree, key, row) => {
                put_row(out, *tree, key);
                put_bytes(out, row);
                38
            }
            Call::Update(tree, key, row) => {
                put_row(out, *tree, key);
                put_bytes(out, row);
                39
            }
            Call::Delete(tree, key) => {
                put_row(out, *tree, key);
                40
            }
            Call::Post(post, tree, key, posted) => {
                put_varint(out, post.0);
                put_row(out, *tree, key);
                let (kind, row) = match posted {
                    Posted::Insert(row) => (0, row),
                    Posted::InsertNew(row) => (1, row),
                    Posted::Update(row) => (2, row),
                };
                out.push(kind);
                put_bytes(out, row);
                48
            }
            Call::Posted(since) => {
                put_varint(out, since.0);
                49
            }
            Call::WasMoved(tree, key) => {
                put_row(out, *tree, key);
                41
            }
            Call::IsWrittenByCommand(tree, key) => {
                put_row(out, *tree, key);
                42
            }
            Call::Build(build) => {
                put_build(out, build);
                43
            }
            Call::PreparePart(preparing) => {
                put_preparing(out, preparing);
                44
            }
            Call::Commit(durability) => {
                put_durability(out, *durability);
                45
            }
        };
    }

    /// Reads the next call of a frame.
    ///
    /// # Errors
    /// XX001 when it is none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Call> {
        let r = reader;
        Ok(match r.u8()? {
            1 => {
                let group = GroupId(r.varint_as()?);
                let home = Participant {
                    group: GroupId(r.varint_as()?),
                    term: Term(r.varint()?),
                };
                Call::Begin(group, home, options(r)?)
            }
            2 => Call::Cancel,
            46 => Call::Locks(GroupId(r.varint_as()?)),
            3 => Call::Blockers(GroupId(r.varint_as()?), SessionId(r.varint_as()?)),
            4 => Call::SetOptions(options(r)?),
            5 => Call::SetLockTimeout(Duration::from_millis(r.varint()?)),
            6 => Call::NextCommand,
            7 => Call::ExpectSnapshot,
            8 => Call::GiveUpSnapshot,
            9 => Call::Savepoint(r.varint_as()?),
            10 => Call::RollbackTo(r.varint_as()?),
            11 => Call::Release(r.varint_as()?),
            12 => Call::NoteMoved(tree(r)?, owned(r)?),
            13 => Call::Withdraw(ticket(r)?),
            14 => Call::DropView(r.varint_as()?),
            15 => Call::End,
            16 => Call::BeginStatement,
            22 => Call::Confirm,
            17 => Call::Look(Timestamp(r.signed()?)),
            18 => Call::FindView(Timestamp(r.signed()?)),
            19 => Call::TakeView,
            20 => Call::HasSameView,
            21 => Call::IsSafe,
            23 => Call::KeepView(r.varint_as()?),
            24 => Call::SwapView(r.varint_as()?),
            25 => Call::Get(tree(r)?, owned(r)?),
            26 => Call::GetToLock(tree(r)?, owned(r)?, one_of(r, &LOCKS)?),
            27 => Call::Scan(tree(r)?, range(r)?, one_of(r, &DIRECTIONS)?, r.varint()?),
            28 => Call::ScanNewest(tree(r)?, range(r)?, one_of(r, &DIRECTIONS)?, r.varint()?),
            29 => Call::LockRow(tree(r)?, owned(r)?, one_of(r, &LOCKS)?, one_of(r, &WAITS)?),
            30 => Call::LockRowInTheWay(tree(r)?, owned(r)?, one_of(r, &LOCKS)?),
            47 => Call::LockRows(
                tree(r)?,
                all(r, owned)?,
                one_of(r, &LOCKS)?,
                one_of(r, &WAITS)?,
            ),
            50 => Call::GetAll(tree(r)?, all(r, owned)?),
            31 => Call::LockKey(tree(r)?, owned(r)?, one_of(r, &LOCKS)?, one_of(r, &WAITS)?),
            32 => Call::WaitForKey(tree(r)?, owned(r)?, one_of(r, &LOCKS)?),
            33 => Call::Announce(tree(r)?, owned(r)?, owned(r)?),
            34 => Call::Announced(tree(r)?, owned(r)?, ticket(r)?),
            35 => Call::WaitForAnnounced(announced(r)?),
            36 => Call::LockTable(tree(r)?, one_of(r, &TABLE_LOCKS)?, one_of(r, &WAITS)?),
            51 => Call::LockTables(all(r, |r| Ok((tree(r)?, one_of(r, &TABLE_LOCKS)?)))?),
            37 => Call::Insert(tree(r)?, owned(r)?, owned(r)?),
            38 => Call::InsertNew(tree(r)?, owned(r)?, owned(r)?),
            39 => Call::Update(tree(r)?, owned(r)?, owned(r)?),
            40 => Call::Delete(tree(r)?, owned(r)?),
            48 => Call::Post(Post(r.varint()?), tree(r)?, owned(r)?, posted(r)?),
            49 => Call::Posted(Post(r.varint()?)),
            41 => Call::WasMoved(tree(r)?, owned(r)?),
            42 => Call::IsWrittenByCommand(tree(r)?, owned(r)?),
            43 => Call::Build(build(r)?),
            44 => Call::PreparePart(preparing(r)?),
            45 => Call::Commit(durability(r)?),
            other => return Err(Error::corrupted(format!("a call of kind {other}"))),
        })
    }

    /// All calls of a frame.
    ///
    /// # Errors
    /// XX001 when they are none.
    pub fn decode_all(frame: &[u8]) -> Result<Vec<Call>> {
        let mut reader = Reader::new(frame);
        let mut calls = Vec::new();
        while !reader.is_empty() {
            calls.push(Call::decode(&mut reader)?);
        }
        Ok(calls)
    }
}

/// A frame with an answer, and with what the branch is like then. One that is too long becomes an error.
pub(super) fn encode_answer(answer: &Result<Answer>, condition: &Condition) -> Vec<u8> {
    let frame = encoded(answer, condition);
    match check_fits(frame.len()) {
        Ok(()) => frame,
        Err(error) => encoded(&Err(error), condition),
    }
}

fn encoded(answer: &Result<Answer>, condition: &Condition) -> Vec<u8> {
    let mut out = vec![0];
    put_varint(&mut out, condition.term.0);
    put_debt(&mut out, &condition.debt);
    put_flag(&mut out, condition.has_snapshot);
    put_flag(&mut out, condition.stake.has_written);
    put_flag(&mut out, condition.stake.is_held);
    out[0] = match answer {
        Err(error) => {
            put_error(&mut out, error);
            0
        }
        Ok(Answer::Done) => 1,
        Ok(Answer::Flag(flag)) => {
            put_flag(&mut out, *flag);
            2
        }
        Ok(Answer::Flags(flags)) => {
            put_all(&mut out, flags, |out, flag| put_flag(out, *flag));
            20
        }
        Ok(Answer::Timestamp(timestamp)) => {
            put_flag(&mut out, timestamp.is_some());
            put_signed(&mut out, timestamp.map_or(0, |timestamp| timestamp.0));
            4
        }
        Ok(Answer::Row(row)) => {
            put_some(&mut out, row.as_deref());
            6
        }
        Ok(Answer::AllRows(rows)) => {
            put_all(&mut out, rows, |out, row| put_some(out, row.as_deref()));
            19
        }
        Ok(Answer::Rows(batch, rest)) => {
            put_flag(&mut out, rest.is_some());
            if let Some(rest) = rest {
                put_range(&mut out, rest);
            }
            put_varint(&mut out, batch.len() as u64);
            for (key, row) in batch.iter() {
                put_bytes(&mut out, key);
                put_bytes(&mut out, row);
            }
            7
        }
        Ok(Answer::Locked(locked, newest)) => {
            put_locked(&mut out, locked, newest);
            8
        }
        Ok(Answer::RowLocked(found)) => {
            put_flag(&mut out, found.is_some());
            if let Some((row, locked, newest)) = found {
                put_bytes(&mut out, row);
                put_locked(&mut out, locked, newest);
            }
            16
        }
        Ok(Answer::AllLocked(rows)) => {
            put_all(&mut out, rows, |out, (locked, newest)| {
                put_locked(out, locked, newest);
            });
            17
        }
        Ok(Answer::Taken(taken)) => {
            put_flag(&mut out, taken.is_some());
            let (post, tree) = taken.unwrap_or((Post(0), TreeId(0)));
            put_varint(&mut out, post.0);
            put_tree(&mut out, tree);
            18
        }
        Ok(Answer::Ticket(ticket)) => {
            put_ticket(&mut out, *ticket);
            9
        }
        Ok(Answer::Announced(all)) => {
            put_all(&mut out, all, put_announced);
            10
        }
        Ok(Answer::Inserted(inserted)) => {
            let duplicate = match inserted {
                Inserted::Done => None,
                Inserted::Duplicate(tree) => Some(*tree),
            };
            put_varint(&mut out, duplicate.map_or(0, |tree| tree.0));
            11
        }
        Ok(Answer::Built(built)) => {
            match built {
                Built::Done => out.push(0),
                Built::Duplicate { tree, row } => {
                    out.push(1);
                    put_tree(&mut out, *tree);
                    put_bytes(&mut out, row);
                }
                Built::NullKey { column } => {
                    out.push(2);
                    put_varint(&mut out, *column as u64);
                }
            }
            12
        }
        Ok(Answer::Sessions(sessions)) => {
            put_varint(&mut out, sessions.len() as u64);
            for session in sessions {
                put_varint(&mut out, session.0.into());
            }
            13
        }
        Ok(Answer::Locks(infos)) => {
            put_all(&mut out, infos, put_lock_info);
            15
        }
        Ok(Answer::Prepared(Prepared { proposed, voters })) => {
            put_signed(&mut out, proposed.0);
            put_varint(&mut out, voters.len() as u64);
            for voter in voters {
                put_varint(&mut out, voter.0);
            }
            14
        }
    };
    out
}

/// Reads what [`encode_answer`] made.
///
/// # Errors
/// XX001 when it is something else.
pub(super) fn decode_answer(frame: &[u8]) -> Result<(Result<Answer>, Condition)> {
    let mut reader = Reader::new(frame);
    let r = &mut reader;
    let kind = r.u8()?;
    let condition = Condition {
        term: Term(r.varint()?),
        debt: debt(r)?,
        has_snapshot: flag(r)?,
        stake: Stake {
            has_written: flag(r)?,
            is_held: flag(r)?,
        },
    };
    let answer = match kind {
        0 => return Ok((Err(error(r)?), condition)),
        1 => Answer::Done,
        2 => Answer::Flag(flag(r)?),
        20 => Answer::Flags(all(r, flag)?),
        4 => {
            let (is_there, timestamp) = (flag(r)?, Timestamp(r.signed()?));
            Answer::Timestamp(Some(timestamp).filter(|_| is_there))
        }
        6 => Answer::Row(some(r)?),
        19 => Answer::AllRows(all(r, some)?),
        7 => {
            let rest = match flag(r)? {
                true => Some(range(r)?),
                false => None,
            };
            let mut batch = RowBatch::default();
            for _ in 0..r.varint()? {
                batch.push(r.bytes()?, r.bytes()?);
            }
            Answer::Rows(batch, rest)
        }
        8 => {
            let (locked, newest) = locked(r)?;
            Answer::Locked(locked, newest)
        }
        16 => Answer::RowLocked(match flag(r)? {
            true => {
                let (row, (locked, newest)) = (owned(r)?, locked(r)?);
                Some((row, locked, newest))
            }
            false => None,
        }),
        17 => Answer::AllLocked(all(r, locked)?),
        18 => {
            let is_there = flag(r)?;
            let taken = (Post(r.varint()?), tree(r)?);
            Answer::Taken(is_there.then_some(taken))
        }
        9 => Answer::Ticket(ticket(r)?),
        10 => Answer::Announced(all(r, announced)?),
        11 => Answer::Inserted(match tree(r)? {
            TreeId(0) => Inserted::Done,
            tree => Inserted::Duplicate(tree),
        }),
        12 => Answer::Built(match r.u8()? {
            0 => Built::Done,
            1 => Built::Duplicate {
                tree: tree(r)?,
                row: owned(r)?,
            },
            2 => Built::NullKey {
                column: r.varint_as()?,
            },
            other => return Err(Error::corrupted(format!("something built of kind {other}"))),
        }),
        13 => {
            let count: usize = r.varint_as()?;
            let session = |_| Ok(SessionId(r.varint_as()?));
            Answer::Sessions((0..count).map(session).collect::<Result<_>>()?)
        }
        14 => Answer::Prepared(Prepared {
            proposed: Timestamp(r.signed()?),
            voters: {
                let count: usize = r.varint_as()?;
                let node = |_| Ok(NodeId(r.varint()?));
                (0..count).map(node).collect::<Result<_>>()?
            },
        }),
        15 => Answer::Locks(all(r, lock_info)?),
        other => return Err(Error::corrupted(format!("an answer of kind {other}"))),
    };
    reader.finish()?;
    Ok((Ok(answer), condition))
}

#[cfg(test)]
mod tests;
