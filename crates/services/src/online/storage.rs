//! The operations on objects. docs/saves.md describes each.

use super::Services;
use super::accounts::{DONE, Done};
use super::budgets::AccountBudgets;
use super::callers::account_id;
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::table::Caller;
use crate::store::{AccountId, Expects, NewObject, Object, ObjectKey, ObjectRefused};
use core::time::Duration;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::limits::{NAME_BYTES_MAX, OBJECT_BATCH_MAX, OBJECT_BYTES_MAX, OBJECTS_MAX};
use parlor_social::{Name, ObjectWriters, Readers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

type Fields = Map<String, Value>;

/// Writes and removals of an account.
const WRITES: Rate = Rate { burst: 20, interval: Duration::from_millis(500) };
/// Those of all accounts of an address: one address can create many.
const WRITES_OF_ADDRESSES: Rates = Rates {
    of_address: Rate { burst: 240, interval: Duration::from_millis(500) },
    of_neighbourhood: Rate { burst: 960, interval: Duration::from_millis(125) },
    what: "objects came",
};

/// What accounts and addresses owe for writes.
pub(super) struct Storage {
    writes: AccountBudgets,
    addresses: Charges,
}

impl Storage {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        let writes = AccountBudgets::new(WRITES, clock, &mut random);
        Storage { writes, addresses: Charges::new(WRITES_OF_ADDRESSES, clock, random) }
    }

    fn charge(&self, caller: &Caller, realm: &Realm, asker: Option<&AccountId>) -> Result<(), Failure> {
        let Some(player) = asker else { return Ok(()) };
        self.writes.charge(realm, player)?;
        self.addresses.charge(caller.origin)
    }
}

/// Which object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectId {
    /// Its collection: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    collection: String,
    /// Its name in the collection.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    name: String,
    /// The account of its owner, the empty text for the game's own. Default: the player's own; the game's own for
    /// operators.
    owner: Option<String>,
}

/// Objects to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadObjects {
    /// Up to 32.
    #[schemars(length(min = 1, max = OBJECT_BATCH_MAX))]
    objects: Vec<ObjectId>,
}

/// An object to write.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteObject {
    /// Its collection: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    collection: String,
    /// Its name in the collection.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    name: String,
    /// The account of its owner, the empty text for the game's own. Default: the player's own; the game's own for
    /// operators.
    owner: Option<String>,
    /// Its value, up to 40 KiB.
    #[schemars(with = "Fields")]
    value: Value,
    /// Who may read it, besides the game's own service. As before if missing; at first `owner`.
    readers: Option<Readers>,
    /// Who may write it, besides the game's own service, which alone may say this. As before if missing; at first
    /// `owner`.
    writers: Option<ObjectWriters>,
    /// The version that it replaces, and no other; 0 if there must be none.
    version: Option<u64>,
}

/// Objects to write, all or none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteObjects {
    /// Up to 32.
    #[schemars(length(min = 1, max = OBJECT_BATCH_MAX))]
    objects: Vec<WriteObject>,
}

/// An object to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveObject {
    /// Its collection.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    collection: String,
    /// Its name in the collection.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    name: String,
    /// The account of its owner, the empty text for the game's own. Default: the player's own; the game's own for
    /// operators.
    owner: Option<String>,
    /// The version that is removed, and no other.
    version: Option<u64>,
}

/// Objects to remove, all or none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveObjects {
    /// Up to 32. One that there is not is removed already.
    #[schemars(length(min = 1, max = OBJECT_BATCH_MAX))]
    objects: Vec<RemoveObject>,
}

/// Which objects.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListObjects {
    /// Those of one collection only.
    collection: Option<String>,
    /// The account of their owner, the empty text for the game's own. Default: the player's own; the game's own for
    /// operators.
    owner: Option<String>,
    /// What the last part gave as `next`.
    after: Option<String>,
}

