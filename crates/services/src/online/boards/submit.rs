//! What is written to boards: scores, and the removal of entries.

use super::index::SHORT_WAIT;
use super::{Defined, ENTRIES_MAX, define};
use crate::online::Services;
use crate::online::accounts::{DONE, Done};
use crate::online::charges::Charges;
use crate::online::failure::{Failure, Kind};
use crate::online::receipts::{ScoreReceipt, bad as bad_receipt};
use crate::online::secrets::check_request_id;
use crate::online::table::Caller;
use crate::store::{AccountId, NewScore, Receipt, SCORES_MAX, ScoreRefusal, StoreError};
use core::time::Duration;
use futures_util::future::join_all;
use parlor_server::realm::Realm;
use parlor_social::limits::{EXTRA_BYTES_MAX, ID_BYTES_MAX};
use parlor_social::{Board, Entry, Keep, Ranks, Refused, Submission, Verdict, Writers, mark_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

const _: () = assert!(SCORES_MAX == ENTRIES_MAX, "documents name one number");

/// Largest size of a receipt, in bytes: its claims and what is shown with the score, in Base64.
const RECEIPT_BYTES_MAX: usize = 4096;
/// How much longer than it is good a used receipt is remembered: clocks may be set back by so much.
const RECEIPT_KEPT_MS: u64 = 60 * 60 * 1_000;

type Object = Map<String, Value>;

/// A score.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitScore {
    /// The board.
    board: String,
    /// The player's account: for the game's own service, which must name it. Players submit for themselves.
    account: Option<String>,
    /// The score; on a board of sums, what is added.
    score: i64,
    /// Decides between equal scores. Default: 0.
    sub: Option<i64>,
    /// Whatever belongs to the score, up to 1 KiB: shown with it.
    #[schemars(with = "Option<Object>")]
    extra: Option<Value>,
    /// Names this submission: if its answer is lost and it is sent again with the same id, it counts once. Players must give it for
    /// a board of sums.
    #[schemars(length(min = 1, max = ID_BYTES_MAX))]
    id: Option<String>,
    /// What the game's own service signed: lets a player submit this score to a board of the writer `server`. It is
    /// good once.
    #[schemars(length(min = 1, max = RECEIPT_BYTES_MAX))]
    receipt: Option<String>,
}

/// Scores, which are all stored or none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitScores {
    /// The scores, up to 100.
    #[schemars(length(min = 1, max = SCORES_MAX))]
    scores: Vec<SubmitScore>,
}

/// What a score has made of its entry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SubmittedScore {
    /// The board.
    board: String,
    /// Whose entry it is.
    account: String,
    /// The season in which the score counts: its beginning in milliseconds since 1970, or 0.
    season: u64,
    /// The score that the entry has from here on.
    score: i64,
    /// Its sub-score.
    sub: i64,
    /// Since when the entry has both, in milliseconds since 1970.
    at_ms: u64,
    /// Whether the entry is better than before.
    improved: bool,
    /// Whether the submission was known by its id, and counted when it came first.
    again: bool,
    /// The entry's rank: 1 and the number of better ones. Missing while the ranks are being loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u64>,
    /// Number of entries of the season.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
}

/// What many scores have made of their entries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SubmittedScores {
    /// One for each score, in their order.
    results: Vec<SubmittedScore>,
}

/// An entry to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveEntry {
    /// The board.
    board: String,
    /// Whose: for operators, who must name it. Players remove their own.
    account: Option<String>,
    /// The season, the current one if missing.
    season: Option<u64>,
}

/// A score that was checked, and its board.
struct Checked {
    defined: Arc<Defined>,
    score: NewScore,
}

pub(crate) async fn submit(
    services: Services,
    caller: Caller,
    input: SubmitScore,
) -> Result<SubmittedScore, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    if caller.is_player() {
        services.boards().scores.charge(&realm, &account)?;
    }
    let checked = check(&services, &caller, &realm, input, "").await?;
    if let Some(verdict) = known_to_change_nothing(&services, &checked).await {
        return Ok(shown(&services, &checked, &verdict).await);
    }
    let verdicts = store(&services, &realm, std::slice::from_ref(&checked), |_| String::new()).await?;
    let verdict = verdicts.first().ok_or_else(|| Failure::defect("a score has no verdict"))?;
    Ok(shown(&services, &checked, verdict).await)
}

