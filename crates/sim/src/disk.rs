//! A host's disk: what is written is readable at once, and durable only after a sync.
//!
//! At a crash, each write since the last sync is kept, lost, or torn at sectors, each by chance and
//! independently of the others: the kernel writes pages back in any order. Names (files made,
//! renamed, removed) survive in the order in which they were given, up to some point.
//!
//! A sync that was begun and has not ended when the host dies counts as not made.
//!
//! A disk may have little room left, or none: then new files, longer ones, and writes behind a
//! file's end fail once it is used up. What is removed or cut off makes room again.
//!
//! A disk may fail ([`Failing`]): some reads, writes or syncs end with an I/O error, and what a sync
//! that failed was to make durable never will be, though it can be read until the host dies. And a bit
//! may turn of what has been at rest for long.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use base::env::{BoxFuture, Disk, File, OpenMode};

use crate::env::Sleep;
use crate::world::{Chance, HostId, Incarnation, Shared, State};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

type Inode = u64;

/// A log that is cut loses less than so many bytes that were written …
const CUT_BYTES_MAX: u64 = 400;

/// … and keeps more than so many.
const CUT_KEPT_MIN: usize = 512;

/// So many places are looked at for a bit that may turn.
const ROT_TRIES: usize = 20_000;

/// A change of a file's content that a crash may undo.
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, with their numbers.
    pending: Vec<(u64, Change)>,
}

/// A change of names that a crash may undo.
enum Naming {
    Link(String, Inode),
    Unlink(String),
    Rename(String, String),
}

/// What of a disk fails, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failing {
    pub reads: bool,
    pub writes: bool,
    pub syncs: bool,
    /// One in so many of them.
    pub one_in: u64,
}

/// What is asked of a disk that may fail.
#[derive(Clone, Copy)]
enum Asked {
    Read,
    Write,
    Sync,
}

/// All files of a host.
#[derive(Default)]
pub(crate) struct DiskState {
    files: BTreeMap<Inode, Content>,
    names: BTreeMap<String, Inode>,
    durable_names: BTreeMap<String, Inode>,
    namings: Vec<Naming>,
    dirs: BTreeSet<String>,
    next: u64,
    /// Bytes that files can still grow by; no bound if there is none.
    room: Option<u64>,
    failing: Option<Failing>,
}

