//! Ids of stored data within a [`Realm`](parlor_server::realm::Realm).

use core::fmt;
use parlor_server::realm::{InvalidId, check_id};
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks that a text is a valid id.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] if it is empty, too long, or has a control character.
            pub fn new(text: &str) -> Result<$name, InvalidId> {
                check_id($what, text)?;
                Ok($name(text.into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A player's id, across rooms and devices. Given by the caller, unique within a realm.
    AccountId,
    "the account's id"
);
id!(
    /// A room's id. Given by the caller, unique within a realm and never used again.
    RoomId,
    "the room's id"
);
id!(
    /// One sign-in on one device, with all its refresh tokens. Unguessable, because its holder can end it.
    SignInId,
    "the sign-in's id"
);
