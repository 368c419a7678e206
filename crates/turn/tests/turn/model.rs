//! Random operations against a plain model; the seed of each run is printed.

use crate::harness::{BEGIN, Table, id};
use parlor_turn::{
    Actor, Code, End, Join, Kick, NoticeKind, Op, Phase, ProposalId, Propose, Refusal, Start, Validate,
};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 6] = ["ada", "bob", "cleo", "dan", "eve", "finn"];
const STEPS: u32 = 120;
const TIMEOUT_MS: u64 = 5_000;

/// Fewer seeds do not reach every case.
const SEEDS_MIN: u64 = 60;

fn seeds() -> u64 {
    let seeds =
        std::env::var("PARLOR_SEEDS").ok().map(|text| text.parse().expect("PARLOR_SEEDS is a number"));
    seeds.unwrap_or(SEEDS_MIN).max(SEEDS_MIN)
}

struct Dice(ChaCha12Rng);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.below(6)).expect("it fits")]
    }
}

/// A plain model of a room without rules and votes.
struct Model {
    seats: Vec<&'static str>,
    host: Option<&'static str>,
    phase: Phase,
    /// The players in the game, in order.
    order: Vec<&'static str>,
    current: Option<&'static str>,
    kicked: BTreeSet<&'static str>,
    out: BTreeSet<&'static str>,
    most: usize,
    skipped: usize,
    deadline: Option<u64>,
    /// Accepted moves.
    moves: u64,
    result: Option<(Option<&'static str>, String)>,
    // The configuration.
    turns: bool,
    starts_itself: bool,
    late: bool,
    timed: bool,
    skips: bool,
    min: usize,
    max: usize,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Join,
    Leave,
    Kick(&'static str),
    Start,
    Move,
    Stale,
    Claim(Option<&'static str>),
    Resign,
    End,
    Expire,
}

type Said = Result<bool, Code>;

impl Model {
    fn sits(&self, who: &str) -> bool {
        self.seats.contains(&who)
    }

    fn act(&mut self, who: &'static str, act: Act, now: u64) -> Said {
        match act {
            Act::Expire => return Ok(self.expire(now)),
            Act::Join => return self.join(who, now),
            _ if !self.sits(who) => return Err(Code::NotInRoom),
            _ => {}
        }
        let hosts = self.host == Some(who);
        match act {
            Act::Leave => {
                self.get_up(who, now);
                if self.turns && self.phase == Phase::Playing && self.order.contains(&who) {
                    self.out.insert(who);
                }
                self.go_on_without(who, "player_left", false, now);
            }
            Act::Kick(_) if !hosts => return Err(Code::NotHost),
            Act::Kick(whom) if whom == who => return Err(Code::BadInput),
            Act::Kick(whom) if !self.sits(whom) => return Err(Code::NoSuchPlayer),
            Act::Kick(whom) => {
                self.get_up(whom, now);
                self.kicked.insert(whom);
                self.go_on_without(whom, "player_kicked", false, now);
            }
            Act::Start if !hosts => return Err(Code::NotHost),
            Act::Start if self.phase != Phase::Waiting => return Err(Code::WrongPhase),
            Act::Start if self.seats.len() < self.min => return Err(Code::TooFewPlayers),
            Act::Start => self.begin(now),
            Act::Move | Act::Stale | Act::Claim(_) => return self.make_move(who, act, now),
            Act::Resign if self.phase != Phase::Playing => return Err(Code::WrongPhase),
            Act::Resign if !self.order.contains(&who) => return Err(Code::OutOfGame),
            Act::Resign => {
                self.out.insert(who);
                self.go_on_without(who, "resignation", true, now);
            }
            Act::End if !hosts => return Err(Code::NotHost),
            Act::End if self.phase != Phase::Playing => return Err(Code::WrongPhase),
            Act::End => self.over(None, "ended"),
            Act::Join | Act::Expire => {}
        }
        Ok(true)
    }

    fn join(&mut self, who: &'static str, now: u64) -> Said {
        if self.sits(who) {
            return Ok(false);
        }
        if self.kicked.contains(who) {
            return Err(Code::Kicked);
        }
        if self.out.contains(who) {
            return Err(Code::OutOfGame);
        }
        match self.phase {
            Phase::Ended => return Err(Code::WrongPhase),
            Phase::Playing if !self.late => return Err(Code::GameStarted),
            _ if self.seats.len() == self.max => return Err(Code::RoomFull),
            _ => self.seats.push(who),
        }
        if self.phase == Phase::Playing {
            self.order.push(who);
            self.most = self.most.max(self.order.len());
        } else if self.starts_itself && self.seats.len() >= self.min {
            self.begin(now);
        }
        Ok(true)
    }

    fn begin(&mut self, now: u64) {
        self.phase = Phase::Playing;
        // The order is drawn: the test adopts the room's order after checking that it has the same players.
        self.order = self.seats.clone();
        self.most = self.order.len();
        self.turn_of(self.order[0], now);
    }

    fn turn_of(&mut self, who: &'static str, now: u64) {
        if self.turns {
            self.current = Some(who);
            self.deadline = self.timed.then_some(now + TIMEOUT_MS);
        }
    }

    fn next_after(&mut self, who: &str, now: u64) {
        let seat = self.order.iter().position(|other| *other == who).expect("who moved is in the game");
        self.turn_of(self.order[(seat + 1) % self.order.len()], now);
    }

    fn make_move(&mut self, who: &'static str, act: Act, now: u64) -> Said {
        if self.phase != Phase::Playing {
            return Err(Code::WrongPhase);
        }
        if !self.order.contains(&who) {
            return Err(Code::OutOfGame);
        }
        if self.turns && self.current != Some(who) {
            return Err(Code::NotYourTurn);
        }
        match act {
            Act::Stale => return Err(Code::StaleState),
            Act::Claim(Some(winner)) if !self.order.contains(&winner) => return Err(Code::NoSuchPlayer),
            _ => {}
        }
        self.moves += 1;
        self.skipped = 0;
        match act {
            Act::Claim(winner) => self.over(winner, "completed"),
            _ => self.next_after(who, now),
        }
        Ok(true)
    }

    fn expire(&mut self, now: u64) -> bool {
        let Some(late) = self.current.filter(|_| self.deadline.is_some_and(|deadline| deadline <= now))
        else {
            return false;
        };
        if !self.skips {
            self.out.insert(late);
            self.go_on_without(late, "timeout", false, now);
            return true;
        }
        self.skipped += 1;
        if self.skipped >= 2 * self.order.len() {
            self.over(None, "abandoned");
        } else {
            self.next_after(late, now);
        }
        true
    }

    fn get_up(&mut self, who: &str, _now: u64) {
        self.seats.retain(|seat| *seat != who);
        if self.host == Some(who) {
            self.host = self.seats.first().copied();
        }
    }

    fn go_on_without(&mut self, who: &str, why: &str, gave_up: bool, now: u64) {
        let seat = self.order.iter().position(|other| *other == who);
        if let Some(seat) = seat.filter(|_| self.phase == Phase::Playing) {
            self.order.remove(seat);
            match self.order.len() {
                0 => self.over(None, "abandoned"),
                1 if self.most > 1 && (self.turns || gave_up) => self.over(Some(self.order[0]), why),
                left if self.current == Some(who) => self.turn_of(self.order[seat % left], now),
                _ => {}
            }
        }
        if self.seats.is_empty() && self.phase != Phase::Ended {
            self.over(None, "abandoned");
        }
    }

    fn over(&mut self, winner: Option<&'static str>, why: &str) {
        assert!(self.result.is_none(), "a game ends once");
        self.phase = Phase::Ended;
        self.result = Some((winner, why.to_owned()));
        self.current = None;
        self.deadline = None;
    }
}

/// Sets up a room created by Ada, and its model.
fn set_up(dice: &mut Dice) -> (Table, Model) {
    let turns = dice.below(4) > 0;
    let (min, max) = (usize::try_from(dice.below(2)).expect("it fits") + 2, 5);
    let (starts_itself, late) = (dice.coin(), dice.coin());
    let (timed, skips) = (turns && dice.coin(), dice.coin());
    let mut written = json!({
        "turn_based": turns, "auto_start": starts_itself, "late_join": late,
        "players": { "min": min, "max": max }, "on_timeout": if skips { "skip" } else { "forfeit" },
    });
    if timed {
        written["turn_timeout_ms"] = json!(TIMEOUT_MS);
    }
    let model = Model {
        seats: vec!["ada"],
        host: Some("ada"),
        phase: Phase::Waiting,
        order: Vec::new(),
        current: None,
        kicked: BTreeSet::new(),
        out: BTreeSet::new(),
        most: 0,
        skipped: 0,
        deadline: None,
        moves: 0,
        result: None,
        turns,
        starts_itself,
        late,
        timed,
        skips,
        min,
        max,
    };
    (Table::new(&written, &[]), model)
}

fn draw(dice: &mut Dice, table: &Table) -> (&'static str, Act) {
    let whose = NAMES.iter().find(|name| **name == table.current()).copied();
    let who = match whose {
        Some(current) if dice.below(3) > 0 => current,
        _ => dice.name(),
    };
    let act = match dice.below(40) {
        0..8 => Act::Join,
        8 | 9 => Act::Leave,
        10 => Act::Kick(dice.name()),
        11..14 => Act::Start,
        14 => Act::Stale,
        15 => Act::Claim(dice.coin().then(|| dice.name())),
        16 => Act::Resign,
        17 if dice.below(4) == 0 => Act::End,
        18..25 => Act::Expire,
        _ => Act::Move,
    };
    (who, act)
}

fn run(table: &mut Table, who: &str, act: Act) -> Result<(), Refusal> {
    let put = |state: Value, state_version: Option<u64>| {
        Op::Propose(Propose { kind: "put".to_owned(), data: json!({}), state_version, state: Some(state) })
    };
    let version = table.room.state_version();
    let op = match act {
        Act::Join => Op::Join(Join::default()),
        Act::Leave => Op::Leave,
        Act::Kick(whom) => Op::Kick(Kick { player: id(whom), reason: None }),
        Act::Start => Op::Start(Start::default()),
        Act::Move => put(json!({ "by": who, "moves": { version.to_string(): 1 } }), Some(version)),
        Act::Stale => put(json!({}), Some(version - 1)),
        Act::Claim(winner) => put(json!({ "isGameOver": true, "winner": winner }), None),
        Act::Resign => Op::Resign,
        Act::End => Op::End(End::default()),
        Act::Expire => return table.apply(&Actor::Server, Op::Expire),
    };
    table.by(who, op)
}

fn compare(table: &Table, model: &Model, seed: u64) {
    let room = &table.room;
    let seats: Vec<&str> = room.players().iter().map(|player| player.id.as_str()).collect();
    assert_eq!(seats, model.seats, "seed {seed}: who sits there");
    assert_eq!(room.phase(), model.phase, "seed {seed}");
    assert_eq!(room.host().map(|host| host.as_str()), model.host, "seed {seed}: the host");
    assert_eq!(table.order(), model.order, "seed {seed}: the order");
    assert_eq!(table.current(), model.current.unwrap_or(""), "seed {seed}: whose turn it is");
    assert_eq!(room.next_deadline().map(|at| at.0 - BEGIN.0), model.deadline, "seed {seed}: the deadline");
    let result = model.result.as_ref().map(|(winner, why)| (*winner, why.as_str()));
    assert_eq!(table.result(), result, "seed {seed}: the result");
    assert_eq!(room.state_version(), 1 + model.moves, "seed {seed}: each move that stands counts once");
}

/// Turn order, one winner, no move out of turn, no move of eliminated or kicked players: all as in the model.
/// After each operation the harness checks that refusals change nothing, that versions count, and that
/// storing loses nothing.
#[test]
fn a_room_does_what_the_model_says() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..seeds() {
        println!("seed {seed}");
        let mut dice = Dice(ChaCha12Rng::seed_from_u64(seed));
        let (mut table, mut model) = set_up(&mut dice);
        println!("  {}", json!(table.room.config()));
        for _ in 0..STEPS {
            table.now = table.now.after_ms(dice.below(3_000));
            let (who, act) = draw(&mut dice, &table);
            let waited = model.phase == Phase::Waiting;
            let now = table.now.since(BEGIN);
            let version = table.room.version();
            let expected = model.act(who, act, now);
            let done = run(&mut table, who, act);
            println!("  {now} {who} {act:?}: {expected:?}");
            let changed = table.room.version() != version;
            assert_eq!(done.map(|()| changed).map_err(|refusal| refusal.code), expected, "seed {seed}");
            if waited && model.phase == Phase::Playing {
                take_order(&mut model, &table, now);
            }
            compare(&table, &model, seed);
            let what = format!("{act:?}");
            let verb = what.split('(').next().unwrap_or_default();
            *seen.entry(format!("{verb} {}", expected.map_or_else(Code::as_str, |_| "done"))).or_default() +=
                1;
            let version = table.room.version();
            table.apply(&Actor::Server, Op::Expire).expect("the server may");
            model.expire(now);
            let again = table.room.version();
            table.apply(&Actor::Server, Op::Expire).expect("the server may");
            assert_eq!(table.room.version(), again, "seed {seed}: what expired does not expire again");
            assert!(again >= version, "seed {seed}");
            compare(&table, &model, seed);
        }
    }
    for case in [
        "Move done",
        "Move not_your_turn",
        "Move out_of_game",
        "Claim done",
        "Join kicked",
        "Join out_of_game",
    ] {
        assert!(seen.contains_key(case), "the runs reach {case}: {seen:?}");
    }
}

fn take_order(model: &mut Model, table: &Table, now: u64) {
    let drawn = table.order();
    let mut same: Vec<&'static str> = model.order.clone();
    same.sort_by_key(|name| drawn.iter().position(|other| other == name));
    assert_eq!(same, drawn, "the order is drawn from those who sit there");
    model.order = same;
    let first = model.order[0];
    model.turn_of(first, now);
}

/// Votes: each waiting move is decided once, each vote counts once, and the state is the result of the
/// accepted moves in their order of acceptance.
#[test]
fn every_move_that_waits_is_decided_once_and_the_state_is_what_stands() {
    let mut decided = BTreeMap::new();
    for seed in 0..seeds() {
        println!("seed {seed}");
        let mut dice = Dice(ChaCha12Rng::seed_from_u64(seed));
        let quorum = if dice.coin() { "all" } else { "majority" };
        let turns = dice.coin();
        let mut written = json!({
            "turn_based": turns, "quorum": quorum, "late_join": true, "players": { "max": 6 },
            "validation_timeout_ms": 6_000, "on_timeout": "skip",
        });
        if turns {
            written["turn_timeout_ms"] = json!(TIMEOUT_MS);
        }
        let mut table = Table::playing(&written, &["ada", "bob", "cleo", "dan"]);
        let mut patches: BTreeMap<u64, Value> = BTreeMap::new();
        let mut fates: BTreeMap<u64, NoticeKind> = BTreeMap::new();
        let mut expected = json!({});
        for step in 0..STEPS {
            table.now = table.now.after_ms(dice.below(800));
            one_step(&mut dice, &mut table, step);
            for notice in table.told() {
                let number = notice.body["proposal"].as_u64();
                match (notice.kind, number) {
                    (NoticeKind::MoveProposed, Some(number)) => {
                        let patch = notice.body["state"].clone();
                        assert!(
                            patches.insert(number, patch).is_none(),
                            "seed {seed}: numbers are given once"
                        );
                    }
                    (kind @ (NoticeKind::MoveMade | NoticeKind::MoveRejected), Some(number)) => {
                        assert_eq!(fates.insert(number, kind), None, "seed {seed}: decided once");
                        *decided.entry(kind).or_insert(0) += 1;
                        if kind == NoticeKind::MoveMade {
                            let step = &notice.body["data"]["step"];
                            expected["last"] = step.clone();
                            expected[format!("at{step}")] = json!(1);
                        }
                    }
                    _ => {}
                }
            }
            assert_eq!(table.room.state(), &expected, "seed {seed}, step {step}");
            let open = table.view()["proposals"].as_array().map_or(0, Vec::len);
            let undecided = patches.keys().filter(|number| !fates.contains_key(number)).count();
            assert_eq!(open, undecided, "seed {seed}: what waits is what is not decided");
            assert!(open <= if turns { 1 } else { 4 }, "seed {seed}");
        }
    }
    assert!(decided.len() == 2, "moves stand and are taken back: {decided:?}");
}

fn one_step(dice: &mut Dice, table: &mut Table, step: u32) {
    let who = dice.name();
    let newest = table.view()["last_proposal"].as_u64().unwrap_or(0);
    let done = match dice.below(20) {
        0 => table.leave(who),
        1 => table.resign(who),
        2 | 3 => table.by(who, Op::Join(Join::default())),
        4 => table.apply(&Actor::Server, Op::Expire),
        5..10 => {
            let mut fields = serde_json::Map::new();
            fields.insert(format!("at{step}"), json!(1));
            fields.insert("last".to_owned(), json!(step));
            let state_version = dice.coin().then(|| table.room.state_version());
            let propose = Propose {
                kind: "put".to_owned(),
                data: json!({ "step": step }),
                state_version,
                state: Some(Value::Object(fields)),
            };
            let whose = table.current().to_owned();
            table.by(if whose.is_empty() { who } else { &whose }, Op::Propose(propose))
        }
        _ => {
            let proposal = ProposalId(newest.saturating_sub(dice.below(3)));
            let accept = dice.below(4) > 0;
            table.by(who, Op::Validate(Validate { proposal, accept, reason: None }))
        }
    };
    let fine = [
        Code::NotInRoom,
        Code::OutOfGame,
        Code::WrongPhase,
        Code::NotYourVote,
        Code::NoSuchProposal,
        Code::ProposalOpen,
        Code::TooManyProposals,
        Code::RoomFull,
    ];
    if let Err(refusal) = done {
        assert!(fine.contains(&refusal.code), "{who}: {refusal}");
    }
}
