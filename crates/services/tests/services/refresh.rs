//! Refresh tokens that are used at the same time, or twice.

use crate::hall::Hall;
use futures_util::future::join_all;
use serde_json::{Value, json};

async fn refresh(hall: &Hall, token: &Value) -> (u16, Value) {
    hall.call("POST", "/auth/refresh", None, json!({ "app": "tanks", "refresh_token": token })).await
}

#[tokio::test]
async fn threat_54_refreshes_side_by_side_sign_nobody_out() {
    let hall = Hall::open().await;
    let (_, first) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    let mut token = first["refresh_token"].clone();
    for round in 0..3 {
        let answers = join_all((0..8).map(|_| refresh(&hall, &token))).await;
        let next: Vec<&Value> = answers.iter().map(|(_, answer)| &answer["refresh_token"]).collect();
        assert!(answers.iter().all(|(status, _)| *status == 200), "round {round}: {answers:?}");
        assert!(next.iter().all(|other| *other == next[0] && **other != token), "all have the same next one");
        for (_, answer) in &answers {
            hall.good("GET", "/account", answer["access_token"].as_str().unwrap(), json!({})).await;
        }
        token = next[0].clone();
    }
}

#[tokio::test]
async fn threat_08_a_token_older_than_the_one_before_ends_the_sign_in() {
    let hall = Hall::open().await;
    let (_, first) = hall.call("POST", "/auth/guest", None, json!({ "app": "tanks" })).await;
    let (_, second) = refresh(&hall, &first["refresh_token"]).await;
    let (status, third) = refresh(&hall, &second["refresh_token"]).await;
    assert_eq!(status, 200, "{third}");
    // Its successor was used, so it is not a window that is late: somebody else has the first.
    let (status, stolen) = refresh(&hall, &first["refresh_token"]).await;
    assert_eq!((status, &stolen["error"]["code"]), (401, &json!("refresh_token_reused")), "{stolen}");
    for token in [&second, &third] {
        let (status, over) = refresh(&hall, &token["refresh_token"]).await;
        assert_eq!((status, &over["error"]["code"]), (401, &json!("bad_refresh_token")), "{over}");
    }
    // The next one follows from the one before by a key that no other store has.
    let other = Hall::open().await;
    let (status, _) = refresh(&other, &first["refresh_token"]).await;
    assert_eq!(status, 401);
}
