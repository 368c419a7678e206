//! A node: its machines, and what is on its way to it.

use crate::store::LEASE;
use parlor_hub::cluster::Timing;
use parlor_hub::cluster::deaths::Deaths;
use parlor_hub::cluster::ownership::{Owner, RoomCopy, Row, Statement, Term};
use parlor_hub::cluster::tenure::{Heartbeat, Request, Tenure};
use std::time::Duration;

/// The unit of time.
pub(crate) const UNIT: Duration = Duration::from_secs(1);
/// A thread of a lease turns twice in it.
pub(crate) const TURN: Duration = Duration::from_millis(500);
/// A longer sleep makes no difference.
const ASLEEP_MAX: u8 = LEASE + 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    Up,
    /// For so many units of time.
    Asleep(u8),
    Down,
}

/// A statement on its way that gives the room away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Giving {
    pub(crate) by: Owner<u8>,
    pub(crate) statement: Statement,
    pub(crate) to: u8,
    pub(crate) session: u8,
}

/// Answers of the store on their way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Inbox {
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) rows: Option<Row<u8>>,
    pub(crate) done: Option<(Statement, Option<Term>)>,
    /// The request whose answer may come at any time. The others come before the next unit of time.
    pub(crate) late: Option<Request>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) life: Life,
    pub(crate) is_cut: bool,
    /// Whether the end of its lock's connection has not been read yet.
    pub(crate) lock_is_lost: bool,
    pub(crate) tenure: Tenure,
    pub(crate) deaths: Deaths<u8>,
    /// Units of time since it looked.
    pub(crate) since_look: u8,
    pub(crate) copy: Option<RoomCopy>,
    /// The member's session that the copy has.
    pub(crate) session: u8,
    pub(crate) inbox: Inbox,
}

impl Node {
    pub(crate) fn new(timing: Timing) -> Self {
        Node {
            life: Life::Up,
            is_cut: false,
            lock_is_lost: false,
            tenure: Tenure::new(timing),
            deaths: Deaths::new(timing),
            since_look: 0,
            copy: None,
            session: 0,
            inbox: Inbox::default(),
        }
    }

    pub(crate) fn reaches_store(&self) -> bool {
        self.life == Life::Up && !self.is_cut
    }

    /// Whether it asks or hears something before the next unit of time.
    pub(crate) fn is_busy(&self) -> bool {
        let asks = self.tenure.clone().poll_request().is_some();
        let Inbox { heartbeat, rows, done, late } = &self.inbox;
        let hears = heartbeat.is_some() && *late != Some(Request::Heartbeat)
            || rows.is_some() && *late != Some(Request::Reconcile)
            || done.is_some();
        self.reaches_store() && (asks || hears)
    }

    pub(crate) fn turn(&mut self, elapsed: Duration) {
        self.tenure.turn(elapsed);
    }

    pub(crate) fn tick(&mut self, is_late: bool) {
        match &mut self.life {
            Life::Down => {}
            Life::Asleep(units) => *units = (*units + 1).min(ASLEEP_MAX),
            Life::Up => {
                self.since_look = (self.since_look + 1).min(3);
                self.read_lock();
                if !is_late {
                    self.turn(TURN);
                    self.turn(TURN);
                }
                if !self.tenure.may_judge() {
                    self.deaths.forget();
                }
            }
        }
    }

    /// Reads what the connection of its lock says: each unit of time, and before the store's answers.
    pub(crate) fn read_lock(&mut self) {
        if std::mem::take(&mut self.lock_is_lost) {
            self.tenure.handle_lock_lost();
        }
    }

    /// What is on its way to it is lost.
    pub(crate) fn lose_answers(&mut self) {
        let Inbox { heartbeat, rows, .. } = std::mem::take(&mut self.inbox);
        if heartbeat.is_some() {
            self.tenure.handle_failed(Request::Heartbeat);
        }
        if rows.is_some() {
            self.tenure.handle_failed(Request::Reconcile);
        }
    }
}
