//! A shard with links in memory of known capacity: slow readers, and peers that never return.

use super::{Beside, Directory, Shard, channel, run};
use crate::clock::Clock;
use crate::connection;
use bytes::Bytes;
use parlor_hub::{Config, Hub, Origin};
use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::wire::handshake::Hello;
use parlor_proto::{CloseReason, MemberId, RoomCode};
use parlor_testing::{Client, creating, joining, within};
use parlor_transport::{CloseCode, LinkClosed, memory};
use tokio::task::JoinHandle;

fn start() -> Shard {
    start_watched().0
}

fn start_watched() -> (Shard, JoinHandle<()>) {
    let (shard, inputs) = channel();
    let hub = Hub::new(Config::new([7; 32]));
    let running =
        tokio::spawn(run(hub, Clock::start(), inputs, None, Directory::default(), Beside::default()));
    (shard, running)
}

fn connect(shard: &Shard, hello: Hello) -> Client {
    let (ours, theirs) = memory::pair();
    let shard = shard.clone();
    tokio::spawn(async move { connection::serve(theirs, Origin::LOCAL, &shard).await });
    Client::new(ours, hello)
}

async fn host_and_guest(shard: &Shard) -> (Client, Client, RoomCode) {
    let mut host = connect(shard, creating(None, None, 4));
    let code = host.welcome().await.code;
    let mut guest = connect(shard, joining(code, None));
    guest.welcome().await;
    assert_eq!(host.joined(2).await, [MemberId(0), MemberId(1)]);
    assert_eq!(guest.joined(2).await, [MemberId(1), MemberId(0)]);
    (host, guest, code)
}

/// A message; several of them fill a link in memory.
fn large(number: u8) -> Bytes {
    vec![number; 30 * 1024].into()
}

#[tokio::test]
async fn a_reader_that_pauses_gets_everything_in_order_later() {
    let shard = start();
    let (mut host, mut guest, code) = host_and_guest(&shard).await;
    guest.pause(true).await;
    for number in 0..4 {
        host.say(large(number)).await;
    }
    // A third member receives all of it meanwhile: the paused member delays no other.
    let mut other = connect(&shard, joining(code, None));
    other.welcome().await;
    host.joined(1).await;
    other.joined(3).await;
    host.say("last").await;
    loop {
        if other.heard().await.1 == "last" {
            break;
        }
    }
    guest.pause(false).await;
    for number in 0..4 {
        let (from, payload) = heard_past_news(&mut guest).await;
        assert_eq!((from, payload), (MemberId(0), large(number)));
    }
    assert_eq!(heard_past_news(&mut guest).await.1, "last");
}

/// The next message of a member, past the news of other members.
async fn heard_past_news(client: &mut Client) -> (MemberId, Bytes) {
    use parlor_proto::channel;
    use parlor_proto::wire::envelope::{Downward, Sender};
    loop {
        let message = client.message().await;
        if message.channel == channel::MESSAGE_ORDERED {
            let Downward { from: Sender::Member(from), payload, .. } =
                Downward::decode(message.payload).unwrap()
            else {
                panic!("the hub says nothing by itself")
            };
            return (from, payload);
        }
    }
}

#[tokio::test]
async fn a_reader_that_never_comes_back_is_disconnected_and_the_room_goes_on() {
    let shard = start();
    let (mut host, guest, code) = host_and_guest(&shard).await;
    guest.pause(true).await;
    for number in 0..60 {
        host.say(large(number)).await;
    }
    let left = ToMember::Left { member: MemberId(1), reason: LeaveReason::TooSlow };
    assert_eq!(host.control().await, left);
    let mut other = connect(&shard, joining(code, None));
    other.welcome().await;
    host.joined(1).await;
    host.say("still here").await;
    other.joined(2).await;
    // The host was notified while its last large messages were on their way.
    while other.heard().await.1 != "still here" {}
    drop(guest);
}

#[tokio::test]
async fn a_shard_that_stops_tells_everybody_and_then_ends() {
    let (shard, running) = start_watched();
    let (mut host, mut guest, _) = host_and_guest(&shard).await;
    let (silent, served) = memory::pair();
    tokio::spawn({
        let shard = shard.clone();
        async move { connection::serve(served, Origin::LOCAL, &shard).await }
    });
    while shard.stats().await.unwrap().connections != 3 {
        tokio::task::yield_now().await;
    }
    shard.shut_down().await.unwrap();
    assert_eq!(host.closed().await, CloseReason::ServerShutdown);
    assert_eq!(guest.closed().await, CloseReason::ServerShutdown);
    let (_sender, mut receiver) = silent.split();
    let end = within(receiver.recv()).await.unwrap_err();
    assert!(matches!(end, LinkClosed::ByPeer { code: CloseCode::GOING_AWAY, .. }), "{end}");
    within(running).await.unwrap();
    assert!(shard.stats().await.is_err(), "it is gone");
}

#[tokio::test]
async fn a_shard_ends_in_time_although_a_peer_takes_no_goodbye() {
    let (shard, running) = start_watched();
    let (mut host, guest, _) = host_and_guest(&shard).await;
    guest.pause(true).await;
    for number in 0..10 {
        host.say(large(number)).await;
    }
    shard.shut_down().await.unwrap();
    assert_eq!(host.closed().await, CloseReason::ServerShutdown);
    within(running).await.unwrap();
}
