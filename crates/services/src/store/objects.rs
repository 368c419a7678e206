//! Objects: what a game stores for players and for itself, by collection and name.

use super::Store;
use super::accounts::must_exist;
use super::definitions::name;
use super::error::StoreError;
use super::holdings::{Charge, charge};
use super::ids::AccountId;
use super::limits::Limits;
use super::sql::{Done, Sql, TableRow, params, unknown_word};
use super::types::{PAGE_BYTES_MAX, Page, check_size};
use parlor_server::realm::Realm;
use parlor_social::limits::{OBJECT_BATCH_MAX, OBJECT_BYTES_MAX, OBJECTS_MAX};
use parlor_social::{Name, ObjectUser, ObjectWriters, Readers};
use std::collections::BTreeMap;

/// Bytes that a row is counted with, beside its texts and its body.
const ROW_BYTES: u64 = 128;

/// Which object. Without an owner it is the game's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its owner.
    pub owner: Option<AccountId>,
    /// Its collection.
    pub collection: Name,
    /// Its name in the collection.
    pub name: Name,
}

/// What a write or a removal expects of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expects {
    /// Nothing.
    #[default]
    Any,
    /// That there is none.
    Nothing,
    /// This version.
    Version(u64),
}

/// An object to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// Which.
    pub key: ObjectKey,
    /// Its value.
    pub body: Vec<u8>,
    /// Who may read it; as before if missing.
    pub readers: Option<Readers>,
    /// Who may write it; as before if missing.
    pub writers: Option<ObjectWriters>,
    /// What it replaces.
    pub expects: Expects,
}

/// A stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Which.
    pub key: ObjectKey,
    /// Its version. No version of an owner is given twice.
    pub version: u64,
    /// When it was written, in milliseconds since 1970.
    pub changed_ms: u64,
    /// Who may read it.
    pub readers: Readers,
    /// Who may write it.
    pub writers: ObjectWriters,
    /// Its value.
    pub body: Vec<u8>,
}

/// Why an object is not written or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectRefused {
    /// There is one, and there shall be none.
    Taken {
        /// Its version.
        current: u64,
    },
    /// It has another version; 0 for none.
    Stale {
        /// Its version.
        current: u64,
    },
    /// The player may not write it.
    NotYours,
    /// Its owner has [`OBJECTS_MAX`] others.
    TooMany,
    /// There is no such account, so nothing would delete its object.
    NoAccount,
}

/// The versions of what was written, or the first object that was refused; then none is written.
pub type ObjectsWritten = Result<Vec<u64>, (usize, ObjectRefused)>;

/// Who that user is to an owner. `None` is the game's own service.
fn user_of(asker: Option<&AccountId>, owner: Option<&AccountId>) -> ObjectUser {
    match (asker, owner) {
        (None, _) => ObjectUser::Server,
        (Some(asker), Some(owner)) if asker == owner => ObjectUser::Owner,
        (Some(_), _) => ObjectUser::Other,
    }
}

impl Store {
    /// Writes objects, all or none, for a player or for the game's own service (`None`).
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for too many or too large ones; [`StoreError::Full`]; [`StoreError::Quota`].
    pub async fn put_objects(
        &self,
        realm: &Realm,
        asker: Option<&AccountId>,
        objects: Vec<NewObject>,
        now_ms: u64,
    ) -> Result<ObjectsWritten, StoreError> {
        check_size("the objects of one write", objects.len(), OBJECT_BATCH_MAX)?;
        for object in &objects {
            check_size("the object", object.body.len(), OBJECT_BYTES_MAX)?;
        }
        let bytes = objects.iter().map(|object| object.body.len()).sum();
        let (realm, asker, limits) = (realm.clone(), asker.cloned(), self.limits());
        self.write(bytes, move |sql| put(sql, &realm, asker.as_ref(), &objects, now_ms, &limits)).await
    }

