//! The tables of a settings file. Each value is checked where it is read, so that its error names its line.

use crate::driver::{Preset, TransportPreference};
use crate::modules::Module;
use parlor_client_core::{Mode, PRESENCE_MIN, PathMode, Protocol, ReconnectPolicy};
use parlor_proto::limits;
use parlor_sync::interpolation::RenderDelay;
use parlor_sync::lead::LeadTuning;
use parlor_sync::limits::{
    MIGRATION_GRACE_MAX, MIGRATION_GRACE_MIN, RESIMULATE_TICKS_MAX, REWIND_MAX, SIMULATION_DELAY_TICKS_MAX,
};
use parlor_transport::discovery::ServerAddress;
use parlor_transport::impaired::Impairment;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

const PLAYERS_MIN: u64 = 2;
/// Of a dedicated host; a player's room has its own maximum.
const PLAYERS_MAX: u64 = 255;
const SPECTATORS_MAX: u64 = limits::SPECTATORS_MAX as u64;
const SPECTATOR_DELAY_MS_MIN: u64 = limits::SPECTATOR_DELAY_MS_MIN as u64;
const SPECTATOR_DELAY_MS_MAX: u64 = limits::SPECTATOR_DELAY_MS_MAX as u64;
const TICK_HZ_MAX: u64 = limits::TICK_HZ_MAX as u64;
const HOST_TIMEOUT_MS_MIN: u64 = limits::HOST_TIMEOUT_MS_MIN as u64;
const HOST_TIMEOUT_MS_MAX: u64 = limits::HOST_TIMEOUT_MS_MAX as u64;
const SIMULATION_DELAY_MAX: u64 = SIMULATION_DELAY_TICKS_MAX as u64;
const RESIMULATE_MAX: u64 = RESIMULATE_TICKS_MAX as u64;
const MIGRATION_GRACE_MS_MIN: u64 =
    MIGRATION_GRACE_MIN.as_secs() * 1_000 + MIGRATION_GRACE_MIN.subsec_millis() as u64;
const MIGRATION_GRACE_MS_MAX: u64 = MIGRATION_GRACE_MAX.as_secs() * 1_000;
const REWIND_MS_MAX: u64 = REWIND_MAX.as_secs() * 1_000 + REWIND_MAX.subsec_millis() as u64;

const PRESENCE_MS_MIN: u64 = PRESENCE_MIN.as_secs() * 1_000;
const PRESENCE_MS_MAX: u64 = limits::SILENCE_TIMEOUT.as_secs() * 1_000;
/// A day. A server keeps no seat for longer than it says itself.
const GRACE_MS_MAX: u64 = 86_400_000;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tables {
    pub(super) modules: Modules,
    pub(super) server: Server,
    pub(super) multiplayer: Multiplayer,
}

/// Switches: a module that is not named is on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Modules {
    multiplayer: Option<bool>,
    #[serde(alias = "net")]
    network: Option<bool>,
    lan: Option<bool>,
    online: Option<bool>,
    server: Option<bool>,
    clipboard: Option<bool>,
}

/// How the server is reached. A coordinator and a relay are one Parlor server, so each word names it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    #[serde(deserialize_with = "parsed")]
    address: Option<ServerAddress>,
    #[serde(deserialize_with = "parsed")]
    coordinator: Option<ServerAddress>,
    #[serde(deserialize_with = "parsed")]
    relay: Option<ServerAddress>,
    #[serde(deserialize_with = "transport")]
    pub(crate) transport: Option<TransportPreference>,
    pub(crate) join_page: Option<String>,
}

