//! What a node is told when it starts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, NodeId, Result, SqlState};
use kv::{Directory, GroupSettings, Member};

use crate::access::RULES_FILE;
use crate::secure::Secure;
use crate::wire::ClusterId;

pub mod documented;

/// `max_connections` where nobody says otherwise.
const MAX_CONNECTIONS: usize = 1_000;

/// Of those, the last are for superusers, where nobody says otherwise.
const RESERVED_CONNECTIONS: usize = 3;

/// A client must have shown who it is within this time, where nobody says otherwise.
pub const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(60);

/// As in PostgreSQL.
const AUTHENTICATION_TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// What a node is told when it starts.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// This node.
    pub node: NodeId,
    /// The members when the cluster was founded, or when this node was added; this node included.
    pub members: Vec<Member>,
    /// The group's incarnation then.
    pub incarnation: u64,
    /// The position after which that began; zero for the first.
    pub begun_after: base::Lsn,
    /// A role and a database of this name exist from the first start on, beside `postgres`.
    pub user: String,
    /// Settings by name, as an operator writes them. What is no setting of a node is the default of
    /// that setting in every session.
    pub settings: BTreeMap<String, String>,
    /// What proves the password of that role from the first start on, as `pg_authid` keeps it.
    pub password: Option<String>,
    /// What encrypts connections; none where nothing is encrypted.
    pub secure: Option<Arc<dyn Secure>>,
    /// Where its files are.
    pub places: Places,
}

/// Where a node's files are, as sessions are shown it; empty where there are none, as in the simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Its directory.
    pub directory: String,
    /// The file by which it was started.
    pub config_file: String,
    /// The settings that stood there.
    pub given: Vec<(String, String)>,
}

impl Places {
    /// What sessions are shown: settings and their values.
    pub(crate) fn shown(&self) -> Vec<(&'static str, String)> {
        let rules = match self.directory.as_str() {
            "" => String::new(),
            directory => format!("{directory}/{RULES_FILE}"),
        };
        vec![
            ("data_directory", self.directory.clone()),
            ("config_file", self.config_file.clone()),
            ("hba_file", rules),
        ]
    }
}

/// Where certificates and keys are, relative to the node's directory; see `real::tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TlsSettings {
    /// Whether clients may have their connections encrypted.
    pub ssl: bool,
    pub cert_file: String,
    pub key_file: String,
    /// Whose certificates of clients are taken; empty for nobody's.
    pub ca_file: String,
    /// Which of them are revoked; empty where nobody asks.
    pub crl_file: String,
    /// Whether nodes talk encrypted, and only so.
    pub peer_tls: bool,
    pub peer_cert_file: String,
    pub peer_key_file: String,
    pub peer_ca_file: String,
    /// Which certificates of nodes are revoked; where nobody says, `crl_file`'s.
    pub peer_crl_file: Option<String>,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings {
            ssl: false,
            cert_file: "server.crt".to_owned(),
            key_file: "server.key".to_owned(),
            ca_file: String::new(),
            crl_file: String::new(),
            peer_tls: false,
            peer_cert_file: "node.crt".to_owned(),
            peer_key_file: "node.key".to_owned(),
            peer_ca_file: "ca.crt".to_owned(),
            peer_crl_file: None,
        }
    }
}

/// How much of its log a node keeps, of each form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFiles {
    /// A file that would be longer is put aside; none where files grow without bound.
    pub bytes_max: Option<u64>,
    /// So many that were put aside are kept.
    pub kept: u32,
}

impl Default for LogFiles {
    fn default() -> LogFiles {
        LogFiles {
            bytes_max: Some(10 << 20),
            kept: 10,
        }
    }
}

/// `quorate.leaders`: where further groups are led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leaders {
    /// By the node that leads the first, where sessions are: no transaction needs another node.
    #[default]
    Together,
    /// By as many voters as there are, each of as many groups as the others.
    Spread,
}

