//! The operations on saves. docs/saves.md describes each.

use super::Services;
use super::accounts::Nothing;
use super::budgets::AccountBudgets;
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::table::Caller;
use crate::store::{AccountId, NewSave, SaveInfo, SaveOutcome};
use core::time::Duration;
use data_encoding::BASE64;
use parlor_hub::budget::Rate;
use parlor_server::embed::Clock;
use parlor_server::realm::Realm;
use parlor_social::limits::{
    NAME_BYTES_MAX, SAVE_BYTES_MAX, SAVE_DESCRIPTION_BYTES_MAX, SAVE_TITLE_BYTES_MAX, SLOTS_MAX,
};
use parlor_social::{Name, Replaces, SaveRefused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Writes and removals of an account.
const WRITES: Rate = Rate { burst: 10, interval: Duration::from_secs(1) };
/// Those of all accounts of an address: one address can create many.
const WRITES_OF_ADDRESSES: Rates = Rates {
    of_address: Rate { burst: 120, interval: Duration::from_secs(1) },
    of_neighbourhood: Rate { burst: 480, interval: Duration::from_millis(250) },
    what: "saves came",
};
/// Characters of [`SAVE_BYTES_MAX`] in base64.
const BASE64_CHARS_MAX: usize = SAVE_BYTES_MAX.div_ceil(3) * 4;

/// What accounts and addresses owe for writes.
pub(super) struct Saves {
    writes: AccountBudgets,
    addresses: Charges,
}

impl Saves {
    /// `random` returns unpredictable numbers, uniform over 64 bits.
    pub(super) fn new(clock: Clock, mut random: impl FnMut() -> u64) -> Self {
        let writes = AccountBudgets::new(WRITES, clock, &mut random);
        Saves { writes, addresses: Charges::new(WRITES_OF_ADDRESSES, clock, random) }
    }

    fn charge(&self, caller: &Caller, realm: &Realm, account: &AccountId) -> Result<(), Failure> {
        self.writes.charge(realm, account)?;
        self.addresses.charge(caller.origin)
    }
}

/// A save to write.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetSave {
    /// Its slot: letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = NAME_BYTES_MAX))]
    slot: String,
    /// What the game saves, in base64.
    #[schemars(length(max = BASE64_CHARS_MAX))]
    bytes: String,
    /// Its title, for players.
    #[schemars(length(max = SAVE_TITLE_BYTES_MAX))]
    title: Option<String>,
    /// Its description, for players.
    #[schemars(length(max = SAVE_DESCRIPTION_BYTES_MAX))]
    description: Option<String>,
    /// The name of the device that writes it, for players.
    #[schemars(length(max = SAVE_TITLE_BYTES_MAX))]
    device: Option<String>,
    /// Whether it may replace a save; default: yes.
    replace: Option<bool>,
    /// The version that it replaces, and no other; 0 for a free slot.
    version: Option<u64>,
}

/// Which save.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfSlot {
    /// The slot.
    slot: String,
    /// This version; what the slot has if missing.
    version: Option<u64>,
}

/// Which slot.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BeforeInSlot {
    /// The slot.
    slot: String,
}

/// A save without what the game saved.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SaveView {
    /// Its slot.
    slot: String,
    /// Its version. No version of a player is given twice.
    version: u64,
    /// When it was written, in milliseconds since 1970.
    at_ms: u64,
    /// Its title.
    title: String,
    /// Its description.
    description: String,
    /// The device that wrote it.
    device: String,
    /// Its bytes, before base64.
    size: u64,
    /// When another one took its place, or when it was removed, in milliseconds since 1970; missing for what is in
    /// the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_ms: Option<u64>,
}

/// A save that was written or removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Saved {
    /// The save.
    save: SaveView,
    /// Whether the slot had exactly this already, for example because the request came twice.
    again: bool,
}

/// A save.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct WholeSave {
    /// The save.
    save: SaveView,
    /// What the game saved, in base64.
    bytes: String,
}

/// Saves.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SaveList {
    /// Each without what the game saved.
    saves: Vec<SaveView>,
}

impl From<SaveInfo> for SaveView {
    fn from(info: SaveInfo) -> Self {
        let SaveInfo { slot, version, at_ms, replaced_ms, title, description, device, size } = info;
        let slot = slot.as_str().to_owned();
        SaveView { slot, version, at_ms, title, description, device, size, replaced_ms }
    }
}

/// A save of an export.
pub(super) fn exported((info, body): (SaveInfo, Vec<u8>)) -> impl Serialize {
    WholeSave { save: info.into(), bytes: BASE64.encode(&body) }
}

