//! A published checkpoint as a stream of chunks, for a new replica.

use std::sync::Arc;

use base::env::Env;
use base::{Error, Result};

use crate::{CheckpointInfo, Owner, Store};

/// Reads a published checkpoint; while it lives, the checkpoint's pages stay where they are.
#[derive(Debug)]
pub struct Exporter {
    info: CheckpointInfo,
}

impl Store {
    /// Pins the last published checkpoint and reads it.
    pub fn exporter(self: &Arc<Self>) -> Exporter {
        Exporter {
            info: self.checkpoint(),
        }
    }
}

impl Exporter {
    /// Which checkpoint this is.
    pub fn info(&self) -> &CheckpointInfo {
        &self.info
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> u64 {
        0
    }

    /// The chunk of that number, from 0. Each is checked on its own by the importer.
    pub fn chunk(&self, _index: u64) -> Result<Vec<u8>> {
        Err(Error::unsupported("export"))
    }
}

/// Writes an exported checkpoint into a directory, beside the store that may be there.
///
/// Nothing of an import that was not finished is ever seen.
#[derive(Debug)]
pub struct Importer {
    _env: Arc<dyn Env>,
}

impl Importer {
    /// Begins an import; one begun earlier in the same directory is forgotten.
    pub fn start(env: Arc<dyn Env>, _dir: &str, _owner: Owner) -> Result<Importer> {
        drop(env);
        Err(Error::unsupported("import"))
    }

    /// Takes the next chunk; they come in order.
    pub fn write(&mut self, _chunk: &[u8]) -> Result<()> {
        Err(Error::unsupported("import"))
    }

    /// Chunks taken so far.
    pub fn received(&self) -> u64 {
        0
    }

    /// Puts the imported checkpoint in the place of the store in the directory, durably; the next
    /// [`Store::open`] finds it. The old store, if open, must not be used any more.
    pub async fn finish(self) -> Result<CheckpointInfo> {
        Err(Error::unsupported("import"))
    }
}
