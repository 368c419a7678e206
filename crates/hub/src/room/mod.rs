//! One room: its members, what they say to each other, and the state they share.
//!
//! A room is a machine: [`Room::handle`] takes one [`Input`], [`Room::poll_output`] gives what must be done until
//! `None`. It knows members, not connections, so it runs unchanged in a server, in the simulator, and from a
//! [`log`] of its inputs.

mod actions;
mod away;
mod budget;
pub mod log;
mod matches;
mod members;
mod migration;
mod paths;
mod primary;
mod relay;
mod replicas;
mod setup;
mod state;
mod view;

pub use matches::KeptEntry;
pub use migration::for_authority;
pub use setup::{Setup, SetupError};

use budget::Budgets;
use core::net::SocketAddr;
use matches::Keeping;
use members::Members;
use parlor_proto::session::{Outgoing, Tag};
use parlor_proto::wire::control::{LeaveReason, Presence, ToMember};
use parlor_proto::wire::handshake::{Authority, RoomKind};
use parlor_proto::{
    ChannelId, CloseReason, Epoch, Instant, LinkKind, MemberId, PeerMisbehaved, Tick, channel,
};
use parlor_sync::world::World;
use paths::Paths;
use primary::Primary;
use relay::Queues;
use replicas::Replicas;
use state::State;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use view::View;

use bytes::Bytes;

/// What a room is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Somebody takes the seat [`Room::next_member`].
    Join {
        /// What others may call it.
        name: String,
        /// Who it is, by its token: at most [`USER_BYTES_MAX`](parlor_proto::limits::USER_BYTES_MAX) bytes.
        user: Option<String>,
        /// How it is connected.
        link: LinkKind,
    },
    /// A member's session is over.
    Leave {
        /// Whose.
        member: MemberId,
        /// Why.
        reason: LeaveReason,
    },
    /// A member said something.
    Message {
        /// Who.
        from: MemberId,
        /// On which channel.
        channel: ChannelId,
        /// Under which key, if the channel is sequenced.
        key: u32,
        /// What.
        payload: Bytes,
        /// The room's epoch as the member knew it.
        epoch: Epoch,
    },
    /// What became of a state update.
    Fate {
        /// To whom it went.
        member: MemberId,
        /// The tag it had.
        tag: u64,
        /// Whether it arrived.
        delivered: bool,
    },
    /// A member's connection takes packets again, or takes none for now: of the state it is then given the newest alone.
    Writable {
        /// Whose.
        member: MemberId,
        /// Whether it takes packets.
        writable: bool,
    },
    /// A member's path carries so much: it is made no more state than that.
    Path {
        /// Whose.
        member: MemberId,
        /// All that goes over it included.
        bytes_per_second: u32,
    },
    /// A member's connection is lost; its seat is kept.
    Away {
        /// Whose.
        member: MemberId,
    },
    /// It has a connection again, or another one.
    Back {
        /// Who.
        member: MemberId,
        /// How it is connected.
        link: LinkKind,
    },
    /// A member's process began anew and has its seat again.
    Restarted {
        /// Whose.
        member: MemberId,
        /// How it is connected.
        link: LinkKind,
    },
    /// What the hub measured of a member.
    Measured(Presence),
    /// A member wants paths to other members beside the hub, or the hub sees it elsewhere than before.
    Reachable {
        /// Which.
        member: MemberId,
        /// The SHA-256 of the certificate that it shows on them.
        key: [u8; 32],
        /// Where the hub sees it, if that is where others may reach it.
        observed: Option<SocketAddr>,
        /// What the ids of its paths are made of: drawn by the hub. Only the first counts.
        seed: u64,
    },
    /// The authority has not acknowledged reliable messages for it up to the one that has this number in its session: it may have
    /// taken them all the same.
    Untaken {
        /// The highest of them.
        number: u64,
    },
    /// Nothing was heard of the authority for as long as a host may be silent.
    HostSilent {
        /// Those of whom something was heard meanwhile.
        heard: Vec<MemberId>,
    },
    /// Everything that had come was handled: send what there is to send.
    Flush,
    /// The server ends the room.
    End {
        /// Why.
        reason: CloseReason,
    },
}

