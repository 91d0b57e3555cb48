//! Memory for pages.
//!
//! Pages come and go all the time, and are just as large as one of the machine's own: in a general
//! allocator each would share a larger block with its bookkeeping, and take an eighth more. So
//! buffers are cut from large pieces, and what is dropped is kept for the next.
//!
//! ```text
//! PageBuffer::zeroed() ◄── spare ◄── drop
//!                            ▲
//!              a piece of 128 buffers, when none is spare
//! ```
//!
//! # Invariants
//! - A buffer is zero when it is handed out: nothing of the page before can be seen.
//! - Pieces stay: a process holds as many buffers as there were pages at once.

use std::ops::{Deref, DerefMut};

use base::sync::Mutex;

use crate::page::PAGE_BYTES;

/// Buffers in a piece of memory: 1 MiB.
const BUFFERS_PER_PIECE: usize = 128;

type Bytes = &'static mut [u8; PAGE_BYTES];

/// Buffers that no page is in.
static SPARE: Mutex<Vec<Bytes>> = Mutex::new(Vec::new());

/// A page's bytes.
pub(crate) struct PageBuffer(Option<Bytes>);

impl PageBuffer {
    /// A buffer of zeros.
    pub(crate) fn zeroed() -> PageBuffer {
        let spare = SPARE.lock().pop();
        let bytes = match spare {
            Some(bytes) => {
                bytes.fill(0);
                bytes
            }
            None => another_piece(),
        };
        PageBuffer(Some(bytes))
    }
}

/// One buffer of a new piece; the others are spare from now on.
fn another_piece() -> Bytes {
    let piece = Box::leak(vec![[0; PAGE_BYTES]; BUFFERS_PER_PIECE].into_boxed_slice());
    let (first, others) = piece.split_first_mut().expect("a piece has many buffers");
    SPARE.lock().extend(others.iter_mut());
    first
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        SPARE.lock().extend(self.0.take());
    }
}

impl Clone for PageBuffer {
    fn clone(&self) -> PageBuffer {
        let mut copy = PageBuffer::zeroed();
        copy.copy_from_slice(&self[..]);
        copy
    }
}

impl Deref for PageBuffer {
    type Target = [u8; PAGE_BYTES];

    fn deref(&self) -> &[u8; PAGE_BYTES] {
        self.0.as_ref().expect("it is taken by drop alone")
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8; PAGE_BYTES] {
        self.0.as_mut().expect("it is taken by drop alone")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_a_buffer_is_not_in_the_next() {
        let mut buffers: Vec<PageBuffer> = (0..3 * BUFFERS_PER_PIECE)
            .map(|_| PageBuffer::zeroed())
            .collect();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            buffer.fill(index as u8 | 1);
        }
        let copy = buffers[5].clone();
        buffers[5].fill(0);
        assert_eq!(copy[..], [5; PAGE_BYTES]);
        drop(buffers);
        for _ in 0..3 * BUFFERS_PER_PIECE {
            assert_eq!(PageBuffer::zeroed()[..], [0; PAGE_BYTES]);
        }
    }
}
