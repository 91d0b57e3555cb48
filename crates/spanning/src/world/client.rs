//! What sessions do: append to lists of one group or several, read one group as it is, and read
//! several at one timestamp, some of them twice.

use std::collections::BTreeMap;

use base::{GroupId, Term, Timestamp};

use super::check::{Read, Write, WriteOutcome};
use super::{Event, Item, Packet, Reply, Request, Values, World, KEYS, MILLISECOND, NODES};
use crate::messages::{Participant, SpanningId};
use crate::snapshot::Snapshot;

/// A session.
#[derive(Default)]
pub(super) struct Client {
    /// The number of what it does; answers to anything before are late.
    op: u64,
    begun: u64,
    heard: Timestamp,
    doing: Doing,
}

#[derive(Default)]
enum Doing {
    #[default]
    Nothing,
    /// Learns in which terms the groups are led.
    Leads {
        item: Item,
        keys: BTreeMap<GroupId, Vec<u8>>,
        terms: BTreeMap<GroupId, Term>,
    },
    Commits {
        write: usize,
    },
    Reads,
    /// Takes a snapshot of some groups.
    Takes {
        groups: Vec<GroupId>,
        last: BTreeMap<GroupId, Vec<SpanningId>>,
        snapshot: Snapshot,
    },
    /// Waits for prepares that stood when it did.
    Settles {
        groups: Vec<GroupId>,
        standing: BTreeMap<GroupId, Vec<SpanningId>>,
        snapshot: Snapshot,
    },
    ReadsAt {
        groups: Vec<GroupId>,
        snapshot: Snapshot,
        values: Values,
        first: Option<Values>,
    },
}

impl World {
    fn ask(&mut self, client: usize, group: GroupId, request: Request) {
        let op = self.clients[client].op;
        let packet = Packet::Request {
            client,
            op,
            request,
        };
        self.send_to_leader(client % NODES, group, packet);
    }

    /// A session has waited long enough for what it does, or has nothing to do.
    pub(super) fn wake(&mut self, client: usize, op: u64, faulty: bool) {
        if self.clients[client].op != op {
            return;
        }
        self.clients[client].op += 1;
        self.clients[client].doing = Doing::Nothing;
        if faulty {
            self.begin(client);
        }
    }

    /// Is done with what it did, and begins something else a little later.
    fn done(&mut self, client: usize) {
        self.clients[client].op += 1;
        let op = self.clients[client].op;
        self.clients[client].doing = Doing::Nothing;
        let pause = self.below(3 * MILLISECOND);
        self.after(pause, Event::Wake { client, op });
    }

    fn begin(&mut self, client: usize) {
        let mut groups = self.groups();
        let count = match self.below(4) < self.alone {
            true => 1,
            false => 1 + self.below(groups.len() as u64) as usize,
        };
        while groups.len() > count {
            let at = self.below(groups.len() as u64) as usize;
            groups.remove(at);
        }
        let at = self.below(groups.len() as u64) as usize;
        groups.rotate_left(at);
        let op = self.clients[client].op;
        self.clients[client].begun = self.now;
        self.after(self.patience, Event::Wake { client, op });
        let (doing, request) = match self.below(8) {
            0..=3 => {
                let item = self.items + 1;
                self.items = item;
                let mut keys = BTreeMap::new();
                for group in &groups {
                    let first = self.below(u64::from(KEYS)) as u8;
                    let both = [first, (first + 1) % KEYS];
                    let count = 1 + self.below(2) as usize;
                    keys.insert(*group, both[..count].to_vec());
                }
                let terms = BTreeMap::new();
                (Doing::Leads { item, keys, terms }, Request::Lead)
            }
            4 => {
                groups.truncate(1);
                (Doing::Reads, Request::Read(self.clients[client].heard))
            }
            _ => {
                if self.below(2) == 0 {
                    groups = self.groups();
                }
                let (last, snapshot) = (BTreeMap::new(), Snapshot::new(self.clients[client].heard));
                let doing = Doing::Takes {
                    groups: groups.clone(),
                    last,
                    snapshot,
                };
                (doing, Request::Last)
            }
        };
        self.clients[client].doing = doing;
        for group in groups {
            self.ask(client, group, request.clone());
        }
    }

