//! Saves in every store: versions, conflicts, versions before, quotas and deletion.

use crate::common::{account, account_id, on_each, on_each_with};
use parlor_server::realm::Realm;
use parlor_services::store::{
    Credential, CredentialKind, Limits, NewSave, Options, SaveInfo, SaveOutcome, Store, StoreError,
};
use parlor_social::limits::{BEFORE_EACH, SAVE_BYTES_MAX, SLOTS_MAX};
use parlor_social::{Name, Replaces, SaveRefused};
use std::collections::BTreeMap;

fn slot(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) fn new_save(name: &str, body: &[u8]) -> NewSave {
    NewSave {
        slot: slot(name),
        title: format!("Castle of {name}"),
        description: String::new(),
        device: "laptop".into(),
        body: body.to_vec(),
    }
}

async fn put(store: &Store, realm: &Realm, save: NewSave, replaces: Replaces) -> SaveOutcome {
    store.put_save(realm, &account_id("ada"), save, replaces, 7).await.expect("a write")
}

async fn done(store: &Store, realm: &Realm, save: NewSave, replaces: Replaces) -> SaveInfo {
    match put(store, realm, save, replaces).await {
        SaveOutcome::Done(info) => info,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn t4_a_save_is_replaced_only_by_who_has_read_it_and_what_it_was_stays() {
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        let first = done(&store, &realm, new_save("a", b"one"), Replaces::Nothing).await;
        assert_eq!((first.version, first.size, first.title.as_str()), (1, 3, "Castle of a"));
        // The same request again is done already, whatever it would replace.
        let again = put(&store, &realm, new_save("a", b"one"), Replaces::Nothing).await;
        assert_eq!(again, SaveOutcome::Same(first.clone()));
        let taken = put(&store, &realm, new_save("a", b"two"), Replaces::Nothing).await;
        assert_eq!(taken, SaveOutcome::Refused(SaveRefused::Taken, Some(first.clone())));
        let second = done(&store, &realm, new_save("a", b"two"), Replaces::Version(1)).await;
        let stale = put(&store, &realm, new_save("a", b"three"), Replaces::Version(1)).await;
        assert_eq!(stale, SaveOutcome::Refused(SaveRefused::Stale, Some(second.clone())));
        // Another slot has versions of the same count.
        assert_eq!(done(&store, &realm, new_save("b", b""), Replaces::Any).await.version, 3);
        let removed = store.remove_save(&realm, &ada, &slot("a"), Some(2), 9).await.unwrap();
        assert_eq!(removed, SaveOutcome::Done(SaveInfo { replaced_ms: Some(9), ..second.clone() }));
        let gone = store.remove_save(&realm, &ada, &slot("a"), None, 9).await.unwrap();
        assert_eq!(gone, SaveOutcome::Refused(SaveRefused::Empty, None));
        assert_eq!(store.save(&realm, &ada, &slot("a"), None).await.unwrap(), None);
        let (info, body) = store.save(&realm, &ada, &slot("a"), Some(1)).await.unwrap().expect("it was kept");
        assert_eq!((info.replaced_ms, body.as_slice()), (Some(7), &b"one"[..]));
        // Whoever has read the removed save does not write over the next one.
        assert_eq!(done(&store, &realm, new_save("a", b"four"), Replaces::Nothing).await.version, 4);
        let stale = put(&store, &realm, new_save("a", b"five"), Replaces::Version(2)).await;
        assert!(matches!(stale, SaveOutcome::Refused(SaveRefused::Stale, Some(_))), "{stale:?}");
        let before: Vec<u64> =
            store.saves_before(&realm, &ada, &slot("a")).await.unwrap().iter().map(|it| it.version).collect();
        assert_eq!(before, [2, 1]);
        let slots: Vec<(String, u64)> = store
            .saves(&realm, &ada)
            .await
            .unwrap()
            .into_iter()
            .map(|it| (it.slot.to_string(), it.version))
            .collect();
        assert_eq!(slots, [("a".to_owned(), 4), ("b".to_owned(), 3)]);
        // Nobody else has any of it.
        store.create_account(&realm, &account("bob"), None).await.unwrap();
        assert_eq!(store.saves(&realm, &account_id("bob")).await.unwrap(), []);
        assert_eq!(store.save(&realm, &account_id("bob"), &slot("a"), Some(4)).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn t4_slots_and_versions_before_are_bounded_and_a_deleted_account_holds_nothing() {
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        for number in 0..10_u8 {
            done(&store, &realm, new_save("s0", &[number; SAVE_BYTES_MAX]), Replaces::Any).await;
        }
        let before: Vec<u64> = store
            .saves_before(&realm, &ada, &slot("s0"))
            .await
            .unwrap()
            .iter()
            .map(|it| it.version)
            .collect();
        assert_eq!(before, [9, 8, 7, 6]);
        assert_eq!(before.len(), BEFORE_EACH);
        for number in 1..SLOTS_MAX {
            done(&store, &realm, new_save(&format!("s{number}"), b"x"), Replaces::Any).await;
        }
        let full = put(&store, &realm, new_save("more", b"x"), Replaces::Any).await;
        assert_eq!(full, SaveOutcome::Refused(SaveRefused::SlotsFull, None));
        // An export has every version once.
        let (mut versions, mut after) = (Vec::new(), None);
        loop {
            let page = store.saves_of(&realm, &ada, after).await.unwrap();
            versions.extend(page.items.iter().map(|(info, _)| info.version));
            let Some(next) = page.next else { break };
            after = Some(next.parse().unwrap());
        }
        assert_eq!(versions, (6..=25).collect::<Vec<_>>());
        let held = store.holding(&realm, Some(&ada)).await.unwrap().save_bytes;
        assert!((5 * SAVE_BYTES_MAX as u64..6 * SAVE_BYTES_MAX as u64).contains(&held), "{held}");
        for wrong in [
            NewSave { body: vec![0; SAVE_BYTES_MAX + 1], ..new_save("a", b"") },
            NewSave { title: "x".repeat(300), ..new_save("a", b"") },
            NewSave { device: "\0".into(), ..new_save("a", b"") },
        ] {
            let refused = store.put_save(&realm, &ada, wrong, Replaces::Any, 7).await;
            assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
        }
        store.delete_account(&realm, &ada).await.unwrap();
        assert_eq!(store.saves_of(&realm, &ada, None).await.unwrap().items, []);
        assert_eq!(store.holding(&realm, Some(&ada)).await.unwrap().save_bytes, 0);
        assert_eq!(store.holding(&realm, None).await.unwrap().save_bytes, 0);
        let late = store.put_save(&realm, &ada, new_save("a", b""), Replaces::Any, 7).await;
        assert_eq!(late, Err(StoreError::Missing { what: "account" }));
    })
    .await;
}

#[tokio::test]
async fn threat_43_a_guest_saves_less_until_it_links_a_way_to_sign_in() {
    let limits = Limits { guest_bytes: 20_000, save_bytes: 50_000, ..Limits::default() };
    on_each_with(Options { limits, ..Options::default() }, async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        let save = async |name: &str| {
            store.put_save(&realm, &ada, new_save(name, &[1; 15_000]), Replaces::Any, 7).await
        };
        save("a").await.unwrap();
        let refused = save("b").await;
        assert!(matches!(refused, Err(StoreError::Quota { .. })), "{refused:?}");
        assert_eq!(store.saves(&realm, &ada).await.unwrap().len(), 1, "a refused write leaves nothing");
        let device = Credential { kind: CredentialKind::Device, value: "d".into(), secret_hash: None };
        store.link_credential(&realm, &ada, &device).await.unwrap();
        save("b").await.unwrap();
        save("c").await.unwrap();
        assert!(matches!(save("d").await, Err(StoreError::Quota { .. })));
    })
    .await;
}

#[tokio::test]
async fn threat_27_of_sixteen_devices_one_saves_over_a_version_and_nothing_is_lost() {
    const DEVICES: u64 = 16;
    const VERSIONS: u64 = 100;
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let first = done(&store, &realm, new_save("s", b"first"), Replaces::Nothing).await;
        assert_eq!(first.version, 1);
        let devices: Vec<_> = (0..DEVICES)
            .map(|device| {
                let (store, realm) = (store.clone(), realm.clone());
                tokio::spawn(async move {
                    let (mut known, mut won) = (1, Vec::new());
                    while known < VERSIONS {
                        let body = format!("{known} by {device}");
                        let save = new_save("s", body.as_bytes());
                        match put(&store, &realm, save, Replaces::Version(known)).await {
                            SaveOutcome::Done(info) => {
                                assert_eq!(info.version, known + 1, "it replaced what it had not read");
                                won.push((info.version, body));
                                known = info.version;
                            }
                            SaveOutcome::Refused(SaveRefused::Stale, Some(current)) => {
                                assert!(current.version > known);
                                known = current.version;
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                    won
                })
            })
            .collect();
        let mut won = BTreeMap::new();
        for device in devices {
            for (version, body) in device.await.unwrap() {
                assert_eq!(won.insert(version, body), None, "version {version} was written twice");
            }
        }
        let newest = *won.keys().next_back().unwrap();
        assert_eq!(won.keys().copied().collect::<Vec<_>>(), (2..=newest).collect::<Vec<_>>());
        for version in newest - BEFORE_EACH as u64..=newest {
            let found = store.save(&realm, &account_id("ada"), &slot("s"), Some(version)).await.unwrap();
            let (_, body) = found.expect("it is kept");
            assert_eq!(body, won[&version].as_bytes());
        }
    })
    .await;
}
