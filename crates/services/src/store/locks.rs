//! Locks that one holder has at a time, by the database's clock: what one node of a cluster does for all.
//!
//! A holder that ends without a word is replaced after its time. So nothing that must never happen twice depends on a
//! lock alone.

use super::Store;
use super::error::StoreError;
use super::sql::params;
use core::time::Duration;

impl Store {
    /// Takes a lock for this long, or prolongs the holder's own. Returns whether the holder has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn take_lock(&self, name: &str, holder: &str, time: Duration) -> Result<bool, StoreError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.write_sparing(move |sql| {
            let now_us = sql.clock_us()?;
            let taken = sql.change(
                "INSERT INTO locks (name, holder, until_us) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE
                 SET holder = $2, until_us = $3 WHERE locks.holder = $2 OR locks.until_us <= $4",
                params![&name, &holder, now_us.saturating_add(time_us), now_us],
            )?;
            Ok(taken == 1)
        })
        .await
    }

    /// Releases a lock, if the holder still has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn release_lock(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.write_sparing(move |sql| {
            sql.change("DELETE FROM locks WHERE name = $1 AND holder = $2", params![&name, &holder])?;
            Ok(())
        })
        .await
    }

    /// The database's clock, in microseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn clock_us(&self) -> Result<u64, StoreError> {
        self.read(|sql| sql.clock_us()).await
    }
}
