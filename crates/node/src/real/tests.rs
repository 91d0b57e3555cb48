//! The real environment under load of its own: tasks, timers, sockets, the status page.

use pg::log::SessionLog;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Reactor, Stream};
use tokio::sync::mpsc;

use super::*;

fn env(dir: &std::path::Path, spin: Duration) -> Arc<RealEnv> {
    RealEnv::start(&RealOptions {
        name: "n1".to_owned(),
        data_dir: dir.to_owned(),
        session_reactors: 2,
        spin,
        routes: Vec::new(),
        reaches_beyond: false,
    })
    .unwrap()
}

/// A port of loopback that nobody listens on.
fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn tasks_run_where_they_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path(), Duration::ZERO);
    let all = [
        Reactor::Session(0),
        Reactor::Session(1),
        Reactor::Group,
        Reactor::Log(0),
        Reactor::Background,
    ];
    for reactor in all {
        let (sender, receiver) = std::sync::mpsc::channel();
        let inner = env.clone();
        let start: TaskStart = Box::new(move || {
            Box::pin(async move {
                let before = inner.now();
                sleep(&*inner, Duration::from_millis(3)).await;
                let slept = inner.now().since(before);
                sender.send((reactor::current(), slept)).unwrap();
            })
        });
        env.spawn(reactor, "test", start);
        let (ran_on, slept) = receiver.recv().unwrap();
        assert_eq!(ran_on, Some(reactor));
        assert!(slept >= Duration::from_millis(3), "{slept:?}");
    }
}

/// What is due is found after the turn in which it became due, and not after dozens more.
#[test]
fn who_gives_way_lets_the_thread_look_for_what_is_due() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path(), Duration::ZERO);
    let turns = Arc::new(AtomicU32::new(0));
    let (sender, receiver) = std::sync::mpsc::channel();
    let (counted, inner) = (turns.clone(), env.clone());
    let busy: TaskStart = Box::new(move || {
        Box::pin(async move {
            while counted.load(Ordering::SeqCst) < 1_000 {
                counted.fetch_add(1, Ordering::SeqCst);
                let until = inner.now().after(Duration::from_micros(300));
                while inner.now() < until {}
                base::turns::give_way().await;
            }
        })
    });
    let inner = env.clone();
    let waits: TaskStart = Box::new(move || {
        Box::pin(async move {
            sleep(&*inner, Duration::from_millis(2)).await;
            // The other's last turn.
            let turns = turns.swap(1_000, Ordering::SeqCst);
            sender.send(turns).unwrap();
        })
    });
    env.spawn(Reactor::Session(0), "waits", waits);
    env.spawn(Reactor::Session(0), "busy", busy);
    let turns = receiver.recv().unwrap();
    assert!(turns < 30, "{turns} turns of 300 µs in 2 ms");
}

async fn echo(mut stream: Box<dyn Stream>) {
    let mut buffer = [0; 64];
    while let Ok(count @ 1..) = read(&mut *stream, &mut buffer).await {
        if write_all(&mut *stream, &buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[test]
fn a_connection_is_served_on_another_reactor_than_it_came_in() {
    for spin in [Duration::ZERO, Duration::from_micros(50)] {
        let dir = tempfile::tempdir().unwrap();
        let env = env(dir.path(), spin);
        let address = free_address().to_string();
        let mut listener = env.net().listen(&address).unwrap();
        let inner = env.clone();
        let accept: TaskStart = Box::new(move || {
            Box::pin(async move {
                let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                let (stream, _) = accepted.unwrap();
                let hurried = inner.clone();
                let serve: TaskStart = Box::new(move || {
                    hurried.hurry();
                    Box::pin(echo(stream))
                });
                inner.spawn(Reactor::Session(1), "echo", serve);
            })
        });
        env.spawn(Reactor::Group, "accept", accept);
        let inner = env.clone();
        let answer = env.block_on("client", move || async move {
            let mut stream = inner.net().connect(&address).await.unwrap();
            let mut answer = [0; 4];
            for _ in 0..3 {
                write_all(&mut *stream, b"ping").await.unwrap();
                assert_eq!(read(&mut *stream, &mut answer).await.unwrap(), 4);
            }
            answer
        });
        assert_eq!(&answer.unwrap(), b"ping");
    }
}

/// A connection that is closed with something unread is reset, and what was told is thrown away.
#[test]
fn who_is_refused_can_read_why_whatever_is_on_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path(), Duration::ZERO);
    let address = free_address().to_string();
    let mut listener = env.net().listen(&address).unwrap();
    let inner = env.clone();
    let refuse: TaskStart = Box::new(move || {
        Box::pin(async move {
            let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
            let (mut stream, _) = accepted.unwrap();
            // Something has come, and more will.
            assert_eq!(read(&mut *stream, &mut [0]).await.unwrap(), 1);
            let error = base::Error::from(base::coro::Interrupt::Terminate);
            crate::session::refuse(&mut *stream, &*inner, &SessionLog::default(), &error).await;
        })
    });
    env.spawn(Reactor::Group, "refuse", refuse);
    let mut client = std::net::TcpStream::connect(&address).unwrap();
    client.write_all(b"select 1").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    client.write_all(b"select 2").unwrap();
    let mut told = Vec::new();
    client.read_to_end(&mut told).unwrap();
    assert!(told.windows(5).any(|code| code == b"57P01"), "{told:?}");
}

#[test]
fn a_port_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path(), Duration::ZERO);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = env.net().listen(&address).err().expect("it is in use");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let error = env.net().listen("0.0.0.0:0").err().expect("not loopback");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let error = env.net().listen("here").err().expect("no address");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_panicking_session_harms_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let env = env(dir.path(), Duration::ZERO);
    env.spawn(
        Reactor::Session(0),
        "panics",
        Box::new(|| Box::pin(async { panic!("on purpose") })),
    );
    let (sender, mut receiver) = mpsc::unbounded_channel();
    env.spawn(
        Reactor::Session(0),
        "lives",
        Box::new(move || Box::pin(async move { sender.send(()).unwrap() })),
    );
    assert_eq!(receiver.blocking_recv(), Some(()));
}

struct TestPages;

impl http::Pages for TestPages {
    fn health(&self) -> Result<String, String> {
        Err("no leader".to_owned())
    }

    fn status(&self) -> serde_json::Value {
        serde_json::json!({ "name": "n1" })
    }
}

#[test]
fn the_status_page_answers() {
    let dir = tempfile::tempdir().unwrap();
    let env: Arc<dyn Env> = env(dir.path(), Duration::ZERO);
    let address = free_address();
    http::serve(&env, &address.to_string(), Arc::new(TestPages)).unwrap();
    let timeout = Duration::from_secs(5);
    let status = host::http_get(address, "/status", timeout).unwrap();
    assert_eq!(status, r#"{"name":"n1"}"#);
    let health = host::http_get(address, "/health", timeout).unwrap_err();
    assert!(health.to_string().contains("503"), "{health}");
}
