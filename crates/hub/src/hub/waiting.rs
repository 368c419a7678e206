//! What waits for the store of a cluster, and what a hub knows of its cluster.

use crate::admission_policy::{Admitted, Guess, UsedToken};
use crate::cluster::ownership::RoomUid;
use crate::cluster::pass::{Pass, PassKey};
use crate::cluster::placement::{self, OpenNode};
use crate::cluster::tenure::{Decision, Standing};
use bytes::Bytes;
use parlor_proto::session::Rejection;
use parlor_proto::wire::handshake::{Hello, ResumeToken, RetryAfter, RoomKind, RoomSettings, Welcome};
use parlor_proto::{ConnectionId, Epoch, Instant, MemberId, RoomCode, RoomId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The retry time for a client that the store keeps waiting.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long rooms go on at a node that decides nothing. Their members could not get another host, or back in.
const LAPSED_MAX: Duration = Duration::from_secs(10 * 60);
/// The retry time for a member whose room is being looked for.
const CLAIM_AGAIN: Duration = Duration::from_millis(250);
pub(super) const WAITING: &str = "too many players wait for this server's store";
pub(super) const LAPSED: &str = "this server is cut off from its store for a moment";
const DRAINING: &str = "this server takes no new rooms, and no other one does either";

/// Configuration of the hub of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The maximum number of hellos that wait for the store.
    pub waiting_max: usize,
    /// The key of the cluster's passes. Without it rooms end with their node.
    pub pass_key: Option<PassKey>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig { waiting_max: 1_024, pass_key: None }
    }
}

/// What a node knows of its cluster. The driver passes it in before other inputs whenever it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// What the node may do.
    pub standing: Standing,
    /// How busy the node was lately: thousandths of its cores' time.
    pub load_permille: u16,
    /// The other nodes that take new rooms of this build.
    pub others: Arc<[OpenNode]>,
    /// The rooms of all other nodes and of this node's other hubs.
    pub rooms_elsewhere: usize,
}

/// A room that is about to open, for its row in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnteredRoom {
    /// Its code.
    pub code: RoomCode,
    /// Its name for ever.
    pub uid: RoomUid,
    /// The game's name.
    pub app: String,
    /// The game's environment.
    pub environment: String,
    /// Its kind.
    pub kind: RoomKind,
    /// Its label for listings; may be empty.
    pub label: String,
    /// Players that it may have at once.
    pub max_players: u16,
    /// Whether joining needs a secret beside the code.
    pub needs_secret: bool,
    /// The token that opens it, which may open no other one.
    pub token: Option<UsedToken>,
    /// How it is set up, for another node that reopens it: the head of its log. Empty if it ends with its node.
    pub setup: Bytes,
}

/// A room of which a member claims its seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRoom {
    /// Its code.
    pub code: RoomCode,
    /// Its name for ever.
    pub uid: RoomUid,
    /// The term that the member knows. The room's is this one or a later one.
    pub term: u64,
    /// Whether this hub has it already.
    pub is_here: bool,
    /// The member.
    pub member: MemberId,
    /// The epoch of which the member is the authority; `None` for another member.
    pub hosts: Option<Epoch>,
    /// The user of the member's admission token, who may be banned.
    pub user: Option<String>,
    /// The game's name.
    pub app: String,
    /// The game's environment.
    pub environment: String,
}

/// Whose a claimed room is: the answer to [`Output::Claim`](super::Output::Claim).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// This node's from now on, to be reopened by this hub.
    Reopened {
        /// Its term.
        term: u64,
        /// Its [`setup`](EnteredRoom::setup).
        setup: Bytes,
        /// Its last [roster](crate::room::roster::Roster); empty if it had none yet.
        roster: Bytes,
        /// What it [took along](crate::room::snapshot::Snapshot); empty if it has not moved.
        snapshot: Bytes,
    },
    /// This hub's already.
    Here,
    /// At another hub, with the address to send the member to.
    At(String),
    /// Its owner may live, or its host has not come yet; or the store does not answer.
    Later,
    /// It is over.
    Gone,
    /// The member's user is banned.
    Barred,
}

/// Where a room is: the answer to [`Output::Locate`](super::Output::Locate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// At this hub, if it is anywhere.
    Here,
    /// At another hub, with the address to send the client to.
    At(String),
    /// There is no such room of this game and environment.
    Nowhere,
    /// It is not known yet: the store does not answer, or its node is gone.
    Later,
}

/// Whether a room was entered: the answer to [`Output::Enter`](super::Output::Enter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// The store has it.
    Done,
    /// Another room has its code.
    Taken,
    /// Its token has opened a room already.
    Used,
    /// It is not known: the store does not answer.
    Later,
}

