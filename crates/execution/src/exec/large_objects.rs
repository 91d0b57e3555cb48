//! The functions of large objects.
//!
//! ```text
//! select lo_open(24576, 131072)     0, if the role may read and write the object
//! select lowrite(0, 'abc')          3, and the next goes on behind it
//! ```
//! Who has opened an object to read it alone sees what the statement saw that opened it; who may write it
//! sees it as it is, what others have committed meanwhile included. Who writes waits for others who write
//! the same object.
//!
//! # What it leaves out
//! In PostgreSQL two may write different pages of one object at once, and whoever comes second to the
//! same page fails. Files are those of the node that leads, and are not synced.
//!
//! Source: PostgreSQL 15 manual, chapter 35 (large objects).

use std::io::{ErrorKind, Read, Write};

use base::engine::{Isolation, RowLock, Transaction, ViewId};
use base::limits::VALUE_BYTES_MAX;
use base::{Error, Result, SqlState};

use super::Exec;
use crate::server_file::{beside, failed, said, Slot, BLOCK_BYTES};
use crate::state::large_objects::Descriptor;
use catalog::access::{denied, must_own, Privileges};
use catalog::large_object::{self, missing, Sight};
use catalog::large_object_pages::{Place, SIZE_MAX};
use catalog::{store, LargeObject};
use functions::session::LargeObjectFunction;
use types::growth::GrowingBytes;
use types::{Datum, TypeId};

/// In the mode of an open: to write.
const INV_WRITE: i64 = 0x2_0000;
/// To read.
const INV_READ: i64 = 0x4_0000;

/// Computes such a function.
pub(super) fn call(
    cx: &mut Exec<'_>,
    which: LargeObjectFunction,
    result: TypeId,
    args: &[Datum],
) -> Result<Datum> {
    let number = |place: usize| args.get(place).and_then(Datum::as_i64).unwrap_or(0);
    // Descriptors have four bytes.
    let descriptor = number(0) as i32;
    match which {
        LargeObjectFunction::Create => create(cx, oid(&args[0])?, "lo_create()").map(Datum::Oid),
        LargeObjectFunction::CreateAny => create(cx, 0, "lo_creat()").map(Datum::Oid),
        LargeObjectFunction::Open => open(cx, oid(&args[0])?, number(1)).map(Datum::Int4),
        LargeObjectFunction::Close => {
            let view = cx.host.session().large_objects.close(descriptor)?;
            give_up(cx, view);
            Ok(Datum::Int4(0))
        }
        LargeObjectFunction::Read => read(cx, descriptor, number(1)),
        LargeObjectFunction::Write => write(cx, descriptor, bytes(&args[1])?).map(Datum::Int4),
        LargeObjectFunction::Seek => {
            let offset = seek(cx, descriptor, number(1), number(2))?;
            position("lo_lseek", descriptor, offset, result)
        }
        LargeObjectFunction::Tell => {
            let open = cx.host.session().large_objects.get(descriptor)?;
            position("lo_tell", descriptor, open.offset, result)
        }
        LargeObjectFunction::Truncate => {
            truncate(cx, descriptor, number(1)).map(|()| Datum::Int4(0))
        }
        LargeObjectFunction::Unlink => unlink(cx, oid(&args[0])?).map(|()| Datum::Int4(1)),
        LargeObjectFunction::FromBytea => {
            let made = create(cx, oid(&args[0])?, "lo_from_bytea()")?;
            write_held(cx, made, 0, bytes(&args[1])?)?;
            Ok(Datum::Oid(made))
        }
        LargeObjectFunction::Get => {
            let part = (args.len() > 1).then(|| (number(1), number(2)));
            get(cx, oid(&args[0])?, part)
        }
        LargeObjectFunction::Put => {
            put(cx, oid(&args[0])?, number(1), bytes(&args[2])?).map(|()| Datum::Void)
        }
        LargeObjectFunction::Import => {
            let wanted = args.get(1).map(oid).transpose()?.unwrap_or(0);
            import(cx, args[0].as_str(), wanted).map(Datum::Oid)
        }
        LargeObjectFunction::Export => {
            export(cx, oid(&args[0])?, args[1].as_str()).map(|()| Datum::Int4(1))
        }
    }
}

