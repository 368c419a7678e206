//! The network between clients and a server: a datagram relay on its own thread. It delays the clients'
//! packets, acknowledgements above all, and counts the server's. The server's packets may share one
//! bottleneck, and everything may be cut. Parlor and its peers use the same relay.

use parlor_impair::{Direction, Impairment, Path};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Headers of IPv4 and UDP.
const HEADERS_BYTES: usize = 20 + 8;
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
    /// What came to the narrow place, if there is one.
    passed: Mutex<Vec<Passed>>,
    /// Nothing gets through, neither way.
    pub(crate) is_cut: AtomicBool,
}

impl Counted {
    /// What came to the narrow place since this was last asked, in order.
    pub(crate) fn take_passed(&self) -> Vec<Passed> {
        std::mem::take(&mut *self.passed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A datagram at the narrow place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// When it came.
    pub(crate) at: Instant,
    /// When it had passed; `None` if there was no room for it.
    pub(crate) until: Option<Instant>,
    /// The way it took, in the order of the delays.
    pub(crate) way: usize,
    /// With headers of IP and UDP.
    pub(crate) bytes: u64,
}

/// What the server's datagrams go through, those of all ways together.
#[derive(Debug)]
struct Narrow {
    path: Path,
    /// How long each takes beside the narrow place.
    latency: Duration,
    since: Instant,
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

/// A datagram on its way: when it is due, how many went before, by which way and to which end of it, what it is. The earliest is
/// the greatest, as a `BinaryHeap` wants it.
type Waiting = Reverse<(Instant, u64, usize, End, Vec<u8>)>;

/// An end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Client,
    Server,
}

/// Starts a way for each delay, and says where its client connects to. The ways end with the process.
///
/// # Errors
/// What the operating system says.
pub(crate) fn start(
    server: SocketAddr,
    delays: &[Duration],
) -> anyhow::Result<(Vec<SocketAddr>, Arc<Counted>)> {
    start_with(server, delays, None)
}

/// As [`start`], where what the server sends goes through one narrow place and takes the same time as what clients send, with all
/// else that is wrong with it but its own latency.
///
/// # Errors
/// What the operating system says.
pub(crate) fn start_narrow(
    server: SocketAddr,
    clients: usize,
    latency: Duration,
    narrow: &Impairment,
) -> anyhow::Result<(Vec<SocketAddr>, Arc<Counted>)> {
    let narrow = narrow.latency(Duration::ZERO);
    let path = Path::new(&narrow, 0, Direction::Back);
    let narrow = Narrow { path, latency, since: Instant::now() };
    start_with(server, &vec![latency; clients], Some(narrow))
}

fn start_with(
    server: SocketAddr,
    delays: &[Duration],
    narrow: Option<Narrow>,
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
    let relay = Relay { ways, narrow, counted: Arc::clone(&counted), waiting: BinaryHeap::new(), number: 0 };
    std::thread::Builder::new().name("network".to_owned()).spawn(move || relay.run())?;
    Ok((addresses, counted))
}

struct Relay {
    ways: Vec<Way>,
    narrow: Option<Narrow>,
    counted: Arc<Counted>,
    waiting: BinaryHeap<Waiting>,
    number: u64,
}

impl Relay {
    fn run(mut self) {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            let readable = wait(&self.ways, self.waiting.peek().map(|Reverse((due, ..))| *due));
            let now = Instant::now();
            let is_cut = self.counted.is_cut.load(Ordering::Relaxed);
            for (index, _) in readable.iter().enumerate().filter(|(_, is_readable)| **is_readable) {
                if index % 2 == 0 {
                    self.take_from_client(index / 2, &mut buffer, now, is_cut);
                } else {
                    self.take_from_server(index / 2, &mut buffer, now, is_cut);
                }
            }
            self.deliver();
            std::thread::sleep(REST);
        }
    }

    fn take_from_client(&mut self, index: usize, buffer: &mut [u8], now: Instant, is_cut: bool) {
        // A port without a listener is an error of the next call, and never blocks.
        while let Ok((length, from)) = self.ways[index].near.recv_from(buffer) {
            self.ways[index].client = Some(from);
            if !is_cut {
                self.wait_until(now + self.ways[index].delay, index, End::Server, &buffer[..length]);
            }
        }
    }

    fn take_from_server(&mut self, index: usize, buffer: &mut [u8], now: Instant, is_cut: bool) {
        while let Ok(length) = self.ways[index].far.recv(buffer) {
            let size = length + HEADERS_BYTES;
            let bytes = size as u64;
            self.counted.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.counted.packets.fetch_add(1, Ordering::Relaxed);
            if is_cut {
                continue;
            }
            let Some(narrow) = &mut self.narrow else {
                self.send(index, End::Client, &buffer[..length]);
                continue;
            };
            let (since, latency) = (narrow.since, narrow.latency);
            let arrivals = narrow.path.offer(now.saturating_duration_since(since), size);
            let until = arrivals.into_iter().next().map(|after| since + after);
            let passed = Passed { at: now, until, way: index, bytes };
            self.counted.passed.lock().unwrap_or_else(PoisonError::into_inner).push(passed);
            if let Some(until) = until {
                self.wait_until(until + latency, index, End::Client, &buffer[..length]);
            }
        }
    }

    fn wait_until(&mut self, due: Instant, index: usize, to: End, datagram: &[u8]) {
        self.number += 1;
        self.waiting.push(Reverse((due, self.number, index, to, datagram.to_vec())));
    }

    fn deliver(&mut self) {
        while self.waiting.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            if let Some(Reverse((_, _, index, to, datagram))) = self.waiting.pop() {
                self.send(index, to, &datagram);
            }
        }
    }

    /// A datagram that cannot be sent is lost, as any may be.
    fn send(&self, index: usize, to: End, datagram: &[u8]) {
        let way = &self.ways[index];
        let _ = match (to, way.client) {
            (End::Server, _) => way.far.send(datagram),
            (End::Client, Some(client)) => way.near.send_to(datagram, client),
            (End::Client, None) => Ok(0),
        };
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
