//! Sockets.
//!
//! A socket is registered with the reactor that first polls it, so a connection can be accepted on
//! one reactor and served on another.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use base::env::{BoxFuture, Listener, Net, Outlet, Stream};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reactor;

/// Connections that wait to be accepted; further ones are retried by their clients' systems.
const BACKLOG: i32 = 1_024;

/// A connection that was silent for so long is probed, so that sessions of dead hosts end.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// What this node has sent to another, and what the other's system has not acknowledged for so
/// long, ends the connection: a new one is better than a long silence after a partition.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Descriptors that are left to files, at most a quarter of all: whoever connects must not keep the
/// log from its next segment, which would end the node.
const FILES_RESERVED: usize = 256;

/// Sockets of this process that are open.
static SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// How many may be before no further connection is accepted.
fn sockets_max() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid. Where the system refuses, there is no limit to keep.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => {
            let all = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
            all - FILES_RESERVED.min(all / 4)
        }
        _ => usize::MAX,
    }
}

/// The network of this machine.
pub struct RealNet {
    routes: Vec<(SocketAddr, SocketAddr)>,
    /// Whether sockets may listen where other machines can connect.
    reaches_beyond: bool,
}

impl RealNet {
    /// The network, in which the first address of each route is reached at the second.
    pub fn new(routes: Vec<(SocketAddr, SocketAddr)>, reaches_beyond: bool) -> RealNet {
        RealNet {
            routes,
            reaches_beyond,
        }
    }

    fn route(&self, address: SocketAddr) -> SocketAddr {
        let mut routes = self.routes.iter();
        let route = routes.find(|(from, _)| *from == address);
        route.map_or(address, |(_, to)| *to)
    }
}

fn parse(address: &str) -> io::Result<SocketAddr> {
    address.parse().map_err(|_| {
        let message = format!("\"{address}\" is no address of the form ip:port");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

impl Net for RealNet {
    fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(RealListener {
            unregistered: Some(listen(parse(address)?, self.reaches_beyond)?),
            listener: None,
            sockets_max: sockets_max(),
        }))
    }

    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let address = parse(address).map(|address| self.route(address));
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(address?).await?.into_std()?;
            give_up_unacknowledged(&stream)?;
            Ok(Box::new(RealStream::new(stream)?) as Box<dyn Stream>)
        })
    }
}

/// A socket that listens on loopback, and that a restarted node can take over at once.
///
/// # Errors
/// `PermissionDenied` for an address that other machines can reach.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    listen(address, false)
}

fn listen(address: SocketAddr, reaches_beyond: bool) -> io::Result<std::net::TcpListener> {
    if !address.ip().is_loopback() && !reaches_beyond {
        let message = format!(
            "{} is not a loopback address, and without authentication and encryption no other is \
             listened on",
            address.ip()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn give_up_unacknowledged(stream: &std::net::TcpStream) -> io::Result<()> {
    let millis = libc::c_uint::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(libc::c_uint::MAX);
    // SAFETY: the descriptor is open, and the option is one `c_uint`.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_USER_TIMEOUT,
            std::ptr::from_ref(&millis).cast(),
            std::mem::size_of_val(&millis) as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

struct RealListener {
    unregistered: Option<std::net::TcpListener>,
    listener: Option<tokio::net::TcpListener>,
    sockets_max: usize,
}

impl Listener for RealListener {
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, String)>> {
        if let Some(unregistered) = self.unregistered.take() {
            self.listener = Some(tokio::net::TcpListener::from_std(unregistered)?);
        }
        let listener = self.listener.as_ref().ok_or_else(lost)?;
        // Those who wait in the system's queue have no descriptor.
        if SOCKETS.load(Ordering::Relaxed) >= self.sockets_max {
            return Poll::Ready(Err(io::Error::from_raw_os_error(libc::EMFILE)));
        }
        loop {
            let (stream, from) = match ready!(listener.poll_accept(cx)) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Poll::Ready(Err(error)),
            };
            // One that was reset already is no reason to keep others waiting.
            if let Ok(stream) = stream.into_std().and_then(RealStream::new) {
                return Poll::Ready(Ok((Box::new(stream), from.to_string())));
            }
        }
    }
}

/// A socket that an earlier failure to register has closed.
fn lost() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

struct RealStream {
    /// Tells it from the other streams of this process.
    number: u64,
    unregistered: Option<std::net::TcpStream>,
    stream: Option<tokio::net::TcpStream>,
}

impl RealStream {
    fn new(stream: std::net::TcpStream) -> io::Result<RealStream> {
        stream.set_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        static STREAMS: AtomicU64 = AtomicU64::new(1);
        SOCKETS.fetch_add(1, Ordering::Relaxed);
        Ok(RealStream {
            number: STREAMS.fetch_add(1, Ordering::Relaxed),
            unregistered: Some(stream),
            stream: None,
        })
    }

    fn registered(&mut self) -> io::Result<Pin<&mut tokio::net::TcpStream>> {
        if let Some(unregistered) = self.unregistered.take() {
            self.stream = Some(tokio::net::TcpStream::from_std(unregistered)?);
        }
        self.stream.as_mut().map(Pin::new).ok_or_else(lost)
    }
}

impl Drop for RealStream {
    fn drop(&mut self) {
        SOCKETS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream for RealStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(self.registered()?.poll_read(cx, &mut buffer))?;
        reactor::note_read(self.number);
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.registered()?.poll_write(cx, bytes))?;
        reactor::note_write();
        Poll::Ready(Ok(written))
    }

    fn can_finish(&self) -> bool {
        true
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.registered()?.poll_shutdown(cx)
    }

    fn detach(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            self.unregistered = Some(stream.into_std()?);
        }
        Ok(())
    }

    fn outlet(&mut self) -> io::Result<Arc<dyn Outlet>> {
        let socket = match &self.unregistered {
            Some(unregistered) => unregistered.try_clone()?,
            None => {
                let registered = self.registered()?;
                let descriptor = registered.as_fd().try_clone_to_owned()?;
                std::net::TcpStream::from(descriptor)
            }
        };
        Ok(Arc::new(RealOutlet(socket)))
    }
}

/// The same socket once more; it does not block, as the first does not.
struct RealOutlet(std::net::TcpStream);

impl Outlet for RealOutlet {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }
}
