//! The nodes of the cluster, for operators and for monitoring.

use super::accounts::Nothing;
use super::failure::{Failure, Kind};
use super::table::Caller;
use super::{Services, live, live_elsewhere, rooms};
use crate::cluster::Cluster;
use crate::cluster::directory::MoveError;
use crate::cluster::nodes::Node;
use crate::store::{NodeName, NodeState};
use core::time::Duration;
use parlor_hub::Unmovable;
use parlor_hub::cluster::tenure::Standing;
use parlor_proto::RoomCode;
use parlor_server::embed::Figures;
use parlor_server::realm::Realm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes that share the store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct NodeList {
    /// The node that answers.
    node: String,
    /// What it may do. It decides while it is `held` or `draining`; otherwise its rooms go on, and nobody joins or opens one.
    #[schemars(extend("enum" = ["joining", "held", "draining", "lapsed", "ousted"]))]
    standing: &'static str,
    /// How long its lease is, in milliseconds.
    lease_ms: u64,
    /// All nodes, ordered by name, as of a quarter of a second ago. One that is gone is listed for a day.
    nodes: Vec<NodeView>,
}

/// A node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct NodeView {
    /// Its name.
    id: String,
    /// Whether it serves, serves and takes no more rooms, or is gone.
    #[schemars(extend("enum" = ["serving", "draining", "gone"]))]
    state: &'static str,
    /// Which start of it. Another node that declares it gone counts it further.
    incarnation: u64,
    /// How long its lease still was, in milliseconds.
    lease_ms: u64,
    /// Where its players are sent.
    address: String,
    /// Its version.
    build: String,
    /// The number of its shards.
    shards: u64,
    /// Its live rooms.
    rooms: u64,
    /// The connections of players to it.
    connections: u64,
    /// Thousandths of its cores' time that it uses.
    load_permille: u64,
}

impl NodeView {
    fn of(node: &Node) -> Self {
        NodeView {
            id: node.id.as_str().to_owned(),
            state: node.state.as_str(),
            incarnation: node.incarnation,
            lease_ms: if node.serves() { node.lease_left_us / 1_000 } else { 0 },
            address: node.address.clone(),
            build: node.build.clone(),
            shards: node.shards,
            rooms: node.load.rooms,
            connections: node.load.members,
            load_permille: node.load.permille,
        }
    }
}

pub(super) async fn list(services: Services, _caller: Caller, _input: Nothing) -> Result<NodeList, Failure> {
    let cluster = services.cluster().ok_or_else(is_alone)?;
    let standing = cluster.standing();
    Ok(NodeList {
        node: cluster.node().as_str().to_owned(),
        standing: standing.get().as_str(),
        lease_ms: u64::try_from(standing.lease_left().as_millis()).unwrap_or(u64::MAX),
        nodes: cluster.nodes().all().iter().map(NodeView::of).collect(),
    })
}

/// A node of the cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedNode {
    /// Its name.
    node: String,
}

/// What a node is ordered to do. It and the others hear of it within a second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct OrderedNode {
    /// Its name.
    node: String,
    /// Whether it takes rooms, or takes no more.
    #[schemars(extend("enum" = ["serving", "draining"]))]
    state: &'static str,
}

pub(super) async fn drain(
    services: Services,
    _caller: Caller,
    input: NamedNode,
) -> Result<OrderedNode, Failure> {
    order(&services, input, NodeState::Draining).await
}

pub(super) async fn undrain(
    services: Services,
    _caller: Caller,
    input: NamedNode,
) -> Result<OrderedNode, Failure> {
    order(&services, input, NodeState::Serving).await
}

async fn order(services: &Services, input: NamedNode, state: NodeState) -> Result<OrderedNode, Failure> {
    services.cluster().ok_or_else(is_alone)?;
    let NamedNode { node } = input;
    let name = named("node", &node)?;
    if !services.store().drain_node(&name, state == NodeState::Draining).await? {
        return Err(no_such_node("node"));
    }
    Ok(OrderedNode { node, state: state.as_str() })
}

/// The code of a live room.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskWhere {
    /// Its code.
    code: String,
}

/// Where a live room is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct RoomPlace {
    /// Its code.
    code: String,
    /// Its name for ever, in hexadecimal digits: its code may be given again.
    uid: String,
    /// The node that has it.
    node: String,
    /// Which start of that node has it.
    incarnation: u64,
    /// How often the node that has it changed, from 1.
    term: u64,
    /// Where its members are.
    address: String,
    /// Whether its node serves. If not, another node reopens the room if its players come back within half a minute.
    is_served: bool,
}

pub(super) async fn place(services: Services, caller: Caller, input: AskWhere) -> Result<RoomPlace, Failure> {
    services.cluster().ok_or_else(is_alone)?;
    let realm = services.realm_of(&caller)?;
    let code = live::code("code", &input.code)?;
    let found = live_elsewhere::find(&services, &realm, code).await?;
    let found = found.ok_or_else(|| rooms::no_such_room(code.as_str()))?;
    Ok(RoomPlace {
        code: found.key.code,
        uid: found.key.uid,
        node: found.owner.node,
        incarnation: found.owner.incarnation,
        term: found.key.term,
        address: found.address,
        is_served: found.is_served,
    })
}

/// When a move that is put off may be asked for again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// A live room to move.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AskMove {
    /// Its code.
    code: String,
    /// The node that it is moved to; the least busy one without it.
    to: Option<String>,
}

