//! The state of everything, and what can happen.

use crate::node::{Giving, Life, Node, TURN, UNIT};
use crate::store::{LEASE, ROOM, Store};
use parlor_hub::cluster::Timing;
use parlor_hub::cluster::ownership::{Owner, RoomCopy, Statement, Term, Verdict};
use parlor_hub::cluster::tenure::{Incarnation, Request};
use std::time::Duration;

/// What is bounded: without it there are infinitely many states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Nodes that die.
    pub crashes: u8,
    /// Nodes that stand still for a while.
    pub pauses: u8,
    /// Nodes that lose the store.
    pub cuts: u8,
    /// Answers of the store that come late.
    pub late_answers: u8,
    /// Connections of locks that end.
    pub lost_locks: u8,
    /// Units of time by which a clock is late.
    pub late_clocks: u8,
    /// Moves that are begun.
    pub moves: u8,
    /// Rooms that are claimed without a snapshot.
    pub claims: u8,
}

/// The safeguards. Without any of them there is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// A node that stood still has lapsed.
    pub stalls_lapse: bool,
    /// A node's own end of a lease comes before the store's.
    pub leases_have_a_margin: bool,
    /// A node compares its copies with the store before it decides again.
    pub copies_are_reconciled: bool,
    /// Who keeps a room raises its term: a statement that gives it away and comes late changes nothing.
    pub keeping_raises_the_term: bool,
    /// A snapshot is taken out of the row by the statement that claims the room.
    pub snapshots_are_taken_once: bool,
    /// The store writes the effects of a room's owner alone.
    pub store_is_fenced: bool,
}

impl Guards {
    /// All of them.
    pub const ALL: Guards = Guards {
        stalls_lapse: true,
        leases_have_a_margin: true,
        copies_are_reconciled: true,
        keeping_raises_the_term: true,
        snapshots_are_taken_once: true,
        store_is_fenced: true,
    };

    /// The times of the model: as those of a cluster in their order, and as few units as that needs.
    fn timing(&self) -> Timing {
        Timing {
            heartbeat: UNIT,
            lease: UNIT * LEASE.into(),
            margin: if self.leases_have_a_margin { UNIT } else { Duration::ZERO },
            stall: if self.stalls_lapse { TURN } else { Duration::MAX },
            death: UNIT,
            reconcile: UNIT,
            retry: UNIT,
        }
    }
}

/// What can happen next. The number is a node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A unit of time passes, and nodes that decide renew their leases.
    Tick,
    /// The same, and this node has not asked yet.
    TickWithout(u8),
    /// The same, and this node's clock is late by it.
    TickLate(u8),
    /// The node's lease asks the store.
    Ask(u8),
    /// It hears what its heartbeat found.
    HearHeartbeat(u8),
    /// It hears which rows there are, and compares.
    HearRows(u8),
    /// It hears what came of a statement.
    HearDone(u8),
    /// It looks whether other nodes are dead.
    Look(u8),
    /// It claims the room.
    Claim(u8),
    /// It seals its copy and gives the room to the other one: the statement is on its way.
    Give(u8, u8),
    /// The store gets that statement.
    Arrive,
    /// The statement is lost.
    Lose,
    /// It keeps the room that it may have given away.
    Keep(u8),
    /// It dies.
    Crash(u8),
    /// It starts again.
    Start(u8),
    /// It stands still; before, its lease asks the store, and the answer comes while it sleeps.
    Pause(u8, bool),
    /// It goes on.
    Wake(u8),
    /// Its way to the store is cut; before, its lease asks the store, and the answer is lost.
    Cut(u8, bool),
    /// Its lease asks the store, and the answer may take any time.
    AskLate(u8),
    /// Its way to the store is there again.
    Mend(u8),
    /// The connection of its lock ends.
    LoseLock(u8),
}

/// The state of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) store: Store,
    pub(crate) nodes: Vec<Node>,
    giving: Option<Giving>,
    left: Bounds,
    /// Sessions that the member had.
    sessions: u8,
}

