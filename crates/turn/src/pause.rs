//! Pauses of a room: its clocks stand still, and nobody moves, starts or joins.
//!
//! Deadlines are kept as if the time of the pause stood still, and are moved by its length when it ends.

use super::effect::NoticeKind;
use super::ids::{PlayerId, UnixMillis};
use super::notify::Work;
use super::refusal::{Code, Refusal};
use super::{Phase, TurnRoom};
use serde_json::json as object;

impl TurnRoom {
    pub(super) fn pause(
        &mut self,
        by: Option<&PlayerId>,
        pauses: bool,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        self.check_admin(by, "pause and resume it")?;
        if self.phase == Phase::Ended {
            return Err(Refusal::new(Code::WrongPhase, "the game is over: there is nothing to pause"));
        }
        if self.config.rules.is_some() && by.is_some() {
            let sentence =
                "in a game with rules a pause is the operator's to give: a player could gain time by it";
            return Err(Refusal::new(Code::RulesDecide, sentence));
        }
        match (self.paused, pauses) {
            (None, true) => {
                self.paused = Some(work.with.now);
                self.tell_all(NoticeKind::RoomPaused, object!({ "player": by }), work);
            }
            (Some(since), false) => {
                self.paused = None;
                self.delay_deadlines(work.with.now.since(since));
                let body = object!({ "player": by, "deadline": self.turn.deadline });
                self.tell_all(NoticeKind::RoomResumed, body, work);
            }
            (None, false) | (Some(_), true) => return Ok(false),
        }
        Ok(true)
    }

    fn delay_deadlines(&mut self, ms: u64) {
        let votes = self.open.iter_mut().map(|proposal| &mut proposal.deadline);
        for deadline in votes.chain(self.turn.deadline.as_mut()) {
            *deadline = deadline.after_ms(ms);
        }
    }

    /// Returns the time on the room's clock, which stands still during a pause.
    pub(super) fn clock(&self, now: UnixMillis) -> UnixMillis {
        self.paused.unwrap_or(now)
    }

    /// Returns when the turn times out; `None` during a pause, because its end is not known.
    pub(super) fn shown_deadline(&self) -> Option<UnixMillis> {
        self.turn.deadline.filter(|_| self.paused.is_none())
    }

    /// Refuses what a pause forbids.
    pub(super) fn check_running(&self) -> Result<(), Refusal> {
        if self.paused.is_none() {
            return Ok(());
        }
        Err(Refusal::new(Code::Paused, "the room is paused: wait until it goes on"))
    }
}
