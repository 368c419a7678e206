//! One room and its members, over a lossy network.

mod actions;
mod dedicated;
mod harness;
mod matches;
mod migration;
mod paths;
mod primary;
mod replicas;
mod state;
