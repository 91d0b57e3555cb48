//! Passing a client's bytes on to another node, and the answers back.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use base::env::Stream;

/// Bytes read at once, and held, in each direction: a slow reader slows its writer down.
const BUFFER_BYTES: usize = 64 << 10;

/// One direction of a connection.
struct Flow {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The reading side has closed.
    is_closed: bool,
}

impl Flow {
    fn new(first: &[u8]) -> Flow {
        let mut buffer = first.to_vec();
        buffer.resize(BUFFER_BYTES.max(first.len()), 0);
        Flow {
            buffer,
            start: 0,
            end: first.len(),
            is_closed: false,
        }
    }

    /// Moves what can be moved. Ready at the end: the one side has closed and the other has
    /// everything.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn Stream,
        to: &mut dyn Stream,
    ) -> Poll<io::Result<()>> {
        loop {
            while self.start < self.end {
                match to.poll_write(cx, &self.buffer[self.start..self.end]) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => self.start += count,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.is_closed {
                return Poll::Ready(Ok(()));
            }
            (self.start, self.end) = (0, 0);
            match from.poll_read(cx, &mut self.buffer) {
                Poll::Ready(Ok(0)) => self.is_closed = true,
                Poll::Ready(Ok(count)) => self.end = count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Carries bytes both ways until one side closes, then lets both go. What `there` has sent until
/// its end reaches `here`.
///
/// # Errors
/// Whatever a stream gives.
pub async fn splice(
    here: &mut dyn Stream,
    there: &mut dyn Stream,
    first_from_there: &[u8],
) -> io::Result<()> {
    let mut back = Flow::new(first_from_there);
    let mut forth = Flow::new(&[]);
    poll_fn(|cx| {
        if let Poll::Ready(result) = back.poll(cx, there, here) {
            return Poll::Ready(result);
        }
        forth.poll(cx, here, there)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Waker;

    /// Gives its input, then waits or ends; takes a few bytes at a time.
    struct Half {
        input: Vec<u8>,
        ends: bool,
        output: Vec<u8>,
    }

    impl Stream for Half {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            if self.input.is_empty() && !self.ends {
                return Poll::Pending;
            }
            let count = buffer.len().min(self.input.len());
            buffer[..count].copy_from_slice(&self.input[..count]);
            self.input.drain(..count);
            Poll::Ready(Ok(count))
        }

        fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(1_000);
            self.output.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }
    }

    #[test]
    fn everything_arrives_before_the_end() {
        let answer = vec![7; 3 * BUFFER_BYTES];
        let mut client = Half {
            input: b"question".to_vec(),
            ends: false,
            output: Vec::new(),
        };
        let mut server = Half {
            input: answer.clone(),
            ends: true,
            output: Vec::new(),
        };
        let mut cx = Context::from_waker(Waker::noop());
        let spliced = pin!(splice(&mut client, &mut server, b"first")).poll(&mut cx);
        assert!(matches!(spliced, Poll::Ready(Ok(()))));
        assert_eq!(client.output, [&b"first"[..], &answer].concat());
    }
}
