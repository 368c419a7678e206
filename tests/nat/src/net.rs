//! Networks: an internet with machines and homes, and homes behind NATs.
//!
//! ```text
//!   machine ── switch ─┐                    ┌─ switch ── machine
//!                      gateway ─ internet ─ gateway
//!   192.168.1.0/24           203.0.113.0/24         192.168.1.0/24
//! ```
//!
//! All homes use the same private addresses, as real homes do.

use crate::fault::{Fault, Outcome};
use crate::space::Space;
use std::cell::Cell;

/// Prefix of the public addresses.
const PUBLIC: &str = "203.0.113";
/// Prefix of a home's addresses.
const PRIVATE: &str = "192.168.1";
/// Name of the bridge of a switch.
const BRIDGE: &str = "bridge";
/// Name of a machine's or gateway's interface to the switch that it is plugged to.
const UPLINK: &str = "uplink";

/// Counts the traffic between each pair of addresses.
const COUNT: &str = "\
table bridge count {
  set pairs { type ipv4_addr . ipv4_addr; flags dynamic; counter; size 4096; }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip protocol { udp, tcp } update @pairs { ip saddr . ip daddr counter }
  }
}
";

/// How a home's gateway maps ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nat {
    /// Endpoint-independent: keeps the machine's port if it is free, the same for all peers.
    Cone,
    /// Endpoint-dependent: another port for each peer.
    Symmetric,
}

/// A public address, by its last number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Public(pub(crate) u8);

impl Public {
    /// The address.
    pub(crate) fn address(self) -> String {
        format!("{PUBLIC}.{}", self.0)
    }
}

/// A switch, and the number of devices plugged into it.
#[derive(Debug)]
pub(crate) struct Switch {
    name: String,
    space: Space,
    plugged: Cell<u32>,
}

/// A cable from a switch to a device.
#[derive(Debug)]
pub(crate) struct Cable {
    switch: String,
    port: String,
}

/// A machine with one interface.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its namespace.
    pub(crate) space: Space,
    /// The cable to its switch.
    pub(crate) cable: Cable,
}

/// A home: a switch inside, and a gateway to the internet in the same box.
#[derive(Debug)]
pub(crate) struct Home {
    inside: Switch,
    at: Cell<Public>,
    /// The cable to the internet.
    pub(crate) cable: Cable,
}

impl Switch {
    /// The internet of a scenario: all machines reach each other, and traffic is counted.
    pub(crate) fn internet(scenario: &str) -> Outcome<Switch> {
        let internet = Switch::new(scenario, "net")?;
        internet.space.rules(COUNT)?;
        Ok(internet)
    }

    /// An isolated local network.
    pub(crate) fn lan(scenario: &str) -> Outcome<Switch> {
        Switch::new(scenario, "lan")
    }

    fn new(scenario: &str, name: &str) -> Outcome<Switch> {
        let space = Space::new(&format!("{scenario}-{name}"))?;
        space.ip(&format!("link add {BRIDGE} type bridge"))?;
        space.ip(&format!("link set {BRIDGE} up"))?;
        Ok(Switch { name: scenario.to_owned(), space, plugged: Cell::new(0) })
    }

    /// Plugs a public machine to the internet.
    pub(crate) fn public(&self, at: Public) -> Outcome<Machine> {
        let space = Space::new(&format!("{}-{}", self.name, at.0))?;
        let cable = self.plug(&space, &at.address())?;
        Ok(Machine { space, cable })
    }

    /// Plugs a machine to a local network.
    pub(crate) fn machine(&self, number: u8) -> Outcome<Machine> {
        let space = Space::new(&format!("{}-m{number}", self.name))?;
        let cable = self.plug(&space, &format!("{PRIVATE}.{number}"))?;
        space.ip(&format!("route add default via {PRIVATE}.1 dev {UPLINK}"))?;
        Ok(Machine { space, cable })
    }

