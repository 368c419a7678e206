//! A hub that introduces players to each other.

use super::{HANG, QuicServer};
use core::net::SocketAddr;
use core::time::Duration;
use parlor_transport::direct::{Attempt, Direct, Role};
use parlor_transport::quic::Dialer;
use parlor_transport::{Fingerprint, Identity, Link};
use std::sync::Arc;

pub(crate) const PATH: u64 = 0x0102_0304_0506_0708;
/// Enough time for a path on this machine, and short enough to wait for one that cannot be opened.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
/// A player: its dialer has reached a hub, which saw its address.
pub(crate) struct Player {
    pub(crate) direct: Direct,
    pub(crate) at: SocketAddr,
    _to_hub: (Link, Link),
}

pub(crate) struct Hub(pub(crate) QuicServer);

impl Hub {
    pub(crate) fn start() -> Self {
        Hub(QuicServer::start())
    }

    pub(crate) async fn player(&self) -> Player {
        self.player_with(Dialer::new()).await
    }

    pub(crate) async fn player_with(&self, dialer: Dialer) -> Player {
        let dialer = Arc::new(dialer);
        let dialing = dialer.connect(self.0.addr, "localhost", &self.0.trust, HANG);
        let (here, there) = tokio::join!(dialing, self.0.accept());
        let at = there.remote();
        let direct = Direct::new(dialer, &Identity::of_player());
        Player { direct, at, _to_hub: (here.expect("it connects"), there) }
    }

    pub(crate) fn attempt(&self, role: Role, peer: Fingerprint, candidates: &[SocketAddr]) -> Attempt {
        let candidates = candidates.to_vec();
        Attempt { id: PATH, role, peer, candidates, hub: self.0.addr, deadline: DEADLINE }
    }

    /// Both ends try at once.
    pub(crate) async fn introduce(
        &self,
        (member, to_host): (&Player, &[SocketAddr]),
        (host, to_member): (&Player, &[SocketAddr]),
    ) -> (Link, Link) {
        let dials = self.attempt(Role::Dial, host.direct.fingerprint(), to_host);
        let accepts = self.attempt(Role::Accept, member.direct.fingerprint(), to_member);
        let (member, host) = tokio::join!(member.direct.open(&dials), host.direct.open(&accepts));
        (member.expect("the member has a path"), host.expect("the host has a path"))
    }
}
