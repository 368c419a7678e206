//! Tickets: the text with which a page has its seat back after a reload.

use parlor_proto::SessionId;
use parlor_proto::wire::handshake::{Resume, ResumeToken};
use std::fmt::Write;

/// Writes a ticket: the session and its token, in hexadecimal digits.
pub(crate) fn write(resume: &Resume) -> String {
    let mut text = format!("{:032x}.", resume.session.0);
    for byte in resume.token.0 {
        // Text takes all that is written to it.
        let _: std::fmt::Result = write!(text, "{byte:02x}");
    }
    text
}

/// Reads what [`write`] wrote.
pub(crate) fn read(text: &str) -> Option<(SessionId, ResumeToken)> {
    let (session, token) = text.split_once('.')?;
    Some((SessionId(u128::from_be_bytes(bytes(session)?)), ResumeToken(bytes(token)?)))
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}
