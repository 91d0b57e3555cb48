//! Connections between nodes under real threads and over real sockets: frames that are lost,
//! doubled or mixed show, and so does a wake-up that gets lost.

use std::sync::atomic::AtomicBool;
use std::thread;

use base::env::Listener;

use super::tests::{free_address, members, node, wait_until, TestNode};
use super::*;

const THREADS: u8 = 4;

/// Frames that each thread pushes.
const FRAMES: u32 = 20_000;

/// One of so many frames is larger than what a socket takes at once.
const LARGE_EVERY: u32 = 1_000;
const LARGE_BYTES: usize = 300 << 10;

/// A connection that is to break does so after about so many frames.
const BREAK_AFTER: u32 = 200;

/// Connections that break.
const BREAKS: usize = 20;

/// A frame that shows by itself whether it is whole: who pushed it, its number, and filling.
fn frame(thread: u8, number: u32) -> Vec<u8> {
    let filling = match number % LARGE_EVERY {
        0 => LARGE_BYTES,
        rest => (rest as usize * 7 + usize::from(thread)) % 300,
    };
    let mut frame = vec![thread];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.resize(5 + filling, number as u8);
    frame
}

/// Which one it is.
fn number_of(bytes: &[u8]) -> (u8, u32) {
    let head = bytes.first_chunk::<5>().expect("a frame has a number");
    let number = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    assert!(bytes == frame(head[0], number), "a frame is not whole");
    (head[0], number)
}

/// Pushes from several threads until each has pushed enough.
fn push(first: &TestNode, enough: impl Fn(u32) -> bool + Sync) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let enough = &enough;
            scope.spawn(move || {
                for number in 1.. {
                    if enough(number) {
                        break;
                    }
                    first.peers.send(NodeId(2), frame(thread, number));
                    if number % 3 != u32::from(thread) {
                        first.peers.flush();
                    }
                }
                first.peers.flush();
            });
        }
    });
}

#[test]
fn what_threads_push_arrives_whole_and_in_order() {
    let members = members();
    let (first, second) = (node(1, 7, &members), node(2, 7, &members));
    wait_until(&first, "a connection", || {
        first.peers.connected() == [NodeId(2)]
    });
    push(&first, |number| number > FRAMES);
    let all = usize::from(THREADS) * FRAMES as usize;
    wait_until(&first, "all frames", || {
        second.received.frames.lock().len() >= all
    });
    let mut last = [0; THREADS as usize];
    for (_, bytes) in &*second.received.frames.lock() {
        let (thread, number) = number_of(bytes);
        let last = &mut last[usize::from(thread)];
        assert_eq!(number, *last + 1, "of thread {thread}");
        *last = number;
    }
    assert_eq!(last, [FRAMES; THREADS as usize]);
}

/// The other side of connections that break.
#[derive(Default)]
struct Breaking {
    connections: Mutex<Vec<Vec<(u8, u32)>>>,
    calm: AtomicBool,
}

/// Serves one connection after another, and ends each in the middle.
async fn break_off(env: Arc<dyn Env>, mut listener: Box<dyn Listener>, breaking: Arc<Breaking>) {
    loop {
        let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
        let (mut stream, _) = accepted.unwrap();
        let mut incoming = Incoming::default();
        let hello = read_hello(&*env, &mut *stream, &mut incoming).await;
        hello.unwrap();
        answer(&mut *stream, &Answer::Welcome).await.unwrap();
        breaking.connections.lock().push(Vec::new());
        let mut frames = 0;
        while let Ok(Some(bytes)) = incoming.frame(&mut *stream, FRAME_BYTES_MAX).await {
            let mut connections = breaking.connections.lock();
            let connection = connections.last_mut().expect("this one");
            connection.push(number_of(bytes));
            frames += 1;
            let calm = breaking.calm.load(Ordering::Relaxed);
            if !calm && frames > BREAK_AFTER + connections.len() as u32 {
                break;
            }
        }
    }
}

#[test]
fn connections_break_and_nothing_of_one_gets_into_the_next() {
    let mut members = members();
    members[1].peer_address = free_address().to_string().into();
    let first = node(1, 7, &members);
    let breaking = Arc::new(Breaking::default());
    let env: Arc<dyn Env> = first.env.clone();
    let listener = env.net().listen(&members[1].peer_address).unwrap();
    let inner = breaking.clone();
    let start: TaskStart = {
        let env = env.clone();
        Box::new(move || Box::pin(break_off(env, listener, inner)))
    };
    env.spawn(Reactor::Group, "break off", start);

    let broken = || breaking.connections.lock().len() > BREAKS;
    let deadline = first.env.now().after(Duration::from_secs(60));
    push(&first, |_| {
        assert!(first.env.now() < deadline, "connections are not made anew");
        broken()
    });
    breaking.calm.store(true, Ordering::Relaxed);
    // The last connection may be broken already, so that what is sent is lost.
    let mut marker = 0;
    wait_until(&first, "a frame on the last connection", || {
        marker += 1;
        first.peers.send(NodeId(2), frame(THREADS, marker));
        first.peers.flush();
        let connections = breaking.connections.lock();
        let last = connections.last().expect("there are some");
        last.iter().any(|(thread, _)| *thread == THREADS)
    });
    let connections = breaking.connections.lock();
    let mut last = [0; THREADS as usize + 1];
    for (thread, number) in connections.iter().flatten() {
        let last = &mut last[usize::from(*thread)];
        assert!(number > last, "{number} of {thread} after {last}");
        *last = *number;
    }
}
