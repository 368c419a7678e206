//! A room, as a game holds it.

use super::builder::RoomBuilder;
use super::dial;
use super::reach::Reach;
use super::recording::{Tape, wind};
use super::runtime;
use super::shared::Shared;
use crate::core::{
    ClosedReason, ConnectFailure, ConnectFailureKind, Diagnostics, Event, Options, Player, RoomCore,
    RoomError, RoomInfo,
};
use bytes::Bytes;
use parlor_proto::wire::envelope::To;
use parlor_proto::{ApiMisuse, ChannelId, Instant, Lane, MemberId, RoomCode, Tick};
use parlor_sync::keyed::{Audience, Hints};
use parlor_sync::value::to_value;
use parlor_transport::discovery::{Invite, ServerAddress};
use parlor_transport::impaired::{Conditions, Impairment};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// A room: hosted or joined, it is used the same way.
///
/// A room never blocks and calls nothing back. Sockets live on a background thread; what came over them is seen by the
/// game when it calls [`poll`](Self::poll), and until then nothing that it reads changes. It works inside and outside
/// of an async runtime and can be moved to another thread.
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
///         Some(code) => Room::join("tanks", &code),
///     };
///     loop {
///         while let Some(event) = room.poll() {
///             match event {
///                 Event::Open { code } => println!("share {code}"),
///                 Event::Closed(why) => return Err(why.into()),
///                 _ => {}
///             }
///         }
///         while room.tick() {
///             room.send_input(&Move { dx: 1.0, dy: 0.0 })?;
///             if room.is_host() {
///                 for player in room.players() {
///                     let Move { dx, dy } = room.input(player.id)?.unwrap_or_default();
///                     let key = format!("tank/{}", player.id);
///                     let mut tank: Tank = room.get(&key)?.unwrap_or_default();
///                     (tank.x, tank.y) = (tank.x + dx, tank.y + dy);
///                     room.set(&key, &tank)?;
///                 }
///             }
///         }
///         // Draw what `room.interpolated::<Tank>(key)?` gives.
///         std::thread::sleep(room.until_next_tick().min(std::time::Duration::from_millis(5)));
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Room {
    pub(super) shared: Arc<Shared>,
    reach: Reach,
    secret: Option<String>,
    pub(super) tape: Option<Tape>,
}

const _: () = {
    const fn is_send<T: Send + 'static>() {}
    is_send::<Room>();
};

/// How long leaving waits for the goodbye to go out.
const LEAVE_PATIENCE: Duration = Duration::from_millis(1_000);
/// How long dropping waits for it.
const DROP_PATIENCE: Duration = Duration::from_millis(300);

/// For whoever opens or joins a room.
impl Room {
    /// A new room of the game `app`, with this player as its host.
    ///
    /// ```no_run
    /// let room = parlor::Room::host("tanks").max_players(4).tick_hz(30).open();
    /// ```
    pub fn host(app: &str) -> RoomBuilder {
        RoomBuilder::host(app)
    }

    /// A new match of the game `app`: a room that the server itself runs. Its members are equal, it has no host and no state, and it
    /// lives until its last member has left. What they send by [`send_data`](Self::send_data) is passed on in one order for all.
    /// [`Event::Open`] brings its id, by which others [`join`](Self::join) it.
    ///
    /// ```no_run
    /// let room = parlor::Room::create_match("duels").name("ada").label("casual").open();
    /// ```
    pub fn create_match(app: &str) -> RoomBuilder {
        RoomBuilder::create_match(app)
    }

    /// Joins a room of the game `app` by its code or an invite link, with nothing else to say. See
    /// [`guest`](Self::guest) for more.
    ///
    /// ```no_run
    /// let room = parlor::Room::join("tanks", "K7QM");
    /// ```
    #[must_use]
    pub fn join(app: &str, invite: &str) -> Room {
        RoomBuilder::guest(app, invite).open()
    }

    /// A seat in a room of the game `app`, by its code or an invite link.
    ///
    /// ```no_run
    /// let room = parlor::Room::guest("tanks", "K7QM").name("ada").open();
    /// ```
    pub fn guest(app: &str, invite: &str) -> RoomBuilder {
        RoomBuilder::guest(app, invite)
    }

