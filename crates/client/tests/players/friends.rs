//! Friends over real sockets: requests, and news of who is here.

use crate::signed_in::{account, asked, hall, heard, refused};
use parlor::online::{FriendNews, FriendState, NewsEvent};

fn presence(event: &NewsEvent) -> Option<Vec<FriendNews>> {
    match event {
        NewsEvent::Presence(friends) => Some(friends.clone()),
        _ => None,
    }
}

#[test]
fn t2_friends_find_each_other_by_a_code_and_hear_who_is_here() {
    let mut hall = hall();
    let (ada, bob) = (account(&hall.address(), "ada"), account(&hall.address(), "bob"));
    let mut ada_news = ada.news();
    let connected = |event: &NewsEvent| (*event == NewsEvent::Connected).then_some(());
    heard(|| ada_news.poll(), connected);
    assert!(ada_news.is_connected());
    assert_eq!(refused(bob.say_to_friends("hello", None)).code, "not_here");
    let code = asked(ada.friends().code()).expect("it may");
    assert_eq!(asked(bob.friends().ask_code(&code)).expect("it is one"), Some(FriendState::Asked));
    heard(|| ada_news.poll(), |event| (*event == NewsEvent::Friends).then_some(()));
    let list = asked(ada.friends().list()).expect("it may");
    assert_eq!((list[0].name.as_str(), list[0].state), ("bob", FriendState::Asks));
    let bob_id = list[0].account.clone();
    assert_eq!(asked(ada.friends().accept(&bob_id)).expect("it asks"), Some(FriendState::Friend));
    let mut bob_news = bob.news();
    heard(|| bob_news.poll(), connected);
    let told = heard(|| ada_news.poll(), presence);
    assert_eq!((told[0].account.as_str(), told[0].online), (bob_id.as_str(), true));
    asked(bob.say_to_friends("in a match", Some("K7QM"))).expect("it is here");
    let told = heard(|| ada_news.poll(), presence);
    assert_eq!((told[0].status.as_deref(), told[0].join.as_deref()), (Some("in a match"), Some("K7QM")));
    asked(bob.hide()).expect("it is here");
    assert!(!heard(|| ada_news.poll(), presence)[0].online);
    for (player, score) in [(&ada, 3), (&bob, 4)] {
        asked(player.board("kills").submit(score)).expect("it may");
    }
    let page = asked(ada.board("kills").friends()).expect("it may");
    let names: Vec<_> = page.entries.iter().map(|entry| (entry.rank, entry.name.as_deref())).collect();
    assert_eq!(names, [(1, Some("bob")), (2, Some("ada"))]);
    assert_eq!(asked(ada.friends().block(&bob_id)).expect("it may"), Some(FriendState::Blocked));
    assert_eq!(asked(ada.board("kills").friends()).expect("it may").entries.len(), 1);
    assert_eq!(asked(bob.friends().list()).expect("it may"), []);
    assert_eq!(asked(ada.friends().unblock(&bob_id)).expect("it may"), None);
    assert_eq!(asked(ada.friends().remove(&bob_id)).expect("it may"), None);
    assert_eq!(asked(ada.friends().ask(&bob_id)).expect("it may"), Some(FriendState::Asked));
    let new = asked(ada.friends().new_code()).expect("it may");
    assert_ne!(new, code);
    // A server that goes is heard of.
    hall.shut_down();
    heard(|| ada_news.poll(), |event| matches!(event, NewsEvent::Disconnected(_)).then_some(()));
    assert!(!ada_news.is_connected());
}
