//! Matches that a server keeps, lists and reads back, over real sockets.

use crate::hall::Hall;
use data_encoding::BASE64;
use futures_util::future::join_all;
use parlor_faultdisk::Disk;
use parlor_proto::wire::data::MatchData;
use parlor_proto::wire::handshake::{Auth, Hello, Intent, Refusal, RoomSettings};
use parlor_proto::{MemberId, RoomCode};
use parlor_services::store::Role;
use parlor_testing::{Client, joining, opening, within};
use serde_json::{Value, json};

/// A ticket for what a hello asks, as whoever has the access token.
async fn as_account(hall: &Hall, player: &str, hello: Hello) -> Hello {
    let what = match &hello.intent {
        Intent::Join { code, .. } => json!({ "room": code.as_str() }),
        _ => json!({ "create": true }),
    };
    let ticket = hall.good("POST", "/admission", player, what).await;
    Hello { auth: Auth::Token(ticket["token"].as_str().unwrap().to_owned().into()), ..hello }
}

/// A hello for a match of which nothing is kept.
fn passing(label: &str, max_players: u16) -> Hello {
    let hello = opening(label, max_players);
    let Intent::Create(settings) = hello.intent.clone() else { return hello };
    Hello { intent: Intent::Create(RoomSettings { keep: false, ..settings }), ..hello }
}

/// Two players in a kept match, with their access tokens.
struct Two {
    ada: Client,
    bob: Client,
    ada_token: String,
    bob_token: String,
    id: RoomCode,
}

impl Two {
    async fn meet(hall: &Hall) -> Two {
        let ((ada_token, _), (bob_token, _)) = (hall.player("ada").await, hall.player("bob").await);
        let mut ada = hall.server.quic(as_account(hall, &ada_token, opening("ranked", 4)).await).await;
        let id = ada.welcome().await.code;
        let hello = as_account(hall, &bob_token, joining(id, None)).await;
        let mut bob = hall.server.websocket(true, hello).await;
        bob.welcome().await;
        Two { ada, bob, ada_token, bob_token, id }
    }

    /// Both talk at once; gives what each of them saw, which must be the same.
    async fn talk(&mut self, rounds: i64) -> Vec<(u64, MemberId, MatchData)> {
        for op in 0..rounds {
            self.ada.data(op, format!("ada {op}")).await;
            self.bob.data(-op, format!("bob {op}")).await;
        }
        let (mut seen_by_ada, mut seen_by_bob) = (Vec::new(), Vec::new());
        for _ in 0..2 * rounds {
            seen_by_ada.push(self.ada.got().await);
            seen_by_bob.push(self.bob.got().await);
        }
        assert_eq!(seen_by_ada, seen_by_bob);
        seen_by_ada
    }
}

impl Hall {
    /// All entries of a match's log, read a few at a time, and what is said about the match; nothing, if there is none.
    async fn find_log(&self, token: &str, id: RoomCode) -> Option<(Value, Vec<Value>)> {
        let (mut entries, mut from) = (Vec::new(), 0);
        loop {
            let path = format!("/matches/{id}/log?from={from}&limit=7");
            let (status, page) = self.call("GET", &path, Some(token), json!({})).await;
            if status == 404 {
                return None;
            }
            assert_eq!(status, 200, "{page}");
            entries.extend(page["entries"].as_array().unwrap().iter().cloned());
            match page["next"].as_u64() {
                Some(next) => from = next,
                None => return Some((page["match"].clone(), entries)),
            }
        }
    }

    async fn log(&self, token: &str, id: RoomCode) -> (Value, Vec<Value>) {
        self.find_log(token, id).await.expect("there is such a match")
    }

    /// The log once it says what is awaited: what is kept comes to the store a little later.
    async fn log_when(
        &self,
        token: &str,
        id: RoomCode,
        is_awaited: impl Fn(&Value, &[Value]) -> bool,
    ) -> (Value, Vec<Value>) {
        within(async {
            loop {
                if let Some((about, entries)) = self.find_log(token, id).await
                    && is_awaited(&about, &entries)
                {
                    return (about, entries);
                }
            }
        })
        .await
    }
}

/// The data of a log, as members saw it.
fn data_of(entries: &[Value]) -> Vec<(u64, MemberId, MatchData)> {
    let data = entries.iter().map(|entry| &entry["what"]).filter(|what| what["kind"] == "data");
    data.map(|what| {
        let payload = BASE64.decode(what["payload"].as_str().unwrap().as_bytes()).unwrap().into();
        let from = MemberId(what["from"].as_u64().unwrap().try_into().unwrap());
        (what["order"].as_u64().unwrap(), from, MatchData { op: what["op"].as_i64().unwrap(), payload })
    })
    .collect()
}

fn kinds(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["what"]["kind"].as_str().unwrap()).collect()
}

