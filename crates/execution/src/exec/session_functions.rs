//! Functions that ask the session, the catalog or the cluster.

use std::sync::Arc;

use base::coro;
use base::engine::Notification;
use base::env;
use base::{Error, Result, SqlState};

use super::{
    activity, advisory, catalog_functions, cluster_functions, large_objects, outcomes,
    privilege_functions, replication, sequences, sizes, statements, statistics, Exec,
};
use catalog::access::{Guarded, Privileges};
use functions::session::OwnFunction;
use functions::{Function, SessionFunction};
use planner::plan::permit::denied_call;
use types::network::host_address;
use types::{Array, Datum, TypeId};

/// Computes such a function. It is not called with a NULL argument if it is strict.
pub fn call(
    cx: &mut Exec<'_>,
    function: &Function,
    which: SessionFunction,
    args: &[Datum],
) -> Result<Datum> {
    let role = cx.role();
    if which.is_restricted()
        && !cx
            .catalog
            .holds(role, Guarded::Function, function.oid, Privileges::EXECUTE)
    {
        return Err(denied_call(function.oid));
    }
    match which {
        SessionFunction::Own(which) => own(cx, which, args),
        SessionFunction::Backend(which) => activity::call(cx, which, args),
        SessionFunction::Wal(which) => replication::call(cx, which),
        SessionFunction::Cluster(which) => cluster_functions::call(cx, which, args),
        SessionFunction::Transaction(which) => outcomes::call(cx, which, args),
        SessionFunction::Sequence(which) => sequences::call(cx, which, args),
        SessionFunction::Size(which) => sizes::call(cx, which, args),
        SessionFunction::Privilege(which) => privilege_functions::call(cx, which, args),
        SessionFunction::Advisory(which) => advisory::call(cx, which, args),
        SessionFunction::Catalog(which) => {
            catalog_functions::call(cx, which, function.result, args)
        }
        SessionFunction::Statistics(which) => statistics::call(cx, which, args),
        SessionFunction::Statements(which) => statements::call(cx, which, args),
        SessionFunction::LargeObject(which) => {
            large_objects::call(cx, which, function.result, args)
        }
        SessionFunction::Unsupported => {
            Err(Error::unsupported(format!("function {}", function.name)))
        }
    }
}

fn own(cx: &mut Exec<'_>, which: OwnFunction, args: &[Datum]) -> Result<Datum> {
    match which {
        OwnFunction::CurrentUser => role_name(cx, cx.role()),
        OwnFunction::SessionUser => role_name(cx, cx.host.shared().settings.session_role()),
        OwnFunction::CurrentDatabase => Ok(Datum::text(&cx.catalog.database.name)),
        OwnFunction::CurrentSchema => {
            let mut all = schemas(cx, false).into_iter();
            Ok(all.next().unwrap_or(Datum::Null))
        }
        OwnFunction::CurrentSchemas => {
            let all = schemas(cx, args[0].is_true());
            Ok(Datum::Array(Arc::new(Array::of(TypeId::NAME, all))))
        }
        OwnFunction::Encoding => Ok(Datum::text("UTF8")),
        OwnFunction::CurrentSetting => current_setting(cx, args),
        OwnFunction::CurrentQuery => {
            let query = cx.host.shared().start.activity.query()?;
            Ok(query.map_or(Datum::Null, Datum::text))
        }
        OwnFunction::SetConfig => set_config(cx, args),
        OwnFunction::BackendPid => Ok(Datum::Int4(cx.host.shared().start.backend_pid)),
        OwnFunction::ClientAddress => Ok(host_address(
            cx.host.shared().start.client_address.as_deref(),
        )),
        OwnFunction::ClientPort => Ok(port(cx.host.shared().start.client_port)),
        OwnFunction::ServerAddress => {
            let address = cx.host.shared().start.server_address.as_ref();
            Ok(host_address(address.map(|address| address.0.as_str())))
        }
        OwnFunction::ServerPort => {
            let address = cx.host.shared().start.server_address.as_ref();
            Ok(port(address.map(|address| address.1)))
        }
        OwnFunction::ExportSnapshot => cx
            .host
            .txn()
            .snapshots()?
            .export_snapshot()
            .map(Datum::text),
        OwnFunction::Sleep => sleep(cx, args),
        OwnFunction::TriggerDepth => {
            let depth = i32::try_from(cx.host.shared().firing.len());
            Ok(Datum::Int4(depth.unwrap_or(i32::MAX)))
        }
        OwnFunction::TemporarySchema => {
            let own = cx.catalog.schema("pg_temp");
            Ok(Datum::Oid(own.map_or(0, |schema| schema.oid)))
        }
        OwnFunction::IsOtherTemporarySchema => Ok(Datum::Bool(false)),
        OwnFunction::Notify => notify(cx, args),
        OwnFunction::ListeningChannels => {
            let channels = cx.host.shared().notify.channels().iter();
            let names = channels.map(|channel| Datum::text(&channel.name));
            Ok(Datum::Array(Arc::new(Array::of(
                TypeId::TEXT,
                names.collect(),
            ))))
        }
        OwnFunction::NotificationQueueUsage => {
            let notifications = cx.host.shared().engine.notifications()?;
            Ok(Datum::Float8(notifications.usage()))
        }
    }
}