pub(super) async fn set(services: Services, caller: Caller, input: SetSave) -> Result<Saved, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    services.saves().charge(&caller, &realm, &account)?;
    let slot = slot_name(&input.slot)?;
    let replaces = match (input.replace.unwrap_or(true), input.version) {
        (false, Some(version)) if version > 0 => {
            let sentence = "`replace` is false, so no version is replaced: leave one of both out";
            return Err(Failure::field("version", sentence));
        }
        (false, _) | (true, Some(0)) => Replaces::Nothing,
        (true, Some(version)) => Replaces::Version(version),
        (true, None) => Replaces::Any,
    };
    for (field, text, most) in [
        ("title", &input.title, SAVE_TITLE_BYTES_MAX),
        ("description", &input.description, SAVE_DESCRIPTION_BYTES_MAX),
        ("device", &input.device, SAVE_TITLE_BYTES_MAX),
    ] {
        if text.as_ref().is_some_and(|text| text.len() > most || text.contains('\0')) {
            return Err(Failure::field(field, format!("it has at most {most} bytes, and none is 0")));
        }
    }
    if input.bytes.len() > BASE64_CHARS_MAX {
        return Err(too_large());
    }
    let body = BASE64.decode(input.bytes.as_bytes());
    let body = body.map_err(|error| Failure::field("bytes", format!("this is no base64: {error}")))?;
    if body.len() > SAVE_BYTES_MAX {
        return Err(too_large());
    }
    let save = NewSave {
        slot: slot.clone(),
        title: input.title.unwrap_or_default(),
        description: input.description.unwrap_or_default(),
        device: input.device.unwrap_or_default(),
        body,
    };
    let now_ms = services.time().now_ms();
    outcome(&slot, services.store().put_save(&realm, &account, save, replaces, now_ms).await?)
}

pub(super) async fn remove(services: Services, caller: Caller, input: OfSlot) -> Result<Saved, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    services.saves().charge(&caller, &realm, &account)?;
    let slot = slot_name(&input.slot)?;
    let now_ms = services.time().now_ms();
    outcome(&slot, services.store().remove_save(&realm, &account, &slot, input.version, now_ms).await?)
}

pub(super) async fn get(services: Services, caller: Caller, input: OfSlot) -> Result<WholeSave, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let slot = slot_name(&input.slot)?;
    let found = services.store().save(&realm, &account, &slot, input.version).await?;
    let (info, body) = found.ok_or_else(|| no_such_save(&slot))?;
    Ok(WholeSave { save: info.into(), bytes: BASE64.encode(&body) })
}

pub(super) async fn list(services: Services, caller: Caller, _: Nothing) -> Result<SaveList, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let saves = services.store().saves(&realm, &account).await?;
    Ok(SaveList { saves: saves.into_iter().map(SaveView::from).collect() })
}

pub(super) async fn before(
    services: Services,
    caller: Caller,
    input: BeforeInSlot,
) -> Result<SaveList, Failure> {
    let (realm, account) = services.account_of(&caller)?;
    let saves = services.store().saves_before(&realm, &account, &slot_name(&input.slot)?).await?;
    Ok(SaveList { saves: saves.into_iter().map(SaveView::from).collect() })
}

fn slot_name(text: &str) -> Result<Name, Failure> {
    Name::new(text).map_err(|error| Failure::field("slot", error.to_string()))
}

fn too_large() -> Failure {
    let sentence =
        format!("a save has at most {SAVE_BYTES_MAX} bytes: compress it, or spread it over several slots");
    Failure::new(Kind::TooLarge, "too_large", sentence).at("bytes")
}

fn no_such_save(slot: &Name) -> Failure {
    let sentence = format!("the slot {slot} has no such save: save.list says what there is");
    Failure::new(Kind::NotFound, "no_such_save", sentence)
}

/// A refusal shows what the slot has, so that a player can choose between both.
fn outcome(slot: &Name, outcome: SaveOutcome) -> Result<Saved, Failure> {
    let (why, current) = match outcome {
        SaveOutcome::Done(info) => return Ok(Saved { save: info.into(), again: false }),
        SaveOutcome::Same(info) => return Ok(Saved { save: info.into(), again: true }),
        SaveOutcome::Refused(why, current) => (why, current.map(SaveView::from)),
    };
    let failure = match why {
        SaveRefused::Taken => {
            let sentence = format!("the slot {slot} has a save: replace it, or choose another slot");
            Failure::new(Kind::Conflict, "taken", sentence).at("slot")
        }
        SaveRefused::Stale => {
            let sentence = format!("another device has changed the slot {slot}: choose which save stays");
            Failure::new(Kind::Conflict, "stale", sentence).at("version")
        }
        SaveRefused::SlotsFull => {
            let sentence = format!("a player has {SLOTS_MAX} slots: remove a save first (save.remove)");
            Failure::new(Kind::Conflict, "quota", sentence).at("slot")
        }
        SaveRefused::Empty => no_such_save(slot),
    };
    Err(if matches!(why, SaveRefused::Taken | SaveRefused::Stale) {
        failure.beside(json!(current))
    } else {
        failure
    })
}
