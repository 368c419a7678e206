//! The room of an instance: the core, and what the boundary keeps beside it.

use crate::boundary::Fault;
use bytes::Bytes;
use parlor_client_core::{Columns, LinkState, Mode, Options, RoomCore};
use parlor_proto::stream_rate::StreamRate;
use parlor_proto::{Instant, Tick};
use parlor_sync::value::Value;

/// Instants beyond this many µs are not exact as floats.
const INSTANT_US_MAX: f64 = 9_007_199_254_740_992.0;

/// The room of an instance.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) core: RoomCore,
    /// What the socket of the present link carries, as far as writing to it showed.
    pub(crate) rate: StreamRate,
    /// While the link is for a claim at another server: the core's count of links by claims before it.
    pub(crate) claim: Option<u64>,
    /// The name of the component of own states, if the game has one.
    pub(crate) own: Option<OwnForm>,
    /// The tick of the last request of the rollback lane.
    pub(crate) lane_tick: Tick,
    /// Columns to read into, so that each frame need not allocate them.
    pub(crate) columns: Columns,
    /// Counts what may have changed a read of the game.
    pub(crate) version: u64,
    is_match: bool,
    /// The newest instant that was passed.
    now: Instant,
}

/// A page has one link, so it asks other servers once the link to the room's server is lost.
impl Room {
    /// Whether the link is for a claim. One that was granted is the room's from then on.
    pub(crate) fn is_claim(&self) -> bool {
        self.claim == Some(self.core.line())
    }

    /// Reports the end of the link if it is for a claim. Returns whether it is.
    pub(crate) fn claim_fails(&mut self, detail: &str, now: Instant) -> bool {
        let is_claim = self.is_claim();
        if is_claim {
            self.claim = None;
            self.core.claim_failed(detail, now);
        }
        is_claim
    }
}

/// The own state of a player as the game describes it, without what the replicator adds.
#[derive(Debug)]
pub(crate) struct OwnForm {
    pub(crate) component: parlor_sync::schema::Component,
    pub(crate) fields: usize,
}

impl Room {
    pub(crate) fn new(options: Options) -> Self {
        let own = options.template.as_ref().map(|template| OwnForm {
            component: template.form().component().clone(),
            fields: template.form().game_fields(),
        });
        Room {
            is_match: matches!(options.intent, parlor_client_core::Wish::Match { .. }),
            core: RoomCore::new(options, Mode::Relay),
            rate: StreamRate::default(),
            claim: None,
            own,
            lane_tick: Tick::default(),
            columns: Columns::default(),
            version: 0,
            now: Instant::ZERO,
        }
    }

    /// The instant that an argument names. Time never goes back here: a packet may have arrived before the page last
    /// looked at its clock.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is checked to be in range
    pub(crate) fn at(&mut self, now_us: f64) -> Result<Instant, Fault> {
        if !(0.0..=INSTANT_US_MAX).contains(&now_us) {
            return Err(Fault::bad_call("an instant is a number of microseconds from 0 to 2^53"));
        }
        self.now = self.now.max(Instant::from_micros(now_us as u64));
        Ok(self.now)
    }

    /// An instant that may lie before the newest one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it is checked to be in range
    pub(crate) fn past(&self, at_us: f64) -> Result<Instant, Fault> {
        if !(0.0..=INSTANT_US_MAX).contains(&at_us) {
            return Err(Fault::bad_call("an instant is a number of microseconds from 0 to 2^53"));
        }
        Ok(self.now.min(Instant::from_micros(at_us as u64)))
    }

    /// The core, for a call that may change what the game reads.
    pub(crate) fn write(&mut self) -> &mut RoomCore {
        self.version += 1;
        &mut self.core
    }

    /// What the game looks at most: one bit each.
    pub(crate) fn flags(&self) -> i32 {
        let core = &self.core;
        let bits = [
            core.is_connected(),
            core.is_host(),
            core.is_migrating(),
            core.link_state() == LinkState::Reconnecting,
            core.closed().is_some(),
            self.is_match,
            core.is_replay(),
            core.is_spectator(),
        ];
        bits.iter().rev().fold(0, |flags, bit| flags << 1 | i32::from(*bit))
    }
}

/// Appends the encodings of values to what goes out.
pub(crate) fn put<'a>(out: &mut Vec<u8>, values: impl IntoIterator<Item = &'a Value>) -> Result<(), Fault> {
    values.into_iter().try_for_each(|value| Ok(value.encode_wrapped(out)?))
}

/// Puts out a value if there is one, and says whether there is.
pub(crate) fn put_some(out: &mut Vec<u8>, value: Option<Value>) -> Result<bool, Fault> {
    put(out, value.as_ref())?;
    Ok(value.is_some())
}

/// Puts out the bytes of a packet or a file.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &Bytes) {
    out.extend_from_slice(bytes);
}

/// An instant or a time as microseconds; infinity for none.
#[allow(clippy::cast_precision_loss)] // instants of a page are far below 2^53 µs
pub(crate) fn micros(instant: Option<Instant>) -> f64 {
    instant.map_or(f64::INFINITY, |instant| instant.as_micros() as f64)
}
