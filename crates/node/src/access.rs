//! Who may connect to this node: its file of rules, and whether it may be reached at all.
//!
//! The rules stand in `pg_hba.conf` in the node's directory ([`pg::hba`] has their form). They are
//! read when the node starts and when it is told to ([`Door::reload`]); a file with an error in it
//! is refused whole, and the rules before it go on. Without a file everybody is let in, and the
//! node listens on loopback only.
//!
//! # Beyond loopback
//! A node that other machines can reach takes clients over TLS only, and none that has not shown
//! who it is; it takes other nodes with a certificate of the cluster only. A configuration that
//! would allow more is refused, at the start as at a reload: see [`check_exposure`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::env::{Env, OpenMode};
use base::sync::Mutex;
use base::{Error, Result, SqlState};
use pg::auth::{Access, Tls};
use pg::hba::{self, Connection, Line, Rule};
use sql::session::activity::HbaRule;

use crate::secure::Secure;

/// The file of rules in a node's directory.
pub const RULES_FILE: &str = "pg_hba.conf";

/// A file of rules may be at most this long.
const RULES_BYTES_MAX: u64 = 256 << 10;

/// Decides which rules a connection has to pass.
pub struct Door {
    env: Arc<dyn Env>,
    is_exposed: bool,
    rules: Mutex<Arc<[Rule]>>,
}

/// The addresses at which a node listens.
#[derive(Clone, Copy, Debug)]
pub struct Listening<'a> {
    /// The node's name.
    pub name: &'a str,
    /// For clients.
    pub sql: &'a str,
    /// For other nodes.
    pub peer: &'a str,
}

impl Door {
    /// Reads the rules.
    ///
    /// # Errors
    /// F0000 for a file that cannot be read, or that lets more in than it may.
    pub fn open(env: Arc<dyn Env>, sql_address: &str) -> Result<Door> {
        let door = Door {
            env,
            is_exposed: is_exposed(sql_address),
            rules: Mutex::new(Arc::new([])),
        };
        door.reload()?;
        Ok(door)
    }

    /// Reads the rules anew. Where they cannot be taken, those before go on.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn reload(&self) -> Result<()> {
        let rules = self.read()?;
        *self.rules.lock() = rules.into();
        Ok(())
    }

    fn read(&self) -> Result<Vec<Rule>> {
        let Some(lines) = self.lines()? else {
            return match self.is_exposed {
                false => Ok(vec![Rule::trust_all()]),
                true => Err(refused("it has no rules that say who may come in")
                    .with_hint(format!("Write them into {RULES_FILE} in its directory."))),
            };
        };
        let mut rules = Vec::new();
        for line in lines {
            let number = line.number;
            let rule = line
                .rule
                .map_err(|error| refused(format!("line {number} of {RULES_FILE}: {error}")))?;
            if let Some(why) = rule.exposes().filter(|_| self.is_exposed) {
                return Err(refused(format!("line {number} of {RULES_FILE}: {why}")));
            }
            rules.push(rule);
        }
        match rules.is_empty() {
            true => Err(refused(format!("{RULES_FILE} contains no rules"))),
            false => Ok(rules),
        }
    }

    /// The lines of the file; none where there is no file.
    fn lines(&self) -> Result<Option<Vec<Line>>> {
        let failed = |error: io::Error| refused(format!("could not read {RULES_FILE}: {error}"));
        let file = match self.env.disk().open(RULES_FILE, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let length = file.len().map_err(failed)?;
        if length > RULES_BYTES_MAX {
            let message = format!("{RULES_FILE} has {length} bytes, more than {RULES_BYTES_MAX}");
            return Err(refused(message));
        }
        let mut bytes = vec![0; length as usize];
        file.read_at(&mut bytes, 0).map_err(failed)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| refused(format!("{RULES_FILE} is not in UTF-8")))?;
        Ok(Some(hba::parse(&text)))
    }

    /// The lines of the file as they are now, as `pg_hba_file_rules` shows them.
    pub fn shown(&self) -> Vec<HbaRule> {
        match self.lines() {
            Ok(Some(lines)) => lines
                .iter()
                .map(|line| {
                    let mut shown = line.shown();
                    let exposes = line.rule.as_ref().ok().and_then(Rule::exposes);
                    let exposes = exposes.filter(|_| self.is_exposed);
                    shown.error = shown.error.or(exposes.map(str::to_owned));
                    shown
                })
                .collect(),
            Ok(None) => vec![Rule::trust_all().shown(0)],
            Err(error) => vec![HbaRule {
                error: Some(error.message().to_owned()),
                ..HbaRule::default()
            }],
        }
    }

    /// What a session has to pass that comes from `client` to `server` (both `ip:port`).
    pub fn access(&self, client: &str, server: &str, tls: Option<Tls>) -> Access {
        let connection = Connection {
            client: ip_of(client),
            server: ip_of(server),
            encrypted: tls.is_some(),
        };
        let rules = self.rules.lock().clone();
        let fitting = rules
            .iter()
            .filter(|rule| rule.fits_connection(&connection));
        Access {
            rules: fitting.cloned().collect(),
            tls,
            is_known: false,
        }
    }
}

