//! Webhooks: signed HTTP requests report turn rooms' notices to a game's own service, and are repeated until
//! it accepts them.
//!
//! Calls are stored in the transaction of their cause, so a restart loses none. The request goes only to the
//! operator's address. Redirects are not followed. An address within a private network is rejected unless the
//! operator permits it, whatever a name resolves to at that moment.

use super::Services;
use super::config::WebhookConfig;
use super::failure::Failure;
use crate::store::{StoreError, Webhook};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use data_encoding::HEXLOWER;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use parlor_server::realm::Realm;
use parlor_transport::websocket::Io;
use parlor_transport::{Trust, tls};
use ring::hmac;
use serde::Serialize;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time limit for a whole request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;
/// How long a call is this server's. Nobody else sends it meanwhile, and after this server's end it is due again then.
const CLAIM: Duration = Duration::from_secs(15);
/// Wait before the first repetition, and its maximum.
const AGAIN_FIRST: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60 * 60);
/// Maximum number of attempts. With the waits between they take most of a day.
const ATTEMPTS_MAX: u64 = 30;
/// Polling interval, unless a new call wakes the task.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Minimum length of a key, in bytes.
const KEY_BYTES_MIN: usize = 16;

/// The body of a call.
#[derive(Serialize)]
pub(super) struct Call<'a, T> {
    app: &'a str,
    environment: &'a str,
    kind: &'a str,
    at_ms: u64,
    /// The accounts whom it is about.
    to: Vec<&'a str>,
    /// The fields of its kind.
    #[serde(flatten)]
    told: T,
}

impl<'a, T: Serialize> Call<'a, T> {
    /// The call of a realm, as its text in JSON.
    ///
    /// # Errors
    /// A defect.
    pub(super) fn body(
        realm: &'a Realm,
        kind: &'a str,
        at_ms: u64,
        to: Vec<&'a str>,
        told: T,
    ) -> Result<Vec<u8>, Failure> {
        let (app, environment) = (realm.app(), realm.environment());
        serde_json::to_vec(&Call { app, environment, kind, at_ms, to, told })
            .map_err(|error| Failure::defect(&error.to_string()))
    }
}

/// Why the webhook cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WebhookError {
    /// The address is invalid.
    #[error("the webhook {url:?} is no address to tell: {why}")]
    Url {
        /// The address.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The key is too short for a secret.
    #[error("the webhook's key has {len} bytes; it must have {KEY_BYTES_MIN} at least")]
    ShortKey {
        /// Its length.
        len: usize,
    },
}

/// The receiver.
pub(super) struct Target {
    pub(super) url: String,
    uri: Uri,
    host: String,
    port: u16,
    is_secure: bool,
    key: hmac::Key,
    allows_private: bool,
    /// Wakes the task for a new call.
    pub(super) told: Notify,
}

/// Why a request failed.
#[derive(Debug, Error)]
enum InVain {
    #[error("the name {0} leads nowhere that may be asked: {1}")]
    Nowhere(String, &'static str),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Tls(#[from] parlor_transport::ConnectError),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("the answer was {0}")]
    Status(u16),
    #[error("nothing came within {} s", PATIENCE.as_secs())]
    TimedOut,
}

impl Target {
    pub(super) fn new(config: &WebhookConfig) -> Result<Self, WebhookError> {
        let wrong = |why| WebhookError::Url { url: config.url.clone(), why };
        if config.key.len() < KEY_BYTES_MIN {
            return Err(WebhookError::ShortKey { len: config.key.len() });
        }
        let uri: Uri = config.url.parse().map_err(|_| wrong("it is not https://HOST[:PORT]/PATH"))?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if config.allows_private => false,
            Some("http") => {
                return Err(wrong("http:// is for private networks, which are not allowed: use https://"));
            }
            _ => return Err(wrong("it begins with neither https:// nor http://")),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let key = hmac::Key::new(hmac::HMAC_SHA256, &config.key);
        let (url, allows_private) = (config.url.clone(), config.allows_private);
        Ok(Target { url, uri, host, port, is_secure, key, allows_private, told: Notify::new() })
    }

