//! The game as a member sees it: the published values, read back for drawing and for bots.

use std::collections::BTreeMap;

use super::state::{Badge, FIELD_HEIGHT, FIELD_WIDTH, GemState, Key, PlayerState, RoundState};

/// Where a [`Scene`] is read from: a room's keyed state, or a map in a test. The implementation decides which
/// values are interpolated; players and gems gain by it, the rest must not be.
pub(crate) trait Source {
    /// All keys that exist.
    fn keys(&self) -> Vec<String>;
    /// The magpie under this key.
    fn player(&self, key: &str) -> Option<PlayerState>;
    /// The badge under this key.
    fn badge(&self, key: &str) -> Option<Badge>;
    /// The gem under this key.
    fn gem(&self, key: &str) -> Option<GemState>;
    /// The round under this key.
    fn round(&self, key: &str) -> Option<RoundState>;
}

/// A magpie together with its badge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bird {
    /// What it does.
    pub state: PlayerState,
    /// The player.
    pub badge: Badge,
}

/// All that is to be seen at one tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scene {
    /// The tick of the authority, as well as the reader knows it. Only countdowns depend on it.
    pub tick: u32,
    /// The magpies by the id of their player.
    pub players: BTreeMap<u32, Bird>,
    /// The gems by their number.
    pub gems: BTreeMap<u16, GemState>,
    /// The round.
    pub round: RoundState,
}

impl Scene {
    /// Reads everything. Keys that are not the game's, values that are missing and places that are no numbers are left
    /// out: they come from another machine.
    pub(crate) fn read(source: &impl Source, tick: u32) -> Scene {
        let mut scene = Scene { tick, ..Scene::default() };
        for key in source.keys() {
            match Key::parse(&key) {
                Some(Key::Player(id)) => {
                    let state =
                        source.player(&key).filter(|state| state.x.is_finite() && state.y.is_finite());
                    if let Some(state) = state {
                        let badge = source.badge(&Key::Badge(id).to_string()).unwrap_or_else(|| nameless(id));
                        scene.players.insert(id, Bird { state: inside_player(state), badge });
                    }
                }
                Some(Key::Gem(number)) => {
                    let gem = source.gem(&key).filter(|gem| gem.x.is_finite() && gem.y.is_finite());
                    if let Some(gem) = gem {
                        scene.gems.insert(number, inside_gem(gem));
                    }
                }
                Some(Key::Round) => scene.round = source.round(&key).unwrap_or_default(),
                Some(Key::Badge(_)) | None => {}
            }
        }
        scene
    }

    /// The players, richest first; among equals the one who came first.
    pub(crate) fn ranking(&self) -> Vec<(u32, &Bird)> {
        let mut ranking: Vec<_> = self.players.iter().map(|(id, bird)| (*id, bird)).collect();
        ranking.sort_by_key(|(id, bird)| (std::cmp::Reverse(bird.state.score), *id));
        ranking
    }
}

/// Stands in until the badge has come: the two keys may arrive apart.
fn nameless(id: u32) -> Badge {
    let slot = u8::try_from(id % 16).unwrap_or_default();
    Badge { name: format!("player {id}"), slot, glyph: char::from(b'a' + slot) }
}

fn inside_player(state: PlayerState) -> PlayerState {
    PlayerState { x: state.x.clamp(0.0, FIELD_WIDTH), y: state.y.clamp(0.0, FIELD_HEIGHT), ..state }
}

fn inside_gem(gem: GemState) -> GemState {
    GemState { x: gem.x.clamp(0.0, FIELD_WIDTH), y: gem.y.clamp(0.0, FIELD_HEIGHT), ..gem }
}
