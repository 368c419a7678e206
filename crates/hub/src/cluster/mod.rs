//! The pure machines of a cluster: servers that share one store, each a node with rooms of its own.
//!
//! A driver gives them what the store and the clock say; they decide. The store is the truth: what they decide
//! becomes valid by a statement that compares the term, the node and the reservation that it replaces.
//!
//! - [`tenure`]: a node's lease, and what the node may decide
//! - [`deaths`]: which other nodes are dead
//! - [`ownership`]: a room's copy at a node, and its row in the store
//! - [`pass`]: what proves a seat at another node
//! - [`placement`]: which node answers for a key, and where a room opens

pub mod deaths;
pub mod ownership;
pub mod pass;
pub mod placement;
pub mod tenure;
mod timing;

pub use timing::Timing;
