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
            /// The id, if it is one.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] if it is empty, too long, or has a control character.
            pub fn new(text: &str) -> Result<$name, InvalidId> {
                check_id($what, text)?;
                Ok($name(text.into()))
            }

            /// As text.
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
    /// Which room. Given by the caller, unique within a realm and never used again.
    RoomId,
    "the room's id"
);
id!(
    /// One sign-in on one device: all refresh tokens that came of it. Unguessable, since who has it can end it.
    SignInId,
    "the sign-in's id"
);
