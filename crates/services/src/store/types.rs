//! Types of stored data, for callers of the store.

use super::error::StoreError;
use super::ids::{AccountId, RoomId, SignInId};
use super::lives::RoomLife;
use parlor_server::realm::Realm;
use parlor_turn::limits;
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes of a display name, a credential, a reason or another short text.
pub const TEXT_BYTES_MAX: usize = 1024;
/// Bytes of a room's document.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a summary or an entry of a match.
pub const BODY_BYTES_MAX: usize = 1 << 16;
/// Bytes of a notice or the body of a webhook: the largest move, and what stands around it.
pub const NOTICE_BYTES_MAX: usize = BODY_BYTES_MAX + (1 << 14);
/// Notices that wait for one player. The oldest go, and are counted.
pub const INBOX_MAX: u64 = 256;
/// Webhooks that wait in one realm. The oldest go, and are counted.
pub const OUTBOX_MAX: u64 = 10_000;
/// Bytes of them.
pub const OUTBOX_BYTES_MAX: u64 = 16 << 20;
/// Credentials of one account.
pub const CREDENTIALS_MAX: u64 = 16;
/// Devices on which one account is signed in at a time. The one that was silent for the longest goes.
pub const SIGN_INS_MAX: u64 = 16;
/// Players of one room.
pub const ROOM_PLAYERS_MAX: usize = 256;
/// Notices of one commit, and webhooks: all that one operation of a legal room makes.
pub const EFFECTS_MAX: usize = limits::TOLD_MAX;
/// Rooms that one account is in at a time while players come together there.
pub const GATHERING_ROOMS_MAX: u64 = 16;
/// Rows that one question is answered with.
pub const PAGE_MAX: usize = 1000;
/// Bytes of rows that one page of a list is made of, but for the last of them: a page of large entries ends early.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

// A commit that a legal room makes is refused by none of these: one that could not be stored would be tried for ever.
const _: () = assert!(limits::PLAYERS_MAX as usize <= ROOM_PLAYERS_MAX);
// A move that the peers were told of, with the receivers' names around it in a webhook.
const _: () = assert!(
    limits::MOVE_BYTES_MAX + limits::PLAYERS_MAX as usize * (limits::ID_BYTES_MAX + 3) + 4 * TEXT_BYTES_MAX
        <= NOTICE_BYTES_MAX
);

/// The realm of a path that the store keeps.
pub(super) fn stored_realm(path: &str) -> Result<Realm, StoreError> {
    Realm::from_path(path)
        .map_err(|error| StoreError::Damaged(format!("`{path}` is no realm: {}", error.sentence)))
}

pub(super) fn invalid(what: &'static str, sentence: &str) -> StoreError {
    StoreError::Invalid { what, sentence: sentence.to_owned() }
}

/// Refuses a text that is too long, or has the byte 0, which PostgreSQL's texts cannot have.
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
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The word that stands for it, in the store and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// What a word stands for.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

words!(
    /// How an account came to be.
    AccountKind {
        /// By nothing: who loses its tokens has lost it.
        Guest = "guest",
        /// By the id of a device.
        Device = "device",
        /// By an id of the game's own.
        Custom = "custom",
        /// By an e-mail address and a password.
        Email = "email",
    }
);
words!(
    /// What an account may do.
    Role {
        /// Plays.
        Player = "player",
        /// A game's own service.
        Server = "server",
        /// An operator.
        Admin = "admin",
    }
);
words!(
    /// What somebody signs in with.
    CredentialKind {
        /// The id of a device.
        Device = "device",
        /// An id of the game's own.
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
    /// How it came to be.
    pub kind: AccountKind,
    /// What it may do.
    pub role: Role,
    /// What others see.
    pub display_name: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
}

/// What somebody signs in with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Which kind.
    pub kind: CredentialKind,
    /// The device's id, the game's own id, or the address, in the one spelling that the caller compares by.
    pub value: String,
    /// A hash of the password or secret that goes with it, with its own salt and parameters.
    pub secret_hash: Option<String>,
}

/// Whose a credential is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialOwner {
    /// The account.
    pub account: Account,
    /// The hash that the secret must have.
    pub secret_hash: Option<String>,
}

/// A sign-in and its first refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Its id, which each of its refresh tokens has in it.
    pub id: SignInId,
    /// Who signed in.
    pub account: AccountId,
    /// The hash of the refresh token.
    pub token_hash: [u8; 32],
    /// When this was, in milliseconds since 1970.
    pub now_ms: u64,
    /// Expiry of the token.
    pub expires_ms: u64,
}

/// A refresh token that is given back for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The sign-in, as the token says.
    pub sign_in: SignInId,
    /// The hash of the token that was presented.
    pub presented_hash: [u8; 32],
    /// The hash of the token that takes its place. It follows from the presented one, so that it is the same each time.
    pub next_hash: [u8; 32],
    /// When this is, in milliseconds since 1970.
    pub now_ms: u64,
    /// Expiry of the next token.
    pub expires_ms: u64,
    /// How long the previous token returns the same successor again, while that is unused.
    pub grace_ms: u64,
}

