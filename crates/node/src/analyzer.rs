//! Runs ANALYZE by itself, on the node that leads: `sql/src/session/automatic.rs` says of which tables.
//!
//! ```text
//! leader ── nap ── session in each database ── what is due ── nap ── …
//! ```
//! Its session is one among the others (`pg_stat_activity` calls it an autovacuum worker), so it ends with
//! the leadership, with the node, and when an operator says so. It takes no place of `max_connections`.

use std::sync::Arc;
use std::time::Duration;

use base::coro;
use base::engine::Engine;
use base::env::{sleep, Env, LocalBoxFuture, Reactor, Severity};
use base::sync::{Event, Mutex};
use base::{ErrorClass, Result};
use kv::Group;
use sql::catalog::shared::Catalogs;
use sql::session::automatic::{analyze_what_is_due, Automatic};
use sql::session::SessionStart;

use crate::sessions::Sessions;

/// A change of `autovacuum_naptime` is noticed after so long.
const LOOK: Duration = Duration::from_secs(1);

/// What it needs of its node.
pub(crate) struct Analyzer {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) group: Arc<Group>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) catalogs: Arc<Catalogs>,
    /// Settings that the node gives to every session.
    pub(crate) defaults: Vec<(String, String)>,
}

/// Analyzes what is due, for as long as the node runs.
pub(crate) async fn analyze(node: Arc<Analyzer>) {
    let mut slept = Duration::ZERO;
    let mut known: Option<(u64, Automatic)> = None;
    loop {
        if node.group.leading().is_none() {
            slept = Duration::ZERO;
            let leads = |now: kv::Leadership| now.leading.is_some();
            node.group.until_leadership(leads).await;
        }
        sleep(&*node.env, LOOK).await;
        slept += LOOK;
        let settings = &*node.engine.settings;
        let generation = settings.generation();
        let how = match known {
            Some((of, how)) if of == generation => how,
            _ => Automatic::read(settings, &node.defaults),
        };
        known = Some((generation, how));
        if !how.runs || slept < how.nap || node.group.leading().is_none() {
            continue;
        }
        slept = Duration::ZERO;
        match round_among_sessions(&node, how).await {
            Ok(()) => {}
            // The leadership has gone, or somebody has ended it.
            Err(error) if error.class() != ErrorClass::User => {
                let message = format!("automatic analyze ended: {}", error.message());
                node.env.log(Severity::Info, &message);
            }
            Err(error) => {
                let message = format!("automatic analyze failed: {}", error.message());
                node.env.log(Severity::Warning, &message);
            }
        }
    }
}

/// One round, on a thread of sessions; to wait for it takes none of their time.
async fn round_among_sessions(node: &Arc<Analyzer>, how: Automatic) -> Result<()> {
    let done = Arc::new((Mutex::new(None), Event::new()));
    let (told, of) = (done.clone(), node.clone());
    let task = move || -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let result = round(&of, how).await;
            *told.0.lock() = Some(result);
            told.1.notify_all();
        })
    };
    let reactor = Reactor::Session(0);
    node.env.spawn(reactor, "round of analyze", Box::new(task));
    done.1.until(|| done.0.lock().take()).await
}

async fn round(node: &Analyzer, how: Automatic) -> Result<()> {
    let place = node.sessions.enter()?;
    place.set_served(true);
    let start = SessionStart {
        user: String::new(),
        database: String::new(),
        backend_pid: place.key().pid,
        client_address: None,
        client_port: None,
        server_address: None,
        interrupts: place.interrupts().clone(),
        defaults: node.defaults.clone(),
        settings: Vec::new(),
        activity: place.activity().clone(),
        tls: None,
        registry: Some(place.sessions().clone()),
        catalogs: node.catalogs.clone(),
        is_automatic: true,
    };
    let (engine, env) = (node.engine.clone(), node.env.clone());
    coro::run(place.interrupts().clone(), move || {
        let log = |message: String| env.log(Severity::Info, &message);
        analyze_what_is_due(&engine, &env, &start, how, &log)
    })
    .await
}
