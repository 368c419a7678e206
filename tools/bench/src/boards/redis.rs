//! Redis beside `boards`: a sorted set on the same machine, with as many connections. Each score is written and its
//! rank asked in one round trip, and the append-only file is synced before the answer, as Parlor's store is.

use super::Held;
use crate::load::Spent;
use crate::machine::Cores;
use crate::server::Process;
use crate::tally::percentile;
use crate::turns::micros;
use anyhow::{Context, bail, ensure};
use parlor_proto::random::SplitMix64;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The program, from Debian's package `redis-server`.
const PROGRAM: &str = "redis-server";
/// Members that one command adds while the set is filled.
const PART: usize = 500;

/// What Redis did.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) scores: u32,
    pub(super) elapsed: Duration,
    pub(super) us_p50: Option<u32>,
    pub(super) us_p99: Option<u32>,
    pub(super) spent: Spent,
}

/// Measures it, or says how to install it.
///
/// # Errors
/// What kept it from measuring.
pub(super) async fn measure(
    cores: Cores,
    folder: &Path,
    players: &[Held],
    (connections, seconds): (usize, f64),
) -> anyhow::Result<Option<Measured>> {
    let is_there =
        Command::new(PROGRAM).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        return Ok(None);
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new(PROGRAM);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(folder);
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"]);
    let mut server = Process::start(cores, command)?;
    server.first("Ready to accept connections")?;
    let mut filling = Client::connect(port).await?;
    for part in players.chunks(PART) {
        let members = part.iter().flat_map(|held| [held.score.to_string(), held.account.clone()]);
        let words: Vec<String> = ["ZADD".to_owned(), "board".to_owned()].into_iter().chain(members).collect();
        filling.ask(&[words], 1).await?;
    }
    let (began, earlier) = (Instant::now(), Spent::so_far(server.pid())?);
    let until = began + Duration::from_secs_f64(seconds);
    let mut writing = JoinSet::new();
    for number in 0..connections {
        let own: Vec<Held> = players.iter().skip(number).step_by(connections).cloned().collect();
        let client = Client::connect(port).await?;
        writing.spawn_local(write(client, own, number as u64, until));
    }
    let mut took_us = Vec::new();
    while let Some(took) = writing.join_next().await {
        took_us.extend(took??);
    }
    let elapsed = began.elapsed();
    let spent = Spent::so_far(server.pid())?.since(earlier, elapsed);
    Ok(Some(Measured {
        scores: u32::try_from(took_us.len()).unwrap_or(u32::MAX),
        elapsed,
        us_p50: percentile(&mut took_us, 50),
        us_p99: percentile(&mut took_us, 99),
        spent,
    }))
}

/// Submits one score after the other, each better than the player's last.
async fn write(
    mut client: Client,
    mut players: Vec<Held>,
    number: u64,
    until: Instant,
) -> anyhow::Result<Vec<u32>> {
    let (mut took, mut random) = (Vec::new(), SplitMix64::new(number));
    while !players.is_empty() {
        let at = usize::try_from(random.draw() % players.len() as u64).unwrap_or_default();
        let held = &mut players[at];
        let score = held.score + 1 + i64::try_from(random.draw() % 1_000).unwrap_or_default();
        let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        let mut add = words(["ZADD", "board", "GT"]);
        add.extend(["CH".to_owned(), score.to_string(), held.account.clone()]);
        let rank = words(["ZREVRANK", "board", &held.account]);
        let began = Instant::now();
        if began >= until {
            break;
        }
        let answers = client.ask(&[add, rank], 2).await?;
        took.push(micros(began.elapsed()));
        ensure!(answers[0] == 1, "Redis says that a score changed nothing");
        held.score = score;
    }
    Ok(took)
}

/// A connection.
struct Client {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Client {
    async fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.context("Redis takes no connection")?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream), line: String::new() })
    }

    /// Sends commands, and reads so many numbers.
    async fn ask(&mut self, commands: &[Vec<String>], answers: usize) -> anyhow::Result<Vec<i64>> {
        let mut text = String::new();
        for words in commands {
            write!(text, "*{}\r\n", words.len())?;
            for word in words {
                write!(text, "${}\r\n{word}\r\n", word.len())?;
            }
        }
        self.stream.get_mut().write_all(text.as_bytes()).await?;
        let mut numbers = Vec::with_capacity(answers);
        for _ in 0..answers {
            self.line.clear();
            self.stream.read_line(&mut self.line).await?;
            match self.line.trim_end().strip_prefix(':') {
                Some(number) => numbers.push(number.parse()?),
                None => bail!("Redis answers {:?}", self.line),
            }
        }
        Ok(numbers)
    }
}
