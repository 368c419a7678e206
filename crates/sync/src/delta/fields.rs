//! Codes one component, group by group.

#![expect(clippy::cast_possible_truncation, reason = "what is cut was clamped, or has a root of its bits")]

use super::layout::{self, blob as blob_models};
use super::motion::{Weights, part};
use super::numbers::{Learned, Rows, numbers, wrap};
use super::tables::{Group, Numbers, Plan, Shape, Tables};
use super::{DeltaError, HISTORY_MAX, Past};
use crate::coder::{Bit, Code, Symbols, number};
use crate::schema::ComponentId;
use bytes::Bytes;

/// Adaptive state of the components, learned at both ends in the course of a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Learner {
    /// Models of the head, then of the components in use.
    pub(super) models: Vec<Bit>,
    symbols: Vec<Symbols>,
    learned: Vec<Learned>,
    /// Components in use: their models and means belong to this packet.
    begun: u64,
    /// Components that were coded in this packet, and their last lanes and blobs.
    has_last: u64,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
    weights: Weights,
}

impl Learner {
    /// Resets everything at the beginning of a packet.
    pub(super) fn begin(&mut self, tables: &Tables) {
        self.fit(tables);
        self.models[..layout::HEAD].copy_from_slice(&tables.models[..layout::HEAD]);
        self.blobs.fill(Bytes::new());
        (self.begun, self.has_last) = (0, 0);
    }

    /// Takes over the state of another learner with the same tables. Copies only what is in use.
    pub(super) fn resume(&mut self, tables: &Tables, other: &Learner) {
        self.fit(tables);
        self.models[..layout::HEAD].copy_from_slice(&other.models[..layout::HEAD]);
        for id in ComponentId::in_mask(other.begun) {
            let plan = tables.plan(id);
            self.models[plan.models()].copy_from_slice(&other.models[plan.models()]);
            self.symbols[plan.symbols()].copy_from_slice(&other.symbols[plan.symbols()]);
            self.learned[plan.groups()].copy_from_slice(&other.learned[plan.groups()]);
        }
        self.lanes.copy_from_slice(&other.lanes);
        self.blobs.clone_from_slice(&other.blobs);
        (self.begun, self.has_last) = (other.begun, other.has_last);
        self.weights = other.weights;
    }

    /// Sets the lengths of all lists.
    fn fit(&mut self, tables: &Tables) {
        self.models.resize(tables.models.len(), Bit::EVEN);
        self.symbols.resize(tables.symbols.len(), Symbols::EVEN);
        self.learned.resize(tables.groups, Learned::default());
        self.lanes.resize(tables.lanes, 0);
        self.blobs.resize(tables.blobs, Bytes::new());
    }

    fn begin_component(&mut self, tables: &Tables, id: ComponentId, plan: &Plan) {
        self.models[plan.models()].copy_from_slice(&tables.models[plan.models()]);
        self.symbols[plan.symbols()].copy_from_slice(&tables.symbols[plan.symbols()]);
        self.learned[plan.groups()].fill(Learned::default());
        self.begun |= id.bit();
    }

