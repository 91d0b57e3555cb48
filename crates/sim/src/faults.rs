//! What goes wrong in a run: one table of faults, injected by chance, each taken back after a while.
//!
//! | fault | whom | what happens |
//! |---|---|---|
//! | leader crash, follower crash | one node | it dies, and comes back |
//! | total crash | all | all die at once, and come back one after the other |
//! | quick restart | any, mostly not the leader | it is back within a few heartbeats |
//! | freeze | any, mostly the leader | nothing of it runs; its clock and its sockets go on |
//! | partition | any, mostly the leader | cut off from all other nodes, clients excepted |
//! | one-way cut | any, mostly the leader | it is not heard, or does not hear |
//! | link cut | two nodes | they do not reach one another; everybody else does |
//! | split | a minority with the leader | cut off from the rest, clients excepted |
//! | deposed leader | three nodes | see [`Undo::Depose`] |
//! | pendulum | a minority with the leader | a split, and the next leader dies soon after it |
//! | slow disk | any | its syncs take forty times as long, or it hangs: they take a second |
//! | full disk | any, mostly the leader; sometimes all | it has little room left, or none |
//! | io errors | any | some of its reads, writes or syncs fail: it stops or refuses, and is started again when its disk is sound |
//! | bit rot | any but the leader | it dies, and a bit has turned of what has long been on its disk, or the end of its log is gone; whether it notices or not, it is replaced |
//! | clock jump | any | its wall clock jumps by seconds, forwards or back |
//! | switchover | the leader | leadership is handed over, to anybody or to somebody |
//! | aborted transfer | the leader | a switchover whose last word is held up until it has failed |
//! | membership | any | a member is added, removed, let vote, or votes no more ([`crate::operator`]) |
//! | old directory | any but the leader | it dies and comes back with the directory of its first death; it must stop, and is replaced |
//! | lost majority | all but one | they die for good, and the one goes on alone |
//!
//! After every second switchover or change of membership the leader dies within milliseconds. Nodes
//! that were removed, or left behind by the loss of a majority, come back and must stop by themselves.
//!
//! Now and then there is a lull besides, in which nobody writes.
//!
//! Up to [`AT_ONCE_MAX`] faults overlap. A node that dies loses power: of what it wrote and did not
//! sync, chance keeps, loses and tears. In a world where [`Config::power_holds`] only its process
//! dies, and everything written survives.
//!
//! [`Config::power_holds`]: crate::scenario::Config::power_holds

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;

use crate::cluster::Cluster;
use crate::disk::Failing;
use crate::mix::Weights;
use crate::operator::{News, Operator};
use crate::world::HostId;

/// Faults that overlap at most; further ones wait.
const AT_ONCE_MAX: usize = 2;

/// Once in so many times a lull comes with a fault.
const LULL_ONE_IN: u64 = 6;

/// A slow disk's sync takes about this.
const SLOW_DISK: Duration = Duration::from_millis(15);

/// A sync of a disk that hangs takes about this.
const HUNG_DISK: Duration = Duration::from_secs(1);

/// A sound disk's sync takes about this.
pub(crate) const SOUND_DISK: Duration = Duration::from_micros(400);

/// A full disk has less room than this, and half of them none: some segments of the log, and some
/// steps by which the trees' file grows.
const ROOM_BYTES_MAX: u64 = 256 << 10;

/// Of a failing disk at least one in so many reads, writes or syncs fails.
const FAILURES_ONE_IN_MAX: u64 = 12;

