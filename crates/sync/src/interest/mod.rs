//! Interest management: which entities each member sees.
//!
//! An [`Interest`] is given the positions of entities and the members. It reports which entities enter and
//! leave each member's view. Entities are listed by *cell*, a cube of an interest zone. A member checks only
//! the cells around its eyes, and if it stands still, only what moved there. An unchanged world costs
//! nothing.
//!
//! A member sees an entity if the entity's audience admits the member, and
//! - it owns the entity; these entities are its *eyes*; or
//! - the entity has no position, and its zone is 0 or one in which the member has an eye; or
//! - the entity is within `radius` of an eye and in the eye's zone or in zone 0. Once seen, it stays visible
//!   until it is farther than `leave` from every such eye.
//!
//! A member without eyes therefore sees entities without a position in zone 0. Without distances (`None`
//! given to [`Interest::new`]) positions are ignored, and zones alone decide. A game's own filter may hide
//! what the rules above show, but not what a member owns.
//!
//! ```
//! use parlor_proto::MemberId;
//! use parlor_sync::interest::{Change, Interest, Reach};
//!
//! let mut interest = Interest::new(Some(Reach::new(50.0, 60.0).expect("50 is not above 60")));
//! let member = MemberId(1);
//! interest.member_added(member);
//! interest.moved(7, 0, Some([0.0, 0.0, 0.0]), Some(member));
//! interest.moved(8, 0, Some([100.0, 0.0, 0.0]), None);
//!
//! let mut seen = Vec::new();
//! interest.update(|member, slot, change| seen.push((member, slot, change)));
//! assert_eq!(seen, [(member, 7, Change::Enter)]);
//!
//! interest.moved(8, 0, Some([49.0, 0.0, 0.0]), None);
//! interest.update(|member, slot, change| seen.push((member, slot, change)));
//! assert_eq!(seen[1..], [(member, 8, Change::Enter)]);
//! ```

mod bits;
mod grid;
mod member;

use crate::audience::{Audience, Viewer};
use crate::schema::GridInterest;
use bits::Bits;
use grid::{Entry, Grid, Spot};
use member::{Member, Scratch};
use parlor_proto::MemberId;

/// A change of a member's view of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The member begins to see it.
    Enter,
    /// The member no longer sees it, or it is gone.
    Leave,
}

/// How far members see, in the unit of the positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    radius: f64,
    leave: f64,
}

impl Reach {
    /// Creates a reach: members see what is within `radius`, until it is farther away than `leave`. Returns
    /// `None` unless 0 < `radius` ≤ `leave`, both finite.
    pub fn new(radius: f64, leave: f64) -> Option<Reach> {
        (radius > 0.0 && radius <= leave && leave.is_finite()).then_some(Reach { radius, leave })
    }
}

/// The reach of a schema, whose builder has checked it.
impl From<&GridInterest> for Reach {
    fn from(interest: &GridInterest) -> Reach {
        Reach { radius: interest.radius, leave: interest.leave }
    }
}

/// Nearness of owned entities, of entities without a position, and of entities at an eye: see
/// [`Interest::nearness`].
pub const NEARNESS_MAX: u16 = 256;
/// Nearness at the radius and beyond.
pub const NEARNESS_MIN: u16 = 16;

/// The nearness at this distance, for a radius above 0: linear from [`NEARNESS_MAX`] down to [`NEARNESS_MIN`]
/// at the radius, and constant beyond it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is clamped to a small range
pub fn nearness_at(distance: f64, radius: f64) -> u16 {
    let part = (distance / radius).clamp(0.0, 1.0);
    NEARNESS_MAX - (f64::from(NEARNESS_MAX - NEARNESS_MIN) * part) as u16
}

/// Determines which entities each member sees: see the [module](self).
#[derive(Debug)]
pub struct Interest {
    reach: Option<Reach>,
    grid: Grid,
    /// By slot.
    slots: Vec<Slot>,
    /// Slots that changed since the last update, each once.
    pending: Vec<u16>,
    /// Those of them that every member must evaluate: all but mere moves of an entity with a position.
    everywhere: Vec<u16>,
    /// Slots without a position.
    unplaced: Bits,
    /// Slots with a restricted audience.
    restricted: Bits,
    /// By ascending id.
    members: Vec<Member>,
    scratch: Scratch,
    /// Whether the last update used a filter.
    was_filtered: bool,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// The place at the last update.
    place: Option<Place>,
    /// The place for the next update.
    next: Option<Place>,
    /// Its spot in the grid, if it has a place.
    spot: Option<Spot>,
    audience: Audience,
    is_pending: bool,
    /// Whether its audience changed since the last update.
    is_readmitted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    zone: u32,
    /// `None` without distances.
    position: Option<[f32; 3]>,
    owner: Option<MemberId>,
}

