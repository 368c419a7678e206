//! What passes by value: results, kinds and plain structs.

use crate::boundary::Failure;
use parlor_client_core::binding::NONE;
use std::ffi::c_char;

/// Number of the functions' form. It changes when a program that was compiled with an older header would break.
pub const PARLOR_ABI_VERSION: u32 = 1;
/// The room of no handle.
pub const PARLOR_NO_ROOM: u64 = 0;
/// No member, where a member may be absent: an owner, a host.
pub const PARLOR_NOBODY: i32 = -2;
/// Bytes of `parlor_event.text`, its NUL included.
pub const PARLOR_EVENT_TEXT_BYTES: usize = 128;
/// Bytes of `parlor_player.name`, its NUL included.
pub const PARLOR_PLAYER_NAME_BYTES: usize = 52;

/// A room: a number, not a pointer. One that was left, or never was, is refused with PARLOR_NO_SUCH_ROOM.
pub type parlor_room = u64;

/// What a function came to. Negative ones are errors: nothing changed, and parlor_last_error_message tells why.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_result {
    /// It is done.
    PARLOR_OK = 0,
    /// There is nothing: no event, no step due, no such key, no input.
    PARLOR_NONE = 1,
    /// An argument is wrong: NULL, no UTF-8, no JSON, an unknown option, a number out of its range.
    PARLOR_INVALID = -1,
    /// The handle is of no room, or of one that was left.
    PARLOR_NO_SUCH_ROOM = -2,
    /// The buffer is too small. `*length` is what is needed, the NUL of a text not counted. Nothing was written.
    PARLOR_TOO_SMALL = -3,
    /// The room refuses: it is not open, this process is not its host, something is beyond its bounds.
    /// parlor_last_error_code has the word for it.
    PARLOR_REFUSED = -4,
    /// A fault in Parlor itself. The room should be left.
    PARLOR_PANICKED = -5,
}

/// What to read of keyed state or of a component.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_view {
    /// As the host wrote it last; a predicted component as predicted.
    PARLOR_LATEST = 0,
    /// For display: a little in the past, so that it moves evenly.
    PARLOR_DRAWN = 1,
    /// Keys alone: as this process predicted it with parlor_set_predicted.
    PARLOR_PREDICTED = 2,
}

/// Who gets a message.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_recipient {
    /// The host.
    PARLOR_TO_HOST = 0,
    /// All but this process.
    PARLOR_TO_OTHERS = 1,
    /// All, this process included.
    PARLOR_TO_ALL = 2,
    /// The member that the server has named primary.
    PARLOR_TO_PRIMARY = 3,
    /// The members of the list.
    PARLOR_TO_MEMBERS = 4,
    /// All but the members of the list.
    PARLOR_TO_EXCEPT = 5,
}

/// How a message travels.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_lane {
    /// As the room's option `protocol` says; reliable and in order by default.
    PARLOR_LANE_DEFAULT = 0,
    /// May be lost, or come late.
    PARLOR_LANE_UNRELIABLE = 1,
    /// May be lost; what a newer one has overtaken is dropped.
    PARLOR_LANE_SEQUENCED = 2,
    /// Is not lost; in any order.
    PARLOR_LANE_RELIABLE = 3,
    /// Is not lost, in the order of sending.
    PARLOR_LANE_ORDERED = 4,
}

/// Options of a message: add them up.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_send_flag {
    /// All receivers get these messages in the same order, whoever sent them.
    PARLOR_SEND_NUMBERED = 1,
    /// It carries the time of sending, `eventTimeMs` of its event.
    PARLOR_SEND_TIMED = 2,
}

/// What parlor_describe describes.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_topic {
    /// The room: code, role, paths, the server.
    PARLOR_INFO = 0,
    /// Counters and measurements.
    PARLOR_DIAGNOSTICS = 1,
    /// Counters of the world's stream.
    PARLOR_WORLD_DIAGNOSTICS = 2,
    /// All players with their data, by id.
    PARLOR_PLAYERS = 3,
    /// All spectators, by id.
    PARLOR_SPECTATORS = 4,
    /// The components of the room's schema: the fields of their rows.
    PARLOR_COMPONENTS = 5,
}

