//! The protocol of a turn room's connection as a pure machine: texts go in and out, and it reads no clock.
//!
//! ```text
//!            opened        signed in         inbox read         room found or read
//!  Offline ─────────▶ SigningIn ──────▶ CatchingUp ─────────▶ Finding ──────────────▶ Following
//!     ▲                   ▲                                                              │
//!     └─── lost ──────────┼──────────────── the token is over ───────────────────────────┤
//!     └───────────────────┴──────────────── lost ────────────────────────────────────────┘
//! ```
//!
//! A notice reports that something happened. The room is read before the game gets the event, so that the
//! game's view is never older than its events. Notices missed during an outage are in the inbox.

use super::error::OnlineError;
use super::event::{Event, Notice, Topic, of_notice, of_view, topic_of};
use super::view::{Phase, RoomView};
use super::who::{self, Who};
use moves::Refused;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Maximum number of requests that wait for an answer or for the connection.
pub(super) const WAITING_MAX: usize = 64;
/// Notices read at once after an outage: a full inbox.
const INBOX_PAGE: u64 = 256;
/// After this many polled notices, the inbox is acknowledged.
const ACKNOWLEDGE_EVERY: u64 = 32;
/// The wait, if a server does not name one.
const PAUSE: Duration = Duration::from_secs(1);

/// The room to follow.
#[derive(Clone)]
pub(super) enum Want {
    /// The result of an operation, given by its name and input.
    Found { op: &'static str, input: Value },
    /// The room with this id.
    Known(String),
    /// The same, without a seat: by a subscription.
    Watched(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Offline,
    SigningIn,
    CatchingUp,
    Finding,
    Following,
    Closed,
}

/// The kind of a pending request.
#[derive(Clone, Debug)]
enum Asked {
    SignIn,
    Refresh,
    /// A refresh before the access token is over.
    Renew,
    Acknowledge,
    Inbox,
    Room,
    Move,
    Other(Request),
}

/// A request of the game.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) op: &'static str,
    pub(super) input: Value,
    /// Whether it is idempotent: then it is repeated if its answer was lost.
    pub(super) again: bool,
}

/// A move without an answer yet.
#[derive(Clone, Debug)]
struct Move {
    input: Value,
    state_version: u64,
}

/// The machine. See the [module](self).
pub(super) struct Core {
    who: Who,
    want: Want,
    stage: Stage,
    access: Option<String>,
    /// The refresh token for the next access token.
    refresh: Option<String>,
    /// Whether it differs from the one that the driver of this machine set last.
    is_renewed: bool,
    /// How long a new access token is good, until the driver takes it.
    pub(super) good_for: Option<Duration>,
    me: Option<String>,
    view: Option<RoomView>,
    /// The number of the newest notice taken in.
    seq: Option<u64>,
    /// The number up to which the inbox was acknowledged.
    acknowledged: Option<u64>,
    asked: BTreeMap<u64, Asked>,
    next_id: u64,
    /// Requests to send once the room is there.
    queued: VecDeque<Request>,
    pending: Option<Move>,
    /// Events delivered with the next reading of the room.
    held: Vec<Event>,
    /// The number of held events when the pending reading was requested.
    reading: Option<usize>,
    /// No notice was taken in before this connection.
    is_first: bool,
    /// The topics whose events the game gets.
    topics: BTreeSet<Topic>,
    told_start: bool,
    told_turn: u64,
    told_over: bool,
    told_lost: bool,
    /// Some notices were dropped from a full inbox: the game's position is reported from the view instead.
    missed: bool,
    pause: Option<Duration>,
    out: VecDeque<String>,
    events: VecDeque<Event>,
}

/// A message from the server.
#[derive(Deserialize)]
struct Heard {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    error: Option<Refused>,
    #[serde(default)]
    event: Option<Notice>,
    #[serde(default)]
    watched: Option<Notice>,
}

#[derive(Deserialize)]
struct Inbox {
    notices: Vec<Notice>,
    newest: u64,
}

impl Core {
    pub(super) fn new(who: Who, want: Want) -> Self {
        Core {
            who,
            want,
            stage: Stage::Offline,
            access: None,
            refresh: None,
            is_renewed: false,
            good_for: None,
            me: None,
            view: None,
            seq: None,
            acknowledged: None,
            asked: BTreeMap::new(),
            next_id: 0,
            queued: VecDeque::new(),
            pending: None,
            held: Vec::new(),
            reading: None,
            is_first: true,
            topics: Topic::ALL.into(),
            told_start: false,
            told_turn: 0,
            told_over: false,
            told_lost: false,
            missed: false,
            pause: None,
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the next text to send.
    pub(super) fn poll_text(&mut self) -> Option<String> {
        self.out.pop_front()
    }

    /// Returns the next event for the game. Asking again confirms the events before it.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if event.is_none() {
            self.acknowledge();
        }
        event
    }

