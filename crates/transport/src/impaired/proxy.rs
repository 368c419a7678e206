//! A UDP proxy that impairs the traffic of other programs.

use super::conditions::Conditions;
use super::lane::Lane;
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use parlor_impair::{Counts, Direction};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Maximum clients at once. Datagrams of further ones are dropped and counted.
pub const FLOWS_MAX: usize = 256;
/// Silence in both directions after which a client is dropped.
pub const FLOW_IDLE: Duration = Duration::from_secs(60);

/// Maximum queued datagrams of one client's task, which only computes.
const WAITING_MAX: usize = 256;
/// Maximum size of a datagram.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;

/// Relays datagrams between its clients and one server, impaired in both directions. Each client has a flow
/// of its own: a socket towards the server, and its own random numbers. Dropping the proxy ends it.
#[derive(Debug)]
pub struct Proxy {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
    conditions: Conditions,
    flows: BTreeMap<SocketAddr, Sender<Bytes>>,
    /// Each returns its client's address when it ends.
    tasks: JoinSet<SocketAddr>,
    counts: Arc<Mutex<ProxyCounts>>,
}

/// Counts of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Clients so far; one that returns after a long silence counts again.
    pub clients: u64,
    /// From clients to the server.
    pub there: Counts,
    /// From the server to clients.
    pub back: Counts,
    /// Datagrams dropped because of too many clients or a full queue.
    pub refused: u64,
}

/// A proxy could not start or continue.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// The port could not be opened.
    #[error("cannot listen on UDP {addr}: {error}. Is the port taken, and is the address this machine's?")]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The operating system's error.
        error: io::Error,
    },
    /// The socket failed.
    #[error("the UDP socket of the proxy failed: {0}")]
    Socket(io::Error),
}

impl Proxy {
    /// Listens on `listen` for clients of the server at `to`. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`ProxyError::Listen`].
    pub async fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        conditions: &Conditions,
    ) -> Result<Self, ProxyError> {
        let bound = UdpSocket::bind(listen).await;
        let socket = bound.map_err(|error| ProxyError::Listen { addr: listen, error })?;
        Ok(Proxy {
            socket: Arc::new(socket),
            to,
            conditions: conditions.clone(),
            flows: BTreeMap::new(),
            tasks: JoinSet::new(),
            counts: Arc::default(),
        })
    }

    /// The address for clients.
    ///
    /// # Errors
    /// [`ProxyError::Socket`].
    pub fn local_addr(&self) -> Result<SocketAddr, ProxyError> {
        self.socket.local_addr().map_err(ProxyError::Socket)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> ProxyCounts {
        *lock(&self.counts)
    }

    /// The current number of clients.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Relays datagrams until the socket fails. Cancel-safe and callable again; meanwhile clients' datagrams
    /// are not read.
    pub async fn run(&mut self) -> ProxyError {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            tokio::select! {
                received = self.socket.recv_from(&mut buffer) => match received {
                    Ok((bytes, client)) => {
                        let datagram = Bytes::copy_from_slice(&buffer[..bytes]);
                        if let Err(error) = self.take(client, datagram).await {
                            return ProxyError::Socket(error);
                        }
                    }
                    // On some systems a client that is gone causes this error; the others are still there.
                    Err(error) if is_about_a_peer(&error) => {}
                    Err(error) => return ProxyError::Socket(error),
                },
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(client) => self.forget(client),
                    Err(error) => tracing::error!(%error, "the task of a client failed; please report this"),
                },
            }
        }
    }

    /// Passes a datagram to its client's task, which is started for a new client.
    async fn take(&mut self, client: SocketAddr, datagram: Bytes) -> io::Result<()> {
        let datagram = match self.flows.get(&client).map(|flow| flow.try_send(datagram.clone())) {
            Some(Ok(())) => return Ok(()),
            Some(Err(TrySendError::Full(_))) => {
                lock(&self.counts).refused += 1;
                return Ok(());
            }
            // The task just ended because of its silence.
            Some(Err(TrySendError::Closed(datagram))) => datagram,
            None => datagram,
        };
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&client) {
            lock(&self.counts).refused += 1;
            return Ok(());
        }
        let (sender, datagrams) = channel(WAITING_MAX);
        let number = self.conditions.next_flow();
        let flow = Flow {
            client,
            listener: Arc::clone(&self.socket),
            server: connected(self.to).await?,
            there: Lane::new(&self.conditions, number, Direction::There),
            back: Lane::new(&self.conditions, number, Direction::Back),
            counts: Arc::clone(&self.counts),
        };
        lock(&self.counts).clients += 1;
        // It is empty, and has room for one.
        let _ = sender.try_send(datagram);
        self.flows.insert(client, sender);
        self.tasks.spawn(flow.run(datagrams));
        Ok(())
    }

    fn forget(&mut self, client: SocketAddr) {
        // It may have returned before the end of its old task was noticed.
        if self.flows.get(&client).is_some_and(Sender::is_closed) {
            self.flows.remove(&client);
        }
    }
}

/// A client and its socket to the server.
struct Flow {
    client: SocketAddr,
    listener: Arc<UdpSocket>,
    server: UdpSocket,
    there: Lane<Bytes>,
    back: Lane<Bytes>,
    counts: Arc<Mutex<ProxyCounts>>,
}

impl Flow {
    /// Runs until both sides were silent for long and nothing is in flight. Returns the client's address.
    async fn run(mut self, mut datagrams: Receiver<Bytes>) -> SocketAddr {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut idle_at = Instant::now() + FLOW_IDLE;
        loop {
            let next_at = self.there.next_at().into_iter().chain(self.back.next_at()).min();
            tokio::select! {
                datagram = datagrams.recv() => {
                    let Some(datagram) = datagram else { return self.client };
                    idle_at = Instant::now() + FLOW_IDLE;
                    self.there.offer(Instant::now(), datagram.len(), &datagram);
                }
                received = self.server.recv(&mut buffer) => {
                    // A missing server causes an error; it may start later.
                    let Ok(bytes) = received else { continue };
                    idle_at = Instant::now() + FLOW_IDLE;
                    self.back.offer(Instant::now(), bytes, &Bytes::copy_from_slice(&buffer[..bytes]));
                }
                () = sleep_until(next_at.unwrap_or(idle_at)) => {
                    if next_at.is_none() {
                        return self.client;
                    }
                }
            }
            self.deliver().await;
        }
    }

    /// Sends what is due. Datagrams that a socket refuses are lost, as on any network.
    async fn deliver(&mut self) {
        let now = Instant::now();
        while let Some(datagram) = self.there.take(now) {
            if let Err(error) = self.server.send(&datagram).await {
                tracing::debug!(%error, "a datagram to the server could not be sent");
            }
        }
        while let Some(datagram) = self.back.take(now) {
            if let Err(error) = self.listener.send_to(&datagram, self.client).await {
                tracing::debug!(client = %self.client, %error, "a datagram to a client could not be sent");
            }
        }
        let mut counts = lock(&self.counts);
        counts.there += self.there.news();
        counts.back += self.back.news();
    }
}

async fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr =
        if to.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(to).await?;
    Ok(socket)
}

fn is_about_a_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused)
}

fn lock(counts: &Mutex<ProxyCounts>) -> MutexGuard<'_, ProxyCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
