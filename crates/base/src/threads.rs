//! What [`crate::sync`] is made of: real threads' primitives here, and a model checker's where the
//! shared structures are checked (`model/threads.rs`).

pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::atomic;
