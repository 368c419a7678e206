//! See `parlor_fuzz::web_targets::webtransport`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parlor_fuzz::web_targets::webtransport(bytes));
