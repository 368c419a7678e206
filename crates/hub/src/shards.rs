//! Several hubs of one server, each with rooms, a thread and a port of its own.
//!
//! Which of them a room lives on is told by its code alone, so no hub has to ask another and nothing is shared: each draws only
//! codes that are its own, and a hello for a code of another's is redirected to that one's port. Rooms whose code is not
//! known yet are handed round by the first hub, whose port is the one that people are given.

use parlor_proto::RoomCode;
use xxhash_rust::xxh3::xxh3_64;

/// The hubs of one server, as one of them sees them.
#[derive(Clone, Debug)]
pub struct Shards {
    own: usize,
    addresses: Vec<String>,
    /// To whom the next new room goes.
    next: usize,
}

impl Shards {
    /// A hub without others.
    #[must_use]
    pub fn alone() -> Self {
        Shards { own: 0, addresses: vec![String::new()], next: 0 }
    }

    /// The hub number `own` of those with these addresses, as a redirect names them (`:PORT` for another port of the same
    /// host).
    ///
    /// # Panics
    /// If there is no such number.
    #[must_use]
    pub fn new(own: usize, addresses: Vec<String>) -> Self {
        assert!(own < addresses.len(), "hub {own} is one of {}", addresses.len());
        Shards { own, addresses, next: 0 }
    }

    /// Its own number, from 0 on.
    #[must_use]
    pub fn own(&self) -> usize {
        self.own
    }

    /// How many there are; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// The number of the hub on which a room with this code lives, if it lives.
    #[must_use]
    pub fn home(&self, code: RoomCode) -> usize {
        let hash = xxh3_64(code.as_str().as_bytes());
        usize::try_from(hash % self.count() as u64).expect("it is below a usize")
    }

    /// Whether a room with this code would live here.
    #[must_use]
    pub fn is_home(&self, code: RoomCode) -> bool {
        self.home(code) == self.own
    }

    /// Where to send a client that asks for the room with this code; `None` if it is right here.
    #[must_use]
    pub fn elsewhere(&self, code: RoomCode) -> Option<&str> {
        let home = self.home(code);
        (home != self.own).then(|| self.addresses[home].as_str())
    }

    /// Where to send a client that wants a new room under any code; `None` if it can be right here. The first hub hands
    /// them round; the others keep what they are given.
    pub fn spread(&mut self) -> Option<&str> {
        if self.own != 0 {
            return None;
        }
        let to = self.next;
        self.next = (to + 1) % self.count();
        (to != self.own).then(|| self.addresses[to].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_shared_out_evenly_and_every_hub_says_the_same() {
        let addresses: Vec<String> = (0..3).map(|port| format!(":{port}")).collect();
        let hubs: Vec<Shards> = (0..3).map(|own| Shards::new(own, addresses.clone())).collect();
        let mut counts = [0; 3];
        let mut state = 1_u32;
        for _ in 0..3_000 {
            let code = RoomCode::draw(5, || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.rotate_right(16)
            });
            let home = hubs[0].home(code);
            counts[home] += 1;
            for hub in &hubs {
                assert_eq!(hub.is_home(code), hub.own() == home);
                assert_eq!(hub.elsewhere(code), (hub.own() != home).then(|| addresses[home].as_str()));
            }
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn new_rooms_go_round_from_the_first_hub_alone() {
        let addresses = vec![":0".to_owned(), ":1".to_owned()];
        let mut first = Shards::new(0, addresses.clone());
        let sent: Vec<Option<String>> = (0..4).map(|_| first.spread().map(str::to_owned)).collect();
        assert_eq!(sent, [None, Some(":1".into()), None, Some(":1".into())]);
        assert_eq!(Shards::new(1, addresses).spread(), None);
        assert_eq!(Shards::alone().spread(), None);
    }
}