/// What a room wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message to some members.
    Send {
        /// To whom.
        to: Vec<MemberId>,
        /// What: one encoding for all.
        message: Outgoing,
    },
    /// What is sent to members from here on is of this epoch.
    Epoch {
        /// Which.
        epoch: Epoch,
    },
    /// What the old authority has not taken of what is [for the authority](for_authority) goes to the new one.
    Succession(Succession),
    /// Append to the log of a match that is kept.
    Kept {
        /// The number of the entry: they count from 0, without gaps.
        number: u64,
        /// What happened.
        entry: KeptEntry,
    },
    /// End a member's session. The room has forgotten the member already.
    Remove {
        /// Whose.
        member: MemberId,
        /// Why.
        reason: CloseReason,
    },
    /// The room is over; all its members were removed.
    Ended {
        /// Why.
        reason: CloseReason,
    },
}

/// The part of the authority passed from one member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Succession {
    /// Whose part it was; its session may be over.
    pub from: Option<MemberId>,
    /// Whose it is.
    pub to: MemberId,
    /// Under which epoch it was the old one's.
    pub epoch: Epoch,
    /// Reliable messages whose numbers in the old one's session are below this are in the state that the new one goes on with.
    pub taken: u64,
}

/// A room. See the [module](self).
#[derive(Debug)]
pub struct Room {
    setup: Setup,
    schema_hash: u64,
    authority: Authority,
    epoch: Epoch,
    /// Who was the authority, and from which epoch on it was not any more.
    former: BTreeMap<MemberId, Epoch>,
    /// The highest number of a message that the authority may have taken, if there is one.
    untaken: Option<u64>,
    members: Members,
    /// Whom messages to the primary reach.
    primary: Primary,
    state: State,
    replicas: Replicas,
    paths: Paths,
    budgets: Budgets,
    /// Reliable messages that their senders' budgets do not allow yet.
    queues: Queues,
    /// Messages that were given an order so far.
    stamped: u64,
    /// If it is a match that is kept.
    keeping: Option<Keeping>,
    ended: bool,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// What a room counted since it opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that were relayed, counted once for each receiver.
    pub relayed: u64,
    /// Inputs that were passed on to the authority.
    pub inputs: u64,
    /// Inputs that were not passed on because more came than steps have passed.
    pub inputs_over_budget: u64,
    /// Unreliable messages that were not passed on because their sender sent too many, counted once for each receiver.
    pub over_budget: u64,
    /// Packets of state that the authority sent and that were taken in.
    pub updates: u64,
    /// Packets of state that came too late or again.
    pub updates_old: u64,
    /// What an authority of an older epoch said, and what it was ignored for.
    pub stale_epoch: u64,
    /// Messages to members that were gone.
    pub unreachable: u64,
    /// Packets of members' own states that came.
    pub own_states: u64,
    /// Actions that were passed on to the authority.
    pub actions: u64,
    /// Actions that were refused, here or by the authority.
    pub actions_refused: u64,
    /// How often another member became the authority.
    pub migrations: u64,
    /// Paths that a member and the authority were offered to try.
    pub paths_offered: u64,
    /// Paths over which the state came to a member.
    pub paths_up: u64,
    /// Addresses that members named and that could not be theirs, and lists of them that came too soon.
    pub candidates_refused: u64,
    /// How often the state went back for that to when nothing was missing.
    pub retreats: u64,
}

