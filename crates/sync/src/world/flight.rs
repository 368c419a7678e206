//! Packets in flight: sent, and neither acknowledged nor lost.

use std::collections::VecDeque;

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    /// The tick of the world when it was made.
    pub(super) tick: u32,
    pub(super) bytes: usize,
    /// Whether it is larger than a datagram.
    pub(super) is_large: bool,
    pub(super) entries: Vec<FlightEntry>,
    /// How many of the first entries are outdated: something newer was sent for their slots.
    pub(super) outdated: usize,
}

/// A packet's entry for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlightEntry {
    pub(super) slot: u16,
    pub(super) generation: u16,
    pub(super) label: u32,
    /// Whether it takes the entity away.
    pub(super) is_despawn: bool,
}

/// All packets in flight to one receiver, by ascending number.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    list: VecDeque<Flight>,
    bytes: usize,
    large: usize,
    /// Reusable memory of settled packets.
    pool: Vec<Vec<FlightEntry>>,
    /// Capacity in entries of `list` and `pool`.
    room: usize,
}

impl Flights {
    /// Bytes in flight.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether a packet larger than a datagram is in flight.
    pub(super) fn has_large(&self) -> bool {
        self.large > 0
    }

    /// The lowest number in flight.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.list.front().map(|flight| flight.number)
    }

    /// The tick of the oldest packet in flight.
    pub(super) fn oldest_tick(&self) -> Option<u32> {
        self.list.front().map(|flight| flight.tick)
    }

    /// The lowest number in flight that matters: the newest one sent for some slot, according to `is_newest`.
    /// Outdated entries stay outdated, and are checked once.
    pub(super) fn floor(&mut self, is_newest: impl Fn(&FlightEntry, u64) -> bool) -> Option<u64> {
        let mut matters = |flight: &mut Flight| {
            let rest = &flight.entries[flight.outdated..];
            flight.outdated += rest.iter().take_while(|entry| !is_newest(entry, flight.number)).count();
            (flight.outdated < flight.entries.len()).then_some(flight.number)
        };
        self.list.iter_mut().find_map(&mut matters)
    }

    /// Returns memory for the entries of a packet.
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

    /// Removes the packet with this number, if it is in flight.
    pub(super) fn take(&mut self, number: u64) -> Option<Flight> {
        let at = self.list.binary_search_by_key(&number, |flight| flight.number).ok()?;
        let flight = self.list.remove(at)?;
        self.bytes -= flight.bytes;
        self.large -= usize::from(flight.is_large);
        self.room -= flight.entries.capacity();
        Some(flight)
    }

    /// Returns the memory of a packet's entries to the pool.
    pub(super) fn recycle(&mut self, mut entries: Vec<FlightEntry>) {
        entries.clear();
        self.room += entries.capacity();
        self.pool.push(entries);
    }

    /// Drops all packets.
    pub(super) fn clear(&mut self) {
        (self.bytes, self.large) = (0, 0);
        while let Some(flight) = self.list.pop_front() {
            self.room -= flight.entries.capacity();
            self.recycle(flight.entries);
        }
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let lists =
            self.list.capacity() * size_of::<Flight>() + self.pool.capacity() * size_of::<Vec<FlightEntry>>();
        lists + self.room * size_of::<FlightEntry>()
    }
}
