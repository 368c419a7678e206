//! The registry of this machine: small files that list the servers on this machine and their rooms, so that
//! two processes find each other without configuration.
//!
//! Only servers with a generated identity write into it; the entry has their fingerprint. Only its user can
//! write to the folder: an attacker that could add an entry could also read the game's memory.
//!
//! ```text
//! $PARLOR_REGISTRY, or $XDG_RUNTIME_DIR/parlor, or <temporary folder>/parlor-<user>
//!   servers/PORT.json   { "port", "fingerprint", "pid" }
//!   rooms/CODE.json     { "code", "app", "port", "fingerprint", "pid" }
//! ```

use crate::identity::Fingerprint;
use parlor_proto::RoomCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Its port on the loopback addresses, UDP and TCP.
    pub port: u16,
    /// The fingerprint of its certificate.
    #[serde(with = "text")]
    pub fingerprint: Fingerprint,
    /// Its process id.
    pub pid: u32,
}

/// A room on a server on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomEntry {
    /// Its code.
    #[serde(with = "text")]
    pub code: RoomCode,
    /// Its game.
    pub app: String,
    /// Its server.
    #[serde(flatten)]
    pub server: ServerEntry,
}

/// The folder with the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    folder: PathBuf,
}

impl Registry {
    /// The registry of this user on this machine. The folder is created with the first entry.
    pub fn of_this_user() -> Self {
        let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = given("PARLOR_REGISTRY")
            .or_else(|| given("XDG_RUNTIME_DIR").map(|folder| folder.join("parlor")))
            .unwrap_or_else(|| {
                let user =
                    env::var("USER").or_else(|_| env::var("USERNAME")).unwrap_or_else(|_| "user".into());
                env::temp_dir().join(format!("parlor-{user}"))
            });
        Registry { folder }
    }

    /// A registry in another folder, for tests.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Registry { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Registers a server until the guard is dropped.
    ///
    /// # Errors
    /// The file system's error, or the folder belongs to another user.
    pub fn enter_server(&self, port: u16, fingerprint: Fingerprint) -> io::Result<EntryGuard> {
        let entry = ServerEntry { port, fingerprint, pid: process::id() };
        self.write(self.server_path(port), &entry)
    }

    /// Registers a room until the guard is dropped.
    ///
    /// # Errors
    /// The file system's error, or the folder belongs to another user.
    pub fn enter_room(
        &self,
        code: RoomCode,
        app: &str,
        port: u16,
        fingerprint: Fingerprint,
    ) -> io::Result<EntryGuard> {
        let server = ServerEntry { port, fingerprint, pid: process::id() };
        self.write(self.room_path(code), &RoomEntry { code, app: app.to_owned(), server })
    }

    /// Returns the room with this code, if a live server of this machine has it.
    pub fn room(&self, code: RoomCode) -> Option<RoomEntry> {
        let path = self.room_path(code);
        self.read(&path, |entry: &RoomEntry| entry.code == code && is_alive(entry.server.pid))
    }

    /// Returns the server on this port, if it is alive.
    pub fn server(&self, port: u16) -> Option<ServerEntry> {
        let path = self.server_path(port);
        self.read(&path, |entry: &ServerEntry| entry.port == port && is_alive(entry.pid))
    }

    /// All live servers of this machine, by port.
    pub fn servers(&self) -> Vec<ServerEntry> {
        let mut servers = self.all("servers", |entry: &ServerEntry| is_alive(entry.pid));
        servers.sort_unstable_by_key(|entry| entry.port);
        servers
    }

    /// All rooms of live servers of this machine, by code.
    pub fn rooms(&self) -> Vec<RoomEntry> {
        let mut rooms = self.all("rooms", |entry: &RoomEntry| is_alive(entry.server.pid));
        rooms.sort_unstable_by_key(|entry| entry.code);
        rooms
    }

    fn all<T: DeserializeOwned>(&self, folder: &str, is_good: impl Fn(&T) -> bool) -> Vec<T> {
        let files = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        files.filter_map(|file| self.read(&file.path(), &is_good)).collect()
    }

    fn room_path(&self, code: RoomCode) -> PathBuf {
        self.folder.join("rooms").join(format!("{code}.json"))
    }

    fn server_path(&self, port: u16) -> PathBuf {
        self.folder.join("servers").join(format!("{port}.json"))
    }

    /// Reads an entry. An entry that is stale, incomplete or in another user's folder is ignored.
    fn read<T: DeserializeOwned>(&self, path: &Path, is_good: impl Fn(&T) -> bool) -> Option<T> {
        check_private(&self.folder).ok()?;
        let entry = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        is_good(&entry).then_some(entry)
    }

