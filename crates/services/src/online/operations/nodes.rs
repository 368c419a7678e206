//! Operations on the nodes of a cluster.

use super::{OPERATORS, get};
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
            "admin.where",
            get("/admin/where/{code}"),
            OPERATORS,
            "Says which node of the cluster has a room in memory",
            nodes::place,
        )
        .refuses(&[&["no_cluster", "no_such_room"]]),
    ]
}
