//! Rooms of a cluster: three hubs, and the store that they share.

mod moves;
mod reopening;

use parlor_client_core::{Event, LinkState, Options};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{Lane, MemberId, RoomCode};
use parlor_sim::{APP, Link, PeerId, Rng, Sim};
use parlor_sync::keyed::Audience;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(30);

/// What each member heard of each other: the numbers in the order of their arrival.
type Heard = Rc<RefCell<BTreeMap<(PeerId, MemberId), Vec<u64>>>>;

struct Room {
    sim: Sim,
    code: RoomCode,
    members: Vec<PeerId>,
    heard: Heard,
}

impl Room {
    /// A room of three members at node 0, of which the first one opened it. All talk.
    fn open(seed: u64, options: Options, link: impl Fn(&mut Rng) -> Link) -> Self {
        let mut rng = Rng::new(seed);
        let mut sim = Sim::cluster(seed, 3, GRACE);
        let first = sim.host(options, link(&mut rng));
        let code = sim.code(first);
        let mut room = Room { sim, code, members: vec![first], heard: Heard::default() };
        for node in [1, 0] {
            // The code is good at every node.
            let peer = room.sim.enter_node(Options::join(APP, code), link(&mut rng), node);
            room.members.push(peer);
        }
        let members = room.members.clone();
        room.sim.run_until(10_000, "all are in", |sim| {
            members.iter().all(|peer| sim.room(*peer).player_count() == 3)
        });
        room.members.clone().into_iter().for_each(|peer| room.talk(peer));
        room
    }

    /// Lets a member send a number to the others in each step, and the host write it.
    fn talk(&mut self, peer: PeerId) {
        let mut number = 0;
        self.sim.play(peer, move |room, now| {
            number += 1;
            if room.is_host() {
                room.set("step", &number, Audience::All).expect("it hosts");
            }
            // It is refused while the room is not open.
            let _ = room.send(Lane::ReliableOrdered, Recipient::Others, "number", &number, true, now);
        });
        let heard = Rc::clone(&self.heard);
        self.sim.hear(peer, move |_, _, event| {
            if let Event::Message(message) = event
                && let parlor_proto::wire::envelope::Sender::Member(from) = message.from
            {
                let number = message.read().expect("it is a number");
                heard.borrow_mut().entry((peer, from)).or_default().push(number);
            }
        });
    }

    fn names(&self) -> Vec<Vec<(MemberId, String)>> {
        let of = |peer: &PeerId| {
            let players = self.sim.room(*peer).players();
            players.iter().map(|player| (player.id, player.name.clone())).collect()
        };
        self.members.iter().map(of).collect()
    }

    /// Whether all members are in the room at another node than the first one, and see all others.
    fn is_whole(&self) -> bool {
        self.is_together() && self.members.iter().all(|peer| self.sim.node(*peer) != 0)
    }

    /// Whether all members are in the room at its living node, and see all others.
    fn is_together(&self) -> bool {
        let owner = self.sim.owners().last().map(|(_, _, node)| node);
        self.members.iter().all(|peer| {
            let room = self.sim.room(*peer);
            Some(self.sim.node(*peer)) == owner
                && self.sim.is_alive(self.sim.node(*peer))
                && room.link_state() == LinkState::Connected
                && room.player_count() == 3
                && room.players().iter().all(|player| player.connected)
        })
    }

    /// The members' views are the host's world.
    fn is_the_hosts_world(&mut self) {
        let host = self.members[0];
        self.sim.play(host, |_, _| {});
        self.sim.run_for(2_000);
        let hashes: Vec<_> = self.members.iter().map(|peer| self.sim.room(*peer).state_hash()).collect();
        let hash = hashes[0].expect("the host has its world").1;
        assert!(hashes.iter().all(|of| of.is_some_and(|(_, of)| of == hash)), "{hashes:?}");
    }
}

/// Some step of the first seconds.
fn moment(seed: u64) -> u64 {
    Rng::new(seed ^ 0x6b69_6c6c).below(12_000)
}

fn some_link(rng: &mut Rng) -> Link {
    rng.pick(&[Link::quic(), Link::websocket()]).latency_ms(rng.below(60))
}
