//! See `parlor_fuzz::targets::control`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parlor_fuzz::targets::control(bytes));
