//! Predicted actions, in the inputs of their steps.
//!
//! ```text
//!  value   a map: parlor.actions: list of at most 4 items, each bytes · parlor.input: bytes, the encoded input
//!  item    epoch: varint of 32 bits · number: varint of 32 bits · age: varint, at most 255 · action
//! ```
//!
//! A member repeats an action that the authority has not decided in the input of a later step, when its own input
//! may be too old to be sent again. So the authority counts numbers: each is decided once.

use super::InputError;
use crate::limits::{ACTION_AGE_MAX, ACTION_NUMBERS_KEPT, ACTIONS_PER_INPUT_MAX};
use crate::value::{Map, Value, ValueError};
use bytes::Bytes;
use parlor_proto::Epoch;
use parlor_proto::limits::INPUT_BYTES_MAX;
use parlor_proto::wire::action::Action;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};

/// A predicted action in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acted {
    /// The authority of this epoch decides it; another one ignores it.
    pub epoch: Epoch,
    /// Its number, by its member's count.
    pub number: u32,
    /// How many steps before the input's the action was made.
    pub age: u32,
    /// The action.
    pub action: Action,
}

const ACTIONS: &str = "parlor.actions";
const INPUT: &str = "parlor.input";

/// Encodes an input with the actions of its step: the input alone if there are none.
///
/// # Errors
/// [`ValueError`] if they do not fit [`INPUT_BYTES_MAX`].
pub fn encode_with_actions(input: &Bytes, actions: &[Acted]) -> Result<Bytes, ValueError> {
    if actions.is_empty() {
        return Ok(input.clone());
    }
    let items = actions.iter().map(|acted| {
        let mut item = Vec::new();
        item.put_varint(acted.epoch.0.into());
        item.put_varint(acted.number.into());
        item.put_varint(acted.age.into());
        item.extend_from_slice(&acted.action.encode());
        Value::Bytes(item.into())
    });
    let mut map = Map::new();
    map.insert(ACTIONS, Value::List(items.collect()));
    map.insert(INPUT, Value::Bytes(input.clone()));
    Value::Map(map).encode(INPUT_BYTES_MAX)
}

/// Splits a received value into the input and the actions of its step.
pub(super) fn split(encoded: Bytes) -> Result<(Bytes, Vec<Acted>), InputError> {
    let value = Value::decode(encoded.clone())?;
    let Some(items) = value.field(ACTIONS) else { return Ok((encoded, Vec::new())) };
    let wrong = |field| InputError::Malformed(ReadError::OutOfRange { field });
    let (Value::List(items), Some(Value::Bytes(input))) = (items, value.field(INPUT)) else {
        return Err(wrong("the actions of an input"));
    };
    if items.len() > ACTIONS_PER_INPUT_MAX {
        return Err(wrong("the number of actions of an input"));
    }
    Value::decode(input.clone())?;
    let mut actions = Vec::new();
    for item in items {
        let Value::Bytes(item) = item else { return Err(wrong("an action of an input")) };
        let mut reader = Reader::new(item.clone());
        let epoch = Epoch(reader.varint_u32("the epoch of an action")?);
        let number = reader.varint_u32("the number of an action")?;
        let age = reader.varint_u32("the age of an action")?;
        if age > ACTION_AGE_MAX {
            return Err(wrong("the age of an action"));
        }
        actions.push(Acted { epoch, number, age, action: Action::decode(reader.rest())? });
    }
    Ok((input.clone(), actions))
}

/// The numbers of one member's actions that were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    newest: Option<u32>,
    /// A bit for each of the newest and those before it.
    taken: u128,
}

impl Numbers {
    /// Takes a number. Returns whether it is new; numbers too far behind the newest are not.
    pub(super) fn take(&mut self, number: u32) -> bool {
        let Some(newest) = self.newest else {
            (self.newest, self.taken) = (Some(number), 1);
            return true;
        };
        if let Some(ahead) = number.checked_sub(newest).filter(|ahead| *ahead > 0) {
            self.taken = self.taken.checked_shl(ahead).unwrap_or(0) | 1;
            self.newest = Some(number);
            return true;
        }
        let behind = newest - number;
        if behind >= ACTION_NUMBERS_KEPT || self.taken >> behind & 1 == 1 {
            return false;
        }
        self.taken |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::{Arrival, InputBuffer, OwnInputs, Runs};
    use crate::limits::ACTIONS_PENDING_MAX;
    use parlor_proto::{EntityId, Instant, Tick, TickRate};

    fn acted(number: u32, age: u32) -> Acted {
        let value = Value::from(7i64).encode(8).unwrap();
        let epoch = Epoch(3);
        Acted {
            epoch,
            number,
            age,
            action: Action { entity: EntityId::from_bits(5), name: "jump".into(), value },
        }
    }

    #[test]
    fn an_input_and_its_actions_come_apart_as_they_were() {
        let input = Value::from("left").encode(INPUT_BYTES_MAX).unwrap();
        for actions in [vec![], vec![acted(0, 0)], vec![acted(1 << 31, 255), acted(7, 24)]] {
            let encoded = encode_with_actions(&input, &actions).unwrap();
            assert_eq!(split(encoded), Ok((input.clone(), actions)));
        }
        let five: Vec<_> = (0..5).map(|number| acted(number, 0)).collect();
        assert!(split(encode_with_actions(&input, &five).unwrap()).is_err());
        assert!(split(encode_with_actions(&input, &[acted(0, 256)]).unwrap()).is_err());
        let large = Value::from("x".repeat(500).as_str()).encode(INPUT_BYTES_MAX).unwrap();
        assert!(encode_with_actions(&large, &five).is_err(), "it is larger than an input may be");
    }

    #[test]
    fn threat_21_actions_that_wait_are_bounded_and_each_number_counts_once() {
        let (mut own, mut buffer) = (OwnInputs::new(), InputBuffer::new(TickRate::DEFAULT));
        let input = Value::from(1i64).encode(INPUT_BYTES_MAX).unwrap();
        let arrival = Arrival { at: Instant::ZERO, tick: Tick(1_000) };
        for tick in 0..60u32 {
            // Three new ones, and one that came before.
            let numbers = [tick * 3, tick * 3 + 1, tick * 3 + 2, 0];
            let actions: Vec<_> = numbers.into_iter().map(|number| acted(number, 0)).collect();
            let encoded = encode_with_actions(&input, &actions).unwrap();
            own.record_with_actions(Tick(1_001 + tick), None, input.clone(), Some(encoded));
            buffer.take(own.message(0).unwrap(), arrival, &Runs::default()).unwrap();
        }
        assert_eq!(buffer.next_action(Tick(1_000)), None, "none is due");
        let waiting: Vec<u32> =
            std::iter::from_fn(|| buffer.next_action(Tick(2_000))).map(|(_, acted)| acted.number).collect();
        assert_eq!(waiting, (0..64).collect::<Vec<_>>());
        let left = 60 * 3 - ACTIONS_PENDING_MAX as u64;
        assert!(buffer.counters().actions_dropped >= left, "{:?}", buffer.counters());
    }

    #[test]
    fn each_number_is_taken_once() {
        let mut numbers = Numbers::default();
        let taken: Vec<bool> =
            [3, 3, 5, 4, 4, 200, 5, 73, 72, 1, 199].map(|number| numbers.take(number)).to_vec();
        let wanted = [true, false, true, true, false, true, false, true, false, false, true];
        assert_eq!(taken, wanted, "72 is 128 behind, and forgotten");
        assert!(numbers.take(u32::MAX) && !numbers.take(200));
    }
}
