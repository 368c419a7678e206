//! `parlor serve`: a server for rooms.

use crate::args::{AccountsArg, AdmissionArg, LogFormat, ServeArgs};
use crate::bounds::{AccountMax, Bounds, KeepDays, Size};
use crate::{logging, services};
use anyhow::{Context, bail};
use parlor::lan::Network;
use parlor_server::admission::Policy;
use parlor_server::{Config, FLUSH_QUANTUM_MS_MAX, GRACE_S_MAX, IdentitySource, Server, StateMemory};
use parlor_services::{KEEP_MATCHES_DAYS, OnlineConfig, WebhookConfig};
use parlor_terminal::print::say;
use parlor_transport::discovery::Registry;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the file given with `--config` may say: the same names as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    listen: Option<IpAddr>,
    port: Option<u16>,
    public_host: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    identity: Option<PathBuf>,
    apps: Option<Vec<String>>,
    max_rooms: Option<usize>,
    state_memory: Option<NonZeroU32>,
    dedicated: Option<bool>,
    state_rate: Option<NonZeroU32>,
    max_connections: Option<usize>,
    max_connections_per_address: Option<NonZeroU32>,
    web_origins: Option<Vec<String>>,
    handshakes_per_second: Option<NonZeroU32>,
    handshakes_per_second_all: Option<NonZeroU32>,
    limit_local: Option<bool>,
    admission_key: Option<PathBuf>,
    admission: Option<AdmissionArg>,
    shards: Option<NonZeroU16>,
    flush_quantum: Option<u64>,
    grace: Option<u64>,
    lan: Option<bool>,
    room_log: Option<PathBuf>,
    impair: Option<String>,
    data: Option<PathBuf>,
    store: Option<String>,
    games: Option<PathBuf>,
    accounts: Option<AccountsArg>,
    keep_matches: Option<NonZeroU32>,
    data_max: Option<Size>,
    app_max: Option<Size>,
    account_max: Option<AccountMax>,
    keep_days: Option<KeepDays>,
    operator_key: Option<PathBuf>,
    webhook: Option<String>,
    webhook_key: Option<PathBuf>,
    webhook_private: Option<bool>,
    metrics: Option<SocketAddr>,
    log_format: Option<LogFormat>,
    log: Option<String>,
}

impl File {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the configuration {} cannot be read", path.display()))?;
        toml::from_str(&text).with_context(|| format!("the configuration {} is refused", path.display()))
    }
}

/// Runs the command until Ctrl-C.
///
/// # Errors
/// What was wrong with the settings, or kept the server from starting.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(File::read).transpose()?.unwrap_or_default();
    let format = args.log_format.or(file.log_format).unwrap_or_default();
    logging::start(format, args.log.as_deref().or(file.log.as_deref()).unwrap_or("info"))?;
    let (config, online) = settings(args, file)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the thread that waits for signals could not be started")?;
    runtime.block_on(serve(config, online))
}

/// What is said of the services over a store, which there may not be.
struct Wanted {
    data: Option<PathBuf>,
    store: Option<String>,
    is_open: bool,
    operator_key: Option<PathBuf>,
    webhook: Option<WebhookConfig>,
    keep_matches: Option<NonZeroU32>,
    games: Option<PathBuf>,
    /// How much is stored and for how long.
    bounds: Bounds,
}

impl Wanted {
    fn of(args: &ServeArgs, file: &File, is_development: bool) -> anyhow::Result<Self> {
        fn first<T: Clone>(arg: &Option<T>, file: &Option<T>) -> Option<T> {
            arg.clone().or_else(|| file.clone())
        }
        let accounts = args.accounts.or(file.accounts);
        let url = first(&args.webhook, &file.webhook);
        let allows_private = args.webhook_private || file.webhook_private.unwrap_or_default();
        Ok(Wanted {
            data: first(&args.data, &file.data),
            store: first(&args.store, &file.store),
            is_open: accounts.map_or(is_development, |accounts| accounts == AccountsArg::Open),
            operator_key: first(&args.operator_key, &file.operator_key),
            webhook: webhook(url, first(&args.webhook_key, &file.webhook_key), allows_private)?,
            keep_matches: args.keep_matches.or(file.keep_matches),
            games: first(&args.games, &file.games),
            bounds: Bounds {
                data_max: args.data_max.or(file.data_max),
                app_max: args.app_max.or(file.app_max),
                account_max: first(&args.account_max, &file.account_max),
                keep_days: first(&args.keep_days, &file.keep_days),
            },
        })
    }
}

