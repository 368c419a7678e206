//! Guess budgets of strangers and accounts, and others' waiting times for passwords, while an attacker uses
//! its whole budget in parallel.

use crate::hall::Hall;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use futures_util::future::join_all;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use parlor_testing::{Answer, Client, joining, within};
use serde_json::{Value, json};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Another address of this machine, and of another neighbourhood.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 9, 1);

/// Wrong guesses that an address or an account has at once, and how long until one more.
const GUESSES: usize = 20;
const GUESS_EVERY: Duration = Duration::from_secs(15);

/// A server that counts this machine's connections like all others.
async fn strict() -> Hall {
    Hall::changed(|setup| {
        setup.config.limits_local = true;
        (setup.config.handshakes_per_second, setup.config.handshakes_per_second_all) = (100_000, 100_000);
        // What waits to be read has a bound of its own, which is not what is looked at here.
        let memory = &mut setup.online.memory;
        (memory.unread_each, memory.unread_all) = (usize::MAX, usize::MAX);
    })
    .await
}

/// As many of `burst` guesses as there may have been since then.
fn most_since(began: Instant, burst: usize, every: Duration) -> usize {
    burst + usize::try_from(began.elapsed().as_millis() / every.as_millis()).unwrap()
}

impl Hall {
    /// Asks from an address; gives the code of the refusal, or `done`.
    async fn code_from(&self, from: Ipv4Addr, path: &str, token: Option<&str>, input: &Value) -> String {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let body = input.to_string();
        let head = format!("POST /v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = within(async {
            let mut stream = socket.connect(self.server.addr()).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            Answer::new(answer).json()
        })
        .await;
        answer["error"]["code"].as_str().unwrap_or("done").to_owned()
    }

    /// How many of so many guesses that are made at once are looked at, which is what `code` says.
    async fn looked_at(&self, count: usize, code: &str, ask: (&str, Option<&str>, &Value)) -> usize {
        let (path, token, input) = ask;
        let answers = join_all((0..count).map(|_| self.code_from(HERE, path, token, input))).await;
        let refused = ["too_often", "unavailable"];
        assert!(answers.iter().all(|said| said == code || refused.contains(&&**said)), "{answers:?}");
        answers.iter().filter(|said| *said == code).count()
    }

    /// Joins a room by a ticket; gives whether the code was looked up.
    async fn looks_up_by_ticket(&self, token: &str, code: &str) -> bool {
        let ticket = self.good("POST", "/admission", token, json!({ "room": code })).await;
        let auth = Auth::Token(ticket["token"].as_str().unwrap().to_owned().into());
        let hello = Hello { auth, ..joining(code.parse().unwrap(), None) };
        let mut client = Client::new(self.server.quic_link().await.unwrap(), hello);
        match client.event().await {
            Event::Rejected(Rejection::RetryAfter(_)) => false,
            Event::Rejected(Rejection::Refused(Refusal::NoSuchRoom)) => true,
            event => panic!("{event:?}"),
        }
    }
}

fn by_email(password: &str, create: bool) -> Value {
    json!({ "app": "tanks", "email": "ada@example.com", "password": password, "create": create })
}

#[tokio::test]
async fn threat_48_sign_ins_in_parallel_have_their_budget_and_not_one_more() {
    let hall = strict().await;
    let (wrong, right) = (by_email("wrong horse", false), by_email("right horse", true));
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/email", None, &right).await, "done");
    let (began, mut looked_at) = (Instant::now(), 0);
    // Those that found no place in the queue for hashes were not looked at, and may come again.
    for _ in 0..3 {
        looked_at += hall.looked_at(66, "wrong_password", ("/auth/email", None, &wrong)).await;
    }
    let most = most_since(began, GUESSES, GUESS_EVERY);
    assert!((GUESSES..=most).contains(&looked_at), "{looked_at} of {most}");
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/email", None, &right).await, "done");
}

