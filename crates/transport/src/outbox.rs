//! The send queues and the life cycle of a link: the state that its two halves share with the writing task. A
//! queue accepts packets until its capacity is reached, so it holds at most that and one packet.

use crate::closed::{CloseCode, LinkClosed, Violation, clip_reason};
use bytes::Bytes;
use core::pin::pin;
use parlor_proto::{Carrier, LinkKind, Packet, limits};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::sync::Notify;

/// Why a packet was not accepted. Nothing of it was sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// The queue is full. Wait for [`LinkSender::writable`](crate::LinkSender::writable), or drop the packet.
    #[error("the link is not writable now: what was handed over before is not sent yet")]
    NotWritable(Packet),
    /// The link is over.
    #[error("the link is closed: {0}")]
    Closed(LinkClosed),
    /// The packet is larger than its carrier allows.
    #[error("a packet of {bytes} bytes is larger than the {max} that its carrier allows")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Only QUIC has datagrams: check [`LinkKind::has_datagrams`] before.
    #[error("a {} link has no datagrams: send it on the stream", .0.as_str())]
    NoDatagrams(LinkKind),
}

/// Returns the size of a packet in bytes, if its carrier accepts that size.
pub(crate) fn check_size(packet: &Packet) -> Result<usize, SendError> {
    let bytes = packet.bytes.len();
    let max = match packet.carrier {
        Carrier::Datagram => limits::DATAGRAM_BYTES_MAX,
        Carrier::Stream | Carrier::Isolated => limits::STREAM_PACKET_BYTES_MAX,
    };
    if bytes > max { Err(SendError::TooLarge { bytes, max }) } else { Ok(bytes) }
}

/// Traffic of a link since its creation. Sent counts accepted packets, received counts packets taken by the
/// owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets accepted for sending.
    pub packets_sent: u64,
    /// Their bytes, without framing.
    pub bytes_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Their bytes, without framing.
    pub bytes_received: u64,
}

/// Overhead of a queued packet beside its bytes, so that empty packets fill a queue too.
const PACKET_OVERHEAD_BYTES: usize = 64;

/// The capacity of each queue in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) datagram_bytes: usize,
    pub(crate) stream_bytes: usize,
    pub(crate) isolated_bytes: usize,
}

/// The close code and reason for the peer.
#[derive(Clone, Debug)]
pub(crate) struct Farewell {
    pub(crate) code: CloseCode,
    pub(crate) reason: String,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// For the writing task: a packet was queued, or the link is closing or over.
    work: Notify,
    /// For senders: there is room, or the link is closing or over.
    room: Notify,
    /// For observers: the link is closing, over or finished.
    over: Notify,
    packets_sent: AtomicU64,
    bytes_sent: AtomicU64,
    packets_received: AtomicU64,
    bytes_received: AtomicU64,
    /// Bytes per second that the path carries, as the writing task estimates; 0 if unknown.
    carries: AtomicU64,
}

#[derive(Debug)]
struct State {
    datagrams: Queue,
    stream: Queue,
    isolated: Queue,
    /// This end is closing: queued packets may still be sent, none are added.
    farewell: Option<Farewell>,
    /// Why the link is over; the first cause counts.
    end: Option<LinkClosed>,
    /// Nothing is in flight any more.
    finished: bool,
    /// How far the writing task is, of a link whose senders may [write](Outbox::begin_write) themselves.
    writing: Writing,
}

/// Who writes to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    /// The writing task.
    Task,
    /// Nobody, and all is written.
    Idle,
    /// A sender, at this moment.
    Sender,
    /// A sender has written, and the connection took only a part: the writing task goes on.
    Unflushed,
}

/// What the writing task does next.
#[derive(Debug)]
pub(crate) enum Work {
    /// Writes this packet.
    Packet(Bytes),
    /// Writes what a sender began.
    Flush,
}

#[derive(Debug)]
struct Queue {
    packets: VecDeque<Bytes>,
    bytes: usize,
    bytes_max: usize,
}

