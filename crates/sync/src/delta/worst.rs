//! Worst-case sizes of entries.

use super::layout;
use super::sizes::DISTANCE_BITS_MAX;
use super::tables::{Group, Shape, Tables};
use super::{EntryHead, HISTORY_MAX};
use crate::audience::Audience;
use crate::coder::{DECISION_BITS_MAX, number_bits_max};
use crate::limits::{BLOB_BYTES_MAX, ENTITIES_MAX};

/// Maximum bytes that an entry with this head adds to a body, for components whose blobs have `blob_bytes` in
/// all.
///
/// It is a hard bound, at least ten times the usual size. To fill packets, write an entry, check
/// [`Writer::bytes`](super::Writer::bytes), and undo the entry if it was too large.
pub fn worst_bytes(tables: &Tables, head: &EntryHead, blob_bytes: usize) -> usize {
    let changed = tables.plans.iter().enumerate().filter(|(at, _)| head.changed >> at & 1 == 1);
    let groups = changed.flat_map(|(_, plan)| &plan.groups);
    let bits = head_bits(tables, head) + groups.map(group_bits).sum::<usize>() + blob_bytes * BYTE_BITS_MAX;
    bits.div_ceil(8) + 1
}

/// Maximum bits of a blob's byte: whether it equals the base, and if not, its bits.
const BYTE_BITS_MAX: usize = 9 * DECISION_BITS_MAX;

#[expect(clippy::cast_possible_truncation, reason = "limits are small")]
fn head_bits(tables: &Tables, head: &EntryHead) -> usize {
    let decisions = layout::head::DECISIONS + 2 * tables.components();
    let numbers = number_bits_max(ENTITIES_MAX as u32) + (1 + HISTORY_MAX) * number_bits_max(u32::MAX - 1);
    let members = match head.meta.as_ref().map(|meta| &meta.audience) {
        Some(Audience::Members(members)) => members.len(),
        _ => 0,
    };
    // A generation, an owner, a zone, and the member count of an audience.
    let plain = 16 + 32 + 32 + 16 + 32 * members;
    decisions * DECISION_BITS_MAX + numbers + plain
}

#[expect(clippy::cast_possible_truncation, reason = "limits are small")]
fn group_bits(group: &Group) -> usize {
    match &group.shape {
        Shape::Flag => DECISION_BITS_MAX,
        Shape::Choice { bits, .. } => (1 + *bits as usize) * DECISION_BITS_MAX,
        Shape::Numbers(numbers) => DECISION_BITS_MAX + numbers.dims * DISTANCE_BITS_MAX,
        Shape::Rotation(_) => 4 * DECISION_BITS_MAX + 3 * DISTANCE_BITS_MAX,
        Shape::Blob { .. } => DECISION_BITS_MAX + 3 * number_bits_max(BLOB_BYTES_MAX as u32),
    }
}
