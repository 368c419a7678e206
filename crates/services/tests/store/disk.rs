//! Disks that fill up, fail to sync and stall: the store reports it, loses nothing, and recovers when they
//! do.

use crate::common::{fresh_realm, new_room, open_in, room_id, state};
use core::time::Duration;
use parlor_faultdisk::Disk;
use parlor_server::realm::Realm;
use parlor_services::store::{Effects, Options, Store, StoreError};
use tempfile::TempDir;

struct Bench {
    store: Store,
    realm: Realm,
    disk: Disk,
    _folder: TempDir,
}

async fn bench(options: Options) -> Bench {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Disk::over(folder.path(), 1).expect("a disk");
    let store = open_in(folder.path(), options).await;
    let realm = fresh_realm();
    for room in 0..8 {
        let room = new_room(&format!("r{room}"), state(1, "", &[]));
        store.put_room(&realm, room, Effects::default()).await.expect("a healthy disk");
    }
    Bench { store, realm, disk, _folder: folder }
}

impl Bench {
    async fn commit(&self, room: u64, version: u64) -> Result<(), StoreError> {
        let id = room_id(&format!("r{room}"));
        let state = state(version, &"x".repeat(2000), &[]);
        self.store.commit_room(&self.realm, &id, version - 1, state, Effects::default()).await.map(|_| ())
    }

    async fn version(&self, room: u64) -> u64 {
        let room = self.store.load_room(&self.realm, &room_id(&format!("r{room}"))).await;
        room.expect("reads go on").expect("a room").state.version
    }
}

#[track_caller]
fn assert_unavailable(result: Result<(), StoreError>) {
    assert!(matches!(result, Err(StoreError::Unavailable { .. })), "{result:?}");
}

#[tokio::test]
async fn threat_29_a_full_disk_makes_writes_unavailable_until_there_is_room() {
    let bench = bench(Options::default()).await;
    bench.disk.set_full(true);
    // All of the group, if they are one.
    let all = tokio::join!(bench.commit(0, 2), bench.commit(1, 2), bench.commit(2, 2));
    [all.0, all.1, all.2].into_iter().for_each(assert_unavailable);
    assert_eq!(bench.version(0).await, 1);
    bench.disk.set_full(false);
    for room in 0..3 {
        bench.commit(room, 2).await.unwrap();
        assert_eq!(bench.version(room).await, 2);
    }
    assert!(bench.store.counters().failed >= 3);
}

#[tokio::test]
async fn threat_29_nothing_is_acknowledged_while_syncs_fail() {
    let bench = bench(Options::default()).await;
    bench.disk.fail_syncs(true);
    let all = tokio::join!(bench.commit(0, 2), bench.commit(1, 2), bench.commit(2, 2));
    [all.0, all.1, all.2].into_iter().for_each(assert_unavailable);
    bench.disk.fail_syncs(false);
    for room in 0..3 {
        // Whether what was not acknowledged is there is not promised. What comes after it goes on from what is there.
        let version = bench.version(room).await;
        bench.commit(room, version + 1).await.unwrap();
        assert_eq!(bench.version(room).await, version + 1);
    }
}

#[tokio::test]
async fn threat_30_a_disk_that_stands_still_holds_up_nobody_for_long() {
    let options = Options { answer_limit: Duration::from_millis(300), waiting_max: 4, ..Options::default() };
    let bench = bench(options).await;
    let begun = bench.disk.syncs().begun;
    bench.disk.stand_still(true);
    // The first is in the group that stands still; once it is, the others wait in the line, which takes four.
    let waiting = async {
        let disk = bench.disk.clone();
        tokio::task::spawn_blocking(move || disk.wait_for_sync_after(begun)).await.unwrap();
        tokio::join!(
            bench.commit(1, 2),
            bench.commit(2, 2),
            bench.commit(3, 2),
            bench.commit(4, 2),
            bench.commit(5, 2),
            bench.commit(6, 2)
        )
    };
    let (first, others) = tokio::join!(bench.commit(0, 2), waiting);
    assert_unavailable(first);
    let others = [others.0, others.1, others.2, others.3, others.4, others.5];
    let full = others.iter().filter(|other| format!("{other:?}").contains("too many")).count();
    assert!(full >= 2, "{others:?}");
    others.into_iter().for_each(assert_unavailable);
    assert_eq!(bench.version(1).await, 1, "reads go on");
    assert_unavailable(bench.commit(7, 2).await);

    bench.disk.stand_still(false);
    while bench.commit(7, 2).await.is_err() {
        tokio::task::yield_now().await;
    }
    // The one that was under way was done; those whose askers had gone were not begun.
    assert_eq!(bench.version(0).await, 2);
    for room in 1..7 {
        assert_eq!(bench.version(room).await, 1, "room {room}");
    }
}

#[tokio::test]
async fn each_write_waits_for_a_sync() {
    let bench = bench(Options::default()).await;
    for version in 2..10 {
        let before = bench.disk.syncs().completed;
        bench.commit(0, version).await.unwrap();
        assert!(bench.disk.syncs().completed > before);
    }
}

#[tokio::test]
async fn writes_that_wait_share_a_commit() {
    let bench = bench(Options::default()).await;
    let (syncs, groups) = (bench.disk.syncs(), bench.store.counters().groups);
    bench.disk.stand_still(true);
    // While the first is being committed the others come, and wait.
    let others = async {
        let disk = bench.disk.clone();
        tokio::task::spawn_blocking(move || disk.wait_for_sync_after(syncs.begun)).await.unwrap();
        tokio::join!(bench.commit(1, 2), bench.commit(2, 2), bench.commit(3, 2), bench.commit(1, 2), async {
            while bench.store.counters().waiting < 4 {
                tokio::task::yield_now().await;
            }
            bench.disk.stand_still(false);
        })
    };
    let (first, others) = tokio::join!(bench.commit(0, 2), others);
    assert_eq!((first, others.0, others.1, others.2), (Ok(()), Ok(()), Ok(()), Ok(())));
    assert_eq!(others.3, Err(StoreError::Stale { current: 2 }), "and does not spoil the group");
    assert_eq!(bench.store.counters().groups - groups, 2);
    assert_eq!(bench.disk.syncs().completed - syncs.completed, 2);
}
