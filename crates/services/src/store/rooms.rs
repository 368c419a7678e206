//! Turn rooms: documents with versions. A commit stores the next version with its notices and webhooks in one
//! transaction, so each stored change is reported, and no other.

use super::entries::SCORES_MAX;
use super::error::StoreError;
use super::events::EventBodies;
use super::ids::{AccountId, RoomId};
use super::limits::{Growth, Limits};
use super::sql::{BatchStatement, Done, RowPage, Sql, TableRow, params};
use super::types::{
    BODY_BYTES_MAX, CommitKind, DOCUMENT_BYTES_MAX, EFFECTS_MAX, Effects, GATHERING_ROOMS_MAX,
    NOTICE_BYTES_MAX, NewRoom, PAGE_BYTES_MAX, PAGE_MAX, Page, ROOM_PLAYERS_MAX, Room, RoomListing, RoomNow,
    RoomState, Stage, check_size, check_text, invalid,
};
use super::{Store, entries, inbox, lives, messages, webhooks};
use parlor_server::realm::{InvalidId, Realm};
use std::sync::Arc;

impl Store {
    /// Stores a new room and its effects. Returns the numbers of its notices in their inboxes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] for a used id or code, [`StoreError::TooManyRooms`] if a player of a waiting
    /// room is in too many of those, [`StoreError::Quota`] beyond its owner's quota.
    pub async fn put_room(
        &self,
        realm: &Realm,
        room: NewRoom,
        effects: Effects,
    ) -> Result<Vec<u64>, StoreError> {
        check_text("the game", &room.game)?;
        room.code.as_deref().map_or(Ok(()), |code| check_text("the room's code", code))?;
        let bytes = check(&room.state, &effects)?;
        let (realm, limits) = (realm.clone(), self.limits());
        self.write(bytes, move |sql| {
            check_gathering(sql, &realm, &room.state, &[])?;
            if let Some(life) = &effects.life {
                must_be_new(sql, &realm, &room)?;
                lives::begin(sql, (&realm, &room.id), life, room.state.bytes(), &limits)?;
            }
            put(sql, &realm, &room)?;
            set_players(sql, &realm, &room.id, room.created_ms, &room.state)?;
            send(sql, &realm, (&room.id, room.state.version), &effects)
        })
        .await
    }

    /// Stores the next state of a room and its effects, if the room is still at the `expected` version.
    /// Returns the numbers of its notices in their inboxes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another commit came first, [`StoreError::Missing`] if there is no such room,
    /// [`StoreError::TooManyRooms`] if a new player of a waiting room is in too many of those,
    /// [`StoreError::Quota`] beyond its owner's quota if the commit [`Plays`](CommitKind::Plays).
    pub async fn commit_room(
        &self,
        realm: &Realm,
        id: &RoomId,
        expected: u64,
        state: RoomState,
        effects: Effects,
    ) -> Result<Vec<u64>, StoreError> {
        let bytes = check(&state, &effects)?;
        if state.version <= expected {
            return Err(invalid("the room's version", "it must be greater than the expected one"));
        }
        let (realm, id, limits) = (realm.clone(), id.clone(), self.limits());
        let growth = effects.kind.into();
        let work = move |sql: &mut dyn Sql| {
            let numbers = commit(sql, (&realm, &id), expected, &state, &effects, &limits)?;
            Ok((numbers, entries::award(sql, &realm, &effects.awards)?))
        };
        self.write_told(growth, bytes, work).await
    }

