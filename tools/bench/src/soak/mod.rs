//! Everything at once, for long: rooms, matches, turn rooms, services and slow readers from many honest addresses, and one address
//! that attacks in every second phase. The server's resources must level off, and honest clients must hardly notice the attacker.

mod attacker;
mod desks;
mod player;
mod record;
mod report;
mod rooms;
mod slow;
mod stage;
mod watch;

use super::account::{CpuTime, cpu_time};
use super::args::{AttackerArg, SoakArgs};
use super::machine::{self, Cores};
use super::server::{Server, Settings};
use crate::output::print;
use anyhow::Context;
use attacker::Attacker;
use parlor_terminal::run_until::stop_flag;
use record::{Attack, Record};
use report::{Ended, Summary, minute};
use serde_json::json;
use stage::{OperatorKey, Stage};
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use watch::Look;

/// Numbers of honest clients, for one measure of load.
const ROOMS: u32 = 3;
const MATCHES: u32 = 2;
const DESKS: u32 = 4;
const ASKERS: u32 = 4;
const SLOW_READERS: u32 = 2;
/// Sockets and files of both ends together.
const OPEN_FILES: u64 = 4_096;
/// Bound of the store: more than the honest clients need, less than the quotas of the attacker's accounts come to.
const DATA_MAX_MIB: u64 = 256;
/// Connections that the server takes.
const CONNECTIONS_MAX: usize = 1_024;
/// First account numbers of players that ask the services, and of players whose matches are kept.
const FIRST_ASKER: usize = 1_000;
const FIRST_KEEPER: usize = 2_000;
/// Duration of a phase with the attacker, and of one without it.
const PHASE: Duration = Duration::from_secs(90);
/// Phases of a short run.
const PHASES_MIN: u32 = 4;
/// Time in which a phase settles, at most, and its part of the phase, at most.
const SETTLE_MAX: Duration = Duration::from_secs(5);
const SETTLE_PART: u32 = 4;
/// Interval at which the server's resources are read, and at which they are printed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Returns the options of `parlor serve` beyond those of every bench, and the store's bound in bytes.
fn server_options(operator_key: &OperatorKey) -> (Vec<String>, u64) {
    let operator_key = operator_key.public().display().to_string();
    let options =
        ["--limit-local", "--operator-key", &operator_key, "--data-max", &format!("{DATA_MAX_MIB}M")];
    (options.map(str::to_owned).into(), DATA_MAX_MIB << 20)
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring, or which criteria were missed.
pub(crate) async fn run(cores: Cores, args: &SoakArgs) -> anyhow::Result<()> {
    let stop = stop_flag()?;
    machine::allow_open_files(OPEN_FILES)?;
    let cores = cores.whole_for_server();
    let key = Rc::new(OperatorKey::new()?);
    let (more, data_max_bytes) = server_options(&key);
    let settings = Settings {
        has_store: true,
        connections_max: Some(CONNECTIONS_MAX),
        more: &more,
        ..Settings::default()
    };
    let server = Server::start(cores, &settings)?;
    let record = Rc::new(Record::new(args.common.seed));
    let stage = Rc::new(Stage::new(Rc::clone(&record), &server, key)?);
    let honest = begin(&stage, args.load);
    let attacker = Attacker::start(server.addr(), server.fingerprint()?)?;
    let span = Duration::from_secs_f64(args.minutes * 60.0);
    let mut soak = Soak::new(&record, &server, &attacker, args.attacker, span)?;
    let mut ended_early = false;
    while soak.began.elapsed() < span {
        if stop.load(Ordering::Relaxed) {
            ended_early = true;
            break;
        }
        if let Err(gone) = soak.look() {
            // Ctrl-C at a terminal ends both.
            ended_early = stop.load(Ordering::Relaxed);
            if ended_early {
                break;
            }
            return Err(gone);
        }
        sleep(LOOK_EVERY.min(span / PHASES_MIN / SETTLE_PART)).await;
    }
    let ended = soak.end(ended_early, data_max_bytes)?;
    drop(honest);
    drop(attacker);
    tell_end(cores, args, &more, &Summary::new(&record, ended))
}

/// Starts all honest clients. They run until the returned set is dropped.
fn begin(stage: &Rc<Stage>, load: u32) -> JoinSet<()> {
    let mut honest = JoinSet::new();
    for _ in 0..load * ROOMS {
        honest.spawn_local(rooms::rooms(Rc::clone(stage)));
    }
    for account in (FIRST_KEEPER..).take((load * MATCHES) as usize) {
        honest.spawn_local(rooms::matches(Rc::clone(stage), account));
    }
    for number in (0..).take((load * DESKS) as usize) {
        honest.spawn_local(desks::desk(Rc::clone(stage), number));
    }
    for number in (FIRST_ASKER..).take((load * ASKERS) as usize) {
        honest.spawn_local(desks::asker(Rc::clone(stage), number));
    }
    for number in 0..load * SLOW_READERS {
        honest.spawn_local(slow::reader(Rc::clone(stage), number % 2 == 0));
    }
    honest
}

/// A run.
struct Soak<'a> {
    record: &'a Record,
    server: &'a Server,
    attacker: &'a Attacker,
    wanted: AttackerArg,
    phase: Duration,
    began: Instant,
    looks: Vec<Look>,
    told: Instant,
    first_cpu: [CpuTime; 2],
    /// The server's, at the last minute's report.
    told_cpu: CpuTime,
}

