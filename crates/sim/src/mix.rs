//! What is on in a run, and how often: the usual mix, or what a file says.
//!
//! ```
//! use sim::faults::Fault;
//! use sim::mix::Mix;
//! let mix = Mix::parse("only = true\n[faults]\nswitchovers = 5\n[clients]\nlists = 2\n").unwrap();
//! assert_eq!(mix.faults.of(Fault::Switchover), 5);
//! assert_eq!(mix.faults.of(Fault::LeaderCrash), 0);
//! assert_eq!(Mix::parse("").unwrap(), Mix::default());
//! ```
//! What a file does not name is as usual, or off where it says `only = true`. A fault's figure says
//! how often it is drawn in proportion to the others; a client's, how many of them there are. With
//! `looks-inside = false` nobody looks at what leaders believe ([`crate::watch`]): whatever is wrong,
//! clients have to find it. `groups = 3` gives the cluster as many groups; the further ones have
//! clients of their own ([`crate::further`]), and SQL's tables lie in all of them unless it says
//! `spread = false`. They are led by one node, or, with `leaders-apart = true`, by several.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::faults::{Fault, KINDS};

/// Groups of a cluster at most.
const GROUPS_MAX: usize = 8;

/// Clients of one kind at most.
const CLIENTS_MAX: usize = 64;

/// How often each fault is drawn, in proportion to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights([u64; KINDS]);

impl Weights {
    /// That of one fault.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }
}

/// How many clients there are of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Write registers, journals, a bank and duties, and read those of all.
    pub writers: usize,
    /// Only read those.
    pub readers: usize,
    /// Read on standbys.
    pub standby_readers: usize,
    /// Pipeline, cancel, and disconnect in the middle.
    pub restless: usize,
    /// Append to lists and read them.
    pub lists: usize,
    /// Change the schema.
    pub schema: usize,
    /// Prepare transactions and resolve them ([`crate::two_phase`]).
    pub two_phase: usize,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            writers: 8,
            readers: 5,
            standby_readers: 2,
            restless: 2,
            lists: 3,
            schema: 1,
            two_phase: 0,
        }
    }
}

/// What is on, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// The faults.
    pub faults: Weights,
    /// The clients.
    pub clients: Clients,
    /// Whether what leaders believe is held against the truth.
    pub looks_inside: bool,
    /// How many groups the cluster has.
    pub groups: usize,
    /// Whether SQL's tables lie in all of them.
    pub spread: bool,
    /// Whether several nodes lead them.
    pub leaders_apart: bool,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            faults: Weights(Fault::ALL.map(Fault::weight)),
            clients: Clients::default(),
            looks_inside: true,
            groups: 1,
            spread: true,
            leaders_apart: false,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    /// What is not named is off.
    #[serde(default)]
    only: bool,
    looks_inside: Option<bool>,
    groups: Option<usize>,
    spread: Option<bool>,
    #[serde(default)]
    leaders_apart: bool,
    #[serde(default)]
    faults: BTreeMap<String, u32>,
    #[serde(default)]
    clients: BTreeMap<String, usize>,
}

impl Mix {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Mix, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut mix = Mix {
            looks_inside: written.looks_inside.unwrap_or(true),
            groups: written.groups.unwrap_or(1),
            spread: written.spread.unwrap_or(true),
            leaders_apart: written.leaders_apart,
            ..Mix::default()
        };
        if !(1..=GROUPS_MAX).contains(&mix.groups) {
            return Err(format!("{} groups, not 1 to {GROUPS_MAX}", mix.groups));
        }
        if written.only {
            mix.faults = Weights([0; KINDS]);
            mix.clients = Clients {
                writers: 0,
                readers: 0,
                standby_readers: 0,
                restless: 0,
                lists: 0,
                schema: 0,
                two_phase: 0,
            };
        }
        for (name, weight) in &written.faults {
            let fault = Fault::ALL.into_iter().find(|fault| key(*fault) == *name);
            let fault = fault.ok_or_else(|| format!("no fault is called {name}"))?;
            mix.faults.0[fault as usize] = u64::from(*weight);
        }
        for (name, count) in &written.clients {
            if *count > CLIENTS_MAX {
                return Err(format!("{count} {name} are more than {CLIENTS_MAX}"));
            }
            let clients = &mut mix.clients;
            let slot = match name.as_str() {
                "writers" => &mut clients.writers,
                "readers" => &mut clients.readers,
                "standby-readers" => &mut clients.standby_readers,
                "restless" => &mut clients.restless,
                "lists" => &mut clients.lists,
                "schema" => &mut clients.schema,
                "two-phase" => &mut clients.two_phase,
                _ => return Err(format!("no clients are called {name}")),
            };
            *slot = *count;
        }
        Ok(mix)
    }
}

/// A fault's name in a file: `leader-crashes`.
pub fn key(fault: Fault) -> String {
    fault.name().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_what_is_on() {
        let mix = Mix::parse("[faults]\nleader-crashes = 0\n[clients]\nwriters = 3").unwrap();
        assert_eq!(mix.faults.of(Fault::LeaderCrash), 0);
        assert_eq!(mix.faults.of(Fault::Freeze), Fault::Freeze.weight());
        assert_eq!((mix.clients.writers, mix.clients.readers), (3, 5));
        assert_eq!(
            (mix.groups, Mix::parse("groups = 3").unwrap().groups),
            (1, 3)
        );
        assert!(mix.looks_inside && !Mix::parse("looks-inside = false").unwrap().looks_inside);
        for wrong in [
            "[faults]\nearthquakes = 1",
            "[clients]\npoets = 1",
            "[clients]\nlists = 65",
            "seconds = 4",
            "groups = 0",
            "[faults]\nfreezes = -1",
        ] {
            assert!(Mix::parse(wrong).is_err(), "{wrong}");
        }
    }
}
