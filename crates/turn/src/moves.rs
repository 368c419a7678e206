//! Moves: checks, immediate moves, moves that wait for the peers' votes, and their outcome.

use super::config::{MoveType, Quorum};
use super::effect::NoticeKind;
use super::ids::{PlayerId, ProposalId};
use super::limits::{DECIDED_MAX, REASON_CHARS_MAX};
use super::notify::Work;
use super::op::{Propose, Validate};
use super::refusal::{Code, Refusal};
use super::rules::{Attempt, Made, Next, Outcome, Rules, Secrets};
use super::{Check, Checks, Decided, GameResult, Phase, Proposal, TurnRoom, Written, json};
use serde_json::{Value, json as object};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The type of move that resigns.
pub(super) const RESIGN: &str = "resign";
/// The field of the state that ends the game; winner and reason are beside it.
const IS_GAME_OVER: &str = "isGameOver";
pub(super) const WINNER: &str = "winner";
pub(super) const END_REASON: &str = "endReason";

/// An accepted move.
pub(super) struct Standing {
    id: ProposalId,
    player: PlayerId,
    kind: String,
    data: Value,
    checks: Checks,
}

impl Standing {
    /// An accepted move that neither rules nor peers judge.
    pub(super) fn unjudged(id: ProposalId, by: &PlayerId, kind: String, data: Value) -> Standing {
        let checks =
            Checks { server: Check::Valid, rules: Check::NotApplicable, peers: Check::NotApplicable };
        Standing { id, player: by.clone(), kind, data, checks }
    }
}

/// The combined vote of the peers.
enum Word {
    Waiting,
    Yes,
    No,
}

impl TurnRoom {
    pub(super) fn propose(
        &mut self,
        by: &PlayerId,
        propose: Propose,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        let rules = self.rules(work.with.rules)?;
        let checks = self.unjudged(rules.is_some());
        self.check_move(by, &propose, rules.is_some()).map_err(|refusal| refusal.by_server(checks))?;
        let resigns = propose.kind == RESIGN && self.phase == Phase::Playing;
        match rules {
            _ if resigns => {
                self.resign_by_move(by, propose, work).map_err(|refusal| refusal.by_server(checks))?;
            }
            Some(rules) => self.play_by_rules(by, propose, rules, work)?,
            None => self.play_by_trust(by, propose, work).map_err(|refusal| refusal.by_server(checks))?,
        }
        Ok(true)
    }

    /// Returns the checks of a move before the first of them.
    fn unjudged(&self, has_rules: bool) -> Checks {
        let check = |is_made| if is_made { Check::Pending } else { Check::NotApplicable };
        let peers = check(self.config.quorum != Quorum::None);
        Checks { server: Check::Pending, rules: check(has_rules), peers }
    }

    /// The server's own check of a move.
    fn check_move(&self, by: &PlayerId, propose: &Propose, has_rules: bool) -> Result<(), Refusal> {
        json::check_word("type", &propose.kind)?;
        self.check_phase(by, propose, has_rules)?;
        self.check_type(propose)?;
        self.check_sizes(propose)?;
        if has_rules && propose.state.is_some() {
            let sentence = "the rules make the state from the move: leave it out";
            return Err(Refusal::at(Code::RulesDecide, "state", sentence));
        }
        match propose.state_version.filter(|version| *version != self.state_version) {
            None => Ok(()),
            Some(made_for) => {
                let sentence = format!(
                    "the move was made for state {made_for}, the room has state {}: read it and decide again",
                    self.state_version
                );
                Err(Refusal::at(Code::StaleState, "state_version", sentence))
            }
        }
    }

