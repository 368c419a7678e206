//! Claims: a member of a node that died asks this one for its room.
//!
//! A room is taken by one statement that compares its term and its owner, so of two nodes one has it. What the owner of a
//! room decides follows [`ownership`](parlor_hub::cluster::ownership): a claim is that machine's, run for the one room
//! that a member asks for.

use super::arrivals::Listener;
use super::{Directory, OwnRoom, environment};
use crate::store::{ClaimedRow, NewLiveRoom, Owner, RoomClaim, StoreError, TakenRoom};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use data_encoding::HEXLOWER;
use parlor_hub::cluster::tenure::Decision;
use parlor_hub::{ClaimAnswer, ClaimedRoom};
use parlor_proto::RoomCode;
use parlor_proto::wire::handshake::RoomKind;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use tokio::time::timeout;

/// How long a claim waits for the death of a room's owner to be seen, for the room's host, or for a room that is about
/// to move here. Without that each member would shake hands again and again meanwhile.
const UNDECIDED_MAX: Duration = Duration::from_secs(1);
const KINDS: [RoomKind; 3] = [RoomKind::PlayerHosted, RoomKind::Dedicated, RoomKind::Match];
const ANSWERS: [&str; 6] = ["reopened", "here", "elsewhere", "later", "gone", "barred"];

/// What claims came to.
#[derive(Debug, Default)]
pub(super) struct ClaimCounts {
    answers: [AtomicU64; ANSWERS.len()],
    reopened: [AtomicU64; KINDS.len()],
}

impl Directory {
    /// Counts of claims, by their answers.
    pub(crate) fn claims(&self) -> [(&'static str, u64); ANSWERS.len()] {
        let mut counts = ANSWERS.map(|answer| (answer, 0));
        let known = counts.iter_mut().zip(&self.0.claims.answers);
        known.for_each(|((_, count), known)| *count = known.load(Ordering::Relaxed));
        counts
    }

    /// Counts of rooms that were reopened here, by their kinds.
    pub(crate) fn reopened(&self) -> [(&'static str, u64); KINDS.len()] {
        let mut counts = KINDS.map(|kind| (kind.as_str(), 0));
        let known = counts.iter_mut().zip(&self.0.claims.reopened);
        known.for_each(|((_, count), known)| *count = known.load(Ordering::Relaxed));
        counts
    }

    pub(super) async fn claim_room(&self, shard: usize, room: ClaimedRoom) -> ClaimAnswer {
        let answer = match self.try_claim(shard, &room).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(code = %room.code, %error, "a claimed room could not be looked for");
                ClaimAnswer::Later
            }
        };
        let number = match &answer {
            ClaimAnswer::Reopened { .. } => 0,
            ClaimAnswer::Here => 1,
            ClaimAnswer::At(_) => 2,
            ClaimAnswer::Later => 3,
            ClaimAnswer::Gone => 4,
            ClaimAnswer::Barred => 5,
        };
        self.0.claims.answers[number].fetch_add(1, Ordering::Relaxed);
        answer
    }

