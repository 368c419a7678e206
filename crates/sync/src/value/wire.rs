//! The unique encoding of a value.
//!
//! ```text
//! 00..=7f  Int 0..=127                      c5  Int, 4 bytes
//! 80..=8f  Map of 0..=15 fields             c6  Int, 8 bytes
//! 90..=9f  List of 0..=15 items             c7  Float, the bits of an f32
//! a0..=bf  Text of 0..=31 bytes             c8  Float, the bits of an f64
//! c0       Null                             c9  Text:  length, UTF-8
//! c1 c2    Bool false, true                 ca  Bytes: length, bytes
//! c3       Int, 1 byte                      cb  List:  count, items
//! c4       Int, 2 bytes                     cc  Map:   count, fields
//! e0..=ff  Int -32..=-1                     cd..=df  refused
//! ```
//!
//! A field is the length of its name (varint), the name and the value; names ascend strictly. Fixed widths
//! are little-endian and signed; lengths and counts are varints. Only the shortest form that holds the value
//! is valid. A Float takes the form of an f32 if that holds it exactly; it is finite and never −0.0.

use super::{DecodeError, Map, Value, ValueError, ValueErrorKind};
use bytes::Bytes;
use parlor_proto::limits::VALUE_DEPTH_MAX;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};

const MAP: u8 = 0x80;
const LIST: u8 = 0x90;
const TEXT: u8 = 0xa0;
const NULL: u8 = 0xc0;
const FALSE: u8 = 0xc1;
const TRUE: u8 = 0xc2;
const INT_1: u8 = 0xc3;
const INT_2: u8 = 0xc4;
const INT_4: u8 = 0xc5;
const INT_8: u8 = 0xc6;
const FLOAT_4: u8 = 0xc7;
const FLOAT_8: u8 = 0xc8;
const TEXT_LONG: u8 = 0xc9;
const BYTES: u8 = 0xca;
const LIST_LONG: u8 = 0xcb;
const MAP_LONG: u8 = 0xcc;
const INT_NEGATIVE: u8 = 0xe0;

/// Levels of lists and maps that [`Value::encode_wrapped`] allows around values of the wire.
pub const WRAPPED_DEPTH: usize = 8;

const SHORT_ITEMS_MAX: usize = 0x0f;
const SHORT_TEXT_BYTES_MAX: usize = 0x1f;
const SHORT_INT_MIN: i64 = -32;
const SHORT_INT_MAX: i64 = 0x7f;

impl Value {
    /// Encodes this value in at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`ValueErrorKind::NotFinite`], [`ValueErrorKind::TooDeep`] or [`ValueErrorKind::TooLarge`], with the
    /// path of the cause.
    pub fn encode(&self, bytes_max: usize) -> Result<Bytes, ValueError> {
        let mut encoder = Encoder { out: Vec::new(), bytes_max, wrapped: 0 };
        encoder.value(self, 0)?;
        Ok(encoder.out.into())
    }

    /// Appends the encoding to `out`, for a reader in this process: a description may have values of other members
    /// in it, so [`WRAPPED_DEPTH`] more levels than on the wire are allowed, and any size.
    ///
    /// # Errors
    /// [`ValueErrorKind::NotFinite`] or [`ValueErrorKind::TooDeep`], with the path of the cause.
    pub fn encode_wrapped(&self, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let taken = core::mem::take(out);
        let mut encoder = Encoder { out: taken, bytes_max: usize::MAX, wrapped: WRAPPED_DEPTH };
        let encoded = encoder.value(self, 0);
        *out = encoder.out;
        encoded
    }

    /// Decodes the value at the begin of `bytes` and removes it from them, for values that follow one another.
    ///
    /// # Errors
    /// As [`decode`](Self::decode). What remains of `bytes` is undefined then.
    pub fn decode_next(bytes: &mut Bytes) -> Result<Value, DecodeError> {
        let mut decoder = Decoder { reader: Reader::new(core::mem::take(bytes)) };
        let value = decoder.value(0)?;
        *bytes = decoder.reader.rest();
        Ok(value)
    }

    /// Decodes a value from all of `bytes`. The result copies what it needs, so that a small value does not
    /// keep a large packet in memory. Memory is allocated for what was read, never for a claimed length: for
    /// each byte at most a [`Value`] in a list that grows by doubling.
    ///
    /// # Errors
    /// [`DecodeError`] unless the bytes are the [encoding](Self::encode) of a value.
    pub fn decode(bytes: Bytes) -> Result<Value, DecodeError> {
        let mut decoder = Decoder { reader: Reader::new(bytes) };
        let value = decoder.value(0)?;
        decoder.reader.finish()?;
        Ok(value)
    }
}

