//! Ends on a bad network, compared with games in lockstep.

use super::*;
use crate::limits::{ROLLBACK_PLAYERS_MAX, ROLLBACK_WINDOW_MAX};
use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::{Instant, Tick, TickRate};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

const BEGIN: Tick = Tick(100);
const HZ: u16 = 60;

/// The game: its state depends on all inputs, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Game(Vec<u64>);

impl Game {
    fn new() -> Self {
        Game(vec![7; 16])
    }

    fn step(&mut self, tick: Tick, inputs: &[PlayerInput]) {
        for (player, input) in inputs.iter().enumerate() {
            let pressed = xxh3_64(input.bytes());
            let place = &mut self.0[player];
            *place = place.rotate_left(9).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ pressed ^ u64::from(tick.0);
        }
    }

    fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, place| sum.rotate_left(7) ^ place)
    }
}

/// The error of an end's clock, in ticks, at a moment.
type ClockError = fn(Instant) -> i32;

/// One end with its game.
struct End {
    session: Rollback,
    who: From,
    game: Game,
    states: States<Game>,
    /// Hashes after each step, as last run.
    after: BTreeMap<u32, u64>,
    said: BTreeMap<u32, Vec<u8>>,
    clock: ClockError,
    steps: u32,
    asleep: std::ops::Range<u64>,
    /// Flips a bit in the state after this step, whenever it is run.
    flip_after: Option<Tick>,
    events: Vec<(u64, Event)>,
    pressed: u8,
}

impl End {
    fn new(config: Config, who: From) -> Self {
        End {
            session: Rollback::new(config).expect("the values are within their bounds"),
            who,
            game: Game::new(),
            states: States::new(&config),
            after: BTreeMap::new(),
            said: BTreeMap::new(),
            clock: |_| 0,
            steps: 0,
            asleep: 0..0,
            flip_after: None,
            events: Vec::new(),
            pressed: 0,
        }
    }

    fn frame(&mut self, now: Instant, rng: &mut Rng) {
        if rng.below(8) == 0 {
            self.pressed = u8::try_from(rng.below(250)).expect("it is small");
        }
        let rate = TickRate::new(HZ).expect("rooms may have 60 Hz");
        let target = rate.tick_at(now).offset(100 + (self.clock)(now));
        let config = *self.session.config();
        for _ in 0..16 {
            let input = vec![self.pressed; usize::from(self.pressed % 4)];
            if let Some(me) = config.me() {
                self.session.add_input(me, &input).expect("it is short");
            }
            if !self.session.step(target) {
                break;
            }
            self.said.insert(BEGIN.0 + self.steps + config.input_delay, input);
            self.steps += 1;
            self.run();
        }
        self.run();
        while let Some(event) = self.session.poll_event() {
            self.events.push((now.as_millis(), event));
        }
    }

    fn run(&mut self) {
        let mut loads = 0;
        loop {
            match self.session.poll_request() {
                None => break,
                Some(Request::Save { tick }) => {
                    self.states.save(tick, &self.game);
                    let sum = self.game.sum();
                    self.session.saved(tick, sum);
                }
                Some(Request::Load { tick }) => {
                    self.game.clone_from(self.states.load(tick).expect("what is loaded was saved"));
                    loads += 1;
                }
                Some(Request::Advance { tick, inputs, .. }) => {
                    self.game.step(tick, inputs);
                    if self.flip_after == Some(tick) {
                        self.game.0[15] ^= 1 << 40;
                    }
                    self.after.insert(tick.0, self.game.sum());
                }
            }
        }
        assert!(loads <= 1, "a rollback is made once");
    }
}

/// The network between the ends.
#[derive(Clone, Copy)]
struct Net {
    latency_us: u64,
    jitter_us: u64,
    loss_percent: u64,
}

struct Room {
    ends: Vec<End>,
    net: Net,
    rng: Rng,
    wire: BTreeMap<(u64, u64), (usize, From, Bytes)>,
    sent: u64,
    now: Instant,
    /// The settled inputs, according to the arbiter.
    settled: BTreeMap<u32, Vec<PlayerInput>>,
    bytes: u64,
}

