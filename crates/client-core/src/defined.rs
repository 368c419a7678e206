//! The actions that a game defines, by name, for options: what they do is in [`action`](crate::action).

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The actions that a game defines.
#[derive(Clone, Default)]
pub struct Actions {
    /// By name: the function that runs it. Options need not know its type, which names the whole room.
    by_name: BTreeMap<&'static str, Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Actions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether an action of this name is defined.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Adds all of these.
    ///
    /// # Errors
    /// A text for a person, if a name is taken.
    pub fn extend(&mut self, other: &Actions) -> Result<(), String> {
        other.by_name.iter().try_for_each(|(name, run)| self.put(name, Arc::clone(run)))
    }

    /// Adds an action.
    ///
    /// # Errors
    /// A text for a person, if the name is taken.
    pub(crate) fn insert<R: Send + Sync + 'static>(
        &mut self,
        name: &'static str,
        run: R,
    ) -> Result<(), String> {
        self.put(name, Arc::new(run))
    }

    fn put(&mut self, name: &'static str, run: Arc<dyn Any + Send + Sync>) -> Result<(), String> {
        match self.by_name.insert(name, run) {
            None => Ok(()),
            Some(_) => Err(format!("the action \"{name}\" is defined twice: give each type another NAME")),
        }
    }

    /// The function that runs an action.
    pub(crate) fn get<R: 'static>(&self, name: &str) -> Option<&R> {
        self.by_name.get(name)?.downcast_ref()
    }
}
