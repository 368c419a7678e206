//! The contract of every store, on any database.

use crate::common::{account, account_id, fresh_realm, new_room, notice, notices, on_each, room_id, state};
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_services::store::{
    Ban, Credential, CredentialKind, Effects, EndedSignIn, INBOX_MAX, NewWebhook, OUTBOX_MAX, Role,
    RoomListing, RoomNow, Rotated, Rotation, SIGN_INS_MAX, SignIn, SignInId, Store, StoreError,
};

fn device(value: &str) -> Credential {
    Credential { kind: CredentialKind::Device, value: value.to_owned(), secret_hash: None }
}

fn email(value: &str, hash: &str) -> Credential {
    Credential { kind: CredentialKind::Email, value: value.to_owned(), secret_hash: Some(hash.to_owned()) }
}

#[tokio::test]
async fn an_account_is_found_by_its_id_and_by_its_credentials() {
    on_each(async |store, realm| {
        let ada = account("ada");
        store.create_account(&realm, &ada, Some(&device("phone"))).await.unwrap();
        assert_eq!(store.account(&realm, &ada.id).await.unwrap(), Some(ada.clone()));
        assert_eq!(store.account(&realm, &account_id("bob")).await.unwrap(), None);
        let owner = store.credential_owner(&realm, CredentialKind::Device, "phone").await.unwrap().unwrap();
        assert_eq!((owner.account, owner.secret_hash), (ada.clone(), None));
        assert_eq!(store.credential_owner(&realm, CredentialKind::Custom, "phone").await.unwrap(), None);

        let again = store.create_account(&realm, &ada, None).await;
        assert_eq!(again, Err(StoreError::Taken { what: "account's id" }));
        // A credential that is taken takes the account with it.
        let bob = store.create_account(&realm, &account("bob"), Some(&device("phone"))).await;
        assert_eq!(bob, Err(StoreError::Taken { what: "credential" }));
        assert_eq!(store.account(&realm, &account_id("bob")).await.unwrap(), None);

        store.rename_account(&realm, &ada.id, "Countess \u{1f451}").await.unwrap();
        store.set_role(&realm, &ada.id, Role::Admin).await.unwrap();
        let changed = store.account(&realm, &ada.id).await.unwrap().unwrap();
        assert_eq!((changed.display_name.as_str(), changed.role), ("Countess \u{1f451}", Role::Admin));
        let missing = store.set_role(&realm, &account_id("bob"), Role::Admin).await;
        assert_eq!(missing, Err(StoreError::Missing { what: "account" }));
    })
    .await;
}

#[tokio::test]
async fn credentials_are_linked_and_unlinked_but_for_the_last() {
    on_each(async |store, realm| {
        let ada = account_id("ada");
        store.create_account(&realm, &account("ada"), Some(&device("phone"))).await.unwrap();
        store.create_account(&realm, &account("bob"), None).await.unwrap();
        store.link_credential(&realm, &ada, &email("ada@example.com", "first")).await.unwrap();
        store.link_credential(&realm, &ada, &email("ada@example.com", "second")).await.unwrap();
        let owner = store.credential_owner(&realm, CredentialKind::Email, "ada@example.com").await.unwrap();
        assert_eq!(owner.unwrap().secret_hash.as_deref(), Some("second"));
        let stolen =
            store.link_credential(&realm, &account_id("bob"), &email("ada@example.com", "mine")).await;
        assert_eq!(stolen, Err(StoreError::Taken { what: "credential" }));
        let nobody = store.link_credential(&realm, &account_id("eve"), &device("x")).await;
        assert_eq!(nobody, Err(StoreError::Missing { what: "account" }));

        store.unlink_credential(&realm, &ada, CredentialKind::Device, "phone").await.unwrap();
        let gone = store.unlink_credential(&realm, &ada, CredentialKind::Device, "phone").await;
        assert_eq!(gone, Err(StoreError::Missing { what: "credential of this account" }));
        let last = store.unlink_credential(&realm, &ada, CredentialKind::Email, "ada@example.com").await;
        assert_eq!(last, Err(StoreError::LastCredential));
        let left = store.credentials(&realm, &ada).await.unwrap();
        assert_eq!(left, [(CredentialKind::Email, "ada@example.com".to_owned())]);
    })
    .await;
}

