//! Games of real clients, whose node is killed, drained, or gives their room away.

use crate::faults::judges;
use core::pin::pin;
use core::time::Duration;
use parlor::{Event, MemberId, Room, TransportPreference};
use parlor_cluster::{Cluster, Node};
use parlor_proto::wire::envelope::Sender;
use parlor_testing::HANG;
use parlor_transport::discovery::Registry;
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::time::{Interval, interval};

/// Time between two frames of a game.
const FRAME: Duration = Duration::from_millis(2);

/// The address of a node, with its fingerprint.
async fn address(node: &Node) -> String {
    let nodes = node.nodes().await;
    let own = nodes["nodes"].as_array().unwrap().iter().find(|own| own["id"] == node.name.as_str()).unwrap();
    own["address"].as_str().unwrap().to_owned()
}

/// A member's room, and what it was told.
struct Member {
    room: Room,
    told: Vec<Event>,
    /// The numbers that each other member sent.
    heard: BTreeMap<MemberId, Vec<u64>>,
    said: u64,
}

impl Member {
    /// A frame of a game: all count steps aloud, and the host writes them down.
    fn frame(&mut self) {
        while let Some(event) = self.room.poll() {
            match event {
                Event::Message(message) => {
                    let Sender::Member(from) = message.from else { panic!("{message:?}") };
                    self.heard.entry(from).or_default().push(message.read().unwrap());
                }
                Event::Closed(_) | Event::PlayerLeft { .. } => panic!("{event:?}"),
                Event::State(_) => {}
                event => self.told.push(event),
            }
        }
        while let Some(mut step) = self.room.step() {
            if let Some(mut host) = step.host() {
                let steps: u64 = host.state().get("steps").unwrap().unwrap_or(0);
                host.set("steps", &(steps + 1)).unwrap();
            }
            self.said += 1;
            self.room.broadcast("number", &self.said).unwrap();
        }
    }

    fn steps(&self) -> u64 {
        self.room.state().get("steps").unwrap().unwrap_or(0)
    }
}

/// A game of three.
pub(crate) struct Game {
    members: Vec<Member>,
    frames: Interval,
    _folder: tempfile::TempDir,
}

impl Game {
    /// Opens one at a node, and plays for some seconds.
    pub(crate) async fn open(node: &Node, transport: TransportPreference) -> Self {
        let at = address(node).await;
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let mut game = Game { members: Vec::new(), frames: interval(FRAME), _folder: folder };
        let host = Room::host("tanks").code("HELLO7").name("ada").server(&at).registry(registry.clone());
        game.enter(host.transport(transport).open()).await;
        for name in ["bob", "cid"] {
            let guest = Room::join("tanks", "HELLO7").name(name).server(&at).registry(registry.clone());
            game.enter(guest.transport(transport).open()).await;
        }
        // Its roster is written each second, and a member asks another node sooner once it was there for a while.
        game.play_until(|game| game.members.iter().all(|member| member.steps() >= 90)).await;
        game.forget();
        game
    }

    /// Forgets what the members were told.
    pub(crate) fn forget(&mut self) {
        self.members.iter_mut().for_each(|member| member.told.clear());
    }

    async fn enter(&mut self, room: Room) {
        self.members.push(Member { room, told: Vec::new(), heard: BTreeMap::new(), said: 0 });
        let is_open = |member: &Member| member.told.iter().any(|event| matches!(event, Event::Open { .. }));
        self.play_until(|game| game.members.last().is_some_and(is_open)).await;
    }

    /// Plays until something is done.
    pub(crate) async fn play_while<T>(&mut self, doing: impl Future<Output = T>) -> T {
        let mut doing = pin!(doing);
        loop {
            tokio::select! {
                biased;
                done = &mut doing => return done,
                _ = self.frames.tick() => self.members.iter_mut().for_each(Member::frame),
            }
        }
    }

    async fn play_until(&mut self, is_so: impl Fn(&Game) -> bool) {
        let since = Instant::now();
        while !is_so(self) {
            self.frames.tick().await;
            self.members.iter_mut().for_each(Member::frame);
            let infos: Vec<_> =
                self.members.iter().map(|member| (member.room.info(), &member.told)).collect();
            assert!(since.elapsed() < HANG, "{infos:?}");
        }
    }

