//! Durable scores that a server takes: each improves on its player's best, and is acknowledged when it is
//! stored. At the end the server is killed, and every acknowledged score is looked for.

mod redis;

use crate::args::BoardsArgs;
use crate::http::Http;
use crate::load::{Spent, Usage};
use crate::machine::Cores;
use crate::member::APP;
use crate::output::{print, tell};
use crate::server::{Server, Settings};
use crate::table::{Table, figure, ms};
use crate::tally::{generator_too_slow, percentile};
use crate::turns::{PRAGMAS, micros, sync_us};
use anyhow::{Context, bail, ensure};
use parlor_proto::random::SplitMix64;
use parlor_server::admission::SigningKey;
use parlor_server::embed::unix_ms;
use parlor_server::realm::{ENVIRONMENT, Realm};
use parlor_services::operator_token;
use parlor_services::store::{Account, AccountId, AccountKind, NewScore, Role, Store};
use parlor_social::{Board, Name, Season, Submission};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The board.
const BOARD: &str = "points";
/// Scores of one write while the store is filled, and accounts of one question afterwards.
const PART: usize = 100;
/// Writes at the same time while the store is filled.
const WRITES: usize = 64;
/// How long the ranks of the board may take to be loaded.
const LOAD_PATIENCE: Duration = Duration::from_secs(120);

/// A row: of Parlor, or of what it is compared with.
#[derive(Debug, Serialize)]
struct Row {
    system: &'static str,
    entries: usize,
    connections: usize,
    scores: u32,
    scores_per_second: f64,
    score_us_p50: Option<u32>,
    score_us_p99: Option<u32>,
    read_us_p50: Option<u32>,
    read_us_p99: Option<u32>,
    sync_us_p50: Option<u32>,
    server_cpu_us_per_score: Option<f64>,
    answers_after_kill_ms: Option<f64>,
    #[serde(flatten)]
    usage: Usage,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &BoardsArgs) -> anyhow::Result<()> {
    let cores = if args.one_core { cores } else { cores.whole_for_server() };
    let (entries, connections) = (args.entries as usize, args.connections as usize);
    let desk = Desk::open()?;
    tell(&format!("filling a store with {entries} entries"));
    let players = desk.fill(entries).await?;
    tell("durable scores");
    let server = desk.serve(cores)?;
    let token = desk.token();
    loaded(&server, &token).await?;
    let mut syncs = sync_us(&desk.folder)?;
    let (began, earlier) = (Instant::now(), Spent::so_far(server.pid())?);
    let until = began + Duration::from_secs_f64(args.seconds);
    let mut writing = JoinSet::new();
    for number in 0..connections {
        let own: Vec<Held> = players.iter().skip(number).step_by(connections).cloned().collect();
        let writer = Writer { http: Http::new(server.addr()), token: token.clone(), players: own };
        writing.spawn_local(writer.write(number as u64, until));
    }
    let readers =
        tokio::task::spawn_local(read(Http::new(server.addr()), token.clone(), players.clone(), until));
    let (mut took_us, mut held) = (Vec::new(), Vec::new());
    while let Some(written) = writing.join_next().await {
        let (took, own) = written??;
        took_us.extend(took);
        held.extend(own);
    }
    let elapsed = began.elapsed();
    let spent = Spent::so_far(server.pid())?.since(earlier, elapsed);
    let mut reads_us = readers.await??;
    // As by a power cut of the process: nothing is said goodbye to.
    drop(server);
    let began = Instant::now();
    let server = desk.serve(cores)?;
    loaded(&server, &token).await?;
    let answers_after_kill_ms = began.elapsed().as_secs_f64() * 1_000.0;
    let lost = lost(&server, &token, &held).await?;
    let usage = spent.usage();
    let scores = u32::try_from(took_us.len()).unwrap_or(u32::MAX);
    let mut rows = vec![Row {
        system: "Parlor",
        entries,
        connections,
        scores,
        scores_per_second: f64::from(scores) / elapsed.as_secs_f64(),
        score_us_p50: percentile(&mut took_us, 50),
        score_us_p99: percentile(&mut took_us, 99),
        read_us_p50: percentile(&mut reads_us, 50),
        read_us_p99: percentile(&mut reads_us, 99),
        sync_us_p50: percentile(&mut syncs, 50),
        server_cpu_us_per_score: (scores > 0)
            .then(|| spent.server.ran.as_secs_f64() * 1e6 / f64::from(scores)),
        answers_after_kill_ms: Some(answers_after_kill_ms),
        void: lost.or_else(|| generator_too_slow(usage.generator_cpu_percent)),
        usage,
    }];
    drop(server);
    let mut notes = vec![cores.note(), PRAGMAS.to_owned()];
    if args.peers {
        tell("the same by Redis");
        match redis::measure(cores, &desk.folder, &players, (connections, args.seconds)).await? {
            Some(measured) => rows.push(of_redis(&measured, entries, connections)),
            None => notes.push("Redis is not installed: `apt-get install redis-server`".to_owned()),
        }
    }
    let setting = json!({ "cores": cores, "seconds": args.seconds, "store": PRAGMAS });
    let table = table(&rows);
    print("boards", args.common.json, &setting, &rows, &notes, &table)
}

