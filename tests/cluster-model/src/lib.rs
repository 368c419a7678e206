//! The machines of a cluster under a model checker: nodes, one store, one room with one member's session, and every
//! order of what can happen to them.
//!
//! The nodes are the real machines, [`parlor_hub::cluster`]. What is beside them is small enough to read: a store that
//! answers one statement after another, and a thread of the lease that turns twice in each unit of time. Nodes are killed,
//! stand still, lose the store, lose the connection of their lock, and have clocks that are late; a statement that gives the
//! room away comes late or never, and so do answers.
//!
//! A [`World`] is one state; [`World::actions`] and [`World::next`] are all that can happen, and its other methods say what
//! must not. [`Guards`] take out one safeguard each: without it there is a fault.

mod faults;
mod node;
mod store;
mod world;

pub use store::Store;
pub use world::{Action, Bounds, Guards, World};
