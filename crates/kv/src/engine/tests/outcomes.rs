//! What became of a transaction, asked before and after its leader was lost.

use base::engine::{Flight, XidStatus, PLACES_BETWEEN_TERMS};

use super::*;
use crate::group::outcomes::{session_row, FLIGHTS_PER_LOOK, SESSIONS_KEPT_SECONDS};

const FLIGHT: Flight = Flight {
    session: 77,
    number: 5,
};

fn status(engine: &KvEngine, xid: Xid) -> Result<Option<XidStatus>> {
    engine.xid_status(xid)
}

/// A transaction that adds to an account and has asked for its id; the id, and the commit's.
fn add_asked(engine: &KvEngine, flight: Option<Flight>) -> Result<(Xid, Xid)> {
    let mut txn = engine.begin(TxnOptions {
        flight,
        ..TxnOptions::default()
    })?;
    txn.begin_statement()?;
    assert_eq!(txn.outcome()?.xid(false)?, None);
    let asked = txn.outcome()?.xid(true)?.expect("it was asked for");
    assert_eq!(txn.outcome()?.xid(false)?, Some(asked));
    add(&mut *txn, 1, 1)?;
    assert_eq!(status(engine, asked)?, Some(XidStatus::InProgress));
    let debt = txn.commit(Durability::On)?;
    let by_commit = engine.committed_xid(&debt).expect("it has committed");
    coro::wait(engine.settle(debt, Durability::On))??;
    Ok((asked, by_commit))
}

#[test]
fn outcomes_are_known_after_a_failover() {
    let mut cluster = Cluster::new(41, 3);
    cluster.session(|node| create(&node.engine, 2));
    let ((asked, by_commit), aborted) = cluster.session(|node| {
        let engine = &*node.engine;
        assert_eq!(engine.flight_outcome(FLIGHT, Lsn::ZERO)?, None);
        let committed = add_asked(engine, Some(FLIGHT))?;
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let aborted = txn.outcome()?.xid(true)?.expect("it was asked for");
        drop(txn);
        Ok((committed, aborted))
    });
    let check = move |node: &Node| {
        let engine = &*node.engine;
        assert_eq!(status(engine, asked)?, Some(XidStatus::Committed));
        assert_eq!(status(engine, by_commit)?, Some(XidStatus::Committed));
        assert_eq!(status(engine, aborted)?, Some(XidStatus::Aborted));
        assert_eq!(engine.flight_outcome(FLIGHT, Lsn::ZERO)?, Some(by_commit));
        let later = Flight {
            number: FLIGHT.number + 1,
            ..FLIGHT
        };
        assert_eq!(engine.flight_outcome(later, Lsn::ZERO)?, None);
        let future = Xid(asked.0 + (1 << 50));
        let error = status(engine, future).expect_err("of the future");
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE);
        Ok(())
    };
    cluster.session(check);
    let (leader, _) = cluster.leader();
    cluster.crash(leader);
    cluster.session(check);
    cluster.start(leader);
    cluster.session(check);
}

/// A commit that only the old leader had never happened, and its id says so; so does that of the
/// entry which stands in its place now.
#[test]
fn what_was_cut_is_aborted() {
    let mut cluster = Cluster::new(42, 3);
    cluster.session(|node| create(&node.engine, 2));
    let (old, node) = cluster.leader();
    cluster.cut_off(old, true);
    let engine = node.engine.clone();
    let lost = cluster.world.session(move || {
        let mut txn = engine.begin(TxnOptions {
            flight: Some(FLIGHT),
            ..TxnOptions::default()
        })?;
        txn.begin_statement()?;
        let asked = txn.outcome()?.xid(true)?.expect("it was asked for");
        add(&mut *txn, 1, 1)?;
        let debt = txn.commit(Durability::Off)?;
        Ok::<_, Error>((
            asked,
            engine.committed_xid(&debt).expect("it has committed"),
        ))
    });
    let (asked, by_commit) = lost.expect("it has appended");
    cluster.nodes.lock().remove(&old);
    let check = move |node: &Node| {
        let engine = &*node.engine;
        assert_eq!(status(engine, by_commit)?, Some(XidStatus::Aborted));
        assert_ne!(status(engine, asked)?, Some(XidStatus::Committed));
        assert_eq!(engine.flight_outcome(FLIGHT, Lsn::ZERO)?, None);
        Ok(())
    };
    cluster.session(check);
    cluster.cut_off(old, false);
    cluster.nodes.lock().insert(old, node);
    cluster.world.pass(Duration::from_secs(3));
    cluster.session(check);
}

