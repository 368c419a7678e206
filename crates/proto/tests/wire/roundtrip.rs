//! Every written value can be read, and every readable value would be written the same way.

use crate::strategies::{
    action, asked_by, downward, frame, header, own_state, state_of, to_hub, to_member, upward,
};
use bytes::Bytes;
use parlor_proto::CloseReason;
use parlor_proto::wire::action::{Action, AskedBy};
use parlor_proto::wire::control::{LeaveReason, ToHub, ToMember};
use parlor_proto::wire::cursor::{ReadError, Reader};
use parlor_proto::wire::envelope::{Downward, Upward};
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::wire::header::Header;
use parlor_proto::wire::replica::{OwnState, StateOf};
use proptest::prelude::*;

pub(crate) fn write_header(header: &Header) -> Bytes {
    let mut out = Vec::new();
    header.write(&mut out);
    out.into()
}

pub(crate) fn write_frame(frame: &Frame) -> Bytes {
    let mut out = Vec::new();
    frame.write(&mut out);
    out.into()
}

pub(crate) fn read_header(bytes: Bytes) -> Result<Header, ReadError> {
    let mut reader = Reader::new(bytes);
    let header = Header::read(&mut reader)?;
    reader.finish().map(|()| header)
}

pub(crate) fn read_frame(bytes: Bytes) -> Result<Option<Frame>, ReadError> {
    let mut reader = Reader::new(bytes);
    let frame = Frame::read(&mut reader)?;
    reader.finish().map(|()| frame)
}

/// The few places where a reader ignores bytes, for later versions.
fn may_ignore(frame: &Frame) -> bool {
    match frame {
        Frame::ForeignHello { .. } | Frame::Refused(Refusal::Unknown { .. }) => true,
        Frame::Close(reason) => !matches!(
            reason,
            CloseReason::Kicked { .. }
                | CloseReason::RoomEnded { .. }
                | CloseReason::ConnectionLost { .. }
                | CloseReason::Misbehaved { .. }
                | CloseReason::Unknown { .. }
        ),
        _ => false,
    }
}

/// A small change to bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        4 => any::<(prop::sample::Index, u8)>().prop_map(|(at, byte)| Mutation::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Mutation::Cut),
        2 => any::<(prop::sample::Index, u8)>().prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Mutation::Remove),
    ]
}

fn mutate(bytes: &Bytes, mutation: &Mutation) -> Bytes {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    match mutation {
        Mutation::Set(at, byte) => bytes[at.index(len)] = *byte,
        Mutation::Cut(at) => bytes.truncate(at.index(len)),
        Mutation::Insert(at, byte) => bytes.insert(at.index(len + 1), *byte),
        Mutation::Remove(at) => {
            bytes.remove(at.index(len));
        }
    }
    bytes.into()
}

proptest! {
    #[test]
    fn headers(header in header(), mutation in mutation()) {
        let bytes = write_header(&header);
        prop_assert_eq!(read_header(bytes.clone()), Ok(header));
        let odd = mutate(&bytes, &mutation);
        if let Ok(header) = read_header(odd.clone()) {
            prop_assert_eq!(write_header(&header), odd);
        }
    }

    #[test]
    fn frames(frame in frame(), mutation in mutation()) {
        let bytes = write_frame(&frame);
        prop_assert_eq!(read_frame(bytes.clone()), Ok(Some(frame)));
        let odd = mutate(&bytes, &mutation);
        if let Ok(Some(frame)) = read_frame(odd.clone()) {
            let again = write_frame(&frame);
            prop_assert_eq!(read_frame(again.clone()), Ok(Some(frame.clone())));
            prop_assert!(again == odd || may_ignore(&frame), "{:?}", frame);
        }
    }

    #[test]
    fn control_to_a_member(message in to_member(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(ToMember::decode(bytes.clone()), Ok(Some(message)));
        let odd = mutate(&bytes, &mutation);
        if let Ok(Some(message)) = ToMember::decode(odd.clone()) {
            // Only a kick has a detail; that of another reason is ignored.
            let ignores =
                matches!(&message, ToMember::Left { reason, .. } | ToMember::Away { reason, .. } if !matches!(reason, LeaveReason::Kicked { .. }));
            prop_assert_eq!(ToMember::decode(message.encode()), Ok(Some(message.clone())));
            prop_assert!(ignores || message.encode() == odd);
        }
    }

    #[test]
    fn control_to_the_hub(message in to_hub(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(ToHub::decode(bytes.clone()), Ok(Some(message)));
        let odd = mutate(&bytes, &mutation);
        if let Ok(Some(message)) = ToHub::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn envelopes_on_the_way_up(message in upward(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(Upward::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = Upward::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn envelopes_on_the_way_down(message in downward(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(Downward::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = Downward::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn actions_on_the_way_up(message in action(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(Action::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = Action::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn actions_on_the_way_down(message in asked_by(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(AskedBy::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = AskedBy::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn own_states(message in own_state(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(OwnState::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = OwnState::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    #[test]
    fn states_of_members(message in state_of(), mutation in mutation()) {
        let bytes = message.encode();
        prop_assert_eq!(StateOf::decode(bytes.clone()), Ok(message));
        let odd = mutate(&bytes, &mutation);
        if let Ok(message) = StateOf::decode(odd.clone()) {
            prop_assert_eq!(message.encode(), odd);
        }
    }

    /// Threats 16 and 18 at their root: any bytes are read or rejected.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = read_header(bytes.clone());
        let _ = read_frame(bytes.clone());
        let _ = ToMember::decode(bytes.clone());
        let _ = ToHub::decode(bytes.clone());
        let _ = Upward::decode(bytes.clone());
        let _ = Downward::decode(bytes.clone());
        let _ = Action::decode(bytes.clone());
        let _ = AskedBy::decode(bytes.clone());
        let _ = StateOf::decode(bytes.clone());
        let _ = OwnState::decode(bytes);
    }

    #[test]
    fn a_frame_of_an_unknown_kind_is_passed_over(
        kind in 0x20u64..1 << 20,
        body in proptest::collection::vec(any::<u8>(), 0..100),
        next in frame(),
    ) {
        use parlor_proto::wire::cursor::Write;
        let mut out = Vec::new();
        out.put_varint(kind);
        out.put_bytes(&body);
        next.write(&mut out);
        let mut reader = Reader::new(out.into());
        prop_assert_eq!(Frame::read(&mut reader), Ok(None));
        prop_assert_eq!(Frame::read(&mut reader), Ok(Some(next)));
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    for flags in [0x20, 0x40, 0x80, 0xff] {
        assert!(read_header(Bytes::from(vec![flags; 30])).is_err());
    }
    // Epoch 0 is written by omitting it.
    assert!(read_header(Bytes::from_static(&[0x10, 0])).is_err());
    // A length beyond the end of the bytes.
    assert!(read_frame(Bytes::from_static(&[0x10, 0x05, 0x03])).is_err());
    // A kind or a length not in its shortest form.
    assert!(read_frame(Bytes::from_static(&[0x40, 0x10, 0x01, 0x03])).is_err());
    assert!(read_frame(Bytes::from_static(&[0x10, 0x40, 0x01, 0x03])).is_err());
    // An action without a name.
    assert!(Action::decode(Bytes::from_static(&[1, 0, 0, 0, 0])).is_err());
    // Control messages of a kind that this version does not know are not errors.
    assert_eq!(ToMember::decode(Bytes::from_static(&[99, 1, 2, 3])), Ok(None));
    assert_eq!(ToHub::decode(Bytes::from_static(&[99, 1, 2, 3])), Ok(None));
}
