//! Direct paths between two members: the hub's messages to both ends, and the ends' signals to each other
//! through the hub when messages move between the path and the hub.
//!
//! ```text
//!  candidates   flags: 1 byte (1 the observed address may be passed on, 2 paths to all members are wanted) · list
//!  list         count: varint · for each: 4 | 6, 4 or 16 bytes of address, port: 2 bytes
//!  offer        id: 8 bytes · peer: varint · fingerprint: 32 bytes
//!               · role: 0 dial | 1 accept, where one end is the authority; 2 dial | 3 accept, where none is
//!               · 0 the room ends with its authority | 1 the part passes on · list
//!
//!  on the channel of paths, inside an envelope
//!  0 over       id: 8 bytes
//!  1 back       id: 8 bytes · 0 reliable messages | 1 all · rests: varint
//!  2 rest       id: 8 bytes · number: varint · channel: 1 byte · payload
//! ```

use super::cursor::{ReadError, Reader, Write};
use crate::ids::{ChannelId, MemberId, PathId};
use crate::limits;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// Addresses at which a member may be reached, from the member itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// At most [`PATH_CANDIDATES_MAX`](limits::PATH_CANDIDATES_MAX).
    pub addresses: Vec<SocketAddr>,
    /// Whether the hub may also send the member's observed address to the other end.
    pub may_tell_observed: bool,
    /// Whether the member wants a path to each other member that wants them, besides the one to the authority.
    pub wants_all: bool,
}

/// The hub's message to each end of a path that it may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathOffer {
    /// The path: drawn by the hub, the same for both ends.
    pub id: PathId,
    /// The other end.
    pub peer: MemberId,
    /// SHA-256 of the certificate that the other end must present. The hub vouches for it.
    pub fingerprint: [u8; 32],
    /// The role of this end.
    pub role: PathRole,
    /// Whether one end is the authority. Only such a path carries the room's state, and inputs.
    pub has_authority: bool,
    /// Whether the room has host migration. Then reliable messages to the authority go through the hub, which
    /// keeps them for the next authority. Over the path they could be lost with this authority, or count
    /// twice.
    pub passes_on: bool,
    /// Addresses at which the other end may be reached.
    pub candidates: Vec<SocketAddr>,
}

/// A member's role on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRole {
    /// It sends the hello, and selects the connection.
    Dial,
    /// It waits for the hello. The authority always does.
    Accept,
}

/// A signal between the ends of a path, through the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSignal {
    /// The sender's reliable messages to the receiver go over the path from here on.
    Over {
        /// The path.
        id: PathId,
    },
    /// They go through the hub again. The messages sent over the path without an acknowledgement follow,
    /// before newer ones.
    Back {
        /// The path.
        id: PathId,
        /// Whether the path is over: then its sender reads nothing more from it. Otherwise unreliable
        /// messages continue on it.
        ends: bool,
        /// The number of these messages.
        rests: u64,
    },
    /// One of them.
    Rest {
        /// The path.
        id: PathId,
        /// Its number in the path's session: it may have been received.
        number: u64,
        /// Its channel.
        channel: ChannelId,
        /// The message.
        payload: Bytes,
    },
}

/// Maximum bytes that a [`PathSignal::Rest`] adds to its message.
pub const REST_BYTES_MAX: usize = 1 + 8 + 9 + 1;

/// Whether a member may name this address as its own: a unicast address with a port. `is_local` says whether
/// the member is on the hub's machine; only then loopback is useful to other members there.
pub fn is_candidate(address: SocketAddr, is_local: bool) -> bool {
    let ip = address.ip().to_canonical();
    let is_one = match ip {
        IpAddr::V4(ip) => {
            let first = ip.octets()[0];
            !ip.is_broadcast() && !ip.is_multicast() && first != 0 && first < 240
        }
        // A link-local address is meaningless without its interface.
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
    };
    is_one && address.port() != 0 && (is_local || !ip.is_loopback())
}

/// Whether an address belongs to a local network, and is unreachable from outside of it.
pub fn is_of_local_network(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback() || ip.is_unicast_link_local(),
    }
}

