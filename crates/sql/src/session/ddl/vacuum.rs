//! VACUUM, which has nothing to do, since there are no dead rows to clear away, and ANALYZE
//! ([`super::analyze`]). What they name is checked and locked all the same: who waits for them to end may
//! rely on nobody else's doing the same meanwhile.
//!
//! # What it leaves out
//! Transactions of their own for the tables of one ANALYZE: it is one statement, and holds its locks, which
//! hinder neither readers nor writers, until it ends.

use base::engine::{LockWait, TableLock};
use base::{Error, Result, SqlState};
use pg_query::protobuf::{DefElem, Node, VacuumRelation, VacuumStmt};

use super::super::copy::options::truth_of;
use super::super::utility::tag;
use super::super::{CommandTag, Session, Sink};
use catalog::system::relations;
use catalog::{RelationKind, Table, PG_CATALOG};
use syntax::parser::{char_position, NodeEnum};

/// Options of VACUUM that are on or off.
const OF_VACUUM: [&str; 8] = [
    "verbose",
    "analyze",
    "freeze",
    "full",
    "skip_locked",
    "disable_page_skipping",
    "process_toast",
    "truncate",
];

/// Those of ANALYZE.
const OF_ANALYZE: [&str; 2] = ["verbose", "skip_locked"];

/// PARALLEL takes at most so many.
const PARALLEL_MAX: i32 = 1_024;

impl Session {
    /// VACUUM or ANALYZE.
    ///
    /// # Errors
    /// 42601 for options that there are not, 42P01 and 42703 for what is not there, 25001 for VACUUM
    /// inside a block.
    pub(in super::super) fn vacuum(
        &mut self,
        text: &str,
        vacuum: &VacuumStmt,
        sink: &mut dyn Sink,
        alone: bool,
    ) -> Result<CommandTag> {
        let name = if vacuum.is_vacuumcmd {
            "VACUUM"
        } else {
            "ANALYZE"
        };
        let options = check_options(text, name, vacuum)?;
        if vacuum.is_vacuumcmd {
            self.require_no_block("VACUUM", alone)?;
        }
        if vacuum.rels.is_empty() && options.analyzes {
            self.analyze_all(name, &options, sink)?;
        }
        for node in &vacuum.rels {
            let Some(NodeEnum::VacuumRelation(relation)) = &node.node else {
                continue;
            };
            self.vacuum_relation(name, relation, &options, sink)?;
        }
        Ok(tag(name))
    }

    /// A relation that is named.
    fn vacuum_relation(
        &mut self,
        name: &str,
        relation: &VacuumRelation,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if !relation.va_cols.is_empty() && !options.analyzes {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "ANALYZE option must be specified when a column list is provided",
            ));
        }
        let range = relation.relation.as_ref();
        let range = range.ok_or_else(|| Error::internal("a relation without a name"))?;
        let catalog = self.current_catalog()?;
        let table = self.relation_named(range)?;
        if let Some(table) = table.as_ref().filter(|known| known.partition_key.is_some()) {
            let below = catalog.below(table);
            let mut with_rows = below.iter().filter(|below| below.kind.has_rows());
            return with_rows.try_for_each(|below| {
                self.vacuum_table(name, below, &relation.va_cols, options, sink)
            });
        }
        let has_rows = |kind: RelationKind| kind.has_rows() || kind == RelationKind::System;
        let Some(table) = table.filter(|table| has_rows(table.kind)) else {
            let message = format!(
                "skipping \"{}\" --- cannot {} non-tables or special system tables",
                range.relname,
                name.to_lowercase()
            );
            return self.warn(SqlState::of("01000"), &message, sink);
        };
        self.vacuum_table(name, &table, &relation.va_cols, options, sink)
    }

    /// All tables, one after the other.
    fn analyze_all(&mut self, name: &str, options: &Options, sink: &mut dyn Sink) -> Result<()> {
        let catalog = self.current_catalog()?;
        let tables = catalog.tables.iter().filter(|table| table.kind.has_rows());
        let tables: Vec<_> = tables.cloned().collect();
        tables
            .iter()
            .try_for_each(|table| self.vacuum_table(name, table, &[], options, sink))
    }

    /// A table, unless the role may not or it is gone meanwhile.
    fn vacuum_table(
        &mut self,
        name: &str,
        table: &Table,
        columns: &[Node],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let does = name.to_lowercase();
        if let Some(who) = self.who_may_vacuum(table)? {
            let message = format!("skipping \"{}\" --- only {who} can {does} it", table.name);
            return self.warn(SqlState::of("01000"), &message, sink);
        }
        if let Some((state, why)) = self.lock_vacuumed(table, options)? {
            let message = format!("skipping {does} of \"{}\" --- {why}", table.name);
            return self.warn(state, &message, sink);
        }
        // It may be another since the lock was waited for.
        let catalog = self.current_catalog()?;
        let table = match catalog.table_by_oid(table.oid) {
            Some(table) => table.clone(),
            None => return Err(Error::internal("a relation that is gone")),
        };
        let places = column_places(&table, columns)?;
        if name == "VACUUM" && table.kind.has_rows() {
            let registry = self.shared.start.registry.as_ref();
            if let Some(node) = registry.and_then(|registry| registry.statistics()) {
                let (sessions, now) = (self.shared.sessions(), self.shared.env.wall_clock().0);
                node.vacuumed(catalog.database.oid, table.oid, &sessions, now);
            }
        }
        match options.analyzes && table.kind.has_rows() {
            true => self.analyze_table(&table, &places, options.verbose, sink),
            false => Ok(()),
        }
    }

    /// Who may do it, if the role is none of them.
    fn who_may_vacuum(&mut self, table: &Table) -> Result<Option<&'static str>> {
        let catalog = self.current_catalog()?;
        let own = self.current_role(&catalog)?.oid;
        let is_shared = relations::by_oid(table.oid).is_some_and(|known| known.shared);
        let owns = |owner| catalog.has_privileges_of(own, owner);
        Ok(match () {
            _ if owns(table.owner) || (!is_shared && owns(catalog.database.owner)) => None,
            _ if is_shared => Some("superuser"),
            _ if table.schema == PG_CATALOG => Some("superuser or database owner"),
            _ => Some("table or database owner"),
        })
    }

    /// Locks a table; or why it is to be skipped.
    fn lock_vacuumed(
        &mut self,
        table: &Table,
        options: &Options,
    ) -> Result<Option<(SqlState, &'static str)>> {
        if table.kind == RelationKind::System {
            return Ok(None);
        }
        let mode = match options.full {
            true => TableLock::AccessExclusive,
            false => TableLock::ShareUpdateExclusive,
        };
        let wait = match options.skips_locked {
            true => LockWait::Skip,
            false => LockWait::Block,
        };
        self.ensure_open()?;
        let Some(open) = &mut self.open else {
            return Err(Error::internal("nothing is open"));
        };
        if !open.txn.lock_table(table.tree, mode, wait)? {
            return Ok(Some((SqlState::LOCK_NOT_AVAILABLE, "lock not available")));
        }
        open.txn.begin_statement()?;
        let is_there = self.current_catalog()?.table_by_oid(table.oid).is_some();
        let gone = (SqlState::UNDEFINED_TABLE, "relation no longer exists");
        Ok((!is_there).then_some(gone))
    }
}

