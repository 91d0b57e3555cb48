//! How a cluster is, in one line and one number, for people and for programs that watch it.
//!
//! ```text
//! healthy                              0   every member is there
//! degraded: n3 is down                 1   writes go on; less may fail than usual
//! degraded: n3 differs from n1 and …   1   replicas hold different rows
//! no majority: n1, n3 are down         2   no writes, and no reads but those on standbys
//! nothing runs: n1, n2, n3 are down    3
//! ```
//! It is judged by what the leader says of the members, and by which processes of the directory
//! run. Where the leader is on another machine, it is what the nodes here know.
//!
//! # What it leaves out
//! Whether anything has been lost, and how far who is connected has fallen behind.

use serde::{Deserialize, Serialize};

/// `quorate status` ends with this when it cannot tell.
pub const EXIT_UNKNOWN: u8 = 4;

/// Shown as the role of a node that does not run.
pub const DOWN: &str = "down";

/// Shown as the role of a node that runs and does not answer.
pub const SILENT: &str = "silent";

/// Said of a node whose log's disk hangs.
pub const SLOW: &str = "slow";

/// Said of a node that has no space for its log.
pub const FULL: &str = "full";

/// Said of a node whose process gets too little of the processor.
pub const STARVED: &str = "starved";

/// Shown as the role of a node that opens its files and replays its log.
pub const STARTING: &str = node::real::http::STARTING;

/// Shown as the role of a node that does not run, and is not heard when it does: its directory is
/// older than what others know of it.
pub const OUTDATED: &str = "outdated";

/// As a standby is called that nobody waits for any more; in `pg_stat_replication` too.
const GIVEN_UP: &str = "given up";

/// How a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Every member is there.
    Healthy,
    /// Writes go on without some member.
    Degraded,
    /// Writes wait for standbys that are named and not there.
    WritesWait,
    /// A majority may be there, but nobody leads.
    NoLeader,
    /// Too few voters are there for one to lead.
    NoMajority,
    /// No node of the directory runs.
    NothingRuns,
}

impl State {
    /// What its line begins with.
    pub fn name(self) -> &'static str {
        match self {
            State::Healthy => "healthy",
            State::Degraded => "degraded",
            State::WritesWait => "writes wait",
            State::NoLeader => "nobody leads",
            State::NoMajority => "no majority",
            State::NothingRuns => "nothing runs",
        }
    }

    /// What the command ends with.
    pub fn exit_code(self) -> u8 {
        match self {
            State::Healthy => 0,
            State::Degraded => 1,
            State::WritesWait | State::NoLeader | State::NoMajority => 2,
            State::NothingRuns => 3,
        }
    }
}

/// How a cluster is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How it is.
    pub state: State,
    /// What is missing; may be empty.
    pub why: String,
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.state.name())?;
        match self.why.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.why),
        }
    }
}

/// What a node says of itself and of the others, from its status page.
#[derive(Clone, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Answer {
    pub name: String,
    pub role: String,
    pub group: u64,
    pub term: u64,
    pub received: u64,
    pub flushed: u64,
    pub applied: u64,
    pub commit: u64,
    pub ready: bool,
    pub leader: Option<String>,
    pub missing: Vec<String>,
    pub hears_majority: bool,
    pub lacks_standbys: Option<String>,
    #[serde(default)]
    pub trouble: Option<String>,
    pub members: Vec<MemberAnswer>,
    #[serde(default)]
    pub consistency: ConsistencyAnswer,
    #[serde(default)]
    pub longest_stretch: Option<StretchAnswer>,
}

/// For how long a statement has kept its reactor without giving way, at most, and its first word.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct StretchAnswer {
    pub microseconds: u64,
    pub command: String,
}

/// What comparing the replicas has shown, as a node knows it.
#[derive(Clone, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct ConsistencyAnswer {
    pub inconsistencies: Vec<String>,
}

/// A member, as a node knows it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct MemberAnswer {
    pub name: String,
    pub voter: bool,
    pub connected: Option<bool>,
    pub sync_state: Option<String>,
    #[serde(default)]
    pub outdated: bool,
}

/// A node of the directory.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Its name.
    pub name: String,
    /// Whether it voted when it was last written down.
    pub voter: bool,
    /// Whether its process runs.
    pub runs: bool,
    /// What it says; none when it does not answer, or has nothing to say because it starts.
    pub answer: Option<Answer>,
    /// It says that it starts.
    pub starting: bool,
    /// Another node does not hear it, because its directory is an older one.
    pub outdated: bool,
}

