//! The library itself, and JSON for who has no reader of it.
#![allow(unsafe_code)] // the attributes, and the pointers that are passed on: see the head of the crate

use crate::boundary::{Failure, Out, call, give, last_error, text};
use crate::types::parlor_result::{PARLOR_NONE, PARLOR_OK};
use crate::types::{PARLOR_ABI_VERSION, parlor_result};
use serde_json::Value;
use std::ffi::{CStr, c_char};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// The PARLOR_ABI_VERSION of the library. A program checks that it is that of its header.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_abi_version() -> u32 {
    PARLOR_ABI_VERSION
}

/// The version of Parlor, such as "0.2.0". It is static: do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_version() -> *const c_char {
    VERSION.as_ptr()
}

/// What the last error of this thread was, for a person: it says what to do. Empty before the first. It is the
/// library's: do not free it, and copy it before the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_last_error_message() -> *const c_char {
    last_error().1
}

/// The word of the last error of this thread, for a program: "not_host", "not_open", "bad_options" and so on. As of
/// parlor_last_error_message.
#[unsafe(no_mangle)]
pub extern "C" fn parlor_last_error_code() -> *const c_char {
    last_error().0
}

/// Reads a number out of JSON: of an event, of a value. `pointer` is a JSON Pointer (RFC 6901), such as "/x" or
/// "/player/id"; "" is the whole. true and false are 1 and 0. PARLOR_NONE if there is no number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_json_number(
    json: *const c_char,
    pointer: *const c_char,
    number: *mut f64,
) -> parlor_result {
    call(|| {
        // SAFETY: rule 1.
        let found = find(unsafe { text("json", json) }?, unsafe { text("pointer", pointer) }?)?;
        let found =
            found.and_then(|found| found.as_f64().or(found.as_bool().map(|is_so| u8::from(is_so).into())));
        let Some(found) = found else { return Ok(PARLOR_NONE) };
        // SAFETY: rule 1.
        unsafe { give("number", number, found) }.map(|()| PARLOR_OK)
    })
}

/// Reads a text out of JSON, as parlor_json_number reads a number. What is no text is given as JSON. PARLOR_NONE if
/// there is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parlor_json_text(
    json: *const c_char,
    pointer: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> parlor_result {
    call(|| {
        // SAFETY: rule 1.
        let (json, pointer) = unsafe { (text("json", json)?, text("pointer", pointer)?) };
        // SAFETY: rule 1.
        let out = unsafe { Out::new(buffer, capacity, length) };
        match find(json, pointer)? {
            None => Ok(PARLOR_NONE),
            Some(Value::String(text)) => out.text(&text),
            Some(other) => out.text(&other.to_string()),
        }
    })
}

fn find(json: &str, pointer: &str) -> Result<Option<Value>, Failure> {
    let mut whole: Value = serde_json::from_str(json)
        .map_err(|error| Failure::argument("json", &format!("it is no JSON: {error}")))?;
    Ok(whole.pointer_mut(pointer).map(Value::take))
}
