//! The lease of this node: drives the machine of its tenure with the store and the clock.
//!
//! It has a thread and connections of its own, so that neither a busy service nor a commit that stalls lets the node
//! lapse. The thread turns at least each [`TURN`], answers of the store come between.

use super::nodes::Nodes;
use super::standing::StandingView;
use super::uptime::{cpu_time, uptime};
use crate::store::{
    Look, NodeFacts, NodeFault, NodeLoad, NodeLock, NodeName, NodeSession, NodeState, OpenError, Renewed,
    Store,
};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use futures_util::future::BoxFuture;
use parlor_hub::cluster::Timing;
use parlor_hub::cluster::deaths::{Deaths, Looked};
use parlor_hub::cluster::tenure::{Decision, Heartbeat, Incarnation, Request, Standing, Tenure};
use parlor_server::embed::lock;
use std::sync::{Arc, Mutex};
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

/// Maximum time between two turns: a fraction of the time after which a node that stood still has lapsed.
const TURN: Duration = Duration::from_millis(40);
/// Interval of looks at the other nodes.
const LOOK: Duration = Duration::from_millis(250);
/// Time limit of the goodbye at the node's end.
const LEAVE_TIME: Duration = Duration::from_secs(2);

/// Compares the rooms here with the store's, for the node under this incarnation. Returns whether it is done.
pub(crate) type Reconcile = Box<dyn Fn(u64) -> BoxFuture<'static, bool> + Send + Sync>;

/// Is told of an answered heartbeat.
pub(super) type Hear = Box<dyn Fn(Heard) + Send + Sync>;

/// State that the lease shares with the rest of the node.
pub(super) struct Shared {
    pub(super) standing: StandingView,
    pub(super) load: Load,
    pub(super) reconcile: Mutex<Option<Arc<Reconcile>>>,
    /// Is told each answered heartbeat: when it was sent and when it was answered, by [`uptime`], and the store's time.
    pub(super) heard: Mutex<Option<Hear>>,
}

/// An answered heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// How long the answer took.
    pub(crate) took: Duration,
    /// The store's time in between, in microseconds since 1970.
    pub(crate) store_us: u64,
}

/// How busy this node is.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) rooms: AtomicU64,
    pub(super) members: AtomicU64,
}

/// The thread of the lease. The node leaves when it is [stopped](Self::stop).
pub(super) struct Lease {
    stop: watch::Sender<bool>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Lease {
    /// Enters the node and holds its lease. Returns once the nodes are known.
    ///
    /// # Errors
    /// [`OpenError`] says what to do.
    pub(super) async fn start(
        store: Store,
        id: NodeName,
        facts: NodeFacts,
        shared: Arc<Shared>,
        nodes: watch::Sender<Arc<Nodes>>,
    ) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
        let (stop, stopped) = watch::channel(false);
        let (entered, has_entered) = oneshot::channel();
        let work = move || {
            let driver = Driver::new(store, id, facts, shared, nodes, entered);
            runtime.block_on(LocalSet::new().run_until(driver.run(stopped)));
        };
        let thread = thread::Builder::new().name("node-lease".to_owned()).spawn(work);
        let lease = Lease { stop, thread: Mutex::new(Some(thread.map_err(OpenError::Thread)?)) };
        let ended = || OpenError::Database("the thread of the lease ended".to_owned());
        has_entered.await.map_err(|_| ended())??;
        Ok(lease)
    }

    /// Says that the node has ended, and ends the thread. Blocks for a bounded time.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(thread) = lock(&self.thread).take() {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Without waiting: the drop may happen on a thread of a runtime.
        self.stop.send_replace(true);
    }
}

/// What happened between two turns.
enum Event {
    LockTaken(Result<NodeLock, OpenError>),
    Joined(Result<u64, NodeFault>),
    Heartbeat(Result<Option<Renewed>, NodeFault>, Duration),
    Reconciled(bool),
    Looked(Result<Option<Look>, NodeFault>, Duration),
    Declared,
}

struct Driver {
    store: Store,
    id: NodeName,
    facts: NodeFacts,
    shared: Arc<Shared>,
    nodes: watch::Sender<Arc<Nodes>>,
    timing: Timing,
    tenure: Tenure,
    deaths: Deaths<NodeName>,
    lock: Option<NodeLock>,
    sessions: Arc<Sessions>,
    tasks: JoinSet<Event>,
    /// Begin of the last turn.
    turned: Duration,
    timeline: Option<Timeline>,
    /// Since when heartbeats were answered one after the other, and when the last one was.
    answered: Option<(Duration, Duration)>,
    /// Whether the last request failed, since a heartbeat was answered.
    is_failing: bool,
    until_look: Duration,
    is_looking: bool,
    looked: Duration,
    cpu: Cpu,
    /// Is told that the node has entered and the nodes are known.
    entered: Option<oneshot::Sender<Result<(), OpenError>>>,
}

