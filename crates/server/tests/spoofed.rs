//! First QUIC packets from spoofed addresses, and their cost: a whole server on a real socket.
//!
//! The allocator counts for the whole process, so this file has one test. All of 127.0.0.0/8 is local, so
//! packets can come from any address of it, and their answers can be counted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use core::time::Duration;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg};
use parlor_server::{Config, Server};
use parlor_transport::quic::{ALPN_PARLOR, Dialer};
use parlor_transport::{Fingerprint, Trust};
use peak_alloc::PeakAlloc;
use rustls::quic::{ClientConnection, Suite, Version};
use rustls::{ClientConfig, RootCertStore, Side, SupportedCipherSuite};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, IoSlice};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const SPOOFED: u32 = 100_000;
/// They go in this many at once: more than that, answered or not, waits in no socket.
const BATCH: u32 = 200;
const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Every first packet of a client has this size at least.
const INITIAL_BYTES: usize = 1_200;
/// How long the answers to a batch may take; each of them is seen, or what is counted is too little.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// Only a hang takes this long.
const HANG: Duration = Duration::from_secs(120);
const SOURCE_ID: [u8; 8] = *b"spoofer!";

#[tokio::test]
async fn threat_01_a_hundred_thousand_spoofed_initials_take_little_memory_and_get_little_back() {
    let config =
        Config { listen: Ipv4Addr::LOCALHOST.into(), port: 0, limits_local: true, ..Config::default() };
    let server = Server::start(config).await.unwrap();
    let addr = SocketAddrV4::new(Ipv4Addr::LOCALHOST, server.local_port());
    let mut spoofer = Spoofer::new(addr);
    // What all share is paid for before it counts.
    let fingerprint = server.fingerprint().unwrap();
    connect(addr, fingerprint).await;
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let flood = move || {
        for first in (0..SPOOFED).step_by(BATCH as usize) {
            spoofer.flood(first..first + BATCH);
        }
        spoofer
    };
    let spoofer = tokio::task::spawn_blocking(flood).await.unwrap();
    let took = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(took <= MEMORY_BYTES_MAX, "{took} bytes at once for {SPOOFED} false addresses");
    let (sent, back) = (SPOOFED as usize * INITIAL_BYTES, spoofer.back.iter().sum::<usize>());
    let answered = spoofer.back.iter().filter(|bytes| **bytes > 0).count();
    assert!(answered >= SPOOFED as usize / 2, "{answered} were answered at all");
    assert!(back <= sent, "{back} bytes for {sent}: most are asked for proof, which is short");
    let most = spoofer.back.iter().max().unwrap();
    assert!(*most <= 3 * INITIAL_BYTES, "{most} bytes to one address for {INITIAL_BYTES}");
    // Whoever has an address of its own gets in.
    connect(addr, fingerprint).await;
    server.shutdown().await;
}

async fn connect(addr: SocketAddrV4, fingerprint: Fingerprint) {
    let trust = Trust::Fingerprint(fingerprint);
    Dialer::new().connect(SocketAddr::V4(addr), "localhost", &trust, HANG).await.unwrap();
}

/// Sends first packets under any address of this machine, and counts what comes back.
struct Spoofer {
    socket: UdpSocket,
    server: SockaddrIn,
    suite: Suite,
    /// What a client says in its first packet: the same for all, so that the flood costs the flooder little.
    hello: Vec<u8>,
    /// Bytes that each address was sent. It has its size from the beginning on.
    back: Vec<usize>,
}

