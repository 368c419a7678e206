//! The server under test: the binary `parlor` beside this one, as a process on its own core.

use super::machine::Cores;
use anyhow::{Context, bail};
use data_encoding::BASE64URL_NOPAD;
use parlor_transport::Fingerprint;
use parlor_transport::discovery::{Registry, ServerAddress};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Servers that this process has started. Each has folders of its own.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// How long a server may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a server is started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings<'a> {
    /// How long a flush may wait for more messages.
    pub flush_quantum_ms: u16,
    /// Connections for each transport; the server's own default if `None`.
    pub connections_max: Option<usize>,
    /// Whether it has a store, and with it accounts and turn rooms.
    pub has_store: bool,
    /// The public key of the issuer of tokens; members without a token are admitted, too.
    pub admission_key: Option<&'a Path>,
    /// More options of `parlor serve`.
    pub more: &'a [String],
}

/// What the server counted since it began, as `/stats` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Stats {
    /// Connections that are known.
    pub connections: u64,
    /// Messages handed to receivers, each receiver counted.
    pub messages_relayed: u64,
    /// Packets given to connections.
    pub packets_sent: u64,
    /// Flushes that waited for more messages.
    pub flush_waits: u64,
    /// How long they waited in all.
    pub flush_wait_us: u64,
}

/// A process under test, which ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    address: ServerAddress,
    /// The registry of this server, so that no game of this user finds it.
    registry: PathBuf,
    /// What it keeps, if it keeps anything.
    data: PathBuf,
}

impl Server {
    /// Starts `parlor serve` on a free port of this machine's loopback address.
    ///
    /// # Errors
    /// It could not be started, or ended at once; its own words are on standard error then.
    pub(crate) fn start(cores: Cores, settings: &Settings<'_>) -> anyhow::Result<Self> {
        let binary = parlor()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let registry = std::env::temp_dir().join(format!("parlor-bench-{}-{number}", std::process::id()));
        let data = registry.with_extension("data");
        let mut command = Command::new(binary);
        // What is set for other servers must not reach this one.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PARLOR_"))
        {
            command.env_remove(name);
        }
        command.env("PARLOR_REGISTRY", &registry);
        command.args(["serve", "--listen", "127.0.0.1", "--port", "0", "--log", "error"]);
        command.args(["--flush-quantum", &settings.flush_quantum_ms.to_string()]);
        if let Some(connections) = settings.connections_max {
            command.args(["--max-connections", &connections.to_string()]);
        }
        if settings.has_store {
            command.arg("--data").arg(&data);
        }
        if let Some(key) = settings.admission_key {
            command.arg("--admission-key").arg(key).args(["--admission", "optional"]);
        }
        command.args(settings.more);
        let mut process = Process::start(cores, command)?;
        let address =
            process.first("PARLOR_SERVER=").context("parlor serve does not say where it listens")?;
        let address = address.parse().context("parlor serve says where it listens in an unknown way")?;
        Ok(Server { process, address, registry, data })
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.address.port).into()
    }

    /// By what it is known.
    ///
    /// # Errors
    /// It did not say.
    pub(crate) fn fingerprint(&self) -> anyhow::Result<Fingerprint> {
        self.address.fingerprint.context("parlor serve does not say its fingerprint")
    }

    /// By what browsers know it.
    ///
    /// # Errors
    /// It does not answer, or has no certificate of its own for browsers.
    pub(crate) async fn web_fingerprint(&self) -> anyhow::Result<Fingerprint> {
        let answer = timeout(PATIENCE, get(self.addr(), "/web.json"));
        parse_web(&answer.await.context("the server does not answer GET /web.json")??)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills its process.
    pub(crate) fn kill(&mut self) {
        self.process.end();
    }

    /// Where its rooms are entered, so that they are not among the user's.
    pub(crate) fn registry(&self) -> Registry {
        Registry::at(&self.registry)
    }

    /// The folder of its store.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What it counted.
    ///
    /// # Errors
    /// It does not answer, or has no `/stats`.
    pub(crate) async fn stats(&self) -> anyhow::Result<Stats> {
        let answer = timeout(PATIENCE, get(self.addr(), "/stats"));
        let answer = answer.await.context("the server does not answer GET /stats")??;
        parse_stats(&answer)
    }
}

