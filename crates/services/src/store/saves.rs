//! Saves of players, in slots, with the versions before.

use super::Store;
use super::accounts::must_exist;
use super::definitions::name;
use super::error::StoreError;
use super::holdings::{Charge, charge};
use super::ids::AccountId;
use super::limits::Limits;
use super::sql::{Done, Sql, TableRow, params};
use super::types::{PAGE_BYTES_MAX, Page, check_size, check_text};
use parlor_server::realm::Realm;
use parlor_social::limits::{
    BEFORE_MAX, SAVE_BYTES_MAX, SAVE_DESCRIPTION_BYTES_MAX, SAVE_TITLE_BYTES_MAX, SLOTS_MAX,
};
use parlor_social::{KeptSave, Name, Replaces, SaveChange, SaveRefused, remove_save, write_save};

/// Bytes that a row is counted with, beside its texts and its body.
const ROW_BYTES: u64 = 128;
/// Most rows of one account.
const ROWS_MAX: usize = SLOTS_MAX + BEFORE_MAX;

/// A save to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSave {
    /// Its slot.
    pub slot: Name,
    /// Its title, for players; may be empty.
    pub title: String,
    /// Its description, for players; may be empty.
    pub description: String,
    /// The name of the device that wrote it; may be empty.
    pub device: String,
    /// What the game saves.
    pub body: Vec<u8>,
}

/// A stored save without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveInfo {
    /// Its slot.
    pub slot: Name,
    /// Its version. No version of an account is given twice.
    pub version: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// When another one took its place, or when it was removed; `None` for what is in the slot.
    pub replaced_ms: Option<u64>,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The device that wrote it.
    pub device: String,
    /// Bytes of its body.
    pub size: u64,
}

/// The outcome of a write or a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// Done. A removed save has the time of its removal.
    Done(SaveInfo),
    /// The slot has the same save already, for example because the request came twice.
    Same(SaveInfo),
    /// Refused, because of what the slot has.
    Refused(SaveRefused, Option<SaveInfo>),
}

impl Store {
    /// Writes a save. What it replaces stays as a version before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if a text or the body is too long; [`StoreError::Missing`] without the account;
    /// [`StoreError::Full`]; [`StoreError::Quota`].
    pub async fn put_save(
        &self,
        realm: &Realm,
        account: &AccountId,
        save: NewSave,
        replaces: Replaces,
        now_ms: u64,
    ) -> Result<SaveOutcome, StoreError> {
        check_size("the save", save.body.len(), SAVE_BYTES_MAX)?;
        for (what, text, most) in [
            ("the save's title", &save.title, SAVE_TITLE_BYTES_MAX),
            ("the save's description", &save.description, SAVE_DESCRIPTION_BYTES_MAX),
            ("the device's name", &save.device, SAVE_TITLE_BYTES_MAX),
        ] {
            check_text(what, text)?;
            check_size(what, text.len(), most)?;
        }
        let (realm, account, limits) = (realm.clone(), account.clone(), self.limits());
        self.write(save.body.len(), move |sql| put(sql, (&realm, &account), &save, replaces, now_ms, &limits))
            .await
    }