/// How a room is, in parlor_room_status.flags.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_flag {
    /// This process is in the room.
    PARLOR_IS_OPEN = 1,
    /// This process is the host.
    PARLOR_IS_HOST = 2,
    /// A new host is awaited.
    PARLOR_IS_MIGRATING = 4,
    /// The connection is lost, and made again.
    PARLOR_IS_RECONNECTING = 8,
    /// The room is over for this process.
    PARLOR_IS_CLOSED = 16,
    /// The running step was run before.
    PARLOR_IS_REPLAY = 32,
    /// This process watches only.
    PARLOR_IS_SPECTATOR = 64,
}

/// How a player is, in parlor_player.flags.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_player_flag {
    /// It is the host.
    PARLOR_PLAYER_IS_HOST = 1,
    /// It is this process.
    PARLOR_PLAYER_IS_ME = 2,
    /// Its connection stands.
    PARLOR_PLAYER_IS_CONNECTED = 4,
    /// Its connection is slower than the room.
    PARLOR_PLAYER_IS_SLOW = 8,
    /// It and the host have a direct path.
    PARLOR_PLAYER_IS_DIRECT = 16,
}

/// What happened.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum parlor_event_kind {
    /// Something that this version has no number for: parlor_event_json tells it.
    PARLOR_EVENT_OTHER = 0,
    /// The room is open. text: the code to share, or the id of the match.
    PARLOR_EVENT_OPEN = 1,
    /// A player is in the room. member, text: its name.
    PARLOR_EVENT_PLAYER_JOINED = 2,
    /// A player has left. member, text: its name.
    PARLOR_EVENT_PLAYER_LEFT = 3,
    /// A spectator is in the room. member, text: its name.
    PARLOR_EVENT_SPECTATOR_JOINED = 4,
    /// A spectator has left. member, text: its name.
    PARLOR_EVENT_SPECTATOR_LEFT = 5,
    /// A player's connection is lost; its seat is kept for a while. member.
    PARLOR_EVENT_PLAYER_LOST = 6,
    /// A player has reconnected. member.
    PARLOR_EVENT_PLAYER_BACK = 7,
    /// Player data changed. member, text: the key. parlor_event_value has the value; none if it was removed.
    PARLOR_EVENT_PLAYER_DATA = 8,
    /// This process has lost its connection, and makes it again. text: the cause.
    PARLOR_EVENT_CONNECTION_LOST = 9,
    /// Another attempt to connect. number: its number, from 1.
    PARLOR_EVENT_RECONNECTING = 10,
    /// This process is connected again. is_so: whether it had to join anew.
    PARLOR_EVENT_RECONNECTED = 11,
    /// Another player becomes the host. member: the new one, is_so: whether it is this process.
    PARLOR_EVENT_HOST_MIGRATION = 12,
    /// The new host has the world. member.
    PARLOR_EVENT_HOST_CHANGED = 13,
    /// This process stays the host: what parlor_hand_over asked for was refused. text: why.
    PARLOR_EVENT_HAND_OVER_REFUSED = 14,
    /// A message. member: the sender, text: its kind. parlor_event_value has what it says.
    PARLOR_EVENT_MESSAGE = 15,
    /// Bytes on a channel of the game's own. member: the sender, number: the channel. See parlor_event_bytes.
    PARLOR_EVENT_BYTES = 16,
    /// Data of a match. member: the sender, number: its op. See parlor_event_bytes.
    PARLOR_EVENT_DATA = 17,
    /// A player's connection became slow, or recovered. member, is_so: whether it is slow.
    PARLOR_EVENT_SLOW = 18,
    /// This player sends more than the room allows. Raised once.
    PARLOR_EVENT_THROTTLED = 19,
    /// Keyed state came from the host. number: its sequence.
    PARLOR_EVENT_STATE = 20,
    /// An entity came into view. entity.
    PARLOR_EVENT_SPAWNED = 21,
    /// An entity is gone, or out of view. entity.
    PARLOR_EVENT_DESPAWNED = 22,
    /// A player asks for an action, at the host. member, entity, text: its name. See parlor_event_value.
    PARLOR_EVENT_ACTION = 23,
    /// An action of this player was refused. entity, text: its name.
    PARLOR_EVENT_ACTION_REFUSED = 24,
    /// The primary changed. member: PARLOR_NOBODY for none.
    PARLOR_EVENT_PRIMARY = 25,
    /// The room is over for this process. text: the word for why (left, kicked, no_such_room, …);
    /// `message` of parlor_event_json tells it to a person. No event follows.
    PARLOR_EVENT_CLOSED = 26,
    /// Another server has reopened the room, and the game goes on. is_so: whether messages may have been lost.
    PARLOR_EVENT_REOPENED = 27,
}

