use super::*;
use crate::schema::Schema;
use crate::value::ValueErrorKind;
use parlor_proto::{Tick, TickRate};

/// Keys with the world that they are in.
struct Stage {
    world: World,
    keys: Keys,
}

impl Stage {
    fn new() -> Self {
        let world = World::new(Arc::new(Schema::default()), TickRate::DEFAULT);
        Stage { world, keys: Keys::new() }
    }

    fn set(&mut self, key: &str, value: impl Into<Value>) -> bool {
        self.try_set(key, &value.into(), Audience::All).unwrap()
    }

    fn try_set(&mut self, key: &str, value: &Value, audience: Audience) -> Result<bool, StateError> {
        self.keys.set(&mut self.world, key, value, audience)
    }

    fn remove(&mut self, key: &str) -> bool {
        self.keys.remove(&mut self.world, key).unwrap()
    }

    fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), StateError> {
        self.keys.declare(&mut self.world, prefix, hints)
    }

    /// Returns whether anything changed.
    fn commit(&mut self) -> bool {
        self.keys.close(&mut self.world).unwrap();
        let next = self.world.tick().map_or(Tick(1), Tick::next);
        self.world.commit(next).unwrap()
    }
}

fn hash(pairs: &[(&str, i64)]) -> u64 {
    state_hash(pairs.iter().map(|(key, value)| (*key, Value::Int(*value).encode(64).unwrap())))
}

#[test]
fn what_is_set_shows_at_once_and_counts_from_the_commit() {
    let mut stage = Stage::new();
    assert!(stage.set("a", 1));
    assert_eq!(stage.keys.get("a"), Some(Value::Int(1)));
    assert_eq!((stage.keys.len(), stage.keys.hash(Viewer::Everything)), (1, hash(&[])));
    assert!(stage.commit());
    assert_eq!(stage.keys.hash(Viewer::Everything), hash(&[("a", 1)]));

    assert!(stage.remove("a"));
    assert!(stage.set("b", 2));
    assert_eq!(stage.keys.iter().map(|item| item.key).collect::<Vec<_>>(), ["b"]);
    assert_eq!(stage.keys.hash(Viewer::Everything), hash(&[("a", 1)]));
    assert!(stage.commit());
    assert_eq!((stage.keys.get("a"), stage.keys.len()), (None, 1));
    assert_eq!(stage.keys.hash(Viewer::Everything), hash(&[("b", 2)]));
    assert_eq!(stage.world.len(), 1, "the entity of the other is gone");
}

#[test]
fn a_batch_that_ends_as_it_began_is_none() {
    let mut stage = Stage::new();
    stage.set("a", 1);
    stage.commit();
    let size = stage.keys.bytes();
    assert!(!stage.set("a", 1));
    assert!(!stage.world.is_dirty(), "what stays the same is not even looked at");
    assert!(stage.set("a", 2));
    assert!(stage.set("a", 1));
    assert!(stage.remove("a"));
    assert!(!stage.remove("a"));
    assert!(stage.set("a", 1));
    assert!(stage.set("b", 1));
    assert!(stage.remove("b"));
    assert!(!stage.commit());
    assert_eq!((stage.world.len(), stage.keys.bytes()), (1, size));
    assert_eq!(stage.keys.hash(Viewer::Everything), hash(&[("a", 1)]));
}

#[test]
fn a_key_is_hashed_for_those_who_see_it() {
    let mut stage = Stage::new();
    stage.set("a", 1);
    stage.try_set("b", &Value::Int(2), Audience::members([MemberId(3)])).unwrap();
    stage.commit();
    let hashes = [Viewer::Everything, Viewer::Member(MemberId(3)), Viewer::Member(MemberId(4))];
    let hashes = hashes.map(|viewer| stage.keys.hash(viewer));
    assert_eq!(hashes, [hash(&[("a", 1), ("b", 2)]), hash(&[("a", 1), ("b", 2)]), hash(&[("a", 1)])]);
}

#[test]
fn each_member_has_one_entity_that_tells_which_input_was_used() {
    let mut stage = Stage::new();
    let acknowledge = |stage: &mut Stage, used: &[(u32, u32)]| {
        let report = |tick: u32| Report { tick: Tick(tick), ..Report::default() };
        let reports = used.iter().map(|(member, tick)| (MemberId(*member), report(*tick))).collect();
        stage.keys.acknowledge(&mut stage.world, &reports).unwrap();
        (stage.commit(), stage.world.len())
    };
    assert_eq!(acknowledge(&mut stage, &[(1, 5), (2, 5)]), (true, 2));
    assert_eq!(acknowledge(&mut stage, &[(1, 5), (2, 5)]), (false, 2));
    assert_eq!(acknowledge(&mut stage, &[(1, 6), (2, 5)]), (true, 2));
    assert_eq!(acknowledge(&mut stage, &[(2, 5)]), (true, 1));
    let left = stage.world.entities().next().unwrap();
    assert_eq!(stage.world.audience(left), Ok(&Audience::members([MemberId(2)])));
}

