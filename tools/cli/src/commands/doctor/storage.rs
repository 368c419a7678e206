//! The store, and the folders that a server writes to.

use super::findings::Findings;
use parlor_services::OnlineConfig;
use parlor_services::store::{OpenError, StoreFacts, StoreState, inspect};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const STORE: &str = "store";
/// A store with less to grow by is soon full.
const FREE_MIN: u64 = 256 << 20;

/// Looks at the store, and at what it is kept on.
pub(super) fn store(findings: &mut Findings, online: &OnlineConfig, is_running: bool) {
    let StoreFacts { file, state, holder, newest } = match inspect(&online.store) {
        Ok(facts) => facts,
        Err(error) => {
            let todo = match &error {
                OpenError::File { .. } => {
                    "Look again as the server's user, who must be able to write there: `sudo -u parlor parlor doctor`"
                }
                OpenError::Database(_) => {
                    "See whether the database runs and admits this user: `psql` takes the same address"
                }
                _ => "docs/store.md and docs/deploy.md say more",
            };
            return findings.problem(STORE, error.to_string(), todo);
        }
    };
    let place = match &file {
        Some(file) => file.display().to_string(),
        None => "PostgreSQL".to_owned(),
    };
    match (holder, is_running) {
        (Some(holder), false) => findings.problem(
            STORE,
            format!("{place} is in use by {holder}, and this server does not run"),
            "Stop that one, or name another --store or --data",
        ),
        _ => match state {
            StoreState::Absent => findings.ok(STORE, format!("{place}: the first start makes it")),
            StoreState::Unmerged => {
                findings.ok(STORE, format!("{place}, with the log of a server that was killed: the next start merges it"));
            }
            StoreState::Sound { layout } if layout < newest => findings.warning(
                STORE,
                format!("{place} has layout {layout}, and the next start makes it {newest}: an older server cannot open it then"),
                "Make a backup first: docs/deploy.md",
            ),
            StoreState::Sound { layout } => findings.ok(STORE, format!("{place}, layout {layout}")),
        },
    }
    let Some(file) = file else { return };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    writable(findings, "data", folder);
    private(findings, STORE, &file);
    let used = fs::metadata(&file).map_or(0, |found| found.len());
    space(findings, folder, online.limits.data_max.saturating_sub(used));
}

/// Whether files can be made in a folder, which may not be there yet.
pub(super) fn writable(findings: &mut Findings, check: &str, folder: &Path) {
    let there = existing(folder);
    let probe = there.join(format!(".parlor-doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe).and_then(|file| {
        drop(file);
        fs::remove_file(&probe)
    });
    match made {
        Ok(()) if there == folder => findings.ok(check, format!("{} can be written to", folder.display())),
        Ok(()) => findings.ok(check, format!("{} can be made", folder.display())),
        Err(error) => {
            let todo = format!(
                "Let the server's user write there, as by `install -d -o USER -m 0700 {}`, or name another folder; in a unit \
                 StateDirectory= or ReadWritePaths= allows it",
                folder.display()
            );
            findings.problem(check, format!("{} cannot be written to: {error}", there.display()), todo);
        }
    }
}

/// The folder itself, or the one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if folder.exists() {
        return folder.to_owned();
    }
    absolute.ancestors().find(|above| above.exists()).map_or(absolute.clone(), Path::to_owned)
}

/// Whether other users can read a secret file.
pub(super) fn private(findings: &mut Findings, check: &str, path: &Path) {
    let mode = fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
    if let Some(mode) = mode.ok().filter(|mode| mode & 0o007 != 0) {
        findings.warning(
            check,
            format!(
                "every user of this machine can use {} (mode {mode:03o}), which has secrets",
                path.display()
            ),
            format!("`chmod o= {}`", path.display()),
        );
    }
}

/// Whether the disk has what the store may take yet.
fn space(findings: &mut Findings, folder: &Path, wanted: u64) {
    const CHECK: &str = "disk";
    let free =
        rustix::fs::statvfs(existing(folder)).map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    match free {
        Ok(free) if free < FREE_MIN => findings.problem(
            CHECK,
            format!("{} MiB are free: a full disk stops accounts and turn rooms", free >> 20),
            "Free some, or name a folder on another disk",
        ),
        Ok(free) if free < wanted => findings.warning(
            CHECK,
            format!("{} MiB are free, and the store may take {} more", free >> 20, wanted >> 20),
            format!("--data-max {}M bounds it; or use a larger disk", (free >> 20) / 10 * 9),
        ),
        Ok(free) => findings.ok(CHECK, format!("{} MiB are free, enough for --data-max", free >> 20)),
        Err(error) => findings.not_looked_at(CHECK, error.to_string()),
    }
}