    /// Plugs a home to the internet.
    pub(crate) fn home(&self, name: &str, nat: Nat, at: Public) -> Outcome<Home> {
        let inside = Switch::new(&format!("{}-{name}", self.name), "gateway")?;
        let gateway = &inside.space;
        gateway.ip(&format!("addr add {PRIVATE}.1/24 dev {BRIDGE}"))?;
        gateway.run("sysctl -q -w net.ipv4.ip_forward=1")?;
        gateway.rules(&nat.rules())?;
        let cable = self.plug(gateway, &at.address())?;
        Ok(Home { inside, at: Cell::new(at), cable })
    }

    fn plug(&self, space: &Space, address: &str) -> Outcome<Cable> {
        let port = format!("port{}", self.plugged.replace(self.plugged.get() + 1));
        let peer = space.name();
        // A secondary address stays when the first one is removed.
        space.run("sysctl -q -w net.ipv4.conf.all.promote_secondaries=1")?;
        self.space.ip(&format!("link add {port} type veth peer name {UPLINK} netns {peer}"))?;
        self.space.ip(&format!("link set {port} master {BRIDGE} up"))?;
        space.ip(&format!("addr add {address}/24 dev {UPLINK}"))?;
        space.ip(&format!("link set {UPLINK} up"))?;
        Ok(Cable { switch: self.space.name().to_owned(), port })
    }

    /// The namespace that counts the traffic.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }
}

impl Nat {
    /// The gateway's rules: they pass traffic from inside and the replies to it. Unsolicited packets are
    /// dropped before they leave conntrack state, as at a home's gateway.
    fn rules(self) -> String {
        let how = match self {
            Nat::Cone => "masquerade",
            Nat::Symmetric => "masquerade random,fully-random",
        };
        format!(
            "table ip nat {{
  chain postrouting {{
    type nat hook postrouting priority srcnat;
    oifname \"{UPLINK}\" {how}
  }}
}}
table inet filter {{
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname \"{UPLINK}\" ct state new drop
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    iifname \"{BRIDGE}\" accept
    ct state established,related accept
  }}
}}
"
        )
    }
}

impl Cable {
    /// Unplugs the cable.
    pub(crate) fn cut(&self) -> Outcome<()> {
        self.set("down")
    }

    /// Plugs it in again.
    pub(crate) fn mend(&self) -> Outcome<()> {
        self.set("up")
    }

    fn set(&self, state: &str) -> Outcome<()> {
        let Cable { switch, port } = self;
        let mut ip = std::process::Command::new("ip");
        crate::space::succeed(ip.args(["-n", switch, "link", "set", port, state])).map(drop)
    }
}

impl Machine {
    /// Replaces the machine's public address.
    pub(crate) fn change_address(&self, from: Public, to: Public) -> Outcome<()> {
        change(&self.space, from, to)
    }
}

impl Home {
    /// Plugs a machine to its inside.
    pub(crate) fn machine(&self, number: u8) -> Outcome<Machine> {
        self.inside.machine(number)
    }

    /// The home's public address.
    pub(crate) fn public(&self) -> Public {
        self.at.get()
    }

    /// Clears the gateway's port mappings, as a restart does.
    pub(crate) fn forget_ports(&self) -> Outcome<()> {
        self.inside.space.run("conntrack -F").map(drop)
    }

    /// Changes the gateway's address and clears its port mappings.
    pub(crate) fn change_address(&self, to: Public) -> Outcome<()> {
        change(&self.inside.space, self.at.replace(to), to)
    }

    /// The outside port of the home's only UDP flow.
    pub(crate) fn outside_port(&self, server_port: u16) -> Outcome<u16> {
        let found = self.inside.space.run(&format!("conntrack -L -p udp --orig-port-dst {server_port}"))?;
        let port = found
            .lines()
            .next()
            .and_then(|line| line.rsplit_once("dport=")?.1.split(' ').next()?.parse().ok());
        port.ok_or_else(|| {
            Fault::new(format!("the gateway knows no conversation with port {server_port}: {found:?}"))
        })
    }
}

/// Adds the one before it removes the other: the routes stay.
fn change(space: &Space, from: Public, to: Public) -> Outcome<()> {
    space.ip(&format!("addr add {}/24 dev {UPLINK}", to.address()))?;
    space.ip(&format!("addr del {}/24 dev {UPLINK}", from.address())).map(drop)
}
