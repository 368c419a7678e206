//! Packets whose fate is not known.

use std::collections::VecDeque;

/// One packet under way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    /// The tick of the world that it was made of.
    pub(super) tick: u32,
    pub(super) bytes: usize,
    /// Whether it is larger than a datagram.
    pub(super) is_large: bool,
    pub(super) entries: Vec<FlightEntry>,
    /// How many of the first entries are out of date: something newer was sent of their slots since.
    pub(super) outdated: usize,
}

/// What a packet says of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlightEntry {
    pub(super) slot: u16,
    pub(super) generation: u16,
    pub(super) label: u32,
    /// Whether it takes the entity away.
    pub(super) is_despawn: bool,
}

/// All packets under way of one receiver, by ascending number.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    list: VecDeque<Flight>,
    bytes: usize,
    large: usize,
    /// Room of packets whose fate came.
    pool: Vec<Vec<FlightEntry>>,
    /// Entries that there is room for, in `list` and `pool`.
    room: usize,
}

impl Flights {
    /// Bytes under way.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a packet is under way that is larger than a datagram.
    pub(super) fn has_large(&self) -> bool {
        self.large > 0
    }

    /// The lowest number whose fate is not known.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.list.front().map(|flight| flight.number)
    }

    /// The tick of the oldest packet whose fate is not known.
    pub(super) fn oldest_tick(&self) -> Option<u32> {
        self.list.front().map(|flight| flight.tick)
    }

    /// The lowest number whose fate is not known and that matters: of some slot it is the newest that was
    /// sent, as `is_newest` says. What is out of date stays so, and is looked at once.
    pub(super) fn floor(&mut self, is_newest: impl Fn(&FlightEntry, u64) -> bool) -> Option<u64> {
        let mut matters = |flight: &mut Flight| {
            let rest = &flight.entries[flight.outdated..];
            flight.outdated += rest.iter().take_while(|entry| !is_newest(entry, flight.number)).count();
            (flight.outdated < flight.entries.len()).then_some(flight.number)
        };
        self.list.iter_mut().find_map(&mut matters)
    }

    /// Room for the entries of a packet.
    pub(super) fn room(&mut self) -> Vec<FlightEntry> {
        let room = self.pool.pop().unwrap_or_default();
        self.room -= room.capacity();
        room
    }

    pub(super) fn push(&mut self, flight: Flight) {
        self.bytes += flight.bytes;
        self.large += usize::from(flight.is_large);
        self.room += flight.entries.capacity();
        self.list.push_back(flight);
    }

    /// Takes out the packet of this number, if its fate was not known.
    pub(super) fn take(&mut self, number: u64) -> Option<Flight> {
        let at = self.list.binary_search_by_key(&number, |flight| flight.number).ok()?;
        let flight = self.list.remove(at)?;
        self.bytes -= flight.bytes;
        self.large -= usize::from(flight.is_large);
        self.room -= flight.entries.capacity();
        Some(flight)
    }

    /// Gives back the room of a packet's entries.
    pub(super) fn recycle(&mut self, mut entries: Vec<FlightEntry>) {
        entries.clear();
        self.room += entries.capacity();
        self.pool.push(entries);
    }

    /// Forgets all packets.
    pub(super) fn clear(&mut self) {
        (self.bytes, self.large) = (0, 0);
        while let Some(flight) = self.list.pop_front() {
            self.room -= flight.entries.capacity();
            self.recycle(flight.entries);
        }
    }

    /// Bytes of memory that it has.
    pub(super) fn memory_bytes(&self) -> usize {
        let lists =
            self.list.capacity() * size_of::<Flight>() + self.pool.capacity() * size_of::<Vec<FlightEntry>>();
        lists + self.room * size_of::<FlightEntry>()
    }
}
