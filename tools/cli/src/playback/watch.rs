//! A view of a recording of Magpies.

use super::{Film, Pace};
use crate::game::{Badge, GemState, PlayerState, RoundState, Scene, Source};
use crate::player::APP;
use crate::view::{Command, Controls, HudModel, MemberLine, Stage, draw};
use anyhow::{Context, bail};
use parlor::from_value;
use parlor::recording::Playback;
use parlor_proto::Instant;
use parlor_terminal::screen::Screen;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time between two pictures.
const FRAME: Duration = Duration::from_millis(16);

/// Draws the recording until it is over or the user quits.
///
/// # Errors
/// If it is no game of Magpies, there is no terminal, or the file cannot be read.
pub(crate) fn watch(
    film: &mut Film,
    mut pace: Pace,
    until: Instant,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let Some(head) = film.head()?.filter(|head| head.app == APP) else {
        bail!("only games of {APP:?} can be watched here: leave --watch away, or use --json");
    };
    let mut screen = Screen::open().context("there is no terminal to watch on: leave --watch away")?;
    let mut hud = HudModel { code: Some(head.code.to_string()), ..HudModel::default() };
    loop {
        let now = pace.until(film)?.min(until);
        while film.step(now)?.is_some() {}
        let playback = film.playback();
        let is_over = film.is_over() || now >= until;
        hud.stage =
            if is_over { Stage::Closed("the recording is over: q leaves".into()) } else { Stage::Open };
        hud.members = members(playback);
        let tick = playback.world().and_then(parlor_sync::world::World::tick).unwrap_or_default();
        let scene = Scene::read(&Past(playback), tick.0);
        screen.draw(|frame, depth| draw(frame, &hud, &scene, depth))?;
        for key in screen.keys(FRAME)? {
            match Controls::default().press(key) {
                Some(Command::Quit) => return Ok(()),
                Some(Command::Help) => hud.help = !hud.help,
                _ => {}
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

fn members(playback: &Playback) -> std::collections::BTreeMap<u32, MemberLine> {
    let lines = playback.players().iter();
    lines.map(|(id, name)| (id.0, MemberLine { name: name.clone(), ..MemberLine::default() })).collect()
}

/// Reads the state as it was.
struct Past<'a>(&'a Playback);

impl Past<'_> {
    /// A value that another machine wrote: what is not as the game has it counts as missing.
    fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.keys()?.get(key).and_then(|value| from_value(value).ok())
    }
}

impl Source for Past<'_> {
    fn keys(&self) -> Vec<String> {
        self.0.keys().into_iter().flat_map(|keys| keys.iter().map(|(key, _)| key.to_string())).collect()
    }

    fn player(&self, key: &str) -> Option<PlayerState> {
        self.read(key)
    }

    fn badge(&self, key: &str) -> Option<Badge> {
        self.read(key)
    }

    fn gem(&self, key: &str) -> Option<GemState> {
        self.read(key)
    }

    fn round(&self, key: &str) -> Option<RoundState> {
        self.read(key)
    }
}