    pub(super) fn begin(options: Options, mut reach: Reach, wrong: Option<RoomError>) -> Room {
        // The room's own: another one of the same builder keeps its network when this one's changes.
        reach.conditions = reach.conditions.map(|conditions| Conditions::new(conditions.get()));
        if let Some(passport) = &reach.passport {
            reach.server.get_or_insert_with(|| passport.server().clone());
        }
        let (wish, secret) = (options.intent.clone(), options.secret.clone());
        let shared = Arc::new(Shared::new(RoomCore::new(options, reach.mode)));
        match wrong {
            Some(wrong) => {
                let failure =
                    ConnectFailure { kind: ConnectFailureKind::BadAddress, detail: wrong.to_string() };
                shared.lock().failed(ClosedReason::Connect(failure));
                shared.finished();
            }
            None => {
                runtime::handle().spawn(dial::drive(Arc::clone(&shared), wish, reach.clone()));
            }
        }
        Room { shared, reach, secret, tape: None }
    }

    /// Leaves the room and waits, for one second at the most, until what was sent before and the goodbye are out. The
    /// host's leaving ends the room, unless another player takes its part
    /// ([`host_migration`](super::RoomBuilder::host_migration)). Dropping a room leaves it too, with less patience.
    pub fn leave(mut self) {
        self.part(LEAVE_PATIENCE);
    }

    /// Ends the room for everybody, for the host; anybody else leaves. As [`leave`](Self::leave), it waits until that is said.
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
    }
}

/// What happens.
impl Room {
    /// The next event, or `None` when there is no more. Everything that a game can read changes only in here, so a
    /// frame begins with `while let Some(event) = room.poll()`.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM");
    /// while let Some(event) = room.poll() {
    ///     println!("{event:?}");
    /// }
    /// ```
    pub fn poll(&mut self) -> Option<Event> {
        let now = self.shared.now();
        let mut core = self.shared.lock();
        let event = core.poll(now);
        let wake = event.is_none() && core.take_wants_driver();
        wind(self.tape.as_ref(), &mut core);
        drop(core);
        if wake {
            self.shared.wake();
        }
        event
    }

    /// Whether a fixed step of the room is due; if so it counts as run. At most eight come in a row, the rest of a
    /// backlog is dropped and counted ([`Diagnostics::ticks_dropped`]). What was sent and set during the steps leaves
    /// when none is due any more.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM");
    /// while room.tick() {
    ///     room.send_input("jump").expect("the room is open while it ticks");
    /// }
    /// ```
    pub fn tick(&mut self) -> bool {
        let now = self.shared.now();
        let mut core = self.shared.lock();
        let is_due = core.tick(now);
        let wake = !is_due && core.take_wants_driver();
        wind(self.tape.as_ref(), &mut core);
        drop(core);
        if wake {
            self.shared.wake();
        }
        is_due
    }

    /// How long until the next step is due, for a loop that wants to sleep. One second while there is none.
    #[must_use]
    pub fn until_next_tick(&self) -> Duration {
        self.with(|core, now| core.until_next_tick(now)).unwrap_or(Duration::from_secs(1))
    }

    /// The number of the step that was run last.
    #[must_use]
    pub fn tick_number(&self) -> Option<Tick> {
        self.with(|core, _| core.tick_number())
    }
}

/// Messages.
impl Room {
    /// Sends a typed message to one player; it arrives, in order.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM");
    /// # let friend = room.local_id().unwrap();
    /// room.send(friend, "chat", "well played")?;
    /// # Ok::<(), parlor::RoomError>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, there is no such player, or the message cannot be written.
    pub fn send<T: Serialize + ?Sized>(
        &mut self,
        to: MemberId,
        kind: &str,
        message: &T,
    ) -> Result<(), RoomError> {
        self.send_on(Lane::ReliableOrdered, To::Member(to), kind, message)
    }

    /// Sends a typed message to all other players; it arrives, in order.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::join("tanks", "K7QM");
    /// room.broadcast("chat", "hello")?;
    /// # Ok::<(), parlor::RoomError>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the message cannot be written.
    pub fn broadcast<T: Serialize + ?Sized>(&mut self, kind: &str, message: &T) -> Result<(), RoomError> {
        self.send_on(Lane::ReliableOrdered, To::Others, kind, message)
    }

