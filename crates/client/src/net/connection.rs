//! The public handle of a connection.

use super::error::{Closed, SendError};
use super::options::Options;
use super::queue::{NotPut, Queue};
use bytes::Bytes;
use core::time::Duration;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Timeout after this end has closed: for sending what is queued, and for the other end's answer.
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is open. Queued messages are sent from here on.
    Open,
    /// Received bytes: a WebSocket message, a datagram, or the next piece of a TCP stream, split anywhere.
    Message(Bytes),
    /// Received text: a text message of a WebSocket.
    Text(String),
    /// The connection has ended. Sent once, as the last event.
    Closed(Closed),
}

/// A connection over TCP, UDP or WebSocket. No call blocks: call [`poll`](Self::poll) in each frame. Dropping
/// it closes it.
#[derive(Debug)]
pub struct Connection {
    pipes: Arc<Pipes>,
    message_bytes_max: usize,
    takes_text: bool,
    stage: Stage,
    /// Dropped when this end closes. The task then has [`LINGER`] to finish.
    closing: Option<oneshot::Sender<Never>>,
}

/// A message that is never sent: dropping the other half is the signal.
#[derive(Debug)]
enum Never {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alive,
    /// Closed by this end; the event is not delivered yet.
    Closing,
    /// All events are delivered.
    Over,
}

/// The type of an outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    Bytes(Bytes),
    Text(String),
}

/// The queues between a connection and its task.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) inbound: Queue<Event>,
    pub(super) outbound: Queue<Outgoing>,
    pub(super) dropped: AtomicU64,
}

impl Connection {
    /// Starts the task of a connection. The task gets both queues, and returns how the connection ended.
    pub(super) fn begin<F>(
        options: Options,
        takes_text: bool,
        task: impl FnOnce(Arc<Pipes>, Options) -> F,
    ) -> Self
    where
        F: Future<Output = Closed> + Send + 'static,
    {
        let pipes = Arc::new(Pipes {
            inbound: Queue::new(options.queue_bytes_max),
            outbound: Queue::new(options.queue_bytes_max),
            dropped: AtomicU64::new(0),
        });
        let message_bytes_max = options.message_bytes_max;
        let permitted = options.permitted();
        let running = task(Arc::clone(&pipes), options);
        let running = async {
            match permitted {
                Ok(()) => running.await,
                Err(error) => Closed::NotOpened(error),
            }
        };
        let of_task = Arc::clone(&pipes);
        let (closing, closed_here) = oneshot::channel::<Never>();
        super::runtime::handle().spawn(async move {
            // Also if the task panics: both queues end for the game.
            let _end = EndOnDrop(Arc::clone(&of_task));
            let linger_over = async {
                let _ = closed_here.await;
                sleep(LINGER).await;
            };
            let closed = tokio::select! {
                closed = running => closed,
                () = linger_over => Closed::Here,
            };
            of_task.inbound.end_with(Event::Closed(closed));
        });
        Connection { pipes, message_bytes_max, takes_text, stage: Stage::Alive, closing: Some(closing) }
    }

    /// Sends a WebSocket message, a datagram, or a piece of a TCP stream. It is queued until the connection
    /// is open. Over TCP and WebSocket everything arrives in order, or the connection ends. A datagram may be
    /// lost.
    ///
    /// # Errors
    /// [`SendError`]; nothing is sent then.
    pub fn send(&mut self, bytes: impl Into<Bytes>) -> Result<(), SendError> {
        let bytes = bytes.into();
        let len = bytes.len();
        self.put(Outgoing::Bytes(bytes), len)
    }

    /// Sends text: as a text message over WebSocket, and as its bytes otherwise.
    ///
    /// # Errors
    /// [`SendError`]; nothing is sent then.
    pub fn send_text(&mut self, text: &str) -> Result<(), SendError> {
        let message = if self.takes_text {
            Outgoing::Text(text.to_owned())
        } else {
            Outgoing::Bytes(Bytes::copy_from_slice(text.as_bytes()))
        };
        self.put(message, text.len())
    }

    fn put(&mut self, message: Outgoing, bytes: usize) -> Result<(), SendError> {
        if self.stage != Stage::Alive {
            return Err(SendError::Closed);
        }
        if bytes > self.message_bytes_max {
            return Err(SendError::TooLarge { bytes, bytes_max: self.message_bytes_max });
        }
        self.pipes.outbound.try_put(message, bytes).map_err(|why| match why {
            NotPut::Full => SendError::Full,
            NotPut::Over => SendError::Closed,
        })
    }

    /// Returns the next event, if there is one.
    pub fn poll(&mut self) -> Option<Event> {
        let event = match self.stage {
            Stage::Over => return None,
            Stage::Closing => Event::Closed(Closed::Here),
            Stage::Alive => match self.pipes.inbound.try_take() {
                Some(event) => event,
                None if self.pipes.inbound.is_over() => {
                    Event::Closed(Closed::Broken("its task failed; please report this".to_owned()))
                }
                None => return None,
            },
        };
        if matches!(event, Event::Closed(_)) {
            self.stage = Stage::Over;
        }
        Some(event)
    }

    /// Closes the connection. Queued messages are still sent, if that takes at most a few seconds and the
    /// process lives that long. Events not polled yet are dropped. The next event is the last:
    /// [`Closed::Here`].
    pub fn close(&mut self) {
        if self.stage == Stage::Alive {
            self.stage = Stage::Closing;
            self.closing = None;
            self.pipes.outbound.end();
            self.pipes.inbound.drop_rest();
        }
    }

    /// Returns the number of dropped datagrams: received but not polled in time, or refused by the operating
    /// system when sent.
    pub fn dropped(&self) -> u64 {
        self.pipes.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

struct EndOnDrop(Arc<Pipes>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.inbound.end();
        self.0.outbound.drop_rest();
    }
}
