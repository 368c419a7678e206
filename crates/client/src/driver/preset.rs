//! Settings that belong together, under one name.

use parlor_client_core::{Options, Wish};
use parlor_proto::TickRate;

/// The settings of one kind of game, for [`RoomBuilder::preset`](super::RoomBuilder::preset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Fast play with prediction: 60 steps a second, a simulation delay of 4 steps, up to 8 steps run again for late inputs, and lead.
    Action,
    /// The defaults: 30 steps a second, and nothing else.
    Standard,
    /// Slow play, and little traffic: 10 steps a second.
    Calm,
}

impl Preset {
    /// Returns the name in a settings file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Preset::Action => "action",
            Preset::Standard => "standard",
            Preset::Calm => "calm",
        }
    }

    pub(super) fn apply(self, options: &mut Options) {
        let (hz, delay, resimulate, lead) = match self {
            Preset::Action => (60, 4, 8, true),
            Preset::Standard => (TickRate::DEFAULT.hz(), 0, 0, false),
            Preset::Calm => (10, 0, 0, false),
        };
        if let Wish::Host { tick_rate, .. } = &mut options.intent {
            *tick_rate = TickRate::new(hz).expect("presets have possible rates");
        }
        (options.simulation_delay_ticks, options.resimulate_ticks) = (delay, resimulate);
        options.lead = lead;
    }
}
