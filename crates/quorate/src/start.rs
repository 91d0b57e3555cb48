//! `quorate start`: one node in this process, until it is told to stop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Severity};
use node::real::tls::RealTls;
use node::real::{admin, host, http, RealEnv, RealOptions};
use node::server::Node;

use crate::layout::{self, NodeFile};
use crate::Failure;

/// How long a session reactor of a lone node looks for input before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// How often a node looks whether it is told to stop.
const LOOK: Duration = Duration::from_secs(3_600);

/// What mimalloc calls `mi_option_purge_delay` (its `mimalloc.h`).
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// After so many milliseconds memory that nobody uses is given back to the machine. By itself
/// mimalloc waits for a second, in which a large transaction holds 70 MB more than it needs.
const PURGE_DELAY_MILLIS: std::ffi::c_long = 10;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The node's directory, for example quorate-data/n2
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Runs the node.
pub fn run(options: &Options) -> Result<(), Failure> {
    // SAFETY: it stores a number, and no other thread runs yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLIS) };
    // Before any thread, so that every one inherits it.
    host::hold_stop_signals();
    host::raise_file_limit();
    let file = layout::read_node(&options.data)?;
    let this = file.this()?.clone();
    refuse_wiped(options, &file)?;
    let mut config = file.config()?;
    choose_buffers(&file, &mut config.settings)?;
    let settings = config.settings();
    let settings = settings.map_err(|error| error.message().to_owned())?;
    config.secure = RealTls::open(&options.data, &settings.tls)
        .map_err(|error| format!("could not start {}: {}", this.name, crate::explain(&error)))?;
    let mut real = real_options(options, &file, settings.spin)?;
    real.reaches_beyond = config.secure.is_some();
    let env =
        RealEnv::start(&real).map_err(|error| format!("could not start {}: {error}", this.name))?;
    let node_env: Arc<dyn Env> = env.clone();
    let node = env
        .block_on("start", {
            let env = node_env.clone();
            move || Node::start(env, config)
        })
        .map_err(|error| error.to_string())?
        .map_err(|error| format!("could not start {}: {}", this.name, crate::explain(&error)))?;
    if !file.started {
        let started = NodeFile {
            started: true,
            ..file
        };
        layout::write_node(&options.data, &started)?;
    }
    admin::serve(env.clone(), &options.data, node.clone())
        .map_err(|error| format!("could not make the socket for operators: {error}"))?;
    let address = this.http_address.to_string();
    http::serve(&node_env, &address, node.clone())
        .map_err(|error| format!("could not listen on {address}: {error}"))?;
    let message = format!("{} takes clients at {}", this.name, this.sql_address);
    env.log(Severity::Info, &message);

    loop {
        match host::wait_for_stop(LOOK) {
            Some(signal) if host::is_reload(signal) => {
                node.reload();
            }
            Some(_) => break,
            None => {}
        }
    }
    env.log(Severity::Info, "told to stop");
    env.block_on("stop", move || async move { node.stop().await })
        .map_err(|error| error.to_string())?;
    env.log(Severity::Info, "stopped");
    Ok(())
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

/// One reactor per core, shared among the nodes of this machine. Spinning pays for a lone node
/// only: with others on the same cores it takes their time.
fn real_options(
    options: &Options,
    file: &NodeFile,
    spin: Option<Duration>,
) -> Result<RealOptions, Failure> {
    let this = file.this()?;
    let is_here = |ip: std::net::IpAddr| ip.is_loopback();
    let here = file
        .nodes
        .iter()
        .filter(|node| is_here(node.sql_address.ip()));
    let (cores, nodes) = (host::cores(), here.count().max(1));
    Ok(RealOptions {
        name: this.name.clone(),
        data_dir: options.data.clone(),
        session_reactors: (cores / nodes).max(1),
        routes: file.routes()?,
        spin: spin.unwrap_or(if nodes > cores { Duration::ZERO } else { SPIN }),
        reaches_beyond: false,
    })
}

/// A quarter of the memory is for pages, unless it is said otherwise; nodes of one machine share it.
fn choose_buffers(file: &NodeFile, settings: &mut BTreeMap<String, String>) -> Result<(), Failure> {
    let Some(memory) = host::memory_bytes() else {
        return Ok(());
    };
    let here = file.this()?.peer_address.ip();
    let nodes = file.nodes.iter();
    let count = nodes.filter(|node| node.peer_address.ip() == here).count();
    let kilobytes = (memory / 4 / count.max(1) as u64) >> 10;
    settings
        .entry("shared_buffers".to_owned())
        .or_insert_with(|| format!("{}kB", kilobytes.max(128)));
    Ok(())
}