    /// Sends a typed message on a lane, to whom it may concern.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the message cannot be written.
    pub fn send_on<T: Serialize + ?Sized>(
        &mut self,
        lane: Lane,
        to: To,
        kind: &str,
        message: &T,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.send(lane, to, kind, message, false))
    }

    /// Sends a typed message to everybody, this player included, that the hub gives a place in one order which is the
    /// same for all: the first to be told is the first for everybody.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the message cannot be written.
    pub fn broadcast_in_order<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        message: &T,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.send(Lane::ReliableOrdered, To::Everyone, kind, message, true))
    }

    /// Sends bytes on a channel of the game's own, which [`RoomBuilder::channel`] declared.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, the channel is not declared, or the message is too large.
    pub fn send_raw(&mut self, channel: u8, to: To, bytes: impl Into<Bytes>) -> Result<(), RoomError> {
        self.with(|core, _| core.send_raw(ChannelId(channel), to, bytes.into(), false))
    }
}

/// State that the host writes and everybody reads.
impl Room {
    /// Sets a key of the state, for the host. Everybody has it after the step. An unchanged value costs nothing.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::host("tanks").open();
    /// room.set("round", &3)?;
    /// # Ok::<(), parlor::RoomError>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or key or value are out of their bounds: a key has at most 64
    /// bytes, a value 16 KiB, all of them 60 KiB.
    pub fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        self.with(|core, _| core.set(key, value, Audience::All))
    }

    /// Sets a key that only these players may see, for the host. It is never sent to anybody else.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_for<T: Serialize + ?Sized>(
        &mut self,
        players: impl IntoIterator<Item = MemberId>,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        let audience = Audience::members(players);
        self.with(|core, _| core.set(key, value, audience))
    }

    /// Removes a key of the state, for the host; says whether there was one.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn remove(&mut self, key: &str) -> Result<bool, RoomError> {
        self.with(|core, _| core.remove(key))
    }

    /// Declares how the values of all keys that begin with `prefix` move between updates, for the host: which parts
    /// are angles, and which snap.
    ///
    /// ```no_run
    /// # let mut room = parlor::Room::host("tanks").open();
    /// room.declare("tank/", parlor::Hints::none().angle("turret")?.snap("gear")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there are too many declarations.
    pub fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), RoomError> {
        self.with(|core, _| core.declare(prefix, hints))
    }

    /// The value of a key as the host wrote it last, as far as this process knows.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.with(|core, _| core.get(key))
    }

    /// The value of a key as it shall be drawn now: a little behind, so that it moves evenly. On the host it is the
    /// value itself.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn interpolated<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        self.with(|core, now| core.interpolated(key, now))
    }

    /// All keys that this process may see, in ascending order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.with(|core, _| core.keys())
    }

    /// The sequence of the state that [`get`](Self::get) gives, and a hash of it: processes that may see the same keys
    /// have the same hash at the same sequence.
    #[must_use]
    pub fn state_hash(&self) -> Option<(u64, u64)> {
        self.with(|core, _| core.state_hash())
    }

    /// The hashes that [`RoomBuilder::hash_every`] asked for: sequences and hashes, oldest first, the last 256.
    #[must_use]
    pub fn state_marks(&self) -> Vec<(u64, u64)> {
        self.with(|core, _| core.state_marks())
    }
}

/// Players.
impl Room {
    /// Everybody in the room, by id.
    #[must_use]
    pub fn players(&self) -> Vec<Player> {
        self.with(|core, _| core.players())
    }

    /// One player.
    #[must_use]
    pub fn player(&self, id: MemberId) -> Option<Player> {
        self.with(|core, _| core.player(id))
    }

    /// How many are in the room, the host included.
    #[must_use]
    pub fn player_count(&self) -> usize {
        self.with(|core, _| core.player_count())
    }

