//! A member that plays like a game: the client's own core over a link of the generator's thread.

use super::pacer::Clock;
use parlor::{Event, Mode};
use parlor_client_core::{Options, RoomCore};
use parlor_proto::{Carrier, Instant, Packet};
use parlor_transport::{CloseCode, Link, LinkSender, SendError};
use std::time::Duration;
use tokio::time::sleep;

/// Packets taken from a link at once.
const BATCH: usize = 64;
/// How long a member waits that has nothing to do.
const REST: Duration = Duration::from_secs(3);

/// What a member does in its room.
pub(crate) trait Game {
    /// Takes an event.
    fn event(&mut self, core: &mut RoomCore, event: Event, now: Instant);

    /// Runs a step that is due.
    fn step(&mut self, core: &mut RoomCore, now: Instant);

    /// Whether the member reads nothing of what comes.
    fn is_deaf(&self, _core: &RoomCore) -> bool {
        false
    }
}

/// What a member does when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It says goodbye.
    Leave,
    /// It neither reads nor writes for a while, and then its connection breaks.
    Hang,
}

/// How a member's part ended.
pub(crate) enum Played {
    /// It hung, as it was meant to.
    Hung,
    /// Its room is over for it: by its own goodbye, or otherwise.
    Over {
        /// What the member knows of its room.
        core: Box<RoomCore>,
        /// Whether it said goodbye.
        has_left: bool,
    },
}

/// Plays over `link` until the room is over, or until `ends`.
pub(crate) async fn play(
    clock: Clock,
    link: Link,
    options: Options,
    ends: Option<(Instant, Ending)>,
    game: &mut impl Game,
) -> Played {
    let (sender, mut receiver) = link.split();
    let mut core = RoomCore::new(options, Mode::Auto);
    core.connected(sender.kind(), clock.now());
    let (mut held, mut packets) = (None, Vec::with_capacity(BATCH));
    let mut has_left = false;
    loop {
        let now = clock.now();
        if let Some(carries) = sender.bytes_per_second() {
            core.path_carries(u32::try_from(carries).unwrap_or(u32::MAX));
        }
        turn(&mut core, game, clock);
        match ends {
            Some((at, Ending::Hang)) if now >= at => {
                sleep(REST).await;
                return Played::Hung;
            }
            Some((at, Ending::Leave)) if now >= at && !has_left => {
                has_left = true;
                core.leave(now);
            }
            _ => {}
        }
        held = held.and_then(|packet| offer(&sender, packet));
        while held.is_none()
            && let Some(packet) = core.poll_packet(clock.now())
        {
            held = offer(&sender, packet);
        }
        if core.is_finished() && held.is_none() {
            break;
        }
        let tick_at = core.until_next_tick(now).map(|wait| now + wait);
        let ends_at = ends.filter(|_| !has_left).map(|(at, _)| at);
        let due = [core.poll_timeout(), tick_at, ends_at].into_iter().flatten().min();
        let wait = due.map_or(REST, |due| due.saturating_since(now));
        tokio::select! {
            received = receiver.recv_many(&mut packets, BATCH), if !game.is_deaf(&core) => {
                // One by one: a game that fell behind would see the newest state of several alone.
                for packet in packets.drain(..) {
                    core.handle_packet(packet, clock.now());
                    turn(&mut core, game, clock);
                }
                if let Err(closed) = received {
                    core.disconnected(&closed.to_string(), clock.now());
                }
            }
            () = sleep(wait) => {}
            () = sender.writable(Carrier::Stream), if held.is_some() => {}
        }
        if core.poll_timeout().is_some_and(|due| due <= clock.now()) {
            core.handle_timeout(clock.now());
        }
    }
    sender.close(CloseCode::DONE, "the member is done");
    Played::Over { core: Box::new(core), has_left }
}

/// Reads what came, and runs the steps that are due.
fn turn(core: &mut RoomCore, game: &mut impl Game, clock: Clock) {
    while let Some(event) = core.poll(clock.now()) {
        game.event(core, event, clock.now());
    }
    while core.tick(clock.now()) {
        game.step(core, clock.now());
    }
}

/// Hands a packet over; gives it back if the link takes none now. A packet for a link that is over goes nowhere: the receiving
/// half tells of the end.
pub(crate) fn offer(sender: &LinkSender, packet: Packet) -> Option<Packet> {
    match sender.send(packet) {
        Err(SendError::NotWritable(packet)) => Some(packet),
        _ => None,
    }
}
