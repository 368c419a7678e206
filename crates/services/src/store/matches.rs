//! Kept matches: the log of each, entry by entry, for reading after the match.
//!
//! Entries are numbered from 0 without gaps. Storing a number twice changes nothing, so a group whose answer
//! was lost can be stored again. A log is bounded; if it ends before its match, it records that and why.

use super::Store;
use super::error::StoreError;
use super::holdings::{Charge, charge};
use super::ids::AccountId;
use super::limits::Limits;
use super::sql::{Done, Fault, RowPage, Sql, TableRow, params};
use super::types::{
    BODY_BYTES_MAX, PAGE_BYTES_MAX, PAGE_MAX, Page, check_size, check_text, invalid, stored_realm,
};
use parlor_server::realm::Realm;

/// Maximum bytes of the bodies of one log. The log ends before the first entry beyond.
pub const MATCH_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes of an entry's body: a message of a match, in its longest encoding.
pub const ENTRY_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Maximum number of entries of one group.
pub const GROUP_ENTRIES_MAX: usize = 1024;
/// Maximum bytes of one page of entries, except for the last one.
pub const LOG_PAGE_BYTES: usize = PAGE_BYTES_MAX;
/// Why a log ended: it reached its own bound.
pub const CUT_FULL: &str = "full";
/// Why a log ended: its account or app reached a quota.
pub const CUT_QUOTA: &str = "quota";

/// The owner's charge for a match beside its entries, and for an entry beside its body.
const MATCH_BYTES: u64 = 1024;
const ENTRY_BYTES: u64 = 128;

/// Maximum number of entries that one transaction deletes, because it delays other writes.
const SWEEP: usize = 256;
/// Maximum bytes of their bodies, except for the last of them.
const SWEEP_BYTES: u64 = 256 << 10;

/// A match to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMatch {
    /// Its id, unique in the realm for all time.
    pub id: String,
    /// Its server: see [`Store::keep_matches_alive`].
    pub server: String,
    /// Its label in lists.
    pub label: String,
    /// When it opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// The account that is charged for it.
    pub owner: Option<AccountId>,
}

/// An event of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchEntry {
    /// Its number, from 0.
    pub number: u64,
    /// Its time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The event.
    pub body: Vec<u8>,
    /// The player that joined; `None` for other events.
    pub player: Option<AccountId>,
}

/// How a match ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchEnding {
    /// Its last member left, or its server said goodbye.
    Ended,
    /// Its server ended without a goodbye: the newest moments may be missing.
    ServerEnded,
}

impl MatchEnding {
    /// Its word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchEnding::Ended => "ended",
            MatchEnding::ServerEnded => "server_ended",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [MatchEnding::Ended, MatchEnding::ServerEnded].into_iter().find(|ending| ending.as_str() == word)
    }
}

/// A kept match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMatch {
    /// Its id.
    pub id: String,
    /// Its label in lists.
    pub label: String,
    /// When it opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When and how it ended. `None` while it goes on.
    pub ended: Option<(u64, MatchEnding)>,
    /// Number of entries of its log.
    pub entries: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Why its log ends before the match; `None` if it does not.
    pub cut: Option<String>,
}

/// The result of storing a group of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// All entries are stored. The log continues with this number.
    Kept(u64),
    /// The log has ended, perhaps within this group. No later entry is stored.
    Over,
    /// The log ended before this group, because this account or its app reached a quota.
    OverQuota(AccountId),
}

impl Store {
    /// Begins the log of a match. Idempotent.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] for the id of another match, [`StoreError::Quota`] if its account has too many
    /// bytes of logs.
    pub async fn open_match(&self, realm: &Realm, new: NewMatch) -> Result<(), StoreError> {
        check_text("the match's id", &new.id)?;
        check_text("the match's label", &new.label)?;
        check_text("the match's server", &new.server)?;
        let (realm, limits) = (realm.clone(), self.limits());
        self.write(0, move |sql| open(sql, &realm, &new, &limits)).await
    }

