//! Resignations, and players that are out of the game for another reason.

use super::config::Quorum;
use super::effect::NoticeKind;
use super::ids::PlayerId;
use super::moves::{END_REASON, Standing, WINNER};
use super::notify::Work;
use super::op::Propose;
use super::refusal::{Code, Refusal};
use super::{Barred, GameResult, Phase, Status, TurnRoom};
use serde_json::json as object;

/// The field of a move's data that names the resigning player.
const RESIGNED_BY: &str = "resignedBy";
/// The reason of a game's end by a resignation.
const RESIGNATION: &str = "resignation";

impl TurnRoom {
    /// Resigns a player from the game, in turn or not.
    pub(super) fn resign(&mut self, by: &PlayerId, work: &mut Work<'_>) -> Result<bool, Refusal> {
        if self.phase != Phase::Playing {
            return Err(Refusal::new(
                Code::WrongPhase,
                "no game goes on that could be given up: leave instead",
            ));
        }
        if !self.is_in_game(by) {
            return Err(Refusal::new(Code::OutOfGame, "you are out of this game already"));
        }
        self.forfeit(by, Status::Resigned, RESIGNATION, work);
        Ok(true)
    }

    pub(super) fn forfeit(&mut self, id: &PlayerId, status: Status, reason: &str, work: &mut Work<'_>) {
        self.give_up(id, status, reason, work);
        self.take_out(id, reason, work);
    }

    /// Marks a player as out of the game and tells all of it. The game is not changed yet.
    fn give_up(&mut self, id: &PlayerId, status: Status, reason: &str, work: &mut Work<'_>) {
        if let Some(player) = self.players.iter_mut().find(|player| player.id == *id) {
            player.status = status;
        }
        self.barred.insert(id.clone(), Barred::OutOfGame);
        self.tell_all(NoticeKind::PlayerForfeited, object!({ "player": id, "reason": reason }), work);
    }

    /// Resigns, and takes the final state that the move brings, if any.
    pub(super) fn resign_by_move(
        &mut self,
        by: &PlayerId,
        propose: Propose,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let named = propose.data.get(RESIGNED_BY).filter(|value| !value.is_null());
        if named.is_some_and(|named| named.as_str() != Some(by.as_str())) {
            let sentence = "nobody resigns for another: name yourself or leave it out";
            return Err(Refusal::at(Code::BadInput, format!("data.{RESIGNED_BY}"), sentence));
        }
        let Some(patch) = &propose.state else { return self.resign(by, work).map(|_| ()) };
        if self.config.quorum != Quorum::None {
            let sentence =
                "the others judge what changes the state, and a resignation waits for nobody: leave it out";
            return Err(Refusal::at(Code::BadInput, "state", sentence));
        }
        let state = self.merged(self.state.clone(), patch)?;
        let end = self.claimed_end(patch, &state)?;
        if end.as_ref().is_some_and(|(winner, _)| winner.as_ref() == Some(by)) {
            let sentence = "who resigns does not win: name another player, or null";
            return Err(Refusal::at(Code::BadInput, format!("state.{WINNER}"), sentence));
        }
        let has_reason = state.get(END_REASON).is_some_and(|reason| !reason.is_null());
        self.state = state;
        let id = self.next_proposal();
        self.stands(Standing::unjudged(id, by, propose.kind, propose.data), work);
        self.give_up(by, Status::Resigned, RESIGNATION, work);
        match end {
            None => self.take_out(by, RESIGNATION, work),
            Some((winner, reason)) => {
                let reason = if has_reason { reason } else { RESIGNATION.to_owned() };
                let finisher = Some(by.clone());
                self.turn.order.retain(|player| player != by);
                self.over(GameResult { winner, reason, finisher, ended: work.with.now }, work);
            }
        }
        Ok(())
    }
}
