//! A2: requests with any method, headers, and a body that the game gives piece by piece.

use super::http::{answer, answering, read_head, repeating};
use super::{PATIENCE, server, wait};
use parlor::net::{self, NetError, Options, Request, Response, SendError, Upload};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

/// Short enough that a test outlasts it.
const SHORT: Duration = Duration::from_secs(1);

/// The next chunk of a body (RFC 9112 §7.1), empty at its end.
async fn read_chunk(io: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut size = String::new();
    while !size.ends_with("\r\n") {
        size.push(char::from(io.read_u8().await.ok()?));
    }
    let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).unwrap()];
    io.read_exact(&mut chunk).await.ok()?;
    io.read_exact(&mut [0; 2]).await.ok()?;
    Some(chunk)
}

/// A server that reports the head and each chunk of a request, and answers once the body is over.
fn reporting(report: SyncSender<Vec<u8>>) -> String {
    let addr = server(move |mut stream| {
        let report = report.clone();
        async move {
            let Some(head) = read_head(&mut stream).await else { return };
            report.send(head.into_bytes()).unwrap();
            while let Some(chunk) = read_chunk(&mut stream).await {
                let is_last = chunk.is_empty();
                report.send(chunk).unwrap();
                if is_last {
                    let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\nkept").await;
                    return;
                }
            }
        }
    });
    format!("http://{addr}/replays/7")
}

/// A server that reads the head of a request, then nothing until it may, then all that comes, and answers with its length.
fn slow() -> (String, oneshot::Sender<()>) {
    let (go, may_go) = oneshot::channel::<()>();
    let may_go = Arc::new(Mutex::new(Some(may_go)));
    let addr = server(move |mut stream| {
        let may_go = may_go.lock().unwrap().take();
        async move {
            if read_head(&mut stream).await.is_none() || may_go.unwrap().await.is_err() {
                return;
            }
            let mut len = 0;
            while let Some(chunk) = read_chunk(&mut stream).await {
                len += chunk.len();
                if chunk.is_empty() {
                    let text = len.to_string();
                    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                    let _ = stream.write_all(text.as_bytes()).await;
                    return;
                }
            }
        }
    });
    (format!("http://{addr}/"), go)
}