/// The timeline of the database's log, and since when it is known.
struct Timeline {
    name: String,
    since: Duration,
    is_first: bool,
}

impl Driver {
    fn new(
        store: Store,
        id: NodeName,
        facts: NodeFacts,
        shared: Arc<Shared>,
        nodes: watch::Sender<Arc<Nodes>>,
        entered: oneshot::Sender<Result<(), OpenError>>,
    ) -> Self {
        let timing = Timing::default();
        Driver {
            sessions: Arc::new(Sessions { store: store.clone(), current: tokio::sync::Mutex::default() }),
            store,
            id,
            facts,
            shared,
            nodes,
            timing,
            tenure: Tenure::new(timing),
            deaths: Deaths::new(timing),
            lock: None,
            tasks: JoinSet::new(),
            turned: uptime(),
            timeline: None,
            answered: None,
            is_failing: false,
            until_look: Duration::ZERO,
            is_looking: false,
            looked: Duration::ZERO,
            cpu: Cpu::default(),
            entered: Some(entered),
        }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let event = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return self.leave().await,
                () = lost(self.lock.as_mut()) => None,
                Some(event) = self.tasks.join_next() => event.ok(),
                () = tokio::time::sleep(TURN) => None,
            };
            self.turn();
            // Not only in the branch above: after a stop another one may be ready, too.
            if self.lock.as_ref().is_some_and(NodeLock::is_lost) {
                tracing::warn!(node = %self.id, "the node's lock is lost: it decides nothing until it has it again");
                self.lock = None;
                self.tenure.handle_lock_lost();
            }
            if let Some(event) = event
                && let Err(error) = self.handle(event)
            {
                // Whoever starts the node reports it.
                let _ = self.entered.take().map(|entered| entered.send(Err(error)));
                return;
            }
            while let Some(request) = self.tenure.poll_request() {
                self.send(request);
            }
            if self.until_look.is_zero() && !self.is_looking && self.tenure.incarnation().is_some() {
                self.look();
            }
            self.shared.standing.tell(&self.tenure, self.turned);
        }
    }

    /// Begins a turn, and says at once what no longer holds.
    fn turn(&mut self) {
        let now = uptime();
        let elapsed = now.saturating_sub(self.turned);
        self.turned = now;
        let before = self.tenure.standing();
        if matches!(before, Standing::Lapsed | Standing::Ousted) {
            self.shared.standing.lapsed(elapsed);
        }
        self.until_look = self.until_look.saturating_sub(elapsed);
        self.tenure.turn(elapsed);
        self.shared.standing.tell(&self.tenure, now);
        let after = self.tenure.standing();
        if before.may(Decision::Join) && !after.may(Decision::Join) {
            tracing::warn!(
                node = %self.id, from = before.as_str(), to = after.as_str(), stood_still_ms = elapsed.as_millis(),
                "the node's lease is over or in doubt: its rooms go on, and nobody joins or opens one"
            );
        }
    }

    /// Handles an event. An error ends the start of the node.
    fn handle(&mut self, event: Event) -> Result<(), OpenError> {
        let before = self.tenure.standing();
        match event {
            Event::LockTaken(Ok(taken)) => {
                self.lock = Some(taken);
                self.tenure.handle_lock_taken();
            }
            Event::LockTaken(Err(error)) => {
                self.failed(Request::TakeLock, &error);
                if self.entered.is_some() {
                    return Err(error);
                }
            }
            Event::Joined(Ok(incarnation)) => {
                tracing::info!(node = %self.id, incarnation, "the node has joined its cluster");
                self.tenure.handle_joined(Incarnation(incarnation));
            }
            Event::Joined(Err(error)) => {
                self.failed(Request::Join, &error);
                if self.entered.is_some() {
                    return Err(OpenError::Database(error.to_string()));
                }
            }
            Event::Heartbeat(Ok(Some(renewed)), took) => {
                self.is_failing = false;
                let quarantine = self.quarantine(&renewed);
                if let Some(heard) = &*lock(&self.shared.heard) {
                    heard(Heard { took, store_us: renewed.now_us });
                }
                self.tenure.handle_heartbeat(Heartbeat::Renewed { drains: renewed.drains, quarantine });
            }
            Event::Heartbeat(Ok(None), _) => {
                tracing::warn!(node = %self.id, "another node has declared this one gone: it joins again");
                self.tenure.handle_heartbeat(Heartbeat::Gone);
            }
            Event::Heartbeat(Err(error), _) => self.failed(Request::Heartbeat, &error),
            Event::Reconciled(true) => self.tenure.handle_reconciled(),
            Event::Reconciled(false) => self.tenure.handle_failed(Request::Reconcile),
            Event::Looked(look, sent) => self.looked(look, sent),
            Event::Declared => {}
        }
        let after = self.tenure.standing();
        if before != after && after == Standing::Held && before != Standing::Joining {
            tracing::info!(node = %self.id, "the node has its lease again");
        }
        Ok(())
    }

    fn failed(&mut self, request: Request, error: &dyn core::fmt::Display) {
        // Once for an outage: a request is repeated several times a second.
        if core::mem::replace(&mut self.is_failing, true) {
            tracing::debug!(node = %self.id, ?request, %error, "a request of the node is repeated");
        } else {
            tracing::warn!(node = %self.id, ?request, %error, "the store does not answer the node: it is asked again until it does");
        }
        self.tenure.handle_failed(request);
    }

    fn send(&mut self, request: Request) {
        let sessions = Arc::clone(&self.sessions);
        let (id, lease, death) = (self.id.clone(), self.timing.lease, self.timing.death);
        let incarnation = self.tenure.incarnation().map_or(0, |Incarnation(incarnation)| incarnation);
        match request {
            Request::TakeLock => {
                let store = self.store.clone();
                self.tasks.spawn_local(async move {
                    let session = match sessions.get().await {
                        Ok(session) => session,
                        Err(error) => return Event::LockTaken(Err(error)),
                    };
                    Event::LockTaken(store.lock_node(&id, &session).await)
                });
            }
            Request::Join => {
                let facts = self.facts.clone();
                self.tasks.spawn_local(async move {
                    let joining = async |session: &NodeSession| {
                        // The lock has just become free. While its lease runs, its last holder may not have noticed.
                        let look = session.look().await?;
                        let may_run = |look: Look| {
                            let own = look.nodes.into_iter().find(|row| row.id == id);
                            own.is_some_and(|row| {
                                row.state != NodeState::Gone && row.lease_until_us > look.now_us
                            })
                        };
                        if look.is_some_and(may_run) {
                            tokio::time::sleep(death).await;
                        }
                        session.enter(&id, &facts, lease).await
                    };
                    Event::Joined(sessions.with(joining).await)
                });
            }
            Request::Heartbeat => {
                let load = self.load();
                self.tasks.spawn_local(async move {
                    let sent = uptime();
                    let beating =
                        async |session: &NodeSession| session.heartbeat(&id, incarnation, load, lease).await;
                    let found = sessions.with(beating).await;
                    Event::Heartbeat(found, uptime().saturating_sub(sent))
                });
            }
            Request::Reconcile => {
                let reconcile = lock(&self.shared.reconcile).clone();
                self.tasks.spawn_local(async move {
                    Event::Reconciled(match reconcile {
                        Some(reconcile) => reconcile(incarnation).await,
                        // There are no rooms yet.
                        None => true,
                    })
                });
            }
        }
    }

    /// How long the store's locks say nothing: all are free when it has restarted, or a replica has taken over.
    fn quarantine(&mut self, renewed: &Renewed) -> Duration {
        let now = uptime();
        let is_same = self.timeline.as_ref().is_some_and(|timeline| timeline.name == renewed.timeline);
        if !is_same {
            let is_first = self.timeline.is_none();
            self.timeline = Some(Timeline { name: renewed.timeline.clone(), since: now, is_first });
            self.deaths.forget();
        }
        let last = self.answered.map(|(_, last)| last);
        let goes_on = last.is_some_and(|last| now.saturating_sub(last) < self.timing.heartbeat * 3);
        let since = self.answered.filter(|_| goes_on).map_or(now, |(since, _)| since);
        self.answered = Some((since, now));
        let since_start = Duration::from_micros(renewed.now_us.saturating_sub(renewed.started_us));
        let since_change = self.timeline.as_ref().filter(|timeline| !timeline.is_first);
        let since_change = since_change.map_or(Duration::MAX, |timeline| now.saturating_sub(timeline.since));
        self.timing.lease.saturating_sub(since_start.min(since_change))
    }

    fn look(&mut self) {
        self.until_look = LOOK;
        self.is_looking = true;
        let (sessions, sent) = (Arc::clone(&self.sessions), uptime());
        self.tasks.spawn_local(async move {
            Event::Looked(sessions.with(async |session: &NodeSession| session.look().await).await, sent)
        });
    }

    fn looked(&mut self, look: Result<Option<Look>, NodeFault>, sent: Duration) {
        self.is_looking = false;
        let look = match look {
            Ok(Some(look)) => look,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(node = %self.id, %error, "the other nodes could not be looked at");
                self.deaths.forget();
                return;
            }
        };
        let elapsed = sent.saturating_sub(self.looked);
        self.looked = uptime();
        // A node that was cut off, with the others or alone, gives them the time to come back.
        let answered = self.answered.map_or(Duration::ZERO, |(since, last)| last.saturating_sub(since));
        if self.tenure.may_judge() && answered >= self.timing.lease {
            let others = look.nodes.iter().filter(|row| row.state != NodeState::Gone && row.id != self.id);
            let looked = others.map(|row| Looked {
                node: row.id.clone(),
                incarnation: Incarnation(row.incarnation),
                has_lock: row.has_lock,
                is_over: row.lease_until_us < look.now_us,
            });
            for (node, incarnation) in self.deaths.look(elapsed, looked) {
                self.declare_gone(node, incarnation);
            }
        } else {
            self.deaths.forget();
        }
        self.nodes.send_replace(Arc::new(Nodes::of(look.nodes, look.now_us)));
        let _ = self.entered.take().map(|entered| entered.send(Ok(())));
    }

    fn declare_gone(&mut self, node: NodeName, Incarnation(incarnation): Incarnation) {
        let sessions = Arc::clone(&self.sessions);
        self.tasks.spawn_local(async move {
            let declaring = async |session: &NodeSession| session.declare_gone(&node, incarnation).await;
            match sessions.with(declaring).await {
                Ok(true) => {
                    tracing::warn!(%node, incarnation, "the node is gone: it has neither lock nor lease")
                }
                // Another node was faster, or it is back.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%node, %error, "a node that is gone could not be declared gone yet")
                }
            }
            Event::Declared
        });
    }

    fn load(&mut self) -> NodeLoad {
        let Load { rooms, members } = &self.shared.load;
        NodeLoad {
            rooms: rooms.load(Ordering::Relaxed),
            members: members.load(Ordering::Relaxed),
            permille: self.cpu.permille(),
        }
    }

    async fn leave(mut self) {
        let Some(Incarnation(incarnation)) = self.tenure.incarnation() else { return };
        self.tasks.abort_all();
        let leaving =
            self.sessions.with(async |session: &NodeSession| session.leave(&self.id, incarnation).await);
        let left = tokio::time::timeout(LEAVE_TIME, leaving).await;
        if !matches!(left, Ok(Ok(()))) {
            tracing::warn!(node = %self.id, "the store did not hear that this node ends: another node notices it");
        }
    }
}

