//! A room under test, and invariants that hold after every operation.

use parlor_turn::{
    Actor, Award, Code, Config, ConfiguredBy, Context, Create, Effect, End, Join, Kick, NewRoom, Notice,
    NoticeKind, Op, PlayerId, ProposalId, Propose, Push, Refusal, RoomId, RuleSets, Start, TurnRoom,
    UnixMillis, Update, Validate,
};
use serde_json::{Value, json};

/// The start time of all tests.
pub(crate) const BEGIN: UnixMillis = UnixMillis(1_700_000_000_000);

pub(crate) fn id(name: &str) -> PlayerId {
    PlayerId::new(name).expect("names in tests are ids")
}

/// A room that is stored and loaded between operations, with its effects so far.
pub(crate) struct Table {
    pub(crate) room: TurnRoom,
    pub(crate) rules: RuleSets,
    pub(crate) now: UnixMillis,
    /// Effects since the last read.
    pub(crate) effects: Vec<Effect>,
    seed: u64,
    last_seq: u64,
}

pub(crate) fn config(written: &Value) -> Config {
    Config::read(written, "noughts", &RuleSets::built_in()).expect("a configuration that can be")
}

/// Takes a field of a test's abbreviated request; it must have the right type.
fn field<T: serde::de::DeserializeOwned>(asked: &mut Value, name: &str) -> Option<T> {
    let value = asked.as_object_mut().expect("an object").remove(name)?;
    Some(serde_json::from_value(value).expect("a field of the right type"))
}

/// Checks that a test's request has no unknown fields.
fn all_read(asked: &Value) {
    assert_eq!(asked, &json!({}), "these fields are not asked for anywhere");
}

impl Table {
    /// Creates Ada's room, which the others join in this order.
    pub(crate) fn new(written: &Value, others: &[&str]) -> Table {
        Table::with_rules(written, others, RuleSets::built_in())
    }

    pub(crate) fn with_rules(written: &Value, others: &[&str], rules: RuleSets) -> Table {
        let config = Config::read(written, "noughts", &rules).expect("a configuration that can be");
        Table::created(config, Create::default(), 1, rules, others)
    }

    pub(crate) fn created(
        config: Config,
        create: Create,
        seed: u64,
        rules: RuleSets,
        others: &[&str],
    ) -> Table {
        let new = NewRoom {
            id: RoomId::new("room-1").expect("an id"),
            code: "K7QMAB".parse().expect("a code"),
            configured_by: ConfiguredBy::Creator,
            creator: id("ada"),
            create,
        };
        let with = Context { now: BEGIN, seed: seed_of(seed), rules: &rules };
        let (room, effects) = TurnRoom::create(new, config, &with).expect("a room");
        let mut table = Table { room, rules, now: BEGIN, effects: Vec::new(), seed, last_seq: 0 };
        table.take(effects);
        assert_eq!(table.room.version(), 1);
        for name in others {
            table.join(name).expect("there is a seat");
        }
        table
    }

    /// Creates a running game with this turn order; Ada is the host.
    pub(crate) fn playing(written: &Value, order: &[&str]) -> Table {
        Table::playing_with(written, order, RuleSets::built_in())
    }

    pub(crate) fn playing_with(written: &Value, order: &[&str], rules: RuleSets) -> Table {
        let mut written = written.clone();
        written["auto_start"] = json!(false);
        let others: Vec<&str> = order.iter().copied().filter(|name| *name != "ada").collect();
        let mut table = Table::with_rules(&written, &others, rules);
        table.start(json!({ "turn_order": order })).expect("it begins");
        table.effects.clear();
        table
    }

    /// Applies an operation and checks the invariants of all operations.
    pub(crate) fn apply(&mut self, actor: &Actor, op: Op) -> Result<(), Refusal> {
        self.seed += 1;
        let before = self.room.clone();
        let with = Context { now: self.now, seed: seed_of(self.seed), rules: &self.rules };
        let done = self.room.apply(actor, op, &with);
        match done {
            Err(refusal) => {
                assert_eq!(self.room, before, "a refusal changes nothing: {refusal}");
                assert!(refusal.sentence.len() > 10, "a sentence says what to do: {refusal}");
                Err(refusal)
            }
            Ok(effects) => {
                let one_more = u64::from(self.room != before);
                assert_eq!(
                    self.room.version(),
                    before.version() + one_more,
                    "the version counts the changes"
                );
                assert!(one_more == 1 || effects.is_empty(), "what nobody stores is told to nobody");
                let stored = serde_json::to_string(&self.room).expect("a document can be written");
                let loaded: TurnRoom = serde_json::from_str(&stored).expect("a document can be read");
                assert_eq!(loaded, self.room, "what is loaded is what was stored");
                self.room = loaded;
                self.take(effects);
                Ok(())
            }
        }
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in &effects {
            let (seq, to) = match effect {
                Effect::Notice(notice) => (notice.seq, &notice.to),
                Effect::Push(push) => (push.seq, &push.to),
                // For boards and the history; nobody is notified.
                Effect::Award(_) | Effect::Said(_) => continue,
            };
            assert_eq!(seq, self.last_seq + 1, "notices are counted without a gap");
            let is_public = matches!(effect, Effect::Notice(notice) if notice.is_public);
            assert!(!to.is_empty() || is_public, "a notice is for somebody");
            self.last_seq = seq;
        }
        self.effects.extend(effects);
    }

    pub(crate) fn by(&mut self, name: &str, op: Op) -> Result<(), Refusal> {
        self.apply(&Actor::Player(id(name)), op)
    }

    pub(crate) fn join(&mut self, name: &str) -> Result<(), Refusal> {
        self.by(name, Op::Join(Join { name: Some(name.to_uppercase()) }))
    }