/// Command line over environment (which the command line's parser has looked into) over file over default.
fn settings(args: ServeArgs, file: File) -> anyhow::Result<(Config, Option<OnlineConfig>)> {
    let default = Config::default();
    let is_development = args.certificate.as_ref().or(file.certificate.as_ref()).is_none();
    let wanted = Wanted::of(&args, &file, is_development)?;
    let certificate = args.certificate.or(file.certificate);
    let key = args.key.or(file.key);
    // Who comes back to a kept room must know the server again. A certificate that is given needs no folder.
    let kept = wanted.data.clone().filter(|_| certificate.is_none() && key.is_none());
    let folder = args.identity.or(file.identity).or(kept);
    let identity = identity(certificate, key, folder)?;
    let flush_quantum = args.flush_quantum.or(file.flush_quantum);
    let flush_quantum = at_most("flush-quantum", flush_quantum, FLUSH_QUANTUM_MS_MAX, "milliseconds")?;
    let grace = at_most("grace", args.grace.or(file.grace), GRACE_S_MAX, "seconds")?;
    let configured = file.impair.map(|spec| spec.parse().with_context(|| format!("impair is {spec:?}")));
    let impairment = args.impair.map(Ok).or(configured).transpose()?;
    let kept_matches = wanted.bounds.kept_matches().unwrap_or(default.kept_matches);
    let online = online(wanted)?;
    let admission_key = args.admission_key.or(file.admission_key);
    let admission = admission(admission_key, args.admission.or(file.admission), online.is_some())?;
    let config = Config {
        listen: args.listen.or(file.listen).unwrap_or(default.listen),
        port: args.port.or(file.port).unwrap_or(default.port),
        identity,
        apps: args.apps.or(file.apps),
        rooms_max: args.max_rooms.or(file.max_rooms).unwrap_or(default.rooms_max),
        state_memory: state_memory(args.state_memory, file.state_memory).unwrap_or(default.state_memory),
        dedicated: args.dedicated || file.dedicated.unwrap_or(default.dedicated),
        state_rate: args
            .state_rate
            .or(file.state_rate.map(NonZeroU32::get))
            .map_or(default.state_rate, |kib| kib.saturating_mul(1024)),
        connections_max: args.max_connections.or(file.max_connections).unwrap_or(default.connections_max),
        connections_per_address: args
            .max_connections_per_address
            .or(file.max_connections_per_address.map(NonZeroU32::get))
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        web_origins: args.web_origins.or(file.web_origins).unwrap_or_default(),
        handshakes_per_second: args
            .handshakes_per_second
            .or(file.handshakes_per_second.map(NonZeroU32::get))
            .unwrap_or(default.handshakes_per_second),
        handshakes_per_second_all: args
            .handshakes_per_second_all
            .or(file.handshakes_per_second_all.map(NonZeroU32::get))
            .unwrap_or(default.handshakes_per_second_all),
        limits_local: args.limit_local || file.limit_local.unwrap_or(default.limits_local),
        admission,
        shards: args.shards.or(file.shards).unwrap_or(default.shards),
        flush_quantum: flush_quantum.map_or(default.flush_quantum, Duration::from_millis),
        grace: grace.map_or(default.grace, Duration::from_secs),
        registry: is_development.then(Registry::of_this_user),
        room_log: args.room_log.or(file.room_log),
        public_host: args.public_host.or(file.public_host),
        impairment,
        metrics: args.metrics.or(file.metrics),
        kept_matches,
        lan: (args.lan || file.lan.unwrap_or_default()).then(Network::default),
        ..default
    };
    Ok((config, online))
}

/// A time that may not be longer than this.
fn at_most(name: &str, value: Option<u64>, max: u64, unit: &str) -> anyhow::Result<Option<u64>> {
    if value.is_some_and(|value| value > max) {
        bail!("{name} is too long: it may be 0 to {max} {unit}");
    }
    Ok(value)
}

