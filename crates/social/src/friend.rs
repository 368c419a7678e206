//! Friends: what two accounts are to each other, and what each may do about it.

use crate::limits::{ASKED_MAX, ASKS_MAX, BLOCKED_MAX, FRIENDS_MAX};
use thiserror::Error;

/// What another account is to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FriendState {
    /// A friend, on both sides.
    Friend,
    /// The account has asked the other.
    Asked,
    /// The other asks the account.
    Asks,
    /// The account has blocked the other, which does not learn of it.
    Blocked,
}

impl FriendState {
    /// All states.
    pub const ALL: [FriendState; 4] =
        [FriendState::Friend, FriendState::Asked, FriendState::Asks, FriendState::Blocked];

    /// Its word in the store and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            FriendState::Friend => "friend",
            FriendState::Asked => "asked",
            FriendState::Asks => "asks",
            FriendState::Blocked => "blocked",
        }
    }

    /// The state with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// What two accounts are to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// What the other is to the account that acts.
    pub mine: Option<FriendState>,
    /// What that account is to the other.
    pub theirs: Option<FriendState>,
}

/// What an account does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FriendStep {
    /// Asks the other, or accepts if the other has asked.
    Ask,
    /// Accepts what the other has asked.
    Accept,
    /// Ends a friendship, refuses the other's request, or takes back its own.
    Remove,
    /// Blocks the other, and ends whatever there was.
    Block,
    /// Ends a block.
    Unblock,
}

/// How many others are in each state to an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FriendCounts {
    /// Friends.
    pub friends: usize,
    /// Asked by the account.
    pub asked: usize,
    /// Asking the account.
    pub asks: usize,
    /// Blocked by the account.
    pub blocked: usize,
}

/// Why a step is refused. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FriendRefused {
    /// The other has blocked the account, which must look as if there were no such account.
    #[error("there is no such player")]
    NoSuchPlayer,
    /// The account has blocked the other.
    #[error("you have blocked this player: unblock it first")]
    Blocked,
    /// There is nothing to accept.
    #[error("this player does not ask")]
    NotAsked,
    /// A list of the account is full.
    #[error("your list is full: remove somebody first")]
    Full,
    /// The other's list of friends is full.
    #[error("the other player has {FRIENDS_MAX} friends, and can have no more")]
    OtherFull,
    /// Too many wait for the other's answer.
    #[error("{ASKS_MAX} requests wait for this player's answer: ask again later")]
    AskedTooOften,
}

