//! Enumeration of room codes, on virtual time: against the counting alone, and against a hub.

use super::*;
use crate::{Config, Hub, Output};
use parlor_proto::session::{Event, Session, TurnedAway};
use parlor_proto::wire::handshake::{Intent, RoomKind, RoomSettings};
use parlor_proto::{ConnectionId, LinkKind, RoomCode, TickRate, code};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const HOUR: Duration = Duration::from_secs(3_600);
const START: Instant = Instant::from_millis(1);

fn guesses() -> Guesses {
    let mut random = ChaCha12Rng::from_seed([3; 32]);
    Guesses::new(GuessLimits::default(), || random.next_u64())
}

/// Origins that share no neighbourhood.
fn far_apart(number: u64) -> Origin {
    Origin((number + 1) << 16)
}

/// What a place can be let through in an hour at most.
fn an_hour_of(rate: Rate) -> u64 {
    u64::from(rate.burst) + u64::try_from(HOUR.as_micros() / rate.interval.as_micros()).unwrap()
}

#[test]
fn threat_10_one_origin_guesses_no_more_than_its_budget() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default().calm);
    let mut let_through = 0;
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_millis(50);
        if guesses.may(far_apart(1), now).is_ok() {
            guesses.wrong(far_apart(1), now);
            let_through += 1;
        }
        assert_eq!(guesses.may(far_apart(2), now), Ok(()), "nobody else is held back");
        assert_eq!(guesses.may(Origin::LOCAL, now), Ok(()));
    }
    assert!(
        (an_hour_of(limits.origin) - 2..=an_hour_of(limits.origin)).contains(&let_through),
        "{let_through}"
    );
}

#[test]
fn threat_10_many_addresses_of_one_neighbourhood_share_its_budget() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default().calm);
    let mut let_through = 0;
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_millis(100);
        for address in 0..20 {
            let origin = Origin((7 << 16) | address);
            if guesses.may(origin, now).is_ok() {
                guesses.wrong(origin, now);
                let_through += 1;
            }
        }
    }
    assert!(let_through <= an_hour_of(limits.neighbourhood), "{let_through}");
    assert_eq!(guesses.may(far_apart(8), now), Ok(()));
}

#[test]
fn threat_10_a_search_from_many_places_slows_down_and_locks_nobody_out() {
    let (mut guesses, limits) = (guesses(), GuessLimits::default());
    let places = 500;
    let (mut let_through, mut slips) = (0, 0);
    let mut now = START;
    while now < START + HOUR {
        now += Duration::from_secs(1);
        for place in 0..places {
            if guesses.may(far_apart(place), now).is_ok() {
                guesses.wrong(far_apart(place), now);
                let_through += 1;
            }
        }
        // Every minute somebody new comes, slips twice and then types the right code.
        if (now.as_millis() / 1_000).is_multiple_of(60) {
            let honest = far_apart(100_000 + now.as_millis() / 60_000);
            for _ in 0..2 {
                assert_eq!(guesses.may(honest, now), Ok(()), "at {now}");
                guesses.wrong(honest, now);
            }
            assert_eq!(guesses.may(honest, now), Ok(()), "at {now}");
            slips += 1;
        }
    }
    assert!(slips >= 59);
    // What all may spend before the search is noticed, and then what each place has while it is searched.
    let most = u64::from(limits.all.burst) + places * an_hour_of(limits.searched.origin);
    assert!(let_through <= most, "{let_through} of {most}");
    assert!(
        let_through < places * an_hour_of(limits.calm.origin) / 2,
        "it is slower than without: {let_through}"
    );
    assert_eq!(guesses.code_letters_extra(now), limits.code_letters_extra);
    // Half of what was spent is paid back, and nobody searches any more.
    let later = now + limits.all.interval * limits.all.burst / 2;
    assert_eq!(guesses.code_letters_extra(later), 0);
}

/// A hub, and clients who say hello to it and read its answer.
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
    let tick_rate = TickRate::DEFAULT;
    let secret = secret.map(str::to_owned);
    let settings = RoomSettings {
        kind: RoomKind::PlayerHosted,
        code,
        secret,
        max_players: 16,
        tick_rate,
        host_silence_ms: None,
        schema: bytes::Bytes::new(),
        label: String::new(),
        keep: false,
    };
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
    matches!(event, Event::TurnedAway(TurnedAway::RetryAfter(_)))
}

const NO_SUCH_ROOM: Event = Event::TurnedAway(TurnedAway::Refused(Refusal::NoSuchRoom));

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
    // The right code is answered like any other: it is not looked up.
    let (right, wrong) = (joining(room, None), joining(server.a_code(4), None));
    let right = server.ask(right, attacker, now);
    assert!(is_told_to_wait(&right));
    assert_eq!(right, server.ask(wrong, attacker, now));
    // Everybody else gets in, and so does whoever waits.
    assert_eq!(code_of(&server.ask(joining(room, None), friend, now)), room);
    let Event::TurnedAway(TurnedAway::RetryAfter(retry)) = right else { unreachable!("it was told to wait") };
    assert_eq!(code_of(&server.ask(joining(room, None), attacker, now + retry.after)), room);
}

#[test]
fn threat_10_right_codes_cost_nothing() {
    let mut server = Server::new();
    let room = code_of(&server.ask(creating(None, None), far_apart(0), START));
    // Some hundred more, and the host, who reads nothing here, would be too slow for its room.
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
    // A room under a code that nobody chose tells nothing.
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
        // Neither the game nor the channels nor the seats of a room are told to whoever does not know its secret.
        other_game(joining(room, Some("sesame"))),
        other_game(Hello { environment: "production".into(), ..joining(room, None) }),
    ] {
        assert_eq!(server.ask(hello.clone(), Origin::LOCAL, START), NO_SUCH_ROOM, "{hello:?}");
    }
    let expected = Refusal::App { expected: "tanks".into() };
    let refused = Event::TurnedAway(TurnedAway::Refused(expected));
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
    // A guess is for this hub's quarter of the codes, and finds one of its rooms.
    for (len, rooms) in by_length.iter().enumerate() {
        let codes = 31_u64.pow(u32::try_from(len).unwrap()) / 4;
        assert!(rooms * 10_000 <= codes, "{rooms} rooms under {len} letters");
    }
}
