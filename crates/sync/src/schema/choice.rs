//! Enums without fields, as a list of names.

/// A Rust enum without fields, for a field of the kind [`Enum`](super::Kind::Enum). See
/// [`choice!`](crate::choice).
pub trait Choice: Copy {
    /// The names of all variants by index, 1 to [`CHOICES_MAX`](crate::limits::CHOICES_MAX) of them.
    const NAMES: &'static [&'static str];

    /// Its index among [`NAMES`](Self::NAMES).
    fn index(self) -> usize;

    /// Returns the variant with this index; the first one if there is none.
    fn from_index(index: usize) -> Self;
}

/// Lets the variants of an enum stand in a field: `choice!(Type { First, Second })`, which implements
/// [`Choice`](crate::schema::Choice).
///
/// ```
/// use parlor_sync::schema::{Choice, Kind};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Mode {
///     Idle,
///     Run,
/// }
/// parlor_sync::choice!(Mode { Idle, Run });
///
/// assert_eq!(Mode::Run.index(), 1);
/// assert_eq!(Kind::choice::<Mode>(), Kind::Enum { names: vec!["Idle".into(), "Run".into()] });
/// ```
#[macro_export]
macro_rules! choice {
    ($type:ident { $first:ident $(, $rest:ident)* $(,)? }) => {
        impl $crate::schema::Choice for $type {
            const NAMES: &'static [&'static str] = &[stringify!($first) $(, stringify!($rest))*];

            fn index(self) -> usize {
                // The match fails to compile if a variant is missing.
                let name = match self {
                    $type::$first => stringify!($first),
                    $($type::$rest => stringify!($rest),)*
                };
                Self::NAMES.iter().position(|each| *each == name).unwrap_or(0)
            }

            fn from_index(index: usize) -> Self {
                let all = [$type::$first $(, $type::$rest)*];
                all.get(index).copied().unwrap_or($type::$first)
            }
        }
    };
}
