//! Enumeration of room codes, on virtual time: against the counters alone, and against a hub.

use super::*;
use crate::{Config, Hub, Output};
use parlor_proto::session::{Event, Rejection, Session};
use parlor_proto::wire::handshake::{Intent, RoomKind, RoomSettings};
use parlor_proto::{ConnectionId, LinkKind, RoomCode, code};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const HOUR: Duration = Duration::from_secs(3_600);
const START: Instant = Instant::from_millis(1);

fn guesses() -> Guesses {
    let mut random = ChaCha12Rng::from_seed([3; 32]);
    Guesses::new(GuessLimits::default(), || random.next_u64())
}

/// Anonymous guesses; each returns whether the code was looked up.
impl Guesses {
    fn wrong(&mut self, origin: Origin, now: Instant) -> bool {
        self.begin(origin, false, now).is_ok_and(|guess| {
            self.settle(guess, Outcome::Wrong, now);
            true
        })
    }

    fn right(&mut self, origin: Origin, now: Instant) -> bool {
        self.begin(origin, false, now).is_ok_and(|guess| {
            self.settle(guess, Outcome::Right, now);
            true
        })
    }
}

/// Origins in different neighbourhoods.
fn far_apart(number: u64) -> Origin {
    Origin((number + 1) << 16)
}

/// The maximum of allowed guesses of one place in an hour.
fn an_hour_of(rate: Rate) -> u64 {
    u64::from(rate.burst) + u64::try_from(HOUR.as_micros() / rate.interval.as_micros()).unwrap()
}

#[test]
fn threat_10_one_origin_guesses_no_more_than_its_budget() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default().calm);
    let mut let_through = 0_u64;
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_millis(50);
        let_through += u64::from(guesses.wrong(far_apart(1), now));
        assert!(guesses.right(far_apart(2), now), "nobody else is held back");
        assert!(guesses.right(Origin::LOCAL, now));
    }
    assert!(
        (an_hour_of(limits.origin) - 2..=an_hour_of(limits.origin)).contains(&let_through),
        "{let_through}"
    );
}

#[test]
fn threat_10_many_addresses_of_one_neighbourhood_share_its_budget() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default().calm);
    let mut let_through = 0_u64;
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_millis(100);
        for address in 0..20 {
            let origin = Origin((7 << 16) | address);
            let_through += u64::from(guesses.wrong(origin, now));
        }
    }
    assert!(let_through <= an_hour_of(limits.neighbourhood), "{let_through}");
    assert!(guesses.right(far_apart(8), now));
}

#[test]
fn threat_10_a_search_from_many_places_slows_down_and_locks_nobody_out() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default());
    let places = 500;
    let (mut let_through, mut slips) = (0_u64, 0);
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_secs(1);
        for place in 0..places {
            let_through += u64::from(guesses.wrong(far_apart(place), now));
        }
        // Every minute a new player comes, mistypes twice and then types the right code.
        if (now.as_millis() / 1_000).is_multiple_of(60) {
            let honest = far_apart(100_000 + now.as_millis() / 60_000);
            for _ in 0..2 {
                assert!(guesses.wrong(honest, now), "at {now}");
            }
            assert!(guesses.right(honest, now), "at {now}");
            slips += 1;
        }
    }
    assert!(slips >= 59);
    // What all may spend before the search is detected, and then what each place has during it.
    let most = u64::from(limits.all.burst) + places * an_hour_of(limits.searched.origin);
    assert!(let_through <= most, "{let_through} of {most}");
    assert!(
        let_through < places * an_hour_of(limits.calm.origin) / 2,
        "it is slower than without: {let_through}"
    );
    assert_eq!(guesses.code_letters_extra(now), limits.code_letters_extra);
    // Half of the spending is paid back, so the search state ends.
    let later = now + limits.all.interval * limits.all.burst / 2;
    assert_eq!(guesses.code_letters_extra(later), 0);
}

/// A hub, and clients that send hellos and read its answers.
struct Server {
    hub: Hub,
    next: u64,
    random: ChaCha12Rng,
}

impl Server {
    fn new() -> Self {
        Server {
            hub: Hub::new(Config { grace: Duration::ZERO, ..Config::new([9; 32]) }),
            next: 0,
            random: ChaCha12Rng::from_seed([4; 32]),
        }
    }

