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
//!   NextCommand, Insert 40, key, row ──────────►   waits for a lock …
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

use std::time::Duration;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{
    Announced, Build, Built, Direction, IndexDescriptor, Inserted, Isolation, LockInfo, LockTarget,
    LockWait, LockedRow, Rekeyed, RowBatch, RowKey, RowLock, TableLock, Ticket, TreeDescriptor,
    TreeKind, TxnOptions,
};
use base::{
    Debt, Durability, Error, ErrorClass, GroupId, Key, KeyRange, Lsn, NodeId, Position, Result,
    SequenceId, SessionId, SqlState, Term, Timestamp, TreeId,
};

use super::prepare::{Prepared, Preparing};
use super::Stake;
use crate::locks::mode_named;
use crate::parts::codec;

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
    // What is wrong with these, the next answer says.
    /// A transaction begins in a group, of a session whose node leads the first group in a term.
    Begin(GroupId, Term, TxnOptions),
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
    GetToLock(TreeId, Key, RowLock),
    Scan(TreeId, KeyRange, Direction, u64),
    ScanNewest(TreeId, KeyRange, Direction, u64),
    LockRow(TreeId, Key, RowLock, LockWait),
    LockRowInTheWay(TreeId, Key, RowLock),
    LockKey(TreeId, Key, RowLock, LockWait),
    WaitForKey(TreeId, Key, RowLock),
    Announce(TreeId, Key, Vec<u8>),
    Announced(TreeId, Vec<u8>, Ticket),
    WaitForAnnounced(Announced),
    LockTable(TreeId, TableLock, LockWait),
    Insert(TreeId, Key, Vec<u8>),
    InsertNew(TreeId, Key, Vec<u8>),
    Update(TreeId, Key, Vec<u8>),
    Delete(TreeId, Key),
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
                | Call::Begin(..)
                | Call::BeginStatement
                | Call::TakeView
        )
    }
}

/// What a call is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    Flag(bool),
    Timestamp(Option<Timestamp>),
    Row(Option<Vec<u8>>),
    Rows(RowBatch, Option<KeyRange>),
    Locked(LockedRow, Vec<u8>),
    Ticket(Ticket),
    Announced(Vec<Announced>),
    Inserted(Inserted),
    Built(Built),
    Sessions(Vec<SessionId>),
    Prepared(Prepared),
    Locks(Vec<LockInfo>),
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

const LOCKS: [RowLock; 4] = [
    RowLock::KeyShare,
    RowLock::Share,
    RowLock::NoKeyUpdate,
    RowLock::Update,
];

const TABLE_LOCKS: [TableLock; 8] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

const WAITS: [LockWait; 3] = [LockWait::Block, LockWait::NoWait, LockWait::Skip];

const LOCKED: [LockedRow; 4] = [
    LockedRow::Unchanged,
    LockedRow::Changed,
    LockedRow::Gone,
    LockedRow::Skipped,
];

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

const ISOLATIONS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

const CLASSES: [ErrorClass; 4] = [
    ErrorClass::User,
    ErrorClass::Engine,
    ErrorClass::Session,
    ErrorClass::Node,
];

/// Appends which of all there are it is.
fn put_one_of<T: PartialEq>(out: &mut Vec<u8>, all: &[T], one: &T) {
    let place = all.iter().position(|other| other == one);
    out.push(place.map_or(u8::MAX, |place| place as u8));
}

fn one_of<T: Copy>(reader: &mut Reader<'_>, all: &[T]) -> Result<T> {
    let code = reader.u8()?;
    let found = all.get(usize::from(code)).copied();
    found.ok_or_else(|| Error::corrupted(format!("{code} is one of {}", all.len())))
}

fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    Ok(reader.u8()? != 0)
}