impl World {
    /// Returns the first state: all nodes decide, and the first one has the room.
    pub fn new(nodes: u8, bounds: Bounds, guards: &Guards) -> Self {
        let mut store = Store::new(nodes);
        let mut all: Vec<Node> = (0..nodes).map(|_| Node::new(guards.timing())).collect();
        for (number, node) in (0..nodes).zip(&mut all) {
            while let Some(request) = node.tenure.poll_request() {
                match request {
                    Request::TakeLock => node.tenure.handle_lock_taken(),
                    Request::Join => node.tenure.handle_joined(Incarnation(1)),
                    Request::Heartbeat => {
                        let me = Owner { node: number, incarnation: Incarnation(1) };
                        node.tenure.handle_heartbeat(store.heartbeat(me));
                    }
                    Request::Reconcile => node.tenure.handle_reconciled(),
                }
            }
        }
        all[0].copy = Some(RoomCopy::opened(ROOM, Term::FIRST));
        World { store, nodes: all, giving: None, left: bounds, sessions: 1 }
    }

    /// Returns all that can happen.
    pub fn actions(&self, actions: &mut Vec<Action>) {
        let may_tick = !self.nodes.iter().any(Node::is_busy);
        if may_tick {
            actions.push(Action::Tick);
        }
        if self.giving.is_some() {
            actions.extend([Action::Arrive, Action::Lose]);
        }
        for (number, node) in (0..).zip(&self.nodes) {
            match node.life {
                Life::Down => actions.push(Action::Start(number)),
                Life::Asleep(_) => actions.push(Action::Wake(number)),
                Life::Up => self.actions_of(number, node, actions),
            }
            if node.life != Life::Down {
                self.faults_of(number, node, may_tick, actions);
            }
        }
    }

    fn faults_of(&self, number: u8, node: &Node, may_tick: bool, actions: &mut Vec<Action>) {
        let left = &self.left;
        if left.crashes > 0 {
            actions.push(Action::Crash(number));
        }
        if left.lost_locks > 0 && self.store.has_lock(number) {
            actions.push(Action::LoseLock(number));
        }
        if node.life != Life::Up {
            return;
        }
        let asks = node.tenure.clone().poll_request().is_some();
        for asks in [true, false].into_iter().filter(|it| asks || !it) {
            if left.pauses > 0 {
                actions.push(Action::Pause(number, asks));
            }
            if left.cuts > 0 && !node.is_cut {
                actions.push(Action::Cut(number, asks));
            }
        }
        if left.late_answers > 0 && asks && !node.is_cut && node.inbox.late.is_none() {
            actions.push(Action::AskLate(number));
        }
        if may_tick && left.pauses + left.cuts + left.late_answers > 0 {
            actions.push(Action::TickWithout(number));
        }
        if may_tick && left.late_clocks > 0 {
            actions.push(Action::TickLate(number));
        }
    }

    fn actions_of(&self, number: u8, node: &Node, actions: &mut Vec<Action>) {
        let standing = node.tenure.standing();
        if node.is_cut {
            actions.push(Action::Mend(number));
        }
        if !node.is_cut {
            if node.tenure.clone().poll_request().is_some() {
                actions.push(Action::Ask(number));
            }
            let dead = self.store.look(number).iter().any(|other| other.is_over || !other.has_lock);
            if dead && node.tenure.may_judge() {
                actions.push(Action::Look(number));
            }
            let claims = RoomCopy::claim(&self.store.room, standing).is_some();
            let is_free = self.left.claims > 0 || self.store.snapshot.is_some();
            if node.copy.is_none() && claims && is_free && node.inbox.done.is_none() {
                actions.push(Action::Claim(number));
            }
        }
        let inbox = &node.inbox;
        if inbox.heartbeat.is_some() {
            actions.push(Action::HearHeartbeat(number));
        }
        if inbox.rows.is_some() {
            actions.push(Action::HearRows(number));
        }
        if inbox.done.is_some() {
            actions.push(Action::HearDone(number));
        }
        let Some(copy) = &node.copy else { return };
        if copy.decides(standing).is_some() && self.left.moves > 0 && inbox.done.is_none() && !node.is_cut {
            let others = (0..).zip(&self.nodes).filter(|(other, _)| *other != number);
            actions.extend(others.map(|(other, _)| Action::Give(number, other)));
        }
        if copy.keep().is_some() && inbox.done.is_none() && !node.is_cut {
            actions.push(Action::Keep(number));
        }
    }

