//! Boards over real sockets: typed calls of two accounts.

mod support;

use parlor::online::{self, Account, AccountError, Pending, Score};
use parlor_services::OnlineConfig;
use parlor_testing::Hall;
use serde_json::json;
use support::Patience;

/// A server for development: a first score makes its board.
fn hall() -> Hall {
    Hall::start_by(|config, folder| {
        let store = folder.join("parlor.db").to_str().expect("its name is UTF-8").to_owned();
        parlor_services::start(config, OnlineConfig::new(store))
    })
}

fn account(hall: &Hall, name: &str) -> Account {
    online::sign_in(&hall.address()).name(name).account("tanks").expect("the address is one")
}

fn asked<T>(mut pending: Pending<T>) -> Result<T, AccountError> {
    let patience = Patience::new();
    loop {
        if let Some(answer) = pending.poll() {
            return answer;
        }
        patience.look_again(|| "no answer came".into());
    }
}

#[test]
fn t3_players_submit_scores_and_read_ranks() {
    let hall = hall();
    let (ada, bob) = (account(&hall, "ada"), account(&hall, "bob"));
    let (hers, his) = (ada.board("laps"), bob.board("laps"));
    let first = asked(hers.submit(5)).expect("it may");
    assert!(first.improved && !first.again && first.score == 5);
    let extra = json!({ "car": "red" }).as_object().cloned();
    let better = Score { score: 9, sub: 2, extra: extra.clone(), id: Some("one".to_owned()) };
    let submitted = asked(his.submit_with(better.clone())).expect("it may");
    assert_eq!((submitted.score, submitted.sub, submitted.again), (9, 2, false));
    assert!(asked(his.submit_with(better)).expect("it may").again, "it is the same submission");
    let worse = asked(his.submit(1)).expect("it may");
    assert_eq!((worse.score, worse.improved), (9, false));

    let top = asked(hers.top(1, 10)).expect("it may");
    let seen: Vec<_> =
        top.entries.iter().map(|entry| (entry.rank, entry.score, entry.name.as_deref())).collect();
    assert_eq!(seen, [(1, 9, Some("bob")), (2, 5, Some("ada"))]);
    assert_eq!((top.entries_total, &top.entries[0].extra), (2, &extra));
    assert_eq!(asked(hers.top(2, 10)).expect("it may").entries, top.entries[1..]);
    assert_eq!(asked(hers.around(1)).expect("it may").entries, top.entries[1..]);
    let of = asked(hers.of(&[&top.entries[1].account, "nobody"])).expect("it may");
    assert_eq!(of.entries, top.entries[1..]);

    let listed = asked(ada.boards(None)).expect("it may");
    assert_eq!((listed.boards.len(), listed.boards[0].board.as_str(), listed.next), (1, "laps", None));
    assert_eq!(listed.boards[0].writers, "players");
    let seasons = asked(hers.seasons()).expect("it may");
    assert_eq!(seasons.iter().map(|one| (one.season, one.entries)).collect::<Vec<_>>(), [(0, 2)]);
    assert_eq!(asked(hers.season(0).top(1, 10)).expect("it may"), top);

    asked(hers.remove()).expect("it is its own");
    let why = asked(hers.around(3));
    assert!(matches!(&why, Err(AccountError::Refused(error)) if error.code == "no_such_entry"), "{why:?}");
    let why = asked(ada.board("no such").top(1, 10));
    assert!(matches!(&why, Err(AccountError::Refused(error)) if error.code == "no_such_board"), "{why:?}");
}
