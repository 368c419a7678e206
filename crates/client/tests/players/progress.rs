//! Progress and objects over real sockets: typed calls of two players.

use crate::signed_in::{account, asked, hall, refused};
use parlor::online::{NewObject, ObjectId, StatisticWrite};
use serde::{Deserialize, Serialize};

#[test]
fn t4_a_game_writes_statistics_and_unlocks_achievements() {
    let hall = hall();
    let ada = account(&hall.address(), "ada");
    let (statistics, achievements) = (ada.statistics(), ada.achievements());
    assert_eq!(asked(statistics.list()).expect("it may"), []);
    let written = asked(statistics.add("kills", 3)).expect("it is made");
    assert_eq!((written.values, written.unlocked), (vec![3], vec![]));
    let both = [StatisticWrite::add("kills", 2), StatisticWrite::set("level", 7)];
    assert_eq!(asked(statistics.write(&both)).expect("it may").values, [5, 7]);
    let list = asked(statistics.list()).expect("it may");
    let values: Vec<(&str, i64)> = list.iter().map(|it| (it.name.as_str(), it.value)).collect();
    assert_eq!(values, [("kills", 5), ("level", 7)]);
    let refusal = refused(statistics.set("kills", 1));
    assert_eq!((refusal.code.as_str(), refusal.path.as_deref()), ("bad_input", Some("writes[0].set")));

    assert_eq!(refused(achievements.add("walker", 1)).code, "no_such_achievement");
    assert!(asked(achievements.unlock("first-blood")).expect("it is made").unlocked);
    assert!(!asked(achievements.unlock("first-blood")).expect("it may").unlocked, "once");
    let list = asked(achievements.list()).expect("it may");
    assert_eq!((list[0].name.as_str(), list[0].unlocked_by, list[0].players), ("first-blood", 1, 1));
    assert!(list[0].unlocked_ms.is_some());
    let reset = asked(achievements.reset("first-blood")).expect("it may");
    assert_eq!(reset.achievement.unlocked_ms, None);
    assert!(asked(achievements.add("first-blood", 1)).expect("it may").unlocked);
    assert!(!asked(achievements.reach("first-blood", 1)).expect("it may").unlocked);
    assert_eq!(refused(ada.rating("duel")).code, "no_such_ladder");
    assert_eq!(refused(ada.rating_of("duel", "p1")).code, "no_such_ladder");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Loadout {
    tank: String,
}

#[test]
fn t4_a_player_shares_an_object_with_another() {
    let hall = hall();
    let (ada, bob) = (account(&hall.address(), "ada"), account(&hall.address(), "bob"));
    let loadout = |tank: &str| Loadout { tank: tank.to_owned() };
    let object =
        |name: &str, tank: &str| NewObject::new("loadouts", name, &loadout(tank)).expect("it is JSON");
    let objects = [object("heavy", "T-9").for_everyone(), object("light", "T-1").over(0)];
    assert_eq!(asked(ada.storage().write(&objects)).expect("they are new"), [1, 2]);
    let id = asked(ada.info()).expect("it may").id;
    let of_ada = [ObjectId::of(&id, "loadouts", "heavy"), ObjectId::of(&id, "loadouts", "light")];
    let read = asked(bob.storage().read(&of_ada)).expect("it may");
    assert_eq!(read.len(), 1, "the other is private");
    assert_eq!(
        (read[0].read::<Loadout>().expect("it is one"), read[0].owner.as_str()),
        (loadout("T-9"), &*id)
    );
    assert_eq!(asked(bob.storage().read(&[ObjectId::of_game("loadouts", "heavy")])).expect("it may"), []);
    let stale = refused(ada.storage().write(&[object("heavy", "T-2").over(7)]));
    assert_eq!((stale.code.as_str(), stale.path.as_deref()), ("stale", Some("objects[0].version")));
    asked(ada.storage().write(&[object("heavy", "T-2").for_owner().over(1)])).expect("it has read it");
    assert_eq!(asked(bob.storage().read(&of_ada)).expect("it may"), []);
    asked(ada.storage().remove(&[ObjectId::own("loadouts", "heavy")])).expect("it is its own");
    let list = asked(ada.storage().list("loadouts")).expect("it may");
    assert_eq!(list.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["light"]);
}