impl Leaders {
    /// Its name in the setting.
    pub fn name(self) -> &'static str {
        match self {
            Leaders::Together => "together",
            Leaders::Spread => "spread",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Leaders> {
        let all = [Leaders::Together, Leaders::Spread];
        all.into_iter().find(|one| one.name() == name)
    }
}

/// Settings of a node, read.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Clients that the node serves at once; one more gets 53300.
    pub max_connections: usize,
    /// The last of them, which are for superusers; where nobody says, 3, but fewer than all.
    reserved_connections: Option<usize>,
    /// A client must have shown who it is within this time.
    pub authentication_timeout: Duration,
    /// How long a session reactor looks for input before it sleeps; where nobody says, that follows
    /// from the cores and nodes of the machine.
    pub spin: Option<Duration>,
    /// `quorate.memory_budget`: bytes that the node's own parts and its sessions may take together;
    /// without it nobody counts.
    pub memory_budget: Option<usize>,
    /// Where further groups are led.
    pub leaders: Leaders,
    /// How its connections are encrypted.
    pub tls: TlsSettings,
    /// How long the files of its log may be.
    pub log_files: LogFiles,
    /// What its group is told.
    pub group: GroupSettings,
    /// Defaults of the settings of every session.
    pub session: Vec<(String, String)>,
}

impl NodeConfig {
    /// The directory of the first group as this node was told of it.
    pub fn directory(&self) -> Directory {
        Directory {
            begun_after: self.begun_after,
            ..Directory::founded(&self.members, self.incarnation)
        }
    }

    /// This node among the members.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn member(&self) -> Result<&Member> {
        let this = self.members.iter().find(|member| member.node == self.node);
        this.ok_or_else(|| {
            Error::corrupted(format!("node {} is no member of its cluster", self.node))
        })
    }

    /// The settings, read.
    ///
    /// # Errors
    /// As [`NodeSettings::read`].
    pub fn settings(&self) -> Result<NodeSettings> {
        NodeSettings::read(&self.settings)
    }
}

/// 22023, in PostgreSQL's words.
fn bad_value(name: &str, value: &str, expected: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for parameter \"{name}\": \"{value}\""),
    )
    .with_hint(format!("A value of this setting is {expected}."))
}

/// So much of the node's memory is left to its sessions, in bytes.
pub(crate) const SESSIONS_MEMORY_MIN: u64 = 16 << 20;

/// What PostgreSQL counts buffers in.
const BLOCK_BYTES: u64 = 8 << 10;

