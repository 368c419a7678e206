//! The 64 bytes that members send: when they were sent, and whether they count.
//!
//! ```text
//!  mark: 1 byte, 0xA0 does not count, 0xA1 counts · sent: 8 bytes, µs · zeros
//! ```

use super::member::Counted;
use bytes::Bytes;
use parlor_proto::Instant;

/// Bytes of each message.
pub(crate) const MESSAGE_BYTES: usize = 64;

const MARK_IDLE: u8 = 0xA0;
const MARK_COUNTED: u8 = 0xA1;

/// A message that is sent at `now`.
pub(crate) fn write(now: Instant, counted: Counted) -> Bytes {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[0] = match counted {
        Counted::Yes => MARK_COUNTED,
        Counted::No => MARK_IDLE,
    };
    bytes[1..9].copy_from_slice(&now.as_micros().to_be_bytes());
    Bytes::copy_from_slice(&bytes)
}

/// How many µs before `now` a message was sent that counts; `None` for anything else.
pub(crate) fn read(payload: &[u8], now: Instant) -> Option<u32> {
    if payload.len() != MESSAGE_BYTES || payload[0] != MARK_COUNTED {
        return None;
    }
    let (sent, _) = payload[1..].split_first_chunk::<8>()?;
    let latency = now.saturating_since(Instant::from_micros(u64::from_be_bytes(*sent)));
    Some(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_is_counted() {
        let (sent, now) = (Instant::from_micros(1 << 40), Instant::from_micros((1 << 40) + 250));
        assert_eq!(read(&write(sent, Counted::Yes), now), Some(250));
        assert_eq!(read(&write(sent, Counted::No), now), None);
        assert_eq!(read(&[0; 4], now), None);
        assert_eq!(read(&[MARK_COUNTED; 63], now), None);
    }
}
