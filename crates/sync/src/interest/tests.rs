//! Interest against a model that evaluates every pair.

use super::*;
use parlor_impair::Rng;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const RADIUS: f64 = 50.0;
const LEAVE: f64 = 60.0;
const SLOTS: u16 = 70;
const MEMBERS: u32 = 5;

fn reach() -> Option<Reach> {
    Reach::new(RADIUS, LEAVE)
}

/// The state of one member's view at the last update, and all places.
#[derive(Default)]
struct Model {
    places: BTreeMap<u16, Place>,
    audiences: BTreeMap<u16, Audience>,
    seen: BTreeMap<MemberId, BTreeSet<u16>>,
}

impl Model {
    fn sees(&self, member: MemberId, slot: u16, reach: Option<Reach>) -> bool {
        let place = self.places[&slot];
        let audience = self.audiences.get(&slot).cloned().unwrap_or_default();
        let eyes: Vec<&Place> = self.places.values().filter(|eye| eye.owner == Some(member)).collect();
        let by_place = match place.position.filter(|_| reach.is_some()) {
            None => place.zone == 0 || eyes.iter().any(|eye| eye.zone == place.zone),
            Some(at) => eyes.iter().any(|eye| {
                let limit = if self.seen[&member].contains(&slot) { LEAVE } else { RADIUS };
                let off = |from: [f32; 3]| (0..3).map(|i| f64::from(at[i] - from[i]).powi(2)).sum::<f64>();
                (place.zone == 0 || place.zone == eye.zone)
                    && eye.position.is_some_and(|from| off(from) <= limit * limit)
            }),
        };
        audience.admits(Viewer::Member(member)) && (place.owner == Some(member) || by_place)
    }