    /// Codes a component against its past; without one, against its last value in this packet, or zeros.
    /// Calls `told` with the field after each group.
    pub(super) fn component<C: Code>(
        &mut self,
        code: &mut C,
        tables: &Tables,
        id: ComponentId,
        past: &[Past<'_>],
        (lanes, blobs): (&mut [i32], &mut [Bytes]),
        mut told: impl FnMut(usize, &C),
    ) -> Result<(), DeltaError> {
        let plan = tables.plan(id);
        if self.begun & id.bit() == 0 {
            self.begin_component(tables, id, plan);
        }
        let past = &past[..past.len().min(HISTORY_MAX)];
        let mut ages = [0; HISTORY_MAX];
        past.iter().zip(&mut ages).for_each(|(past, age)| *age = past.age);
        if !self.weights.are_of(&ages, past.len()) {
            self.weights = Weights::of(&ages[..past.len()]);
        }
        let lane = plan.lane..plan.lane + plan.lanes;
        let blob = plan.blob..plan.blob + plan.blobs;
        if self.has_last & id.bit() == 0 {
            self.lanes[lane.clone()].fill(0);
        }
        let mut coding = Coding {
            code,
            models: &mut self.models[plan.models()],
            symbols: &mut self.symbols[plan.symbols()],
            weights: &self.weights,
            past,
            last: &self.lanes[lane.clone()],
            last_blobs: &self.blobs[blob.clone()],
            id,
        };
        for (group, learned) in plan.groups.iter().zip(&mut self.learned[plan.group..]) {
            coding.group(group, learned, lanes, blobs)?;
            told(group.field, &*coding.code);
        }
        self.has_last |= id.bit();
        self.lanes[lane].copy_from_slice(lanes);
        self.blobs[blob].clone_from_slice(blobs);
        Ok(())
    }
}

struct Coding<'a, C> {
    code: &'a mut C,
    models: &'a mut [Bit],
    symbols: &'a mut [Symbols],
    weights: &'a Weights,
    past: &'a [Past<'a>],
    last: &'a [i32],
    last_blobs: &'a [Bytes],
    id: ComponentId,
}

