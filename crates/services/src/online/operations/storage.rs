//! Operations on objects.

use super::{EVERY_ROLE, PLAYER_AND_SERVER, get, post};
use crate::online::storage;
use crate::online::table::Operation;
use parlor_social::limits::{OBJECT_BATCH_MAX, OBJECT_BYTES_MAX};

/// Codes of what is written.
const WRITES: &[&str] = &["stale", "not_yours", "too_often"];

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::new(
            "storage.read",
            post("/storage/read"),
            EVERY_ROLE,
            "Reads up to 32 objects; those that may not be read are left out",
            storage::read,
        )
        .answers_bytes(OBJECT_BATCH_MAX * (OBJECT_BYTES_MAX + 512)),
        Operation::new(
            "storage.list",
            get("/storage"),
            EVERY_ROLE,
            "Lists the objects of an owner that may be read",
            storage::list,
        )
        .lists(),
        Operation::new(
            "storage.write",
            post("/storage"),
            PLAYER_AND_SERVER,
            "Writes up to 32 objects, all or none",
            storage::write,
        )
        .refuses(&[WRITES, &["taken", "no_such_player", "quota"]]),
        Operation::new(
            "storage.remove",
            post("/storage/remove"),
            PLAYER_AND_SERVER,
            "Removes up to 32 objects, all or none",
            storage::remove,
        )
        .refuses(&[WRITES]),
    ]
}
