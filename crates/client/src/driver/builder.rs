//! Options of all rooms, set before one is opened or joined. `kind_options.rs` has those of hosts, joins or matches alone.

use super::connect_options::{ConnectOptions, TransportPreference, check_scheme};
use super::failure::disabled;
use super::kind;
use super::packet_log::PacketLog;
use super::resume_ticket::ResumeTicket;
use super::room::Room;
use crate::modules::Module;
use parlor_client_core::{
    ConnectFailure, ConnectFailureKind, Mode, Options, PathMode, Protocol, ReconnectPolicy, RoomError, Wish,
};
use parlor_proto::wire::handshake::Resume;
use parlor_proto::{ApiMisuse, Lane, RoomCode};
use parlor_transport::discovery::{Invite, Registry, ServerAddress};
use parlor_transport::impaired::{Conditions, Impairment};
use parlor_transport::inside::Inside;
use std::marker::PhantomData;

/// Options of a room. Each has a default. A wrong one closes the room at once, with the reason in [`Event::Closed`](crate::Event::Closed).
///
/// The [`kind`] of the builder says which options there are: [`HostBuilder`], [`JoinBuilder`] or [`MatchBuilder`]. A function that
/// sets options of any room takes a `RoomBuilder<K>`.
///
/// ```no_run
/// use parlor::Room;
/// let room = Room::host("tanks").name("ada").max_players(4).tick_hz(30).open();
/// let guest = Room::join("tanks", "K7QM").name("bob").open();
/// ```
///
/// An option of another kind does not compile:
///
/// ```compile_fail,E0599
/// let guest = parlor::Room::join("tanks", "K7QM").max_players(4).open();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a room begins with open()"]
pub struct RoomBuilder<K> {
    pub(super) options: Options,
    pub(super) connect: ConnectOptions,
    /// The first thing that was wrong.
    wrong: Option<String>,
    kind: PhantomData<K>,
}

/// Options of a room that this process hosts: [`Room::host`].
pub type HostBuilder = RoomBuilder<kind::Host>;
/// Options of a seat in a room or match: [`Room::join`], [`Room::resume`].
pub type JoinBuilder = RoomBuilder<kind::Join>;
/// Options of a match: [`Room::create_match`].
pub type MatchBuilder = RoomBuilder<kind::Match>;

impl<K> RoomBuilder<K> {
    fn new(options: Options) -> Self {
        let connect = ConnectOptions::default();
        #[cfg(feature = "settings")]
        let (options, connect) = super::from_settings::applied(options, connect);
        RoomBuilder { options, connect, wrong: None, kind: PhantomData }
    }
}

impl HostBuilder {
    pub(super) fn host(app: &str) -> Self {
        RoomBuilder::new(Options::host(app))
    }
}

impl MatchBuilder {
    pub(super) fn create_match(app: &str) -> Self {
        RoomBuilder::new(Options::create_match(app))
    }
}

impl JoinBuilder {
    pub(super) fn join(app: &str, invite: &str) -> Self {
        let (invite, wrong) = match invite.parse::<Invite>() {
            Ok(invite) => (invite, None),
            // Never used: the room is closed with what is wrong before it would connect.
            Err(error) => {
                let code = RoomCode::draw(parlor_proto::code::CODE_LEN_MAX, || 0);
                (Invite { code, server: None, secret: None }, Some(error.to_string()))
            }
        };
        let mut options = Options::join(app, invite.code);
        options.secret = invite.secret;
        let mut builder = RoomBuilder::new(options);
        (builder.connect.server, builder.wrong) = (invite.server, wrong);
        builder
    }

    pub(super) fn join_at(app: &str, host: &str, port: u16) -> Self {
        // It stands for the code that is looked for: see `RoomCore::find_code`.
        let code = RoomCode::draw(parlor_proto::code::CODE_LEN_MAX, || 0);
        let mut builder = RoomBuilder::new(Options::join(app, code));
        let host = host.trim().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || port == 0 {
            builder.note(Err(format!("join_at: {host:?}, port {port} is no address of a server")));
        }
        builder.connect.at = Some(ServerAddress { host: host.to_owned(), port, fingerprint: None });
        builder
    }

