//! The actions that a game defines, by name, for options: what they do is in [`action`](crate::action).

use crate::message::check_name;
use parlor_proto::OrderedMap;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What applies an action.
type Run = Arc<dyn Any + Send + Sync>;

/// Stands for a function that this process cannot call: the game applies the action itself.
pub(crate) struct Outside;

/// The actions that a game defines.
#[derive(Clone, Default)]
pub struct Actions {
    /// By name: the function that runs it. Options need not know its type, which names the whole room.
    by_name: OrderedMap<Cow<'static, str>, Run>,
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
        other.by_name.iter().try_for_each(|(name, run)| self.put(name.clone(), Arc::clone(run)))
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
        self.put(Cow::Borrowed(name), Arc::new(run))
    }

    /// Adds an action that the game applies itself, in the steps of the core's user: see
    /// [`RoomCore::action_to_apply`](crate::RoomCore::action_to_apply).
    ///
    /// # Errors
    /// A text for a person, if the name is empty, too long or taken.
    pub fn define_outside(&mut self, name: &str) -> Result<(), String> {
        check_name("the name of an action", name)?;
        self.put(Cow::Owned(name.to_owned()), Arc::new(Outside))
    }

    fn put(&mut self, name: Cow<'static, str>, run: Run) -> Result<(), String> {
        if self.has(&name) {
            return Err(format!("the action \"{name}\" is defined twice: give each type another NAME"));
        }
        self.by_name.insert(name, run);
        Ok(())
    }

    /// The function that runs an action.
    pub(crate) fn get<R: 'static>(&self, name: &str) -> Option<&R> {
        self.by_name.get(name)?.downcast_ref()
    }
}
