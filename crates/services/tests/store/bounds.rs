//! Limits, quotas and retention times of a store.

use crate::common::{
    account, account_id, fresh_realm, new_room, notices, on_each, on_each_with, open_in, room_id, state,
};
use parlor_server::realm::Realm;
use parlor_services::store::{
    Appended, CREDENTIALS_MAX, CUT_QUOTA, CommitKind, Credential, CredentialKind, DATA_MIN, Durability,
    Effects, Limits, MatchEntry, NewMatch, NewNotice, NewWebhook, OUTBOX_BYTES_MAX, OUTBOX_MAX, Options,
    RoomLife, SignIn, SignInId, Store, StoreError, Unseen,
};
use std::sync::Arc;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn limited(limits: Limits) -> Options {
    Options { limits, ..Options::default() }
}

fn life(owner: &str, is_open: bool, until_ms: u64) -> RoomLife {
    RoomLife { owner: Some(account_id(owner)), is_open, until_ms }
}

fn alive(life: RoomLife) -> Effects {
    Effects { life: Some(life), ..Effects::default() }
}

/// The same notice for many.
fn told(players: usize, body: &str) -> Vec<NewNotice> {
    let body: Arc<[u8]> = body.as_bytes().into();
    let to = |player: usize| account_id(&format!("p{player}"));
    let notice =
        |player| NewNotice { to: to(player), kind: "moved".into(), body: Arc::clone(&body), at_ms: 9 };
    (0..players).map(notice).collect()
}

#[tokio::test]
async fn threat_43_a_move_that_64_are_told_is_stored_once() {
    const MOVES: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let (store, realm) = (open_in(folder.path(), Options::default()).await, fresh_realm());
    store.put_room(&realm, new_room("r1", state(1, "", &["p0"])), Effects::default()).await.unwrap();
    let body = "m".repeat(60_000);
    for version in 2..2 + MOVES {
        let effects = notices(told(64, &body));
        store
            .commit_room(&realm, &room_id("r1"), version - 1, state(version, "", &["p0"]), effects)
            .await
            .unwrap();
    }
    // The newest 1 MiB of a room's events is kept, however many there were.
    let bytes = store.counters().bytes;
    store
        .commit_room(&realm, &room_id("r1"), 1 + MOVES, state(2 + MOVES, "", &["p0"]), Effects::default())
        .await
        .unwrap();
    assert!(bytes < 4 << 20, "{bytes} bytes for {} of moves", MOVES * 60_000);
    // In pages, each of which ends early: the bodies are long.
    let (mut read, mut dropped, mut after) = (0, 0, 0);
    while after < MOVES {
        let inbox = store.read_inbox(&realm, &account_id("p63"), after, 1_000).await.unwrap();
        assert_eq!(inbox.newest, MOVES);
        assert!(inbox.notices.iter().all(|notice| notice.body == body.as_bytes()));
        (read, dropped) = (read + inbox.notices.len() as u64, dropped + inbox.dropped);
        after = inbox.notices.last().expect("each page has one").seq;
    }
    assert!(read >= 10, "{read}");
    assert_eq!(read + dropped, MOVES, "what is gone is counted");
    // And stays counted once the rest is acknowledged.
    store.acknowledge(&realm, &account_id("p63"), MOVES).await.unwrap();
    let after = store.read_inbox(&realm, &account_id("p63"), 0, 10).await.unwrap();
    assert_eq!((after.notices.len(), after.dropped), (0, dropped));
}