fn put_some(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_flag(out, bytes.is_some());
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

fn some(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>> {
    match flag(reader)? {
        true => Ok(Some(reader.bytes()?.to_vec())),
        false => Ok(None),
    }
}

fn owned(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    Ok(reader.bytes()?.to_vec())
}

fn put_tree(out: &mut Vec<u8>, tree: TreeId) {
    put_varint(out, tree.0);
}

fn tree(reader: &mut Reader<'_>) -> Result<TreeId> {
    Ok(TreeId(reader.varint()?))
}

fn put_row(out: &mut Vec<u8>, tree: TreeId, key: &[u8]) {
    put_tree(out, tree);
    put_bytes(out, key);
}

fn put_range(out: &mut Vec<u8>, range: &KeyRange) {
    put_bytes(out, &range.start);
    put_some(out, range.end.as_deref());
}

fn range(reader: &mut Reader<'_>) -> Result<KeyRange> {
    Ok(KeyRange {
        start: owned(reader)?,
        end: some(reader)?,
    })
}

fn put_ticket(out: &mut Vec<u8>, ticket: Ticket) {
    put_varint(out, ticket.number);
    put_varint(out, ticket.mark as u64);
}

fn ticket(reader: &mut Reader<'_>) -> Result<Ticket> {
    Ok(Ticket {
        number: reader.varint()?,
        mark: reader.varint_as()?,
    })
}

fn put_announced(out: &mut Vec<u8>, announced: &Announced) {
    put_bytes(out, &announced.name);
    put_some(out, announced.note.as_deref());
}

fn announced(reader: &mut Reader<'_>) -> Result<Announced> {
    Ok(Announced {
        name: owned(reader)?,
        note: some(reader)?,
    })
}

fn put_durability(out: &mut Vec<u8>, durability: Durability) {
    put_one_of(out, &Durability::ALL, &durability);
}

fn durability(reader: &mut Reader<'_>) -> Result<Durability> {
    one_of(reader, &Durability::ALL)
}

/// What becomes of a transaction is noted in the first group alone, and it reads on no standby.
fn put_options(out: &mut Vec<u8>, options: &TxnOptions) {
    put_one_of(out, &ISOLATIONS, &options.isolation);
    put_flag(out, options.read_only);
    put_flag(out, options.deferrable);
    put_varint(out, options.session.map_or(0, |session| session.0.into()));
}

fn options(reader: &mut Reader<'_>) -> Result<TxnOptions> {
    Ok(TxnOptions {
        isolation: one_of(reader, &ISOLATIONS)?,
        read_only: flag(reader)?,
        deferrable: flag(reader)?,
        session: Some(reader.varint_as()?)
            .filter(|session| *session != 0)
            .map(SessionId),
        ..TxnOptions::default()
    })
}

fn put_index(out: &mut Vec<u8>, id: TreeId, index: &IndexDescriptor) {
    let kind = TreeKind::Index(index.clone());
    put_bytes(out, &TreeDescriptor { id, kind }.to_row());
}

fn index(reader: &mut Reader<'_>) -> Result<(TreeId, IndexDescriptor)> {
    let descriptor = TreeDescriptor::from_row(reader.bytes()?)?;
    match descriptor.kind {
        TreeKind::Index(index) => Ok((descriptor.id, index)),
        TreeKind::Table => Err(Error::corrupted("an index that is a table")),
    }
}

fn put_build(out: &mut Vec<u8>, build: &Build) {
    put_tree(out, build.source);
    put_flag(out, build.rekeyed.is_some());
    if let Some(Rekeyed { tree, key }) = &build.rekeyed {
        put_tree(out, *tree);
        match key {
            RowKey::Columns(columns) => {
                put_flag(out, true);
                put_index(out, *tree, columns);
            }
            RowKey::Numbers(sequence) => {
                put_flag(out, false);
                put_varint(out, sequence.0);
            }
        }
    }
    put_varint(out, build.indexes.len() as u64);
    for (id, descriptor) in &build.indexes {
        put_index(out, *id, descriptor);
    }
}

fn build(reader: &mut Reader<'_>) -> Result<Build> {
    let source = tree(reader)?;
    let rekeyed = match flag(reader)? {
        false => None,
        true => Some(Rekeyed {
            tree: tree(reader)?,
            key: match flag(reader)? {
                true => RowKey::Columns(index(reader)?.1),
                false => RowKey::Numbers(SequenceId(reader.varint()?)),
            },
        }),
    };
    let count: usize = reader.varint_as()?;
    let indexes = (0..count).map(|_| index(reader)).collect::<Result<_>>()?;
    Ok(Build {
        source,
        rekeyed,
        indexes,
    })
}

fn put_preparing(out: &mut Vec<u8>, preparing: &Preparing) {
    codec::put_id(out, preparing.id);
    put_varint(out, preparing.unfinished);
    codec::put_participants(out, &preparing.participants);
    put_signed(out, preparing.heard.0);
    put_durability(out, preparing.durability);
}

fn preparing(reader: &mut Reader<'_>) -> Result<Preparing> {
    Ok(Preparing {
        id: codec::id(reader)?,
        unfinished: reader.varint()?,
        participants: codec::participants(reader)?,
        heard: Timestamp(reader.signed()?),
        durability: durability(reader)?,
    })
}

impl Call {
    /// Appends it to a frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let code = out.len();
        out.push(0);
        out[code] = match self {
            Call::Begin(group, term, options) => {
                put_varint(out, group.0.into());
                put_varint(out, term.0);
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
            1 => Call::Begin(GroupId(r.varint_as()?), Term(r.varint()?), options(r)?),
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
            31 => Call::LockKey(tree(r)?, owned(r)?, one_of(r, &LOCKS)?, one_of(r, &WAITS)?),
            32 => Call::WaitForKey(tree(r)?, owned(r)?, one_of(r, &LOCKS)?),
            33 => Call::Announce(tree(r)?, owned(r)?, owned(r)?),
            34 => Call::Announced(tree(r)?, owned(r)?, ticket(r)?),
            35 => Call::WaitForAnnounced(announced(r)?),
            36 => Call::LockTable(tree(r)?, one_of(r, &TABLE_LOCKS)?, one_of(r, &WAITS)?),
            37 => Call::Insert(tree(r)?, owned(r)?, owned(r)?),
            38 => Call::InsertNew(tree(r)?, owned(r)?, owned(r)?),
            39 => Call::Update(tree(r)?, owned(r)?, owned(r)?),
            40 => Call::Delete(tree(r)?, owned(r)?),
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

fn put_debt(out: &mut Vec<u8>, debt: &Debt) {
    put_varint(out, debt.groups().count() as u64);
    for part in debt.groups() {
        put_varint(out, part.group.0.into());
        put_varint(out, part.position.term.0);
        put_varint(out, part.position.lsn.0);
    }
}

fn debt(reader: &mut Reader<'_>) -> Result<Debt> {
    let mut debt = Debt::NONE;
    for _ in 0..reader.varint()? {
        let group = GroupId(reader.varint_as()?);
        let (term, lsn) = (Term(reader.varint()?), Lsn(reader.varint()?));
        debt.add(group, Position { term, lsn });
    }
    Ok(debt)
}

fn put_lock_info(out: &mut Vec<u8>, info: &LockInfo) {
    let (tree, key) = match &info.target {
        LockTarget::Tree(tree) => (*tree, None),
        LockTarget::Row(tree, key) => (*tree, Some(&key[..])),
        // They are in the first group, of which nobody asks.
        LockTarget::Advisory(_) => (TreeId(0), None),
    };
    put_tree(out, tree);
    put_some(out, key);
    put_varint(out, info.session.map_or(0, |session| session.0.into()));
    put_bytes(out, info.mode.as_bytes());
    put_flag(out, info.granted);
    put_flag(out, info.waits_since.is_some());
    put_signed(out, info.waits_since.map_or(0, |since| since.0));
}

fn lock_info(r: &mut Reader<'_>) -> Result<LockInfo> {
    let of = tree(r)?;
    let target = match some(r)? {
        Some(key) => LockTarget::Row(of, key),
        None => LockTarget::Tree(of),
    };
    let session = Some(SessionId(r.varint_as()?)).filter(|session| session.0 > 0);
    let mode = mode_named(r.str()?);
    let mode = mode.ok_or_else(|| Error::corrupted("a lock of no mode"))?;
    let (granted, waits) = (flag(r)?, flag(r)?);
    let waits_since = Some(Timestamp(r.signed()?)).filter(|_| waits);
    Ok(LockInfo {
        target,
        session,
        mode,
        granted,
        waits_since,
    })
}

fn put_error(out: &mut Vec<u8>, error: &Error) {
    put_bytes(out, error.state().as_str().as_bytes());
    put_one_of(out, &CLASSES, &error.class());
    put_bytes(out, error.message().as_bytes());
    let fields = error.fields();
    for text in [&fields.detail, &fields.hint] {
        put_some(out, text.as_deref().map(str::as_bytes));
    }
}

fn error(reader: &mut Reader<'_>) -> Result<Error> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let state = SqlState::parse(reader.str()?).unwrap_or(SqlState::INTERNAL_ERROR);
    let class = one_of(reader, &CLASSES)?;
    let mut error = Error::of_class(class, state, reader.str()?);
    error.fields_mut().detail = some(reader)?.map(text);
    error.fields_mut().hint = some(reader)?.map(text);
    Ok(error)
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
        Ok(Answer::Timestamp(timestamp)) => {
            put_flag(&mut out, timestamp.is_some());
            put_signed(&mut out, timestamp.map_or(0, |timestamp| timestamp.0));
            4
        }
        Ok(Answer::Row(row)) => {
            put_some(&mut out, row.as_deref());
            6
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
            put_one_of(&mut out, &LOCKED, locked);
            put_bytes(&mut out, newest);
            8
        }
        Ok(Answer::Ticket(ticket)) => {
            put_ticket(&mut out, *ticket);
            9
        }
        Ok(Answer::Announced(all)) => {
            put_varint(&mut out, all.len() as u64);
            all.iter().for_each(|one| put_announced(&mut out, one));
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
            put_varint(&mut out, infos.len() as u64);
            infos.iter().for_each(|info| put_lock_info(&mut out, info));
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
        4 => {
            let (is_there, timestamp) = (flag(r)?, Timestamp(r.signed()?));
            Answer::Timestamp(Some(timestamp).filter(|_| is_there))
        }
        6 => Answer::Row(some(r)?),
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
        8 => Answer::Locked(one_of(r, &LOCKED)?, owned(r)?),
        9 => Answer::Ticket(ticket(r)?),
        10 => {
            let count: usize = r.varint_as()?;
            Answer::Announced((0..count).map(|_| announced(r)).collect::<Result<_>>()?)
        }
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
        15 => {
            let count: usize = r.varint_as()?;
            Answer::Locks((0..count).map(|_| lock_info(r)).collect::<Result<_>>()?)
        }
        other => return Err(Error::corrupted(format!("an answer of kind {other}"))),
    };
    reader.finish()?;
    Ok((Ok(answer), condition))
}

#[cfg(test)]
mod tests;
