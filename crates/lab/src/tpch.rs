//! TPC-H: its tables, their data and its 22 queries, with the values of the validation run (TPC-H
//! specification 3.0.1, section 2.4).
//!
//! ```text
//! lineitem: 740 MB of text at a scale of 1     written in pieces, each copied and removed
//! ```
//!
//! Data come from the crate `tpchgen`, which gives what the benchmark's own generator does, row by
//! row. Tables have their primary keys, and indexes on the foreign keys that joins go by: both
//! systems get the same.
//!
//! # What it leaves out
//! The refresh functions, streams of queries at the same time, and the power metric: what is looked at
//! here is how long each query takes by itself.

use std::fmt::{Display, Write};
use std::io::Result;
use std::path::Path;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::host::{go_on, remove_file, run, write_file, Endpoint};

/// The tables, with their keys.
const TABLES: &str = include_str!("../tpch/tables.sql");

/// The indexes beside the keys.
const INDEXES: &str = include_str!("../tpch/indexes.sql");

/// The queries, by number from 1 on.
const QUERIES: [&str; 22] = [
    include_str!("../tpch/q01.sql"),
    include_str!("../tpch/q02.sql"),
    include_str!("../tpch/q03.sql"),
    include_str!("../tpch/q04.sql"),
    include_str!("../tpch/q05.sql"),
    include_str!("../tpch/q06.sql"),
    include_str!("../tpch/q07.sql"),
    include_str!("../tpch/q08.sql"),
    include_str!("../tpch/q09.sql"),
    include_str!("../tpch/q10.sql"),
    include_str!("../tpch/q11.sql"),
    include_str!("../tpch/q12.sql"),
    include_str!("../tpch/q13.sql"),
    include_str!("../tpch/q14.sql"),
    include_str!("../tpch/q15.sql"),
    include_str!("../tpch/q16.sql"),
    include_str!("../tpch/q17.sql"),
    include_str!("../tpch/q18.sql"),
    include_str!("../tpch/q19.sql"),
    include_str!("../tpch/q20.sql"),
    include_str!("../tpch/q21.sql"),
    include_str!("../tpch/q22.sql"),
];

/// Parts in which tables are made at a scale of 1, so that a piece of text has some megabytes.
const PARTS: f64 = 40.0;

/// The queries for a scale. The fraction of query 11 depends on it.
pub fn queries(scale: f64) -> Vec<String> {
    let fraction = format!("{:.10}", 0.0001 / scale);
    let fraction = fraction.trim_end_matches('0');
    let of_scale = |text: &&str| text.trim_end().replace(":fraction", fraction);
    QUERIES.iter().map(of_scale).collect()
}

/// Makes the tables anew, with the data of a scale, and analyzes them. Pieces of text stand in `dir`
/// for as long as they are copied.
///
/// # Errors
/// A statement fails, or `dir` has no space.
pub fn load(server: &Endpoint, scale: f64, dir: &Path) -> Result<()> {
    server.query(TABLES)?;
    let parts = (scale * PARTS).ceil().max(1.0) as i32;
    let copy = |table, text| copy(server, dir, table, text);
    copy("region", lines(RegionGenerator::new(scale, 1, 1).iter()))?;
    copy("nation", lines(NationGenerator::new(scale, 1, 1).iter()))?;
    for part in 1..=parts {
        copy(
            "supplier",
            lines(SupplierGenerator::new(scale, part, parts).iter()),
        )?;
        copy(
            "customer",
            lines(CustomerGenerator::new(scale, part, parts).iter()),
        )?;
        copy("part", lines(PartGenerator::new(scale, part, parts).iter()))?;
        copy(
            "partsupp",
            lines(PartSuppGenerator::new(scale, part, parts).iter()),
        )?;
        copy(
            "orders",
            lines(OrderGenerator::new(scale, part, parts).iter()),
        )?;
        copy(
            "lineitem",
            lines(LineItemGenerator::new(scale, part, parts).iter()),
        )?;
    }
    server.query(INDEXES)?;
    server.query("analyze").map(drop)
}

/// Rows as COPY takes them. The generator's end with a separator.
fn lines<R: Display>(rows: impl Iterator<Item = R>) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to a string does not fail.
        let _ = write!(text, "{row}");
        if text.ends_with('|') {
            text.pop();
        }
        text.push('\n');
    }
    text
}

fn copy(server: &Endpoint, dir: &Path, table: &str, text: String) -> Result<()> {
    go_on()?;
    let path = dir.join(format!("{table}.tbl"));
    write_file(&path, &text)?;
    let command = format!(
        "\\copy {table} from '{}' with (delimiter '|')",
        path.display()
    );
    run(server.psql().args(["-c", &command]))?;
    remove_file(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_query_11_follows_the_scale() {
        assert!(queries(1.0)[10].contains("* 0.0001\n"));
        assert!(queries(0.1)[10].contains("* 0.001\n"));
        assert!(queries(0.01)[10].contains("* 0.01\n"));
    }

    #[test]
    fn a_row_is_a_line_without_a_last_separator() {
        let text = lines(RegionGenerator::new(1.0, 1, 1).iter());
        assert_eq!(text.lines().count(), 5);
        assert!(text.lines().all(|line| line.split('|').count() == 3));
    }
}
