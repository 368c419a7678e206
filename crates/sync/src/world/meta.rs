//! Metas: an entity's data beside its components, and who sees which part of it.

use crate::audience::{Audience, Viewer};
use crate::schema::{Condition, Schema};
use parlor_proto::MemberId;
use std::sync::Arc;

/// An entity's state from a tick on, except its component values.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub(super) label: u32,
    /// Its components.
    pub(super) mask: u64,
    pub(super) owner: Option<MemberId>,
    pub(super) zone: u32,
    pub(super) audience: Arc<Audience>,
}

/// Capacity that is always kept, however few versions there are.
const FEW: usize = 8;

impl Meta {
    /// Bytes of memory of the audience, counted as if this were its only user; some share theirs.
    fn audience_bytes(&self) -> usize {
        /// A node of the set has space for eleven members, and may hold only one, or five among several
        /// nodes.
        const NODE: usize = 64;
        match self.audience.named() {
            0 => NODE,
            named => 2 * NODE + named.div_ceil(5) * NODE,
        }
    }

    /// Whether only the label differs.
    pub(super) fn is_same(&self, other: &Meta) -> bool {
        let plain = |meta: &Meta| (meta.mask, meta.owner, meta.zone);
        plain(self) == plain(other)
            && (Arc::ptr_eq(&self.audience, &other.audience) || self.audience == other.audience)
    }
}

/// The versions of a [`Meta`], by ascending label. There are few: owners and component sets seldom change.
#[derive(Clone, Debug, Default)]
pub(super) struct Metas(Vec<Meta>);

impl Metas {
    pub(super) fn newest(&self) -> Option<&Meta> {
        self.0.last()
    }

    /// The label of the oldest version since which the entity is unchanged, and whether that is the oldest of
    /// all.
    pub(super) fn same_since(&self) -> Option<(u32, bool)> {
        let mut since = self.newest()?.label;
        for pair in self.0.windows(2).rev() {
            if !pair[0].is_same(&pair[1]) {
                return Some((since, false));
            }
            since = pair[0].label;
        }
        Some((since, true))
    }

    /// The versions that are older than all of `other`.
    pub(super) fn before<'a>(&'a self, other: &Metas) -> impl Iterator<Item = &'a Meta> + use<'a> {
        let until = other.0.first().map_or(0, |meta| meta.label);
        self.0.iter().take_while(move |meta| meta.label < until)
    }

    /// Returns the version at `tick`; `None` if it is unknown.
    pub(super) fn at(&self, tick: u32) -> Option<&Meta> {
        self.0.iter().rev().find(|meta| meta.label <= tick)
    }

    /// Whether it had all components of a mask at all ticks from `from` to `to`, both included.
    pub(super) fn had(&self, mask: u64, from: u32, to: u32) -> bool {
        let has = |meta: &Meta| meta.mask & mask == mask;
        let mut between = self.0.iter().filter(|meta| from < meta.label && meta.label <= to);
        self.at(from).is_some_and(has) && between.all(has)
    }

    /// Inserts a version in label order, unless its label exists. Keeps the same versions as a
    /// [`Ring`](super::ring::Ring), and updates `bytes`, the memory of all metas. Returns whether an old
    /// version was dropped.
    pub(super) fn insert(&mut self, meta: Meta, cutoff: u32, bytes: &mut usize) -> bool {
        let at = self.0.partition_point(|other| other.label <= meta.label);
        if at.checked_sub(1).is_some_and(|before| self.0[before].label == meta.label) {
            return false;
        }
        let before = self.0.capacity();
        *bytes += meta.audience_bytes();
        self.0.insert(at, meta);
        *bytes += (self.0.capacity() - before) * size_of::<Meta>();
        self.retire(cutoff, bytes)
    }

    /// Drops unreadable versions. Returns whether there were any.
    pub(super) fn retire(&mut self, cutoff: u32, bytes: &mut usize) -> bool {
        if self.0.get(1).is_none_or(|second| second.label >= cutoff) {
            return false;
        }
        let needless = self.0.partition_point(|meta| meta.label < cutoff).saturating_sub(1);
        *bytes -= self.0.drain(..needless).map(|meta| meta.audience_bytes()).sum::<usize>();
        let before = self.0.capacity();
        if before > FEW && self.0.len() < before / 4 {
            self.0.shrink_to(before / 2);
        }
        *bytes -= (before - self.0.capacity()) * size_of::<Meta>();
        true
    }

    pub(super) fn clear(&mut self, bytes: &mut usize) {
        *bytes -= self.0.drain(..).map(|meta| meta.audience_bytes()).sum::<usize>();
    }

    /// The label since which `viewer` sees the present owner and component set.
    pub(super) fn seen_label(&self, viewer: Viewer, masks: &Masks) -> Option<u32> {
        let seen = |meta: &Meta| (meta.owner, masks.of(viewer, meta));
        let mut label = self.newest()?.label;
        if viewer == Viewer::Everything {
            return Some(label);
        }
        for pair in self.0.windows(2).rev() {
            if seen(&pair[0]) != seen(&pair[1]) {
                break;
            }
            label = pair[0].label;
        }
        Some(label)
    }
}

/// Components by receiver, one bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masks {
    everyone: u64,
    owner_only: u64,
    not_owner: u64,
}

impl Masks {
    pub(super) fn new(schema: &Schema) -> Self {
        let mask = |condition: Condition| {
            let components = schema.components().iter().enumerate();
            let chosen = components.filter(|(_, component)| component.condition() == condition);
            chosen.fold(0, |mask, (index, _)| mask | 1 << index)
        };
        Masks {
            everyone: mask(Condition::Everyone),
            owner_only: mask(Condition::OwnerOnly),
            not_owner: mask(Condition::NotOwner),
        }
    }

    /// All components.
    pub(super) fn all(&self) -> u64 {
        self.everyone | self.owner_only | self.not_owner
    }

    /// Returns the components of an entity that `viewer` gets.
    pub(super) fn of(&self, viewer: Viewer, meta: &Meta) -> u64 {
        self.part(viewer, meta.owner, meta.mask)
    }

    /// Returns the components that `viewer` gets of an entity with this owner and these components.
    pub(super) fn part(&self, viewer: Viewer, owner: Option<MemberId>, mask: u64) -> u64 {
        let Viewer::Member(member) = viewer else { return mask };
        let own = if owner == Some(member) { self.owner_only } else { self.not_owner };
        mask & (self.everyone | own)
    }

    /// Whether some members get fewer of these components than others.
    pub(super) fn are_conditional(&self, mask: u64) -> bool {
        mask & (self.owner_only | self.not_owner) != 0
    }
}
