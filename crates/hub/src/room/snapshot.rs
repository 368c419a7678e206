//! What a room takes along when it moves to another node: its [roster](super::roster), and the session of each member.
//!
//! ```text
//!  snapshot  version: 1 byte · order: varint · room time in µs: varint · primary: 0 | 1, member: varint · roster
//!            for each member of the roster, in its order
//!                connected: 0 | 1 · data: count: varint, for each: key: text, value
//!                token: 32 bytes · token before: 0 | 1, 32 bytes · session
//! ```
//!
//! The world is not in it: its host sends it anew, under the same epoch. What waits for budgets or for a direct path is not
//! in it either: a room passes all of that on before it is sealed.

use super::roster::{KeptSeat, Roster};
use bytes::Bytes;
use parlor_proto::wire::cursor::{ReadError, Reader, VARINT_MAX, Write};
use parlor_proto::{MemberId, limits};
use std::collections::BTreeMap;

const VERSION: u8 = 1;
/// Maximum bytes of a snapshot. A room with more is not moved.
pub const SNAPSHOT_BYTES_MAX: usize = 4 << 20;
/// Maximum bytes of a member's session.
const SESSION_BYTES_MAX: usize = 4 * limits::RELIABLE_QUEUE_BYTES_MAX;

/// A room that moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Who is in it. Its epoch goes on.
    pub roster: Roster,
    /// The number of the next ordered message.
    pub order: u64,
    /// How long it has been open, in µs.
    pub room_time_us: u64,
    /// The recipient of messages to the primary.
    pub primary: Option<MemberId>,
    /// The seats of the roster's members.
    pub seats: BTreeMap<MemberId, MovedSeat>,
}

/// A member's seat in a [`Snapshot`].
#[derive(Clone, PartialEq, Eq)]
pub struct MovedSeat {
    /// What the room keeps of it.
    pub kept: KeptSeat,
    /// The SHA-256 of its newest resume token.
    pub token: [u8; 32],
    /// That of the token before, while the member may not have the newest.
    pub before: Option<[u8; 32]>,
    /// Its [session](parlor_proto::session::Carried).
    pub session: Bytes,
}

impl core::fmt::Debug for MovedSeat {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MovedSeat").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Encodes it.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        out.put_varint(self.order);
        out.put_varint(self.room_time_us.min(VARINT_MAX));
        out.put_option(self.primary, |out, member| out.put_varint(member.0.into()));
        self.roster.write(&mut out);
        for member in self.roster.members.keys() {
            let Some(seat) = self.seats.get(member) else { continue };
            seat.kept.write(&mut out);
            out.put(&seat.token);
            out.put_option(seat.before, |out, hash| out.put(&hash));
            out.put_bytes(&seat.session);
        }
        out.into()
    }

    /// Decodes what [`encode`](Self::encode) gave.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut body = Reader::new(bytes);
        let version = body.u8()?;
        if version != VERSION {
            return Err(ReadError::Unknown { field: "snapshot", value: version.into() });
        }
        let (order, room_time_us) = (body.varint_max("order", VARINT_MAX / 2)?, body.varint()?);
        let primary = body.option("primary", |body| body.varint_u32("member").map(MemberId))?;
        let roster = Roster::read(&mut body)?;
        let mut seats = BTreeMap::new();
        for member in roster.members.keys() {
            let seat = MovedSeat {
                kept: KeptSeat::read(&mut body)?,
                token: body.array()?,
                before: body.option("token before", Reader::array)?,
                session: body.bytes_max("session", SESSION_BYTES_MAX)?,
            };
            seats.insert(*member, seat);
        }
        body.finish()?;
        Ok(Snapshot { roster, order, room_time_us, primary, seats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::roster::RosterMember;
    use parlor_proto::{Epoch, LinkKind};
    use proptest::prelude::*;

    fn snapshot() -> Snapshot {
        let member = |name: &str| RosterMember {
            generation: 3,
            spectates: false,
            link: LinkKind::Quic,
            name: name.into(),
            user: Some("u1".into()),
        };
        let members = [(MemberId(0), member("ada")), (MemberId(7), member("bob"))].into();
        let seat = |before| MovedSeat {
            kept: KeptSeat { is_connected: true, data: vec![("color".into(), Bytes::from_static(b"red"))] },
            token: [5; 32],
            before,
            session: Bytes::from_static(b"a session"),
        };
        Snapshot {
            roster: Roster { epoch: Epoch(4), host: Some(MemberId(0)), next_member: 8, members },
            order: 77,
            room_time_us: 9_000_000,
            primary: Some(MemberId(7)),
            seats: [(MemberId(0), seat(None)), (MemberId(7), seat(Some([6; 32])))].into(),
        }
    }

    #[test]
    fn a_snapshot_comes_back() {
        assert_eq!(Snapshot::decode(snapshot().encode()), Ok(snapshot()));
        assert!(!format!("{:?}", snapshot()).contains("5, 5"), "nothing shows a token");
    }

    proptest! {
        #[test]
        fn threat_37_a_snapshot_that_was_changed_is_bounded(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = snapshot().encode().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            drop(Snapshot::decode(bytes.clone().into()));
            bytes.truncate(cut.index(bytes.len()));
            drop(Snapshot::decode(bytes.into()));
        }
    }
}
