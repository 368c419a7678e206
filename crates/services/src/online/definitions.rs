//! What operators define beside boards: statistics, achievements, ladders and queues.

use super::Services;
use super::accounts::{DONE, Done};
use super::boards;
use super::charges::Charges;
use super::failure::{Failure, Kind};
use super::json;
use super::realm_cache::RealmCache;
use super::table::Caller;
use crate::store::{DEFINITION_BYTES_MAX, DefinitionKind, PAGE_BYTES_MAX, StoreError, StoredDefinition};
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::limits::NAME_BYTES_MAX;
use parlor_social::{Achievement, BadDefinition, Keep, Ladder, Name, Queue, Statistic};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

type Object = Map<String, Value>;

/// The definitions of all realms.
pub(super) struct Definitions {
    cache: RealmCache<RealmDefinitions>,
    /// For definitions that players' first writes make: on a server for development.
    pub(super) made: Option<Charges>,
}

/// The definitions of a realm.
#[derive(Clone, Debug, Default)]
pub(super) struct RealmDefinitions {
    pub(super) statistics: BTreeMap<Name, Arc<Statistic>>,
    pub(super) achievements: BTreeMap<Name, Arc<Achievement>>,
    pub(super) ladders: BTreeMap<Name, Arc<Ladder>>,
    pub(super) queues: BTreeMap<Name, Arc<Queue>>,
    /// As they are stored, for operators.
    documents: BTreeMap<(DefinitionKind, Name), Document>,
}

#[derive(Clone, Debug)]
struct Document {
    version: u64,
    text: Arc<RawValue>,
}

/// Something to define.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Define {
    /// Its kind.
    #[schemars(schema_with = "kinds")]
    kind: String,
    /// Its name: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    name: String,
    /// The version that is changed, 0 for what is not defined; any if missing.
    version: Option<u64>,
    /// All of its definition. What players have of it stays.
    #[serde(default)]
    #[schemars(with = "Object")]
    definition: Value,
}

/// What was defined.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DefinedNow {
    /// Counts its definitions, from 1.
    version: u64,
}

/// What is no longer defined.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Undefine {
    /// Its kind.
    #[schemars(schema_with = "kinds")]
    kind: String,
    /// Its name.
    name: String,
}

/// Which part of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDefinitions {
    /// What the last part gave as `next`.
    after: Option<String>,
}

/// A part of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DefinitionList {
    /// In the order of their kinds and names.
    definitions: Vec<DefinitionView>,
    /// What to give as `after` for the next part; missing after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A definition.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DefinitionView {
    /// Its kind.
    #[schemars(schema_with = "kinds")]
    kind: &'static str,
    /// Its name.
    name: String,
    /// Counts its definitions.
    version: u64,
    /// All of it.
    #[schemars(with = "Object")]
    definition: Box<RawValue>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": DefinitionKind::ALL.map(DefinitionKind::as_str) })
}

impl Definitions {
    pub(super) fn new(clock: Clock, made_by_writes: bool, random: impl FnMut() -> u64) -> Self {
        let made = made_by_writes.then(|| Charges::new(boards::MADE, clock, random));
        Definitions { cache: RealmCache::new(), made }
    }

    /// The definitions of a realm.
    pub(super) async fn of(
        &self,
        services: &Services,
        realm: &Realm,
    ) -> Result<Arc<RealmDefinitions>, Failure> {
        self.cache.get(services, realm, read_all(services, realm)).await
    }

    /// Stores a definition, and returns its version. With `made_by`, it is made by a first write, if there is none
    /// yet, and the writer is charged before.
    async fn put(
        &self,
        services: &Services,
        realm: &Realm,
        (kind, name): (DefinitionKind, &Name),
        definition: Value,
        version: Option<u64>,
        made_by: Option<(&Charges, &Caller)>,
    ) -> Result<u64, Failure> {
        let changing = self.cache.change().await;
        let known = self.cache.get_changing(services, realm, read_all(services, realm), &changing).await?;
        if let Some((charges, caller)) = made_by {
            if let Some(document) = known.documents.get(&(kind, name.clone())) {
                // Another write was faster.
                return Ok(document.version);
            }
            charges.charge(caller.origin)?;
        }
        let mut next = known.as_ref().clone();
        let document = next.add(kind, name, definition, 0)?;
        let (now_ms, is_operators) = (services.time().now_ms(), made_by.is_none());
        let bytes = document.get().as_bytes().to_vec();
        let stored = services
            .store()
            .put_definition(realm, (kind, name), bytes, version, (now_ms, is_operators))
            .await;
        let version =
            stored.inspect_err(|error| self.cache.doubt(realm, error)).map_err(|error| match error {
                error @ StoreError::Invalid { .. } => Failure::from(error).at("definition"),
                error => error.into(),
            })?;
        if let Some(document) = next.documents.get_mut(&(kind, name.clone())) {
            document.version = version;
        }
        let next = self.cache.remember(realm, next);
        if kind == DefinitionKind::Queue {
            services.queue_has_changed(realm, name, next.queues.get(name).map(|queue| &**queue));
        }
        Ok(version)
    }