    /// Appends entries to a log. Skips those that are stored already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such match, [`StoreError::Invalid`] if a number before or among
    /// them is missing.
    pub async fn append_to_match(
        &self,
        realm: &Realm,
        id: &str,
        entries: Vec<MatchEntry>,
    ) -> Result<Appended, StoreError> {
        check_size("the group of entries", entries.len(), GROUP_ENTRIES_MAX)?;
        for entry in &entries {
            check_size("an entry", entry.body.len(), ENTRY_BYTES_MAX)?;
        }
        if entries.windows(2).any(|pair| pair[0].number.checked_add(1) != Some(pair[1].number)) {
            return Err(invalid("the group of entries", "its numbers must follow one another"));
        }
        let bytes = entries.iter().map(|entry| entry.body.len()).sum();
        let (realm, id, limits) = (realm.clone(), id.to_owned(), self.limits());
        self.write(bytes, move |sql| append(sql, &realm, &id, &entries, &limits)).await
    }

    /// Ends the log of a match and records why. Does not change a log that has ended.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if the reason is too long.
    pub async fn cut_match(&self, realm: &Realm, id: &str, why: &str) -> Result<(), StoreError> {
        check_text("the reason", why)?;
        let (realm, id, why) = (realm.clone(), id.to_owned(), why.to_owned());
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE matches SET cut = $1 WHERE realm = $2 AND id = $3 AND cut IS NULL AND ended_ms IS NULL",
                params![&why, &realm, &id],
            )?;
            Ok(())
        })
        .await
    }

    /// Records the end of a match. Idempotent.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn close_match(&self, realm: &Realm, id: &str, ended_ms: u64) -> Result<(), StoreError> {
        let (realm, id) = (realm.clone(), id.to_owned());
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE matches SET ended_ms = $1, ending = $2 WHERE realm = $3 AND id = $4 AND ended_ms IS NULL",
                params![ended_ms, MatchEnding::Ended.as_str(), &realm, &id],
            )?;
            Ok(())
        })
        .await
    }

    /// Records that a server is alive, and ends the open matches of servers that were not since
    /// `seen_since_ms`. Returns how many it ended.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn keep_matches_alive(
        &self,
        server: &str,
        now_ms: u64,
        seen_since_ms: u64,
    ) -> Result<u64, StoreError> {
        check_text("the server", server)?;
        let server = server.to_owned();
        self.write_sparing(move |sql| {
            sql.change(
                "INSERT INTO match_servers (id, seen_ms) VALUES ($1, $2)
                 ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms",
                params![&server, now_ms],
            )?;
            sql.change(
                "DELETE FROM match_servers WHERE id <> $1 AND seen_ms < $2",
                params![&server, seen_since_ms],
            )?;
            sql.change(
                "UPDATE matches SET ended_ms = $1, ending = $2
                 WHERE ended_ms IS NULL AND server NOT IN (SELECT id FROM match_servers)",
                params![now_ms, MatchEnding::ServerEnded.as_str()],
            )
        })
        .await
    }

    /// A kept match.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn kept_match(&self, realm: &Realm, id: &str) -> Result<Option<KeptMatch>, StoreError> {
        let (realm, id) = (realm.clone(), id.to_owned());
        self.read(move |sql| load(sql, &realm, &id)).await
    }

    /// Whether the player was in the match.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn was_in_match(
        &self,
        realm: &Realm,
        id: &str,
        player: &AccountId,
    ) -> Result<bool, StoreError> {
        let (realm, id, player) = (realm.clone(), id.to_owned(), player.clone());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT id FROM match_players WHERE realm = $1 AND id = $2 AND account = $3",
                params![&realm, &id, &player],
            )?;
            Ok(!rows.is_empty())
        })
        .await
    }

    /// Kept matches, the newest first: all of a realm, or those of a player.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn kept_matches(
        &self,
        realm: &Realm,
        player: Option<&AccountId>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<KeptMatch>, StoreError> {
        let (opened_ms, id) = parse_cursor(after)?;
        let (realm, player, limit) = (realm.clone(), player.cloned(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let RowPage { rows, is_cut } = match &player {
                None => sql.rows_within(
                    "SELECT id, label, opened_ms, ended_ms, ending, entries, bytes, cut FROM matches
                     WHERE realm = $1 AND (opened_ms, id) < ($2, $3) ORDER BY opened_ms DESC, id DESC LIMIT $4",
                    params![&realm, opened_ms, &id, limit + 1],
                    PAGE_BYTES_MAX,
                )?,
                Some(player) => sql.rows_within(
                    "SELECT m.id, m.label, m.opened_ms, m.ended_ms, m.ending, m.entries, m.bytes, m.cut
                     FROM match_players p JOIN matches m ON m.realm = p.realm AND m.id = p.id
                     WHERE p.realm = $1 AND p.account = $2 AND (p.opened_ms, p.id) < ($3, $4)
                     ORDER BY p.opened_ms DESC, p.id DESC LIMIT $5",
                    params![&realm, player, opened_ms, &id, limit + 1],
                    PAGE_BYTES_MAX,
                )?,
            };
            let mut items = Vec::with_capacity(rows.len());
            for mut row in rows {
                items.push(read_match(&mut row)?);
            }
            let has_more = is_cut || items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| has_more).map(|last| format!("{}.{}", last.opened_ms, last.id));
            Ok(Page { items, next })
        })
        .await
    }

    /// Entries of a log from this number on, in order: at most `limit`, and about [`LOG_PAGE_BYTES`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn match_log(
        &self,
        realm: &Realm,
        id: &str,
        from: u64,
        limit: usize,
    ) -> Result<Vec<MatchEntry>, StoreError> {
        let (realm, id, limit) = (realm.clone(), id.to_owned(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT number, at_ms, body FROM match_entries
                 WHERE realm = $1 AND id = $2 AND number >= $3 ORDER BY number LIMIT $4",
                params![&realm, &id, from, limit],
                LOG_PAGE_BYTES,
            )?;
            let entry = |mut row: TableRow| {
                let (number, at_ms, body) = (row.number(0)?, row.number(1)?, row.bytes(2)?);
                Ok(MatchEntry { number, at_ms, body, player: None })
            };
            part.rows.into_iter().map(entry).collect()
        })
        .await
    }

    /// Removes a match and its players from all lists. [`sweep_matches`](Self::sweep_matches) deletes its
    /// entries.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such match.
    pub async fn forget_match(&self, realm: &Realm, id: &str) -> Result<(), StoreError> {
        let (realm, id) = (realm.clone(), id.to_owned());
        self.write_sparing(move |sql| forget(sql, &realm, &id)).await
    }

    /// Removes up to `limit` matches of all realms that ended before this time. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn forget_old_matches(&self, ended_before_ms: u64, limit: usize) -> Result<usize, StoreError> {
        let limit = limit.clamp(1, PAGE_MAX);
        self.write_sparing(move |sql| {
            let rows = sql.rows(
                "SELECT realm, id FROM matches WHERE ended_ms < $1 ORDER BY ended_ms LIMIT $2",
                params![ended_before_ms, limit],
            )?;
            let count = rows.len();
            for mut row in rows {
                let (realm, id) = (stored_realm(&row.text(0)?)?, row.text(1)?);
                forget(sql, &realm, &id)?;
            }
            Ok(count)
        })
        .await
    }

    /// Deletes a few entries of a removed match, about 256 KiB. Returns whether more may remain.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_matches(&self) -> Result<bool, StoreError> {
        self.write_sparing(sweep).await
    }
}

