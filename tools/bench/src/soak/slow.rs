//! Slow readers without malice: they request something large and read a byte at a time, or nothing. The
//! server may disconnect them, and they return.

use super::stage::Stage;
use crate::http::request;
use crate::load::tcp_from;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

/// What is large, and needs no account.
const LARGE: &str = "/v1/openapi.json";
/// A byte at a time, so often.
const BYTE_EVERY: Duration = Duration::from_millis(100);
/// How long one holds its connection.
const HOLDS: Duration = Duration::from_secs(40);
/// Between two connections.
const REST: Duration = Duration::from_secs(2);

/// Asks and reads slowly, for ever.
pub(super) async fn reader(stage: Rc<Stage>, reads_nothing: bool) {
    loop {
        if let Err(error) = read(&stage, reads_nothing).await {
            // A connection that is cut off is no error: a slow reader may be.
            stage.record.error(format!("a slow reader cannot connect: {error:#}"));
        }
        sleep(REST).await;
    }
}

async fn read(stage: &Stage, reads_nothing: bool) -> anyhow::Result<()> {
    let mut stream = tcp_from(stage.next_source(), stage.addr()).await?;
    let reading = async {
        stream.write_all(request("GET", LARGE, "", "").as_bytes()).await?;
        if reads_nothing {
            sleep(HOLDS).await;
        }
        let mut byte = [0];
        while stream.read(&mut byte).await? > 0 {
            sleep(BYTE_EVERY).await;
        }
        std::io::Result::Ok(())
    };
    // It ends as it may: cut off, or by itself.
    let _ = timeout(HOLDS, reading).await;
    Ok(())
}
