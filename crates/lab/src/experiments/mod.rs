//! Experiments: what `quorate lab run` measures.
//!
//! An experiment is a small file of `crates/lab/experiments/` ([`Definition`]): its question, its
//! systems, its workloads and how much of it to do. A *runner* is the code that a file names; most
//! of them only say what one measurement is, and [`interleave`] does the rest: rounds over all
//! systems in turn, so that whatever else the machine does meets all of them.
//!
//! | runner | measures |
//! |---|---|
//! | `commit-loop` | rows per second of one session that commits row by row |
//! | `clients` | transactions per second of many clients, their cost in processor time and written bytes |
//! | `open-loop` | latency at a fixed rate of arrivals |
//! | `bytes` | bytes to a standby; small commits beside a bulk load |
//! | `sums` | transfers while others read sums |
//! | `tpcc` | TPC-C |
//! | `tpcc-client` | what TPC-C's client takes itself |
//! | `failover` | pauses of sessions, rows lost |
//! | `latency` | round trips of a commit |
//! | `memory` | loads, reads, upserts and scans with little memory |
//! | `steady` | upserts by the second for a long while, files, checkpoints |
//! | `tpch` | TPC-H's queries, one after the other |
//! | `restart` | the time to the first answer after SIGKILL |
//!
//! Everything they find goes into a [`results::Experiment`](crate::results::Experiment).

mod bytes;
mod clients;
mod commit_loop;
mod failover;
mod latency;
mod live;
mod memory;
mod open_loop;
mod restart;
mod steady;
mod sums;
mod tpcc;
mod tpcc_client;
mod tpch;

use std::io::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

use base::env::Env;
use serde::Deserialize;

use crate::answers::answer;
use crate::host::{go_on, remove_dir};
use crate::report::Figure;
use crate::results::{Better, Chart, Experiment};
use crate::systems::{Demands, Kind, Site, System};

pub use live::Live;

/// The files, by the names that `lab run` takes.
const FILES: [(&str, &str); 16] = [
    (
        "commit-loop",
        include_str!("../../experiments/commit-loop.toml"),
    ),
    (
        "topologies",
        include_str!("../../experiments/topologies.toml"),
    ),
    ("clients", include_str!("../../experiments/clients.toml")),
    ("pgbench", include_str!("../../experiments/pgbench.toml")),
    (
        "open-loop",
        include_str!("../../experiments/open-loop.toml"),
    ),
    ("bytes", include_str!("../../experiments/bytes.toml")),
    ("sums", include_str!("../../experiments/sums.toml")),
    ("latency", include_str!("../../experiments/latency.toml")),
    ("failover", include_str!("../../experiments/failover.toml")),
    ("memory", include_str!("../../experiments/memory.toml")),
    ("steady", include_str!("../../experiments/steady.toml")),
    ("restart", include_str!("../../experiments/restart.toml")),
    ("tpcc", include_str!("../../experiments/tpcc.toml")),
    (
        "tpcc-large",
        include_str!("../../experiments/tpcc-large.toml"),
    ),
    (
        "tpcc-client",
        include_str!("../../experiments/tpcc-client.toml"),
    ),
    ("tpch", include_str!("../../experiments/tpch.toml")),
];

/// One experiment's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What `lab run` calls it.
    #[serde(default)]
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it asks.
    pub question: String,
    runner: Runner,
    /// The systems, by name.
    pub systems: Vec<String>,
    /// Systems whose ratio is of interest.
    #[serde(default)]
    pairs: Vec<[String; 2]>,
    #[serde(default)]
    levels: Vec<String>,
    #[serde(default)]
    clients: Vec<usize>,
    #[serde(default)]
    rates: Vec<usize>,
    #[serde(default)]
    workloads: Vec<clients::Workload>,
    full: Extent,
    quick: Extent,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Runner {
    CommitLoop,
    Clients,
    OpenLoop,
    Bytes,
    Sums,
    Tpcc,
    TpccClient,
    Tpch,
    Failover,
    Latency,
    Memory,
    Steady,
    Restart,
}

/// How much to do. What an experiment does not use is 0.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Extent {
    rounds: usize,
    seconds: usize,
    rows: usize,
    transactions: usize,
    warehouses: u64,
    /// How large TPC-H's tables are; at 1 about 1 GB.
    scale: f64,
    clients: Vec<usize>,
    rates: Vec<usize>,
    /// Transactions of each client, of several runs.
    sizes: Vec<usize>,
    /// Seconds of work on one row alone.
    hot_seconds: usize,
    /// Megabytes of memory that each system's servers have, if that is to be limited.
    memory_mb: u64,
    /// Megabytes of log.
    log_mb: u64,
    /// Lines of postgresql.conf beyond the usual ones.
    postgres: Vec<String>,
    /// Settings of Quorate's nodes, `NAME=VALUE`.
    quorate: Vec<String>,
}

