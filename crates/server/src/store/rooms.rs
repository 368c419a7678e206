//! Turn rooms: documents with versions. A commit puts the next one, the notices and the calls that come of it in one
//! transaction, so that what a player was told is stored, and what is stored will be told.

use super::error::StoreError;
use super::sql::{Done, Row, Sql, params};
use super::types::{
    AccountId, BODY_BYTES_MAX, DOCUMENT_BYTES_MAX, DueRoom, EFFECTS_MAX, Effects, NewRoom, PAGE_MAX, Page,
    ROOM_PLAYERS_MAX, Realm, Room, RoomId, RoomListing, RoomState, check_size, check_text, invalid,
};
use super::{Store, inbox, webhooks};

impl Store {
    /// Stores a room that is not there yet, and sends what comes of that. Gives the numbers that its notices have in their inboxes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] if its id or its code is.
    pub async fn put_room(
        &self,
        realm: &Realm,
        room: NewRoom,
        effects: Effects,
    ) -> Result<Vec<u64>, StoreError> {
        check_text("the game", &room.game)?;
        room.code.as_deref().map_or(Ok(()), |code| check_text("the room's code", code))?;
        let bytes = check(&room.state, &effects)?;
        let realm = realm.clone();
        self.write(bytes, move |sql| {
            put(sql, &realm, &room)?;
            set_players(sql, &realm, &room.id, room.created_ms, &room.state.players)?;
            send(sql, &realm, &effects)
        })
        .await
    }

    /// Stores the next state of a room, if it is still at the `expected` version, and sends what comes of that.
    /// Gives the numbers that its notices have in their inboxes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another commit came first, [`StoreError::Missing`] if there is no such room.
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
        let (realm, id) = (realm.clone(), id.clone());
        self.write(bytes, move |sql| commit(sql, &realm, &id, expected, &state, &effects)).await
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
                "SELECT id, code, game, version, summary, created_ms, document, joinable, players, deadline_ms
                 FROM rooms WHERE realm = $1 AND id = $2",
                params![&realm, &id],
            )?;
            rows.first_mut().map(read_room).transpose()
        })
        .await
    }

    /// The id of the room that players come into with this code.
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

    /// Rooms of a game that can be joined, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not what an earlier page gave.
    pub async fn joinable_rooms(
        &self,
        realm: &Realm,
        game: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<RoomListing>, StoreError> {
        let (created_ms, id) = parse_cursor(after)?;
        let (realm, game, limit) = (realm.clone(), game.to_owned(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT id, code, game, version, summary, created_ms FROM rooms
                 WHERE realm = $1 AND game = $2 AND joinable = 1 AND (created_ms, id) > ($3, $4)
                 ORDER BY created_ms, id LIMIT $5",
                params![&realm, &game, created_ms, &id, limit + 1],
            )?;
            page(rows, limit)
        })
        .await
    }

    /// All rooms of a game's realm, the oldest first: for operators.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not what an earlier page gave.
    pub async fn all_rooms(
        &self,
        realm: &Realm,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<RoomListing>, StoreError> {
        let (created_ms, id) = parse_cursor(after)?;
        let (realm, limit) = (realm.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT id, code, game, version, summary, created_ms FROM rooms
                 WHERE realm = $1 AND (created_ms, id) > ($2, $3) ORDER BY created_ms, id LIMIT $4",
                params![&realm, created_ms, &id, limit + 1],
            )?;
            page(rows, limit)
        })
        .await
    }

    /// The rooms that a player is in, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not what an earlier page gave.
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
            let rows = sql.rows(
                "SELECT r.id, r.code, r.game, r.version, r.summary, r.created_ms
                 FROM room_players p JOIN rooms r ON r.realm = p.realm AND r.id = p.room
                 WHERE p.realm = $1 AND p.account = $2 AND (p.created_ms, p.room) > ($3, $4)
                 ORDER BY p.created_ms, p.room LIMIT $5",
                params![&realm, &player, created_ms, &id, limit + 1],
            )?;
            page(rows, limit)
        })
        .await
    }

    /// Rooms of all realms whose deadline has come, the longest overdue first: for the one timer of a server.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn due_rooms(&self, now_ms: u64, limit: usize) -> Result<Vec<DueRoom>, StoreError> {
        let limit = limit.min(PAGE_MAX);
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT realm, id, deadline_ms FROM rooms WHERE deadline_ms <= $1 ORDER BY deadline_ms LIMIT $2",
                params![now_ms, limit],
            )?;
            let due = rows.into_iter().map(|mut row| {
                let realm = Realm::from_path(&row.text(0)?)?;
                Ok(DueRoom { realm, room: RoomId::new(&row.text(1)?)?, deadline_ms: row.number(2)? })
            });
            due.collect()
        })
        .await
    }

    /// When the next room of any realm is due: until then no timer need look.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn next_deadline(&self) -> Result<Option<u64>, StoreError> {
        self.read(move |sql| {
            let mut rows =
                sql.rows("SELECT MIN(deadline_ms) FROM rooms WHERE deadline_ms IS NOT NULL", params![])?;
            rows.first_mut().map_or(Ok(None), |row| row.optional_number(0))
        })
        .await
    }
}

