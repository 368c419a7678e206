//! Who is in the room, as this process was told.

use parlor_proto::wire::control::{MemberInfo, PlayerData, Presence};
use parlor_proto::{LinkKind, MemberId};
use parlor_sync::value::{Value, ValueError, from_value};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A participant of the room.
#[derive(Clone, Debug, PartialEq)]
pub struct Player {
    /// Who; 0 is whoever opened the room. Never given to another in the same room.
    pub id: MemberId,
    /// What it calls itself.
    pub name: String,
    /// Who it is by the token that it was let in with; `None` for somebody anonymous. Unlike the name it is the server that says so.
    pub user: Option<String>,
    /// Round trip between it and the hub in ms, once measured.
    pub rtt_ms: Option<u32>,
    /// Whether its connection stands.
    pub connected: bool,
    /// Whether its connection takes less than the room has for it.
    pub slow: bool,
    /// Whether it is the authority of the room.
    pub is_host: bool,
    /// Whether it is this process.
    pub is_me: bool,
    /// How this process reaches it.
    pub transport: Transport,
    /// Whether it and the host reach each other without the hub.
    pub direct: bool,
    data: BTreeMap<String, Value>,
}

/// How this process reaches another player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// It is this process.
    Local,
    /// Through the hub, to which the player is connected like this.
    Relay(LinkKind),
    /// Over a path of its own.
    Direct,
}

impl Transport {
    /// The word for it in JSON and in what a person reads.
    #[must_use]
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
    /// A value of its player data.
    ///
    /// # Errors
    /// [`ValueError`] if the value is not as the type wants it.
    pub fn data<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ValueError> {
        self.data.get(key).map(from_value).transpose()
    }

    /// All of its player data, by key.
    pub fn all_data(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.data.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// What has changed of how a player is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PresenceNews {
    pub(super) slow: Option<bool>,
    /// Of another player.
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

    /// Another player is the host.
    pub(super) fn set_host(&mut self, host: MemberId) {
        self.by_id.iter_mut().for_each(|(id, player)| player.is_host = *id == host);
    }

    /// Takes in that somebody is there. Values that cannot be read are left out.
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

    /// Takes in what was measured; says what of it is news.
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

    /// Takes a change of player data in; gives the new value if the player is there.
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
