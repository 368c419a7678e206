//! Moves: this node gives a room to another one, with the sessions of its members.
//!
//! 1. The members open connections to the other node and claim their seats. Their claims wait there.
//! 2. This node seals the room. One statement of the store changes the owner and keeps the snapshot, so the room is at one
//!    node whatever fails.
//! 3. This node tells the other one, which takes the room for the first claim, as after a death. Without that news the
//!    claims ask the store again at the end of their wait.

use super::Directory;
use crate::cluster::line::{self, AskError, Handlers, Line, Refusal};
use crate::cluster::nodes::{Node, Nodes};
use crate::store::{NodeName, Owner, RoomKey};
use bytes::Bytes;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use parlor_hub::cluster::tenure::{Decision, Standing};
use parlor_hub::{RoomUid, Unmovable};
use parlor_proto::RoomCode;
use parlor_server::embed::{Shards, lock};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long members have to open their connections and to claim. Who is slower does so after the move.
const WARM: Duration = Duration::from_millis(500);
/// Pause before the store is asked again whose a room is.
const AGAIN: Duration = Duration::from_millis(250);
/// Members whose rooms a draining node moves at the same time: their claims wait at the other nodes. A room counts as
/// some of them at least, for the store's sake.
const MEMBERS_AT_ONCE: u32 = 512;
const ROOM_MEMBERS_MIN: u32 = 8;
/// Pause between two of them: their members shake hands with the other node.
const STAGGER: Duration = Duration::from_millis(10);
/// How often a draining node looks for rooms to move, and when it tries one again.
const LOOK: Duration = Duration::from_millis(250);
const RETRY: Duration = Duration::from_secs(2);

/// The question how many rooms a node takes.
const PLACES: &str = "rooms/places";

/// The answer to it.
#[derive(Serialize, Deserialize)]
struct Places {
    free: usize,
}

/// The news that a room was given to the node that hears it. Its body is the room's uid in hexadecimal digits.
const GIVEN: &str = "rooms/given";
const UID_DIGITS: usize = 2 * size_of::<RoomUid>();

/// Why a room was not moved. It goes on where it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum MoveError {
    #[error(transparent)]
    Unmovable(#[from] Unmovable),
    #[error("no other node of this build takes rooms: admin.nodes lists the nodes")]
    NoNode,
    #[error("node {0} takes no rooms, has another build, or is the room's own: admin.nodes lists the nodes")]
    NotThere(NodeName),
    #[error("node {0} has no place for a room")]
    Full(NodeName),
    #[error("{0}")]
    Unreached(AskError),
    #[error("this node is cut off from the store, and decides nothing")]
    Lapsed,
    #[error("the store did not take the move: the room goes on at its node. Try again")]
    NotTaken,
    #[error("the server is going down")]
    Stopped,
}

/// What came of moves.
#[derive(Debug, Default)]
pub(super) struct MoveCounts {
    moved: AtomicU64,
    put_off: AtomicU64,
    called_off: AtomicU64,
    /// Time for which rooms that moved served nobody here, in µs.
    frozen_us: AtomicU64,
}

/// A move that was announced.
struct Announced<'a> {
    shards: &'a Shards,
    line: &'a Line,
    code: RoomCode,
    to: &'a Node,
}

