//! Host losses, and their results.

use super::PLAYERS;
use super::game::{Game, SILENCE_MS};
use anyhow::{Context, ensure};
use parlor_impair::Rng;
use parlor_sim::Link;
use serde::Serialize;

/// What came of a death.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Death {
    pub(super) pause_ms: u32,
    pub(super) inputs_lost: u64,
    pub(super) split_brains: u64,
    pub(super) migrations: u64,
}

/// What came of a host that stood still for half a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Hitch {
    /// How long the others saw no state.
    pub(super) pause_ms: u32,
    /// How long after its end it was a player like any other; `None` if it is the host still.
    pub(super) is_player_after_ms: Option<u32>,
}

const HITCH_MS: u64 = 500;
/// Seeds of the rooms of one seed of the bench.
const ROOMS_PER_SEED: u64 = 1 << 32;

fn room_seed(seed: u64, number: u64) -> u64 {
    seed.wrapping_mul(ROOMS_PER_SEED).wrapping_add(number)
}

/// The host of a room dies, without a goodbye.
pub(super) fn death(link: Link, silence_ms: u64, seed: u64, number: u64) -> anyhow::Result<Death> {
    let seed = room_seed(seed, number);
    let mut game = Game::gather(PLAYERS, link, silence_ms, seed)?;
    // At any time within a step.
    game.sim.run_for(Rng::new(seed).below(40));
    game.sim.crash(game.peers[0]);
    game.sim.run_for(2_500);
    ensure!(game.is_host(1), "room {number}: the second player is not the host");
    let log = game.log.borrow();
    let pauses = (1..PLAYERS).map(|player| log.pause(player, 0, 1));
    let pauses = pauses
        .collect::<Option<Vec<_>>>()
        .with_context(|| format!("room {number}: a player saw no new host"))?;
    let pause = pauses.into_iter().max().context("there are players")?;
    Ok(Death {
        pause_ms: u32::try_from(pause.as_millis())?,
        inputs_lost: log.inputs_lost(),
        split_brains: log.split_brains(),
        migrations: game.migrations(),
    })
}

/// How often the part of a host passes on that is there all the time, on a bad link, in so many minutes.
pub(super) fn quiet(minutes: u32, seed: u64) -> anyhow::Result<u64> {
    // Both ways together: 80 to 120 ms.
    let link = Link::quic().latency_ms(40).jitter_ms(20).loss(50);
    let mut game = Game::gather(3, link, SILENCE_MS, room_seed(seed, 0))?;
    game.sim.run_for(u64::from(minutes) * 60_000);
    Ok(game.migrations())
}

/// The game loop of a host stands still; its transport does not.
pub(super) fn hitch_of_game(seed: u64) -> anyhow::Result<Hitch> {
    hitch(seed, |game, is_still| game.sim.stall(game.peers[0], is_still))
}

/// Nothing comes from a host's process, or gets to it.
pub(super) fn hitch_of_process(seed: u64) -> anyhow::Result<Hitch> {
    hitch(seed, |game, is_still| game.sim.silence(game.peers[0], is_still))
}

fn hitch(seed: u64, mut stand_still: impl FnMut(&mut Game, bool)) -> anyhow::Result<Hitch> {
    let mut game = Game::gather(PLAYERS, Link::quic().latency_ms(25), SILENCE_MS, room_seed(seed, 0))?;
    stand_still(&mut game, true);
    game.sim.run_for(HITCH_MS);
    stand_still(&mut game, false);
    let mut is_player_after_ms = None;
    for ms in 0..2_000 {
        game.sim.run_for(1);
        if game.migrations() > 0 && !game.is_host(0) {
            is_player_after_ms.get_or_insert(ms + 1);
        }
    }
    ensure!(game.host().is_some(), "there is no host");
    let log = game.log.borrow();
    let pause = match is_player_after_ms {
        Some(_) => (1..PLAYERS).filter_map(|player| log.pause(player, 0, 1)).max(),
        None => Some(log.longest_pause()),
    };
    let pause = pause.context("nobody saw anything")?;
    Ok(Hitch { pause_ms: u32::try_from(pause.as_millis())?, is_player_after_ms })
}

/// Hosts die, are cut off and come back, in an order that is drawn.
pub(super) fn partitions(seed: u64, number: u64) -> anyhow::Result<Death> {
    let seed = room_seed(seed, number);
    let mut rng = Rng::new(seed);
    let link =
        Link::quic().latency_ms(5 + rng.below(70)).jitter_ms(rng.below(10)).loss(rng.pick(&[0, 20, 50]));
    let mut game = Game::gather(4, link, SILENCE_MS, seed)?;
    for _ in 0..3 {
        let alive: Vec<usize> =
            (0..game.peers.len()).filter(|player| !game.sim.is_crashed(game.peers[*player])).collect();
        let host = game.host().filter(|_| rng.below(4) > 0);
        let victim = game.peers[host.unwrap_or_else(|| rng.pick(&alive))];
        match rng.below(4) {
            0 if alive.len() > 2 => game.sim.crash(victim),
            1 => game.sim.cut(victim),
            _ => {
                game.sim.silence(victim, true);
                game.sim.run_for(100 + rng.below(900));
                game.sim.silence(victim, false);
            }
        }
        game.sim.run_for(rng.below(900));
    }
    game.sim.run_for(3_000);
    let log = game.log.borrow();
    let (inputs_lost, split_brains) = (log.inputs_lost(), log.split_brains());
    Ok(Death { pause_ms: 0, inputs_lost, split_brains, migrations: game.migrations() })
}
