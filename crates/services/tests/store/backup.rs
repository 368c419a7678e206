//! Backups while the store is written to.

use crate::common::{account_id, fresh_realm, new_room, notice, notices, open_in, room_id, state};
use parlor_server::realm::Realm;
use parlor_services::store::{BackupError, Effects, Options, Store, check_backup};
use std::fs;

/// Commits until the other side has what it wants.
async fn write_on(store: Store, realm: Realm, mut stop: tokio::sync::oneshot::Receiver<()>) -> u64 {
    let mut version = 1;
    while stop.try_recv().is_err() {
        let effects = notices(vec![notice(&format!("reader-{}", (version + 1) / 100), "told")]);
        let next = state(version + 1, &"x".repeat(5000), &[]);
        store.commit_room(&realm, &room_id("r1"), version, next, effects).await.expect("a commit");
        version += 1;
    }
    version
}

#[tokio::test]
async fn a_backup_is_the_store_at_one_instant() {
    let folder = tempfile::tempdir().unwrap();
    let realm = fresh_realm();
    let store = open_in(folder.path(), Options::default()).await;
    store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let writer = tokio::spawn(write_on(store.clone(), realm.clone(), stopped));
    let mut restored_version = 0;
    for number in 0..3 {
        let before = store.load_room(&realm, &room_id("r1")).await.unwrap().unwrap().state.version;
        let place = folder.path().join(format!("backup-{number}"));
        fs::create_dir(&place).unwrap();
        let facts = store.backup(&place.join("parlor.db")).await.unwrap();
        assert_eq!((facts.rooms, facts.accounts), (1, 0));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "no draft stays behind");
        assert_eq!(check_backup(&place.join("parlor.db")).unwrap(), facts);

        let restored = open_in(&place, Options::default()).await;
        let version = restored.load_room(&realm, &room_id("r1")).await.unwrap().unwrap().state.version;
        assert!(version >= before && version >= restored_version, "{version} after {before}");
        restored_version = version;
        let mut told = 0;
        for inbox in 0..=version / 100 {
            let reader = account_id(&format!("reader-{inbox}"));
            told += restored.read_inbox(&realm, &reader, 0, 1000).await.unwrap().newest;
        }
        assert_eq!(told, version - 1, "each commit is there whole");
        let next = state(version + 1, "goes on", &[]);
        restored.commit_room(&realm, &room_id("r1"), version, next, Effects::default()).await.unwrap();
    }
    stop.send(()).unwrap();
    assert!(writer.await.unwrap() >= restored_version);
}

#[tokio::test]
async fn a_backup_replaces_nothing_and_a_damaged_one_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let realm = fresh_realm();
    let store = open_in(folder.path(), Options::default()).await;
    for room in 0..50 {
        let room = new_room(&format!("r{room}"), state(1, &"x".repeat(3000), &[]));
        store.put_room(&realm, room, Effects::default()).await.unwrap();
    }
    let path = folder.path().join("backup.db");
    store.backup(&path).await.unwrap();
    let whole = fs::read(&path).unwrap();
    assert!(matches!(store.backup(&path).await, Err(BackupError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), whole);
    let nowhere = store.backup(&folder.path().join("no such folder/backup.db")).await;
    assert!(nowhere.unwrap_err().to_string().contains("no such folder"));

    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let cut = check_backup(&path);
    assert!(matches!(cut, Err(BackupError::Unsound { .. })), "{cut:?}");
    fs::write(&path, "nonsense").unwrap();
    assert!(matches!(check_backup(&path), Err(BackupError::Unsound { .. })));
    assert!(matches!(check_backup(&folder.path().join("missing.db")), Err(BackupError::Unsound { .. })));
}
