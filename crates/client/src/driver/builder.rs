//! What a game says about its room before it is opened or joined.

use super::reach::{Reach, Via};
use super::room::Room;
use super::ticket::Ticket;
use crate::core::{Mode, Options, PathMode, RoomError, Wish};
use parlor_proto::wire::handshake::Resume;
use parlor_proto::{ApiMisuse, Lane, RoomCode, TickRate, limits};
use parlor_sync::prediction::Smoothing;
use parlor_sync::replicator::Template;
use parlor_sync::schema::{Replicated, Schema};
use parlor_transport::discovery::{Invite, Registry};
use parlor_transport::impaired::{Conditions, Impairment};
use parlor_transport::inside::Inside;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// How long a host may be silent in a room whose host may change, unless it is said otherwise.
const HOST_SILENCE: Duration = Duration::from_millis(250);

/// A room to be. Every setting has a default; what is wrong with one is said when the room is opened.
///
/// ```no_run
/// use parlor::Room;
/// let room = Room::host("tanks").name("ada").max_players(4).tick_hz(30).open();
/// let guest = Room::guest("tanks", "K7QM").name("bob").open();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a room begins with open()"]
pub struct RoomBuilder {
    pub(super) options: Options,
    reach: Reach,
    /// The first thing that was wrong.
    wrong: Option<String>,
}

impl RoomBuilder {
    pub(super) fn host(app: &str) -> Self {
        RoomBuilder { options: Options::host(app), reach: Reach::default(), wrong: None }
    }

    pub(super) fn create_match(app: &str) -> Self {
        RoomBuilder { options: Options::create_match(app), reach: Reach::default(), wrong: None }
    }

    pub(super) fn guest(app: &str, invite: &str) -> Self {
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
        RoomBuilder { options, reach: Reach { server: invite.server, ..Reach::default() }, wrong }
    }

    pub(super) fn resume(app: &str, ticket: &Ticket) -> Self {
        let mut options = Options::host(app);
        let Resume { session, token } = ticket.resume;
        options.intent = Wish::Resume { session, token };
        RoomBuilder {
            options,
            reach: Reach { server: Some(ticket.server.clone()), ..Reach::default() },
            wrong: None,
        }
    }

    /// What others may call this player: at most 48 bytes.
    pub fn name(mut self, name: &str) -> Self {
        self.options.name = name.to_owned();
        self
    }

    /// Players that a new room may have at once: 2 to 16, of which the host is one; with [`dedicated`](Self::dedicated) 2 to
    /// 255, of which it is none. Four if not said. Of a match 2 to 256, and 16 if not said.
    pub fn max_players(self, players: u16) -> Self {
        self.host_only("max_players", |wish| {
            if let Wish::Host { max_players, .. } | Wish::Match { max_players, .. } = wish {
                *max_players = players;
            }
            Ok(())
        })
    }

    /// Steps per second of a new room: 1 to 240. Thirty if not said.
    pub fn tick_hz(self, hz: u16) -> Self {
        self.host_only("tick_hz", |wish| {
            let rate = TickRate::new(hz)
                .ok_or_else(|| format!("tick_hz is {hz}; it may be 1 to {}", limits::TICK_HZ_MAX))?;
            if let Wish::Host { tick_rate, .. } | Wish::Match { tick_rate, .. } = wish {
                *tick_rate = rate;
            }
            Ok(())
        })
    }

    /// The code of a new room: 4 to 12 letters and digits. If not said, the server draws one.
    pub fn code(self, code: &str) -> Self {
        self.host_only("code", |wish| {
            let chosen = code.parse().map_err(|error| format!("code is {code:?}: {error}"))?;
            match wish {
                Wish::Host { code, .. } => *code = Some(chosen),
                _ => return Err("the id of a match is drawn: leave out code".into()),
            }
            Ok(())
        })
    }

    /// Hosts without playing: this process only decides, and has a seat beside those of the players, of whom the room may
    /// have up to 255. The server must allow it.
    pub fn dedicated(self) -> Self {
        self.host_only("dedicated", |wish| {
            match wish {
                Wish::Host { dedicated, .. } => *dedicated = true,
                _ => return Err("a match has no host: leave out dedicated".into()),
            }
            Ok(())
        })
    }

    /// What a new match is listed under, for whoever looks for one: at most 64 bytes without control characters. Empty if not said.
    pub fn label(self, text: &str) -> Self {
        self.match_only("label", |wish| {
            if let Wish::Match { label, .. } = wish {
                text.clone_into(label);
            }
        })
    }

    /// Has the server keep the log of a new match: who was in it and what was sent reliably can be read when it is over. The server
    /// must have a place for it.
    pub fn keep(self) -> Self {
        self.match_only("keep", |wish| {
            if let Wish::Match { keep, .. } = wish {
                *keep = true;
            }
        })
    }

