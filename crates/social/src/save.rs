//! Saves: what a player keeps in slots, with the versions before.
//!
//! Each write of an account has a version above all earlier ones, also of other slots and of removed saves. So a
//! writer that names a version never replaces a save that it has not read.

use crate::limits::{BEFORE_BYTES_MAX, BEFORE_EACH, BEFORE_MAX, SLOTS_MAX};
use crate::name::Name;

/// A stored version of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSave {
    /// Its version.
    pub version: u64,
    /// Its slot.
    pub slot: Name,
    /// Its bytes, as they are counted.
    pub bytes: u64,
    /// Whether it is what the slot has; otherwise it was replaced or removed.
    pub is_current: bool,
}

/// What a write replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replaces {
    /// Whatever the slot has.
    #[default]
    Any,
    /// Nothing: the slot must be free.
    Nothing,
    /// This version.
    Version(u64),
}

/// Why a save is not written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveRefused {
    /// The slot has a save, and shall be free.
    Taken,
    /// The slot has another version, or none.
    Stale,
    /// The account has [`SLOTS_MAX`] other slots.
    SlotsFull,
    /// The slot has no save to remove.
    Empty,
}

/// What a write or a removal does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveChange {
    /// The version of what the slot had, which becomes one of the versions before.
    pub displaced: Option<u64>,
    /// Versions before that are deleted, because newer ones take their place.
    pub forgotten: Vec<u64>,
    /// Growth of the account's bytes.
    pub growth: i64,
}

/// Judges a write of `bytes` to a slot, among all that the account keeps.
///
/// # Errors
/// [`SaveRefused`].
pub fn write_save(
    kept: &[KeptSave],
    slot: &Name,
    replaces: Replaces,
    bytes: u64,
) -> Result<SaveChange, SaveRefused> {
    let current = current(kept, slot);
    match (replaces, current) {
        (Replaces::Nothing, Some(_)) => return Err(SaveRefused::Taken),
        (Replaces::Version(version), current) if current.map(|it| it.version) != Some(version) => {
            return Err(SaveRefused::Stale);
        }
        _ => {}
    }
    if current.is_none() && kept.iter().filter(|it| it.is_current).count() >= SLOTS_MAX {
        return Err(SaveRefused::SlotsFull);
    }
    Ok(change(kept, current, bytes))
}

/// Judges the removal of a slot's save.
///
/// # Errors
/// [`SaveRefused`].
pub fn remove_save(kept: &[KeptSave], slot: &Name, version: Option<u64>) -> Result<SaveChange, SaveRefused> {
    let current = current(kept, slot).ok_or(SaveRefused::Empty)?;
    if version.is_some_and(|version| version != current.version) {
        return Err(SaveRefused::Stale);
    }
    Ok(change(kept, Some(current), 0))
}

fn current<'a>(kept: &'a [KeptSave], slot: &Name) -> Option<&'a KeptSave> {
    kept.iter().find(|it| it.is_current && it.slot == *slot)
}