    async fn try_claim(&self, shard: usize, room: &ClaimedRoom) -> Result<ClaimAnswer, StoreError> {
        let Some((owner, address)) = self.owner().zip(self.0.addresses.get(shard)) else {
            return Ok(ClaimAnswer::Later);
        };
        let realm = Realm::new(&room.app, environment(&room.environment)).ok();
        let claim = RoomClaim {
            code: room.code.as_str().to_owned(),
            uid: HEXLOWER.encode(&room.uid.0),
            term: room.term,
            member: room.member.0.into(),
            hosts: room.hosts.map(|epoch| epoch.0.into()),
            user: realm.zip(room.user.clone()),
        };
        let mut arrivals = self.0.arrivals.listen();
        let mut has_waited = false;
        loop {
            let Some(row) = self.0.store.claimed_room(&claim).await? else {
                return Ok(ClaimAnswer::Gone);
            };
            if row.is_banned {
                return Ok(ClaimAnswer::Barred);
            }
            let is_mine = row.owner == owner;
            let is_here = is_mine && (room.is_here || self.is_taken(room.code, &claim.uid).await);
            let lives = !is_mine && !row.is_dead;
            let is_undecided = match lives {
                // The member comes from its node. That one may live, or nobody has seen its death yet.
                true => row.key.term <= claim.term,
                // Its host has not come yet.
                false => row.outlives && !row.may_reopen,
            };
            if is_undecided && !is_here && !has_waited {
                has_waited = true;
                self.wait_for(&mut arrivals, &claim.uid, Some(&row.owner).filter(|_| lives)).await;
                continue;
            }
            return Ok(match () {
                () if is_here => ClaimAnswer::Here,
                () if is_undecided => ClaimAnswer::Later,
                () if lives => ClaimAnswer::At(row.address),
                () if !row.outlives => ClaimAnswer::Gone,
                () if row.key.term < claim.term => ClaimAnswer::Later,
                // Another node takes it, if this one drains or is not sure of its lease.
                () if !self.0.standing.get().may(Decision::Take) => ClaimAnswer::Later,
                () => {
                    let _one = self.0.taking.lock(&claim.uid).await;
                    if self.is_own(room.code, &claim.uid) {
                        return Ok(ClaimAnswer::Here);
                    }
                    self.take(&claim, row, &owner, address.to_string()).await?
                }
            });
        }
    }

    /// Waits for a moment until this node takes a room or is given it, or until `owner` is gone.
    async fn wait_for(&self, arrivals: &mut Listener, uid: &str, owner: Option<&Owner>) {
        let mut nodes = self.0.nodes.clone();
        let decided = async {
            loop {
                let lives = |owner: &Owner| {
                    let nodes = nodes.get();
                    nodes.serving_as(&owner.node).is_some_and(|node| node.incarnation == owner.incarnation)
                };
                if owner.is_some_and(|owner| !lives(owner)) {
                    return;
                }
                tokio::select! {
                    () = arrivals.heard_of(uid) => return,
                    () = nodes.changed() => {}
                }
            }
        };
        let _ = timeout(UNDECIDED_MAX, decided).await;
    }

    /// Whether this node has taken a room. The members of a room ask at the same time, so a claim waits for the one that
    /// is taking it.
    async fn is_taken(&self, code: RoomCode, uid: &str) -> bool {
        let _one = self.0.taking.lock(uid).await;
        self.is_own(code, uid)
    }

    fn is_own(&self, code: RoomCode, uid: &str) -> bool {
        self.with_own(code, uid, |_| ()).is_some()
    }

    async fn take(
        &self,
        claim: &RoomClaim,
        row: ClaimedRow,
        owner: &Owner,
        address: String,
    ) -> Result<ClaimAnswer, StoreError> {
        let kind = KINDS.iter().position(|kind| kind.as_str() == row.kind);
        let (Some(kind), Ok(code)) = (kind, claim.code.parse()) else { return Ok(ClaimAnswer::Gone) };
        let taken = self.0.store.claim_live_room(claim, &row.key, owner, &address).await?;
        let Some(TakenRoom { term, setup, roster, snapshot }) = taken else { return Ok(ClaimAnswer::Later) };
        let new = NewLiveRoom {
            code: claim.code.clone(),
            uid: claim.uid.clone(),
            term,
            owner: owner.clone(),
            address,
            app: row.app,
            environment: row.environment,
            kind: KINDS[kind].as_str(),
            label: row.label,
            has_secret: row.has_secret,
            max_players: row.max_players,
            token: None,
            setup: Some(setup.clone()),
            host: row.host.map(|_| claim.member),
        };
        lock(&self.0.rooms).insert(code, OwnRoom::new(new));
        self.0.arrivals.tell(&claim.uid);
        if snapshot.is_empty() {
            self.0.claims.reopened[kind].fetch_add(1, Ordering::Relaxed);
            tracing::info!(%code, term, node = %row.owner.node, "a room of a node that is gone is reopened here");
        } else {
            tracing::info!(%code, term, "a room of another node goes on here");
        }
        let (setup, roster, snapshot) = (setup.into(), roster.into(), snapshot.into());
        Ok(ClaimAnswer::Reopened { term, setup, roster, snapshot })
    }
}
