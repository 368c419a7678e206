//! A room, as a game holds it.

use super::builder::{HostBuilder, JoinBuilder, MatchBuilder};
#[cfg(feature = "clipboard")]
use super::clipboard::Clipboard;
use super::connect_options::ConnectOptions;
use super::dial;
use super::handle::Handle;
use super::loop_advice::LoopAdvice;
use super::packet_log::PacketTap;
use super::recording::Tape;
use super::runtime;
#[cfg(feature = "clipboard")]
use crate::modules::Module;
use parlor_client_core::{
    ClosedReason, ConnectFailure, ConnectFailureKind, Diagnostics, Event, Moment, Options, Player, RoomCore,
    RoomError, RoomInfo,
};
use parlor_proto::{ApiMisuse, Instant, MemberId, RoomCode, Tick};
use parlor_sync::inputs::Counters as InputCounters;
use parlor_sync::value::to_value;
use parlor_transport::discovery::Invite;
use parlor_transport::impaired::{Conditions, Impairment};
#[cfg(feature = "server")]
use parlor_transport::lan::Listing;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A room, hosted or joined.
///
/// A room never blocks and has no callbacks. Sockets run on a background thread; received data becomes
/// visible in [`poll`](Self::poll), and no read changes in between. A room works with and without an async
/// runtime, and can be moved to another thread.
///
/// What a member does at any time, such as [`send`](Self::send), takes `&self`. What belongs to a fixed step
/// is on the [`Step`](super::Step) that [`step`](Self::step) gives, and what only the host writes on its
/// [`Host`](super::Host). What is read of each kind of state is on [`state`](Self::state),
/// [`world`](Self::world), [`own_state`](Self::own_state) and [`rollback`](Self::rollback).
///
/// ```no_run
/// use parlor::{Event, Room};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Default)]
/// struct Move { dx: f32, dy: f32 }
/// #[derive(Serialize, Deserialize, Default)]
/// struct Tank { x: f32, y: f32 }
///
/// fn play(code: Option<String>) -> Result<(), Box<dyn std::error::Error>> {
///     let mut room = match code {
///         None => Room::host("tanks").max_players(4).tick_hz(30).open(),
///         Some(code) => Room::join("tanks", &code).open(),
///     };
///     loop {
///         while let Some(event) = room.poll() {
///             match event {
///                 Event::Open { code } => println!("share {code}"),
///                 Event::Closed(why) => return Err(why.into()),
///                 _ => {}
///             }
///         }
///         while let Some(mut step) = room.step() {
///             step.send_input(&Move { dx: 1.0, dy: 0.0 })?;
///             let Some(mut host) = step.host() else { continue };
///             for (player, Move { dx, dy }) in host.inputs() {
///                 let key = format!("tank/{player}");
///                 let mut tank: Tank = host.state().get(&key)?.unwrap_or_default();
///                 (tank.x, tank.y) = (tank.x + dx, tank.y + dy);
///                 host.set(&key, &tank)?;
///             }
///         }
///         // Draw what `room.state().interpolated::<Tank>(key)?` gives.
///         std::thread::sleep(room.until_next_tick().min(std::time::Duration::from_millis(5)));
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Room {
    pub(super) shared: Arc<Handle>,
    connect: ConnectOptions,
    secret: Option<String>,
    tape: Mutex<Option<Tape>>,
    /// The players and spectators as of the last poll.
    players: Arc<Vec<Player>>,
    spectators: Arc<Vec<Player>>,
    pub(super) advice: LoopAdvice,
    pub(super) running: Option<Running>,
    #[cfg(feature = "clipboard")]
    clipboard: Clipboard,
}

/// The step that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) number: Tick,
    pub(super) is_replay: bool,
}

const _: () = {
    const fn is_send<T: Send + 'static>() {}
    is_send::<Room>();
};

/// How long leaving waits for the goodbye to go out.
const LEAVE_PATIENCE: Duration = Duration::from_millis(1_000);
/// How long either waits for the disk to take the packet log, beyond that.
const LOG_PATIENCE: Duration = Duration::from_millis(100);
/// How long dropping waits for it.
const DROP_PATIENCE: Duration = Duration::from_millis(300);