    /// Signs content and time with the key.
    fn signature(&self, id: u64, at_s: u64, body: &[u8]) -> String {
        let mut signed = format!("{at_s}.{id}.").into_bytes();
        signed.extend_from_slice(body);
        format!("v1={}", HEXLOWER.encode(hmac::sign(&self.key, &signed).as_ref()))
    }

    async fn tell(&self, webhook: &Webhook, at_s: u64) -> Result<(), InVain> {
        timeout(PATIENCE, self.exchange(webhook, at_s)).await.map_err(|_| InVain::TimedOut)?
    }

    async fn exchange(&self, webhook: &Webhook, at_s: u64) -> Result<(), InVain> {
        let (stream, addr) = self.connect().await?;
        if self.is_secure {
            let stream = tls::connect(stream, addr, &self.host, &Trust::System).await?;
            self.post(stream, webhook, at_s).await
        } else {
            self.post(stream, webhook, at_s).await
        }
    }

    /// Connects to a permitted address: the one that was checked, and not what the name resolves to a moment
    /// later.
    async fn connect(&self) -> Result<(TcpStream, SocketAddr), InVain> {
        let found: Vec<SocketAddr> = lookup_host((self.host.as_str(), self.port)).await?.collect();
        let mut last = InVain::Nowhere(self.host.clone(), "it has no address");
        for addr in found {
            if !self.allows_private && is_private(addr.ip()) {
                last = InVain::Nowhere(self.host.clone(), "its address is within a private network");
                continue;
            }
            match TcpStream::connect(addr).await {
                Ok(stream) => return Ok((stream, addr)),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    async fn post(&self, io: impl Io, webhook: &Webhook, at_s: u64) -> Result<(), InVain> {
        let signature = self.signature(webhook.id, at_s, &webhook.body);
        let host = self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str());
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::post(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .header("parlor-id", webhook.id.to_string())
            .header("parlor-timestamp", at_s.to_string())
            .header("parlor-signature", signature)
            .body(Full::new(Bytes::copy_from_slice(&webhook.body)))
            .map_err(|_| InVain::Nowhere(self.host.clone(), "no request can be made of its path"))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await?;
        // Ends with this request, whatever the other end does.
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let _ = connection.await;
        });
        let status = sender.send_request(request).await?.status();
        // A redirect would lead to an unchecked address.
        if status.is_success() { Ok(()) } else { Err(InVain::Status(status.as_u16())) }
    }
}

/// Sends waiting calls while the services run.
pub(super) async fn deliver(services: Services, target: Arc<Target>) {
    loop {
        match claim(&services).await {
            Ok(due) if !due.is_empty() => {
                let mut under_way = JoinSet::new();
                for webhook in due {
                    under_way.spawn(deliver_one(services.clone(), Arc::clone(&target), webhook));
                }
                under_way.join_all().await;
            }
            Ok(_) => {
                let _ = timeout(LOOK_AGAIN, target.told.notified()).await;
            }
            Err(error) => {
                tracing::debug!(%error, "webhooks could not be looked for");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Takes due calls, so that no other node sends them too.
async fn claim(services: &Services) -> Result<Vec<Webhook>, StoreError> {
    let now_ms = services.time().now_ms();
    // Without a call nothing is written.
    if !services.store().are_webhooks_due(now_ms).await? {
        return Ok(Vec::new());
    }
    let claimed_ms = u64::try_from(CLAIM.as_millis()).unwrap_or(u64::MAX);
    services.store().claim_webhooks(now_ms, now_ms.saturating_add(claimed_ms), AT_ONCE).await
}

async fn deliver_one(services: Services, target: Arc<Target>, webhook: Webhook) {
    let (realm, id) = (&webhook.realm, webhook.id);
    // Calls for an address that is no longer configured are dropped.
    let told = if webhook.target == target.url {
        target.tell(&webhook, services.time().wall_s()).await
    } else {
        Ok(())
    };
    let stored = match told {
        Ok(()) => services.store().webhook_done(realm, id).await,
        Err(error) if webhook.attempts + 1 >= ATTEMPTS_MAX => {
            tracing::warn!(id, ?realm, %error, "a webhook is given up");
            services.store().webhook_done(realm, id).await
        }
        Err(error) => {
            tracing::info!(id, ?realm, %error, attempts = webhook.attempts + 1, "a webhook was in vain");
            let again_ms = services.time().now_ms().saturating_add(again_ms(webhook.attempts));
            services.store().webhook_retry(&webhook, again_ms).await
        }
    };
    if let Err(error) = stored {
        // It is repeated. The receiver recognises it by its id.
        tracing::debug!(id, %error, "what became of a webhook could not be stored");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn again_ms(attempts: u64) -> u64 {
    let factor = 1_u32 << attempts.min(16);
    u64::try_from((AGAIN_FIRST * factor).min(AGAIN_MAX).as_millis()).unwrap_or(u64::MAX)
}

/// Whether an address is local, private or unreachable.
fn is_private(addr: IpAddr) -> bool {
    match addr.to_canonical() {
        IpAddr::V4(addr) => is_private_v4(addr),
        IpAddr::V6(addr) => is_private_v6(addr),
    }
}

fn is_private_v4(addr: Ipv4Addr) -> bool {
    let [a, b, c, _] = addr.octets();
    addr.is_private()
        || addr.is_loopback()
        || addr.is_link_local()
        || addr.is_multicast()
        || addr.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
}

fn is_private_v6(addr: Ipv6Addr) -> bool {
    let [first, second, ..] = addr.segments();
    // All global addresses are within 2000::/3; some of these map IPv4 addresses, and some are unassigned.
    let is_global = (0x2000..0x4000).contains(&first);
    let stands_for_v4 = first == 0x2002 || (first == 0x2001 && second == 0);
    let is_documentation = first == 0x2001 && second == 0xdb8;
    !is_global || stands_for_v4 || is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known_in_every_spelling() {
        for addr in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fdff::1",
            "ff02::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(is_private(addr.parse().unwrap()), "{addr}");
        }
        for addr in [
            "192.0.2.1".replace("192.0.2", "93.184.215"),
            "8.8.8.8".into(),
            "172.32.0.1".into(),
            "2606:4700::1".into(),
        ] {
            assert!(!is_private(addr.parse().unwrap()), "{addr}");
        }
    }

    #[test]
    fn a_target_is_https_unless_private_ones_are_allowed() {
        let config =
            |url: &str, allows_private| WebhookConfig { url: url.into(), key: vec![7; 16], allows_private };
        let target = Target::new(&config("https://game.example/hook?x=1", false)).unwrap();
        assert_eq!((target.host.as_str(), target.port, target.is_secure), ("game.example", 443, true));
        let target = Target::new(&config("http://[::1]:9000/hook", true)).unwrap();
        assert_eq!((target.host.as_str(), target.port, target.is_secure), ("::1", 9_000, false));
        for url in ["http://game.example/", "game.example", "ftp://x/", "https:///x", ""] {
            assert!(matches!(Target::new(&config(url, false)), Err(WebhookError::Url { .. })), "{url}");
        }
        let short = WebhookConfig { key: vec![7; 15], ..config("https://x/", false) };
        assert_eq!(Target::new(&short).err(), Some(WebhookError::ShortKey { len: 15 }));
    }

    #[test]
    fn it_is_tried_again_later_and_later() {
        let waits: Vec<u64> = (0..16).map(again_ms).collect();
        assert_eq!(&waits[..4], [1_000, 2_000, 4_000, 8_000]);
        assert_eq!((waits[15], again_ms(u64::MAX)), (3_600_000, 3_600_000));
    }
}