/// How much memory the state of rooms may take, if that is said.
fn state_memory(arg: Option<u32>, file: Option<NonZeroU32>) -> Option<StateMemory> {
    arg.or(file.map(NonZeroU32::get)).map(|mib| StateMemory::of((mib as usize) << 20))
}

/// How the server proves who it is.
fn identity(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    folder: Option<PathBuf>,
) -> anyhow::Result<IdentitySource> {
    Ok(match (certificate, key, folder) {
        (Some(certificate), Some(key), None) => IdentitySource::Files { certificate, key },
        (None, None, folder) => IdentitySource::Development { folder },
        (Some(_), None, _) => bail!("a certificate is given and no key: add --key FILE"),
        (None, Some(_), _) => bail!("a key is given and no certificate: add --certificate FILE"),
        (Some(_), Some(_), Some(_)) => bail!(
            "a certificate and a folder for a development identity are given: a server has one identity, so drop one"
        ),
    })
}

/// Where accounts and turn rooms are kept, if they are.
fn online(wanted: Wanted) -> anyhow::Result<Option<OnlineConfig>> {
    let Wanted { data, store, is_open, operator_key, webhook, keep_matches, games, bounds } = wanted;
    let backups = data.as_ref().map(|folder| folder.join("backups"));
    let store = match (store, data) {
        (Some(store), _) => store,
        (None, Some(folder)) => {
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("the folder {} for --data cannot be made", folder.display()))?;
            services::store_in(&folder)?
        }
        (None, None) if keep_matches.is_some() => {
            bail!("no match is kept without a store: add --data FOLDER or --store URL")
        }
        (None, None) if games.is_some() => {
            bail!("there are no turn rooms without a store: add --data FOLDER or --store URL")
        }
        (None, None) if bounds.is_any() => {
            bail!("there is nothing to bound without a store: add --data FOLDER or --store URL")
        }
        (None, None) if operator_key.is_some() || webhook.is_some() => {
            bail!(
                "there is nothing to operate or to tell of without a store: add --data FOLDER or --store URL"
            )
        }
        (None, None) => return Ok(None),
    };
    let keep_matches_days = keep_matches.map_or(KEEP_MATCHES_DAYS, |days| days.get().into());
    let config = OnlineConfig {
        is_open,
        operator_key,
        webhook,
        backups,
        keep_matches_days,
        games,
        ..OnlineConfig::new(store)
    };
    bounds.apply(config).map(Some)
}

/// The webhook's receiver.
fn webhook(
    url: Option<String>,
    key: Option<PathBuf>,
    allows_private: bool,
) -> anyhow::Result<Option<WebhookConfig>> {
    match (url, key) {
        (Some(url), Some(file)) => {
            let key = std::fs::read(&file)
                .with_context(|| format!("the webhook's key cannot be read from {}", file.display()))?;
            Ok(Some(WebhookConfig { url, key: key.trim_ascii().to_vec(), allows_private }))
        }
        (Some(_), None) => bail!("a webhook is given and no key to sign with: add --webhook-key FILE"),
        (None, Some(_)) => bail!("a webhook's key is given and no webhook: add --webhook URL"),
        (None, None) => Ok(None),
    }
}

/// Who needs a token. Default: all players with an admission key, none without.
fn admission(
    key: Option<PathBuf>,
    admission: Option<AdmissionArg>,
    has_accounts: bool,
) -> anyhow::Result<Option<Policy>> {
    if key.is_none() && admission == Some(AdmissionArg::Required) && !has_accounts {
        bail!(
            "tokens are asked for and nobody can have one: add --admission-key FILE, or --data FOLDER for accounts, which get \
             tickets"
        )
    }
    let is_required = match admission {
        Some(admission) => admission == AdmissionArg::Required,
        None => key.is_some(),
    };
    Ok((key.is_some() || is_required).then_some(Policy { key, is_required }))
}

