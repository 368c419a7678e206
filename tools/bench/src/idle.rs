//! Memory of an idle session: resident in the server's process, and held by the kernel.
//!
//! The kernel does not attribute its memory to processes, and both ends of every connection are on this
//! machine. The ends have equal sockets and watchers, so half of the kernel's memory is the server's.

use super::args::{IdleArgs, Transport};
use super::generator::Crowd;
use super::load::{Target, fill};
use super::machine::{self, Cores, Memory};
use super::member::MEMBERS;
use super::server::{Server, Settings};
use super::table::{Table, figure};
use crate::output::{print, tell};
use anyhow::ensure;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// Rooms that are there before the first look, so that what the first sessions of a process take is in both looks.
const ROOMS_BEFORE: u32 = 2;
/// How long those settle.
const SETTLE_BEFORE: Duration = Duration::from_secs(1);
/// Connections beyond the sessions: those that ask for the counters.
const OTHER_CONNECTIONS: u32 = 16;

/// One row. Figures in KiB are for one session.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    transport: Transport,
    sessions: u32,
    user_kib_per_session: f64,
    kernel_slab_both_ends_kib_per_session: f64,
    kernel_sockets_both_ends_kib_per_session: f64,
    kernel_server_kib_per_session: f64,
    server_kib_per_session: f64,
    sessions_lost: u64,
    void: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// What kept it from measuring.
pub(crate) async fn run(cores: Cores, args: &IdleArgs) -> anyhow::Result<()> {
    let rooms = args.sessions.div_ceil(u32::from(MEMBERS));
    machine::allow_sessions((rooms + ROOMS_BEFORE) * u32::from(MEMBERS))?;
    let settle = Duration::from_secs_f64(args.settle);
    let mut rows = Vec::new();
    for transport in &args.via {
        rows.push(row(cores, *transport, rooms, settle).await?);
    }
    let setting = json!({ "cores": cores, "settle_seconds": args.settle, "members_per_room": MEMBERS });
    let notes = [
        "the kernel's slabs and socket buffers are those of both ends; half of them are taken for the server's".to_owned(),
        cores.note(),
    ];
    print("idle", args.common.json, &setting, &rows, &notes, &table(&rows))
}

async fn row(cores: Cores, transport: Transport, rooms: u32, settle: Duration) -> anyhow::Result<Row> {
    tell(&format!("{transport}, {} sessions", rooms * u32::from(MEMBERS)));
    let [before_count, count] = [ROOMS_BEFORE, rooms].map(|rooms| rooms * u32::from(MEMBERS));
    let connections_max = usize::try_from(before_count + count + OTHER_CONNECTIONS)?;
    let settings = Settings { connections_max: Some(connections_max), ..Settings::default() };
    let server = Server::start(cores, &settings)?;
    let target = Target::server(&server, transport).await?;
    let crowd = Crowd::new()?;
    fill(&crowd, &target.way, target.manner, 0..ROOMS_BEFORE, MEMBERS).await?;
    sleep(SETTLE_BEFORE).await;
    let before = machine::memory(server.pid())?;
    fill(&crowd, &target.way, target.manner, 0..rooms, MEMBERS).await?;
    sleep(settle).await;
    let after = machine::memory(server.pid())?;
    let connections = server.stats().await?.connections;
    ensure!(
        connections <= u64::from(before_count + count),
        "the server has {connections} connections and was given {}",
        before_count + count
    );
    crowd.leave_all();
    Ok(evaluate(transport, count, u64::from(before_count + count) - connections, before, after))
}

fn evaluate(transport: Transport, sessions: u32, lost: u64, before: Memory, after: Memory) -> Row {
    #[expect(clippy::cast_precision_loss, reason = "memory is below 2⁵³ bytes")]
    let each = |of: fn(&Memory) -> u64| {
        // Another process may give back more than the sessions took; a row below zero shows it.
        (of(&after) as f64 - of(&before) as f64) / 1024.0 / f64::from(sessions)
    };
    let (user, slab, sockets) = (
        each(|memory| memory.resident_bytes),
        each(|memory| memory.slab_bytes),
        each(|memory| memory.sockets_bytes),
    );
    let kernel = (slab + sockets) / 2.0;
    Row {
        transport,
        sessions,
        user_kib_per_session: user,
        kernel_slab_both_ends_kib_per_session: slab,
        kernel_sockets_both_ends_kib_per_session: sockets,
        kernel_server_kib_per_session: kernel,
        server_kib_per_session: user + kernel,
        sessions_lost: lost,
        void: (lost > 0).then(|| format!("{lost} sessions were lost while they settled")),
    }
}

fn table(rows: &[Row]) -> Table {
    Table::of(
        rows,
        &[
            ("transport", |row| row.transport.to_string()),
            ("sessions", |row| row.sessions.to_string()),
            ("server KiB/session", |row| figure(row.server_kib_per_session, 1)),
            ("of it user", |row| figure(row.user_kib_per_session, 1)),
            ("of it kernel", |row| figure(row.kernel_server_kib_per_session, 1)),
            ("slab of both ends", |row| figure(row.kernel_slab_both_ends_kib_per_session, 1)),
            ("sockets of both ends", |row| figure(row.kernel_sockets_both_ends_kib_per_session, 1)),
            ("void because", |row| row.void.clone().unwrap_or_default()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_the_kernel_took_is_the_servers() {
        let kib = 1024;
        let before = Memory { resident_bytes: 10 * kib, slab_bytes: 50 * kib, sockets_bytes: 8 * kib };
        let after = Memory { resident_bytes: 110 * kib, slab_bytes: 130 * kib, sockets_bytes: 4 * kib };
        let row = evaluate(Transport::Ws, 10, 0, before, after);
        assert_eq!((row.user_kib_per_session, row.kernel_slab_both_ends_kib_per_session), (10.0, 8.0));
        assert_eq!(row.kernel_sockets_both_ends_kib_per_session, -0.4);
        assert_eq!((row.kernel_server_kib_per_session, row.server_kib_per_session), (3.8, 13.8));
        assert_eq!(row.void, None);
        assert!(
            evaluate(Transport::Ws, 10, 3, before, after).void.is_some_and(|why| why.contains("3 sessions"))
        );
    }
}
