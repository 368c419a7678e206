//! Durable moves that a server can serve: turn rooms without rules, over HTTP, each move acknowledged when it
//! is stored.

use super::args::TurnsArgs;
use super::http::{Http, Player};
use super::load::{Spent, Usage};
use super::machine::Cores;
use super::server::{Server, Settings};
use super::table::{Table, figure, ms};
use super::tally::{generator_too_slow, percentile};
use crate::output::{print, tell};
use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often a block is made durable, to say how long the disk takes.
const SYNCS: usize = 200;
/// What the store says of itself to SQLite; a group of moves is one commit.
pub(super) const PRAGMAS: &str = "SQLite: journal_mode=WAL, synchronous=FULL, fullfsync=ON";

/// The one row.
#[derive(Debug, Serialize)]
struct Row {
    rooms: usize,
    connections: usize,
    moves: u32,
    moves_per_second: f64,
    move_us_p50: Option<u32>,
    move_us_p99: Option<u32>,
    sync_us_p50: Option<u32>,
    server_cpu_us_per_move: Option<f64>,
    #[serde(flatten)]
    usage: Usage,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &TurnsArgs) -> anyhow::Result<()> {
    tell("durable moves");
    let cores = if args.one_core { cores } else { cores.whole_for_server() };
    let server = Server::start(cores, &Settings { has_store: true, ..Settings::default() })?;
    let mut syncs = sync_us(server.data())?;
    let (rooms, connections) = (args.rooms as usize, args.connections as usize);
    let Moves { mut took_us, spent } =
        Moves::measured(&[&server], rooms, connections, Duration::from_secs_f64(args.seconds)).await?;
    let usage = spent.usage();
    let moves = u32::try_from(took_us.len()).unwrap_or(u32::MAX);
    let row = Row {
        rooms,
        connections,
        moves,
        moves_per_second: f64::from(moves) / spent.took.as_secs_f64(),
        move_us_p50: percentile(&mut took_us, 50),
        move_us_p99: percentile(&mut took_us, 99),
        sync_us_p50: percentile(&mut syncs, 50),
        server_cpu_us_per_move: (moves > 0).then(|| spent.server.ran.as_secs_f64() * 1e6 / f64::from(moves)),
        void: generator_too_slow(usage.generator_cpu_percent),
        usage,
    };
    let setting = json!({ "cores": cores, "seconds": args.seconds, "store": PRAGMAS });
    let notes = [cores.note(), PRAGMAS.to_owned()];
    let table = table(&row);
    print("turns", args.common.json, &setting, &[row], &notes, &table)
}

