//! Live rooms of other nodes of a cluster: lists come from the store, everything else from the node that has the room.

use super::Services;
use super::failure::Failure;
use super::line_failures::{to_failure, to_refusal};
use super::live::{self, LiveRoomDetails};
use super::nodes::{self, MovedRoom};
use crate::cluster::line::{self, Answer, Handlers, Refusal};
use crate::store::{FoundRoom, LiveQuery, NodeName};
use bytes::Bytes;
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{MemberId, RoomCode};
use parlor_server::realm::Realm;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const READ: &str = "rooms/read";
const END: &str = "rooms/end";
const REMOVE: &str = "rooms/remove";
const MOVE: &str = "rooms/move";

/// A question about a room, for the node that has it.
#[derive(Serialize, Deserialize)]
struct AboutRoom {
    app: String,
    environment: String,
    code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl AboutRoom {
    fn new(realm: &Realm, code: RoomCode) -> Self {
        AboutRoom {
            app: realm.app().to_owned(),
            environment: realm.environment().to_owned(),
            code: code.as_str().to_owned(),
            member: None,
            reason: String::new(),
            to: None,
        }
    }
}

/// Answers what other nodes ask about rooms of this one.
pub(super) fn answer(services: &Services, handlers: &mut Handlers) {
    let of = services.clone();
    handlers.on(READ, move |_, body| {
        let services = of.clone();
        async move {
            let (realm, code, _) = asked(&body)?;
            let details = live::read_here(&services, &realm, code).await;
            let details = details.map_err(|failure| to_refusal(&failure))?;
            line::write(&details)
        }
    });
    let of = services.clone();
    handlers.on(END, move |_, body| {
        let services = of.clone();
        async move {
            let (realm, code, about) = asked(&body)?;
            done(live::end_here(&services, &realm, code, about.reason).await)
        }
    });
    let of = services.clone();
    handlers.on(MOVE, move |_, body| {
        let services = of.clone();
        async move {
            let (realm, code, about) = asked(&body)?;
            let to = about.to.as_deref().map(|name| nodes::named("to", name)).transpose();
            let to = to.map_err(|failure| to_refusal(&failure))?;
            let moved = nodes::move_here(&services, &realm, code, to).await;
            line::write(&moved.map_err(|failure| to_refusal(&failure))?)
        }
    });
    let of = services.clone();
    handlers.on(REMOVE, move |_, body| {
        let services = of.clone();
        async move {
            let (realm, code, about) = asked(&body)?;
            let member = about.member.ok_or_else(|| Refusal::new(400, "the question names no member"))?;
            done(live::remove_here(&services, &realm, (code, MemberId(member)), about.reason).await)
        }
    });
}

fn asked(body: &[u8]) -> Result<(Realm, RoomCode, AboutRoom), Refusal> {
    let bad = |error: &dyn core::fmt::Display| Refusal::new(400, error.to_string());
    let about: AboutRoom = line::read(body)?;
    let realm = Realm::new(&about.app, &about.environment).map_err(|error| bad(&error))?;
    let code = about.code.parse().map_err(|error| bad(&error))?;
    Ok((realm, code, about))
}

fn done(done: Result<(), Failure>) -> Answer {
    done.map(|()| Bytes::from_static(b"{}")).map_err(|failure| to_refusal(&failure))
}

/// The other node that has a room of the realm; `None` for this one, for a server alone, and if there is no such room.
pub(super) async fn node_of(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
) -> Result<Option<NodeName>, Failure> {
    let Some(cluster) = services.cluster() else { return Ok(None) };
    let Some(found) = find(services, realm, code).await? else { return Ok(None) };
    if found.owner.node == cluster.node().as_str() {
        return Ok(None);
    }
    let damaged = |error| Failure::defect(&format!("the node of room {code}: {error}"));
    Ok(Some(found.owner.node.parse().map_err(damaged)?))
}

/// The row of a room of the realm.
pub(super) async fn find(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
) -> Result<Option<FoundRoom>, Failure> {
    let Some(cluster) = services.cluster() else { return Ok(None) };
    let found = cluster.directory().find(code).await?;
    let is_of = |found: &FoundRoom| {
        found.listing.app == realm.app() && found.listing.environment == realm.environment()
    };
    Ok(found.filter(is_of))
}

/// The kind of a room of another node.
pub(super) async fn kind(
    services: &Services,
    realm: &Realm,
    code: RoomCode,
) -> Result<Option<&'static str>, Failure> {
    let found = find(services, realm, code).await?.filter(|found| found.is_served);
    let kinds = [RoomKind::PlayerHosted, RoomKind::Dedicated, RoomKind::Match].map(RoomKind::as_str);
    Ok(found.and_then(|found| kinds.into_iter().find(|kind| *kind == found.listing.kind)))
}

/// A room of another node, and its members.
pub(super) async fn read(
    services: &Services,
    node: &NodeName,
    realm: &Realm,
    code: RoomCode,
) -> Result<LiveRoomDetails, Failure> {
    ask(services, node, READ, &AboutRoom::new(realm, code)).await
}

/// Ends a room of another node.
pub(super) async fn end(
    services: &Services,
    node: &NodeName,
    realm: &Realm,
    code: RoomCode,
    reason: &str,
) -> Result<(), Failure> {
    let about = AboutRoom { reason: reason.to_owned(), ..AboutRoom::new(realm, code) };
    ask::<serde::de::IgnoredAny>(services, node, END, &about).await.map(|_| ())
}

/// Moves a room of another node.
pub(super) async fn move_room(
    services: &Services,
    node: &NodeName,
    realm: &Realm,
    code: RoomCode,
    to: Option<&NodeName>,
) -> Result<MovedRoom, Failure> {
    let to = to.map(|to| to.as_str().to_owned());
    ask(services, node, MOVE, &AboutRoom { to, ..AboutRoom::new(realm, code) }).await
}

/// Removes a member of a room of another node.
pub(super) async fn remove(
    services: &Services,
    node: &NodeName,
    realm: &Realm,
    (code, member): (RoomCode, MemberId),
    reason: &str,
) -> Result<(), Failure> {
    let about =
        AboutRoom { member: Some(member.0), reason: reason.to_owned(), ..AboutRoom::new(realm, code) };
    ask::<serde::de::IgnoredAny>(services, node, REMOVE, &about).await.map(|_| ())
}

async fn ask<T: DeserializeOwned>(
    services: &Services,
    node: &NodeName,
    kind: &'static str,
    about: &AboutRoom,
) -> Result<T, Failure> {
    let cluster = services.cluster().ok_or_else(nodes::is_alone)?;
    let question = serde_json::to_vec(about).map_err(|error| Failure::defect(&error.to_string()))?;
    let answer = cluster.line().ask(node, kind, question.into()).await.map_err(|error| to_failure(&error))?;
    serde_json::from_slice(&answer)
        .map_err(|error| Failure::defect(&format!("node {node} answered something else: {error}")))
}

/// A query for the rooms of a realm.
pub(super) fn query(realm: &Realm, after: Option<RoomCode>, limit: usize) -> LiveQuery {
    LiveQuery {
        app: realm.app().to_owned(),
        environment: realm.environment().to_owned(),
        matches: None,
        after: after.map(|code| code.as_str().to_owned()),
        limit,
    }
}
