//! A node's tenure: its lease, and what it may decide.
//!
//! A node has a row in the store, an incarnation (which start of it this is) and a lock on a connection of its own,
//! which the store lets go of when the process dies. Heartbeats renew its lease. While the lease runs the node
//! *decides*: it admits members, opens rooms, names hosts, moves rooms. Without the lease it relays and decides nothing.
//!
//! The machine knows no time of day and no instants, only how much time passes: [`Tenure::turn`] begins each turn of
//! its driver. So two tenures that will behave alike are equal, which lets the model checker visit all of them.

use super::timing::Timing;
use core::time::Duration;

/// Which start of a node something is of. One more at each start, and when another node declares the node gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// What a node may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It has not decided anything yet.
    Joining,
    /// It decides.
    Held,
    /// It decides, and takes no more rooms.
    Draining,
    /// Its lease is over or in doubt. It relays.
    Lapsed,
    /// Another node declared it gone. It relays, and joins again.
    Ousted,
}

/// What needs a lease. Relaying needs none, nor does ending a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// Admit a member.
    Join,
    /// Open a room.
    Open,
    /// Name another host.
    NameHost,
    /// Offer a room to another node.
    Offer,
    /// Take a room: one that is offered, or one whose node is gone.
    Take,
}

impl Standing {
    /// All of them.
    pub const ALL: [Standing; 5] =
        [Standing::Joining, Standing::Held, Standing::Draining, Standing::Lapsed, Standing::Ousted];

    /// Whether a node of this standing may decide that.
    pub const fn may(self, decision: Decision) -> bool {
        match self {
            Standing::Held => true,
            Standing::Draining => !matches!(decision, Decision::Open | Decision::Take),
            Standing::Joining | Standing::Lapsed | Standing::Ousted => false,
        }
    }

    /// The name in JSON, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Joining => "joining",
            Standing::Held => "held",
            Standing::Draining => "draining",
            Standing::Lapsed => "lapsed",
            Standing::Ousted => "ousted",
        }
    }
}

/// What the driver asks the store. It answers each by one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Take the node's lock on a connection of its own: [`Tenure::handle_lock_taken`].
    TakeLock,
    /// Enter the node under its next incarnation: [`Tenure::handle_joined`].
    Join,
    /// Renew the lease of the incarnation: [`Tenure::handle_heartbeat`].
    Heartbeat,
    /// Compare the rooms here with the store's, and give up those that another node owns:
    /// [`Tenure::handle_reconciled`], once that is done.
    Reconcile,
}

/// What a heartbeat found in the node's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heartbeat {
    /// The row has the node's incarnation, and its lease is renewed.
    Renewed {
        /// Whether the node is ordered to take no more rooms.
        drains: bool,
        /// How long the store's locks say nothing yet, since it was restarted or failed over.
        quarantine: Duration,
    },
    /// The row is gone or has another incarnation.
    Gone,
}

/// A heartbeat that was sent and not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asked {
    /// How long ago it was sent, at most the lease.
    age: Duration,
    /// Whether nothing happened since that puts its answer in doubt.
    counts: bool,
}

/// A node's lease as the node sees it. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tenure {
    timing: Timing,
    /// `None` until it has joined.
    incarnation: Option<Incarnation>,
    has_lock: bool,
    drains: bool,
    was_ousted: bool,
    /// Whether it decided under this incarnation.
    has_held: bool,
    /// What is left of the lease.
    lease: Duration,
    /// What is left of the quarantine.
    quarantine: Duration,
    /// What is left of the time in which other nodes see that it has its lock again.
    settling: Duration,
    /// Whether its rooms were compared with the store's since it lapsed.
    is_reconciled: bool,
    /// Whether it attempts to get the lock or to join.
    attempts: bool,
    heartbeat: Option<Asked>,
    /// A comparison that was begun, and whether nothing happened since that puts it in doubt.
    reconcile: Option<bool>,
    until_attempt: Duration,
    until_heartbeat: Duration,
    until_reconcile: Duration,
}

