//! The pure machines of a cluster: servers that share one store, each a node with rooms of its own.
//!
//! A driver gives them what the store and the clock say; they decide. The store is the truth: what they decide
//! becomes valid by a statement that compares the term, the node and the reservation that it replaces.
//!
//! - [`placement`]: which node answers for a key, and where a room opens

pub mod placement;