impl Outbox {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Outbox {
            state: Mutex::new(State {
                datagrams: Queue::new(capacity.datagram_bytes),
                stream: Queue::new(capacity.stream_bytes),
                isolated: Queue::new(capacity.isolated_bytes),
                farewell: None,
                end: None,
                finished: false,
                writing: Writing::Task,
            }),
            work: Notify::new(),
            room: Notify::new(),
            over: Notify::new(),
            packets_sent: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            packets_received: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            carries: AtomicU64::new(0),
        }
    }

    /// Sets the bytes per second that the path carries.
    pub(crate) fn set_carries(&self, bytes_per_second: Option<u64>) {
        self.carries.store(bytes_per_second.unwrap_or(0), Ordering::Relaxed);
    }

    /// The bytes per second that the path carries, if known here.
    pub(crate) fn carries(&self) -> Option<u64> {
        Some(self.carries.load(Ordering::Relaxed)).filter(|carries| *carries > 0)
    }

    /// Queues a packet.
    pub(crate) fn push(&self, packet: Packet) -> Result<(), SendError> {
        let mut state = self.lock();
        if let Some(end) = &state.end {
            return Err(SendError::Closed(end.clone()));
        }
        let queue = state.queue(packet.carrier);
        if queue.is_full() {
            return Err(SendError::NotWritable(packet));
        }
        queue.push(packet.bytes);
        drop(state);
        self.work.notify_waiters();
        Ok(())
    }

    /// Whether the next packet on this carrier would be accepted. A link that is over returns true, so that
    /// sending reports the reason.
    pub(crate) fn is_writable(&self, carrier: Carrier) -> bool {
        let mut state = self.lock();
        state.end.is_some() || !state.queue(carrier).is_full()
    }

    /// Waits for [`is_writable`](Self::is_writable).
    pub(crate) async fn writable(&self, carrier: Carrier) {
        self.until(&self.room, |state| {
            (state.end.is_some() || !state.queue(carrier).is_full()).then_some(())
        })
        .await;
    }

    /// Whether the caller may write a stream packet to the connection itself: the link is open, and nothing is queued
    /// or being written. If so, [`end_write`](Self::end_write) must follow.
    pub(crate) fn begin_write(&self) -> bool {
        let mut state = self.lock();
        let is_free =
            state.writing == Writing::Idle && state.end.is_none() && state.stream.packets.is_empty();
        if is_free {
            state.writing = Writing::Sender;
        }
        is_free
    }

    /// Ends a write; `is_flushed` says whether the connection took everything.
    pub(crate) fn end_write(&self, is_flushed: bool) {
        let mut state = self.lock();
        state.writing = if is_flushed { Writing::Idle } else { Writing::Unflushed };
        // Another thread may have queued a packet or closed the link meanwhile.
        let has_work = !is_flushed || !state.stream.packets.is_empty() || state.end.is_some();
        drop(state);
        if has_work {
            self.work.notify_waiters();
        }
    }

    /// Waits for the next work on stream packets, beside which senders may [write](Self::begin_write) themselves.
    /// `None` once the link is closing or over and all is written.
    pub(crate) async fn work(&self) -> Option<Work> {
        let next = self.until(&self.work, |state| {
            if state.writing == Writing::Sender {
                return None;
            }
            let work = match core::mem::replace(&mut state.writing, Writing::Task) {
                Writing::Unflushed => Some(Work::Flush),
                _ => state.stream.pop().map(Work::Packet),
            };
            if work.is_none() && state.end.is_none() {
                state.writing = Writing::Idle;
                return None;
            }
            Some(work)
        });
        let next = next.await;
        self.room.notify_waiters();
        next
    }

    /// Takes the next packet; `None` once the link is closing or over and the queue is empty.
    pub(crate) async fn pop(&self, carrier: Carrier) -> Option<Bytes> {
        let next = self.until(&self.work, |state| match state.queue(carrier).pop() {
            Some(bytes) => Some(Some(bytes)),
            None => state.end.is_some().then_some(None),
        });
        let next = next.await;
        self.room.notify_waiters();
        next
    }

    /// Takes the next packet, if there is one.
    pub(crate) fn try_pop(&self, carrier: Carrier) -> Option<Bytes> {
        let bytes = self.lock().queue(carrier).pop();
        self.room.notify_waiters();
        bytes
    }

    /// Whether this carrier's queue is empty.
    pub(crate) fn is_empty(&self, carrier: Carrier) -> bool {
        self.lock().queue(carrier).packets.is_empty()
    }

    /// Closes this end. Ignored if the link is over.
    pub(crate) fn close(&self, code: CloseCode, reason: &str) {
        let reason = clip_reason(reason).to_owned();
        self.end_with(LinkClosed::Local { code, reason: reason.clone() }, Some(Farewell { code, reason }));
    }

    /// Ends the link because the peer violated the protocol; the peer is informed.
    pub(crate) fn violate(&self, violation: Violation) {
        let farewell =
            Farewell { code: violation.code(), reason: clip_reason(&violation.to_string()).to_owned() };
        self.end_with(LinkClosed::NotParlor(violation), Some(farewell));
    }

    /// Ends the link for a reason other than a local close.
    pub(crate) fn lose(&self, end: LinkClosed) {
        self.end_with(end, None);
    }

    /// The code and reason for the peer, if this end closes.
    pub(crate) fn farewell(&self) -> Option<Farewell> {
        self.lock().farewell.clone()
    }

    /// Why the link is over, if it is.
    pub(crate) fn end(&self) -> Option<LinkClosed> {
        self.lock().end.clone()
    }

    /// Waits until this end closes.
    pub(crate) async fn closing(&self) -> LinkClosed {
        self.until(&self.over, |state| state.farewell.as_ref().and(state.end.clone())).await
    }

    /// Waits until the link is over for a reason other than a local close.
    pub(crate) async fn lost(&self) -> LinkClosed {
        self.until(&self.over, |state| if state.farewell.is_none() { state.end.clone() } else { None }).await
    }

    /// Waits until the link is over for any reason.
    pub(crate) async fn ended(&self) {
        self.until(&self.over, |state| state.end.is_some().then_some(())).await;
    }

    /// Marks the link as finished: nothing is in flight, and queued packets are not sent.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        for carrier in [Carrier::Datagram, Carrier::Stream, Carrier::Isolated] {
            state.queue(carrier).clear();
        }
        drop(state);
        self.over.notify_waiters();
    }

    /// Waits for [`finish`](Self::finish).
    pub(crate) async fn finished(&self) {
        self.until(&self.over, |state| state.finished.then_some(())).await;
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.packets_sent.fetch_add(1, Ordering::Relaxed);
        self.bytes_sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.packets_received.fetch_add(1, Ordering::Relaxed);
        self.bytes_received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> LinkStats {
        LinkStats {
            packets_sent: self.packets_sent.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            packets_received: self.packets_received.load(Ordering::Relaxed),
            bytes_received: self.bytes_received.load(Ordering::Relaxed),
        }
    }

    fn end_with(&self, end: LinkClosed, farewell: Option<Farewell>) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        state.end = Some(end);
        state.farewell = farewell;
        drop(state);
        self.work.notify_waiters();
        self.room.notify_waiters();
        self.over.notify_waiters();
    }

    /// Waits until `check` returns a value; it is called again after each notification.
    async fn until<T>(&self, notify: &Notify, mut check: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut notified = pin!(notify.notified());
            // Notifications count from here on, so that none is missed between the check and the wait.
            notified.as_mut().enable();
            let answer = check(&mut self.lock());
            if let Some(answer) = answer {
                return answer;
            }
            notified.await;
        }
    }

    /// A panic under the lock leaves consistent state: every method changes plain values only.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn queue(&mut self, carrier: Carrier) -> &mut Queue {
        match carrier {
            Carrier::Datagram => &mut self.datagrams,
            Carrier::Stream => &mut self.stream,
            Carrier::Isolated => &mut self.isolated,
        }
    }
}

impl Queue {
    fn new(bytes_max: usize) -> Self {
        Queue { packets: VecDeque::new(), bytes: 0, bytes_max }
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    fn push(&mut self, packet: Bytes) {
        self.bytes += packet.len() + PACKET_OVERHEAD_BYTES;
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.len() + PACKET_OVERHEAD_BYTES;
        Some(packet)
    }

    fn clear(&mut self) {
        self.packets = VecDeque::new();
        self.bytes = 0;
    }
}
