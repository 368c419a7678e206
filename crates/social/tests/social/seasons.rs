//! Seasons against days of the calendar, and against clocks that leap.

use parlor_social::{Schedule, Season, SeasonClock};
use proptest::prelude::*;

/// Monday, 2 November 2026, 00:00 UTC.
const MONDAY_MS: u64 = 1_793_577_600_000;
const HOUR_MS: u64 = 60 * 60 * 1_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn at(schedule: &Schedule, now_ms: u64) -> (u64, Option<u64>) {
    let (season, ends_ms) = SeasonClock::default().season(Some(schedule), now_ms);
    (season.0, ends_ms)
}

#[test]
fn t3_a_week_begins_on_its_day_at_its_hour() {
    let mondays_at_four = Schedule::new("0 4 * * 1", 0).unwrap();
    let begins = MONDAY_MS + 4 * HOUR_MS;
    let next = begins + 7 * DAY_MS;
    for now in [begins, begins + 1, begins + 999, begins + DAY_MS, next - 1] {
        assert_eq!(at(&mondays_at_four, now), (begins, Some(next)), "{now}");
    }
    assert_eq!(at(&mondays_at_four, begins - 1), (begins - 7 * DAY_MS, Some(begins)));
    assert_eq!(at(&mondays_at_four, next).0, next);
}

#[test]
fn t3_an_offset_moves_the_hour_and_the_day() {
    let one_hour_east = Schedule::new("0 4 * * 1", 60).unwrap();
    assert_eq!(at(&one_hour_east, MONDAY_MS + DAY_MS).0, MONDAY_MS + 3 * HOUR_MS);
    // Half past midnight of a Monday at +05:30 is still Sunday in UTC.
    let in_india = Schedule::new("30 0 * * 1", 330).unwrap();
    assert_eq!(at(&in_india, MONDAY_MS).0, MONDAY_MS - 5 * HOUR_MS);
    let far_west = Schedule::new("0 0 1 * *", -11 * 60).unwrap();
    let november = MONDAY_MS - DAY_MS + 11 * HOUR_MS;
    assert_eq!(at(&far_west, november), (november, Some(november + 30 * DAY_MS)));
    assert_ne!(at(&far_west, november - 1).0, november);
}

#[test]
fn t3_a_board_without_a_schedule_has_one_season() {
    let mut clock = SeasonClock::default();
    assert_eq!(clock.season(None, MONDAY_MS), (Season(0), None));
    assert_eq!(clock.season(None, 0), (Season(0), None));
}

#[test]
fn t3_another_schedule_resets_nothing_at_once() {
    let (weekly, daily) = (Schedule::new("0 0 * * 1", 0).unwrap(), Schedule::new("0 12 * * *", 0).unwrap());
    let week = at(&weekly, MONDAY_MS + HOUR_MS).0;
    let changed_ms = MONDAY_MS + 2 * DAY_MS + 13 * HOUR_MS;
    // The last reset of the new schedule was an hour ago.
    let mut clock = SeasonClock::after(Season(week), changed_ms);
    let noon = MONDAY_MS + 3 * DAY_MS + 12 * HOUR_MS;
    for now_ms in [changed_ms, changed_ms - 5 * HOUR_MS, noon - 1] {
        assert_eq!(clock.season(Some(&daily), now_ms), (Season(week), Some(noon)));
    }
    assert_eq!(clock.season(Some(&daily), noon), (Season(noon), Some(noon + DAY_MS)));
    // A board whose only season was to be for ever.
    let mut clock = SeasonClock::after(Season(0), changed_ms);
    assert_eq!(clock.season(Some(&daily), changed_ms + HOUR_MS), (Season(0), Some(noon)));
}

#[test]
fn t3_another_schedule_never_returns_to_a_season_that_is_over() {
    let (weekly, monthly) = (Schedule::new("0 0 * * 1", 0).unwrap(), Schedule::new("0 0 1 * *", 0).unwrap());
    let week = at(&weekly, MONDAY_MS + DAY_MS).0;
    let mut clock = SeasonClock::after(Season(week), MONDAY_MS + DAY_MS);
    // The month began before the week did: the week goes on until the next month.
    let next_month = MONDAY_MS + 29 * DAY_MS;
    assert_eq!(clock.season(Some(&monthly), MONDAY_MS + DAY_MS), (Season(week), Some(next_month)));
    assert_eq!(clock.season(Some(&monthly), next_month).0, Season(next_month));
}

proptest! {
    #[test]
    fn t3_a_clock_that_leaps_moves_no_season_twice(
        pattern in prop_oneof![Just("0 4 * * 1"), Just("0 * * * *"), Just("30 23 * * *"), Just("0 0 1 1 *")],
        offset in -840..=840_i32,
        leaps in prop::collection::vec(0..800 * DAY_MS, 1..20),
        restarts_at in 0_usize..20,
    ) {
        let schedule = Schedule::new(pattern, offset).unwrap();
        let mut clock = SeasonClock::default();
        let mut newest = Season(0);
        for (at, leap) in leaps.into_iter().enumerate() {
            if at == restarts_at {
                // A server that starts again knows what is stored: the newest season.
                clock = SeasonClock::after(newest, 0);
            }
            let now_ms = MONDAY_MS + leap;
            let (season, ends_ms) = clock.season(Some(&schedule), now_ms);
            let of_this_time = SeasonClock::default().season(Some(&schedule), now_ms).0;
            prop_assert_eq!(season, newest.max(of_this_time));
            prop_assert!(ends_ms.unwrap() > season.0);
            newest = season;
        }
    }

    #[test]
    fn t3_another_schedule_begins_with_its_next_reset_also_after_a_restart(
        patterns in prop::sample::subsequence(vec!["0 4 * * 1", "0 * * * *", "30 23 * * *", "0 0 1 1 *"], 2),
        offsets in (-840..=840_i32, -840..=840_i32),
        changed in 0..800 * DAY_MS,
        later in prop::collection::vec(0..40 * DAY_MS, 1..20),
    ) {
        let before = Schedule::new(patterns[0], offsets.0).unwrap();
        let after = Schedule::new(patterns[1], offsets.1).unwrap();
        let changed_ms = MONDAY_MS + changed;
        let season = at(&before, changed_ms).0;
        let next = at(&after, changed_ms).1.unwrap();
        let mut clock = SeasonClock::after(Season(season), changed_ms);
        let mut latest = changed_ms;
        for later in later {
            let now_ms = changed_ms + later;
            latest = latest.max(now_ms);
            let expected = if latest < next { season } else { at(&after, latest).0 };
            let told = clock.season(Some(&after), now_ms);
            prop_assert_eq!(told.0, Season(expected));
            prop_assert_eq!(told.1, if latest < next { Some(next) } else { at(&after, latest).1 });
            let mut again = SeasonClock::after(told.0, changed_ms);
            prop_assert_eq!(again.season(Some(&after), now_ms), told);
        }
    }

    #[test]
    fn t3_a_season_ends_where_the_next_one_begins(offset in -840..=840_i32, leap in 0..2_000 * DAY_MS) {
        let schedule = Schedule::new("15 3 * * *", offset).unwrap();
        let (begins, ends) = at(&schedule, MONDAY_MS + leap);
        let ends = ends.unwrap();
        prop_assert_eq!(ends - begins, DAY_MS);
        prop_assert_eq!(at(&schedule, ends).0, ends);
        prop_assert_eq!(at(&schedule, ends - 1), (begins, Some(ends)));
    }
}
