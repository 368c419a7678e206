//! Error codes with their kinds: the OpenAPI document's list of an operation's errors and statuses.

use super::failure::Kind;
use parlor_turn::Code;

/// Error codes of the services themselves. Those of turn rooms are [`Code::ALL`].
const OWN: &[(&str, Kind)] = &[
    ("already_in_party", Kind::Conflict),
    ("already_in_queue", Kind::Conflict),
    ("asked_too_often", Kind::Conflict),
    ("bad_body", Kind::BadInput),
    ("bad_input", Kind::BadInput),
    ("bad_json", Kind::BadInput),
    ("bad_receipt", Kind::Forbidden),
    ("bad_refresh_token", Kind::SignedOut),
    ("bad_token", Kind::SignedOut),
    ("banned", Kind::Forbidden),
    ("blocked", Kind::Conflict),
    ("board_closed", Kind::Conflict),
    ("board_full", Kind::Conflict),
    ("closed", Kind::Forbidden),
    ("defect", Kind::Defect),
    ("forbidden", Kind::Forbidden),
    ("friends_full", Kind::Conflict),
    ("goal_decides", Kind::Conflict),
    ("last_credential", Kind::Conflict),
    ("lobby_full", Kind::Conflict),
    ("locked", Kind::Conflict),
    ("no_attempts_left", Kind::Conflict),
    ("no_backup", Kind::Unavailable),
    ("no_backups", Kind::Conflict),
    ("no_cluster", Kind::Conflict),
    ("no_games", Kind::Forbidden),
    ("no_socket", Kind::Conflict),
    ("no_such_account", Kind::SignedOut),
    ("no_such_achievement", Kind::NotFound),
    ("no_such_board", Kind::NotFound),
    ("no_such_entry", Kind::NotFound),
    ("no_such_game", Kind::NotFound),
    ("no_such_ladder", Kind::NotFound),
    ("no_such_lobby", Kind::NotFound),
    ("no_such_match", Kind::NotFound),
    ("no_such_member", Kind::NotFound),
    ("no_such_method", Kind::Method),
    ("no_such_mode", Kind::NotFound),
    ("no_such_operation", Kind::NotFound),
    ("no_such_path", Kind::NotFound),
    ("no_such_queue", Kind::NotFound),
    ("no_such_node", Kind::NotFound),
    ("no_such_room", Kind::NotFound),
    ("no_such_save", Kind::NotFound),
    ("no_such_season", Kind::NotFound),
    ("no_such_statistic", Kind::NotFound),
    ("no_such_ticket", Kind::NotFound),
    ("not_asked", Kind::Conflict),
    ("not_found", Kind::NotFound),
    ("not_friends", Kind::Forbidden),
    ("not_here", Kind::Conflict),
    ("not_in_lobby", Kind::Forbidden),
    ("not_open", Kind::Conflict),
    ("not_owner", Kind::Forbidden),
    ("not_ranked", Kind::Conflict),
    ("not_yours", Kind::Forbidden),
    ("out_of_range", Kind::BadInput),
    ("party_too_large", Kind::Conflict),
    ("quota", Kind::Conflict),
    ("receipt_used", Kind::Conflict),
    ("refresh_token_reused", Kind::SignedOut),
    ("room_stays", Kind::Conflict),
    ("signed_out", Kind::SignedOut),
    ("stale", Kind::Conflict),
    ("store_full", Kind::Full),
    ("taken", Kind::Conflict),
    ("token_expired", Kind::SignedOut),
    ("too_large", Kind::TooLarge),
    ("too_many_credentials", Kind::Conflict),
    ("too_many_lobbies", Kind::Conflict),
    ("too_many_rooms", Kind::Conflict),
    ("too_many_subscriptions", Kind::Conflict),
    ("too_many_tickets", Kind::Conflict),
    ("too_much_unread", Kind::TooOften),
    ("too_often", Kind::TooOften),
    ("unavailable", Kind::Unavailable),
    ("unknown_app", Kind::NotFound),
    ("wrong_password", Kind::SignedOut),
    ("yourself", Kind::Conflict),
];

/// Codes of any operation, for any caller.
pub(super) const ANY: &[&str] = &[
    "bad_input",
    "bad_token",
    "token_expired",
    "banned",
    "unknown_app",
    "too_much_unread",
    "unavailable",
    "store_full",
    "defect",
];
/// Codes of operations with restricted roles.
pub(super) const NOT_FOR_ALL: &[&str] = &["signed_out", "forbidden"];
/// Codes of operations whose input is a body.
pub(super) const WITH_BODY: &[&str] = &["bad_json", "bad_body", "too_large"];
/// Codes of operations with a field in their path: its value may turn it into another path.
pub(super) const WITH_PATH: &[&str] = &["no_such_path", "no_such_method"];

/// The kind of failures with this code.
pub(super) fn kind_of(code: &str) -> Option<Kind> {
    known(code).map(|(_, kind)| kind)
}

/// The code of this text, and the kind of its failures.
pub(super) fn known(code: &str) -> Option<(&'static str, Kind)> {
    let own = OWN.iter().find(|(own, _)| *own == code).copied();
    own.or_else(|| {
        let known = Code::ALL.iter().find(|known| known.as_str() == code)?;
        Some((known.as_str(), Kind::from(*known)))
    })
}

impl From<Code> for Kind {
    fn from(code: Code) -> Self {
        match code {
            Code::BadConfig | Code::BadInput | Code::TooDeep | Code::MissingField | Code::BadTurnOrder => {
                Kind::BadInput
            }
            Code::TooLarge => Kind::TooLarge,
            Code::NotInRoom | Code::NotHost | Code::ServerOnly | Code::Kicked | Code::NotYourVote => {
                Kind::Forbidden
            }
            Code::NoSuchProposal | Code::NoSuchPlayer => Kind::NotFound,
            Code::RulesFault => Kind::Defect,
            _ => Kind::Conflict,
        }
    }
}
