//! Members draw others evenly, and with little delay.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Options, RoomCore};
use parlor_proto::Instant;
use parlor_sim::{Link, Sim};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::sync::Arc;
use std::time::Duration;

/// An entity that never stands and never turns back, at 2 to 8 m/s.
#[derive(Clone, Debug, PartialEq)]
struct Mover {
    x: f32,
}
replicated!(Mover as "mover" => { x: Kind::float(0.0, 1_000.0, 1.0 / 1_024.0) });

/// Where it is `s` seconds after the room opened: accelerations of up to 9 m/s².
#[allow(clippy::cast_possible_truncation, reason = "a place is drawn as f32")]
fn place(s: f64) -> f32 {
    (5.0 * s + (3.0 * s).sin()) as f32
}

/// Slower than a quarter of its slowest counts as standing.
const STANDING_M_PER_S: f32 = 0.5;
const MINUTE_MS: u64 = 60_000;

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Mover>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), ..options }
}

/// One step of the game, at the host.
fn step(room: &mut RoomCore, now: Instant) {
    let s = f64::from(room.tick_number().unwrap().0) / 30.0;
    let mut world = room.world(now).unwrap();
    let mover = match world.entities().first() {
        Some(mover) => *mover,
        None => world.spawn(None).unwrap(),
    };
    world.insert(mover, &Mover { x: place(s) }).unwrap();
}

/// A guest's drawing in a minute of frames.
#[derive(Debug, Default)]
struct Drawn {
    frames: u32,
    /// Frames in which the mover stood, or went back.
    faults: u32,
    /// The render delay in each, in ms.
    delays_ms: Vec<f64>,
    /// The jitter of updates by then, in ms.
    jitters_ms: Vec<f64>,
}

fn p95(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() * 95 / 100]
}

/// Draws a minute at 60 Hz over `links`: the host's and the guest's.
fn minute(seed: u64, [host_link, guest_link]: [Link; 2]) -> Drawn {
    let mut sim = Sim::new(seed);
    let host = sim.host(options(Options::host("tanks")), host_link);
    sim.play(host, step);
    let code = sim.code(host);
    let guest = sim.enter(options(Options::join("tanks", code)), guest_link);
    sim.run_for(5_000);
    let (mut drawn, mut before) = (Drawn::default(), None);
    for frame in 0..MINUTE_MS * 60 / 1_000 {
        // Frames of 16 and 17 ms that make 60 a second.
        let length_ms = (frame + 1) * 1_000 / 60 - frame * 1_000 / 60;
        sim.run_for(length_ms);
        let x = sim.act(guest, |room, now| {
            let mut world = room.world(now).unwrap();
            let mover = world.entities()[0];
            world.interpolated_component::<Mover>(mover).unwrap().unwrap().x
        });
        let seconds = Duration::from_millis(length_ms).as_secs_f32();
        drawn.faults += u32::from(before.is_some_and(|before| x - before < STANDING_M_PER_S * seconds));
        drawn.frames += 1;
        let measured = sim.room(guest).diagnostics();
        drawn.delays_ms.push(measured.buffer_delay_ms);
        drawn.jitters_ms.push(measured.jitter_ms);
        before = Some(x);
    }
    drawn
}

/// The guest's link: round trip, one-way jitter, loss per 1,000; and whether the host's link is equally bad.
struct Case {
    rtt_ms: u64,
    jitter_ms: u64,
    loss: u32,
    is_host_impaired: bool,
}

impl Case {
    fn links(&self) -> [Link; 2] {
        let bad = Link::quic().latency_ms(self.rtt_ms / 4).jitter_ms(self.jitter_ms).loss(self.loss);
        if self.is_host_impaired {
            return [bad, bad];
        }
        [Link::quic().latency_ms(0), bad.latency_ms(self.rtt_ms / 2)]
    }

    /// One way adds a uniformly distributed delay up to the jitter; two ways add the sum of two.
    fn jitter_p95_ms(&self) -> f64 {
        let part = if self.is_host_impaired { 2.0 - (2.0f64 * 0.05).sqrt() } else { 0.95 };
        self.jitter_ms as f64 * part
    }
}

/// Minimum part of frames without a fault.
const EVEN: f64 = 0.995;
/// A host's step runs in the first frame after it is due. When both coincide, it is sometimes this frame and
/// sometimes the next: that is jitter of up to one frame.
const HOST_FRAME_MS: f64 = 1_000.0 / 60.0;
/// Tolerance for clocks and rounding.
const SLACK_MS: f64 = 1.0;

fn others_move_evenly(rtt_ms: u64) {
    let interval_ms = 1_000.0 / 30.0;
    for (index, (jitter_ms, loss)) in [(0, 0), (0, 50), (10, 20), (40, 0), (40, 50)].into_iter().enumerate() {
        for is_host_impaired in [false, true] {
            // One bad case with both links is enough: the distance changes nothing there.
            if is_host_impaired && rtt_ms != 80 {
                continue;
            }
            let seed = rtt_ms * 100 + index as u64 * 2 + u64::from(is_host_impaired);
            let case = Case { rtt_ms, jitter_ms, loss, is_host_impaired };
            let drawn = minute(seed, case.links());
            let (delay_ms, jitter_ms) = (p95(&drawn.delays_ms), p95(&drawn.jitters_ms));
            let most_ms = interval_ms + 2.0 * jitter_ms;
            let even = 1.0 - f64::from(drawn.faults) / f64::from(drawn.frames);
            let what = format!(
                "seed {seed}: {rtt_ms} ms, jitter {} ms, loss {loss}/1000, host impaired {is_host_impaired}: {:.2}% even, delay p95 {delay_ms:.1} of {most_ms:.1} ms, jitter p95 {jitter_ms:.1} ms",
                case.jitter_ms,
                even * 100.0
            );
            assert!(even >= EVEN, "{what}");
            assert!(delay_ms <= most_ms + SLACK_MS, "{what}");
            assert!(jitter_ms <= case.jitter_p95_ms() + HOST_FRAME_MS + SLACK_MS, "{what}");
        }
    }
}

#[test]
fn others_move_evenly_and_are_drawn_no_later_than_that_takes_at_0_ms() {
    others_move_evenly(0);
}

#[test]
fn others_move_evenly_and_are_drawn_no_later_than_that_takes_at_40_ms() {
    others_move_evenly(40);
}

#[test]
fn others_move_evenly_and_are_drawn_no_later_than_that_takes_at_80_ms() {
    others_move_evenly(80);
}

#[test]
fn others_move_evenly_and_are_drawn_no_later_than_that_takes_at_150_ms() {
    others_move_evenly(150);
}
