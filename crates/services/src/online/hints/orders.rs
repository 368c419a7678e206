//! Orders of other nodes, which each node follows within a second: `store/orders.rs`.

use super::until_due;
use crate::online::{Services, bans};
use crate::store::{ORDERS_OVERLAP, Order, OrderKind, Store, StoreError};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// Interval of the sweep.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Interval of the deletion of old orders.
const DELETE_EVERY: Duration = Duration::from_secs(10 * 60);

/// What this node has read.
#[derive(Debug)]
pub(in crate::online) struct Reader {
    last: u64,
    /// Numbers up to `last` that were read, as far back as others may become visible.
    known: BTreeSet<u64>,
}

impl Reader {
    /// Begins before the node serves anybody: what was ordered before concerns nobody here.
    pub(in crate::online) async fn begin(store: &Store) -> Result<Self, StoreError> {
        let last = store.newest_order().await?;
        let mut reader = Reader { last, known: BTreeSet::new() };
        for order in store.orders_after(last).await? {
            reader.is_new(order.id);
        }
        Ok(reader)
    }

    /// Notes an order. Returns whether it was not read before.
    fn is_new(&mut self, id: u64) -> bool {
        if id.saturating_add(ORDERS_OVERLAP) <= self.last || !self.known.insert(id) {
            return false;
        }
        self.last = self.last.max(id);
        let oldest = (self.last + 1).saturating_sub(ORDERS_OVERLAP);
        self.known = self.known.split_off(&oldest);
        true
    }

    /// Runs as long as the services.
    pub(super) async fn follow(mut self, services: Services) {
        let Some(to) = services.hints() else { return };
        let mut missed = to.bus.missed();
        let mut deleted = None::<Instant>;
        loop {
            let is_told = tokio::select! {
                () = to.ordered.notified() => true,
                _ = until_due(SWEEP_EVERY, &mut missed) => false,
            };
            match services.store().orders_after(self.last).await {
                Ok(orders) => {
                    let own = services.store().node().map(|node| node.as_str().to_owned());
                    let of_others = |order: &Order| Some(&order.node) != own.as_ref();
                    let new: Vec<Order> = orders.into_iter().filter(|order| self.is_new(order.id)).collect();
                    for order in new.into_iter().filter(of_others) {
                        if !is_told {
                            to.found.orders.fetch_add(1, Ordering::Relaxed);
                        }
                        follow(&services, order).await;
                    }
                }
                Err(error) => tracing::debug!(%error, "orders of other nodes could not be read"),
            }
            if deleted.is_none_or(|at| at.elapsed() >= DELETE_EVERY) {
                deleted = Some(Instant::now());
                let store = services.store();
                let swept = async {
                    Ok::<_, StoreError>((store.sweep_orders().await?, store.sweep_presence().await?))
                };
                if let Err(error) = swept.await {
                    tracing::debug!(%error, "old orders, and what nodes wrote that are gone, could not be deleted");
                }
            }
        }
    }
}

/// Does what another node ordered.
async fn follow(services: &Services, order: Order) {
    let Order { id, node, realm, account, kind, at_us } = order;
    match kind {
        Some(OrderKind::Ban(reason)) => {
            bans::put_out(services, &realm, &account, at_us / 1_000_000);
            match bans::remove_from_rooms(services, &realm, &account, &reason).await {
                Ok(removed) => tracing::info!(%account, %node, removed, "banned at another node"),
                Err(failure) => tracing::debug!(%account, ?failure, "a banned account keeps its seats"),
            }
        }
        Some(OrderKind::LiftBan) => bans::let_in(services, &realm, &account),
        Some(OrderKind::Role) => services.bans().changed(&realm, &account),
        Some(OrderKind::SignOut(sign_in)) => services.feeds().sign_out(&realm, &account, sign_in.as_ref()),
        None => tracing::warn!(id, %node, "another node orders what this build does not know: upgrade it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_become_visible_late_are_followed_once() {
        let mut reader = Reader { last: 0, known: BTreeSet::new() };
        let mut new = |id| reader.is_new(id);
        assert!(new(5) && new(9) && !new(9));
        assert!(new(7), "its transaction committed last");
        assert!(!new(7) && !new(5));
        assert!(new(2_000) && new(1_500) && !new(1_500));
        assert!(!new(1_000), "older than any transaction");
        assert!(reader.known.len() <= 3);
    }
}
