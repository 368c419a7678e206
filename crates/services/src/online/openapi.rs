//! The OpenAPI document, generated from the table of operations and the types of their inputs and outputs.

use super::codes::kind_of;
use super::role::Allowed;
use super::table::Operation;
use crate::store::Role;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use ring::digest::{SHA256, digest};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of the digest that identifies the document.
const TAG_BYTES: usize = 16;

/// The meaning of a status other than 200.
fn said_by(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "the input is not as it must be: `path` says where",
        StatusCode::UNAUTHORIZED => "nobody has signed in, or the token is over",
        StatusCode::FORBIDDEN => "this is not for whoever asks",
        StatusCode::NOT_FOUND => "there is no such thing",
        StatusCode::METHOD_NOT_ALLOWED => "the path that came of the fields has other methods",
        StatusCode::CONFLICT => "it does not go together with how things stand",
        StatusCode::PAYLOAD_TOO_LARGE => "the input is too large",
        StatusCode::TOO_MANY_REQUESTS => "asked too often: `retry_after_ms` says when to ask again",
        StatusCode::SERVICE_UNAVAILABLE => "not now: `retry_after_ms` says when to ask again",
        StatusCode::INSUFFICIENT_STORAGE => "the store is full",
        _ => "a defect of the server",
    }
}

/// The document as sent. It is made once, because any client may request it, and it has several hundred
/// thousand bytes.
pub(super) struct Document {
    body: Bytes,
    /// Identifies the content, so that clients need not load it again.
    tag: HeaderValue,
}

impl Document {
    pub(super) fn new(document: &Value) -> Self {
        let body = Bytes::from(document.to_string());
        let digest = HEXLOWER.encode(&digest(&SHA256, &body).as_ref()[..TAG_BYTES]);
        let tag = HeaderValue::from_str(&format!("\"{digest}\"")).expect("hexadecimal digits are a header");
        Document { body, tag }
    }

    /// The answer to a request with these headers.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let lines = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|line| line.to_str().ok());
        let known = lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
        let is_known = known.into_iter().any(|tag| tag == "*" || tag.as_bytes() == self.tag.as_bytes());
        let tag = (ETAG, self.tag.clone());
        if is_known {
            return (StatusCode::NOT_MODIFIED, [tag]).into_response();
        }
        let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        ([tag, kind], self.body.clone()).into_response()
    }
}

/// Builds the document.
pub(super) fn document(operations: &[Operation]) -> Value {
    let generator = |settings: SchemaSettings| {
        let settings = settings.with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        settings.into_generator()
    };
    // An input may omit fields that an output always has.
    let mut inputs = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut outputs = generator(SchemaSettings::draft2020_12().for_serialize());
    let mut paths = Map::new();
    for operation in operations {
        let described = describe(operation, &mut inputs, &mut outputs);
        let path = paths.entry(format!("/v1{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut definitions = inputs.take_definitions(true);
    definitions.extend(outputs.take_definitions(true));
    definitions.insert("Error".to_owned(), error());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Parlor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Accounts and rooms that outlive their players. The same operations go over a WebSocket at \
                            /v1/socket: {\"id\", \"op\": operationId, \"input\": {…}}. An answer may have fields that a \
                            later server adds.",
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": { "access": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "JWT",
                "description": "The access_token of a sign-in, or a token that whoever runs the server has signed. \
                                `x-roles` of an operation says which roles it is for.",
            } },
        },
    })
}

fn describe(operation: &Operation, inputs: &mut SchemaGenerator, outputs: &mut SchemaGenerator) -> Value {
    let mut input = (operation.input)(inputs).to_value();
    let output = (operation.output)(outputs);
    let in_path: Vec<&str> = operation.path_fields().collect();
    let required = take_required(&mut input);
    let mut parameters = Vec::new();
    if let Some(fields) = input.get_mut("properties").and_then(Value::as_object_mut) {
        let is_parameter = |name: &String| in_path.contains(&name.as_str()) || !operation.has_body();
        for name in fields.keys().filter(|name| is_parameter(name)).cloned().collect::<Vec<_>>() {
            let place = if in_path.contains(&name.as_str()) { "path" } else { "query" };
            let schema = fields.remove(&name).map(written);
            let is_required = required.contains(&name);
            let mut parameter = json!({ "name": name, "in": place, "required": is_required });
            if is_object(schema.as_ref()) {
                parameter["content"] = json!({ "application/json": { "schema": schema } });
            } else {
                parameter["schema"] = json!(schema);
            }
            parameters.push(parameter);
        }
    }
    let left: Vec<&String> = required.iter().filter(|name| !in_path.contains(&name.as_str())).collect();
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses(operation, &output.to_value()),
    });
    if operation.has_body() {
        let is_required = !left.is_empty();
        input["required"] = json!(left);
        let content = json!({ "application/json": { "schema": input } });
        described["requestBody"] = json!({ "required": is_required, "content": content });
    }
    if let Allowed::Only(roles) = operation.allowed {
        described["security"] = json!([{ "access": [] }]);
        described["x-roles"] = roles.iter().map(|role| Role::as_str(*role)).collect();
    }
    described
}

