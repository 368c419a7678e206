//! What a scenario gives, and how games report to it.

use crate::model::{Counts, Divergence, Verdict};
use crate::peer::PeerId;
use parlor_client_core::{RoomCore, RoomError};
use parlor_proto::ApiMisuse;
use std::cell::RefCell;
use std::rc::Rc;

/// The result of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of the whole run: equal for the same seed.
    pub trace_hash: u64,
    /// Counts of what was checked.
    pub counts: Counts,
}

/// Lines of the transcript printed with a divergence.
pub(super) const EXCERPT_LINES: usize = 80;

/// The first objection in a game's step, checked after time has passed.
pub(super) type Objection = Rc<RefCell<Verdict>>;

/// Keeps the first objection.
pub(super) fn object(objection: &Objection, verdict: Verdict) {
    let mut first = objection.borrow_mut();
    if first.is_ok() {
        *first = verdict;
    }
}

/// Whether a correct game may get this error: its connection is slow, a member has just left, the session is over
/// and the game has not read that yet, or it watches only.
pub(super) fn is_usual(room: &RoomCore, error: &RoomError) -> bool {
    match error {
        RoomError::Full | RoomError::Misuse(ApiMisuse::NoSuchPlayer(_) | ApiMisuse::Closed(_)) => true,
        RoomError::Misuse(ApiMisuse::Spectator { .. }) => room.is_spectator(),
        _ => false,
    }
}

/// The divergence for an error that the model does not expect.
pub(super) fn refused(who: PeerId, what: &str, error: &dyn std::error::Error) -> Divergence {
    Divergence::new(format!("{who} may {what} and is refused: {error}"))
}