impl<'a, C: Code> Coding<'a, C> {
    /// The lanes that are used as the base.
    fn base(&self) -> &'a [i32] {
        self.past.first().map_or(self.last, |past| past.lanes)
    }

    fn group(
        &mut self,
        group: &Group,
        learned: &mut Learned,
        lanes: &mut [i32],
        blobs: &mut [Bytes],
    ) -> Result<(), DeltaError> {
        let own = &mut self.models[group.models..];
        match &group.shape {
            Shape::Flag => {
                let was = self.past.first().map_or(self.last, |past| past.lanes)[group.first] != 0;
                let is = self.code.bit(&mut own[usize::from(was)], lanes[group.first] != 0);
                lanes[group.first] = i32::from(is);
                Ok(())
            }
            Shape::Choice { bits, last } => self.choice(group, *bits, *last, lanes),
            Shape::Numbers(numbers) => match numbers.dims {
                1 => self.numbers::<1>(group, numbers, learned, lanes),
                2 => self.numbers::<2>(group, numbers, learned, lanes),
                _ => self.numbers::<3>(group, numbers, learned, lanes),
            },
            Shape::Rotation(numbers) => self.rotation(group, numbers, learned, lanes),
            Shape::Blob { bytes_max } => {
                let base = self.past.first().map_or(self.last_blobs, |past| past.blobs);
                let base = base.get(group.first).cloned().unwrap_or_default();
                let models = &mut own[..layout::BLOB_LEN];
                let component = self.id;
                blobs[group.first] = match blob(self.code, models, &base, &blobs[group.first], *bytes_max) {
                    Ok(read) => read,
                    Err(NoBlob::Length) => {
                        return Err(DeltaError::Blob { component, bytes_max: *bytes_max });
                    }
                    Err(NoBlob::Form) => return Err(DeltaError::Form { component }),
                };
                Ok(())
            }
        }
    }

    fn choice(&mut self, group: &Group, bits: u32, last: i32, lanes: &mut [i32]) -> Result<(), DeltaError> {
        let was = self.base()[group.first];
        let models = &mut self.models[group.models..];
        let lane = &mut lanes[group.first];
        if !self.code.bit(&mut models[0], *lane != was) {
            *lane = was;
            return Ok(());
        }
        let mut node = 1usize;
        for bit in (0..bits).rev() {
            node = node << 1 | usize::from(self.code.bit(&mut models[node], *lane >> bit & 1 == 1));
        }
        let read = i32::try_from(node - (1 << bits)).unwrap_or(i32::MAX);
        if C::DECODES && read == was {
            return Err(DeltaError::Form { component: self.id });
        }
        self.take(lane, group.first, read, last)
    }

    fn take(&self, lane: &mut i32, index: usize, value: i32, span: i32) -> Result<(), DeltaError> {
        if !(0..=span).contains(&value) {
            return Err(DeltaError::Lane { component: self.id, lane: index, value, span });
        }
        *lane = value;
        Ok(())
    }

    #[inline(always)]
    fn rows<const D: usize>(&self, first: usize, steps: i32) -> Rows {
        let mut rows = Rows { count: self.past.len(), ..Rows::default() };
        for (row, past) in rows.rows.iter_mut().zip(self.past) {
            row[..D].copy_from_slice(&past.lanes[first..first + D]);
        }
        if rows.count == 0 {
            rows.rows[0][..D].copy_from_slice(&self.last[first..first + D]);
        }
        if steps > 0 {
            let [held, older @ ..] = &mut rows.rows;
            for row in older {
                row.iter_mut().zip(held.iter()).for_each(|(n, held)| *n = held + wrap(*n - held, steps));
            }
        }
        rows
    }

    fn numbers<const D: usize>(
        &mut self,
        group: &Group,
        spec: &Numbers,
        learned: &mut Learned,
        lanes: &mut [i32],
    ) -> Result<(), DeltaError> {
        let first = group.first;
        let mut rows = self.rows::<D>(first, spec.steps);
        if let (Some((velocity, per_tick)), [past, ..], true) =
            (spec.velocity, self.past, self.weights.ahead > 0)
        {
            let mut at = rows.rows[0];
            for j in 0..D {
                // The mean of the velocities at both ends. The newer velocity was coded before the position.
                let twice = i64::from(past.lanes[velocity + j]) + i64::from(lanes[velocity + j]);
                let per_tick = per_tick.offset_q16 + ((per_tick.scale_q16 * twice) >> 1);
                let at_last = i64::from(at[j]) + part(per_tick * self.weights.ahead);
                at[j] = at_last.clamp(0, i64::from(spec.span)) as i32;
            }
            rows.by_velocity = Some(at);
        }
        self.lanes_of::<D>(group, spec, &rows, learned, &mut lanes[first..first + D])
    }

    #[inline(always)]
    fn lanes_of<const D: usize>(
        &mut self,
        group: &Group,
        spec: &Numbers,
        rows: &Rows,
        learned: &mut Learned,
        lanes: &mut [i32],
    ) -> Result<(), DeltaError> {
        let mut values = [0; D];
        values.copy_from_slice(lanes);
        if spec.steps > 0 && !C::DECODES {
            for (value, held) in values.iter_mut().zip(&rows.rows[0]) {
                *value = held + wrap(*value - held, spec.steps);
            }
        }
        let family =
            self.symbols[group.symbols..].first_chunk_mut().expect("a group has the models of its family");
        let own = self.models[group.models..].first_chunk_mut().expect("a group has models of its own");
        let models = (family, own);
        let is_good = numbers::<C, D>(self.code, models, learned, (self.weights, rows), spec, &mut values);
        if !C::DECODES {
            return Ok(());
        }
        if !is_good {
            let (lane, value) = (group.first, values[0]);
            return Err(DeltaError::Lane { component: self.id, lane, value, span: spec.span });
        }
        for j in 0..D {
            let value = if spec.steps > 0 { values[j].rem_euclid(spec.steps) } else { values[j] };
            self.take(&mut lanes[j], group.first + j, value, spec.span)?;
        }
        Ok(())
    }

    fn rotation(
        &mut self,
        group: &Group,
        spec: &Numbers,
        learned: &mut Learned,
        lanes: &mut [i32],
    ) -> Result<(), DeltaError> {
        let first = group.first;
        let half = spec.span / 2;
        let base = &self.base()[first..first + 4];
        let (was, [x, y, z]) = (base[0], [base[1] - half, base[2] - half, base[3] - half].map(i64::from));
        // The omitted part is the root of `rest`, and the largest; the others may be close to it.
        let rest = 2 * i64::from(half).pow(2) - (x * x + y * y + z * z);
        let sizes = [x.abs(), y.abs(), z.abs()];
        let at = if sizes[0] >= sizes[1].max(sizes[2]) { 0 } else { 1 + usize::from(sizes[1] < sizes[2]) };
        let largest = sizes[at];
        let is_near = |part: i64| rest < (largest + i64::from(half) / part).pow(2);
        let context = if is_near(32) {
            0
        } else if is_near(8) {
            1
        } else if is_near(2) {
            2
        } else {
            3
        };
        let models = &mut self.models[group.models + layout::NUMBERS_LEN..];
        let mut now = lanes[first];
        if self.code.bit(&mut models[context], now == was) {
            now = was;
        } else {
            let others = others(was);
            let guess = others[at];
            if self.code.bit(&mut models[4], now == guess) {
                now = guess;
            } else {
                let mut rest = others.into_iter().filter(|&other| other != guess);
                let (a, b) = (rest.next().unwrap_or(0), rest.next().unwrap_or(0));
                now = if self.code.bit(&mut models[5], now == b) { b } else { a };
            }
        }
        lanes[first] = now;
        let mut rows = Rows { count: self.past.len(), ..Rows::default() };
        for (row, past) in rows.rows.iter_mut().zip(self.past) {
            *row = in_frame(&past.lanes[first..first + 4], now, half);
        }
        if rows.count == 0 {
            rows.rows[0] = in_frame(base, now, half);
        }
        rows.rows[0].iter_mut().for_each(|part| *part = (*part).clamp(0, spec.span));
        self.lanes_of::<3>(group, spec, &rows, learned, &mut lanes[first + 1..first + 4])
    }
}

