//! Behaviour of a database outside of this process: it ends connections, makes others wait, and has other
//! servers.

use crate::common::{account_id, fresh_realm, new_room, postgres, room_id, state};
use core::time::Duration;
use futures_util::future::join_all;
use parlor_server::realm::Realm;
use parlor_services::store::{Effects, Limits, OpenError, Options, RoomLife, Store, StoreError};
use parlor_testing::within;

async fn commit(store: &Store, realm: &Realm, version: u64) -> Result<(), StoreError> {
    let next = state(version, "", &[]);
    store.commit_room(realm, &room_id("r1"), version - 1, next, Effects::default()).await.map(|_| ())
}

#[tokio::test]
async fn threat_30_a_server_that_ends_connections_is_reached_again() {
    let Some(scratch) = postgres().await else { return };
    let realm = fresh_realm();
    let store = Store::open(&scratch.address).await.unwrap();
    store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    assert!(store.load_room(&realm, &room_id("r1")).await.unwrap().is_some());
    assert_eq!(
        scratch.end_connections().await,
        3,
        "one that writes, one that reads, one that keeps others out"
    );
    let mut version = 2;
    let mut failed = 0;
    while version < 5 {
        match commit(&store, &realm, version).await {
            Ok(()) => version += 1,
            Err(StoreError::Unavailable { .. }) => failed += 1,
            Err(StoreError::Stale { current }) => version = current + 1,
            Err(error) => panic!("{error}"),
        }
    }
    println!("{failed} writes were told to try again");
    assert_eq!(store.load_room(&realm, &room_id("r1")).await.unwrap().unwrap().state.version, 4);
    drop(store);
    scratch.remove().await;
}

