//! How a client shows who it is: the rule that fits it, and what that rule asks for.
//!
//! # Who does what
//! A client may come to any node, and its session is served by the one that leads. The node that
//! accepts it ends the encryption and takes those of its own rules that fit the connection: both
//! are matters of the machine that the client has reached. What it knows travels as an [`Access`]
//! with the session. The node that serves it chooses among the rules and runs the exchange, because
//! it alone has the newest roles; the messages pass through the other as they are. So a password
//! that was changed a moment ago counts everywhere, and a proof of channel binding is checked
//! against the certificate of the node that the client sees.
//!
//! ```text
//! psql ══TLS══► n2: rules that fit 10.0.0.9, encrypted ══mutual TLS══► n1: role, rule, SCRAM
//! ```
//!
//! The one trusts the other, which is why nodes ask one another for certificates of their cluster
//! as soon as anything but loopback lies in between.
//!
//! # Invariant
//! Before a client has shown who it is, nothing of it is kept but one message of
//! [`crate::frame::SMALL_MESSAGE_BYTES_MAX`].

pub mod scram;

use std::time::Duration;

use ::sql::functions::scram::Verifier;
use ::sql::session::activity::TlsInfo;
use ::sql::session::login::{self, Login};
use base::codec::{put_bytes, put_varint, Reader};
use base::coro::{self, Interrupt};
use base::engine::Engine;
use base::env::Env;
use base::error::{Error, ErrorClass, Result, SqlState};
use base::Durability;

use crate::backend::{put_sasl_data, put_sasl_mechanisms, SASL_CONTINUE, SASL_FINAL};
use crate::channel::Channel;
use crate::frame::{violation, BodyReader};
use crate::hba::{self, ClientCert, Method, Rule};
use crate::output::Content;
use crate::startup::StartupParameters;
use scram::{Exchange, Outcome};

/// A wrong password, or none where one is asked for.
const WRONG_PASSWORD: SqlState = SqlState::of("28P01");

/// What TLS tells of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// `TLSv1.3`.
    pub version: String,
    /// The cipher's name, as OpenSSL has it.
    pub cipher: String,
    /// The length of its key.
    pub bits: u16,
    /// The hash of the server's certificate that channel binding is about.
    pub end_point: Vec<u8>,
    /// The client's certificate, which has been checked.
    pub client: Option<ClientCertificate>,
}

/// What a client's certificate says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The common name of its subject.
    pub common_name: Option<String>,
    /// Its subject, as `pg_stat_ssl` shows it: `/O=Bank/CN=ann`.
    pub subject: String,
    /// Its subject as rules compare it: `CN=ann,O=Bank`.
    pub subject_reversed: String,
    /// Its issuer.
    pub issuer: String,
    /// Its serial number, in decimal.
    pub serial: String,
}

/// What is known of a connection when its session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The rules that fit the connection.
    pub rules: Vec<Rule>,
    /// Where the connection is encrypted.
    pub tls: Option<Tls>,
    /// The client has shown who it is before: a session that goes on elsewhere.
    pub is_known: bool,
}

impl Access {
    /// For a connection that everybody may make.
    pub fn trusted() -> Access {
        Access {
            rules: vec![Rule::trust_all()],
            tls: None,
            is_known: false,
        }
    }

