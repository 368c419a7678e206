//! The host's ends of paths: state goes over them to each member that has one.

use super::link::Path;
use super::{Around, Paths};
use crate::connection::Connection;
use crate::state::SharedState;
use parlor_proto::session::{DeliveryId, SendError, Session};
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{Instant, MemberId, PathId};
use std::time::Duration;

/// Signs of life of the hub that are due within the host timeout.
const SIGNS_OF_LIFE: u32 = 5;

impl Paths {
    /// Sends members with a path what they lack, at the host.
    pub(super) fn publish(&mut self, shared: &mut SharedState, now: Instant) {
        let SharedState::Host(host) = shared else { return };
        let (world, Some(direct)) = host.direct_parts() else { return };
        let paths = &mut self.by_id;
        let send = |member, message| {
            let path = paths.values_mut().find(|path| path.peer == member && path.is_open());
            // This fails only when the path is over; then its view is removed, too.
            let _: Option<Result<(), SendError>> =
                path.and_then(Path::session_mut).map(|session| session.send(message));
        };
        direct.publish(world, send, now);
    }

    /// Sets the capacity of a path in bytes per second, all traffic included. State is limited to it.
    pub(crate) fn set_capacity(&self, id: PathId, bytes_per_second: u32, shared: &mut SharedState) {
        if let Some((path, direct)) = self.by_id.get(&id).zip(shared.direct_mut()) {
            direct.path_carries(path.peer, bytes_per_second);
        }
    }

    /// Until when a host may serve members over paths. Then another member may already be the host, without a
    /// way to tell this one.
    pub(crate) fn serves_until(&self, hub: &Connection, welcome: &Welcome) -> Option<Instant> {
        let mut served = self.by_id.values().filter(|path| path.is_of_host());
        served.find(|path| !path.is_over())?;
        let limits = welcome.limits;
        let timeout_ms = limits.keep_alive_ms.saturating_mul(SIGNS_OF_LIFE).min(limits.silence_ms);
        Some(hub.session().map(Session::last_heard)? + Duration::from_millis(timeout_ms.into()))
    }
}

/// Notes the fate of a packet of the room's state, or of this member's own, that went over the path to a member.
pub(super) fn fate(around: &mut Around<'_>, peer: MemberId, delivery_id: DeliveryId, delivered: bool) {
    if let ((Some(_), number), Some(replicas)) = (delivery_id.stream(), around.replicas.as_deref_mut()) {
        replicas.fate_at(peer, number, delivered);
        return;
    }
    if let Some(direct) = around.shared.as_deref_mut().and_then(SharedState::direct_mut) {
        direct.fate(peer, delivery_id.stream().1, delivered);
    }
}