    /// Removes what a slot has; with `version`, only that. It stays as a version before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn remove_save(
        &self,
        realm: &Realm,
        account: &AccountId,
        slot: &Name,
        version: Option<u64>,
        now_ms: u64,
    ) -> Result<SaveOutcome, StoreError> {
        let (realm, account, slot) = (realm.clone(), account.clone(), slot.clone());
        self.write_sparing(move |sql| remove(sql, (&realm, &account), &slot, version, now_ms)).await
    }

    /// What an account's slots have, ordered by their names.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn saves(&self, realm: &Realm, account: &AccountId) -> Result<Vec<SaveInfo>, StoreError> {
        let mut all = self.all_saves(realm, account).await?;
        all.retain(|save| save.replaced_ms.is_none());
        all.sort_by(|one, other| one.slot.cmp(&other.slot));
        Ok(all)
    }

    /// The versions of a slot before the present one, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn saves_before(
        &self,
        realm: &Realm,
        account: &AccountId,
        slot: &Name,
    ) -> Result<Vec<SaveInfo>, StoreError> {
        let mut all = self.all_saves(realm, account).await?;
        all.retain(|save| save.slot == *slot && save.replaced_ms.is_some());
        all.reverse();
        Ok(all)
    }

    /// A save with its body: what the slot has, or that version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn save(
        &self,
        realm: &Realm,
        account: &AccountId,
        slot: &Name,
        version: Option<u64>,
    ) -> Result<Option<(SaveInfo, Vec<u8>)>, StoreError> {
        let (realm, account, slot) = (realm.clone(), account.clone(), slot.clone());
        self.read(move |sql| {
            let mut rows = match version {
                None => sql.rows(
                    "SELECT slot, version, at_ms, replaced_ms, title, description, device, size, body FROM saves
                     WHERE realm = $1 AND account = $2 AND slot = $3 AND replaced_ms IS NULL",
                    params![&realm, &account, slot.as_str()],
                )?,
                Some(version) => sql.rows(
                    "SELECT slot, version, at_ms, replaced_ms, title, description, device, size, body FROM saves
                     WHERE realm = $1 AND account = $2 AND slot = $3 AND version = $4",
                    params![&realm, &account, slot.as_str(), version],
                )?,
            };
            rows.first_mut().map(|row| Ok((read(row)?, row.bytes(8)?))).transpose()
        })
        .await
    }

    /// All saves of an account with their bodies, by version, for an export.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn saves_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        after: Option<u64>,
    ) -> Result<Page<(SaveInfo, Vec<u8>)>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT slot, version, at_ms, replaced_ms, title, description, device, size, body FROM saves
                 WHERE realm = $1 AND account = $2 AND version > $3 ORDER BY version",
                params![&realm, &account, after.unwrap_or(0)],
                PAGE_BYTES_MAX,
            )?;
            let items: Vec<(SaveInfo, Vec<u8>)> = part
                .rows
                .into_iter()
                .map(|mut row| Ok((read(&mut row)?, row.bytes(8)?)))
                .collect::<Done<_>>()?;
            let next = items.last().filter(|_| part.is_cut).map(|(save, _)| save.version.to_string());
            Ok(Page { items, next })
        })
        .await
    }

    async fn all_saves(&self, realm: &Realm, account: &AccountId) -> Result<Vec<SaveInfo>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| Ok(all(sql, &realm, &account)?.into_iter().map(|(save, _)| save).collect()))
            .await
    }
}

/// Reads a save from the first eight columns.
fn read(row: &mut TableRow) -> Done<SaveInfo> {
    let slot = name(row, 0)?;
    Ok(SaveInfo {
        slot,
        version: row.number(1)?,
        at_ms: row.number(2)?,
        replaced_ms: row.optional_number(3)?,
        title: row.text(4)?,
        description: row.text(5)?,
        device: row.text(6)?,
        size: row.number(7)?,
    })
}

/// All versions of an account with the bytes that they are counted with, by version.
fn all(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<Vec<(SaveInfo, u64)>> {
    let rows = sql.rows(
        "SELECT slot, version, at_ms, replaced_ms, title, description, device, size, counted FROM saves
         WHERE realm = $1 AND account = $2 ORDER BY version LIMIT $3",
        params![realm, account, ROWS_MAX],
    )?;
    rows.into_iter().map(|mut row| Ok((read(&mut row)?, row.number(8)?))).collect()
}

fn judged(all: &[(SaveInfo, u64)]) -> Vec<KeptSave> {
    let kept = |(save, counted): &(SaveInfo, u64)| KeptSave {
        version: save.version,
        slot: save.slot.clone(),
        bytes: *counted,
        is_current: save.replaced_ms.is_none(),
    };
    all.iter().map(kept).collect()
}

fn put(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    save: &NewSave,
    replaces: Replaces,
    now_ms: u64,
    limits: &Limits,
) -> Done<SaveOutcome> {
    must_exist(sql, realm, account)?;
    let all = all(sql, realm, account)?;
    let current =
        all.iter().map(|(info, _)| info).find(|info| info.slot == save.slot && info.replaced_ms.is_none());
    if let Some(current) = current
        && is_same(sql, (realm, account), current, save)?
    {
        return Ok(SaveOutcome::Same(current.clone()));
    }
    let texts = save.title.len() + save.description.len() + save.device.len() + save.slot.as_str().len();
    let counted = (save.body.len() as u64).saturating_add(texts as u64).saturating_add(ROW_BYTES);
    let change = match write_save(&judged(&all), &save.slot, replaces, counted) {
        Ok(change) => change,
        Err(why) => return Ok(SaveOutcome::Refused(why, current.cloned())),
    };
    let newest = newest(sql, realm, account)?;
    // The quota judges before anything is changed.
    charge(sql, realm, account.as_str(), bytes(change.growth), Some(limits))?;
    apply(sql, (realm, account), &change, now_ms)?;
    let (version, size) = (newest + 1, save.body.len() as u64);
    sql.later(
        "INSERT INTO save_versions (realm, account, newest) VALUES ($1, $2, $3)
         ON CONFLICT (realm, account) DO UPDATE SET newest = $3",
        params![realm, account, version],
    )?;
    sql.change(
        "INSERT INTO saves (realm, account, version, slot, at_ms, title, description, device, size, counted, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        params![
            realm,
            account,
            version,
            save.slot.as_str(),
            now_ms,
            &save.title,
            &save.description,
            &save.device,
            size,
            counted,
            &save.body
        ],
    )?;
    let NewSave { slot, title, description, device, .. } = save.clone();
    Ok(SaveOutcome::Done(SaveInfo {
        slot,
        version,
        at_ms: now_ms,
        replaced_ms: None,
        title,
        description,
        device,
        size,
    }))
}

