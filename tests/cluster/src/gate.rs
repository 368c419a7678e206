//! Statements of a move that wait at their commit, so that a test may interrupt the move there.

use parlor_testing::{Scratch, within};
use tokio_postgres::{Client, NoTls};

/// A statement of a move.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A node gives its room away, with a snapshot.
    Give,
    /// The other node takes the room, and the snapshot out of the store.
    Take,
}

impl Step {
    fn condition(self) -> &'static str {
        match self {
            Step::Give => "OLD.snapshot IS NULL AND NEW.snapshot IS NOT NULL",
            Step::Take => "OLD.snapshot IS NOT NULL AND NEW.snapshot IS NULL",
        }
    }
}

/// Keeps commits of one [`Step`] waiting, for less than a session's `lock_timeout`.
pub struct Gate {
    /// It holds the lock that they wait for.
    keeper: Client,
}

/// The lock that commits wait for: PostgreSQL's name for it, and the condition that a row of `pg_locks` is of it.
const LOCK: &str = "7242690, hashtext(current_schema())";
const IS_LOCK: &str = "locktype = 'advisory' AND classid = 7242690
     AND objid::bigint = hashtext(current_schema())::bigint & 4294967295";

impl Gate {
    /// Closes one in a cluster's schema.
    pub(crate) async fn close(scratch: &Scratch, step: Step) -> Self {
        let (keeper, connection) = tokio_postgres::connect(&scratch.address, NoTls).await.unwrap();
        tokio::spawn(connection);
        let close = format!(
            "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql
                 AS 'BEGIN PERFORM pg_advisory_xact_lock_shared({LOCK}); RETURN NULL; END';
             CREATE CONSTRAINT TRIGGER gate AFTER UPDATE ON live_rooms DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW WHEN ({}) EXECUTE FUNCTION gate();
             SELECT pg_advisory_lock({LOCK})",
            step.condition()
        );
        keeper.batch_execute(&close).await.unwrap();
        Gate { keeper }
    }

    /// Waits until a commit waits here.
    pub async fn reached(&self) {
        let waits = format!("SELECT FROM pg_locks WHERE {IS_LOCK} AND NOT granted");
        within(async { while self.keeper.query(&waits, &[]).await.unwrap().is_empty() {} }).await;
    }

    /// Ends the session whose commit waits: nothing of its transaction was done.
    pub async fn undo(&self) {
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE {IS_LOCK} AND NOT granted");
        assert_eq!(self.keeper.query(&end, &[]).await.unwrap().len(), 1);
    }

    /// Lets commits pass, and waits for the one that waits.
    pub async fn open(&self) {
        self.keeper.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).await.unwrap();
        let is_there = format!("SELECT FROM pg_locks WHERE {IS_LOCK}");
        within(async { while !self.keeper.query(&is_there, &[]).await.unwrap().is_empty() {} }).await;
    }
}
