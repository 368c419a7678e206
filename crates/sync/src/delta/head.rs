//! Codes the heads of entries.

use super::layout::head as models;
use super::tables::Tables;
use super::{DeltaError, EntryHead, EntryKind, HISTORY_MAX, Meta};
use crate::audience::Audience;
use crate::coder::{Bit, Code, number};
use crate::limits::{AUDIENCE_MEMBERS_MAX, ENTITIES_MAX};
use parlor_proto::MemberId;
use parlor_proto::OrderedSet;

/// The number of slots. Behind the last one they begin again.
#[expect(clippy::cast_possible_truncation, reason = "a slot has 16 bits")]
const SLOTS: u32 = ENTITIES_MAX as u32;

/// The last head of a packet, which the next one is coded against.
#[derive(Clone, Debug)]
pub(super) struct LastHead {
    /// The next slot.
    slot: u32,
    /// Whether the slots have begun again.
    is_again: bool,
    was_next: bool,
    was_same: bool,
    head: EntryHead,
}

impl LastHead {
    /// The state at the beginning of a packet.
    pub(super) fn new() -> Self {
        LastHead { slot: 0, is_again: false, was_next: true, was_same: true, head: EntryHead::update(0) }
    }

    /// Whether the slots have begun again.
    pub(super) fn is_again(&self) -> bool {
        self.is_again
    }

    /// The gap from the last slot to this one: 1 for the next.
    fn gap_to(&self, slot: u16) -> u32 {
        let slot = u32::from(slot);
        slot.checked_sub(self.slot).unwrap_or_else(|| slot + SLOTS - self.slot) + 1
    }

    /// The slot at a gap. `None` if there is none, or if slots begin again for the second time.
    pub(super) fn slot_after(&mut self, gap: u32) -> Option<u16> {
        let mut slot = self.slot.saturating_add(gap - 1);
        if slot >= SLOTS && !core::mem::replace(&mut self.is_again, true) {
            slot -= SLOTS;
        }
        u16::try_from(slot).ok().filter(|slot| u32::from(*slot) < SLOTS)
    }
}

/// The beginning of a head: its slot, and whether the rest equals the head before.
pub(super) enum Begun {
    End,
    Same(u16),
    Other(u16),
}

/// Codes a head, or the end of the packet. A decoder ignores `given`.
pub(super) fn head<C: Code>(
    code: &mut C,
    (bits, tables): (&mut [Bit], &Tables),
    everything: bool,
    last: &mut LastHead,
    given: Option<&EntryHead>,
) -> Result<Option<EntryHead>, DeltaError> {
    match begin(code, bits, last, given)? {
        Begun::End => Ok(None),
        Begun::Same(slot) => Ok(Some(EntryHead { slot, ..last.head.clone() })),
        Begun::Other(slot) => other(code, (bits, tables), everything, (slot, last), given).map(Some),
    }
}

/// Writes a head; only for encoders.
#[inline]
pub(super) fn write<C: Code>(
    code: &mut C,
    (bits, tables): (&mut [Bit], &Tables),
    everything: bool,
    last: &mut LastHead,
    given: &EntryHead,
) -> Result<(), DeltaError> {
    match begin(code, bits, last, Some(given))? {
        Begun::Other(slot) => {
            other(code, (bits, tables), everything, (slot, last), Some(given)).map(|written| {
                debug_assert!(written == *given, "{given:?} came out as {written:?}");
            })
        }
        Begun::Same(slot) => {
            debug_assert!(given.slot == slot && given.is_like(&last.head), "{given:?} is not like {last:?}");
            Ok(())
        }
        Begun::End => Err(DeltaError::Slot),
    }
}

#[inline]
fn begin<C: Code>(
    code: &mut C,
    bits: &mut [Bit],
    last: &mut LastHead,
    given: Option<&EntryHead>,
) -> Result<Begun, DeltaError> {
    let gap = given.map_or(0, |head| last.gap_to(head.slot));
    let is_next = code.bit(&mut bits[models::NEXT + usize::from(last.was_next)], gap == 1);
    let gap = if is_next {
        1
    } else {
        match number(code, &mut bits[models::GAP..], gap.saturating_sub(1)) {
            0 => return Ok(Begun::End),
            more => more.saturating_add(1),
        }
    };
    let slot = last.slot_after(gap).ok_or(DeltaError::Slot)?;
    (last.slot, last.was_next) = (u32::from(slot) + 1, is_next);
    let is_same = given.is_some_and(|head| head.is_like(&last.head));
    let is_same = code.bit(&mut bits[models::SAME + usize::from(last.was_same)], is_same);
    last.was_same = is_same;
    Ok(if is_same { Begun::Same(slot) } else { Begun::Other(slot) })
}

#[inline(never)]
fn other<C: Code>(
    code: &mut C,
    (bits, tables): (&mut [Bit], &Tables),
    everything: bool,
    (slot, last): (u16, &mut LastHead),
    given: Option<&EntryHead>,
) -> Result<EntryHead, DeltaError> {
    let head = rest(code, (bits, tables), everything, &last.head, given.unwrap_or(&last.head))?;
    let head = EntryHead { slot, ..head };
    last.head = EntryHead { kind: EntryKind::Update, mask: 0, meta: None, generation: 0, ..head.clone() };
    last.head.mask_changed = false;
    Ok(head)
}