/// Refuses what is too large, and says how many bytes the rest has.
fn check(state: &RoomState, effects: &Effects) -> Result<usize, StoreError> {
    check_size("the room's document", state.document.len(), DOCUMENT_BYTES_MAX)?;
    check_size("the room's summary", state.summary.len(), BODY_BYTES_MAX)?;
    check_size("the list of players", state.players.len(), ROOM_PLAYERS_MAX)?;
    check_size("the list of notices", effects.notices.len(), EFFECTS_MAX)?;
    check_size("the list of webhooks", effects.webhooks.len(), EFFECTS_MAX)?;
    let mut bytes = state.document.len() + state.summary.len();
    for notice in &effects.notices {
        check_text("the kind of notice", &notice.kind)?;
        if notice.kind.contains('\n') {
            return Err(invalid("the kind of notice", "it has more than one line"));
        }
        check_size("a notice", notice.body.len(), BODY_BYTES_MAX)?;
        bytes += notice.body.len();
    }
    for webhook in &effects.webhooks {
        check_text("the target of a webhook", &webhook.target)?;
        check_size("the body of a webhook", webhook.body.len(), BODY_BYTES_MAX)?;
        bytes += webhook.body.len();
    }
    Ok(bytes)
}

fn put(sql: &mut dyn Sql, realm: &Realm, room: &NewRoom) -> Done<()> {
    let state = &room.state;
    let made = sql.change(
        "INSERT INTO rooms
             (realm, id, code, game, created_ms, version, document, joinable, summary, players, deadline_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
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
            &in_lines(&state.players),
            state.deadline_ms
        ],
    )?;
    if made == 1 {
        return Ok(());
    }
    let same = sql.rows("SELECT id FROM rooms WHERE realm = $1 AND id = $2", params![realm, &room.id])?;
    let what = if same.is_empty() { "room's code" } else { "room's id" };
    Err(StoreError::Taken { what }.into())
}

fn commit(
    sql: &mut dyn Sql,
    realm: &Realm,
    id: &RoomId,
    expected: u64,
    state: &RoomState,
    effects: &Effects,
) -> Done<Vec<u64>> {
    let players = in_lines(&state.players);
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
    // The room and the inboxes in one go, for a database that is asked over a network.
    let told = inbox::Told::of(&effects.notices);
    let asked: Vec<_> = core::iter::once((NEXT, next.to_vec())).chain(told.asks(realm)).collect();
    let mut answers = sql.rows_of_all(&asked)?.into_iter();
    if answers.next().is_none_or(|changed| changed.is_empty()) {
        let mut rows = sql
            .rows("SELECT version, created_ms FROM rooms WHERE realm = $1 AND id = $2", params![realm, id])?;
        let row = rows.first_mut().ok_or(StoreError::Missing { what: "room" })?;
        let (current, created_ms) = (row.number(0)?, row.number(1)?);
        if current != expected || sql.change(NEXT_WITH_PLAYERS, next)? == 0 {
            return Err(StoreError::Stale { current }.into());
        }
        set_players(sql, realm, id, created_ms, &state.players)?;
    }
    call(sql, realm, effects)?;
    told.put(sql, realm, answers)
}

