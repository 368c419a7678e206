//! JSON from players: depth and size limits, and merging.

use super::limits::{DATA_BYTES_MAX, JSON_DEPTH_MAX, WORD_BYTES_MAX};
use super::refusal::{Code, Refusal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io;

/// Deserializes an object. `path` is its name in refusals.
///
/// # Errors
/// `bad_input` with the path of the first field that is wrong, missing or unknown; `too_deep`.
pub(super) fn read<T: DeserializeOwned + Serialize>(path: &str, written: &Value) -> Result<T, Refusal> {
    check_depth(path, written)?;
    check_object(path, written)?;
    let read: T = serde_path_to_error::deserialize(written).map_err(|error| {
        let inside = error.path().to_string();
        let path = if inside == "." { path.to_owned() } else { format!("{path}.{inside}") };
        Refusal::at(Code::BadInput, path, error.into_inner().to_string())
    })?;
    // `serde` accepts a list of field values for an object; that is always a mistake here.
    match serde_json::to_value(&read).ok().and_then(|read| list_for_object(path, written, &read)) {
        Some(path) => Err(Refusal::at(Code::BadInput, path, "must be an object, in braces, and not a list")),
        None => Ok(read),
    }
}

/// Returns where `written` has a list for what was read as an object.
fn list_for_object(path: &str, written: &Value, read: &Value) -> Option<String> {
    match (written, read) {
        (Value::Array(_), Value::Object(_)) => Some(path.to_owned()),
        (Value::Object(written), Value::Object(read)) => written
            .iter()
            .find_map(|(name, field)| list_for_object(&format!("{path}.{name}"), field, read.get(name)?)),
        _ => None,
    }
}

/// Refuses a value that is nested too deeply. Recurses no deeper than the limit.
pub(super) fn check_depth(path: &str, value: &Value) -> Result<(), Refusal> {
    if fits(value, JSON_DEPTH_MAX) {
        return Ok(());
    }
    let sentence =
        format!("objects and lists may be nested {JSON_DEPTH_MAX} deep, these are deeper: flatten them");
    Err(Refusal::at(Code::TooDeep, path, sentence))
}

/// Whether `value` is nested at most `depth` deep; numbers and strings have depth 0.
fn fits(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| fits(field, depth - 1)),
        _ => true,
    }
}

/// Refuses a value that is not an object.
pub(super) fn check_object(path: &str, value: &Value) -> Result<(), Refusal> {
    if value.is_object() {
        return Ok(());
    }
    Err(Refusal::at(Code::BadInput, path, "must be an object, in braces"))
}

/// Refuses a value that takes more than `most` bytes as compact JSON.
pub(super) fn check_size(path: &str, value: &Value, most: usize) -> Result<(), Refusal> {
    let bytes = size(value);
    if bytes <= most {
        return Ok(());
    }
    let sentence = format!("has {bytes} bytes as JSON; at most {most} are allowed: store less");
    Err(Refusal::at(Code::TooLarge, path, sentence))
}

/// Returns the size of the value in bytes of compact JSON.
pub(super) fn size(value: &Value) -> usize {
    let mut count = Count(0);
    // Neither the counter nor a `Value` with string keys can fail; a failure would count as too large.
    if serde_json::to_writer(&mut count, value).is_err() {
        return usize::MAX;
    }
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Merges `patch` into `target` as in RFC 7396: objects are merged recursively, null removes a field, and
/// other values, lists included, replace the old ones. The result is at most as deep as the deeper of both.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

/// Returns `value` with a patch merged into it. Refuses a non-object, a too deep patch and a too large
/// result.
pub(super) fn patched(
    value: &Value,
    path: &str,
    patch: Option<Value>,
    bytes_max: usize,
) -> Result<Value, Refusal> {
    let mut value = value.clone();
    if let Some(patch) = patch {
        check_depth(path, &patch)?;
        check_object(path, &patch)?;
        merge(&mut value, &patch);
        check_size(path, &value, bytes_max)?;
    }
    Ok(value)
}

/// Returns a room's metadata or data with a patch merged into it, or `patch` in its place. Nulls of a replacement are
/// left out, as those of a merge.
pub(super) fn updated(value: &Value, path: &str, patch: &Value, replace: bool) -> Result<Value, Refusal> {
    let nothing = Value::Object(serde_json::Map::new());
    patched(if replace { &nothing } else { value }, path, Some(patch.clone()), DATA_BYTES_MAX)
}

/// Refuses a display text that is empty, too long, or has control characters, which could forge lines of a
/// terminal or a log (threat 33).
pub(super) fn check_text(path: &str, text: &str, chars_max: usize) -> Result<(), Refusal> {
    let chars = text.chars().take(chars_max + 1).count();
    if chars > chars_max {
        return Err(Refusal::at(
            Code::TooLarge,
            path,
            format!("has more than {chars_max} characters: shorten it"),
        ));
    }
    if text.trim().is_empty() {
        return Err(Refusal::at(Code::BadInput, path, "is empty: write something or leave it out"));
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::at(Code::BadInput, path, "has control characters: take them out"));
    }
    Ok(())
}

/// Refuses an identifier that is empty, too long, or not of letters, digits, `.`, `_` and `-`.
pub(super) fn check_word(path: &str, word: &str) -> Result<(), Refusal> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=WORD_BYTES_MAX).contains(&word.len()) && word.bytes().all(is_legal) {
        return Ok(());
    }
    let sentence = format!("must be 1 to {WORD_BYTES_MAX} letters, digits, `.`, `_` or `-`");
    Err(Refusal::at(Code::BadInput, path, sentence))
}