#[tokio::test]
async fn threat_48_codes_in_parallel_have_the_budget_of_their_account_and_of_their_address() {
    let hall = strict().await;
    let mut tokens = Vec::new();
    for name in ["ada", "bob", "cyd"] {
        tokens.push(hall.player(name).await.0);
    }
    let (wrong, began) = (json!({ "code": "ZZZZ" }), Instant::now());
    let mut of_all = 0;
    for token in &tokens[..2] {
        let looked_at = hall.looked_at(103, "no_such_room", ("/rooms/join", Some(token), &wrong)).await;
        let most = most_since(began, GUESSES, GUESS_EVERY);
        assert!((GUESSES..=most).contains(&looked_at), "{looked_at} of {most}");
        of_all += looked_at;
    }
    of_all += hall.looked_at(103, "no_such_room", ("/rooms/join", Some(&tokens[2]), &wrong)).await;
    let most = most_since(began, 2 * GUESSES, GUESS_EVERY / 2);
    assert!((2 * GUESSES..=most).contains(&of_all), "{of_all} of {most}");
    // An account takes its debt along, and nobody else's; strangers at the address have a budget of their own.
    let elsewhere = |at: usize| hall.code_from(ELSEWHERE, "/rooms/join", Some(&tokens[at]), &wrong);
    assert_eq!([elsewhere(2).await, elsewhere(0).await], ["no_such_room", "too_often"]);
    assert_eq!(hall.server.get("/rooms/ZZZZ").await.status(), 404);
}

#[tokio::test]
async fn threat_48_codes_by_tickets_are_guesses_of_their_account() {
    let hall = strict().await;
    let (ada, bob) = (hall.player("ada").await.0, hall.player("bob").await.0);
    let began = Instant::now();
    let mut looked_up = 0;
    for number in 0..GUESSES + 5 {
        looked_up += usize::from(hall.looks_up_by_ticket(&ada, &format!("NA{}", number + 22)).await);
    }
    let most = most_since(began, GUESSES, GUESS_EVERY);
    assert!((GUESSES..=most).contains(&looked_up), "{looked_up} of {most}");
    // One budget for all ways; others at its address have theirs.
    let wrong = json!({ "code": "ZZZZ" });
    let guess = |token| hall.looked_at(5, "no_such_room", ("/rooms/join", Some(token), &wrong));
    assert!(looked_up + guess(&ada).await <= most_since(began, GUESSES, GUESS_EVERY));
    assert_eq!(guess(&bob).await, 5);
    assert!(hall.looks_up_by_ticket(&bob, "ZZZZ").await);
}

#[tokio::test]
async fn threat_48_an_address_that_is_taken_is_a_guess_of_who_links_it() {
    let hall = strict().await;
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/email", None, &by_email("right horse", true)).await, "done");
    let device = json!({ "device": "the device of bob of all" });
    let custom = json!({ "app": "tanks", "device": "the device of bob of all" });
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/device", None, &custom).await, "done");
    let (ada, _) = hall.player("ada").await;
    let began = Instant::now();
    // Those under way at the same time hold their guesses: what comes after them shows whether they gave them back.
    let mut looked_at = 0;
    for _ in 0..3 {
        looked_at +=
            hall.looked_at(GUESSES + 2, "taken", ("/account/credentials", Some(&ada), &device)).await;
    }
    let most = most_since(began, GUESSES, GUESS_EVERY);
    assert!((GUESSES..=most).contains(&looked_at), "{looked_at} of {most}");
}

#[tokio::test]
async fn threat_46_sign_ins_of_another_address_are_served_while_one_hashes_all_it_can() {
    let hall = strict().await;
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/email", None, &by_email("right horse", true)).await, "done");
    let (attacker, _) = hall.player("eve").await;
    // 80 connections of one address: sign-ups, and addresses that are linked.
    let flood = join_all((0..80).map(async |number| {
        let email = format!("{number}@example.com");
        let credential = json!({ "email": email, "password": "of no matter" });
        let sign_up = json!({ "app": "tanks", "email": email, "password": "of no matter", "create": true });
        let (path, token, input) = match number % 2 {
            0 => ("/account/credentials", Some(&*attacker), credential),
            _ => ("/auth/email", None, sign_up),
        };
        for _ in 0..3 {
            hall.code_from(HERE, path, token, &input).await;
        }
    }));
    let honest = async {
        let mut served = 0;
        for _ in 0..6 {
            let right = by_email("right horse", false);
            let asked = (0..6).map(|_| hall.code_from(ELSEWHERE, "/auth/email", None, &right));
            served += join_all(asked).await.iter().filter(|said| *said == "done").count();
        }
        served
    };
    assert_eq!(tokio::join!(flood, honest).1, 36);
}

