//! Baseline sharing of members that acknowledge at different times: which baselines they get, and what is
//! encoded for them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{Audience, EntityId, PublisherConfig, Replica, Sent, Views, World};
use std::sync::Arc;

const PLACE: ComponentId = ComponentId(2);
const ENTITIES: u16 = 40;
/// At first no member has anything; from this tick on acknowledgements arrive regularly.
const WARM: u32 = 20;
const TICKS: u32 = 60;

/// Figures of a room, once warm.
struct Figures {
    /// Encoded bodies and sent packets, over all members.
    coded: u64,
    packets: u64,
    /// For each member, the mean age in ticks of the baselines used for it.
    ages: Vec<f64>,
}

/// Reports the deliveries that are due at `tick`.
fn acknowledge(views: &mut Views, acks: &mut Vec<(u32, MemberId, Sent)>, tick: u32) {
    acks.retain(|(due, member, sent)| {
        if *due <= tick {
            views.fate(*member, *sent, true);
        }
        *due > tick
    });
}

/// Runs a room in which all entities move at every tick, and each member's acknowledgements take `delays`
/// ticks. The fate of the packets that `is_forgotten` selects, by member and tick, is never reported. `hides`
/// says whether the first entity is hidden from a member.
fn run(delays: &[u32], hides: impl Fn(usize) -> bool, is_forgotten: impl Fn(usize, u32) -> bool) -> Figures {
    let place = Component::builder("place").field("at", Kind::vector3(0.0, 1_000.0, 1.0 / 64.0)).build();
    let schema = Arc::new(Schema::builder().component(place).build().unwrap());
    let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
    let entities: Vec<EntityId> = (0..ENTITIES).map(|_| world.spawn(None).unwrap()).collect();
    let mut views = Views::new(&schema);
    let index = |member: MemberId| usize::try_from(member.0).unwrap();
    for member in (0..).zip(delays).map(|(id, _)| MemberId(id)) {
        views.add(member, PublisherConfig::new(10_000_000));
    }
    let mut replicas: Vec<Replica> =
        delays.iter().map(|_| Replica::new(Arc::clone(&schema), TickRate::DEFAULT)).collect();
    let mut acks: Vec<(u32, MemberId, Sent)> = Vec::new();
    let (mut coded, mut packets, mut before) = (0, 0, Vec::new());
    for tick in 1..=TICKS {
        if tick == WARM {
            (coded, packets) = (views.encodings().0, 0);
            before = replicas.iter().map(Replica::counters).collect();
        }
        for (entity, x) in entities.iter().zip(0i32..) {
            let moved = x * 100 + i32::try_from(tick * tick).unwrap();
            world.write_row(*entity, PLACE, &[moved, 5, 6], &[]).unwrap();
        }
        world.commit(Tick(tick)).unwrap();
        acknowledge(&mut views, &mut acks, tick);
        let sees = |member: MemberId, entity: EntityId| entity != entities[0] || !hides(index(member));
        views.flush_filtered(
            &world,
            Instant::from_millis(u64::from(tick) * 33),
            sees,
            |member, bytes, sent| {
                packets += 1;
                replicas[index(member)].apply(bytes).unwrap();
                if !is_forgotten(index(member), tick) {
                    acks.push((tick + delays[index(member)], member, sent));
                }
            },
        );
        for (member, replica) in replicas.iter().enumerate() {
            for entity in entities.iter().skip(usize::from(hides(member))) {
                let held = replica.world().read_row(*entity, PLACE).unwrap();
                assert_eq!(held, world.read_row(*entity, PLACE).unwrap(), "of member {member} at {tick}");
            }
        }
    }
    let ages = replicas.iter().zip(before).map(|(replica, before)| {
        let after = replica.counters();
        (after.baseline_ages_ticks - before.baseline_ages_ticks) as f64
            / (after.updates - before.updates) as f64
    });
    Figures { coded: views.encodings().0 - coded, packets, ages: ages.collect() }
}

/// One member acknowledges at once, and `others` members three ticks later.
fn one_and(others: usize) -> Vec<u32> {
    core::iter::once(1).chain(core::iter::repeat_n(3, others)).collect()
}

#[test]
fn few_with_fresher_rows_are_sent_what_is_coded_for_many() {
    let figures = run(&one_and(15), |_| false, |_, _| false);
    assert_eq!(figures.packets, 16 * u64::from(TICKS - WARM + 1), "one for each member and tick");
    assert_eq!(figures.coded * 16, figures.packets, "one body serves all");
    assert!(figures.ages.iter().all(|age| *age == 3.0), "{:?}", figures.ages);
}

