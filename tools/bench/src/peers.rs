//! The programs that Parlor is compared with, from `bench/peers`: built separately, found beside this binary
//! or the working directory.

use super::account::CpuTime;
use super::args::Transport;
use super::load::{Manner, Measured, Plan, Spent, Target, Way, evaluate};
use super::machine::Cores;
use super::replicate::{Load, Walk};
use super::server::Process;
use super::tally::{Delivery, percent};
use anyhow::{Context, ensure};
use parlor_transport::discovery::ServerAddress;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The name of the plain relay in rows.
pub(crate) const PLAIN: &str = "plain quinn";

/// What to do where the plain relay is not built.
pub(crate) fn how_to_build_plain() -> String {
    how_to_build(PLAIN)
}

/// What to do where a peer is not built.
pub(crate) fn how_to_build(what: &str) -> String {
    format!("{what}: not built; run `cargo xtask peers` in the source tree")
}

/// The folder of the source tree that this binary was built in, or of the one that the user is in.
fn folder() -> Option<PathBuf> {
    let places = [std::env::current_exe(), std::env::current_dir()];
    let mut above = places.iter().flatten().flat_map(|place| place.ancestors());
    above.find_map(|place| Some(place.join("bench/peers")).filter(|peers| peers.join("Cargo.toml").is_file()))
}

/// What was built there, if it was.
pub(crate) fn built(path: &str) -> Option<PathBuf> {
    folder().map(|folder| folder.join(path)).filter(|path| path.exists())
}

/// The name of Colyseus in rows.
pub(crate) const COLYSEUS: &str = "colyseus";

/// What to do where it is not installed.
pub(crate) fn how_to_build_colyseus() -> String {
    how_to_build(COLYSEUS)
}

/// A relay that passes datagrams on and knows nothing else.
#[derive(Debug)]
pub(crate) struct PlainRelay {
    process: Process,
    way: Way,
}

impl PlainRelay {
    /// Starts it on the server's core; `None` where it is not built.
    ///
    /// # Errors
    /// It could not be started.
    pub(crate) fn start(cores: Cores) -> anyhow::Result<Option<Self>> {
        let Some(program) = built("target/release/quinn-relay") else { return Ok(None) };
        let mut process = Process::start(cores, Command::new(program))?;
        let address =
            process.first("listens on ").context("the plain relay does not say where it listens")?;
        let address: ServerAddress =
            address.parse().context("the plain relay listens at an unknown place")?;
        let fingerprint = address.fingerprint.context("the plain relay does not say its fingerprint")?;
        let addr: SocketAddr = (Ipv4Addr::LOCALHOST, address.port).into();
        Ok(Some(PlainRelay { process, way: Way::new(Transport::Quic, addr, fingerprint) }))
    }

    /// How it is measured.
    pub(crate) fn target(&self) -> Target {
        Target { way: self.way.clone(), manner: Manner::ByDatagram, pid: self.process.pid() }
    }
}

/// Colyseus, with a generator of its own, because it has a protocol of its own.
#[derive(Debug)]
pub(crate) struct Colyseus {
    process: Process,
    port: u16,
    folder: PathBuf,
    node: PathBuf,
}

impl Colyseus {
    /// Starts it on the server's core; `None` where it is not installed.
    ///
    /// # Errors
    /// It could not be started.
    pub(crate) fn start(cores: Cores) -> anyhow::Result<Option<Self>> {
        let Some(modules) = built("colyseus/node_modules") else { return Ok(None) };
        let folder = modules.parent().context("what is in a folder has one")?.to_owned();
        let node = node(&modules)?;
        let mut command = Command::new(&node);
        command.current_dir(&folder).arg("server.mjs");
        let mut process = Process::start(cores, command)?;
        let port = process.first("listens on ").context("colyseus does not say where it listens")?;
        Ok(Some(Colyseus { process, port: port.parse()?, folder, node }))
    }

