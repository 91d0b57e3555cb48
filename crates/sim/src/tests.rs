//! The world itself: same seed, same course; disks forget what was not synced; ways can be cut.

mod full_disk;
mod hung_disk;

use std::sync::Arc;
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, OpenMode, Reactor, TaskStart};
use base::sync::Mutex;

use crate::world::{HostId, World};

type Seen = Arc<Mutex<Vec<u8>>>;

/// A server that answers each byte with the byte after it, and a client that sends three.
fn echo_world(seed: u64) -> (World, HostId, HostId, Seen) {
    let mut world = World::new(seed);
    let (server, client) = (world.add_host("server"), world.add_host("client"));
    let env = world.env(server);
    let start = env.clone();
    start.spawn(
        Reactor::Group,
        "server",
        Box::new(move || Box::pin(async move { serve(&*env).await.unwrap_or(()) })),
    );
    let seen = Seen::default();
    let (env, inner) = (world.env(client), seen.clone());
    let start = env.clone();
    start.spawn(
        Reactor::Group,
        "client",
        Box::new(move || Box::pin(async move { ask(&*env, &inner).await.unwrap_or(()) })),
    );
    (world, server, client, seen)
}

async fn serve(env: &dyn Env) -> std::io::Result<()> {
    let mut listener = env.net().listen("10.0.0.1:1")?;
    let (mut stream, _) = std::future::poll_fn(|cx| listener.poll_accept(cx)).await?;
    let mut byte = [0];
    while read(&mut *stream, &mut byte).await? == 1 {
        write_all(&mut *stream, &[byte[0] + 1]).await?;
    }
    Ok(())
}

async fn ask(env: &dyn Env, seen: &Seen) -> std::io::Result<()> {
    sleep(env, Duration::from_millis(5)).await;
    let mut stream = env.net().connect("10.0.0.1:1").await?;
    for question in [1, 5, 9] {
        write_all(&mut *stream, &[question]).await?;
        let mut answer = [0];
        read(&mut *stream, &mut answer).await?;
        seen.lock().push(answer[0]);
    }
    Ok(())
}

#[test]
fn one_seed_is_one_course() {
    let run = |seed| {
        let (mut world, _, _, seen) = echo_world(seed);
        world.run_for(Duration::from_secs(1));
        let answers = seen.lock().clone();
        (answers, world.trace_hash())
    };
    assert_eq!(run(3), run(3));
    assert_eq!(run(3).0, [2, 6, 10]);
    assert_ne!(run(3).1, run(4).1);
}

#[test]
fn a_cut_way_delivers_after_it_heals() {
    let (mut world, server, client, seen) = echo_world(11);
    world.set_cut(server, client, true);
    world.run_for(Duration::from_secs(1));
    assert!(seen.lock().is_empty());
    world.set_cut(server, client, false);
    world.run_for(Duration::from_secs(1));
    assert_eq!(*seen.lock(), [2, 6, 10]);
}

#[test]
fn a_crash_keeps_what_was_synced_and_perhaps_the_rest() {
    let mut lost = 0;
    for seed in 0..40 {
        let mut world = World::new(seed);
        let host = world.add_host("h");
        let env = world.env(host);
        let task_env = env.clone();
        env.spawn(
            Reactor::Log(0),
            "writer",
            Box::new(move || {
                Box::pin(async move {
                    let disk = task_env.disk();
                    let file = disk.open("a", OpenMode::CreateNew).unwrap();
                    disk.sync_dir("").unwrap();
                    file.write_at(&[1; 2_000], 0).unwrap();
                    file.sync().await.unwrap();
                    file.write_at(&[2; 2_000], 1_000).unwrap();
                })
            }),
        );
        world.run_for(Duration::from_secs(1));
        world.crash(host, true);
        world.restart(host);
        let file = world
            .env(host)
            .disk()
            .open("a", OpenMode::Existing)
            .unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        assert!(bytes[..1_000].iter().all(|byte| *byte == 1));
        lost += usize::from(bytes.len() < 3_000 || bytes[1_000..].iter().any(|byte| *byte != 2));
    }
    assert!(
        (10..40).contains(&lost),
        "{lost} of 40 crashes lost something"
    );
}

#[test]
fn a_disk_without_room_takes_what_fits_and_what_is_freed() {
    let mut world = World::new(1);
    let host = world.add_host("h");
    let disk = world.env(host).disk();
    let file = disk.open("a", OpenMode::CreateNew).unwrap();
    file.set_len(1_000).unwrap();
    world.set_disk_room(host, Some(300));
    let is_full = |result: std::io::Result<()>| {
        result.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull)
    };
    file.write_at(&[1; 1_000], 0).unwrap();
    assert!(is_full(file.set_len(1_301)));
    assert!(is_full(file.write_at(&[2; 1_000], 900)));
    assert_eq!(file.len().unwrap(), 1_300);
    assert!(is_full(disk.open("b", OpenMode::Create).map(drop)));
    file.set_len(1_200).unwrap();
    let other = disk.open("b", OpenMode::Create).unwrap();
    other.set_len(100).unwrap();
    assert!(is_full(other.write_at(&[3], 100)));
    disk.rename("b", "a").unwrap();
    other.set_len(1_300).unwrap();
    assert!(is_full(other.set_len(1_301)));
    world.set_disk_room(host, None);
    other.set_len(1_301).unwrap();
}

/// Thousands of worlds run in one process.
#[test]
fn a_world_that_has_ended_leaves_nothing() {
    let (mut world, server, _, seen) = echo_world(5);
    let env = world.env(server);
    let never = env.clone();
    world.run_for(Duration::from_secs(1));
    assert_eq!(*seen.lock(), [2, 6, 10]);
    let start: TaskStart =
        Box::new(move || Box::pin(async move { sleep(&*never, Duration::MAX).await }));
    env.spawn(Reactor::Group, "never begins", start);
    drop(env);
    let left = Arc::downgrade(&world.shared);
    drop(world);
    assert_eq!(left.strong_count(), 0, "what still holds the world");
}
