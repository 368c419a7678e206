//! Going on over another connection: how a session that was open finds its other end again.
//!
//! The client attaches its session with [`Session::resume`], which sends Resume and nothing else until it is answered. At the
//! hub the new connection has a session of its own until then; the hub finds the older one, and
//! [`Session::go_on`] puts that one in its place.

use super::receive::{Taken, out_of_place};
use super::{Event, Outgoing, Rejection, Role, Session, State, TIME_INTERVAL_AT_FIRST};
use crate::error::{CloseReason, PeerMisbehaved};
use crate::limits;
use crate::link::LinkKind;
use crate::time::Instant;
use crate::wire::frame::Frame;
use crate::wire::handshake::{Resume, ResumeToken, Resumed};

impl Session {
    /// Whether silence only detaches the session, and [`Event::Silent`] tells of it, instead of ending it: its owner means to
    /// go on over another connection.
    pub fn set_resumable(&mut self, resumable: bool) {
        self.is_resumable = resumable;
    }

    /// Asks over a new connection to go on: for the end that connects, whose session is open. Reliable messages can be sent
    /// meanwhile and wait. [`Event::Resumed`] or [`Event::Rejected`] tells the answer, [`Event::Silent`] that none came.
    pub fn resume(&mut self, resume: Resume, link: LinkKind, now: Instant) {
        debug_assert_eq!(self.role, Role::Client, "a hub is asked");
        self.attach(link, now);
        if self.state == State::Open {
            self.state = State::Resuming { since: now };
            (self.time_due, self.time_at) = (false, None);
            self.outbox.control.push_back(Frame::Resume(resume));
        }
    }

    /// Goes on over another connection, for the end that was asked by [`Event::Resume`]; `next` is what the other end proves
    /// itself with the next time.
    pub fn go_on(&mut self, next: ResumeToken, link: LinkKind, now: Instant) {
        debug_assert_eq!(self.role, Role::Server, "a client asks");
        self.attach(link, now);
        self.outbox.control.push_back(Frame::Resumed(Resumed { token: next }));
    }

    /// Whether it is open and has a connection that carries it: then unreliable messages are worth sending.
    pub fn is_attached(&self) -> bool {
        self.state == State::Open && self.link.is_some()
    }

    /// Whether a connection is attached, whatever for.
    pub fn has_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether a hello, or the wish to resume, waits for its answer.
    pub fn is_deciding(&self) -> bool {
        self.state == State::Deciding
    }

    /// Whether the other end has said anything on the present connection since the session was opened, or went on, there: it
    /// has the Welcome, or the Resumed, then.
    pub fn has_heard_peer(&self) -> bool {
        self.peer_is_open
    }

    /// The reliable messages that the other end has not acknowledged, in order, for another session to send; each with its number
    /// in this one, as the other end [counts](Self::received_reliable) them. This session has them no more.
    pub fn take_unacknowledged(&mut self) -> Vec<(u64, Outgoing)> {
        self.outbox.take_retained()
    }

    /// The same messages, which stay this session's.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (u64, Outgoing)> + '_ {
        self.outbox.retained()
    }

    /// Takes no reliable message from its connection any more: its peer says those again by another way.
    pub fn stop_reliable(&mut self) {
        self.is_deaf = true;
    }

    /// Whether the reliable message with this number came on any connection. If not it counts as having come from here on: its peer
    /// says it again by another way.
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

    /// What the hub says to the wish to go on.
    pub(super) fn take_resume_answer(&mut self, frame: Frame, now: Instant) -> Result<Taken, PeerMisbehaved> {
        match frame {
            Frame::Resumed(Resumed { token }) => {
                self.state = State::Open;
                (self.time_due, self.time_at) = (true, Some(now + TIME_INTERVAL_AT_FIRST));
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
