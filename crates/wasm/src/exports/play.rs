//! For the game: events, steps, inputs, messages and players.

use crate::boundary::{Fault, Last, ask, entity, member, some_member, tell, whole};
use crate::room::{micros, put, put_some};
use bytes::Bytes;
use parlor_client_core::{ActionFailed, Describe, MessageOptions, RoomError};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ChannelId, Lane, MemberId};
use parlor_sync::value::Value;

exports! {
    /// The next event.
    fn poll(now: f64) -> i32 {
        ask(|room, out| {
            let now = room.at(now)?;
            let event = room.core.poll(now);
            room.version += u64::from(event.is_some());
            put_some(out, event.map(|event| event.describe()))
        })
    }

    /// Begins a step if one is due.
    fn tick(now: f64) -> i32 {
        ask(|room, _| {
            let now = room.at(now)?;
            Ok(room.core.tick(now))
        })
    }

    /// The number of the present or last step.
    fn tick_number() -> f64 {
        ask(|room, _| Ok(room.core.tick_number().map_or(-1.0, |tick| tick.0.into())))
    }

    /// Steps a second.
    fn tick_hz() -> i32 {
        ask(|room, _| Ok(room.core.tick_rate().map_or(0, |rate| i32::from(rate.hz()))))
    }

    /// Time until the next step.
    fn until_next_tick(now: f64) -> f64 {
        ask(|room, _| {
            let now = room.at(now)?;
            Ok(room.core.until_next_tick(now).map_or(f64::INFINITY, |time| time.as_secs_f64() * 1e6))
        })
    }

    /// Whether the present step is run again.
    fn is_replay() -> i32 {
        ask(|room, _| Ok(room.core.is_replay()))
    }

    /// Whether to show an effect.
    fn once(len: i32, number: f64) -> i32 {
        tell(len, |room, given, _| {
            let effect: String = given.parts()?;
            let number = whole(number, 1 << 53)?;
            Ok(room.core.once(&effect, number))
        })
    }

    /// What the game looks at most: one bit each.
    fn flags() -> i32 {
        ask(|room, _| Ok(room.flags()))
    }

    /// Counts what may have changed a read.
    fn version() -> f64 {
        #[allow(clippy::cast_precision_loss)] // nobody counts to 2^53
        ask(|room, _| Ok(room.version as f64))
    }

    /// Time since the room opened.
    fn server_time(now: f64) -> f64 {
        ask(|room, _| {
            let now = room.at(now)?;
            Ok(room.core.server_time(now).map_or(-1.0, |time| time.as_secs_f64() * 1e6))
        })
    }

    /// Round trip to the server.
    fn ping() -> f64 {
        // Of the connection: the core's own `ping` is zero at the host.
        ask(|room, _| Ok(room.core.diagnostics().rtt.map_or(-1.0, |time| time.as_secs_f64() * 1e6)))
    }

    /// Round trip to the host.
    fn host_ping() -> f64 {
        ask(|room, _| Ok(room.core.host_ping().map_or(-1.0, |time| time.as_secs_f64() * 1e6)))
    }

    /// This player.
    fn me() -> i32 {
        ask(|room, _| Ok(room.core.local_id()))
    }

    /// The host.
    fn host() -> i32 {
        ask(|room, _| Ok(room.core.info().host_id))
    }

    /// Hands the host's part over.
    fn hand_over(to: i32, now: f64) -> i32 {
        ask(|room, _| {
            let (to, now) = (some_member(to)?, room.at(now)?);
            Ok(room.write().hand_over(to, now)?)
        })
    }

    /// Leaves the room.
    fn leave(now: f64) -> i32 {
        ask(|room, _| {
            let now = room.at(now)?;
            room.write().leave(now);
            Ok(())
        })
    }

    /// Ends the room for all, at the host.
    fn stop(now: f64) -> i32 {
        ask(|room, _| {
            let now = room.at(now)?;
            room.write().stop(now);
            Ok(())
        })
    }

    /// Says what this player wants in this step.
    fn send_input(len: i32) -> i32 {
        tell(len, |room, given, _| Ok(room.core.send_input::<Value>(&given.parts()?)?))
    }

    /// What a player wants in this step.
    fn input(player: i32) -> i32 {
        ask(|room, out| {
            let input = room.core.input::<Value>(member(player)?)?;
            put_some(out, input)
        })
    }

    /// What all players want in this step.
    fn inputs() -> i32 {
        ask(|room, out| {
            let inputs = room.core.inputs::<Value>()?;
            for (member, input) in &inputs {
                put(out, [&Value::from(member.0), input])?;
            }
            Ok(inputs.len())
        })
    }

    /// The newest step whose input of a player was used.
    fn input_ack(player: i32) -> f64 {
        ask(|room, _| Ok(room.core.input_ack(member(player)?).map_or(-1.0, |tick| tick.0.into())))
    }

    /// Sends a typed message. Flags: 1 numbers it, 2 sends the room's time with it.
    fn send(lane: i32, flags: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (to, kind, value): (Recipient, String, Value) = given.parts()?;
            let lane = match lane {
                0 => room.core.protocol().lane(),
                1 => Lane::Unreliable,
                2 => Lane::UnreliableSequenced,
                3 => Lane::ReliableUnordered,
                4 => Lane::ReliableOrdered,
                _ => return Err(Fault::bad_call("a lane is 0 to 4")),
            };
            let now = room.at(now)?;
            let event_time = room.core.server_time(now).filter(|_| flags & 2 != 0);
            let options = MessageOptions { lane, stamp: flags & 1 != 0, event_time };
            Ok(room.core.send_with(&options, to, &kind, &value, now)?)
        })
    }

    /// Sends bytes on a channel of the game's own.
    fn send_bytes(channel: i32, stamp: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (to, bytes): (Recipient, Bytes) = given.parts()?;
            let channel = u8::try_from(channel).map_err(|_| Fault::bad_call("a channel is 0 to 255"))?;
            let now = room.at(now)?;
            Ok(room.core.send_raw(ChannelId(channel), to, bytes, stamp != 0, now)?)
        })
    }

    /// Sends data to players of a match.
    fn send_data(op: f64, reliably: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (to, bytes): (Recipient, Bytes) = given.parts()?;
            let magnitude = whole(op.abs(), 1 << 53)?.cast_signed();
            let op = if op < 0.0 { -magnitude } else { magnitude };
            let now = room.at(now)?;
            Ok(room.core.send_data(op, to, bytes, reliably != 0, now)?)
        })
    }

    /// Asks the host for an action.
    fn act(bits: i32, len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (name, value): (String, Value) = given.parts()?;
            Ok(room.core.act(entity(bits), &name, &value)?)
        })
    }

    /// Makes a predicted action.
    fn act_predicted(bits: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (name, value): (String, Value) = given.parts()?;
            let now = room.at(now)?;
            Ok(room.write().act_outside(entity(bits), &name, value, now)?)
        })
    }

    /// The predicted action that the game must apply.
    fn action_request() -> i32 {
        ask(|room, out| {
            let Some(request) = room.core.action_to_apply() else { return Ok(0) };
            put(out, [&request.describe()])?;
            Ok(if request.is_first { 1 } else { 2 })
        })
    }

    /// Ends the predicted action that the game applied, or refused.
    fn action_done(len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let Last(ending) = given.parts()?;
            let result = match ending {
                None => Ok(()),
                Some(Value::Null) => Err(ActionFailed::Unreadable),
                Some(Value::Text(reason)) => Err(ActionFailed::ByGame(reason)),
                Some(_) => return Err(Fault::bad_call("an action ends with nothing, a text or null")),
            };
            let now = room.at(now)?;
            match room.write().action_applied(result, now) {
                Ok(()) => Ok(false),
                Err(RoomError::Refused { .. }) => Ok(true),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// All players.
    fn players() -> i32 {
        ask(|room, out| {
            for player in room.core.players() {
                put(out, [&player.describe()])?;
            }
            Ok(room.core.player_count())
        })
    }

    /// All spectators.
    fn spectators() -> i32 {
        ask(|room, out| {
            for spectator in room.core.spectators() {
                put(out, [&spectator.describe()])?;
            }
            Ok(room.core.spectators().len())
        })
    }

    /// Sets or removes a value of player data.
    fn set_player_data(player: i32, len: i32) -> i32 {
        tell(len, |room, given, _| {
            let (key, Last(value)): (String, Last) = given.parts()?;
            Ok(room.core.set_player_data(member(player)?, &key, value.as_ref())?)
        })
    }

    /// Removes a player from the room.
    fn kick(player: i32, len: i32) -> i32 {
        tell(len, |room, given, _| {
            let reason: String = given.parts()?;
            Ok(room.core.kick(member(player)?, &reason)?)
        })
    }

    /// The primary.
    fn own_primary() -> i32 {
        ask(|room, _| Ok::<Option<MemberId>, Fault>(room.core.primary()))
    }

    /// When the game is to be called next: at the next step, or for a timeout.
    fn next_due(now: f64) -> f64 {
        ask(|room, _| {
            let now = room.at(now)?;
            let step = room.core.until_next_tick(now).map(|until| now + until);
            let timers = [step, room.core.poll_timeout(), room.core.next_attempt()];
            Ok(micros(timers.into_iter().flatten().min()))
        })
    }
}
