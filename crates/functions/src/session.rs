//! The functions that the session, the catalog or the cluster answers: which there are.
//!
//! A row of a table names one of these, and the executor has an arm for each; `functions` stands
//! below both. Functions of several names or argument types that are answered alike are one of
//! these:
//!
//! ```text
//! 1574 "nextval" (REGCLASS) INT8 "v" session Sequence::Next;      a row of table_system.rs
//! SequenceFunction::Next => next(cx, &table, sequence)            an arm of exec/sequences.rs
//! ```
//! Each group is matched by one module of the executor, in full: a function without an arm does
//! not compile.

use types::TypeId;

use super::statement_columns::{COLUMNS, INFO_COLUMNS};

/// The columns of `pg_sequence_parameters`.
pub const SEQUENCE_COLUMNS: &[(&str, TypeId)] = &[
    ("start_value", TypeId::INT8),
    ("minimum_value", TypeId::INT8),
    ("maximum_value", TypeId::INT8),
    ("increment", TypeId::INT8),
    ("cycle_option", TypeId::BOOL),
    ("cache_size", TypeId::INT8),
    ("data_type", TypeId::OID),
];

/// A function that the session, the catalog or the cluster answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFunction {
    /// What the session knows of itself.
    Own(OwnFunction),
    /// What one session does to others.
    Backend(BackendFunction),
    /// How far the log is.
    Wal(WalFunction),
    /// Who belongs to the cluster.
    Cluster(ClusterFunction),
    /// What transactions are called, and what became of them.
    Transaction(TransactionFunction),
    /// The values of sequences.
    Sequence(SequenceFunction),
    /// How large things are.
    Size(SizeFunction),
    /// Who may do what.
    Privilege(PrivilegeFunction),
    /// Advisory locks, and who waits for whom.
    Advisory(AdvisoryFunction),
    /// What objects are called, and how they were defined.
    Catalog(CatalogFunction),
    /// What was counted.
    Statistics(StatisticsFunction),
    /// What was counted of statements.
    Statements(StatementsFunction),
    /// Large objects.
    LargeObject(LargeObjectFunction),
    /// It is found and typed, and answered 0A000 with its name.
    Unsupported,
}

impl SessionFunction {
    /// Whether it gives rows: the elements of an array.
    pub fn gives_rows(self) -> bool {
        matches!(
            self,
            SessionFunction::Own(OwnFunction::ListeningChannels)
                | SessionFunction::Statistics(StatisticsFunction::BackendIdset)
                | SessionFunction::Statements(StatementsFunction::List)
        )
    }

    /// The columns of its rows, if they have several.
    pub fn columns(self) -> Option<&'static [(&'static str, TypeId)]> {
        match self {
            SessionFunction::Statements(StatementsFunction::List) => Some(COLUMNS),
            SessionFunction::Statements(StatementsFunction::Info) => Some(INFO_COLUMNS),
            SessionFunction::Catalog(CatalogFunction::SequenceParameters) => Some(SEQUENCE_COLUMNS),
            _ => None,
        }
    }

    /// Whether PUBLIC may not call it unless a superuser grants that.
    pub fn is_restricted(self) -> bool {
        matches!(
            self,
            SessionFunction::Cluster(_)
                | SessionFunction::Wal(WalFunction::PauseReplay)
                | SessionFunction::Backend(BackendFunction::Reload)
                | SessionFunction::LargeObject(
                    LargeObjectFunction::Import | LargeObjectFunction::Export
                )
                | SessionFunction::Statistics(
                    StatisticsFunction::Reset
                        | StatisticsFunction::ResetShared
                        | StatisticsFunction::ResetSlru
                        | StatisticsFunction::ResetSingleTableCounters
                        | StatisticsFunction::ResetSingleFunctionCounters
                        | StatisticsFunction::ResetReplicationSlot
                        | StatisticsFunction::ResetSubscriptionStats
                        | StatisticsFunction::HaveStats
                )
        )
    }
}

/// What was counted of statements (`exec/statements.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementsFunction {
    /// A row for each statement.
    List,
    /// What is known of counting itself.
    Info,
    /// Forgets some, or all.
    Reset,
}

/// Large objects, and the descriptors that the transaction has opened (`exec/large_objects.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LargeObjectFunction {
    /// Makes one of an oid that is said, or of any for 0.
    Create,
    /// Makes one of any oid; what is said changes nothing.
    CreateAny,
    Open,
    Close,
    Read,
    Write,
    Seek,
    Tell,
    Truncate,
    Unlink,
    FromBytea,
    Get,
    Put,
    /// Makes one of a file of the server.
    Import,
    /// Writes one to a file of the server.
    Export,
}

