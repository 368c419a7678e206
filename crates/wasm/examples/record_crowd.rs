//! Records what a hub sends to a member that sees 1,000 entities which all move in every tick, for `bench/crowd.mjs`:
//! `cargo run -p parlor-wasm --example record_crowd -- FILE`.
//!
//! ```text
//!  record   kind: u8, 0 a packet that comes, 1 a frame, 2 the link stands · carrier: u8 · 6 bytes of zeros
//!           now in µs: f64 · length: u64 · bytes
//! ```

use parlor_client_core::{Mode, Options, RoomCore, Wish};
use parlor_hub::{Config, Hub, Origin, Output};
use parlor_proto::random::SplitMix64;
use parlor_proto::{Carrier, ConnectionId, EntityId, Instant, LinkKind, Packet, TickRate};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::io;
use std::sync::Arc;
use std::time::Duration;

const WALKERS: u64 = 1_000;
const FRAME: Duration = Duration::from_micros(16_667);
const TIME: Duration = Duration::from_secs(20);

struct Walker {
    position: [f32; 2],
    heading: f32,
}
replicated!(Walker as "walker" => {
    position: Kind::vector2(-512.0, 512.0, 1.0 / 64.0),
    heading: Kind::angle(256),
});

/// A room of a game, and the connection that it has.
struct End {
    core: RoomCore,
    connection: ConnectionId,
}

impl End {
    fn new(hub: &mut Hub, options: Options, number: u64, now: Instant) -> Self {
        let (mut core, connection) = (RoomCore::new(options, Mode::Relay), ConnectionId(number));
        hub.handle_connected(connection, LinkKind::WebSocket, Origin(number << 16), now);
        core.connected(LinkKind::WebSocket, now);
        End { core, connection }
    }

    /// One frame: what a page does in it.
    fn frame(&mut self, hub: &mut Hub, now: Instant, mut step: impl FnMut(&mut RoomCore)) {
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle_timeout(now);
        }
        while self.core.poll(now).is_some() {}
        while self.core.tick(now) {
            step(&mut self.core);
        }
        while let Some(packet) = self.core.poll_packet(now) {
            hub.handle_packet(self.connection, packet, now);
        }
    }
}

fn main() -> io::Result<()> {
    let file = std::env::args().nth(1).ok_or_else(|| io::Error::other("name the file to write"))?;
    std::fs::write(file, record())
}

fn record() -> Vec<u8> {
    let schema = Schema::builder().replicate::<Walker>().build().expect("it is valid");
    let schema = Some(Arc::new(schema));
    let code = "CROWD".parse().expect("it is a code");
    let tick_rate = TickRate::new(20).expect("it is a rate");
    let mut hub = Hub::new(Config { state_bytes_per_second: 4 << 20, ..Config::new([1; 32]) });
    let mut now = Instant::from_millis(1_000);
    let intent = Wish::Host { code: Some(code), max_players: 4, tick_rate, dedicated: false };
    let host = Options { schema: schema.clone(), intent, ..Options::host("crowd") };
    let mut host = End::new(&mut hub, host, 1, now);
    let (mut walkers, mut seen, mut out) = (Vec::new(), None::<End>, Vec::new());
    let until = now + TIME;
    while now < until {
        now += FRAME;
        host.frame(&mut hub, now, |core| walk(core, &mut walkers, now));
        if host.core.is_connected() && seen.is_none() {
            let member = Options { schema: schema.clone(), ..Options::join("crowd", code) };
            seen = Some(End::new(&mut hub, member, 2, now));
            put(&mut out, 2, None, now);
        }
        if let Some(member) = &mut seen {
            member.frame(&mut hub, now, |_| ());
            put(&mut out, 1, None, now);
        }
        hub.handle_timeout(now);
        hub.flush(now);
        while let Some(output) = hub.poll_output() {
            let Output::Packet { connection, packet } = output else { continue };
            match &mut seen {
                Some(member) if member.connection == connection => {
                    put(&mut out, 0, Some(&packet), now);
                    member.core.handle_packet(packet, now);
                }
                _ => host.core.handle_packet(packet, now),
            }
        }
    }
    out
}

/// Lets all walkers walk at the host; each turns now and then.
fn walk(core: &mut RoomCore, walkers: &mut Vec<(EntityId, Walker)>, now: Instant) {
    let tick = u64::from(core.tick_number().unwrap_or_default().0);
    let mut world = core.world(now).expect("it is open");
    while (walkers.len() as u64) < WALKERS {
        let (entity, drawn) =
            (world.spawn(None).expect("there is room"), SplitMix64::nth(7, walkers.len() as u64));
        let walker =
            Walker { position: [part(drawn) * 512.0, part(drawn >> 20) * 512.0], heading: part(drawn >> 40) };
        walkers.push((entity, walker));
    }
    for (number, (entity, walker)) in (0..).zip(walkers) {
        let drawn = SplitMix64::nth(11 + number, tick);
        if drawn.is_multiple_of(16) {
            walker.heading += part(drawn >> 8);
        }
        let ([x, y], pace) = (walker.position, 0.25 + part(drawn >> 30) / 8.0);
        let to = [x + walker.heading.cos() * pace, y + walker.heading.sin() * pace];
        walker.position = to.map(|at| if at.abs() > 512.0 { -at } else { at });
        world.insert(*entity, walker).expect("it fits");
    }
}

/// A number from −1 to 1 of the lowest 20 bits.
fn part(bits: u64) -> f32 {
    (bits & 0xf_ffff) as f32 / 524_288.0 - 1.0
}

fn put(out: &mut Vec<u8>, kind: u8, packet: Option<&Packet>, now: Instant) {
    let carrier = packet.map_or(0, |packet| match packet.carrier {
        Carrier::Datagram => 1,
        Carrier::Stream => 2,
        Carrier::Isolated => 3,
    });
    let bytes = packet.map(|packet| &packet.bytes[..]).unwrap_or_default();
    out.extend([kind, carrier, 0, 0, 0, 0, 0, 0]);
    out.extend((now.as_micros() as f64).to_le_bytes());
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}
