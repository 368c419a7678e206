//! Reaching a server, and staying with it.

use super::claim::claim;
use super::connect_options::{ConnectOptions, TransportPreference};
use super::failure::failure;
use super::handle::Handle;
use super::join_at;
use super::link_pump::{GOODBYE_PATIENCE, PacketEndpoint, pump};
#[cfg(feature = "server")]
use super::own_server;
use super::passport::NoTicket;
use super::paths::{Paths, Running};
use super::places::{self, Place};
use parlor_client_core::{ClosedReason, ConnectFailure, ConnectFailureKind, JoinPath, RoomCore, Wish};
use parlor_proto::wire::handshake::RetryAfter;
use parlor_proto::{Instant, Packet};
use parlor_transport::discovery::{AddressError, ServerAddress};
use parlor_transport::quic::Dialer;
use parlor_transport::websocket::{self, Target};
use parlor_transport::{ConnectError, Link, LinkSender, Trust, connect};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to be reached.
pub(super) struct Patience {
    /// Afterwards a network that blocks UDP is assumed.
    quic: Duration,
    websocket: Duration,
}

impl Patience {
    /// For the only server there is.
    const ROOM: Patience = Patience { quic: Duration::from_secs(3), websocket: Duration::from_secs(5) };
    /// For one of several, of which some may be dead.
    pub(super) const CLAIM: Patience =
        Patience { quic: Duration::from_millis(1_500), websocket: Duration::from_secs(2) };
}

/// How often a server may say that a room is elsewhere.
const REDIRECTS_MAX: usize = 3;

/// What a room reaches others by.
pub(super) struct Ways<'a> {
    dialer: &'a Dialer,
    paths: Option<&'a Paths>,
}

/// How a room's stay at a server ended.
enum Stayed {
    /// For good.
    Over,
    /// The server does not have the room, and another one is to be tried.
    PassedOver,
    /// The server says that the room is at this address.
    Redirected(String),
}

/// Drives a room from its first connection to its end.
pub(super) async fn drive(shared: Arc<Handle>, wish: Wish, connect: ConnectOptions) {
    let dialer = Arc::new(connect.conditions.clone().map_or_else(Dialer::new, Dialer::impaired));
    let wants_paths = shared.lock().wants_paths() && connect.transport != TransportPreference::WebSocket;
    let paths = wants_paths.then(|| Running::begin(Paths::new(&shared, &dialer)));
    let ways = Ways { dialer: &dialer, paths: paths.as_ref().map(|running| &*running.paths) };
    #[cfg(feature = "server")]
    let (connect, own) = match own_server::if_needed(&wish, connect).await {
        Ok(connect_and_own) => connect_and_own,
        Err(failure) => {
            fail(&shared, failure);
            return shared.finished();
        }
    };
    let places = match (wish, &connect.server) {
        _ if connect.at.is_some() => at_address(&shared, &connect).await,
        // Where it was let in before, wherever the account's server had sent it.
        (Wish::Resume { .. }, Some(server)) => {
            Ok(vec![Place::new(server.clone(), Some(JoinPath::InternetExplicit))])
        }
        (Wish::Join { code }, _) => {
            let app = shared.lock().app().to_owned();
            places::for_guest(&connect, &app, code, &connect.registry)
                .and_then(|places| only_at_home(places, &connect))
        }
        (Wish::Host { .. } | Wish::Match { .. } | Wish::Resume { .. }, _) => {
            places::for_host(&connect, &connect.registry).and_then(|places| only_at_home(places, &connect))
        }
    };
    match places {
        #[cfg(feature = "server")]
        Ok(places) if own.is_some() => {
            let announcing = async {
                if let Some(own) = own.as_ref().filter(|_| connect.lan.is_some()) {
                    own.announce(&shared.listed).await;
                }
                std::future::pending().await
            };
            tokio::select! {
                () = visit(&shared, &ways, places, &connect) => {}
                () = announcing => {}
            }
        }
        Ok(places) => visit(&shared, &ways, places, &connect).await,
        Err(failure) => fail(&shared, failure),
    }
    if let Some(paths) = paths {
        paths.end().await;
    }
    let _ = tokio::time::timeout(GOODBYE_PATIENCE, dialer.wait_idle()).await;
    #[cfg(feature = "server")]
    if let Some(own) = own {
        own.release().await;
    }
    shared.finished();
}

