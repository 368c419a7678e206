//! Turn rooms. Each has a lock in this process, under which its operations run one after another.
//!
//! The lock holds the room's document. An operation changes a copy, and the store takes document and effects
//! in one transaction. Only then the caller gets its answer and others are notified. After a failure it is
//! unknown whether the store took the change. So both copies are dropped, and the next operation loads the
//! room again. In a cluster every node may change every room: a commit fails if its version is not the next
//! one, and before a read or a refusal the store is asked for a newer version.

mod handlers;
mod messages;
mod opening;
mod removal;
mod room_locks;
mod search;
mod seek;
mod seekers;
mod subscriptions;

pub(super) use handlers::*;
pub(super) use messages::{exported, messages};
use parlor_server::realm::Realm;
pub(super) use removal::delete;
use room_locks::QueueEntry;
pub(super) use room_locks::RoomLocks;
pub(super) use seek::join_or_create;
pub(super) use seekers::Seekers;
pub(super) use subscriptions::{Key, Subscriptions, subscribe, unsubscribe, watched};

use super::failure::{Failure, Kind};
use super::inbox::{NoticeContent, PUSH};
use super::lives::is_open;
use super::secrets::random;
use super::webhook::Call;
use super::{Services, boards, hints};
use crate::store::{
    AccountId, CommitKind, DOCUMENT_BYTES_MAX, Effects, NewNotice, NewRoom, NewWebhook, Room, RoomId,
    RoomNow, RoomState, Stage, StoreError,
};
use parlor_proto::RoomCode;
use parlor_turn::limits;
use parlor_turn::{Actor, ConfiguredBy, Context, Effect, Op, Phase, PlayerId, Refusal, TurnRoom, UnixMillis};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Letters of a room's code.
const CODE_LETTERS: usize = 6;
/// Maximum number of draws of an unused code.
const DRAWS_MAX: usize = 8;
/// Maximum number of tries of an operation, after earlier commits of another server.
const TRIES_MAX: usize = 4;

/// The room as JSON after an operation, as the caller may see it. `None` if it may not.
pub(super) type Seen = Option<Box<RawValue>>;

/// Bytes of a document that players' data must leave free. Timers, leaving and verdicts need them and must
/// never fail for lack of space.
const DOCUMENT_RESERVE: usize = 64 * 1024;

// The sum of all parts that grow by something other than players' data.
const _: () = assert!(
    limits::DECIDED_MAX * 2_048
        + limits::BARRED_MAX * (limits::ID_BYTES_MAX + 24)
        + limits::PLAYERS_MAX as usize * 64
        + limits::PLAYED_MAX * (limits::ID_BYTES_MAX + 3)
        + 4_096
        <= DOCUMENT_RESERVE
);

/// Applies an operation to a room and stores the result.
pub(super) async fn change(
    services: &Services,
    realm: &Realm,
    id: &RoomId,
    actor: &Actor,
    op: Op,
) -> Result<Seen, Failure> {
    let kind = kind_of(actor, &op);
    apply(services, realm, id, actor, op, kind).await.map(|applied| applied.seen)
}

/// Runs the timers of a room that are due. Returns whether any was.
pub(super) async fn expire(services: &Services, realm: &Realm, id: &RoomId) -> Result<bool, Failure> {
    let applied = apply(services, realm, id, &Actor::Server, Op::Expire, CommitKind::Settles).await?;
    Ok(applied.has_changed)
}

/// Makes a player leave a room because its account is deleted. A full store and a quota do not refuse it.
pub(super) async fn leave_for_good(
    services: &Services,
    realm: &Realm,
    id: &RoomId,
    player: PlayerId,
) -> Result<(), Failure> {
    let kind = CommitKind::Administers;
    apply(services, realm, id, &Actor::Player(player), Op::Leave, kind).await.map(|_| ())
}

/// The limits that apply to an operation. A player's quota must not refuse an operation that ends something
/// for the others.
fn kind_of(actor: &Actor, op: &Op) -> CommitKind {
    match (actor, op) {
        (Actor::Server, _) => CommitKind::Administers,
        (Actor::Player(_), Op::Leave | Op::Kick(_) | Op::Resign | Op::End(_)) => CommitKind::Settles,
        (Actor::Player(_), _) => CommitKind::Plays,
    }
}

/// The result of an operation.
struct Applied {
    seen: Seen,
    has_changed: bool,
}

