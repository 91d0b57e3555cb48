//! What comes before a session: its first packet, encryption, and how one is sent away or parted with.

use std::future::poll_fn;
use std::time::Duration;

use base::env::{self, Env, Stream};
use base::error::{Error, Result};
use pg::auth::Tls;
use pg::frame::violation;
use pg::log::SessionLog;
use pg::startup::{self, Encryption, FirstPacket};

use super::CLOSE_WAIT_MAX;
use crate::secure::Secure;
use crate::wait::timeout;

/// A client that was told why its session ends closes the connection within this, if it ever does.
const READ_WAIT_MAX: Duration = Duration::from_millis(20);

/// One that does not (libpq's close when they are used next) is left after this.
const PARTING_MAX: Duration = Duration::from_millis(100);

/// What a client sent before its session began.
#[derive(Debug)]
pub struct StartupInfo {
    /// Its first packet: a startup message or a cancel request, never a request for encryption.
    pub packet: FirstPacket,
    /// The packet's bytes, to pass the session on to another node.
    pub bytes: Vec<u8>,
    /// What came after it.
    pub following: Vec<u8>,
    /// What TLS tells of the connection, where it is encrypted.
    pub tls: Option<Tls>,
}

/// A client at the beginning: its stream, and what TLS tells of it once it is encrypted.
pub struct Arriving {
    /// The stream; none while it shakes hands, and if that fails.
    stream: Option<Box<dyn Stream>>,
    tls: Option<Tls>,
}

/// Reads a connection's first packet, and encrypts the connection if the client asks for it and the
/// node can. None when there is nothing to serve: the client is gone, or has been told what is
/// wrong.
pub async fn read_startup(
    stream: Box<dyn Stream>,
    env: &dyn Env,
    secure: Option<&dyn Secure>,
    within: Duration,
    log: &SessionLog,
) -> Option<(Box<dyn Stream>, StartupInfo)> {
    let mut arriving = Arriving {
        stream: Some(stream),
        tls: None,
    };
    let read = read_first_packet(&mut arriving, env, secure);
    let read = timeout(env, within, read).await?;
    let mut stream = arriving.stream?;
    match read {
        Ok(info) => Some((stream, info?)),
        Err(error) => {
            refuse(&mut *stream, env, log, &error).await;
            None
        }
    }
}

/// Answers a request for encryption. False when the client is gone.
async fn encrypt(
    arriving: &mut Arriving,
    env: &dyn Env,
    secure: Option<&dyn Secure>,
) -> Result<bool> {
    let Some(mut stream) = arriving.stream.take() else {
        return Ok(false);
    };
    let answer = match secure {
        Some(_) => [startup::ENCRYPTION_BEGINS],
        None => [startup::ENCRYPTION_REFUSED],
    };
    if env::write_all(&mut *stream, &answer).await.is_err() {
        return Ok(false);
    }
    let Some(secure) = secure else {
        arriving.stream = Some(stream);
        return Ok(true);
    };
    match secure.accept_client(stream).await {
        Ok((stream, tls)) => {
            arriving.stream = Some(stream);
            arriving.tls = Some(tls);
            Ok(true)
        }
        Err(error) => {
            let message = format!("could not accept an encrypted connection: {error}");
            env.log(env::Severity::Info, &message);
            Ok(false)
        }
    }
}

async fn read_first_packet(
    arriving: &mut Arriving,
    env: &dyn Env,
    secure: Option<&dyn Secure>,
) -> Result<Option<StartupInfo>> {
    let mut bytes = Vec::new();
    let mut encryption_requests = 0;
    loop {
        match startup::decode(&bytes)? {
            Some((FirstPacket::Encryption(kind), length)) => {
                encryption_requests += 1;
                if encryption_requests > startup::ENCRYPTION_REQUESTS_MAX {
                    return Err(violation("encryption was refused"));
                }
                let secure = secure.filter(|secure| {
                    kind == Encryption::Tls && secure.serves_clients() && arriving.tls.is_none()
                });
                // What stands behind the request was not encrypted, and is not the client's.
                if secure.is_some() && bytes.len() > length {
                    return Err(violation("received unencrypted data after SSL request")
                        .with_detail(
                            "This could be either a client-software bug or evidence of an \
                             attempted man-in-the-middle attack.",
                        ));
                }
                bytes.drain(..length);
                if !encrypt(arriving, env, secure).await? {
                    return Ok(None);
                }
            }
            Some((packet, length)) => {
                let following = bytes.split_off(length);
                return Ok(Some(StartupInfo {
                    packet,
                    bytes,
                    following,
                    tls: arriving.tls.take(),
                }));
            }
            None => {
                let mut buffer = [0; 1_024];
                let Some(stream) = &mut arriving.stream else {
                    return Ok(None);
                };
                match env::read(&mut **stream, &mut buffer).await {
                    Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
                    _ => return Ok(None),
                }
            }
        }
    }
}

/// Ends a connection whose session has not begun, with an error, which is logged.
pub async fn refuse(stream: &mut dyn Stream, env: &dyn Env, log: &SessionLog, error: &Error) {
    log.fatal(error);
    let mut bytes = Vec::new();
    pg::backend::put_error(&mut bytes, pg::backend::Severity::Fatal, error);
    let write = env::write_all(stream, &bytes);
    // A client that does not even read why it is refused is not waited for.
    if timeout(env, CLOSE_WAIT_MAX, write).await.is_some() {
        part(stream, env).await;
    }
}

/// Parts with a client that has been told everything, so that it can read that.
///
/// Where something of the client's was not read when its connection is closed, the system throws
/// away what is on its way to the client and resets the connection (RFC 1122, 4.2.2.13): it would
/// see a broken connection in place of the reason. So what it still sends is read for a moment. Nor
/// does the end come with the last words: some drivers take it first when they find both.
pub(crate) async fn part(stream: &mut dyn Stream, env: &dyn Env) {
    if !stream.can_finish() || timeout(env, READ_WAIT_MAX, drain(stream)).await.is_some() {
        return;
    }
    if poll_fn(|cx| stream.poll_finish(cx)).await.is_ok() {
        let _ = timeout(env, PARTING_MAX, drain(stream)).await;
    }
}

/// Reads until the other side has closed the connection.
async fn drain(stream: &mut dyn Stream) {
    let mut unread = [0; 1_024];
    while matches!(env::read(stream, &mut unread).await, Ok(count) if count > 0) {}
}
