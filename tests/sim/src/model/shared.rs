//! What a host and its players share: the state at each sequence, inputs, and player data.

use super::{Divergence, Model, RoomIndex, Verdict, ensure};
use crate::peer::PeerId;
use bytes::Bytes;
use parlor_client_core::{RoomCore, StateUpdate};
use parlor_proto::{MemberId, Tick};
use parlor_sync::keyed::{Audience, Viewer, state_hash};
use parlor_sync::value::Value;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A change of a key by a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// Sets a value for an audience.
    Set(String, Value, Audience),
    /// Removes the key.
    Gone(String),
}

/// The state that the host of a room published.
#[derive(Debug, Default)]
pub(super) struct State {
    keys: BTreeMap<Rc<str>, Rc<Kept>>,
    /// Whether `keys` differ from those of the newest sequence.
    is_changed: bool,
    newest: u64,
    history: BTreeMap<u64, Rc<Published>>,
}

#[derive(Debug)]
struct Kept {
    encoded: Bytes,
    audience: Audience,
}

#[derive(Debug)]
struct Published {
    keys: BTreeMap<Rc<str>, Rc<Kept>>,
    /// Whether no key is private, so that all members see the same.
    is_public: bool,
    hash: Cell<Option<u64>>,
}

impl Published {
    fn hash(&self, viewer: MemberId) -> u64 {
        if let Some(hash) = self.hash.get() {
            return hash;
        }
        let seen = self.keys.iter().filter(|(_, kept)| kept.audience.admits(Viewer::Member(viewer)));
        let hash = state_hash(seen.map(|(key, kept)| (key, &kept.encoded)));
        self.hash.set(self.is_public.then_some(hash));
        hash
    }
}

/// The inputs that members sent, and those that the host read.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// By member: the tick of each input, in the order of sending.
    sent: BTreeMap<MemberId, Vec<Tick>>,
    /// By member: the newest input that the host read.
    read: BTreeMap<MemberId, usize>,
    used: BTreeSet<(MemberId, u32)>,
}

/// Predicted actions of members, each of which adds one to its member's ship.
#[derive(Debug, Default)]
pub(super) struct Ships {
    /// By member: how many it made, and how many were refused.
    made: BTreeMap<MemberId, (u32, u32)>,
    /// By member: what the host counts.
    counted: BTreeMap<MemberId, u32>,
}

/// Player data of a room: the values set. A value is its serial.
#[derive(Debug, Default)]
pub(super) struct PlayerDatas {
    set: Vec<(PeerId, MemberId, String)>,
    /// The newest value seen, by observer, owner of the data, key and author.
    seen: BTreeMap<(PeerId, MemberId, String, PeerId), usize>,
}

fn host_of(model: &Model, who: PeerId) -> Result<RoomIndex, Divergence> {
    let seat = model.seat(who).filter(|(_, member)| *member == MemberId(0));
    seat.map(|(room, _)| room).ok_or_else(|| Divergence(format!("{who} is no host and does what hosts do")))
}

/// State.
impl Model {
    /// Records a host's change of a key. It takes effect with the next sequence.
    ///
    /// # Errors
    /// [`Divergence`] if the caller is not a host.
    pub fn writes(&mut self, who: PeerId, key: Key) -> Verdict {
        let index = host_of(self, who)?;
        let state = &mut self.room_mut(index).state;
        state.is_changed = true;
        match key {
            Key::Gone(key) => drop(state.keys.remove(key.as_str())),
            Key::Set(key, value, audience) => {
                let encoded = value.encode(usize::MAX).map_err(|error| Divergence(error.to_string()))?;
                state.keys.insert(key.into(), Rc::new(Kept { encoded, audience }));
            }
        }
        Ok(())
    }

