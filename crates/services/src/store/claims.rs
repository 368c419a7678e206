//! Claims of live rooms: a node takes a room whose owner is dead, to reopen it. PostgreSQL's alone.

use super::Store;
use super::cluster::{Owner, RoomKey};
use super::error::StoreError;
use super::sql::{Done, Sql, TableRow, is_of_serving, now_us, params};
use parlor_server::realm::Realm;

/// The condition that the owner of a row is dead: its incarnation is over, or its lease is.
macro_rules! is_dead {
    () => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM nodes n WHERE ",
            is_of_serving!("r"),
            " AND n.lease_until >= ",
            now_us!(),
            ")"
        )
    };
}

/// A claim, as its pass has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoomClaim {
    pub(crate) code: String,
    /// In hexadecimal digits.
    pub(crate) uid: String,
    /// The term that the member knows.
    pub(crate) term: u64,
    pub(crate) member: u64,
    /// The epoch of which the member is the host.
    pub(crate) hosts: Option<u64>,
    /// The game's realm and the user of the member's token there.
    pub(crate) user: Option<(Realm, String)>,
}

/// A row of which a seat is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedRow {
    pub(crate) key: RoomKey,
    pub(crate) owner: Owner,
    pub(crate) address: String,
    pub(crate) app: String,
    pub(crate) environment: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) has_secret: bool,
    pub(crate) max_players: u64,
    pub(crate) host: Option<u64>,
    /// Whether its owner is dead.
    pub(crate) is_dead: bool,
    /// Whether it can be reopened at all, and by this member.
    pub(crate) outlives: bool,
    pub(crate) may_reopen: bool,
    /// Whether the member's user is banned.
    pub(crate) is_banned: bool,
}

/// A room that a node has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenRoom {
    pub(crate) term: u64,
    pub(crate) setup: Vec<u8>,
    /// Empty if it was never written.
    pub(crate) roster: Vec<u8>,
    /// Empty unless the room has moved here and was not taken yet.
    pub(crate) snapshot: Vec<u8>,
}

impl Store {
    /// The row of a claimed room; `None` if the room is over.
    pub(crate) async fn claimed_room(&self, claim: &RoomClaim) -> Result<Option<ClaimedRow>, StoreError> {
        let claim = claim.clone();
        self.read(move |sql| {
            let (realm, user) = claim.user.as_ref().map(|(realm, user)| (realm, user.as_str())).unzip();
            let mut rows = sql.rows(
                concat!(
                    "SELECT r.code, encode(r.uid, 'hex'), r.term, r.node, r.incarnation, r.address, r.app,
                         r.environment, r.kind, r.label, r.has_secret, r.max_players, r.host, (",
                    is_dead!(),
                    ")::int::bigint, (r.setup IS NOT NULL)::int::bigint,
                     (r.host IS NULL OR r.host = $1 OR COALESCE(r.epoch < $2::bigint, FALSE)
                         OR r.snapshot IS NOT NULL)::int::bigint,
                     EXISTS (SELECT 1 FROM bans b WHERE b.realm = $3::text AND b.account = $4::text
                         AND (b.until_ms IS NULL OR b.until_ms > ",
                    now_us!(),
                    " / 1000))::int::bigint
                     FROM live_rooms r WHERE r.code = $5 AND r.uid = decode($6::text, 'hex')"
                ),
                params![claim.member, claim.hosts, realm, user, &claim.code, &claim.uid],
            )?;
            rows.first_mut().map(claimed).transpose()
        })
        .await
    }

    /// Makes a node the owner of a room whose owner is dead, or of one that it owns and does not have. `None` if the
    /// row has changed since it was read.
    pub(crate) async fn claim_live_room(
        &self,
        claim: &RoomClaim,
        seen: &RoomKey,
        owner: &Owner,
        address: &str,
    ) -> Result<Option<TakenRoom>, StoreError> {
        let (claim, seen, owner, address) = (claim.clone(), seen.clone(), owner.clone(), address.to_owned());
        self.write_sparing(move |sql| take(sql, &claim, &seen, &owner, &address)).await
    }
}

fn take(
    sql: &mut dyn Sql,
    claim: &RoomClaim,
    seen: &RoomKey,
    owner: &Owner,
    address: &str,
) -> Done<Option<TakenRoom>> {
    let mut rows = sql.rows(
        concat!(
            "UPDATE live_rooms r SET node = $1::text, incarnation = $2::bigint, address = $3, term = r.term + 1,
                 host = CASE WHEN r.host IS NULL OR r.snapshot IS NOT NULL THEN r.host ELSE $4::bigint END,
                 snapshot = NULL, moved_us = ",
            now_us!(),
            "
             FROM (SELECT code, snapshot FROM live_rooms WHERE code = $5 FOR UPDATE) took
             WHERE r.code = took.code AND r.uid = decode($6::text, 'hex') AND r.term = $7
                 AND r.setup IS NOT NULL
                 AND (r.host IS NULL OR r.host = $4::bigint OR r.epoch < $8::bigint OR r.snapshot IS NOT NULL)
                 AND (r.node = $1::text AND r.incarnation = $2::bigint OR ",
            is_dead!(),
            ") AND EXISTS (SELECT 1 FROM nodes m
                 WHERE m.id = $1::text AND m.incarnation = $2::bigint AND m.state <> 'gone')
             RETURNING r.term, r.setup, r.roster, took.snapshot"
        ),
        params![
            &owner.node,
            owner.incarnation,
            address,
            claim.member,
            &claim.code,
            &claim.uid,
            seen.term,
            claim.hosts
        ],
    )?;
    let taken = |row: &mut TableRow| {
        Ok(TakenRoom {
            term: row.number(0)?,
            setup: row.bytes(1)?,
            roster: row.optional_bytes(2)?.unwrap_or_default(),
            snapshot: row.optional_bytes(3)?.unwrap_or_default(),
        })
    };
    rows.first_mut().map(taken).transpose()
}

fn claimed(row: &mut TableRow) -> Done<ClaimedRow> {
    Ok(ClaimedRow {
        key: RoomKey { code: row.text(0)?, uid: row.text(1)?, term: row.number(2)? },
        owner: Owner { node: row.text(3)?, incarnation: row.number(4)? },
        address: row.text(5)?,
        app: row.text(6)?,
        environment: row.text(7)?,
        kind: row.text(8)?,
        label: row.text(9)?,
        has_secret: row.number(10)? > 0,
        max_players: row.number(11)?,
        host: row.optional_number(12)?,
        is_dead: row.number(13)? > 0,
        outlives: row.number(14)? > 0,
        may_reopen: row.number(15)? > 0,
        is_banned: row.number(16)? > 0,
    })
}