#[tokio::test]
async fn what_a_room_tells_is_read_whether_it_stands_in_the_inbox_or_beside_it() {
    on_each(async |store, realm| {
        store.put_room(&realm, new_room("r1", state(1, "", &["p0"])), Effects::default()).await.unwrap();
        let (small, large) = ("s".repeat(100), "l".repeat(5_000));
        let mut both = told(3, &large);
        both.extend(told(2, &small));
        store.commit_room(&realm, &room_id("r1"), 1, state(2, "", &["p0"]), notices(both)).await.unwrap();
        let bodies = async |player: &str| {
            let inbox = store.read_inbox(&realm, &account_id(player), 0, 10).await.unwrap();
            let sizes: Vec<usize> = inbox.notices.iter().map(|notice| notice.body.len()).collect();
            (sizes, inbox.dropped)
        };
        assert_eq!(bodies("p0").await, (vec![5_000, 100], 0));
        assert_eq!(bodies("p2").await, (vec![5_000], 0));
        store.delete_room(&realm, &room_id("r1")).await.unwrap();
        assert_eq!(bodies("p0").await, (vec![100], 1), "it went with its room");
        store.acknowledge(&realm, &account_id("p0"), 2).await.unwrap();
        assert_eq!(bodies("p0").await, (vec![], 1));
        let again = store.delete_room(&realm, &room_id("r1")).await;
        assert_eq!(again, Err(StoreError::Missing { what: "room" }));
    })
    .await;
}

#[tokio::test]
async fn threat_43_a_full_store_refuses_by_name_and_deleting_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { data_max: 2 * DATA_MIN, ..Limits::default() };
    let (store, realm) = (open_in(folder.path(), limited(limits)).await, fresh_realm());
    let document = "d".repeat(100_000);
    let mut rooms = 0;
    let full = loop {
        let room = new_room(&format!("r{rooms}"), state(1, &document, &["ada"]));
        match store.put_room(&realm, room, alive(life("ada", true, DAY_MS))).await {
            Ok(_) => rooms += 1,
            Err(error) => break error,
        }
        assert!(rooms < 1_000, "nothing is refused");
    };
    assert_eq!(full, StoreError::Full { max_bytes: 2 * DATA_MIN });
    assert!(full.to_string().contains("--data-max"), "{full}");
    assert!(rooms > 15, "most of the store is for writes that add something: {rooms}");
    let refused = store.create_account(&realm, &account("bob"), None).await;
    assert!(matches!(refused, Ok(()) | Err(StoreError::Full { .. })), "{refused:?}");
    // Games go on into the reserve, and end even beyond.
    let next = |version| state(version, &document, &["ada"]);
    store.commit_room(&realm, &room_id("r0"), 1, next(2), alive(life("ada", true, DAY_MS))).await.unwrap();
    let mut version = 2;
    loop {
        let effects = Effects { notices: told(2, &"n".repeat(60_000)), ..alive(life("ada", true, DAY_MS)) };
        let room = room_id(&format!("r{}", version % rooms));
        let before = store.load_room(&realm, &room).await.unwrap().unwrap().state.version;
        match store.commit_room(&realm, &room, before, next(before + 1), effects).await {
            Ok(_) => version += 1,
            Err(StoreError::Full { .. }) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(version < 1_000, "moves fill the store");
    }
    let before = store.load_room(&realm, &room_id("r1")).await.unwrap().unwrap().state.version;
    let ended = Effects { kind: CommitKind::Settles, ..alive(life("ada", false, DAY_MS)) };
    store.commit_room(&realm, &room_id("r1"), before, state(before + 1, "", &[]), ended).await.unwrap();
    let size = std::fs::metadata(folder.path().join("parlor.db")).unwrap().len();
    assert!(size <= 2 * DATA_MIN, "{size} bytes");
    assert!(store.counters().refused_full >= 2);
    // What deletes is done, and makes room.
    store.acknowledge(&realm, &account_id("p0"), 1_000).await.unwrap();
    for room in 2..rooms {
        store.delete_room(&realm, &room_id(&format!("r{room}"))).await.unwrap();
    }
    // A fast disk has deleted all before the size is read again, which happens ten times a second.
    let mut refused = 0;
    loop {
        let room = new_room("new", state(1, &document, &["ada"]));
        match store.put_room(&realm, room, alive(life("ada", true, DAY_MS))).await {
            Err(StoreError::Full { .. }) => refused += 1,
            put => break put.map(|_| ()).unwrap(),
        }
        assert!(refused < 100_000, "deleting makes room");
    }
}