/// The place of a room that is known by the address of its server alone.
async fn at_address(shared: &Handle, connect: &ConnectOptions) -> Result<Vec<Place>, ConnectFailure> {
    let (app, environment) = {
        let core = shared.lock();
        (core.app().to_owned(), core.environment().to_owned())
    };
    let found = tokio::select! {
        found = join_at::find(&app, &environment, connect) => found?,
        // The failure is not told: the room is over.
        () = shared.closed() => return Ok(Vec::new()),
    };
    shared.lock().code_found(found.code);
    only_at_home(vec![Place::new(found.server, Some(JoinPath::Direct))], connect)
}

/// The places where the player is known. An account is shown to its own server alone, and to whichever that one sends the room to: whoever
/// writes an invite shall not get hold of it.
fn only_at_home(places: Vec<Place>, connect: &ConnectOptions) -> Result<Vec<Place>, ConnectFailure> {
    let Some(passport) = &connect.passport else { return Ok(places) };
    let home = passport.server();
    match places.iter().find(|place| !place.address.is_on_host_of(home)) {
        None => Ok(places),
        Some(other) => {
            let (other, home) = (&other.found.server, ServerAddress { fingerprint: None, ..home.clone() });
            let detail = format!(
                "the room is at {other}, and the account at {home}: sign in at {other}, or leave the account out"
            );
            Err(ConnectFailure { kind: ConnectFailureKind::BadAddress, detail })
        }
    }
}

