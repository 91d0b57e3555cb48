//! Who may come in, from where, and what they must show: rules in the form of `pg_hba.conf`.
//!
//! ```text
//! # type   database  user      address        method         options
//! host     all       all       127.0.0.0/8    trust
//! hostssl  bank      ann,+ops  10.0.0.0/8     scram-sha-256  clientcert=verify-full
//! hostssl  all       all       all            cert
//! ```
//!
//! The first rule that fits a connection decides; a connection that none fits is refused. A rule
//! fits by type (encrypted or not) and address, which the node that accepts the connection knows,
//! and by database, user and the roles whose member the user is, which whoever serves the session
//! knows. So the first takes the rules that are left ([`Rule::fits_connection`]), and the second
//! chooses among them ([`Rule::fits_names`]); [`Rule`]'s text is how they travel in between.
//!
//! ```
//! use pg::hba;
//! let lines = hba::parse("host all all 127.0.0.1/32 trust\nhost all all all fancy");
//! assert_eq!(lines[0].rule.as_ref().unwrap().to_string(), "host all all 127.0.0.1/32 trust");
//! let error = lines[1].rule.as_ref().unwrap_err();
//! assert_eq!(error, "invalid authentication method \"fancy\"");
//! ```
//!
//! # What it leaves out
//! Methods beyond trust, reject, scram-sha-256, md5 (which is SCRAM for whoever has a SCRAM
//! verifier, as in PostgreSQL, and refuses others) and cert; host names, `samenet`, files named
//! with `@`, maps of user names, GSSAPI. A file with any of them is refused, line by line.
//! Lines of type `local` are read and never fit: there is no socket in the file system.
//!
//! Source: PostgreSQL 15 manual, section 21.1.

use std::fmt;
use std::net::IpAddr;

use ::sql::session::activity::HbaRule;

/// Rules of one node; a file with more is refused.
pub const RULES_MAX: usize = 1_000;

/// Which connections a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Through the file system: none.
    Local,
    /// Encrypted or not.
    Host,
    /// Encrypted with TLS.
    HostSsl,
    /// Not encrypted with TLS.
    HostNoSsl,
    /// Encrypted with GSSAPI: none.
    HostGss,
    /// Not encrypted with GSSAPI: all.
    HostNoGss,
}

impl Kind {
    const NAMES: [(Kind, &'static str); 6] = [
        (Kind::Local, "local"),
        (Kind::Host, "host"),
        (Kind::HostSsl, "hostssl"),
        (Kind::HostNoSsl, "hostnossl"),
        (Kind::HostGss, "hostgssenc"),
        (Kind::HostNoGss, "hostnogssenc"),
    ];

    /// As the file names it.
    pub fn name(self) -> &'static str {
        let known = Kind::NAMES.iter().find(|(kind, _)| *kind == self);
        known.map_or("", |(_, name)| name)
    }
}

/// What a client must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing.
    Trust,
    /// Whatever it shows, it is refused.
    Reject,
    /// That it knows the password.
    Scram,
    /// The same, under the name of older files.
    Md5,
    /// A certificate in its user's name.
    Cert,
}

impl Method {
    const NAMES: [(Method, &'static str); 5] = [
        (Method::Trust, "trust"),
        (Method::Reject, "reject"),
        (Method::Scram, "scram-sha-256"),
        (Method::Md5, "md5"),
        (Method::Cert, "cert"),
    ];

    /// As the file names it.
    pub fn name(self) -> &'static str {
        let known = Method::NAMES.iter().find(|(method, _)| *method == self);
        known.map_or("", |(_, name)| name)
    }
}

/// Methods of PostgreSQL that are not here.
const OTHER_METHODS: [&str; 10] = [
    "password", "peer", "ident", "gss", "sspi", "pam", "bsd", "ldap", "radius", "krb5",
];

/// Whether a client must show a certificate besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientCert {
    /// No.
    Off,
    /// One of the authority that is trusted.
    VerifyCa,
    /// One in its user's name.
    VerifyFull,
}

/// A word of the file; in quotes it is a name, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

impl Word {
    fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quoted {
            true => write!(f, "\"{}\"", self.text),
            false => f.write_str(&self.text),
        }
    }
}

