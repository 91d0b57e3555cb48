//! Where rows of a running statement go that do not fit in its memory (`work_mem`).

use std::fmt::Debug;

use crate::error::Result;

/// Scratch space for statements: blocks of bytes, written once, each for as long as somebody has it.
/// Nothing of it outlives the process.
pub trait TempSpace: Send + Sync {
    /// Writes a block of any length but zero; the memory of `bytes` is given back with it, to be used
    /// again. Waits, while another thread writes.
    ///
    /// # Errors
    /// 53100 when there is no space; 58030; the pending interrupt, and then there is no block.
    fn write(&self, bytes: Vec<u8>) -> Result<(Box<dyn TempBlock>, Vec<u8>)>;

    /// Bytes that blocks take now, of all sessions.
    fn used(&self) -> u64;
}

/// A block in scratch space, which is free again when this is dropped.
pub trait TempBlock: Debug + Send + Sync {
    /// How many bytes it has.
    fn bytes(&self) -> usize;

    /// Replaces what is in `out` by the block. Waits, while another thread reads.
    ///
    /// # Errors
    /// 58030, XX001, fatal for the node; the pending interrupt.
    fn read(&self, out: &mut Vec<u8>) -> Result<()>;
}