fn oid(arg: &Datum) -> Result<u32> {
    match arg {
        Datum::Oid(oid) => Ok(*oid),
        _ => Err(Error::internal("a large object that is no oid")),
    }
}

fn bytes(arg: &Datum) -> Result<&[u8]> {
    match arg {
        Datum::Bytea(bytes) => Ok(bytes),
        _ => Err(Error::internal("data of a large object that are no bytes")),
    }
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn place(cx: &Exec<'_>, oid: u32) -> Place {
    Place {
        database: cx.catalog.database.oid,
        oid,
    }
}

/// Does something under the view of a descriptor; without one, as things are.
fn under<T>(
    cx: &mut Exec<'_>,
    view: Option<ViewId>,
    run: impl FnOnce(&mut dyn Transaction, Sight) -> Result<T>,
) -> Result<T> {
    let txn = cx.host.txn();
    let Some(view) = view else {
        return run(txn, Sight::Newest);
    };
    txn.swap_view(view)?;
    let outcome = run(txn, Sight::Statement);
    txn.swap_view(view)?;
    outcome
}

fn give_up(cx: &mut Exec<'_>, views: impl IntoIterator<Item = ViewId>) {
    for view in views {
        cx.host.txn().drop_view(view);
    }
}

// ---- Rights ----

fn find(cx: &mut Exec<'_>, oid: u32, sight: Sight) -> Result<LargeObject> {
    let database = cx.catalog.database.oid;
    let found = large_object::find(cx.host.txn(), database, oid, sight)?;
    found.ok_or_else(|| missing(oid))
}

/// # Errors
/// 42501 unless the role has these privileges on an object.
fn check_may(cx: &Exec<'_>, object: &LargeObject, asked: Privileges) -> Result<()> {
    let is_open = cx.host.shared().settings.parsed().open_large_objects;
    let held = cx.catalog.privileges(cx.role(), &object.acl(), asked);
    match is_open || held.has(asked) {
        true => Ok(()),
        false => Err(denied("large object", &object.oid.to_string())),
    }
}

/// # Errors
/// 25006 where nothing can be written: on a standby, and where nobody would be told of it at
/// SERIALIZABLE. Other transactions that only read may write large objects, as in PostgreSQL 15.
fn check_may_write(cx: &mut Exec<'_>, name: &str) -> Result<()> {
    let state = SqlState::READ_ONLY_SQL_TRANSACTION;
    if cx.host.shared().engine.cluster.is_standby() {
        let message = format!("cannot execute {name} during recovery");
        return Err(Error::new(state, message));
    }
    let only_reads = cx.host.shared().read_only || cx.host.shared().settings.made_read_only();
    match only_reads && cx.host.txn().isolation() == Isolation::Serializable {
        false => Ok(()),
        true => {
            let message = format!("cannot execute {name} in a read-only transaction");
            Err(Error::new(state, message))
        }
    }
}

// ---- Objects ----

/// Makes an empty object that belongs to the role; of any oid, for 0.
fn create(cx: &mut Exec<'_>, wanted: u32, name: &str) -> Result<u32> {
    check_may_write(cx, name)?;
    let database = cx.catalog.database.oid;
    let oid = match wanted {
        0 => free_oid(cx)?,
        oid => oid,
    };
    let made = LargeObject {
        oid,
        owner: cx.role(),
        acl: None,
    };
    large_object::insert(cx.host.txn(), database, &made)?;
    cx.host.session().large_objects.wrote = true;
    Ok(oid)
}

/// An oid that no object has: others may have been chosen.
fn free_oid(cx: &mut Exec<'_>) -> Result<u32> {
    let engine = cx.host.shared().engine.clone();
    let database = cx.catalog.database.oid;
    loop {
        let oid = store::new_oid(&*engine.sequences)?;
        if large_object::find(cx.host.txn(), database, oid, Sight::Newest)?.is_none() {
            return Ok(oid);
        }
    }
}

fn unlink(cx: &mut Exec<'_>, oid: u32) -> Result<()> {
    check_may_write(cx, "lo_unlink()")?;
    let object = find(cx, oid, Sight::Newest)?;
    let is_open = cx.host.shared().settings.parsed().open_large_objects;
    if !is_open && !cx.catalog.has_privileges_of(cx.role(), object.owner) {
        return Err(must_own("large object", &oid.to_string()));
    }
    let views = cx.host.session().large_objects.close_object(oid);
    give_up(cx, views);
    let database = cx.catalog.database.oid;
    let held = large_object::hold(cx.host.txn(), database, oid, RowLock::Update)?;
    if held.is_none() {
        return Err(missing(oid));
    }
    let had_comment = large_object::remove(cx.host.txn(), database, oid)?;
    let objects = &mut cx.host.session().large_objects;
    objects.wrote = true;
    objects.uncommented |= had_comment;
    Ok(())
}

/// Locks an object that is to be written.
fn hold(cx: &mut Exec<'_>, oid: u32) -> Result<()> {
    let (database, strength) = (cx.catalog.database.oid, RowLock::NoKeyUpdate);
    let held = large_object::hold(cx.host.txn(), database, oid, strength)?;
    held.map(drop).ok_or_else(|| missing(oid))?;
    cx.host.session().large_objects.wrote = true;
    Ok(())
}

fn write_held(cx: &mut Exec<'_>, oid: u32, offset: u64, data: &[u8]) -> Result<()> {
    place(cx, oid).write(cx.host.txn(), offset, data)
}

/// Writes bytes into an object; where that ends.
///
/// # Errors
/// 22023 for what would go beyond the end of all objects.
fn write_at(cx: &mut Exec<'_>, oid: u32, offset: u64, data: &[u8]) -> Result<u64> {
    if data.is_empty() {
        return Ok(offset);
    }
    let end = offset + data.len() as u64;
    if end > SIZE_MAX.unsigned_abs() {
        let length = data.len();
        let message = format!("invalid large object write request size: {length}");
        return Err(invalid(message));
    }
    hold(cx, oid)?;
    write_held(cx, oid, offset, data)?;
    Ok(end)
}

/// # Errors
/// 22023 for a place that no object has.
fn seek_target(offset: i64) -> Result<u64> {
    match u64::try_from(offset) {
        Ok(place) if offset <= SIZE_MAX => Ok(place),
        _ => Err(invalid(format!(
            "invalid large object seek target: {offset}"
        ))),
    }
}

/// `lo_get`: all of an object, or so many bytes from a place on.
fn get(cx: &mut Exec<'_>, oid: u32, part: Option<(i64, i64)>) -> Result<Datum> {
    let (offset, length) = part.unwrap_or((0, i64::MAX));
    if length < 0 {
        return Err(invalid("requested length cannot be negative".to_owned()));
    }
    let object = find(cx, oid, Sight::Statement)?;
    check_may(cx, &object, Privileges::SELECT)?;
    let place = place(cx, oid);
    let size = place.size(cx.host.txn(), Sight::Statement)?;
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let length = length.min(size.saturating_sub(offset)).max(0);
    if length.unsigned_abs() > VALUE_BYTES_MAX as u64 {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "large object read request is too large",
        ));
    }
    let part = (seek_target(offset)?, length.unsigned_abs());
    let mut out = GrowingBytes::default();
    place.read(cx.host.txn(), Sight::Statement, part, &mut |data| {
        out.extend(data)
    })?;
    Ok(Datum::Bytea(out.into_bytes().into()))
}

