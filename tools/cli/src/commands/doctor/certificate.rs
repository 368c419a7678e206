//! A certificate: its dates, its name, and who vouches for it.

use super::findings::Findings;
use parlor_transport::{CertificateChain, ConnectError, Trust};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CHECK: &str = "certificate";
const DAY_S: u64 = 24 * 60 * 60;
/// As the server itself warns.
const WARN_DAYS: u64 = 14;

/// Where a certificate is from, which decides about what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The files of a server on this machine, which may have a private authority.
    Files,
    /// A server that players reach.
    Server,
}

/// Judges a certificate of an authority, as a client with this trust does.
pub(super) fn judge(
    findings: &mut Findings,
    chain: &CertificateChain,
    host: &str,
    trust: &Trust,
    source: Source,
) {
    let now_s = now().as_secs();
    let Some((begins_s, expires_s)) = chain.validity_s() else {
        return findings.problem(CHECK, "its dates cannot be read", "Get another one: docs/deploy.md");
    };
    if now_s < begins_s {
        let found = format!("it is valid in {} from now, not yet", days(begins_s - now_s));
        return findings.problem(CHECK, found, "Set the clock of this machine: `timedatectl` shows it");
    }
    if expires_s <= now_s {
        let found = format!("it expired {} ago", days(now_s - expires_s));
        let todo = "Renew it (`certbot renew`). A running server takes the new files within 10 seconds, without a restart";
        return findings.problem(CHECK, found, todo);
    }
    if let Err(names) = chain.check_name(host) {
        let found = format!("it is for {names}, and not for {host}");
        let todo = match source {
            Source::Files => "Set --public-host to the name in it, or get one for that name".to_owned(),
            Source::Server => format!(
                "Name the server as the certificate does, or get one for this name. A development server of yours has #{} behind its \
                 address",
                chain.fingerprint()
            ),
        };
        return findings.problem(CHECK, found, todo);
    }
    let left = days(expires_s - now_s);
    match chain.check_trust(host, trust) {
        Ok(()) if expires_s - now_s < WARN_DAYS * DAY_S => findings.warning(
            CHECK,
            format!("for {host}, trusted, and it expires in {left}"),
            "See why it was not renewed: `certbot renew --dry-run`",
        ),
        Ok(()) => findings.ok(CHECK, format!("for {host}, trusted here, valid for {left}")),
        Err(ConnectError::TrustUnreadable(why)) => {
            findings.not_looked_at(CHECK, format!("for {host}, valid for {left}; who vouches for it ({why})"))
        }
        Err(error) => untrusted(findings, chain, &error, source),
    }
}

fn untrusted(findings: &mut Findings, chain: &CertificateChain, error: &ConnectError, source: Source) {
    let found = error.to_string();
    let is_alone = chain.certificates() == 1;
    match source {
        Source::Files if is_alone => findings.warning(
            CHECK,
            found,
            "Give --certificate the whole chain, not the leaf alone (certbot: fullchain.pem). Of a private authority \
             players need the root: --ca",
        ),
        Source::Files => findings.warning(CHECK, found, "Players need the root of this authority: --ca FILE"),
        Source::Server => {
            let print = chain.fingerprint();
            findings.problem(
                CHECK,
                found,
                format!(
                    "If it is your development server, name it with #{print}. Else it needs the whole chain of an \
                     authority: docs/deploy.md"
                ),
            );
        }
    }
}

fn days(seconds: u64) -> String {
    match seconds / DAY_S {
        0 => format!("{} hours", seconds / 3_600),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// The time of day.
#[allow(clippy::disallowed_methods, reason = "a certificate says by the calendar until when it holds")]
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
