//! The host's ends of paths: each member that has one is sent the state over it, as far as it may see it.

use super::super::room::RoomCore;
use super::super::shared::Shared;
use super::super::upstream::state_part;
use super::{Path, Paths};
use parlor_proto::session::{Outgoing, Tag};
use parlor_proto::wire::path::PathRole;
use parlor_proto::{Instant, MemberId, channel};
use parlor_sync::world::{PublisherConfig, Sent, Views, World};
use std::time::Duration;

/// Signs of life of the hub that are due within the time after which another member may be host.
const SIGNS_OF_LIFE: u32 = 5;

/// The views of members that have a path.
#[derive(Debug)]
pub(in crate::core) struct DirectViews {
    views: Views,
    /// How long it takes until what was held back is tried again.
    retry: Duration,
    is_due: bool,
    due: Option<Instant>,
}

impl DirectViews {
    pub(in crate::core) fn new(world: &World) -> Self {
        DirectViews {
            views: Views::new(world.schema()),
            retry: world.rate().interval(),
            is_due: false,
            due: None,
        }
    }

    /// A member has a path, and nothing came over it yet.
    pub(in crate::core) fn add(&mut self, member: MemberId) {
        self.views.add(member, PublisherConfig::default());
        self.is_due = true;
    }

    pub(in crate::core) fn remove(&mut self, member: MemberId) {
        self.views.remove(member);
    }

    /// A member's path carries so many bytes per second.
    pub(in crate::core) fn path_carries(&mut self, member: MemberId, bytes_per_second: u32) {
        if let Some(publisher) = self.views.publisher_mut(member) {
            let most = PublisherConfig::default().bytes_per_second;
            let rate = state_part(bytes_per_second).min(most);
            if publisher.config().bytes_per_second != rate {
                publisher.set_config(PublisherConfig::new(rate));
                self.is_due = true;
            }
        }
    }

    /// Something was written.
    pub(in crate::core) fn written(&mut self) {
        self.is_due = true;
    }

    pub(in crate::core) fn fate(&mut self, member: MemberId, number: u64, delivered: bool) {
        self.views.fate(member, Sent(number), delivered);
        self.is_due = true;
    }

    /// When there may be more to send though nothing was written.
    pub(in crate::core) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(in crate::core) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.due.take_if(|due| *due <= now).is_some();
    }

    fn publish(&mut self, world: &World, paths: &mut Paths, now: Instant) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        self.views.flush(world, now, |member, packet, sent| {
            let to_it = |path: &&mut Path| path.peer == member && path.is_open();
            let path = paths.by_id.values_mut().find(to_it);
            if let Some(session) = path.and_then(Path::session_mut) {
                let tag = Some(Tag::of_state(sent.0));
                // It fails only when the path is over, and then its view goes, too.
                let message = Outgoing { tag, ..Outgoing::new(channel::STATE, packet) };
                let _: Result<(), parlor_proto::session::SendError> = session.send(message);
            }
        });
        let members: Vec<MemberId> = self.views.members().collect();
        let mut is_due = |member| self.views.publisher_mut(member).is_some_and(|it| it.is_due(world));
        self.due = members.into_iter().any(&mut is_due).then(|| now + self.retry);
    }
}

impl RoomCore {
    /// Sends members that have a path what they do not have yet.
    pub(super) fn publish_to_paths(&mut self, now: Instant) {
        if let Some(joined) = &mut self.joined
            && let Shared::Host(host) = &mut joined.shared
        {
            let (world, direct) = host.direct_parts();
            if let Some(direct) = direct {
                direct.publish(world, &mut self.paths, now);
            }
        }
    }

    pub(super) fn fate_of_path(&mut self, peer: MemberId, tag: Tag, delivered: bool) {
        if let Some(joined) = &mut self.joined
            && let Some(direct) = joined.shared.direct_mut()
        {
            direct.fate(peer, tag.stream().1, delivered);
        }
    }

    /// Until when a host may serve its members over paths, if it serves any: another member may be host by then, of which nobody could
    /// tell this one.
    pub(super) fn lease_of_paths(&self) -> Option<Instant> {
        let joined = self.joined.as_ref()?;
        let mut served = self.paths.by_id.values().filter(|path| path.role == PathRole::Accept);
        served.find(|path| !path.is_over())?;
        let limits = joined.welcome.limits;
        let lease_ms = limits.keep_alive_ms.saturating_mul(SIGNS_OF_LIFE).min(limits.silence_ms);
        Some(self.session.as_ref()?.last_heard() + Duration::from_millis(lease_ms.into()))
    }
}
