//! Secrets shared by the servers of one store, such as the key that signs tokens.

use super::Store;
use super::error::StoreError;
use super::sql::params;
use super::types::{BODY_BYTES_MAX, check_size, check_text};

impl Store {
    /// The stored secret of this name. If there is none, the proposed one is stored: several servers that
    /// start at once get the same.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if the name or the secret is too long.
    pub async fn keep_secret(&self, name: &str, proposed: &[u8]) -> Result<Vec<u8>, StoreError> {
        check_text("the secret's name", name)?;
        check_size("the secret", proposed.len(), BODY_BYTES_MAX)?;
        let (name, proposed) = (name.to_owned(), proposed.to_owned());
        self.write_sparing(move |sql| {
            sql.change(
                "INSERT INTO secrets (name, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                params![&name, &proposed],
            )?;
            let mut rows = sql.rows("SELECT secret FROM secrets WHERE name = $1", params![&name])?;
            match rows.first_mut() {
                Some(row) => row.bytes(0),
                None => Err(StoreError::Damaged("a secret that was kept is not there".to_owned()).into()),
            }
        })
        .await
    }
}
