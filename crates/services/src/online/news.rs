//! News for one device: what is so now, such as who is here. Only the newest text of each topic waits, so a slow
//! device misses what was so before, and never what is so. Notices, which must all be read, are in the inbox.

use super::feeds::PendingNotice;
use core::time::Duration;
use parlor_server::embed::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Maximum number of topics that wait for a device, beside friends.
const TOPICS_MAX: usize = 128;
/// Maximum number of friends whose presence waits for a device.
const FRIENDS_MAX: usize = parlor_social::limits::FRIENDS_MAX;
/// Least time from one list of friends to the next.
const FRIENDS_EVERY: Duration = Duration::from_secs(1);

/// What news are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Whether a friend is here. All that wait are sent as one list, at most once a second.
    Friend(String),
    /// Anything else, by its name.
    Other(String),
}

/// The news that wait for a device.
#[derive(Debug, Default)]
pub(super) struct News {
    waiting: Mutex<Waiting>,
    told: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// In the order in which they began to wait.
    order: VecDeque<String>,
    texts: BTreeMap<String, PendingNotice>,
    friends: BTreeMap<String, PendingNotice>,
    /// When friends may be sent.
    friends_at: Option<Instant>,
}

/// What is sent next.
enum Next {
    Text(PendingNotice),
    Later(Instant),
    Nothing,
}

impl News {
    /// Replaces what waits of a topic. Returns false if too many wait.
    pub(super) fn put(&self, topic: Topic, news: PendingNotice) -> bool {
        let mut waiting = lock(&self.waiting);
        match topic {
            Topic::Friend(friend) => {
                if waiting.friends.len() >= FRIENDS_MAX && !waiting.friends.contains_key(&friend) {
                    return false;
                }
                waiting.friends.insert(friend, news);
            }
            Topic::Other(topic) => {
                if !waiting.texts.contains_key(&topic) {
                    if waiting.texts.len() >= TOPICS_MAX {
                        return false;
                    }
                    waiting.order.push_back(topic.clone());
                }
                waiting.texts.insert(topic, news);
            }
        }
        drop(waiting);
        self.told.notify_one();
        true
    }

    /// Waits for the next news. Cancel safe.
    pub(super) async fn next(&self) -> PendingNotice {
        loop {
            // Notified before it waits, it does not wait: one permit is kept.
            let told = self.told.notified();
            let next = lock(&self.waiting).next(Instant::now());
            match next {
                Next::Text(news) => return news,
                Next::Later(at) => tokio::select! {
                    () = told => {}
                    () = sleep_until(at) => {}
                },
                Next::Nothing => told.await,
            }
        }
    }
}

impl Waiting {
    fn next(&mut self, now: Instant) -> Next {
        if let Some(news) = self.order.pop_front().and_then(|topic| self.texts.remove(&topic)) {
            return Next::Text(news);
        }
        if self.friends.is_empty() {
            return Next::Nothing;
        }
        if let Some(at) = self.friends_at.filter(|at| *at > now) {
            return Next::Later(at);
        }
        self.friends_at = Some(now + FRIENDS_EVERY);
        let mut all = core::mem::take(&mut self.friends).into_values();
        let Some(mut list) = all.next() else { return Next::Nothing };
        let mut text = format!("{{\"topic\":\"presence\",\"friends\":[{}", list.text);
        // The list has the first one's share; the others' are given back when it is made.
        for other in all {
            text.push(',');
            text.push_str(&other.text);
        }
        text.push_str("]}");
        list.text = text.into();
        Next::Text(list)
    }
}
