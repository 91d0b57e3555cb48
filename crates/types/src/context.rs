//! What evaluation may know of its session.

use std::sync::Arc;

use base::env::Env;
use base::error::{Error, Result, SqlState};

use super::{DateStyle, TypeId, Zone};

/// The clock and the source of randomness behind `clock_timestamp()`, `random()` and the like.
pub trait Clock: Send + Sync {
    /// The wall clock, in microseconds since 2000-01-01 UTC.
    fn wall_micros(&self) -> i64;
    /// 64 random bits; whoever has seen many can foretell the next.
    fn random(&self) -> u64;
    /// Random bytes that nobody can foretell.
    fn secret(&self) -> [u8; 32];
}

/// The clock of an environment.
#[derive(Debug)]
pub struct EnvClock(pub Arc<dyn Env>);

impl Clock for EnvClock {
    fn wall_micros(&self) -> i64 {
        self.0.wall_clock().0
    }
    fn random(&self) -> u64 {
        self.0.random()
    }
    fn secret(&self) -> [u8; 32] {
        self.0.secret()
    }
}

/// Translates between catalog names and OIDs for `regclass` and its kin.
pub trait NameLookup: Send + Sync {
    /// The name of an object as the reg type prints it (quoted and qualified as needed).
    fn name_of(&self, kind: TypeId, oid: u32) -> Option<String>;
    /// The OID of the object that the text names; `None` when there is none.
    fn oid_of(&self, kind: TypeId, name: &str) -> Result<Option<u32>>;
}

/// How intervals are printed (`IntervalStyle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum IntervalStyle {
    #[default]
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

/// The order of fields in dates like `1/2/2024` (the second part of `DateStyle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum DateOrder {
    #[default]
    MonthDayYear,
    DayMonthYear,
    YearMonthDay,
}

/// What one statement's evaluation knows: instants, settings, and where to ask.
#[derive(Clone)]
pub struct EvalContext {
    /// When the transaction began (`now()`), microseconds since 2000-01-01 UTC.
    pub transaction_start: i64,
    /// When the statement arrived (`statement_timestamp()`).
    pub statement_start: i64,
    /// `clock_timestamp()` and `random()`.
    pub clock: Arc<dyn Clock>,
    /// `TimeZone`.
    pub time_zone: Zone,
    /// `DateStyle`.
    pub date_style: DateStyle,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
    /// `extra_float_digits`.
    pub extra_float_digits: i32,
    /// `bytea_output` is `escape` rather than `hex`.
    pub bytea_escape: bool,
    /// The catalog; `None` prints OIDs as numbers.
    pub names: Option<Arc<dyn NameLookup>>,
}

impl EvalContext {
    /// A context with PostgreSQL's default settings in which all instants are `now`.
    pub fn new(clock: Arc<dyn Clock>) -> EvalContext {
        let now = clock.wall_micros();
        EvalContext {
            transaction_start: now,
            statement_start: now,
            clock,
            time_zone: Zone::utc(),
            date_style: DateStyle::default(),
            interval_style: IntervalStyle::Postgres,
            extra_float_digits: 1,
            bytea_escape: false,
            names: None,
        }
    }

    /// A context whose clock stands at 2024-02-29 12:34:56.789012 UTC and whose randomness is a
    /// counter.
    pub fn for_tests() -> EvalContext {
        #[derive(Default)]
        struct Standing(std::sync::atomic::AtomicU64);
        impl Clock for Standing {
            fn wall_micros(&self) -> i64 {
                762_525_296_789_012
            }
            fn random(&self) -> u64 {
                let step = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                step.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            }
            fn secret(&self) -> [u8; 32] {
                base::env::no_secret(self.random())
            }
        }
        EvalContext::new(Arc::new(Standing::default()))
    }

    /// The name of a catalog object, if there is a catalog and the object.
    pub fn name_of(&self, kind: TypeId, oid: u32) -> Option<String> {
        self.names.as_ref()?.name_of(kind, oid)
    }

    /// The OID of a catalog object.
    pub fn oid_of(&self, kind: TypeId, name: &str) -> Result<u32> {
        let found = match &self.names {
            Some(names) => names.oid_of(kind, name)?,
            None => None,
        };
        let what = match kind {
            TypeId::REGCLASS => "relation",
            TypeId::REGTYPE => "type",
            TypeId::REGNAMESPACE => "schema",
            TypeId::REGROLE => "role",
            _ => "function",
        };
        let state = match kind {
            TypeId::REGCLASS => SqlState::UNDEFINED_TABLE,
            TypeId::REGNAMESPACE => SqlState::INVALID_SCHEMA_NAME,
            TypeId::REGPROC | TypeId::REGPROCEDURE => SqlState::UNDEFINED_FUNCTION,
            _ => SqlState::UNDEFINED_OBJECT,
        };
        found.ok_or_else(|| Error::new(state, format!("{what} \"{name}\" does not exist")))
    }
}

impl std::fmt::Debug for EvalContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EvalContext")
            .field("transaction_start", &self.transaction_start)
            .field("statement_start", &self.statement_start)
            .field("time_zone", &self.time_zone)
            .finish_non_exhaustive()
    }
}
