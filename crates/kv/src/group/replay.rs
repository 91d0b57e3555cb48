//! Opening a group: the checkpoint at C, then the log from C+1 on, applied once each.
//!
//! Everything in the log is applied, whether it is known to be committed or not, as it was when it
//! was appended; what another leader replaces is taken back later. What is known to be committed
//! leaves no old versions.
//!
//! A checkpoint above the end of the log, or one whose entry there is of another term, was fetched
//! from a leader, and the node stopped before the consensus heard of it. It holds nothing but
//! committed entries, so the log is made to begin after it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::env::{Env, LocalBoxFuture, Reactor, Severity};
use base::sync::{Event, Mutex, RwLock};
use base::{Chain, Error, Lsn, NodeId, Position, Result, Timestamp};
use raft::planted::{is_planted, Bug};
use raft::{Config, Consensus, Membership, Recovered, SnapshotMeta, StandbyNames};
use storage::log::{Log, LogOptions};
use storage::{Owner, Scratch, Store, StoreOptions};

use crate::temp::StatementScratch;

use super::ahead::Ahead;
use super::core::{apply_prepared, Core, LogReader};
use super::flush::Writer;
use super::meta::{Kept, Meta};
use super::progress::Progress;
use super::starts::StartsFile;
use super::{Group, Shared};
use crate::apply::{decisions, groups, load_configuration, load_registry, prepared};
use crate::config::{GroupConfig, Observer, Transport};
use crate::directory::Directory;
use crate::gate::Gate;
use crate::history::History;
use crate::registry::Registry;

impl GroupConfig {
    pub(super) fn owner(&self) -> Owner {
        Owner {
            cluster: self.cluster,
            group: self.group,
        }
    }

    pub(super) fn store_directory(&self) -> String {
        format!("{}/store", self.directory)
    }

    pub(super) fn store_options(&self) -> StoreOptions {
        StoreOptions {
            owner: self.owner(),
            room: self.room.clone(),
        }
    }

    /// Checks what is on disk: segments of the log, pages of the checkpoint.
    pub(crate) fn check_disk(&self, env: &dyn Env) -> Result<(usize, usize)> {
        let (disk, owner) = (env.disk(), self.owner());
        let log = storage::log::check(&*disk, &self.log_directory(), owner)?;
        let visit = &mut |_: base::TreeId, _: &[u8], _: &[u8]| Ok(());
        let store = storage::check(&*disk, &self.store_directory(), owner, visit)?;
        Ok((log.segments, store.pages))
    }

    fn scratch_path(&self) -> String {
        format!("{}/writes.scratch", self.directory)
    }

    fn statement_scratch_path(&self) -> String {
        format!("{}/statements.scratch", self.directory)
    }

    fn log_directory(&self) -> String {
        format!("{}/log", self.directory)
    }

    fn log_options(&self) -> LogOptions {
        let usual = LogOptions::new(self.owner());
        LogOptions {
            segment_bytes: self.settings.segment_bytes,
            cache_bytes: self.settings.log_cache_bytes(),
            checks_length: !is_planted(Bug::LengthUnchecked),
            ..usual
        }
    }

    fn nodes(&self, voter: bool) -> Vec<NodeId> {
        let members = self
            .founded
            .members
            .iter()
            .filter(|member| member.voter == voter);
        members.map(|member| member.node).collect()
    }

    pub(super) fn consensus(&self, seed: u64) -> Config {
        let timeout = self.settings.election_timeout;
        Config {
            election_timeout: timeout,
            heartbeat_interval: self.settings.heartbeat_interval,
            drift_max: raft::lease::default_drift(timeout),
            ..Config::new(self.group, self.node, seed)
        }
    }
}

/// What the disk says.
struct Found {
    store: Arc<Store>,
    log: Arc<Log>,
    meta: Meta,
    kept: Kept,
}

impl Found {
    /// Up to where the log's changes of membership are overruled.
    fn settled(&self, config: &GroupConfig) -> Lsn {
        let decreed = self.kept.beginning.as_ref();
        let decreed = decreed.map_or(Lsn::ZERO, |one| one.after);
        decreed.max(config.founded.begun_after)
    }

    /// The membership to begin with: what an operator decreed after the checkpoint goes first.
    fn membership(&self) -> &Membership {
        let decreed = self.kept.beginning.as_ref();
        let decreed = decreed.filter(|one| self.meta.position.lsn <= one.after);
        decreed.map_or(&self.meta.membership, |one| &one.membership)
    }
}

