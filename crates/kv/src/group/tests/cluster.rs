//! Groups of a few nodes, and what tests ask of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::engine::{IndexColumn, IndexDescriptor, TreeDescriptor, TreeKind};
use base::key::{ColumnOrder, KeyKind};
use base::row::{RowBuilder, RowDelta};
use base::{Durability, GroupId, Lsn, NodeId, Position, Result, TreeId};
use storage::Store;

use crate::apply::for_each_row;
use crate::check::{check, CheckReport};
use crate::config::{GroupConfig, GroupSettings, Member};
use crate::directory::Directory;
use crate::group::meta::Meta;
use crate::group::{CommitRequest, Group};
use crate::record::{Change, RowChange};
use crate::testing::World;
use crate::write_set::Changes;

pub const TABLE: TreeId = TreeId(16_384);
pub const INDEX: TreeId = TreeId(16_385);

/// A world and the groups in it.
pub struct Cluster {
    pub world: World,
    pub groups: BTreeMap<NodeId, Arc<Group>>,
    pub members: Vec<Member>,
    pub settings: GroupSettings,
    pub incarnation: u64,
    pub begun_after: Lsn,
}

impl Cluster {
    /// Starts so many voters.
    pub fn new(seed: u64, voters: u64) -> Cluster {
        let settings = GroupSettings {
            segment_bytes: 64 << 10,
            chunk_bytes: 1 << 20,
            ..GroupSettings::default()
        };
        Cluster::with(seed, voters, settings)
    }

    /// Starts so many voters with these settings.
    pub fn with(seed: u64, voters: u64, settings: GroupSettings) -> Cluster {
        Cluster::of(seed, (1..=voters).map(|id| (id, true)).collect(), settings)
    }

    /// Starts one voter and a learner.
    pub fn learning(seed: u64) -> Cluster {
        Cluster::of(seed, vec![(1, true), (2, false)], GroupSettings::default())
    }

    fn of(seed: u64, nodes: Vec<(u64, bool)>, settings: GroupSettings) -> Cluster {
        let member = |(id, voter): &(u64, bool)| Member {
            node: NodeId(*id),
            name: format!("n{id}").into(),
            peer_address: "".into(),
            sql_address: "".into(),
            voter: *voter,
            ..Member::default()
        };
        let mut cluster = Cluster {
            world: World::new(seed),
            groups: BTreeMap::new(),
            members: nodes.iter().map(member).collect(),
            settings,
            incarnation: 1,
            begun_after: Lsn::ZERO,
        };
        for (id, _) in nodes {
            cluster.start(NodeId(id));
        }
        cluster
    }

    fn config(&self, node: NodeId) -> GroupConfig {
        GroupConfig {
            cluster: 77,
            group: GroupId(1),
            node,
            directory: "g1".to_owned(),
            founded: Directory {
                begun_after: self.begun_after,
                ..Directory::founded(&self.members, self.incarnation)
            },
            settings: self.settings.clone(),
            room: self.settings.room(),
        }
    }

    pub fn start(&mut self, node: NodeId) {
        self.try_start(node).expect("the group opens");
    }

    pub fn try_start(&mut self, node: NodeId) -> Result<()> {
        let host = self.world.start(node);
        let config = self.config(node);
        let transport = host.clone();
        let open = Group::open(host, config, transport, Arc::new(()));
        let group = self.world.run(open)?;
        self.world.attach(node, group.clone());
        self.groups.insert(node, group);
        Ok(())
    }

    pub fn crash(&mut self, node: NodeId) {
        self.groups.remove(&node);
        self.world.crash(node);
    }

    /// Stops all nodes and starts them again with what they had, as if their log went up to there:
    /// each from a checkpoint at that LSN.
    pub fn move_on(&mut self, to: Lsn) {
        let groups: Vec<_> = self.groups.values().cloned().collect();
        for group in groups {
            let made = async move { group.checkpoint_of_now().await };
            self.world.run(made).expect("a checkpoint");
        }
        for node in self.groups.keys().copied().collect::<Vec<_>>() {
            self.crash(node);
            let host = self.world.start(node);
            let options = self.config(node).store_options();
            let moved = async move {
                let store = Store::open(host, "g1/store", options).await?;
                let mut meta = Meta::decode(&store.checkpoint().meta)?;
                meta.position.lsn = to;
                store.apply(to, &[])?;
                store.start_checkpoint(meta.encode())?;
                assert!(store.write_checkpoint(25).await?);
                store.publish_checkpoint().await
            };
            assert_eq!(self.world.run(moved), Ok(true));
            self.world.crash(node);
        }
        for member in self.members.clone() {
            self.start(member.node);
        }
    }

    /// The node that leads with a lease; waits for one.
    pub fn leader(&mut self) -> (NodeId, Arc<Group>) {
        let groups = self.groups.clone();
        let leads = |group: &Arc<Group>| group.leading().is_some_and(|term| group.has_lease(term));
        self.world.until("a leader", |_| groups.values().any(leads));
        let (node, group) = groups
            .iter()
            .find(|(_, group)| leads(group))
            .expect("found");
        (*node, group.clone())
    }

