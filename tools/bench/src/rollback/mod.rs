//! Cost of a rollback: a world goes back eight steps with every step, beside ggrs, driven the same way by its
//! sync-test session, in turns on the same core.

mod scene;

use super::args::RollbackArgs;
use super::machine::Cores;
use super::peers::{built, how_to_build};
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::{Context, ensure};
use parlor_proto::Tick;
use parlor_sync::rollback::{Config, Request, Rollback, States};
use scene::{DISTANCE, PLAYERS, Turn};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    entities: u32,
    library: &'static str,
    /// Median of all turns; a frame is a step, the state that it came to saved, and that state's hash.
    frames_per_second: f64,
    /// Of the fastest turn.
    frames_per_second_max: f64,
    ns_per_frame: f64,
    frames: u64,
}

/// Runs the bench.
///
/// # Errors
/// A library did not do what it was asked, or both did not come to the same world.
pub(crate) fn run(args: &RollbackArgs) -> anyhow::Result<()> {
    // The peer inherits the core, so both have the same.
    let cores = Cores::take()?;
    let peer = built("target/release/ggrs-rollback");
    let mut rows = Vec::new();
    for entities in &args.entities {
        rows.extend(measure(args, *entities, peer.as_deref())?);
    }
    let mut notes = vec![format!("processor time, in turns on core {}", cores.generator_core)];
    if peer.is_none() {
        notes.push(how_to_build("ggrs"));
    }
    let setting = json!({
        "bytes_per_entity": scene::ENTITY_BYTES, "rollback_steps": DISTANCE,
        "steps": args.steps, "turns": args.turns, "players": PLAYERS, "core": cores.generator_core,
    });
    print("rollback", args.common.json, &setting, &rows, &notes, &table(&rows))
}

/// Measures this library and the peer in turns.
fn measure(args: &RollbackArgs, entities: u32, peer: Option<&Path>) -> anyhow::Result<Vec<Row>> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..args.turns {
        tell(&format!("{entities} entities, turn {}", turn + 1));
        ours.push(parlor(args, entities)?);
        if let Some(program) = peer {
            theirs.push(ggrs(program, args, entities)?);
        }
    }
    let differs = ours.iter().chain(&theirs).find(|turn| turn.hash != ours[0].hash);
    ensure!(differs.is_none(), "two turns came to different worlds: {:?} and {differs:?}", ours[0]);
    let measured = [("parlor", ours), ("ggrs", theirs)].into_iter().filter(|(_, turns)| !turns.is_empty());
    Ok(measured.map(|(library, turns)| row(entities, library, &turns)).collect())
}

/// One turn of this library.
fn parlor(args: &RollbackArgs, entities: u32) -> anyhow::Result<Turn> {
    // The peer keeps as many states.
    let config = Config { window: DISTANCE, ..Config::sync_test(u8::try_from(PLAYERS)?, Tick(0), DISTANCE) };
    let (mut session, mut states) = (Rollback::new(config)?, States::new(&config));
    let mut world = scene::world(usize::try_from(entities)?, args.common.seed);
    let (mut frames, mut began) = (0, scene::cpu_ns()?);
    for step in 0..WARM_STEPS + args.steps {
        if step == WARM_STEPS {
            (frames, began) = (0, scene::cpu_ns()?);
        }
        for player in 0..PLAYERS {
            session.add_input(u8::try_from(player)?, &[scene::pressed(player, step.into())])?;
        }
        ensure!(session.step(Tick(step)), "a step is due with each target");
        while let Some(request) = session.poll_request() {
            match request {
                Request::Save { tick } => {
                    states.save(tick, &world);
                    session.saved(tick, scene::hash(&world));
                    frames += 1;
                }
                Request::Load { tick } => world.clone_from(states.load(tick).context("it was not saved")?),
                Request::Advance { inputs, .. } => {
                    let input = |player: usize| inputs[player].bytes().first().copied().unwrap_or(0);
                    scene::step(&mut world, std::array::from_fn(input));
                }
            }
        }
        ensure!(session.poll_event().is_none(), "the world is not deterministic");
    }
    let cpu_ns = scene::cpu_ns()? - began;
    let turn = Turn { frames, cpu_ns, hash: scene::hash(&world) };
    let expected = u64::from(args.steps) * u64::from(DISTANCE);
    ensure!(turn.frames == expected, "{} frames instead of {expected}", turn.frames);
    Ok(turn)
}

/// Steps before anything is measured.
const WARM_STEPS: u32 = 32;

/// One turn of the peer, in a process of its own.
fn ggrs(program: &Path, args: &RollbackArgs, entities: u32) -> anyhow::Result<Turn> {
    let mut command = Command::new(program);
    command.args([entities.to_string(), args.steps.to_string(), args.common.seed.to_string()]);
    command.arg(WARM_STEPS.to_string()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("ggrs-rollback cannot be started")?;
    ensure!(output.status.success(), "ggrs-rollback failed: its words stand above");
    serde_json::from_slice(&output.stdout).context("ggrs-rollback says nothing")
}

#[expect(clippy::cast_precision_loss, reason = "turns of seconds stay far below 2⁵³ ns")]
fn row(entities: u32, library: &'static str, turns: &[Turn]) -> Row {
    let mut ns: Vec<f64> = turns.iter().map(|turn| turn.cpu_ns as f64 / turn.frames.max(1) as f64).collect();
    ns.sort_by(f64::total_cmp);
    let median = ns[ns.len() / 2];
    Row {
        entities,
        library,
        frames_per_second: 1e9 / median,
        frames_per_second_max: 1e9 / ns[0],
        ns_per_frame: median,
        frames: turns.iter().map(|turn| turn.frames).sum(),
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("entities", |row| row.entities.to_string()),
            ("library", |row| row.library.to_owned()),
            ("frames/s", |row| figure(row.frames_per_second, 0)),
            ("fastest", |row| figure(row.frames_per_second_max, 0)),
            ("ns/frame", |row| figure(row.ns_per_frame, 0)),
            ("frames", |row| row.frames.to_string()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CommonArgs;

    #[test]
    fn the_world_is_what_its_steps_make_of_it_however_often_they_are_run_again() {
        let common = CommonArgs { json: false, seed: 3 };
        let args = RollbackArgs { entities: vec![10], steps: 40, turns: 1, common };
        let turn = parlor(&args, 10).expect("it runs");
        let mut world = scene::world(10, 3);
        for step in 0..u64::from(WARM_STEPS + 40) {
            scene::step(&mut world, std::array::from_fn(|player| scene::pressed(player, step)));
        }
        assert_eq!((turn.frames, turn.hash), (320, scene::hash(&world)));
    }
}
