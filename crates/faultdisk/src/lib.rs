//! A disk beneath SQLite that behaves as disks may, and not as kindly as they usually do.
//!
//! A process that is killed leaves all that it ever wrote to the operating system, synced or not, so a kill shows nothing of a
//! sync that was forgotten. On a [`Disk`] a write reaches the file only when a sync is completed: what is killed leaves what a
//! power cut leaves. Some writes reach it sooner and in no order, as a disk's own memory does it.
//!
//! [`Disk::over`] takes a folder. From then on SQLite, wherever in the process it is used, sees the files of this folder
//! through the disk, and all others as ever. The disk fills up, fails to sync or stands still when it is told to.
//!
//! `disk.rs` is what a disk does, in safe code. `vfs.rs` puts it beneath SQLite.

mod disk;
mod vfs;

pub use disk::{Disk, Syncs};
