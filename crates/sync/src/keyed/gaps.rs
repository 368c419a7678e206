//! Ascending numbers, each written as its distance from the one before: small, and with no room for a repetition.

use parlor_proto::wire::cursor::ReadError;

/// Turns ascending numbers into gaps and back.
#[derive(Default)]
pub(super) struct Gaps {
    next: u64,
}

impl Gaps {
    /// The gap before `number`, which is larger than all before it.
    pub(super) fn gap(&mut self, number: u32) -> u64 {
        let gap = u64::from(number).checked_sub(self.next).expect("sorted sets give ascending numbers");
        self.next = u64::from(number) + 1;
        gap
    }

    /// The number after `gap`; an error beyond `max`.
    pub(super) fn number(&mut self, field: &'static str, gap: u64, max: u32) -> Result<u32, ReadError> {
        let number = u32::try_from(self.next.saturating_add(gap)).ok().filter(|number| *number <= max);
        let number = number.ok_or(ReadError::OutOfRange { field })?;
        self.next = u64::from(number) + 1;
        Ok(number)
    }
}