fn take_required(input: &mut Value) -> Vec<String> {
    let required = input.as_object_mut().and_then(|schema| schema.remove("required"));
    let names = required.as_ref().and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The schema of a field in a path or a query: it has no null, and is omitted instead.
fn written(mut schema: Value) -> Value {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
    }
    if schema["default"].is_null()
        && let Some(fields) = schema.as_object_mut()
    {
        fields.remove("default");
    }
    schema
}

/// Whether a query field is written as JSON.
fn is_object(schema: Option<&Value>) -> bool {
    let kind = schema.and_then(|schema| schema.get("type"));
    kind.is_some_and(|kind| kind == "object" || kind == &json!(["object"]))
}

fn responses(operation: &Operation, output: &Value) -> Value {
    let mut by_status: BTreeMap<StatusCode, Vec<&str>> = BTreeMap::new();
    for code in operation.codes() {
        let kind = kind_of(code).expect("the table of operations names codes that there are");
        by_status.entry(kind.status()).or_default().push(code);
    }
    let mut responses = Map::new();
    let content = json!({ "application/json": { "schema": output } });
    responses.insert("200".to_owned(), json!({ "description": "done", "content": content }));
    for (status, codes) in by_status {
        let this_error = json!({ "allOf": [
            { "$ref": "#/components/schemas/Error" },
            { "properties": { "code": { "enum": codes } } },
        ] });
        let schema =
            json!({ "type": "object", "required": ["error"], "properties": { "error": this_error } });
        let content = json!({ "application/json": { "schema": schema } });
        let mut response = json!({ "description": said_by(status), "content": content });
        if let Some((name, description)) = header_of(status) {
            response["headers"] =
                json!({ name: { "description": description, "schema": { "type": "string" } } });
        }
        responses.insert(status.as_str().to_owned(), response);
    }
    Value::Object(responses)
}

/// The header of answers with a status.
fn header_of(status: StatusCode) -> Option<(&'static str, &'static str)> {
    match status {
        StatusCode::UNAUTHORIZED => Some(("WWW-Authenticate", "Bearer")),
        StatusCode::METHOD_NOT_ALLOWED => Some(("Allow", "the methods that the path has")),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some(("Retry-After", "seconds to wait, where waiting helps"))
        }
        _ => None,
    }
}

fn error() -> Value {
    json!({
        "type": "object",
        "description": "Why something was not done.",
        "required": ["code", "sentence"],
        "properties": {
            "code": { "type": "string", "description": "for programs; stays the same between versions" },
            "sentence": { "type": "string", "minLength": 1, "description": "for people; says what to do" },
            "path": { "type": "string", "description": "the field of the input that is wrong" },
            "retry_after_ms": { "type": "integer", "minimum": 0, "description": "when to ask again" },
            "current": { "type": ["object", "null"], "description": "what is stored instead, where one must choose" },
            "checks": { "type": "object", "description": "of a refused move: the checks `server`, `rules` and `peers`" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::operations;
    use axum::body::to_bytes;

    #[test]
    fn what_stands_in_inputs_and_outputs_alike_is_one_schema() {
        let (mut inputs, mut outputs) = (
            SchemaSettings::draft2020_12().for_deserialize().into_generator(),
            SchemaSettings::draft2020_12().for_serialize().into_generator(),
        );
        for operation in operations::all() {
            (operation.input)(&mut inputs);
            (operation.output)(&mut outputs);
        }
        let (inputs, outputs) = (inputs.take_definitions(true), outputs.take_definitions(true));
        assert!(inputs.contains_key("Config") && outputs.contains_key("RoomView"), "{inputs:?} {outputs:?}");
        for (name, schema) in &inputs {
            assert_eq!(outputs.get(name).unwrap_or(schema), schema, "{name}");
        }
    }

    #[tokio::test]
    async fn threat_50_the_document_is_made_once_however_often_it_is_asked_for() {
        let document = Document::new(&json!({ "openapi": "3.1.0", "paths": "x".repeat(200_000) }));
        let mut headers = HeaderMap::new();
        for _ in 0..200 {
            let answer = document.answer(&headers);
            assert_eq!(answer.status(), StatusCode::OK);
            let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            assert_eq!(
                body.as_ptr(),
                document.body.as_ptr(),
                "it is sent from the memory that it is kept in"
            );
        }
        let tag = document.answer(&headers).headers()[ETAG].clone();
        for known in [tag.to_str().unwrap(), "*", &format!("\"other\", W/{}", tag.to_str().unwrap())] {
            headers.insert(IF_NONE_MATCH, known.parse().unwrap());
            let answer = document.answer(&headers);
            assert_eq!(
                (answer.status(), answer.headers()[ETAG].clone()),
                (StatusCode::NOT_MODIFIED, tag.clone())
            );
            assert!(to_bytes(answer.into_body(), usize::MAX).await.unwrap().is_empty());
        }
        headers.insert(IF_NONE_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(document.answer(&headers).status(), StatusCode::OK);
    }
}
