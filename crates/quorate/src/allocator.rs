//! Where memory comes from: jemalloc, for the whole process, the parser's C code too.
//!
//! A node runs for months, and its statements take all sizes, from a point read's few values to a list
//! of a million elements. What they free goes back to the machine only where nothing lies between that
//! lives on: plans, cached pages, rows that wait. jemalloc keeps values of one size together in slabs of
//! a few pages, so that a value that lives on holds back some kB. In an allocator with pages of 64 kB to
//! 4 MB it holds back that much: there a leader had 47 MB of values after minutes of hostile statements
//! (`make hostile`), and 154 MB of memory for them.
//!
//! # What it leaves out
//! It is not the fastest: a point read takes about 2% more processor time than with mimalloc.

/// By whom everything is allocated.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What jemalloc reads before its first allocation (its manual, *tuning*). Freed memory goes back after
/// a second, by threads of its own, so also where nobody allocates any more; and threads share few
/// arenas, so that what one has freed is used by others.
// SAFETY: nothing else in the process has that name, and it is what jemalloc takes it for: a pointer to
// a text that ends with a zero.
#[unsafe(export_name = "malloc_conf")]
static OPTIONS: &[u8; 70] =
    b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4\0";
