//! Teams of equal size, parties whole, and as equal in skill as a bounded search finds.

/// Steps of the search for better teams.
const STEPS_MAX: u32 = 5_000;

/// Puts parties, given by their size and the sum of their skills, into `count` teams of `size` players. Gives the team
/// of each party; `None` if they cannot be put into equal teams.
pub(super) fn split(parties: &[(usize, i64)], count: usize, size: usize) -> Option<Vec<usize>> {
    if parties.iter().map(|(players, _)| players).sum::<usize>() != count * size {
        return None;
    }
    // Large and strong ones first: what is left over is then small.
    let mut order: Vec<usize> = (0..parties.len()).collect();
    order.sort_by_key(|at| parties.get(*at).map(|(players, skill)| (core::cmp::Reverse(*players), -skill)));
    let mut search = Search {
        parties,
        order: &order,
        size,
        teams: vec![(0, 0); count],
        of: vec![0; parties.len()],
        best: None,
        steps: STEPS_MAX,
    };
    search.place(0);
    search.best.map(|(_, of)| of)
}

struct Search<'a> {
    parties: &'a [(usize, i64)],
    order: &'a [usize],
    size: usize,
    /// Players and skill of each team so far.
    teams: Vec<(usize, i64)>,
    of: Vec<usize>,
    best: Option<(i64, Vec<usize>)>,
    steps: u32,
}

impl Search<'_> {
    fn place(&mut self, at: usize) {
        let Some(party) = self.order.get(at).copied() else {
            let skills = self.teams.iter().map(|(_, skill)| *skill);
            let spread = skills.clone().max().unwrap_or(0) - skills.min().unwrap_or(0);
            if self.best.as_ref().is_none_or(|(best, _)| spread < *best) {
                self.best = Some((spread, self.of.clone()));
            }
            return;
        };
        let Some((players, skill)) = self.parties.get(party).copied() else { return };
        // The weakest team first.
        let mut teams: Vec<usize> = (0..self.teams.len()).collect();
        teams.sort_by_key(|team| self.teams.get(*team).map(|(players, skill)| (*skill, *players)));
        let mut tried_empty = false;
        for team in teams {
            if self.steps == 0 {
                return;
            }
            let Some((has, sum)) = self.teams.get(team).copied() else { continue };
            // Empty teams are alike.
            if has + players > self.size || has == 0 && tried_empty {
                continue;
            }
            tried_empty |= has == 0;
            self.steps -= 1;
            self.teams[team] = (has + players, sum + skill);
            self.of[party] = team;
            self.place(at + 1);
            self.teams[team] = (has, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least spread of all ways, by trying them all.
    fn exhaustive(parties: &[(usize, i64)], count: usize, size: usize) -> Option<i64> {
        let ways = (count as u64).pow(u32::try_from(parties.len()).unwrap());
        (0..ways)
            .filter_map(|mut way| {
                let mut teams = vec![(0, 0); count];
                for (players, skill) in parties {
                    let team = &mut teams[usize::try_from(way).unwrap() % count];
                    *team = (team.0 + players, team.1 + skill);
                    way /= count as u64;
                }
                let fits = teams.iter().all(|(players, _)| *players == size);
                let skills = teams.iter().map(|(_, skill)| *skill);
                fits.then(|| skills.clone().max().unwrap() - skills.min().unwrap())
            })
            .min()
    }

    proptest! {
        #[test]
        fn n5_teams_are_as_equal_as_can_be(
            mut parties in proptest::collection::vec((1_usize..4, 0_i64..100), 1..8), count in 2_usize..4,
        ) {
            let players = |parties: &[(usize, i64)]| parties.iter().map(|(players, _)| players).sum::<usize>();
            while !players(&parties).is_multiple_of(count) {
                parties.push((1, 50));
            }
            let size = players(&parties) / count;
            let parties: Vec<(usize, i64)> = parties.into_iter().map(|(n, skill)| (n, skill * n as i64)).collect();
            let best = exhaustive(&parties, count, size);
            let found = split(&parties, count, size).map(|of| {
                let mut teams = vec![(0, 0); count];
                for ((players, skill), team) in parties.iter().zip(of) {
                    teams[team] = (teams[team].0 + players, teams[team].1 + skill);
                }
                assert!(teams.iter().all(|(players, _)| *players == size));
                teams.iter().map(|it| it.1).max().unwrap() - teams.iter().map(|it| it.1).min().unwrap()
            });
            prop_assert_eq!(found, best);
        }
    }
}
