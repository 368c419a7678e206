//! Replaces a store by a backup, while no server runs.
//!
//! Each step leaves a complete store: after an interruption it is the old store or the backup.

use super::address::Address;
use super::backup::{BackupFacts, beside, check_backup, copy, folder_of, remove_if_there, sync_folder};
use super::error::{BackupError, OpenError, RestoreError};
use super::sqlite;
use parlor_server::embed::unix_ms;
use rusqlite::OpenFlags;
use rusqlite::ffi::ErrorCode as Code;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A restored backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The store's file.
    pub store: PathBuf,
    /// Its contents.
    pub facts: BackupFacts,
    /// The previous store's new path; `None` if there was no store.
    pub kept: Option<PathBuf>,
}

/// Replaces the store at an address by a backup. The previous store is kept beside it, under a new name. The
/// backup stays unchanged.
///
/// # Errors
/// [`RestoreError`]; then the store is unchanged.
pub fn restore(store: &str, backup: &Path) -> Result<Restored, RestoreError> {
    let Address::Sqlite(store) = Address::parse(store)? else { return Err(RestoreError::NotOurs) };
    let plan = Plan::new(&store, backup)?;
    // A folder is created only for a valid backup.
    check_backup(&plan.backup)?;
    let _lock = sqlite::lock(&plan.store)?;
    STEPS.iter().try_for_each(|step| step(&plan))?;
    let facts = check_backup(&plan.store)?;
    let kept = fs::exists(&plan.kept).map_err(plan.failed(&plan.kept))?.then_some(plan.kept);
    Ok(Restored { store: plan.store, facts, kept })
}

/// The files of a restoration.
#[derive(Debug)]
struct Plan {
    store: PathBuf,
    backup: PathBuf,
    /// The backup's copy, until it is renamed to the store.
    draft: PathBuf,
    /// The new name of the previous store.
    kept: PathBuf,
}

/// A step of a restoration.
type Step = fn(&Plan) -> Result<(), RestoreError>;

/// All steps, in order.
const STEPS: [Step; 4] = [copy_in, keep_old, empty_log, replace];

impl Plan {
    fn new(store: &Path, backup: &Path) -> Result<Self, RestoreError> {
        let is_same = match (fs::canonicalize(store), fs::canonicalize(backup)) {
            (Ok(store), Ok(backup)) => store == backup,
            _ => false,
        };
        if is_same {
            return Err(RestoreError::Itself { path: store.to_owned() });
        }
        Ok(Plan {
            store: store.to_owned(),
            backup: backup.to_owned(),
            draft: beside(store, "-restore"),
            kept: beside(store, &format!("-replaced-{}", unix_ms())),
        })
    }

    fn failed(&self, path: &Path) -> impl Fn(io::Error) -> RestoreError + use<> {
        let (store, path) = (self.store.clone(), path.to_owned());
        move |error| RestoreError::File { store: store.clone(), path: path.clone(), error }
    }
}

/// Copies the backup beside the store, ready for renaming. The disk must have room for both.
fn copy_in(plan: &Plan) -> Result<(), RestoreError> {
    let failed = plan.failed(&plan.draft);
    for ending in ["", "-journal", "-wal", "-shm"] {
        remove_if_there(&beside(&plan.draft, ending)).map_err(&failed)?;
    }
    sqlite::private_file(&plan.draft).map_err(&failed)?;
    let copied = copy(&plan.backup, &plan.draft).map_err(|error| failed(io::Error::other(error)));
    let copied = copied.and_then(|()| check_backup(&plan.draft).map_err(RestoreError::from));
    if copied.is_err() {
        // The error is reported; a remaining draft does no harm.
        let _ = remove_if_there(&plan.draft);
    }
    copied?;
    for file in [plan.draft.clone(), beside(&plan.store, "-owner")] {
        give_to_owner_of_folder(&file).map_err(plan.failed(&file))?;
    }
    File::open(&plan.draft).and_then(|file| file.sync_all()).map_err(&failed)
}

/// The caller may be root while the server is not: new files get the folder's owner.
#[cfg(unix)]
fn give_to_owner_of_folder(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let folder = fs::metadata(folder_of(file))?;
    let now = fs::metadata(file)?;
    if now.uid() == folder.uid() {
        return Ok(());
    }
    std::os::unix::fs::chown(file, Some(folder.uid()), Some(folder.gid()))
}