    fn check_phase(&self, by: &PlayerId, propose: &Propose, has_rules: bool) -> Result<(), Refusal> {
        if self.phase != Phase::Playing {
            let lists = self.types_of_phase().is_some_and(|types| types.contains_key(&propose.kind));
            if lists && !has_rules {
                return self.check_running();
            }
            let sentence = match self.phase {
                Phase::Waiting => "the game has not begun: wait for its start",
                Phase::Playing | Phase::Ended => "the game is over: create or join another room",
            };
            return Err(Refusal::new(Code::WrongPhase, sentence));
        }
        if !self.is_in_game(by) {
            return Err(Refusal::new(Code::OutOfGame, "you are out of this game and can only watch it"));
        }
        // Resigning is allowed out of turn and in a pause, where moves can resign.
        let resigns = propose.kind == RESIGN;
        if !resigns {
            self.check_running()?;
        }
        let current = self.turn.current.as_ref();
        if self.config.is_turn_based() && !resigns && current != Some(by) {
            let whose = current.map_or("nobody's", PlayerId::as_str);
            return Err(Refusal::new(
                Code::NotYourTurn,
                format!("it is the turn of {whose}: wait for yours"),
            ));
        }
        Ok(())
    }

    fn types_of_phase(&self) -> Option<&BTreeMap<String, MoveType>> {
        let moves = &self.config.moves;
        match self.phase {
            Phase::Waiting => moves.waiting.as_ref(),
            Phase::Playing => moves.playing.as_ref(),
            Phase::Ended => moves.ended.as_ref(),
        }
    }

    fn check_type(&self, propose: &Propose) -> Result<(), Refusal> {
        let Some(types) = self.types_of_phase() else { return Ok(()) };
        let Some(needs) = types.get(&propose.kind) else {
            let names: Vec<&str> = types.keys().map(String::as_str).collect();
            let sentence = format!("the moves here are {}: use one of them", names.join(", "));
            return Err(Refusal::at(Code::MoveNotAllowed, "type", sentence));
        };
        let is_missing = |field: &&String| propose.data.get(field.as_str()).is_none_or(Value::is_null);
        match needs.required_fields.iter().find(is_missing) {
            None => Ok(()),
            Some(field) => {
                let sentence = format!("the move {} needs it, not null: add it", propose.kind);
                Err(Refusal::at(Code::MissingField, format!("data.{field}"), sentence))
            }
        }
    }

    fn check_sizes(&self, propose: &Propose) -> Result<(), Refusal> {
        let most = self.config.limits.move_bytes;
        json::check_depth("data", &propose.data)?;
        json::check_size("data", &propose.data, most)?;
        let Some(patch) = &propose.state else { return Ok(()) };
        json::check_depth("state", patch)?;
        json::check_object("state", patch)?;
        json::check_size("state", patch, most.saturating_sub(json::size(&propose.data)))
    }

    fn play_by_rules(
        &mut self,
        by: &PlayerId,
        propose: Propose,
        rules: &dyn Rules,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let checks = self.unjudged(true);
        let outcome = rules.check(&Attempt {
            state: &self.state,
            players: &self.turn.order,
            player: by,
            kind: &propose.kind,
            data: &propose.data,
            seed: work.with.seed,
        });
        let outcome = outcome.map_err(|refusal| refusal.by_rules(checks))?;
        self.check_outcome(&outcome)?;
        self.state = outcome.state;
        let id = self.next_proposal();
        let checks = Checks { server: Check::Valid, rules: Check::Valid, peers: Check::NotApplicable };
        let made = Standing { id, player: by.clone(), kind: propose.kind, data: propose.data, checks };
        self.stands(made, work);
        match outcome.next {
            Next::Turn(next) => self.pass_turn(next, by, work),
            Next::Over { winner, reason } => {
                let finisher = Some(by.clone());
                self.over(GameResult { winner, reason, finisher, ended: work.with.now }, work);
            }
        }
        Ok(())
    }

    /// Checks whether a rule set's outcome is valid.
    pub(super) fn check_outcome(&self, outcome: &Outcome) -> Result<(), Refusal> {
        self.check_rules_state(&outcome.state)?;
        match &outcome.next {
            Next::Turn(next) => self.check_rules_player(next),
            Next::Over { winner: Some(winner), .. } => self.check_rules_player(winner),
            Next::Over { winner: None, .. } => Ok(()),
        }
    }

