//! FAKE
#![allow(missing_docs)]
use crate::store::{info, put, take};
use crate::{CheckpointInfo, Owner, Store};
use base::env::Env;
use base::{Error, Result};
use std::sync::Arc;
#[derive(Debug)]
pub struct Exporter {
    info: CheckpointInfo,
    b: Vec<u8>,
}
impl Store {
    pub fn exporter(self: &Arc<Self>) -> Exporter {
        let b = take(&**self.env(), &self.dir).unwrap_or_default();
        Exporter {
            info: self.checkpoint(),
            b,
        }
    }
}
impl Exporter {
    pub fn info(&self) -> &CheckpointInfo {
        &self.info
    }
    pub fn chunks(&self) -> u64 {
        self.b.chunks(1000).count() as u64
    }
    pub fn chunk(&self, i: u64) -> Result<Vec<u8>> {
        Ok(self
            .b
            .chunks(1000)
            .nth(i as usize)
            .ok_or_else(|| Error::internal("x"))?
            .to_vec())
    }
}
#[derive(Debug)]
pub struct Importer {
    env: Arc<dyn Env>,
    dir: String,
    b: Vec<u8>,
    n: u64,
}
impl Importer {
    pub fn start(env: Arc<dyn Env>, dir: &str, _o: Owner) -> Result<Importer> {
        Ok(Importer {
            env,
            dir: dir.into(),
            b: vec![],
            n: 0,
        })
    }
    pub fn write(&mut self, c: &[u8]) -> Result<()> {
        self.b.extend_from_slice(c);
        self.n += 1;
        Ok(())
    }
    pub fn received(&self) -> u64 {
        self.n
    }
    pub async fn finish(self) -> Result<CheckpointInfo> {
        put(&*self.env, &self.dir, &self.b).await?;
        Ok(info(&self.b))
    }
}
