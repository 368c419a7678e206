//! Indexes of a hub's rooms: the seats of a user, where it may return to, and the public matches of a game with a label.
//!
//! Without them a question about one user or one label examines every live room, and anybody may ask (threat 50).
//! Each index has at most one entry for each seat or room.

use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ConnectionId, Instant, MemberId, RoomCode, RoomId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::gone::{OF_USER_MAX, Place};
use super::seated::Seated;
use crate::room::Setup;

/// A game, and a user or a label of it.
type Key = (Box<str>, Box<str>);

#[derive(Debug, Default)]
pub(super) struct Index {
    users: BTreeMap<Key, BTreeSet<(RoomId, MemberId)>>,
    /// Those that may return, oldest first.
    gone: BTreeMap<Key, BTreeSet<(Instant, Place)>>,
    labels: BTreeMap<Key, BTreeMap<RoomCode, RoomId>>,
}

impl Index {
    /// Adds a room, if it is a public match.
    pub(super) fn opened(&mut self, setup: &Setup) {
        if is_public_match(setup) {
            let of_label = self.labels.entry(key(&setup.app, &setup.settings.label)).or_default();
            of_label.insert(setup.code, setup.id);
        }
    }

    /// Removes a room and all its seats.
    pub(super) fn ended(&mut self, seated: &mut Seated) {
        for member in seated.users.keys().copied().collect::<Vec<_>>() {
            self.left(seated, member);
        }
        let setup = seated.room.setup();
        let key = key(&setup.app, &setup.settings.label);
        if is_public_match(setup)
            && let Some(of_label) = self.labels.get_mut(&key)
        {
            if of_label.get(&setup.code) == Some(&setup.id) {
                of_label.remove(&setup.code);
            }
            if of_label.is_empty() {
                self.labels.remove(&key);
            }
        }
    }

    /// Adds the seat of a user.
    pub(super) fn joined(&mut self, seated: &mut Seated, member: MemberId, user: &str) {
        let setup = seated.room.setup();
        self.users.entry(key(&setup.app, user)).or_default().insert((setup.id, member));
        seated.users.insert(member, user.into());
    }

    /// Removes a seat, if it is a user's. Returns the connection of its member.
    pub(super) fn left(&mut self, seated: &mut Seated, member: MemberId) -> Option<ConnectionId> {
        if let Some(user) = seated.users.remove(&member) {
            let setup = seated.room.setup();
            let key = key(&setup.app, &user);
            if let Some(seats) = self.users.get_mut(&key) {
                seats.remove(&(setup.id, member));
                if seats.is_empty() {
                    self.users.remove(&key);
                }
            }
        }
        seated.connections.remove(&member)
    }

    /// Returns the seats of a user in the rooms of a game.
    pub(super) fn seats_of(&self, app: &str, user: &str) -> impl Iterator<Item = (RoomId, MemberId)> + '_ {
        self.users.get(&key(app, user)).into_iter().flatten().copied()
    }

    /// Adds a user's member that may return until a time.
    pub(super) fn gone(&mut self, seated: &Seated, user: &str, gone: (Instant, Place)) {
        self.gone.entry(key(&seated.room.setup().app, user)).or_default().insert(gone);
    }

    /// Removes a user's member that may not return any more, or has.
    pub(super) fn not_gone(&mut self, seated: &Seated, user: &str, gone: (Instant, Place)) {
        let key = key(&seated.room.setup().app, user);
        if let Some(of_user) = self.gone.get_mut(&key) {
            of_user.remove(&gone);
            if of_user.is_empty() {
                self.gone.remove(&key);
            }
        }
    }

    /// Returns where a user may return to in the rooms of a game, oldest first.
    pub(super) fn gone_of(&self, app: &str, user: &str) -> impl Iterator<Item = Place> + '_ {
        self.gone.get(&key(app, user)).into_iter().flatten().map(|(_, place)| *place)
    }

    /// Returns the oldest of a user that may return to too many rooms.
    pub(super) fn surplus_gone(&self, app: &str, user: &str) -> Option<Place> {
        let of_user = self.gone.get(&key(app, user)).filter(|of_user| of_user.len() > OF_USER_MAX)?;
        of_user.first().map(|(_, place)| *place)
    }

    /// Returns the public matches of a game with a label whose codes come after a bound, in code order.
    pub(super) fn labelled(
        &self,
        app: &str,
        label: &str,
        after: Bound<RoomCode>,
    ) -> impl Iterator<Item = (RoomCode, RoomId)> + '_ {
        let of_label = self.labels.get(&key(app, label)).into_iter();
        let rooms = of_label.flat_map(move |codes| codes.range((after, Bound::Unbounded)));
        rooms.map(|(code, room)| (*code, *room))
    }
}

fn key(app: &str, word: &str) -> Key {
    (app.into(), word.into())
}

/// Whether a room is a match without a secret: others are never listed as matches.
pub(super) fn is_public_match(setup: &Setup) -> bool {
    setup.settings.kind == RoomKind::Match && setup.settings.secret.is_none()
}
