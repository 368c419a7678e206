//! This machine as a server's: ports, certificate, clock, limits, store.

use super::certificate::{self, Source};
use super::findings::Findings;
use super::server::{self, Depth};
use super::{own_address, storage};
use crate::args::ServeArgs;
use crate::commands::serve;
use core::net::IpAddr;
use core::time::Duration;
use parlor_server::{Config, IDENTITY_FILE, IdentitySource, StartError, checks};
use parlor_services::OnlineConfig;
use parlor_terminal::error_text::sentence;
use parlor_transport::discovery::ServerAddress;
use parlor_transport::{CertificateChain, Fingerprint, Trust, connect, quic};
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long the machine's own services are waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks at this machine with the settings of a server, and at the server if it runs.
pub(super) fn examine(runtime: &Runtime, args: ServeArgs, findings: &mut Findings) {
    let Some((config, online)) = settings(args, findings) else { return };
    let is_running = ports(runtime, &config, findings);
    let fingerprint = identity(&config, findings);
    public_host(runtime, &config, findings);
    clock(findings);
    limits(&config, findings);
    if let Some(online) = &online {
        storage::store(findings, online, is_running);
    }
    if let Some(folder) = &config.room_log {
        storage::writable(findings, "room log", folder);
    }
    if is_running {
        let address = ServerAddress { fingerprint, ..own_address(Some(config.listen), config.port) };
        server::examine(runtime, &address, None, Depth::Full, findings);
    }
}

fn settings(args: ServeArgs, findings: &mut Findings) -> Option<(Config, Option<OnlineConfig>)> {
    const CHECK: &str = "settings";
    let checked = || -> anyhow::Result<_> {
        let (config, online) = serve::settings(serve::resolved(args)?)?;
        checks::settings(&config, online.is_some())?;
        let is_development = matches!(config.identity, IdentitySource::Development { .. });
        online.as_ref().map(|online| online.check(is_development)).transpose()?;
        Ok((config, online))
    };
    match checked() {
        Ok(settings) => {
            findings.ok(CHECK, "a server starts with them");
            Some(settings)
        }
        Err(error) => {
            let todo = "Correct the setting and look again; docs/serve.md describes each";
            findings.problem(CHECK, sentence(&error), todo);
            None
        }
    }
}

/// Looks at all ports. Says whether the server runs already.
fn ports(runtime: &Runtime, config: &Config, findings: &mut Findings) -> bool {
    let Config { listen, port, shards, .. } = *config;
    if port == 0 {
        findings.not_looked_at("ports", "any free ones are taken");
        return false;
    }
    let _inside = runtime.enter();
    let tried = |port| [checks::tcp_port(listen, port), checks::udp_port(listen, port)];
    if tried(port).iter().any(Result::is_err) && server::is_parlor(runtime, &own_address(Some(listen), port))
    {
        findings.ok("ports", format!("a Parlor server has {port}: it is looked at below"));
        return true;
    }
    let mut free = Vec::new();
    for number in 0..shards.get() {
        // The settings were checked: there are as many.
        let port = port.saturating_add(number);
        for (name, tried) in ["tcp", "udp"].into_iter().zip(tried(port)) {
            match tried {
                Ok(()) => free.push(format!("{port}/{name}")),
                Err(error) => taken(findings, &format!("{name} {port}"), name, port, &error),
            }
        }
    }
    if let Some(metrics) = config.metrics.filter(|metrics| metrics.port() != 0) {
        match checks::tcp_port(metrics.ip(), metrics.port()) {
            Ok(()) => free.push(format!("{}/tcp", metrics.port())),
            Err(error) => taken(findings, "metrics", "tcp", metrics.port(), &error),
        }
    }
    if !free.is_empty() {
        findings.ok("ports", format!("free: {}", free.join(", ")));
    }
    false
}