async fn apply(
    services: &Services,
    realm: &Realm,
    id: &RoomId,
    actor: &Actor,
    op: Op,
    kind: CommitKind,
) -> Result<Applied, Failure> {
    let room_lock = services.room_locks().of(realm, id, *actor == Actor::Server)?;
    let mut held = room_lock.enter().await;
    let mut loaded = None;
    for _ in 0..TRIES_MAX {
        let cached = held.take();
        let may_be_old = cached.is_some();
        let mut room = match cached.or(loaded.take()) {
            Some(room) => room,
            None => load(services, &room_lock, realm, id).await?,
        };
        let (before, was_open) = (room.version(), is_open(&room));
        let with =
            Context { now: UnixMillis(services.time().now_ms()), seed: random()?, rules: services.rules() };
        let applied = room.apply(actor, op.clone(), &with);
        // The newest version may not refuse it, or may change.
        if may_be_old && room.version() == before {
            loaded = newer(services, &room_lock, realm, id, &room).await?;
            if loaded.is_some() {
                continue;
            }
        }
        let effects = match applied {
            Ok(effects) => effects,
            Err(refusal) => {
                *held = Some(room);
                return Err(refusal.into());
            }
        };
        if room.version() == before {
            let seen = seen(services, &room, actor)?;
            *held = Some(room);
            return Ok(Applied { seen, has_changed: false });
        }
        let (state, mut sent) = (state_of(&room)?, sent(services, realm, actor, &room, &effects)?);
        sent.life = Some(services.lives().of(&room, None, with.now.0));
        sent.awards = boards::of_rules(services, realm, room.id(), &effects).await?;
        // A move that ends the game settles it. Operations in an ended room do not.
        let is_end = was_open && !is_open(&room);
        sent.kind = if is_end && kind == CommitKind::Plays { CommitKind::Settles } else { kind };
        // On an error the changed room is dropped, and loaded again later.
        check_document(&op, state.document.len())?;
        // Before storing: a room that is too large for the memory stays unchanged.
        services.room_locks().weigh(&room_lock, &state.document)?;
        let notices = sent.notices.clone();
        match services.store().commit_room(realm, id, before, state, sent).await {
            Ok(numbers) => {
                tell(services, realm, &notices, &numbers);
                match services.hints() {
                    None => services.subscriptions().tell(services, realm, &room, &effects),
                    Some(to) => to.tell_watchers(services, realm, (&room, before), &effects),
                }
                services.room_locks().has_deadline(room.next_deadline().map(|at| at.0));
                let seen = seen(services, &room, actor)?;
                *held = Some(room);
                return Ok(Applied { seen, has_changed: true });
            }
            Err(StoreError::Stale { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let sentence = "others change this room faster than this could be done: ask again";
    Err(Failure::unavailable(sentence, core::time::Duration::from_millis(100)))
}

/// Refuses players' data that does not fit the document. Ends, leaving and verdicts may use the reserve.
fn check_document(op: &Op, bytes: usize) -> Result<(), Failure> {
    let brings = matches!(op, Op::Join(_) | Op::Start(_) | Op::Propose(_) | Op::Update(_));
    if !brings || bytes <= DOCUMENT_BYTES_MAX - DOCUMENT_RESERVE {
        return Ok(());
    }
    let sentence =
        "the room is full of what players brought: let moves be decided, or put less into its state and data";
    Err(Failure::new(Kind::TooLarge, "too_large", sentence))
}

/// Opens a room.
async fn open(
    services: &Services,
    new: &New,
    configured_by: ConfiguredBy,
    wanted: [u8; 32],
) -> Result<Box<RawValue>, Failure> {
    let New { realm, player: creator, config, create, .. } = new;
    // A code that the caller chose is the only one to try.
    let draws = if create.code.is_some() { 1 } else { DRAWS_MAX };
    for _ in 0..draws {
        let id = match &new.id {
            Some(id) => id.clone(),
            None => RoomId::new(&super::secrets::id('r')?)?,
        };
        let setup = parlor_turn::NewRoom {
            id: parlor_turn::RoomId::new(id.as_str()).map_err(|error| Failure::defect(&error.to_string()))?,
            code: create.code.map_or_else(draw_code, Ok)?,
            configured_by,
            creator: creator.clone(),
            create: create.clone(),
        };
        let now = UnixMillis(services.time().now_ms());
        let with = Context { now, seed: random()?, rules: services.rules() };
        let (room, effects) = TurnRoom::create(setup, config.clone(), &with)?;
        let actor = Actor::Player(creator.clone());
        let mut sent = sent(services, realm, &actor, &room, &effects)?;
        let owner = AccountId::new(creator.as_str())?;
        sent.life = Some(services.lives().of(&room, Some(owner), with.now.0));
        let notices = sent.notices.clone();
        let stored = NewRoom {
            id,
            code: Some(room.code().as_str().to_owned()),
            game: room.config().game().to_owned(),
            wanted: Some(wanted),
            created_ms: with.now.0,
            state: state_of(&room)?,
        };
        match services.store().put_room(realm, stored, sent).await {
            Ok(numbers) => {
                tell(services, realm, &notices, &numbers);
                services.room_locks().has_deadline(room.next_deadline().map(|at| at.0));
                let seen = seen(services, &room, &actor)?;
                return seen.ok_or_else(|| Failure::defect("a creator does not see its room"));
            }
            Err(StoreError::Taken { .. }) => {
                // Two requests with the same id may be under way at once.
                if let Some(RoomAnswer { room: Some(room) }) = new.opened_before(services).await? {
                    return Ok(room);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    if create.code.is_some() {
        let sentence = "another room has this code: choose another one, or leave it out for a drawn one";
        return Err(Failure::new(Kind::Conflict, "taken", sentence).at("code"));
    }
    Err(Failure::defect("no free code for a room was drawn"))
}

/// Reads a room as the actor may see it.
pub(super) async fn look(
    services: &Services,
    realm: &Realm,
    id: &RoomId,
    actor: &Actor,
) -> Result<Box<RawValue>, Failure> {
    let view = |room: &TurnRoom| {
        room.view(actor, services.rules()).map_err(Failure::from).and_then(|view| to_json(&view))
    };
    look_at(services, realm, id, actor, view).await
}

/// Looks at a room that the actor may read, within the room's lock.
async fn look_at<T>(
    services: &Services,
    realm: &Realm,
    id: &RoomId,
    actor: &Actor,
    read: impl FnOnce(&TurnRoom) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let room_lock = services.room_locks().of(realm, id, *actor == Actor::Server)?;
    let mut held = room_lock.enter().await;
    let room = match held.take() {
        Some(room) => newer(services, &room_lock, realm, id, &room).await?.unwrap_or(room),
        None => load(services, &room_lock, realm, id).await?,
    };
    let looked = room.check_reader(actor).map_err(Failure::from).and_then(|()| read(&room));
    *held = Some(room);
    looked
}

/// Returns the stored room if it is newer than the cached one. Only another node of a cluster can have changed it.
async fn newer(
    services: &Services,
    room_lock: &QueueEntry,
    realm: &Realm,
    id: &RoomId,
    cached: &TurnRoom,
) -> Result<Option<TurnRoom>, Failure> {
    if services.cluster().is_none() {
        return Ok(None);
    }
    match services.store().load_newer_room(realm, id, cached.version()).await? {
        RoomNow::Known => Ok(None),
        RoomNow::Newer(stored) => restore(services, room_lock, &stored).map(Some),
        RoomNow::Gone => Err(no_such_room(id.as_str())),
    }
}

async fn load(
    services: &Services,
    room_lock: &QueueEntry,
    realm: &Realm,
    id: &RoomId,
) -> Result<TurnRoom, Failure> {
    let stored = services.store().load_room(realm, id).await?.ok_or_else(|| no_such_room(id.as_str()))?;
    restore(services, room_lock, &stored)
}

/// Reads a stored room, to be kept under its lock.
fn restore(services: &Services, room_lock: &QueueEntry, stored: &Room) -> Result<TurnRoom, Failure> {
    services.room_locks().weigh(room_lock, &stored.state.document)?;
    document_of(stored)
}

fn document_of(stored: &Room) -> Result<TurnRoom, Failure> {
    serde_json::from_slice(&stored.state.document).map_err(|error| {
        Failure::defect(&format!("the document of room {} cannot be read: {error}", stored.id))
    })
}

pub(super) fn no_such_room(named: &str) -> Failure {
    let sentence =
        format!("there is no room {named:?} here: check its id or code, the game and the environment");
    Failure::new(Kind::NotFound, "no_such_room", sentence)
}

/// The room as the actor may see it. `None` if it may not, for example after it left.
fn seen(services: &Services, room: &TurnRoom, actor: &Actor) -> Result<Seen, Failure> {
    match room.view(actor, services.rules()) {
        Ok(view) => to_json(&view).map(Some),
        Err(_) => Ok(None),
    }
}

fn to_json(what: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    serde_json::value::to_raw_value(what).map_err(|error| Failure::defect(&error.to_string()))
}

fn state_of(room: &TurnRoom) -> Result<RoomState, Failure> {
    let written = |error: serde_json::Error| Failure::defect(&error.to_string());
    let players = room.players().iter().map(|player| AccountId::new(player.id.as_str()));
    Ok(RoomState {
        version: room.version(),
        document: serde_json::to_vec(room).map_err(written)?,
        joinable: room.is_joinable(),
        summary: serde_json::to_vec(&room.summary()).map_err(written)?,
        stage: match room.phase() {
            Phase::Ended => Stage::Ended,
            Phase::Playing if !room.is_joinable() => Stage::Playing,
            Phase::Waiting | Phase::Playing => Stage::Gathering,
        },
        players: players.collect::<Result<_, _>>()?,
        deadline_ms: room.next_deadline().map(|at| at.0),
    })
}

/// The body of a push.
#[derive(Serialize)]
struct Called<'a> {
    on: parlor_turn::PushOn,
    title: &'a str,
    body: &'a str,
    tap: Tap<'a>,
}

/// What a tap on a push opens.
#[derive(Serialize)]
struct Tap<'a> {
    app: &'a str,
    environment: &'a str,
    room: &'a parlor_turn::RoomId,
}

/// What a call of the webhook tells.
#[derive(Serialize)]
struct Told<'a> {
    notice: &'a RawValue,
}

/// A notice as live feeds have it.
#[derive(Serialize)]
struct Live<'a> {
    seq: u64,
    kind: &'a str,
    at_ms: u64,
    notice: &'a RawValue,
}

/// The effects of a commit. Calls of webhooks are charged to the account that acts.
fn sent(
    services: &Services,
    realm: &Realm,
    actor: &Actor,
    room: &TurnRoom,
    effects: &[Effect],
) -> Result<Effects, Failure> {
    let at_ms = services.time().now_ms();
    let id = room.id();
    let (mut notices, mut webhooks, mut message) = (Vec::new(), Vec::new(), None);
    for effect in effects {
        let (to, kind, notice) = match effect {
            // For those who watch alone.
            Effect::Notice(notice) if notice.to.is_empty() => continue,
            Effect::Notice(notice) => {
                let told = to_json(&NoticeContent { room: id, seq: notice.seq, body: &notice.body })?;
                (&notice.to, notice.kind.as_str(), told)
            }
            // Texts by a stranger are not sent in the game's name (threat 52).
            Effect::Push(_) if !services.games().speaks_for(room) => continue,
            // Not told, but stored: `boards::of_rules`.
            Effect::Award(_) => continue,
            Effect::Said(said) => {
                message = Some(messages::stored(said, at_ms)?);
                continue;
            }
            Effect::Push(push) => {
                let tap = Tap { app: realm.app(), environment: realm.environment(), room: id };
                let body = Called { on: push.on, title: &push.title, body: &push.body, tap };
                (&push.to, PUSH, to_json(&NoticeContent { room: id, seq: push.seq, body })?)
            }
        };
        if let Some(target) = services.webhook() {
            let accounts = to.iter().map(|player| player.as_str()).collect();
            let body = Call::body(realm, kind, at_ms, accounts, Told { notice: &notice })?;
            let is_beyond_share = services.outbox_shares().is_beyond(realm, actor, room, body.len());
            webhooks.push(NewWebhook { target: target.url.clone(), body, due_ms: at_ms, is_beyond_share });
        }
        let body: Arc<[u8]> = notice.get().as_bytes().into();
        for player in to {
            let (to, body) = (AccountId::new(player.as_str())?, Arc::clone(&body));
            notices.push(NewNotice { to, kind: kind.into(), body, at_ms });
        }
    }
    Ok(Effects { notices, webhooks, message, messages: room.messages(), ..Effects::default() })
}

/// Notifies connected players. The caller holds the lock, so the notices of one room arrive in order.
fn tell(services: &Services, realm: &Realm, notices: &[NewNotice], numbers: &[u64]) {
    if let Some(to) = services.hints() {
        hints::tell_others(services, to, realm, (notices, numbers));
        return wake_webhook(services);
    }
    for (new, seq) in notices.iter().zip(numbers) {
        if !services.feeds().has(realm, &new.to) {
            continue;
        }
        let Ok(notice) = serde_json::from_slice::<&RawValue>(&new.body) else { continue };
        let live = Live { seq: *seq, kind: &new.kind, at_ms: new.at_ms, notice };
        let Ok(text) = serde_json::to_string(&live) else { continue };
        services.feeds().tell(services.unread(), realm, &new.to, &Arc::from(text));
    }
    wake_webhook(services);
}

fn wake_webhook(services: &Services) {
    if let Some(target) = services.webhook() {
        target.told.notify_one();
    }
}

/// A room as it is stored, without its lock; `None` if there is none.
pub(super) async fn stored(services: &Services, (realm, id): &Key) -> Result<Option<TurnRoom>, Failure> {
    services.store().load_room(realm, id).await?.as_ref().map(document_of).transpose()
}

pub(super) fn draw_code() -> Result<RoomCode, Failure> {
    // One number for each letter. The code draws again where a number would favour some letters.
    let mut numbers = random::<{ 16 * CODE_LETTERS }>()?
        .chunks_exact(4)
        .map(|bytes| bytes.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte)))
        .collect::<Vec<_>>();
    Ok(RoomCode::draw(CODE_LETTERS, || numbers.pop().unwrap_or_default()))
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let failure = Failure::new(refusal.code.into(), refusal.code.as_str(), refusal.sentence);
        let failure = failure.checked(refusal.checks);
        match refusal.path {
            Some(path) => failure.at(path),
            None => failure,
        }
    }
}