impl Looked {
    /// What is shown of it where others show what they do.
    pub fn role(&self) -> &str {
        match (&self.answer, self.runs) {
            (Some(answer), _) => &answer.role,
            (None, _) if self.outdated => OUTDATED,
            (None, true) if self.starting => STARTING,
            (None, true) => SILENT,
            (None, false) => DOWN,
        }
    }
}

/// The leader's answer: of several that believe to lead, that of the newest term.
pub fn leader(nodes: &[Looked]) -> Option<&Answer> {
    let answers = nodes.iter().filter_map(|node| node.answer.as_ref());
    let leading = answers.filter(|answer| answer.role == "leader");
    leading.max_by_key(|answer| answer.term)
}

/// Judges a cluster by the nodes of a directory.
pub fn judge(nodes: &[Looked]) -> Health {
    let health = |state, why| Health { state, why };
    let mut absent = Absent::default();
    for node in nodes.iter().filter(|node| node.answer.is_none()) {
        absent.add(&node.name, node.role());
    }
    if !nodes.iter().any(|node| node.runs) {
        return health(State::NothingRuns, absent.to_string());
    }
    let told = nodes.iter().filter_map(|node| node.answer.as_ref());
    let troubles = told.filter_map(|answer| Some((&*answer.name, answer.trouble.as_deref()?)));
    if let Some(leader) = leader(nodes) {
        // Who has trouble may be silent for the leader, and says itself why.
        troubles.for_each(|(name, trouble)| absent.add(name, trouble));
        return judge_led(leader, absent);
    }
    let answers = || nodes.iter().filter_map(|node| node.answer.as_ref());
    let mut told = answers().filter(|answer| answer.leader.is_some());
    let is_here = |name: &str| nodes.iter().any(|node| node.name == name);
    if let Some(told) = told.find(|told| !told.leader.as_deref().is_some_and(is_here)) {
        let leader = told.leader.as_deref().unwrap_or_default();
        return match absent.is_nobody() {
            true => health(
                State::Healthy,
                format!("{} hears of {leader}, which leads", told.name),
            ),
            false => health(State::Degraded, absent.to_string()),
        };
    }
    judge_leaderless(nodes, absent)
}

/// Somebody leads.
fn judge_led(leader: &Answer, mut absent: Absent) -> Health {
    for member in &leader.members {
        if member.sync_state.as_deref() == Some(GIVEN_UP) {
            absent.add(&member.name, GIVEN_UP);
        } else if member.connected == Some(false) {
            absent.add(&member.name, SILENT);
        }
    }
    let (state, why) = match (&leader.lacks_standbys, leader.ready, absent.is_nobody()) {
        (Some(names), ..) => {
            let why = format!("too few of synchronous_standby_names ({names}) are connected");
            let more = if absent.is_nobody() { "" } else { "; " };
            (State::WritesWait, format!("{why}{more}{absent}"))
        }
        (None, false, _) => (State::NoLeader, format!("{} is not ready yet", leader.name)),
        (None, true, true) => (State::Healthy, String::new()),
        (None, true, false) => (State::Degraded, absent.to_string()),
    };
    with_inconsistencies(Health { state, why }, leader)
}

/// Adds where replicas differ: the first place, and how many more there are.
fn with_inconsistencies(health: Health, leader: &Answer) -> Health {
    let found = &leader.consistency.inconsistencies;
    let Some(first) = found.first() else {
        return health;
    };
    let state = match health.state {
        State::Healthy => State::Degraded,
        other => other,
    };
    let mut why = vec![health.why];
    why.retain(|why| !why.is_empty());
    why.push(match found.len() {
        1 => first.clone(),
        count => format!("{first}, and {} more such ranges", count - 1),
    });
    let why = why.join("; ");
    Health { state, why }
}

/// Nobody leads.
fn judge_leaderless(nodes: &[Looked], mut absent: Absent) -> Health {
    let answers = || nodes.iter().filter_map(|node| node.answer.as_ref());
    // Whoever answers knows the members better than the directory does, and those elsewhere.
    let members = answers().map(|answer| &answer.members).next();
    let voters: Vec<&str> = match members {
        Some(members) => {
            let voters = members.iter().filter(|member| member.voter);
            voters.map(|member| &*member.name).collect()
        }
        None => {
            let voters = nodes.iter().filter(|node| node.voter);
            voters.map(|node| &*node.name).collect()
        }
    };
    let is_missed = |name: &str| answers().any(|one| one.missing.iter().any(|miss| miss == name));
    let answers_here = |name: &str| answers().any(|answer| answer.name == name);
    for name in &voters {
        if !answers_here(name) && is_missed(name) {
            absent.add(name, SILENT);
        }
    }
    let there = voters.iter().filter(|name| !absent.has(name)).count();
    if there <= voters.len() / 2 {
        return Health {
            state: State::NoMajority,
            why: absent.to_string(),
        };
    }
    let mut why: Vec<String> = answers()
        .filter(|answer| !answer.missing.is_empty())
        .map(|answer| {
            format!(
                "{} hears nothing of {}",
                answer.name,
                answer.missing.join(", ")
            )
        })
        .collect();
    if !absent.is_nobody() {
        why.insert(0, absent.to_string());
    }
    let is_nowhere = answers().all(|answer| !answer.hears_majority);
    Health {
        state: match is_nowhere {
            true => State::NoMajority,
            false => State::NoLeader,
        },
        why: why.join("; "),
    }
}

