//! ALTER COLUMN … SET STORAGE and SET COMPRESSION, and COMPRESSION of a new column.
//!
//! What is said holds for values that are written from then on ([`catalog::column_storage`]).

use base::{Error, Result, SqlState};
use pg_query::protobuf::AlterTableCmd;

use super::super::super::Session;
use super::column_place;
use catalog::access::system_column;
use catalog::{Column, Compression, Storage, Table};
use syntax::parser::NodeEnum;
use types::format_type;

/// The place of a column of which storage or compression is said.
///
/// # Errors
/// 42703; 0A000 for a system column.
fn named_column(table: &Table, name: &str) -> Result<usize> {
    match system_column(table, name) {
        Some(_) => Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot alter system column \"{name}\""),
        )),
        None => column_place(table, name),
    }
}

fn said(command: &AlterTableCmd) -> Result<&str> {
    match command.def.as_ref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::String(word)) => Ok(&word.sval),
        _ => Err(Error::internal("an action on a column that says nothing")),
    }
}

fn unfit(column: &Column, what: &str) -> Error {
    let ty = format_type(column.declared().0, -1);
    let message = format!("column data type {ty} {what}");
    Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// The method of compression of a name for a column; none for `default`.
///
/// # Errors
/// 22023 for a method that there is not; 0A000 where values of the type are never compressed.
pub(in super::super) fn compression_of(name: &str, column: &Column) -> Result<Option<Compression>> {
    if name == "default" {
        return Ok(None);
    }
    if Storage::of_type(column.type_id) == Storage::Plain {
        return Err(unfit(column, "does not support compression"));
    }
    match Compression::named(name) {
        None => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid compression method \"{name}\""),
        )),
        method => Ok(method),
    }
}

impl Session {
    /// ALTER COLUMN … SET STORAGE.
    pub(super) fn alter_storage(&mut self, table: &Table, command: &AlterTableCmd) -> Result<()> {
        let name = said(command)?;
        let wanted = Storage::named(name).ok_or_else(|| {
            let message = format!("invalid storage type \"{name}\"");
            Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })?;
        let place = named_column(table, &command.name)?;
        let mut new = table.clone();
        let column = &mut new.columns[place];
        let usual = Storage::of_type(column.type_id);
        if wanted != Storage::Plain && usual == Storage::Plain {
            return Err(unfit(column, "can only have storage PLAIN"));
        }
        column.said_storage = Some(wanted).filter(|wanted| *wanted != usual);
        self.put_table(&new)
    }

    /// ALTER COLUMN … SET COMPRESSION.
    pub(super) fn alter_compression(
        &mut self,
        table: &Table,
        command: &AlterTableCmd,
    ) -> Result<()> {
        let place = named_column(table, &command.name)?;
        let mut new = table.clone();
        let column = &mut new.columns[place];
        column.compression = compression_of(said(command)?, column)?;
        self.put_table(&new)
    }
}
