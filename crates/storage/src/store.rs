//! FAKE
#![allow(missing_docs)]
use crate::{CheckpointInfo, Owner};
use base::codec::{put_bytes, put_varint, Reader};
use base::engine::{Direction, RowBatch};
use base::env::{Env, OpenMode};
use base::sync::Mutex;
use base::{Error, KeyRange, Lsn, Result, TreeId};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    pub owner: Owner,
}
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub tree: TreeId,
    pub key: &'a [u8],
    pub row: Option<&'a [u8]>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    pub exists: bool,
    pub version: Lsn,
    pub owes: Lsn,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    pub rest: Option<KeyRange>,
    pub owes: Lsn,
}
type Versions = Vec<(Lsn, Option<Vec<u8>>)>;
#[derive(Debug, Default)]
struct S {
    rows: BTreeMap<(TreeId, Vec<u8>), Versions>,
    applied: Lsn,
    ck: Option<(Lsn, Vec<u8>, Vec<u8>)>,
    written: bool,
    published: (Lsn, Vec<u8>),
}
#[derive(Debug)]
pub struct Store {
    env: Arc<dyn Env>,
    pub(crate) dir: String,
    s: Mutex<S>,
}
pub(crate) fn path(dir: &str) -> String {
    format!("{dir}/ckpt")
}
pub(crate) async fn put(env: &dyn Env, dir: &str, bytes: &[u8]) -> Result<()> {
    let disk = env.disk();
    let tmp = format!("{dir}/tmp");
    let f = disk
        .open(&tmp, OpenMode::Create)
        .map_err(|e| Error::io("open", e))?;
    f.set_len(0).unwrap();
    f.write_at(bytes, 0).unwrap();
    f.sync().await.map_err(|e| Error::io("sync", e))?;
    disk.rename(&tmp, &path(dir))
        .map_err(|e| Error::io("rename", e))?;
    Ok(())
}
pub(crate) fn take(env: &dyn Env, dir: &str) -> Option<Vec<u8>> {
    let f = env.disk().open(&path(dir), OpenMode::Existing).ok()?;
    let mut b = vec![0; f.len().unwrap() as usize];
    f.read_at(&mut b, 0).unwrap();
    Some(b)
}
pub(crate) fn info(bytes: &[u8]) -> CheckpointInfo {
    let mut r = Reader::new(bytes);
    CheckpointInfo {
        lsn: Lsn(r.varint().unwrap()),
        meta: r.bytes().unwrap().to_vec(),
    }
}
impl Store {
    pub async fn open(env: Arc<dyn Env>, dir: &str, _o: StoreOptions) -> Result<Arc<Store>> {
        let mut s = S::default();
        if let Some(b) = take(&*env, dir) {
            let i = info(&b);
            s.published = (i.lsn, i.meta);
            s.applied = i.lsn;
            let mut r = Reader::new(&b);
            r.varint()?;
            r.bytes()?;
            while !r.is_empty() {
                let t = TreeId(r.varint()?);
                let k = r.bytes()?.to_vec();
                let v = r.bytes()?.to_vec();
                s.rows.insert((t, k), vec![(s.applied, Some(v))]);
            }
        }
        Ok(Arc::new(Store {
            env,
            dir: dir.into(),
            s: Mutex::new(s),
        }))
    }
    pub(crate) fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }
    pub fn checkpoint(&self) -> CheckpointInfo {
        let s = self.s.lock();
        CheckpointInfo {
            lsn: s.published.0,
            meta: s.published.1.clone(),
        }
    }
    pub fn applied(&self) -> Lsn {
        self.s.lock().applied
    }
    pub fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read> {
        row.clear();
        let s = self.s.lock();
        let v = s
            .rows
            .get(&(tree, key.to_vec()))
            .and_then(|v| v.iter().rev().find(|v| v.0 <= at));
        Ok(match v {
            Some((l, Some(r))) => {
                row.extend_from_slice(r);
                Read {
                    exists: true,
                    version: *l,
                    owes: *l,
                }
            }
            Some((l, None)) => Read {
                exists: false,
                version: *l,
                owes: s.applied.min(at),
            },
            None => Read {
                exists: false,
                version: Lsn::ZERO,
                owes: s.applied.min(at),
            },
        })
    }
    pub fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        _d: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        batch.clear();
        let s = self.s.lock();
        for ((t, k), v) in s.rows.range((tree, range.start.clone())..) {
            if *t != tree || !range.contains(k) {
                break;
            }
            if let Some((_, Some(r))) = v.iter().rev().find(|v| v.0 <= at) {
                if batch.len() == limit {
                    return Ok(Scanned {
                        rest: Some(KeyRange {
                            start: k.clone(),
                            end: range.end.clone(),
                        }),
                        owes: s.applied,
                    });
                }
                batch.push(k, r);
            }
        }
        Ok(Scanned {
            rest: None,
            owes: s.applied.min(at),
        })
    }
    pub fn apply(&self, lsn: Lsn, changes: &[Change<'_>]) -> Result<()> {
        let mut s = self.s.lock();
        assert_eq!(lsn, s.applied.next());
        for c in changes {
            s.rows
                .entry((c.tree, c.key.to_vec()))
                .or_default()
                .push((lsn, c.row.map(<[u8]>::to_vec)));
        }
        s.applied = lsn;
        Ok(())
    }
    pub fn create_tree(&self, _lsn: Lsn, _tree: TreeId) -> Result<()> {
        Ok(())
    }
    pub fn drop_tree(&self, lsn: Lsn, tree: TreeId) -> Result<()> {
        let mut s = self.s.lock();
        for ((t, _), v) in s.rows.iter_mut() {
            if *t == tree {
                v.push((lsn, None));
            }
        }
        Ok(())
    }
    pub fn advance(&self, lsn: Lsn) -> Result<()> {
        self.apply(lsn, &[])
    }
    pub fn take_back(&self, to: Lsn) -> Result<()> {
        let mut s = self.s.lock();
        for v in s.rows.values_mut() {
            v.retain(|v| v.0 <= to);
        }
        s.rows.retain(|_, v| !v.is_empty());
        if s.ck.as_ref().is_some_and(|c| c.0 > to) {
            s.ck = None;
            s.written = false;
        }
        s.applied = to;
        Ok(())
    }
    pub fn release(&self, _h: Lsn, _l: usize) -> Result<bool> {
        Ok(true)
    }
    pub fn start_checkpoint(&self, meta: Vec<u8>) -> Result<Lsn> {
        let mut s = self.s.lock();
        let at = s.applied;
        let mut b = Vec::new();
        put_varint(&mut b, at.0);
        put_bytes(&mut b, &meta);
        for ((t, k), v) in &s.rows {
            if let Some((_, Some(r))) = v.last() {
                put_varint(&mut b, t.0);
                put_bytes(&mut b, k);
                put_bytes(&mut b, r);
            }
        }
        s.ck = Some((at, meta, b));
        s.written = false;
        Ok(at)
    }
    pub async fn write_checkpoint(&self) -> Result<bool> {
        let mut s = self.s.lock();
        s.written = true;
        Ok(s.ck.is_some())
    }
    pub async fn publish_checkpoint(&self) -> Result<bool> {
        let Some((lsn, meta, b)) = self.s.lock().ck.take() else {
            return Ok(false);
        };
        put(&*self.env, &self.dir, &b).await?;
        self.s.lock().published = (lsn, meta);
        Ok(true)
    }
    pub fn discard_checkpoint(&self) {
        self.s.lock().ck = None;
    }
    pub fn pending_checkpoint(&self) -> Option<(Lsn, bool)> {
        let s = self.s.lock();
        s.ck.as_ref().map(|c| (c.0, s.written))
    }
    pub fn dirty_pages(&self) -> usize {
        0
    }
}