impl Tenure {
    /// Returns the tenure of a node that starts.
    pub fn new(timing: Timing) -> Self {
        Tenure {
            timing,
            incarnation: None,
            has_lock: false,
            drains: false,
            was_ousted: false,
            has_held: false,
            lease: Duration::ZERO,
            quarantine: Duration::ZERO,
            settling: Duration::ZERO,
            is_reconciled: false,
            attempts: false,
            heartbeat: None,
            reconcile: None,
            until_attempt: Duration::ZERO,
            until_heartbeat: Duration::ZERO,
            until_reconcile: Duration::ZERO,
        }
    }

    /// Begins a turn, `elapsed` after the last one began. The clock must go on while the machine sleeps. Turns are
    /// far more frequent than [`Timing::stall`]: after a longer pause the node has lapsed.
    pub fn turn(&mut self, elapsed: Duration) {
        for left in [
            &mut self.lease,
            &mut self.quarantine,
            &mut self.settling,
            &mut self.until_attempt,
            &mut self.until_heartbeat,
            &mut self.until_reconcile,
        ] {
            *left = left.saturating_sub(elapsed);
        }
        if let Some(asked) = &mut self.heartbeat {
            asked.age = asked.age.saturating_add(elapsed).min(self.timing.lease);
        }
        if elapsed > self.timing.stall {
            self.interrupt();
        }
        if self.lease.is_zero() {
            self.forget_reconciling();
        }
    }

    /// Handles the lock: the store holds it for this process's connection.
    pub fn handle_lock_taken(&mut self) {
        self.attempts = false;
        self.has_lock = true;
        // Another node may have missed the lock once, and must not take the next loss of it for the same one.
        self.settling = if self.incarnation.is_some() { self.timing.looks_apart() } else { Duration::ZERO };
        self.until_attempt = Duration::ZERO;
    }

    /// Handles the end of the connection that has the lock.
    pub fn handle_lock_lost(&mut self) {
        self.has_lock = false;
        self.until_attempt = Duration::ZERO;
        self.interrupt();
    }

    /// Handles the node's entry under an incarnation.
    pub fn handle_joined(&mut self, incarnation: Incarnation) {
        self.attempts = false;
        self.incarnation = Some(incarnation);
        (self.was_ousted, self.has_held) = (false, false);
        self.interrupt();
        self.until_heartbeat = Duration::ZERO;
    }

    /// Handles what a heartbeat found. The driver reads the lock's connection first: a node that slept may have lost
    /// its lock meanwhile.
    pub fn handle_heartbeat(&mut self, found: Heartbeat) {
        let Some(asked) = self.heartbeat.take() else { return };
        match found {
            Heartbeat::Renewed { drains, quarantine } => {
                (self.drains, self.quarantine) = (drains, quarantine);
                if asked.counts && self.has_lock {
                    let left = self.timing.own_lease().saturating_sub(asked.age);
                    self.lease = self.lease.max(left);
                }
            }
            Heartbeat::Gone => {
                (self.incarnation, self.was_ousted) = (None, true);
                self.until_attempt = Duration::ZERO;
                self.interrupt();
            }
        }
    }

    /// Handles the end of a comparison: the node has given up every room that another one owned when it was read.
    pub fn handle_reconciled(&mut self) {
        let Some(counts) = self.reconcile.take() else { return };
        self.is_reconciled |= counts && !self.lease.is_zero();
        self.has_held |= self.standing().may(Decision::Join);
    }

    /// Handles a request that failed, or whose answer is unknown. It is repeated.
    pub fn handle_failed(&mut self, request: Request) {
        match request {
            Request::TakeLock | Request::Join => self.attempts = false,
            Request::Heartbeat => self.heartbeat = None,
            Request::Reconcile => self.reconcile = None,
        }
    }