impl Room {
    /// A room without members. Whoever joins first is its host, unless it is a match.
    ///
    /// # Errors
    /// [`SetupError`] if the schema that its creator sent is none of a room.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let schema = Arc::new(setup.schema()?);
        let (rate, bytes_per_second) = (setup.settings.tick_rate, setup.state_bytes_per_second);
        let authority = match setup.settings.kind {
            RoomKind::Match => Authority::Hub,
            RoomKind::PlayerHosted | RoomKind::Dedicated => Authority::Member(MemberId(0)),
        };
        let keeping = (setup.settings.kind == RoomKind::Match && setup.settings.keep).then(Keeping::default);
        Ok(Room {
            schema_hash: schema.hash(),
            replicas: Replicas::new(rate, schema.interest().map(|interest| interest.radius)),
            state: State::new(schema, rate, bytes_per_second),
            authority,
            epoch: Epoch(0),
            former: BTreeMap::new(),
            untaken: None,
            members: Members::default(),
            primary: Primary::new(),
            paths: Paths::default(),
            budgets: Budgets::new(rate, bytes_per_second, setup.opened),
            queues: Queues::default(),
            setup,
            stamped: 0,
            keeping,
            ended: false,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// What it is.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The state as its authority published it, as far as it has arrived.
    #[must_use]
    pub fn world(&self) -> &World {
        self.state.world()
    }

    /// The hash of what its entities are made of: who reads them must have the same.
    #[must_use]
    pub fn schema_hash(&self) -> u64 {
        self.schema_hash
    }

    /// Who decides in it.
    #[must_use]
    pub fn authority(&self) -> Authority {
        self.authority
    }

    /// How often that has changed.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The step that is running at `now`, an instant of the hub's clock.
    #[must_use]
    pub fn tick_at(&self, now: Instant) -> Tick {
        self.setup.settings.tick_rate.tick_at(self.time_at(now))
    }

    /// The room's time at `now`, an instant of the hub's clock.
    #[must_use]
    pub fn time_at(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(self.setup.opened)
    }

    /// Members that are in it.
    pub fn member_ids(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.ids()
    }

    /// How many members are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// How many players are in it: a dedicated host is none.
    #[must_use]
    pub fn players(&self) -> usize {
        self.members.ids().filter(|id| self.is_player(*id)).count()
    }

    /// How many members it may have at once.
    fn members_max(&self) -> u16 {
        let settings = &self.setup.settings;
        settings.kind.members_max(settings.max_players)
    }

    fn is_player(&self, member: MemberId) -> bool {
        self.setup.settings.kind != RoomKind::Dedicated || self.authority != Authority::Member(member)
    }

    /// Whether another member fits in.
    #[must_use]
    pub fn has_seat(&self) -> bool {
        self.members.len() < usize::from(self.members_max()) && self.members.can_seat()
    }

    /// Whether it is over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The id that the next [`Input::Join`] gives.
    #[must_use]
    pub fn next_member(&self) -> MemberId {
        self.members.next_id()
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether something waits for time to pass: let it [`Flush`](Input::Flush) now and then.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.queues.is_empty() || self.state.is_waiting() || self.replicas.is_waiting()
    }

    /// Takes an input in that came at `now`, an instant of the hub's clock. After [`Output::Ended`] it does nothing any
    /// more.
    ///
    /// # Errors
    /// A member and what it did, if it said what it must not; nothing has changed then, but for what a packet of state said
    /// before its fault, and the caller ends that member's session.
    pub fn handle(&mut self, input: Input, now: Instant) -> Result<(), (MemberId, PeerMisbehaved)> {
        if self.ended {
            return Ok(());
        }
        match input {
            Input::Join { name, user, link } => self.join(name, user, link, now),
            Input::Leave { member, reason } => self.leave(member, reason),
            Input::Message { from, channel, key, payload, epoch } => {
                let said = self.message(from, channel, key, payload, epoch, now);
                return said.map_err(|how| (from, how));
            }
            Input::Fate { member, tag, delivered } => self.fate(member, Tag(tag), delivered),
            Input::Writable { member, writable } => {
                self.state.writable(member, writable);
                self.replicas.writable(member, writable);
            }
            Input::Path { member, bytes_per_second } => {
                self.state.path(member, Some(bytes_per_second));
                self.budgets.set_path(member, Some(bytes_per_second));
            }
            Input::Away { member } => self.away(member),
            Input::Back { member, link } => self.back(member, link),
            Input::Restarted { member, link } => self.restarted(member, link, now),
            Input::Reachable { member, key, observed, seed } => self.reachable(member, key, observed, seed),
            Input::Untaken { number } => self.untaken = Some(number),
            Input::HostSilent { heard } => self.host_silent(&heard),
            Input::Measured(presence) => self.measured(presence),
            Input::Flush => return self.flush(now),
            Input::End { reason } => self.end(&reason),
        }
        Ok(())
    }

    /// What must be done, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn join(&mut self, name: String, user: Option<String>, link: LinkKind, now: Instant) {
        let newcomer = self.members.seat(name, user, link);
        if self.authority.member().is_some_and(|authority| authority != newcomer) {
            self.state.add(newcomer);
        }
        self.replicas.add(newcomer);
        self.keep_joined(newcomer);
        self.greet(newcomer, now);
        let info = self.members.get(newcomer).expect("it was just seated").info.clone();
        let (news, told) = (ToMember::Joined(info), self.seers_of(newcomer));
        self.control(told, &news);
        if self.is_player(newcomer) && self.primary.joined(newcomer) {
            self.tell_primary(self.members.ids().collect());
        } else if self.primary.primary().is_some() {
            self.tell_primary(vec![newcomer]);
        }
    }

    fn fate(&mut self, member: MemberId, tag: Tag, delivered: bool) {
        match tag.stream() {
            (None, number) => self.state.fate(member, number, delivered),
            (Some(source), number) => self.replicas.fate(member, source, number, delivered),
        }
    }

    fn measured(&mut self, presence: Presence) {
        if self.primary.measured(&presence) {
            self.tell_primary(self.members.ids().collect());
        }
        self.members.measured(presence);
    }

    /// Tells those of them who may know of the primary who it is.
    fn tell_primary(&mut self, mut to: Vec<MemberId>) {
        let primary = self.primary.primary();
        to.retain(|member| primary.is_none_or(|primary| self.view(*member).sees_member(primary)));
        self.control(to, &ToMember::Primary(primary));
    }

    fn leave(&mut self, member: MemberId, reason: LeaveReason) {
        let told = self.seers_of(member);
        if self.members.remove(member).is_none() {
            return;
        }
        self.state.remove(member);
        self.replicas.remove(member);
        self.paths.remove(member);
        self.budgets.remove(member);
        self.queues.remove(member);
        let is_host_still = !self.without(member);
        self.former.remove(&member);
        self.keep(KeptEntry::Left { member, reason: reason.clone() });
        if self.is_match() && self.is_empty() {
            return self.end(&CloseReason::Left);
        }
        if is_host_still && self.authority == Authority::Member(member) {
            let reason = match reason {
                LeaveReason::Left | LeaveReason::Kicked { .. } => CloseReason::HostLeft,
                _ => CloseReason::HostGone,
            };
            return self.end(&reason);
        }
        self.control(told, &ToMember::Left { member, reason });
        if self.primary.left(member) {
            self.tell_primary(self.members.ids().collect());
        }
    }

    fn end(&mut self, reason: &CloseReason) {
        let members: Vec<MemberId> = self.members.ids().collect();
        for member in members {
            self.members.remove(member);
            self.outputs.push_back(Output::Remove { member, reason: reason.clone() });
        }
        self.ended = true;
        self.keep(KeptEntry::Ended);
        self.outputs.push_back(Output::Ended { reason: reason.clone() });
    }

    fn message(
        &mut self,
        from: MemberId,
        channel: ChannelId,
        key: u32,
        payload: Bytes,
        epoch: Epoch,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        self.check_place(channel)?;
        match channel {
            channel::CONTROL => self.control_from(from, payload, now),
            channel::STATE => self.state_from(from, payload, epoch),
            channel::INPUT => self.input_from(from, payload, now),
            channel::ACTIONS => self.action_from(from, payload, now),
            channel::REPLICAS => self.own_state_from(from, payload, now),
            channel => self.relay_from(from, channel, key, payload, now),
        }
    }

    /// Whether a member is the authority. Who was it may not have heard yet that it is no more, and its word is ignored; of
    /// anybody else it is a fault.
    fn is_word_of_authority(&mut self, from: MemberId, what: &'static str) -> Result<bool, PeerMisbehaved> {
        if self.authority == Authority::Member(from) {
            return Ok(true);
        }
        if !self.former.contains_key(&from) {
            return Err(PeerMisbehaved::NotAuthority { what });
        }
        self.counters.stale_epoch += 1;
        Ok(false)
    }

    fn flush(&mut self, now: Instant) -> Result<(), (MemberId, PeerMisbehaved)> {
        let released = self.release(now);
        self.flush_presence(now);
        self.flush_state(now);
        self.flush_replicas(now);
        released
    }

    /// What `member` may know. Presence, state and what a newcomer is told all come through here.
    fn view(&self, member: MemberId) -> View<'_> {
        View::new(member, &self.members)
    }

    /// The other members that may know of `member`.
    fn seers_of(&self, member: MemberId) -> Vec<MemberId> {
        self.members.ids().filter(|other| *other != member && self.view(*other).sees_member(member)).collect()
    }

    /// Says something to members, and how many bytes it has.
    fn control(&mut self, to: Vec<MemberId>, message: &ToMember) -> usize {
        let payload = message.encode();
        let bytes = payload.len();
        if !to.is_empty() {
            self.outputs.push_back(Output::Send { to, message: Outgoing::new(channel::CONTROL, payload) });
        }
        bytes
    }
}