/// What came of a [`Rotation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// The next token is valid from now on.
    Next(Account),
    /// The token had been used before, so another party has it. The sign-in is over for both.
    Reused(AccountId),
    /// There is no such sign-in, or it is over.
    Unknown,
}

/// The result of [`Store::end_sign_in`](super::Store::end_sign_in).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedSignIn {
    /// The sign-in of this account ended.
    Ended(AccountId),
    /// There is such a sign-in, and the token is neither its newest nor the one before. Nothing changed.
    OtherToken,
    /// There is no such sign-in.
    Unknown,
}

/// How far a room has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Players come together there.
    Gathering,
    /// They play among themselves.
    Playing,
    /// The game is over.
    Ended,
}

/// What changes in a room with each commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomState {
    /// Greater with each commit.
    pub version: u64,
    /// The room, as its machine wrote it. The store does not look into it.
    pub document: Vec<u8>,
    /// Whether the listing of its game shows it.
    pub joinable: bool,
    /// What listings show of it.
    pub summary: Vec<u8>,
    /// How far it has come.
    pub stage: Stage,
    /// Who is in it.
    pub players: Vec<AccountId>,
    /// When something must be done about it, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
}

/// Words for a player's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    /// Whose inbox.
    pub to: AccountId,
    /// What it is about.
    pub kind: Cow<'static, str>,
    /// The notice itself, shared by its receivers.
    pub body: Arc<[u8]>,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A call that another service is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// Whom to call.
    pub target: String,
    /// What to say.
    pub body: Vec<u8>,
    /// When to call, in milliseconds since 1970.
    pub due_ms: u64,
    /// Whether who caused it has used up its share of the outbox: then it is queued only while half of the outbox is free.
    pub is_beyond_share: bool,
}

/// What a commit does to its room. Decides which bounds may refuse its growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitKind {
    /// A player goes on: a move, a message, a seat. Judged by the quotas; taken up to 31/32 of the store.
    #[default]
    Plays,
    /// A timer fires, a player leaves, or a game ends. Charged to the quotas but not judged by them; taken up to all of the store.
    Settles,
    /// An operator acts, or an account is deleted. Charged to the quotas but not judged by them; always taken.
    Administers,
}

/// What goes out with a commit: all of it, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// For inboxes.
    pub notices: Vec<NewNotice>,
    /// For other services.
    pub webhooks: Vec<NewWebhook>,
    /// How long the room is kept, and on whose account. Default: as before.
    pub life: Option<RoomLife>,
    /// What the commit does. Default: a player goes on. Has no meaning for a room that is opened.
    pub kind: CommitKind,
}

/// A room that is not there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRoom {
    /// Its id.
    pub id: RoomId,
    /// What players type to come in.
    pub code: Option<String>,
    /// Which game is played in it.
    pub game: String,
    /// The hash of what players look for who find it by that.
    pub wanted: Option<[u8; 32]>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its first state.
    pub state: RoomState,
}

/// A room as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its id.
    pub id: RoomId,
    /// What players type to come in.
    pub code: Option<String>,
    /// Which game is played in it.
    pub game: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its state.
    pub state: RoomState,
}

/// A room in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomListing {
    /// Its id.
    pub id: RoomId,
    /// What players type to come in.
    pub code: Option<String>,
    /// Which game is played in it.
    pub game: String,
    /// Its version.
    pub version: u64,
    /// What its machine wrote for lists.
    pub summary: Vec<u8>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Who is in it.
    pub players: Vec<AccountId>,
}

impl RoomListing {
    /// What a page begins after, for one that begins after this room.
    pub fn cursor(&self) -> String {
        format!("{}.{}", self.created_ms, self.id)
    }
}

/// A part of a list, and where the next part begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// To be given back for the next part. Nothing, if this was the last.
    pub next: Option<String>,
}

/// A room whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRoom {
    /// Where it is.
    pub realm: Realm,
    /// Which.
    pub room: RoomId,
    /// When it was due, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// How often in a row it could not be done.
    pub failures: u64,
}

/// A notice that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One more than the player's notice before.
    pub seq: u64,
    /// What it is about.
    pub kind: String,
    /// The notice itself.
    pub body: Vec<u8>,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
}

/// A part of a player's inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inbox {
    /// In order.
    pub notices: Vec<Notice>,
    /// The number of the newest notice that there ever was. 0 if there was none: the first has 1.
    pub newest: u64,
    /// Dropped notices that were never acknowledged, because there were too many.
    pub dropped: u64,
}

/// A call that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its id, and what the called service can tell a repetition by.
    pub id: u64,
    /// Where it is from.
    pub realm: Realm,
    /// Whom to call.
    pub target: String,
    /// What to say.
    pub body: Vec<u8>,
    /// How often it was tried in vain.
    pub attempts: u64,
    /// When it was due, in milliseconds since 1970.
    pub due_ms: u64,
}

/// How many calls a realm owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// How many wait.
    pub waiting: u64,
    /// How many went undone, since too many waited.
    pub dropped: u64,
}

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Who.
    pub account: AccountId,
    /// Why.
    pub reason: String,
    /// Who decided it.
    pub by: String,
    /// Since when, in milliseconds since 1970.
    pub at_ms: u64,
    /// Until when. For ever, if nothing.
    pub until_ms: Option<u64>,
}
