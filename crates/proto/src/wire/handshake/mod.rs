//! Hello and Resume, and the answers to them.
//!
//! ```text
//!  Hello       version min, max: 2 + 2 bytes · app: text · environment: text · capabilities: 8 bytes
//!              auth: 0 anonymous | 1 token: bytes · key fingerprint: 0 | 1, 32 bytes · name: text
//!              channels: table · schema: 8 bytes
//!              intent: 0 create, settings | 1 join, code: text, secret: 0 | 1, text
//!              | 2 resume: session, token
//!              | 3 path: 8 bytes
//!              | 4 claim: pass: bytes · token: 32 bytes · term: varint · room time: 0 | 1, varint µs
//!                order: varint
//!  settings    kind: 1 byte · code: 0 | 1, text · secret: 0 | 1, text · max players: 2 bytes · tick rate: 2 bytes
//!              host timeout: 0 | 1, varint ms · schema: bytes · label: text · keep: 0 | 1
//!  Welcome     version: 2 bytes · session: 16 bytes · capabilities: 8 bytes · room: varint · code: text
//!              kind: 1 byte · member: varint · authority: 0 hub | 1 member, varint
//!              epoch: varint · tick rate: 2 bytes · opened: varint µs · now: varint µs
//!              max players: 2 bytes
//!              message limit: varint · datagram limit: varint · keep-alive: varint ms · silence: varint ms
//!              resume: 0 | 1, token · grace: varint ms · gone: 0 | 1, varint ms · schema: bytes
//!              members: varint
//!  Redirect    address: text
//!  RetryAfter  after: varint ms · detail: text
//!  Refused     reason: 1 byte · what belongs to it
//!  Resume      session: 16 bytes · token: 32 bytes
//!  Resumed     token: 32 bytes
//!  Seat        term: varint · uid: 16 bytes · pass: bytes · hedge: varint ms
//!              elsewhere: varint, for each: text
//! ```
//!
//! The first two fields of Hello and the whole of Refused keep their layout in every version, so that two
//! builds without a common version can still report that.

pub mod capability;
mod hello;
mod rejection;
mod resume;
mod seat;
mod welcome;

pub use hello::{Auth, Hello, Intent, RoomKind, RoomSettings};
pub use rejection::{Redirect, Refusal, RetryAfter};
pub use resume::{Resume, ResumeRefusal, ResumeToken, Resumed};
pub use seat::{Claim, Seat};
pub use welcome::{Authority, Limits, Welcome};

use super::cursor::{ReadError, Reader};
use crate::code::RoomCode;
use crate::time::TickRate;

fn read_code(body: &mut Reader) -> Result<RoomCode, ReadError> {
    let text = body.str_max("room code", crate::code::MATCH_ID_LEN)?;
    // People type codes in any case; on the wire they are upper case.
    text.parse()
        .ok()
        .filter(|code: &RoomCode| code.as_str() == text)
        .ok_or(ReadError::OutOfRange { field: "room code" })
}

fn read_tick_rate(body: &mut Reader) -> Result<TickRate, ReadError> {
    TickRate::new(body.u16()?).ok_or(ReadError::OutOfRange { field: "tick rate" })
}
