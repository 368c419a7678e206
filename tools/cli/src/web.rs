//! The page on which browsers play Magpies: built by `cargo xtask web`, kept in the repository, served by this binary.

use crate::player::APP;
use core::net::IpAddr;
use parlor::RoomCode;
use parlor_server::{WebFile, WebGame};
use parlor_transport::discovery::ServerAddress;

const FILES: &[WebFile] = &include!("../../../web/dist/table.rs");

/// The page for a server that serves these apps, or all.
pub(crate) fn game(apps: Option<&[String]>) -> Option<WebGame> {
    let is_served = apps.is_none_or(|apps| apps.iter().any(|app| app == APP));
    is_served.then_some(WebGame { app: APP, files: FILES })
}

/// Where a browser on this machine finds the page of a server. To this machine, and no other, a server speaks HTTP without
/// TLS.
pub(crate) fn on_this_machine(port: u16) -> String {
    format!("http://localhost:{port}/")
}

/// Where browsers on other machines find the page of a server with these addresses.
pub(crate) fn elsewhere(addresses: &[ServerAddress]) -> impl Iterator<Item = String> {
    let is_here = |address: &&ServerAddress| {
        address.host == "localhost" || address.host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
    };
    let page = |address: &ServerAddress| {
        let place = ServerAddress { fingerprint: None, ..address.clone() };
        format!("https://{place}/")
    };
    addresses.iter().filter(move |address| !is_here(address)).map(page)
}

/// Where a browser on this machine joins a room.
pub(crate) fn room_on_this_machine(port: u16, code: RoomCode) -> String {
    format!("{}join/{code}", on_this_machine(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_given_no_address_that_leads_to_themselves() {
        let at = |host: &str| ServerAddress { host: host.into(), port: 7700, fingerprint: None };
        let addresses =
            ["play.example.com", "192.168.1.7", "fd00::2", "127.0.0.1", "::1", "localhost"].map(at);
        let pages: Vec<String> = elsewhere(&addresses).collect();
        assert_eq!(
            pages,
            ["https://play.example.com:7700/", "https://192.168.1.7:7700/", "https://[fd00::2]:7700/"]
        );
    }

    #[test]
    fn a_server_that_does_not_serve_the_game_has_no_page_for_it() {
        assert!(game(None).is_some() && game(Some(&["tanks".into(), APP.into()])).is_some());
        assert!(game(Some(&["tanks".into()])).is_none());
    }

    #[test]
    fn the_page_and_its_assets_are_compressed_and_small_enough() {
        let all: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(all <= 400_000, "{all} bytes");
        let page = FILES.iter().find(|file| file.path == "/").unwrap();
        assert!(page.content_type.starts_with("text/html"));
        assert!(FILES.iter().all(|file| file.gzip.starts_with(&[0x1f, 0x8b])), "gzip begins so");
        assert!(FILES.iter().all(|file| file.path == "/" || file.path.starts_with("/assets/")));
    }
}
