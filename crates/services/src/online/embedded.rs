//! The services behind the server's interface `Services`.

use super::{Online, Running, STOP_TIME, Services, nodes, rest, socket};
use crate::store::StoreError;
use axum::Router;
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parlor_hub::Origin;
use parlor_server::embed::{self, Figures, MemoryHeld, lock};
use std::sync::Arc;

impl embed::Services for Online {
    fn routes(&self) -> Router {
        rest::routes(&self.services)
    }

    fn serve_socket(
        &self,
        io: TokioIo<Upgraded>,
        origin: Origin,
        token: Option<String>,
    ) -> BoxFuture<'_, ()> {
        socket::serve(io, origin, token, &self.services).boxed()
    }

    fn is_of_operator(&self, token: String) -> BoxFuture<'_, bool> {
        self.services.is_of_operator(token).boxed()
    }

    fn store_state(&self) -> Result<(), String> {
        self.services.store().state().map_err(why)
    }

    fn store_answers(&self) -> BoxFuture<'_, Result<(), String>> {
        self.services.store().answers().map(|answer| answer.map_err(why)).boxed()
    }

    fn held(&self) -> MemoryHeld {
        let unread = self.services.unread();
        MemoryHeld {
            unread_bytes: unread.bytes(),
            unread_bytes_most: unread.bytes_most(),
            unread_refused: unread.refused(),
            room_bytes: self.services.room_locks().bytes(),
            board_bytes: self.services.boards().index().bytes(),
        }
    }

    fn write_figures<'a>(&'a self, to: &'a mut Figures) -> BoxFuture<'a, ()> {
        figures(to, &self.services).boxed()
    }

    fn node(&self) -> Option<Arc<dyn embed::Node>> {
        let cluster = self.services.cluster()?;
        Some(Arc::new(cluster.directory().clone()))
    }

    fn say_goodbye(&self) -> BoxFuture<'_, ()> {
        self.services.goodbye().say().boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        stop(self).boxed()
    }
}

/// Why the store accepts no writes.
fn why(error: StoreError) -> String {
    match error {
        StoreError::Unavailable { reason, .. } => format!("the store is unavailable: {reason}"),
        error => error.to_string(),
    }
}

/// Ends the threads and closes the store, after pending work is stored. The wait for an unresponsive disk is
/// limited.
async fn stop(online: &Online) {
    let running = lock(&online.running).take();
    let Some(Running { keeping, runtime }) = running else { return };
    // The shards have ended, so no more entries arrive.
    if tokio::time::timeout(STOP_TIME, keeping).await.is_err() {
        tracing::warn!("the newest moments of matches were not stored: the store is slow or away");
    }
    let services = online.services.clone();
    if let Some(cluster) = services.cluster() {
        cluster.flush().await;
    }
    let ended = tokio::task::spawn_blocking(move || {
        if let Some(cluster) = services.cluster() {
            cluster.leave();
        }
        runtime.shutdown_timeout(STOP_TIME);
        // A connection that ends slowly has a handle too.
        services.store().close();
    });
    // If no thread can be started, the end of the process closes the store.
    let _ = ended.await;
}

/// The store's metrics.
async fn figures(to: &mut Figures, services: &Services) {
    let store = services.store();
    let counted = store.counters();
    let up = u64::from(store.state().is_ok());
    to.gauge("parlor_store_up", "1 if writes are taken, 0 if the store stands still or fails", up);
    to.gauge("parlor_store_waiting", "Writes that wait", counted.waiting);
    for (name, help, value) in [
        ("parlor_store_commits", "Transactions that were committed", counted.groups),
        ("parlor_store_writes", "Writes in them", counted.writes),
        ("parlor_store_failed", "Writes that the database failed at", counted.failed),
        ("parlor_store_turned_away", "Requests that were turned away", counted.turned_away),
    ] {
        to.counter(name, help, value);
    }
    to.gauge("parlor_store_bytes", "Bytes of the store that are in use", counted.bytes);
    to.gauge("parlor_store_bytes_max", "Bytes that the store may have", counted.bytes_max);
    let refused = [
        ([("why", "store_full")], counted.refused_full),
        ([("why", "quota")], counted.refused_quota),
        ([("why", "kept_match")], services.access().kept().refused()),
    ];
    to.counters(
        "parlor_store_refused",
        "Requests that were refused because there is too much already",
        refused,
    );
    let swept = services.swept().counts().map(|(kind, rows)| ([("kind", kind)], rows));
    to.counters("parlor_store_swept", "Rows that were deleted because nobody uses them", swept);
    if let Ok(rows) = store.rows().await {
        let rows = rows.into_iter().map(|(kind, rows)| ([("kind", kind)], rows));
        to.gauges("parlor_store_rows", "Rows of the store", rows);
    }
    if let Some(hints) = services.hints() {
        hints.write_figures(to);
    }
    let busy = Duration::from_micros(counted.busy_us).as_secs_f64();
    to.seconds("parlor_store_commit_seconds", "Time that transactions took in all", busy);
    if let Some(cluster) = services.cluster() {
        nodes::figures(to, cluster);
    }
    // The metrics above report an unresponsive store.
    if let Ok(rooms) = store.rooms_put_off().await {
        to.gauge("parlor_rooms_put_off", "Turn rooms in which what was due could not be done", rooms);
    }
    if let Ok(waiting) = store.webhooks_waiting().await {
        to.gauge("parlor_webhooks_waiting", "Calls that are owed to the game's own service", waiting);
    }
}
