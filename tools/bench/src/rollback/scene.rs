//! The world that is rolled back: entities of 64 bytes, of which a step reads and writes every byte. The
//! peers of this bench include this file, so that all run and measure the same world.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an entity: a place and a velocity of four numbers each.
pub(crate) const ENTITY_BYTES: usize = 64;
/// Players.
pub(crate) const PLAYERS: usize = 2;
/// Steps that are run again with each step.
pub(crate) const DISTANCE: u32 = 8;

/// What one turn of a library came to.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Turn {
    /// States that were saved and hashed, and steps that came to them.
    pub(crate) frames: u64,
    /// Processor time, in ns.
    pub(crate) cpu_ns: u64,
    /// The hash of the world at the end.
    pub(crate) hash: u64,
}

/// The world before the first step.
pub(crate) fn world(entities: usize, seed: u64) -> Vec<u8> {
    let mut drawn = seed;
    let mut draw = || {
        drawn = drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        drawn
    };
    (0..entities * ENTITY_BYTES / 8).flat_map(|_| draw().to_le_bytes()).collect()
}

/// What a player presses in a step: it changes now and then.
pub(crate) fn pressed(player: usize, step: u64) -> u8 {
    u8::try_from((step / 7 + 3 * player as u64) % 16).unwrap_or(0)
}

/// Runs a step: every number of every entity is read and written.
pub(crate) fn step(world: &mut [u8], inputs: [u8; PLAYERS]) {
    let force = inputs.iter().fold(1u64, |force, input| force.wrapping_mul(31).wrapping_add((*input).into()));
    for entity in world.as_chunks_mut::<ENTITY_BYTES>().0 {
        let (place, velocity) = entity.as_chunks_mut::<8>().0.split_at_mut(4);
        for (place, velocity) in place.iter_mut().zip(velocity) {
            let (from, by) = (u64::from_le_bytes(*place), u64::from_le_bytes(*velocity));
            let to = from.wrapping_add(by);
            *place = to.to_le_bytes();
            *velocity = by.wrapping_add(force ^ (to >> 7)).to_le_bytes();
        }
    }
}

/// The hash of all bytes of the world.
pub(crate) fn hash(world: &[u8]) -> u64 {
    xxh3_64(world)
}

/// The processor time of this thread so far, in ns; what other processes take meanwhile is not in it.
///
/// # Errors
/// The operating system does not say.
pub(crate) fn cpu_ns() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| std::io::Error::other("schedstat is not as it is known"))
}
