//! Functions by which one session interrupts another.

use std::time::Duration;

use base::coro::{self, Interrupt};
use base::env;
use base::{Error, Result, SqlState};

use super::Exec;
use catalog::access::SIGNAL_BACKEND;
use functions::session::BackendFunction;
use types::Datum;

/// How often `pg_terminate_backend` looks whether the session is gone.
const LOOK: Duration = Duration::from_millis(100);

/// Computes one of these functions.
pub(super) fn call(cx: &mut Exec<'_>, which: BackendFunction, args: &[Datum]) -> Result<Datum> {
    match which {
        BackendFunction::Cancel => interrupt(cx, &args[0], Interrupt::Cancel),
        BackendFunction::Terminate => terminate(cx, args),
        BackendFunction::Reload => reload(cx),
    }
}

/// `pg_reload_conf`: the settings of the cluster come in force, and every node reads its files anew.
fn reload(cx: &mut Exec<'_>) -> Result<Datum> {
    catalog::configuration::reload(&cx.host.shared().engine)?;
    let registry = cx.host.shared().start.registry.as_ref();
    Ok(Datum::Bool(
        registry.is_none_or(|registry| registry.reload()),
    ))
}

/// `pg_cancel_backend`, and the first half of `pg_terminate_backend`.
///
/// # Errors
/// 42501 for a session of somebody else; the interrupt itself, if the session is this one.
fn interrupt(cx: &mut Exec<'_>, pid: &Datum, interrupt: Interrupt) -> Result<Datum> {
    let pid = pid.as_i64().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.ok_or_else(|| Error::internal("a session's number is an integer"))?;
    let Some(registry) = cx.host.shared().start.registry.clone() else {
        return Ok(Datum::Bool(false));
    };
    let target = registry
        .all()
        .into_iter()
        .find(|activity| activity.pid() == pid)
        .and_then(|activity| activity.doing());
    let Some(target) = target else {
        return Ok(missing(cx, pid));
    };
    check_allowed(cx, target.role, interrupt)?;
    if !registry.interrupt(pid, interrupt) {
        return Ok(missing(cx, pid));
    }
    if pid == cx.host.shared().start.backend_pid {
        coro::yield_now()?;
    }
    Ok(Datum::Bool(true))
}

fn missing(cx: &mut Exec<'_>, pid: i32) -> Datum {
    let message = format!("PID {pid} is not a PostgreSQL backend process");
    warn(cx, SqlState::WARNING, message);
    Datum::Bool(false)
}

fn warn(cx: &mut Exec<'_>, state: SqlState, message: String) {
    cx.host.session().warnings.push(Error::new(state, message));
}

/// Whether the session's role may interrupt a session of the role `target`. Sessions of superusers,
/// and those of which nobody knows whose they are, are superusers' affair.
fn check_allowed(cx: &Exec<'_>, target: u32, interrupt: Interrupt) -> Result<()> {
    let catalog = cx.catalog;
    let own = cx.role();
    let of_superuser = target == 0 || catalog.is_superuser(target);
    let is_theirs = |role: u32| catalog.has_privileges_of(own, role);
    let may = is_theirs(target) || is_theirs(SIGNAL_BACKEND);
    if catalog.is_superuser(own) || may && !of_superuser {
        return Ok(());
    }
    let message = match (of_superuser, interrupt) {
        (true, Interrupt::Cancel) => "must be a superuser to cancel superuser query",
        (true, _) => "must be a superuser to terminate superuser process",
        (false, Interrupt::Cancel) => {
            "must be a member of the role whose query is being canceled or member of \
             pg_signal_backend"
        }
        (false, _) => {
            "must be a member of the role whose process is being terminated or member of \
             pg_signal_backend"
        }
    };
    Err(Error::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

/// `pg_terminate_backend(pid, timeout)`: with a time, in milliseconds, it waits for the end.
///
/// # Errors
/// As [`interrupt`]; 22003 for a negative time.
fn terminate(cx: &mut Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let timeout = args.get(1).and_then(Datum::as_i64).unwrap_or(0);
    let Ok(mut left) = u64::try_from(timeout) else {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "\"timeout\" must not be negative",
        ));
    };
    let told = interrupt(cx, &args[0], Interrupt::Terminate)?;
    if !told.is_true() || left == 0 {
        return Ok(told);
    }
    let pid = args[0].as_i64().unwrap_or_default();
    let Some(registry) = cx.host.shared().start.registry.clone() else {
        return Ok(told);
    };
    let is_there = || {
        let mut all = registry.all().into_iter();
        all.any(|activity| i64::from(activity.pid()) == pid)
    };
    while is_there() {
        if left == 0 {
            let message =
                format!("backend with PID {pid} did not terminate within {timeout} milliseconds");
            warn(cx, SqlState::WARNING, message);
            return Ok(Datum::Bool(false));
        }
        let step = LOOK.min(Duration::from_millis(left));
        coro::wait(env::sleep(&*cx.host.shared().env, step))?;
        left = left.saturating_sub(LOOK.as_millis() as u64);
    }
    Ok(told)
}