fn of_redis(measured: &redis::Measured, entries: usize, connections: usize) -> Row {
    let usage = measured.spent.usage();
    let scores = f64::from(measured.scores);
    Row {
        system: "Redis, appendfsync always",
        entries,
        connections,
        scores: measured.scores,
        scores_per_second: scores / measured.elapsed.as_secs_f64(),
        score_us_p50: measured.us_p50,
        score_us_p99: measured.us_p99,
        read_us_p50: None,
        read_us_p99: None,
        sync_us_p50: None,
        server_cpu_us_per_score: (scores > 0.0)
            .then(|| measured.spent.server.ran.as_secs_f64() * 1e6 / scores),
        answers_after_kill_ms: None,
        void: generator_too_slow(usage.generator_cpu_percent),
        usage,
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("system", |row| row.system.to_owned()),
            ("entries", |row| row.entries.to_string()),
            ("connections", |row| row.connections.to_string()),
            ("scores/s", |row| figure(row.scores_per_second, 0)),
            ("p50 ms", |row| ms(row.score_us_p50)),
            ("p99 ms", |row| ms(row.score_us_p99)),
            ("read p50 ms", |row| ms(row.read_us_p50)),
            ("read p99 ms", |row| ms(row.read_us_p99)),
            ("sync of 4 KiB ms", |row| ms(row.sync_us_p50)),
            ("server CPU µs/score", |row| figure(row.server_cpu_us_per_score, 0)),
            ("server CPU %", |row| figure(row.usage.server_cpu_percent, 0)),
            ("generator CPU %", |row| figure(row.usage.generator_cpu_percent, 0)),
            ("answers after kill ms", |row| figure(row.answers_after_kill_ms, 0)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}

/// A player, and the score that was acknowledged.
#[derive(Clone, Debug)]
struct Held {
    account: String,
    score: i64,
}

/// The folder with the store and the operator's key, which goes with this value.
struct Desk {
    folder: PathBuf,
    key: SigningKey,
    public: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Desk {
    fn open() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("parlor-bench-boards-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("data"))?;
        let key = SigningKey::generate()?;
        let public = key.write_new(&folder.join("operator"))?;
        Ok(Desk { folder, key, public })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts the server on the store.
    fn serve(&self, cores: Cores) -> anyhow::Result<Server> {
        let text = |path: &Path| path.display().to_string();
        let more = ["--data".to_owned(), text(&self.data()), "--operator-key".to_owned(), text(&self.public)];
        Server::start(cores, &Settings { more: &more, ..Settings::default() })
    }

    fn token(&self) -> String {
        operator_token(&self.key, Role::Server, "bench", APP, ENVIRONMENT)
    }

    /// Puts a board with so many entries into the store, through the store's own methods.
    async fn fill(&self, entries: usize) -> anyhow::Result<Vec<Held>> {
        let file = self.data().join("parlor.db").display().to_string();
        let store = Store::open(&file).await?;
        let realm = Realm::new(APP, ENVIRONMENT).map_err(|error| anyhow::anyhow!(error.sentence))?;
        let rules = Board::default();
        let document = serde_json::to_vec(&rules)?;
        let name = Name::new(BOARD)?;
        let number = store.put_board(&realm, &name, document, None, (1, Season(0), None)).await?.number;
        let (rules, mut random) = (Arc::new(rules), SplitMix64::new(1));
        let held: Vec<Held> = (0..entries)
            .map(|_| Held {
                account: format!(
                    "p{:024x}",
                    u128::from(random.draw()) << 32 | u128::from(random.draw() >> 32)
                ),
                score: i64::try_from(random.draw() % 1_000_000).unwrap_or_default(),
            })
            .collect();
        // A guest that was not seen for long would be deleted at the server's start.
        let created_ms = unix_ms();
        let mut writes = JoinSet::new();
        for part in held.chunks(PART) {
            let accounts: Result<Vec<AccountId>, _> =
                part.iter().map(|held| AccountId::new(&held.account)).collect();
            let accounts = accounts.map_err(|error| anyhow::anyhow!(error.sentence))?;
            let scores: Vec<NewScore> = accounts
                .iter()
                .zip(part)
                .map(|(account, held)| NewScore {
                    board: number,
                    rules: Arc::clone(&rules),
                    season: Season(0),
                    ends_ms: None,
                    receipt: None,
                    account: account.clone(),
                    submission: Submission { score: held.score, at_ms: 1, ..Submission::default() },
                })
                .collect();
            let (store, realm) = (store.clone(), realm.clone());
            writes.spawn_local(async move {
                for id in accounts {
                    let (kind, role) = (AccountKind::Guest, Role::Player);
                    let display_name = "a player".to_owned();
                    let account = Account { id, kind, role, display_name, created_ms };
                    store.create_account(&realm, &account, None).await?;
                }
                let stored = store.submit_scores(&realm, scores).await?;
                ensure!(stored.is_ok(), "a score was refused: {stored:?}");
                Ok(())
            });
            if writes.len() >= WRITES
                && let Some(written) = writes.join_next().await
            {
                written??;
            }
        }
        while let Some(written) = writes.join_next().await {
            written??;
        }
        store.close();
        Ok(held)
    }
}

/// Waits until the server has the ranks.
async fn loaded(server: &Server, token: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut http = Http::new(server.addr());
    while began.elapsed() < LOAD_PATIENCE {
        let answer = http.ask("GET", &format!("/v1/boards/{BOARD}?count=1"), token, "").await?;
        match answer.status {
            200 => return Ok(()),
            503 => {}
            _ => bail!("the board is answered with {}", answer.kind()),
        }
    }
    bail!("the ranks were not loaded within {} s", LOAD_PATIENCE.as_secs())
}

/// Who submits one score after the other.
struct Writer {
    http: Http,
    token: String,
    players: Vec<Held>,
}

impl Writer {
    /// Says how long each score took, and what was acknowledged.
    async fn write(mut self, number: u64, until: Instant) -> anyhow::Result<(Vec<u32>, Vec<Held>)> {
        let (mut took, mut random) = (Vec::new(), SplitMix64::new(number));
        while !self.players.is_empty() {
            let at = usize::try_from(random.draw() % self.players.len() as u64).unwrap_or_default();
            let held = &mut self.players[at];
            let score = held.score + 1 + i64::try_from(random.draw() % 1_000).unwrap_or_default();
            let input = json!({ "account": held.account, "score": score });
            let began = Instant::now();
            if began >= until {
                break;
            }
            let answer = self.http.post(&format!("/boards/{BOARD}/scores"), &self.token, &input).await?;
            took.push(micros(began.elapsed()));
            ensure!(
                answer["improved"] == true && answer["score"] == score,
                "a score changed nothing: {answer}"
            );
            let (rank, entries) = (answer["rank"].as_u64(), answer["entries"].as_u64());
            let is_rank = rank.zip(entries).is_some_and(|(rank, entries)| (1..=entries).contains(&rank));
            ensure!(is_rank, "a score has no rank that can be: {answer}");
            held.score = score;
        }
        Ok((took, self.players))
    }
}

/// Asks for the best, for those around a player, and for ten players, in turn.
async fn read(mut http: Http, token: String, players: Vec<Held>, until: Instant) -> anyhow::Result<Vec<u32>> {
    let (mut took, mut random) = (Vec::new(), SplitMix64::new(u64::MAX));
    let mut player = || {
        let at = usize::try_from(random.draw() % players.len().max(1) as u64).unwrap_or_default();
        players.get(at).map(|held| held.account.clone()).unwrap_or_default()
    };
    for round in 0_u64.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        match round % 3 {
            0 => http.get(&format!("/boards/{BOARD}?count=10"), &token).await?,
            1 => http.get(&format!("/boards/{BOARD}/around?account={}", player()), &token).await?,
            _ => {
                let ten: Vec<String> = (0..10).map(|_| player()).collect();
                http.post(&format!("/boards/{BOARD}/of"), &token, &json!({ "accounts": ten })).await?
            }
        };
        took.push(micros(began.elapsed()));
    }
    Ok(took)
}

/// Looks for every acknowledged score. Says which is not there.
async fn lost(server: &Server, token: &str, held: &[Held]) -> anyhow::Result<Option<String>> {
    let mut http = Http::new(server.addr());
    for part in held.chunks(PART) {
        let accounts: Vec<&str> = part.iter().map(|held| held.account.as_str()).collect();
        let input = json!({ "accounts": accounts });
        let page = http.post(&format!("/boards/{BOARD}/of"), token, &input).await?;
        let entries = page["entries"].as_array().context("a page has entries")?;
        let has = |held: &Held| {
            let is_it =
                |entry: &Value| entry["account"] == held.account.as_str() && entry["score"] == held.score;
            entries.iter().any(is_it)
        };
        if let Some(lost) = part.iter().find(|held| !has(held)) {
            return Ok(Some(format!("the score {} of {} is lost", lost.score, lost.account)));
        }
    }
    Ok(None)
}
