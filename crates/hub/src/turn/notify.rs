//! Telling: notices, and texts from templates.

use super::config::Template;
use super::effect::{Effect, Notice, NoticeKind, Push, PushOn};
use super::ids::PlayerId;
use super::limits::TEMPLATE_CHARS_MAX;
use super::op::{Actor, Context};
use super::{GameResult, TurnRoom};
use serde_json::Value;
use std::collections::BTreeMap;

/// One operation while it is done: what it is done with, and what has come of it.
pub(super) struct Work<'a> {
    pub(super) with: &'a Context<'a>,
    pub(super) effects: Vec<Effect>,
    /// Who asked for it, and so is not called because of it.
    by: Option<PlayerId>,
    /// The names of who got up in this operation: texts still name them.
    pub(super) gone: BTreeMap<PlayerId, String>,
}

impl<'a> Work<'a> {
    pub(super) fn new(with: &'a Context<'a>, actor: &Actor) -> Work<'a> {
        let by = match actor {
            Actor::Player(player) => Some(player.clone()),
            Actor::Server => None,
        };
        Work { with, effects: Vec::new(), by, gone: BTreeMap::new() }
    }
}

/// What a template may name, and what stands for it.
type Variables<'a> = [(&'static str, &'a str)];

/// The names that each template knows.
pub(super) const TURN_START_VARIABLES: [&str; 6] =
    ["currentPlayerName", "previousPlayerName", "roomName", "turnNumber", "gameType", "roomId"];
pub(super) const GAME_END_VARIABLES: [&str; 6] =
    ["winnerName", "finisherName", "endReason", "roomName", "gameType", "roomId"];

impl TurnRoom {
    /// Tells all who sit there.
    pub(super) fn tell_all(&mut self, kind: NoticeKind, body: Value, work: &mut Work<'_>) {
        let to = self.players.iter().map(|player| player.id.clone()).collect();
        self.tell(to, kind, body, work);
    }

    /// Tells some. Nobody is not told anything.
    pub(super) fn tell(&mut self, to: Vec<PlayerId>, kind: NoticeKind, body: Value, work: &mut Work<'_>) {
        if to.is_empty() {
            return;
        }
        let seq = self.next_seq();
        work.effects.push(Effect::Notice(Notice { seq, to, kind, body }));
    }

    fn next_seq(&mut self) -> u64 {
        self.notices_given = self.notices_given.saturating_add(1);
        self.notices_given
    }

    /// Calls the player whose turn has begun, unless the operation is its own or the turn before was.
    pub(super) fn call_to_turn(&mut self, next: &PlayerId, before: Option<&PlayerId>, work: &mut Work<'_>) {
        let Some(template) = self.config.notifications.on_turn_start.clone() else { return };
        if before == Some(next) || work.by.as_ref() == Some(next) {
            return;
        }
        let previous = before.map(|player| self.name_of(player, work)).unwrap_or_default();
        let number = self.turn.count.saturating_add(1).to_string();
        let variables = [
            ("currentPlayerName", self.name_of(next, work)),
            ("previousPlayerName", previous),
            ("roomName", self.name.clone()),
            ("turnNumber", number),
            ("gameType", self.config.game().to_owned()),
            ("roomId", self.id.as_str().to_owned()),
        ];
        self.push(vec![next.clone()], PushOn::TurnStart, &template, &borrowed(&variables), work);
    }

    /// Calls all to the game's end but the one who ended it.
    pub(super) fn call_to_end(&mut self, result: &GameResult, work: &mut Work<'_>) {
        let Some(template) = self.config.notifications.on_game_end.clone() else { return };
        let name = |player: &Option<PlayerId>| {
            player.as_ref().map(|player| self.name_of(player, work)).unwrap_or_default()
        };
        let variables = [
            ("winnerName", name(&result.winner)),
            ("finisherName", name(&result.finisher)),
            ("endReason", result.reason.clone()),
            ("roomName", self.name.clone()),
            ("gameType", self.config.game().to_owned()),
            ("roomId", self.id.as_str().to_owned()),
        ];
        let ids = self.players.iter().map(|player| &player.id);
        let to = ids.filter(|id| Some(*id) != result.finisher.as_ref()).cloned().collect();
        self.push(to, PushOn::GameEnd, &template, &borrowed(&variables), work);
    }

    fn push(
        &mut self,
        to: Vec<PlayerId>,
        on: PushOn,
        template: &Template,
        variables: &Variables<'_>,
        work: &mut Work<'_>,
    ) {
        if to.is_empty() {
            return;
        }
        let seq = self.next_seq();
        let (title, body) = (filled(&template.title, variables), filled(&template.body, variables));
        work.effects.push(Effect::Push(Push { seq, to, on, title, body }));
    }

    fn name_of(&self, player: &PlayerId, work: &Work<'_>) -> String {
        let here = self.player(player).map(|player| player.name.clone());
        here.or_else(|| work.gone.get(player).cloned()).unwrap_or_else(|| player.as_str().to_owned())
    }
}

fn borrowed<'a>(variables: &'a [(&'static str, String); 6]) -> [(&'static str, &'a str); 6] {
    variables.each_ref().map(|(name, value)| (*name, value.as_str()))
}

/// The text with its variables filled in, once: what a value says of other variables stays as it is. Cut where it gets too long.
fn filled(template: &str, variables: &Variables<'_>) -> String {
    let mut text = String::new();
    for piece in pieces(template) {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Variable(name) => {
                let value = variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
                text.push_str(value.unwrap_or_default());
            }
        }
    }
    text.chars().take(TEMPLATE_CHARS_MAX).collect()
}

/// The first variable that the template names and `known` does not have.
pub(super) fn unknown_variable<'a>(template: &'a str, known: &[&str]) -> Option<&'a str> {
    let names = pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    });
    names.into_iter().find(|name| !known.contains(name))
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// A template as text and `{{variables}}`. Braces that do not close are text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        pieces.extend([Piece::Text(before), Piece::Variable(name.trim())]);
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    pieces
}
