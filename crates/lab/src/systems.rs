//! Four systems side by side: PostgreSQL alone and with two standbys of which one must answer, and
//! Quorate with one node and with three.
//!
//! What protects a commit is the same within each pair: one disk, or two of three. Another build of
//! Quorate may stand in PostgreSQL's place, to see what a change is worth.

use std::io::Result;
use std::path::Path;

use crate::host::{processor_micros, Endpoint};
use crate::postgres::{Postgres, QuorumOfPostgres};
use crate::quorate::Cluster;

/// Lines of postgresql.conf: memory and log enough that no checkpoint falls into every run.
const POSTGRES_SETTINGS: [&str; 2] = ["shared_buffers = '512MB'", "max_wal_size = '4GB'"];

/// The four, in the order of their columns: each pair is one comparison.
#[derive(Debug)]
pub struct Systems {
    /// First those of Quorate, which are stopped first.
    systems: [System; 4],
}

/// One system under measurement.
#[derive(Debug)]
pub struct System {
    name: String,
    topology: Topology,
    endpoint: Endpoint,
    processes: Vec<u32>,
}

#[derive(Debug)]
enum Topology {
    Alone(#[allow(dead_code)] Postgres),
    Quorum(#[allow(dead_code)] QuorumOfPostgres),
    Quorate(#[allow(dead_code)] Cluster),
}

impl Systems {
    /// Starts all four below `dir`: `program` is the Quorate that is measured, `beside` one that
    /// takes PostgreSQL's place.
    ///
    /// # Errors
    /// A system does not start.
    pub fn start(program: &Path, beside: Option<&Path>, dir: &Path) -> Result<Systems> {
        let [alone, quorum] = match beside {
            None => [
                System::alone(&dir.join("alone"))?,
                System::quorum(&dir.join("quorum"))?,
            ],
            Some(other) => [
                System::quorate("other, one node", other, &dir.join("o1"), 1)?,
                System::quorate("other, three nodes", other, &dir.join("o3"), 3)?,
            ],
        };
        let one = System::quorate("Quorate, one node", program, &dir.join("q1"), 1)?;
        let three = System::quorate("Quorate, three nodes", program, &dir.join("q3"), 3)?;
        Ok(Systems {
            systems: [alone, one, quorum, three],
        })
    }

    /// The four, in order.
    pub fn all(&self) -> &[System; 4] {
        &self.systems
    }
}

impl System {
    fn alone(dir: &Path) -> Result<System> {
        let postgres = Postgres::primary(dir, &POSTGRES_SETTINGS)?;
        Ok(System {
            name: "PostgreSQL alone".to_owned(),
            endpoint: postgres.endpoint().clone(),
            processes: vec![postgres.pid()?],
            topology: Topology::Alone(postgres),
        })
    }

    fn quorum(dir: &Path) -> Result<System> {
        crate::host::create_dir(dir)?;
        let quorum = QuorumOfPostgres::start(dir, &POSTGRES_SETTINGS)?;
        let [second, third] = &quorum.standbys;
        Ok(System {
            name: "PostgreSQL, ANY 1 of 2".to_owned(),
            endpoint: quorum.primary.endpoint().clone(),
            processes: vec![quorum.primary.pid()?, second.pid()?, third.pid()?],
            topology: Topology::Quorum(quorum),
        })
    }

    /// A cluster of Quorate, reached at the node that leads, so that no session is passed on while
    /// it is measured.
    fn quorate(name: &str, program: &Path, dir: &Path, nodes: usize) -> Result<System> {
        let cluster = Cluster::start(program, dir, nodes, &[])?;
        Ok(System {
            name: name.to_owned(),
            endpoint: cluster.nodes()[cluster.leader()?].clone(),
            processes: cluster
                .status()?
                .into_iter()
                .filter_map(|node| node.pid)
                .collect(),
            topology: Topology::Quorate(cluster),
        })
    }

    /// What tables call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its clients go.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether it is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        !matches!(self.topology, Topology::Quorate(_))
    }

    /// Microseconds of processor time that all its server processes have used so far.
    ///
    /// # Errors
    /// One of them is gone.
    pub fn processor_micros(&self) -> Result<f64> {
        processor_micros(&self.processes)
    }
}
