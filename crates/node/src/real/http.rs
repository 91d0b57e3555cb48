//! The status page of a node: `/health` and `/status`, in JSON.

use std::io;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use base::env::{Env, Severity};
use serde_json::Value;

use super::net::bind;

/// What the pages show, asked for anew each time.
pub trait Pages: Send + Sync + 'static {
    /// Whether this node serves clients now, and why not otherwise.
    fn health(&self) -> Result<(), String>;
    /// The node and its group.
    fn status(&self) -> Value;
}

/// Serves the pages until the process ends, from a thread of its own: a checkpoint that syncs must
/// not make a node look silent, and who asks too often must not slow the node down.
///
/// # Errors
/// When the address cannot be listened on.
pub fn serve(env: &Arc<dyn Env>, address: &str, pages: Arc<dyn Pages>) -> io::Result<()> {
    let address = address
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, format!("{error}")))?;
    let listener = bind(address)?;
    let routes = Router::new()
        .route("/health", get(health))
        .route("/status", get(status))
        .with_state(pages);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let log = env.clone();
    let serve = async move {
        let served = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => axum::serve(listener, routes).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            log.log(Severity::Warning, &format!("no status page: {error}"));
        }
    };
    std::thread::Builder::new()
        .name("http".to_owned())
        .spawn(move || runtime.block_on(serve))?;
    Ok(())
}

async fn health(State(pages): State<Arc<dyn Pages>>) -> impl IntoResponse {
    match pages.health() {
        Ok(()) => (StatusCode::OK, Json(serde_json::json!({ "health": "ok" }))),
        Err(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(serde_json::json!({ "health": why })),
        ),
    }
}

async fn status(State(pages): State<Arc<dyn Pages>>) -> impl IntoResponse {
    Json(pages.status())
}

impl Pages for crate::server::Node {
    fn health(&self) -> Result<(), String> {
        let status = self.status();
        match status.ready {
            true => Ok(()),
            false if status.leader.is_none() => Err("no leader is known".to_owned()),
            false => Err("the catalog is not ready yet".to_owned()),
        }
    }

    fn status(&self) -> Value {
        serde_json::to_value(crate::server::Node::status(self)).unwrap_or_default()
    }
}