impl Group {
    /// Opens the group's directory: the last checkpoint, then the log above it. Tasks go on in the
    /// background.
    ///
    /// # Errors
    /// XX001 and 58030 when the directory is damaged; 42601 for malformed standby names.
    pub async fn open(
        env: Arc<dyn Env>,
        config: GroupConfig,
        transport: Arc<dyn Transport>,
        observer: Arc<dyn Observer>,
    ) -> Result<Arc<Group>> {
        StandbyNames::parse(&config.settings.synchronous_standby_names)?;
        let found = find(&env, &config).await?;
        let directory = Directory::of(found.membership(), &config.founded.members)?;
        let registry = Registry::default();
        let (applied, timestamp) = replay(&*env, &config, &found, &registry, Lsn::MAX).await?;
        let message = format!(
            "group {} opened at {}, checkpoint {}",
            config.group, applied.lsn, found.meta.position.lsn
        );
        env.log(Severity::Info, &message);

        let offered = (found.meta.position.lsn > Lsn::ZERO).then(|| SnapshotMeta {
            position: found.meta.position,
            chain: found.meta.chain,
            membership: found.meta.membership.clone(),
        });
        let checkpoint = Arc::new(Mutex::new(offered));
        let floor: Arc<AtomicU64> = Arc::default();
        let reader = LogReader {
            log: found.log.clone(),
            floor: floor.clone(),
            checkpoint: checkpoint.clone(),
        };
        let recovered = Recovered {
            hard_state: found.kept.state,
            checkpoint: found.meta.position.lsn,
            membership: found.membership().clone(),
            settled: found.settled(&config),
        };
        let seed = env.random();
        let consensus = Consensus::new(config.consensus(seed), reader, recovered, env.now())?;
        let gate = Arc::new(Gate::new(consensus.committed()));
        let mut core = Core::new(consensus, timestamp);
        core.applied = applied;
        core.beginning = found.kept.beginning;
        core.consensus.applied(applied);

        let starts = StartsFile::open(&*env, &config.directory).await?;
        let scratch = Scratch::open(&env.disk(), &config.scratch_path())?;
        let temp = StatementScratch::open(env.clone(), &config.statement_scratch_path())?;
        let group = Arc::new_cyclic(|me| Group {
            scratch,
            temp: Arc::new(temp),
            starts,
            me: me.clone(),
            opened_at: env.now(),
            directory: RwLock::new(Arc::new(directory)),
            transport,
            observer,
            store: RwLock::new(found.store),
            log: found.log,
            floor,
            registry,
            gate,
            snapshots: Default::default(),
            checkpoint,
            catchup: Default::default(),
            handover: Default::default(),
            lag: Default::default(),
            freshness: Default::default(),
            comparing: Default::default(),
            inline: Default::default(),
            disk_speed: Default::default(),
            abandoned: Default::default(),
            asked: Default::default(),
            values: Default::default(),
            core: Mutex::new(core),
            shared: Shared::default(),
            lease_changed: Event::new(),
            leadership_changed: Event::new(),
            standing_changed: Event::new(),
            log_changed: Event::new(),
            room: Event::new(),
            work: Event::new(),
            log_work: Event::new(),
            near_work: Event::new(),
            config,
            env,
        });
        group.shared.visible.store(applied.lsn.0, Ordering::SeqCst);
        group.take_settings(&mut group.core.lock());
        group.announce_members();
        group.start_tasks();
        Ok(group)
    }

    fn start_tasks(self: &Arc<Self>) {
        let group = self.clone();
        let task = move || -> LocalBoxFuture<'static, ()> { Box::pin(group.run()) };
        self.env.spawn(Reactor::Group, "group", Box::new(task));
        for (reactor, name, writer) in [
            (Reactor::of_log(self.id()), "log writer", Writer::Own),
            (Reactor::Group, "near log writer", Writer::Near),
        ] {
            let group = self.clone();
            let task = move || -> LocalBoxFuture<'static, ()> { Box::pin(group.write_log(writer)) };
            self.env.spawn(reactor, name, Box::new(task));
        }
        self.background("checkpointer", |group| Box::pin(group.make_checkpoints()));
        self.background("builder", |group| Box::pin(group.run_builder()));
        self.background("comparing", |group| Box::pin(group.compare_replicas()));
        self.background("summing up", |group| Box::pin(group.sum_up()));
    }

    fn background(
        self: &Arc<Self>,
        name: &'static str,
        task: fn(Arc<Group>) -> LocalBoxFuture<'static, ()>,
    ) {
        let group = self.clone();
        let task = Box::new(move || task(group));
        self.env.spawn(Reactor::Background, name, task);
    }
}

