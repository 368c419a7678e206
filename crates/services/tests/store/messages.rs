//! Histories of rooms.

use crate::common::{account_id, new_room, on_each, room_id, state};
use parlor_server::realm::Realm;
use parlor_services::store::{CommitKind, Effects, NewMessage, RoomLife, Store};

const LAST: u64 = parlor_turn::limits::HISTORY_MAX;

async fn open(store: &Store, realm: &Realm, room: &str) {
    let life = RoomLife { owner: Some(account_id("ada")), is_open: true, until_ms: 1 };
    let effects = Effects { life: Some(life), ..Effects::default() };
    store.put_room(realm, new_room(room, state(1, "", &["ada"])), effects).await.expect("a new room");
}

fn effects(number: u64, message: Option<NewMessage>) -> Effects {
    let life = RoomLife { owner: None, is_open: true, until_ms: 1 };
    Effects { life: Some(life), message, messages: number, kind: CommitKind::Plays, ..Effects::default() }
}

fn message(number: u64, by: &str, body: &str) -> NewMessage {
    NewMessage { number, at_ms: 10 * number, account: account_id(by), body: body.as_bytes().to_vec() }
}

async fn say(store: &Store, realm: &Realm, room: &str, message: NewMessage) {
    let number = message.number;
    let next = state(number + 1, "", &["ada"]);
    store
        .commit_room(realm, &room_id(room), number, next, effects(number, Some(message)))
        .await
        .expect("the next version");
}

/// The numbers of all messages, page by page.
async fn numbers(store: &Store, realm: &Realm, room: &str, limit: usize) -> Vec<u64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.messages(realm, &room_id(room), after.as_deref(), limit).await.expect("a page");
        assert!(page.items.len() <= limit);
        all.extend(page.items.iter().map(|message| message.number));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn r2_messages_have_a_history_with_pages() {
    on_each(async |store, realm| {
        open(&store, &realm, "r1").await;
        open(&store, &realm, "r2").await;
        assert_eq!(numbers(&store, &realm, "r1", 10).await, Vec::<u64>::new());
        for number in 1..=LAST + 44 {
            say(&store, &realm, "r1", message(number, "ada", "hi")).await;
        }
        let expected: Vec<u64> = (45..=LAST + 44).rev().collect();
        for limit in [1000, 100, 7] {
            assert_eq!(
                numbers(&store, &realm, "r1", limit).await,
                expected,
                "the newest first, {limit} each"
            );
        }
        let page = store.messages(&realm, &room_id("r1"), None, 1).await.unwrap();
        assert_eq!(page.items, [message(LAST + 44, "ada", "hi")]);
        assert_eq!(numbers(&store, &realm, "r2", 10).await, Vec::<u64>::new(), "each room has its own");
        assert!(store.messages(&realm, &room_id("r1"), Some("x"), 1).await.is_err());
        store.delete_room(&realm, &room_id("r1")).await.unwrap();
        assert_eq!(numbers(&store, &realm, "r1", 10).await, Vec::<u64>::new());
    })
    .await;
}

#[tokio::test]
async fn threat_43_r2_a_history_counts_for_the_rooms_owner_and_no_more_than_it_has() {
    on_each(async |store, realm| {
        open(&store, &realm, "r1").await;
        let held = async || store.holding(&realm, Some(&account_id("ada"))).await.unwrap().room_bytes;
        let before = held().await;
        let body = "x".repeat(4_000);
        for number in 1..=LAST {
            say(&store, &realm, "r1", message(number, "bob", &body)).await;
        }
        let full = held().await - before;
        assert!((LAST * 4_000..LAST * 4_600).contains(&full), "{full} bytes");
        // What is overwritten is no longer counted.
        for number in LAST + 1..=2 * LAST {
            say(&store, &realm, "r1", message(number, "bob", "short")).await;
        }
        let short = held().await - before;
        assert!(short < LAST * 600, "{short} bytes");
        // A commit without a message changes nothing of it.
        let version = 2 * LAST + 1;
        let next = state(version + 1, "", &["ada"]);
        store.commit_room(&realm, &room_id("r1"), version, next, effects(2 * LAST, None)).await.unwrap();
        assert_eq!(held().await - before, short);
    })
    .await;
}

#[tokio::test]
async fn what_an_account_said_is_exported_and_goes_with_it() {
    on_each(async |store, realm| {
        store.create_account(&realm, &crate::common::account("bob"), None).await.unwrap();
        for room in ["r1", "r2"] {
            open(&store, &realm, room).await;
            for (number, by) in [(1, "bob"), (2, "cleo"), (3, "bob")] {
                say(&store, &realm, room, message(number, by, room)).await;
            }
        }
        let bob = account_id("bob");
        let mut said = Vec::new();
        let mut after = None;
        loop {
            let page = store.messages_of(&realm, &bob, after.as_deref(), 3).await.unwrap();
            said.extend(page.items.into_iter().map(|said| (said.room.to_string(), said.message.number)));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let own = |room: &str, number| (room.to_owned(), number);
        assert_eq!(said, [own("r1", 1), own("r1", 3), own("r2", 1), own("r2", 3)]);
        store.delete_account(&realm, &bob).await.unwrap();
        for room in ["r1", "r2"] {
            assert_eq!(numbers(&store, &realm, room, 10).await, [2]);
        }
        // The history goes on.
        say(&store, &realm, "r1", message(4, "cleo", "on")).await;
        assert_eq!(numbers(&store, &realm, "r1", 10).await, [4, 2]);
    })
    .await;
}