/// Keeps the newest versions before: [`BEFORE_EACH`] of each slot, and of all slots what the bounds allow.
fn change(kept: &[KeptSave], displaced: Option<&KeptSave>, added: u64) -> SaveChange {
    let displaced_version = displaced.map(|it| it.version);
    let mut before: Vec<&KeptSave> =
        kept.iter().filter(|it| !it.is_current || Some(it.version) == displaced_version).collect();
    // What has just been replaced is the newest, whatever its version.
    before.sort_by_key(|it| (Some(it.version) != displaced_version, core::cmp::Reverse(it.version)));
    let (mut count, mut bytes, mut forgotten_bytes) = (0, 0_u64, 0_u64);
    let mut forgotten = Vec::new();
    for (at, it) in before.iter().enumerate() {
        let newer = before.iter().take(at).filter(|other| other.slot == it.slot).count();
        let fits = bytes.saturating_add(it.bytes) <= BEFORE_BYTES_MAX;
        if newer < BEFORE_EACH && count < BEFORE_MAX && fits {
            count += 1;
            bytes += it.bytes;
        } else {
            forgotten.push(it.version);
            forgotten_bytes = forgotten_bytes.saturating_add(it.bytes);
        }
    }
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    SaveChange {
        displaced: displaced_version,
        forgotten,
        growth: signed(added).saturating_sub(signed(forgotten_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn slot(number: u8) -> Name {
        Name::new(&format!("slot-{number}")).unwrap()
    }

    /// What a store does with a change.
    fn apply(kept: &mut Vec<KeptSave>, change: &SaveChange, new: Option<KeptSave>) {
        for it in kept.iter_mut().filter(|it| Some(it.version) == change.displaced) {
            it.is_current = false;
        }
        kept.retain(|it| !change.forgotten.contains(&it.version));
        kept.extend(new);
    }

    #[test]
    fn t4_a_writer_replaces_only_what_it_names() {
        let kept = |version| vec![KeptSave { version, slot: slot(1), bytes: 10, is_current: true }];
        assert_eq!(write_save(&kept(5), &slot(1), Replaces::Nothing, 1), Err(SaveRefused::Taken));
        assert_eq!(write_save(&kept(5), &slot(1), Replaces::Version(4), 1), Err(SaveRefused::Stale));
        assert_eq!(write_save(&[], &slot(1), Replaces::Version(4), 1), Err(SaveRefused::Stale));
        let done = write_save(&kept(5), &slot(1), Replaces::Version(5), 1).unwrap();
        assert_eq!(done, SaveChange { displaced: Some(5), forgotten: vec![], growth: 1 });
        assert_eq!(remove_save(&kept(5), &slot(2), None), Err(SaveRefused::Empty));
        assert_eq!(remove_save(&kept(5), &slot(1), Some(4)), Err(SaveRefused::Stale));
        assert_eq!(remove_save(&kept(5), &slot(1), None).unwrap().displaced, Some(5));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u8, Replaces, u64),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let replaces = prop_oneof![
            4 => Just(Replaces::Any),
            1 => Just(Replaces::Nothing),
            1 => (0_u64..60).prop_map(Replaces::Version),
        ];
        let bytes = prop_oneof![1_u64..100, BEFORE_BYTES_MAX / 3..BEFORE_BYTES_MAX / 2];
        prop_oneof![
            5 => (0_u8..20, replaces, bytes).prop_map(|(slot, replaces, bytes)| Step::Write(slot, replaces, bytes)),
            1 => (0_u8..20).prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn t4_what_is_in_slots_is_never_lost_and_what_was_before_is_bounded(
            steps in proptest::collection::vec(step(), 1..120),
        ) {
            let (mut kept, mut newest, mut bytes) = (Vec::<KeptSave>::new(), 0, 0_i64);
            let mut slots: BTreeMap<Name, u64> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Write(number, replaces, size) => {
                        let (slot, there) = (slot(number), slots.get(&slot(number)).copied());
                        let change = write_save(&kept, &slot, replaces, size);
                        let is_refused = match replaces {
                            Replaces::Any => false,
                            Replaces::Nothing => there.is_some(),
                            Replaces::Version(version) => there != Some(version),
                        } || there.is_none() && slots.len() >= SLOTS_MAX;
                        prop_assert_eq!(change.is_err(), is_refused);
                        let Ok(change) = change else { continue };
                        prop_assert_eq!(change.displaced, there);
                        newest += 1;
                        bytes += change.growth;
                        let new = KeptSave { version: newest, slot: slot.clone(), bytes: size, is_current: true };
                        apply(&mut kept, &change, Some(new));
                        slots.insert(slot, newest);
                    }
                    Step::Remove(number) => {
                        let change = remove_save(&kept, &slot(number), None);
                        prop_assert_eq!(change.is_ok(), slots.remove(&slot(number)).is_some());
                        let Ok(change) = change else { continue };
                        bytes += change.growth;
                        apply(&mut kept, &change, None);
                    }
                }
                let current: BTreeMap<_, _> = kept.iter().filter(|it| it.is_current)
                    .map(|it| (it.slot.clone(), it.version)).collect();
                prop_assert_eq!(&current, &slots);
                let before: Vec<_> = kept.iter().filter(|it| !it.is_current).collect();
                prop_assert!(before.len() <= BEFORE_MAX);
                prop_assert!(before.iter().map(|it| it.bytes).sum::<u64>() <= BEFORE_BYTES_MAX);
                for it in &before {
                    prop_assert!(before.iter().filter(|other| other.slot == it.slot).count() <= BEFORE_EACH);
                }
                prop_assert_eq!(kept.iter().map(|it| it.bytes).sum::<u64>(), u64::try_from(bytes).unwrap());
            }
        }
    }
}