    fn update(&mut self, reach: Option<Reach>) {
        let members: Vec<MemberId> = self.seen.keys().copied().collect();
        for member in members {
            let seen = self.places.keys().copied().filter(|slot| self.sees(member, *slot, reach)).collect();
            self.seen.insert(member, seen);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Move(u16, u32, Option<[f32; 3]>, Option<u32>),
    Nudge(u16, [f32; 3]),
    Remove(u16),
    Audience(u16, Option<BTreeSet<u32>>),
    Join(u32),
    Leave(u32),
    Update,
    UpdateFiltered(u16),
}

/// Positions are multiples of a quarter, so that their squares are exact in any order and precision.
fn position() -> impl Strategy<Value = [f32; 3]> {
    let axis = || (-600i16..600).prop_map(|quarters| f32::from(quarters) / 4.0);
    (axis(), axis(), prop_oneof![Just(0.0f32), axis()]).prop_map(|(x, y, z)| [x, y, z])
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS;
    let owner = || proptest::option::weighted(0.2, 0..MEMBERS);
    let nudge = || (-80i16..80).prop_map(|quarters| f32::from(quarters) / 4.0);
    prop_oneof![
        8 => (slot(), 0u32..3, proptest::option::weighted(0.8, position()), owner())
            .prop_map(|(slot, zone, at, owner)| Step::Move(slot, zone, at, owner)),
        12 => (slot(), nudge(), nudge(), nudge()).prop_map(|(slot, x, y, z)| Step::Nudge(slot, [x, y, z])),
        1 => slot().prop_map(Step::Remove),
        1 => (slot(), proptest::option::of(proptest::collection::btree_set(0..MEMBERS, 0..3)))
            .prop_map(|(slot, members)| Step::Audience(slot, members)),
        1 => (0..MEMBERS).prop_map(Step::Join),
        1 => (0..MEMBERS).prop_map(Step::Leave),
        6 => Just(Step::Update),
        1 => (1u16..4).prop_map(Step::UpdateFiltered),
    ]
}

type Told = BTreeMap<MemberId, BTreeSet<u16>>;

/// Applies a step to both, without an update.
fn apply(step: Step, interest: &mut Interest, model: &mut Model, told: &mut Told) {
    match step {
        Step::Move(slot, zone, position, owner) => {
            let owner = owner.map(MemberId);
            interest.moved(slot, zone, position, owner);
            model.places.insert(slot, Place { zone, position, owner });
        }
        Step::Nudge(slot, by) => {
            if let Some(Place { zone, position: Some(at), owner }) = model.places.get(&slot).copied() {
                let position = Some([at[0] + by[0], at[1] + by[1], at[2] + by[2]]);
                interest.moved(slot, zone, position, owner);
                model.places.insert(slot, Place { zone, position, owner });
            }
        }
        Step::Remove(slot) => {
            interest.removed(slot);
            model.places.remove(&slot);
            model.audiences.remove(&slot);
        }
        Step::Audience(slot, members) => {
            if model.places.contains_key(&slot) {
                let members = members.map(|members| Audience::members(members.into_iter().map(MemberId)));
                let audience = members.unwrap_or_default();
                interest.set_audience(slot, &audience);
                model.audiences.insert(slot, audience);
            }
        }
        Step::Join(member) => {
            interest.member_added(MemberId(member));
            model.seen.entry(MemberId(member)).or_default();
            told.entry(MemberId(member)).or_default();
        }
        Step::Leave(member) => {
            interest.member_removed(MemberId(member));
            model.seen.remove(&MemberId(member));
            told.remove(&MemberId(member));
        }
        Step::Update | Step::UpdateFiltered(_) => {}
    }
}

/// Runs a script on both, and compares every member's reported view after each update.
fn run(steps: Vec<Step>, reach: Option<Reach>) {
    let (mut interest, mut model, mut told) = (Interest::new(reach), Model::default(), Told::new());
    for step in steps {
        let modulus = match step {
            Step::Update => None,
            Step::UpdateFiltered(modulus) => Some(modulus),
            step => {
                apply(step, &mut interest, &mut model, &mut told);
                continue;
            }
        };
        model.update(reach);
        let mut last = None;
        let mut report = |member: MemberId, slot: u16, change: Change| {
            assert!(last < Some((member, slot)), "reports come in ascending order, each once");
            last = Some((member, slot));
            let seen = told.get_mut(&member).expect("only members are told");
            let is_change = if change == Change::Enter { seen.insert(slot) } else { seen.remove(&slot) };
            assert!(is_change, "{change:?} of {slot} is none");
        };
        let passes = |slot: u16| modulus.is_none_or(|modulus| slot.is_multiple_of(modulus));
        match modulus {
            Some(_) => interest.update_filtered(|_, slot| passes(slot), &mut report),
            None => interest.update(&mut report),
        }
        for (member, seen) in &model.seen {
            let owns = |slot: &u16| model.places[slot].owner == Some(*member);
            let expected: BTreeSet<u16> =
                seen.iter().copied().filter(|slot| passes(*slot) || owns(slot)).collect();
            assert_eq!(told[member], expected, "what {member} sees");
            for slot in 0..SLOTS {
                assert_eq!(interest.sees(*member, slot), expected.contains(&slot));
                let near = nearness(&model, *member, slot, reach).filter(|_| expected.contains(&slot));
                assert_eq!(
                    interest.nearness(*member, slot),
                    near.unwrap_or(NEARNESS_MIN),
                    "nearness of {slot}"
                );
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn nearness(model: &Model, member: MemberId, slot: u16, reach: Option<Reach>) -> Option<u16> {
    let place = model.places.get(&slot)?;
    let Some(at) = place.position.filter(|_| reach.is_some() && place.owner != Some(member)) else {
        return Some(NEARNESS_MAX);
    };
    let eyes = model
        .places
        .values()
        .filter(|eye| eye.owner == Some(member) && (place.zone == 0 || eye.zone == place.zone));
    let off = |from: [f32; 3]| (0..3).map(|i| f64::from(at[i] - from[i]).powi(2)).sum::<f64>();
    let nearest = eyes.filter_map(|eye| eye.position).map(off).fold(f64::INFINITY, f64::min).sqrt();
    Some(NEARNESS_MAX - (240.0 * (nearest / RADIUS).min(1.0)) as u16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn it_equals_a_model_that_looks_at_everything(steps in proptest::collection::vec(step(), 1..300)) {
        run(steps, reach());
    }

    #[test]
    fn without_distances_rooms_decide(steps in proptest::collection::vec(step(), 1..100)) {
        run(steps, None);
    }
}

/// A plain of `count` entities, in four rows for each member; `span` is its side length.
fn plain(interest: &mut Interest, count: u16, members: u16, span: f32) -> Vec<[f32; 3]> {
    let mut luck = Rng::new(1);
    let mut draw = || f32::from(u16::try_from(luck.below(1 << 16)).expect("16 bits")) / 65_536.0;
    (0..members).for_each(|member| interest.member_added(MemberId(member.into())));
    let positions: Vec<[f32; 3]> =
        (0..count).map(|_| [draw() * span, draw() * span, draw() * 32.0]).collect();
    for (slot, position) in (0u16..).zip(&positions) {
        interest.moved(slot, 0, Some(*position), (slot < members).then_some(MemberId(slot.into())));
    }
    interest.update(|_, _, _| {});
    positions
}

#[test]
fn a_world_that_stands_still_is_not_looked_at() {
    let mut interest = Interest::new(reach());
    let positions = plain(&mut interest, 1_000, 16, 512.0);
    let looks = interest.looks();
    for _ in 0..10 {
        for (slot, position) in (0u16..).zip(&positions) {
            interest.moved(slot, 0, Some(*position), (slot < 16).then_some(MemberId(slot.into())));
        }
        interest.update(|_, _, _| panic!("nothing changed"));
    }
    assert_eq!(interest.looks(), looks);
}

#[test]
fn who_stands_still_looks_only_at_what_moves_nearby() {
    let mut interest = Interest::new(reach());
    let positions = plain(&mut interest, 1_000, 16, 4_096.0);
    let looks = interest.looks();
    // Half of them move, but no eye, each by less than a cell.
    for (slot, position) in (0u16..).zip(&positions).skip(500) {
        interest.moved(slot, 0, Some([position[0] + 1.0, position[1], position[2]]), None);
    }
    interest.update(|_, _, _| {});
    let pairs = interest.looks() - looks;
    assert!((1..500).contains(&pairs), "of 8,000 pairs {pairs} were looked at");
}

#[test]
fn all_moving_costs_what_is_nearby() {
    let mut interest = Interest::new(reach());
    let positions = plain(&mut interest, 10_000, 16, 4_096.0);
    let looks = interest.looks();
    for (slot, position) in (0u16..).zip(&positions) {
        let owner = (slot < 16).then_some(MemberId(slot.into()));
        interest.moved(slot, 0, Some([position[0] + 1.0, position[1], position[2]]), owner);
    }
    interest.update(|_, _, _| {});
    // An eye checks three by three cells of 60 m in a plain of 4,096 m: 1 in 518.
    let pairs = interest.looks() - looks;
    assert!((160..1_000).contains(&pairs), "of 160,000 pairs {pairs} were looked at");
}

#[test]
fn an_audience_gates_before_all_else() {
    let mut interest = Interest::new(None);
    let (owner, other) = (MemberId(1), MemberId(2));
    [owner, other].into_iter().for_each(|member| interest.member_added(member));
    interest.moved(0, 0, None, Some(owner));
    interest.set_audience(0, &Audience::members([other]));
    let mut seen = Vec::new();
    interest.update(|member, slot, change| seen.push((member, slot, change)));
    assert_eq!(seen, [(other, 0, Change::Enter)]);
    interest.set_audience(0, &Audience::All);
    interest.update(|member, slot, change| seen.push((member, slot, change)));
    assert_eq!(seen[1..], [(owner, 0, Change::Enter)]);
}

#[test]
fn positions_that_are_no_numbers_or_out_of_this_world_do_no_harm() {
    let mut interest = Interest::new(reach());
    interest.member_added(MemberId(0));
    interest.moved(0, 0, Some([f32::MAX, -f32::MAX, f32::MAX]), Some(MemberId(0)));
    interest.moved(1, 0, Some([f32::MAX, -f32::MAX, f32::MAX]), None);
    interest.moved(2, 0, Some([-f32::MAX, f32::MAX, 0.0]), None);
    interest.moved(3, 7, Some([f32::NAN, 0.0, f32::INFINITY]), None);
    let mut seen = Vec::new();
    interest.update(|_, slot, change| seen.push((slot, change)));
    assert_eq!(seen, [(0, Change::Enter), (1, Change::Enter)]);
}

#[test]
fn cells_are_given_back() {
    let mut interest = Interest::new(reach());
    for step in 0..1_000u16 {
        interest.moved(0, 0, Some([f32::from(step) * 100.0, 0.0, 0.0]), None);
        interest.update(|_, _, _| {});
    }
    assert!(interest.grid.cells() <= 2, "a wanderer leaves {} cells behind", interest.grid.cells());
}
