//! The scope of a world: a filter that the game writes, per player and entity, beside audiences.
//!
//! The filter runs at the host, and the hub enforces its result. An entity's audience carries both: the members that
//! may see it, and what the game's own audience is, so that the next host can tell the two apart. Members that the
//! filter leaves out are marked in it, and no member has such an id.

use super::host::Host;
use parlor_proto::OrderedSet;
use parlor_proto::{EntityId, MemberId};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::limits::AUDIENCE_MEMBERS_MAX;
use parlor_sync::world::{World, WorldError};

/// Stands for the audience of all, where a filter names those that see.
const EVERYBODY: MemberId = MemberId(u32::MAX);
/// Marks a member of the game's own audience that the filter leaves out.
const OUT: u32 = 1 << 31;

/// Which pairs of players and entities are asked about next.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Entities that have not been asked about since they changed.
    changed: OrderedSet<EntityId>,
    /// The players of the last call.
    players: Vec<MemberId>,
    calls: u32,
}

/// The game's own audience of an entity.
fn own(audience: &Audience) -> Audience {
    match audience {
        Audience::Members(members) if !members.contains(&EVERYBODY) => {
            Audience::members(members.iter().map(|member| MemberId(member.0 & !OUT)))
        }
        _ => Audience::All,
    }
}

fn is_scoped(audience: &Audience) -> bool {
    matches!(audience, Audience::Members(members) if members.iter().any(|member| member.0 & OUT != 0))
}

/// The game's own audience without those that neither own the entity nor are admitted. The owner may be a player that
/// is gone: when it returns, its own is there at once. A room without a free seat has no room for it in the audience,
/// either, and it cannot return.
fn narrowed(
    own: &Audience,
    owner: Option<MemberId>,
    players: &[MemberId],
    is_admitted: impl Fn(MemberId) -> bool,
) -> Audience {
    let in_scope = |player| owner == Some(player) || is_admitted(player);
    match own {
        Audience::All => {
            let seeing = players.iter().copied().filter(|player| is_admitted(*player));
            let owner =
                owner.filter(|owner| players.contains(owner) || players.len() + 2 <= AUDIENCE_MEMBERS_MAX);
            Audience::members(seeing.chain(owner).chain([EVERYBODY]))
        }
        Audience::Members(members) => Audience::members(
            members.iter().map(|member| if in_scope(*member) { *member } else { MemberId(member.0 | OUT) }),
        ),
    }
}

/// The scope of a world that a previous host may have filtered.
pub(super) fn of_world(world: &World) -> Option<Scope> {
    let is_filtered = |entity| world.audience(entity).is_ok_and(is_scoped);
    world.entities().any(is_filtered).then(Scope::default)
}

impl Host {
    /// Begins a round of questions: returns the entities to ask about, if each is asked about once in `every` rounds.
    /// Changed entities are asked about at once, and all of them when a player has come.
    pub(crate) fn scope_round(
        &mut self,
        entities: impl Iterator<Item = EntityId>,
        players: &[MemberId],
        every: u32,
    ) -> Vec<EntityId> {
        let is_new = self.scope.is_none();
        let scope = self.scope.get_or_insert_with(Scope::default);
        let has_come = players.iter().any(|player| scope.players.binary_search(player).is_err());
        scope.players = players.to_vec();
        scope.calls = scope.calls.wrapping_add(1);
        let turn = scope.calls % every;
        let changed = std::mem::take(&mut scope.changed);
        let is_due = |entity: &EntityId| u32::from(entity.slot) % every == turn || changed.contains(entity);
        entities.filter(|entity| is_new || has_come || is_due(entity)).collect()
    }

    /// Whether the game's own audience of an entity admits a player, and the filter decides: an owner is always in
    /// scope.
    pub(crate) fn is_asked(&self, entity: EntityId, player: MemberId) -> bool {
        let Ok(audience) = self.world().audience(entity) else { return false };
        let is_owner = self.world().owner(entity) == Ok(Some(player));
        !is_owner && own(audience).admits(Viewer::Member(player))
    }