fn taken(findings: &mut Findings, check: &str, protocol: &str, port: u16, error: &StartError) {
    let kind = match error {
        StartError::Tcp { error, .. } => error.kind(),
        StartError::Udp(error) => error.error.kind(),
        _ => ErrorKind::Other,
    };
    let (found, todo) = match kind {
        ErrorKind::AddrInUse => {
            let list = if protocol == "tcp" { "-ltnp" } else { "-lunp" };
            let todo = format!(
                "`ss {list} 'sport = :{port}'`, as root, names the program: stop it, or choose another --port"
            );
            ("another program has it".to_owned(), todo)
        }
        ErrorKind::PermissionDenied => (
            error.to_string(),
            "Ports below 1024 need a right: AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit. Or choose a higher --port".to_owned(),
        ),
        ErrorKind::AddrNotAvailable => {
            (error.to_string(), "`ip address` lists this machine's addresses: --listen takes one of them".to_owned())
        }
        _ => (error.to_string(), "Choose another --port or --listen".to_owned()),
    };
    findings.problem(check, found, todo);
}

/// Looks at the certificate and its key. Gives the fingerprint that the server shows, if it is known.
fn identity(config: &Config, findings: &mut Findings) -> Option<Fingerprint> {
    const CHECK: &str = "certificate";
    let identity = match checks::identity(&config.identity) {
        Ok(identity) => identity,
        Err(error) => {
            let todo = match config.identity {
                IdentitySource::Files { .. } => {
                    "--certificate takes the chain with the server's own certificate first (certbot: fullchain.pem), --key the key that it \
                     was made for (privkey.pem)"
                }
                IdentitySource::Development { .. } => "Do so as the user that runs the server",
            };
            findings.problem(CHECK, error.to_string(), todo);
            return None;
        }
    };
    match (&config.identity, &identity) {
        (IdentitySource::Development { folder: None }, _) => {
            let todo = "For players on other machines keep it: --identity FOLDER, or --data FOLDER; or name a --certificate";
            findings.warning(CHECK, "a development identity, another one with each start", todo);
        }
        (IdentitySource::Development { folder: Some(folder) }, None) => {
            findings.ok(CHECK, "the first start makes a development identity");
            storage::writable(findings, "identity", folder);
        }
        (IdentitySource::Development { folder: Some(folder) }, Some(identity)) => {
            let (path, print) = (folder.join(IDENTITY_FILE), identity.fingerprint());
            findings.ok(CHECK, format!("the development identity in {}: {print}", path.display()));
        }
        (IdentitySource::Files { key, .. }, Some(identity)) => {
            let chain = CertificateChain::of(identity);
            match config.public_host.as_deref().and_then(|host| host.parse::<ServerAddress>().ok()) {
                Some(public) => {
                    certificate::judge(findings, &chain, &public.host, &Trust::System, Source::Files);
                }
                None => findings.warning(
                    CHECK,
                    "its key belongs to it; without --public-host invites have an address, which no authority certifies",
                    "Set --public-host to the name in the certificate",
                ),
            }
            storage::private(findings, "key", key);
        }
        (IdentitySource::Files { .. }, None) => {}
    }
    identity.map(|identity| identity.fingerprint())
}

/// Whether players find the machine by its name.
fn public_host(runtime: &Runtime, config: &Config, findings: &mut Findings) {
    const CHECK: &str = "public host";
    let public = config.public_host.as_deref().and_then(|host| host.parse::<ServerAddress>().ok());
    let Some(ServerAddress { host, port, .. }) = public else { return };
    if host.parse::<IpAddr>().is_ok() {
        return;
    }
    let found = runtime.block_on(async { timeout(PATIENCE, connect::resolve(&host, port)).await });
    match found {
        Ok(Ok(addrs)) => {
            let ips: Vec<String> = addrs.iter().map(|addr| addr.ip().to_string()).collect();
            let there = format!("{host} is {}", ips.join(", "));
            findings.ok(
                CHECK,
                format!("{there}; `parlor doctor --server {host}:{port}` elsewhere sees it as players do"),
            );
        }
        Ok(Err(error)) => findings.warning(
            CHECK,
            error.to_string(),
            format!("Give {host} an A or AAAA record with this machine's public address"),
        ),
        Err(_) => findings.not_looked_at(CHECK, format!("nobody answered for {host}")),
    }
}