/// The binary `parlor` that was built beside this one.
fn parlor() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this binary's own path is not known")?;
    let parlor = own.with_file_name("parlor");
    if !parlor.is_file() {
        let how = "`cargo build --release -p parlor-cli -p parlor-bench` builds both";
        bail!("there is no {}, the server that is measured: {how}", parlor.display());
    }
    Ok(parlor)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.end();
        // A server that is killed leaves its entry behind.
        let _ = std::fs::remove_dir_all(&self.registry);
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// A process on the server's core, which ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
    what: String,
}

impl Process {
    /// Starts a process on the server's core.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn start(cores: Cores, mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let what = command.get_program().to_string_lossy().into_owned();
        let started =
            cores.on_server_cores(|| command.spawn().with_context(|| format!("{what} cannot be started")));
        let mut child = started?;
        let said = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Ok(Process { child, said, what })
    }

    /// What stands behind `mark` in the first line that has it.
    ///
    /// # Errors
    /// The process ended before, or said nothing of the kind.
    pub(crate) fn first(&mut self, mark: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.said.read_line(&mut line).context("its output cannot be read")?;
            if read == 0 {
                bail!("{} ended without saying {mark:?}", self.what);
            }
            if let Some((_, rest)) = line.split_once(mark) {
                return Ok(rest.trim_end().to_owned());
            }
        }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The answer to a request over plain HTTP, head and body.
async fn get(addr: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(addr).await.context("the server takes no HTTP")?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let exchanged = async {
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut answer).await
    };
    exchanged.await.with_context(|| format!("GET {path} got no answer"))?;
    Ok(answer)
}

fn parse_stats(answer: &str) -> anyhow::Result<Stats> {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        bail!(
            "the server answers GET /stats with status {status:?}: it must be one that counts for this machine"
        );
    }
    let (_, body) = answer.split_once("\r\n\r\n").context("the answer to GET /stats has no body")?;
    serde_json::from_str(body).context("the answer to GET /stats lacks what a bench needs")
}

/// The hash of the certificate in use.
fn parse_web(answer: &str) -> anyhow::Result<Fingerprint> {
    let lacks = "the answer to GET /web.json has no hash of a certificate";
    let (_, body) = answer.split_once("\r\n\r\n").context(lacks)?;
    let said: serde_json::Value = serde_json::from_str(body).context(lacks)?;
    let hash = said["webtransport"]["hashes"][0].as_str().context(lacks)?;
    let bytes = BASE64URL_NOPAD.decode(hash.as_bytes()).context(lacks)?;
    Ok(Fingerprint(bytes.try_into().ok().context(lacks)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_their_absence_is_an_error() {
        let body = r#"{"rooms":1,"connections":8,"messages_relayed":70,"packets_sent":35,"flush_waits":5,
            "flush_wait_us":900,"something_else":1}"#;
        let stats = parse_stats(&format!("HTTP/1.1 200 OK\r\na: b\r\n\r\n{body}")).expect("it is complete");
        assert_eq!((stats.messages_relayed, stats.packets_sent, stats.flush_wait_us), (70, 35, 900));
        let error =
            parse_stats("HTTP/1.1 404 Not Found\r\n\r\nThere is nothing here.").expect_err("no stats");
        assert!(error.to_string().contains("404"), "{error}");
        assert!(parse_stats("HTTP/1.1 200 OK\r\n\r\n{\"rooms\":1}").is_err());
    }

    #[test]
    fn the_hash_of_the_certificate_in_use_comes_first() {
        let (hash, next) = ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "A".repeat(43));
        let body = format!(r#"{{"webtransport":{{"port":1,"hashes":["{hash}","{next}"]}}}}"#);
        let fingerprint = parse_web(&format!("HTTP/1.1 200 OK\r\n\r\n{body}")).expect("it is complete");
        assert_eq!(fingerprint.0.map(usize::from), std::array::from_fn(|at| at));
        let none = r#"{"webtransport":{"port":1,"hashes":[]}}"#;
        assert!(parse_web(&format!("HTTP/1.1 200 OK\r\n\r\n{none}")).is_err());
        assert!(parse_web("HTTP/1.1 404 Not Found\r\n\r\nThere is nothing here.").is_err());
    }

    #[test]
    fn a_process_is_heard_until_its_end() {
        let cores = Cores::take().expect("there is a core");
        let mut command = Command::new("printf");
        command.arg("first line\n  port=70 \nlast");
        let mut process = Process::start(cores, command).expect("every Linux has it");
        assert_eq!(process.first("port=").expect("it says so"), "70");
        let error = process.first("port=").expect_err("it says so once");
        assert!(error.to_string().contains("printf ended"), "{error}");
    }
}
