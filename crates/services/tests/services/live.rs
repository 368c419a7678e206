//! Operators and live rooms: over the services, with real members, on one shard and on several.

use crate::hall::Hall;
use core::num::NonZeroU16;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Hello, Redirect};
use parlor_proto::{CloseReason, MemberId};
use parlor_services::store::Role;
use parlor_testing::{Client, creating, joining};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The codes of all rooms that an operator of `tanks` in production is told, in parts of `limit`.
async fn listed(hall: &Hall, limit: usize) -> BTreeSet<String> {
    let server = hall.operator(Role::Server);
    let (mut codes, mut after) = (BTreeSet::new(), String::new());
    loop {
        let part = hall.good("GET", &format!("/admin/live?limit={limit}{after}"), &server, json!({})).await;
        let rooms = part["rooms"].as_array().unwrap();
        assert!(rooms.len() <= limit);
        for room in rooms {
            assert!(codes.insert(room["code"].as_str().unwrap().to_owned()), "{room} comes twice");
        }
        match part["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return codes,
        }
    }
}

#[tokio::test]
async fn an_operator_sees_the_rooms_of_its_game_and_who_is_in_them() {
    let hall = Hall::open().await;
    let (_host, _guest, code) = hall.server.room().await;
    let (_others, other) = {
        let hello = Hello { environment: "staging".into(), ..creating(None, None, 4) };
        let mut host = hall.server.quic(hello).await;
        let code = host.welcome().await.code;
        (host, code)
    };
    let named = Hello { environment: "production".into(), ..creating(None, Some("hush"), 4) };
    let mut third = hall.server.quic(named).await;
    let third_code = third.welcome().await.code;
    let expected: BTreeSet<String> = [code, third_code].map(|code| code.as_str().to_owned()).into();
    assert_eq!(listed(&hall, 50).await, expected, "rooms of another environment are not shown");
    assert_eq!(listed(&hall, 1).await, expected);

    let server = hall.operator(Role::Server);
    let shown = hall.good("GET", &format!("/admin/live/{code}"), &server, json!({})).await;
    let room = &shown["room"];
    assert_eq!(
        (&room["kind"], &room["members"], &room["away"]),
        (&json!("player_hosted"), &json!(2), &json!(0))
    );
    assert_eq!((&room["app"], &room["has_secret"]), (&json!("tanks"), &json!(false)));
    let of = |at: usize, field: &str| shown["members"][at][field].clone();
    assert_eq!((of(0, "id"), of(0, "name"), of(0, "link")), (json!(0), json!("ada"), json!("quic")));
    assert_eq!((of(0, "is_host"), of(1, "is_host")), (json!(true), json!(false)));
    assert_eq!((of(1, "id"), of(1, "link"), of(1, "connected")), (json!(1), json!("websocket"), json!(true)));
    for path in [format!("/admin/live/{other}"), "/admin/live/ZZZZ".to_owned()] {
        assert_eq!(hall.bad("GET", &path, &server, json!({})).await, "no_such_room", "{path}");
    }
    assert_eq!(hall.bad("GET", "/admin/live/K7-M", &server, json!({})).await, "bad_input");
}

#[tokio::test]
async fn an_operator_removes_a_member_and_ends_a_room() {
    let hall = Hall::open().await;
    let (mut host, mut guest, code) = hall.server.room().await;
    let admin = hall.operator(Role::Admin);
    let at = |rest: &str| format!("/admin/live/{code}{rest}");
    let why = json!({ "reason": "he cheats" });
    assert_eq!(hall.bad("POST", &at("/members/7/remove"), &admin, why.clone()).await, "no_such_member");
    assert_eq!(hall.bad("POST", &at("/members/x/remove"), &admin, why.clone()).await, "bad_input");
    let long = json!({ "reason": "x".repeat(201) });
    assert_eq!(hall.bad("POST", &at("/members/1/remove"), &admin, long).await, "bad_input");
    hall.good("POST", &at("/members/1/remove"), &admin, why).await;
    assert_eq!(guest.closed().await, CloseReason::Kicked { reason: "he cheats".into() });
    let shown = hall.good("GET", &at(""), &admin, json!({})).await;
    assert_eq!(shown["members"].as_array().unwrap().len(), 1);
    hall.good("POST", &at("/end"), &admin, json!({ "reason": "closing time" })).await;
    assert_eq!(host.closed().await, CloseReason::RoomEnded { reason: "closing time".into() });
    assert_eq!(hall.bad("POST", &at("/end"), &admin, json!({})).await, "no_such_room");
    // A room of another environment is not there for this operator.
    let hello = Hello { environment: "staging".into(), ..creating(None, None, 4) };
    let mut other = hall.server.quic(hello).await;
    let code = other.welcome().await.code;
    for (rest, input) in [("end", json!({})), ("members/0/remove", json!({}))] {
        let path = format!("/admin/live/{code}/{rest}");
        assert_eq!(hall.bad("POST", &path, &admin, input).await, "no_such_room");
    }
    assert_eq!(hall.server.server.room(code).await.unwrap().players, 1);
}

#[tokio::test]
async fn the_rooms_of_all_shards_are_listed() {
    let hall = Hall::changed(|setup| setup.config.shards = NonZeroU16::new(3).unwrap()).await;
    let (mut hosts, mut opened) = (Vec::new(), BTreeSet::new());
    let mut shards = BTreeSet::new();
    while hosts.len() < 12 || shards.len() < 3 {
        // Whoever opens a room is sent to a shard.
        let mut port = hall.server.server.local_port();
        loop {
            let mut host =
                Client::new(hall.server.quic_link_to(port).await.unwrap(), creating(None, None, 4));
            match host.event().await {
                Event::Welcome(welcome) => {
                    opened.insert(welcome.code.as_str().to_owned());
                    shards.insert(port);
                    hosts.push((host, welcome.code, port));
                    break;
                }
                Event::Rejected(Rejection::Redirect(Redirect { address })) => {
                    port = address.trim_start_matches(':').parse().unwrap();
                }
                event => panic!("{event:?}"),
            }
        }
    }
    for limit in [1, 2, 5, 100] {
        assert_eq!(listed(&hall, limit).await, opened, "in parts of {limit}");
    }
    // Whichever shard it lives on.
    let admin = hall.operator(Role::Admin);
    for (host, code, port) in &mut hosts {
        let link = hall.server.quic_link_to(*port).await.unwrap();
        let mut guest = Client::new(link, joining(*code, None));
        assert_eq!(guest.welcome().await.member, MemberId(1));
        let shown: Value = hall.good("GET", &format!("/admin/live/{code}"), &admin, json!({})).await;
        assert_eq!(shown["members"].as_array().unwrap().len(), 2);
        hall.good("POST", &format!("/admin/live/{code}/end"), &admin, json!({})).await;
        assert_eq!(host.closed().await, CloseReason::RoomEnded { reason: String::new() });
    }
    assert!(listed(&hall, 10).await.is_empty());
}
