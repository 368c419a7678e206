//! The kinds of a room, and the options that hosts, joins and matches have alone. `builder.rs` has those of all.

use super::builder::{HostBuilder, JoinBuilder, MatchBuilder, RoomBuilder};
use super::preset::Preset;
use parlor_client_core::{Action, Actions, Interpolator, Wish};
use parlor_proto::{TickRate, limits};
use parlor_sync::interpolation::RenderDelay;
use parlor_sync::lead::LeadTuning;
use parlor_sync::limits::{RESIMULATE_TICKS_MAX, REWIND_MAX, SIMULATION_DELAY_TICKS_MAX};
use parlor_sync::prediction::Smoothing;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Replicated, Schema};
#[cfg(feature = "server")]
use parlor_transport::lan::Listing;
#[cfg(feature = "lan")]
use parlor_transport::lan::Network;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// A room that this process hosts: [`Room::host`](crate::Room::host).
#[derive(Clone, Debug)]
pub enum Host {}
/// A seat in a room or match: [`Room::join`](crate::Room::join).
#[derive(Clone, Debug)]
pub enum Join {}
/// A match: [`Room::create_match`](crate::Room::create_match).
#[derive(Clone, Debug)]
pub enum Match {}

/// A kind that opens a room: [`Host`] and [`Match`].
pub trait Opens: sealed::Kind {}
impl Opens for Host {}
impl Opens for Match {}

/// A kind that may be in a room with a host, and may become the host of it: [`Host`] and [`Join`].
pub trait Hosted: sealed::Kind {}
impl Hosted for Host {}
impl Hosted for Join {}

mod sealed {
    pub trait Kind {}
    impl Kind for super::Host {}
    impl Kind for super::Join {}
    impl Kind for super::Match {}
}

impl JoinBuilder {
    /// Joins as a spectator: it sees state, messages to all and events as its view allows, sends nothing, and takes no player's seat. A
    /// room has seats of their own for spectators: [`spectators`](RoomBuilder::spectators). Without a free one the room closes with
    /// [`Refusal::SpectatorsFull`](crate::Refusal::SpectatorsFull). It never becomes the host or the primary, and has no direct path.
    ///
    /// ```no_run
    /// let room = parlor::Room::join("tanks", "K7QM").spectate().open();
    /// ```
    pub fn spectate(mut self) -> Self {
        self.options.spectate = true;
        self
    }
}

/// Options of a new room.
impl<K: Opens> RoomBuilder<K> {
    /// Sets how many players a new room may have at once. A player-hosted room: 2 to 16, the host included, default 4. A room of a
    /// [`dedicated`](HostBuilder::dedicated) host: 2 to 255, the host not included, default 4. A match: 2 to 256, default 16.
    pub fn max_players(mut self, players: u16) -> Self {
        if let Wish::Host { max_players, .. } | Wish::Match { max_players, .. } = &mut self.options.intent {
            *max_players = players;
        }
        self
    }

    /// Sets how many [spectators](JoinBuilder::spectate) a new room takes: 0 to 64, and at most as many as leave it 256 members in all.
    /// Default: 8. With 0 it takes none.
    ///
    /// ```no_run
    /// let room = parlor::Room::host("tanks").max_players(4).spectators(20).open();
    /// ```
    pub fn spectators(mut self, spectators: u16) -> Self {
        self.options.spectators = spectators;
        self
    }

    /// Sets the spectator delay of a new room: how much later than its players its
    /// [spectators](JoinBuilder::spectate) see it, 1 s to 5 min. Default: zero. The server holds everything back for
    /// that time, so a changed client sees nothing earlier. Players do not see such spectators, and have no direct
    /// paths to each other.
    ///
    /// ```no_run
    /// let room = parlor::Room::host("tanks").spectator_delay(std::time::Duration::from_secs(30)).open();
    /// ```
    pub fn spectator_delay(mut self, delay: Duration) -> Self {
        self.options.spectator_delay = delay;
        self
    }

    /// Sets the steps per second of a new room: 1 to 240. Default: 30.
    pub fn tick_hz(mut self, hz: u16) -> Self {
        let rate = TickRate::new(hz);
        if let (Some(rate), Wish::Host { tick_rate, .. } | Wish::Match { tick_rate, .. }) =
            (rate, &mut self.options.intent)
        {
            *tick_rate = rate;
        }
        let wrong = || format!("tick_hz is {hz}; it may be 1 to {}", limits::TICK_HZ_MAX);
        self.note(rate.map(drop).ok_or_else(wrong));
        self
    }
}