    /// Returns the next request for the store; `None` if nothing is due. Call it at the end of each turn.
    pub fn poll_request(&mut self) -> Option<Request> {
        let is_free = !self.attempts && self.until_attempt.is_zero();
        if is_free && !(self.has_lock && self.incarnation.is_some()) {
            (self.attempts, self.until_attempt) = (true, self.timing.retry);
            return Some(if self.has_lock { Request::Join } else { Request::TakeLock });
        }
        self.incarnation?;
        if self.heartbeat.is_none() && self.until_heartbeat.is_zero() {
            let asked = Asked { age: Duration::ZERO, counts: true };
            (self.heartbeat, self.until_heartbeat) = (Some(asked), self.timing.heartbeat);
            return Some(Request::Heartbeat);
        }
        // What was read before the lease was renewed says nothing: a room may have been claimed in between.
        if self.reconcile.is_none() && self.until_reconcile.is_zero() && !self.lease.is_zero() {
            (self.reconcile, self.until_reconcile) = (Some(true), self.timing.reconcile);
            return Some(Request::Reconcile);
        }
        None
    }

    /// Returns what the node may do, as of this turn. It holds for [`valid_for`](Self::valid_for).
    pub fn standing(&self) -> Standing {
        let waits = !self.quarantine.is_zero() || !self.settling.is_zero();
        let decides = !self.lease.is_zero() && self.is_reconciled && !waits;
        match self.incarnation {
            None if self.was_ousted => Standing::Ousted,
            Some(_) if decides && self.drains => Standing::Draining,
            Some(_) if decides => Standing::Held,
            Some(_) if self.has_held => Standing::Lapsed,
            None | Some(_) => Standing::Joining,
        }
    }

    /// Returns for how long after the begin of this turn its standing holds. Another thread that decides must not
    /// do so later, unless the next turn has said so again.
    pub fn valid_for(&self) -> Duration {
        self.lease.min(self.timing.stall)
    }

    /// Returns what is left of the lease; zero if it is over or in doubt.
    pub fn lease_left(&self) -> Duration {
        self.lease
    }

