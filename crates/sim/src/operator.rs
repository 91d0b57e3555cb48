//! The operator of a simulated cluster: members come and go, leadership is handed over, and a node
//! goes on alone when the others are lost; all of it under load, with crashes in between.
//!
//! What was wished for may be answered, or its answer may be lost with a node. So, as a real operator
//! would, this one looks at the directories of the nodes to see what has become of it:
//!
//! ```text
//! wish: add n4 ──► answered, lost, whatever ──► some directory lists n4: its host is started
//! wish: remove n2 ─► answered, lost, whatever ─► some directory lacks n2: it is dismissed, may come
//!                                                back once, and must stop by itself
//! ```
//! Directories take effect when they are committed, so what one shows is so for good.
//!
//! A node that comes back with an older directory must stop by itself; it is removed then, and
//! another is added, as `quorate node rejoin` does.
//!
//! # The loss of a majority
//! | stage | what happens |
//! |---|---|
//! | `Wait` | until the survivor has the leader's whole log: nothing acknowledged until then may be lost |
//! | `Doom` | for a while (or not at all) the work goes on; what is acknowledged now may be lost |
//! | `Alone` | all others are dead; the survivor is told to go on alone |
//! | `Return` | the others come back, one after the other, and each must stop by itself |
//!
//! Afterwards nodes are added until there are as many as before.

use std::time::Duration;

use base::cluster::{Administration, NewNode};
use base::{Error, GroupId, NodeId};
use kv::{Directory, PRIORITY_USUAL};

use crate::cluster::{Answer, Cluster};

/// A dismissed node that is back must have stopped by itself after this.
const STOP_MAX: Duration = Duration::from_secs(8);

/// A wish whose outcome nobody shows after this is forgotten; it may come true all the same.
const FORGET_AFTER: Duration = Duration::from_secs(12);

/// So long the survivor of a majority may take to lead.
const ALONE_MAX: Duration = Duration::from_secs(10);

/// How often a node is told to go on alone, until it does.
const ASK_EVERY: Duration = Duration::from_millis(150);

/// A survivor that does not come to have the leader's log within this is left in peace.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Nodes that are added in one run at most: each makes it longer.
const ADDED_MAX: usize = 5;

/// What an operator may do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A further node.
    Add,
    /// A member leaves.
    Remove(usize),
    /// A learner votes.
    Promote(usize),
    /// A voter votes no more.
    Demote(usize),
}

/// When a node was asked for something, and what becomes of that.
type Asked = (Duration, Answer);

/// How far the loss of a majority has come.
enum Loss {
    Wait {
        survivor: usize,
        since: Duration,
        doom: Duration,
    },
    Doom {
        survivor: usize,
        until: Duration,
    },
    Alone {
        survivor: usize,
        since: Duration,
        asked: Option<Asked>,
        /// What it was told when it was last answered.
        said: Option<Result<u64, Error>>,
    },
    Return {
        left: Vec<usize>,
        now: Option<(usize, Duration)>,
    },
}

/// What those who judge must know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// What is acknowledged or seen from now on may be lost.
    Doomed,
    /// That is what has happened now.
    Lost,
}

/// The operator.
#[derive(Default)]
pub(crate) struct Operator {
    /// A node that is being added, and since when.
    adding: Option<Asked>,
    /// Wishes that are not granted yet, or that may come true although they were refused.
    wishes: Vec<Asked>,
    loss: Option<Loss>,
    /// Nodes that were dismissed and are back, and until when they must have stopped.
    back: Vec<(usize, Duration)>,
    /// A node with an older directory, or with one that is damaged, until it is removed.
    set_back: Option<usize>,
    /// A node of whose files a bit has turned, until that is noticed.
    rotten: Option<usize>,
    /// As many members as there should be again.
    refill_to: usize,
    looked: Duration,
}

impl Operator {
    /// Whether a majority is being lost, so that nothing else should go wrong meanwhile.
    pub fn is_grave(&self) -> bool {
        self.loss.is_some()
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.may_lose() && self.wishes.is_empty()
    }

