//! Claims: asks other servers to reopen a room whose server is silent or lost.

use super::connect_options::ConnectOptions;
use super::dial::{Patience, Ways, dial, elsewhere};
use super::handle::Handle;
use super::link_pump::{PacketEndpoint, pump};
use parlor_client_core::RoomCore;
use parlor_proto::{Instant, Packet};
use parlor_transport::discovery::ServerAddress;
use parlor_transport::{Link, LinkSender};

/// Asks other servers to reopen the room whenever the core wants it, until one has it. Returns its link, unless that is
/// lost already, and its address.
pub(super) async fn claim(
    shared: &Handle,
    ways: &Ways<'_>,
    connect: &ConnectOptions,
) -> (Option<Link>, ServerAddress) {
    loop {
        let (target, line) = (shared.claim_begins().await, shared.lock().line());
        let from = shared.server();
        let address = match from.as_ref().map(|from| (from, target.is_empty())) {
            Some((from, true)) => Ok(from.clone()),
            Some((from, false)) => elsewhere(&target, from),
            None => target.parse(),
        };
        let dialled = match address {
            Ok(address) if !shared.lock().claims_own() && from.is_some_and(|from| from == address) => {
                Err("the room's server has the room, and does not answer".to_owned())
            }
            Ok(address) => tokio::select! {
                dialled = dial(ways, &address, connect, &Patience::CLAIM) => {
                    dialled.map(|link| (link, address)).map_err(|failure| failure.detail)
                }
                () = claim_dropped(shared) => continue,
            },
            Err(error) => Err(format!("the server named a server that cannot be reached: {error}")),
        };
        match dialled {
            Ok((link, address)) => {
                let link = pump(shared, link, &ToClaim { line }).await;
                if shared.lock().line() != line {
                    return (link, address);
                }
            }
            Err(detail) => {
                tracing::debug!(%detail, "no other server is reached");
                shared.lock().claim_failed(&detail, shared.now());
                shared.wake();
            }
        }
    }
}

/// Waits until the claim that is dialled is not wanted any more.
async fn claim_dropped(shared: &Handle) {
    let mut bell = shared.listen();
    while shared.lock().is_claiming() {
        bell.rung().await;
    }
}

/// A claim at another server, until that lets this process in: then the link is the room's.
struct ToClaim {
    /// As of [`ToHub`], before the claim.
    line: u64,
}

impl ToClaim {
    fn is_granted(&self, core: &RoomCore) -> bool {
        core.line() != self.line
    }
}

impl PacketEndpoint for ToClaim {
    fn connected(&self, core: &mut RoomCore, link: &LinkSender, now: Instant) {
        core.claim_connected(link.kind(), now);
    }

    fn carries(&self, _: &mut RoomCore, _: u32) {}

    fn poll_packet(&self, core: &mut RoomCore, now: Instant) -> Option<Packet> {
        if self.is_granted(core) { None } else { core.poll_claim_packet(now) }
    }

    fn handle_packet(&self, core: &mut RoomCore, packet: Packet, now: Instant) {
        if self.is_granted(core) {
            core.handle_packet(packet, now);
        } else {
            core.handle_claim_packet(packet, now);
        }
    }

    fn lost(&self, core: &mut RoomCore, detail: &str, now: Instant) {
        if self.is_granted(core) {
            core.disconnected(detail, now);
        } else {
            core.claim_failed(detail, now);
        }
    }

    fn is_finished(&self, core: &RoomCore) -> bool {
        self.is_granted(core) || !core.is_claiming()
    }

    fn goes_on(&self, core: &RoomCore) -> bool {
        !self.is_granted(core)
    }

    fn keeps_link(&self, core: &RoomCore) -> bool {
        self.is_granted(core)
    }

    fn poll_timeout(&self, core: &RoomCore) -> Option<Instant> {
        core.poll_timeout()
    }

    fn handle_timeout(&self, core: &mut RoomCore, now: Instant) {
        core.handle_timeout(now);
    }
}