    /// Sets the refresh token for the next sign-in. Without one, the sign-in is by device.
    pub(super) fn set_refresh(&mut self, token: Option<String>) {
        self.refresh = token;
    }

    /// Returns the refresh token if it was replaced: the one before it is no longer valid.
    pub(super) fn take_renewed(&mut self) -> Option<Option<String>> {
        std::mem::take(&mut self.is_renewed).then(|| self.refresh.clone())
    }

    /// Takes the wait that the server demands before the next connection.
    pub(super) fn take_pause(&mut self) -> Option<Duration> {
        self.pause.take()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    pub(super) fn is_following(&self) -> bool {
        self.stage == Stage::Following
    }

    pub(super) fn view(&self) -> Option<&RoomView> {
        self.view.as_ref()
    }

    pub(super) fn me(&self) -> Option<&str> {
        self.me.as_deref()
    }

    pub(super) fn has_pending_move(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn has_place(&self) -> bool {
        self.queued.len() + self.asked.len() < WAITING_MAX
    }

    /// Handles that the connection is open.
    pub(super) fn handle_open(&mut self) {
        if self.access.is_some() { self.catch_up() } else { self.sign_in() }
    }

    /// Handles that the connection was lost, or could not be opened.
    pub(super) fn handle_lost(&mut self, why: String) {
        if self.stage == Stage::Closed {
            return;
        }
        self.stage = Stage::Offline;
        self.reading = None;
        self.out.clear();
        for (_, asked) in std::mem::take(&mut self.asked) {
            match asked {
                Asked::Other(request) if request.again => self.queued.push_back(request),
                Asked::Other(request) => {
                    let error = OnlineError::new("lost", "the connection was lost before the answer came");
                    self.events.push_back(Event::Failed { op: request.op.to_owned(), error });
                }
                Asked::SignIn
                | Asked::Refresh
                | Asked::Renew
                | Asked::Acknowledge
                | Asked::Inbox
                | Asked::Room
                | Asked::Move => {}
            }
        }
        if !self.told_lost {
            self.told_lost = true;
            self.events.push_back(Event::Lost { why });
        }
    }

    /// Handles a received text.
    pub(super) fn handle_text(&mut self, text: &str) {
        let Ok(heard) = serde_json::from_str::<Heard>(text) else {
            // Not a message of this server version; ignored.
            return;
        };
        match heard {
            Heard { event: Some(notice), .. } => self.handle_live(&notice),
            Heard { watched: Some(notice), .. } => self.handle_watched(&notice),
            Heard { id: Some(id), output, error, .. } => {
                let Some(asked) = self.asked.remove(&id) else { return };
                match (output, error) {
                    (_, Some(refused)) => self.handle_refusal(asked, refused),
                    (output, None) => self.handle_answer(asked, output.unwrap_or_default()),
                }
            }
            // An error that answers no request: it concerns the access token of the connection.
            Heard { error: Some(refused), .. } => self.handle_refusal(Asked::Inbox, refused),
            _ => {}
        }
    }

    /// Sends a request, as soon as the room is there.
    pub(super) fn request(&mut self, request: Request) {
        if self.stage == Stage::Following {
            let (op, input) = (request.op, request.input.clone());
            self.ask(op, input, Asked::Other(request));
        } else {
            self.queued.push_back(request);
        }
    }

    fn ask(&mut self, op: &str, input: Value, asked: Asked) {
        self.next_id += 1;
        self.asked.insert(self.next_id, asked);
        let mut message = json!({ "id": self.next_id, "op": op, "input": input });
        if let Some(token) = &self.access
            && self.stage == Stage::CatchingUp
        {
            message["token"] = token.as_str().into();
        }
        self.out.push_back(message.to_string());
    }

    /// Gets a new access token before the old one is over: a server closes the connection with it.
    pub(super) fn renew(&mut self) {
        if self.stage == Stage::Following && self.refresh.is_some() {
            let (op, input) = self.who.sign_in(self.refresh.as_deref());
            self.ask(op, input, Asked::Renew);
        }
    }

    fn take_tokens(&mut self, output: &Value) {
        self.refresh = output["refresh_token"].as_str().map(str::to_owned);
        self.is_renewed = true;
        self.access = output["access_token"].as_str().map(str::to_owned);
        self.good_for = output["expires_in_s"].as_u64().map(Duration::from_secs);
    }

    fn sign_in(&mut self) {
        self.stage = Stage::SigningIn;
        self.access = None;
        let (op, input) = self.who.sign_in(self.refresh.as_deref());
        let asked = if self.refresh.is_some() { Asked::Refresh } else { Asked::SignIn };
        self.ask(op, input, asked);
    }

    /// Acknowledges the notices that the game has polled, so that the inbox does not fill up. Not while
    /// events are held for the next reading.
    fn acknowledge(&mut self) {
        if self.stage != Stage::Following || !self.held.is_empty() {
            return;
        }
        let Some(seq) = self.seq else { return };
        let before = *self.acknowledged.get_or_insert(seq);
        if seq.saturating_sub(before) >= ACKNOWLEDGE_EVERY {
            self.acknowledged = Some(seq);
            self.ask("inbox.acknowledge", json!({ "up_to": seq }), Asked::Acknowledge);
        }
    }

    /// Reads the notices since the last one. A first connection reads only the inbox's newest number.
    fn catch_up(&mut self) {
        self.stage = Stage::CatchingUp;
        self.is_first = self.seq.is_none();
        let (after, limit) = self.seq.map_or((0, 1), |seq| (seq, INBOX_PAGE));
        self.ask("inbox.read", json!({ "after": after, "limit": limit }), Asked::Inbox);
    }

    fn find(&mut self) {
        self.stage = Stage::Finding;
        let want = self.want.clone();
        match want {
            Want::Found { op, input } => self.ask(op, input, Asked::Room),
            Want::Known(room) => self.read(&room),
            Want::Watched(room) => {
                let input = self.subscription(&room);
                self.reading = Some(self.held.len());
                self.ask("turn.subscribe", input, Asked::Room);
            }
        }
    }

    fn read(&mut self, room: &str) {
        self.reading = Some(self.held.len());
        self.ask("turn.read", json!({ "room": room }), Asked::Room);
    }

    /// Reads the room again. A reading that is pending already is followed by another one.
    fn read_again(&mut self) {
        if self.stage == Stage::Following
            && self.reading.is_none()
            && let Some(room) = self.view.as_ref().map(|view| view.id.clone())
        {
            self.read(&room);
        }
    }

    fn handle_answer(&mut self, asked: Asked, output: Value) {
        match asked {
            Asked::Acknowledge => {}
            Asked::SignIn | Asked::Refresh => {
                self.take_tokens(&output);
                self.me = output["account"]["id"].as_str().map(str::to_owned);
                self.catch_up();
            }
            Asked::Renew => self.take_tokens(&output),
            Asked::Inbox => {
                let Ok(inbox) = serde_json::from_value::<Inbox>(output) else {
                    return self.close(OnlineError::new("bad_answer", "the server speaks another version"));
                };
                if let Some(seq) = self.seq {
                    let is_next = inbox.notices.first().is_none_or(|first| first.seq == seq + 1);
                    let is_last = inbox.notices.last().map_or(seq, |last| last.seq) >= inbox.newest;
                    self.missed |= !is_next || !is_last;
                    inbox.notices.iter().for_each(|notice| self.take_in(notice));
                }
                // Also if the oldest notices were dropped from a full inbox.
                self.seq = Some(self.seq.unwrap_or(0).max(inbox.newest));
                if self.stage == Stage::CatchingUp { self.find() } else { self.read_again() }
            }
            Asked::Room => self.handle_room(&output),
            Asked::Move => {
                self.pending = None;
                self.see(&output);
            }
            Asked::Other(Request { op: "turn.messages", .. }) => self.handle_history(output),
            Asked::Other(_) => {
                self.see(&output);
            }
        }
    }

    fn handle_room(&mut self, output: &Value) {
        let held = self.reading.take().unwrap_or(self.held.len());
        if !self.see(output) {
            return self.close(OnlineError::new("not_in_room", "this player is not in the room any more"));
        }
        let is_new = self.stage == Stage::Finding;
        if is_new {
            self.stage = Stage::Following;
            self.told_lost = false;
        }
        let Some(view) = &self.view else { return };
        let is_watched = matches!(self.want, Want::Watched(_));
        if is_new {
            if !is_watched {
                self.want = Want::Known(view.id.clone());
            }
            self.events.push_back(Event::Connected { room: view.id.clone(), code: view.code.clone() });
        }
        // Otherwise the notices report it in order: the room may be ahead of those still on their way.
        // Nobody keeps notices for those who watch.
        let is_alone = (is_new && (self.is_first || is_watched)) || std::mem::take(&mut self.missed);
        let standing = of_view(view, self.me.as_deref().unwrap_or_default()).filter(|_| is_alone);
        let has_begun = is_alone && view.phase != Phase::Waiting;
        let told: Vec<Event> = self.held.drain(..held.min(self.held.len())).collect();
        told.into_iter().chain(standing).for_each(|event| self.tell(event));
        self.told_start |= has_begun;
        if is_new {
            self.settle_move();
            for request in std::mem::take(&mut self.queued) {
                self.request(request);
            }
        }
        if !self.held.is_empty() {
            self.read_again();
        }
    }

    /// Delivers the game's start, each turn and the end once, whether a notice or a reading reports it first.
    fn tell(&mut self, event: Event) {
        if topic_of(&event).is_some_and(|topic| !self.topics.contains(&topic)) {
            return;
        }
        match &event {
            Event::GameStarted => {
                if self.told_start {
                    return;
                }
                self.told_start = true;
            }
            Event::TurnStarted { turn, .. } => {
                if *turn <= self.told_turn {
                    return;
                }
                self.told_turn = *turn;
            }
            Event::GameOver { .. } => {
                if self.told_over {
                    return;
                }
                self.told_over = true;
            }
            _ => {}
        }
        self.events.push_back(event);
    }

    /// Takes in a reading of the room. Returns false if it is none.
    fn see(&mut self, output: &Value) -> bool {
        let Ok(view) = RoomView::deserialize(&output["room"]) else { return false };
        if self.view.as_ref().is_none_or(|known| known.id != view.id || known.version <= view.version) {
            self.view = Some(view);
        }
        true
    }

    fn handle_live(&mut self, notice: &Notice) {
        let Some(seq) = self.seq else { return };
        if notice.seq == seq + 1 {
            self.take_in(notice);
            self.read_again();
        } else if notice.seq > seq + 1 && !self.asked.values().any(|asked| matches!(asked, Asked::Inbox)) {
            let input = json!({ "after": seq, "limit": INBOX_PAGE });
            self.ask("inbox.read", input, Asked::Inbox);
        }
    }

    fn take_in(&mut self, notice: &Notice) {
        self.seq = Some(self.seq.unwrap_or(0).max(notice.seq));
        self.hold(notice);
    }

    /// Keeps the event of a notice for the next reading of the room.
    fn hold(&mut self, notice: &Notice) {
        let is_ours = match (&self.view, &self.want) {
            (Some(view), _) => view.id == notice.notice.room,
            (None, Want::Known(room) | Want::Watched(room)) => *room == notice.notice.room,
            (None, Want::Found { .. }) => false,
        };
        if !is_ours {
            return;
        }
        let me = self.me.as_deref().unwrap_or_default();
        let is_mine = notice.notice.body["player"].as_str() == Some(me);
        if is_mine
            && matches!(notice.kind.as_str(), "move_made" | "move_proposed")
            && self.stage != Stage::Following
        {
            // The move whose answer was lost has been made.
            self.pending = None;
        }
        if let Some(event) = of_notice(notice, me) {
            self.held.push(event);
        }
    }

    fn handle_refusal(&mut self, asked: Asked, Refused { error, checks }: Refused) {
        match error.code.as_str() {
            "unavailable" | "too_often" => {
                if let Asked::Other(request) = asked {
                    self.queued.push_back(request);
                }
                self.pause = Some(error.retry_after().unwrap_or(PAUSE));
                return;
            }
            code if matches!(asked, Asked::Refresh | Asked::Renew) && who::is_sign_in_over(code) => {
                // Over, or used by another process of this player: the device is still the same.
                self.refresh = None;
                self.is_renewed = true;
                return self.sign_in();
            }
            code if !matches!(asked, Asked::SignIn | Asked::Refresh | Asked::Renew)
                && who::is_token_over(code) =>
            {
                if let Asked::Other(request) = asked {
                    self.queued.push_back(request);
                }
                if self.stage != Stage::SigningIn {
                    self.reading = None;
                    self.sign_in();
                }
                return;
            }
            _ => {}
        }
        match asked {
            Asked::SignIn | Asked::Refresh | Asked::Inbox => self.close(error),
            // The next one says it, too.
            Asked::Acknowledge | Asked::Renew => {}
            Asked::Room => {
                for event in std::mem::take(&mut self.held) {
                    self.tell(event);
                }
                self.close(error);
            }
            Asked::Move => {
                self.pending = None;
                let player = self.me.clone().unwrap_or_default();
                self.events.push_back(Event::MoveRejected { player, error, checks });
                self.read_again();
            }
            Asked::Other(request) => {
                self.events.push_back(Event::Failed { op: request.op.to_owned(), error });
            }
        }
    }

    fn close(&mut self, error: OnlineError) {
        self.stage = Stage::Closed;
        self.asked.clear();
        self.out.clear();
        self.events.push_back(Event::Closed(error));
    }
}

mod moves;
#[cfg(test)]
mod tests;
mod watching;