/// `lo_put`.
fn put(cx: &mut Exec<'_>, oid: u32, offset: i64, data: &[u8]) -> Result<()> {
    check_may_write(cx, "lo_put()")?;
    let object = find(cx, oid, Sight::Newest)?;
    check_may(cx, &object, Privileges::SELECT)?;
    check_may(cx, &object, Privileges::UPDATE)?;
    write_at(cx, oid, seek_target(offset)?, data)?;
    Ok(())
}

// ---- Descriptors ----

fn open(cx: &mut Exec<'_>, oid: u32, mode: i64) -> Result<i32> {
    let writes = mode & INV_WRITE != 0;
    if !writes && mode & INV_READ == 0 {
        let message = format!("invalid flags for opening a large object: {mode}");
        return Err(invalid(message));
    }
    if writes {
        check_may_write(cx, "lo_open(INV_WRITE)")?;
    }
    let sight = match writes {
        true => Sight::Newest,
        false => Sight::Statement,
    };
    let object = find(cx, oid, sight)?;
    check_may(cx, &object, Privileges::SELECT)?;
    let view = match writes {
        true => {
            check_may(cx, &object, Privileges::UPDATE)?;
            None
        }
        false => Some(cx.host.txn().keep_view()?),
    };
    let opened = cx.host.session().large_objects.open(oid, view);
    if opened.is_err() {
        give_up(cx, view);
    }
    opened
}