    fn play_by_trust(&mut self, by: &PlayerId, propose: Propose, work: &mut Work<'_>) -> Result<(), Refusal> {
        let peers: Vec<PlayerId> = self.turn.order.iter().filter(|peer| *peer != by).cloned().collect();
        let must_wait =
            self.phase == Phase::Playing && self.config.quorum != Quorum::None && !peers.is_empty();
        // A player's move builds on the waiting moves that the player sees.
        let seen = if must_wait { self.optimistic_state() } else { self.state.clone() };
        let state = propose.state.as_ref().map(|patch| self.merged(seen, patch)).transpose()?;
        if let (Some(patch), Some(state)) = (&propose.state, &state) {
            self.claimed_end(patch, state)?;
        }
        if must_wait {
            return self.wait_for_peers(by, propose, peers, work);
        }
        let made = Standing::unjudged(self.next_proposal(), by, propose.kind, propose.data);
        self.adopt(made, propose.state.zip(state), work);
        Ok(())
    }

    /// Returns a state with a patch merged into it.
    pub(super) fn merged(&self, mut state: Value, patch: &Value) -> Result<Value, Refusal> {
        json::merge(&mut state, patch);
        json::check_size("state", &state, self.config.limits.state_bytes)?;
        Ok(state)
    }

    /// Returns the winner and reason if this patch ends the game. Only the patch itself counts: a flag left
    /// in the state by a move before the game does not.
    pub(super) fn claimed_end(
        &self,
        patch: &Value,
        state: &Value,
    ) -> Result<Option<(Option<PlayerId>, String)>, Refusal> {
        if self.phase != Phase::Playing || patch.get(IS_GAME_OVER) != Some(&Value::Bool(true)) {
            return Ok(None);
        }
        let winner = match state.get(WINNER) {
            None | Some(Value::Null) => None,
            Some(named) => {
                let id = named.as_str().and_then(|text| PlayerId::new(text).ok());
                Some(id.filter(|id| self.is_in_game(id)).ok_or_else(|| {
                    let sentence = "must be the id of a player in this game, or null for a draw";
                    Refusal::at(Code::NoSuchPlayer, format!("state.{WINNER}"), sentence)
                })?)
            }
        };
        let reason = match state.get(END_REASON) {
            None | Some(Value::Null) => "completed".to_owned(),
            Some(reason) => {
                let path = format!("state.{END_REASON}");
                let text =
                    reason.as_str().ok_or_else(|| Refusal::at(Code::BadInput, &path, "must be a text"))?;
                json::check_text(&path, text, REASON_CHARS_MAX)?;
                text.to_owned()
            }
        };
        Ok(Some((winner, reason)))
    }

    fn wait_for_peers(
        &mut self,
        by: &PlayerId,
        propose: Propose,
        peers: Vec<PlayerId>,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        if self.config.is_turn_based() && !self.open.is_empty() {
            let sentence = "your last move waits for the word of the others: wait for it, too";
            return Err(Refusal::new(Code::ProposalOpen, sentence));
        }
        if self.open.len() >= usize::from(self.config.limits.proposals) {
            let sentence = format!("{} moves wait for the word of the others: wait, too", self.open.len());
            return Err(Refusal::new(Code::TooManyProposals, sentence));
        }
        let id = self.next_proposal();
        let deadline = work.with.now.after_ms(self.config.validation_timeout_ms);
        let body = object!({
            "proposal": id,
            "player": by,
            "type": propose.kind,
            "data": propose.data,
            "state": propose.state,
            "deadline": deadline,
        });
        self.open.push(Proposal {
            id,
            player: by.clone(),
            kind: propose.kind,
            data: propose.data,
            patch: propose.state,
            made_for: propose.state_version,
            proposed: work.with.now,
            deadline,
            votes: peers.into_iter().map(|peer| (peer, None)).collect(),
        });
        // The player has moved, so the turn's timer is paused.
        if let Some(deadline) = self.turn.deadline.take() {
            self.turn.left_ms = Some(deadline.since(work.with.now));
        }
        self.tell_all(NoticeKind::MoveProposed, body, work);
        Ok(())
    }