/// Objects.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ObjectList {
    /// Those that there are and that may be read.
    objects: Vec<ObjectView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An object.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ObjectView {
    /// Its collection.
    collection: String,
    /// Its name.
    name: String,
    /// The account of its owner, the empty text for the game's own.
    owner: String,
    /// Its version. No version of an owner is given twice.
    version: u64,
    /// When it was written, in milliseconds since 1970.
    changed_ms: u64,
    /// Who may read it.
    readers: Readers,
    /// Who may write it.
    writers: ObjectWriters,
    /// Its value.
    #[schemars(with = "Fields")]
    value: Box<RawValue>,
}

/// What was written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ObjectsWritten {
    /// The version of each, in their order.
    versions: Vec<u64>,
}

/// An object of an export or an answer.
pub(super) fn view(object: Object) -> Result<ObjectView, Failure> {
    let Object { key: ObjectKey { owner, collection, name }, version, changed_ms, readers, writers, body } =
        object;
    let value = serde_json::from_slice(&body)
        .map_err(|error| Failure::defect(&format!("a stored object is no JSON: {error}")))?;
    let owner = owner.map_or(String::new(), |owner| owner.to_string());
    let (collection, name) = (collection.to_string(), name.to_string());
    Ok(ObjectView { collection, name, owner, version, changed_ms, readers, writers, value })
}

/// The caller's realm, and its account if it is a player.
fn asker(services: &Services, caller: &Caller) -> Result<(Realm, Option<AccountId>), Failure> {
    let (realm, account) = services.account_of(caller)?;
    Ok((realm, caller.is_player().then_some(account)))
}

fn owner(asker: Option<&AccountId>, named: Option<&str>, path: &str) -> Result<Option<AccountId>, Failure> {
    match named {
        None => Ok(asker.cloned()),
        Some("") => Ok(None),
        Some(named) => Ok(Some(account_id(named, path)?)),
    }
}

fn key(
    asker: Option<&AccountId>,
    (collection, name, named): (&str, &str, Option<&str>),
    at: usize,
) -> Result<ObjectKey, Failure> {
    let path = |field: &str| format!("objects[{at}].{field}");
    let named_by = |text: &str, field: &str| {
        Name::new(text).map_err(|error| Failure::field(path(field), error.to_string()))
    };
    Ok(ObjectKey {
        owner: owner(asker, named, &path("owner"))?,
        collection: named_by(collection, "collection")?,
        name: named_by(name, "name")?,
    })
}

fn check_count(count: usize) -> Result<(), Failure> {
    if (1..=OBJECT_BATCH_MAX).contains(&count) {
        return Ok(());
    }
    Err(Failure::field("objects", format!("1 to {OBJECT_BATCH_MAX} at once")))
}

pub(super) async fn read(
    services: Services,
    caller: Caller,
    input: ReadObjects,
) -> Result<ObjectList, Failure> {
    let (realm, asker) = asker(&services, &caller)?;
    check_count(input.objects.len())?;
    let one = |(at, id): (usize, &ObjectId)| {
        key(asker.as_ref(), (&id.collection, &id.name, id.owner.as_deref()), at)
    };
    let keys = input.objects.iter().enumerate().map(one).collect::<Result<_, _>>()?;
    let found = services.store().objects(&realm, asker.as_ref(), keys).await?;
    Ok(ObjectList { objects: found.into_iter().map(view).collect::<Result<_, _>>()?, next: None })
}

pub(super) async fn list(
    services: Services,
    caller: Caller,
    input: ListObjects,
) -> Result<ObjectList, Failure> {
    let (realm, asker) = asker(&services, &caller)?;
    let owner = owner(asker.as_ref(), input.owner.as_deref(), "owner")?;
    let collection = input.collection.as_deref().map(Name::new).transpose();
    let collection = collection.map_err(|error| Failure::field("collection", error.to_string()))?;
    let (store, after) = (services.store(), input.after.as_deref());
    let page = store.objects_of(&realm, asker.as_ref(), owner.as_ref(), collection.as_ref(), after).await?;
    Ok(ObjectList { objects: page.items.into_iter().map(view).collect::<Result<_, _>>()?, next: page.next })
}