fn ip_of(address: &str) -> Option<IpAddr> {
    address.parse().ok().map(|address: SocketAddr| address.ip())
}

/// Whether other machines can reach an address. What is no IP address belongs to a simulated world.
fn is_exposed(address: &str) -> bool {
    ip_of(address).is_some_and(|ip| !ip.to_canonical().is_loopback())
}

/// Refuses to listen where other machines can connect, unless connections there are encrypted.
///
/// # Errors
/// F0000, which names what is missing.
pub fn check_exposure(listening: Listening<'_>, secure: Option<&dyn Secure>) -> Result<()> {
    let Listening { name, sql, peer } = listening;
    if is_exposed(sql) && !secure.is_some_and(Secure::serves_clients) {
        return Err(refused(format!(
            "{name} would take clients at {sql}, where other machines can reach it, without TLS"
        ))
        .with_hint(
            "Set ssl = on, and ssl_cert_file and ssl_key_file where they have other names.",
        ));
    }
    if is_exposed(peer) && !secure.is_some_and(Secure::serves_nodes) {
        return Err(refused(format!(
            "{name} would take other nodes at {peer}, where other machines can reach it, without \
             asking for their certificates"
        ))
        .with_hint("Set quorate.peer_tls = on, and make certificates with quorate cert."));
    }
    Ok(())
}

/// F0000: a configuration that is not taken.
fn refused(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("F0000"), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake {
        clients: bool,
        nodes: bool,
    }

    impl Secure for Fake {
        fn serves_clients(&self) -> bool {
            self.clients
        }

        fn serves_nodes(&self) -> bool {
            self.nodes
        }

        fn accept_client(&self, _: Box<dyn base::env::Stream>) -> crate::secure::Secured<Tls> {
            unreachable!("nobody connects")
        }

        fn accept_node(
            &self,
            _: Box<dyn base::env::Stream>,
        ) -> crate::secure::Secured<crate::secure::NodeCertificate> {
            unreachable!("nobody connects")
        }

        fn connect_node(
            &self,
            _: Box<dyn base::env::Stream>,
            _: &str,
        ) -> crate::secure::Secured<crate::secure::NodeCertificate> {
            unreachable!("nobody connects")
        }

        fn own_key(&self) -> Option<kv::KeyHash> {
            None
        }

        fn reload(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_can_reach_needs_tls() {
        let near = "127.0.0.1:1";
        let far = "10.0.0.1:1";
        for (sql, peer, clients, nodes, allowed) in [
            (near, near, false, false, true),
            ("[::1]:1", "127.0.0.3:1", false, false, true),
            ("n1:5433", "n1:6433", false, false, true),
            (far, near, false, true, false),
            (far, near, true, false, true),
            (near, far, true, false, false),
            (near, far, false, true, true),
            ("0.0.0.0:1", near, false, true, false),
            ("[::ffff:10.0.0.1]:1", near, false, true, false),
            (far, far, true, true, true),
        ] {
            let secure = Fake { clients, nodes };
            let listening = Listening {
                name: "n1",
                sql,
                peer,
            };
            let result = check_exposure(listening, Some(&secure));
            assert_eq!(result.is_ok(), allowed, "{sql} {peer} {secure:?}");
            if !(clients || nodes) {
                assert_eq!(check_exposure(listening, None).is_ok(), allowed);
            }
        }
    }
}
