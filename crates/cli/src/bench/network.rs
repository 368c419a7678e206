//! The way between clients and a server: a relay of datagrams on a thread of its own, which holds back what a client sends,
//! its acknowledgements above all, and counts what the server sends. Parlor and its peers are measured through the same.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Headers of IPv4 and UDP.
const HEADERS_BYTES: u64 = 20 + 8;
/// How long the relay rests after it looked, so that what comes close together is taken at one go.
const REST: Duration = Duration::from_micros(300);
/// More than a datagram of any of these libraries has.
const BUFFER_BYTES: usize = 2_048;

/// What the server sent to all clients, so far.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// With headers of IP and UDP.
    pub(crate) bytes: AtomicU64,
    /// Datagrams.
    pub(crate) packets: AtomicU64,
}

/// One client's way.
#[derive(Debug)]
struct Way {
    /// Where the client sends to.
    near: UdpSocket,
    /// What the server sees.
    far: UdpSocket,
    client: Option<SocketAddr>,
    delay: Duration,
}

/// A datagram on its way to the server: when it is due, how many went before, by which way, what it is. The earliest is the
/// greatest, as a `BinaryHeap` wants it.
type Waiting = Reverse<(Instant, u64, usize, Vec<u8>)>;

/// Starts a way for each delay, and says where its client connects to. The ways end with the process.
///
/// # Errors
/// What the operating system says.
pub(crate) fn start(
    server: SocketAddr,
    delays: &[Duration],
) -> anyhow::Result<(Vec<SocketAddr>, Arc<Counted>)> {
    let mut ways = Vec::new();
    for delay in delays {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        far.connect(server)?;
        ways.push(Way { near, far, client: None, delay: *delay });
    }
    let addresses = ways.iter().map(|way| way.near.local_addr()).collect::<Result<_, _>>()?;
    let counted = Arc::new(Counted::default());
    let counts = Arc::clone(&counted);
    std::thread::Builder::new().name("network".to_owned()).spawn(move || relay(ways, &counts))?;
    Ok((addresses, counted))
}

fn relay(mut ways: Vec<Way>, counted: &Counted) {
    let mut waiting: BinaryHeap<Waiting> = BinaryHeap::new();
    let mut number = 0;
    let mut buffer = [0; BUFFER_BYTES];
    loop {
        let readable = wait(&ways, waiting.peek().map(|Reverse((due, ..))| *due));
        let now = Instant::now();
        for (index, _) in readable.iter().enumerate().filter(|(_, is_readable)| **is_readable) {
            let way = &mut ways[index / 2];
            if index % 2 == 0 {
                // A port that nobody listens on is an error of the next call, and nothing that waits.
                while let Ok((length, from)) = way.near.recv_from(&mut buffer) {
                    way.client = Some(from);
                    number += 1;
                    waiting.push(Reverse((now + way.delay, number, index / 2, buffer[..length].to_vec())));
                }
                continue;
            }
            while let Ok(length) = way.far.recv(&mut buffer) {
                counted.bytes.fetch_add(length as u64 + HEADERS_BYTES, Ordering::Relaxed);
                counted.packets.fetch_add(1, Ordering::Relaxed);
                if let Some(client) = way.client {
                    // A datagram that cannot be sent is lost, as any may be.
                    let _ = way.near.send_to(&buffer[..length], client);
                }
            }
        }
        while waiting.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            if let Some(Reverse((_, _, index, datagram))) = waiting.pop() {
                let _ = ways[index].far.send(&datagram);
            }
        }
        std::thread::sleep(REST);
    }
}

/// Waits until something comes or it is `due`. Says of each way in turn whether something came from the client, and whether
/// something came from the server.
fn wait(ways: &[Way], due: Option<Instant>) -> Vec<bool> {
    let sockets = ways.iter().flat_map(|way| [&way.near, &way.far]);
    let mut sockets: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
    // A wait of centuries is none that ends.
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    // It fails if a signal comes: then it is looked at once more.
    let _ = poll(&mut sockets, wait.as_ref());
    sockets.iter().map(|socket| !socket.revents().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_comes_later_and_what_the_server_says_is_counted() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let patience = Some(Duration::from_secs(10));
        let delay = Duration::from_millis(30);
        let at = server.local_addr().expect("it is bound");
        let (ways, counted) = start(at, &[Duration::ZERO, delay]).expect("ports are free");
        let mut buffer = [0; 16];
        for (way, delay) in ways.iter().zip([Duration::ZERO, delay]) {
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
            client.set_read_timeout(patience).expect("it is no zero");
            server.set_read_timeout(patience).expect("it is no zero");
            let began = Instant::now();
            client.send_to(b"there", way).expect("the way is open");
            let (length, from) = server.recv_from(&mut buffer).expect("it arrives");
            assert!(&buffer[..length] == b"there" && began.elapsed() >= delay);
            server.send_to(b"back again", from).expect("the way is open");
            let length = client.recv(&mut buffer).expect("it arrives");
            assert_eq!(&buffer[..length], b"back again");
        }
        assert_eq!(counted.packets.load(Ordering::Relaxed), 2);
        assert_eq!(counted.bytes.load(Ordering::Relaxed), 2 * (10 + 28));
    }
}
