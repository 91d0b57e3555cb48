//! Settings: what there is, what is taken, and how a rollback takes it back.
//!
//! A setting has a session value and a current one. SET changes both, SET LOCAL the current one;
//! the end of a transaction makes the current one the session's again, and a rollback restores
//! both to what they were. [`Settings::mark`] names a point to return to, for savepoints.
//!
//! Source: PostgreSQL 15 manual, chapter 20 and SET.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base::engine::Isolation;
use base::{Durability, Error, Result, SqlState};

use ::planner::paths::Methods;
use catalog::Role;
use types::encoding::Encoding;
use types::{DateStyle, IntervalStyle, Zone};

mod about;
mod acting;
mod change;
mod checks;
mod cluster;
mod documented;
mod identity;
mod logging;
mod place;
mod planner;
pub mod planted;
mod portable;
mod procedural;
mod severity;
mod stored;
mod tracking;
mod values;
mod view;
mod without_effect;

use about::{about, Context};
use acting::Acting;
pub use change::{is_guarded, Asker};
pub use checks::check_parameter_name;
use checks::{checked, invalid, parse_bool, split_path};
pub use cluster::configured;
pub use documented::{documented, DocumentedSetting};
use identity::Identity;
pub use logging::{LogLevel, LogSettings, LoggedStatements, Verbosity};
pub use place::is_private;
pub use procedural::{Checks, Procedural, VariableConflict};
pub use severity::NoticeSeverity;
pub use tracking::{QueryIds, TrackedRoutines, TrackedStatements, Tracking};
use values::{
    follower_reads, kilobytes, milliseconds, seconds, with_memory_unit, with_unit,
    with_unit_of_seconds,
};
pub use values::{isolation, FollowerReads};
use view::is_hidden;
pub use view::SettingRow;

/// All settings.
static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let more = planner::SETTINGS.iter().chain(tracking::SETTINGS);
    let listed = LISTED.iter().chain(more);
    let listed = listed.chain(procedural::SETTINGS);
    listed.chain(place::SETTINGS).copied().collect()
});

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Bool,
    /// Milliseconds, with units.
    Time,
    /// The same, or -1 for never.
    TimeOrOff,
    /// `log_destination`.
    LogDestination,
    /// Kilobytes, with units; at least so many.
    Memory(i64),
    Int(i64, i64),
    /// A number that is not negative.
    Real,
    /// A number from 1 to 1,000.
    Multiplier,
    /// A number from 0 to 100.
    Share,
    /// Seconds, with units; so many at least and at most.
    Seconds(i64, i64),
    /// `quorate.follower_reads`.
    FollowerReads,
    Enum(&'static [&'static str]),
    Zone,
    DateStyle,
    /// A text search configuration.
    SearchConfig,
    /// `synchronous_commit`: names and booleans.
    Level,
    /// `role`: a role, or none.
    Role,
    /// `session_authorization`: a role.
    SessionUser,
    /// Cannot be changed by a session.
    Fixed,
}

/// Where a value comes from; later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// It is built in.
    Default,
    /// The node's or the cluster's configuration.
    Configuration,
    /// ALTER ROLE ALL.
    Global,
    /// ALTER DATABASE.
    Database,
    /// ALTER ROLE.
    Role,
    /// ALTER ROLE … IN DATABASE.
    DatabaseRole,
    /// The startup message.
    Client,
    /// What the server itself found out.
    Override,
    /// SET.
    Session,
}

impl Source {
    /// All, in order.
    const ALL: [Source; 9] = [
        Source::Default,
        Source::Configuration,
        Source::Global,
        Source::Database,
        Source::Role,
        Source::DatabaseRole,
        Source::Client,
        Source::Override,
        Source::Session,
    ];
}

/// A setting that exists.
#[derive(Clone, Copy, Debug)]
struct Definition {
    /// As SHOW ALL and error messages write it.
    name: &'static str,
    kind: Kind,
    default: &'static str,
    /// Whether ParameterStatus reports it.
    reported: bool,
    description: &'static str,
}

const fn define(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    description: &'static str,
) -> Definition {
    Definition {
        name,
        kind,
        default,
        reported: false,
        description,
    }
}

const fn reported(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    description: &'static str,
) -> Definition {
    Definition {
        name,
        kind,
        default,
        reported: true,
        description,
    }
}

const ISOLATIONS: &[&str] = &[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
];
const MESSAGES: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
];
const INT_MAX: i64 = i32::MAX as i64;

