//! The dump of a room's log with a world.

use super::*;
use parlor::replicated;
use parlor::schema::Kind;
use parlor_hub::room::{Room, Setup, log};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::{ChannelTable, EntityId, Epoch, RoomId, Tick};
use parlor_sync::audience::Viewer;
use parlor_sync::world::{Encodings, Publisher, PublisherConfig, World};
use serde_json::{Value as Json, json};

struct Ball {
    at: [f32; 2],
    name: String,
}

replicated!(Ball as "ball" => {
    at: Kind::vector2(-64.0, 64.0, 1.0 / 256.0),
    name: Kind::text(32),
});

const HOST: MemberId = MemberId(0);
const GUEST: MemberId = MemberId(1);
/// Ticks of the game that is logged.
const TICKS: u32 = 40;

fn setup(schema: &Schema) -> Setup {
    Setup {
        id: RoomId(1),
        code: "K7QM".parse().unwrap(),
        app: "balls".into(),
        environment: String::new(),
        settings: RoomSettings { schema: schema.encode(), ..RoomSettings::new(RoomKind::PlayerHosted, 4) },
        channels: ChannelTable::default(),
        opened: Instant::from_millis(1_000),
        state_bytes_per_second: 1 << 20,
        spectators: 0,
    }
}

/// A room with inputs, and its log.
struct Logged {
    room: Room,
    log: Vec<u8>,
    now: Instant,
}

impl Logged {
    fn tell(&mut self, input: Input) {
        self.log.extend(log::entry(self.now, &input));
        self.room.handle(input, self.now).unwrap();
        let outputs: Vec<Output> = std::iter::from_fn(|| self.room.poll_output()).collect();
        for output in outputs {
            let Output::Send { to, message } = output else { continue };
            for member in to {
                // Everything arrives.
                if let Some(delivery_id) = message.delivery_id {
                    self.tell(Input::Fate { member, delivery_id: delivery_id.0, delivered: true });
                }
            }
        }
    }
}

/// Three balls fly; one goes, and one changes hands.
fn game() -> (Bytes, Vec<EntityId>) {
    game_sent(PublisherConfig::new(1 << 20))
}

/// The same, as its host sends it.
fn game_sent(config: PublisherConfig) -> (Bytes, Vec<EntityId>) {
    let schema = Arc::new(Schema::builder().replicate::<Ball>().build().unwrap());
    let setup = setup(&schema);
    let log = log::head(&setup);
    let mut logged = Logged { now: setup.opened, room: Room::new(setup).unwrap(), log };
    for name in ["ada", "bob"] {
        logged.tell(Input::Join { name: name.into(), user: None, link: LinkKind::Quic, spectates: false });
    }
    let mut world = World::new(schema, TickRate::DEFAULT);
    let mut publisher = Publisher::new(Viewer::Everything, config);
    let mut encodings = Encodings::new();
    let balls: Vec<EntityId> = (0..3).map(|_| world.spawn(None).unwrap()).collect();
    for tick in 1..=TICKS {
        logged.now += TickRate::DEFAULT.interval();
        for (number, ball) in (1u8..).zip(&balls) {
            if world.contains(*ball) {
                let at = [f32::from(number), 0.25 * tick as f32];
                world.insert(*ball, &Ball { at, name: format!("ball {number}") }).unwrap();
            }
        }
        match tick {
            20 => world.despawn(balls[1]).unwrap(),
            25 => world.set_owner(balls[2], Some(GUEST)).unwrap(),
            _ => {}
        }
        world.commit(Tick(tick)).unwrap();
        while let Some((payload, sent)) = publisher.poll(&world, &mut encodings, logged.now) {
            let epoch = Epoch(0);
            logged.tell(Input::Message { from: HOST, channel: channel::STATE, key: 0, payload, epoch });
            publisher.delivered(sent);
        }
        logged.tell(Input::Flush);
    }
    (logged.log.into(), balls)
}

/// Records as JSON, and as lines for a person.
fn dump(log: &Bytes, filter: Filter) -> (Vec<Json>, String) {
    let mut replay = log::replay(log.clone()).unwrap();
    let setup = replay.room().setup().clone();
    let schema = Arc::new(setup.schema().unwrap());
    let mut dump = Dump::new(schema, setup.settings.tick_rate, setup.opened, filter);
    let (mut records, mut text) = (Vec::new(), String::new());
    let torn = dump.log(&mut replay, &mut |record| {
        records.push(record.json());
        record.lines().iter().for_each(|line| text.push_str(&format!("{line}\n")));
        Ok(())
    });
    assert_eq!(torn.unwrap(), None);
    dump.tally().lines().iter().for_each(|line| text.push_str(&format!("{line}\n")));
    (records, text)
}

/// All entries of packets that went this way, with the packet's size.
fn packets<'a>(records: &'a [Json], way: &str) -> Vec<(&'a Json, &'a Vec<Json>)> {
    let state = records.iter().filter(|record| record["way"] == way && record["channel"] == "state");
    state.map(|record| (record, record["state"]["entries"].as_array().unwrap())).collect()
}

