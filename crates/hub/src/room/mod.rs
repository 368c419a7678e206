//! One room: its members, their messages and the state they share.
//!
//! A room is a pure machine: [`Room::handle`] takes one [`Input`], [`Room::poll_output`] returns actions
//! until `None`. It knows members, not connections, so it runs unchanged in a server, in the simulator, and
//! from a [`log`] of its inputs.

mod actions;
mod budget;
mod delayed;
mod disconnect;
mod input;
pub mod log;
mod matches;
mod members;
mod memory;
mod mesh;
mod migration;
mod pasts;
mod paths;
mod primary;
mod relay;
mod reopen;
mod replicas;
mod returns;
pub mod roster;
mod setup;
pub mod snapshot;
mod spectators;
mod state;
mod terms;
mod view;

pub use input::Input;
pub use matches::KeptEntry;
pub use members::MemberSummary;
pub use migration::for_authority;
pub use setup::{Setup, SetupError};

use budget::Budgets;
use matches::Keeping;
use members::{Member, Members};
use parlor_proto::session::{DeliveryId, Outgoing};
use parlor_proto::wire::control::{LeaveReason, Presence, RoomTerms, ToMember};
use parlor_proto::wire::handshake::{Authority, RoomKind};
use parlor_proto::{ChannelId, CloseReason, Epoch, Instant, MemberId, PeerMisbehaved, Tick, channel};
use parlor_sync::world::World;
use pasts::Pasts;
use paths::Paths;
use primary::Primary;
use relay::Queues;
use replicas::Replicas;
use state::State;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use view::View;

use bytes::Bytes;

/// An action for the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message to some members.
    Send {
        /// The receivers.
        to: Vec<MemberId>,
        /// The message: one encoding for all.
        message: Outgoing,
    },
    /// Messages to members belong to this epoch from here on.
    Epoch {
        /// The new epoch.
        epoch: Epoch,
    },
    /// Pass messages [for the authority](for_authority) that the old one has not processed on to the new one.
    Succession(Succession),
    /// Append to the log of a kept match.
    Kept {
        /// The number of the entry: counts from 0, without gaps.
        number: u64,
        /// The entry.
        entry: KeptEntry,
    },
    /// End a member's session. The room has forgotten the member already.
    Remove {
        /// The member.
        member: MemberId,
        /// The reason.
        reason: CloseReason,
    },
    /// A member that was lost shall not return: the room has forgotten it already.
    Forgotten {
        /// The member.
        member: MemberId,
    },
    /// A member set the room's terms: its own session has them at once.
    Terms {
        /// The member.
        by: MemberId,
    },
    /// The room is over; all its members were removed.
    Ended {
        /// The reason.
        reason: CloseReason,
    },
}

/// The authority moved from one member to another, or to a new process of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The old authority; its session may be over.
    pub from: Option<MemberId>,
    /// The new authority.
    pub to: MemberId,
    /// The old authority's epoch.
    pub epoch: Epoch,
    /// The state includes reliable messages with lower numbers in the old authority's session.
    pub taken: u64,
}

/// A room. See the [module](self).
#[derive(Debug)]
pub struct Room {
    setup: Setup,
    schema_hash: u64,
    authority: Authority,
    epoch: Epoch,
    /// Former authorities, and the epoch from which each was replaced.
    former: BTreeMap<MemberId, Epoch>,
    /// When an authority last handed its part over.
    handed_over_at: Option<Instant>,
    /// The highest number of a message that the authority may have processed without acknowledging it.
    untaken: Option<u64>,
    members: Members,
    pasts: Pasts,
    terms: RoomTerms,
    /// How many spectators its opener wants at most.
    spectators: u16,
    /// Receives the messages addressed to the primary.
    primary: Primary,
    state: State,
    replicas: Replicas,
    paths: Paths,
    budgets: Budgets,
    /// Reliable messages that exceed their senders' budgets for now.
    queues: Queues,
    /// Number of messages that were given an order.
    stamped: u64,
    /// Set if it is a kept match.
    keeping: Option<Keeping>,
    /// Whether it is the delayed copy of a room: it sends to spectators alone.
    is_copy: bool,
    ended: bool,
    outputs: VecDeque<Output>,
    counters: Counters,
}

/// Counters of a room since it opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages relayed, counted once for each receiver.
    pub relayed: u64,
    /// Inputs passed on to the authority.
    pub inputs: u64,
    /// Inputs dropped because they came faster than steps pass.
    pub inputs_over_budget: u64,
    /// Unreliable messages dropped because their sender exceeded its budget, counted once for each receiver.
    pub over_budget: u64,
    /// State packets of the authority that were applied.
    pub updates: u64,
    /// State packets that were late or duplicates.
    pub updates_old: u64,
    /// Messages of a former authority that were ignored.
    pub stale_epoch: u64,
    /// Messages to members that had left.
    pub unreachable: u64,
    /// Packets received of members' own states.
    pub own_states: u64,
    /// Actions passed on to the authority.
    pub actions: u64,
    /// Actions refused, by the room or by the authority.
    pub actions_refused: u64,
    /// Host migrations.
    pub migrations: u64,
    /// Direct paths offered between a member and the authority.
    pub paths_offered: u64,
    /// Direct paths that carried state to a member.
    pub paths_up: u64,
    /// Candidate addresses refused as implausible, and candidate lists refused as too frequent.
    pub candidates_refused: u64,
    /// Migrations in which the state was rolled back to the last complete version.
    pub retreats: u64,
}