/// Whether the slot has exactly this save. Its body is read only if all else is the same.
fn is_same(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    current: &SaveInfo,
    save: &NewSave,
) -> Done<bool> {
    let told = (&current.title, &current.description, &current.device, current.size);
    if told != (&save.title, &save.description, &save.device, save.body.len() as u64) {
        return Ok(false);
    }
    let mut rows = sql.rows(
        "SELECT body FROM saves WHERE realm = $1 AND account = $2 AND version = $3",
        params![realm, account, current.version],
    )?;
    rows.first_mut().map_or(Ok(false), |row| Ok(row.bytes(0)? == save.body))
}

fn remove(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    slot: &Name,
    version: Option<u64>,
    now_ms: u64,
) -> Done<SaveOutcome> {
    let all = all(sql, realm, account)?;
    let current =
        all.iter().map(|(info, _)| info).find(|info| info.slot == *slot && info.replaced_ms.is_none());
    match (remove_save(&judged(&all), slot, version), current) {
        (Ok(change), Some(current)) => {
            charge(sql, realm, account.as_str(), bytes(change.growth), None)?;
            apply(sql, (realm, account), &change, now_ms)?;
            Ok(SaveOutcome::Done(SaveInfo { replaced_ms: Some(now_ms), ..current.clone() }))
        }
        (Ok(_), None) => Ok(SaveOutcome::Refused(SaveRefused::Empty, None)),
        (Err(why), current) => Ok(SaveOutcome::Refused(why, current.cloned())),
    }
}

fn apply(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    change: &SaveChange,
    now_ms: u64,
) -> Done<()> {
    if let Some(version) = change.displaced {
        sql.later(
            "UPDATE saves SET replaced_ms = $1 WHERE realm = $2 AND account = $3 AND version = $4",
            params![now_ms, realm, account, version],
        )?;
    }
    for version in &change.forgotten {
        sql.later(
            "DELETE FROM saves WHERE realm = $1 AND account = $2 AND version = $3",
            params![realm, account, *version],
        )?;
    }
    Ok(())
}

fn newest(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    let mut rows = sql.rows(
        "SELECT newest FROM save_versions WHERE realm = $1 AND account = $2",
        params![realm, account],
    )?;
    rows.first_mut().map_or(Ok(0), |row| row.number(0))
}

fn bytes(save_bytes: i64) -> Charge {
    Charge { save_bytes, ..Charge::default() }
}

/// Deletes all saves of an account. Returns their number.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    let counted: u64 = all(sql, realm, account)?.iter().map(|(_, counted)| *counted).sum();
    if counted > 0 {
        let refund = i64::try_from(counted).unwrap_or(i64::MAX).saturating_neg();
        charge(sql, realm, account.as_str(), bytes(refund), None)?;
    }
    sql.later("DELETE FROM save_versions WHERE realm = $1 AND account = $2", params![realm, account])?;
    sql.change("DELETE FROM saves WHERE realm = $1 AND account = $2", params![realm, account])
}