    /// Records the sequence of a host's room. Must be called before the host's first write after a step. The
    /// writes then belong to every sequence since the last call; there may be several, because a sequence
    /// need not change a key.
    ///
    /// # Errors
    /// [`Divergence`] if the sequence decreased.
    pub fn publishes(&mut self, who: PeerId, sequence: u64) -> Verdict {
        let index = host_of(self, who)?;
        let state = &mut self.room_mut(index).state;
        let newest = state.newest;
        ensure(sequence >= newest, || format!("the host of {index} went from state {newest} to {sequence}"))?;
        if sequence == newest {
            return Ok(());
        }
        let same = state.history.get(&newest).filter(|_| !state.is_changed).cloned();
        let published = same.unwrap_or_else(|| {
            let is_public = state.keys.values().all(|kept| kept.audience == Audience::All);
            Rc::new(Published { keys: state.keys.clone(), is_public, hash: Cell::new(None) })
        });
        state.history.extend((newest + 1..=sequence).map(|sequence| (sequence, Rc::clone(&published))));
        (state.newest, state.is_changed) = (sequence, false);
        Ok(())
    }

    pub(super) fn update_came(&mut self, who: PeerId, update: &StateUpdate) -> Verdict {
        let seat =
            self.seat(who).ok_or_else(|| Divergence(format!("{who} has no seat and is told of state")))?;
        let room = self.room(seat.0);
        ensure(room.state.history.contains_key(&update.sequence), || {
            format!(
                "{who} is told of state {} of {}, which its host did not publish",
                update.sequence, seat.0
            )
        })?;
        // An action's input is used by the host's room, not by its game.
        let has_acted = room.ships.made.contains_key(&seat.1);
        if let Some(tick) = update.input_ack_tick.filter(|_| !has_acted) {
            ensure(room.inputs.used.contains(&(seat.1, tick.0)), || {
                format!("{who} is told that its input of {tick:?} was used, which its host never read")
            })?;
        }
        let peer = self.peer_mut(who)?;
        // One state may come in several packets, and late parts belong to the newest.
        ensure(update.sequence >= peer.newest_state, || {
            format!("{who} is told of state {} after {}", update.sequence, peer.newest_state)
        })?;
        peer.newest_state = update.sequence;
        Ok(())
    }

    /// Checks the hashes of states that a member decoded, oldest first; those checked before are skipped.
    ///
    /// # Errors
    /// [`Divergence`] if one differs from what the host published for that member at that sequence.
    pub fn decoded(&mut self, who: PeerId, marks: &[(u64, u64)]) -> Verdict {
        let Some((index, member)) = self.seat(who) else { return Ok(()) };
        let known = self.peer_mut(who)?.newest_mark;
        for (sequence, hash) in marks.iter().filter(|(sequence, _)| *sequence > known) {
            let published = self.room(index).state.history.get(sequence);
            let expected = published.map(|published| published.hash(member));
            ensure(expected == Some(*hash), || {
                format!("{who} has {hash:#x} for state {sequence} of {index}, its host {expected:#x?}")
            })?;
            self.counts.states += 1;
            self.peer_mut(who)?.newest_mark = *sequence;
        }
        Ok(())
    }

    /// Checks a member's final state.
    pub(super) fn holds_the_newest(&self, who: PeerId, room: &RoomCore) -> Verdict {
        let Some((index, member)) = self.seat(who) else { return Ok(()) };
        let state = &self.room(index).state;
        let Some(published) = state.history.get(&state.newest) else {
            return ensure(room.keys().is_empty(), || {
                format!("{who} holds state of {index}, which has none")
            });
        };
        let is_host = member == MemberId(0);
        let seen =
            published.keys.iter().filter(|(_, kept)| is_host || kept.audience.admits(Viewer::Member(member)));
        let seen: Vec<(String, Option<Bytes>)> =
            seen.map(|(key, kept)| (key.to_string(), Some(kept.encoded.clone()))).collect();
        let read = |key: String| {
            let value: Option<Value> = room.get(&key).ok().flatten();
            let encoded = value.and_then(|value| value.encode(usize::MAX).ok());
            (key, encoded)
        };
        let held: Vec<(String, Option<Bytes>)> = room.keys().into_iter().map(read).collect();
        ensure(held == seen, || {
            let names =
                |of: &[(String, Option<Bytes>)]| of.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            let (at, newest) = (room.state_hash(), state.newest);
            format!("{who} holds {:?} at {at:?}, not {:?} of state {newest}", names(&held), names(&seen))
        })?;
        // It may have everything without knowing it: then it waits for a packet that never comes.
        ensure(is_host || room.state_hash().is_some_and(|(_, hash)| hash == published.hash(member)), || {
            format!(
                "{who} holds {index} and is at {:?}, where it is not told that this is all",
                room.state_hash()
            )
        })
    }
}