/// A wall clock jumps at most so far.
const JUMP_MS_MAX: u64 = 5_000;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The leader dies.
    LeaderCrash,
    /// Another node dies.
    FollowerCrash,
    /// All die.
    TotalCrash,
    /// A node dies and is back at once.
    QuickRestart,
    /// A node stands still.
    Freeze,
    /// A node is cut off from the others.
    Partition,
    /// A node is not heard, or does not hear.
    OneWayCut,
    /// Two nodes do not reach one another.
    LinkCut,
    /// The leader and less than half of the others are cut off from the rest.
    Split,
    /// A leader loses its followers one after the other, the second by a restart.
    Depose,
    /// A split whose next leader dies soon after.
    Pendulum,
    /// A disk is slow, or hangs.
    SlowDisk,
    /// A disk has hardly any room, or all have.
    FullDisk,
    /// Reads, writes or syncs fail.
    IoError,
    /// A bit turns of what is on a disk.
    BitRot,
    /// A wall clock jumps.
    ClockJump,
    /// Leadership is handed over.
    Switchover,
    /// Leadership is to be handed over, and the word that does it comes too late.
    AbortedTransfer,
    /// A member is added or removed, votes from now on or no more.
    Membership,
    /// A node comes back with an older directory.
    OldDirectory,
    /// All nodes but one are lost for good.
    LostMajority,
}

pub(crate) const KINDS: usize = Fault::ALL.len();

impl Fault {
    /// All kinds.
    pub const ALL: [Fault; 21] = [
        Fault::LeaderCrash,
        Fault::FollowerCrash,
        Fault::TotalCrash,
        Fault::QuickRestart,
        Fault::Freeze,
        Fault::Partition,
        Fault::OneWayCut,
        Fault::LinkCut,
        Fault::Split,
        Fault::Depose,
        Fault::Pendulum,
        Fault::SlowDisk,
        Fault::FullDisk,
        Fault::IoError,
        Fault::BitRot,
        Fault::ClockJump,
        Fault::Switchover,
        Fault::AbortedTransfer,
        Fault::Membership,
        Fault::OldDirectory,
        Fault::LostMajority,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Fault::LeaderCrash => "leader crashes",
            Fault::FollowerCrash => "follower crashes",
            Fault::TotalCrash => "total crashes",
            Fault::QuickRestart => "quick restarts",
            Fault::Freeze => "freezes",
            Fault::Partition => "partitions",
            Fault::OneWayCut => "one-way cuts",
            Fault::LinkCut => "link cuts",
            Fault::Split => "splits",
            Fault::Depose => "deposed leaders",
            Fault::Pendulum => "pendulums",
            Fault::SlowDisk => "slow disks",
            Fault::FullDisk => "full disks",
            Fault::IoError => "io errors",
            Fault::BitRot => "bit rot",
            Fault::ClockJump => "clock jumps",
            Fault::Switchover => "switchovers",
            Fault::AbortedTransfer => "aborted transfers",
            Fault::Membership => "memberships",
            Fault::OldDirectory => "old directories",
            Fault::LostMajority => "lost majorities",
        }
    }

    /// How often it is drawn, where nobody says otherwise.
    pub fn weight(self) -> u64 {
        self.odds().0
    }

    /// How often it is drawn, and for how many milliseconds it lasts.
    fn odds(self) -> (u64, (u64, u64)) {
        match self {
            Fault::LeaderCrash => (6, (10, 2_000)),
            Fault::FollowerCrash => (5, (10, 2_000)),
            Fault::TotalCrash => (4, (10, 500)),
            Fault::QuickRestart => (6, (5, 150)),
            Fault::Freeze => (4, (50, 2_000)),
            Fault::Partition => (4, (100, 2_500)),
            Fault::OneWayCut => (4, (100, 2_500)),
            Fault::LinkCut => (4, (100, 2_500)),
            Fault::Split => (5, (100, 1_200)),
            Fault::Depose => (6, (500, 1_100)),
            Fault::Pendulum => (6, (400, 900)),
            Fault::SlowDisk => (4, (200, 2_000)),
            Fault::FullDisk => (4, (200, 2_000)),
            Fault::IoError => (4, (100, 1_000)),
            Fault::BitRot => (12, (1, 2)),
            Fault::ClockJump => (5, (1, 2)),
            Fault::Switchover => (5, (1, 2)),
            Fault::AbortedTransfer => (5, (700, 1_800)),
            Fault::Membership => (7, (1, 2)),
            Fault::OldDirectory => (5, (1, 2)),
            Fault::LostMajority => (3, (1, 2)),
        }
    }

    /// Whether it makes sense with so many nodes.
    fn fits(self, nodes: usize) -> bool {
        match self {
            Fault::LeaderCrash
            | Fault::TotalCrash
            | Fault::QuickRestart
            | Fault::Freeze
            | Fault::SlowDisk
            | Fault::FullDisk
            | Fault::IoError
            | Fault::ClockJump => true,
            Fault::FollowerCrash
            | Fault::Partition
            | Fault::OneWayCut
            | Fault::LinkCut
            | Fault::Switchover
            | Fault::AbortedTransfer
            | Fault::Membership
            | Fault::LostMajority => nodes > 1,
            Fault::Split | Fault::Pendulum | Fault::OldDirectory | Fault::BitRot => nodes > 2,
            Fault::Depose => nodes == 3,
        }
    }
}

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; KINDS]);

