//! The payload of a hint, and the order in which a sender's hints arrive.
//!
//! ```text
//! seal: 43 characters, the HMAC of the rest in base64url · {"node", "start", "number", "at_ms", "hint"}
//! ```
//!
//! The key of the seal is the store's. A payload of a stranger, or of another cluster on the same carrier, has no
//! such seal and is ignored (threat 40).

use super::Hint;
use core::time::Duration;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Length of a seal.
const SEAL_LEN: usize = 43;
/// Maximum length of a payload of any carrier.
pub(super) const PAYLOAD_MAX: usize = 64 * 1024;
/// Age at which a hint is ignored: carriers may hold payloads back during an outage.
pub(super) const AGE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of senders whose last number is remembered.
const SENDERS_MAX: usize = 1_024;

/// The key of a cluster's bus.
#[derive(Clone, Debug)]
pub(super) struct Key(hmac::Key);

/// Who sends: a node, and which start of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    node: String,
    start: u64,
}

impl Sender {
    pub(super) fn new(node: &str, start: u64) -> Self {
        Sender { node: node.to_owned(), start }
    }
}

#[derive(Serialize)]
struct Sent<'a> {
    node: &'a str,
    start: u64,
    number: u64,
    at_ms: u64,
    hint: &'a Hint,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    node: String,
    start: u64,
    number: u64,
    at_ms: u64,
    /// Read later: a newer build's hints are counted, too.
    #[serde(borrow)]
    hint: &'a RawValue,
}

/// A received hint.
#[derive(Debug)]
pub(super) struct Opened {
    sender: Sender,
    number: u64,
    at_ms: u64,
    /// `None` if this build does not know its kind.
    pub(super) hint: Option<Hint>,
}

impl Key {
    pub(super) fn new(secret: &[u8]) -> Self {
        Key(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A name for the cluster on a carrier that others use, too.
    pub(super) fn name(&self) -> String {
        HEXLOWER.encode(&hmac::sign(&self.0, b"name").as_ref()[..8])
    }

    /// The payload of a hint. `None` for a defect of its serialization.
    pub(super) fn seal(&self, sender: &Sender, (number, at_ms): (u64, u64), hint: &Hint) -> Option<String> {
        let sent = Sent { node: &sender.node, start: sender.start, number, at_ms, hint };
        let text = serde_json::to_string(&sent).ok()?;
        let mut payload = BASE64URL_NOPAD.encode(hmac::sign(&self.0, text.as_bytes()).as_ref());
        payload.push_str(&text);
        Some(payload)
    }

    /// Opens a payload. `None` if no node of this cluster sealed it.
    pub(super) fn open(&self, payload: &[u8]) -> Option<Opened> {
        if payload.len() > PAYLOAD_MAX {
            return None;
        }
        let (seal, text) = payload.split_at_checked(SEAL_LEN)?;
        let seal = BASE64URL_NOPAD.decode(seal).ok()?;
        hmac::verify(&self.0, text, &seal).ok()?;
        let Envelope { node, start, number, at_ms, hint } = serde_json::from_slice(text).ok()?;
        let hint = serde_json::from_str(hint.get()).ok();
        Some(Opened { sender: Sender { node, start }, number, at_ms, hint })
    }
}

impl Opened {
    pub(super) fn is_of(&self, sender: &Sender) -> bool {
        self.sender == *sender
    }

    pub(super) fn is_old(&self, now_ms: u64) -> bool {
        u128::from(now_ms.saturating_sub(self.at_ms)) >= AGE_MAX.as_millis()
    }
}

/// The last number of each sender.
#[derive(Debug, Default)]
pub(super) struct Order(BTreeMap<String, (u64, u64)>);

/// What the number of a hint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the next one.
    Next,
    /// So many before it did not arrive.
    AfterGap(u64),
    /// It was heard before.
    Again,
}

impl Order {
    /// Notes the number of a hint.
    pub(super) fn note(&mut self, opened: &Opened) -> Place {
        let Opened { sender: Sender { node, start }, number, .. } = opened;
        let known = self.0.get(node).filter(|(known, _)| known == start).map(|(_, last)| *last);
        let last = known.unwrap_or(0);
        if *number <= last {
            return Place::Again;
        }
        if self.0.len() >= SENDERS_MAX && !self.0.contains_key(node) {
            // A name that is not heard of again takes no place for ever. Whom this forgets causes one sweep.
            self.0.pop_first();
        }
        self.0.insert(node.clone(), (*start, *number));
        match number - last - 1 {
            0 => Place::Next,
            // It told them before this node listened, or while it did not.
            lost => Place::AfterGap(if known.is_some() { lost } else { 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(node: &str, start: u64, number: u64) -> Opened {
        Opened { sender: Sender::new(node, start), number, at_ms: 0, hint: None }
    }

    #[test]
    fn numbers_show_gaps_and_repetitions_of_each_start_of_a_node() {
        let mut order = Order::default();
        let mut note = |node: &str, start, number| order.note(&opened(node, start, number));
        assert_eq!(note("a", 1, 1), Place::Next);
        assert_eq!(note("a", 1, 2), Place::Next);
        assert_eq!(note("a", 1, 2), Place::Again);
        assert_eq!(note("a", 1, 5), Place::AfterGap(2));
        assert_eq!(note("a", 1, 4), Place::Again);
        assert_eq!(note("b", 1, 7), Place::AfterGap(0), "what was told before is not known to be lost");
        assert_eq!(note("a", 2, 1), Place::Next);
        for other in 0..2 * SENDERS_MAX {
            note(&format!("n{other}"), 1, 1);
        }
        assert!(order.0.len() <= SENDERS_MAX);
    }

    #[test]
    fn threat_40_a_payload_that_no_node_of_the_cluster_sealed_is_not_opened() {
        let (key, sender) = (Key::new(b"the store's"), Sender::new("a", 1));
        let good = key.seal(&sender, (1, 0), &Hint::Order).unwrap();
        assert!(matches!(key.open(good.as_bytes()), Some(Opened { hint: Some(Hint::Order), .. })));
        assert!(Key::new(b"another's").open(good.as_bytes()).is_none());
        for at in 0..good.len() {
            let mut forged = good.clone().into_bytes();
            forged[at] ^= 1;
            assert!(key.open(&forged).is_none(), "byte {at}");
            assert!(key.open(&good.as_bytes()[..at]).is_none(), "cut at {at}");
        }
        assert!(key.open(&vec![b'A'; PAYLOAD_MAX + 1]).is_none());
    }

    #[test]
    fn a_hint_of_a_newer_build_is_counted_and_says_nothing() {
        let key = Key::new(b"the store's");
        let text = r#"{"node":"a","start":1,"number":3,"at_ms":5,"hint":{"brew":{"tea":1}}}"#;
        let seal = BASE64URL_NOPAD.encode(hmac::sign(&key.0, text.as_bytes()).as_ref());
        let opened = key.open(format!("{seal}{text}").as_bytes()).unwrap();
        assert!(opened.hint.is_none() && opened.number == 3);
        assert!(!opened.is_old(10_004) && opened.is_old(10_005));
    }
}
