//! A component of an entity at a moment, from a world's history.

use super::{Row, Sample};
use crate::limits::STILL_AFTER;
use crate::schema::ComponentId;
use crate::world::{self, World};
use core::time::Duration;
use parlor_proto::{EntityId, Instant, Tick};

/// Two versions of a component around a moment, the older first.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// The versions; the same one twice where the component stands still.
    pub versions: [Row<'a>; 2],
    /// Since when there were these versions.
    pub ticks: [Tick; 2],
    /// The time from one to the other, in seconds.
    pub seconds: f64,
    /// Where the moment lies: 0 is the older version, 1 the newer one; beyond 1 it is extrapolated.
    pub t: f64,
}

impl<'a> Between<'a> {
    /// Finds the versions of a component of an entity around the moment `at` of room time, as
    /// [`Sample::take_moment`] mixes them. `None` if the entity did not have it then.
    pub fn find(
        world: &'a World,
        entity: EntityId,
        id: ComponentId,
        at: Instant,
        beyond: Duration,
    ) -> Option<Self> {
        let tick = world.rate().tick_at(at);
        let Some([older, newer]) = world.around(entity, id, tick) else {
            return Self::at_end(world, (entity, id), at, beyond);
        };
        if world.was_there(entity, id, older.0, newer.0) {
            let (from, to) = (world.rate().begins(older.0), world.rate().begins(newer.0));
            let whole = to.saturating_since(from);
            // It would otherwise seem to have moved slowly ever since.
            let began = if whole > STILL_AFTER { to - world.rate().interval() } else { from };
            let t = at.saturating_since(began).as_secs_f64() / to.saturating_since(began).as_secs_f64();
            return Some(Between {
                versions: [row(older), row(newer)],
                ticks: [older.0, newer.0],
                seconds: whole.as_secs_f64(),
                t,
            });
        }
        world.was_there(entity, id, tick, tick).then(|| Self::still(older))
    }

    /// The component before the oldest known version, or after the newest.
    fn at_end(
        world: &'a World,
        (entity, id): (EntityId, ComponentId),
        at: Instant,
        beyond: Duration,
    ) -> Option<Self> {
        let (oldest, newest) = world.ends(entity, id)?;
        let tick = world.rate().tick_at(at);
        if tick.0 < oldest.0.0 {
            return Some(Self::still(oldest));
        }
        if !world.was_there(entity, id, tick, tick) {
            return None;
        }
        let last = newest.0;
        let over = at.saturating_since(world.rate().begins(last)).min(beyond);
        let before = last.0.checked_sub(1).and_then(|before| world.around(entity, id, Tick(before)));
        let Some([older, newer]) = before.filter(|[older, newer]| {
            !over.is_zero() && world.tick() == Some(last) && world.was_there(entity, id, older.0, newer.0)
        }) else {
            return Some(Self::still(newest));
        };
        let interval = world.rate().begins(last).saturating_since(world.rate().begins(older.0));
        if interval > STILL_AFTER {
            return Some(Self::still(newest));
        }
        let t = 1.0 + over.as_secs_f64() / interval.as_secs_f64();
        Some(Between {
            versions: [row(older), row(newer)],
            ticks: [older.0, newer.0],
            seconds: interval.as_secs_f64(),
            t,
        })
    }

