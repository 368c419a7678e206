//! What a trace says of logs that are made up.

use super::*;
use parlor_proto::TickRate;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn moment(moment: Moment, tick: u32, at: u64) -> LoggedMoment {
    LoggedMoment { moment, tick: Tick(tick), room_time: ms(at) }
}

fn log(member: u32, is_host: bool, moments: Vec<LoggedMoment>) -> Log {
    let rate = TickRate::DEFAULT;
    Log { member: MemberId(member), rate, is_host, moments, sent: Vec::new(), came: Vec::new() }
}

/// Player 1 presses in step 10, 40 ms before the host runs it; player 2 watches.
fn logs(came: u64) -> Vec<Log> {
    let mut host = log(0, true, vec![moment(Moment::Step, 10, 333)]);
    host.came = vec![(ms(250), Some(MemberId(2)), Tick(10)), (ms(came), Some(MemberId(1)), Tick(10))];
    let state = |input, tick, at| moment(Moment::State { input }, tick, at);
    let mut player = log(
        1,
        false,
        vec![
            moment(Moment::Step, 10, 293),
            state(Some(Tick(9)), 9, 340),
            state(Some(Tick(10)), 10, 353),
            moment(Moment::Drawn, 9, 360),
            moment(Moment::Drawn, 10, 400),
        ],
    );
    player.sent = vec![(ms(260), Tick(9)), (ms(294), Tick(10))];
    let watcher =
        log(2, false, vec![state(None, 9, 330), state(None, 10, 363), moment(Moment::Drawn, 11, 430)]);
    vec![host, player, watcher]
}

#[test]
fn x15_an_input_is_followed_from_the_key_press_to_what_every_member_drew() {
    let logs = logs(313);
    let seen = passages(&logs[1], &logs, Tick(10)).expect("it is in the logs");
    let seen: Vec<(f64, u32, &str)> =
        seen.iter().map(|it| (it.at_ms.round(), it.member, it.what.as_str())).collect();
    let expected = [
        (0.0, 1, "presses: step 10 runs"),
        (1.0, 1, "sends it"),
        (20.0, 0, "receives it, as host"),
        (40.0, 0, "uses it in step 10, 20.0 ms after it came"),
        (60.0, 1, "has the state of step 10, with it"),
        (70.0, 2, "has the state of step 10, with it"),
        (107.0, 1, "draws step 10"),
        (137.0, 2, "draws step 11"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(traceable(&logs[1], &logs), None, "of player 1 nothing newer is shown");
    assert!(passages(&logs[1], &logs, Tick(99)).is_err());
}

#[test]
fn x15_an_input_that_comes_after_its_step_is_said_to_be_late() {
    let logs = logs(340);
    let seen = passages(&logs[1], &logs, Tick(10)).expect("it is in the logs");
    assert!(seen.iter().any(|it| it.what == "runs step 10 without it: it comes 7.0 ms later"), "{seen:?}");
}