fn read(cx: &mut Exec<'_>, descriptor: i32, length: i64) -> Result<Datum> {
    let open = cx.host.session().large_objects.get(descriptor)?;
    let (place, length) = (place(cx, open.oid), u64::try_from(length).unwrap_or(0));
    let mut out = GrowingBytes::default();
    let part = (open.offset, length);
    let count = under(cx, open.view, |txn, sight| {
        place.read(txn, sight, part, &mut |data| out.extend(data))
    })?;
    let objects = &mut cx.host.session().large_objects;
    objects.seek(descriptor, open.offset + count)?;
    Ok(Datum::Bytea(out.into_bytes().into()))
}

/// The object of a descriptor that writes.
///
/// # Errors
/// 42704; 55000 for one that was opened to be read.
fn written(cx: &mut Exec<'_>, descriptor: i32) -> Result<Descriptor> {
    let open = cx.host.session().large_objects.get(descriptor)?;
    match open.view {
        None => Ok(open),
        Some(_) => Err(Error::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("large object descriptor {descriptor} was not opened for writing"),
        )),
    }
}

fn write(cx: &mut Exec<'_>, descriptor: i32, data: &[u8]) -> Result<i32> {
    let open = written(cx, descriptor)?;
    let end = write_at(cx, open.oid, open.offset, data)?;
    cx.host.session().large_objects.seek(descriptor, end)?;
    i32::try_from(data.len()).map_err(|_| Error::internal("a value beyond its limit"))
}

fn seek(cx: &mut Exec<'_>, descriptor: i32, offset: i64, whence: i64) -> Result<u64> {
    let open = cx.host.session().large_objects.get(descriptor)?;
    let place = place(cx, open.oid);
    let from = match whence {
        0 => 0,
        1 => open.offset,
        2 => under(cx, open.view, |txn, sight| place.size(txn, sight))?,
        _ => return Err(invalid(format!("invalid whence setting: {whence}"))),
    };
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let offset = seek_target(from.wrapping_add(offset))?;
    cx.host.session().large_objects.seek(descriptor, offset)?;
    Ok(offset)
}

/// A place in an object, as a function gives it that has this result.
///
/// # Errors
/// 22003 where four bytes are too few.
fn position(name: &str, descriptor: i32, offset: u64, result: TypeId) -> Result<Datum> {
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    if result == TypeId::INT8 {
        return Ok(Datum::Int8(offset));
    }
    i32::try_from(offset).map(Datum::Int4).map_err(|_| {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{name} result out of range for large-object descriptor {descriptor}"),
        )
    })
}

