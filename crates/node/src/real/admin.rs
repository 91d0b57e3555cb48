//! The socket in a node's directory through which an operator on the same machine asks for changes
//! of the cluster. Whoever may enter the directory may ask; nobody else can.
//!
//! A request is a framed [`Administration`], the answer a framed [`Outcome`].

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::env::{Env, Severity};
use base::framed::put_framed;

use super::RealEnv;
use crate::server::Node;
use crate::wire::{Outcome, HELLO_BYTES_MAX};

const SOCKET: &str = "admin.socket";

/// Whoever connects and asks nothing for so long is let go.
const ASK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Who asks waits so long for the outcome.
const OUTCOME_WAIT_MAX: Duration = Duration::from_secs(180);

/// A path of the socket that is short enough for the system, however long the directory's is. It
/// holds as long as the directory is open.
fn short_path(dir: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))
}

/// Takes requests until the process ends, each on a thread of its own: they are rare, and may take
/// long.
///
/// # Errors
/// When the socket cannot be made.
pub fn serve(env: Arc<RealEnv>, dir: &Path, node: Arc<Node>) -> io::Result<()> {
    let dir = fs::File::open(dir)?;
    let path = short_path(&dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let accept = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            let (for_log, env, node) = (env.clone(), env.clone(), node.clone());
            let answer = move || {
                if let Err(error) = answer(&env, stream, node) {
                    env.log(Severity::Warning, &format!("an operator's wish: {error}"));
                }
            };
            let thread = std::thread::Builder::new().name("admin".to_owned());
            if let Err(error) = thread.spawn(answer) {
                for_log.log(Severity::Warning, &format!("an operator's wish: {error}"));
            }
        }
    };
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(accept)?;
    Ok(())
}

fn answer(env: &RealEnv, mut stream: UnixStream, node: Arc<Node>) -> io::Result<()> {
    stream.set_read_timeout(Some(ASK_WAIT_MAX))?;
    let bytes = read_framed(&mut stream)?;
    let outcome = match Administration::decode(&bytes) {
        Ok(wish) => env.block_on(
            "administer",
            move || async move { node.administer(wish).await },
        )?,
        Err(error) => Err(error),
    };
    write_framed(&mut stream, &Outcome(outcome).encode())
}

fn read_framed(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > HELLO_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_framed(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let mut out = Vec::new();
    put_framed(&mut out, bytes);
    stream.write_all(&out)
}

/// Asks the node of a directory, which runs.
///
/// # Errors
/// When it cannot be reached or does not answer. What became of the wish is the outcome.
pub fn ask(dir: &Path, wish: &Administration) -> io::Result<Outcome> {
    let dir = fs::File::open(dir)?;
    let mut stream = UnixStream::connect(short_path(&dir))?;
    stream.set_read_timeout(Some(OUTCOME_WAIT_MAX))?;
    write_framed(&mut stream, &wish.encode())?;
    let bytes = read_framed(&mut stream)?;
    Outcome::decode(&bytes).map_err(|error| io::Error::other(error.to_string()))
}
