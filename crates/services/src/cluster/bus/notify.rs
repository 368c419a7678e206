//! The bus over `NOTIFY` of the store's PostgreSQL.

use super::{BusError, Carrier, Received, Session};
use crate::store::{Listener, ListenerAddress, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// PostgreSQL refuses payloads of 8,000 bytes.
const PAYLOAD_MAX: usize = 7_900;

/// PostgreSQL as a carrier.
pub(super) struct Notify(ListenerAddress);

impl Notify {
    /// The database of a store, after a test that it hands on notifications.
    pub(super) async fn checked(store: &Store) -> Result<Self, BusError> {
        let address = store.listener_address();
        let address =
            address.ok_or_else(|| BusError::Unusable("a store in a file carries no bus".to_owned()))?;
        address.test().await.map_err(BusError::Unusable)?;
        Ok(Notify(address))
    }
}

impl Carrier for Notify {
    fn open(&self) -> BoxFuture<'_, Result<Box<dyn Session>, BusError>> {
        async { Ok(Box::new(self.0.listen().await.map_err(BusError::Away)?) as Box<dyn Session>) }.boxed()
    }

    fn payload_max(&self) -> usize {
        PAYLOAD_MAX
    }
}

impl Session for Listener {
    fn send<'a>(&'a mut self, payloads: &'a [String]) -> BoxFuture<'a, Result<(), BusError>> {
        async move { self.notify(payloads).await.map_err(BusError::Away) }.boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Received, BusError>> {
        async {
            if self.has_missed() {
                return Ok(Received::Missed);
            }
            let payload = self.heard().await;
            let over = || BusError::Away("PostgreSQL ended the connection".to_owned());
            payload.map(|payload| Received::Payload(payload.into_bytes())).ok_or_else(over)
        }
        .boxed()
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), BusError>> {
        async { Listener::check(self).await.map_err(BusError::Away) }.boxed()
    }
}