#[tokio::test]
async fn threat_30_a_server_that_stands_still_holds_up_nobody_for_long() {
    let Some(scratch) = postgres().await else { return };
    let realm = fresh_realm();
    let options = Options { answer_limit: Duration::from_millis(300), ..Options::default() };
    let store = Store::open_with(&scratch.address, options).await.unwrap();
    store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    let operator = &scratch.operator;
    operator.batch_execute("BEGIN").await.unwrap();
    let table = scratch.address.rsplit("%3D").next().unwrap();
    operator.batch_execute(&format!("SELECT 1 FROM {table}.rooms FOR UPDATE")).await.unwrap();
    let held = commit(&store, &realm, 2).await;
    assert!(matches!(held, Err(StoreError::Unavailable { .. })), "{held:?}");
    assert!(store.load_room(&realm, &room_id("r1")).await.unwrap().is_some(), "reads go on");
    operator.batch_execute("ROLLBACK").await.unwrap();
    let mut version = 2;
    while version < 4 {
        match commit(&store, &realm, version).await {
            Ok(()) => version += 1,
            // The one that was held up was done after all.
            Err(StoreError::Stale { current }) => version = current + 1,
            Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    drop(store);
    scratch.remove().await;
}

#[tokio::test]
async fn t3_whoever_waits_behind_writes_waits_for_a_lost_connection_that_may_still_commit() {
    let Some(scratch) = postgres().await else { return };
    let (store, realm) = (Store::open(&scratch.address).await.unwrap(), fresh_realm());
    let (operator, schema) = (&scratch.operator, scratch.address.rsplit("%3D").next().unwrap());
    let values = format!("('{realm:?}', 'late', 1, 1, '{{}}')");
    let columns = "(realm, name, version, changed_ms, document)";
    let insert = format!("BEGIN; INSERT INTO {schema}.boards {columns} VALUES {values}");
    operator.batch_execute(&insert).await.unwrap();
    let commits = async {
        let waits =
            format!("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{schema}.boards'::regclass");
        while operator.query(&waits, &[]).await.unwrap().is_empty() {}
        assert!(store.boards(&realm).await.unwrap().is_empty(), "reads go on");
        operator.batch_execute("COMMIT").await.unwrap();
    };
    let (waited, ()) = tokio::join!(store.behind_writes(), commits);
    waited.unwrap();
    assert_eq!(store.boards(&realm).await.unwrap().len(), 1);
    drop(store);
    scratch.remove().await;
}

#[tokio::test]
async fn a_second_server_is_refused_by_name_until_the_first_lets_go() {
    let Some(scratch) = postgres().await else { return };
    let first = Store::open(&scratch.address).await.unwrap();
    let refused = Store::open(&scratch.address).await;
    assert!(matches!(refused, Err(OpenError::InUseBy { .. })), "{refused:?}");
    let sentence = refused.unwrap_err().to_string();
    assert!(
        sentence.contains("in use by another server") && sentence.contains("pg_terminate_backend("),
        "{sentence}"
    );
    // A copy of the handle is no other server, and a closed store is nobody's.
    let copy = first.clone();
    first.close();
    let second = Store::open(&scratch.address).await.unwrap();
    let realm = fresh_realm();
    let late = copy.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await;
    assert!(matches!(late, Err(StoreError::Unavailable { .. })), "{late:?}");
    second.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    drop((copy, second));
    scratch.remove().await;
}

#[tokio::test]
async fn nodes_share_a_store_and_keep_a_server_alone_out() {
    let Some(scratch) = postgres().await else { return };
    let node = |name: &str| Options { node: Some(name.parse().unwrap()), ..Options::default() };
    let first = Store::open_with(&scratch.address, node("a")).await.unwrap();
    let second = Store::open_with(&scratch.address, node("b")).await.unwrap();
    let realm = fresh_realm();
    first.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    commit(&second, &realm, 2).await.unwrap();
    commit(&first, &realm, 3).await.unwrap();
    let refused = Store::open(&scratch.address).await;
    assert!(matches!(refused, Err(OpenError::InUseBy { .. })), "{refused:?}");
    drop((first, second));
    let alone = Store::open(&scratch.address).await.unwrap();
    let refused = Store::open_with(&scratch.address, node("a")).await;
    assert!(matches!(refused, Err(OpenError::InUseBy { .. })), "{refused:?}");
    drop(alone);
    scratch.remove().await;
}

#[tokio::test]
async fn threat_43_what_nodes_write_at_the_same_time_is_within_one_quota() {
    const OPEN: u64 = 20;
    let Some(scratch) = postgres().await else { return };
    let node = |name: &str| Options {
        node: Some(name.parse().unwrap()),
        limits: Limits { open_rooms: OPEN, ..Limits::default() },
        ..Options::default()
    };
    let mut stores = Vec::new();
    for name in ["a", "b", "c"] {
        stores.push(Store::open_with(&scratch.address, node(name)).await.unwrap());
    }
    let realm = fresh_realm();
    let open = async |store: &Store, id: String| {
        let life = RoomLife { owner: Some(account_id("ada")), is_open: true, until_ms: 1 };
        let effects = Effects { life: Some(life), ..Effects::default() };
        match store.put_room(&realm, new_room(&id, state(1, "", &[])), effects).await {
            Ok(_) => true,
            Err(StoreError::Quota { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    };
    let tries = (0..3 * OPEN).map(|number| {
        let store = &stores[usize::try_from(number % 3).unwrap()];
        open(store, format!("r{number}"))
    });
    let opened = join_all(tries).await.into_iter().filter(|is_open| *is_open).count() as u64;
    let held = stores[0].holding(&realm, Some(&account_id("ada"))).await.unwrap();
    assert_eq!((opened, held.open_rooms), (OPEN, OPEN));
    assert_eq!(stores[1].holding(&realm, None).await.unwrap().open_rooms, OPEN);
    drop(stores);
    scratch.remove().await;
}

#[tokio::test]
async fn writes_that_come_while_another_node_has_its_turn_are_one_transaction() {
    const WRITES: u64 = 20;
    let Some(scratch) = postgres().await else { return };
    let options = Options { node: Some("a".parse().unwrap()), ..Options::default() };
    let store = Store::open_with(&scratch.address, options).await.unwrap();
    let realm = fresh_realm();
    store.put_room(&realm, new_room("r0", state(1, "", &[])), Effects::default()).await.unwrap();
    let before = store.counters();
    // What a node does before it writes.
    let turn = format!("BEGIN; SELECT pg_advisory_xact_lock(7242698, hashtext('{}'))", scratch.schema);
    scratch.operator.batch_execute(&turn).await.unwrap();
    let writes = (1..=WRITES).map(|number| {
        let (store, realm) = (store.clone(), realm.clone());
        let room = new_room(&format!("r{number}"), state(1, "", &[]));
        tokio::spawn(async move { store.put_room(&realm, room, Effects::default()).await })
    });
    let writes: Vec<_> = writes.collect();
    within(async {
        while store.counters().waiting < WRITES {
            tokio::task::yield_now().await;
        }
    })
    .await;
    scratch.operator.batch_execute("ROLLBACK").await.unwrap();
    for written in join_all(writes).await {
        written.unwrap().unwrap();
    }
    let after = store.counters();
    assert_eq!((after.groups - before.groups, after.writes - before.writes), (1, WRITES));
    drop(store);
    scratch.remove().await;
}

#[tokio::test]
async fn nodes_share_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("parlor.db");
    let options = Options { node: Some("a".parse().unwrap()), ..Options::default() };
    let refused = Store::open_with(path.to_str().unwrap(), options).await;
    assert!(matches!(refused, Err(OpenError::FileOfNodes { .. })), "{refused:?}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_server_that_lost_its_store_to_another_writes_nothing_until_it_has_it_again() {
    let Some(scratch) = postgres().await else { return };
    let realm = fresh_realm();
    let first = Store::open(&scratch.address).await.unwrap();
    first.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
    // The lock's session is ended again and again until another server has the store.
    let second = loop {
        scratch.end_connections().await;
        if let Ok(second) = Store::open(&scratch.address).await {
            break second;
        }
    };
    commit(&second, &realm, 2).await.unwrap();
    loop {
        match commit(&first, &realm, 3).await {
            Err(StoreError::Unavailable { .. }) if first.state().is_err() => break,
            Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
            written => panic!("two servers write: {written:?}"),
        }
    }
    commit(&second, &realm, 3).await.unwrap();
    drop(second);
    let mut version = 4;
    while version < 6 {
        match commit(&first, &realm, version).await {
            Ok(()) => version += 1,
            Err(StoreError::Unavailable { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    drop(first);
    scratch.remove().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_the_password() {
    let error = Store::open("postgres://parlor:secret@127.0.0.1:1/parlor").await.unwrap_err();
    assert!(matches!(error, OpenError::Database(_)), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    let error =
        Store::open("postgres://parlor:secret@db/parlor?sslmode=prefer").await.unwrap_err().to_string();
    assert!(error.contains("verify-full") && !error.contains("secret"), "{error}");
}

/// A server that speaks TLS alone, and the file with the certificate that vouches for it.
fn with_tls() -> Option<(String, String)> {
    let named = std::env::var("PARLOR_POSTGRES_TLS").ok().zip(std::env::var("PARLOR_POSTGRES_ROOTS").ok());
    if named.is_none() {
        println!("skipped: PARLOR_POSTGRES_TLS and PARLOR_POSTGRES_ROOTS name no server");
    }
    named
}

#[tokio::test]
async fn a_server_is_reached_by_tls_if_it_proves_its_name_and_not_at_all_otherwise() {
    let Some((address, roots)) = with_tls() else { return };
    let with_roots = |mode: &str| format!("{address}?sslmode={mode}&sslrootcert={roots}");
    for mode in ["verify-full", "require"] {
        let store = Store::open(&with_roots(mode)).await.unwrap();
        let realm = fresh_realm();
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        commit(&store, &realm, 2).await.unwrap();
        assert_eq!(store.load_room(&realm, &room_id("r1")).await.unwrap().unwrap().state.version, 2);
    }
    let elsewhere = with_roots("verify-full").replace("@localhost:", "@127.0.0.1:");
    for refused in [
        // The server wants TLS, and is not spoken to by it.
        address.clone(),
        format!("{address}?sslmode=disable"),
        // Nobody whom this machine trusts vouches for it.
        format!("{address}?sslmode=verify-full"),
        format!("{address}?sslmode=require"),
        // It has another name.
        elsewhere,
    ] {
        assert!(matches!(Store::open(&refused).await, Err(OpenError::Database(_))), "{refused}");
    }
    let missing = Store::open(&format!("{address}?sslmode=require&sslrootcert={roots}-not")).await;
    assert!(matches!(missing, Err(OpenError::File { .. })), "{missing:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_without_it() {
    let Some(scratch) = postgres().await else { return };
    // No server speaks TLS on a socket of its own machine.
    let asked = Store::open(&format!("{}&sslmode=verify-full", scratch.address)).await;
    assert!(matches!(asked, Err(OpenError::Database(_))), "{asked:?}");
    scratch.remove().await;
}
