//! The type of an operation. One table of operations (`operations.rs`) defines REST, the JSON socket and the
//! OpenAPI document, so none of the three differs in operations or permissions.

use super::Services;
use super::codes;
use super::failure::{Failure, Kind};
use super::homes;
use super::json;
use super::role::Allowed;
use super::tokens::Identity;
use crate::store::{DOCUMENT_BYTES_MAX, PAGE_BYTES_MAX};
use core::future::Future;
use core::pin::Pin;
use hyper::Method;
use parlor_hub::Origin;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};

/// The result of an operation: JSON as text, because it is only passed on.
pub(crate) type Answer = Result<Box<RawValue>, Failure>;
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Its identity, if it has signed in.
    pub(crate) identity: Option<Identity>,
    /// Its origin, whose budget counts wrong guesses.
    pub(crate) origin: Origin,
    /// The number of the feed of its socket, if it asks over one as a player.
    pub(crate) feed: Option<u64>,
    /// What another node knows of it, which has checked and charged it.
    pub(crate) via: Option<homes::Via>,
}

/// Maximum size of an answer that is neither a room nor a list, in bytes.
const SMALL_BYTES_MAX: usize = 64 * 1024;

/// An operation.
pub(crate) struct Operation {
    /// Its name on the JSON socket and in the OpenAPI document.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// Its path below `/v1`; fields of the input are in braces.
    pub(crate) path: &'static str,
    pub(crate) allowed: Allowed,
    /// A sentence about what it does.
    pub(crate) summary: &'static str,
    pub(crate) input: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) output: fn(&mut SchemaGenerator) -> Schema,
    /// Its own error codes, beside those of any operation.
    refuses: &'static [&'static [&'static str]],
    /// Maximum size of its answer, in bytes.
    pub(crate) answer_bytes_max: usize,
    /// The fields that a query may have, and their types: those of the input of a GET.
    query: BTreeMap<String, Kinds>,
    /// What is charged before another node is asked, if it is done at the home of the caller's realm.
    pub(super) home_charge: Option<homes::Charge>,
    run: Box<dyn Fn(Services, Caller, Value) -> Answering + Send + Sync>,
}

/// How the text of a path or a query is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    Text,
    Integer,
    Truth,
    /// As JSON.
    Object,
}

impl Operation {
    /// An operation with its input and output types.
    pub(super) fn new<I, O, F, A>(
        name: &'static str,
        (method, path): (Method, &'static str),
        allowed: Allowed,
        summary: &'static str,
        run: F,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Fn(Services, Caller, I) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        let run = move |services, caller, input| -> Answering {
            let run = run.clone();
            Box::pin(async move {
                let output = run(services, caller, json::read(input)?).await?;
                to_raw_value(&output).map_err(|error| Failure::defect(&error.to_string()))
            })
        };
        let input = |generator: &mut SchemaGenerator| I::json_schema(generator);
        let query = fields(&input(&mut SchemaGenerator::default()));
        let output = |generator: &mut SchemaGenerator| O::json_schema(generator);
        Operation {
            name,
            method,
            path,
            allowed,
            summary,
            input,
            output,
            refuses: &[],
            answer_bytes_max: SMALL_BYTES_MAX,
            query,
            home_charge: None,
            run: Box::new(run),
        }
    }

    /// Adds its own error codes, beside those of any operation.
    pub(super) fn refuses(self, refuses: &'static [&'static [&'static str]]) -> Self {
        Operation { refuses, ..self }
    }

    /// Declares the maximum size of its answer, in bytes.
    pub(super) fn answers_bytes(self, answer_bytes_max: usize) -> Self {
        Operation { answer_bytes_max, ..self }
    }

    /// Declares that it is done at the home of the caller's realm. Before another node is asked, `charge` is called; the
    /// operation itself charges nothing for a caller of another node.
    pub(super) fn at_home(self, charge: homes::Charge) -> Self {
        Operation { home_charge: Some(charge), ..self }
    }

    /// Declares that it answers with a page: whole entries of [`PAGE_BYTES_MAX`], one more, and the JSON
    /// around them.
    pub(super) fn lists(self) -> Self {
        Operation { answer_bytes_max: 2 * PAGE_BYTES_MAX, ..self }
    }

    /// Declares that it answers with a room.
    pub(super) fn shows_room(self) -> Self {
        Operation { answer_bytes_max: DOCUMENT_BYTES_MAX + SMALL_BYTES_MAX, ..self }
    }

    /// All its error codes.
    pub(super) fn codes(&self) -> BTreeSet<&'static str> {
        let mut all: BTreeSet<_> =
            self.refuses.iter().copied().chain([codes::ANY]).flatten().copied().collect();
        for (codes, is_so) in [
            (codes::NOT_FOR_ALL, self.allowed != Allowed::Anybody),
            (codes::WITH_BODY, self.has_body()),
            (codes::WITH_PATH, self.path_fields().next().is_some()),
        ] {
            all.extend(codes.iter().copied().filter(|_| is_so));
        }
        all
    }

    /// Whether a request of this operation has a body.
    pub(crate) fn has_body(&self) -> bool {
        self.method != Method::GET && self.method != Method::DELETE
    }

    /// The fields of the input that are in the path.
    pub(crate) fn path_fields(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.path.split('/');
        parts.filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
    }

    /// Parses a field's text from a path or a query. An unreadable value stays a text; reading the input then
    /// fails with the field's path.
    pub(crate) fn value_of(&self, field: &str, text: &str) -> Value {
        let other = match self.query.get(field) {
            Some(Kinds::Integer) => text.parse::<u64>().ok().map(Value::from),
            Some(Kinds::Truth) => text.parse::<bool>().ok().map(Value::from),
            Some(Kinds::Object) => json::parse(text.as_bytes()).ok().filter(Value::is_object),
            Some(Kinds::Text) | None => None,
        };
        other.unwrap_or_else(|| text.into())
    }

    /// Runs it, if the caller is allowed.
    pub(crate) async fn run(&self, services: Services, caller: Caller, input: Value) -> Answer {
        let role = caller.identity.as_ref().map(|identity| identity.role);
        if !self.allowed.allows(role) {
            return Err(self.refusal(&caller));
        }
        match self.home_charge {
            Some(charge) => self.run_at_home(services, caller, input, charge).await,
            None => self.run_here(services, caller, input).await,
        }
    }

    /// Runs it at this node, for a caller that is allowed.
    pub(super) async fn run_here(&self, services: Services, caller: Caller, input: Value) -> Answer {
        (self.run)(services, caller, input).await
    }

    fn refusal(&self, caller: &Caller) -> Failure {
        match &caller.identity {
            None => {
                let sentence = "this needs an account: sign in, and send the access_token of the answer";
                Failure::new(Kind::SignedOut, "signed_out", sentence)
            }
            Some(identity) => {
                let sentence = format!("{} is not for the role {}", self.name, identity.role.as_str());
                Failure::new(Kind::Forbidden, "forbidden", sentence)
            }
        }
    }
}

/// The fields of an input that can be written as text.
fn fields(schema: &Schema) -> BTreeMap<String, Kinds> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let kind = |field: &Value| {
        let is = |wanted: &str| match field.get("type") {
            Some(Value::String(kind)) => kind == wanted,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            _ => false,
        };
        if is("integer") {
            Kinds::Integer
        } else if is("boolean") {
            Kinds::Truth
        } else if is("object") {
            Kinds::Object
        } else {
            Kinds::Text
        }
    };
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), kind(field))).collect()
}