    fn match_only(self, what: &str, set: impl FnOnce(&mut Wish)) -> Self {
        self.host_only(what, |wish| {
            if !matches!(wish, Wish::Match { .. }) {
                return Err(format!("{what} is for a match: begin it with Room::create_match"));
            }
            set(wish);
            Ok(())
        })
    }

    fn host_only(mut self, what: &str, set: impl FnOnce(&mut Wish) -> Result<(), String>) -> Self {
        let result = match &mut self.options.intent {
            wish @ (Wish::Host { .. } | Wish::Match { .. }) => set(wish),
            Wish::Join { .. } | Wish::Resume { .. } => {
                Err(format!("{what} is for whoever opens the room, not for whoever joins it"))
            }
        };
        self.note(result);
        self
    }

    /// What a joiner must know beside the code, where guessing matters. An invite link carries it.
    pub fn secret(mut self, secret: &str) -> Self {
        self.options.secret = Some(secret.to_owned());
        self
    }

    /// What says who this is to a server that admits by token. The game's own service gives it out, for this room and this
    /// player; it is good for a minute at most and once, so ask for one right before.
    pub fn token(mut self, token: &str) -> Self {
        self.options.token = Some(token.to_owned());
        self
    }

    /// Comes in as this account, at the server that it is of: the others know it by [`Player::user`](crate::Player::user), and so does
    /// the server. A ticket is had in the background before each connection that needs one. Without
    /// [`server`](Self::server) the room is looked for at the account's own; one that an invite leads elsewhere is not joined, because no other
    /// server is told anything of the account.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parlor::{Room, online};
    /// let account = online::sign_in("play.example.com").name("ada").account("tanks")?;
    /// let room = Room::guest("tanks", "K7QM").name("ada").account(&account).open();
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "online")]
    pub fn account(mut self, account: &crate::online::Account) -> Self {
        self.reach.passport = Some(account.passport());
        self
    }

    /// The game's environment ("production", "development"): rooms of different ones never meet. Empty if not said.
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

    /// What the room's entities are made of; host and guests must have the same. Without it there is keyed state alone.
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

    /// What this player's own state is made of, which it sends by [`Room::set_own`] and others read by [`Room::proxy`].
    pub fn template(mut self, template: Template) -> Self {
        self.options.template = Some(template);
        self
    }

    /// Runs a guest's steps ahead of the room's time, so that its input for a step is at the host before the host runs that
    /// step; how far ahead, the host's word of its inputs decides. Without it an input is used as soon as it comes. On a host it
    /// does nothing.
    pub fn lead(mut self) -> Self {
        self.options.lead = true;
        self
    }

    /// Predicts a component of a guest's own entities: its steps write them by [`insert`](crate::WorldAccess::insert), as the
    /// host's do, and it sees at once what comes of its inputs. What the host then has otherwise is set right, and the steps since
    /// are run again. It implies [`lead`](Self::lead); on a host it does nothing, so both may say it.
    ///
    /// ```no_run
    /// # use parlor::schema::{Kind, Schema};
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn main() -> Result<(), parlor::schema::SchemaError> {
    /// let schema = Schema::builder().replicate::<Tank>().build()?;
    /// let room = parlor::Room::guest("tanks", "K7QM").schema(schema).predict::<Tank>().open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn predict<C: Replicated>(mut self) -> Self {
        self.options.predicted.push(C::NAME.to_owned());
        self
    }

    /// How what was predicted wrongly is kept from the eye; see [`Smoothing`] for what it is if not said.
    pub fn smoothing(mut self, smoothing: Smoothing) -> Self {
        self.options.smoothing = smoothing;
        self
    }

    /// Keeps the hash of the state at every sequence that `sequences` divides and at which all of it was there, so that members
    /// can compare what they decoded: see [`Room::state_marks`]. Zero keeps none, which is what is done if not said.
    pub fn hash_every(mut self, sequences: u64) -> Self {
        self.options.hash_every = NonZeroU64::new(sequences);
        self
    }

    /// When this host is silent for a quarter of a second (three quarters of that, if its connection is steady), gone, or leaves, another player takes its part and the game goes on; this
    /// one is a player like any other if it comes back. A game keeps nothing for its steps outside of the room, so that they run the same
    /// at whoever is the host. For a host; off if not said otherwise.
    pub fn host_migration(mut self) -> Self {
        self.options.host_silence = Some(HOST_SILENCE);
        self
    }

    /// [Host migration](Self::host_migration) after another silence than usual, 100 ms to 10 s.
    pub fn host_silence(mut self, silence: Duration) -> Self {
        self.options.host_silence = Some(silence);
        self
    }

    /// Whether a connection that is lost is made again, as long as the server keeps this player's seat; it is, if not said.
    /// [`Event::ConnectionLost`](crate::Event::ConnectionLost) tells of it, and what follows how it went.
    pub fn reconnect(mut self, reconnect: bool) -> Self {
        self.options.reconnect = reconnect;
        self
    }

    /// The server: `HOST`, `HOST:PORT` or `HOST:PORT#FINGERPRINT`. If not said, the environment variable
    /// `PARLOR_SERVER` counts, and then a server on this machine.
    pub fn server(mut self, address: &str) -> Self {
        match address.parse() {
            Ok(server) => self.reach.server = Some(server),
            Err(error) => self.note(Err(format!("server: {error}"))),
        }
        self
    }

    /// The server is one that this process runs, as whoever hosts for friends does: `server.inside()` of the crate `parlor-server`
    /// gives the way in. The room talks to it in memory, unless it is put on a bad network, told [by what](Self::via) to connect, or
    /// wants [paths](Self::paths) of its own. It takes the place of [`server`](Self::server).
    pub fn inside(mut self, server: &Inside) -> Self {
        match server.address() {
            Some(address) => {
                self.reach.server = Some(address);
                self.reach.inside = Some(server.clone());
            }
            None => self.note(Err("inside: the server is on a bad network; name it by its address".into())),
        }
        self
    }

    /// Whether this player and the host may talk without the server in between, where their networks let them: see
    /// [`PathMode`]. If not said, all goes through the server, and nobody is told any address. Both must want it, the host too.
    ///
    /// ```no_run
    /// # use parlor::{PathMode, Room};
    /// let room = Room::guest("tanks", "K7QM").paths(PathMode::Auto).open();
    /// ```
    pub fn paths(mut self, paths: PathMode) -> Self {
        self.options.paths = paths;
        self
    }

    /// How the room shall be reached.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.reach.mode = mode;
        self
    }

    /// What may connect to the server.
    pub fn via(mut self, via: Via) -> Self {
        self.reach.via = via;
        self
    }

    /// Certificates (PEM) that may vouch for the server instead of those that the system trusts.
    pub fn roots(mut self, pem: &str) -> Self {
        self.reach.roots = Some(pem.to_owned());
        self
    }

    /// The registry of rooms on this machine, instead of the user's.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.reach.registry = registry;
        self
    }

    /// The scheme of the game's invite links. "parlor" if not said.
    pub fn invite_scheme(mut self, scheme: &str) -> Self {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme) {
            self.reach.scheme = scheme.to_owned();
        } else {
            self.note(Err(format!("invite_scheme is {scheme:?}; it may have letters, digits, +, - and .")));
        }
        self
    }

    /// A web page that shows a friend how to join: [`Room::join_page`] is this and the code.
    pub fn join_page(mut self, base: &str) -> Self {
        self.reach.join_page = Some(base.trim_end_matches('/').to_owned());
        self
    }

    /// A tool for development: puts this room's connection on a bad network, in both directions. With
    /// [`Impairment::none`] nothing is wrong until [`Room::set_impairment`] says so.
    ///
    /// ```no_run
    /// # use parlor::Room;
    /// let bad = "latency=80ms,jitter=20ms,loss=3%,seed=7".parse().expect("it is written as the documentation has it");
    /// let room = Room::host("tanks").impairment(bad).open();
    /// ```
    pub fn impairment(mut self, impairment: Impairment) -> Self {
        self.note(impairment.check().map_err(|error| format!("impairment: {error}")));
        self.reach.conditions = Some(Conditions::new(impairment));
        self
    }

    pub(super) fn note(&mut self, result: Result<(), String>) {
        if let Err(wrong) = result {
            self.wrong.get_or_insert(wrong);
        }
    }

    /// Whether every setting is within its bounds.
    ///
    /// # Errors
    /// The first that is not, and what it may be.
    pub fn check(&self) -> Result<(), RoomError> {
        let wrong =
            self.wrong.clone().or_else(|| self.options.check().err()).or_else(|| self.check_account().err());
        wrong.map_or(Ok(()), |wrong| Err(ApiMisuse::Bounds(wrong).into()))
    }

    fn check_account(&self) -> Result<(), String> {
        let Some(passport) = &self.reach.passport else { return Ok(()) };
        if self.options.token.is_some() {
            return Err("a player comes in by an account or by a token: leave one of them out".into());
        }
        passport.check(&self.options.app, &self.options.environment)
    }

    /// Opens or joins the room. It returns at once: events say how it goes, what is wrong with a setting included.
    #[must_use]
    pub fn open(self) -> Room {
        let wrong = self.check().err();
        Room::begin(self.options, self.reach, wrong)
    }
}
