//! Announcing rooms.

use super::record::{Listing, properties};
use super::{LanError, Network, SERVICE};
use crate::identity::Fingerprint;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};
use parlor_proto::RoomCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rooms that one server announces at once. Every query is answered with all of them.
const ROOMS_MAX: usize = 32;
/// Time limit for the goodbye announcements.
const GOODBYE_TIME: Duration = Duration::from_millis(500);

/// Announces the rooms of a server. Cheap to clone; the announcements end with the last clone, or before with
/// [`stop`](Self::stop).
#[derive(Clone)]
pub struct Advertiser {
    shared: Arc<Shared>,
}

struct Shared {
    daemon: ServiceDaemon,
    /// The fingerprint of the server's certificate.
    fingerprint: Mutex<Fingerprint>,
    /// The server's listening address; `None` if it listens on all.
    listens: Option<IpAddr>,
    state: Mutex<State>,
}

/// What changes.
#[derive(Default)]
struct State {
    rooms: usize,
    /// Withdrawals to retry because the library was busy.
    late: Vec<String>,
}

impl Advertiser {
    /// Starts announcing for a server with this certificate. `listen` is its listening address; an
    /// unspecified one stands for all.
    ///
    /// # Errors
    /// The system refuses a socket or thread.
    pub fn start(network: Network, fingerprint: Fingerprint, listen: IpAddr) -> Result<Self, LanError> {
        let daemon = network.start()?;
        let listens = (!listen.is_unspecified()).then_some(listen);
        let state = Mutex::default();
        let fingerprint = Mutex::new(fingerprint);
        Ok(Advertiser { shared: Arc::new(Shared { daemon, fingerprint, listens, state }) })
    }

    /// Sets the certificate fingerprint for rooms announced from here on.
    pub fn set_fingerprint(&self, fingerprint: Fingerprint) {
        *self.shared.fingerprint.lock().unwrap_or_else(PoisonError::into_inner) = fingerprint;
    }

    /// Announces a room until the returned value is dropped. Rooms with a secret must not be announced.
    /// Returns `None` beyond the limit on rooms. Does not block.
    ///
    /// # Errors
    /// The library rejects the announcement.
    pub fn announce(
        &self,
        code: RoomCode,
        app: &str,
        environment: &str,
        players_max: u16,
        port: u16,
        listing: &Listing,
    ) -> Result<Option<Advertisement>, LanError> {
        let mut state = self.shared.lock();
        self.shared.retry(&mut state);
        if state.rooms >= ROOMS_MAX {
            return Ok(None);
        }
        let properties = properties(code, app, environment, players_max, self.shared.fingerprint(), listing);
        let service = self.shared.service(code, port, &properties)?;
        let name = service.get_fullname().to_owned();
        self.shared.daemon.register(service).map_err(LanError::of)?;
        // An earlier announcement of the same room would take this one back with it.
        state.late.retain(|late| *late != name);
        state.rooms += 1;
        Ok(Some(Advertisement { name, shared: Arc::clone(&self.shared) }))
    }

    /// Withdraws all announcements. Blocks for a moment until the goodbyes are sent.
    pub fn stop(&self) {
        if let Ok(stopped) = self.shared.daemon.shutdown() {
            // A receiver that misses the goodbye drops the announcement when it expires.
            let _ = stopped.recv_timeout(GOODBYE_TIME);
        }
    }
}

impl fmt::Debug for Advertiser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Advertiser").field("fingerprint", &self.shared.fingerprint()).finish_non_exhaustive()
    }
}

impl Shared {
    fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names derive from the certificate: the machine's and user's names stay private.
    fn service(
        &self,
        code: RoomCode,
        port: u16,
        properties: &[(&'static str, String)],
    ) -> Result<ServiceInfo, LanError> {
        let print = self.fingerprint().to_string();
        let server = &print[..16];
        let (name, host) = (format!("{code} {server}"), format!("parlor-{server}.local."));
        let mut service = match self.listens {
            Some(ip) => ServiceInfo::new(SERVICE, &name, &host, ip, port, properties),
            None => ServiceInfo::new(SERVICE, &name, &host, "", port, properties)
                .map(ServiceInfo::enable_addr_auto),
        }
        .map_err(LanError::of)?;
        if let Some(ip) = self.listens {
            service.set_interfaces(vec![IfKind::Addr(ip)]);
        }
        Ok(service)
    }

    fn retire(&self, name: String) {
        let mut state = self.lock();
        state.rooms = state.rooms.saturating_sub(1);
        state.late.push(name);
        self.retry(&mut state);
    }

    /// Withdraws ended announcements. If the library's queue is full, the next call tries again.
    fn retry(&self, state: &mut State) {
        state.late.retain(|name| matches!(self.daemon.unregister(name), Err(mdns_sd::Error::Again)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The thread ends with this; it says goodbye by itself.
        let _ = self.daemon.shutdown();
    }
}

/// One announcement, withdrawn when dropped.
#[must_use = "the announcement is taken back when this is dropped"]
pub struct Advertisement {
    name: String,
    shared: Arc<Shared>,
}

impl fmt::Debug for Advertisement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Advertisement").field(&self.name).finish()
    }
}

impl Drop for Advertisement {
    fn drop(&mut self) {
        self.shared.retire(std::mem::take(&mut self.name));
    }
}