    /// Sets a value of player data: one's own, or anybody's for the host. Everybody sees it.
    ///
    /// # Errors
    /// [`RoomError`] if there is no such player, it is another's and this process is not the host, or there is too
    /// much of it: 32 values of at most 1,024 bytes each.
    pub fn set_player_data<T: Serialize + ?Sized>(
        &mut self,
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
    pub fn remove_player_data(&mut self, player: MemberId, key: &str) -> Result<(), RoomError> {
        self.with(|core, _| core.set_player_data(player, key, None))
    }

    /// Removes a player from the room, for the host. Both ends are told the reason.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such player, or it is the host itself.
    pub fn kick(&mut self, player: MemberId, reason: &str) -> Result<(), RoomError> {
        self.with(|core, _| core.kick(player, reason))?;
        self.shared.wake();
        Ok(())
    }
}

/// How things stand.
impl Room {
    /// Whether this process decides in the room.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.with(|core, _| core.is_host())
    }

    /// Whether the room is open and another process decides in it.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.with(|core, _| core.is_connected() && !core.is_host())
    }

    /// Whether the room is open.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.with(|core, _| core.is_connected())
    }

    /// Why the room is over for this process, if it is.
    #[must_use]
    pub fn closed(&self) -> Option<ClosedReason> {
        self.with(|core, _| core.closed().cloned())
    }

    /// Which player this process is, once the room is open; 0 is whoever opened it.
    #[must_use]
    pub fn local_id(&self) -> Option<MemberId> {
        self.with(|core, _| core.local_id())
    }

    /// Round trip to the hub; zero for the host, `None` until measured.
    #[must_use]
    pub fn ping(&self) -> Option<Duration> {
        self.with(|core, _| core.ping())
    }

    /// Time since the room opened, the same for everybody in it as far as clocks can be synchronised.
    #[must_use]
    pub fn server_time(&self) -> Option<Duration> {
        self.with(|core, now| core.server_time(now))
    }

    /// Where the room stands: paths, states and reasons.
    #[must_use]
    pub fn info(&self) -> RoomInfo {
        self.with(|core, _| core.info())
    }

    /// What was counted and measured.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        self.with(|core, _| core.diagnostics())
    }
}

/// Invites.
impl Room {
    /// The room's code, once it is known.
    #[must_use]
    pub fn code(&self) -> Option<RoomCode> {
        self.with(|core, _| core.info().code)
    }

    /// A link that says everything a friend's game needs, once the room is open: the code, the secret, and the server
    /// unless it is on this machine only.
    #[must_use]
    pub fn invite_link(&self) -> Option<String> {
        let info = self.info();
        let code = info.code.filter(|_| info.room.is_some())?;
        // Whatever way the packets go, a friend needs the server.
        let server = info.connectivity.server?.parse::<ServerAddress>().ok();
        let server = server.filter(|server| !server.is_loopback()).map(|server| {
            let fingerprint = self.reach.server.as_ref().and_then(|server| server.fingerprint);
            ServerAddress { fingerprint, ..server }
        });
        Some(Invite { code, server, secret: self.secret.clone() }.link(&self.reach.scheme))
    }

    /// The web page that shows how to join, if the game has one.
    #[must_use]
    pub fn join_page(&self) -> Option<String> {
        let base = self.reach.join_page.as_ref()?;
        Some(format!("{base}/join/{}", self.code()?))
    }

    /// A tool for development: changes the bad network that the room was put on by [`RoomBuilder::impairment`], at once and
    /// for as long as the room lives. [`Impairment::none`] makes it good again.
    ///
    /// # Errors
    /// If a setting is out of its bounds, or the room was not put on one.
    pub fn set_impairment(&self, impairment: Impairment) -> Result<(), RoomError> {
        let bounds = |wrong: String| RoomError::from(ApiMisuse::Bounds(wrong));
        impairment.check().map_err(|error| bounds(format!("impairment: {error}")))?;
        let conditions = self.reach.conditions.as_ref().ok_or_else(|| {
            bounds(
                "the network of this room cannot be impaired: open it with .impairment(Impairment::none())"
                    .into(),
            )
        })?;
        conditions.set(impairment);
        Ok(())
    }

    /// What is wrong with the network that the room was put on, if it was.
    #[must_use]
    pub fn impairment(&self) -> Option<Impairment> {
        self.reach.conditions.as_ref().map(Conditions::get)
    }

    /// Copies the invite link to the clipboard; says whether that was possible.
    #[cfg(feature = "clipboard")]
    #[must_use]
    pub fn copy_invite(&self) -> bool {
        let Some(link) = self.invite_link() else { return false };
        arboard::Clipboard::new().and_then(|mut clipboard| clipboard.set_text(link)).is_ok()
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
