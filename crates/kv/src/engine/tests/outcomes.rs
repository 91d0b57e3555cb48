//! What became of a transaction, asked before and after its leader was lost.

use base::engine::{Flight, XidStatus};

use super::*;

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
    assert_eq!(txn.xid(false)?, None);
    let asked = txn.xid(true)?.expect("it was asked for");
    assert_eq!(txn.xid(false)?, Some(asked));
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
        assert_eq!(engine.flight_outcome(FLIGHT)?, None);
        let committed = add_asked(engine, Some(FLIGHT))?;
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let aborted = txn.xid(true)?.expect("it was asked for");
        drop(txn);
        Ok((committed, aborted))
    });
    let check = move |node: &Node| {
        let engine = &*node.engine;
        assert_eq!(status(engine, asked)?, Some(XidStatus::Committed));
        assert_eq!(status(engine, by_commit)?, Some(XidStatus::Committed));
        assert_eq!(status(engine, aborted)?, Some(XidStatus::Aborted));
        assert_eq!(engine.flight_outcome(FLIGHT)?, Some(by_commit));
        let later = Flight {
            number: FLIGHT.number + 1,
            ..FLIGHT
        };
        assert_eq!(engine.flight_outcome(later)?, None);
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
        let asked = txn.xid(true)?.expect("it was asked for");
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
        assert_eq!(engine.flight_outcome(FLIGHT)?, None);
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
