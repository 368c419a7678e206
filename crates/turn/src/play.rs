//! The course of a game: start, turns, eliminations and end.

use super::config::{OnTimeout, RoleAssignment};
use super::effect::{Effect, NoticeKind};
use super::ids::{PlayerId, UnixMillis};
use super::limits::{AWARDS_MAX, REASON_CHARS_MAX, SKIPPED_ROUNDS_MAX};
use super::notify::Work;
use super::op::{End, Start};
use super::refusal::{Code, Refusal};
use super::rules::{Ended, Next, RuleSets, Rules};
use super::seats::{ABANDONED, no_such_player};
use super::{GameResult, Phase, Status, Turn, TurnRoom, json};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};

impl GameResult {
    pub(super) fn without_winner(reason: &str, finisher: Option<&PlayerId>, ended: UnixMillis) -> GameResult {
        GameResult { winner: None, reason: reason.to_owned(), finisher: finisher.cloned(), ended }
    }
}

impl TurnRoom {
    pub(super) fn start(
        &mut self,
        by: &PlayerId,
        start: Start,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        self.check_host(Some(by), "start the game")?;
        self.check_running()?;
        if self.phase != Phase::Waiting {
            return Err(Refusal::new(Code::WrongPhase, "the game has begun already: it begins once"));
        }
        if !self.has_enough_players() {
            let (is, min) = (self.players.len(), self.config.players_min());
            let sentence = format!("the game needs {min} players and has {is}: wait for more");
            return Err(Refusal::new(Code::TooFewPlayers, sentence));
        }
        if let Some(order) = &start.turn_order {
            self.check_order(order)?;
        }
        if let Some(roles) = &start.roles {
            self.check_roles(roles)?;
        }
        self.begin(start.turn_order, start.roles, work)?;
        Ok(true)
    }

    fn check_order(&self, order: &[PlayerId]) -> Result<(), Refusal> {
        let named: BTreeSet<&PlayerId> = order.iter().collect();
        let here: BTreeSet<&PlayerId> = self.players.iter().map(|player| &player.id).collect();
        if named.len() == order.len() && named == here {
            return Ok(());
        }
        let sentence = "must name all players of the room, each once: leave it out to have it drawn";
        Err(Refusal::at(Code::BadTurnOrder, "turn_order", sentence))
    }

    fn check_roles(&self, roles: &BTreeMap<PlayerId, String>) -> Result<(), Refusal> {
        if self.config.role_assignment != RoleAssignment::Assigned {
            let sentence = "the configuration does not have roles assigned by the host: leave it out";
            return Err(Refusal::at(Code::BadInput, "roles", sentence));
        }
        let mut given = BTreeSet::new();
        for (player, role) in roles {
            let path = format!("roles.{player}");
            if self.player(player).is_none() {
                return Err(no_such_player(&path, player));
            }
            if !self.config.roles.contains(role) {
                let sentence = format!("there are the roles {}: name one", self.config.roles.join(", "));
                return Err(Refusal::at(Code::BadInput, path, sentence));
            }
            if !given.insert(role) {
                return Err(Refusal::at(Code::BadInput, path, "another player has this role: name another"));
            }
        }
        Ok(())
    }

    pub(super) fn begin(
        &mut self,
        order: Option<Vec<PlayerId>>,
        roles: Option<BTreeMap<PlayerId, String>>,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let mut rng = ChaCha12Rng::from_seed(work.with.seed);
        let order = order.unwrap_or_else(|| {
            let mut order = self.joined_order();
            shuffle(&mut order, &mut rng);
            order
        });
        let mut seed = [0; 32];
        let by_role = self.roles_of(&order, roles, &mut rng, work.with.rules)?;
        rng.fill_bytes(&mut seed);
        for player in &mut self.players {
            player.role = by_role.get(&player.id).cloned();
        }
        self.phase = Phase::Playing;
        order.iter().for_each(|player| self.has_played(player));
        self.turn = Turn { most_players: order.len(), order: order.clone(), ..Turn::default() };
        let mut first = self.config.is_turn_based().then(|| order.first().cloned()).flatten();
        if let Some(rules) = self.rules(work.with.rules)? {
            let opening = rules.open(&order, seed)?;
            self.check_rules_state(&opening.state)?;
            self.check_rules_player(&opening.first)?;
            self.state = opening.state;
            self.state_version = self.state_version.saturating_add(1);
            first = Some(opening.first);
        }
        let body = object!({ "turn_order": order, "roles": by_role, "state_version": self.state_version });
        self.tell_all(NoticeKind::GameStarted, body, work);
        if let Some(first) = first {
            self.begin_turn(first, None, work);
        }
        Ok(())
    }

