//! Numbers that members send each other, reliably and in order: receivers detect losses and duplicates.

use parlor::{MemberId, Message, Room, RoomError, Sender};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What kind of message they are.
const KIND: &str = "number";

/// What one member says, and what it heard of each other one.
#[derive(Debug)]
pub(crate) struct Talk {
    every: Duration,
    due: Instant,
    said: u64,
    heard: BTreeMap<u32, Heard>,
}

/// Numbers received from one member since it, or this member, joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Heard {
    /// The first number that came.
    first: u64,
    /// The greatest that did.
    last: u64,
    /// How many between them did not.
    missing: u64,
    /// How many came again or after a greater one.
    out_of_order: u64,
}

impl Talk {
    /// Says a number so many times a second, and none if it is none.
    pub(crate) fn new(hz: u16) -> Self {
        let every = Duration::from_secs(1).checked_div(hz.into()).unwrap_or(Duration::MAX);
        Talk { every, due: Instant::now(), said: 0, heard: BTreeMap::new() }
    }

    /// How many numbers were said.
    pub(crate) fn said(&self) -> u64 {
        self.said
    }

    /// What was heard, by who said it.
    pub(crate) fn heard(&self) -> &BTreeMap<u32, Heard> {
        &self.heard
    }

    /// Sends the next number if it is due and there is a receiver. If the queue is full, it is sent later.
    ///
    /// # Errors
    /// If the room takes no message for another reason than that too many wait.
    pub(crate) fn speak(&mut self, room: &Room) -> Result<(), RoomError> {
        let now = Instant::now();
        if self.every == Duration::MAX || now < self.due || room.player_count() < 2 {
            return Ok(());
        }
        self.due = now + self.every;
        match room.broadcast(KIND, &(self.said + 1)) {
            Ok(()) => self.said += 1,
            Err(RoomError::Full) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes a message, if it is a number of a member.
    pub(crate) fn hear(&mut self, message: &Message) {
        if let (Sender::Member(from), KIND, Ok(number)) = (message.from, &*message.kind, message.read()) {
            self.take(from, number);
        }
    }

    fn take(&mut self, from: MemberId, number: u64) {
        let heard = self.heard.entry(from.0).or_insert(Heard {
            first: number,
            last: number.wrapping_sub(1),
            ..Heard::default()
        });
        match number.wrapping_sub(heard.last) {
            ahead @ 1..=0x7fff_ffff_ffff_ffff => {
                heard.missing += ahead - 1;
                heard.last = number;
            }
            _ => heard.out_of_order += 1,
        }
    }

    /// This member is a newcomer again: numbers sent meanwhile were not for it.
    pub(crate) fn begin_anew(&mut self) {
        self.heard.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(numbers: &[u64]) -> Heard {
        let mut talk = Talk::new(10);
        numbers.iter().for_each(|number| talk.take(MemberId(7), *number));
        talk.heard()[&7]
    }

    #[test]
    fn what_is_lost_or_comes_twice_is_counted() {
        assert_eq!(heard(&[4, 5, 6]), Heard { first: 4, last: 6, missing: 0, out_of_order: 0 });
        assert_eq!(heard(&[4, 7, 8, 10]), Heard { first: 4, last: 10, missing: 3, out_of_order: 0 });
        assert_eq!(heard(&[4, 5, 5, 4, 6]), Heard { first: 4, last: 6, missing: 0, out_of_order: 2 });
    }

    #[test]
    fn a_newcomer_misses_nothing_of_before() {
        let mut talk = Talk::new(10);
        talk.take(MemberId(7), 1);
        talk.begin_anew();
        talk.take(MemberId(7), 90);
        assert_eq!(talk.heard()[&7].missing, 0);
    }
}
