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
    set(&mut options.reconnect_policy, &table.reconnect_policy);
    set(&mut options.paths, &table.paths);
    set(&mut connect.mode, &table.mode);
    if table.mode == Some(Mode::P2p) {
        options.paths = PathMode::P2p;
    }
    set(&mut options.protocol, &table.protocol);
    set(&mut connect.scheme, &table.invite_scheme);
    connect.conditions = table.impairment.map(Conditions::new);
    set(&mut options.spectators, &table.spectators);
    if matches!(options.intent, Wish::Host { .. } | Wish::Match { .. }) {
        set(&mut options.spectator_delay, &table.spectator_delay_ms.map(ms));
        options.presence = table.presence_ms.map(ms).or(options.presence);
        options.grace = table.grace_ms.map(ms).or(options.grace);
    }
    let tick_hz = table.tick_hz.and_then(TickRate::new);
    if let Some(preset) = table.preset.filter(|_| !matches!(options.intent, Wish::Match { .. })) {
        preset.apply(options);
    }
    match &mut options.intent {
        // A match has neither host nor state.
        Wish::Match { tick_rate, .. } => return set(tick_rate, &tick_hz),
        Wish::Host { max_players, tick_rate, .. } => {
            set(max_players, &table.max_players);
            set(tick_rate, &tick_hz);
            if table.host_migration == Some(true) {
                let timeout_ms = table.host_timeout_ms.unwrap_or(limits::HOST_TIMEOUT_MS_DEFAULT);
                options.host_timeout = Some(ms(timeout_ms));
            }
        }
        Wish::Join { .. } | Wish::Resume { .. } => {}
    }
    set(&mut options.migration_grace, &table.migration_grace_ms.map(Duration::from_millis));
    set(&mut options.lead_tuning, &table.lead_tuning);
    set(&mut options.drawing.delay, &table.render_delay);
    options.migration_pause = table.migration_pause.or(options.migration_pause);
    set(&mut options.lead, &table.lead);
    set(&mut options.simulation_delay_ticks, &table.simulation_delay_ticks);
    set(&mut options.resimulate_ticks, &table.resimulate_ticks);
    set(&mut options.rewind_max, &table.rewind_max_ms.map(Duration::from_millis));
}

fn ms(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

fn set<T: Clone>(option: &mut T, given: &Option<T>) {
    if let Some(value) = given {
        option.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_client_core::{Protocol, ReconnectPolicy};
    use parlor_sync::interpolation::RenderDelay;
    use parlor_sync::lead::LeadTuning;

    const TEXT: &str = r#"
        [server]
        address = "play.example.com"
        transport = "websocket"
        join_page = "https://play.example.com/"
        [multiplayer]
        name = "ada"
        environment = "beta"
        max_players = 9
        spectators = 3
        spectator_delay_ms = 20000
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
        reconnect_policy = { attempts = 3, delay_factor = 1, accept_state_resync = false }
        presence_ms = 1500
        grace_ms = 0
        preset = "calm"
        lead = true
        lead_tuning = { margin_ms = 50, dilation_per_mille = 20 }
        render_delay = { shortest_ms = 40 }
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
        assert_eq!((options.protocol, options.spectators), (Protocol::Reliable, 3));
        assert_eq!(options.spectator_delay, Duration::from_secs(20));
        assert_eq!((options.simulation_delay_ticks, options.resimulate_ticks), (4, 8));
        assert_eq!(options.rewind_max, Duration::from_millis(100));
        let policy = ReconnectPolicy { attempts: 3, delay_factor: 1.0, ..ReconnectPolicy::default() };
        let policy = ReconnectPolicy { accept_state_resync: false, ..policy };
        assert_eq!(options.reconnect_policy, policy, "the other fields have their defaults");
        assert_eq!(options.presence, Some(Duration::from_millis(1_500)));
        assert_eq!(options.grace, Some(Duration::ZERO));
        let tuning = LeadTuning { margin: Duration::from_millis(50), ..LeadTuning::default() };
        assert_eq!(options.lead_tuning, LeadTuning { dilation_per_mille: 20, ..tuning });
        assert_eq!(options.drawing.delay.shortest, Duration::from_millis(40));
        assert_eq!(options.drawing.delay.longest, RenderDelay::default().longest);
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
        assert_eq!((guest.presence, guest.grace), (None, None), "these, too");
        let (of_match, _) = with(TEXT, Options::create_match("duels"));
        let Wish::Match { max_players, tick_rate, .. } = of_match.intent else { panic!("it is a match") };
        assert_eq!((max_players, tick_rate.hz(), of_match.lead), (16, 60, false));
        assert_eq!((of_match.grace, of_match.reconnect_policy.attempts), (Some(Duration::ZERO), 3));
        let (off, _) = with("[multiplayer]\nhost_migration = false", Options::host("tanks"));
        assert_eq!(off.host_timeout, None);
        let (p2p, connect) = with("[multiplayer]\nmode = \"p2p\"", Options::host("tanks"));
        assert_eq!((p2p.paths, connect.mode), (PathMode::P2p, Mode::P2p));
        let (on, _) = with("[multiplayer]\nhost_migration = true", Options::host("tanks"));
        assert_eq!(on.host_timeout, Some(Duration::from_millis(250)));
    }

    #[test]
    fn m1_a_preset_of_the_file_is_changed_by_its_single_keys_and_by_code() {
        let of_steps = |options: &Options| {
            let Wish::Host { tick_rate, .. } = options.intent else { panic!("it hosts") };
            (tick_rate.hz(), options.simulation_delay_ticks, options.resimulate_ticks, options.lead)
        };
        let action = "[multiplayer]\npreset = \"action\"";
        let (preset, _) = with(action, Options::host("tanks"));
        assert_eq!(of_steps(&preset), (60, 4, 8, true));
        let (mut changed, _) = with(&format!("{action}\ntick_hz = 30\nlead = false"), Options::host("tanks"));
        assert_eq!(of_steps(&changed), (30, 4, 8, false));
        crate::Preset::Calm.apply(&mut changed);
        assert_eq!(of_steps(&changed), (10, 0, 0, false), "code wins");
        let (guest, _) = with(action, Options::join("tanks", "K7QM".parse().expect("a code")));
        assert_eq!((guest.simulation_delay_ticks, guest.lead), (4, true));
        let (of_match, _) = with(action, Options::create_match("duels"));
        assert!(!of_match.lead, "a match has no host");
    }
}
