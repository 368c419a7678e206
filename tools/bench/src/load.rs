//! Rooms full of sending members, and their cost at a server.

use super::account::{CpuTime, cpu_time, cpu_time_of};
use super::args::Transport;
use super::generator::Crowd;
use super::member::{Away, MEMBERS, RATE_HZ, Wish};
use super::pace::Pace;
use super::server::Server;
use super::tally::{self, Delivery};
use anyhow::Context;
use parlor_proto::RoomCode;
use parlor_transport::discovery::ServerAddress;
use parlor_transport::inside::Inside;
use parlor_transport::quic::Dialer;
use parlor_transport::websocket;
use parlor_transport::{Fingerprint, Link, Trust};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried where nothing is measured.
const ATTEMPTS: u32 = 3;
/// Rooms that are filled at once: few enough that no server takes it for an attack.
const FILLING_MAX: usize = 4;
/// How long members send before anything counts.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long after the last message that counts its arrival is waited for.
const DRAIN: Duration = Duration::from_millis(500);

/// Reaches one server over one transport. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    dialer: Rc<Dialer>,
    transport: Transport,
    addr: SocketAddr,
    trust: Trust,
    /// The address of this machine from which it connects; any if `None`.
    source: Option<IpAddr>,
    /// The server lives in this process.
    inside: Option<Inside>,
}

impl Way {
    pub(crate) fn new(transport: Transport, addr: SocketAddr, fingerprint: Fingerprint) -> Self {
        let (dialer, trust) = (Rc::new(Dialer::new()), Trust::Fingerprint(fingerprint));
        Way { dialer, transport, addr, trust, source: None, inside: None }
    }

    /// The same, from an address of this machine, with sockets of its own.
    pub(crate) fn at_source(&self, transport: Transport, source: IpAddr) -> Self {
        let dialer = Rc::new(Dialer::from_source(source));
        Way { dialer, transport, source: Some(source), ..self.clone() }
    }

    /// The same, to the shard or node of this machine that a redirect names.
    ///
    /// # Errors
    /// It names another machine, or nothing that can be trusted.
    pub(crate) fn redirected(&self, to: &str) -> anyhow::Result<Self> {
        let elsewhere = || format!("the server redirects to {to:?}, not to a port of this machine");
        let at = |port| SocketAddr::new(self.addr.ip(), port);
        if let Some(port) = to.strip_prefix(':') {
            return Ok(Way { addr: at(port.parse().ok().with_context(elsewhere)?), ..self.clone() });
        }
        let node: ServerAddress = to.parse().with_context(elsewhere)?;
        let fingerprint = node.fingerprint.filter(|_| node.is_loopback()).with_context(elsewhere)?;
        Ok(Way { addr: at(node.port), trust: Trust::Fingerprint(fingerprint), ..self.clone() })
    }

    /// Into a server of this process, without a socket.
    pub(crate) fn inside(inside: &Inside, addr: SocketAddr, fingerprint: Fingerprint) -> Self {
        Way { inside: Some(inside.clone()), ..Way::new(Transport::Memory, addr, fingerprint) }
    }

    /// Connects, after a failure again: filling rooms is no part of any measurement, and a busy machine may be late.
    ///
    /// # Errors
    /// Why no link came to be the last time.
    pub(crate) async fn connect_at_last(&self) -> anyhow::Result<Link> {
        for _ in 1..ATTEMPTS {
            if let Ok(link) = self.connect().await {
                return Ok(link);
            }
        }
        self.connect().await
    }

    /// Connects.
    ///
    /// # Errors
    /// Why no link came to be.
    pub(crate) async fn connect(&self) -> anyhow::Result<Link> {
        let connected = if let Some(inside) = &self.inside {
            let address = inside.address().context("the server of this process has no port")?;
            inside.connect(&address).await
        } else if self.transport == Transport::Quic {
            self.dialer.connect(self.addr, "localhost", &self.trust, PATIENCE).await
        } else if self.transport == Transport::Webtransport {
            self.dialer.connect_webtransport(self.addr, "localhost", &self.trust, PATIENCE).await
        } else {
            let secure = self.transport == Transport::Wss;
            let target =
                websocket::Target { secure, addr: self.addr, host: "localhost".into(), path: "/ws".into() };
            match self.source {
                Some(source) => {
                    let stream = tcp_from(source, self.addr).await?;
                    websocket::connect_over(stream, &target, &self.trust, PATIENCE).await
                }
                None => websocket::connect(&target, &self.trust, PATIENCE).await,
            }
        };
        connected.with_context(|| format!("a member cannot connect over {}", self.transport))
    }
}

