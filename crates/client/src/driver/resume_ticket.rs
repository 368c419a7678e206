//! What a game saves so that its player can have its seat back after the process was gone.

use parlor_proto::SessionId;
use parlor_proto::wire::handshake::{Resume, ResumeToken};
use parlor_transport::discovery::{AddressError, ServerAddress};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The secret that gets a player's seat in a room back, and where the room is: with [`Room::resume`](crate::Room::resume) another process
/// of the same game takes the seat, as long as the server keeps it.
///
/// **It is a secret.** Whoever has it has the seat, so keep it where the game keeps what nobody else may read, and do not log it: its
/// `Debug` form does not show it, its text does. Each is good for one use: after the connection was made again there is another
/// one, so ask for it anew now and then ([`Room::resume_ticket`](crate::Room::resume_ticket) costs nothing) and save it when
/// it differs. A ticket that was used before ends the session for whoever has it: two processes cannot share a seat.
///
/// ```
/// # fn main() -> Result<(), parlor::ResumeTicketError> {
/// # let text = format!("{}.{}@play.example.com:7700", "01".repeat(16), "02".repeat(32));
/// let ticket: parlor::ResumeTicket = text.parse()?;
/// assert_eq!(ticket.to_string(), text);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ResumeTicket {
    pub(super) server: ServerAddress,
    pub(super) resume: Resume,
}

/// Why a text is no resume ticket. It does not repeat the text, which may be most of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this is no resume ticket: {0}")]
pub struct ResumeTicketError(&'static str);

impl fmt::Debug for ResumeTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeTicket").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Display for ResumeTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}.", self.resume.session.0)?;
        self.resume.token.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "@{}", self.server)
    }
}

impl FromStr for ResumeTicket {
    type Err = ResumeTicketError;

    fn from_str(text: &str) -> Result<Self, ResumeTicketError> {
        let (proof, server) = text.split_once('@').ok_or(ResumeTicketError("no server stands behind @"))?;
        let (session, token) =
            proof.split_once('.').ok_or(ResumeTicketError("it has no two parts before @"))?;
        let session = bytes::<16>(session).ok_or(ResumeTicketError("its first part has no 32 digits"))?;
        let token = bytes::<32>(token).ok_or(ResumeTicketError("its second part has no 64 digits"))?;
        let server =
            server.parse().map_err(|_: AddressError| ResumeTicketError("its server has no address"))?;
        let session = SessionId(u128::from_be_bytes(session));
        Ok(ResumeTicket { server, resume: Resume { session, token: ResumeToken(token) } })
    }
}

/// So many bytes, of two digits each.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> ResumeTicket {
        let server = "[::1]:7700".parse().expect("it is an address");
        ResumeTicket { server, resume: Resume { session: SessionId(0xabc), token: ResumeToken([0x5a; 32]) } }
    }

    #[test]
    fn a_ticket_comes_back_from_its_text_and_is_not_shown_otherwise() {
        let text = ticket().to_string();
        assert_eq!(text.parse(), Ok(ticket()));
        assert!(!format!("{:?}", ticket()).contains("5a5a"));
    }

    #[test]
    fn what_is_no_ticket_is_refused_without_showing_it() {
        let text = ticket().to_string();
        for wrong in [
            &text[1..],
            &text.replace('@', "."),
            &text.replace('.', ""),
            "",
            "@",
            ".@",
            &text.replace("5a", "é5"),
        ] {
            let error = wrong.parse::<ResumeTicket>().expect_err(wrong);
            assert!(!error.to_string().contains("5a5a"), "{error}");
        }
    }
}