    /// Whether a majority may be lost now.
    fn may_lose(&self) -> bool {
        let is_whole = self.set_back.is_none() && self.rotten.is_none();
        self.loss.is_none() && self.back.is_empty() && self.adding.is_none() && is_whole
    }

    /// Begins to lose all nodes but one. False if none fits.
    pub fn begin_loss(&mut self, cluster: &mut Cluster) -> bool {
        let Some((leader, _)) = cluster.leader().filter(|_| self.may_lose()) else {
            return false;
        };
        let present = cluster.present();
        let candidates: Vec<usize> = present
            .iter()
            .copied()
            .filter(|node| *node != leader && cluster.is_alive(*node))
            .filter(|node| cluster.node(*node).is_some())
            .collect();
        let all_members = present.len() == cluster.directory().map_or(0, |one| one.members.len());
        if candidates.is_empty() || !all_members || cluster.len() + present.len() > 2 * ADDED_MAX {
            return false;
        }
        let pick = cluster.world.draw(|chance| chance.bits()) as usize % candidates.len();
        let doom = cluster.world.draw(|chance| match chance.one_in(2) {
            true => 0,
            false => chance.between(20, 400),
        });
        self.loss = Some(Loss::Wait {
            survivor: candidates[pick],
            since: cluster.world.elapsed(),
            doom: Duration::from_millis(doom),
        });
        true
    }

    /// Starts a node that was just killed with an older directory.
    pub fn set_back(&mut self, cluster: &mut Cluster, node: usize) {
        self.refill_to = self.refill_to.max(cluster.present().len());
        cluster.set_back(node);
        let until = cluster.world.elapsed() + STOP_MAX;
        self.back.push((node, until));
        self.set_back = Some(node);
    }

    /// A bit of a node's files has turned.
    pub fn watch_rotten(&mut self, cluster: &Cluster, node: usize) {
        self.refill_to = self.refill_to.max(cluster.present().len());
        self.rotten = Some(node);
    }

    /// A node that has found its files to be damaged is replaced.
    fn replace_rotten(&mut self, cluster: &mut Cluster) {
        let has_noticed = |node: &mut usize| cluster.failed_disk(*node).is_some();
        if let Some(node) = self.rotten.take_if(has_noticed) {
            cluster.dismiss(node);
            self.set_back = Some(node);
        }
    }

    /// Whether a node may be set back now: it has no say any more, and the others are a majority
    /// without it, or nobody could replace it.
    pub fn may_set_back(&self, cluster: &Cluster, node: usize) -> bool {
        let Some(directory) = cluster.directory() else {
            return false;
        };
        let members = directory.members.iter();
        let voters = || members.clone().filter(|member| member.voter);
        let left = voters().filter(|member| cluster.place_of(member.node) != Some(node));
        let is_whole = cluster.present().len() == directory.members.len();
        self.is_idle() && is_whole && left.count() > voters().count() / 2
    }

    /// What makes sense to do to the members now, if anything.
    pub fn choose(&self, cluster: &mut Cluster, nodes: usize, pick: u64) -> Option<Step> {
        let (leader, _) = cluster.leader()?;
        let directory = cluster.directory()?;
        let is_damaged = self.set_back.is_some() || self.rotten.is_some();
        if self.adding.is_some() || self.loss.is_some() || is_damaged {
            return None;
        }
        let voters = directory.members.iter().filter(|one| one.voter).count();
        let members = directory.members.len();
        let place = |member: Option<&kv::Member>| cluster.place_of(member?.node);
        let learner = place(directory.members.iter().find(|member| !member.voter));
        let any = place(directory.members.get(pick as usize % members.max(1)))?;
        let is_any_voter = Some(any) != learner;
        let may_add = cluster.len() < nodes + ADDED_MAX;
        match (learner, pick / 64 % 4) {
            (Some(learner), 0) => Some(Step::Remove(learner)),
            (Some(learner), _) if cluster.is_alive(learner) => Some(Step::Promote(learner)),
            (Some(_), _) => None,
            (None, _) if members > nodes => Some(Step::Remove(any)),
            (None, 0 | 1) if may_add => Some(Step::Add),
            // The leader hands over before it goes.
            (None, 2) if is_any_voter && voters > 2 => Some(Step::Demote(any)),
            (None, 3) if voters > 2 && may_add => Some(Step::Remove(leader)),
            _ => None,
        }
    }

