//! The file of [starts](crate::starts), and what is done with what it says.
//!
//! The file has two places of one size, made when it is made, so that remembering a start takes no
//! space that a full disk would not give. What is new is written to the older of the two and synced;
//! a write that was torn leaves the other.
//!
//! | bytes of a place | what |
//! |---|---|
//! | 0–3 | CRC-32C of what follows, up to the end of what is kept |
//! | 4–11 | how often the file was written: the place with more counts |
//! | 12–15 | length of what is kept |
//! | 16– | [`Starts`] |

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use base::codec::{checksum, Reader};
use base::env::{Env, File, OpenMode, Reactor, Severity, TaskStart};
use base::sync::{Event, Mutex};
use base::{Error, NodeId, Result, SqlState};

use super::core::Core;
use super::Group;
use crate::starts::{Start, StartLine, Starts};

/// Bytes of one place: room for a whole line, and for more members than a group can have.
const PLACE_BYTES: usize = 16 << 10;

const HEADER_BYTES: usize = 16;

/// What a node keeps of starts, on disk.
pub struct StartsFile {
    file: Arc<dyn File>,
    kept: Mutex<Kept>,
    /// Who came with an older directory in this life, and has not come with another since.
    outdated: Mutex<BTreeSet<NodeId>>,
    writing: AtomicBool,
    written: Event,
}

#[derive(Default)]
struct Kept {
    starts: Starts,
    /// How often it was written.
    writes: u64,
}

/// Why nothing is taken from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwelcome {
    /// It was seen in this start, of which its directory knows nothing.
    Outdated(Start),
    /// Its start could not be noted.
    NotNoted(Error),
}

impl std::fmt::Display for Unwelcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unwelcome::Outdated(seen) => write!(
                f,
                "its directory is older than what is known of it: it was seen in start {}, of \
                 which the directory knows nothing",
                seen.number
            ),
            Unwelcome::NotNoted(error) => write!(f, "its start could not be noted: {error}"),
        }
    }
}

fn failed(what: &str, path: &str, cause: std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match cause.kind() {
        StorageFull | QuotaExceeded => Error::new(
            SqlState::DISK_FULL,
            format!("could not {what} \"{path}\": {cause}"),
        ),
        _ => Error::io(format_args!("{what} \"{path}\""), cause),
    }
}

impl StartsFile {
    /// Opens the file in a group's directory, or makes it, and draws the next start. It is durable
    /// when this returns.
    pub(super) async fn open(env: &dyn Env, directory: &str) -> Result<StartsFile> {
        let (disk, path) = (env.disk(), format!("{directory}/starts"));
        let file = disk
            .open(&path, OpenMode::Create)
            .map_err(|error| failed("make", &path, error))?;
        let bytes = file.len().map_err(|error| failed("read", &path, error))?;
        let places = 2 * PLACE_BYTES;
        if bytes != places as u64 {
            // A crash may have come before it had its length.
            file.set_len(places as u64)
                .map_err(|error| failed("make", &path, error))?;
        }
        let mut bytes = vec![0; places];
        file.read_at(&mut bytes, 0)
            .map_err(|error| failed("read", &path, error))?;
        let kept = parse(&bytes, &path)?;
        let starts_file = StartsFile {
            file,
            kept: Mutex::new(kept),
            outdated: Mutex::default(),
            writing: AtomicBool::new(false),
            written: Event::new(),
        };
        let token = env.random();
        starts_file
            .change(|starts| starts.line.extend(token))
            .await?;
        disk.sync_dir(directory)
            .map_err(|error| failed("sync", directory, error))?;
        Ok(starts_file)
    }

    fn line(&self) -> StartLine {
        self.kept.lock().starts.line.clone()
    }

