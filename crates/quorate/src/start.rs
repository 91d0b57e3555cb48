//! `quorate start`: one node in this process, until it is told to stop.
//!
//! Its log is `node.log` in its directory, as when `quorate up` starts it, unless it is said
//! otherwise; whoever starts it by hand is told where that is, when it takes clients, and why it
//! does not.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Severity};
use node::config::{NodeSettings, Places};
use node::real::tls::RealTls;
use node::real::{admin, host, http, log, RealEnv, RealOptions};
use node::server::Node;
use node::starting::Start;

use crate::layout::{self, NodeFile};
use crate::{privacy, Failure};

/// How long a session reactor of a lone node looks for input before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// How often a node looks whether it is told to stop.
const LOOK: Duration = Duration::from_secs(3_600);

/// The settings whose defaults follow from the machine's memory; and what part of a node's share
/// each is, at least and at most.
const BUFFERS: &str = "shared_buffers";
const BUFFERS_PART: u64 = 4;
const BUFFERS_LEAST: u64 = 128 << 10;
const QUERY: &str = "quorate.query_mem";
const QUERY_PART: u64 = 8;
const QUERY_LEAST: u64 = 4 << 20;
const QUERY_MOST: u64 = 2 << 30;
const BUDGET: &str = "quorate.memory_budget";
const BUDGET_PERCENT: u64 = 60;
/// Beside what the node's own parts take there is at least this part of its share for sessions, and
/// at least so many bytes.
const BUDGET_ROOM_PART: u64 = 8;
const BUDGET_ROOM_MIN: u64 = 32 << 20;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The node's directory, for example quorate-data/n2
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where its log goes; - for standard error (default: node.log in its directory)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Runs the node.
pub fn run(options: &Options) -> Result<(), Failure> {
    // Before any thread, so that every one inherits it.
    host::hold_stop_signals();
    host::raise_file_limit();
    let directory = NodeDirectory::look(options)?;
    let path = match &options.log {
        None => Some(layout::log_file(&options.data)),
        Some(path) => Some(path.clone()).filter(|path| path.as_os_str() != "-"),
    };
    if let Some(path) = &path {
        log::lead_to(path)
            .map_err(|error| format!("could not write {}: {error}", path.display()))?;
        say(&format!(
            "{} starts; its log is {}",
            directory.file.this()?.name,
            path.display()
        ));
    }
    let name = directory.file.this()?.name.clone();
    serve(options, directory, path.is_some()).inspect_err(|failure| {
        log::flush(&name);
        // What follows goes to the log.
        log::tell_starter(&format!("quorate: {failure}"));
    })
}

/// Says something to whoever started the node, unless nobody reads it.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A node's directory, in which it may start.
struct NodeDirectory {
    file: NodeFile,
    /// Whether an earlier start has left the mark of [`privacy`].
    was_private: bool,
    narrowed: Option<privacy::Narrowed>,
}

impl NodeDirectory {
    fn look(options: &Options) -> Result<NodeDirectory, Failure> {
        let mut file = layout::read_node(&options.data)?;
        layout::check_start(&options.data, &file)?;
        let was_private = file.private;
        let narrowed = privacy::check_node(&options.data, &mut file)?;
        refuse_wiped(options, &file)?;
        if file.format != layout::FORMAT {
            // Before anything is written that an older build does not know.
            file.format = layout::FORMAT;
            layout::write_node(&options.data, &file)?;
        }
        Ok(NodeDirectory {
            file,
            was_private,
            narrowed,
        })
    }
}

/// Where the files of a node are, as sessions are shown it.
fn places(data: &Path, file: &NodeFile) -> Places {
    let directory = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    Places {
        config_file: directory.join(layout::NODE_FILE).display().to_string(),
        directory: directory.display().to_string(),
        given: file.settings.clone().into_iter().collect(),
    }
}

