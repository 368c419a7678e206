//! Spectators, and a host that hands its part over.

use crate::support::{Net, fault, ok, taken, text};
use parlor_sync::value::Value;
use parlor_wasm::exports::play;

const SPECTATOR: i32 = 128;

#[test]
fn a_spectator_is_told_of_and_watches_and_is_no_player() {
    let mut net = Net::new();
    let host = net.host([("spectators", 1.into())]);
    let watcher = net.join(host, [("name", "wei".into()), ("spectate", true.into())]);
    net.until("the host hears of the spectator", |net| net.pages[host].last("spectatorJoined").is_some());
    for page in [host, watcher] {
        let (count, all) = net.at(page, || (ok(play::spectators()), taken()));
        assert_eq!((count, text(&all[0], "name")), (1, "wei"));
        assert_eq!(all[0].field("isSpectator"), Some(&Value::Bool(true)));
        assert_eq!(net.at(page, || ok(play::players())), 1);
    }
    assert_eq!(net.at(watcher, || play::flags()) & SPECTATOR, SPECTATOR);
    assert_eq!(net.at(host, || play::flags()) & SPECTATOR, 0);
    let now = net.now_us();
    net.at(watcher, move || ok(play::leave(now)));
    net.until("the host hears that the spectator left", |net| {
        net.pages[host].last("spectatorLeft").is_some()
    });
    assert_eq!(net.at(host, || ok(play::spectators())), 0);
}

#[test]
fn a_host_hands_its_part_over_and_stays() {
    let mut net = Net::new();
    let host = net.host([("hostMigration", true.into())]);
    let guest = net.join(host, []);
    let now = net.now_us();
    let no = net.at(guest, move || (play::hand_over(-2, now), fault()));
    assert_eq!(no.0, -1);
    assert!(no.1.contains("not_host"), "{}", no.1);
    net.at(host, move || ok(play::hand_over(1, now)));
    net.until("the guest is the host", |net| net.at(guest, || play::flags()) & 2 == 2);
    net.until("the former host follows", |net| net.at(host, || play::host()) == 1);
    assert_eq!(net.at(host, || play::flags()) & 3, 1, "open, and a guest");
}
