//! The process under test: a server, and beside it the dedicated host of a room whose walkers move.

use super::super::args::ServeWalkersArgs;
use super::super::recording::{Place, Recording};
use super::super::stand::Walker;
use super::{APP, RECORDED_SECONDS};
use anyhow::{Context, bail};
use parlor::{EntityId, Event, Room};
use parlor_server::{Config, Server};
use parlor_sync::schema::{Schema, Transform};
use parlor_transport::inside::Inside;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What it says first: then come address and code, with a space between.
pub(crate) const MARK: &str = "PARLOR_WALKERS=";
/// Bytes of state for each member and second, at most: what the state takes is measured, and not a budget.
const STATE_RATE: u32 = 8_000_000;
/// Seats for clients.
const PLAYERS_MAX: u16 = 255;
/// The schema of a room of walkers.
///
/// # Errors
/// It cannot be built.
pub(super) fn schema() -> anyhow::Result<Schema> {
    Ok(Schema::builder().replicate::<Walker>().build()?)
}

/// Serves until it is killed: the hidden command that is measured.
///
/// # Errors
/// What kept it from serving.
pub(crate) fn serve(args: &ServeWalkersArgs) -> anyhow::Result<()> {
    let recording =
        Recording::new(args.seed, args.entities as usize, args.moving, u32::from(args.hz), RECORDED_SECONDS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("the server's thread could not be started")?;
    // Other processes must not find the room, so it is in no registry.
    let config = Config {
        listen: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        dedicated: true,
        state_rate: STATE_RATE,
        ..Config::default()
    };
    let server = runtime.block_on(Server::start(config)).context("the server could not be started")?;
    let fingerprint = server.fingerprint().context("a development server has a fingerprint")?;
    let address = format!("127.0.0.1:{}#{fingerprint}", server.local_port());
    let mut host = Host::open(server.inside(), args.hz, recording)?;
    let code = host.room.code().context("a room that is open has a code")?;
    parlor_terminal::print::say(&format!("{MARK}{address} {code}"));
    loop {
        host.turn()?;
        std::thread::sleep(host.room.until_next_tick());
    }
}

/// The room and its walkers.
struct Host {
    room: Room,
    recording: Recording,
    walkers: Vec<EntityId>,
    is_moving: bool,
}

impl Host {
    fn open(inside: &Inside, hz: u16, recording: Recording) -> anyhow::Result<Self> {
        let builder = Room::host(APP).dedicated().max_players(PLAYERS_MAX).tick_hz(hz).schema(schema()?);
        let builder = builder.inside(inside);
        let is_moving = recording.is_moving();
        let mut host = Host { room: builder.open(), recording, walkers: Vec::new(), is_moving };
        while host.walkers.is_empty() {
            host.turn()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(host)
    }

    /// Takes what came, and moves the walkers at each tick that is due.
    fn turn(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            if let Event::Closed(why) = event {
                bail!("the room is over: {why}");
            }
        }
        while let Some(mut step) = self.room.step() {
            let frame = self.recording.at(step.number().0 as usize);
            let Some(mut host) = step.host() else { continue };
            if self.walkers.is_empty() {
                self.walkers =
                    host.edit(|world| frame.iter().map(|_| world.spawn(None)).collect::<Result<_, _>>())??;
            } else if !self.is_moving {
                continue;
            }
            let walkers = &self.walkers;
            host.edit(|world| {
                walkers.iter().zip(frame).try_for_each(|(walker, place)| world.insert(*walker, &at(place)))
            })??;
        }
        Ok(())
    }
}

fn at((position, rotation): &Place) -> Walker {
    Walker { place: Transform { position: *position, rotation: *rotation } }
}
