//! The pages on which browsers play: built by `web/build.mjs`, kept in the repository, served by this binary.

use crate::pages;
use crate::player::APP;
use anyhow::ensure;
use core::net::IpAddr;
use parlor::RoomCode;
use parlor_server::{WebFile, WebGame, WebPages};
use parlor_transport::discovery::ServerAddress;
use std::path::Path;

const FILES: &[WebFile] = &include!("../assets/web/table.rs");

/// The games and their pages.
const GAMES: [WebGame; 3] = [
    WebGame { app: APP, path: "/" },
    WebGame { app: "arena", path: "/arena" },
    WebGame { app: "draughts", path: "/draughts" },
];

/// Pages that belong to no game: the one of operators.
const OTHERS: &[&str] = &["/admin"];

/// The pages for a server that serves these apps, or all.
pub(crate) fn pages(apps: Option<&[String]>) -> WebPages {
    pages_with(FILES, apps)
}

/// The same with the files of a folder instead of this binary's, if there is one.
///
/// # Errors
/// If the folder is refused, or the server serves no game of its pages.
pub(crate) fn pages_of(folder: Option<&Path>, apps: Option<&[String]>) -> anyhow::Result<WebPages> {
    let Some(folder) = folder else { return Ok(pages(apps)) };
    let pages = pages_with(pages::read(folder)?, apps);
    ensure!(
        !pages.games.is_empty(),
        "--pages is given, and this server serves no game that they play: add --app {APP}"
    );
    Ok(pages)
}

fn pages_with(files: &'static [WebFile], apps: Option<&[String]>) -> WebPages {
    let is_served = |app: &str| apps.is_none_or(|apps| apps.iter().any(|served| served == app));
    let is_built = |path: &str| files.iter().any(|file| file.path == path);
    let games = GAMES.into_iter().filter(|game| is_served(game.app) && is_built(game.path)).collect();
    WebPages { games, others: OTHERS, files }
}

/// Where a browser on this machine finds a path of a server. To this machine, and no other, a server speaks HTTP without
/// TLS.
pub(crate) fn on_this_machine(port: u16, path: &str) -> String {
    format!("http://localhost:{port}{path}")
}

/// Where browsers on other machines find the pages of a server with these addresses.
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
    on_this_machine(port, &format!("/join/{code}"))
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
        let apps = |served: Option<&[String]>| -> Vec<&str> {
            pages(served).games.into_iter().map(|game| game.app).collect()
        };
        assert!(apps(None).contains(&APP), "all apps");
        assert_eq!(apps(Some(&["tanks".into(), APP.into()])), [APP]);
        assert!(apps(Some(&["tanks".into()])).is_empty());
        let folder = tempfile::tempdir().unwrap();
        let list = r#"[{"path": "/", "contentType": "text/html", "file": "index.html.gz"}]"#;
        std::fs::write(folder.path().join("pages.json"), list).unwrap();
        std::fs::write(folder.path().join("index.html.gz"), [0x1f, 0x8b]).unwrap();
        let given = |served: Option<&[String]>| pages_of(Some(folder.path()), served);
        assert_eq!(given(None).unwrap().games.len(), 1, "it has no arena");
        let refused = given(Some(&["tanks".into()])).unwrap_err();
        assert!(refused.to_string().contains("add --app magpies"), "{refused}");
    }

    #[test]
    fn the_pages_and_their_assets_are_compressed_and_small_enough() {
        let all: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(all <= 400_000, "{all} bytes");
        let (assets, others): (Vec<&WebFile>, Vec<_>) =
            FILES.iter().partition(|file| file.path.starts_with("/assets/"));
        assert!(assets.len() >= 3, "{assets:?}");
        assert!(others.iter().any(|page| page.path == "/"));
        let is_of_a_game = |path: &str| GAMES.iter().any(|game| game.path == path);
        let is_page = |file: &WebFile| {
            (is_of_a_game(file.path) || OTHERS.contains(&file.path))
                && file.content_type.starts_with("text/html")
        };
        assert!(others.iter().all(|file| is_page(file)), "{others:?}");
        assert!(FILES.iter().all(|file| file.gzip.starts_with(&[0x1f, 0x8b])), "gzip begins so");
    }
}