    /// The room with this id.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn load_room(&self, realm: &Realm, id: &RoomId) -> Result<Option<Room>, StoreError> {
        let (realm, id) = (realm.clone(), id.clone());
        self.read(move |sql| {
            let mut rows = sql.rows(
                "SELECT id, code, game, version, summary, created_ms, players, document, joinable, deadline_ms
                 FROM rooms WHERE realm = $1 AND id = $2",
                params![&realm, &id],
            )?;
            rows.first_mut().map(read_room).transpose()
        })
        .await
    }

    /// The room with this id, unless its version is the `known` one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn load_newer_room(
        &self,
        realm: &Realm,
        id: &RoomId,
        known: u64,
    ) -> Result<RoomNow, StoreError> {
        let (realm, id) = (realm.clone(), id.clone());
        self.read(move |sql| {
            let mut rows = sql.rows(
                "SELECT id, code, game, version, summary, created_ms, players,
                     CASE WHEN version <> $1 THEN document END, joinable, deadline_ms, version
                 FROM rooms WHERE realm = $2 AND id = $3",
                params![known, &realm, &id],
            )?;
            let Some(row) = rows.first_mut() else { return Ok(RoomNow::Gone) };
            if row.number(10)? == known { Ok(RoomNow::Known) } else { read_room(row).map(RoomNow::Newer) }
        })
        .await
    }

    /// The version of each of these rooms that exist. In a cluster: the statement is PostgreSQL's.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn room_versions(
        &self,
        rooms: &[(Realm, RoomId)],
    ) -> Result<Vec<((Realm, RoomId), u64)>, StoreError> {
        // No id has a control character.
        let realms = rooms.iter().map(|(realm, _)| realm.path()).collect::<Vec<_>>().join("\n");
        let ids = rooms.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>().join("\n");
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT r.realm, r.id, r.version
                 FROM unnest(string_to_array($1, E'\\n'), string_to_array($2, E'\\n')) AS k (realm, id)
                 JOIN rooms r ON r.realm = k.realm AND r.id = k.id",
                params![&realms, &ids],
            )?;
            let read = |mut row: TableRow| {
                let key = (Realm::from_path(&row.text(0)?)?, RoomId::new(&row.text(1)?)?);
                Ok((key, row.number(2)?))
            };
            rows.into_iter().map(read).collect()
        })
        .await
    }

    /// The id of the room with this code.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn room_by_code(&self, realm: &Realm, code: &str) -> Result<Option<RoomId>, StoreError> {
        let (realm, code) = (realm.clone(), code.to_owned());
        self.read(move |sql| {
            let mut rows =
                sql.rows("SELECT id FROM rooms WHERE realm = $1 AND code = $2", params![&realm, &code])?;
            rows.first_mut().map(|row| Ok(RoomId::new(&row.text(0)?)?)).transpose()
        })
        .await
    }

    /// All rooms of a realm, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn all_rooms(
        &self,
        realm: &Realm,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<RoomListing>, StoreError> {
        let (created_ms, id) = parse_cursor(after)?;
        let (realm, limit) = (realm.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT id, code, game, version, summary, created_ms, players FROM rooms
                 WHERE realm = $1 AND (created_ms, id) > ($2, $3) ORDER BY created_ms, id LIMIT $4",
                params![&realm, created_ms, &id, limit + 1],
                PAGE_BYTES_MAX,
            )?;
            page(part, limit)
        })
        .await
    }

    /// The rooms that a player is in, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn rooms_of(
        &self,
        realm: &Realm,
        player: &AccountId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<RoomListing>, StoreError> {
        let (created_ms, id) = parse_cursor(after)?;
        let (realm, player, limit) = (realm.clone(), player.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT r.id, r.code, r.game, r.version, r.summary, r.created_ms, r.players
                 FROM room_players p JOIN rooms r ON r.realm = p.realm AND r.id = p.room
                 WHERE p.realm = $1 AND p.account = $2 AND (p.created_ms, p.room) > ($3, $4)
                 ORDER BY p.created_ms, p.room LIMIT $5",
                params![&realm, &player, created_ms, &id, limit + 1],
                PAGE_BYTES_MAX,
            )?;
            page(part, limit)
        })
        .await
    }
}

