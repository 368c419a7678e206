//! A game's stream on a bad network: 3 Mbit/s to each of a few members whose links lose packets. Each message
//! arrives once or not at all; the bench measures how many do, and when. Then, on the same links, how far
//! behind the state of a thousand walkers is. Then links that are too narrow ([`narrow`]), and links that are
//! cut ([`cut`]).

mod cut;
mod narrow;

use super::args::{LossArgs, LossPart};
use super::machine::Cores;
use super::replicate::{Walk, staleness_ticks};
use super::server::{Server, Settings};
use super::table::{Table, figure, ms};
use super::tally::{Delivery, Tally, percentile};
use crate::output::{print, tell};
use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use parlor::{Event, Impairment, Lane, MemberId, Room, RoomBuilder, TransportPreference};
use parlor_terminal::print::say;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// What the stream is called towards the server.
const APP: &str = "parlor-bench-loss";
/// The channel of the stream.
const CHANNEL: u8 = 16;
/// How often the stream is sent.
const TICK_HZ: u16 = 30;
/// Messages of each tick to each member, by [`MESSAGE_BYTES`]: 3 Mbit/s. Two fit a datagram.
const MESSAGES_PER_TICK: u32 = 26;
const MESSAGE_BYTES: usize = 480;
/// Members who send it in turns: a room passes on only so much of each.
const SENDERS: u16 = 6;
/// Members on bad links who receive it.
const RECEIVERS: u8 = 4;
/// Walkers of the world that is shared on the same links.
const WALKERS: u32 = 1_000;
/// How long the stream flows before anything counts: the rate control finds what the links carry.
const WARM_UP: Duration = Duration::from_secs(3);
/// How long after the last message its arrival is waited for, beside the latency of the links.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a room may take to fill.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often members are polled.
const POLL: Duration = Duration::from_micros(500);

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    loss_percent: f64,
    #[serde(flatten)]
    delivery: Delivery,
    latency_us_p90: Option<u32>,
    staleness_ms_p50: Option<f64>,
    staleness_ms_p99: Option<f64>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) fn run(args: &LossArgs) -> anyhow::Result<()> {
    let cores = Cores::take()?;
    let (mut all, mut tables) = (Vec::new(), Vec::new());
    for part in &args.parts {
        let (rows, table) = match part {
            LossPart::Lossy => {
                let rows = lossy(cores, args)?;
                (serde_json::to_value(&rows)?, table(&rows))
            }
            LossPart::Narrow => {
                let rows = narrow::run(cores, args)?;
                (serde_json::to_value(&rows)?, narrow::table(&rows))
            }
            LossPart::Cut => {
                let rows = cut::run(cores, args)?;
                (serde_json::to_value(&rows)?, cut::table(&rows))
            }
        };
        all.push(json!({ "part": part.as_str(), "rows": rows }));
        tables.push(table);
    }
    let setting = json!({
        "cores": cores, "seed": args.common.seed, "seconds": args.seconds, "latency_ms": args.latency,
        "receivers": RECEIVERS, "bits_per_second_per_receiver": bits_per_second(), "tick_hz": TICK_HZ,
    });
    let Some(last) = tables.pop() else { return Ok(()) };
    if !args.common.json {
        tables.iter().for_each(|table| say(&format!("{}\n", table.render())));
    }
    print("loss", args.common.json, &setting, &all, &[cores.note()], &last)
}

fn lossy(cores: Cores, args: &LossArgs) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for loss_ppm in args.loss.iter().map(|percent| percent * 10_000) {
        tell(&format!("{}% loss", f64::from(loss_ppm) / 10_000.0));
        let impairment = Impairment::none()
            .latency(Duration::from_millis(args.latency))
            .loss_ppm(loss_ppm)
            .seed(args.common.seed);
        rows.push(row(cores, impairment, loss_ppm, args)?);
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("loss %", |row| figure(row.loss_percent, 1)),
            ("delivered %", |row| figure(row.delivery.delivered_percent, 2)),
            ("p50 ms", |row| ms(row.delivery.latency_us_p50)),
            ("p90 ms", |row| ms(row.latency_us_p90)),
            ("p99 ms", |row| ms(row.delivery.latency_us_p99)),
            ("staleness p50 ms", |row| figure(row.staleness_ms_p50, 0)),
            ("staleness p99 ms", |row| figure(row.staleness_ms_p99, 0)),
        ],
    )
}

/// What is sent to each receiver.
fn bits_per_second() -> u64 {
    u64::from(TICK_HZ) * u64::from(MESSAGES_PER_TICK) * MESSAGE_BYTES as u64 * 8
}

fn row(cores: Cores, impairment: Impairment, loss_ppm: u32, args: &LossArgs) -> anyhow::Result<Row> {
    let server = Server::start(cores, &Settings::default())?;
    let mut stream = Stream::open(&server, impairment)?;
    stream.flow(WARM_UP, Counts::No)?;
    stream.flow(Duration::from_secs_f64(args.seconds), Counts::Yes)?;
    stream.drain(DRAIN + Duration::from_millis(args.latency))?;
    let latency_us_p90 = stream.tally.latency_us(90);
    let delivery = stream.tally.into_delivery();
    // One server at a time is on its core.
    drop((stream.senders, stream.receivers, server));
    let walk = Walk {
        hz: TICK_HZ,
        entities: WALKERS,
        moving_percent: 100,
        clients: u32::from(RECEIVERS),
        apart: Duration::ZERO,
        span: Duration::from_secs_f64(args.seconds),
        seed: args.common.seed,
    };
    let mut ticks = staleness_ticks(cores, &walk, impairment)?;
    let mut behind_ms = |percent: usize| {
        percentile(&mut ticks, percent).map(|ticks| f64::from(ticks) * 1e3 / f64::from(TICK_HZ))
    };
    Ok(Row {
        loss_percent: f64::from(loss_ppm) / 10_000.0,
        delivery,
        latency_us_p90,
        staleness_ms_p50: behind_ms(50),
        staleness_ms_p99: behind_ms(99),
    })
}

