//! Writers that know what was promised to them: each inserts (client, sequence) through a real
//! driver, keeps every reply on disk before it goes on, reconnects when its connection breaks, and
//! counts an error during a commit as unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::host::Endpoint;
use postgres::{Client, Config, NoTls};

/// What a session waits longer for than this is a pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// A (client, sequence).
pub type Entry = (i32, i32);

/// Connects a real driver.
pub fn connect(endpoint: &Endpoint) -> Result<Client, postgres::Error> {
    Config::new()
        .host(&endpoint.host)
        .port(endpoint.port)
        .user("postgres")
        .dbname("postgres")
        .connect_timeout(Duration::from_secs(2))
        .connect(NoTls)
}

/// Makes the table that writers fill.
pub fn create_table(endpoint: &Endpoint) {
    endpoint
        .query("create table kept(client int, seq int, primary key (client, seq))")
        .expect("the table is made");
}

/// Writers at work.
pub struct Writers {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    pauses: Arc<Mutex<Vec<Duration>>>,
    threads: Vec<JoinHandle<()>>,
    logs: Vec<PathBuf>,
}

impl Writers {
    /// Starts `count` writers spread over the nodes, with their logs in `dir`.
    pub fn start(nodes: &[Endpoint], count: usize, dir: &Path) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let pauses = Arc::new(Mutex::default());
        let logs: Vec<PathBuf> = (0..count)
            .map(|client| dir.join(format!("writer{client}.log")))
            .collect();
        let threads = logs
            .iter()
            .enumerate()
            .map(|(client, log)| {
                let writer = Writer {
                    client: i32::try_from(client).expect("few writers"),
                    endpoint: nodes[client % nodes.len()].clone(),
                    log: OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(log)
                        .expect("a log"),
                    stop: stop.clone(),
                    acknowledged: acknowledged.clone(),
                    pauses: pauses.clone(),
                };
                std::thread::spawn(move || writer.run())
            })
            .collect();
        Writers {
            stop,
            acknowledged,
            pauses,
            threads,
            logs,
        }
    }

    /// For how long sessions have waited between two acknowledged commits, reconnecting included,
    /// where it was longer than usual; in ascending order.
    pub fn pauses(&self) -> Vec<Duration> {
        let mut pauses = self.pauses.lock().expect("no writer panicked").clone();
        pauses.sort_unstable();
        pauses
    }

    /// Commits acknowledged so far, by all writers.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits for so many further acknowledged commits; returns how long that took.
    pub fn wait_for_more(&self, commits: u64, limit: Duration) -> Option<Duration> {
        let (start, goal) = (Instant::now(), self.acknowledged() + commits);
        while self.acknowledged() < goal {
            if start.elapsed() > limit {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Some(start.elapsed())
    }

    /// Stops all writers and reads from their logs what was acknowledged and what is unknown.
    pub fn finish(self) -> Promises {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a writer ends in order");
        }
        let mut promises = Promises::default();
        for log in &self.logs {
            promises.read(log);
        }
        promises
    }
}

struct Writer {
    client: i32,
    endpoint: Endpoint,
    log: File,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    pauses: Arc<Mutex<Vec<Duration>>>,
}

impl Writer {
    fn run(mut self) {
        let (mut seq, mut last) = (0, Instant::now());
        let mut connection = None;
        while !self.stop.load(Ordering::SeqCst) {
            let Some(client) = &mut connection else {
                connection = connect(&self.endpoint).ok();
                if connection.is_none() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                continue;
            };
            seq += 1;
            self.note("try", seq);
            let insert = "insert into kept values ($1, $2)";
            match client.execute(insert, &[&self.client, &seq]) {
                Ok(_) => {
                    self.note("ok", seq);
                    self.acknowledged.fetch_add(1, Ordering::SeqCst);
                    let paused = std::mem::replace(&mut last, Instant::now()).elapsed();
                    if paused > PAUSE_MIN {
                        self.pauses.lock().expect("a latch").push(paused);
                    }
                }
                Err(error) => {
                    let lives = error.code().is_some() && !client.is_closed();
                    if !lives {
                        connection = None;
                    }
                }
            }
        }
    }

    fn note(&mut self, word: &str, seq: i32) {
        writeln!(self.log, "{word} {} {seq}", self.client).expect("the log is written");
    }
}

/// What the logs of writers say.
#[derive(Default)]
pub struct Promises {
    /// Acknowledged.
    pub kept: BTreeSet<Entry>,
    /// Tried; acknowledged or not.
    pub tried: BTreeSet<Entry>,
}

impl Promises {
    fn read(&mut self, log: &Path) {
        let text = std::fs::read_to_string(log).expect("the log is readable");
        for line in text.lines() {
            let mut words = line.split(' ');
            let word = words.next();
            let mut number = || words.next().and_then(|word| word.parse().ok());
            let (Some(client), Some(seq)) = (number(), number()) else {
                continue;
            };
            match word {
                Some("ok") => self.kept.insert((client, seq)),
                _ => self.tried.insert((client, seq)),
            };
        }
    }

    /// Asserts that the table holds everything acknowledged, once, and nothing that was not tried.
    pub fn check(&self, endpoint: &Endpoint) {
        let mut client = connect(endpoint).expect("the node answers");
        let mut found: BTreeMap<Entry, usize> = BTreeMap::new();
        for row in client
            .query("select client, seq from kept", &[])
            .expect("the table is readable")
        {
            *found.entry((row.get(0), row.get(1))).or_default() += 1;
        }
        let missing: Vec<&Entry> = self
            .kept
            .iter()
            .filter(|entry| !found.contains_key(entry))
            .collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
        let twice: Vec<&Entry> = found
            .iter()
            .filter(|(_, times)| **times > 1)
            .map(|(entry, _)| entry)
            .collect();
        assert!(twice.is_empty(), "there twice: {twice:?}");
        let strange: Vec<&Entry> = found
            .keys()
            .filter(|entry| !self.tried.contains(entry))
            .collect();
        assert!(strange.is_empty(), "never written: {strange:?}");
    }
}
