//! `quorate.nodes` and `quorate.groups`: who belongs to the cluster, and who leads.
//! `quorate.tablets`: what of the current database lies in which group.
//! `quorate.inconsistencies`: where replicas hold different rows, as far as comparing them has shown.
//!
//! How far other nodes are is known where the leader is; elsewhere it is null.

use base::engine::ClusterStatus;
use base::Result;

use super::replication::text_or_null;
use crate::exec::Exec;
use catalog::Catalog;
use planner::plan::Row;
use types::Datum;

fn number(number: u64) -> Datum {
    Datum::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn count(count: usize) -> Datum {
    Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX))
}

pub(super) fn nodes(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.host.shared().engine.cluster.status();
    let leads = status.leader == Some(status.node);
    let row = |replica: &base::engine::ReplicaStatus| {
        let role = match (status.leader == Some(replica.node), replica.voter) {
            (true, _) => "leader",
            (false, true) => "follower",
            (false, false) => "learner",
        };
        let is_known = leads || replica.node == status.node;
        let figure = |figure: Datum| if is_known { figure } else { Datum::Null };
        vec![
            number(replica.node.0),
            Datum::text(&*replica.name),
            Datum::text(role),
            Datum::Bool(replica.voter),
            Datum::text(&*replica.sql_address),
            Datum::text(&*replica.peer_address),
            Datum::text(&*replica.zone),
            Datum::Int4(i32::try_from(replica.priority).unwrap_or(i32::MAX)),
            figure(Datum::Bool(replica.connected)),
            figure(Datum::Unsigned8(replica.received.0)),
            figure(Datum::Unsigned8(replica.flushed.0)),
            figure(Datum::Unsigned8(replica.applied.0)),
            // Every node knows what it has sent itself.
            match replica.node == status.node {
                true => Datum::Null,
                false => number(replica.sent_bytes),
            },
        ]
    };
    Ok(status.replicas.iter().map(row).collect())
}

pub(super) fn groups(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let groups = cx.host.shared().engine.cluster.groups();
    Ok(groups.iter().map(group).collect())
}

fn group(status: &ClusterStatus) -> Row {
    let mut replicas = status.replicas.iter();
    let leader = replicas.find(|replica| Some(replica.node) == status.leader);
    let voters = status.replicas.iter().filter(|replica| replica.voter);
    let voters = voters.count();
    vec![
        count(status.group.0 as usize),
        text_or_null(leader.map(|leader| &*leader.name)),
        number(status.term.0),
        number(status.incarnation),
        Datum::Unsigned8(status.begun_after.0),
        Datum::Unsigned8(status.commit.0),
        count(voters),
        count(status.replicas.len() - voters),
        Datum::text(&*status.leader_zone),
        Datum::Bool(status.changing),
    ]
}

/// A tablet is a table or an index, from its first key to its last.
pub(super) fn tablets(catalog: &Catalog, _: &mut Exec<'_>) -> Result<Vec<Row>> {
    let row = |oid: u32, tree: base::TreeId| {
        let group = count(tree.group().0 as usize);
        vec![Datum::Oid(oid), Datum::Null, Datum::Null, group]
    };
    let mut rows = Vec::new();
    for table in catalog.tables.iter().filter(|table| table.kind.has_rows()) {
        rows.push(row(table.oid, table.tree));
        let indexes = table.indexes.iter().filter(|index| !index.primary);
        rows.extend(indexes.map(|index| row(index.oid, index.tree)));
    }
    Ok(rows)
}

pub(super) fn inconsistencies(_: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    let status = cx.host.shared().engine.cluster.status();
    let names = |nodes: &[base::NodeId]| {
        let replicas = status.replicas.iter();
        let named = replicas.filter(|replica| nodes.contains(&replica.node));
        let names: Vec<&str> = named.map(|replica| &*replica.name).collect();
        text_or_null(Some(&*names.join(", ")).filter(|names| !names.is_empty()))
    };
    let row = |one: &base::engine::Inconsistency| {
        vec![
            count(status.group.0 as usize),
            Datum::Oid(u32::try_from(one.tree.0).unwrap_or(0)),
            Datum::bytea(&one.from),
            one.to.as_ref().map_or(Datum::Null, Datum::bytea),
            Datum::Unsigned8(one.lsn.0),
            names(&one.deviating),
            names(&one.agreeing),
        ]
    };
    Ok(status.consistency.inconsistencies.iter().map(row).collect())
}
