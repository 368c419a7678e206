//! The light overlay: values of keys that a member has put in their place itself, until the host's word is there.

use super::error::RoomError;
use super::room::{Joined, RoomCore};
use super::shared::Shared;
use parlor_proto::{ApiMisuse, Tick, limits};
use parlor_sync::limits::{OVERLAY_KEYS_MAX, OVERLAY_TICKS_MAX};
use parlor_sync::value::{Value, from_value, to_value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};

/// What the overlay counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayDiagnostics {
    /// Keys that are predicted.
    pub keys: usize,
    /// Predictions that wait for the host's word, of all keys.
    pub waiting: usize,
    /// Predictions that the host's word was equal to.
    pub confirmed: u64,
    /// Predictions that it was not: what was predicted after them went, too.
    pub corrections: u64,
    /// Predictions that were given up because no word came.
    pub expired: u64,
}

/// The predicted values of a member.
#[derive(Debug)]
pub(super) struct Overlay {
    ticks: u32,
    keys: BTreeMap<String, VecDeque<(Tick, Value)>>,
    counted: OverlayDiagnostics,
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay { ticks: OVERLAY_TICKS_MAX, keys: BTreeMap::new(), counted: OverlayDiagnostics::default() }
    }
}

impl Overlay {
    fn set(&mut self, key: &str, tick: Tick, value: Value) -> Result<(), RoomError> {
        if key.is_empty() || key.len() > limits::STATE_KEY_BYTES_MAX {
            let text = format!("a key has 1 to {} bytes", limits::STATE_KEY_BYTES_MAX);
            return Err(ApiMisuse::Bounds(text).into());
        }
        if !self.keys.contains_key(key) && self.keys.len() >= OVERLAY_KEYS_MAX {
            let text = format!("{OVERLAY_KEYS_MAX} keys may be predicted at once");
            return Err(ApiMisuse::Bounds(text).into());
        }
        let predicted = self.keys.entry(key.to_owned()).or_default();
        // A step that is run again says again what it says.
        while predicted.back().is_some_and(|(at, _)| at.since(tick) >= 0) {
            predicted.pop_back();
        }
        predicted.push_back((tick, value));
        self.expire(tick);
        Ok(())
    }

    fn expire(&mut self, now: Tick) {
        let (age, counted) = (i64::from(self.ticks), &mut self.counted);
        for predicted in self.keys.values_mut() {
            while predicted.front().is_some_and(|(tick, _)| i64::from(now.since(*tick)) >= age) {
                predicted.pop_front();
                counted.expired += 1;
            }
        }
        self.keys.retain(|_, predicted| !predicted.is_empty());
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)?.back().map(|(_, value)| value)
    }

    /// The host has used this member's inputs up to `acked`, and the state is what came of them.
    fn settle(&mut self, acked: Tick, of_host: impl Fn(&str) -> Option<Value>) {
        let counted = &mut self.counted;
        for (key, predicted) in &mut self.keys {
            let mut newest = None;
            while predicted.front().is_some_and(|(tick, _)| acked.since(*tick) >= 0) {
                newest = predicted.pop_front();
            }
            match newest {
                Some((_, value)) if of_host(key).as_ref() == Some(&value) => counted.confirmed += 1,
                Some(_) => {
                    counted.corrections += 1;
                    predicted.clear();
                }
                None => {}
            }
        }
        self.keys.retain(|_, predicted| !predicted.is_empty());
    }
}

/// For a game: predicted values of keys.
impl RoomCore {
    /// For how many ticks a prediction stands while the host's word does not come, 1 to [`OVERLAY_TICKS_MAX`]; that many if not
    /// said, which is what any prediction here is kept for.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or it is out of its bounds.
    pub fn configure_prediction(&mut self, ticks: u32) -> Result<(), RoomError> {
        if !(1..=OVERLAY_TICKS_MAX).contains(&ticks) {
            let text = format!("a prediction stands for 1 to {OVERLAY_TICKS_MAX} ticks, not for {ticks}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        self.open("configure predictions")?.1.overlay.ticks = ticks;
        Ok(())
    }

    /// Says what a key will be once the host has used this player's input of the step that was run last:
    /// [`predicted`](Self::predicted) gives it at once. When the host's word for that step is there, the two are compared. On the
    /// host it does nothing: what it sets is so.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or there would be too many keys.
    pub fn set_predicted<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        let value = to_value(value)?;
        let (_, joined) = self.open("predict a key")?;
        if joined.is_host() {
            return Ok(());
        }
        let tick = joined.step().tick;
        joined.overlay.set(key, tick, value)
    }

    /// The value of a key as this member predicted it last; where there is no prediction, what [`get`](Self::get) gives.
    ///
    /// # Errors
    /// [`RoomError::Value`] if it is not as the type wants it.
    pub fn predicted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RoomError> {
        match self.joined.as_ref().and_then(|joined| joined.overlay.get(key)) {
            Some(value) => Ok(Some(from_value(value)?)),
            None => self.get(key),
        }
    }

    /// What the predictions of keys came to.
    #[must_use]
    pub fn prediction_diagnostics(&self) -> OverlayDiagnostics {
        let Some(joined) = &self.joined else { return OverlayDiagnostics::default() };
        let overlay = &joined.overlay;
        OverlayDiagnostics {
            keys: overlay.keys.len(),
            waiting: overlay.keys.values().map(VecDeque::len).sum(),
            ..overlay.counted
        }
    }
}

impl Joined {
    /// Compares what was predicted with what came.
    pub(super) fn settle_overlay(&mut self) {
        if let Shared::Member(member) = &self.shared
            && let Some(acked) = member.keys().input_ack()
        {
            self.overlay.settle(acked, |key| self.shared.get(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_stands_until_the_hosts_word_or_its_age() {
        let mut overlay = Overlay::default();
        for tick in 10..20u32 {
            overlay.set("tank", Tick(tick), Value::from(i64::from(tick))).unwrap();
        }
        let host = |value: i64| move |_: &str| Some(Value::from(value));
        assert_eq!(overlay.get("tank"), Some(&Value::from(19i64)));
        overlay.settle(Tick(14), host(14));
        assert_eq!((overlay.counted.confirmed, overlay.get("tank")), (1, Some(&Value::from(19i64))));
        overlay.settle(Tick(14), host(99));
        assert_eq!(overlay.counted.corrections, 0, "nothing new was said");
        overlay.settle(Tick(16), host(99));
        assert_eq!((overlay.counted.corrections, overlay.get("tank")), (1, None));
        overlay.set("tank", Tick(30), Value::from(1i64)).unwrap();
        overlay.set("mine", Tick(30 + OVERLAY_TICKS_MAX), Value::from(2i64)).unwrap();
        assert_eq!((overlay.counted.expired, overlay.get("tank")), (1, None));
        for key in 0..OVERLAY_KEYS_MAX {
            let wrong = overlay.set(&format!("key {key}"), Tick(90), Value::from(0i64)).is_err();
            assert_eq!(wrong, key + 1 == OVERLAY_KEYS_MAX, "one is there already");
        }
    }
}
