//! For the driver: the server, its links, packets and time.

use crate::boundary::{Fault, ask, tell, whole};
use crate::room::{micros, put, put_bytes};
use crate::ticket;
use parlor_client_core::binding::{Record, unknown_word};
use parlor_client_core::{
    Admission, ClosedReason, ConnectFailure, ConnectFailureKind, Found, JoinPath, Scope,
};
use parlor_proto::stream_rate::StreamRate;
use parlor_proto::{Carrier, LinkKind, Packet};
use parlor_sync::value::Value;
use std::time::Duration;

exports! {
    /// Names the server that is tried.
    fn found(len: i32, has_more: i32) -> i32 {
        tell(len, |room, given, _| {
            let found = read_found(given.parts()?)?;
            room.core.found(found, has_more != 0);
            Ok(())
        })
    }

    /// What the next connection asks for.
    fn admission() -> i32 {
        ask(|room, out| {
            let (kind, code) = match room.core.next_admission() {
                None => return Ok(0),
                Some(Admission::Create(code)) => (1, code),
                Some(Admission::Join(code)) => (2, Some(code)),
            };
            put(out, [&Value::from(code.as_ref().map(|code| code.as_str()))])?;
            Ok(kind)
        })
    }

    /// Sets the token of the next connection.
    fn token(len: i32) -> i32 {
        tell(len, |room, given, _| {
            room.core.set_token(&given.parts::<String>()?);
            Ok(())
        })
    }

    /// Reports a link.
    fn connected(link: i32, now: f64) -> i32 {
        ask(|room, _| {
            let kind = u8::try_from(link).ok().map(LinkKind::from_wire);
            let kind = kind.filter(|kind| !matches!(kind, LinkKind::Unknown(_)));
            let kind = kind.ok_or_else(|| Fault::bad_call("there is no such kind of link"))?;
            let now = room.at(now)?;
            room.rate = StreamRate::default();
            if room.is_claim() {
                room.core.claim_connected(kind, now);
            } else {
                room.core.connected(kind, now);
            }
            Ok(())
        })
    }

    /// Takes in a packet.
    fn packet(carrier: i32, len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let carrier = match carrier {
                1 => Carrier::Datagram,
                2 => Carrier::Stream,
                3 => Carrier::Isolated,
                _ => return Err(Fault::bad_call("a carrier is 1, 2 or 3")),
            };
            let now = room.at(now)?;
            let packet = Packet { carrier, bytes: given.bytes() };
            if room.is_claim() {
                room.core.handle_claim_packet(packet, now);
            } else {
                room.core.handle_packet(packet, now);
            }
            Ok(())
        })
    }

    /// The next packet to send.
    fn next_packet(now: f64) -> i32 {
        ask(|room, out| {
            let now = room.at(now)?;
            let packet = match room.is_claim() {
                true => room.core.poll_claim_packet(now),
                false => room.core.poll_packet(now),
            };
            let Some(packet) = packet else { return Ok(0) };
            put_bytes(out, &packet.bytes);
            Ok(match packet.carrier {
                Carrier::Datagram => 1,
                Carrier::Stream => 2,
                Carrier::Isolated => 3,
            })
        })
    }

    /// Lets time pass.
    fn timeout(now: f64) -> i32 {
        ask(|room, _| {
            let now = room.at(now)?;
            room.core.handle_timeout(now);
            Ok(())
        })
    }

    /// When `timeout` is due.
    fn next_timeout() -> f64 {
        ask(|room, _| Ok(micros(room.core.poll_timeout())))
    }

    /// Reports that the link broke.
    fn disconnected(len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (detail, now) = (given.parts::<String>()?, room.at(now)?);
            if !room.claim_fails(&detail, now) {
                room.core.disconnected(&detail, now);
            }
            Ok(())
        })
    }

    /// Closes the room, because no connection could be made.
    fn failed(len: i32) -> i32 {
        tell(len, |room, given, _| {
            let failure = read_failure(given.parts()?)?;
            room.core.failed(ClosedReason::Connect(failure));
            Ok(())
        })
    }

    /// When to dial again.
    fn next_attempt() -> f64 {
        ask(|room, _| Ok(micros(room.core.next_attempt())))
    }

    /// Begins an attempt to dial.
    fn attempt_begins(now: f64) -> i32 {
        ask(|room, _| {
            let now = room.at(now)?;
            room.core.attempt_begins(now);
            Ok(())
        })
    }

    /// Reports that an attempt failed.
    fn attempt_failed(len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let (detail, now) = (given.parts::<String>()?, room.at(now)?);
            if !room.claim_fails(&detail, now) {
                room.core.attempt_failed(&detail, now);
            }
            Ok(())
        })
    }

    /// When to dial another server.
    fn next_claim() -> f64 {
        ask(|room, _| Ok(micros(room.core.next_claim())))
    }

    /// Begins a claim at another server: the next link is for it.
    fn claim_begins() -> i32 {
        ask(|room, out| {
            let server = room.core.claim_begins();
            if server.is_some() {
                room.claim = Some(room.core.line());
            }
            crate::room::put_some(out, server.map(Value::from))
        })
    }

    /// Whether the claim was granted: its server is the room's from here on.
    fn claimed() -> i32 {
        ask(|room, _| {
            let is_granted = room.claim.is_some() && !room.is_claim();
            if is_granted {
                room.claim = None;
            }
            Ok(is_granted)
        })
    }

    /// Reports that the server asks to wait before an attempt.
    fn attempt_put_off(len: i32, after_ms: f64, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let detail = given.parts::<String>()?;
            let (after, now) = (Duration::from_millis(whole(after_ms, u32::MAX.into())?), room.at(now)?);
            room.core.attempt_put_off(&detail, after, now);
            Ok(())
        })
    }

    /// Ends all attempts, because this player would not be let in.
    fn attempt_refused(len: i32, now: f64) -> i32 {
        tell(len, |room, given, _| {
            let mut why = Record::new(given.parts()?, "")?;
            let (code, sentence) = (why.text("code")?, why.text("message")?);
            let (code, sentence) = (why.need("code", code)?, why.need("message", sentence)?);
            why.end()?;
            let now = room.at(now)?;
            room.core.attempt_refused(ClosedReason::Account { code, sentence }, now);
            Ok(())
        })
    }

    /// The server to go to instead.
    fn redirect() -> i32 {
        ask(|room, out| {
            let server = room.core.take_redirect().map(Value::from);
            crate::room::put_some(out, server)
        })
    }

    /// Whether the server does not have the room.
    fn passed_over() -> i32 {
        ask(|room, _| Ok(room.core.take_passed_over()))
    }

    /// Sets what the path carries.
    fn path_carries(bytes_per_second: f64) -> i32 {
        ask(|room, _| {
            let most = f64::from(u32::MAX);
            let carries = if bytes_per_second > most { most } else { bytes_per_second.round() };
            let carries = whole(carries, u32::MAX.into())?;
            room.core.path_carries(u32::try_from(carries).unwrap_or(u32::MAX));
            Ok(())
        })
    }

    /// Reports what the socket took, for links that do not say what they carry.
    fn wrote(bytes: f64, began: f64, now: f64, waits: i32) -> i32 {
        ask(|room, _| {
            let bytes = whole(bytes, u32::MAX.into())?;
            let now = room.at(now)?;
            let began = room.past(began)?.min(now);
            room.rate.handle_written(began, now, bytes, waits != 0);
            if let Some(carries) = room.rate.bytes_per_second() {
                room.core.path_carries(u32::try_from(carries).unwrap_or(u32::MAX));
            }
            Ok(())
        })
    }

    /// Whether nothing is left to send.
    fn is_finished() -> i32 {
        ask(|room, _| {
            if !room.is_claim() {
                return Ok(room.core.is_finished());
            }
            room.claim.take_if(|_| !room.core.is_claiming());
            Ok(room.claim.is_none())
        })
    }

    /// Whether the driver is to go on dialling.
    fn is_coming_back() -> i32 {
        ask(|room, _| Ok(room.core.is_coming_back()))
    }

    /// Whether something waits to be sent that the driver does not know of.
    fn wants_driver() -> i32 {
        ask(|room, _| Ok(room.core.take_wants_driver()))
    }

    /// With what this seat can be had back.
    fn ticket() -> i32 {
        ask(|room, out| {
            let ticket = room.core.resume_proof().map(|resume| Value::from(ticket::write(&resume)));
            crate::room::put_some(out, ticket)
        })
    }
}