impl Counts {
    /// Counts one.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// How often a fault was injected.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// All faults together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Counts) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

/// When a node last died, in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deaths {
    /// It lost its memory.
    pub process: Option<Duration>,
    /// It lost what it had not synced too.
    pub power: Option<Duration>,
}

/// How a fault is taken back.
enum Undo {
    Restart(Vec<usize>),
    Wake(usize),
    Heal(Vec<(HostId, HostId)>),
    SoundDisk(usize),
    Room(Vec<usize>),
    Mend(usize),
    /// One follower was cut off from the leader for a while, and nobody wrote meanwhile, so it is
    /// as good a candidate as any. Now the other follower restarts, and the leader loses it too:
    /// only the word that it gave before its restart stands between the leader and a successor.
    Depose {
        leader: usize,
        voter: usize,
    },
    /// The split heals, and soon whoever leads by then dies.
    EndSplit(Vec<(HostId, HostId)>),
    Cut(Vec<(HostId, HostId)>),
    /// A switchover to one that hears nothing of the leader for a while, from now on.
    HoldUp {
        leader: usize,
        other: usize,
    },
    CrashLeader,
    Lull,
    EndLull,
}

/// The faults of one run.
pub(crate) struct Injector {
    /// How often each was injected.
    pub counts: Counts,
    /// For each node, when it last died.
    pub deaths: Vec<Deaths>,
    /// Nobody writes while this holds.
    pub lull: Arc<AtomicBool>,
    /// Changes members.
    operator: Operator,
    active: Vec<(Duration, Undo)>,
    power_holds: bool,
    /// Nodes of the cluster when it was founded.
    nodes: usize,
    weights: Weights,
    /// The operator has no further wishes.
    is_over: bool,
}

impl Injector {
    pub fn new(nodes: usize, power_holds: bool, weights: Weights) -> Injector {
        Injector {
            counts: Counts::default(),
            deaths: Vec::new(),
            lull: Arc::default(),
            operator: Operator::default(),
            active: Vec::new(),
            power_holds,
            nodes,
            weights,
            is_over: false,
        }
    }

    /// Looks at what has become of the operator's wishes.
    ///
    /// # Errors
    /// What a node does that it must not.
    pub fn tend(&mut self, cluster: &mut Cluster) -> Result<Option<News>, String> {
        self.note_failed(cluster);
        cluster.start_again(!self.power_holds);
        let news = self.operator.tend(cluster)?;
        self.deaths.resize(cluster.len(), Deaths::default());
        Ok(news)
    }

    /// Nodes that have stopped because their disks failed have died like any other.
    fn note_failed(&mut self, cluster: &Cluster) {
        let now = Some(cluster.world.elapsed());
        self.deaths.resize(cluster.len(), Deaths::default());
        for node in 0..cluster.len() {
            if cluster.failed_disk(node).is_some() {
                self.deaths[node].process = now;
                if !self.power_holds {
                    self.deaths[node].power = now;
                }
            }
        }
    }

    /// Whether a majority is being lost.
    pub fn is_grave(&self) -> bool {
        self.operator.is_grave()
    }

    /// Whether everything that the operator wished for has come about, or never will.
    pub fn is_idle(&self) -> bool {
        self.operator.is_idle()
    }

