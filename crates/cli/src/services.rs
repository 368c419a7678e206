//! A server's services (accounts, turn rooms), as commands reach them.

use anyhow::Context;
use parlor::net::Trust;
use parlor_transport::discovery::{Registry, ServerAddress};
use std::path::Path;

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

/// The store within the folder that a server has for its data.
///
/// # Errors
/// The folder's name is no UTF-8.
pub(crate) fn store_in(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join("parlor.db");
    let text = file.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is no UTF-8: name another folder with --data", file.display()))
}

/// Whom to believe that a server is the one at this address, if its address or a file of certificates says so.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn trust(address: &ServerAddress, ca: Option<&Path>) -> anyhow::Result<Option<Trust>> {
    if let Some(fingerprint) = address.fingerprint {
        return Ok(Some(Trust::Fingerprint(fingerprint)));
    }
    ca.map(roots).transpose()
}

/// Whoever the certificates in a file vouch for.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn roots(file: &Path) -> anyhow::Result<Trust> {
    let pem = std::fs::read_to_string(file)
        .with_context(|| format!("the certificates in {} cannot be read", file.display()))?;
    Ok(Trust::Roots(pem))
}
