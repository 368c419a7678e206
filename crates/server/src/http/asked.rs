//! The origin of an HTTP request.

use hyper::header::{AUTHORIZATION, HeaderMap};
use parlor_hub::Origin;

/// The origin whose budgets a request uses, in its extensions.
#[derive(Clone, Copy, Debug)]
pub struct AskedFrom(pub Origin);

/// The token of a request: `Authorization: Bearer TOKEN`.
pub fn bearer(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    // Another scheme is passed on as an invalid token, so the client gets an error.
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim().to_owned() } else { text.to_owned() })
}