/// The parts of a quaternion that are coded if this one is omitted.
fn others(largest: i32) -> [i32; 3] {
    match largest {
        0 => [1, 2, 3],
        1 => [0, 2, 3],
        2 => [0, 1, 3],
        _ => [0, 1, 2],
    }
}

/// Converts the parts of a rotation as if the part `to` were omitted.
#[inline(always)]
fn in_frame(row: &[i32], to: i32, half: i32) -> [i32; 3] {
    if row[0] == to { [row[1], row[2], row[3]] } else { into_frame(row, to, half) }
}

#[cold]
#[inline(never)]
fn into_frame(row: &[i32], to: i32, half: i32) -> [i32; 3] {
    let parts = [row[1], row[2], row[3]].map(|part| part - half);
    let squares: i64 = parts.iter().map(|&part| i64::from(part).pow(2)).sum();
    let rest = (2 * i64::from(half).pow(2) - squares).max(0).cast_unsigned();
    let root = ((4 * rest).isqrt() as i32 + 1) / 2;
    let mut all = [root; 4];
    for (part, index) in parts.into_iter().zip(others(row[0])) {
        all[index.cast_unsigned() as usize] = part;
    }
    let sign = if all[(to & 3).cast_unsigned() as usize] < 0 { -1 } else { 1 };
    others(to).map(|index| half + sign * all[index.cast_unsigned() as usize])
}

/// Why a blob is invalid.
enum NoBlob {
    /// It is longer than allowed, or keeps more than its base has.
    Length,
    /// It is not in its unique encoding.
    Form,
}

/// Whether exactly the first `count` bytes of both are equal: there is no further one, or it differs.
fn is_all_that_is_same<'a>(
    count: usize,
    a: impl ExactSizeIterator<Item = &'a u8>,
    b: impl ExactSizeIterator<Item = &'a u8>,
) -> bool {
    a.skip(count).zip(b.skip(count)).next().is_none_or(|(a, b)| a != b)
}