/// Where a client comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    /// Rules of type `local` have none.
    None,
    /// Anywhere.
    All,
    /// The machine of the node.
    SameHost,
    /// A range of addresses: those that begin with the first bits of this one.
    Net(IpAddr, u8),
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    kind: Kind,
    databases: Vec<Word>,
    users: Vec<Word>,
    address: Address,
    method: Method,
    client_cert: ClientCert,
    /// The certificate names its user by the whole of its subject, not by its common name alone.
    by_subject: bool,
    /// Its place in the file, from 1; 0 where it stands in none.
    line: u32,
}

/// One line of a file that is neither empty nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u32,
    /// The rule, or what is wrong with it.
    pub rule: Result<Rule, String>,
}

/// Reads a file.
pub fn parse(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut physical = text.lines().zip(1..);
    while let Some((line, number)) = physical.next() {
        let mut whole = line.to_owned();
        // A backslash at the end goes on in the next line.
        while whole.ends_with('\\') {
            whole.pop();
            match physical.next() {
                Some((next, _)) => whole.push_str(next),
                None => break,
            }
        }
        let fields = split(&whole);
        if fields.is_empty() {
            continue;
        }
        lines.push(Line {
            number,
            rule: match lines.len() < RULES_MAX {
                true => read(&fields).map(|rule| rule.at_line(number)),
                false => Err(format!("there are more than {RULES_MAX} rules")),
            },
        });
    }
    lines
}

/// The fields of a line: words with commas between them.
fn split(line: &str) -> Vec<Vec<Word>> {
    let mut fields: Vec<Vec<Word>> = Vec::new();
    let mut characters = line.chars().peekable();
    let mut goes_on = false;
    loop {
        while characters.next_if(|next| next.is_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#') => return fields,
            Some(',') => {
                characters.next();
                goes_on = true;
                continue;
            }
            Some(_) => {}
        }
        let mut word = Word {
            text: String::new(),
            quoted: characters.peek() == Some(&'"'),
        };
        let mut in_quotes = false;
        while let Some(next) = characters.peek().copied() {
            let ends = next.is_whitespace() || matches!(next, ',' | '#');
            if ends && !in_quotes {
                break;
            }
            characters.next();
            match next {
                '"' => in_quotes = !in_quotes,
                _ => word.text.push(next),
            }
        }
        match fields.last_mut().filter(|_| goes_on) {
            Some(field) => field.push(word),
            None => fields.push(vec![word]),
        }
        goes_on = characters.next_if_eq(&',').is_some();
    }
}

fn read(fields: &[Vec<Word>]) -> Result<Rule, String> {
    let mut fields = fields.iter();
    let kind = single(fields.next(), "connection type")?;
    let kind = Kind::NAMES
        .into_iter()
        .find(|(_, name)| *name == kind.text)
        .map(|(known, _)| known)
        .ok_or_else(|| format!("invalid connection type \"{}\"", kind.text))?;
    let databases = names(fields.next(), "database")?;
    let users = names(fields.next(), "role")?;
    let address = match kind {
        Kind::Local => Address::None,
        _ => {
            let first = fields
                .next()
                .ok_or("end-of-line before IP address specification")?;
            read_address(single(Some(first), "host address")?, &mut fields)?
        }
    };
    let method = fields
        .next()
        .ok_or("end-of-line before authentication method")?;
    let method = read_method(&single(Some(method), "authentication type")?.text)?;
    if method == Method::Cert && kind != Kind::HostSsl {
        return Err("cert authentication is only supported on hostssl connections".to_owned());
    }
    let mut rule = Rule {
        kind,
        databases,
        users,
        address,
        method,
        client_cert: ClientCert::Off,
        by_subject: false,
        line: 0,
    };
    for option in fields.flatten() {
        read_option(&mut rule, &option.text)?;
    }
    if method == Method::Cert {
        if rule.client_cert == ClientCert::VerifyCa {
            return Err(
                "clientcert can only be set to \"verify-full\" when using \"cert\" authentication"
                    .to_owned(),
            );
        }
        rule.client_cert = ClientCert::VerifyFull;
    }
    Ok(rule)
}

fn single<'a>(field: Option<&'a Vec<Word>>, what: &str) -> Result<&'a Word, String> {
    match field.map(Vec::as_slice) {
        Some([word]) => Ok(word),
        _ => Err(format!("multiple values specified for {what}")),
    }
}

