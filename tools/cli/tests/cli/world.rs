//! A shared world at a running server: members' state, and the log of their room.

use crate::support::Machine;
use parlor::schema::{Kind, Schema};
use parlor::{Event, MemberId, Room, RoomBuilder, kind, replicated};
use parlor_transport::discovery::Registry;
use serde_json::Value;

/// Bodies in a row from west to east, and the metres from one to the next.
const BODIES: u16 = 100;
const APART_M: f32 = 8.0;
/// From and up to how far a member sees, in metres.
const SEES_M: (f32, f32) = (60.0, 68.0);

/// Only a hang takes so many: two minutes at 30 Hz.
const STEPS_MAX: u32 = 3_600;

/// Something that moves.
#[derive(Clone, Debug)]
struct Body {
    position: [f32; 2],
}

replicated!(Body as "body" => { position: Kind::vector2(-1024.0, 1024.0, 1.0 / 256.0) });

/// A room's builder with the schema of both members, at the only server of this machine.
fn furnished<K: kind::Hosted>(builder: RoomBuilder<K>, machine: &Machine, server: &str) -> RoomBuilder<K> {
    let schema = Schema::builder()
        .replicate::<Body>()
        .interest("body", "position", SEES_M.0.into(), SEES_M.1.into())
        .build();
    let registry = Registry::at(machine.path("registry"));
    builder.schema(schema.expect("a schema")).registry(registry).server(server)
}

/// Takes what came, and gives who joined.
fn listen(room: &mut Room) -> Vec<MemberId> {
    let mut joined = Vec::new();
    while let Some(event) = room.poll() {
        match event {
            Event::PlayerJoined(player) if !player.is_me => joined.push(player.id),
            Event::Closed(why) => panic!("{why}"),
            _ => {}
        }
    }
    joined
}

/// Plays until the guest saw this many updates after all that it may see: the bodies that are near its own. Gives the most that it saw.
fn play(machine: &Machine, server: &str, updates: u64) -> usize {
    let mut host = furnished(Room::host("bodies"), machine, server).open();
    let mut guest = None;
    let (mut spawned, mut most, mut steps) = (false, 0, 0);
    loop {
        assert!(steps < STEPS_MAX, "after {steps} steps a guest saw {most} bodies");
        for member in listen(&mut host) {
            let mut host = host.as_host().expect("it is the host");
            let own = host.spawn(Some(member)).expect("there is room");
            host.insert(own, &Body { position: [0.0, 1.0] }).expect("it is in the schema");
        }
        while let Some(mut step) = host.step() {
            let mut host = step.host().expect("it is the host");
            steps += 1;
            if !spawned {
                spawned = true;
                for index in 0..BODIES {
                    let entity = host.spawn(None).expect("there is room");
                    let east = f32::from(index) * APART_M;
                    host.insert(entity, &Body { position: [east, 0.0] }).expect("it is in the schema");
                }
            }
            for entity in host.world().entities() {
                let Some(mut body) = host.world().component::<Body>(entity).expect("it is there") else {
                    continue;
                };
                body.position[1] += 0.01;
                host.insert(entity, &body).expect("it is in the schema");
            }
        }
        if let Some(code) = host.code().filter(|_| spawned) {
            let guest = guest.get_or_insert_with(|| {
                let builder = furnished(Room::join("bodies", &code.to_string()), machine, server);
                builder.packet_log(machine.path("guest.net")).open()
            });
            listen(guest);
            while guest.step().is_some() {}
            let seen: Vec<f32> = guest
                .world()
                .entities()
                .into_iter()
                .filter_map(|entity| guest.world().component::<Body>(entity).expect("it is in the schema"))
                .map(|body| body.position[0])
                .collect();
            assert!(seen.iter().all(|east| *east <= SEES_M.1), "a guest at 0 m is sent {seen:?}");
            most = most.max(seen.len());
            if guest.diagnostics().updates_decoded >= updates && most > 1 {
                return most;
            }
        }
        std::thread::yield_now();
    }
}