    pub(super) fn validate(
        &mut self,
        by: &PlayerId,
        validate: Validate,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        self.check_running()?;
        if let Some(reason) = &validate.reason {
            json::check_text("reason", reason, REASON_CHARS_MAX)?;
        }
        let Some(proposal) = self.open.iter_mut().find(|proposal| proposal.id == validate.proposal) else {
            let sentence = "no open move has this number: it was decided, or never made";
            return Err(Refusal::at(Code::NoSuchProposal, "proposal", sentence));
        };
        match proposal.votes.get_mut(by) {
            Some(vote @ None) => *vote = Some(validate.accept),
            Some(Some(_)) => {
                let sentence = "you have given your word on this move: it counts once";
                return Err(Refusal::at(Code::NotYourVote, "proposal", sentence));
            }
            None => {
                let sentence = "players judge each other's moves, those who were in the game at that time";
                return Err(Refusal::at(Code::NotYourVote, "proposal", sentence));
            }
        }
        self.settle_with(validate.reason.as_deref(), work);
        Ok(true)
    }

    /// Decides all moves that can be decided, oldest first.
    pub(super) fn settle(&mut self, work: &mut Work<'_>) {
        self.settle_with(None, work);
    }

    fn settle_with(&mut self, reason: Option<&str>, work: &mut Work<'_>) {
        let quorum = self.config.quorum;
        // Each round removes one proposal, and none is added here.
        while let Some((index, says_yes)) =
            self.open.iter().enumerate().find_map(|(index, proposal)| match proposal.word(quorum) {
                Word::Waiting => None,
                Word::Yes => Some((index, true)),
                Word::No => Some((index, false)),
            })
        {
            let proposal = self.open.remove(index);
            if says_yes {
                self.confirm(proposal, work);
            } else {
                self.reject(proposal, Check::Disputed, reason.unwrap_or("the others say no"), work);
            }
        }
    }

    /// Accepts a move by vote, if it is still possible: the state may have changed since.
    fn confirm(&mut self, proposal: Proposal, work: &mut Work<'_>) {
        let mut patched = None;
        if let Some(patch) = &proposal.patch {
            let state = self.merged(self.state.clone(), patch);
            match state.and_then(|state| self.claimed_end(patch, &state).map(|_| state)) {
                Ok(state) => patched = Some((patch.clone(), state)),
                Err(fault) => return self.reject(proposal, Check::Superseded, &fault.sentence, work),
            }
        }
        let Proposal { id, player, kind, data, .. } = proposal;
        let checks = Checks { peers: Check::Valid, ..Checks::PENDING };
        self.adopt(Standing { id, player, kind, data, checks }, patched, work);
    }

    /// Makes a move final: merges its patch, if any, into the state.
    fn adopt(&mut self, made: Standing, patched: Option<(Value, Value)>, work: &mut Work<'_>) {
        let by = made.player.clone();
        let mut end = None;
        if let Some((patch, state)) = patched {
            end = self.claimed_end(&patch, &state).ok().flatten();
            self.state = state;
        }
        self.stands(made, work);
        if self.phase != Phase::Playing {
            return;
        }
        if let Some((winner, reason)) = end {
            let finisher = Some(by);
            return self.over(GameResult { winner, reason, finisher, ended: work.with.now }, work);
        }
        self.supersede_older(work);
        if self.config.is_turn_based()
            && let Some(next) = self.after(&by)
        {
            self.pass_turn(next, &by, work);
        }
    }

    pub(super) fn stands(&mut self, made: Standing, work: &mut Work<'_>) {
        let Standing { id, player, kind, data, checks } = made;
        self.state_version = self.state_version.saturating_add(1);
        self.turn.skipped = 0;
        let secrets = self.rules(work.with.rules).ok().flatten().and_then(|rules| rules.secrets());
        let made = Made { state: &self.state, player: &player, kind: &kind, data: &data };
        let watching = self.config.spectators.then_some(None);
        let readers = self.players.iter().map(|player| Some(&player.id)).chain(watching);
        for (to, is_public, data) in told(readers, &made, secrets) {
            let body = object!({
                "proposal": id,
                "player": player,
                "type": kind,
                "data": data,
                "state_version": self.state_version,
            });
            self.tell(to, is_public, NoticeKind::MoveMade, body, work);
        }
        self.remember(Decided { id, player, kind, checks, why: None });
    }