    fn joined_order(&self) -> Vec<PlayerId> {
        self.players.iter().map(|player| player.id.clone()).collect()
    }

    /// Assigns roles. Players beyond the number of roles get none.
    fn roles_of(
        &self,
        order: &[PlayerId],
        given: Option<BTreeMap<PlayerId, String>>,
        rng: &mut ChaCha12Rng,
        rules: &RuleSets,
    ) -> Result<BTreeMap<PlayerId, String>, Refusal> {
        if let Some(rules) = self.rules(rules)? {
            let roles = rules.roles().iter().map(|role| (*role).to_owned());
            return Ok(order.iter().cloned().zip(roles).collect());
        }
        let mut by_role = given.unwrap_or_default();
        let mut players = self.joined_order();
        if self.config.role_assignment == RoleAssignment::Random {
            shuffle(&mut players, rng);
        }
        players.retain(|player| !by_role.contains_key(player));
        let taken: BTreeSet<String> = by_role.values().cloned().collect();
        let free = self.config.roles.iter().filter(|role| !taken.contains(*role)).cloned();
        by_role.extend(players.into_iter().zip(free));
        Ok(by_role)
    }

    /// Adds a late player to the game, last in turn order.
    pub(super) fn take_in(&mut self, id: PlayerId) {
        self.has_played(&id);
        self.turn.order.push(id);
        self.turn.most_players = self.turn.most_players.max(self.turn.order.len());
    }

    pub(super) fn begin_turn(&mut self, next: PlayerId, before: Option<&PlayerId>, work: &mut Work<'_>) {
        let now = self.clock(work.with.now);
        self.turn.deadline = self.config.turn_timeout_ms.map(|ms| now.after_ms(ms));
        self.turn.left_ms = None;
        self.turn.current = Some(next.clone());
        let body = object!({
            "player": next,
            "turn": self.turn.count.saturating_add(1),
            "state_version": self.state_version,
            "deadline": self.shown_deadline(),
        });
        self.tell_all(NoticeKind::TurnStarted, body.clone(), work);
        self.tell(vec![next.clone()], false, NoticeKind::YourTurn, body, work);
        // The first turn follows none, so it calls nobody.
        if let Some(before) = before {
            self.call_to_turn(&next, before, work);
        }
    }

    /// Ends a turn and begins the next.
    pub(super) fn pass_turn(&mut self, next: PlayerId, before: &PlayerId, work: &mut Work<'_>) {
        self.turn.count = self.turn.count.saturating_add(1);
        self.begin_turn(next, Some(before), work);
    }

    /// Returns the next player in turn order.
    pub(super) fn after(&self, player: &PlayerId) -> Option<PlayerId> {
        let order = &self.turn.order;
        let seat = order.iter().position(|other| other == player)?;
        order.get(seat + 1).or(order.first()).cloned()
    }

