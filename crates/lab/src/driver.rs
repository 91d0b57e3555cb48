//! Runs sessions of our own on an [`Env`]'s reactors, from a thread that may block.

use std::future::Future;
use std::io::{Error, IsTerminal, Result, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, LocalBoxFuture, Reactor};

use crate::client::Failure;
use crate::host::{go_on, pause, peak_memory_bytes, processor_micros};
use crate::session::Target;
use crate::tpcc::consistency::{self, Checked};
use crate::tpcc::load::{self, Progress};
use crate::tpcc::report::{ClientCosts, Figures};
use crate::tpcc::run::{Plan, Run};

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Transactions under way at the end of a run are waited for so long.
const END_WAIT_MAX: Duration = Duration::from_secs(70);

/// A client that is busier than this, in percent, measures itself.
pub const BUSY_PERCENT: f64 = 85.0;

/// The reactors of this process.
#[derive(Clone, Debug)]
pub struct Driver {
    env: Arc<dyn Env>,
}

/// What a server or a connection said, as an error of this process.
pub fn explain(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) | Failure::Broken(error) => {
            let detail = error.fields().detail.clone().unwrap_or_default();
            let text = format!("{}: {} {detail}", error.state().as_str(), error.message());
            Error::other(text.trim_end().to_owned())
        }
    }
}

impl Driver {
    /// On an environment whose reactors are none of this thread's business.
    pub fn new(env: Arc<dyn Env>) -> Driver {
        Driver { env }
    }

    /// The environment.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// Runs a future on a reactor and returns where its value will arrive.
    pub fn spawn<T, F>(
        &self,
        index: usize,
        start: impl FnOnce(Arc<dyn Env>) -> F + Send + 'static,
    ) -> std::sync::mpsc::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (sender, receiver) = channel();
        let env = self.env.clone();
        let task = Box::new(move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                // Whoever has given up waiting needs no value.
                let _ = sender.send(start(env).await);
            })
        });
        let reactor = Reactor::Session(index % self.env.session_reactors());
        self.env.spawn(reactor, "lab", task);
        receiver
    }

    /// Runs a future on a reactor and waits for its value.
    ///
    /// # Errors
    /// The task panicked.
    pub fn block_on<T, F>(
        &self,
        start: impl FnOnce(Arc<dyn Env>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let receiver = self.spawn(0, start);
        receiver.recv().map_err(|_| Error::other("a task panicked"))
    }

    /// Checks the consistency conditions of TPC-C.
    ///
    /// # Errors
    /// The server refuses.
    pub fn check_tpcc(&self, target: &Target) -> Result<Vec<Checked>> {
        let target = target.clone();
        let checked =
            self.block_on(move |env| async move { consistency::check(&*env, &target).await })?;
        checked.map_err(explain)
    }

    /// Makes TPC-C's tables and loads them, over so many sessions at once, with a bar on a terminal.
    ///
    /// # Errors
    /// The server refuses.
    pub fn load_tpcc(
        &self,
        target: &Target,
        warehouses: u64,
        sessions: usize,
        seed: u64,
    ) -> Result<()> {
        let to = target.clone();
        self.block_on(move |env| async move { load::create_tables(&*env, &to).await })?
            .map_err(explain)?;
        let progress = Progress::new(warehouses);
        let shows = std::io::stderr().is_terminal();
        let mut loaders = Vec::new();
        for index in 0..sessions.max(1) {
            let (target, progress) = (target.clone(), progress.clone());
            loaders.push(self.spawn(index, move |env| async move {
                load::load_pieces(&*env, &target, &progress, seed).await
            }));
        }
        for loader in loaders {
            loop {
                match loader.recv_timeout(LOOK) {
                    Ok(loaded) => break loaded.map_err(explain)?,
                    Err(RecvTimeoutError::Timeout) if shows => {
                        go_on()?;
                        show_bar(&progress);
                    }
                    Err(RecvTimeoutError::Timeout) => go_on()?,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Error::other("a loader panicked"));
                    }
                }
            }
        }
        if shows {
            eprintln!("\r{:70}\r", "");
        }
        Ok(())
    }

    /// Runs TPC-C: a warm-up, then the measurement.
    ///
    /// # Errors
    /// The system does not say what this process used.
    pub fn run_tpcc(&self, plan: &Plan, warm_up: Duration, length: Duration) -> Result<Figures> {
        let shows = std::io::stderr().is_terminal();
        let run = Run::start(&self.env, plan);
        pause(warm_up);
        let this = [std::process::id()];
        let before = processor_micros(&this)?;
        let begin = self.env.now();
        run.begin(begin);
        let mut last = 0;
        loop {
            let passed = self.env.now().since(begin);
            let Some(left) = length.checked_sub(passed).filter(|left| !left.is_zero()) else {
                break;
            };
            go_on()?;
            pause(LOOK.min(left));
            if shows && passed.as_secs() != last {
                last = passed.as_secs();
                let done = run.so_far().completed() as f64;
                let rate = done / passed.as_secs_f64();
                eprint!(
                    "\r{last:5} s {rate:10.0} transactions/s {:8} waiting ",
                    run.waiting()
                );
            }
        }
        if shows {
            eprintln!("\r{:70}\r", "");
        }
        let measured = run.finish();
        let took = self.env.now().since(begin).as_secs_f64();
        let micros = processor_micros(&this)? - before;
        run.stop();
        let stopping = self.env.now();
        while !run.has_ended() && self.env.now().since(stopping) < END_WAIT_MAX {
            pause(Duration::from_millis(10));
        }
        let costs = ClientCosts {
            processor_micros: micros / measured.completed().max(1) as f64,
            busy_percent: micros / took / 1e4 / plan.reactors as f64,
            memory_bytes: peak_memory_bytes()?,
        };
        Ok(Figures::of(plan, &measured, took, costs))
    }
}

fn show_bar(progress: &Progress) {
    let rows = progress.rows.load(Ordering::Relaxed);
    let share = (rows as f64 / progress.rows_expected as f64).min(1.0);
    let full = "#".repeat((share * 40.0) as usize);
    eprint!("\r[{full:40}] {:3.0}% {rows} rows ", share * 100.0);
    // A terminal that is gone is no reason to stop.
    let _ = std::io::stderr().flush();
}
