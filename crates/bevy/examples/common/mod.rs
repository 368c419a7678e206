//! Shared by the examples: a server inside the process, and apps whose frames are run one by one.

use bevy_app::App;
use bevy_ecs::prelude::*;
use parlor::{Registry, RoomCode};
use parlor_bevy::{RoomCommands, RoomResource};
use parlor_server::{Config, Server};
use std::time::{Duration, Instant};

/// Timeout: only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Steps a second.
const TICK_HZ: u16 = 60;

/// Plays a game on a server in this process. The game finds it through the registry.
///
/// # Errors
/// If the server does not start, or the game returns an error.
pub(crate) fn with_server(game: impl FnOnce(&Registry) -> Result) -> Result {
    let folder = tempfile::tempdir()?;
    let registry = Registry::at(folder.path().join("registry"));
    let runtime = tokio::runtime::Runtime::new()?;
    let config = Config { port: 0, registry: Some(registry.clone()), ..Config::default() };
    let server = runtime.block_on(Server::start(config))?;
    let result = game(&registry);
    runtime.block_on(server.shutdown());
    result
}

/// Opens a room with `host` as its host, named ada. Returns the room's code.
///
/// # Errors
/// If the room does not open.
pub(crate) fn open(host: &mut App, registry: &Registry) -> Result<RoomCode> {
    let here = registry.clone();
    ask(host, |commands| commands.host_room(|room| room.registry(here).name("ada").tick_hz(TICK_HZ)));
    until(&mut [host], "the room opens", |apps| {
        let room = apps[0].world().get_resource::<RoomResource>()?;
        room.code().filter(|_| room.is_connected())
    })
}

/// Runs commands on the app from outside a system.
pub(crate) fn ask(app: &mut App, wish: impl FnOnce(&mut Commands)) {
    wish(&mut app.world_mut().commands());
    app.world_mut().flush();
}

/// Runs frames of the apps until a value is available.
///
/// # Errors
/// If `what` takes longer than the timeout.
pub(crate) fn until<T>(
    apps: &mut [&mut App],
    what: &str,
    mut find: impl FnMut(&mut [&mut App]) -> Option<T>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        apps.iter_mut().for_each(|app| app.update());
        if let Some(found) = find(apps) {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("it takes too long until {what}").into());
        }
        std::thread::yield_now();
    }
}