#[test]
fn a_debt_of_several_terms_is_settled_whole() {
    let mut cluster = Cluster::new(43, 3);
    let before = cluster.session(|node| {
        create(&node.engine, 2)?;
        let mut txn = begin(&node.engine)?;
        txn.begin_statement()?;
        add(&mut *txn, 1, 1)?;
        let debt = txn.commit(Durability::On)?;
        coro::wait(node.engine.settle(debt.clone(), Durability::On))??;
        Ok(debt)
    });
    let (first, _) = cluster.leader();
    cluster.crash(first);
    cluster.session(move |node| {
        let mut txn = begin(&node.engine)?;
        txn.begin_statement()?;
        add(&mut *txn, 1, 1)?;
        let mut debt = txn.commit(Durability::On)?;
        debt.merge(&before);
        assert_eq!(debt.groups().count(), 2, "of two terms: {debt:?}");
        coro::wait(node.engine.settle(debt.clone(), Durability::On))??;
        assert!(node.engine.is_settled(&debt, Durability::On), "{debt:?}");
        Ok(())
    });
}

/// Ids grow over elections, and those of a leadership that is over are never given again.
#[test]
fn ids_grow_whoever_leads() {
    let mut cluster = Cluster::new(44, 3);
    cluster.session(|node| create(&node.engine, 2));
    let mut ids = Vec::new();
    for _ in 0..6 {
        for _ in 0..2 {
            // The id that was asked for lies above all commits before it, and so at the place of
            // the next one.
            let (asked, by_commit) = cluster.session(|node| add_asked(&node.engine, None));
            ids.extend([by_commit, asked]);
        }
        let (leader, _) = cluster.leader();
        cluster.crash(leader);
        cluster.leader();
        cluster.start(leader);
    }
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted, ids);
    cluster.session(move |node| {
        for id in ids.clone() {
            let status = status(&node.engine, id)?;
            assert_eq!(status, Some(XidStatus::Committed), "{id}");
        }
        // An id between two that were given was given to nobody that has committed.
        let between = Xid(ids[3].0 + (PLACES_BETWEEN_TERMS / 2) * 2);
        let between = Xid(between.0 & !1);
        assert_eq!(status(&node.engine, between)?, Some(XidStatus::Aborted));
        assert_eq!(status(&node.engine, Xid(7))?, None);
        Ok(())
    });
}

/// Whoever deletes a session's row goes by a clock. Where that is wrong, the flight that the row
/// spoke of is not taken for one that nothing was committed of.
#[test]
fn a_flight_whose_row_is_gone_is_not_sent_again() {
    let mut cluster = Cluster::new(45, 3);
    cluster.session(|node| create(&node.engine, 2));
    cluster.session(|node| {
        let engine = &*node.engine;
        let since = node.engine.group().committed();
        // As a leader whose clock is days behind would write it.
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let now = node.engine.group().wall_micros() / 1_000_000;
        let row = session_row(FLIGHT, now - SESSIONS_KEPT_SECONDS - 1);
        let key = FLIGHT.session.to_be_bytes();
        txn.lock_row(
            TreeId::SESSIONS,
            &key,
            RowLock::Update,
            LockWait::Block,
            &mut Vec::new(),
        )?;
        txn.insert(TreeId::SESSIONS, &key, &row)?;
        let debt = txn.commit(Durability::On)?;
        coro::wait(engine.settle(debt, Durability::On))??;
        assert_ne!(engine.flight_outcome(FLIGHT, since)?, None);
        let after = node.engine.group().committed();
        // Looks from the first row on.
        let looking = Flight {
            session: 0,
            number: FLIGHTS_PER_LOOK,
        };
        add_asked(engine, Some(looking))?;
        assert_eq!(engine.flight_outcome(FLIGHT, since)?, Some(Xid(0)));
        assert_eq!(engine.flight_outcome(FLIGHT, after)?, None);
        let never = Flight {
            session: 99,
            number: 1,
        };
        assert_eq!(engine.flight_outcome(never, after)?, None);
        Ok(())
    });
}
