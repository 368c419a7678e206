//! What a session counts.

/// What a session counted since it began.
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
    /// Messages that the caller sent.
    pub messages_sent: u64,
    /// Messages that were given to the caller.
    pub messages_received: u64,
    /// Packets that came twice or too late to tell.
    pub packets_repeated: u64,
    /// Packets that came before the session was open.
    pub packets_early: u64,
    /// Numbered packets that count as lost: the peer acknowledged later ones and never these.
    pub packets_lost: u64,
    /// Unreliable messages that came after a newer one, or again.
    pub messages_outdated: u64,
    /// Unreliable messages that were dropped because too many waited.
    pub messages_dropped: u64,
    /// Unreliable messages that a newer one replaced before they left.
    pub messages_replaced: u64,
    /// Fragmented messages that never came together.
    pub fragmented_abandoned: u64,
    /// Frames of kinds that this version does not know.
    pub frames_unknown: u64,
}
