//! Who a player is, as a sign-in says it, and when it has to be said again.

use serde_json::{Value, json};

/// Who a player is.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) app: String,
    pub(super) environment: Option<String>,
    pub(super) name: Option<String>,
    pub(super) device: String,
}

impl Who {
    /// The operation that signs in, and its input: by a refresh token, if there is one, else by the device.
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

/// Whether a refresh token that was refused with this code is over, or was used by another process of this player. The device is still the
/// same.
pub(super) fn is_sign_in_over(code: &str) -> bool {
    matches!(code, "bad_refresh_token" | "refresh_token_reused" | "no_such_account" | "bad_input")
}

/// Whether an access token that was refused with this code is over, so that the next one is to be had.
pub(super) fn is_token_over(code: &str) -> bool {
    matches!(code, "token_expired" | "bad_token" | "signed_out")
}
