//! Sends packets for many peers with one system call (`sendmmsg`), which dominates the cost of a small
//! packet.

use core::net::IpAddr;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use quinn::udp::Transmit;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;

/// Maximum packets of one system call.
const BATCH_PACKETS_MAX: usize = 64;

/// Packets that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    packets: Vec<Queued>,
    /// Their bytes, concatenated.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    to: SockaddrStorage,
    head: Head,
    start: usize,
    end: usize,
}

/// The control messages of a packet. Only packets with equal ones share a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    is_ipv4: bool,
    ecn: u8,
    from: IpAddr,
}

impl Batch {
    /// Whether it must be sent before it takes more.
    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= BATCH_PACKETS_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet. Returns `false` if it has several segments or no source address.
    pub(super) fn push(&mut self, transmit: &Transmit<'_>) -> bool {
        let is_single = transmit.segment_size.is_none_or(|size| size >= transmit.contents.len());
        let (Some(from), true) = (transmit.src_ip, is_single) else { return false };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(transmit.contents);
        let end = self.bytes.len();
        let is_ipv4 = transmit.destination.ip().to_canonical().is_ipv4();
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        let head = Head { is_ipv4, ecn, from };
        self.packets.push(Queued { to: transmit.destination.into(), head, start, end });
        true
    }

    /// Sends the batch. A packet that the system rejects is lost, as on any network.
    ///
    /// # Errors
    /// The system accepts no more at the moment: the rest stays queued.
    pub(super) fn send(&mut self, socket: &impl AsRawFd) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.packets.len() {
            match send_some(socket, self, sent) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.forget(sent);
                    return Err(error);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::trace!(%error, "a packet was not sent");
                    sent += 1;
                }
            }
        }
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
    }

    /// Drops the first `count`, which were sent.
    fn forget(&mut self, count: usize) {
        let start = self.packets.get(count).map_or(self.bytes.len(), |packet| packet.start);
        self.packets.drain(..count);
        self.bytes.drain(..start);
        for packet in &mut self.packets {
            (packet.start, packet.end) = (packet.start - start, packet.end - start);
        }
    }
}

/// Sends the packets from `first` on with the same control messages. Returns how many the system accepted.
fn send_some(socket: &impl AsRawFd, batch: &Batch, first: usize) -> io::Result<usize> {
    let head = batch.packets[first].head;
    let alike = batch.packets[first..].iter().take_while(|packet| packet.head == head);
    let (mut slices, mut addresses) =
        (Vec::with_capacity(BATCH_PACKETS_MAX), Vec::with_capacity(BATCH_PACKETS_MAX));
    for packet in alike.take(BATCH_PACKETS_MAX) {
        slices.push([IoSlice::new(&batch.bytes[packet.start..packet.end])]);
        addresses.push(Some(packet.to));
    }
    let (tos, class) = (head.ecn, i32::from(head.ecn));
    let marking =
        if head.is_ipv4 { ControlMessage::Ipv4Tos(&tos) } else { ControlMessage::Ipv6TClass(&class) };
    let (v4, v6);
    let source = match head.from {
        IpAddr::V4(from) => {
            v4 = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            ControlMessage::Ipv4PacketInfo(&v4)
        }
        IpAddr::V6(from) => {
            v6 = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: from.octets() }, ipi6_ifindex: 0 };
            ControlMessage::Ipv6PacketInfo(&v6)
        }
    };
    // Its capacity must be that of both messages: the system reads all of it.
    let room = match (head.is_ipv4, head.from) {
        (true, IpAddr::V4(_)) => nix::cmsg_space!(u8, libc::in_pktinfo),
        (true, IpAddr::V6(_)) => nix::cmsg_space!(u8, libc::in6_pktinfo),
        (false, IpAddr::V4(_)) => nix::cmsg_space!(i32, libc::in_pktinfo),
        (false, IpAddr::V6(_)) => nix::cmsg_space!(i32, libc::in6_pktinfo),
    };
    let mut headers = MultiHeaders::preallocate(slices.len(), Some(room));
    let flags = MsgFlags::MSG_DONTWAIT;
    let taken =
        sendmmsg(socket.as_raw_fd(), &mut headers, slices.iter(), &addresses, [marking, source], flags)?;
    Ok(taken.count())
}