    /// Wishes for it, at some node.
    pub fn take_step(&mut self, cluster: &mut Cluster, step: &Step) -> bool {
        let living: Vec<usize> = cluster
            .present()
            .into_iter()
            .filter(|node| cluster.is_alive(*node) && cluster.node(*node).is_some())
            .collect();
        if living.is_empty() {
            return false;
        }
        let pick = cluster.world.draw(|chance| chance.bits()) as usize % living.len();
        let at = living[pick];
        let wish = match step {
            Step::Add => {
                let new = cluster.next_member();
                Administration::AddNode(NewNode {
                    name: new.name,
                    peer_address: new.peer_address,
                    sql_address: new.sql_address,
                    zone: "".into(),
                    priority: PRIORITY_USUAL,
                })
            }
            Step::Remove(node) => Administration::RemoveNode(cluster.name(*node)),
            Step::Promote(node) => Administration::PromoteNode(cluster.name(*node)),
            Step::Demote(node) => Administration::DemoteNode(cluster.name(*node)),
        };
        let answer = cluster.wish(at, wish);
        let asked = (cluster.world.elapsed(), answer);
        match step {
            Step::Add => self.adding = Some(asked),
            _ => self.wishes.push(asked),
        }
        true
    }

    /// Looks at what has become of everything.
    ///
    /// # Errors
    /// What a node does that it must not.
    pub fn tend(&mut self, cluster: &mut Cluster) -> Result<Option<News>, String> {
        let now = cluster.world.elapsed();
        for directory in cluster.directories() {
            self.start_added(cluster, &directory);
            dismiss_removed(cluster, &directory);
        }
        self.adding.take_if(|adding| is_over(adding, now));
        self.wishes
            .retain(|wish| !is_granted(wish) && !is_over(wish, now));
        for (node, until) in std::mem::take(&mut self.back) {
            if cluster.is_alive(node) && now > until {
                let name = cluster.name(node);
                return Err(format!(
                    "{name} has no part in the group any more, is back, and does not stop"
                ));
            }
            if !cluster.is_alive(node) && !cluster.lacked_space(node) {
                check_last_words(cluster, node)?;
                continue;
            }
            self.back.push((node, until));
        }
        self.replace_rotten(cluster);
        self.refill(cluster, now);
        self.tend_loss(cluster, now)
    }

    /// A host is started for a node that is a member now and was not before.
    fn start_added(&mut self, cluster: &mut Cluster, directory: &Directory) {
        let next = cluster.next_member();
        let Some(member) = directory.named(&next.name) else {
            return;
        };
        let mut member = member.clone();
        if member.node == NodeId(0) || cluster.place_of(member.node).is_some() {
            return;
        }
        member.voter = false;
        cluster.add(&member, directory);
        self.adding = None;
    }

    /// A dismissed node comes back, and must stop by itself. One that knows nobody who could tell
    /// it is left alone.
    pub fn bring_back(&mut self, cluster: &mut Cluster, node: usize) {
        if !cluster.finds_somebody(node) {
            return;
        }
        if !cluster.is_alive(node) {
            cluster.restart(node);
        }
        let until = cluster.world.elapsed() + STOP_MAX;
        if !self.back.iter().any(|(known, _)| *known == node) {
            self.back.push((node, until));
        }
    }

    /// Begins nothing new by itself. A node of whose files a bit has turned that it has not come
    /// across is stopped, checked and replaced.
    pub fn rest(&mut self, cluster: &mut Cluster) {
        if let Some(node) = self.rotten.take() {
            if cluster.is_alive(node) {
                cluster.crash(node, false);
            }
            cluster.dismiss(node);
            self.set_back = Some(node);
        }
        // Who is still to be removed is.
        self.refill_to = usize::from(self.set_back.is_some());
    }

