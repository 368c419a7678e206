//! A room's copy at a node: which node owns the room, and who may decide in it.
//!
//! The store has a row for each room, with its owner and a *term*: how often the ownership changed. Each change
//! compares the term and the owner that it replaces, so a term has one owner at most. The machine says which
//! [`Statement`] to run, and hears what came of it.
//!
//! A room *moves* with its sessions: the owner reserves the next term for the receiver, seals its copy, and sends a
//! snapshot. Until the last byte has left it may unseal; from then on it never serves these sessions again, whatever it
//! hears. The receiver adopts complete snapshots alone, and decides within its reservation until the store has
//! confirmed it. A room whose owner is gone is *claimed*, with new sessions.
//!
//! No server moves rooms. Its directory opens, compares and ends rooms by the rules of this machine, for all rooms of the
//! node in one statement, and claims one room in one statement. The model checker drives the machine whole: `tests/cluster-model`.

use super::tenure::{Decision, Incarnation, Standing};
use super::timing::Timing;
use core::time::Duration;

/// Names a room for ever: its code may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomUid(pub [u8; 16]);

/// How often the ownership of a room changed; 1 for a room's first owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term of a room that opens.
    pub const FIRST: Term = Term(1);

    fn next(self) -> Term {
        Term(self.0.saturating_add(1))
    }
}

/// Names a move of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(pub [u8; 16]);

/// A node in one of its incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner<N> {
    /// The node.
    pub node: N,
    /// Which start of it.
    pub incarnation: Incarnation,
}

/// A room's row in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row<N> {
    /// The room.
    pub uid: RoomUid,
    /// Its present term.
    pub term: Term,
    /// Who owns it.
    pub owner: Owner<N>,
    /// The move that the next term is reserved for.
    pub reserved: Option<MoveId>,
}

/// A statement on a room's row. Each changes nothing unless the row still has this term and, if it names one, this
/// move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Insert the row again, with this node as the owner, if no room has the code.
    Enter(Term),
    /// Make this node the owner, if the present one is dead or concedes, and no reservation runs. The term grows by
    /// one, and by two over a reservation: its receiver may decide under the next one.
    Claim(Term),
    /// Reserve the next term, if this node owns the room and no reservation is there.
    Reserve(Term, MoveId),
    /// Make this node the owner under the next term.
    Confirm(Term, MoveId),
    /// Take the reservation back, before the last byte of the snapshot has left.
    Cancel(Term, MoveId),
    /// Take the room back after the snapshot has left, if this node owns it and the reservation is over. The term grows
    /// by two.
    TakeBack(Term, MoveId),
}

/// What follows from a comparison of a copy with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict<N> {
    /// The copy goes on.
    Keep,
    /// The copy goes on; run this statement.
    Run(Statement),
    /// The copy goes on, and is found at this node alone: another room has its code.
    Unlisted,
    /// Drop the copy. Its members are sent to the owner, if there is one.
    GiveUp(Option<Owner<N>>),
}

/// What a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Live,
    /// Live, and a reservation is asked for.
    Reserving(MoveId),
    Reserved(MoveId),
    /// It serves nobody, and its snapshot has not left. What is left of the time for that.
    Sealed(MoveId, Duration),
    /// Its snapshot has left.
    Gone(MoveId),
    /// The place of a room that is offered. What is left of the own time for it.
    Accepted(MoveId, Duration),
    /// Live, and the store is not asked yet. What is left of the own time to decide.
    Adopted(MoveId, Duration),
    /// Live, and owned by an incarnation of this node that was declared gone: a claim is asked for.
    Reclaiming,
    /// The place of a room that is claimed and not open here yet.
    Claiming,
}

/// A room's copy at a node. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoomCopy {
    uid: RoomUid,
    term: Term,
    phase: Phase,
}

impl RoomCopy {
    /// Returns the copy of a room that the store has entered with this node as the owner.
    pub fn opened(uid: RoomUid, term: Term) -> Self {
        RoomCopy { uid, term, phase: Phase::Live }
    }

    /// Returns the place of a room that is about to be claimed, and the statement; `None` if the node may not.
    pub fn claim<N>(row: &Row<N>, standing: Standing) -> Option<(Self, Statement)> {
        let copy = RoomCopy { uid: row.uid, term: row.term, phase: Phase::Claiming };
        standing.may(Decision::Take).then_some((copy, Statement::Claim(row.term)))
    }

