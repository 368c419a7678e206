//! What stands between a player at home and everybody else.

use super::LOCALHOST;
use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Passes datagrams on between one client and a target, from a port of its own that can change: what a NAT does.
pub(crate) struct Nat {
    /// Where the client finds it.
    pub(crate) addr: SocketAddr,
    shared: Arc<NatShared>,
    outward: JoinHandle<()>,
}

struct NatShared {
    front: UdpSocket,
    target: SocketAddr,
    client: Mutex<Option<SocketAddr>>,
    back: Mutex<Option<(Arc<UdpSocket>, JoinHandle<()>)>>,
    /// What went out last.
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

    /// Goes on from another port. What comes to the old one is lost.
    pub(crate) async fn rebind(&self) {
        let back = Arc::new(UdpSocket::bind(LOCALHOST).await.expect("a free port"));
        let task = tokio::spawn(Self::pass_in(Arc::clone(&self.shared), Arc::clone(&back)));
        if let Some((_, old)) = self.shared.back.lock().expect("nobody panics with it").replace((back, task))
        {
            old.abort();
        }
    }

    /// From where the target hears the client.
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
    /// The datagrams that went out last.
    pub(crate) fn seen(&self) -> Vec<Vec<u8>> {
        self.shared.seen.lock().expect("nobody panics with it").iter().cloned().collect()
    }

    /// How many datagrams went out, and how many came back.
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
