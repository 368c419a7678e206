//! The live rooms of all nodes of a cluster: which node has which room, and what is listed of it. PostgreSQL's alone.
//!
//! Each write is one statement, and changes a row only if it has the room's name (`uid`) and term that the writer
//! knows. A node that was paused and whose room another one has changes nothing.

use super::Store;
use super::error::StoreError;
use super::node::NodeName;
use super::nodes::NodeState;
use super::sql::{Done, Sql, TableRow, is_of_serving, now_us, params};
use data_encoding::HEXLOWER;
use parlor_hub::admission_policy::UsedToken;
use serde_json::{Value, json};

/// Rooms of a list that one request examines.
const LOOKED_AT_MAX: u64 = 1_000;
/// Used tokens that are forgotten when one is remembered, if their time is over.
const FORGOTTEN: u64 = 8;
/// Rows that one statement deletes.
const SWEEP: u64 = 1_000;

/// The columns of a [`LiveListing`].
macro_rules! listing {
    () => {
        "r.code, r.node, r.app, r.environment, r.kind, r.label, r.has_secret, r.max_players, r.members, r.away,
         r.players, r.spectators, r.opened_us"
    };
}

/// The columns of an [`OwnedRow`].
macro_rules! owned {
    () => {
        concat!(
            "code, encode(uid, 'hex'), term, node, incarnation, ",
            now_us!(),
            " - GREATEST(opened_us, moved_us)"
        )
    };
}

/// A room as its node enters it. Its term is the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewLiveRoom {
    pub(crate) code: String,
    /// Its name for ever, in hexadecimal digits.
    pub(crate) uid: String,
    pub(crate) term: u64,
    pub(crate) owner: Owner,
    /// Where its shard is: `HOST:PORT[#FINGERPRINT]`.
    pub(crate) address: String,
    pub(crate) app: String,
    /// The default one if its opener named none.
    pub(crate) environment: String,
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    pub(crate) has_secret: bool,
    pub(crate) max_players: u64,
    /// The token that opens it.
    pub(crate) token: Option<UsedToken>,
    /// What another node needs to reopen it; `None` if it ends with its node.
    pub(crate) setup: Option<Vec<u8>>,
    /// The host; `None` in a match.
    pub(crate) host: Option<u64>,
}

impl NewLiveRoom {
    /// Its name and term.
    pub(crate) fn key(&self) -> RoomKey {
        RoomKey { code: self.code.clone(), uid: self.uid.clone(), term: self.term }
    }
}

/// Who is in a room, for the node that reopens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRoster {
    pub(crate) bytes: Vec<u8>,
    pub(crate) host: Option<u64>,
    pub(crate) epoch: u64,
}

/// What is written of a room once a second, if it has changed.
pub(crate) type ListedRoom = (RoomKey, Counts, Option<StoredRoster>);

/// A node that has rooms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) node: String,
    pub(crate) incarnation: u64,
}

/// Whether a room was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnteredRow {
    /// The row is this room's.
    Done,
    /// Another room has the code.
    Taken,
    /// Its token has opened another room.
    Used,
    /// The node is not this incarnation any more.
    Fenced,
}

/// A room's name and term, by which its row is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoomKey {
    pub(crate) code: String,
    pub(crate) uid: String,
    pub(crate) term: u64,
}

impl RoomKey {
    fn to_json(&self) -> Value {
        json!({ "code": self.code, "uid": self.uid, "term": self.term })
    }
}

/// How many are in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) members: u64,
    pub(crate) away: u64,
    pub(crate) players: u64,
    pub(crate) spectators: u64,
}

/// A room's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRow {
    pub(crate) key: RoomKey,
    pub(crate) owner: Owner,
    /// When it was entered or given to its node, in microseconds ago.
    pub(crate) age_us: u64,
}

/// What is listed of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveListing {
    pub(crate) code: String,
    pub(crate) node: String,
    pub(crate) app: String,
    pub(crate) environment: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) has_secret: bool,
    pub(crate) max_players: u64,
    pub(crate) counts: Counts,
    /// When it opened, in milliseconds since 1970.
    pub(crate) opened_ms: u64,
}

/// Where a room is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRoom {
    pub(crate) listing: LiveListing,
    pub(crate) key: RoomKey,
    pub(crate) owner: Owner,
    pub(crate) address: String,
    /// Whether its node serves.
    pub(crate) is_served: bool,
}

/// Which rooms of an environment to list, in the order of their codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveQuery {
    pub(crate) app: String,
    pub(crate) environment: String,
    /// Only matches that fit.
    pub(crate) matches: Option<MatchQuery>,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// Which matches to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MatchQuery {
    pub(crate) label: Option<String>,
    pub(crate) members_min: u64,
    pub(crate) members_max: Option<u64>,
    pub(crate) has_seat: bool,
}

