//! What there is of the SQL standard, and how the server was built: `information_schema.sql_features` and its kin,
//! `pg_config`.
//!
//! `sql_features.txt` lists the standard's features. PostgreSQL's answer is Quorate's where its behaviour is; where
//! it says YES of something that is not here, this says NO:
//!
//! ```text
//! select is_supported from information_schema.sql_features where feature_id = 'X010'     NO, there is no xml
//! ```
//! # What it leaves out
//! Directories in `pg_config`: one program is all that is installed. What it was compiled with is not recorded.
//!
//! Source: PostgreSQL 15 manual, sections 37.44 to 37.47 and 54.7.

use super::rows::{int, text, Rows};
use super::OfBinary;
use crate::settings::SERVER_VERSION;
use base::limits::COLUMNS_MAX;
use types::Datum;

pub(super) const ROWS: &[OfBinary] = &[
    ("pg_config", config),
    ("sql_features", features),
    ("sql_implementation_info", implementation),
    ("sql_parts", parts),
    ("sql_sizing", sizing),
];

const FEATURES: &str = include_str!("sql_features.txt");

/// What pg_config knows of a build beside where it is installed.
const BUILD: [&str; 9] = [
    "CONFIGURE",
    "CC",
    "CPPFLAGS",
    "CFLAGS",
    "CFLAGS_SL",
    "LDFLAGS",
    "LDFLAGS_EX",
    "LDFLAGS_SL",
    "LIBS",
];

fn config(rows: &mut Rows) {
    let unknown = BUILD.map(|name| (name, "not recorded".to_owned()));
    let version = ("VERSION", format!("PostgreSQL {SERVER_VERSION}"));
    for (name, setting) in unknown.into_iter().chain([version]) {
        rows.push([("name", text(name)), ("setting", text(setting))]);
    }
}

fn features(rows: &mut Rows) {
    for line in FEATURES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('\t').collect();
        let [id, name, part, part_name, is_supported, comments] = fields[..] else {
            continue;
        };
        rows.push([
            ("feature_id", text(id)),
            ("feature_name", text(name)),
            ("sub_feature_id", text(part)),
            ("sub_feature_name", text(part_name)),
            ("is_supported", text(is_supported)),
            ("comments", text(comments)),
        ]);
    }
}

/// The parts of the standard. Of none there is everything.
const PARTS: [(&str, &str); 10] = [
    ("1", "Framework (SQL/Framework)"),
    ("2", "Foundation (SQL/Foundation)"),
    ("3", "Call-Level Interface (SQL/CLI)"),
    ("4", "Persistent Stored Modules (SQL/PSM)"),
    ("9", "Management of External Data (SQL/MED)"),
    ("10", "Object Language Bindings (SQL/OLB)"),
    ("11", "Information and Definition Schema (SQL/Schemata)"),
    (
        "13",
        "Routines and Types Using the Java Programming Language (SQL/JRT)",
    ),
    ("14", "XML-Related Specifications (SQL/XML)"),
    ("15", "Multi-Dimensional Arrays (SQL/MDA)"),
];

fn parts(rows: &mut Rows) {
    for (id, name) in PARTS {
        rows.push([
            ("feature_id", text(id)),
            ("feature_name", text(name)),
            ("is_supported", text("NO")),
            ("comments", text("")),
        ]);
    }
}

/// The length of names, in bytes.
const NAME: Option<i32> = Some(63);
/// No limit, or none that is known.
const NONE: Option<i32> = Some(0);

