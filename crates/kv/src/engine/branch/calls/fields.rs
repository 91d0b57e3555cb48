//! What calls and answers are made of, field by field.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::engine::{
    Announced, Build, Direction, IndexDescriptor, Isolation, LockInfo, LockTarget, LockWait,
    LockedRow, Rekeyed, RowKey, RowLock, TableLock, Ticket, TreeDescriptor, TreeKind, TxnOptions,
};
use base::{
    Debt, Durability, Error, ErrorClass, GroupId, KeyRange, Lsn, Position, Result, SequenceId,
    SessionId, SqlState, Term, Timestamp, TreeId,
};

use super::super::prepare::Preparing;
use crate::locks::mode_named;
use crate::parts::codec;

pub const LOCKS: [RowLock; 4] = [
    RowLock::KeyShare,
    RowLock::Share,
    RowLock::NoKeyUpdate,
    RowLock::Update,
];

pub const TABLE_LOCKS: [TableLock; 8] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

pub const WAITS: [LockWait; 3] = [LockWait::Block, LockWait::NoWait, LockWait::Skip];

pub const LOCKED: [LockedRow; 4] = [
    LockedRow::Unchanged,
    LockedRow::Changed,
    LockedRow::Gone,
    LockedRow::Skipped,
];

pub const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

pub const ISOLATIONS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

pub const CLASSES: [ErrorClass; 4] = [
    ErrorClass::User,
    ErrorClass::Engine,
    ErrorClass::Session,
    ErrorClass::Node,
];

/// Appends which of all there are it is.
pub fn put_one_of<T: PartialEq>(out: &mut Vec<u8>, all: &[T], one: &T) {
    let place = all.iter().position(|other| other == one);
    out.push(place.map_or(u8::MAX, |place| place as u8));
}

pub fn one_of<T: Copy>(reader: &mut Reader<'_>, all: &[T]) -> Result<T> {
    let code = reader.u8()?;
    let found = all.get(usize::from(code)).copied();
    found.ok_or_else(|| Error::corrupted(format!("{code} is one of {}", all.len())))
}

pub fn put_flag(out: &mut Vec<u8>, flag: bool) {
    out.push(u8::from(flag));
}

pub fn flag(reader: &mut Reader<'_>) -> Result<bool> {
    Ok(reader.u8()? != 0)
}