    fn ask(&mut self, hello: Hello, origin: Origin, now: Instant) -> Event {
        self.next += 1;
        let id = ConnectionId(self.next);
        let mut client = Session::client(hello, LinkKind::Quic, now);
        self.hub.handle_connected(id, LinkKind::Quic, origin, now);
        while let Some(packet) = client.poll_packet(now) {
            self.hub.handle_packet(id, packet, now);
        }
        self.hub.flush(now);
        let mut answer = None;
        while let Some(output) = self.hub.poll_output() {
            if let Output::Packet { connection, packet } = output
                && connection == id
            {
                client.handle_packet(packet, now).expect("a hub keeps to the protocol");
                answer = answer.or_else(|| client.poll_event());
            }
        }
        answer.expect("a hub answers at once")
    }

    fn leave(&mut self, now: Instant) {
        self.hub.handle_disconnected(ConnectionId(self.next), now);
    }

    fn a_code(&mut self, len: usize) -> RoomCode {
        RoomCode::draw(len, || self.random.next_u32())
    }
}

fn creating(code: Option<RoomCode>, secret: Option<&str>) -> Hello {
    let secret = secret.map(str::to_owned);
    let settings = RoomSettings { code, secret, ..RoomSettings::new(RoomKind::PlayerHosted, 16) };
    Hello::new("tanks", Intent::Create(settings))
}

fn joining(code: RoomCode, secret: Option<&str>) -> Hello {
    Hello::new("tanks", Intent::Join { code, secret: secret.map(str::to_owned) })
}

fn code_of(event: &Event) -> RoomCode {
    match event {
        Event::Welcome(welcome) => welcome.code,
        event => panic!("{event:?}"),
    }
}

fn is_told_to_wait(event: &Event) -> bool {
    matches!(event, Event::Rejected(Rejection::RetryAfter(_)))
}

const NO_SUCH_ROOM: Event = Event::Rejected(Rejection::Refused(Refusal::NoSuchRoom));

#[test]
fn threat_10_a_hub_looks_up_no_code_for_whoever_has_guessed_too_much() {
    let mut server = Server::new();
    let room = code_of(&server.ask(creating(None, None), far_apart(0), START));
    let (attacker, friend) = (far_apart(1), far_apart(2));
    let mut looked_up = 0;
    let mut now = START;
    for _ in 0..2_000 {
        now += Duration::from_millis(50);
        let guess = server.a_code(4);
        assert_ne!(guess, room, "another seed");
        let answer = server.ask(joining(guess, None), attacker, now);
        if answer == NO_SUCH_ROOM {
            looked_up += 1;
        } else {
            assert!(is_told_to_wait(&answer), "{answer:?}");
        }
    }
    let limits = GuessLimits::default().calm.origin;
    assert_eq!(looked_up, limits.burst + 100 / 15, "100 seconds of it");
    // The right code is answered like any other: nothing is looked up.
    let (right, wrong) = (joining(room, None), joining(server.a_code(4), None));
    let right = server.ask(right, attacker, now);
    assert!(is_told_to_wait(&right));
    assert_eq!(right, server.ask(wrong, attacker, now));
    // Other clients get in, and so does this one after the wait.
    assert_eq!(code_of(&server.ask(joining(room, None), friend, now)), room);
    let Event::Rejected(Rejection::RetryAfter(retry)) = right else { unreachable!("it was told to wait") };
    assert_eq!(code_of(&server.ask(joining(room, None), attacker, now + retry.after)), room);
}

#[test]
fn threat_10_right_codes_cost_nothing() {
    let mut server = Server::new();
    let room = code_of(&server.ask(creating(None, None), far_apart(0), START));
    // With some hundred more, the host, which reads nothing here, would be too slow for its room.
    for join in 0..5 * GuessLimits::default().calm.origin.burst {
        let answer = server.ask(joining(room, None), far_apart(1), START);
        assert_eq!(code_of(&answer), room, "join {join}");
        server.leave(START);
    }
}

#[test]
fn threat_10_wrong_secrets_and_chosen_codes_are_guesses_too() {
    let burst = GuessLimits::default().calm.origin.burst;
    let mut server = Server::new();
    let room = code_of(&server.ask(creating(None, Some("sesame")), far_apart(0), START));
    for _ in 0..burst {
        assert_eq!(server.ask(joining(room, Some("open")), far_apart(1), START), NO_SUCH_ROOM);
    }
    assert!(is_told_to_wait(&server.ask(joining(room, Some("sesame")), far_apart(1), START)));
    for _ in 0..burst {
        let chosen = server.a_code(4);
        code_of(&server.ask(creating(Some(chosen), None), far_apart(2), START));
        server.leave(START);
    }
    assert!(is_told_to_wait(&server.ask(creating(Some(room), None), far_apart(2), START)));
    // Opening a room under a drawn code reveals nothing.
    code_of(&server.ask(creating(None, None), far_apart(2), START));
}

