//! What a node, or planning, has used: BUFFERS and WAL.
//!
//! ```text
//! Buffers: shared hit=3 read=1, temp read=24 written=24
//! WAL: records=2 bytes=114
//! ```
//!
//! | field | what it is here |
//! |---|---|
//! | `Shared Hit Blocks` | pages that were looked at and were in the cache |
//! | `Shared Read Blocks` | pages that were read from the disk, as soon as a scan has them read ahead |
//! | `Temp …` | scratch space, in blocks of 8 kB |
//! | `WAL Records`, `WAL Bytes` | the changes of rows that go to the log, and their bytes in it; a row that a transaction changes twice is in the log once |
//!
//! # What it leaves out
//! Whatever nobody does while a statement runs, and is 0: pages are changed when a record is applied, and
//! written by the node; temporary tables lie in pages like others; no page is logged whole. I/O timings, as
//! `track_io_timing` cannot be switched on.

use super::node::Value;
use super::write::Tree;
use execution::exec::Usage;

/// The size of what temporary space is counted in.
const BLOCK_BYTES: u64 = 8_192;

/// How many pages were in the cache, and how many were not.
fn pages(usage: &Usage) -> (u64, u64) {
    let read = usage.used.read;
    // A page that was read is looked at as well.
    (usage.used.found.saturating_sub(read), read)
}

/// Scratch space that was read and written, in blocks.
fn temp(usage: &Usage) -> (u64, u64) {
    let blocks = |bytes: u64| bytes.div_ceil(BLOCK_BYTES);
    (blocks(usage.temp_read), blocks(usage.temp_written))
}

/// The line of BUFFERS, if there is anything to say.
pub(super) fn buffers_line(usage: &Usage) -> Option<String> {
    let said = |name: &str, figures: [(&str, u64); 2]| {
        let figures = figures.iter().filter(|(_, figure)| *figure > 0);
        let figures = figures.map(|(what, figure)| format!(" {what}={figure}"));
        let figures: String = figures.collect();
        (!figures.is_empty()).then(|| format!("{name}{figures}"))
    };
    let ((hit, read), (temp_read, temp_written)) = (pages(usage), temp(usage));
    let shared = said("shared", [("hit", hit), ("read", read)]);
    let temp = said("temp", [("read", temp_read), ("written", temp_written)]);
    let all: Vec<_> = shared.into_iter().chain(temp).collect();
    (!all.is_empty()).then(|| format!("Buffers: {}", all.join(", ")))
}

/// The fields of BUFFERS.
pub(super) fn buffers_fields(usage: &Usage) -> Vec<(&'static str, Tree)> {
    let ((hit, read), (temp_read, temp_written)) = (pages(usage), temp(usage));
    let fields = [
        ("Shared Hit Blocks", hit),
        ("Shared Read Blocks", read),
        ("Shared Dirtied Blocks", 0),
        ("Shared Written Blocks", 0),
        ("Local Hit Blocks", 0),
        ("Local Read Blocks", 0),
        ("Local Dirtied Blocks", 0),
        ("Local Written Blocks", 0),
        ("Temp Read Blocks", temp_read),
        ("Temp Written Blocks", temp_written),
    ];
    fields.map(numbered).into()
}

/// The line of WAL, if there is anything to say.
pub(super) fn wal_line(usage: &Usage) -> Option<String> {
    let (records, bytes) = (usage.used.records, usage.used.bytes);
    (records > 0).then(|| format!("WAL: records={records} bytes={bytes}"))
}

/// The fields of WAL.
pub(super) fn wal_fields(usage: &Usage) -> Vec<(&'static str, Tree)> {
    let fields = [
        ("WAL Records", usage.used.records),
        ("WAL FPI", 0),
        ("WAL Bytes", usage.used.bytes),
    ];
    fields.map(numbered).into()
}

fn numbered((name, figure): (&'static str, u64)) -> (&'static str, Tree) {
    (name, Tree::Leaf(Value::Number(figure as f64, 0)))
}
