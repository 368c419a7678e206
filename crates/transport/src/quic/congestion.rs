//! The rate control of games as a congestion controller of the QUIC library.

use crate::rate::RateControl;
use core::any::Any;
use parlor_proto::time::Instant;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use std::sync::Arc;
use std::time::Instant as SystemInstant;

/// Packets up to this size carry an acknowledgement alone. They are not under way in the library's sense, and a path that
/// takes them still waits for its floor.
const ACK_ALONE_BYTES_MAX: u64 = 64;

/// Makes the controller of each path.
#[derive(Debug)]
pub(super) struct ForGames;

impl ControllerFactory for ForGames {
    fn build(self: Arc<Self>, now: SystemInstant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(GameController { epoch: now, control: RateControl::new(Instant::ZERO, current_mtu.into()) })
    }
}

/// Bytes per second that a connection's path lets through, as its controller has it: `None` before the first round trip.
pub(crate) fn bytes_per_second(controller: &dyn Controller) -> Option<u64> {
    controller.metrics().pacing_rate.map(|bits_per_second| bits_per_second / 8)
}

#[derive(Clone, Debug)]
struct GameController {
    /// When the machine's time began.
    epoch: SystemInstant,
    control: RateControl,
}

impl GameController {
    fn at(&self, instant: SystemInstant) -> Instant {
        Instant::ZERO + instant.saturating_duration_since(self.epoch)
    }
}

impl Controller for GameController {
    fn on_sent(&mut self, now: SystemInstant, bytes: u64, _last_packet_number: u64) {
        if bytes > ACK_ALONE_BYTES_MAX {
            self.control.handle_sent(self.at(now), bytes);
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
        // The library gives no time here. This is the clock that it reads itself.
        self.control.window_bytes(self.at(tokio::time::Instant::now().into_std()))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        // As it is while the floor is not due, which would take the clock.
        metrics.congestion_window = self.control.window_bytes(Instant::ZERO);
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
