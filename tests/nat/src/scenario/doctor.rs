//! `parlor doctor` on another machine than the server's, before and after a firewall drops UDP.

use crate::fault::{Seen, ensure};
use crate::member::{HUB, Workshop};
use crate::net::{Public, Switch};

/// Its second shard has the port after the first.
const PORT: u16 = 7700;
const FIREWALL: &str = "\
table inet filter {
  chain input {
    type filter hook input priority filter; policy accept;
    udp dport 7701 drop
  }
}
";

pub(super) fn run(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("doctor")?;
    let (server, elsewhere) = (internet.public(HUB)?, internet.public(Public(40))?);
    let program = workshop.start("server", &server, &format!("serve --port {PORT} --shards 2 --log warn"))?;
    let address = program.says("PARLOR_SERVER=")?;
    let fingerprint = address.rsplit('#').next().unwrap_or_default();
    let server_args = format!("--server {}:{PORT}#{fingerprint}", HUB.address());
    let look = || workshop.output(&elsewhere, &format!("doctor {server_args}"));
    let open = look()?;
    for line in [
        "ok       tcp 7700 ",
        "ok       udp 7700 ",
        "ok       udp 7701 ",
        "ok       websocket",
        "ok       certificate",
    ] {
        ensure(open.contains(line), || format!("no {line:?} in {open}"))?;
    }
    ensure(!open.contains("problem"), || open.clone())?;
    server.space.rules(FIREWALL)?;
    let blocked = look()?;
    ensure(blocked.contains("problem  udp 7701 ") && blocked.contains("ok       tcp 7701 "), || {
        blocked.clone()
    })?;
    ensure(blocked.contains("ok       udp 7700 "), || blocked.clone())?;
    ensure(blocked.contains("ufw allow 7701/udp"), || blocked.clone())?;
    Ok(vec![
        "from another machine it names the one UDP port that a firewall drops, and the rule that opens it"
            .to_owned(),
    ])
}