/// A TCP connection from an address of this machine.
///
/// # Errors
/// What the operating system says.
pub(crate) async fn tcp_from(source: IpAddr, to: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = if to.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
    // Ports of connections that are just over may be used again.
    socket.set_reuseaddr(true)?;
    socket.bind((source, 0).into()).with_context(|| format!("{source} is no address of this machine"))?;
    let connecting = timeout(PATIENCE, socket.connect(to)).await;
    Ok(connecting.context("the server takes no connection in time")??)
}

/// How the members of a room come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// One creates it, the others join by its code.
    ByCode,
    /// Each names it in its first datagram.
    ByDatagram,
}

/// Fills the rooms with these numbers with `members` each, and gives the codes of those that have one.
///
/// # Errors
/// Why a member did not get its seat.
pub(crate) async fn fill(
    crowd: &Crowd,
    way: &Way,
    manner: Manner,
    rooms: Range<u32>,
    members: u16,
) -> anyhow::Result<Vec<RoomCode>> {
    let mut filling: JoinSet<anyhow::Result<Option<RoomCode>>> = JoinSet::new();
    let mut codes = Vec::new();
    for room in rooms {
        if filling.len() == FILLING_MAX
            && let Some(filled) = filling.join_next().await
        {
            codes.extend(filled.context("filling a room failed")??);
        }
        let (crowd, way) = (crowd.clone(), way.clone());
        filling.spawn_local(async move { fill_room(&crowd, &way, manner, room, members).await });
    }
    while let Some(filled) = filling.join_next().await {
        codes.extend(filled.context("filling a room failed")??);
    }
    Ok(codes)
}

async fn fill_room(
    crowd: &Crowd,
    way: &Way,
    manner: Manner,
    room: u32,
    members: u16,
) -> anyhow::Result<Option<RoomCode>> {
    let (mut way, mut code) = (way.clone(), None::<RoomCode>);
    for _ in 0..members {
        let wish = match (manner, code) {
            (Manner::ByDatagram, _) => Wish::datagrams(room, members),
            (Manner::ByCode, None) => Wish::create(room, members),
            (Manner::ByCode, Some(code)) => Wish::join(room, members, code),
        };
        code = seat(crowd, &mut way, wish).await?;
    }
    Ok(code)
}

/// Takes a seat, by a redirect if the room is at another shard or node, and gives the room's code. `way` leads to the
/// room from then on.
async fn seat(crowd: &Crowd, way: &mut Way, wish: Wish) -> anyhow::Result<Option<RoomCode>> {
    let first = crowd.seat(way.connect_at_last().await?, wish.clone()).await;
    let seated = match first {
        Err(error) => match error.downcast_ref() {
            Some(Away::Elsewhere(address)) => {
                *way = way.redirected(address)?;
                crowd.seat(way.connect_at_last().await?, wish).await?
            }
            _ => return Err(error),
        },
        Ok(seated) => seated,
    };
    Ok(seated.code)
}

/// What was measured of one load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    /// What came of the messages.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The server's processor time for each arrival.
    pub server_cpu_us_per_delivered_message: Option<f64>,
    /// How both ends used their cores.
    #[serde(flatten)]
    pub usage: Usage,
    /// Members that were lost meanwhile.
    pub members_lost: usize,
    /// Why the figures count for nothing, if they do.
    pub void: Option<String>,
    /// What both ends spent.
    #[serde(skip)]
    pub spent: Spent,
}

