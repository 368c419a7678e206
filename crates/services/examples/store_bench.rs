//! Rate of durable moves of a store:
//! `cargo run --release -p parlor-services --example store_bench -- [ADDRESS [NODES]]`.
//!
//! With NODES the writers are spread over so many nodes that share a PostgreSQL store.
//!
//! 64 writers make one move at a time each, in 1,000 rooms, with a document of 1 KiB and a notice for one
//! player. The first figure is the time of a disk sync, which limits a store without group commit.

#![allow(
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "it reports rounded figures to a person at a terminal"
)]

use parlor_server::realm::Realm;
use parlor_services::store::{
    AccountId, Effects, NewNotice, NewRoom, Options, RoomId, RoomState, Stage, Store, StoreError,
};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const ROOMS: usize = 1000;
const WRITERS: usize = 64;
const TIME: Duration = Duration::from_secs(8);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("parlor-store-bench-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = run(&folder).await;
    std::fs::remove_dir_all(&folder)?;
    done
}

async fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("a sync of 4 KiB takes {} µs (median of 200)", sync_us(folder)?);
    let given = std::env::args().nth(1);
    let address = given.unwrap_or_else(|| format!("sqlite://{}", folder.join("parlor.db").display()));
    let nodes: usize = std::env::args().nth(2).map_or(Ok(0), |nodes| nodes.parse())?;
    let mut stores = Vec::new();
    for number in 0..nodes.max(1) {
        let node = if nodes > 0 { Some(format!("bench-{number}").parse()?) } else { None };
        stores.push(Store::open_with(&address, Options { node, ..Options::default() }).await?);
    }
    let store = &stores[0];
    let realm = Realm::new(&format!("bench-{}", std::process::id()), "bench")?;
    for room in 0..ROOMS {
        put(store, &realm, room).await?;
    }
    let groups = || stores.iter().map(|store| store.counters().groups).sum::<u64>();
    let before = groups();
    let began = Instant::now();
    let write = |writer: usize| write(stores[writer % stores.len()].clone(), realm.clone(), writer);
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(writer))).collect();
    let mut took_us = Vec::new();
    for writer in writers {
        took_us.extend(writer.await??);
    }
    let seconds = began.elapsed().as_secs_f64();
    let groups = groups() - before;
    took_us.sort_unstable();
    let at = |share: f64| took_us[((took_us.len() - 1) as f64 * share) as usize];
    println!("{} durable moves/s, {WRITERS} writers, {ROOMS} rooms", (took_us.len() as f64 / seconds) as u64);
    println!("p50 {} µs, p99 {} µs, longest {} µs", at(0.5), at(0.99), at(1.0));
    println!("{groups} commits, {:.1} moves each", took_us.len() as f64 / groups as f64);
    Ok(())
}

/// How long the folder's disk takes to make a block durable.
fn sync_us(folder: &Path) -> std::io::Result<u128> {
    let mut file = File::create(folder.join("sync"))?;
    let mut took = Vec::new();
    for _ in 0..200 {
        file.write_all(&[1; 4096])?;
        let began = Instant::now();
        file.sync_data()?;
        took.push(began.elapsed().as_micros());
    }
    took.sort_unstable();
    Ok(took[took.len() / 2])
}

fn state(version: u64) -> RoomState {
    RoomState {
        version,
        document: vec![b'x'; 1024],
        joinable: false,
        summary: b"{}".to_vec(),
        stage: Stage::Playing,
        players: Vec::new(),
        deadline_ms: Some(1_000_000 + version),
    }
}

async fn put(store: &Store, realm: &Realm, room: usize) -> Result<(), StoreError> {
    let id = RoomId::new(&format!("room-{room}"))?;
    let room = NewRoom { id, code: None, game: "bench".into(), wanted: None, created_ms: 1, state: state(1) };
    store.put_room(realm, room, Effects::default()).await.map(|_| ())
}

/// Moves in the rooms of one writer, and how long each took.
async fn write(store: Store, realm: Realm, writer: usize) -> Result<Vec<u64>, StoreError> {
    let rooms: Vec<usize> = (writer..ROOMS).step_by(WRITERS).collect();
    let began = Instant::now();
    let mut took_us = Vec::new();
    for round in 0.. {
        let room = RoomId::new(&format!("room-{}", rooms[round % rooms.len()]))?;
        let version = (round / rooms.len()) as u64 + 1;
        let to = AccountId::new(&format!("player-{room}"))?;
        let notice = NewNotice { to, kind: "your_turn".into(), body: vec![b'y'; 200].into(), at_ms: version };
        let effects = Effects { notices: vec![notice], ..Effects::default() };
        let asked = Instant::now();
        store.commit_room(&realm, &room, version, state(version + 1), effects).await?;
        took_us.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
        if began.elapsed() > TIME {
            break;
        }
    }
    Ok(took_us)
}
