//! Many writers, one room: of those that read a version, exactly one writes the next.

use crate::common::{account_id, new_room, notice, notices, on_each, room_id, state};
use parlor_server::realm::Realm;
use parlor_services::store::{Effects, Store, StoreError};
use std::collections::BTreeMap;

const WRITERS: usize = 16;
const VERSIONS: u64 = 200;

/// Commits what it can until the room is far enough. Gives the versions that it was told are its own, with their documents.
async fn write(store: Store, realm: Realm, writer: usize) -> Vec<(u64, String)> {
    let room = room_id("contested");
    let mut won = Vec::new();
    loop {
        let loaded = store.load_room(&realm, &room).await.expect("a read").expect("a room");
        let current = loaded.state.version;
        if current >= VERSIONS {
            return won;
        }
        let document = format!("{} by {writer}", current + 1);
        let effects = notices(vec![notice("witness", &document)]);
        match store.commit_room(&realm, &room, current, state(current + 1, &document, &[]), effects).await {
            Ok(_) => won.push((current + 1, document)),
            Err(StoreError::Stale { current: newer }) => assert!(newer > current),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn threat_27_of_sixteen_writers_one_wins_each_version() {
    on_each(async |store, realm| {
        store.put_room(&realm, new_room("contested", state(1, "", &[])), Effects::default()).await.unwrap();
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(store.clone(), realm.clone(), writer))).collect();
        let mut won = BTreeMap::new();
        for writer in writers {
            for (version, document) in writer.await.unwrap() {
                let other = won.insert(version, document);
                assert_eq!(other, None, "version {version} was won twice");
            }
        }
        assert_eq!(won.keys().copied().collect::<Vec<_>>(), (2..=VERSIONS).collect::<Vec<_>>());
        let inbox = store.read_inbox(&realm, &account_id("witness"), 0, 1000).await.unwrap();
        let told: Vec<String> =
            inbox.notices.into_iter().map(|notice| String::from_utf8(notice.body).unwrap()).collect();
        assert_eq!(told, won.into_values().collect::<Vec<_>>(), "what was told is what was won, in order");
    })
    .await;
}