    /// As `pg_stat_ssl` shows it.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        let tls = self.tls.as_ref()?;
        let client = tls.client.as_ref();
        Some(TlsInfo {
            version: tls.version.clone(),
            cipher: tls.cipher.clone(),
            bits: tls.bits,
            client_subject: client.map(|client| client.subject.clone()),
            client_serial: client.map(|client| client.serial.clone()),
            issuer: client.map(|client| client.issuer.clone()),
        })
    }

    /// How the connection is encrypted, as the log says it.
    pub(crate) fn encryption(&self) -> Option<String> {
        let Tls {
            version,
            cipher,
            bits,
            ..
        } = self.tls.as_ref()?;
        Some(format!("protocol={version}, cipher={cipher}, bits={bits}"))
    }

    /// The form in which it travels between nodes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.rules.len() as u64);
        for rule in &self.rules {
            put_bytes(out, rule.to_string().as_bytes());
            put_varint(out, u64::from(rule.line()));
        }
        out.push(u8::from(self.is_known));
        out.push(u8::from(self.tls.is_some()));
        let Some(tls) = &self.tls else {
            return;
        };
        put_bytes(out, tls.version.as_bytes());
        put_bytes(out, tls.cipher.as_bytes());
        put_varint(out, u64::from(tls.bits));
        put_bytes(out, &tls.end_point);
        out.push(u8::from(tls.client.is_some()));
        let Some(client) = &tls.client else {
            return;
        };
        out.push(u8::from(client.common_name.is_some()));
        for text in [
            client.common_name.as_deref().unwrap_or_default(),
            &client.subject,
            &client.subject_reversed,
            &client.issuer,
            &client.serial,
        ] {
            put_bytes(out, text.as_bytes());
        }
    }

    /// Reads that form.
    ///
    /// # Errors
    /// When it is damaged, or holds a rule that this node does not know.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Access> {
        let count: usize = reader.varint_as()?;
        let mut rules = Vec::new();
        for _ in 0..count {
            let line = hba::parse(reader.str()?).pop();
            let rule = line.and_then(|line| line.rule.ok());
            let rule = rule.ok_or_else(|| Error::corrupted("a rule that is none"))?;
            rules.push(rule.at_line(reader.varint_as()?));
        }
        let is_known = reader.u8()? == 1;
        let mut access = Access {
            rules,
            tls: None,
            is_known,
        };
        if reader.u8()? == 0 {
            return Ok(access);
        }
        let mut tls = Tls {
            version: reader.str()?.to_owned(),
            cipher: reader.str()?.to_owned(),
            bits: reader.varint_as()?,
            end_point: reader.bytes()?.to_vec(),
            client: None,
        };
        if reader.u8()? == 1 {
            let is_named = reader.u8()? == 1;
            tls.client = Some(ClientCertificate {
                common_name: Some(reader.str()?.to_owned()).filter(|_| is_named),
                subject: reader.str()?.to_owned(),
                subject_reversed: reader.str()?.to_owned(),
                issuer: reader.str()?.to_owned(),
                serial: reader.str()?.to_owned(),
            });
        }
        access.tls = Some(tls);
        Ok(access)
    }
}

/// What a client is to be let in with.
pub(crate) struct Request<'a> {
    pub engine: &'a Engine,
    pub env: &'a dyn Env,
    pub channel: &'a Channel,
    pub startup: &'a StartupParameters,
    pub client: Option<&'a str>,
    pub access: &'a Access,
    /// The cluster's, from which the salts of roles that are not there follow.
    pub mock_key: &'a [u8],
    /// It must have shown who it is within this time.
    pub within: Duration,
}

