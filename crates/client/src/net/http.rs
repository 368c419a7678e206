//! HTTP/1.1 requests (RFC 9112), each over a connection of its own, with streamed answers.

use super::dial;
use super::error::NetError;
use super::options::Options;
use super::queue::Queue;
use super::upload::{Body, BrokenOff, Turn};
use super::url::{For, Url};
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Method;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: usize = 5;
/// Maximum length of an answer's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers that control how a message is carried: the HTTP library sets them.
const OURS: [HeaderName; 5] =
    [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::UPGRADE];

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status, 100 to 999. An error status is an answer like any other.
    pub status: u16,
    /// Names in lower case, and values, in the server's order. Invalid UTF-8 is replaced by `�`.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let is_it = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|(_, value)| value.as_str())
    }

    /// Whether the status is one from 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The progress of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The head: status and headers.
    Head(Head),
    /// The next piece of the body, split anywhere.
    Body(Bytes),
    /// The answer is complete, or the request failed. Sent once, as the last one.
    Done(Result<(), NetError>),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body, as it came.
    pub body: Bytes,
}

/// A request in progress. No call blocks: call [`poll`](Self::poll) or [`poll_response`](Self::poll_response)
/// in each frame. Dropping it cancels the request.
#[derive(Debug)]
pub struct Request {
    inbox: Arc<Queue<Progress>>,
    is_over: bool,
    /// Collected by `poll_response`.
    head: Option<Head>,
    body: Vec<u8>,
    _alive: oneshot::Sender<()>,
}

pub(super) fn begin(method: &str, url: &str, body: Body, options: Options) -> Request {
    let inbox = Arc::new(Queue::new(options.queue_bytes_max));
    let of_task = Arc::clone(&inbox);
    let (alive, given_up) = oneshot::channel();
    let (method, url) = (method.to_owned(), url.to_owned());
    super::runtime::handle().spawn(async move {
        let _end = EndOnDrop(Arc::clone(&of_task));
        let done = tokio::select! {
            done = perform(&method, &url, body, &options, &of_task) => done,
            _ = given_up => return,
        };
        of_task.end_with(Progress::Done(done));
    });
    Request { inbox, is_over: false, head: None, body: Vec::new(), _alive: alive }
}

impl Request {
    /// Returns the next progress, if there is one: the head, pieces of the body, the end.
    pub fn poll(&mut self) -> Option<Progress> {
        if self.is_over {
            return None;
        }
        let progress = match self.inbox.try_take() {
            Some(progress) => progress,
            None if self.inbox.is_over() => task_failed(),
            None => return None,
        };
        self.is_over = matches!(progress, Progress::Done(_));
        Some(progress)
    }

    /// Returns the whole answer once it is complete, or why there is none. Do not mix it with
    /// [`poll`](Self::poll).
    ///
    /// # Errors
    /// [`NetError`]. An error status is not one: see [`Head::status`].
    pub fn poll_response(&mut self) -> Option<Result<Response, NetError>> {
        loop {
            let progress = self.poll()?;
            if let Some(response) = self.collect(progress) {
                return Some(response);
            }
        }
    }

    /// The same for a task, which waits for the answer.
    #[cfg(feature = "online")]
    pub(crate) async fn response(mut self) -> Result<Response, NetError> {
        loop {
            let progress = self.inbox.take().await.unwrap_or_else(task_failed);
            if let Some(response) = self.collect(progress) {
                return response;
            }
        }
    }

    fn collect(&mut self, progress: Progress) -> Option<Result<Response, NetError>> {
        match progress {
            Progress::Head(head) => self.head = Some(head),
            Progress::Body(piece) => self.body.extend_from_slice(&piece),
            Progress::Done(Err(error)) => return Some(Err(error)),
            Progress::Done(Ok(())) => {
                let head = self.head.take().expect("an answer that is whole begins with its head");
                let body = std::mem::take(&mut self.body).into();
                return Some(Ok(Response { head, body }));
            }
        }
        None
    }
}

/// The progress to report when a task ended without a result.
fn task_failed() -> Progress {
    let detail = "its task failed; please report this".to_owned();
    Progress::Done(Err(NetError::Http { url: String::new(), detail }))
}