pub(crate) async fn submit_many(
    services: Services,
    caller: Caller,
    input: SubmitScores,
) -> Result<SubmittedScores, Failure> {
    let realm = services.realm_of(&caller)?;
    if !(1..=SCORES_MAX).contains(&input.scores.len()) {
        return Err(Failure::field("scores", format!("1 to {SCORES_MAX} at once")));
    }
    let path = |at: usize| format!("scores[{at}].");
    let mut checked = Vec::with_capacity(input.scores.len());
    for (at, score) in input.scores.into_iter().enumerate() {
        checked.push(check(&services, &caller, &realm, score, &path(at)).await?);
    }
    let verdicts = store(&services, &realm, &checked, path).await?;
    // They wait for ranks at the same time, not one after the other.
    let shown = checked.iter().zip(&verdicts).map(|(checked, verdict)| shown(&services, checked, verdict));
    Ok(SubmittedScores { results: join_all(shown).await })
}

/// Checks all that needs no look at the entry. `path` is what stands before the fields' names in a refusal.
async fn check(
    services: &Services,
    caller: &Caller,
    realm: &Realm,
    input: SubmitScore,
    path: &str,
) -> Result<Checked, Failure> {
    let at = |field: &str| format!("{path}{field}");
    let (_, account) = services.subject(caller, input.account.as_deref(), &at("account"))?;
    let found = services.boards().find(services, realm, &input.board).await;
    let found = match (found, made_by(services, caller)) {
        (Err(failure), Some(made)) if failure.code() == "no_such_board" => Err(made),
        (found, _) => Ok(found.map_err(|failure| failure.at(at("board")))?),
    };
    let rules =
        found.as_ref().map_or_else(|_| Arc::new(Board::of_players()), |found| Arc::clone(&found.board));
    let receipt = input.receipt.as_deref().map(|text| receipt_of(services, realm, &account, &input, text));
    let receipt = receipt.transpose().map_err(|failure| failure.at(at("receipt")))?;
    let may_carry = rules.writers == Writers::Server && receipt.is_some();
    if caller.is_player() && rules.writers != Writers::Players && !may_carry {
        let sentence = match rules.writers {
            Writers::Rules => "scores of this board come from the rules of its game",
            Writers::Server | Writers::Players => "scores of this board come from the game's own service",
        };
        return Err(Failure::new(Kind::Forbidden, "server_only", sentence).at(at("board")));
    }
    if caller.is_player()
        && input.account.as_ref().is_some_and(|named| *named != account_of(services, caller))
    {
        return Err(Failure::field(at("account"), "players submit for themselves: leave it out"));
    }
    if caller.is_player() && rules.keep == Keep::Sum && input.id.is_none() && receipt.is_none() {
        let sentence = "on a board of sums each submission has an id, so that it counts once";
        return Err(Failure::missing(at("id"), sentence));
    }
    let mut submission = submission(&input, services.time().now_ms(), path)?;
    if let Some(receipt) = &receipt {
        // Sent again, it is known by it.
        submission.id = Some(mark_of(&receipt.id));
    }
    let defined = match found {
        Ok(defined) => defined,
        Err(made) => {
            // No board is made for a score that it would not take.
            rules.submit(None, &submission).map_err(|no| refused(ScoreRefusal::Rules(no), path))?;
            let name = super::board_name(&input.board).map_err(|failure| failure.at(at("board")))?;
            define::make(services, realm, &name, || made.charge(caller.origin)).await?
        }
    };
    let score = NewScore { receipt, ..defined.score(account, submission) };
    Ok(Checked { defined, score })
}

