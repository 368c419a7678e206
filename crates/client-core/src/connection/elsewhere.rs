//! Another server, which may have the room or reopen it: claims over a second link, and moves of the room.

use super::Connection;
use super::claim::{Claimed, Granted};
use super::reconnect::Tier;
use crate::inbox::LinkNews;
use bytes::Bytes;
use parlor_proto::wire::handshake::{Auth, Claim, Hello, Intent, Resume, Seat, Welcome, capability};
use parlor_proto::{Instant, LinkKind, Packet};
use std::time::Duration;

/// How long a move may take until the game hears that the connection is lost.
const MOVE_QUIET: Duration = Duration::from_secs(1);

const ELSEWHERE: &str = "the room is at another server";
const GONE: &str = "no other server has the room";

impl Connection {
    /// Takes in what the hub says of this process's seat. A hub of a lower term is not the room's owner any more:
    /// then the link is given up, and other servers are asked.
    pub(crate) fn seated(&mut self, seat: Box<Seat>, now: Instant) -> Option<LinkNews> {
        let seed = self.seed();
        if self.claims.seated(seat, seed, now) {
            return None;
        }
        let news = self.lost(ELSEWHERE, false, now);
        self.reconnect.claim(now);
        Some(news)
    }

    /// Handles a room that went to another server. The game hears of it only if that one does not answer soon. Returns
    /// false if this process has no seat to claim there.
    pub(crate) fn moved(&mut self, address: String, now: Instant) -> bool {
        if self.claims.seat().is_none() {
            return false;
        }
        let seed = self.seed();
        self.reconnect.lost(seed, now);
        self.reconnect.claim(now);
        self.claims.ask_own(Some(address).filter(|address| !address.is_empty()), now);
        self.moved_at = Some(now);
        true
    }

    /// News of a move that takes too long.
    pub(crate) fn late_move(&mut self, now: Instant) -> Option<LinkNews> {
        self.moved_at.take_if(|at| *at + MOVE_QUIET <= now)?;
        Some(LinkNews::Lost { detail: ELSEWHERE.to_owned(), is_silent: false })
    }

    /// Notes the number of a message in the room's order, if it has one.
    pub(crate) fn saw_order(&mut self, order: Option<u64>) {
        self.order = self.order.max(order.unwrap_or_default());
    }

    /// How many claims have brought the room another link.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn next_claim(&self) -> Option<Instant> {
        self.claims.next()
    }

    /// Whether the room's own server may be asked.
    pub(crate) fn claims_own(&self) -> bool {
        self.claims.asks_own()
    }

    pub(crate) fn claim_begins(&mut self) -> Option<String> {
        self.claims.begin()
    }

    /// Whether a claim is dialled or waits for its answer.
    pub(crate) fn is_claiming(&self) -> bool {
        self.claims.is_under_way()
    }

    /// Asks for the room over a new link, at `room_time`.
    pub(crate) fn claim_connected(&mut self, hello: Hello, room_time: Instant, link: LinkKind, now: Instant) {
        let (Some(seat), Some(Resume { token, .. })) = (self.claims.seat(), self.resume) else { return };
        let claim = Claim {
            pass: Bytes::clone(&seat.pass),
            token,
            term: seat.term,
            room_time_us: Some(room_time.as_micros()),
            order: self.order,
        };
        // The pass admits, and a ticket was good once.
        let (auth, intent) = (Auth::Anonymous, Intent::Claim(Box::new(claim)));
        self.claims.connected(Hello { auth, intent, ..hello }, link, now);
    }

    pub(crate) fn handle_claim_packet(&mut self, packet: Packet, now: Instant) {
        self.claims.handle_packet(packet, now);
    }

    pub(crate) fn poll_claim_packet(&mut self, now: Instant) -> Option<Packet> {
        self.claims.poll_packet(now)
    }

    pub(crate) fn handle_claim_timeout(&mut self, now: Instant) {
        self.claims.handle_timeout(self.is_attached(), now);
    }

    pub(crate) fn claim_timeout(&self) -> Option<Instant> {
        let late_move = self.moved_at.map(|at| at + MOVE_QUIET);
        self.claims.poll_timeout().into_iter().chain(late_move).min()
    }

    /// Notes that the claim under way has no answer.
    pub(crate) fn claim_failed(&mut self, detail: &str, now: Instant) -> Option<LinkNews> {
        self.claims.failed(Duration::ZERO, now);
        self.end_overdue_claims(detail, now)
    }

    fn end_overdue_claims(&mut self, detail: &str, now: Instant) -> Option<LinkNews> {
        if !self.reconnect.is_claim_overdue(now) {
            return None;
        }
        self.reconnect.give_up();
        Some(LinkNews::GivenUp { detail: detail.to_owned() })
    }

    /// What follows from the answer to a claim: the welcome of another server, whose session is the room's from here
    /// on, or news of the link.
    pub(crate) fn poll_claim(&mut self, is_last_host: bool, now: Instant) -> Option<ClaimNews> {
        match self.claims.poll(now)? {
            Claimed::Granted(granted) => {
                let Granted { mut session, link, welcome } = *granted;
                let was_away = self.reconnect.is_away() && self.moved_at.take().is_none();
                if welcome.capabilities & capability::CONTINUES != 0
                    && let Some(older) = &mut self.session
                {
                    session.go_on_with(older.take_carried());
                }
                (self.session, self.link, self.capacity) = (Some(session), Some(link), None);
                self.line += 1;
                Some(ClaimNews::Granted { welcome, was_away })
            }
            Claimed::Refused if self.reconnect.is_claiming() => {
                Some(ClaimNews::Link(self.claims_refused(is_last_host, now)))
            }
            Claimed::Refused => Some(ClaimNews::Link(None)),
            Claimed::Later => Some(ClaimNews::Link(self.end_overdue_claims(GONE, now))),
        }
    }

    /// Goes on without the room's world, because no server can reopen the room.
    fn claims_refused(&mut self, is_last_host: bool, now: Instant) -> Option<LinkNews> {
        if is_last_host || !self.accepts_resync {
            self.reconnect.give_up();
            return Some(LinkNews::GivenUp { detail: GONE.to_owned() });
        }
        self.reconnect.resync(Tier::Rejoin, now);
        Some(LinkNews::Gone)
    }
}

/// What follows from the answer to a claim.
pub(crate) enum ClaimNews {
    /// Another server has the room. `was_away` says whether the old link was lost.
    Granted {
        welcome: Box<Welcome>,
        was_away: bool,
    },
    Link(Option<LinkNews>),
}