fn read_found(value: Value) -> Result<Found, Fault> {
    let mut record = Record::new(value, "")?;
    let server = record.text("server")?;
    let server = record.need("server", server)?;
    let found = Found {
        asked: record.text("asked")?.unwrap_or_else(|| server.clone()),
        server,
        scope: match record.text("scope")?.as_deref() {
            Some("local") => Scope::Local,
            None | Some("internet") => Scope::Internet,
            Some(word) => return Err(unknown_word("scope", word, "\"local\", \"internet\"")),
        },
        join_path: match record.text("joinPath")?.as_deref() {
            None => None,
            Some("local") => Some(JoinPath::Local),
            Some("internet_fallback") => Some(JoinPath::InternetFallback),
            Some("internet_explicit") => Some(JoinPath::InternetExplicit),
            Some("direct") => Some(JoinPath::Direct),
            Some(word) => {
                let known = "\"local\", \"internet_fallback\", \"internet_explicit\", \"direct\"";
                return Err(unknown_word("joinPath", word, known));
            }
        },
    };
    record.end()?;
    Ok(found)
}

fn read_failure(value: Value) -> Result<ConnectFailure, Fault> {
    const KINDS: [ConnectFailureKind; 8] = [
        ConnectFailureKind::NoServer,
        ConnectFailureKind::BadAddress,
        ConnectFailureKind::UnknownHost,
        ConnectFailureKind::Unreachable,
        ConnectFailureKind::Untrusted,
        ConnectFailureKind::NotParlor,
        ConnectFailureKind::NoRoom,
        ConnectFailureKind::SeveralRooms,
    ];
    let mut record = Record::new(value, "")?;
    let (word, detail) = (record.text("kind")?, record.text("detail")?);
    let (word, detail) = (record.need("kind", word)?, record.need("detail", detail)?);
    record.end()?;
    let kind = KINDS.into_iter().find(|kind| kind.as_str() == word);
    let kind = kind.ok_or_else(|| unknown_word("kind", &word, "the kinds of failure"))?;
    Ok(ConnectFailure { kind, detail })
}
