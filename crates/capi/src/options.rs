//! Options of a room from JSON: those of the core, and how its server is reached.

use crate::boundary::{Failure, read_json};
use parlor::{HostBuilder, Impairment, PacketLog, PathMode, RoomBuilder, TransportPreference};
use parlor_client_core::binding::{Fault, Record, read_options, unknown_word};
use parlor_proto::limits;

/// The options of a call; none for NULL.
pub(crate) fn record(json: Option<&str>) -> Result<Record, Failure> {
    Ok(Record::new(read_json("options", json.unwrap_or("{}"))?, "")?)
}

/// Sets all options, and checks that no other one is named.
pub(crate) fn set<K>(builder: RoomBuilder<K>, mut record: Record) -> Result<RoomBuilder<K>, Failure> {
    for name in ["own", "actions"] {
        if record.value(name).is_some() {
            let text = "own states and predicted actions are not among the C functions: leave it out";
            return Err(record.fault(name, text).into());
        }
    }
    let builder = connection(builder, &mut record)?;
    let silence_ms = limits::HOST_TIMEOUT_MS_DEFAULT;
    let builder = builder.with_options(|options| read_options(&mut record, options, silence_ms))?;
    record.end()?;
    builder.check()?;
    Ok(builder)
}

/// How the server is reached.
fn connection<K>(mut builder: RoomBuilder<K>, record: &mut Record) -> Result<RoomBuilder<K>, Fault> {
    if let Some(server) = record.text("server")? {
        builder = builder.server(&server);
    }
    if let Some(pem) = record.text("roots")? {
        builder = builder.roots(&pem);
    }
    builder = match record.text("transport")?.as_deref() {
        None => builder,
        Some("auto") => builder.transport(TransportPreference::Auto),
        Some("quic") => builder.transport(TransportPreference::Quic),
        Some("websocket") => builder.transport(TransportPreference::WebSocket),
        Some(word) => return Err(unknown_word("transport", word, "\"auto\", \"quic\", \"websocket\"")),
    };
    if let Some(word) = record.text("paths")? {
        const MODES: [PathMode; 5] =
            [PathMode::Relay, PathMode::Local, PathMode::Auto, PathMode::P2p, PathMode::Mesh];
        let known = "\"relay\", \"local\", \"auto\", \"p2p\", \"mesh\"";
        let mode = MODES.into_iter().find(|mode| mode.as_str() == word);
        builder = builder.paths(mode.ok_or_else(|| unknown_word("paths", &word, known))?);
    }
    if let Some(scheme) = record.text("inviteScheme")? {
        builder = builder.invite_scheme(&scheme);
    }
    if let Some(page) = record.text("joinPage")? {
        builder = builder.join_page(&page);
    }
    if let Some(text) = record.text("impairment")? {
        let network = text.parse::<Impairment>();
        builder =
            builder.impairment(network.map_err(|error| record.fault("impairment", &error.to_string()))?);
    }
    if let Some(file) = record.text("packetLog")? {
        builder = builder.packet_log(PacketLog::from(file.as_str()));
    }
    Ok(builder)
}

/// Options of the server that a host brings.
#[cfg(feature = "server")]
pub(crate) fn own_server(builder: HostBuilder, record: &mut Record) -> Result<HostBuilder, Fault> {
    let is_on_lan = record.bool("lan")?.unwrap_or_default();
    let name = record.text("lanName")?;
    let builder = if is_on_lan { builder.lan(parlor::lan::Network::default()) } else { builder };
    Ok(match name {
        Some(name) => builder.advertise(parlor::lan::Listing::named(&name)),
        None => builder,
    })
}

/// Options of the server that a host brings, which this build does not have.
#[cfg(not(feature = "server"))]
pub(crate) fn own_server(builder: HostBuilder, record: &mut Record) -> Result<HostBuilder, Fault> {
    if record.bool("lan")?.unwrap_or_default() {
        let text = "this build has no server inside: build parlor-capi with the feature `server`";
        return Err(record.fault("lan", text));
    }
    Ok(builder)
}
