//! What each member may see of a world whose game filters it, and what it must see once it is settled.
//!
//! Each write of a component has a serial of its own. So a value that a member sees says when it was written: a
//! member may see it only if it was the value of a tick at which the filter admitted that member. When the host
//! changes, the next one goes on from a tick of the last one, so several worlds may have had the same tick.

use super::verdict::{Verdict, ensure};
use crate::peer::PeerId;
use parlor_proto::{EntityId, Epoch, MemberId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// An entity as a game reads it: its owner, and the serial of its newest write.
pub(crate) type Seen = (EntityId, Option<MemberId>, u32);

/// One tick's entities, and who may see each.
#[derive(Debug)]
struct Tick {
    entities: Vec<(Seen, BTreeMap<MemberId, Scope>)>,
    /// The scope of members that are not named.
    others: Scope,
}

/// Whether a member is in scope of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    In,
    Out,
    /// It may be: it left while it was in scope and the entity's turn has not come, or another host decided.
    Unsure,
}

/// The model of a filtered world.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// Each pair is asked about once in so many steps.
    every: u32,
    /// All hosts so far: one that was replaced may write for a while before it knows.
    writers: BTreeMap<(PeerId, Epoch), Writer>,
    /// What each member may have seen: entities, and serials of their writes.
    admitted: BTreeSet<(MemberId, EntityId, u32)>,
    /// By sequence: the worlds that had it.
    history: BTreeMap<u64, Vec<Rc<Tick>>>,
    /// What each host began with, and the sequence under which it wrote on: what the hub had of the last host.
    begun: Vec<(u64, Tick)>,
    /// What settled members saw since the last comparison.
    settled: Vec<Settled>,
    /// How often a member saw a value, and it was meant to.
    pub(crate) seen: u64,
    /// How often all that a settled member saw was compared.
    pub(crate) compared: u64,
}

/// What a member saw, whose replica said that it was all.
#[derive(Debug)]
struct Settled {
    who: PeerId,
    me: MemberId,
    sequence: u64,
    world: Vec<Seen>,
    /// Hosts until then.
    writers: usize,
}

/// A host.
#[derive(Debug, Default)]
struct Writer {
    newest: u64,
    /// What its filter said of each entity.
    answers: BTreeMap<EntityId, BTreeMap<MemberId, Scope>>,
}

impl Writer {
    fn tick(&self, world: &[Seen], others: Scope) -> Tick {
        Tick { entities: world.iter().map(|seen| (*seen, self.scope_of(seen))).collect(), others }
    }

    fn scope_of(&self, (entity, owner, _): &Seen) -> BTreeMap<MemberId, Scope> {
        let mut scope = self.answers.get(entity).cloned().unwrap_or_default();
        scope.extend(owner.map(|owner| (owner, Scope::In)));
        scope
    }
}

impl Scopes {
    pub(crate) fn new(every: u32) -> Self {
        Scopes {
            every,
            writers: BTreeMap::new(),
            admitted: BTreeSet::new(),
            history: BTreeMap::new(),
            begun: Vec::new(),
            settled: Vec::new(),
            seen: 0,
            compared: 0,
        }
    }

    /// How often another member became the host.
    pub(crate) fn migrations(&self) -> u64 {
        (self.writers.len() as u64).saturating_sub(1)
    }

    /// Records what a host's world is between two steps: what it published at `sequence`.
    pub(crate) fn publishes(&mut self, host: (PeerId, Epoch), sequence: u64, world: &[Seen]) {
        let Some(writer) = self.writers.get_mut(&host) else {
            let writer = Writer { newest: sequence, ..Writer::default() };
            // Its filter has not been asked.
            self.begun.push((sequence, writer.tick(world, Scope::Unsure)));
            self.writers.insert(host, writer);
            return;
        };
        if sequence > writer.newest {
            let tick = Rc::new(writer.tick(world, Scope::Out));
            for sequence in writer.newest + 1..=sequence {
                self.history.entry(sequence).or_default().push(Rc::clone(&tick));
            }
            writer.newest = sequence;
        }
    }

    /// Records a step of a host: what its filter said of the present players, and the world that it leaves.
    pub(crate) fn ends_step(
        &mut self,
        host: (PeerId, Epoch),
        (me, players): (MemberId, &[MemberId]),
        answers: &[(MemberId, EntityId, bool)],
        world: &[Seen],
    ) {
        let Some(writer) = self.writers.get_mut(&host) else { return };
        let left = if self.every == 1 { Scope::Out } else { Scope::Unsure };
        for (member, scope) in writer.answers.values_mut().flatten() {
            if *scope == Scope::In && !players.contains(member) {
                *scope = left;
            }
        }
        for (_, entity, _) in answers {
            writer.answers.remove(entity);
        }
        for (member, entity, is_in) in answers {
            let scope = if *is_in { Scope::In } else { Scope::Out };
            writer.answers.entry(*entity).or_default().insert(*member, scope);
        }
        for seen in world {
            let scope = writer.scope_of(seen).into_iter().filter(|(_, scope)| *scope != Scope::Out);
            let members = scope.map(|(member, _)| member).chain([me]);
            self.admitted.extend(members.map(|member| (member, seen.0, seen.2)));
        }
    }