/// All settings, by name regardless of case.
const LISTED: &[Definition] = &[
    reported("application_name", Kind::Text, "", "Sets the application name to be reported in statistics and logs."),
    define("authentication_timeout", Kind::Fixed, "1min", "Sets the maximum allowed time to complete client authentication."),
    define("bytea_output", Kind::Enum(&["escape", "hex"]), "hex", "Sets the output format for bytea."),
    define("check_function_bodies", Kind::Bool, "on", "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE."),
    reported("client_encoding", Kind::Text, "UTF8", "Sets the client's character set encoding."),
    define("client_min_messages", Kind::Enum(MESSAGES), "notice", "Sets the message levels that are sent to the client."),
    reported("DateStyle", Kind::DateStyle, "ISO, MDY", "Sets the display format for date and time values."),
    define("deadlock_timeout", Kind::Time, "1s", "Sets the time to wait on a lock before checking for deadlock."),
    define("default_tablespace", Kind::Text, "", "Sets the default tablespace to create tables and indexes in."),
    define("default_table_access_method", Kind::Text, "heap", "Sets the default table access method for new tables."),
    define("default_text_search_config", Kind::SearchConfig, "pg_catalog.english", "Sets default text search configuration."),
    define("default_transaction_deferrable", Kind::Bool, "off", "Sets the default deferrable status of new transactions."),
    define("default_transaction_isolation", Kind::Enum(ISOLATIONS), "read committed", "Sets the transaction isolation level of each new transaction."),
    reported("default_transaction_read_only", Kind::Bool, "off", "Sets the default read-only status of new transactions."),
    define("default_with_oids", Kind::Bool, "off", "WITH OIDS is no longer supported; this can only be false."),
    define("escape_string_warning", Kind::Bool, "on", "Warn about backslash escapes in ordinary string literals."),
    define("extra_float_digits", Kind::Int(-15, 3), "1", "Sets the number of digits displayed for floating-point values."),
    define("hash_mem_multiplier", Kind::Multiplier, "2", "Multiple of work_mem to use for hash tables."),
    define("idle_in_transaction_session_timeout", Kind::Time, "0", "Sets the maximum allowed idle time between queries, when in a transaction."),
    define("idle_session_timeout", Kind::Time, "0", "Sets the maximum allowed idle time between queries, when not in a transaction."),
    reported("in_hot_standby", Kind::Fixed, "off", "Shows whether hot standby is currently active."),
    reported("integer_datetimes", Kind::Fixed, "on", "Shows whether datetimes are integer based."),
    reported("IntervalStyle", Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), "postgres", "Sets the display format for interval values."),
    reported("is_superuser", Kind::Fixed, "on", "Shows whether the current user is a superuser."),
    define("jit", Kind::Bool, "on", "Allow JIT compilation."),
    define("lc_collate", Kind::Fixed, "C", "Shows the collation order locale."),
    define("lc_ctype", Kind::Fixed, "C.UTF-8", "Shows the character classification and case conversion locale."),
    define("lc_messages", Kind::Text, "C.UTF-8", "Sets the language in which messages are displayed."),
    define("lc_monetary", Kind::Text, "C.UTF-8", "Sets the locale for formatting monetary amounts."),
    define("lc_numeric", Kind::Text, "C.UTF-8", "Sets the locale for formatting numbers."),
    define("lc_time", Kind::Text, "C.UTF-8", "Sets the locale for formatting date and time values."),
    define("lo_compat_privileges", Kind::Bool, "off", "Enables backward compatibility mode for privilege checks on large objects."),
    define("lock_timeout", Kind::Time, "0", "Sets the maximum allowed duration of any wait for a lock."),
    define("log_connections", Kind::Bool, "off", "Logs each successful connection."),
    define("log_destination", Kind::LogDestination, "stderr", "Sets the destination for server log output."),
    define("log_disconnections", Kind::Bool, "off", "Logs end of a session, including duration."),
    define("log_duration", Kind::Bool, "off", "Logs the duration of each completed SQL statement."),
    define("log_error_verbosity", Kind::Enum(&["terse", "default", "verbose"]), "default", "Sets the verbosity of logged messages."),
    define("log_line_prefix", Kind::Text, "%m [%p] ", "Controls information prefixed to each log line."),
    define("log_min_duration_statement", Kind::TimeOrOff, "-1", "Sets the minimum execution time above which all statements will be logged."),
    define("log_min_error_statement", Kind::Enum(logging::LEVELS), "error", "Causes all statements generating error at or above this level to be logged."),
    define("log_min_messages", Kind::Enum(logging::LEVELS), "warning", "Sets the message levels that are logged."),
    define("log_parameter_max_length", Kind::Int(-1, 1_073_741_823), "-1", "Sets the maximum length in bytes of data logged for bind parameter values when logging statements."),
    define("log_rotation_size", Kind::Fixed, "10MB", "Sets the maximum size a log file can reach before being rotated."),
    define("log_statement", Kind::Enum(&["none", "ddl", "mod", "all"]), "none", "Sets the type of statements logged."),
    define("log_timezone", Kind::Fixed, "UTC", "Sets the time zone to use in log messages."),
    define("maintenance_work_mem", Kind::Memory(1_024), "64MB", "Sets the maximum memory to be used for maintenance operations."),
    define("max_connections", Kind::Fixed, "1000", "Sets the maximum number of concurrent connections."),
    define("max_identifier_length", Kind::Fixed, "63", "Shows the maximum identifier length."),
    define("max_prepared_transactions", Kind::Fixed, "1000", "Sets the maximum number of simultaneously prepared transactions."),
    define("password_encryption", Kind::Enum(&["scram-sha-256"]), "scram-sha-256", "Chooses the algorithm for encrypting passwords."),
    define("plan_cache_mode", Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), "auto", "Controls the planner's selection of custom or generic plan."),
    define("quorate.audit_entries", Kind::Int(1_000, INT_MAX), "100000", "Sets how many entries of the audit are kept."),
    define("quorate.default_group", Kind::Int(1, 65_535), "1", "Sets the group in which new tables lie."),
    define("quorate.follower_reads", Kind::FollowerReads, "off", "Lets read-only sessions read on the node that they are connected to."),
    define("quorate.leaders", Kind::Fixed, "together", "Sets where the groups but the first are led."),
    define("quorate.max_inflight", Kind::Int(0, INT_MAX), "20000", "Sets the number of commits by which a running statement may be ahead of what is durable."),
    define("quorate.memory_budget", Kind::Fixed, "0", "Sets the memory that the node's own parts and all its sessions may take together."),
    define("quorate.query_mem", Kind::Memory(64), "2GB", "Sets the most memory that the rows of one part of a query may take that cannot go to a scratch file."),
    define("quorate.standby_timeout", Kind::Time, "0", "Sets the time after which standbys that are named are not waited for any more."),
    define("quorate.txn_mem", Kind::Fixed, "64MB", "Sets the memory that the changes of one transaction may take before they go to disk."),
    define("random_page_cost", Kind::Real, "4", "Sets the planner's estimate of the cost of a nonsequentially fetched disk page."),
    define("role", Kind::Role, "none", "Sets the current role."),
    define("row_security", Kind::Bool, "on", "Enable row security."),
    define("search_path", Kind::Text, "\"$user\", public", "Sets the schema search order for names that are not schema-qualified."),
    reported("server_encoding", Kind::Fixed, "UTF8", "Shows the server (database) character set encoding."),
    reported("server_version", Kind::Fixed, SERVER_VERSION, "Shows the server version."),
    define("server_version_num", Kind::Fixed, "150000", "Shows the server version as an integer."),
    reported("session_authorization", Kind::SessionUser, "", "Sets the session user name."),
    define("session_replication_role", Kind::Enum(&["origin", "replica", "local"]), "origin", "Sets the session's behavior for triggers and rewrite rules."),
    reported("standard_conforming_strings", Kind::Bool, "on", "Causes '...' strings to treat backslashes literally."),
    define("statement_timeout", Kind::Time, "0", "Sets the maximum allowed duration of any statement."),
    define("superuser_reserved_connections", Kind::Fixed, "3", "Sets the number of connection slots reserved for superusers."),
    define("synchronize_seqscans", Kind::Bool, "on", "Enable synchronized sequential scans."),
    define("synchronous_commit", Kind::Level, "on", "Sets the current transaction's synchronization level."),
    define("synchronous_standby_names", Kind::Text, "", "Number of synchronous standbys and list of names of potential synchronous ones."),
    define("temp_file_limit", Kind::Memory(-1), "-1", "Limits the total size of all temporary files used by each process."),
    reported("TimeZone", Kind::Zone, "UTC", "Sets the time zone for displaying and interpreting time stamps."),
    define("transaction_deferrable", Kind::Bool, "off", "Whether to defer a read-only serializable transaction until it can be executed with no possible serialization failures."),
    define("transaction_isolation", Kind::Enum(ISOLATIONS), "read committed", "Sets the current transaction's isolation level."),
    define("transaction_read_only", Kind::Bool, "off", "Sets the current transaction's read-only status."),
    define("wal_compression", Kind::Fixed, "off", "Compresses full-page writes written in WAL file with specified method."),
    define("wal_level", Kind::Fixed, "replica", "Sets the level of information written to the WAL."),
    define("work_mem", Kind::Memory(64), "4MB", "Sets the maximum memory to be used for query workspaces."),
    define("xmloption", Kind::Enum(&["content", "document"]), "content", "Sets whether XML data is to be considered as documents or content fragments."),
];

