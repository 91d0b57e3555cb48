//! Segment files: names, headers, and making new ones.
//!
//! A segment is `SEQUENCE.seg`, its full length from the start and filled with zeros, so that
//! syncing it never has to change the file system's own records. Sequence numbers only grow.
//!
//! | bytes of the header | what |
//! |---|---|
//! | 0–3 | CRC-32C of the rest |
//! | 4–15 | magic |
//! | 16–19 | format version |
//! | 20–23 | group |
//! | 24–31 | cluster |
//! | 32–39 | sequence |
//! | 40–47 | bytes after the header that were durable before the segment got its name |
//! | 48–55 | bytes of the whole file, if all of them were durable before the segment got its name |
//! | 56–63 | zero |
//!
//! A file that is shorter than its header says has lost something, even where nothing is missing
//! but zeros: whatever cut it may have cut elsewhere too. A segment that was made in a hurry says
//! nothing, because a crash may leave it of any length; nor does one of an earlier build.

use std::sync::Arc;
use std::time::Duration;

use base::codec::checksum;
use base::env::{Disk, Env, File, OpenMode};
use base::{Error, GroupId, Result};

use super::frame::{le_u32, le_u64};
use crate::owner::{space_error, Owner};

/// Bytes of the header; frames begin here.
pub(crate) const SEGMENT_HEADER: u64 = 64;

const MAGIC: &[u8; 12] = b"quorate log\0";
const VERSION: u32 = 2;

/// New segments are filled with zeros in pieces of this size.
const ZERO_BYTES: usize = 1 << 20;

/// The pause after each piece, where there is no hurry: it must not hold up the log's own syncs.
const ZERO_PAUSE: Duration = Duration::from_millis(2);

/// One segment file.
pub(crate) struct Segment {
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
    pub(crate) file: Arc<dyn File>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({})", self.sequence)
    }
}

/// What the first bytes of a segment say.
pub(crate) enum Header {
    /// It is ours.
    Sound {
        /// So many bytes after it were durable before the segment got its name.
        durable: u64,
        /// The file had so many bytes by then; 0 if nobody knows.
        made: u64,
    },
    /// It was never wholly written, or is damaged.
    Unsound,
}

/// The name of a segment.
pub(crate) fn name(dir: &str, sequence: u64) -> String {
    format!("{dir}/{sequence:016}.seg")
}

/// The name under which a segment is made before it counts.
pub(crate) fn temporary_name(dir: &str, sequence: u64) -> String {
    format!("{dir}/{sequence:016}.tmp")
}

/// The sequence numbers of the segments in a directory, ascending, and the names of files that
/// never became segments.
pub(crate) fn list(disk: &dyn Disk, dir: &str) -> Result<(Vec<u64>, Vec<String>)> {
    let names = disk
        .list(dir)
        .map_err(|e| Error::io(format_args!("list the log directory \"{dir}\""), e))?;
    let mut sequences = Vec::new();
    let mut unfinished = Vec::new();
    for name in names {
        if let Some(number) = name.strip_suffix(".seg") {
            let sequence = number
                .parse()
                .map_err(|_| Error::corrupted(format!("log segment \"{dir}/{name}\"")))?;
            sequences.push(sequence);
        } else if name.ends_with(".tmp") {
            unfinished.push(format!("{dir}/{name}"));
        }
    }
    sequences.sort_unstable();
    Ok((sequences, unfinished))
}

