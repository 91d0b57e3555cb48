//! Calls and answers, there and back.

use super::*;
use base::engine::{IndexColumn, IndexDescriptor, Isolation, LockTarget, Rekeyed, RowKey};
use base::key::{ColumnOrder, KeyKind};
use base::{Lsn, Position};
use spanning::SpanningId;

const TREE: TreeId = TreeId(20_000);

fn build() -> Build {
    let index = IndexDescriptor {
        table: TREE,
        columns: vec![IndexColumn {
            column: 1,
            kind: KeyKind::Bytes,
            order: ColumnOrder::DESCENDING,
        }],
        unique: true,
        missing: Vec::new(),
    };
    Build {
        source: TREE,
        rekeyed: Some(Rekeyed {
            tree: TreeId(20_001),
            key: RowKey::Columns(index.clone()),
        }),
        indexes: vec![(TreeId(20_002), index)],
    }
}

fn calls() -> Vec<Call> {
    let key = || b"key".to_vec();
    let options = TxnOptions {
        isolation: Isolation::Serializable,
        read_only: true,
        session: Some(SessionId(7)),
        ..TxnOptions::default()
    };
    let group = GroupId(2);
    let term = Term(3);
    let home = Participant {
        group: GroupId(1),
        term: Term(1 << 40),
    };
    let preparing = Preparing {
        id: SpanningId {
            group: GroupId(1),
            term,
            number: 9,
        },
        unfinished: 4,
        participants: vec![Participant { group, term }],
        heard: Timestamp(-5),
        durability: Durability::RemoteApply,
    };
    let (forward, backward) = (Direction::Forward, Direction::Backward);
    vec![
        Call::Begin(group, home, options),
        Call::Cancel,
        Call::Blockers(group, SessionId(1 << 20)),
        Call::SetOptions(TxnOptions::default()),
        Call::SetLockTimeout(Duration::from_millis(1_500)),
        Call::NextCommand,
        Call::ExpectSnapshot,
        Call::GiveUpSnapshot,
        Call::Savepoint(1),
        Call::RollbackTo(2),
        Call::Release(3),
        Call::NoteMoved(TREE, key()),
        Call::Withdraw(Ticket::ALONE),
        Call::DropView(4),
        Call::End,
        Call::BeginStatement,
        Call::Confirm,
        Call::Look(Timestamp(7)),
        Call::FindView(Timestamp(i64::MIN)),
        Call::TakeView,
        Call::HasSameView,
        Call::IsSafe,
        Call::KeepView(5),
        Call::SwapView(6),
        Call::Get(TREE, key()),
        Call::GetToLock(TREE, key(), RowLock::Update),
        Call::Scan(TREE, KeyRange::all(), forward, 10),
        Call::ScanNewest(TREE, KeyRange::prefix(b"k"), backward, u64::MAX),
        Call::LockRow(TREE, key(), RowLock::Share, LockWait::Skip),
        Call::LockRows(
            TREE,
            vec![key(), b"k2".to_vec()],
            RowLock::Update,
            LockWait::Skip,
        ),
        Call::GetAll(TREE, vec![key(), Vec::new()]),
        Call::LockRowInTheWay(TREE, key(), RowLock::NoKeyUpdate),
        Call::LockKey(TREE, key(), RowLock::KeyShare, LockWait::NoWait),
        Call::WaitForKey(TREE, key(), RowLock::Update),
        Call::Announce(TREE, key(), b"note".to_vec()),
        Call::Announced(TREE, b"pre".to_vec(), Ticket { number: 8, mark: 1 }),
        Call::WaitForAnnounced(Announced {
            name: key(),
            note: None,
        }),
        Call::LockTable(TREE, TableLock::AccessExclusive, LockWait::Block),
        Call::LockTables(vec![(TREE, TableLock::RowExclusive)]),
        Call::Insert(TREE, key(), b"row".to_vec()),
        Call::InsertNew(TREE, key(), Vec::new()),
        Call::Update(TREE, key(), b"row".to_vec()),
        Call::Delete(TREE, key()),
        Call::Post(Post(1), TREE, key(), Posted::Insert(b"row".to_vec())),
        Call::Post(Post(2), TREE, key(), Posted::InsertNew(Vec::new())),
        Call::Post(Post(300), TREE, key(), Posted::Update(b"row".to_vec())),
        Call::Posted(Post(2)),
        Call::WasMoved(TREE, key()),
        Call::IsWrittenByCommand(TREE, key()),
        Call::Build(build()),
        Call::PreparePart(preparing),
        Call::Commit(Durability::On),
    ]
}

