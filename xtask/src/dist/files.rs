//! Files and folders; each error names its file.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::PermissionsExt};

use crate::invocation::Invocation;
use crate::process::Failure;

fn named<'a>(path: &'a Path) -> impl Fn(io::Error) -> Failure + 'a {
    move |error| failed(path.display(), error)
}

fn failed(what: impl Display, error: impl Display) -> Failure {
    Failure::of(format!("{what}: {error}"))
}

/// Removes a folder with all that is in it, and makes it anew.
pub(super) fn emptied(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(named(folder))?;
    }
    fs::create_dir_all(folder).map_err(named(folder))
}

/// The paths in a folder, in order.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut paths: Vec<PathBuf> =
        entries.map_err(named(folder))?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a text; what is no UTF-8 in it is replaced, since licences are of all ages.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    fs::read(file).map_err(named(file)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file, and the folders that it is in.
pub(super) fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    parents(file)?;
    fs::write(file, content).map_err(named(file))?;
    set_mode(file, 0o644)
}

/// Copies a file that all may read, or also run.
pub(super) fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    parents(to)?;
    fs::copy(from, to).map_err(named(from))?;
    set_mode(to, mode)
}

/// Copies a folder.
pub(super) fn copy_all(from: &Path, to: &Path) -> Result<(), Failure> {
    for path in entries(from)? {
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copy_all(&path, &to)? } else { copy(&path, &to, 0o644)? }
    }
    Ok(())
}

fn parents(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(named(folder))
}

fn set_mode(file: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).map_err(named(file))
}

/// What a program prints; the error is what it complains of.
pub(super) fn output(call: &Invocation, folder: &Path) -> Result<Vec<u8>, Failure> {
    let output = call.command(folder).output().map_err(|error| failed(call, error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failed(call, String::from_utf8_lossy(&output.stderr).trim()))
}