/// Where a room was moved.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct MovedRoom {
    /// Its code.
    code: String,
    /// The node that has it now.
    node: String,
}

pub(super) async fn move_room(
    services: Services,
    caller: Caller,
    input: AskMove,
) -> Result<MovedRoom, Failure> {
    services.cluster().ok_or_else(is_alone)?;
    let (realm, by) = services.account_of(&caller)?;
    let code = live::code("code", &input.code)?;
    let to = input.to.as_deref().map(|name| named("to", name)).transpose()?;
    let moved = match live_elsewhere::node_of(&services, &realm, code).await? {
        Some(owner) => live_elsewhere::move_room(&services, &owner, &realm, code, to.as_ref()).await?,
        None => move_here(&services, &realm, code, to).await?,
    };
    tracing::info!(%code, %by, node = %moved.node, "an operator moved a room");
    Ok(moved)
}

/// Moves a room of this node.
pub(super) async fn move_here(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
    to: Option<NodeName>,
) -> Result<MovedRoom, Failure> {
    let cluster = services.cluster().ok_or_else(is_alone)?;
    live::must_be_here(services, realm, code).await?;
    let moved = cluster.directory().move_room(code, to).await;
    let node = moved.map_err(|error| failure(code, &error))?;
    Ok(MovedRoom { code: code.as_str().to_owned(), node: node.as_str().to_owned() })
}

/// Reads the name of a node in a field.
pub(super) fn named(field: &'static str, name: &str) -> Result<NodeName, Failure> {
    name.parse().map_err(|_| no_such_node(field))
}

fn no_such_node(field: &'static str) -> Failure {
    let sentence = "no node of this name serves: admin.nodes lists them";
    Failure::new(Kind::NotFound, "no_such_node", sentence).at(field)
}

fn failure(code: RoomCode, error: &MoveError) -> Failure {
    let sentence = error.to_string();
    match error {
        MoveError::Unmovable(Unmovable::NoRoom) => rooms::no_such_room(code.as_str()),
        MoveError::Unmovable(Unmovable::Stays | Unmovable::CannotFollow | Unmovable::TooLarge) => {
            Failure::new(Kind::Conflict, "room_stays", sentence)
        }
        MoveError::NoNode => Failure::new(Kind::Conflict, "no_such_node", sentence),
        MoveError::NotThere(_) => Failure::new(Kind::NotFound, "no_such_node", sentence).at("to"),
        MoveError::Full(_)
        | MoveError::Unreached(_)
        | MoveError::Unmovable(Unmovable::Busy)
        | MoveError::Lapsed
        | MoveError::NotTaken
        | MoveError::Stopped => Failure::unavailable(&sentence, RETRY_AFTER),
    }
}

/// The failure of what only nodes do.
pub(super) fn is_alone() -> Failure {
    let sentence = "this server has its store alone, so there are no nodes: it was started without --node";
    Failure::new(Kind::Conflict, "no_cluster", sentence)
}

/// The cluster's metrics.
pub(super) fn figures(to: &mut Figures, cluster: &Cluster) {
    let (standing, nodes) = (cluster.standing(), cluster.nodes());
    let now = standing.get();
    let states = Standing::ALL.map(|state| ([("state", state.as_str())], u64::from(state == now)));
    to.gauges(
        "parlor_node_state",
        "1 for what this node is: it decides while it is held or draining",
        states,
    );
    let left = standing.lease_left().as_secs_f64();
    to.gauge_seconds("parlor_node_lease_seconds", "How long this node's lease still is", left);
    let lapsed = standing.lapsed_time().as_secs_f64();
    to.seconds("parlor_node_lapsed_seconds", "Time that this node was without its lease", lapsed);
    to.gauge_seconds(
        "parlor_clock_offset_seconds",
        "How far this machine's time of day is ahead of the store's clock",
        cluster.clock_offset_s(),
    );
    let counts = NodeState::ALL.map(|state| {
        let count = nodes.all().iter().filter(|node| node.state == state).count();
        ([("state", state.as_str())], count as u64)
    });
    to.gauges("parlor_nodes", "Nodes of the cluster, as this one sees them", counts);
    let located = cluster.directory().located().map(|(answer, count)| ([("answer", answer)], count));
    to.counters("parlor_located", "Rooms that were looked for in the store, by where they were", located);
    let claims = cluster.directory().claims().map(|(answer, count)| ([("answer", answer)], count));
    to.counters("parlor_claims", "Seats of other nodes that were claimed here, by the answer", claims);
    let reopened = cluster.directory().reopened().map(|(kind, count)| ([("kind", kind)], count));
    to.counters("parlor_rooms_reopened", "Rooms of nodes that are gone, reopened here", reopened);
    let moves = cluster.directory().moves().map(|(result, count)| ([("result", result)], count));
    to.counters("parlor_rooms_moved", "Rooms of this node that were to move, by what came of it", moves);
    let frozen = cluster.directory().moves_frozen().as_secs_f64();
    to.seconds(
        "parlor_move_frozen_seconds",
        "Time that moved rooms stood still before they were given away",
        frozen,
    );
    let fenced = cluster.directory().fenced().map(|(what, count)| ([("what", what)], count));
    to.counters("parlor_fenced", "Writes that rows of other nodes, or of a later start, held back", fenced);
}
