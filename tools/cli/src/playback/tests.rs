use super::*;
use parlor::recording::{Ended, Recorder};
use parlor::schema::{Kind, Schema};
use parlor::{MemberId, Tick, replicated};
use parlor_proto::TickRate;
use parlor_sync::keyed::Keys;
use parlor_sync::world::World;
use serde_json::{Value, json};
use std::io::Write;

#[derive(Clone, Debug, PartialEq)]
struct Place {
    at: [f32; 2],
}
replicated!(Place as "place" => { at: Kind::vector2(-10.0, 10.0, 0.5) });

/// A recording of 40 ticks with a score and motion, in pieces: a head, and a piece for each tick.
fn pieces() -> Vec<Vec<u8>> {
    let schema = Arc::new(Schema::builder().replicate::<Place>().build().unwrap());
    let rate = TickRate::DEFAULT;
    let (mut world, mut keys) = (World::new(Arc::clone(&schema), rate), Keys::new());
    let mut recorder = Recorder::new(&Head {
        code: "K7QM".parse().unwrap(),
        app: "tanks".into(),
        environment: String::new(),
        tick_rate: rate,
        schema,
        opened: Instant::ZERO,
    });
    let mut pieces = vec![recorder.take()];
    recorder.came(MemberId(3), "ada");
    let entity = world.spawn(Some(MemberId(3))).unwrap();
    for tick in 1..=40u16 {
        keys.set(&mut world, "score", &i64::from(tick).into(), parlor::Audience::All).unwrap();
        world.insert(entity, &Place { at: [f32::from(tick % 8), 0.5] }).unwrap();
        keys.close(&mut world).unwrap();
        world.commit(Tick(tick.into())).unwrap();
        recorder.observe(&world, rate.begins(Tick(tick.into())));
        pieces.push(recorder.take());
    }
    recorder.end(Ended::Closed);
    pieces.push(recorder.take());
    pieces
}

fn play(film: &mut Film, until: Instant, is_json: bool) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(step) = film.step(until).unwrap() {
        said.extend(record(&step, film.playback(), is_json));
    }
    said
}

const ALL: Instant = Instant::from_micros(u64::MAX);

#[test]
fn a_film_goes_on_when_its_file_grows() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let pieces = pieces();
    let mut film = Film::open(file.path()).unwrap();
    assert!(film.head().unwrap().is_none());
    for piece in &pieces {
        // The end of a piece comes later than its begin, as a disk may have it.
        let (begin, end) = piece.split_at(piece.len() / 2);
        file.write_all(begin).unwrap();
        play(&mut film, ALL, true);
        assert_eq!(film.cut_bytes() > 0, !begin.is_empty());
        file.write_all(end).unwrap();
        play(&mut film, ALL, true);
        assert_eq!((film.cut_bytes(), film.error()), (0, None));
    }
    assert!(film.is_over());
    assert_eq!((film.playback().marks(), film.playback().first_difference()), (2, None));
}

#[test]
fn a_spectator_is_as_far_behind_as_it_wants() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pieces().concat()).unwrap();
    let newest = TickRate::DEFAULT.begins(Tick(40));
    let until = |delay| {
        let mut film = Film::open(file.path()).unwrap();
        let mut pace = Pace::Behind(Box::new(Edge::open(file.path()).unwrap()), delay);
        let until = pace.until(&mut film).unwrap();
        play(&mut film, until, true);
        (until, film.playback().at())
    };
    let (now, at) = until(Duration::ZERO);
    assert!(now >= newest && at == newest);
    let (past, at) = until(Duration::from_millis(700));
    // However slow this machine is: what is shown is what was there until then.
    assert!(past >= newest - Duration::from_millis(700) && at <= past);
    assert_eq!(until(Duration::from_secs(3_600)), (Instant::ZERO, Instant::ZERO));
}

#[test]
fn records_are_told_to_persons_and_programs() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pieces().concat()).unwrap();
    let mut film = Film::open(file.path()).unwrap();
    let lines = play(&mut film, ALL, false);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(lines[0], "    0.000 s  ada is here");
    assert!(lines[1].starts_with("    0.033 s  tick 1: 1 player, 1 entity, 1 key, hash "), "{}", lines[1]);
    assert!(lines[2].ends_with(" agrees"));
    assert_eq!(lines[3], "    1.333 s  the room is over");
    let mut film = Film::open(file.path()).unwrap();
    let objects = play(&mut film, TickRate::DEFAULT.begins(Tick(2)), true);
    let objects: Vec<Value> = objects.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects[0], json!({ "what": "came", "member": 3, "name": "ada", "at_us": 0 }));
    assert_eq!(objects[1]["keys"], json!({ "score": 1 }));
    let second = objects.last().unwrap();
    assert_eq!(second["tick"], 2);
    let moved = second["entities"].as_object().unwrap().values().next().unwrap();
    assert_eq!(*moved, json!({ "owner": 3, "components": { "place": { "at": [2.0, 0.5] } } }));
    assert!(joining(film.playback(), false).ends_with("a spectator comes: ada, 1 player, 1 entity, 1 key"));
    let there: Value = serde_json::from_str(&joining(film.playback(), true)).unwrap();
    assert_eq!(
        (&there["tick"], &there["keys"]["score"], &there["players"]["3"]),
        (&json!(2), &json!(2), &json!("ada"))
    );
}

#[test]
fn files_are_told_apart_by_their_first_bytes() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    assert!(!is_recording(file.path()).unwrap());
    file.write_all(b"PARLORLOG").unwrap();
    assert!(!is_recording(file.path()).unwrap());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&pieces().concat()).unwrap();
    assert!(is_recording(file.path()).unwrap());
}
