//! Fields of a request and an answer, as QPACK (RFC 9204) writes them without a dynamic table. Of the static
//! table only the entries that a CONNECT needs are known by content.

use super::http3::Fault;
use super::tlv;
use super::{FRAME_HEADERS, PATH};
use httlib_huffman::decoder::table1::DECODE_TABLE;

/// Entries of the static table.
const STATIC_ENTRIES: u64 = 99;
/// Bits that may be left over after the last letter.
const PADDING_BITS_MAX: usize = 7;
/// The end-of-string symbol, which must not be in a string.
const END_OF_STRING: u16 = 256;
// Places in the static table. Of some only the name is used.
const STATIC_AUTHORITY: u64 = 0;
const STATIC_PATH: u64 = 1;
const STATIC_CONNECT: u64 = 15;
const STATIC_HTTPS: u64 = 23;
const STATIC_STATUS: u64 = 24;

/// What a request says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The server's name, and perhaps a port, as the client has it.
    pub authority: String,
    /// The page's origin; browsers always name it.
    pub origin: Option<String>,
}

/// The fields that matter; the others are read and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Authority,
    Method,
    Origin,
    Path,
    Protocol,
    Scheme,
    Status,
    Other,
}

#[derive(Debug, Default)]
struct Fields {
    authority: Option<String>,
    method: Option<String>,
    origin: Option<String>,
    path: Option<String>,
    protocol: Option<String>,
    scheme: Option<String>,
    status: Option<String>,
}

/// Reads a HEADERS frame. Returns `None` for a request that is no session of this server.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Request>, Fault> {
    let fields = Fields::read(bytes)?;
    if fields.method.is_none() {
        return Err(Fault::Fields);
    }
    let is = |field: &Option<String>, value: &str| field.as_deref() == Some(value);
    let is_session = is(&fields.method, "CONNECT")
        && is(&fields.scheme, "https")
        && (is(&fields.protocol, "webtransport") || is(&fields.protocol, "webtransport-h3"))
        && is(&fields.path, PATH);
    Ok(is_session.then(|| Request { authority: fields.authority.unwrap_or_default(), origin: fields.origin }))
}

/// Reads the HEADERS frame of an answer. Returns its status.
pub(super) fn status(bytes: &[u8]) -> Result<u16, Fault> {
    Fields::read(bytes)?.status.and_then(|status| status.parse().ok()).ok_or(Fault::Fields)
}

/// A request for a session: a HEADERS frame. `authority` is the server's name and port, `origin` that of a page.
pub fn request(authority: &str, origin: Option<&str>) -> Vec<u8> {
    let mut fields = vec![0, 0];
    put_number(&mut fields, 0xc0, 6, STATIC_CONNECT);
    put_number(&mut fields, 0xc0, 6, STATIC_HTTPS);
    for (place, value) in [(STATIC_AUTHORITY, authority), (STATIC_PATH, PATH)] {
        put_named(&mut fields, place, value);
    }
    put_field(&mut fields, ":protocol", "webtransport");
    if let Some(origin) = origin {
        put_field(&mut fields, "origin", origin);
    }
    headers(&fields)
}

/// An answer: a HEADERS frame with a status. Draft 2 wants to be named; the others pass that over.
pub fn answer(status: u16) -> Vec<u8> {
    let mut fields = vec![0, 0];
    put_named(&mut fields, STATIC_STATUS, &status.to_string());
    put_field(&mut fields, "sec-webtransport-http3-draft", "draft02");
    headers(&fields)
}

fn headers(fields: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    tlv::put(&mut frame, FRAME_HEADERS, fields);
    frame
}

/// A literal with the name of a static entry.
fn put_named(out: &mut Vec<u8>, place: u64, value: &str) {
    put_number(out, 0x50, 4, place);
    put_string(out, 0, 7, value);
}

/// A literal with a literal name.
fn put_field(out: &mut Vec<u8>, name: &str, value: &str) {
    put_string(out, 0x20, 3, name);
    put_string(out, 0, 7, value);
}