/// Puts the next state of a room whose players are the same as before, as they are most often.
const NEXT: &str =
    "UPDATE rooms SET version = $1, document = $2, joinable = $3, summary = $4, deadline_ms = $5
     WHERE players = $6 AND realm = $7 AND id = $8 AND version = $9 RETURNING version";
const NEXT_WITH_PLAYERS: &str =
    "UPDATE rooms SET version = $1, document = $2, joinable = $3, summary = $4, deadline_ms = $5, players = $6
     WHERE realm = $7 AND id = $8 AND version = $9";

/// Ids have no control characters, so a line is an id.
fn in_lines(players: &[AccountId]) -> String {
    let ids: Vec<&str> = players.iter().map(AccountId::as_str).collect();
    ids.join("\n")
}

fn set_players(
    sql: &mut dyn Sql,
    realm: &Realm,
    room: &RoomId,
    created_ms: u64,
    players: &[AccountId],
) -> Done<()> {
    sql.later("DELETE FROM room_players WHERE realm = $1 AND room = $2", params![realm, room])?;
    for player in players {
        sql.later(
            "INSERT INTO room_players (realm, account, created_ms, room) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            params![realm, player, created_ms, room],
        )?;
    }
    Ok(())
}

fn send(sql: &mut dyn Sql, realm: &Realm, effects: &Effects) -> Done<Vec<u64>> {
    call(sql, realm, effects)?;
    let told = inbox::Told::of(&effects.notices);
    let asked: Vec<_> = told.asks(realm).collect();
    let answers = sql.rows_of_all(&asked)?;
    told.put(sql, realm, answers.into_iter())
}

fn call(sql: &mut dyn Sql, realm: &Realm, effects: &Effects) -> Done<()> {
    effects.webhooks.iter().try_for_each(|webhook| webhooks::put(sql, realm, webhook))
}

fn read_room(row: &mut Row) -> Done<Room> {
    let listing = read_listing(row)?;
    let players = row.text(8)?;
    let players: Result<Vec<AccountId>, StoreError> =
        players.split('\n').filter(|id| !id.is_empty()).map(AccountId::new).collect();
    let state = RoomState {
        version: listing.version,
        document: row.bytes(6)?,
        joinable: row.number(7)? == 1,
        summary: listing.summary,
        players: players?,
        deadline_ms: row.optional_number(9)?,
    };
    let RoomListing { id, code, game, created_ms, .. } = listing;
    Ok(Room { id, code, game, created_ms, state })
}

/// A listing from the first six columns.
fn read_listing(row: &mut Row) -> Done<RoomListing> {
    Ok(RoomListing {
        id: RoomId::new(&row.text(0)?)?,
        code: row.optional_text(1)?,
        game: row.text(2)?,
        version: row.number(3)?,
        summary: row.bytes(4)?,
        created_ms: row.number(5)?,
    })
}

/// A page of up to `limit` rows; one more was asked for, to see whether there is another page.
fn page(rows: Vec<Row>, limit: usize) -> Done<Page<RoomListing>> {
    let mut items = rows.into_iter().map(|mut row| read_listing(&mut row)).collect::<Done<Vec<_>>>()?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(RoomListing::cursor);
    Ok(Page { items, next })
}

/// Where a page begins: after this time and id.
fn parse_cursor(after: Option<&str>) -> Result<(u64, String), StoreError> {
    let Some(after) = after else { return Ok((0, String::new())) };
    let parts = after.split_once('.');
    let parsed = parts.and_then(|(created_ms, id)| Some((created_ms.parse().ok()?, RoomId::new(id).ok()?)));
    let (created_ms, id) = parsed
        .ok_or_else(|| invalid("the page's beginning", "give back what the page before gave, or nothing"))?;
    Ok((created_ms, id.as_str().to_owned()))
}