/// Waits until the lock is lost. Without one it waits forever.
async fn lost(lock: Option<&mut NodeLock>) {
    match lock {
        Some(lock) => lock.lost().await,
        None => core::future::pending().await,
    }
}

/// The session for a node's statements, which is replaced after a fault.
struct Sessions {
    store: Store,
    current: tokio::sync::Mutex<Option<Arc<NodeSession>>>,
}

impl Sessions {
    async fn get(&self) -> Result<Arc<NodeSession>, OpenError> {
        let mut current = self.current.lock().await;
        if let Some(session) = current.as_ref().filter(|session| !session.is_lost()) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.store.node_session().await?);
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Runs a statement. After a fault the next one gets another session.
    async fn with<T>(
        &self,
        statement: impl AsyncFnOnce(&NodeSession) -> Result<T, NodeFault>,
    ) -> Result<T, NodeFault> {
        let session = self.get().await.map_err(|error| NodeFault(error.to_string()))?;
        let done = statement(&session).await;
        if done.is_err() {
            let mut current = self.current.lock().await;
            if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &session)) {
                *current = None;
            }
        }
        done
    }
}

/// Measures how busy the processor is with this process.
#[derive(Default)]
struct Cpu {
    /// When it was measured last, and the processor's time then.
    last: Option<(Duration, Duration)>,
}

impl Cpu {
    /// Thousandths of the cores' time since the last call.
    fn permille(&mut self) -> u64 {
        let (now, used) = (uptime(), cpu_time());
        let Some((then, before)) = self.last.replace((now, used)) else { return 0 };
        let cores = thread::available_parallelism().map_or(1, core::num::NonZero::get) as u128;
        let passed = now.saturating_sub(then).as_micros().saturating_mul(cores).max(1);
        let worked = used.saturating_sub(before).as_micros().saturating_mul(1_000);
        u64::try_from(worked / passed).unwrap_or(1_000).min(1_000)
    }
}
