//! The room's keyed state: the authority sends it up once, every member is sent its own view of it.

use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Tag};
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::{Epoch, MemberId, PeerMisbehaved, channel};
use parlor_sync::keyed::{Outcome, Publisher, Sent, Store, Update, UpdateError, Viewer};
use std::collections::BTreeMap;

/// What the authority published, and how far each member is.
#[derive(Debug, Default)]
pub(super) struct State {
    store: Store,
    publishers: BTreeMap<MemberId, Publisher>,
    /// Something changed, or was lost, since the last flush.
    due: bool,
}

impl State {
    pub(super) fn add(&mut self, member: MemberId, viewer: Viewer) {
        self.publishers.insert(member, Publisher::new(viewer));
        self.due = true;
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.publishers.remove(&member);
    }

    pub(super) fn fate(&mut self, member: MemberId, tag: u64, delivered: bool) {
        let Some(publisher) = self.publishers.get_mut(&member) else { return };
        if delivered {
            publisher.delivered(Sent(tag));
        } else {
            publisher.lost(Sent(tag));
        }
        self.due |= publisher.is_due();
    }
}

impl Room {
    /// Takes the authority's update in. One under an older epoch is ignored: it was under way when the authority
    /// changed.
    pub(super) fn state_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        epoch: Epoch,
    ) -> Result<(), PeerMisbehaved> {
        if epoch < self.epoch {
            self.counters.stale_epoch += 1;
            return Ok(());
        }
        self.expect_authority(from, "state")?;
        if epoch > self.epoch {
            // Epochs are given by the hub: nobody can know of one before it does.
            let error = ReadError::OutOfRange { field: "epoch" };
            return Err(PeerMisbehaved::Malformed { what: "the state", error });
        }
        let bad = |error: UpdateError| PeerMisbehaved::BadState { detail: error.to_string() };
        let update = Update::decode(payload).map_err(bad)?;
        match self.state.store.adopt(&update).map_err(bad)? {
            Outcome::Taken(_) => {
                self.counters.updates += 1;
                self.state.due = true;
            }
            Outcome::Old => {}
            Outcome::Gap { .. } => self.counters.state_gaps += 1,
        }
        Ok(())
    }

    /// Gives every member that may see something new an update. The authority wrote the state and needs none.
    pub(super) fn flush_state(&mut self) {
        if !std::mem::take(&mut self.state.due) {
            return;
        }
        let authority = self.authority.member();
        for (member, publisher) in &mut self.state.publishers {
            if Some(*member) == authority {
                continue;
            }
            if let Some((payload, sent)) = publisher.poll_update(&self.state.store) {
                let message = Outgoing { channel: channel::STATE, key: 0, payload, tag: Some(Tag(sent.0)) };
                self.outputs.push_back(Output::Send { to: vec![*member], message });
            }
        }
    }
}
