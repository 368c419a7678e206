//! Saves over real sockets: typed calls of two devices of one account.

use crate::signed_in::{asked, hall, refused};
use parlor::online::{self, Account, Save};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Castle {
    gold: u32,
}

#[test]
fn t4_two_devices_save_into_one_slot_and_the_player_chooses() {
    let hall = hall();
    let laptop: Account = online::sign_in(&hall.address()).name("ada").account("tanks").expect("an address");
    let again = online::sign_in(&hall.address()).session(laptop.session().clone());
    let phone = again.account("tanks").expect("an address");
    let (laptop, phone) = (laptop.saves(), phone.saves());
    assert_eq!(refused(laptop.get("slot-1")).code, "no_such_save");

    let castle = |gold| Castle { gold };
    let titled = || Save::titled("Castle").description("at night").device("laptop");
    let first = asked(laptop.set("slot-1", &castle(7), titled().into_free_slot()).expect("it is JSON"));
    let first = first.expect("it is free");
    assert_eq!((first.save.version, first.save.title.as_str(), first.again), (1, "Castle", false));
    let same = asked(laptop.set("slot-1", &castle(7), titled().into_free_slot()).expect("it is JSON"));
    assert!(same.expect("it is there").again);

    let found = asked(phone.get("slot-1")).expect("it is there");
    assert_eq!((found.value::<Castle>().expect("it is one"), &found.save), (castle(7), &first.save));
    let by_phone = asked(phone.set_bytes("slot-1", b"{\"gold\":8}", Save::default().device("phone").over(1)));
    let by_phone = by_phone.expect("it has read it");
    let conflict = refused(laptop.set("slot-1", &castle(9), titled().over(1)).expect("it is JSON"));
    assert_eq!((conflict.code.as_str(), conflict.current_save()), ("stale", Some(by_phone.save.clone())));
    let taken = refused(laptop.set("slot-1", &castle(9), titled().into_free_slot()).expect("it is JSON"));
    assert_eq!((taken.code.as_str(), taken.current_save()), ("taken", Some(by_phone.save)));
    asked(laptop.set("slot-1", &castle(9), titled().over(2)).expect("it is JSON")).expect("it was chosen");

    let before = asked(phone.before("slot-1")).expect("it may");
    assert_eq!(before.iter().map(|it| it.version).collect::<Vec<_>>(), [2, 1]);
    let phones = asked(phone.get_version("slot-1", 2)).expect("it was kept");
    assert_eq!(phones.value::<Castle>().expect("it is one"), castle(8));
    assert_eq!(asked(phone.list()).expect("it may").len(), 1);
    assert_eq!(refused(phone.remove("slot-1", Some(2))).code, "stale");
    asked(phone.remove("slot-1", Some(3))).expect("it is this one");
    assert_eq!(asked(phone.list()).expect("it may"), []);
    let large = refused(laptop.set_bytes("slot-2", &[0; 41_000], Save::default()));
    assert_eq!((large.code.as_str(), large.path.as_deref()), ("too_large", Some("bytes")));
}
