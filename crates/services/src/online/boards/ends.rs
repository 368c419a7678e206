//! Calls the webhook when a season of a board ends: exactly once, also through a kill of the server.
//!
//! The store has the end of each season that needs a call. One transaction removes that end and puts the call into
//! the outbox, so neither happens without the other.

use super::index::{NoRanks, WAIT};
use super::read::{Shown, owned};
use super::{Defined, no_ranks};
use crate::cluster::Duty;
use crate::online::Services;
use crate::online::failure::Failure;
use crate::online::webhook::Call;
use crate::store::{EndedSeason, NewWebhook};
use core::time::Duration;
use serde::Serialize;

/// Scores that were judged in the last moment of a season are stored by then.
const GRACE: Duration = Duration::from_secs(10);
/// Time between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Seasons of one look.
const AT_ONCE: usize = 32;

/// What the call tells.
#[derive(Serialize)]
struct Season<'a> {
    board: &'a str,
    season: u64,
    ends_ms: u64,
    entries: u64,
    first: Vec<First<'a>>,
}

/// One of the best players of a season.
#[derive(Serialize)]
struct First<'a> {
    account: &'a str,
    rank: u64,
    score: i64,
    sub: i64,
}

/// Runs as long as the services.
pub(super) async fn tell_ends(services: Services) {
    loop {
        if services.has_duty(Duty::Seasons).await
            && let Err(failure) = tell_all(&services).await
        {
            tracing::debug!(?failure, "the ends of seasons could not be read; they are read again");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = services.time().moved() => {}
        }
    }
}

async fn tell_all(services: &Services) -> Result<(), Failure> {
    let grace_ms = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
    loop {
        let until_ms = services.time().now_ms().saturating_sub(grace_ms);
        let ended = services.store().ended_seasons(until_ms, AT_ONCE).await?;
        let mut has_told = false;
        for season in &ended {
            match tell(services, season).await {
                Ok(()) => has_told = true,
                // It holds up no other season, and is tried again.
                Err(failure) => tracing::debug!(board = %season.name, ?failure, "the end of a season waits"),
            }
        }
        if ended.len() < AT_ONCE || !has_told {
            return Ok(());
        }
    }
}

async fn tell(services: &Services, ended: &EndedSeason) -> Result<(), Failure> {
    let defined = services.boards().find(services, &ended.realm, ended.name.as_str()).await?;
    let now_ms = services.time().now_ms();
    let (current, later_ms) = defined.told_season(now_ms);
    if current == ended.season {
        // The clock was set back, or the schedule changed: it goes on.
        let later_ms = later_ms.map(|later_ms| later_ms.max(now_ms));
        services.store().tell_season(ended, None, later_ms).await?;
        return Ok(());
    }
    let webhook = match services.webhook() {
        Some(target) if defined.board.tells() => {
            let body = call(services, ended, &defined, now_ms).await?;
            Some(NewWebhook { target: target.url.clone(), body, due_ms: now_ms, is_beyond_share: false })
        }
        _ => None,
    };
    if services.store().tell_season(ended, webhook, None).await? {
        let EndedSeason { realm, name, season, entries, .. } = ended;
        tracing::info!(board = %name, ?realm, season = season.0, entries, "a season has ended");
    }
    Ok(())
}

/// Makes the body of the call.
async fn call(
    services: &Services,
    ended: &EndedSeason,
    defined: &Defined,
    at_ms: u64,
) -> Result<Vec<u8>, Failure> {
    let count = usize::try_from(defined.board.tell.unwrap_or(0)).unwrap_or(usize::MAX);
    let ranked = services.boards().newest_ranks(services, defined, ended.season, WAIT).await?;
    let first: Vec<Shown> = match ranked.ask(|ranks| owned(ranks.page(1, count))) {
        Ok(first) => first,
        // They will not fit later either, and the season has ended all the same.
        Err(NoRanks::TooLarge) => Vec::new(),
        Err(NoRanks::NotYet) => return Err(no_ranks(NoRanks::NotYet)),
    };
    let to = first.iter().map(|shown| shown.account.as_str()).collect();
    let season = Season {
        board: ended.name.as_str(),
        season: ended.season.0,
        ends_ms: ended.ends_ms,
        entries: ended.entries,
        first: first
            .iter()
            .map(|shown| First {
                account: &shown.account,
                rank: shown.rank,
                score: defined.board.turned(shown.score),
                sub: defined.board.turned(shown.sub),
            })
            .collect(),
    };
    Call::body(&ended.realm, "season_ended", at_ms, to, season)
}