/// Sends pieces until the queue is full. Returns how many bytes went in.
fn fill(upload: &mut Upload) -> usize {
    let piece = vec![7; 64 * 1024];
    let mut len = 0;
    while len < 1 << 30 {
        match upload.send(piece.clone()) {
            Ok(()) => len += piece.len(),
            Err(SendError::Full) => return len,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("a server that reads nothing is sent a gigabyte");
}

fn next(reported: &Receiver<Vec<u8>>) -> String {
    String::from_utf8(reported.recv_timeout(PATIENCE).unwrap()).unwrap()
}

fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

/// Lets more time pass than [`SHORT`]: a request that has only that time runs out of it.
fn outlast_short() {
    let silent = server(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let request = Options::default().patience(SHORT).get(&format!("http://{silent}/"));
    assert_eq!(answer(request).unwrap_err().as_str(), "timed_out");
}

#[test]
fn a2_a_request_has_any_method_and_headers() {
    let url = format!("http://{}/scores?n=1", repeating());
    for method in ["PATCH", "DELETE", "OPTIONS", "POST", "purge"] {
        let options = Options::default().header("X-Game", "tanks").header("accept", "text/plain");
        let said = answer(options.fetch(method, &url, "points")).unwrap();
        let said = text(&said).to_owned();
        assert!(said.starts_with(&format!("{} /scores?n=1 ", method.to_lowercase())), "{said}");
        assert!(
            said.contains("\r\nx-game: tanks\r\n") && said.contains("\r\naccept: text/plain\r\n"),
            "{said}"
        );
        assert!(said.ends_with("\r\n\r\npoints"), "{said}");
    }
    let head = answer(net::fetch("HEAD", &url, "")).unwrap();
    assert_eq!((head.head.status, head.body.len()), (200, 0), "the answer of HEAD has a length and no body");
    assert!(head.head.header("content-length").is_some());
    for method in ["", "GET /", "CONNECT", "ÜBER"] {
        let error = answer(net::fetch(method, &url, "")).unwrap_err();
        assert!(matches!(&error, NetError::Method { method: said, .. } if said == method), "{error}");
        assert_eq!(error.as_str(), "bad_method");
    }
}

#[test]
fn a2_a_body_goes_piece_by_piece_at_the_pace_of_the_game() {
    let (report, reported) = sync_channel(8);
    let url = reporting(report);
    let options = Options::default().patience(SHORT).header("x-game", "tanks");
    let (mut request, mut upload) = options.fetch_streamed("PUT", &url);
    let head = next(&reported);
    assert!(head.starts_with("put /replays/7 ") && head.contains("x-game: tanks"), "{head}");
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    // The server has all that there is. The time that the game takes is not the server's silence.
    outlast_short();
    assert_eq!(request.poll(), None);
    for piece in ["one", "two", "three"] {
        upload.send(piece).unwrap();
        assert_eq!(next(&reported), piece);
    }
    upload.send("").unwrap();
    upload.finish();
    assert_eq!(next(&reported), "", "an empty piece is none, and the body is over");
    let response = answer(request).unwrap();
    assert_eq!((response.head.status, text(&response)), (201, "kept"));
}

#[test]
fn a2_a_server_that_reads_slowly_slows_the_game_down() {
    let (url, go) = slow();
    let options = Options::default().queue_bytes_max(256 * 1024).message_bytes_max(64 * 1024);
    let (request, mut upload) = options.fetch_streamed("POST", &url);
    let mut len = fill(&mut upload);
    assert_eq!(upload.send(vec![0; 70_000]), Err(SendError::TooLarge { bytes: 70_000, bytes_max: 65_536 }));
    go.send(()).unwrap();
    wait(|| upload.send("the end").ok());
    len += "the end".len();
    upload.finish();
    assert_eq!(text(&answer(request).unwrap()), len.to_string(), "all that was taken arrives");
}

#[test]
fn a2_a_server_that_reads_nothing_is_given_up() {
    let (url, _go) = slow();
    let (mut request, mut upload) = Options::default().patience(SHORT).fetch_streamed("POST", &url);
    let error = wait(|| {
        // A game that has always more to send.
        let _ = upload.send(vec![7; 64 * 1024]);
        request.poll_response()
    });
    assert_eq!(error.unwrap_err().as_str(), "timed_out");
    assert_eq!(wait(|| upload.send("x").err().filter(|error| *error != SendError::Full)), SendError::Closed);
}

#[test]
fn a2_a_body_that_breaks_off_is_no_whole_one() {
    let (report, _reported) = sync_channel(8);
    let url = reporting(report);
    let failed = |request: Request| match answer(request).unwrap_err() {
        NetError::Http { detail, .. } => detail,
        other => panic!("{other}"),
    };
    let (request, mut upload) = Options::default().fetch_streamed("PUT", &url);
    upload.send("half").unwrap();
    drop(upload);
    let said = failed(request);
    assert!(said.contains("finish()"), "{said}");
    let (request, mut upload) = Options::default().body_len(9).fetch_streamed("PUT", &url);
    upload.send("123456").unwrap();
    assert_eq!(upload.send("7890"), Err(SendError::TooLarge { bytes: 4, bytes_max: 3 }));
    upload.send("7").unwrap();
    upload.finish();
    let said = failed(request);
    assert!(said.contains("2 bytes"), "{said}");
}

#[test]
fn a2_a_body_of_announced_length_has_it_in_its_head() {
    let url = format!("http://{}/", repeating());
    let (request, mut upload) = Options::default().body_len(6).fetch_streamed("PUT", &url);
    ["po", "in", "ts"].into_iter().for_each(|piece| upload.send(piece).unwrap());
    upload.finish();
    let response = answer(request).unwrap();
    let said = text(&response);
    assert!(said.contains("\r\ncontent-length: 6\r\n") && said.ends_with("\r\n\r\npoints"), "{said}");
    assert!(!said.contains("transfer-encoding"), "{said}");
}

#[test]
fn a2_a_server_may_answer_before_the_body_is_over() {
    let addr = server(|mut stream| async move {
        if read_head(&mut stream).await.is_some() {
            let answer =
                b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 6\r\n\r\nenough";
            let _ = stream.write_all(answer).await;
            // A close with unread bytes would reset the connection, and the answer with it.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let (request, mut upload) = Options::default().fetch_streamed("PUT", &format!("http://{addr}/"));
    let response = answer(request).unwrap();
    assert_eq!((response.head.status, text(&response)), (413, "enough"));
    assert_eq!(wait(|| upload.send("more").err()), SendError::Closed);
}

#[test]
fn a2_a_streamed_body_is_sent_once() {
    let target = repeating();
    let moved =
        |status: &str| answering(format!("HTTP/1.1 {status}\r\nlocation: http://{target}/there\r\n\r\n"));
    let asked = |status| {
        let options = Options::default().body_len(4);
        let (request, mut upload) = options.fetch_streamed("POST", &format!("http://{}/", moved(status)));
        upload.send("body").unwrap();
        upload.finish();
        answer(request).unwrap()
    };
    let again = asked("307 Temporary Redirect");
    let location = format!("http://{target}/there");
    assert_eq!((again.head.status, again.head.header("location")), (307, Some(location.as_str())));
    let seen = asked("303 See Other");
    assert!(text(&seen).starts_with("get /there ") && !text(&seen).contains("body"), "{}", text(&seen));
}