    /// All dismissed nodes that never came back come back now.
    pub fn bring_back_all(&mut self, cluster: &mut Cluster) {
        for node in 0..cluster.len() {
            if cluster.is_dismissed(node) {
                self.bring_back(cluster, node);
            }
        }
    }

    /// After the loss of a majority: as many members as before.
    fn refill(&mut self, cluster: &mut Cluster, now: Duration) {
        let pause = Duration::from_millis(300);
        if self.refill_to == 0 || self.loss.is_some() || now < self.looked + pause {
            return;
        }
        self.looked = now;
        let Some(directory) = cluster.directory().filter(|_| self.rotten.is_none()) else {
            return;
        };
        if let Some(node) = self.set_back {
            match directory.member(cluster.number(node)) {
                Some(_) => drop(self.take_step(cluster, &Step::Remove(node))),
                None => self.set_back = None,
            }
            return;
        }
        let voters = directory.members.iter().filter(|one| one.voter).count();
        if voters >= self.refill_to {
            self.refill_to = 0;
            return;
        }
        let learner = directory.members.iter().find(|member| !member.voter);
        let learner = learner.and_then(|member| cluster.place_of(member.node));
        match learner {
            Some(learner) => drop(self.take_step(cluster, &Step::Promote(learner))),
            None if self.adding.is_none() => drop(self.take_step(cluster, &Step::Add)),
            None => {}
        }
    }

    fn tend_loss(&mut self, cluster: &mut Cluster, now: Duration) -> Result<Option<News>, String> {
        let Some(loss) = self.loss.take() else {
            return Ok(None);
        };
        let mut news = None;
        let next = match loss {
            Loss::Wait {
                survivor,
                since,
                doom,
            } => match has_all(cluster, survivor) {
                true if doom.is_zero() => Some(kill_others(cluster, survivor)),
                true => {
                    news = Some(News::Doomed);
                    let until = now + doom;
                    Some(Loss::Doom { survivor, until })
                }
                false => (now < since + WAIT_MAX).then_some(Loss::Wait {
                    survivor,
                    since,
                    doom,
                }),
            },
            Loss::Doom { survivor, until } if now < until => Some(Loss::Doom { survivor, until }),
            Loss::Doom { survivor, .. } => {
                news = Some(News::Lost);
                Some(kill_others(cluster, survivor))
            }
            Loss::Alone {
                survivor,
                since,
                asked,
                said,
            } => Some(self.go_on_alone(cluster, survivor, since, (asked, said))?),
            Loss::Return { left, now: back } => tend_return(cluster, left, back)?,
        };
        self.loss = next;
        Ok(news)
    }

    fn go_on_alone(
        &mut self,
        cluster: &mut Cluster,
        survivor: usize,
        since: Duration,
        (asked, said): (Option<Asked>, Option<Result<u64, Error>>),
    ) -> Result<Loss, String> {
        let now = cluster.world.elapsed();
        let answer = asked.as_ref().map(|(_, answer)| answer.lock().clone());
        let said = answer.flatten().or(said);
        let leads = cluster.leader().is_some_and(|(node, _)| node == survivor);
        let directory = cluster.node(survivor).map(|node| node.group().directory());
        let voters =
            |directory: &Directory| directory.members.iter().filter(|one| one.voter).count();
        if leads && directory.is_some_and(|directory| voters(&directory) == 1) {
            let others = (0..cluster.len()).filter(|node| *node != survivor);
            let others = others.filter(|node| !cluster.is_alive(*node));
            let left: Vec<usize> = others
                .filter(|node| cluster.finds_somebody(*node))
                .collect();
            self.refill_to = self.refill_to.max(left.len().min(2) + 1);
            return Ok(Loss::Return { left, now: None });
        }
        if now > since + ALONE_MAX {
            return Err(format!(
                "{} was told to go on alone and does not lead after {ALONE_MAX:?}: {said:?}",
                cluster.name(survivor)
            ));
        }
        // It has to notice first that the leader is gone.
        let (at, waits) = match &asked {
            Some((at, answer)) => (*at, answer.lock().is_none()),
            None => (since, false),
        };
        let asked = match waits || now < at + ASK_EVERY {
            true => asked,
            false => Some((now, cluster.wish(survivor, Administration::PromoteAlone))),
        };
        Ok(Loss::Alone {
            survivor,
            since,
            asked,
            said,
        })
    }
}