/// A part of a list, and where the next one continues.
pub(crate) type LivePage = (Vec<LiveListing>, Option<String>);

impl Store {
    /// Orders a node to take no more rooms, or takes that back. Returns whether such a node serves.
    pub(crate) async fn drain_node(&self, node: &NodeName, drains: bool) -> Result<bool, StoreError> {
        let node = node.clone();
        let state = if drains { NodeState::Draining } else { NodeState::Serving };
        self.write_sparing(move |sql| {
            let changed = sql.change(
                "UPDATE nodes SET state = $1 WHERE id = $2 AND state <> 'gone'",
                params![state.as_str(), node.as_str()],
            )?;
            Ok(changed > 0)
        })
        .await
    }

    /// Enters a room, if no other room has its code and its node is still this incarnation.
    pub(crate) async fn enter_live_room(&self, new: NewLiveRoom) -> Result<EnteredRow, StoreError> {
        self.write_sparing(move |sql| enter(sql, &new)).await
    }

    /// Where the room with a code is.
    pub(crate) async fn find_live_room(&self, code: &str) -> Result<Option<FoundRoom>, StoreError> {
        let code = code.to_owned();
        self.read(move |sql| {
            let mut rows = sql.rows(
                concat!(
                    "SELECT ",
                    listing!(),
                    ", encode(r.uid, 'hex'), r.term, r.incarnation, r.address, (n.id IS NOT NULL)::int::bigint
                     FROM live_rooms r LEFT JOIN nodes n ON ",
                    is_of_serving!("r"),
                    " WHERE r.code = $1"
                ),
                params![&code],
            )?;
            rows.first_mut().map(found).transpose()
        })
        .await
    }

    /// The rows of a node's incarnation.
    pub(crate) async fn live_rooms_of(&self, owner: &Owner) -> Result<Vec<OwnedRow>, StoreError> {
        let owner = owner.clone();
        self.read(move |sql| {
            let rows = sql.rows(
                concat!("SELECT ", owned!(), " FROM live_rooms WHERE node = $1 AND incarnation = $2"),
                params![&owner.node, owner.incarnation],
            )?;
            rows.into_iter().map(owned).collect()
        })
        .await
    }

    /// The rows with these codes, whatever node has them.
    pub(crate) async fn live_rooms_at(&self, codes: &[String]) -> Result<Vec<OwnedRow>, StoreError> {
        let codes = json!(codes).to_string();
        self.read(move |sql| {
            let rows = sql.rows(
                concat!(
                    "SELECT ",
                    owned!(),
                    " FROM live_rooms WHERE code IN (SELECT jsonb_array_elements_text($1::text::jsonb))"
                ),
                params![&codes],
            )?;
            rows.into_iter().map(owned).collect()
        })
        .await
    }

