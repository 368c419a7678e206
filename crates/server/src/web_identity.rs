//! The certificates that browsers are shown over HTTP/3 by a server without an authority's. Browsers accept one
//! by its hash if it is short-lived, so each is used for some days, and the next one's hash is known before:
//!
//! ```text
//!  current  ├──────── 6 days ────────┤ ····· valid ·····│
//!  next                              ├──────── 6 days ────────┤
//! ```
//!
//! A page or an invite that has both hashes is good for 6 to 12 days. Connections outlive their certificate.

use crate::config::IdentitySource;
use crate::error::StartError;
use crate::identity::{self, IdentitySourceError, NAMES};
use crate::mutex::lock;
use crate::system;
use core::time::Duration;
use parlor_transport::{Fingerprint, Identity, ServerTls};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::{io, thread};

/// The file of the certificate in use, in the folder of a development identity.
pub const WEB_FILE: &str = "web.pem";
/// The file of the certificate after that.
pub const WEB_NEXT_FILE: &str = "web-next.pem";

/// How long a certificate is used.
const USED_S: u64 = 6 * 24 * 60 * 60;

/// Hashes of the certificates for browsers: the current and the next one. Empty with a certificate of an authority.
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebHashes(Arc<Mutex<Vec<Fingerprint>>>);

/// Replaces the certificate when its time is over, until this is dropped.
#[derive(Debug)]
pub(crate) struct WebIdentity {
    _stop: mpsc::SyncSender<()>,
}

/// Both certificates.
#[derive(Clone, Debug)]
struct Pair {
    current: Arc<Identity>,
    next: Arc<Identity>,
}

/// The certificates and where they are.
struct Turns {
    folder: Option<PathBuf>,
    pair: Pair,
    tls: ServerTls,
    hashes: WebHashes,
}

impl WebHashes {
    pub(crate) fn get(&self) -> Vec<Fingerprint> {
        lock(&self.0).clone()
    }
}

impl WebIdentity {
    /// Loads or makes the certificates if the identity is not an authority's, and looks at the time again and
    /// again.
    pub(crate) fn start(
        source: &IdentitySource,
        every: Duration,
        tls: &ServerTls,
        hashes: &WebHashes,
    ) -> Result<Option<Self>, StartError> {
        let IdentitySource::Development { folder } = source else { return Ok(None) };
        let mut turns = Turns::begin(folder.clone(), tls.clone(), hashes.clone(), system::unix_s())?;
        let (stop, stopped) = mpsc::sync_channel(1);
        let work = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                turns.look(system::unix_s());
            }
        };
        let started = thread::Builder::new().name("parlor-web-identity".to_owned()).spawn(work);
        started.map(|_| Some(WebIdentity { _stop: stop })).map_err(StartError::Thread)
    }
}

impl Turns {
    fn begin(
        folder: Option<PathBuf>,
        tls: ServerTls,
        hashes: WebHashes,
        now_s: u64,
    ) -> Result<Self, IdentitySourceError> {
        let kept = folder.as_deref().map(Pair::load).transpose()?.flatten();
        let (pair, is_new) = Pair::for_now(kept, now_s)?;
        let turns = Turns { folder, pair, tls, hashes };
        if is_new {
            turns.keep()?;
        }
        turns.show();
        Ok(turns)
    }

    /// Goes on to the next certificate when it is time. What cannot be stored is used nevertheless.
    fn look(&mut self, now_s: u64) {
        if self.pair.is_for(now_s) {
            return;
        }
        // Another server may have the same folder, and may have been first.
        let kept = self.folder.as_deref().map_or(Ok(None), Pair::load).unwrap_or(None);
        let (pair, is_new) = match Pair::for_now(kept.or_else(|| Some(self.pair.clone())), now_s) {
            Ok(pair) => pair,
            Err(why) => return tracing::error!("browsers have no certificate that they accept: {why}"),
        };
        self.pair = pair;
        self.show();
        let current = self.pair.current.fingerprint();
        tracing::info!(%current, "the certificate for browsers was replaced: new connections get it");
        if is_new && let Err(why) = self.keep() {
            tracing::warn!("the certificate for browsers is not stored, so a restart makes another: {why}");
        }
    }

    fn keep(&self) -> Result<(), IdentitySourceError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let unwritable = |error| IdentitySourceError::Unwritable { path: folder.join(WEB_FILE), error };
        self.pair.keep(folder).map_err(unwritable)
    }

    fn show(&self) {
        self.tls.set_web(&self.pair.current);
        *lock(&self.hashes.0) = vec![self.pair.current.fingerprint(), self.pair.next.fingerprint()];
    }
}