fn rest<C: Code>(
    code: &mut C,
    (bits, tables): (&mut [Bit], &Tables),
    everything: bool,
    last: &EntryHead,
    given: &EntryHead,
) -> Result<EntryHead, DeltaError> {
    let mut head = EntryHead::update(0);
    head.kind = kind(code, bits, given.kind);
    head.row_age = if code.bit(&mut bits[models::AGES_SAME], given.row_age == last.row_age) {
        last.row_age
    } else {
        number(code, &mut bits[models::ROW_AGE..], given.row_age)
    };
    if head.kind == EntryKind::Despawn {
        return Ok(head);
    }
    if head.kind == EntryKind::Spawn {
        head.generation = (code.plain(16, u32::from(given.generation)) & 0xffff) as u16;
    } else {
        history(code, bits, last, given, &mut head);
    }
    head.mask_changed =
        head.kind == EntryKind::Spawn || code.bit(&mut bits[models::MASK], given.mask_changed);
    if head.mask_changed {
        head.mask = mask(code, &mut bits[models::IN_MASK..], tables.components(), given.mask);
    }
    if head.kind == EntryKind::Spawn || code.bit(&mut bits[models::META], given.meta.is_some()) {
        head.meta = Some(meta(code, bits, everything, given.meta.as_ref())?);
    }
    if head.kind == EntryKind::Spawn {
        head.changed = head.mask;
    } else if code.bit(&mut bits[models::CHANGED_SAME], given.changed == last.changed) {
        head.changed = last.changed;
    } else {
        head.changed = mask(code, &mut bits[models::CHANGED..], tables.components(), given.changed);
    }
    Ok(head)
}

fn kind<C: Code>(code: &mut C, bits: &mut [Bit], given: EntryKind) -> EntryKind {
    if code.bit(&mut bits[models::KIND], given == EntryKind::Update) {
        EntryKind::Update
    } else if code.bit(&mut bits[models::KIND + 1], given == EntryKind::Spawn) {
        EntryKind::Spawn
    } else {
        EntryKind::Despawn
    }
}

fn history<C: Code>(
    code: &mut C,
    bits: &mut [Bit],
    last: &EntryHead,
    given: &EntryHead,
    head: &mut EntryHead,
) {
    let is_same = given.history == last.history && given.ages == last.ages;
    if code.bit(&mut bits[models::AGES_SAME + 1], is_same) {
        (head.history, head.ages) = (last.history, last.ages);
        return;
    }
    let high = code.bit(&mut bits[models::HISTORY], given.history > 1);
    let low = code.bit(&mut bits[models::HISTORY + 1 + usize::from(high)], given.history & 1 == 1);
    head.history = u8::from(high) << 1 | u8::from(low);
    let mut before = 0u32;
    for at in 0..usize::from(head.history) {
        let models = if at == 0 { models::AGE } else { models::AGE_STEP };
        let step = number(code, &mut bits[models..], given.ages[at].wrapping_sub(before).wrapping_sub(1));
        before = before.saturating_add(step).saturating_add(1);
        head.ages[at] = before;
    }
}

/// One decision for each component.
fn mask<C: Code>(code: &mut C, bits: &mut [Bit], components: usize, given: u64) -> u64 {
    let each = bits[..components].iter_mut().enumerate();
    each.fold(0, |mask, (at, bit)| mask | u64::from(code.bit(bit, given >> at & 1 == 1)) << at)
}

fn meta<C: Code>(
    code: &mut C,
    bits: &mut [Bit],
    everything: bool,
    given: Option<&Meta>,
) -> Result<Meta, DeltaError> {
    let mut meta = Meta::default();
    let owner = given.and_then(|meta| meta.owner);
    if code.bit(&mut bits[models::META_PARTS], owner.is_some()) {
        meta.owner = Some(MemberId(code.plain(32, owner.map_or(0, |owner| owner.0))));
    }
    if !everything {
        return Ok(meta);
    }
    let zone = given.map_or(0, |meta| meta.zone);
    if code.bit(&mut bits[models::META_PARTS + 1], zone != 0) {
        meta.zone = code.plain(32, zone);
    }
    let members = match given.map(|meta| &meta.audience) {
        Some(Audience::Members(members)) => Some(members),
        _ => None,
    };
    if !code.bit(&mut bits[models::META_PARTS + 2], members.is_some()) {
        return Ok(meta);
    }
    let count = code.plain(16, members.map_or(0, |members| u32::try_from(members.len()).unwrap_or(0)));
    if count as usize > AUDIENCE_MEMBERS_MAX {
        return Err(DeltaError::Audience);
    }
    let (mut ids, mut read) = (members.into_iter().flatten(), OrderedSet::new());
    for _ in 0..count {
        let id = MemberId(code.plain(32, ids.next().map_or(0, |id| id.0)));
        if read.last().is_some_and(|&last| last >= id) {
            return Err(DeltaError::Audience);
        }
        read.insert(id);
    }
    meta.audience = Audience::Members(read);
    Ok(meta)
}

const _: () = assert!(HISTORY_MAX == 3, "a history's count is coded in two bits");