impl Request<'_> {
    /// Lets the client show who it is, inside a coroutine.
    ///
    /// # Errors
    /// FATAL: 28000 where no rule lets it in, 28P01 for a wrong password, 08P01 for nonsense, 57014
    /// when it takes too long.
    pub fn authenticate(&self) -> Result<()> {
        if self.access.is_known {
            return Ok(());
        }
        let deadline = self.env.now().after(self.within);
        self.channel.deadline.set(Some(deadline));
        let done = self.by_rules();
        self.channel.deadline.set(None);
        done
    }

    fn by_rules(&self) -> Result<()> {
        let mut login = None;
        let rule = self.choose(&mut login)?;
        let matched = |error: Error| self.at_rule(error, rule);
        let certificate = self.access.tls.as_ref().and_then(|tls| tls.client.as_ref());
        if rule.client_cert() != ClientCert::Off && certificate.is_none() {
            let error = denied("connection requires a valid client certificate");
            return Err(matched(error));
        }
        match rule.method() {
            Method::Reject => return Err(self.no_entry(true)),
            Method::Trust | Method::Cert => {}
            Method::Scram | Method::Md5 => {
                let login = match login {
                    Some(login) => login,
                    None => self.look_up(false)?,
                };
                self.ask_for_password(&login).map_err(matched)?;
            }
        }
        if rule.client_cert() == ClientCert::VerifyFull {
            let named = certificate.and_then(|certificate| match rule.by_subject() {
                true => Some(certificate.subject_reversed.as_str()),
                false => certificate.common_name.as_deref(),
            });
            if named != Some(&self.startup.user) {
                return Err(matched(self.failed(rule.method())));
            }
        }
        self.note_identity(rule);
        Ok(())
    }

    /// What the server's log is told of a refusal, and the client is not: the rule.
    fn at_rule(&self, error: Error, rule: &Rule) -> Error {
        if !matches!(
            error.state(),
            WRONG_PASSWORD | SqlState::INVALID_AUTHORIZATION
        ) {
            return error;
        }
        let line = rule.line();
        let matched = format!("Connection matched pg_hba.conf line {line}: \"{rule}\"");
        let detail = match &error.fields().log_detail {
            Some(reason) => format!("{reason}\n{matched}"),
            None => matched,
        };
        error.with_log_detail(detail)
    }

    /// Logs as whom the client has shown itself, where it had to.
    fn note_identity(&self, rule: &Rule) {
        let certificate = self.access.tls.as_ref().and_then(|tls| tls.client.as_ref());
        let identity = match (rule.method(), certificate) {
            (Method::Trust | Method::Reject, _) => return,
            (Method::Cert, Some(certificate)) => &certificate.subject,
            _ => &self.startup.user,
        };
        let log = &self.channel.log;
        log.authenticated(identity, rule.method().name(), rule.line());
    }

    /// The first rule that fits.
    fn choose(&self, login: &mut Option<Login>) -> Result<&Rule> {
        let (database, user) = (&self.startup.database, &self.startup.user);
        for rule in &self.access.rules {
            if rule.asks_for_membership() && login.is_none() {
                *login = Some(self.look_up(true)?);
            }
            let roles = login.as_ref().map_or(&[][..], |login| &login.roles);
            if rule.fits_names(database, user, roles) {
                return Ok(rule);
            }
        }
        Err(self.no_entry(false))
    }

    /// What is known of the role, once nothing can take it back.
    fn look_up(&self, with_roles: bool) -> Result<Login> {
        let (login, debt) =
            login::look_up(&*self.engine.transactions, &self.startup.user, with_roles)?;
        if !self.engine.gate.is_settled(&debt, Durability::On) {
            coro::wait(self.engine.gate.settle(debt, Durability::On)).map_err(interrupted)??;
        }
        Ok(login)
    }

    /// No rule fits, or the one that does refuses.
    fn no_entry(&self, is_rejected: bool) -> Error {
        let host = self.client.unwrap_or("[local]");
        let (database, user) = (&self.startup.database, &self.startup.user);
        let encryption = match self.access.tls {
            Some(_) => "SSL encryption",
            None => "no encryption",
        };
        let what = match is_rejected {
            true => "pg_hba.conf rejects connection",
            false => "no pg_hba.conf entry",
        };
        denied(format!(
            "{what} for host \"{host}\", user \"{user}\", database \"{database}\", {encryption}"
        ))
    }

    fn failed(&self, method: Method) -> Error {
        let user = &self.startup.user;
        let (state, what) = match method {
            Method::Scram | Method::Md5 => (WRONG_PASSWORD, "password"),
            Method::Cert => (SqlState::INVALID_AUTHORIZATION, "certificate"),
            Method::Trust | Method::Reject => (SqlState::INVALID_AUTHORIZATION, "\"trust\""),
        };
        let message = format!("{what} authentication failed for user \"{user}\"");
        Error::of_class(ErrorClass::Session, state, message)
    }

    // ---- Passwords ----

    fn ask_for_password(&self, login: &Login) -> Result<()> {
        let end_point = self.access.tls.as_ref().map(|tls| tls.end_point.clone());
        let now = self.env.wall_clock().0;
        let has_expired = login.valid_until.is_some_and(|until| until < now);
        let verifier = login.verifier.as_deref().filter(|_| !has_expired);
        let mut exchange = match verifier.and_then(Verifier::parse) {
            Some(verifier) => Exchange::new(verifier, end_point),
            None => Exchange::mock(self.mock_key, &self.startup.user, end_point),
        };
        let mechanisms = exchange.mechanisms();
        self.send(|out| put_sasl_mechanisms(out, &mechanisms));
        let body = self.receive()?;
        let mut reader = BodyReader::new(&body);
        let mechanism = reader.cstr()?;
        let message = reader.value()?.unwrap_or_default();
        reader.finish()?;
        let mechanism = String::from_utf8_lossy(mechanism);
        let secret = self.env.secret();
        let first = exchange.first(&mechanism, message, &secret[..scram::NONCE_BYTES])?;
        self.send(|out| put_sasl_data(out, SASL_CONTINUE, first.as_bytes()));
        match exchange.last(&self.receive()?)? {
            Outcome::Refused => Err(self.refused(login, has_expired)),
            Outcome::Proved(signature) => {
                self.send(|out| put_sasl_data(out, SASL_FINAL, signature.as_bytes()));
                Ok(())
            }
        }
    }

    /// The client does not know the password, or there is none to know.
    fn refused(&self, login: &Login, has_expired: bool) -> Error {
        let user = &self.startup.user;
        let error = self.failed(Method::Scram);
        match &login.verifier {
            None if !login.is_there => {
                error.with_log_detail(format!("Role \"{user}\" does not exist."))
            }
            None => error.with_log_detail(format!("User \"{user}\" has no password assigned.")),
            Some(_) if has_expired => {
                error.with_log_detail(format!("User \"{user}\" has an expired password."))
            }
            Some(verifier) if Verifier::parse(verifier).is_none() => error.with_log_detail(
                format!("User \"{user}\" does not have a valid SCRAM secret."),
            ),
            Some(_) => error,
        }
    }

    fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut output = self.channel.output.borrow_mut();
        output.push(Content::Free, write);
        output.flush();
    }

    /// The body of the client's next message, which must be one of the exchange.
    fn receive(&self) -> Result<Vec<u8>> {
        let input = &self.channel.input;
        let arrived = self.channel.arrived.until(|| {
            let input = input.borrow();
            let is_other = input.buffered().first().is_some_and(|kind| *kind != b'p');
            (is_other || input.has_message()).then_some(())
        });
        coro::wait(arrived).map_err(interrupted)?;
        let mut input = input.borrow_mut();
        if let Some(kind) = input.buffered().first().filter(|kind| **kind != b'p') {
            return Err(violation(format!(
                "expected SASL response, got message type {kind}"
            )));
        }
        match input.next()? {
            Some(frame) => Ok(frame.body.to_vec()),
            None => Err(violation("expected SASL response")),
        }
    }
}

