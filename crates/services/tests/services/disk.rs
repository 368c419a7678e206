//! A full store: what is rejected by name, what continues, and what makes room again.

use crate::hall::Hall;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use parlor_services::store::{CREDENTIALS_MAX, DATA_MIN, Limits, Role};
use parlor_testing::{joining, opening};
use serde_json::{Value, json};

/// A ticket for opening a match, as whoever has the access token.
async fn as_account(hall: &Hall, player: &str, hello: Hello) -> Hello {
    let ticket = hall.good("POST", "/admission", player, json!({ "create": true })).await;
    Hello { auth: Auth::Token(ticket["token"].as_str().unwrap().to_owned().into()), ..hello }
}

#[tokio::test]
async fn threat_43_matches_are_kept_for_accounts_alone_and_only_so_many_at_once() {
    let hall = Hall::changed(|setup| setup.config.kept_matches = 3).await;
    let mut stranger = hall.server.quic(opening("", 4)).await;
    assert_eq!(stranger.refusal().await, Refusal::KeepNeedsUser);
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut client = hall.server.quic(as_account(&hall, &ada, opening("", 4)).await).await;
        client.welcome().await;
        open.push(client);
    }
    let mut fourth = hall.server.quic(as_account(&hall, &ada, opening("", 4)).await).await;
    let refused = fourth.refusal().await;
    assert!(
        matches!(&refused, Refusal::KeepQuota { detail } if detail.starts_with("3 matches")),
        "{refused}"
    );
    // Another account has its own, and one that is over makes room.
    let mut other = hall.server.quic(as_account(&hall, &bob, opening("", 4)).await).await;
    other.welcome().await;
    let mut first = open.remove(0);
    first.leave().await;
    first.ended().await;
    let mut again = hall.server.quic(as_account(&hall, &ada, opening("", 4)).await).await;
    let room = again.welcome().await.code;
    let status = hall.good("GET", "/admin/status", &hall.operator(Role::Admin), json!({})).await;
    assert_eq!(status["kept_matches_refused"], 2, "{status}");
    // Whoever joins it needs no account.
    let mut guest = hall.server.quic(joining(room, None)).await;
    guest.welcome().await;
}

#[tokio::test]
async fn threat_43_no_match_is_kept_for_strangers_where_accounts_are_closed() {
    let hall = Hall::with(false, None).await;
    for _ in 0..20 {
        let mut stranger = hall.server.quic(opening("", 4)).await;
        assert_eq!(stranger.refusal().await, Refusal::KeepNeedsUser);
    }
    let kept = hall.good("GET", "/matches/kept", &hall.operator(Role::Admin), json!({})).await;
    assert_eq!(kept["matches"], json!([]));
}

impl Hall {
    /// Opens a room with as much metadata as one may have. Gives its id, or the code of the refusal.
    async fn heavy_room(&self, player: &str) -> Result<String, String> {
        let metadata = json!({ "junk": "x".repeat(15_000) });
        let input = json!({ "config": { "auto_start": false }, "metadata": metadata });
        let (status, answer) = self.call("POST", "/rooms", Some(player), input).await;
        match status {
            200 => Ok(answer["room"]["id"].as_str().unwrap().to_owned()),
            _ => Err(answer["error"]["code"].as_str().unwrap().to_owned()),
        }
    }

    async fn guest(&self) -> Result<String, String> {
        let (status, answer) = self.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
        match status {
            200 => Ok(answer["access_token"].as_str().unwrap().to_owned()),
            _ => Err(answer["error"]["code"].as_str().unwrap().to_owned()),
        }
    }

    fn store_bytes(&self) -> u64 {
        std::fs::metadata(self.server.folder.path().join("parlor.db")).unwrap().len()
    }
}

