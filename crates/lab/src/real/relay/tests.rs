//! A relay before an echo server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;

/// Answers every byte with itself.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut buffer = [0; 64 << 10];
                while let Ok(count) = stream.read(&mut buffer) {
                    if count == 0 || stream.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

fn through(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    start.elapsed()
}

#[test]
fn each_direction_delays_and_any_number_is_under_way() {
    let relay = Relay::to(echo()).unwrap();
    let mut stream = through(&relay);
    ask(&mut stream);
    relay.set(Direction::Forward, Line::delayed(Duration::from_millis(30)));
    relay.set(Direction::Back, Line::delayed(Duration::from_millis(50)));
    let took = ask(&mut stream);
    assert!(took >= Duration::from_millis(80), "{took:?}");

    // Forty messages, one a millisecond: were each to wait for the one before it, 3 s.
    let mut reader = stream.try_clone().unwrap();
    let start = Instant::now();
    let writer = std::thread::spawn(move || {
        for _ in 0..40 {
            stream.write_all(b"y").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    reader.read_exact(&mut [0; 40]).unwrap();
    let took = start.elapsed();
    writer.join().unwrap();
    assert!(took >= Duration::from_millis(80), "{took:?}");
    assert!(took < Duration::from_millis(1_000), "{took:?}");
    assert_eq!(relay.bytes(Direction::Forward), 42);
    assert_eq!(relay.bytes(Direction::Back), 42);
}

#[test]
fn bandwidth_is_shared_and_leaves_a_small_message_its_way() {
    let relay = Relay::to(echo()).unwrap();
    let line = Line {
        bandwidth: Some(4_000_000),
        ..Line::default()
    };
    relay.set(Direction::Forward, line);
    let (mut bulk, mut small) = (through(&relay), through(&relay));
    ask(&mut small);
    let mut reader = bulk.try_clone().unwrap();
    let start = Instant::now();
    let writer = std::thread::spawn(move || bulk.write_all(&vec![0; 2_000_000]).unwrap());
    std::thread::sleep(Duration::from_millis(100));
    let beside = ask(&mut small);
    reader.read_exact(&mut vec![0; 2_000_000]).unwrap();
    let took = start.elapsed();
    writer.join().unwrap();
    assert!(took >= Duration::from_millis(450), "{took:?}");
    assert!(
        beside < Duration::from_millis(200),
        "{beside:?} of {took:?}"
    );
}

#[test]
fn what_is_cut_waits_and_is_not_lost() {
    let relay = Relay::to(echo()).unwrap();
    let mut stream = through(&relay);
    ask(&mut stream);
    let cut = Line {
        cut: true,
        ..Line::default()
    };
    relay.set(Direction::Back, cut);
    stream.write_all(b"z").unwrap();
    let mut late = through(&relay);
    late.write_all(b"z").unwrap();
    for stream in [&mut stream, &mut late] {
        let limit = Some(Duration::from_millis(100));
        stream.set_read_timeout(limit).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        stream.set_read_timeout(None).unwrap();
    }
    assert_eq!(relay.bytes(Direction::Back), 3, "the other way is open");
    relay.cut(false);
    stream.read_exact(&mut [0]).unwrap();
    late.read_exact(&mut [0]).unwrap();
}

#[test]
fn loss_costs_a_retransmission() {
    let relay = Relay::to(echo()).unwrap();
    let mut stream = through(&relay);
    let line = Line {
        loss: 1.0,
        ..Line::default()
    };
    relay.set(Direction::Forward, line);
    let took = ask(&mut stream);
    assert!(took >= RETRANSMISSION_MIN, "{took:?}");
}

#[test]
fn ends_pass_and_a_dropped_relay_ends_its_connections() {
    let relay = Relay::to(echo()).unwrap();
    let mut stream = through(&relay);
    stream.write_all(b"last").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"last");

    let mut stream = through(&relay);
    ask(&mut stream);
    relay.break_connections();
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    let mut stream = through(&relay);
    ask(&mut stream);
    drop(relay);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
}
