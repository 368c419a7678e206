//! Writes the kept corpus: golden vectors for `packet` and `control`, and scripts for `session`.

use parlor_fuzz::targets::op;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let vectors = fs::read_to_string(root.join("../testdata/wire.txt"))?;
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, hex)) = line.split_once(" = ") else { continue };
        let bytes = from_hex(hex);
        let group = name.split('.').next().unwrap_or(name);
        let (target, before): (_, &[u8]) = match (group, name) {
            ("to_member", "to_member.joined" | "to_member.kicked" | "to_member.presence") => {
                ("control", &[0])
            }
            ("to_hub", "to_hub.set_data" | "to_hub.kick") => ("control", &[1]),
            ("up", "up.member" | "up.members" | "up.everyone_stamped") => ("control", &[2]),
            ("down", _) => ("control", &[3]),
            ("packet", _) | ("header", "header.full") => ("packet", &[]),
            // A frame becomes a packet by the shortest header.
            (
                _,
                "hello.join_full" | "hello.create_named" | "hello.foreign" | "welcome.member" | "redirect",
            ) => ("packet", &[0]),
            (_, "retry_after" | "refused.bad_request" | "close.kicked" | "time.echo" | "fragment") => {
                ("packet", &[0])
            }
            (_, "sequenced" | "reliable" | "ordered") => ("packet", &[0]),
            _ => continue,
        };
        write(&root, target, name, &[before, &bytes].concat())?;
    }
    for (name, script) in scripts() {
        write(&root, "session", name, &script)?;
    }
    Ok(())
}

fn write(root: &Path, target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let directory = root.join("corpus").join(target);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(name), bytes)
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.bytes().filter_map(|digit| char::from(digit).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Client and server talk from here on.
fn open(kind: u8) -> Vec<u8> {
    vec![kind, op::CARRY, op::ANSWER | op::SERVER, 0, op::CARRY | op::SERVER, op::CARRY]
}

fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    const S: u8 = op::SERVER;
    let both = [op::CARRY, op::CARRY | S];
    let script = |kind: u8, then: &[&[u8]]| [open(kind), then.concat()].concat();
    // A message on each lane, the last one in fragments.
    let talk: &[u8] =
        &[op::SEND, 3, 0, 0, 20, op::SEND | S, 4, 0, 0, 20, op::SEND, 5, 0, 0, 20, op::SEND | S, 6, 1, 20, 0];
    let wait = [op::WAIT, 0, 30];
    vec![
        ("talk.quic", script(0, &[talk, &both, &wait, &both])),
        ("talk.websocket", script(1, &[talk, &both, &wait, &both])),
        ("refused", vec![0, op::CARRY, op::ANSWER | S, 1, op::CARRY | S, op::WAIT, 3, 0]),
        ("late_answer", vec![0, op::CARRY, op::WAIT, 0x20, 0, op::ANSWER | S, 0, op::CARRY | S]),
        ("leave_at_once", vec![1, op::ANSWER, op::CARRY, op::ANSWER | S, 0, op::CARRY | S]),
        (
            "resume",
            script(
                0,
                &[talk, &[op::LOSE, op::DETACH, op::ATTACH | S, 1, op::ATTACH, 1], &both, &wait, &both],
            ),
        ),
        ("timed_out", script(0, &[&[op::WAIT, 0x10, 0, op::LOSE, op::WAIT, 0x20, 0], &both])),
        ("goodbye", script(0, &[talk, &[op::ANSWER], &both])),
        (
            "garbage",
            script(0, &[&[op::FEED | S, 0, 0, 4, 1, 9, 0, 0xff, op::CARRY | S, op::FEED, 1, 0, 1, 0xe0]]),
        ),
        ("ack_of_the_future", script(1, &[&[op::FEED, 1, 0, 7, 2, 0xff, 0x7f, 0, 0, 0, 0, op::CARRY]])),
    ]
}
