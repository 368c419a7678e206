//! The rules of demo games, without terminal and sockets: the binaries here play them, and the benches do in the simulator.
//!
//! - [`arena`]: players drive and shoot; shows prediction and hits

pub mod arena;
