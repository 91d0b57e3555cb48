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
use base::env::{sleep, Severity};
use base::{ErrorClass, Result};
use sql::session::automatic::{analyze_what_is_due, Automatic};
use sql::session::SessionStart;

use crate::server::Node;

/// A change of `autovacuum_naptime` is noticed after so long.
const LOOK: Duration = Duration::from_secs(1);

/// Analyzes what is due, for as long as the node runs.
pub(crate) async fn analyze(node: Arc<Node>) {
    let mut slept = Duration::ZERO;
    let mut known: Option<(u64, Automatic)> = None;
    loop {
        if node.group().leading().is_none() {
            slept = Duration::ZERO;
            let leads = |now: kv::Leadership| now.leading.is_some();
            node.group().until_leadership(leads).await;
        }
        sleep(&*node.env, LOOK).await;
        slept += LOOK;
        let settings = &*node.engine().settings;
        let generation = settings.generation();
        let how = match known {
            Some((of, how)) if of == generation => how,
            _ => Automatic::read(settings, &node.settings.session),
        };
        known = Some((generation, how));
        if !how.runs || slept < how.nap || node.group().leading().is_none() {
            continue;
        }
        slept = Duration::ZERO;
        match round(&node, how).await {
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

async fn round(node: &Arc<Node>, how: Automatic) -> Result<()> {
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
        defaults: node.settings.session.clone(),
        settings: Vec::new(),
        activity: place.activity().clone(),
        tls: None,
        registry: Some(place.sessions().clone()),
        catalogs: node.catalogs.clone(),
        is_automatic: true,
    };
    let (engine, env) = (node.engine().clone(), node.env.clone());
    coro::run(place.interrupts().clone(), move || {
        let log = |message: String| env.log(Severity::Info, &message);
        analyze_what_is_due(&engine, &env, &start, how, &log)
    })
    .await
}
