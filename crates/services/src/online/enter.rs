//! Start of a node.

use super::OnlineError;
use super::hints::{Hints, Inputs, OrderReader};
use crate::cluster::bus::Bus;
use crate::cluster::{Cluster, ClusterConfig};
use crate::store::Store;
use parlor_server::Time;
use parlor_transport::discovery::ServerAddress;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// What a node has; nothing of it alone.
type Entered = (Option<Arc<Cluster>>, Option<Hints>, Option<Inputs>);

/// Makes the server a node of its cluster, if it has one. An error ends the runtime.
pub(super) async fn enter(
    config: Option<ClusterConfig>,
    store: &Store,
    addresses: Vec<ServerAddress>,
    (time, process): (&Time, &Arc<str>),
    runtime: Runtime,
) -> Result<(Entered, Runtime), OnlineError> {
    let Some(config) = config else { return Ok(((None, None, None), runtime)) };
    let (store, time, process) = (store.clone(), time.clone(), Arc::clone(process));
    let entering = runtime.spawn(async move {
        // Before others see the node: it hears what they tell it.
        let clock = time.clone();
        let bus = Bus::start(&store, (&config.node, config.bus.as_ref()), move || clock.now_ms()).await?;
        let orders = OrderReader::begin(&store).await?;
        let cluster = Cluster::start(&config, &store, addresses, (time, &process)).await?;
        let (hints, inputs) = Hints::new(&config.node, bus, orders);
        Ok((Some(cluster), Some(hints), Some(inputs)))
    });
    match entering.await.unwrap_or_else(|error| Err(OnlineError::Thread(error.into()))) {
        Ok(entered) => Ok((entered, runtime)),
        Err(error) => {
            // Its drop would block, which this thread must not.
            runtime.shutdown_background();
            Err(error)
        }
    }
}
