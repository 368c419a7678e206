//! Tickets: players who look for a match, alone or as a party.

use super::queue::{Players, Queue};
use crate::lobby::{Entrance, PlayerKey};
use crate::properties::{Filter, Properties, admits};
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A ticket's id.
pub type TicketId = Arc<str>;

/// A player who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeker {
    /// Who.
    pub player: PlayerKey,
    /// Its display name.
    pub name: String,
    /// Points on the queue's ladder.
    pub skill: i64,
    /// How uncertain they are.
    pub doubt: i64,
    /// Its round trip to the server in milliseconds, if it is measured.
    pub rtt_ms: Option<u32>,
}

/// Players who look together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its id.
    pub id: TicketId,
    /// The members, the leader first.
    pub members: Vec<Seeker>,
    /// The party that they are.
    pub party: Option<Arc<str>>,
    /// How many players the match may have, within what the queue says.
    pub players: Players,
    /// What it says of itself.
    pub properties: Arc<Properties>,
    /// What others must be.
    pub filter: Arc<Filter>,
    /// Players with whom it does not go.
    pub avoid: Arc<BTreeSet<PlayerKey>>,
    /// Since when it waits.
    pub since: Duration,
}

/// Where a ticket stands, for its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketState {
    /// It looks.
    Waiting,
    /// A match was found; its members are asked.
    Confirm {
        /// Until when.
        until: Duration,
        /// Those of its members who have confirmed.
        confirmed: BTreeSet<PlayerKey>,
    },
    /// A match was found; this player opens the room.
    Opening {
        /// Who opens it.
        opener: PlayerKey,
        /// Until when.
        until: Duration,
    },
    /// A match was found, and its room is open.
    Found(Arc<Match>),
    /// It is over.
    Ended(Ended),
}

/// A match that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Its room.
    pub room: Entrance,
    /// Its players, in teams if the queue has some: otherwise all in one.
    pub teams: Vec<Vec<Seeker>>,
    /// Whether the room was open before: seats of it were offered.
    pub is_backfill: bool,
}

/// Why a search is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A member has left it.
    Left,
    /// A member has no connection any more.
    Gone,
    /// It took too long.
    Expired,
    /// A member has not confirmed.
    Declined,
    /// The members of its party have changed.
    PartyChanged,
    /// Another search of a member has found a match.
    FoundElsewhere,
    /// The queue is no longer defined.
    QueueGone,
}

impl Ended {
    /// Its word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Left => "left",
            Ended::Gone => "gone",
            Ended::Expired => "expired",
            Ended::Declined => "declined",
            Ended::PartyChanged => "party_changed",
            Ended::FoundElsewhere => "found_elsewhere",
            Ended::QueueGone => "queue_gone",
        }
    }
}

impl Ticket {
    /// The mean skill of its members.
    pub fn skill(&self) -> i64 {
        mean(self.members.iter().map(|member| member.skill))
    }

    /// The mean doubt of its members.
    pub(super) fn doubt(&self) -> i64 {
        mean(self.members.iter().map(|member| member.doubt))
    }

    pub(super) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }

    /// The longest round trip of its members.
    pub(super) fn worst_rtt(&self, queue: &Queue) -> u32 {
        let unmeasured = queue.rtt.as_ref().map_or(0, |rtt| rtt.most_ms);
        self.members.iter().map(|member| member.rtt_ms.unwrap_or(unmeasured)).max().unwrap_or(0)
    }

    /// Whether its members accept their round trips by now.
    pub(super) fn accepts_rtt(&self, queue: &Queue, now: Duration) -> bool {
        queue.rtt_limit(self.age(now)).is_none_or(|limit| self.worst_rtt(queue) <= limit)
    }
}

fn mean(numbers: impl Iterator<Item = i64>) -> i64 {
    let (sum, count) = numbers.fold((0_i64, 0_i64), |(sum, count), it| (sum.saturating_add(it), count + 1));
    sum.div_euclid(count.max(1))
}

/// How far apart two tickets may be in skill by now; `None` for any distance.
pub(super) fn reach(queue: &Queue, one: &Ticket, other: &Ticket, now: Duration) -> Option<i64> {
    queue.reach(queue.window(one.age(now), one.doubt()), queue.window(other.age(now), other.doubt()))
}

/// Whether two tickets go together by now, apart from the number of players. What the queue names in `same` is the
/// same already.
pub fn go_together(queue: &Queue, one: &Ticket, other: &Ticket, now: Duration) -> bool {
    let avoids = |one: &Ticket, other: &Ticket| {
        !one.avoid.is_empty() && other.members.iter().any(|member| one.avoid.contains(&member.player))
    };
    let apart = one.skill().abs_diff(other.skill());
    let is_near = reach(queue, one, other, now).is_none_or(|reach| apart <= reach.unsigned_abs());
    is_near
        && filters_fit((&one.filter, &one.properties), (&other.filter, &other.properties))
        && !avoids(one, other)
        && !avoids(other, one)
}

/// Whether each of two filters admits the properties of the other side.
pub(super) fn filters_fit(one: (&Filter, &Properties), other: (&Filter, &Properties)) -> bool {
    admits(one.0, other.1) && admits(other.0, one.1)
}