#[tokio::test]
async fn threat_43_a_full_store_on_either_database_refuses_what_adds_and_takes_what_deletes() {
    let limits = Limits { data_max: 2 * DATA_MIN, ..Limits::default() };
    on_each_with(limited(limits), async |store, realm| {
        // What does not compress, for a database that does.
        let noise = |number: u64| {
            let mut state = number + 1;
            let mut text = String::new();
            while text.len() < 100_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(&format!("{state:x}"));
            }
            text
        };
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let mut rooms = 0;
        let full = loop {
            let room = new_room(&format!("r{rooms}"), state(1, &noise(rooms), &["ada"]));
            match store.put_room(&realm, room, alive(life("ada", true, DAY_MS))).await {
                Ok(_) => rooms += 1,
                Err(error) => break error,
            }
            assert!(rooms < 1_000, "nothing is refused");
        };
        assert!(rooms > 5 && matches!(full, StoreError::Full { .. }), "{full}");
        assert!(store.counters().bytes <= 2 * DATA_MIN);
        store.end_sign_ins_of(&realm, &account_id("ada")).await.unwrap();
        store.delete_room(&realm, &room_id("r0")).await.unwrap();
        store.delete_account(&realm, &account_id("ada")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn threat_43_an_account_has_so_many_open_rooms_and_bytes_of_rooms() {
    let limits = Limits { open_rooms: 3, room_bytes: 200_000, app_bytes: Some(300_000), ..Limits::default() };
    on_each_with(limited(limits), async |store, realm| {
        let open = async |owner: &str, id: &str, document: &str| {
            let room = new_room(id, state(1, document, &[]));
            store.put_room(&realm, room, alive(life(owner, true, DAY_MS))).await
        };
        let refused = |done: Result<Vec<u64>, StoreError>| match done {
            Err(StoreError::Quota { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        for id in ["a", "b", "c"] {
            open("ada", id, "").await.unwrap();
        }
        assert_eq!(refused(open("ada", "d", "").await), "the rooms of this account");
        assert!(store.load_room(&realm, &room_id("d")).await.unwrap().is_none());
        let ended = alive(life("ada", false, DAY_MS));
        store.commit_room(&realm, &room_id("a"), 1, state(2, "", &[]), ended).await.unwrap();
        open("ada", "d", "").await.unwrap();
        // A room that grows is charged for it.
        let large = "x".repeat(180_000);
        let grown = alive(life("ada", true, DAY_MS));
        let grows = store.commit_room(&realm, &room_id("b"), 1, state(2, &large, &[]), grown).await;
        assert_eq!(refused(grows), "the bytes of this account's rooms");
        assert_eq!(store.load_room(&realm, &room_id("b")).await.unwrap().unwrap().state.version, 1);
        // But not where it ends, expires or is left: others depend on that.
        for (version, kind) in [(1, CommitKind::Settles), (2, CommitKind::Administers)] {
            let effects = Effects { kind, ..alive(life("ada", true, DAY_MS)) };
            let next = state(version + 1, &large, &[]);
            store.commit_room(&realm, &room_id("c"), version, next, effects).await.unwrap();
        }
        let charged = store.holding(&realm, Some(&account_id("ada"))).await.unwrap();
        assert!(charged.room_bytes > 200_000, "it is charged all the same: {charged:?}");
        store.delete_room(&realm, &room_id("c")).await.unwrap();
        open("bob", "e", &large).await.unwrap();
        assert_eq!(refused(open("cyd", "f", &large).await), "the bytes of this app");
        let before = store.holding(&realm, Some(&account_id("bob"))).await.unwrap();
        assert!(before.room_bytes >= 180_000 && before.open_rooms == 1, "{before:?}");
        store.delete_room(&realm, &room_id("e")).await.unwrap();
        assert_eq!(store.holding(&realm, Some(&account_id("bob"))).await.unwrap().room_bytes, 0);
        open("cyd", "f", &large).await.unwrap();
        assert_eq!(store.counters().refused_quota, 3);
    })
    .await;
}

fn entry(number: u64, bytes: usize) -> MatchEntry {
    MatchEntry { number, at_ms: 5, body: vec![b'x'; bytes], player: None }
}

#[tokio::test]
async fn threat_43_an_account_has_so_many_bytes_of_logs() {
    on_each_with(limited(Limits { log_bytes: 50_000, ..Limits::default() }), async |store, realm| {
        let new = |id: &str| NewMatch {
            id: id.into(),
            server: "s".into(),
            label: String::new(),
            opened_ms: 5,
            owner: Some(account_id("ada")),
        };
        store.open_match(&realm, new("m1")).await.unwrap();
        store.open_match(&realm, new("m1")).await.unwrap();
        assert_eq!(store.append_to_match(&realm, "m1", vec![entry(0, 40_000)]).await, Ok(Appended::Kept(1)));
        let over = store.append_to_match(&realm, "m1", vec![entry(1, 40_000)]).await.unwrap();
        assert_eq!(over, Appended::OverQuota(account_id("ada")));
        let kept = store.kept_match(&realm, "m1").await.unwrap().unwrap();
        assert_eq!((kept.entries, kept.cut.as_deref()), (1, Some(CUT_QUOTA)));
        for number in 2..10 {
            match store.open_match(&realm, new(&format!("m{number}"))).await {
                Ok(()) => {}
                Err(StoreError::Quota { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let refused = store.open_match(&realm, new("m99")).await;
        assert!(matches!(refused, Err(StoreError::Quota { .. })), "{refused:?}");
        store.forget_match(&realm, "m1").await.unwrap();
        store.open_match(&realm, new("m99")).await.unwrap();
        let holding = store.holding(&realm, Some(&account_id("ada"))).await.unwrap();
        assert!(holding.log_bytes < 20_000, "{holding:?}");
    })
    .await;
}

#[tokio::test]
async fn threat_43_a_guest_has_fewer_bytes_until_it_links_a_way_to_sign_in() {
    on_each_with(limited(Limits { guest_bytes: 40_000, ..Limits::default() }), async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let large = "x".repeat(30_000);
        let open = async |owner: &str, id: &str| {
            let room = new_room(id, state(1, &large, &[]));
            store.put_room(&realm, room, alive(life(owner, true, DAY_MS))).await
        };
        open("ada", "a").await.unwrap();
        let refused = open("ada", "b").await;
        assert!(matches!(refused, Err(StoreError::Quota { .. })), "{refused:?}");
        let log = |id: &str| NewMatch {
            id: id.into(),
            server: "s".into(),
            label: String::new(),
            opened_ms: 5,
            owner: Some(account_id("ada")),
        };
        store.open_match(&realm, log("m1")).await.unwrap();
        let over = store.append_to_match(&realm, "m1", vec![entry(0, 60_000)]).await.unwrap();
        assert_eq!(over, Appended::OverQuota(account_id("ada")));
        // A user of the game's own service has no account here.
        for id in ["c", "d"] {
            open("of-the-game", id).await.unwrap();
        }
        let device = Credential { kind: CredentialKind::Device, value: "d".into(), secret_hash: None };
        store.link_credential(&realm, &account_id("ada"), &device).await.unwrap();
        open("ada", "b").await.unwrap();
        store.open_match(&realm, log("m2")).await.unwrap();
        assert_eq!(store.append_to_match(&realm, "m2", vec![entry(0, 60_000)]).await, Ok(Appended::Kept(1)));
    })
    .await;
}

#[tokio::test]
async fn threat_43_an_account_that_links_ten_thousand_devices_has_sixteen() {
    const DEVICES: usize = 10_000;
    const AT_ONCE: usize = 500;
    on_each_with(Options { durability: Durability::None, ..Options::default() }, async |store, realm| {
        let ada = account_id("ada");
        let device = |value: String| Credential { kind: CredentialKind::Device, value, secret_hash: None };
        store.create_account(&realm, &account("ada"), Some(&device("first".into()))).await.unwrap();
        let mut linked = 1;
        for part in 0..DEVICES / AT_ONCE {
            let devices: Vec<_> = (0..AT_ONCE).map(|number| device(format!("{part}-{number}"))).collect();
            let links = devices.iter().map(|device| store.link_credential(&realm, &ada, device));
            for done in futures_util::future::join_all(links).await {
                match done {
                    Ok(()) => linked += 1,
                    Err(StoreError::TooManyCredentials { max }) => assert_eq!(max, CREDENTIALS_MAX),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert_eq!(linked, CREDENTIALS_MAX);
        let mut credentials = store.credentials(&realm, &ada).await.unwrap();
        assert_eq!(credentials.len() as u64, CREDENTIALS_MAX);
        // One that it has gets another secret, and one that goes makes room.
        store.link_credential(&realm, &ada, &device("first".into())).await.unwrap();
        let (kind, value) = credentials.pop().unwrap();
        store.unlink_credential(&realm, &ada, kind, &value).await.unwrap();
        store.link_credential(&realm, &ada, &device("last".into())).await.unwrap();
        store.delete_account(&realm, &ada).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn threat_43_a_log_is_deleted_in_parts_of_few_bytes() {
    const ENTRIES: u64 = 120;
    let folder = tempfile::tempdir().unwrap();
    let (store, realm) = (open_in(folder.path(), Options::default()).await, fresh_realm());
    let new =
        NewMatch { id: "m".into(), server: "s".into(), label: String::new(), opened_ms: 5, owner: None };
    store.open_match(&realm, new).await.unwrap();
    for number in 0..ENTRIES {
        store.append_to_match(&realm, "m", vec![entry(number, 128 << 10)]).await.unwrap();
    }
    store.forget_match(&realm, "m").await.unwrap();
    let file = rusqlite::Connection::open(folder.path().join("parlor.db")).unwrap();
    let left = || {
        let bytes = "SELECT COALESCE(SUM(length(body)), 0) FROM match_entries";
        file.query_row(bytes, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut before = left();
    assert_eq!(before, i64::try_from(ENTRIES).unwrap() << 17);
    while store.sweep_matches().await.unwrap() {
        let after = left();
        assert!(before - after <= 384 << 10, "{} bytes at once", before - after);
        before = after;
    }
    assert_eq!(before, 0);
}

#[tokio::test]
async fn threat_43_rooms_webhooks_and_inboxes_are_deleted_in_parts_of_few_bytes() {
    const ROOMS: u64 = 12;
    const INBOXES: usize = 6;
    on_each(async |store, realm| {
        let (now_ms, large) = (10 * DAY_MS, "d".repeat(700_000));
        for number in 0..ROOMS {
            let room = new_room(&format!("r{number}"), state(1, &large, &[]));
            store.put_room(&realm, room, alive(life("ada", false, DAY_MS))).await.unwrap();
        }
        let mut parts = 0;
        loop {
            let over = store.rooms_over(now_ms).await.unwrap();
            if over.is_empty() {
                break;
            }
            let deleted = store.delete_rooms_over(over, now_ms).await.unwrap();
            assert!((1..=2).contains(&deleted), "{deleted} rooms of 700 kB at once");
            parts += 1;
        }
        assert_eq!(parts, ROOMS / 2);

        store.put_room(&realm, new_room("r", state(1, "", &[])), Effects::default()).await.unwrap();
        let webhook = || NewWebhook {
            target: "https://example.com".into(),
            body: vec![b'w'; 65_536],
            due_ms: 7,
            is_beyond_share: false,
        };
        let effects = Effects { webhooks: (0..100).map(|_| webhook()).collect(), ..Effects::default() };
        store.commit_room(&realm, &room_id("r"), 1, state(2, "", &[]), effects).await.unwrap();
        let mut swept = Vec::new();
        loop {
            let part = store.sweep_webhooks(8).await.unwrap();
            swept.push(part.rows);
            if !part.is_more {
                break;
            }
        }
        assert_eq!(swept.iter().sum::<u64>(), 100);
        assert!(swept.iter().all(|rows| *rows <= 16), "{swept:?} calls of 64 KiB");

        // Inboxes without an account, with 255 rows each.
        for version in 2..257 {
            let effects = notices(told(INBOXES, "hello"));
            let next = state(version + 1, "", &[]);
            store.commit_room(&realm, &room_id("r"), version, next, effects).await.unwrap();
        }
        let mut swept = Vec::new();
        loop {
            let part = store.sweep_inboxes().await.unwrap();
            swept.push(part.rows);
            if !part.is_more {
                break;
            }
        }
        assert_eq!(swept, [3, 3], "512 rows, except for those of the last one");
    })
    .await;
}

#[tokio::test]
async fn threat_43_webhooks_that_wait_have_a_bound_in_bytes() {
    on_each(async |store, realm| {
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        let webhook = || large_call(b'w', false);
        let each = 200;
        for version in 2..4 {
            let effects = Effects { webhooks: (0..each).map(|_| webhook()).collect(), ..Effects::default() };
            store
                .commit_room(&realm, &room_id("r1"), version - 1, state(version, "", &[]), effects)
                .await
                .unwrap();
        }
        let outbox = store.outbox(&realm).await.unwrap();
        assert_eq!(outbox.waiting, OUTBOX_BYTES_MAX / 65_536);
        assert_eq!(outbox.waiting + outbox.dropped, 2 * each);
        while store.sweep_webhooks(8).await.unwrap().is_more {}
        assert_eq!(store.outbox(&realm).await.unwrap().waiting, 0);
    })
    .await;
}

/// A call of 64 KiB that begins with this letter.
fn large_call(letter: u8, is_beyond_share: bool) -> NewWebhook {
    NewWebhook {
        target: "https://example.com".into(),
        body: vec![letter; 65_536],
        due_ms: 7,
        is_beyond_share,
    }
}

#[tokio::test]
async fn threat_43_calls_beyond_a_share_push_no_others_out_of_the_outbox() {
    on_each(async |store, realm| {
        store.put_room(&realm, new_room("r1", state(1, "", &[])), Effects::default()).await.unwrap();
        let mut version = 1;
        let mut put = async |calls: Vec<NewWebhook>| {
            version += 1;
            let effects = Effects { webhooks: calls, ..Effects::default() };
            let state = state(version, "", &[]);
            store.commit_room(&realm, &room_id("r1"), version - 1, state, effects).await.unwrap();
        };
        let small = |letter: u8| NewWebhook { body: vec![letter], ..large_call(letter, false) };
        put(vec![small(b'a')]).await;
        // A talker queues more than the outbox may have, and others go on.
        for _ in 0..2 {
            put((0..200).map(|_| large_call(b't', true)).collect()).await;
            put(vec![small(b'b')]).await;
        }
        let due = store.claim_webhooks(7, 7, 1_000).await.unwrap();
        let of = |letter: u8| due.iter().filter(|call| call.body[0] == letter).count() as u64;
        assert_eq!((of(b'a'), of(b'b')), (1, 2));
        assert!(of(b't') <= OUTBOX_BYTES_MAX / 65_536 / 2, "{} of the talker's", of(b't'));
        let outbox = store.outbox(&realm).await.unwrap();
        assert_eq!(outbox.waiting, due.len() as u64);
        assert_eq!(outbox.waiting + outbox.dropped, 3 + 2 * 200, "each is counted");
        // Half of the outbox in calls, with hardly a byte.
        while store.sweep_webhooks(8).await.unwrap().is_more {}
        for _ in 0..OUTBOX_MAX / 200 {
            put((0..200).map(|_| NewWebhook { is_beyond_share: true, ..small(b't') }).collect()).await;
        }
        assert_eq!(store.outbox(&realm).await.unwrap().waiting, OUTBOX_MAX / 2);
    })
    .await;
}

async fn sign_in(store: &Store, realm: &Realm, who: &str, now_ms: u64) {
    let sign_in = SignIn {
        id: SignInId::new(&format!("of-{who}-{now_ms}")).expect("an id"),
        account: account_id(who),
        token_hash: [1; 32],
        now_ms,
        expires_ms: now_ms + DAY_MS,
    };
    store.begin_sign_in(realm, &sign_in).await.expect("an account");
}

#[tokio::test]
async fn threat_43_what_nobody_uses_is_deleted_a_part_at_a_time() {
    const GUESTS: usize = 450;
    on_each(async |store, realm| {
        let now_ms = 100 * DAY_MS;
        for guest in 0..GUESTS {
            store.create_account(&realm, &account(&format!("guest-{guest:04}")), None).await.unwrap();
        }
        let device = Credential { kind: CredentialKind::Device, value: "d".into(), secret_hash: None };
        let email = Credential { kind: CredentialKind::Email, value: "e".into(), secret_hash: None };
        store.create_account(&realm, &account("phone"), Some(&device)).await.unwrap();
        store.create_account(&realm, &account("mail"), Some(&email)).await.unwrap();
        store.create_account(&realm, &account("seated"), None).await.unwrap();
        sign_in(&store, &realm, "guest-0007", now_ms - DAY_MS / 2).await;
        sign_in(&store, &realm, "guest-0008", now_ms - 90 * DAY_MS).await;
        let room = new_room("r1", state(1, "", &["seated"]));
        let effects = Effects { notices: told(2, "hello"), ..alive(life("seated", true, now_ms + DAY_MS)) };
        store.put_room(&realm, room, effects).await.unwrap();
        let over = new_room("r2", state(1, "", &[]));
        store.put_room(&realm, over, alive(life("seated", false, now_ms - DAY_MS))).await.unwrap();

        let unseen = Unseen { guests_ms: now_ms - 60 * DAY_MS, devices_ms: 0 };
        let (mut parts, mut rows) = (0, 0);
        loop {
            let swept = store.sweep_accounts(now_ms, unseen).await.unwrap();
            (parts, rows) = (parts + 1, rows + swept.rows);
            assert!(swept.rows <= 200, "a part is bounded");
            if !swept.is_more {
                break;
            }
        }
        assert_eq!((parts, rows), (3, GUESTS as u64 - 1), "all guests but the one that came back");
        for kept in ["guest-0007", "phone", "mail", "seated"] {
            assert!(store.account(&realm, &account_id(kept)).await.unwrap().is_some(), "{kept}");
        }
        assert!(store.account(&realm, &account_id("guest-0008")).await.unwrap().is_none());
        let unseen = Unseen { devices_ms: now_ms - DAY_MS, ..unseen };
        assert_eq!(store.sweep_accounts(now_ms, unseen).await.unwrap().rows, 1);
        assert!(store.account(&realm, &account_id("phone")).await.unwrap().is_none());

        let rooms = store.rooms_over(now_ms).await.unwrap();
        assert_eq!(rooms, [(realm.clone(), room_id("r2"))]);
        assert_eq!(store.delete_rooms_over(rooms, now_ms).await.unwrap(), 1);
        assert!(store.load_room(&realm, &room_id("r2")).await.unwrap().is_none());
        assert_eq!(store.rooms_over(now_ms).await.unwrap(), []);
        let holding = store.holding(&realm, None).await.unwrap();
        assert_eq!(holding.open_rooms, 1);
        // Inboxes without an account.
        assert_eq!(store.sweep_inboxes().await.unwrap().rows, 2);
        assert_eq!(store.read_inbox(&realm, &account_id("p0"), 0, 9).await.unwrap().newest, 0);
        assert_eq!(store.sweep_sign_ins(now_ms + 9 * DAY_MS).await.unwrap().rows, 1);
        assert_eq!(store.sweep_bans(now_ms).await.unwrap().rows, 0);
    })
    .await;
}

#[tokio::test]
async fn a_room_that_is_changed_before_it_is_deleted_stays() {
    on_each(async |store, realm| {
        let now_ms = 10 * DAY_MS;
        store.put_room(&realm, new_room("r1", state(1, "", &[])), alive(life("ada", true, 1))).await.unwrap();
        let over = store.rooms_over(now_ms).await.unwrap();
        assert_eq!(over.len(), 1);
        let effects = alive(life("ada", true, now_ms + DAY_MS));
        store.commit_room(&realm, &room_id("r1"), 1, state(2, "", &[]), effects).await.unwrap();
        assert_eq!(store.delete_rooms_over(over, now_ms).await.unwrap(), 0);
        assert!(store.load_room(&realm, &room_id("r1")).await.unwrap().is_some());
        assert_eq!(store.room_owner(&realm, &room_id("r1")).await.unwrap(), Some(account_id("ada")));
    })
    .await;
}
