//! What the game was told of its connection: its state, whether the room is over, and why.

use crate::connection::LinkState;
use crate::event::{ClosedReason, Event};
use crate::inbox::LinkNews;
use crate::info::{ReasonCode, TransportStatus};
use parlor_proto::CloseReason;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::Refusal;

/// The status that a game can read. It changes in polls, except that a game closes its room itself.
#[derive(Debug, Default)]
pub(crate) struct Status {
    link: LinkState,
    has_resumed: bool,
    closed: Option<ClosedReason>,
    last_reason: Option<ReasonCode>,
}

/// What follows from a change of the connection.
pub(crate) enum Follows {
    /// An event.
    Event(Event),
    /// The end of the room.
    End(ClosedReason),
    Nothing,
}

impl Status {
    pub(crate) fn link(&self) -> LinkState {
        self.link
    }

    /// Why the room is over for this process, if it is.
    pub(crate) fn closed(&self) -> Option<&ClosedReason> {
        self.closed.as_ref()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    pub(crate) fn last_reason(&self) -> Option<ReasonCode> {
        self.last_reason
    }

    /// Notes that the room is open.
    pub(crate) fn opened(&mut self) {
        self.link = LinkState::Connected;
    }

    /// Notes that this process rejoined: the room exists after all.
    pub(crate) fn rejoined(&mut self) {
        self.link = LinkState::Connected;
        self.last_reason = self.last_reason.filter(|reason| *reason != ReasonCode::RoomExpired);
        self.has_resumed = true;
    }

    /// Notes a reason to report.
    pub(crate) fn report(&mut self, reason: ReasonCode) {
        self.last_reason = Some(reason);
    }

    /// Applies a change of the connection.
    pub(crate) fn apply(&mut self, news: LinkNews) -> Follows {
        match news {
            LinkNews::Lost { detail, is_silent } => {
                self.link = LinkState::Reconnecting;
                if is_silent {
                    self.last_reason = Some(ReasonCode::ControlHeartbeatTimeout);
                }
                let reason = if is_silent { LeaveReason::TimedOut } else { LeaveReason::ConnectionLost };
                Follows::Event(Event::ConnectionLost { reason, detail })
            }
            LinkNews::Attempt(attempt) => Follows::Event(Event::Reconnecting { attempt }),
            LinkNews::Resumed => {
                self.link = LinkState::Connected;
                self.has_resumed = true;
                Follows::Event(Event::Reconnected { state_resynced: false })
            }
            LinkNews::Gone => {
                self.link = LinkState::Resyncing;
                self.last_reason = Some(ReasonCode::RoomExpired);
                Follows::Nothing
            }
            LinkNews::GivenUp { detail } => {
                self.last_reason = Some(ReasonCode::RelayAttachFailed);
                Follows::End(ClosedReason::Session(CloseReason::ConnectionLost { detail }))
            }
            LinkNews::Refused(why) => Follows::End(why),
            LinkNews::HostGone => Follows::End(ClosedReason::Session(CloseReason::HostGone)),
        }
    }

    /// Notes the end of the room. `was_open` says whether it was ever open. The first end counts.
    pub(crate) fn close(&mut self, reason: ClosedReason, was_open: bool) {
        if self.closed.is_some() {
            return;
        }
        self.last_reason = match &reason {
            ClosedReason::Session(CloseReason::TimedOut) if was_open => {
                Some(ReasonCode::ControlHeartbeatTimeout)
            }
            ClosedReason::Session(CloseReason::HostLeft | CloseReason::HostGone) => {
                Some(ReasonCode::PeerLeft)
            }
            ClosedReason::Session(CloseReason::ConnectionLost { .. } | CloseReason::TimedOut)
                if !was_open =>
            {
                Some(ReasonCode::RelayAttachFailed)
            }
            ClosedReason::NoDirectPath(missing) => Some(missing.reason),
            ClosedReason::Refused(Refusal::NoSuchRoom) => Some(ReasonCode::RoomExpired),
            ClosedReason::Refused(_) | ClosedReason::Connect(_) | ClosedReason::RetryAfter(_) => {
                Some(ReasonCode::RelayAttachFailed)
            }
            _ => self.last_reason,
        };
        self.link = LinkState::Lost;
        self.closed = Some(reason);
    }

    /// The status of the transport to report. `of_paths` is the status of direct paths, if there is one;
    /// `is_alone` is set for a host without another player.
    pub(crate) fn transport(
        &self,
        is_open: bool,
        of_paths: Option<TransportStatus>,
        is_alone: bool,
    ) -> Option<TransportStatus> {
        match &self.closed {
            Some(ClosedReason::Session(CloseReason::Left)) => None,
            Some(_) => Some(TransportStatus::Error),
            None if !is_open => None,
            None if self.link != LinkState::Connected => Some(TransportStatus::ResumePending),
            None if of_paths.is_some() => of_paths,
            None if self.has_resumed => Some(TransportStatus::Resumed),
            None if is_alone => Some(TransportStatus::Registered),
            None => Some(TransportStatus::RelayReady),
        }
    }
}