impl Pair {
    /// The pair to use now, and whether it is another than `before`: the next certificate becomes the current one
    /// if its time has come.
    fn for_now(before: Option<Pair>, now_s: u64) -> Result<(Pair, bool), IdentitySourceError> {
        let next = match before {
            Some(before) if before.is_for(now_s) => return Ok((before, false)),
            before => before.map(|before| before.next),
        };
        let current = match next {
            Some(next) if is_used(&next, now_s) => next,
            _ => make(now_s)?,
        };
        let next = make(current.web_begin_s().unwrap_or(now_s) + USED_S)?;
        Ok((Pair { current, next }, true))
    }

    /// Whether the current certificate is to be used now, and the next one after it.
    fn is_for(&self, now_s: u64) -> bool {
        let [current_s, next_s] = [&self.current, &self.next].map(|identity| identity.web_begin_s());
        is_used(&self.current, now_s) && next_s == current_s.map(|current_s| current_s + USED_S)
    }

    /// Reads the folder. Files that are damaged count as missing.
    fn load(folder: &Path) -> Result<Option<Self>, IdentitySourceError> {
        let [current, next] = [WEB_FILE, WEB_NEXT_FILE].map(|name| load(&folder.join(name)));
        Ok(current?.zip(next?).map(|(current, next)| Pair { current, next }))
    }

    fn keep(&self, folder: &Path) -> io::Result<()> {
        identity::replace(folder, &folder.join(WEB_FILE), &self.current)?;
        identity::replace(folder, &folder.join(WEB_NEXT_FILE), &self.next)
    }
}

fn make(begin_s: u64) -> Result<Arc<Identity>, IdentitySourceError> {
    Identity::generate_web(&NAMES, begin_s).map(Arc::new).map_err(IdentitySourceError::NotMade)
}

fn is_used(identity: &Identity, now_s: u64) -> bool {
    identity.web_begin_s().is_some_and(|begin_s| (begin_s..begin_s + USED_S).contains(&now_s))
}

fn load(path: &Path) -> Result<Option<Arc<Identity>>, IdentitySourceError> {
    if !path.exists() {
        return Ok(None);
    }
    match identity::load(path) {
        Err(error @ IdentitySourceError::Damaged { .. }) => {
            tracing::warn!(%error, "another certificate for browsers is made");
            Ok(None)
        }
        loaded => loaded.map(|identity| Some(Arc::new(identity))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NOW_S: u64 = 1_800_000_000;
    const DAY_S: u64 = 24 * 60 * 60;

    fn begin(folder: Option<&Path>, now_s: u64) -> Turns {
        let tls = ServerTls::new(&Identity::generate(&NAMES).unwrap());
        Turns::begin(folder.map(Path::to_owned), tls, WebHashes::default(), now_s).unwrap()
    }

    #[test]
    fn the_next_certificate_is_known_six_days_before_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        for folder in [None, Some(folder.path())] {
            let mut turns = begin(folder, NOW_S);
            let mut told = turns.hashes.get();
            for hour in 1..60 * 24 {
                let now_s = NOW_S + hour * 3_600;
                turns.look(now_s);
                let hashes = turns.hashes.get();
                assert_eq!((hashes.len(), hashes[0] == hashes[1]), (2, false));
                if hashes == told {
                    continue;
                }
                assert_eq!((hour * 3_600) % USED_S, 0, "after {hour} hours");
                assert_eq!(hashes[0], told[1], "the one that was told as the next");
                told = hashes;
            }
            assert_ne!(told, begin(None, NOW_S).hashes.get());
        }
    }

    #[test]
    fn a_folder_keeps_both_over_restarts_and_a_long_sleep_makes_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let first = begin(Some(folder.path()), NOW_S).hashes.get();
        assert_eq!(begin(Some(folder.path()), NOW_S + 5 * DAY_S).hashes.get(), first);
        let second = begin(Some(folder.path()), NOW_S + 7 * DAY_S).hashes.get();
        assert_eq!(second[0], first[1]);
        assert_eq!(begin(Some(folder.path()), NOW_S + 7 * DAY_S).hashes.get(), second);
        let asleep = begin(Some(folder.path()), NOW_S + 40 * DAY_S).hashes.get();
        assert!(!second.contains(&asleep[0]) && !second.contains(&asleep[1]));
        // A clock that was set back: browsers would find them not valid yet.
        let back = begin(Some(folder.path()), NOW_S).hashes.get();
        assert!(!asleep.contains(&back[0]));
    }

    #[test]
    fn damaged_files_are_replaced_and_exposed_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = begin(Some(folder.path()), NOW_S).hashes.get();
        fs::write(folder.path().join(WEB_NEXT_FILE), "nonsense").unwrap();
        assert_ne!(begin(Some(folder.path()), NOW_S).hashes.get(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(WEB_FILE);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let error = Pair::load(folder.path()).unwrap_err();
            assert!(matches!(error, IdentitySourceError::Exposed { .. }), "{error}");
        }
    }
}
