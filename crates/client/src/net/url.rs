//! Parser of network URLs: `SCHEME://HOST[:PORT][/PATH][?QUERY]`.

use super::error::NetError;
use core::net::Ipv6Addr;
use hyper::Uri;
use std::fmt;

/// The address to connect to, and the path to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) is_secure: bool,
    /// A name or an address; IPv6 without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query.
    pub(super) path: String,
    scheme: &'static str,
}

/// The protocol of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// `http` or `https`.
    Http,
    /// `ws` or `wss`.
    WebSocket,
}

impl Url {
    pub(super) fn parse(text: &str, wanted: For) -> Result<Self, NetError> {
        let wrong = |why| NetError::Url { url: text.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| wrong("it is not SCHEME://HOST[:PORT]/PATH, in ASCII"))?;
        let (scheme, is_secure) = match (wanted, uri.scheme_str()) {
            (For::Http, Some("http")) => ("http", false),
            (For::Http, Some("https")) => ("https", true),
            (For::WebSocket, Some("ws")) => ("ws", false),
            (For::WebSocket, Some("wss")) => ("wss", true),
            (For::Http, _) => return Err(wrong("it does not begin with http:// or https://")),
            (For::WebSocket, _) => return Err(wrong("it does not begin with ws:// or wss://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a name or a password before its host: send them in a header"));
        }
        let host = authority.host();
        // The library reads an invalid port as no port.
        let port = match (
            authority.as_str().strip_prefix(host).and_then(|rest| rest.strip_prefix(':')),
            is_secure,
        ) {
            (Some(port), _) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| wrong("its port is no number from 1 to 65535"))?,
            (None, true) => 443,
            (None, false) => 80,
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { is_secure, host: host.to_owned(), port, path, scheme })
    }

    /// Resolves a redirect's location (RFC 3986 §5.2, without `..`, which servers resolve).
    pub(super) fn join(&self, location: &str) -> Result<Self, NetError> {
        if location.contains("://") {
            return Url::parse(location, For::Http);
        }
        let here = self.path.split(['?', '#']).next().unwrap_or("/");
        let text = if location.starts_with("//") {
            format!("{}:{location}", self.scheme)
        } else if location.starts_with('/') {
            format!("{}{location}", self.origin())
        } else if location.starts_with('?') {
            format!("{}{here}{location}", self.origin())
        } else {
            let folder = here.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{}{folder}/{location}", self.origin())
        };
        Url::parse(&text, For::Http)
    }

    /// Whether both URLs have the same scheme, host and port.
    pub(super) fn is_same_origin(&self, other: &Url) -> bool {
        self.is_secure == other.is_secure && self.port == other.port && self.host == other.host
    }

    /// Host and port, in the form of the header `Host`.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.port, self.is_secure) {
            (80, false) | (443, true) => host,
            (port, _) => format!("{host}:{port}"),
        }
    }

    fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(text: &str) -> Url {
        Url::parse(text, For::Http).expect(text)
    }

    #[test]
    fn urls_come_back_as_they_are_written() {
        for text in
            ["http://a.example/", "https://a.example:1/x?y=z", "http://[::1]:80/", "https://10.0.0.1/a/b"]
        {
            assert_eq!(http(text).to_string(), text.replace(":80/", "/"));
        }
        let bare = http("http://a.example?x=1");
        assert_eq!((bare.path.as_str(), bare.port), ("/?x=1", 80));
        let socket = Url::parse("wss://[::1]/game", For::WebSocket).expect("it is one");
        assert_eq!((socket.host.as_str(), socket.port, socket.is_secure), ("::1", 443, true));
    }

    #[test]
    fn what_is_no_url_says_why() {
        for text in [
            "",
            "a.example",
            "/x",
            "ftp://a.example/",
            "ws://a.example/",
            "http://",
            "http://a:0/",
            "http://a:99999/",
            "http://u:p@a.example/",
            "http://a b/",
            "http://ä.example/",
        ] {
            let error = Url::parse(text, For::Http).expect_err(text);
            assert!(matches!(&error, NetError::Url { url, .. } if url == text), "{error}");
        }
        assert!(Url::parse("http://a.example/", For::WebSocket).is_err());
    }

    #[test]
    fn redirects_lead_where_browsers_go() {
        let from = http("http://a.example:8080/one/two?x=1");
        for (location, to) in [
            ("https://b.example/", "https://b.example/"),
            ("//b.example/z", "http://b.example/z"),
            ("/three", "http://a.example:8080/three"),
            ("three?y", "http://a.example:8080/one/three?y"),
            ("?y=2", "http://a.example:8080/one/two?y=2"),
        ] {
            assert_eq!(from.join(location).expect(location).to_string(), to);
        }
        assert!(from.join("ftp://b.example/").is_err());
    }
}
