//! The two servers: the same statement to both, and what they answer.

use std::collections::BTreeMap;
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

/// The types of extensions that are generated, each with the number that stands for it: their OIDs
/// are the server's own. The arrays over them have [`ARRAY`] more.
pub const EXTENSIONS: [(&str, u32); 2] = [("citext", 1), ("hstore", 2)];

/// What the number of an array has more than that of its elements.
pub const ARRAY: u32 = 4;

/// One server, and a session on it.
pub struct Server {
    driver: Driver,
    address: String,
    database: String,
    session: Option<Client>,
    /// The numbers of types of extensions, by their OIDs here.
    numbers: BTreeMap<u32, u32>,
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
            numbers: BTreeMap::new(),
        };
        server.session = Some(server.open()?);
        server.make_extensions()?;
        Ok(server)
    }

    fn make_extensions(&mut self) -> Result<()> {
        for (name, number) in EXTENSIONS {
            self.rows(&format!("create extension if not exists {name}"))?;
            let types = format!("select oid, typarray from pg_type where typname = '{name}'");
            let oid = |text: &String| text.parse().unwrap_or_default();
            for row in self.rows(&types)? {
                self.numbers.insert(oid(&row[0]), number);
                self.numbers.insert(oid(&row[1]), number + ARRAY);
            }
        }
        Ok(())
    }

    /// A type's number in place of its OID, if it is one of an extension's.
    pub fn number_of(&self, oid: u32) -> u32 {
        self.numbers.get(&oid).copied().unwrap_or(oid)
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
                self.answer(reply)
            }
            Err(Failure::Refused(error)) => {
                self.session = Some(session);
                let state = error.state().as_str().to_owned();
                Answer::Refused(state, error.message().to_owned())
            }
            Err(Failure::Broken(error)) => Answer::Broken(error.message().to_owned()),
        })
    }

    fn answer(&self, reply: Reply) -> Answer {
        let Some(last) = reply.results.into_iter().last() else {
            return Answer::Rows(Vec::new(), Vec::new(), String::new());
        };
        let columns = last.columns.into_iter();
        let columns = columns.map(|column| (column.name, self.number_of(column.type_oid)));
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        let rows = last.rows.into_iter();
        let rows = rows.map(|row| row.into_iter().map(|value| value.map(text)).collect());
        Answer::Rows(columns.collect(), rows.collect(), last.tag)
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