    /// Measures a load. Its generator runs on the generator's core and counts as ours do.
    ///
    /// # Errors
    /// What kept it from measuring.
    pub(crate) fn measure(&self, plan: &Plan) -> anyhow::Result<Measured> {
        let drawn = [("--seed", plan.seed.to_string()), ("--pace", plan.pace.as_str().to_owned())];
        self.load::<Loaded>("load.mjs", plan.rooms, plan.span, &drawn).map(|said| said.measured())
    }

    /// Measures rooms of players, as the bench `capacity` has them.
    ///
    /// # Errors
    /// What kept it from measuring.
    pub(crate) fn play(&self, rooms: u32, span: Duration) -> anyhow::Result<Played> {
        self.load("capacity.mjs", rooms, span, &[])
    }

    /// Runs a load on the generator's core, and reads what it prints.
    fn load<T: DeserializeOwned>(
        &self,
        script: &str,
        rooms: u32,
        span: Duration,
        more: &[(&str, String)],
    ) -> anyhow::Result<T> {
        let mut command = Command::new(&self.node);
        command.current_dir(&self.folder).arg(script).stdin(Stdio::null()).stderr(Stdio::inherit());
        let options = [
            ("--port", self.port.to_string()),
            ("--pid", self.process.pid().to_string()),
            ("--rooms", rooms.to_string()),
            ("--seconds", span.as_secs_f64().to_string()),
        ];
        for (option, value) in options.iter().chain(more) {
            command.arg(option).arg(value);
        }
        let output = command.output().context("node cannot be started")?;
        ensure!(output.status.success(), "the load on colyseus failed: its words stand above");
        serde_json::from_slice(&output.stdout).context("the load on colyseus says nothing")
    }
}

/// The first version of Node that Colyseus runs on.
const NODE_MIN: u32 = 22;

/// The Node among the modules of Colyseus, or the one of this machine.
fn node(modules: &Path) -> anyhow::Result<PathBuf> {
    let own = modules.join(".bin/node");
    let node = if own.exists() { own } else { PathBuf::from("node") };
    let output = Command::new(&node).arg("--version").output();
    let output = output.with_context(|| format!("{} cannot be started", node.display()))?;
    is_new_enough(String::from_utf8_lossy(&output.stdout).trim())?;
    Ok(node)
}

fn is_new_enough(version: &str) -> anyhow::Result<()> {
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= NODE_MIN),
        "Colyseus needs Node {NODE_MIN} or newer, and this one says {version:?}: run `cargo xtask peers` in the \
         source tree, which installs one for it"
    );
    Ok(())
}

/// Measures a library that shares walkers. Its server and its clients are made for this and count as ours do.
///
/// # Errors
/// What kept it from measuring.
pub(crate) fn walkers(cores: Cores, binary: &str, walk: &Walk) -> anyhow::Result<Load> {
    let program = built(&format!("target/release/{binary}")).with_context(|| how_to_build(binary))?;
    let setting = [
        ("--hz", walk.hz.to_string()),
        ("--entities", walk.entities.to_string()),
        ("--moving", walk.moving_percent.to_string()),
        ("--clients", walk.clients.to_string()),
        ("--apart-ms", walk.apart.as_millis().to_string()),
        ("--seconds", walk.span.as_secs_f64().to_string()),
        ("--seed", walk.seed.to_string()),
    ];
    let command = |role: &str| {
        let mut command = Command::new(&program);
        command.arg(role);
        setting.iter().for_each(|(option, value)| {
            command.arg(option).arg(value);
        });
        command
    };
    let mut process = Process::start(cores, command("server"))?;
    let port =
        process.first("listens on ").with_context(|| format!("{binary} does not say where it listens"))?;
    let mut load = command("load");
    load.args(["--port", &port, "--pid", &process.pid().to_string()]);
    load.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = load.output().with_context(|| format!("{binary} cannot be started"))?;
    ensure!(output.status.success(), "the load on {binary} failed: its words stand above");
    serde_json::from_slice(&output.stdout).with_context(|| format!("the load on {binary} says nothing"))
}

