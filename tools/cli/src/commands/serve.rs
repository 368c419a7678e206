//! `parlor serve`: a server for rooms.

use crate::args::{AccountsArg, AdmissionArg, ServeArgs};
use crate::bounds::Bounds;
use crate::{logging, services, web};
use anyhow::{Context, bail};
use parlor::lan::Network;
use parlor_server::admission::Policy;
use parlor_server::{Config, IdentitySource, Server, StateMemory, WebGame};
use parlor_services::{ClusterConfig, KEEP_MATCHES_DAYS, OnlineConfig, WebhookConfig};
use parlor_terminal::print::say;
use parlor_transport::discovery::Registry;
use std::path::PathBuf;
use std::time::Duration;

/// How long a node drains before it ends, by default.
const DRAIN_S: u64 = 60;

/// Runs the command until Ctrl-C.
///
/// # Errors
/// What was wrong with the settings, or kept the server from starting.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    let args = resolved(args)?;
    logging::start(args.log_format.unwrap_or_default(), args.log.as_deref().unwrap_or("info"))?;
    let drain_time = Duration::from_secs(args.drain_time.unwrap_or(DRAIN_S));
    let (config, online) = settings(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the thread that waits for signals could not be started")?;
    runtime.block_on(serve(config, online, drain_time))
}

/// The settings with those of the file.
///
/// # Errors
/// What is wrong with the file.
pub(crate) fn resolved(args: ServeArgs) -> anyhow::Result<ServeArgs> {
    let file = args.config.as_deref().map(ServeArgs::read).transpose()?.unwrap_or_default();
    Ok(args.over(file))
}

