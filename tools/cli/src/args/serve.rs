//! Options of `parlor serve`.

use crate::bounds::{AccountMax, KeepDays, Size};
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use parlor::Impairment;
use parlor_server::{FLUSH_QUANTUM_MS_MAX, GRACE_S_MAX, REMEMBER_S_MAX};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};

/// Longest time for which a node drains before it ends.
const DRAIN_S_MAX: u64 = 24 * 60 * 60;

/// The settings of a server. Each may stand on the command line, in the environment, or in the file given with
/// --config, and counts in this order.
#[derive(Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServeArgs {
    /// TOML file with settings of the same names
    #[serde(skip)]
    #[arg(long, env = "PARLOR_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on [default: all]
    #[arg(long, env = "PARLOR_LISTEN", value_name = "IP")]
    pub listen: Option<IpAddr>,
    /// Port, UDP for QUIC and TCP for HTTP and WebSocket; 0 for any free one [default: 7700]
    #[arg(long, env = "PARLOR_PORT")]
    pub port: Option<u16>,
    /// Host name in invite links [default: the addresses]
    #[arg(long, env = "PARLOR_PUBLIC_HOST", value_name = "HOST")]
    pub public_host: Option<String>,
    /// Certificate chain (PEM) [default: a development identity, self-signed]
    #[arg(long, env = "PARLOR_CERTIFICATE", value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, env = "PARLOR_KEY", value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Folder of the development identity; keeps its fingerprint across restarts
    #[arg(long, env = "PARLOR_IDENTITY", value_name = "FOLDER")]
    pub identity: Option<PathBuf>,
    /// Serve only this game; repeatable [default: any]
    #[arg(long = "app", env = "PARLOR_APPS", value_name = "APP", value_delimiter = ',')]
    pub apps: Option<Vec<String>>,
    /// Maximum number of rooms [default: 10000]
    #[arg(long, env = "PARLOR_MAX_ROOMS")]
    pub max_rooms: Option<usize>,
    /// Allow dedicated hosts: processes without a player, with rooms of up to 255 players
    #[arg(long, env = "PARLOR_DEDICATED")]
    pub dedicated: bool,
    /// Maximum rate of state sent to one member, in KiB per second [default: 192]
    #[arg(long, env = "PARLOR_STATE_RATE", value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=65_536))]
    pub state_rate: Option<u32>,
    /// Maximum number of connections on TCP, and again on QUIC [default: 4096]
    #[arg(long, env = "PARLOR_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Maximum number of connections per address on TCP, and again on QUIC [default: an eighth of all, at least 16]
    #[arg(long, env = "PARLOR_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_address: Option<u32>,
    /// Allow web pages of this origin, such as `https://game.example`; repeatable
    /// [default: only the server's own]
    #[arg(long, env = "PARLOR_WEB_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub web_origins: Option<Vec<String>>,
    /// Folder of the pages that browsers play on, as `node web/build.mjs FOLDER` builds it [default: those of this binary]
    #[arg(long, env = "PARLOR_PAGES", value_name = "FOLDER")]
    pub pages: Option<PathBuf>,
    /// Handshakes per second and address, averaged [default: 10]
    #[arg(long, env = "PARLOR_HANDSHAKES_PER_SECOND", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshakes_per_second: Option<u32>,
    /// Handshakes per second in all, averaged [default: 500]
    #[arg(long, env = "PARLOR_HANDSHAKES_PER_SECOND_ALL", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshakes_per_second_all: Option<u32>,
    /// Apply the limits per address to this machine as well [default: exempt]
    #[arg(long, env = "PARLOR_LIMIT_LOCAL")]
    pub limit_local: bool,
    /// Public key (PEM, Ed25519) of the issuer of admission tokens [default: none; players without an account here are anonymous]
    #[arg(long, env = "PARLOR_ADMISSION_KEY", value_name = "FILE")]
    pub admission_key: Option<PathBuf>,
    /// Whether a token is required [default: required with --admission-key, else optional]
    #[arg(long, env = "PARLOR_ADMISSION", value_enum)]
    pub admission: Option<AdmissionArg>,
    /// Threads for rooms; each listens on its own port, counted up from the first [default: 1]
    #[arg(long, env = "PARLOR_SHARDS")]
    pub shards: Option<NonZeroU16>,
    /// Milliseconds for which a room may delay packets to merge them, 0 to 20 [default: 0]
    #[arg(long, env = "PARLOR_FLUSH_QUANTUM", value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=FLUSH_QUANTUM_MS_MAX))]
    pub flush_quantum: Option<u64>,
    /// Seconds for which a disconnected player keeps its seat; 0 keeps none [default: 30]
    #[arg(long, env = "PARLOR_GRACE", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=GRACE_S_MAX))]
    pub grace: Option<u64>,
    /// Seconds for which a lost player whose seat is free has its id and its data again when it returns; 0 remembers none [default: 600]
    #[arg(long, env = "PARLOR_REMEMBER", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=REMEMBER_S_MAX))]
    pub remember: Option<u64>,
    /// Announce rooms without a secret on the local network; see docs/lan.md
    #[arg(long, env = "PARLOR_LAN")]
    pub lan: bool,
    /// Memory for the state of all rooms in MiB; one address may use a quarter of it [default: half of the machine's]
    #[arg(long, env = "PARLOR_STATE_MEMORY", value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    pub state_memory: Option<u32>,
    /// Write a log of every room into this folder, for `parlor replay`
    #[arg(long, env = "PARLOR_ROOM_LOG", value_name = "FOLDER")]
    pub room_log: Option<PathBuf>,
    /// Simulate a bad network on all sockets, such as latency=80ms,jitter=20ms,loss=3%; see docs/impair.md
    #[serde(deserialize_with = "impairment")]
    #[arg(long, env = "PARLOR_IMPAIR", value_name = "SPEC")]
    pub impair: Option<Impairment>,
    /// Folder of the store, for accounts and turn rooms [default: none; no accounts and no turn rooms]. Also keeps the development identity,
    /// unless --identity names another folder
    #[arg(long, env = "PARLOR_DATA", value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Store of accounts and turn rooms: a file, sqlite://FILE or postgres://USER@HOST/DATABASE
    #[arg(long, env = "PARLOR_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// Name of this node of a cluster: servers that share a PostgreSQL store, each by another name; see docs/cluster.md
    /// [default: none; the server has its store alone]
    #[arg(long, env = "PARLOR_NODE", value_name = "NAME")]
    pub node: Option<String>,
    /// Where the other nodes of the cluster reach this one: an address of this machine and a port for them alone
    /// [default: a free port of 127.0.0.1, for nodes on one machine]
    #[arg(long, env = "PARLOR_LINE", value_name = "IP:PORT", requires = "node")]
    pub line: Option<SocketAddr>,
    /// NATS server that carries hints between the nodes, nats://USER:PASSWORD@HOST:PORT or tls://… [default: none; the store's PostgreSQL
    /// carries them]
    #[arg(long, env = "PARLOR_BUS", value_name = "URL", requires = "node", hide_env_values = true)]
    pub bus: Option<String>,
    /// Seconds for which a node that is to end takes no more rooms and waits until it has none; 0 ends at once. A
    /// second signal ends it at once, too [default: 60]
    #[arg(long, env = "PARLOR_DRAIN_TIME", value_name = "SECONDS", requires = "node", value_parser = clap::value_parser!(u64).range(0..=DRAIN_S_MAX))]
    pub drain_time: Option<u64>,
    /// Folder with the configuration of each game's turn rooms, NAME.json [default: clients bring it to a server with a development identity,
    /// and one with a certificate opens no turn rooms]
    #[arg(long, env = "PARLOR_GAMES", value_name = "FOLDER")]
    pub games: Option<PathBuf>,
    /// Who may create accounts [default: open with a development identity, closed with a certificate]
    #[arg(long, env = "PARLOR_ACCOUNTS", value_enum)]
    pub accounts: Option<AccountsArg>,
    /// Days for which the log of a kept match is stored [default: 30]
    #[arg(long, env = "PARLOR_KEEP_MATCHES", value_name = "DAYS")]
    pub keep_matches: Option<NonZeroU32>,
    /// Maximum size of the store, such as 20G; a full store refuses additions [default: 10G]
    #[arg(long, env = "PARLOR_DATA_MAX", value_name = "SIZE")]
    pub data_max: Option<Size>,
    /// Maximum size of turn rooms and kept matches per app and environment [default: that of the store]
    #[arg(long, env = "PARLOR_APP_MAX", value_name = "SIZE")]
    pub app_max: Option<Size>,
    /// Quotas per account [default: rooms=256,room-bytes=64M,logs=64M,matches=8,saves=4M,objects=8M,guest-bytes=4M]
    #[arg(long, env = "PARLOR_ACCOUNT_MAX", value_name = "LIST")]
    pub account_max: Option<AccountMax>,
    /// Days after which unused entries are deleted [default: ended=30,waiting=14,playing=365,guests=60,devices=730,webhooks=7]
    #[arg(long, env = "PARLOR_KEEP_DAYS", value_name = "LIST")]
    pub keep_days: Option<KeepDays>,
    /// Public key (PEM, Ed25519) of the operator, who signs tokens of the roles server and admin [default: none]
    #[arg(long, env = "PARLOR_OPERATOR_KEY", value_name = "FILE")]
    pub operator_key: Option<PathBuf>,
    /// Webhook: https address that is sent the events of turn rooms; see docs/online.md
    #[arg(long, env = "PARLOR_WEBHOOK", value_name = "URL")]
    pub webhook: Option<String>,
    /// File with the key that signs webhook requests, at least 16 bytes
    #[arg(long, env = "PARLOR_WEBHOOK_KEY", value_name = "FILE")]
    pub webhook_key: Option<PathBuf>,
    /// Allow a webhook address in a private network or on this machine
    #[arg(long, env = "PARLOR_WEBHOOK_PRIVATE")]
    pub webhook_private: bool,
    /// Address for monitoring over HTTP: /metrics, /health and /ready; 127.0.0.1:9770 keeps them on this machine
    #[arg(long, env = "PARLOR_METRICS", value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Format of the log on standard error [default: text]
    #[arg(long, env = "PARLOR_LOG_FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
    /// Log filter, for instance "info" or "parlor_server=debug" [default: info]
    #[arg(long, env = "PARLOR_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