    /// Returns the incarnation that the node has in the store; `None` if it has none.
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }

    /// Whether it may say by their locks that other nodes are dead: after a restart of the store all locks are free.
    pub fn may_judge(&self) -> bool {
        self.standing().may(Decision::Join)
    }

    /// Puts the lease in doubt: only what is asked from now on renews it.
    fn interrupt(&mut self) {
        self.lease = Duration::ZERO;
        if let Some(asked) = &mut self.heartbeat {
            asked.counts = false;
        }
        self.forget_reconciling();
        self.until_heartbeat = Duration::ZERO;
    }

    fn forget_reconciling(&mut self) {
        self.is_reconciled = false;
        self.reconcile = self.reconcile.map(|_| false);
        self.until_reconcile = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TURN: Duration = Duration::from_millis(50);
    const RENEWED: Heartbeat = Heartbeat::Renewed { drains: false, quarantine: Duration::ZERO };

    /// A tenure with a driver whose store answers at once.
    fn joined() -> Tenure {
        let mut tenure = Tenure::new(Timing::default());
        serve(&mut tenure, RENEWED);
        assert_eq!(tenure.standing(), Standing::Held);
        tenure
    }

    /// Answers all requests.
    fn serve(tenure: &mut Tenure, found: Heartbeat) -> Vec<Request> {
        let mut requests = Vec::new();
        while let Some(request) = tenure.poll_request() {
            requests.push(request);
            match request {
                Request::TakeLock => tenure.handle_lock_taken(),
                Request::Join => tenure.handle_joined(Incarnation(1)),
                Request::Heartbeat => tenure.handle_heartbeat(found),
                Request::Reconcile => tenure.handle_reconciled(),
            }
        }
        requests
    }

    /// Passes time in turns; nothing is answered.
    fn pass(tenure: &mut Tenure, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(TURN);
            tenure.turn(step);
            left -= step;
        }
    }

    #[test]
    fn a_node_decides_once_it_has_its_lock_a_lease_and_the_stores_rooms() {
        let mut tenure = Tenure::new(Timing::default());
        assert_eq!(tenure.standing(), Standing::Joining);
        let requests = serve(&mut tenure, RENEWED);
        assert_eq!(requests, [Request::TakeLock, Request::Join, Request::Heartbeat, Request::Reconcile]);
        assert_eq!(tenure.standing(), Standing::Held);
    }

    #[test]
    fn the_lease_counts_from_before_the_heartbeat_was_sent() {
        let mut tenure = joined();
        pass(&mut tenure, Duration::from_millis(500));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        pass(&mut tenure, Duration::from_millis(700));
        tenure.handle_heartbeat(RENEWED);
        assert_eq!(tenure.lease_left(), Duration::from_millis(1_800));
        pass(&mut tenure, Duration::from_millis(1_750));
        assert_eq!(tenure.standing(), Standing::Held);
        pass(&mut tenure, TURN);
        assert_eq!(tenure.standing(), Standing::Lapsed);
    }

    #[test]
    fn a_node_that_slept_asks_before_it_decides() {
        let mut tenure = joined();
        pass(&mut tenure, Duration::from_millis(500));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        tenure.turn(Duration::from_millis(201));
        assert_eq!(tenure.standing(), Standing::Lapsed);
        // It was asked before the sleep: what it found says nothing of the time since.
        tenure.handle_heartbeat(RENEWED);
        assert_eq!(tenure.standing(), Standing::Lapsed);
        assert_eq!(serve(&mut tenure, RENEWED), [Request::Heartbeat, Request::Reconcile]);
        assert_eq!(tenure.standing(), Standing::Held);
    }

    #[test]
    fn rooms_that_were_read_before_the_lease_was_renewed_do_not_count() {
        let mut tenure = joined();
        pass(&mut tenure, Duration::from_secs(1));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        tenure.handle_failed(Request::Heartbeat);
        assert_eq!(tenure.poll_request(), Some(Request::Reconcile));
        pass(&mut tenure, Duration::from_secs(2));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        tenure.handle_heartbeat(RENEWED);
        tenure.handle_reconciled();
        assert_eq!(tenure.standing(), Standing::Lapsed);
        assert_eq!(serve(&mut tenure, RENEWED), [Request::Reconcile]);
        assert_eq!(tenure.standing(), Standing::Held);
    }

    #[test]
    fn a_lost_lock_is_taken_again_before_the_lease_counts() {
        let mut tenure = joined();
        pass(&mut tenure, Duration::from_millis(500));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        tenure.handle_lock_lost();
        assert_eq!(tenure.standing(), Standing::Lapsed);
        tenure.handle_heartbeat(RENEWED);
        assert_eq!(tenure.standing(), Standing::Lapsed);
        assert_eq!(serve(&mut tenure, RENEWED), [Request::TakeLock, Request::Heartbeat, Request::Reconcile]);
        assert_eq!(tenure.standing(), Standing::Lapsed);
        pass(&mut tenure, Timing::default().looks_apart());
        assert_eq!(tenure.standing(), Standing::Held);
    }

    #[test]
    fn a_node_that_was_declared_gone_joins_again() {
        let mut tenure = joined();
        pass(&mut tenure, Duration::from_millis(500));
        assert_eq!(tenure.poll_request(), Some(Request::Heartbeat));
        tenure.handle_heartbeat(Heartbeat::Gone);
        assert_eq!((tenure.standing(), tenure.incarnation()), (Standing::Ousted, None));
        assert_eq!(tenure.poll_request(), Some(Request::Join));
        tenure.handle_joined(Incarnation(3));
        assert_eq!(tenure.standing(), Standing::Joining);
        assert_eq!(serve(&mut tenure, RENEWED), [Request::Heartbeat, Request::Reconcile]);
        assert_eq!((tenure.standing(), tenure.incarnation()), (Standing::Held, Some(Incarnation(3))));
    }

    #[test]
    fn nothing_is_decided_in_the_quarantine_after_a_restart_of_the_store() {
        let mut tenure = Tenure::new(Timing::default());
        serve(&mut tenure, Heartbeat::Renewed { drains: false, quarantine: Duration::from_secs(2) });
        assert_eq!((tenure.standing(), tenure.may_judge()), (Standing::Joining, false));
        pass(&mut tenure, Duration::from_secs(2));
        tenure.handle_reconciled();
        assert_eq!(tenure.standing(), Standing::Held);
    }

    #[test]
    fn a_draining_node_admits_members_and_opens_nothing() {
        let mut tenure = Tenure::new(Timing::default());
        serve(&mut tenure, Heartbeat::Renewed { drains: true, quarantine: Duration::ZERO });
        let standing = tenure.standing();
        assert_eq!(standing, Standing::Draining);
        assert!(standing.may(Decision::Join) && standing.may(Decision::NameHost));
        assert!(
            standing.may(Decision::Offer) && !standing.may(Decision::Open) && !standing.may(Decision::Take)
        );
    }

    /// What a driver may do, in any order.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Turn(u64),
        Poll,
        LockLost,
        LockTaken,
        Heartbeat,
        Reconciled,
        Failed(Request),
    }

    fn step() -> impl Strategy<Value = Step> {
        let requests = [Request::TakeLock, Request::Join, Request::Heartbeat, Request::Reconcile];
        prop_oneof![
            8 => (0..250_u64).prop_map(Step::Turn),
            1 => (250..10_000_u64).prop_map(Step::Turn),
            8 => Just(Step::Poll),
            1 => Just(Step::LockLost),
            4 => Just(Step::LockTaken),
            4 => Just(Step::Heartbeat),
            4 => Just(Step::Reconciled),
            1 => prop::sample::select(requests.to_vec()).prop_map(Step::Failed),
        ]
    }

    proptest! {
        /// Ten plain lines beside the machine: when the last heartbeat that was answered had been sent, and whether
        /// the node has slept or lost its lock since.
        #[test]
        fn whoever_decides_asked_lately_and_neither_slept_nor_lost_its_lock_since(
            steps in proptest::collection::vec(step(), 1..200)
        ) {
            let mut tenure = Tenure::new(Timing::default());
            let (mut now, mut sent, mut renewed) = (0_u64, None, None);
            let mut has_lock = false;
            for step in steps {
                match step {
                    Step::Turn(ms) => {
                        now += ms;
                        tenure.turn(Duration::from_millis(ms));
                        if ms > 200 {
                            (sent, renewed) = (sent.map(|_| None), None);
                        }
                    }
                    Step::Poll => match tenure.poll_request() {
                        Some(Request::Heartbeat) => sent = Some(Some(now)),
                        Some(Request::Join) => tenure.handle_joined(Incarnation(1)),
                        _ => {}
                    },
                    Step::LockLost => {
                        tenure.handle_lock_lost();
                        (sent, renewed, has_lock) = (sent.map(|_| None), None, false);
                    }
                    Step::LockTaken => {
                        tenure.handle_lock_taken();
                        has_lock = true;
                    }
                    Step::Heartbeat => {
                        tenure.handle_heartbeat(RENEWED);
                        renewed = sent.take().flatten().filter(|_| has_lock).max(renewed);
                    }
                    Step::Reconciled => tenure.handle_reconciled(),
                    Step::Failed(request) => {
                        tenure.handle_failed(request);
                        if request == Request::Heartbeat {
                            sent = None;
                        }
                    }
                }
                if tenure.standing().may(Decision::Join) {
                    let renewed = renewed.expect("a heartbeat was answered");
                    prop_assert!(now < renewed + 2_500);
                    prop_assert!(tenure.valid_for() <= Duration::from_millis(renewed + 2_500 - now));
                }
            }
        }
    }
}