    /// Takes rooms of a node's earlier incarnation into its present one, each under the next term. Returns how many.
    pub(crate) async fn retake_live_rooms(
        &self,
        owner: &Owner,
        rooms: &[RoomKey],
    ) -> Result<u64, StoreError> {
        let (owner, rooms) = (owner.clone(), as_json(rooms));
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE live_rooms r SET incarnation = $1::bigint, term = r.term + 1
                 FROM jsonb_to_recordset($2::text::jsonb) AS d(code text, uid text, term bigint)
                 WHERE r.code = d.code AND r.uid = decode(d.uid, 'hex') AND r.term = d.term
                     AND r.node = $3 AND r.incarnation < $1::bigint
                     AND EXISTS (SELECT 1 FROM nodes n
                         WHERE n.id = $3 AND n.incarnation = $1::bigint AND n.state <> 'gone')",
                params![owner.incarnation, &rooms, &owner.node],
            )
        })
        .await
    }

    /// Deletes the rows of rooms that a node has no more. Returns how many there were.
    pub(crate) async fn leave_live_rooms(&self, node: &str, rooms: &[RoomKey]) -> Result<u64, StoreError> {
        let (node, rooms) = (node.to_owned(), as_json(rooms));
        self.write_sparing(move |sql| {
            sql.change(
                "DELETE FROM live_rooms r
                 USING jsonb_to_recordset($1::text::jsonb) AS d(code text, uid text, term bigint)
                 WHERE r.code = d.code AND r.uid = decode(d.uid, 'hex') AND r.term = d.term AND r.node = $2",
                params![&rooms, &node],
            )
        })
        .await
    }

    /// Changes what is listed of a node's rooms, and who is in them. Returns how many of them it still has.
    pub(crate) async fn list_live_rooms_as(
        &self,
        owner: &Owner,
        rooms: &[ListedRoom],
    ) -> Result<u64, StoreError> {
        let entry = |(key, counts, roster): &ListedRoom| {
            let Counts { members, away, players, spectators } = counts;
            let mut entry = key.to_json();
            entry["members"] = (*members).into();
            entry["away"] = (*away).into();
            entry["players"] = (*players).into();
            entry["spectators"] = (*spectators).into();
            if let Some(StoredRoster { bytes, host, epoch }) = roster {
                entry["roster"] = HEXLOWER.encode(bytes).into();
                entry["host"] = (*host).into();
                entry["epoch"] = (*epoch).into();
            }
            entry
        };
        let rooms = Value::Array(rooms.iter().map(entry).collect()).to_string();
        let owner = owner.clone();
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE live_rooms r
                 SET members = d.members, away = d.away, players = d.players, spectators = d.spectators,
                     roster = COALESCE(decode(d.roster, 'hex'), r.roster), host = COALESCE(d.host, r.host),
                     epoch = COALESCE(d.epoch, r.epoch)
                 FROM jsonb_to_recordset($1::text::jsonb) AS d(code text, uid text, term bigint,
                     members bigint, away bigint, players bigint, spectators bigint, roster text, host bigint,
                     epoch bigint)
                 WHERE r.code = d.code AND r.uid = decode(d.uid, 'hex') AND r.term = d.term
                     AND r.node = $2 AND r.incarnation = $3",
                params![&rooms, &owner.node, owner.incarnation],
            )
        })
        .await
    }

    /// The nodes and incarnations that have rows.
    pub(crate) async fn live_room_owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.read(|sql| {
            let rows = sql.rows("SELECT DISTINCT node, incarnation FROM live_rooms", params![])?;
            rows.into_iter()
                .map(|mut row| Ok(Owner { node: row.text(0)?, incarnation: row.number(1)? }))
                .collect()
        })
        .await
    }

    /// Deletes rows of an incarnation that is over. Returns how many; there may be more.
    pub(crate) async fn forget_live_rooms(&self, owner: &Owner) -> Result<u64, StoreError> {
        let owner = owner.clone();
        self.write_sparing(move |sql| {
            sql.change(
                concat!(
                    "DELETE FROM live_rooms WHERE (code, term) IN (
                         SELECT r.code, r.term FROM live_rooms r WHERE r.node = $1 AND r.incarnation = $2
                             AND NOT EXISTS (SELECT 1 FROM nodes n WHERE ",
                    is_of_serving!("r"),
                    ") LIMIT $3)"
                ),
                params![&owner.node, owner.incarnation, SWEEP],
            )
        })
        .await
    }

    /// Lists rooms of nodes that serve. Examines so many rooms at most: a page may have none although more follow.
    pub(crate) async fn listed_live_rooms(&self, query: LiveQuery) -> Result<LivePage, StoreError> {
        self.read(move |sql| listed(sql, &query)).await
    }
}

/// Whether a token has opened a room, at whatever node.
fn is_used(sql: &mut dyn Sql, token: &UsedToken) -> Done<bool> {
    let digest = HEXLOWER.encode(&token.digest);
    let rows = sql.rows(
        concat!("SELECT digest FROM used_tokens WHERE digest = $1 AND forget_us > ", now_us!()),
        params![&digest],
    )?;
    Ok(!rows.is_empty())
}

/// Remembers a token while it could be good, and forgets a few that are not.
fn use_up(sql: &mut dyn Sql, token: &UsedToken) -> Done<()> {
    let digest = HEXLOWER.encode(&token.digest);
    let remember_us = u64::try_from(token.remember.as_micros()).unwrap_or(u64::MAX);
    sql.change(
        concat!(
            "DELETE FROM used_tokens WHERE digest IN (
                 SELECT digest FROM used_tokens WHERE forget_us <= ",
            now_us!(),
            " ORDER BY forget_us LIMIT $1)"
        ),
        params![FORGOTTEN],
    )?;
    sql.change(
        concat!(
            "INSERT INTO used_tokens (digest, forget_us) VALUES ($1, ",
            now_us!(),
            " + $2::bigint) ON CONFLICT (digest) DO UPDATE SET forget_us = excluded.forget_us"
        ),
        params![&digest, remember_us],
    )?;
    Ok(())
}

/// Nodes' commits take turns, so what is read here holds until the end.
fn enter(sql: &mut dyn Sql, new: &NewLiveRoom) -> Done<EnteredRow> {
    let is_used = new.token.as_ref().map_or(Ok(false), |token| is_used(sql, token))?;
    let entered = if is_used { 0 } else { insert(sql, new)? };
    if entered > 0 {
        new.token.iter().try_for_each(|token| use_up(sql, token))?;
        return Ok(EnteredRow::Done);
    }
    // The answer to an earlier try may have been lost.
    let mut rows =
        sql.rows("SELECT encode(uid, 'hex') FROM live_rooms WHERE code = $1", params![&new.code])?;
    let uid = rows.first_mut().map(|row| row.text(0)).transpose()?;
    Ok(match uid {
        Some(uid) if uid == new.uid => EnteredRow::Done,
        _ if is_used => EnteredRow::Used,
        Some(_) => EnteredRow::Taken,
        None => EnteredRow::Fenced,
    })
}

