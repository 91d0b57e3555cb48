//! Relations whose rows are what a session or the cluster is just doing: their names and columns.
//!
//! What their rows are is asked for anew each time, by whoever shows them.

/// One of them.
pub(super) struct SessionRelation {
    pub oid: u32,
    pub name: &'static str,
    /// `name type` pairs, separated by commas; for a relation that the list does not have.
    pub columns: &'static str,
}

pub(super) const AUDIT_OID: u32 = 9_114;
pub(super) const NODES_OID: u32 = 9_111;
pub(super) const GROUPS_OID: u32 = 9_112;
pub(super) const INCONSISTENCIES_OID: u32 = 9_115;
pub(super) const TABLETS_OID: u32 = 9_116;
pub(super) const STORAGE_OID: u32 = 9_113;
pub(super) const MEMORY_OID: u32 = 12_138;
pub(super) const SHARED_MEMORY_OID: u32 = 12_134;

/// All of them.
pub(super) const ALL: &[SessionRelation] = &[
    SessionRelation {
    oid: 12_104,
    name: "pg_settings",
    columns: "",
    },
    SessionRelation {
    oid: 12_110,
    name: "pg_file_settings",
    columns: "",
    },
    SessionRelation {
    oid: MEMORY_OID,
    name: "pg_backend_memory_contexts",
    columns: "",
    },
    SessionRelation {
    oid: 12_095,
    name: "pg_prepared_statements",
    columns: "",
    },
    SessionRelation {
    oid: 12_090,
    name: "pg_prepared_xacts",
    columns: "",
    },
    SessionRelation {
    oid: 12_073,
    name: "pg_locks",
    columns: "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, \
              transactionid xid, classid oid, objid oid, objsubid int2, virtualtransaction text, \
              pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz",
    },
    SessionRelation {
    oid: 12_114,
    name: "pg_hba_file_rules",
    columns: "line_number int4, type text, database _text, user_name _text, address text, \
              netmask text, auth_method text, options _text, error text",
    },
    SessionRelation {
    oid: 12_249,
    name: "pg_stat_ssl",
    columns: "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, \
              client_serial numeric, issuer_dn text",
    },
    SessionRelation {
    oid: 12_253,
    name: "pg_stat_gssapi",
    columns: "",
    },
    SessionRelation {
    oid: 12_285,
    name: "pg_stat_archiver",
    columns: "",
    },
    SessionRelation {
    oid: 12_293,
    name: "pg_stat_wal",
    columns: "",
    },
    SessionRelation {
    oid: 12_240,
    name: "pg_stat_recovery_prefetch",
    columns: "",
    },
    SessionRelation {
    oid: 12_222,
    name: "pg_stat_activity",
    columns: "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, \
              application_name text, client_addr inet, client_hostname text, \
              client_port int4, backend_start timestamptz, xact_start timestamptz, \
              query_start timestamptz, state_change timestamptz, wait_event_type text, \
              wait_event text, state text, backend_xid xid, backend_xmin xid, query_id int8, \
              query text, backend_type text",
    },
    SessionRelation {
    oid: 12_077,
    name: "pg_cursors",
    columns: "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, \
              creation_time timestamptz",
    },
    SessionRelation {
    oid: 12_227,
    name: "pg_stat_replication",
    columns: "pid int4, usesysid oid, usename name, application_name text, client_addr inet, \
              client_hostname text, client_port int4, backend_start timestamptz, \
              backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, \
              flush_lsn pg_lsn, replay_lsn pg_lsn, write_lag interval, flush_lag interval, \
              replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz",
    },
    SessionRelation {
    oid: 12_257,
    name: "pg_replication_slots",
    columns: "slot_name name, plugin name, slot_type text, datoid oid, database name, \
              temporary bool, active bool, active_pid int4, xmin xid, catalog_xmin xid, \
              restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, \
              safe_wal_size int8, two_phase bool",
    },
    SessionRelation {
    oid: 12_236,
    name: "pg_stat_wal_receiver",
    columns: "pid int4, status text, receive_start_lsn pg_lsn, receive_start_tli int4, \
              written_lsn pg_lsn, flushed_lsn pg_lsn, received_tli int4, \
              last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, \
              latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name text, \
              sender_host text, sender_port int4, conninfo text",
    },
    SessionRelation {
    oid: NODES_OID,
    name: "nodes",
    columns: "node int8, name text, role text, voter bool, sql_address text, peer_address text, \
              zone text, priority int4, connected bool, received_lsn pg_lsn, flushed_lsn pg_lsn, \
              applied_lsn pg_lsn, sent_bytes int8",
    },
    SessionRelation {
    oid: GROUPS_OID,
    name: "groups",
    columns: "group_id int4, leader text, term int8, incarnation int8, begun_after pg_lsn, \
              commit_lsn pg_lsn, voters int4, learners int4, leader_zone text, changing bool",
    },
    SessionRelation {
        oid: INCONSISTENCIES_OID,
        name: "inconsistencies",
        columns:
            "group_id int4, relation oid, from_key bytea, to_key bytea, lsn pg_lsn, deviating text, \
                  agreeing text",
    },
    SessionRelation {
    oid: TABLETS_OID,
    name: "tablets",
    columns: "relation oid, from_key bytea, to_key bytea, group_id int4",
    },
    SessionRelation {
    oid: STORAGE_OID,
    name: "storage",
    columns: "group_id int4, cached_bytes int8, cache_limit_bytes int8, dirty_bytes int8, \
              away_bytes int8, pages_read int8, pages_written int8, undo_versions int8, undo_bytes int8, undo_spilled_bytes int8, \
              checkpoint_lsn pg_lsn, checkpoint_age interval, log_bytes_since_checkpoint int8, \
              log_bytes int8, file_bytes int8, free_bytes int8, log_appended_bytes int8",
    },
    SessionRelation {
    oid: AUDIT_OID,
    name: "audit",
    columns: "number int8, at timestamptz, xid int8, pid int4, session_user_name name, \
              current_user_name name, client_addr inet, database name, command text, \
              statement text, lsn pg_lsn",
    },
];