/// Inputs.
impl Model {
    /// Number of inputs that a member has sent, which is the number of its next one.
    pub fn next_input(&self, who: PeerId) -> u64 {
        let sent = self.seat(who).and_then(|(room, member)| self.room(room).inputs.sent.get(&member));
        sent.map_or(0, |sent| sent.len() as u64)
    }

    /// Records that a member sends its next input.
    ///
    /// # Errors
    /// [`Divergence`] if it is in no room.
    pub fn puts_in(&mut self, who: PeerId, tick: Tick) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} puts in and is in no room")))?;
        self.room_mut(seat.0).inputs.sent.entry(seat.1).or_default().push(tick);
        Ok(())
    }

    /// Checks an input that a host read: its member and number.
    ///
    /// # Errors
    /// [`Divergence`] if that member sent no such input, or the host has read a newer one.
    pub fn reads(&mut self, who: PeerId, member: MemberId, input: (u32, u64)) -> Verdict {
        let index = host_of(self, who)?;
        let (of, serial) = input;
        ensure(of == member.0, || format!("{who} reads an input of member {of} for {member}'s"))?;
        let inputs = &mut self.room_mut(index).inputs;
        let sent = inputs.sent.get(&member).map(Vec::as_slice).unwrap_or_default();
        let at = usize::try_from(serial).unwrap_or(usize::MAX);
        let tick = sent.get(at).copied();
        let tick =
            tick.ok_or_else(|| Divergence(format!("{who} reads input {serial} of {member}, never sent")))?;
        let newest = inputs.read.insert(member, at);
        inputs.used.insert((member, tick.0));
        ensure(newest.is_none_or(|newest| newest <= at), || {
            format!("{who} reads input {serial} of {member} after {newest:?}")
        })?;
        self.counts.inputs += u64::from(newest != Some(at));
        Ok(())
    }
}

/// Predicted actions.
impl Model {
    /// Records an action of a member, whose ship counted `before`, and `after` at once.
    ///
    /// # Errors
    /// [`Divergence`] if the member does not see it.
    pub fn makes_action(&mut self, who: PeerId, before: u32, after: Option<u32>) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} acts and is in no room")))?;
        self.room_mut(seat.0).ships.made.entry(seat.1).or_default().0 += 1;
        self.counts.actions += 1;
        ensure(after == Some(before + 1), || format!("{who} acts and sees {after:?} after {before}"))
    }

    pub(super) fn action_refused(&mut self, who: PeerId) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} is refused and is in no room")))?;
        let (made, refused) = self.room_mut(seat.0).ships.made.entry(seat.1).or_default();
        *refused += 1;
        let (made, refused) = (*made, *refused);
        self.counts.actions_refused += 1;
        ensure(refused <= made, || format!("{who} made {made} actions and is refused {refused}"))
    }

    /// Records what a host counts of a member's ship.
    ///
    /// # Errors
    /// [`Divergence`] if the member made fewer actions.
    pub fn counts_ship(&mut self, host: PeerId, member: MemberId, count: u32) -> Verdict {
        let ships = &mut self.room_mut(host_of(self, host)?).ships;
        let (made, _) = ships.made.get(&member).copied().unwrap_or_default();
        ships.counted.insert(member, count);
        ensure(count <= made, || format!("{host} counts {count} of {member}, which made {made}"))
    }

    /// Checks that each action of a member was applied once or refused once.
    fn all_actions_are_decided(&self, who: PeerId, room: &RoomCore) -> Verdict {
        let Some((index, member)) = self.seat(who) else { return Ok(()) };
        let ships = &self.room(index).ships;
        let Some((made, refused)) = ships.made.get(&member).copied() else { return Ok(()) };
        let (pending, counted) = (room.diagnostics().actions_pending, ships.counted.get(&member).copied());
        ensure(pending == 0 && counted == Some(made - refused), || {
            format!(
                "{who} made {made} actions, was refused {refused}, waits for {pending}; its host counts {counted:?}"
            )
        })
    }
}

