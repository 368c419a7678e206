//! A thousand walkers, of which everybody sees those that are near: the demo of a shared world.
//!
//! The [`Crowd`] is the host: it lets all walkers move, and gives everybody who comes one to steer. A [`Viewer`] is anybody
//! else: what it sees is what the server sends it, and that is what is around its own walker.

mod crowd;
mod figures;
mod viewer;

pub(crate) use crowd::Crowd;
pub(crate) use viewer::{Steering, Viewer};

use parlor::replicated;
use parlor::schema::{Kind, Schema, SchemaError};
use parlor_sim::walkers::SIDE_M;

/// The demo's name towards the server.
pub(crate) const APP: &str = "walkers";

/// Bits of each part of a rotation.
const ROTATION_BITS: u8 = 9;
/// The finest difference of a position, in metres.
const STEP_M: f64 = 1.0 / 512.0;
/// A walker that comes this near is seen, in metres.
pub(crate) const SIGHT_M: f64 = 64.0;
/// One that is farther away than this is no longer seen.
const LEAVE_M: f64 = 72.0;

/// What everybody knows of a walker that is in sight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Walker {
    /// In metres.
    pub(crate) position: [f32; 3],
    /// A quaternion: x, y, z, w.
    pub(crate) rotation: [f32; 4],
}

replicated!(Walker as "walker" => {
    position: Kind::vector3(0.0, SIDE_M, STEP_M),
    rotation: Kind::rotation(ROTATION_BITS),
});

impl Walker {
    /// Where it looks along the ground: a turn is 1.
    pub(crate) fn heading(&self) -> f32 {
        let [x, y, z, w] = self.rotation;
        // The direction of its own x axis.
        (2.0 * (x * y + z * w)).atan2(1.0 - 2.0 * (y * y + z * z)) / std::f32::consts::TAU
    }

    /// A walker on the ground that looks along `heading`, a turn being 1.
    pub(crate) fn upright(position: [f32; 3], heading: f32) -> Walker {
        let (sin, cos) = (heading * std::f32::consts::PI).sin_cos();
        Walker { position, rotation: [0.0, 0.0, sin, cos] }
    }
}

/// The schema of the demo: members see what comes near their own walker.
pub(crate) fn schema() -> Result<Schema, SchemaError> {
    Schema::builder().replicate::<Walker>().interest("walker", "position", SIGHT_M, LEAVE_M).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_read_back_from_its_rotation() {
        for heading in [-0.4f32, -0.1, 0.0, 0.2, 0.45] {
            let walker = Walker::upright([0.0; 3], heading);
            assert!((walker.heading() - heading).abs() < 1e-5, "{heading}: {}", walker.heading());
        }
    }
}
