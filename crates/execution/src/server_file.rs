//! Files of the server, as COPY and large objects read and write them: on the threads for pages, while the
//! statement waits and can be ended.
//!
//! ```text
//! beside(env, "file of COPY", move || env.read_server_file("/srv/rows.csv"))
//! ```
//! Who may is the caller's affair: whoever does may read, or write, whatever the server may.

use std::io::ErrorKind;
use std::sync::Arc;

use base::env::{Env, LocalBoxFuture, Reactor, PAGE_REACTORS};
use base::sync::{Event, Mutex};
use base::{coro, Error, Result, SqlState};

/// Bytes that are read or written at once.
pub const BLOCK_BYTES: usize = 64 << 10;

/// What is read from, or written to, on one of the threads for pages.
pub type Slot<T> = Arc<Mutex<Option<T>>>;

/// Does something with the disk on another thread, and waits for it.
///
/// # Errors
/// The pending interrupt.
pub fn beside<T: Send + 'static>(
    env: &Arc<dyn Env>,
    name: &'static str,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let answer = Arc::new((Mutex::new(None), Event::new()));
    let given = answer.clone();
    let task = move || -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let value = job();
            *given.0.lock() = Some(value);
            given.1.notify_all();
        })
    };
    let reactor = Reactor::Pages(env.random() as usize % PAGE_REACTORS);
    env.spawn(reactor, name, Box::new(task));
    Ok(coro::wait(answer.1.until(|| answer.0.lock().take()))?)
}

/// What the system says of why something could not be done, without its number.
pub fn said(cause: &std::io::Error) -> String {
    if cause.kind() == ErrorKind::IsADirectory {
        return "Is a directory".to_owned();
    }
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The error of a file with which something could not be done, in PostgreSQL's code for the cause.
pub fn failed(message: String, cause: &std::io::Error) -> Error {
    let state = match cause.kind() {
        ErrorKind::NotFound => SqlState::UNDEFINED_FILE,
        ErrorKind::PermissionDenied => SqlState::INSUFFICIENT_PRIVILEGE,
        ErrorKind::IsADirectory => SqlState::WRONG_OBJECT_TYPE,
        ErrorKind::Unsupported => SqlState::FEATURE_NOT_SUPPORTED,
        _ => SqlState::IO_ERROR,
    };
    Error::new(state, message)
}