async fn find(env: &Arc<dyn Env>, config: &GroupConfig) -> Result<Found> {
    let directory = config.store_directory();
    let store = Store::open(env.clone(), &directory, config.store_options()).await?;
    let (log, recovered) =
        Log::open(env.clone(), &config.log_directory(), config.log_options()).await?;
    let kept = Kept::decode(&recovered.hard_state)?;
    let checkpoint = store.checkpoint();
    let meta = match checkpoint.lsn {
        Lsn::ZERO => Meta {
            position: Position::default(),
            chain: Some(Chain::START),
            timestamp: Timestamp(0),
            membership: Membership {
                context: config.founded.encode(),
                ..Membership::new(&config.nodes(true), &config.nodes(false))
            },
        },
        _ => Meta::decode(&checkpoint.meta)?,
    };
    if meta.position.lsn != checkpoint.lsn {
        return Err(Error::corrupted(format!(
            "a checkpoint at {} says that it is at {}",
            checkpoint.lsn, meta.position.lsn
        )));
    }
    // Whoever has a checkpoint has voted or followed before, and the log holds its term and vote.
    if checkpoint.lsn > Lsn::ZERO && recovered.hard_state.is_empty() {
        return Err(Error::corrupted(format!(
            "there is a checkpoint at {}, and its log is gone",
            checkpoint.lsn
        )));
    }
    if meta.position.lsn < log.base().lsn {
        return Err(Error::corrupted(format!(
            "the checkpoint is at {}, and the log begins after {}",
            meta.position.lsn,
            log.base().lsn
        )));
    }
    if log.term(meta.position.lsn) != Some(meta.position.term) {
        log.install(meta.position, meta.chain);
        log.write()?;
        log.sync().await?;
    }
    check_history(&meta, log.chain(meta.position.lsn))?;
    Ok(Found {
        store,
        log,
        meta,
        kept,
    })
}

/// Checkpoint and log are of one history.
fn check_history(meta: &Meta, chain: Option<Chain>) -> Result<()> {
    match (meta.chain, chain) {
        (Some(checkpoint), Some(log)) if checkpoint != log => Err(Error::corrupted(format!(
            "the log is another history than the checkpoint at {}",
            meta.position.lsn
        ))),
        _ => Ok(()),
    }
}

/// Opens a directory and replays its log up to an LSN, for a check. None if the checkpoint is beyond
/// that.
///
/// # Errors
/// As [`Group::open`].
pub async fn replay_for_check(
    env: &Arc<dyn Env>,
    config: &GroupConfig,
    registry: &Registry,
    up_to: Lsn,
) -> Result<Option<(Arc<Store>, Position)>> {
    let found = find(env, config).await?;
    if found.meta.position.lsn > up_to {
        return Ok(None);
    }
    let (last, _) = replay(&**env, config, &found, registry, up_to).await?;
    Ok(Some((found.store, last)))
}

/// What the log in a directory says of its history.
///
/// # Errors
/// As [`Group::open`].
pub async fn history_of(env: &Arc<dyn Env>, config: &GroupConfig) -> Result<History> {
    let found = find(env, config).await?;
    let log = &found.log;
    let (base, last) = (log.base(), log.last().lsn);
    let entry = |lsn: u64| (log.term(Lsn(lsn)).unwrap_or_default(), log.chain(Lsn(lsn)));
    Ok(History {
        base,
        base_chain: log.chain(base.lsn),
        commit: found.kept.state.commit.max(found.meta.position.lsn),
        entries: (base.lsn.0 + 1..=last.0).map(entry).collect(),
    })
}

/// Applies the log above the checkpoint, and tells how far it has come if that takes long.
async fn replay(
    env: &dyn Env,
    config: &GroupConfig,
    found: &Found,
    registry: &Registry,
    up_to: Lsn,
) -> Result<(Position, Timestamp)> {
    let (mut applied, mut timestamp) = (found.meta.position, found.meta.timestamp);
    load_registry(&found.store, registry, applied.lsn)?;
    load_configuration(&found.store, registry, applied.lsn)?;
    registry.groups().note(applied.lsn, groups(&found.store)?);
    let lsn = applied.lsn;
    registry.prepared().note(lsn, prepared(&found.store, lsn)?);
    registry
        .decisions()
        .note(lsn, decisions(&found.store, lsn)?);
    registry.builds().load(&found.store)?;
    let end = found.log.last().lsn.min(up_to).next();
    found.store.settle(found.kept.state.commit.min(end.prev()));
    let mut progress = Progress::new(env.now(), found.log.bytes_after(applied.lsn));
    let range = (applied.lsn.next(), end);
    let reader = Reactor::of_log(config.group);
    let ahead = Ahead::begin(env, reader, (&found.log, &found.store), range);
    while applied.lsn.next() < end {
        let told = progress.tell(env.now(), found.log.bytes_after(applied.lsn));
        if let Some(message) = told {
            env.log(Severity::Info, &message);
        }
        for entry in ahead.next().await? {
            let at = apply_prepared(&found.store, registry, &entry)?;
            timestamp = timestamp.max(at.unwrap_or(timestamp));
            applied = entry.position;
        }
    }
    Ok((applied, timestamp))
}
