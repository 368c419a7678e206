//! The size of a physical scene: 901 cubes that fall and are pushed, each frame coded against the one 6
//! frames before, beside a plain bit-packed delta coder. Every frame is decoded and compared bit for bit.

mod reference;
mod scene;

use super::args::CubesArgs;
use super::peers::how_to_build;
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::{Context, ensure};
use parlor_proto::TickRate;
use parlor_sync::delta::{EntryHead, Past, Reader, Tables, Writer, pick_history};
use parlor_sync::schema::ComponentId;
use scene::Frame;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// How old the newest frame is that the receiver is known to have.
const BASELINE_AGE: usize = 6;
/// How many frames before that one it is known to have as well.
const KNOWN_BEFORE: usize = 63;
const HZ: u16 = 60;

/// One row.
#[derive(Debug, Serialize)]
struct Row {
    seed: u64,
    coder: &'static str,
    bytes_per_frame: f64,
    ratio_to_reference: f64,
    entities_per_frame: f64,
    bytes_per_entity: f64,
    encode_us_per_frame: f64,
    encode_ns_per_entity: f64,
}

/// Runs the bench.
///
/// # Errors
/// There is no scene, or a frame does not come back as it was.
pub(crate) fn run(args: &CubesArgs) -> anyhow::Result<()> {
    let tables = Tables::new(&scene::schema()?, TickRate::new(HZ).context("rooms may have 60 Hz")?);
    let mut rows = Vec::new();
    for seed in [args.common.seed].iter().chain(&args.more_seeds) {
        tell(&format!("seed {seed}"));
        let frames =
            scene::frames(*seed, args.frames)?.with_context(|| how_to_build("the scene of the cubes"))?;
        let reference = measure(
            &frames,
            |at| Ok(reference::encode(&frames[at - BASELINE_AGE], &frames[at])),
            |at, bytes| reference::decode(&frames[at - BASELINE_AGE], bytes),
        )?;
        let mut row = |coder, coded: &Coded| rows.push(coded.row(*seed, coder, &reference));
        row("reference", &reference);
        for (coder, manner) in [("without motion", Manner::Hold), ("with motion", Manner::Motion)] {
            let mut writer = Writer::new();
            let coded = measure(
                &frames,
                |at| Ok(encode(&tables, &mut writer, &frames, at, manner)),
                |at, bytes| decode(&tables, &frames, at, bytes),
            )?;
            row(coder, &coded);
        }
    }
    let setting = json!({
        "frames": args.frames, "baseline_age_frames": BASELINE_AGE, "hz": HZ, "headers": "excluded",
    });
    print("cubes", args.common.json, &setting, &rows, &[], &table(&rows))
}

/// Against what a cube is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Its baseline alone.
    Hold,
    /// Its baseline, and older frames that the receiver is known to have.
    Motion,
}

impl Manner {
    /// The ages of the frames that are known, of those that the coder wants.
    fn ages(self, at: usize) -> Vec<u32> {
        let age = u32::try_from(BASELINE_AGE).expect("it is 6");
        if self == Manner::Hold {
            return vec![age];
        }
        let known = KNOWN_BEFORE.min(at - BASELINE_AGE);
        let (offsets, count) = pick_history(u64::MAX >> (63 - known), age);
        offsets[..count].iter().map(|offset| age + offset).collect()
    }
}

/// A frame as the body of one packet.
fn encode(tables: &Tables, writer: &mut Writer, frames: &[Frame], at: usize, manner: Manner) -> Vec<u8> {
    let ages = manner.ages(at);
    let baseline = &frames[at - BASELINE_AGE];
    writer.begin(tables, false);
    for (index, (cube, from)) in frames[at].iter().zip(baseline).enumerate() {
        if cube == from {
            continue;
        }
        let slot = u16::try_from(index).expect("a world has fewer slots");
        let mut head = EntryHead::update(slot);
        head.history = u8::try_from(ages.len()).expect("there are three at most");
        head.ages[..ages.len()].copy_from_slice(&ages);
        head.changed = ComponentId(0).bit();
        writer.head(tables, &head);
        let (past, count) = past(frames, at, index, &ages);
        writer.component(tables, ComponentId(0), &past[..count], cube, &[]);
    }
    let mut bytes = Vec::new();
    writer.finish(tables, &mut bytes);
    bytes
}

/// The frame that was encoded so, from the frames that the receiver has.
fn decode(tables: &Tables, frames: &[Frame], at: usize, bytes: &[u8]) -> anyhow::Result<Frame> {
    let mut frame = frames[at - BASELINE_AGE].clone();
    let mut reader = Reader::new(tables, bytes, false);
    while let Some(head) = reader.head()? {
        let index = usize::from(head.slot);
        let ages = &head.ages[..usize::from(head.history)];
        let (past, count) = past(frames, at, index, ages);
        let cube = frame.get_mut(index).context("a frame names a cube that there is not")?;
        reader.component(ComponentId(0), &past[..count], cube, &mut [])?;
    }
    Ok(frame)
}

