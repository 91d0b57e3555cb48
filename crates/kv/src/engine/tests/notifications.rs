//! Notifications: heard in the order of commits, by whoever listens, over lost leaders.

use std::rc::Rc;

use base::engine::{Channel, Heard, Listener, Notification, Notifications};

use super::*;
use crate::notifications::{row_of, unplaced, DELETED, KEPT_SECONDS};

const DATABASE: u32 = 5;

/// More than anybody hears here.
const ALL: usize = 1 << 20;

fn told(channel: &str, payload: &str) -> Notification {
    Notification {
        channel: channel.to_owned(),
        payload: payload.to_owned(),
        sender: 42,
    }
}

/// Tells a channel something, and waits until that is committed.
fn notify(engine: &KvEngine, channel: &str, payloads: &[&str]) -> Result<()> {
    let mut txn = begin(engine)?;
    let all: Vec<_> = payloads
        .iter()
        .map(|payload| Rc::new(told(channel, payload)))
        .collect();
    txn.notifying()?.notify(DATABASE, &all)?;
    commit(engine, txn)
}

/// One who listens to a channel from now on.
fn listen(engine: &KvEngine, channel: &str) -> Result<Box<dyn Listener>> {
    let mut listener = engine.listener(DATABASE);
    let since = listener.announce(&mut [channel].into_iter())?;
    let name = channel.to_owned();
    listener.listen(Channel { name, since });
    Ok(listener)
}

/// One who goes on where another was.
fn go_on(engine: &KvEngine, channels: &[Channel], heard: Heard) -> Box<dyn Listener> {
    let mut listener = engine.listener(DATABASE);
    listener.resume(channels.to_vec(), heard);
    listener
}

fn payloads(listener: &mut dyn Listener, bytes_max: usize) -> Result<Vec<String>> {
    let taken = listener.take(bytes_max)?;
    Ok(taken.into_iter().map(|told| told.payload).collect())
}

#[test]
fn who_listens_hears_its_channel_in_order() {
    let mut cluster = Cluster::new(51, 3);
    cluster.session(|node| {
        let engine = &*node.engine;
        notify(engine, "jobs", &["before"])?;
        let mut jobs = listen(engine, "jobs")?;
        let mut mail = listen(engine, "mail")?;
        let mut elsewhere = engine.listener(DATABASE + 1);
        elsewhere.resume(jobs.channels().to_vec(), jobs.heard());
        assert_eq!(payloads(&mut *jobs, ALL)?, [""; 0]);
        notify(engine, "jobs", &["1", "2"])?;
        notify(engine, "mail", &["m"])?;
        notify(engine, "jobs", &["3"])?;
        assert!(jobs.is_due() && mail.is_due());
        // As much as is asked for, and the rest after it.
        assert_eq!(payloads(&mut *jobs, 1)?, ["1"]);
        assert!(jobs.is_due());
        assert_eq!(payloads(&mut *jobs, ALL)?, ["2", "3"]);
        assert!(!jobs.is_due());
        assert_eq!(payloads(&mut *mail, ALL)?, ["m"]);
        assert_eq!(payloads(&mut *elsewhere, ALL)?, [""; 0]);
        // What is not committed is heard by nobody.
        let mut txn = begin(engine)?;
        txn.notifying()?
            .notify(DATABASE, &[Rc::new(told("jobs", "never"))])?;
        drop(txn);
        jobs.unlisten(Some("jobs"));
        notify(engine, "jobs", &["4"])?;
        assert!(!jobs.is_due() && jobs.channels().is_empty());
        assert_eq!(engine.usage(), 0.0);
        Ok(())
    });
}

