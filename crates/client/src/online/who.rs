//! The player's identity for signing in, and which refusals require a new sign-in.

use serde_json::{Value, json};

/// The player's identity.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) app: String,
    pub(super) environment: Option<String>,
    pub(super) name: Option<String>,
    pub(super) device: String,
}

impl Who {
    /// The sign-in operation and its input: by refresh token if there is one, else by device.
    pub(super) fn sign_in(&self, refresh: Option<&str>) -> (&'static str, Value) {
        let mut input = json!({ "app": self.app });
        if let Some(environment) = &self.environment {
            input["environment"] = environment.as_str().into();
        }
        if let Some(token) = refresh {
            input["refresh_token"] = token.into();
            return ("auth.refresh", input);
        }
        input["device"] = self.device.as_str().into();
        if let Some(name) = &self.name {
            input["name"] = name.as_str().into();
        }
        ("auth.device", input)
    }
}

/// Whether this code means that a refresh token has expired, or was used by another process of this player.
/// The device is unchanged.
pub(super) fn is_sign_in_over(code: &str) -> bool {
    matches!(code, "bad_refresh_token" | "refresh_token_reused" | "no_such_account" | "bad_input")
}

/// Whether this code means that an access token has expired, so that a new one is needed.
pub(super) fn is_token_over(code: &str) -> bool {
    matches!(code, "token_expired" | "bad_token" | "signed_out")
}
