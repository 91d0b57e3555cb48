//! How long statements keep their reactor without giving way.
//!
//! Nothing interrupts a statement but itself ([`base::coro::work`]); while it does not give way, the
//! other sessions of its reactor stand still. So whoever resumes statements notes here how long each
//! resume took, and the status page shows the longest since the node started, with its command. The
//! page asks nobody who they are, so the statement itself is not there:
//!
//! ```text
//! "longest_stretch": { "microseconds": 1845, "command": "SELECT" }
//! ```
//! It is a statement's processor time. To ask for that costs a system call, so a session does it once in
//! a while ([`SAMPLED_EVERY`]), and what its thread has used since then for others counts too.
//!
//! Every resume is measured, so nothing here allocates: the word has its place from the start.

use std::time::Duration;

use base::env::{Env, Instant};
use base::sync::Mutex;
use sql::session::activity::Activity;

/// Shorter stretches are not looked at: they keep nobody waiting.
const NOTED_MIN: Duration = Duration::from_millis(5);

/// Processor time is asked for when the last answer is as old as this.
const SAMPLED_EVERY: Duration = Duration::from_millis(1);

/// Of longer words the beginning is shown.
const COMMAND_CHARACTERS_MAX: usize = 20;

/// The longest stretch of a node.
#[derive(Debug)]
pub struct Stretches {
    /// The longest so far, of 0 microseconds while there is none.
    longest: Mutex<Stretch>,
}

/// How long a statement ran without giving way.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stretch {
    /// How long.
    pub microseconds: u64,
    /// The first word of the statement.
    pub command: String,
}

/// The processor time that a thread had used at some time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    thread_time: Duration,
}

/// What a session's thread has used, as the session asked for it last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled(Option<Sample>);

/// When a statement is resumed.
#[derive(Clone, Copy, Debug)]
pub struct Resumed {
    at: Instant,
    /// The thread's processor time then, or a little before.
    thread_time: Duration,
}

impl Resumed {
    /// Now.
    pub fn now(env: &dyn Env, sampled: &mut Sampled) -> Resumed {
        let at = env.now();
        let is_new = |sample: &Sample| at.since(sample.at) < SAMPLED_EVERY;
        let sample = sampled.0.filter(is_new).unwrap_or_else(|| Sample {
            at,
            thread_time: env.thread_time(),
        });
        sampled.0 = Some(sample);
        Resumed {
            at,
            thread_time: sample.thread_time,
        }
    }
}

impl Default for Stretches {
    fn default() -> Stretches {
        Stretches {
            longest: Mutex::new(Stretch {
                microseconds: 0,
                command: String::with_capacity(COMMAND_CHARACTERS_MAX),
            }),
        }
    }
}

impl Stretches {
    /// A statement that was resumed has given way, waits, or is at its end.
    pub fn note(&self, env: &dyn Env, resumed: Resumed, activity: Option<&Activity>) {
        let passed = env.now().since(resumed.at);
        if passed < NOTED_MIN {
            return;
        }
        let used = env.thread_time().saturating_sub(resumed.thread_time);
        let took = used.min(passed);
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut longest = self.longest.lock();
        if microseconds <= longest.microseconds {
            return;
        }
        longest.microseconds = microseconds;
        longest.command.clear();
        let _ = activity.and_then(|activity| {
            activity.read(|doing| {
                let letters = doing.query.trim_start().chars();
                let command = letters.take_while(char::is_ascii_alphabetic);
                let command = command.take(COMMAND_CHARACTERS_MAX);
                let command = command.map(|c| c.to_ascii_uppercase());
                longest.command.extend(command);
            })
        });
    }

    /// The longest so far.
    pub fn longest(&self) -> Option<Stretch> {
        let longest = self.longest.lock();
        (longest.microseconds > 0).then(|| longest.clone())
    }
}