#[test]
fn a_log_tells_the_world_that_went_up_and_down() {
    let (log, balls) = game();
    let (records, text) = dump(&log, Filter::default());
    assert!(records.iter().all(|record| record.get("unreadable").is_none()), "{text}");
    for way in ["up", "down"] {
        let packets = packets(&records, way);
        let entries: Vec<&Json> = packets.iter().flat_map(|(_, entries)| *entries).collect();
        let of = |ball: usize| {
            let name = format!("{}.{}", balls[ball].slot, balls[ball].generation);
            entries.iter().filter(move |entry| entry["entity"] == *name).collect::<Vec<_>>()
        };
        assert_eq!(of(0)[0]["kind"], "spawn", "{way}");
        assert_eq!(of(0)[0]["components"]["ball"]["name"]["value"], "ball 1", "{way}");
        let last = of(0).last().unwrap()["components"]["ball"]["at"]["value"].clone();
        assert_eq!(last, json!([1.0, 10.0]), "{way}");
        assert!(of(1).iter().any(|entry| entry["kind"] == "despawn"), "{way}");
        assert!(of(2).iter().any(|entry| entry["owner"] == json!(1)), "{way}");
        // The lines for a person say it too.
        assert!(text.contains("at [1, 10]") && text.contains("despawn"), "{text}");
    }
}

#[test]
fn what_entries_took_adds_up_to_their_packet() {
    let (log, _) = game();
    let (records, _) = dump(&log, Filter::default());
    for (record, entries) in packets(&records, "up") {
        let of_entries: f64 = entries.iter().map(|entry| entry["bytes"].as_f64().unwrap()).sum();
        let bytes = record["bytes"].as_f64().unwrap();
        // The rest is the packet's head, the end of the body, and what is rounded up to whole bytes.
        assert!((0.0..=20.0).contains(&(bytes - of_entries)), "{bytes} B, of which entries {of_entries}");
        for entry in entries {
            let fields = entry["components"]["ball"].as_object().into_iter().flatten();
            let of_fields: f64 = fields.map(|(_, field)| field["bytes"].as_f64().unwrap()).sum();
            assert!(of_fields <= entry["bytes"].as_f64().unwrap() + 1e-6, "{entry}");
        }
    }
}

#[test]
fn only_what_is_asked_for_is_told() {
    let (log, balls) = game();
    let all = dump(&log, Filter::default()).0;
    let guest = dump(&log, Filter { member: Some(GUEST), ..Filter::default() }).0;
    assert!(!guest.is_empty() && guest.len() < all.len());
    assert!(guest.iter().all(|record| record["member"].is_null() || record["member"] == json!(1)));
    let wanted = EntityFilter { slot: balls[2].slot, generation: None };
    let (ball, _) = dump(&log, Filter { entity: Some(wanted), ..Filter::default() });
    let names: Vec<&Json> = packets(&ball, "up")
        .into_iter()
        .flat_map(|(_, entries)| entries)
        .map(|entry| &entry["entity"])
        .collect();
    let name = format!("{}.{}", balls[2].slot, balls[2].generation);
    assert!(!names.is_empty() && names.iter().all(|found| **found == *name), "{names:?}");
    let (from, until) = (Some(Duration::from_millis(500)), Some(Duration::from_millis(700)));
    let (some, _) = dump(&log, Filter { from, until, ..Filter::default() });
    let within = |record: &Json| (500_000..700_000).contains(&record["at_us"].as_u64().unwrap());
    assert!(!some.is_empty() && some.iter().all(within));
    // What is not told is read all the same: what comes later builds on it.
    assert!(some.iter().all(|record| record.get("unreadable").is_none()));
}

#[test]
fn a_log_that_is_cut_short_is_told_up_to_the_cut() {
    let (log, _) = game();
    let mut replay = log::replay(log.slice(..log.len() - 1)).unwrap();
    let setup = replay.room().setup().clone();
    let schema = Arc::new(setup.schema().unwrap());
    let mut dump = Dump::new(schema, setup.settings.tick_rate, setup.opened, Filter::default());
    let mut count = 0;
    let torn = dump.log(&mut replay, &mut |_| {
        count += 1;
        Ok(())
    });
    assert!(matches!(torn.unwrap(), Some(LogError::Malformed { .. })) && count > 100, "{count}");
}

#[test]
fn what_a_host_beside_its_server_wrote_out_is_the_same() {
    let filter = || Filter { ..Filter::default() };
    let [coded, plain] = [PublisherConfig::new(1 << 20), PublisherConfig::within_process()].map(|config| {
        let (records, _) = dump(&game_sent(config).0, filter());
        let up = packets(&records, "up").into_iter();
        up.map(|(record, entries)| {
            let says = |entry: &Json| {
                ["entity", "kind", "tick", "built_on", "components"].map(|key| values(&entry[key]))
            };
            (record["state"]["plain"].clone(), entries.iter().map(says).collect::<Vec<_>>())
        })
        .collect::<Vec<_>>()
    });
    assert!(coded.len() >= TICKS as usize && coded.iter().all(|(plain, _)| *plain == false));
    assert!(plain.iter().all(|(plain, _)| *plain == true));
    assert!(coded.iter().map(|(_, says)| says).eq(plain.iter().map(|(_, says)| says)), "they say the same");
}

/// All that is said without what it took.
fn values(json: &Json) -> Json {
    match json {
        Json::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "bytes")
            .map(|(key, value)| (key.clone(), values(value)))
            .collect(),
        other => other.clone(),
    }
}
