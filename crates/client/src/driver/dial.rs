//! Reaching a server, and carrying packets between it and a room's core.

use super::places::{self, Place};
use super::reach::{Reach, Via};
use super::shared::Shared;
use crate::core::{ClosedReason, ConnectFailure, ConnectFailureKind, JoinPath, Wish};
use parlor_proto::{Carrier, Packet};
use parlor_transport::discovery::{AddressError, ServerAddress};
use parlor_transport::quic::Dialer;
use parlor_transport::websocket::{self, Target};
use parlor_transport::{CloseCode, ConnectError, Link, LinkSender, SendError, Trust, connect};
use std::sync::Arc;
use std::time::Duration;

/// How long QUIC may take before a network that blocks UDP is assumed.
const QUIC_PATIENCE: Duration = Duration::from_secs(3);
/// How long a WebSocket may take.
const WEBSOCKET_PATIENCE: Duration = Duration::from_secs(5);
/// How often a server may say that a room is elsewhere.
const REDIRECTS_MAX: usize = 3;
/// How long the last packets may take to leave.
const GOODBYE_PATIENCE: Duration = Duration::from_millis(500);
/// How often it is looked what the path carries.
const PATH_LOOK_EVERY: Duration = Duration::from_millis(50);
/// Packets taken at once before what they caused is sent.
const BATCH: usize = 64;

/// Drives a room from its first connection to its end.
pub(super) async fn drive(shared: Arc<Shared>, wish: Wish, reach: Reach) {
    let dialer = reach.conditions.clone().map_or_else(Dialer::new, Dialer::impaired);
    let places = match (wish, &reach.server) {
        (Wish::Resume { .. }, Some(server)) => {
            Ok(vec![Place::new(server.clone(), Some(JoinPath::InternetExplicit))])
        }
        (Wish::Join { code }, _) => places::for_guest(&reach, code, &reach.registry),
        (Wish::Host { .. } | Wish::Resume { .. }, _) => places::for_host(&reach, &reach.registry),
    };
    match places {
        Ok(places) => visit(&shared, &dialer, places, &reach).await,
        Err(failure) => fail(&shared, failure),
    }
    let _ = tokio::time::timeout(GOODBYE_PATIENCE, dialer.wait_idle()).await;
    shared.finished();
}

/// Tries one place after the other, follows redirects, and stays where it is let in.
async fn visit(shared: &Arc<Shared>, dialer: &Dialer, places: Vec<Place>, reach: &Reach) {
    let mut places: std::collections::VecDeque<Place> = places.into();
    let mut redirects = 0;
    let mut last = None;
    while let Some(place) = places.pop_front() {
        shared.lock().found(place.found.clone());
        let dialled = tokio::select! {
            dialled = dial(dialer, &place.address, reach) => dialled,
            () = shared.closed() => return,
        };
        match dialled {
            Ok(link) => {
                shared.reached(&place.address);
                carry(shared, link).await;
                let Some(address) = shared.lock().take_redirect() else {
                    return come_back(shared, dialer, place.address, reach).await;
                };
                redirects += 1;
                match elsewhere(&address, &place.address) {
                    Ok(address) if redirects <= REDIRECTS_MAX => {
                        places.clear();
                        places.push_back(Place::new(address, Some(JoinPath::InternetExplicit)));
                    }
                    Ok(_) => {
                        last =
                            Some(unreachable("the servers sent this room from one to the other in circles"))
                    }
                    Err(error) => {
                        last = Some(unreachable(&format!("the server sent this room elsewhere: {error}")))
                    }
                }
            }
            Err(failure) => last = Some(failure),
        }
    }
    fail(shared, last.unwrap_or_else(|| unreachable("there was no server to try")));
}

/// Reaches the server again each time that the connection to it is lost, as often as the room wants it.
async fn come_back(shared: &Arc<Shared>, dialer: &Dialer, mut address: ServerAddress, reach: &Reach) {
    loop {
        let Some(at) = shared.lock().next_attempt() else { return };
        tokio::select! {
            () = shared.sleep_until(Some(at)) => {}
            () = given_up(shared) => return,
        }
        shared.lock().attempt_begins(shared.now());
        let dialled = tokio::select! {
            dialled = dial(dialer, &address, reach) => dialled,
            () = given_up(shared) => return,
        };
        match dialled {
            Ok(link) => carry(shared, link).await,
            Err(failure) => {
                tracing::debug!(kind = failure.kind.as_str(), detail = %failure.detail, "the server is not reached");
                shared.lock().attempt_failed(&failure.detail, shared.now());
            }
        }
        let redirect = shared.lock().take_redirect();
        if let Some(elsewhere) = redirect.and_then(|redirect| elsewhere(&redirect, &address).ok()) {
            shared.reached(&elsewhere);
            address = elsewhere;
        }
    }
}

/// Lets time pass in a room without a connection, until it wants none any more.
async fn given_up(shared: &Shared) {
    loop {
        let due = {
            let core = shared.lock();
            if !core.is_coming_back() {
                return;
            }
            core.poll_timeout()
        };
        tokio::select! {
            () = shared.woken() => {}
            () = shared.sleep_until(due), if due.is_some() => shared.lock().handle_timeout(shared.now()),
        }
    }
}

/// Where a redirect leads. One that names a port alone leads to the host that sent it, with the same certificate.
fn elsewhere(redirect: &str, from: &ServerAddress) -> Result<ServerAddress, AddressError> {
    match redirect.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => Ok(ServerAddress { port, ..from.clone() }),
        _ => redirect.parse(),
    }
}

