//! The binary, as people run it.

#[cfg(unix)]
mod admin;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(unix)]
mod draughts;
mod impaired;
mod lan;
mod matches;
mod rooms;
mod support;
mod tokens;
mod world;
mod wrong_input;
