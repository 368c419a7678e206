//! Checks the homes' NATs themselves with plain sockets: the other scenarios rely on their behaviour.

use crate::fault::{Fault, Outcome, Seen, ensure};
use crate::member::{HUB, Workshop};
use crate::net::{Machine, Nat, Public, Switch};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time to wait for a datagram, whether one is expected or not.
const WAIT: Duration = Duration::from_millis(500);
/// Packets that each end sends to punch a hole.
const KNOCKS: usize = 3;

pub(super) fn run(_: &Workshop) -> Seen {
    let internet = Switch::internet("nats")?;
    let (observer, stranger) = (internet.public(HUB)?, internet.public(Public(2))?);
    let (near, far) = (socket(&observer)?, socket(&stranger)?);
    let mut inside = Vec::new();
    let mut homes = Vec::new();
    for (name, nat, at) in [("a", Nat::Cone, 10), ("b", Nat::Cone, 20), ("c", Nat::Symmetric, 30)] {
        let home = internet.home(name, nat, Public(at))?;
        let machine = home.machine(10)?;
        inside.push((socket(&machine)?, nat));
        homes.push((home, machine));
    }
    let mut outside = Vec::new();
    for (socket, nat) in &inside {
        let (one, other) = (seen_by(&near, HUB, socket)?, seen_by(&far, Public(2), socket)?);
        ensure((one == other) == (*nat == Nat::Cone), || {
            format!("{nat:?}: it is {one} to one and {other} to another")
        })?;
        outside.push(one);
    }
    // No machine inside has sent to this address.
    let uninvited = socket(&stranger)?;
    send(&uninvited, outside[0])?;
    ensure(!hears(&inside[0].0)?, || "a home lets in what nobody asked for".to_owned())?;
    let meet = |one: usize, other: usize| -> Outcome<bool> {
        for _ in 0..KNOCKS {
            send(&inside[one].0, outside[other])?;
            send(&inside[other].0, outside[one])?;
        }
        Ok(hears(&inside[one].0)? && hears(&inside[other].0)?)
    };
    ensure(meet(0, 1)?, || "two cone NATs cannot be punched through".to_owned())?;
    ensure(!meet(0, 2)?, || "a symmetric NAT can be punched through".to_owned())?;
    Ok(vec![
        "the cone has one port for all, the symmetric one another for each; neither lets in what was not asked for".into(),
        "a hole can be punched between two cones, and none into the symmetric one".into(),
    ])
}

fn socket(machine: &Machine) -> Outcome<UdpSocket> {
    let socket =
        machine.space.within(|| UdpSocket::bind("0.0.0.0:0"))?.map_err(Fault::during("a UDP socket"))?;
    socket.set_read_timeout(Some(WAIT)).map_err(Fault::during("a UDP socket's timeout"))?;
    Ok(socket)
}

/// The address at which an observer at `at` sees a socket.
fn seen_by(observer: &UdpSocket, at: Public, socket: &UdpSocket) -> Outcome<SocketAddr> {
    let port = observer.local_addr().map_err(Fault::during("an observer's port"))?.port();
    send(socket, format!("{}:{port}", at.address()).parse().expect("an address and a port"))?;
    let (_, from) = observer.recv_from(&mut [0; 8]).map_err(Fault::during("an observer hears nothing"))?;
    Ok(from)
}

fn send(socket: &UdpSocket, to: SocketAddr) -> Outcome<()> {
    socket.send_to(b"knock", to).map(drop).map_err(Fault::during(format_args!("a datagram to {to}")))
}

fn hears(socket: &UdpSocket) -> Outcome<bool> {
    match socket.recv_from(&mut [0; 8]) {
        Ok(_) => Ok(true),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
        {
            Ok(false)
        }
        Err(error) => Err(Fault::during("a UDP socket")(error)),
    }
}