/// How the members of a load send, and for how long it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Rooms that are filled.
    pub rooms: u32,
    /// How they send.
    pub pace: Pace,
    /// What their phases are drawn from.
    pub seed: u64,
    /// How long it is measured.
    pub span: Duration,
}

impl Plan {
    /// Arrivals that the plan has, with some to spare.
    fn arrivals(&self) -> usize {
        let members = f64::from(self.rooms) * f64::from(MEMBERS);
        let arrivals = members * f64::from(MEMBERS - 1) * f64::from(RATE_HZ) * self.span.as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a capacity, far below 2⁵³"
        )]
        let arrivals = (arrivals * 1.1) as usize + 1_024;
        arrivals
    }
}

/// A relay that runs, and how rooms are made in it.
#[derive(Clone)]
pub(crate) struct Target {
    /// The way to it.
    pub way: Way,
    /// How its rooms come to be.
    pub manner: Manner,
    /// Its process.
    pub pid: u32,
}

impl Target {
    /// Rooms of a Parlor server.
    ///
    /// # Errors
    /// The server has not said how it is trusted.
    pub(crate) async fn server(server: &Server, transport: Transport) -> anyhow::Result<Self> {
        let fingerprint = match transport {
            Transport::Webtransport => server.web_fingerprint().await?,
            _ => server.fingerprint()?,
        };
        let way = Way::new(transport, server.addr(), fingerprint);
        Ok(Target { way, manner: Manner::ByCode, pid: server.pid() })
    }
}

/// Fills rooms, the same number at each target, lets all members send, and measures. `probe` is called at both ends of
/// the window. All members leave at the end.
///
/// # Errors
/// What kept it from being measured.
pub(crate) async fn measure<T>(
    targets: &[Target],
    plan: &Plan,
    probe: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<(Measured, [T; 2])> {
    let crowd = Crowd::new()?;
    let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
    let mut filled = 0;
    for (target, count) in targets.iter().zip(1..) {
        let until = plan.rooms * count / u32::try_from(targets.len())?;
        fill(&crowd, &target.way, target.manner, filled..until, MEMBERS).await?;
        filled = until;
    }
    crowd.start_sending(f32::from(RATE_HZ), plan.pace, plan.seed);
    sleep(WARM_UP).await;
    let before = probe().await?;
    crowd.start_counting(plan.arrivals());
    let began = Instant::now();
    let spent = Spent::so_far_of(&pids)?;
    sleep(plan.span).await;
    crowd.stop_counting();
    let spent = Spent::so_far_of(&pids)?.since(spent, began.elapsed());
    let after = probe().await?;
    sleep(DRAIN).await;
    let (tally, lost) = crowd.take_tally();
    crowd.leave_all();
    Ok((evaluate(tally.into_delivery(), &lost, spent), [before, after]))
}

/// Processor time of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub server: CpuTime,
    pub generator: CpuTime,
    pub took: Duration,
}

impl Spent {
    /// What both have had since they began.
    ///
    /// # Errors
    /// The server is gone.
    pub(crate) fn so_far(server: u32) -> anyhow::Result<Self> {
        Self::so_far_of(&[server])
    }

    /// The same for several servers, whose times are added.
    ///
    /// # Errors
    /// One of them is gone.
    pub(crate) fn so_far_of(servers: &[u32]) -> anyhow::Result<Self> {
        let mut server = CpuTime::default();
        for pid in servers {
            server.add(cpu_time(*pid)?);
        }
        Ok(Spent { server, generator: cpu_time(std::process::id())?, took: Duration::ZERO })
    }

    /// What both have had since they began, where the server lives in this process: its threads have names of their own.
    ///
    /// # Errors
    /// The kernel keeps no such account.
    pub(crate) fn so_far_inside() -> anyhow::Result<Self> {
        let own = std::process::id();
        let is_servers = |name: &str| name.starts_with("parlor-") || name.starts_with("store-");
        let (server, generator) =
            (cpu_time_of(own, is_servers)?, cpu_time_of(own, |name| !is_servers(name))?);
        Ok(Spent { server, generator, took: Duration::ZERO })
    }

