//! What the fuzz targets do. `tests/corpus.rs` of the crates proto, sync and transport run the same over the kept
//! corpus on a stable compiler.
//!
//! ```sh
//! cargo +nightly fuzz run session                                    # from the root of the workspace
//! cargo run --manifest-path fuzz/Cargo.toml --bin seed_corpus        # writes the kept corpus again
//! ```

pub mod sync_targets;
pub mod targets;
pub mod web_targets;
