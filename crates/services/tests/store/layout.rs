//! Opening: migration from older layouts, and rejections with a sentence.

use crate::common::{
    account, account_id, address_in, fresh_realm, lock_is_free, new_room, notice, notices, open_in, state,
};
use parlor_services::store::{OpenError, Options, Store};
use rusqlite::Connection;
use std::path::Path;

fn in_file(folder: &Path, statements: &str) {
    let connection = Connection::open(folder.join("parlor.db")).expect("a file");
    connection.execute_batch(statements).expect("statements that are right");
}

#[tokio::test]
async fn a_store_is_there_again_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let realm = fresh_realm();
    let store = open_in(folder.path(), Options::default()).await;
    store.create_account(&realm, &account("ada"), None).await.unwrap();
    drop(store);
    let store = open_in(folder.path(), Options::default()).await;
    assert!(store.account(&realm, &account_id("ada")).await.unwrap().is_some());
}

/// The tables as they were up to layout 2, with notices of rows that have one each.
const LAYOUT_2: &str = "
    DROP INDEX rooms_put_off;
    DROP INDEX rooms_wanted;
    DROP INDEX room_players_open;
    DROP INDEX room_players_gathering;
    ALTER TABLE rooms DROP COLUMN failures;
    ALTER TABLE rooms DROP COLUMN wanted;
    ALTER TABLE room_players DROP COLUMN stage;
    CREATE TABLE before (realm TEXT NOT NULL, account TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
        body BLOB NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (realm, account, seq)) STRICT, WITHOUT ROWID;
    INSERT INTO before (realm, account, seq, kind, body, at_ms)
        SELECT realm, account, newest, substr(rest, instr(rest, ' ') + 1), body,
            CAST(substr(rest, 1, instr(rest, ' ') - 1) AS INTEGER)
        FROM (SELECT *, substr(parts, instr(parts, ' ') + 1) AS rest FROM notices);
    DROP TABLE notices;
    ALTER TABLE before RENAME TO notices;
    DROP TABLE definitions; DROP TABLE statistics; DROP TABLE statistic_totals; DROP TABLE achievements;
    DROP TABLE achievement_totals; DROP TABLE ratings; DROP TABLE used_once; DROP TABLE objects; DROP TABLE object_owners;
    DROP TABLE friends; DROP TABLE friend_codes;
    DROP TABLE saves; DROP TABLE save_versions;
    DROP TABLE boards; DROP TABLE board_seasons; DROP TABLE board_entries;
    DROP TABLE holdings; DROP TABLE match_owners; DROP TABLE room_lives; DROP TABLE room_events; DROP TABLE room_messages; DROP TABLE sweep_marks; DROP TABLE locks; DROP TABLE players_seen; DROP TABLE nodes; DROP TABLE board_log; DROP TABLE definition_changes;
    DROP TABLE orders; DROP TABLE presence; DROP TABLE live_rooms; DROP TABLE used_tokens;
    DROP INDEX sign_ins_by_end; DROP INDEX bans_by_end;
    ALTER TABLE outboxes DROP COLUMN bytes; ALTER TABLE accounts DROP COLUMN seen_ms;
    UPDATE parlor_layout SET number = 2;";

#[tokio::test]
async fn what_waits_in_inboxes_of_layout_2_waits_there_in_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let realm = fresh_realm();
    let store = open_in(folder.path(), Options::default()).await;
    let told = [notice("ada", "one"), notice("bob", "two"), notice("ada", "three"), notice("ada", "four")];
    for (number, told) in told.into_iter().enumerate() {
        let room = new_room(&format!("r{number}"), state(1, "a", &[]));
        store.put_room(&realm, room, notices(vec![told])).await.unwrap();
    }
    store.acknowledge(&realm, &account_id("ada"), 1).await.unwrap();
    let mut before = Vec::new();
    for player in ["ada", "bob"] {
        before.push(store.read_inbox(&realm, &account_id(player), 0, 10).await.unwrap());
    }
    assert_eq!(before.iter().map(|inbox| inbox.notices.len()).collect::<Vec<_>>(), [2, 1]);
    drop(store);
    in_file(folder.path(), LAYOUT_2);
    let store = open_in(folder.path(), Options::default()).await;
    for (player, before) in ["ada", "bob"].into_iter().zip(before) {
        assert_eq!(store.read_inbox(&realm, &account_id(player), 0, 10).await.unwrap(), before);
    }
    // A notice keeps its number, which nobody else gets.
    store
        .put_room(&realm, new_room("s", state(1, "b", &[])), notices(vec![notice("ada", "five")]))
        .await
        .unwrap();
    let inbox = store.read_inbox(&realm, &account_id("ada"), 3, 10).await.unwrap();
    assert_eq!(inbox.notices.iter().map(|notice| notice.seq).collect::<Vec<_>>(), [4]);
}

#[tokio::test]
async fn two_servers_do_not_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_in(folder.path(), Options::default()).await;
    let second = Store::open(&address_in(folder.path())).await;
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
    drop(store);
    open_in(folder.path(), Options::default()).await;
}

#[tokio::test]
async fn a_newer_layout_and_a_foreign_file_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    drop(open_in(folder.path(), Options::default()).await);
    in_file(folder.path(), "UPDATE parlor_layout SET number = 99");
    for _ in 0..2 {
        lock_is_free();
        let newer = Store::open(&address_in(folder.path())).await;
        assert!(matches!(newer, Err(OpenError::Newer { found: 99, .. })), "{newer:?}");
    }
    let foreign = tempfile::tempdir().unwrap();
    in_file(foreign.path(), "CREATE TABLE recipes (name TEXT)");
    let error = Store::open(&address_in(foreign.path())).await.unwrap_err().to_string();
    assert!(error.contains("recipes"), "{error}");
    std::fs::write(foreign.path().join("parlor.db"), "this is a letter and not a database".repeat(100))
        .unwrap();
    lock_is_free();
    assert!(Store::open(&address_in(foreign.path())).await.is_err());
}

#[tokio::test]
#[cfg(unix)]
async fn nobody_else_may_read_what_a_store_writes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = open_in(folder.path(), Options::default()).await;
    store.create_account(&fresh_realm(), &account("ada"), None).await.unwrap();
    store.backup(&folder.path().join("backup.db")).await.unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    assert!(
        Store::open("/proc/no/such/folder/parlor.db").await.unwrap_err().to_string().contains("/proc/no")
    );
}
