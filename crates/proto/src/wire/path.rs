//! Paths between two members beside the hub: what the hub tells both ends of one, and what they say to each other through the hub
//! when messages change their way.
//!
//! ```text
//!  candidates   flags: 1 byte (1 the observed address may be told) · list
//!  list         count: varint · for each: 4 | 6, 4 or 16 bytes of address, port: 2 bytes
//!  offer        id: 8 bytes · peer: varint · fingerprint: 32 bytes · role: 0 dial | 1 accept
//!               · 0 the room ends with its authority | 1 the part passes on · list
//!
//!  on the channel of paths, inside of an envelope
//!  0 over       id: 8 bytes
//!  1 back       id: 8 bytes · 0 reliable messages | 1 all · rests: varint
//!  2 rest       id: 8 bytes · number: varint · channel: 1 byte · payload
//! ```

use super::cursor::{ReadError, Reader, Write};
use crate::ids::{ChannelId, MemberId, PathId};
use crate::limits;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// Addresses at which a member may be reached, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// At most [`PATH_CANDIDATES_MAX`](limits::PATH_CANDIDATES_MAX).
    pub addresses: Vec<SocketAddr>,
    /// Whether the hub may tell the other end from which address it sees this member, too.
    pub may_tell_observed: bool,
}

/// What the hub tells each end of a path that it may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathOffer {
    /// Which path: drawn by the hub, the same for both ends.
    pub id: PathId,
    /// Who the other end is.
    pub peer: MemberId,
    /// The SHA-256 of the certificate that the other end must show. The hub vouches for it.
    pub fingerprint: [u8; 32],
    /// Which end this is.
    pub role: PathRole,
    /// Whether another member takes the authority's part when it is gone. Then what is said reliably to whoever is the authority
    /// goes through the hub, which has it for the next one: over the path it could be lost with this one, or count twice.
    pub passes_on: bool,
    /// Where the other end may be reached.
    pub candidates: Vec<SocketAddr>,
}

/// Which end of a path a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRole {
    /// It says hello, and decides over which connection.
    Dial,
    /// It is the authority, and waits for the hello.
    Accept,
}

/// What the ends of a path say to each other through the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSignal {
    /// What the sender sends reliably to the receiver goes over the path from here on.
    Over {
        /// Which path.
        id: PathId,
    },
    /// It goes through the hub again. Of what went over the path, that many messages are not known to have come; they follow,
    /// before anything newer.
    Back {
        /// Which path.
        id: PathId,
        /// Whether the path is over: then its sender reads nothing more of it. Otherwise what is not reliable goes on.
        ends: bool,
        /// How many.
        rests: u64,
    },
    /// One of them.
    Rest {
        /// Which path.
        id: PathId,
        /// Its number in the path's session: it may have come.
        number: u64,
        /// Its channel.
        channel: ChannelId,
        /// The message.
        payload: Bytes,
    },
}

/// The most bytes that a [`PathSignal::Rest`] adds to the message in it.
pub const REST_BYTES_MAX: usize = 1 + 8 + 9 + 1;

/// Whether a member may name this address as its own: that of one machine, and with a port. `is_local` says whether the hub sees the
/// member on the hub's own machine; only then loopback means anything to somebody else there.
pub fn is_candidate(address: SocketAddr, is_local: bool) -> bool {
    let ip = address.ip().to_canonical();
    let is_one = match ip {
        IpAddr::V4(ip) => {
            let first = ip.octets()[0];
            !ip.is_broadcast() && !ip.is_multicast() && first != 0 && first < 240
        }
        // An address of one link means nothing without naming the interface.
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
    };
    is_one && address.port() != 0 && (is_local || !ip.is_loopback())
}

/// Whether an address is one of a local network, which nobody beyond it can reach.
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

/// Reads an address as [`write_address`] wrote it.
///
/// # Errors
/// [`ReadError`] if it is not as laid out.
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
        out.put_bool(self.may_tell_observed);
        write_list(&self.addresses, out);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let may_tell_observed = reader.bool("whether the observed address may be told")?;
        Ok(Candidates { may_tell_observed, addresses: read_list(reader)? })
    }
}

impl PathOffer {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_id(self.id, out);
        out.put_varint(self.peer.0.into());
        out.put(&self.fingerprint);
        out.put_bool(self.role == PathRole::Accept);
        out.put_bool(self.passes_on);
        write_list(&self.candidates, out);
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let id = read_id(reader)?;
        let peer = MemberId(reader.varint_u32("member")?);
        let fingerprint = reader.array()?;
        let role = if reader.bool("path role")? { PathRole::Accept } else { PathRole::Dial };
        let passes_on = reader.bool("whether the part passes on")?;
        Ok(PathOffer { id, peer, fingerprint, role, passes_on, candidates: read_list(reader)? })
    }
}

impl PathSignal {
    /// The message as it goes on the wire, without its envelope.
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

    /// Reads a message; `None` if it is of a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
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
