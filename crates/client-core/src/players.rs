//! The players of the room and its spectators, as the hub announced them.

use crate::error::RoomError;
use crate::event::Event;
use crate::inbox::Inbox;
use bytes::Bytes;
use parlor_proto::OrderedMap;
use parlor_proto::wire::action::RefusedAction;
use parlor_proto::wire::control::{HandOverRefusal, LeaveReason, MemberInfo, PlayerData, Presence, ToMember};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ApiMisuse, CloseReason, LinkKind, MemberId, limits};
use parlor_sync::value::{Value, ValueError, from_value};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// A participant of the room: a player, or a spectator.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// Its id, never reused in the same room. 0 is the member that opened the room.
    pub id: MemberId,
    /// Its display name, chosen by the player.
    pub name: String,
    /// Its account, from the token that admitted it; `None` if anonymous. Unlike the name, the server vouches
    /// for it.
    pub user: Option<String>,
    /// Round trip between it and the hub in ms, once measured.
    pub rtt_ms: Option<u32>,
    /// Whether its connection stands.
    pub connected: bool,
    /// Whether its connection is slower than the room's traffic to it.
    pub slow: bool,
    /// Whether it is the authority of the room.
    pub is_host: bool,
    /// Whether it is this process.
    pub is_me: bool,
    /// Whether it watches only. Spectators are listed apart from players.
    pub is_spectator: bool,
    /// How this process reaches it.
    pub transport: Transport,
    /// Whether it and the host have a direct path.
    pub direct: bool,
    /// Its own link to the hub.
    link: LinkKind,
    data: Arc<OrderedMap<String, Value>>,
}

/// How this process reaches another player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// It is this process.
    Local,
    /// Through the hub. The value is the player's own link to the hub.
    Relay(LinkKind),
    /// Over a direct path.
    Direct,
}

impl Transport {
    /// Returns the name in JSON and in messages to people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Transport::Local => "local",
            Transport::Direct => "direct_udp",
            Transport::Relay(LinkKind::Quic) => "relay_quic",
            Transport::Relay(LinkKind::WebSocket) => "relay_websocket",
            Transport::Relay(LinkKind::Memory) => "relay_memory",
            Transport::Relay(LinkKind::WebTransport) => "relay_webtransport",
            Transport::Relay(LinkKind::Unknown(_)) => "relay_unknown",
        }
    }
}

impl Player {
    /// Decodes a value of its player data.
    ///
    /// # Errors
    /// [`ValueError`] if the value does not match the type.
    pub fn data<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ValueError> {
        self.data.get(key).map(from_value).transpose()
    }

    /// Its own link to the hub.
    pub fn link(&self) -> LinkKind {
        self.link
    }

    /// A value of its player data as it travels.
    fn encoded(&self, key: &str) -> Option<Bytes> {
        self.data.get(key)?.encode(limits::PLAYER_DATA_VALUE_BYTES_MAX).ok()
    }

