//! Waiting for whichever comes first.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use base::env::{sleep, Env};

/// Which of two futures was ready first.
#[derive(Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first, which wins a tie.
    First(A),
    /// The second.
    Second(B),
}

/// Waits for one of two futures; the other is dropped.
pub async fn either<A: Future, B: Future>(first: A, second: B) -> Either<A::Output, B::Output> {
    let mut first = pin!(first);
    let mut second = pin!(second);
    poll_fn(|cx| {
        if let Poll::Ready(value) = first.as_mut().poll(cx) {
            return Poll::Ready(Either::First(value));
        }
        second.as_mut().poll(cx).map(Either::Second)
    })
    .await
}

/// Waits for a future, at most so long; none when it was not ready by then.
pub async fn timeout<F: Future>(env: &dyn Env, limit: Duration, future: F) -> Option<F::Output> {
    match either(future, sleep(env, limit)).await {
        Either::First(value) => Some(value),
        Either::Second(()) => None,
    }
}