    /// What a player's first write makes, on a server for development. `None` where operators define.
    pub(super) async fn make(
        &self,
        services: &Services,
        caller: &Caller,
        realm: &Realm,
        of: (DefinitionKind, &Name),
        definition: Value,
    ) -> Option<Result<Arc<RealmDefinitions>, Failure>> {
        let charges = self.made.as_ref().filter(|_| caller.is_player())?;
        let put = self.put(services, realm, of, definition, Some(0), Some((charges, caller))).await;
        Some(match put {
            Ok(_) => self.of(services, realm).await,
            Err(failure) => Err(failure),
        })
    }
}

async fn read_all(services: &Services, realm: &Realm) -> Result<RealmDefinitions, Failure> {
    let mut all = RealmDefinitions::default();
    for StoredDefinition { kind, name, version, document } in services.store().definitions(realm).await? {
        let added = json::strict(&document)
            .map_err(|error| Failure::defect(&error.to_string()))
            .and_then(|definition| all.add(kind, &name, definition, version));
        if let Err(failure) = added {
            let error = failure.to_json();
            tracing::error!(kind = kind.as_str(), %name, %error, "a stored definition cannot be read, and does not count");
        }
    }
    Ok(all)
}

/// Reads a definition of one kind.
fn read<T: DeserializeOwned + Serialize, U>(
    definition: Value,
    check: impl FnOnce(&T) -> Result<U, BadDefinition>,
) -> Result<(T, Box<RawValue>), Failure> {
    let document: T = json::read(definition).map_err(|failure| failure.below("definition"))?;
    check(&document)
        .map_err(|error| Failure::field(format!("definition.{}", error.field), error.sentence))?;
    let text =
        serde_json::value::to_raw_value(&document).map_err(|error| Failure::defect(&error.to_string()))?;
    if text.get().len() > DEFINITION_BYTES_MAX {
        let sentence = format!("a definition has at most {DEFINITION_BYTES_MAX} bytes");
        return Err(Failure::new(Kind::TooLarge, "too_large", sentence).at("definition"));
    }
    Ok((document, text))
}

impl RealmDefinitions {
    /// Adds a definition, or replaces the one of this name. Returns it as it is stored.
    fn add(
        &mut self,
        kind: DefinitionKind,
        name: &Name,
        definition: Value,
        version: u64,
    ) -> Result<Arc<RawValue>, Failure> {
        let text = match kind {
            DefinitionKind::Statistic => {
                let (statistic, text) = read(definition, Statistic::check)?;
                self.statistics.insert(name.clone(), Arc::new(statistic));
                text
            }
            DefinitionKind::Achievement => {
                let (achievement, text) = read(definition, Achievement::check)?;
                self.achievements.insert(name.clone(), Arc::new(achievement));
                text
            }
            DefinitionKind::Ladder => {
                let (ladder, text) = read(definition, Ladder::check)?;
                self.ladders.insert(name.clone(), Arc::new(ladder));
                text
            }
            DefinitionKind::Queue => {
                let (queue, text) = read(definition, Queue::check)?;
                self.queues.insert(name.clone(), Arc::new(queue));
                text
            }
        };
        let text: Arc<RawValue> = text.into();
        self.documents.insert((kind, name.clone()), Document { version, text: Arc::clone(&text) });
        Ok(text)
    }

    fn remove(&mut self, kind: DefinitionKind, name: &Name) {
        match kind {
            DefinitionKind::Statistic => drop(self.statistics.remove(name)),
            DefinitionKind::Achievement => drop(self.achievements.remove(name)),
            DefinitionKind::Ladder => drop(self.ladders.remove(name)),
            DefinitionKind::Queue => drop(self.queues.remove(name)),
        }
        self.documents.remove(&(kind, name.clone()));
    }
}

fn which(kind: &str, name: &str) -> Result<(DefinitionKind, Name), Failure> {
    let known = DefinitionKind::from_word(kind).ok_or_else(|| {
        let words = DefinitionKind::ALL.map(DefinitionKind::as_str).join(", ");
        Failure::field("kind", format!("it is one of {words}; boards are defined by admin.define_board"))
    })?;
    Ok((known, Name::new(name).map_err(|error| Failure::field("name", error.to_string()))?))
}