#[test]
fn threat_10_no_such_room_and_not_allowed_are_answered_alike() {
    let mut server = Server::new();
    let mut secret = creating(None, Some("sesame"));
    secret.environment = "production".into();
    let room = code_of(&server.ask(secret, Origin::LOCAL, START));
    let known = Hello { environment: "production".into(), ..joining(room, Some("sesame")) };
    code_of(&server.ask(known.clone(), Origin::LOCAL, START));
    let other_game = |hello: Hello| Hello { app: "golf".into(), ..hello };
    let unknown = server.a_code(4);
    for hello in [
        joining(unknown, None),
        Hello { environment: "production".into(), ..joining(room, None) },
        Hello { environment: "production".into(), ..joining(room, Some("sesam")) },
        Hello { environment: "production".into(), ..joining(room, Some(&"s".repeat(64))) },
        joining(room, Some("sesame")),
        // A room's game, channels and seats are not revealed to clients without its secret.
        other_game(joining(room, Some("sesame"))),
        other_game(Hello { environment: "production".into(), ..joining(room, None) }),
    ] {
        assert_eq!(server.ask(hello.clone(), Origin::LOCAL, START), NO_SUCH_ROOM, "{hello:?}");
    }
    let expected = Refusal::App { expected: "tanks".into() };
    let refused = Event::Rejected(Rejection::Refused(expected));
    assert_eq!(server.ask(other_game(known), Origin::LOCAL, START), refused);
}

#[test]
fn threat_10_codes_are_longer_while_the_server_is_searched() {
    let mut server = Server::new();
    let limits = GuessLimits::default();
    let drawn = code_of(&server.ask(creating(None, None), Origin::LOCAL, START));
    assert_eq!(drawn.as_str().len(), code::CODE_LEN_MIN);
    for place in 0..u64::from(limits.all.burst) / 10 + 1 {
        for _ in 0..10 {
            let guess = server.a_code(4);
            server.ask(joining(guess, None), far_apart(place), START);
        }
    }
    let drawn = code_of(&server.ask(creating(None, None), Origin::LOCAL, START));
    assert_eq!(drawn.as_str().len(), code::CODE_LEN_MIN + limits.code_letters_extra);
}

#[test]
fn threat_10_a_share_of_all_codes_is_as_hard_to_guess_as_all_of_them() {
    let addresses: Vec<String> = (0..4).map(|port| format!(":{port}")).collect();
    let shards = crate::Shards::new(1, addresses);
    let mut server = Server::new();
    server.hub = Hub::new(Config { shards, ..Config::new([9; 32]) });
    let mut by_length = [0_u64; code::CODE_LEN_MAX + 1];
    for _ in 0..40 {
        let code = code_of(&server.ask(creating(None, None), Origin::LOCAL, START));
        by_length[code.as_str().len()] += 1;
    }
    // A guess hits this hub's quarter of the codes, and finds one of its rooms.
    for (len, rooms) in by_length.iter().enumerate() {
        let codes = 31_u64.pow(u32::try_from(len).unwrap()) / 4;
        assert!(rooms * 10_000 <= codes, "{rooms} rooms under {len} letters");
    }
}

#[test]
fn threat_48_a_guess_counts_from_the_moment_at_which_it_is_begun() {
    let burst = GuessLimits::default().calm.origin.burst as usize;
    let mut guesses = guesses();
    let begin = |guesses: &mut Guesses, origin| -> Vec<Guess> {
        (0..66).filter_map(|_| guesses.begin(origin, false, START).ok()).collect()
    };
    let under_way = begin(&mut guesses, far_apart(1));
    assert_eq!(under_way.len(), burst);
    assert_eq!(guesses.begin(far_apart(1), false, START), Err(UNDER_WAY_WAIT), "they are settled soon");
    assert_eq!(begin(&mut guesses, far_apart(2)).len(), burst, "nobody else is held back");
    assert_eq!(begin(&mut guesses, Origin::LOCAL).len(), 66);
    under_way.into_iter().for_each(|guess| guesses.settle(guess, Outcome::Right, START));
    let mut under_way = begin(&mut guesses, far_apart(1));
    assert_eq!(under_way.len(), burst, "right ones are given back");
    let last = under_way.pop().unwrap();
    under_way.into_iter().for_each(|guess| guesses.settle(guess, Outcome::Wrong, START));
    assert_eq!(guesses.begin(far_apart(1), false, START), Err(UNDER_WAY_WAIT));
    guesses.settle(last, Outcome::Wrong, START);
    let interval = GuessLimits::default().calm.origin.interval;
    assert_eq!(guesses.begin(far_apart(1), false, START), Err(interval));
    assert_eq!(begin(&mut guesses, far_apart(3)).len(), burst);
    assert!(guesses.under_way.keys().all(|place| *place != Place::Origin(far_apart(1).0)), "it is forgotten");
}