impl ServeArgs {
    /// Reads the file given with `--config`.
    ///
    /// # Errors
    /// What is wrong with the file, and which file it is.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the configuration {} cannot be read", path.display()))?;
        let refused = || format!("the configuration {} is refused", path.display());
        let file: ServeArgs = toml::from_str(&text).with_context(refused)?;
        for (name, value) in [
            ("state-memory", file.state_memory),
            ("state-rate", file.state_rate),
            ("max-connections-per-address", file.max_connections_per_address),
            ("handshakes-per-second", file.handshakes_per_second),
            ("handshakes-per-second-all", file.handshakes_per_second_all),
        ] {
            ensure!(value != Some(0), "{}: {name} is 0; it must be at least 1", refused());
        }
        for (name, value, max, unit) in [
            ("flush-quantum", file.flush_quantum, FLUSH_QUANTUM_MS_MAX, "milliseconds"),
            ("grace", file.grace, GRACE_S_MAX, "seconds"),
            ("remember", file.remember, REMEMBER_S_MAX, "seconds"),
            ("drain-time", file.drain_time, DRAIN_S_MAX, "seconds"),
        ] {
            ensure!(
                value.is_none_or(|value| value <= max),
                "{name} is too long: it may be 0 to {max} {unit}"
            );
        }
        Ok(file)
    }

    /// These settings; what they leave out is as the file has it.
    pub(crate) fn over(self, file: ServeArgs) -> ServeArgs {
        macro_rules! over {
            ($($setting:ident)*; $($flag:ident)*) => {
                ServeArgs {
                    config: self.config,
                    $($setting: self.$setting.or(file.$setting),)*
                    $($flag: self.$flag || file.$flag,)*
                }
            };
        }
        over! {
            listen port public_host certificate key identity apps max_rooms state_rate
            max_connections max_connections_per_address web_origins pages handshakes_per_second
            handshakes_per_second_all admission_key admission shards flush_quantum grace remember
            state_memory room_log impair data store node line bus drain_time games accounts keep_matches data_max app_max
            account_max keep_days operator_key webhook webhook_key metrics log_format log;
            dedicated limit_local lan webhook_private
        }
    }
}