/// What the session knows of itself (`exec/session_functions.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OwnFunction {
    CurrentUser,
    SessionUser,
    CurrentDatabase,
    CurrentSchema,
    CurrentSchemas,
    Encoding,
    CurrentSetting,
    /// The text that the client has sent.
    CurrentQuery,
    SetConfig,
    BackendPid,
    ClientAddress,
    ClientPort,
    ServerAddress,
    ServerPort,
    ExportSnapshot,
    Sleep,
    TriggerDepth,
    TemporarySchema,
    IsOtherTemporarySchema,
    Notify,
    /// The channels that the session listens to, a row each.
    ListeningChannels,
    NotificationQueueUsage,
}

/// What one session does to others (`exec/activity.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BackendFunction {
    Cancel,
    Terminate,
    Reload,
}

/// How far the log is (`exec/replication.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WalFunction {
    Written,
    Flushed,
    IsInRecovery,
    IsReplayPaused,
    /// Whether replay is paused, in words.
    ReplayPauseState,
    PauseReplay,
    Received,
    Replayed,
    ReplayedUntil,
}

/// Who belongs to the cluster (`exec/cluster_functions.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ClusterFunction {
    AddNode,
    RemoveNode,
    PromoteNode,
    DemoteNode,
    SetNode,
    SetLeaderZone,
    /// Compares what replicas hold.
    CheckConsistency,
    AddGroup,
    Switchover,
    PromoteAlone,
}

/// What transactions are called, and what became of them (`exec/outcomes.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TransactionFunction {
    /// The transaction's id as a `bigint`.
    Txid,
    TxidIfAssigned,
    /// The same as an `xid8`.
    Xid,
    XidIfAssigned,
    /// What became of one, whichever type its id has.
    Status,
    /// By how many ids the newest is ahead of one.
    Age,
}

/// The values of sequences (`exec/sequences.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SequenceFunction {
    Next,
    Current,
    Last,
    Set,
}

/// How large things are (`exec/sizes.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SizeFunction {
    Relation,
    Table,
    Indexes,
    Total,
    Database,
    Tablespace,
}

/// What a role may do something to (`exec/privilege_functions.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PrivilegeFunction {
    Table,
    Column,
    AnyColumn,
    Sequence,
    Parameter,
    Database,
    Schema,
    Function,
    Language,
    Type,
    Tablespace,
    ForeignDataWrapper,
    ForeignServer,
}

/// Advisory locks, and who waits for whom (`exec/advisory.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AdvisoryFunction {
    Lock,
    LockShared,
    TryLock,
    TryLockShared,
    XactLock,
    XactLockShared,
    TryXactLock,
    TryXactLockShared,
    Unlock,
    UnlockShared,
    UnlockAll,
    BlockingPids,
    SnapshotBlockingPids,
    IsBlocked,
}

/// What objects are called, and how they were defined (`exec/catalog_functions.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CatalogFunction {
    RoleName,
    HasRole,
    OidOfName,
    IsRelationVisible,
    IsTypeVisible,
    IsFunctionVisible,
    IsOperatorVisible,
    IsCollationVisible,
    IsStatisticsVisible,
    CollationVersion,
    /// Whether an object is visible of a kind that nobody creates.
    IsBuiltInVisible,
    ObjectComment,
    ColumnComment,
    ObjectDescription,
    Expression,
    IndexDefinition,
    ConstraintDefinition,
    TriggerDefinition,
    StatisticsDefinition,
    StatisticsColumns,
    StatisticsExpressions,
    RuleDefinition,
    ViewDefinition,
    FunctionDefinition,
    FunctionSqlBody,
    FunctionArguments,
    FunctionArgumentDefault,
    FunctionIdentity,
    FunctionResult,
    DefaultPrivileges,
    SerialSequence,
    SequenceLastValue,
    FileNode,
    TablespaceLocation,
    IsRelationUpdatable,
    IsColumnUpdatable,
    IsPublishable,
    /// What an access method of indexes can do.
    MethodProperty,
    SequenceParameters,
    ReplicaIdentityIndex,
    RowSecurityActive,
    PartitionKey,
    PartitionConstraint,
    /// What is said of objects that there are none of: NULL.
    Nothing,
}

