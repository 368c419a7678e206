//! Members' send times, drawn for each.

use parlor_impair::Rng;
use std::collections::BTreeMap;

/// Whether the members of a room send together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pace {
    /// Each at a phase of its own, which drifts: its period is up to 0.5% shorter or longer than the mean
    Drifting,
    /// All members of a room at once, as clients that slew into the room's step do
    Aligned,
}

impl Pace {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Pace::Drifting => "drifting",
            Pace::Aligned => "aligned",
        }
    }
}

/// How far a period is from the mean, at most.
const DRIFT: f32 = 0.005;

/// How one member sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beat {
    /// When it begins: the part of a period after the start, 0 to 1.
    pub phase: f32,
    /// Its period in parts of the mean one.
    pub stretch: f32,
}

/// Draws how members send, from a seed.
#[derive(Debug)]
pub(crate) struct Beats {
    pace: Pace,
    random: Rng,
    /// Of rooms whose members send at once.
    rooms: BTreeMap<u32, f32>,
}

impl Beats {
    /// The same pace and seed give the same to the same members.
    pub(crate) fn new(pace: Pace, seed: u64) -> Self {
        Beats { pace, random: Rng::new(seed), rooms: BTreeMap::new() }
    }

    /// How the next member sends, who is in this room.
    pub(crate) fn next(&mut self, room: u32) -> Beat {
        let Beats { pace, random, rooms } = self;
        match pace {
            Pace::Drifting => {
                Beat { phase: random.between(0.0, 1.0), stretch: random.between(1.0 - DRIFT, 1.0 + DRIFT) }
            }
            Pace::Aligned => {
                let phase = *rooms.entry(room).or_insert_with(|| random.between(0.0, 1.0));
                Beat { phase, stretch: 1.0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the members of four rooms of 8 send.
    fn beats(pace: Pace, seed: u64) -> Vec<Beat> {
        let mut beats = Beats::new(pace, seed);
        (0..32).map(|member| beats.next(member / 8)).collect()
    }

    #[test]
    fn drifting_members_spread_over_the_period_and_stay_near_the_rate() {
        let drawn = beats(Pace::Drifting, 1);
        assert!(drawn.iter().all(|beat| (0.0..1.0).contains(&beat.phase)), "{drawn:?}");
        assert!(drawn.iter().all(|beat| (0.995..=1.005).contains(&beat.stretch)), "{drawn:?}");
        for quarter in 0..4_u8 {
            let from = f32::from(quarter) / 4.0;
            assert!(
                drawn.iter().any(|beat| (from..from + 0.25).contains(&beat.phase)),
                "{quarter}: {drawn:?}"
            );
        }
        assert!(drawn.iter().any(|beat| beat.stretch > 1.0) && drawn.iter().any(|beat| beat.stretch < 1.0));
        assert_eq!(drawn, beats(Pace::Drifting, 1), "a seed repeats them");
        assert_ne!(drawn, beats(Pace::Drifting, 2));
    }

    #[test]
    fn aligned_members_send_with_their_room_and_not_with_others() {
        let drawn = beats(Pace::Aligned, 1);
        for room in drawn.chunks(8) {
            assert!(room.iter().all(|beat| *beat == room[0] && beat.stretch == 1.0), "{room:?}");
        }
        assert!(drawn[0].phase != drawn[8].phase && drawn[8].phase != drawn[16].phase, "{drawn:?}");
    }
}