fn sign_in(id: u64, token: u8, now_ms: u64) -> SignIn {
    SignIn {
        id: SignInId::new(&format!("sign-in-{id}")).expect("an id"),
        account: account_id("ada"),
        token_hash: [token; 32],
        now_ms,
        expires_ms: now_ms + 1000,
    }
}

fn rotation(id: u64, presented: u8, next: u8, now_ms: u64, grace_ms: u64) -> Rotation {
    Rotation {
        sign_in: sign_in(id, 0, 0).id,
        presented_hash: [presented; 32],
        next_hash: [next; 32],
        now_ms,
        expires_ms: now_ms + 1000,
        grace_ms,
    }
}

#[tokio::test]
async fn threat_49_a_token_that_is_used_twice_ends_the_sign_in() {
    on_each(async |store, realm| {
        let ada = account("ada");
        store.create_account(&realm, &ada, None).await.unwrap();
        let rotate = async |rotation| store.rotate_token(&realm, &rotation).await.unwrap();
        store.begin_sign_in(&realm, &sign_in(1, 1, 100)).await.unwrap();
        assert_eq!(rotate(rotation(1, 1, 2, 200, 0)).await, Rotated::Next(ada.clone()));
        assert_eq!(rotate(rotation(1, 2, 3, 300, 0)).await, Rotated::Next(ada.clone()));
        assert_eq!(rotate(rotation(1, 2, 4, 300, 0)).await, Rotated::Reused(ada.id.clone()));
        // Over for both: the one with the good token and the one with the used one.
        assert_eq!(rotate(rotation(1, 3, 5, 300, 0)).await, Rotated::Unknown);

        store.begin_sign_in(&realm, &sign_in(2, 1, 100)).await.unwrap();
        assert_eq!(rotate(rotation(2, 1, 2, 1100, 0)).await, Rotated::Unknown, "it is good until 1100");
        store.begin_sign_in(&realm, &sign_in(3, 1, 100)).await.unwrap();
        store.begin_sign_in(&realm, &sign_in(4, 1, 100)).await.unwrap();
        let end = async |secret: u8| {
            store.end_sign_in(&realm, &sign_in(3, 1, 100).id, &[secret; 32]).await.unwrap()
        };
        assert_eq!(rotate(rotation(3, 1, 2, 200, 0)).await, Rotated::Next(ada.clone()));
        // Its id alone ends no sign-in; the newest token and the one before do.
        assert_eq!(end(9).await, EndedSignIn::OtherToken);
        assert_eq!(rotate(rotation(3, 2, 3, 200, 0)).await, Rotated::Next(ada.clone()));
        assert_eq!(end(1).await, EndedSignIn::OtherToken, "it is older than the one before");
        assert_eq!(end(2).await, EndedSignIn::Ended(ada.id.clone()));
        assert_eq!(end(3).await, EndedSignIn::Unknown);
        assert_eq!(rotate(rotation(3, 1, 2, 200, 0)).await, Rotated::Unknown);
        assert_eq!(rotate(rotation(4, 1, 2, 200, 0)).await, Rotated::Next(ada.clone()));
        store.end_sign_ins_of(&realm, &ada.id).await.unwrap();
        assert_eq!(rotate(rotation(4, 2, 3, 200, 0)).await, Rotated::Unknown);
    })
    .await;
}