/// What `version()` and `server_version` say.
pub const SERVER_VERSION: &str = concat!("15.0 (Quorate ", env!("CARGO_PKG_VERSION"), ")");

/// The values that statements look at all the time, parsed.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// `synchronous_commit`.
    pub durability: Durability,
    /// `statement_timeout`.
    pub statement_timeout: Duration,
    /// `lock_timeout`.
    pub lock_timeout: Duration,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction_timeout: Duration,
    /// `idle_session_timeout`.
    pub idle_session_timeout: Duration,
    /// `quorate.max_inflight`; 0 for no bound.
    pub max_in_flight: u64,
    /// `quorate.query_mem`, in bytes.
    pub query_memory: usize,
    /// `work_mem`, in bytes.
    pub work_memory: usize,
    /// `work_mem` times `hash_mem_multiplier`, in bytes.
    pub hash_memory: usize,
    /// `temp_file_limit`, in kilobytes, if there is one.
    pub temp_file_limit: Option<u64>,
    /// `quorate.audit_entries`.
    pub audit_entries: u64,
    /// `quorate.follower_reads`.
    pub follower_reads: FollowerReads,
    /// `default_transaction_isolation`.
    pub default_isolation: Isolation,
    /// `default_transaction_read_only`.
    pub default_read_only: bool,
    /// `default_transaction_deferrable`.
    pub default_deferrable: bool,
    /// `client_min_messages`.
    pub min_messages: Option<NoticeSeverity>,
    /// Whether `plan_cache_mode` lets plans be used for texts with other literals.
    pub keeps_plans: bool,
    /// `standard_conforming_strings`.
    pub conforming_strings: bool,
    /// `escape_string_warning`.
    pub warns_of_escapes: bool,
    /// `enable_hashjoin` and its kin.
    pub methods: Methods,
    /// `TimeZone`.
    pub time_zone: Zone,
    /// `DateStyle`.
    pub date_style: DateStyle,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
    /// `extra_float_digits`.
    pub extra_float_digits: i32,
    /// `bytea_output` is `escape`.
    pub bytea_escape: bool,
    /// `client_encoding`.
    pub encoding: Encoding,
    /// `search_path`, taken apart.
    pub search_path: Vec<String>,
    /// `row_security`.
    pub row_security: bool,
    /// `lo_compat_privileges`: whether nobody is asked for rights on large objects.
    pub open_large_objects: bool,
    /// `default_statistics_target`.
    pub statistics_target: usize,
    /// `session_replication_role`: whether it is `replica`.
    pub replica: bool,
    /// `track_counts` and its kin.
    pub tracking: Tracking,
    /// Those of PL/pgSQL.
    pub procedural: Procedural,
    /// The role of the session, and the one that SET ROLE chose instead.
    session_user: Identity,
    role: Option<Identity>,
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    text: String,
    source: Source,
    /// The role that a value of `role` or `session_authorization` means.
    acts_as: Option<Identity>,
}