/// Limits: number, name, value; none of what there is not.
const SIZING: [(i32, &str, Option<i32>); 23] = [
    (97, "MAXIMUM COLUMNS IN GROUP BY", NONE),
    (99, "MAXIMUM COLUMNS IN ORDER BY", NONE),
    (100, "MAXIMUM COLUMNS IN SELECT", NONE),
    (101, "MAXIMUM COLUMNS IN TABLE", Some(COLUMNS_MAX as i32)),
    (1, "MAXIMUM CONCURRENT ACTIVITIES", NONE),
    (0, "MAXIMUM DRIVER CONNECTIONS", None),
    (20_000, "MAXIMUM STATEMENT OCTETS", NONE),
    (20_001, "MAXIMUM STATEMENT OCTETS DATA", NONE),
    (20_002, "MAXIMUM STATEMENT OCTETS SCHEMA", NONE),
    (106, "MAXIMUM TABLES IN SELECT", NONE),
    (
        25_000,
        "MAXIMUM CURRENT DEFAULT TRANSFORM GROUP LENGTH",
        None,
    ),
    (25_001, "MAXIMUM CURRENT TRANSFORM GROUP LENGTH", None),
    (25_002, "MAXIMUM CURRENT PATH LENGTH", NONE),
    (25_003, "MAXIMUM CURRENT ROLE LENGTH", None),
    (34, "MAXIMUM CATALOG NAME LENGTH", NAME),
    (30, "MAXIMUM COLUMN NAME LENGTH", NAME),
    (31, "MAXIMUM CURSOR NAME LENGTH", NAME),
    (10_005, "MAXIMUM IDENTIFIER LENGTH", NAME),
    (32, "MAXIMUM SCHEMA NAME LENGTH", NAME),
    (35, "MAXIMUM TABLE NAME LENGTH", NAME),
    (107, "MAXIMUM USER NAME LENGTH", NAME),
    (25_004, "MAXIMUM SESSION USER LENGTH", NAME),
    (25_005, "MAXIMUM SYSTEM USER LENGTH", NAME),
];

fn sizing(rows: &mut Rows) {
    for (id, name, value) in SIZING {
        let comments = match value == NAME {
            true => "Might be less, depending on character set.",
            false => "",
        };
        rows.push([
            ("sizing_id", int(id)),
            ("sizing_name", text(name)),
            ("supported_value", value.map_or(Datum::Null, int)),
            ("comments", text(comments)),
        ]);
    }
}

/// What an implementation says of itself: a number or a text, and comments.
type Info = (
    &'static str,
    &'static str,
    Result<i32, String>,
    &'static str,
);

fn implementation(rows: &mut Rows) {
    let word = |text: &str| Err(text.to_owned());
    let all: [Info; 12] = [
        ("10003", "CATALOG NAME", word("Y"), ""),
        ("10004", "COLLATING SEQUENCE", word("ucs_basic"), ""),
        (
            "23",
            "CURSOR COMMIT BEHAVIOR",
            Ok(1),
            "close cursors and retain prepared statements",
        ),
        ("2", "DATA SOURCE NAME", word(""), ""),
        ("17", "DBMS NAME", word("Quorate"), ""),
        ("18", "DBMS VERSION", Err(version()), ""),
        (
            "26",
            "DEFAULT TRANSACTION ISOLATION",
            Ok(2),
            "READ COMMITTED; user-settable",
        ),
        (
            "28",
            "IDENTIFIER CASE",
            Ok(3),
            "stored in mixed case - case sensitive",
        ),
        ("85", "NULL COLLATION", Ok(0), "nulls higher than non-nulls"),
        ("13", "SERVER NAME", word(""), ""),
        (
            "94",
            "SPECIAL CHARACTERS",
            word(""),
            "all non-ASCII characters allowed",
        ),
        ("46", "TRANSACTION CAPABLE", Ok(2), "both DML and DDL"),
    ];
    for (id, name, value, comments) in all {
        let (number, word) = match value {
            Ok(number) => (int(number), Datum::Null),
            Err(word) => (Datum::Null, text(word)),
        };
        rows.push([
            ("implementation_info_id", text(id)),
            ("implementation_info_name", text(name)),
            ("integer_value", number),
            ("character_value", word),
            ("comments", text(comments)),
        ]);
    }
}

/// The program's version as the standard writes versions: `##.##.####`.
fn version() -> String {
    let mut numbers = env!("CARGO_PKG_VERSION").split('.');
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let (major, minor, patch) = (next(), next(), next());
    let [major, minor, patch] = [major, minor, patch].map(Option::unwrap_or_default);
    format!("{major:02}.{minor:02}.{patch:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_feature() {
        let lines = FEATURES.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let fields: Vec<_> = line.split('\t').collect();
            assert_eq!(fields.len(), 6, "{line}");
            assert!(matches!(fields[4], "YES" | "NO"), "{line}");
        }
    }

    #[test]
    fn a_version_has_two_two_and_four_digits() {
        let lengths: Vec<_> = version().split('.').map(str::len).collect();
        assert_eq!(lengths, [2, 2, 4]);
    }
}