    /// Plays until each member has [`Event::Reopened`] and reads a state that the host has set after it.
    pub(crate) async fn goes_on(&mut self, gap: bool) {
        let ids: Vec<_> = self.members.iter().map(|member| member.room.local_id().unwrap()).collect();
        let is_told = |member: &Member| member.told.contains(&Event::Reopened { gap });
        self.play_until(|game| game.members.iter().all(is_told)).await;
        let since = self.members[0].steps();
        let is_seen = |member: &Member| member.steps() > since && member.room.player_count() == 3;
        self.play_until(|game| game.members.iter().all(is_seen)).await;
        for (number, (member, id)) in self.members.iter().zip(ids).enumerate() {
            assert_eq!((member.room.local_id(), member.room.is_host()), (Some(id), number == 0));
            let reopened = |event: &&Event| matches!(event, Event::Reopened { .. });
            assert_eq!(member.told.iter().filter(reopened).count(), 1, "{:?}", member.told);
            let is_new = |event: &Event| matches!(event, Event::PlayerJoined(_));
            assert!(!member.told.iter().any(is_new), "nobody is new: {:?}", member.told);
        }
    }

    /// Plays on, without another [`Event::Reopened`].
    pub(crate) async fn goes_on_here(&mut self) {
        let since = self.members[0].steps();
        let lasting = |game: &Game| {
            let is_lasting =
                |event: &&Event| matches!(event, Event::Reopened { .. } | Event::PlayerJoined(_));
            game.members.iter().flat_map(|member| &member.told).filter(is_lasting).count()
        };
        let before = lasting(self);
        self.play_until(|game| game.members.iter().all(|member| member.steps() > since + 10)).await;
        assert_eq!(lasting(self), before);
    }

    /// Each member heard the numbers of each other one in their order, none twice, and with `all` each one.
    pub(crate) fn heard(&self, all: bool) {
        for (from, numbers) in self.members.iter().flat_map(|member| &member.heard) {
            let is_next = |pair: &[u64]| if all { pair[1] == pair[0] + 1 } else { pair[1] > pair[0] };
            assert!(numbers.windows(2).all(is_next), "of {from}: {numbers:?}");
        }
    }

    /// Each member heard each number of each other one, once and in its order. Nobody was told of anything else.
    fn missed_nothing(&self) {
        self.heard(true);
        for member in &self.members {
            assert_eq!(member.told, [Event::Reopened { gap: false }]);
        }
    }
}

async fn goes_on_at_another_node(transport: TransportPreference) {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, mut b) = (cluster.start("a").await, cluster.start("b").await);
    judges(&a).await;
    let mut game = Game::open(&b, transport).await;
    b.kill().await;
    game.goes_on(true).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_that_an_operator_moves_misses_nothing() {
    let Some(cluster) = Cluster::new().await else { return };
    let (a, b) = (cluster.start("a").await, cluster.start("b").await);
    for transport in [TransportPreference::Quic, TransportPreference::WebSocket] {
        let mut game = Game::open(&b, transport).await;
        // Any node takes the order.
        let moving = tokio::spawn(a.moving("HELLO7", "a"));
        game.goes_on(false).await;
        game.missed_nothing();
        let (status, answer) = moving.await.unwrap();
        assert_eq!((status, &answer["node"]), (200, &"a".into()), "{answer}");
        let (_, place) = b.ask("GET", "/admin/where/HELLO7").await;
        assert_eq!(place["node"], "a");
        // Its host leaves, so the code is free for the next round.
        let Member { room, .. } = game.members.remove(0);
        room.leave();
        drop(game);
        a.until_free("HELLO7").await;
    }
    a.end().await;
    b.end().await;
    cluster.scratch.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_asked_to_end_gives_its_games_to_another_one() {
    let Some(cluster) = Cluster::new().await else { return };
    let a = cluster.start("a").await;
    // A limit that the test does not reach.
    let mut b = cluster.start_with("b", &["--drain-time", "3600"]).await;
    a.until_sees("b", "serving").await;
    b.until_sees("a", "serving").await;
    let mut game = Game::open(&b, TransportPreference::Quic).await;
    b.signal("TERM").await;
    game.goes_on(false).await;
    game.missed_nothing();
    b.ended().await;
    drop(game);
    a.end().await;
    cluster.scratch.remove().await;
}