    /// Commits these changes on the leader, as a session would.
    pub fn commit(&mut self, changes: Vec<RowChange>) -> Result<Position> {
        let (_, group) = self.leader();
        self.world.session(move || commit(&group, changes))
    }

    /// Commits and waits for a level.
    pub fn commit_at(&mut self, changes: Vec<RowChange>, level: Durability) -> Position {
        let (_, group) = self.leader();
        let (group, position) = self.world.session(move || {
            let position = commit(&group, changes).expect("it commits");
            (group, position)
        });
        self.world
            .run(group.settle(position, level))
            .expect("it is settled");
        position
    }

    /// Makes the table and its index.
    pub fn create_table(&mut self) {
        let table = TreeDescriptor {
            id: TABLE,
            kind: TreeKind::Table,
        };
        let column = IndexColumn {
            column: 1,
            kind: KeyKind::Bytes,
            order: ColumnOrder::ASCENDING,
        };
        let index = TreeDescriptor {
            id: INDEX,
            kind: TreeKind::Index(IndexDescriptor {
                table: TABLE,
                columns: vec![column],
                unique: false,
                missing: Vec::new(),
            }),
        };
        let changes = [table, index].map(|descriptor| RowChange {
            tree: TreeId::DESCRIPTORS,
            key: descriptor.id.descriptor_key(),
            change: Change::Insert(descriptor.to_row()),
        });
        self.commit_at(changes.into(), Durability::On);
    }

    /// Checks every node's directory, whatever tables there are.
    pub fn check_sound(&mut self) {
        for node in self.groups.keys().copied().collect::<Vec<_>>() {
            self.try_check(node).expect("a sound directory");
        }
    }

    pub fn try_check(&mut self, node: NodeId) -> Result<CheckReport> {
        let host = self.world.host(node);
        let check = check(host, 77, GroupId(1), "g1");
        self.world.run(check)
    }

    /// Checks every node's directory, as it is on disk.
    pub fn check(&mut self) {
        for node in self.groups.keys().copied().collect::<Vec<_>>() {
            let report = self.try_check(node).expect("a sound directory");
            assert_eq!(report.trees[&TABLE], report.trees[&INDEX], "{report:?}");
            assert!(report.last.lsn >= report.checkpoint, "{report:?}");
        }
    }

    /// Waits until every node that runs shows the same, and checks that it does.
    pub fn assert_equal(&mut self) {
        let groups: Vec<_> = self.groups.values().cloned().collect();
        self.world.until("replicas to be equal", |_| {
            let positions: Vec<_> = groups.iter().map(|g| g.core.lock().applied).collect();
            let committed = groups.iter().map(|g| g.gate.commit()).min();
            positions.windows(2).all(|pair| pair[0] == pair[1])
                && committed == Some(positions[0].lsn)
        });
        let first = rows(&groups[0]);
        for group in &groups {
            assert_eq!(rows(group), first, "{group:?}");
            assert_index(group);
        }
    }
}

pub fn commit(group: &Arc<Group>, changes: Vec<RowChange>) -> Result<Position> {
    let snapshot = group.snapshot()?;
    let txn = group.next_txn()?;
    group.commit(CommitRequest {
        term: snapshot.term(),
        txn,
        changes: Changes::All(changes),
        durability: Durability::On,
        serial: None,
    })
}

pub fn row(key: &str, value: &str) -> Vec<u8> {
    RowBuilder::new(2)
        .value(key.as_bytes())
        .value(value.as_bytes())
        .finish()
}

fn change(key: &str, change: Change) -> RowChange {
    RowChange {
        tree: TABLE,
        key: key.into(),
        change,
    }
}

pub fn insert(key: &str, value: &str) -> Vec<RowChange> {
    vec![change(key, Change::Insert(row(key, value)))]
}

pub fn update(key: &str, old: &str, new: &str) -> Vec<RowChange> {
    let delta = RowDelta::between(&row(key, old), &row(key, new)).expect("rows");
    vec![change(key, Change::Update(delta))]
}

pub fn delete(key: &str) -> Vec<RowChange> {
    vec![change(key, Change::Delete)]
}

/// The rows of the table: key and value.
pub fn rows(group: &Group) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    for_each_row(&group.store(), TABLE, |key, row| {
        let row = base::row::Row::parse(row)?;
        rows.insert(text(key), text(row.column(1).unwrap_or_default()));
        Ok(())
    })
    .expect("a readable table");
    rows
}

/// Every row has its entry in the index, and every entry its row.
pub fn assert_index(group: &Group) {
    let mut entries = Vec::new();
    for_each_row(&group.store(), INDEX, |key, _| {
        entries.push(key.to_vec());
        Ok(())
    })
    .expect("a readable index");
    let index = group.index(INDEX).expect("the index");
    let mut expected: Vec<_> = rows(group)
        .iter()
        .map(|(key, value)| {
            let row = row(key, value);
            let row = base::row::Row::parse(&row).expect("a row");
            crate::registry::index_key(&index, &row, key.as_bytes()).expect("a key")
        })
        .collect();
    expected.sort();
    assert_eq!(entries, expected, "{group:?}");
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
