//! Running steps: when one is due, its inputs, and which steps are run again.

mod inputs;
mod overlay;
mod pace;
mod replay;
mod resimulation;
mod rewind;
mod ticker;

pub(crate) use inputs::Inputs;
pub(crate) use overlay::Overlay;
pub use overlay::OverlayDiagnostics;
pub(crate) use pace::Pace;
pub(crate) use replay::{Replay, Step};
pub(crate) use resimulation::Resimulation;
pub use rewind::Past;
pub(crate) use rewind::Rewinds;
pub(crate) use ticker::Ticker;
