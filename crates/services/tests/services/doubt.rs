//! Definitions of boards of which nobody knows whether they were stored: what is remembered is what is stored.

use crate::hall::Hall;
use parlor_faultdisk::Disk;
use parlor_services::store::Role;
use serde_json::{Value, json};
use std::path::Path;

impl Hall {
    async fn on_a_disk() -> (Hall, Disk) {
        let mut disk = None;
        let hall = Hall::changed(|setup| {
            let folder = Path::new(&setup.online.store).parent().unwrap();
            disk = Some(Disk::over(folder, 1).unwrap());
        })
        .await;
        (hall, disk.unwrap())
    }

    /// Asks again until the store is there; gives the status and the answer.
    async fn when_there(&self, path: &str, token: &str, input: &Value) -> (u16, Value) {
        loop {
            let (status, answer) = self.call("POST", path, Some(token), input.clone()).await;
            if status != 503 {
                return (status, answer);
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn t3_a_deletion_that_was_done_after_its_answer_leaves_no_board_in_memory() {
    let (hall, disk) = Hall::on_a_disk().await;
    let (server, (ada, _)) = (hall.operator(Role::Server), hall.player("ada").await);
    let define = json!({ "board": "b", "definition": { "writers": "players" } });
    hall.good("POST", "/admin/boards", &server, define.clone()).await;
    let score = json!({ "score": 1 });
    hall.good("POST", "/boards/b/scores", &ada, score.clone()).await;
    disk.stand_still(true);
    let delete = json!({ "board": "b" });
    let (status, answer) = hall.call("POST", "/admin/boards/delete", Some(&server), delete.clone()).await;
    assert_eq!(status, 503, "{answer}");
    disk.stand_still(false);
    let (_, again) = hall.when_there("/admin/boards/delete", &server, &delete).await;
    assert_eq!(again["error"]["code"], "no_such_board", "it was done: {again}");
    assert_eq!(hall.bad("GET", "/boards/b", &ada, json!({})).await, "no_such_board");
    // Another one of its name takes scores, which the next server has, too.
    hall.good("POST", "/admin/boards", &server, define).await;
    hall.good("POST", "/boards/b/scores", &ada, score).await;
    let hall = hall.again(true).await;
    assert_eq!(hall.good("GET", "/boards/b", &ada, json!({})).await["entries_total"], 1);
}

#[tokio::test]
async fn t3_a_board_that_was_made_after_the_answer_to_its_first_score_takes_the_next_one() {
    let (hall, disk) = Hall::on_a_disk().await;
    let (ada, _) = hall.player("ada").await;
    // The boards of the game are known before.
    hall.good("GET", "/boards", &ada, json!({})).await;
    disk.stand_still(true);
    let score = json!({ "score": 1 });
    let (status, answer) = hall.call("POST", "/boards/jam/scores", Some(&ada), score.clone()).await;
    assert_eq!(status, 503, "{answer}");
    disk.stand_still(false);
    let (status, answer) = hall.when_there("/boards/jam/scores", &ada, &score).await;
    assert_eq!((status, &answer["rank"]), (200, &json!(1)), "{answer}");
    assert_eq!(hall.good("GET", "/boards", &ada, json!({})).await["boards"][0]["version"], 1);
}