pub(super) fn write_id(id: PathId, out: &mut Vec<u8>) {
    out.put_u64(id.0);
}

pub(super) fn read_id(reader: &mut Reader) -> Result<PathId, ReadError> {
    reader.u64().map(PathId)
}

fn write_list(addresses: &[SocketAddr], out: &mut Vec<u8>) {
    out.put_varint(addresses.len() as u64);
    addresses.iter().for_each(|address| write_address(*address, out));
}

/// Appends an address: its kind, the IP address, and the port.
pub fn write_address(address: SocketAddr, out: &mut Vec<u8>) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put(&ip.octets());
        }
    }
    out.put_u16(address.port());
}

fn read_list(reader: &mut Reader) -> Result<Vec<SocketAddr>, ReadError> {
    let count = reader.varint_max("candidate count", limits::PATH_CANDIDATES_MAX as u64)?;
    (0..count).map(|_| read_address(reader)).collect()
}

/// Reads an address written by [`write_address`].
///
/// # Errors
/// [`ReadError`] if it is malformed.
pub fn read_address(reader: &mut Reader) -> Result<SocketAddr, ReadError> {
    let ip = match reader.u8()? {
        4 => IpAddr::from(reader.array::<4>()?),
        6 => IpAddr::from(reader.array::<16>()?),
        value => return Err(ReadError::Unknown { field: "address", value: value.into() }),
    };
    Ok(SocketAddr::new(ip, reader.u16()?))
}

impl Candidates {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(u8::from(self.may_tell_observed) | u8::from(self.wants_all) << 1);
        write_list(&self.addresses, out);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let flags = reader.u8()?;
        if flags > 3 {
            return Err(ReadError::Unknown { field: "candidate flags", value: flags.into() });
        }
        let (may_tell_observed, wants_all) = (flags & 1 != 0, flags & 2 != 0);
        Ok(Candidates { may_tell_observed, wants_all, addresses: read_list(reader)? })
    }
}

impl PathOffer {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_id(self.id, out);
        out.put_varint(self.peer.0.into());
        out.put(&self.fingerprint);
        out.put_u8(u8::from(self.role == PathRole::Accept) | u8::from(!self.has_authority) << 1);
        out.put_bool(self.passes_on);
        write_list(&self.candidates, out);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let id = read_id(reader)?;
        let peer = MemberId(reader.varint_u32("member")?);
        let fingerprint = reader.array()?;
        let (role, has_authority) = match reader.u8()? {
            0 => (PathRole::Dial, true),
            1 => (PathRole::Accept, true),
            2 => (PathRole::Dial, false),
            3 => (PathRole::Accept, false),
            value => return Err(ReadError::Unknown { field: "path role", value: value.into() }),
        };
        let passes_on = reader.bool("whether the part passes on")?;
        Ok(PathOffer {
            id,
            peer,
            fingerprint,
            role,
            has_authority,
            passes_on,
            candidates: read_list(reader)?,
        })
    }
}

impl PathSignal {
    /// Encodes the message, without its envelope.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            PathSignal::Over { id } => {
                out.put_u8(0);
                write_id(*id, &mut out);
            }
            PathSignal::Back { id, ends, rests } => {
                out.put_u8(1);
                write_id(*id, &mut out);
                out.put_bool(*ends);
                out.put_varint(*rests);
            }
            PathSignal::Rest { id, number, channel, payload } => {
                out.put_u8(2);
                write_id(*id, &mut out);
                out.put_varint(*number);
                out.put_u8(channel.0);
                out.put(payload);
            }
        }
        out.into()
    }

    /// Decodes a message; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Option<Self>, ReadError> {
        let mut reader = Reader::new(bytes);
        let word = match reader.u8()? {
            0 => PathSignal::Over { id: read_id(&mut reader)? },
            1 => PathSignal::Back {
                id: read_id(&mut reader)?,
                ends: reader.bool("ends")?,
                rests: reader.varint()?,
            },
            2 => PathSignal::Rest {
                id: read_id(&mut reader)?,
                number: reader.varint()?,
                channel: ChannelId(reader.u8()?),
                payload: reader.rest(),
            },
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(word))
    }
}
