//! Events of a hub, for the log and this machine's registry.
//!
//! Names and reasons come from members, so they are logged in their `Debug` form: a line break in a name must
//! not forge a line.

use super::peer::Peer;
use crate::recorder::Recorder;
use parlor_hub::{HubEvent, RoomSummary};
use parlor_proto::session::Rejection;
use parlor_proto::{ConnectionId, RoomCode, RoomId};
use parlor_transport::Fingerprint;
use parlor_transport::discovery::Registry;
use parlor_transport::discovery::registry::EntryGuard;
use parlor_transport::lan::{Advertisement, Advertiser, Listing};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Where rooms are announced.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The port of the shard.
    pub(crate) port: u16,
    /// The registry for other processes of this machine, and the fingerprint by which they know the server.
    pub(crate) registry: Option<(Registry, Fingerprint)>,
    /// Announcements on the local network.
    pub(crate) lan: Option<Advertiser>,
    /// Whether a room is announced there only when its host's process asks for it.
    pub(crate) lan_on_request: bool,
}

/// A live room.
#[derive(Debug)]
struct Open {
    id: RoomId,
    /// Removes the room from the registry when dropped.
    _entry: Option<EntryGuard>,
    /// Ends the announcement when dropped.
    advertisement: Option<Advertisement>,
}

/// Handles the events of a hub.
#[derive(Debug)]
pub(super) struct Events {
    directory: Directory,
    rooms: BTreeMap<RoomCode, Open>,
}

impl Events {
    pub(super) fn new(directory: Directory) -> Self {
        Events { directory, rooms: BTreeMap::new() }
    }

    pub(super) fn tell(
        &mut self,
        hub_event: HubEvent,
        peers: &mut FxHashMap<ConnectionId, Peer>,
        recorder: Option<&mut Recorder>,
    ) {
        match hub_event {
            HubEvent::RoomOpened(room) => self.opened(&room, recorder),
            HubEvent::RoomEnded { code, reason } => {
                tracing::info!(%code, reason = reason.as_str(), detail = ?reason, "room ended");
                let open = self.rooms.remove(&code);
                if let (Some(recorder), Some(open)) = (recorder, open) {
                    recorder.close(open.id);
                }
            }
            HubEvent::Joined { code, member, name, connection, user } => {
                tracing::info!(%code, %member, ?name, ?user, connection = connection.0, "member joined");
            }
            HubEvent::Left { code, member, reason } => {
                tracing::info!(%code, %member, reason = reason.as_str(), detail = ?reason, "member left");
            }
            HubEvent::Away { code, member, reason } => {
                tracing::info!(%code, %member, reason = reason.as_str(), "member lost its connection; its seat is kept");
            }
            HubEvent::Resumed { code, member, connection, is_restarted } => {
                tracing::info!(%code, %member, connection = connection.0, is_restarted, "member is back");
            }
            HubEvent::TokenReused { code, member } => {
                tracing::warn!(%code, %member, "a resume token was used again; the session is ended");
            }
            HubEvent::Rejected { connection, answer } => {
                tracing::info!(connection = connection.0, reason = word(&answer), detail = ?answer, "turned away");
            }
            HubEvent::Misbehaved { connection, how } => {
                let how = how.to_string();
                tracing::warn!(
                    connection = connection.0,
                    ?how,
                    "a peer broke the protocol and is disconnected"
                );
                if let Some(peer) = peers.get_mut(&connection) {
                    peer.fault.get_or_insert(how);
                }
            }
        }
    }

    fn opened(&mut self, room: &RoomSummary, recorder: Option<&mut Recorder>) {
        let RoomSummary { id, code, app, environment, max_players, .. } = room;
        tracing::info!(%code, room = id.0, ?app, ?environment, max_players, "room opened");
        if let Some(recorder) = recorder {
            recorder.open(*id, *code);
        }
        let open = Open {
            id: *id,
            _entry: self.directory.enter(room),
            advertisement: if self.directory.lan_on_request {
                None
            } else {
                self.directory.announce(room, &Listing::default())
            },
        };
        self.rooms.insert(*code, open);
    }

    /// Announces a room under this listing, or takes its announcement back.
    pub(super) fn announce(&mut self, room: &RoomSummary, listing: Option<&Listing>) {
        let Some(open) = self.rooms.get_mut(&room.code) else { return };
        open.advertisement = None;
        open.advertisement = listing.and_then(|listing| self.directory.announce(room, listing));
    }
}

impl Directory {
    /// The entry is written at once, although it is a file: a client that learns the code must find it there,
    /// and the packet with the code leaves after this. Only development servers do it.
    fn enter(&self, RoomSummary { code, app, .. }: &RoomSummary) -> Option<EntryGuard> {
        let (registry, fingerprint) = self.registry.as_ref()?;
        let entered = registry.enter_room(*code, app, self.port, *fingerprint);
        entered
            .inspect_err(|error| {
                let folder = registry.folder().display();
                tracing::warn!(%code, %folder, %error, "the room cannot be found by its code on this machine");
            })
            .ok()
    }

    /// A room with a secret is for invited players only.
    fn announce(&self, room: &RoomSummary, listing: &Listing) -> Option<Advertisement> {
        let lan = self.lan.as_ref().filter(|_| !room.needs_secret)?;
        let RoomSummary { code, app, environment, max_players, .. } = room;
        match lan.announce(*code, app, environment, *max_players, self.port, listing) {
            Ok(Some(advertisement)) => return Some(advertisement),
            Ok(None) => tracing::info!(%code, "so many rooms are announced that this one is not"),
            Err(error) => tracing::warn!(%code, %error, "the room is not announced"),
        }
        None
    }
}

fn word(answer: &Rejection) -> &'static str {
    match answer {
        Rejection::Redirect(_) => "redirect",
        Rejection::RetryAfter(_) => "retry_after",
        Rejection::Refused(refusal) => refusal.as_str(),
    }
}
