//! Rows that another node was told to write, of which nobody has heard yet whether their values are free.
//!
//! ```text
//! insert into t values (1), (2), (3)      post, post, post       no message is waited for
//! the statement ends                      settle                 one is: 2 is taken, 23505
//! ```
//! Whoever writes a row that another row may be in the way of hands it over with what it is told if one is
//! ([`write()`]), and goes on as if none were. An error of a row is an error of the statement, so it makes no
//! difference that those behind it were written meanwhile; what looks at rows in the middle of a statement
//! sees those that are really there, since a node does in order what it is told.
//!
//! # Invariants
//! - Nothing that a statement has set off is carried out, and it has not ended, before [`settle`].
//! - What is kept here is bounded: [`ROWS_MAX`] rows, [`BYTES_MAX`] bytes.
//!
//! # What it leaves out
//! ON CONFLICT has to know of each row before the next is written, and waits for each.

use std::sync::Arc;

use base::engine::{Inserted, Post, Write};
use base::{Error, Result};

use super::new_row::duplicate_key;
use super::write::index_of;
use super::Exec;
use catalog::Table;
use types::Datum;

/// So many rows are written before it is asked what has become of them …
const ROWS_MAX: usize = 1_024;

/// … and so many bytes of them.
const BYTES_MAX: usize = 256 << 10;

/// Rows of which nobody has heard yet.
#[derive(Default)]
pub struct Posted {
    rows: Vec<Unheard>,
    bytes: usize,
    /// What the row at work is called by whoever asks for [`Posted::failed`].
    pub label: u64,
    /// What the row was called that was taken.
    pub failed: Option<u64>,
}

struct Unheard {
    post: Post,
    table: Arc<Table>,
    row: Vec<Datum>,
    label: u64,
}

/// Writes a row of a table. Where another node does, `Done` says that nothing is known against it yet, and
/// what is, [`settle`] says; a row whose values cannot be taken is not asked about.
///
/// # Errors
/// 23505 of a row that was written before; what the engine raises.
pub(super) fn write(
    table: &Arc<Table>,
    (key, row): (&[u8], &[Datum]),
    write: Write<'_>,
    may_be_taken: bool,
    cx: &mut Exec<'_>,
) -> Result<Inserted> {
    let (tree, txn) = (table.tree, cx.host.txn());
    if let Some(post) = txn.post(tree, key, write)? {
        if may_be_taken {
            let bytes = match write {
                Write::Insert(row) | Write::InsertNew(row) | Write::Update(row) => row.len(),
            };
            cx.posted.keep(post, table, (row, bytes));
            if cx.posted.is_full() {
                settle(cx)?;
            }
        }
        return Ok(Inserted::Done);
    }
    txn.write_as(tree, key, write)
}

/// Waits until it is known what has become of all rows.
///
/// # Errors
/// 23505 if one was taken; what the engine raises.
pub fn settle(cx: &mut Exec<'_>) -> Result<()> {
    let Some(since) = cx.posted.rows.first().map(|row| row.post) else {
        return Ok(());
    };
    let rows = std::mem::take(&mut cx.posted.rows);
    cx.posted.bytes = 0;
    let Some((post, tree)) = cx.host.txn().posted(since)? else {
        return Ok(());
    };
    let missing = || Error::internal("a row was taken that nobody has written");
    let taken = rows.iter().find(|row| row.post == post);
    let Unheard {
        table, row, label, ..
    } = taken.ok_or_else(missing)?;
    cx.posted.failed = Some(*label);
    let index = &table.indexes[index_of(table, tree)?];
    Err(duplicate_key(table, index, row, cx))
}

impl Posted {
    fn keep(&mut self, post: Post, table: &Arc<Table>, (row, bytes): (&[Datum], usize)) {
        self.bytes += bytes;
        self.rows.push(Unheard {
            post,
            table: table.clone(),
            row: row.to_vec(),
            label: self.label,
        });
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }
}