pub(super) async fn write(
    services: Services,
    caller: Caller,
    input: WriteObjects,
) -> Result<ObjectsWritten, Failure> {
    let (realm, asker) = asker(&services, &caller)?;
    services.storage().charge(&caller, &realm, asker.as_ref())?;
    check_count(input.objects.len())?;
    let mut objects = Vec::with_capacity(input.objects.len());
    let mut keys = BTreeSet::new();
    for (at, object) in input.objects.into_iter().enumerate() {
        let path = |field: &str| format!("objects[{at}].{field}");
        let key = key(asker.as_ref(), (&object.collection, &object.name, object.owner.as_deref()), at)?;
        if !keys.insert(key.clone()) {
            return Err(Failure::field(path("name"), "an object is written once in a request"));
        }
        if asker.is_some() && object.writers.is_some() {
            return Err(Failure::field(path("writers"), "the game's own service says this: leave it out"));
        }
        if asker.is_some() && object.readers == Some(Readers::Server) {
            return Err(Failure::field(path("readers"), "the game's own service says this"));
        }
        if !object.value.is_object() {
            return Err(Failure::field(path("value"), "it must be a JSON object"));
        }
        let body = serde_json::to_vec(&object.value).map_err(|error| Failure::defect(&error.to_string()))?;
        if body.len() > OBJECT_BYTES_MAX {
            let sentence = format!("it has {} bytes, and {OBJECT_BYTES_MAX} are the most", body.len());
            return Err(Failure::new(Kind::TooLarge, "too_large", sentence).at(path("value")));
        }
        let expects = expects(object.version);
        objects.push(NewObject { key, body, readers: object.readers, writers: object.writers, expects });
    }
    let now_ms = services.time().now_ms();
    let written = services.store().put_objects(&realm, asker.as_ref(), objects, now_ms).await?;
    Ok(ObjectsWritten { versions: written.map_err(|(at, why)| refused(at, &why))? })
}

pub(super) async fn remove(
    services: Services,
    caller: Caller,
    input: RemoveObjects,
) -> Result<Done, Failure> {
    let (realm, asker) = asker(&services, &caller)?;
    services.storage().charge(&caller, &realm, asker.as_ref())?;
    check_count(input.objects.len())?;
    let one = |(at, object): (usize, &RemoveObject)| {
        let named = (&*object.collection, &*object.name, object.owner.as_deref());
        let expects = object.version.map_or(Expects::Any, Expects::Version);
        Ok((key(asker.as_ref(), named, at)?, expects))
    };
    let objects = input.objects.iter().enumerate().map(one).collect::<Result<_, Failure>>()?;
    let removed = services.store().remove_objects(&realm, asker.as_ref(), objects).await?;
    removed.map_err(|(at, why)| refused(at, &why))?;
    Ok(DONE)
}

fn expects(version: Option<u64>) -> Expects {
    match version {
        None => Expects::Any,
        Some(0) => Expects::Nothing,
        Some(version) => Expects::Version(version),
    }
}

fn refused(at: usize, why: &ObjectRefused) -> Failure {
    let (kind, code, field, sentence) = match why {
        ObjectRefused::Taken { current } => {
            (Kind::Conflict, "taken", "version", format!("there is one, of version {current}"))
        }
        ObjectRefused::Stale { current: 0 } => {
            (Kind::Conflict, "stale", "version", "there is none: write it with version 0".to_owned())
        }
        ObjectRefused::Stale { current } => {
            let sentence = format!("it has version {current}: read it again");
            (Kind::Conflict, "stale", "version", sentence)
        }
        ObjectRefused::NotYours => {
            (Kind::Forbidden, "not_yours", "name", "this object is not yours to write".to_owned())
        }
        ObjectRefused::TooMany => {
            let sentence = format!("its owner has {OBJECTS_MAX} objects: remove one first (storage.remove)");
            (Kind::Conflict, "quota", "name", sentence)
        }
        ObjectRefused::NoAccount => {
            (Kind::NotFound, "no_such_player", "owner", "there is no such account here".to_owned())
        }
    };
    Failure::new(kind, code, sentence).at(format!("objects[{at}].{field}"))
}