impl NodeSettings {
    /// Reads settings.
    ///
    /// # Errors
    /// 42704 for a setting that does not exist, 22023 for a value that it cannot have.
    pub fn read(settings: &BTreeMap<String, String>) -> Result<NodeSettings> {
        let mut read = NodeSettings {
            max_connections: MAX_CONNECTIONS,
            reserved_connections: None,
            authentication_timeout: AUTHENTICATION_TIMEOUT,
            spin: None,
            memory_budget: None,
            leaders: Leaders::default(),
            tls: TlsSettings::default(),
            log_files: LogFiles::default(),
            group: GroupSettings::default(),
            session: Vec::new(),
        };
        for (name, value) in settings {
            let known = read.set(name, value);
            if !known.map_err(|expected| bad_value(name, value, expected))? {
                sql::session::check_setting(name, value)?;
                read.session.push((name.clone(), value.clone()));
            }
        }
        let (most, reserved) = (read.max_connections, read.reserved_connections());
        if reserved >= most {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "superuser_reserved_connections ({reserved}) must be less than max_connections \
                     ({most})"
                ),
            ));
        }
        read.check_memory()?;
        Ok(read)
    }

    /// The least that `quorate.memory_budget` may be, in bytes.
    pub fn memory_budget_min(&self) -> u64 {
        self.group.shared_bytes() + self.group.own_bytes() as u64 + SESSIONS_MEMORY_MIN
    }

    fn check_memory(&self) -> Result<()> {
        let least = self.memory_budget_min();
        match self.memory_budget {
            Some(budget) if (budget as u64) < least => {
                let message = format!(
                    "quorate.memory_budget ({} MB) must be at least {} MB",
                    budget >> 20,
                    least.div_ceil(1 << 20)
                );
                let hint =
                    "That is what shared_buffers and quorate.max_inflight take, and some for \
                            sessions.";
                let error = Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
                Err(error.with_hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Clients that only a superuser may be the last of.
    pub fn reserved_connections(&self) -> usize {
        let usual = RESERVED_CONNECTIONS.min(self.max_connections.saturating_sub(1));
        self.reserved_connections.unwrap_or(usual)
    }

    /// Takes a setting of a node; false when it is none. The error is what would be a value.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, &'static str> {
        if !documented::is_listed(name) {
            return Ok(false);
        }
        let group = &mut self.group;
        match name {
            "max_connections" => {
                let count = value.parse().ok().filter(|count| *count > 0);
                self.max_connections = count.ok_or("a number from 1")?;
            }
            "superuser_reserved_connections" => {
                let count = value.parse().map_err(|_| "a number from 0")?;
                self.reserved_connections = Some(count);
            }
            "authentication_timeout" => {
                let limit = match value.trim().parse() {
                    Ok(seconds) => Duration::from_secs(seconds),
                    Err(_) => duration(value)?,
                };
                if !(Duration::from_secs(1)..=AUTHENTICATION_TIMEOUT_MAX).contains(&limit) {
                    return Err("a time from 1s to 10min, in seconds where it has no unit");
                }
                self.authentication_timeout = limit;
            }
            "log_rotation_size" if value.trim() == "0" => self.log_files.bytes_max = None,
            "log_rotation_size" => self.log_files.bytes_max = Some(log_bytes(value)?),
            "quorate.log_files" => {
                let count = value.trim().parse().ok().filter(|count| *count <= 1_000);
                self.log_files.kept = count.ok_or("a number from 0 to 1000")?;
            }
            "synchronous_standby_names" => group.synchronous_standby_names = Arc::from(value),
            "quorate.standby_timeout" if value == "off" || value == "0" => {
                group.standby_timeout = None;
            }
            "quorate.standby_timeout" => group.standby_timeout = Some(duration(value)?),
            "quorate.consistency_check" if value == "off" || value == "0" => {
                group.consistency_check = None;
            }
            "quorate.consistency_check" => group.consistency_check = Some(duration(value)?),
            "quorate.leaders" => {
                self.leaders = Leaders::named(value).ok_or("together or spread")?;
            }
            "ssl" => self.tls.ssl = switch(value)?,
            "ssl_cert_file" => self.tls.cert_file = value.to_owned(),
            "ssl_key_file" => self.tls.key_file = value.to_owned(),
            "ssl_ca_file" => self.tls.ca_file = value.to_owned(),
            "ssl_crl_file" => self.tls.crl_file = value.to_owned(),
            "quorate.peer_tls" => self.tls.peer_tls = switch(value)?,
            "quorate.peer_cert_file" => self.tls.peer_cert_file = value.to_owned(),
            "quorate.peer_key_file" => self.tls.peer_key_file = value.to_owned(),
            "quorate.peer_ca_file" => self.tls.peer_ca_file = value.to_owned(),
            "quorate.peer_crl_file" => self.tls.peer_crl_file = Some(value.to_owned()),
            "quorate.memory_budget" => self.memory_budget = Some(memory(value)?),
            "quorate.spin" if value == "off" => self.spin = Some(Duration::ZERO),
            "quorate.spin" => self.spin = Some(duration(value)?),
            "quorate.heartbeat_interval" => group.heartbeat_interval = duration(value)?,
            "quorate.election_timeout" => group.election_timeout = duration(value)?,
            "checkpoint_timeout" => group.checkpoint_interval = duration(value)?,
            "shared_buffers" => group.cache_bytes = buffers(value)?,
            "quorate.checkpoint_log_size" => group.checkpoint_log_bytes = bytes(value)?,
            "quorate.checkpoint_log_records" => {
                let count = value.trim().parse().ok().filter(|count| *count >= 2);
                group.checkpoint_log_records = count.ok_or("a number from 2")?;
            }
            "quorate.checkpoint_space" => group.checkpoint_percent = percent(value)?,
            "quorate.log_segment_size" => group.segment_bytes = bytes(value)?,
            "quorate.absent_log_size" => group.absent_log_bytes_max = bytes(value)?,
            "quorate.chunk_size" => group.chunk_bytes = memory(value)?,
            "quorate.txn_mem" => group.txn_memory = memory(value)?,
            "quorate.max_inflight" => group.max_inflight = memory(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn switch(value: &str) -> Result<bool, &'static str> {
    match value {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("on or off"),
    }
}

/// How much of something, in percent.
fn percent(value: &str) -> Result<u32, &'static str> {
    const EXPECTED: &str = "a number from 5 to 100 and a percent sign";
    let (number, unit) = split(value).ok_or(EXPECTED)?;
    match (5..=100).contains(&number) && unit == "%" {
        true => Ok(number as u32),
        false => Err(EXPECTED),
    }
}

/// A number and its unit, which may stand apart.
fn split(value: &str) -> Option<(u64, &str)> {
    let value = value.trim();
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let number = value[..digits].parse().ok()?;
    Some((number, value[digits..].trim_start()))
}

fn duration(value: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "a time above zero with its unit, us, ms, s, min, h or d";
    let (number, unit) = split(value).ok_or(EXPECTED)?;
    let micros = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(EXPECTED),
    };
    match number.checked_mul(micros) {
        None | Some(0) => Err(EXPECTED),
        Some(micros) => Ok(Duration::from_micros(micros)),
    }
}

/// A size as PostgreSQL has it for buffers: a number alone counts blocks of 8 kB.
fn buffers(value: &str) -> Result<u64, &'static str> {
    const EXPECTED: &str = "a size from 128kB, with its unit or in blocks of 8kB";
    let blocks: Result<u64, _> = value.trim().parse();
    let size = match blocks {
        Ok(blocks) => blocks.saturating_mul(BLOCK_BYTES),
        Err(_) => bytes(value).map_err(|_| EXPECTED)?,
    };
    match size >= 16 * BLOCK_BYTES {
        true => Ok(size),
        false => Err(EXPECTED),
    }
}

/// The size of a file of the log: a number alone counts kilobytes, as in PostgreSQL.
fn log_bytes(value: &str) -> Result<u64, &'static str> {
    let kilobytes: Result<u64, _> = value.trim().parse();
    match kilobytes {
        Ok(kilobytes) => kilobytes.checked_mul(1 << 10).ok_or("a size"),
        Err(_) => bytes(value),
    }
}

/// A time in seconds with its unit, as SHOW prints it.
pub(crate) fn seconds_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds % 60 {
        0 => format!("{}min", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// A size in PostgreSQL's words: in blocks of 8 kB, with the largest unit that leaves no rest.
pub(crate) fn buffers_text(size: u64) -> String {
    size_text(size / BLOCK_BYTES * BLOCK_BYTES)
}

/// A size with its unit, as SHOW prints it; what is less than 1 kB is rounded up.
pub(crate) fn size_text(size: u64) -> String {
    let kilobytes = size.div_ceil(1 << 10);
    match kilobytes {
        _ if kilobytes % (1 << 20) == 0 => format!("{}GB", kilobytes >> 20),
        _ if kilobytes % (1 << 10) == 0 => format!("{}MB", kilobytes >> 10),
        _ => format!("{kilobytes}kB"),
    }
}

fn bytes(value: &str) -> Result<u64, &'static str> {
    const EXPECTED: &str = "a size above zero with its unit, B, kB, MB, GB or TB";
    let (number, unit) = split(value).ok_or(EXPECTED)?;
    let factor = match unit {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return Err(EXPECTED),
    };
    match number.checked_mul(factor) {
        None | Some(0) => Err(EXPECTED),
        Some(bytes) => Ok(bytes),
    }
}

fn memory(value: &str) -> Result<usize, &'static str> {
    usize::try_from(bytes(value)?).map_err(|_| "a size that fits memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<NodeSettings> {
        NodeSettings::read(&[(name.to_owned(), value.to_owned())].into())
    }

    #[test]
    fn settings_are_read_with_their_units() {
        for (value, seconds) in [
            ("off", None),
            ("0", None),
            ("90s", Some(90)),
            ("2 h", Some(7_200)),
            ("1d", Some(86_400)),
        ] {
            let settings = read("quorate.consistency_check", value).unwrap();
            let every = settings.group.consistency_check;
            assert_eq!(every.map(|every| every.as_secs()), seconds, "{value}");
        }
        let settings = read("quorate.election_timeout", "2 s").unwrap();
        assert_eq!(settings.group.election_timeout, Duration::from_secs(2));
        let settings = read("quorate.log_segment_size", "4MB").unwrap();
        assert_eq!(settings.group.segment_bytes, 4 << 20);
        let settings = read("quorate.txn_mem", "1MB").unwrap();
        assert_eq!(settings.group.txn_memory, 1 << 20);
        let settings = read("quorate.max_inflight", "3kB").unwrap();
        assert_eq!(settings.group.max_inflight, 3 << 10);
        for (value, size, text) in [
            ("16", 128 << 10, "128kB"),
            ("256MB", 256 << 20, "256MB"),
            ("1 GB", 1 << 30, "1GB"),
            ("1500MB", 1500 << 20, "1500MB"),
        ] {
            let settings = read("shared_buffers", value).unwrap();
            assert_eq!(settings.group.cache_bytes, size);
            assert_eq!(buffers_text(size), text);
        }
        assert!(read("shared_buffers", "15").is_err());
        let settings = read("max_connections", "5").unwrap();
        assert_eq!(settings.max_connections, 5);
        assert_eq!(settings.reserved_connections(), 3);
        let settings = read("max_connections", "2").unwrap();
        assert_eq!(settings.reserved_connections(), 1);
        let settings = read("superuser_reserved_connections", "7").unwrap();
        assert_eq!(settings.reserved_connections(), 7);
        for (value, seconds) in [("90", 90), ("2min", 120), ("600s", 600)] {
            let settings = read("authentication_timeout", value).unwrap();
            assert_eq!(settings.authentication_timeout.as_secs(), seconds);
        }
        let settings = read("synchronous_commit", "local").unwrap();
        let expected = ("synchronous_commit".to_owned(), "local".to_owned());
        assert_eq!(settings.session, [expected]);
    }

    #[test]
    fn bad_values_are_refused() {
        for (name, value) in [
            ("max_connections", "0"),
            ("max_connections", "many"),
            ("superuser_reserved_connections", "1000"),
            ("superuser_reserved_connections", "-1"),
            ("authentication_timeout", "0"),
            ("authentication_timeout", "11min"),
            ("quorate.election_timeout", "5"),
            ("quorate.election_timeout", "0s"),
            ("quorate.log_segment_size", "99999999999GB"),
            ("checkpoint_timeout", "-1s"),
            ("synchronous_commit", "maybe"),
        ] {
            let error = read(name, value).unwrap_err();
            assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{value}");
        }
        for name in ["no_such_setting", "quorate.no_such_setting"] {
            let error = read(name, "1").unwrap_err();
            assert_eq!(error.state(), SqlState::UNDEFINED_OBJECT, "{name}");
        }
    }
}
