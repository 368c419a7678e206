//! The instructions of each function, as callgrind writes them.

use crate::parts::part_of;
use std::collections::BTreeMap;

/// Instructions by part of the program.
pub(super) type ByPart = BTreeMap<&'static str, u64>;

/// Sums a profile by part. Costs of calls belong to the functions that are called.
pub(super) fn by_part(profile: &str) -> ByPart {
    let mut found = ByPart::new();
    let (mut part, mut is_call) = ("", false);
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            part = part_of(function);
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some(cost) = cost(line)
            && !core::mem::take(&mut is_call)
        {
            *found.entry(part).or_default() += cost;
        }
    }
    found
}

/// The cost in a line of a position and a cost.
fn cost(line: &str) -> Option<u64> {
    let (position, cost) = line.split_once(' ')?;
    let is_position = position.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first));
    is_position.then(|| cost.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_calls_count_for_what_is_called() {
        let profile = "# callgrind format\nversion: 1\nevents: Ir\n\nfl=a.rs\nfn=parlor_hub::hub::Hub::flush\n0 100\n\
            cfn=parlor_sync::world::views::Views::flush\ncalls=2 0\n0 700\n0 11\n\n\
            fn=parlor_sync::world::views::Views::flush\n0 650\ncfn=malloc\ncalls=3 0\n0 50\n\nfn=malloc\n0 50\n\
            fn=parlor_hub::room::Room::relay\n+3 9\n* 1\ntotals: 821\n";
        let found = by_part(profile);
        assert_eq!(found, [("hub", 121), ("state engine", 650), ("allocator", 50)].into());
    }
}