    /// Returns the state after an action; `None` if it changes nothing.
    pub fn next(&self, action: Action, guards: &Guards) -> Option<World> {
        let mut world = self.clone();
        world.act(action, guards)?;
        for node in &mut world.nodes {
            let inbox = &mut node.inbox;
            inbox.late = inbox.late.filter(|request| match request {
                Request::Heartbeat => inbox.heartbeat.is_some(),
                Request::Reconcile => inbox.rows.is_some(),
                Request::TakeLock | Request::Join => false,
            });
        }
        (world != *self).then_some(world)
    }

    fn act(&mut self, action: Action, guards: &Guards) -> Option<()> {
        match action {
            Action::Tick => self.tick(None, None, guards),
            Action::TickWithout(number) => self.tick(Some(number), None, guards),
            Action::TickLate(number) => {
                self.left.late_clocks -= 1;
                self.tick(None, Some(number), guards);
            }
            Action::Ask(number) => self.ask_and_hear(number, guards)?,
            Action::HearHeartbeat(number) => self.hear_heartbeat(number)?,
            Action::HearRows(number) => self.hear_rows(number, guards)?,
            Action::HearDone(number) => self.hear_done(number)?,
            Action::Look(number) => {
                let looked = self.store.look(number);
                let node = self.node(number);
                let elapsed = UNIT * std::mem::take(&mut node.since_look).into();
                for (dead, incarnation) in node.deaths.look(elapsed, looked) {
                    self.store.declare_gone(dead, incarnation);
                }
            }
            Action::Claim(number) => {
                let standing = self.nodes[usize::from(number)].tenure.standing();
                let (copy, statement) = RoomCopy::claim(&self.store.room, standing)?;
                let (term, snapshot) = self.run(number, statement, guards)?;
                let session = match snapshot {
                    Some(session) => session,
                    None => {
                        self.left.claims = self.left.claims.checked_sub(1)?;
                        self.begin_session()
                    }
                };
                let node = self.node(number);
                (node.copy, node.session) = (Some(copy), session);
                node.inbox.done = Some((statement, Some(term)));
            }
            Action::Give(from, to) => {
                let node = self.node(from);
                let incarnation = node.tenure.incarnation()?;
                let (standing, session) = (node.tenure.standing(), node.session);
                let statement = node.copy.as_mut()?.give(standing)?;
                self.left.moves -= 1;
                self.giving = Some(Giving { by: Owner { node: from, incarnation }, statement, to, session });
            }
            Action::Arrive => {
                let Giving { by, statement, to, session } = self.giving.take()?;
                let done = self.store.run(statement, by, Some((to, session)), guards);
                let node = self.node(by.node);
                if node.reaches_store() && node.inbox.done.is_none() {
                    node.inbox.done = Some((statement, done.map(|(term, _)| term)));
                }
            }
            Action::Lose => self.giving = None,
            Action::Keep(number) => {
                let statement = self.nodes[usize::from(number)].copy.as_ref()?.keep()?;
                self.send(number, statement, guards);
            }
            _ => self.befall(action, guards)?,
        }
        Some(())
    }

    /// A unit of time. The order in which nodes renew leases that they have makes no difference, so they do it at once;
    /// what a node without a lease asks is an action each.
    fn tick(&mut self, without: Option<u8>, late: Option<u8>, guards: &Guards) {
        self.store.tick();
        for (number, node) in (0..).zip(&mut self.nodes) {
            node.tick(late == Some(number));
        }
        for number in (0..).take(self.nodes.len()).filter(|number| without != Some(*number)) {
            while self.node(number).reaches_store()
                && self.node(number).tenure.may_judge()
                && self.ask_and_hear(number, guards).is_some()
            {}
        }
    }

    fn ask_and_hear(&mut self, number: u8, guards: &Guards) -> Option<()> {
        match self.ask(number)? {
            Request::Heartbeat => self.hear_heartbeat(number),
            Request::Reconcile => self.hear_rows(number, guards),
            Request::TakeLock | Request::Join => Some(()),
        }
    }