/// What a definition refers to must be there.
async fn must_find_others(
    services: &Services,
    realm: &Realm,
    kind: DefinitionKind,
    definition: &Value,
) -> Result<(), Failure> {
    let named = |field: &str| definition.get(field).and_then(Value::as_str);
    match kind {
        DefinitionKind::Statistic => {
            let Some(board) = named("board") else { return Ok(()) };
            let found = services.boards().find(services, realm, board).await;
            let found = found.map_err(|failure| failure.at("definition.board"))?;
            if found.board.keep == Keep::Sum {
                let sentence =
                    "a board of sums would add the value again and again: it follows as `last` or `best`";
                return Err(Failure::field("definition.board", sentence));
            }
        }
        DefinitionKind::Achievement => {
            let Some(statistic) = named("statistic") else { return Ok(()) };
            let known = services.definitions().of(services, realm).await?;
            if !Name::new(statistic).is_ok_and(|name| known.statistics.contains_key(&name)) {
                let sentence = format!("there is no statistic {statistic:.80}: define it first");
                return Err(Failure::field("definition.statistic", sentence));
            }
        }
        DefinitionKind::Queue => {
            let ladder = definition.pointer("/skill/ladder").and_then(Value::as_str);
            let Some(ladder) = ladder else { return Ok(()) };
            let known = services.definitions().of(services, realm).await?;
            if !Name::new(ladder).is_ok_and(|name| known.ladders.contains_key(&name)) {
                let sentence = format!("there is no ladder {ladder:.80}: define it first");
                return Err(Failure::field("definition.skill.ladder", sentence));
            }
        }
        DefinitionKind::Ladder => {}
    }
    Ok(())
}

pub(super) async fn define(services: Services, caller: Caller, input: Define) -> Result<DefinedNow, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let (kind, name) = which(&input.kind, &input.name)?;
    let definition = if input.definition.is_null() { Object::new().into() } else { input.definition };
    must_find_others(&services, &realm, kind, &definition).await?;
    let definitions = services.definitions();
    let version = definitions.put(&services, &realm, (kind, &name), definition, input.version, None).await?;
    tracing::info!(kind = kind.as_str(), %name, ?realm, %by, version, "a definition was changed");
    Ok(DefinedNow { version })
}

pub(super) async fn undefine(services: Services, caller: Caller, input: Undefine) -> Result<Done, Failure> {
    let (realm, by) = services.account_of(&caller)?;
    let (kind, name) = which(&input.kind, &input.name)?;
    let cache = &services.definitions().cache;
    let changing = cache.change().await;
    let known = cache.get_changing(&services, &realm, read_all(&services, &realm), &changing).await?;
    let gone = services.store().delete_definition(&realm, kind, &name).await;
    gone.inspect_err(|error| cache.doubt(&realm, error)).map_err(|error| match error {
        StoreError::Missing { .. } => {
            let sentence = format!("there is no {} {name}: admin.definitions lists them", kind.as_str());
            Failure::new(Kind::NotFound, "not_found", sentence).at("name")
        }
        error => error.into(),
    })?;
    let mut next = known.as_ref().clone();
    next.remove(kind, &name);
    cache.remember(&realm, next);
    if kind == DefinitionKind::Queue {
        services.queue_has_changed(&realm, &name, None);
    }
    tracing::info!(kind = kind.as_str(), %name, ?realm, %by, "a definition was deleted");
    Ok(DONE)
}

pub(super) async fn list(
    services: Services,
    caller: Caller,
    input: ListDefinitions,
) -> Result<DefinitionList, Failure> {
    let realm = services.realm_of(&caller)?;
    let known = services.definitions().of(&services, &realm).await?;
    let after = match input.after.as_deref().map(|after| after.split_once('/')) {
        None => None,
        Some(Some((kind, name))) => Some(which(kind, name).map_err(|_| bad_after())?),
        Some(None) => return Err(bad_after()),
    };
    let (mut definitions, mut bytes, mut next) = (Vec::new(), 0, None);
    for (key, Document { version, text }) in &known.documents {
        if after.as_ref().is_some_and(|after| key <= after) {
            continue;
        }
        let (kind, name) = key;
        if bytes >= PAGE_BYTES_MAX / 2 {
            next = definitions.last().map(|last: &DefinitionView| format!("{}/{}", last.kind, last.name));
            break;
        }
        bytes += text.get().len() + 2 * NAME_BYTES_MAX;
        let (kind, name, definition) = (kind.as_str(), name.to_string(), (**text).to_owned());
        definitions.push(DefinitionView { kind, name, version: *version, definition });
    }
    Ok(DefinitionList { definitions, next })
}

fn bad_after() -> Failure {
    Failure::field("after", "it must be what the part before gave as `next`")
}
