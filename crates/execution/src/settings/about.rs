//! What `pg_settings` says of each setting besides its value: category, context, further words.
//!
//! Source: PostgreSQL 15, `pg_settings`, for the settings that it has too.

/// Who may change a setting, and when (PostgreSQL 15 manual, section 54.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Nobody.
    Internal,
    /// Whoever starts the server.
    Postmaster,
    /// ALTER SYSTEM, for the whole cluster.
    Sighup,
    /// Superusers, when a session begins.
    SuperuserBackend,
    /// Everybody, when a session begins.
    Backend,
    /// Superusers, at any time.
    Superuser,
    /// Everybody, at any time.
    User,
}

/// What a context means for sessions. Those that no session changes are told apart by their
/// messages, in `checks`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    context: Context,
    /// As the view shows it.
    name: &'static str,
    /// Whether only superusers may change it.
    pub superuser: bool,
    /// Whether a session that runs may change it.
    pub running: bool,
}

const fn rule(context: Context, name: &'static str, superuser: bool, running: bool) -> Rule {
    Rule {
        context,
        name,
        superuser,
        running,
    }
}

/// All contexts.
const RULES: [Rule; 7] = [
    rule(Internal, "internal", false, false),
    rule(Postmaster, "postmaster", false, false),
    rule(Sighup, "sighup", false, false),
    rule(SuperuserBackend, "superuser-backend", true, false),
    rule(Backend, "backend", false, false),
    rule(Superuser, "superuser", true, true),
    rule(User, "user", false, true),
];

impl Context {
    /// What it means; nobody may change what has no rule.
    pub fn rule(self) -> Rule {
        let rule = RULES.iter().find(|rule| rule.context == self);
        *rule.unwrap_or(&RULES[0])
    }

    /// The one that the view shows so.
    pub fn named(name: &str) -> Option<Context> {
        let rule = RULES.iter().find(|rule| rule.name == name);
        rule.map(|rule| rule.context)
    }

    /// As the view shows it.
    pub fn name(self) -> &'static str {
        self.rule().name
    }
}

/// What is said of a setting.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What it belongs to.
    pub category: &'static str,
    /// Who may change it.
    pub context: Context,
    /// Further words, or none.
    pub extra: &'static str,
}

/// What is said of PostgreSQL's planner's settings.
const PLANNER: About = About {
    category: "Query Tuning / Planner Method Configuration",
    context: Context::User,
    extra: "",
};

/// What is said of a setting that is not listed.
const UNLISTED: About = About {
    category: "Customized Options",
    context: Context::User,
    extra: "",
};

/// What is said of the setting of that name.
pub fn about(name: &str) -> About {
    let mut all = ABOUT
        .iter()
        .flat_map(|(category, rows)| rows.iter().map(move |row| (*category, row)));
    let found = all.find(|(_, row)| row.0.eq_ignore_ascii_case(name));
    let unlisted = match name.starts_with("enable_") {
        true => PLANNER,
        false => UNLISTED,
    };
    found.map_or(unlisted, |(category, (_, context, extra))| About {
        category,
        context: *context,
        extra,
    })
}

type Row = (&'static str, Context, &'static str);

use Context::{Backend, Internal, Postmaster, Sighup, Superuser, SuperuserBackend, User};

