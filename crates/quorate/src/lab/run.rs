//! `quorate lab list` and `quorate lab run`.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::experiments::{self, Definition, Live, Overrides};
use lab::host::{
    beside, cores, create_dir, go_on, read_file, run as run_command, scratch_dir, write_file,
};
use lab::page;
use lab::results::{Report, FORMAT};
use lab::systems::Site;
use lab::url::Url;

use super::client::Client;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The experiments, or all
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// What to measure
    #[arg(long, value_delimiter = ',', default_value = "quorate,postgres")]
    against: Vec<String>,
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Rounds, in the place of the experiment's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds of each measurement, in the place of the experiment's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Rows of the tables, in the place of the experiment's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..))]
    rows: Option<u32>,
    /// The scale of TPC-H's tables, in the place of the experiment's own
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    scale: Option<f64>,
    /// Where the page and the JSON go
    #[arg(long, value_name = "DIR", default_value = "./quorate-lab")]
    out: PathBuf,
    /// Where PostgreSQL's programs are, if not on the PATH or where Debian puts them
    #[arg(long, value_name = "DIR")]
    pg_bin: Option<PathBuf>,
    /// Another build of Quorate to measure in PostgreSQL's place
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// A running server to measure too
    #[arg(long, value_name = "NAME=postgres://…")]
    url: Vec<NamedUrl>,
}

/// A running server and what reports call it.
#[derive(Clone, Debug)]
struct NamedUrl {
    name: String,
    url: Url,
}

impl FromStr for NamedUrl {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<NamedUrl, String> {
        let (name, url) = text
            .split_once('=')
            .ok_or("not of the form NAME=postgres://…")?;
        Ok(NamedUrl {
            name: name.to_owned(),
            url: url.parse()?,
        })
    }
}

/// A scale of TPC-H: beyond 100 its keys are no integers, below 0.01 its generator gives a part the same
/// supplier twice.
fn scale(text: &str) -> std::result::Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.01..=100.0).contains(&scale) {
        true => Ok(scale),
        false => Err("not from 0.01 to 100".to_owned()),
    }
}

/// Lists the experiments.
pub fn list() -> Result<()> {
    for definition in experiments::all()? {
        println!("{:12} {}", definition.name, definition.title);
        println!("{:12} {}", "", definition.question);
        println!("{:12} systems: {}\n", "", definition.systems.join(", "));
    }
    Ok(())
}

/// How often a run looks whether it is told to stop.
const LOOK: Duration = Duration::from_millis(200);

/// Runs experiments, and stops what it has started when it is told to stop.
pub fn run(options: &Options) -> Result<()> {
    node::real::host::hold_stop_signals();
    let over = AtomicBool::new(false);
    let watch = || {
        while !over.load(Ordering::Relaxed) {
            if node::real::host::wait_for_stop(LOOK).is_some() {
                eprintln!("Stopping.");
                lab::host::stop();
            }
        }
    };
    // Whatever becomes of it.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let main = || {
        let _over = Over(&over);
        run_chosen(options)
    };
    let (done, _) = beside(1, watch, main)?;
    done
}

