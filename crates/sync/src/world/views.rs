//! The views of all members of a room.

use super::baseline_sharing::BaselineSharing;
use super::diagnostics::Diagnostics;
use super::{Encodings, EntityId, Publisher, PublisherConfig, Sent, World};
use crate::audience::Viewer;
use crate::interest::{Change, Interest, Reach};
use crate::schema::{GridInterest, RowReader, Schema};
use bytes::Bytes;
use parlor_proto::{Instant, MemberId};

/// Publishers of one world for all members of a room: each gets what it may see, as [`Interest`] says, and
/// what is equal is coded once.
#[derive(Debug)]
pub struct Views {
    pub(super) members: Vec<(MemberId, Publisher)>,
    pub(super) encodings: Encodings,
    pub(super) interest: Interest,
    sharing: BaselineSharing,
    /// The lineage of the world and its change up to which interest was told.
    lineage: u32,
    cursor: Option<u64>,
}

impl Views {
    /// No members yet, of a world with this schema.
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

    /// A member comes, who has nothing. If it is there, it begins anew.
    pub fn add(&mut self, member: MemberId, config: PublisherConfig) {
        self.remove(member);
        let publisher = Publisher::with_interest(Viewer::Member(member), config);
        let at = self.members.partition_point(|(id, _)| *id < member);
        self.members.insert(at, (member, publisher));
        self.interest.member_added(member);
    }

    /// A member goes; says whether it was there.
    pub fn remove(&mut self, member: MemberId) -> bool {
        let Some(at) = self.index(member) else { return false };
        self.members.remove(at);
        self.interest.member_removed(member);
        true
    }

    /// The members, by ascending number.
    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        self.members.iter().map(|(member, _)| *member)
    }

    /// What a member's publisher knows.
    pub fn publisher(&self, member: MemberId) -> Option<&Publisher> {
        self.index(member).map(|at| &self.members[at].1)
    }

    /// A member's publisher, to restart it or to say how much it may send.
    pub fn publisher_mut(&mut self, member: MemberId) -> Option<&mut Publisher> {
        self.index(member).map(|at| &mut self.members[at].1)
    }

    /// Makes all packets that are due and may be sent.
    pub fn flush(&mut self, world: &World, now: Instant, send: impl FnMut(MemberId, Bytes, Sent)) {
        self.feed(world);
        let members = &mut self.members;
        self.interest.update(|member, slot, change| report(members, world, (member, slot, change)));
        self.send(world, now, send);
    }

    /// As [`flush`](Self::flush), of what `filter` lets a member see: it is asked of everything that its
    /// interest admits and that it does not own, each time.
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

    /// Tells interest what changed.
    fn feed(&mut self, world: &World) {
        let end = world.log.end();
        if self.lineage == world.lineage && self.cursor == Some(end) {
            return;
        }
        let changes =
            self.cursor.filter(|_| self.lineage == world.lineage).and_then(|cursor| world.log.since(cursor));
        if let Some(changes) = changes {
            // Without a grid, values say nothing of who sees an entity.
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

    /// A packet to a member arrived, or was lost. Who is not there and what was not sent changes nothing.
    pub fn fate(&mut self, member: MemberId, sent: Sent, delivered: bool) {
        if let Some(publisher) = self.publisher_mut(member) {
            if delivered { publisher.delivered(sent) } else { publisher.lost(sent) }
        }
    }

    /// How a member fares.
    pub fn diagnostics(&self, member: MemberId, world: &World) -> Option<Diagnostics> {
        Some(self.publisher(member)?.diagnostics(world))
    }

    /// How many bodies were coded, and how often one of them served another member too.
    pub const fn encodings(&self) -> (u64, u64) {
        self.encodings.counts()
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

/// Tells interest where the entity in a slot is.
fn place(interest: &mut Interest, world: &World, slot: u16) {
    let published = world.slots.get(usize::from(slot)).filter(|place| place.published);
    let Some(meta) = published.and_then(|_| world.metas[usize::from(slot)].newest()) else {
        return interest.removed(slot);
    };
    interest.set_audience(slot, &meta.audience);
    let position = world.schema.interest().and_then(|grid| position(world, slot, meta.mask, grid));
    interest.moved(slot, meta.zone, position, meta.owner);
}

/// Where the entity in a slot is, if it has the component that says so.
fn position(world: &World, slot: u16, mask: u64, grid: &GridInterest) -> Option<[f32; 3]> {
    let form = (mask & grid.component.bit() != 0)
        .then(|| world.columns[grid.component.index()].at(slot, u32::MAX))??;
    let component = world.schema.get(grid.component)?;
    let numbers = RowReader::new(component, form.lanes, form.blobs).field(grid.field).array::<3>();
    #[allow(clippy::cast_possible_truncation)] // interest need not be finer than an f32
    Some(numbers.map(|number| number as f32))
}
