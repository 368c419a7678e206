//! A server as its players reach it.

use super::certificate::{self, Source};
use super::findings::Findings;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use parlor::net::{NetError, Options, Response};
use parlor_proto::limits::{VERSION_MAX, VERSION_MIN};
use parlor_transport::discovery::ServerAddress;
use parlor_transport::quic::{Dialer, Measured};
use parlor_transport::websocket::{self, Target};
use parlor_transport::{CertificateChain, ConnectError, Fingerprint, Trust, connect};
use serde_json::Value;
use std::time::{Instant, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// Shards that are tried: what a server says is not trusted with more.
const SHARDS_MAX: u64 = 256;
/// Tokens are refused by a clock that is wrong by more.
const CLOCK_MAX_S: f64 = 5.0;
/// How long the last packets may take.
const LAST_PACKETS: Duration = Duration::from_millis(500);

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Both ports of the first shard, and whether it takes players.
    Quick,
    Full,
}

impl Depth {
    /// How long each answer is waited for. A container's health check has three seconds.
    fn patience(self) -> Duration {
        match self {
            Depth::Quick => Duration::from_secs(2),
            Depth::Full => Duration::from_secs(5),
        }
    }
}

/// What came of one address and port.
struct Port {
    addr: SocketAddr,
    tcp: Result<(CertificateChain, Duration), ConnectError>,
    udp: Result<Measured, ConnectError>,
}

/// Looks at the server at an address, with these root certificates if there are any.
pub(super) fn examine(
    runtime: &Runtime,
    address: &ServerAddress,
    roots: Option<Trust>,
    depth: Depth,
    findings: &mut Findings,
) {
    let Some(addrs) = addresses(runtime, address, depth, findings) else { return };
    let dialer = Dialer::new();
    let look = |addr| runtime.block_on(look(&dialer, addr, &address.host, depth));
    let ports: Vec<Port> = addrs.into_iter().map(look).collect();
    let works = |port: &&Port| port.tcp.is_ok();
    let Some(Port { addr, tcp: Ok((chain, _)), .. }) = ports.iter().find(works) else {
        ports.iter().for_each(|port| report(findings, port, false));
        return;
    };
    ports.iter().for_each(|port| report(findings, port, true));
    if depth == Depth::Full {
        trusted(findings, chain, address, roots);
    }
    // What is asked from here on is asked of this server, whoever vouches for it.
    let shown = Trust::Fingerprint(chain.fingerprint());
    let place = ServerAddress { fingerprint: None, ..address.clone() };
    let get = |path: &str| get(&format!("https://{place}{path}"), &shown, depth.patience());
    if depth == Depth::Quick {
        // Rooms need no store.
        ready(findings, &get("/ready"));
    } else {
        ready(findings, &get("/ready?store"));
        let shards = described(findings, &get("/web.json"));
        clock(findings, addr.ip(), &|| get("/health"));
        web_socket(runtime, findings, *addr, &address.host, &shown);
        for number in 1..shards {
            let number = u16::try_from(number).expect("there are not so many");
            if let Some(port) = addr.port().checked_add(number) {
                report(findings, &look(SocketAddr::new(addr.ip(), port)), true);
            }
        }
    }
    // Else the server would wait for what comes no more.
    let _ = runtime.block_on(async { timeout(LAST_PACKETS, dialer.wait_idle()).await });
}

/// Whether a Parlor server answers at an address of this machine.
pub(super) fn is_parlor(runtime: &Runtime, address: &ServerAddress) -> bool {
    let patience = Depth::Quick.patience();
    let Ok(ip) = address.host.parse::<IpAddr>() else { return false };
    let showing = CertificateChain::shown_by(SocketAddr::new(ip, address.port), &address.host, patience);
    let Ok(chain) = runtime.block_on(showing) else { return false };
    let place = ServerAddress { fingerprint: None, ..address.clone() };
    let trust = Trust::Fingerprint(chain.fingerprint());
    let answer = get(&format!("https://{place}/web.json"), &trust, patience);
    answer.is_ok_and(|answer| json(&answer)["parlor"].is_string())
}

