//! A hub of a cluster: asks where rooms are that are not here, and enters rooms that it opens where all nodes find them.
//!
//! The answers come from the store, so their hellos wait: as many as [`ClusterConfig::waiting_max`], and no longer than
//! any other handshake. The driver answers each question once, whether its client is still there or not.

use super::waiting::{
    Cluster, ClusterView, Concluded, Entered, EnteredRoom, Judged, Located, Opening, Received, WAITING,
    Waiting, later, places,
};
use super::{Hub, Output};
use crate::admission_policy::{Admitted, Outcome};
use crate::cluster::ownership::RoomUid;
use crate::cluster::tenure::Decision;
use crate::room::{self, Setup};
use bytes::Bytes;
use parlor_proto::session::Rejection;
use parlor_proto::wire::handshake::{Auth, Hello, Intent, Redirect, Refusal, RoomSettings};
use parlor_proto::{ConnectionId, Instant, RoomCode, RoomId};
use rand_chacha::rand_core::Rng;

/// How many codes are drawn for one room. A collision has a chance of one in 10,000.
const DRAWS_MAX: u32 = 4;
const UNKNOWN: &str = "this server cannot ask where the room is";

impl Hub {
    /// Sets what the node knows of its cluster. Without a cluster it does nothing.
    pub fn handle_view(&mut self, view: ClusterView, now: Instant) {
        let Some(cluster) = &mut self.cluster else { return };
        let older = std::mem::replace(&mut cluster.view, view);
        let addresses =
            |view: &ClusterView| view.others.iter().map(|node| node.address.clone()).collect::<Vec<_>>();
        let is_same = std::sync::Arc::ptr_eq(&older.others, &cluster.view.others);
        if !is_same && addresses(&older) != addresses(&cluster.view) {
            self.tell_seats(None, now);
        }
    }

    /// Whether a hello asks for a room that is not here and may be elsewhere.
    pub(super) fn is_unknown(&self, intent: &Intent) -> bool {
        let is_here = |code| self.directory.find(code).is_some();
        self.cluster.is_some() && matches!(intent, Intent::Join { code, .. } if !is_here(*code))
    }

    /// Asks where a hello's room is. The token is looked at where the room is: a ticket is good once.
    pub(super) fn locate(
        &mut self,
        connection: ConnectionId,
        hello: Hello,
        received: Received,
        now: Instant,
    ) {
        let Some(cluster) = &mut self.cluster else { return };
        let Intent::Join { code, .. } = hello.intent else { return };
        // A client without a token that may join nothing learns nothing of rooms elsewhere either.
        let refusal = match hello.auth {
            Auth::Anonymous => self.policy.admit(&hello, now).err().map(Rejection::Refused),
            Auth::Token(_) => None,
        };
        let refusal = refusal.or_else(|| cluster.is_full().then(|| later(WAITING)));
        if let Some(answer) = refusal {
            return self.conclude(connection, &hello, Concluded::reject(answer, received.guess), now);
        }
        let (app, environment) = (hello.app.clone(), hello.environment.clone());
        cluster.waiting.insert(connection, Box::new(Waiting::Locate { hello, received }));
        self.outputs.push_back(Output::Locate { connection, code, app, environment });
    }

    /// Handles the answer to [`Output::Locate`].
    pub fn handle_located(&mut self, connection: ConnectionId, located: Located, now: Instant) {
        let Some(Waiting::Locate { hello, received }) = self.no_longer_waits(connection) else { return };
        if !self.is_deciding(connection) {
            if let Some(guess) = received.guess {
                let is_wrong = located == Located::Nowhere;
                let outcome = if is_wrong { Outcome::Wrong } else { Outcome::Right };
                self.policy.settle_guess(guess, outcome, now);
            }
            return;
        }
        let answer = match (located, self.put_off(Decision::Join)) {
            // A room that is nowhere is refused like any other that is not here.
            (Located::Here | Located::Nowhere, None) => None,
            (Located::Here | Located::Nowhere, put_off) => put_off,
            (Located::At(address), _) => Some(Rejection::Redirect(Redirect { address })),
            (Located::Later, _) => Some(later(UNKNOWN)),
        };
        match answer {
            Some(answer) => self.conclude(connection, &hello, Concluded::reject(answer, received.guess), now),
            None => self.admit_here(connection, hello, received, now),
        }
        self.touch(connection, now);
    }