#[cfg(not(unix))]
fn give_to_owner_of_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives the old store a second name.
fn keep_old(plan: &Plan) -> Result<(), RestoreError> {
    for ending in ["", "-wal"] {
        let (old, kept) = (beside(&plan.store, ending), beside(&plan.kept, ending));
        match fs::hard_link(&old, &kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            linked => linked.map_err(plan.failed(&kept))?,
        }
    }
    sync_folder(&plan.kept).map_err(plan.failed(&plan.kept))
}

/// Merges the previous store's log into its file, and deletes the log. Otherwise SQLite would take it for the
/// backup's.
fn empty_log(plan: &Plan) -> Result<(), RestoreError> {
    if !fs::exists(&plan.store).map_err(plan.failed(&plan.store))? {
        return Ok(());
    }
    let folded = sqlite::open(&plan.store, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|old| old.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0)));
    let is_busy =
        |code: Option<Code>| matches!(code, Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::ReadOnly));
    let kept_log = beside(&plan.kept, "-wal");
    match folded {
        Ok(mode) if mode == "delete" => remove_if_there(&kept_log).map_err(plan.failed(&kept_log))?,
        // A damaged store is what backups are for. It is kept unchanged, with its log.
        Err(error) if !is_busy(error.sqlite_error_code()) => {
            tracing::warn!(store = %plan.store.display(), %error, "the old store is damaged, and kept as it is");
        }
        // Another program has it open.
        Ok(_) | Err(_) => return Err(OpenError::InUse { path: plan.store.clone() }.into()),
    }
    for ending in ["-wal", "-shm", "-journal"] {
        let left = beside(&plan.store, ending);
        remove_if_there(&left).map_err(plan.failed(&left))?;
    }
    Ok(())
}

/// Renames the copy to the store. From this moment the backup is the store.
fn replace(plan: &Plan) -> Result<(), RestoreError> {
    fs::rename(&plan.draft, &plan.store).map_err(plan.failed(&plan.store))?;
    sync_folder(&plan.store).map_err(plan.failed(&plan.store))
}

