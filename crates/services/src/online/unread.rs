//! Memory that the services hold for connections: inputs being read, and unread answers and notices. It is
//! bounded for each address and in all (threat 44).
//!
//! An operation takes a share before it runs, as large as its largest answer. The share is then fitted to the
//! answer, and released when the answer is sent or its connection ends. Connections that read nothing are
//! closed, so no share is held for long. Local processes are bounded by the sum alone.

use super::failure::{Failure, Kind};
use core::time::Duration;
use parlor_hub::Origin;
use parlor_server::embed::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Time to retry after a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The memory held for all connections. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    each_max: usize,
    all_max: usize,
    held: Mutex<MemoryUse>,
}

#[derive(Debug, Default)]
struct MemoryUse {
    all: usize,
    /// By address. Addresses that hold nothing have no entry.
    of: HashMap<Origin, usize>,
    /// The maximum number of bytes so far.
    most: usize,
    refused: u64,
}

/// A part of that memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    unread: Unread,
    origin: Origin,
    bytes: usize,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// That of the address.
    Each,
    /// That of all addresses.
    All,
}

impl Unread {
    /// Limits in bytes, for each address and in all.
    pub(crate) fn new(each_max: usize, all_max: usize) -> Self {
        Unread(Arc::new(Inner { each_max, all_max, held: Mutex::default() }))
    }

    /// Takes a share of this size for an address.
    pub(crate) fn take(&self, origin: Origin, bytes: usize) -> Result<Share, Full> {
        let mut share = Share { unread: self.clone(), origin, bytes: 0 };
        share.grow(bytes)?;
        Ok(share)
    }

    /// Bytes currently held.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.0.held).all
    }

    /// The maximum number of bytes held so far.
    pub(crate) fn bytes_most(&self) -> usize {
        lock(&self.0.held).most
    }

    /// Number of refusals.
    pub(crate) fn refused(&self) -> u64 {
        lock(&self.0.held).refused
    }
}

impl Share {
    /// Adds this many bytes to the share.
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

    /// Makes the share exactly this large: releases the rest, or takes more.
    ///
    /// # Errors
    /// The address, or all together, would hold too much. The share is then unchanged.
    pub(crate) fn fit(&mut self, bytes: usize) -> Result<(), Full> {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        self.shrink_to(bytes);
        Ok(())
    }

    /// Releases all but this many bytes.
    fn shrink_to(&mut self, bytes: usize) {
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
        // An answer may be larger than its share.
        assert_eq!(first.fit(11), Err(Full::All));
        drop(local);
        first.fit(90).unwrap();
        assert_eq!((unread.bytes(), first.fit(101)), (190, Err(Full::Each)));
        first.fit(5).unwrap();
        assert_eq!(unread.bytes(), 105);
        drop(first);
        assert_eq!(unread.bytes(), 100);
        assert_eq!(lock(&unread.0.held).of.len(), 1, "who holds nothing is forgotten");
    }
}
