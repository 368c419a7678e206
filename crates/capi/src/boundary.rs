//! The boundary: pointers and Rust values, results and errors. All that reads or writes the caller's memory is here.
#![allow(unsafe_code)] // each has its proof; the head of the crate has what all of them build on

use crate::types::parlor_result;
use crate::types::parlor_result::{
    PARLOR_INVALID, PARLOR_NO_SUCH_ROOM, PARLOR_NONE, PARLOR_OK, PARLOR_PANICKED, PARLOR_REFUSED,
    PARLOR_TOO_SMALL,
};
use bytes::Bytes;
use parlor::{MemberId, RoomError, Value};
use parlor_client_core::binding::Fault;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The last error of this thread: its word, and its text.
    static ERROR: RefCell<(CString, CString)> = RefCell::default();
}

/// Why a call gives an error.
#[derive(Debug)]
pub(crate) struct Failure {
    result: parlor_result,
    fault: Fault,
}

/// What a call comes to.
pub(crate) type Done = Result<parlor_result, Failure>;

impl Failure {
    pub(crate) fn no_such_room() -> Self {
        let text = "there is no room of this handle: it was left, or it is none that Parlor gave";
        Failure { result: PARLOR_NO_SUCH_ROOM, fault: Fault::new("no_such_room", text) }
    }

    /// An argument that is wrong.
    pub(crate) fn argument(name: &str, text: &str) -> Self {
        Fault::bad_call(&format!("{name}: {text}")).into()
    }

    fn too_small(needed: usize, capacity: usize) -> Self {
        let text = format!("the buffer has {capacity} bytes or places, and {needed} are needed");
        Failure { result: PARLOR_TOO_SMALL, fault: Fault::new("too_small", &text) }
    }

    fn panicked() -> Self {
        let text = "a fault in Parlor itself; what it was stands on the standard error";
        Failure { result: PARLOR_PANICKED, fault: Fault::new("panicked", text) }
    }
}

/// A fault whose word begins with "bad_" is the caller's argument; any other is the room's refusal.
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let result = if fault.text("code").starts_with("bad_") { PARLOR_INVALID } else { PARLOR_REFUSED };
        Failure { result, fault }
    }
}

impl From<RoomError> for Failure {
    fn from(error: RoomError) -> Self {
        Fault::from(error).into()
    }
}

/// Does a call. An error is noted for this thread, and a panic ends here.
pub(crate) fn call(act: impl FnOnce() -> Done) -> parlor_result {
    // What a panic leaves half done is a room's, which each of its calls holds by a lock that a panic does not close:
    // as of `parlor`, whose core is left whole.
    let done = catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(Failure::panicked()));
    done.unwrap_or_else(|Failure { result, fault }| {
        let text = |name| CString::new(fault.text(name).replace('\0', " ")).unwrap_or_default();
        ERROR.set((text("code"), text("message")));
        result
    })
}

/// The word and the text of this thread's last error. They stay where they are until its next one.
pub(crate) fn last_error() -> (*const c_char, *const c_char) {
    ERROR.with_borrow(|(code, message)| (code.as_ptr(), message.as_ptr()))
}

/// PARLOR_OK, or PARLOR_NONE where there is nothing.
pub(crate) fn some(is_there: bool) -> parlor_result {
    if is_there { PARLOR_OK } else { PARLOR_NONE }
}

/// A text that came in.
///
/// # Safety
/// `text` is NULL, or leads to bytes up to a NUL which stay as they are for `'a`.
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise, for a pointer that is not NULL.
    let text = unsafe { some_text(name, text) }?;
    text.ok_or_else(|| Failure::argument(name, "it is NULL, and a text is wanted"))
}

/// A text that came in, or `None` for NULL.
///
/// # Safety
/// As of [`text`].
pub(crate) unsafe fn some_text<'a>(name: &str, text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|error| Failure::argument(name, &format!("it is no UTF-8: {error}")))
}

/// A list that came in.
///
/// # Safety
/// `items` is NULL, or leads to `count` items which stay as they are for `'a`.
pub(crate) unsafe fn list<'a, T: Copy>(
    name: &str,
    items: *const T,
    count: usize,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() || !items.is_aligned() {
        return Err(Failure::argument(name, "it is NULL or not aligned, and has a length"));
    }
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::argument(name, "its length is more than there is memory"));
    }
    // SAFETY: it is neither NULL nor out of line, its length is within an object's, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}

/// Bytes that came in, copied: they are sent after the call.
///
/// # Safety
/// As of [`list`].
pub(crate) unsafe fn bytes(name: &str, data: *const u8, length: usize) -> Result<Bytes, Failure> {
    // SAFETY: the caller's promise.
    Ok(Bytes::copy_from_slice(unsafe { list(name, data, length) }?))
}

/// Members that came in.
///
/// # Safety
/// As of [`list`].
pub(crate) unsafe fn members(members: *const i32, count: usize) -> Result<Vec<MemberId>, Failure> {
    // SAFETY: the caller's promise.
    unsafe { list("members", members, count) }?.iter().map(|id| member(*id)).collect()
}