    /// Takes back what is due.
    pub fn undo_due(&mut self, cluster: &mut Cluster) {
        let now = cluster.world.elapsed();
        let (due, later) = std::mem::take(&mut self.active)
            .into_iter()
            .partition(|(until, _)| *until <= now);
        self.active = later;
        self.undo(cluster, due);
    }

    /// Takes everything back.
    pub fn undo_all(&mut self, cluster: &mut Cluster) {
        // Some of what is taken back has sequels.
        while !self.active.is_empty() {
            let all = std::mem::take(&mut self.active);
            self.undo(cluster, all);
        }
        for node in cluster.present() {
            if !cluster.is_alive(node) {
                cluster.restart(node);
            }
        }
        if !std::mem::replace(&mut self.is_over, true) {
            self.operator.rest(cluster);
            self.operator.bring_back_all(cluster);
        }
    }

    fn undo(&mut self, cluster: &mut Cluster, undone: Vec<(Duration, Undo)>) {
        for (_, undo) in undone {
            match undo {
                Undo::Restart(nodes) => {
                    for node in nodes {
                        match cluster.is_dismissed(node) {
                            true => self.operator.bring_back(cluster, node),
                            false if !cluster.is_alive(node) => cluster.restart(node),
                            false => {}
                        }
                    }
                }
                Undo::Wake(node) => cluster.world.pause(cluster.host(node), false),
                Undo::Heal(ways) => heal(cluster, ways),
                Undo::SoundDisk(node) => {
                    let host = cluster.host(node);
                    cluster.world.set_disk_delay(host, SOUND_DISK);
                }
                Undo::Room(nodes) => {
                    for node in nodes {
                        cluster.world.set_disk_room(cluster.host(node), None);
                    }
                }
                Undo::Mend(node) => cluster.set_failing(node, None),
                Undo::Depose { leader, voter } => {
                    self.lull.store(false, Ordering::SeqCst);
                    let cut = cut(cluster, &[leader], true, true);
                    self.later(cluster, (300, 700), cut);
                    if let Some(restart) = self.crash(cluster, &[voter]) {
                        self.later(cluster, (2, 40), restart);
                    }
                }
                Undo::EndSplit(ways) => {
                    heal(cluster, ways);
                    self.later(cluster, (5, 120), Undo::CrashLeader);
                    self.later(cluster, (500, 900), Undo::EndLull);
                }
                Undo::CrashLeader => {
                    let leader = cluster.leader().map(|(leader, _)| leader);
                    let leader = leader.filter(|_| !self.is_grave());
                    if let Some(restart) = leader.and_then(|node| self.crash(cluster, &[node])) {
                        self.later(cluster, (300, 900), restart);
                    }
                }
                Undo::HoldUp { leader, other } => {
                    self.hold_up(cluster, leader, other);
                }
                Undo::Cut(ways) => {
                    let heal = cut_ways(cluster, &ways);
                    self.later(cluster, (1_000, 1_500), heal);
                }
                Undo::Lull => self.lull.store(true, Ordering::SeqCst),
                Undo::EndLull => self.lull.store(false, Ordering::SeqCst),
            }
        }
    }

    /// Does something after so many milliseconds.
    fn later(&mut self, cluster: &mut Cluster, (low, high): (u64, u64), what: Undo) {
        let after = cluster.world.draw(|chance| chance.between(low, high));
        let at = cluster.world.elapsed() + Duration::from_millis(after);
        self.active.push((at, what));
    }

    /// Begins a lull by chance, if there is none.
    fn perhaps_lull(&mut self, cluster: &mut Cluster) {
        let begins = cluster.world.draw(|chance| chance.one_in(LULL_ONE_IN));
        if begins && !self.lull.swap(true, Ordering::SeqCst) {
            self.later(cluster, (100, 800), Undo::EndLull);
        }
    }

