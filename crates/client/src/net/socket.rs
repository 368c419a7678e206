//! UDP without a fixed other end: datagrams from and to any address.

use super::error::{Closed, NetError, SendError};
use super::options::Options;
use super::queue::{NotPut, Queue};
use super::udp::{DATAGRAM_BYTES_MAX, UDP_MESSAGE_BYTES_MAX, is_passing};
use bytes::Bytes;
use core::net::SocketAddr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::AbortHandle;

/// A UDP socket on a port of this machine: it sends datagrams to any address, and receives those of any sender.
/// No call blocks: call [`recv_from`](Self::recv_from) in each frame. Dropping it closes it.
///
/// ```no_run
/// use parlor::net::UdpSocket;
/// use std::net::Ipv4Addr;
///
/// // On all networks of this machine; port 0 takes any free one.
/// let mut socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7_777))?;
/// loop {
///     while let Some((bytes, from)) = socket.recv_from()? {
///         socket.send_to(bytes, from)?;
///     }
///     // Draw, and wait for the next frame.
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A sender's address is not proven: anyone can send a datagram in another's name. So an answer that is longer than
/// its question makes the socket a tool against third parties.
#[derive(Debug)]
pub struct UdpSocket {
    /// For sending: the same socket as the task's.
    socket: std::net::UdpSocket,
    received: Arc<Received>,
    message_bytes_max: usize,
    task: AbortHandle,
}

/// What the task has received.
#[derive(Debug)]
struct Received {
    datagrams: Queue<Result<(Bytes, SocketAddr), Closed>>,
    dropped: AtomicU64,
}

impl UdpSocket {
    /// Binds a socket to an address of this machine: `(Ipv4Addr::UNSPECIFIED, port)` for all of its IPv4 addresses,
    /// port 0 for any free one.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the operating system refuses it, as when another program has the port.
    pub fn bind(addr: impl Into<SocketAddr>) -> Result<UdpSocket, NetError> {
        Options::default().bind_udp(addr)
    }

    /// As [`Options::bind_udp`].
    pub(super) fn open(addr: SocketAddr, options: &Options) -> Result<UdpSocket, NetError> {
        options.permitted()?;
        let refused = |error: io::Error| NetError::Bind { addr, detail: error.to_string() };
        let socket = std::net::UdpSocket::bind(addr).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        // Without it the system refuses to send to the broadcast address of a network.
        socket.set_broadcast(true).map_err(refused)?;
        let runtime = super::runtime::handle();
        let of_task = {
            let _entered = runtime.enter();
            tokio::net::UdpSocket::from_std(socket.try_clone().map_err(refused)?).map_err(refused)?
        };
        let datagrams = Queue::new(options.queue_bytes_max);
        let received = Arc::new(Received { datagrams, dropped: AtomicU64::new(0) });
        let task = runtime.spawn(receive(of_task, Arc::clone(&received))).abort_handle();
        let message_bytes_max = options.message_bytes_max.min(UDP_MESSAGE_BYTES_MAX);
        Ok(UdpSocket { socket, received, message_bytes_max, task })
    }

    /// Returns the address that it is bound to, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the operating system does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, NetError> {
        self.socket.local_addr().map_err(|error| NetError::Bind {
            addr: (core::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            detail: error.to_string(),
        })
    }

    /// Sends a datagram to an address: of a program, or the broadcast address of a network. It may be lost,
    /// duplicated and reordered. Keep it at or below 1,200 bytes. One that the operating system refuses is counted
    /// as [dropped](Self::dropped).
    ///
    /// # Errors
    /// [`SendError::TooLarge`]; [`SendError::Full`] if the operating system has no room for more at present.
    pub fn send_to(&mut self, bytes: impl AsRef<[u8]>, to: impl Into<SocketAddr>) -> Result<(), SendError> {
        let bytes = bytes.as_ref();
        if bytes.len() > self.message_bytes_max {
            return Err(SendError::TooLarge { bytes: bytes.len(), bytes_max: self.message_bytes_max });
        }
        match self.socket.send_to(bytes, to.into()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(SendError::Full),
            Err(_) => {
                self.received.dropped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Returns the next datagram and the address of its sender, if one came.
    ///
    /// # Errors
    /// [`Closed::Broken`] if the operating system has taken the socket away; it stays so.
    pub fn recv_from(&mut self) -> Result<Option<(Bytes, SocketAddr)>, Closed> {
        match self.received.datagrams.try_take() {
            Some(Ok(datagram)) => Ok(Some(datagram)),
            Some(Err(closed)) => Err(closed),
            None if self.received.datagrams.is_over() => {
                Err(Closed::Broken("the socket failed earlier: bind another".to_owned()))
            }
            None => Ok(None),
        }
    }

    /// Returns the number of dropped datagrams: received but not taken in time, or refused by the operating system
    /// when sent.
    pub fn dropped(&self) -> u64 {
        self.received.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Receives until the socket breaks or is dropped.
async fn receive(socket: tokio::net::UdpSocket, received: Arc<Received>) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let broken = loop {
        match socket.recv_from(&mut buffer).await {
            Ok((len, from)) => {
                let datagram = (Bytes::copy_from_slice(&buffer[..len]), from);
                if received.datagrams.try_put(Ok(datagram), len) == Err(NotPut::Full) {
                    received.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => break Closed::Broken(error.to_string()),
        }
    };
    received.datagrams.end_with(Err(broken));
}
