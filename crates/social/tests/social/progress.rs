//! Statistics, achievements and ratings against a few plain lines.

use parlor_social::limits::{NUMBER_MAX, TOTALLED_MAX};
use parlor_social::{
    Achievement, Goal, Name, Progress, ProgressRefused, ProgressWrite, RATING_START, Rating, ResultRefused,
    Statistic, StatisticKeep, StatisticRefused, StatisticValue, StatisticWrite, rate, unlocks,
};
use proptest::prelude::*;
use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};

fn named(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn write(number: i64, id: u64) -> StatisticWrite {
    StatisticWrite { number, id: Some(id) }
}

#[test]
fn t4_a_write_that_comes_again_counts_once_and_the_last_four_are_known() {
    let kills = Statistic::default();
    let mut held: Option<StatisticValue> = None;
    for id in 1..=5 {
        held = Some(kills.write(held.as_ref(), write(10, id)).unwrap().value);
    }
    for (id, value, again) in [(5, 50, true), (2, 50, true), (1, 60, false)] {
        let written = kills.write(held.as_ref(), write(10, id)).unwrap();
        assert_eq!((written.value.value, written.again, written.is_changed), (value, again, !again), "{id}");
    }
    let no_id = StatisticWrite { number: 10, id: None };
    assert_eq!(kills.write(held.as_ref(), no_id).unwrap().value.value, 60);
}

#[test]
fn t4_numbers_out_of_range_are_refused() {
    let level = Statistic { keep: StatisticKeep::Last, min: Some(1), max: Some(60), ..Statistic::default() };
    for number in [0, 61, i64::MIN, i64::MAX] {
        assert_eq!(
            level.write(None, write(number, 1)),
            Err(StatisticRefused::Range { min: 1, max: 60 }),
            "{number}"
        );
    }
    let held = StatisticValue { value: NUMBER_MAX, ..StatisticValue::default() };
    assert_eq!(Statistic::default().write(Some(&held), write(1, 1)), Err(StatisticRefused::Sum(NUMBER_MAX)));
    let totalled = Statistic { totals: true, ..Statistic::default() };
    let (min, max) = (-TOTALLED_MAX, TOTALLED_MAX);
    assert_eq!(totalled.write(None, write(TOTALLED_MAX + 1, 1)), Err(StatisticRefused::Range { min, max }));
}

#[test]
fn t4_a_definition_is_checked_by_its_first_wrong_field() {
    let bad = |statistic: Statistic| statistic.check().unwrap_err().field;
    assert_eq!(bad(Statistic { title: "x".repeat(300), ..Statistic::default() }), "title");
    assert_eq!(bad(Statistic { min: Some(i64::MIN), ..Statistic::default() }), "min");
    assert_eq!(bad(Statistic { min: Some(2), max: Some(1), ..Statistic::default() }), "max");
    assert_eq!(bad(Statistic { board: Some("a b".into()), ..Statistic::default() }), "board");
    let bad = |achievement: Achievement| achievement.check().unwrap_err().field;
    assert_eq!(bad(Achievement { count: Some(0), ..Achievement::default() }), "count");
    let both = Achievement {
        count: Some(2),
        statistic: Some("kills".into()),
        at: Some(1),
        ..Achievement::default()
    };
    assert_eq!(bad(both), "count");
    assert_eq!(bad(Achievement { at: Some(1), ..Achievement::default() }), "statistic");
    assert_eq!(bad(Achievement { statistic: Some("kills".into()), ..Achievement::default() }), "at");
    assert_eq!(
        bad(Achievement { statistic: Some("a b".into()), at: Some(1), ..Achievement::default() }),
        "statistic"
    );
    assert_eq!(bad(Achievement { description: "x".repeat(2000), ..Achievement::default() }), "description");
    assert_eq!(Achievement::default().goal(), Some(Goal::Count(1)));
}

#[test]
fn t4_an_achievement_is_unlocked_once_and_may_be_reset() {
    let steps = Goal::Count(5);
    let locked = Progress::default();
    let (three, is_new) = locked.write(&steps, ProgressWrite::Add(3), Some(1), 7).unwrap();
    assert_eq!((three.steps, three.unlocked_ms, is_new), (3, None, false));
    assert_eq!(three.write(&steps, ProgressWrite::Add(3), Some(1), 8).unwrap(), (three.clone(), false));
    assert_eq!(three.write(&steps, ProgressWrite::To(2), None, 8).unwrap().0.steps, 3);
    let (done, is_new) = three.write(&steps, ProgressWrite::Add(u64::MAX), Some(2), 9).unwrap();
    assert_eq!((done.steps, done.unlocked_ms, is_new), (5, Some(9), true));
    let (again, is_new) = done.write(&steps, ProgressWrite::Unlock, Some(3), 10).unwrap();
    assert_eq!((again.unlocked_ms, is_new), (Some(9), false), "it keeps its first time");
    let (reset, _) = again.write(&steps, ProgressWrite::Reset, Some(4), 11).unwrap();
    assert_eq!((reset.steps, reset.unlocked_ms), (0, None));
    let by_kills = Goal::Statistic { name: Name::new("kills").unwrap(), at: 100 };
    assert_eq!(locked.write(&by_kills, ProgressWrite::Unlock, None, 1), Err(ProgressRefused::GoalDecides));
    assert_eq!(locked.follow(true, 12).0.unlocked_ms, Some(12));
    let laps = Statistic { keep: StatisticKeep::Least, ..Statistic::default() };
    assert!(laps.has_reached(59, 60) && laps.has_reached(60, 60) && !laps.has_reached(61, 60));
}

proptest! {
    #[test]
    fn t4_a_statistic_is_what_its_writes_come_to(
        keep in prop_oneof![
            Just(StatisticKeep::Sum), Just(StatisticKeep::Last), Just(StatisticKeep::Most), Just(StatisticKeep::Least),
        ],
        numbers in proptest::collection::vec(-1000_i64..1000, 1..40),
    ) {
        let statistic = Statistic { keep, ..Statistic::default() };
        let (mut held, mut growth) = (None::<StatisticValue>, 0);
        for (at, number) in numbers.iter().enumerate() {
            let written = statistic.write(held.as_ref(), write(*number, at as u64 + 1)).unwrap();
            growth += written.growth;
            held = Some(written.value);
        }
        let expected = match keep {
            StatisticKeep::Sum => numbers.iter().sum(),
            StatisticKeep::Last => *numbers.last().unwrap(),
            StatisticKeep::Most => *numbers.iter().max().unwrap(),
            StatisticKeep::Least => *numbers.iter().min().unwrap(),
        };
        prop_assert_eq!(held.unwrap().value, expected);
        prop_assert_eq!(growth, expected, "what is totalled is what all writes have added");
    }

    #[test]
    fn n5_ratings_are_those_of_the_library_to_a_millionth(
        sizes in proptest::collection::vec((1_usize..4, 1_u32..4), 2..5),
        means in proptest::collection::vec(0_i64..50_000_000, 16),
    ) {
        let mut means = means.into_iter();
        let teams: Vec<(Vec<Rating>, u32)> = sizes
            .iter()
            .map(|(size, place)| {
                let rating = |mean| Rating { mean, ..RATING_START };
                (means.by_ref().take(*size).map(rating).collect(), *place)
            })
            .collect();
        let given: Vec<Vec<WengLinRating>> = teams
            .iter()
            .map(|(team, _)| {
                let as_given = |rating: &Rating| WengLinRating {
                    rating: rating.mean as f64 / 1e6,
                    uncertainty: rating.doubt as f64 / 1e6,
                };
                team.iter().map(as_given).collect()
            })
            .collect();
        let places: Vec<(&[WengLinRating], MultiTeamOutcome)> = given
            .iter()
            .zip(&teams)
            .map(|(team, (_, place))| (&team[..], MultiTeamOutcome::new(*place as usize)))
            .collect();
        let expected = weng_lin_multi_team(&places, &WengLinConfig::default());
        let rated = rate(&teams).unwrap();
        for (rated, expected) in rated.iter().flatten().zip(expected.iter().flatten()) {
            prop_assert!((rated.mean as f64 / 1e6 - expected.rating).abs() < 1e-5);
            prop_assert!(rated.doubt > 0 && rated.doubt <= RATING_START.doubt && rated.games == 1);
        }
    }
}

#[test]
fn n5_who_wins_gains_and_results_that_cannot_be_are_refused() {
    assert_eq!((RATING_START.points(), RATING_START.uncertainty()), (2500, 833));
    let rated = rate(&[(vec![RATING_START], 1), (vec![RATING_START], 2)]).unwrap();
    assert!(rated[0][0].points() > 2500 && rated[1][0].points() < 2500, "{rated:?}");
    let drawn = rate(&[(vec![RATING_START], 1), (vec![RATING_START], 1)]).unwrap();
    assert_eq!(drawn[0][0].points(), drawn[1][0].points());
    assert_eq!(rate(&[(vec![RATING_START], 1)]), Err(ResultRefused::Teams));
    assert_eq!(rate(&[(vec![RATING_START], 1), (vec![], 2)]), Err(ResultRefused::Players));
    let crowd = vec![RATING_START; 100];
    assert_eq!(rate(&[(crowd.clone(), 1), (crowd, 2)]), Err(ResultRefused::Players));
    // However long somebody wins, its rating stays a number.
    let (mut one, mut other) = (RATING_START, RATING_START);
    for _ in 0..10_000 {
        let rated = rate(&[(vec![one], 1), (vec![other], 2)]).unwrap();
        (one, other) = (rated[0][0], rated[1][0]);
    }
    assert!(
        one.mean > other.mean && one.mean <= 1_000_000_000 && other.mean >= -1_000_000_000,
        "{one:?} {other:?}"
    );
}

#[test]
fn t4_a_statistic_unlocks_the_achievements_that_name_it() {
    let of = |statistic: Option<&str>, at| Achievement {
        statistic: statistic.map(str::to_owned),
        at,
        ..Achievement::default()
    };
    let all = [
        (named("a"), of(Some("kills"), Some(3))),
        (named("b"), of(Some("deaths"), Some(3))),
        (named("c"), of(None, None)),
    ];
    let found = unlocks(all.iter().map(|(name, it)| (name, it)), &named("kills"));
    assert_eq!(found, [(named("a"), 3)]);
}