    /// Removes objects, all or none. One that there is not is removed already, unless a version is expected.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for too many.
    pub async fn remove_objects(
        &self,
        realm: &Realm,
        asker: Option<&AccountId>,
        objects: Vec<(ObjectKey, Expects)>,
    ) -> Result<Result<(), (usize, ObjectRefused)>, StoreError> {
        check_size("the objects of one removal", objects.len(), OBJECT_BATCH_MAX)?;
        let (realm, asker) = (realm.clone(), asker.cloned());
        self.write_sparing(move |sql| remove(sql, &realm, asker.as_ref(), &objects)).await
    }

    /// Reads those of the objects that there are and that the player, or the game's own service (`None`), may read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for too many.
    pub async fn objects(
        &self,
        realm: &Realm,
        asker: Option<&AccountId>,
        keys: Vec<ObjectKey>,
    ) -> Result<Vec<Object>, StoreError> {
        check_size("the objects of one request", keys.len(), OBJECT_BATCH_MAX)?;
        let (realm, asker) = (realm.clone(), asker.cloned());
        self.read(move |sql| {
            let mut found = Vec::new();
            for key in &keys {
                let user = user_of(asker.as_ref(), key.owner.as_ref());
                found.extend(object(sql, &realm, key)?.filter(|object| object.readers.allows(user)));
            }
            Ok(found)
        })
        .await
    }

    /// The objects of an owner that the player, or the game's own service (`None`), may read: ordered by collection and
    /// name, those of one collection only if it is given.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn objects_of(
        &self,
        realm: &Realm,
        asker: Option<&AccountId>,
        owner: Option<&AccountId>,
        collection: Option<&Name>,
        after: Option<&str>,
    ) -> Result<Page<Object>, StoreError> {
        let (from, name) = match after.map(|after| after.split_once('/')) {
            None => ("", ""),
            Some(Some(after)) => after,
            Some(None) => {
                let sentence = "it must be what the part before gave as `next`".to_owned();
                return Err(StoreError::Invalid { what: "after", sentence });
            }
        };
        let user = user_of(asker, owner);
        let owner_text = owner.map_or("", AccountId::as_str).to_owned();
        let (realm, owner, from, name) = (realm.clone(), owner.cloned(), from.to_owned(), name.to_owned());
        let collection = collection.cloned();
        self.read(move |sql| {
            let part = match &collection {
                Some(collection) => sql.rows_within(
                    "SELECT collection, name, version, changed_ms, readers, writers, body FROM objects
                     WHERE realm = $1 AND owner = $2 AND collection = $3 AND name > $4 ORDER BY name",
                    params![&realm, &owner_text, collection.as_str(), &name],
                    PAGE_BYTES_MAX,
                )?,
                None => sql.rows_within(
                    "SELECT collection, name, version, changed_ms, readers, writers, body FROM objects
                     WHERE realm = $1 AND owner = $2 AND (collection, name) > ($3, $4) ORDER BY collection, name",
                    params![&realm, &owner_text, &from, &name],
                    PAGE_BYTES_MAX,
                )?,
            };
            let mut items =
                part.rows.into_iter().map(|mut row| read(&mut row, owner.clone())).collect::<Done<Vec<_>>>()?;
            let last = items.last().filter(|_| part.is_cut);
            let next = last.map(|object| format!("{}/{}", object.key.collection, object.key.name));
            items.retain(|object| object.readers.allows(user));
            Ok(Page { items, next })
        })
        .await
    }
}

/// Reads an object from seven columns.
fn read(row: &mut TableRow, owner: Option<AccountId>) -> Done<Object> {
    let (readers, writers) = (row.text(4)?, row.text(5)?);
    let unknown_readers = || unknown_word("kind of readers", &readers);
    let unknown_writers = || unknown_word("kind of writers", &writers);
    Ok(Object {
        key: ObjectKey { owner, collection: name(row, 0)?, name: name(row, 1)? },
        version: row.number(2)?,
        changed_ms: row.number(3)?,
        readers: Readers::ALL.into_iter().find(|it| it.as_str() == readers).ok_or_else(unknown_readers)?,
        writers: ObjectWriters::ALL
            .into_iter()
            .find(|it| it.as_str() == writers)
            .ok_or_else(unknown_writers)?,
        body: row.bytes(6)?,
    })
}

