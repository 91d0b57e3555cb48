//! `quorate check`: whether the files of stopped nodes are sound, and whether several nodes of a
//! cluster hold the same. Nothing is changed.

mod compare;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::ids::FIRST_GROUP;
use base::Lsn;
use kv::check::CheckReport;
use kv::contents::Contents;
use node::config::NodeConfig;
use node::real::{host, RealEnv, RealOptions};

use crate::layout::{self, NodeAddress};
use crate::Failure;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The directory of a cluster, or those of nodes of one cluster; several nodes are compared
    #[arg(value_name = "DIR", default_value = "./quorate-data")]
    data: Vec<PathBuf>,
}

/// Checks nodes, and compares those that are sound.
pub fn run(options: &Options) -> Result<(), Failure> {
    let mut failures = Vec::new();
    let mut sound = Vec::new();
    for data in &options.data {
        for (node, dir) in layout::nodes_of(data)? {
            match check(&node, &dir) {
                Ok(groups) => {
                    for checked in &groups {
                        println!("{}: {}", checked.name, words(&checked.report));
                    }
                    sound.extend(groups);
                }
                Err(failure) => failures.push(format!("{}: {failure}", node.name)),
            }
        }
    }
    sound.sort_by_key(|checked| checked.report.group);
    for replicas in sound.chunk_by(|a, b| a.report.group == b.report.group) {
        if replicas.len() > 1 {
            let found = compare::compare(replicas)?;
            found.same.iter().for_each(|line| println!("{line}"));
            failures.extend(found.different);
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\nquorate: ")),
    }
}

/// A group of a node whose files are sound.
struct Checked {
    /// That of the node, and of the group if it is another than the first.
    name: String,
    dir: PathBuf,
    config: NodeConfig,
    report: CheckReport,
}

fn check(node: &NodeAddress, dir: &Path) -> Result<Vec<Checked>, Failure> {
    if let Some(pid) = host::owner(dir) {
        return Err(format!("it runs (process {pid}); stop it first"));
    }
    let config = layout::read_node(dir)?.config()?;
    let reports = ask(&node.name, dir, &config, async |env, config| {
        node::server::check(env, &config).await
    })?;
    let of_group = |report: CheckReport| Checked {
        name: match report.group {
            FIRST_GROUP => node.name.clone(),
            group => format!("{}, group {group}", node.name),
        },
        dir: dir.to_owned(),
        config: config.clone(),
        report,
    };
    Ok(reports.into_iter().map(of_group).collect())
}

/// What a node holds at an LSN; none if its files cannot be brought there.
fn contents_at(checked: &Checked, lsn: Lsn) -> Result<Option<Contents>, Failure> {
    let Checked {
        name, dir, config, ..
    } = checked;
    let group = checked.report.group;
    ask(name, dir, config, async move |env, config| {
        node::server::contents_at(env, &config, group, lsn).await
    })
}

/// Asks something of the files of a node.
fn ask<T, F>(name: &str, dir: &Path, config: &NodeConfig, question: F) -> Result<T, Failure>
where
    T: Send + 'static,
    F: AsyncFnOnce(Arc<dyn Env>, NodeConfig) -> base::Result<T> + Send + 'static,
{
    let options = RealOptions {
        name: name.to_owned(),
        data_dir: dir.to_owned(),
        session_reactors: 1,
        spin: Duration::ZERO,
        routes: Vec::new(),
        reaches_beyond: false,
    };
    let env = RealEnv::start(&options).map_err(|error| error.to_string())?;
    let (node_env, config): (Arc<dyn Env>, _) = (env.clone(), config.clone());
    let answer = env.block_on("check", || async move { question(node_env, config).await });
    let answer = answer.map_err(|error| error.to_string())?;
    answer.map_err(|error| crate::explain(&error))
}

fn words(report: &CheckReport) -> String {
    format!(
        "sound; log of {} segments up to {} of term {}, checkpoint of {} pages at {}, \
         {} trees with {} rows and entries",
        report.segments,
        report.last.lsn,
        report.last.term,
        report.pages,
        report.checkpoint,
        report.trees.len(),
        report.trees.values().sum::<u64>(),
    )
}
