//! Reads maps of options: each field by its name and kind, and no others.

use super::{Fault, as_member};
use parlor_proto::MemberId;
use parlor_sync::value::{Map, Value};

const CODE: &str = "bad_options";

/// A map that is read field by field. What is left at the end is unknown, and a fault.
#[derive(Debug)]
pub struct Record {
    /// Where it stands, for faults; empty for the outermost.
    path: String,
    fields: Map,
}

impl Record {
    /// The map that a value is. `path` is where it stands, for faults; empty for the outermost.
    ///
    /// # Errors
    /// [`Fault`] if it is no map.
    pub fn new(value: Value, path: &str) -> Result<Self, Fault> {
        match value {
            Value::Map(fields) => Ok(Record { path: path.to_owned(), fields }),
            other => Err(mismatch(if path.is_empty() { "options" } else { path }, "a map", &other)),
        }
    }

    /// The path of one of its fields.
    pub fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A fault of one of its fields.
    pub fn fault(&self, name: &str, message: &str) -> Fault {
        Fault::at(CODE, &self.at(name), message)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`Fault`] with the first name that is left.
    pub fn end(self) -> Result<(), Fault> {
        match self.fields.iter().next() {
            Some((name, _)) => Err(self.fault(name, "there is no option of this name here")),
            None => Ok(()),
        }
    }

    /// Takes a field; `None` if it is absent or null.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !matches!(value, Value::Null))
    }

    fn take<T>(
        &mut self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(mismatch(&self.at(name), wanted, &value)),
        }
    }

    /// A text; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Fault> {
        self.take(name, "text", |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// A truth value; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn bool(&mut self, name: &str) -> Result<Option<bool>, Fault> {
        self.take(name, "true or false", |value| match value {
            Value::Bool(is_so) => Some(*is_so),
            _ => None,
        })
    }

    /// A whole number that fits the type; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn int<T: TryFrom<i64>>(&mut self, name: &str) -> Result<Option<T>, Fault> {
        self.take(name, "a whole number in range", |value| match value {
            Value::Int(int) => T::try_from(*int).ok(),
            _ => None,
        })
    }

    /// A number; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn number(&mut self, name: &str) -> Result<Option<f64>, Fault> {
        #[allow(clippy::cast_precision_loss)] // ranges and tolerances need not be exact beyond 2^53
        self.take(name, "a number", |value| match value {
            Value::Int(int) => Some(*int as f64),
            Value::Float(float) => Some(*float),
            _ => None,
        })
    }

    /// A list; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Fault> {
        self.take(name, "a list", |value| match value {
            Value::List(items) => Some(items.clone()),
            _ => None,
        })
    }

    /// A list of texts; empty if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, Fault> {
        let texts = self.take(name, "a list of texts", |value| match value {
            Value::List(items) => items
                .iter()
                .map(|item| if let Value::Text(text) = item { Some(text.clone()) } else { None })
                .collect(),
            _ => None,
        })?;
        Ok(texts.unwrap_or_default())
    }

    /// A list of members; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn members(&mut self, name: &str) -> Result<Option<Vec<MemberId>>, Fault> {
        self.take(name, "a list of members", |value| match value {
            Value::List(items) => items.iter().map(as_member).collect(),
            _ => None,
        })
    }

    /// A map within this one; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn record(&mut self, name: &str) -> Result<Option<Record>, Fault> {
        let path = self.at(name);
        self.value(name).map(|value| Record::new(value, &path)).transpose()
    }

    /// The names of all fields, in ascending order.
    pub fn names(&self) -> Vec<String> {
        self.fields.iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// Takes all fields, in ascending order of their names.
    pub fn all(&mut self) -> Vec<(String, Value)> {
        let fields = std::mem::take(&mut self.fields);
        fields.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// The value of a field that must be there.
    ///
    /// # Errors
    /// [`Fault`] if it is not.
    pub fn need<T>(&self, name: &str, value: Option<T>) -> Result<T, Fault> {
        value.ok_or_else(|| self.fault(name, "it must be given"))
    }
}

/// The fault of a value that is not what is wanted.
pub fn mismatch(path: &str, wanted: &str, found: &Value) -> Fault {
    Fault::at(CODE, path, &format!("expected {wanted}, found {}", found.kind()))
}

/// The fault of a word that is none of those known.
pub fn unknown_word(path: &str, word: &str, known: &str) -> Fault {
    Fault::at(CODE, path, &format!("\"{word}\" is none of {known}"))
}
