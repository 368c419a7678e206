//! Configuration of the services, and its defaults.

use crate::cluster::ClusterConfig;
use crate::store::Limits;
use core::time::Duration;
use parlor_server::embed::memory_bytes;
use parlor_turn::RuleSets;
use std::path::PathBuf;

/// Default of [`OnlineConfig`]'s time limit for a JSON socket without a sign-in.
pub const SIGN_IN_TIME: Duration = Duration::from_secs(30);

/// Default of [`OnlineConfig::keep_matches_days`].
pub const KEEP_MATCHES_DAYS: u64 = 30;

/// The operator's configuration of the receiver of webhooks.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// `https://HOST[:PORT]/PATH`; `http://` too, where private addresses are allowed.
    pub url: String,
    /// The key that signs requests: at least 16 bytes.
    pub key: Vec<u8>,
    /// Whether the address may be in a private network, or on this machine.
    pub allows_private: bool,
}

impl core::fmt::Debug for WebhookConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WebhookConfig").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Retention in days. For matches it is
/// [`OnlineConfig::keep_matches_days`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lives {
    /// A turn room whose game has ended, or that all players have left, since its last change.
    pub ended_rooms_days: u64,
    /// A turn room that waits for players, since its last change.
    pub waiting_rooms_days: u64,
    /// A turn room with a running game, since its last change.
    pub playing_rooms_days: u64,
    /// An account without credentials that is in no room, since its last sign-in.
    pub guests_days: u64,
    /// An account with device ids only that is in no room, since its last sign-in.
    pub devices_days: u64,
    /// A webhook without an answer.
    pub webhooks_days: u64,
}

impl Default for Lives {
    fn default() -> Self {
        Lives {
            ended_rooms_days: 30,
            waiting_rooms_days: 14,
            playing_rooms_days: 365,
            guests_days: 60,
            devices_days: 730,
            webhooks_days: 7,
        }
    }
}

/// Configuration of the services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineConfig {
    /// The store: a file, `sqlite://FILE` or `postgres://…`.
    pub store: String,
    /// Whether any player may create an account. Otherwise only the game's own service creates them, by its
    /// own ids.
    pub is_open: bool,
    /// The public key (PEM, Ed25519) that verifies tokens of the roles server and admin. Without it there are
    /// none.
    pub operator_key: Option<PathBuf>,
    /// The receiver of turn rooms' notices.
    pub webhook: Option<WebhookConfig>,
    /// Days for which a kept match can be read after its end.
    pub keep_matches_days: u64,
    /// The folder for backups. Without it backups are disabled.
    pub backups: Option<PathBuf>,
    /// The folder with each game's configuration, `NAME.json`. Without it a server with a development
    /// identity accepts clients' configurations, and any other server opens no turn rooms.
    pub games: Option<PathBuf>,
    /// The rule sets that judge moves: Parlor's own, and those of a game.
    ///
    /// ```
    /// use parlor_turn::{Attempt, Code, Next, Opening, Outcome, PlayerId, Refusal, RuleSets, Rules};
    /// use parlor_services::OnlineConfig;
    /// use serde_json::json;
    ///
    /// /// Two players take 1 to 3 sticks of 21 in turn; who takes the last one has won.
    /// struct Sticks;
    ///
    /// impl Rules for Sticks {
    ///     fn name(&self) -> &'static str {
    ///         "sticks"
    ///     }
    ///
    ///     fn players(&self) -> std::ops::RangeInclusive<u16> {
    ///         2..=2
    ///     }
    ///
    ///     fn open(&self, players: &[PlayerId], _seed: [u8; 32]) -> Result<Opening, Refusal> {
    ///         Ok(Opening { state: json!({ "left": 21 }), first: players[0].clone() })
    ///     }
    ///
    ///     fn check(&self, attempt: &Attempt<'_>) -> Result<Outcome, Refusal> {
    ///         let left = attempt.state["left"].as_u64().unwrap_or_default();
    ///         let taken = attempt.data["take"].as_u64().unwrap_or_default();
    ///         if !(1..=3).contains(&taken) || taken > left {
    ///             let sentence = format!("there are {left} sticks: take 1 to 3 of them");
    ///             return Err(Refusal::at(Code::IllegalMove, "data.take", sentence));
    ///         }
    ///         let other = attempt.players.iter().find(|player| *player != attempt.player);
    ///         let next = match other {
    ///             Some(other) if taken < left => Next::Turn(other.clone()),
    ///             _ => Next::Over { winner: Some(attempt.player.clone()), reason: "last_stick".into() },
    ///         };
    ///         Ok(Outcome { state: json!({ "left": left - taken }), next })
    ///     }
    /// }
    ///
    /// let config = OnlineConfig {
    ///     rules: RuleSets::built_in().with(Box::new(Sticks)),
    ///     ..OnlineConfig::new("/var/lib/mygame/parlor.db")
    /// };
    /// assert!(config.rules.get("sticks").is_some() && config.rules.get("draughts").is_some());
    /// ```
    pub rules: RuleSets,
    /// Time limit of a JSON socket without a sign-in, whatever else it sends.
    pub sign_in_time: Duration,
    /// Memory limits of the services.
    pub memory: OnlineMemory,
    /// Limits of the store, in all and for each account.
    pub limits: Limits,
    /// How long unused data is kept.
    pub lives: Lives,
    /// The cluster that this server is a node of; `None` for a server alone.
    pub cluster: Option<ClusterConfig>,
}

/// Memory limits of the services, in bytes. Beyond them requests are rejected, with a time to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlineMemory {
    /// Bytes of inputs being read, and of unread answers and notices, of one address. Local processes are not
    /// counted together, unless [`limits_local`](parlor_server::Config::limits_local) is set.
    pub unread_each: usize,
    /// The same for all addresses together.
    pub unread_all: usize,
    /// Bytes of cached turn rooms.
    pub turn_rooms: usize,
    /// Bytes of the ranks of boards, about 80 an entry. Seasons unused for longest are dropped, and loaded
    /// again at their next use. A season that alone needs more has no ranks.
    pub boards: usize,
}

impl Default for OnlineMemory {
    /// Unread: an eighth of the machine's memory, 128 MiB to 1 GiB; for an address an eighth of that, 16 to
    /// 32 MiB. Rooms: 256 MiB. Boards: a quarter of the machine's memory, 128 MiB to 1 GiB.
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        let machine = memory_bytes().unwrap_or_default();
        let unread_all = (machine / 8).clamp(128 * MIB, 1024 * MIB);
        OnlineMemory {
            unread_each: (unread_all / 8).clamp(16 * MIB, 32 * MIB),
            unread_all,
            turn_rooms: 256 * MIB,
            boards: (machine / 4).clamp(128 * MIB, 1024 * MIB),
        }
    }
}

impl OnlineConfig {
    /// The defaults over a store: open accounts, no operator, no webhook, no backups, no folder of games, and
    /// Parlor's own rule sets.
    pub fn new(store: impl Into<String>) -> Self {
        OnlineConfig {
            store: store.into(),
            is_open: true,
            operator_key: None,
            webhook: None,
            keep_matches_days: KEEP_MATCHES_DAYS,
            backups: None,
            games: None,
            rules: RuleSets::built_in(),
            sign_in_time: SIGN_IN_TIME,
            memory: OnlineMemory::default(),
            limits: Limits::default(),
            lives: Lives::default(),
            cluster: None,
        }
    }
}