    /// The room that a program's arguments name, if they name one.
    pub(super) fn from_args(app: &str, args: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut args = args.into_iter();
        let invite = loop {
            let arg = args.next()?;
            match arg.strip_prefix("--join") {
                Some("") => break args.next().unwrap_or_default(),
                Some(rest) if rest.starts_with('=') => break rest[1..].to_owned(),
                _ if !arg.starts_with('-') => break arg,
                _ => {}
            }
        };
        Some(Self::join(app, &invite))
    }

    pub(super) fn resume(app: &str, ticket: &ResumeTicket) -> Self {
        let mut options = Options::host(app);
        let Resume { session, token } = ticket.resume;
        options.intent = Wish::Resume { session, token };
        let mut builder = RoomBuilder::new(options);
        builder.connect.server = Some(ticket.server.clone());
        builder
    }
}

/// Options of every room.
impl<K> RoomBuilder<K> {
    /// Sets the player's name, as the others see it: at most 48 bytes. Default: empty.
    pub fn name(mut self, name: &str) -> Self {
        self.options.name = name.to_owned();
        self
    }

    /// Sets a secret that joiners need beside the code. Invite links contain it. Default: none.
    pub fn secret(mut self, secret: &str) -> Self {
        self.options.secret = Some(secret.to_owned());
        self
    }

    /// Sets the admission token, for a server that admits by token. The game's own service issues it for this room and this player. It is
    /// valid once and for at most a minute, so request it just before.
    pub fn token(mut self, token: &str) -> Self {
        self.options.token = Some(token.to_owned());
        self
    }

