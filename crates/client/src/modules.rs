//! The optional modules of this crate, by name. A build has a module by its cargo feature, and the settings file of
//! a game may switch it off. A binding for another language, or a scripting host, checks here whether a module is
//! available.

use core::fmt;

/// A module that a cargo feature enables, and that settings may switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// Rooms with sockets of their own: [`Room`](crate::Room).
    Multiplayer,
    /// TCP, UDP, WebSocket and HTTP for games: `parlor::net`.
    Net,
    /// Rooms on the local network: `parlor::lan`.
    Lan,
    /// Accounts and rooms that the server runs: `parlor::online`.
    Online,
    /// A server inside the host's process, for a host that finds none.
    Server,
    /// An invite in the system's clipboard: `Room::copy_invite`.
    Clipboard,
}

impl Module {
    /// All modules.
    pub const ALL: [Module; 6] =
        [Module::Multiplayer, Module::Net, Module::Lan, Module::Online, Module::Server, Module::Clipboard];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Module::Multiplayer => "multiplayer",
            Module::Net => "net",
            Module::Lan => "lan",
            Module::Online => "online",
            Module::Server => "server",
            Module::Clipboard => "clipboard",
        }
    }

    /// The cargo feature of `parlor` that switches it on.
    pub const fn feature(self) -> &'static str {
        match self {
            Module::Multiplayer => "driver",
            Module::Net | Module::Lan | Module::Online | Module::Server | Module::Clipboard => self.as_str(),
        }
    }

    /// Whether this build has it. Settings may still switch it off: [`require`](Self::require).
    pub const fn is_enabled(self) -> bool {
        match self {
            Module::Multiplayer => cfg!(feature = "driver"),
            Module::Net => cfg!(feature = "net"),
            Module::Lan => cfg!(feature = "lan"),
            Module::Online => cfg!(feature = "online"),
            Module::Server => cfg!(feature = "server"),
            Module::Clipboard => cfg!(feature = "clipboard"),
        }
    }

    /// Checks that the module is available: that this build has it, and that the settings of this process do not
    /// switch it off. Each call that enters a module checks it.
    ///
    /// ```
    /// use parlor::{DisabledBy, Module, ModuleDisabled};
    /// # let net = ModuleDisabled { module: Module::Net, by: DisabledBy::Build };
    /// assert_eq!(net.code(), "optional_module_net_disabled");
    /// assert!(net.to_string().starts_with("optional_module_net_disabled: "));
    /// ```
    ///
    /// # Errors
    /// This build does not have the module, the settings switch it off, or they cannot be read.
    pub fn require(self) -> Result<(), ModuleDisabled> {
        let disabled = |by| ModuleDisabled { module: self, by };
        if !self.is_enabled() {
            return Err(disabled(DisabledBy::Build));
        }
        #[cfg(feature = "settings")]
        match crate::settings::Settings::current() {
            Err(error) => return Err(disabled(DisabledBy::WrongSettings(error.to_string()))),
            Ok(settings) if !settings.allow(self) => {
                return Err(disabled(DisabledBy::Settings(settings.origin().to_owned())));
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// The key of `[modules]` in the settings file.
    const fn key(self) -> &'static str {
        match self {
            // The key says what a player knows.
            Module::Net => "network",
            other => other.as_str(),
        }
    }
}

/// The error for a module that is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleDisabled {
    /// The module.
    pub module: Module,
    /// What disables it.
    pub by: DisabledBy,
}

/// What disables a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisabledBy {
    /// This build leaves it out.
    Build,
    /// These settings switch it off.
    Settings(String),
    /// The settings cannot be read, with the reason: nothing is available then.
    WrongSettings(String),
}

impl ModuleDisabled {
    /// The error code for JSON and other languages.
    pub const fn code(&self) -> &'static str {
        if let DisabledBy::WrongSettings(_) = self.by {
            return "wrong_settings";
        }
        match self.module {
            Module::Multiplayer => "optional_module_multiplayer_disabled",
            Module::Net => "optional_module_net_disabled",
            Module::Lan => "optional_module_lan_disabled",
            Module::Online => "optional_module_online_disabled",
            Module::Server => "optional_module_server_disabled",
            Module::Clipboard => "optional_module_clipboard_disabled",
        }
    }
}

impl fmt::Display for ModuleDisabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, feature) = (self.code(), self.module.feature());
        match &self.by {
            DisabledBy::Build => write!(
                f,
                "{code}: this build leaves the module out. Build it with the feature {feature:?} of the crate parlor"
            ),
            DisabledBy::Settings(origin) => {
                let key = self.module.key();
                write!(
                    f,
                    "{code}: {origin} switches the module off. Set `{key} = true` there, under [modules]"
                )
            }
            DisabledBy::WrongSettings(why) => write!(f, "{code}: {why}"),
        }
    }
}

impl std::error::Error for ModuleDisabled {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_left_out_names_itself_and_its_feature() {
        for module in Module::ALL {
            let disabled = ModuleDisabled { module, by: DisabledBy::Build };
            assert_eq!(disabled.code(), format!("optional_module_{}_disabled", module.as_str()));
            let said = disabled.to_string();
            assert!(said.starts_with(disabled.code()) && said.contains(module.feature()), "{said}");
            assert_eq!(module.require().is_ok(), module.is_enabled());
        }
    }

    #[test]
    fn a_module_is_there_when_its_feature_is() {
        let features = [
            cfg!(feature = "driver"),
            cfg!(feature = "net"),
            cfg!(feature = "lan"),
            cfg!(feature = "online"),
            cfg!(feature = "server"),
            cfg!(feature = "clipboard"),
        ];
        assert_eq!(Module::ALL.map(Module::is_enabled), features);
    }
}
