//! The OpenAPI document, made of the table of operations and the types of their inputs and outputs.

use super::role::Allowed;
use super::table::Operation;
use crate::store::Role;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The answers that any operation may give beside 200.
const FAILURES: [(&str, &str); 9] = [
    ("400", "the input is not as it must be: `path` says where"),
    ("401", "nobody has signed in, or the token is over"),
    ("403", "this is not for whoever asks"),
    ("404", "there is no such thing"),
    ("409", "it does not go together with how things stand"),
    ("413", "the input is too large"),
    ("429", "asked too often: `retry_after_ms` says when to ask again"),
    ("500", "a defect of the server"),
    ("503", "not now: `retry_after_ms` says when to ask again"),
];

/// The document.
pub(super) fn document(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let described = describe(operation, &mut schemas);
        let path = paths.entry(format!("/v1{}", operation.path)).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    let mut definitions = schemas.take_definitions(true);
    definitions.insert("Failure".to_owned(), failure());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Parlor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Accounts and rooms that outlive their players. The same operations go over a WebSocket at \
                            /v1/socket: {\"id\", \"op\": operationId, \"input\": {…}}.",
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": { "access": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
        },
    })
}

fn describe(operation: &Operation, schemas: &mut SchemaGenerator) -> Value {
    let mut input = (operation.input)(schemas).to_value();
    let output = (operation.output)(schemas);
    let in_path: Vec<&str> = operation.path_fields().collect();
    let required = take_required(&mut input);
    let mut parameters = Vec::new();
    if let Some(fields) = input.get_mut("properties").and_then(Value::as_object_mut) {
        let is_parameter = |name: &String| in_path.contains(&name.as_str()) || !operation.has_body();
        for name in fields.keys().filter(|name| is_parameter(name)).cloned().collect::<Vec<_>>() {
            let (place, schema) =
                (if in_path.contains(&name.as_str()) { "path" } else { "query" }, fields.remove(&name));
            let is_required = required.contains(&name);
            parameters.push(json!({ "name": name, "in": place, "required": is_required, "schema": schema }));
        }
    }
    let left: Vec<&String> = required.iter().filter(|name| !in_path.contains(&name.as_str())).collect();
    let mut described = json!({
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses(&output.to_value()),
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

fn responses(output: &Value) -> Value {
    let failed = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } });
    let mut responses = Map::new();
    let content = json!({ "application/json": { "schema": output } });
    responses.insert("200".to_owned(), json!({ "description": "done", "content": content }));
    for (status, description) in FAILURES {
        responses.insert(status.to_owned(), json!({ "description": description, "content": failed }));
    }
    Value::Object(responses)
}

fn failure() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "sentence"],
            "properties": {
                "code": { "type": "string", "description": "for programs; stays the same between versions" },
                "sentence": { "type": "string", "description": "for people; says what to do" },
                "path": { "type": "string", "description": "the field of the input that is wrong" },
                "retry_after_ms": { "type": "integer", "minimum": 0 },
            },
        } },
    })
}
