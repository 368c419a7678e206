//! Saves: what a player keeps in slots, with the versions before.

use super::account::{Account, Pending, Question};
use super::error::OnlineError;
use super::lists::escaped;
use data_encoding::BASE64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

/// The saves of an account's player, from [`Account::saves`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let account = parlor::online::sign_in("play.example.com").account("tanks")?;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Castle { gold: u32 }
/// use parlor::online::Save;
/// let saves = account.saves();
/// let mut writing = saves.set("slot-1", &Castle { gold: 77 }, Save::titled("Castle, day 12"))?;
/// let mut reading = saves.get("slot-1");
/// // In each frame:
/// if let Some(answer) = writing.poll() {
///     println!("saved as version {}", answer?.save.version);
/// }
/// if let Some(answer) = reading.poll() {
///     let castle: Castle = answer?.value()?;
///     println!("{} gold", castle.gold);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Saves {
    account: Account,
}

/// What belongs to a save, and what it may replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Save {
    title: String,
    description: String,
    device: String,
    replaces: Replaces,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Replaces {
    #[default]
    Any,
    Nothing,
    Version(u64),
}

/// A save without what the game saved.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SaveInfo {
    /// Its slot.
    pub slot: String,
    /// Its version. No version of a player is given twice.
    pub version: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The device that wrote it.
    pub device: String,
    /// Bytes of what the game saved.
    pub size: u64,
    /// When another one took its place, or when it was removed; `None` for what is in the slot.
    #[serde(default)]
    pub replaced_ms: Option<u64>,
}

/// A save that was written or removed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Saved {
    /// The save.
    pub save: SaveInfo,
    /// Whether the slot had exactly this already.
    pub again: bool,
}

/// A save.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WholeSave {
    /// The save.
    pub save: SaveInfo,
    /// What the game saved.
    #[serde(deserialize_with = "from_base64")]
    pub bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct List {
    saves: Vec<SaveInfo>,
}

impl Save {
    /// A save with a title for players, up to 256 bytes. It replaces whatever its slot has.
    pub fn titled(title: &str) -> Self {
        Save { title: title.to_owned(), ..Save::default() }
    }

    /// Sets a description for players, up to 1 KiB.
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        Save { description: description.to_owned(), ..self }
    }

    /// Sets the name of this device for players, up to 256 bytes.
    #[must_use]
    pub fn device(self, device: &str) -> Self {
        Save { device: device.to_owned(), ..self }
    }

    /// Replaces this version, and no other. If another device has saved meanwhile, the server refuses it as
    /// `stale`, and [`OnlineError::current_save`] has the other save.
    #[must_use]
    pub fn over(self, version: u64) -> Self {
        Save { replaces: Replaces::Version(version), ..self }
    }

    /// Replaces nothing: the server refuses it as `taken` if the slot has a save.
    #[must_use]
    pub fn into_free_slot(self) -> Self {
        Save { replaces: Replaces::Nothing, ..self }
    }
}

impl WholeSave {
    /// Reads what [`Saves::set`] has saved.
    ///
    /// # Errors
    /// If it is not JSON of this type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.bytes)
    }
}

impl OnlineError {
    /// The save that the slot has instead, if a save was refused as `stale` or `taken`.
    pub fn current_save(&self) -> Option<SaveInfo> {
        SaveInfo::deserialize(self.current.as_ref()?).ok()
    }
}

impl Account {
    /// The saves of the player. The server is not asked yet.
    pub fn saves(&self) -> Saves {
        Saves { account: self.clone() }
    }
}

impl Saves {
    /// Saves a value as JSON, up to 40 KiB. What the slot had stays among the versions
    /// [before](Self::before). A save whose answer is lost is sent again. Those of an account are sent one after
    /// another.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn set(
        &self,
        slot: &str,
        value: &impl Serialize,
        save: Save,
    ) -> Result<Pending<Saved>, serde_json::Error> {
        Ok(self.set_bytes(slot, &serde_json::to_vec(value)?, save))
    }

    /// Saves bytes, as [`set`](Self::set) does.
    pub fn set_bytes(&self, slot: &str, bytes: &[u8], save: Save) -> Pending<Saved> {
        let Save { title, description, device, replaces } = save;
        let mut input = json!({
            "bytes": BASE64.encode(bytes), "title": title, "description": description, "device": device,
        });
        match replaces {
            Replaces::Any => {}
            Replaces::Nothing => input["replace"] = false.into(),
            Replaces::Version(version) => input["version"] = version.into(),
        }
        let question = Question::Post(path(slot, ""), input);
        self.account.work(|shared| async move { shared.ask_until_answered(question).await })
    }

    /// Reads what a slot has. Refused as `no_such_save` if it is free.
    pub fn get(&self, slot: &str) -> Pending<WholeSave> {
        self.account.ask(Question::Get(path(slot, "")))
    }

    /// Reads a version before.
    pub fn get_version(&self, slot: &str, version: u64) -> Pending<WholeSave> {
        self.account.ask(Question::Get(path(slot, &format!("?version={version}"))))
    }

    /// Lists what the slots have, in the order of their names.
    pub fn list(&self) -> Pending<Vec<SaveInfo>> {
        self.infos("/saves".to_owned())
    }

    /// Lists up to four versions of a slot before the present one, the newest first.
    pub fn before(&self, slot: &str) -> Pending<Vec<SaveInfo>> {
        self.infos(path(slot, "/before"))
    }

    /// Removes what a slot has; with `version`, only that. It stays among the versions before.
    pub fn remove(&self, slot: &str, version: Option<u64>) -> Pending<Saved> {
        let input = version.map_or_else(|| json!({}), |version| json!({ "version": version }));
        self.account.ask(Question::Post(path(slot, "/remove"), input))
    }

    fn infos(&self, path: String) -> Pending<Vec<SaveInfo>> {
        let question = Question::Get(path);
        self.account.work(|shared| async move { Ok(shared.ask_own::<List>(question).await?.saves) })
    }
}

fn path(slot: &str, below: &str) -> String {
    format!("/saves/{}{below}", escaped(slot))
}

fn from_base64<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}
