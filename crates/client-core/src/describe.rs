//! Events, players, the room and its measurements as values: what bindings to other languages give their games.
//!
//! Names of fields are in camel case. What there is not is left out. Times are in ms.

use crate::event::{ClosedReason, Event, StateUpdate};
use crate::info::{Connectivity, Diagnostics, RoomInfo};
use crate::players::Player;
use crate::room::ActionToApply;
use parlor_proto::session::Stats;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::envelope::Sender;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{ApiMisuse, CloseReason, MemberId, Tick};
use parlor_sync::keyed::StateError;
use parlor_sync::prediction::PredictionCounters;
use parlor_sync::replicator::Latency;
use parlor_sync::rollback;
use parlor_sync::value::{Map, Value};
use parlor_sync::world;
use std::time::Duration;

use crate::error::RoomError;

/// What can be given to a game of another language.
pub trait Describe {
    /// The description, a map.
    fn describe(&self) -> Value;
}

/// Builds a map from fields that may be absent.
#[derive(Debug, Default)]
pub struct Fields(Map);

impl Fields {
    /// An event of this type.
    fn of_type(name: &str) -> Self {
        Fields::default().with("type", name)
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name, value);
        self
    }

    /// Adds a field if there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a number. Counters beyond what an integer holds stay at its maximum.
    #[must_use]
    pub fn count(self, name: &str, number: u64) -> Self {
        self.with(name, i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn size(self, name: &str, number: usize) -> Self {
        self.count(name, number as u64)
    }

    fn ms(self, name: &str, time: Duration) -> Self {
        self.with(name, ms(time))
    }

    fn member(self, name: &str, member: MemberId) -> Self {
        self.count(name, member.0.into())
    }

    fn some_member(self, name: &str, member: Option<MemberId>) -> Self {
        self.with_some(name, member.map(|member| i64::from(member.0)))
    }

    fn tick(self, name: &str, tick: Tick) -> Self {
        self.count(name, tick.0.into())
    }

    /// The map.
    pub fn build(self) -> Value {
        Value::Map(self.0)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn sender(from: Sender) -> Value {
    match from {
        Sender::Hub => "hub".into(),
        Sender::Member(member) => i64::from(member.0).into(),
    }
}

impl Describe for Event {
    fn describe(&self) -> Value {
        of_members(self).or_else(|| of_content(self)).unwrap_or_else(|| of_room(self)).build()
    }
}

/// Events about players.
fn of_members(event: &Event) -> Option<Fields> {
    Some(match event {
        Event::PlayerJoined(player) => Fields::of_type("playerJoined").with("player", player.describe()),
        Event::PlayerLeft { id, name, reason } => Fields::of_type("playerLeft")
            .member("id", *id)
            .with("name", name.as_str())
            .with("reason", reason.as_str()),
        Event::SpectatorJoined(spectator) => {
            Fields::of_type("spectatorJoined").with("spectator", spectator.describe())
        }
        Event::SpectatorLeft { id, name, reason } => Fields::of_type("spectatorLeft")
            .member("id", *id)
            .with("name", name.as_str())
            .with("reason", reason.as_str()),
        Event::PlayerLost { id, reason } => {
            Fields::of_type("playerLost").member("id", *id).with("reason", reason.as_str())
        }
        Event::PlayerBack { id } => Fields::of_type("playerBack").member("id", *id),
        Event::PlayerData { id, key, value } => Fields::of_type("playerData")
            .member("id", *id)
            .with("key", key.as_str())
            .with_some("value", value.clone()),
        Event::Slow { id, slow } => Fields::of_type("slow").member("id", *id).with("slow", *slow),
        Event::Primary { member } => Fields::of_type("primary").some_member("player", *member),
        _ => return None,
    })
}

/// Events with what the game or its other players sent.
fn of_content(event: &Event) -> Option<Fields> {
    let order = |fields: Fields, order: &Option<u64>| match order {
        Some(order) => fields.count("order", *order),
        None => fields,
    };
    Some(match event {
        Event::Message(message) => {
            let fields = Fields::of_type("message").with("from", sender(message.from));
            order(fields, &message.order)
                .with_some("eventTimeMs", message.event_time.map(ms))
                .with("kind", message.kind.as_str())
                .with("value", message.value.clone())
        }
        Event::Raw { from, channel, order: number, payload } => {
            let fields = Fields::of_type("bytes").with("from", sender(*from));
            order(fields, number)
                .with("channel", i64::from(channel.0))
                .with("bytes", Value::Bytes(payload.clone()))
        }
        Event::Data { from, op, order: number, data } => {
            let fields = Fields::of_type("data").member("from", *from).with("op", *op);
            order(fields, number).with("bytes", Value::Bytes(data.clone()))
        }
        Event::State(update) => return Some(of_update(update)),
        Event::Spawned { entity } => Fields::of_type("spawned").count("entity", entity.to_bits().into()),
        Event::Despawned { entity } => Fields::of_type("despawned").count("entity", entity.to_bits().into()),
        Event::Action { from, entity, name, value } => Fields::of_type("action")
            .member("from", *from)
            .count("entity", entity.to_bits().into())
            .with("name", name.as_str())
            .with("value", value.clone()),
        Event::ActionRefused { entity, name, why } => {
            let by_game = match why {
                ActionRefusal::ByGame { reason } => Some(reason.as_str()),
                _ => None,
            };
            Fields::of_type("actionRefused")
                .count("entity", entity.to_bits().into())
                .with("name", name.as_str())
                .with("why", why.as_str())
                .with_some("reason", by_game)
        }
        _ => return None,
    })
}

/// Events about the room and the connection to it.
fn of_room(event: &Event) -> Fields {
    match event {
        Event::Open { code } => Fields::of_type("open").with("code", code.as_str()),
        Event::ConnectionLost { reason, detail } => {
            Fields::of_type("connectionLost").with("reason", reason.as_str()).with("detail", detail.as_str())
        }
        Event::Reconnecting { attempt } => {
            Fields::of_type("reconnecting").count("attempt", (*attempt).into())
        }
        Event::Reconnected { state_resynced } => {
            Fields::of_type("reconnected").with("stateResynced", *state_resynced)
        }
        Event::HostMigration { previous, new, is_me } => Fields::of_type("hostMigration")
            .some_member("previous", *previous)
            .member("next", *new)
            .with("isMe", *is_me),
        Event::HostChanged { host, previous } => {
            Fields::of_type("hostChanged").member("host", *host).some_member("previous", *previous)
        }
        Event::Reopened { gap } => Fields::of_type("reopened").with("gap", *gap),
        Event::HandOverRefused { why } => Fields::of_type("handOverRefused").with("why", why.as_str()),
        Event::Throttled => Fields::of_type("throttled"),
        Event::Closed(reason) => of_closed(Fields::of_type("closed"), reason),
        // The two functions before this one have the others.
        _ => Fields::of_type("unknown"),
    }
}

fn of_update(update: &StateUpdate) -> Fields {
    let changed = update.changed.iter().map(|key| Value::from(key.as_str()));
    Fields::of_type("state")
        .count("sequence", update.sequence)
        .tick("serverTick", update.server_tick)
        .count("serverTimeMs", update.server_time_ms)
        .with("tickIntervalMs", update.tick_interval_ms)
        .with_some("inputAckTick", update.input_ack_tick.map(|tick| i64::from(tick.0)))
        .with("source", update.source.as_str())
        .with("jitterMs", update.jitter_ms)
        .with("bufferDelayMs", update.buffer_delay_ms)
        .size("historyDepth", update.history_depth)
        .with("bufferedMs", update.buffered_server_time_ms)
        .with("changed", Value::List(changed.collect()))
}

impl Describe for StateUpdate {
    fn describe(&self) -> Value {
        of_update(self).build()
    }
}

fn of_closed(fields: Fields, reason: &ClosedReason) -> Fields {
    let given = match reason {
        ClosedReason::Session(CloseReason::Kicked { reason } | CloseReason::RoomEnded { reason }) => {
            Some(reason.as_str())
        }
        _ => None,
    };
    let code = match reason {
        ClosedReason::Account { code, .. } => code.as_str(),
        other => other.as_str(),
    };
    let retry_after = match reason {
        ClosedReason::RetryAfter(retry) => Some(ms(retry.after)),
        _ => None,
    };
    let max = match reason {
        ClosedReason::Refused(Refusal::RoomFull { max }) => Some(i64::from(*max)),
        _ => None,
    };
    fields
        .with("code", code)
        .with("message", reason.to_string())
        .with_some("reason", given)
        .with_some("retryAfterMs", retry_after)
        .with_some("max", max)
}

impl Describe for ClosedReason {
    fn describe(&self) -> Value {
        of_closed(Fields::default(), self).build()
    }
}

impl Describe for ActionToApply {
    fn describe(&self) -> Value {
        Fields::default()
            .member("from", self.from)
            .count("number", self.number.into())
            .count("tick", self.tick.0.into())
            .count("entity", self.entity.to_bits().into())
            .with("name", self.name.as_str())
            .with("value", self.value.clone())
            .build()
    }
}

impl Describe for Player {
    fn describe(&self) -> Value {
        let data =
            self.all_data().fold(Fields::default(), |data, (key, value)| data.with(key, value.clone()));
        Fields::default()
            .member("id", self.id)
            .with("name", self.name.as_str())
            .with_some("user", self.user.as_deref())
            .with("isHost", self.is_host)
            .with("isMe", self.is_me)
            .with("isSpectator", self.is_spectator)
            .with("connected", self.connected)
            .with("slow", self.slow)
            .with("direct", self.direct)
            .with_some("rttMs", self.rtt_ms.map(i64::from))
            .with("link", self.link().as_str())
            .with("transport", self.transport.as_str())
            .with("data", data.build())
            .build()
    }
}

impl Describe for RoomInfo {
    fn describe(&self) -> Value {
        let Connectivity { coordinator, relay, link, .. } = &self.connectivity;
        Fields::default()
            .with("role", self.role.as_str())
            .with_some("code", self.code.as_ref().map(|code| code.as_str()))
            .with_some("room", self.room.map(|room| format!("{:032x}", room.0)))
            .with_some("session", self.session.map(|session| format!("{:032x}", session.0)))
            .some_member("me", self.local_id)
            .some_member("host", self.host_id)
            .count("epoch", self.epoch.0.into())
            .with("migrating", self.migrating)
            .with("migrationCompleted", self.migration_completed)
            .some_member("previousHost", self.previous_host)
            .some_member("newHost", self.new_host)
            .with_some("maxPlayers", self.max_players.map(i64::from))
            .with("scope", self.scope.as_str())
            .with("path", self.transport_path.as_str())
            .with_some("status", self.transport_status.map(|status| status.as_str()))
            .with_some("lastReason", self.last_reason_code.map(|reason| reason.as_str()))
            .with_some("joinPath", self.join_path.map(|path| path.as_str()))
            .with_some("asked", coordinator.as_deref())
            .with_some("server", relay.as_deref())
            .with_some("link", link.map(|link| link.as_str()))
            .build()
    }
}

fn of_latency(latency: Latency) -> Value {
    Fields::default()
        .ms("meanMs", latency.mean)
        .ms("bestMs", latency.best)
        .ms("worstMs", latency.worst)
        .ms("varianceMs", latency.variance)
        .build()
}

impl Describe for Diagnostics {
    fn describe(&self) -> Value {
        let PredictionCounters { confirmed, corrections, replayed_steps, snaps, displacement_max } =
            self.prediction;
        let prediction = Fields::default()
            .count("confirmed", confirmed)
            .count("corrections", corrections)
            .count("replayedSteps", replayed_steps)
            .count("snaps", snaps)
            .with("displacementMax", displacement_max);
        Fields::default()
            .with_some("rttMs", self.rtt.map(ms))
            .ms("rttJitterMs", self.rtt_jitter)
            .with("session", of_session(&self.session))
            .count("updatesDecoded", self.updates_decoded)
            .count("updatesOutdated", self.updates_outdated)
            .count("updatesGapped", self.updates_gapped)
            .count("updatesPublished", self.updates_published)
            .with("jitterMs", self.jitter_ms)
            .with("bufferDelayMs", self.buffer_delay_ms)
            .tick("tick", self.tick)
            .count("ticksDropped", self.ticks_dropped)
            .count("stepsReplayed", self.steps_replayed)
            .with("prediction", prediction.build())
            .count("effectsForgotten", self.effects_forgotten)
            .size("actionsPending", self.actions_pending)
            .count("actionsRefused", self.actions_refused)
            .with("timeSynchronized", self.time_synchronized)
            .ms("timeVarianceMs", self.time_variance)
            .with_some("latencyDown", self.latency_down.map(of_latency))
            .with_some("latencyUp", self.latency_up.map(of_latency))
            .with("leadMs", self.lead_ms)
            .with("dilation", self.dilation)
            .with_some("inputMarginMs", self.input_margin_ms.map(i64::from))
            .count("inputsLate", self.inputs_late)
            .count("inputsMissing", self.inputs_missing)
            .count("inputsRefused", self.inputs_refused)
            .count("rewinds", self.rewinds)
            .count("rewindsBeyond", self.rewinds_beyond)
            .count("resimulations", self.resimulations)
            .count("resimulationsShort", self.resimulations_short)
            .count("clockJumps", self.clock_jumps)
            .count("eventsDropped", self.events_dropped)
            .count("messagesUnreadable", self.messages_unreadable)
            .build()
    }
}

fn of_session(stats: &Stats) -> Value {
    Fields::default()
        .count("packetsSent", stats.packets_sent)
        .count("bytesSent", stats.bytes_sent)
        .count("packetsReceived", stats.packets_received)
        .count("bytesReceived", stats.bytes_received)
        .count("messagesSent", stats.messages_sent)
        .count("messagesReceived", stats.messages_received)
        .count("packetsRepeated", stats.packets_repeated)
        .count("packetsEarly", stats.packets_early)
        .count("packetsLost", stats.packets_lost)
        .count("messagesOutdated", stats.messages_outdated)
        .count("messagesDropped", stats.messages_dropped)
        .count("messagesReplaced", stats.messages_replaced)
        .count("fragmentedAbandoned", stats.fragmented_abandoned)
        .count("framesUnknown", stats.frames_unknown)
        .build()
}

impl Describe for world::Diagnostics {
    fn describe(&self) -> Value {
        Fields::default()
            .count("packets", self.packets)
            .count("bytes", self.bytes)
            .count("entries", self.entries)
            .with_some("bytesPerEntity", self.bytes_per_entity)
            .count("spawns", self.spawns)
            .count("despawns", self.despawns)
            .count("delivered", self.delivered)
            .count("lost", self.lost)
            .count("heldBack", self.held_back)
            .with_some("baselineAgeTicksMean", self.baseline_age_ticks_mean)
            .count("baselineAgeTicksMax", self.baseline_age_ticks_max.into())
            .size("visible", self.visible)
            .size("pending", self.pending)
            .with_some("newestAgeTicks", self.newest_age_ticks.map(i64::from))
            .with_some("settledAgeTicks", self.settled_age_ticks.map(i64::from))
            .size("inFlightBytes", self.in_flight_bytes)
            .size("budgetBytes", self.budget_bytes)
            .build()
    }
}

impl Describe for rollback::Event {
    fn describe(&self) -> Value {
        match self {
            rollback::Event::Desync { player, tick, is_exact } => Fields::of_type("desync")
                .with_some("player", player.map(i64::from))
                .tick("tick", *tick)
                .with("isExact", *is_exact),
            rollback::Event::Lost { oldest } => Fields::of_type("lost").tick("oldest", *oldest),
        }
        .build()
    }
}

impl Describe for rollback::Diagnostics {
    fn describe(&self) -> Value {
        Fields::default()
            .tick("next", self.next)
            .tick("settled", self.settled)
            .count("steps", self.steps)
            .count("replayed", self.replayed)
            .count("rollbacks", self.rollbacks)
            .count("deepest", self.deepest.into())
            .count("stalled", self.stalled)
            .count("missed", self.missed)
            .count("missedByAll", self.missed_by_all)
            .count("refused", self.refused)
            .count("ignored", self.ignored)
            .count("desyncs", self.desyncs)
            .build()
    }
}

impl Describe for RoomError {
    fn describe(&self) -> Value {
        let path = match self {
            RoomError::Value(error) => Some(error.path()),
            RoomError::State(error) => match &**error {
                StateError::Value(error) => Some(error.path()),
                _ => None,
            },
            _ => None,
        };
        let path = path.filter(|path| !path.is_empty());
        Fields::default()
            .with("code", self.code())
            .with("message", self.to_string())
            .with_some("path", path)
            .build()
    }
}

impl RoomError {
    /// Returns the error's name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            RoomError::Misuse(misuse) => match misuse {
                ApiMisuse::MessageTooLarge { .. } => "message_too_large",
                ApiMisuse::NoSuchChannel(_) => "no_such_channel",
                ApiMisuse::Closed(_) => "closed",
                ApiMisuse::NotHost { .. } => "not_host",
                ApiMisuse::NoHost { .. } => "no_host",
                ApiMisuse::Spectator { .. } => "spectator",
                ApiMisuse::NotOpen { .. } => "not_open",
                ApiMisuse::NoSuchPlayer(_) => "no_such_player",
                ApiMisuse::Bounds(_) => "bounds",
            },
            RoomError::Value(_) => "value",
            RoomError::State(error) => match **error {
                StateError::Value(_) => "value",
                _ => "state",
            },
            RoomError::World(_) => "world",
            RoomError::Refused { .. } => "refused",
            RoomError::NotHandedOver { .. } => "not_handed_over",
            RoomError::Full => "full",
            RoomError::File { .. } => "file",
        }
    }
}
