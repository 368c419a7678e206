//! The reference: a plain bit-packed delta coder without models, predictors or an entropy coder.
//!
//! ```text
//! frame:   list 1 bit
//!   list 0: for each cube 1 bit, whether it changed, and if it did the cube
//!   list 1: count of changed cubes 10 bits, then for each one its index and the cube
//! index:   near 1 bit · near: 9 bits, by how many it is beyond the last one, less one · else: 10 bits, the index
//! cube:    x y z, each: form 2 bits · 0: difference, 5 bits · 1: difference, 10 bits · 2: value, 18 bits
//!          largest part of the rotation 2 bits
//!          the three others, each: near 1 bit · near: difference, 4 bits · else: value, 9 bits
//!          awake 1 bit
//! ```
//!
//! Differences are two's complement, against the same cube in the baseline. Bits stand from the lowest of each byte up. The
//! encoder takes the form of the frame that is smaller.

use anyhow::{Context, ensure};

/// A cube as whole numbers: position, which part of the rotation is the largest, the three others, whether it is awake.
pub(crate) type Cube = [i32; 8];

const COUNT_BITS: u32 = 10;
const GAP_BITS: u32 = 9;
const POSITION_BITS: [u32; 3] = [5, 10, 18];
const PART_BITS: [u32; 2] = [4, 9];

/// One frame against another one with as many cubes.
pub(crate) fn encode(baseline: &[Cube], frame: &[Cube]) -> Vec<u8> {
    let mut flags = BitWriter::new(false);
    let mut list = BitWriter::new(true);
    let changed = || frame.iter().zip(baseline).enumerate().filter(|(_, (cube, from))| cube != from);
    list.write(changed().count() as u64, COUNT_BITS);
    for (cube, from) in frame.iter().zip(baseline) {
        flags.write(u64::from(cube != from), 1);
        if cube != from {
            write_cube(&mut flags, from, cube);
        }
    }
    let mut next = 0;
    for (index, (cube, from)) in changed() {
        let gap = index - next;
        let is_near = gap < 1 << GAP_BITS;
        list.write(u64::from(is_near), 1);
        if is_near {
            list.write(gap as u64, GAP_BITS);
        } else {
            list.write(index as u64, COUNT_BITS);
        }
        write_cube(&mut list, from, cube);
        next = index + 1;
    }
    if list.bits < flags.bits { list.bytes } else { flags.bytes }
}

/// The frame that was encoded against this baseline.
///
/// # Errors
/// The bytes are none that [`encode`] makes.
pub(crate) fn decode(baseline: &[Cube], bytes: &[u8]) -> anyhow::Result<Vec<Cube>> {
    let mut bits = BitReader { bytes, at: 0 };
    let mut frame = baseline.to_vec();
    if bits.read(1)? == 0 {
        for cube in &mut frame {
            if bits.read(1)? == 1 {
                read_cube(&mut bits, cube)?;
            }
        }
        return Ok(frame);
    }
    let mut next = 0;
    for _ in 0..bits.read(COUNT_BITS)? {
        let index = if bits.read(1)? == 1 {
            next + usize::try_from(bits.read(GAP_BITS)?)?
        } else {
            usize::try_from(bits.read(COUNT_BITS)?)?
        };
        let cube = frame.get_mut(index).context("the frame names a cube that there is not")?;
        read_cube(&mut bits, cube)?;
        next = index + 1;
    }
    Ok(frame)
}

fn write_cube(bits: &mut BitWriter, from: &Cube, cube: &Cube) {
    for axis in 0..3 {
        let difference = cube[axis] - from[axis];
        match POSITION_BITS[..2].iter().position(|width| fits(difference, *width)) {
            Some(form) => {
                bits.write(form as u64, 2);
                bits.write_signed(difference, POSITION_BITS[form]);
            }
            None => {
                bits.write(2, 2);
                bits.write_signed(cube[axis], POSITION_BITS[2]);
            }
        }
    }
    bits.write_signed(cube[3], 2);
    for part in 4..7 {
        let difference = cube[part] - from[part];
        let is_near = fits(difference, PART_BITS[0]);
        bits.write(u64::from(is_near), 1);
        if is_near {
            bits.write_signed(difference, PART_BITS[0]);
        } else {
            bits.write_signed(cube[part], PART_BITS[1]);
        }
    }
    bits.write_signed(cube[7], 1);
}