/// The bytes of a header; see [`Header`].
pub(crate) fn header(
    owner: Owner,
    sequence: u64,
    durable: u64,
    made: u64,
) -> [u8; SEGMENT_HEADER as usize] {
    let mut bytes = [0; SEGMENT_HEADER as usize];
    bytes[4..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
    bytes[20..24].copy_from_slice(&owner.group.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&owner.cluster.to_le_bytes());
    bytes[32..40].copy_from_slice(&sequence.to_le_bytes());
    bytes[40..48].copy_from_slice(&durable.to_le_bytes());
    bytes[48..56].copy_from_slice(&made.to_le_bytes());
    let crc = checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Checks a header.
///
/// # Errors
/// 55000 when the segment is sound and of another version, cluster or group.
pub(crate) fn check_header(bytes: &[u8], owner: Owner, sequence: u64) -> Result<Header> {
    if bytes.len() < SEGMENT_HEADER as usize {
        return Ok(Header::Unsound);
    }
    let bytes = &bytes[..SEGMENT_HEADER as usize];
    if checksum(&bytes[4..]) != le_u32(bytes) || &bytes[4..16] != MAGIC {
        return Ok(Header::Unsound);
    }
    let found = Owner {
        cluster: le_u64(&bytes[24..32]),
        group: GroupId(le_u32(&bytes[20..24])),
    };
    crate::owner::check("log", le_u32(&bytes[16..20]), VERSION, found, owner)?;
    if le_u64(&bytes[32..40]) != sequence {
        return Err(Error::corrupted(format!(
            "log segment {sequence} says that it is segment {}",
            le_u64(&bytes[32..40])
        )));
    }
    Ok(Header::Sound {
        durable: le_u64(&bytes[40..48]),
        made: le_u64(&bytes[48..56]),
    })
}

/// Makes a segment of which nothing is durable yet, under its own name.
pub(crate) fn create(
    disk: &dyn Disk,
    dir: &str,
    owner: Owner,
    sequence: u64,
    bytes: u64,
) -> Result<Segment> {
    let path = name(dir, sequence);
    let file = disk
        .open(&path, OpenMode::CreateNew)
        .map_err(|e| space_error(&path, e))?;
    if let Err(error) = file.set_len(bytes) {
        let _ = disk.remove(&path);
        return Err(space_error(&path, error));
    }
    file.write_at(&header(owner, sequence, 0, 0), 0)
        .map_err(|e| Error::io(format_args!("write \"{path}\""), e))?;
    Ok(Segment {
        sequence,
        bytes,
        file,
    })
}

/// Makes a segment that is durable, with `content` after the header and zeros after that; in no
/// hurry if it is `paced`.
pub(crate) async fn create_durable(
    disk: &dyn Disk,
    dir: &str,
    owner: Owner,
    sequence: u64,
    bytes: u64,
    content: &[u8],
    paced: Option<&dyn Env>,
) -> Result<Segment> {
    let temporary = temporary_name(dir, sequence);
    let _ = disk.remove(&temporary);
    let made = fill(disk, &temporary, (owner, sequence), bytes, content, paced).await;
    let file = match made {
        Ok(file) => file,
        Err(error) => {
            // What of it was made takes space that others need.
            let _ = disk.remove(&temporary);
            return Err(error);
        }
    };
    let path = name(dir, sequence);
    let failed = |e| Error::io(format_args!("write \"{temporary}\""), e);
    disk.rename(&temporary, &path).map_err(failed)?;
    disk.sync_dir(dir).map_err(failed)?;
    Ok(Segment {
        sequence,
        bytes,
        file,
    })
}

/// Makes a durable file with a header, `content`, and zeros.
async fn fill(
    disk: &dyn Disk,
    temporary: &str,
    (owner, sequence): (Owner, u64),
    bytes: u64,
    content: &[u8],
    paced: Option<&dyn Env>,
) -> Result<Arc<dyn File>> {
    let file = disk
        .open(temporary, OpenMode::CreateNew)
        .map_err(|e| space_error(temporary, e))?;
    let failed = |e| Error::io(format_args!("write \"{temporary}\""), e);
    file.set_len(bytes).map_err(|e| space_error(temporary, e))?;
    let mut head = header(owner, sequence, content.len() as u64, bytes).to_vec();
    head.extend_from_slice(content);
    file.write_at(&head, 0).map_err(failed)?;
    let zeros = vec![0; ZERO_BYTES];
    let mut offset = head.len() as u64;
    while offset < bytes {
        let len = (bytes - offset).min(ZERO_BYTES as u64);
        file.write_at(&zeros[..len as usize], offset)
            .map_err(|e| space_error(temporary, e))?;
        file.sync().await.map_err(failed)?;
        offset += len;
        if let Some(env) = paced {
            base::env::sleep(env, ZERO_PAUSE).await;
        }
    }
    file.sync().await.map_err(failed)?;
    Ok(file)
}
