//! A copy of the checkout, in which guards are taken out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Makes `tree` equal to the checkout's tracked and unignored files, but for those in `changed`, whose texts stand
/// there. Equal files are left alone and copies keep their time, so that cargo builds only what has changed.
pub(super) fn copy_tree(root: &Path, tree: &Path, changed: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
    let names = String::from_utf8_lossy(&listing.stdout);
    // A tracked file may have been removed.
    let files: BTreeSet<&Path> =
        names.split('\0').map(Path::new).filter(|name| root.join(name).is_file()).collect();
    for &name in &files {
        let to = tree.join(name);
        let bytes = match changed.get(name) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => fs::read(root.join(name)),
        };
        bytes.and_then(|bytes| update(&to, &bytes)).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    remove_others(tree, &|file| file.strip_prefix(tree).is_ok_and(|name| files.contains(name)))
        .map_err(|error| format!("{}: {error}", tree.display()))
}

fn update(to: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if fs::read(to).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // With the original's time it would look as if it had been built already.
    write(to, bytes)
}

/// Writes a file so that cargo sees the change.
#[allow(clippy::disallowed_methods, reason = "times of files are times of day")]
pub(super) fn write(to: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fs::write(to, bytes)?;
    fs::File::options().write(true).open(to)?.set_modified(SystemTime::now())
}

/// Removes files that are not kept, and folders left empty: cargo takes a folder among the workspace's
/// members for a crate.
fn remove_others(folder: &Path, is_kept: &dyn Fn(&Path) -> bool) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, is_kept)?;
            if fs::read_dir(&path)?.next().is_none() {
                fs::remove_dir(&path)?;
            }
        } else if !is_kept(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