    /// What befalls a node.
    fn befall(&mut self, action: Action, guards: &Guards) -> Option<()> {
        match action {
            Action::Start(number) => *self.node(number) = Node::new(guards.timing()),
            Action::Wake(number) => {
                let node = self.node(number);
                let Life::Asleep(units) = node.life else { return None };
                node.life = Life::Up;
                node.turn(UNIT * units.into());
            }
            Action::Mend(number) => self.node(number).is_cut = false,
            Action::AskLate(number) => {
                self.left.late_answers -= 1;
                let asked = self.ask(number)?;
                self.node(number).inbox.late = Some(asked);
            }
            Action::Crash(number) => {
                self.left.crashes -= 1;
                self.store.set_lock(number, false);
                *self.node(number) = Node { life: Life::Down, ..Node::new(guards.timing()) };
            }
            Action::Pause(number, asks) => {
                self.left.pauses -= 1;
                if asks && !self.node(number).is_cut {
                    self.ask(number);
                }
                self.node(number).life = Life::Asleep(0);
            }
            Action::Cut(number, asks) => {
                self.left.cuts -= 1;
                if asks {
                    self.ask(number);
                }
                let node = self.node(number);
                node.is_cut = true;
                node.lose_answers();
            }
            Action::LoseLock(number) => {
                self.left.lost_locks -= 1;
                self.store.set_lock(number, false);
                self.node(number).lock_is_lost = true;
            }
            _ => return None,
        }
        Some(())
    }

    /// The lease asks the store. A lock and an incarnation are had at once: nothing depends on how long they take.
    fn ask(&mut self, number: u8) -> Option<Request> {
        let node = &mut self.nodes[usize::from(number)];
        node.read_lock();
        let request = node.tenure.poll_request()?;
        match request {
            Request::TakeLock => {
                self.store.set_lock(number, true);
                node.lock_is_lost = false;
                node.tenure.handle_lock_taken();
            }
            Request::Join => node.tenure.handle_joined(self.store.join(number)),
            Request::Heartbeat => {
                let incarnation = node.tenure.incarnation().expect("who asks has joined");
                node.inbox.heartbeat = Some(self.store.heartbeat(Owner { node: number, incarnation }));
            }
            Request::Reconcile => node.inbox.rows = Some(self.store.room.clone()),
        }
        Some(request)
    }

    fn hear_heartbeat(&mut self, number: u8) -> Option<()> {
        let node = self.node(number);
        node.read_lock();
        let found = node.inbox.heartbeat.take()?;
        node.tenure.handle_heartbeat(found);
        Some(())
    }

    fn hear_rows(&mut self, number: u8, guards: &Guards) -> Option<()> {
        let node = &mut self.nodes[usize::from(number)];
        let row = node.inbox.rows.take()?;
        let incarnation = node.tenure.incarnation();
        let mut run = None;
        if let (Some(copy), Some(incarnation), true) =
            (&mut node.copy, incarnation, guards.copies_are_reconciled)
        {
            match copy.reconcile(Owner { node: number, incarnation }, Some(&row)) {
                Verdict::Keep | Verdict::Unlisted => {}
                Verdict::Run(statement) => run = Some(statement),
                Verdict::GiveUp(_) => node.copy = None,
            }
        }
        node.tenure.handle_reconciled();
        if let Some(statement) = run.filter(|_| node.inbox.done.is_none()) {
            self.send(number, statement, guards);
        }
        Some(())
    }

    fn hear_done(&mut self, number: u8) -> Option<()> {
        let node = &mut self.nodes[usize::from(number)];
        let (statement, term) = node.inbox.done.take()?;
        if node.copy.as_mut().is_some_and(|copy| !copy.handle_done(statement, term)) {
            node.copy = None;
        }
        Some(())
    }

    /// Runs a statement, and sends its answer. Without a way to the store it is lost.
    fn send(&mut self, number: u8, statement: Statement, guards: &Guards) {
        if self.nodes[usize::from(number)].reaches_store() {
            let term = self.run(number, statement, guards).map(|(term, _)| term);
            self.node(number).inbox.done = Some((statement, term));
        }
    }

    fn run(&mut self, number: u8, statement: Statement, guards: &Guards) -> Option<(Term, Option<u8>)> {
        let node = &self.nodes[usize::from(number)];
        let incarnation = node.tenure.incarnation().filter(|_| node.reaches_store())?;
        self.store.run(statement, Owner { node: number, incarnation }, None, guards)
    }

    fn node(&mut self, number: u8) -> &mut Node {
        &mut self.nodes[usize::from(number)]
    }

    fn begin_session(&mut self) -> u8 {
        self.sessions += 1;
        self.sessions - 1
    }
}
