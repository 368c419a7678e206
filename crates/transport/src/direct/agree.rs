//! Chooses which of several connections two players keep. Both ends dial and accept, so each pair of
//! addresses yields up to two. The dialing role decides and announces it on the first stream of the chosen
//! connection. The other end answers on the same connection. Only then is it a link.

use super::PathError;
use crate::quic::STREAM_TYPE_PATH;
use quinn::Connection;

/// The message of both ends: the stream's type and the path's id.
const WORD_BYTES: usize = 1 + size_of::<u64>();

/// Announces that this connection is kept, and waits for the answer.
pub(super) async fn choose(connection: &Connection, path: u64) -> Result<(), PathError> {
    say(connection, path).await?;
    hear(connection, path).await
}

/// Waits for the announcement that this connection is kept, and answers it.
pub(super) async fn be_chosen(connection: &Connection, path: u64) -> Result<(), PathError> {
    hear(connection, path).await?;
    say(connection, path).await
}

fn word(path: u64) -> [u8; WORD_BYTES] {
    let mut word = [STREAM_TYPE_PATH; WORD_BYTES];
    word[1..].copy_from_slice(&path.to_be_bytes());
    word
}

async fn say(connection: &Connection, path: u64) -> Result<(), PathError> {
    let broke = |detail: String| PathError::Broke { detail };
    let mut stream = connection.open_uni().await.map_err(|error| broke(error.to_string()))?;
    stream.write_all(&word(path)).await.map_err(|error| broke(error.to_string()))?;
    stream.finish().map_err(|error| broke(error.to_string()))
}

async fn hear(connection: &Connection, path: u64) -> Result<(), PathError> {
    let broke = |detail: String| PathError::Broke { detail };
    let mut stream = connection.accept_uni().await.map_err(|error| broke(error.to_string()))?;
    let heard = stream.read_to_end(WORD_BYTES).await.map_err(|error| broke(error.to_string()))?;
    if heard == word(path) { Ok(()) } else { Err(broke("the other end means another path".to_owned())) }
}
