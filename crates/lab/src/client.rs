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
use pg::backend::{Backend, Severity};
use pg::frame::{Framer, Side};
use pg::frontend::Frontend;
use pg::startup::{put_startup, StartupParameters};

/// What a query returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The rows, as text.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command tag of the last statement.
    pub tag: String,
}

impl Answer {
    /// The only column of the only row, if there is just one and it is not NULL.
    pub fn value(&self) -> Option<&str> {
        match self.rows.as_slice() {
            [row] => match row.as_slice() {
                [value] => value.as_deref(),
                _ => None,
            },
            _ => None,
        }
    }
}

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
    framer: Framer,
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
        let connected = within(env, limit, Client::open(env, address)).await;
        connected.unwrap_or_else(|| Err(broken("no answer in time")))
    }

    async fn open(env: &dyn Env, address: &str) -> Result<Client> {
        let stream = env.net().connect(address).await.map_err(broken)?;
        let mut client = Client {
            stream,
            framer: Framer::new(Side::Backend),
        };
        let mut out = Vec::new();
        let startup = StartupParameters {
            user: "postgres".to_owned(),
            database: "postgres".to_owned(),
            ..StartupParameters::default()
        };
        put_startup(&mut out, &startup);
        client.write(&out).await?;
        match client.answer().await {
            Ok(_) => Ok(client),
            Err(Failure::Refused(error) | Failure::Broken(error)) => Err(error),
        }
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
    ) -> Result<Answer, Failure> {
        let mut out = Vec::new();
        Frontend::Query(sql.as_bytes()).encode(&mut out);
        let asked = async {
            self.write(&out).await.map_err(Failure::Broken)?;
            self.answer().await
        };
        let answered = within(env, limit, asked).await;
        answered.unwrap_or_else(|| Err(Failure::Broken(broken("no answer in time"))))
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        write_all(&mut *self.stream, bytes).await.map_err(broken)
    }

    /// Everything up to ReadyForQuery.
    async fn answer(&mut self) -> Result<Answer, Failure> {
        let mut answer = Answer::default();
        let mut failure = None;
        loop {
            match take(&mut self.framer, &mut answer).map_err(Failure::Broken)? {
                Taken::Nothing => self.read().await.map_err(Failure::Broken)?,
                Taken::Message => {}
                Taken::Error(severity, error) if severity >= Severity::Fatal => {
                    return Err(Failure::Broken(error))
                }
                Taken::Error(_, error) => failure = Some(error),
                Taken::Ready => {
                    return match failure {
                        None => Ok(answer),
                        Some(error) => Err(Failure::Refused(error)),
                    }
                }
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        let count = read(&mut *self.stream, self.framer.space())
            .await
            .map_err(broken)?;
        if count == 0 {
            return Err(broken("the server has closed the connection"));
        }
        self.framer.filled(count);
        Ok(())
    }
}

enum Taken {
    Nothing,
    Message,
    Error(Severity, Error),
    Ready,
}

fn take(framer: &mut Framer, answer: &mut Answer) -> Result<Taken> {
    let Some(frame) = framer.next()? else {
        return Ok(Taken::Nothing);
    };
    match Backend::decode(frame.kind, frame.body)? {
        Backend::DataRow(values) => {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            let row = values.iter().map(|value| value.map(text)).collect();
            answer.rows.push(row);
        }
        Backend::CommandComplete(tag) => {
            answer.tag = String::from_utf8_lossy(tag).into_owned();
        }
        Backend::ErrorResponse(severity, error) => return Ok(Taken::Error(severity, error)),
        Backend::ReadyForQuery(_) => return Ok(Taken::Ready),
        _ => {}
    }
    Ok(Taken::Message)
}

fn broken(cause: impl std::fmt::Display) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::CONNECTION_FAILURE,
        format!("the connection broke: {cause}"),
    )
}
