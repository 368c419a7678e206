//! Rooms whose members come and go and whose hosts die, and matches, kept and not.

use super::player::{End, Player, Plays, with_channel};
use super::record::Kind;
use super::stage::Stage;
use crate::host_world::schema;
use crate::player::Ending;
use anyhow::Context;
use parlor_client_core::{Options, Wish};
use parlor_proto::{Instant, RoomCode, TickRate};
use serde_json::json;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Members of a room and of a match.
const MEMBERS: usize = 5;
const MATCH_MEMBERS: usize = 4;
/// Seats: a stalled member keeps one for a while, and a slow reader has one.
const SEATS: u16 = 16;
/// How long a room lives, and a member of it.
const ROOM_LIFE_MS: (u16, u16) = (60_000, 65_000);
const HOST_LIFE_MS: (u16, u16) = (15_000, 30_000);
const MEMBER_LIFE_MS: (u16, u16) = (10_000, 45_000);
const MATCH_LIFE_MS: (u16, u16) = (15_000, 30_000);
/// A room that is about to end admits no more members.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Pause of a member after an error.
const REST: Duration = Duration::from_secs(1);
/// After so long without a word from the host another member takes its part.
const HOST_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a room may take to open.
const PATIENCE: Duration = Duration::from_secs(15);
/// A kept match's log is read in parts of so many entries.
const LOG_PART: u32 = 200;

/// Rooms, one after the other, for ever.
pub(super) async fn rooms(stage: Rc<Stage>) {
    loop {
        if let Err(error) = room(&stage).await {
            stage.record.error(format!("opening a room: {error:#}"));
            sleep(REST).await;
        }
    }
}

async fn room(stage: &Rc<Stage>) -> anyhow::Result<()> {
    let ends_at = stage.record.now() + stage.span(ROOM_LIFE_MS);
    let mut options = with_channel(Options::host(stage.app()))?;
    let tick_rate = TickRate::new(30).context("rooms have this rate")?;
    options.intent = Wish::Host { code: None, max_players: SEATS, tick_rate, dedicated: false };
    options.host_timeout = Some(HOST_TIMEOUT);
    options.schema = Some(schema()?);
    let mut members = JoinSet::new();
    let (opened, code) = oneshot::channel();
    let host = member(stage, options, Plays::InARoom, stage.span(HOST_LIFE_MS), Ending::Hang, Some(opened));
    members.spawn_local(host);
    let code = timeout(PATIENCE, code).await.context("it does not open")?.context("its host was lost")?;
    for _ in 1..MEMBERS {
        guest(stage, &mut members, code, ends_at)?;
    }
    // One who reads nothing of what it is sent.
    let deaf = with_channel(Options { schema: Some(schema()?), ..Options::join(stage.app(), code) })?;
    let life = ends_at.saturating_since(stage.record.now());
    members.spawn_local(member(stage, deaf, Plays::Nothing, life, Ending::Hang, None));
    while let Some(ended) = members.join_next().await {
        match ended? {
            Ok(End::RoomOver) => break,
            Ok(End::Planned) => {}
            Err(error) => stage.record.error(format!("a member of a room: {error:#}")),
        }
        if stage.record.now() + LAST_CALL < ends_at {
            guest(stage, &mut members, code, ends_at)?;
        }
    }
    Ok(())
}

/// Lets one more in, who leaves before the room's end.
fn guest(
    stage: &Rc<Stage>,
    members: &mut JoinSet<anyhow::Result<End>>,
    code: RoomCode,
    ends_at: Instant,
) -> anyhow::Result<()> {
    let options = with_channel(Options { schema: Some(schema()?), ..Options::join(stage.app(), code) })?;
    let life = stage.span(MEMBER_LIFE_MS).min(ends_at.saturating_since(stage.record.now()));
    members.spawn_local(member(stage, options, Plays::InARoom, life, Ending::Leave, None));
    Ok(())
}

/// One member, from the next address.
fn member(
    stage: &Rc<Stage>,
    options: Options,
    plays: Plays,
    life: Duration,
    ending: Ending,
    opened: Option<oneshot::Sender<RoomCode>>,
) -> impl Future<Output = anyhow::Result<End>> + use<> {
    let stage = Rc::clone(stage);
    async move {
        let way = stage.next_way();
        Player { record: &stage.record, way, options, plays, life, ending, opened, written: 0 }.play().await
    }
}

/// Matches, one after the other, for ever; every second one is kept for the account with this number. The log of one that was kept is
/// read by the game's own service and forgotten.
pub(super) async fn matches(stage: Rc<Stage>, account: usize) {
    for number in 0_u32.. {
        let keeper = (number % 2 == 1).then_some(account);
        if let Err(error) = one_match(&stage, keeper).await {
            stage.record.error(format!("a match: {error:#}"));
            sleep(REST).await;
        }
    }
}

async fn one_match(stage: &Rc<Stage>, keeper: Option<usize>) -> anyhow::Result<()> {
    let mut options = with_channel(Options::create_match(stage.app()))?;
    if let Wish::Match { keep, label, .. } = &mut options.intent {
        *keep = keeper.is_some();
        "soak".clone_into(label);
    }
    if let Some(account) = keeper {
        options.token = Some(ticket(stage, account).await?);
    }
    let life = stage.span(MATCH_LIFE_MS);
    let mut members = JoinSet::new();
    let (opened, code) = oneshot::channel();
    members.spawn_local(member(stage, options, Plays::InAMatch, life, Ending::Leave, Some(opened)));
    let code =
        timeout(PATIENCE, code).await.context("it does not open")?.context("its first member was lost")?;
    for _ in 1..MATCH_MEMBERS {
        let options = with_channel(Options::join(stage.app(), code))?;
        members.spawn_local(member(stage, options, Plays::InAMatch, life, Ending::Leave, None));
    }
    while let Some(ended) = members.join_next().await {
        if let Err(error) = ended? {
            stage.record.error(format!("a member of a match: {error:#}"));
        }
    }
    if keeper.is_some() { read_and_forget(stage, code).await } else { Ok(()) }
}

/// What lets an account open a room: a match is kept for accounts alone.
async fn ticket(stage: &Stage, account: usize) -> anyhow::Result<String> {
    let mut http = stage.next_http();
    let player = http.sign_in(account).await?;
    let ticket = http.post("/admission", &player.token, &json!({ "create": true })).await?;
    // Each sign-in is a row of the store.
    let over = json!({ "app": stage.app(), "refresh_token": player.refresh_token });
    http.post("/auth/sign-out", &player.token, &over).await?;
    Ok(ticket["token"].as_str().context("a ticket has a token")?.to_owned())
}

/// What a game's own service does with a match that was kept.
async fn read_and_forget(stage: &Stage, code: RoomCode) -> anyhow::Result<()> {
    // Its end is stored after its members have left.
    sleep(REST).await;
    let mut http = stage.next_http();
    let token = stage.operator_token();
    let began = stage.record.now();
    http.get(&format!("/matches/{}/log?limit={LOG_PART}", code.as_str()), &token).await?;
    stage.record.note_since(Kind::ServiceRequest, began);
    http.post(&format!("/matches/{}/forget", code.as_str()), &token, &json!({})).await?;
    Ok(())
}
