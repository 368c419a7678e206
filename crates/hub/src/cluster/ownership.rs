//! A room's copy at a node: which node owns the room, and who may decide in it.
//!
//! The store has a row for each room, with its owner and a *term*: how often the ownership changed. Each change
//! compares the term and the owner that it replaces, so a term has one owner at most. The machine says which
//! [`Statement`] to run, and hears what came of it.
//!
//! A room *moves* with its sessions: the owner seals its copy, and gives the room away with a snapshot of it, in one
//! statement. If the owner gets no answer, the copy stays sealed until a second statement has kept the room, or found it
//! given. The second statement raises the term, so the first one changes nothing any more. The receiver *claims* a room
//! that was given to it, and takes the snapshot out of the row by the same statement. A room whose owner is gone is
//! claimed, too; without a snapshot its sessions begin anew.
//!
//! A node's directory opens, compares and ends rooms by the rules of this machine, for all rooms of the node in one
//! statement, and claims, gives and keeps one room in one statement each. The model checker drives the machine whole:
//! `tests/cluster-model`.

use super::tenure::{Decision, Incarnation, Standing};

/// Names a room for ever: its code may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomUid(pub [u8; 16]);

/// How often the ownership of a room changed; 1 for a room's first owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term of a room that opens.
    pub const FIRST: Term = Term(1);
}

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
}

/// A statement on a room's row. Each changes nothing unless the row still has this term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Insert the row again, with this node as the owner, if no room has the code.
    Enter(Term),
    /// Make this node the owner under the next term, if the present one is dead or is this node. Takes the snapshot
    /// out, if there is one.
    Claim(Term),
    /// Make another node the owner under the next term, if this node owns the room; keep the snapshot for it.
    Give(Term),
    /// Raise the term and make this incarnation of the node the owner, if the node owns the room: an earlier statement
    /// that gives it away changes nothing then.
    Keep(Term),
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
    /// It serves nobody: it may have been given away.
    Sealed,
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
        matches!(self.phase, Phase::Live | Phase::Reclaiming)
    }

    /// Returns the term under which a decision of a node with this standing counts; `None` if it may decide nothing.
    pub fn decides(&self, standing: Standing) -> Option<Term> {
        (self.phase == Phase::Live && standing.may(Decision::Join)).then_some(self.term)
    }

    /// Seals the copy and gives the room away: from now on it takes nothing and serves nobody.
    pub fn give(&mut self, standing: Standing) -> Option<Statement> {
        if self.phase != Phase::Live || !standing.may(Decision::Offer) {
            return None;
        }
        self.phase = Phase::Sealed;
        Some(Statement::Give(self.term))
    }

    /// Keeps a room that may have been given away. Its copy is unsealed only by the answer.
    pub fn keep(&self) -> Option<Statement> {
        (self.phase == Phase::Sealed).then_some(Statement::Keep(self.term))
    }

    /// Handles what came of a statement: the room's term if it changed the row, `None` if it changed nothing. Returns
    /// whether the copy goes on. If the answer is lost, the next [`reconcile`](Self::reconcile) finds out.
    pub fn handle_done(&mut self, statement: Statement, term: Option<Term>) -> bool {
        match (self.phase, statement, term) {
            // It is another node's.
            (Phase::Sealed, Statement::Give(of), Some(_)) if of == self.term => return false,
            // What was kept must be known to be: an answer that nothing changed may be that of a second try.
            (Phase::Sealed, Statement::Keep(of), done) if of == self.term => match done {
                Some(term) => (self.term, self.phase) = (term, Phase::Live),
                None => return false,
            },
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
    /// a room that another node has must not be unsealed.
    pub fn reconcile<N: Copy + Eq>(&mut self, me: Owner<N>, row: Option<&Row<N>>) -> Verdict<N> {
        let Some(row) = row else { return self.without_row() };
        if row.uid != self.uid {
            return if self.serves() { Verdict::Unlisted } else { Verdict::GiveUp(None) };
        }
        let is_mine = row.owner == me;
        let give_up = Verdict::GiveUp((!is_mine).then_some(row.owner));
        match self.phase {
            // Terms only grow: it was read before this copy got its term.
            _ if row.term < self.term => Verdict::Keep,
            // A claim raises the term: a row that has not was read before it, or the claim was lost.
            Phase::Claiming | Phase::Reclaiming if is_mine && row.term > self.term => {
                (self.term, self.phase) = (row.term, Phase::Live);
                Verdict::Keep
            }
            Phase::Claiming if is_mine => Verdict::Run(Statement::Claim(self.term)),
            Phase::Claiming => give_up,
            _ if row.term != self.term => give_up,
            _ if is_mine => Verdict::Keep,
            Phase::Live | Phase::Reclaiming if row.owner.node == me.node => {
                self.phase = Phase::Reclaiming;
                Verdict::Run(Statement::Claim(self.term))
            }
            // What was asked of the store by the incarnation before this one is asked for once more.
            Phase::Sealed if row.owner.node == me.node => Verdict::Run(Statement::Keep(self.term)),
            _ => give_up,
        }
    }

    /// The database lost the row, or another node has deleted it.
    fn without_row<N>(&mut self) -> Verdict<N> {
        match self.phase {
            Phase::Live | Phase::Reclaiming => {
                self.phase = Phase::Live;
                Verdict::Run(Statement::Enter(self.term))
            }
            Phase::Sealed | Phase::Claiming => Verdict::GiveUp(None),
        }
    }
}