fn run_chosen(options: &Options) -> Result<()> {
    let chosen = choose(&options.names)?;
    for family in &options.against {
        if !["quorate", "postgres"].contains(&family.as_str()) {
            return Err(Error::other(format!(
                "--against {family}: not quorate or postgres"
            )));
        }
    }
    create_dir(&options.out)?;
    let scratch = scratch_dir("quorate-lab")?;
    let program = std::env::current_exe()?;
    let site = Site {
        beside: options.beside.clone(),
        postgres_bin: options
            .pg_bin
            .clone()
            .unwrap_or_else(lab::postgres::programs),
        against: options.against.clone(),
        urls: options
            .url
            .iter()
            .map(|named| (named.name.clone(), named.url.clone()))
            .collect(),
        ..Site::new(&program, scratch.path())
    };
    if options.against.iter().any(|family| family == "postgres")
        && site.beside.is_none()
        && !site.has_postgres()
    {
        eprintln!(
            "There is no PostgreSQL in {}; going on without it. To have it: apt-get install \
             postgresql-15, or say where it is with --pg-bin.",
            site.postgres_bin.display()
        );
    }
    let client = Client::start(cores())?;
    let live = Live::default();
    let number = |wanted: Option<u32>| wanted.map(|wanted| wanted as usize);
    let overrides = Overrides {
        rounds: number(options.rounds),
        seconds: number(options.seconds),
        rows: number(options.rows),
        scale: options.scale,
    };
    let mut report = Report {
        format: FORMAT,
        made: now()?,
        quick: options.quick,
        conditions: conditions(&site)?,
        experiments: Vec::new(),
    };
    let mut failed = Vec::new();
    for definition in &chosen {
        let env = client.driver().env();
        let found = experiments::run(definition, &site, env, options.quick, &overrides, &live);
        match found {
            Ok(found) => report.experiments.push(found),
            Err(error) if go_on().is_err() => return Err(error),
            // The others' figures are worth having.
            Err(error) => {
                eprintln!("{}: {error}", definition.name);
                failed.push(definition.name.as_str());
                report.experiments.push(lab::results::Experiment {
                    name: definition.name.clone(),
                    title: definition.title.clone(),
                    question: definition.question.clone(),
                    warnings: vec![format!("It could not be run to its end: {error}")],
                    ..lab::results::Experiment::default()
                });
            }
        }
        // After each, so that one that fails costs nothing but itself.
        write(&report, &options.out)?;
    }
    for experiment in &report.experiments {
        println!("## {}\n\n{}", experiment.title, experiment.document());
    }
    println!("{}", options.out.join("report.html").display());
    let broken = report
        .experiments
        .iter()
        .flat_map(|experiment| &experiment.checks);
    match broken.filter(|check| check.held != check.expected).count() {
        0 if failed.is_empty() => Ok(()),
        0 => Err(Error::other(format!(
            "not run to their end: {}",
            failed.join(", ")
        ))),
        count => Err(Error::other(format!("{count} checks did not hold"))),
    }
}

fn choose(names: &[String]) -> Result<Vec<Definition>> {
    let all = experiments::all()?;
    if names.iter().any(|name| name == "all") {
        return Ok(all);
    }
    let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            return Err(Error::other(format!(
                "no experiment {name}; there are {}",
                known.join(", ")
            )));
        }
    }
    Ok(all
        .into_iter()
        .filter(|one| names.contains(&one.name))
        .collect())
}

fn write(report: &Report, out: &Path) -> Result<()> {
    let json = serde_json::to_string_pretty(report).map_err(Error::other)?;
    write_file(&out.join("report.json"), &json)?;
    write_file(&out.join("report.html"), &page::html(report)?)
}

fn now() -> Result<String> {
    let mut date = Command::new("date");
    let printed = run_command(date.args(["-u", "+%Y-%m-%d %H:%M UTC"]))?;
    Ok(printed.trim().to_owned())
}

/// The machine, versions and settings.
fn conditions(site: &Site) -> Result<Vec<(String, String)>> {
    let version = |program: &Path| -> Result<String> {
        Ok(run_command(Command::new(program).arg("--version"))?
            .trim()
            .to_owned())
    };
    let mut all = vec![("Quorate".to_owned(), version(&site.program)?)];
    if let Some(other) = &site.beside {
        all.push(("The other build".to_owned(), version(other)?));
    } else if site.has_postgres() {
        all.push((
            "PostgreSQL".to_owned(),
            version(&site.postgres_bin.join("postgres"))?,
        ));
        let settings =
            "shared_buffers 512 MB, max_wal_size 4 GB, wal_compression on; else defaults, where an experiment says nothing else";
        all.push(("PostgreSQL's settings".to_owned(), settings.to_owned()));
    }
    let settings = "shared_buffers 512 MB; else defaults, where an experiment says nothing else";
    all.push(("Quorate's settings".to_owned(), settings.to_owned()));
    let text = |path: &str| read_file(path.as_ref()).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    let model = field(&text("/proc/cpuinfo"), "model name");
    let model = model.unwrap_or_else(|| "unknown".to_owned());
    all.push(("Processors".to_owned(), format!("{} × {model}", cores())));
    if let Some(memory) = field(&text("/proc/meminfo"), "MemTotal") {
        let kilobytes: f64 = memory
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0.0);
        all.push(("Memory".to_owned(), format!("{:.1} GB", kilobytes / 1e6)));
    }
    all.push((
        "Kernel".to_owned(),
        text("/proc/sys/kernel/osrelease").trim().to_owned(),
    ));
    let servers = "all servers and clients share this machine and its disk";
    all.push(("Placement".to_owned(), servers.to_owned()));
    let load = text("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    all.push((
        "Load before".to_owned(),
        format!("{load} runnable processes (1 minute)"),
    ));
    Ok(all)
}