/// One after the other, so that they cannot elect one of their own: what they then did would be the
/// operator's fault.
fn tend_return(
    cluster: &mut Cluster,
    mut left: Vec<usize>,
    back: Option<(usize, Duration)>,
) -> Result<Option<Loss>, String> {
    let now = cluster.world.elapsed();
    if let Some((node, until)) = back {
        if cluster.is_alive(node) && now > until {
            return Err(format!(
                "{} is of an older incarnation, is back, and does not stop",
                cluster.name(node)
            ));
        }
        if cluster.is_alive(node) || cluster.lacked_space(node) {
            return Ok(Some(Loss::Return { left, now: back }));
        }
        check_last_words(cluster, node)?;
        if !cluster.is_dismissed(node) {
            let name = cluster.name(node);
            return Err(format!("{name} has stopped, and is a member all the same"));
        }
    }
    let Some(node) = left.pop() else {
        return Ok(None);
    };
    cluster.restart(node);
    let now = Some((node, now + STOP_MAX));
    Ok(Some(Loss::Return { left, now }))
}

fn is_granted((_, answer): &Asked) -> bool {
    matches!(&*answer.lock(), Some(Ok(_)))
}

/// Whether a wish that has not come true is forgotten.
fn is_over((since, answer): &Asked, now: Duration) -> bool {
    let is_refused = matches!(&*answer.lock(), Some(Err(_)));
    is_refused && now > *since + STOP_MAX || now > *since + FORGET_AFTER
}

/// Nodes that are in no directory any more are dismissed.
fn dismiss_removed(cluster: &mut Cluster, directory: &Directory) {
    for node in cluster.present() {
        if directory.was_removed(cluster.number(node)) {
            cluster.dismiss(node);
        }
    }
}

/// A node that has no part in the group any more stops for that reason and no other.
fn check_last_words(cluster: &Cluster, node: usize) -> Result<(), String> {
    let Some(reason) = cluster.world.stopped(cluster.host(node)) else {
        return Ok(());
    };
    let known = [
        "removed from the cluster",
        "the group goes on in incarnation",
        "older than what others know",
    ];
    let is_known = known.iter().any(|words| reason.contains(words));
    match is_known || cluster.failed_disk(node).is_some() {
        true => Ok(()),
        false => Err(format!(
            "{} is dismissed, and stopped itself for another reason: {reason}",
            cluster.name(node)
        )),
    }
}

/// Whether a node has all that the leaders of all groups have, at this instant and on its disk.
fn has_all(cluster: &Cluster, survivor: usize) -> bool {
    let present = cluster.present().into_iter();
    let running = present.filter(|node| cluster.is_alive(*node));
    let running = running.filter_map(|node| cluster.node(node));
    let replicas: Vec<_> = running.flat_map(|node| node.hosting().groups()).collect();
    let mut groups: Vec<_> = replicas.iter().map(|group| group.id()).collect();
    groups.dedup();
    let has_all_of = |group: &GroupId| {
        let leading = replicas.iter().filter(|one| one.id() == *group);
        let leader = leading.filter_map(|one| Some((one.leading()?, one)));
        let Some((_, leader)) = leader.max_by_key(|(term, _)| *term) else {
            return false;
        };
        let status = leader.status();
        let find = |node: NodeId| status.replicas.iter().find(|one| one.node == node);
        match (find(status.node), find(cluster.number(survivor))) {
            (Some(own), Some(other)) => other.flushed >= own.sent,
            _ => false,
        }
    };
    cluster.is_alive(survivor) && groups.iter().all(has_all_of)
}

/// All but the survivor die at once.
fn kill_others(cluster: &mut Cluster, survivor: usize) -> Loss {
    for node in cluster.present() {
        if node != survivor && cluster.is_alive(node) {
            cluster.crash(node, true);
        }
    }
    Loss::Alone {
        survivor,
        since: cluster.world.elapsed(),
        asked: None,
        said: None,
    }
}