/// How a new room treats players whose connection is lost.
impl<K: Opens> RoomBuilder<K> {
    /// Sets the silence after which a player of the new room counts as lost: 1 to 8 s. Default: the server's, 8 s. A player that says
    /// goodbye, and one whose WebSocket is closed by its system, is missed at once whatever this is. With 1.5 s the others hear of a
    /// killed process within 2 s, whatever its transport.
    ///
    /// It costs signs of life: a quarter of it is the interval at which an idle player is heard. With 1.5 s an idle player and the server
    /// send each other some 110 bytes a second, instead of 21: docs/performance.md has the measurement. A player whose network stands
    /// still for as long is reported as lost, and comes back.
    ///
    /// ```no_run
    /// let room = parlor::Room::create_match("duels").presence(std::time::Duration::from_millis(1_500)).open();
    /// ```
    pub fn presence(mut self, silence: Duration) -> Self {
        self.options.presence = Some(silence);
        self
    }

    /// Sets how long a lost player has its seat in the new room, if the server keeps it as long. Default: the server's, 30 s. With zero
    /// the room keeps none: who is lost has left at once, and its reliable messages do not wait.
    ///
    /// ```no_run
    /// let room = parlor::Room::create_match("duels").grace(std::time::Duration::ZERO).open();
    /// ```
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = Some(grace);
        self
    }
}

/// Options of a room that this process hosts.
impl HostBuilder {
    /// Sets the code of a new room: 4 to 12 letters and digits. Default: the server draws one.
    pub fn code(mut self, code: &str) -> Self {
        let chosen = code.parse().map_err(|error| format!("code is {code:?}: {error}"));
        if let (Ok(chosen), Wish::Host { code, .. }) = (&chosen, &mut self.options.intent) {
            *code = Some(*chosen);
        }
        self.note(chosen.map(drop));
        self
    }

    /// Makes this process a dedicated host: it has no player, and the room may have up to 255. The server must allow it.
    pub fn dedicated(mut self) -> Self {
        if let Wish::Host { dedicated, .. } = &mut self.options.intent {
            *dedicated = true;
        }
        self
    }

    /// Enables host migration: when the host leaves, or is silent for 250 ms (188 ms on a steady connection), another player becomes the
    /// host and the game goes on. The old host is a plain player if it returns. Keep everything that a step needs in the room, so that
    /// it runs the same at every host. Default: off.
    pub fn host_migration(self) -> Self {
        self.host_timeout(Duration::from_millis(limits::HOST_TIMEOUT_MS_DEFAULT.into()))
    }

    /// Enables [host migration](Self::host_migration) and sets the host timeout: 100 ms to 10 s.
    pub fn host_timeout(mut self, timeout: Duration) -> Self {
        self.options.host_timeout = Some(timeout);
        self
    }
}

/// Options of the server that a host brings: the feature `server`.
#[cfg(feature = "server")]
impl HostBuilder {
    /// Lets other machines of the local network find and join the room, should this process start the server itself. Default: only this
    /// machine does.
    ///
    /// ```no_run
    /// // No server is named and none runs on this machine: one starts in this process, and ends with the room.
    /// let room = parlor::Room::host("tanks").lan(parlor::lan::Network::default()).open();
    /// ```
    pub fn lan(mut self, network: Network) -> Self {
        self.connect.lan = Some(network);
        self
    }

    /// Sets what others see of the room where [`lan`](Self::lan) announces it: its name and data of the game's own. `None` announces
    /// nothing until [`Room::advertise`](crate::Room::advertise) does. Default: an announcement without a name.
    ///
    /// ```no_run
    /// use parlor::lan::{Listing, Network};
    /// let listing = Listing::named("Ada's game").data("map=dunes");
    /// let room = parlor::Room::host("tanks").lan(Network::default()).advertise(listing).open();
    /// ```
    pub fn advertise(mut self, listing: impl Into<Option<Listing>>) -> Self {
        let listing = listing.into();
        let checked = listing.as_ref().map_or(Ok(()), Listing::check);
        self.note(checked.map_err(|wrong| format!("advertise: {wrong}")));
        self.connect.listing = listing;
        self
    }
}

/// Options of a seat that is looked for on the local network: the feature `lan`.
#[cfg(feature = "lan")]
impl JoinBuilder {
    /// Sets the network on which [`Room::join_at`](crate::Room::join_at) looks for announced rooms. Default: all networks of this
    /// machine.
    pub fn lan(mut self, network: Network) -> Self {
        self.connect.lan = Some(network);
        self
    }
}

/// Options of a match.
impl MatchBuilder {
    /// Sets the label that a new match is listed under: at most 64 bytes without control characters. Default: empty.
    pub fn label(mut self, text: &str) -> Self {
        if let Wish::Match { label, .. } = &mut self.options.intent {
            text.clone_into(label);
        }
        self
    }

    /// Keeps the log of a new match on the server: members and reliable messages can be read after its end. The server needs a store.
    pub fn keep(mut self) -> Self {
        if let Wish::Match { keep, .. } = &mut self.options.intent {
            *keep = true;
        }
        self
    }
}

