//! Access to a server's services (accounts, turn rooms) for commands.

use anyhow::{Context, bail};
use parlor::net::Trust;
use parlor::online::{self, Account, Pending};
use parlor_transport::discovery::{Registry, ServerAddress};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long it rests between two looks.
const NAP: Duration = Duration::from_millis(5);

/// The server that is named, or the one on this machine.
///
/// # Errors
/// None is named, and there is none here.
pub(crate) fn server(named: Option<&str>) -> anyhow::Result<String> {
    if let Some(server) = named.map(str::trim).filter(|server| !server.is_empty()) {
        return Ok(server.to_owned());
    }
    let here = Registry::of_this_user().servers();
    let found = here.first().map(|server| format!("127.0.0.1:{}", server.port));
    found.context(
        "there is no server on this machine: start one with `parlor serve --data FOLDER`, or name one with --server",
    )
}

/// The file that keeps who a player is: a server is shown no secret of another.
///
/// # Errors
/// None is named, and the user has no folder for such things.
pub(crate) fn session_file(named: Option<&Path>, server: &str, name: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = given("XDG_STATE_HOME").or_else(|| given("HOME").map(|home| home.join(".local/state")));
    let folder = folder.context("there is no folder to keep the session in: name a file with --session")?;
    let place = server.split('#').next().unwrap_or_default();
    let file: String = format!("{place}-{name}")
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-._".contains(letter) { letter } else { '_' })
        .collect();
    Ok(folder.join("parlor").join("sessions").join(file))
}

/// A player's account for an app at the server that is named, or the one on this machine. The server is not asked yet.
///
/// # Errors
/// What is wrong with the server's address, or with the files of the sign-in and of root certificates.
pub(crate) fn account(
    server: Option<&str>,
    app: &str,
    name: &str,
    (session, ca): (Option<&Path>, Option<&Path>),
) -> anyhow::Result<Account> {
    let server = self::server(server)?;
    let session = session_file(session, &server, name)?;
    let sign_in = online::sign_in(&server).name(name).session_file(&session);
    let sign_in = match ca {
        Some(file) => sign_in.trust(roots(file)?),
        None => sign_in,
    };
    Ok(sign_in.account(app)?)
}

/// Waits for an answer.
///
/// # Errors
/// Why there is none; or it was interrupted.
pub(crate) fn wait<T>(mut pending: Pending<T>, stop: &AtomicBool) -> anyhow::Result<T> {
    loop {
        if let Some(answer) = pending.poll() {
            return Ok(answer?);
        }
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted before the server answered");
        }
        std::thread::sleep(NAP);
    }
}

/// The store within the folder that a server has for its data.
///
/// # Errors
/// The folder's name is no UTF-8.
pub(crate) fn store_in(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join("parlor.db");
    let text = file.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is no UTF-8: name another folder with --data", file.display()))
}

/// How to verify the server at this address: by the address's fingerprint or a file of certificates.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn trust(address: &ServerAddress, ca: Option<&Path>) -> anyhow::Result<Option<Trust>> {
    if let Some(fingerprint) = address.fingerprint {
        return Ok(Some(Trust::Fingerprint(fingerprint)));
    }
    ca.map(roots).transpose()
}

/// Trust by the certificates in a file.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn roots(file: &Path) -> anyhow::Result<Trust> {
    let pem = std::fs::read_to_string(file)
        .with_context(|| format!("the certificates in {} cannot be read", file.display()))?;
    Ok(Trust::Roots(pem))
}