fn names(field: Option<&Vec<Word>>, what: &str) -> Result<Vec<Word>, String> {
    let words = field.ok_or_else(|| format!("end-of-line before {what} specification"))?;
    let file = words
        .iter()
        .find(|word| !word.quoted && word.text.starts_with('@'));
    match file {
        Some(word) => Err(format!(
            "secondary authentication files (\"{}\") are not supported",
            word.text
        )),
        None => Ok(words.clone()),
    }
}

fn read_method(name: &str) -> Result<Method, String> {
    let mut known = Method::NAMES.into_iter();
    if let Some((method, _)) = known.find(|(_, known)| *known == name) {
        return Ok(method);
    }
    let mut error = format!("invalid authentication method \"{name}\"");
    if OTHER_METHODS.contains(&name) {
        error.push_str(": not supported by this build");
    }
    Err(error)
}

fn read_address<'a>(
    word: &Word,
    more: &mut impl Iterator<Item = &'a Vec<Word>>,
) -> Result<Address, String> {
    if word.is("all") {
        return Ok(Address::All);
    }
    if word.is("samehost") {
        return Ok(Address::SameHost);
    }
    if word.is("samenet") {
        return Err("the address samenet is not supported".to_owned());
    }
    let (ip, length) = match word.text.split_once('/') {
        Some((ip, length)) => (ip, Some(length)),
        None => (&word.text[..], None),
    };
    let Ok(ip) = ip.parse::<IpAddr>() else {
        return Err(match length {
            Some(_) => format!(
                "specifying both host name and CIDR mask is invalid: \"{}\"",
                word.text
            ),
            None => format!("host names (\"{}\") are not supported", word.text),
        });
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    if let Some(length) = length {
        let length = length.parse().ok().filter(|length| *length <= bits);
        let length =
            length.ok_or_else(|| format!("invalid CIDR mask in address \"{}\"", word.text))?;
        return Ok(Address::Net(ip, length));
    }
    let Some(mask) = more.next() else {
        return Err("end-of-line before netmask specification".to_owned());
    };
    let mask = single(Some(mask), "netmask")?;
    let Ok(mask) = mask.text.parse::<IpAddr>() else {
        return Err(format!("invalid IP mask \"{}\"", mask.text));
    };
    if mask.is_ipv4() != ip.is_ipv4() {
        return Err("IP address and mask do not match".to_owned());
    }
    let (mask, shift) = match mask {
        IpAddr::V4(mask) => (u128::from(mask.to_bits()), 96),
        IpAddr::V6(mask) => (mask.to_bits(), 0),
    };
    let length = (mask << shift).leading_ones();
    if (mask << shift) << length.min(127) != 0 && length < u32::from(bits) {
        return Err("an IP mask with gaps is not supported".to_owned());
    }
    Ok(Address::Net(ip, length as u8))
}

fn read_option(rule: &mut Rule, option: &str) -> Result<(), String> {
    let Some((name, value)) = option.split_once('=') else {
        return Err(format!(
            "authentication option not in name=value format: {option}"
        ));
    };
    match name {
        "clientcert" => {
            if rule.kind != Kind::HostSsl {
                return Err("clientcert can only be configured for \"hostssl\" rows".to_owned());
            }
            rule.client_cert = match value {
                "verify-ca" => ClientCert::VerifyCa,
                "verify-full" => ClientCert::VerifyFull,
                _ => return Err(format!("invalid value for clientcert: \"{value}\"")),
            };
        }
        "clientname" => {
            if rule.kind != Kind::HostSsl {
                return Err("clientname can only be configured for \"hostssl\" rows".to_owned());
            }
            rule.by_subject = match value {
                "CN" => false,
                "DN" => true,
                _ => return Err(format!("invalid value for clientname: \"{value}\"")),
            };
        }
        "map" if rule.method == Method::Cert => {
            return Err("maps of user names are not supported".to_owned());
        }
        "map" => {
            return Err(
                "authentication option \"map\" is only valid for authentication methods ident, \
                 peer, gssapi, sspi, and cert"
                    .to_owned(),
            );
        }
        _ => {
            return Err(format!(
                "unrecognized authentication option name: \"{name}\""
            ))
        }
    }
    Ok(())
}

/// Whether an address begins with the first `length` bits of another.
fn begins_with(address: IpAddr, net: IpAddr, length: u8) -> bool {
    let (a, b, bits) = match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let differing: u128 = a ^ b;
    length == 0 || differing >> (bits - u32::from(length)) == 0
}

/// How a connection came in, as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Where the client comes from; none in worlds without addresses.
    pub client: Option<IpAddr>,
    /// Where it was accepted.
    pub server: Option<IpAddr>,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

impl Rule {
    /// Lets everybody in. A node without a file has this rule, and listens on loopback only.
    pub fn trust_all() -> Rule {
        let all = Word {
            text: "all".to_owned(),
            quoted: false,
        };
        Rule {
            kind: Kind::Host,
            databases: vec![all.clone()],
            users: vec![all],
            address: Address::All,
            method: Method::Trust,
            client_cert: ClientCert::Off,
            by_subject: false,
            line: 0,
        }
    }

    /// The same rule at a line of its file.
    #[must_use]
    pub fn at_line(self, line: u32) -> Rule {
        Rule { line, ..self }
    }

    /// Its line in the file, from 1; 0 where it stands in none.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// What the client must show.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether it must show a certificate.
    pub fn client_cert(&self) -> ClientCert {
        self.client_cert
    }

    /// Whether its certificate names its user by the whole of its subject.
    pub fn by_subject(&self) -> bool {
        self.by_subject
    }

    /// Whether the rule is for encrypted connections only.
    pub fn needs_tls(&self) -> bool {
        self.kind == Kind::HostSsl
    }

    /// Whether the rule is for such a connection.
    pub fn fits_connection(&self, connection: &Connection) -> bool {
        let is_kind = match self.kind {
            Kind::Local | Kind::HostGss => false,
            Kind::Host | Kind::HostNoGss => true,
            Kind::HostSsl => connection.encrypted,
            Kind::HostNoSsl => !connection.encrypted,
        };
        let client = connection.client.map(|ip| ip.to_canonical());
        let server = connection.server.map(|ip| ip.to_canonical());
        is_kind
            && match self.address {
                Address::None => false,
                Address::All => true,
                Address::SameHost => {
                    client.is_some_and(|ip| ip.is_loopback() || Some(ip) == server)
                }
                Address::Net(net, length) => client.is_some_and(|ip| begins_with(ip, net, length)),
            }
    }

    /// Whether choosing this rule takes knowing whose member the user is.
    pub fn asks_for_membership(&self) -> bool {
        let is_group = |word: &Word| !word.quoted && word.text.starts_with('+');
        let by_role = |word: &Word| word.is("samerole") || word.is("samegroup");
        self.users.iter().any(is_group) || self.databases.iter().any(by_role)
    }

    /// Whether the rule is for that user in that database; `roles` are those whose member the user
    /// is, itself among them.
    pub fn fits_names(&self, database: &str, user: &str, roles: &[String]) -> bool {
        let is_of = |role: &str| roles.iter().any(|known| known == role);
        let fits_database = self
            .databases
            .iter()
            .any(|word| match (&word.text[..], word.quoted) {
                ("all", false) => true,
                ("sameuser", false) => database == user,
                ("samerole" | "samegroup", false) => is_of(database),
                ("replication", false) => false,
                (name, _) => name == database,
            });
        let fits_user =
            self.users
                .iter()
                .any(|word| match (word.text.strip_prefix('+'), word.quoted) {
                    (Some(role), false) => is_of(role),
                    _ => word.is("all") || word.text == user,
                });
        fits_database && fits_user
    }

    /// Why the rule must not stand where other machines can connect; none where it may.
    pub fn exposes(&self) -> Option<&'static str> {
        let is_near = match self.address {
            Address::None | Address::SameHost => true,
            Address::All => false,
            Address::Net(net, length) => match net {
                IpAddr::V4(_) => net.is_loopback() && length >= 8,
                IpAddr::V6(_) => net.is_loopback() && length == 128,
            },
        };
        let admits = !matches!(self.method, Method::Reject);
        if is_near || !admits || matches!(self.kind, Kind::Local | Kind::HostGss) {
            return None;
        }
        if self.kind != Kind::HostSsl {
            return Some("it lets other machines in without TLS; make it a hostssl rule");
        }
        if self.method == Method::Trust && self.client_cert != ClientCert::VerifyFull {
            return Some(
                "it lets other machines in without authentication; ask for scram-sha-256, cert, \
                 or clientcert=verify-full",
            );
        }
        None
    }

    /// As `pg_hba_file_rules` shows it.
    pub fn shown(&self, number: u32) -> HbaRule {
        let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect();
        let (address, netmask) = match self.address {
            Address::None => (None, None),
            Address::All => (Some("all".to_owned()), None),
            Address::SameHost => (Some("samehost".to_owned()), None),
            Address::Net(ip, length) => (Some(ip.to_string()), Some(mask(ip, length).to_string())),
        };
        let mut options = Vec::new();
        match self.client_cert {
            ClientCert::Off => {}
            ClientCert::VerifyCa => options.push("clientcert=verify-ca".to_owned()),
            ClientCert::VerifyFull => options.push("clientcert=verify-full".to_owned()),
        }
        HbaRule {
            line: number,
            kind: Some(self.kind.name()),
            databases: texts(&self.databases),
            users: texts(&self.users),
            address,
            netmask,
            method: Some(self.method.name()),
            options,
            error: None,
        }
    }
}