/// What a user wants more or less of than an experiment's file says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// Rounds.
    pub rounds: Option<usize>,
    /// Seconds of each measurement.
    pub seconds: Option<usize>,
    /// Rows of the tables.
    pub rows: Option<usize>,
    /// The scale of TPC-H.
    pub scale: Option<f64>,
}

impl Extent {
    /// Takes what a user wants, where the experiment knows such a thing at all; says what that was.
    fn replace(&mut self, overrides: &Overrides) -> Option<String> {
        let mut said = Vec::new();
        for (name, mine, wanted) in [
            ("rounds", &mut self.rounds, overrides.rounds),
            ("seconds", &mut self.seconds, overrides.seconds),
            ("rows", &mut self.rows, overrides.rows),
        ] {
            if let Some(wanted) = wanted.filter(|wanted| *mine > 0 && *wanted != *mine) {
                said.push(format!("{wanted} {name} in the place of {mine}"));
                *mine = wanted;
            }
        }
        if let Some(scale) = overrides
            .scale
            .filter(|scale| self.scale > 0.0 && *scale != self.scale)
        {
            said.push(format!("a scale of {scale} in the place of {}", self.scale));
            self.scale = scale;
        }
        (!said.is_empty()).then(|| format!("As asked for: {}.", said.join(", ")))
    }

    fn demands(&self, relayed: bool) -> Demands {
        Demands {
            relayed,
            postgres: self.postgres.clone(),
            quorate: self.quorate.clone(),
            memory_bytes: (self.memory_mb > 0).then_some(self.memory_mb << 20),
        }
    }
}

/// All experiments, in the order in which `all` runs them.
///
/// # Errors
/// A file is damaged, which a test rules out.
pub fn all() -> Result<Vec<Definition>> {
    FILES.iter().map(|(name, text)| read(name, text)).collect()
}

fn read(name: &str, text: &str) -> Result<Definition> {
    let wrong = |error: String| Error::other(format!("experiment {name}: {error}"));
    let mut definition: Definition =
        toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    definition.name = name.to_owned();
    let pairs = definition.pairs.iter().flatten();
    for system in definition.systems.iter().chain(pairs) {
        if Kind::named(system).is_none() {
            return Err(wrong(format!("no system {system}")));
        }
    }
    Ok(definition)
}

/// What a runner works with.
pub struct Context<'a> {
    /// Where systems are started.
    pub site: &'a Site,
    /// What drives sessions of our own.
    pub env: Arc<dyn Env>,
    /// Whether the quick form is asked for.
    pub quick: bool,
    /// Shows figures as they come.
    pub live: &'a Live,
    /// The experiment.
    definition: &'a Definition,
    /// Its extent, full or quick.
    extent: Extent,
    dir: PathBuf,
}

/// Runs an experiment.
///
/// # Errors
/// A system does not start or gives an error that is no finding.
pub fn run(
    definition: &Definition,
    site: &Site,
    env: &Arc<dyn Env>,
    quick: bool,
    overrides: &Overrides,
    live: &Live,
) -> Result<Experiment> {
    let mut extent = match quick {
        true => definition.quick.clone(),
        false => definition.full.clone(),
    };
    let or = |mine: Vec<usize>, usual: &Vec<usize>| match mine.is_empty() {
        true => usual.clone(),
        false => mine,
    };
    extent.clients = or(extent.clients, &definition.clients);
    extent.rates = or(extent.rates, &definition.rates);
    let replaced = extent.replace(overrides);
    let dir = site.dir.join(&definition.name);
    crate::host::create_dir(&dir)?;
    let context = Context {
        site,
        env: env.clone(),
        quick,
        live,
        definition,
        extent,
        dir,
    };
    live.title(&definition.title);
    let mut found = Experiment {
        name: definition.name.clone(),
        title: definition.title.clone(),
        question: definition.question.clone(),
        notes: replaced.into_iter().collect(),
        ..Experiment::default()
    };
    for pair in &definition.pairs {
        let titles = pair.each_ref().map(|name| Kind::named(name));
        if let [Some(ours), Some(theirs)] = titles {
            found
                .pairs
                .push((ours.title.to_owned(), theirs.title.to_owned()));
        }
    }
    let done = match definition.runner {
        Runner::CommitLoop => commit_loop::run(&context, &mut found),
        Runner::Clients => clients::run(&context, &mut found),
        Runner::OpenLoop => open_loop::run(&context, &mut found),
        Runner::Bytes => bytes::run(&context, &mut found),
        Runner::Sums => sums::run(&context, &mut found),
        Runner::Tpcc => tpcc::run(&context, &mut found),
        Runner::TpccClient => tpcc_client::run(&context, &mut found),
        Runner::Tpch => tpch::run(&context, &mut found),
        Runner::Failover => failover::run(&context, &mut found),
        Runner::Latency => latency::run(&context, &mut found),
        Runner::Memory => memory::run(&context, &mut found),
        Runner::Steady => steady::run(&context, &mut found),
        Runner::Restart => restart::run(&context, &mut found),
    };
    // Of forty million rows nothing should lie about while the next experiment runs; what cannot be
    // removed now goes with the rest at the end.
    let _ = remove_dir(&context.dir);
    done?;
    found.answer = answer(&found);
    live.done();
    Ok(found)
}