impl Held {
    fn new(text: &str, source: Source) -> Held {
        Held {
            text: text.to_owned(),
            source,
            acts_as: None,
        }
    }

    /// The value that makes a session act as a role; none where that is its user.
    fn acting_as(role: Option<Identity>, source: Source) -> Held {
        let text = role.as_ref().map_or(identity::NONE, Identity::name);
        Held {
            text: text.to_owned(),
            source,
            acts_as: role,
        }
    }
}

#[derive(Clone, Debug)]
struct Value {
    /// What it is where the cluster's configuration says nothing.
    boot: Held,
    /// What RESET goes back to.
    start: Held,
    session: Held,
    current: Held,
}

impl Value {
    fn of(held: Held) -> Value {
        Value {
            boot: held.clone(),
            start: held.clone(),
            session: held.clone(),
            current: held,
        }
    }
}

/// What a change has replaced.
enum Change {
    Listed {
        setting: usize,
        session: Held,
        current: Held,
    },
    Custom(Custom),
}

impl Change {
    fn is_of(&self, wanted: usize) -> bool {
        matches!(self, Change::Listed { setting, .. } if *setting == wanted)
    }
}

/// A setting of other software's namespace (`a.b`): a text that nobody here looks at. One that was
/// never set before a change that is taken back stays, and is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Custom {
    name: String,
    /// What RESET goes back to.
    start: String,
    session: String,
    current: String,
}

