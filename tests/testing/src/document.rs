//! The OpenAPI document, against which each answer of a test is checked.

use serde_json::{Value, json};

/// What a server says that it answers.
pub struct Document {
    operations: Vec<Described>,
    components: Value,
}

/// An operation.
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its method.
    pub method: String,
    /// Below `/v1`.
    pub path: String,
    operation: Value,
}

impl Described {
    /// The roles that it is for; none if it is for everybody.
    pub fn roles(&self) -> Vec<&str> {
        self.operation["x-roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The schema of its body.
    pub fn body(&self) -> Option<&Value> {
        self.operation.pointer("/requestBody/content/application~1json/schema")
    }

    fn responses(&self) -> &Value {
        &self.operation["responses"]
    }
}

impl Document {
    /// The document with all objects closed: a server answers nothing that it does not name, though a later one may.
    pub fn read(mut document: Value) -> Self {
        close(&mut document["components"]);
        close(&mut document["paths"]);
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                operations.push(Described {
                    name: operation["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_uppercase(),
                    path: path.strip_prefix("/v1").unwrap().to_owned(),
                    operation: operation.clone(),
                });
            }
        }
        // `/rooms/mine` comes before `/rooms/{room}`.
        operations.sort_by_key(|operation| operation.path.contains('{'));
        Document { operations, components: document["components"].clone() }
    }

    /// All operations.
    pub fn described(&self) -> &[Described] {
        &self.operations
    }

    /// All operations, in the order of their names: name, method, path.
    pub fn operations(&self) -> Vec<(&str, &str, &str)> {
        let all = self.operations.iter().map(|one| (&one.name[..], &one.method[..], &one.path[..]));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    /// An answer over HTTP is one that the document has for this request.
    #[track_caller]
    pub fn check_http(&self, method: &str, path: &str, status: u16, answer: &Value) {
        let path = path.split('?').next().unwrap_or_default();
        let here = || self.operations.iter().filter(|operation| is_at(&operation.path, path));
        let Some(first) = here().next() else {
            assert!(
                path == "/openapi.json" || status == 404,
                "{method} {path} is not in the document: {answer}"
            );
            return;
        };
        // Only what has the same path: the server knows no other then.
        match here().find(|operation| operation.method == method && operation.path == first.path) {
            Some(operation) => self.check(operation, status, answer),
            None => assert_eq!(status, 405, "{method} {path} is not in the document: {answer}"),
        }
    }

    /// An answer of the JSON socket is one that the document has for this operation.
    #[track_caller]
    pub fn check_socket(&self, name: &str, message: &Value) {
        let Some(operation) = self.operations.iter().find(|operation| operation.name == name) else { return };
        let Some(error) = message.get("error") else { return self.check(operation, 200, &message["output"]) };
        let answer = json!({ "error": error });
        let fits = |(status, _): &(&String, &Value)| {
            self.faults(operation, status.parse().unwrap(), &answer).is_empty()
        };
        assert!(operation.responses().as_object().unwrap().iter().any(|one| fits(&one)), "{name}: {answer}");
    }

    #[track_caller]
    fn check(&self, operation: &Described, status: u16, answer: &Value) {
        let faults = self.faults(operation, status, answer);
        assert!(faults.is_empty(), "{} answers {status}, {faults:?}: {answer}", operation.name);
    }

    fn faults(&self, operation: &Described, status: u16, answer: &Value) -> Vec<String> {
        let response = &operation.responses()[status.to_string()];
        if response.is_null() {
            return vec!["which is not in the document".to_owned()];
        }
        let mut schema = response["content"]["application/json"]["schema"].clone();
        schema["components"] = self.components.clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        validator.iter_errors(answer).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
    }
}

/// Whether a path of the document is the one that was asked for.
fn is_at(described: &str, asked: &str) -> bool {
    let (described, asked): (Vec<_>, Vec<_>) = (described.split('/').collect(), asked.split('/').collect());
    described.len() == asked.len()
        && described.iter().zip(asked).all(|(one, other)| one.starts_with('{') || *one == other)
}

/// Says of each object whose fields are named that it has no others.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && fields.contains_key("type") {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
