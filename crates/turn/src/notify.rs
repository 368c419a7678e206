//! Notices, and push notifications from templates.

use super::config::Template;
use super::effect::{Effect, Notice, NoticeKind, Push, PushOn};
use super::ids::PlayerId;
use super::limits::{END_WORD_BYTES_MAX, NAME_CHARS_MAX, TEMPLATE_CHARS_MAX};
use super::op::{Actor, Context};
use super::{GameResult, TurnRoom};
use serde_json::Value;
use std::collections::BTreeMap;

/// An operation in progress: its context and its effects so far.
pub(super) struct Work<'a> {
    pub(super) with: &'a Context<'a>,
    pub(super) effects: Vec<Effect>,
    /// The player who asked for it, and so gets no push because of it.
    by: Option<PlayerId>,
    /// Names of players who left in this operation: texts still mention them.
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

/// Template variables and their values.
type Variables<'a> = [(&'static str, &'a str)];

/// The variables of each template.
pub(super) const TURN_START_VARIABLES: [&str; 6] =
    ["currentPlayerName", "previousPlayerName", "roomName", "turnNumber", "gameType", "roomId"];
pub(super) const GAME_END_VARIABLES: [&str; 6] =
    ["winnerName", "finisherName", "endReason", "roomName", "gameType", "roomId"];

impl TurnRoom {
    /// Sends a notice to all players in the room, and to those who watch it.
    pub(super) fn tell_all(&mut self, kind: NoticeKind, body: Value, work: &mut Work<'_>) {
        let to = self.players.iter().map(|player| player.id.clone()).collect();
        self.tell(to, self.config.spectators, kind, body, work);
    }

    /// Sends a notice to some players, and if it is public to those who watch. Does nothing without recipients.
    pub(super) fn tell(
        &mut self,
        to: Vec<PlayerId>,
        is_public: bool,
        kind: NoticeKind,
        body: Value,
        work: &mut Work<'_>,
    ) {
        if to.is_empty() && !is_public {
            return;
        }
        let seq = self.next_seq();
        work.effects.push(Effect::Notice(Notice { seq, to, is_public, kind, body }));
    }

    fn next_seq(&mut self) -> u64 {
        self.notices_given = self.notices_given.saturating_add(1);
        self.notices_given
    }

    /// Sends a push to the player whose turn begins after that of `before`, unless it acted or had that turn, too.
    pub(super) fn call_to_turn(&mut self, next: &PlayerId, before: &PlayerId, work: &mut Work<'_>) {
        let Some(template) = self.config.notifications.on_turn_start.clone() else { return };
        if before == next || work.by.as_ref() == Some(next) {
            return;
        }
        let previous = self.name_of(before, work);
        let number = self.turn.count.saturating_add(1).to_string();
        let variables = [
            ("currentPlayerName", named(&self.name_of(next, work))),
            ("previousPlayerName", named(&previous)),
            ("roomName", named(&self.name)),
            ("turnNumber", number),
            ("gameType", self.config.game().to_owned()),
            ("roomId", self.id.as_str().to_owned()),
        ];
        self.push(vec![next.clone()], PushOn::TurnStart, &template, &borrowed(&variables), work);
    }

    /// Sends a push about the game's end to all players except the one who ended it.
    pub(super) fn call_to_end(&mut self, result: &GameResult, work: &mut Work<'_>) {
        let Some(template) = self.config.notifications.on_game_end.clone() else { return };
        let name = |player: &Option<PlayerId>| {
            player.as_ref().map(|player| named(&self.name_of(player, work))).unwrap_or_default()
        };
        let variables = [
            ("winnerName", name(&result.winner)),
            ("finisherName", name(&result.finisher)),
            ("endReason", word_or_completed(&result.reason).to_owned()),
            ("roomName", named(&self.name)),
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

    pub(super) fn name_of(&self, player: &PlayerId, work: &Work<'_>) -> String {
        let here = self.player(player).map(|player| player.name.clone());
        here.or_else(|| work.gone.get(player).cloned()).unwrap_or_else(|| player.as_str().to_owned())
    }
}

fn borrowed<'a>(variables: &'a [(&'static str, String); 6]) -> [(&'static str, &'a str); 6] {
    variables.each_ref().map(|(name, value)| (*name, value.as_str()))
}

/// Sanitizes a user-chosen name for a text sent in the game's name (threat 52): one line, limited length, no
/// invisible or direction-changing characters, no links.
fn named(name: &str) -> String {
    let mut text = String::new();
    let mut chars = name.chars().filter(|character| !is_hidden(*character)).take(NAME_CHARS_MAX).peekable();
    while let Some(character) = chars.next() {
        let makes_link = "/\\:@".contains(character)
            || character == '.' && chars.peek().is_some_and(|next| next.is_alphanumeric());
        let character = if makes_link || character.is_whitespace() { ' ' } else { character };
        if character != ' ' || !text.ends_with(' ') {
            text.push(character);
        }
    }
    text.trim().to_owned()
}

/// Whether a character is invisible, or changes how its neighbours are displayed.
fn is_hidden(character: char) -> bool {
    let formats = |character| {
        matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
            || ('\u{200b}'..='\u{200f}').contains(&character)
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || ('\u{2060}'..='\u{206f}').contains(&character)
            || ('\u{fff9}'..='\u{fffb}').contains(&character)
            || ('\u{e0000}'..='\u{e007f}').contains(&character)
    };
    // A line break becomes a space, so that words on two lines stay separate.
    (character.is_control() && !character.is_whitespace()) || formats(character)
}

/// Sanitizes an end reason, which a player may have written: only a single word such as `checkmate` passes.
fn word_or_completed(reason: &str) -> &str {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let is_short = (1..=END_WORD_BYTES_MAX).contains(&reason.len());
    if is_short && reason.bytes().all(is_word) { reason } else { "completed" }
}

/// Expands a template's variables, once: variables within values stay as they are. Truncates overlong text.
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

/// Returns the first variable of the template that is not in `known`.
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

/// Splits a template into text and `{{variables}}`. Unclosed braces are text.
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
