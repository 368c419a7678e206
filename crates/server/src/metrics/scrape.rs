//! All figures at one moment, as the text that monitoring reads.

use super::process::Process;
use super::{Metrics, Seconds};
use crate::door::Door;
use crate::gate::Gate;
use crate::online::Services;
use crate::shard::{Census, Shards};
use core::fmt;
use core::time::Duration;
use parlor_hub::Stats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Where the figures come from. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Scraper {
    pub(crate) shards: Shards,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) door: Door,
    pub(crate) tcp_gate: Gate,
    pub(crate) quic_gate: Gate,
    pub(crate) services: Option<Services>,
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

/// One label: its name and its value.
type One = [(&'static str, &'static str); 1];

impl Scraper {
    /// Asks everybody, and writes it down.
    pub(crate) async fn text(&self) -> Result<String, fmt::Error> {
        let census = self.shards.census(|app| self.metrics.app(app).to_owned()).await;
        let stats = self.shards.stats().await;
        let mut registry = Registry::default();
        rooms(&mut registry, &census);
        traffic(&mut registry, &stats);
        self.doors(&mut registry, &stats);
        self.metrics.register(&mut registry);
        if let Some(services) = &self.services {
            store(&mut registry, services).await;
        }
        self.process(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }

    fn doors(&self, to: &mut Registry, stats: &Stats) {
        let ports = [("tcp", &self.tcp_gate), ("quic", &self.quic_gate)];
        let open = ports.map(|(port, gate)| ([("port", port)], gate.taken() as u64));
        gauges(to, "parlor_port_connections", "Connections of a port, handshakes included", open);
        let away = ports.map(|(port, gate)| ([("port", port)], gate.turned_away()));
        counters(
            to,
            "parlor_port_turned_away",
            "Connections that were refused because there were too many",
            away,
        );
        gauge(
            to,
            "parlor_connections",
            "Links with a session, in a room or not yet",
            stats.connections as u64,
        );
        let refused = [
            ([("answer", "redirect")], stats.redirected),
            ([("answer", "retry_after")], stats.put_off),
            ([("answer", "refused")], stats.refused),
        ];
        counters(to, "parlor_hellos_turned_away", "Hellos that were not answered with a seat", refused);
        let guesses = self.door.guesses_refused();
        counter(
            to,
            "parlor_guesses_refused",
            "Guesses at codes, tokens and passwords that came too often",
            guesses,
        );
    }

    fn process(&self, to: &mut Registry) {
        let Process { resident_bytes, cpu_s, open_files, open_files_max } = Process::look();
        let known = [
            ("process_resident_memory_bytes", "Memory that the process has", resident_bytes),
            ("process_open_fds", "Files and sockets that it has open", open_files),
            ("process_max_fds", "Files and sockets that it may have open", open_files_max),
            ("process_start_time_seconds", "When the server started, since 1970", Some(self.started_s)),
        ];
        for (name, help, value) in known {
            if let Some(value) = value {
                gauge(to, name, help, value);
            }
        }
        if let Some(cpu_s) = cpu_s {
            seconds(to, "process_cpu_seconds", "Time that it had processors for", cpu_s);
        }
        let version = [([("version", env!("CARGO_PKG_VERSION"))], 1)];
        gauges(to, "parlor_build_info", "Which version runs", version);
    }
}

fn rooms(to: &mut Registry, census: &Census) {
    let rooms = Family::<OfRooms, Gauge>::default();
    let members = Family::<OfApp, Gauge>::default();
    for ((app, kind), count) in &census.rooms {
        let of = OfRooms { app: app.clone(), kind };
        rooms.get_or_create(&of).set(signed(count.rooms));
        members.get_or_create(&OfApp { app: app.clone() }).inc_by(signed(count.members));
    }
    to.register("parlor_rooms", "Rooms in memory", rooms);
    to.register("parlor_members", "Members of rooms in memory", members);
    gauge(to, "parlor_members_away", "Members whose connection is lost and whose seat is kept", census.away);
    let links = census.links.iter().map(|(link, count)| ([("link", *link)], *count));
    gauges(to, "parlor_links", "Members that are connected, by how they are", links);
}

fn traffic(to: &mut Registry, stats: &Stats) {
    let both = |received, sent| [([("direction", "in")], received), ([("direction", "out")], sent)];
    let packets = both(stats.packets_received, stats.packets_sent);
    counters(to, "parlor_packets", "Packets of sessions", packets);
    let bytes = both(stats.bytes_received, stats.bytes_sent);
    counters(to, "parlor_packet_bytes", "Bytes in them, without what the network adds", bytes);
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
    ] {
        counter(to, name, help, value);
    }
    let waited = Duration::from_micros(stats.flush_wait_us).as_secs_f64();
    seconds(to, "parlor_flush_wait_seconds", "How long messages waited for their flush in all", waited);
}

