//! Several hubs of one server, each with its own rooms, thread and port.
//!
//! The room code alone determines the hub, so hubs share nothing and never ask each other. Each hub draws
//! only codes of its own share, and redirects a hello for another's code to that hub's port. Players are
//! given the first hub's port; it distributes new rooms without a chosen code round-robin.

use parlor_proto::RoomCode;
use xxhash_rust::xxh3::xxh3_64;

/// The hubs of one server, from the viewpoint of one of them.
#[derive(Clone, Debug)]
pub struct Shards {
    own: usize,
    addresses: Vec<String>,
    /// The hub that gets the next new room.
    next: usize,
}

impl Shards {
    /// Creates the set of a single hub.
    pub fn alone() -> Self {
        Shards { own: 0, addresses: vec![String::new()], next: 0 }
    }

    /// Creates the set as hub number `own` sees it. A redirect uses `addresses` as given (`:PORT` for another
    /// port of the same host).
    ///
    /// # Panics
    /// If `own` is out of range.
    pub fn new(own: usize, addresses: Vec<String>) -> Self {
        assert!(own < addresses.len(), "hub {own} is one of {}", addresses.len());
        Shards { own, addresses, next: 0 }
    }

    /// Returns its own number, from 0.
    pub fn own(&self) -> usize {
        self.own
    }

    /// Returns the number of hubs; at least one.
    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the number of the hub for rooms with this code.
    pub fn home(&self, code: RoomCode) -> usize {
        let hash = xxh3_64(code.as_str().as_bytes());
        usize::try_from(hash % self.count() as u64).expect("it is below a usize")
    }

    /// Whether a room with this code would live on this hub.
    pub fn is_home(&self, code: RoomCode) -> bool {
        self.home(code) == self.own
    }

    /// Returns the address to redirect a client to that asks for this code; `None` if the room belongs here.
    pub fn elsewhere(&self, code: RoomCode) -> Option<&str> {
        let home = self.home(code);
        (home != self.own).then(|| self.addresses[home].as_str())
    }

    /// Returns the address to redirect a client to that wants a new room under any code; `None` for here. The
    /// first hub distributes such rooms round-robin; the others keep those they receive.
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
