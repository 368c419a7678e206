//! What a game says about its room before there is one.

use parlor_proto::channel::{Channel, ChannelTable, Codec, TableError};
use parlor_proto::wire::handshake::{Auth, Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{ChannelId, Lane, RoomCode, TickRate};
use std::num::NonZeroU64;

/// Everything that goes into a hello.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which game.
    pub app: String,
    /// Which environment of it; may be empty.
    pub environment: String,
    /// What others may call this player; may be empty.
    pub name: String,
    /// What a joiner must know beside the code.
    pub secret: Option<String>,
    /// What says to a server that admits by token who this is.
    pub token: Option<String>,
    /// The game's own channels.
    pub channels: ChannelTable,
    /// If set, the hash of the state is kept at every sequence that this divides: members that decoded the same keep
    /// the same.
    pub hash_every: Option<NonZeroU64>,
    /// To host or to join.
    pub intent: Wish,
}

/// What a game wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A new room.
    Host {
        /// The code that it shall have; drawn by the hub if none.
        code: Option<RoomCode>,
        /// Players that it may have at once, 2 to 16.
        max_players: u16,
        /// Its steps per second.
        tick_rate: TickRate,
    },
    /// A seat in the room with this code.
    Join {
        /// Its code.
        code: RoomCode,
    },
}

impl Options {
    /// A new room for `app` with four seats and thirty steps a second.
    #[must_use]
    pub fn host(app: &str) -> Self {
        Options::new(app, Wish::Host { code: None, max_players: 4, tick_rate: TickRate::DEFAULT })
    }

    /// A seat in a room of `app`.
    #[must_use]
    pub fn join(app: &str, code: RoomCode) -> Self {
        Options::new(app, Wish::Join { code })
    }

    fn new(app: &str, intent: Wish) -> Self {
        Options {
            app: app.to_owned(),
            environment: String::new(),
            name: String::new(),
            secret: None,
            token: None,
            channels: ChannelTable::default(),
            hash_every: None,
            intent,
        }
    }

    /// Adds a channel for the game's own bytes.
    ///
    /// # Errors
    /// [`TableError`] if the number is reserved, too large or taken.
    pub fn channel(&mut self, number: u8, lane: Lane) -> Result<(), TableError> {
        self.channels.declare(Channel { id: ChannelId(number), lane, codec: Codec::Raw, schema_hash: 0 })
    }

    /// The hello that says all this.
    #[must_use]
    pub(super) fn hello(&self) -> Hello {
        let secret = self.secret.clone();
        Hello {
            environment: self.environment.clone(),
            name: self.name.clone(),
            auth: self.token.as_ref().map_or(Auth::Anonymous, |token| Auth::Token(token.clone().into())),
            channels: self.channels.clone(),
            ..Hello::new(
                &self.app,
                match self.intent {
                    Wish::Host { code, max_players, tick_rate } => Intent::Create(RoomSettings {
                        kind: RoomKind::PlayerHosted,
                        code,
                        secret,
                        max_players,
                        tick_rate,
                    }),
                    Wish::Join { code } => Intent::Join { code, secret },
                },
            )
        }
    }

    /// Whether every field is within its bounds.
    ///
    /// # Errors
    /// The field that is not, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        self.hello().check()
    }
}