fn table(row: &Row) -> Table {
    Table::of(
        std::slice::from_ref(row),
        &[
            ("rooms", |row| row.rooms.to_string()),
            ("connections", |row| row.connections.to_string()),
            ("moves/s", |row| figure(row.moves_per_second, 0)),
            ("p50 ms", |row| ms(row.move_us_p50)),
            ("p99 ms", |row| ms(row.move_us_p99)),
            ("sync of 4 KiB ms", |row| ms(row.sync_us_p50)),
            ("server CPU µs/move", |row| figure(row.server_cpu_us_per_move, 0)),
            ("server CPU %", |row| figure(row.usage.server_cpu_percent, 0)),
            ("generator CPU %", |row| figure(row.usage.generator_cpu_percent, 0)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}

/// How long the disk of a folder takes to make a block durable.
pub(super) fn sync_us(folder: &Path) -> anyhow::Result<Vec<u32>> {
    let path = folder.join("sync");
    let mut file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let mut took = Vec::new();
    for _ in 0..SYNCS {
        file.write_all(&[1; 4096])?;
        let began = Instant::now();
        file.sync_data()?;
        took.push(micros(began.elapsed()));
    }
    std::fs::remove_file(&path)?;
    Ok(took)
}

pub(super) fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Moves that were stored, and what they cost.
pub(super) struct Moves {
    /// How long each took, in microseconds.
    pub(super) took_us: Vec<u32>,
    /// Processor time of the servers and of this process.
    pub(super) spent: Spent,
}

impl Moves {
    /// Plays so many rooms of two players for this time. The players of a room ask the first and the last of the
    /// servers.
    ///
    /// # Errors
    /// What kept it from being measured.
    pub(super) async fn measured(
        servers: &[&Server],
        rooms: usize,
        connections: usize,
        time: Duration,
    ) -> anyhow::Result<Self> {
        let pids: Vec<u32> = servers.iter().map(|server| server.pid()).collect();
        let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.addr()).collect();
        let mut opening = JoinSet::new();
        for number in 0..connections {
            let own = (number..rooms).step_by(connections).count();
            opening.spawn_local(Desk::open(addresses.clone(), number, own));
        }
        let mut desks = Vec::new();
        while let Some(desk) = opening.join_next().await {
            desks.push(desk??);
        }
        let (began, earlier) = (Instant::now(), Spent::so_far_of(&pids)?);
        let until = began + time;
        let mut playing = JoinSet::new();
        for desk in desks {
            playing.spawn_local(desk.play(until));
        }
        let mut took_us = Vec::new();
        while let Some(took) = playing.join_next().await {
            took_us.extend(took??);
        }
        let spent = Spent::so_far_of(&pids)?.since(earlier, began.elapsed());
        Ok(Moves { took_us, spent })
    }
}

/// A room of one desk, which plays for both of its players.
pub(super) struct Game {
    pub(super) id: String,
    pub(super) state_version: u64,
    pub(super) mover: String,
}

/// Who makes one move at a time: two accounts, and the rooms in which they sit opposite each other.
struct Desk {
    /// One connection for each server.
    servers: Vec<Http>,
    players: [Player; 2],
    rooms: Vec<Game>,
}

impl Desk {
    async fn open(addresses: Vec<SocketAddr>, number: usize, rooms: usize) -> anyhow::Result<Self> {
        let mut servers: Vec<Http> = addresses.into_iter().map(Http::new).collect();
        let http = servers.first_mut().context("there is a server")?;
        let players = [http.sign_in(2 * number).await?, http.sign_in(2 * number + 1).await?];
        let mut games = Vec::new();
        for _ in 0..rooms {
            let config = json!({ "turn_based": true, "players": { "min": 2, "max": 2 } });
            let [host, guest] = &players;
            let opened = http.post("/rooms", &host.token, &json!({ "config": config })).await?;
            let id = opened["room"]["id"].as_str().context("a room has an id")?.to_owned();
            let room = http.post(&format!("/rooms/{id}/join"), &guest.token, &json!({})).await?;
            games.push(Game::read(&room["room"])?);
        }
        // Others may take long to open theirs, and no connection stays idle for long.
        http.hang_up();
        Ok(Desk { servers, players, rooms: games })
    }

    /// One move after the other, until then. Says how long each took.
    async fn play(mut self, until: Instant) -> anyhow::Result<Vec<u32>> {
        let mut took = Vec::new();
        for number in 0_u64.. {
            let at = usize::try_from(number).unwrap_or_default() % self.rooms.len().max(1);
            let Some(room) = self.rooms.get_mut(at) else { break };
            let mover = self.players.iter().position(|player| player.account == room.mover);
            let mover = mover.context("it is nobody's turn")?;
            let server = if mover == 0 { self.servers.first_mut() } else { self.servers.last_mut() };
            let server = server.context("there is a server")?;
            let cell = json!({ "cell": number % 9 });
            let said = json!({ "type": "put", "data": cell, "state": { "last": cell },
                "state_version": room.state_version });
            let began = Instant::now();
            if began >= until {
                break;
            }
            let token = &self.players[mover].token;
            let after = server.post(&format!("/rooms/{}/moves", room.id), token, &said).await?;
            took.push(micros(began.elapsed()));
            *room = Game::read(&after["room"])?;
        }
        Ok(took)
    }
}

impl Game {
    /// What an answer says of a room.
    ///
    /// # Errors A field is missing, or no player is to move.
    pub(super) fn read(room: &Value) -> anyhow::Result<Self> {
        let text = |field: &str| room[field].as_str().map(str::to_owned);
        Ok(Game {
            id: text("id").context("a room has an id")?,
            state_version: room["state_version"].as_u64().context("a room has a version of its state")?,
            mover: text("current_player").context("the game has not begun")?,
        })
    }
}