/// Options of a room with a host. Host and guest have the same ones, because a guest may become the host by
/// [migration](HostBuilder::host_migration), and the host a guest.
impl<K: Hosted> RoomBuilder<K> {
    /// Applies the settings of a [`Preset`]. The host's decides the steps per second. Later calls of the builder change single settings.
    ///
    /// ```no_run
    /// let room = parlor::Room::host("tanks").preset(parlor::Preset::Action).max_players(8).open();
    /// ```
    pub fn preset(mut self, preset: Preset) -> Self {
        preset.apply(&mut self.options);
        self
    }

    /// Sets the schema of the room's entities. Host and guests need the same one. Default: none, which leaves keyed state.
    ///
    /// ```no_run
    /// # use parlor::schema::{Kind, Schema};
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn main() -> Result<(), parlor::schema::SchemaError> {
    /// let schema = Schema::builder().replicate::<Tank>().build()?;
    /// let room = parlor::Room::host("tanks").schema(schema).open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn schema(mut self, schema: Schema) -> Self {
        self.options.schema = Some(Arc::new(schema));
        self
    }

    /// Sets the template of this player's own state, which it sets and others read by [`OwnState`](crate::OwnState).
    pub fn template(mut self, template: Template) -> Self {
        self.options.template = Some(template);
        self
    }

    /// Runs a guest's steps ahead of the room's time, so that each input reaches the host before its step. The host's reports on
    /// arrival set how far. Default: off; the host uses an input when it arrives. No effect while this process is the host.
    pub fn lead(mut self) -> Self {
        self.options.lead = true;
        self
    }

    /// Sets how the [`lead`](Self::lead) follows the host's reports: the margin that inputs shall have, and how fast and how much steps
    /// may speed up for it. Default: see [`LeadTuning`], which has the ranges.
    pub fn lead_tuning(mut self, tuning: LeadTuning) -> Self {
        self.options.lead_tuning = tuning;
        self
    }

    /// Sets the bounds of how far behind the newest update others are drawn. Within them the delay follows the network. Default: see
    /// [`RenderDelay`], which has the range.
    pub fn render_delay(mut self, shortest: Duration, longest: Duration) -> Self {
        self.options.drawing.delay = RenderDelay { shortest, longest };
        self
    }