    fn write<T: Serialize>(&self, path: PathBuf, entry: &T) -> io::Result<EntryGuard> {
        create_private(&self.folder)?;
        let folder = path.parent().expect("an entry stands in a folder");
        fs::create_dir_all(folder)?;
        let text = serde_json::to_vec(entry)?;
        // A reader sees the whole entry or none.
        let draft = path.with_extension(format!("{}.draft", process::id()));
        fs::write(&draft, &text)?;
        fs::rename(&draft, &path)?;
        Ok(EntryGuard { path, text })
    }
}

/// Removes its entry from the registry when dropped, unless another server has replaced it.
#[derive(Debug)]
#[must_use = "the entry is taken out when this is dropped"]
pub struct EntryGuard {
    path: PathBuf,
    text: Vec<u8>,
}

impl Drop for EntryGuard {
    fn drop(&mut self) {
        if fs::read(&self.path).is_ok_and(|text| text == self.text) {
            // A remaining file is harmless: readers see that its process is gone.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Ok(()) => check_private(folder),
        Err(error) => Err(error),
    }
}

/// Checks that the folder belongs to this user and that others cannot write to it: the temporary folder is
/// shared.
#[cfg(unix)]
fn check_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::symlink_metadata(folder)?;
    let mine = fs::metadata("/proc/self").map(|me| me.uid()).unwrap_or_else(|_| owner.uid());
    if owner.is_dir() && owner.uid() == mine && owner.mode() & 0o022 == 0 {
        return Ok(());
    }
    let text = format!(
        "{} is not a folder of this user's alone: remove it, or set PARLOR_REGISTRY to another",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(not(unix))]
fn check_private(folder: &Path) -> io::Result<()> {
    fs::metadata(folder).map(|_| ())
}

/// Whether a process is alive, on systems with a cheap check; on others connecting will show it. A terminated
/// process that was not waited for is still listed as a zombie.
fn is_alive(pid: u32) -> bool {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return true;
    }
    let Ok(stat) = fs::read_to_string(processes.join(pid.to_string()).join("stat")) else { return false };
    // proc(5): pid, name in parentheses (which may hold any character), state.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Serde for values in text form.
mod text {
    use core::fmt::Display;
    use core::str::FromStr;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINT: Fingerprint = Fingerprint([3; 32]);

    fn code() -> RoomCode {
        "K7QM".parse().expect("a code")
    }

    #[test]
    fn entries_are_found_until_their_guard_is_dropped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        assert_eq!(registry.room(code()), None);
        let server = registry.enter_server(9_000, PRINT).expect("the folder is ours");
        let room = registry.enter_room(code(), "tanks", 9_000, PRINT).expect("the folder is ours");
        assert_eq!(registry.servers().len(), 1);
        assert_eq!(registry.rooms(), [registry.room(code()).expect("it was entered")]);
        let found = registry.room(code()).expect("it was entered");
        assert_eq!(
            (found.app.as_str(), found.server.port, found.server.fingerprint),
            ("tanks", 9_000, PRINT)
        );
        drop(room);
        drop(server);
        assert_eq!((registry.room(code()), registry.servers().len(), registry.rooms().len()), (None, 0, 0));
    }

    #[test]
    fn a_newer_entry_is_not_taken_out_by_an_older_guard() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let older = registry.enter_room(code(), "tanks", 9_000, PRINT).expect("the folder is ours");
        let newer = registry.enter_room(code(), "tanks", 9_001, PRINT).expect("the folder is ours");
        drop(older);
        assert_eq!(registry.room(code()).expect("the newer stands").server.port, 9_001);
        drop(newer);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_entry_of_a_dead_process_is_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let guard = registry.enter_server(9_000, PRINT).expect("the folder is ours");
        let mut zombie = process::Command::new("true").spawn().expect("every Linux has it");
        let enter = |pid| {
            let entry = ServerEntry { port: 9_000, fingerprint: PRINT, pid };
            fs::write(&guard.path, serde_json::to_vec(&entry).expect("it is plain"))
                .expect("the folder is ours");
        };
        enter(zombie.id());
        while registry.server(9_000).is_some() {
            std::thread::yield_now();
        }
        zombie.wait().expect("it ends");
        // No process has this id: it is beyond the kernel's limit.
        enter(u32::MAX);
        assert_eq!(registry.server(9_000), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_folder_that_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let registry = Registry::at(folder.path().join("parlor"));
        let _guard = registry.enter_server(9_000, PRINT).expect("the folder is ours");
        fs::set_permissions(registry.folder(), fs::Permissions::from_mode(0o777))
            .expect("the folder is ours");
        assert_eq!(registry.server(9_000), None);
        assert!(registry.enter_server(9_000, PRINT).is_err());
    }
}
