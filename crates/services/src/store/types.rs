//! Types of stored data, for callers of the store.

use super::entries::NewScore;
use super::error::StoreError;
use super::ids::{AccountId, RoomId, SignInId};
use super::lives::RoomLife;
use super::messages::NewMessage;
use parlor_server::realm::Realm;
use parlor_turn::limits;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum bytes of a display name, a credential, a reason or another short text.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Maximum bytes of a room's document.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of a summary or of a match entry.
pub const BODY_BYTES_MAX: usize = 1 << 16;
/// Maximum bytes of a notice or of a webhook's body: the largest move, and the JSON around it.
pub const NOTICE_BYTES_MAX: usize = BODY_BYTES_MAX + (1 << 14);
/// Maximum number of notices of one player. Beyond it the oldest are dropped and counted.
pub const INBOX_MAX: u64 = 256;
/// Maximum number of waiting webhooks of one realm. Beyond it the oldest are dropped and counted.
pub const OUTBOX_MAX: u64 = 10_000;
/// Maximum bytes of waiting webhooks of one realm.
pub const OUTBOX_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of credentials of one account.
pub const CREDENTIALS_MAX: u64 = 16;
/// Maximum number of concurrent sign-ins of one account. Beyond it the one unused for longest ends.
pub const SIGN_INS_MAX: u64 = 16;
/// Maximum number of players of one room.
pub const ROOM_PLAYERS_MAX: usize = 256;
/// Maximum number of notices of one commit, and of webhooks: all that one operation of a legal room makes.
pub const EFFECTS_MAX: usize = limits::TOLD_MAX;
/// Maximum number of waiting rooms that one account is in at a time.
pub const GATHERING_ROOMS_MAX: u64 = 16;
/// Maximum number of rows of one query's result.
pub const PAGE_MAX: usize = 1000;
/// Maximum bytes of the rows of one page, except for the last of them: a page of large entries ends early.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

// None of these limits refuses a commit of a legal room: one that could not be stored would be repeated
// forever.
const _: () = assert!(limits::PLAYERS_MAX as usize <= ROOM_PLAYERS_MAX);
// A move that the peers must judge, with the receivers' names around it in a webhook.
const _: () = assert!(
    limits::MOVE_BYTES_MAX + limits::PLAYERS_MAX as usize * (limits::ID_BYTES_MAX + 3) + 4 * TEXT_BYTES_MAX
        <= NOTICE_BYTES_MAX
);

/// Parses the stored path of a realm.
pub(super) fn stored_realm(path: &str) -> Result<Realm, StoreError> {
    Realm::from_path(path)
        .map_err(|error| StoreError::Damaged(format!("`{path}` is no realm: {}", error.sentence)))
}

pub(super) fn invalid(what: &'static str, sentence: &str) -> StoreError {
    StoreError::Invalid { what, sentence: sentence.to_owned() }
}

/// Refuses a text that is too long, or has the byte 0, which PostgreSQL's texts cannot contain.
pub(super) fn check_text(what: &'static str, text: &str) -> Result<(), StoreError> {
    check_size(what, text.len(), TEXT_BYTES_MAX)?;
    if text.contains('\0') { Err(invalid(what, "it has a character 0: leave it out")) } else { Ok(()) }
}

pub(super) fn check_size(what: &'static str, size: usize, max: usize) -> Result<(), StoreError> {
    if size <= max {
        return Ok(());
    }
    Err(StoreError::Invalid { what, sentence: format!("its size is {size}, and {max} is the most") })
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Its word, in the store and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Parses a word.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

words!(
    /// How an account was created.
    AccountKind {
        /// Without a credential: only its tokens give access to it.
        Guest = "guest",
        /// With the id of a device.
        Device = "device",
        /// With an id from the game's own service.
        Custom = "custom",
        /// With an e-mail address and a password.
        Email = "email",
    }
);
words!(
    /// The permissions of an account.
    Role {
        /// A player.
        Player = "player",
        /// A game's own service.
        Server = "server",
        /// An operator.
        Admin = "admin",
    }
);
words!(
    /// The kind of a credential.
    CredentialKind {
        /// The id of a device.
        Device = "device",
        /// An id from the game's own service.
        Custom = "custom",
        /// An e-mail address.
        Email = "email",
    }
);

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// How it was created.
    pub kind: AccountKind,
    /// Its permissions.
    pub role: Role,
    /// The name that others see.
    pub display_name: String,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A credential for signing in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its kind.
    pub kind: CredentialKind,
    /// The device's id, the id from the game's service, or the normalised e-mail address.
    pub value: String,
    /// A hash of its password or secret, with its own salt and parameters.
    pub secret_hash: Option<String>,
}

/// The owner of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialOwner {
    /// The account.
    pub account: Account,
    /// The hash of the credential's secret.
    pub secret_hash: Option<String>,
}

/// A sign-in and its first refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Its id, which each of its refresh tokens contains.
    pub id: SignInId,
    /// The account.
    pub account: AccountId,
    /// The hash of the refresh token.
    pub token_hash: [u8; 32],
    /// The current time, in milliseconds since 1970.
    pub now_ms: u64,
    /// Expiry of the token.
    pub expires_ms: u64,
}

/// A refresh token to exchange for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The sign-in that the token names.
    pub sign_in: SignInId,
    /// The hash of the presented token.
    pub presented_hash: [u8; 32],
    /// The hash of the next token. It is derived from the presented one, so it is always the same.
    pub next_hash: [u8; 32],
    /// The current time, in milliseconds since 1970.
    pub now_ms: u64,
    /// Expiry of the next token.
    pub expires_ms: u64,
    /// How long the previous token returns the same successor again, while the successor is unused.
    pub grace_ms: u64,
}