impl Room {
    fn new(seed: u64, players: u8, net: Net) -> Self {
        let config = |me| Config { window: 24, ..Config::new(players, me, BEGIN) };
        Room {
            ends: (0..players).map(|me| End::new(config(me), From::Player(me))).collect(),
            net,
            rng: Rng::new(seed),
            wire: BTreeMap::new(),
            sent: 0,
            now: Instant::ZERO,
            settled: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn run_for(&mut self, ms: u64) {
        let until = self.now.as_micros() + ms * 1_000;
        while self.now.as_micros() < until {
            self.now = Instant::from_micros(self.now.as_micros() + 1_000);
            self.deliver();
            for index in 0..self.ends.len() {
                // Frames at 60 Hz, with a different phase at each end.
                let phase = (self.now.as_millis() + 5 * index as u64) % 16;
                if phase == 0 && !self.ends[index].asleep.contains(&self.now.as_millis()) {
                    self.frame(index);
                }
            }
            self.record();
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.wire.first_entry() {
            if entry.key().0 > self.now.as_micros() {
                break;
            }
            let (to, from, bytes) = entry.remove();
            if !self.ends[to].asleep.contains(&self.now.as_millis()) {
                self.ends[to].session.handle_message(from, bytes).expect("ends speak well");
            }
        }
    }

    fn frame(&mut self, index: usize) {
        self.ends[index].frame(self.now, &mut self.rng);
        let from = self.ends[index].who;
        let mut out = Vec::new();
        while let Some(to) = self.ends[index].session.poll_message(&mut out) {
            assert!(out.len() < 950, "a message of {} bytes is no datagram", out.len());
            let bytes = Bytes::copy_from_slice(&out);
            for other in 0..self.ends.len() {
                let who = self.ends[other].who;
                let is_meant = match to {
                    To::Players => matches!(who, From::Player(_) | From::Arbiter),
                    To::Arbiter => self.ends[other].session.config().is_arbiter(),
                    To::One(one) => one == who,
                };
                if is_meant && other != index {
                    self.send(other, from, bytes.clone());
                }
            }
        }
    }

    fn send(&mut self, to: usize, from: From, bytes: Bytes) {
        self.sent += 1;
        self.bytes += bytes.len() as u64;
        if self.rng.below(100) >= self.net.loss_percent {
            let at = self.now.as_micros() + self.net.latency_us + self.rng.below(self.net.jitter_us + 1);
            self.wire.insert((at, self.sent), (to, from, bytes));
        }
    }

    fn record(&mut self) {
        let arbiter = self.ends.iter().find(|end| end.session.config().is_arbiter());
        let arbiter = arbiter.expect("there is one");
        let players = usize::from(arbiter.session.config().players);
        let mut tick = Tick(self.settled.last_key_value().map_or(BEGIN.0, |(tick, _)| tick + 1));
        while let Some(inputs) = arbiter.session.settled_inputs(tick) {
            self.settled.insert(tick.0, inputs[..players].to_vec());
            tick = tick.next();
        }
    }

    /// Checks that every end has run the settled ticks, and reaches the states of a game in lockstep.
    fn check(&self, least_ticks: usize) {
        let mut game = Game::new();
        let mut ticks = 0;
        for (tick, inputs) in &self.settled {
            for (player, input) in inputs.iter().enumerate() {
                let end = self.ends.iter().find(|end| end.who == From::Player(player.try_into().unwrap()));
                let said = end.expect("every player is there").said.get(tick).map_or(&[][..], Vec::as_slice);
                let is_known = input.status == InputStatus::Known;
                assert!(!is_known || input.bytes() == said, "player {player} said {said:?} at {tick}");
            }
            game.step(Tick(*tick), inputs);
            let is_settled = |end: &End| end.session.diagnostics().settled.is_newer_than(Tick(*tick));
            if !self.ends.iter().all(|end| is_settled(end) && end.after.contains_key(tick)) {
                break;
            }
            for end in &self.ends {
                assert_eq!(end.after[tick], game.sum(), "{:?} after tick {tick}", end.who);
            }
            ticks += 1;
        }
        assert!(ticks >= least_ticks, "only {ticks} of {least_ticks} ticks were settled everywhere");
    }

    fn deepest(&self) -> u32 {
        self.ends.iter().map(|end| end.session.diagnostics().deepest).max().unwrap_or(0)
    }

    /// Checks that the longest stall of an end is bounded by the patience, and so is its longest rollback.
    fn assert_unaffected(&self, but: usize) {
        for (index, end) in self.ends.iter().enumerate().filter(|(index, _)| *index != but) {
            let diagnostics = end.session.diagnostics();
            assert_eq!(diagnostics.missed, 0, "end {index} lost inputs: {diagnostics:?}");
            assert!(diagnostics.deepest <= 24, "{diagnostics:?}");
        }
    }
}

const GOOD: Net = Net { latency_us: 40_000, jitter_us: 20_000, loss_percent: 5 };

#[test]
fn all_ends_come_to_the_states_of_lockstep() {
    for seed in 0..24 {
        println!("seed {seed}");
        let players = 2 + u8::try_from(seed % 7).unwrap();
        let net = Net { latency_us: seed % 4 * 25_000, jitter_us: seed % 3 * 20_000, loss_percent: seed % 6 };
        let mut room = Room::new(seed, players, net);
        room.run_for(8_000);
        room.check(400);
        assert!(room.ends.iter().all(|end| end.events.is_empty()), "{:?}", room.ends[0].events);
        room.assert_unaffected(usize::MAX);
        if net.latency_us > 0 {
            assert!(room.deepest() > 0, "somebody went back");
        }
    }
}

#[test]
fn without_a_network_between_them_nobody_goes_back() {
    let mut room = Room::new(1, 4, Net { latency_us: 0, jitter_us: 0, loss_percent: 0 });
    room.run_for(5_000);
    room.check(280);
    for end in &room.ends {
        let diagnostics = end.session.diagnostics();
        assert_eq!((diagnostics.rollbacks, diagnostics.replayed, diagnostics.stalled), (0, 0, 0));
    }
}

#[test]
fn a_player_that_stalls_for_a_minute_comes_back_and_holds_up_the_others_only_briefly() {
    for seed in 0..3 {
        let mut room = Room::new(seed, 4, GOOD);
        let sleeper = if seed == 2 { 3 } else { 1 };
        room.ends[sleeper].asleep = 5_000..65_000;
        room.run_for(5_000);
        let before: Vec<_> = room.ends.iter().map(|end| end.session.diagnostics()).collect();
        room.run_for(60_000);
        for (index, (end, before)) in room.ends.iter().zip(before).enumerate() {
            let during = end.session.diagnostics();
            if index != sleeper {
                assert!(during.stalled - before.stalled <= 12, "end {index}: {during:?}");
                assert!(during.steps - before.steps > 3_580, "end {index}: {during:?}");
                assert!(during.missed_by_all > 3_500, "end {index}: {during:?}");
            }
        }
        room.run_for(20_000);
        room.check(5_000);
        room.assert_unaffected(sleeper);
        // It plays again.
        let missed = room.ends[sleeper].session.diagnostics().missed;
        room.run_for(2_000);
        let now = room.ends[sleeper].session.diagnostics();
        assert_eq!(now.missed, missed, "its inputs count again");
        assert!(now.deepest <= 24 && room.ends.iter().all(|end| end.events.is_empty()));
    }
}

#[test]
fn threat_24_a_process_that_begins_the_session_again_comes_to_the_states_of_the_others() {
    for seed in 0..24 {
        println!("seed {seed}");
        let mut room = Room::new(seed, 3, GOOD);
        // Back at once, after a moment, and when all its inputs on the way are settled or missed.
        let away = [0, 100, 700, 5_000][usize::try_from(seed % 4).unwrap()];
        room.run_for(if seed % 3 == 0 { 500 } else { 4_000 });
        room.ends[1].asleep = 0..room.now.as_millis() + away;
        room.run_for(away);
        let config = *room.ends[1].session.config();
        room.ends[1] = End::new(config, From::Player(1));
        room.ends[1].clock = |_| -6;
        room.run_for(10_000);
        let ends = [0, 1, 2].map(|index| &room.ends[index]);
        let least = ends.map(|end| end.session.finals().since(BEGIN)).into_iter().min().unwrap();
        assert!(least > 600, "{least} ticks are final everywhere");
        for tick in (BEGIN.0..).take(usize::try_from(least).unwrap()) {
            assert_eq!(ends[1].after[&tick], ends[0].after[&tick], "after tick {tick}");
            assert_eq!(ends[2].after[&tick], ends[0].after[&tick], "after tick {tick}");
        }
        assert!(ends.iter().all(|end| end.events.is_empty()), "{:?}", ends.map(|end| &end.events));
        // Its inputs count again.
        let missed = ends[1].session.diagnostics().missed;
        room.run_for(2_000);
        assert_eq!(room.ends[1].session.diagnostics().missed, missed);
    }
}

#[test]
fn who_was_away_for_longer_than_is_remembered_is_told() {
    let mut room = Room::new(5, 2, GOOD);
    let config = Config { history: 256, ..Config::new(2, 0, BEGIN) };
    room.ends[0] = End::new(config, From::Player(0));
    room.ends[1].asleep = 2_000..12_000;
    room.run_for(15_000);
    let [(_, Event::Lost { oldest })] = room.ends[1].events[..] else { panic!("{:?}", room.ends[1].events) };
    assert!(oldest.is_newer_than(room.ends[1].session.diagnostics().settled));
    // So is its next process, which would have to begin with the first step.
    room.ends[1] = End::new(Config::new(2, 1, BEGIN), From::Player(1));
    room.run_for(3_000);
    let [(_, Event::Lost { oldest: later })] = room.ends[1].events[..] else {
        panic!("{:?}", room.ends[1].events)
    };
    assert!(later.is_newer_than(oldest));
    assert!(room.ends[0].events.is_empty());
}

#[test]
fn threat_22_a_clock_that_is_wrong_makes_nobody_go_back_further_than_the_window() {
    const DAY: i32 = 24 * 3_600 * HZ as i32;
    let clocks: [ClockError; 4] = [
        |now| if now.as_millis() < 4_000 { 0 } else { DAY },
        |now| if now.as_millis() < 4_000 { 0 } else { -DAY },
        |now| if now.as_millis() / 700 % 2 == 0 { 40 } else { -40 },
        |now| if now.as_millis() / 50 % 2 == 0 { DAY } else { -DAY },
    ];
    for (seed, clock) in (0u64..).zip(clocks) {
        println!("clock {seed}");
        let mut room = Room::new(seed, 4, GOOD);
        room.ends[2].clock = clock;
        room.run_for(20_000);
        room.assert_unaffected(2);
        let stalled = room.ends[1].session.diagnostics().stalled;
        assert!(stalled < 120, "a clock that is wrong held the others up for {stalled} ticks");
        let (steps, deepest) = (room.ends[0].steps, room.deepest());
        assert!(steps > 1_150 && deepest <= 24, "{steps} steps, {deepest}");
        room.ends[2].clock = |_| 0;
        room.run_for(10_000);
        room.check(1_700);
    }
}

#[test]
fn threat_23_ticks_far_off_and_junk_are_refused_and_take_no_memory() {
    let mut rng = Rng::new(23);
    let config = Config::new(3, 0, BEGIN);
    let mut end = End::new(config, From::Player(0));
    let mut other = End::new(Config::new(3, 1, BEGIN), From::Player(1));
    for frame in 0..400u64 {
        let now = Instant::from_millis(frame * 16);
        end.frame(now, &mut rng);
        other.frame(now, &mut rng);
        let mut out = Vec::new();
        while other.session.poll_message(&mut out).is_some() {
            for _ in 0..8 {
                // Random bytes anywhere, most of all in the ticks.
                let mut junk = out.clone();
                for _ in 0..1 + rng.below(6) {
                    let at = rng.index(junk.len().min(16));
                    junk[at] = u8::try_from(rng.below(256)).unwrap();
                }
                junk.truncate(junk.len() - rng.index(junk.len()) / 4);
                // Bad bytes are an error; it only matters that nothing breaks.
                let _ = end.session.handle_message(From::Player(1), junk.into());
            }
        }
    }
    let diagnostics = end.session.diagnostics();
    assert!(diagnostics.refused > 0 && diagnostics.ignored > 0, "{diagnostics:?}");
    assert!(diagnostics.deepest <= config.window);
    assert!(diagnostics.settled.since(diagnostics.next) <= 64);
    // Only the arbiter may settle ticks.
    let before = other.session.diagnostics();
    let mut settled = Vec::new();
    super::wire::write_head(&mut settled, 0, super::wire::Kind::Settled);
    super::wire::write_tick(&mut settled, before.settled);
    settled.extend([1, 9, 0xff]);
    for from in [From::Player(2), From::Other(0), From::Arbiter] {
        other.session.handle_message(from, settled.clone().into()).expect("it is laid out well");
    }
    let after = other.session.diagnostics();
    assert_eq!((after.settled, after.ignored), (before.settled, before.ignored + 3));
    other.session.handle_message(From::Player(0), settled.into()).expect("it is laid out well");
    assert_eq!(other.session.diagnostics().settled, before.settled.offset(9));
}

#[test]
fn threat_24_one_bit_that_differs_is_found_within_a_second_and_its_tick_named() {
    for seed in 0..30 {
        let mut room = Room::new(seed, 2 + u8::try_from(seed % 3).unwrap(), GOOD);
        let at = BEGIN.0 + 150 + u32::try_from(room.rng.below(100)).unwrap();
        room.ends[1].flip_after = Some(Tick(at));
        room.run_for(6_000);
        let differs = Tick(at + 1);
        let ran_ms = u64::from(at - 100) * 1_000 / u64::from(HZ);
        for end in &room.ends {
            let Some((ms, _)) = end.events.first() else {
                panic!("seed {seed}: {:?} found nothing", end.who)
            };
            assert!(*ms <= ran_ms + 1_000, "seed {seed}: found after {} ms", ms - ran_ms);
            for (_, event) in &end.events {
                let Event::Desync { player: Some(player), tick, is_exact } = event else {
                    panic!("{event:?}")
                };
                assert_eq!((*tick, *is_exact), (differs, true), "seed {seed}, {:?}", end.who);
                assert!(*player == 1 || end.who == From::Player(1), "only player 1 differs");
            }
        }
    }
}

#[test]
fn a_sync_test_finds_a_game_that_is_not_deterministic() {
    for is_sound in [true, false] {
        let config = Config::sync_test(2, BEGIN, 7);
        let mut end = End::new(config, From::Player(0));
        let mut runs = 0u64;
        for target in 0..200 {
            end.session.add_input(0, &[1]).unwrap();
            while end.session.step(BEGIN.offset(target)) {
                while let Some(request) = end.session.poll_request() {
                    match request {
                        Request::Save { tick } => {
                            end.states.save(tick, &end.game);
                            end.session.saved(tick, end.game.sum());
                        }
                        Request::Load { tick } => end.game.clone_from(end.states.load(tick).unwrap()),
                        Request::Advance { tick, inputs, is_replay } => {
                            end.game.step(tick, inputs);
                            runs += 1;
                            if !is_sound && tick == Tick(220) && is_replay {
                                end.game.0[0] ^= runs;
                            }
                        }
                    }
                }
            }
        }
        let expected = (!is_sound).then_some(Event::Desync { player: None, tick: Tick(221), is_exact: true });
        assert_eq!(end.session.poll_event(), expected);
        assert_eq!(end.session.diagnostics().replayed, 193 * 7);
    }
}

#[test]
fn x3_spectators_see_what_is_settled_some_ticks_behind_and_never_go_back() {
    let mut room = Room::new(9, 3, GOOD);
    for (number, delay) in [(50, 30), (51, 120)] {
        let config = Config { role: Role::Spectator { delay }, ..Config::new(3, 0, BEGIN) };
        room.ends.push(End::new(config, From::Other(number)));
    }
    room.run_for(10_000);
    room.check(450);
    for (end, delay) in room.ends[3..].iter().zip([30, 120]) {
        let diagnostics = end.session.diagnostics();
        assert_eq!((diagnostics.rollbacks, diagnostics.replayed), (0, 0));
        let behind = room.ends[0].session.diagnostics().next.since(diagnostics.next);
        assert!((delay - 2..delay + 6).contains(&behind), "{behind} ticks behind instead of {delay}");
        assert!(end.said.len() >= 450);
    }
}

#[test]
fn a_dedicated_host_settles_and_who_left_is_not_waited_for() {
    let mut room = Room::new(4, 3, GOOD);
    for me in 0..3 {
        let config = Config { arbiter: None, ..Config::new(3, me, BEGIN) };
        room.ends[usize::from(me)] = End::new(config, From::Player(me));
    }
    let config = Config { arbiter: None, role: Role::Arbiter, ..Config::new(3, 0, BEGIN) };
    room.ends.push(End::new(config, From::Arbiter));
    room.run_for(5_000);
    room.ends[2].asleep = 5_000..60_000;
    room.ends[3].session.left(2);
    let before = room.ends[0].session.diagnostics();
    room.run_for(5_000);
    let after = room.ends[0].session.diagnostics();
    assert_eq!(after.stalled, before.stalled, "nobody waits");
    room.ends.swap_remove(2);
    assert!(room.ends[0].after.len() > 580);
    for end in &room.ends {
        for tick in BEGIN.0..BEGIN.0 + 550 {
            assert_eq!(end.after[&tick], room.ends[0].after[&tick], "{:?} after tick {tick}", end.who);
        }
    }
}

#[test]
fn values_out_of_their_bounds_are_refused() {
    let good = Config::new(2, 0, BEGIN);
    assert!(Rollback::new(good).is_ok());
    for bad in [
        Config { players: 1, ..good },
        Config { players: 9, ..good },
        Config { window: 0, ..good },
        Config { window: ROLLBACK_WINDOW_MAX + 1, ..good },
        Config { input_delay: 17, ..good },
        Config { history: 0, ..good },
        Config { arbiter: Some(2), ..good },
        Config { role: Role::Player(2), ..good },
        Config { role: Role::Arbiter, ..good },
        Config::sync_test(2, BEGIN, 25),
    ] {
        assert!(Rollback::new(bad).is_err(), "{bad:?}");
    }
    let mut session = Rollback::new(good).unwrap();
    assert_eq!(session.add_input(1, &[]), Err(RollbackError::NotMine(1)));
    assert_eq!(session.add_input(0, &[0; 65]), Err(RollbackError::TooLarge(65)));
    assert_eq!(ROLLBACK_PLAYERS_MAX, 8);
}

#[test]
fn the_predictor_is_the_games() {
    let mut room = Room::new(3, 2, GOOD);
    for me in 0..2 {
        let config = Config { predictor: no_input, ..Config::new(2, me, BEGIN) };
        room.ends[usize::from(me)] = End::new(config, From::Player(me));
    }
    room.ends[1].asleep = 3_000..6_000;
    room.run_for(10_000);
    room.check(500);
    let missed = |inputs: &&Vec<PlayerInput>| inputs[1].status == InputStatus::Missed;
    assert!(room.settled.values().filter(missed).count() > 100);
    assert!(room.settled.values().filter(missed).all(|inputs| inputs[1].bytes().is_empty()));
}
