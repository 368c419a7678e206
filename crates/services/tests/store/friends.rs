//! Friends in every store: both sides agree, lists have an end, codes are unique, and a deleted account is on no list.

use crate::common::{account, account_id, on_each};
use parlor_server::realm::Realm;
use parlor_services::store::{Store, StoreError};
use parlor_social::limits::ASKS_MAX;
use parlor_social::{FriendRefused, FriendState, FriendStep, Relation};

async fn step(
    (store, realm): (&Store, &Realm),
    me: &str,
    other: &str,
    step: FriendStep,
) -> Result<Relation, FriendRefused> {
    let done = store.befriend(realm, (&account_id(me), &account_id(other)), step, 7).await.expect("a write");
    done.map(|change| change.after)
}

async fn list((store, realm): (&Store, &Realm), me: &str) -> Vec<(String, FriendState)> {
    let page = store.friends_of(realm, &account_id(me), None, None, 100).await.expect("a read");
    page.items.into_iter().map(|friend| (friend.account.to_string(), friend.state)).collect()
}

#[tokio::test]
async fn t2_two_players_become_friends_and_part() {
    on_each(async |store, realm| {
        let at = (&store, &realm);
        for player in ["ada", "bob", "cyd"] {
            store.create_account(&realm, &account(player), None).await.unwrap();
        }
        let friends = Relation { mine: Some(FriendState::Friend), theirs: Some(FriendState::Friend) };
        assert_eq!(step(at, "bob", "ada", FriendStep::Accept).await, Err(FriendRefused::NotAsked));
        step(at, "ada", "bob", FriendStep::Ask).await.unwrap();
        assert_eq!(list(at, "bob").await, [("ada".to_owned(), FriendState::Asks)]);
        assert_eq!(step(at, "bob", "ada", FriendStep::Ask).await, Ok(friends), "both have asked");
        assert_eq!(store.friend_ids(&realm, &account_id("ada")).await.unwrap(), [account_id("bob")]);
        step(at, "ada", "cyd", FriendStep::Ask).await.unwrap();
        let only =
            store.friends_of(&realm, &account_id("ada"), Some(FriendState::Asked), None, 10).await.unwrap();
        assert_eq!(only.items.len(), 1);
        let first = store.friends_of(&realm, &account_id("ada"), None, None, 1).await.unwrap();
        assert_eq!((first.items[0].name.as_str(), first.next.as_deref()), ("the name of bob", Some("bob")));
        step(at, "bob", "ada", FriendStep::Block).await.unwrap();
        assert_eq!(list(at, "ada").await, [("cyd".to_owned(), FriendState::Asked)], "a block shows nowhere");
        assert_eq!(step(at, "ada", "bob", FriendStep::Ask).await, Err(FriendRefused::NoSuchPlayer));
        assert_eq!(step(at, "ada", "nobody", FriendStep::Ask).await, Err(FriendRefused::NoSuchPlayer));
        assert_eq!(store.blocked_with(&realm, &account_id("ada")).await.unwrap(), [account_id("bob")]);
        assert_eq!(store.blocked_with(&realm, &account_id("bob")).await.unwrap(), [account_id("ada")]);
        step(at, "bob", "ada", FriendStep::Unblock).await.unwrap();
        step(at, "ada", "bob", FriendStep::Ask).await.unwrap();
        store.delete_account(&realm, &account_id("ada")).await.unwrap();
        assert_eq!(list(at, "bob").await, []);
        assert_eq!(list(at, "cyd").await, []);
    })
    .await;
}

#[tokio::test]
async fn threat_43_nobody_is_asked_without_end() {
    on_each(async |store, realm| {
        let at = (&store, &realm);
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        for number in 0..=ASKS_MAX {
            let other = format!("p{number}");
            store.create_account(&realm, &account(&other), None).await.unwrap();
            let asked = step(at, &other, "ada", FriendStep::Ask).await;
            let expected = if number < ASKS_MAX { None } else { Some(FriendRefused::AskedTooOften) };
            assert_eq!(asked.err(), expected, "{number}");
        }
        step(at, "ada", "p0", FriendStep::Remove).await.unwrap();
        let last = format!("p{ASKS_MAX}");
        step(at, &last, "ada", FriendStep::Ask).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn t2_a_code_leads_to_one_player_and_may_be_replaced() {
    on_each(async |store, realm| {
        for player in ["ada", "bob"] {
            store.create_account(&realm, &account(player), None).await.unwrap();
        }
        let (ada, bob) = (account_id("ada"), account_id("bob"));
        assert_eq!(store.friend_code(&realm, &ada, "AAAA", false).await.unwrap(), "AAAA");
        assert_eq!(
            store.friend_code(&realm, &ada, "BBBB", false).await.unwrap(),
            "AAAA",
            "it keeps its code"
        );
        assert_eq!(
            store.friend_code(&realm, &bob, "AAAA", false).await,
            Err(StoreError::Taken { what: "code" })
        );
        assert_eq!(store.friend_code(&realm, &ada, "BBBB", true).await.unwrap(), "BBBB");
        assert_eq!(store.friend_code_owner(&realm, "AAAA").await.unwrap(), None);
        assert_eq!(store.friend_code_owner(&realm, "BBBB").await.unwrap(), Some(ada.clone()));
        store.delete_account(&realm, &ada).await.unwrap();
        assert_eq!(store.friend_code_owner(&realm, "BBBB").await.unwrap(), None);
    })
    .await;
}
