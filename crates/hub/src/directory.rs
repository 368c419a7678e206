//! Maps room codes to rooms.

use parlor_proto::{RoomCode, RoomId};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The codes of all live rooms. A code is free again when its room ends.
#[derive(Debug, Default)]
pub struct Directory {
    rooms: BTreeMap<RoomCode, RoomId>,
}

/// The chosen code belongs to another room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeTaken;

impl Directory {
    /// Registers a room under the code that its creator chose.
    ///
    /// # Errors
    /// [`CodeTaken`] if a live room has it.
    pub fn choose(&mut self, code: RoomCode, room: RoomId) -> Result<(), CodeTaken> {
        if self.rooms.contains_key(&code) {
            return Err(CodeTaken);
        }
        self.rooms.insert(code, room);
        Ok(())
    }

    /// Registers a room under a code of `len` letters drawn from `random`, which returns numbers uniform over
    /// 32 bits. [`code::len_for`](parlor_proto::code::len_for) gives the length for a number of rooms.
    ///
    /// Draws again until `may_be` accepts the code: each of several directories draws only from its own share
    /// of all codes.
    pub fn draw(
        &mut self,
        room: RoomId,
        len: usize,
        mut random: impl FnMut() -> u32,
        may_be: impl Fn(RoomCode) -> bool,
    ) -> RoomCode {
        loop {
            // At most one drawn code in 10,000 collides with another, so this ends soon beside many chosen
            // ones.
            let code = RoomCode::draw(len, &mut random);
            if may_be(code) && self.choose(code, room).is_ok() {
                return code;
            }
        }
    }

    /// Returns the room that `code` leads to.
    pub fn find(&self, code: RoomCode) -> Option<RoomId> {
        self.rooms.get(&code).copied()
    }

    /// Returns the rooms whose codes come after a bound, in code order.
    pub fn after(&self, after: Bound<RoomCode>) -> impl Iterator<Item = (RoomCode, RoomId)> + '_ {
        self.rooms.range((after, Bound::Unbounded)).map(|(code, room)| (*code, *room))
    }

    /// Removes a room.
    pub fn remove(&mut self, code: RoomCode) {
        self.rooms.remove(&code);
    }

    /// Returns the number of live rooms.
    pub fn len(&self) -> usize {
        self.rooms.len()
    }

    /// Whether there are no live rooms.
    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::code;

    fn numbers() -> impl FnMut() -> u32 {
        let mut state = 7u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        }
    }

    #[test]
    fn codes_are_distinct_and_grow_with_the_rooms() {
        let (mut directory, mut random) = (Directory::default(), numbers());
        let mut lengths = Vec::new();
        for room in 0..3_000 {
            let len = code::len_for(directory.len() + 1);
            let code = directory.draw(RoomId(room), len, &mut random, |_| true);
            assert_eq!(directory.find(code), Some(RoomId(room)));
            lengths.push(code.as_str().len());
        }
        assert_eq!(directory.len(), 3_000);
        assert_eq!((lengths[91], lengths[92], lengths[2_861], lengths[2_862]), (4, 5, 5, 6));
    }

    #[test]
    fn a_code_is_free_again_when_its_room_has_ended() {
        let mut directory = Directory::default();
        let code = "MYROOM".parse().expect("a code");
        assert_eq!(directory.choose(code, RoomId(1)), Ok(()));
        assert_eq!(directory.choose(code, RoomId(2)), Err(CodeTaken));
        directory.remove(code);
        assert_eq!(directory.choose(code, RoomId(2)), Ok(()));
    }
}
