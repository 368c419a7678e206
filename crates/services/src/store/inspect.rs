//! A look at a store without opening it for use: nothing of it changes, and no server loses it.

use super::address::Address;
use super::error::OpenError;
use super::{layouts, postgres, sqlite};
use std::path::PathBuf;

/// What a look at a store found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFacts {
    /// Its file, of a store in a file.
    pub file: Option<PathBuf>,
    /// What is there.
    pub state: StoreState,
    /// The server that has it open, if there is one.
    pub holder: Option<String>,
    /// The newest layout that this server knows.
    pub newest: u64,
}

/// What is at the address of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// Nothing yet: the first start creates it.
    Absent,
    /// A store with the log of a server that was killed beside its file. The next start merges them.
    Unmerged,
    /// A store of this layout. A file that no server has open was checked for damage.
    Sound {
        /// The number of its layout.
        layout: u64,
    },
}

/// Looks at the store at an address. Blocks, so do not call it in a runtime.
///
/// # Errors
/// [`OpenError`] describes what to do.
pub fn inspect(address: &str) -> Result<StoreFacts, OpenError> {
    let (file, state, holder) = match Address::parse(address)? {
        Address::Sqlite(path) => {
            let (state, is_held) = sqlite::inspect(&path)?;
            (Some(path), state, is_held.then(|| "a server on this machine".to_owned()))
        }
        Address::Postgres(server) => {
            let (layout, holder) = postgres::inspect(&server)?;
            (None, layout.map_or(StoreState::Absent, |layout| StoreState::Sound { layout }), holder)
        }
    };
    match state {
        StoreState::Sound { layout } if layout > layouts::NEWEST => {
            Err(OpenError::Newer { found: layout, known: layouts::NEWEST })
        }
        state => Ok(StoreFacts { file, state, holder, newest: layouts::NEWEST }),
    }
}
