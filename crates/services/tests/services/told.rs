//! Notices outside of realtime rooms: webhooks and their order, and JSON sockets at the server's end.

use crate::hall::{Hall, told_service};
use futures_util::StreamExt;
use parlor_services::WebhookConfig;
use parlor_services::store::OUTBOX_BYTES_MAX;
use parlor_testing::within;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

#[tokio::test]
async fn json_sockets_are_told_that_the_server_goes_down() {
    let hall = Hall::open().await;
    let (nobody, mut ada) = (hall.socket().await, hall.socket().await);
    let signed_in =
        ada.ask("auth.device", json!({ "app": "tanks", "device": "the device of ada", "name": "ada" })).await;
    assert!(signed_in["output"]["access_token"].is_string(), "{signed_in}");
    let hearing = [nobody.socket, ada.socket].map(|mut socket| {
        tokio::spawn(async move {
            loop {
                match socket.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => return frame,
                    Some(Ok(_)) => {}
                    ended => panic!("it ends without a word: {ended:?}"),
                }
            }
        })
    });
    within(hall.service.server.server.shutdown()).await;
    for hearing in hearing {
        let frame = within(hearing).await.unwrap();
        assert_eq!(frame.code, CloseCode::Away);
        assert_eq!(frame.reason.as_str(), "the server is going down");
    }
}

#[tokio::test]
async fn a_service_can_put_in_order_what_it_is_told_of_a_room() {
    let (url, mut told) = told_service().await;
    let key = b"a key of some length".to_vec();
    let hall = Hall::with(true, Some(WebhookConfig { url, key, allows_private: true })).await;
    let (ada, _) = hall.player("ada").await;
    let input = json!({ "config": { "auto_start": false, "players": { "min": 2, "max": 8 } } });
    let opened = hall.good("POST", "/rooms", &ada, input).await;
    let room = opened["room"]["id"].as_str().unwrap().to_owned();
    for number in 0..6 {
        let (guest, _) = hall.player(&format!("guest {number}")).await;
        hall.good("POST", &format!("/rooms/{room}/join"), &guest, json!({})).await;
    }
    // The first is told twice, because the service says no once; what comes meanwhile overtakes it.
    let mut heard = Vec::new();
    while heard.len() < 7 {
        let request = within(told.recv()).await.unwrap();
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["notice"]["room"], room.as_str(), "{body}");
        heard.push((body["notice"]["seq"].as_u64().unwrap(), body["notice"]["player"].clone()));
    }
    heard.sort_by_key(|(seq, _)| *seq);
    heard.dedup();
    let numbers: Vec<u64> = heard.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "each is one more than the one before it");
}

#[tokio::test]
async fn threat_43_one_talker_pushes_no_others_calls_out_of_the_outbox() {
    // A port that was free a moment ago: nobody answers there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    drop(listener);
    let key = b"a key of some length".to_vec();
    let hall = Hall::with(true, Some(WebhookConfig { url, key, allows_private: true })).await;
    let names = ["ada", "bob", "mallory", "eve"];
    let [ada, bob, mallory, eve] = names.map(|name| hall.player(name));
    let ((ada, _), (bob, _), (mallory, _), (eve, _)) = tokio::join!(ada, bob, mallory, eve);
    let config = json!({ "auto_start": true, "players": { "min": 2, "max": 2 } });
    let mut rooms = Vec::new();
    for [host, guest] in [[&ada, &bob], [&mallory, &eve]] {
        let opened = hall.good("POST", "/rooms", host, json!({ "config": config })).await;
        let room = opened["room"]["id"].as_str().unwrap().to_owned();
        hall.good("POST", &format!("/rooms/{room}/join"), guest, json!({})).await;
        rooms.push(room);
    }
    let store = rusqlite::Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    let calls_of = |room: &str| {
        let query = "SELECT COUNT(*), COALESCE(SUM(length(body)), 0) FROM webhooks
             WHERE instr(CAST(body AS TEXT), ?1) > 0";
        store.query_row(query, [room], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap()
    };
    let of_ada = calls_of(&rooms[0]);
    assert!(of_ada.0 > 0, "they wait, because nobody answers");
    // More than the outbox holds.
    let large = json!({ "type": "put", "data": { "junk": "x".repeat(16_000) } });
    let moves = OUTBOX_BYTES_MAX / 16_000 + 20;
    for _ in 0..moves {
        hall.good("POST", &format!("/rooms/{}/moves", rooms[1]), &mallory, large.clone()).await;
    }
    assert_eq!(calls_of(&rooms[0]), of_ada, "what others wait for stays");
    let (_, bytes) = calls_of(&rooms[1]);
    assert!(bytes <= OUTBOX_BYTES_MAX as i64 / 2 + 70_000, "{bytes} bytes of one talker");
    // Others' calls are queued beside it.
    hall.good("POST", &format!("/rooms/{}/messages", rooms[0]), &bob, json!({ "type": "hello" })).await;
    assert_eq!(calls_of(&rooms[0]).0, of_ada.0 + 1);
}