async fn store(to: &mut Registry, services: &Services) {
    let counted = services.store_counters();
    let up = u64::from(services.store_state().is_ok());
    gauge(to, "parlor_store_up", "1 if writes are taken, 0 if the store stands still or fails", up);
    gauge(to, "parlor_store_waiting", "Writes that wait", counted.waiting);
    for (name, help, value) in [
        ("parlor_store_commits", "Transactions that were committed", counted.groups),
        ("parlor_store_writes", "Writes in them", counted.writes),
        ("parlor_store_failed", "Writes that the database failed at", counted.failed),
        ("parlor_store_turned_away", "Requests that were turned away", counted.turned_away),
    ] {
        counter(to, name, help, value);
    }
    let busy = Duration::from_micros(counted.busy_us).as_secs_f64();
    seconds(to, "parlor_store_commit_seconds", "Time that transactions took in all", busy);
    // A store that does not answer says so by the figures above.
    if let Ok(waiting) = services.webhooks_waiting().await {
        gauge(to, "parlor_webhooks_waiting", "Calls that are owed to the game's own service", waiting);
    }
}

fn gauge(to: &mut Registry, name: &'static str, help: &'static str, value: u64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(signed(value));
    to.register(name, help, gauge);
}

fn counter(to: &mut Registry, name: &'static str, help: &'static str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    to.register(name, help, counter);
}

fn seconds(to: &mut Registry, name: &'static str, help: &'static str, value: f64) {
    let counter = Counter::<f64, AtomicU64>::default();
    counter.inc_by(value);
    let counter: Seconds = counter;
    to.register(name, help, counter);
}

fn gauges(
    to: &mut Registry,
    name: &'static str,
    help: &'static str,
    values: impl IntoIterator<Item = (One, u64)>,
) {
    let family = Family::<One, Gauge>::default();
    for (label, value) in values {
        family.get_or_create(&label).set(signed(value));
    }
    to.register(name, help, family);
}

fn counters(
    to: &mut Registry,
    name: &'static str,
    help: &'static str,
    values: impl IntoIterator<Item = (One, u64)>,
) {
    let family = Family::<One, Counter>::default();
    for (label, value) in values {
        family.get_or_create(&label).inc_by(value);
    }
    to.register(name, help, family);
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::route;
    use hyper::StatusCode;
    use parlor_hub::RoomSummary;
    use parlor_proto::wire::handshake::RoomKind;
    use parlor_proto::{Instant, LinkKind, RoomId};
    use std::collections::BTreeSet;

    /// Names that break lines, end labels, or steer terminals.
    fn hostile(number: u32) -> String {
        let ending = ["\n", "\"} 7\n", "\\", "\u{1b}[2J", "\r\n# EOF\n", "=,{}", ""][number as usize % 7];
        format!("{number}{ending}")
    }

    fn written(metrics: &Metrics, census: &Census) -> String {
        let mut registry = Registry::default();
        rooms(&mut registry, census);
        traffic(&mut registry, &Stats::default());
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    /// What stands before the value of each line that has one, after a look at how the line is made.
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
        for operation in crate::online::operation_names() {
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
