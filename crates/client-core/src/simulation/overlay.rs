//! The overlay: values of keys that a guest predicts until the host's state confirms or corrects them.

use crate::error::RoomError;
use parlor_proto::{ApiMisuse, Tick, limits};
use parlor_sync::limits::{OVERLAY_KEYS_MAX, OVERLAY_TICKS_MAX};
use parlor_sync::value::Value;
use std::collections::{BTreeMap, VecDeque};

/// Counters of the overlay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayDiagnostics {
    /// Keys that are predicted.
    pub keys: usize,
    /// Unconfirmed predictions of all keys.
    pub waiting: usize,
    /// Predictions equal to the host's value.
    pub confirmed: u64,
    /// Predictions that differed from it. Later predictions of the same key were dropped too.
    pub corrections: u64,
    /// Predictions that expired without a value from the host.
    pub expired: u64,
}

/// The predicted values of a member.
#[derive(Debug)]
pub(crate) struct Overlay {
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
    /// Sets the lifetime of an unconfirmed prediction in ticks: 1 to [`OVERLAY_TICKS_MAX`].
    pub(crate) fn set_ticks(&mut self, ticks: u32) -> Result<(), RoomError> {
        if !(1..=OVERLAY_TICKS_MAX).contains(&ticks) {
            let text = format!("a prediction stands for 1 to {OVERLAY_TICKS_MAX} ticks, not for {ticks}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        self.ticks = ticks;
        Ok(())
    }

    /// Predicts a key, in a step.
    pub(crate) fn set(&mut self, key: &str, tick: Tick, value: Value) -> Result<(), RoomError> {
        if key.is_empty() || key.len() > limits::STATE_KEY_BYTES_MAX {
            let text = format!("a key has 1 to {} bytes", limits::STATE_KEY_BYTES_MAX);
            return Err(ApiMisuse::Bounds(text).into());
        }
        if !self.keys.contains_key(key) && self.keys.len() >= OVERLAY_KEYS_MAX {
            let text = format!("{OVERLAY_KEYS_MAX} keys may be predicted at once");
            return Err(ApiMisuse::Bounds(text).into());
        }
        let predicted = self.keys.entry(key.to_owned()).or_default();
        // A replayed step replaces its earlier prediction.
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

    /// The newest prediction of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)?.back().map(|(_, value)| value)
    }

    /// Compares predictions with the host's state, which reflects this member's inputs up to `acked`.
    pub(crate) fn settle(&mut self, acked: Tick, of_host: impl Fn(&str) -> Option<Value>) {
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

    pub(crate) fn diagnostics(&self) -> OverlayDiagnostics {
        OverlayDiagnostics {
            keys: self.keys.len(),
            waiting: self.keys.values().map(VecDeque::len).sum(),
            ..self.counted
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
