//! A room on a local network that leads nowhere: found by multicast DNS, joined without any other server.

use crate::fault::{Fault, Outcome, Seen, ensure};
use crate::member::{Workshop, heard_all, updates};
use crate::net::{Machine, Switch};
use serde_json::Value;

pub(super) fn t1_a_second_host_finds_and_joins_a_room_nearby(workshop: &Workshop) -> Seen {
    let lan = Switch::lan("lan")?;
    let (hosts, guests) = (lan.machine(10)?, lan.machine(11)?);
    let usual = "--headless --events --talk 10 --seconds 170 --lan";
    let mut host = workshop.start("host", &hosts, &format!("play --name host --code NEARBY {usual}"))?;
    host.until("its room", |log| log.all("open").next().map(drop))?;
    let elsewhere = Switch::lan("lan-next")?;
    let neighbour = elsewhere.machine(10)?;
    let listed = rooms(workshop, &neighbour)?;
    ensure(listed["rooms"].as_array().is_some_and(Vec::is_empty), || {
        format!("another network hears of the room: {listed}")
    })?;
    let listed = rooms(workshop, &guests)?;
    let is_it = |room: &&Value| room["code"] == "NEARBY" && room["found"] == "lan";
    let room = listed["rooms"].as_array().and_then(|rooms| rooms.iter().find(is_it));
    let room = room.ok_or_else(|| Fault::new(format!("the room is not found: {listed}")))?;
    let server = room["server"].as_str().unwrap_or_default().to_owned();
    ensure(server.starts_with("192.168.1.10:") || server.starts_with('['), || {
        format!("its server is {server}")
    })?;

    let mut guest = workshop.start("guest", &guests, &format!("bots --count 1 --join NEARBY {usual}"))?;
    guest.until("the state of the room", |log| (log.count("/updates_decoded") >= 60).then_some(()))?;
    updates(&mut guest, 30)?;
    let numbers = heard_all(&mut [&mut host, &mut guest])?;
    Ok(vec![format!(
        "`parlor rooms --lan` lists it at {server}; joined by its code, {numbers} numbers heard"
    )])
}

/// What a machine hears of.
fn rooms(workshop: &Workshop, machine: &Machine) -> Outcome<Value> {
    let listed = workshop.output(machine, "rooms --lan --json")?;
    serde_json::from_str(&listed)
        .map_err(|error| Fault::new(format!("parlor rooms --lan: {error}: {listed}")))
}