    /// Returns the place of a room that its owner of this term offers; `None` if the node may not take it.
    pub fn accept(uid: RoomUid, term: Term, id: MoveId, timing: &Timing, standing: Standing) -> Option<Self> {
        let phase = Phase::Accepted(id, timing.own_offer());
        standing.may(Decision::Take).then_some(RoomCopy { uid, term, phase })
    }

    /// Lets time pass.
    pub fn turn(&mut self, elapsed: Duration) {
        if let Phase::Sealed(_, left) | Phase::Accepted(_, left) | Phase::Adopted(_, left) = &mut self.phase {
            *left = left.saturating_sub(elapsed);
        }
    }

    /// The room.
    pub fn uid(&self) -> RoomUid {
        self.uid
    }

    /// The term of the copy.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Whether it serves its members. It needs no lease for that.
    pub fn serves(&self) -> bool {
        match self.phase {
            Phase::Live | Phase::Reserving(_) | Phase::Reserved(_) => true,
            Phase::Adopted(..) | Phase::Reclaiming => true,
            Phase::Sealed(..) | Phase::Gone(_) | Phase::Accepted(..) | Phase::Claiming => false,
        }
    }

    /// Returns the term under which a decision of a node with this standing counts; `None` if it may decide nothing.
    pub fn decides(&self, standing: Standing) -> Option<Term> {
        let owns = match self.phase {
            Phase::Live | Phase::Reserving(_) | Phase::Reserved(_) => true,
            Phase::Adopted(_, left) => !left.is_zero(),
            Phase::Sealed(..) | Phase::Gone(_) | Phase::Accepted(..) => false,
            Phase::Reclaiming | Phase::Claiming => false,
        };
        (owns && standing.may(Decision::Join)).then_some(self.term)
    }

    /// Reserves the room for the node that has accepted it.
    pub fn offer(&mut self, id: MoveId, standing: Standing) -> Option<Statement> {
        if self.phase != Phase::Live || !standing.may(Decision::Offer) {
            return None;
        }
        self.phase = Phase::Reserving(id);
        Some(Statement::Reserve(self.term, id))
    }

    /// Seals a reserved copy: from now on it takes nothing and serves nobody. Returns whether it did.
    pub fn seal(&mut self, timing: &Timing, standing: Standing) -> bool {
        let Phase::Reserved(id) = self.phase else { return false };
        let seals = standing.may(Decision::Offer);
        if seals {
            self.phase = Phase::Sealed(id, timing.seal);
        }
        seals
    }

    /// Whether it is sealed, and its snapshot has not left.
    pub fn is_sealed(&self) -> bool {
        matches!(self.phase, Phase::Sealed(..))
    }

    /// Whether a move takes too long: [`unseal`](Self::unseal) a sealed copy, drop the place of an offered room.
    pub fn is_late(&self) -> bool {
        matches!(self.phase, Phase::Sealed(_, left) | Phase::Accepted(_, left) if left.is_zero())
    }

    /// Calls a move off: the copy is live. Never once the last byte of the snapshot has left.
    pub fn unseal(&mut self) -> Option<Statement> {
        let (Phase::Reserved(id) | Phase::Sealed(id, _)) = self.phase else { return None };
        self.phase = Phase::Live;
        Some(Statement::Cancel(self.term, id))
    }

    /// Before the last byte of the snapshot leaves: from now on the copy never serves again. Returns whether the byte
    /// may leave.
    pub fn go_over(&mut self) -> bool {
        let Phase::Sealed(id, _) = self.phase else { return false };
        self.phase = Phase::Gone(id);
        true
    }

    /// Takes a room back that the receiver has not adopted. It is reopened with new sessions, in a new copy.
    pub fn take_back(&self) -> Option<Statement> {
        let Phase::Gone(id) = self.phase else { return None };
        Some(Statement::TakeBack(self.term, id))
    }