    /// Enters the room that an admitted client opens.
    pub(super) fn begin_entering(&mut self, connection: ConnectionId, opening: Opening, now: Instant) {
        let Opening { hello, settings, judged } = &opening;
        let origin = self.origin_of(connection);
        let is_full = self.cluster.as_ref().is_some_and(Cluster::is_full);
        let refusal = match self.has_memory(origin) {
            Ok(()) if is_full => Some(later(WAITING)),
            Ok(()) => self.count_opening(hello, &judged.admitted, settings).err().map(Rejection::Refused),
            Err(refusal) => Some(refusal),
        };
        if let Some(answer) = refusal {
            return self.reject_opening(connection, opening, answer, now);
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.entering += places(&opening.settings);
        }
        self.enter_as(connection, opening, 1, now);
    }

    /// Enters a room under its chosen code or a drawn one.
    fn enter_as(&mut self, connection: ConnectionId, opening: Opening, draws: u32, now: Instant) {
        let room = RoomId(self.next_room);
        let code = match self.take_code(room, &opening.settings, now) {
            Ok(code) => code,
            Err(refusal) => return self.give_up(connection, opening, Rejection::Refused(refusal), now),
        };
        // The room and its delayed copy.
        self.next_room += 2 * self.config.shards.count() as u64;
        let mut uid = [0; 16];
        self.random.fill_bytes(&mut uid);
        let entry = EnteredRoom {
            code,
            uid: RoomUid(uid),
            app: opening.hello.app.clone(),
            environment: opening.hello.environment.clone(),
            kind: opening.settings.kind,
            label: opening.settings.label.clone(),
            max_players: opening.settings.max_players,
            needs_secret: opening.settings.secret.is_some(),
            token: opening.judged.admitted.token.clone(),
            setup: self.setup_of_entry(room, code, &opening),
        };
        self.outputs.push_back(Output::Enter { connection, room: entry.clone() });
        if let Some(cluster) = &mut self.cluster {
            cluster.waiting.insert(connection, Box::new(Waiting::Enter { opening, entry, room, draws }));
        }
    }

    /// Returns the setup of the room that a hello opens.
    pub(super) fn setup(
        &self,
        hello: &Hello,
        settings: &RoomSettings,
        (id, code): (RoomId, RoomCode),
        opened: Instant,
    ) -> Setup {
        Setup {
            id,
            code,
            app: hello.app.clone(),
            environment: hello.environment.clone(),
            settings: settings.clone(),
            channels: hello.channels.clone(),
            opened,
            state_bytes_per_second: self.config.state_bytes_per_second,
            spectators: hello.spectators(),
        }
    }

    /// Returns what another node needs to reopen a room.
    fn setup_of_entry(&self, room: RoomId, code: RoomCode, opening: &Opening) -> Bytes {
        let has_key = self.cluster.as_ref().is_some_and(|cluster| cluster.pass_key().is_some());
        let settings = &opening.settings;
        if !has_key || settings.keep || settings.spectator_delay_ms > 0 || self.config.grace.is_zero() {
            return Bytes::new();
        }
        let setup = self.setup(&opening.hello, settings, (room, code), Instant::ZERO);
        room::log::head(&setup).into()
    }

