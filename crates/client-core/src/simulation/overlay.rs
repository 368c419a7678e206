//! The overlay: values of keys that a guest predicts until the host's state confirms or corrects them.

use crate::error::RoomError;
use parlor_proto::OrderedMap;
use parlor_proto::{ApiMisuse, Tick, limits};
use parlor_sync::limits::{OVERLAY_KEYS_MAX, OVERLAY_TICKS_MAX};
use parlor_sync::value::Value;
use std::collections::VecDeque;

/// Counters of the overlay, of all keys or of one.
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

/// Keys whose counts are kept, predicted or not.
const COUNTED_KEYS_MAX: usize = 4 * OVERLAY_KEYS_MAX;

/// The predicted values of a member.
#[derive(Debug)]
pub(crate) struct Overlay {
    ticks: u32,
    keys: OrderedMap<String, Key>,
    /// Of all keys, forgotten ones included.
    counted: Counts,
}

/// A key that is or was predicted.
#[derive(Debug, Default)]
struct Key {
    /// Its unconfirmed predictions, by ascending tick.
    predicted: VecDeque<(Tick, Value)>,
    counted: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    confirmed: u64,
    corrections: u64,
    expired: u64,
}

impl Counts {
    fn diagnostics(self, keys: usize, waiting: usize) -> OverlayDiagnostics {
        let Counts { confirmed, corrections, expired } = self;
        OverlayDiagnostics { keys, waiting, confirmed, corrections, expired }
    }
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay { ticks: OVERLAY_TICKS_MAX, keys: OrderedMap::new(), counted: Counts::default() }
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
        let is_predicted = self.keys.get(key).is_some_and(|key| !key.predicted.is_empty());
        if !is_predicted && self.predicted().count() >= OVERLAY_KEYS_MAX {
            let text = format!("{OVERLAY_KEYS_MAX} keys may be predicted at once");
            return Err(ApiMisuse::Bounds(text).into());
        }
        if !self.keys.contains_key(key) && self.keys.len() >= COUNTED_KEYS_MAX {
            let mut idle = self.keys.iter().filter(|(_, key)| key.predicted.is_empty());
            let idle = idle.next().map(|(name, _)| name.clone());
            idle.and_then(|name| self.keys.remove(&name));
        }
        let predicted = &mut self.keys.get_or_insert_with(key.to_owned(), Default::default).predicted;
        // A replayed step replaces its earlier prediction.
        while predicted.back().is_some_and(|(at, _)| at.since(tick) >= 0) {
            predicted.pop_back();
        }
        predicted.push_back((tick, value));
        self.expire(tick);
        Ok(())
    }

    /// The keys with predictions.
    fn predicted(&self) -> impl Iterator<Item = &Key> {
        self.keys.values().filter(|key| !key.predicted.is_empty())
    }

    fn expire(&mut self, now: Tick) {
        let (age, all) = (i64::from(self.ticks), &mut self.counted);
        for Key { predicted, counted } in self.keys.values_mut() {
            while predicted.front().is_some_and(|(tick, _)| i64::from(now.since(*tick)) >= age) {
                predicted.pop_front();
                counted.expired += 1;
                all.expired += 1;
            }
        }
    }

    /// The newest prediction of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)?.predicted.back().map(|(_, value)| value)
    }

    /// Compares predictions with the host's state, which reflects this member's inputs up to `acked`.
    pub(crate) fn settle(&mut self, acked: Tick, of_host: impl Fn(&str) -> Option<Value>) {
        let all = &mut self.counted;
        for (key, Key { predicted, counted }) in self.keys.iter_mut() {
            let mut newest = None;
            while predicted.front().is_some_and(|(tick, _)| acked.since(*tick) >= 0) {
                newest = predicted.pop_front();
            }
            match newest {
                Some((_, value)) if of_host(key).as_ref() == Some(&value) => {
                    counted.confirmed += 1;
                    all.confirmed += 1;
                }
                Some(_) => {
                    counted.corrections += 1;
                    all.corrections += 1;
                    predicted.clear();
                }
                None => {}
            }
        }
    }

    /// Counters of all keys.
    pub(crate) fn diagnostics(&self) -> OverlayDiagnostics {
        let waiting = self.predicted().map(|key| key.predicted.len()).sum();
        self.counted.diagnostics(self.predicted().count(), waiting)
    }

    /// Counters of one key.
    pub(crate) fn diagnostics_of(&self, key: &str) -> OverlayDiagnostics {
        let Some(Key { predicted, counted }) = self.keys.get(key) else {
            return OverlayDiagnostics::default();
        };
        counted.diagnostics(usize::from(!predicted.is_empty()), predicted.len())
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

    #[test]
    fn of_ever_new_keys_only_the_last_are_counted_apart() {
        let mut overlay = Overlay::default();
        for number in 0..10 * COUNTED_KEYS_MAX {
            let tick = Tick(u32::try_from(number).unwrap());
            overlay.set(&format!("{number:05}"), tick, Value::from(0i64)).unwrap();
            overlay.settle(tick, |_| Some(Value::from(0i64)));
        }
        assert_eq!(overlay.diagnostics().confirmed, 10 * COUNTED_KEYS_MAX as u64);
        assert_eq!(overlay.keys.len(), COUNTED_KEYS_MAX);
        let last = format!("{:05}", 10 * COUNTED_KEYS_MAX - 1);
        assert_eq!(overlay.diagnostics_of(&last).confirmed, 1);
    }
}
