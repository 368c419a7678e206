//! Joins a core can serve: each says hello, takes a seat by a room's code, and leaves. *Cold* makes a new
//! connection with a whole handshake each time. *Warm* uses a link in memory to a server of this process.

use super::args::{JoinArgs, Transport};
use super::generator::Crowd;
use super::http::Http;
use super::load::{Manner, Spent, Target, Usage, Way, fill};
use super::machine::Cores;
use super::member::{APP, Wish};
use super::server::{Server, Settings};
use super::table::{Table, figure};
use super::tally::{generator_too_slow, percentile};
use crate::output::{print, tell};
use anyhow::Context;
use parlor_proto::RoomCode;
use parlor_server::admission::{PermitFor, Policy, SigningKey, TokenRequest};
use parlor_server::{Config, Server as OwnServer};
use parlor_services::OnlineConfig;
use serde::Serialize;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How long one joins after the other, to find the rate, and to warm up.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// Members of each room between joins: the host.
const HOSTS: u16 = 1;

/// Tickets of a row.
const TICKETS_MAX: u32 = 60_000;

/// Players who ask for tickets at the same time.
const ASKING: usize = 8;

/// The credential of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Admission {
    /// With nothing.
    Anonymous,
    /// With a ticket, good once, that the server gave out itself.
    Ticket,
    /// With a token of another service, good once, whose signature the server verifies.
    Token,
}

impl Admission {
    const ALL: [Admission; 3] = [Admission::Anonymous, Admission::Ticket, Admission::Token];

    fn as_str(self) -> &'static str {
        match self {
            Admission::Anonymous => "anonymous",
            Admission::Ticket => "ticket",
            Admission::Token => "token",
        }
    }
}

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    transport: Transport,
    admission: Admission,
    joins_asked_per_second: u32,
    joins: u32,
    joins_failed: u32,
    server_cpu_us_per_join: Option<f64>,
    joins_per_second_and_core: Option<f64>,
    join_us_p50: Option<u32>,
    join_us_p99: Option<u32>,
    #[serde(flatten)]
    usage: Usage,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &JoinArgs) -> anyhow::Result<()> {
    let issuer = Issuer::new()?;
    let mut rows = Vec::new();
    for transport in args.via.transports() {
        for admission in Admission::ALL {
            rows.push(cold(cores, *transport, admission, &issuer, args).await?);
        }
    }
    for admission in Admission::ALL {
        rows.push(warm(cores, admission, &issuer, args).await?);
    }
    let setting = json!({ "cores": cores, "rooms": args.rooms, "seconds": args.seconds });
    print("join", args.common.json, &setting, &rows, &[cores.note()], &table(&rows))
}

async fn cold(
    cores: Cores,
    transport: Transport,
    admission: Admission,
    issuer: &Issuer,
    args: &JoinArgs,
) -> anyhow::Result<Row> {
    tell(&format!("joins over {transport}, {}", admission.as_str()));
    let settings = Settings { admission_key: Some(&issuer.public), has_store: true, ..Settings::default() };
    let server = Server::start(cores, &settings)?;
    let way = Target::server(&server, transport).await?.way;
    row((way, server.addr()), (transport, admission), issuer, args, || Spent::so_far(server.pid())).await
}

async fn warm(cores: Cores, admission: Admission, issuer: &Issuer, args: &JoinArgs) -> anyhow::Result<Row> {
    tell(&format!("joins in memory, {}", admission.as_str()));
    let data = Folder::new()?;
    let server = cores.on_server_cores(|| start_here(&issuer.public, &data.0))?;
    let fingerprint = server.fingerprint().context("a development server has a fingerprint")?;
    let addr: SocketAddr = (Ipv4Addr::LOCALHOST, server.local_port()).into();
    let way = Way::inside(server.inside(), addr, fingerprint);
    let row = row((way, addr), (Transport::Memory, admission), issuer, args, Spent::so_far_inside).await;
    // The store must be closed before its folder goes: the next row has a store at the same path.
    server.shutdown().await;
    row
}

/// A server of this process. Its threads stay on the caller's core.
fn start_here(key: &Path, data: &Path) -> anyhow::Result<OwnServer> {
    let admission = Some(Policy { key: Some(key.to_owned()), is_required: false });
    let online = OnlineConfig::new(data.join("parlor.db").display().to_string());
    let config = Config { listen: Ipv4Addr::LOCALHOST.into(), port: 0, admission, ..Config::default() };
    // This thread is inside of a runtime, where no other one may wait.
    let starting = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        anyhow::Ok(runtime.block_on(parlor_services::start(config, online))?)
    });
    starting.join().map_err(|_| anyhow::anyhow!("starting a server panicked"))?
}

