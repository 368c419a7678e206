//! The filter by which a game decides who sees which entity: see [`WorldAccess::scope`].

use crate::error::RoomError;
use crate::world::WorldAccess;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ApiMisuse, EntityId, MemberId};

/// Rounds in which each pair is asked about once, at most.
const SCOPE_EVERY_MAX: u32 = 600;

/// For the host.
impl WorldAccess<'_> {
    /// Decides who sees which entity, beside audiences and interest: a player or spectator that `filter` denies an entity is sent
    /// nothing of it, not even when it joins. Call it in every step: each pair of a player and an entity is asked
    /// about once in `every` calls (1 to 600), and at once when the entity is new or changes its owner or audience.
    /// When a player joins, all are asked about.
    ///
    /// An owner is in scope of what is its own, and is not asked about. The filter is asked only about players of the
    /// entity's [audience](Self::set_audience). From the first call on, a new entity is seen by its owner alone until
    /// the next call. It stays so after a migration: the next host goes on with what the last one decided, until its
    /// game calls this.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or `every` is out of its bounds.
    pub fn scope(
        &mut self,
        every: u32,
        mut filter: impl FnMut(&WorldAccess<'_>, MemberId, EntityId) -> bool,
    ) -> Result<(), RoomError> {
        if !(1..=SCOPE_EVERY_MAX).contains(&every) {
            let text = format!("scope: every is {every}; it may be 1 to {SCOPE_EVERY_MAX} calls");
            return Err(ApiMisuse::Bounds(text).into());
        }
        let players = self.scoped_players();
        let entities = self.entities();
        let round =
            self.host("decide who sees an entity")?.scope_round(entities.into_iter(), &players, every);
        for entity in round {
            let mut admitted = Vec::new();
            for player in &players {
                let is_asked = self.host("decide who sees an entity")?.is_asked(entity, *player);
                if is_asked && filter(self, *player, entity) {
                    admitted.push(*player);
                }
            }
            self.host("decide who sees an entity")?.set_scope(entity, &players, &admitted)?;
        }
        Ok(())
    }

    /// Ends the [filter](Self::scope): audiences and interest decide alone.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn end_scope(&mut self) -> Result<(), RoomError> {
        Ok(self.host("decide who sees an entity")?.end_scope()?)
    }

    /// All members but a host without a player, which sees everything. A host with one is asked about: it may be a
    /// guest later.
    fn scoped_players(&self) -> Vec<MemberId> {
        let without = (self.welcome().kind == RoomKind::Dedicated).then_some(self.welcome().member);
        let mut all: Vec<MemberId> = self.players().members().map(|player| player.id).collect();
        all.retain(|id| Some(*id) != without);
        all.sort_unstable();
        all
    }
}
