//! The very source of the queue of a peer under a model checker (`base/src/model.rs` says what that
//! shows and what not).

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/model/threads.rs"]
mod threads;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/sync.rs"]
mod sync;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "peers/queue.rs"]
mod queue;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::env::Outlet;
use queue::{Limits, Queue};
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::{Event, Mutex};

use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};
use threads::check;

/// A write has one frame or two.
const LIMITS: Limits = Limits {
    queued_bytes: 1_000,
    write_bytes: 8,
};

/// A pusher's number, and the number of its frame.
type Frame = [u8; 2];

/// The near end of one connection.
struct Socket {
    /// Whether it takes bytes from threads, and how many, in turn.
    rooms: &'static [Room],
    asked: AtomicUsize,
    /// Somebody is writing.
    inside: AtomicBool,
    taken: Mutex<Vec<u8>>,
    changed: Event,
}

#[derive(Clone, Copy)]
enum Room {
    All,
    Half,
    Nothing,
}

const ROOMS: [&[Room]; 3] = [
    &[Room::All],
    &[Room::Half, Room::All],
    &[Room::Nothing, Room::All, Room::Half],
];

impl Socket {
    fn new(rooms: &'static [Room]) -> Arc<Socket> {
        Arc::new(Socket {
            rooms,
            asked: AtomicUsize::new(0),
            inside: AtomicBool::new(false),
            taken: Mutex::default(),
            changed: Event::new(),
        })
    }

    fn take(&self, bytes: &[u8]) {
        assert!(
            !self.inside.swap(true, Ordering::SeqCst),
            "two write at once"
        );
        thread::yield_now();
        self.taken.lock().extend_from_slice(bytes);
        self.inside.store(false, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// What has arrived whole, and how many bytes of another frame.
    fn frames(&self) -> (Vec<Frame>, usize) {
        let taken = self.taken.lock();
        let (whole, part) = taken.as_chunks::<6>();
        let frame = |bytes: &[u8; 6]| {
            assert_eq!(
                bytes[..4],
                [0, 0, 0, 2],
                "no frame begins here: {:?}",
                *taken
            );
            [bytes[4], bytes[5]]
        };
        (whole.iter().map(frame).collect(), part.len())
    }

    fn wait_for(&self, frame: Frame) {
        let arrived = || self.frames().0.contains(&frame).then_some(());
        block_on(self.changed.until(arrived));
    }
}

impl Outlet for Socket {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let room = match self.rooms[asked % self.rooms.len()] {
            Room::All => bytes.len(),
            Room::Half => bytes.len() / 2,
            Room::Nothing => return Err(io::ErrorKind::WouldBlock.into()),
        };
        self.take(&bytes[..room]);
        Ok(room)
    }
}

/// Pushes some frames, each with a flush, or two with one; those that were taken.
fn push(queue: &Arc<Queue>, pusher: u8, frames: u8) -> JoinHandle<Vec<Frame>> {
    let queue = queue.clone();
    thread::spawn(move || {
        let mut taken = Vec::new();
        for number in 0..frames {
            let frame = [pusher, number];
            if queue.push(frame.to_vec()) {
                taken.push(frame);
            }
            if pusher != 0 || number % 2 == 1 || number + 1 == frames {
                queue.flush();
            }
        }
        taken
    })
}

/// The task of a connection that holds, until the peer leaves.
fn serve(queue: &Queue, socket: &Socket) {
    let mut out = Vec::new();
    while block_on(queue.turn(&mut out)) {
        socket.take(&out);
        queue.end_turn(&mut out);
    }
}

/// A queue with a connection that holds, and its task.
fn connected(
    limits: Limits,
    rooms: &'static [Room],
    encrypts: bool,
) -> (Arc<Queue>, Arc<Socket>, JoinHandle<()>) {
    let (queue, socket) = (Arc::new(Queue::new(limits)), Socket::new(rooms));
    let outlet: Arc<dyn Outlet> = socket.clone();
    queue.connect((!encrypts).then_some(outlet));
    let (tasks, far) = (queue.clone(), socket.clone());
    let task = thread::spawn(move || serve(&tasks, &far));
    (queue, socket, task)
}

/// Asserts that each pusher's frames are in their order, none of them twice.
fn assert_in_order(frames: &[Frame]) {
    for pusher in frames.iter().map(|[pusher, _]| *pusher) {
        let numbers: Vec<u8> = frames
            .iter()
            .filter(|[by, _]| *by == pusher)
            .map(|[_, number]| *number)
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{frames:?}");
    }
}

/// What threads push leaves whole, once and in order, though nobody pushes or flushes afterwards;
/// on a connection that encrypts, too, where all is the task's.
#[test]
fn what_is_flushed_leaves_once_and_in_order() {
    for (rooms, encrypts) in ROOMS.into_iter().zip([false; 3]).chain([(ROOMS[0], true)]) {
        check(move || {
            let (queue, socket, task) = connected(LIMITS, rooms, encrypts);
            let pushers = [0, 1, 2].map(|pusher| push(&queue, pusher, 2));
            let pushed = pushers.map(|pusher| pusher.join().unwrap()).concat();
            assert_eq!(pushed.len(), 6, "there was room for all");
            pushed.iter().for_each(|frame| socket.wait_for(*frame));
            queue.leave();
            task.join().unwrap();
            let (frames, part) = socket.frames();
            assert_eq!((frames.len(), part), (6, 0), "{frames:?}");
            assert_in_order(&frames);
            assert_eq!(queue.sent_bytes(), 36);
        });
    }
}

/// The task of a connection that breaks after so many looks at it, or in the middle of a turn.
fn serve_and_break(queue: &Queue, socket: &Socket, looks: usize) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut out = Vec::new();
    thread::yield_now();
    for _ in 0..looks {
        let turn = pin!(queue.turn(&mut out)).poll(&mut cx);
        if turn == Poll::Ready(true) {
            let (begin, rest) = out.split_at(out.len() / 2);
            socket.take(begin);
            if queue.sent_bytes() % 4 == 0 {
                return;
            }
            socket.take(rest);
            queue.end_turn(&mut out);
        }
        thread::yield_now();
    }
}