/// The server that the settings describe.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn settings(args: ServeArgs) -> anyhow::Result<(Config, Option<OnlineConfig>)> {
    let default = Config::default();
    let is_development = args.certificate.is_none();
    let bounds = Bounds {
        data_max: args.data_max,
        app_max: args.app_max,
        account_max: args.account_max.clone(),
        keep_days: args.keep_days.clone(),
    };
    let kept_matches = bounds.kept_matches().unwrap_or(default.kept_matches);
    // Who comes back to a kept room must know the server again. A certificate that is given needs no folder.
    let kept = args.data.as_ref().filter(|_| args.certificate.is_none() && args.key.is_none());
    let folder = args.identity.as_ref().or(kept).cloned();
    let web_pages = web::pages_of(args.pages.as_deref(), args.apps.as_deref())?;
    let identity = identity(args.certificate.clone(), args.key.clone(), folder)?;
    let online = online(&args, bounds)?;
    let admission = admission(args.admission_key, args.admission, online.is_some())?;
    let config = Config {
        listen: args.listen.unwrap_or(default.listen),
        port: args.port.unwrap_or(default.port),
        identity,
        apps: args.apps,
        rooms_max: args.max_rooms.unwrap_or(default.rooms_max),
        state_memory: args
            .state_memory
            .map_or(default.state_memory, |mib| StateMemory::of((mib as usize) << 20)),
        dedicated: args.dedicated,
        state_rate: args.state_rate.map_or(default.state_rate, |kib| kib.saturating_mul(1024)),
        connections_max: args.max_connections.unwrap_or(default.connections_max),
        connections_per_address: args
            .max_connections_per_address
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        web_origins: args.web_origins.unwrap_or_default(),
        handshakes_per_second: args.handshakes_per_second.unwrap_or(default.handshakes_per_second),
        handshakes_per_second_all: args
            .handshakes_per_second_all
            .unwrap_or(default.handshakes_per_second_all),
        limits_local: args.limit_local,
        admission,
        shards: args.shards.unwrap_or(default.shards),
        flush_quantum: args.flush_quantum.map_or(default.flush_quantum, Duration::from_millis),
        grace: args.grace.map_or(default.grace, Duration::from_secs),
        remember: args.remember.map_or(default.remember, Duration::from_secs),
        registry: is_development.then(Registry::of_this_user),
        room_log: args.room_log,
        public_host: args.public_host,
        impairment: args.impair,
        metrics: args.metrics,
        kept_matches,
        lan: args.lan.then(Network::default),
        web_pages,
        ..default
    };
    Ok((config, online))
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
fn online(args: &ServeArgs, bounds: Bounds) -> anyhow::Result<Option<OnlineConfig>> {
    let ServeArgs { data, operator_key, keep_matches, games, .. } = args;
    let webhook = webhook(args.webhook.clone(), args.webhook_key.as_ref(), args.webhook_private)?;
    let backups = data.as_ref().map(|folder| folder.join("backups"));
    let store = match (&args.store, data) {
        (Some(store), _) => store.clone(),
        (None, Some(folder)) => services::store_in(folder)?,
        (None, None) if keep_matches.is_some() => {
            bail!("no match is kept without a store: add --data FOLDER or --store URL")
        }
        (None, None) if args.node.is_some() => {
            bail!("nodes of a cluster share a store in PostgreSQL: add --store postgres://USER@HOST/DATABASE")
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
        is_open: args.accounts.map_or(args.certificate.is_none(), |accounts| accounts == AccountsArg::Open),
        operator_key: operator_key.clone(),
        webhook,
        backups,
        keep_matches_days,
        games: games.clone(),
        cluster: cluster(args)?,
        ..OnlineConfig::new(store)
    };
    bounds.apply(config).map(Some)
}

/// The node of a cluster that this server is, if it is one.
fn cluster(args: &ServeArgs) -> anyhow::Result<Option<ClusterConfig>> {
    let Some(name) = &args.node else { return Ok(None) };
    let config = ClusterConfig::new(name.parse().context("--node is refused")?);
    let line = args.line.unwrap_or(config.line);
    let bus = args.bus.as_deref().map(str::parse).transpose().context("--bus is refused")?;
    Ok(Some(ClusterConfig { line, bus, ..config }))
}

/// The webhook's receiver.
fn webhook(
    url: Option<String>,
    key: Option<&PathBuf>,
    allows_private: bool,
) -> anyhow::Result<Option<WebhookConfig>> {
    match (url, key) {
        (Some(url), Some(file)) => {
            let key = std::fs::read(file)
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

async fn serve(config: Config, online: Option<OnlineConfig>, drain_time: Duration) -> anyhow::Result<()> {
    let (impairment, is_announced) = (config.impairment, config.lan.is_some());
    let games = config.web_pages.games.clone();
    // Before anybody is told that the server runs: whoever reads that may stop it at once.
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("SIGTERM cannot be listened for")?;
    let mut server = match online.clone() {
        Some(online) => parlor_services::start(config, online).await?,
        None => Server::start(config).await?,
    };
    announce(&server, online.as_ref());
    announce_pages(&server, &games);
    say("Ctrl-C tells every room and goes down.");
    if let Some(impairment) = impairment {
        say(&format!("  network  impaired on purpose, each way: {impairment}"));
    }
    if is_announced {
        say("  lan      rooms without a secret are announced on this network: parlor rooms --lan lists them");
    }
    tokio::select! {
        stopped = tokio::signal::ctrl_c() => stopped.context("Ctrl-C cannot be listened for")?,
        _ = terminate.recv() => tokio::select! {
            () = server.drain(drain_time) => {}
            // A second signal: what is left ends at once.
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
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
    say(&format!("  web      https://HOST:{port}/  (rooms: /rooms/CODE; pages connect as /web.json says)"));
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
}

/// Says where browsers play.
fn announce_pages(server: &Server, games: &[WebGame]) {
    for game in games {
        let page = web::on_this_machine(server.local_port(), game.path);
        say(&format!("  browser  play {} in a browser: {page}", game.app));
    }
    for page in web::elsewhere(server.addresses()).filter(|_| !games.is_empty()) {
        say(&format!("           from elsewhere: {page}"));
    }
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
