//! Files of a closed store, and incomplete ones that are rejected.

use crate::common::{account, account_id, address_in, fresh_realm, open_in};
use parlor_server::realm::Realm;
use parlor_services::store::{OpenError, Options, Store};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

async fn with_ada(folder: &Path) -> (Store, Realm) {
    let realm = fresh_realm();
    let store = open_in(folder, Options::default()).await;
    store.create_account(&realm, &account("ada"), None).await.expect("an account");
    (store, realm)
}

/// A folder with some of the files of another one's store.
fn copied(from: &Path, endings: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for ending in endings {
        let name = format!("parlor.db{ending}");
        fs::copy(from.join(&name), folder.path().join(&name)).expect("a file");
    }
    folder
}

async fn refused(folder: &Path) -> OpenError {
    let error = Store::open(&address_in(folder)).await.expect_err("a store in part");
    let sentence = error.to_string();
    let path = folder.join("parlor.db").display().to_string();
    assert!(sentence.contains(&path) && sentence.contains("parlor admin restore"), "{sentence}");
    error
}

#[tokio::test]
async fn threat_28_a_store_that_was_closed_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (store, realm) = with_ada(folder.path()).await;
    // Somebody reads, as monitoring does, and has a handle until long after.
    let other = store.clone();
    other.answers().await.unwrap();
    store.close();
    let copy = copied(folder.path(), &[""]);
    let copy = open_in(copy.path(), Options::default()).await;
    assert!(copy.account(&realm, &account_id("ada")).await.unwrap().is_some());
    drop(other);
}

#[tokio::test]
async fn threat_28_a_file_without_its_log_and_a_log_without_its_file_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (store, realm) = with_ada(folder.path()).await;
    let alone = copied(folder.path(), &[""]);
    for _ in 0..2 {
        assert!(matches!(refused(alone.path()).await, OpenError::LogMissing { .. }));
        // It was opened, and that makes no log.
        let _ = fs::remove_file(alone.path().join("parlor.db-wal"));
    }
    let log = copied(folder.path(), &["-wal"]);
    for _ in 0..2 {
        assert!(matches!(refused(log.path()).await, OpenError::FileEmpty { .. }));
        fs::write(log.path().join("parlor.db"), "").unwrap();
    }
    assert!(fs::metadata(log.path().join("parlor.db-wal")).unwrap().len() > 0, "the log is as it was");
    // Both are what a kill leaves, and whole.
    let both = copied(folder.path(), &["", "-wal"]);
    let both = open_in(both.path(), Options::default()).await;
    assert!(both.account(&realm, &account_id("ada")).await.unwrap().is_some());
    drop(store);
}

#[tokio::test]
async fn threat_28_a_damaged_store_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = with_ada(folder.path()).await;
    drop(store);
    let path = folder.path().join("parlor.db");
    let whole = fs::read(&path).unwrap();
    for (from, to) in [(0, 100), (4_096, 6_000), (whole.len() / 2, whole.len())] {
        let mut damaged = whole.clone();
        damaged[from..to].fill(0x5a);
        fs::write(&path, damaged).unwrap();
        assert!(matches!(refused(folder.path()).await, OpenError::Damaged { .. }), "{from}");
    }
}