/// Codes a blob against its base: common prefix, common suffix, changed bytes. The encoding is unique: the
/// prefix is as long as possible, then the suffix, and a byte marked as changed differs from the base.
fn blob<C: Code>(
    code: &mut C,
    models: &mut [Bit],
    base: &Bytes,
    value: &Bytes,
    bytes_max: usize,
) -> Result<Bytes, NoBlob> {
    use blob_models::{BYTE, MIDDLE, PREFIX, SAME, SAME_BYTE, SUFFIX};
    if code.bit(&mut models[SAME], value == base) {
        return Ok(base.clone());
    }
    let same = |a: &u8, b: &u8| a == b;
    let prefix = base.iter().zip(value.iter()).take_while(|(a, b)| same(a, b)).count();
    let (old, new) = (&base[prefix..], value.get(prefix..).unwrap_or(&[]));
    let suffix = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| same(a, b)).count();
    let mut length = |code: &mut C, at: usize, length: usize| {
        number(code, &mut models[at..], u32::try_from(length).unwrap_or(0)) as usize
    };
    let prefix = length(code, PREFIX, prefix);
    let suffix = length(code, SUFFIX, suffix);
    let middle = length(code, MIDDLE, value.len().saturating_sub(prefix + suffix));
    let kept = prefix.checked_add(suffix).filter(|&kept| kept <= base.len()).ok_or(NoBlob::Length)?;
    if kept.checked_add(middle).is_none_or(|length| length > bytes_max) {
        return Err(NoBlob::Length);
    }
    let old = &base[prefix..base.len() - suffix];
    let mut read = Vec::new();
    if C::DECODES {
        read.extend_from_slice(&base[..prefix]);
    }
    let mut run = 0u32;
    for at in 0..middle {
        let byte = if C::DECODES { 0 } else { value[prefix + at] };
        if old.len() == middle {
            let context = SAME_BYTE + ((run + 1).ilog2() as usize).min(7);
            if code.bit(&mut models[context], byte == old[at]) {
                run += 1;
                read.push(old[at]);
                continue;
            }
            run = 0;
        }
        let mut node = 1usize;
        for bit in (0..8).rev() {
            node = node << 1 | usize::from(code.bit(&mut models[BYTE + node], byte >> bit & 1 == 1));
        }
        let byte = (node & 0xff) as u8;
        if C::DECODES && old.len() == middle && byte == old[at] {
            return Err(NoBlob::Form);
        }
        read.push(byte);
    }
    if !C::DECODES {
        return Ok(value.clone());
    }
    read.extend_from_slice(&base[base.len() - suffix..]);
    // The common part is no longer than what was kept. A blob equal to its base is one case of it.
    let is_longest = is_all_that_is_same(prefix, base.iter(), read.iter())
        && is_all_that_is_same(suffix, base[prefix..].iter().rev(), read[prefix..].iter().rev());
    if is_longest && *base != read { Ok(read.into()) } else { Err(NoBlob::Form) }
}

#[cfg(test)]
mod tests {
    use super::super::head::{LastHead, head};
    use super::super::{EntryHead, Reader};
    use super::*;
    use crate::coder::Encoder;
    use crate::schema::{Component, Kind, Schema};
    use parlor_proto::TickRate;

    const ID: ComponentId = ComponentId(0);

