//! Which players have a connection, at whichever node.
//!
//! Nodes say which players come and go. That may be lost with a node, so a home also looks: it asks all nodes after
//! the players in its lobbies and searches.

use super::realm_of;
use crate::cluster::line::{self, AskError, Handlers};
use crate::online::Services;
use crate::store::{AccountId, NodeName};
use bytes::Bytes;
use core::time::Duration;
use futures_util::future::join_all;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tokio::time::sleep;

const PRESENT: &str = "home/present";
/// Time between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Players of one question.
const AT_ONCE: usize = 5_000;

/// Which of these players are here?
#[derive(Serialize, Deserialize)]
struct Players {
    realm: String,
    accounts: Vec<String>,
}

impl Services {
    /// Asks all other nodes that serve. Gives the answers, and whether all of them answered.
    async fn ask_others<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        question: &impl Serialize,
    ) -> (Vec<T>, bool) {
        let (Some(cluster), Ok(question)) = (self.cluster(), serde_json::to_vec(question)) else {
            return (Vec::new(), false);
        };
        let (nodes, question) = (cluster.nodes(), Bytes::from(question));
        let others: Vec<NodeName> =
            nodes.serving().map(|node| node.id.clone()).filter(|node| node != cluster.node()).collect();
        let asked = others.iter().map(|node| cluster.line().ask(node, kind, question.clone()));
        let (mut answers, mut is_whole) = (Vec::new(), true);
        for answer in join_all(asked).await {
            match answer.map(|answer| serde_json::from_slice(&answer)) {
                Ok(Ok(answer)) => answers.push(answer),
                // It has ended meanwhile.
                Err(AskError::NoSuchNode(_)) => {}
                Ok(Err(_)) | Err(_) => is_whole = false,
            }
        }
        (answers, is_whole)
    }

    /// Players of the lobbies and searches of a realm.
    fn players_at_home(&self, realm: &Realm) -> BTreeSet<String> {
        let mut players: BTreeSet<String> = self.players_of_lobbies(realm).into_iter().collect();
        players.extend(self.players_of_searches(realm));
        players
    }

    async fn look_for_players(&self, realm: &Realm) {
        let players = self.players_at_home(realm);
        lock(&self.homes().absent).retain(|(of, player)| of != realm || players.contains(player));
        let players: Vec<String> = players.into_iter().collect();
        for part in players.chunks(AT_ONCE) {
            let question = Players { realm: realm.path().to_owned(), accounts: part.to_vec() };
            let (answers, is_whole) = self.ask_others::<Vec<usize>>(PRESENT, &question).await;
            let elsewhere: BTreeSet<usize> = answers.into_iter().flatten().collect();
            for (at, player) in part.iter().enumerate() {
                let Ok(account) = AccountId::new(player) else { continue };
                let is_here = elsewhere.contains(&at) || self.feeds().has(realm, &account);
                let key = (realm.clone(), player.clone());
                let mut absent = lock(&self.homes().absent);
                // Whoever came while the nodes were asked is away no earlier than at the next look.
                let is_sure = if is_here {
                    absent.remove(&key);
                    true
                } else {
                    is_whole && !absent.insert(key)
                };
                drop(absent);
                if is_sure && self.is_home(realm) {
                    self.is_in_lobbies(realm, &account, is_here);
                    self.is_in_searches(realm, &account, is_here);
                }
            }
        }
    }
}

/// Looks for the players of this home.
pub(super) async fn look(services: &Services) {
    loop {
        sleep(LOOK_AGAIN).await;
        let held: Vec<Realm> = lock(&services.homes().held).keys().cloned().collect();
        lock(&services.homes().absent).retain(|(realm, _)| held.contains(realm));
        for realm in held {
            if services.has_lobbies(&realm) || services.has_searches(&realm) {
                services.look_for_players(&realm).await;
                services.follow_queues(&realm).await;
            } else {
                // The next operation makes it a realm of this home again.
                lock(&services.homes().held).remove(&realm);
            }
        }
    }
}

/// Answers other nodes.
pub(super) fn answer(services: &Services, handlers: &mut Handlers) {
    let services = services.clone();
    handlers.on(PRESENT, move |_, body| {
        let answer = present(&services, &body);
        async move { answer }
    });
}

fn present(services: &Services, body: &Bytes) -> line::Answer {
    let Players { realm, accounts } = line::read(body)?;
    let realm = realm_of(&realm)?;
    let is_here =
        |account: &str| AccountId::new(account).is_ok_and(|account| services.feeds().has(&realm, &account));
    let here: Vec<usize> =
        accounts.iter().enumerate().filter(|(_, account)| is_here(account)).map(|(at, _)| at).collect();
    line::write(&here)
}