/// Opening and joining.
impl Room {
    /// Hosts a new room of the game `app`.
    ///
    /// ```no_run
    /// let room = parlor::Room::host("tanks").max_players(4).tick_hz(30).open();
    /// ```
    pub fn host(app: &str) -> HostBuilder {
        HostBuilder::host(app)
    }

    /// Opens a new match of the game `app`: a room without host and state that the server runs. Its members
    /// are equal; it ends when the last one leaves. Data of [`send_data`](Self::send_data) reaches all
    /// members in the same order. [`Event::Open`] has the id by which others [`join`](Self::join).
    ///
    /// ```no_run
    /// let room = parlor::Room::create_match("duels").name("ada").label("casual").open();
    /// ```
    pub fn create_match(app: &str) -> MatchBuilder {
        MatchBuilder::create_match(app)
    }

    /// Joins a room of the game `app` by its code or an invite link, or a match by its id.
    ///
    /// ```no_run
    /// let room = parlor::Room::join("tanks", "K7QM").name("bob").open();
    /// ```
    pub fn join(app: &str, invite: &str) -> JoinBuilder {
        JoinBuilder::join(app, invite)
    }

    /// Joins the room of the game `app` at the address of its server, without a code: the only one there, as when the host
    /// brings its own server. [`RoomInfo::join_path`] is [`JoinPath::Direct`](crate::JoinPath::Direct).
    ///
    /// The room and the server's fingerprint are looked up where they are made known: on this machine in the registry, elsewhere among the
    /// rooms announced on the local network, with the feature `lan` (`HostBuilder::lan`). So it finds no room with a secret on
    /// another machine, and none beyond the local network: an invite link leads there.
    ///
    /// The room closes with [`NoRoom`](crate::ConnectFailureKind::NoRoom) if there is none within five seconds, and with
    /// [`SeveralRooms`](crate::ConnectFailureKind::SeveralRooms) if there are several.
    ///
    /// ```no_run
    /// let room = parlor::Room::join_at("tanks", "192.168.1.7", 7700).name("bob").open();
    /// ```
    pub fn join_at(app: &str, host: &str, port: u16) -> JoinBuilder {
        JoinBuilder::join_at(app, host, port)
    }

    /// Joins the room that the program's arguments name, as `parlor play` takes it: a code, an invite link or the id of a match, as
    /// the first argument that is no option, or after `--join`. `None` if they name none. A name that is wrong closes the room at once.
    ///
    /// ```no_run
    /// use parlor::Room;
    /// let room = match Room::from_args("tanks") {
    ///     Some(join) => join.name("ada").open(),
    ///     None => Room::host("tanks").name("ada").open(),
    /// };
    /// ```
    pub fn from_args(app: &str) -> Option<JoinBuilder> {
        JoinBuilder::from_args(app, std::env::args().skip(1))
    }

    pub(super) fn begin(
        options: Options,
        mut connect: ConnectOptions,
        wrong: Option<ConnectFailure>,
    ) -> Room {
        // The room's own: another one of the same builder keeps its network when this one's changes.
        connect.conditions = connect.conditions.map(|conditions| Conditions::new(conditions.get()));
        if let Some(passport) = &connect.passport {
            connect.server.get_or_insert_with(|| passport.server().clone());
        }
        let (wish, secret) = (options.intent.clone(), options.secret.clone());
        let schema = options.schema.as_ref().map(|schema| schema.encode()).unwrap_or_default();
        let app = options.app.clone();
        let mut core = RoomCore::new(options, connect.mode);
        if connect.at.is_some() {
            core.find_code();
        }
        let shared = Arc::new(Handle::new(core, &connect));
        let log = connect.packet_log.as_ref().filter(|_| wrong.is_none());
        let tap = log.map(|log| PacketTap::begin(log, &app, &schema, shared.now())).transpose();
        let wrong = wrong.or_else(|| {
            let error = tap.map(|tap| tap.map(|tap| shared.tap(tap))).err()?;
            let detail = format!("packet_log: {error}");
            Some(ConnectFailure { kind: ConnectFailureKind::NoPacketLog, detail })
        });
        match wrong {
            Some(failure) => {
                shared.lock().failed(ClosedReason::Connect(failure));
                shared.finished();
            }
            None => {
                runtime::handle().spawn(dial::drive(Arc::clone(&shared), wish, connect.clone()));
            }
        }
        let advice = LoopAdvice::new(shared.now());
        let (tape, players, spectators) = (Mutex::default(), Arc::default(), Arc::default());
        Room {
            shared,
            connect,
            secret,
            tape,
            players,
            spectators,
            advice,
            running: None,
            #[cfg(feature = "clipboard")]
            clipboard: Clipboard::default(),
        }
    }

