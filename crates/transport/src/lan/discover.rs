//! Finding rooms.

use super::record::{self, LanRoom};
use super::{LanError, Network, SERVICE};
use core::fmt;
use core::net::IpAddr;
use mdns_sd::{InterfaceId, Receiver, ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent, TryRecvError};
use std::collections::BTreeMap;

/// Most rooms kept: a bound against floods of announcements.
const ROOMS_MAX: usize = 256;

/// An event of [`Discovery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LanEvent {
    /// A room was found, or its announcement changed.
    Found(LanRoom),
    /// The room is no longer announced.
    Lost(LanRoom),
    /// Discovery ended. This is the last event, and it comes once.
    Ended(LanError),
}

/// Looks for rooms until it is dropped. Never blocks: call [`poll`](Self::poll) in each frame.
pub struct Discovery {
    daemon: ServiceDaemon,
    heard: Receiver<ServiceEvent>,
    app: Option<String>,
    /// Rooms by service name.
    rooms: BTreeMap<String, LanRoom>,
    /// Rooms whose loss is still to be reported.
    lost: Vec<LanRoom>,
    is_over: bool,
}

impl Discovery {
    /// Starts looking for rooms of one app, or of all.
    ///
    /// # Errors
    /// The system refuses a socket or thread.
    pub fn start(network: Network, app: Option<&str>) -> Result<Self, LanError> {
        let daemon = network.start()?;
        let heard = daemon.browse(SERVICE).map_err(LanError::of)?;
        let app = app.map(str::to_owned);
        Ok(Discovery { daemon, heard, app, rooms: BTreeMap::new(), lost: Vec::new(), is_over: false })
    }

    /// Returns the next event, or `None`.
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

    /// Browses again after the library dropped a listener that did not poll for long. All known rooms count
    /// as lost then.
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

    /// Returns the rooms that are announced at present.
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

/// Returns an announced address if it is usable. Loopback counts only from this machine: another one must not
/// make a game connect to a local service.
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
        // No interface has this number, so it is not the loopback one.
        assert_eq!(heard_on(Ipv4Addr::LOCALHOST, "eth9", u32::MAX), None);
        let elsewhere = Ipv4Addr::new(10, 0, 0, 2);
        assert_eq!(heard_on(elsewhere, "eth9", u32::MAX), Some(elsewhere.into()));
        // Without an interface it could have come from anywhere.
        assert_eq!(reachable(&ScopedIp::from(IpAddr::from(Ipv6Addr::LOCALHOST))), None);
    }
}
