//! Storage parameters of tables: what WITH (…) and SET (…) take.
//!
//! ```text
//! create table t (a int) with (autovacuum_enabled = off, fillfactor = 70)
//! ```
//! Those that say when ANALYZE runs by itself do so (`session/automatic.rs`). The others are about what
//! there is not here, VACUUM and pages of rows; they are checked, kept and shown, and change nothing.

use base::{Error, Result, SqlState};
use pg_query::protobuf::Node;

use super::super::super::utility::option_text;
use super::super::placement::is_placement;
use catalog::Table;
use syntax::parser::NodeEnum;

/// What values a parameter takes.
#[derive(Clone, Copy, Debug)]
enum Values {
    Bool,
    /// From the first to the last.
    Int(i64, i64),
    /// From 0 to 100.
    Share,
    OneOf(&'static [&'static str]),
}

use Values::{Bool, Int, OneOf, Share};

const INT_MAX: i64 = i32::MAX as i64;

/// All of them (PostgreSQL 15 manual, CREATE TABLE), but for those that only TOAST tables have.
const PARAMETERS: [(&str, Values); 22] = [
    ("autovacuum_analyze_scale_factor", Share),
    ("autovacuum_analyze_threshold", Int(0, INT_MAX)),
    ("autovacuum_enabled", Bool),
    ("autovacuum_freeze_max_age", Int(100_000, 2_000_000_000)),
    ("autovacuum_freeze_min_age", Int(0, 1_000_000_000)),
    ("autovacuum_freeze_table_age", Int(0, 2_000_000_000)),
    (
        "autovacuum_multixact_freeze_max_age",
        Int(10_000, 2_000_000_000),
    ),
    ("autovacuum_multixact_freeze_min_age", Int(0, 1_000_000_000)),
    (
        "autovacuum_multixact_freeze_table_age",
        Int(0, 2_000_000_000),
    ),
    ("autovacuum_vacuum_cost_delay", Share),
    ("autovacuum_vacuum_cost_limit", Int(1, 10_000)),
    ("autovacuum_vacuum_insert_scale_factor", Share),
    ("autovacuum_vacuum_insert_threshold", Int(-1, INT_MAX)),
    ("autovacuum_vacuum_scale_factor", Share),
    ("autovacuum_vacuum_threshold", Int(0, INT_MAX)),
    ("fillfactor", Int(10, 100)),
    ("log_autovacuum_min_duration", Int(-1, INT_MAX)),
    ("parallel_workers", Int(0, 1_024)),
    ("toast_tuple_target", Int(128, 8_160)),
    ("user_catalog_table", Bool),
    (
        "vacuum_index_cleanup",
        OneOf(&["auto", "on", "off", "true", "false", "yes", "no", "1", "0"]),
    ),
    ("vacuum_truncate", Bool),
];

/// Takes over the storage parameters of WITH (…) or SET (…).
///
/// # Errors
/// 22023 for one that there is not, or not with that value.
pub(in super::super) fn set_options(table: &mut Table, options: &[Node]) -> Result<()> {
    for node in options {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        if is_placement(option) {
            continue;
        }
        let name = option.defname.clone();
        let known = PARAMETERS.iter().find(|known| known.0 == name);
        if known.is_none() && option.defnamespace != "toast" {
            return Err(invalid(format!("unrecognized parameter \"{name}\"")));
        }
        let value = match option.arg {
            None => "true".to_owned(),
            Some(_) => option_text(option),
        };
        if let Some((name, values)) = known {
            check(name, *values, &value)?;
        }
        let name = match option.defnamespace.as_str() {
            "" => name,
            space => format!("{space}.{name}"),
        };
        table.options.retain(|known| known.0 != name);
        table.options.push((name, value));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// # Errors
/// 22023 for a value that the parameter does not take.
fn check(name: &str, values: Values, value: &str) -> Result<()> {
    let wrong = |kind: &str| {
        Err(invalid(format!(
            "invalid value for {kind} option \"{name}\": {value}"
        )))
    };
    let beyond = |least: String, greatest: String| {
        let message = format!("value {value} out of bounds for option \"{name}\"");
        let detail = format!("Valid values are between \"{least}\" and \"{greatest}\".");
        Err(invalid(message).with_detail(detail))
    };
    let lower = value.to_ascii_lowercase();
    match values {
        Bool if is_boolean(&lower) => Ok(()),
        Bool => wrong("boolean"),
        Int(least, greatest) => match value.parse::<i64>() {
            Err(_) => wrong("integer"),
            Ok(number) if (least..=greatest).contains(&number) => Ok(()),
            Ok(_) => beyond(least.to_string(), greatest.to_string()),
        },
        Share => match value.parse::<f64>() {
            Err(_) => wrong("floating point"),
            Ok(number) if (0.0..=100.0).contains(&number) => Ok(()),
            Ok(_) => beyond("0.000000".to_owned(), "100.000000".to_owned()),
        },
        OneOf(known) if known.contains(&lower.as_str()) => Ok(()),
        OneOf(_) => wrong("enum")
            .map_err(|error| error.with_detail("Valid values are \"on\", \"off\", and \"auto\".")),
    }
}

/// Whether a text is a beginning of a boolean that no other has, as PostgreSQL takes them.
fn is_boolean(text: &str) -> bool {
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(text);
    let words = [
        ("true", 1),
        ("false", 1),
        ("yes", 1),
        ("no", 1),
        ("on", 2),
        ("off", 2),
    ];
    matches!(text, "1" | "0") || words.iter().any(|(word, least)| begins(word, *least))
}