/// Refuses oversized commits. Returns the bytes of the commit.
fn check(state: &RoomState, effects: &Effects) -> Result<usize, StoreError> {
    check_size("the room's document", state.document.len(), DOCUMENT_BYTES_MAX)?;
    check_size("the room's summary", state.summary.len(), BODY_BYTES_MAX)?;
    check_size("the list of players", state.players.len(), ROOM_PLAYERS_MAX)?;
    check_size("the list of notices", effects.notices.len(), EFFECTS_MAX)?;
    check_size("the list of webhooks", effects.webhooks.len(), EFFECTS_MAX)?;
    check_size("the list of awards", effects.awards.len(), SCORES_MAX)?;
    let mut bytes = state.document.len() + state.summary.len();
    let mut last: Option<&Arc<[u8]>> = None;
    for notice in &effects.notices {
        check_text("the kind of notice", &notice.kind)?;
        if notice.kind.contains('\n') {
            return Err(invalid("the kind of notice", "it has more than one line"));
        }
        check_size("a notice", notice.body.len(), NOTICE_BYTES_MAX)?;
        // Notices that share a body are neighbours.
        if last.replace(&notice.body).is_none_or(|last| !Arc::ptr_eq(last, &notice.body)) {
            bytes += notice.body.len();
        }
    }
    if let Some(message) = &effects.message {
        check_size("a message", message.body.len(), NOTICE_BYTES_MAX)?;
        bytes += message.body.len();
    }
    for webhook in &effects.webhooks {
        check_text("the target of a webhook", &webhook.target)?;
        check_size("the body of a webhook", webhook.body.len(), NOTICE_BYTES_MAX)?;
        bytes += webhook.body.len();
    }
    Ok(bytes)
}

fn put(sql: &mut dyn Sql, realm: &Realm, room: &NewRoom) -> Done<()> {
    let state = &room.state;
    let made = sql.change(
        "INSERT INTO rooms
             (realm, id, code, game, created_ms, version, document, joinable, summary, players, deadline_ms, wanted)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING",
        params![
            realm,
            &room.id,
            room.code.as_ref(),
            &room.game,
            room.created_ms,
            state.version,
            &state.document,
            state.joinable,
            &state.summary,
            &in_lines(state),
            state.deadline_ms,
            room.wanted.as_ref()
        ],
    )?;
    if made == 1 {
        return Ok(());
    }
    must_be_new(sql, realm, room)?;
    Err(StoreError::Taken { what: "room's code" }.into())
}

fn must_be_new(sql: &mut dyn Sql, realm: &Realm, room: &NewRoom) -> Done<()> {
    let same = sql.rows("SELECT id FROM rooms WHERE realm = $1 AND id = $2", params![realm, &room.id])?;
    if same.is_empty() { Ok(()) } else { Err(StoreError::Taken { what: "room's id" }.into()) }
}

/// Removes all players of a deleted room.
pub(super) fn let_go_of_players(sql: &mut dyn Sql, realm: &Realm, room: &RoomId) -> Done<()> {
    sql.later("DELETE FROM room_players WHERE realm = $1 AND room = $2", params![realm, room])
}

fn commit(
    sql: &mut dyn Sql,
    (realm, id): (&Realm, &RoomId),
    expected: u64,
    state: &RoomState,
    effects: &Effects,
    limits: &Limits,
) -> Done<Vec<u64>> {
    let players = in_lines(state);
    let next = params![
        state.version,
        &state.document,
        state.joinable,
        &state.summary,
        state.deadline_ms,
        &players,
        realm,
        id,
        expected
    ];
    // The room and the inboxes in one round trip.
    let told = inbox::ByReceiver::of(&effects.notices);
    let life = effects.life.as_ref();
    let (place, before) = messages::places(effects.messages);
    let counted = params![realm, id, place, before];
    let asked: Vec<_> = core::iter::once(BatchStatement::change(NEXT, next))
        .chain(life.map(|_| BatchStatement::rows(lives::LIFE, params![realm, id])))
        .chain((effects.messages > 0).then(|| BatchStatement::rows(messages::COUNTED, counted)))
        .chain(told.asks(realm))
        .collect();
    let mut answers = sql.batch(&asked)?.into_iter();
    if answers.next().is_none_or(|next| next.changed == 0) {
        let mut rows = sql.rows(
            "SELECT version, created_ms, players FROM rooms WHERE realm = $1 AND id = $2",
            params![realm, id],
        )?;
        let row = rows.first_mut().ok_or(StoreError::Missing { what: "room" })?;
        let (current, created_ms) = (row.number(0)?, row.number(1)?);
        if current == expected {
            check_gathering(sql, realm, state, &read_lines(&row.text(2)?)?.1)?;
        }
        if current != expected || sql.change(NEXT_WITH_PLAYERS, next)? == 0 {
            return Err(StoreError::Stale { current }.into());
        }
        set_players(sql, realm, id, created_ms, state)?;
    }
    let shared = EventBodies::of(&effects.notices);
    let event_bytes =
        if shared.is_empty() { None } else { Some(shared.put(sql, realm, id, state.version)?) };
    let life_rows = life.map(|_| answers.next().unwrap_or_default().rows);
    let mut counted = if effects.messages > 0 { answers.next().unwrap_or_default().rows } else { Vec::new() };
    let message_bytes = match &effects.message {
        Some(message) => messages::put(sql, (realm, id), message, &mut counted)?,
        None => messages::held(effects.messages, &mut counted)?,
    };
    if let (Some(life), Some(mut rows)) = (life, life_rows) {
        // No quota refuses an end or a timer, because other players depend on it.
        let judged_by = (effects.kind == CommitKind::Plays).then_some(limits);
        lives::go_on(
            sql,
            (realm, id),
            life,
            (state.bytes(), event_bytes, message_bytes),
            &mut rows,
            judged_by,
        )?;
    }
    call(sql, realm, effects)?;
    told.put(sql, realm, &inbox::Event { room: id, version: state.version, shared: &shared }, answers)
}