/// A string without Huffman's code, whose length begins with the lowest `bits` of `first`.
fn put_string(out: &mut Vec<u8>, first: u8, bits: u32, text: &str) {
    put_number(out, first, bits, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// An integer that begins with the lowest `bits` of `first`.
fn put_number(out: &mut Vec<u8>, first: u8, bits: u32, number: u64) {
    let low = |number: u64| number.to_le_bytes()[0];
    let mask = (1 << bits) - 1;
    if number < mask {
        return out.push(first | low(number));
    }
    out.push(first | low(mask));
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(low(rest) | 0x80);
        rest >>= 7;
    }
    out.push(low(rest));
}

impl Fields {
    fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let mut rest = Cursor(bytes);
        // There is no dynamic table, so the number of its entries that are required is 0.
        if rest.number(8)? != 0 {
            return Err(Fault::Compression);
        }
        rest.number(7)?;
        let mut fields = Fields::default();
        while let Some(first) = rest.0.first() {
            let (name, value) = match first {
                0b1100_0000.. => known(rest.number(6)?)?,
                0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                    let (name, _) = known(rest.number(4)?)?;
                    (name, Some(rest.string(7)?))
                }
                0b0010_0000..=0b0011_1111 => {
                    let name = Name::of(&rest.string(3)?);
                    (name, Some(rest.string(7)?))
                }
                // The dynamic table.
                _ => return Err(Fault::Compression),
            };
            fields.set(name, value)?;
        }
        Ok(fields)
    }

    fn set(&mut self, name: Name, value: Option<Vec<u8>>) -> Result<(), Fault> {
        let field = match name {
            Name::Authority => &mut self.authority,
            Name::Method => &mut self.method,
            Name::Origin => &mut self.origin,
            Name::Path => &mut self.path,
            Name::Protocol => &mut self.protocol,
            Name::Scheme => &mut self.scheme,
            Name::Status => &mut self.status,
            Name::Other => return Ok(()),
        };
        let value = String::from_utf8(value.unwrap_or_default()).map_err(|_| Fault::Fields)?;
        match field.replace(value) {
            None => Ok(()),
            Some(_) => Err(Fault::Fields),
        }
    }
}

impl Name {
    fn of(name: &[u8]) -> Self {
        match name {
            b":authority" => Name::Authority,
            b":method" => Name::Method,
            b":path" => Name::Path,
            b":protocol" => Name::Protocol,
            b":scheme" => Name::Scheme,
            b":status" => Name::Status,
            b"origin" => Name::Origin,
            _ => Name::Other,
        }
    }
}

/// An entry of the static table.
fn known(place: u64) -> Result<(Name, Option<Vec<u8>>), Fault> {
    let (name, value) = match place {
        STATIC_AUTHORITY => (Name::Authority, ""),
        STATIC_PATH => (Name::Path, "/"),
        STATIC_CONNECT => (Name::Method, "CONNECT"),
        16..=21 => (Name::Method, "another"),
        22 => (Name::Scheme, "http"),
        STATIC_HTTPS => (Name::Scheme, "https"),
        STATIC_STATUS => (Name::Status, "103"),
        25 => (Name::Status, "200"),
        27 => (Name::Status, "404"),
        28 => (Name::Status, "503"),
        // Others, which need no name of their own here.
        26 | 63..=71 => (Name::Status, "0"),
        90 => (Name::Origin, ""),
        STATIC_ENTRIES.. => return Err(Fault::Compression),
        _ => (Name::Other, ""),
    };
    Ok((name, Some(value.as_bytes().to_vec())))
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or(Fault::Compression)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8], Fault> {
        let count = usize::try_from(count).map_err(|_| Fault::Compression)?;
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Fault::Compression)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// An integer that begins with the lowest `bits` of a byte. None here needs more than 32.
    fn number(&mut self, bits: u32) -> Result<u64, Fault> {
        let mask = (1_u64 << bits) - 1;
        let mut number = u64::from(self.byte()?) & mask;
        if number < mask {
            return Ok(number);
        }
        for shift in (0..=21).step_by(7) {
            let byte = self.byte()?;
            number += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Fault::Compression)
    }

    /// A string whose length begins with the lowest `bits` of a byte; the bit above says whether it is coded.
    fn string(&mut self, bits: u32) -> Result<Vec<u8>, Fault> {
        let is_coded = self.0.first().is_some_and(|first| first >> bits & 1 == 1);
        let length = self.number(bits)?;
        let bytes = self.bytes(length)?;
        if is_coded { decode(bytes) } else { Ok(bytes.to_vec()) }
    }
}

/// Decodes a string of HPACK's Huffman code (RFC 7541): at most 8 letters for 5 bytes.
fn decode(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut letters = Vec::new();
    // The place in the code's tree, and the bits since the last letter.
    let (mut at, mut bits, mut is_all_ones) = (0_usize, 0, true);
    for byte in bytes {
        for shift in (0..8).rev() {
            let bit = byte >> shift & 1;
            (bits, is_all_ones) = (bits + 1, is_all_ones && bit == 1);
            match DECODE_TABLE.get(at).map(|node| node[usize::from(bit)]) {
                Some((_, Some(letter), _)) if letter < END_OF_STRING => {
                    letters.push(letter.to_be_bytes()[1]);
                    (at, bits, is_all_ones) = (0, 0, true);
                }
                Some((Some(next), None, _)) => at = usize::from(next),
                _ => return Err(Fault::Compression),
            }
        }
    }
    if is_all_ones && bits <= PADDING_BITS_MAX { Ok(letters) } else { Err(Fault::Compression) }
}