async fn serve(config: Config, online: Option<OnlineConfig>) -> anyhow::Result<()> {
    let (impairment, is_announced) = (config.impairment, config.lan.is_some());
    // Before anybody is told that the server runs: whoever reads that may stop it at once.
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("SIGTERM cannot be listened for")?;
    let mut server = match online.clone() {
        Some(online) => parlor_services::start(config, online).await?,
        None => Server::start(config).await?,
    };
    announce(&server, online.as_ref());
    if let Some(impairment) = impairment {
        say(&format!("  network  impaired on purpose, each way: {impairment}"));
    }
    if is_announced {
        say("  lan      rooms without a secret are announced on this network: parlor rooms --lan lists them");
    }
    tokio::select! {
        stopped = tokio::signal::ctrl_c() => stopped.context("Ctrl-C cannot be listened for")?,
        _ = terminate.recv() => {}
        failed = server.wait() => {
            server.shutdown().await;
            return Err(failed.into());
        }
    }
    tracing::info!("going down: rooms are told");
    server.shutdown().await;
    Ok(())
}

/// Says where everything is.
fn announce(server: &Server, online: Option<&OnlineConfig>) {
    let port = server.local_port();
    say(&format!("Parlor {} listens on port {port}", env!("CARGO_PKG_VERSION")));
    say(&format!("  games    QUIC, UDP {port}; WebSocket, wss://HOST:{port}/ws"));
    say(&format!("  web      https://HOST:{port}/  (rooms: /rooms/CODE)"));
    say(&format!("  health   https://HOST:{port}/health, and /ready: whether it takes players"));
    if let Some(addr) = server.metrics_addr() {
        say(&format!("  metrics  http://{addr}/metrics, and /health and /ready there too"));
    }
    match server.fingerprint() {
        Some(_) => {
            say(
                "  identity made by this server; on this machine clients know it already, elsewhere they need",
            );
            for address in server.addresses() {
                say(&format!("           PARLOR_SERVER={address}"));
            }
        }
        None => say("  identity the certificate given"),
    }
    say(&format!(
        "  play     parlor play --server 127.0.0.1:{port}, then parlor play --server 127.0.0.1:{port} --join CODE"
    ));
    if let Some(config @ OnlineConfig { store, is_open, .. }) = online {
        let who =
            if *is_open { "anybody may make an account" } else { "the game's own service makes accounts" };
        say(&format!(
            "  services https://HOST:{port}/v1  (what there is: /v1/openapi.json; JSON socket: /v1/socket)"
        ));
        say(&format!("  store    {}; {who}", without_password(store)));
        operation(port, config);
        let takes_clients = server.fingerprint().is_some();
        match &config.games {
            Some(folder) => say(&format!("  turns    rooms of the games in {}", folder.display())),
            None if takes_clients => {
                say(
                    "  turns    rooms as clients set them up, for development; --games FOLDER makes it yours",
                );
            }
            None => say("  turns    no rooms are opened: --games FOLDER says which games there are"),
        }
        if config.games.as_ref().map_or(takes_clients, |folder| folder.join("draughts.json").is_file()) {
            say(&format!(
                "  draughts parlor draughts --server 127.0.0.1:{port} --name ada, and another one as bob"
            ));
        }
    }
    say("Ctrl-C tells every room and goes down.");
}

/// Says how the server is looked after.
fn operation(port: u16, config: &OnlineConfig) {
    match &config.operator_key {
        Some(key) => {
            say(&format!("  operator whoever has the private half of {}", key.display()));
            say(&format!("           parlor admin rooms --server 127.0.0.1:{port} --key FILE --app APP"));
        }
        None => say(
            "  operator none: parlor token --new-key FILE makes a key, and --operator-key FILE.pub takes it",
        ),
    }
    match &config.backups {
        Some(_) if config.store.starts_with("postgres") => say("  backups  by PostgreSQL's own tools"),
        Some(folder) => say(&format!("  backups  {}, by parlor admin backup", folder.display())),
        None => say("  backups  none: the server has no --data FOLDER"),
    }
    if let Some(webhook) = &config.webhook {
        say(&format!("  webhook  {}", webhook.url));
    }
}

/// A store's address as it may stand on a screen.
fn without_password(store: &str) -> String {
    match (store.split_once("://"), store.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => store.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(
            without_password("postgres://ada:secret@db.example/parlor"),
            "postgres://db.example/parlor"
        );
        assert_eq!(
            without_password("postgres://ada:s@cret@db.example/parlor"),
            "postgres://db.example/parlor"
        );
        assert_eq!(without_password("/var/lib/parlor/parlor.db"), "/var/lib/parlor/parlor.db");
    }
}
