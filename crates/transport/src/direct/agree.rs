//! Which of several connections two players keep. Both ends dial and both accept, so up to two for each pair of addresses
//! come to be. The end that dials by its role decides; it says so on the first stream of the one that it keeps, and the
//! other answers there. Only then is it a link.

use super::PathError;
use crate::quic::STREAM_TYPE_PATH;
use quinn::Connection;

/// What both ends say: the type of the stream, and which path it is.
const WORD_BYTES: usize = 1 + size_of::<u64>();

/// Says that this connection is kept, and waits for the answer.
pub(super) async fn choose(connection: &Connection, path: u64) -> Result<(), PathError> {
    say(connection, path).await?;
    hear(connection, path).await
}

/// Waits to be told that this connection is kept, and answers.
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
