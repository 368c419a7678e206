//! Bodies of requests: whole ones, and those that a game gives piece by piece.

use super::error::SendError;
use super::options::Options;
use super::queue::{NotPut, Queue};
use bytes::Bytes;
use core::time::Duration;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::sleep;

/// The body of a request, given piece by piece: see [`Options::fetch_streamed`]. No call blocks. The server sets
/// the pace: [`send`](Self::send) returns [`SendError::Full`] while the server reads more slowly than the game
/// writes.
///
/// Call [`finish`](Self::finish) after the last piece. Dropping it earlier makes the request fail, so that no
/// server takes half of a body for all of it.
#[derive(Debug)]
pub struct Upload {
    queue: Arc<Queue<Piece>>,
    piece_bytes_max: usize,
    /// How much of the announced length is missing.
    left: Option<u64>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Bytes),
    Last,
    /// The last one, and so much of the announced length is missing.
    Short(u64),
}

impl Upload {
    /// Sends the next piece of the body. It is queued until the server takes it.
    ///
    /// # Errors
    /// [`SendError::Full`]: send it again later. [`SendError::TooLarge`]: it is longer than
    /// [`Options::message_bytes_max`], or than the rest of [`Options::body_len`]. [`SendError::Closed`]: the
    /// request is over, and [`Request::poll`](super::Request::poll) says how. Nothing is sent then.
    pub fn send(&mut self, piece: impl Into<Bytes>) -> Result<(), SendError> {
        let piece = piece.into();
        let bytes = piece.len();
        let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let bytes_max = left.min(self.piece_bytes_max);
        if bytes > bytes_max {
            return Err(SendError::TooLarge { bytes, bytes_max });
        }
        self.queue.try_put(Piece::Bytes(piece), bytes).map_err(|why| match why {
            NotPut::Full => SendError::Full,
            NotPut::Over => SendError::Closed,
        })?;
        self.left = self.left.map(|left| left.saturating_sub(bytes as u64));
        Ok(())
    }

    /// Ends the body. The request fails if less was sent than [`Options::body_len`] announced.
    pub fn finish(self) {
        let last = match self.left {
            None | Some(0) => Piece::Last,
            Some(left) => Piece::Short(left),
        };
        self.queue.end_with(last);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.queue.end();
    }
}

/// The body of a request that is to be made.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Bytes),
    Streamed(Pieces),
}

/// The request's end of an [`Upload`].
#[derive(Debug)]
pub(super) struct Pieces {
    queue: Arc<Queue<Piece>>,
    /// The announced length.
    len: Option<u64>,
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.queue.drop_rest();
    }
}

/// Why a streamed body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum BrokenOff {
    #[error("its body was dropped before its end: call finish() after the last piece")]
    Dropped,
    #[error("its body ended {0} bytes before the announced length")]
    Short(u64),
}

/// A streamed body: the game's end and the request's.
pub(super) fn streamed(options: &Options) -> (Upload, Body) {
    let queue = Arc::new(Queue::new(options.queue_bytes_max));
    let len = options.body_len;
    let body = Body::Streamed(Pieces { queue: Arc::clone(&queue), len });
    (Upload { queue, piece_bytes_max: options.message_bytes_max, left: len }, body)
}

impl Body {
    /// The bytes, if the body can be sent more than once.
    pub(super) fn repeatable(&self) -> Option<Bytes> {
        match self {
            Body::Whole(bytes) => Some(bytes.clone()),
            Body::Streamed(_) => None,
        }
    }

    /// The length that the game announced of a streamed body.
    pub(super) fn announced(&self) -> Option<u64> {
        match self {
            Body::Whole(_) => None,
            Body::Streamed(pieces) => pieces.len,
        }
    }

    /// The body as the HTTP library takes it, and whose turn it is while the request goes on.
    pub(super) fn begin(self) -> (UnsyncBoxBody<Bytes, BrokenOff>, Turn) {
        let pieces = match self {
            Body::Whole(bytes) => {
                return (Full::new(bytes).map_err(|never| match never {}).boxed_unsync(), Turn(None));
            }
            Body::Streamed(pieces) => pieces,
        };
        let (turn, turns) = watch::channel(false);
        let frames = stream::unfold((pieces, turn), |(pieces, turn)| async move {
            turn.send_replace(true);
            let piece = pieces.queue.take().await;
            turn.send_replace(false);
            let frame = match piece {
                Some(Piece::Bytes(bytes)) => Ok(Frame::data(bytes)),
                Some(Piece::Last) => return None,
                Some(Piece::Short(left)) => Err(BrokenOff::Short(left)),
                None => Err(BrokenOff::Dropped),
            };
            Some((frame, (pieces, turn)))
        });
        (StreamBody::new(frames).boxed_unsync(), Turn(Some(turns)))
    }
}

/// Whose turn it is: the game's while the server waits for the next piece of the body, otherwise the server's.
#[derive(Debug)]
pub(super) struct Turn(Option<watch::Receiver<bool>>);

impl Turn {
    /// Waits for something of the server. Returns `None` if the server was silent for `patience` in its turn.
    pub(super) async fn wait<T>(
        &mut self,
        patience: Duration,
        of_server: impl Future<Output = T>,
    ) -> Option<T> {
        let mut of_server = pin!(of_server);
        loop {
            let is_of_game = self.0.as_mut().is_some_and(|turns| *turns.borrow_and_update());
            tokio::select! {
                came = &mut of_server => return Some(came),
                () = self.changed() => {}
                () = sleep(patience), if !is_of_game => return None,
            }
        }
    }

    async fn changed(&mut self) {
        match &mut self.0 {
            None => pending().await,
            // The body is over.
            Some(turns) => {
                if turns.changed().await.is_err() {
                    self.0 = None
                }
            }
        }
    }
}
