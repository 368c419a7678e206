//! The task of a bus: connects, sends what waits, and hands on what arrives.

use super::envelope::{Key, Order, PAYLOAD_MAX, Place, Sender};
use super::{ANSWER_TIME, BusError, Carrier, Hint, Received, Session, State};
use core::sync::atomic::Ordering;
use core::time::Duration;
use parlor_server::embed;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

/// Least time from one batch to the next: each is a commit of the database that carries it.
const BATCH_EVERY: Duration = Duration::from_millis(2);
/// Maximum number of hints of a batch.
const BATCH_MAX: usize = 64;
/// Interval of checks of the connection.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// Wait before the second attempt to connect, and the longest wait.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The store's clock, in milliseconds since 1970.
pub(super) type NowMs = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What the task needs beside its carrier and its queue.
pub(super) struct End {
    pub(super) key: Key,
    pub(super) sender: Sender,
    pub(super) now_ms: NowMs,
    pub(super) hints: mpsc::Sender<Hint>,
    pub(super) missing: watch::Sender<u64>,
    pub(super) state: Arc<State>,
}

type Queue = mpsc::Receiver<(u64, Hint)>;

/// Runs until the bus is dropped.
pub(super) async fn run(carrier: Box<dyn Carrier>, mut queue: Queue, end: End) {
    let mut order = Order::default();
    let (mut backoff, mut is_reported) = (BACKOFF_MIN, false);
    loop {
        let Some(opened) = while_away(&end, &mut queue, timeout(ANSWER_TIME, carrier.open())).await else {
            return;
        };
        let opened = opened.unwrap_or_else(|_| Err(BusError::Away("it does not answer".to_owned())));
        let error = match opened {
            Ok(session) => {
                if is_reported {
                    tracing::info!("the bus is back");
                }
                (backoff, is_reported) = (BACKOFF_MIN, false);
                end.state.is_up.store(true, Ordering::Relaxed);
                // Whatever was told before, it was not heard here.
                end.missed(0);
                let over = talk(session, carrier.payload_max(), &mut queue, &end, &mut order).await;
                end.state.is_up.store(false, Ordering::Relaxed);
                match over {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        if !is_reported {
            is_reported = true;
            tracing::warn!(%error, "nodes hear of each other by their sweeps alone until the bus is back");
        }
        // Nodes that lost the same carrier do not come back at the same moment.
        let random = embed::random::<1>().map_or(0, |[byte]| u32::from(byte));
        let wait = backoff / 2 + backoff * random / 512;
        if while_away(&end, &mut queue, sleep(wait)).await.is_none() {
            return;
        }
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Waits without a connection. What would be sent is dropped: later it would say what no longer is. `None` when the bus
/// was dropped.
async fn while_away<T>(end: &End, queue: &mut Queue, waiting: impl Future<Output = T>) -> Option<T> {
    let mut waiting = core::pin::pin!(waiting);
    loop {
        tokio::select! {
            done = &mut waiting => return Some(done),
            dropped = queue.recv() => {
                dropped?;
                end.state.untold.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Sends and receives until the connection fails, or until the bus is dropped.
async fn talk(
    mut session: Box<dyn Session>,
    payload_max: usize,
    queue: &mut Queue,
    end: &End,
    order: &mut Order,
) -> Result<(), BusError> {
    let mut checks = interval(CHECK_EVERY);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut next_batch = Instant::now();
    loop {
        tokio::select! {
            first = queue.recv() => {
                let Some(first) = first else { return Ok(()) };
                sleep_until(next_batch).await;
                let batch = end.batch(first, queue, payload_max);
                let sent = batch.len() as u64;
                within(session.send(&batch)).await.inspect_err(|_| end.untold(sent))?;
                end.state.told.fetch_add(sent, Ordering::Relaxed);
                next_batch = Instant::now() + BATCH_EVERY;
            }
            received = session.receive() => match received? {
                Received::Payload(payload) => end.heard(&payload, order),
                Received::Missed => end.missed(0),
            },
            _ = checks.tick() => within(session.check()).await?,
        }
    }
}

async fn within<T>(answer: impl Future<Output = Result<T, BusError>>) -> Result<T, BusError> {
    timeout(ANSWER_TIME, answer)
        .await
        .unwrap_or_else(|_| Err(BusError::Away("it does not answer in time".to_owned())))
}

impl End {
    /// The payloads of what waits.
    fn batch(&self, first: (u64, Hint), queue: &mut Queue, payload_max: usize) -> Vec<String> {
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some((number, hint)) = next {
            match self.payload(number, &hint, payload_max) {
                Some(payload) => batch.push(payload),
                None => self.untold(1),
            }
            next = if batch.len() < BATCH_MAX { queue.try_recv().ok() } else { None };
        }
        batch
    }

    /// The payload of a hint; of a large one only that there is something to read.
    fn payload(&self, number: u64, hint: &Hint, payload_max: usize) -> Option<String> {
        let stamp = (number, (self.now_ms)());
        let fits = |payload: &String| payload.len() <= payload_max.min(PAYLOAD_MAX);
        let whole = self.key.seal(&self.sender, stamp, hint).filter(fits);
        whole.or_else(|| self.key.seal(&self.sender, stamp, &hint.shortened()?).filter(fits))
    }

    /// Hands on a hint, unless it is a stranger's, this node's own, a repetition, or old.
    fn heard(&self, payload: &[u8], order: &mut Order) {
        let Some(opened) = self.key.open(payload) else {
            self.state.ignored.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if opened.is_of(&self.sender) {
            return;
        }
        match order.note(&opened) {
            Place::Next => {}
            Place::AfterGap(lost) => self.missed(lost),
            Place::Again => return,
        }
        if opened.is_old((self.now_ms)()) {
            self.state.ignored.fetch_add(1, Ordering::Relaxed);
            return self.missed(0);
        }
        self.state.heard.fetch_add(1, Ordering::Relaxed);
        if let Some(hint) = opened.hint
            && self.hints.try_send(hint).is_err()
        {
            self.missed(1);
        }
    }

    /// Makes sweeps due.
    fn missed(&self, lost: u64) {
        self.state.unheard.fetch_add(lost, Ordering::Relaxed);
        self.missing.send_modify(|count| *count += 1);
    }

    fn untold(&self, hints: u64) {
        self.state.untold.fetch_add(hints, Ordering::Relaxed);
    }
}
