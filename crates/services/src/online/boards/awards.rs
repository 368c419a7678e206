//! Scores that the rules of turn rooms award.

use crate::online::Services;
use crate::online::failure::Failure;
use crate::store::{AccountId, NewScore};
use parlor_server::realm::Realm;
use parlor_social::{Name, Submission, Writers, mark_of};
use parlor_turn::{Award, Effect, RoomId};

/// The scores among the effects of a game's end, for boards that rules write. A room's game ends once, so its id names
/// them.
pub(crate) async fn of_rules(
    services: &Services,
    realm: &Realm,
    room: &RoomId,
    effects: &[Effect],
) -> Result<Vec<NewScore>, Failure> {
    let awards = effects.iter().filter_map(|effect| match effect {
        Effect::Award(award) => Some(award),
        Effect::Notice(_) | Effect::Push(_) | Effect::Said(_) => None,
    });
    let awards: Vec<&Award> = awards.collect();
    if awards.is_empty() {
        return Ok(Vec::new());
    }
    let (boards, at_ms) = (services.boards().of(services, realm).await?, services.time().now_ms());
    let mut scores = Vec::new();
    for (number, Award { player, board, score, sub }) in awards.into_iter().enumerate() {
        let defined = Name::new(board).ok().and_then(|name| boards.get(&name));
        let Some(defined) = defined.filter(|defined| defined.board.writers == Writers::Rules) else {
            continue;
        };
        let id = Some(mark_of(&format!("{}/{number}", room.as_str())));
        let submission = Submission { score: *score, sub: *sub, at_ms, id, extra: None };
        scores.push(defined.score(AccountId::new(player.as_str())?, submission));
    }
    Ok(scores)
}
