//! Traffic between pairs of public addresses, counted by the kernel of the simulated internet.

use crate::fault::{Fault, Outcome};
use crate::net::{Public, Switch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Sub;

/// Datagrams and TCP segments in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Their number.
    pub(crate) packets: u64,
    /// Their size, IP headers included.
    pub(crate) bytes: u64,
}

/// The counts of all pairs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<(String, String), Count>);

impl Counts {
    /// Reads the counts.
    pub(crate) fn of(internet: &Switch) -> Outcome<Counts> {
        let text = internet.space().run("nft -j list set bridge count pairs")?;
        Counts::parse(&text).ok_or_else(|| Fault::new(format!("nft's counters cannot be read: {text}")))
    }

    fn parse(text: &str) -> Option<Counts> {
        let all: Value = serde_json::from_str(text).ok()?;
        let set = all["nftables"].as_array()?.iter().find_map(|object| object.get("set"))?;
        let elements = set.get("elem").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let pair = |element: &Value| {
            let element = &element["elem"];
            let ends = element["val"]["concat"].as_array()?;
            let end = |at: usize| ends.get(at)?.as_str().map(str::to_owned);
            let counter = &element["counter"];
            let count = Count { packets: counter["packets"].as_u64()?, bytes: counter["bytes"].as_u64()? };
            Some(((end(0)?, end(1)?), count))
        };
        elements.iter().map(pair).collect::<Option<_>>().map(Counts)
    }

    /// Traffic from one address to another.
    pub(crate) fn sent(&self, from: Public, to: Public) -> Count {
        self.0.get(&(from.address(), to.address())).copied().unwrap_or_default()
    }

    /// Packets between two addresses, both ways.
    pub(crate) fn between(&self, one: Public, other: Public) -> u64 {
        self.sent(one, other).packets + self.sent(other, one).packets
    }

    /// Pairs without this address: traffic that bypassed it.
    pub(crate) fn beside(&self, one: Public) -> Vec<&(String, String)> {
        let address = one.address();
        self.0.keys().filter(|(from, to)| *from != address && *to != address).collect()
    }
}

impl Sub for Count {
    type Output = Count;

    fn sub(self, before: Count) -> Count {
        Count { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nft_prints_is_read() {
        let text = r#"{"nftables": [{"metainfo": {}}, {"set": {"name": "pairs", "elem": [{"elem": {"val": {"concat":
            ["203.0.113.2", "203.0.113.3"]}, "counter": {"packets": 2, "bytes": 62}}}]}}]}"#;
        let counts = Counts::parse(text).expect("it is as nft prints it");
        assert_eq!(counts.sent(Public(2), Public(3)), Count { packets: 2, bytes: 62 });
        assert_eq!((counts.between(Public(3), Public(2)), counts.sent(Public(3), Public(2)).packets), (2, 0));
        assert!(counts.beside(Public(3)).is_empty() && counts.beside(Public(4)).len() == 1);
        let none = r#"{"nftables": [{"metainfo": {}}, {"set": {"name": "pairs"}}]}"#;
        assert_eq!(Counts::parse(none), Some(Counts::default()));
        assert_eq!(Counts::parse("{}"), None);
    }
}