impl From<CommitKind> for Growth {
    fn from(kind: CommitKind) -> Self {
        match kind {
            CommitKind::Plays => Growth::Continues,
            CommitKind::Settles => Growth::Ends,
            CommitKind::Administers => Growth::Spares,
        }
    }
}

impl RoomState {
    /// The bytes for which its owner is charged.
    fn bytes(&self) -> usize {
        self.document.len() + self.summary.len()
    }
}

/// Stores the next state of a room with unchanged players and stage, the usual case.
const NEXT: &str =
    "UPDATE rooms SET version = $1, document = $2, joinable = $3, summary = $4, deadline_ms = $5, failures = 0
     WHERE players = $6 AND realm = $7 AND id = $8 AND version = $9";
const NEXT_WITH_PLAYERS: &str =
    "UPDATE rooms SET version = $1, document = $2, joinable = $3, summary = $4, deadline_ms = $5, players = $6, failures = 0
     WHERE realm = $7 AND id = $8 AND version = $9";

/// The number of the stage in the tables.
fn number(stage: Stage) -> u64 {
    match stage {
        Stage::Gathering => 0,
        Stage::Playing => 1,
        Stage::Ended => 2,
    }
}

/// The stage and the players as text: a tab and the stage in the first line, then one id in each line. Ids
/// have no control characters.
fn in_lines(state: &RoomState) -> String {
    let mut lines = format!("\t{}", number(state.stage));
    for player in &state.players {
        lines.push('\n');
        lines.push_str(player.as_str());
    }
    lines
}

/// Reads the stage and the players. A room of layout 3 or older has no stage.
fn read_lines(lines: &str) -> Done<(Stage, Vec<AccountId>)> {
    let stage = match lines.split('\n').next() {
        Some("\t0") => Stage::Gathering,
        Some("\t2") => Stage::Ended,
        _ => Stage::Playing,
    };
    let players = lines.split('\n').filter(|line| !line.is_empty() && !line.starts_with('\t'));
    Ok((stage, players.map(AccountId::new).collect::<Result<_, InvalidId>>()?))
}

/// Refuses a new player of a waiting room that is in too many of those. Writes run one after another, so
/// concurrent ones do not exceed the limit.
fn check_gathering(sql: &mut dyn Sql, realm: &Realm, state: &RoomState, before: &[AccountId]) -> Done<()> {
    if state.stage != Stage::Gathering {
        return Ok(());
    }
    for player in state.players.iter().filter(|player| !before.contains(player)) {
        let mut rows = sql.rows(
            "SELECT COUNT(*) FROM room_players WHERE realm = $1 AND account = $2 AND stage = 0",
            params![realm, player],
        )?;
        if rows.first_mut().map_or(Ok(0), |row| row.number(0))? >= GATHERING_ROOMS_MAX {
            return Err(StoreError::TooManyRooms { max: GATHERING_ROOMS_MAX }.into());
        }
    }
    Ok(())
}

