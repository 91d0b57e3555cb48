//! Giving way: a long computation lets the other tasks of its thread have their turn.
//!
//! A task that wakes itself at once comes after all that are *ready*. That is not enough on a
//! thread with sockets: what has arrived makes nobody ready before the thread looks for it, and
//! while somebody is always ready, an executor looks only after dozens of turns. A statement that
//! gives way each half millisecond would so keep others waiting for 30 ms. Whoever runs a thread
//! therefore says how to put off a task until the thread has looked ([`put_off_with`]); without
//! that, as in the simulator, it is woken at once.
//!
//! ```
//! let mut way = Box::pin(base::turns::give_way());
//! let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! # use std::future::Future;
//! assert!(way.as_mut().poll(&mut cx).is_pending());
//! assert!(way.as_mut().poll(&mut cx).is_ready());
//! ```

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wakes a task after the others of this thread have had their turn.
pub type PutOff = fn(&Waker);

thread_local! {
    static PUT_OFF: Cell<PutOff> = const { Cell::new(Waker::wake_by_ref) };
}

/// Says how tasks that give way on this thread are woken again.
pub fn put_off_with(put_off: PutOff) {
    PUT_OFF.with(|current| current.set(put_off));
}

/// Wakes the task again after others of this thread have had their turn.
pub fn put_off(cx: &Context<'_>) {
    PUT_OFF.with(Cell::get)(cx.waker());
}

/// Ready at the second look, before which others of this thread had their turn.
pub fn give_way() -> GiveWay {
    GiveWay { given: false }
}

/// What [`give_way`] returns.
#[derive(Debug)]
pub struct GiveWay {
    given: bool,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.given, true) {
            return Poll::Ready(());
        }
        put_off(cx);
        Poll::Pending
    }
}
