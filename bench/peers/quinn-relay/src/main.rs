//! The plainest relay that quinn can be made into: each datagram that a connection sends goes to the others of its room,
//! one datagram for each, at once. No sessions, no batches, no acknowledgements of its own.
//!
//! The first datagram of a connection is the number of its room (4 bytes, big endian). It comes back as it was, so that the
//! sender knows that it is in.

use anyhow::Context;
use bytes::Bytes;
use data_encoding::BASE32_NOPAD;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, Incoming, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{LocalSet, spawn_local};

type Rooms = Rc<RefCell<HashMap<u32, Vec<Connection>>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    LocalSet::new().run_until(serve()).await
}

async fn serve() -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let listen: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let endpoint = Endpoint::server(config(certificate.clone(), key)?, listen)?;
    // As Parlor writes the fingerprint of a certificate.
    let fingerprint = BASE32_NOPAD.encode(&Sha256::digest(&certificate)).to_ascii_lowercase();
    println!("listens on {}#{fingerprint}", endpoint.local_addr()?);
    let rooms = Rooms::default();
    while let Some(incoming) = endpoint.accept().await {
        let rooms = Rc::clone(&rooms);
        // A connection that breaks concerns nobody else.
        spawn_local(async move { relay(incoming, &rooms).await.unwrap_or_default() });
    }
    Ok(())
}

/// The library's defaults, as whoever starts with it has them.
fn config(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![b"parlor".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(TransportConfig::default()));
    Ok(config)
}

async fn relay(incoming: Incoming, rooms: &Rooms) -> anyhow::Result<()> {
    let connection = incoming.await?;
    let knock = connection.read_datagram().await?;
    let number: [u8; 4] = knock[..].try_into().context("the first datagram names a room with 4 bytes")?;
    let room = u32::from_be_bytes(number);
    rooms.borrow_mut().entry(room).or_default().push(connection.clone());
    let ended = pass_on(&connection, room, &knock, rooms).await;
    let mut rooms = rooms.borrow_mut();
    if let Some(members) = rooms.get_mut(&room) {
        members.retain(|member| member.stable_id() != connection.stable_id());
        if members.is_empty() {
            rooms.remove(&room);
        }
    }
    ended
}

async fn pass_on(connection: &Connection, room: u32, knock: &Bytes, rooms: &Rooms) -> anyhow::Result<()> {
    connection.send_datagram(knock.clone())?;
    loop {
        let datagram = connection.read_datagram().await?;
        if datagram == *knock {
            // The answer was slow or lost.
            connection.send_datagram(datagram)?;
            continue;
        }
        let rooms = rooms.borrow();
        for member in rooms.get(&room).into_iter().flatten() {
            if member.stable_id() != connection.stable_id() {
                // One that has gone is taken out by its own task.
                let _ = member.send_datagram(datagram.clone());
            }
        }
    }
}