/// A connection breaks while threads write, and another is made: what is left of the first never
/// gets into the second, and what is pushed then arrives.
#[test]
fn a_new_connection_begins_anew() {
    for (first, second, looks) in [(0, 0, 1), (1, 2, 0), (1, 2, 2), (2, 1, 1), (2, 2, 0)] {
        check(move || {
            let queue = Arc::new(Queue::new(LIMITS));
            let sockets = [ROOMS[first], ROOMS[second]].map(Socket::new);
            let is_second = Arc::new((AtomicBool::new(false), Event::new()));
            let (tasks, far, says) = (queue.clone(), sockets.clone(), is_second.clone());
            let task = thread::spawn(move || {
                tasks.connect(Some(far[0].clone()));
                serve_and_break(&tasks, &far[0], looks);
                tasks.disconnect();
                assert_eq!(tasks.queued_bytes(), 0);
                tasks.connect(Some(far[1].clone()));
                says.0.store(true, Ordering::SeqCst);
                says.1.notify_all();
                serve(&tasks, &far[1]);
            });
            let pushers = [1, 2].map(|pusher| push(&queue, pusher, 3));
            let connected = || is_second.0.load(Ordering::SeqCst).then_some(());
            block_on(is_second.1.until(connected));
            assert!(queue.is_connected() && queue.push(vec![9, 0]));
            queue.flush();
            sockets[1].wait_for([9, 0]);
            let pushed = pushers.map(|pusher| pusher.join().unwrap()).concat();
            queue.leave();
            task.join().unwrap();
            let [(mut frames, _), (later, part)] = sockets.map(|socket| socket.frames());
            assert_eq!(part, 0, "the second connection ends with a whole frame");
            assert_eq!(later.iter().filter(|frame| **frame == [9, 0]).count(), 1);
            frames.extend(later);
            assert_in_order(&frames);
            let known = |frame: &Frame| frame[0] == 9 || pushed.contains(frame);
            assert!(frames.iter().all(known), "{frames:?} of {pushed:?}");
        });
    }
}

/// Room for three frames.
const NARROW: Limits = Limits {
    queued_bytes: 6,
    write_bytes: 8,
};

/// Threads push more than fits while nobody writes: as much as fits is taken, and no more.
#[test]
fn no_more_waits_than_fits() {
    check(|| {
        let (queue, socket) = (Arc::new(Queue::new(NARROW)), Socket::new(ROOMS[0]));
        assert!(!queue.push(vec![8, 0]), "it is not connected");
        queue.connect(Some(socket.clone()));
        let pushers = [0, 1, 2].map(|pusher| {
            let queue = queue.clone();
            thread::spawn(move || {
                let pushed = [0, 1].map(|number| queue.push(vec![pusher, number]));
                assert!(queue.queued_bytes() <= NARROW.queued_bytes);
                pushed.into_iter().filter(|taken| *taken).count()
            })
        });
        let taken = pushers.map(|pusher| pusher.join().unwrap());
        assert_eq!(taken.iter().sum::<usize>(), 3, "{taken:?}");
        assert_eq!(queue.queued_bytes(), 6);
        queue.flush();
        assert_eq!(socket.frames().0.len(), 3);
        assert_eq!(queue.queued_bytes(), 0);
        assert!(queue.push(vec![9, 0]));
    });
}

/// What was taken leaves, also when there was no room for all; and afterwards there is room again.
#[test]
fn what_leaves_makes_room() {
    for rooms in ROOMS {
        check(move || {
            let (queue, socket, task) = connected(NARROW, rooms, false);
            let pushers = [1, 2].map(|pusher| push(&queue, pusher, 3));
            let pushed = pushers.map(|pusher| pusher.join().unwrap()).concat();
            assert!(pushed.len() >= 3, "{pushed:?}");
            pushed.iter().for_each(|frame| socket.wait_for(*frame));
            assert_eq!(queue.queued_bytes(), 0);
            assert!((0..3).all(|number| queue.push(vec![9, number])));
            // Nobody asks for these: they leave because the peer does.
            queue.leave();
            task.join().unwrap();
            let (frames, part) = socket.frames();
            assert_eq!((frames.len(), part), (pushed.len() + 3, 0));
            assert_in_order(&frames);
        });
    }
}

/// A peer that is one no more gets what was pushed before, wherever its task is just then, and its
/// connection ends after that.
#[test]
fn a_peer_that_leaves_gets_what_was_pushed() {
    for (rooms, encrypts) in ROOMS.into_iter().zip([false; 3]).chain([(ROOMS[0], true)]) {
        check(move || {
            let (queue, socket, task) = connected(LIMITS, rooms, encrypts);
            for number in 0..3 {
                assert!(queue.push(vec![0, number]));
                if number == 0 {
                    queue.flush();
                }
            }
            queue.leave();
            task.join().unwrap();
            assert_eq!(socket.frames(), (vec![[0, 0], [0, 1], [0, 2]], 0));
        });
    }
}
