//! See `parlor_fuzz::sync_targets::recording`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parlor_fuzz::sync_targets::recording(bytes));
