//! A short hash by which two ends compare their state.

use parlor_proto::wire::cursor::Write;
use xxhash_rust::xxh3::Xxh3Default;

/// Returns the xxh3-64 hash of keys and their encoded values, in ascending order of keys. It does not protect
/// against deliberate collisions.
pub fn state_hash<K: AsRef<str>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> u64 {
    let mut hash = Xxh3Default::new();
    let mut head = Vec::new();
    for (key, encoded) in entries {
        let (key, encoded) = (key.as_ref(), encoded.as_ref());
        // Each part is preceded by its length, so that the boundaries of parts are unambiguous.
        head.clear();
        head.put_str(key);
        head.put_varint(encoded.len() as u64);
        hash.update(&head);
        hash.update(encoded);
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_which_part_matters() {
        assert_eq!(state_hash([("a", b"bc")]), state_hash([("a", b"bc")]));
        assert_ne!(state_hash([("a", &b"bc"[..])]), state_hash([("ab", &b"c"[..])]));
        assert_ne!(state_hash([("a", b"b")]), state_hash([("a", b"b"), ("c", b"d")]));
    }
}
