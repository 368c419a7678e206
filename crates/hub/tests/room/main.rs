//! One room and its members: what one says, what another hears, and over a network that loses.

mod actions;
mod dedicated;
mod harness;
mod matches;
mod migration;
mod paths;
mod primary;
mod replicas;
mod state;