impl Directory {
    /// Counts of moves, by what came of them.
    pub(crate) fn moves(&self) -> [(&'static str, u64); 3] {
        let MoveCounts { moved, put_off, called_off, .. } = &self.0.moves;
        [("moved", moved), ("put_off", put_off), ("called_off", called_off)]
            .map(|(what, count)| (what, count.load(Ordering::Relaxed)))
    }

    /// How long rooms that moved have served nobody, in all.
    pub(crate) fn moves_frozen(&self) -> Duration {
        Duration::from_micros(self.0.moves.frozen_us.load(Ordering::Relaxed))
    }

    /// Moves a room of this node to `to`, or to the least busy node. Returns where it is now.
    pub(crate) async fn move_room(
        &self,
        code: RoomCode,
        to: Option<NodeName>,
    ) -> Result<NodeName, MoveError> {
        let directory = self.clone();
        // In a task: the move goes on if its request is dropped.
        let moving = tokio::spawn(async move { directory.try_move(code, to).await });
        let moved = moving.await.unwrap_or(Err(MoveError::Stopped));
        match &moved {
            Ok(node) => {
                self.0.moves.moved.fetch_add(1, Ordering::Relaxed);
                tracing::info!(%code, %node, "a room was moved");
            }
            Err(MoveError::NotTaken) => {
                self.0.moves.called_off.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%code, "a move was called off: the store did not take it");
            }
            Err(error) => {
                self.0.moves.put_off.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%code, %error, "a room is not moved");
            }
        }
        moved
    }

    async fn try_move(&self, code: RoomCode, to: Option<NodeName>) -> Result<NodeName, MoveError> {
        let (shards, line) = self.0.served.get().ok_or(MoveError::Stopped)?;
        let nodes = self.0.nodes.get();
        let to = self.destination(&nodes, line, to).await?;
        self.may_offer()?;
        let address = to.address.clone();
        shards.announce_move(code, address).await.map_err(|_| MoveError::Stopped)??;
        sleep(WARM).await;
        self.give(Announced { shards, line, code, to }).await?;
        Ok(to.id.clone())
    }

    /// Finds the node that a room moves to: the least busy one that has a place, or the named one.
    async fn destination<'a>(
        &self,
        nodes: &'a Nodes,
        line: &Line,
        to: Option<NodeName>,
    ) -> Result<&'a Node, MoveError> {
        let open = nodes.open().filter(|node| node.id != self.0.node && node.build == self.0.build);
        let mut open: Vec<&Node> = open.filter(|node| to.as_ref().is_none_or(|to| node.id == *to)).collect();
        open.sort_by_key(|node| node.load.permille);
        let mut why = to.map_or(MoveError::NoNode, MoveError::NotThere);
        for node in open {
            match line.ask(&node.id, PLACES, Bytes::new()).await {
                Ok(answer) if serde_json::from_slice(&answer).is_ok_and(|places: Places| places.free > 0) => {
                    return Ok(node);
                }
                Ok(_) => why = MoveError::Full(node.id.clone()),
                Err(error) => why = MoveError::Unreached(error),
            }
        }
        Err(why)
    }

    /// Answers other nodes how many rooms this one takes, and hears which ones it was given.
    pub(in crate::cluster) fn answer_line(&self, handlers: &mut Handlers) {
        let directory = self.clone();
        handlers.on(GIVEN, move |_, body| {
            let uid = core::str::from_utf8(&body).ok().filter(|uid| uid.len() == UID_DIGITS);
            let heard = uid.map(|uid| directory.0.arrivals.tell(uid));
            let answer =
                heard.map(|()| Bytes::new()).ok_or_else(|| Refusal::new(400, "this is no room's uid"));
            core::future::ready(answer)
        });
        let directory = self.clone();
        handlers.on(PLACES, move |_, _| {
            let directory = directory.clone();
            async move {
                let free = match directory.0.served.get() {
                    Some((shards, _)) if directory.0.standing.get().may(Decision::Take) => {
                        shards.stats().await.rooms_free
                    }
                    _ => 0,
                };
                line::write(&Places { free })
            }
        });
    }

    fn may_offer(&self) -> Result<Owner, MoveError> {
        let owner = self.owner().filter(|_| self.0.standing.get().may(Decision::Offer));
        owner.ok_or(MoveError::Lapsed)
    }

    /// Gives an announced room away.
    async fn give(&self, announced: Announced<'_>) -> Result<(), MoveError> {
        let Announced { shards, line, code, to } = announced;
        let from = match self.may_offer() {
            Ok(from) => from,
            Err(lapsed) => {
                let _ = shards.call_move_off(code).await;
                return Err(lapsed);
            }
        };
        let snapshot = shards.seal(code).await.map_err(|_| MoveError::Stopped)??;
        let sealed = Instant::now();
        let key = lock(&self.0.rooms).get(&code).map(|own| own.new.key());
        // Without one the room has ended, or another node has it: reconciling ends it here.
        let key = key.ok_or(Unmovable::NoRoom)?;
        let owner = Owner { node: to.id.as_str().to_owned(), incarnation: to.incarnation };
        let given = self.0.store.give_live_room(&key, (&from, &owner), &to.address, &snapshot).await;
        if !matches!(given, Ok(Some(_)))
            && let Some(term) = self.keep(&key).await
        {
            self.with_own(code, &key.uid, |own| own.new.term = term);
            let _ = shards.unseal(code, term).await;
            return Err(MoveError::NotTaken);
        }
        let frozen_us = u64::try_from(sealed.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.0.moves.frozen_us.fetch_add(frozen_us, Ordering::Relaxed);
        self.forget(code, &key.uid);
        let tell = async {
            if let Err(error) = line.ask(&to.id, GIVEN, key.uid.clone().into()).await {
                tracing::debug!(%code, %error, "a node is not told that a room was given to it");
            }
        };
        let (_, ()) = tokio::join!(shards.move_room(code, to.address.clone()), tell);
        Ok(())
    }

    /// Keeps a room whose move may have failed. Returns its new term; `None` if it is another node's. Asks the store
    /// until it answers: a room that may be another node's serves nobody here.
    async fn keep(&self, key: &RoomKey) -> Option<u64> {
        loop {
            if let Some(owner) = self.owner() {
                match self.0.store.keep_live_room(key, &owner).await {
                    Ok(term) => return term,
                    Err(error) => {
                        tracing::debug!(code = %key.code, %error, "a room stands still: the store does not say whose it is");
                    }
                }
            }
            sleep(AGAIN).await;
        }
    }

    /// Returns how many members a room of this node has, as the store was told last.
    fn members_of(&self, code: RoomCode) -> u32 {
        let members = lock(&self.0.rooms).get(&code).map_or(0, |own| own.listed.members());
        u32::try_from(members).unwrap_or(u32::MAX)
    }

    /// Moves the rooms of this node away while it drains.
    pub(super) async fn move_all(self) {
        let mut tried: HashMap<RoomCode, Instant> = HashMap::new();
        let mut moving = JoinSet::new();
        let places = Arc::new(Semaphore::new(MEMBERS_AT_ONCE as usize));
        loop {
            sleep(LOOK).await;
            while moving.try_join_next().is_some() {}
            if self.0.standing.get() != Standing::Draining {
                tried.clear();
                continue;
            }
            tried.retain(|_, at| at.elapsed() < RETRY);
            let codes: Vec<RoomCode> = lock(&self.0.rooms).keys().copied().collect();
            for code in codes {
                if tried.contains_key(&code) {
                    continue;
                }
                let members = self.members_of(code).clamp(ROOM_MEMBERS_MIN, MEMBERS_AT_ONCE);
                let Ok(place) = Arc::clone(&places).acquire_many_owned(members).await else { return };
                tried.insert(code, Instant::now());
                let directory = self.clone();
                moving.spawn(async move {
                    drop(directory.move_room(code, None).await);
                    drop(place);
                });
                sleep(STAGGER).await;
            }
        }
    }
}
