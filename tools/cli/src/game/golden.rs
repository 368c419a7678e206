//! `testdata/magpies.txt`: games, and the values that are published after each of their steps. The page's rules in
//! `web/play` are held against the same file. `PARLOR_GOLDEN=write` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use parlor_impair::Rng;

use super::state::{Badge, GemState, Value};
use super::*;

const HEAD: &str = "\
# Games of Magpies. Each line is a call, or what is published after the calls above it.
#   world SEED              an empty field
#   resume SEED             goes on with what is published, as a new host does
#   tick N                  the number of the last step
#   join ID NAME            a player comes
#   leave ID                a player goes
#   step COUNT ID=INPUT …   so many steps with these inputs; INPUT is the first letter of the direction, * with a dash
#   hash HEX                FNV-1a, 32 bits, over the values after each step since `world`: their lines as below, each with
#                           a line feed
#   KEY …                   a published value: places in 1/64 units, the rest as it is
";

/// Records what is called, and what comes of it.
struct Record {
    world: World,
    text: String,
    hash: u32,
}

impl Record {
    fn new(seed: u64) -> Record {
        Record { world: World::new(seed), text: format!("\nworld {seed}\n"), hash: FNV_OFFSET }
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.text, "{line}").unwrap();
    }

    fn join(&mut self, id: u32, name: &str) {
        self.line(format_args!("join {id} {name}"));
        self.world.join(id, name);
    }

    fn leave(&mut self, id: u32) {
        self.line(format_args!("leave {id}"));
        self.world.leave(id);
    }

    fn tick(&mut self, tick: u32) {
        self.line(format_args!("tick {tick}"));
        self.world.set_tick(tick);
    }

    fn resume(&mut self, seed: u64) {
        self.line(format_args!("resume {seed}"));
        self.world = World::resume(seed, &self.world.scene());
    }

    fn step(&mut self, count: u32, inputs: &BTreeMap<u32, Input>) {
        let mut line = format!("step {count}");
        for (id, Input { dir, dash }) in inputs {
            write!(line, " {id}={}{}", &format!("{dir:?}")[..1], if *dash { "*" } else { "" }).unwrap();
        }
        self.line(line);
        for _ in 0..count {
            self.world.step(inputs);
            for line in published(&mut self.world) {
                self.hash = line.bytes().chain(*b"\n").fold(self.hash, fnv);
            }
        }
    }

    /// Ends a part of a game: its hash, and the values as they stand.
    fn check(&mut self) {
        let hash = self.hash;
        self.line(format_args!("hash {hash:08x}"));
        for line in published(&mut self.world) {
            self.line(line);
        }
    }
}

const FNV_OFFSET: u32 = 0x811c_9dc5;

fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

fn published(world: &mut World) -> Vec<String> {
    let place = |units: f32| format!("{:.0}", units * 64.0);
    let line = |(key, value): (String, Value)| match value {
        Value::Player(PlayerState { x, y, heading, motion, safe, score, dash_ready_at }) => {
            let (x, y) = (place(x), place(y));
            format!("{key} {x} {y} {heading:?} {motion:?} {safe} {score} {dash_ready_at}")
        }
        Value::Badge(Badge { name, slot, glyph }) => format!("{key} {slot} {glyph} {name}"),
        Value::Gem(GemState { x, y, worth }) => format!("{key} {} {} {worth}", place(x), place(y)),
        Value::Round(RoundState { number, phase, ends_at, winners, best }) => {
            format!("{key} {number} {phase:?} {ends_at} {winners:?} {best}")
        }
    };
    world.publish().set.into_iter().map(line).collect()
}

/// Bots through a whole round, its end and the next one's start, with a new host in the middle.
fn a_round() -> String {
    let mut record = Record::new(7);
    for (id, name) in [(0, "Ada"), (1, "Bo"), (2, "Åsa")] {
        record.join(id, name);
    }
    let mut bots: Vec<(u32, Bot)> =
        (0..3).map(|id| (id, Bot::new(id.into(), 0.5 + 0.2 * id as f32))).collect();
    for tick in 0..67 * HZ {
        let scene = record.world.scene();
        let inputs = bots.iter_mut().map(|(id, bot)| (*id, bot.think(&scene, *id))).collect();
        record.step(1, &inputs);
        if tick == 20 * HZ {
            record.check();
            record.resume(u64::MAX - 7);
        }
    }
    record.check();
    record.text
}

/// Players come and go, and the inputs are no plan; the ticks wrap around.
fn a_crowd() -> String {
    let mut record = Record::new(0xdead_beef_0bad_cafe);
    let mut rng = Rng::new(1);
    record.tick(u32::MAX - 20 * HZ);
    for _ in 0..300 {
        let id = u32::try_from(rng.below(16)).unwrap();
        match rng.below(5) {
            0 => record.join(id, ["Zoë 7", "x", "a very long name indeed", "@"][rng.index(4)]),
            1 if rng.chance(0.3) => record.leave(id),
            _ => {
                let dir = |rng: &mut Rng| rng.pick(&[Dir::Stay, Dir::Up, Dir::Down, Dir::Left, Dir::Right]);
                let ids = (0..16).filter(|_| rng.chance(0.7)).collect::<Vec<u32>>();
                let inputs = ids.into_iter().map(|id| {
                    let dash = rng.chance(0.4);
                    (id, Input { dir: dir(&mut rng), dash })
                });
                let inputs = inputs.collect();
                record.step(1 + u32::try_from(rng.below(9)).unwrap(), &inputs);
            }
        }
    }
    record.check();
    record.text
}

#[test]
fn testdata_magpies_txt_is_how_the_game_goes() {
    let golden = [HEAD, &a_round(), &a_crowd()].concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/magpies.txt");
    if std::env::var("PARLOR_GOLDEN").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &golden).unwrap();
    }
    let file = std::fs::read_to_string(&path).unwrap();
    let differs = golden.lines().zip(file.lines()).enumerate().find(|(_, (ours, theirs))| ours != theirs);
    assert_eq!(differs, None, "another game; PARLOR_GOLDEN=write rewrites the file");
    assert_eq!(golden.len(), file.len(), "the file is longer or shorter");
}