    /// Removes a player from the game and continues it, or ends it for lack of players. Does nothing if the
    /// player is not in it.
    pub(super) fn take_out(&mut self, id: &PlayerId, reason: &str, work: &mut Work<'_>) {
        let Some(seat) = self.turn.order.iter().position(|other| other == id) else { return };
        if self.phase != Phase::Playing {
            return;
        }
        self.turn.order.remove(seat);
        self.forget_votes(id, work);
        let was_current = self.turn.current.as_ref() == Some(id);
        let gave_up = self.player(id).is_some_and(|player| player.status == Status::Resigned);
        let last_wins = self.turn.most_players > 1 && (self.config.is_turn_based() || gave_up);
        let timed_out = self.player(id).is_some_and(|player| player.status == Status::TimedOut);
        let finisher = (!timed_out).then_some(id);
        match self.turn.order.as_slice() {
            [] => self.over(GameResult::without_winner(ABANDONED, finisher, work.with.now), work),
            [last] if last_wins => {
                let mut result = GameResult::without_winner(reason, finisher, work.with.now);
                result.winner = Some(last.clone());
                self.over(result, work);
            }
            _ if self.config.rules.is_some() => self.go_on_by_rules(id, reason, work),
            order if was_current => {
                let next = order[seat % order.len()].clone();
                self.pass_turn(next, id, work);
                self.settle(work);
            }
            _ => self.settle(work),
        }
    }

    /// Lets the rules continue the game. Ends it if the rule set is missing or returns no valid outcome.
    fn go_on_by_rules(&mut self, gone: &PlayerId, reason: &str, work: &mut Work<'_>) {
        let rules = self.rules(work.with.rules).ok().flatten();
        let outcome = rules.and_then(|rules| rules.without(&self.state, gone, &self.turn.order));
        let sound = outcome.filter(|outcome| self.check_outcome(outcome).is_ok());
        let Some(outcome) = sound else {
            let finisher = self.player(gone).is_none_or(|player| player.status != Status::TimedOut);
            let finisher = finisher.then_some(gone);
            return self.over(GameResult::without_winner(reason, finisher, work.with.now), work);
        };
        self.state = outcome.state;
        self.state_version = self.state_version.saturating_add(1);
        match outcome.next {
            Next::Turn(next) if self.turn.current.as_ref() == Some(&next) => {}
            Next::Turn(next) => self.pass_turn(next, gone, work),
            Next::Over { winner, reason } => {
                let finisher = Some(gone.clone());
                self.over(GameResult { winner, reason, finisher, ended: work.with.now }, work);
            }
        }
    }

    pub(super) fn end(
        &mut self,
        by: Option<&PlayerId>,
        end: End,
        work: &mut Work<'_>,
    ) -> Result<bool, Refusal> {
        self.check_host(by, "end the game")?;
        let by_server = by.is_none();
        if self.phase == Phase::Ended || (self.phase == Phase::Waiting && !by_server) {
            return Err(Refusal::new(Code::WrongPhase, "no game goes on that could be ended: leave instead"));
        }
        if self.config.rules.is_some() && !by_server {
            return Err(Refusal::new(
                Code::RulesDecide,
                "the rules say when this game is over: resign or leave",
            ));
        }
        if let Some(reason) = &end.reason {
            json::check_text("reason", reason, REASON_CHARS_MAX)?;
        }
        if let Some(winner) = end.winner.as_ref().filter(|winner| !self.is_in_game(winner)) {
            return Err(no_such_player("winner", winner));
        }
        let reason = end.reason.unwrap_or_else(|| "ended".to_owned());
        let result = GameResult { winner: end.winner, reason, finisher: by.cloned(), ended: work.with.now };
        self.over(result, work);
        Ok(true)
    }

    /// Ends the game and discards waiting moves.
    pub(super) fn over(&mut self, result: GameResult, work: &mut Work<'_>) {
        self.phase = Phase::Ended;
        self.paused = None;
        self.turn.current = None;
        self.turn.deadline = None;
        self.turn.left_ms = None;
        self.supersede_open("the game is over", work);
        self.result = Some(result.clone());
        let body = object!({
            "winner": result.winner,
            "reason": result.reason,
            "finisher": result.finisher,
            "state_version": self.state_version,
        });
        self.tell_all(NoticeKind::GameOver, body, work);
        self.call_to_end(&result, work);
        self.award(&result, work);
    }

