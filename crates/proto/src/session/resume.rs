//! Resumption: continues an open session over another connection.
//!
//! The client attaches its session with [`Session::resume`], which sends only a Resume frame until it is
//! answered. The hub's new connection has a temporary session. The hub finds the older one, and
//! [`Session::go_on`] puts that in its place.

use super::receive::{Taken, out_of_place};
use super::{Event, Outgoing, Rejection, Role, Session, State};
use crate::error::{CloseReason, PeerMisbehaved};
use crate::limits;
use crate::link::LinkKind;
use crate::time::Instant;
use crate::wire::frame::Frame;
use crate::wire::handshake::{Resume, ResumeToken, Resumed, Seat};

impl Session {
    /// Sets whether silence only detaches the session, with [`Event::Silent`], instead of ending it. For an
    /// owner that reconnects.
    pub fn set_resumable(&mut self, resumable: bool) {
        self.is_resumable = resumable;
    }

    /// Asks to resume over a new connection, for the connecting end of an open session. Reliable messages can
    /// be queued meanwhile. The answer is [`Event::Resumed`] or [`Event::Rejected`], or [`Event::Silent`] if
    /// there is none.
    pub fn resume(&mut self, resume: Resume, link: LinkKind, now: Instant) {
        debug_assert_eq!(self.role, Role::Client, "a hub is asked");
        self.attach(link, now);
        if self.state == State::Open {
            self.state = State::Resuming { since: now };
            (self.time_due, self.time_at) = (false, None);
            self.outbox.control.push_back(Frame::Resume(resume));
        }
    }

    /// Resumes over another connection, for the end that got [`Event::Resume`]. `next` is the other end's
    /// token for the next resumption.
    pub fn go_on(&mut self, next: ResumeToken, link: LinkKind, now: Instant) {
        debug_assert_eq!(self.role, Role::Server, "a client asks");
        self.attach(link, now);
        self.outbox.control.push_back(Frame::Resumed(Resumed { token: next }));
    }

    /// Tells the client how to claim its seat at another node: in one packet with the Welcome or Resumed frame if that
    /// was not sent yet. Does nothing without a connection: a session that is resumed gets a new seat.
    pub fn tell_seat(&mut self, seat: Seat) {
        debug_assert_eq!(self.role, Role::Server, "a hub gives seats");
        if self.is_attached() {
            self.outbox.control.retain(|frame| !matches!(frame, Frame::Seat(_)));
            self.outbox.control.push_back(Frame::Seat(Box::new(seat)));
        }
    }

    /// Whether it is open and has a connection for it: then sending unreliable messages is useful.
    pub fn is_attached(&self) -> bool {
        self.state == State::Open && self.link.is_some()
    }

    /// Whether a connection is attached, for any purpose.
    pub fn has_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether a hello or a Resume awaits its answer.
    pub fn is_deciding(&self) -> bool {
        self.state == State::Deciding
    }

    /// Whether the other end was heard on the present connection since the session was opened or resumed
    /// there: then it has the Welcome or Resumed frame.
    pub fn has_heard_peer(&self) -> bool {
        self.peer_is_open
    }

    /// Takes out the unacknowledged reliable messages, in order, to be sent by another session. Each has its
    /// number in this session, as the other end [counts](Self::received_reliable) them.
    pub fn take_unacknowledged(&mut self) -> Vec<(u64, Outgoing)> {
        self.outbox.take_retained()
    }

    /// The same messages, without removing them.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (u64, Outgoing)> + '_ {
        self.outbox.retained()
    }

    /// Stops accepting reliable messages from the connection: the peer repeats them over another way.
    pub fn stop_reliable(&mut self) {
        self.is_deaf = true;
    }

    /// Whether the reliable message with this number was received on any connection. If not, it counts as
    /// received from here on: the peer repeats it over another way.
    pub fn takes_elsewhere(&mut self, number: u64) -> bool {
        self.reliable.note(number).unwrap_or(false)
    }

    pub(super) fn let_go(&mut self) {
        self.detach();
        self.events.push_back(Event::Silent);
    }

    pub(super) fn take_resume(&mut self, resume: Resume) {
        self.state = State::Deciding;
        self.events.push_back(Event::Resume(resume));
    }

    /// Handles the hub's answer to a Resume.
    pub(super) fn take_resume_answer(&mut self, frame: Frame, now: Instant) -> Result<Taken, PeerMisbehaved> {
        match frame {
            Frame::Resumed(Resumed { token }) => {
                self.state = State::Open;
                (self.time_due, self.time_at) = (true, Some(now + self.first_time_interval()));
                self.events.push_back(Event::Resumed(token));
            }
            Frame::Refused(refusal) => {
                self.state = State::Closed;
                self.over = Some(CloseReason::ConnectionLost { detail: refusal.to_string() });
                self.events.push_back(Event::Rejected(Rejection::Refused(refusal)));
            }
            Frame::RetryAfter(retry) => {
                self.detach();
                self.events.push_back(Event::Rejected(Rejection::RetryAfter(retry)));
            }
            frame => return Err(out_of_place(&frame, "before the answer to Resume")),
        }
        Ok(Taken::Yes)
    }

    pub(super) fn resume_due(since: Instant) -> Instant {
        since + limits::HANDSHAKE_TIMEOUT
    }
}