/// Who is absent, and in what way: the first that is said of each.
#[derive(Debug, Default)]
struct Absent(Vec<(&'static str, Vec<String>)>);

impl Absent {
    fn add(&mut self, name: &str, how: &str) {
        if how != GIVEN_UP && self.has(name) {
            return;
        }
        let known = [
            DOWN, STARTING, SILENT, SLOW, FULL, STARVED, OUTDATED, GIVEN_UP,
        ];
        let Some(how) = known.into_iter().find(|known| *known == how) else {
            return;
        };
        match self.0.iter_mut().find(|(known, _)| *known == how) {
            Some((_, names)) => names.push(name.to_owned()),
            None => self.0.push((how, vec![name.to_owned()])),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|(_, names)| names.iter().any(|one| one == name))
    }

    fn is_nobody(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (how, names)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let verb = if names.len() > 1 { "are" } else { "is" };
            write!(f, "{comma}{} {verb} {how}", names.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::engine::SyncState;

    use super::*;

    /// Nodes that follow or lead (`leader`, `follower`), or do not answer (`down`, `starting`,
    /// `silent`).
    fn nodes(roles: &[&str]) -> Vec<Looked> {
        let name = |index: usize| format!("n{}", index + 1);
        let led_by = roles.iter().position(|role| *role == "leader").map(name);
        let missing: Vec<String> = (0..roles.len())
            .filter(|index| [DOWN, STARTING, SILENT, OUTDATED].contains(&roles[*index]))
            .map(name)
            .collect();
        let member = |index: usize| MemberAnswer {
            name: name(index),
            voter: roles[index] != "learner",
            connected: led_by.as_ref().map(|_| !missing.contains(&name(index))),
            sync_state: None,
            outdated: false,
        };
        let answer = |index: usize| Answer {
            name: name(index),
            role: roles[index].to_owned(),
            ready: led_by.is_some(),
            leader: led_by.clone(),
            missing: match led_by {
                Some(_) => Vec::new(),
                None => missing.clone(),
            },
            hears_majority: led_by.is_some() || missing.len() * 2 < roles.len(),
            members: (0..roles.len()).map(member).collect(),
            ..Answer::default()
        };
        let looked = |index: usize| Looked {
            name: name(index),
            voter: roles[index] != "learner",
            runs: ![DOWN, OUTDATED].contains(&roles[index]),
            answer: (!missing.contains(&name(index))).then(|| answer(index)),
            starting: roles[index] == STARTING,
            outdated: roles[index] == OUTDATED,
        };
        (0..roles.len()).map(looked).collect()
    }

    #[test]
    fn a_cluster_is_as_its_nodes_are() {
        for (roles, expected) in [
            (&["leader", "follower", "follower"][..], "0 healthy"),
            (&["leader"], "0 healthy"),
            (&["leader", "follower", "down"], "1 degraded: n3 is down"),
            (
                &["silent", "follower", "leader"],
                "1 degraded: n1 is silent",
            ),
            (
                &["leader", "down", "follower", "silent", "follower"],
                "1 degraded: n2 is down, n4 is silent",
            ),
            (&["leader", "learner", "down"], "1 degraded: n3 is down"),
            (
                &["outdated", "follower", "leader"],
                "1 degraded: n1 is outdated",
            ),
            (
                &["outdated", "follower", "down"],
                "2 no majority: n1 is outdated, n3 is down",
            ),
            (
                &["down", "follower", "down"],
                "2 no majority: n1, n3 are down",
            ),
            (
                &["down", "follower", "silent"],
                "2 no majority: n1 is down, n3 is silent",
            ),
            (&["silent"], "2 no majority: n1 is silent"),
            (&["starting"], "2 no majority: n1 is starting"),
            (
                &["starting", "follower", "leader"],
                "1 degraded: n1 is starting",
            ),
            (&["down", "learner", "learner"], "2 no majority: n1 is down"),
            (
                &["down", "follower", "follower"],
                "2 nobody leads: n1 is down; n2 hears nothing of n1; n3 hears nothing of n1",
            ),
            (&["follower", "follower", "follower"], "2 nobody leads"),
            (
                &["down", "down", "down"],
                "3 nothing runs: n1, n2, n3 are down",
            ),
        ] {
            let health = judge(&nodes(roles));
            let said = format!("{} {health}", health.state.exit_code());
            assert_eq!(said, expected, "{roles:?}");
        }
    }

    #[test]
    fn a_node_says_itself_what_its_disk_does() {
        let mut led = nodes(&["leader", "follower", "follower"]);
        led[2].answer.as_mut().unwrap().trouble = Some(SLOW.to_owned());
        assert_eq!(judge(&led).to_string(), "degraded: n3 is slow");
        let leader = led[0].answer.as_mut().unwrap();
        leader.members[2].connected = Some(false);
        leader.trouble = Some(FULL.to_owned());
        assert_eq!(judge(&led).to_string(), "degraded: n1 is full, n3 is slow");
    }

    #[test]
    fn what_the_leader_says_counts() {
        let mut led = nodes(&["leader", "follower", "follower"]);
        let leader = led[0].answer.as_mut().unwrap();
        leader.members[2].connected = Some(false);
        assert_eq!(judge(&led).to_string(), "degraded: n3 is silent");
        let leader = led[0].answer.as_mut().unwrap();
        leader.members[2].sync_state = Some(SyncState::GivenUp.name().to_owned());
        assert_eq!(judge(&led).to_string(), "degraded: n3 is given up");
        led[2].answer = None;
        led[2].runs = false;
        assert_eq!(
            judge(&led).to_string(),
            "degraded: n3 is down, n3 is given up"
        );
        let leader = led[0].answer.as_mut().unwrap();
        leader.members[2].sync_state = None;
        leader.lacks_standbys = Some("n3".to_owned());
        let health = judge(&led);
        assert_eq!(
            health.to_string(),
            "writes wait: too few of synchronous_standby_names (n3) are connected; n3 is down"
        );
        assert_eq!(health.state.exit_code(), 2);
    }

    #[test]
    fn replicas_that_differ_are_no_health() {
        let mut led = nodes(&["leader", "follower", "down"]);
        let words = "n3 differs from n1 and n2 at LSN 95: tree 7".to_owned();
        let told = |led: &mut [Looked], count| {
            let leader = led[0].answer.as_mut().unwrap();
            leader.consistency.inconsistencies = vec![words.clone(); count];
            judge(led).to_string()
        };
        assert_eq!(told(&mut led, 1), format!("degraded: n3 is down; {words}"));
        let mut led = nodes(&["leader", "follower", "follower"]);
        assert_eq!(told(&mut led, 0), "healthy");
        let more = format!("degraded: {words}, and 2 more such ranges");
        assert_eq!(told(&mut led, 3), more);
    }

    /// On a machine of its own a node knows the others by what it hears.
    #[test]
    fn a_node_alone_in_its_directory_tells_what_it_hears() {
        let mut all = nodes(&["follower", "leader", "follower"]);
        all.truncate(1);
        let health = judge(&all);
        assert_eq!(health.to_string(), "healthy: n1 hears of n2, which leads");
        let mut all = nodes(&["follower", "silent", "down"]);
        all.truncate(1);
        let health = judge(&all);
        assert_eq!(health.to_string(), "no majority: n2, n3 are silent");
    }

    /// Whatever is printed is explained.
    #[test]
    fn every_word_is_in_the_glossary() {
        let glossary = include_str!("../../../docs/GLOSSARY.md");
        let states = [
            State::Healthy,
            State::Degraded,
            State::WritesWait,
            State::NoLeader,
            State::NoMajority,
            State::NothingRuns,
        ];
        let mut words: Vec<&str> = states.map(State::name).to_vec();
        words.extend([
            DOWN, STARTING, SILENT, SLOW, FULL, STARVED, GIVEN_UP, "leader", "follower", "learner",
        ]);
        words.extend(SyncState::ALL.map(SyncState::name));
        words.extend([
            "group",
            "term",
            "received",
            "flushed",
            "applied",
            "commit index",
        ]);
        for word in words {
            let is_there = glossary.lines().any(|line| {
                let head = line
                    .strip_prefix("| ")
                    .and_then(|line| line.split(" | ").next());
                head.is_some_and(|head| head.split(", ").any(|one| one == word))
            });
            assert!(is_there, "{word:?} has no line in docs/GLOSSARY.md");
        }
    }
}
