//! Every limit that more than one crate knows: a name, a value, and what happens at it.

use std::time::Duration;

/// A commit at `off` is flushed at the latest after this.
pub const OFF_FLUSH_DELAY: Duration = Duration::from_millis(10);

/// Frontend messages longer than this close the connection with 08P01 (PostgreSQL: 1 GB).
pub const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// A key may be at most this long, encoded; a longer one is 54000.
pub const KEY_BYTES_MAX: usize = 2_600;

/// A value of a column may be at most this long, as in PostgreSQL; a longer one is 54000.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 1;

/// A value longer than this is compressed, and is in no key.
pub const SHORT_VALUE_BYTES_MAX: usize = KEY_BYTES_MAX;

/// A value that is longer than this, even compressed, is not in its row.
pub const ROW_VALUE_BYTES_MAX: usize = 4_000;

/// Stack of one executing statement. Each session has at most one, so `max_connections` bounds how
/// many there are.
pub const COROUTINE_STACK_BYTES: usize = 1 << 20;

/// Stacks that a thread keeps for later statements.
pub const POOLED_STACKS_MAX: usize = 64;

/// A stack that was used beyond this is not kept, so that what a thread's stacks take between
/// statements is at most this times [`POOLED_STACKS_MAX`].
pub const POOLED_STACK_BYTES: usize = 256 << 10;

/// Stack of what is deeply recursive and long, and gives way ([`crate::coro::on_large_stack`]).
pub const LARGE_STACK_BYTES: usize = 64 << 20;

/// A statement gives way to others each time it has done so much ([`crate::coro::work`]), in units
/// of about a nanosecond.
pub const WORK_PER_TURN: usize = 1 << 19;

/// A text longer than this is parsed on a thread of its own, because PostgreSQL's grammar cannot
/// give way, and bound on a stack of its own, where binding can.
pub const SHORT_TEXT_BYTES_MAX: usize = 16 << 10;

/// A long computation gives way to others every so many rows.
pub const ROWS_PER_YIELD: usize = 256;

/// Rows that one call of a scan returns at most.
pub const SCAN_BATCH_ROWS: usize = 256;

/// Columns of a table (PostgreSQL's limit); one more is 54011.
pub const COLUMNS_MAX: usize = 1_600;

/// Bytes of held output of one session at which it parks until its gate opens.
pub const HELD_OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Bytes of a group's log that are appended and not yet committed, unless `quorate.max_inflight`
/// says otherwise; at it every commit waits, cancellably, before it appends.
pub const UNCOMMITTED_BYTES_MAX: usize = 64 << 20;

const _: () = assert!(KEY_BYTES_MAX < 8_192 / 3, "three keys fit a page");