/// What a statement asks for.
struct Options {
    /// Columns may be named, which only ANALYZE looks at.
    analyzes: bool,
    verbose: bool,
    full: bool,
    skips_locked: bool,
}

fn check_options(text: &str, name: &str, vacuum: &VacuumStmt) -> Result<Options> {
    let mut options = Options {
        analyzes: !vacuum.is_vacuumcmd,
        verbose: false,
        full: false,
        skips_locked: false,
    };
    let mut parallel = 0;
    for node in &vacuum.options {
        let Some(NodeEnum::DefElem(option)) = &node.node else {
            continue;
        };
        let place = |message: String| {
            let error = Error::new(SqlState::SYNTAX_ERROR, message);
            match char_position(text, option.location) {
                Some(position) => error.at(position),
                None => error,
            }
        };
        let own = option.defname.as_str();
        let known: &[&str] = if vacuum.is_vacuumcmd {
            &OF_VACUUM
        } else {
            &OF_ANALYZE
        };
        if vacuum.is_vacuumcmd && own == "parallel" {
            parallel =
                workers(option.arg.as_deref()).map_err(|message| place(message.to_owned()))?;
            continue;
        }
        if vacuum.is_vacuumcmd && own == "index_cleanup" && is_auto(option) {
            continue;
        }
        if !known.contains(&own) && (!vacuum.is_vacuumcmd || own != "index_cleanup") {
            return Err(place(format!("unrecognized {name} option \"{own}\"")));
        }
        let on = truth_of(option).ok_or_else(|| {
            let message = format!("{own} requires a Boolean value");
            Error::new(SqlState::SYNTAX_ERROR, message)
        })?;
        options.analyzes |= own == "analyze" && on;
        options.verbose |= own == "verbose" && on;
        options.full |= own == "full" && on;
        options.skips_locked |= own == "skip_locked" && on;
    }
    match options.full && parallel > 0 {
        true => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "VACUUM FULL cannot be performed in parallel",
        )),
        false => Ok(options),
    }
}

/// The places of the columns that are named.
///
/// # Errors
/// 42703 and 42701.
fn column_places(table: &Table, columns: &[Node]) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for column in columns.iter().filter_map(word_of) {
        let (state, what) = match table.column(column) {
            None => (SqlState::UNDEFINED_COLUMN, "does not exist"),
            Some(place) if places.contains(&place) => {
                (SqlState::DUPLICATE_COLUMN, "appears more than once")
            }
            Some(place) => {
                places.push(place);
                continue;
            }
        };
        let message = format!("column \"{column}\" of relation \"{}\" {what}", table.name);
        return Err(Error::new(state, message));
    }
    Ok(places)
}

fn word_of(node: &Node) -> Option<&str> {
    match &node.node {
        Some(NodeEnum::String(word)) => Some(&word.sval),
        _ => None,
    }
}

fn is_auto(option: &DefElem) -> bool {
    let value = option.arg.as_ref().and_then(|arg| arg.node.as_ref());
    matches!(value, Some(NodeEnum::String(value)) if value.sval.eq_ignore_ascii_case("auto"))
}

/// The value of PARALLEL.
fn workers(value: Option<&Node>) -> std::result::Result<i32, &'static str> {
    match value.and_then(|value| value.node.as_ref()) {
        None => Err("parallel option requires a value between 0 and 1024"),
        Some(NodeEnum::Integer(number)) if (0..=PARALLEL_MAX).contains(&number.ival) => {
            Ok(number.ival)
        }
        Some(_) => Err("parallel workers for vacuum must be between 0 and 1024"),
    }
}