/// Whether the machine's clock follows the network's. The kernel knows, and systemd asks it.
fn clock(findings: &mut Findings) {
    const CHECK: &str = "clock";
    let mut command = Command::new("timedatectl");
    command.args(["show", "--property=NTPSynchronized", "--value"]);
    match answer(&mut command).as_deref().map(str::trim) {
        Some("yes") => findings.ok(CHECK, "set by the network"),
        Some("no") => findings.warning(
            CHECK,
            "not set by the network",
            "`timedatectl set-ntp true`, or install chrony: tokens are refused by a clock that is 5 s wrong, and certificates by their dates",
        ),
        _ => findings.not_looked_at(CHECK, "timedatectl is not here, or does not answer"),
    }
}

/// What a program prints, if it ends well and in time.
fn answer(command: &mut Command) -> Option<String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let (mut child, until) = (child.ok()?, Instant::now() + PATIENCE);
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(Some(status)) if status.success() => break,
            _ => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
    // It has ended, and prints a word: no pipe is full.
    std::io::read_to_string(child.stdout.take()?).ok()
}

/// What the operating system allows, and what the machine has.
fn limits(config: &Config, findings: &mut Findings) {
    match checks::file_shortage(config.connections_max) {
        Some((limit, wanted)) => findings.warning(
            "open files",
            format!("{limit} may be open here, and {} connections want {wanted}", config.connections_max),
            format!(
                "`ulimit -n {wanted}` in a shell, LimitNOFILE={wanted} in a unit, --ulimit nofile={wanted} for a container; or a lower \
                 --max-connections"
            ),
        ),
        None if cfg!(target_os = "linux") => {
            findings.ok("open files", format!("enough for {} connections", config.connections_max));
        }
        None => findings.not_looked_at("open files", "the limit is known on Linux alone"),
    }
    match quic::udp_buffers() {
        Ok((granted, wanted)) if granted.iter().any(|bytes| *bytes < wanted) => findings.warning(
            "udp buffers",
            format!("{} and {} KiB, {} are asked for: bursts lose packets", granted[0] >> 10, granted[1] >> 10, wanted >> 10),
            format!("`sysctl -w net.core.rmem_max={wanted} net.core.wmem_max={wanted}`, and keep both in /etc/sysctl.d/parlor.conf"),
        ),
        Ok((_, wanted)) => findings.ok("udp buffers", format!("{} KiB, as asked for", wanted >> 10)),
        Err(error) => findings.not_looked_at("udp buffers", error.to_string()),
    }
    let shards = usize::from(config.shards.get());
    match std::thread::available_parallelism() {
        Ok(cores) if shards > cores.get() => findings.warning(
            "cores",
            format!("{cores} for {shards} shards: they wait for each other"),
            format!("--shards {cores} at most"),
        ),
        Ok(cores) => findings.ok("cores", format!("{cores}, for {shards} of --shards")),
        Err(error) => findings.not_looked_at("cores", error.to_string()),
    }
    let rooms = config.state_memory.all;
    match checks::memory_bytes() {
        Some(bytes) if rooms > bytes / 4 * 3 => findings.warning(
            "memory",
            format!("{} MiB, of which the state of rooms may take {}", bytes >> 20, rooms >> 20),
            format!("--state-memory {} leaves some for all else", bytes >> 21),
        ),
        Some(bytes) => {
            findings.ok("memory", format!("{} MiB, of which rooms may take {}", bytes >> 20, rooms >> 20));
        }
        None => findings.not_looked_at("memory", "this system does not say how much there is"),
    }
}