/// One cube in the frames of these ages, and how many they are.
fn past<'a>(frames: &'a [Frame], at: usize, index: usize, ages: &[u32]) -> ([Past<'a>; 3], usize) {
    let mut past = [Past { age: 0, lanes: &[], blobs: &[] }; 3];
    for (past, age) in past.iter_mut().zip(ages) {
        *past = Past { age: *age, lanes: &frames[at - *age as usize][index], blobs: &[] };
    }
    (past, ages.len())
}

/// What a coder made of a scene.
#[derive(Debug)]
struct Coded {
    frames: usize,
    bytes: usize,
    entities: usize,
    took: Duration,
}

/// Encodes each frame that has a baseline, decodes it, and compares.
fn measure(
    frames: &[Frame],
    mut encode: impl FnMut(usize) -> anyhow::Result<Vec<u8>>,
    decode: impl Fn(usize, &[u8]) -> anyhow::Result<Frame>,
) -> anyhow::Result<Coded> {
    let mut coded = Coded { frames: 0, bytes: 0, entities: 0, took: Duration::ZERO };
    for at in BASELINE_AGE..frames.len() {
        let began = Instant::now();
        let bytes = encode(at)?;
        coded.took += began.elapsed();
        ensure!(decode(at, &bytes)? == frames[at], "frame {at} does not come back as it was");
        coded.frames += 1;
        coded.bytes += bytes.len();
        let pairs = frames[at].iter().zip(&frames[at - BASELINE_AGE]);
        coded.entities += pairs.filter(|(cube, from)| cube != from).count();
    }
    Ok(coded)
}

impl Coded {
    #[expect(clippy::cast_precision_loss, reason = "frames of minutes stay far below 2⁵³ bytes")]
    fn row(&self, seed: u64, coder: &'static str, reference: &Coded) -> Row {
        let per = |part: f64, of: usize| part / of.max(1) as f64;
        let took_us = self.took.as_secs_f64() * 1e6;
        Row {
            seed,
            coder,
            bytes_per_frame: per(self.bytes as f64, self.frames),
            ratio_to_reference: per(self.bytes as f64, reference.bytes),
            entities_per_frame: per(self.entities as f64, self.frames),
            bytes_per_entity: per(self.bytes as f64, self.entities),
            encode_us_per_frame: per(took_us, self.frames),
            encode_ns_per_entity: per(took_us * 1e3, self.entities),
        }
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("seed", |row| row.seed.to_string()),
            ("changed cubes", |row| figure(row.entities_per_frame, 1)),
            ("B/frame", |row| figure(row.bytes_per_frame, 1)),
            ("ratio", |row| figure(row.ratio_to_reference, 3)),
            ("B/cube", |row| figure(row.bytes_per_entity, 2)),
            ("encode µs/frame", |row| figure(row.encode_us_per_frame, 1)),
            ("encode ns/cube", |row| figure(row.encode_ns_per_entity, 0)),
            ("coder", |row| row.coder.to_owned()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cubes of which some fall, some turn, and some rest.
    fn frames(count: i32) -> Vec<Frame> {
        let cube = |index: i32, at: i32| match index % 3 {
            0 => [1_000 * index, 500, 90_000 - at * at, 3, 256, 256, 256, 1],
            1 => [1_000 * index + 7 * at, 500, 10, 3, 200 + at % 50, 256, 256, 1],
            _ => [1_000 * index, 700, 3, 3, 256, 256, 256, 0],
        };
        (0..count).map(|at| (0..60).map(|index| cube(index, at)).collect()).collect()
    }

    #[test]
    fn frames_come_back_and_motion_makes_them_smaller() {
        let frames = frames(60);
        let rate = TickRate::new(HZ).expect("rooms may have 60 Hz");
        let tables = Tables::new(&scene::schema().expect("it can be built"), rate);
        let coded = [Manner::Hold, Manner::Motion].map(|manner| {
            let mut writer = Writer::new();
            let encode = |at| Ok(encode(&tables, &mut writer, &frames, at, manner));
            measure(&frames, encode, |at, bytes| decode(&tables, &frames, at, bytes)).expect("they come back")
        });
        assert!(coded.iter().all(|coded| coded.frames == 54 && coded.entities == 54 * 40), "{coded:?}");
        assert!(coded[1].bytes < coded[0].bytes, "{coded:?}");
    }

    #[test]
    fn a_frame_that_comes_back_otherwise_is_an_error() {
        let frames = frames(8);
        let error =
            measure(&frames, |_| Ok(Vec::new()), |_, _| Ok(frames[0].clone())).expect_err("it differs");
        assert!(error.to_string().contains("frame 6"), "{error}");
    }
}