impl Room {
    /// Creates a room without members. The first member to join is its host, unless it is a match.
    ///
    /// # Errors
    /// [`SetupError`] if the creator's schema is not one of a room.
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
            handed_over_at: None,
            untaken: None,
            members: Members::default(),
            pasts: Pasts::default(),
            terms: RoomTerms::default(),
            spectators: setup.spectators,
            primary: Primary::new(),
            paths: Paths::default(),
            budgets: Budgets::new(rate, bytes_per_second, setup.opened),
            queues: Queues::default(),
            setup,
            stamped: 0,
            keeping,
            is_copy: false,
            ended: false,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// Returns its setup.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the state as published by the authority, as far as it has arrived.
    pub fn world(&self) -> &World {
        self.state.world()
    }

    /// Returns the hash of its schema. Readers of the state must have the same.
    pub fn schema_hash(&self) -> u64 {
        self.schema_hash
    }

    /// Returns the authority.
    pub fn authority(&self) -> Authority {
        self.authority
    }

    /// Returns the epoch: how often the authority has changed.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the tick at `now`, an instant of the hub's clock.
    pub fn tick_at(&self, now: Instant) -> Tick {
        self.setup.settings.tick_rate.tick_at(self.time_at(now))
    }

    /// Returns the room's time at `now`, an instant of the hub's clock.
    pub fn time_at(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(self.setup.opened)
    }