/// Starts the node and waits until it is told to stop.
fn serve(options: &Options, directory: NodeDirectory, has_log_file: bool) -> Result<(), Failure> {
    let file = directory.file;
    let this = file.this()?.clone();
    let mut config = file.config()?;
    config.places = places(&options.data, &file);
    let memory = choose_memory(&file, &mut config.settings);
    let settings = config.settings();
    let settings = settings.map_err(|error| error.message().to_owned())?;
    let log_file = options.log.clone().filter(|path| path.as_os_str() != "-");
    let log_file = log_file.unwrap_or_else(|| layout::log_file(&options.data));
    log::bound(log_file, settings.log_files);
    let failed = |why: String| format!("could not start {}: {why}", this.name);
    config.secure = RealTls::open(&options.data, &settings.tls)
        .map_err(|error| failed(crate::explain(&error)))?;
    let mut real = real_options(options, &file, settings.spin)?;
    real.reaches_beyond = config.secure.is_some();
    let env = RealEnv::start(&real).map_err(|error| failed(error.to_string()))?;
    env.log(Severity::Info, &memory);
    if let Some(narrowed) = directory.narrowed {
        let message = format!("others could use the directory: {narrowed}");
        env.log(Severity::Warning, &message);
    }
    let node_env: Arc<dyn Env> = env.clone();
    let start = Start::begin(node_env.clone(), config);
    let start = start.map_err(|error| failed(crate::explain(&error)))?;
    let address = this.http_address.to_string();
    http::serve(&node_env, &address, start.starting())
        .map_err(|error| format!("could not listen on {address}: {error}"))?;
    let started = env
        .block_on_unless_stopped("start", move || start.finish())
        .map_err(|error| error.to_string())?;
    let Some(started) = started else {
        env.log(Severity::Info, "told to stop before it had started");
        log::flush(&this.name);
        return Ok(());
    };
    let node = started.map_err(|error| failed(crate::explain(&error)))?;
    if !(file.started && directory.was_private) {
        let started = NodeFile {
            started: true,
            ..file
        };
        layout::write_node(&options.data, &started)?;
    }
    admin::serve(env.clone(), &options.data, node.clone())
        .map_err(|error| format!("could not make the socket for operators: {error}"))?;
    let message = format!("{} takes clients at {}", this.name, this.sql_address);
    env.log(Severity::Info, &message);
    if has_log_file {
        say(&message);
    }
    wait_for_end(&env, &node);
    env.log(Severity::Info, "told to stop");
    let stopped = env
        .block_on_unless_stopped("stop", move || async move { node.stop().await })
        .map_err(|error| error.to_string())?;
    let how = match stopped {
        Some(()) => "stopped",
        None => "told to stop again: ends as it is",
    };
    env.log(Severity::Info, how);
    log::flush(&this.name);
    Ok(())
}

/// Until the process is told to stop, reads files anew when it is told to do that.
fn wait_for_end(env: &Arc<RealEnv>, node: &Arc<Node>) {
    loop {
        match host::wait_for_stop(LOOK) {
            Some(signal) if host::is_reload(signal) => {
                if let Err(error) = log::open_anew() {
                    let message = format!("could not open the log anew: {error}");
                    env.log(Severity::Warning, &message);
                }
                node.reload();
            }
            Some(_) => return,
            None => {}
        }
    }
}

/// A node that has lost its data must not come back under its old number: it would not know whom it
/// has voted for, and what it has acknowledged.
fn refuse_wiped(options: &Options, file: &NodeFile) -> Result<(), Failure> {
    if !file.started || Node::has_data(&options.data) {
        return Ok(());
    }
    let (name, dir) = (&file.this()?.name, options.data.display());
    Err(format!(
        "the data of {name} in {dir} is gone; it cannot come back under its old number. Remove it \
         (quorate node remove {name}), delete {dir}, and add it anew (quorate node add {name})"
    ))
}

/// How many nodes of the cluster run on this machine, as its addresses say.
fn nodes_here(file: &NodeFile) -> Result<usize, Failure> {
    let here = file.this()?.sql_address.ip();
    let is_here = |ip: IpAddr| ip == here || ip.is_loopback() && here.is_loopback();
    let nodes = file.nodes.iter();
    Ok(nodes.filter(|node| is_here(node.sql_address.ip())).count())
}

/// One reactor per core, shared among the nodes of this machine. Spinning pays for a lone node
/// only: with others on the same cores it takes their time.
fn real_options(
    options: &Options,
    file: &NodeFile,
    spin: Option<Duration>,
) -> Result<RealOptions, Failure> {
    let this = file.this()?;
    let (cores, nodes) = (host::cores(), nodes_here(file)?);
    Ok(RealOptions {
        name: this.name.clone(),
        data_dir: options.data.clone(),
        session_reactors: (cores / nodes).max(1),
        routes: file.routes()?,
        spin: spin.unwrap_or(if nodes > cores { Duration::ZERO } else { SPIN }),
        reaches_beyond: false,
    })
}