fn interrupted(interrupt: Interrupt) -> Error {
    match interrupt {
        Interrupt::StatementTimeout => Error::of_class(
            ErrorClass::Session,
            SqlState::QUERY_CANCELED,
            "canceling authentication due to timeout",
        ),
        other => Error::from(other),
    }
}

fn denied(message: impl Into<String>) -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::INVALID_AUTHORIZATION,
        message,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_travels() {
        let mut access = Access::trusted();
        for step in 0..4 {
            let mut bytes = Vec::new();
            access.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(Access::decode(&mut reader).unwrap(), access);
            reader.finish().unwrap();
            for cut in 0..bytes.len() {
                assert!(Access::decode(&mut Reader::new(&bytes[..cut])).is_err());
            }
            match step {
                0 => {
                    access.is_known = true;
                    access.rules = vec![Rule::trust_all().at_line(300)];
                }
                1 => {
                    access.tls = Some(Tls {
                        version: "TLSv1.3".to_owned(),
                        cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
                        bits: 256,
                        end_point: vec![7; 32],
                        client: None,
                    });
                }
                _ => {
                    if let Some(tls) = &mut access.tls {
                        tls.client = Some(ClientCertificate {
                            subject: "/CN=ann".to_owned(),
                            ..ClientCertificate::default()
                        });
                    }
                }
            }
        }
    }
}