fn insert(sql: &mut dyn Sql, new: &NewLiveRoom) -> Done<u64> {
    sql.change(
        concat!(
            "INSERT INTO live_rooms (code, uid, term, node, incarnation, address, app, environment, kind, label,
             has_secret, max_players, members, away, players, spectators, opened_us, setup, host)
         SELECT $1::text, decode($2::text, 'hex'), $3::bigint, n.id, n.incarnation, $4::text, $5::text, $6::text,
             $7::text, $8::text, $9::bigint, $10::bigint, 0, 0, 0, 0, ",
            now_us!(),
            ", $11::bytea, $12::bigint
             FROM nodes n WHERE n.id = $13 AND n.incarnation = $14 AND n.state <> 'gone'
             ON CONFLICT (code) DO NOTHING"
        ),
        params![
            &new.code,
            &new.uid,
            new.term,
            &new.address,
            &new.app,
            &new.environment,
            new.kind,
            &new.label,
            new.has_secret,
            new.max_players,
            new.setup.as_deref(),
            new.host,
            &new.owner.node,
            new.owner.incarnation,
        ],
    )
}

fn listed(sql: &mut dyn Sql, query: &LiveQuery) -> Done<LivePage> {
    let any = MatchQuery::default();
    let (kind, matches) = match &query.matches {
        Some(matches) => (Some("match"), matches),
        None => (None, &any),
    };
    let MatchQuery { label, members_min, members_max, has_seat } = matches;
    let after = query.after.as_deref().unwrap_or_default();
    let rows = sql.rows(
        concat!(
            "SELECT ",
            listing!(),
            ", (n.id IS NOT NULL AND ($1::text IS NULL OR r.has_secret = 0 AND r.players >= $2::bigint
                 AND r.players <= $3::bigint AND ($4::bigint = 0 OR r.players < r.max_players)))::int::bigint
             FROM (SELECT * FROM live_rooms WHERE app = $5 AND environment = $6 AND code > $7
                     AND ($1::text IS NULL OR kind = $1::text) AND ($8::text IS NULL OR label = $8::text)
                 ORDER BY code LIMIT $9) r
             LEFT JOIN nodes n ON ",
            is_of_serving!("r"),
            " ORDER BY r.code"
        ),
        params![
            kind,
            *members_min,
            members_max.unwrap_or(i64::MAX.unsigned_abs()),
            *has_seat,
            &query.app,
            &query.environment,
            after,
            label.as_deref(),
            LOOKED_AT_MAX,
        ],
    )?;
    let is_cut = rows.len() as u64 >= LOOKED_AT_MAX;
    let (mut page, mut last) = (Vec::new(), None);
    for mut row in rows {
        if page.len() >= query.limit {
            return Ok((page, last));
        }
        let fits = row.number(13)? > 0;
        let listing = live_listing(&mut row)?;
        last = Some(listing.code.clone());
        if fits {
            page.push(listing);
        }
    }
    Ok((page, last.filter(|_| is_cut)))
}

fn live_listing(row: &mut TableRow) -> Done<LiveListing> {
    Ok(LiveListing {
        code: row.text(0)?,
        node: row.text(1)?,
        app: row.text(2)?,
        environment: row.text(3)?,
        kind: row.text(4)?,
        label: row.text(5)?,
        has_secret: row.number(6)? > 0,
        max_players: row.number(7)?,
        counts: Counts {
            members: row.number(8)?,
            away: row.number(9)?,
            players: row.number(10)?,
            spectators: row.number(11)?,
        },
        opened_ms: row.number(12)? / 1_000,
    })
}

fn found(row: &mut TableRow) -> Done<FoundRoom> {
    let listing = live_listing(row)?;
    let key = RoomKey { code: listing.code.clone(), uid: row.text(13)?, term: row.number(14)? };
    let owner = Owner { node: listing.node.clone(), incarnation: row.number(15)? };
    Ok(FoundRoom { listing, key, owner, address: row.text(16)?, is_served: row.number(17)? > 0 })
}

fn owned(mut row: TableRow) -> Done<OwnedRow> {
    Ok(OwnedRow {
        key: RoomKey { code: row.text(0)?, uid: row.text(1)?, term: row.number(2)? },
        owner: Owner { node: row.text(3)?, incarnation: row.number(4)? },
        age_us: row.signed(5)?.max(0).unsigned_abs(),
    })
}

fn as_json(rooms: &[RoomKey]) -> String {
    Value::Array(rooms.iter().map(RoomKey::to_json).collect()).to_string()
}

#[cfg(test)]
mod tests;