fn numbers(entries: &[Value]) -> Vec<u64> {
    entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn n6_a_kept_match_is_read_back_after_a_restart_as_its_members_saw_it() {
    let hall = Hall::open().await;
    let mut two = Two::meet(&hall).await;
    let seen = two.talk(20).await;
    two.bob.leave().await;
    two.bob.ended().await;
    two.ada.leave().await;
    two.ada.ended().await;
    let hall = hall.again(true).await;
    let (about, entries) = hall.log(&two.ada_token, two.id).await;
    assert_eq!(data_of(&entries), seen);
    assert_eq!(numbers(&entries), (0..entries.len() as u64).collect::<Vec<_>>());
    assert_eq!((&about["label"], &about["ending"]), (&json!("ranked"), &json!("ended")), "{about}");
    assert_eq!(about["entries"], entries.len());
    assert!(about["cut"].is_null(), "{about}");
    let kinds = kinds(&entries);
    assert_eq!((kinds[0], kinds[1], kinds[kinds.len() - 1]), ("opened", "joined", "ended"));
    let joined: Vec<&Value> =
        entries.iter().map(|entry| &entry["what"]).filter(|what| what["kind"] == "joined").collect();
    let accounts = [hall.player("ada").await.1, hall.player("bob").await.1];
    assert_eq!(joined.iter().map(|what| what["user"].as_str().unwrap()).collect::<Vec<_>>(), accounts);
}

#[tokio::test]
async fn threat_32_a_kept_match_is_for_those_who_were_in_it_and_for_operators() {
    let hall = Hall::open().await;
    let mut two = Two::meet(&hall).await;
    let (eve, _) = hall.player("eve").await;
    let seen = two.talk(1).await;
    let is_there = |_: &Value, entries: &[Value]| data_of(entries).len() == seen.len();
    let (_, entries) = hall.log_when(&two.ada_token, two.id, is_there).await;
    for token in [&two.ada_token, &two.bob_token] {
        let mine = hall.good("GET", "/matches/kept", token, json!({})).await;
        assert_eq!(mine["matches"][0]["id"], two.id.as_str());
        assert_eq!(hall.log(token, two.id).await.1, entries);
    }
    // Who was not in it does not even hear that it was.
    assert_eq!(hall.good("GET", "/matches/kept", &eve, json!({})).await["matches"], json!([]));
    let log = format!("/matches/{}/log", two.id);
    let (status, of_another) = hall.call("GET", &log, Some(&eve), json!({})).await;
    let of_none = hall.call("GET", "/matches/ABCDEFGHJKMNPQRS/log", Some(&eve), json!({})).await;
    assert_eq!((status, of_another), of_none);
    assert_eq!(of_none.1["error"]["code"], "no_such_match");
    let operator = hall.operator(Role::Server);
    assert_eq!(hall.log(&operator, two.id).await.1, entries);
    hall.good("POST", &format!("/matches/{}/forget", two.id), &operator, json!({})).await;
    assert_eq!(hall.bad("GET", &log, &two.ada_token, json!({})).await, "no_such_match");
    assert_eq!(hall.good("GET", "/matches/kept", &operator, json!({})).await["matches"], json!([]));
}

#[tokio::test]
async fn a_match_whose_server_was_killed_says_so() {
    let hall = Hall::open().await;
    let mut two = Two::meet(&hall).await;
    let seen = two.talk(3).await;
    // That much is stored.
    hall.log_when(&two.ada_token, two.id, |_, entries| data_of(entries).len() == seen.len()).await;
    let hall = hall.again(false).await;
    let (about, entries) = hall.log(&two.ada_token, two.id).await;
    assert_eq!(about["ending"], "server_ended", "{about}");
    assert_eq!(data_of(&entries), seen);
    assert!(!kinds(&entries).contains(&"ended"), "its members did not leave");
    // Its id leads to no match any more.
    let mut late = hall.server.quic(joining(two.id, None)).await;
    assert_eq!(late.refusal().await, Refusal::NoSuchRoom);
}

#[tokio::test]
async fn threat_30_a_match_goes_on_while_its_store_stands_still_and_the_log_says_where_it_ends() {
    const PAYLOAD_BYTES: usize = 60_000;
    const WAITING_BYTES_MAX: i64 = 16 << 20;
    const LOUD: i64 = 32;
    let mut disk = None;
    let hall = Hall::changed(|setup| {
        let store = &setup.online.store;
        disk = Some(Disk::over(std::path::Path::new(store).parent().unwrap(), 1).unwrap());
        setup.config.kept_matches = 64;
    })
    .await;
    let disk = disk.unwrap();
    let mut two = Two::meet(&hall).await;
    let mut seen = two.talk(3).await;
    hall.log_when(&two.ada_token, two.id, |_, entries| data_of(entries).len() == seen.len()).await;
    let (loud_token, _) = hall.player("loud").await;
    let mut hellos = Vec::new();
    for _ in 0..LOUD {
        hellos.push(as_account(&hall, &loud_token, opening("loud", 2)).await);
    }
    disk.stand_still(true);
    // Somebody else fills what may wait for the store.
    let payload = vec![7; PAYLOAD_BYTES];
    let inside = hall.server.server.inside();
    let loud = hellos.into_iter().map(async |hello| {
        let link = inside.connect(&inside.address().unwrap()).await.unwrap();
        let mut loud = Client::new(link, hello);
        loud.welcome().await;
        for op in 0..WAITING_BYTES_MAX / LOUD / PAYLOAD_BYTES as i64 + 1 {
            loud.data(op, payload.clone()).await;
            assert_eq!(loud.got().await.2.op, op);
        }
        loud
    });
    let _loud = join_all(loud).await;
    for op in 0..10 {
        two.ada.data(op, payload.clone()).await;
        assert_eq!(two.bob.got().await.2.op, op, "the members go on");
        seen.push(two.ada.got().await);
    }
    disk.stand_still(false);
    let (about, entries) = hall.log_when(&two.ada_token, two.id, |about, _| !about["cut"].is_null()).await;
    assert_eq!(about["cut"], "store unavailable");
    assert_eq!(about["ending"], Value::Null, "the match goes on");
    let kept = data_of(&entries);
    assert_eq!(kept, seen[..kept.len()], "what is there is there without a hole");
    assert!(kept.len() >= 6 && kept.len() < seen.len(), "{} of {}", kept.len(), seen.len());
    assert_eq!(entries.last().unwrap()["what"], json!({ "kind": "cut", "why": "store unavailable" }));
    assert_eq!(numbers(&entries), (0..entries.len() as u64).collect::<Vec<_>>());
    // Nothing follows, though the store is there again; and its end is told.
    two.talk(1).await;
    two.bob.leave().await;
    two.ada.leave().await;
    let is_over = |about: &Value, _: &[Value]| about["ending"] == "ended";
    let (_, after) = hall.log_when(&two.ada_token, two.id, is_over).await;
    assert_eq!(after, entries);
}

#[tokio::test]
async fn matches_are_found_by_what_they_are_and_those_with_a_secret_by_nobody() {
    let hall = Hall::open().await;
    let (eve, _) = hall.player("eve").await;
    let mut open = Vec::new();
    let secret = |hello: Hello| match hello.intent.clone() {
        Intent::Create(settings) => {
            let intent = Intent::Create(RoomSettings { secret: Some("sesame".into()), ..settings });
            Hello { intent, ..hello }
        }
        _ => hello,
    };
    let of_golf = Hello { app: "golf".into(), ..passing("ranked", 4) };
    let staging = Hello { environment: "staging".into(), ..passing("ranked", 4) };
    let production = Hello { environment: "production".into(), ..passing("casual", 4) };
    for hello in [
        passing("ranked", 4),
        passing("ranked", 2),
        production,
        secret(passing("ranked", 4)),
        of_golf,
        staging,
        parlor_testing::creating(None, None, 4),
    ] {
        let mut client = hall.server.quic(hello).await;
        let id = client.welcome().await.code;
        open.push((client, id));
    }
    let mut guest = hall.server.quic(joining(open[1].1, None)).await;
    guest.welcome().await;
    let found = async |query: &str| -> Vec<String> {
        let list = hall.good("GET", &format!("/matches{query}"), &eve, json!({})).await;
        let mut ids: Vec<String> = list["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().into())
            .collect();
        ids.sort();
        ids
    };
    let these = |places: &[usize]| -> Vec<String> {
        let mut ids: Vec<String> = places.iter().map(|place| open[*place].1.as_str().into()).collect();
        ids.sort();
        ids
    };
    assert_eq!(found("").await, these(&[0, 1, 2]));
    assert_eq!(found("?label=ranked").await, these(&[0, 1]));
    assert_eq!(found("?label=casual").await, these(&[2]));
    assert_eq!(found("?label=none").await, these(&[]));
    assert_eq!(found("?min_members=2").await, these(&[1]));
    assert_eq!(found("?max_members=1").await, these(&[0, 2]));
    assert_eq!(found("?open_seats=true").await, these(&[0, 2]));
    let (mut pages, mut next) = (Vec::new(), String::new());
    loop {
        let page = hall.good("GET", &format!("/matches?limit=1{next}"), &eve, json!({})).await;
        pages.extend(
            page["matches"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(after) => next = format!("&after={after}"),
            None => break,
        }
    }
    assert_eq!(pages, these(&[0, 1, 2]));
    let one = &hall.good("GET", "/matches?min_members=2", &eve, json!({})).await["matches"][0];
    assert_eq!(
        (&one["label"], &one["members"], &one["max_members"]),
        (&json!("ranked"), &json!(2), &json!(2))
    );
}
