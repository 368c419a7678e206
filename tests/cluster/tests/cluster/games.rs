//! Games of real clients, whose node is killed.

use crate::faults::judges;
use parlor::{Event, Room, TransportPreference};
use parlor_cluster::{Cluster, Node};
use parlor_testing::HANG;
use parlor_transport::discovery::Registry;
use std::time::Instant;

/// The address of a node, with its fingerprint.
async fn address(node: &Node) -> String {
    let nodes = node.nodes().await;
    let own = nodes["nodes"].as_array().unwrap().iter().find(|own| own["id"] == node.name.as_str()).unwrap();
    own["address"].as_str().unwrap().to_owned()
}

/// A frame of a game: its host counts steps.
fn frame(room: &mut Room, told: &mut Vec<Event>) {
    while let Some(event) = room.poll() {
        assert!(!matches!(event, Event::Closed(_) | Event::PlayerLeft { .. }), "{event:?}");
        told.push(event);
    }
    while let Some(mut step) = room.step() {
        if let Some(mut host) = step.host() {
            let steps: u64 = host.state().get("steps").unwrap().unwrap_or(0);
            host.set("steps", &(steps + 1)).unwrap();
        }
    }
}

fn steps(room: &Room) -> u64 {
    room.state().get("steps").unwrap().unwrap_or(0)
}

/// The rooms of a game, and what each was told.
struct Game {
    rooms: Vec<Room>,
    told: Vec<Vec<Event>>,
}

impl Game {
    fn enter(&mut self, room: Room) {
        self.rooms.push(room);
        self.told.push(Vec::new());
        let last = self.rooms.len() - 1;
        self.play_until(|game| game.told[last].iter().any(|event| matches!(event, Event::Open { .. })));
    }

    #[track_caller]
    fn play_until(&mut self, is_so: impl Fn(&Game) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            for (room, told) in self.rooms.iter_mut().zip(&mut self.told) {
                frame(room, told);
            }
            let infos: Vec<_> = self.rooms.iter().map(Room::info).collect();
            assert!(since.elapsed() < HANG, "{:?} {infos:?}", self.told);
            std::thread::yield_now();
        }
    }
}

async fn goes_on_at_another_node(transport: TransportPreference) {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let at = address(&b).await;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::at(folder.path().join("registry"));
    let mut game = Game { rooms: Vec::new(), told: Vec::new() };
    let host = Room::host("tanks").code("HELLO7").name("ada").server(&at).registry(registry.clone());
    game.enter(host.transport(transport).open());
    for name in ["bob", "cid"] {
        let guest = Room::join("tanks", "HELLO7").name(name).server(&at).registry(registry.clone());
        game.enter(guest.transport(transport).open());
    }
    // Its roster is written each second, and a member asks sooner once it was there for a while.
    game.play_until(|game| game.rooms.iter().all(|room| steps(room) >= 150));
    let ids: Vec<_> = game.rooms.iter().map(|room| room.local_id().unwrap()).collect();
    let before = steps(&game.rooms[0]);
    b.kill().await;
    game.told.iter_mut().for_each(Vec::clear);
    let is_reopened = |event: &Event| matches!(event, Event::Reopened { gap: true });
    game.play_until(|game| game.told.iter().all(|told| told.iter().any(is_reopened)));
    // What the host has set since is read by everyone.
    let since = steps(&game.rooms[0]);
    assert!(since >= before, "the host has its world: {since} steps after {before}");
    game.play_until(|game| game.rooms.iter().all(|room| steps(room) > since && room.player_count() == 3));
    for (room, id) in game.rooms.iter().zip(ids) {
        assert_eq!((room.local_id(), room.is_host()), (Some(id), id == game.rooms[0].local_id().unwrap()));
    }
    for told in &game.told {
        assert_eq!(told.iter().filter(|event| is_reopened(event)).count(), 1, "{told:?}");
        assert!(!told.iter().any(|event| matches!(event, Event::PlayerJoined(_))), "nobody is new: {told:?}");
    }
    drop(game);
    a.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_over_quic_goes_on_at_another_node() {
    goes_on_at_another_node(TransportPreference::Quic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_over_websocket_goes_on_at_another_node() {
    goes_on_at_another_node(TransportPreference::WebSocket).await;
}