    /// Leaves the room. Waits at most one second for pending messages and the goodbye to be sent. When the
    /// host leaves, the room ends, or migrates ([`host_migration`](super::HostBuilder::host_migration)).
    /// Dropping a room leaves it as well, and waits less.
    pub fn leave(mut self) {
        self.part(LEAVE_PATIENCE);
    }

    /// Ends the room for all members, if this process is the host; otherwise leaves it. Waits as
    /// [`leave`](Self::leave) does.
    pub fn stop(mut self) {
        {
            let mut core = self.shared.lock();
            if core.closed().is_none() {
                core.stop(self.shared.now());
            }
        }
        self.part(LEAVE_PATIENCE);
    }

    fn part(&mut self, patience: Duration) {
        let begun = std::time::Instant::now();
        {
            let mut core = self.shared.lock();
            if core.closed().is_none() {
                core.leave(self.shared.now());
            }
        }
        self.shared.wake();
        self.finish_recording(patience);
        self.shared.wait_finished(patience.saturating_sub(begun.elapsed()));
        self.shared.finish_log(patience.saturating_sub(begun.elapsed()).max(LOG_PATIENCE));
    }
}

/// Events and steps.
impl Room {
    /// Returns the next event, or `None` if there are no more. All that a game reads changes only in this
    /// call, so a frame begins with `while let Some(event) = room.poll()`.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM").open();
    /// while let Some(event) = room.poll() {
    ///     println!("{event:?}");
    /// }
    /// ```
    pub fn poll(&mut self) -> Option<Event> {
        let now = self.shared.now();
        let mut core = self.shared.lock();
        self.running = None;
        self.advice.polled(now);
        let event = core.poll(now);
        match &event {
            Some(Event::State(update)) if !core.is_host() => {
                let moment = Moment::State { input: update.input_ack_tick };
                self.shared.log_moment(&core, moment, Some(update.server_tick), now);
            }
            Some(_) => {}
            None => self.shared.log_moment(&core, Moment::Drawn, core.drawn_tick(), now),
        }
        let wake = event.is_none() && core.take_wants_driver();
        #[cfg(feature = "server")]
        if let Some(Event::Open { code }) = &event {
            self.shared.listed.opened(*code);
        }
        if let Some(players) = core.shared_players()
            && !Arc::ptr_eq(players, &self.players)
        {
            self.players = Arc::clone(players);
        }
        if let Some(spectators) = core.shared_spectators()
            && !Arc::ptr_eq(spectators, &self.spectators)
        {
            self.spectators = Arc::clone(spectators);
        }
        self.wind(&mut core);
        drop(core);
        if wake {
            self.shared.wake();
        }
        event
    }

    /// Time until the next step is due, for a loop that sleeps. One second while none is.
    pub fn until_next_tick(&self) -> Duration {
        self.with(|core, now| core.until_next_tick(now)).unwrap_or(Duration::from_secs(1))
    }
}