    fn still(version: (Tick, world::Row<'a>)) -> Self {
        Between { versions: [row(version); 2], ticks: [version.0; 2], seconds: 0.0, t: 0.0 }
    }

    /// The same without motion, if only the newer version is of a later tick than `cut`.
    #[must_use]
    pub fn cut_at(self, cut: Tick) -> Self {
        let [older, newer] = self.ticks;
        if older.is_newer_than(cut) || !newer.is_newer_than(cut) {
            return self;
        }
        let at = usize::from(self.t >= 1.0);
        Between { versions: [self.versions[at]; 2], ticks: [self.ticks[at]; 2], seconds: 0.0, t: 0.0 }
    }
}

impl Sample {
    /// Sets this to a component of an entity at the moment `at` of room time. Returns whether the entity had
    /// it then and the history covers it. A reader that draws the past, and an authority that looks up what
    /// it drew, get the same result from the same rows.
    ///
    /// Between two versions it moves as its schema says. A component unchanged for more than [`STILL_AFTER`]
    /// moves within the last tick before its change. There is no motion across a time without the component.
    /// Before its first version that one counts, and after its newest that one. If the newest version is of
    /// the world's newest tick, and so perhaps not the last of its motion, it is extrapolated by at most
    /// `beyond`.
    pub fn take_moment(
        &mut self,
        world: &World,
        entity: EntityId,
        id: ComponentId,
        at: Instant,
        beyond: Duration,
    ) -> bool {
        let Some(component) = world.schema().get(id) else { return false };
        let Some(Between { versions: [older, newer], seconds, t, .. }) =
            Between::find(world, entity, id, at, beyond)
        else {
            return false;
        };
        self.mix(component, older, newer, seconds, t);
        true
    }
}

fn row<'a>((_, (lanes, blobs)): (Tick, world::Row<'a>)) -> Row<'a> {
    Row { lanes, blobs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicated;
    use crate::schema::{Kind, Replicated, Schema};
    use parlor_proto::TickRate;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct At {
        x: f32,
    }
    replicated!(At as "at" => { x: Kind::float(-1_000.0, 1_000.0, 0.01) });

    struct Stage {
        world: World,
        entity: EntityId,
        id: ComponentId,
    }

    impl Stage {
        /// A world at ten ticks a second; one entity with these component versions, `None` for a time without
        /// it.
        fn new(versions: &[(u32, Option<f32>)]) -> Stage {
            let schema = Arc::new(Schema::builder().component(At::component()).build().unwrap());
            let mut world = World::new(Arc::clone(&schema), TickRate::new(10).unwrap());
            let entity = world.spawn(None).unwrap();
            for (tick, x) in versions {
                match x {
                    Some(x) => _ = world.insert(entity, &At { x: *x }).unwrap(),
                    None => _ = world.remove::<At>(entity).unwrap(),
                }
                world.commit(Tick(*tick)).unwrap();
            }
            Stage { world, entity, id: schema.find("at").unwrap() }
        }

        fn at(&self, ms: u64, beyond_ms: u64) -> Option<f32> {
            let (mut sample, beyond) = (Sample::default(), Duration::from_millis(beyond_ms));
            let at = Instant::from_millis(ms);
            let is_there = sample.take_moment(&self.world, self.entity, self.id, at, beyond);
            is_there.then(|| sample.read::<At>(&At::component()).x)
        }
    }

    #[test]
    fn it_moves_between_two_versions_and_stands_at_both_ends() {
        let stage = Stage::new(&[(10, Some(0.0)), (11, Some(1.0)), (13, Some(5.0))]);
        for (ms, x) in
            [(0, 0.0), (1_000, 0.0), (1_050, 0.5), (1_100, 1.0), (1_200, 3.0), (1_300, 5.0), (9_000, 5.0)]
        {
            assert_eq!(stage.at(ms, 0), Some(x), "at {ms} ms");
        }
    }

    #[test]
    fn what_stood_still_does_not_creep() {
        let stage = Stage::new(&[(10, Some(0.0)), (30, Some(1.0))]);
        assert_eq!([2_000, 2_900, 2_950].map(|ms| stage.at(ms, 0)), [Some(0.0), Some(0.0), Some(0.5)]);
    }

    #[test]
    fn nothing_moves_across_a_time_without_it() {
        let stage = Stage::new(&[(10, Some(0.0)), (12, None), (14, Some(100.0))]);
        let at = [1_000, 1_190, 1_250, 1_390, 1_400].map(|ms| stage.at(ms, 500));
        assert_eq!(at, [Some(0.0), Some(0.0), None, None, Some(100.0)]);
        let gone = Stage::new(&[(10, Some(0.0)), (12, None)]);
        assert_eq!([1_100, 1_200, 5_000].map(|ms| gone.at(ms, 500)), [Some(0.0), None, None]);
        assert_eq!(Stage::new(&[(10, None)]).at(1_000, 0), None);
    }

    #[test]
    fn it_goes_on_for_as_long_as_it_is_let_while_nothing_newer_is_known() {
        let mut stage = Stage::new(&[(10, Some(0.0)), (11, Some(1.0))]);
        let over = [(1_150, 1.5), (1_200, 2.0), (1_300, 3.0), (1_400, 3.0), (9_000, 3.0)];
        for (ms, x) in over {
            assert_eq!(stage.at(ms, 200), Some(x), "at {ms} ms");
        }
        // A newer tick without a change shows that it stopped.
        stage.world.commit(Tick(12)).unwrap();
        assert_eq!(stage.at(1_200, 200), Some(1.0));
        // After a long rest the first change gives no speed to extrapolate.
        assert_eq!(Stage::new(&[(10, Some(0.0)), (30, Some(1.0))]).at(3_100, 200), Some(1.0));
    }

    #[test]
    fn what_is_gone_has_no_past() {
        let mut stage = Stage::new(&[(10, Some(0.0)), (11, Some(1.0))]);
        stage.world.despawn(stage.entity).unwrap();
        assert_eq!(stage.at(1_050, 0), None);
    }

    proptest! {
        /// Whatever the versions are, the result lies between the two around the moment.
        #[test]
        fn it_is_never_beyond_what_it_was_and_what_it_became(
            versions in proptest::collection::vec((1u32..8, -900f32..900.0), 2..20), moment_ms in 0u64..20_000,
        ) {
            let mut tick = 10;
            let versions: Vec<(u32, Option<f32>)> = versions.into_iter().map(|(on, x)| {
                tick += on;
                (tick, Some(x))
            }).collect();
            let x = Stage::new(&versions).at(moment_ms, 0).expect("it was there from its first version on");
            let next = versions.partition_point(|(tick, _)| u64::from(*tick) * 100 <= moment_ms);
            let around = &versions[next.saturating_sub(1)..(next + 1).min(versions.len())];
            let low = around.iter().filter_map(|it| it.1).fold(f32::MAX, f32::min);
            let high = around.iter().filter_map(|it| it.1).fold(f32::MIN, f32::max);
            prop_assert!(low - 0.01 <= x && x <= high + 0.01, "{} is not within {}..{}", x, low, high);
        }
    }
}
