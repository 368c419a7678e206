//! What members see of a room's state, keyed and as entities, under packet loss and delay.

mod determinism;
mod entities;
mod isolation;
mod joins;
mod keyed;
mod newcomers;
mod packets;
mod quantum;
mod recording;
mod replicas;
mod scopes;
mod starved;
mod world;