    /// Adopts a complete snapshot: the copy is live under the next term. `None` if it came too late.
    pub fn adopt(&mut self, id: MoveId, standing: Standing) -> Option<Statement> {
        let Phase::Accepted(accepted, left) = self.phase else { return None };
        if accepted != id || left.is_zero() || !standing.may(Decision::Take) {
            return None;
        }
        let statement = Statement::Confirm(self.term, id);
        (self.term, self.phase) = (self.term.next(), Phase::Adopted(id, left));
        Some(statement)
    }

    /// Handles what came of a statement: the room's term if it changed the row, `None` if it changed nothing. Returns
    /// whether the copy goes on. If the answer is lost, the next [`reconcile`](Self::reconcile) finds out.
    pub fn handle_done(&mut self, statement: Statement, term: Option<Term>) -> bool {
        match (self.phase, statement, term) {
            (Phase::Reserving(id), Statement::Reserve(_, of), done) if id == of => {
                self.phase = if done.is_some() { Phase::Reserved(id) } else { Phase::Live };
            }
            (Phase::Adopted(id, _), Statement::Confirm(_, of), done) if id == of => {
                self.phase = if done.is_some() { Phase::Live } else { return false };
            }
            // An answer to an older claim says nothing of this one.
            (Phase::Reclaiming | Phase::Claiming, Statement::Claim(seen), Some(term))
                if seen == self.term =>
            {
                (self.term, self.phase) = (term, Phase::Live);
            }
            (Phase::Claiming, Statement::Claim(seen), None) if seen == self.term => return false,
            _ => {}
        }
        true
    }

    /// Compares the copy with its row. `me` is this node in its present incarnation. Sealed copies are compared, too:
    /// a room that was claimed meanwhile must not be unsealed.
    pub fn reconcile<N: Copy + Eq>(&mut self, me: Owner<N>, row: Option<&Row<N>>) -> Verdict<N> {
        let Some(row) = row else { return self.without_row() };
        if row.uid != self.uid {
            return if self.serves() { Verdict::Unlisted } else { Verdict::GiveUp(None) };
        }
        let is_mine = row.owner == me;
        let give_up = Verdict::GiveUp((!is_mine).then_some(row.owner));
        match self.phase {
            Phase::Adopted(id, _) if row.term.next() == self.term && row.reserved == Some(id) => {
                Verdict::Run(Statement::Confirm(row.term, id))
            }
            // Terms only grow: it was read before this copy got its term.
            _ if row.term < self.term => Verdict::Keep,
            Phase::Adopted(..) | Phase::Claiming | Phase::Reclaiming if is_mine && row.term >= self.term => {
                (self.term, self.phase) = (row.term, Phase::Live);
                Verdict::Keep
            }
            Phase::Accepted(..) if row.term == self.term => Verdict::Keep,
            Phase::Adopted(..) | Phase::Accepted(..) | Phase::Claiming => give_up,
            _ if row.term != self.term => give_up,
            _ if is_mine => self.with_own_row(row),
            Phase::Live | Phase::Reserving(_) | Phase::Reserved(_) | Phase::Reclaiming
                if row.owner.node == me.node =>
            {
                self.phase = Phase::Reclaiming;
                Verdict::Run(Statement::Claim(self.term))
            }
            _ => give_up,
        }
    }

    /// The database lost the row, or another node has deleted it.
    fn without_row<N>(&mut self) -> Verdict<N> {
        match self.phase {
            Phase::Live | Phase::Reserving(_) | Phase::Reserved(_) | Phase::Reclaiming => {
                self.phase = Phase::Live;
                Verdict::Run(Statement::Enter(self.term))
            }
            _ => Verdict::GiveUp(None),
        }
    }

    /// The row has this node and this term.
    fn with_own_row<N>(&mut self, row: &Row<N>) -> Verdict<N> {
        match (self.phase, row.reserved) {
            (Phase::Reserving(id), Some(reserved)) if id == reserved => {
                self.phase = Phase::Reserved(id);
                Verdict::Keep
            }
            (Phase::Reserved(id) | Phase::Sealed(id, _), reserved) if reserved != Some(id) => {
                self.phase = Phase::Live;
                Verdict::Keep
            }
            // A move that was called off, and whose cancellation was lost.
            (Phase::Live, Some(id)) => Verdict::Run(Statement::Cancel(self.term, id)),
            _ => Verdict::Keep,
        }
    }
}
