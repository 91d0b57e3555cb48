//! Advisory locks, and who waits for whom (PostgreSQL 15 manual, sections 9.27.10 and 9.26.1).
//!
//! The names of the functions say everything: `pg_[try_]advisory_[xact_]lock[_shared]`,
//! `pg_advisory_unlock[_shared]`, `pg_advisory_unlock_all`; [`AdvisoryFunction`] lists them.

use std::sync::Arc;

use base::engine::{AdvisoryKey, AdvisoryMode, LockWait, SessionLocks};
use base::{Error, Result, SessionId, SqlState};

use super::Exec;
use crate::state::Shared;
use functions::session::AdvisoryFunction;
use types::{Array, Datum, TypeId};

/// Computes such a function. None of its arguments is NULL.
pub fn call(cx: &mut Exec<'_>, which: AdvisoryFunction, args: &[Datum]) -> Result<Datum> {
    use AdvisoryFunction as Function;
    use AdvisoryMode::{Exclusive, Shared};
    let held = |waited: Result<bool>| waited.map(|_| Datum::Void);
    let tried = |locked: Result<bool>| locked.map(Datum::Bool);
    match which {
        Function::Lock => held(lock(cx, args, Exclusive, LockWait::Block)),
        Function::LockShared => held(lock(cx, args, Shared, LockWait::Block)),
        Function::TryLock => tried(lock(cx, args, Exclusive, LockWait::Skip)),
        Function::TryLockShared => tried(lock(cx, args, Shared, LockWait::Skip)),
        Function::XactLock => held(xact_lock(cx, args, Exclusive, LockWait::Block)),
        Function::XactLockShared => held(xact_lock(cx, args, Shared, LockWait::Block)),
        Function::TryXactLock => tried(xact_lock(cx, args, Exclusive, LockWait::Skip)),
        Function::TryXactLockShared => tried(xact_lock(cx, args, Shared, LockWait::Skip)),
        Function::Unlock => unlock(cx, args, Exclusive),
        Function::UnlockShared => unlock(cx, args, Shared),
        Function::UnlockAll => {
            if let Some(locks) = &mut cx.host.session().advisory {
                locks.unlock_all();
            }
            Ok(Datum::Void)
        }
        Function::BlockingPids => Ok(pids(&blockers(cx, args)?)),
        Function::SnapshotBlockingPids => Ok(pids(&snapshot_blockers(cx, args)?)),
        Function::IsBlocked => is_blocked(cx, args),
    }
}

/// Takes a lock until the session gives it back; whether it has it.
fn lock(cx: &mut Exec<'_>, args: &[Datum], mode: AdvisoryMode, wait: LockWait) -> Result<bool> {
    let key = key(cx, args)?;
    session_locks(cx.host.session())?.lock(key, mode, wait)
}

/// Takes a lock until the transaction ends; whether it has it.
fn xact_lock(
    cx: &mut Exec<'_>,
    args: &[Datum],
    mode: AdvisoryMode,
    wait: LockWait,
) -> Result<bool> {
    let key = key(cx, args)?;
    cx.host.txn().advisory()?.lock_advisory(key, mode, wait)
}

fn unlock(cx: &mut Exec<'_>, args: &[Datum], mode: AdvisoryMode) -> Result<Datum> {
    let key = key(cx, args)?;
    let locks = &mut cx.host.session().advisory;
    let unlocked = locks.as_mut().is_some_and(|locks| locks.unlock(key, mode));
    if !unlocked {
        let mode = match mode {
            AdvisoryMode::Shared => "ShareLock",
            AdvisoryMode::Exclusive => "ExclusiveLock",
        };
        cx.host.session().warnings.push(Error::new(
            SqlState::WARNING,
            format!("you don't own a lock of type {mode}"),
        ));
    }
    Ok(Datum::Bool(unlocked))
}

fn key(cx: &Exec<'_>, args: &[Datum]) -> Result<AdvisoryKey> {
    let database = cx.catalog.database.oid;
    match args {
        [Datum::Int8(number)] => Ok(AdvisoryKey {
            database,
            class: (*number >> 32) as u32,
            object: *number as u32,
            two: false,
        }),
        [Datum::Int4(class), Datum::Int4(object)] => Ok(AdvisoryKey {
            database,
            class: *class as u32,
            object: *object as u32,
            two: true,
        }),
        _ => Err(Error::internal("an advisory lock is named by numbers")),
    }
}

/// The session's own locks, with the lock timeout of now.
fn session_locks(session: &mut Shared) -> Result<&mut Box<dyn SessionLocks>> {
    let timeout = session.settings.parsed().lock_timeout;
    let locks = match session.advisory.take() {
        Some(locks) => locks,
        None => {
            let number = SessionId(session.start.backend_pid as u32);
            session.engine.locks()?.session_locks(number)?
        }
    };
    let locks = session.advisory.insert(locks);
    locks.set_lock_timeout(timeout);
    Ok(locks)
}

fn session_of(args: &[Datum]) -> Option<SessionId> {
    match args.first() {
        Some(Datum::Int4(pid)) => u32::try_from(*pid).ok().map(SessionId),
        _ => None,
    }
}

fn blockers(cx: &Exec<'_>, args: &[Datum]) -> Result<Vec<SessionId>> {
    let locks = cx.host.shared().engine.locks()?;
    match session_of(args) {
        Some(session) => locks.blockers_everywhere(session),
        None => Ok(Vec::new()),
    }
}

fn snapshot_blockers(cx: &Exec<'_>, args: &[Datum]) -> Result<Vec<SessionId>> {
    let locks = cx.host.shared().engine.locks()?;
    Ok(session_of(args).map_or_else(Vec::new, |session| locks.snapshot_blockers(session)))
}

fn pids(sessions: &[SessionId]) -> Datum {
    let pids = sessions.iter().map(|session| Datum::Int4(session.0 as i32));
    Datum::Array(Arc::new(Array::of(TypeId::INT4, pids.collect())))
}

/// Whether a session waits for one of those named, or for a safe snapshot.
fn is_blocked(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let Some(Datum::Array(interesting)) = args.get(1) else {
        return Err(Error::new(
            SqlState::of("22004"),
            "array must not contain nulls",
        ));
    };
    let named = |session: &SessionId| {
        let pid = Datum::Int4(session.0 as i32);
        interesting.elements.contains(&pid)
    };
    let blocked = blockers(cx, args)?.iter().any(named) || !snapshot_blockers(cx, args)?.is_empty();
    Ok(Datum::Bool(blocked))
}
