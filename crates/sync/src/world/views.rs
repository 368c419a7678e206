//! The views of all members of a room.

use super::baseline_sharing::BaselineSharing;
use super::diagnostics::Diagnostics;
use super::{Encodings, EntityId, Publisher, PublisherConfig, Sent, World};
use crate::audience::Viewer;
use crate::interest::{Change, Interest, Reach};
use crate::schema::{GridInterest, RowReader, Schema};
use bytes::Bytes;
use parlor_proto::{Instant, MemberId};

/// The publishers of one world for all members of a room. Each member gets what it may see, according to
/// [`Interest`]; equal bodies are encoded once.
#[derive(Debug)]
pub struct Views {
    pub(super) members: Vec<(MemberId, Publisher)>,
    pub(super) encodings: Encodings,
    pub(super) interest: Interest,
    sharing: BaselineSharing,
    /// The lineage of the world, and the change up to which interest was updated.
    lineage: u32,
    cursor: Option<u64>,
}

impl Views {
    /// Creates views without members, for a world with this schema.
    pub fn new(schema: &Schema) -> Self {
        Views {
            members: Vec::new(),
            encodings: Encodings::new(),
            interest: Interest::new(schema.interest().map(Reach::from)),
            sharing: BaselineSharing::default(),
            lineage: 0,
            cursor: None,
        }
    }

    /// Adds a member, without any state. A member that exists already starts again.
    pub fn add(&mut self, member: MemberId, config: PublisherConfig) {
        self.remove(member);
        let publisher = Publisher::with_interest(Viewer::Member(member), config);
        let at = self.members.partition_point(|(id, _)| *id < member);
        self.members.insert(at, (member, publisher));
        self.interest.member_added(member);
    }

    /// Removes a member. Returns whether it existed.
    pub fn remove(&mut self, member: MemberId) -> bool {
        let Some(at) = self.index(member) else { return false };
        self.members.remove(at);
        self.interest.member_removed(member);
        true
    }

    /// Iterates over the members, by ascending number.
    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        self.members.iter().map(|(member, _)| *member)
    }

    /// Returns a member's publisher.
    pub fn publisher(&self, member: MemberId) -> Option<&Publisher> {
        self.index(member).map(|at| &self.members[at].1)
    }

    /// Returns a member's publisher, to restart it or to set its limits.
    pub fn publisher_mut(&mut self, member: MemberId) -> Option<&mut Publisher> {
        self.index(member).map(|at| &mut self.members[at].1)
    }

    /// Sends all packets that are due and within the limits.
    pub fn flush(&mut self, world: &World, now: Instant, send: impl FnMut(MemberId, Bytes, Sent)) {
        self.feed(world);
        let members = &mut self.members;
        self.interest.update(|member, slot, change| report(members, world, (member, slot, change)));
        self.send(world, now, send);
    }

    /// As [`flush`](Self::flush), with a filter: it is called each time for every entity that the member's
    /// interest admits and that the member does not own.
    pub fn flush_filtered(
        &mut self,
        world: &World,
        now: Instant,
        mut filter: impl FnMut(MemberId, EntityId) -> bool,
        send: impl FnMut(MemberId, Bytes, Sent),
    ) {
        self.feed(world);
        let members = &mut self.members;
        self.interest.update_filtered(
            |member, slot| world.entity_at(slot).is_some_and(|entity| filter(member, entity)),
            |member, slot, change| report(members, world, (member, slot, change)),
        );
        self.send(world, now, send);
    }

    fn send(&mut self, world: &World, now: Instant, mut send: impl FnMut(MemberId, Bytes, Sent)) {
        let Views { members, encodings, interest, sharing, .. } = self;
        if let Some(tick) = world.tick {
            sharing.arrange(tick, members);
        }
        for (member, publisher) in members {
            let nearness = |slot| interest.nearness(*member, slot);
            while let Some((bytes, sent)) = publisher.poll_near(world, encodings, now, nearness) {
                send(*member, bytes, sent);
            }
        }
    }

    /// Updates interest with the changes.
    fn feed(&mut self, world: &World) {
        let end = world.log.end();
        if self.lineage == world.lineage && self.cursor == Some(end) {
            return;
        }
        let changes =
            self.cursor.filter(|_| self.lineage == world.lineage).and_then(|cursor| world.log.since(cursor));
        if let Some(changes) = changes {
            // Without a grid, values do not affect who sees an entity.
            let has_grid = world.schema.interest().is_some();
            changes
                .filter(|change| has_grid || !change.is_of_values)
                .for_each(|change| place(&mut self.interest, world, change.slot));
        } else {
            let slots = u16::try_from(world.slots.len()).unwrap_or(u16::MAX);
            (0..slots).for_each(|slot| place(&mut self.interest, world, slot));
        }
        (self.lineage, self.cursor) = (world.lineage, Some(end));
    }

    /// Reports that a packet to a member was delivered or lost. Ignored for unknown members and packets.
    pub fn fate(&mut self, member: MemberId, sent: Sent, delivered: bool) {
        if let Some(publisher) = self.publisher_mut(member) {
            if delivered { publisher.delivered(sent) } else { publisher.lost(sent) }
        }
    }

    /// Returns a member's diagnostics.
    pub fn diagnostics(&self, member: MemberId, world: &World) -> Option<Diagnostics> {
        Some(self.publisher(member)?.diagnostics(world))
    }

    /// The number of bodies encoded, and of reuses for another member.
    pub const fn encodings(&self) -> (u64, u64) {
        self.encodings.counts()
    }

    /// The number of entries encoded. Entries that several members get at once count once.
    pub const fn entries_encoded(&self) -> u64 {
        self.encodings.entries()
    }

    fn index(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search_by_key(&member, |(id, _)| *id).ok()
    }
}

/// Tells a publisher what its member begins or ceases to see.
fn report(
    members: &mut [(MemberId, Publisher)],
    world: &World,
    (member, slot, change): (MemberId, u16, Change),
) {
    if let Ok(at) = members.binary_search_by_key(&member, |(id, _)| *id) {
        let publisher = &mut members[at].1;
        match change {
            Change::Enter => publisher.enter(world, slot),
            Change::Leave => publisher.leave(world, slot),
        }
    }
}

/// Updates the position of a slot's entity in interest.
fn place(interest: &mut Interest, world: &World, slot: u16) {
    let published = world.slots.get(usize::from(slot)).filter(|place| place.published);
    let Some(meta) = published.and_then(|_| world.metas[usize::from(slot)].newest()) else {
        return interest.removed(slot);
    };
    interest.set_audience(slot, &meta.audience);
    let position = world.schema.interest().and_then(|grid| position(world, slot, meta.mask, grid));
    interest.moved(slot, meta.zone, position, meta.owner);
}

/// Returns the position of a slot's entity, if it has the component for it.
fn position(world: &World, slot: u16, mask: u64, grid: &GridInterest) -> Option<[f32; 3]> {
    let form = (mask & grid.component.bit() != 0)
        .then(|| world.columns[grid.component.index()].at(slot, u32::MAX))??;
    let component = world.schema.get(grid.component)?;
    let numbers = RowReader::new(component, form.lanes, form.blobs).field(grid.field).array::<3>();
    #[allow(clippy::cast_possible_truncation)] // interest need not be finer than an f32
    Some(numbers.map(|number| number as f32))
}
