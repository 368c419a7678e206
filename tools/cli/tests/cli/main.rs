//! The binary, as users run it.

#[cfg(unix)]
mod admin;
#[cfg(unix)]
mod boards;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod draughts;
#[cfg(target_os = "linux")]
mod files;
mod find;
#[cfg(unix)]
mod first_minutes;
mod impaired;
mod lan;
mod lobby;
mod manual;
mod matches;
mod rooms;
#[cfg(unix)]
mod serve;
mod support;
mod tokens;
mod ways;
mod world;
mod wrong_input;