/// Whether messages count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Yes,
    No,
}

/// A room with its senders and receivers.
struct Stream {
    /// The first hosts the room.
    senders: Vec<Room>,
    receivers: Vec<Room>,
    to: Vec<MemberId>,
    began: Instant,
    sent: usize,
    tally: Tally,
}

impl Stream {
    /// Fills a room.
    fn open(server: &Server, impairment: Impairment) -> anyhow::Result<Self> {
        let address = format!("{}#{}", server.addr(), server.fingerprint()?);
        let members = SENDERS + u16::from(RECEIVERS);
        let mut senders =
            vec![furnished(Room::host(APP).max_players(members).tick_hz(TICK_HZ), server, &address).open()];
        wait_for_seats(&mut senders)?;
        let code = senders[0].code().context("a room that is open has a code")?.to_string();
        senders.extend((1..SENDERS).map(|_| furnished(Room::join(APP, &code), server, &address).open()));
        wait_for_seats(&mut senders)?;
        let guest =
            |number| furnished(Room::join(APP, &code), server, &address).impairment(impairment.apart(number));
        let mut receivers: Vec<Room> =
            (1..=u64::from(RECEIVERS)).map(|number| guest(number).open()).collect();
        wait_for_seats(&mut receivers)?;
        wait_for_players(&mut senders, usize::from(members))?;
        let mut to: Vec<MemberId> = receivers.iter().filter_map(Room::local_id).collect();
        to.sort_unstable();
        Ok(Stream { senders, receivers, to, began: Instant::now(), sent: 0, tally: Tally::default() })
    }

    /// Sends for so long.
    fn flow(&mut self, span: Duration, counts: Counts) -> anyhow::Result<()> {
        let until = Instant::now() + span;
        let mut due = Instant::now();
        while Instant::now() < until {
            if Instant::now() >= due {
                due += Duration::from_secs(1) / u32::from(TICK_HZ);
                for _ in 0..MESSAGES_PER_TICK {
                    self.send(counts)?;
                }
            }
            self.poll()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn drain(&mut self, span: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            self.poll()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// One message to all receivers: when it was sent, in µs since the beginning, whether it counts, zeros.
    fn send(&mut self, counts: Counts) -> anyhow::Result<()> {
        let mut bytes = vec![0; MESSAGE_BYTES];
        let sent_us = u64::try_from(self.began.elapsed().as_micros()).expect("a bench takes minutes");
        bytes[..8].copy_from_slice(&sent_us.to_be_bytes());
        bytes[8] = u8::from(counts == Counts::Yes);
        let sender = &mut self.senders[self.sent % usize::from(SENDERS)];
        sender.send_raw(CHANNEL, self.to.clone(), Bytes::from(bytes))?;
        self.sent += 1;
        if counts == Counts::Yes {
            self.tally.sent(u64::from(RECEIVERS));
        }
        Ok(())
    }

    fn poll(&mut self) -> anyhow::Result<()> {
        for room in &mut self.senders {
            while let Some(event) = room.poll() {
                match event {
                    Event::Throttled => bail!("the server throttles the stream"),
                    event => unless_closed(&event)?,
                }
            }
        }
        let now_us = u64::try_from(self.began.elapsed().as_micros()).expect("a bench takes minutes");
        for room in &mut self.receivers {
            while let Some(event) = room.poll() {
                let Event::Raw { payload, .. } = event else {
                    unless_closed(&event)?;
                    continue;
                };
                if let Some((sent, [1, ..])) = payload.split_first_chunk::<8>() {
                    let latency_us = now_us.saturating_sub(u64::from_be_bytes(*sent));
                    self.tally.arrived(u32::try_from(latency_us).unwrap_or(u32::MAX));
                }
            }
        }
        Ok(())
    }
}

fn unless_closed(event: &Event) -> anyhow::Result<()> {
    match event {
        Event::Closed(why) => bail!("a member was lost: {why}"),
        _ => Ok(()),
    }
}

/// Polls rooms until each has its seat.
fn furnished<K>(builder: RoomBuilder<K>, server: &Server, address: &str) -> RoomBuilder<K> {
    let builder = builder.server(address).registry(server.registry()).transport(TransportPreference::Quic);
    builder.channel(CHANNEL, Lane::Unreliable)
}

fn wait_for_seats(rooms: &mut [Room]) -> anyhow::Result<()> {
    wait_until(rooms, "a member got no seat", |room| room.local_id().is_some())
}

/// Polls rooms until each has so many players: before that messages have no receivers.
fn wait_for_players(rooms: &mut [Room], count: usize) -> anyhow::Result<()> {
    wait_until(rooms, "a member was not told of all others", |room| room.players().len() >= count)
}

fn wait_until(rooms: &mut [Room], otherwise: &str, is_there: impl Fn(&Room) -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !rooms.iter().all(&is_there) {
        ensure!(began.elapsed() < PATIENCE, "{otherwise} within {PATIENCE:?}");
        for room in rooms.iter_mut() {
            while let Some(event) = room.poll() {
                unless_closed(&event)?;
            }
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_has_three_megabits_per_second() {
        assert!((2_900_000..=3_100_000).contains(&bits_per_second()), "{}", bits_per_second());
    }
}
