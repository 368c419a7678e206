//! Cost of a room beside many others, in instructions counted by valgrind, which a shared machine does not
//! disturb. A separate process drives the hub without sockets, once for some ticks and once for twice as
//! many; the difference removes the set-up.

use super::args::{DriveHubArgs, RoomsArgs};
use super::member::{Counted, Wish, speech};
use super::table::{Table, figure};
use super::valgrind;
use crate::output::{print, tell};
use anyhow::{Context, bail, ensure};
use parlor_hub::{Config, Hub, Origin, Output};
use parlor_proto::session::{Event, Session};
use parlor_proto::{ConnectionId, Instant, LinkKind, Packet, RoomCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;

/// Members of each room: a turn game for two.
const MEMBERS: u16 = 2;
/// How long a tick lasts: five each second.
const TICK: Duration = Duration::from_millis(200);

/// One row.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    rooms: u32,
    instructions_per_room_and_tick: f64,
    ratio_to_first_row: f64,
}

/// Runs the bench.
///
/// # Errors
/// There is no valgrind, or it could not count.
pub(crate) fn run(args: &RoomsArgs) -> anyhow::Result<()> {
    let mut counts = Vec::new();
    for rooms in &args.rooms {
        tell(&format!("{rooms} rooms"));
        let [once, twice] = [args.ticks, 2 * args.ticks].map(|ticks| count(*rooms, 2 * args.ticks, ticks));
        counts.push((*rooms, once?, twice?));
    }
    let rows = rows(&counts, args.ticks);
    let table = Table::of(
        &rows,
        &[
            ("rooms", |row| row.rooms.to_string()),
            ("instructions/room and tick", |row| figure(row.instructions_per_room_and_tick, 0)),
            ("ratio to the first row", |row| figure(row.ratio_to_first_row, 3)),
        ],
    );
    let setting = json!({ "members_per_room": MEMBERS, "tick_ms": TICK.as_millis(), "ticks": args.ticks });
    print("rooms", args.json, &setting, &rows, &[], &table)
}

/// Each row from the instructions of `ticks` and of twice as many.
fn rows(counts: &[(u32, u64, u64)], ticks: u32) -> Vec<Row> {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2⁵³ instructions in minutes of valgrind")]
    let cost = |&(rooms, once, twice): &(u32, u64, u64)| {
        twice.saturating_sub(once) as f64 / f64::from(rooms) / f64::from(ticks)
    };
    let first = counts.first().map_or(f64::NAN, cost);
    let row = |count: &(u32, u64, u64)| Row {
        rooms: count.0,
        instructions_per_room_and_tick: cost(count),
        ratio_to_first_row: cost(count) / first,
    };
    counts.iter().map(row).collect()
}

/// The instructions of a process that drives a hub.
fn count(rooms: u32, prepare: u32, ticks: u32) -> anyhow::Result<u64> {
    let tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    let mut options = vec!["drive-hub".to_owned()];
    for (option, value) in [("--rooms", rooms), ("--prepare", prepare), ("--ticks", ticks)] {
        options.extend([option.to_owned(), value.to_string()]);
    }
    let (driven, complaints): (Driven, String) = valgrind::run(&tool, &options)?;
    let expected = u64::from(rooms) * u64::from(ticks) * u64::from(MEMBERS * (MEMBERS - 1));
    let relayed = driven.messages_relayed;
    ensure!(
        relayed == expected,
        "the hub relayed {relayed} messages of {expected}: there is nothing to compare"
    );
    instructions(&complaints).context("valgrind does not say how many instructions it counted")
}

/// The number behind `I refs:`, which has commas in it.
fn instructions(complaints: &str) -> Option<u64> {
    let count = complaints.lines().find_map(|line| {
        let (head, count) = line.split_once("refs:")?;
        head.split_whitespace().any(|word| word == "I").then_some(count)
    })?;
    count.trim().replace(',', "").parse().ok()
}

/// What the process that drives a hub says.
#[derive(Debug, Serialize, Deserialize)]
struct Driven {
    messages_relayed: u64,
}

/// Drives a hub: the hidden command that is counted.
///
/// # Errors
/// A member is not let in.
pub(crate) fn drive(args: &DriveHubArgs) -> anyhow::Result<()> {
    let rooms_max = usize::try_from(args.rooms).context("more rooms than this machine can count")?;
    let mut stand =
        Stand { hub: Hub::new(Config { rooms_max, ..Config::new([7; 32]) }), members: Vec::new() };
    let mut now = Instant::from_millis(1_000);
    for room in 0..args.rooms {
        stand.fill_room(room, args.prepare, now)?;
    }
    let before = stand.hub.stats().messages_relayed;
    for _ in 0..args.ticks {
        for room in 0..args.rooms {
            stand.turn(room, now + TICK * room / args.rooms);
        }
        now += TICK;
    }
    let messages_relayed = stand.hub.stats().messages_relayed - before;
    parlor_terminal::print::print_json(&Driven { messages_relayed })
}