impl<'a> Soak<'a> {
    fn new(
        record: &'a Record,
        server: &'a Server,
        attacker: &'a Attacker,
        wanted: AttackerArg,
        span: Duration,
    ) -> anyhow::Result<Self> {
        let (began, first) = (Instant::now(), cpu_time(server.pid())?);
        let first_cpu = [first, cpu_time(std::process::id())?];
        let phase = PHASE.min(span / PHASES_MIN);
        let looks = Vec::new();
        Ok(Soak {
            record,
            server,
            attacker,
            wanted,
            phase,
            began,
            looks,
            told: began,
            first_cpu,
            told_cpu: first,
        })
    }

    /// Switches the attacker on or off when it is time, and reads the server's resources.
    fn look(&mut self) -> anyhow::Result<()> {
        let at = self.began.elapsed();
        let number = at.as_nanos() / self.phase.as_nanos().max(1);
        let attack = match self.wanted {
            AttackerArg::On => Attack::On,
            AttackerArg::Off => Attack::Off,
            AttackerArg::Both if number % 2 == 1 => Attack::On,
            AttackerArg::Both => Attack::Off,
        };
        let into_phase = Duration::from_nanos_u128(at.as_nanos() % self.phase.as_nanos().max(1));
        let settle = SETTLE_MAX.min(self.phase / SETTLE_PART);
        // One phase without an end settles once.
        let settled = into_phase >= settle || (self.wanted != AttackerArg::Both && number > 0);
        self.record.enter(attack, self.attacker.way(), settled);
        self.attacker.set(attack == Attack::On);
        let look = Look::at(at.as_secs_f64(), attack, self.server).context("the server is gone")?;
        self.looks.push(look);
        if self.told.elapsed() >= TELL_EVERY {
            self.tell(&look)?;
        }
        Ok(())
    }

    fn tell(&mut self, look: &Look) -> anyhow::Result<()> {
        let took = self.told.elapsed();
        let cpu = cpu_time(self.server.pid())?;
        let percent = percent_of_core(cpu.since(self.told_cpu), took);
        (self.told, self.told_cpu) = (Instant::now(), cpu);
        let (p99, errors) = self.record.take_minute();
        // There may be no listener.
        let _ = writeln!(std::io::stderr(), "{}", minute(look, p99, errors, percent).render());
        Ok(())
    }

    fn end(self, ended_early: bool, data_max_bytes: u64) -> anyhow::Result<Ended> {
        let took = self.began.elapsed();
        let own = cpu_time(std::process::id())?;
        // A server that was interrupted as well may be gone.
        let server = cpu_time(self.server.pid()).unwrap_or(self.told_cpu);
        Ok(Ended {
            looks: self.looks,
            attacker: self.attacker.outcomes(),
            seconds: took.as_secs_f64(),
            ended_early,
            server_cpu_percent: percent_of_core(server.since(self.first_cpu[0]), took),
            generator_cpu_percent: percent_of_core(own.since(self.first_cpu[1]), took),
            data_max_bytes,
        })
    }
}

fn percent_of_core(cpu: CpuTime, took: Duration) -> f64 {
    cpu.ran.as_secs_f64() * 100.0 / took.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Prints the summary, and fails if a criterion was missed or the run was interrupted.
fn tell_end(cores: Cores, args: &SoakArgs, more: &[String], summary: &Summary) -> anyhow::Result<()> {
    let setting = json!({
        "cores": cores, "seed": args.common.seed, "load": args.load, "minutes": args.minutes,
        "server_options": more, "ratio_max": report::RATIO_MAX,
    });
    let rows = std::slice::from_ref(summary);
    print("soak", args.common.json, &setting, rows, &summary.notes(), &summary.table())?;
    summary.judge()
}