#[tokio::test]
async fn threat_43_many_guests_fill_the_store_to_its_bound_and_deleting_makes_room_again() {
    const ROOMS: u64 = 6;
    let limits = Limits { data_max: DATA_MIN, open_rooms: ROOMS, ..Limits::default() };
    let hall = Hall::changed(|setup| setup.online.limits = limits).await;
    let (ada, ada_id) = hall.player("ada").await;
    let own = hall.heavy_room(&ada).await.unwrap();
    let (mut guests, mut rooms, mut quotas) = (0, Vec::new(), 0);
    'filling: loop {
        let guest = match hall.guest().await {
            Ok(guest) => guest,
            Err(code) => {
                assert_eq!(code, "store_full");
                break;
            }
        };
        guests += 1;
        loop {
            match hall.heavy_room(&guest).await {
                Ok(room) => rooms.push((guest.clone(), room)),
                Err(code) if code == "quota" => break quotas += 1,
                Err(code) => {
                    assert_eq!(code, "store_full");
                    break 'filling;
                }
            }
        }
        assert!(guests < 200, "nothing is refused");
    }
    assert!(quotas >= 2 && rooms.len() as u64 >= 2 * ROOMS, "{quotas} guests had their rooms");
    assert!(hall.store_bytes() <= DATA_MIN, "{}", hall.store_bytes());
    // What is there goes on: reading, moves, signing in, and what gives room back.
    let path = format!("/rooms/{own}");
    hall.good("GET", &path, &ada, json!({})).await;
    let (ada, _) = hall.player("ada").await;
    hall.good("POST", &format!("{path}/messages"), &ada, json!({ "type": "hello" })).await;
    let status = hall.good("GET", "/admin/status", &hall.operator(Role::Admin), json!({})).await;
    assert!(status["store_refused_full"].as_u64() > Some(0), "{status}");
    assert!(status["store_bytes"].as_u64() <= status["store_bytes_max"].as_u64(), "{status}");
    let (guest, _) = rooms[0].clone();
    let (status, refused) = hall.call("POST", "/rooms", Some(&guest), json!({})).await;
    assert!([409, 507].contains(&status), "{refused}");
    for (guest, room) in &rooms {
        hall.good("POST", &format!("/rooms/{room}/delete"), guest, json!({})).await;
    }
    hall.heavy_room(&ada).await.unwrap();
    hall.guest().await.unwrap();
    hall.good("POST", "/account/delete", &ada, json!({ "account": ada_id })).await;
}

#[tokio::test]
async fn a_room_is_deleted_by_whoever_opened_it_once_nobody_else_plays_there() {
    let hall = Hall::open().await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let room = opened["room"]["id"].as_str().unwrap().to_owned();
    let (path, delete) = (format!("/rooms/{room}"), format!("/rooms/{room}/delete"));
    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    assert_eq!(hall.bad("POST", &delete, &bob, json!({})).await, "not_host");
    assert_eq!(hall.bad("POST", &delete, &ada, json!({})).await, "wrong_phase");
    hall.good("POST", &format!("{path}/leave"), &bob, json!({})).await;
    hall.good("POST", &delete, &ada, json!({})).await;
    assert_eq!(hall.bad("GET", &path, &ada, json!({})).await, "no_such_room");
    assert_eq!(hall.good("GET", "/rooms/mine", &ada, json!({})).await["rooms"], json!([]));
    // An operator deletes what waits.
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let delete = format!("/rooms/{}/delete", opened["room"]["id"].as_str().unwrap());
    hall.good("POST", &delete, &hall.operator(Role::Server), json!({})).await;
}

#[tokio::test]
async fn threat_43_one_more_way_to_sign_in_than_an_account_may_have_is_refused_by_name() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let device = |number: u64| json!({ "device": format!("another device of ada: {number}") });
    for number in 1..CREDENTIALS_MAX {
        hall.good("POST", "/account/credentials", &ada, device(number)).await;
    }
    let more = hall.bad("POST", "/account/credentials", &ada, device(CREDENTIALS_MAX)).await;
    assert_eq!(more, "too_many_credentials");
    let own = hall.good("GET", "/account", &ada, json!({})).await;
    assert_eq!(own["credentials"].as_array().unwrap().len() as u64, CREDENTIALS_MAX);
    hall.good("POST", "/account/credentials/remove", &ada, device(1)).await;
    hall.good("POST", "/account/credentials", &ada, device(CREDENTIALS_MAX)).await;
}