fn text(owner: Option<&AccountId>) -> &str {
    owner.map_or("", AccountId::as_str)
}

fn object(sql: &mut dyn Sql, realm: &Realm, key: &ObjectKey) -> Done<Option<Object>> {
    let mut rows = sql.rows(
        "SELECT collection, name, version, changed_ms, readers, writers, body FROM objects
         WHERE realm = $1 AND owner = $2 AND collection = $3 AND name = $4",
        params![realm, text(key.owner.as_ref()), key.collection.as_str(), key.name.as_str()],
    )?;
    rows.first_mut().map(|row| read(row, key.owner.clone())).transpose()
}

fn counted(key: &ObjectKey, body: &[u8]) -> u64 {
    let texts = key.collection.as_str().len() + key.name.as_str().len() + text(key.owner.as_ref()).len();
    (body.len() as u64).saturating_add(texts as u64).saturating_add(ROW_BYTES)
}

/// An owner's objects: the newest version that was given, and their number.
fn owner_row(sql: &mut dyn Sql, realm: &Realm, owner: &str) -> Done<(u64, u64)> {
    let mut rows = sql.rows(
        "SELECT newest, objects FROM object_owners WHERE realm = $1 AND owner = $2",
        params![realm, owner],
    )?;
    rows.first_mut().map_or(Ok((0, 0)), |row| Ok((row.number(0)?, row.number(1)?)))
}

fn put_owner_row(sql: &mut dyn Sql, realm: &Realm, owner: &str, (newest, objects): (u64, u64)) -> Done<()> {
    sql.later(
        "INSERT INTO object_owners (realm, owner, newest, objects) VALUES ($1, $2, $3, $4)
         ON CONFLICT (realm, owner) DO UPDATE SET newest = $3, objects = $4",
        params![realm, owner, newest, objects],
    )
}

/// What a request does to an owner.
#[derive(Default)]
struct OwnerChange {
    newest: u64,
    objects: u64,
    growth: i64,
}

fn judge(object: Option<&Object>, user: ObjectUser, expects: Expects) -> Result<(), ObjectRefused> {
    // An object that its reader may not see is not there for it either, until it writes over it.
    if !object.map_or(ObjectWriters::Owner, |object| object.writers).allows(user) {
        return Err(ObjectRefused::NotYours);
    }
    let current = object.map_or(0, |object| object.version);
    match expects {
        Expects::Nothing if current > 0 => Err(ObjectRefused::Taken { current }),
        Expects::Version(version) if version != current => Err(ObjectRefused::Stale { current }),
        Expects::Any | Expects::Nothing | Expects::Version(_) => Ok(()),
    }
}