async fn row(
    (way, addr): (Way, SocketAddr),
    (transport, admission): (Transport, Admission),
    issuer: &Issuer,
    args: &JoinArgs,
    spent: impl Fn() -> anyhow::Result<Spent>,
) -> anyhow::Result<Row> {
    let crowd = Crowd::new()?;
    let codes = fill(&crowd, &way, Manner::ByCode, 0..args.rooms, HOSTS).await?;
    let pass = if admission == Admission::Token { Pass::Signed(Rc::clone(&issuer.key)) } else { Pass::None };
    let mut joiner = Joiner { crowd: crowd.clone(), way, codes, pass };
    let found = joiner.join_in_turn(SEARCH_TIME).await?;
    let rate = args.rate.unwrap_or(found);
    let span = span(admission, rate, args.seconds);
    if admission == Admission::Ticket {
        let joins = usize::try_from(span.as_nanos() * u128::from(rate) / 1_000_000_000)? + 1;
        joiner.pass = Pass::GivenOut(tickets(addr, &joiner.codes, joins).await?.into());
    }
    let (began, earlier) = (Instant::now(), spent()?);
    let mut joined = joiner.join_at_rate(rate, span).await?;
    let spent = spent()?.since(earlier, began.elapsed());
    crowd.leave_all();
    Ok(evaluate(transport, admission, rate, &mut joined, spent))
}

/// So many tickets, for one room after the other, as a player with an account asks for them.
async fn tickets(addr: SocketAddr, codes: &[RoomCode], count: usize) -> anyhow::Result<Vec<String>> {
    let mut asking = JoinSet::new();
    for first in 0..ASKING {
        let rooms: Vec<(usize, RoomCode)> =
            (first..count).step_by(ASKING).map(|number| (number, codes[number % codes.len()])).collect();
        asking.spawn_local(async move {
            let mut http = Http::new(addr);
            let player = http.sign_in(first).await?;
            let mut given = Vec::new();
            for (number, room) in rooms {
                let answer =
                    http.post("/admission", &player.token, &json!({ "room": room.as_str() })).await?;
                given.push((number, answer["token"].as_str().context("a ticket is a text")?.to_owned()));
            }
            anyhow::Ok(given)
        });
    }
    let mut tickets = vec![String::new(); count];
    while let Some(given) = asking.join_next().await {
        for (number, ticket) in given?? {
            tickets[number] = ticket;
        }
    }
    Ok(tickets)
}

/// A folder for a store, until this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("parlor-bench-{}.join", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The rest is an unused store.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How long a row is measured: tickets are asked for before it begins, and must still be good when it ends.
fn span(admission: Admission, rate: u32, asked_s: f64) -> Duration {
    let asked = Duration::from_secs_f64(asked_s);
    match admission {
        Admission::Anonymous | Admission::Token => asked,
        Admission::Ticket => {
            asked.min(Duration::from_secs_f64(f64::from(TICKETS_MAX) / f64::from(rate.max(1))))
        }
    }
}

/// Gives out tokens.
struct Issuer {
    key: Rc<SigningKey>,
    /// The file with the public key, for servers.
    public: PathBuf,
}

impl Issuer {
    fn new() -> anyhow::Result<Self> {
        let key = SigningKey::generate().context("there is no key for tokens")?;
        let public = std::env::temp_dir().join(format!("parlor-bench-{}.pub", std::process::id()));
        std::fs::write(&public, key.public_pem())
            .with_context(|| format!("{} cannot be written", public.display()))?;
        Ok(Issuer { key: Rc::new(key), public })
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        // The rest is an unused public key.
        let _ = std::fs::remove_file(&self.public);
    }
}

/// Rooms that can be joined.
#[derive(Clone)]
struct Joiner {
    crowd: Crowd,
    way: Way,
    codes: Vec<RoomCode>,
    pass: Pass,
}

/// The credentials of the joining members.
#[derive(Clone)]
enum Pass {
    None,
    /// A token that is made as it is needed.
    Signed(Rc<SigningKey>),
    /// That of its number.
    GivenOut(Rc<[String]>),
}

/// What came of many joins.
#[derive(Debug, Default)]
struct Joined {
    took_us: Vec<u32>,
    failures: Vec<String>,
}

impl Joiner {
    /// Joins a room and leaves it, and gives how long the joining took, in µs.
    async fn join(&self, number: usize) -> anyhow::Result<u32> {
        let code = self.codes[number % self.codes.len()];
        let token = match &self.pass {
            Pass::None => None,
            Pass::Signed(key) => {
                let what = PermitFor::Join(code);
                Some(key.token(&TokenRequest { user: "somebody", app: APP, environment: "", what })?)
            }
            Pass::GivenOut(tickets) => tickets.get(number).cloned(),
        };
        let wish = Wish::join(0, HOSTS + 1, code).with_token(token);
        let began = Instant::now();
        let link = self.way.connect().await?;
        let seated = self.crowd.seat(link, wish).await?;
        let took = began.elapsed();
        self.crowd.leave(seated.who);
        Ok(u32::try_from(took.as_micros()).unwrap_or(u32::MAX))
    }