impl Line {
    /// As `pg_hba_file_rules` shows it.
    pub fn shown(&self) -> HbaRule {
        match &self.rule {
            Ok(rule) => rule.shown(self.number),
            Err(error) => HbaRule {
                line: self.number,
                error: Some(error.clone()),
                ..HbaRule::default()
            },
        }
    }
}

/// The mask of a range of addresses.
fn mask(ip: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match ip {
        IpAddr::V4(_) => {
            let bits = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4(bits.into())
        }
        IpAddr::V6(_) => {
            let bits = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6(bits.into())
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |words: &[Word]| {
            let words: Vec<_> = words.iter().map(Word::to_string).collect();
            words.join(",")
        };
        let (kind, databases, users) = (self.kind.name(), &self.databases, &self.users);
        write!(f, "{kind} {} {} ", list(databases), list(users))?;
        match self.address {
            Address::None => {}
            Address::All => f.write_str("all ")?,
            Address::SameHost => f.write_str("samehost ")?,
            Address::Net(ip, length) => write!(f, "{ip}/{length} ")?,
        }
        f.write_str(self.method.name())?;
        match self.client_cert {
            ClientCert::Off => {}
            ClientCert::VerifyCa => f.write_str(" clientcert=verify-ca")?,
            ClientCert::VerifyFull => f.write_str(" clientcert=verify-full")?,
        }
        match self.by_subject {
            true => f.write_str(" clientname=DN"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(line: &str) -> Rule {
        let lines = parse(line);
        assert_eq!(lines.len(), 1, "{line}");
        lines[0].rule.clone().unwrap()
    }

    fn from(client: &str, encrypted: bool) -> Connection {
        Connection {
            client: client.parse().ok(),
            server: "10.0.0.1".parse().ok(),
            encrypted,
        }
    }

    #[test]
    fn rules_travel_as_text() {
        for line in [
            "host all all 127.0.0.1/32 trust",
            "hostssl all,\"b c\" +grp,\"all\" samehost cert clientcert=verify-full",
            "hostssl sameuser all all scram-sha-256 clientcert=verify-ca clientname=DN",
            "hostnossl all all fe80::/10 reject",
            "local all all trust",
        ] {
            assert_eq!(rule(line).to_string(), line);
        }
        let masked = rule("host all all 10.0.0.0 255.128.0.0 md5");
        assert_eq!(masked.to_string(), "host all all 10.0.0.0/9 md5");
        let spread = rule("host all, \"x\" \\\n all all reject # comment");
        assert_eq!(spread.to_string(), "host all,\"x\" all all reject");
        assert_eq!(parse("# nothing\n\n  \t\n"), []);
    }

    /// The texts are PostgreSQL 15's, but for what is not supported.
    #[test]
    fn errors_name_what_is_wrong() {
        for (line, error) in [
            (
                "host all all 10.0.0.0/99 trust",
                "invalid CIDR mask in address \"10.0.0.0/99\"",
            ),
            (
                "host all all 10.0.0.0/8x trust",
                "invalid CIDR mask in address \"10.0.0.0/8x\"",
            ),
            (
                "host all all 10.0.0.0/8 fancy",
                "invalid authentication method \"fancy\"",
            ),
            (
                "host all all 10.0.0.0/8",
                "end-of-line before authentication method",
            ),
            (
                "host all all",
                "end-of-line before IP address specification",
            ),
            ("host all", "end-of-line before role specification"),
            ("host", "end-of-line before database specification"),
            (
                "bogus all all all trust",
                "invalid connection type \"bogus\"",
            ),
            (
                "host,local all all all trust",
                "multiple values specified for connection type",
            ),
            (
                "host all all 10.0.0.0/8 scram-sha-256 clientcert=verify-full",
                "clientcert can only be configured for \"hostssl\" rows",
            ),
            (
                "hostssl all all all scram-sha-256 foo=bar",
                "unrecognized authentication option name: \"foo\"",
            ),
            (
                "hostssl all all all scram-sha-256 foo",
                "authentication option not in name=value format: foo",
            ),
            (
                "host all all all cert",
                "cert authentication is only supported on hostssl connections",
            ),
            (
                "hostssl all all all cert clientcert=verify-ca",
                "clientcert can only be set to \"verify-full\" when using \"cert\" authentication",
            ),
            (
                "host all all ::1 255.0.0.0 trust",
                "IP address and mask do not match",
            ),
            (
                "host all all ::1,::2 trust",
                "multiple values specified for host address",
            ),
            (
                "host all all samehost/8 trust",
                "specifying both host name and CIDR mask is invalid: \"samehost/8\"",
            ),
            ("host all all 10.0.0.0 trust", "invalid IP mask \"trust\""),
            (
                "host all all all ldap",
                "invalid authentication method \"ldap\": not supported by this build",
            ),
        ] {
            let lines = parse(line);
            assert_eq!(lines[0].rule.clone().unwrap_err(), error, "{line}");
        }
    }

    #[test]
    fn connections_are_told_apart() {
        for (line, client, encrypted, fits) in [
            ("host all all 10.0.0.0/8 trust", "10.255.0.1", false, true),
            ("host all all 10.0.0.0/8 trust", "11.0.0.1", false, false),
            (
                "host all all 10.0.0.0/8 trust",
                "::ffff:10.0.0.7",
                false,
                true,
            ),
            ("host all all 0.0.0.0/0 trust", "11.0.0.1", true, true),
            ("host all all ::/0 trust", "11.0.0.1", true, false),
            ("host all all 10.0.0.5/32 trust", "10.0.0.4", true, false),
            ("hostssl all all all trust", "10.0.0.4", false, false),
            ("hostnossl all all all trust", "10.0.0.4", false, true),
            ("hostnossl all all all trust", "10.0.0.4", true, false),
            ("host all all samehost trust", "10.0.0.1", false, true),
            ("host all all samehost trust", "127.0.0.9", false, true),
            ("host all all samehost trust", "10.0.0.2", false, false),
            ("hostgssenc all all all trust", "10.0.0.2", true, false),
            ("local all all trust", "127.0.0.1", false, false),
        ] {
            let connection = from(client, encrypted);
            assert_eq!(
                rule(line).fits_connection(&connection),
                fits,
                "{line} {client}"
            );
        }
    }

    #[test]
    fn names_are_told_apart() {
        let roles = ["ann".to_owned(), "ops".to_owned()];
        for (databases, users, fits) in [
            ("all", "all", true),
            ("bank", "ann", true),
            ("shop", "ann", false),
            ("bank", "bob", false),
            ("bank,shop", "bob,ann", true),
            ("sameuser", "all", false),
            ("all", "+ops", true),
            ("all", "+dev", false),
            ("all", "\"+ops\"", false),
            ("all", "\"all\"", false),
            ("\"all\"", "all", false),
            ("samerole", "all", false),
            ("replication", "all", false),
        ] {
            let rule = rule(&format!("host {databases} {users} all trust"));
            assert_eq!(
                rule.fits_names("bank", "ann", &roles),
                fits,
                "{databases} {users}"
            );
        }
        let own = rule("host samerole all all trust");
        assert!(own.fits_names("ops", "ann", &roles) && own.asks_for_membership());
    }

    #[test]
    fn rules_that_expose_are_known() {
        for (line, exposes) in [
            ("host all all all trust", true),
            ("host all all 127.0.0.0/8 trust", false),
            ("host all all ::1/128 trust", false),
            ("host all all 0.0.0.0/0 reject", false),
            ("host all all 10.0.0.0/8 scram-sha-256", true),
            ("hostnossl all all 10.0.0.0/8 scram-sha-256", true),
            ("hostssl all all 10.0.0.0/8 scram-sha-256", false),
            ("hostssl all all 10.0.0.0/8 trust", true),
            (
                "hostssl all all 10.0.0.0/8 trust clientcert=verify-full",
                false,
            ),
            ("hostssl all all 10.0.0.0/8 cert", false),
            ("host all all 127.0.0.0/7 trust", true),
        ] {
            assert_eq!(rule(line).exposes().is_some(), exposes, "{line}");
        }
    }
}
