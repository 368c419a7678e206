//! A changed certificate applies from the next handshake on. Connections stay open, because a restart would
//! end every room in memory, and certificates are renewed every few weeks.
//!
//! A thread rereads and compares the files, so that no other thread waits for a disk. Polling works with
//! every file system and every way of replacement.

use crate::config::IdentitySource;
use crate::identity::{self, IdentitySourceError};
use crate::system;
use core::time::Duration;
use parlor_transport::{Fingerprint, Identity, ServerTls};
use ring::digest::{Context, SHA256};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::{fs, thread};

/// Default of [`Config::certificate_every`](crate::Config::certificate_every).
pub const CERTIFICATE_EVERY: Duration = Duration::from_secs(10);

const DAY_S: u64 = 24 * 60 * 60;
/// Remaining validity at which the operator is warned.
const WARN_S: u64 = 14 * DAY_S;

/// Polls the files, until it is dropped.
#[derive(Debug)]
pub(crate) struct Renewal {
    _stop: mpsc::SyncSender<()>,
}

/// The result of a look at the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    /// The certificate in use.
    Same,
    /// Another certificate, which is used from now on.
    Replaced,
    /// An invalid one; the current certificate stays. `is_said`: it is logged. It is logged once, and not
    /// while it may be half written.
    Broken { is_said: bool },
}

/// The files and their known state.
struct Files<F> {
    certificate: PathBuf,
    key: PathBuf,
    tls: ServerTls,
    /// Called with each new certificate.
    replaced: F,
    used: Option<[u8; 32]>,
    expires_s: Option<u64>,
    /// The digest of invalid files, and whether they were logged.
    broken: Option<([u8; 32], bool)>,
    warned_s: Option<u64>,
}