#[rustfmt::skip]
const ABOUT: &[(&str, &[Row])] = &[
    ("Client Connection Defaults / Locale and Formatting", &[
        ("client_encoding", User, ""),
        ("DateStyle", User, "Also controls interpretation of ambiguous date inputs."),
        ("extra_float_digits", User, "This affects real, double precision, and geometric data types. A zero or negative parameter value is added to the standard number of digits (FLT_DIG or DBL_DIG as appropriate). Any value greater than zero selects precise output mode."),
        ("IntervalStyle", User, ""),
        ("lc_messages", Superuser, ""),
        ("lc_monetary", User, ""),
        ("lc_numeric", User, ""),
        ("default_text_search_config", User, ""),
        ("lc_time", User, ""),
        ("TimeZone", User, ""),
    ]),
    ("Client Connection Defaults / Statement Behavior", &[
        ("bytea_output", User, ""),
        ("check_function_bodies", User, ""),
        ("client_min_messages", User, "Each level includes all the levels that follow it. The later the level, the fewer messages are sent."),
        ("default_table_access_method", User, ""),
        ("default_tablespace", User, "An empty string selects the database's default tablespace."),
        ("default_transaction_deferrable", User, ""),
        ("default_transaction_isolation", User, ""),
        ("default_transaction_read_only", User, ""),
        ("default_with_oids", User, ""),
        ("idle_in_transaction_session_timeout", User, "A value of 0 turns off the timeout."),
        ("idle_session_timeout", User, "A value of 0 turns off the timeout."),
        ("lock_timeout", User, "A value of 0 turns off the timeout."),
        ("row_security", User, "When enabled, row security will be applied to all users."),
        ("search_path", User, ""),
        ("session_replication_role", Superuser, ""),
        ("statement_timeout", User, "A value of 0 turns off the timeout."),
        ("transaction_deferrable", User, ""),
        ("transaction_isolation", User, ""),
        ("transaction_read_only", User, ""),
        ("xmloption", User, ""),
    ]),
    ("Connections and Authentication / Authentication", &[
        ("authentication_timeout", Sighup, ""),
    ]),
    ("Connections and Authentication / SSL", &[
        ("ssl", Sighup, ""),
        ("ssl_ca_file", Sighup, ""),
        ("ssl_cert_file", Sighup, ""),
        ("ssl_ciphers", Sighup, ""),
        ("ssl_crl_file", Sighup, ""),
        ("ssl_ecdh_curve", Sighup, ""),
        ("ssl_key_file", Sighup, ""),
        ("ssl_prefer_server_ciphers", Sighup, ""),
    ]),
    ("Connections and Authentication / Connection Settings", &[
        ("listen_addresses", Postmaster, ""),
        ("port", Postmaster, ""),
        ("max_connections", Postmaster, ""),
        ("superuser_reserved_connections", Postmaster, ""),
    ]),
    ("Autovacuum", &[
        ("autovacuum", Sighup, ""),
        ("autovacuum_analyze_scale_factor", Sighup, ""),
        ("autovacuum_analyze_threshold", Sighup, ""),
        ("autovacuum_naptime", Sighup, ""),
    ]),
    ("File Locations", &[
        ("config_file", Postmaster, ""),
        ("data_directory", Postmaster, ""),
        ("hba_file", Postmaster, ""),
    ]),
    ("Lock Management", &[
        ("deadlock_timeout", Superuser, ""),
    ]),
    ("Preset Options", &[
        ("block_size", Internal, ""),
        ("data_directory_mode", Internal, "The parameter value is a numeric mode specification in the form accepted by the chmod and umask system calls. (To use the customary octal format the number must start with a 0 (zero).)"),
        ("in_hot_standby", Internal, ""),
        ("integer_datetimes", Internal, ""),
        ("is_superuser", Internal, ""),
        ("lc_collate", Internal, ""),
        ("lc_ctype", Internal, ""),
        ("max_identifier_length", Internal, ""),
        ("server_encoding", Internal, ""),
        ("server_version", Internal, ""),
        ("server_version_num", Internal, ""),
        ("ssl_library", Internal, ""),
        ("wal_segment_size", Internal, ""),
    ]),
    ("Query Tuning / Other Planner Options", &[
        ("constraint_exclusion", User, ""),
        ("default_statistics_target", User, ""),
        ("jit", User, ""),
        ("plan_cache_mode", User, "Prepared statements can have custom and generic plans, and the planner will attempt to choose which is better.  This can be set to override the default behavior."),
    ]),
    ("Query Tuning / Planner Cost Constants", &[
        ("random_page_cost", User, ""),
    ]),
    ("Developer Options", &[
        ("force_parallel_mode", User, ""),
    ]),
    ("Replication / Primary Server", &[
        ("quorate.leaders", Postmaster, "Values are together and spread."),
        ("quorate.max_inflight", User, "A value of 0 turns the bound off."),
        ("quorate.standby_timeout", Sighup, "A value of 0 turns off the timeout."),
        ("synchronous_standby_names", Sighup, ""),
    ]),
    ("Replication / Standby Servers", &[
        ("quorate.follower_reads", User, "Values are off, settled, and how old what is read may be. It is switched on or off when a session begins, and not later."),
    ]),
    ("Reporting and Logging / What to Log", &[
        ("application_name", User, ""),
        ("log_connections", SuperuserBackend, ""),
        ("log_disconnections", SuperuserBackend, ""),
        ("log_duration", Superuser, ""),
        ("log_error_verbosity", Superuser, ""),
        ("log_line_prefix", Sighup, "If blank, no prefix is used."),
        ("log_parameter_max_length", Superuser, "-1 to print values in full."),
        ("log_statement", Superuser, ""),
        ("log_timezone", Sighup, ""),
        ("quorate.audit_entries", Sighup, "Each statement that changes the catalog leaves an entry in quorate.audit; the oldest go."),
    ]),
    ("Reporting and Logging / When to Log", &[
        ("log_min_duration_statement", Superuser, "Zero prints all queries. -1 turns this feature off."),
        ("log_min_error_statement", Superuser, "Each level includes all the levels that follow it. The later the level, the fewer messages are sent."),
        ("log_min_messages", Superuser, "Each level includes all the levels that follow it. The later the level, the fewer messages are sent."),
    ]),
    ("Reporting and Logging / Where to Log", &[
        ("log_destination", Sighup, "Valid values are combinations of \"stderr\", \"syslog\", \"csvlog\", \"jsonlog\", and \"eventlog\", depending on the platform."),
        ("log_file_mode", Sighup, "The parameter value is expected to be a numeric mode specification in the form accepted by the chmod and umask system calls. (To use the customary octal format the number must start with a 0 (zero).)"),
        ("log_rotation_size", Sighup, ""),
    ]),
    ("Resource Usage / Disk", &[
        ("temp_file_limit", Superuser, "-1 means no limit."),
    ]),
    ("Resource Usage / Memory", &[
        ("hash_mem_multiplier", User, ""),
        ("max_prepared_transactions", Postmaster, ""),
        ("maintenance_work_mem", User, "This includes operations such as VACUUM and CREATE INDEX."),
        ("quorate.memory_budget", Postmaster, "Beyond it the session with the most gets an error. 0 where there is no limit."),
        ("quorate.query_mem", User, "A query that needs more fails. Sorts, hash tables, groups, windows and WITH queries go to a scratch file beyond this, or work_mem if that is less."),
        ("quorate.txn_mem", Postmaster, "What a larger transaction writes is kept in a scratch file until it commits."),
        ("shared_buffers", Postmaster, ""),
        ("work_mem", User, "This much memory can be used by each internal sort operation and hash table before switching to temporary disk files."),
    ]),
    ("Statistics / Cumulative Query and Index Statistics", &[
        ("stats_fetch_consistency", User, ""),
        ("track_counts", Superuser, ""),
        ("track_functions", Superuser, ""),
    ]),
    ("Statistics / Monitoring", &[
        ("compute_query_id", Superuser, ""),
    ]),
    ("Version and Platform Compatibility / Previous PostgreSQL Versions", &[
        ("escape_string_warning", User, ""),
        ("lo_compat_privileges", Superuser, "Skips privilege checks when reading or modifying large objects, for compatibility with PostgreSQL releases prior to 9.0."),
        ("standard_conforming_strings", User, ""),
        ("synchronize_seqscans", User, ""),
    ]),
    ("Write-Ahead Log / Settings", &[
        ("synchronous_commit", User, ""),
        ("wal_compression", Superuser, ""),
        ("wal_level", Postmaster, ""),
    ]),
    ("Customized Options", &[
        ("pg_stat_statements.max", Postmaster, ""),
        ("pg_stat_statements.save", Sighup, ""),
        ("pg_stat_statements.track", Superuser, ""),
        ("pg_stat_statements.track_planning", Superuser, ""),
        ("pg_stat_statements.track_utility", Superuser, ""),
        ("plpgsql.variable_conflict", Superuser, ""),
    ]),
];