/// A value that came in as JSON.
///
/// # Safety
/// As of [`text`].
pub(crate) unsafe fn json(name: &str, json: *const c_char) -> Result<Value, Failure> {
    // SAFETY: the caller's promise.
    read_json(name, unsafe { text(name, json) }?)
}

pub(crate) fn read_json(name: &str, json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::argument(name, &format!("it is no JSON: {error}")))
}

/// The JSON of a value. Bytes are a list of numbers, and numbers that JSON does not have are null.
pub(crate) fn to_json(value: &Value) -> String {
    serde_json::to_string(value).expect("a value has texts as the names of its maps")
}

/// The member that a number names.
pub(crate) fn member(number: i32) -> Result<MemberId, Failure> {
    let id = u32::try_from(number).map(MemberId);
    id.map_err(|_| Failure::argument("member", "a member is a number of at least 0"))
}

/// The member that a number names, or none.
pub(crate) fn some_member(number: i32) -> Result<Option<MemberId>, Failure> {
    if number == crate::types::PARLOR_NOBODY { Ok(None) } else { member(number).map(Some) }
}

/// Gives a value out.
///
/// # Safety
/// `to` is NULL, or leads to memory of a `T` which nobody else uses meanwhile.
pub(crate) unsafe fn give<T>(name: &str, to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() || !to.is_aligned() {
        return Err(Failure::argument(
            name,
            "it is NULL or not aligned, and something is to be written there",
        ));
    }
    // SAFETY: it is neither NULL nor out of line, and the caller promises the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// As [`give`], where the caller may not want it.
///
/// # Safety
/// As of [`give`].
pub(crate) unsafe fn offer<T>(name: &str, to: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    if to.is_null() { Ok(()) } else { unsafe { give(name, to, value) } }
}

/// Where a text, bytes or a list goes: the caller's buffer, and where its length goes.
pub(crate) struct Out<T> {
    buffer: *mut T,
    capacity: usize,
    length: *mut usize,
}

impl<T: Copy> Out<T> {
    /// # Safety
    /// `buffer` is NULL, or leads to memory of `capacity` items; `length` is NULL, or leads to memory of a number.
    /// Nobody else uses either as long as this lives.
    pub(crate) unsafe fn new(buffer: *mut T, capacity: usize, length: *mut usize) -> Self {
        Out { buffer, capacity, length }
    }

    /// Gives items out. `extra` are places that are filled with what `end` is and not counted.
    fn put(self, items: &[T], end: Option<T>) -> Result<(), Failure> {
        // SAFETY: the promise of `new`.
        unsafe { offer("length", self.length, items.len()) }?;
        let needed = items.len() + usize::from(end.is_some());
        if needed > self.capacity {
            return Err(Failure::too_small(needed, self.capacity));
        }
        if needed == 0 {
            return Ok(());
        }
        if self.buffer.is_null() || !self.buffer.is_aligned() {
            return Err(Failure::argument("buffer", "it is NULL or not aligned, and has a capacity"));
        }
        // SAFETY: the buffer is neither NULL nor out of line, and has `capacity` places by the promise of `new`: as
        // many as are written. It cannot overlap `items`, which are Parlor's own.
        unsafe {
            self.buffer.copy_from_nonoverlapping(items.as_ptr(), items.len());
            if let Some(end) = end {
                self.buffer.add(items.len()).write(end);
            }
        }
        Ok(())
    }
}

impl Out<c_char> {
    /// Gives a text out, with its NUL.
    pub(crate) fn text(self, text: &str) -> Done {
        let letters: Vec<c_char> = text.bytes().map(u8::cast_signed).collect();
        self.put(&letters, Some(0)).map(|()| PARLOR_OK)
    }

    /// Gives a text out if there is one.
    pub(crate) fn some_text(self, text: Option<&str>) -> Done {
        text.map_or(Ok(PARLOR_NONE), |text| self.text(text))
    }

    /// Gives the JSON of a value out, if there is one.
    pub(crate) fn some_json(self, value: Option<&Value>) -> Done {
        value.map_or(Ok(PARLOR_NONE), |value| self.text(&to_json(value)))
    }
}

impl Out<u8> {
    /// Gives a value out that is bytes, if there is one.
    pub(crate) fn some_bytes(self, value: Option<&Value>) -> Done {
        match value {
            None => Ok(PARLOR_NONE),
            Some(Value::Bytes(bytes)) => self.items(bytes),
            Some(other) => {
                let text = format!("the value is {}, not bytes: read it as JSON", other.kind());
                Err(Fault::new("value", &text).into())
            }
        }
    }
}

impl<T: Copy> Out<T> {
    /// Gives items out.
    pub(crate) fn items(self, items: &[T]) -> Done {
        self.put(items, None).map(|()| PARLOR_OK)
    }
}
