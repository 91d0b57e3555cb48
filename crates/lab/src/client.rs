//! A client of PostgreSQL's protocol over [`base::env::Env`], so that the same workloads run
//! against real servers and in the simulator.
//!
//! It sends simple queries as `postgres` to the database `postgres`, one at a time, each within a
//! time limit. After an IO error or a time-out the connection is of no further use.

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Stream};
use base::sync::Mutex;
use base::{Error, ErrorClass, Result, SqlState};
use pg::client::{Client as Protocol, Reply};
use pg::startup::put_cancel;

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

/// Where servers are; those that come and go are seen by all who hold a copy.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Arc<Mutex<Vec<String>>>);

impl Addresses {
    /// A further one.
    pub fn add(&self, address: &str) {
        self.0.lock().push(address.to_owned());
    }

    /// One that is of no use any more.
    pub fn remove(&self, address: &str) {
        self.0.lock().retain(|known| known != address);
    }

    /// Any of them, as chance has it.
    pub fn pick(&self, env: &dyn Env) -> String {
        let addresses = self.0.lock();
        let pick = env.random() as usize % addresses.len().max(1);
        addresses.get(pick).cloned().unwrap_or_default()
    }

    /// A session at any of them that begins with these settings, and its address; none where it is
    /// not there in time.
    pub async fn connect(
        &self,
        env: &dyn Env,
        settings: &[(&str, &str)],
        limit: Duration,
    ) -> Option<(Client, String)> {
        let address = self.pick(env);
        let client = Client::connect_with(env, &address, settings, limit).await;
        Some((client.ok()?, address))
    }
}

/// Rests for a while, which is so long on average.
pub async fn rest(env: &dyn Env, average: Duration) {
    let nanos = env.random() % (2 * average.as_nanos() as u64).max(1);
    sleep(env, Duration::from_nanos(nanos)).await;
}

/// A connected session.
pub struct Client {
    stream: Box<dyn Stream>,
    protocol: Protocol,
    buffer: Vec<u8>,
    /// What is sent in the place of the next messages.
    fragment: Option<Vec<u8>>,
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
        Client::connect_to(env, address, "postgres", settings, limit).await
    }

    /// The same, in another database than `postgres`.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_to(
        env: &dyn Env,
        address: &str,
        database: &str,
        settings: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Client> {
        let connected = within(env, limit, Client::open(env, address, database, settings)).await;
        connected.unwrap_or_else(|| Err(broken("no answer in time")))
    }

    async fn open(
        env: &dyn Env,
        address: &str,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<Client> {
        let mut client = Client {
            stream: env.net().connect(address).await.map_err(broken)?,
            protocol: Protocol::new("postgres", database, settings),
            buffer: vec![0; READ_BYTES],
            fragment: None,
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

    /// Puts into words what the next [`Client::send`] says, as many messages as there may be.
    pub fn protocol(&mut self) -> &mut Protocol {
        &mut self.protocol
    }

    /// Sends what was put into words, without waiting for an answer.
    ///
    /// # Errors
    /// The connection breaks, or takes nothing for so long.
    pub async fn send(&mut self, env: &dyn Env, limit: Duration) -> Result<()> {
        let all = self.protocol.outgoing().to_vec();
        let outgoing = self.fragment.take().unwrap_or(all);
        let sent = within(env, limit, write_all(&mut *self.stream, &outgoing)).await;
        self.protocol.sent(self.protocol.outgoing().len());
        match sent {
            Some(sent) => sent.map_err(broken),
            None => Err(broken("it takes nothing")),
        }
    }

    /// Of what was put into words, only so many bytes are ever sent.
    pub fn cut_short(&mut self, bytes: usize) {
        let outgoing = self.protocol.outgoing();
        self.fragment = Some(outgoing[..bytes.min(outgoing.len())].to_vec());
    }

    /// Waits for the next whole answer to what was sent.
    ///
    /// # Errors
    /// See [`Failure`]; a time-out is `Broken`. An error within the answer is part of it.
    pub async fn answer(&mut self, env: &dyn Env, limit: Duration) -> Result<Reply> {
        let replied = within(env, limit, self.reply()).await;
        replied.unwrap_or_else(|| Err(broken("no answer in time")))
    }

    /// What it takes to cancel a statement of this session, from a connection of its own.
    pub fn cancel_packet(&self) -> Vec<u8> {
        let mut packet = Vec::new();
        if let Some(key) = self.protocol.cancel_key() {
            put_cancel(&mut packet, key);
        }
        packet
    }

    /// Sends what is to be sent, and waits for one whole reply.
    async fn reply(&mut self) -> Result<Reply> {
        let outgoing = self.protocol.outgoing().to_vec();
        if !outgoing.is_empty() {
            write_all(&mut *self.stream, &outgoing)
                .await
                .map_err(broken)?;
            self.protocol.sent(outgoing.len());
        }
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

/// Asks the server there to cancel a statement ([`Client::cancel_packet`]). Whether it does, only
/// the statement's own answer tells.
pub async fn cancel(env: &dyn Env, address: &str, packet: &[u8], limit: Duration) {
    let asked = async {
        let mut stream = env.net().connect(address).await.map_err(broken)?;
        write_all(&mut *stream, packet).await.map_err(broken)?;
        let mut end = [0];
        read(&mut *stream, &mut end).await.map_err(broken)
    };
    // Nothing is said in return, and nobody minds when it is lost.
    let _ = within(env, limit, asked).await;
}