/// The receipt of a score, if it is good for exactly this one.
fn receipt_of(
    services: &Services,
    realm: &Realm,
    account: &AccountId,
    input: &SubmitScore,
    text: &str,
) -> Result<Receipt, Failure> {
    if text.len() > RECEIPT_BYTES_MAX {
        return Err(bad_receipt("it is too long"));
    }
    let signed = ScoreReceipt::verify(text, services.tokens(), realm, services.time())?;
    if signed.sub != account.as_str() {
        return Err(bad_receipt("it is for another account"));
    }
    let extra = input.extra.as_ref();
    let said = (input.board.as_str(), input.score, input.sub.unwrap_or(0), extra);
    if (signed.board.as_str(), signed.score, signed.sub_score, signed.extra.as_ref()) != said {
        return Err(bad_receipt("it has another board, score, sub-score or extra than is submitted"));
    }
    Ok(Receipt {
        id: signed.jti,
        expires_ms: signed.exp.saturating_mul(1_000).saturating_add(RECEIPT_KEPT_MS),
    })
}

/// What a score says, as rules judge it.
fn submission(input: &SubmitScore, at_ms: u64, path: &str) -> Result<Submission, Failure> {
    let at = |field: &str| format!("{path}{field}");
    let id = input.id.as_deref().map(|id| check_request_id(&at("id"), id).map(|()| mark_of(id)));
    let extra = input.extra.as_ref().map(|extra| said(extra, &at("extra"))).transpose()?;
    Ok(Submission { score: input.score, sub: input.sub.unwrap_or(0), at_ms, id: id.transpose()?, extra })
}

fn account_of(services: &Services, caller: &Caller) -> String {
    services.account_of(caller).map(|(_, account)| account.to_string()).unwrap_or_default()
}

/// On a server for development a player's first score makes the board that it is for. Gives who is charged.
fn made_by<'s>(services: &'s Services, caller: &Caller) -> Option<&'s Charges> {
    services.boards().made.as_ref().filter(|_| caller.is_player())
}

fn said(extra: &Value, path: &str) -> Result<Vec<u8>, Failure> {
    if !extra.is_object() {
        return Err(Failure::field(path, "it must be a JSON object"));
    }
    let bytes = serde_json::to_vec(extra).map_err(|error| Failure::defect(&error.to_string()))?;
    if bytes.len() > EXTRA_BYTES_MAX {
        let sentence = format!("it has {} bytes, and {EXTRA_BYTES_MAX} are the most", bytes.len());
        return Err(Failure::new(Kind::TooLarge, "too_large", sentence).at(path));
    }
    Ok(bytes)
}

/// The verdict of a score that cannot change its entry, from memory: what is in the ranks was committed. Most
/// scores of a game are of this kind.
async fn known_to_change_nothing(services: &Services, checked: &Checked) -> Option<Verdict> {
    let NewScore { rules, season, account, submission, .. } = &checked.score;
    if rules.keep != Keep::Best || rules.attempts.is_some() || checked.score.receipt.is_some() {
        return None;
    }
    // Without these ranks the store judges.
    let ranked =
        services.boards().newest_ranks(services, &checked.defined, *season, Duration::ZERO).await.ok()?;
    let key = ranked.ask(|ranks| ranks.key(account.as_str())).ok().flatten()?;
    // The one that has made the entry may come again: only the store knows its id.
    let given = (rules.turned(submission.score), rules.turned(submission.sub));
    if submission.id.is_some() && given == (key.score, key.sub) {
        return None;
    }
    let entry = Entry { key, ..Entry::default() };
    let verdict = rules.submit(Some(&entry), submission).ok()?;
    (!verdict.is_changed).then_some(verdict)
}

async fn store(
    services: &Services,
    realm: &Realm,
    checked: &[Checked],
    path: impl Fn(usize) -> String,
) -> Result<Vec<Verdict>, Failure> {
    let has_entry = |checked: &Checked| {
        let NewScore { season, account, .. } = &checked.score;
        let ranked = services.boards().ranked(services, &checked.defined, *season);
        ranked.ask(|ranks| ranks.key(account.as_str()).is_some()) == Ok(true)
    };
    let is_known = checked.iter().all(has_entry);
    let scores = checked.iter().map(|checked| checked.score.clone()).collect();
    let stored = match is_known {
        true => services.store().submit_known_scores(realm, scores).await?,
        false => services.store().submit_scores(realm, scores).await?,
    };
    stored.map_err(|(at, refusal)| refused(refusal, &path(at)))
}