#[test]
fn the_state_is_bounded() {
    let mut stage = Stage::new();
    for key in ["", &"x".repeat(65)] {
        let error = stage.try_set(key, &Value::Null, Audience::All);
        assert_eq!(error, Err(StateError::KeyLength { key: key.to_owned() }));
    }
    let nan = vec![Value::Null, f64::NAN.into()].into();
    let error = stage.try_set("tank", &nan, Audience::All).unwrap_err();
    assert_eq!(error.to_string(), "tank[1]: a number must be finite");
    let error = stage.try_set("big", &"x".repeat(STATE_VALUE_BYTES_MAX).into(), Audience::All).unwrap_err();
    let StateError::Value(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), &ValueErrorKind::TooLarge { max: STATE_VALUE_BYTES_MAX });
    let crowd = Audience::members((0..257).map(MemberId));
    let error = stage.try_set("crowd", &Value::Null, crowd);
    assert_eq!(error, Err(StateError::AudienceTooLarge { members: 257 }));
    assert!(stage.keys.is_empty() && stage.world.is_empty(), "nothing of all this stays");

    let chunk = Value::from("x".repeat(STATE_VALUE_BYTES_MAX - 100));
    for n in 0..3 {
        stage.set(&n.to_string(), chunk.clone());
    }
    let before = stage.keys.bytes();
    let error = stage.try_set("3", &chunk, Audience::All);
    assert!(matches!(error, Err(StateError::TooManyBytes { .. })), "{error:?}");
    assert_eq!((stage.keys.bytes(), stage.keys.get("3")), (before, None));

    let mut stage = Stage::new();
    for n in 0..STATE_KEYS_MAX {
        stage.set(&format!("{n:x}"), Value::Null);
    }
    assert_eq!(stage.try_set("more", &Value::Null, Audience::All), Err(StateError::TooManyKeys));
    assert_eq!(stage.world.len(), STATE_KEYS_MAX);
}

#[test]
fn what_the_world_has_no_room_for_is_an_error_and_changes_nothing() {
    let mut stage = Stage::new();
    let full = std::iter::from_fn(|| stage.world.spawn(None).ok()).count();
    let error = stage.try_set("a", &Value::Null, Audience::All);
    assert_eq!(error, Err(StateError::World(WorldError::TooManyEntities)));
    assert_eq!((stage.keys.len(), stage.keys.bytes(), stage.world.len()), (0, 0, full));
}

#[test]
fn hints_follow_the_longest_prefix() {
    let mut stage = Stage::new();
    let hints = |path| Hints::none().angle(path).unwrap();
    stage.set("tank/1", 1);
    stage.commit();
    stage.declare("tank/", hints("heading")).unwrap();
    stage.declare("tank/boss", hints("turret")).unwrap();
    stage.set("tank/boss1", 1);
    stage.set("bullet", 1);
    assert_eq!(stage.keys.item("tank/1").unwrap().hints, &hints("heading"));
    assert_eq!(stage.keys.item("tank/boss1").unwrap().hints, &hints("turret"));
    assert_eq!(stage.keys.item("bullet").unwrap().hints, &Hints::none());
    assert!(stage.commit());
    stage.declare("tank/", hints("heading")).unwrap();
    assert!(!stage.world.is_dirty());

    let long = Hints::none().snap(&"x".repeat(64)).unwrap();
    for n in 0..900 {
        stage.set(&format!("tank/{n}"), Value::Null);
    }
    let before = stage.keys.bytes();
    let error = stage.declare("tank/", long);
    assert!(matches!(error, Err(StateError::TooManyBytes { .. })), "{error:?}");
    assert_eq!(stage.keys.bytes(), before);
    assert_eq!(stage.keys.item("tank/1").unwrap().hints, &hints("heading"));
}

#[test]
fn a_successor_finds_keys_audiences_and_what_was_told_of_inputs() {
    let mut stage = Stage::new();
    let hints = Hints::none().snap("x").unwrap();
    stage.declare("p/", hints.clone()).unwrap();
    stage.set("p/1", 1);
    stage.try_set("secret", &Value::Int(7), Audience::members([MemberId(2)])).unwrap();
    let report = Report { tick: Tick(1), margin_ms: 40, late: 3 };
    stage.keys.acknowledge(&mut stage.world, &[(MemberId(2), report)].into_iter().collect()).unwrap();
    stage.commit();
    let mut odd = stage.world.clone();
    let entity = odd.spawn(None).unwrap();
    let twice = [Bytes::from_static(b"secret"), Bytes::new(), Value::Int(1).encode(64).unwrap()];
    odd.write_row(entity, KEYED_KEY, &[], &twice).unwrap();

    for mut world in [stage.world.clone(), odd] {
        let (keys, reports) = Keys::of_world(&mut world).unwrap();
        assert_eq!(reports, [(MemberId(2), report)].into_iter().collect());
        assert_eq!(keys.bytes(), stage.keys.bytes());
        assert_eq!(keys.hash(Viewer::Everything), stage.keys.hash(Viewer::Everything));
        let secret = keys.item("secret").unwrap();
        assert_eq!(secret.audience, &Audience::members([MemberId(2)]));
        assert_eq!(keys.item("p/1").unwrap().hints, &hints);
        assert_eq!(world.len(), 2, "what was told of inputs is told anew, and what nobody can read is gone");
        let mut next = Stage { world, keys };
        assert!(next.set("p/1", 2), "it is the same key and moves on");
        assert!(next.remove("secret"));
        next.commit();
        assert_eq!((next.world.len(), next.keys.len()), (1, 1));
    }
}
