//! Rust types as components and fields.

use super::Choice;
use super::component::Component;
use super::error::FieldFault;
use super::kind::Kind;
use super::row::{FieldReader, FieldWriter, RowReader, RowWriter};
use crate::value::Value;
use bytes::Bytes;

/// A Rust type that is a component. [`replicated!`](crate::replicated) implements it for a struct.
pub trait Replicated: Sized + 'static {
    /// Name of the component, 1 to 64 bytes.
    const NAME: &'static str;

    /// The component.
    fn component() -> Component;

    /// Writes all fields.
    fn write(&self, row: &mut RowWriter<'_>);

    /// Reads all fields.
    fn read(row: &RowReader<'_>) -> Self;
}

/// A Rust type that can stand in a field.
pub trait FieldValue: Sized {
    /// Whether it holds every value of this kind.
    fn fits(kind: &Kind) -> bool;

    /// Writes it; it fits the kind.
    ///
    /// # Errors
    /// [`FieldFault`] if this value does not fit.
    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault>;

    /// Reads one. The field may have another kind, and its value may be interpolated.
    fn read(field: &FieldReader<'_>) -> Self;
}

/// A position and a rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// x, y, z.
    pub position: [f32; 3],
    /// A quaternion: x, y, z, w.
    pub rotation: [f32; 4],
}

/// A position and a rotation with their velocities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// x, y, z.
    pub position: [f32; 3],
    /// A quaternion: x, y, z, w.
    pub rotation: [f32; 4],
    /// Units of the position per second.
    pub velocity: [f32; 3],
    /// Radians per second around the axes of the world.
    pub spin: [f32; 3],
}

const IDENTITY: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// At the origin, without rotation.
impl Default for Transform {
    fn default() -> Self {
        Transform { position: [0.0; 3], rotation: IDENTITY }
    }
}

/// At the origin, without rotation, at rest.
impl Default for Body {
    fn default() -> Self {
        Body { position: [0.0; 3], rotation: IDENTITY, velocity: [0.0; 3], spin: [0.0; 3] }
    }
}

impl FieldValue for bool {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Bool)
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.numbers(&[f64::from(u8::from(*self))])
    }

    fn read(field: &FieldReader<'_>) -> Self {
        field.array::<1>()[0] >= 0.5
    }
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FieldValue for $type {
            fn fits(kind: &Kind) -> bool {
                matches!(kind, Kind::Int { min, max } if <$type>::try_from(*min).is_ok() && <$type>::try_from(*max).is_ok())
            }

            #[allow(clippy::cast_precision_loss, clippy::cast_lossless)] // a range ends below 2^53
            fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
                field.numbers(&[*self as f64])
            }

            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
            fn read(field: &FieldReader<'_>) -> Self {
                field.array::<1>()[0].round() as $type
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl FieldValue for $type {
            fn fits(kind: &Kind) -> bool {
                let is_plain = |bytes_max: u16| usize::from(bytes_max) == size_of::<$type>();
                matches!(kind, Kind::Float { .. } | Kind::Angle { .. })
                    || matches!(kind, Kind::Bytes { bytes_max } if is_plain(*bytes_max))
            }

            fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
                match field.kind() {
                    Kind::Bytes { .. } if !self.is_finite() => Err(FieldFault::NotFinite),
                    // Both zeros are one number.
                    Kind::Bytes { .. } => field.bytes(&(*self + 0.0).to_le_bytes()),
                    _ => field.numbers(&[f64::from(*self)]),
                }
            }

            #[allow(clippy::cast_possible_truncation)] // the nearest f32 is wanted
            fn read(field: &FieldReader<'_>) -> Self {
                let plain = field.blob().and_then(|blob| blob.as_ref().try_into().ok());
                let plain = plain.map(<$type>::from_le_bytes).filter(|number| number.is_finite());
                plain.unwrap_or(field.array::<1>()[0] as $type)
            }
        }

        impl FieldValue for [$type; 2] {
            fn fits(kind: &Kind) -> bool {
                matches!(kind, Kind::Vector { dims: 2, .. })
            }

            fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
                field.numbers(&self.map(f64::from))
            }

            #[allow(clippy::cast_possible_truncation)] // the nearest f32 is wanted
            fn read(field: &FieldReader<'_>) -> Self {
                field.array::<2>().map(|number| number as $type)
            }
        }

        impl FieldValue for [$type; 3] {
            fn fits(kind: &Kind) -> bool {
                matches!(kind, Kind::Vector { dims: 3, .. } | Kind::UnitVector { .. })
            }

            fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
                field.numbers(&self.map(f64::from))
            }

            #[allow(clippy::cast_possible_truncation)] // the nearest f32 is wanted
            fn read(field: &FieldReader<'_>) -> Self {
                field.array::<3>().map(|number| number as $type)
            }
        }

        impl FieldValue for [$type; 4] {
            fn fits(kind: &Kind) -> bool {
                matches!(kind, Kind::Rotation { .. })
            }

            fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
                field.numbers(&self.map(f64::from))
            }

            #[allow(clippy::cast_possible_truncation)] // the nearest f32 is wanted
            fn read(field: &FieldReader<'_>) -> Self {
                field.array::<4>().map(|number| number as $type)
            }
        }
    )*};
}