fn truncate(cx: &mut Exec<'_>, descriptor: i32, size: i64) -> Result<()> {
    let open = written(cx, descriptor)?;
    if !(0..=SIZE_MAX).contains(&size) {
        let message = format!("invalid large object truncation target: {size}");
        return Err(invalid(message));
    }
    hold(cx, open.oid)?;
    let place = place(cx, open.oid);
    place.truncate(cx.host.txn(), size.unsigned_abs())
}

// ---- Files of the server ----

const FILE: &str = "file of a large object";

fn import(cx: &mut Exec<'_>, path: &str, wanted: u32) -> Result<u32> {
    let env = cx.host.shared().env.clone();
    let (there, name) = (env.clone(), path.to_owned());
    let opened = beside(&env, FILE, move || there.read_server_file(&name))?;
    let refused = |what: &str, cause: &std::io::Error| {
        let message = format!("could not {what} server file \"{path}\": {}", said(cause));
        failed(message, cause)
    };
    let file = opened.map_err(|cause| match cause.kind() {
        // What cannot be read is a directory that can be opened.
        ErrorKind::IsADirectory => refused("read", &cause),
        _ => refused("open", &cause),
    })?;
    let file: Slot<_> = Slot::new(base::sync::Mutex::new(Some(file)));
    let made = create(cx, wanted, "lo_import()")?;
    let mut offset = 0;
    loop {
        let file = file.clone();
        let block = beside(&env, FILE, move || {
            let mut block = Vec::with_capacity(BLOCK_BYTES);
            let mut file = file.lock();
            let read = file.as_mut().map_or(Ok(0), |file| {
                let mut part = file.by_ref().take(BLOCK_BYTES as u64);
                part.read_to_end(&mut block)
            });
            read.map(|_| block)
        })?;
        let block = block.map_err(|cause| refused("read", &cause))?;
        if block.is_empty() {
            return Ok(made);
        }
        offset = write_at(cx, made, offset, &block)?;
    }
}

fn export(cx: &mut Exec<'_>, oid: u32, path: &str) -> Result<()> {
    let object = find(cx, oid, Sight::Statement)?;
    check_may(cx, &object, Privileges::SELECT)?;
    let env = cx.host.shared().env.clone();
    let (there, name) = (env.clone(), path.to_owned());
    let opened = beside(&env, FILE, move || there.write_server_file(&name))?;
    let refused = |what: &str, cause: &std::io::Error| {
        let message = format!("could not {what} server file \"{path}\": {}", said(cause));
        failed(message, cause)
    };
    let file = opened.map_err(|cause| refused("create", &cause))?;
    let file: Slot<_> = Slot::new(base::sync::Mutex::new(Some(file)));
    let place = place(cx, oid);
    let mut offset = 0;
    loop {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let part = (offset, BLOCK_BYTES as u64);
        let count = place.read(cx.host.txn(), Sight::Statement, part, &mut |data| {
            block.extend_from_slice(data);
            Ok(())
        })?;
        if count == 0 {
            return Ok(());
        }
        offset += count;
        let file = file.clone();
        let written = beside(&env, FILE, move || {
            let mut file = file.lock();
            file.as_mut().map_or(Ok(()), |file| file.write_all(&block))
        })?;
        written.map_err(|cause| refused("write", &cause))?;
    }
}

/// What messages call an object; NULL for one that is not there.
pub(super) fn described(cx: &mut Exec<'_>, oid: u32) -> Result<Datum> {
    let database = cx.catalog.database.oid;
    let found = large_object::find(cx.host.txn(), database, oid, Sight::Newest)?;
    Ok(found.map_or(Datum::Null, |_| Datum::text(format!("large object {oid}"))))
}