fn set_players(
    sql: &mut dyn Sql,
    realm: &Realm,
    room: &RoomId,
    created_ms: u64,
    state: &RoomState,
) -> Done<()> {
    sql.later("DELETE FROM room_players WHERE realm = $1 AND room = $2", params![realm, room])?;
    for player in &state.players {
        sql.later(
            "INSERT INTO room_players (realm, account, created_ms, room, stage) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            params![realm, player, created_ms, room, number(state.stage)],
        )?;
    }
    Ok(())
}

fn send(
    sql: &mut dyn Sql,
    realm: &Realm,
    (room, version): (&RoomId, u64),
    effects: &Effects,
) -> Done<Vec<u64>> {
    call(sql, realm, effects)?;
    let shared = EventBodies::of(&effects.notices);
    if !shared.is_empty() {
        shared.put(sql, realm, room, version)?;
    }
    let told = inbox::ByReceiver::of(&effects.notices);
    let asked: Vec<_> = told.asks(realm).collect();
    let answers = sql.batch(&asked)?;
    told.put(sql, realm, &inbox::Event { room, version, shared: &shared }, answers.into_iter())
}

fn call(sql: &mut dyn Sql, realm: &Realm, effects: &Effects) -> Done<()> {
    effects.webhooks.iter().try_for_each(|webhook| webhooks::put(sql, realm, webhook))
}

fn read_room(row: &mut TableRow) -> Done<Room> {
    let (listing, stage) = read_listing(row)?;
    let state = RoomState {
        version: listing.version,
        document: row.bytes(7)?,
        // A hidden room (2) can be joined too.
        joinable: row.number(8)? != 0,
        summary: listing.summary,
        stage,
        players: listing.players,
        deadline_ms: row.optional_number(9)?,
    };
    let RoomListing { id, code, game, created_ms, .. } = listing;
    Ok(Room { id, code, game, created_ms, state })
}

/// Reads a listing and the room's stage from the first seven columns.
fn read_listing(row: &mut TableRow) -> Done<(RoomListing, Stage)> {
    let (stage, players) = read_lines(&row.text(6)?)?;
    let listing = RoomListing {
        id: RoomId::new(&row.text(0)?)?,
        code: row.optional_text(1)?,
        game: row.text(2)?,
        version: row.number(3)?,
        summary: row.bytes(4)?,
        created_ms: row.number(5)?,
        players,
    };
    Ok((listing, stage))
}

pub(super) fn listings(rows: Vec<TableRow>) -> Done<Vec<RoomListing>> {
    rows.into_iter().map(|mut row| read_listing(&mut row).map(|(listing, _)| listing)).collect()
}

/// A page of up to `limit` rows. One more row means that another page follows.
pub(super) fn page(RowPage { rows, is_cut }: RowPage, limit: usize) -> Done<Page<RoomListing>> {
    let mut items = listings(rows)?;
    let has_more = is_cut || items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(RoomListing::cursor);
    Ok(Page { items, next })
}

/// The time and id after which a page begins.
fn parse_cursor(after: Option<&str>) -> Result<(u64, String), StoreError> {
    let Some(after) = after else { return Ok((0, String::new())) };
    let parts = after.split_once('.');
    let parsed = parts.and_then(|(created_ms, id)| Some((created_ms.parse().ok()?, RoomId::new(id).ok()?)));
    let (created_ms, id) = parsed
        .ok_or_else(|| invalid("the page's beginning", "give back what the page before gave, or nothing"))?;
    Ok((created_ms, id.as_str().to_owned()))
}

/// The time and id before which a page of a descending list begins.
pub(super) fn parse_cursor_down(after: Option<&str>) -> Result<(u64, String), StoreError> {
    match after {
        // Both databases limit it to their largest number.
        None => Ok((u64::MAX, String::new())),
        after => parse_cursor(after),
    }
}
