//! A member's streams of the state: one is read, others may take its place.
//!
//! The hub's and the host's stream of the same world each fill a replica of their own. The one that is read goes on until another has
//! all of the world at a tick that is not older: then that one is read, and what differs is told like a packet. So no entity goes
//! and comes, and nothing that was shown goes back in time, but for a host whose last steps the room never had.

use super::super::room::{Joined, RoomCore};
use super::super::shared::Shared;
use parlor_proto::MemberId;
use parlor_proto::PathId;
use parlor_proto::wire::control::ToHub;
use parlor_proto::wire::path::PathRole;

impl Shared {
    /// The path over which the state comes that is read; `None` if that is the hub's.
    pub(super) fn source(&self) -> Option<PathId> {
        match self {
            Shared::Host(_) => None,
            Shared::Member(member) => member.source(),
        }
    }

    /// A path is open: its member listens to it, its host sends the state.
    pub(super) fn path_opened(&mut self, id: PathId, peer: MemberId, role: PathRole) {
        match (self, role) {
            (Shared::Member(member), PathRole::Dial) => member.await_stream(Some(id)),
            (Shared::Host(host), PathRole::Accept) => host.serve(peer),
            (Shared::Member(_), PathRole::Accept) | (Shared::Host(_), PathRole::Dial) => {}
        }
    }

    /// A path is over. Says whether what is read came over it: then the hub is to send all of it anew.
    pub(super) fn path_closed(&mut self, id: PathId, peer: MemberId) -> bool {
        match self {
            Shared::Member(member) => member.lose_stream(id),
            Shared::Host(host) => {
                if let Some(direct) = host.direct_mut() {
                    direct.remove(peer);
                }
                false
            }
        }
    }
}

impl RoomCore {
    /// What is read comes over another way than before.
    pub(in crate::core) fn stream_switched(&mut self) {
        if let Some(id) = self.joined.as_ref().and_then(|joined: &Joined| joined.shared.source()) {
            self.tell_hub(&ToHub::PathUp { id });
        }
    }
}
