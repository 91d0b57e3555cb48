//! Notifications on three real nodes: whoever listens hears each once, in one order, from whichever
//! node it was told, while leaders are lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::host::{wait_for, Endpoint, PATIENCE};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Config, NoTls, Notification};

use crate::failover::Stage;
use crate::writers::connect;

/// An idle session hears within this time what is committed.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The last that is told: whoever hears it has heard all.
const LAST: &str = "last";

/// The next that a session hears, without having sent anything.
fn next(client: &mut Client) -> Result<Option<Notification>, postgres::Error> {
    client.notifications().timeout_iter(HEARD_WITHIN).next()
}

fn next_payload(client: &mut Client) -> String {
    let told = next(client).expect("it is connected");
    told.expect("a notification").payload().to_owned()
}

fn pid(client: &mut Client) -> i32 {
    let row = client.query_one("select pg_backend_pid()", &[]);
    row.expect("a row").get(0)
}

#[test]
fn idle_sessions_hear_at_once_on_every_node() {
    let stage = Stage::new();
    let mut ears: Vec<_> = (0..3).map(|node| stage.connect(node)).collect();
    for ear in &mut ears {
        ear.batch_execute("listen news").expect("it listens");
    }
    let mut speakers: Vec<_> = (0..3).map(|node| stage.connect(node)).collect();
    for (number, speaker) in speakers.iter_mut().enumerate() {
        let sender = pid(speaker);
        let notify = format!("notify news, '{number}'");
        speaker.batch_execute(&notify).expect("it is told");
        for ear in &mut ears {
            let told = next(ear).expect("it is connected").expect("it hears");
            let heard = (told.process_id(), told.channel(), told.payload());
            assert_eq!(heard, (sender, "news", &*number.to_string()));
        }
    }
    // Not in a block, and then at its end.
    for ear in &mut ears {
        ear.batch_execute("begin; select 1").expect("a block");
    }
    let notify = "select pg_notify('news', n::text) from generate_series(1, 1000) n";
    speakers[0].batch_execute(notify).expect("they are told");
    for ear in &mut ears {
        ear.batch_execute("select 1").expect("a row");
        let early = ear.notifications().iter().count().expect("it is connected");
        assert_eq!(early, 0);
        ear.batch_execute("commit").expect("it ends");
        for number in 1..=1_000 {
            assert_eq!(next_payload(ear), number.to_string());
        }
    }
    // One's own come with the answer, and another database hears nothing.
    let ear = &mut ears[1];
    ear.batch_execute("notify news, 'own'").expect("it is told");
    let own = ear.notifications().iter().count().expect("it is connected");
    assert_eq!(own, 1);
    ear.batch_execute("create database elsewhere")
        .expect("it is made");
    let mut elsewhere = Config::new()
        .host(&stage.node(2).host)
        .port(stage.node(2).port)
        .user("postgres")
        .dbname("elsewhere")
        .connect(NoTls)
        .expect("a session");
    elsewhere
        .batch_execute("notify news, 'elsewhere'")
        .expect("it is told");
    speakers[2]
        .batch_execute("notify news, 'here'")
        .expect("it is told");
    assert_eq!(next_payload(&mut ears[1]), "here");
}

/// What one who speaks was told of what it has told.
#[derive(Default)]
struct Spoken {
    acknowledged: Vec<String>,
    refused: Vec<String>,
}

/// Tells one thing after the other, on one node after the other where it must.
fn speak(nodes: Vec<Endpoint>, first: usize, stop: Arc<AtomicBool>) -> JoinHandle<Spoken> {
    std::thread::spawn(move || {
        let (mut spoken, mut client, mut node) = (Spoken::default(), None, first);
        for number in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            if client.is_none() {
                client = connect(&nodes[node % 3]).ok();
                node += 1;
            }
            let Some(speaker) = &mut client else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let payload = format!("{first} {number}");
            match speaker.batch_execute(&format!("notify news, '{payload}'")) {
                Ok(()) => spoken.acknowledged.push(payload),
                Err(error) => {
                    if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) {
                        spoken.refused.push(payload);
                    }
                    if speaker.is_closed() {
                        client = None;
                    }
                }
            }
        }
        spoken
    })
}

/// One who listens until the last is told, or until its node is lost.
struct Ear {
    heard: Arc<Mutex<Vec<String>>>,
    /// Whether it has heard the last.
    thread: JoinHandle<bool>,
}

