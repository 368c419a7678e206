//! Objects: what a game stores for its players, by collection and name.

use super::account::{Account, Pending, Question};
use super::lists::escaped;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The objects of a game, from [`Account::storage`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Loadout { tank: String }
/// use parlor::online::NewObject;
/// let storage = account.storage();
/// let heavy = NewObject::new("loadouts", "heavy", &Loadout { tank: "T-9".into() })?.for_everyone();
/// let mut writing = storage.write(&[heavy]);
/// // In each frame:
/// if let Some(versions) = writing.poll() {
///     println!("versions {:?}", versions?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Storage {
    account: Account,
}

/// An object to write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewObject {
    collection: String,
    name: String,
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    readers: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectId {
    collection: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

/// A stored object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Object {
    /// Its collection.
    pub collection: String,
    /// Its name in the collection.
    pub name: String,
    /// The account of its owner; empty for the game's own.
    pub owner: String,
    /// Its version. No version of an owner is given twice.
    pub version: u64,
    /// When it was written, in milliseconds since 1970.
    pub changed_ms: u64,
    /// Its value: a JSON object.
    pub value: Value,
}

#[derive(Deserialize)]
struct Objects {
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Versions {
    versions: Vec<u64>,
}

impl NewObject {
    /// An object of the player, up to 40 KiB as JSON. It replaces the one of this name.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn new(collection: &str, name: &str, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let (collection, name, value) =
            (collection.to_owned(), name.to_owned(), serde_json::to_value(value)?);
        Ok(NewObject { collection, name, value, readers: None, version: None })
    }

    /// Every player may read it.
    #[must_use]
    pub fn for_everyone(self) -> Self {
        NewObject { readers: Some("everyone"), ..self }
    }

    /// The player alone may read it, besides the game's own service.
    #[must_use]
    pub fn for_owner(self) -> Self {
        NewObject { readers: Some("owner"), ..self }
    }

    /// Replaces this version, and no other; 0 if there must be none. Otherwise the server refuses all as `stale` or
    /// `taken`.
    #[must_use]
    pub fn over(self, version: u64) -> Self {
        NewObject { version: Some(version), ..self }
    }
}

impl ObjectId {
    /// An object of the player.
    pub fn own(collection: &str, name: &str) -> Self {
        ObjectId { collection: collection.to_owned(), name: name.to_owned(), owner: None }
    }

    /// An object of another player.
    pub fn of(account: &str, collection: &str, name: &str) -> Self {
        ObjectId { owner: Some(account.to_owned()), ..Self::own(collection, name) }
    }

    /// An object of the game itself.
    pub fn of_game(collection: &str, name: &str) -> Self {
        Self::of("", collection, name)
    }
}

impl Object {
    /// Reads its value.
    ///
    /// # Errors
    /// If it is not of this type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.value)
    }
}

impl Account {
    /// The objects of the game. The server is not asked yet.
    pub fn storage(&self) -> Storage {
        Storage { account: self.clone() }
    }
}

impl Storage {
    /// Writes up to 32 objects of the player, all or none. Gives their versions.
    pub fn write(&self, objects: &[NewObject]) -> Pending<Vec<u64>> {
        let question = Question::Post("/storage".to_owned(), json!({ "objects": objects }));
        self.account.work(|shared| async move { Ok(shared.ask_own::<Versions>(question).await?.versions) })
    }

    /// Reads up to 32 objects. Those that there are not, or that the player may not read, are left out.
    pub fn read(&self, objects: &[ObjectId]) -> Pending<Vec<Object>> {
        let question = Question::Post("/storage/read".to_owned(), json!({ "objects": objects }));
        self.account.work(|shared| async move { Ok(shared.ask_own::<Objects>(question).await?.objects) })
    }

    /// Lists the player's objects in a collection, in the order of their names.
    pub fn list(&self, collection: &str) -> Pending<Vec<Object>> {
        self.account.ask_all(format!("/storage?collection={}", escaped(collection)))
    }

    /// Removes up to 32 objects of the player, all or none.
    pub fn remove(&self, objects: &[ObjectId]) -> Pending<()> {
        let question = Question::Post("/storage/remove".to_owned(), json!({ "objects": objects }));
        self.account.ask_done(question)
    }
}
