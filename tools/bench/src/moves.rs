//! How long games pause when their room moves to another node, and when their node is killed.
//!
//! Two nodes on one core, a PostgreSQL, and real clients on another core. All members of a room say a number in each step, and
//! its host counts the steps in its state. A pause is the longest time between two messages that a member hears.

use super::args::MovesArgs;
use super::http::Http;
use super::machine::Cores;
use super::server::{Server, Settings};
use super::table::{Table, ms};
use super::tally::percentile;
use crate::output::{print, tell};
use anyhow::{Context, ensure};
use parlor::{Event, Impairment, MemberId, Room};
use parlor_proto::wire::envelope::Sender;
use parlor_server::admission::SigningKey;
use parlor_server::realm::ENVIRONMENT;
use parlor_services::operator_token;
use parlor_services::store::Role;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

const APP: &str = "bench";
/// How long games are played after they have settled, before the next move or death: rosters are written each second, a room stays
/// for two at its new node, and a member knows the rhythm of its room.
const SETTLE: Duration = Duration::from_secs(6);
/// Rooms that move at the same time.
const AT_ONCE: usize = 2;
/// Time between two frames of the games: this much for each member, and no less than the first. So the frames of many
/// members leave the core to their sessions.
const FRAME_MIN: Duration = Duration::from_millis(1);
const FRAME_FOR_MEMBER: Duration = Duration::from_micros(20);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whom a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Cause {
    Moved,
    Killed,
}

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    cause: Cause,
    rtt_ms: u64,
    members: usize,
    /// Moves of a room, or deaths of a node.
    times: u32,
    /// At each member: the longest time between two messages, or from the kill to the first message.
    pause_us_p50: Option<u32>,
    pause_us_p99: Option<u32>,
    pause_us_max: Option<u32>,
    /// At each guest: the longest time between two changes of the state that it reads, or from the kill to the first.
    state_us_p50: Option<u32>,
    state_us_p99: Option<u32>,
    /// Messages that did not come, and messages that came twice.
    missed: u64,
    doubled: u64,
    /// Events of other players that are gone, and of lost connections.
    disturbed: u64,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &MovesArgs) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("parlor-bench-moves-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("the temporary folder cannot be written")?;
    let rows = measure(cores, args, &folder).await;
    let _ = std::fs::remove_dir_all(&folder);
    let rows = rows?;
    let setting = json!({
        "cores": cores, "rooms": args.rooms, "members": args.members, "rounds": args.rounds, "kills": args.kills, "step_hz": args.step_hz,
    });
    print("moves", args.common.json, &setting, &rows, &[cores.note()], &table(&rows))
}

async fn measure(cores: Cores, args: &MovesArgs, folder: &Path) -> anyhow::Result<Vec<Row>> {
    let key = SigningKey::generate()?;
    key.write_new(&folder.join("operator"))?;
    let token = operator_token(&key, Role::Admin, "ops", APP, ENVIRONMENT);
    let mut rows = Vec::new();
    for rtt_ms in args.rtt.iter().copied() {
        let mut nodes = Nodes::start(cores, args, folder, token.clone())?;
        nodes.know_each_other().await?;
        let mut games = Games::open(&nodes, args, rtt_ms).await?;
        tell(&format!(
            "{} members, {rtt_ms} ms, {} moves",
            games.all.len(),
            u32::from(args.rounds) * args.rooms
        ));
        rows.push(moves(&mut nodes, &mut games, args, rtt_ms).await?);
        tell(&format!("{} members, {rtt_ms} ms, {} kills", games.all.len(), args.kills));
        rows.push(kills(cores, args, folder, &mut nodes, &mut games, rtt_ms).await?);
    }
    Ok(rows)
}

/// The two nodes. The games are at one of them.
struct Nodes {
    nodes: [Server; 2],
    /// The one that has the games.
    at: usize,
    token: String,
}

impl Nodes {
    fn start(cores: Cores, args: &MovesArgs, folder: &Path, token: String) -> anyhow::Result<Self> {
        let nodes = [node(cores, args, folder, 0)?, node(cores, args, folder, 1)?];
        Ok(Nodes { nodes, at: 0, token })
    }