pub fn put_some(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    put_flag(out, bytes.is_some());
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

pub fn some(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>> {
    match flag(reader)? {
        true => Ok(Some(reader.bytes()?.to_vec())),
        false => Ok(None),
    }
}

pub fn owned(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    Ok(reader.bytes()?.to_vec())
}

/// Appends how many there are, and each.
pub fn put_all<T>(out: &mut Vec<u8>, all: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(out, all.len() as u64);
    all.iter().for_each(|one| put(out, one));
}

pub fn all<T>(
    reader: &mut Reader<'_>,
    one: impl Fn(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count: usize = reader.varint_as()?;
    (0..count).map(|_| one(reader)).collect()
}

pub fn put_locked(out: &mut Vec<u8>, locked: &LockedRow, newest: &[u8]) {
    put_one_of(out, &LOCKED, locked);
    put_bytes(out, newest);
}

pub fn locked(reader: &mut Reader<'_>) -> Result<(LockedRow, Vec<u8>)> {
    Ok((one_of(reader, &LOCKED)?, owned(reader)?))
}

pub fn put_tree(out: &mut Vec<u8>, tree: TreeId) {
    put_varint(out, tree.0);
}

pub fn tree(reader: &mut Reader<'_>) -> Result<TreeId> {
    Ok(TreeId(reader.varint()?))
}

pub fn put_row(out: &mut Vec<u8>, tree: TreeId, key: &[u8]) {
    put_tree(out, tree);
    put_bytes(out, key);
}

pub fn put_range(out: &mut Vec<u8>, range: &KeyRange) {
    put_bytes(out, &range.start);
    put_some(out, range.end.as_deref());
}

pub fn range(reader: &mut Reader<'_>) -> Result<KeyRange> {
    Ok(KeyRange {
        start: owned(reader)?,
        end: some(reader)?,
    })
}

pub fn put_ticket(out: &mut Vec<u8>, ticket: Ticket) {
    put_varint(out, ticket.number);
    put_varint(out, ticket.mark as u64);
}

pub fn ticket(reader: &mut Reader<'_>) -> Result<Ticket> {
    Ok(Ticket {
        number: reader.varint()?,
        mark: reader.varint_as()?,
    })
}

pub fn put_announced(out: &mut Vec<u8>, announced: &Announced) {
    put_bytes(out, &announced.name);
    put_some(out, announced.note.as_deref());
}

pub fn announced(reader: &mut Reader<'_>) -> Result<Announced> {
    Ok(Announced {
        name: owned(reader)?,
        note: some(reader)?,
    })
}

pub fn put_durability(out: &mut Vec<u8>, durability: Durability) {
    put_one_of(out, &Durability::ALL, &durability);
}

pub fn durability(reader: &mut Reader<'_>) -> Result<Durability> {
    one_of(reader, &Durability::ALL)
}

/// What becomes of a transaction is noted in the first group alone, and it reads on no standby.
pub fn put_options(out: &mut Vec<u8>, options: &TxnOptions) {
    put_one_of(out, &ISOLATIONS, &options.isolation);
    put_flag(out, options.read_only);
    put_flag(out, options.deferrable);
    put_varint(out, options.session.map_or(0, |session| session.0.into()));
}

pub fn options(reader: &mut Reader<'_>) -> Result<TxnOptions> {
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

pub fn put_index(out: &mut Vec<u8>, id: TreeId, index: &IndexDescriptor) {
    let kind = TreeKind::Index(index.clone());
    put_bytes(out, &TreeDescriptor { id, kind }.to_row());
}

pub fn index(reader: &mut Reader<'_>) -> Result<(TreeId, IndexDescriptor)> {
    let descriptor = TreeDescriptor::from_row(reader.bytes()?)?;
    match descriptor.kind {
        TreeKind::Index(index) => Ok((descriptor.id, index)),
        TreeKind::Table => Err(Error::corrupted("an index that is a table")),
    }
}

pub fn put_build(out: &mut Vec<u8>, build: &Build) {
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

pub fn build(reader: &mut Reader<'_>) -> Result<Build> {
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

pub fn put_preparing(out: &mut Vec<u8>, preparing: &Preparing) {
    codec::put_id(out, preparing.id);
    put_varint(out, preparing.unfinished);
    codec::put_participants(out, &preparing.participants);
    put_signed(out, preparing.heard.0);
    put_durability(out, preparing.durability);
}

pub fn preparing(reader: &mut Reader<'_>) -> Result<Preparing> {
    Ok(Preparing {
        id: codec::id(reader)?,
        unfinished: reader.varint()?,
        participants: codec::participants(reader)?,
        heard: Timestamp(reader.signed()?),
        durability: durability(reader)?,
    })
}

pub fn put_debt(out: &mut Vec<u8>, debt: &Debt) {
    put_varint(out, debt.groups().count() as u64);
    for part in debt.groups() {
        put_varint(out, part.group.0.into());
        put_varint(out, part.position.term.0);
        put_varint(out, part.position.lsn.0);
    }
}

pub fn debt(reader: &mut Reader<'_>) -> Result<Debt> {
    let mut debt = Debt::NONE;
    for _ in 0..reader.varint()? {
        let group = GroupId(reader.varint_as()?);
        let (term, lsn) = (Term(reader.varint()?), Lsn(reader.varint()?));
        debt.add(group, Position { term, lsn });
    }
    Ok(debt)
}

pub fn put_lock_info(out: &mut Vec<u8>, info: &LockInfo) {
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

pub fn lock_info(r: &mut Reader<'_>) -> Result<LockInfo> {
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

pub fn put_error(out: &mut Vec<u8>, error: &Error) {
    put_bytes(out, error.state().as_str().as_bytes());
    put_one_of(out, &CLASSES, &error.class());
    put_bytes(out, error.message().as_bytes());
    let fields = error.fields();
    for text in [&fields.detail, &fields.hint] {
        put_some(out, text.as_deref().map(str::as_bytes));
    }
}

pub fn error(reader: &mut Reader<'_>) -> Result<Error> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let state = SqlState::parse(reader.str()?).unwrap_or(SqlState::INTERNAL_ERROR);
    let class = one_of(reader, &CLASSES)?;
    let mut error = Error::of_class(class, state, reader.str()?);
    error.fields_mut().detail = some(reader)?.map(text);
    error.fields_mut().hint = some(reader)?.map(text);
    Ok(error)
}