/// A bad network as the file has it.
fn impairment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Impairment>, D::Error> {
    let spec = String::deserialize(from)?;
    spec.parse().map(Some).map_err(|error| D::Error::custom(format!("impair is {spec:?}: {error}")))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdmissionArg {
    /// Every player needs a token
    Required,
    /// Players without a token are anonymous; a wrong token is refused
    Optional,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AccountsArg {
    /// Any player may create an account
    Open,
    /// Only the game's own service creates accounts, for its players
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_comes_before_the_file() {
        let file = |text| toml::from_str::<ServeArgs>(text).map_err(|error| error.to_string());
        let filed =
            file("port = 1\ngrace = 5\napps = [\"tanks\"]\nlan = true\nimpair = \"loss=3%\"").unwrap();
        let args = ServeArgs { port: Some(2), dedicated: true, ..ServeArgs::default() }.over(filed);
        assert_eq!((args.port, args.grace, args.dedicated, args.lan), (Some(2), Some(5), true, true));
        assert_eq!((args.apps, args.impair), (Some(vec!["tanks".to_owned()]), "loss=3%".parse().ok()));
        assert!(file("impair = \"loss=200%\"").unwrap_err().contains("impair is \"loss=200%\""));
        assert!(file("config = \"other.toml\"").unwrap_err().contains("unknown field"));
    }
}