    pub(super) fn answered(&mut self, client: usize, op: u64, from: GroupId, reply: Reply) {
        if self.clients[client].op != op {
            return;
        }
        let doing = std::mem::take(&mut self.clients[client].doing);
        self.clients[client].doing = match (doing, reply) {
            (
                Doing::Leads {
                    item,
                    keys,
                    mut terms,
                },
                Reply::Leads(term),
            ) => {
                terms.insert(from, term);
                match terms.len() == keys.len() {
                    true => self.write(client, item, &keys, &terms),
                    false => Doing::Leads { item, keys, terms },
                }
            }
            (Doing::Commits { write }, Reply::Committed(at)) => {
                self.heard(client, at);
                self.history.writes[write].outcome = WriteOutcome::Committed;
                self.history.writes[write].end = self.now;
                return self.done(client);
            }
            (Doing::Commits { write }, Reply::Aborted) => {
                self.history.writes[write].outcome = WriteOutcome::Aborted;
                return self.done(client);
            }
            (Doing::Reads, Reply::NotYet) => {
                let heard = self.clients[client].heard;
                self.ask(client, from, Request::Read(heard));
                Doing::Reads
            }
            (Doing::Reads, Reply::Values(values, at)) => {
                self.heard(client, at);
                self.note(client, values);
                return self.done(client);
            }
            (
                Doing::Takes {
                    groups,
                    mut last,
                    mut snapshot,
                },
                Reply::Last(at, standing),
            ) => {
                snapshot.heard(at);
                last.insert(from, standing);
                if last.len() < groups.len() {
                    Doing::Takes {
                        groups,
                        last,
                        snapshot,
                    }
                } else {
                    last.retain(|_, standing| !standing.is_empty());
                    for (group, ids) in &last {
                        self.ask(client, *group, Request::Settled(ids.clone()));
                    }
                    match last.is_empty() {
                        true => self.read_at(client, groups, snapshot),
                        false => Doing::Settles {
                            groups,
                            standing: last,
                            snapshot,
                        },
                    }
                }
            }
            (
                Doing::Settles {
                    groups,
                    mut standing,
                    mut snapshot,
                },
                reply @ (Reply::Settled(_) | Reply::NotYet),
            ) => {
                if let Reply::Settled(outcomes) = reply {
                    for outcome in outcomes {
                        snapshot.settled(outcome);
                    }
                    standing.remove(&from);
                } else if let Some(ids) = standing.get(&from) {
                    let ids = ids.clone();
                    self.ask(client, from, Request::Settled(ids));
                }
                match standing.is_empty() {
                    true => self.read_at(client, groups, snapshot),
                    false => Doing::Settles {
                        groups,
                        standing,
                        snapshot,
                    },
                }
            }
            (
                Doing::ReadsAt {
                    groups,
                    snapshot,
                    mut values,
                    first,
                },
                reply @ (Reply::Values(..) | Reply::NotYet),
            ) => {
                match reply {
                    Reply::Values(read, _) => values.extend(read),
                    _ => self.ask(client, from, Request::ReadAt(snapshot.timestamp())),
                }
                let rows = groups.len() * usize::from(KEYS);
                match (values.len() == rows, first) {
                    (false, first) => Doing::ReadsAt {
                        groups,
                        snapshot,
                        values,
                        first,
                    },
                    (true, Some(first)) => {
                        if first != values {
                            self.history.unstable = Some(format!(
                                "at {} first {first:?}, then {values:?}",
                                snapshot.timestamp(),
                            ));
                        }
                        return self.done(client);
                    }
                    (true, None) => {
                        self.heard(client, snapshot.timestamp());
                        self.note(client, values.clone());
                        match self.below(2) {
                            0 => return self.done(client),
                            _ => {
                                let pause = self.below(100 * MILLISECOND);
                                self.after(pause, Event::Again { client, op });
                                let (first, values) = (Some(values), Values::new());
                                Doing::ReadsAt {
                                    groups,
                                    snapshot,
                                    values,
                                    first,
                                }
                            }
                        }
                    }
                }
            }
            // An answer that came twice.
            (doing, _) => doing,
        };
    }

    fn heard(&mut self, client: usize, at: Timestamp) {
        let client = &mut self.clients[client];
        client.heard = client.heard.max(at);
    }

    fn read_at(&mut self, client: usize, groups: Vec<GroupId>, snapshot: Snapshot) -> Doing {
        for group in &groups {
            self.ask(client, *group, Request::ReadAt(snapshot.timestamp()));
        }
        Doing::ReadsAt {
            groups,
            snapshot,
            values: Values::new(),
            first: None,
        }
    }

    /// Reads once more what it has read before, at the same timestamp.
    pub(super) fn read_again(&mut self, client: usize, op: u64) {
        if self.clients[client].op != op {
            return;
        }
        if let Doing::ReadsAt {
            groups, snapshot, ..
        } = &self.clients[client].doing
        {
            let (groups, at) = (groups.clone(), snapshot.timestamp());
            for group in groups {
                self.ask(client, group, Request::ReadAt(at));
            }
        }
    }

    fn write(
        &mut self,
        client: usize,
        item: Item,
        keys: &BTreeMap<GroupId, Vec<u8>>,
        terms: &BTreeMap<GroupId, Term>,
    ) -> Doing {
        let mut parts: Vec<(Participant, Vec<u8>)> = Vec::new();
        for (group, keys) in keys {
            let (group, term) = (*group, terms[group]);
            parts.push((Participant { group, term }, keys.clone()));
        }
        let at = self.below(parts.len() as u64) as usize;
        parts.rotate_left(at);
        let rows = keys.iter();
        let rows = rows.flat_map(|(group, keys)| keys.iter().map(move |key| (*group, *key)));
        self.history.writes.push(Write {
            client,
            item,
            rows: rows.collect(),
            end: u64::MAX,
            outcome: WriteOutcome::Unknown,
            order: self.history.order(),
        });
        let (coordinator, heard) = (parts[0].0.group, self.clients[client].heard);
        self.ask(client, coordinator, Request::Commit { item, parts, heard });
        Doing::Commits {
            write: self.history.writes.len() - 1,
        }
    }

    fn note(&mut self, client: usize, values: Values) {
        let begin = self.clients[client].begun;
        let order = self.history.order();
        self.history.reads.push(Read {
            client,
            values,
            begin,
            order,
        });
    }
}
