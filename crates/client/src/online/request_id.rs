//! Names of requests whose repetition the server must know.

use data_encoding::HEXLOWER;

/// A random name for a request that may be sent again.
///
/// Without randomness the operating system is broken; the server then refuses the empty id.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 12];
    match getrandom::fill(&mut bytes) {
        Ok(()) => HEXLOWER.encode(&bytes),
        Err(_) => String::new(),
    }
}