    pub(crate) fn leave(&mut self, name: &str) -> Result<(), Refusal> {
        self.by(name, Op::Leave)
    }

    pub(crate) fn kick(&mut self, by: &str, whom: &str) -> Result<(), Refusal> {
        self.by(by, Op::Kick(Kick { player: id(whom), reason: None }))
    }

    /// Starts the game as the host.
    pub(crate) fn start(&mut self, start: Value) -> Result<(), Refusal> {
        let mut asked = start;
        let op = Start { turn_order: field(&mut asked, "turn_order"), roles: field(&mut asked, "roles") };
        all_read(&asked);
        self.by("ada", Op::Start(op))
    }

    pub(crate) fn propose(&mut self, by: &str, propose: Value) -> Result<(), Refusal> {
        let mut asked = propose;
        let op = Propose {
            kind: field(&mut asked, "type").expect("a move has a type"),
            data: field(&mut asked, "data").unwrap_or_else(|| json!({})),
            state_version: field(&mut asked, "state_version"),
            state: field(&mut asked, "state"),
        };
        all_read(&asked);
        self.by(by, Op::Propose(op))
    }

    /// Makes a move of the type `put` that changes the state.
    pub(crate) fn put(&mut self, by: &str, state: Value) -> Result<(), Refusal> {
        self.propose(by, json!({ "type": "put", "state": state }))
    }

    pub(crate) fn validate(&mut self, by: &str, proposal: u64, accept: bool) -> Result<(), Refusal> {
        self.by(by, Op::Validate(Validate { proposal: ProposalId(proposal), accept, reason: None }))
    }

    pub(crate) fn resign(&mut self, by: &str) -> Result<(), Refusal> {
        self.by(by, Op::Resign)
    }

    pub(crate) fn end(&mut self, by: &str, end: Value) -> Result<(), Refusal> {
        let mut asked = end;
        let op = End { winner: field(&mut asked, "winner"), reason: field(&mut asked, "reason") };
        all_read(&asked);
        self.by(by, Op::End(op))
    }

    pub(crate) fn update(&mut self, by: &str, update: Value) -> Result<(), Refusal> {
        let mut asked = update;
        let op = Update {
            name: field(&mut asked, "name"),
            visibility: field(&mut asked, "visibility"),
            metadata: field(&mut asked, "metadata"),
            data: field(&mut asked, "data"),
            replace: field(&mut asked, "replace").unwrap_or_default(),
            admins: field(&mut asked, "admins"),
        };
        all_read(&asked);
        self.by(by, Op::Update(op))
    }

    /// Sets the time to `ms` after the start, and runs due timers.
    pub(crate) fn expire_at(&mut self, ms: u64) {
        self.now = BEGIN.after_ms(ms);
        self.apply(&Actor::Server, Op::Expire).expect("the server may");
    }

    /// Returns the notices since the last read.
    pub(crate) fn told(&mut self) -> Vec<Notice> {
        let effects = std::mem::take(&mut self.effects);
        let notices = effects.into_iter().filter_map(|effect| match effect {
            Effect::Notice(notice) => Some(notice),
            Effect::Push(_) | Effect::Award(_) | Effect::Said(_) => None,
        });
        notices.collect()
    }

    pub(crate) fn kinds(&mut self) -> Vec<NoticeKind> {
        self.told().iter().map(|notice| notice.kind).collect()
    }

    /// Returns the pushes since the last read.
    pub(crate) fn pushed(&mut self) -> Vec<Push> {
        let effects = std::mem::take(&mut self.effects);
        let pushes = effects.into_iter().filter_map(|effect| match effect {
            Effect::Push(push) => Some(push),
            Effect::Notice(_) | Effect::Award(_) | Effect::Said(_) => None,
        });
        pushes.collect()
    }

    /// Returns the awards since the last read.
    pub(crate) fn awarded(&mut self) -> Vec<Award> {
        let effects = std::mem::take(&mut self.effects);
        let awards = effects.into_iter().filter_map(|effect| match effect {
            Effect::Award(award) => Some(award),
            Effect::Notice(_) | Effect::Push(_) | Effect::Said(_) => None,
        });
        awards.collect()
    }

    /// Returns the server's view of the room.
    pub(crate) fn view(&self) -> Value {
        json!(self.room.view(&Actor::Server, &self.rules).expect("the server may read it"))
    }

    /// Returns a player's view of the room.
    pub(crate) fn view_of(&self, reader: &str) -> Result<Value, Refusal> {
        self.room.view(&Actor::Player(id(reader)), &self.rules).map(|view| json!(view))
    }

    pub(crate) fn current(&self) -> &str {
        self.room.current_player().map_or("", PlayerId::as_str)
    }

    pub(crate) fn order(&self) -> Vec<&str> {
        self.room.turn_order().iter().map(PlayerId::as_str).collect()
    }

    /// Winner and reason.
    pub(crate) fn result(&self) -> Option<(Option<&str>, &str)> {
        let result = self.room.result()?;
        Some((result.winner.as_ref().map(PlayerId::as_str), result.reason.as_str()))
    }
}

fn seed_of(number: u64) -> [u8; 32] {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    seed
}

/// The code and the path of a refusal.
#[track_caller]
pub(crate) fn refused(done: Result<(), Refusal>) -> (Code, String) {
    let refusal = done.expect_err("it is refused");
    (refusal.code, refusal.path.unwrap_or_default())
}

/// Returns the code of a refusal that concerns no field.
#[track_caller]
pub(crate) fn code(done: Result<(), Refusal>) -> Code {
    let (code, path) = refused(done);
    assert_eq!(path, "");
    code
}