/// What lies on a disk at one moment.
#[derive(Clone)]
pub(crate) struct DiskCopy {
    files: BTreeMap<String, Vec<u8>>,
    dirs: BTreeSet<String>,
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, Inode>) {
        match self {
            Naming::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Naming::Unlink(path) => {
                names.remove(path);
            }
            Naming::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }

    fn is_in(&self, dir: &str) -> bool {
        match self {
            Naming::Link(path, _) | Naming::Unlink(path) | Naming::Rename(_, path) => {
                parent(path) == dir
            }
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn normal(path: &str) -> String {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect::<Vec<_>>()
        .join("/")
}

fn overwrite(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl Content {
    fn change(&mut self, number: u64, change: Change) {
        apply(&mut self.current, &change);
        self.pending.push((number, change));
    }

    /// Makes the changes below `number` durable.
    fn sync(&mut self, number: u64) {
        let later = self
            .pending
            .iter()
            .position(|(n, _)| *n >= number)
            .unwrap_or(self.pending.len());
        for (_, change) in self.pending.drain(..later) {
            apply(&mut self.durable, &change);
        }
    }

    /// Forgets that the changes below `number` are to become durable.
    fn fail_sync(&mut self, number: u64) {
        self.pending.retain(|(n, _)| *n >= number);
    }

    fn crash(&mut self, chance: &mut Chance) {
        for (_, change) in std::mem::take(&mut self.pending) {
            match (chance.below(3), &change) {
                (0, _) => {}
                (1, Change::Write { offset, bytes }) => {
                    tear(&mut self.durable, *offset, bytes, chance)
                }
                _ => apply(&mut self.durable, &change),
            }
        }
        self.current.clone_from(&self.durable);
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => overwrite(content, *offset, bytes),
        Change::SetLen(len) => content.resize(*len, 0),
    }
}

/// Keeps some sectors of a write.
fn tear(content: &mut Vec<u8>, offset: usize, bytes: &[u8], chance: &mut Chance) {
    let mut start = 0;
    while start < bytes.len() {
        let sector_end = (offset + start) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - offset;
        let end = sector_end.min(bytes.len());
        if chance.one_in(2) {
            overwrite(content, offset + start, &bytes[start..end]);
        }
        start = end;
    }
}

impl DiskState {
    /// What is durable, as somebody copies it who has stopped the host.
    pub fn copy(&self) -> DiskCopy {
        let files = self.durable_names.iter().filter_map(|(name, inode)| {
            let content = self.files.get(inode)?;
            Some((name.clone(), content.durable.clone()))
        });
        DiskCopy {
            files: files.collect(),
            dirs: self.dirs.clone(),
        }
    }

    /// Puts a copy in the place of everything.
    pub fn restore(&mut self, copy: &DiskCopy) {
        self.files.clear();
        self.names.clear();
        self.namings.clear();
        for (name, content) in &copy.files {
            let inode = self.number();
            let content = Content {
                current: content.clone(),
                durable: content.clone(),
                pending: Vec::new(),
            };
            self.files.insert(inode, content);
            self.names.insert(name.clone(), inode);
        }
        self.durable_names.clone_from(&self.names);
        self.dirs.clone_from(&copy.dirs);
    }

    pub fn crash(&mut self, chance: &mut Chance) {
        for content in self.files.values_mut() {
            content.crash(chance);
        }
        let kept = chance.below(self.namings.len() as u64 + 1) as usize;
        for naming in self.namings.drain(..).take(kept) {
            naming.apply(&mut self.durable_names);
        }
        self.names.clone_from(&self.durable_names);
        let named: BTreeSet<Inode> = self.names.values().copied().collect();
        self.files.retain(|inode, _| named.contains(inode));
    }

    /// What fails from now on.
    pub fn set_failing(&mut self, failing: Option<Failing>) {
        self.failing = failing;
    }

    /// Whether anything does.
    pub fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Cuts off the end of the newest segment of a log, and some of what is written there. False if
    /// there is none with anything in it.
    pub fn cut_log(&mut self, chance: &mut Chance) -> bool {
        for (_, inode) in self
            .names
            .iter()
            .rev()
            .filter(|(name, _)| name.ends_with(".seg"))
        {
            let Some(content) = self.files.get_mut(inode) else {
                continue;
            };
            let end = content.current.iter().rposition(|byte| *byte != 0);
            let cut = chance.below(CUT_BYTES_MAX) as usize;
            let kept = end.and_then(|end| end.checked_sub(cut));
            if let Some(kept) = kept.filter(|kept| *kept > CUT_KEPT_MIN) {
                content.durable.truncate(kept);
                content.current.truncate(kept);
                return true;
            }
        }
        false
    }

    /// Turns a bit that is as it was in an older copy, and not of a block of zeros. False if there is
    /// none.
    pub fn rot(&mut self, old: &DiskCopy, chance: &mut Chance) -> bool {
        let names: Vec<(&String, &Vec<u8>)> = old.files.iter().collect();
        for _ in 0..ROT_TRIES {
            let pick = chance.below(names.len().max(1) as u64) as usize;
            let Some((name, old)) = names.get(pick) else {
                return false;
            };
            let inode = self.names.get(*name);
            let Some(content) = inode.and_then(|inode| self.files.get_mut(inode)) else {
                continue;
            };
            let both = content.durable.len().min(content.current.len());
            let at = chance.below(both.min(old.len()).max(1) as u64) as usize;
            let is_old = |bytes: &[u8]| bytes.get(at) == old.get(at);
            let is_something = old.get(at).is_some_and(|byte| *byte != 0);
            if is_something && is_old(&content.durable) && is_old(&content.current) {
                let bit = 1 << chance.below(8);
                content.durable[at] ^= bit;
                content.current[at] ^= bit;
                return true;
            }
        }
        false
    }

    /// Bytes that files can grow by from now on; none is no bound.
    pub fn set_room(&mut self, room: Option<u64>) {
        self.room = room;
    }

    fn name(&mut self, naming: Naming) {
        let gone = match &naming {
            Naming::Link(..) => None,
            Naming::Unlink(path) | Naming::Rename(_, path) => self.names.get(path),
        };
        let content = gone.and_then(|inode| self.files.get(inode));
        let freed = content.map_or(0, |content| content.current.len());
        self.free(freed);
        naming.apply(&mut self.names);
        self.namings.push(naming);
    }

    fn free(&mut self, bytes: usize) {
        if let Some(room) = &mut self.room {
            *room += bytes as u64;
        }
    }

    /// Changes a file; what does not fit the disk is cut off, and that is an error.
    fn change(&mut self, inode: Inode, change: Change) -> io::Result<()> {
        let number = self.number();
        let content = self.files.entry(inode).or_default();
        let len = content.current.len();
        let end = match &change {
            Change::Write { offset, bytes } => offset + bytes.len(),
            Change::SetLen(end) => *end,
        };
        let room = self.room.map_or(usize::MAX, |room| room as usize);
        let missing = end.saturating_sub(len).saturating_sub(room);
        let change = match change {
            change if missing == 0 => Some(change),
            Change::Write { offset, mut bytes } => {
                bytes.truncate(bytes.len().saturating_sub(missing));
                let rest = Change::Write { offset, bytes };
                (offset < end - missing).then_some(rest)
            }
            Change::SetLen(_) => None,
        };
        if let Some(change) = change {
            content.change(number, change);
        }
        let now = content.current.len();
        self.free(len.saturating_sub(now));
        if let Some(room) = &mut self.room {
            *room -= now.saturating_sub(len) as u64;
        }
        match missing {
            0 => Ok(()),
            _ => Err(ErrorKind::StorageFull.into()),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn inode(&self, path: &str) -> io::Result<Inode> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| ErrorKind::NotFound.into())
    }
}

/// One life's access to its host's disk.
pub(crate) struct SimDisk {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
}

fn with_disk<T>(
    shared: &Shared,
    host: HostId,
    incarnation: Incarnation,
    f: impl FnOnce(&mut DiskState) -> io::Result<T>,
) -> io::Result<T> {
    let mut state = shared.state();
    if !state.lives(host, incarnation) {
        return Err(ErrorKind::Interrupted.into());
    }
    f(&mut state.hosts[host.0].disk)
}

/// Whether what is asked of a host's disk fails.
fn fails(state: &mut State, host: HostId, asked: Asked) -> bool {
    let Some(failing) = state.hosts[host.0].disk.failing else {
        return false;
    };
    let may = match asked {
        Asked::Read => failing.reads,
        Asked::Write => failing.writes,
        Asked::Sync => failing.syncs,
    };
    may && state.chance.one_in(failing.one_in)
}

fn io_error() -> io::Error {
    io::Error::other("input/output error")
}

impl SimDisk {
    pub fn new(shared: Arc<Shared>, host: HostId, incarnation: Incarnation) -> SimDisk {
        SimDisk {
            shared,
            host,
            incarnation,
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut DiskState) -> io::Result<T>) -> io::Result<T> {
        with_disk(&self.shared, self.host, self.incarnation, f)
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let inode = self.with(|disk| {
            let found = disk.names.get(&path).copied();
            match (found, mode) {
                (Some(_), OpenMode::CreateNew) => Err(ErrorKind::AlreadyExists.into()),
                (Some(inode), _) => Ok(inode),
                (None, OpenMode::Existing) => Err(ErrorKind::NotFound.into()),
                (None, _) => {
                    let dir = parent(&path);
                    if !dir.is_empty() && !disk.dirs.contains(dir) {
                        return Err(ErrorKind::NotFound.into());
                    }
                    if disk.room == Some(0) {
                        return Err(ErrorKind::StorageFull.into());
                    }
                    let inode = disk.number();
                    disk.files.insert(inode, Content::default());
                    disk.name(Naming::Link(path, inode));
                    Ok(inode)
                }
            }
        })?;
        Ok(Arc::new(SimFile {
            shared: self.shared.clone(),
            host: self.host,
            incarnation: self.incarnation,
            inode,
        }))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let dir = normal(path);
        self.with(|disk| {
            if !dir.is_empty() && !disk.dirs.contains(&dir) {
                return Err(ErrorKind::NotFound.into());
            }
            let names: BTreeSet<String> = disk
                .names
                .keys()
                .chain(&disk.dirs)
                .filter(|name| parent(name) == dir && !name.is_empty())
                .map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
                .collect();
            Ok(names.into_iter().collect())
        })
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut dir = normal(path);
        self.with(|disk| {
            while !dir.is_empty() {
                disk.dirs.insert(dir.clone());
                dir = parent(&dir).to_owned();
            }
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = normal(path);
        self.with(|disk| {
            disk.inode(&path)?;
            disk.name(Naming::Unlink(path));
            Ok(())
        })
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        let dir = normal(path);
        let inside = format!("{dir}/");
        self.with(|disk| {
            let names: Vec<String> = disk
                .names
                .keys()
                .filter(|name| name.starts_with(&inside))
                .cloned()
                .collect();
            names
                .into_iter()
                .for_each(|name| disk.name(Naming::Unlink(name)));
            disk.dirs
                .retain(|name| *name != dir && !name.starts_with(&inside));
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (normal(from), normal(to));
        self.with(|disk| {
            if disk.names.contains_key(&from) {
                disk.name(Naming::Rename(from, to));
                return Ok(());
            }
            if !disk.dirs.remove(&from) {
                return Err(ErrorKind::NotFound.into());
            }
            disk.dirs.insert(to.clone());
            let inside = format!("{from}/");
            let moved: Vec<String> = disk
                .names
                .keys()
                .filter(|name| name.starts_with(&inside))
                .cloned()
                .collect();
            for name in moved {
                let target = format!("{to}/{}", &name[inside.len()..]);
                disk.name(Naming::Rename(name, target));
            }
            Ok(())
        })
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let dir = normal(path);
        self.with(|disk| {
            for naming in std::mem::take(&mut disk.namings) {
                if naming.is_in(&dir) {
                    naming.apply(&mut disk.durable_names);
                } else {
                    disk.namings.push(naming);
                }
            }
            Ok(())
        })
    }
}

struct SimFile {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
    inode: Inode,
}

impl SimFile {
    fn with<T>(&self, f: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        with_disk(&self.shared, self.host, self.incarnation, |disk| {
            f(disk.files.entry(self.inode).or_default())
        })
    }

    fn may_fail(&self, asked: Asked) -> io::Result<()> {
        match fails(&mut self.shared.state(), self.host, asked) {
            true => Err(io_error()),
            false => Ok(()),
        }
    }

    fn change(&self, change: Change) -> io::Result<()> {
        self.may_fail(Asked::Write)?;
        with_disk(&self.shared, self.host, self.incarnation, |disk| {
            disk.change(self.inode, change)
        })
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.may_fail(Asked::Read)?;
        let start = offset as usize;
        self.with(|content| {
            let bytes = content
                .current
                .get(start..start + buffer.len())
                .ok_or(ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Change::Write {
            offset: offset as usize,
            bytes: bytes.to_vec(),
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|content| Ok(content.current.len() as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(len as usize))
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let (number, nanos) = {
                let mut guard = self.shared.state();
                let state = &mut *guard;
                begin_sync(state, self.host)
            };
            Sleep::world(self.shared.clone(), self.host, nanos).await;
            let failed = self.may_fail(Asked::Sync);
            self.with(|content| match failed {
                Ok(()) => {
                    content.sync(number);
                    Ok(())
                }
                Err(error) => {
                    content.fail_sync(number);
                    Err(error)
                }
            })
        })
    }
}

/// The number below which changes become durable, and how long that takes.
fn begin_sync(state: &mut State, host: HostId) -> (u64, u64) {
    let number = state.hosts[host.0].disk.number();
    let about = state.hosts[host.0].disk_delay.as_nanos() as u64;
    (number, state.chance.between(about / 2, about * 2))
}