#[tokio::test]
async fn threat_54_an_answer_that_was_lost_ends_no_sign_in() {
    on_each(async |store, realm| {
        let ada = account("ada");
        store.create_account(&realm, &ada, None).await.unwrap();
        let rotate = async |rotation| store.rotate_token(&realm, &rotation).await.unwrap();
        store.begin_sign_in(&realm, &sign_in(1, 1, 100)).await.unwrap();
        assert_eq!(rotate(rotation(1, 1, 2, 200, 50)).await, Rotated::Next(ada.clone()));
        // Token 2 never arrived, so 1 is presented again, until the grace is over.
        assert_eq!(rotate(rotation(1, 1, 2, 220, 50)).await, Rotated::Next(ada.clone()));
        assert_eq!(rotate(rotation(1, 2, 4, 230, 50)).await, Rotated::Next(ada.clone()));
        // Its successor was used: who has 1 is not who was waiting for an answer.
        assert_eq!(rotate(rotation(1, 1, 2, 231, 50)).await, Rotated::Reused(ada.id.clone()));

        for (id, at, is_late) in [(2, 249, false), (3, 250, true)] {
            store.begin_sign_in(&realm, &sign_in(id, 1, 100)).await.unwrap();
            assert_eq!(rotate(rotation(id, 1, 2, 200, 50)).await, Rotated::Next(ada.clone()));
            // However often it is presented, the grace is not longer.
            assert_eq!(rotate(rotation(id, 1, 2, 240, 50)).await, Rotated::Next(ada.clone()));
            let expected = if is_late { Rotated::Reused(ada.id.clone()) } else { Rotated::Next(ada.clone()) };
            assert_eq!(rotate(rotation(id, 1, 2, at, 50)).await, expected, "at {at}");
        }
    })
    .await;
}

#[tokio::test]
async fn sign_ins_of_an_account_are_bounded() {
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        for id in 0..SIGN_INS_MAX + 2 {
            store.begin_sign_in(&realm, &sign_in(id, 1, 100 + id)).await.unwrap();
        }
        for id in 0..SIGN_INS_MAX + 2 {
            let rotated = store.rotate_token(&realm, &rotation(id, 1, 2, 200, 0)).await.unwrap();
            assert_eq!(matches!(rotated, Rotated::Next(_)), id >= 2, "sign-in {id}: {rotated:?}");
        }
        let taken = store.begin_sign_in(&realm, &sign_in(3, 1, 300)).await;
        assert_eq!(taken, Err(StoreError::Taken { what: "sign-in's id" }));
    })
    .await;
}

#[tokio::test]
async fn a_room_goes_from_version_to_version_and_nothing_of_a_stale_commit_stays() {
    on_each(async |store, realm| {
        let mut first = new_room("r1", state(1, "{}", &["ada"]));
        first.code = Some("ABCDEF".to_owned());
        let sent = store.put_room(&realm, first.clone(), notices(vec![notice("ada", "made")])).await.unwrap();
        assert_eq!(sent, [1]);
        let id = room_id("r1");
        let loaded = store.load_room(&realm, &id).await.unwrap().unwrap();
        assert_eq!((loaded.state, loaded.code.as_deref()), (first.state.clone(), Some("ABCDEF")));
        assert_eq!(store.room_by_code(&realm, "ABCDEF").await.unwrap(), Some(id.clone()));

        let again = store.put_room(&realm, first.clone(), notices(vec![notice("ada", "twice")])).await;
        assert_eq!(again, Err(StoreError::Taken { what: "room's id" }));
        let same_code = crate::common::new_room("r2", state(1, "{}", &[]));
        let same_code = parlor_services::store::NewRoom { code: first.code.clone(), ..same_code };
        let again = store.put_room(&realm, same_code, Effects::default()).await;
        assert_eq!(again, Err(StoreError::Taken { what: "room's code" }));

        let mut next = state(2, "{\"n\":2}", &["bob", "ada"]);
        next.deadline_ms = Some(77);
        let effects = notices(vec![notice("ada", "two"), notice("bob", "two")]);
        let sent = store.commit_room(&realm, &id, 1, next.clone(), effects.clone()).await.unwrap();
        assert_eq!(sent, [2, 1]);
        let stale = store.commit_room(&realm, &id, 1, state(2, "mine", &["eve"]), effects.clone()).await;
        assert_eq!(stale, Err(StoreError::Stale { current: 2 }));
        let loaded = store.load_room(&realm, &id).await.unwrap().unwrap();
        assert_eq!(loaded.state, next);
        assert_eq!(store.load_newer_room(&realm, &id, 2).await, Ok(RoomNow::Known));
        assert_eq!(store.load_newer_room(&realm, &id, 1).await, Ok(RoomNow::Newer(loaded)));
        assert_eq!(store.load_newer_room(&realm, &room_id("r9"), 1).await, Ok(RoomNow::Gone));
        assert_eq!(store.read_inbox(&realm, &account_id("ada"), 0, 10).await.unwrap().newest, 2);
        let missing = store.commit_room(&realm, &room_id("r9"), 1, state(2, "", &[]), effects).await;
        assert_eq!(missing, Err(StoreError::Missing { what: "room" }));
        let backwards = store.commit_room(&realm, &id, 2, state(2, "", &[]), Effects::default()).await;
        assert!(matches!(backwards, Err(StoreError::Invalid { .. })), "{backwards:?}");
    })
    .await;
}

