//! Notices of inboxes that other nodes wrote.
//!
//! Each node knows for each connected player the number of the newest notice that its devices were told. The next number is told at
//! once; after a gap the inbox is read.

use super::{Hints, until_due};
use crate::cluster::bus::{Hint, Notices, RECEIVERS_MAX, Receiver};
use crate::online::Services;
use crate::online::feeds::{FeedOwner, Key, Told};
use crate::online::inbox::view;
use crate::store::{NewNotice, PAGE_MAX, StoreError};
use core::sync::atomic::Ordering;
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Interval of the sweep.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Maximum number of players that one query of the sweep names.
const SWEEP_PART: usize = 1_000;

/// Players with a notice that their devices were not told. At most one entry for each connected player.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// Whether a sweep found it.
    players: Mutex<BTreeMap<Key, bool>>,
    woken: Notify,
}

impl Behind {
    fn put(&self, key: Key, is_found: bool) {
        lock(&self.players).entry(key).or_insert(is_found);
        self.woken.notify_one();
    }

    async fn next(&self) -> (Key, bool) {
        loop {
            let woken = self.woken.notified();
            if let Some(next) = lock(&self.players).pop_first() {
                return next;
            }
            woken.await;
        }
    }
}

/// A notice without its number, as hints have it.
#[derive(Serialize)]
struct Unnumbered<'a> {
    kind: &'a str,
    at_ms: u64,
    notice: &'a RawValue,
}

/// Tells the notices of a commit to the players' devices here, and to the other nodes.
pub(in crate::online) fn tell_others(
    services: &Services,
    to: &Hints,
    realm: &Realm,
    (notices, numbers): (&[NewNotice], &[u64]),
) {
    // Notices that share a body are neighbours.
    for (group, numbers) in groups(notices, numbers) {
        let new = &group[0];
        let Ok(notice) = serde_json::from_slice::<&RawValue>(&new.body) else { continue };
        let text = Unnumbered { kind: &new.kind, at_ms: new.at_ms, notice };
        let Ok(text) = serde_json::value::to_raw_value(&text) else { continue };
        let receivers: Vec<_> =
            group.iter().zip(numbers).map(|(new, seq)| Receiver(new.to.to_string(), *seq)).collect();
        for (new, seq) in group.iter().zip(numbers) {
            tell(services, to, (realm.clone(), new.to.clone()), *seq, Some(&text));
        }
        for receivers in receivers.chunks(RECEIVERS_MAX) {
            let realm = realm.path().to_owned();
            to.bus.tell(Hint::Notices(Notices { realm, to: receivers.to_vec(), notice: Some(text.clone()) }));
        }
    }
}

/// The runs of notices that share a body, with their numbers.
fn groups<'a>(
    notices: &'a [NewNotice],
    numbers: &'a [u64],
) -> impl Iterator<Item = (&'a [NewNotice], &'a [u64])> {
    let mut numbers = numbers;
    notices.chunk_by(|one, next| Arc::ptr_eq(&one.body, &next.body) && one.kind == next.kind).map_while(
        move |group| {
            let (of_group, rest) = numbers.split_at_checked(group.len())?;
            numbers = rest;
            Some((group, of_group))
        },
    )
}

/// Another node wrote notices.
pub(super) fn heard(services: &Services, to: &Hints, told: &Notices) {
    let Some(realm) = told.realm() else { return };
    for receiver in &told.to {
        let Some(player) = receiver.player() else { continue };
        tell(services, to, (realm.clone(), player), receiver.1, told.notice.as_deref());
    }
}

/// Tells a notice if it is the next one; otherwise the inbox is to be read.
fn tell(services: &Services, to: &Hints, key: Key, seq: u64, notice: Option<&RawValue>) {
    let Some(told) = services.feeds().told(&key) else { return };
    if seq <= told {
        return;
    }
    let numbered = notice.and_then(|notice| numbered(seq, notice));
    let done = numbered.map(|text| services.feeds().tell_next(services.unread(), &key, (seq, &text)));
    if done != Some(Told::Done) {
        to.behind.put(key, false);
    }
}

