//! The packets of a member's state: those of its world, and what it is made of until that is known to have
//! arrived. Their layout is that of [`OwnState`].

use super::remote_state::RemoteState;
use super::template::{Form, STATE, State, TemplateError};
use crate::schema::{Schema, SchemaError};
use crate::world::{Applied, Outcome, Replica, Sent, StreamError, World};
use bytes::Bytes;
use parlor_proto::wire::replica::OwnState;
use parlor_proto::{Instant, TickRate};
use std::sync::Arc;
use thiserror::Error;

/// A packet of a member's state breaks the protocol: the peer's fault.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// Its schema is none.
    #[error("the schema of a member's state is out of order: {0}")]
    Schema(#[from] SchemaError),
    /// Its schema is not a template's.
    #[error(transparent)]
    Form(#[from] TemplateError),
    /// Its schema is another than before.
    #[error(
        "the schema of a member's state changed: it must be the same as long as the member is in the room"
    )]
    OtherForm,
    /// What it says of the state is out of order.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Tells one receiver what a member's state is made of, with each packet until one has arrived.
#[derive(Clone, Debug)]
pub struct Introduction {
    schema: Bytes,
    /// The first packet that was sent with it; older ones are of before a restart.
    since: Option<Sent>,
    is_known: bool,
}

impl Introduction {
    /// For a receiver that knows nothing; `schema` as [`Schema::encode`] gives it.
    pub fn new(schema: Bytes) -> Self {
        Introduction { schema, since: None, is_known: false }
    }

    /// A packet of the state's publisher, as it is sent.
    pub fn wrap(&mut self, packet: Bytes, sent: Sent) -> OwnState {
        self.since.get_or_insert(sent);
        OwnState { schema: (!self.is_known).then(|| self.schema.clone()), packet }
    }

    /// A packet arrived.
    pub fn delivered(&mut self, sent: Sent) {
        self.is_known |= self.since.is_some_and(|since| sent >= since);
    }

    /// The receiver knows nothing any more.
    pub fn restart(&mut self) {
        (self.since, self.is_known) = (None, false);
    }
}

/// A member's state as it arrives.
#[derive(Clone, Debug)]
pub struct Remote {
    rate: TickRate,
    /// Whether the packets come from the member itself and not from the hub.
    is_everything: bool,
    /// None before the first packet with a schema.
    known: Option<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    schema: Bytes,
    replica: Replica,
    remote_state: RemoteState,
}

impl Remote {
    /// For a member: the state of another member, as the hub passes it on.
    pub fn new(rate: TickRate) -> Self {
        Remote { rate, is_everything: false, known: None }
    }

    /// For the hub: the state of a member, as it sends it.
    pub fn of_everything(rate: TickRate) -> Self {
        Remote { is_everything: true, ..Remote::new(rate) }
    }

    /// Takes in a packet that came at `arrived` of room time.
    ///
    /// # Errors
    /// [`ReplicaError`] if it breaks the protocol; its sender is not to be listened to any more.
    pub fn apply(&mut self, state: OwnState, arrived: Instant) -> Result<Outcome<Applied>, ReplicaError> {
        if let Some(schema) = state.schema {
            self.introduce(schema)?;
        }
        let Some(known) = &mut self.known else { return Ok(Outcome::Waiting) };
        let outcome = known.replica.apply(state.packet)?;
        if let Outcome::Taken(applied) = &outcome {
            known.show(applied, self.rate, arrived);
        }
        Ok(outcome)
    }

    /// Another stream of the same state follows, as after a reconnect.
    pub fn restart(&mut self) {
        if let Some(known) = &mut self.known {
            known.replica.restart();
        }
    }

    /// What the state is made of; none before the first packet.
    pub fn form(&self) -> Option<&Arc<Form>> {
        self.known.as_ref().map(|known| known.remote_state.form())
    }

    /// The world that has the state as its one entity, for the hub to publish on; none before the first
    /// packet.
    pub fn world(&self) -> Option<&World> {
        self.known.as_ref().map(|known| known.replica.world())
    }

    /// The state at any moment; none before the first packet.
    pub fn remote_state(&self) -> Option<&RemoteState> {
        self.known.as_ref().map(|known| &known.remote_state)
    }

    /// The state at `at` of room time, as it is to be shown: see [`RemoteState::state_at`].
    pub fn state_at(&mut self, at: Instant) -> Option<State> {
        self.known.as_mut()?.remote_state.state_at(at)
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
    /// Gives the remote state what changed of the first entity; there ought to be no other.
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