floats!(f32 f64);

/// Returns `N` numbers from index `from` on, rounded to `f32`.
#[allow(clippy::cast_possible_truncation)] // the nearest f32 is wanted
fn narrow<const N: usize>(numbers: &[f64], from: usize) -> [f32; N] {
    core::array::from_fn(|index| numbers.get(from + index).copied().unwrap_or(0.0) as f32)
}

impl FieldValue for Transform {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Transform { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        let mut numbers = [0.0; 7];
        let parts = self.position.iter().chain(&self.rotation);
        numbers.iter_mut().zip(parts).for_each(|(to, from)| *to = f64::from(*from));
        field.numbers(&numbers)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        let numbers = field.array::<7>();
        Transform { position: narrow(&numbers, 0), rotation: narrow(&numbers, 3) }
    }
}

impl FieldValue for Body {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Body { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        let mut numbers = [0.0; 13];
        let parts = self.position.iter().chain(&self.rotation).chain(&self.velocity).chain(&self.spin);
        numbers.iter_mut().zip(parts).for_each(|(to, from)| *to = f64::from(*from));
        field.numbers(&numbers)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        let numbers = field.array::<13>();
        Body {
            position: narrow(&numbers, 0),
            rotation: narrow(&numbers, 3),
            velocity: narrow(&numbers, 7),
            spin: narrow(&numbers, 10),
        }
    }
}

impl<C: Choice> FieldValue for C {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Enum { names } if names.iter().map(String::as_str).eq(C::NAMES.iter().copied()))
    }

    #[allow(clippy::cast_precision_loss)] // there are at most 256
    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.numbers(&[self.index() as f64])
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
    fn read(field: &FieldReader<'_>) -> Self {
        C::from_index(field.array::<1>()[0] as usize)
    }
}

impl FieldValue for String {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Text { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.text(self)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        let bytes = field.blob().map(AsRef::as_ref).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }
}

impl FieldValue for Vec<u8> {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Bytes { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.bytes(self)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        field.blob().map(|bytes| bytes.to_vec()).unwrap_or_default()
    }
}

/// Shares the received bytes instead of copying them.
impl FieldValue for Bytes {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Bytes { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.bytes(self)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        field.blob().cloned().unwrap_or_default()
    }
}

impl FieldValue for Value {
    fn fits(kind: &Kind) -> bool {
        matches!(kind, Kind::Any { .. })
    }

    fn write(&self, field: &mut FieldWriter<'_>) -> Result<(), FieldFault> {
        field.value(self)
    }

    fn read(field: &FieldReader<'_>) -> Self {
        field.blob().and_then(|bytes| Value::decode(bytes.clone()).ok()).unwrap_or_default()
    }
}

/// Implements [`Replicated`](crate::schema::Replicated) for a struct:
/// `replicated!(Type as "name" => { field: kind, … })`.
///
/// All fields of the struct must be listed, public or not. [`Kind`](crate::schema::Kind) lists the Rust types
/// for each kind. A [`Field`](crate::schema::Field) may replace a kind, for more options. Options of the
/// [component](crate::schema::ComponentBuilder) may follow the name.
///
/// ```
/// use parlor_sync::replicated;
/// use parlor_sync::schema::{Body, Condition, Interpolation, Kind, Range, Replicated};
///
/// struct Crate {
///     body: Body,
///     label: String,
///     fuse: f32,
/// }
///
/// replicated!(Crate as "crate", priority(512), condition(Condition::Everyone) => {
///     body: Kind::Body {
///         position: Range::new(-100.0, 100.0, 0.002),
///         rotation_bits: 9,
///         velocity: Range::new(-50.0, 50.0, 0.01),
///         spin: Range::new(-40.0, 40.0, 0.02),
///     },
///     label: Kind::text(24),
///     fuse: Kind::float(0.0, 10.0, 0.1).threshold(2).interpolation(Interpolation::None),
/// });
///
/// assert_eq!(Crate::component().lanes(), 14);
/// ```
#[macro_export]
macro_rules! replicated {
    ($type:ty as $name:literal $(, $option:ident($($value:expr),*))* => {
        $($field:ident: $kind:expr),+ $(,)?
    }) => {
        impl $crate::schema::Replicated for $type {
            const NAME: &'static str = $name;

            fn component() -> $crate::schema::Component {
                $crate::schema::Component::builder($name)
                    $(.field_of(stringify!($field), $kind, |it: &$type| &it.$field))+
                    $(.$option($($value),*))*
                    .build()
            }

            fn write(&self, row: &mut $crate::schema::RowWriter<'_>) {
                let fields = 0..;
                $(
                    let field = fields.start;
                    row.set(field, &self.$field);
                    let fields = field + 1..;
                )+
                let _ = fields;
            }

            fn read(row: &$crate::schema::RowReader<'_>) -> Self {
                let fields = 0..;
                $(
                    let $field = row.get(fields.start);
                    let fields = fields.start + 1..;
                )+
                let _ = fields;
                Self { $($field),+ }
            }
        }
    };
}