    /// Encodes a body with one component of one field of this kind, and returns what a reader decodes against
    /// this past.
    fn read(
        kind: Kind,
        past: (&[i32], &'static [u8]),
        write: impl FnOnce(&mut Encoder, &mut [Bit]),
    ) -> Result<Bytes, DeltaError> {
        let component = Component::builder("c").field("f", kind).build();
        let schema = Schema::bare().component(component).build().unwrap();
        let tables = Tables::new(&schema, TickRate::DEFAULT);
        let (mut code, mut learner, mut last) = (Encoder::new(), Learner::default(), LastHead::new());
        learner.begin(&tables);
        let entry = EntryHead { changed: 1, ..EntryHead::update(0) };
        head(&mut code, (&mut learner.models, &tables), false, &mut last, Some(&entry)).unwrap();
        let plan = tables.plan(ID);
        learner.begin_component(&tables, ID, plan);
        write(&mut code, &mut learner.models[plan.models + plan.groups[0].models..]);
        head(&mut code, (&mut learner.models, &tables), false, &mut last, None).unwrap();
        let mut body = Vec::new();
        code.finish(&mut body);
        let mut reader = Reader::new(&tables, &body, false);
        reader.head().unwrap();
        let blobs: Vec<Bytes> = (0..plan.blobs).map(|_| Bytes::from_static(past.1)).collect();
        let past = [Past { age: 1, lanes: past.0, blobs: &blobs }];
        let (mut lanes, mut blobs) = (vec![0; plan.lanes], vec![Bytes::new(); plan.blobs]);
        reader.component(ID, &past, &mut lanes, &mut blobs)?;
        assert_eq!(reader.head(), Ok(None), "the body ends there");
        Ok(blobs.pop().unwrap_or_else(|| lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()))
    }

    #[test]
    fn a_choice_that_is_another_one_is_another_one() {
        let kind = Kind::Enum { names: ["a", "b", "c"].map(String::from).to_vec() };
        let write = |is: usize| {
            move |code: &mut Encoder, models: &mut [Bit]| {
                code.bit(&mut models[0], true);
                code.bit(&mut models[1], is & 2 != 0);
                code.bit(&mut models[2 | is >> 1], is & 1 != 0);
            }
        };
        for was in 0..3usize {
            for is in 0..3 {
                let read = read(kind.clone(), (&[was as i32], b""), write(is));
                let expected = if is == was {
                    Err(DeltaError::Form { component: ID })
                } else {
                    Ok(Bytes::copy_from_slice(&(is as i32).to_le_bytes()))
                };
                assert_eq!(read, expected, "{is} after {was}");
            }
        }
    }

    /// Encodes a blob against `past`: the lengths of prefix and suffix, and the middle bytes, each marked as
    /// changed if their count equals the base's.
    fn told(past: &'static [u8], [prefix, suffix]: [usize; 2], middle: &[u8]) -> Result<Bytes, DeltaError> {
        let has_old = past.len().checked_sub(prefix + suffix) == Some(middle.len());
        read(Kind::bytes(100), (&[], past), |code, models| {
            code.bit(&mut models[blob_models::SAME], false);
            let parts = [
                (blob_models::PREFIX, prefix),
                (blob_models::SUFFIX, suffix),
                (blob_models::MIDDLE, middle.len()),
            ];
            for (at, length) in parts {
                number(code, &mut models[at..], length as u32);
            }
            for byte in middle {
                if has_old {
                    code.bit(&mut models[blob_models::SAME_BYTE], false);
                }
                let mut node = 1usize;
                for bit in (0..8).rev() {
                    node = node << 1
                        | usize::from(code.bit(&mut models[blob_models::BYTE + node], byte >> bit & 1 == 1));
                }
            }
        })
    }

    #[test]
    fn a_blob_has_one_form() {
        let taken = |blob: &'static [u8]| Ok(Bytes::from_static(blob));
        let refused = Err(DeltaError::Form { component: ID });
        assert_eq!(told(b"hello", [2, 1], b"r"), taken(b"hero"));
        assert_eq!(told(b"hello", [5, 0], b" you"), taken(b"hello you"));
        assert_eq!(told(b"hello", [0, 0], b""), taken(b""));
        assert_eq!(told(b"hello", [0, 4], b"c"), taken(b"cello"));
        assert_eq!(told(b"aa", [2, 0], b"a"), taken(b"aaa"));
        assert_eq!(told(b"", [0, 0], b"a"), taken(b"a"));
        // The same blob in other encodings.
        for parts in [[5, 0], [0, 5], [2, 3]] {
            assert_eq!(told(b"hello", parts, b""), refused, "{parts:?}");
        }
        assert_eq!(told(b"hello", [0, 0], b"hello"), refused);
        assert_eq!(told(b"", [0, 0], b""), refused);
        // Prefix or suffix are shorter than possible, or the suffix is preferred to the prefix.
        assert_eq!(told(b"hello", [1, 1], b"er"), refused);
        assert_eq!(told(b"hello", [2, 0], b"ro"), refused);
        assert_eq!(told(b"aa", [0, 2], b"a"), refused);
        assert_eq!(told(b"aa", [1, 1], b"a"), refused);
        // A byte is marked as changed, and is equal to the base.
        assert_eq!(told(b"hello", [0, 0], b"jexlx"), refused);
        let beyond = Err(DeltaError::Blob { component: ID, bytes_max: 100 });
        assert_eq!(told(b"hello", [3, 3], b""), beyond);
    }
}
