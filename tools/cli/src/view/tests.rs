//! The screen's content, also with hostile texts of other members.

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::draw::draw;
use super::*;
use crate::game::{Badge, Bird, Dir, GemState, HZ, Motion, Phase, PlayerState, RoundState, Scene};
use parlor_terminal::palette::Depth;
use parlor_terminal::text::width;

fn buffer(columns: u16, rows: u16, hud: &HudModel, scene: &Scene, depth: Depth) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, hud, scene, depth)).unwrap();
    terminal.backend().buffer().clone()
}

/// The lines as a terminal shows them: the cell behind a wide letter is not shown.
fn lines(buffer: &Buffer) -> Vec<String> {
    let columns = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(columns.max(1));
    rows.map(|row| {
        let (mut line, mut column) = (String::new(), 0);
        while let Some(cell) = row.get(column) {
            line.push_str(cell.symbol());
            column += width(cell.symbol()).max(1);
        }
        assert_eq!(width(&line), columns, "no wide letter sticks out: {line:?}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        line
    })
    .collect()
}

fn text(columns: u16, rows: u16, hud: &HudModel, scene: &Scene) -> String {
    let lines = lines(&buffer(columns, rows, hud, scene, Depth::True));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn bird(slot: u8, name: &str, (x, y): (f32, f32), heading: Dir, motion: Motion, score: u32) -> Bird {
    let glyph =
        name.chars().find(char::is_ascii_alphanumeric).map_or('Z', |glyph| glyph.to_ascii_uppercase());
    let state =
        PlayerState { x, y, heading, motion, safe: motion == Motion::Dizzy, score, dash_ready_at: 1_016 };
    Bird { state, badge: Badge { name: name.into(), slot, glyph } }
}

/// A round with six players, one of them in a dash, one knocked, one at an edge.
fn scene() -> Scene {
    let birds = [
        bird(0, "Ada", (20.4, 14.7), Dir::Left, Motion::Gliding, 12),
        bird(1, "Grace", (41.0, 9.2), Dir::Right, Motion::Dashing, 17),
        bird(2, "Linus", (46.2, 10.1), Dir::Down, Motion::Dizzy, 5),
        bird(3, "李小龙", (1.3, 30.0), Dir::Up, Motion::Gliding, 8),
        bird(4, "Maximiliane von Bingen", (30.0, 38.7), Dir::Down, Motion::Gliding, 3),
        bird(5, "bot Rook", (52.5, 1.3), Dir::Up, Motion::Gliding, 9),
    ];
    let gem = |x, y, worth| GemState { x, y, worth };
    let gems =
        [gem(6.0, 5.0, 1), gem(14.0, 33.0, 5), gem(44.1, 14.0, 1), gem(48.0, 14.6, 1), gem(24.0, 26.0, 1)];
    Scene {
        tick: 1_000,
        players: (0..).zip(birds).collect(),
        gems: (0..).zip(gems).collect(),
        round: RoundState {
            number: 3,
            phase: Phase::Playing,
            ends_at: 1_000 + 42 * HZ,
            ..RoundState::default()
        },
    }
}

fn hud() -> HudModel {
    let mut hud = HudModel {
        code: Some("K7QM".into()),
        join_command: "parlor play --join K7QM".into(),
        invite: Some(format!(
            "parlor://join/K7QM?server=192.168.1.7:40123&fingerprint={}",
            "abcd".repeat(13)
        )),
        me: Some(0),
        host: Some(1),
        notice: Some("Grace is the host now".into()),
        ..HudModel::default()
    };
    for (id, ping_ms, transport) in
        [(0, 42, "direct"), (1, 0, "host"), (2, 133, "relay"), (3, 208, "ws"), (4, 58, "direct")]
    {
        hud.members.insert(
            id,
            MemberLine { ping_ms: Some(ping_ms), transport: transport.into(), ..MemberLine::default() },
        );
    }
    for sample in 0..60 {
        hud.figures.push_rtt_ms(38 + sample * 7 % 11 + if sample == 50 { 40 } else { 0 });
        hud.figures.push_updates(28 + sample % 3);
    }
    let rows = [("jitter", "3 ms"), ("lost", "4 of 280"), ("drawn behind", "41 ms"), ("lead", "57 ms")];
    let rows = rows.into_iter().chain([("dilation", "+0.3%"), ("inputs late", "2")]);
    hud.figures.rows = rows.map(|(name, value)| (name, value.to_owned())).collect();
    hud
}

/// Compares a picture with the one in `frames/`; with `UPDATE_FRAMES=1` it becomes the one.
fn assert_frame(name: &str, columns: u16, rows: u16, hud: &HudModel, scene: &Scene) {
    let file = format!("{}/src/view/frames/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let drawn = text(columns, rows, hud, scene);
    if std::env::var_os("UPDATE_FRAMES").is_some() {
        std::fs::write(&file, &drawn).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(drawn, expected, "{file} differs; look at it, then UPDATE_FRAMES=1\n{drawn}");
}

#[test]
fn what_the_state_costs_is_shown_while_it_is_wanted() {
    let mut hud = hud();
    let shown = |hud: &HudModel| text(80, 24, hud, &scene());
    assert!(!shown(&hud).contains("an entity"));
    hud.costs = Some(vec![("an entity", "3.20 B".into()), ("built on", "2.1 ticks".into())]);
    let picture = shown(&hud);
    assert!(picture.contains("an entity  3.20 B") && picture.contains("built on   2.1 ticks"), "{picture}");
}

#[test]
fn pictures() {
    assert_frame("80x24", 80, 24, &hud(), &scene());
    assert_frame("120x40", 120, 40, &hud(), &scene());
    assert_frame("40x12", 40, 12, &hud(), &scene());
    let mut alone = scene();
    alone.players.retain(|id, _| *id == 0);
    alone.players.values_mut().for_each(|bird| bird.state.heading = Dir::Stay);
    alone.round = RoundState::default();
    assert_frame("waiting", 80, 24, &hud(), &alone);
    let mut over = scene();
    over.round.phase = Phase::Over;
    (over.round.ends_at, over.round.winners, over.round.best) = (1_100, vec![1], 17);
    assert_frame("over", 80, 24, &hud(), &over);
    assert_frame("help", 80, 24, &HudModel { help: true, ..hud() }, &scene());
}

#[test]
fn a_network_that_is_impaired_on_purpose_is_shown() {
    let spec = "latency=80ms,loss=3%";
    for (columns, rows) in [(80, 24), (120, 40)] {
        let shown = |impairment| text(columns, rows, &HudModel { impairment, ..hud() }, &scene());
        let impaired = shown(Some(spec.into()));
        assert!(impaired.contains(&format!("impaired {spec}")), "{impaired}");
        for text in ["your link", "rtt ", "jitter ", "lead ", "57 ms", "dilation ", "+0.3%", "inputs late"] {
            assert!(impaired.contains(text), "{text} in\n{impaired}");
        }
        assert!(!shown(None).contains("impaired"));
    }
}

#[test]
fn the_most_important_overlay_wins() {
    let stage = |stage, help| text(80, 24, &HudModel { stage, help, ..hud() }, &Scene::default());
    let closed = stage(Stage::Closed("the host left and nobody could take over".into()), true);
    assert!(
        closed.contains("the host left and nobody could take over") && !closed.contains("arrows"),
        "{closed}"
    );
    assert!(stage(Stage::Connecting("asking the hub".into()), true).contains("asking the hub"));
    let lost = stage(Stage::Reconnecting("reconnecting, attempt 2".into()), true);
    assert!(lost.contains("connection lost") && lost.contains("reconnecting, attempt 2"), "{lost}");
    assert!(stage(Stage::Open, true).contains("arrows, WASD"));
    assert!(stage(Stage::Open, false).contains("parlor play --join K7QM"));
}

#[test]
fn a_spectator_sees_the_field_and_no_keys_of_players() {
    let watching = text(80, 24, &HudModel { watches: true, me: Some(65_536), ..hud() }, &Scene::default());
    assert!(watching.contains("watching") && watching.contains("Q leave"), "{watching}");
    assert!(!watching.contains("dash") && !watching.contains("a friend types"), "{watching}");
}

#[test]
fn a_long_reason_is_shown_in_full() {
    let why = "this client speaks version 3 and the server only versions 5 to 7; get a newer client from your vendor";
    let hud = HudModel { stage: Stage::Closed(why.into()), ..hud() };
    let seen = text(40, 12, &hud, &Scene::default());
    for word in why.split(' ') {
        assert!(seen.contains(word), "{word} in\n{seen}");
    }
    assert!(seen.contains("Q leaves"), "{seen}");
}

#[test]
fn who_won_is_told_for_ties_leavers_and_nobody() {
    let told = |winners: Vec<u32>, best| {
        let mut scene = scene();
        scene.round = RoundState { number: 4, phase: Phase::Over, ends_at: 1_100, winners, best };
        text(100, 30, &hud(), &scene)
    };
    assert!(told(vec![0, 5], 12).contains("Ada and bot Rook share round 4 with 12 gems"));
    assert!(told(vec![77], 1).contains("someone who left wins round 4 with 1 gem"));
    assert!(told(vec![], 0).contains("nobody found a gem in round 4"));
    assert!(told(vec![0, 1, 2, 3, 4], 2).contains("and 2 more share round 4"));
}

#[test]
fn a_small_terminal_is_told_so_and_ones_own_row_is_kept() {
    assert!(text(39, 12, &hud(), &scene()).contains("terminal too small"));
    assert!(text(80, 11, &hud(), &scene()).contains("80×11, needs 40×12"));
    assert!(!text(40, 12, &hud(), &scene()).contains("too small"));
    assert!(!text(71, 24, &hud(), &scene()).contains("your link"), "no panel when narrow");
    let mut scene = scene();
    for id in 6..16u8 {
        scene.players.insert(id.into(), bird(id, "rich", (5.0, 5.0), Dir::Up, Motion::Gliding, 99));
    }
    let hud = HudModel { me: Some(4), ..hud() };
    assert!(
        text(120, 14, &hud, &scene)
            .lines()
            .any(|line| line.contains("Maximiliane") && line.contains("direct"))
    );
    assert!(text(80, 24, &hud, &scene).contains("Ada"), "sixteen fit into 80×24");
}

#[test]
fn no_size_panics() {
    let overlays = [Stage::Open, Stage::Connecting("x".repeat(300)), Stage::Closed("why ".repeat(200))];
    let sizes = [0, 1, 2, 5, 11, 12, 13, 18, 24, 33]
        .into_iter()
        .flat_map(|rows| [0, 1, 2, 5, 39, 40, 41, 71, 72, 80].map(|columns| (columns, rows)));
    for (columns, rows) in sizes.chain([(40, 90), (300, 12), (110, 32)]) {
        for stage in &overlays {
            for help in [false, true] {
                let hud = HudModel { stage: stage.clone(), help, ..hud() };
                lines(&buffer(columns, rows, &hud, &scene(), Depth::Indexed));
                lines(&buffer(
                    columns,
                    rows,
                    &HudModel { help, ..HudModel::default() },
                    &Scene::default(),
                    Depth::True,
                ));
            }
        }
    }
}

fn name() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
        "\u{1b}[2J\u{1b}]0;x\u{7}",
        "a\r\nb",
        "李小龙李小龙李小龙",
        "\u{202e}evil",
        "e\u{301}\u{301}\u{301}",
        "🇩🇪🇫🇷🇯🇵",
        "",
        "नमस्ते",
        "ｗｉｄｅ",
        "👍🏽👍🏽👍🏽👍🏽👍🏽",
    ]);
    prop_oneof![nasty.prop_map(str::to_owned), any::<String>(), "[a-z]{0,300}"]
}

prop_compose! {
    fn any_bird()(name in name(), x in 0f32..=60.0, y in 0f32..=40.0, slot: u8, glyph: char, safe: bool, score: u32,
        dash_ready_at: u32, heading in prop::sample::select(vec![Dir::Stay, Dir::Up, Dir::Down, Dir::Left, Dir::Right]),
        motion in prop::sample::select(vec![Motion::Gliding, Motion::Dashing, Motion::Dizzy])) -> Bird {
        Bird { state: PlayerState { x, y, heading, motion, safe, score, dash_ready_at }, badge: Badge { name, slot, glyph } }
    }
}

prop_compose! {
    fn any_scene()(birds in prop::collection::vec(any_bird(), 0..20), tick: u32, number: u32, ends_at: u32, best: u32,
        winners in prop::collection::vec(0..20u32, 0..20), gems in prop::collection::vec((0f32..=60.0, 0f32..=40.0), 0..30),
        phase in prop::sample::select(vec![Phase::Waiting, Phase::Playing, Phase::Over])) -> Scene {
        let gems = gems.into_iter().map(|(x, y)| GemState { x, y, worth: 1 });
        Scene {
            tick,
            players: (0..).zip(birds).collect(),
            gems: (0..).zip(gems).collect(),
            round: RoundState { number, phase, ends_at, winners, best },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_another_member_says_breaks_the_screen(scene in any_scene(), texts in prop::collection::vec(name(), 4),
        columns in 0..130u16, rows in 0..50u16, closed: bool, ping: u32) {
        let [code, command, why, transport] = <[String; 4]>::try_from(texts).unwrap();
        let mut hud = hud();
        (hud.code, hud.join_command, hud.notice) = (Some(code.clone()), command, Some(code));
        hud.stage = if closed { Stage::Closed(why.clone()) } else { Stage::Open };
        hud.members.insert(30, MemberLine { name: why, ping_ms: Some(ping), transport });
        hud.figures.push_rtt_ms(ping);
        lines(&buffer(columns, rows, &hud, &scene, Depth::Indexed));
    }
}