/// The settings of one session.
pub struct Settings {
    values: Vec<Value>,
    custom: Vec<Custom>,
    journal: Vec<Change>,
    /// The owners of the routines and objects with whose rights the session works, the innermost last.
    acting: Vec<Acting>,
    parsed: Parsed,
    /// Reported settings that have changed since [`Settings::take_reports`].
    changed: Vec<usize>,
    generation: u64,
    /// What goes to the server's log.
    log: Arc<LogSettings>,
    /// The role that connected.
    authenticated: Identity,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Settings({})", self.values.len())
    }
}

/// Whether two values mean different things.
fn differ(one: &Held, other: &Held) -> bool {
    one.text != other.text || one.acts_as != other.acts_as
}

fn find(name: &str) -> Option<usize> {
    let found = |definition: &Definition| definition.name.eq_ignore_ascii_case(name);
    DEFINITIONS.iter().position(found)
}

fn unknown(name: &str) -> Error {
    Error::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

impl Settings {
    /// The defaults, for a session of a role.
    pub fn new(user: &Role) -> Settings {
        Settings::of(Identity::logged_in(user))
    }

    /// The defaults, for no session.
    pub fn of_nobody() -> Settings {
        Settings::of(Identity::nobody())
    }

    fn of(authenticated: Identity) -> Settings {
        let values = DEFINITIONS
            .iter()
            .map(|definition| {
                Value::of(match definition.kind {
                    Kind::SessionUser => {
                        Held::acting_as(Some(authenticated.clone()), Source::Override)
                    }
                    _ => Held::new(definition.default, Source::Default),
                })
            })
            .collect();
        let mut settings = Settings {
            values,
            custom: Vec::new(),
            journal: Vec::new(),
            acting: Vec::new(),
            parsed: Parsed {
                durability: Durability::On,
                statement_timeout: Duration::ZERO,
                lock_timeout: Duration::ZERO,
                idle_in_transaction_timeout: Duration::ZERO,
                idle_session_timeout: Duration::ZERO,
                max_in_flight: 0,
                query_memory: 0,
                work_memory: 0,
                hash_memory: 0,
                temp_file_limit: None,
                audit_entries: u64::MAX,
                follower_reads: FollowerReads::Off,
                default_isolation: Isolation::ReadCommitted,
                default_read_only: false,
                default_deferrable: false,
                min_messages: Some(NoticeSeverity::Notice),
                keeps_plans: true,
                conforming_strings: true,
                warns_of_escapes: true,
                methods: Methods::default(),
                time_zone: Zone::utc(),
                date_style: DateStyle::default(),
                interval_style: IntervalStyle::Postgres,
                extra_float_digits: 1,
                bytea_escape: false,
                encoding: Encoding::UTF8,
                search_path: Vec::new(),
                row_security: true,
                open_large_objects: false,
                statistics_target: 100,
                replica: false,
                tracking: Tracking::default(),
                procedural: Procedural::default(),
                session_user: authenticated.clone(),
                role: None,
            },
            changed: Vec::new(),
            generation: 0,
            log: Arc::new(LogSettings::read(|_| String::new())),
            authenticated,
        };
        settings.parse();
        settings.parse_log();
        settings.show_superuser();
        settings
    }

    /// The values that statements look at all the time.
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// What goes to the server's log.
    pub fn log(&self) -> &Arc<LogSettings> {
        &self.log
    }

    /// The oid of the role whose privileges count: that of SET ROLE, or the session's own. The role
    /// may be gone; then nothing but what everybody may is allowed.
    pub fn current_role(&self) -> u32 {
        let role = self.parsed.role.as_ref();
        role.unwrap_or(&self.parsed.session_user).oid()
    }

    /// The oid of the session's role: the one that connected, or that of SET SESSION AUTHORIZATION.
    pub fn session_role(&self) -> u32 {
        self.parsed.session_user.oid()
    }

    /// Changes with every change of a setting.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Fixes what a session cannot change (configuration of the cluster).
    pub fn fix(&mut self, name: &str, value: &str) {
        if let Some(setting) = find(name) {
            let kept = &mut self.values[setting];
            if kept.current.text != value {
                let source = match about(name).context {
                    Context::Sighup => Source::Configuration,
                    _ => Source::Override,
                };
                *kept = Value::of(Held::new(value, source));
                self.touched(setting);
            }
        }
    }

    /// The current value; with its name as it is written.
    ///
    /// # Errors
    /// 42704.
    pub fn show(&self, name: &str) -> Result<(String, String)> {
        if let Some(setting) = find(name) {
            let definition = &DEFINITIONS[setting];
            let value = &self.values[self.in_force(setting)].current.text;
            let value = match definition.name == "transaction_read_only" && self.is_standby() {
                true => "on",
                false => value,
            };
            return Ok((definition.name.to_owned(), shown(definition, value)));
        }
        if let Some(unused) = without_effect::find(name) {
            let value = unused.shown(self.unused(unused));
            return Ok((unused.name.to_owned(), value));
        }
        let mut custom = self.custom.iter();
        match custom.find(|custom| custom.name.eq_ignore_ascii_case(name)) {
            Some(custom) => Ok((custom.name.clone(), custom.current.clone())),
            None => Err(unknown(name)),
        }
    }

    /// Whether the open transaction was made read-only since it began.
    pub fn made_read_only(&self) -> bool {
        let setting = find("transaction_read_only");
        setting.is_some_and(|setting| {
            self.values[setting].current.text == "on"
                && self.journal.iter().any(|change| change.is_of(setting))
        })
    }

    /// Whether a setting that nobody defines has this value.
    pub fn has_custom(&self, name: &str, value: &str) -> bool {
        let mut custom = self.custom.iter();
        custom.any(|known| known.name == name && known.current == value)
    }

    /// Whether the session is on a standby.
    fn is_standby(&self) -> bool {
        let setting = find("in_hot_standby");
        setting.is_some_and(|setting| self.values[setting].current.text == "on")
    }

    /// Where the value of a setting stands: a characteristic of the transaction that it was not
    /// given is the session's default.
    fn in_force(&self, setting: usize) -> usize {
        let name = DEFINITIONS[setting].name;
        let is_given = |change: &Change| change.is_of(setting);
        match name.starts_with("transaction_") && !self.journal.iter().any(is_given) {
            true => find(&format!("default_{name}")).unwrap_or(setting),
            false => setting,
        }
    }

    /// Every setting: name, value, description.
    pub fn show_all(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut all: Vec<_> = DEFINITIONS
            .iter()
            .zip(&self.values)
            .filter(|(definition, _)| !is_hidden(definition.name))
            .map(|(definition, value)| {
                let shown = shown(definition, &value.current.text);
                (definition.name, shown, definition.description)
            })
            .collect();
        let unused = without_effect::all();
        all.extend(unused.map(|one| (one.name, one.shown(self.unused(one)), one.description())));
        all.sort_by_key(|entry| entry.0.to_ascii_lowercase());
        all
    }

    /// The settings that ParameterStatus reports.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = DEFINITIONS
            .iter()
            .zip(&self.values)
            .filter(|pair| pair.0.reported);
        reported
            .map(|(definition, value)| (definition.name, shown(definition, &value.current.text)))
            .collect()
    }

    /// The reported settings that have changed since the last call.
    pub fn take_reports(&mut self) -> Vec<(&'static str, String)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed
            .into_iter()
            .map(|setting| {
                let definition = &DEFINITIONS[setting];
                (
                    definition.name,
                    shown(definition, &self.values[setting].current.text),
                )
            })
            .collect()
    }

    fn assign(&mut self, setting: usize, new: Held, local: bool) {
        let value = &mut self.values[setting];
        self.journal.push(Change::Listed {
            setting,
            session: value.session.clone(),
            current: value.current.clone(),
        });
        if !local {
            value.session.clone_from(&new);
        }
        let changes = differ(&value.current, &new);
        value.current = new;
        if changes {
            self.touched(setting);
        }
    }

    fn touched(&mut self, setting: usize) {
        let definition = &DEFINITIONS[setting];
        self.generation += 1;
        if definition.reported {
            self.changed.push(setting);
        }
        // Sessions are told many of these when they begin, and look at none.
        if !place::is_listed(definition.name) {
            self.parse();
        }
        if definition.name.starts_with("log_") {
            self.parse_log();
        }
        if matches!(definition.kind, Kind::Role | Kind::SessionUser) {
            self.show_superuser();
        }
    }

    /// `is_superuser` follows who the session is.
    fn show_superuser(&mut self) {
        let role = self.parsed.role.as_ref();
        let role = role.unwrap_or(&self.parsed.session_user);
        let is_superuser = if role.was_superuser() { "on" } else { "off" };
        self.fix("is_superuser", is_superuser);
    }

    /// A point to which [`Settings::roll_back_to`] can return.
    pub fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Takes back the changes since a point.
    pub fn roll_back_to(&mut self, mark: usize) {
        while self.journal.len() > mark {
            let Some(change) = self.journal.pop() else {
                return;
            };
            match change {
                Change::Listed {
                    setting,
                    session,
                    current,
                } => {
                    let value = &mut self.values[setting];
                    value.session = session;
                    let changes = differ(&value.current, &current);
                    value.current = current;
                    if changes {
                        self.touched(setting);
                    }
                }
                Change::Custom(before) => {
                    let name = before.name.clone();
                    *self.custom_named(&name) = before;
                    self.generation += 1;
                }
            }
        }
    }

    /// The transaction has committed: SET stays, SET LOCAL ends.
    pub fn end_transaction(&mut self) {
        if self.journal.is_empty() {
            return;
        }
        for change in std::mem::take(&mut self.journal) {
            match change {
                Change::Listed { setting, .. } => {
                    let value = &mut self.values[setting];
                    let changes = differ(&value.current, &value.session);
                    value.current.clone_from(&value.session);
                    if changes {
                        self.touched(setting);
                    }
                }
                Change::Custom(before) => {
                    let custom = self.custom_named(&before.name);
                    custom.current.clone_from(&custom.session);
                    self.generation += 1;
                }
            }
        }
    }

    fn parse_log(&mut self) {
        let settings = LogSettings::read(|name| {
            let setting = find(name);
            setting.map_or_else(String::new, |setting| {
                self.values[setting].current.text.clone()
            })
        });
        self.log = Arc::new(settings);
    }

    /// The setting of other software of that name, which may be new.
    fn custom_named(&mut self, name: &str) -> &mut Custom {
        let mut known = self.custom.iter();
        let known = known.position(|custom| custom.name.eq_ignore_ascii_case(name));
        let place = known.unwrap_or_else(|| {
            self.custom.push(Custom {
                name: name.to_owned(),
                ..Custom::default()
            });
            self.custom.len() - 1
        });
        &mut self.custom[place]
    }

    fn parse(&mut self) {
        let text = |name: &str| {
            let setting = find(name);
            setting.map_or("", |setting| self.values[setting].current.text.as_str())
        };
        let acts_as = |name: &str| {
            let setting = find(name);
            setting.and_then(|setting| self.values[setting].current.acts_as.clone())
        };
        let time = |name: &str| {
            let millis = milliseconds(text(name)).unwrap_or(0);
            Duration::from_millis(u64::try_from(millis).unwrap_or(0))
        };
        let work_memory = kilobytes(text("work_mem")).unwrap_or(0) as usize * 1_024;
        let multiplier: f64 = text("hash_mem_multiplier").parse().unwrap_or(1.0);
        self.parsed = Parsed {
            durability: Durability::parse(text("synchronous_commit")).unwrap_or_default(),
            statement_timeout: time("statement_timeout"),
            lock_timeout: time("lock_timeout"),
            idle_in_transaction_timeout: time("idle_in_transaction_session_timeout"),
            idle_session_timeout: time("idle_session_timeout"),
            max_in_flight: text("quorate.max_inflight").parse().unwrap_or(0),
            query_memory: kilobytes(text("quorate.query_mem")).unwrap_or(0) as usize * 1_024,
            work_memory,
            hash_memory: (work_memory as f64 * multiplier) as usize,
            temp_file_limit: kilobytes(text("temp_file_limit"))
                .and_then(|most| most.try_into().ok()),
            audit_entries: text("quorate.audit_entries").parse().unwrap_or(u64::MAX),
            follower_reads: follower_reads(text("quorate.follower_reads")),
            default_isolation: isolation(text("default_transaction_isolation")),
            default_read_only: text("default_transaction_read_only") == "on",
            default_deferrable: text("default_transaction_deferrable") == "on",
            min_messages: match text("client_min_messages") {
                "error" => None,
                "warning" => Some(NoticeSeverity::Warning),
                "notice" => Some(NoticeSeverity::Notice),
                "log" => Some(NoticeSeverity::Log),
                _ => Some(NoticeSeverity::Debug),
            },
            keeps_plans: text("plan_cache_mode") != "force_custom_plan",
            conforming_strings: text("standard_conforming_strings") == "on",
            warns_of_escapes: text("escape_string_warning") == "on",
            methods: Methods {
                hash_join: text("enable_hashjoin") == "on",
                nested_loop: text("enable_nestloop") == "on",
                index_scan: text("enable_indexscan") == "on",
                seq_scan: text("enable_seqscan") == "on",
                sort: text("enable_sort") == "on",
            },
            time_zone: Zone::from_setting(text("TimeZone")).unwrap_or_else(|_| Zone::utc()),
            date_style: DateStyle::default()
                .changed(text("DateStyle"))
                .unwrap_or_default(),
            interval_style: match text("IntervalStyle") {
                "postgres_verbose" => IntervalStyle::PostgresVerbose,
                "sql_standard" => IntervalStyle::SqlStandard,
                "iso_8601" => IntervalStyle::Iso8601,
                _ => IntervalStyle::Postgres,
            },
            extra_float_digits: text("extra_float_digits").parse().unwrap_or(1),
            bytea_escape: text("bytea_output") == "escape",
            encoding: Encoding::by_name(text("client_encoding")).unwrap_or_default(),
            search_path: split_path(text("search_path")),
            row_security: text("row_security") == "on",
            open_large_objects: text("lo_compat_privileges") == "on",
            statistics_target: text("default_statistics_target").parse().unwrap_or(100),
            replica: text("session_replication_role") == "replica",
            tracking: Tracking::read(text),
            procedural: Procedural::parsed(text),
            session_user: acts_as("session_authorization").unwrap_or_else(Identity::nobody),
            role: match self.acting.last() {
                Some(acting) => Some(acting.identity.clone()),
                None => acts_as("role"),
            },
        };
    }
}

