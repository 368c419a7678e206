//! Initial connection ids of dials. Only the two ends can compute them, so an acceptor recognizes its peer's
//! packet before it answers anything.

use crate::identity::Fingerprint;
use quinn::ConnectionId;
use sha2::{Digest, Sha256};

/// Bytes of an initial connection id: QUIC's maximum.
const NAME_BYTES: usize = 20;

/// The initial connection id with which `dialer` dials the candidate at `index` of the `acceptor`: the first
/// bytes of a SHA-256. It is unpredictable (RFC 9000, 7.2) because of the path's id, which the hub draws and
/// sends only to these two.
pub(super) fn of(path: u64, dialer: Fingerprint, acceptor: Fingerprint, index: u8) -> ConnectionId {
    let digest = Sha256::new()
        .chain_update(b"parlor direct")
        .chain_update(path.to_be_bytes())
        .chain_update(dialer.0)
        .chain_update(acceptor.0)
        .chain_update([index])
        .finalize();
    ConnectionId::new(&digest[..NAME_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dial_has_a_name_of_its_own() {
        let (here, there) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        let names = [
            of(7, here, there, 0),
            of(8, here, there, 0),
            of(7, there, here, 0),
            of(7, here, here, 0),
            of(7, here, there, 1),
        ];
        for (at, name) in names.iter().enumerate() {
            assert_eq!(name.len(), NAME_BYTES);
            assert!(!names[..at].contains(name), "{at}");
        }
    }
}
