//! HTTP requests, and servers that answer them well and badly.

use super::{PATIENCE, secure, server, wait};
use parlor::net::{self, NetError, Options, Progress, Request, Response, Trust};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Reads the head of a request, in lower case.
pub(super) async fn read_head(io: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(io.read_u8().await.ok()?);
    }
    Some(String::from_utf8(text).unwrap().to_lowercase())
}

/// Reads the head of a request, and as much of a body as it announces.
async fn read_request(io: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let head = read_head(io).await?;
    let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; announced.map_or(0, |len| len.parse().unwrap())];
    io.read_exact(&mut body).await.ok()?;
    Some(head + std::str::from_utf8(&body).unwrap())
}

/// A server that gives each request the same answer and hangs up.
pub(super) fn answering(answer: impl Into<String>) -> SocketAddr {
    let answer: Arc<str> = answer.into().into();
    server(move |mut stream| {
        let answer = Arc::clone(&answer);
        async move {
            if read_request(&mut stream).await.is_some() {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    })
}

/// A server that repeats in its answer what it was asked.
pub(super) fn repeating() -> SocketAddr {
    server(|mut stream| async move {
        let Some(request) = read_request(&mut stream).await else { return };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{request}", request.len());
        let _ = stream.write_all(answer.as_bytes()).await;
    })
}

#[track_caller]
pub(super) fn answer(mut request: Request) -> Result<Response, NetError> {
    let answer = wait(|| request.poll_response());
    assert!((0..100).all(|_| request.poll().is_none()), "nothing comes after the end");
    answer
}

#[test]
fn t1_an_answer_has_its_status_headers_and_body() {
    let text = "HTTP/1.1 404 Gone Fishing\r\nX-Why: lake\r\nx-why: sea\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\nnot\r\n5\r\n here\r\n0\r\n\r\n";
    let response = answer(net::get(&format!("http://{}/x", answering(text)))).unwrap();
    assert_eq!((response.head.status, response.head.is_success()), (404, false));
    assert_eq!((response.head.header("X-WHY"), response.head.header("y")), (Some("lake"), None));
    assert_eq!(response.body.as_ref(), b"not here");
}

#[test]
fn t1_what_is_asked_goes_over_as_it_was_said() {
    let addr = repeating();
    let url = format!("http://{addr}/a/b?c=d");
    let options = Options::default().header("X-Game", "tanks");
    let asked = |request| String::from_utf8(answer(request).unwrap().body.to_vec()).unwrap();
    let get = asked(options.clone().get(&url));
    assert!(get.starts_with("get /a/b?c=d http/1.1\r\n"), "{get}");
    assert!(get.contains("\r\nx-game: tanks\r\n") && get.contains(&format!("\r\nhost: {addr}\r\n")), "{get}");
    let post = asked(options.clone().post(&url, "points"));
    assert!(post.starts_with("post /a/b?c=d ") && post.ends_with("\r\n\r\npoints"), "{post}");
    let put = asked(options.put(&url, vec![b'x'; 100_000]));
    assert!(put.starts_with("put /a/b?c=d ") && put.ends_with(&"x".repeat(100_000)));
}

#[test]
fn t1_a_body_comes_piece_by_piece() {
    let (go, may_go) = tokio::sync::oneshot::channel::<()>();
    let may_go = std::sync::Mutex::new(Some(may_go));
    let addr = server(move |mut stream| {
        let may_go = may_go.lock().unwrap().take().unwrap();
        async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").await.unwrap();
            may_go.await.unwrap();
            stream.write_all(b"done").await.unwrap();
        }
    });
    let mut request = net::get(&format!("http://{addr}/"));
    assert!(matches!(wait(|| request.poll()), Progress::Head(head) if head.status == 200));
    assert_eq!(wait(|| request.poll()), Progress::Body("half".into()));
    assert_eq!(request.poll(), None, "the server waits");
    go.send(()).unwrap();
    assert_eq!(wait(|| request.poll()), Progress::Body("done".into()));
    assert_eq!(wait(|| request.poll()), Progress::Done(Ok(())));
    assert_eq!(request.poll(), None);
}

#[test]
fn redirects_are_followed_without_what_was_meant_for_the_first() {
    let (end, other) = (repeating(), repeating());
    let to = |status: &str, url: String| answering(format!("HTTP/1.1 {status}\r\nlocation: {url}\r\n\r\n"));
    let options = Options::default().header("authorization", "secret");
    let asked = |from: SocketAddr, post: bool| {
        let url = format!("http://{from}/");
        let request = if post { options.clone().post(&url, "body") } else { options.clone().get(&url) };
        let response = answer(request).unwrap();
        (response.head.status, String::from_utf8(response.body.to_vec()).unwrap())
    };
    let there = asked(to("301 Moved", format!("http://{end}/there")), false).1;
    assert!(there.starts_with("get /there "), "{there}");
    assert!(!there.contains("secret"), "another server is not told: {there}");
    let get = asked(to("303 See Other", format!("http://{other}/seen")), true).1;
    assert!(get.starts_with("get /seen ") && !get.contains("body"), "{get}");
    let again = asked(to("307 Temporary", format!("http://{other}/again")), true).1;
    assert!(again.starts_with("post /again ") && again.ends_with("body"), "{again}");
    // What changes something is not done elsewhere unless the server says so.
    assert_eq!(asked(to("302 Found", format!("http://{other}/")), true).0, 302);
}

#[test]
fn redirects_end() {
    let around = answering("HTTP/1.1 302 Found\r\nlocation: /again\r\n\r\n");
    let error = answer(net::get(&format!("http://{around}/"))).unwrap_err();
    assert_eq!(error.as_str(), "redirect_refused", "{error}");
    let plain = repeating();
    let (addr, certificate) = secure(move |mut io| async move {
        let answer = format!("HTTP/1.1 301 Moved\r\nlocation: http://{plain}/\r\n\r\n");
        if read_request(&mut io).await.is_some() {
            let _ = io.write_all(answer.as_bytes()).await;
            let _ = io.shutdown().await;
        }
    });
    let options = Options::default().trust(Trust::Roots(certificate));
    let error = answer(options.get(&format!("https://localhost:{}/", addr.port()))).unwrap_err();
    assert!(matches!(&error, NetError::Redirect { why, .. } if why.contains("no encryption")), "{error}");
}

#[test]
fn a_certificate_is_verified() {
    let (addr, certificate) = secure(|mut io| async move {
        if read_request(&mut io).await.is_some() {
            let _ = io.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    let url = format!("https://localhost:{}/", addr.port());
    let trusting = Options::default().trust(Trust::Roots(certificate));
    assert_eq!(answer(trusting.get(&url)).unwrap().head.status, 204);
    assert_eq!(answer(net::get(&url)).unwrap_err().as_str(), "untrusted");
}

#[test]
fn threat_16_an_answer_beyond_the_limit_is_not_taken() {
    let options = Options::default().body_bytes_max(4);
    let fits = answering("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour");
    assert_eq!(answer(options.clone().get(&format!("http://{fits}/"))).unwrap().body.as_ref(), b"four");
    let announced = answering("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nfour");
    let chunked =
        answering("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    for addr in [announced, chunked] {
        let error = answer(options.clone().get(&format!("http://{addr}/"))).unwrap_err();
        assert!(matches!(error, NetError::TooLarge { bytes_max: 4, .. }), "{error}");
    }
    let endless = server(|mut stream| async move {
        if stream.write_all(b"HTTP/1.1 200 OK\r\n").await.is_ok() {
            while stream.write_all(&[b'x'; 4_096]).await.is_ok() {}
        }
    });
    let error = answer(net::get(&format!("http://{endless}/"))).unwrap_err();
    assert_eq!(error.as_str(), "http_failed", "{error}");
}

#[test]
fn what_breaks_or_stays_silent_is_told_by_name() {
    let half = answering("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf");
    let garbage = answering("what?\r\n\r\n");
    let silent = server(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    for (addr, word) in [(half, "http_failed"), (garbage, "http_failed"), (silent, "timed_out")] {
        let options =
            Options::default().patience(Duration::from_millis(if addr == silent { 50 } else { 60_000 }));
        let error = answer(options.get(&format!("http://{addr}/"))).unwrap_err();
        assert_eq!(error.as_str(), word, "{error}");
    }
}

#[test]
fn a_request_that_cannot_be_made_says_why() {
    for (name, value) in
        [("a b", "c"), ("x", "line\r\nbreak"), ("Host", "elsewhere"), ("content-length", "9")]
    {
        let error = answer(Options::default().header(name, value).get("http://127.0.0.1:9/")).unwrap_err();
        assert!(matches!(&error, NetError::Header { name: said, .. } if said == name), "{error}");
    }
    for url in ["", "no url", "ftp://127.0.0.1/", "http://user:word@127.0.0.1/"] {
        assert_eq!(answer(net::get(url)).unwrap_err().as_str(), "bad_url");
    }
}

#[test]
fn a_request_that_is_dropped_is_given_up() {
    let (report, reported): (_, Receiver<&str>) = sync_channel(2);
    let addr = server(move |mut stream| {
        let report = report.clone();
        async move {
            read_request(&mut stream).await.unwrap();
            report.send("asked").unwrap();
            // The end of what it reads: the other side has hung up.
            let _ = stream.read_to_end(&mut Vec::new()).await;
            report.send("hung up").unwrap();
        }
    });
    let mut request = net::get(&format!("http://{addr}/"));
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("asked"));
    assert_eq!(request.poll(), None);
    drop(request);
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("hung up"));
}
