//! The players of the room, as the hub announced them.

use crate::error::RoomError;
use crate::event::Event;
use crate::inbox::Inbox;
use bytes::Bytes;
use parlor_proto::wire::control::{MemberInfo, PlayerData, Presence, RefusedAction, ToMember};
use parlor_proto::{ApiMisuse, CloseReason, LinkKind, MemberId, limits};
use parlor_sync::value::{Value, ValueError, from_value};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A participant of the room.
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
    /// How this process reaches it.
    pub transport: Transport,
    /// Whether it and the host have a direct path.
    pub direct: bool,
    data: BTreeMap<String, Value>,
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

/// The players of a room.
#[derive(Debug)]
pub(super) struct Players {
    me: MemberId,
    by_id: BTreeMap<MemberId, Player>,
    /// Members that the hub has yet to announce.
    greeting_left: u16,
    /// The recipient of messages to the primary.
    primary: Option<MemberId>,
}

impl Players {
    /// The players of a room, of which the hub is about to announce `members`.
    pub(super) fn new(me: MemberId, members: u16) -> Self {
        Players { me, by_id: BTreeMap::new(), greeting_left: members, primary: None }
    }

    /// Whether the hub has announced all members that were there when this process joined.
    pub(super) fn is_complete(&self) -> bool {
        self.greeting_left == 0
    }

    /// The recipient of messages to the primary, if there is one.
    pub(super) fn primary(&self) -> Option<MemberId> {
        self.primary
    }

    /// The first of these members that is not in the room.
    pub(super) fn first_unknown(&self, mut members: impl Iterator<Item = MemberId>) -> Option<MemberId> {
        members.find(|member| !self.by_id.contains_key(member))
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
                let bytes = info.data.iter().map(|(key, value)| key.len() + value.len()).sum();
                inbox.tell_bounded(Event::PlayerJoined(self.joined(info, host)), bytes)?;
            }
            ToMember::Direct { member, direct } => self.set_direct(member, direct),
            ToMember::Left { member, reason } => {
                if let Some(player) = self.by_id.remove(&member) {
                    inbox.tell_bounded(Event::PlayerLeft { id: member, name: player.name, reason }, 0)?;
                }
            }
            ToMember::Data(data) => {
                if let Some(value) = self.data_changed(&data) {
                    let bytes = data.value.as_ref().map_or(0, Bytes::len);
                    inbox.tell_bounded(Event::PlayerData { id: data.member, key: data.key, value }, bytes)?;
                }
            }
            ToMember::Presence(list) => {
                for presence in list {
                    let (id, news) = (presence.member, self.measured(presence));
                    if let Some(slow) = news.slow {
                        inbox.tell_bounded(Event::Slow { id, slow }, 0)?;
                    }
                    match news.connected {
                        Some(true) => inbox.tell_bounded(Event::PlayerBack { id }, 0)?,
                        Some(false) => inbox.tell_bounded(Event::PlayerLost { id }, 0)?,
                        None => {}
                    }
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
            ToMember::Authority(_) | ToMember::GoesOn { .. } | ToMember::Path(_) => {}
        }
        Ok(())
    }

    pub(super) fn get(&self, id: MemberId) -> Option<&Player> {
        self.by_id.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Player> {
        self.by_id.values()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Sets which player is the host.
    pub(super) fn set_host(&mut self, host: MemberId) {
        self.by_id.iter_mut().for_each(|(id, player)| player.is_host = *id == host);
    }

    /// Adds a player. Values that cannot be decoded are left out.
    fn joined(&mut self, info: MemberInfo, host: Option<MemberId>) -> Player {
        let MemberInfo { id, name, user, link, presence, data } = info;
        let is_me = id == self.me;
        let player = Player {
            id,
            name,
            user,
            rtt_ms: presence.rtt_ms,
            connected: presence.connected,
            slow: presence.slow,
            is_host: host == Some(id),
            is_me,
            transport: if is_me { Transport::Local } else { Transport::Relay(link) },
            direct: false,
            data: data
                .into_iter()
                .filter_map(|(key, value)| Some((key, Value::decode(value).ok()?)))
                .collect(),
        };
        self.by_id.insert(id, player.clone());
        player
    }

    fn set_direct(&mut self, id: MemberId, direct: bool) {
        if let Some(player) = self.by_id.get_mut(&id) {
            player.direct = direct;
        }
    }

    /// Applies a presence report. Returns what changed.
    fn measured(&mut self, presence: Presence) -> PresenceNews {
        let Some(player) = self.by_id.get_mut(&presence.member) else { return PresenceNews::default() };
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

    /// Applies a change of player data. Returns the new value if the player is in the room.
    fn data_changed(&mut self, data: &PlayerData) -> Option<Option<Value>> {
        let player = self.by_id.get_mut(&data.member)?;
        let value = data.value.clone().and_then(|bytes| Value::decode(bytes).ok());
        match &value {
            Some(value) => {
                player.data.insert(data.key.clone(), value.clone());
            }
            None => {
                player.data.remove(&data.key);
            }
        }
        Some(value)
    }
}
