//! lightyear over UDP, with its defaults; a tick is sent with each update of the server's app.

use bevy::app::App;
use bevy::prelude::{Add, Bundle, Commands, MinimalPlugins, On};
use bevy::state::app::StatesPlugin;
use bevy::time::TimeUpdateStrategy;
use lightyear::prelude::client::{ClientPlugins, Connect, NetcodeClient};
use lightyear::prelude::server::{NetcodeServer, ServerPlugins, ServerUdpIo, Start};
use lightyear::prelude::{
    AppComponentExt, Authentication, LinkOf, LocalAddr, NetworkTarget, PeerAddr, Replicate,
    ReplicationReceiver, ReplicationSender, UdpIo,
};
use std::net::{Ipv4Addr, SocketAddr};
use walkers_load::{Library, Pose, Setting};

const PROTOCOL: u64 = 0;
const KEY: [u8; 32] = [0; 32];

struct Lightyear;

fn main() -> anyhow::Result<()> {
    walkers_load::run::<Lightyear>()
}

impl Library for Lightyear {
    fn server(setting: &Setting, listen: SocketAddr) -> anyhow::Result<App> {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, StatesPlugin, ServerPlugins { tick_duration: setting.tick() }));
        // One update is one tick, whatever the clock says.
        app.insert_resource(TimeUpdateStrategy::ManualDuration(setting.tick()));
        app.component::<Pose>().replicate();
        app.add_observer(|added: On<Add, LinkOf>, mut commands: Commands| {
            commands.entity(added.entity).insert(ReplicationSender);
        });
        app.finish();
        app.cleanup();
        let config = lightyear::netcode::server_plugin::NetcodeConfig {
            max_clients: usize::try_from(setting.clients)?,
            protocol_id: PROTOCOL,
            private_key: KEY,
            // Clients connect through the network of the bench.
            server_addr_check: false,
            ..Default::default()
        };
        let server = app
            .world_mut()
            .spawn((NetcodeServer::new(config), LocalAddr(listen), ServerUdpIo::default()))
            .id();
        app.world_mut().trigger(Start { entity: server });
        app.world_mut().flush();
        Ok(app)
    }

    fn client(setting: &Setting, number: u64, server: SocketAddr) -> anyhow::Result<App> {
        let mut app = App::new();
        app.add_plugins((MinimalPlugins, StatesPlugin, ClientPlugins { tick_duration: setting.tick() }));
        app.component::<Pose>().replicate();
        app.finish();
        app.cleanup();
        let authentication = Authentication::Manual {
            server_addr: server,
            client_id: number,
            private_key: KEY,
            protocol_id: PROTOCOL,
        };
        let client = NetcodeClient::new(authentication, Default::default())?;
        let local: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let client = app
            .world_mut()
            .spawn((
                client,
                LocalAddr(local),
                PeerAddr(server),
                UdpIo::default(),
                ReplicationReceiver::default(),
            ))
            .id();
        app.world_mut().trigger(Connect { entity: client });
        app.world_mut().flush();
        Ok(app)
    }

    fn replicated() -> impl Bundle {
        Replicate::to_clients(NetworkTarget::All)
    }
}