/// Defaults of the options of rooms.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Multiplayer {
    #[serde(deserialize_with = "name")]
    pub(crate) name: Option<String>,
    pub(crate) environment: Option<String>,
    #[serde(deserialize_with = "bounded::<_, u16, PLAYERS_MIN, PLAYERS_MAX>")]
    pub(crate) max_players: Option<u16>,
    #[serde(deserialize_with = "bounded::<_, u16, 0, SPECTATORS_MAX>")]
    pub(crate) spectators: Option<u16>,
    #[serde(deserialize_with = "bounded::<_, u32, SPECTATOR_DELAY_MS_MIN, SPECTATOR_DELAY_MS_MAX>")]
    pub(crate) spectator_delay_ms: Option<u32>,
    #[serde(alias = "tick_rate", deserialize_with = "bounded::<_, u16, 1, TICK_HZ_MAX>")]
    pub(crate) tick_hz: Option<u16>,
    pub(crate) host_migration: Option<bool>,
    #[serde(deserialize_with = "bounded::<_, u32, HOST_TIMEOUT_MS_MIN, HOST_TIMEOUT_MS_MAX>")]
    pub(crate) host_timeout_ms: Option<u32>,
    #[serde(deserialize_with = "bounded::<_, u64, MIGRATION_GRACE_MS_MIN, MIGRATION_GRACE_MS_MAX>")]
    pub(crate) migration_grace_ms: Option<u64>,
    pub(crate) migration_pause: Option<bool>,
    #[serde(deserialize_with = "protocol")]
    pub(crate) protocol: Option<Protocol>,
    #[serde(deserialize_with = "mode")]
    pub(crate) mode: Option<Mode>,
    #[serde(deserialize_with = "paths")]
    pub(crate) paths: Option<PathMode>,
    #[serde(deserialize_with = "scheme")]
    pub(crate) invite_scheme: Option<String>,
    pub(crate) reconnect: Option<bool>,
    #[serde(deserialize_with = "reconnect_policy")]
    pub(crate) reconnect_policy: Option<ReconnectPolicy>,
    #[serde(deserialize_with = "bounded::<_, u32, PRESENCE_MS_MIN, PRESENCE_MS_MAX>")]
    pub(crate) presence_ms: Option<u32>,
    #[serde(deserialize_with = "bounded::<_, u32, 0, GRACE_MS_MAX>")]
    pub(crate) grace_ms: Option<u32>,
    #[serde(deserialize_with = "preset")]
    pub(crate) preset: Option<Preset>,
    pub(crate) lead: Option<bool>,
    #[serde(deserialize_with = "lead_tuning")]
    pub(crate) lead_tuning: Option<LeadTuning>,
    #[serde(deserialize_with = "render_delay")]
    pub(crate) render_delay: Option<RenderDelay>,
    #[serde(deserialize_with = "bounded::<_, u32, 0, SIMULATION_DELAY_MAX>")]
    pub(crate) simulation_delay_ticks: Option<u32>,
    #[serde(deserialize_with = "bounded::<_, u32, 0, RESIMULATE_MAX>")]
    pub(crate) resimulate_ticks: Option<u32>,
    #[serde(deserialize_with = "bounded::<_, u64, 0, REWIND_MS_MAX>")]
    pub(crate) rewind_max_ms: Option<u64>,
    #[serde(deserialize_with = "impairment")]
    pub(crate) impairment: Option<Impairment>,
}

/// `[multiplayer.reconnect_policy]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReconnectKeys {
    attempts: Option<u32>,
    delay_first_ms: Option<u64>,
    delay_factor: Option<f64>,
    delay_max_ms: Option<u64>,
    total_ms: Option<u64>,
    jitter: Option<f64>,
    accept_state_resync: Option<bool>,
}

/// `[multiplayer.lead_tuning]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LeadKeys {
    margin_ms: Option<u64>,
    gain_per_mille: Option<u16>,
    dilation_per_mille: Option<u16>,
}

/// `[multiplayer.render_delay]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DelayKeys {
    shortest_ms: Option<u64>,
    longest_ms: Option<u64>,
}

impl Tables {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, in which line, and what is allowed.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tables: Tables = toml::from_str(text).map_err(|error| {
            // A key that stands in no table.
            let hint = if error.message().contains("expected one of `modules`") {
                "\nIs it the configuration of `parlor serve`? Then it needs another name than parlor.toml."
            } else {
                ""
            };
            format!("{}{hint}", error.to_string().trim_end())
        })?;
        tables.server.check()?;
        if tables.multiplayer.host_timeout_ms.is_some() && tables.multiplayer.host_migration.is_none() {
            return Err(
                "multiplayer.host_timeout_ms does nothing without multiplayer.host_migration = true".into()
            );
        }
        Ok(tables)
    }
}

impl Modules {
    pub(super) fn allow(&self, module: Module) -> bool {
        let switch = match module {
            Module::Multiplayer => self.multiplayer,
            Module::Net => self.network,
            Module::Lan => self.lan,
            Module::Online => self.online,
            Module::Server => self.server,
            Module::Clipboard => self.clipboard,
        };
        switch.unwrap_or(true)
    }
}

impl Server {
    /// The server, by whichever word it is named.
    pub(crate) fn address(&self) -> Option<&ServerAddress> {
        self.address.as_ref().or(self.coordinator.as_ref()).or(self.relay.as_ref())
    }

    fn check(&self) -> Result<(), String> {
        let named = [&self.address, &self.coordinator, &self.relay];
        let mut named = named.into_iter().flatten();
        let first = named.next();
        if named.all(|other| Some(other) == first) {
            return Ok(());
        }
        Err("server.address, server.coordinator and server.relay differ: in Parlor one server is all of them. \
             Leave server.address"
            .into())
    }
}

