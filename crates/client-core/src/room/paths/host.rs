//! The host's ends of paths: state goes over them to each member that has one.

use super::Path;
use crate::room::RoomCore;
use crate::state::SharedState;
use parlor_proto::session::{DeliveryId, SendError};
use parlor_proto::wire::path::PathRole;
use parlor_proto::{Instant, MemberId};
use std::time::Duration;

/// Signs of life of the hub that are due within the host timeout.
const SIGNS_OF_LIFE: u32 = 5;

impl RoomCore {
    /// Sends members with a path what they lack.
    pub(crate) fn publish_to_paths(&mut self, now: Instant) {
        if let Some(joined) = &mut self.joined
            && let SharedState::Host(host) = &mut joined.shared
        {
            let (world, direct) = host.direct_parts();
            if let Some(direct) = direct {
                let paths = &mut self.paths.by_id;
                let send = |member, message| {
                    let path = paths.values_mut().find(|path| path.peer == member && path.is_open());
                    // This fails only when the path is over; then its view is removed, too.
                    let _: Option<Result<(), SendError>> =
                        path.and_then(Path::session_mut).map(|session| session.send(message));
                };
                direct.publish(world, send, now);
            }
        }
    }

    pub(crate) fn fate_of_path(&mut self, peer: MemberId, delivery_id: DeliveryId, delivered: bool) {
        if let Some(joined) = &mut self.joined
            && let Some(direct) = joined.shared.direct_mut()
        {
            direct.fate(peer, delivery_id.stream().1, delivered);
        }
    }

    /// Until when a host may serve members over paths. Then another member may already be the host, without a
    /// way to tell this one.
    pub(crate) fn timeout_of_paths(&self) -> Option<Instant> {
        let joined = self.joined.as_ref()?;
        let mut served = self.paths.by_id.values().filter(|path| path.role == PathRole::Accept);
        served.find(|path| !path.is_over())?;
        let limits = joined.welcome.limits;
        let timeout_ms = limits.keep_alive_ms.saturating_mul(SIGNS_OF_LIFE).min(limits.silence_ms);
        Some(self.session.as_ref()?.last_heard() + Duration::from_millis(timeout_ms.into()))
    }
}