fn read_cube(bits: &mut BitReader<'_>, cube: &mut Cube) -> anyhow::Result<()> {
    for value in &mut cube[..3] {
        *value = match bits.read(2)? {
            2 => bits.read_unsigned(POSITION_BITS[2])?,
            3 => anyhow::bail!("a position has a form that there is not"),
            near => *value + bits.read_signed(if near == 0 { POSITION_BITS[0] } else { POSITION_BITS[1] })?,
        };
    }
    cube[3] = bits.read_unsigned(2)?;
    for part in &mut cube[4..7] {
        *part = match bits.read(1)? {
            1 => *part + bits.read_signed(PART_BITS[0])?,
            _ => bits.read_unsigned(PART_BITS[1])?,
        };
    }
    cube[7] = bits.read_unsigned(1)?;
    Ok(())
}

/// Whether a difference can be written with so many bits.
fn fits(difference: i32, width: u32) -> bool {
    let half = 1 << (width - 1);
    (-half..half).contains(&difference)
}

struct BitWriter {
    bytes: Vec<u8>,
    bits: usize,
}

impl BitWriter {
    /// A frame of this form.
    fn new(is_list: bool) -> Self {
        let mut bits = BitWriter { bytes: Vec::new(), bits: 0 };
        bits.write(u64::from(is_list), 1);
        bits
    }

    fn write(&mut self, value: u64, width: u32) {
        for bit in 0..width {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("a byte was begun");
            *last |= u8::from(value >> bit & 1 == 1) << (self.bits % 8);
            self.bits += 1;
        }
    }

    /// The lowest bits of a value.
    fn write_signed(&mut self, value: i32, width: u32) {
        self.write(u64::from(value.cast_unsigned()), width);
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    fn read(&mut self, width: u32) -> anyhow::Result<u64> {
        let mut value = 0;
        for bit in 0..width {
            ensure!(self.at / 8 < self.bytes.len(), "the frame ends too early");
            value |= u64::from(self.bytes[self.at / 8] >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Ok(value)
    }

    fn read_unsigned(&mut self, width: u32) -> anyhow::Result<i32> {
        Ok(i32::try_from(self.read(width)?)?)
    }

    fn read_signed(&mut self, width: u32) -> anyhow::Result<i32> {
        let value = self.read_unsigned(width)?;
        Ok(value - ((value >> (width - 1) & 1) << width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_impair::Rng;

    /// A whole number from `low` up to but without `high`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "bounds of a cube")]
    fn whole(random: &mut Rng, low: i32, high: i32) -> i32 {
        random.between(low as f32, high as f32) as i32
    }

    /// Cubes anywhere, of which some moved a little, some far and most not at all.
    fn frames(seed: u64, cubes: usize, moving: f32) -> [Vec<Cube>; 2] {
        let mut random = Rng::new(seed);
        let spans = [1 << 18, 1 << 18, 1 << 18, 4, 512, 512, 512, 2];
        let before: Vec<Cube> = (0..cubes).map(|_| spans.map(|span| whole(&mut random, 0, span))).collect();
        let mut after = before.clone();
        for cube in &mut after {
            if random.between(0.0, 1.0) >= moving {
                continue;
            }
            let reach = [20, 600, 300_000]
                [usize::from(random.between(0.0, 1.0) < 0.5) + usize::from(random.between(0.0, 1.0) < 0.3)];
            for (lane, span) in cube.iter_mut().zip(spans) {
                *lane = (*lane + whole(&mut random, -reach, reach)).clamp(0, span - 1);
            }
            cube[7] = 1 - cube[7];
        }
        [before, after]
    }

    #[test]
    fn every_frame_comes_back_exactly() {
        for (seed, moving) in (0..40).zip([0.0, 0.003, 0.05, 0.3, 1.0].into_iter().cycle()) {
            let [before, after] = frames(seed, 901, moving);
            let bytes = encode(&before, &after);
            assert_eq!(decode(&before, &bytes).expect("it was encoded so"), after, "seed {seed}");
            let cut = &bytes[..bytes.len() - 1];
            assert!(decode(&before, cut).is_err(), "seed {seed}");
        }
    }

    #[test]
    fn the_smaller_form_is_taken_and_its_size_is_what_the_layout_says() {
        let [before, _] = frames(1, 901, 0.0);
        // No cube changed: a form and a count.
        assert_eq!(encode(&before, &before).len(), 2);
        let mut one = before.clone();
        one[700][0] ^= 1;
        // The count, an index that is far, one cube with small differences.
        assert_eq!(encode(&before, &one).len(), (1 + 10 + 11 + 3 * 7 + 2 + 3 * 5 + 1_usize).div_ceil(8));
        let all: Vec<Cube> = before
            .iter()
            .map(|cube| {
                let mut cube = *cube;
                cube[7] = 1 - cube[7];
                cube
            })
            .collect();
        assert_eq!(encode(&before, &all).len(), (1 + 901 * (1 + 39_usize)).div_ceil(8));
    }
}
