//! A NAT between a player and everyone else.

use super::LOCALHOST;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Relays datagrams between one client and a target, from a port of its own that can change, like a NAT.
pub(crate) struct Nat {
    /// The address for the client.
    pub(crate) addr: SocketAddr,
    shared: Arc<NatShared>,
    outward: JoinHandle<()>,
}

struct NatShared {
    front: UdpSocket,
    target: SocketAddr,
    client: Mutex<Option<SocketAddr>>,
    back: Mutex<Option<(Arc<UdpSocket>, JoinHandle<()>)>>,
    /// The last datagrams sent.
    seen: Mutex<VecDeque<Vec<u8>>>,
    out: AtomicUsize,
    back_in: AtomicUsize,
}

impl Nat {
    pub(crate) async fn before(target: SocketAddr) -> Self {
        let front = UdpSocket::bind(LOCALHOST).await.expect("a free port");
        let addr = front.local_addr().expect("it is bound");
        let shared = Arc::new(NatShared {
            front,
            target,
            client: Mutex::default(),
            back: Mutex::default(),
            seen: Mutex::default(),
            out: AtomicUsize::new(0),
            back_in: AtomicUsize::new(0),
        });
        let outward = tokio::spawn(Self::pass_out(Arc::clone(&shared)));
        let nat = Nat { addr, shared, outward };
        nat.rebind().await;
        nat
    }

    /// Continues from another port. Datagrams to the old one are lost.
    pub(crate) async fn rebind(&self) {
        let back = Arc::new(UdpSocket::bind(LOCALHOST).await.expect("a free port"));
        let task = tokio::spawn(Self::pass_in(Arc::clone(&self.shared), Arc::clone(&back)));
        if let Some((_, old)) = self.shared.back.lock().expect("nobody panics with it").replace((back, task))
        {
            old.abort();
        }
    }

    /// The client's address as the target sees it.
    pub(crate) fn outside(&self) -> SocketAddr {
        let back = self.shared.back.lock().expect("nobody panics with it");
        back.as_ref().expect("it is bound from the beginning").0.local_addr().expect("it is bound")
    }

    async fn pass_out(shared: Arc<NatShared>) {
        let mut buf = [0; 65_536];
        while let Ok((bytes, from)) = shared.front.recv_from(&mut buf).await {
            *shared.client.lock().expect("nobody panics with it") = Some(from);
            let back =
                shared.back.lock().expect("nobody panics with it").as_ref().map(|(back, _)| Arc::clone(back));
            {
                let mut seen = shared.seen.lock().expect("nobody panics with it");
                seen.push_back(buf[..bytes].to_vec());
                if seen.len() > 32 {
                    seen.pop_front();
                }
            }
            shared.out.fetch_add(1, Ordering::SeqCst);
            let _ = back.expect("it is bound").send_to(&buf[..bytes], shared.target).await;
        }
    }

    async fn pass_in(shared: Arc<NatShared>, back: Arc<UdpSocket>) {
        let mut buf = [0; 65_536];
        while let Ok((bytes, _)) = back.recv_from(&mut buf).await {
            shared.back_in.fetch_add(1, Ordering::SeqCst);
            let client = *shared.client.lock().expect("nobody panics with it");
            if let Some(client) = client {
                let _ = shared.front.send_to(&buf[..bytes], client).await;
            }
        }
    }
}

impl Nat {
    /// The last datagrams sent.
    pub(crate) fn seen(&self) -> Vec<Vec<u8>> {
        self.shared.seen.lock().expect("nobody panics with it").iter().cloned().collect()
    }

    /// The number of datagrams in each direction.
    pub(crate) fn passed(&self) -> (usize, usize) {
        (self.shared.out.load(Ordering::SeqCst), self.shared.back_in.load(Ordering::SeqCst))
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.outward.abort();
        if let Some((_, task)) = self.shared.back.lock().expect("nobody panics with it").take() {
            task.abort();
        }
    }
}