/// The name of a role of the session.
///
/// # Errors
/// 42704 when it is gone.
fn role_name(cx: &Exec<'_>, role: u32) -> Result<Datum> {
    let role = cx.catalog.known_role(role)?;
    Ok(Datum::text(&role.name))
}

fn port(port: Option<u16>) -> Datum {
    port.map_or(Datum::Null, |port| Datum::Int4(i32::from(port)))
}

/// `pg_notify`: to it, NULL is an empty text.
fn notify(cx: &mut Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let text = |arg: &Datum| match arg {
        Datum::Null => String::new(),
        text => text.as_str().to_owned(),
    };
    let notification = Notification {
        channel: text(&args[0]),
        payload: text(&args[1]),
        sender: cx.host.shared().start.backend_pid,
    };
    let session = cx.host.session();
    if session.engine.cluster.is_standby() {
        let message = "cannot execute NOTIFY during recovery";
        return Err(Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message));
    }
    session.notify.tell(notification)?;
    Ok(Datum::Void)
}

/// The schemas of `search_path` that exist; with those searched anyway.
pub(super) fn schemas(cx: &Exec<'_>, implicit: bool) -> Vec<Datum> {
    let path = &cx.host.shared().settings.parsed().search_path;
    let role = cx.catalog.role_by_oid(cx.role());
    let user = role.map_or("", |role| &role.name);
    let mut names = Vec::new();
    if let Some(own) = cx.catalog.schema("pg_temp") {
        if implicit && !path.iter().any(|name| name == "pg_temp") {
            names.push(Datum::text(&own.name));
        }
    }
    if implicit && !path.iter().any(|name| name == "pg_catalog") {
        names.push(Datum::text("pg_catalog"));
    }
    for name in path {
        let name = if name == "$user" { user } else { name };
        if let Some(schema) = cx.catalog.schema(name) {
            names.push(Datum::text(&schema.name));
        }
    }
    names
}

fn current_setting(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let missing_ok = args.get(1).is_some_and(Datum::is_true);
    let settings = &cx.host.shared().settings;
    match settings.show_to_user(cx.catalog, args[0].as_str()) {
        Ok((_, value)) => Ok(Datum::text(value)),
        Err(error) if missing_ok && error.state() == SqlState::UNDEFINED_OBJECT => Ok(Datum::Null),
        Err(error) => Err(error),
    }
}

fn set_config(cx: &mut Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let [name, value, local] = args else {
        return Err(Error::internal("set_config has three arguments"));
    };
    if name.is_null() {
        return Err(Error::new(
            SqlState::of("22004"),
            "SET requires parameter name",
        ));
    }
    let value = (!value.is_null()).then(|| value.as_str());
    let catalog = Some(cx.catalog.as_ref());
    let settings = &mut cx.host.session().settings;
    let before = settings.show(name.as_str()).ok();
    settings.set(catalog, name.as_str(), value, local.is_true())?;
    let (name, shown) = settings.show(name.as_str())?;
    if before.is_none_or(|before| before.1 != shown) {
        check_characteristic(&name, &shown)?;
    }
    Ok(Datum::text(shown))
}

/// A query has begun: what its transaction is like does not change any more.
///
/// # Errors
/// 25001.
fn check_characteristic(name: &str, value: &str) -> Result<()> {
    let message = match (name, value) {
        ("transaction_isolation", _) => {
            "SET TRANSACTION ISOLATION LEVEL must be called before any query"
        }
        ("transaction_read_only", "off") => {
            "transaction read-write mode must be set before any query"
        }
        ("transaction_deferrable", _) => {
            "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
        }
        _ => return Ok(()),
    };
    Err(Error::new(SqlState::ACTIVE_SQL_TRANSACTION, message))
}

fn sleep(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Float8(seconds) = args[0] else {
        return Ok(Datum::Void);
    };
    if seconds > 0.0 && coro::inside() {
        // Longer than anyone waits, and no overflow.
        let seconds = seconds.min(1e9);
        let duration = std::time::Duration::from_secs_f64(seconds);
        coro::wait(env::sleep(cx.host.shared().env.as_ref(), duration))?;
    }
    Ok(Datum::Void)
}