    /// Changes what is kept. One at a time; known to others once it is durable.
    async fn change(&self, change: impl FnOnce(&mut Starts)) -> Result<()> {
        let flag = &self.writing;
        let turn = || (!flag.swap(true, Ordering::AcqRel)).then_some(());
        self.written.until(turn).await;
        let _turn = Turn(self);
        let (mut starts, writes) = {
            let kept = self.kept.lock();
            (kept.starts.clone(), kept.writes + 1)
        };
        change(&mut starts);
        if starts == self.kept.lock().starts {
            return Ok(());
        }
        let bytes = place(&starts, writes)?;
        let offset = (writes % 2) * PLACE_BYTES as u64;
        let error = |cause| failed("write", "starts", cause);
        self.file.write_at(&bytes, offset).map_err(error)?;
        self.file.sync().await.map_err(error)?;
        *self.kept.lock() = Kept { starts, writes };
        Ok(())
    }
}

/// Who changes the file; others may when it is dropped.
struct Turn<'a>(&'a StartsFile);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::Release);
        self.0.written.notify_all();
    }
}

/// The bytes of a place.
fn place(starts: &Starts, writes: u64) -> Result<Vec<u8>> {
    let kept = starts.encode();
    if HEADER_BYTES + kept.len() > PLACE_BYTES {
        let message = format!("starts take {} bytes", kept.len());
        return Err(Error::internal(message));
    }
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&writes.to_be_bytes());
    bytes.extend_from_slice(&(kept.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&kept);
    let crc = checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_be_bytes());
    Ok(bytes)
}

/// What the file says: nothing, if it was never written.
fn parse(bytes: &[u8], path: &str) -> Result<Kept> {
    let mut newest: Option<Kept> = None;
    for place in bytes.chunks(PLACE_BYTES) {
        if let Some(kept) = parse_place(place) {
            if newest
                .as_ref()
                .is_none_or(|other| other.writes < kept.writes)
            {
                newest = Some(kept);
            }
        }
    }
    // A node that has come so far once has at least one sound place for ever.
    let was_written = bytes[PLACE_BYTES..].iter().any(|byte| *byte != 0)
        && bytes[..PLACE_BYTES].iter().any(|byte| *byte != 0);
    match newest {
        Some(kept) => Ok(kept),
        None if was_written => Err(Error::corrupted(format!("\"{path}\" is damaged"))),
        None => Ok(Kept::default()),
    }
}

fn parse_place(place: &[u8]) -> Option<Kept> {
    let mut reader = Reader::new(place);
    let crc = reader.u32().ok()?;
    let writes = reader.u64().ok()?;
    let len = reader.u32().ok()? as usize;
    let end = HEADER_BYTES.checked_add(len)?;
    let kept = place.get(HEADER_BYTES..end)?;
    if writes == 0 || checksum(&place[4..end]) != crc {
        return None;
    }
    let starts = Starts::decode(kept).ok()?;
    Some(Kept { starts, writes })
}

impl Group {
    /// The starts of this node, the present one last.
    pub fn start_line(&self) -> StartLine {
        self.starts.line()
    }

    /// The members that came with an older directory last.
    pub fn outdated(&self) -> Vec<NodeId> {
        self.starts.outdated.lock().iter().copied().collect()
    }

    /// The newest start of another node that is remembered here.
    pub fn seen_start(&self, node: NodeId) -> Option<Start> {
        self.starts.kept.lock().starts.seen.get(&node).copied()
    }

    /// Another node shows its line of starts, before anything is taken from it. What is new is
    /// durable when this returns.
    ///
    /// # Errors
    /// Why nothing may be taken from it.
    pub async fn meet(self: &Arc<Self>, from: NodeId, line: &StartLine) -> Result<(), Unwelcome> {
        let seen = self.starts.kept.lock().starts.seen.get(&from).copied();
        if let Some(seen) = seen.filter(|seen| !line.goes_on_from(*seen)) {
            self.starts.outdated.lock().insert(from);
            return Err(Unwelcome::Outdated(seen));
        }
        self.starts.outdated.lock().remove(&from);
        let Some(newest) = line.newest().filter(|newest| Some(*newest) != seen) else {
            return Ok(());
        };
        // On a thread that may wait for the disk: whoever else connects does not wait with it.
        let noted: Arc<(Mutex<Option<Result<()>>>, Event)> = Arc::default();
        let (group, done) = (self.clone(), noted.clone());
        let start: TaskStart = Box::new(move || {
            Box::pin(async move {
                let result = group.note_start(from, newest).await;
                *done.0.lock() = Some(result);
                done.1.notify_all();
            })
        });
        self.env.spawn(Reactor::Background, "note start", start);
        let result = noted.1.until(|| noted.0.lock().take()).await;
        result.map_err(|error| {
            if error.state() != SqlState::DISK_FULL {
                self.fail(&mut self.lock(), &error);
            }
            Unwelcome::NotNoted(error)
        })
    }