#[test]
fn a_new_leader_tells_what_the_old_one_has_not() {
    for seed in 0..5 {
        let mut cluster = Cluster::new(60 + seed, 3);
        let (channels, heard) = cluster.session(|node| {
            let engine = &*node.engine;
            let mut listener = listen(engine, "jobs")?;
            notify(engine, "jobs", &["1", "2"])?;
            assert_eq!(payloads(&mut *listener, 1)?, ["1"]);
            let told = (listener.channels().to_vec(), listener.heard());
            notify(engine, "jobs", &["3"])?;
            Ok(told)
        });
        let (old, _) = cluster.leader();
        cluster.crash(old);
        let before = (channels.clone(), heard);
        let heard = cluster.session(move |node| {
            let engine = &*node.engine;
            let mut listener = go_on(engine, &before.0, before.1);
            // What the old one has not said is committed is heard once this one knows.
            let mut told = payloads(&mut *listener, ALL)?;
            notify(engine, "jobs", &["4"])?;
            told.extend(payloads(&mut *listener, ALL)?);
            assert_eq!(told, ["2", "3", "4"]);
            Ok(listener.heard())
        });
        // One that was there all the time has heard the same.
        cluster.start(old);
        cluster.session(move |node| {
            let mut listener = go_on(&node.engine, &channels, heard);
            assert_eq!(payloads(&mut *listener, ALL)?, [""; 0]);
            Ok(())
        });
    }
}

/// Writes a notification as it was written long ago.
fn notify_long_ago(node: &Node, payload: &str) -> Result<()> {
    let mut txn = begin(&node.engine)?;
    txn.begin_statement()?;
    let seconds = node.engine.group().wall_micros() / 1_000_000 - KEPT_SECONDS - 1;
    let row = row_of(DATABASE, &told("jobs", payload), seconds);
    txn.insert(TreeId::NOTIFICATIONS, &unplaced(0), &row)?;
    commit(&node.engine, txn)
}

fn kept(engine: &KvEngine) -> Result<usize> {
    let rows = read_all(engine, TreeId::NOTIFICATIONS)?;
    Ok(rows.iter().filter(|(key, _)| key != DELETED).count())
}

#[test]
fn old_notifications_go_once_all_have_heard_them() {
    let mut cluster = Cluster::new(71, 1);
    let (channels, heard) = cluster.session(|node| {
        let engine = &*node.engine;
        let mut listener = listen(engine, "jobs")?;
        let start = (listener.channels().to_vec(), listener.heard());
        for payload in ["1", "2", "3"] {
            notify_long_ago(node, payload)?;
        }
        let many: Vec<_> = (0..64).map(|_| "x").collect();
        notify(engine, "mail", &many)?;
        assert_eq!(kept(engine)?, 3 + 64);
        assert!(engine.usage() > 0.0);
        assert_eq!(payloads(&mut *listener, 1)?, ["1"]);
        notify(engine, "mail", &many)?;
        // It may not have heard all of that commit.
        assert_eq!(kept(engine)?, 3 + 2 * 64);
        assert_eq!(payloads(&mut *listener, ALL)?, ["2", "3"]);
        notify(engine, "mail", &many)?;
        assert_eq!(kept(engine)?, 3 * 64);
        // Who has heard all goes on; who has not is told so.
        let (channels, all) = (listener.channels().to_vec(), listener.heard());
        assert_eq!(payloads(&mut *go_on(engine, &channels, all), ALL)?, [""; 0]);
        Ok(start)
    });
    cluster.session(move |node| {
        let mut late = go_on(&node.engine, &channels, heard);
        let error = late.take(ALL).unwrap_err();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        Ok(())
    });
}

/// A transaction that tells a great deal, and one that also writes a great deal, in chunks.
#[test]
fn many_notifications_are_told_in_order() {
    let mut cluster = Cluster::new(81, 3);
    cluster.session(|node| create(&node.engine, 1));
    cluster.session(|node| {
        let engine = &*node.engine;
        let mut listener = listen(engine, "jobs")?;
        let many: Vec<_> = (0..5_000).map(|number| number.to_string()).collect();
        let all: Vec<_> = many
            .iter()
            .map(|payload| Rc::new(told("jobs", payload)))
            .collect();
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        for number in 0..3_000u32 {
            let row = RowBuilder::new(1).value(&[&number.to_be_bytes()[..], &[7; 100]].concat());
            txn.insert(LEDGER, &number.to_be_bytes(), &row.finish())?;
        }
        txn.notifying()?.notify(DATABASE, &all)?;
        commit(engine, txn)?;
        let mut heard = Vec::new();
        while listener.is_due() {
            heard.extend(payloads(&mut *listener, 10_000)?);
        }
        assert_eq!(heard, many);
        Ok(())
    });
}