/// The addresses of the server's name.
fn addresses(
    runtime: &Runtime,
    address: &ServerAddress,
    depth: Depth,
    findings: &mut Findings,
) -> Option<Vec<SocketAddr>> {
    const CHECK: &str = "name";
    let (host, patience) = (&address.host, depth.patience());
    let found = runtime.block_on(async { timeout(patience, connect::resolve(host, address.port)).await });
    let found = found.unwrap_or_else(|_| {
        Err(ConnectError::NameResolution { host: host.clone(), detail: "no answer came".to_owned() })
    });
    match found {
        Ok(mut addrs) => {
            addrs.truncate(ADDRESSES_MAX);
            if host.parse::<IpAddr>().is_err() {
                let ips: Vec<String> = addrs.iter().map(|addr| addr.ip().to_string()).collect();
                findings.ok(CHECK, format!("{host} is {}", ips.join(", ")));
            }
            Some(addrs)
        }
        Err(error) => {
            let todo =
                format!("Give {host} an A or AAAA record with the server's address, or name the address");
            findings.problem(CHECK, error.to_string(), todo);
            None
        }
    }
}

async fn look(dialer: &Dialer, addr: SocketAddr, host: &str, depth: Depth) -> Port {
    let (began, patience) = (Instant::now(), depth.patience());
    let tcp = CertificateChain::shown_by(addr, host, patience).await.map(|chain| (chain, began.elapsed()));
    // Any answer is one, so another certificate than this impossible one tells as much.
    let print = tcp.as_ref().map_or(Fingerprint([0; 32]), |(chain, _)| chain.fingerprint());
    let udp = dialer.measure(addr, host, &Trust::Fingerprint(print), patience).await;
    Port { addr, tcp, udp }
}

/// Says what came of a port. `is_reached` says whether the server answers there or elsewhere.
fn report(findings: &mut Findings, Port { addr, tcp, udp }: &Port, is_reached: bool) {
    let port = addr.port();
    let (tcp_check, udp_check) = (format!("tcp {port}"), format!("udp {port}"));
    if let (Err(ConnectError::Unreachable { .. }), true) = (tcp, is_reached) {
        // A machine without IPv6 has no way to such an address, and does not need one.
        return findings.not_looked_at(&tcp_check, format!("this machine has no way to {}", addr.ip()));
    }
    let udp_answers = match udp {
        Ok(_) | Err(ConnectError::WrongFingerprint { .. } | ConnectError::Busy { .. }) => true,
        Err(_) => false,
    };
    match tcp {
        Ok((_, took)) => findings.ok(&tcp_check, format!("{addr} answers, TLS took {} ms", took.as_millis())),
        Err(ConnectError::TimedOut { .. }) if udp_answers => findings.problem(
            &tcp_check,
            format!("TCP port {port} does not answer while UDP does: browsers and /v1 need it"),
            open("TCP", "tcp", port),
        ),
        Err(error @ ConnectError::TimedOut { .. }) => findings.problem(
            &tcp_check,
            error.to_string(),
            format!(
                "See whether the server runs (`systemctl status parlor` there) and the address is right. Then open {port}/tcp and {port}/udp in \
                 its firewall"
            ),
        ),
        Err(error) => findings.problem(
            &tcp_check,
            error.to_string(),
            "Start the server, `parlor doctor` on its machine says what keeps it; or name another port",
        ),
    }
    match (udp, tcp) {
        (Ok(measured), _) => {
            let Measured { rtt, packet_bytes_max } = measured;
            let rtt_ms = rtt.as_secs_f64() * 1_000.0;
            findings.ok(
                &udp_check,
                format!("QUIC; round trip {rtt_ms:.1} ms, packets of up to {packet_bytes_max} bytes"),
            );
        }
        (Err(_), Err(_)) if !udp_answers => {}
        (Err(ConnectError::WrongFingerprint { .. }), Err(_)) => findings.ok(&udp_check, "QUIC answers"),
        (Err(ConnectError::TimedOut { .. } | ConnectError::Unreachable { .. }), Ok(_)) => findings.problem(
            &udp_check,
            format!("UDP port {port} of {} does not answer while TCP does", addr.ip()),
            format!(
                "{}. Until then players use WebSocket, where a lost packet delays the next",
                open("UDP", "udp", port)
            ),
        ),
        (Err(error), _) => findings.problem(
            &udp_check,
            error.to_string(),
            format!("On the server's machine `ss -lnup 'sport = :{port}'` shows which program has the port"),
        ),
    }
}

fn open(name: &str, protocol: &str, port: u16) -> String {
    format!(
        "Open {name} port {port}: `ufw allow {port}/{protocol}`, the security group of its cloud, the router's forwarding, \
         -p {port}:{port}/{protocol} of a container"
    )
}

