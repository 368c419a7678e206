//! bevy_replicon over renet, with its defaults; a tick is sent with each update of the server's app.

use anyhow::Context;
use bevy::app::App;
use bevy::prelude::{Bundle, MinimalPlugins, PluginGroup, PostUpdate};
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use bevy_replicon_renet::netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication, ServerConfig,
};
use bevy_replicon_renet::renet::ConnectionConfig;
use bevy_replicon_renet::{RenetChannelsExt, RenetClient, RenetServer, RepliconRenetPlugins};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};
use walkers_load::{Library, Pose, Setting};

const PROTOCOL: u64 = 0;

struct Replicon;

fn main() -> anyhow::Result<()> {
    walkers_load::run::<Replicon>()
}

impl Library for Replicon {
    fn server(setting: &Setting, listen: SocketAddr) -> anyhow::Result<App> {
        let mut app = app();
        let config = ServerConfig {
            current_time: since_epoch()?,
            max_clients: usize::try_from(setting.clients)?,
            protocol_id: PROTOCOL,
            public_addresses: vec![listen],
            authentication: ServerAuthentication::Unsecure,
        };
        let transport = NetcodeServerTransport::new(config, UdpSocket::bind(listen)?)?;
        app.insert_resource(RenetServer::new(channels(&app))).insert_resource(transport);
        Ok(app)
    }

    fn client(_setting: &Setting, number: u64, server: SocketAddr) -> anyhow::Result<App> {
        let mut app = app();
        let authentication = ClientAuthentication::Unsecure {
            client_id: number,
            protocol_id: PROTOCOL,
            server_addr: server,
            user_data: None,
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let transport = NetcodeClientTransport::new(since_epoch()?, authentication, socket)?;
        app.insert_resource(RenetClient::new(channels(&app))).insert_resource(transport);
        Ok(app)
    }

    fn replicated() -> impl Bundle {
        Replicated
    }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((
        MinimalPlugins,
        StatesPlugin,
        RepliconPlugins.set(ServerPlugin::new(PostUpdate)),
        RepliconRenetPlugins,
    ));
    app.replicate::<Pose>();
    app.finish();
    app.cleanup();
    app
}

fn channels(app: &App) -> ConnectionConfig {
    let channels = app.world().resource::<RepliconChannels>();
    ConnectionConfig {
        server_channels_config: channels.server_configs(),
        client_channels_config: channels.client_configs(),
        ..ConnectionConfig::default()
    }
}

fn since_epoch() -> anyhow::Result<Duration> {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).context("the clock is before 1970")
}
