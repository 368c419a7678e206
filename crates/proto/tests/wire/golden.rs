//! `testdata/wire.txt` against the values in [`vectors`](crate::vectors).

use crate::vectors::vectors;
use bytes::Bytes;
use std::collections::BTreeMap;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Bytes {
    assert!(text.len().is_multiple_of(2), "{text:?}: two digits make a byte");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("it is hex"))
        .collect()
}

/// Name and bytes of each vector. Each has a comment above it.
fn file() -> BTreeMap<String, Bytes> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/wire.txt");
    let text = std::fs::read_to_string(path).expect("testdata/wire.txt is there");
    let mut vectors = BTreeMap::new();
    let mut is_explained = false;
    for line in text.lines() {
        if let Some((name, digits)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            assert!(is_explained, "{name} has no comment");
            let before = vectors.insert(name.to_owned(), from_hex(digits));
            assert_eq!(before, None, "{name} stands there twice");
        }
        is_explained = line.starts_with('#');
    }
    vectors
}

#[test]
fn the_bytes_are_what_they_always_were() {
    let mut file = file();
    let mut wrong = Vec::new();
    for (name, value) in vectors() {
        let bytes = value.encode();
        match file.remove(name) {
            Some(golden) if golden == bytes => {
                assert_eq!(value.decode_alike(golden), Some(value), "{name} comes back");
            }
            _ => wrong.push(format!("{name} = {}", hex(&bytes))),
        }
    }
    assert!(wrong.is_empty(), "testdata/wire.txt lacks these or has other bytes:\n{}", wrong.join("\n"));
    assert!(file.is_empty(), "these have no value in vectors.rs: {:?}", file.keys());
}
