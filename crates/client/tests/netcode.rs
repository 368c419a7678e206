//! A game's own netcode on a bad network, in one process and from a seed, as docs/testing.md shows it.

mod support;

use parlor::{Event, Impairment, Room, RoomError};
use support::Patience;

/// Steps in which the guest presses its key.
const PRESSES: u32 = 100;
/// A round trip of 150 ms, and one packet in twenty is lost.
const BAD: &str = "latency=75ms,loss=5%,seed=7";

/// One frame of the game: everybody adds up; the host keeps the sums. Returns what the room shows of the guest.
fn frame(room: &mut Room, presses: &mut u32) -> Result<u32, RoomError> {
    while let Some(event) = room.poll() {
        assert!(!matches!(event, Event::Closed(_)), "{event:?}");
    }
    while let Some(mut step) = room.step() {
        let press = u32::from(*presses > 0);
        *presses -= press;
        step.send_input(&press)?;
        let Some(mut host) = step.host() else { continue };
        for (player, input) in host.inputs::<u32>() {
            let key = format!("sum/{player}");
            let sum: u32 = host.state().get(&key)?.unwrap_or(0);
            host.set(&key, &(sum + input))?;
        }
    }
    Ok(room.state().get("sum/1")?.unwrap_or(0))
}

#[test]
fn x12_a_games_own_netcode_is_tested_at_150_ms_and_5_percent_loss_from_a_seed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let registry = parlor::Registry::at(folder.path().join("registry"));
    let bad: Impairment = BAD.parse().expect("an impairment");
    let mut host = Room::host("sums").registry(registry.clone()).open();
    let patience = Patience::new();
    while !host.is_connected() {
        frame(&mut host, &mut 0).expect("the room is open");
        patience.look_again(|| format!("{:?}", host.info()));
    }
    let code = host.code().expect("it is open").to_string();
    let mut guest = Room::join("sums", &code).registry(registry).impairment(bad).open();
    while host.player_count() < 2 || !guest.is_connected() {
        frame(&mut host, &mut 0).expect("the room is open");
        frame(&mut guest, &mut 0).expect("the room is open");
        patience.look_again(|| format!("{:?}", guest.info()));
    }
    let mut presses = PRESSES;
    loop {
        frame(&mut host, &mut 0).expect("the room is open");
        let seen = frame(&mut guest, &mut presses).expect("the room is open");
        assert!(seen <= PRESSES, "a press counted twice");
        if seen == PRESSES {
            break;
        }
        patience.look_again(|| format!("{seen} of {PRESSES} presses arrived: {:?}", guest.info()));
    }
    let round_trip = guest.diagnostics().rtt;
    let is_long = round_trip.is_some_and(|time| time.as_millis() >= 150);
    assert!(is_long, "the network is as bad as it was asked for: {round_trip:?}");
}
