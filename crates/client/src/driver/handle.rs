//! What a room and its driver share.

use super::connect_options::ConnectOptions;
#[cfg(feature = "server")]
use super::listed::Listed;
use super::packet_log::PacketTap;
use parlor_client_core::{LoggedMoment, Moment, PacketWay, PathId, RoomCore};
use parlor_proto::{Instant, Packet, Tick};
use parlor_transport::discovery::ServerAddress;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The core, the bell between game and driver, and this process's clock.
#[derive(Debug)]
pub(super) struct Handle {
    core: Mutex<RoomCore>,
    /// The server that was reached last.
    server: Mutex<Option<ServerAddress>>,
    bell: watch::Sender<()>,
    /// Tells the driver that a claim is due at some time.
    claims: Notify,
    /// The direct paths that are tried or stand. One that is taken out is given up.
    paths: Mutex<BTreeMap<PathId, watch::Sender<()>>>,
    /// How a server of this process announces the room.
    #[cfg(feature = "server")]
    pub(super) listed: Listed,
    began: std::time::Instant,
    is_finished: Mutex<bool>,
    finish: Condvar,
    packets: OnceLock<PacketTap>,
}

impl Handle {
    pub(super) fn new(core: RoomCore, connect: &ConnectOptions) -> Self {
        #[cfg(not(feature = "server"))]
        let _ = connect;
        Handle {
            #[cfg(feature = "server")]
            listed: Listed::new(connect.listing.clone()),
            core: Mutex::new(core),
            server: Mutex::new(None),
            bell: watch::Sender::new(()),
            claims: Notify::new(),
            paths: Mutex::default(),
            began: std::time::Instant::now(),
            is_finished: Mutex::new(false),
            finish: Condvar::new(),
            packets: OnceLock::new(),
        }
    }

    /// Logs all packets from here on.
    pub(super) fn tap(&self, packets: PacketTap) {
        // A room has one log, from its begin on.
        let _ = self.packets.set(packets);
    }

    /// Logs a packet, if the room has a log.
    pub(super) fn log(&self, way: PacketWay, path: Option<PathId>, packet: &Packet) {
        if let Some(packets) = self.packets.get() {
            packets.packet(way, path, packet, self.now());
        }
    }

    /// Logs a moment of the game, if the room has a log and is open.
    pub(super) fn log_moment(&self, core: &RoomCore, moment: Moment, tick: Option<Tick>, now: Instant) {
        if let (Some(packets), Some(tick)) = (self.packets.get(), tick)
            && let Some(room_time) = core.server_time(now)
        {
            packets.moment(LoggedMoment { moment, tick, room_time }, now);
        }
    }

    /// Ends the packet log, and waits until the file is whole, or the patience is over.
    pub(super) fn finish_log(&self, patience: Duration) {
        if let Some(packets) = self.packets.get() {
            packets.finish(patience);
        }
    }

    /// The core. It is left whole even by a panic of the game's own code: what that does under the lock is done call by call.
    pub(super) fn lock(&self) -> MutexGuard<'_, RoomCore> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The direct paths, each with what tells its task of its end when it is dropped.
    pub(super) fn paths(&self) -> MutexGuard<'_, BTreeMap<PathId, watch::Sender<()>>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which server was reached.
    pub(super) fn reached(&self, server: &ServerAddress) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server.clone());
    }

    /// The server that was reached last.
    pub(super) fn server(&self) -> Option<ServerAddress> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This process's clock. It begins at one second, so that nothing is confused with the origin.
    pub(super) fn now(&self) -> Instant {
        Instant::from_millis(1_000) + self.began.elapsed()
    }

    /// Sleeps until an instant of this process's clock; for ever without one.
    pub(super) async fn sleep_until(&self, due: Option<Instant>) {
        let wait = due.map_or(Duration::MAX, |due| due.saturating_since(self.now()));
        tokio::time::sleep(wait).await;
    }

    /// Tells the driver that the core has something for it.
    pub(super) fn wake(&self) {
        self.bell.send_replace(());
    }

    /// Tells the driver's other tasks so, from the task that hears this bell. It must look at the core again before it waits.
    pub(super) fn wake_others(&self, own: &mut Bell) {
        if self.bell.receiver_count() > 1 {
            self.bell.send_replace(());
            own.0.mark_unchanged();
        }
    }

    /// Tells the driver of a claim that is due at some time. It does not listen for the bell, which rings for each packet.
    pub(super) fn note_claim(&self, core: &RoomCore) {
        if core.next_claim().is_some() {
            self.claims.notify_one();
        }
    }

    /// Waits until a claim is due, and begins it. Returns the address to dial, as the core has it.
    pub(super) async fn claim_begins(&self) -> String {
        loop {
            let due = self.lock().next_claim();
            tokio::select! {
                () = self.claims.notified(), if due.is_none() => {}
                () = self.sleep_until(due), if due.is_some() => {
                    let mut core = self.lock();
                    if core.next_claim().is_some_and(|at| at <= self.now())
                        && let Some(address) = core.claim_begins()
                    {
                        return address;
                    }
                }
            }
        }
    }

    /// Hears from here on when the core has something for the driver.
    pub(super) fn listen(&self) -> Bell {
        Bell(self.bell.subscribe())
    }

    /// Waits until the game has left.
    pub(super) async fn closed(&self) {
        let mut bell = self.listen();
        while self.lock().closed().is_none() {
            bell.rung().await;
        }
    }

    /// Says that the driver is done.
    pub(super) fn finished(&self) {
        *self.is_finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.finish.notify_all();
    }

    /// Waits until the driver is done, or the patience is.
    pub(super) fn wait_finished(&self, patience: Duration) {
        let guard = self.is_finished.lock().unwrap_or_else(PoisonError::into_inner);
        // After the patience it ends in the background, or the hub notices the silence.
        let _ = self.finish.wait_timeout_while(guard, patience, |is_finished| !*is_finished);
    }
}

/// What one task of the driver hears: that the core may have something for it.
#[derive(Debug)]
pub(super) struct Bell(watch::Receiver<()>);

impl Bell {
    /// Waits until it rings; not if it rang since this was waited for last.
    pub(super) async fn rung(&mut self) {
        // It rings as long as the room is there, which owns it.
        let _ = self.0.changed().await;
    }
}
