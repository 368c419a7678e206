//! Checks the limit of open files against the limit of connections.

use crate::metrics;

/// Open files beside TCP connections: ports, the store, room logs, monitoring, and webhook calls.
const OTHER_FILES: u64 = 128;

/// Warns at the start. Otherwise the shortage shows only when the server is full of players.
pub(crate) fn warn(connections_max: usize) {
    if let Some((limit, wanted)) = shortage(connections_max) {
        tracing::warn!(
            limit,
            wanted,
            "fewer files may be open than --max-connections wants: raise the limit (ulimit -n {wanted}; LimitNOFILE={wanted} in a \
             systemd unit; --ulimit nofile={wanted} for a container), or take fewer connections"
        );
    }
}

/// Returns the limit and the required number, if the limit is too low. `None` also if the system reports no
/// limit.
pub(crate) fn shortage(connections_max: usize) -> Option<(u64, u64)> {
    shortage_of(connections_max, metrics::open_files_max())
}

fn shortage_of(connections_max: usize, limit: Option<u64>) -> Option<(u64, u64)> {
    let wanted = (connections_max as u64).saturating_add(OTHER_FILES);
    limit.filter(|limit| *limit < wanted).map(|limit| (limit, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_known_before_it_is_reached() {
        assert_eq!(shortage_of(4_096, Some(1_024)), Some((1_024, 4_224)));
        assert_eq!(shortage_of(4_096, Some(4_096)), Some((4_096, 4_224)), "connections are not all");
        assert_eq!(shortage_of(4_096, Some(4_224)), None);
        assert_eq!(shortage_of(usize::MAX, None), None);
    }
}
