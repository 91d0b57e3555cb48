//! What is done to the leader or the primary, and what takes its place.
//!
//! Quorate is told nothing: whoever is left elects. PostgreSQL has nothing that notices the loss of
//! a primary, so here somebody notices at once and gives the commands that replace it: the standby
//! that has received most is promoted, the other is told to follow it, and no client is kept from
//! trying the old one. Asked to hand over, the primary is stopped first, which sends its standbys
//! everything it has.

use std::io::{Error, Result};
use std::process::Command;

use crate::host::{output, signal, Process};
use crate::postgres::Postgres;
use crate::quorate::Cluster;
use crate::session::Target;
use crate::systems::System;

use super::Fault;

/// A system of which the leader is lost.
pub(super) enum Victim<'a> {
    Quorate {
        cluster: &'a Cluster,
        leader: usize,
        /// Nodes that were started again; `quorate up` looks after its own alone.
        restarted: &'a mut Vec<Process>,
    },
    Postgres {
        system: &'a System,
        primary: &'a Postgres,
        standbys: &'a [Postgres],
    },
}

impl<'a> Victim<'a> {
    /// None of a system that can lose no leader here.
    pub fn of(system: &'a System, restarted: &'a mut Vec<Process>) -> Result<Option<Victim<'a>>> {
        if let Some(cluster) = system.cluster() {
            return Ok(Some(Victim::Quorate {
                cluster,
                leader: cluster.leader()?,
                restarted,
            }));
        }
        let parts = system.postgres();
        Ok(parts.map(|(primary, standbys, _)| Victim::Postgres {
            system,
            primary,
            standbys,
        }))
    }

    /// Runs a statement where rows are written first.
    pub fn query(&self, sql: &str) -> Result<String> {
        match self {
            Victim::Quorate {
                cluster, leader, ..
            } => cluster.nodes()[*leader].query(sql),
            Victim::Postgres { primary, .. } => primary.endpoint().query(sql),
        }
    }

    /// Where sessions go, in turn.
    pub fn targets(&self) -> Vec<Target> {
        let endpoints = match self {
            Victim::Quorate { cluster, .. } => cluster.nodes().iter().collect::<Vec<_>>(),
            Victim::Postgres {
                primary, standbys, ..
            } => {
                let all = std::iter::once(*primary).chain(*standbys);
                all.map(Postgres::endpoint).collect()
            }
        };
        let target = |node: &crate::host::Endpoint| format!("{}:{}", node.host, node.port);
        let addresses = endpoints.into_iter().map(target);
        addresses.map(|address| Target::at(&address)).collect()
    }

    /// Loses the leader.
    ///
    /// # Errors
    /// A command fails.
    pub fn strike(&mut self, fault: Fault) -> Result<()> {
        match self {
            Victim::Quorate {
                cluster, leader, ..
            } => match fault {
                Fault::Kill => signal(cluster.pid(*leader)?, "KILL"),
                Fault::Freeze => signal(cluster.pid(*leader)?, "STOP"),
                Fault::CutOff => {
                    cluster.cut_off(*leader, true);
                    Ok(())
                }
                Fault::HandOver => hand_over(cluster),
            },
            Victim::Postgres {
                system,
                primary,
                standbys,
            } => {
                match fault {
                    Fault::Kill => signal(primary.pid()?, "KILL")?,
                    Fault::Freeze => primary.signal_all("STOP")?,
                    Fault::CutOff => system.cut(true),
                    Fault::HandOver => primary.stop()?,
                }
                replace(standbys)
            }
        }
    }

    /// What was the leader comes back, where it may: a primary that was replaced would go on by
    /// itself, and is ended.
    ///
    /// # Errors
    /// A command fails.
    pub fn heal(&mut self, fault: Fault) -> Result<()> {
        match self {
            Victim::Quorate {
                cluster,
                leader,
                restarted,
            } => match fault {
                Fault::Kill => restarted.push(cluster.start_again(*leader)?),
                Fault::Freeze => signal(cluster.pid(*leader)?, "CONT")?,
                Fault::CutOff => cluster.cut_off(*leader, false),
                Fault::HandOver => {}
            },
            Victim::Postgres { primary, .. } => match fault {
                Fault::Freeze | Fault::CutOff => primary.signal_all("KILL")?,
                Fault::Kill | Fault::HandOver => {}
            },
        }
        Ok(())
    }
}

fn hand_over(cluster: &Cluster) -> Result<()> {
    let mut command = Command::new(cluster.program());
    command.args(["switchover", "--data"]).arg(cluster.data());
    let done = output(&mut command)?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::other(format!(
            "quorate switchover: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}

/// Promotes the standby that has received most; the other follows it, and has to answer.
fn replace(standbys: &[Postgres]) -> Result<()> {
    let received = |standby: &Postgres| -> Result<f64> {
        let lsn = "select pg_last_wal_receive_lsn() - '0/0'::pg_lsn";
        let text = standby.endpoint().query(lsn)?;
        text.parse().map_err(Error::other)
    };
    let mut first = 0;
    for place in 1..standbys.len() {
        if received(&standbys[place])? > received(&standbys[first])? {
            first = place;
        }
    }
    let promoted = standbys[first].endpoint();
    let names = "ANY 1 (n2, n3)";
    for sql in [
        &format!("alter system set synchronous_standby_names = '{names}'"),
        "select pg_reload_conf()",
        "select pg_promote()",
    ] {
        promoted.query(sql)?;
    }
    for (place, standby) in standbys.iter().enumerate() {
        if place == first {
            continue;
        }
        let conninfo = format!(
            "host=127.0.0.1 port={} user=postgres application_name=n{}",
            promoted.port,
            place + 2
        );
        for sql in [
            &format!("alter system set primary_conninfo = '{conninfo}'"),
            "alter system set primary_slot_name = ''",
            "select pg_reload_conf()",
        ] {
            standby.endpoint().query(sql)?;
        }
    }
    Ok(())
}