impl Context<'_> {
    /// Starts one kind of system in a place of its own; none where it is not to be measured.
    fn start_one(&self, name: &str, place: &str, relayed: bool) -> Result<Option<System>> {
        if !Kind::named(name).is_some_and(|kind| self.site.takes(kind)) {
            return Ok(None);
        }
        let place = format!("{}/{place}", self.definition.name);
        // Servers that run already are nobody's to start.
        let site = Site {
            urls: Vec::new(),
            ..self.site.clone()
        };
        let demands = self.extent.demands(relayed);
        let started = site.start(&[name.to_owned()], &place, &demands)?;
        Ok(started.into_iter().next())
    }

    /// Starts the experiment's systems, and notes their settings.
    fn start(&self, relayed: bool, found: &mut Experiment) -> Result<Vec<System>> {
        let names = &self.definition.systems;
        let demands = self.extent.demands(relayed);
        let systems = self.site.start(names, &self.definition.name, &demands)?;
        for system in &systems {
            note_system(system, found);
        }
        self.note_settings(found);
        Ok(systems)
    }

    /// Leaves out servers that were not started here, and says why.
    fn leave_out_running(&self, systems: &mut Vec<System>, why: &str, found: &mut Experiment) {
        for system in systems.iter().filter(|system| !system.is_ours()) {
            let note = format!("{} is left out: {why}.", system.name());
            found.notes.push(note);
        }
        systems.retain(System::is_ours);
    }

    /// Notes the settings that are this experiment's own.
    fn note_settings(&self, found: &mut Experiment) {
        for (whose, settings) in [
            ("PostgreSQL", &self.extent.postgres),
            ("Quorate", &self.extent.quorate),
        ] {
            if !settings.is_empty() {
                let note = format!("Settings of {whose} here: {}.", settings.join(", "));
                found.notes.push(note);
            }
        }
    }
}

/// Notes the settings that a system's durability and speed rest on.
fn note_system(system: &System, found: &mut Experiment) {
    let (said, wrong) = system.settings();
    found.notes.push(format!("{}: {said}.", system.name()));
    found.warnings.extend(wrong);
}

/// Measurements of several charts, collected round by round.
struct Collected {
    /// Group, series, figure; one list per chart.
    figures: Vec<Vec<(String, String, Figure)>>,
}

impl Collected {
    fn new(charts: usize) -> Collected {
        Collected {
            figures: vec![Vec::new(); charts],
        }
    }

    fn add(&mut self, chart: usize, group: &str, series: &str, value: f64) {
        let figures = &mut self.figures[chart];
        let found = figures
            .iter_mut()
            .find(|(other, name, _)| other == group && name == series);
        match found {
            Some((.., figure)) => figure.rounds.push(value),
            None => {
                let rounds = vec![value];
                figures.push((group.to_owned(), series.to_owned(), Figure { rounds }));
            }
        }
    }

    /// A chart with what was collected for it.
    fn chart(&self, index: usize, title: &str, unit: &str, across: &str, better: Better) -> Chart {
        let mut chart = Chart::bars(title, unit, across, better);
        for (group, series, figure) in &self.figures[index] {
            chart.bar(group, series, figure);
        }
        chart
    }
}

/// Does something for every system in turn, round after round. The first round warms caches, plans
/// and files, in a shorter form (`true`), and does not count.
fn interleave(
    systems: &[System],
    rounds: usize,
    mut one: impl FnMut(&System, bool) -> Result<()>,
) -> Result<()> {
    for system in systems {
        go_on()?;
        one(system, true)?;
    }
    for round in 0..rounds {
        // Every other round goes the other way, so that nobody always follows the same neighbour.
        let turn: Vec<&System> = match round % 2 {
            0 => systems.iter().collect(),
            _ => systems.iter().rev().collect(),
        };
        for system in turn {
            go_on()?;
            one(system, false)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_sound() {
        let all = all().unwrap();
        assert_eq!(all.len(), FILES.len());
        for definition in &all {
            assert!(!definition.systems.is_empty(), "{}", definition.name);
            assert!(
                definition.quick.rounds > 0 && definition.full.rounds > 0,
                "{}",
                definition.name
            );
        }
    }

    #[test]
    fn users_have_what_they_ask_for_where_there_is_such_a_thing() {
        let mut extent = Extent {
            rounds: 3,
            seconds: 20,
            ..Extent::default()
        };
        let overrides = Overrides {
            rounds: Some(3),
            seconds: Some(5),
            rows: Some(100),
            scale: Some(1.0),
        };
        let said = extent.replace(&overrides);
        assert_eq!(
            said.as_deref(),
            Some("As asked for: 5 seconds in the place of 20.")
        );
        assert_eq!((extent.rounds, extent.seconds, extent.rows), (3, 5, 0));
    }
}
