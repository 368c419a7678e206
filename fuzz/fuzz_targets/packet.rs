//! See `parlor_fuzz::targets::packet`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parlor_fuzz::targets::packet(bytes));
