//! The players of the room, as the hub announced them.

use parlor_proto::wire::control::{MemberInfo, PlayerData, Presence};
use parlor_proto::{LinkKind, MemberId};
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
pub(super) struct PresenceNews {
    pub(super) slow: Option<bool>,
    /// Set for other players only.
    pub(super) connected: Option<bool>,
}

/// The players of a room.
#[derive(Debug, Default)]
pub(super) struct Players {
    by_id: BTreeMap<MemberId, Player>,
}

impl Players {
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
    pub(super) fn joined(&mut self, info: MemberInfo, me: MemberId, host: Option<MemberId>) -> Player {
        let MemberInfo { id, name, user, link, presence, data } = info;
        let is_me = id == me;
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

    pub(super) fn set_direct(&mut self, id: MemberId, direct: bool) {
        if let Some(player) = self.by_id.get_mut(&id) {
            player.direct = direct;
        }
    }

    pub(super) fn left(&mut self, id: MemberId) -> Option<Player> {
        self.by_id.remove(&id)
    }

    /// Applies a presence report. Returns what changed.
    pub(super) fn measured(&mut self, presence: Presence) -> PresenceNews {
        let Some(player) = self.by_id.get_mut(&presence.member) else { return PresenceNews::default() };
        let was_connected = std::mem::replace(&mut player.connected, presence.connected);
        player.rtt_ms = presence.rtt_ms;
        let before = std::mem::replace(&mut player.slow, presence.slow);
        PresenceNews {
            slow: (before != presence.slow).then_some(presence.slow),
            connected: (was_connected != presence.connected && !player.is_me).then_some(presence.connected),
        }
    }

    /// Applies a change of player data. Returns the new value if the player is in the room.
    pub(super) fn data_changed(&mut self, data: &PlayerData) -> Option<Option<Value>> {
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
