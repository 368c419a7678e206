//! Homes of realms: of the nodes of a cluster, one has the lobbies, parties and searches of a realm, and the others ask
//! it. A server alone is the home of all.
//!
//! The home follows from the nodes that serve, so every node finds it by itself. Nothing of it is stored: what a home
//! had in memory ends with it, or when another node becomes the home.
//!
//! `calls.rs` has operations done at the home, `told.rs` what a home tells players at other nodes, `present.rs` asks
//! which players are where, and `moves.rs` goes on at another home.

mod calls;
mod moves;
mod present;
mod told;

pub(crate) use calls::Via;

use super::Services;
use super::failure::Failure;
use super::table::Caller;
use crate::cluster::line::{self, Handlers};
use crate::cluster::nodes::Node;
use crate::store::NodeName;
use calls::Entered;
use core::time::Duration;
use parlor_hub::cluster::placement;
use parlor_hub::cluster::tenure::Decision;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use told::{Followed, Outbox};

/// Time until an operation may be asked again whose home could not be reached.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// A node at one of its starts: what one had in memory, another has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HomeId {
    node: NodeName,
    incarnation: u64,
}

impl HomeId {
    fn of(node: &Node) -> Self {
        HomeId { node: node.id.clone(), incarnation: node.incarnation }
    }
}

/// Where the home of a realm is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// This node of a cluster.
    Here(HomeId),
    /// Another node.
    There(HomeId),
}

/// What a node remembers of homes, its own and others.
#[derive(Default)]
pub(super) struct Homes {
    /// Realms whose home this node is, since which of its starts.
    held: Mutex<BTreeMap<Realm, HomeId>>,
    /// What waits for each other node.
    outboxes: Mutex<BTreeMap<NodeName, Outbox>>,
    /// Lobbies and searches of which players here were told.
    followed: Mutex<Followed>,
    /// Searches that began at this node, by realm and id.
    entered: Mutex<BTreeMap<(Realm, String), Entered>>,
    /// Players who were nowhere at the last look.
    absent: Mutex<BTreeSet<(Realm, String)>>,
}

impl Services {
    /// The home of a realm, as far as this node knows; `None` if no node serves, and for a server alone.
    fn home_of(&self, realm: &Realm) -> Option<HomeId> {
        let nodes = self.cluster()?.nodes();
        let key = format!("home/{}", realm.path());
        let home = placement::home(key.as_bytes(), nodes.working().map(|node| node.id.as_str()))?;
        nodes.working().find(|node| node.id.as_str() == home).map(HomeId::of)
    }

    /// The nodes that may be homes, by which homes follow.
    fn serving_homes(&self) -> Vec<HomeId> {
        let Some(cluster) = self.cluster() else { return Vec::new() };
        cluster.nodes().working().map(HomeId::of).collect()
    }

    /// Where the home of a realm is; `None` for a server alone, which has all itself.
    fn place_of(&self, realm: &Realm) -> Result<Option<Place>, Failure> {
        let Some(cluster) = self.cluster() else { return Ok(None) };
        match self.home_of(realm) {
            Some(home) if home.node != *cluster.node() => Ok(Some(Place::There(home))),
            // Others may have another home already.
            Some(home) if cluster.standing().get().may(Decision::Join) => {
                lock(&self.homes().held).entry(realm.clone()).or_insert_with(|| home.clone());
                Ok(Some(Place::Here(home)))
            }
            _ => Err(away()),
        }
    }

    /// Whether this node has the lobbies and searches of a realm.
    pub(super) fn is_home(&self, realm: &Realm) -> bool {
        self.place_of(realm).is_ok_and(|place| !matches!(place, Some(Place::There(_))))
    }
}

fn away() -> Failure {
    let sentence =
        "the node with the lobbies and searches of this game cannot be reached: ask again in a moment";
    Failure::unavailable(sentence, ASK_AGAIN)
}

/// What is charged for an operation before another node is asked, as for one that is done here.
pub(crate) type Charge = fn(&Services, &Caller) -> Result<(), Failure>;

/// Charges of operations that cost nothing where the home is. Operators are not charged, and nobody is refused as too
/// often.
pub(super) fn question(services: &Services, caller: &Caller) -> Result<(), Failure> {
    if !caller.is_player() {
        return Ok(());
    }
    services.charged(caller, &services.lobbies().questions).map_err(|failure| {
        let sentence =
            "too many questions of your account to another node of the cluster: ask again in a moment";
        Failure::unavailable(sentence, failure.retry_after().unwrap_or(ASK_AGAIN))
    })
}

/// What a node answers of homes.
pub(super) fn answer(services: &Services, handlers: &mut Handlers) {
    calls::answer(services, handlers);
    told::answer(services, handlers);
    present::answer(services, handlers);
}

/// Runs as long as the services of a node.
pub(super) async fn look_after(services: Services) {
    if services.cluster().is_some() {
        tokio::join!(present::look(&services), moves::watch(&services));
    }
}

/// Reads the realm of a question.
fn realm_of(path: &str) -> Result<Realm, line::Refusal> {
    Realm::from_path(path).map_err(|error| line::Refusal::new(400, error.to_string()))
}
