//! Events and players as plain structs.

use crate::types::*;
use parlor::{Event, Player, Sender, Value};
use parlor_client_core::Describe;
use std::ffi::c_char;

fn sender(from: Sender) -> i32 {
    match from {
        Sender::Member(member) => member.0.cast_signed(),
        Sender::Hub => PARLOR_NOBODY,
    }
}

impl parlor_event {
    /// What stands where there is no event.
    pub(crate) const NONE: Self = parlor_event::new(parlor_event_kind::PARLOR_EVENT_OTHER);

    /// An event without fields.
    const fn new(kind: parlor_event_kind) -> Self {
        let (member, text) = (PARLOR_NOBODY, [0; PARLOR_EVENT_TEXT_BYTES]);
        parlor_event { kind, member, entity: 0, is_so: false, number: 0, order: -1, text }
    }

    fn text(self, text: &str) -> Self {
        parlor_event { text: fixed(text), ..self }
    }

    fn member(self, member: parlor::MemberId) -> Self {
        parlor_event { member: member.0.cast_signed(), ..self }
    }

    fn from(self, from: Sender) -> Self {
        parlor_event { member: sender(from), ..self }
    }

    fn entity(self, entity: parlor::EntityId) -> Self {
        parlor_event { entity: entity.to_bits(), ..self }
    }

    fn is_so(self, is_so: bool) -> Self {
        parlor_event { is_so, ..self }
    }

    fn number(self, number: i64) -> Self {
        parlor_event { number, ..self }
    }

    fn order(self, order: Option<u64>) -> Self {
        parlor_event { order: order.map_or(-1, u64::cast_signed), ..self }
    }

    /// What most games need of an event.
    pub(crate) fn of(event: &Event) -> Self {
        of_members(event).or_else(|| of_content(event)).unwrap_or_else(|| of_room(event))
    }
}

fn of_members(event: &Event) -> Option<parlor_event> {
    use parlor_event_kind::*;
    let new = parlor_event::new;
    Some(match event {
        Event::PlayerJoined(player) => new(PARLOR_EVENT_PLAYER_JOINED).member(player.id).text(&player.name),
        Event::PlayerLeft { id, name, .. } => new(PARLOR_EVENT_PLAYER_LEFT).member(*id).text(name),
        Event::SpectatorJoined(spectator) => {
            new(PARLOR_EVENT_SPECTATOR_JOINED).member(spectator.id).text(&spectator.name)
        }
        Event::SpectatorLeft { id, name, .. } => new(PARLOR_EVENT_SPECTATOR_LEFT).member(*id).text(name),
        Event::PlayerLost { id, .. } => new(PARLOR_EVENT_PLAYER_LOST).member(*id),
        Event::PlayerBack { id } => new(PARLOR_EVENT_PLAYER_BACK).member(*id),
        Event::PlayerData { id, key, .. } => new(PARLOR_EVENT_PLAYER_DATA).member(*id).text(key),
        Event::Slow { id, slow } => new(PARLOR_EVENT_SLOW).member(*id).is_so(*slow),
        Event::Primary { member } => {
            let none = new(PARLOR_EVENT_PRIMARY);
            member.map_or(none, |member| none.member(member))
        }
        _ => return None,
    })
}

fn of_content(event: &Event) -> Option<parlor_event> {
    use parlor_event_kind::*;
    let new = parlor_event::new;
    Some(match event {
        Event::Message(message) => {
            new(PARLOR_EVENT_MESSAGE).from(message.from).order(message.order).text(&message.kind)
        }
        Event::Raw { from, channel, order, .. } => {
            new(PARLOR_EVENT_BYTES).from(*from).order(*order).number(channel.0.into())
        }
        Event::Data { from, op, order, .. } => new(PARLOR_EVENT_DATA).member(*from).order(*order).number(*op),
        Event::State(update) => new(PARLOR_EVENT_STATE).number(update.sequence.cast_signed()),
        Event::Spawned { entity } => new(PARLOR_EVENT_SPAWNED).entity(*entity),
        Event::Despawned { entity } => new(PARLOR_EVENT_DESPAWNED).entity(*entity),
        Event::Action { from, entity, name, .. } => {
            new(PARLOR_EVENT_ACTION).member(*from).entity(*entity).text(name)
        }
        Event::ActionRefused { entity, name, .. } => {
            new(PARLOR_EVENT_ACTION_REFUSED).entity(*entity).text(name)
        }
        _ => return None,
    })
}

fn of_room(event: &Event) -> parlor_event {
    use parlor_event_kind::*;
    let new = parlor_event::new;
    match event {
        Event::Open { code } => new(PARLOR_EVENT_OPEN).text(code.as_str()),
        Event::ConnectionLost { detail, .. } => new(PARLOR_EVENT_CONNECTION_LOST).text(detail),
        Event::Reconnecting { attempt } => new(PARLOR_EVENT_RECONNECTING).number((*attempt).into()),
        Event::Reconnected { state_resynced } => new(PARLOR_EVENT_RECONNECTED).is_so(*state_resynced),
        Event::HostMigration { new: next, is_me, .. } => {
            new(PARLOR_EVENT_HOST_MIGRATION).member(*next).is_so(*is_me)
        }
        Event::HostChanged { host, .. } => new(PARLOR_EVENT_HOST_CHANGED).member(*host),
        Event::Reopened { gap } => new(PARLOR_EVENT_REOPENED).is_so(*gap),
        Event::HandOverRefused { why } => new(PARLOR_EVENT_HAND_OVER_REFUSED).text(why.as_str()),
        Event::Throttled => new(PARLOR_EVENT_THROTTLED),
        Event::Closed(reason) => {
            let described = reason.describe();
            let Some(Value::Text(code)) = described.field("code") else { return new(PARLOR_EVENT_CLOSED) };
            new(PARLOR_EVENT_CLOSED).text(code)
        }
        _ => new(PARLOR_EVENT_OTHER),
    }
}

impl parlor_player {
    /// What most games need of a player.
    pub(crate) fn of(player: &Player) -> Self {
        use parlor_player_flag::*;
        let flags = [
            (player.is_host, PARLOR_PLAYER_IS_HOST),
            (player.is_me, PARLOR_PLAYER_IS_ME),
            (player.connected, PARLOR_PLAYER_IS_CONNECTED),
            (player.slow, PARLOR_PLAYER_IS_SLOW),
            (player.direct, PARLOR_PLAYER_IS_DIRECT),
        ];
        parlor_player {
            id: player.id.0.cast_signed(),
            flags: flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag as u32).sum(),
            ping: player.rtt_ms.map_or(-1.0, |ms| f64::from(ms) / 1_000.0),
            name: fixed(&player.name),
        }
    }
}

/// A text in a fixed array: cut between characters where it is too long, and always with its NUL.
pub(crate) fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let length = text.floor_char_boundary(N - 1);
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(&text.as_bytes()[..length]) {
        *to = from.cast_signed();
    }
    array
}
