use super::*;
use core::net::Ipv4Addr;

const OWN_MACHINE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

fn pages() -> Pages {
    Pages::new([read_origin("https://game.example").unwrap()], Some("play.example.com"))
}

fn judge(remote: IpAddr, lines: &[(&'static str, &'static str)]) -> Result<Asker, Stranger> {
    let line = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pages().judge(&Uri::from_static("/rooms/K7QM"), &lines.iter().map(line).collect(), remote)
}

fn browser(origin: Option<&'static str>, knows_this_machine: bool) -> Result<Asker, Stranger> {
    Ok(Asker::Browser { origin: origin.map(HeaderValue::from_static), knows_this_machine })
}

#[test]
fn threat_53_a_page_asks_if_it_is_the_servers_own_or_allowed() {
    let local = ("host", "localhost:7700");
    for remote in [OWN_MACHINE, ELSEWHERE] {
        assert_eq!(judge(remote, &[local]), Ok(Asker::Program));
        assert_eq!(judge(remote, &[local, ("origin", "http://localhost:7700")]), browser(None, true));
        let allowed = "https://game.example";
        assert_eq!(judge(remote, &[local, ("origin", allowed)]), browser(Some(allowed), true));
        for foreign in [
            "https://evil.example",
            "http://game.example",
            "https://game.example:444",
            "https://game.example.evil.example",
            "http://localhost:5173",
            "http://127.0.0.1:7700",
            "null",
            "",
        ] {
            let expected = Err(Stranger::Page(foreign.into()));
            assert_eq!(judge(remote, &[local, ("origin", foreign)]), expected, "{foreign}");
        }
        let twice = [local, ("origin", allowed), ("origin", "https://evil.example")];
        assert!(judge(remote, &twice).is_err(), "one of two is a stranger's");
    }
}

#[test]
fn threat_53_what_a_page_loads_without_saying_so_is_known_by_the_browser() {
    let judge = |lines: &[(&'static str, &'static str)]| {
        let mut all = vec![("host", "127.0.0.1:7700")];
        all.extend_from_slice(lines);
        judge(OWN_MACHINE, &all)
    };
    for site in ["cross-site", "same-site", "nonsense"] {
        for (mode, dest) in
            [("no-cors", "image"), ("no-cors", "empty"), ("navigate", "iframe"), ("cors", "document")]
        {
            let asked =
                judge(&[("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)]);
            assert_eq!(asked, Err(Stranger::Unnamed), "{site} {mode} {dest}");
        }
        let followed =
            [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert_eq!(judge(&followed), browser(None, true), "somebody follows an invite");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(judge(&[("sec-fetch-site", site)]), browser(None, true));
    }
}

#[test]
fn threat_53_on_this_machine_names_that_others_can_point_here_are_refused() {
    for good in [
        "localhost",
        "localhost:7700",
        "LOCALHOST.:7700",
        "game.localhost",
        "127.0.0.1:7700",
        "192.168.1.2:7700",
        "[::1]",
        "[::1]:7700",
        "play.example.com:443",
        "Play.Example.com",
        "game.example:7700",
    ] {
        assert_eq!(judge(OWN_MACHINE, &[("host", good)]), Ok(Asker::Program), "{good}");
    }
    for bad in [
        "evil.example:7700",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1.evil.example",
        "[evil]",
        "[::1].evil.example",
        "play.example.com.evil.example",
        "",
    ] {
        assert_eq!(judge(OWN_MACHINE, &[("host", bad)]), Err(Stranger::Name(bad.into())), "{bad}");
        assert_eq!(judge(ELSEWHERE, &[("host", bad)]), Ok(Asker::Program), "TLS decides there");
    }
    let rebound = [("host", "evil.example:7700"), ("origin", "http://evil.example:7700")];
    assert!(matches!(judge(OWN_MACHINE, &rebound), Err(Stranger::Name(_))));
    assert!(judge(OWN_MACHINE, &[("host", "localhost"), ("host", "evil.example")]).is_err());
    let absolute = Uri::from_static("http://evil.example/rooms/K7QM");
    let host = [(HOST, HeaderValue::from_static("localhost"))].into_iter().collect();
    assert!(pages().judge(&absolute, &host, OWN_MACHINE).is_err());
}

#[test]
fn a_browser_behind_a_proxy_asks_for_the_proxys_name() {
    let lines = [("host", "play.example.com"), ("origin", "https://play.example.com")];
    assert_eq!(judge(OWN_MACHINE, &lines), browser(None, false));
}

#[test]
fn origins_are_read_as_browsers_send_them() {
    for (text, origin) in [
        ("https://Game.Example", "https://game.example"),
        ("https://game.example/", "https://game.example"),
        ("https://game.example:443", "https://game.example"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://[::1]:80", "http://[::1]"),
        ("http://[::1]", "http://[::1]"),
        ("tauri://localhost", "tauri://localhost"),
    ] {
        assert_eq!(read_origin(text).as_deref(), Ok(origin), "{text}");
    }
    for wrong in [
        "*",
        "null",
        "game.example",
        "https://",
        "https:///x",
        "https://game.example/play",
        "https://a:b",
        "https://u@h",
    ] {
        assert!(read_origin(wrong).is_err(), "{wrong}");
    }
}