/// Whether players trust the server.
fn trusted(findings: &mut Findings, chain: &CertificateChain, address: &ServerAddress, roots: Option<Trust>) {
    const CHECK: &str = "certificate";
    if let Some(expected) = address.fingerprint {
        return match chain.check_trust(&address.host, &Trust::Fingerprint(expected)) {
            Ok(()) => findings.ok(CHECK, "its fingerprint is that of the address"),
            Err(error) => findings.problem(
                CHECK,
                error.to_string(),
                "Compare it with what the server prints at its start, or with the files in its settings. A running server takes new files \
                 within 10 seconds, or its log says why not",
            ),
        };
    }
    if address.is_loopback() && roots.is_none() {
        let print = chain.fingerprint();
        return findings.not_looked_at(
            CHECK,
            format!(
                "here by a loopback address, which is in no certificate of an authority; fingerprint {print}"
            ),
        );
    }
    let trust = roots.unwrap_or(Trust::System);
    certificate::judge(findings, chain, &address.host, &trust, Source::Server);
}

fn json(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn ready(findings: &mut Findings, answer: &Result<Response, NetError>) {
    const CHECK: &str = "ready";
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let todo = "Its log may say why: `journalctl -u parlor`, `docker logs parlor`";
            return findings.problem(CHECK, error.to_string(), todo);
        }
    };
    let (status, body) = (answer.head.status, json(answer));
    match (body["ready"].as_bool(), body["store"].as_str(), body["why"].as_str()) {
        (Some(_), Some("unavailable"), why) => findings.problem(
            CHECK,
            format!("its store is unavailable: {}", why.unwrap_or_default()),
            "Accounts and turn rooms wait for it: look at its disk or its database",
        ),
        (Some(true), Some("none"), _) => findings.ok(CHECK, "it takes players"),
        (Some(true), ..) => findings.ok(CHECK, "it takes players, and its store answers"),
        (Some(false), _, why) => findings.problem(
            CHECK,
            format!("it takes no players: {}", why.unwrap_or_default()),
            "Wait for its restart, or start it again",
        ),
        (None, ..) => findings.problem(
            CHECK,
            format!("/ready answers {status} and is not Parlor's"),
            "Another program, or a proxy, has the port: name Parlor's own",
        ),
    }
}

/// What it says of itself. Gives the number of its shards.
fn described(findings: &mut Findings, answer: &Result<Response, NetError>) -> u64 {
    const CHECK: &str = "version";
    let Ok(answer) = answer else { return 1 };
    let body = json(answer);
    let (version, shards) = (body["parlor"].as_str(), body["shards"].as_u64().unwrap_or(1));
    let bound = |at: usize| body["protocol"][at].as_u64();
    let (Some(version), Some(least), Some(newest)) = (version, bound(0), bound(1)) else {
        findings.not_looked_at(CHECK, "it says nothing of itself at /web.json");
        return 1;
    };
    if least > u64::from(VERSION_MAX) || newest < u64::from(VERSION_MIN) {
        let found = format!(
            "Parlor {version} speaks the protocol {least} to {newest}, this program {VERSION_MIN} to {VERSION_MAX}"
        );
        findings.problem(CHECK, found, "Update the older one of both");
    } else {
        let more = if shards > 1 { format!(", {shards} shards") } else { String::new() };
        findings.ok(CHECK, format!("Parlor {version}{more}"));
    }
    shards.min(SHARDS_MAX)
}

/// Compares its clock with this machine's.
fn clock(findings: &mut Findings, ip: IpAddr, get: &dyn Fn() -> Result<Response, NetError>) {
    const CHECK: &str = "clock";
    if ip.is_loopback() {
        // It is the same one.
        return;
    }
    let before = certificate::now();
    let answer = get();
    let after = certificate::now();
    let date = answer.ok().and_then(|answer| httpdate::parse_http_date(answer.head.header("date")?).ok());
    let Some(there) = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()) else {
        return findings.not_looked_at(CHECK, "the server's answers have no date");
    };
    // It was said at some time in between, and without the part of the second.
    let (there, here) = (there.as_secs_f64() + 0.5, (before + after).as_secs_f64() / 2.0);
    let (ahead, exact) = (there - here, 0.5 + (after - before).as_secs_f64() / 2.0);
    if ahead.abs() <= CLOCK_MAX_S + exact {
        return findings.ok(CHECK, format!("the same as here, to {:.0} s", (ahead.abs() + exact).ceil()));
    }
    let which = if ahead > 0.0 { "ahead of" } else { "behind" };
    findings.warning(
        CHECK,
        format!("the server's is {:.0} s {which} this machine's", ahead.abs()),
        format!(
            "Have both set by the network (`timedatectl set-ntp true`, or install chrony): tokens are refused from {CLOCK_MAX_S:.0} s on, and \
             certificates by their dates"
        ),
    );
}

