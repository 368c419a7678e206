//! Operations on the nodes of a cluster.

use super::{ADMIN, OPERATORS, get, post};
use crate::online::nodes;
use crate::online::table::Operation;

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::new(
            "admin.nodes",
            get("/admin/nodes"),
            OPERATORS,
            "Lists the nodes of the cluster that the server is one of",
            nodes::list,
        )
        .lists()
        .refuses(&[&["no_cluster"]]),
        Operation::new(
            "admin.drain",
            post("/admin/nodes/{node}/drain"),
            ADMIN,
            "Lets a node of the cluster take no more rooms; those that it has move to other nodes",
            nodes::drain,
        )
        .refuses(&[&["no_cluster", "no_such_node"]]),
        Operation::new(
            "admin.undrain",
            post("/admin/nodes/{node}/undrain"),
            ADMIN,
            "Lets a draining node of the cluster take rooms again",
            nodes::undrain,
        )
        .refuses(&[&["no_cluster", "no_such_node"]]),
        Operation::new(
            "admin.move_live_room",
            post("/admin/live/{code}/move"),
            ADMIN,
            "Moves a room in memory to another node of the cluster, with its members",
            nodes::move_room,
        )
        .refuses(&[&["no_cluster", "no_such_node", "no_such_room", "room_stays"]]),
        Operation::new(
            "admin.where",
            get("/admin/where/{code}"),
            OPERATORS,
            "Says which node of the cluster has a room in memory",
            nodes::place,
        )
        .refuses(&[&["no_cluster", "no_such_room"]]),
    ]
}