/// A game's own filter.
type Filter<'a> = &'a mut dyn FnMut(MemberId, u16) -> bool;

impl Interest {
    /// Maximum bytes of memory: for each slot its data and a cell of its own in the grid, and for each member
    /// its slots.
    pub(crate) fn memory_bytes(&self) -> usize {
        const CELL: usize = 256;
        /// A distance, and the bits of the sets.
        const SEEN: usize = 2 * size_of::<f32>();
        let slots = self.slots.capacity();
        slots * (size_of::<Slot>() + CELL) + self.members.capacity() * (size_of::<Member>() + slots * SEEN)
    }

    /// Creates an empty one. With `None`, zones alone decide.
    pub fn new(reach: Option<Reach>) -> Self {
        // An entity within `leave` of an eye must be in a neighbouring cube even if its distance was rounded
        // down.
        let cube_size = reach.map(|reach| reach.leave * 1.001);
        Interest {
            reach,
            grid: Grid::new(cube_size),
            slots: Vec::new(),
            pending: Vec::new(),
            everywhere: Vec::new(),
            unplaced: Bits::default(),
            restricted: Bits::default(),
            members: Vec::new(),
            scratch: Scratch::default(),
            was_filtered: false,
        }
    }

    /// Whether positions are used.
    fn has_reach(&self) -> bool {
        self.reach.is_some()
    }

    /// Sets zone, position (z = 0 in the plane) and owner of the entity of `slot`: when it spawns, and when
    /// one of them changes. An unchanged entity costs next to nothing. A position that is not finite counts
    /// as none.
    pub fn moved(&mut self, slot: u16, zone: u32, position: Option<[f32; 3]>, owner: Option<MemberId>) {
        let position = position.filter(|position| self.has_reach() && position.iter().all(|x| x.is_finite()));
        self.set_next(slot, Some(Place { zone, position, owner }));
    }

    /// Sets the audience of the entity of `slot`. Default: everyone. It applies before all other rules.
    pub fn set_audience(&mut self, slot: u16, audience: &Audience) {
        let record = self.slot_mut(slot);
        if record.audience != *audience {
            record.audience.clone_from(audience);
            record.is_readmitted = true;
            self.restricted.set(slot, *audience != Audience::All);
            self.note(slot);
        }
    }

    /// Removes the entity of `slot` and its audience.
    pub fn removed(&mut self, slot: u16) {
        self.set_audience(slot, &Audience::All);
        self.set_next(slot, None);
    }

    /// Adds a member. Adding it twice changes nothing.
    pub fn member_added(&mut self, member: MemberId) {
        if let Err(index) = self.member_index(member) {
            let owned = |(slot, record): (usize, &Slot)| {
                let is_owner = record.place.is_some_and(|place| place.owner == Some(member));
                u16::try_from(slot).ok().filter(|_| is_owner)
            };
            let eyes = self.slots.iter().enumerate().filter_map(owned).collect();
            self.members.insert(index, Member::new(member, eyes));
        }
    }

    /// Removes a member; nothing is reported for what it saw.
    pub fn member_removed(&mut self, member: MemberId) {
        if let Ok(index) = self.member_index(member) {
            self.members.remove(index);
        }
    }

    /// Reports the changes since the last update, by ascending member and slot: what a member begins and
    /// ceases to see. If another entity took over a slot in between, members that see both get no report.
    pub fn update(&mut self, mut report: impl FnMut(MemberId, u16, Change)) {
        self.run(None, &mut report);
    }

    /// As [`update`](Self::update), with a filter of the game's own. It is called for each entity that the
    /// rules show to a member and that the member does not own. It is called again in each update, because
    /// its answer may change at any time. Its cost grows with what is seen, not with what changes.
    pub fn update_filtered(
        &mut self,
        mut filter: impl FnMut(MemberId, u16) -> bool,
        mut report: impl FnMut(MemberId, u16, Change),
    ) {
        self.run(Some(&mut filter), &mut report);
    }

    /// Whether `member` sees the entity of `slot`, as of the last update.
    pub fn sees(&self, member: MemberId, slot: u16) -> bool {
        self.member_index(member).is_ok_and(|index| self.members[index].told.contains(slot))
    }

    /// The nearness of the entity of `slot` to the nearest eye of `member`, as of the last update.
    /// [`NEARNESS_MAX`] at the eye, for entities without a position and for owned ones; linear down to
    /// [`NEARNESS_MIN`] at the radius. [`NEARNESS_MIN`] beyond it, and for a member that does not see it.
    pub fn nearness(&self, member: MemberId, slot: u16) -> u16 {
        let place = self.slots.get(usize::from(slot)).and_then(|record| record.place);
        let seer = self.member_index(member).map(|index| &self.members[index]);
        match (place, seer, self.reach) {
            (Some(place), Ok(seer), reach) if seer.told.contains(slot) => match reach {
                Some(reach) if place.position.is_some() && place.owner != Some(member) => {
                    seer.nearness(slot, reach)
                }
                _ => NEARNESS_MAX,
            },
            _ => NEARNESS_MIN,
        }
    }

