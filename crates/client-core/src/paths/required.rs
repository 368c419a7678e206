//! A guest that plays over a direct path or not at all: [`PathMode::P2p`](crate::PathMode::P2p).

use super::link::Outcome;
use super::{Paths, RETRY_FIRST, TRY_SLACK};
use crate::event::NoDirectPath;
use crate::info::ReasonCode;
use parlor_proto::limits::PATH_TRY_TIMEOUT;
use parlor_proto::{Instant, MemberId};
use std::time::Duration;

/// Wait for the first offer of a path: the hub makes it as soon as it knows the addresses of both ends.
const FIRST_MAX: Duration = Duration::from_secs(5);
/// Wait for the next path after one was lost.
const AGAIN_MAX: Duration = RETRY_FIRST.saturating_add(PATH_TRY_TIMEOUT).saturating_add(TRY_SLACK);

/// The path that a guest needs.
#[derive(Debug, Default)]
pub(super) struct Required {
    /// Since when there is none.
    lacking_since: Option<Instant>,
    /// Whether there was one.
    had_one: bool,
}

impl Paths {
    /// Notes that this process needs no path at present: it is the host, or has no connection to the hub.
    pub(crate) fn excuse(&mut self) {
        self.required.lacking_since = None;
    }

    /// Why there is no path to the host, if it is needed and will not come in time.
    pub(crate) fn missing(&mut self, host: Option<MemberId>, now: Instant) -> Option<NoDirectPath> {
        let path = host.and_then(|host| self.to(host));
        if path.is_some_and(|path| path.is_open()) {
            self.required = Required { lacking_since: None, had_one: true };
            return None;
        }
        let is_tried = path.is_some();
        let since = *self.required.lacking_since.get_or_insert(now);
        let failed = self.outcome.filter(|outcome| *outcome != Outcome::Lost && self.tell_at.is_none());
        let max = if self.required.had_one { AGAIN_MAX } else { FIRST_MAX };
        // An attempt has a time limit of its own.
        if is_tried || failed.is_none() && now.saturating_since(since) < max {
            return None;
        }
        let reason = match failed {
            Some(Outcome::Refused) => ReasonCode::DirectRuntimeAttachFailed,
            _ => ReasonCode::DirectUdpTimeout,
        };
        let what = match (failed, self.ended()) {
            (Some(_), Some(why)) => why.to_owned(),
            _ if self.required.had_one => format!("it was lost, and no other came up in {} s", max.as_secs()),
            _ => format!(
                "none was offered in {} s. The host must allow direct paths, and both must reach the server by QUIC",
                max.as_secs()
            ),
        };
        let detail = format!("{what}. With PathMode::Auto the server relays where no direct path comes up");
        Some(NoDirectPath { reason, detail })
    }
}
