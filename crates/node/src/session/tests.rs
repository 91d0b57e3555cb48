//! Sessions over streams in memory, a clock moved by hand and a gate opened by hand.

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pg::startup::{put_cancel, put_ssl_request, put_startup};

use super::world::{ClientEnd, WorldEnv};
use super::*;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn startup_packet() -> Vec<u8> {
    let startup = StartupParameters {
        user: "postgres".into(),
        database: "postgres".into(),
        ..StartupParameters::default()
    };
    let mut bytes = Vec::new();
    put_startup(&mut bytes, &startup);
    bytes
}

/// What the server says to a client that sends these bytes first, and what it makes of them.
fn first_packet(bytes: &[u8]) -> (Option<StartupInfo>, Vec<u8>) {
    let env = WorldEnv::default();
    let client = ClientEnd::default();
    let mut stream = client.server_end();
    client.send(bytes);
    client.close();
    let info = {
        let read = pin!(read_startup(&mut *stream, &env));
        match poll(read) {
            Poll::Ready(info) => info,
            Poll::Pending => panic!("the stream has ended"),
        }
    };
    (info, client.receive().0)
}

#[test]
fn encryption_is_refused_and_the_session_goes_on() {
    let mut bytes = Vec::new();
    put_ssl_request(&mut bytes);
    bytes.extend(startup_packet());
    bytes.extend_from_slice(b"more");
    let (info, answer) = first_packet(&bytes);
    let info = info.unwrap();
    assert_eq!(answer, b"N");
    assert_eq!(info.bytes, startup_packet());
    assert_eq!(info.following, b"more");
    let FirstPacket::Startup(startup) = info.packet else {
        panic!("{info:?}");
    };
    assert_eq!(startup.user, "postgres");
}

#[test]
fn a_cancel_request_is_told_apart() {
    let key = CancelKey { pid: 5, secret: 6 };
    let mut bytes = Vec::new();
    put_cancel(&mut bytes, key);
    let (info, answer) = first_packet(&bytes);
    assert_eq!(info.unwrap().packet, FirstPacket::Cancel(key));
    assert!(answer.is_empty());
}

#[test]
fn nonsense_is_told_what_is_wrong() {
    let (info, answer) = first_packet(b"GET / HTTP/1.1\r\n\r\n");
    assert!(info.is_none());
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with('E') && answer.contains("08P01"),
        "{answer}"
    );
    let (info, answer) = first_packet(b"\0\0");
    assert!(info.is_none() && answer.is_empty());
}

#[test]
fn a_silent_client_is_given_up() {
    let env = WorldEnv::default();
    let client = ClientEnd::default();
    let mut stream = client.server_end();
    client.send(b"\0\0");
    let mut read = pin!(read_startup(&mut *stream, &env));
    assert!(poll(read.as_mut()).is_pending());
    env.0.pass(STARTUP_TIMEOUT - Duration::from_secs(1));
    assert!(poll(read.as_mut()).is_pending());
    env.0.pass(Duration::from_secs(1));
    assert!(matches!(poll(read.as_mut()), Poll::Ready(None)));
}