impl From<BackupError> for RestoreError {
    fn from(error: BackupError) -> Self {
        RestoreError::Backup(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{AccountId, Ban, Options, Store};
    use parlor_server::realm::Realm;

    fn realm() -> Realm {
        Realm::new("tanks", "production").unwrap()
    }

    async fn open(path: &Path) -> Store {
        Store::open_with(path.to_str().unwrap(), Options::default()).await.unwrap()
    }

    /// Bans a user: a write like any other.
    async fn ban(store: &Store, who: &str) {
        let account = AccountId::new(who).unwrap();
        let ban = Ban { account, reason: "x".repeat(100), by: "ops".into(), at_ms: 1, until_ms: None };
        store.ban(&realm(), &ban).await.unwrap();
    }

    async fn banned(path: &Path) -> Vec<String> {
        let store = open(path).await;
        let bans = store.bans(&realm(), None, 100).await.unwrap();
        bans.items.into_iter().map(|ban| ban.account.to_string()).collect()
    }

    #[tokio::test]
    async fn whoever_is_cut_off_has_the_old_store_or_the_backup() {
        for steps in 0..=STEPS.len() {
            for is_killed in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let (path, backup) = (folder.path().join("parlor.db"), folder.path().join("backup.db"));
                let store = open(&path).await;
                ban(&store, "ada").await;
                store.backup(&backup).await.unwrap();
                ban(&store, "bob").await;
                if is_killed {
                    // A killed server leaves the file and a log of newer pages.
                    let killed = folder.path().join("killed.db");
                    for ending in ["", "-wal"] {
                        fs::copy(beside(&path, ending), beside(&killed, ending)).unwrap();
                    }
                    drop(store);
                    for ending in ["", "-wal"] {
                        fs::rename(beside(&killed, ending), beside(&path, ending)).unwrap();
                    }
                    let _ = remove_if_there(&beside(&path, "-shm"));
                } else {
                    drop(store);
                }
                let plan = Plan::new(&path, &backup).unwrap();
                STEPS[..steps].iter().for_each(|step| step(&plan).unwrap());
                let found = banned(&path).await;
                let expected: &[&str] = if steps == STEPS.len() { &["ada"] } else { &["ada", "bob"] };
                assert_eq!(found, expected, "after {steps} steps, killed: {is_killed}");
                // The restoration can be repeated.
                let restored = restore(path.to_str().unwrap(), &backup).unwrap();
                assert_eq!(banned(&path).await, ["ada"]);
                assert_eq!(banned(&restored.kept.unwrap()).await, expected);
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_backup_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, backup) = (folder.path().join("parlor.db"), folder.path().join("backup.db"));
        let store = open(&path).await;
        ban(&store, "ada").await;
        store.backup(&backup).await.unwrap();
        let refused = |named: &Path| restore(path.to_str().unwrap(), named).unwrap_err().to_string();
        assert!(refused(&backup).contains("in use by another server"), "a server runs");
        drop(store);

        let place = |name: &str| folder.path().join(name);
        let whole = fs::read(&backup).unwrap();
        let mut flipped = whole.clone();
        flipped[4096..6000].fill(0x5a);
        let newer = place("newer.db");
        fs::copy(&backup, &newer).unwrap();
        let connection = sqlite::open(&newer, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        connection.execute_batch("UPDATE parlor_layout SET number = 99").unwrap();
        drop(connection);
        for (name, content) in
            [("cut.db", &whole[..whole.len() / 2]), ("flipped.db", &flipped), ("text.db", b"hi")]
        {
            fs::write(place(name), content).unwrap();
        }
        fs::write(place("empty.db"), "").unwrap();
        let before = fs::read(&path).unwrap();
        let files = || {
            let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let there = files();
        for name in ["cut.db", "flipped.db", "text.db", "empty.db", "newer.db", "missing.db"] {
            let sentence = refused(&place(name));
            assert!(sentence.contains(name) && sentence.contains("is as it was"), "{sentence}");
            assert_eq!((fs::read(&path).unwrap(), files()), (before.clone(), there.clone()), "{name}");
        }
        assert!(refused(&newer).contains("newer Parlor"));
        assert!(refused(&path).contains("is the store itself"));
        let server = restore("postgres://ada@localhost/parlor", &backup);
        assert!(matches!(server, Err(RestoreError::NotOurs)));
        assert_eq!(banned(&path).await, ["ada"]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_restored_belongs_to_whoever_has_the_folder() {
        use std::os::unix::fs::{MetadataExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("backup.db");
        let store = open(&folder.path().join("first.db")).await;
        store.backup(&backup).await.unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let own = fs::metadata(&data).unwrap().uid();
        // Only root can change the owner; other users own all files already.
        let owner = if own == 0 { 10_001 } else { own };
        chown(&data, Some(owner), None).unwrap();
        let restored = restore(data.join("parlor.db").to_str().unwrap(), &backup).unwrap();
        for file in [restored.store.clone(), beside(&restored.store, "-owner")] {
            assert_eq!(fs::metadata(&file).unwrap().uid(), owner, "{}", file.display());
        }
    }

    #[tokio::test]
    async fn a_backup_is_put_where_there_is_nothing_and_where_all_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("backup.db");
        let store = open(&folder.path().join("first.db")).await;
        ban(&store, "ada").await;
        store.backup(&backup).await.unwrap();
        let fresh = folder.path().join("data/parlor.db");
        let restored = restore(fresh.to_str().unwrap(), &backup).unwrap();
        assert_eq!((restored.kept, restored.store), (None, fresh.clone()));
        assert_eq!(banned(&fresh).await, ["ada"]);
        let (damaged, log) = (folder.path().join("damaged.db"), folder.path().join("damaged.db-wal"));
        fs::write(&damaged, "this was a store once").unwrap();
        fs::write(&log, "and this its log").unwrap();
        let kept = restore(damaged.to_str().unwrap(), &backup).unwrap().kept.unwrap();
        assert_eq!(banned(&damaged).await, ["ada"]);
        assert_eq!(fs::read(&kept).unwrap(), b"this was a store once");
        assert_eq!(fs::read(beside(&kept, "-wal")).unwrap(), b"and this its log");
    }
}
