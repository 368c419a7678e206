//! The newest tick that the other end is known to have completely.
//!
//! The last packet of a tick carries its floor: the packets from that number on must have arrived. Once all
//! of them are known to have arrived, the other end has the world of that tick in its history, even if others
//! are lost.

use parlor_proto::Tick;
use parlor_sync::limits::{BASELINE_AGE_MAX, FLIGHTS_MAX};
use std::collections::VecDeque;

/// The tracker. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct AckWatermark {
    /// Packets in flight, by ascending number.
    under_way: VecDeque<(u64, Tick)>,
    /// Last packets of their ticks, with floors, that are not completely acknowledged.
    lasts: VecDeque<Last>,
    /// The highest lost packet number. A tick whose floor is not above it never completes.
    newest_lost: Option<u64>,
    newest_sent: Option<Tick>,
    tick: Option<Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    floor: u64,
    tick: Tick,
}

impl AckWatermark {
    /// The newest complete tick.
    pub(crate) fn tick(&self) -> Option<Tick> {
        self.tick
    }

    /// Notes a sent packet of the world at `tick`; with a floor if it is the last of that tick.
    pub(crate) fn sent(&mut self, number: u64, tick: Tick, floor: Option<u64>) {
        self.newest_sent = Some(tick);
        self.under_way.push_back((number, tick));
        let floor = floor.filter(|floor| self.newest_lost.is_none_or(|lost| lost < *floor));
        self.lasts.extend(floor.map(|floor| Last { number, floor, tick }));
        // The publisher also counts the oldest as lost then.
        if self.under_way.len() > FLIGHTS_MAX
            && let Some((oldest, _)) = self.under_way.pop_front()
        {
            self.lost(oldest);
        }
    }

    /// Notes the fate of a packet. Unknown packets change nothing.
    pub(crate) fn fate(&mut self, number: u64, delivered: bool) {
        let Ok(at) = self.under_way.binary_search_by_key(&number, |(number, _)| *number) else { return };
        let Some((_, tick)) = self.under_way.remove(at) else { return };
        // The receiver discards a packet that arrives this late.
        let age = self.newest_sent.map_or(0, |newest| newest.since(tick));
        if !delivered || i64::from(age) > i64::from(BASELINE_AGE_MAX) {
            return self.lost(number);
        }
        let is_whole = |last: &Last| {
            let from = self.under_way.partition_point(|(number, _)| *number < last.floor);
            self.under_way.get(from).is_none_or(|(number, _)| *number > last.number)
        };
        if let Some(whole) = self.lasts.iter().rposition(is_whole) {
            self.tick = self.lasts.get(whole).map(|last| last.tick);
            self.lasts.drain(..=whole);
        }
    }

    fn lost(&mut self, number: u64) {
        self.newest_lost = self.newest_lost.max(Some(number));
        self.lasts.retain(|last| !(last.floor..=last.number).contains(&number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_tick_is_confirmed_once_all_from_its_floor_on_arrived(
            steps in proptest::collection::vec((0u8..4, 0usize..12, any::<bool>(), 0u64..6), 1..200),
        ) {
            let mut watermark = AckWatermark::default();
            // By number: the packet's tick, its floor if it is the last of its tick, and its fate.
            let mut packets: BTreeMap<u64, (Tick, Option<u64>, Option<bool>)> = BTreeMap::new();
            for (kind, back, flag, gap) in steps {
                let next = packets.len() as u64;
                if kind < 2 {
                    let tick = Tick(u32::try_from(next / 2).unwrap());
                    let floor = flag.then(|| next.saturating_sub(gap));
                    watermark.sent(next, tick, floor);
                    packets.insert(next, (tick, floor, None));
                } else if let Some((number, packet)) =
                    packets.iter_mut().rev().nth(back).filter(|(_, packet)| packet.2.is_none())
                {
                    packet.2 = Some(flag);
                    watermark.fate(*number, flag);
                }
                let arrived = |number: u64| packets[&number].2 == Some(true);
                let whole = packets.iter().filter(|(number, packet)| {
                    packet.1.is_some_and(|floor| (floor..=**number).all(arrived))
                });
                prop_assert_eq!(watermark.tick().map(|tick| tick.0), whole.map(|(_, packet)| packet.0.0).max());
                prop_assert!(watermark.lasts.len() <= packets.len() && watermark.under_way.len() <= packets.len());
            }
        }
    }

    #[test]
    fn what_came_too_late_to_be_taken_in_confirms_nothing() {
        let mut watermark = AckWatermark::default();
        watermark.sent(0, Tick(10), Some(0));
        watermark.sent(1, Tick(10 + BASELINE_AGE_MAX + 1), None);
        watermark.fate(0, true);
        assert_eq!(watermark.tick(), None);
    }
}
