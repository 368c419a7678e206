//! Lobbies over real sockets: four players gather, talk, and go into a room together.

use crate::signed_in::{account, asked, hall, heard, refused};
use crate::support::Patience;
use parlor::online::{
    self, Account, Filter, Lobby, LobbyClosed, LobbyEvent, LobbySearch, NewLobby, Property,
};
use serde_json::{Map, json};

fn is(wanted: LobbyEvent) -> impl Fn(&LobbyEvent) -> Option<()> {
    move |event| (*event == wanted).then_some(())
}

#[test]
fn t5_players_gather_in_a_lobby_and_go_into_a_room_together() {
    let mut hall = hall();
    let (ada, bob) = (account(&hall.address(), "ada"), account(&hall.address(), "bob"));
    let new = NewLobby::public(3).name("Mill").bucket("coop").set("level", 7).set_mine("tank", "T-9");
    let mut of_ada = ada.create_lobby(new);
    heard(|| of_ada.poll(), is(LobbyEvent::Here));
    assert!(of_ada.is_owner());
    let level = Filter::new().at_least("level", 5).less_than("level", 10);
    let search = LobbySearch::new().bucket("coop").filter(level).free_seats(2).near("level", 8).count(5);
    let found = asked(bob.find_lobbies(&search)).expect("it may");
    assert_eq!((found.len(), found[0].name.as_str(), found[0].members.len()), (1, "Mill", 0));
    let none = LobbySearch::new().filter(Filter::new().is("level", 8)).of_friends().fullest();
    assert_eq!(asked(bob.find_lobbies(&none)).expect("it may"), []);
    let mut of_bob = bob.join_lobby(&found[0].id);
    heard(|| of_bob.poll(), is(LobbyEvent::Here));
    let joined = heard(
        || of_ada.poll(),
        |event| match event {
            LobbyEvent::MemberJoined(member) => Some(member.clone()),
            _ => None,
        },
    );
    assert_eq!((joined.name.as_str(), joined.here), ("bob", true));
    of_bob.set_mine("ready", 1);
    let patience = Patience::new();
    while of_ada.view().is_some_and(|view| view.ready == 0) {
        if of_ada.poll().is_none() {
            patience.look_again(|| format!("{of_ada:?}"));
        }
    }
    of_bob.set("level", 99);
    let code = heard(
        || of_bob.poll(),
        |event| match event {
            LobbyEvent::Refused(error) => Some(error.code.clone()),
            _ => None,
        },
    );
    assert_eq!(code, "not_owner");
    let wrong = LobbySearch::new().filter(Filter::new().is("a b", 1));
    assert_eq!(refused(bob.find_lobbies(&wrong)).path.as_deref(), Some("filter.a b"));
    of_ada.set("map", "mill");
    of_ada.unset("level");
    of_ada.set_locked(true);
    let patience = Patience::new();
    while !of_bob.view().is_some_and(|view| view.locked && !view.properties.contains_key("level")) {
        if of_bob.poll().is_none() {
            patience.look_again(|| format!("{of_bob:?}"));
        }
    }
    assert_eq!(of_bob.view().expect("it is there").properties["map"], Property::Text("mill".into()));
    let text: Map<_, _> = [("text".to_owned(), json!("hello"))].into_iter().collect();
    let n = asked(of_bob.say("chat", text).expect("it is there")).expect("it may");
    let said = heard(
        || of_ada.poll(),
        |event| match event {
            LobbyEvent::Said { n, body, .. } => Some((*n, body["text"].clone())),
            _ => None,
        },
    );
    assert_eq!(said, (n, json!("hello")));
    goes_on(&hall.address(), (&ada, &mut of_ada), (&bob, &mut of_bob));
    hall.shut_down();
}

/// The lobby goes on in a room, is handed over, and left.
fn goes_on(address: &str, (ada, of_ada): (&Account, &mut Lobby), (bob, of_bob): (&Account, &mut Lobby)) {
    // A room of any kind: here one that the server runs turn by turn.
    let again = online::sign_in(address).session(ada.session().clone());
    let mut room = again.join_or_create("tanks").expect("an address");
    let patience = Patience::new();
    while room.view().is_none_or(|view| view.code.is_none()) {
        if room.poll().is_none() {
            patience.look_again(|| "the room does not open".into());
        }
    }
    let code = room.view().expect("it is there").code.clone().expect("it has one");
    of_ada.go_on_in(Some(&code));
    let goes_on = heard(
        || of_bob.poll(),
        |event| match event {
            LobbyEvent::Room(room) => Some(room.clone()),
            _ => None,
        },
    );
    assert_eq!((goes_on.kind.as_str(), goes_on.code), ("turn", code));

    let bob_id = of_bob.me().expect("it is connected").to_owned();
    of_ada.give_to(&bob_id);
    heard(|| of_bob.poll(), is(LobbyEvent::OwnerChanged { is_me: true }));
    of_ada.leave();
    heard(|| of_ada.poll(), is(LobbyEvent::Closed(LobbyClosed::Left)));
    heard(|| of_bob.poll(), |event| matches!(event, LobbyEvent::MemberLeft(_)).then_some(()));
    let mine = asked(bob.my_lobbies()).expect("it may");
    assert_eq!((mine.lobbies.len(), mine.invitations.len()), (1, 0));
    let mut strange = ada.join_lobby_by_code("ZZZZ");
    let failed = heard(
        || strange.poll(),
        |event| match event {
            LobbyEvent::Closed(LobbyClosed::Failed(error)) => Some(error.to_string()),
            _ => None,
        },
    );
    assert!(failed.contains("no such lobby"), "{failed}");
    asked(ada.decline_lobby("l0")).expect("there is nothing to decline");
}