fn fail(shared: &Shared, failure: ConnectFailure) {
    tracing::debug!(kind = failure.kind.as_str(), detail = %failure.detail, "no server was reached");
    shared.lock().failed(ClosedReason::Connect(failure));
}

fn unreachable(detail: &str) -> ConnectFailure {
    ConnectFailure { kind: ConnectFailureKind::Unreachable, detail: detail.to_owned() }
}

/// Connects to a server by QUIC, or by WebSocket where QUIC gets no answer.
async fn dial(dialer: &Dialer, address: &ServerAddress, reach: &Reach) -> Result<Link, ConnectFailure> {
    let trust = match (address.fingerprint, &reach.roots) {
        (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
        (None, Some(roots)) => Trust::Roots(roots.clone()),
        (None, None) => Trust::System,
    };
    let resolved =
        connect::resolve(&address.host, address.port).await.map_err(|error| failure(address, &error))?;
    let mut last = None;
    for addr in resolved {
        if reach.via != Via::WebSocket {
            match dialer.connect(addr, &address.host, &trust, QUIC_PATIENCE).await {
                Ok(link) => return Ok(link),
                Err(error) => {
                    let udp_may_be_blocked = got_no_answer(&error);
                    last = Some(error);
                    if !udp_may_be_blocked {
                        continue;
                    }
                }
            }
        }
        if reach.via != Via::Quic {
            let target = Target { secure: true, addr, host: address.host.clone(), path: "/ws".into() };
            let conditions = reach.conditions.as_ref();
            match websocket::connect_impaired(&target, &trust, WEBSOCKET_PATIENCE, conditions).await {
                Ok(link) => return Ok(link),
                Err(error) => last = Some(error),
            }
        }
    }
    let error = last.expect("a name resolves to at least one address");
    Err(failure(address, &error))
}

/// Whether nothing came back: a network that blocks UDP looks like that.
fn got_no_answer(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::TimedOut { .. } | ConnectError::Unreachable { .. } | ConnectError::Failed { .. }
    )
}

fn failure(address: &ServerAddress, error: &ConnectError) -> ConnectFailure {
    let kind = match error {
        ConnectError::NameResolution { .. } => ConnectFailureKind::UnknownHost,
        ConnectError::InvalidName(_) => ConnectFailureKind::BadAddress,
        ConnectError::WrongFingerprint { .. }
        | ConnectError::UntrustedCertificate(_)
        | ConnectError::TrustUnreadable(_)
        | ConnectError::PlainBeyondLoopback { .. } => ConnectFailureKind::Untrusted,
        ConnectError::NotParlor { .. } => ConnectFailureKind::NotParlor,
        ConnectError::Refused { .. }
        | ConnectError::Unreachable { .. }
        | ConnectError::TimedOut { .. }
        | ConnectError::Busy { .. }
        | ConnectError::ClosedByPeer { .. }
        | ConnectError::Failed { .. } => ConnectFailureKind::Unreachable,
    };
    let hint = match error {
        ConnectError::UntrustedCertificate(_) if address.fingerprint.is_none() => {
            ". A development server is trusted by its fingerprint: use its invite link, or HOST:PORT#FINGERPRINT"
        }
        _ => "",
    };
    ConnectFailure { kind, detail: format!("{error}{hint}") }
}

/// Carries packets until the session or the link is over.
async fn carry(shared: &Arc<Shared>, link: Link) {
    let (sender, mut receiver) = link.split();
    shared.lock().connected(sender.kind(), shared.now());
    let mut held = None;
    let mut packets = Vec::with_capacity(BATCH);
    let mut looks_at = shared.now();
    loop {
        let due = {
            let mut core = shared.lock();
            let now = shared.now();
            if now >= looks_at {
                looks_at = now + PATH_LOOK_EVERY;
                if let Some(carries) = sender.bytes_per_second() {
                    core.path_carries(u32::try_from(carries).unwrap_or(u32::MAX));
                }
            }
            held = held.and_then(|packet| offer(&sender, packet));
            while held.is_none()
                && let Some(packet) = core.poll_packet(shared.now())
            {
                held = offer(&sender, packet);
            }
            if core.is_finished() && held.is_none() {
                break;
            }
            core.poll_timeout()
        };
        let carrier = held.as_ref().map(|packet: &Packet| packet.carrier);
        tokio::select! {
            received = receiver.recv_many(&mut packets, BATCH) => {
                let mut core = shared.lock();
                let now = shared.now();
                packets.drain(..).for_each(|packet| core.handle_packet(packet, now));
                if let Err(closed) = received {
                    core.disconnected(&closed.to_string(), now);
                    return;
                }
            }
            () = shared.woken() => {}
            () = shared.sleep_until(due), if due.is_some() => shared.lock().handle_timeout(shared.now()),
            () = sender.writable(carrier.unwrap_or(Carrier::Stream)), if carrier.is_some() => {}
        }
    }
    sender.close(CloseCode::DONE, "session over, or goes on elsewhere");
    let _ = tokio::time::timeout(GOODBYE_PATIENCE, sender.closed()).await;
}

/// Hands a packet over; gives it back if the link takes none now. One for a link that is over goes nowhere: the
/// receiving half tells of the end.
fn offer(sender: &LinkSender, packet: Packet) -> Option<Packet> {
    match sender.send(packet) {
        Ok(()) | Err(SendError::Closed(_)) => None,
        Err(SendError::NotWritable(packet)) => Some(packet),
        Err(error @ (SendError::TooLarge { .. } | SendError::NoDatagrams(_))) => {
            unreachable!("a session packs for its link: {error}")
        }
    }
}
