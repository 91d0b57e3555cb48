//! What evaluation may know of its session.

use std::sync::Arc;

use base::env::Env;
use base::error::{Error, Result, SqlState};
use base::sync::Mutex;

use super::encoding::Encoding;
use super::invalid::invalid_label;
use super::search::read::Outcome;
use super::search::Query;
use super::{own, DateStyle, Datum, Record, TypeId, Zone};

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
    /// The places of an enum's labels, in their order; none if it is no enum.
    fn enum_places(&self, kind: TypeId) -> Vec<u64>;
    /// The label at a place of an enum.
    fn enum_label(&self, kind: TypeId, place: u64) -> Option<&str>;
    /// The place of an enum's label.
    fn enum_place(&self, kind: TypeId, label: &str) -> Option<u64>;
    /// # Errors
    /// 55P04 for a label whose ALTER TYPE is not committed.
    fn check_label(&self, kind: TypeId, place: u64) -> Result<()>;
    /// What a domain's values, or those of an array over it, are kept as, and their modifier.
    fn base_type(&self, domain: TypeId) -> Option<(TypeId, i32)>;
    /// The fields of the rows of a type; none if it is no such type.
    fn fields(&self, kind: TypeId) -> Option<Vec<RowField>>;
    /// The schema (quoted) that must be named to find the operator that a function computes, or an
    /// aggregate; none where its name is enough.
    fn operator_schema(&self, function: u32) -> Option<String>;
    /// A partition and all that it is a partition of, the nearest first; nothing for what takes no part
    /// in partitioning.
    fn partition_ancestors(&self, relation: u32) -> Vec<u32>;
    /// A partitioned relation, or a partition, and all below it, level by level: the oid, and whether
    /// nothing can be below it.
    fn partition_tree(&self, relation: u32) -> Vec<(u32, bool)>;
}

/// A field of the rows of a type.
#[derive(Clone, Debug)]
pub struct RowField {
    /// Its name.
    pub name: String,
    /// Its type; of a domain the base type.
    pub kind: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// Whether it is of a domain, or of an array over one.
    pub of_domain: bool,
}

/// A row of these fields.
pub(crate) fn row_of(fields: Vec<RowField>, values: Vec<Datum>) -> Datum {
    Datum::Record(Arc::new(Record {
        types: fields.iter().map(|field| field.kind).collect(),
        values,
        names: Some(fields.into_iter().map(|field| field.name).collect()),
    }))
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
    /// `client_encoding`.
    pub encoding: Encoding,
    /// The database's letters are those of ASCII alone.
    pub ascii_letters: bool,
    /// `bytea_output` is `escape` rather than `hex`.
    pub bytea_escape: bool,
    /// `pg_trgm`'s thresholds.
    pub similarity: Similarity,
    /// `default_text_search_config`.
    pub search_config: u32,
    /// Notices that the session shows once it can.
    pub remarks: Arc<Remarks>,
    /// The catalog; `None` prints OIDs as numbers.
    pub names: Option<Arc<dyn NameLookup>>,
}

/// The oid of the text search configuration `english`.
pub const ENGLISH: u32 = 13_164;

/// Notices that wait for the session.
#[derive(Debug, Default)]
pub struct Remarks(Mutex<Vec<Error>>);

impl Remarks {
    /// So many may wait; what is more is left out.
    const MAX: usize = 1_000;

    /// Changes what waits.
    pub fn change(&self, mut change: impl FnMut(Error) -> Error) {
        let mut waiting = self.0.lock();
        let all = std::mem::take(&mut *waiting).into_iter();
        *waiting = all.map(&mut change).collect();
    }

    /// What waits; nothing does then.
    pub fn take(&self) -> Vec<Error> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// From when on texts count as similar, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    /// `pg_trgm.similarity_threshold`.
    pub any: f64,
    /// `pg_trgm.word_similarity_threshold`.
    pub word: f64,
    /// `pg_trgm.strict_word_similarity_threshold`.
    pub strict_word: f64,
}

impl Default for Similarity {
    fn default() -> Similarity {
        Similarity {
            any: 0.3,
            word: 0.6,
            strict_word: 0.5,
        }
    }
}

