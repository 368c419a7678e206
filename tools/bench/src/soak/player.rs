//! A member of a room or match that plays like a game: the client's own core over a link of the generator's
//! thread.

use super::record::{Kind, Record};
use crate::host_world::move_walkers;
use crate::load::Way;
use crate::member::Counted;
use crate::player::{self, Ending, Game, Played};
use crate::stamp;
use anyhow::Context;
use parlor::{Audience, CloseReason, ClosedReason, Event, Recipient};
use parlor_client_core::{Options, RoomCore};
use parlor_proto::wire::handshake::Refusal;
use parlor_proto::{ChannelId, Instant, Lane, RoomCode, limits};
use std::time::Duration;
use tokio::sync::oneshot;

/// On which channel members say things.
const CHANNEL: u8 = limits::APP_CHANNEL_FIRST;
/// A host says something every so many steps of a room, and a member of a match every so many steps of a match.
const STEPS_A_MESSAGE: u32 = 6;
const STEPS_A_MATCH_MESSAGE: u32 = 3;
/// Entities that a host moves.
const WALKERS: usize = 12;
/// Where the host notes when it wrote its state.
const WRITTEN: &str = "written_us";

/// How a member was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it was meant to.
    Planned,
    /// The room was over.
    RoomOver,
}

/// What a member does while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plays {
    /// Inputs and messages; and the state, if it is the host.
    InARoom,
    /// Data for the others.
    InAMatch,
    /// Nothing, and it reads nothing either.
    Nothing,
}

/// One member.
pub(super) struct Player<'a> {
    pub(super) record: &'a Record,
    pub(super) way: Way,
    pub(super) options: Options,
    pub(super) plays: Plays,
    /// How long it plays.
    pub(super) life: Duration,
    pub(super) ending: Ending,
    /// The receiver of the room's code.
    pub(super) opened: Option<oneshot::Sender<RoomCode>>,
    /// When the newest state was written that it has seen, in µs.
    pub(super) written: u64,
}

/// Says on which channel the members talk.
///
/// # Errors
/// There is no such channel.
pub(super) fn with_channel(mut options: Options) -> anyhow::Result<Options> {
    options.channel(CHANNEL, Lane::Unreliable)?;
    // A lost member returns as another one.
    options.reconnect = false;
    Ok(options)
}

impl Player<'_> {
    /// Plays until the end of its life, or of the room.
    ///
    /// # Errors
    /// It did not get in, or was lost: a kind of error, as they are counted.
    pub(super) async fn play(mut self) -> anyhow::Result<End> {
        let link = self.way.connect().await.context("connecting")?;
        let (clock, options) = (self.record.clock, self.options.clone());
        let ends = Some((self.record.now() + self.life, self.ending));
        match player::play(clock, link, options, ends, &mut self).await {
            Played::Hung => Ok(End::Planned),
            Played::Over { core, has_left } => self.end(&core, has_left),
        }
    }

    fn end(&self, core: &RoomCore, has_left: bool) -> anyhow::Result<End> {
        match core.closed() {
            _ if has_left || self.plays == Plays::Nothing => Ok(End::Planned),
            Some(ClosedReason::Session(
                CloseReason::HostLeft | CloseReason::HostGone | CloseReason::RoomEnded { .. },
            ))
            | Some(ClosedReason::Refused(Refusal::NoSuchRoom)) => Ok(End::RoomOver),
            Some(reason) => anyhow::bail!("{}", reason.as_str()),
            None => anyhow::bail!("no end"),
        }
    }

    fn run_step(&self, core: &mut RoomCore, now: Instant) -> anyhow::Result<()> {
        let tick = core.tick_number().context("a step has a number")?.0;
        let speech = stamp::write(now, Counted::Yes);
        if self.plays == Plays::Nothing {
            return Ok(());
        }
        if self.plays == Plays::InAMatch {
            if tick.is_multiple_of(STEPS_A_MATCH_MESSAGE) {
                let reliably = tick.is_multiple_of(2 * STEPS_A_MATCH_MESSAGE);
                core.send_data(1, Recipient::Others, speech, reliably, now)?;
            }
            return Ok(());
        }
        core.send_input(&tick)?;
        if tick.is_multiple_of(STEPS_A_MESSAGE) {
            core.send_raw(ChannelId(CHANNEL), Recipient::Others, speech, false, now)?;
        }
        if core.is_host() {
            // Read, as a game would.
            core.inputs::<u32>()?;
            core.set(WRITTEN, &now.as_micros(), Audience::All)?;
            move_walkers(core, WALKERS, tick, now)?;
        }
        Ok(())
    }
}

impl Game for Player<'_> {
    fn event(&mut self, core: &mut RoomCore, event: Event, now: Instant) {
        match event {
            Event::Open { code } => {
                if let Some(opened) = self.opened.take() {
                    // The caller may have given up.
                    let _ = opened.send(code);
                }
            }
            Event::Raw { payload, .. } | Event::Data { data: payload, .. } => {
                if let Some(age_us) = stamp::read(&payload, now) {
                    self.record.note(Kind::RelayedMessage, Duration::from_micros(age_us.into()));
                }
            }
            Event::State(_) => {
                let newest = core.get::<u64>(WRITTEN).ok().flatten().unwrap_or(0);
                if newest > self.written && !core.is_host() {
                    self.written = newest;
                    self.record.note_since(Kind::State, Instant::from_micros(newest));
                }
            }
            _ => {}
        }
    }

    fn step(&mut self, core: &mut RoomCore, now: Instant) {
        // A room that is over, or full for the moment, refuses: its members' ages say so.
        let _ = self.run_step(core, now);
    }

    fn is_deaf(&self, core: &RoomCore) -> bool {
        self.plays == Plays::Nothing && core.is_connected()
    }
}