    /// Rejects a waiting move. The turn continues with the time that was left.
    fn reject(&mut self, proposal: Proposal, peers: Check, why: &str, work: &mut Work<'_>) {
        if self.phase == Phase::Playing
            && let Some(left) = self.turn.left_ms.take()
        {
            self.turn.deadline = Some(self.clock(work.with.now).after_ms(left));
        }
        let Proposal { id, player, kind, .. } = proposal;
        let why: String = why.chars().take(REASON_CHARS_MAX).collect();
        let checks = Checks { peers, ..Checks::PENDING };
        let body = object!({
            "proposal": id,
            "player": player,
            "type": kind,
            "checks": checks,
            "reason": why,
            "state_version": self.state_version,
        });
        self.tell_all(NoticeKind::MoveRejected, body, work);
        self.remember(Decided { id, player, kind, checks, why: Some(why) });
    }

    fn remember(&mut self, decided: Decided) {
        self.decided.push(Written::new(decided));
        let old = self.decided.len().saturating_sub(DECIDED_MAX);
        self.decided.drain(..old);
    }

    /// Supersedes moves made for an older state.
    fn supersede_older(&mut self, work: &mut Work<'_>) {
        let version = self.state_version;
        let is_stale = |proposal: &Proposal| proposal.made_for.is_some_and(|made_for| made_for != version);
        self.supersede(is_stale, "another move came first", work);
    }

    pub(super) fn supersede_open(&mut self, why: &str, work: &mut Work<'_>) {
        self.supersede(|_| true, why, work);
    }

    fn supersede(&mut self, which: impl Fn(&Proposal) -> bool, why: &str, work: &mut Work<'_>) {
        let (gone, stay) = std::mem::take(&mut self.open).into_iter().partition(|proposal| which(proposal));
        self.open = stay;
        let gone: Vec<Proposal> = gone;
        for proposal in gone {
            self.reject(proposal, Check::Superseded, why, work);
        }
    }

    /// Removes the proposals and votes of a player who is out of the game.
    pub(super) fn forget_votes(&mut self, id: &PlayerId, work: &mut Work<'_>) {
        self.supersede(|proposal| proposal.player == *id, "its player is out of the game", work);
        for proposal in &mut self.open {
            proposal.votes.remove(id);
        }
    }

    /// Counts peers that missed the vote's deadline as accepting. Returns whether there were any.
    pub(super) fn accept_silence(&mut self, work: &mut Work<'_>) -> bool {
        let now = work.with.now;
        let mut any = false;
        for proposal in self.open.iter_mut().filter(|proposal| proposal.deadline <= now) {
            any = true;
            for vote in proposal.votes.values_mut() {
                vote.get_or_insert(true);
            }
        }
        if any {
            self.settle(work);
        }
        any
    }

    pub(super) fn next_proposal(&mut self) -> ProposalId {
        self.proposals_given = self.proposals_given.saturating_add(1);
        ProposalId(self.proposals_given)
    }
}

/// Groups the readers of a move by what each may see of it. `None` stands for those who watch.
fn told<'a>(
    readers: impl Iterator<Item = Option<&'a PlayerId>>,
    made: &Made<'_>,
    secrets: Option<&dyn Secrets>,
) -> Vec<(Vec<PlayerId>, bool, Value)> {
    let mut groups: Vec<(Vec<PlayerId>, bool, Value)> = Vec::new();
    for reader in readers {
        let data = secrets.map_or(Cow::Borrowed(made.data), |secrets| secrets.told(made, reader));
        match groups.iter_mut().find(|(.., same)| *same == *data) {
            Some((to, is_public, _)) => {
                to.extend(reader.cloned());
                *is_public |= reader.is_none();
            }
            None => groups.push((reader.cloned().into_iter().collect(), reader.is_none(), data.into_owned())),
        }
    }
    groups
}

impl Proposal {
    fn word(&self, quorum: Quorum) -> Word {
        let all = self.votes.len();
        let yes = self.votes.values().filter(|vote| **vote == Some(true)).count();
        let no = self.votes.values().filter(|vote| **vote == Some(false)).count();
        let needed = match quorum {
            Quorum::None => 0,
            Quorum::All => all,
            Quorum::Majority if all == 0 => 0,
            Quorum::Majority => all / 2 + 1,
        };
        if yes >= needed {
            Word::Yes
        } else if all - no < needed {
            Word::No
        } else {
            Word::Waiting
        }
    }
}
