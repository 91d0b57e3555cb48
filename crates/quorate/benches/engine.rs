//! The engine alone beside fjall and LMDB: no SQL, no replication, nothing synced.
//!
//! ```text
//! cargo bench -p quorate --features rivals -- --rows 5000000 --seconds 10 --document PAGE.md
//! ```
//!
//! Keys are eight bytes in random order, rows a hundred bytes. All three write in transactions of
//! `--batch` rows; none of them syncs, as Quorate's trees have the group's log for that, and each
//! may keep `--cache` MB in memory (LMDB: the operating system's cache). Quorate keeps the versions
//! of the last hundred records as for snapshots, and one transaction at a time writes, as ever: two
//! threads take turns. With `--document` the table is put between the page's marks for it.
//!
//! | column | what |
//! |---|---|
//! | load | rows a second, in random order |
//! | get | reads of random keys, with one thread and with two |
//! | put | new rows for random keys that are there, likewise |
//! | scan | rows a second, over all of them, likewise |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base::engine::{Direction, RowBatch};
use base::{GroupId, KeyRange, Lsn, TreeId};
use node::real::{RealEnv, RealOptions};
use storage::{Change, Owner, Store, StoreOptions};

const ROW_BYTES: usize = 100;

/// Snapshots that Quorate keeps versions for.
const RECORDS_KEPT: u64 = 100;

fn key(number: u64) -> [u8; 8] {
    // A bijection that scatters.
    number
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(31)
        .to_be_bytes()
}