fn refused(refusal: ScoreRefusal, path: &str) -> Failure {
    let (kind, code, field) = match &refusal {
        ScoreRefusal::Rules(Refused::Score { .. } | Refused::Sum) => {
            (Kind::BadInput, "out_of_range", "score")
        }
        ScoreRefusal::Rules(Refused::Sub) => (Kind::BadInput, "out_of_range", "sub"),
        ScoreRefusal::Rules(Refused::Attempts(_)) => (Kind::Conflict, "no_attempts_left", "board"),
        ScoreRefusal::Rules(Refused::NotOpen(_)) => (Kind::Conflict, "not_open", "board"),
        ScoreRefusal::Rules(Refused::Closed(_)) => (Kind::Conflict, "board_closed", "board"),
        ScoreRefusal::Seats(_) => (Kind::Conflict, "board_full", "board"),
        ScoreRefusal::Account => (Kind::NotFound, "no_such_player", "account"),
        ScoreRefusal::Used => (Kind::Conflict, "receipt_used", "receipt"),
    };
    let sentence = match refusal {
        ScoreRefusal::Rules(refused) => refused.to_string(),
        ScoreRefusal::Seats(seats) => format!("all {seats} places of this season are taken"),
        ScoreRefusal::Account => "there is no such account here".to_owned(),
        ScoreRefusal::Used => {
            "this receipt was used: the service signs another one for another score".to_owned()
        }
    };
    Failure::new(kind, code, sentence).at(format!("{path}{field}"))
}

async fn shown(services: &Services, checked: &Checked, verdict: &Verdict) -> SubmittedScore {
    let NewScore { rules, season, account, .. } = &checked.score;
    let ranked = services.boards().newest_ranks(services, &checked.defined, *season, SHORT_WAIT).await.ok();
    if let Some(ranked) = ranked.as_ref().filter(|_| services.store().is_shared()) {
        // Another node may have made this entry a moment ago.
        let key = ranked.ask(|ranks| ranks.key(account.as_str()));
        if key.is_ok_and(|key| key != Some(verdict.entry.key)) {
            let key = (checked.score.board, *season);
            let followed =
                services.boards().index().follow(services.store(), key, ranked, Duration::ZERO).await;
            if let Err(error) = followed {
                tracing::debug!(%error, "a score is answered without its rank");
            }
        }
    }
    let standing =
        |ranks: &Ranks| (ranks.standing(account.as_str()).map(|standing| standing.rank), ranks.len() as u64);
    let standing = ranked.and_then(|ranked| ranked.ask(standing).ok());
    SubmittedScore {
        board: checked.defined.name.to_string(),
        account: account.to_string(),
        season: season.0,
        score: rules.turned(verdict.entry.key.score),
        sub: rules.turned(verdict.entry.key.sub),
        at_ms: verdict.entry.key.at_ms,
        improved: verdict.improved,
        again: verdict.again,
        rank: standing.and_then(|(rank, _)| rank),
        entries: standing.map(|(_, entries)| entries),
    }
}

pub(crate) async fn remove(services: Services, caller: Caller, input: RemoveEntry) -> Result<Done, Failure> {
    let (realm, account): (Realm, AccountId) =
        services.subject(&caller, input.account.as_deref(), "account")?;
    let defined = services.boards().find(&services, &realm, &input.board).await?;
    if caller.is_player() {
        if account.as_str() != account_of(&services, &caller) {
            return Err(Failure::field("account", "players remove their own entry: leave it out"));
        }
        // Otherwise a player would undo what the game has judged, or have more attempts.
        if defined.board.writers != Writers::Players || defined.board.attempts.is_some() {
            let sentence = "entries of this board are removed by the game's operators";
            return Err(Failure::new(Kind::Forbidden, "server_only", sentence).at("board"));
        }
    }
    let season = super::read::season(&services, &defined, input.season).await?;
    match services.store().remove_entry(defined.number, season, &account).await {
        Ok(()) => {
            tracing::info!(board = %defined.name, ?realm, %account, "an entry was removed");
            Ok(DONE)
        }
        Err(StoreError::Missing { .. }) => Err(super::read::no_entry()),
        Err(error) => Err(error.into()),
    }
}
