//! `quorate check`: whether the files of stopped nodes are sound. Nothing is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use node::real::{host, RealEnv, RealOptions};

use crate::layout::{self, NodeAddress};
use crate::Failure;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The directory of a cluster, or of one node in it
    #[arg(value_name = "DIR", default_value = "./quorate-data")]
    data: PathBuf,
}

/// Checks one node or all.
pub fn run(options: &Options) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for (node, dir) in layout::nodes_of(&options.data)? {
        match check(&node, &dir) {
            Ok(found) => println!("{}: {found}", node.name),
            Err(failure) => failures.push(format!("{}: {failure}", node.name)),
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\nquorate: ")),
    }
}

fn check(node: &NodeAddress, dir: &Path) -> Result<String, Failure> {
    if let Some(pid) = host::owner(dir) {
        return Err(format!("it runs (process {pid}); stop it first"));
    }
    let config = layout::read_node(dir)?.config()?;
    let options = RealOptions {
        name: node.name.clone(),
        data_dir: dir.to_owned(),
        session_reactors: 1,
        spin: Duration::ZERO,
        routes: Vec::new(),
        reaches_beyond: false,
    };
    let env = RealEnv::start(&options).map_err(|error| error.to_string())?;
    let node_env: Arc<dyn Env> = env.clone();
    let checked = env.block_on("check", || async move {
        node::server::check(node_env, &config).await
    });
    let report = checked
        .map_err(|error| error.to_string())?
        .map_err(|error| crate::explain(&error))?;
    Ok(format!(
        "sound; log of {} segments up to {} of term {}, checkpoint of {} pages at {}, \
         {} trees with {} rows and entries",
        report.segments,
        report.last.lsn,
        report.last.term,
        report.pages,
        report.checkpoint,
        report.trees.len(),
        report.trees.values().sum::<u64>(),
    ))
}
