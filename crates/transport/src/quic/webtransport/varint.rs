//! Variable-length integers as HTTP/3 has them: in any of their widths.

/// An integer that comes byte by byte.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    value: u64,
    left: u8,
}

impl Partial {
    /// Takes the next byte. Returns the integer when it is complete, and begins anew.
    pub(super) fn take(&mut self, byte: u8) -> Option<u64> {
        if self.left == 0 {
            self.left = (1 << (byte >> 6)) - 1;
            self.value = u64::from(byte & 0x3f);
        } else {
            self.left -= 1;
            self.value = self.value << 8 | u64::from(byte);
        }
        (self.left == 0).then_some(self.value)
    }

    /// Whether it is between two integers.
    pub(super) fn is_idle(self) -> bool {
        self.left == 0
    }
}

/// Reads an integer. Returns it and its width.
pub(super) fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut partial = Partial::default();
    bytes.iter().take(8).enumerate().find_map(|(at, byte)| Some((partial.take(*byte)?, at + 1)))
}

/// Writes an integer below 2^62, in its shortest form.
pub(super) fn put(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value.to_be_bytes()[7]),
        0x40..0x4000 => out.extend_from_slice(&(value | 0x4000).to_be_bytes()[6..]),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value | 0x8000_0000).to_be_bytes()[4..]),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}