/// The share of the machine's memory that one node of it may take is that memory by the number of
/// nodes on it. A quarter of that is for pages, and an eighth for what a query keeps, unless it is
/// said otherwise; all that is counted takes 60 percent together, and the rest is for stacks,
/// connections, what lies between values, and the system's own cache.
/// Returns what was taken, as it is logged.
fn choose_memory(file: &NodeFile, settings: &mut BTreeMap<String, String>) -> String {
    let (memory, nodes) = (host::memory_bytes(), nodes_here(file).unwrap_or(1) as u64);
    if let Some(memory) = memory {
        let share = memory / nodes;
        let mut choose = |name: &str, bytes: u64, least: u64, most: u64| {
            let kilobytes = bytes.clamp(least, most) >> 10;
            let chosen = settings.entry(name.to_owned());
            chosen.or_insert_with(|| format!("{kilobytes}kB"));
        };
        choose(BUFFERS, share / BUFFERS_PART, BUFFERS_LEAST, u64::MAX);
        choose(QUERY, share / QUERY_PART, QUERY_LEAST, QUERY_MOST);
        let read = NodeSettings::read(settings);
        let least = read.map_or(0, |read| read.memory_budget_min());
        let budget = (share / 100 * BUDGET_PERCENT)
            .max(least + BUDGET_ROOM_MIN.max(share / BUDGET_ROOM_PART));
        let chosen = settings.entry(BUDGET.to_owned());
        chosen.or_insert_with(|| format!("{}kB", budget >> 10));
    }
    let taken = [BUFFERS, QUERY, BUDGET].map(|name| match settings.get(name) {
        Some(value) => format!("{name} = {value}"),
        None => format!("{name} as it is by itself"),
    });
    let machine = match memory {
        Some(memory) => format!("{} MB of memory", memory >> 20),
        None => "memory of unknown size".to_owned(),
    };
    let among = if nodes == 1 { "node" } else { "nodes" };
    format!(
        "takes, of {machine} for {nodes} {among}: {}",
        taken.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{addresses, Ports};

    fn file(count: usize) -> NodeFile {
        let ports = Ports {
            sql: 5433,
            peer: 6433,
            http: 7433,
        };
        NodeFile {
            format: layout::FORMAT,
            cluster: String::new(),
            id: 1,
            incarnation: 1,
            begun_after: 0,
            started: false,
            private: true,
            user: String::new(),
            nodes: addresses(count, ports).unwrap(),
            settings: BTreeMap::new(),
            routes: BTreeMap::new(),
            password: None,
        }
    }

    fn kilobytes(settings: &BTreeMap<String, String>, name: &str) -> u64 {
        settings[name].strip_suffix("kB").unwrap().parse().unwrap()
    }

    #[test]
    fn nodes_of_one_machine_share_its_memory() {
        let memory = host::memory_bytes().unwrap() >> 10;
        for count in [1, 3] {
            let mut settings = BTreeMap::new();
            let said = choose_memory(&file(count as usize), &mut settings);
            let buffers = kilobytes(&settings, BUFFERS);
            assert!(buffers.abs_diff(memory / count / 4) <= 1, "{said}");
            let query = kilobytes(&settings, QUERY);
            assert!(
                query.abs_diff(memory / count / 8) <= 1 || query == QUERY_MOST >> 10,
                "{said}"
            );
            assert!(
                said.contains(&settings[BUFFERS]) && said.contains(&settings[QUERY]),
                "{said}"
            );
        }
        let given = [(BUFFERS.to_owned(), "1MB".to_owned())];
        let mut settings = given.into();
        let said = choose_memory(&file(1), &mut settings);
        assert!(said.contains("shared_buffers = 1MB"), "{said}");
    }

    #[test]
    fn nodes_of_other_machines_share_nothing() {
        let mut file = file(3);
        for (node, host) in file.nodes.iter_mut().zip(1..) {
            node.sql_address = ([10, 0, 0, host], 5433).into();
        }
        assert_eq!(nodes_here(&file), Ok(1));
    }
}