impl Ear {
    fn new(mut client: Client) -> Ear {
        client.batch_execute("listen news").expect("it listens");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = heard.clone();
        let thread = std::thread::spawn(move || loop {
            let told = match next(&mut client) {
                Ok(Some(told)) => told.payload().to_owned(),
                Ok(None) => continue,
                Err(_) => return false,
            };
            let is_last = told == LAST;
            kept.lock().expect("nobody panics").push(told);
            if is_last {
                return true;
            }
        });
        Ear { heard, thread }
    }

    fn count(&self) -> usize {
        self.heard.lock().expect("nobody panics").len()
    }
}

/// The numbers that one has told, as they were heard.
fn numbers_of(heard: &[String], speaker: usize) -> Vec<u64> {
    let of = format!("{speaker} ");
    let own = heard.iter().filter_map(|told| told.strip_prefix(&of));
    own.map(|number| number.parse().expect("a number"))
        .collect()
}

#[test]
fn nothing_is_lost_or_told_twice_while_leaders_are_lost() {
    let stage = Stage::new();
    let ears: Vec<_> = (0..6)
        .map(|number| Ear::new(stage.connect(number % 3)))
        .collect();
    let blocked = stage.follower();
    let mut block = stage.connect(blocked);
    block.batch_execute("listen news").expect("it listens");
    block.batch_execute("begin; select 1").expect("a block");
    let stop = Arc::new(AtomicBool::new(false));
    let nodes: Vec<_> = (0..3).map(|node| stage.node(node).clone()).collect();
    let speakers: Vec<_> = (0..3)
        .map(|first| speak(nodes.clone(), first, stop.clone()))
        .collect();
    let grow = |what| {
        let before: Vec<_> = ears.iter().map(Ear::count).collect();
        let more = |ear: &Ear, before: usize| ear.thread.is_finished() || ear.count() > before + 50;
        let all = || {
            ears.iter()
                .zip(&before)
                .all(|(ear, before)| more(ear, *before))
        };
        wait_for(what, PATIENCE, all).expect("it goes on");
    };
    grow("notifications");
    stage.switch_over();
    grow("notifications after leadership was handed over");
    // Whose block went with its leader hears all of it afterwards.
    block.batch_execute("rollback").expect("it ends");
    let lost = stage.kill_leader();
    wait_for("another leader", PATIENCE, || {
        stage.cluster().leader().is_ok_and(|leader| leader != lost)
    })
    .expect("another leads");
    grow("notifications after the leader was killed");
    stop.store(true, Ordering::SeqCst);
    let spoken: Vec<_> = speakers
        .into_iter()
        .map(|speaker| speaker.join().expect("it speaks"))
        .collect();
    let mut last = stage.connect((lost + 1) % 3);
    last.batch_execute(&format!("notify news, '{LAST}'"))
        .expect("it is told");
    let mut heard = Vec::new();
    for (number, ear) in ears.into_iter().enumerate() {
        let is_whole = ear.thread.join().expect("it listens");
        assert_eq!(is_whole, number % 3 != lost, "one at node {}", number % 3);
        heard.push((is_whole, ear.heard.lock().expect("nobody panics").clone()));
    }
    if blocked != lost {
        let mut all = Vec::new();
        while all.last().is_none_or(|told| told != LAST) {
            all.push(next_payload(&mut block));
        }
        heard.push((true, all));
    }
    let (_, whole) = heard.iter().find(|(is_whole, _)| *is_whole).expect("one");
    for (is_whole, heard) in &heard {
        // Each hears the same, in the same order.
        let same = &whole[..heard.len().min(whole.len())];
        assert!(
            heard == same && (!is_whole || heard == whole),
            "{heard:?}\n{whole:?}"
        );
    }
    for (speaker, spoken) in spoken.iter().enumerate() {
        let numbers = numbers_of(whole, speaker);
        let is_once = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(is_once, "of {speaker}: {numbers:?}");
        let missing = spoken.acknowledged.iter();
        let missing: Vec<_> = missing.filter(|told| !whole.contains(told)).collect();
        assert!(missing.is_empty(), "of {speaker}: {missing:?}");
        let refused = spoken.refused.iter();
        let refused: Vec<_> = refused.filter(|told| whole.contains(told)).collect();
        assert!(refused.is_empty(), "of {speaker}: {refused:?}");
    }
}