    /// Remembers that a node was seen in a start.
    async fn note_start(&self, from: NodeId, newest: Start) -> Result<()> {
        let directory = self.directory();
        let note = |starts: &mut Starts| {
            let is_full = starts.seen.len() >= raft::MEMBERS_MAX;
            starts.seen.retain(|node, _| match is_full {
                // Whoever is no member yet may be none at all.
                true => directory.member(*node).is_some(),
                false => !directory.was_removed(*node),
            });
            starts.seen.insert(from, newest);
        };
        self.starts.change(note).await
    }

    /// A member that stood for election with another history gets no vote, and the log says why
    /// nobody may lead.
    pub(super) fn note_suspect(&self, core: &mut Core) {
        let Some((node, lsn)) = core.consensus.take_suspect() else {
            return;
        };
        if core.suspects.insert(node) {
            let directory = self.directory();
            let name = directory.member(node).map_or("", |member| &*member.name);
            let message = format!(
                "{name} does not get a vote: its log is another history than this one's, from LSN \
                 {lsn} on or from before"
            );
            self.env.log(Severity::Warning, &message);
        }
    }

    /// Another node says that it has seen this one in a start that this directory knows nothing of.
    pub fn note_outdated(&self, by: &str, seen: Start) {
        let mine = self.start_line().newest().map_or(0, |start| start.number);
        let message = format!(
            "this directory is older than what others know of this node: {by} has seen its start \
             {}, and this is start {mine} of another line. It may lack what the node has \
             acknowledged, so it takes no part in the group; nothing in it is changed. To go on \
             with what the others have: quorate node rejoin --discard-history",
            seen.number
        );
        let error = Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        let mut core = self.lock();
        if !core.failed {
            self.fail(&mut core, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(count: u64) -> (Starts, Vec<u8>) {
        let mut starts = Starts::default();
        (0..count).for_each(|token| starts.line.extend(token));
        let bytes = place(&starts, count).unwrap();
        (starts, bytes)
    }

    #[test]
    fn a_torn_write_leaves_the_other_place() {
        let mut bytes = vec![0; 2 * PLACE_BYTES];
        assert_eq!(parse(&bytes, "starts").unwrap().writes, 0);
        for count in 1..=5 {
            let (starts, place) = kept(count);
            let at = (count % 2) as usize * PLACE_BYTES;
            let before = bytes.clone();
            bytes[at..at + place.len() / 2].copy_from_slice(&place[..place.len() / 2]);
            let torn = parse(&bytes, "starts");
            assert_eq!(torn.unwrap().writes, count - 1);
            bytes = before;
            bytes[at..at + place.len()].copy_from_slice(&place);
            assert_eq!(parse(&bytes, "starts").unwrap().starts, starts);
        }
        bytes[20] ^= 1;
        bytes[PLACE_BYTES + 20] ^= 1;
        assert!(parse(&bytes, "starts").is_err());
    }

    #[test]
    fn a_place_has_room_for_all_that_is_kept() {
        let mut starts = Starts::default();
        (0..1_000).for_each(|token| starts.line.extend(token));
        for node in 0..2 * raft::MEMBERS_MAX as u64 {
            let (number, token) = (u64::MAX, u64::MAX);
            let start = Start { number, token };
            starts.seen.insert(NodeId(u64::MAX - node), start);
        }
        assert!(place(&starts, u64::MAX).is_ok());
    }
}
