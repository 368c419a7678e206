//! The SQLite VFS: it routes files on faulty disks to them, and all others to the operating system.
//!
//! Locks and shared memory are the operating system's; contents are the disks'. A file on no disk is opened
//! as if this layer did not exist.
//!
//! # Why the unsafe code is sound
//!
//! SQLite calls the functions of a `sqlite3_vfs` and of a `sqlite3_io_methods` as its documentation says.
//! This rests on:
//!
//! 1. *A handle is a [`Handle`].* SQLite gives `open` a buffer of `szOsFile` bytes, aligned for pointers, and
//!    passes that buffer to the methods that `open` put into it, until `close`. `szOsFile` is
//!    `size_of::<Handle>()` and the size of the operating system's handle, which begins behind it:
//!    [`beneath`]. Our methods stand only in handles that `open` filled.
//! 2. *The operating system's layer is SQLite's own.* It is found once, before ours is registered, and never
//!    goes away. Its functions get handles that it opened itself, and its own `sqlite3_vfs`. Those that are
//!    copied into ours read only the fields of their `sqlite3_vfs` that are copied with them.
//! 3. *Pointers are valid for the call.* Buffers have as many bytes as SQLite says, names end in a zero, and
//!    result pointers are writable. A name given to `open` is valid until `close`.
//! 4. *A handle's place is ours.* `open` makes it from a box, `close` takes it back, and in between it is
//!    only read. SQLite never uses a handle from two threads at once.
//!
//! Nothing here unwinds into SQLite: a panic in an `extern "C"` function ends the process.

#![allow(unsafe_code, reason = "SQLite's interface for files is C; the proof stands above")]

use crate::disk::{self, Failed, Shared};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::{mem, ptr, slice};
use rusqlite::ffi;
use rusqlite::ffi::{sqlite3_file, sqlite3_io_methods, sqlite3_vfs};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// SQLite's handle of a file on a disk. The operating system's handle follows it.
#[repr(C)]
struct Handle {
    base: sqlite3_file,
    place: *mut Place,
}

struct Place {
    disk: Arc<Shared>,
    path: PathBuf,
}

/// The operating system's layer, and ours.
struct Layers {
    system: *mut sqlite3_vfs,
}

// SAFETY: the pointer is to a structure that SQLite never changes or frees once it is registered (2).
unsafe impl Send for Layers {}
// SAFETY: as above; it is only read.
unsafe impl Sync for Layers {}

static LAYERS: OnceLock<Result<Layers, &'static str>> = OnceLock::new();

/// Installs the layer for all files that SQLite opens in this process from here on.
pub(crate) fn install() -> io::Result<()> {
    let layers = LAYERS.get_or_init(register);
    layers.as_ref().map(|_| ()).map_err(|what| io::Error::other(*what))
}

fn register() -> Result<Layers, &'static str> {
    // SAFETY: SQLite allows both at any time and from any thread.
    let system = unsafe {
        if ffi::sqlite3_initialize() != ffi::SQLITE_OK {
            return Err("SQLite did not start");
        }
        ffi::sqlite3_vfs_find(ptr::null())
    };
    if system.is_null() {
        return Err("SQLite has no layer for the operating system's files");
    }
    // SAFETY: it is not null, and SQLite's own layer (2).
    let mut ours = unsafe { ptr::read(system) };
    let handle_bytes =
        c_int::try_from(mem::size_of::<Handle>()).map_err(|_| "a handle is larger than SQLite can say")?;
    ours.szOsFile += handle_bytes;
    ours.pNext = ptr::null_mut();
    ours.zName = c"parlor-faultdisk".as_ptr();
    ours.xOpen = Some(open);
    ours.xDelete = Some(delete);
    ours.xAccess = Some(access);
    // SAFETY: a registered structure must never be freed, and a leaked box is not.
    let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) };
    if registered == ffi::SQLITE_OK { Ok(Layers { system }) } else { Err("SQLite took no layer") }
}

fn system() -> *mut sqlite3_vfs {
    match LAYERS.get() {
        Some(Ok(layers)) => layers.system,
        _ => ptr::null_mut(),
    }
}

/// # Safety
///
/// `name` is null, or ends in a zero (3).
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(name) };
    text.to_str().ok().map(PathBuf::from)
}