    /// Gives the players what the rules award them.
    fn award(&self, result: &GameResult, work: &mut Work<'_>) {
        let Some(rules) = self.rules(work.with.rules).ok().flatten() else { return };
        let players: Vec<PlayerId> = self.players.iter().map(|player| player.id.clone()).collect();
        let (winner, reason) = (result.winner.as_ref(), result.reason.as_str());
        let awards = rules.awards(&Ended { state: &self.state, players: &players, winner, reason });
        let to_players = awards.into_iter().filter(|award| players.contains(&award.player));
        work.effects.extend(to_players.take(AWARDS_MAX).map(Effect::Award));
    }

    /// Runs due timers. Returns whether any was due.
    pub(super) fn expire(&mut self, work: &mut Work<'_>) -> bool {
        if self.paused.is_some() {
            return false;
        }
        let silent = self.accept_silence(work);
        let now = work.with.now;
        let is_late = self.turn.deadline.is_some_and(|deadline| deadline <= now);
        let late = self.turn.current.clone().filter(|_| is_late && self.phase == Phase::Playing);
        if let Some(late) = &late {
            match self.config.on_timeout {
                OnTimeout::Forfeit => self.forfeit(late, Status::TimedOut, "timeout", work),
                OnTimeout::Skip => self.skip(late, work),
            }
        }
        silent || late.is_some()
    }

    fn skip(&mut self, late: &PlayerId, work: &mut Work<'_>) {
        self.turn.skipped = self.turn.skipped.saturating_add(1);
        let players = u32::try_from(self.turn.order.len()).unwrap_or(u32::MAX);
        // Otherwise an abandoned room would count turns for ever.
        if self.turn.skipped >= players.saturating_mul(SKIPPED_ROUNDS_MAX) {
            return self.over(GameResult::without_winner(ABANDONED, None, work.with.now), work);
        }
        let turn = self.turn.count.saturating_add(1);
        self.tell_all(NoticeKind::TurnSkipped, object!({ "player": late, "turn": turn }), work);
        if let Some(next) = self.after(late) {
            self.pass_turn(next, late, work);
        }
    }

    /// Returns the room's rule set, if it has one.
    pub(super) fn rules<'a>(&self, rules: &'a RuleSets) -> Result<Option<&'a dyn Rules>, Refusal> {
        let Some(name) = &self.config.rules else { return Ok(None) };
        let found = rules.get(name).ok_or_else(|| {
            let sentence = format!(
                "this server has no rule set {name:?}, which this room needs: tell who runs the server"
            );
            Refusal::new(Code::UnknownRules, sentence)
        })?;
        Ok(Some(found))
    }

    pub(super) fn check_rules_state(&self, state: &Value) -> Result<(), Refusal> {
        let most = self.config.limits.state_bytes;
        json::check_depth("state", state).and_then(|()| json::check_size("state", state, most)).map_err(
            |fault| {
                let sentence = format!("the rules made a state that does not fit: {}", fault.sentence);
                Refusal::new(Code::RulesFault, sentence)
            },
        )
    }

    pub(super) fn check_rules_player(&self, player: &PlayerId) -> Result<(), Refusal> {
        if self.turn.order.contains(player) {
            return Ok(());
        }
        let sentence = format!("the rules named {player}, who is not in this game: tell who runs the server");
        Err(Refusal::new(Code::RulesFault, sentence))
    }
}

/// The Fisher–Yates shuffle.
fn shuffle(players: &mut [PlayerId], rng: &mut ChaCha12Rng) {
    for last in (1..players.len()).rev() {
        players.swap(last, below(rng, last + 1));
    }
}

/// Returns a number below `bound`. With 64 bits for at most 64 players the modulo bias is negligible.
fn below(rng: &mut ChaCha12Rng, bound: usize) -> usize {
    usize::try_from(rng.next_u64() % bound as u64).unwrap_or(0)
}
