//! The packets of a member's state: those of its world, with the state's schema until that has arrived. Their
//! layout is that of [`OwnState`].

use super::flow::{Flow, FlowMeter};
use super::remote_state::RemoteState;
use super::template::{Form, STATE, State, TemplateError};
use crate::schema::{Schema, SchemaError};
use crate::world::{Applied, Outcome, Replica, Sent, StreamError, World};
use bytes::Bytes;
use parlor_proto::wire::replica::OwnState;
use parlor_proto::{Instant, TickRate};
use std::sync::Arc;
use thiserror::Error;

/// A packet of a member's state violates the protocol: the peer's fault.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// Its schema is invalid.
    #[error("the schema of a member's state is out of order: {0}")]
    Schema(#[from] SchemaError),
    /// Its schema is not that of a template.
    #[error(transparent)]
    Form(#[from] TemplateError),
    /// Its schema differs from the earlier one.
    #[error(
        "the schema of a member's state changed: it must be the same as long as the member is in the room"
    )]
    OtherForm,
    /// Its packet is invalid.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Adds the schema of a member's state to each packet for one receiver, until one has arrived.
#[derive(Clone, Debug)]
pub struct Introduction {
    schema: Bytes,
    /// The first packet with the schema; earlier ones are from before a restart.
    since: Option<Sent>,
    is_known: bool,
}

impl Introduction {
    /// Creates it for a new receiver; `schema` is from [`Schema::encode`].
    pub fn new(schema: Bytes) -> Self {
        Introduction { schema, since: None, is_known: false }
    }

    /// Wraps a packet of the state's publisher for sending.
    pub fn wrap(&mut self, packet: Bytes, sent: Sent) -> OwnState {
        self.since.get_or_insert(sent);
        OwnState { schema: (!self.is_known).then(|| self.schema.clone()), packet }
    }

    /// Records that a packet arrived.
    pub fn delivered(&mut self, sent: Sent) {
        self.is_known |= self.since.is_some_and(|since| sent >= since);
    }

    /// Starts again: the receiver has lost everything.
    pub fn restart(&mut self) {
        (self.since, self.is_known) = (None, false);
    }
}

/// A member's state on the receiving side.
#[derive(Clone, Debug)]
pub struct Remote {
    rate: TickRate,
    /// Whether the packets come from the member itself, not from the hub.
    is_everything: bool,
    /// `None` before the first packet with a schema.
    known: Option<Known>,
    meter: FlowMeter,
}

#[derive(Clone, Debug)]
struct Known {
    schema: Bytes,
    replica: Replica,
    remote_state: RemoteState,
}

impl Remote {
    /// For a member: receives another member's state from the hub.
    pub fn new(rate: TickRate) -> Self {
        Remote { rate, is_everything: false, known: None, meter: FlowMeter::default() }
    }

    /// For the hub: receives a member's state from the member.
    pub fn of_everything(rate: TickRate) -> Self {
        Remote { is_everything: true, ..Remote::new(rate) }
    }

    /// Applies a packet that arrived at `arrived` of room time.
    ///
    /// # Errors
    /// [`ReplicaError`] if it violates the protocol; stop listening to its sender then.
    pub fn apply(&mut self, state: OwnState, arrived: Instant) -> Result<Outcome<Applied>, ReplicaError> {
        let bytes = state.packet.len() + state.schema.as_ref().map_or(0, Bytes::len);
        self.meter.arrived(bytes, arrived);
        if let Some(schema) = state.schema {
            self.introduce(schema)?;
        }
        let Some(known) = &mut self.known else { return Ok(Outcome::Waiting) };
        let outcome = known.replica.apply(state.packet)?;
        if let Outcome::Taken(applied) = &outcome {
            self.meter.taken(applied.number);
            known.show(applied, self.rate, arrived);
        }
        Ok(outcome)
    }

    /// Prepares for another stream of the same state, as after a reconnect.
    pub fn restart(&mut self) {
        self.meter.restart();
        if let Some(known) = &mut self.known {
            known.replica.restart();
        }
    }

    /// Returns the form of the state; `None` before the first packet.
    pub fn form(&self) -> Option<&Arc<Form>> {
        self.known.as_ref().map(|known| known.remote_state.form())
    }

    /// Returns the world with the state as its one entity, for the hub to publish; `None` before the first
    /// packet.
    pub fn world(&self) -> Option<&World> {
        self.known.as_ref().map(|known| known.replica.world())
    }

    /// Returns the remote state; `None` before the first packet.
    pub fn remote_state(&self) -> Option<&RemoteState> {
        self.known.as_ref().map(|known| &known.remote_state)
    }

    /// Returns the state at `at` of room time for display: see [`RemoteState::state_at`].
    pub fn state_at(&mut self, at: Instant) -> Option<State> {
        self.known.as_mut()?.remote_state.state_at(at)
    }

    /// Returns how the states arrive, at `now` of room time; `None` before the first.
    pub fn flow(&self, now: Instant) -> Option<Flow> {
        let latency = self.remote_state()?.latency()?;
        let (loss, bytes_per_second) = (self.meter.loss(), self.meter.bytes_per_second(now));
        Some(Flow { latency, loss, bytes_per_second })
    }

    fn introduce(&mut self, schema: Bytes) -> Result<(), ReplicaError> {
        if let Some(known) = &self.known {
            return if known.schema == schema { Ok(()) } else { Err(ReplicaError::OtherForm) };
        }
        let decoded = Arc::new(Schema::decode(schema.clone())?);
        let form = Arc::new(Form::new(Arc::clone(&decoded))?);
        let make = if self.is_everything { Replica::of_everything } else { Replica::new };
        let (replica, remote_state) = (make(decoded, self.rate), RemoteState::new(form, self.rate));
        self.known = Some(Known { schema, replica, remote_state });
        Ok(())
    }
}

impl Known {
    /// Passes the changes of the first entity to the remote state; there should be no other.
    fn show(&mut self, applied: &Applied, rate: TickRate, arrived: Instant) {
        let world = self.replica.world();
        let Some(entity) = world.entities().next() else { return };
        let is_news =
            applied.changed.iter().any(|(changed, mask)| *changed == entity && mask & STATE.bit() != 0);
        let label = world.label(entity, STATE).filter(|_| is_news);
        if let (Some(label), Ok(Some((lanes, blobs)))) = (label, world.read_row(entity, STATE)) {
            self.remote_state.observe(rate.begins(label), lanes, blobs, arrived);
        }
    }
}