/// What was counted (`exec/statistics.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StatisticsFunction {
    BackendStart,
    BackendClientAddr,
    BackendClientPort,
    Numscans,
    TuplesReturned,
    TuplesFetched,
    TuplesInserted,
    TuplesUpdated,
    TuplesDeleted,
    BlocksFetched,
    BlocksHit,
    BackendIdset,
    BackendPid,
    BackendDbid,
    BackendUserid,
    BackendActivity,
    DbNumbackends,
    DbXactCommit,
    DbXactRollback,
    DbBlocksFetched,
    DbBlocksHit,
    TuplesHotUpdated,
    BackendActivityStart,
    ForceNextFlush,
    ClearSnapshot,
    Reset,
    ResetSlru,
    PostmasterStartTime,
    DbTuplesReturned,
    DbTuplesFetched,
    DbTuplesInserted,
    DbTuplesUpdated,
    DbTuplesDeleted,
    BgwriterTimedCheckpoints,
    BgwriterRequestedCheckpoints,
    BgwriterBufWrittenCheckpoints,
    BgwriterBufWrittenClean,
    BgwriterMaxwrittenClean,
    BufWrittenBackend,
    LastVacuumTime,
    LastAutovacuumTime,
    LastAnalyzeTime,
    LastAutoanalyzeTime,
    BackendWaitEventType,
    DbBlkReadTime,
    DbBlkWriteTime,
    BackendWaitEvent,
    BackendXactStart,
    BufAlloc,
    LiveTuples,
    DeadTuples,
    FunctionCalls,
    FunctionTotalTime,
    FunctionSelfTime,
    XactNumscans,
    XactTuplesReturned,
    XactTuplesFetched,
    XactTuplesInserted,
    XactTuplesUpdated,
    XactTuplesDeleted,
    XactTuplesHotUpdated,
    XactBlocksFetched,
    XactBlocksHit,
    XactFunctionCalls,
    XactFunctionTotalTime,
    XactFunctionSelfTime,
    VacuumCount,
    AutovacuumCount,
    AnalyzeCount,
    AutoanalyzeCount,
    BufFsyncBackend,
    DbConflictTablespace,
    DbConflictLock,
    DbConflictSnapshot,
    DbConflictBufferpin,
    DbConflictStartupDeadlock,
    DbConflictAll,
    DbStatsReset,
    BgwriterStatsReset,
    DbTempFiles,
    DbTempBytes,
    DbDeadlocks,
    CheckpointWriteTime,
    CheckpointSyncTime,
    ModSinceAnalyze,
    DbChecksumFailures,
    DbChecksumLastFailure,
    ResetShared,
    ResetSingleTableCounters,
    ResetSingleFunctionCounters,
    SnapshotTimestamp,
    InsSinceVacuum,
    ResetReplicationSlot,
    DbSessionTime,
    DbActiveTime,
    DbIdleInTransactionTime,
    DbSessions,
    DbSessionsAbandoned,
    DbSessionsFatal,
    DbSessionsKilled,
    HaveStats,
    ResetSubscriptionStats,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{all_functions, function_by_oid, Body};

    #[test]
    fn whoever_changes_the_cluster_is_asked_for_the_right() {
        let restricted = all_functions().filter(|function| function.is_restricted());
        let mut names: Vec<_> = restricted.map(|function| function.name).collect();
        names.retain(|name| !name.starts_with("quorate."));
        names.retain(|name| !name.starts_with("pg_stat_"));
        assert_eq!(
            names,
            [
                "lo_import",
                "lo_export",
                "lo_import",
                "pg_reload_conf",
                "pg_wal_replay_pause",
                "pg_wal_replay_resume",
                "pg_promote"
            ]
        );
        let resets = all_functions().filter(|function| function.name.starts_with("pg_stat_reset"));
        assert!(resets.into_iter().all(|function| function.is_restricted()));
        let own = all_functions().filter(|function| function.name.starts_with("quorate."));
        assert!(own.into_iter().all(|function| function.is_restricted()));
    }

    #[test]
    fn overloads_are_one_function() {
        for (a, b) in [(1576, 1765), (2880, 2886), (1640, 2506), (1926, 1922)] {
            let body = |oid| match function_by_oid(oid).map(|function| function.body) {
                Some(Body::Session(which)) => which,
                other => panic!("{oid}: {other:?}"),
            };
            assert_eq!(body(a), body(b));
            assert_ne!(body(a), SessionFunction::Unsupported);
        }
    }
}