fn ids(rooms: &[RoomListing]) -> Vec<&str> {
    rooms.iter().map(|room| room.id.as_str()).collect()
}

#[tokio::test]
async fn rooms_are_listed_in_pages() {
    on_each(async |store, realm| {
        for number in 0..7_u64 {
            let mut room = new_room(&format!("r{number}"), state(1, "", &["ada"]));
            room.created_ms = 10 - number / 2;
            room.state.joinable = number != 3;
            if number == 6 {
                room.game = "chess".to_owned();
            }
            store.put_room(&realm, room, Effects::default()).await.unwrap();
        }
        let first = store.joinable_rooms(&realm, "draughts", None, None, 2).await.unwrap();
        assert_eq!(ids(&first.items), ["r1", "r0"]);
        let next = first.next.unwrap();
        let second = store.joinable_rooms(&realm, "draughts", None, Some(&next), 3).await.unwrap();
        assert_eq!((ids(&second.items), second.next), (vec!["r2", "r5", "r4"], None));

        store
            .commit_room(&realm, &room_id("r5"), 1, state(2, "", &["bob"]), Effects::default())
            .await
            .unwrap();
        let of_ada = store.rooms_of(&realm, &account_id("ada"), None, 100).await.unwrap();
        assert_eq!(ids(&of_ada.items), ["r6", "r4", "r2", "r3", "r0", "r1"]);
        let of_bob = store.rooms_of(&realm, &account_id("bob"), None, 100).await.unwrap();
        assert_eq!((ids(&of_bob.items), of_bob.items[0].version), (vec!["r5"], 2));
        let all = store.all_rooms(&realm, None, 4).await.unwrap();
        let rest = store.all_rooms(&realm, all.next.as_deref(), 4).await.unwrap();
        assert_eq!((all.items.len(), ids(&rest.items), rest.next), (4, vec!["r3", "r0", "r1"], None));
        let nonsense = store.joinable_rooms(&realm, "draughts", None, Some("nonsense"), 4).await;
        assert!(matches!(nonsense, Err(StoreError::Invalid { .. })), "{nonsense:?}");
    })
    .await;
}

#[tokio::test]
async fn a_room_is_due_at_its_deadline_until_a_commit_moves_it() {
    on_each(async |store, realm| {
        let due = async |now_ms| {
            let due = store.due_rooms(now_ms, 1000).await.unwrap();
            let ours = due.into_iter().filter(|due| due.realm == realm);
            ours.map(|due| (due.room.to_string(), due.deadline_ms)).collect::<Vec<_>>()
        };
        for (id, deadline_ms) in [("late", Some(4)), ("early", Some(2)), ("never", None)] {
            let mut room = new_room(id, state(1, "", &[]));
            room.state.deadline_ms = deadline_ms;
            store.put_room(&realm, room, Effects::default()).await.unwrap();
        }
        assert_eq!(due(1).await, []);
        assert_eq!(due(4).await, [("early".to_owned(), 2), ("late".to_owned(), 4)]);
        assert_eq!(store.next_deadline(0).await.unwrap(), Some(2));
        store.commit_room(&realm, &room_id("early"), 1, state(2, "", &[]), Effects::default()).await.unwrap();
        assert_eq!(due(4).await, [("late".to_owned(), 4)]);
    })
    .await;
}

