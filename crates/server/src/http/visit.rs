//! The requests of one connection: permission, answer, and whether the connection stays open.

use super::asked::AskedFrom;
use super::facts::{Remote, is_for_services};
use super::pages::{Asker, Stranger};
use super::reserve;
use super::stay::Stay;
use super::upgrade::UpgradeSlot;
use super::{Site, last};
use crate::access::Access;
use crate::handshakes::Verdict;
use crate::metrics;
use axum::Json;
use axum::response::{IntoResponse, Response};
use core::convert::Infallible;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL,
    HeaderValue, RETRY_AFTER, VARY,
};
use hyper::service::Service;
use hyper::{Method, Request, StatusCode, Version};
use hyper_util::service::TowerToHyperService;
use parlor_hub::Origin;
use serde_json::json;

/// Validity of a preflight answer in seconds: a day, more than any browser uses.
const PREFLIGHT_AGE_S: &str = "86400";

/// A connection, from its first request to its last.
pub(super) struct Visit<'a> {
    pub(super) site: &'a Site,
    pub(super) remote: IpAddr,
    /// Whether all places were taken when it arrived: it is served only the requests that must be answered.
    pub(super) is_of_reserve: bool,
    pub(super) slot: &'a UpgradeSlot,
    pub(super) stay: &'a Stay,
    router: TowerToHyperService<axum::Router>,
    /// Whether a page's connection from this machine is counted.
    is_counted: AtomicBool,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        site: &'a Site,
        remote: IpAddr,
        is_of_reserve: bool,
        slot: &'a UpgradeSlot,
        stay: &'a Stay,
    ) -> Self {
        let router = TowerToHyperService::new(site.router.clone());
        let remote = remote.to_canonical();
        Visit { site, remote, is_of_reserve, slot, stay, router, is_counted: AtomicBool::new(false) }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response, Infallible> {
        self.stay.asked();
        let route = metrics::route(request.uri().path());
        let (answer, stays) = self.decide(request).await?;
        self.site.facts.metrics.requested(route, answer.status());
        Ok(if stays { answer } else { last(answer) })
    }

    /// Returns the answer, and whether the connection stays open after it.
    async fn decide(&self, mut request: Request<Incoming>) -> Result<(Response, bool), Infallible> {
        let site = self.site;
        let asker = match site.facts.pages.judge(request.uri(), request.headers(), self.remote) {
            Ok(asker) => asker,
            Err(stranger) => {
                site.facts.log(&stranger);
                return Ok((refusal(&stranger), false));
            }
        };
        let Some(origin) = self.origin(&asker) else { return Ok((too_often(), false)) };
        let (method, headers) = (request.method(), request.headers());
        if self.is_of_reserve
            && !reserve::must_be_answered(method, request.uri().path(), headers, site.services.as_deref())
                .await
        {
            site.limit.turn_away();
            return Ok((reserve::full(), false));
        }
        if *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return Ok((allow(preflight(), &asker), false));
        }
        let may_stay = request.version() == Version::HTTP_11
            && is_for_services(request.uri().path())
            && !self.is_of_reserve;
        let extensions = request.extensions_mut();
        extensions.insert(self.slot.clone());
        extensions.insert(Remote(self.remote));
        extensions.insert(AskedFrom(origin));
        let answering = self.router.call(request);
        let stays = may_stay && !site.facts.is_going_down() && self.stay.stays(&site.staying, origin).await;
        Ok((allow(answering.await?, &asker), stays))
    }

    /// The origin whose budgets a request uses. A browser on this machine may act for a page, so it has a
    /// budget like a remote address, for its connections too. `None` if that budget is used up.
    fn origin(&self, asker: &Asker) -> Option<Origin> {
        let origin = self.site.access.origin(self.remote);
        if origin != Origin::LOCAL || !matches!(asker, Asker::Browser { knows_this_machine: true, .. }) {
            return Some(origin);
        }
        let is_counted = self.is_counted.swap(true, Ordering::Relaxed);
        let may = is_counted || self.site.access.connection_of_page(self.remote) == Verdict::Begin;
        may.then(|| Access::origin_of_page(self.remote))
    }
}

pub(super) fn refusal(stranger: &Stranger) -> Response {
    let body = Json(json!({ "error": { "code": stranger.code(), "sentence": stranger.to_string() } }));
    (stranger.status(), [(CACHE_CONTROL, "no-store")], body).into_response()
}

fn too_often() -> Response {
    let sentence = "too many connections come from web pages on this machine: ask again in a moment";
    let body = Json(json!({ "error": { "code": "too_often", "sentence": sentence } }));
    let headers = [(RETRY_AFTER, "1"), (CACHE_CONTROL, "no-store")];
    (StatusCode::TOO_MANY_REQUESTS, headers, body).into_response()
}

/// The answer to a CORS preflight request.
fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
        (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE_S),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets a page of an allowed origin read the answer.
fn allow(mut answer: Response, asker: &Asker) -> Response {
    let headers = answer.headers_mut();
    if let Asker::Browser { origin: Some(origin), .. } = asker {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
    answer
}