    /// What both have had in the time that it `took`.
    pub(crate) fn since(self, earlier: Spent, took: Duration) -> Self {
        let server = self.server.since(earlier.server);
        let generator = self.generator.since(earlier.generator);
        Spent { server, generator, took }
    }

    /// How both used their cores.
    pub(crate) fn usage(self) -> Usage {
        let percent = |time: Duration| time.as_secs_f64() * 100.0 / self.took.as_secs_f64();
        Usage {
            server_cpu_percent: percent(self.server.ran),
            server_waited_percent: percent(self.server.waited),
            generator_cpu_percent: percent(self.generator.ran),
            generator_waited_percent: percent(self.generator.waited),
        }
    }
}

/// How both ends used their cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// How much of its core the server took.
    pub server_cpu_percent: f64,
    /// How long the server's threads were ready and something else was on the core: on a quiet machine hardly ever.
    pub server_waited_percent: f64,
    /// How much of its core the generator took.
    pub generator_cpu_percent: f64,
    /// The same for the generator's thread.
    pub generator_waited_percent: f64,
}

/// What follows from what was counted.
pub(crate) fn evaluate(delivery: Delivery, lost: &[String], spent: Spent) -> Measured {
    #[expect(clippy::cast_precision_loss, reason = "counts of messages stay far below 2⁵³")]
    let delivered = delivery.messages_delivered as f64;
    let usage = spent.usage();
    let void = match lost.first() {
        Some(why) => Some(format!("{} members were lost, the first because {why}", lost.len())),
        None => tally::void(usage.generator_cpu_percent, &delivery),
    };
    let cpu_us = spent.server.ran.as_secs_f64() * 1e6;
    Measured {
        delivery,
        server_cpu_us_per_delivered_message: (delivered > 0.0).then(|| cpu_us / delivered),
        usage,
        members_lost: lost.len(),
        void,
        spent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_redirect_leads_to_another_shard_or_node_of_this_machine() {
        let way = Way::new(Transport::Wss, ([127, 0, 0, 1], 70).into(), Fingerprint([7; 32]));
        let to = way.redirected(":71").expect("it is a port");
        assert_eq!((to.addr, to.transport), (([127, 0, 0, 1], 71).into(), Transport::Wss));
        let other = Fingerprint([8; 32]);
        let to = way.redirected(&format!("127.0.0.1:72#{other}")).expect("it is a node of this machine");
        assert_eq!((to.addr, to.trust), (([127, 0, 0, 1], 72).into(), Trust::Fingerprint(other)));
        for wrong in ["127.0.0.1:71".to_owned(), ":host".to_owned(), format!("192.0.2.1:71#{other}")] {
            let error = way.redirected(&wrong).expect_err("it cannot be followed").to_string();
            assert!(error.contains(&wrong), "{error}");
        }
    }

    #[test]
    fn cost_and_load_follow_from_the_time_spent() {
        let mut tally = tally::Tally::for_arrivals(8);
        tally.sent(8);
        (0..8).for_each(|_| tally.arrived(100));
        let delivery = tally.into_delivery();
        let ms = Duration::from_millis;
        let time = |ran, waited| CpuTime { ran: ms(ran), waited: ms(waited) };
        let earlier = Spent { server: time(500, 10), generator: time(700, 20), took: ms(0) };
        let later = Spent { server: time(625, 15), generator: time(950, 20), took: ms(0) };
        let measured = evaluate(delivery, &[], later.since(earlier, ms(500)));
        assert_eq!(measured.server_cpu_us_per_delivered_message, Some(15_625.0));
        let Usage { server_cpu_percent: server, generator_cpu_percent: generator, .. } = measured.usage;
        assert_eq!((server, generator), (25.0, 50.0));
        assert_eq!(
            (measured.usage.server_waited_percent, measured.usage.generator_waited_percent),
            (1.0, 0.0)
        );
        assert_eq!((measured.void, measured.members_lost), (None, 0));
        let lost = evaluate(delivery, &["it fell".to_owned()], later.since(earlier, ms(500)));
        assert!(lost.void.is_some_and(|why| why.contains("it fell")));
    }
}