impl Spoofer {
    fn new(server: SocketAddrV4) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_recv_buffer_size(4 * 1024 * 1024).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()).unwrap();
        let socket = UdpSocket::from(socket);
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv4PacketInfo, &true).unwrap();
        socket.set_read_timeout(Some(ANSWER_TIME)).unwrap();
        let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
        let SupportedCipherSuite::Tls13(suite) = suite else { panic!("it is one of TLS 1.3") };
        let suite = suite.quic_suite().unwrap();
        Spoofer { socket, server: server.into(), suite, hello: hello(), back: vec![0; SPOOFED as usize] }
    }

    fn flood(&mut self, numbers: core::ops::Range<u32>) {
        let mut waits: Vec<Ipv4Addr> = numbers.clone().map(false_address).collect();
        for number in numbers {
            let packet = self.initial(number);
            let from = nix::libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: nix::libc::in_addr {
                    s_addr: u32::from_ne_bytes(false_address(number).octets()),
                },
                ipi_addr: nix::libc::in_addr { s_addr: 0 },
            };
            let control = [ControlMessage::Ipv4PacketInfo(&from)];
            let parts = [IoSlice::new(&packet)];
            let sent =
                sendmsg(self.socket.as_raw_fd(), &parts, &control, MsgFlags::empty(), Some(&self.server));
            assert_eq!(sent, Ok(INITIAL_BYTES));
        }
        while !waits.is_empty() {
            let Some(to) = self.answer() else { break };
            waits.retain(|address| *address != to);
        }
    }

    /// Takes the next answer; gives the address that it went to.
    fn answer(&mut self) -> Option<Ipv4Addr> {
        let mut bytes = [0; 2048];
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let mut control = nix::cmsg_space!(nix::libc::in_pktinfo);
        let received = nix::sys::socket::recvmsg::<SockaddrIn>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        );
        let received = match received {
            Ok(received) => received,
            Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        };
        let to = received.cmsgs().unwrap().find_map(|message| match message {
            nix::sys::socket::ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()))
            }
            _ => None,
        });
        if let Some(bytes) = to.and_then(number_of).and_then(|number| self.back.get_mut(number as usize)) {
            *bytes += received.bytes;
        }
        to
    }

    /// A client's first packet (RFC 9000, section 17.2.2; RFC 9001, section 5), with a connection id of its own.
    fn initial(&self, number: u32) -> Vec<u8> {
        let [a, b, c, d] = number.to_be_bytes();
        let destination = [0xd, 0xc, 0x1, 0xd, a, b, c, d];
        let keys = self.suite.keys(&destination, Side::Client, Version::V1);
        // A long header of type Initial, a packet number of four bytes.
        let mut packet = vec![0xc3, 0, 0, 0, 1, 8];
        packet.extend(destination);
        packet.push(8);
        packet.extend(SOURCE_ID);
        // No token.
        packet.push(0);
        let number_at = packet.len() + 2;
        packet.extend(varint(INITIAL_BYTES - number_at));
        packet.extend([0; 4]);
        let header = packet.clone();
        // A frame of type CRYPTO from offset 0 on, and padding.
        let mut payload = vec![0x06, 0];
        payload.extend(varint(self.hello.len()));
        payload.extend(&self.hello);
        payload.resize(INITIAL_BYTES - header.len() - keys.local.packet.tag_len(), 0);
        let tag = keys.local.packet.encrypt_in_place(0, &header, &mut payload).unwrap();
        packet.extend(payload);
        packet.extend(tag.as_ref());
        let sample = packet[number_at + 4..][..keys.local.header.sample_len()].to_vec();
        let (first, rest) = packet.split_at_mut(1);
        let number = &mut rest[number_at - 1..number_at + 3];
        keys.local.header.encrypt_in_place(&sample, &mut first[0], number).unwrap();
        packet
    }
}

/// What a client says first, with the one transport parameter that it must give: its connection id.
fn hello() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let mut config = builder.unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    config.alpn_protocols = vec![ALPN_PARLOR.to_vec()];
    let parameters = [&[0x0f, 8][..], &SOURCE_ID].concat();
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), Version::V1, name, parameters).unwrap();
    let mut hello = Vec::new();
    assert!(client.write_hs(&mut hello).is_none());
    hello
}

/// A variable-length integer in two bytes.
fn varint(value: usize) -> [u8; 2] {
    assert!(value < 1 << 14);
    (u16::try_from(value).unwrap() | 0x4000).to_be_bytes()
}

/// The first of the addresses that are used, which are nobody else's in this test.
const FALSE_ADDRESSES: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 0);

fn false_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FALSE_ADDRESSES) + number)
}

fn number_of(address: Ipv4Addr) -> Option<u32> {
    u32::from(address).checked_sub(u32::from(FALSE_ADDRESSES))
}
