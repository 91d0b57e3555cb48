//! A server that knows all of TPC-C's answers beforehand, to measure the client alone.
//!
//! It reads the protocol as a server must and answers each of [`schema::STATEMENTS`] with as many
//! rows as a real one would, all of whose values are `1`. It keeps nothing.

use std::sync::Arc;

use base::env::{read, write_all, Env, LocalBoxFuture, Reactor, Stream};
use base::{Error, Result};
use pg::backend::{Backend, DataRow, TransactionStatus};
use pg::frame::{Framer, Side};
use pg::frontend::Frontend;
use pg::startup::{self, CancelKey, FirstPacket};

use crate::tpcc::schema;
use crate::tpcc::ITEMS;

/// Listens at `address`, and serves connections on all reactors in turn, for ever.
///
/// # Errors
/// Nobody can listen there.
pub fn start(env: &Arc<dyn Env>, address: &str) -> std::io::Result<()> {
    let mut listener = env.net().listen(address)?;
    let shared = env.clone();
    let start = Box::new(move || -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let mut next = 0;
            loop {
                let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                let Ok((stream, _)) = accepted else {
                    continue;
                };
                next = (next + 1) % shared.session_reactors();
                let serve = Box::new(move || -> LocalBoxFuture<'static, ()> {
                    Box::pin(async move {
                        // A client that breaks off is no concern of ours.
                        let _ = serve(stream).await;
                    })
                });
                shared.spawn(Reactor::Session(next), "stub", serve);
            }
        })
    });
    env.spawn(Reactor::Group, "stub listener", start);
    Ok(())
}

/// What each statement is answered with: columns, rows, and the tag.
fn answer(number: usize) -> (usize, usize, &'static [u8]) {
    let statement = schema::STATEMENTS.get(number);
    let is = |other: &crate::session::Statement| other.number == number;
    match statement.map(|statement| statement.text) {
        Some(text) if text.starts_with("begin") => (0, 0, b"BEGIN"),
        Some("commit") => (0, 0, b"COMMIT"),
        Some("rollback") => (0, 0, b"ROLLBACK"),
        Some(_) if is(&schema::NEW_ORDER_STOCK) => (13, 1, b"SELECT 1"),
        Some(_) if is(&schema::CUSTOMERS_BY_NAME) => (6, 3, b"SELECT 3"),
        Some(_) if is(&schema::ORDER_STATUS_LINES) => (5, 10, b"SELECT 10"),
        Some(text) if text.starts_with("insert") => (0, 0, b"INSERT 0 1"),
        Some(text) if text.starts_with("delete") => (0, 0, b"DELETE 1"),
        Some(text) if text.starts_with("update") => match text.contains("returning") {
            true => (6, 1, b"UPDATE 1"),
            false => (0, 0, b"UPDATE 1"),
        },
        _ => (6, 1, b"SELECT 1"),
    }
}

fn broken(error: std::io::Error) -> Error {
    Error::corrupted(error.to_string())
}

async fn serve(mut stream: Box<dyn Stream>) -> Result<()> {
    let mut out = Vec::new();
    greet(&mut *stream, &mut out).await?;
    let mut framer = Framer::new(Side::Frontend);
    let mut status = TransactionStatus::Idle;
    let (mut bound, mut is_unused) = (0, false);
    loop {
        while let Some(frame) = framer.next()? {
            match Frontend::decode(frame.kind, frame.body)? {
                Frontend::Parse(_) => Backend::ParseComplete.encode(&mut out),
                Frontend::Bind(bind) => {
                    // `s17`: our own sessions name statements by their numbers.
                    let name = std::str::from_utf8(bind.statement).unwrap_or_default();
                    bound = name
                        .get(1..)
                        .and_then(|digits| digits.parse().ok())
                        .unwrap_or(0);
                    is_unused = bound == schema::NEW_ORDER_ITEM.number
                        && bind.values.iter().next().flatten() == Some(UNUSED_ITEM.as_bytes());
                    Backend::BindComplete.encode(&mut out);
                }
                Frontend::Execute { .. } => {
                    let (columns, rows, tag) = answer(bound);
                    status = match tag {
                        b"BEGIN" => TransactionStatus::Block,
                        b"COMMIT" | b"ROLLBACK" => TransactionStatus::Idle,
                        _ => status,
                    };
                    for _ in 0..if is_unused { 0 } else { rows } {
                        put_row(&mut out, columns);
                    }
                    Backend::CommandComplete(tag).encode(&mut out);
                }
                Frontend::Sync => {
                    Backend::ReadyForQuery(status).encode(&mut out);
                    write_all(&mut *stream, &out).await.map_err(broken)?;
                    out.clear();
                }
                Frontend::Terminate => return Ok(()),
                _ => {}
            }
        }
        let count = read(&mut *stream, framer.space()).await.map_err(broken)?;
        if count == 0 {
            return Ok(());
        }
        framer.filled(count);
    }
}

/// The number of the item that orders to be rolled back ask for, as text.
const UNUSED_ITEM: &str = "100001";
const _: () = assert!(ITEMS == 100_000, "UNUSED_ITEM is the next after ITEMS");

fn put_row(out: &mut Vec<u8>, columns: usize) {
    let mut row = DataRow::begin(out, columns);
    for _ in 0..columns {
        row.value(Some(b"1"));
    }
    row.finish();
}

async fn greet(stream: &mut dyn Stream, out: &mut Vec<u8>) -> Result<()> {
    let mut first = Vec::new();
    let mut buffer = [0; 1_024];
    while !matches!(startup::decode(&first)?, Some((FirstPacket::Startup(_), _))) {
        let count = read(stream, &mut buffer).await.map_err(broken)?;
        if count == 0 {
            return Err(Error::corrupted("the client left"));
        }
        first.extend_from_slice(&buffer[..count]);
    }
    Backend::AuthenticationOk.encode(out);
    Backend::BackendKeyData(CancelKey { pid: 1, secret: 1 }).encode(out);
    Backend::ReadyForQuery(TransactionStatus::Idle).encode(out);
    write_all(stream, out).await.map_err(broken)?;
    out.clear();
    Ok(())
}
