//! Finding rooms.

use super::record::{self, LanRoom};
use super::{LanError, Network, SERVICE};
use core::fmt;
use core::net::IpAddr;
use mdns_sd::{InterfaceId, Receiver, ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent, TryRecvError};
use std::collections::BTreeMap;

/// Rooms that are kept: whoever announces more than that wants something else than to play.
const ROOMS_MAX: usize = 256;

/// What [`Discovery`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LanEvent {
    /// A room was found, or says something else of itself.
    Found(LanRoom),
    /// It is not announced any more.
    Lost(LanRoom),
    /// Nothing more will be found. This comes once, and nothing after it.
    Ended(LanError),
}

/// Looks for rooms until it is dropped. Nothing blocks: ask [`poll`](Self::poll) in each frame.
pub struct Discovery {
    daemon: ServiceDaemon,
    heard: Receiver<ServiceEvent>,
    app: Option<String>,
    /// By the name of the service.
    rooms: BTreeMap<String, LanRoom>,
    /// Rooms that are to be told as lost.
    lost: Vec<LanRoom>,
    is_over: bool,
}

impl Discovery {
    /// Begins to look for rooms of a game, or of all.
    ///
    /// # Errors
    /// The system refuses what it takes.
    pub fn start(network: Network, app: Option<&str>) -> Result<Self, LanError> {
        let daemon = network.start()?;
        let heard = daemon.browse(SERVICE).map_err(LanError::of)?;
        let app = app.map(str::to_owned);
        Ok(Discovery { daemon, heard, app, rooms: BTreeMap::new(), lost: Vec::new(), is_over: false })
    }

    /// What happened next, if anything did.
    pub fn poll(&mut self) -> Option<LanEvent> {
        loop {
            if let Some(room) = self.lost.pop() {
                return Some(LanEvent::Lost(room));
            }
            if self.is_over {
                return None;
            }
            let event = match self.heard.try_recv() {
                Ok(event) => event,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return self.listen_again(),
            };
            let told = match event {
                ServiceEvent::ServiceResolved(service) => self.found(&service),
                ServiceEvent::ServiceRemoved(_, name) => self.rooms.remove(&name).map(LanEvent::Lost),
                _ => None,
            };
            if told.is_some() {
                return told;
            }
        }
    }

    /// The library gives up on whoever has not polled for long. All that was known is as good as lost then, and is asked for again.
    fn listen_again(&mut self) -> Option<LanEvent> {
        match self.daemon.browse(SERVICE) {
            Ok(heard) => {
                self.heard = heard;
                self.lost = std::mem::take(&mut self.rooms).into_values().collect();
                self.lost.pop().map(LanEvent::Lost)
            }
            Err(mdns_sd::Error::Again) => None,
            Err(error) => {
                self.is_over = true;
                Some(LanEvent::Ended(LanError::of(error)))
            }
        }
    }

    /// The rooms that are there now.
    pub fn rooms(&self) -> impl Iterator<Item = &LanRoom> {
        self.rooms.values()
    }

    fn found(&mut self, service: &ResolvedService) -> Option<LanEvent> {
        let property = |key: &str| service.get_property_val_str(key);
        let addresses = service.addresses.iter().filter_map(reachable);
        let room = record::parse(property, service.port, addresses)?;
        if self.app.as_ref().is_some_and(|app| *app != room.app) {
            return None;
        }
        let known = self.rooms.get(&service.fullname);
        if known == Some(&room) || known.is_none() && self.rooms.len() >= ROOMS_MAX {
            return None;
        }
        self.rooms.insert(service.fullname.clone(), room.clone());
        Some(LanEvent::Found(room))
    }
}

/// An address as it was announced. This machine's own counts only from this machine: nobody else shall make a game connect to
/// what listens here.
fn reachable(address: &ScopedIp) -> Option<IpAddr> {
    let is_from_here = |interface: &InterfaceId| interface.get_addrs().iter().any(IpAddr::is_loopback);
    let is_good = match address {
        ScopedIp::V4(v4) if v4.addr().is_loopback() => v4.interface_ids().iter().any(is_from_here),
        ScopedIp::V6(v6) if v6.addr().is_loopback() => is_from_here(v6.scope_id()),
        _ => true,
    };
    is_good.then(|| address.to_ip_addr())
}

impl Drop for Discovery {
    fn drop(&mut self) {
        // The thread ends with this.
        let _ = self.daemon.shutdown();
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery")
            .field("app", &self.app)
            .field("rooms", &self.rooms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use mdns_sd::ScopedIpV4;

    fn heard_on(ip: Ipv4Addr, name: &str, index: u32) -> Option<IpAddr> {
        let interface = InterfaceId { name: name.to_owned(), index };
        reachable(&ScopedIp::V4(ScopedIpV4::new(ip, interface)))
    }

    #[test]
    fn threat_11_nobody_elsewhere_names_what_listens_on_this_machine() {
        // No interface has this number, so it is not the one within this machine.
        assert_eq!(heard_on(Ipv4Addr::LOCALHOST, "eth9", u32::MAX), None);
        let elsewhere = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!(heard_on(elsewhere, "eth9", u32::MAX), Some(elsewhere.into()));
        // Without an interface it could have come from anywhere.
        assert_eq!(reachable(&ScopedIp::from(IpAddr::from(Ipv6Addr::LOCALHOST))), None);
    }
}