async fn fill_inbox(store: &Store, realm: &Realm, from: u64, to: u64) {
    for version in from..=to {
        let effects = notices(vec![notice("ada", &format!("{version}"))]);
        let state = state(version, "", &[]);
        store.commit_room(realm, &room_id("r1"), version - 1, state, effects).await.expect("a commit");
    }
}

#[tokio::test]
async fn an_inbox_is_read_in_order_and_forgets_what_is_acknowledged() {
    on_each(async |store, realm| {
        let ada = account_id("ada");
        assert_eq!(store.read_inbox(&realm, &ada, 0, 10).await.unwrap().newest, 0);
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        fill_inbox(&store, &realm, 2, 11).await;
        let inbox = store.read_inbox(&realm, &ada, 3, 4).await.unwrap();
        assert_eq!(inbox.notices.iter().map(|notice| notice.seq).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert_eq!(
            (inbox.notices[0].body.as_slice(), inbox.notices[0].kind.as_str()),
            (&b"5"[..], "your_turn")
        );
        store.acknowledge(&realm, &ada, 6).await.unwrap();
        store.acknowledge(&realm, &ada, 2).await.unwrap();
        let inbox = store.read_inbox(&realm, &ada, 0, 100).await.unwrap();
        assert_eq!((inbox.notices[0].seq, inbox.notices.len(), inbox.newest, inbox.dropped), (7, 4, 10, 0));
        // What is not there yet cannot be acknowledged.
        store.acknowledge(&realm, &ada, 1_000_000).await.unwrap();
        fill_inbox(&store, &realm, 12, 12).await;
        let inbox = store.read_inbox(&realm, &ada, 0, 100).await.unwrap();
        assert_eq!((inbox.notices.len(), inbox.newest), (1, 11));
        assert_eq!(
            store.read_inbox(&realm, &ada, 11, 100).await.unwrap().newest,
            11,
            "also when nothing is left"
        );
    })
    .await;
}

#[tokio::test]
async fn an_inbox_is_bounded_and_counts_what_went() {
    on_each(async |store, realm| {
        let ada = account_id("ada");
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        fill_inbox(&store, &realm, 2, INBOX_MAX + 4).await;
        let inbox = store.read_inbox(&realm, &ada, 0, 1000).await.unwrap();
        assert_eq!((inbox.notices.len() as u64, inbox.dropped, inbox.notices[0].seq), (INBOX_MAX, 3, 4));
        store.acknowledge(&realm, &ada, 10).await.unwrap();
        fill_inbox(&store, &realm, INBOX_MAX + 5, INBOX_MAX + 11).await;
        let inbox = store.read_inbox(&realm, &ada, 0, 1000).await.unwrap();
        assert_eq!((inbox.notices.len() as u64, inbox.dropped, inbox.notices[0].seq), (INBOX_MAX, 3, 11));
    })
    .await;
}

#[tokio::test]
async fn notices_of_one_commit_are_numbered_in_order_in_each_inbox() {
    on_each(async |store, realm| {
        let (ada, bob) = (account_id("ada"), account_id("bob"));
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        let (mut of_ada, mut of_bob) = (0, 0);
        for version in 2..=102 {
            let to = ["ada", "bob", "ada", "ada", "bob", "ada", "ada"];
            let told = to.map(|to| notice(to, &format!("{version}")));
            let commit = (state(version, "", &[]), notices(told.to_vec()));
            let numbers =
                store.commit_room(&realm, &room_id("r1"), version - 1, commit.0, commit.1).await.unwrap();
            let (a, b) = (of_ada, of_bob);
            assert_eq!(numbers, [a + 1, b + 1, a + 2, a + 3, b + 2, a + 4, a + 5]);
            (of_ada, of_bob) = (of_ada + 5, of_bob + 2);
        }
        for (player, newest) in [(&ada, of_ada), (&bob, of_bob)] {
            let inbox = store.read_inbox(&realm, player, 0, 1000).await.unwrap();
            let oldest = newest.saturating_sub(INBOX_MAX) + 1;
            let numbers: Vec<u64> = inbox.notices.iter().map(|notice| notice.seq).collect();
            assert_eq!(numbers, (oldest..=newest).collect::<Vec<_>>());
            assert_eq!((inbox.newest, inbox.dropped), (newest, oldest - 1));
        }
        // More at once than an inbox has, for somebody who has one and for somebody who has none.
        let flood = |to: &str| (0..INBOX_MAX + 20).map(|_| notice(to, "flood")).collect::<Vec<_>>();
        let told = notices([flood("ada"), flood("cyd")].concat());
        store.commit_room(&realm, &room_id("r1"), 102, state(103, "", &[]), told).await.unwrap();
        for (player, newest) in [(ada, of_ada + INBOX_MAX + 20), (account_id("cyd"), INBOX_MAX + 20)] {
            let inbox = store.read_inbox(&realm, &player, 0, 1000).await.unwrap();
            assert_eq!((inbox.notices.len() as u64, inbox.newest), (INBOX_MAX, newest));
            assert_eq!((inbox.notices[0].seq, inbox.dropped), (newest - INBOX_MAX + 1, newest - INBOX_MAX));
        }
    })
    .await;
}

fn webhook(body: &str, due_ms: u64) -> NewWebhook {
    let (target, body) = ("https://example.com/hook".to_owned(), body.as_bytes().to_vec());
    NewWebhook { target, body, due_ms, is_beyond_share: false }
}

#[tokio::test]
async fn a_call_is_owed_until_it_is_done() {
    on_each(async |store, realm| {
        let webhooks = vec![webhook("b", 3), webhook("a", 2), webhook("later", 1_000)];
        let effects = Effects { webhooks, ..Effects::default() };
        store.put_room(&realm, new_room("r1", state(1, "", &[])), effects).await.unwrap();
        let due = async |now_ms| {
            let due = store.claim_webhooks(now_ms, now_ms, 1000).await.unwrap();
            let mut due: Vec<_> = due.into_iter().filter(|due| due.realm == realm).collect();
            due.sort_by(|one, other| one.body.cmp(&other.body));
            due
        };
        let owed = due(5).await;
        assert_eq!(owed.iter().map(|owed| owed.body.as_slice()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!((owed[0].attempts, owed[0].due_ms), (0, 5));
        store.webhook_done(&realm, owed[1].id).await.unwrap();
        store.webhook_done(&realm, owed[1].id).await.unwrap();
        store.webhook_retry(&owed[0], 50).await.unwrap();
        assert_eq!(due(49).await, []);
        assert_eq!(due(50).await[0].attempts, 1);
        // Another realm's outbox is not touched from here.
        store.webhook_done(&fresh_realm(), owed[0].id).await.unwrap();
        assert_eq!(due(50).await.len(), 1);
        let outbox = store.outbox(&realm).await.unwrap();
        assert_eq!((outbox.waiting, outbox.dropped), (2, 0));
    })
    .await;
}

#[tokio::test]
async fn a_claimed_call_is_nobody_elses_until_its_time() {
    on_each(async |store, realm| {
        let webhooks = (0..20).map(|number| webhook(&number.to_string(), 1)).collect();
        let effects = Effects { webhooks, ..Effects::default() };
        store.put_room(&realm, new_room("r1", state(1, "", &[])), effects).await.unwrap();
        let claim = async |now_ms, limit| {
            let claimed = store.claim_webhooks(now_ms, now_ms + 15, limit).await.unwrap();
            claimed.into_iter().filter(|claimed| claimed.realm == realm).collect::<Vec<_>>()
        };
        let (first, second, third) = tokio::join!(claim(5, 8), claim(5, 8), claim(5, 8));
        let mut ids: Vec<u64> = [&first, &second, &third].into_iter().flatten().map(|it| it.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20, "each of them once");
        assert!(!store.are_webhooks_due(19).await.unwrap() && claim(19, 8).await.is_empty());
        // Who claimed it first is too late, and counts nothing.
        let again = claim(20, 8).await;
        let late = first.iter().find(|early| again.iter().any(|again| again.id == early.id));
        let late = late.expect("the longest overdue come first");
        store.webhook_retry(late, 21).await.unwrap();
        assert_eq!(claim(30, 1_000).await.iter().filter(|claimed| claimed.id == late.id).count(), 0);
        let later = claim(35, 8).await;
        assert!(later.iter().all(|claimed| claimed.attempts == 0), "{later:?}");
    })
    .await;
}

#[tokio::test]
async fn a_lock_has_one_holder_at_a_time() {
    on_each(async |store, realm| {
        let name = format!("of {}", realm.app());
        let take = async |holder, millis| {
            store.take_lock(&name, holder, Duration::from_millis(millis)).await.unwrap()
        };
        assert!(take("a", 60_000).await);
        assert!(!take("b", 60_000).await);
        store.release_lock(&name, "b").await.unwrap();
        assert!(!take("b", 60_000).await, "who does not have it gives nothing back");
        // The holder may shorten it too: it is over at once.
        assert!(take("a", 0).await && take("b", 60_000).await);
        assert!(!take("a", 60_000).await);
        store.release_lock(&name, "b").await.unwrap();
        assert!(take("a", 60_000).await);
        assert!(store.clock_us().await.unwrap() > 1_600_000_000_000_000);
    })
    .await;
}

#[tokio::test]
async fn an_outbox_is_bounded_and_counts_what_went() {
    on_each(async |store, realm| {
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        let mut version = 1;
        let mut owed = 0;
        while owed < OUTBOX_MAX + 5 {
            let count = (OUTBOX_MAX + 5 - owed).min(1000);
            let webhooks = (owed..owed + count).map(|number| webhook(&number.to_string(), 1)).collect();
            let effects = Effects { webhooks, ..Effects::default() };
            store
                .commit_room(&realm, &room_id("r1"), version, state(version + 1, "", &[]), effects)
                .await
                .unwrap();
            (version, owed) = (version + 1, owed + count);
        }
        let outbox = store.outbox(&realm).await.unwrap();
        assert_eq!((outbox.waiting, outbox.dropped), (OUTBOX_MAX, 5));
        let due = store.claim_webhooks(1, 1, 1000).await.unwrap();
        let first = due.into_iter().filter(|due| due.realm == realm).min_by_key(|due| due.id).unwrap();
        assert_eq!(first.body, b"5", "the oldest went");
    })
    .await;
}

#[tokio::test]
async fn a_ban_ends_sign_ins_and_lasts_until_its_time() {
    on_each(async |store, realm| {
        let ada = account_id("ada");
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        store.begin_sign_in(&realm, &sign_in(1, 1, 100)).await.unwrap();
        let by = || "root".to_owned();
        let ban = Ban { account: ada.clone(), reason: "spam".into(), by: by(), at_ms: 5, until_ms: Some(10) };
        store.ban(&realm, &ban).await.unwrap();
        let rotated = store.rotate_token(&realm, &rotation(1, 1, 2, 200, 0)).await.unwrap();
        assert_eq!(rotated, Rotated::Unknown);
        assert_eq!(store.ban_of(&realm, &ada, 9).await.unwrap(), Some(ban.clone()));
        assert_eq!(store.ban_of(&realm, &ada, 10).await.unwrap(), None);
        let for_ever = Ban { until_ms: None, ..ban.clone() };
        store.ban(&realm, &for_ever).await.unwrap();
        assert_eq!(store.ban_of(&realm, &ada, u64::MAX).await.unwrap(), Some(for_ever.clone()));
        store.ban(&realm, &Ban { account: account_id("bob"), ..ban.clone() }).await.unwrap();
        let all = store.bans(&realm, None, 10).await.unwrap().items;
        assert_eq!((all.len(), &all[0]), (2, &for_ever));
        assert_eq!(store.bans(&realm, Some(&ada), 10).await.unwrap().items[0].account, account_id("bob"));
        store.lift_ban(&realm, &ada).await.unwrap();
        assert_eq!(store.ban_of(&realm, &ada, 9).await.unwrap(), None);
        assert_eq!(store.lift_ban(&realm, &ada).await, Err(StoreError::Missing { what: "ban" }));
    })
    .await;
}

#[tokio::test]
async fn the_first_secret_of_a_name_is_kept() {
    on_each(async |store, realm| {
        let name = format!("key of {}", realm.app());
        assert_eq!(store.keep_secret(&name, b"first").await.unwrap(), b"first");
        assert_eq!(store.keep_secret(&name, b"second").await.unwrap(), b"first");
    })
    .await;
}

#[tokio::test]
async fn r9_realms_do_not_see_each_other() {
    on_each(async |store, realm| {
        let other = Realm::new(realm.app(), "production").unwrap();
        let ada = account_id("ada");
        store.create_account(&realm, &account("ada"), Some(&device("phone"))).await.unwrap();
        store.begin_sign_in(&realm, &sign_in(1, 1, 100)).await.unwrap();
        let mut room = new_room("r1", state(1, "", &["ada"]));
        room.code = Some("ABCDEF".to_owned());
        store.put_room(&realm, room.clone(), notices(vec![notice("ada", "hello")])).await.unwrap();
        let ban =
            Ban { account: ada.clone(), reason: String::new(), by: String::new(), at_ms: 5, until_ms: None };
        store.ban(&realm, &ban).await.unwrap();

        assert_eq!(store.account(&other, &ada).await.unwrap(), None);
        assert_eq!(store.credential_owner(&other, CredentialKind::Device, "phone").await.unwrap(), None);
        assert_eq!(store.credentials(&other, &ada).await.unwrap(), []);
        assert_eq!(store.load_room(&other, &room.id).await.unwrap(), None);
        assert_eq!(store.room_by_code(&other, "ABCDEF").await.unwrap(), None);
        assert_eq!(store.joinable_rooms(&other, "draughts", None, None, 10).await.unwrap().items, []);
        assert_eq!(store.all_rooms(&other, None, 10).await.unwrap().items, []);
        assert_eq!(store.rooms_of(&other, &ada, None, 10).await.unwrap().items, []);
        assert_eq!(store.read_inbox(&other, &ada, 0, 10).await.unwrap().notices, []);
        assert_eq!(store.ban_of(&other, &ada, 9).await.unwrap(), None);
        assert_eq!(store.bans(&other, None, 9).await.unwrap().items, []);
        let rotated = store.rotate_token(&other, &rotation(1, 1, 2, 200, 0)).await.unwrap();
        assert_eq!(rotated, Rotated::Unknown);
        let commit = store.commit_room(&other, &room.id, 1, state(2, "", &[]), Effects::default()).await;
        assert_eq!(commit, Err(StoreError::Missing { what: "room" }));
        // The same names are free there.
        store.create_account(&other, &account("ada"), Some(&device("phone"))).await.unwrap();
        store.put_room(&other, room.clone(), Effects::default()).await.unwrap();
        store.acknowledge(&other, &ada, 10).await.unwrap();
        assert_eq!(store.read_inbox(&realm, &ada, 0, 10).await.unwrap().notices.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_can_never_be_stored_is_refused_by_name() {
    on_each(async |store, realm| {
        for id in ["", "a\nb", "a\0b", &"x".repeat(65)] {
            let refused = parlor_services::store::AccountId::new(id).map_err(StoreError::from);
            assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{id:?}");
        }
        assert!(Realm::new("a/b", "c").is_err());
        let mut zero = account("ada");
        zero.display_name = "\0".to_owned();
        let refused = store.create_account(&realm, &zero, None).await.unwrap_err().to_string();
        assert!(refused.contains("display name"), "{refused}");
        let mut large = state(1, "", &[]);
        large.document = vec![0; parlor_services::store::DOCUMENT_BYTES_MAX + 1];
        let refused = store.put_room(&realm, new_room("r1", large), Effects::default()).await;
        assert!(refused.unwrap_err().to_string().contains("document"));
        // Whatever an SQL injection looks like, it is a name.
        let bobby = "Robert'); DROP TABLE accounts;--";
        store.create_account(&realm, &account(bobby), Some(&device(bobby))).await.unwrap();
        assert_eq!(store.account(&realm, &account_id(bobby)).await.unwrap(), Some(account(bobby)));
    })
    .await;
}