impl Renewal {
    /// Starts polling if the identity is in files. `replaced` is called with each new certificate.
    pub(crate) fn start(
        source: &IdentitySource,
        every: Duration,
        tls: &ServerTls,
        replaced: impl Fn(Fingerprint) + Send + 'static,
    ) -> io::Result<Option<Self>> {
        let IdentitySource::Files { certificate, key } = source else { return Ok(None) };
        let mut files = Files::new(certificate.clone(), key.clone(), tls.clone(), replaced);
        let (stop, stopped) = mpsc::sync_channel(1);
        let work = move || {
            loop {
                let now_s = system::unix_s();
                files.look(now_s);
                files.warn(now_s);
                if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        thread::Builder::new().name("parlor-renewal".to_owned()).spawn(work)?;
        Ok(Some(Renewal { _stop: stop }))
    }
}

impl<F: Fn(Fingerprint)> Files<F> {
    fn new(certificate: PathBuf, key: PathBuf, tls: ServerTls, replaced: F) -> Self {
        let (used, expires_s, broken, warned_s) = (None, None, None, None);
        Files { certificate, key, tls, replaced, used, expires_s, broken, warned_s }
    }

    fn look(&mut self, now_s: u64) -> Looked {
        let digest = self.digest();
        if self.used == Some(digest) {
            self.broken = None;
            return Looked::Same;
        }
        match self.load(now_s) {
            Ok(identity) => {
                // The first look finds the certificate that the server started with.
                if self.used.is_some() {
                    let (path, fingerprint) = (self.certificate.display(), identity.fingerprint());
                    tracing::info!(%path, %fingerprint, "the certificate was replaced: new connections get it");
                }
                self.tls.replace(&identity);
                (self.replaced)(identity.fingerprint());
                (self.used, self.expires_s) = (Some(digest), identity.expires_s());
                (self.broken, self.warned_s) = (None, None);
                Looked::Replaced
            }
            Err(why) => {
                // Certificate and key are two files. After one look they may be half written.
                let is_said = self.broken == Some((digest, false));
                if is_said {
                    tracing::warn!(
                        "the certificate on disk is not used, and the one before stays in use: {why}"
                    );
                }
                let was_said = self.broken == Some((digest, true));
                self.broken = Some((digest, is_said || was_said));
                Looked::Broken { is_said }
            }
        }
    }

    fn load(&self, now_s: u64) -> Result<Identity, String> {
        let source = IdentitySource::Files { certificate: self.certificate.clone(), key: self.key.clone() };
        let identity = identity::obtain(&source).map_err(|error: IdentitySourceError| error.to_string())?;
        let is_over = |expires_s: Option<u64>| expires_s.is_some_and(|expires_s| expires_s <= now_s);
        if self.used.is_some() && is_over(identity.expires_s()) && !is_over(self.expires_s) {
            return Err(format!("the one in {} has expired", self.certificate.display()));
        }
        Ok(identity)
    }

    /// A hash of the files; an unreadable file counts as empty.
    fn digest(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        for path in [&self.certificate, &self.key] {
            let bytes = fs::read(path).unwrap_or_default();
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(&bytes);
        }
        context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Warns once a day of a certificate that expires soon. Returns whether it did.
    fn warn(&mut self, now_s: u64) -> bool {
        let Some(expires_s) = self.expires_s.filter(|expires_s| *expires_s < now_s.saturating_add(WARN_S))
        else {
            return false;
        };
        if self.warned_s.is_some_and(|warned_s| now_s < warned_s.saturating_add(DAY_S)) {
            return false;
        }
        self.warned_s = Some(now_s);
        let path = self.certificate.display();
        match expires_s.checked_sub(now_s) {
            Some(left_s) => tracing::warn!(
                %path, days = left_s / DAY_S,
                "the certificate expires soon: renew it; the server uses the new one without a restart"
            ),
            None => tracing::warn!(
                %path, days = (now_s - expires_s) / DAY_S,
                "the certificate has expired, and players are refused: renew it; the server uses the new one without a restart"
            ),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::path::Path;

    fn write(folder: &Path, chain: &Identity, key: &Identity) {
        fs::write(folder.join("chain.pem"), chain.to_pem().certificates).unwrap();
        fs::write(folder.join("key.pem"), key.to_pem().key).unwrap();
    }

    fn made() -> Identity {
        Identity::generate(&["localhost"]).unwrap()
    }

    #[test]
    fn a_new_pair_is_used_and_a_broken_one_is_told_once_and_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second, third) = (made(), made(), made());
        write(folder.path(), &first, &first);
        let shown = Cell::new(None);
        let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        let tls = ServerTls::new(&first);
        let mut files = Files::new(certificate.clone(), key, tls, |fingerprint| shown.set(Some(fingerprint)));
        assert_eq!(files.look(0), Looked::Replaced);
        assert_eq!(files.look(0), Looked::Same);
        // The key of one identity with the certificate of another, as between two writes.
        write(folder.path(), &second, &first);
        assert_eq!(files.look(0), Looked::Broken { is_said: false });
        write(folder.path(), &second, &second);
        assert_eq!(files.look(0), Looked::Replaced);
        assert_eq!(shown.get(), Some(second.fingerprint()));
        for broken in [Some("nonsense"), None] {
            match broken {
                Some(text) => fs::write(&certificate, text).unwrap(),
                None => fs::remove_file(&certificate).unwrap(),
            }
            let looked: Vec<Looked> = (0..10).map(|_| files.look(0)).collect();
            let said = looked.iter().filter(|looked| **looked == Looked::Broken { is_said: true }).count();
            assert_eq!((said, looked[0]), (1, Looked::Broken { is_said: false }));
            assert!(!looked.contains(&Looked::Replaced) && !looked.contains(&Looked::Same));
        }
        assert_eq!(shown.get(), Some(second.fingerprint()));
        write(folder.path(), &second, &second);
        assert_eq!(files.look(0), Looked::Same, "it is what is in use");
        // An expired certificate does not replace a valid one.
        write(folder.path(), &third, &third);
        let over_s = third.expires_s().unwrap();
        files.expires_s = Some(over_s + 2);
        assert_eq!(files.look(over_s + 1), Looked::Broken { is_said: false });
        assert_eq!(files.look(over_s - 1), Looked::Replaced);
    }

    #[test]
    fn the_operator_is_warned_once_a_day_from_two_weeks_before_the_end_on() {
        let folder = tempfile::tempdir().unwrap();
        let identity = made();
        write(folder.path(), &identity, &identity);
        let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        let mut files = Files::new(certificate, key, ServerTls::new(&identity), |_| {});
        let end_s = identity.expires_s().unwrap();
        let mut warned = 0;
        // A look each hour, from 20 days before the expiry to 6 days after.
        for hour in 0..26 * 24 {
            let now_s = end_s - 20 * DAY_S + hour * 3_600;
            files.look(now_s);
            let warns = files.warn(now_s);
            assert!(!warns || now_s + WARN_S > end_s, "too early");
            warned += u32::from(warns);
        }
        assert_eq!(warned, 20, "fourteen days before and six after");
    }
}