/// Players.
impl Room {
    /// All players, by id, as of the last [`poll`](Self::poll).
    ///
    /// A step or host that writes for each of them takes the ids first, because the players are borrowed from it:
    ///
    /// ```no_run
    /// # fn deal(host: &mut parlor::Host) -> Result<(), parlor::RoomError> {
    /// let ids: Vec<_> = host.players().iter().map(|player| player.id).collect();
    /// for id in ids {
    ///     host.set(&format!("score/{id}"), &0)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn players(&self) -> &[Player] {
        &self.players
    }

    /// One player, as of the last [`poll`](Self::poll).
    pub fn player(&self, id: MemberId) -> Option<&Player> {
        let at = self.players.binary_search_by_key(&id, |player| player.id).ok()?;
        self.players.get(at)
    }

    /// All spectators, by id, as of the last [`poll`](Self::poll): members that [`spectate`](super::JoinBuilder::spectate). They are
    /// none of the [`players`](Self::players).
    ///
    /// ```no_run
    /// # let room = parlor::Room::host("tanks").open();
    /// println!("{} watch", room.spectators().len());
    /// ```
    pub fn spectators(&self) -> &[Player] {
        &self.spectators
    }

    /// Number of players, the host included, as of the last [`poll`](Self::poll).
    pub fn player_count(&self) -> usize {
        self.players.len()
    }

    /// Sets a value of player data that all members see: of this player, or for the host of any player.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player, it is another's and this process is not the host, or there
    /// is too much of it: 32 values of at most 1,024 bytes each.
    pub fn set_player_data<T: Serialize + ?Sized>(
        &self,
        player: MemberId,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        let value = to_value(value)?;
        self.with(|core, _| core.set_player_data(player, key, Some(&value)))
    }

    /// Removes a value of player data.
    ///
    /// # Errors
    /// As [`set_player_data`](Self::set_player_data).
    pub fn remove_player_data(&self, player: MemberId, key: &str) -> Result<(), RoomError> {
        self.with(|core, _| core.set_player_data(player, key, None))
    }
}

/// Status.
impl Room {
    /// Whether this process is the host.
    pub fn is_host(&self) -> bool {
        self.with(|core, _| core.is_host())
    }

    /// Whether this process is a [spectator](super::JoinBuilder::spectate).
    pub fn is_spectator(&self) -> bool {
        self.with(|core, _| core.is_spectator())
    }

    /// Whether the room is open and this process is not the host.
    pub fn is_client(&self) -> bool {
        self.with(|core, _| core.is_connected() && !core.is_host())
    }

    /// Whether the room is open.
    pub fn is_connected(&self) -> bool {
        self.with(|core, _| core.is_connected())
    }

    /// Why the room is closed, if it is.
    pub fn closed(&self) -> Option<ClosedReason> {
        self.with(|core, _| core.closed().cloned())
    }

    /// Id of this player, once the room is open. 0 is the player that opened it.
    pub fn local_id(&self) -> Option<MemberId> {
        self.with(|core, _| core.local_id())
    }

    /// Round trip to the hub; zero for the host, `None` until measured.
    pub fn ping(&self) -> Option<Duration> {
        self.with(|core, _| core.ping())
    }

    /// Round trip to the host, beside [`ping`](Self::ping): over the direct path while one is open, otherwise through the hub, by both
    /// ends' round trips to it. Zero for the host; `None` until measured, in a match, and with a dedicated host.
    pub fn host_ping(&self) -> Option<Duration> {
        self.with(|core, _| core.host_ping())
    }

    /// Whether a migration is under way, from [`Event::HostMigration`] to [`Event::HostChanged`]. In a room of keyed state no step is due
    /// meanwhile ([`migration_pause`](super::RoomBuilder::migration_pause)): go on drawing.
    pub fn is_migrating(&self) -> bool {
        self.with(|core, _| core.is_migrating())
    }

    /// Time since the room opened, the same for everybody in it as far as clocks can be synchronised.
    pub fn server_time(&self) -> Option<Duration> {
        self.with(|core, now| core.server_time(now))
    }

    /// Status of the room: paths, states and reasons.
    pub fn info(&self) -> RoomInfo {
        self.with(|core, _| core.info())
    }

    /// The newest step whose input of a player the host has used: on the host of every player, on a guest its own. `None` if none was.
    pub fn input_ack(&self, player: MemberId) -> Option<Tick> {
        self.with(|core, _| core.input_ack(player))
    }

    /// What was counted of a player's inputs, for the host: taken, late, missing, ignored; `None` if none
    /// came.
    pub fn input_counters(&self, player: MemberId) -> Option<InputCounters> {
        self.with(|core, _| core.input_counters(player))
    }

    /// Counters and measurements.
    pub fn diagnostics(&self) -> Diagnostics {
        self.with(|core, _| core.diagnostics())
    }
}

