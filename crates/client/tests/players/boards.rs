//! Boards over real sockets: typed calls of two accounts.

use crate::signed_in::{account, asked, hall};
use crate::support::{PATIENCE, Patience};
use parlor::online::{self, AccountError, Score};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

#[test]
fn t3_players_submit_scores_and_read_ranks() {
    let hall = hall();
    let (ada, bob) = (account(&hall.address(), "ada"), account(&hall.address(), "bob"));
    let (hers, his) = (ada.board("laps"), bob.board("laps"));
    let first = asked(hers.submit(5)).expect("it may");
    assert!(first.improved && !first.again && first.score == 5);
    let extra = json!({ "car": "red" }).as_object().cloned();
    let better =
        Score { score: 9, sub: 2, extra: extra.clone(), id: Some("one".to_owned()), ..Score::default() };
    let submitted = asked(his.submit_with(better.clone())).expect("it may");
    assert_eq!((submitted.score, submitted.sub, submitted.again), (9, 2, false));
    assert!(asked(his.submit_with(better)).expect("it may").again, "it is the same submission");
    let worse = asked(his.submit(1)).expect("it may");
    assert_eq!((worse.score, worse.improved), (9, false));

    let top = asked(hers.top(1, 10)).expect("it may");
    let seen: Vec<_> =
        top.entries.iter().map(|entry| (entry.rank, entry.score, entry.name.as_deref())).collect();
    assert_eq!(seen, [(1, 9, Some("bob")), (2, 5, Some("ada"))]);
    assert_eq!((top.entries_total, &top.entries[0].extra), (2, &extra));
    assert_eq!(asked(hers.top(2, 10)).expect("it may").entries, top.entries[1..]);
    assert_eq!(asked(hers.around(1)).expect("it may").entries, top.entries[1..]);
    let of = asked(hers.of(&[&top.entries[1].account, "nobody"])).expect("it may");
    assert_eq!(of.entries, top.entries[1..]);

    let listed = asked(ada.boards(None)).expect("it may");
    assert_eq!((listed.boards.len(), listed.boards[0].board.as_str(), listed.next), (1, "laps", None));
    assert_eq!(listed.boards[0].writers, "players");
    let seasons = asked(hers.seasons()).expect("it may");
    assert_eq!(seasons.iter().map(|one| (one.season, one.entries)).collect::<Vec<_>>(), [(0, 2)]);
    assert_eq!(asked(hers.season(0).top(1, 10)).expect("it may"), top);

    asked(hers.remove()).expect("it is its own");
    let why = asked(hers.around(3));
    assert!(matches!(&why, Err(AccountError::Refused(error)) if error.code == "no_such_entry"), "{why:?}");
    let why = asked(ada.board("no such").top(1, 10));
    assert!(matches!(&why, Err(AccountError::Refused(error)) if error.code == "no_such_board"), "{why:?}");
}

/// A server that signs everybody in, and gives each score to `scores` with its answers in turn.
fn scripted(answers: &'static [(u16, &'static str)]) -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it can listen");
    let addr = listener.local_addr().expect("it has an address");
    let (scores, asked) = sync_channel(answers.len());
    std::thread::spawn(move || {
        let mut answers = answers.iter();
        for stream in listener.incoming().map_while(Result::ok) {
            let (path, body) = request(&stream).expect("a request comes");
            let signed = (200, r#"{"access_token":"a","refresh_token":"r"}"#);
            let (status, said) = if path.ends_with("/scores") {
                scores.send(body).expect("the test listens");
                *answers.next().expect("there are not more")
            } else {
                signed
            };
            let head = format!("HTTP/1.1 {status} OK\r\nContent-Length: {}\r\nConnection: close", said.len());
            write!(&stream, "{head}\r\n\r\n{said}").expect("it is read");
        }
    });
    (addr, asked)
}

/// Reads the path and the JSON of a request.
fn request(stream: &TcpStream) -> std::io::Result<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.to_ascii_lowercase());
    }
    let path = lines[0].split(' ').nth(1).unwrap_or_default().to_owned();
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok((path, serde_json::from_slice(&body).unwrap_or_default()))
}

#[test]
fn t3_scores_go_one_after_another_and_one_that_may_be_stored_is_sent_again() {
    const STORED: &str = r#"{"season":0,"score":1,"sub":0,"at_ms":5,"improved":true,"again":false}"#;
    const LOST: &str = r#"{"error":{"code":"unavailable","sentence":"later","retry_after_ms":1}}"#;
    let (addr, scores) = scripted(&[(503, LOST), (503, LOST), (200, STORED), (200, STORED)]);
    let account = online::sign_in(&addr.to_string()).name("ada").account("tanks").expect("it is one");
    let board = account.board("laps");
    let mut both = [board.submit(1), board.submit(2)];
    let asked = std::array::from_fn::<_, 4, _>(|_| scores.recv_timeout(PATIENCE).expect("it is sent"));
    let [first, again, last, other] = asked;
    assert_eq!((&again, &last), (&first, &first), "it is the same submission");
    assert_ne!((&other["score"], &other["id"]), (&first["score"], &first["id"]));
    let patience = Patience::new();
    while !both.iter_mut().all(|pending| pending.poll().is_none_or(|answer| answer.is_ok())) {
        patience.look_again(|| "a score is refused".into());
    }
}