/// Judges all before the first change: a refusal must not affect the other writes of the group.
fn put(
    sql: &mut dyn Sql,
    realm: &Realm,
    asker: Option<&AccountId>,
    objects: &[NewObject],
    now_ms: u64,
    limits: &Limits,
) -> Done<ObjectsWritten> {
    let mut owners: BTreeMap<Option<&AccountId>, OwnerChange> = BTreeMap::new();
    let mut planned = Vec::with_capacity(objects.len());
    for (at, new) in objects.iter().enumerate() {
        let owner = new.key.owner.as_ref();
        let before = object(sql, realm, &new.key)?;
        if let Err(why) = judge(before.as_ref(), user_of(asker, owner), new.expects) {
            return Ok(Err((at, why)));
        }
        let change = match owners.entry(owner) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                match owner.map_or(Ok(()), |owner| must_exist(sql, realm, owner)) {
                    Err(super::sql::Fault::Refused(StoreError::Missing { .. })) => {
                        return Ok(Err((at, ObjectRefused::NoAccount)));
                    }
                    found => found?,
                }
                let (newest, objects) = owner_row(sql, realm, text(owner))?;
                vacant.insert(OwnerChange { newest, objects, growth: 0 })
            }
        };
        let (old, more) = match &before {
            Some(before) => (counted(&before.key, &before.body), 0),
            None => (0, 1),
        };
        change.objects += more;
        if change.objects > OBJECTS_MAX as u64 {
            return Ok(Err((at, ObjectRefused::TooMany)));
        }
        change.newest += 1;
        let counted = counted(&new.key, &new.body);
        change.growth = change.growth.saturating_add(difference(counted, old));
        let readers = new.readers.or(before.as_ref().map(|before| before.readers)).unwrap_or_default();
        let writers = new.writers.or(before.as_ref().map(|before| before.writers)).unwrap_or_default();
        planned.push((new, change.newest, counted, readers, writers));
    }
    for (owner, change) in &owners {
        charge(sql, realm, text(*owner), bytes(change.growth), Some(limits))?;
    }
    for (owner, OwnerChange { newest, objects, .. }) in &owners {
        put_owner_row(sql, realm, text(*owner), (*newest, *objects))?;
    }
    let mut versions = Vec::with_capacity(planned.len());
    for (new, version, counted, readers, writers) in planned {
        let key = &new.key;
        sql.later(
            "INSERT INTO objects (realm, owner, collection, name, version, changed_ms, readers, writers, counted, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (realm, owner, collection, name) DO UPDATE
             SET version = $5, changed_ms = $6, readers = $7, writers = $8, counted = $9, body = $10",
            params![
                realm,
                text(key.owner.as_ref()),
                key.collection.as_str(),
                key.name.as_str(),
                version,
                now_ms,
                readers.as_str(),
                writers.as_str(),
                counted,
                &new.body
            ],
        )?;
        versions.push(version);
    }
    Ok(Ok(versions))
}

fn remove(
    sql: &mut dyn Sql,
    realm: &Realm,
    asker: Option<&AccountId>,
    objects: &[(ObjectKey, Expects)],
) -> Done<Result<(), (usize, ObjectRefused)>> {
    let mut gone = BTreeMap::new();
    for (at, (key, expects)) in objects.iter().enumerate() {
        let before = object(sql, realm, key)?;
        if let Err(why) = judge(before.as_ref(), user_of(asker, key.owner.as_ref()), *expects) {
            return Ok(Err((at, why)));
        }
        // One that is named twice is removed once.
        gone.extend(before.map(|before| (key, counted(key, &before.body))));
    }
    for (key, counted) in gone {
        let owner = text(key.owner.as_ref());
        charge(sql, realm, owner, bytes(difference(0, counted)), None)?;
        let (newest, objects) = owner_row(sql, realm, owner)?;
        put_owner_row(sql, realm, owner, (newest, objects.saturating_sub(1)))?;
        sql.later(
            "DELETE FROM objects WHERE realm = $1 AND owner = $2 AND collection = $3 AND name = $4",
            params![realm, owner, key.collection.as_str(), key.name.as_str()],
        )?;
    }
    Ok(Ok(()))
}

fn difference(new: u64, old: u64) -> i64 {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    signed(new).saturating_sub(signed(old))
}

fn bytes(object_bytes: i64) -> Charge {
    Charge { object_bytes, ..Charge::default() }
}

/// Deletes all objects of an account. Returns their number.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    let mut rows = sql.rows(
        "SELECT CAST(COALESCE(SUM(counted), 0) AS BIGINT) FROM objects WHERE realm = $1 AND owner = $2",
        params![realm, account],
    )?;
    let counted = rows.first_mut().map_or(Ok(0), |row| row.number(0))?;
    if counted > 0 {
        charge(sql, realm, account.as_str(), bytes(difference(0, counted)), None)?;
    }
    sql.later("DELETE FROM object_owners WHERE realm = $1 AND owner = $2", params![realm, account])?;
    sql.change("DELETE FROM objects WHERE realm = $1 AND owner = $2", params![realm, account])
}