fn open(sql: &mut dyn Sql, realm: &Realm, new: &NewMatch, limits: &Limits) -> Done<()> {
    let forgotten =
        sql.rows("SELECT id FROM matches_forgotten WHERE realm = $1 AND id = $2", params![realm, &new.id])?;
    if !forgotten.is_empty() {
        return Err(StoreError::Taken { what: "match's id" }.into());
    }
    let is_new = load(sql, realm, &new.id)?.is_none();
    if let Some(owner) = new.owner.as_ref().filter(|_| is_new) {
        charge(sql, realm, owner.as_str(), of_logs(MATCH_BYTES, 1), Some(limits))?;
        sql.change(
            "INSERT INTO match_owners (realm, id, account) VALUES ($1, $2, $3) ON CONFLICT (realm, id) DO NOTHING",
            params![realm, &new.id, owner],
        )?;
    }
    let made = sql.change(
        "INSERT INTO matches (realm, id, server, label, opened_ms, entries, bytes, cut, ended_ms, ending)
         VALUES ($1, $2, $3, $4, $5, 0, 0, NULL, NULL, NULL) ON CONFLICT (realm, id) DO NOTHING",
        params![realm, &new.id, &new.server, &new.label, new.opened_ms],
    )?;
    if made == 1 {
        return Ok(());
    }
    let same = sql.rows(
        "SELECT id FROM matches WHERE realm = $1 AND id = $2 AND server = $3 AND opened_ms = $4",
        params![realm, &new.id, &new.server, new.opened_ms],
    )?;
    if same.is_empty() { Err(StoreError::Taken { what: "match's id" }.into()) } else { Ok(()) }
}

