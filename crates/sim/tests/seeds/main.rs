//! Many seeds: what `make test` holds against floors, and the planted bugs.

mod planted;
mod seeds;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use sim::scenario::{Config, Outcome};
use sim::series::{run_seed, Totals};

/// Seeds run on so many threads, one world on each.
const THREADS: usize = 2;

/// Runs seeds from `first` on, in any order, until all are done or `enough` says so.
fn run_all(
    first: u64,
    count: u64,
    config: impl Fn(u64) -> Config + Sync,
    enough: impl Fn(&Outcome) -> bool + Sync,
) -> Totals {
    let totals = Mutex::new(Totals::default());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= count {
                    return;
                }
                let outcome = run_seed(config(first + number));
                if enough(&outcome) {
                    next.store(count, Ordering::SeqCst);
                }
                totals.lock().expect("no thread panics").add(&outcome);
            });
        }
    });
    totals.into_inner().expect("no thread panics")
}