    /// Returns the ids of its members.
    pub fn member_ids(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.members.ids()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// Returns the number of players; a dedicated host and spectators do not count.
    pub fn players(&self) -> usize {
        self.members.ids().filter(|id| self.is_player(*id)).count()
    }

    /// Returns the maximum number of members that are no spectators.
    fn members_max(&self) -> u16 {
        let settings = &self.setup.settings;
        settings.kind.members_max(settings.max_players)
    }

    fn is_player(&self, member: MemberId) -> bool {
        let is_host = || self.authority == Authority::Member(member);
        !self.spectates(member) && (self.setup.settings.kind != RoomKind::Dedicated || !is_host())
    }

    /// Whether a seat is free for a new member: one for spectators if it `spectates`.
    pub fn has_seat(&self, spectates: bool) -> bool {
        self.has_free_seat(spectates) && self.members.can_seat(spectates)
    }

    /// Whether a seat is free for a member that returns: one for spectators if it `spectates`.
    pub fn has_free_seat(&self, spectates: bool) -> bool {
        let spectators = self.members.spectators();
        match spectates {
            true => spectators < usize::from(self.spectators_max()),
            false => self.members.len() - spectators < usize::from(self.members_max()),
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the id that the next [`Input::Join`] assigns. In a [copy](Self::delayed_copy) it is that of the next
    /// spectator.
    pub fn next_member(&self) -> MemberId {
        self.members.next_id(self.is_copy)
    }

    /// Returns its counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether output waits for time to pass, so that it needs a periodic [`Flush`](Input::Flush).
    pub fn has_waiting(&self) -> bool {
        !self.queues.is_empty() || self.state.is_waiting() || self.replicas.is_waiting()
    }

    /// Handles an input that came at `now`, an instant of the hub's clock. Does nothing after
    /// [`Output::Ended`].
    ///
    /// # Errors
    /// The misbehaving member and its violation. Nothing has changed then, except by the valid part of a
    /// state packet. The caller ends that member's session.
    pub fn handle(&mut self, input: Input, now: Instant) -> Result<(), (MemberId, PeerMisbehaved)> {
        if self.ended {
            return Ok(());
        }
        match input {
            Input::Join { name, user, link, spectates } => {
                let newcomer = self.members.seat(name, user, link, spectates);
                self.seated(newcomer, now);
            }
            Input::Leave { member, reason } => self.leave(member, reason),
            Input::Message { from, channel, key, payload, epoch } => {
                let said = self.message(from, channel, key, payload, epoch, now);
                return said.map_err(|how| (from, how));
            }
            Input::Fate { member, delivery_id, delivered } => {
                self.fate(member, DeliveryId(delivery_id), delivered)
            }
            Input::Writable { member, writable } => {
                self.state.writable(member, writable);
                self.replicas.writable(member, writable);
            }
            Input::Path { member, bytes_per_second } => {
                self.state.path(member, Some(bytes_per_second));
                self.budgets.set_path(member, Some(bytes_per_second));
            }
            Input::Lost { member, reason } => self.lost(member, reason),
            Input::Returned { member, name, user, link } => self.returned(member, name, user, link, now),
            Input::Forget { member } => drop(self.forget(member)),
            Input::Away { member, reason } => self.away(member, reason, now),
            Input::Back { member, link } => self.back(member, link),
            Input::Restarted { member, link } => self.restarted(member, link, now),
            Input::Reachable { member, key, observed, seed } => self.reachable(member, key, observed, seed),
            Input::Untaken { number } => self.untaken = Some(number),
            Input::HostSilent { heard } => self.host_silent(&heard),
            Input::Measured(presence) => self.measured(presence),
            Input::Sealed => return self.pass_on_all(),
            Input::Flush => return self.flush(now),
            Input::End { reason } => self.end(&reason),
            Input::Reopened(reopening) => self.reopen(reopening),
            Input::Claimed { seat, how } => self.claimed(seat, how, now),
        }
        Ok(())
    }

    /// Returns the next action, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Announces a member that has just taken its seat.
    fn seated(&mut self, newcomer: MemberId, now: Instant) {
        self.receives(newcomer);
        self.keep_joined(newcomer);
        self.greet(newcomer, now);
        self.announce(newcomer);
        self.greet_with_primary(newcomer);
    }

    /// Begins the streams of state to a member that has just taken its seat.
    fn receives(&mut self, newcomer: MemberId) {
        if self.sends_to(newcomer) {
            if self.authority.member().is_some_and(|authority| authority != newcomer) {
                self.state.add(newcomer);
            }
            self.replicas.add(newcomer);
        }
    }

    /// Tells the others of a newcomer.
    fn announce(&mut self, newcomer: MemberId) {
        let info = self.members.get(newcomer).expect("it was just seated").info.clone();
        let (news, told) = (ToMember::Joined(info), self.seers_of(newcomer));
        if let Some(spectators) = self.told_spectators(&[newcomer]) {
            self.control(told.clone(), &spectators);
        }
        self.control(told, &news);
    }

    fn greet_with_primary(&mut self, newcomer: MemberId) {
        if self.is_player(newcomer) && self.primary.joined(newcomer) {
            self.tell_primary(self.members.ids().collect());
        } else if self.primary.primary().is_some() {
            self.tell_primary(vec![newcomer]);
        }
    }

    fn fate(&mut self, member: MemberId, delivery_id: DeliveryId, delivered: bool) {
        match delivery_id.stream() {
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

    /// Tells those of `to` that may know the primary which member it is.
    fn tell_primary(&mut self, mut to: Vec<MemberId>) {
        let primary = self.primary.primary();
        to.retain(|member| primary.is_none_or(|primary| self.view(*member).sees_member(primary)));
        self.control(to, &ToMember::Primary(primary));
    }

    fn leave(&mut self, member: MemberId, reason: LeaveReason) {
        let told = self.seers_of(member);
        let Some(Member { spectates, .. }) = self.members.remove(member) else { return };
        self.state.remove(member);
        self.replicas.remove(member);
        self.paths.remove(member);
        self.budgets.remove(member);
        self.queues.remove(member);
        let is_host_still = !self.without(member);
        self.former.remove(&member);
        if !spectates {
            self.keep(KeptEntry::Left { member, reason: reason.clone() });
        }
        if self.is_match() && self.players() == 0 {
            return self.end(&self.reason_without_players());
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
        if !matches!(channel, channel::CONTROL | channel::ROLLBACK) {
            self.check_player(from, "an input, a message, an action or a state")?;
        }
        match channel {
            channel::CONTROL => self.control_from(from, payload, now),
            channel::STATE => self.state_from(from, payload, epoch),
            channel::INPUT => self.input_from(from, payload, now),
            channel::ACTIONS => self.action_from(from, payload, now),
            channel::REPLICAS => self.own_state_from(from, payload, now),
            channel => self.relay_from(from, channel, key, payload, now),
        }
    }

    /// Whether a member is the authority. A former authority may not know of its replacement yet and is
    /// ignored; for any other member the message is a violation.
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

    /// Returns the view of `member`. Presence, state and greetings are all filtered by it.
    fn view(&self, member: MemberId) -> View<'_> {
        View::new(member, &self.members)
    }

    /// Returns the other members that may know of `member`.
    fn seers_of(&self, member: MemberId) -> Vec<MemberId> {
        self.members.ids().filter(|other| *other != member && self.view(*other).sees_member(member)).collect()
    }

    /// Sends a control message to members; returns its size in bytes.
    fn control(&mut self, to: Vec<MemberId>, message: &ToMember) -> usize {
        let payload = message.encode();
        let bytes = payload.len();
        if !to.is_empty() {
            self.outputs.push_back(Output::Send { to, message: Outgoing::new(channel::CONTROL, payload) });
        }
        bytes
    }
}
