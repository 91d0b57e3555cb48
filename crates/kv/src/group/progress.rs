//! How far the replay of a long log has come, for the node's log.
//!
//! ```text
//!   replaying the log: 0 of 1024 MB since the checkpoint        a line when it begins,
//!   replaying the log: 310 of 1024 MB, 12 s to go               and one each two seconds
//! ```

use std::time::Duration;

use base::env::Instant;

/// How often it is told.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// A log that is shorter is replayed without a word.
const TOLD_BYTES_MIN: u64 = 64 << 20;

/// What is known of a replay.
#[derive(Debug)]
pub(super) struct Progress {
    begun: Instant,
    told: Option<Instant>,
    total: u64,
}

impl Progress {
    /// So many bytes are to be replayed.
    pub(super) fn new(now: Instant, total: u64) -> Progress {
        Progress {
            begun: now,
            told: None,
            total,
        }
    }

    /// What is to be told now that so many bytes are left, if anything.
    pub(super) fn tell(&mut self, now: Instant, left: u64) -> Option<String> {
        let recent = self.told.is_some_and(|told| now.since(told) < TELL_EVERY);
        if self.total < TOLD_BYTES_MIN || recent {
            return None;
        }
        self.told = Some(now);
        let done = self.total.saturating_sub(left);
        let (shown, total) = (done >> 20, self.total >> 20);
        let message = format!("replaying the log: {shown} of {total} MB");
        let spent = now.since(self.begun).as_secs_f64();
        Some(match done {
            0 => format!("{message} since the checkpoint"),
            done => {
                let seconds = spent * left as f64 / done as f64;
                format!("{message}, {seconds:.0} s to go")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_replay_is_told_of_and_a_short_one_is_not() {
        let at = |millis: u64| Instant::default().after(Duration::from_millis(millis));
        let mut long = Progress::new(at(0), 1 << 30);
        let mut told = Vec::new();
        for step in 0..=10u64 {
            told.extend(long.tell(at(step * 500), (10 - step) * (1 << 30) / 10));
        }
        assert_eq!(
            told,
            [
                "replaying the log: 0 of 1024 MB since the checkpoint",
                "replaying the log: 409 of 1024 MB, 3 s to go",
                "replaying the log: 819 of 1024 MB, 1 s to go",
            ]
        );
        let mut short = Progress::new(at(0), 63 << 20);
        assert_eq!(short.tell(at(0), 63 << 20), None);
        assert_eq!(short.tell(at(60_000), 1 << 20), None);
    }
}
