//! A bus between nodes of one process, for tests.

use super::{BusError, Carrier, Received, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;

/// Payloads on their way at once. Whoever is slower misses some.
const WAITING_MAX: usize = 4_096;

/// What connects the nodes. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Memory(broadcast::Sender<String>);

impl Memory {
    pub(super) fn new() -> Self {
        Memory(broadcast::Sender::new(WAITING_MAX))
    }
}

struct Connection {
    payloads: broadcast::Sender<String>,
    heard: broadcast::Receiver<String>,
}

impl Carrier for Memory {
    fn open(&self) -> BoxFuture<'_, Result<Box<dyn Session>, BusError>> {
        let connection = Connection { payloads: self.0.clone(), heard: self.0.subscribe() };
        core::future::ready(Ok(Box::new(connection) as Box<dyn Session>)).boxed()
    }

    fn payload_max(&self) -> usize {
        usize::MAX
    }
}

impl Session for Connection {
    fn send<'a>(&'a mut self, payloads: &'a [String]) -> BoxFuture<'a, Result<(), BusError>> {
        for payload in payloads {
            let _ = self.payloads.send(payload.clone());
        }
        core::future::ready(Ok(())).boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Received, BusError>> {
        async {
            match self.heard.recv().await {
                Ok(payload) => Ok(Received::Payload(payload.into_bytes())),
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(Received::Missed),
                Err(broadcast::error::RecvError::Closed) => Err(BusError::Away("it is gone".to_owned())),
            }
        }
        .boxed()
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), BusError>> {
        core::future::ready(Ok(())).boxed()
    }
}