    /// Returns how many pairs of member and entity were examined so far.
    pub fn looks(&self) -> u64 {
        self.scratch.looks
    }

    fn run(&mut self, mut filter: Option<Filter<'_>>, report: &mut dyn FnMut(MemberId, u16, Change)) {
        self.apply_pending();
        let mut members = std::mem::take(&mut self.members);
        for member in &mut members {
            let is_changed = self.look(member);
            if !is_changed && filter.is_none() && !self.was_filtered {
                continue;
            }
            let (id, slots) = (member.id, &self.slots);
            let owns = |slot: u16| slots[usize::from(slot)].place.is_some_and(|it| it.owner == Some(id));
            let filter = filter.as_mut().map(|filter| |slot: u16| owns(slot) || filter(id, slot));
            member.told.become_wanted(&member.seen, filter, |slot, enters| {
                report(id, slot, if enters { Change::Enter } else { Change::Leave });
            });
        }
        self.members = members;
        self.was_filtered = filter.is_some();
        self.everywhere.clear();
        self.grid.settle();
    }

    /// Updates the grid, the members' eyes and the lists of changes.
    fn apply_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        for slot in pending.drain(..) {
            let record = &mut self.slots[usize::from(slot)];
            record.is_pending = false;
            let is_readmitted = std::mem::take(&mut record.is_readmitted);
            let (from, to) = (record.place, record.next);
            record.place = to;
            if is_readmitted || is_for_everybody(from, to) {
                self.everywhere.push(slot);
            }
            if from != to {
                self.unplaced.set(slot, to.is_some_and(|place| place.position.is_none()));
                self.put(slot, to);
                self.note_eye(slot, from, to);
            }
        }
        self.pending = pending;
    }

    /// Moves the entity of `slot` to its cell.
    fn put(&mut self, slot: u16, to: Option<Place>) {
        let spot = self.slots[usize::from(slot)].spot;
        let key = to.map(|place| self.grid.key(place.zone, place.position));
        let position = to.and_then(|place| place.position).unwrap_or_default();
        if let Some(spot) = spot {
            if key == Some(self.grid.key_of(spot)) {
                return self.grid.place(spot, position);
            }
            if let Some(moved) = self.grid.remove(spot) {
                self.slots[usize::from(moved)].spot = Some(spot);
            }
        }
        let spot = key.map(|key| self.grid.insert(key, Entry { slot, position }));
        self.slots[usize::from(slot)].spot = spot;
    }

    /// Marks that the owners of the entity of `slot` had an eye added, moved or removed.
    fn note_eye(&mut self, slot: u16, from: Option<Place>, to: Option<Place>) {
        let (before, after) = (from.and_then(|place| place.owner), to.and_then(|place| place.owner));
        if before != after {
            if let Some(member) = self.owner_mut(before) {
                member.eyes.retain(|eye| *eye != slot);
                member.has_new_eyes = true;
            }
            if let Some(member) = self.owner_mut(after) {
                member.eyes.push(slot);
            }
        }
        if let Some(member) = self.owner_mut(after) {
            member.has_new_eyes = true;
        }
    }

    fn owner_mut(&mut self, owner: Option<MemberId>) -> Option<&mut Member> {
        let index = self.member_index(owner?).ok()?;
        self.members.get_mut(index)
    }

    fn member_index(&self, member: MemberId) -> Result<usize, usize> {
        self.members.binary_search_by_key(&member, |it| it.id)
    }

    fn set_next(&mut self, slot: u16, next: Option<Place>) {
        let record = self.slot_mut(slot);
        if record.next != next {
            record.next = next;
            self.note(slot);
        }
    }

    fn note(&mut self, slot: u16) {
        if !std::mem::replace(&mut self.slot_mut(slot).is_pending, true) {
            self.pending.push(slot);
        }
    }

    fn slot_mut(&mut self, slot: u16) -> &mut Slot {
        let index = usize::from(slot);
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, Slot::default);
        }
        &mut self.slots[index]
    }

    fn admits(&self, member: MemberId, slot: u16) -> bool {
        self.slots[usize::from(slot)].audience.admits(Viewer::Member(member))
    }
}

/// Whether all members must evaluate this change, and not only those with an eye near the old or new cell.
fn is_for_everybody(from: Option<Place>, to: Option<Place>) -> bool {
    match (from, to) {
        (Some(from), Some(to)) => {
            from.owner != to.owner
                || ((from.position.is_none() || to.position.is_none())
                    && (from.zone, from.position) != (to.zone, to.position))
        }
        (Some(_), None) => true,
        (None, Some(to)) => to.position.is_none(),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests;
