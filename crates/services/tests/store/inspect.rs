//! A look at a store changes nothing of it, and takes it from no server.

use crate::common::{address_in, lock_is_free, open_in, postgres};
use parlor_services::store::{OpenError, Options, Store, StoreFacts, StoreState, inspect};
use std::fs;
use std::path::Path;

async fn look(address: &str) -> Result<StoreFacts, OpenError> {
    let address = address.to_owned();
    tokio::task::spawn_blocking(move || inspect(&address)).await.expect("it ends")
}

/// The files in a folder, with their content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut files: Vec<_> = entries.map(|path| (name(&path), fs::read(&path).expect("a file"))).collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_file_is_looked_at_in_each_state_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let address = address_in(folder.path());
    let absent = look(&address).await.unwrap();
    assert_eq!((absent.state, absent.holder), (StoreState::Absent, None));
    assert!(files(folder.path()).is_empty(), "a look makes nothing");

    let store = open_in(folder.path(), Options::default()).await;
    let held = look(&address).await.unwrap();
    assert_eq!(held.state, StoreState::Sound { layout: held.newest });
    assert!(held.holder.is_some());
    store.answers().await.expect("it is as it was");
    // What a killed server leaves.
    let killed = tempfile::tempdir().unwrap();
    for (name, content) in files(folder.path()) {
        fs::write(killed.path().join(name), content).unwrap();
    }
    let before = files(killed.path());
    let unmerged = look(&address_in(killed.path())).await.unwrap();
    assert_eq!((unmerged.state, unmerged.holder), (StoreState::Unmerged, None));
    assert_eq!(files(killed.path()), before);

    store.close();
    drop(store);
    lock_is_free();
    let before = files(folder.path());
    let closed = look(&address).await.unwrap();
    assert_eq!((closed.state, closed.holder), (StoreState::Sound { layout: closed.newest }, None));
    assert_eq!(files(folder.path()), before);

    let file = folder.path().join("parlor.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4_096..12_288].fill(7);
    fs::write(&file, bytes).unwrap();
    let damaged = look(&address).await.unwrap_err();
    assert!(matches!(damaged, OpenError::Damaged { .. }), "{damaged}");
    fs::write(&file, "").unwrap();
    fs::write(folder.path().join("parlor.db-wal"), "a log").unwrap();
    assert!(matches!(look(&address).await, Err(OpenError::FileEmpty { .. })));
    assert!(matches!(look("redis://localhost").await, Err(OpenError::Address { .. })));
}

#[tokio::test]
async fn a_database_is_looked_at_in_each_state() {
    let Some(scratch) = postgres().await else { return };
    let absent = look(&scratch.address).await.unwrap();
    assert_eq!((absent.state, absent.holder, absent.file), (StoreState::Absent, None, None));
    let store = Store::open(&scratch.address).await.unwrap();
    let held = look(&scratch.address).await.unwrap();
    assert_eq!(held.state, StoreState::Sound { layout: held.newest });
    let holder = held.holder.expect("this test has it");
    assert!(holder.contains("session"), "{holder}");
    store.close();
    drop(store);
    let closed = look(&scratch.address).await.unwrap();
    assert_eq!((closed.state, closed.holder), (StoreState::Sound { layout: closed.newest }, None));
    let newer = scratch.address.rsplit("%3D").next().unwrap();
    scratch.operator.batch_execute(&format!("UPDATE {newer}.parlor_layout SET number = 999")).await.unwrap();
    assert!(matches!(look(&scratch.address).await, Err(OpenError::Newer { found: 999, .. })));
    scratch.remove().await;
}
