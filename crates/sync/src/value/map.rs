//! Values by name.

use super::Value;

/// Values by name, in ascending order of the names' bytes.
///
/// A sorted list: the maps of a game have a handful of fields, where it is smaller and faster than a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(String, Value)>);

impl Map {
    /// A map without fields.
    pub const fn new() -> Self {
        Map(Vec::new())
    }

    /// Creates a map from pairs in any order.
    ///
    /// # Errors
    /// The first name that occurs twice.
    pub fn from_pairs(mut pairs: Vec<(String, Value)>) -> Result<Self, String> {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pair[0].0.clone()),
            None => Ok(Map(pairs)),
        }
    }

    /// Returns the value of the field `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// Returns the value of the field `name`, mutable.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.find(name).ok().map(|at| &mut self.0[at].1)
    }

    /// Sets a field. Returns its previous value.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.find(&name) {
            Ok(at) => Some(core::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes a field. Returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.find(name).ok().map(|at| self.0.remove(at).1)
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all fields, in ascending order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Appends a field with a name after all others. Returns the name as an error if it is not.
    pub(super) fn push_last(&mut self, name: String, value: Value) -> Result<(), String> {
        if self.0.last().is_some_and(|(last, _)| *last >= name) {
            return Err(name);
        }
        self.0.push((name, value));
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.as_str().cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_replaced_and_kept_in_order() {
        let mut map = Map::new();
        assert_eq!(map.insert("y", 2), None);
        assert_eq!(map.insert("x", 1), None);
        assert_eq!(map.insert("x", 3), Some(Value::Int(1)));
        assert_eq!(map.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["x", "y"]);
        *map.get_mut("y").unwrap() = Value::Null;
        assert_eq!(map.remove("y"), Some(Value::Null));
        assert_eq!((map.len(), map.get("y")), (1, None));
    }

    #[test]
    fn a_name_that_occurs_twice_is_named() {
        let pairs =
            vec![("b".to_owned(), Value::Null), ("a".to_owned(), 1.into()), ("b".to_owned(), 2.into())];
        assert_eq!(Map::from_pairs(pairs), Err("b".to_owned()));
    }
}