/// What `load.mjs` prints.
#[derive(Debug, Deserialize)]
struct Loaded {
    sent: u64,
    expected: u64,
    delivered: u64,
    latency_us_p50: Option<u32>,
    latency_us_p99: Option<u32>,
    #[serde(flatten)]
    account: Account,
}

/// What `capacity.mjs` prints.
#[derive(Debug, Deserialize)]
pub(crate) struct Played {
    pub states: Counted,
    pub chat: Counted,
    pub state_age_us_p50: Option<u32>,
    pub state_age_us_p99: Option<u32>,
    pub members_lost: usize,
    #[serde(flatten)]
    account: Account,
}

/// How many came, of those that should have.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Counted {
    pub got: u64,
    pub of: u64,
}

/// The processor time of both ends, as a load on Colyseus prints it.
#[derive(Debug, Deserialize)]
struct Account {
    server_cpu_us: u64,
    server_waited_us: u64,
    generator_cpu_us: u64,
    generator_waited_us: u64,
    took_us: u64,
}

impl Account {
    fn spent(&self) -> Spent {
        let us = Duration::from_micros;
        let server = CpuTime { ran: us(self.server_cpu_us), waited: us(self.server_waited_us) };
        let generator = CpuTime { ran: us(self.generator_cpu_us), waited: us(self.generator_waited_us) };
        Spent { server, generator, took: us(self.took_us) }
    }
}

impl Played {
    pub(crate) fn spent(&self) -> Spent {
        self.account.spent()
    }
}

impl Loaded {
    fn measured(&self) -> Measured {
        let delivery = Delivery {
            messages_sent: self.sent,
            messages_expected: self.expected,
            messages_delivered: self.delivered,
            delivered_percent: percent(self.delivered, self.expected),
            latency_us_p50: self.latency_us_p50,
            latency_us_p99: self.latency_us_p99,
        };
        evaluate(delivery, &[], self.account.spent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loads_on_colyseus_print_is_understood() {
        let account = r#""server_cpu_us":500,"server_waited_us":1,"generator_cpu_us":250,"generator_waited_us":2,"took_us":1000"#;
        let said = format!(
            r#"{{"states":{{"got":7,"of":8}},"chat":{{"got":0,"of":0}},"state_age_us_p50":1500,
            "state_age_us_p99":null,"members_lost":1,{account}}}"#
        );
        let played: Played = serde_json::from_str(&said).expect("capacity.mjs prints it");
        let (usage, Counted { got, of }) = (played.spent().usage(), played.states);
        assert_eq!((got, of, played.state_age_us_p50, played.state_age_us_p99), (7, 8, Some(1_500), None));
        assert_eq!((usage.server_cpu_percent, usage.generator_cpu_percent), (50.0, 25.0));
        assert!(serde_json::from_str::<Played>(&said.replace("took_us", "took")).is_err());
        let said = format!(
            r#"{{"sent":1,"expected":7,"delivered":7,"latency_us_p50":90,"latency_us_p99":90,{account}}}"#
        );
        let loaded: Loaded = serde_json::from_str(&said).expect("load.mjs prints it");
        assert_eq!(loaded.measured().delivery.delivered_percent, Some(100.0));
    }

    #[test]
    fn a_node_that_is_too_old_is_told_in_a_sentence() {
        assert!(is_new_enough("v22.0.1").is_ok() && is_new_enough("v24.1.0").is_ok());
        for old in ["v20.20.2", "v8.0.0", ""] {
            let error = is_new_enough(old).expect_err("Colyseus does not run on it").to_string();
            assert!(
                error.contains("Node 22") && error.contains(old) && error.contains("xtask peers"),
                "{error}"
            );
        }
    }
}