#[test]
fn where_many_have_fresher_rows_each_age_has_its_own() {
    let delays: Vec<u32> = (0..16).map(|member| 1 + 3 * (member / 8)).collect();
    let figures = run(&delays, |_| false, |_, _| false);
    assert_eq!(figures.coded * 8, figures.packets, "a body for each half of them");
    let ages: Vec<f64> = delays.iter().map(|delay| f64::from(*delay)).collect();
    assert_eq!(figures.ages, ages);
}

#[test]
fn who_sees_something_else_builds_on_its_freshest_rows() {
    let figures = run(&one_and(15), |member| member == 0, |_, _| false);
    assert_eq!(figures.coded * 8, figures.packets, "one body for the one, and one for all others");
    assert_eq!((figures.ages[0], figures.ages[1]), (1.0, 3.0));
}

#[test]
fn who_misses_a_packet_builds_on_what_came_after_it() {
    let figures = run(&one_and(15), |_| false, |member, tick| member == 0 && tick == WARM / 2);
    assert_eq!((figures.ages[0], figures.ages[1]), (1.0, 3.0));
}

/// Each member has an entity that only it sees, as its input acknowledgement is. Half of them have lower slots than
/// the common ones. Acknowledgements take 1 to `ages` ticks, by turns. If `views` is not 0, one of so many entities
/// is hidden from each member, by turns. Returns the entries that each tick encoded at the end.
fn with_own_entities(members: u32, ages: u32, views: u32) -> u64 {
    let place = Component::builder("place").field("at", Kind::vector3(0.0, 1_000.0, 1.0 / 64.0)).build();
    let schema = Arc::new(Schema::builder().component(place).build().unwrap());
    let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
    let mut own = Vec::new();
    let mut spawn_own = |world: &mut World, members: core::ops::Range<u32>| {
        for member in members.map(MemberId) {
            let entity = world.spawn(None).unwrap();
            world.set_audience(entity, Audience::members([member])).unwrap();
            own.push((member, entity));
        }
    };
    spawn_own(&mut world, 0..members / 2);
    let common: Vec<EntityId> = (0..ENTITIES).map(|_| world.spawn(None).unwrap()).collect();
    spawn_own(&mut world, members / 2..members);
    let hidden = |member: MemberId| (views > 0).then(|| common[(member.0 % views) as usize]);
    let mut views = Views::new(&schema);
    (0..members).for_each(|member| views.add(MemberId(member), PublisherConfig::new(10_000_000)));
    let mut replicas: Vec<Replica> =
        (0..members).map(|_| Replica::new(Arc::clone(&schema), TickRate::DEFAULT)).collect();
    let (mut acks, mut encoded): (Vec<(u32, MemberId, Sent)>, _) = (Vec::new(), 0);
    for tick in 1..=TICKS {
        let all = common.iter().chain(own.iter().map(|(_, entity)| entity));
        for (entity, x) in all.zip(0i32..) {
            let moved = x * 100 + i32::try_from(tick * tick).unwrap();
            world.write_row(*entity, PLACE, &[moved, 5, 6], &[]).unwrap();
        }
        world.commit(Tick(tick)).unwrap();
        acknowledge(&mut views, &mut acks, tick);
        let (before, mut packets) = (views.entries_encoded(), 0);
        let sees = |member: MemberId, entity: EntityId| hidden(member) != Some(entity);
        views.flush_filtered(
            &world,
            Instant::from_millis(u64::from(tick) * 33),
            sees,
            |member, bytes, sent| {
                replicas[usize::try_from(member.0).unwrap()].apply(bytes).unwrap();
                acks.push((tick + 1 + member.0 % ages, member, sent));
                packets += 1;
            },
        );
        assert_eq!(packets, members, "one for each");
        encoded = views.entries_encoded() - before;
        for (member, replica) in (0..).map(MemberId).zip(&replicas) {
            for entity in common.iter().filter(|entity| hidden(member) != Some(**entity)) {
                let held = replica.world().read_row(*entity, PLACE).unwrap();
                assert_eq!(held, world.read_row(*entity, PLACE).unwrap(), "of {member:?} at {tick}");
            }
            for (whose, entity) in &own {
                let held = replica.world().read_row(*entity, PLACE).ok();
                let wanted = (*whose == member).then(|| world.read_row(*entity, PLACE).unwrap());
                assert_eq!(held, wanted, "of {member:?} at {tick}");
            }
        }
    }
    encoded
}

#[test]
fn what_all_see_is_coded_once_and_what_one_member_sees_follows_it() {
    let common = u64::from(ENTITIES);
    assert_eq!(with_own_entities(8, 1, 0), common + 8);
    assert_eq!(with_own_entities(8, 2, 0), 2 * common + 8, "two ages of baselines");
    assert_eq!(with_own_entities(12, 1, 4), 4 * (common - 1) + 12, "four views");
    // Of more views than states of the coder are kept, the common entities are encoded again.
    assert_eq!(with_own_entities(12, 1, 6), 12 * (common - 1) + 12);
}