    /// Joins one after the other, and gives how many did in a second.
    async fn join_in_turn(&self, span: Duration) -> anyhow::Result<u32> {
        let began = Instant::now();
        let mut joins = 0_u32;
        while began.elapsed() < span {
            self.join(usize::try_from(joins)?).await?;
            joins += 1;
        }
        let each = began.elapsed() / joins.max(1);
        let rate = Duration::from_secs(1).as_nanos() / each.as_nanos().max(1);
        Ok(u32::try_from(rate)?.max(1))
    }

    /// Lets so many join each second, whatever came of those before, and waits for all of them.
    async fn join_at_rate(&self, rate: u32, span: Duration) -> anyhow::Result<Joined> {
        let mut joining: JoinSet<anyhow::Result<u32>> = JoinSet::new();
        let began = Instant::now();
        let mut joined = Joined::default();
        for number in 0.. {
            let due = Duration::from_secs(1) * number / rate;
            if due >= span {
                break;
            }
            sleep_until(began + due).await;
            let joiner = self.clone();
            let number = usize::try_from(number)?;
            joining.spawn_local(async move { joiner.join(number).await });
            while let Some(done) = joining.try_join_next() {
                joined.note(done.context("a join failed")?);
            }
        }
        while let Some(done) = joining.join_next().await {
            joined.note(done.context("a join failed")?);
        }
        Ok(joined)
    }
}

impl Joined {
    fn note(&mut self, join: anyhow::Result<u32>) {
        match join {
            Ok(took_us) => self.took_us.push(took_us),
            Err(why) => self.failures.push(format!("{why:#}")),
        }
    }
}

fn evaluate(transport: Transport, admission: Admission, rate: u32, joined: &mut Joined, spent: Spent) -> Row {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let joins = count(joined.took_us.len());
    let each = (joins > 0).then(|| spent.server.ran.as_secs_f64() / f64::from(joins));
    let usage = spent.usage();
    let void = match joined.failures.first() {
        Some(why) => Some(format!("{} joins failed, the first because {why}", joined.failures.len())),
        None => generator_too_slow(usage.generator_cpu_percent),
    };
    Row {
        transport,
        admission,
        joins_asked_per_second: rate,
        joins,
        joins_failed: count(joined.failures.len()),
        server_cpu_us_per_join: each.map(|seconds| seconds * 1e6),
        joins_per_second_and_core: each.map(|seconds| 1.0 / seconds),
        join_us_p50: percentile(&mut joined.took_us, 50),
        join_us_p99: percentile(&mut joined.took_us, 99),
        usage,
        void,
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("transport", |row| row.transport.to_string()),
            ("admission", |row| row.admission.as_str().to_owned()),
            ("joins/s asked", |row| row.joins_asked_per_second.to_string()),
            ("joins", |row| row.joins.to_string()),
            ("CPU µs/join", |row| figure(row.server_cpu_us_per_join, 0)),
            ("joins/s and core", |row| figure(row.joins_per_second_and_core, 0)),
            ("p50 µs", |row| figure(row.join_us_p50.map(f64::from), 0)),
            ("p99 µs", |row| figure(row.join_us_p99.map(f64::from), 0)),
            ("server CPU %", |row| figure(row.usage.server_cpu_percent, 1)),
            ("waited %", |row| figure(row.usage.server_waited_percent, 1)),
            ("generator CPU %", |row| figure(row.usage.generator_cpu_percent, 1)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::account::CpuTime;
    use super::*;

    #[test]
    fn what_a_core_could_do_follows_from_what_a_join_costs() {
        let mut joined = Joined { took_us: vec![900, 1_000, 1_100, 5_000], failures: Vec::new() };
        let [server, generator, took] = [2, 8, 10].map(Duration::from_millis);
        let [server, generator] = [server, generator].map(|ran| CpuTime { ran, ..CpuTime::default() });
        let row =
            evaluate(Transport::Quic, Admission::Token, 400, &mut joined, Spent { server, generator, took });
        assert_eq!((row.server_cpu_us_per_join, row.joins_per_second_and_core), (Some(500.0), Some(2_000.0)));
        assert_eq!((row.join_us_p50, row.join_us_p99, row.void.as_deref()), (Some(1_000), Some(5_000), None));
        joined.note(Err(anyhow::anyhow!("the server is full")));
        let row =
            evaluate(Transport::Quic, Admission::Token, 400, &mut joined, Spent { server, generator, took });
        assert!(row.void.is_some_and(|why| why.contains("1 joins failed") && why.contains("full")));
    }
}
