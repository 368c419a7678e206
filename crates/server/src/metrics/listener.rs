//! The monitoring port. It is separate, so that a firewall can keep strangers out: load and games concern
//! only the operator. It has no TLS; its metrics have no secrets of players.

use super::Scraper;
use crate::connection_limit::ConnectionLimit;
use crate::error::StartError;
use crate::http::{self, Readiness};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use core::net::SocketAddr;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use std::thread::{self, JoinHandle};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::oneshot;

/// The text format of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Maximum number of concurrent requests. Monitoring sends one at a time.
const AT_ONCE_MAX: usize = 16;

/// The monitoring port, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) addr: SocketAddr,
    /// Dropping it ends the thread.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Listener {
    /// Opens the port. It has its own thread, so that neither packets nor operations wait for it.
    pub(crate) async fn start(
        addr: SocketAddr,
        scraper: Scraper,
        readiness: Readiness,
    ) -> Result<Self, StartError> {
        let failed = |error| StartError::Metrics { addr, error };
        let listener = std::net::TcpListener::bind(addr).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let router = Router::new()
            .route("/metrics", get(metrics))
            .with_state(scraper)
            .merge(http::readiness_routes(readiness))
            .fallback(nothing);
        let (stop, stopped) = oneshot::channel::<()>();
        let work = move || {
            // Without a runtime the port does not answer, which monitoring reports.
            let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, router) => {}
                    _ = stopped => {}
                }
            });
        };
        let named = thread::Builder::new().name("parlor-metrics".to_owned());
        let thread = named.spawn(work).map_err(StartError::Thread)?;
        Ok(Listener { addr, stop, thread })
    }

    /// Closes the port.
    pub(crate) async fn stop(self) {
        let Listener { stop, thread, .. } = self;
        drop(stop);
        // A thread that cannot be started or panicked leaves the port open until the process ends.
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

async fn accept(listener: std::net::TcpListener, router: Router) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let limit = ConnectionLimit::for_all(AT_ONCE_MAX);
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let Some(permit) = limit.enter(None) else { continue };
                let router = router.clone();
                tokio::spawn(async move {
                    http::serve_operator(stream, remote, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection for figures was not accepted");
                // Out of file descriptors: other connections must end first.
                tokio::time::sleep(core::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn metrics(State(scraper): State<Scraper>) -> Response {
    match scraper.text().await {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS), (CACHE_CONTROL, "no-store")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn nothing() -> Response {
    (StatusCode::NOT_FOUND, "There are /metrics, /health and /ready here.\n").into_response()
}
