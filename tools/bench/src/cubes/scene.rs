//! The scene: what `cubes-scene` of `bench/peers` writes, quantized.

use super::super::peers;
use super::reference;
use anyhow::{Context, bail, ensure};
use parlor_sync::replicated;
use parlor_sync::schema::{Component, Kind, Range, Replicated, RowWriter, Schema, Transform};
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};

/// A cube as a game would have it: 1/512 m, and the three smaller parts of its rotation with 9 bits each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cube {
    transform: Transform,
    awake: bool,
}

/// Positions as the reference has them: 18 bits.
const POSITION: Range = Range::new(-256.0, 256.0 - 1.0 / 512.0, 1.0 / 512.0);

replicated!(Cube as "cube" => {
    transform: Kind::Transform { position: POSITION, rotation_bits: 9 },
    awake: Kind::Bool,
});

/// The schema of the scene.
///
/// # Errors
/// It cannot be built.
pub(crate) fn schema() -> anyhow::Result<Schema> {
    Ok(Schema::bare().replicate::<Cube>().build()?)
}

/// One frame: the lanes of each cube, which are what the reference codes as well.
pub(crate) type Frame = Vec<reference::Cube>;

const MAGIC: &[u8; 8] = b"CUBES\0\0\x01";
/// What the scene writes of a cube.
const CUBE_BYTES: usize = 13 * 4 + 1;

/// Frames of a seed; `None` where the scene is not built.
///
/// # Errors
/// It could not be started, or writes something else.
pub(crate) fn frames(seed: u64, count: u32) -> anyhow::Result<Option<Vec<Frame>>> {
    let Some(program) = peers::built("target/release/cubes-scene") else { return Ok(None) };
    let mut command = Command::new(program);
    command.args([seed.to_string(), count.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cubes-scene cannot be started")?;
    let mut said = BufReader::new(child.stdout.take().context("its output is piped")?);
    let frames = read_frames(&mut said);
    // It ends with its last frame, or at a closed pipe.
    drop(said);
    let ended = child.wait().context("cubes-scene does not end")?;
    ensure!(ended.success(), "cubes-scene failed: its words stand above");
    frames.map(Some)
}

fn read_frames(from: &mut impl Read) -> anyhow::Result<Vec<Frame>> {
    let mut magic = [0; 8];
    from.read_exact(&mut magic)?;
    ensure!(&magic == MAGIC, "cubes-scene writes another layout: build it again");
    let mut number = || -> anyhow::Result<u32> {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    let (cubes, hz, frames) = (number()?, number()?, number()?);
    if cubes == 0 || hz == 0 {
        bail!("a scene without cubes, or without time");
    }
    let component = Cube::component();
    let mut bytes = vec![0; CUBE_BYTES];
    let mut frame = || -> anyhow::Result<Frame> {
        let mut frame = Frame::new();
        for _ in 0..cubes {
            from.read_exact(&mut bytes).context("the scene ends too early")?;
            frame.push(quantized(&component, &bytes)?);
        }
        Ok(frame)
    };
    (0..frames).map(|_| frame()).collect()
}

/// A cube as it was written, quantized as the schema does it.
fn quantized(component: &Component, bytes: &[u8]) -> anyhow::Result<reference::Cube> {
    let part = |index: usize| {
        let part = bytes[4 * index..].first_chunk().expect("a cube has thirteen numbers");
        f32::from_le_bytes(*part)
    };
    let transform = Transform { position: [0, 1, 2].map(part), rotation: [3, 4, 5, 6].map(part) };
    let cube = Cube { transform, awake: bytes[CUBE_BYTES - 1] & 1 == 1 };
    let mut lanes = reference::Cube::default();
    let mut row = RowWriter::new(component, &mut lanes, &mut []);
    cube.write(&mut row);
    row.finish()?;
    Ok(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_and_quantized() {
        let mut bytes = MAGIC.to_vec();
        for number in [2_u32, 60, 1] {
            bytes.extend(number.to_le_bytes());
        }
        for (x, awake) in [(1.5_f32, 1), (-256.0, 0)] {
            let numbers = [x, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
            numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            bytes.push(awake);
        }
        let frames = read_frames(&mut bytes.as_slice()).expect("it is a scene");
        let [one, other] = frames[0][..] else { panic!("there are two cubes") };
        assert_eq!(one[..4], [(256 + 1) * 512 + 256, 256 * 512, 257 * 512, 3]);
        assert_eq!((one[7], other[0], other[7]), (1, 0, 0));
        bytes.pop();
        assert!(read_frames(&mut bytes.as_slice()).is_err());
        assert!(read_frames(&mut b"CUBES\0\0\x02........".as_slice()).is_err());
    }

    #[test]
    fn a_cube_has_the_lanes_that_the_reference_codes() {
        let component = Cube::component();
        assert_eq!((component.lanes(), component.blobs()), (reference::Cube::default().len(), 0));
        let spans: Vec<u32> = component.lane_kinds().iter().map(|lane| lane.span).collect();
        let bits = |span: u32| 32 - span.leading_zeros();
        assert_eq!(spans.iter().map(|span| bits(*span)).collect::<Vec<_>>(), [18, 18, 18, 2, 9, 9, 9, 1]);
    }
}
