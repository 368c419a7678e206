//! The origin of an HTTP request.

use hyper::header::{AUTHORIZATION, HeaderMap};
use parlor_hub::Origin;

/// Whose budgets count for a request: its extensions have it.
#[derive(Clone, Copy, Debug)]
pub struct AskedFrom(pub Origin);

/// The token that a request brings: `Authorization: Bearer TOKEN`.
pub fn bearer(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    // Something else than a token is no token of ours, and is told so.
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim().to_owned() } else { text.to_owned() })
}
