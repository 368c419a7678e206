//! Metrics of the server.
//!
//! No label comes from a peer (threat 33): a stranger who invents names would make the monitoring grow
//! without bound. Labels are words of this program, and the configured games.

mod figures;
mod listener;
mod process;
mod scrape;

pub use figures::{Figures, Label};
pub(crate) use listener::Listener;
pub(crate) use process::open_files_max;
pub(crate) use scrape::Scraper;

use core::sync::atomic::AtomicU64;
use core::time::Duration;
use hyper::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Maximum number of games with their own metrics. All others are counted together.
const APPS_MAX: usize = 64;
/// Maximum number of operations of services. Each has its own metrics.
pub const OPERATIONS_MAX: usize = 160;
/// The label of everything without its own.
const OTHER: &str = "other";
/// Bounds of the histogram of answering times, in seconds.
const LATENCIES_S: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0];

type Seconds = Counter<f64, AtomicU64>;

/// Counters of events.
#[derive(Debug)]
pub struct Metrics {
    /// The games with their own metrics and their labels: one line each, without terminal escapes.
    apps: Vec<(String, String)>,
    requests: Family<Request, Counter>,
    operations: Family<Answered, Counter>,
    operation_seconds: Family<Operation, Seconds>,
    latency: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    operation: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

impl Metrics {
    /// Returns zero counters. `apps` are the configured games.
    pub(crate) fn new(apps: Option<&[String]>) -> Self {
        Metrics {
            apps: apps
                .unwrap_or_default()
                .iter()
                .take(APPS_MAX)
                .map(|app| (app.clone(), shown(app)))
                .collect(),
            requests: Family::default(),
            operations: Family::default(),
            operation_seconds: Family::default(),
            latency: Histogram::new(LATENCIES_S),
        }
    }

    /// Counts an answered request of a [`route`].
    pub(crate) fn requested(&self, route: &'static str, status: StatusCode) {
        self.requests.get_or_create(&Request { route, class: class(status) }).inc();
    }

    /// Counts an operation of the services, done or refused. Its name is one of at most [`OPERATIONS_MAX`]
    /// words of a program.
    pub fn answered(&self, operation: &'static str, status: StatusCode, took: Duration) {
        self.operations.get_or_create(&Answered { operation, class: class(status) }).inc();
        self.operation_seconds.get_or_create(&Operation { operation }).inc_by(took.as_secs_f64());
        self.latency.observe(took.as_secs_f64());
    }

    /// The label of a game.
    fn app<'a>(&'a self, app: &'a str) -> &'a str {
        let known = self.apps.iter().find(|(known, _)| known == app);
        known.map_or(OTHER, |(_, shown)| shown.as_str())
    }

    fn register(&self, registry: &mut Registry) {
        let requests = "Requests over HTTP that were answered, by the kind of their status";
        registry.register("parlor_http_requests", requests, self.requests.clone());
        let operations = "Operations of the services that were answered, over HTTP and over JSON sockets";
        registry.register("parlor_operations", operations, self.operations.clone());
        let seconds = "Time that operations took in all";
        registry.register("parlor_operation_seconds", seconds, self.operation_seconds.clone());
        let latency = "How long operations took";
        registry.register("parlor_operation_latency_seconds", latency, self.latency.clone());
    }
}

fn shown(app: &str) -> String {
    app.chars().map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// The route that serves a path.
pub(crate) fn route(path: &str) -> &'static str {
    match path {
        "/" => "front",
        "/health" => "health",
        "/ready" => "ready",
        "/stats" => "stats",
        "/ws" => "websocket",
        "/web.json" => "web",
        "/v1/socket" => "json_socket",
        _ if path.starts_with("/v1/") => "operations",
        _ if path.starts_with("/rooms/") => "room",
        _ if path.starts_with("/join/") => "join",
        _ if path.starts_with("/assets/") => "asset",
        _ => OTHER,
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