    /// Checks what a member sees. What it sees at `settled`, where it says that this is all, is checked later, when
    /// the host's world at that sequence is known.
    ///
    /// # Errors
    /// Divergence if it sees what its scope hides.
    pub(crate) fn sees(
        &mut self,
        who: PeerId,
        me: MemberId,
        settled: Option<u64>,
        world: Vec<Seen>,
    ) -> Verdict {
        for (entity, _, serial) in &world {
            ensure(self.admitted.contains(&(me, *entity, *serial)), || {
                format!("{who}, who is {me}, sees write {serial} of {entity}, which its scope hides")
            })?;
            self.seen += 1;
        }
        let writers = self.writers.len();
        self.settled.extend(settled.map(|sequence| Settled { who, me, sequence, world, writers }));
        Ok(())
    }

    /// Compares what settled members saw with what their scope admits. In a migration the truth is what the hub had
    /// of the last host, and that is known once the next host plays: until then it waits, if it can.
    ///
    /// # Errors
    /// Divergence if one lacked something, or saw too much.
    pub(crate) fn compare(&mut self, can_wait: bool) -> Verdict {
        let writers = self.writers.len();
        for settled in std::mem::take(&mut self.settled) {
            let Some(ticks) = self.history.get(&settled.sequence) else { continue };
            let begun = self.begun.iter().skip(settled.writers.saturating_sub(1));
            let begun = begun.filter(|(sequence, _)| settled.sequence <= *sequence).map(|(_, tick)| tick);
            let mut meant = ticks.iter().map(|tick| &**tick).chain(begun);
            let is_meant = meant.any(|tick| tick.is_seen(settled.me, &settled.world));
            if !is_meant && can_wait && writers == settled.writers {
                self.settled.push(settled);
                continue;
            }
            self.compared += 1;
            ensure(is_meant, || {
                let all: Vec<_> = ticks.iter().map(|tick| tick.admits(settled.me)).collect();
                let Settled { who, me, sequence, world, .. } = &settled;
                format!("{who}, who is {me}, is settled at {sequence} with {world:?}, not one of {all:?}")
            })?;
        }
        Ok(())
    }
}

impl Tick {
    /// What a member must see.
    fn admits(&self, me: MemberId) -> Vec<Seen> {
        let is_in = |scope: &BTreeMap<MemberId, Scope>| scope.get(&me) == Some(&Scope::In);
        self.entities.iter().filter(|(_, scope)| is_in(scope)).map(|(seen, _)| *seen).collect()
    }

    /// Whether a member sees all that it must, and no more than it may.
    fn is_seen(&self, me: MemberId, world: &[Seen]) -> bool {
        let may = |scope: &BTreeMap<MemberId, Scope>| *scope.get(&me).unwrap_or(&self.others) != Scope::Out;
        let is_meant = |seen: &Seen| self.entities.iter().any(|(it, scope)| it == seen && may(scope));
        self.admits(me).iter().all(|seen| world.contains(seen)) && world.iter().all(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: (PeerId, Epoch) = (PeerId(0), Epoch(0));
    const GUEST: PeerId = PeerId(1);
    const ME: MemberId = MemberId(1);
    const OTHER: MemberId = MemberId(2);

    fn entity(slot: u16) -> EntityId {
        EntityId { slot, generation: 1 }
    }

    /// A world of three entities, of which the second is hidden from the guest, and the third its own.
    fn story() -> (Scopes, [Seen; 3]) {
        let mut scopes = Scopes::new(1);
        let world = [(entity(1), None, 10), (entity(2), None, 11), (entity(3), Some(ME), 12)];
        let answers = [
            (ME, entity(1), true),
            (ME, entity(2), false),
            (OTHER, entity(1), true),
            (OTHER, entity(2), true),
            (OTHER, entity(3), false),
        ];
        scopes.publishes(HOST, 0, &[]);
        scopes.ends_step(HOST, (MemberId(0), &[MemberId(0), ME, OTHER]), &answers, &world);
        scopes.publishes(HOST, 1, &world);
        (scopes, world)
    }

    fn sees(settled: Option<u64>, world: &[Seen]) -> Verdict {
        let (mut scopes, _) = story();
        scopes.sees(GUEST, ME, settled, world.to_vec())?;
        scopes.compare(false)
    }

    #[test]
    fn m13_the_model_objects_to_what_a_scope_hides_and_to_what_is_missing() {
        let (_, [seen, hidden, own]) = story();
        assert_eq!(sees(Some(1), &[seen, own]), Ok(()));
        assert_eq!(sees(None, &[own]), Ok(()), "the rest is under way");
        assert!(sees(None, &[seen, hidden, own]).is_err(), "it is hidden");
        assert!(sees(None, &[(entity(1), None, 11)]).is_err(), "the value of another one");
        assert!(sees(Some(1), &[own]).is_err(), "it says that this is all");
        assert!(sees(Some(1), &[seen]).is_err(), "its own is missing");
    }
}