/// A whole number within its bounds.
fn bounded<'de, D: Deserializer<'de>, T: TryFrom<u64>, const MIN: u64, const MAX: u64>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let number = i64::deserialize(from)?;
    let within = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
    let wrong = || D::Error::custom(format!("{number} is out of its bounds: it may be {MIN} to {MAX}"));
    within.and_then(|number| T::try_from(number).ok()).map(Some).ok_or_else(wrong)
}

/// A text that has a meaning of its own.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<Option<T>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}

/// One of several words.
fn one_of<'de, D: Deserializer<'de>, T: Copy>(from: D, words: &[(&str, T)]) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        D::Error::custom(format!("{text:?} is none of {}", words.join(", ")))
    })
}

fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mode>, D::Error> {
    let all = [Mode::Auto, Mode::Local, Mode::Relay, Mode::P2p];
    one_of(from, &all.map(|mode| (mode.as_str(), mode)))
}

fn preset<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Preset>, D::Error> {
    let all = [Preset::Action, Preset::Standard, Preset::Calm];
    one_of(from, &all.map(|preset| (preset.as_str(), preset)))
}

fn reconnect_policy<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ReconnectPolicy>, D::Error> {
    let (keys, usual) = (ReconnectKeys::deserialize(from)?, ReconnectPolicy::default());
    let policy = ReconnectPolicy {
        attempts: keys.attempts.unwrap_or(usual.attempts),
        delay_first: ms(keys.delay_first_ms, usual.delay_first),
        delay_factor: keys.delay_factor.unwrap_or(usual.delay_factor),
        delay_max: ms(keys.delay_max_ms, usual.delay_max),
        total: ms(keys.total_ms, usual.total),
        jitter: keys.jitter.unwrap_or(usual.jitter),
        accept_state_resync: keys.accept_state_resync.unwrap_or(usual.accept_state_resync),
    };
    policy.check().map(|()| Some(policy)).map_err(D::Error::custom)
}

fn lead_tuning<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LeadTuning>, D::Error> {
    let (keys, usual) = (LeadKeys::deserialize(from)?, LeadTuning::default());
    let tuning = LeadTuning {
        margin: ms(keys.margin_ms, usual.margin),
        gain_per_mille: keys.gain_per_mille.unwrap_or(usual.gain_per_mille),
        dilation_per_mille: keys.dilation_per_mille.unwrap_or(usual.dilation_per_mille),
    };
    tuning.check().map(|()| Some(tuning)).map_err(D::Error::custom)
}

fn render_delay<'de, D: Deserializer<'de>>(from: D) -> Result<Option<RenderDelay>, D::Error> {
    let (keys, usual) = (DelayKeys::deserialize(from)?, RenderDelay::default());
    let delay = RenderDelay {
        shortest: ms(keys.shortest_ms, usual.shortest),
        longest: ms(keys.longest_ms, usual.longest),
    };
    delay.check().map(|()| Some(delay)).map_err(D::Error::custom)
}

fn ms(given: Option<u64>, usual: Duration) -> Duration {
    given.map_or(usual, Duration::from_millis)
}

fn protocol<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Protocol>, D::Error> {
    let all = [Protocol::Reliable, Protocol::Unreliable, Protocol::Both];
    one_of(from, &all.map(|protocol| (protocol.as_str(), protocol)))
}

fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathMode>, D::Error> {
    let all = [PathMode::Local, PathMode::Auto, PathMode::P2p, PathMode::Mesh, PathMode::Relay];
    one_of(from, &all.map(|paths| (paths.as_str(), paths)))
}

fn transport<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TransportPreference>, D::Error> {
    let words = [
        ("auto", TransportPreference::Auto),
        ("quic", TransportPreference::Quic),
        ("websocket", TransportPreference::WebSocket),
    ];
    one_of(from, &words)
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    if name.len() > limits::NAME_BYTES_MAX {
        let (len, max) = (name.len(), limits::NAME_BYTES_MAX);
        return Err(D::Error::custom(format!("a name of {len} bytes: it may have {max} bytes")));
    }
    Ok(Some(name))
}

fn scheme<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let scheme = String::deserialize(from)?;
    crate::driver::check_scheme(&scheme).map(|()| Some(scheme)).map_err(D::Error::custom)
}

fn impairment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Impairment>, D::Error> {
    let impairment: Option<Impairment> = parsed(from)?;
    if let Some(impairment) = &impairment {
        impairment.check().map_err(D::Error::custom)?;
    }
    Ok(impairment)
}