fn row(number: u64) -> [u8; ROW_BYTES] {
    let mut row = [number as u8; ROW_BYTES];
    row[..8].copy_from_slice(&number.to_le_bytes());
    row
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

struct Options {
    rows: u64,
    seconds: f64,
    cache: u64,
    batch: u64,
    document: Option<PathBuf>,
}

impl Options {
    fn read() -> Options {
        let mut options = Options {
            rows: 100_000,
            seconds: 1.0,
            cache: 1_024,
            batch: 10,
            document: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            if name == "--bench" {
                continue;
            }
            let value = args.next().unwrap_or_default();
            if name == "--document" {
                options.document = Some(value.into());
                continue;
            }
            let number: f64 = value.parse().unwrap_or_else(|_| panic!("{name} {value}"));
            match name.as_str() {
                "--rows" => options.rows = number as u64,
                "--seconds" => options.seconds = number,
                "--cache" => options.cache = number as u64,
                "--batch" => options.batch = number as u64,
                _ => panic!("{name} is not known"),
            }
        }
        options
    }
}

trait Engine: Sync {
    /// Writes a transaction.
    fn put(&self, numbers: &[u64]);
    /// Reads until it is told to stop; how often.
    fn get(&self, more: &mut dyn FnMut() -> Option<u64>);
    /// How many rows there are.
    fn scan(&self) -> u64;
}

// ---- Quorate ----

const T: TreeId = TreeId(20_000);

struct Quorate {
    store: Arc<Store>,
    /// Of the last record; whoever has it writes.
    lsn: Mutex<u64>,
}

impl Quorate {
    fn open(dir: &Path, cache: u64) -> Quorate {
        let options = RealOptions {
            name: "bench".to_owned(),
            data_dir: dir.to_owned(),
            session_reactors: 1,
            spin: Duration::ZERO,
            routes: Vec::new(),
            reaches_beyond: false,
        };
        let env = RealEnv::start(&options).expect("a directory");
        let options = StoreOptions {
            owner: Owner {
                cluster: 1,
                group: GroupId(1),
            },
            room: storage::Room::of(cache << 20),
        };
        let its_env = env.clone();
        let opened = env.block_on("open", move || Store::open(its_env, "store", options));
        let store = opened.expect("an answer").expect("a store");
        store.create_tree(Lsn(1), T).expect("a tree");
        store.advance(Lsn(1)).expect("a record");
        let lsn = Mutex::new(1);
        Quorate { store, lsn }
    }
}

impl Engine for Quorate {
    fn put(&self, numbers: &[u64]) {
        let rows: Vec<_> = numbers.iter().map(|n| (key(*n), row(*n))).collect();
        let mut changes = Vec::with_capacity(rows.len());
        for (key, row) in &rows {
            let row = Some(&row[..]);
            changes.push(Change { tree: T, key, row });
        }
        let mut lsn = self.lsn.lock().expect("nobody has failed");
        *lsn += 1;
        self.store.apply(Lsn(*lsn), &changes).expect("a record");
        let horizon = Lsn(lsn.saturating_sub(RECORDS_KEPT));
        let limit = 2 * numbers.len();
        self.store
            .release_in_memory(horizon, limit)
            .expect("released");
    }

    fn get(&self, more: &mut dyn FnMut() -> Option<u64>) {
        let mut found = Vec::new();
        while let Some(number) = more() {
            let read = self.store.get(T, &key(number), Lsn::MAX, &mut found);
            assert!(read.expect("a read").exists, "row {number}");
        }
    }

    fn scan(&self) -> u64 {
        let mut batch = RowBatch::default();
        let (mut rest, mut rows) = (Some(KeyRange::all()), 0);
        while let Some(range) = rest {
            let forward = Direction::Forward;
            let scanned = self
                .store
                .scan(T, &range, forward, Lsn::MAX, 1_000, &mut batch);
            rows += batch.len() as u64;
            rest = scanned.expect("a scan").rest;
        }
        rows
    }
}

// ---- fjall ----

struct Fjall {
    keyspace: fjall::Keyspace,
    rows: fjall::PartitionHandle,
}

impl Fjall {
    fn open(dir: &Path, cache: u64) -> Fjall {
        let config = fjall::Config::new(dir).cache_size(cache << 20);
        let keyspace = config.open().expect("fjall");
        let rows = keyspace.open_partition("rows", fjall::PartitionCreateOptions::default());
        let rows = rows.expect("a partition");
        Fjall { keyspace, rows }
    }
}

impl Engine for Fjall {
    fn put(&self, numbers: &[u64]) {
        let mut batch = self.keyspace.batch();
        for number in numbers {
            batch.insert(&self.rows, key(*number), row(*number));
        }
        batch.commit().expect("a batch");
    }

    fn get(&self, more: &mut dyn FnMut() -> Option<u64>) {
        while let Some(number) = more() {
            let found = self.rows.get(key(number)).expect("a read");
            assert!(found.is_some(), "row {number}");
        }
    }

    fn scan(&self) -> u64 {
        self.rows.iter().map(|row| u64::from(row.is_ok())).sum()
    }
}

// ---- LMDB ----

type Rows = heed::Database<heed::types::Bytes, heed::types::Bytes>;

struct Lmdb {
    env: heed::Env,
    rows: Rows,
}

impl Lmdb {
    fn open(dir: &Path) -> Lmdb {
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(64 << 30);
        // SAFETY: nobody else opens the directory, and what is not synced is not needed.
        let env = unsafe {
            options.flags(heed::EnvFlags::NO_SYNC | heed::EnvFlags::WRITE_MAP);
            options.open(dir).expect("LMDB")
        };
        let mut txn = env.write_txn().expect("a transaction");
        let rows = env.create_database(&mut txn, None).expect("a database");
        txn.commit().expect("a commit");
        Lmdb { env, rows }
    }
}

impl Engine for Lmdb {
    fn put(&self, numbers: &[u64]) {
        let mut txn = self.env.write_txn().expect("a transaction");
        for number in numbers {
            let put = self.rows.put(&mut txn, &key(*number), &row(*number));
            put.expect("a row");
        }
        txn.commit().expect("a commit");
    }

    fn get(&self, more: &mut dyn FnMut() -> Option<u64>) {
        let mut found = Vec::new();
        while let Some(number) = more() {
            // A transaction for each, as each read of the others sees what is newest.
            let txn = self.env.read_txn().expect("a transaction");
            let row = self.rows.get(&txn, &key(number)).expect("a read");
            found.clear();
            found.extend_from_slice(row.unwrap_or_else(|| panic!("row {number}")));
        }
    }

    fn scan(&self) -> u64 {
        let txn = self.env.read_txn().expect("a transaction");
        let rows = self.rows.iter(&txn).expect("a scan");
        rows.map(|row| u64::from(row.is_ok())).sum()
    }
}

// ---- Measuring ----

/// How often a second it happens, with so many threads.
fn rate(threads: u64, seconds: f64, work: impl Fn(u64, Instant) -> u64 + Sync) -> f64 {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let done: u64 = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number, end)))
            .collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|done| done.expect("a thread")).sum()
    });
    done as f64 / begun.elapsed().as_secs_f64()
}