    /// Draws a component of others by the game's own function of two versions, the older first, and the place between them: 0 is the
    /// older one, 1 the newer one; while an update is missing it is up to 250 ms beyond 1. Default: it moves as the schema says.
    ///
    /// ```no_run
    /// # use parlor::schema::{Kind, Schema};
    /// # struct Door { open: f32 }
    /// # parlor::replicated!(Door as "door" => { open: Kind::float(0.0, 1.0, 0.01) });
    /// # fn main() -> Result<(), parlor::schema::SchemaError> {
    /// let schema = Schema::builder().replicate::<Door>().build()?;
    /// let ease = |older: &Door, newer: &Door, t: f64| {
    ///     let t = t.min(1.0) as f32;
    ///     Door { open: older.open + (newer.open - older.open) * t * t * (3.0 - 2.0 * t) }
    /// };
    /// let room = parlor::Room::join("tanks", "K7QM").schema(schema).interpolate_by::<Door>(ease).open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn interpolate_by<C: Replicated>(mut self, by: Interpolator<C>) -> Self {
        self.options.drawing.interpolate_by(by);
        self
    }

    /// Draws all components of others that have no [function](Self::interpolate_by) of the game as they came, without motion in between.
    /// Default: they move as the schema says.
    pub fn snap_others(mut self) -> Self {
        self.options.drawing.snaps = true;
        self
    }

    /// Predicts a component of a guest's own entities: its steps write them by [`insert`](crate::WorldAccess::insert), as the
    /// host's do, so the player sees the effect of an input at once. Where the host's state differs, the room corrects the components and runs
    /// the steps since again. Implies [`lead`](Self::lead). No effect while this process is the host.
    ///
    /// ```no_run
    /// # use parlor::schema::{Kind, Schema};
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn main() -> Result<(), parlor::schema::SchemaError> {
    /// let schema = Schema::builder().replicate::<Tank>().build()?;
    /// let room = parlor::Room::join("tanks", "K7QM").schema(schema).predict::<Tank>().open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn predict<C: Replicated>(self) -> Self {
        self.predict_named(C::NAME)
    }

    /// As [`predict`](Self::predict), by the name that the component has in the schema: for an engine that keeps a list of its components.
    pub fn predict_named(mut self, component: &str) -> Self {
        self.options.predicted.push(component.to_owned());
        self
    }

    /// Sets how long this process waits for a new host in a [migration](HostBuilder::host_migration), before the room is over for it
    /// with [`CloseReason::HostGone`](crate::CloseReason::HostGone): 500 ms to 60 s. Default: 3 s. Time without a connection does not count.
    pub fn migration_grace(mut self, longest: Duration) -> Self {
        self.options.migration_grace = longest;
        self
    }

    /// Sets whether no step is due at this process in a migration, from [`Event::HostMigration`](crate::Event::HostMigration) to
    /// [`Event::HostChanged`](crate::Event::HostChanged). Set it alike for all players. Default: true in a room without a
    /// [`schema`](Self::schema), whose state is keys alone, and false in one with a schema, where guests go on and the new host makes up
    /// for all steps.
    pub fn migration_pause(mut self, pauses: bool) -> Self {
        self.options.migration_pause = Some(pauses);
        self
    }

    /// Defines a predicted action, for [`Step::act`](crate::Step::act): its owner applies it at once, and the host decides it in the same
    /// step. All members define the same ones. Implies [`lead`](Self::lead).
    ///
    /// ```no_run
    /// # use parlor::schema::{Kind, Schema};
    /// # use parlor::{Acting, Action, ActionError, Room};
    /// # use serde::{Deserialize, Serialize};
    /// # struct Tank { shells: u8 }
    /// # parlor::replicated!(Tank as "tank" => { shells: Kind::int(0, 20) });
    /// #[derive(Serialize, Deserialize)]
    /// struct Shoot;
    ///
    /// impl Action for Shoot {
    ///     const NAME: &'static str = "shoot";
    ///
    ///     fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
    ///         let entity = world.entity();
    ///         let Some(mut tank) = world.component::<Tank>(entity)? else { return Err("no_tank".into()) };
    ///         tank.shells = tank.shells.checked_sub(1).ok_or("no_shells")?;
    ///         world.insert(entity, &tank)?;
    ///         Ok(())
    ///     }
    /// }
    /// # fn main() -> Result<(), parlor::schema::SchemaError> {
    /// let schema = Schema::builder().replicate::<Tank>().build()?;
    /// let mut room = Room::join("tanks", "K7QM").schema(schema).predict::<Tank>().action::<Shoot>().open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn action<A: Action>(mut self) -> Self {
        let defined = self.options.actions.define::<A>();
        self.note(defined);
        self
    }

    /// Defines predicted actions that were collected before, as [`action`](Self::action) does each.
    pub fn actions(mut self, actions: &Actions) -> Self {
        let defined = self.options.actions.extend(actions);
        self.note(defined);
        self
    }

    /// Sets how corrections are smoothed on the screen. Default: see [`Smoothing`].
    pub fn smoothing(mut self, smoothing: Smoothing) -> Self {
        self.options.smoothing = smoothing;
        self
    }

    /// Keeps a checksum of the state at every multiple of `sequences` at which the state was complete, so that members can compare what they
    /// decoded: see [`StateView::checksums`](crate::StateView::checksums). Default: zero, which keeps none.
    pub fn hash_every(mut self, sequences: u64) -> Self {
        self.options.hash_every = NonZeroU64::new(sequences);
        self
    }

    /// Sets how far back [`HostStep::rewind`](crate::HostStep::rewind) looks at most: up to 250 ms, which is the default. Less is fairer to the
    /// target, more to a shooter with a long way. Takes effect while this process is the host.
    pub fn rewind_max(mut self, longest: Duration) -> Self {
        if longest > REWIND_MAX {
            self.note(Err(format!("rewind_max is {longest:?}; it may be up to {REWIND_MAX:?}")));
        }
        self.options.rewind_max = longest;
        self
    }

    /// Sets how many steps are run again at most when an input comes late, before each new step: 0 to 32. Default: 0, which runs
    /// none again. Everything that a step changes must then be in components of entities: they are set back, and nothing else is.
    /// Steps before an entity came or went are not run again. Takes effect while this process is the host.
    pub fn resimulate(mut self, ticks: u32) -> Self {
        if ticks > RESIMULATE_TICKS_MAX {
            self.note(Err(format!("resimulate is {ticks}; it may be 0 to {RESIMULATE_TICKS_MAX} ticks")));
        }
        self.options.resimulate_ticks = ticks;
        self
    }

    /// Sets how many steps the host runs behind the room's time: 0 to 32. Default: 0. Fewer inputs come late then, and
    /// everybody sees everything so much later. Takes effect while this process is the host.
    pub fn simulation_delay(mut self, ticks: u32) -> Self {
        if ticks > SIMULATION_DELAY_TICKS_MAX {
            let text =
                format!("simulation_delay is {ticks}; it may be 0 to {SIMULATION_DELAY_TICKS_MAX} ticks");
            self.note(Err(text));
        }
        self.options.simulation_delay_ticks = ticks;
        self
    }
}