/// A hello that may be answered here, as far as that depends on no token.
#[derive(Debug)]
pub(super) struct Received {
    /// The protocol version in use.
    pub(super) version: u16,
    /// Its charge until the answer is known.
    pub(super) guess: Option<Guess>,
}

/// A hello that may be answered here.
#[derive(Debug)]
pub(super) struct Judged {
    /// The protocol version in use.
    pub(super) version: u16,
    pub(super) admitted: Admitted,
    /// Its charge until the answer is known.
    pub(super) guess: Option<Guess>,
}

/// The end of an admission.
pub(super) struct Concluded {
    pub(super) seated: Result<(Welcome, Entry), Rejection>,
    pub(super) user: Option<String>,
    pub(super) guess: Option<Guess>,
}

impl Concluded {
    pub(super) fn reject(answer: Rejection, guess: Option<Guess>) -> Self {
        Concluded { seated: Err(answer), user: None, guess }
    }
}

/// How an admitted client enters its room.
pub(super) enum Entry {
    /// As a new member.
    New,
    /// As the member that was lost.
    Returned,
    /// Into the seat that is kept for its user, lost with a connection. It has the next resume token.
    Anew(ConnectionId, ResumeToken),
}

/// The room that a client opens.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) hello: Hello,
    pub(super) settings: RoomSettings,
    pub(super) judged: Judged,
}

/// What waits for the store.
#[derive(Debug)]
pub(super) enum Waiting {
    Locate { hello: Hello, received: Received },
    Enter { opening: Opening, entry: EnteredRoom, room: RoomId, draws: u32 },
    Claim { hello: Hello, pass: Pass, received: Received, asked: u32 },
}

/// The hub's part in its cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    config: ClusterConfig,
    pub(super) view: ClusterView,
    pub(super) waiting: BTreeMap<ConnectionId, Box<Waiting>>,
    /// Rooms for which those places are kept.
    pub(super) entering: usize,
    /// Since when the node decides nothing.
    lapsed_since: Option<Instant>,
}

impl Cluster {
    pub(super) fn new(config: ClusterConfig) -> Self {
        let view = ClusterView {
            standing: Standing::Joining,
            load_permille: 0,
            others: Arc::default(),
            rooms_elsewhere: 0,
        };
        Cluster { config, view, waiting: BTreeMap::new(), entering: 0, lapsed_since: None }
    }

    /// Notes the present time, for [`LAPSED_MAX`].
    pub(super) fn turn(&mut self, now: Instant) {
        let decides = self.may(Decision::Join);
        self.lapsed_since = if decides { None } else { Some(self.lapsed_since.unwrap_or(now)) };
    }

    /// Whether the node has decided nothing for so long that its rooms end.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.lapsed_since.is_some_and(|since| now.saturating_since(since) >= LAPSED_MAX)
    }

    pub(super) fn pass_key(&self) -> Option<&PassKey> {
        self.config.pass_key.as_ref()
    }

    /// Returns the places that are kept for rooms that are not open yet.
    pub(super) fn entering(&self) -> usize {
        self.entering
    }

    pub(super) fn rooms_elsewhere(&self) -> usize {
        self.view.rooms_elsewhere
    }

    pub(super) fn may(&self, decision: Decision) -> bool {
        self.view.standing.may(decision)
    }

    /// Returns the answer to a hello that the node may not decide.
    pub(super) fn put_off(&self, decision: Decision) -> Option<Rejection> {
        let why = if self.may(Decision::Join) { DRAINING } else { LAPSED };
        (!self.may(decision)).then(|| later(why))
    }

    /// Returns the node that a new room goes to; `None` for this one. A room without a chosen code `may_spread`.
    pub(super) fn opens_at(&self, may_spread: bool, draw: impl FnMut() -> u32) -> Option<String> {
        let own = self.may(Decision::Open).then_some(self.view.load_permille);
        if own.is_some() && !may_spread {
            return None;
        }
        placement::opens_at(own, &self.view.others, draw).map(|node| node.address.clone())
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.config.waiting_max
    }
}

pub(super) fn later(detail: &str) -> Rejection {
    Rejection::RetryAfter(RetryAfter { after: RETRY_AFTER, detail: detail.into() })
}

pub(super) fn soon(detail: &str) -> Rejection {
    Rejection::RetryAfter(RetryAfter { after: CLAIM_AGAIN, detail: detail.into() })
}

/// Returns how many places a room takes: its delayed copy has one of its own.
pub(super) fn places(settings: &RoomSettings) -> usize {
    1 + usize::from(settings.spectator_delay_ms > 0)
}
