//! The two servers: the same statement to both, and what they answer.

use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use pg::client::Reply;

use crate::client::{Client, Failure};
use crate::driver::Driver;

/// A statement that takes longer on either server says nothing.
const LIMIT: Duration = Duration::from_secs(20);

/// What every session begins with. The time limit is below [`LIMIT`], so that a server that ends its
/// statements in time is never found broken.
const SETTINGS: [(&str, &str); 3] = [
    ("timezone", "UTC"),
    ("statement_timeout", "4000"),
    ("lc_messages", "C"),
];

/// One server, and a session on it.
pub struct Server {
    driver: Driver,
    address: String,
    database: String,
    session: Option<Client>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({})", self.address)
    }
}

/// What one answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Columns' names and types, rows, and what it was.
    Rows(Vec<(String, u32)>, Vec<Vec<Option<String>>>, String),
    /// SQLSTATE and message.
    Refused(String, String),
    /// The connection broke: no statement may do that.
    Broken(String),
}

impl Server {
    /// A session in a database of the server at `ip:port`.
    ///
    /// # Errors
    /// It is not there.
    pub fn connect(driver: &Driver, address: &str, database: &str) -> Result<Server> {
        let mut server = Server {
            driver: driver.clone(),
            address: address.to_owned(),
            database: database.to_owned(),
            session: None,
        };
        server.session = Some(server.open()?);
        Ok(server)
    }

    fn open(&self) -> Result<Client> {
        let (address, database) = (self.address.clone(), self.database.clone());
        let connect = move |env: Arc<dyn Env>| async move {
            Client::connect_to(&*env, &address, &database, &SETTINGS, LIMIT).await
        };
        let connected = self.driver.block_on(connect)?;
        connected.map_err(|error| Error::other(error.message().to_owned()))
    }

    /// Sends one statement, or several.
    ///
    /// # Errors
    /// The server is gone, and does not come back.
    pub fn ask(&mut self, sql: &str) -> Result<Answer> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.open()?,
        };
        let sql = sql.to_owned();
        let asked = self.driver.block_on(move |env: Arc<dyn Env>| async move {
            let answer = session.query(&*env, &sql, LIMIT).await;
            (session, answer)
        });
        let (session, answer) = asked?;
        Ok(match answer {
            Ok(reply) => {
                self.session = Some(session);
                rows(reply)
            }
            Err(Failure::Refused(error)) => {
                self.session = Some(session);
                let state = error.state().as_str().to_owned();
                Answer::Refused(state, error.message().to_owned())
            }
            Err(Failure::Broken(error)) => Answer::Broken(error.message().to_owned()),
        })
    }

    /// The rows of a query that must work, NULL as an empty text.
    ///
    /// # Errors
    /// It does not.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>> {
        match self.ask(sql)? {
            Answer::Rows(_, rows, _) => Ok(rows
                .into_iter()
                .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
                .collect()),
            other => Err(Error::other(format!("{sql}: {other:?}"))),
        }
    }
}

fn rows(reply: Reply) -> Answer {
    let Some(last) = reply.results.into_iter().last() else {
        return Answer::Rows(Vec::new(), Vec::new(), String::new());
    };
    let columns = last.columns.into_iter();
    let columns = columns
        .map(|column| (column.name, column.type_oid))
        .collect();
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let rows = last.rows.into_iter();
    let rows = rows.map(|row| row.into_iter().map(|value| value.map(text)).collect());
    Answer::Rows(columns, rows.collect(), last.tag)
}
