//! The rooms that are counted: members and hub are the real ones, on simulated links.

use super::Played;
use super::args::{Play, PlayRoomArgs, RoomLink};
use crate::host_world::{move_walkers, schema};
use anyhow::Context;
use bytes::Bytes;
use parlor::Recipient;
use parlor_client_core::{Options, RoomCore, Wish};
use parlor_hub::{Config, Stats};
use parlor_proto::{ChannelId, Instant, Lane, RoomCode, TickRate, limits};
use parlor_sim::{APP, Link, Sim};
use std::cell::Cell;
use std::rc::Rc;

/// Members of a room.
pub(super) const MEMBERS: u16 = 8;
/// Steps of a room, each second.
pub(super) const RATE_HZ: u16 = 30;
/// Entities of a host's world.
const WALKERS: usize = 24;
/// One-way latency and jitter: inputs of different members do not arrive together.
const LATENCY_MS: u64 = 15;
const JITTER_MS: u64 = 8;
/// How long members play before anything counts, so that links are measured and baselines acknowledged.
const WARM_UP_MS: u64 = 5_000;
/// The channel of messages.
const CHANNEL: u8 = limits::APP_CHANNEL_FIRST;
/// Bytes of a message.
const MESSAGE_BYTES: usize = 32;

/// Plays in a room, and prints what its hub did.
///
/// # Errors
/// A member does not get its seat, or an action fails.
pub(crate) fn play(args: &PlayRoomArgs) -> anyhow::Result<()> {
    let link = match args.link {
        RoomLink::Quic => Link::quic(),
        RoomLink::Websocket => Link::websocket(),
    };
    let link = link.latency_ms(LATENCY_MS).jitter_ms(JITTER_MS);
    let mut sim = Sim::with_hub(args.seed, Config::new([7; 32]));
    let failures = Rc::new(Cell::new(0_u64));
    let mut code = None;
    for _ in 0..MEMBERS {
        let peer = match code {
            None => sim.host(options(None)?, link),
            Some(code) => {
                let peer = sim.enter(options(Some(code))?, link);
                sim.run_until(30_000, "a member has its seat", |sim| sim.room(peer).player_count() > 0);
                peer
            }
        };
        code = Some(sim.code(peer));
        let (play, failures) = (args.play, Rc::clone(&failures));
        sim.play(peer, move |core, now| {
            let is_done = step(core, play, now).is_ok();
            failures.set(failures.get() + u64::from(!is_done));
        });
    }
    sim.run_for(WARM_UP_MS);
    let before = sim.hub().stats();
    failures.set(0);
    sim.run_for(u64::from(args.seconds) * 1_000);
    anyhow::ensure!(failures.get() == 0, "{} steps of the game failed", failures.get());
    parlor_terminal::print::print_json(&played(&before, &sim.hub().stats()))
}

/// Opens a room, or joins the one with this code.
fn options(code: Option<RoomCode>) -> anyhow::Result<Options> {
    let mut options = code.map_or_else(|| Options::host(APP), |code| Options::join(APP, code));
    if code.is_none() {
        let tick_rate = TickRate::new(RATE_HZ).context("rooms have this rate")?;
        options.intent = Wish::Host { code: None, max_players: MEMBERS, tick_rate, dedicated: false };
    }
    options.schema = Some(schema()?);
    options.lead = true;
    options.channel(CHANNEL, Lane::Unreliable)?;
    Ok(options)
}

/// One step of one member.
fn step(core: &mut RoomCore, play: Play, now: Instant) -> anyhow::Result<()> {
    let tick = core.tick_number().context("a step has a number")?.0;
    match play {
        Play::Messages => {
            let message = Bytes::from_static(&[7; MESSAGE_BYTES]);
            core.send_raw(ChannelId(CHANNEL), Recipient::Others, message, false, now)?;
        }
        Play::World => {
            core.send_input(&tick)?;
            if core.is_host() {
                core.inputs::<u32>()?;
                move_walkers(core, WALKERS, tick, now)?;
            }
        }
    }
    Ok(())
}

fn played(before: &Stats, after: &Stats) -> Played {
    Played {
        messages_relayed: after.messages_relayed - before.messages_relayed,
        packets_sent: after.packets_sent - before.packets_sent,
        packets_received: after.packets_received - before.packets_received,
    }
}