fn on_disk(path: Option<PathBuf>) -> Option<(Arc<Shared>, PathBuf)> {
    let path = path?;
    disk::of(&path).map(|disk| (disk, path))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    let system = system();
    // SAFETY: (3), (2).
    let (place, system_open) = unsafe { (on_disk(path(name)), (*system).xOpen) };
    let Some(system_open) = system_open else { return ffi::SQLITE_CANTOPEN };
    let Some((disk, path)) = place else {
        // SAFETY: the buffer is larger than what the operating system's layer needs (1), the rest is passed
        // on (3).
        return unsafe { system_open(system, name, file, flags, flags_out) };
    };
    // SAFETY: the buffer is `szOsFile` bytes (1), so there is room for the operating system's handle behind
    // ours.
    let opened = unsafe {
        (*file).pMethods = ptr::null();
        system_open(system, name, beneath(file), flags, flags_out)
    };
    if opened != ffi::SQLITE_OK {
        return opened;
    }
    if disk.open(&path).is_err() {
        // SAFETY: it was opened just above.
        unsafe { system_close(file) };
        return ffi::SQLITE_CANTOPEN;
    }
    let handle = file.cast::<Handle>();
    // SAFETY: (1); from here on the handle is ours to read.
    unsafe {
        (*handle).place = Box::into_raw(Box::new(Place { disk, path }));
        (*handle).base.pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: (3).
    if let Some((disk, path)) = on_disk(unsafe { path(name) }) {
        disk.forget(&path);
    }
    let system = system();
    // SAFETY: (2), (3).
    unsafe {
        match (*system).xDelete {
            Some(delete) => delete(system, name, sync_folder),
            None => ffi::SQLITE_IOERR_DELETE,
        }
    }
}

unsafe extern "C" fn access(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: (3).
    let place = on_disk(unsafe { path(name) });
    let len = place.and_then(|(disk, path)| disk.len(&path));
    if let Some(len) = len.filter(|_| flags == ffi::SQLITE_ACCESS_EXISTS) {
        // An empty file counts as missing, as in the operating system's layer.
        // SAFETY: (3).
        unsafe { *out = (len > 0).into() };
        return ffi::SQLITE_OK;
    }
    let system = system();
    // SAFETY: (2), (3).
    unsafe {
        match (*system).xAccess {
            Some(access) => access(system, name, flags, out),
            None => ffi::SQLITE_IOERR_ACCESS,
        }
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Version 2 has shared memory, but no memory-mapped files.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The operating system's handle of a file.
///
/// # Safety
///
/// `file` is a buffer as of (1).
unsafe fn beneath(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: it is larger than a handle.
    unsafe { file.cast::<u8>().add(mem::size_of::<Handle>()).cast() }
}

/// # Safety
///
/// `file` is a handle as of (1), between `open` and `close`.
unsafe fn place<'a>(file: *mut sqlite3_file) -> &'a Place {
    // SAFETY: (4). It is used only until the method returns.
    unsafe { &*(*file.cast::<Handle>()).place }
}

/// # Safety
///
/// The operating system's handle is open.
unsafe fn system_close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let beneath = beneath(file);
        match (*beneath).pMethods.as_ref().and_then(|methods| methods.xClose) {
            Some(close) => close(beneath),
            None => ffi::SQLITE_OK,
        }
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: (4): the box was made by `open`, and SQLite closes once.
    unsafe {
        drop(Box::from_raw((*file.cast::<Handle>()).place));
        (*file).pMethods = ptr::null();
        system_close(file)
    }
}

fn code(result: Result<(), Failed>) -> c_int {
    match result {
        Ok(()) => ffi::SQLITE_OK,
        Err(Failed::Full) => ffi::SQLITE_FULL,
        Err(Failed::Sync) => ffi::SQLITE_IOERR_FSYNC,
        Err(Failed::File) => ffi::SQLITE_IOERR,
    }
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

unsafe extern "C" fn read(file: *mut sqlite3_file, buffer: *mut c_void, count: c_int, offset: i64) -> c_int {
    // SAFETY: (1), (3).
    let (place, buffer) =
        unsafe { (place(file), slice::from_raw_parts_mut(buffer.cast::<u8>(), size(count.into()))) };
    match place.disk.read(&place.path, size(offset), buffer) {
        Ok(there) if there == buffer.len() => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(_) => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: (1), (3).
    let (place, bytes) =
        unsafe { (place(file), slice::from_raw_parts(bytes.cast::<u8>(), size(count.into()))) };
    code(place.disk.write(&place.path, size(offset), bytes))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: i64) -> c_int {
    // SAFETY: (1).
    let place = unsafe { place(file) };
    code(place.disk.truncate(&place.path, size(len)))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    // SAFETY: (1).
    let place = unsafe { place(file) };
    code(place.disk.sync(&place.path))
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: (1).
    let place = unsafe { place(file) };
    let Some(len) = place.disk.len(&place.path) else { return ffi::SQLITE_IOERR_FSTAT };
    // SAFETY: (3).
    unsafe { *out = i64::try_from(len).unwrap_or(i64::MAX) };
    ffi::SQLITE_OK
}

/// File sizes are the disk's, so the operating system's file must not be enlarged or mapped.
unsafe extern "C" fn file_control(file: *mut sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    if [ffi::SQLITE_FCNTL_SIZE_HINT, ffi::SQLITE_FCNTL_CHUNK_SIZE, ffi::SQLITE_FCNTL_MMAP_SIZE].contains(&op)
    {
        return ffi::SQLITE_NOTFOUND;
    }
    // SAFETY: (1), and the arguments are SQLite's.
    unsafe { system_file_control(file, op, argument) }
}

/// Methods forwarded to the operating system's handle with the same arguments.
macro_rules! passed_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) -> $result:ty, or $missing:expr;)+) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> $result {
            // SAFETY: (1): the operating system's handle is open as long as ours, and the arguments are
            // SQLite's (3).
            unsafe {
                let beneath = beneath(file);
                match (*beneath).pMethods.as_ref().and_then(|methods| methods.$method) {
                    Some(method) => method(beneath $(, $argument)*),
                    None => $missing,
                }
            }
        })+
    };
}

passed_on! {
    lock = xLock(level: c_int) -> c_int, or ffi::SQLITE_IOERR_LOCK;
    unlock = xUnlock(level: c_int) -> c_int, or ffi::SQLITE_IOERR_UNLOCK;
    check_reserved_lock = xCheckReservedLock(out: *mut c_int) -> c_int, or ffi::SQLITE_IOERR_CHECKRESERVEDLOCK;
    system_file_control = xFileControl(op: c_int, argument: *mut c_void) -> c_int, or ffi::SQLITE_NOTFOUND;
    sector_size = xSectorSize() -> c_int, or 4096;
    device_characteristics = xDeviceCharacteristics() -> c_int, or 0;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int, or ffi::SQLITE_IOERR_SHMMAP;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int, or ffi::SQLITE_IOERR_SHMLOCK;
    shm_barrier = xShmBarrier() -> (), or ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int, or ffi::SQLITE_OK;
}
