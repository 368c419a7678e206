//! No data of strangers is decompressed: the server accepts no compression.

use crate::hall::Hall;
use parlor_testing::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Offers the compression that WebSockets have; gives the connection and the answer's head.
async fn offer(hall: &Hall, path: &str, protocol: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(hall.server.addr()).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{protocol}\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap().to_ascii_lowercase())
}

#[tokio::test]
async fn threat_15_a_websocket_agrees_to_no_compression_and_takes_no_compressed_frame() {
    let hall = Hall::open().await;
    for (path, protocol) in [("/ws", "Sec-WebSocket-Protocol: parlor\r\n"), ("/v1/socket", "")] {
        let (mut stream, head) = offer(&hall, path, protocol).await;
        assert!(head.starts_with("http/1.1 101"), "{path}: {head}");
        assert!(!head.contains("sec-websocket-extensions"), "{path}: {head}");
        // A frame that says that it is compressed, as if that had been agreed to: ten kilobytes with an empty mask.
        let mut frame = vec![0xC2, 0xFE, 0x28, 0x00, 0, 0, 0, 0];
        frame.extend([0; 0x2800]);
        stream.write_all(&frame).await.unwrap();
        // Cut off in whichever way: what counts is that it is over.
        let _ = within(stream.read_to_end(&mut Vec::new())).await;
    }
}

#[tokio::test]
async fn threat_15_a_compressed_body_is_not_unpacked() {
    let hall = Hall::open().await;
    // The head of gzip, and of what might follow ten kilobytes.
    let mut body = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3];
    body.resize(10 * 1024, 0);
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let mut stream = TcpStream::connect(hall.server.addr()).await.unwrap();
        let head = format!(
            "POST /v1/auth/device HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Encoding: {encoding}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = Vec::new();
        within(stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("bad_json"), "{encoding}: {answer}");
    }
    // Nor is an answer compressed, whatever is offered.
    let request = "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept-Encoding: gzip, br\r\n\r\n";
    let answer = hall.server.ask(request).await;
    assert_eq!(answer.status(), 200);
    assert!(!answer.head().to_ascii_lowercase().contains("content-encoding"), "{}", answer.head());
}
