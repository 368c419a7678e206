//! Limits and retention times of a server's store, as spelled on the command line and in its file.

use parlor_services::store::DATA_MIN;
use parlor_services::{Lives, OnlineConfig};
use serde::Deserialize;
use std::str::FromStr;

/// Bytes, with a suffix: `500M`, `20G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) u64);

/// What one account may have: `rooms=256,room-bytes=64M,logs=64M,matches=8,saves=4M,objects=8M,guest-bytes=4M`, or
/// some of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct AccountMax {
    rooms: Option<u64>,
    room_bytes: Option<u64>,
    logs: Option<u64>,
    matches: Option<usize>,
    saves: Option<u64>,
    objects: Option<u64>,
    guest_bytes: Option<u64>,
}

/// For how many days things are kept: `ended=30,waiting=14,playing=365,guests=60,devices=730,webhooks=7`, or some of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct KeepDays(Lives);

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) data_max: Option<Size>,
    pub(crate) app_max: Option<Size>,
    pub(crate) account_max: Option<AccountMax>,
    pub(crate) keep_days: Option<KeepDays>,
}

impl Bounds {
    /// Whether anything was said.
    pub(crate) fn is_any(&self) -> bool {
        self.data_max.is_some()
            || self.app_max.is_some()
            || self.account_max.is_some()
            || self.keep_days.is_some()
    }

    /// Matches of one account that are kept at once, if that was said.
    pub(crate) fn kept_matches(&self) -> Option<usize> {
        self.account_max.as_ref().and_then(|most| most.matches)
    }

    pub(crate) fn apply(self, config: OnlineConfig) -> anyhow::Result<OnlineConfig> {
        let OnlineConfig { mut limits, mut lives, .. } = config;
        if let Some(Size(bytes)) = self.data_max {
            anyhow::ensure!(
                bytes >= DATA_MIN,
                "--data-max is {DATA_MIN} bytes at least, as empty tables take some"
            );
            limits.data_max = bytes;
        }
        limits.app_bytes = self.app_max.map(|Size(bytes)| bytes).or(limits.app_bytes);
        if let Some(AccountMax { rooms, room_bytes, logs, saves, objects, guest_bytes, .. }) =
            self.account_max
        {
            limits.open_rooms = rooms.unwrap_or(limits.open_rooms);
            limits.room_bytes = room_bytes.unwrap_or(limits.room_bytes);
            limits.log_bytes = logs.unwrap_or(limits.log_bytes);
            limits.save_bytes = saves.unwrap_or(limits.save_bytes);
            limits.object_bytes = objects.unwrap_or(limits.object_bytes);
            limits.guest_bytes = guest_bytes.unwrap_or(limits.guest_bytes);
        }
        if let Some(KeepDays(days)) = self.keep_days {
            lives = days;
        }
        Ok(OnlineConfig { limits, lives, ..config })
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
        let unit =
            units.iter().find_map(|(unit, shift)| text.strip_suffix(unit).map(|number| (number, *shift)));
        let (number, shift) = unit.unwrap_or((text, 0));
        let number = number.parse::<u64>().ok();
        number.and_then(|number| number.checked_mul(1 << shift)).map(Size).ok_or_else(|| {
            format!("{text:?} is no size: write a number, perhaps with K, M, G or T behind it, such as 20G")
        })
    }
}

/// `name=value` parts with commas between them.
fn parts(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    text.split(',').map(|part| {
        part.trim().split_once('=').ok_or_else(|| format!("{part:?} is not of the form name=value"))
    })
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}={value}: {value:?} is no number"))
}

impl FromStr for AccountMax {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut most = AccountMax::default();
        for part in parts(text) {
            let (name, value) = part?;
            match name {
                "rooms" => most.rooms = Some(number(name, value)?),
                "room-bytes" => most.room_bytes = Some(value.parse::<Size>()?.0),
                "logs" => most.logs = Some(value.parse::<Size>()?.0),
                "matches" => most.matches = Some(number(name, value)?),
                "saves" => most.saves = Some(value.parse::<Size>()?.0),
                "objects" => most.objects = Some(value.parse::<Size>()?.0),
                "guest-bytes" => most.guest_bytes = Some(value.parse::<Size>()?.0),
                _ => {
                    return Err(format!(
                        "{name:?} is none of rooms, room-bytes, logs, matches, saves, objects, guest-bytes"
                    ));
                }
            }
        }
        Ok(most)
    }
}

impl FromStr for KeepDays {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lives = Lives::default();
        for part in parts(text) {
            let (name, value) = part?;
            let days: u64 = number(name, value)?;
            if days == 0 {
                return Err(format!("{name}=0: a day is the least"));
            }
            let kept = match name {
                "ended" => &mut lives.ended_rooms_days,
                "waiting" => &mut lives.waiting_rooms_days,
                "playing" => &mut lives.playing_rooms_days,
                "guests" => &mut lives.guests_days,
                "devices" => &mut lives.devices_days,
                "webhooks" => &mut lives.webhooks_days,
                _ => {
                    return Err(format!(
                        "{name:?} is none of ended, waiting, playing, guests, devices, webhooks"
                    ));
                }
            };
            *kept = days;
        }
        Ok(KeepDays(lives))
    }
}

macro_rules! from_text {
    ($($kind:ty),*) => {
        $(impl TryFrom<String> for $kind {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        })*
    };
}
from_text!(Size, AccountMax, KeepDays);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_days_are_read_and_what_is_none_is_named() {
        assert_eq!("20G".parse(), Ok(Size(20 << 30)));
        assert_eq!("4096".parse(), Ok(Size(4096)));
        for wrong in ["", "G", "1.5G", "99999999999T", "-1"] {
            assert!(wrong.parse::<Size>().unwrap_err().contains("no size"), "{wrong:?}");
        }
        let most = Bounds {
            account_max: Some("rooms=3, logs=1M, saves=1K, objects=3K, guest-bytes=2M".parse().unwrap()),
            ..Bounds::default()
        };
        assert_eq!(most.kept_matches(), None);
        let config = most.apply(OnlineConfig::new("parlor.db")).unwrap();
        let limits = config.limits;
        assert_eq!((limits.open_rooms, limits.log_bytes, limits.guest_bytes), (3, 1 << 20, 2 << 20));
        assert_eq!((limits.save_bytes, limits.object_bytes), (1 << 10, 3 << 10));
        let KeepDays(days) = "guests=3".parse().unwrap();
        assert_eq!(days, Lives { guests_days: 3, ..Lives::default() });
        assert!("guests=0".parse::<KeepDays>().unwrap_err().contains("a day"));
        assert!("guest=1".parse::<KeepDays>().unwrap_err().contains("webhooks"));
        assert!("rooms".parse::<AccountMax>().unwrap_err().contains("name=value"));
        let little = Bounds { data_max: Some(Size(1)), ..Bounds::default() };
        assert!(little.apply(OnlineConfig::new("parlor.db")).is_err());
    }
}