    /// Sets which players the filter admits; the owner is one of them.
    pub(crate) fn set_scope(
        &mut self,
        entity: EntityId,
        players: &[MemberId],
        admitted: &[MemberId],
    ) -> Result<(), WorldError> {
        let owner = self.world().owner(entity)?;
        let own = own(self.world().audience(entity)?);
        let audience = narrowed(&own, owner, players, |player| admitted.contains(&player));
        self.entity(entity)?.set_audience(entity, audience)
    }

    /// Ends the filter: the game's own audiences decide alone.
    pub(crate) fn end_scope(&mut self) -> Result<(), WorldError> {
        self.scope = None;
        let filtered = |entity: &EntityId| self.world().audience(*entity).is_ok_and(is_scoped);
        let entities: Vec<EntityId> = self.world().entities().filter(filtered).collect();
        for entity in entities {
            let own = own(self.world().audience(entity)?);
            self.world_mut().set_audience(entity, own)?;
        }
        Ok(())
    }

    /// Spawns an entity. Under a filter its owner alone sees it until the filter was asked.
    pub(crate) fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, WorldError> {
        let entity = self.world_mut().spawn(owner)?;
        self.changed(entity, &Audience::All)?;
        Ok(entity)
    }

    /// Despawns an entity of the game.
    pub(crate) fn despawn(&mut self, entity: EntityId) -> Result<(), WorldError> {
        self.entity(entity)?.despawn(entity)?;
        if let Some(scope) = &mut self.scope {
            scope.changed.remove(&entity);
        }
        Ok(())
    }

    /// Sets the owner of an entity.
    pub(crate) fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), WorldError> {
        self.entity(entity)?.set_owner(entity, owner)?;
        let own = own(self.world().audience(entity)?);
        self.changed(entity, &own)
    }

    /// Sets the game's own audience of an entity.
    pub(crate) fn set_audience(&mut self, entity: EntityId, own: Audience) -> Result<(), WorldError> {
        if self.scope.is_some() {
            return self.entity(entity).map(drop).and_then(|()| self.changed(entity, &own));
        }
        self.entity(entity)?.set_audience(entity, own)
    }

    /// Leaves an entity to its owner, and to those of its audience that the filter admitted before, until the filter
    /// is asked again.
    fn changed(&mut self, entity: EntityId, own: &Audience) -> Result<(), WorldError> {
        let Some(scope) = &mut self.scope else { return Ok(()) };
        scope.changed.insert(entity);
        let players = scope.players.clone();
        let (owner, before) = (self.world().owner(entity)?, self.world().audience(entity)?.clone());
        let was_in = |player| is_scoped(&before) && before.admits(Viewer::Member(player));
        let audience = narrowed(own, owner, &players, was_in);
        self.world_mut().set_audience(entity, audience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u32]) -> Vec<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    #[test]
    fn m13_an_audience_carries_what_the_game_set_and_who_is_in_scope() {
        let players = ids(&[0, 1, 2, 7]);
        for audience in [Audience::All, Audience::members(ids(&[1, 2, 9])), Audience::members([])] {
            // The owner is there, or gone and returns before the filter is asked again.
            for owner in [None, Some(MemberId(2)), Some(MemberId(9))] {
                for of in [ids(&[]), ids(&[1]), ids(&[0, 1, 2, 7, 9])] {
                    let both = narrowed(&audience, owner, &players, |player| of.contains(&player));
                    assert_eq!(own(&both), audience);
                    for player in players.iter().copied().chain(owner) {
                        let sees = both.admits(Viewer::Member(player));
                        let may = audience.admits(Viewer::Member(player));
                        let in_scope = owner == Some(player) || of.contains(&player);
                        assert_eq!(sees, may && in_scope, "{player} of {of:?} in {audience:?} of {owner:?}");
                    }
                    assert!(both.named() <= audience.named().max(players.len() + 2));
                }
            }
        }
        assert!(!is_scoped(&Audience::All) && !is_scoped(&Audience::members(ids(&[1]))));
        let full = ids(&(0..255).collect::<Vec<u32>>());
        let both = narrowed(&Audience::All, Some(MemberId(300)), &full, |_| true);
        assert_eq!(both.named(), AUDIENCE_MEMBERS_MAX);
        assert!(is_scoped(&narrowed(&Audience::All, None, &players, |_| true)));
    }
}
