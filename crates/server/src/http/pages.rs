//! Which web pages may send requests, and which host names are valid (threat 53).
//!
//! In a browser any page can send requests to any reachable server, including one on the player's own
//! machine. The browser limits what the page may read of the answers; the server limits the requests:
//!
//! - `Origin` names the page's origin. `Sec-Fetch-Site` shows that a page caused a request without `Origin`.
//!   Pages of other origins are rejected, unless the operator names them (`--web-origins`).
//! - For the browser, a page whose own name leads here (DNS rebinding) has the server's origin. But `Host`
//!   has that name. So over a loopback address the server accepts only names that others cannot point here.
//!
//! Other programs send neither header, and pass.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{StatusCode, Uri};
use std::collections::BTreeSet;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Maximum length of a header's text that is repeated in answers and in the log.
const SHOWN_MAX: usize = 100;

/// The allowed web pages, and the server's names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    origins: BTreeSet<String>,
    names: BTreeSet<String>,
}

/// The requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// No browser, or one that hides it.
    Program,
    /// A browser.
    Browser {
        /// The page's origin, if it is not the server's own. The browser needs it in the answer.
        origin: Option<HeaderValue>,
        /// Whether the request's host is this machine, and not a name that a proxy serves.
        knows_this_machine: bool,
    },
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// A page of another origin.
    Page(String),
    /// A page of another origin that the browser does not name.
    Unnamed,
    /// The `Host` names another server.
    Name(String),
}

impl Pages {
    /// Allows the pages of these origins, each as [`read_origin`] returns it, on a server with this public
    /// name.
    pub(crate) fn new(origins: impl IntoIterator<Item = String>, public_name: Option<&str>) -> Self {
        let origins: BTreeSet<String> = origins.into_iter().collect();
        // An attacker who can point an allowed page's name here could also change the page.
        let of_pages = origins.iter().filter_map(|origin| origin.split_once("://"));
        let names = of_pages.map(|(_, authority)| name(authority).to_owned());
        let names = names.chain(public_name.map(str::to_ascii_lowercase)).collect();
        Pages { origins, names }
    }

    /// Judges the head of a request from an address.
    pub(crate) fn judge(&self, uri: &Uri, headers: &HeaderMap, remote: IpAddr) -> Result<Asker, Stranger> {
        let hosts = || headers.get_all(HOST).into_iter();
        if remote.to_canonical().is_loopback() {
            let named =
                hosts().map(HeaderValue::as_bytes).chain(uri.authority().map(|at| at.as_str().as_bytes()));
            for host in named {
                self.check_name(host)?;
            }
        }
        let host = hosts().next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let knows_this_machine = is_this_machine(name(&host.to_ascii_lowercase()));
        let mut origins = headers.get_all(ORIGIN).into_iter();
        if let Some(origin) = origins.next() {
            let is_own = is_own(origin, host);
            if origins.next().is_some() || !(is_own || self.allows(origin)) {
                return Err(Stranger::Page(shown(origin.as_bytes())));
            }
            return Ok(Asker::Browser { origin: (!is_own).then(|| origin.clone()), knows_this_machine });
        }
        let says = |name: HeaderName, value: &str| headers.get(name).is_some_and(|said| said == value);
        if !headers.contains_key(SEC_FETCH_SITE) {
            return Ok(Asker::Program);
        }
        // A person follows a link. The page before it learns nothing.
        let is_by_a_person = says(SEC_FETCH_MODE, "navigate") && says(SEC_FETCH_DEST, "document");
        if says(SEC_FETCH_SITE, "same-origin") || says(SEC_FETCH_SITE, "none") || is_by_a_person {
            return Ok(Asker::Browser { origin: None, knows_this_machine });
        }
        Err(Stranger::Unnamed)
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.origins.contains(origin))
    }

    fn check_name(&self, host: &[u8]) -> Result<(), Stranger> {
        let text = core::str::from_utf8(host).map(str::to_ascii_lowercase).unwrap_or_default();
        let name = name(&text);
        if is_this_machine(name) || self.names.contains(name) {
            return Ok(());
        }
        Err(Stranger::Name(shown(host)))
    }
}

impl Stranger {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Stranger::Page(_) | Stranger::Unnamed => StatusCode::FORBIDDEN,
            Stranger::Name(_) => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Stranger::Page(_) | Stranger::Unnamed => "foreign_page",
            Stranger::Name(_) => "foreign_name",
        }
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stranger::Page(origin) => write!(
                f,
                "web pages of {origin:?} may not use this server: if it is your game's page, start the server with \
                 --web-origins and that origin"
            ),
            Stranger::Unnamed => f.write_str(
                "a web page of another origin may not load this: if it is your game's page, start the server with \
                 --web-origins and the page's origin, and ask by fetch",
            ),
            Stranger::Name(name) => write!(
                f,
                "this server does not go by the name {name:?} on its own machine: use localhost, or start it with \
                 --public-host and that name"
            ),
        }
    }
}

/// Checks an origin as browsers send it: `scheme://host`, or `scheme://host:port`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_origin(text: &str) -> Result<String, &'static str> {
    let text = text.trim().to_ascii_lowercase();
    let (scheme, rest) = text.split_once("://").ok_or("it does not begin with https:// or http://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-._[]:".contains(&letter);
    if !rest.bytes().all(is_plain) {
        return Err("it has more than a scheme, a host and perhaps a port");
    }
    let host = name(rest);
    if scheme.is_empty() || host.is_empty() {
        return Err("it names no host");
    }
    let port = rest.rsplit_once(':').filter(|(before, _)| !before.is_empty() && !rest.ends_with(']'));
    if port.is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
        return Err("its port is no number");
    }
    // Browsers omit a scheme's default port.
    let usual = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let rest = rest.strip_suffix(usual).filter(|_| !usual.is_empty() && port.is_some()).unwrap_or(rest);
    Ok(format!("{scheme}://{rest}"))
}

/// Whether a page comes from the server itself. `host` is the request's.
fn is_own(origin: &HeaderValue, host: &str) -> bool {
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    authority.is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https") && !host.is_empty() && authority.eq_ignore_ascii_case(host)
    })
}

/// Whether a lower-case name is an address, or leads to this machine whatever a name server answers.
fn is_this_machine(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    is_address || name == "localhost" || name.ends_with(".localhost")
}

/// Whether a `Host` header names the loopback interface.
pub(super) fn names_loopback(host: &[u8]) -> bool {
    let text = core::str::from_utf8(host).map(str::to_ascii_lowercase).unwrap_or_default();
    let name = name(&text);
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    match address.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => is_this_machine(name),
    }
}

/// The host without its port.
fn name(authority: &str) -> &str {
    if authority.starts_with('[') {
        // Without a closing bracket, or with more than a port behind it, the host is no valid name.
        let (address, rest) = authority.split_at(authority.find(']').map_or(0, |end| end + 1));
        return if rest.is_empty() || rest.starts_with(':') { address } else { authority };
    }
    authority.rsplit_once(':').map_or(authority, |(name, _)| name)
}

/// Received text, cut to a length that an answer may repeat.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned()
}

#[cfg(test)]
mod tests;