fn shown(definition: &Definition, value: &str) -> String {
    match definition.kind {
        Kind::Time => match milliseconds(value) {
            Some(0) | None => "0".to_owned(),
            Some(millis) => with_unit(millis),
        },
        Kind::TimeOrOff => match milliseconds(value) {
            Some(millis) if millis > 0 => with_unit(millis),
            Some(millis) => millis.to_string(),
            None => value.to_owned(),
        },
        Kind::Seconds(..) => seconds(value).map_or_else(|| value.to_owned(), with_unit_of_seconds),
        Kind::Memory(_) => match kilobytes(value) {
            Some(-1) => "-1".to_owned(),
            Some(kilobytes) => with_memory_unit(kilobytes),
            None => value.to_owned(),
        },
        Kind::FollowerReads => match milliseconds(value) {
            Some(millis) => with_unit(millis),
            None => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_takes_settings_back() {
        let mut settings = Settings::of_nobody();
        settings
            .set(None, "lock_timeout", Some("5s"), false)
            .unwrap();
        settings.end_transaction();
        settings
            .set(None, "lock_timeout", Some("1min"), true)
            .unwrap();
        assert_eq!(settings.show("LOCK_TIMEOUT").unwrap().1, "1min");
        settings.end_transaction();
        assert_eq!(settings.show("lock_timeout").unwrap().1, "5s");
        let mark = settings.mark();
        settings
            .set(None, "synchronous_commit", Some("off"), false)
            .unwrap();
        assert_eq!(settings.parsed().durability, Durability::Off);
        settings.roll_back_to(mark);
        assert_eq!(settings.parsed().durability, Durability::On);
    }

    #[test]
    fn settings_of_other_software_are_part_of_transactions() {
        let mut settings = Settings::of_nobody();
        let shown = |settings: &Settings| settings.show("a.b").map(|shown| shown.1).unwrap();
        settings.set(None, "a.b", Some("1"), false).unwrap();
        settings.roll_back_to(0);
        assert_eq!(shown(&settings), "");
        settings.set(None, "a.b", Some("2"), false).unwrap();
        settings.end_transaction();
        settings.set(None, "A.B", Some("3"), true).unwrap();
        let mark = settings.mark();
        settings.set(None, "a.b", Some("4"), false).unwrap();
        assert_eq!(shown(&settings), "4");
        settings.roll_back_to(mark);
        assert_eq!(shown(&settings), "3");
        settings.end_transaction();
        assert_eq!(shown(&settings), "2");
        settings.reset_all();
        assert_eq!(shown(&settings), "");
    }

    #[test]
    fn what_no_session_changes_is_not_said_to_be_everybodys() {
        let fixed = DEFINITIONS
            .iter()
            .filter(|definition| matches!(definition.kind, Kind::Fixed));
        for definition in fixed {
            let context = about(definition.name).context;
            assert_ne!(context, Context::User, "{}", definition.name);
        }
    }

    #[test]
    fn values_are_checked() {
        let mut settings = Settings::of_nobody();
        assert!(settings
            .set(None, "lock_timeout", Some("-1"), false)
            .is_err());
        assert!(settings.set(None, "nonsense", Some("1"), false).is_err());
        assert!(settings
            .set(None, "server_version", Some("1"), false)
            .is_err());
        assert_eq!(split_path("\"$user\", Public"), ["$user", "public"]);
    }
}
