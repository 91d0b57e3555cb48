//! COPY from and to a file of the server, in the place of the client.
//!
//! ```text
//! COPY t FROM '/srv/rows.csv'   file ─64 kB→ Sink::copy_data → as from a client
//! COPY t TO '/srv/rows.csv'     row → line → Sink::copy_row ─64 kB→ file
//! ```
//! [`Server`] is a sink around the client's: what would be asked of the client is read from the
//! file, and what would be sent to it is written there; all else goes on to it. The disk is used on
//! the threads for pages, while the statement waits and can be ended.
//!
//! # Invariants
//! - Superusers and members of `pg_read_server_files` or `pg_write_server_files` come here, nobody
//!   else: whoever does may read, or write, whatever the server may.
//! - The file is one of the node that leads. Another has none of it, so whoever reads a file after a
//!   failover finds that of the new leader.
//! - Only regular files: to open a pipe could take the thread for good.
//!
//! # What it leaves out
//! Programs (0A000). A file that was written is not synced, as in PostgreSQL. It may hold what a
//! failover takes back; the statement fails then, as every reply does that rests on it.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use base::env::Env;
use base::{Debt, Durability, Error, Result, SqlState};
use pg_query::protobuf::CopyStmt;

use crate::session::{LogContext, Session};
use catalog::access::{READ_SERVER_FILES, WRITE_SERVER_FILES};
use execution::server_file::{beside, failed, said, Slot, BLOCK_BYTES};
use execution::state::{Column, CommandTag, Format, Notice, RowView, Sink};

/// An open file, in the place of the client.
pub(super) struct Server<'a> {
    to: &'a mut dyn Sink,
    env: Arc<dyn Env>,
    path: String,
    reader: Slot<Box<dyn Read + Send>>,
    writer: Slot<Box<dyn Write + Send>>,
    /// What is to be written.
    pending: Vec<u8>,
}

impl Session {
    /// # Errors
    /// 42501 for whoever may use no file of the server in that way.
    pub(super) fn must_use_server_files(&mut self, copy: &CopyStmt) -> Result<()> {
        let (role, name, way) = match copy.is_from {
            true => (READ_SERVER_FILES, "pg_read_server_files", "from"),
            false => (WRITE_SERVER_FILES, "pg_write_server_files", "to"),
        };
        let current = self.shared.settings.current_role();
        if self.current_catalog()?.has_privileges_of(current, role) {
            return Ok(());
        }
        let hint =
            "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.";
        Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("must be superuser or have privileges of the {name} role to COPY {way} a file"),
        )
        .with_hint(hint))
    }
}

impl<'a> Server<'a> {
    /// For the file that a COPY names; it is opened when data are asked for, or given.
    ///
    /// # Errors
    /// 42602 for a path that is not absolute and would be written.
    pub fn of(copy: &CopyStmt, env: Arc<dyn Env>, to: &'a mut dyn Sink) -> Result<Server<'a>> {
        if !copy.is_from && !copy.filename.starts_with('/') {
            return Err(Error::new(
                SqlState::INVALID_NAME,
                "relative path not allowed for COPY to file",
            ));
        }
        Ok(Server {
            to,
            env,
            path: copy.filename.clone(),
            reader: Slot::default(),
            writer: Slot::default(),
            pending: Vec::new(),
        })
    }

    /// Does something with the disk on another thread, and waits for it.
    fn beside<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        beside(&self.env, "file of COPY", job)
    }

    fn refused(&self, what: &str, cause: &std::io::Error) -> Error {
        let message = match cause.kind() {
            ErrorKind::IsADirectory => format!("\"{}\" is a directory", self.path),
            _ => format!("could not {what}: {}", said(cause)),
        };
        failed(message, cause)
    }

    fn refused_to_open(&self, way: &str, reads: &str, cause: &std::io::Error) -> Error {
        let what = format!("open file \"{}\" for {reads}", self.path);
        let error = self.refused(&what, cause);
        let missing = matches!(
            cause.kind(),
            ErrorKind::NotFound | ErrorKind::PermissionDenied
        );
        let verb = if way == "FROM" { "read" } else { "write" };
        match missing {
            false => error,
            true => error.with_hint(format!(
                "COPY {way} instructs the PostgreSQL server process to {verb} a file. You may want a client-side facility such as psql's \\copy."
            )),
        }
    }

    /// Writes what has gathered.
    fn flush(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        let writer = self.writer.clone();
        let (written, mut bytes) = self.beside(move || {
            let written = match &mut *writer.lock() {
                Some(writer) => writer.write_all(&bytes),
                None => Err(ErrorKind::NotFound.into()),
            };
            (written, bytes)
        })?;
        written.map_err(|cause| self.refused("write to COPY file", &cause))?;
        bytes.clear();
        self.pending = bytes;
        Ok(())
    }
}

impl Sink for Server<'_> {
    fn owe(&mut self, debt: &Debt, durability: Durability) {
        self.to.owe(debt, durability);
    }

    fn committed(&mut self, commit: &Debt) {
        self.to.committed(commit);
    }

    fn row_description(&mut self, columns: &[Column]) -> Result<()> {
        self.to.row_description(columns)
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.to.row(row)
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Result<()> {
        self.to.command_complete(tag)
    }

    fn empty_query(&mut self) -> Result<()> {
        self.to.empty_query()
    }

    fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.to.notice(notice)
    }

    fn log_notice(&mut self, notice: &Notice, context: &LogContext) {
        self.to.log_notice(notice, context);
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.to.parameter_status(name, value)
    }

    fn copy_in(&mut self, _: usize, _: Format) -> Result<()> {
        let (env, path) = (self.env.clone(), self.path.clone());
        let opened = self.beside(move || env.read_server_file(&path))?;
        let file = opened.map_err(|cause| self.refused_to_open("FROM", "reading", &cause))?;
        *self.reader.lock() = Some(file);
        Ok(())
    }

    fn copy_data(&mut self, data: &mut Vec<u8>) -> Result<bool> {
        let reader = self.reader.clone();
        let block = self.beside(move || {
            let mut block = Vec::with_capacity(BLOCK_BYTES);
            let read = match &mut *reader.lock() {
                Some(reader) => reader
                    .by_ref()
                    .take(BLOCK_BYTES as u64)
                    .read_to_end(&mut block),
                None => Err(ErrorKind::NotFound.into()),
            };
            read.map(|_| block)
        })?;
        let block = block.map_err(|cause| self.refused("read from COPY file", &cause))?;
        data.extend_from_slice(&block);
        Ok(!block.is_empty())
    }

    fn copy_out(&mut self, _: usize, _: Format) -> Result<()> {
        let (env, path) = (self.env.clone(), self.path.clone());
        let opened = self.beside(move || env.write_server_file(&path))?;
        let file = opened.map_err(|cause| self.refused_to_open("TO", "writing", &cause))?;
        *self.writer.lock() = Some(file);
        Ok(())
    }

    fn copy_row(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        match self.pending.len() >= BLOCK_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn copy_done(&mut self) -> Result<()> {
        self.flush()
    }
}