/// An event: what most games need of it. parlor_event_json has all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct parlor_event {
    /// What happened. It says which of the fields below are set.
    pub kind: parlor_event_kind,
    /// Whom it is about, or who sent it; PARLOR_NOBODY for none, and for the server as the sender.
    pub member: i32,
    /// The entity; 0 if there is none.
    pub entity: u32,
    /// Depends on the kind.
    pub is_so: bool,
    /// Depends on the kind.
    pub number: i64,
    /// Its number in the room's order, if its sender asked for one; -1 otherwise.
    pub order: i64,
    /// Depends on the kind: UTF-8, with its NUL. A longer text is cut; parlor_event_json has the whole.
    pub text: [c_char; PARLOR_EVENT_TEXT_BYTES],
}

/// A step that has begun.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct parlor_step_info {
    /// Its number, the same for all members.
    pub tick: u32,
    /// Whether it was run before, and is run again after a correction. Sounds and flashes: see parlor_once.
    pub is_replay: bool,
    /// Whether this process is the host, which reads inputs and writes state.
    pub is_host: bool,
}

/// How a room is. Times are in seconds; -1 if unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct parlor_room_status {
    /// The sum of parlor_flag.
    pub flags: u32,
    /// This member; PARLOR_NOBODY before the room is open.
    pub me: i32,
    /// The host; PARLOR_NOBODY if there is none.
    pub host: i32,
    /// The number of the last step.
    pub tick: u32,
    /// Steps per second; 0 before the room is open.
    pub tick_hz: u32,
    /// Players in the room.
    pub players: u32,
    /// Time until the next step: for a loop that sleeps. 1 while none is due.
    pub until_next_tick: f64,
    /// Time since the room opened, the same for all members.
    pub server_time: f64,
    /// Round trip to the server.
    pub ping: f64,
    /// Round trip to the host.
    pub host_ping: f64,
}

/// A player, or a spectator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct parlor_player {
    /// Its id, never reused in the same room.
    pub id: i32,
    /// The sum of parlor_player_flag.
    pub flags: u32,
    /// Round trip to the server in seconds; -1 if unknown.
    pub ping: f64,
    /// Its name: UTF-8, with its NUL.
    pub name: [c_char; PARLOR_PLAYER_NAME_BYTES],
}

// The owners in columns are the same numbers.
const _: () = assert!(PARLOR_NOBODY == NONE);

/// Reads enums that pass as numbers: an enum with a number that it does not have would be undefined behaviour.
macro_rules! choices {
    ($($type:ident($argument:literal): $first:ident $(, $variant:ident)*;)*) => {$(
        impl $type {
            pub(crate) fn of(number: i32) -> Result<Self, Failure> {
                let all = [$type::$first $(, $type::$variant)*];
                let text = || format!(concat!("{} is no ", stringify!($type), ": those are 0 to {}"), number, all.len() - 1);
                let found = all.into_iter().find(|choice| *choice as i32 == number);
                found.ok_or_else(|| Failure::argument($argument, &text()))
            }
        }
    )*};
}

choices! {
    parlor_view("view"): PARLOR_LATEST, PARLOR_DRAWN, PARLOR_PREDICTED;
    parlor_recipient("to"): PARLOR_TO_HOST, PARLOR_TO_OTHERS, PARLOR_TO_ALL, PARLOR_TO_PRIMARY, PARLOR_TO_MEMBERS,
        PARLOR_TO_EXCEPT;
    parlor_lane("lane"): PARLOR_LANE_DEFAULT, PARLOR_LANE_UNRELIABLE, PARLOR_LANE_SEQUENCED, PARLOR_LANE_RELIABLE,
        PARLOR_LANE_ORDERED;
    parlor_topic("topic"): PARLOR_INFO, PARLOR_DIAGNOSTICS, PARLOR_WORLD_DIAGNOSTICS, PARLOR_PLAYERS,
        PARLOR_SPECTATORS, PARLOR_COMPONENTS;
}