    /// Waits until both nodes decide, and see each other.
    async fn know_each_other(&self) -> anyhow::Result<()> {
        let since = Instant::now();
        for node in &self.nodes {
            loop {
                let listed = Http::new(node.addr()).get("/admin/nodes", &self.token).await?;
                let serving = listed["nodes"]
                    .as_array()
                    .map_or(0, |nodes| nodes.iter().filter(|node| node["state"] == "serving").count());
                if listed["standing"] == "held" && serving == 2 {
                    break;
                }
                ensure!(since.elapsed() < PATIENCE, "the nodes do not see each other: {listed}");
                sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

fn node(cores: Cores, args: &MovesArgs, folder: &Path, number: usize) -> anyhow::Result<Server> {
    let key = folder.join("operator.pub");
    let more = [
        "--store".to_owned(),
        args.store.clone(),
        "--shards".to_owned(),
        "1".to_owned(),
        "--node".to_owned(),
        format!("bench-{number}"),
        "--operator-key".to_owned(),
        key.display().to_string(),
    ];
    Server::start(cores, &Settings { more: &more, ..Settings::default() })
}

/// A member of a room.
struct Member {
    room: Room,
    said: u64,
    /// The next number of each other member.
    next: BTreeMap<MemberId, u64>,
    heard_at: Instant,
    /// The longest time between two messages since the last look.
    pause: Duration,
    state: u64,
    state_at: Instant,
    state_pause: Duration,
    reopened: u32,
    /// When it first heard a message after it was told that the room goes on.
    again_at: Option<Instant>,
    state_again_at: Option<Instant>,
    missed: u64,
    doubled: u64,
    disturbed: u64,
}

impl Member {
    fn new(room: Room) -> Self {
        let now = Instant::now();
        Member {
            room,
            said: 0,
            next: BTreeMap::new(),
            heard_at: now,
            pause: Duration::ZERO,
            state: 0,
            state_at: now,
            state_pause: Duration::ZERO,
            reopened: 0,
            again_at: None,
            state_again_at: None,
            missed: 0,
            doubled: 0,
            disturbed: 0,
        }
    }

    fn hear(&mut self, from: MemberId, number: u64) {
        let now = Instant::now();
        self.pause = self.pause.max(now - self.heard_at);
        self.heard_at = now;
        if self.reopened > 0 {
            self.again_at.get_or_insert(now);
        }
        let next = self.next.entry(from).or_insert(number);
        match number.cmp(next) {
            std::cmp::Ordering::Less => self.doubled += 1,
            order => {
                if order.is_gt() {
                    self.missed += number - *next;
                }
                *next = number + 1;
            }
        }
    }

    fn frame(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            match event {
                Event::Message(message) => {
                    let number = message.read().context("a message is no number")?;
                    if let Sender::Member(from) = message.from {
                        self.hear(from, number);
                    }
                }
                Event::Reopened { .. } => self.reopened += 1,
                Event::ConnectionLost { .. } | Event::PlayerLost { .. } | Event::PlayerLeft { .. } => {
                    self.disturbed += 1;
                }
                Event::Closed(why) => anyhow::bail!("a room is closed: {why}"),
                _ => {}
            }
        }
        while let Some(mut step) = self.room.step() {
            if let Some(mut host) = step.host() {
                let steps: u64 = host.state().get("steps")?.unwrap_or(0);
                host.set("steps", &(steps + 1))?;
            }
            self.said += 1;
            self.room.broadcast("number", &self.said)?;
        }
        let state: u64 = self.room.state().get("steps")?.unwrap_or(0);
        if state != self.state && !self.room.is_host() {
            let now = Instant::now();
            self.state_pause = self.state_pause.max(now - self.state_at);
            (self.state, self.state_at) = (state, now);
            if self.reopened > 0 {
                self.state_again_at.get_or_insert(now);
            }
        }
        Ok(())
    }

    /// Forgets what was measured.
    fn look(&mut self) {
        (self.pause, self.state_pause) = (Duration::ZERO, Duration::ZERO);
        (self.reopened, self.again_at, self.state_again_at) = (0, None, None);
    }
}

/// All games.
struct Games {
    all: Vec<Member>,
    codes: Vec<String>,
}

impl Games {
    async fn open(nodes: &Nodes, args: &MovesArgs, rtt_ms: u64) -> anyhow::Result<Self> {
        let node = &nodes.nodes[nodes.at];
        let address = format!("127.0.0.1:{}#{}", node.addr().port(), node.fingerprint()?);
        let impairment: Option<Impairment> = match rtt_ms {
            0 => None,
            ms => Some(format!("latency={}ms", ms / 2).parse().context("a latency")?),
        };
        let registry = node.registry();
        let mut games = Games { all: Vec::new(), codes: Vec::new() };
        for of in 0..args.rooms as usize {
            let host = Room::host(APP).name("host").tick_hz(args.step_hz).max_players(args.members);
            // A chosen code is not sent to a less busy node.
            let host = host.code(&format!("BENCH{of:03}")).server(&address).registry(registry.clone());
            let host = impairment.iter().fold(host, |host, bad| host.impairment(*bad));
            games.enter(host.open()).await?;
            let code = games.all.last().and_then(|host| host.room.code()).context("a room without a code")?;
            games.codes.push(code.to_string());
            for number in 1..args.members {
                let guest = Room::join(APP, code.as_str()).name(&format!("guest {number}")).server(&address);
                let guest = guest.registry(registry.clone());
                let guest = impairment.iter().fold(guest, |guest, bad| guest.impairment(*bad));
                games.enter(guest.open()).await?;
            }
        }
        games.play_for(SETTLE).await?;
        Ok(games)
    }

    async fn enter(&mut self, room: Room) -> anyhow::Result<()> {
        self.all.push(Member::new(room));
        let is_in = |games: &Games| games.all.last().is_some_and(|member| member.room.local_id().is_some());
        self.play_until("a member is let in", is_in).await
    }

    async fn frame(&mut self) -> anyhow::Result<()> {
        for member in &mut self.all {
            member.frame()?;
        }
        // The members' sessions run beside their games.
        let members = u32::try_from(self.all.len())?;
        sleep((FRAME_FOR_MEMBER * members).max(FRAME_MIN)).await;
        Ok(())
    }

    async fn play_until(&mut self, what: &str, is_so: impl Fn(&Games) -> bool) -> anyhow::Result<()> {
        let since = Instant::now();
        while !is_so(self) {
            self.frame().await?;
            ensure!(since.elapsed() < PATIENCE, "{what}: that does not come; {}", self.late());
        }
        Ok(())
    }

    async fn play_for(&mut self, time: Duration) -> anyhow::Result<()> {
        let since = Instant::now();
        while since.elapsed() < time {
            self.frame().await?;
        }
        Ok(())
    }

    /// The members for whom the room has not gone on.
    fn late(&self) -> String {
        let is_late = |member: &&Member| member.again_at.is_none();
        let of = |member: &Member| {
            let (code, id) = (member.room.code().map(|code| code.to_string()), member.room.local_id());
            format!("{code:?} {id:?}: {:?}, told {}", member.room.link_state(), member.reopened)
        };
        self.all.iter().filter(is_late).map(of).collect::<Vec<_>>().join("; ")
    }

    fn are_again(&self) -> bool {
        let is_again = |member: &Member| {
            member.again_at.is_some() && (member.room.is_host() || member.state_again_at.is_some())
        };
        self.all.iter().all(is_again)
    }

    fn row(&self, cause: Cause, rtt_ms: u64, times: u32, pauses: &mut [u32], states: &mut [u32]) -> Row {
        let sum = |of: fn(&Member) -> u64| self.all.iter().map(of).sum();
        Row {
            cause,
            rtt_ms,
            members: self.all.len(),
            times,
            pause_us_p50: percentile(pauses, 50),
            pause_us_p99: percentile(pauses, 99),
            pause_us_max: percentile(pauses, 100),
            state_us_p50: percentile(states, 50),
            state_us_p99: percentile(states, 99),
            missed: sum(|member| member.missed),
            doubled: sum(|member| member.doubled),
            disturbed: sum(|member| member.disturbed),
        }
    }

    fn forget_faults(&mut self) {
        for member in &mut self.all {
            (member.missed, member.doubled, member.disturbed) = (0, 0, 0);
        }
    }
}

fn us(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Moves all rooms from one node to the other and back.
async fn moves(nodes: &mut Nodes, games: &mut Games, args: &MovesArgs, rtt_ms: u64) -> anyhow::Result<Row> {
    let (mut pauses, mut states) = (Vec::new(), Vec::new());
    games.forget_faults();
    for _ in 0..args.rounds {
        games.all.iter_mut().for_each(Member::look);
        move_all(nodes, games).await?;
        for member in &games.all {
            pauses.push(us(member.pause));
            states.extend((!member.room.is_host()).then(|| us(member.state_pause)));
        }
        games.play_for(SETTLE).await?;
    }
    Ok(games.row(Cause::Moved, rtt_ms, u32::from(args.rounds) * args.rooms, &mut pauses, &mut states))
}

async fn move_all(nodes: &mut Nodes, games: &mut Games) -> anyhow::Result<()> {
    let (addr, to) = (nodes.nodes[nodes.at].addr(), 1 - nodes.at);
    let mut asked = JoinSet::new();
    let mut codes = games.codes.clone();
    while !(asked.is_empty() && codes.is_empty()) {
        // The handshakes of all members at once would keep the generator from playing.
        if asked.len() < AT_ONCE
            && let Some(code) = codes.pop()
        {
            let token = nodes.token.clone();
            asked.spawn(async move {
                let body = json!({ "to": format!("bench-{to}") });
                Http::new(addr).post(&format!("/admin/live/{code}/move"), &token, &body).await
            });
        }
        games.frame().await?;
        while let Some(done) = asked.try_join_next() {
            done??;
        }
    }
    nodes.at = to;
    games.play_until("the rooms go on at the other node", Games::are_again).await
}

/// Kills the node that has the games, and starts it again.
async fn kills(
    cores: Cores,
    args: &MovesArgs,
    folder: &Path,
    nodes: &mut Nodes,
    games: &mut Games,
    rtt_ms: u64,
) -> anyhow::Result<Row> {
    let (mut pauses, mut states) = (Vec::new(), Vec::new());
    games.forget_faults();
    for _ in 0..args.kills {
        games.all.iter_mut().for_each(Member::look);
        let killed = nodes.at;
        let at = Instant::now();
        nodes.nodes[killed].kill();
        nodes.at = 1 - killed;
        games.play_until("the rooms are reopened", Games::are_again).await?;
        for member in &games.all {
            pauses.extend(member.again_at.map(|again| us(again - at)));
            states.extend(member.state_again_at.map(|again| us(again - at)));
        }
        nodes.nodes[killed] = node(cores, args, folder, killed)?;
        games.play_for(SETTLE).await?;
        nodes.know_each_other().await?;
    }
    Ok(games.row(Cause::Killed, rtt_ms, args.kills.into(), &mut pauses, &mut states))
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("room", |row| if row.cause == Cause::Moved { "moved" } else { "reopened" }.to_owned()),
            ("RTT ms", |row| row.rtt_ms.to_string()),
            ("members", |row| row.members.to_string()),
            ("times", |row| row.times.to_string()),
            ("pause p50 ms", |row| ms(row.pause_us_p50)),
            ("p99 ms", |row| ms(row.pause_us_p99)),
            ("longest ms", |row| ms(row.pause_us_max)),
            ("state p50 ms", |row| ms(row.state_us_p50)),
            ("state p99 ms", |row| ms(row.state_us_p99)),
            ("missed", |row| row.missed.to_string()),
            ("doubled", |row| row.doubled.to_string()),
            ("disturbed", |row| row.disturbed.to_string()),
        ],
    )
}