impl Relation {
    /// What a step makes of it. `mine` and `theirs` are the counts of both accounts.
    ///
    /// # Errors
    /// [`FriendRefused`]; then nothing changes.
    pub fn step(
        self,
        step: FriendStep,
        mine: &FriendCounts,
        theirs: &FriendCounts,
    ) -> Result<Relation, FriendRefused> {
        use FriendState::{Asked, Asks, Blocked, Friend};
        let Relation { mine: held, theirs: other } = self;
        let both = |state, other| Relation { mine: state, theirs: other };
        match step {
            FriendStep::Ask | FriendStep::Accept if held == Some(Blocked) => Err(FriendRefused::Blocked),
            FriendStep::Ask | FriendStep::Accept if other == Some(Blocked) => {
                Err(FriendRefused::NoSuchPlayer)
            }
            FriendStep::Ask | FriendStep::Accept if held == Some(Friend) => Ok(self),
            FriendStep::Ask | FriendStep::Accept if held == Some(Asks) => {
                if mine.friends >= FRIENDS_MAX {
                    return Err(FriendRefused::Full);
                }
                if theirs.friends >= FRIENDS_MAX {
                    return Err(FriendRefused::OtherFull);
                }
                Ok(both(Some(Friend), Some(Friend)))
            }
            FriendStep::Ask if held == Some(Asked) => Ok(self),
            FriendStep::Ask => {
                if mine.asked >= ASKED_MAX || mine.friends >= FRIENDS_MAX {
                    return Err(FriendRefused::Full);
                }
                if theirs.asks >= ASKS_MAX {
                    return Err(FriendRefused::AskedTooOften);
                }
                Ok(both(Some(Asked), Some(Asks)))
            }
            FriendStep::Accept => Err(FriendRefused::NotAsked),
            FriendStep::Remove => match held {
                // A block of either side is no friendship, and stays.
                Some(Blocked) | None => Ok(self),
                Some(Friend | Asked | Asks) => Ok(both(None, None)),
            },
            FriendStep::Block => {
                if held != Some(Blocked) && mine.blocked >= BLOCKED_MAX {
                    return Err(FriendRefused::Full);
                }
                Ok(both(Some(Blocked), other.filter(|other| *other == Blocked)))
            }
            FriendStep::Unblock => Ok(both(held.filter(|held| *held != Blocked), other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All pairs of states that can be stored.
    fn is_possible(Relation { mine, theirs }: Relation) -> bool {
        use FriendState::{Asked, Asks, Blocked, Friend};
        matches!(
            (mine, theirs),
            (None | Some(Blocked), None | Some(Blocked))
                | (Some(Friend), Some(Friend))
                | (Some(Asked), Some(Asks))
                | (Some(Asks), Some(Asked))
        )
    }

    fn turned(relation: Relation) -> Relation {
        Relation { mine: relation.theirs, theirs: relation.mine }
    }

    proptest! {
        #[test]
        fn t2_two_players_are_the_same_to_each_other_whatever_both_do(
            steps in proptest::collection::vec((any::<bool>(), 0_usize..5), 0..40),
        ) {
            let all = [FriendStep::Ask, FriendStep::Accept, FriendStep::Remove, FriendStep::Block, FriendStep::Unblock];
            let (mut relation, counts) = (Relation::default(), FriendCounts::default());
            for (is_other, step) in steps {
                let before = if is_other { turned(relation) } else { relation };
                let after = before.step(all[step], &counts, &counts).unwrap_or(before);
                prop_assert!(is_possible(after), "{before:?} {:?} {after:?}", all[step]);
                // Only who acts changes its own block.
                let blocked = Some(FriendState::Blocked);
                prop_assert_eq!(before.theirs == blocked, after.theirs == blocked);
                relation = if is_other { turned(after) } else { after };
            }
        }
    }

    #[test]
    fn threat_32_who_is_blocked_gets_the_answer_of_an_unknown_account_and_may_ask_again_later() {
        let counts = FriendCounts::default();
        let of = |mine, theirs| Relation { mine, theirs };
        let blocked = of(None, Some(FriendState::Blocked));
        assert_eq!(blocked.step(FriendStep::Ask, &counts, &counts), Err(FriendRefused::NoSuchPlayer));
        let unblocked = turned(blocked).step(FriendStep::Unblock, &counts, &counts).unwrap();
        assert_eq!(unblocked, Relation::default(), "no row stays");
        let asked = unblocked.step(FriendStep::Ask, &counts, &counts).unwrap();
        assert_eq!(asked, of(Some(FriendState::Asked), Some(FriendState::Asks)));
        // Both ask: they are friends.
        let friends = turned(asked).step(FriendStep::Ask, &counts, &counts).unwrap();
        assert_eq!(friends, of(Some(FriendState::Friend), Some(FriendState::Friend)));
    }

    #[test]
    fn threat_43_every_list_has_an_end() {
        let (none, relation) = (FriendCounts::default(), Relation::default());
        let full = FriendCounts { friends: FRIENDS_MAX, ..none };
        let ask = |mine: &FriendCounts, theirs: &FriendCounts| relation.step(FriendStep::Ask, mine, theirs);
        assert_eq!(ask(&full, &none), Err(FriendRefused::Full));
        assert_eq!(ask(&FriendCounts { asked: ASKED_MAX, ..none }, &none), Err(FriendRefused::Full));
        assert_eq!(ask(&none, &FriendCounts { asks: ASKS_MAX, ..none }), Err(FriendRefused::AskedTooOften));
        let asks = Relation { mine: Some(FriendState::Asks), theirs: Some(FriendState::Asked) };
        assert_eq!(asks.step(FriendStep::Accept, &none, &full), Err(FriendRefused::OtherFull));
        assert_eq!(asks.step(FriendStep::Accept, &full, &none), Err(FriendRefused::Full));
        let blocks = FriendCounts { blocked: BLOCKED_MAX, ..none };
        assert_eq!(relation.step(FriendStep::Block, &blocks, &none), Err(FriendRefused::Full));
    }
}