impl Similarity {
    /// As settings of `pg_trgm` say; what is out of bounds counts as not set.
    pub fn of(setting: impl Fn(&str) -> Option<String>) -> Similarity {
        let usual = Similarity::default();
        let threshold = |name: &str, usual: f64| {
            let given = setting(&format!("pg_trgm.{name}_threshold"));
            let given = given.and_then(|value| value.parse().ok());
            given
                .filter(|value| (0.0..=1.0).contains(value))
                .unwrap_or(usual)
        };
        Similarity {
            any: threshold("similarity", usual.any),
            word: threshold("word_similarity", usual.word),
            strict_word: threshold("strict_word_similarity", usual.strict_word),
        }
    }
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
            encoding: Encoding::UTF8,
            ascii_letters: false,
            bytea_escape: false,
            similarity: Similarity::default(),
            search_config: ENGLISH,
            remarks: Arc::default(),
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

    /// Has the session show a notice.
    pub fn remark(&self, notice: Error) {
        let mut waiting = self.remarks.0.lock();
        if waiting.len() < Remarks::MAX {
            waiting.push(notice);
        }
    }

    /// The value of a query that was read, with a notice if nothing is left of it.
    pub fn query_of(&self, text: &str, outcome: Outcome) -> Datum {
        let message = match outcome {
            Outcome::Query(query) => return query.into_datum(),
            Outcome::NoWords => format!("text-search query doesn't contain lexemes: \"{text}\""),
            Outcome::OnlyStops => "text-search query contains only stop words or doesn't contain \
                                   lexemes, ignored"
                .to_owned(),
        };
        self.remark(Error::new(SqlState::SUCCESSFUL_COMPLETION, message));
        Query::default().into_datum()
    }

    /// The name of a catalog object, if there is a catalog and the object.
    pub fn name_of(&self, kind: TypeId, oid: u32) -> Option<String> {
        self.names.as_ref()?.name_of(kind, oid)
    }

    /// The place of an enum's label.
    ///
    /// # Errors
    /// 22P02 if there is no such label, 55P04 if it may not be used yet.
    pub fn enum_place(&self, kind: TypeId, label: &str) -> Result<u64> {
        let names = self.names.as_ref();
        if let Some((of, place)) = own::parse_kept_label(label) {
            let is_known = of == kind && self.enum_label(kind, place).is_ok();
            return is_known
                .then_some(place)
                .ok_or_else(|| invalid_label(kind, label));
        }
        let place = names.and_then(|names| names.enum_place(kind, label));
        let place = place.ok_or_else(|| invalid_label(kind, label))?;
        self.check_label(kind, place).map(|()| place)
    }

    /// The label at a place of an enum.
    ///
    /// # Errors
    /// 22P03 if there is none.
    pub fn enum_label(&self, kind: TypeId, place: u64) -> Result<&str> {
        let names = self.names.as_ref();
        let label = names.and_then(|names| names.enum_label(kind, place));
        label.ok_or_else(|| {
            Error::new(
                SqlState::INVALID_BINARY_REPRESENTATION,
                format!("invalid internal value for enum: {place}"),
            )
        })
    }

    /// The places of an enum's labels, in their order.
    pub fn enum_places(&self, kind: TypeId) -> Vec<u64> {
        let names = self.names.as_ref();
        names.map_or_else(Vec::new, |names| names.enum_places(kind))
    }

    /// # Errors
    /// 55P04 for a label whose ALTER TYPE is not committed.
    pub fn check_label(&self, kind: TypeId, place: u64) -> Result<()> {
        match &self.names {
            Some(names) => names.check_label(kind, place),
            None => Ok(()),
        }
    }

    /// What a domain's values, or those of an array over it, are kept as, and their modifier.
    ///
    /// # Errors
    /// XX000 if there is no such domain.
    pub(crate) fn base_type(&self, domain: TypeId) -> Result<(TypeId, i32)> {
        let names = self.names.as_ref();
        let base = names.and_then(|names| names.base_type(domain));
        base.ok_or_else(|| Error::internal(format!("no domain {}", domain.0)))
    }