#[test]
fn calls_come_back() {
    let mut frame = Vec::new();
    calls().iter().for_each(|call| call.encode(&mut frame));
    assert_eq!(Call::decode_all(&frame).unwrap(), calls());
    for cut in 1..frame.len() {
        // Whatever it is, it is no panic.
        let _ = Call::decode_all(&frame[cut..]);
    }
}

#[test]
fn what_is_too_long_is_an_error_of_its_own() {
    let row = Answer::Row(Some(vec![0; FRAME_BYTES_MAX]));
    let frame = encode_answer(&Ok(row), &Condition::default());
    let (answer, _) = decode_answer(&frame).unwrap();
    assert_eq!(
        answer.unwrap_err().state(),
        SqlState::PROGRAM_LIMIT_EXCEEDED
    );
    assert!(check_fits(FRAME_BYTES_MAX).is_ok());
    assert!(check_fits(FRAME_BYTES_MAX + 1).is_err());
}

#[test]
fn answers_come_back() {
    let mut batch = RowBatch::default();
    batch.push(b"a", b"1");
    batch.push(b"b", b"");
    let mut condition = Condition {
        has_snapshot: true,
        stake: Stake {
            has_written: true,
            is_held: false,
        },
        ..Condition::default()
    };
    let (term, lsn) = (Term(2), Lsn(70));
    condition.debt.add(GroupId(2), Position { term, lsn });
    let error = Error::serialization("late")
        .with_detail("a detail")
        .with_hint("a hint");
    let answers = [
        Err(error),
        Ok(Answer::Done),
        Ok(Answer::Flag(true)),
        Ok(Answer::Done),
        Ok(Answer::Locks(vec![
            LockInfo {
                target: LockTarget::Row(TREE, b"key".to_vec()),
                session: Some(SessionId(7)),
                mode: "ForUpdateLock",
                granted: false,
                waits_since: Some(Timestamp(-5)),
            },
            LockInfo {
                target: LockTarget::Tree(TREE),
                session: None,
                mode: "AccessShareLock",
                granted: true,
                waits_since: None,
            },
        ])),
        Ok(Answer::Prepared(Prepared::default())),
        Ok(Answer::Prepared(Prepared {
            proposed: Timestamp(-7),
            voters: vec![NodeId(1), NodeId(300)],
        })),
        Ok(Answer::Flags(vec![true, false])),
        Ok(Answer::Timestamp(None)),
        Ok(Answer::Timestamp(Some(Timestamp(-1)))),
        Ok(Answer::Row(None)),
        Ok(Answer::Row(Some(b"row".to_vec()))),
        Ok(Answer::Rows(batch, Some(KeyRange::point(b"c")))),
        Ok(Answer::Rows(RowBatch::default(), None)),
        Ok(Answer::Locked(LockedRow::Changed, b"newest".to_vec())),
        Ok(Answer::AllRows(vec![None, Some(b"row".to_vec())])),
        Ok(Answer::RowLocked(None)),
        Ok(Answer::RowLocked(Some((
            b"row".to_vec(),
            LockedRow::Unchanged,
            Vec::new(),
        )))),
        Ok(Answer::AllLocked(vec![
            (LockedRow::Gone, Vec::new()),
            (LockedRow::Changed, b"newest".to_vec()),
        ])),
        Ok(Answer::Taken(None)),
        Ok(Answer::Taken(Some((Post(3), TREE)))),
        Ok(Answer::Ticket(Ticket::ALONE)),
        Ok(Answer::Announced(vec![Announced {
            name: b"n".to_vec(),
            note: Some(b"m".to_vec()),
        }])),
        Ok(Answer::Inserted(Inserted::Done)),
        Ok(Answer::Inserted(Inserted::Duplicate(TREE))),
        Ok(Answer::Built(Built::Done)),
        Ok(Answer::Built(Built::NullKey { column: 3 })),
        Ok(Answer::Sessions(vec![SessionId(1), SessionId(2)])),
    ];
    for answer in answers {
        let frame = encode_answer(&answer, &condition);
        let (found, known) = decode_answer(&frame).unwrap();
        assert_eq!(format!("{found:?}"), format!("{answer:?}"));
        assert_eq!(known, condition);
    }
}