    /// Injects a fault that chance picks, unless there are enough.
    pub fn inject(&mut self, cluster: &mut Cluster) {
        if self.is_grave() {
            return;
        }
        self.perhaps_lull(cluster);
        if self.active.len() >= AT_ONCE_MAX {
            return;
        }
        let nodes = cluster.present().len().min(self.nodes);
        let weights = self.weights;
        let fitting = || Fault::ALL.into_iter().filter(|fault| fault.fits(nodes));
        let sum: u64 = fitting().map(|fault| weights.of(fault)).sum();
        if sum == 0 {
            return;
        }
        let mut pick = cluster.world.draw(|chance| chance.below(sum));
        let Some(fault) = fitting().find(|fault| {
            let weight = weights.of(*fault);
            let found = pick < weight;
            pick = pick.saturating_sub(weight);
            found
        }) else {
            return;
        };
        if let Some(undo) = self.begin(fault, cluster) {
            self.counts.count(fault);
            if let Some(undo) = undo {
                self.later(cluster, fault.odds().1, undo);
            }
        }
    }

    /// Injects a fault; none if it cannot be had now, and nothing inside if it takes itself back.
    fn begin(&mut self, fault: Fault, cluster: &mut Cluster) -> Option<Option<Undo>> {
        let leader = cluster.leader().map(|(leader, _)| leader);
        let nodes = cluster.present();
        let pick = cluster
            .world
            .draw(|chance| chance.below(nodes.len() as u64) as usize);
        let any = nodes[pick];
        let toss = cluster.world.draw(|chance| chance.below(3));
        let mostly_leader = leader.filter(|_| toss > 0).unwrap_or(any);
        Some(Some(match fault {
            Fault::LeaderCrash => self.crash(cluster, &[leader?])?,
            Fault::FollowerCrash => self.crash(cluster, &[other_than(leader?, any, &nodes)])?,
            Fault::TotalCrash => self.crash(cluster, &nodes)?,
            Fault::QuickRestart => {
                let node = match leader {
                    Some(leader) if toss > 0 && nodes.len() > 1 => other_than(leader, any, &nodes),
                    _ => any,
                };
                self.crash(cluster, &[node])?
            }
            Fault::Freeze => {
                if !cluster.is_alive(mostly_leader) {
                    return None;
                }
                cluster.world.pause(cluster.host(mostly_leader), true);
                Undo::Wake(mostly_leader)
            }
            Fault::Partition => cut(cluster, &[mostly_leader], true, true),
            Fault::OneWayCut => cut(cluster, &[mostly_leader], toss == 0, toss != 0),
            Fault::LinkCut => {
                let node = cluster.host(mostly_leader);
                let other = cluster.host(other_than(mostly_leader, any, &nodes));
                cut_ways(cluster, &[(node, other), (other, node)])
            }
            Fault::Split => {
                let ways = split_ways(cluster, leader?);
                cut_ways(cluster, &ways)
            }
            Fault::Depose => self.depose(cluster, leader?, toss)?,
            Fault::Pendulum => {
                let ways = split_ways(cluster, leader?);
                cut_ways(cluster, &ways);
                self.later(cluster, (150, 350), Undo::Lull);
                Undo::EndSplit(ways)
            }
            Fault::SlowDisk => {
                let delay = if toss == 1 { HUNG_DISK } else { SLOW_DISK };
                cluster.world.set_disk_delay(cluster.host(any), delay);
                Undo::SoundDisk(any)
            }
            Fault::FullDisk => {
                let full = match toss == 1 && nodes.len() > 1 && pick == 0 {
                    true => nodes,
                    false => vec![mostly_leader],
                };
                fill_disks(cluster, &full);
                Undo::Room(full)
            }
            Fault::IoError => {
                let failing = draw_failing(cluster);
                cluster.set_failing(mostly_leader, Some(failing));
                Undo::Mend(mostly_leader)
            }
            Fault::BitRot => {
                let node = other_than(leader?, any, &nodes);
                let is_first = self.counts.of(Fault::BitRot) == 0;
                let may = is_first && self.active.is_empty();
                if !may
                    || !self.operator.may_set_back(cluster, node)
                    || !cluster.can_be_set_back(node)
                {
                    return None;
                }
                self.crash(cluster, &[node])?;
                let turned = cluster.rot(node);
                cluster.restart(node);
                if !turned {
                    return None;
                }
                self.operator.watch_rotten(cluster, node);
                return Some(None);
            }
            Fault::ClockJump => {
                let by = cluster.world.draw(|chance| chance.below(2 * JUMP_MS_MAX));
                let by = by as i64 - JUMP_MS_MAX as i64;
                cluster.world.jump_wall_clock(cluster.host(any), by * 1_000);
                return Some(None);
            }
            Fault::Switchover => {
                let to = (toss == 0).then(|| cluster.name(any));
                cluster.wish(leader?, Administration::Switchover(to));
                return Some(self.perhaps_crash_leader(cluster));
            }
            Fault::AbortedTransfer => {
                let begun = self.abort_transfer(cluster, leader?, any);
                return begun.then_some(None);
            }
            Fault::Membership => {
                let pick = cluster.world.draw(|chance| chance.bits());
                let step = self.operator.choose(cluster, self.nodes, pick)?;
                if !self.operator.take_step(cluster, &step) {
                    return None;
                }
                return Some(self.perhaps_crash_leader(cluster));
            }
            Fault::OldDirectory => {
                let node = other_than(leader?, any, &nodes);
                let is_first = self.counts.of(Fault::OldDirectory) == 0;
                let may = is_first && self.active.is_empty();
                if !may
                    || !self.operator.may_set_back(cluster, node)
                    || !cluster.can_be_set_back(node)
                {
                    return None;
                }
                self.crash(cluster, &[node])?;
                // Of what it had synced it has lost more than any power can take.
                self.deaths[node].power = self.deaths[node].process;
                self.operator.set_back(cluster, node);
                return Some(None);
            }
            Fault::LostMajority => {
                if !self.active.is_empty() || !self.operator.begin_loss(cluster) {
                    return None;
                }
                self.lull.store(true, Ordering::SeqCst);
                self.later(cluster, (150, 1_000), Undo::EndLull);
                return Some(None);
            }
        }))
    }