    /// All of its player data, by key.
    pub fn all_data(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.data.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Changes of a player's presence.
#[derive(Clone, Copy, Debug, Default)]
struct PresenceNews {
    slow: Option<bool>,
    /// Set for other players only.
    connected: Option<bool>,
}

/// The players of a room and its spectators, by id. A driver shares the lists with its game
/// ([`shared`](Self::shared)): what a game has read stays as it is, and a change is made in a copy.
#[derive(Debug)]
pub(super) struct Players {
    me: MemberId,
    all: Arc<Vec<Player>>,
    spectators: Arc<Vec<Player>>,
    /// The spectators among the members that the hub announces next.
    next_spectators: Vec<MemberId>,
    /// Members that the hub has yet to announce.
    greeting_left: u16,
    /// The recipient of messages to the primary.
    primary: Option<MemberId>,
    /// Members of a reopened room that its hub has not announced. They are gone once it has announced all.
    unconfirmed: Vec<MemberId>,
    /// Whether the room was reopened. Then members repeat their player data.
    has_reopened: bool,
}

impl Players {
    /// The players of a room, of which the hub is about to announce `members`.
    pub(super) fn new(me: MemberId, members: u16) -> Self {
        Players {
            me,
            all: Arc::default(),
            spectators: Arc::default(),
            next_spectators: Vec::new(),
            greeting_left: members,
            primary: None,
            unconfirmed: Vec::new(),
            has_reopened: false,
        }
    }

    /// Begins the list of a reopened room, of which the hub is about to announce `members`. Those that this process
    /// knows are no news to the game.
    pub(super) fn reopened(&mut self, members: u16) {
        self.unconfirmed = self.members().map(|player| player.id).collect();
        (self.greeting_left, self.has_reopened) = (members, true);
    }

    /// Whether a message announces a member of a reopened room that this process knows.
    pub(super) fn is_confirmed_by(&self, control: &ToMember) -> bool {
        matches!(control, ToMember::Joined(info) if self.unconfirmed.contains(&info.id))
    }

    /// The members that are gone once this message is heard, because it is the last to announce one of a reopened room.
    pub(super) fn left_by(&self, control: &ToMember) -> Vec<MemberId> {
        match control {
            ToMember::Joined(info) if self.greeting_left == 1 => {
                self.unconfirmed.iter().copied().filter(|id| *id != info.id).collect()
            }
            _ => Vec::new(),
        }
    }

    /// This player's data, as it tells the hub of a reopened room.
    pub(super) fn own_data(&self) -> Vec<PlayerData> {
        let mut own = Vec::new();
        let Some(player) = self.get(self.me) else { return own };
        for key in player.data.keys() {
            own.push(PlayerData { member: self.me, key: key.clone(), value: player.encoded(key) });
        }
        own
    }

    /// Whether the hub has announced all members that were there when this process joined.
    pub(super) fn is_complete(&self) -> bool {
        self.greeting_left == 0
    }

    /// The recipient of messages to the primary, if there is one.
    pub(super) fn primary(&self) -> Option<MemberId> {
        self.primary
    }

    /// Checks that the named recipients are in the room, and names each once. The list is then shorter than the
    /// hub's limit.
    ///
    /// # Errors
    /// [`ApiMisuse::NoSuchPlayer`].
    pub(super) fn check_recipient(&self, to: &mut Recipient) -> Result<(), ApiMisuse> {
        if let Recipient::Members(members) | Recipient::Except(members) = to {
            members.sort_unstable();
            members.dedup();
        }
        let named: &[MemberId] = match to {
            Recipient::Member(member) => std::slice::from_ref(member),
            Recipient::Members(members) => members,
            Recipient::Authority
            | Recipient::Others
            | Recipient::Everyone
            | Recipient::Primary
            | Recipient::Except(_) => &[],
        };
        let unknown = named.iter().find(|member| self.member(**member).is_none());
        unknown.map_or(Ok(()), |member| Err(ApiMisuse::NoSuchPlayer(*member)))
    }

    /// Queues the events of a room that this process lost: all players and spectators are gone.
    ///
    /// # Errors
    /// [`CloseReason::NotPolled`] if too many events wait.
    pub(super) fn tell_gone(&self, inbox: &mut Inbox) -> Result<(), CloseReason> {
        self.members().try_for_each(|player| {
            inbox.tell_bounded(left_event(player.clone(), LeaveReason::ConnectionLost), 0)
        })
    }

    /// Applies a control message of the hub about members, and queues its events. `host` is the room's
    /// authority.
    ///
    /// # Errors
    /// [`CloseReason::NotPolled`] if too many events wait.
    pub(super) fn hear(
        &mut self,
        control: ToMember,
        host: Option<MemberId>,
        inbox: &mut Inbox,
    ) -> Result<(), CloseReason> {
        match control {
            ToMember::Joined(info) => {
                self.greeting_left = self.greeting_left.saturating_sub(1);
                let known = self.unconfirmed.len();
                self.unconfirmed.retain(|id| *id != info.id);
                if self.unconfirmed.len() < known {
                    self.confirmed(info, host, inbox)?;
                } else {
                    let bytes = info.data.iter().map(|(key, value)| key.len() + value.len()).sum();
                    let joined = self.joined(info, host);
                    let event = match joined.is_spectator {
                        true => Event::SpectatorJoined(joined),
                        false => Event::PlayerJoined(joined),
                    };
                    inbox.tell_bounded(event, bytes)?;
                }
                if self.is_complete() {
                    for id in std::mem::take(&mut self.unconfirmed) {
                        self.tell_left(id, LeaveReason::ConnectionLost, inbox)?;
                    }
                }
            }
            ToMember::Spectators(members) => self.next_spectators = members,
            ToMember::Direct { member, direct } => self.set_direct(member, direct),
            ToMember::Left { member, reason } => self.tell_left(member, reason, inbox)?,
            ToMember::Data(data) => self.tell_data(data, inbox)?,
            ToMember::Presence(list) => {
                list.into_iter().try_for_each(|presence| self.tell_presence(presence, inbox))?;
            }
            ToMember::Away { member: id, reason } => {
                if self.away(id) && !self.is_other_spectator(id) {
                    inbox.tell_bounded(Event::PlayerLost { id, reason }, 0)?;
                }
            }
            ToMember::Throttled => inbox.tell_bounded(Event::Throttled, 0)?,
            ToMember::Primary(member) => {
                self.primary = member;
                inbox.tell_bounded(Event::Primary { member }, 0)?;
            }
            ToMember::ActionRefused(RefusedAction { entity, name, why }) => {
                let bytes = name.len();
                inbox.tell_bounded(Event::ActionRefused { entity, name, why }, bytes)?;
            }
            // These change more than the players.
            ToMember::Authority(_)
            | ToMember::GoesOn { .. }
            | ToMember::Path(_)
            | ToMember::ActionsDecided(_)
            | ToMember::NotHandedOver(_)
            | ToMember::Reopened { .. } => {}
        }
        Ok(())
    }

    fn tell_left(&mut self, id: MemberId, reason: LeaveReason, inbox: &mut Inbox) -> Result<(), CloseReason> {
        let left = self.left(id);
        left.map_or(Ok(()), |player| inbox.tell_bounded(left_event(player, reason), 0))
    }

    fn tell_data(&mut self, data: PlayerData, inbox: &mut Inbox) -> Result<(), CloseReason> {
        let Some(value) = self.data_changed(&data) else { return Ok(()) };
        let bytes = data.value.as_ref().map_or(0, Bytes::len);
        inbox.tell_bounded(Event::PlayerData { id: data.member, key: data.key, value }, bytes)
    }

    fn tell_presence(&mut self, presence: Presence, inbox: &mut Inbox) -> Result<(), CloseReason> {
        let (id, news) = (presence.member, self.measured(presence));
        if self.is_other_spectator(id) {
            return Ok(());
        }
        if let Some(slow) = news.slow {
            inbox.tell_bounded(Event::Slow { id, slow }, 0)?;
        }
        match news.connected {
            Some(true) => inbox.tell_bounded(Event::PlayerBack { id }, 0),
            // A hub that does not say why tells this alone.
            Some(false) => {
                inbox.tell_bounded(Event::PlayerLost { id, reason: LeaveReason::ConnectionLost }, 0)
            }
            None => Ok(()),
        }
    }

    /// Updates a known member of a reopened room. Player data that its hub does not have yet stays: its member says it
    /// again.
    fn confirmed(
        &mut self,
        info: MemberInfo,
        host: Option<MemberId>,
        inbox: &mut Inbox,
    ) -> Result<(), CloseReason> {
        let MemberInfo { id, link, presence, data, .. } = info;
        if let Some(player) = self.member_mut(id) {
            (player.link, player.direct, player.is_host) = (link, false, host == Some(id));
        }
        self.tell_presence(presence, inbox)?;
        for (key, value) in data {
            self.tell_data(PlayerData { member: id, key, value: Some(value) }, inbox)?;
        }
        Ok(())
    }

    /// A player.
    pub(super) fn get(&self, id: MemberId) -> Option<&Player> {
        at(&self.all, id).ok().map(|at| &self.all[at])
    }

    /// A player or a spectator.
    pub(super) fn member(&self, id: MemberId) -> Option<&Player> {
        self.get(id).or_else(|| at(&self.spectators, id).ok().map(|at| &self.spectators[at]))
    }

    /// All members: players, then spectators.
    pub(super) fn members(&self) -> impl Iterator<Item = &Player> {
        self.all.iter().chain(self.spectators.iter())
    }

    /// Whether a message is about a spectator that joins or leaves.
    pub(super) fn is_of_spectator(&self, control: &ToMember) -> bool {
        match control {
            ToMember::Joined(info) => self.next_spectators.contains(&info.id),
            ToMember::Left { member, .. } => self.get(*member).is_none(),
            _ => false,
        }
    }

    fn is_other_spectator(&self, id: MemberId) -> bool {
        self.member(id).is_some_and(|player| player.is_spectator && !player.is_me)
    }

    pub(super) fn all(&self) -> &[Player] {
        &self.all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Player> {
        self.all.iter()
    }

    pub(super) fn shared(&self) -> &Arc<Vec<Player>> {
        &self.all
    }

    pub(super) fn spectators(&self) -> &Arc<Vec<Player>> {
        &self.spectators
    }

    fn member_mut(&mut self, id: MemberId) -> Option<&mut Player> {
        let list = if self.get(id).is_some() { &mut self.all } else { &mut self.spectators };
        let at = at(list, id).ok()?;
        Arc::make_mut(list).get_mut(at)
    }

    /// Why a player cannot become the host, as far as this process knows: a named one, or any but this one.
    pub(super) fn unfit(&self, named: Option<MemberId>) -> Option<HandOverRefusal> {
        match named.map(|named| self.get(named)) {
            Some(None) if named.is_some_and(|named| self.is_other_spectator(named)) => {
                Some(HandOverRefusal::Spectator)
            }
            Some(None) => Some(HandOverRefusal::NoSuchPlayer),
            Some(Some(player)) if !player.connected => Some(HandOverRefusal::NotReady),
            None if !self.all.iter().any(|player| !player.is_me && player.connected) => {
                Some(HandOverRefusal::Nobody)
            }
            _ => None,
        }
    }

    /// Sets which player is the host.
    pub(super) fn set_host(&mut self, host: MemberId) {
        Arc::make_mut(&mut self.all).iter_mut().for_each(|player| player.is_host = player.id == host);
    }

    /// Sets which players this process reaches over a direct path.
    pub(super) fn set_reached(&mut self, is_direct: impl Fn(MemberId) -> bool) {
        let reached = |player: &Player| match (player.is_me, is_direct(player.id)) {
            (true, _) => Transport::Local,
            (false, true) => Transport::Direct,
            (false, false) => Transport::Relay(player.link),
        };
        for list in [&mut self.all, &mut self.spectators] {
            if list.iter().any(|player| player.transport != reached(player)) {
                Arc::make_mut(list).iter_mut().for_each(|player| player.transport = reached(player));
            }
        }
    }

    /// Adds a player. Values that cannot be decoded are left out.
    fn joined(&mut self, info: MemberInfo, host: Option<MemberId>) -> Player {
        let MemberInfo { id, name, user, link, presence, data } = info;
        let (is_me, is_spectator) = (id == self.me, self.next_spectators.contains(&id));
        let data = data.into_iter().filter_map(|(key, value)| Some((key, Value::decode(value).ok()?)));
        let player = Player {
            id,
            name,
            user,
            rtt_ms: presence.rtt_ms,
            connected: presence.connected,
            slow: presence.slow,
            is_host: host == Some(id),
            is_me,
            is_spectator,
            transport: if is_me { Transport::Local } else { Transport::Relay(link) },
            direct: false,
            link,
            data: Arc::new(data.collect()),
        };
        let list = if is_spectator { &mut self.spectators } else { &mut self.all };
        let (at, list) = (at(list, id), Arc::make_mut(list));
        match at {
            Ok(at) => list[at] = player.clone(),
            Err(at) => list.insert(at, player.clone()),
        }
        player
    }

    fn set_direct(&mut self, id: MemberId, direct: bool) {
        if let Some(player) = self.member_mut(id) {
            player.direct = direct;
        }
    }

    fn left(&mut self, id: MemberId) -> Option<Player> {
        let list = if self.get(id).is_some() { &mut self.all } else { &mut self.spectators };
        let at = at(list, id).ok()?;
        Some(Arc::make_mut(list).remove(at))
    }

    /// Marks another player as not connected. Returns whether it was connected.
    fn away(&mut self, id: MemberId) -> bool {
        let player = self.member_mut(id).filter(|player| player.connected && !player.is_me);
        player.is_some_and(|player| std::mem::replace(&mut player.connected, false))
    }

    /// Applies a presence report. Returns what changed.
    fn measured(&mut self, presence: Presence) -> PresenceNews {
        let Some(player) = self.member_mut(presence.member) else { return PresenceNews::default() };
        let was_connected = std::mem::replace(&mut player.connected, presence.connected);
        player.rtt_ms = presence.rtt_ms;
        let before = std::mem::replace(&mut player.slow, presence.slow);
        PresenceNews {
            slow: (before != presence.slow).then_some(presence.slow),
            connected: (was_connected != presence.connected && !player.is_me).then_some(presence.connected),
        }
    }

    /// Checks that a player's data stays within its bounds with this change, in a room of `members_max` members.
    ///
    /// # Errors
    /// [`RoomError`] if it would have too many values or bytes.
    pub(super) fn check_data(&self, data: &PlayerData, members_max: u16) -> Result<(), RoomError> {
        let others: Vec<(&str, &Value)> = self
            .get(data.member)
            .into_iter()
            .flat_map(|player| player.all_data().filter(|(key, _)| *key != data.key))
            .collect();
        if data.value.is_some() && others.len() >= limits::PLAYER_DATA_KEYS_MAX {
            let text = format!("a player may have {} values of player data", limits::PLAYER_DATA_KEYS_MAX);
            return Err(ApiMisuse::Bounds(text).into());
        }
        let others = others
            .into_iter()
            .map(|(key, value)| Ok(key.len() + value.encode(limits::PLAYER_DATA_VALUE_BYTES_MAX)?.len()));
        let others = others.sum::<Result<usize, ValueError>>()?;
        let bytes = others + data.value.as_ref().map_or(0, |value| data.key.len() + value.len());
        let max = limits::player_data_bytes_max(members_max);
        if bytes > max {
            let text =
                format!("the player data of a player may have {max} bytes in all, this would make {bytes}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        Ok(())
    }

    /// Applies a change of player data. Returns the new value if the player is in the room. In a reopened room a
    /// repeated value is none.
    fn data_changed(&mut self, data: &PlayerData) -> Option<Option<Value>> {
        if self.has_reopened && self.member(data.member)?.encoded(&data.key) == data.value {
            return None;
        }
        let player = self.member_mut(data.member)?;
        let value = data.value.clone().and_then(|bytes| Value::decode(bytes).ok());
        match &value {
            Some(value) => {
                Arc::make_mut(&mut player.data).insert(data.key.clone(), value.clone());
            }
            None => {
                Arc::make_mut(&mut player.data).remove(&data.key);
            }
        }
        Some(value)
    }
}

/// The index of a member in a list, or where it belongs.
fn at(list: &[Player], id: MemberId) -> Result<usize, usize> {
    list.binary_search_by_key(&id, |player| player.id)
}

/// The event of a member that left.
fn left_event(player: Player, reason: LeaveReason) -> Event {
    let Player { id, name, is_spectator, .. } = player;
    match is_spectator {
        true => Event::SpectatorLeft { id, name, reason },
        false => Event::PlayerLeft { id, name, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: u32) -> MemberInfo {
        MemberInfo {
            id: MemberId(id),
            name: format!("player {id}"),
            user: None,
            link: LinkKind::Quic,
            presence: Presence { member: MemberId(id), rtt_ms: None, connected: true, slow: false },
            data: Vec::new(),
        }
    }

    #[test]
    fn a_list_that_a_game_has_stays_as_it_is() {
        let mut players = Players::new(MemberId(1), 3);
        for id in [2, 0, 1] {
            players.joined(info(id), Some(MemberId(0)));
        }
        let told: Vec<u32> = players.all().iter().map(|player| player.id.0).collect();
        assert_eq!(told, [0, 1, 2], "they are in the order of their ids");
        let value = Value::from("red").encode(100).expect("it is short");
        let data = PlayerData { member: MemberId(2), key: "color".into(), value: Some(value) };
        let mut each = |what: &str, change: &mut dyn FnMut(&mut Players)| {
            let (kept, before) = (Arc::clone(players.shared()), players.all().to_vec());
            change(&mut players);
            assert_eq!(*kept, before, "{what}: the game polled no more");
            assert_ne!(players.all(), before, "{what}: the next poll gives what changed");
        };
        each("a round trip", &mut |players| {
            players.measured(Presence { rtt_ms: Some(40), ..info(2).presence });
        });
        each("data", &mut |players| drop(players.data_changed(&data)));
        each("a host", &mut |players| players.set_host(MemberId(1)));
        each("a path", &mut |players| players.set_reached(|id| id == MemberId(0)));
        each("a newcomer", &mut |players| drop(players.joined(info(7), None)));
        each("a player that left", &mut |players| drop(players.left(MemberId(2))));
        let ways: Vec<Transport> = players.iter().map(|player| player.transport).collect();
        assert_eq!(ways, [Transport::Direct, Transport::Local, Transport::Relay(LinkKind::Quic)]);
        let kept = Arc::clone(players.shared());
        players.set_reached(|id| id == MemberId(0));
        assert!(Arc::ptr_eq(&kept, players.shared()), "nothing changed, and nothing is copied");
    }
}
