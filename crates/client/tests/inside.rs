//! A host beside its server, in one process: it needs no socket, and nobody else notices.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::schema::{Kind, Schema};
use parlor::{
    CloseReason, ClosedReason, EntityId, Event, HostBuilder, Impairment, LinkKind, MemberId, PathMode, Room,
    RoomBuilder, Transport, TransportPreference, replicated,
};
use parlor_testing::Hall;
use std::num::NonZeroU16;
use support::Patience;
use until::until;

#[derive(Clone, Debug, PartialEq)]
struct Tank {
    at: [f32; 2],
    name: String,
}
replicated!(Tank as "tank" => {
    at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0),
    name: Kind::text(40),
});

fn schema() -> Schema {
    Schema::builder().replicate::<Tank>().build().expect("two fields")
}

/// Rooms on a hall's server.
trait Rooms {
    fn host(&self) -> HostBuilder;
    fn guest(&self, host: &Room) -> Room;
    fn quic_connections(&self) -> usize;
}

impl Rooms for Hall {
    fn host(&self) -> HostBuilder {
        Room::host("tanks")
            .name("ada")
            .schema(schema())
            .registry(self.registry.clone())
            .inside(self.server().inside())
    }

    fn guest(&self, host: &Room) -> Room {
        let code = host.code().expect("it is open").to_string();
        open(Room::join("tanks", &code).name("bob").schema(schema()).registry(self.registry.clone()))
    }

    fn quic_connections(&self) -> usize {
        self.runtime.block_on(self.server().stats()).quic_connections
    }
}

#[track_caller]
fn open<K>(builder: RoomBuilder<K>) -> Room {
    let mut room = builder.open();
    until(&mut room, |event| matches!(event, Event::PlayerJoined(player) if player.is_me).then_some(()));
    room
}

/// By what a room sees its host connected.
fn way_of_host(room: &Room) -> Option<Transport> {
    room.player(MemberId(0)).map(|host| host.transport)
}

/// Lets both go on until the guest has what the host has of an entity.
#[track_caller]
fn until_seen(host: &mut Room, guest: &mut Room, entity: EntityId) {
    let patience = Patience::new();
    loop {
        for room in [&mut *host, &mut *guest] {
            while room.poll().is_some() {}
            while room.step().is_some() {}
        }
        let written = host.world().component::<Tank>(entity).expect("the host has it");
        if guest.world().component::<Tank>(entity).ok().flatten() == written {
            return;
        }
        patience.look_again(|| format!("the host has {written:?}; {:?}", guest.info()));
    }
}

#[test]
fn what_a_host_inside_writes_is_what_a_guest_outside_sees() {
    let hall = Hall::start();
    let mut host = open(hall.host());
    assert_eq!(hall.quic_connections(), 0, "the host has no socket");
    let mut guest = hall.guest(&host);
    assert_eq!(hall.quic_connections(), 1);
    assert_eq!(way_of_host(&guest), Some(Transport::Relay(LinkKind::Memory)));
    let tanks: Vec<EntityId> = {
        let mut host = host.as_host().expect("it is the host");
        (0..300).map(|_| host.spawn(None).expect("there is room")).collect()
    };
    for round in 0..5u8 {
        for (number, tank) in (0u16..).zip(&tanks) {
            let at = [f32::from(number) / 3.0, f32::from(round) * 7.1];
            let name = format!("{number} in round {}", round / 2);
            let mut host = host.as_host().expect("it is the host");
            host.insert(*tank, &Tank { at, name }).expect("it fits");
        }
        for tank in &tanks {
            until_seen(&mut host, &mut guest, *tank);
        }
    }
    host.as_host().expect("it is the host").despawn(tanks[7]).expect("it is there");
    let patience = Patience::new();
    while guest.world().entities().contains(&tanks[7]) {
        for room in [&mut host, &mut guest] {
            while room.poll().is_some() {}
            while room.step().is_some() {}
        }
        patience.look_again(|| format!("{:?}", guest.info()));
    }
    assert_eq!(guest.world().entities().len(), 299);
}

#[test]
fn whoever_says_how_to_connect_wants_paths_or_a_bad_network_has_a_socket() {
    let hall = Hall::start();
    let ways: [fn(HostBuilder) -> HostBuilder; 3] = [
        |builder| builder.transport(TransportPreference::Quic),
        |builder| builder.paths(PathMode::Auto),
        |builder| builder.impairment(Impairment::none()),
    ];
    for way in ways {
        let host = open(way(hall.host()));
        let guest = hall.guest(&host);
        assert_eq!(way_of_host(&guest), Some(Transport::Relay(LinkKind::Quic)));
    }
}

#[test]
fn a_host_inside_a_server_of_several_shards_opens_its_room_and_hears_of_the_end() {
    let mut hall = Hall::start_with(|config| config.shards = NonZeroU16::new(2).expect("two"));
    let mut host = open(hall.host());
    let mut guest = hall.guest(&host);
    hall.shut_down();
    for room in [&mut host, &mut guest] {
        let why = until(room, |event| match event {
            Event::Closed(why) => Some(why),
            _ => None,
        });
        assert_eq!(why, ClosedReason::Session(CloseReason::ServerShutdown));
    }
}

#[test]
fn a_server_on_a_bad_network_has_no_way_inside() {
    let hall = Hall::start_with(|config| config.impairment = Some(Impairment::none()));
    let error = hall.host().check().expect_err("there is none").to_string();
    assert!(error.contains("bad network"), "{error}");
}