    /// The fields of the rows of a type.
    ///
    /// # Errors
    /// 42704 if there is no such type.
    pub fn fields(&self, kind: TypeId) -> Result<Vec<RowField>> {
        let names = self.names.as_ref();
        let fields = names.and_then(|names| names.fields(kind));
        fields.ok_or_else(|| {
            let message = format!("type {kind} does not exist");
            Error::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// The fields of the rows of a type that are read from text or bytes.
    ///
    /// # Errors
    /// 42704 if there is no such type, 0A000 if one is of a domain, which nobody would test.
    pub(crate) fn fields_of_row(&self, kind: TypeId) -> Result<Vec<RowField>> {
        let fields = self.fields(kind)?;
        match fields.iter().any(|field| field.of_domain) {
            true => Err(Error::unsupported(
                "input of a row with a field of a domain",
            )),
            false => Ok(fields),
        }
    }

    /// The text with the names of types of one's own in their places.
    pub fn name_types(&self, text: String) -> String {
        match own::has_types(&text) {
            false => text,
            true => own::name_types(&text, |oid| self.name_of(TypeId::REGTYPE, oid)),
        }
    }

    /// An operator as an expression shows it: with its schema where its name is not enough.
    pub fn operator_text(&self, function: u32, name: &str) -> String {
        let names = self.names.as_ref();
        match names.and_then(|names| names.operator_schema(function)) {
            Some(schema) => format!("OPERATOR({schema}.{name})"),
            None => name.to_owned(),
        }
    }

    /// An aggregate as an expression shows it: with its schema where its name is not enough.
    pub fn aggregate_text(&self, aggregate: u32, name: &str) -> String {
        let names = self.names.as_ref();
        match names.and_then(|names| names.operator_schema(aggregate)) {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_owned(),
        }
    }

    /// The error with the names of types of one's own in their places.
    pub fn name_types_in(&self, mut error: Error) -> Error {
        error.change_texts(|text| self.name_types(text));
        error
    }

    /// A literal of kept text, in its quotes, with labels where it names them by their places; none
    /// if it names none.
    pub fn name_labels(&self, literal: &str) -> Option<String> {
        let mut out = literal.to_owned();
        let inner = literal.trim_matches('\'').trim_end_matches('}');
        let of_ranges = inner.ends_with([')', ']']);
        for part in literal.split(['\'', ',', '{', '}', '=', '[', ']', '(', ')']) {
            let Some((kind, place)) = own::parse_kept_label(part) else {
                continue;
            };
            let label = self.enum_label(kind, place).ok()?;
            let special = match of_ranges {
                true => label.contains([' ', ',', '(', ')', '[', ']', '"', '\\']),
                false => literal.contains('{') && label.contains([' ', ',', '{', '}', '"', '\\']),
            };
            let is_bare = !of_ranges && !literal.contains('{');
            let label = match special || label.is_empty() && !is_bare {
                true => format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\"")),
                false => label.to_owned(),
            };
            out = out.replace(part, &label.replace('\'', "''"));
        }
        (out != literal).then_some(out)
    }

    /// The OID of a catalog object.
    pub fn oid_of(&self, kind: TypeId, name: &str) -> Result<u32> {
        let found = match &self.names {
            Some(names) => names.oid_of(kind, name)?,
            None => None,
        };
        if matches!(kind, TypeId::REGOPER | TypeId::REGOPERATOR) {
            let missing = || format!("operator does not exist: {name}");
            return found.ok_or_else(|| Error::new(SqlState::UNDEFINED_FUNCTION, missing()));
        }
        if kind == TypeId::REGCOLLATION {
            let missing = || format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
            return found.ok_or_else(|| Error::new(SqlState::UNDEFINED_OBJECT, missing()));
        }
        let what = match kind {
            TypeId::REGCLASS => "relation",
            TypeId::REGTYPE => "type",
            TypeId::REGNAMESPACE => "schema",
            TypeId::REGROLE => "role",
            TypeId::REGCONFIG => "text search configuration",
            TypeId::REGDICTIONARY => "text search dictionary",
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
