//! Memory that connections make the services hold: inputs being read, and unread answers and notices. It has
//! a bound for each address and one in all (threat 44).
//!
//! An operation first reserves its largest possible answer; the share then shrinks to the actual answer. It
//! is returned once the answer was sent or its connection is over. Connections that read nothing are closed,
//! so shares are held briefly. Local processes have no bound for each address.

use super::failure::{Failure, Kind};
use core::time::Duration;
use parlor_hub::Origin;
use parlor_server::embed::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// When an operation that was refused may be asked for again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What is held for all connections. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    each_max: usize,
    all_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// By address; those that hold nothing are not in here.
    of: HashMap<Origin, usize>,
    /// The most that there was at once.
    most: usize,
    refused: u64,
}

/// A part of what may be held, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    unread: Unread,
    origin: Origin,
    bytes: usize,
}

/// Which bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// That of the address.
    Each,
    /// That of all.
    All,
}

impl Unread {
    /// Nothing is held yet, and no more than this for an address and in all.
    pub(crate) fn new(each_max: usize, all_max: usize) -> Self {
        Unread(Arc::new(Inner { each_max, all_max, held: Mutex::default() }))
    }

    /// So many bytes for an address.
    pub(crate) fn take(&self, origin: Origin, bytes: usize) -> Result<Share, Full> {
        let mut share = Share { unread: self.clone(), origin, bytes: 0 };
        share.grow(bytes)?;
        Ok(share)
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.0.held).all
    }

    /// The most bytes that were held at once.
    pub(crate) fn bytes_most(&self) -> usize {
        lock(&self.0.held).most
    }

    /// How often nothing more was taken.
    pub(crate) fn refused(&self) -> u64 {
        lock(&self.0.held).refused
    }
}

impl Share {
    /// Takes so many bytes more.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        let Inner { each_max, all_max, held } = &*self.unread.0;
        let mut held = lock(held);
        let of_origin = held.of.get(&self.origin).copied().unwrap_or(0);
        let is_over_each = self.origin != Origin::LOCAL && of_origin.saturating_add(bytes) > *each_max;
        if is_over_each || held.all.saturating_add(bytes) > *all_max {
            held.refused += 1;
            return Err(if is_over_each { Full::Each } else { Full::All });
        }
        held.all += bytes;
        held.most = held.most.max(held.all);
        if bytes > 0 {
            *held.of.entry(self.origin).or_default() += bytes;
        }
        drop(held);
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back all but so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        let mut held = lock(&self.unread.0.held);
        held.all -= less;
        if let Some(of_origin) = held.of.get_mut(&self.origin) {
            *of_origin -= less;
            if *of_origin == 0 {
                held.of.remove(&self.origin);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl From<Full> for Failure {
    fn from(full: Full) -> Self {
        match full {
            Full::Each => {
                let sentence =
                    "too much that your network asked for waits to be read: read the answers, and ask again";
                Failure::new(Kind::TooOften, "too_much_unread", sentence).after(RETRY_AFTER)
            }
            Full::All => {
                Failure::unavailable("too much that was asked for waits to be read: ask again", RETRY_AFTER)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_44_shares_are_bounded_for_each_and_in_all_and_given_back() {
        let unread = Unread::new(100, 250);
        let mut first = unread.take(Origin(1), 60).unwrap();
        assert_eq!(first.grow(41), Err(Full::Each));
        first.grow(40).unwrap();
        let _second = unread.take(Origin(2), 100).unwrap();
        assert_eq!(unread.take(Origin(3), 51).unwrap_err(), Full::All);
        assert_eq!(unread.take(Origin::LOCAL, 51).unwrap_err(), Full::All);
        first.shrink_to(10);
        let local = unread.take(Origin::LOCAL, 140).unwrap();
        assert_eq!((unread.bytes(), unread.bytes_most(), unread.refused()), (250, 250, 3));
        drop((first, local));
        assert_eq!(unread.bytes(), 100);
        assert_eq!(lock(&unread.0.held).of.len(), 1, "who holds nothing is forgotten");
    }
}