impl Hall {
    /// All that is stored about an account, by kind.
    async fn exported(&self, path: &str, token: &str) -> Vec<(String, Value)> {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let after = next.map(|next: String| format!("after={next}")).unwrap_or_default();
            let joint = if path.contains('?') { '&' } else { '?' };
            let part = self.good("GET", &format!("{path}{joint}{after}"), token, json!({})).await;
            let kind = part["kind"].as_str().unwrap().to_owned();
            let entries = part["entries"].as_array().unwrap().iter().cloned();
            all.extend(entries.map(|entry| (kind.clone(), entry)));
            match part["next"].as_str() {
                Some(after) => next = Some(after.to_owned()),
                None => return all,
            }
        }
    }
}

#[tokio::test]
async fn an_account_is_exported_and_deleted_and_its_rooms_go_on_without_it() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut rooms = Vec::new();
    for _ in 0..12 {
        let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
        rooms.push(opened["room"]["id"].as_str().unwrap().to_owned());
    }
    hall.good("POST", &format!("/rooms/{}/join", rooms[0]), &bob, json!({})).await;
    let all = hall.exported("/account/export", &ada).await;
    let count = |kind: &str| all.iter().filter(|(of, _)| of == kind).count();
    assert_eq!((count("account"), count("sign_ins"), count("rooms")), (1, 1, 12), "{all:?}");
    assert!(count("inbox") >= 1, "that bob came");
    assert_eq!(all[0].1["account"]["id"], json!(ada_id));
    let admin = hall.operator(Role::Admin);
    assert_eq!(hall.exported(&format!("/admin/accounts/export?account={ada_id}"), &admin).await, all);

    let wrong = json!({ "account": bob_id });
    assert_eq!(hall.bad("POST", "/account/delete", &ada, wrong).await, "bad_input");
    hall.good("POST", "/account/delete", &ada, json!({ "account": ada_id })).await;
    // Its token is good for a while, and is good for nothing.
    assert_eq!(hall.bad("GET", "/account", &ada, json!({})).await, "banned");
    assert_eq!(hall.bad("POST", "/rooms", &ada, json!({})).await, "banned");
    let left = hall.good("GET", &format!("/rooms/{}", rooms[0]), &bob, json!({})).await;
    let players = left["room"]["players"].as_array().unwrap();
    assert_eq!(players.iter().map(|player| &player["id"]).collect::<Vec<_>>(), [&json!(bob_id)]);
    // The device makes another account.
    assert_ne!(hall.player("ada").await.1, ada_id);
    hall.good("POST", "/admin/accounts/delete", &admin, json!({ "account": bob_id })).await;
    let again = hall.bad("POST", "/admin/accounts/delete", &admin, json!({ "account": bob_id })).await;
    assert_eq!(again, "not_found");
}

#[tokio::test]
async fn threat_43_a_server_that_starts_deletes_what_is_over() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let (cyd, _) = hall.player("cyd").await;
    let mut rooms = Vec::new();
    for owner in [&ada, &bob, &cyd] {
        for _ in 0..15 {
            rooms.push(hall.heavy_room(owner).await.unwrap());
        }
    }
    let store = rusqlite::Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    // As if their time had come: more than one part of them, and one not yet.
    let over = store.execute("UPDATE room_lives SET until_ms = 1 WHERE room <> ?1", [&rooms[0]]).unwrap();
    assert_eq!(over, 44);
    drop(store);
    let hall = hall.again(true).await;
    let admin = hall.operator(Role::Admin);
    parlor_testing::within(async {
        while hall.good("GET", "/admin/status", &admin, json!({})).await["store_swept"]["rooms"] != 44 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let left = hall.good("GET", "/rooms/mine", &ada, json!({})).await;
    assert_eq!(left["rooms"].as_array().unwrap().len(), 1);
    let status = hall.good("GET", "/admin/status", &admin, json!({})).await;
    assert_eq!((&status["open_rooms"], &status["store_rows"]["rooms"]), (&json!(1), &json!(1)), "{status}");
}