/// Tries one place after the other, follows redirects, and stays where it is let in.
async fn visit(shared: &Handle, ways: &Ways<'_>, places: Vec<Place>, connect: &ConnectOptions) {
    let mut places: std::collections::VecDeque<Place> = places.into();
    let mut redirects = 0;
    let mut last = None;
    while let Some(place) = places.pop_front() {
        shared.lock().found(place.found.clone(), !places.is_empty());
        let dialled = tokio::select! {
            dialled = admit_and_dial(shared, ways, &place.address, connect) => dialled,
            () = shared.closed() => return,
        };
        match dialled {
            Ok(link) => {
                shared.reached(connect.public(&place.address));
                let address = match stay(shared, ways, link, &place.address, connect).await {
                    Stayed::Over => return,
                    Stayed::PassedOver => continue,
                    Stayed::Redirected(address) => address,
                };
                redirects += 1;
                match elsewhere(&address, &place.address) {
                    Ok(address) if redirects <= REDIRECTS_MAX => {
                        places.clear();
                        places.push_back(place.sends_to(address));
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
            Err(NoTicket::NotAsked(failure)) => last = Some(failure),
            Err(NoTicket::Refused { code, sentence }) => {
                return shared.lock().failed(ClosedReason::Account { code, sentence });
            }
            Err(NoTicket::Later { after, detail }) => {
                return shared.lock().failed(ClosedReason::RetryAfter(RetryAfter { after, detail }));
            }
        }
    }
    fail(shared, last.unwrap_or_else(|| unreachable("there was no server to try")));
}

/// Keeps a room at its server, and goes with it to another one that reopens it.
async fn stay(
    shared: &Handle,
    ways: &Ways<'_>,
    link: Link,
    address: &ServerAddress,
    connect: &ConnectOptions,
) -> Stayed {
    let (mut link, mut address, mut is_claimed) = (Some(link), address.clone(), false);
    loop {
        let to_hub = ToHub { paths: ways.paths, line: shared.lock().line(), is_claimed };
        tokio::select! {
            stayed = keep(shared, ways, (link.take(), &to_hub), address.clone(), connect) => return stayed,
            (claimed, at) = claim(shared, ways, connect) => {
                tracing::debug!(server = %at, "another server has reopened the room");
                shared.reached(&at);
                (link, address, is_claimed) = (claimed, at, true);
            }
        }
    }
}

/// Keeps a room at its server: over a link to it, and over each that follows.
async fn keep(
    shared: &Handle,
    ways: &Ways<'_>,
    (link, to_hub): (Option<Link>, &ToHub<'_>),
    address: ServerAddress,
    connect: &ConnectOptions,
) -> Stayed {
    if let Some(link) = link {
        pump(shared, link, to_hub).await;
        if !to_hub.is_present(&shared.lock()) {
            // The link of the claim goes on.
            std::future::pending::<()>().await;
        }
        if shared.lock().take_passed_over() {
            return Stayed::PassedOver;
        }
        if let Some(address) = shared.lock().take_redirect() {
            return Stayed::Redirected(address);
        }
    }
    let to_hub = ToHub { paths: to_hub.paths, line: to_hub.line, is_claimed: false };
    reconnect(shared, ways, &to_hub, address, connect).await;
    Stayed::Over
}

/// Reaches the server again each time that the connection to it is lost, as often as the room wants it.
async fn reconnect(
    shared: &Handle,
    ways: &Ways<'_>,
    to_hub: &ToHub<'_>,
    mut address: ServerAddress,
    connect: &ConnectOptions,
) {
    loop {
        tokio::select! {
            () = attempt_due(shared) => {}
            () = given_up(shared) => return,
        }
        shared.lock().attempt_begins(shared.now());
        let dialled = tokio::select! {
            dialled = admit_and_dial(shared, ways, &address, connect) => dialled,
            () = given_up(shared) => return,
        };
        match dialled {
            Ok(link) => {
                pump(shared, link, to_hub).await;
            }
            Err(NoTicket::NotAsked(failure)) => {
                tracing::debug!(kind = failure.kind.as_str(), detail = %failure.detail, "the server is not reached");
                shared.lock().attempt_failed(&failure.detail, shared.now());
            }
            Err(NoTicket::Later { after, detail }) => {
                shared.lock().attempt_put_off(&detail, after, shared.now());
            }
            Err(NoTicket::Refused { code, sentence }) => {
                let why = ClosedReason::Account { code, sentence };
                return shared.lock().attempt_refused(why, shared.now());
            }
        }
        let redirect = shared.lock().take_redirect();
        if let Some(elsewhere) = redirect.and_then(|redirect| elsewhere(&redirect, &address).ok()) {
            shared.reached(&elsewhere);
            address = elsewhere;
        }
    }
}

/// Waits until an attempt to reach the server is due. There may be none while other servers are asked.
async fn attempt_due(shared: &Handle) {
    let mut bell = shared.listen();
    loop {
        let due = {
            let core = shared.lock();
            shared.note_claim(&core);
            core.next_attempt()
        };
        if due.is_some_and(|at| at <= shared.now()) {
            return;
        }
        tokio::select! {
            () = bell.rung() => {}
            () = shared.sleep_until(due), if due.is_some() => {}
        }
    }
}

/// Lets time pass in a room without a connection, until it wants none any more.
async fn given_up(shared: &Handle) {
    let mut bell = shared.listen();
    loop {
        let due = {
            let core = shared.lock();
            if !core.is_coming_back() {
                return;
            }
            core.poll_timeout()
        };
        tokio::select! {
            () = bell.rung() => {}
            () = shared.sleep_until(due), if due.is_some() => {
                shared.lock().handle_timeout(shared.now());
                shared.wake_others(&mut bell);
            }
        }
    }
}

/// Where a redirect leads. One that names a port alone leads to the host that sent it, with the same certificate.
pub(super) fn elsewhere(redirect: &str, from: &ServerAddress) -> Result<ServerAddress, AddressError> {
    match redirect.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => Ok(ServerAddress { port, ..from.clone() }),
        _ => redirect.parse(),
    }
}

fn fail(shared: &Handle, failure: ConnectFailure) {
    tracing::debug!(kind = failure.kind.as_str(), detail = %failure.detail, "no server was reached");
    shared.lock().failed(ClosedReason::Connect(failure));
}

fn unreachable(detail: &str) -> ConnectFailure {
    ConnectFailure { kind: ConnectFailureKind::Unreachable, detail: detail.to_owned() }
}

/// Connects to a server, with a ticket in hand if it will be asked to let an account in.
async fn admit_and_dial(
    shared: &Handle,
    ways: &Ways<'_>,
    address: &ServerAddress,
    connect: &ConnectOptions,
) -> Result<Link, NoTicket> {
    if let Some(passport) = &connect.passport {
        let admission = shared.lock().next_admission();
        if let Some(admission) = admission {
            let ticket = passport.ticket(address.clone(), admission).await?;
            shared.lock().set_token(&ticket);
        }
    }
    dial(ways, address, connect, &Patience::ROOM).await.map_err(NoTicket::NotAsked)
}

/// Connects to a server by QUIC, or by WebSocket where QUIC gets no answer; to one in this process in memory.
pub(super) async fn dial(
    ways: &Ways<'_>,
    address: &ServerAddress,
    connect: &ConnectOptions,
    patience: &Patience,
) -> Result<Link, ConnectFailure> {
    // Paths begin at the socket by which the hub is reached, so a room that wants them has one.
    if let Some(inside) = connect.inside(address).filter(|_| ways.paths.is_none()) {
        return inside.connect(address).await.map_err(|error| failure(address, &error));
    }
    let trust = match (address.fingerprint, &connect.roots) {
        (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
        (None, Some(roots)) => Trust::Roots(roots.clone()),
        (None, None) => Trust::System,
    };
    let resolved =
        connect::resolve(&address.host, address.port).await.map_err(|error| failure(address, &error))?;
    let mut last = None;
    for addr in resolved {
        if connect.transport != TransportPreference::WebSocket {
            match ways.dialer.connect(addr, &address.host, &trust, patience.quic).await {
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
        if connect.transport != TransportPreference::Quic {
            let target = Target { secure: true, addr, host: address.host.clone(), path: "/ws".into() };
            let conditions = connect.conditions.as_ref();
            match websocket::connect_impaired(&target, &trust, patience.websocket, conditions).await {
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

/// The room's session with its hub.
struct ToHub<'a> {
    paths: Option<&'a Paths>,
    /// What the core says of the links that are this session's.
    line: u64,
    /// Whether the first link carries the session already.
    is_claimed: bool,
}

impl ToHub<'_> {
    /// Whether no claim has brought the room another link.
    fn is_present(&self, core: &RoomCore) -> bool {
        core.line() == self.line
    }
}

impl PacketEndpoint for ToHub<'_> {
    fn connected(&self, core: &mut RoomCore, link: &LinkSender, now: Instant) {
        if let Some(paths) = self.paths {
            paths.offer(core, link);
        }
        core.reached_at(link.remote());
        if !self.is_claimed {
            core.connected(link.kind(), now);
        }
    }

    fn carries(&self, core: &mut RoomCore, bytes_per_second: u32) {
        core.path_carries(bytes_per_second);
    }

    fn poll_packet(&self, core: &mut RoomCore, now: Instant) -> Option<Packet> {
        if self.is_present(core) { core.poll_packet(now) } else { None }
    }

    fn handle_packet(&self, core: &mut RoomCore, packet: Packet, now: Instant) {
        if self.is_present(core) {
            core.handle_packet(packet, now);
        }
    }

    fn lost(&self, core: &mut RoomCore, detail: &str, now: Instant) {
        if self.is_present(core) {
            core.disconnected(detail, now);
        }
    }

    fn is_finished(&self, core: &RoomCore) -> bool {
        !self.is_present(core) || core.is_finished()
    }

    fn goes_on(&self, core: &RoomCore) -> bool {
        !self.is_present(core) || core.is_coming_back()
    }

    fn poll_timeout(&self, core: &RoomCore) -> Option<Instant> {
        core.poll_timeout()
    }

    fn handle_timeout(&self, core: &mut RoomCore, now: Instant) {
        core.handle_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Registry, Room};
    use parlor_server::{Config, Server};
    use tokio::runtime::Runtime;

    /// Only a hang takes this long.
    const HANG: Duration = Duration::from_secs(60);

    #[test]
    fn a_room_that_lost_its_connection_comes_back_without_waiting_for_the_last_goodbye() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("registry"));
        let runtime = Runtime::new().expect("a runtime");
        let config = Config { port: 0, registry: Some(registry.clone()), ..Config::default() };
        let server = runtime.block_on(Server::start(config)).expect("a port is free");
        let mut room = Room::host("tanks").registry(registry).open();
        let began = std::time::Instant::now();
        while room.code().is_none() {
            let _ = room.poll();
            assert!(began.elapsed() < HANG, "{:?}", room.info());
            std::thread::yield_now();
        }
        let to_hub = ToHub { paths: None, line: 0, is_claimed: false };
        let now = room.shared.now();
        let mut core = room.shared.lock();
        assert!(!to_hub.goes_on(&core), "it has its connection");
        core.disconnected("the link is silent", now);
        assert!(to_hub.goes_on(&core));
        assert!(core.next_attempt().is_some(), "the first attempt is due");
        core.stop(now);
        assert!(!to_hub.goes_on(&core), "a room that is over has all time for its goodbye");
        drop(core);
        drop(room);
        runtime.block_on(server.shutdown());
    }
}