fn web_socket(runtime: &Runtime, findings: &mut Findings, addr: SocketAddr, host: &str, trust: &Trust) {
    const CHECK: &str = "websocket";
    let target = Target { secure: true, addr, host: host.to_owned(), path: "/ws".to_owned() };
    let patience = Depth::Full.patience();
    match runtime.block_on(websocket::connect(&target, trust, patience)) {
        Ok(_) => findings.ok(CHECK, "opens: for browsers, and where UDP is blocked"),
        Err(error) => findings.problem(
            CHECK,
            error.to_string(),
            "A proxy in between must pass `Upgrade: websocket` on; or take it away, the server ends TLS itself",
        ),
    }
}

/// An answer over HTTP.
fn get(url: &str, trust: &Trust, patience: Duration) -> Result<Response, NetError> {
    let mut request = Options::default().trust(trust.clone()).patience(patience).get(url);
    loop {
        if let Some(answer) = request.poll_response() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor::net::Head;
    use serde_json::json;

    fn answer(status: u16, date: Option<Duration>, body: &Value) -> Result<Response, NetError> {
        let date = date.map(|date| httpdate::fmt_http_date(UNIX_EPOCH + date));
        let headers = date.into_iter().map(|date| ("date".to_owned(), date)).collect();
        Ok(Response { head: Head { status, headers }, body: body.to_string().into() })
    }

    fn finding(look: impl FnOnce(&mut Findings)) -> String {
        let mut findings = Findings::new(true);
        look(&mut findings);
        findings.last()
    }

    #[test]
    fn a_clock_that_is_wrong_by_more_than_tokens_allow_is_told() {
        let there = IpAddr::from([192, 0, 2, 1]);
        let of = |date: Option<Duration>| {
            let get = || answer(200, date, &Value::Null);
            finding(|findings| clock(findings, there, &get))
        };
        let now = certificate::now();
        assert!(of(Some(now)).starts_with("Ok clock: the same as here"), "{}", of(Some(now)));
        assert!(of(Some(now - Duration::from_secs(3))).starts_with("Ok"));
        let behind = of(Some(now - Duration::from_secs(60)));
        assert!(behind.starts_with("Warning clock") && behind.contains("s behind this"), "{behind}");
        let ahead = of(Some(now + Duration::from_secs(7_200)));
        assert!(ahead.starts_with("Warning clock") && ahead.contains("s ahead of this"), "{ahead}");
        assert!(of(None).starts_with("NotLookedAt"));
    }

    #[test]
    fn what_a_server_says_of_itself_is_judged() {
        let ready_of =
            |status, body: Value| finding(|findings| ready(findings, &answer(status, None, &body)));
        assert!(ready_of(200, json!({ "ready": true, "store": "none", "why": null })).starts_with("Ok"));
        let away =
            ready_of(503, json!({ "ready": false, "store": "unavailable", "why": "the disk is full" }));
        assert!(away.starts_with("Problem") && away.contains("the disk is full"), "{away}");
        let draining =
            ready_of(503, json!({ "ready": false, "store": "ok", "why": "the server is going down" }));
        assert!(draining.starts_with("Problem") && draining.contains("going down"), "{draining}");
        let other = ready_of(404, json!("not found"));
        assert!(other.starts_with("Problem") && other.contains("404"), "{other}");

        let version_of =
            |body: Value| finding(|findings| assert!(described(findings, &answer(200, None, &body)) > 0));
        let own = json!({ "parlor": "1.2.3", "protocol": [VERSION_MIN, VERSION_MAX], "shards": 2 });
        assert_eq!(version_of(own.clone()), "Ok version: Parlor 1.2.3, 2 shards");
        assert_eq!(described(&mut Findings::new(true), &answer(200, None, &own)), 2);
        let newer = json!({ "parlor": "9", "protocol": [VERSION_MAX + 1, VERSION_MAX + 2] });
        assert!(version_of(newer).starts_with("Problem version"));
    }
}
