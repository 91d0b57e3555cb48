//! LISTEN, NOTIFY and UNLISTEN, and what the session hears.
//!
//! All three happen when their transaction commits, and not at all if it does not:
//!
//! ```text
//! before the commit   what it tells becomes rows of it; a channel is announced
//! the commit
//! after it            the channels are listened to, from the announcement on
//! ```
//! A session hears outside of transactions only, what is committed for good; its own notifications
//! come with the answer to their commit, which is waited for therefore.
//!
//! Source: PostgreSQL 15 manual, LISTEN, NOTIFY, UNLISTEN.

use std::task::{Context, Poll};

use base::engine::{Channel, Heard, Listener, Notification};
use base::{coro, Debt, Durability, Error, Lsn, Result};

use super::utility::tag;
use super::{CommandTag, Session};
use execution::state::notify::Asked;

impl Session {
    /// LISTEN.
    pub(super) fn listen(&mut self, channel: &str) -> Result<CommandTag> {
        self.ensure_open()?;
        self.shared.notify.ask(Asked::Listen(channel.to_owned()))?;
        Ok(tag("LISTEN"))
    }

    /// UNLISTEN of a channel; of all without a name.
    pub(super) fn unlisten(&mut self, channel: &str) -> Result<CommandTag> {
        self.ensure_open()?;
        let channel = (!channel.is_empty()).then(|| channel.to_owned());
        self.shared.notify.ask(Asked::Unlisten(channel))?;
        Ok(tag("UNLISTEN"))
    }

    /// NOTIFY.
    pub(super) fn notify(&mut self, channel: &str, payload: &str) -> Result<CommandTag> {
        self.ensure_open()?;
        self.shared.notify.tell(Notification {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
            sender: self.shared.start.backend_pid,
        })?;
        Ok(tag("NOTIFY"))
    }

    /// Prepares what happens when the open transaction commits: from where on channels are heard.
    pub(super) fn before_notify(&mut self) -> Result<Lsn> {
        if self.shared.notify.is_unused() {
            return Ok(Lsn::ZERO);
        }
        let database = self.current_catalog()?.database.oid;
        let mut since = Lsn::ZERO;
        if self.shared.notify.wanted().next().is_some() {
            let mut listener = self.take_listener(database)?;
            let announced = listener.announce(&mut self.shared.notify.wanted());
            self.shared.notify.listener = Some(listener);
            since = announced?;
        }
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        let told = self.shared.notify.told();
        if !told.is_empty() {
            open.txn.notifying()?.notify(database, told)?;
            open.wrote = true;
        }
        Ok(since)
    }

    fn take_listener(&mut self, database: u32) -> Result<Box<dyn Listener>> {
        match self.shared.notify.listener.take() {
            Some(listener) => Ok(listener),
            None => Ok(self.shared.engine.notifications()?.listener(database)),
        }
    }

    /// The transaction has committed, which is in the log if it says so: what it has asked for
    /// happens.
    pub(super) fn after_notify(&mut self, since: Lsn, commit: Option<&Debt>) {
        if self.shared.notify.is_unused() {
            return;
        }
        // What a failover takes back has changed nothing of the session either.
        let stands = match commit.filter(|_| self.shared.notify.asks()) {
            Some(commit) => self.is_for_good(commit),
            None => true,
        };
        if stands {
            self.shared.notify.carry_out(since);
        }
        let is_told = !self.shared.notify.told().is_empty();
        self.shared.notify.forget();
        if is_told && self.shared.notify.listener.is_some() {
            self.shared.notify.own = commit.cloned();
        }
    }

    /// Waits until a commit can no longer be taken back; false where it was. Whoever is interrupted
    /// does not wait.
    fn is_for_good(&self, commit: &Debt) -> bool {
        let gate = &self.shared.engine.gate;
        match coro::wait(gate.settle(commit.clone(), Durability::On)) {
            Ok(settled) => settled.is_ok(),
            Err(interrupt) => {
                self.shared.start.interrupts.raise(interrupt);
                true
            }
        }
    }

    /// Up to where the session has heard what there was for it; none while it listens to nothing.
    pub fn heard(&mut self) -> Option<Heard> {
        let listener = self.shared.notify.listener.as_mut();
        listener.map(|listener| listener.heard())
    }

    /// Ready when there may be something to hear.
    pub fn poll_hearing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.shared.notify.listener {
            Some(listener) => listener.poll_due(cx),
            None => Poll::Pending,
        }
    }

    /// What is to be heard next, about so many bytes of it at most. To be called outside of
    /// transactions.
    ///
    /// # Errors
    /// Those of reads, and 54000, which ends the session, where something is gone that it has not
    /// heard.
    pub fn hear(&mut self, bytes_max: usize) -> Result<Vec<Notification>> {
        if let Some(own) = self.shared.notify.own.take() {
            self.is_for_good(&own);
        }
        match &mut self.shared.notify.listener {
            Some(listener) => listener.take(bytes_max),
            None => Ok(Vec::new()),
        }
    }

    /// Listens on as a session did that was served elsewhere.
    pub(super) fn resume_listening(
        &mut self,
        channels: Vec<Channel>,
        heard: Option<Heard>,
    ) -> Result<()> {
        let Some(heard) = heard.filter(|_| !channels.is_empty()) else {
            return Ok(());
        };
        let database = self.catalog.database.oid;
        let mut listener = self.take_listener(database)?;
        listener.resume(channels, heard);
        self.shared.notify.listener = Some(listener);
        Ok(())
    }
}