/// A charge of this many bytes of logs; a refund with the sign -1.
fn of_logs(bytes: u64, sign: i64) -> Charge {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(sign);
    Charge { log_bytes: bytes, ..Charge::default() }
}

fn owner(sql: &mut dyn Sql, realm: &Realm, id: &str) -> Done<Option<AccountId>> {
    let mut rows =
        sql.rows("SELECT account FROM match_owners WHERE realm = $1 AND id = $2", params![realm, id])?;
    rows.first_mut().map(|row| Ok(AccountId::new(&row.text(0)?)?)).transpose()
}

fn append(
    sql: &mut dyn Sql,
    realm: &Realm,
    id: &str,
    entries: &[MatchEntry],
    limits: &Limits,
) -> Done<Appended> {
    let kept = load(sql, realm, id)?.ok_or(StoreError::Missing { what: "match" })?;
    if kept.cut.is_some() || kept.ended.is_some() {
        return Ok(Appended::Over);
    }
    if let Some(owner) = owner(sql, realm, id)? {
        // New entries are charged before any is stored. Entries beyond the log's own limit are not charged.
        let new = entries.iter().filter(|entry| entry.number >= kept.entries);
        let left = MATCH_BYTES_MAX.saturating_sub(kept.bytes);
        let fit = new.scan(0_u64, |bytes, entry| {
            *bytes = bytes.saturating_add(entry.body.len() as u64);
            (*bytes <= left).then_some(entry.body.len() as u64 + ENTRY_BYTES)
        });
        match charge(sql, realm, owner.as_str(), of_logs(fit.sum(), 1), Some(limits)) {
            Ok(()) => {}
            Err(Fault::Refused(StoreError::Quota { .. })) => {
                note(sql, realm, id, kept.entries, kept.bytes, Some(CUT_QUOTA))?;
                return Ok(Appended::OverQuota(owner));
            }
            Err(fault) => return Err(fault),
        }
    }
    let (mut next, mut bytes) = (kept.entries, kept.bytes);
    for entry in entries {
        if entry.number < next {
            continue;
        }
        if entry.number > next {
            let sentence = format!("the log goes on with {next}, and this is {}", entry.number);
            return Err(StoreError::Invalid { what: "the entry's number", sentence }.into());
        }
        let size = u64::try_from(entry.body.len()).unwrap_or(u64::MAX);
        if bytes.saturating_add(size) > MATCH_BYTES_MAX {
            note(sql, realm, id, next, bytes, Some(CUT_FULL))?;
            return Ok(Appended::Over);
        }
        put(sql, realm, id, kept.opened_ms, entry)?;
        (next, bytes) = (next + 1, bytes + size);
    }
    note(sql, realm, id, next, bytes, None)?;
    Ok(Appended::Kept(next))
}

fn put(sql: &mut dyn Sql, realm: &Realm, id: &str, opened_ms: u64, entry: &MatchEntry) -> Done<()> {
    sql.change(
        "INSERT INTO match_entries (realm, id, number, at_ms, body) VALUES ($1, $2, $3, $4, $5)",
        params![realm, id, entry.number, entry.at_ms, &entry.body],
    )?;
    if let Some(player) = &entry.player {
        sql.change(
            "INSERT INTO match_players (realm, account, opened_ms, id) VALUES ($1, $2, $3, $4)
             ON CONFLICT (realm, account, opened_ms, id) DO NOTHING",
            params![realm, player, opened_ms, id],
        )?;
    }
    Ok(())
}

