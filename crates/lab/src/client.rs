//! A client of PostgreSQL's protocol over [`base::env::Env`], so that the same workloads run
//! against real servers and in the simulator.
//!
//! It sends simple queries as `postgres` to the database `postgres`, one at a time, each within a
//! time limit. After an IO error or a time-out the connection is of no further use.

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::Poll;
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Stream};
use base::{Error, ErrorClass, Result, SqlState};
use pg::client::{Client as Protocol, Reply};

/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// Why a query failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The server said so and the session goes on.
    Refused(Error),
    /// The connection is gone; what became of the query is not known.
    Broken(Error),
}

/// A connected session.
pub struct Client {
    stream: Box<dyn Stream>,
    protocol: Protocol,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// The future's value, or none once the time is over.
pub async fn within<T>(
    env: &dyn Env,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let mut timer = sleep(env, limit);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        Pin::new(&mut timer).poll(cx).map(|()| None)
    })
    .await
}

impl Client {
    /// Connects and waits until the server is ready for a query.
    ///
    /// # Errors
    /// The connection fails, takes too long, or the server refuses it.
    pub async fn connect(env: &dyn Env, address: &str, limit: Duration) -> Result<Client> {
        Client::connect_with(env, address, &[], limit).await
    }

    /// The same, with settings that the session begins with.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_with(
        env: &dyn Env,
        address: &str,
        settings: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Client> {
        let connected = within(env, limit, Client::open(env, address, settings)).await;
        connected.unwrap_or_else(|| Err(broken("no answer in time")))
    }

    async fn open(env: &dyn Env, address: &str, settings: &[(&str, &str)]) -> Result<Client> {
        let mut client = Client {
            stream: env.net().connect(address).await.map_err(broken)?,
            protocol: Protocol::new("postgres", "postgres", settings),
            buffer: vec![0; READ_BYTES],
        };
        client.reply().await?.into_result()?;
        Ok(client)
    }

    /// Sends a query and waits for its whole answer.
    ///
    /// # Errors
    /// See [`Failure`]; a time-out is `Broken`.
    pub async fn query(
        &mut self,
        env: &dyn Env,
        sql: &str,
        limit: Duration,
    ) -> Result<Reply, Failure> {
        self.protocol.query(sql);
        let replied = within(env, limit, self.reply()).await;
        let reply = replied.unwrap_or_else(|| Err(broken("no answer in time")));
        let reply = reply.map_err(Failure::Broken)?;
        let is_fatal = reply.is_fatal;
        reply.into_result().map_err(|error| match is_fatal {
            true => Failure::Broken(error),
            false => Failure::Refused(error),
        })
    }

    /// Sends what is to be sent, and waits for one whole reply.
    async fn reply(&mut self) -> Result<Reply> {
        let outgoing = self.protocol.outgoing().to_vec();
        write_all(&mut *self.stream, &outgoing)
            .await
            .map_err(broken)?;
        self.protocol.sent(outgoing.len());
        loop {
            if let Some(reply) = self.protocol.poll()? {
                return Ok(reply);
            }
            let count = read(&mut *self.stream, &mut self.buffer)
                .await
                .map_err(broken)?;
            if count == 0 {
                return Err(broken("the server has closed the connection"));
            }
            self.protocol.feed(&self.buffer[..count]);
        }
    }
}

fn broken(cause: impl std::fmt::Display) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::CONNECTION_FAILURE,
        format!("the connection broke: {cause}"),
    )
}
