//! A room's costs of shared state and its link, as rows of a table: names and values.

use parlor::Room;

/// Names and values below each other.
pub type Rows = Vec<(&'static str, String)>;

/// How long the round trip of a member takes.
pub fn round_trip(room: &Room) -> (&'static str, String) {
    let rtt = room.diagnostics().rtt;
    ("round trip", rtt.map_or_else(|| "–".to_owned(), |rtt| ms(rtt.as_secs_f64() * 1e3)))
}

/// How else its link is, and what is done about it.
pub fn link(room: &Room) -> Rows {
    let net = room.diagnostics();
    vec![
        ("jitter", ms(net.jitter_ms)),
        ("lost", format!("{} of {}", net.session.packets_lost, net.session.packets_sent)),
        ("drawn behind", ms(net.buffer_delay_ms)),
        ("lead", ms(net.lead_ms)),
        ("dilation", format!("{:+.1}%", (net.dilation - 1.0) * 100.0)),
        ("inputs late", net.inputs_late.to_string()),
    ]
}

fn ms(ms: f64) -> String {
    format!("{ms:.0} ms")
}

/// What the stream of the state cost so far: the host's to its server, or the one that came to a guest. What only a sender
/// knows stands in the host's rows alone.
pub fn rows(room: &Room) -> Rows {
    let Some(world) = room.world().diagnostics() else { return Rows::new() };
    let or_none = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let mut rows = vec![
        ("entities", world.visible.to_string()),
        ("packets", world.packets.to_string()),
        ("bytes", world.bytes.to_string()),
        ("an entity takes", format!("{} B", or_none(world.bytes_per_entity))),
    ];
    let (mean, most) = (or_none(world.baseline_age_ticks_mean), world.baseline_age_ticks_max);
    rows.push(("built on rows of", format!("{mean} ticks, {most} at most")));
    if room.is_host() {
        rows.extend([
            ("behind by", format!("{} ticks at most", world.staleness_ticks_max)),
            ("waiting", format!("{} entities", world.pending)),
            ("under way", format!("{} B", world.in_flight_bytes)),
            ("budget left", format!("{} B", world.budget_bytes)),
            ("lost", format!("{} of {} packets", world.lost, world.packets)),
        ]);
    } else {
        let ago =
            |ticks: Option<u32>| ticks.map_or_else(|| "–".to_owned(), |ticks| format!("{ticks} ticks ago"));
        rows.extend([
            ("newest is of", ago(world.newest_age_ticks)),
            ("was complete", ago(world.settled_age_ticks)),
            ("came too late", format!("{} packets", world.late)),
            ("drawn behind", format!("{:.0} ms", room.diagnostics().buffer_delay_ms)),
        ]);
    }
    rows
}