fn note(sql: &mut dyn Sql, realm: &Realm, id: &str, entries: u64, bytes: u64, cut: Option<&str>) -> Done<()> {
    sql.change(
        "UPDATE matches SET entries = $1, bytes = $2, cut = $3 WHERE realm = $4 AND id = $5",
        params![entries, bytes, cut, realm, id],
    )?;
    Ok(())
}

fn load(sql: &mut dyn Sql, realm: &Realm, id: &str) -> Done<Option<KeptMatch>> {
    let mut rows = sql.rows(
        "SELECT id, label, opened_ms, ended_ms, ending, entries, bytes, cut FROM matches WHERE realm = $1 AND id = $2",
        params![realm, id],
    )?;
    rows.first_mut().map(read_match).transpose()
}

fn read_match(row: &mut TableRow) -> Done<KeptMatch> {
    let (id, label, opened_ms) = (row.text(0)?, row.text(1)?, row.number(2)?);
    let (ended_ms, ending) = (row.optional_number(3)?, row.optional_text(4)?);
    let ending = ending.map(|word| {
        MatchEnding::from_word(&word).ok_or_else(|| super::sql::unknown_word("ending of a match", &word))
    });
    let ended = ended_ms.zip(ending.transpose()?);
    let (entries, bytes, cut) = (row.number(5)?, row.number(6)?, row.optional_text(7)?);
    Ok(KeptMatch { id, label, opened_ms, ended, entries, bytes, cut })
}

fn forget(sql: &mut dyn Sql, realm: &Realm, id: &str) -> Done<()> {
    let kept = load(sql, realm, id)?.ok_or(StoreError::Missing { what: "match" })?;
    sql.change("DELETE FROM matches WHERE realm = $1 AND id = $2", params![realm, id])?;
    if let Some(owner) = owner(sql, realm, id)? {
        let bytes = MATCH_BYTES + kept.bytes + ENTRY_BYTES * kept.entries;
        charge(sql, realm, owner.as_str(), of_logs(bytes, -1), None)?;
        sql.change("DELETE FROM match_owners WHERE realm = $1 AND id = $2", params![realm, id])?;
    }
    sql.change("DELETE FROM match_players WHERE realm = $1 AND id = $2", params![realm, id])?;
    sql.change("INSERT INTO matches_forgotten (realm, id) VALUES ($1, $2)", params![realm, id])?;
    Ok(())
}

fn sweep(sql: &mut dyn Sql) -> Done<bool> {
    let mut rows = sql.rows("SELECT realm, id FROM matches_forgotten LIMIT 1", &[])?;
    let Some(row) = rows.first_mut() else { return Ok(false) };
    let (realm, id) = (stored_realm(&row.text(0)?)?, row.text(1)?);
    let rows = sql.rows(
        "SELECT number, CAST(length(body) AS BIGINT) FROM match_entries WHERE realm = $1 AND id = $2
         ORDER BY number LIMIT $3",
        params![&realm, &id, SWEEP],
    )?;
    let (mut last, mut bytes) = (None, 0_u64);
    for mut row in rows {
        if bytes >= SWEEP_BYTES {
            break;
        }
        last = Some(row.number(0)?);
        bytes = bytes.saturating_add(row.number(1)?);
    }
    match last {
        Some(last) => {
            sql.change(
                "DELETE FROM match_entries WHERE realm = $1 AND id = $2 AND number <= $3",
                params![&realm, &id, last],
            )?;
        }
        None => {
            sql.change("DELETE FROM matches_forgotten WHERE realm = $1 AND id = $2", params![&realm, &id])?;
        }
    }
    Ok(true)
}

/// The match before which a page begins. Default: the first page.
fn parse_cursor(after: Option<&str>) -> Result<(u64, String), StoreError> {
    let Some(text) = after else { return Ok((u64::MAX, String::new())) };
    let cursor = text.split_once('.').and_then(|(opened_ms, id)| Some((opened_ms.parse().ok()?, id)));
    let (opened_ms, id) =
        cursor.ok_or_else(|| invalid("`after`", "it must be what the page before gave as `next`"))?;
    check_text("`after`", id)?;
    Ok((opened_ms, id.to_owned()))
}
