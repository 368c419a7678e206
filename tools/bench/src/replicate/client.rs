//! The clients: rooms in this process, each with its own connection to the server. Each decoded change is
//! compared with the walkers, field by field: it must be exact within its resolution.

use super::super::recording::Recording;
use super::super::stand::{Walker, quantized};
use super::{APP, host};
use anyhow::{Context, bail, ensure};
use parlor::{Event, Impairment, Room, TransportPreference};
use parlor_transport::Fingerprint;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often all clients are polled: twice in this time a client hardly gets two ticks.
const POLL: Duration = Duration::from_millis(2);
/// How many ticks a client may be behind what any client has in full.
const AGE_MAX: u32 = 90;
/// How long it may take until all have all walkers.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client, and what it knows of each walker.
struct Client {
    room: Room,
    /// The newest tick of which it has a change.
    newest: u32,
    /// What it has of each walker, by its slot.
    known: Vec<Option<Known>>,
}

/// What a client has of a walker.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its newest change.
    tick: u32,
    /// Since when it has changed at every tick.
    since: u32,
}

/// Clients of one room of walkers.
pub(super) struct Clients {
    all: Vec<Client>,
    recording: Recording,
    /// Frames of the recording, as the schema has them.
    frames: Vec<Vec<Walker>>,
    /// The newest tick that any client has in full.
    latest: u32,
    /// Changes of walkers that were decoded so far, and compared.
    pub(super) updates: u64,
}

impl Clients {
    /// Begins to join, by each of these ways, with what is wrong with it.
    ///
    /// # Errors
    /// What is wrong with a way.
    pub(super) fn join(
        ways: &[(SocketAddr, Impairment)],
        fingerprint: Fingerprint,
        code: &str,
        recording: Recording,
    ) -> anyhow::Result<Self> {
        let frames = quantized(&recording)?;
        let mut all = Vec::new();
        for (way, impairment) in ways {
            all.push(Client::join(*way, impairment, fingerprint, code, recording.len())?);
        }
        Ok(Clients { all, recording, frames, latest: 0, updates: 0 })
    }

    /// Begins to join by one more way, on a good link.
    ///
    /// # Errors
    /// What is wrong with the way.
    pub(super) fn add(
        &mut self,
        way: SocketAddr,
        fingerprint: Fingerprint,
        code: &str,
    ) -> anyhow::Result<()> {
        self.all.push(Client::join(way, &Impairment::none(), fingerprint, code, self.recording.len())?);
        Ok(())
    }

    /// The newest tick of which each client has a change.
    pub(super) fn newest(&self) -> Vec<u32> {
        self.all.iter().map(|client| client.newest).collect()
    }

    /// Polls until all clients have all walkers.
    ///
    /// # Errors
    /// One does not get them, or not as they are.
    pub(super) fn wait_for_all(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.all.iter().any(|client| client.known.iter().any(Option::is_none)) {
            let missing =
                || self.all.iter().map(|client| client.known.iter().filter(|known| known.is_none()).count());
            ensure!(
                began.elapsed() < PATIENCE,
                "after {PATIENCE:?} the clients lack so many walkers: {:?}",
                missing().collect::<Vec<_>>()
            );
            self.poll_all()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Polls for so long; after each round `then` looks.
    ///
    /// # Errors
    /// A client was lost, or decodes something else than there was.
    pub(super) fn run(&mut self, span: Duration, mut then: impl FnMut(&Clients)) -> anyhow::Result<()> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            self.poll_all()?;
            then(self);
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn poll_all(&mut self) -> anyhow::Result<()> {
        for client in &mut self.all {
            client.take_events()?;
            let settled =
                client.room.state().checksum().map_or(Ok(0), |(sequence, _)| u32::try_from(sequence));
            let settled = settled.context("a tick has 32 bits")?;
            self.latest = self.latest.max(settled);
            let oldest = self.latest.saturating_sub(AGE_MAX);
            let recorded = u32::try_from(self.frames.len()).context("a recording has few ticks")?;
            let is_at = |tick: u32, slot: usize, walker: &Walker| {
                self.frames[self.recording.index(tick as usize)].get(slot) == Some(walker)
            };
            let tick_of = |near: u32, slot: usize, walker: &Walker| {
                let near = near.max(oldest);
                let away = (0..=recorded).flat_map(|away| [near + away, near.saturating_sub(away)]);
                away.into_iter().find(|tick| is_at(*tick, slot, walker))
            };
            self.updates += client.take_changes(settled, tick_of)?;
        }
        Ok(())
    }

    /// For each walker that moves, and each client but the first: how many ticks of its motion the client lacks that the
    /// first one has. A walker that has just begun to move lacks no more than that.
    pub(super) fn staleness_ticks(&self) -> impl Iterator<Item = u32> {
        (1..self.all.len()).flat_map(|client| self.staleness_ticks_of(client))
    }

    /// The same of one client, from 1 on.
    pub(super) fn staleness_ticks_of(&self, client: usize) -> impl Iterator<Item = u32> {
        let (first, client) = (&self.all[0], &self.all[client]);
        let pairs = first.known.iter().zip(&client.known).filter_map(|(now, had)| now.zip(*had));
        let moving = pairs.filter(|(now, _)| now.tick == first.newest);
        moving.map(|(now, had)| now.tick.saturating_sub(had.tick.max(now.since.saturating_sub(1))))
    }
}

impl Client {
    fn join(
        way: SocketAddr,
        impairment: &Impairment,
        fingerprint: Fingerprint,
        code: &str,
        walkers: usize,
    ) -> anyhow::Result<Self> {
        let builder = Room::join(APP, code)
            .server(&format!("{way}#{fingerprint}"))
            .transport(TransportPreference::Quic);
        let builder = if impairment.is_none() { builder } else { builder.impairment(*impairment) };
        let builder = builder.schema(host::schema()?);
        builder.check()?;
        Ok(Client { room: builder.open(), newest: 0, known: vec![None; walkers] })
    }

    fn take_events(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.room.poll() {
            if let Event::Closed(why) = event {
                bail!("a client was lost: {why}");
            }
        }
        Ok(())
    }

    /// How many walkers changed; the client has all of tick `settled`, or of none if that is 0. For each walker it is asked at
    /// which tick, near another one, a slot held that; if at none, it was decoded wrongly.
    fn take_changes(
        &mut self,
        settled: u32,
        tick_of: impl Fn(u32, usize, &Walker) -> Option<u32>,
    ) -> anyhow::Result<u64> {
        let changes = self.room.world().take_changes();
        if changes.is_empty() {
            // The room may not be open yet.
            return Ok(0);
        }
        let (room, all_known, newest) = (&mut self.room, &mut self.known, &mut self.newest);
        // What came together is nearly always of one tick, which is not far from that of what came before: to look for it
        // from the last tick on that was there in full would take most of the time when something is missing.
        let mut near = settled.max(*newest);
        room.look(|world| {
            for (entity, _) in &changes {
                let walker: Walker = world.component(*entity)?.context("a walker has no place")?;
                let slot = usize::from(entity.slot);
                let tick = tick_of(near, slot, &walker)
                    .with_context(|| format!("{entity} is decoded as {walker:?}, where it never was"))?;
                let known = all_known.get_mut(slot).context("a walker too many")?;
                let since = known.filter(|known| known.tick + 1 >= tick).map_or(tick, |known| known.since);
                *known = Some(Known { tick, since });
                *newest = tick.max(*newest);
                near = tick.max(near);
            }
            Ok(changes.len() as u64)
        })?
    }
}