    /// Joins as this account. The others see it as [`Player::user`](crate::Player::user). Each connection gets its ticket in the
    /// background. Default [`server`](Self::server): the account's own. An invite to another server is refused: no other server learns
    /// of the account.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parlor::{Room, online};
    /// let account = online::sign_in("play.example.com").name("ada").account("tanks")?;
    /// let room = Room::join("tanks", "K7QM").name("ada").account(&account).open();
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "online")]
    pub fn account(mut self, account: &crate::online::Account) -> Self {
        self.connect.passport = Some(account.passport());
        self
    }

    /// Sets the game's environment ("production", "development"). Players of different environments never meet. Default: empty.
    pub fn environment(mut self, environment: &str) -> Self {
        self.options.environment = environment.to_owned();
        self
    }

    /// Declares a channel for the game's own bytes: a number from 16 to 63, and its lane. Host and guests must declare
    /// the same ones.
    pub fn channel(mut self, number: u8, lane: Lane) -> Self {
        let result = self.options.channel(number, lane).map_err(|error| error.to_string());
        self.note(result);
        self
    }

    /// Sets whether the room reconnects while the server keeps this player's seat. Default: true. Events report it, beginning with
    /// [`Event::ConnectionLost`](crate::Event::ConnectionLost).
    pub fn reconnect(mut self, reconnect: bool) -> Self {
        self.options.reconnect = reconnect;
        self
    }

    /// Sets when a lost connection is tried again, and for how long: see [`ReconnectPolicy`]. Default: eight attempts within a minute.
    ///
    /// ```no_run
    /// use parlor::{ReconnectPolicy, Room};
    /// use std::time::Duration;
    /// let patient = ReconnectPolicy { attempts: 100, total: Duration::from_secs(600), ..ReconnectPolicy::default() };
    /// let room = Room::join("tanks", "K7QM").reconnect_policy(patient).open();
    /// ```
    pub fn reconnect_policy(mut self, policy: ReconnectPolicy) -> Self {
        self.options.reconnect_policy = policy;
        self
    }

    /// Sets the server: `HOST`, `HOST:PORT` or `HOST:PORT#FINGERPRINT`. Default: the environment variable `PARLOR_SERVER`, then a server
    /// on this machine.
    pub fn server(mut self, address: &str) -> Self {
        match address.parse() {
            Ok(server) => self.connect.server = Some(server),
            Err(error) => self.note(Err(format!("server: {error}"))),
        }
        self
    }

    /// Uses a server in this process, by `server.inside()` of the crate `parlor-server`, instead of [`server`](Self::server). The room talks to it in
    /// memory, unless it has an [impairment](Self::impairment), a [transport](Self::transport) or direct [paths](Self::paths).
    pub fn inside(mut self, server: &Inside) -> Self {
        match server.address() {
            Some(address) => {
                self.connect.server = Some(address);
                self.connect.inside = Some(server.clone());
            }
            None => self.note(Err("inside: the server is on a bad network; name it by its address".into())),
        }
        self
    }

    /// Allows a direct path between this player and the host, where their networks let them: see [`PathMode`]. Both ends must allow it.
    /// Default: everything goes through the server, and no player learns another's address. With [`PathMode::Auto`] a direct path is tried
    /// first, and the server relays where none comes up. With [`PathMode::P2p`] a guest without one gets
    /// [`ClosedReason::NoDirectPath`](crate::ClosedReason::NoDirectPath).
    ///
    /// ```no_run
    /// # use parlor::{PathMode, Room};
    /// let room = Room::join("tanks", "K7QM").paths(PathMode::Auto).open();
    /// ```
    pub fn paths(mut self, paths: PathMode) -> Self {
        self.options.paths = paths;
        self
    }

    /// Sets which server the room uses. Default: [`Mode::Auto`]. [`Mode::P2p`] sets [`paths`](Self::paths) as well.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.connect.mode = mode;
        if mode == Mode::P2p {
            self.options.paths = PathMode::P2p;
        }
        self
    }

    /// Sets how messages and inputs travel where the game does not say it. Default: [`Protocol::Both`].
    ///
    /// ```no_run
    /// # use parlor::{Protocol, Room};
    /// // What is sent is out of date soon: a lost message is not sent again.
    /// let room = Room::join("tanks", "K7QM").protocol(Protocol::Unreliable).open();
    /// ```
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.options.protocol = protocol;
        self
    }

    /// Sets which transports are tried. Default: QUIC, and WebSocket where QUIC gets no answer.
    pub fn transport(mut self, transport: TransportPreference) -> Self {
        self.connect.transport = transport;
        self
    }

    /// Sets the root certificates (PEM) that the server is verified against. Default: the system's.
    pub fn roots(mut self, pem: &str) -> Self {
        self.connect.roots = Some(pem.to_owned());
        self
    }

    /// Sets the registry of rooms on this machine. Default: the user's.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.connect.registry = registry;
        self
    }

    /// Sets the scheme of invite links. Default: "parlor".
    pub fn invite_scheme(mut self, scheme: &str) -> Self {
        self.note(check_scheme(scheme));
        scheme.clone_into(&mut self.connect.scheme);
        self
    }

    /// Sets the web page that shows how to join; [`Room::join_page`] appends the code. Default: none.
    pub fn join_page(mut self, base: &str) -> Self {
        self.connect.join_page = Some(base.trim_end_matches('/').to_owned());
        self
    }

    /// Simulates a bad network on this room's connection, in both directions, for development. With [`Impairment::none`] it does nothing
    /// until [`Room::set_impairment`] changes it.
    ///
    /// ```no_run
    /// # use parlor::Room;
    /// let bad = "latency=80ms,jitter=20ms,loss=3%,seed=7".parse().expect("it is written as the documentation has it");
    /// let room = Room::host("tanks").impairment(bad).open();
    /// ```
    pub fn impairment(mut self, impairment: Impairment) -> Self {
        self.note(impairment.check().map_err(|error| format!("impairment: {error}")));
        self.connect.conditions = Some(Conditions::new(impairment));
        self
    }

    /// Logs all packets of this room into a file, for development: `parlor dump` shows what was sent and received,
    /// packet by packet. The file has what was said in the room, and neither tokens nor the room's secret; it ends at
    /// 64 MiB, or [`PacketLog::bytes_max`]. If it cannot be made, the room does not open. Default: none.
    ///
    /// ```no_run
    /// # use parlor::Room;
    /// let room = Room::join("tanks", "K7QM").packet_log("tonight.net").open();
    /// ```
    pub fn packet_log(mut self, log: impl Into<PacketLog>) -> Self {
        self.connect.packet_log = Some(log.into());
        self
    }

    pub(super) fn note(&mut self, result: Result<(), String>) {
        if let Err(wrong) = result {
            self.wrong.get_or_insert(wrong);
        }
    }

    /// Sets options of the core, for bindings to other languages. Its API may change with any release.
    #[doc(hidden)]
    pub fn with_options<E>(mut self, set: impl FnOnce(&mut Options) -> Result<(), E>) -> Result<Self, E> {
        set(&mut self.options).map(|()| self)
    }

    /// Checks all options.
    ///
    /// # Errors
    /// The first one out of bounds, and its bounds.
    pub fn check(&self) -> Result<(), RoomError> {
        let checks = [self.check_mode(), self.options.check(), self.check_account()];
        let wrong = self.wrong.clone().or_else(|| checks.into_iter().find_map(Result::err));
        wrong.map_or(Ok(()), |wrong| Err(ApiMisuse::Bounds(wrong).into()))
    }

    fn check_mode(&self) -> Result<(), String> {
        if self.connect.mode == Mode::P2p && self.options.paths != PathMode::P2p {
            return Err(format!(
                "the mode is p2p and the paths are {}: set one of them",
                self.options.paths.as_str()
            ));
        }
        Ok(())
    }

    fn check_account(&self) -> Result<(), String> {
        let Some(passport) = &self.connect.passport else { return Ok(()) };
        if self.options.token.is_some() {
            return Err("a player comes in by an account or by a token: leave one of them out".into());
        }
        passport.check(&self.options.app, &self.options.environment)
    }

    /// Opens or joins the room. Returns at once; events report progress and failure, a wrong option included.
    pub fn open(self) -> Room {
        let wrong = self.refusal();
        Room::begin(self.options, self.connect, wrong)
    }

    /// Why the room cannot be opened at all.
    fn refusal(&self) -> Option<ConnectFailure> {
        let modules = [Some(Module::Multiplayer), self.connect.announces().then_some(Module::Lan)];
        let off = modules.into_iter().flatten().find_map(|module| module.require().err());
        off.map(disabled).or_else(|| {
            let wrong = self.check().err()?;
            Some(ConnectFailure { kind: ConnectFailureKind::BadAddress, detail: wrong.to_string() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(args: &str) -> Option<Result<String, String>> {
        let builder = JoinBuilder::from_args("tanks", args.split_whitespace().map(str::to_owned))?;
        let Wish::Join { code } = builder.options.intent else { panic!("it joins") };
        Some(builder.wrong.map_or_else(|| Ok(code.to_string()), Err))
    }

    #[test]
    fn a_room_is_named_by_an_argument_or_an_option() {
        for args in ["K7QM", "--join K7QM", "--join=K7QM", "--mute K7QM --loud", "parlor://join/K7QM"] {
            assert_eq!(joined(args), Some(Ok("K7QM".to_owned())), "{args}");
        }
        for args in ["", "--mute", "--joined"] {
            assert_eq!(joined(args), None, "{args}");
        }
        for args in ["--join", "--join=", "K7QM!"] {
            assert!(joined(args).expect("a room is named").is_err(), "{args}");
        }
    }
}