/// The text of a notice with its number, as `inbox.read` has it.
fn numbered(seq: u64, notice: &RawValue) -> Option<Arc<str>> {
    let rest = notice.get().trim_start().strip_prefix('{')?;
    Some(format!("{{\"seq\":{seq},{rest}").into())
}

impl Services {
    /// The number of the newest notice in the inbox of a player who comes. A server alone, which knows all later ones, does
    /// not ask.
    pub(in crate::online) async fn newest_notice(&self, owner: &FeedOwner) -> Result<u64, StoreError> {
        if self.hints().is_none() {
            return Ok(0);
        }
        let key = (owner.realm.clone(), owner.player.clone());
        let newest = self.store().newest_in_inboxes(&[key]).await?;
        Ok(newest.first().map_or(0, |(_, newest)| *newest))
    }
}

/// Reads the inboxes of players who are behind.
pub(super) async fn catch_up(services: Services) {
    let Some(to) = services.hints() else { return };
    loop {
        let (key, is_found) = to.behind.next().await;
        match read(&services, &key).await {
            Ok(told) if is_found => drop(to.found.notices.fetch_add(told, Ordering::Relaxed)),
            Ok(_) => {}
            // The sweep comes back to it.
            Err(error) => tracing::debug!(player = %key.1, %error, "an inbox could not be read"),
        }
    }
}

/// Tells what a player's devices were not told. Returns how many notices.
async fn read(services: &Services, key: &Key) -> Result<u64, StoreError> {
    let (realm, player) = key;
    let mut count = 0;
    while let Some(told) = services.feeds().told(key) {
        let inbox = services.store().read_inbox(realm, player, told, PAGE_MAX).await?;
        if inbox.newest <= told {
            break;
        }
        let read_to = inbox.notices.last().map_or(inbox.newest, |last| last.seq);
        let text = |notice| {
            let view = view(notice).ok()?;
            Some((view.seq, serde_json::to_string(&view).ok()?.into()))
        };
        let notices: Vec<(u64, Arc<str>)> = inbox.notices.into_iter().filter_map(text).collect();
        let missing = services.feeds().tell_read(services.unread(), key, (&notices, read_to));
        count += u64::try_from(missing).unwrap_or(u64::MAX);
    }
    Ok(count)
}

/// Looks now and then whether a connected player has a notice that no hint told.
pub(super) async fn sweep(services: Services) {
    let Some(to) = services.hints() else { return };
    let mut missed = to.bus.missed();
    loop {
        until_due(SWEEP_EVERY, &mut missed).await;
        for part in services.feeds().all_told().chunks(SWEEP_PART) {
            let keys: Vec<Key> = part.iter().map(|(key, _)| key.clone()).collect();
            match services.store().newest_in_inboxes(&keys).await {
                Ok(newest) => {
                    for (key, newest) in newest {
                        // Told meanwhile, it is not found by this.
                        if services.feeds().told(&key).is_some_and(|told| told < newest) {
                            to.behind.put(key, true);
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the inboxes of connected players could not be looked at");
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AccountId;

    #[test]
    fn neighbours_with_one_body_are_one_group_with_their_numbers() {
        let body: Arc<[u8]> = b"{}".as_slice().into();
        let notice = |to: &str, body: &Arc<[u8]>| NewNotice {
            to: AccountId::new(to).unwrap(),
            kind: "moved".into(),
            body: Arc::clone(body),
            at_ms: 1,
        };
        let other: Arc<[u8]> = b"{}".as_slice().into();
        let told = [notice("ada", &body), notice("bob", &body), notice("ada", &other)];
        let found: Vec<_> =
            groups(&told, &[7, 3, 8]).map(|(group, numbers)| (group.len(), numbers.to_vec())).collect();
        assert_eq!(found, [(2, vec![7, 3]), (1, vec![8])]);
    }

    #[test]
    fn a_notice_with_its_number_is_what_the_inbox_has() {
        let notice =
            RawValue::from_string(r#"{"kind":"moved","at_ms":5,"notice":{"a":1}}"#.to_owned()).unwrap();
        let text = numbered(7, &notice).unwrap();
        assert_eq!(&*text, r#"{"seq":7,"kind":"moved","at_ms":5,"notice":{"a":1}}"#);
    }
}
