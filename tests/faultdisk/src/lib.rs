//! A faulty disk beneath SQLite, for tests of durability.
//!
//! A killed process leaves all its writes with the operating system, synced or not, so a kill does not reveal
//! a forgotten sync. On a [`Disk`] a write reaches the file only when a sync completes: a kill leaves what a
//! power cut leaves. Some writes reach it sooner and out of order, as with a disk's own cache.
//!
//! [`Disk::over`] takes a folder. From then on SQLite, anywhere in the process, accesses the files of this
//! folder through the disk, and all others directly. The disk fills up, fails to sync or stalls on command.
//!
//! `disk.rs` is the simulated disk, in safe code. `vfs.rs` puts it beneath SQLite.

mod disk;
mod vfs;

pub use disk::{Disk, Syncs};
