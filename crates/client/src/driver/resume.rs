//! Taking a seat again that the server kept, in this process or the next. `dial.rs` makes the connection.

use super::builder::JoinBuilder;
use super::resume_ticket::ResumeTicket;
use super::room::Room;
use parlor_client_core::LinkState;

impl Room {
    /// The seat of a player of the game `app` whose process is no more, by the ticket that it saved: the player is who it was,
    /// is told everything as a newcomer is, and then gets what was sent to it reliably meanwhile. The settings must be those that the
    /// room was joined with. Once the server has freed the seat, the player is still who it was, as long as the server remembers it and a
    /// seat is free, but what was sent to it meanwhile is gone. Otherwise the room closes with
    /// [`ClosedReason::Refused`](crate::ClosedReason::Refused): then join by the code. A host has its room back like this if that
    /// [can migrate](crate::HostBuilder::host_migration) and no other player has become the host: then it gets the server's copy of its
    /// world, with [`Event::HostChanged`](crate::Event::HostChanged). Otherwise its world was lost with its process.
    ///
    /// ```no_run
    /// # fn saved() -> String { String::new() }
    /// # fn main() -> Result<(), parlor::ResumeTicketError> {
    /// let room = parlor::Room::resume("tanks", &saved().parse()?).name("ada").open();
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(app: &str, ticket: &ResumeTicket) -> JoinBuilder {
        JoinBuilder::resume(app, ticket)
    }

    /// What this player's seat can be had back with if this process ends without leaving; see [`ResumeTicket`]. `None` while the room
    /// is not open, and if the server keeps no seats.
    pub fn resume_ticket(&self) -> Option<ResumeTicket> {
        let resume = self.with(|core, _| core.resume_proof())?;
        Some(ResumeTicket { server: self.shared.server()?, resume })
    }

    /// How this process stands with its room's server.
    pub fn link_state(&self) -> LinkState {
        self.with(|core, _| core.link_state())
    }
}
