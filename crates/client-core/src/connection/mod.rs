//! The connection to the server: its state, and when to reconnect.

mod hub_watchdog;
mod reconnect;

pub(crate) use hub_watchdog::HubWatchdog;
pub use reconnect::{LinkState, reconnect_wait};
pub(crate) use reconnect::{Reconnect, Tier, say};
