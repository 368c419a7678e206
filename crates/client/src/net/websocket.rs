//! WebSockets (RFC 6455) to servers that are not Parlor's.

use super::connection::{Connection, Event, LINGER, Outgoing, Pipes};
use super::dial::{self, BoxIo};
use super::error::{Closed, NetError};
use super::options::Options;
use super::url::{For, Url};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::pin;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::{ClientRequestBuilder, IntoClientRequest};
use tokio_tungstenite::tungstenite::error::{CapacityError, Error};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

type Socket = WebSocketStream<BoxIo>;

/// Buffers of the library, for each direction.
const BUFFER_BYTES: usize = 16 * 1024;

pub(super) fn open(url: &str, options: Options) -> Connection {
    let url = url.to_owned();
    Connection::begin(options, true, |pipes, options| async move {
        match connect(&url, &options).await {
            Ok(socket) => {
                pipes.inbound.put(Event::Open, 0).await;
                carry(&pipes, socket, options.message_bytes_max).await
            }
            Err(error) => Closed::NotOpened(error),
        }
    })
}

async fn connect(url: &str, options: &Options) -> Result<Socket, NetError> {
    let url = Url::parse(url, For::WebSocket)?;
    let request = request(&url, options)?;
    let io = dial::stream(&url.host, url.port, url.is_secure, options).await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(options.message_bytes_max.saturating_add(4 * BUFFER_BYTES))
        .max_message_size(Some(options.message_bytes_max))
        .max_frame_size(Some(options.message_bytes_max));
    let upgrading = client_async_with_config(request, io, Some(config));
    let upgraded = timeout(options.patience, upgrading)
        .await
        .map_err(|_| NetError::TimedOut { url: url.to_string(), waited: options.patience })?;
    let (socket, _) = upgraded.map_err(|error| {
        let detail = match error {
            Error::Http(answer) => format!("it answers with the HTTP status {}", answer.status()),
            error => error.to_string(),
        };
        NetError::NotWebSocket { url: url.to_string(), detail }
    })?;
    Ok(socket)
}

fn request(url: &Url, options: &Options) -> Result<tungstenite::handshake::client::Request, NetError> {
    let wrong = |_| NetError::Url { url: url.to_string(), why: "no request can be made of it" };
    let uri = url
        .to_string()
        .parse()
        .map_err(|_| NetError::Url { url: url.to_string(), why: "no request can be made of it" })?;
    let mut request = ClientRequestBuilder::new(uri).into_client_request().map_err(wrong)?;
    super::http::add_headers(request.headers_mut(), &options.headers)?;
    Ok(request)
}

async fn carry(pipes: &Pipes, socket: Socket, bytes_max: usize) -> Closed {
    let (sink, stream) = socket.split();
    let (reading, writing) = (receive(pipes, stream, bytes_max), send(pipes, sink));
    pin!(reading);
    tokio::select! {
        closed = &mut reading => closed,
        closed = writing => {
            if closed == Closed::Here {
                // Closing before the other end's close frame could discard what was sent.
                reading.await;
            }
            closed
        }
    }
}

/// Reads until the other end's close frame, also when the game no longer polls.
async fn receive(pipes: &Pipes, mut stream: SplitStream<Socket>, bytes_max: usize) -> Closed {
    loop {
        let (event, len) = match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                let len = bytes.len();
                (Event::Message(bytes), len)
            }
            Some(Ok(Message::Text(text))) => {
                let len = text.len();
                (Event::Text(text.as_str().to_owned()), len)
            }
            Some(Ok(Message::Close(frame))) => {
                // The library answers the close frame on the next read.
                let _ = timeout(LINGER, stream.next()).await;
                return by_peer(frame);
            }
            // The library answers pings itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                return Closed::TooLarge { bytes_max };
            }
            Some(Err(error)) => return Closed::Broken(error.to_string()),
            None => return Closed::Broken("it ended without a goodbye".to_owned()),
        };
        pipes.inbound.put(event, len).await;
    }
}

/// Writes until this end is done, then sends a close frame.
async fn send(pipes: &Pipes, mut sink: SplitSink<Socket, Message>) -> Closed {
    while let Some(message) = pipes.outbound.take().await {
        let message = match message {
            Outgoing::Bytes(bytes) => Message::Binary(bytes),
            Outgoing::Text(text) => Message::Text(text.into()),
        };
        if let Err(error) = sink.send(message).await {
            return Closed::Broken(error.to_string());
        }
    }
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    let said = sink.send(Message::Close(Some(goodbye))).await;
    said.map_or_else(|error| Closed::Broken(error.to_string()), |()| Closed::Here)
}

fn by_peer(frame: Option<CloseFrame>) -> Closed {
    match frame {
        Some(frame) => {
            Closed::Peer { code: Some(frame.code.into()), reason: frame.reason.as_str().to_owned() }
        }
        None => Closed::Peer { code: None, reason: String::new() },
    }
}