#[test]
#[cfg(unix)]
fn t11_a_member_is_sent_what_is_near_and_logs_of_room_and_packets_are_told() {
    let machine = Machine::new();
    let logs = machine.path("logs");
    let logs_text = logs.to_str().expect("a plain path");
    let (server, address) = machine.serve(&["--room-log", logs_text]);
    // Its own, and one each 8 m from 0 to 56 m; some more on the way to the border of 68 m.
    let most = play(&machine, &address, 50);
    assert!((9..=10).contains(&most), "{most}");
    server.terminate();
    assert!(server.succeeds());
    let log = std::fs::read_dir(&logs).expect("the folder").next().expect("a log").expect("its name").path();
    let log = log.to_str().expect("a plain path");

    let dump = |args: &[&str]| dump(&machine, log, args);
    let all = dump(&[]);
    assert!(all.iter().all(|record| record.get("unreadable").is_none()));
    let (up, down) = (entities(&all, "up"), entities(&all, "down"));
    assert!(up.len() >= 100 && !down.is_empty() && down.len() < up.len(), "{} {}", up.len(), down.len());
    let is_moving = |entry: &&Value| entry["components"].get("body").is_some();
    let moving = up.iter().find(is_moving).expect("the host sends what moves");
    let position = moving["components"]["body"]["position"]["value"].as_array().expect("two numbers");
    assert_eq!(position.len(), 2, "{moving}");

    let name = moving["entity"].as_str().expect("a name");
    let of_one = dump(&["--entity", name]);
    assert!(entities(&of_one, "up").iter().all(|entry| entry["entity"] == *name));
    let to_one = dump(&["--member", "1", "--from", "0.5"]);
    let is_meant = |record: &Value| record["member"].is_null() || record["member"] == 1;
    assert!(to_one.iter().all(is_meant) && to_one.len() < all.len());
    let text = machine.run(&["dump", log, "--entity", name]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("entity {name}")) && text.contains("position ["), "{text}");
    assert!(text.contains("fields, vector"), "it ends with sums: {text}");
    packets_are_told(&machine, name);
}

fn dump(machine: &Machine, log: &str, args: &[&str]) -> Vec<Value> {
    let output = machine.run(&[&["dump", log, "--json"], args].concat());
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

/// The entries of all packets of state in one direction.
fn entities(records: &[Value], way: &str) -> Vec<Value> {
    let packets = records.iter().filter(|it| it["way"] == way && it["channel"] == "state");
    packets.flat_map(|packet| packet["state"]["entries"].as_array().expect("a list").clone()).collect()
}

/// The guest's own log has the packets, and in them the state that it was sent.
fn packets_are_told(machine: &Machine, entity: &str) {
    let log = machine.path("guest.net");
    let log = log.to_str().expect("a plain path");
    let all = dump(machine, log, &[]);
    assert_eq!((&all[0]["what"], &all[0]["app"]), (&"packets".into(), &"bodies".into()));
    let of = |way: &str| all.iter().filter(|it| it["what"] == "packet" && it["way"] == way).count();
    assert!(of("up") >= 5 && of("down") >= 50, "{} and {} packets", of("up"), of("down"));
    let left_out = all.iter().filter_map(|it| it["packet"]["others"].as_array()).flatten();
    let left_out: Vec<&str> =
        left_out.filter_map(Value::as_str).filter(|it| it.contains("left out")).collect();
    assert_eq!(left_out, ["Hello (left out)", "Welcome (left out)"]);
    assert!(all.iter().all(|record| record.get("unreadable").is_none()), "every message can be read");
    let seen = entities(&all, "down");
    let bodies = seen.iter().filter(|entry| entry["components"].get("body").is_some()).count();
    assert!(bodies >= 10, "{bodies} of {}", seen.len());
    let text = machine.run(&["dump", log, "--entity", entity]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("packets of a client of \"bodies\"") && text.contains("position ["), "{text}");
}