fn gets(engine: &dyn Engine, options: &Options, threads: u64) -> f64 {
    rate(threads, options.seconds, |thread, end| {
        let (mut random, mut count) = (Random(7 + thread), 0);
        engine.get(&mut || {
            count += 1;
            let is_over = count % 256 == 0 && Instant::now() >= end;
            (!is_over).then(|| random.below(options.rows))
        });
        count
    })
}

fn puts(engine: &dyn Engine, options: &Options, threads: u64) -> f64 {
    rate(threads, options.seconds, |thread, end| {
        let (mut random, mut count) = (Random(3 + thread), 0);
        while Instant::now() < end {
            let numbers = (0..options.batch).map(|_| random.below(options.rows));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            numbers.dedup();
            engine.put(&numbers);
            count += numbers.len() as u64;
        }
        count
    })
}

fn scans(engine: &dyn Engine, options: &Options, threads: u64) -> f64 {
    rate(threads, 0.0, |_, _| {
        assert_eq!(engine.scan(), options.rows);
        options.rows
    })
}

/// What is measured, in order.
const COLUMNS: [&str; 7] = ["load", "get", "get, 2", "put", "put, 2", "scan", "scan, 2"];

/// An engine's figures, a second.
type Figures = (&'static str, [f64; COLUMNS.len()]);

fn measure(name: &'static str, engine: &dyn Engine, options: &Options) -> Figures {
    let begun = Instant::now();
    let numbers: Vec<u64> = (0..options.rows).collect();
    numbers
        .chunks(options.batch as usize)
        .for_each(|numbers| engine.put(numbers));
    let load = options.rows as f64 / begun.elapsed().as_secs_f64();
    let [get, gets_2] = [1, 2].map(|threads| gets(engine, options, threads));
    let [put, puts_2] = [1, 2].map(|threads| puts(engine, options, threads));
    let [scan, scans_2] = [1, 2].map(|threads| scans(engine, options, threads));
    let figures = [load, get, gets_2, put, puts_2, scan, scans_2];
    let shown = figures.map(|figure| format!("{figure:>10.0}"));
    println!("{name:8} {}", shown.join(" "));
    (name, figures)
}

/// The table as a page has it, in thousands a second.
fn table(all: &[Figures], options: &Options) -> String {
    let mut lines = vec![
        format!("| thousands a second | {} |", COLUMNS.join(" | ")),
        format!("|---|{}", "---:|".repeat(COLUMNS.len())),
    ];
    for (name, figures) in all {
        let shown = figures.map(|figure| format!("{:.0}", figure / 1e3));
        lines.push(format!("| {name} | {} |", shown.join(" | ")));
    }
    let rows = options.rows as f64 / 1e6;
    let (batch, cache) = (options.batch, options.cache);
    format!(
        "{rows} million rows of {ROW_BYTES} bytes, transactions of {batch}, {cache} MB of cache. \
         \"get, 2\" is with two threads.\n\n{}",
        lines.join("\n")
    )
}

/// Puts a section between the marks for it.
fn record(page: &Path, section: &str) {
    const MARKS: [&str; 2] = ["<!-- engine -->", "<!-- /engine -->"];
    let text = std::fs::read_to_string(page).expect("the page");
    let [start, end] = MARKS.map(|mark| text.find(mark).expect("a mark"));
    let start = start + MARKS[0].len();
    let text = format!("{}\n{section}\n{}", &text[..start], &text[end..]);
    std::fs::write(page, text).expect("the page is written");
}

fn main() {
    let options = Options::read();
    let heads = COLUMNS.map(|head| format!("{head:>10}"));
    println!(
        "{} rows, transactions of {}, {} MB of cache; all a second\n{:8} {}",
        options.rows,
        options.batch,
        options.cache,
        "",
        heads.join(" ")
    );
    let dir = || tempfile::tempdir().expect("a directory");
    let mut all = Vec::new();
    let here = dir();
    let quorate = Quorate::open(here.path(), options.cache);
    all.push(measure("quorate", &quorate, &options));
    drop((quorate, here));
    let here = dir();
    let lmdb = Lmdb::open(here.path());
    all.push(measure("lmdb", &lmdb, &options));
    drop((lmdb, here));
    let here = dir();
    let fjall = Fjall::open(here.path(), options.cache);
    all.push(measure("fjall", &fjall, &options));
    if let Some(page) = &options.document {
        record(page, &table(&all, &options));
    }
}
