//! Statistics of a session.

/// Counters since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets given to the connection, and their bytes.
    pub packets_sent: u64,
    /// See [`packets_sent`](Self::packets_sent).
    pub bytes_sent: u64,
    /// Packets taken from the connection, and their bytes.
    pub packets_received: u64,
    /// See [`packets_received`](Self::packets_received).
    pub bytes_received: u64,
    /// Messages sent by the caller.
    pub messages_sent: u64,
    /// Messages given to the caller.
    pub messages_received: u64,
    /// Packets that were duplicates or too late to tell.
    pub packets_repeated: u64,
    /// Packets received before the session was open.
    pub packets_early: u64,
    /// Numbered packets that count as lost: the peer acknowledged later ones and never these.
    pub packets_lost: u64,
    /// Unreliable messages received after a newer one, or twice.
    pub messages_outdated: u64,
    /// Unreliable messages dropped because the send queue was full.
    pub messages_dropped: u64,
    /// Unreliable messages replaced by a newer one before they were sent.
    pub messages_replaced: u64,
    /// Fragmented messages that were never completed.
    pub fragmented_abandoned: u64,
    /// Frames of kinds that this version does not know.
    pub frames_unknown: u64,
}