/// The result of a [`Rotation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The next token is valid from now on.
    Next(Account),
    /// The token was used before, so another party has it. The sign-in has ended for both.
    Reused(AccountId),
    /// There is no such sign-in, or it has ended.
    Unknown,
}

/// The result of [`Store::end_sign_in`](super::Store::end_sign_in).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedSignIn {
    /// The sign-in of this account ended.
    Ended(AccountId),
    /// The sign-in exists, but the token is neither its newest nor the one before. Nothing changed.
    OtherToken,
    /// There is no such sign-in.
    Unknown,
}

/// The stage of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for players.
    Gathering,
    /// The game is running.
    Playing,
    /// The game has ended.
    Ended,
}

/// The part of a room that changes with each commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomState {
    /// It grows with each commit.
    pub version: u64,
    /// The room, as its machine wrote it. The store does not read it.
    pub document: Vec<u8>,
    /// Whether the listing of its game shows it.
    pub joinable: bool,
    /// The data that listings show.
    pub summary: Vec<u8>,
    /// Its stage.
    pub stage: Stage,
    /// Its players.
    pub players: Vec<AccountId>,
    /// The time of its next timer, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
}

/// A new notice for a player's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    /// The receiver.
    pub to: AccountId,
    /// Its kind.
    pub kind: Cow<'static, str>,
    /// Its body, shared by its receivers.
    pub body: Arc<[u8]>,
    /// Its time, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A call of a webhook to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// The receiver's address.
    pub target: String,
    /// Its content.
    pub body: Vec<u8>,
    /// When to send it, in milliseconds since 1970.
    pub due_ms: u64,
    /// Whether its cause has used up its share of the outbox. Then it is queued only while half of the outbox
    /// is free.
    pub is_beyond_share: bool,
}

/// The kind of a commit. It decides which limits may refuse its growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitKind {
    /// A player continues: a move, a message, a seat. Judged by the quotas; accepted up to 31/32 of the
    /// store's limit.
    #[default]
    Plays,
    /// A timer fires, a player leaves, or a game ends. Charged to the quotas but not judged by them; accepted
    /// up to the store's limit.
    Settles,
    /// An operator acts, or an account is deleted. Charged to the quotas but not judged by them; always
    /// accepted.
    Administers,
}

/// The effects of a commit: all of them are stored, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// For inboxes.
    pub notices: Vec<NewNotice>,
    /// For other services.
    pub webhooks: Vec<NewWebhook>,
    /// For boards, from the rules of a game that has ended. What a board does not take is left out. Ignored for a new
    /// room.
    pub awards: Vec<NewScore>,
    /// For the room's history. Ignored for a new room.
    pub message: Option<NewMessage>,
    /// The number of the room's newest message, this one included; 0 if there is none.
    pub messages: u64,
    /// The room's retention, and the account that is charged. Default: unchanged.
    pub life: Option<RoomLife>,
    /// The kind of the commit. Default: a player continues. Ignored for a new room.
    pub kind: CommitKind,
}

/// A new room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// Its id.
    pub id: RoomId,
    /// The code that players type to join.
    pub code: Option<String>,
    /// The game.
    pub game: String,
    /// The hash of the criteria by which seekers find it.
    pub wanted: Option<[u8; 32]>,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its first state.
    pub state: RoomState,
}

/// A stored room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its id.
    pub id: RoomId,
    /// The code that players type to join.
    pub code: Option<String>,
    /// The game.
    pub game: String,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its state.
    pub state: RoomState,
}

/// A stored room, compared with a known version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomNow {
    /// It has the known version.
    Known,
    /// It has another version.
    Newer(Room),
    /// There is no such room.
    Gone,
}

/// A room in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomListing {
    /// Its id.
    pub id: RoomId,
    /// The code that players type to join.
    pub code: Option<String>,
    /// The game.
    pub game: String,
    /// Its version.
    pub version: u64,
    /// The data that its machine wrote for listings.
    pub summary: Vec<u8>,
    /// Time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its players.
    pub players: Vec<AccountId>,
}

impl RoomListing {
    /// The cursor of the page after this room.
    pub fn cursor(&self) -> String {
        format!("{}.{}", self.created_ms, self.id)
    }
}

/// A page of a list, and the cursor of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Its entries, in order.
    pub items: Vec<T>,
    /// The cursor of the next page. `None` after the last one.
    pub next: Option<String>,
}

/// A room with a due timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRoom {
    /// Its realm.
    pub realm: Realm,
    /// Its id.
    pub room: RoomId,
    /// When the timer was due, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// Number of consecutive failures.
    pub failures: u64,
}

/// A notice in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its number: one more than that of the player's previous notice.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// Its body.
    pub body: Vec<u8>,
    /// Its time, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A page of a player's inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inbox {
    /// The notices, in order.
    pub notices: Vec<Notice>,
    /// The number of the newest notice ever. 0 if there was none: the first has 1.
    pub newest: u64,
    /// Dropped notices that were never acknowledged, because there were too many.
    pub dropped: u64,
}

/// A call of a webhook that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its id, by which the receiver recognises a repetition.
    pub id: u64,
    /// Its realm.
    pub realm: Realm,
    /// The receiver's address.
    pub target: String,
    /// Its content.
    pub body: Vec<u8>,
    /// Number of failed attempts.
    pub attempts: u64,
    /// When it was due, in milliseconds since 1970.
    pub due_ms: u64,
}

/// The calls of a realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Waiting calls.
    pub waiting: u64,
    /// Calls that were dropped because too many waited.
    pub dropped: u64,
}

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// The banned account.
    pub account: AccountId,
    /// The reason.
    pub reason: String,
    /// The operator who set it.
    pub by: String,
    /// Time of the ban, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its end. `None` for a permanent ban.
    pub until_ms: Option<u64>,
}
