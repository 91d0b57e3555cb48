//! Clocks and timers.
//!
//! Leases need a clock that counts time spent in suspend, so [`now`] is CLOCK_BOOTTIME, not the
//! CLOCK_MONOTONIC of std.

use std::time::Duration;

use base::env::Instant;
use base::Timestamp;

/// Seconds between 1970-01-01 and 2000-01-01, PostgreSQL's epoch.
const POSTGRES_EPOCH_S: i64 = 946_684_800;

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(result, 0, "clock {clock} must be there");
    time
}

/// The clock that counts suspend.
pub fn now() -> Instant {
    let time = read(libc::CLOCK_BOOTTIME);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    Instant(u64::try_from(nanos).unwrap_or(0))
}

/// The processor time that this thread has used.
pub fn thread_time() -> Duration {
    let time = read(libc::CLOCK_THREAD_CPUTIME_ID);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// The wall clock.
pub fn wall_clock() -> Timestamp {
    let time = read(libc::CLOCK_REALTIME);
    Timestamp((time.tv_sec - POSTGRES_EPOCH_S) * 1_000_000 + time.tv_nsec / 1_000)
}

/// Ready when [`now`] has reached `deadline`. Tokio's clock stops in suspend, so the time left is
/// looked at again after each of its sleeps.
pub async fn sleep_until(deadline: Instant) {
    loop {
        let left = deadline.since(now());
        if left == Duration::ZERO {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// A time for people: `2026-11-20 21:54:26.123 UTC`.
pub fn utc_text(time: Timestamp) -> String {
    let unix_ms = time.0.div_euclid(1_000) + POSTGRES_EPOCH_S * 1_000;
    let (seconds, millis) = (unix_ms.div_euclid(1_000), unix_ms.rem_euclid(1_000));
    // SAFETY: all zeros is a valid `tm`.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to valid places.
    unsafe { libc::gmtime_r(&seconds, &mut parts) };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{millis:03} UTC",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(utc_text(Timestamp(0)), "2000-01-01 00:00:00.000 UTC");
        let leap_day = 59 * 86_400 * 1_000_000 + 1_234_567;
        assert_eq!(utc_text(Timestamp(leap_day)), "2000-02-29 00:00:01.234 UTC");
    }

    #[test]
    fn the_clock_goes_on() {
        let first = now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(now().since(first) >= Duration::from_millis(2));
    }
}
