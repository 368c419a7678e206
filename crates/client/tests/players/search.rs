//! Searches over real sockets: two players find each other, and sit in one match.

use crate::signed_in::{account, asked, hall, heard, refused};
use crate::support::Patience;
use parlor::Room;
use parlor::online::{Account, Filter, MatchFound, SearchEnded, SearchEvent};

#[test]
fn n5_two_players_find_each_other_and_play_in_one_match() {
    let mut hall = hall();
    let address = hall.address();
    let players = [account(&address, "ada"), account(&address, "bob")];
    let mode = Filter::new().is("mode", "ranked");
    let search = |account: &Account| {
        account.find_match("duel").players(2, 2).set("mode", "ranked").filter(mode.clone()).start()
    };
    let mut searches = [search(&players[0]), search(&players[1])];
    heard(|| searches[0].poll(), |event| (*event == SearchEvent::Waiting).then_some(()));
    let queues = asked(players[0].queues()).expect("it may");
    assert_eq!(queues[0].name, "duel");

    let (mut rooms, mut found, mut openers) = ([None, None], [None::<MatchFound>, None], 0);
    let mut is_said = false;
    let patience = Patience::new();
    while found.iter().any(Option::is_none) {
        for (nth, search) in searches.iter_mut().enumerate() {
            while let Some(event) = search.poll() {
                match event {
                    SearchEvent::Open(_) => {
                        openers += 1;
                        let room = Room::create_match("tanks").server(&address).account(&players[nth]).open();
                        rooms[nth] = Some(room);
                    }
                    SearchEvent::Found(it) => found[nth] = Some(it),
                    SearchEvent::Waiting | SearchEvent::Ended(SearchEnded::Found) => {}
                    other => panic!("{other:?}"),
                }
            }
            if let Some(room) = &mut rooms[nth] {
                while room.poll().is_some() {}
                if let (Some(code), false) = (room.code(), is_said) {
                    is_said = true;
                    search.opened(&code.to_string());
                }
            }
        }
        patience.look_again(|| format!("{searches:?}"));
    }
    assert_eq!(openers, 1, "one of both opens the room");
    let [Some(one), Some(other)] = found else { panic!("both have found it") };
    assert_eq!((&one.room, one.room.kind.as_str(), one.backfill), (&other.room, "match", false));
    assert_eq!(one.teams[0].iter().map(|it| it.points).collect::<Vec<_>>(), [2500, 2500]);

    // Who could not get in searches on, and leaves in the end.
    let [one, _] = searches;
    let mut again = one.again();
    heard(|| again.poll(), |event| (*event == SearchEvent::Waiting).then_some(()));
    again.leave();
    heard(|| again.poll(), |event| (*event == SearchEvent::Ended(SearchEnded::Left)).then_some(()));
    let mut wrong = players[1].find_match("a b").start();
    let failed = heard(
        || wrong.poll(),
        |event| match event {
            SearchEvent::Ended(SearchEnded::Failed(error)) => Some(error.to_string()),
            _ => None,
        },
    );
    assert!(failed.contains("there is no queue"), "{failed}");
    assert_eq!(refused(players[0].rating("duel")).code, "no_such_ladder");
    hall.shut_down();
}