#[tokio::test]
async fn threat_43_an_address_makes_so_many_accounts_and_locks_out_no_other() {
    const BURST: usize = 120;
    const EVERY: Duration = Duration::from_secs(5);
    let hall = strict().await;
    let began = Instant::now();
    let guest = json!({ "app": "tanks" });
    let device = json!({ "app": "tanks", "device": "a-device-of-an-old-player" });
    assert_eq!(hall.code_from(HERE, "/auth/device", None, &device).await, "done");
    let mut answers = Vec::new();
    while answers.len() < 2 * BURST {
        answers.extend(join_all((0..20).map(|_| hall.code_from(HERE, "/auth/guest", None, &guest))).await);
    }
    let made = answers.iter().filter(|answer| *answer == "done").count() + 1;
    assert!(made >= BURST && made <= most_since(began, BURST, EVERY), "{made}");
    assert!(answers.iter().all(|answer| answer == "done" || answer == "too_often"), "{answers:?}");
    // Who has an account signs in, and others make theirs.
    assert_eq!(hall.code_from(HERE, "/auth/device", None, &device).await, "done");
    assert_eq!(hall.code_from(ELSEWHERE, "/auth/guest", None, &guest).await, "done");
}

#[tokio::test]
async fn threat_50_the_document_of_the_services_is_taken_again_only_if_it_changed() {
    let hall = Hall::open().await;
    let answer = hall.server.get("/v1/openapi.json").await;
    let tag = answer.head().lines().find_map(|line| line.strip_prefix("etag: ").map(str::to_owned)).unwrap();
    let head = format!("GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}");
    let again = hall.server.ask(&format!("{head}\r\nConnection: close\r\n\r\n")).await;
    assert_eq!((again.status(), again.body()), (304, ""));
}

#[tokio::test]
async fn threat_43_t3_first_scores_from_an_address_make_so_many_boards_and_lock_out_no_other() {
    const BOARDS: usize = 30;
    let hall = strict().await;
    let (score, began) = (json!({ "score": 1 }), Instant::now());
    let mut made = 0;
    for name in ["ada", "bob"] {
        let (token, _) = hall.player(name).await;
        for number in 0..18 {
            let path = format!("/boards/{name}-{number}/scores");
            let code = hall.code_from(HERE, &path, Some(&token), &score).await;
            assert!(["done", "too_often"].contains(&&*code), "{code}");
            made += usize::from(code == "done");
        }
        // A board that is there takes scores all the same.
        assert_eq!(hall.code_from(HERE, "/boards/ada-0/scores", Some(&token), &score).await, "done");
    }
    let most = most_since(began, BOARDS, Duration::from_secs(60));
    assert!((BOARDS..=most).contains(&made), "{made} of {most}");
    let (cyd, _) = hall.player("cyd").await;
    assert_eq!(hall.code_from(ELSEWHERE, "/boards/cyd/scores", Some(&cyd), &score).await, "done");
}

#[tokio::test]
async fn threat_43_t4_an_address_writes_so_many_saves_by_however_many_accounts_and_locks_out_no_other() {
    const SAVES: usize = 120;
    let hall = strict().await;
    let (save, began) = (json!({ "bytes": "QUJD" }), Instant::now());
    let mut written = 0;
    for number in 0..14 {
        let (token, _) = hall.player(&format!("player {number}")).await;
        for slot in 0..10 {
            let path = format!("/saves/slot-{slot}");
            let code = hall.code_from(HERE, &path, Some(&token), &save).await;
            assert!(["done", "too_often"].contains(&&*code), "{code}");
            written += usize::from(code == "done");
        }
    }
    let most = most_since(began, SAVES, Duration::from_secs(1));
    assert!((SAVES..=most).contains(&written), "{written} of {most}");
    let (elsewhere, _) = hall.player("elsewhere").await;
    assert_eq!(hall.code_from(ELSEWHERE, "/saves/slot", Some(&elsewhere), &save).await, "done");
}
