//! The rate control for games as a congestion controller of the QUIC library.

use crate::rate::RateControl;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use parlor_proto::time::Instant;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use std::sync::Arc;
use std::time::Instant as SystemInstant;

/// Packets up to this size carry only an acknowledgement. The library does not count them as in flight, and
/// they do not satisfy the floor.
const ACK_ALONE_BYTES_MAX: u64 = 64;

/// Creates the controller of each path.
#[derive(Debug)]
pub(super) struct ForGames;

impl ControllerFactory for ForGames {
    fn build(self: Arc<Self>, now: SystemInstant, current_mtu: u16) -> Box<dyn Controller> {
        let control = RateControl::new(Instant::ZERO, current_mtu.into());
        Box::new(GameController { epoch: now, control, asked: AtomicU64::new(NEVER) })
    }
}

/// Bytes per second that a connection's path carries, according to its controller; `None` before the first
/// round trip.
pub(crate) fn bytes_per_second(controller: &dyn Controller) -> Option<u64> {
    controller.metrics().pacing_rate.map(|bits_per_second| bits_per_second / 8)
}

/// No time.
const NEVER: u64 = u64::MAX;

#[derive(Debug)]
struct GameController {
    /// The origin of the controller's time.
    epoch: SystemInstant,
    control: RateControl,
    /// When the library first asked for the window while the floor was due, in microseconds of the
    /// controller's time. If it asks again later, the packet was refused. The library passes only a shared
    /// reference here.
    asked: AtomicU64,
}

impl Clone for GameController {
    fn clone(&self) -> Self {
        let asked = AtomicU64::new(self.asked.load(Ordering::Relaxed));
        GameController { epoch: self.epoch, control: self.control.clone(), asked }
    }
}

impl GameController {
    fn at(&self, instant: SystemInstant) -> Instant {
        Instant::ZERO + instant.saturating_duration_since(self.epoch)
    }

    /// How long the floor's packet has been due without being sent.
    fn refused(&self, now: Instant, asked: u64) -> Duration {
        let is_due = asked != NEVER && self.control.is_floor_due(now);
        Duration::from_micros(if is_due { now.as_micros().saturating_sub(asked) } else { 0 })
    }
}

impl Controller for GameController {
    fn on_sent(&mut self, now: SystemInstant, bytes: u64, _last_packet_number: u64) {
        if bytes > ACK_ALONE_BYTES_MAX {
            let now = self.at(now);
            let asked = self.asked.swap(NEVER, Ordering::Relaxed);
            self.control.handle_refused(self.refused(now, asked));
            self.control.handle_sent(now, bytes);
        }
    }

    fn on_ack(
        &mut self,
        now: SystemInstant,
        sent: SystemInstant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.control.handle_ack(self.at(now), self.at(sent), bytes);
    }

    fn on_end_acks(
        &mut self,
        now: SystemInstant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.control.handle_acks_end(self.at(now), in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: SystemInstant,
        _sent: SystemInstant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let now = self.at(now);
        if lost_bytes == 0 {
            self.control.handle_marked(now);
        } else {
            self.control.handle_lost(now, lost_bytes, is_persistent_congestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.control.set_packet_bytes(new_mtu.into());
    }

    fn window(&self) -> u64 {
        // The library passes no time here. This is the clock that it uses itself.
        let now = self.at(tokio::time::Instant::now().into_std());
        let mut asked = NEVER;
        if self.control.is_floor_due(now) {
            asked = self.asked.fetch_min(now.as_micros(), Ordering::Relaxed);
        }
        self.control.window_bytes(now, self.refused(now, asked))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        // The window while the floor is not due, which would need the clock.
        metrics.congestion_window = self.control.window_bytes(Instant::ZERO, Duration::ZERO);
        metrics.pacing_rate = self.control.bytes_per_second().map(|rate| rate.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window_bytes()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::FLOOR_INTERVAL;

    const PACKET_BYTES: u64 = 968;
    const MTU: u16 = 1_452;

    /// The library's use of a controller, as far as it matters here.
    struct Library {
        controller: Box<dyn Controller>,
        under_way: u64,
    }

    impl Library {
        fn now(&self) -> SystemInstant {
            tokio::time::Instant::now().into_std()
        }

        /// Sends a packet if there is room.
        fn send(&mut self, is_told: bool) -> bool {
            let is_blocked = self.under_way + u64::from(MTU) >= self.controller.window();
            if !is_blocked {
                self.under_way += PACKET_BYTES;
                if is_told {
                    self.controller.on_sent(self.now(), PACKET_BYTES, 0);
                }
            }
            !is_blocked
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_that_is_cut_has_its_floor_though_not_all_was_told() {
        let controller = Arc::new(ForGames).build(tokio::time::Instant::now().into_std(), MTU);
        let mut library = Library { controller, under_way: 0 };
        let untold = (0_u32..).take_while(|number| library.send(number % 4 != 0)).count() / 4;
        assert!(untold > 5, "{untold}");
        let mut went = Vec::new();
        for _ in 0..500 {
            tokio::time::advance(Duration::from_millis(4)).await;
            if library.send(true) {
                went.push(library.now());
            }
        }
        let first = went[0] - (library.now() - Duration::from_secs(2));
        assert!(first < 4 * FLOOR_INTERVAL, "it rises soon: {first:?}");
        let between: Vec<Duration> = went.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(between.iter().all(|it| *it >= FLOOR_INTERVAL), "one packet at a time: {between:?}");
        assert!(between.iter().all(|it| *it < 2 * FLOOR_INTERVAL), "and then each time: {between:?}");
    }
}