/// Admits every client with a token, as the user that the token names.
#[derive(Debug)]
struct Vouching(AdmitAll);

impl AdmissionPolicy for Vouching {
    fn begin_guess(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration> {
        self.0.begin_guess(origin, has_token, now)
    }

    fn charge_user(
        &mut self,
        guess: &mut Guess,
        hello: &Hello,
        user: &str,
        now: Instant,
    ) -> Result<(), Duration> {
        let (app, user) = (hello.app.bytes(), user.bytes());
        let key = app.chain(user).fold(0, |key: u64, byte| key.rotate_left(8) ^ u64::from(byte));
        self.0.guesses.charge_user(guess, UserKey(key), now)
    }

    fn settle_guess(&mut self, guess: Guess, outcome: Outcome, now: Instant) {
        self.0.settle_guess(guess, outcome, now);
    }

    fn code_letters_extra(&self, now: Instant) -> usize {
        self.0.code_letters_extra(now)
    }

    fn admit(&mut self, hello: &Hello, _now: Instant) -> Result<Admitted, Refusal> {
        let user = match &hello.auth {
            Auth::Anonymous => None,
            Auth::Token(token) => Some(String::from_utf8_lossy(token).into_owned()),
        };
        Ok(Admitted { user, token: None })
    }
}

impl Server {
    fn vouching() -> Self {
        let policy = Box::new(Vouching(AdmitAll::new(guesses())));
        let config = Config { grace: Duration::ZERO, ..Config::new([9; 32]) };
        Server { hub: Hub::with_policy(config, policy), ..Server::new() }
    }

    /// Whether a wrong code is looked up for a user.
    fn looks_up(&mut self, user: &str, origin: Origin, now: Instant) -> bool {
        let code = self.a_code(4);
        let answer = self.ask(by_token(user, joining(code, None)), origin, now);
        assert!(answer == NO_SUCH_ROOM || is_told_to_wait(&answer), "{answer:?}");
        answer == NO_SUCH_ROOM
    }
}

fn by_token(user: &str, hello: Hello) -> Hello {
    Hello { auth: Auth::Token(user.to_owned().into()), ..hello }
}

#[test]
fn threat_48_a_user_guesses_no_more_than_its_budget_wherever_it_comes_from() {
    let mut server = Server::vouching();
    let room = code_of(&server.ask(creating(None, None), Origin::LOCAL, START));
    let (mut looked_up, mut now) = (0, START);
    for guess in 0..449 {
        now += Duration::from_millis(100);
        looked_up += u32::from(server.looks_up("ada", far_apart(guess % 30), now));
    }
    assert_eq!(looked_up, GuessLimits::default().calm.user.burst + 44 / 15, "45 seconds of it");
    assert!(is_told_to_wait(&server.ask(by_token("ada", joining(room, None)), far_apart(40), now)));
    // Opening a room under a drawn code reveals nothing, and another user has a separate budget.
    code_of(&server.ask(by_token("ada", creating(None, None)), far_apart(41), now));
    assert_eq!(code_of(&server.ask(by_token("bob", joining(room, None)), far_apart(1), now)), room);
}

#[test]
fn threat_48_users_of_one_origin_share_twice_a_users_budget_and_lock_no_stranger_out() {
    let limits = GuessLimits::default().calm;
    let mut server = Server::vouching();
    let place = far_apart(1);
    let mut looked_up = Vec::new();
    for user in ["ada", "bob", "cyd", "dan"] {
        looked_up.push((0..100).filter(|_| server.looks_up(user, place, START)).count());
    }
    let burst = limits.user.burst as usize;
    assert_eq!(looked_up, [burst, burst, 0, 0], "no user alone uses up what all of them have");
    assert_eq!(limits.users_of_origin.burst as usize, 2 * burst);
    let code = server.a_code(4);
    assert_eq!(server.ask(joining(code, None), place, START), NO_SUCH_ROOM);
    assert!(server.looks_up("dan", far_apart(2), START));
}
