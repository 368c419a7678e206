//! Indexes of a hub's rooms: the seats of a user, and the public matches of a game with a label.
//!
//! Without them a question about one user or one label examines every live room, and anybody may ask (threat 50).
//! Each index has at most one entry for each seat or room.

use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ConnectionId, MemberId, RoomCode, RoomId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::seated::Seated;
use crate::room::Setup;

/// A game, and a user or a label of it.
type Key = (Box<str>, Box<str>);

#[derive(Debug, Default)]
pub(super) struct Index {
    users: BTreeMap<Key, BTreeSet<(RoomId, MemberId)>>,
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
            of_label.remove(&setup.code);
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
