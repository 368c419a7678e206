//! All metrics at one moment, as text.

use super::Metrics;
use super::figures::{Figures, signed};
use super::process::Process;
use crate::access::Access;
use crate::connection_limit::ConnectionLimit;
use crate::embed::{MemoryHeld, Services};
use crate::shard::{Census, Shards};
use core::fmt;
use core::time::Duration;
use parlor_hub::Stats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;

/// The sources of the metrics. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Scraper {
    pub(crate) shards: Shards,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access: Access,
    pub(crate) tcp_limit: ConnectionLimit,
    pub(crate) quic_limit: ConnectionLimit,
    pub(crate) services: Option<Arc<dyn Services>>,
    /// When the server started, in seconds since 1970.
    pub(crate) started_s: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRooms {
    app: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfApp {
    app: String,
}

impl Scraper {
    /// Collects all metrics and writes them.
    pub(crate) async fn text(&self) -> Result<String, fmt::Error> {
        let census = self.shards.census(|app| self.metrics.app(app).to_owned()).await;
        let stats = self.shards.stats().await;
        let mut figures = Figures::default();
        rooms(&mut figures, &census);
        self.held(&mut figures, &stats);
        traffic(&mut figures, &stats);
        self.refusals(&mut figures, &stats);
        self.metrics.register(figures.registry());
        if let Some(services) = &self.services {
            services.write_figures(&mut figures).await;
        }
        self.process(&mut figures);
        let mut text = String::new();
        encode(&mut text, figures.registry())?;
        Ok(text)
    }

    /// Writes the memory that strangers can make the server hold, as counted against its bounds.
    fn held(&self, to: &mut Figures, stats: &Stats) {
        let of_services = self.services.as_ref().map_or(MemoryHeld::default(), |services| services.held());
        let held = [
            ([("what", "room_state")], stats.state_bytes as u64),
            ([("what", "unread")], of_services.unread_bytes as u64),
            ([("what", "turn_rooms")], of_services.room_bytes as u64),
            ([("what", "boards")], of_services.board_bytes as u64),
        ];
        to.gauges("parlor_held_bytes", "Memory that is held for peers, by what it is held for", held);
        let most = of_services.unread_bytes_most as u64;
        to.gauge("parlor_unread_bytes_most", "The most that was held at once of what was not read yet", most);
        let refused = [
            ([("what", "room_state")], stats.rooms_ended_for_memory),
            ([("what", "unread")], of_services.unread_refused),
        ];
        to.counters(
            "parlor_held_refused",
            "Rooms that ended, and requests that were refused, for want of memory",
            refused,
        );
    }

    fn refusals(&self, to: &mut Figures, stats: &Stats) {
        let ports = [("tcp", &self.tcp_limit), ("quic", &self.quic_limit)];
        let open = ports.map(|(port, limit)| ([("port", port)], limit.taken() as u64));
        to.gauges("parlor_port_connections", "Connections of a port, handshakes included", open);
        let away = ports.map(|(port, limit)| ([("port", port)], limit.turned_away()));
        to.counters(
            "parlor_port_turned_away",
            "Connections that were refused because there were too many",
            away,
        );
        to.gauge(
            "parlor_connections",
            "Links with a session, in a room or not yet",
            stats.connections as u64,
        );
        let refused = [
            ([("answer", "redirect")], stats.redirected),
            ([("answer", "retry_after")], stats.put_off),
            ([("answer", "refused")], stats.refused),
        ];
        to.counters("parlor_hellos_turned_away", "Hellos that were not answered with a seat", refused);
        let guesses = self.access.guesses_refused();
        to.counter(
            "parlor_guesses_refused",
            "Guesses at codes, tokens and passwords that came too often",
            guesses,
        );
    }

    fn process(&self, to: &mut Figures) {
        let Process { resident_bytes, cpu_s, open_files, open_files_max } = Process::look();
        let known = [
            ("process_resident_memory_bytes", "Memory that the process has", resident_bytes),
            ("process_open_fds", "Files and sockets that it has open", open_files),
            ("process_max_fds", "Files and sockets that it may have open", open_files_max),
            ("process_start_time_seconds", "When the server started, since 1970", Some(self.started_s)),
        ];
        for (name, help, value) in known {
            if let Some(value) = value {
                to.gauge(name, help, value);
            }
        }
        if let Some(cpu_s) = cpu_s {
            to.seconds("process_cpu_seconds", "Time that it had processors for", cpu_s);
        }
        let version = [([("version", env!("CARGO_PKG_VERSION"))], 1)];
        to.gauges("parlor_build_info", "Which version runs", version);
    }
}

fn rooms(to: &mut Figures, census: &Census) {
    let rooms = Family::<OfRooms, Gauge>::default();
    let members = Family::<OfApp, Gauge>::default();
    for ((app, kind), count) in &census.rooms {
        let of = OfRooms { app: app.clone(), kind };
        rooms.get_or_create(&of).set(signed(count.rooms));
        members.get_or_create(&OfApp { app: app.clone() }).inc_by(signed(count.members));
    }
    to.registry().register("parlor_rooms", "Rooms in memory", rooms);
    to.registry().register("parlor_members", "Members of rooms in memory", members);
    to.gauge("parlor_members_away", "Members whose connection is lost and whose seat is kept", census.away);
    let links = census.links.iter().map(|(link, count)| ([("link", *link)], *count));
    to.gauges("parlor_links", "Members that are connected, by how they are", links);
}

fn traffic(to: &mut Figures, stats: &Stats) {
    let both = |received, sent| [([("direction", "in")], received), ([("direction", "out")], sent)];
    let packets = both(stats.packets_received, stats.packets_sent);
    to.counters("parlor_packets", "Packets of sessions", packets);
    let bytes = both(stats.bytes_received, stats.bytes_sent);
    to.counters("parlor_packet_bytes", "Bytes in them, without what the network adds", bytes);
    for (name, help, value) in [
        (
            "parlor_messages_relayed",
            "Messages between members, once for each receiver",
            stats.messages_relayed,
        ),
        (
            "parlor_messages_over_budget",
            "Messages that were dropped because their sender sent too many",
            stats.over_budget,
        ),
        (
            "parlor_inputs_over_budget",
            "Inputs that were dropped because more came than steps had passed",
            stats.inputs_over_budget,
        ),
        ("parlor_messages_unreachable", "Messages to members that were gone", stats.unreachable),
        ("parlor_flush_waits", "Messages that were flushed", stats.flush_waits),
        ("parlor_host_migrations", "How often another member became a room's host", stats.migrations),
        ("parlor_resumed", "Sessions that went on over another connection", stats.resumed),
        (
            "parlor_resume_tokens_reused",
            "Sessions that were ended because a token came again",
            stats.tokens_reused,
        ),
        (
            "parlor_seats_freed_early",
            "Kept seats that were freed before the end of the grace period, because there were too many",
            stats.seats_freed_early,
        ),
    ] {
        to.counter(name, help, value);
    }
    let waited = Duration::from_micros(stats.flush_wait_us).as_secs_f64();
    to.seconds("parlor_flush_wait_seconds", "How long messages waited for their flush in all", waited);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{OPERATIONS_MAX, route};
    use hyper::StatusCode;
    use parlor_hub::RoomSummary;
    use parlor_proto::wire::handshake::RoomKind;
    use parlor_proto::{Instant, LinkKind, RoomId};
    use std::collections::BTreeSet;

    /// Returns names that break lines, end labels, or control terminals.
    fn hostile(number: u32) -> String {
        let ending = ["\n", "\"} 7\n", "\\", "\u{1b}[2J", "\r\n# EOF\n", "=,{}", ""][number as usize % 7];
        format!("{number}{ending}")
    }

    fn written(metrics: &Metrics, census: &Census) -> String {
        let mut figures = Figures::default();
        rooms(&mut figures, census);
        traffic(&mut figures, &Stats::default());
        metrics.register(figures.registry());
        let mut text = String::new();
        encode(&mut text, figures.registry()).unwrap();
        text
    }

    /// Checks each line's format, and returns the part before its value.
    fn series(text: &str) -> BTreeSet<&str> {
        assert!(text.ends_with("\n# EOF\n") && text.lines().filter(|line| *line == "# EOF").count() == 1);
        let mut all = BTreeSet::new();
        for line in text.lines() {
            if ["# HELP ", "# TYPE ", "# EOF"].iter().any(|start| line.starts_with(start)) {
                continue;
            }
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            assert!(value.parse::<f64>().is_ok() && !line.contains('\u{1b}'), "{line:?}");
            assert!(name.starts_with("parlor_") || name.starts_with("process_"), "{line:?}");
            assert!(all.insert(name), "{name} comes twice");
        }
        all
    }

    #[test]
    fn threat_33_a_million_names_of_strangers_make_no_label() {
        let served: Vec<String> = (0..1_000).map(|number| format!("game-{number}")).collect();
        let metrics = Metrics::new(Some(&served));
        let mut census = Census::default();
        let mut room = RoomSummary {
            id: RoomId(1),
            code: "K7QM".parse().unwrap(),
            kind: RoomKind::PlayerHosted,
            opened: Instant::ZERO,
            app: String::new(),
            environment: String::new(),
            members: 2,
            away: 1,
            links: LinkKind::ALL.map(|kind| (kind, 1)),
            players: 2,
            max_players: 4,
            spectators: 0,
            needs_secret: false,
            label: String::new(),
        };
        for number in 0..1_000_000_u32 {
            room.app = if number < 1_000 { served[number as usize].clone() } else { hostile(number) };
            room.kind = [RoomKind::PlayerHosted, RoomKind::Dedicated, RoomKind::Match][number as usize % 3];
            room.label = hostile(number);
            census.count(metrics.app(&room.app).to_owned(), &room);
            let status = StatusCode::from_u16(100 + u16::try_from(number % 900).unwrap()).unwrap();
            metrics.requested(route(&format!("/{}", room.app)), status);
            metrics.requested(route(&format!("/rooms/{}", room.app)), status);
        }
        for number in 0..OPERATIONS_MAX {
            let operation: &'static str = format!("operation.{number}").leak();
            for status in [StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR] {
                metrics.answered(operation, status, Duration::from_millis(7));
            }
        }
        let text = written(&metrics, &census);
        let series = series(&text);
        assert!(series.len() <= 900, "{} beside those that have no label of their own", series.len());
        assert!(series.contains("parlor_rooms{app=\"game-0\",kind=\"player_hosted\"}"), "{text}");
        assert!(text.contains("parlor_members{app=\"other\"} 1999872\n"), "{text}");
    }

    #[test]
    fn games_that_are_served_may_have_any_name() {
        let served: Vec<String> = (0..64).map(hostile).collect();
        let metrics = Metrics::new(Some(&served));
        let mut census = Census::default();
        for name in &served {
            census.rooms.entry((metrics.app(name).to_owned(), "dedicated")).or_default().rooms += 1;
        }
        let text = written(&metrics, &census);
        assert_eq!(series(&text).iter().filter(|name| name.starts_with("parlor_rooms{")).count(), 64);
    }
}