/// The local network.
#[cfg(feature = "server")]
impl Room {
    /// Changes what others see of this room where a server of this process announces it on the local network
    /// ([`HostBuilder::lan`](crate::HostBuilder::lan)): its name and data. `None` takes the announcement back; who knows the code can still
    /// join. A room with a secret is never announced.
    ///
    /// ```no_run
    /// # fn begin(room: &parlor::Room) -> Result<(), parlor::RoomError> {
    /// room.advertise(parlor::lan::Listing::named("Ada's game").data("round=2"))?;
    /// // It has begun: nobody new shall find it.
    /// room.advertise(None)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, no server of this process announces it, or the listing is out of its bounds.
    pub fn advertise(&self, listing: impl Into<Option<Listing>>) -> Result<(), RoomError> {
        let listing = listing.into();
        listing.as_ref().map_or(Ok(()), Listing::check).map_err(ApiMisuse::Bounds)?;
        if !self.is_connected() {
            return Err(ApiMisuse::NotOpen { what: "be advertised" }.into());
        }
        if self.shared.listed.set(listing) {
            return Ok(());
        }
        let text =
            "no server of this process announces this room: host it with .lan(…), and without another server";
        Err(ApiMisuse::Bounds(text.into()).into())
    }
}

/// Invites.
impl Room {
    /// The room's code, once it is known.
    pub fn code(&self) -> Option<RoomCode> {
        self.with(|core, _| core.info().code)
    }

    /// Invite link, once the room is open: the code, the secret, and the server unless it is on this machine
    /// only.
    pub fn invite_link(&self) -> Option<String> {
        let info = self.info();
        let code = info.code.filter(|_| info.room.is_some())?;
        // Whatever way the packets go, a friend needs the server, and its fingerprint if this process needed it.
        let server = self.shared.server().filter(|server| !server.is_loopback());
        Some(Invite { code, server, secret: self.secret.clone() }.link(&self.connect.scheme))
    }

    /// The web page that shows how to join, if the game has one.
    pub fn join_page(&self) -> Option<String> {
        let base = self.connect.join_page.as_ref()?;
        Some(format!("{base}/join/{}", self.code()?))
    }

    /// Changes the simulated bad network of [`RoomBuilder::impairment`](super::RoomBuilder::impairment) at
    /// once, for development. [`Impairment::none`] ends it.
    ///
    /// # Errors
    /// [`RoomError`] if a setting is out of its bounds, or the room was opened without an impairment.
    pub fn set_impairment(&self, impairment: Impairment) -> Result<(), RoomError> {
        let bounds = |wrong: String| RoomError::from(ApiMisuse::Bounds(wrong));
        impairment.check().map_err(|error| bounds(format!("impairment: {error}")))?;
        let conditions = self.connect.conditions.as_ref().ok_or_else(|| {
            bounds(
                "the network of this room cannot be impaired: open it with .impairment(Impairment::none())"
                    .into(),
            )
        })?;
        conditions.set(impairment);
        Ok(())
    }

    /// The simulated bad network, if the room was opened with one.
    pub fn impairment(&self) -> Option<Impairment> {
        self.connect.conditions.as_ref().map(Conditions::get)
    }

    /// Copies the invite link to the clipboard. Returns whether that was possible: not before the room is open, not
    /// on a machine without a clipboard, and not if the settings switch the module off. On a desktop whose clipboard
    /// belongs to a process (X11, Wayland) the link can be pasted as long as the room lives.
    #[cfg(feature = "clipboard")]
    pub fn copy_invite(&self) -> bool {
        let Some(link) = self.invite_link() else { return false };
        Module::Clipboard.require().is_ok() && self.clipboard.take(link)
    }

    /// The file of the recording, if there is one. Never wait for the core while this is held.
    pub(super) fn tape(&self) -> MutexGuard<'_, Option<Tape>> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what the core recorded.
    pub(super) fn wind(&self, core: &mut RoomCore) {
        if let Some(tape) = &*self.tape() {
            tape.wind(core);
        }
    }

    /// Asks the core, for bindings to other languages: what [`Step`](super::Step) and [`Host`](super::Host) forbid by their
    /// types, it refuses when it is called. Its API may change with any release.
    #[doc(hidden)]
    pub fn with_core<T>(&self, ask: impl FnOnce(&mut RoomCore, Instant) -> T) -> T {
        self.with(ask)
    }

    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut RoomCore, Instant) -> T) -> T {
        let now = self.shared.now();
        ask(&mut self.shared.lock(), now)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.part(DROP_PATIENCE);
    }
}
