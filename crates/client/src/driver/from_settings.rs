//! The settings file as the defaults of a room's options. It is applied before code sets an option, so code wins.

use super::connect_options::ConnectOptions;
use crate::settings::{Multiplayer, Server, Settings};
use parlor_client_core::{Mode, Options, PathMode, Wish};
use parlor_proto::{TickRate, limits};
use parlor_transport::impaired::Conditions;
use std::time::Duration;

/// Applies the settings of this process. Where they are wrong nothing is applied: no room opens then.
pub(super) fn applied(options: Options, connect: ConnectOptions) -> (Options, ConnectOptions) {
    match Settings::current() {
        Ok(settings) => apply(settings, options, connect),
        Err(_) => (options, connect),
    }
}

fn apply(
    settings: &Settings,
    mut options: Options,
    mut connect: ConnectOptions,
) -> (Options, ConnectOptions) {
    server(settings.server(), &mut connect);
    multiplayer(settings.multiplayer(), &mut options, &mut connect);
    (options, connect)
}

fn server(table: &Server, connect: &mut ConnectOptions) {
    connect.server_of_file = table.address().cloned();
    set(&mut connect.transport, &table.transport);
    if let Some(page) = &table.join_page {
        connect.join_page = Some(page.trim_end_matches('/').to_owned());
    }
}

fn multiplayer(table: &Multiplayer, options: &mut Options, connect: &mut ConnectOptions) {
    set(&mut options.name, &table.name);
    set(&mut options.environment, &table.environment);
    set(&mut options.reconnect, &table.reconnect);
    set(&mut options.paths, &table.paths);
    set(&mut connect.mode, &table.mode);
    if table.mode == Some(Mode::P2p) {
        options.paths = PathMode::P2p;
    }
    set(&mut options.protocol, &table.protocol);
    set(&mut connect.scheme, &table.invite_scheme);
    connect.conditions = table.impairment.map(Conditions::new);
    let tick_hz = table.tick_hz.and_then(TickRate::new);
    match &mut options.intent {
        // A match has neither host nor state.
        Wish::Match { tick_rate, .. } => return set(tick_rate, &tick_hz),
        Wish::Host { max_players, tick_rate, .. } => {
            set(max_players, &table.max_players);
            set(tick_rate, &tick_hz);
            if table.host_migration == Some(true) {
                let timeout_ms = table.host_timeout_ms.unwrap_or(limits::HOST_TIMEOUT_MS_DEFAULT);
                options.host_timeout = Some(Duration::from_millis(timeout_ms.into()));
            }
        }
        Wish::Join { .. } | Wish::Resume { .. } => {}
    }
    set(&mut options.migration_grace, &table.migration_grace_ms.map(Duration::from_millis));
    options.migration_pause = table.migration_pause.or(options.migration_pause);
    set(&mut options.lead, &table.lead);
    set(&mut options.simulation_delay_ticks, &table.simulation_delay_ticks);
    set(&mut options.resimulate_ticks, &table.resimulate_ticks);
    set(&mut options.rewind_max, &table.rewind_max_ms.map(Duration::from_millis));
}

fn set<T: Clone>(option: &mut T, given: &Option<T>) {
    if let Some(value) = given {
        option.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_client_core::Protocol;

    const TEXT: &str = r#"
        [server]
        address = "play.example.com"
        transport = "websocket"
        join_page = "https://play.example.com/"
        [multiplayer]
        name = "ada"
        environment = "beta"
        max_players = 9
        tick_hz = 60
        host_migration = true
        host_timeout_ms = 400
        migration_grace_ms = 5000
        migration_pause = false
        protocol = "reliable"
        mode = "relay"
        paths = "auto"
        invite_scheme = "tanks"
        reconnect = false
        lead = true
        simulation_delay_ticks = 4
        resimulate_ticks = 8
        rewind_max_ms = 100
        impairment = "loss=3%"
    "#;

    fn with(text: &str, options: Options) -> (Options, ConnectOptions) {
        apply(&text.parse().expect("it is right"), options, ConnectOptions::default())
    }

    #[test]
    fn a5_every_key_sets_its_option() {
        let (options, connect) = with(TEXT, Options::host("tanks"));
        assert_eq!((options.name.as_str(), options.environment.as_str()), ("ada", "beta"));
        let hz = TickRate::new(60).expect("it is one");
        let host = Wish::Host { code: None, max_players: 9, tick_rate: hz, dedicated: false };
        assert_eq!((options.intent, options.host_timeout), (host, Some(Duration::from_millis(400))));
        assert_eq!((options.paths, options.reconnect, options.lead), (PathMode::Auto, false, true));
        assert_eq!((options.migration_grace, options.migration_pause), (Duration::from_secs(5), Some(false)));
        assert_eq!(options.protocol, Protocol::Reliable);
        assert_eq!((options.simulation_delay_ticks, options.resimulate_ticks), (4, 8));
        assert_eq!(options.rewind_max, Duration::from_millis(100));
        assert_eq!(connect.server_of_file, Some("play.example.com".parse().expect("an address")));
        assert_eq!((connect.server, connect.mode), (None, Mode::Relay));
        assert_eq!(connect.transport, crate::TransportPreference::WebSocket);
        assert_eq!(
            (connect.scheme.as_str(), connect.join_page.as_deref()),
            ("tanks", Some("https://play.example.com"))
        );
        let impairment = connect.conditions.expect("it is on a bad network").get();
        assert_eq!(impairment, "loss=3%".parse().expect("an impairment"));
    }

    #[test]
    fn a7_each_kind_of_room_takes_the_keys_that_it_has() {
        let (guest, _) = with(TEXT, Options::join("tanks", "K7QM".parse().expect("a code")));
        assert_eq!((guest.host_timeout, guest.lead), (None, true), "the room has what its host said");
        let (of_match, _) = with(TEXT, Options::create_match("duels"));
        let Wish::Match { max_players, tick_rate, .. } = of_match.intent else { panic!("it is a match") };
        assert_eq!((max_players, tick_rate.hz(), of_match.lead), (16, 60, false));
        let (off, _) = with("[multiplayer]\nhost_migration = false", Options::host("tanks"));
        assert_eq!(off.host_timeout, None);
        let (p2p, connect) = with("[multiplayer]\nmode = \"p2p\"", Options::host("tanks"));
        assert_eq!((p2p.paths, connect.mode), (PathMode::P2p, Mode::P2p));
        let (on, _) = with("[multiplayer]\nhost_migration = true", Options::host("tanks"));
        assert_eq!(on.host_timeout, Some(Duration::from_millis(250)));
    }
}