struct Encoder {
    out: Vec<u8>,
    bytes_max: usize,
    /// Levels that do not count.
    wrapped: usize,
}

impl Encoder {
    /// Encodes `value` at nesting depth `depth`.
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), ValueError> {
        match value {
            Value::Null => self.out.put_u8(NULL),
            Value::Bool(value) => self.out.put_u8(if *value { TRUE } else { FALSE }),
            Value::Int(value) => self.int(*value),
            Value::Float(value) => self.float(*value)?,
            Value::Text(text) => {
                self.length(TEXT, SHORT_TEXT_BYTES_MAX, TEXT_LONG, text.len());
                self.bytes(text.as_bytes())?;
            }
            Value::Bytes(bytes) => {
                self.out.put_u8(BYTES);
                self.out.put_varint(bytes.len() as u64);
                self.bytes(bytes)?;
            }
            Value::List(items) => {
                let depth = self.deeper(depth)?;
                self.length(LIST, SHORT_ITEMS_MAX, LIST_LONG, items.len());
                for (index, item) in items.iter().enumerate() {
                    self.value(item, depth).map_err(|error| error.in_item(index))?;
                }
            }
            Value::Map(map) => {
                let depth = self.deeper(depth)?;
                self.length(MAP, SHORT_ITEMS_MAX, MAP_LONG, map.len());
                for (name, value) in map.iter() {
                    self.out.put_varint(name.len() as u64);
                    self.bytes(name.as_bytes())?;
                    self.value(value, depth).map_err(|error| error.in_field(name))?;
                }
            }
        }
        self.room_for(0)
    }

    fn deeper(&self, depth: usize) -> Result<usize, ValueError> {
        let counted = depth.checked_sub(self.wrapped);
        let is_allowed = counted.is_none_or(|counted| deeper(counted).is_some());
        if is_allowed { Ok(depth + 1) } else { Err(ValueErrorKind::TooDeep.into()) }
    }

    fn int(&mut self, value: i64) {
        let le = value.to_le_bytes();
        if (SHORT_INT_MIN..=SHORT_INT_MAX).contains(&value) {
            // The lowest byte of the two's complement is the tag: 0x00..=0x7f and 0xe0..=0xff.
            self.out.put_u8(le[0]);
        } else {
            let (tag, width) = int_form(value);
            self.out.put_u8(tag);
            self.out.put(&le[..width]);
        }
    }

    fn float(&mut self, value: f64) -> Result<(), ValueError> {
        if !value.is_finite() {
            return Err(ValueErrorKind::NotFinite.into());
        }
        let value = value + 0.0; // −0.0 + 0.0 is 0.0; every other number stays unchanged
        if let Some(narrow) = exact_f32(value) {
            self.out.put_u8(FLOAT_4);
            self.out.put_u32(narrow.to_bits());
        } else {
            self.out.put_u8(FLOAT_8);
            self.out.put_u64(value.to_bits());
        }
        Ok(())
    }

    fn length(&mut self, short: u8, short_max: usize, long: u8, length: usize) {
        match u8::try_from(length) {
            Ok(small) if length <= short_max => self.out.put_u8(short | small),
            _ => {
                self.out.put_u8(long);
                self.out.put_varint(length as u64);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        self.room_for(bytes.len())?;
        self.out.put(bytes);
        Ok(())
    }

    fn room_for(&self, more: usize) -> Result<(), ValueError> {
        if self.out.len() + more > self.bytes_max {
            return Err(ValueErrorKind::TooLarge { max: self.bytes_max }.into());
        }
        Ok(())
    }
}

struct Decoder {
    reader: Reader,
}

impl Decoder {
    /// Decodes a value at nesting depth `depth`.
    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let tag = self.reader.u8()?;
        Ok(match tag {
            0x00..=0x7f | INT_NEGATIVE..=0xff => Value::Int(i64::from(tag.cast_signed())),
            MAP..=0x8f => self.map(u64::from(tag - MAP), depth)?,
            LIST..=0x9f => self.list(u64::from(tag - LIST), depth)?,
            TEXT..=0xbf => self.text(u64::from(tag - TEXT))?,
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            INT_1 => int(INT_1, i64::from(self.reader.u8()?.cast_signed()))?,
            INT_2 => int(INT_2, i64::from(self.reader.u16()?.cast_signed()))?,
            INT_4 => int(INT_4, i64::from(self.reader.u32()?.cast_signed()))?,
            INT_8 => int(INT_8, self.reader.u64()?.cast_signed())?,
            FLOAT_4 => float(f64::from(f32::from_bits(self.reader.u32()?)))?,
            FLOAT_8 => {
                let value = f64::from_bits(self.reader.u64()?);
                if value.is_finite() && exact_f32(value).is_some() {
                    return Err(DecodeError::NotCanonical { what: "a number" });
                }
                float(value)?
            }
            TEXT_LONG => {
                let length = self.long("the length of text", SHORT_TEXT_BYTES_MAX)?;
                self.text(length)?
            }
            BYTES => {
                let bytes = self.reader.bytes_max("bytes", usize::MAX)?;
                Value::Bytes(Bytes::copy_from_slice(&bytes))
            }
            LIST_LONG => {
                let count = self.long("the count of a list", SHORT_ITEMS_MAX)?;
                self.list(count, depth)?
            }
            MAP_LONG => {
                let count = self.long("the count of a map", SHORT_ITEMS_MAX)?;
                self.map(count, depth)?
            }
            tag => return Err(DecodeError::UnknownTag { tag }),
        })
    }

    /// Reads a length or count that is too large for the tag itself.
    fn long(&mut self, what: &'static str, short_max: usize) -> Result<u64, DecodeError> {
        let length = self.reader.varint()?;
        if length <= short_max as u64 { Err(DecodeError::NotCanonical { what }) } else { Ok(length) }
    }

    fn text(&mut self, length: u64) -> Result<Value, DecodeError> {
        let bytes = self.reader.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        utf8(&bytes).map(Value::Text)
    }

    fn list(&mut self, count: u64, depth: usize) -> Result<Value, DecodeError> {
        let depth = deeper(depth).ok_or(DecodeError::TooDeep)?;
        let count = self.count(count, 1)?;
        // No memory is reserved for `count` items: nested lists could each claim all remaining bytes.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(depth)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, count: u64, depth: usize) -> Result<Value, DecodeError> {
        let depth = deeper(depth).ok_or(DecodeError::TooDeep)?;
        let count = self.count(count, 2)?;
        let mut map = Map::new();
        for _ in 0..count {
            let name = utf8(&self.reader.bytes_max("a name", usize::MAX)?)?;
            let value = self.value(depth)?;
            map.push_last(name, value).map_err(|_| DecodeError::KeysNotAscending)?;
        }
        Ok(Value::Map(map))
    }

    /// Checks a count of items of at least `each` bytes against the remaining bytes.
    fn count(&self, count: u64, each: usize) -> Result<usize, DecodeError> {
        let left = self.reader.remaining();
        match usize::try_from(count) {
            Ok(count) if count <= left / each => Ok(count),
            _ => Err(DecodeError::TooManyItems { count, left }),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<String, DecodeError> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(ReadError::NotUtf8 { field: "text" }.into()),
    }
}

fn int(tag: u8, value: i64) -> Result<Value, DecodeError> {
    let short = (SHORT_INT_MIN..=SHORT_INT_MAX).contains(&value);
    if short || int_form(value).0 != tag {
        return Err(DecodeError::NotCanonical { what: "a whole number" });
    }
    Ok(Value::Int(value))
}

fn float(value: f64) -> Result<Value, DecodeError> {
    if !value.is_finite() {
        return Err(DecodeError::NotFinite);
    }
    if value == 0.0 && value.is_sign_negative() {
        return Err(DecodeError::NotCanonical { what: "a number" });
    }
    Ok(Value::Float(value))
}

/// Tag and width in bytes of an integer that is too large for the tag itself.
fn int_form(value: i64) -> (u8, usize) {
    if i8::try_from(value).is_ok() {
        (INT_1, 1)
    } else if i16::try_from(value).is_ok() {
        (INT_2, 2)
    } else if i32::try_from(value).is_ok() {
        (INT_4, 4)
    } else {
        (INT_8, 8)
    }
}

/// Returns the `f32` that equals the finite number `value`, if there is one.
#[allow(clippy::cast_possible_truncation)] // the comparison checks whether it lost anything
fn exact_f32(value: f64) -> Option<f32> {
    let narrow = value as f32;
    (f64::from(narrow).to_bits() == value.to_bits()).then_some(narrow)
}

/// The next nesting depth; `None` beyond the limit.
pub(super) fn deeper(depth: usize) -> Option<usize> {
    (depth < VALUE_DEPTH_MAX).then_some(depth + 1)
}

#[cfg(test)]
pub(super) mod tests;
