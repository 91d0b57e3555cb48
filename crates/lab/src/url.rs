//! `postgres://user:password@host:port/database`, as libpq writes it.

use crate::host::{Endpoint, Login};
use crate::session::Target;

/// The usual port.
const PORT: u16 = 5_432;

/// A server that a user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Its host's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The role's password.
    pub password: Option<String>,
    /// The database.
    pub database: String,
}

impl std::str::FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        const EXPECTED: &str = "not of the form postgres://user:password@host:port/database";
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or(EXPECTED)?;
        let rest = rest.split('?').next().unwrap_or_default();
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (role, host) = match server.rsplit_once('@') {
            Some((role, host)) => (role, host),
            None => ("", server),
        };
        let (user, password) = match role.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (role, None),
        };
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| EXPECTED)?),
            None => (host, PORT),
        };
        let or = |text: &str, other: &str| match text.is_empty() {
            true => Ok(other.to_owned()),
            false => decode(text),
        };
        Ok(Url {
            host: or(host, "127.0.0.1")?,
            port,
            user: or(user, "postgres")?,
            password,
            database: or(database, "postgres")?,
        })
    }
}

impl Url {
    /// As whom the server is reached.
    pub fn login(&self) -> Login {
        Login {
            user: self.user.clone(),
            password: self.password.clone(),
            database: self.database.clone(),
        }
    }

    /// A session's target, where the host has this address.
    pub fn target(&self, address: std::net::SocketAddr) -> Target {
        let endpoint = Endpoint {
            login: self.login(),
            ..Endpoint::at(&address.ip().to_string(), address.port())
        };
        endpoint.target()
    }
}

/// Takes `%20` and the like apart.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = more
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or_else(|| format!("{text}: % without two digits"))?);
        rest = &more[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{text}: not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let url: Url = "postgres://ann:p%40ss@db.example:6432/bank?sslmode=disable"
            .parse()
            .unwrap();
        let expected = Url {
            host: "db.example".to_owned(),
            port: 6_432,
            user: "ann".to_owned(),
            password: Some("p@ss".to_owned()),
            database: "bank".to_owned(),
        };
        assert_eq!(url, expected);
        let url: Url = "postgresql://localhost".parse().unwrap();
        assert_eq!((url.port, url.user.as_str()), (5_432, "postgres"));
        assert!("mysql://x".parse::<Url>().is_err());
        assert!("postgres://x:y/z".parse::<Url>().is_err());
    }
}
