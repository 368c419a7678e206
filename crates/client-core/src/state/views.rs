//! Views of the state that the host itself sends: each member with a direct path gets what it may see.

use super::state_part;
use parlor_proto::session::{DeliveryId, Outgoing};
use parlor_proto::{Instant, MemberId, channel};
use parlor_sync::world::{PublisherConfig, Sent, Views, World};
use std::time::Duration;

/// The views of members that have a path.
#[derive(Debug)]
pub(crate) struct DirectViews {
    views: Views,
    /// Interval until deferred state is tried again.
    retry: Duration,
    is_due: bool,
    due: Option<Instant>,
}

impl DirectViews {
    pub(crate) fn new(world: &World) -> Self {
        DirectViews {
            views: Views::new(world.schema()),
            retry: world.rate().interval(),
            is_due: false,
            due: None,
        }
    }

    /// Adds a member with a new path, to be sent everything.
    pub(crate) fn add(&mut self, member: MemberId) {
        self.views.add(member, PublisherConfig::default());
        self.is_due = true;
    }

    pub(crate) fn remove(&mut self, member: MemberId) {
        self.views.remove(member);
    }

    /// Sets the capacity of a member's path.
    pub(crate) fn path_carries(&mut self, member: MemberId, bytes_per_second: u32) {
        if let Some(publisher) = self.views.publisher_mut(member) {
            let most = PublisherConfig::default().bytes_per_second;
            let rate = state_part(bytes_per_second).min(most);
            if publisher.config().bytes_per_second != rate {
                publisher.set_config(PublisherConfig::new(rate));
                self.is_due = true;
            }
        }
    }

    /// Notes that the world was written.
    pub(crate) fn written(&mut self) {
        self.is_due = true;
    }

    pub(crate) fn fate(&mut self, member: MemberId, number: u64, delivered: bool) {
        self.views.fate(member, Sent(number), delivered);
        self.is_due = true;
    }

    /// When there may be more to send without a new write.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.due.take_if(|due| *due <= now).is_some();
    }

    /// Sends members what they lack; `send` puts a message on the path of a member.
    pub(crate) fn publish(&mut self, world: &World, mut send: impl FnMut(MemberId, Outgoing), now: Instant) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        self.views.flush(world, now, |member, packet, sent| {
            let delivery_id = Some(DeliveryId::of_state(sent.0));
            send(member, Outgoing { delivery_id, ..Outgoing::new(channel::STATE, packet) });
        });
        let members: Vec<MemberId> = self.views.members().collect();
        let mut is_due = |member| self.views.publisher_mut(member).is_some_and(|it| it.is_due(world));
        self.due = members.into_iter().any(&mut is_due).then(|| now + self.retry);
    }
}