    /// Handles the answer to [`Output::Enter`].
    pub fn handle_entered(&mut self, connection: ConnectionId, entered: Entered, now: Instant) {
        let Some(Waiting::Enter { opening, entry, room, draws }) = self.no_longer_waits(connection) else {
            return;
        };
        let EnteredRoom { code, uid, .. } = entry;
        let is_wanted = self.is_deciding(connection);
        let put_off = self.put_off(Decision::Open);
        if entered == Entered::Done && is_wanted && put_off.is_none() {
            self.open_entered(connection, opening, (room, code, uid), now);
            return self.touch(connection, now);
        }
        self.directory.remove(code);
        if !matches!(entered, Entered::Taken | Entered::Used) {
            // It may have been entered although the answer is lost.
            self.outputs.push_back(Output::Left { code, uid });
        }
        if !is_wanted {
            let chooses_code = opening.settings.code.is_some();
            self.uncount_entering(&opening);
            if let Some(guess) = opening.judged.guess {
                let outcome = if chooses_code { Outcome::Wrong } else { Outcome::Right };
                self.policy.settle_guess(guess, outcome, now);
            }
            return;
        }
        let answer = match (entered, put_off) {
            (_, Some(answer)) => answer,
            (Entered::Taken, None) if opening.settings.code.is_some() => {
                Rejection::Refused(Refusal::CodeTaken)
            }
            (Entered::Used, None) => Rejection::Refused(Refusal::Unauthorized),
            (Entered::Taken, None) if draws < DRAWS_MAX => {
                return self.enter_as(connection, opening, draws + 1, now);
            }
            (Entered::Taken | Entered::Later | Entered::Done, None) => later(UNKNOWN),
        };
        self.give_up(connection, opening, answer, now);
        self.touch(connection, now);
    }

    /// Opens a room that the store has, and seats its creator.
    fn open_entered(
        &mut self,
        connection: ConnectionId,
        opening: Opening,
        (room, code, uid): (RoomId, RoomCode, RoomUid),
        now: Instant,
    ) {
        self.release_places(&opening.settings);
        let Opening { hello, settings, judged: Judged { version, admitted, guess } } = opening;
        let origin = self.origin_of(connection);
        let opened = self.make_room(&hello, &settings, origin, (room, code), now);
        let seated = match opened {
            Ok(id) => {
                self.set_keeper(id, &settings, &admitted);
                self.rooms.get_mut(&id).expect("the room was just opened").uid = Some(uid);
                self.take_seat(connection, &hello, (version, None), id, now)
            }
            Err(refusal) => {
                self.uncount_opening(&hello, &settings, &admitted);
                self.outputs.push_back(Output::Left { code, uid });
                Err(Rejection::Refused(refusal))
            }
        };
        let Admitted { user, .. } = admitted;
        self.conclude(connection, &hello, Concluded { seated, user, guess }, now);
    }

    /// Answers a client whose room is not opened, and uncounts the room.
    fn give_up(&mut self, connection: ConnectionId, opening: Opening, answer: Rejection, now: Instant) {
        self.uncount_entering(&opening);
        self.reject_opening(connection, opening, answer, now);
    }

    fn uncount_entering(&mut self, opening: &Opening) {
        self.release_places(&opening.settings);
        self.uncount_opening(&opening.hello, &opening.settings, &opening.judged.admitted);
    }

    fn release_places(&mut self, settings: &RoomSettings) {
        if let Some(cluster) = &mut self.cluster {
            cluster.entering -= places(settings);
        }
    }

    fn reject_opening(
        &mut self,
        connection: ConnectionId,
        opening: Opening,
        answer: Rejection,
        now: Instant,
    ) {
        let Opening { hello, judged, .. } = opening;
        self.conclude(connection, &hello, Concluded::reject(answer, judged.guess), now);
    }

    pub(super) fn no_longer_waits(&mut self, connection: ConnectionId) -> Option<Waiting> {
        self.cluster.as_mut()?.waiting.remove(&connection).map(|waiting| *waiting)
    }

    pub(super) fn is_deciding(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|state| state.session.is_deciding())
    }

    pub(super) fn origin_of(&self, connection: ConnectionId) -> crate::Origin {
        self.connections.get(&connection).map_or(crate::Origin::LOCAL, |state| state.origin)
    }
}
