//! Objects in every store: versions, readers and writers, batches that are all or none, quotas and deletion.

use crate::common::{account, account_id, on_each, on_each_with};
use parlor_services::store::{
    Expects, Limits, NewObject, Object, ObjectKey, ObjectRefused, Options, StoreError,
};
use parlor_social::limits::{OBJECT_BATCH_MAX, OBJECT_BYTES_MAX, OBJECTS_MAX};
use parlor_social::{Name, ObjectWriters, Readers};

fn key(owner: Option<&str>, name: &str) -> ObjectKey {
    let named = |text: &str| Name::new(text).expect("a name");
    ObjectKey { owner: owner.map(account_id), collection: named("things"), name: named(name) }
}

pub(crate) fn new_object(owner: Option<&str>, name: &str, body: &[u8]) -> NewObject {
    let key = key(owner, name);
    NewObject { key, body: body.to_vec(), readers: None, writers: None, expects: Expects::Any }
}

fn expecting(object: NewObject, expects: Expects) -> NewObject {
    NewObject { expects, ..object }
}

#[tokio::test]
async fn t4_objects_are_written_all_or_none_and_only_over_what_was_read() {
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        let put = async |objects| store.put_objects(&realm, Some(&ada), objects, 7).await.unwrap();
        let mine = |name: &str, body: &[u8]| new_object(Some("ada"), name, body);
        let both = vec![expecting(mine("a", b"1"), Expects::Nothing), mine("b", b"2")];
        assert_eq!(put(both.clone()).await, Ok(vec![1, 2]));
        assert_eq!(put(both).await, Err((0, ObjectRefused::Taken { current: 1 })));
        let stale = vec![mine("c", b"3"), expecting(mine("b", b"4"), Expects::Version(1))];
        assert_eq!(put(stale).await, Err((1, ObjectRefused::Stale { current: 2 })));
        let read = async |name: &str| {
            store.objects(&realm, Some(&ada), vec![key(Some("ada"), name)]).await.unwrap().pop()
        };
        assert_eq!(read("c").await, None, "a refused batch leaves nothing");
        assert_eq!(put(vec![expecting(mine("b", b"4"), Expects::Version(2))]).await, Ok(vec![3]));
        let b = read("b").await.unwrap();
        assert_eq!((b.version, b.body.as_slice(), b.readers), (3, &b"4"[..], Readers::Owner));
        // After a removal no old version fits.
        let remove = async |name: &str, expects| {
            store.remove_objects(&realm, Some(&ada), vec![(key(Some("ada"), name), expects)]).await.unwrap()
        };
        assert_eq!(remove("b", Expects::Version(2)).await, Err((0, ObjectRefused::Stale { current: 3 })));
        assert_eq!(remove("b", Expects::Version(3)).await, Ok(()));
        assert_eq!(remove("b", Expects::Any).await, Ok(()), "it is gone already");
        let late = put(vec![expecting(mine("b", b"5"), Expects::Version(3))]).await;
        assert_eq!(late, Err((0, ObjectRefused::Stale { current: 0 })));
        assert_eq!(put(vec![mine("b", b"6")]).await, Ok(vec![4]));
        for objects in
            [vec![mine("a", &vec![0; OBJECT_BYTES_MAX + 1])], vec![mine("a", b""); OBJECT_BATCH_MAX + 1]]
        {
            let refused = store.put_objects(&realm, Some(&ada), objects, 7).await;
            assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn threat_32_t4_a_player_reads_and_writes_only_what_it_may() {
    on_each(async |store, realm| {
        for player in ["ada", "bob"] {
            store.create_account(&realm, &account(player), None).await.unwrap();
        }
        let (ada, bob) = (account_id("ada"), account_id("bob"));
        let objects = [
            ("own", None, None),
            ("open", Some(Readers::Everyone), None),
            ("locked", Some(Readers::Owner), Some(ObjectWriters::Server)),
            ("secret", Some(Readers::Server), Some(ObjectWriters::Server)),
        ];
        for owner in [Some("ada"), None] {
            let made = objects.map(|(name, readers, writers)| NewObject {
                readers,
                writers,
                ..new_object(owner, name, b"{}")
            });
            store.put_objects(&realm, None, made.to_vec(), 7).await.unwrap().unwrap();
        }
        let names = |objects: Vec<Object>| -> Vec<String> {
            objects.into_iter().map(|object| object.key.name.to_string()).collect()
        };
        for (asker, owner, expected) in [
            (Some(&ada), Some(&ada), vec!["locked", "open", "own"]),
            (Some(&bob), Some(&ada), vec!["open"]),
            (Some(&bob), None, vec!["open"]),
            (None, Some(&ada), vec!["locked", "open", "own", "secret"]),
        ] {
            let list = store.objects_of(&realm, asker, owner, None, None).await.unwrap();
            assert_eq!(names(list.items), expected, "{asker:?} of {owner:?}");
            let keys = objects.map(|(name, ..)| key(owner.map(|owner| owner.as_str()), name));
            let mut read = names(store.objects(&realm, asker, keys.to_vec()).await.unwrap());
            read.sort();
            assert_eq!(read, expected, "{asker:?} of {owner:?}");
        }
        for (asker, owner, name, may) in [
            (&ada, Some("ada"), "own", true),
            (&ada, Some("ada"), "locked", false),
            (&bob, Some("ada"), "open", false),
            (&bob, Some("ada"), "new", false),
            (&bob, None, "new", false),
        ] {
            let put = store.put_objects(&realm, Some(asker), vec![new_object(owner, name, b"{}")], 7).await;
            let removed = (key(owner, name), Expects::Any);
            assert_eq!(put.unwrap().is_ok(), may, "{asker} {owner:?} {name}");
            if !may {
                let gone = store.remove_objects(&realm, Some(asker), vec![removed]).await.unwrap();
                assert_eq!(gone, Err((0, ObjectRefused::NotYours)), "{asker} {owner:?} {name}");
            }
        }
        // What it does not say stays as it was.
        store
            .put_objects(&realm, None, vec![new_object(Some("ada"), "locked", b"[]")], 8)
            .await
            .unwrap()
            .unwrap();
        let locked =
            store.objects(&realm, None, vec![key(Some("ada"), "locked")]).await.unwrap().pop().unwrap();
        assert_eq!((locked.writers, locked.body.as_slice()), (ObjectWriters::Server, &b"[]"[..]));
        let nobody =
            store.put_objects(&realm, None, vec![new_object(Some("cyd"), "a", b"")], 7).await.unwrap();
        assert_eq!(nobody, Err((0, ObjectRefused::NoAccount)));
    })
    .await;
}

#[tokio::test]
async fn threat_43_objects_have_quotas_and_end_with_their_account() {
    let limits = Limits { guest_bytes: 30_000, ..Limits::default() };
    on_each_with(Options { limits, ..Options::default() }, async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        let put = async |name: &str, size: usize| {
            store
                .put_objects(&realm, Some(&ada), vec![new_object(Some("ada"), name, &vec![0; size])], 7)
                .await
        };
        put("a", 20_000).await.unwrap().unwrap();
        let refused = put("b", 20_000).await;
        assert!(matches!(refused, Err(StoreError::Quota { .. })), "{refused:?}");
        // A smaller value makes room.
        put("a", 1_000).await.unwrap().unwrap();
        put("b", 20_000).await.unwrap().unwrap();
        let held = async || store.holding(&realm, Some(&ada)).await.unwrap().object_bytes;
        assert!((21_000..22_000).contains(&held().await), "{}", held().await);
        store
            .remove_objects(&realm, Some(&ada), vec![(key(Some("ada"), "b"), Expects::Any)])
            .await
            .unwrap()
            .unwrap();
        assert!(held().await < 2_000);
        let names: Vec<String> = (0..OBJECTS_MAX).map(|number| format!("n{number}")).collect();
        let mut refused = None;
        for part in names.chunks(OBJECT_BATCH_MAX) {
            let objects = part.iter().map(|name| new_object(None, name, b"")).collect();
            refused = store.put_objects(&realm, None, objects, 7).await.unwrap().err();
        }
        assert_eq!(refused, None);
        let one_more = store.put_objects(&realm, None, vec![new_object(None, "more", b"")], 7).await.unwrap();
        assert_eq!(one_more, Err((0, ObjectRefused::TooMany)));
        // A list has every object once.
        let (mut listed, mut after) = (0, None);
        loop {
            let page = store.objects_of(&realm, None, None, None, after.as_deref()).await.unwrap();
            listed += page.items.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, OBJECTS_MAX);
        store.delete_account(&realm, &ada).await.unwrap();
        assert_eq!(held().await, 0);
        assert_eq!(store.objects(&realm, None, vec![key(Some("ada"), "a")]).await.unwrap(), []);
    })
    .await;
}