struct EndOnDrop(Arc<Queue<Progress>>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Sends the request, follows redirects, and passes the answer on.
async fn perform(
    method: &str,
    url: &str,
    mut body: Body,
    options: &Options,
    inbox: &Queue<Progress>,
) -> Result<(), NetError> {
    options.permitted()?;
    let first = Url::parse(url, For::Http)?;
    let (mut method, mut here) = (checked(method)?, first.clone());
    for _ in 0..=REDIRECTS_MAX {
        let mut connections = JoinSet::new();
        // The game's headers go only to the server that it named.
        let headers: &[_] = if here.is_same_origin(&first) { &options.headers } else { &[] };
        let again = body.repeatable();
        let (answer, turn) = exchange(&method, &here, headers, body, options, &mut connections).await?;
        let Some((next, its_method, its_body)) = redirect(&method, again, &here, &answer)? else {
            return pass_on(answer, turn, &here, options, inbox).await;
        };
        if here.is_secure && !next.is_secure {
            let why = "it has no encryption, and the first had";
            return Err(NetError::Redirect { url: first.to_string(), to: next.to_string(), why });
        }
        (here, method, body) = (next, its_method, its_body);
    }
    let why = "the servers sent the request on too often";
    Err(NetError::Redirect { url: first.to_string(), to: here.to_string(), why })
}

fn checked(method: &str) -> Result<Method, NetError> {
    let wrong = |why| NetError::Method { method: method.to_owned(), why };
    match Method::from_bytes(method.as_bytes()) {
        // It would make a tunnel of the connection.
        Ok(Method::CONNECT) => Err(wrong("it is for proxies: use tcp() or websocket()")),
        Ok(method) => Ok(method),
        Err(_) => Err(wrong("it may have letters, digits and - only")),
    }
}

/// Returns the target of a redirect, and the request to make there. A request that changes something at a server
/// is repeated only for the status codes that demand it (RFC 9110 §15.4), and only if its body was whole: of a
/// streamed one nobody has the pieces any more.
fn redirect(
    method: &Method,
    again: Option<Bytes>,
    here: &Url,
    answer: &hyper::Response<Incoming>,
) -> Result<Option<(Url, Method, Body)>, NetError> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let (method, body) = match (answer.status().as_u16(), again) {
        (301..=303, Some(body)) if is_read => (method.clone(), body),
        (307 | 308, Some(body)) => (method.clone(), body),
        (303, _) if !is_read => (Method::GET, Bytes::new()),
        _ => return Ok(None),
    };
    let Some(location) = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    Ok(Some((here.join(location)?, method, Body::Whole(body))))
}

/// One request over one connection, which lives as long as `connections`.
async fn exchange(
    method: &Method,
    url: &Url,
    headers: &[(String, String)],
    body: Body,
    options: &Options,
    connections: &mut JoinSet<()>,
) -> Result<(hyper::Response<Incoming>, Turn), NetError> {
    let failed = |error: hyper::Error| NetError::Http { url: url.to_string(), detail: explain(&error) };
    let (request, mut turn) = request(method, url, headers, body)?;
    let io = dial::stream(&url.host, url.port, url.is_secure, options).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(io))
        .await
        .map_err(failed)?;
    connections.spawn(async move {
        // The waiting request gets the error.
        let _ = connection.await;
    });
    let answer = turn.wait(options.patience, sender.send_request(request)).await;
    Ok((answer.ok_or_else(|| silent(url, options))?.map_err(failed)?, turn))
}

type Sent = hyper::Request<UnsyncBoxBody<Bytes, BrokenOff>>;

fn request(
    method: &Method,
    url: &Url,
    headers: &[(String, String)],
    body: Body,
) -> Result<(Sent, Turn), NetError> {
    let announced = body.announced();
    let (body, turn) = body.begin();
    let request = hyper::Request::builder()
        .method(method)
        .uri(&url.path)
        .header(header::HOST, url.authority())
        .header(header::CONNECTION, "close")
        .body(body);
    let why = "no request can be made of it";
    let mut request = request.map_err(|_| NetError::Url { url: url.to_string(), why })?;
    if let Some(len) = announced {
        request.headers_mut().insert(header::CONTENT_LENGTH, len.into());
    }
    add_headers(request.headers_mut(), headers)?;
    Ok((request, turn))
}

/// Adds a game's headers to a request.
pub(super) fn add_headers(to: &mut HeaderMap, headers: &[(String, String)]) -> Result<(), NetError> {
    for (name, value) in headers {
        let wrong = |why| NetError::Header { name: name.clone(), why };
        let name: HeaderName = name.parse().map_err(|_| wrong("its name has a letter that none may have"))?;
        if OURS.contains(&name)
            || name.as_str().starts_with("sec-websocket-") && name != header::SEC_WEBSOCKET_PROTOCOL
        {
            return Err(wrong("it is not the game's to set"));
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| wrong("its value has a letter that none may have, such as a line break"))?;
        to.append(name, value);
    }
    Ok(())
}

/// Passes an answer on, piece by piece, at the game's pace.
async fn pass_on(
    answer: hyper::Response<Incoming>,
    mut turn: Turn,
    url: &Url,
    options: &Options,
    inbox: &Queue<Progress>,
) -> Result<(), NetError> {
    let too_large = || NetError::TooLarge { url: url.to_string(), bytes_max: options.body_bytes_max };
    let (parts, mut body) = answer.into_parts();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let head = Head { status: parts.status.as_u16(), headers: headers.collect() };
    inbox.put(Progress::Head(head), HEAD_BYTES_MAX).await;
    if body.size_hint().lower() > options.body_bytes_max {
        return Err(too_large());
    }
    let mut left = options.body_bytes_max;
    loop {
        let frame = turn.wait(options.patience, body.frame()).await.ok_or_else(|| silent(url, options))?;
        let Some(frame) = frame else { return Ok(()) };
        let frame =
            frame.map_err(|error| NetError::Http { url: url.to_string(), detail: explain(&error) })?;
        // A game has no use for trailers.
        let Ok(piece) = frame.into_data() else { continue };
        left = left.checked_sub(piece.len() as u64).ok_or_else(too_large)?;
        let len = piece.len();
        inbox.put(Progress::Body(piece), len).await;
    }
}

fn silent(url: &Url, options: &Options) -> NetError {
    NetError::TimedOut { url: url.to_string(), waited: options.patience }
}

/// The HTTP library's message, with its underlying cause.
fn explain(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
