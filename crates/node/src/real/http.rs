//! The status page of a node: `/health` and `/status`, in JSON.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use base::engine::SyncState;
use base::env::{Env, Severity};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

use super::net::bind;
use crate::server::NodeStatus;
use crate::starting::{Starting, STARTING_UP};

/// Connections at once; further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// A connection ends after this, whatever it does: who asks again connects again.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// The pause after the system refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The role of a node that does not serve yet. It has no figures.
pub const STARTING: &str = "starting";

/// Takes few connections, and none for long: a flood here must leave descriptors for the rest.
struct FewAtOnce {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// One of the few.
struct Brief {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl axum::serve::Listener for FewAtOnce {
    type Io = Brief;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Brief, SocketAddr) {
        // Nobody closes the semaphore.
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    let end = Box::pin(tokio::time::sleep(CONNECTION_MAX));
                    let brief = Brief {
                        stream,
                        end,
                        _place: place,
                    };
                    return (brief, from);
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Brief {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) {
            return Poll::Ready(read);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Brief {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes) {
            return Poll::Ready(written);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What the pages show, asked for anew each time.
pub trait Pages: Send + Sync + 'static {
    /// That this node serves clients now: `ok`, or what is amiss all the same; or why it does not.
    fn health(&self) -> Result<String, String>;
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
        let few = |listener| FewAtOnce {
            listener,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        };
        let served = match TcpListener::from_std(listener) {
            Ok(listener) => axum::serve(few(listener), routes).await,
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
        Ok(how) => (StatusCode::OK, Json(serde_json::json!({ "health": how }))),
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
    fn health(&self) -> Result<String, String> {
        let status = self.status();
        let missing = status.missing.join(", ");
        match (status.ready, &status.leader) {
            (true, _) => Ok(amiss(&status).unwrap_or_else(|| "ok".to_owned())),
            (false, Some(_)) => Err("the catalog is not ready yet".to_owned()),
            (false, None) if missing.is_empty() => Err("no leader is known".to_owned()),
            (false, None) => Err(format!("no leader is known: nothing is heard of {missing}")),
        }
    }

    fn status(&self) -> Value {
        serde_json::to_value(crate::server::Node::status(self)).unwrap_or_default()
    }
}

/// From the moment at which the node listens.
impl Pages for Starting {
    fn health(&self) -> Result<String, String> {
        match self.node() {
            Some(node) => Pages::health(&**node),
            None => Err(STARTING_UP.to_owned()),
        }
    }

    fn status(&self) -> Value {
        match self.node() {
            Some(node) => Pages::status(&**node),
            None => serde_json::json!({ "name": self.name(), "role": STARTING }),
        }
    }
}

/// What a node knows of itself, and a leader of standbys that are named and not there.
fn amiss(status: &NodeStatus) -> Option<String> {
    if let Some(names) = &status.lacks_standbys {
        return Some(format!(
            "writes wait: too few of synchronous_standby_names ({names}) are connected"
        ));
    }
    if let Some(trouble) = &status.trouble_detail {
        return Some(format!("degraded: {trouble}"));
    }
    let members = status.members.iter();
    let given_up = members.filter(|member| member.sync_state == Some(SyncState::GivenUp.name()));
    let names: Vec<_> = given_up.map(|member| &*member.name).collect();
    (!names.is_empty()).then(|| format!("degraded: {} given up", names.join(", ")))
}
