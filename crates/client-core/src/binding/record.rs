//! Reads maps of options: each field by its name and kind, and no others.

use super::{Fault, as_member};
use parlor_proto::MemberId;
use parlor_sync::value::{Map, Value};
use std::time::Duration;

const CODE: &str = "bad_options";
const MEMBERS: &str = "a list of members";
const TEXTS: &str = "a list of texts";
const WHOLE: &str = "a whole number in range";

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

    /// The fault of a field that is not what is wanted.
    #[inline(never)] // pages load it once
    fn wrong(&self, name: &str, wanted: &str, found: &Value) -> Fault {
        mismatch(&self.at(name), wanted, found)
    }

    /// A text; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "text", &other)),
        }
    }

    /// A truth value; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn bool(&mut self, name: &str) -> Result<Option<bool>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(is_so)) => Ok(Some(is_so)),
            Some(other) => Err(self.wrong(name, "true or false", &other)),
        }
    }

    /// A whole number that fits the type; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn int<T: TryFrom<i64>>(&mut self, name: &str) -> Result<Option<T>, Fault> {
        // Each type that is wanted has this code, so it is short: pages load it.
        let Some(int) = self.whole(name)? else { return Ok(None) };
        T::try_from(int).map(Some).map_err(|_| self.wrong(name, WHOLE, &Value::Int(int)))
    }

    fn whole(&mut self, name: &str) -> Result<Option<i64>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Int(int)) => Ok(Some(int)),
            Some(other) => Err(self.wrong(name, WHOLE, &other)),
        }
    }

    /// A number; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn number(&mut self, name: &str) -> Result<Option<f64>, Fault> {
        #[allow(clippy::cast_precision_loss)] // ranges and tolerances need not be exact beyond 2^53
        match self.value(name) {
            None => Ok(None),
            Some(Value::Int(int)) => Ok(Some(int as f64)),
            Some(Value::Float(float)) => Ok(Some(float)),
            Some(other) => Err(self.wrong(name, "a number", &other)),
        }
    }

    /// Sets a text if it is there.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn set_text(&mut self, name: &str, to: &mut String) -> Result<(), Fault> {
        self.text(name)?.into_iter().for_each(|text| *to = text);
        Ok(())
    }

    /// Sets a truth value if it is there.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn set_bool(&mut self, name: &str, to: &mut bool) -> Result<(), Fault> {
        *to = self.bool(name)?.unwrap_or(*to);
        Ok(())
    }

    /// Sets a whole number if it is there.
    ///
    /// # Errors
    /// [`Fault`] if it does not fit the type.
    pub fn set_int<T: TryFrom<i64>>(&mut self, name: &str, to: &mut T) -> Result<(), Fault> {
        self.int(name)?.into_iter().for_each(|int| *to = int);
        Ok(())
    }

    /// Sets a time in ms if it is there.
    ///
    /// # Errors
    /// [`Fault`] if it is no whole number below 2^32.
    pub fn set_ms(&mut self, name: &str, to: &mut Duration) -> Result<(), Fault> {
        if let Some(time) = self.ms(name)? {
            *to = time;
        }
        Ok(())
    }

    /// Sets a time in ms if it is there.
    ///
    /// # Errors
    /// [`Fault`] if it is no whole number below 2^32.
    pub fn set_some_ms(&mut self, name: &str, to: &mut Option<Duration>) -> Result<(), Fault> {
        if let Some(time) = self.ms(name)? {
            *to = Some(time);
        }
        Ok(())
    }

    fn ms(&mut self, name: &str) -> Result<Option<Duration>, Fault> {
        Ok(self.int::<u32>(name)?.map(|ms| Duration::from_millis(ms.into())))
    }

    /// A list; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Fault> {
        self.items(name, "a list")
    }

    fn items(&mut self, name: &str, wanted: &str) -> Result<Option<Vec<Value>>, Fault> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::List(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(name, wanted, &other)),
        }
    }

    /// A list of texts; empty if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, Fault> {
        let texts = self.items(name, TEXTS)?.unwrap_or_default().into_iter().map(|item| match item {
            Value::Text(text) => Ok(text),
            other => Err(self.wrong(name, TEXTS, &other)),
        });
        texts.collect()
    }

    /// A list of members; `None` if it is absent.
    ///
    /// # Errors
    /// [`Fault`] if it is none.
    pub fn members(&mut self, name: &str) -> Result<Option<Vec<MemberId>>, Fault> {
        let Some(items) = self.items(name, MEMBERS)? else { return Ok(None) };
        let members: Option<Vec<MemberId>> = items.iter().map(as_member).collect();
        members.map(Some).ok_or_else(|| self.wrong(name, MEMBERS, &Value::List(items)))
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
