//! The reactors on which this process drives sessions of its own.

use std::io::Result;
use std::time::Duration;

use lab::driver::Driver;
use lab::host::{scratch_dir, ScratchDir};
use node::real::{host, RealEnv, RealOptions};

/// The reactors, as long as this value lives.
pub struct Client {
    driver: Driver,
    /// Nothing is written there; removed at the end.
    #[allow(dead_code)]
    dir: ScratchDir,
}

impl Client {
    /// Starts so many reactors for sessions.
    pub fn start(reactors: usize) -> Result<Client> {
        host::raise_file_limit();
        let dir = scratch_dir("quorate-lab-client")?;
        let env = RealEnv::start(&RealOptions {
            name: "lab".to_owned(),
            data_dir: dir.path().to_owned(),
            session_reactors: reactors.max(1),
            spin: Duration::ZERO,
            routes: Vec::new(),
            reaches_beyond: false,
        })?;
        Ok(Client {
            driver: Driver::new(env),
            dir,
        })
    }

    /// What drives sessions on them.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }
}