    fn depose(&mut self, cluster: &mut Cluster, leader: usize, toss: u64) -> Option<Undo> {
        let nodes = cluster.present();
        let others: Vec<usize> = nodes.into_iter().filter(|node| *node != leader).collect();
        let [one, another] = others[..] else {
            return None;
        };
        let (cut_off, voter) = match toss {
            0 => (one, another),
            _ => (another, one),
        };
        self.lull.store(true, Ordering::SeqCst);
        let (own, other) = (cluster.host(leader), cluster.host(cut_off));
        self.later(
            cluster,
            (100, 200),
            Undo::Cut(vec![(own, other), (other, own)]),
        );
        Some(Undo::Depose { leader, voter })
    }

    /// Now and then the leader dies in the middle of what was just asked of it.
    fn perhaps_crash_leader(&mut self, cluster: &mut Cluster) -> Option<Undo> {
        if cluster.world.draw(|chance| chance.one_in(2)) {
            self.later(cluster, (1, 30), Undo::CrashLeader);
        }
        None
    }

    /// A switchover to a node that hears no more of the leader: the word that makes it stand for
    /// election is under way until long after the leader has given up.
    fn abort_transfer(&mut self, cluster: &mut Cluster, leader: usize, any: usize) -> bool {
        let other = other_than(leader, any, &cluster.present());
        if !cluster.is_alive(other) {
            return false;
        }
        // Nobody is told to stand who lacks an entry. So until nobody begins new transactions that
        // write, and the open ones have ended and are everywhere, the link stays as it is.
        self.lull.store(true, Ordering::SeqCst);
        self.later(cluster, (60, 200), Undo::HoldUp { leader, other });
        true
    }

