//! A model in maps: a store answers any sequence of calls as the model does.
//!
//! `PARLOR_SEEDS` sets the number of sequences, and `PARLOR_SEED` repeats one.

use crate::common::{account_id, fresh_realm, new_room, notice, notices, on_each, random, room_id, state};
use parlor_server::realm::Realm;
use parlor_services::store::{INBOX_MAX, Store, StoreError};
use std::collections::BTreeMap;

const STEPS: u64 = 150;
const SEEDS: u64 = 3;
const ROOMS: u64 = 3;
const PLAYERS: u64 = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[derive(Default)]
struct Inbox {
    waiting: BTreeMap<u64, String>,
    newest: u64,
    dropped: u64,
}

impl Inbox {
    fn put(&mut self, body: String) -> u64 {
        self.newest += 1;
        self.waiting.insert(self.newest, body);
        if self.waiting.len() as u64 > INBOX_MAX {
            self.waiting.pop_first();
            self.dropped += 1;
        }
        self.newest
    }
}

/// Of one realm.
#[derive(Default)]
struct Model {
    /// Version, players and whether it can be joined.
    rooms: BTreeMap<String, (u64, Vec<String>, bool)>,
    inboxes: BTreeMap<String, Inbox>,
}

impl Model {
    fn tell(&mut self, told: &[(String, String)]) -> Vec<u64> {
        told.iter().map(|(to, body)| self.inboxes.entry(to.clone()).or_default().put(body.clone())).collect()
    }

    fn rooms_where(&self, wanted: impl Fn(&(u64, Vec<String>, bool)) -> bool) -> Vec<String> {
        // All have one age, so they stand in the order of their ids.
        self.rooms.iter().filter(|(_, room)| wanted(room)).map(|(id, _)| id.clone()).collect()
    }
}

async fn write(store: &Store, realm: &Realm, model: &mut Model, random: &mut Random) {
    let id = format!("room-{}", random.below(ROOMS));
    let players: Vec<String> =
        (0..PLAYERS).filter(|_| random.below(2) == 0).map(|n| format!("player-{n}")).collect();
    let names: Vec<&str> = players.iter().map(String::as_str).collect();
    let told: Vec<(String, String)> = (0..random.below(40))
        .map(|_| (format!("player-{}", random.below(PLAYERS)), format!("{}", random.below(1000))))
        .collect();
    let effects = notices(told.iter().map(|(to, body)| notice(to, body)).collect());
    let joinable = random.below(2) == 0;
    let Some(current) = model.rooms.get(&id).map(|room| room.0) else {
        let mut room = new_room(&id, state(1, "", &names));
        room.state.joinable = joinable;
        let sent = store.put_room(realm, room, effects).await;
        model.rooms.insert(id, (1, players, joinable));
        assert_eq!(sent, Ok(model.tell(&told)));
        return;
    };
    let expected = if random.below(4) == 0 { random.below(current + 3) } else { current };
    let version = expected + 1 + random.below(2);
    let mut next = state(version, "", &names);
    next.joinable = joinable;
    let sent = store.commit_room(realm, &room_id(&id), expected, next, effects).await;
    if expected == current {
        model.rooms.insert(id, (version, players, joinable));
        assert_eq!(sent, Ok(model.tell(&told)));
    } else {
        assert_eq!(sent, Err(StoreError::Stale { current }));
    }
}

async fn acknowledge(store: &Store, realm: &Realm, model: &mut Model, random: &mut Random) {
    let player = format!("player-{}", random.below(PLAYERS));
    let inbox = model.inboxes.entry(player.clone()).or_default();
    let up_to = random.below(inbox.newest + 5);
    store.acknowledge(realm, &account_id(&player), up_to).await.expect("an acknowledgement");
    inbox.waiting.retain(|seq, _| *seq > up_to);
}

async fn compare(store: &Store, realm: &Realm, model: &Model) {
    for (id, (version, players, joinable)) in &model.rooms {
        let loaded = store.load_room(realm, &room_id(id)).await.expect("a read").expect("a room").state;
        let found: Vec<&str> = loaded.players.iter().map(|player| player.as_str()).collect();
        assert_eq!(
            (loaded.version, loaded.joinable, found),
            (*version, *joinable, players.iter().map(String::as_str).collect())
        );
    }
    let joinable = store.joinable_rooms(realm, "draughts", None, None, 100).await.expect("a page").items;
    // The newest first.
    let joinable: Vec<String> = joinable.into_iter().rev().map(|room| room.id.to_string()).collect();
    assert_eq!(joinable, model.rooms_where(|room| room.2));
    for number in 0..PLAYERS {
        let player = format!("player-{number}");
        let rooms = store.rooms_of(realm, &account_id(&player), None, 100).await.expect("a page").items;
        let rooms: Vec<String> = rooms.into_iter().map(|room| room.id.to_string()).collect();
        assert_eq!(rooms, model.rooms_where(|room| room.1.contains(&player)), "of {player}");
        let found = store.read_inbox(realm, &account_id(&player), 0, 1000).await.expect("an inbox");
        let waiting =
            found.notices.into_iter().map(|n| (n.seq, String::from_utf8(n.body).expect("text"))).collect();
        let none = Inbox::default();
        let inbox = model.inboxes.get(&player).unwrap_or(&none);
        assert_eq!(
            (&inbox.waiting, inbox.newest, inbox.dropped),
            (&waiting, found.newest, found.dropped),
            "of {player}"
        );
    }
}

async fn run(store: &Store, seed: u64) {
    println!("PARLOR_SEED={seed} repeats this");
    let mut random = Random(seed);
    let mut sides = [(fresh_realm(), Model::default()), (fresh_realm(), Model::default())];
    for _ in 0..STEPS {
        let side = usize::try_from(random.below(2)).expect("small");
        let (realm, model) = &mut sides[side];
        match random.below(8) {
            0 => acknowledge(store, realm, model, &mut random).await,
            _ => write(store, realm, model, &mut random).await,
        }
        // Both realms: what is written in one changes nothing in the other.
        if random.below(6) == 0 {
            for (realm, model) in &sides {
                compare(store, realm, model).await;
            }
        }
    }
}

#[tokio::test]
async fn a_store_answers_as_the_model_does() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("PARLOR_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PARLOR_SEEDS").unwrap_or(SEEDS).clamp(SEEDS, 100)).map(|_| random()).collect(),
    };
    on_each(async |store, _| {
        for seed in &seeds {
            run(&store, *seed).await;
        }
    })
    .await;
}