/// Player data.
impl Model {
    /// The value that the next change of player data has.
    pub fn next_data(&self, who: PeerId) -> Value {
        let set = self.seat(who).map_or(0, |(room, _)| self.room(room).datas.set.len());
        Value::Int(i64::try_from(set).expect("a scenario is short"))
    }

    /// Records that a member sets player data to [`next_data`](Self::next_data).
    ///
    /// # Errors
    /// [`Divergence`] if it is in no room.
    pub fn sets_data(&mut self, who: PeerId, member: MemberId, key: &str) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} sets data and is in no room")))?;
        self.room_mut(seat.0).datas.set.push((who, member, key.to_owned()));
        Ok(())
    }

    pub(super) fn data_came(
        &mut self,
        who: PeerId,
        member: MemberId,
        key: &str,
        value: Option<&Value>,
    ) -> Verdict {
        self.counts.data += 1;
        value.map_or(Ok(()), |value| self.data_was_set(who, member, key, value))
    }

    /// Checks a value of player data that a game sees: it was set, and is not older than one seen before.
    pub(super) fn data_was_set(
        &mut self,
        who: PeerId,
        member: MemberId,
        key: &str,
        value: &Value,
    ) -> Verdict {
        let seat = self.seat(who).ok_or_else(|| Divergence(format!("{who} has no seat and sees data")))?;
        let datas = &mut self.room_mut(seat.0).datas;
        let at = if let Value::Int(at) = value { usize::try_from(*at).ok() } else { None };
        let found = at.and_then(|at| Some((at, datas.set.get(at)?)));
        let found = found.filter(|(_, (_, of, name))| *of == member && name == key);
        let Some((at, (by, ..))) = found else {
            return Err(Divergence(format!("{who} sees {key:?} of {member} as {value:?}, which nobody set")));
        };
        let newest = datas.seen.insert((who, member, key.to_owned(), *by), at);
        ensure(newest.is_none_or(|newest| newest < at), || {
            format!("{who} sees {key:?} of {member} as {at} after {newest:?}, both of {by}")
        })
    }
}

/// The end.
impl Model {
    /// Checks the end of a world. There was no trouble for a while, and every game polled. Remaining members
    /// must have everything; all others must know that they are out. `room` returns the room of each.
    ///
    /// # Errors
    /// [`Divergence`] with what is missing.
    pub fn settled<'a>(
        &mut self,
        room: impl Fn(PeerId) -> &'a RoomCore,
        is_alive: impl Fn(PeerId) -> bool,
    ) -> Verdict {
        let untold = self.untold().find(|who| is_alive(*who));
        ensure(untold.is_none(), || format!("{untold:?} was never told that it is over"))?;
        let staying = self.staying();
        for who in staying.iter().copied() {
            ensure(is_alive(who), || format!("{who} died and its hub never noticed"))?;
            let owed = self.owes(who);
            ensure(owed.is_none(), || format!("{who} was never told {owed:?}"))?;
            let all = room(who).players().iter().chain(room(who).spectators());
            let mut players: Vec<MemberId> = all.map(|player| player.id).collect();
            players.sort_unstable();
            let members = self.members_of(who);
            ensure(players == members, || format!("{who} sees {players:?}, where {members:?} are"))?;
            self.holds_the_newest(who, room(who))?;
            self.all_actions_are_decided(who, room(who))?;
            let seat = self.seat(who);
            let host = seat.map(|(index, _)| self.room(index).seated[0]);
            let datas = |of| room(of).players().iter().map(|it| (it.id, datas(it))).collect::<Vec<_>>();
            ensure(host.is_none_or(|host| datas(host) == datas(who)), || {
                format!("{who} sees other player data than its host: {:?}", datas(who))
            })?;
            self.counts.settled += 1;
        }
        self.all_messages_came()
    }
}

fn datas(player: &parlor_client_core::Player) -> BTreeMap<String, Value> {
    player.all_data().map(|(key, value)| (key.to_owned(), value.clone())).collect()
}
