//! The packets of a member's state: those of its world, with the state's schema until that has arrived. Their
//! layout is that of [`OwnState`].

use super::flow::{Flow, FlowMeter};
use super::remote_state::RemoteState;
use super::template::{Form, STATE, State, TemplateError};
use crate::schema::{Schema, SchemaError};
use crate::world::{Applied, Outcome, Replica, Sent, StreamError, World};
use bytes::Bytes;
use parlor_proto::wire::replica::OwnState;
use parlor_proto::{Instant, PathId, TickRate};
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
    /// Its state is not one entity.
    #[error("it has more than one entity")]
    Entities,
    /// Its state and what it was take too much memory.
    #[error("what it was takes too much memory to remember: send it more rarely")]
    TooMuchHistory,
}

/// Maximum memory of one member's state and history at a receiver, in bytes: ample for a game that changes it at each
/// step.
const OWN_STATE_MEMORY_MAX: usize = 4 << 20;

/// Checks a member's own state after a packet, at its receiver: it is one entity, and takes at most 4 MiB with
/// `other_bytes`, which its receiver keeps beside it.
///
/// # Errors
/// [`ReplicaError::Entities`] or [`ReplicaError::TooMuchHistory`].
pub fn check_own_state(replica: &Replica, other_bytes: usize) -> Result<(), ReplicaError> {
    if replica.world().entities().nth(1).is_some() {
        return Err(ReplicaError::Entities);
    }
    if replica.memory_bytes() + other_bytes > OWN_STATE_MEMORY_MAX {
        return Err(ReplicaError::TooMuchHistory);
    }
    Ok(())
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
    /// The stream over the newest path; `None` if there was none.
    direct: Option<Direct>,
}

/// A stream of a member's state over a path, beside that from the hub.
#[derive(Clone, Debug)]
struct Direct {
    path: PathId,
    /// `None` before the first packet with a schema.
    replica: Option<Replica>,
    meter: FlowMeter,
    /// Whether the newest packet came over the path, not from the hub.
    is_newest: bool,
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
        Remote { rate, is_everything: false, known: None, meter: FlowMeter::default(), direct: None }
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
            show(&known.replica, &mut known.remote_state, applied, (self.rate, arrived));
            self.direct.iter_mut().for_each(|direct| direct.is_newest = false);
        }
        Ok(outcome)
    }

    /// Applies a packet that came from the member itself over a path. The newer state counts, whichever way it came.
    ///
    /// # Errors
    /// [`ReplicaError`] if it violates the protocol; end the path then.
    pub fn apply_direct(
        &mut self,
        path: PathId,
        state: OwnState,
        arrived: Instant,
    ) -> Result<Outcome<Applied>, ReplicaError> {
        let bytes = state.packet.len() + state.schema.as_ref().map_or(0, Bytes::len);
        let has_schema = state.schema.is_some();
        if let Some(schema) = state.schema {
            self.introduce(schema)?;
        }
        if self.direct.as_ref().is_none_or(|direct| direct.path != path) {
            let meter = FlowMeter::default();
            self.direct = Some(Direct { path, replica: None, meter, is_newest: false });
        }
        let (Some(direct), Some(known)) = (&mut self.direct, &mut self.known) else {
            return Ok(Outcome::Waiting);
        };
        direct.meter.arrived(bytes, arrived);
        if direct.replica.is_none() && has_schema {
            direct.replica = Some(Replica::new(Arc::clone(known.remote_state.form().schema()), self.rate));
        }
        let Some(replica) = &mut direct.replica else { return Ok(Outcome::Waiting) };
        let outcome = replica.apply(state.packet)?;
        // Over the hub's stream the hub checks it.
        check_own_state(replica, 0)?;
        if let Outcome::Taken(applied) = &outcome {
            direct.meter.taken(applied.number);
            direct.is_newest = true;
            show(replica, &mut known.remote_state, applied, (self.rate, arrived));
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
        let direct = self.direct.as_ref().filter(|direct| direct.is_newest);
        let meter = direct.map_or(&self.meter, |direct| &direct.meter);
        let (loss, bytes_per_second) = (meter.loss(), meter.bytes_per_second(now));
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

/// Passes the changes of the first entity to the remote state; there should be no other.
fn show(
    replica: &Replica,
    remote_state: &mut RemoteState,
    applied: &Applied,
    (rate, arrived): (TickRate, Instant),
) {
    let world = replica.world();
    let Some(entity) = world.entities().next() else { return };
    let is_news = applied.changed.iter().any(|(changed, mask)| *changed == entity && mask & STATE.bit() != 0);
    let label = world.label(entity, STATE).filter(|_| is_news);
    if let (Some(label), Ok(Some((lanes, blobs)))) = (label, world.read_row(entity, STATE)) {
        remote_state.observe(rate.begins(label), lanes, blobs, arrived);
    }
}
