//! ggrs's sync-test session over the world of `parlor-bench rollback`: `ggrs-rollback ENTITIES STEPS SEED WARM`.

#[path = "../../../../tools/bench/src/rollback/scene.rs"]
mod scene;

use ggrs::{Config, GgrsRequest, PlayerType, PredictRepeatLast, SessionBuilder};
use scene::{DISTANCE, PLAYERS, Turn};
use std::error::Error;

#[derive(Debug)]
struct World;

impl Config for World {
    type Input = u8;
    type InputPredictor = PredictRepeatLast;
    type State = Vec<u8>;
    type Address = usize;
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().skip(1).map(|text| text.parse::<u64>()).collect::<Result<Vec<_>, _>>()?;
    let [entities, steps, seed, warm] = numbers[..] else {
        return Err("say ENTITIES STEPS SEED WARM".into());
    };
    let mut builder = SessionBuilder::<World>::new()
        .with_num_players(PLAYERS)?
        .with_max_prediction_window(DISTANCE as usize + 1)
        .with_check_distance(DISTANCE as usize)
        .with_input_delay(0);
    for player in 0..PLAYERS {
        builder = builder.add_player(PlayerType::Local, player)?;
    }
    let mut session = builder.start_synctest_session()?;
    let mut world = scene::world(usize::try_from(entities)?, seed);
    let (mut frames, mut began) = (0, scene::cpu_ns()?);
    for step in 0..warm + steps {
        if step == warm {
            (frames, began) = (0, scene::cpu_ns()?);
        }
        for player in 0..PLAYERS {
            session.add_local_input(player, scene::pressed(player, step))?;
        }
        for request in session.advance_frame()? {
            match request {
                GgrsRequest::SaveGameState { cell, frame } => {
                    cell.save(frame, Some(world.clone()), Some(scene::hash(&world).into()));
                    frames += 1;
                }
                GgrsRequest::LoadGameState { cell, .. } => {
                    let state = cell.data().ok_or("it was not saved")?;
                    world.clone_from(&state);
                }
                GgrsRequest::AdvanceFrame { inputs } => {
                    scene::step(&mut world, std::array::from_fn(|player| inputs[player].0));
                }
            }
        }
    }
    let cpu_ns = scene::cpu_ns()? - began;
    println!("{}", serde_json::to_string(&Turn { frames, cpu_ns, hash: scene::hash(&world) })?);
    Ok(())
}