/// A hub, and for each of its members the packets that it is going to send.
struct Stand {
    hub: Hub,
    members: Vec<VecDeque<Packet>>,
}

impl Stand {
    /// Lets the members of a room in, and makes their packets, so that making them is not part of any tick.
    fn fill_room(&mut self, room: u32, prepare: u32, now: Instant) -> anyhow::Result<()> {
        let mut code = None;
        for _ in 0..MEMBERS {
            let connection = ConnectionId(self.members.len() as u64);
            let wish = match code {
                None => Wish::create(room, MEMBERS),
                Some(code) => Wish::join(room, MEMBERS, code),
            };
            let hello = wish.into_hello().context("a wish for a room has a hello")?;
            self.hub.handle_connected(connection, LinkKind::Quic, Origin::LOCAL, now);
            let mut session = Session::client(hello, LinkKind::Quic, now);
            code = Some(self.greet(&mut session, connection, now)?);
            self.members.push(speeches(&mut session, prepare, now)?);
        }
        Ok(())
    }

    /// Carries packets between a session and the hub until the session has its seat.
    fn greet(
        &mut self,
        session: &mut Session,
        connection: ConnectionId,
        now: Instant,
    ) -> anyhow::Result<RoomCode> {
        while let Some(packet) = session.poll_packet(now) {
            self.hub.handle_packet(connection, packet, now);
        }
        self.hub.flush(now);
        let mut code = None;
        while let Some(output) = self.hub.poll_output() {
            let Output::Packet { connection: to, packet } = output else { continue };
            if to == connection {
                session.handle_packet(packet, now).context("the hub breaks the protocol")?;
            }
        }
        while let Some(event) = session.poll_event() {
            match event {
                Event::Welcome(welcome) => code = Some(welcome.code),
                Event::Rejected(away) => bail!("a member is not let in: {away:?}"),
                _ => {}
            }
        }
        code.context("the hub does not answer a hello")
    }

    /// One room's members send what they have for this tick, and the hub does what comes of it.
    fn turn(&mut self, room: u32, now: Instant) {
        let first = usize::try_from(room).expect("the room was counted before") * usize::from(MEMBERS);
        self.hub.handle_timeout(now);
        for member in first..first + usize::from(MEMBERS) {
            if let Some(packet) = self.members[member].pop_front() {
                self.hub.handle_packet(ConnectionId(member as u64), packet, now);
            }
        }
        self.hub.flush(now);
        while self.hub.poll_output().is_some() {}
    }
}

/// One packet with a message for each tick.
fn speeches(session: &mut Session, ticks: u32, now: Instant) -> anyhow::Result<VecDeque<Packet>> {
    // What it has to say about its joining is none of a tick's packets.
    while session.poll_packet(now).is_some() {}
    let mut packets = VecDeque::new();
    for _ in 0..ticks {
        session.send(speech(now, Counted::No))?;
        packets.push_back(session.poll_packet(now).context("a message makes a packet")?);
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_falls_out_of_the_difference() {
        let rows = rows(&[(10, 5_100, 10_100), (100, 70_000, 125_000)], 5);
        assert_eq!((rows[0].instructions_per_room_and_tick, rows[0].ratio_to_first_row), (100.0, 1.0));
        assert!((rows[1].ratio_to_first_row - 1.1).abs() < 1e-9, "{rows:?}");
    }

    #[test]
    fn the_count_of_instructions_is_found() {
        let said = "==7== Cachegrind, a cache profiler\n==7== \n==7== I   refs:      1,234,567\n";
        assert_eq!(instructions(said), Some(1_234_567));
        assert_eq!(instructions("==7== I refs: 12"), Some(12));
        assert_eq!(instructions("==7== D refs: 12"), None);
    }

    #[test]
    fn a_driven_hub_relays_every_message() {
        let mut stand = Stand { hub: Hub::new(Config::new([7; 32])), members: Vec::new() };
        let now = Instant::from_millis(1_000);
        (0..3).for_each(|room| stand.fill_room(room, 4, now).expect("there is room"));
        for tick in 0..4 {
            (0..3).for_each(|room| stand.turn(room, now + TICK * tick));
        }
        assert_eq!(stand.hub.stats().messages_relayed, 3 * 4 * 2);
        assert!(stand.members.iter().all(VecDeque::is_empty));
    }
}