    /// The switchover is wished for, and from here on the other hears nothing of the leader, and in
    /// every second case is not heard by it either, until a moment later: then it stands, and all
    /// but the leader know. Nobody writes meanwhile, or the other would not be elected.
    fn hold_up(&mut self, cluster: &mut Cluster, leader: usize, other: usize) {
        let to = Some(cluster.name(other));
        cluster.wish(leader, Administration::Switchover(to));
        let (own, other) = (cluster.host(leader), cluster.host(other));
        let (low, high) = Fault::AbortedTransfer.odds().1;
        let until = cluster.world.draw(|chance| chance.between(low, high));
        let heal = cut_ways(cluster, &[(own, other)]);
        self.later(cluster, (until, until), heal);
        if cluster.world.draw(|chance| chance.one_in(2)) {
            let heal = cut_ways(cluster, &[(other, own)]);
            self.later(cluster, (until + 20, until + 250), heal);
        }
        self.later(cluster, (until, until + 250), Undo::EndLull);
    }

    fn crash(&mut self, cluster: &mut Cluster, nodes: &[usize]) -> Option<Undo> {
        let living: Vec<usize> = nodes
            .iter()
            .copied()
            .filter(|node| cluster.is_alive(*node))
            .collect();
        self.deaths.resize(cluster.len(), Deaths::default());
        for node in &living {
            cluster.crash(*node, !self.power_holds);
            let now = Some(cluster.world.elapsed());
            self.deaths[*node].process = now;
            if !self.power_holds {
                self.deaths[*node].power = now;
            }
        }
        (!living.is_empty()).then_some(Undo::Restart(living))
    }
}

fn draw_failing(cluster: &mut Cluster) -> Failing {
    cluster.world.draw(|chance| {
        let which = chance.below(4);
        Failing {
            reads: which == 0 || which == 3,
            writes: which == 1 || which == 3,
            syncs: which == 2 || which == 3,
            one_in: chance.between(1, FAILURES_ONE_IN_MAX),
        }
    })
}

fn fill_disks(cluster: &mut Cluster, nodes: &[usize]) {
    for node in nodes {
        let room = cluster.world.draw(|chance| match chance.one_in(2) {
            true => 0,
            false => chance.below(ROOM_BYTES_MAX),
        });
        cluster.world.set_disk_room(cluster.host(*node), Some(room));
    }
}

/// `any`, or the next node if that is `node`.
fn other_than(node: usize, any: usize, nodes: &[usize]) -> usize {
    let place = nodes.iter().position(|other| *other == node).unwrap_or(0);
    match any == node {
        true => nodes[(place + 1) % nodes.len()],
        false => any,
    }
}

/// The ways between the leader with less than half of all nodes, and the rest.
fn split_ways(cluster: &Cluster, leader: usize) -> Vec<(HostId, HostId)> {
    let nodes = cluster.present();
    let few = (nodes.len() - 1) / 2;
    let place = nodes.iter().position(|node| *node == leader).unwrap_or(0);
    let with: Vec<usize> = (0..few)
        .map(|step| nodes[(place + step) % nodes.len()])
        .collect();
    ways_between(cluster, &with, true, true)
}

fn heal(cluster: &mut Cluster, ways: Vec<(HostId, HostId)>) {
    for (from, to) in ways {
        cluster.world.set_cut(from, to, false);
    }
}

/// Cuts the ways between some nodes and the others: to them, from them, or both.
fn cut(cluster: &mut Cluster, nodes: &[usize], inward: bool, outward: bool) -> Undo {
    let ways = ways_between(cluster, nodes, inward, outward);
    cut_ways(cluster, &ways)
}

fn ways_between(
    cluster: &Cluster,
    nodes: &[usize],
    inward: bool,
    outward: bool,
) -> Vec<(HostId, HostId)> {
    let mut ways = Vec::new();
    for node in nodes {
        let others = cluster.present().into_iter();
        for other in others.filter(|other| !nodes.contains(other)) {
            let (own, other) = (cluster.host(*node), cluster.host(other));
            ways.extend(inward.then_some((other, own)));
            ways.extend(outward.then_some((own, other)));
        }
    }
    ways
}

fn cut_ways(cluster: &mut Cluster, ways: &[(HostId, HostId)]) -> Undo {
    for (from, to) in ways {
        cluster.world.set_cut(*from, *to, true);
    }
    Undo::Heal(ways.to_vec())
}
